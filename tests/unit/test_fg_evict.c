/* SPDX-License-Identifier: MIT
 *
 * FG at eviction and refault: sort (C.5), feedback (C.6), the rmap check (C.4), placement (C.7),
 * the shadow (C.8), statistics (C.10), and the scan that must promote nothing (C.13).
 */
#include "test_gen_common.h"

static unsigned int refs_of(const struct world *w, uint32_t page)
{
	return world_refs(w, page);
}

static int tier_idx(const struct world *w)
{
	return w->e->ops->rules->tier_idx(gen_knobs(w->e), root(w), TYPE_FILE);
}

/* Tier `tier` refaults so often that it is protected. */
static void make_hot(struct world *w, unsigned int type, unsigned int tier)
{
	set_tier(w, type, tier, 1000, 1000);
}

/* ---- C.5 ---- */

static void test_sort_promoted(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 10, 0, 4, 0);
	for (uint64_t seq = 5; seq <= 7; seq++)
		put(w, 20 + (uint32_t)seq, 0, seq, 0);
	/* One, two, three generations up, decided when it was accessed. */
	put(w, 0, 0, 4, 1);
	put(w, 1, 0, 4, 1);
	put(w, 2, 0, 4, 1);
	world_mark(w, 0, 1);
	world_mark(w, 1, 2);
	w->e->ops->walk_young(w->e, root(w), 2, false);
	evict(w, 64);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_seq(w, i), 5 + i);
		assert_int_equal(list_seq(w, i), 5 + i);
		assert_true(at_head(w, i));
	}
	assert_false(world_present(w, 10));
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++)
		assert_int_equal(protected_in(w, TYPE_FILE, tier), 0);
	world_check(w);
	world_free(w);
}

static void test_sort_protected(void **unused)
{
	static const struct {
		const char *policy;
		unsigned int cap;
	} cases[] = {{"fg", 2}, {"fg:cap_bump=0", 0}, {"fg:cap_bump=5", 5}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);

		make_hot(w, TYPE_FILE, 1);
		put(w, 10, 0, 5, 0);
		put(w, 20, 0, 4, 0); /* keeps the oldest generation open */
		for (unsigned int refs = 1; refs <= 7; refs++)
			put(w, refs, 0, 4, refs);
		settle(w, 20, 4);
		assert_int_equal(tier_idx(w), 0);
		evict(w, 7);
		for (unsigned int refs = 2; refs <= 7; refs++) {
			assert_int_equal(world_seq(w, refs), 5);
			assert_int_equal(list_seq(w, refs), 5);
			assert_int_equal(refs_of(w, refs), MIN(refs, cases[i].cap));
		}
		assert_false(world_present(w, 1));
		assert_true(at_head(w, 7));
		assert_true(at_tail(w, 10));
		assert_int_equal(protected_in(w, TYPE_FILE, 0), 0);
		assert_int_equal(protected_in(w, TYPE_FILE, 1), 1);
		assert_int_equal(protected_in(w, TYPE_FILE, 2), 2);
		assert_int_equal(protected_in(w, TYPE_FILE, 3), 3);
		world_check(w);
		world_free(w);
	}
}

/* Full counters do not rescue by themselves: what mainline does at eviction is gone. */
static void test_saturated_is_evicted(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 7);
	evict(w, 64);
	assert_false(world_present(w, 0));
	assert_int_equal(evicted(w, TYPE_FILE, 3), 1);
	world_free(w);
}

static void test_sort_zone(void **unused)
{
	const struct world_options options = {.policy = "fg", .nr_folios = 64, .nr_zones = 2};
	struct world *w = world_new(&options);
	struct scan_control sc;

	(void)unused;
	set_window(w, 7, 4, 4);
	world_add_to(w, 0, 0, 0, 0, 0, 0);
	settle(w, 0, 4);
	world_add_to(w, 2, 0, 0, 1, 0, 0);
	settle(w, 2, 5);
	world_add_to(w, 1, 0, 0, 1, 0, 0);
	world_set_refs(w, 1, 6);
	settle(w, 1, 4);
	world_scan_control(w, &sc);
	sc.reclaim_idx = 0;
	gen_evict(w->e, root(w), &sc, 64, 0);
	assert_false(world_present(w, 0));
	assert_int_equal(list_seq(w, 1), 5);
	assert_int_equal(refs_of(w, 1), 2);
	assert_true(at_tail(w, 1));
	assert_int_equal(protected_in(w, TYPE_FILE, 3), 0);
	world_check(w);
	world_free(w);
}

static void test_forced_aging(void **unused)
{
	struct world *w = world_window("fg:histgens=4", 7, 4);

	(void)unused;
	put(w, 9, 0, 5, 7);
	for (unsigned int refs = 0; refs <= 7; refs++)
		put(w, refs, 0, 4, refs);
	world_age_to(w, 0, 8);
	for (unsigned int refs = 0; refs <= 7; refs++) {
		assert_int_equal(world_seq(w, refs), 5);
		assert_int_equal(refs_of(w, refs), MIN(refs, 2u));
	}
	/* From the tail, each to the tail: the youngest of them ends there. */
	assert_true(at_tail(w, 7));
	assert_true(at_head(w, 9));
	/* Slot 4 mod 4 was cleared by the opening of generation 8: the averages tell. */
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][0], 1);
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][1], 0);
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][2], 1);
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][3], 1);
	world_check(w);
	world_free(w);
}

/* ---- C.6 ---- */

static void test_feedback_edges(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	assert_int_equal(tier_idx(w), 3);
	/* (99 + 1) / (936 + 64) below, twice that in tier 1: not protected; one more: protected. */
	set_tier(w, TYPE_FILE, 0, 99, 936);
	set_tier(w, TYPE_FILE, 1, 200, 1000);
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 1, 201, 1000);
	assert_int_equal(tier_idx(w), 0);
	/* 63 refaults are not enough however few were evicted. */
	set_tier(w, TYPE_FILE, 1, 63, 0);
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 1, 64, 0);
	assert_int_equal(tier_idx(w), 0);
	world_free(w);
}

/* Tier 2 is held against tiers 0 and 1 together, tier 3 against all three. */
static void test_feedback_is_cumulative(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 0, 9, 136);  /* alone: 10 / 200 = 5 % */
	set_tier(w, TYPE_FILE, 1, 80, 800); /* 10 %: just not protected */
	set_tier(w, TYPE_FILE, 2, 180,
		 1000); /* (9 + 80 + 1) / (936 + 64) = 9 %: twice is allowed */
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 2, 181, 1000);
	assert_int_equal(tier_idx(w), 1);
	set_tier(w, TYPE_FILE, 2, 110, 1000);
	set_tier(w, TYPE_FILE, 3, 200, 1000); /* 200 / 2000 below */
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 3, 201, 1000);
	assert_int_equal(tier_idx(w), 2);
	world_free(w);
}

static void test_feedback_gains(void **unused)
{
	struct world *w = world_window("fg:gain_base=2,gain_tier=3", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 0, 99, 936);
	set_tier(w, TYPE_FILE, 1, 150, 1000);
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 1, 151, 1000);
	assert_int_equal(tier_idx(w), 0);
	world_free(w);
}

/* ---- C.4 ---- */

static void test_rmap_decision(void **unused)
{
	static const struct {
		unsigned int refs;
		int ptes;
		bool exec, contended;
		uint32_t flags;
		enum references out;
		unsigned int after;
	} cases[] = {
		{0, 0, false, false, 0, REFERENCES_RECLAIM, 0},
		{7, 0, false, false, 0, REFERENCES_RECLAIM, 7}, /* they had their chance in sort */
		{0, 1, false, false, 0, REFERENCES_KEEP, 1},
		{0, 5, false, false, 0, REFERENCES_KEEP, 1},
		{1, 1, false, false, 0, REFERENCES_ACTIVATE, 2},
		{2, 1, false, false, 0, REFERENCES_ACTIVATE, 3},
		{6, 1, false, false, 0, REFERENCES_ACTIVATE, 3},
		{0, 1, true, false, 0, REFERENCES_ACTIVATE, 1},
		{0, 1, true, false, FOLIAGE_FOLIO_ANON, REFERENCES_KEEP, 1},
		{3, 0, false, true, 0, REFERENCES_KEEP, 3},
	};
	struct world *w = world_window("fg", 7, 4);
	struct scan_control sc;

	(void)unused;
	world_scan_control(w, &sc);
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct referenced ref = {.ptes = cases[i].ptes,
					       .exec = cases[i].exec,
					       .contended = cases[i].contended};

		put(w, i, cases[i].flags, 4, cases[i].refs);
		assert_int_equal(w->e->ops->references(w->e, &sc, (folio_id)i, &ref), cases[i].out);
		assert_int_equal(refs_of(w, i), cases[i].after);
	}
	world_free(w);
}

/* KEEP with refs 1 goes to the second youngest generation, ACTIVATE with refs >= 2 to the
 * youngest; refs stay. */
static void test_rmap_survivors(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	uint32_t mm = world_mm(w, 0);

	(void)unused;
	world_vma(w, mm, 0, 512, 0);
	for (uint32_t i = 0; i < 4; i++) {
		put(w, i, 0, 4, i);
		world_map(w, mm, i, i);
		if (i < 3)
			world_touch(w, mm, i, false);
	}
	/* Page 0's look around finds 1 and 2 young first: keep them apart. */
	world_contend(w, mm, 0, true);
	evict(w, 64);
	assert_int_equal(world_seq(w, 0), 6);
	assert_int_equal(refs_of(w, 0), 1);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(refs_of(w, 1), 2);
	assert_int_equal(world_seq(w, 2), 7);
	assert_int_equal(refs_of(w, 2), 3);
	assert_false(world_present(w, 3));
	world_check(w);
	world_free(w);
}

/* ---- C.7 ---- */

static void test_placement(void **unused)
{
	static const struct {
		uint64_t flags;
		unsigned int refs;
		bool reclaiming;
		int seq; /* with generations 4..7 */
	} rows[] = {
		{F_ACTIVE, 0, false, 6},
		{F_ACTIVE, 1, false, 6},
		{F_ACTIVE, 2, false, 7},
		{F_ACTIVE, 7, false, 7},
		{F_ACTIVE, 2, true, 7},
		{0, 0, true, 4},
		{0, 7, true, 4},
		{F_RECLAIM | F_DIRTY, 0, true, 4},
		{F_ANON | F_SWAPBACKED, 0, false, 6},
		{F_ANON | F_SWAPBACKED, 2, false, 6},
		{F_ANON | F_SWAPBACKED | F_SWAPCACHE, 0, false, 4},
		{F_ANON | F_SWAPBACKED | F_SWAPCACHE, 2, false, 5},
		{F_SWAPBACKED, 0, false, 4}, /* shmem */
		{F_ANON, 0, false, 4},       /* MADV_FREE: a file by type */
		{F_RECLAIM | F_DIRTY, 0, false, 6},
		{F_RECLAIM | F_WRITEBACK, 3, false, 6},
		{F_RECLAIM, 0, false, 4},
		{F_DIRTY, 0, false, 4},
		{0, 0, false, 4},
		{0, 1, false, 4}, /* no lift by R alone */
		{0, 2, false, 5},
		{0, 4, false, 5}, /* R is clear in 2, 4 and 6 */
		{0, 7, false, 5},
	};

	(void)unused;
	for (uint64_t min_seq = 4; min_seq <= 6; min_seq++) {
		struct world *w = world_window("fg", 7, min_seq);

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			uint64_t flags = flags_with_fg_refs(rows[i].flags, rows[i].refs);
			uint64_t seq = w->e->ops->rules->place(gen_knobs(w->e), root(w), &flags,
							       rows[i].reclaiming);

			if (seq != MAX((uint64_t)rows[i].seq, min_seq))
				fail_msg("row %zu with min_seq %llu: %llu", i,
					 (unsigned long long)min_seq, (unsigned long long)seq);
		}
		world_free(w);
	}
}

/* C.9: first insertion, and created "already accessed". No special case for faults. */
static void test_insertion(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	world_add(w, 0, 0);
	world_add(w, 1, FOLIAGE_FOLIO_ACCESSED);
	w->cpu.in_lru_fault = true;
	world_add(w, 2, FOLIAGE_FOLIO_MAPPED);
	world_add(w, 3, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_MAPPED);
	assert_int_equal(world_seq(w, 0), 4);
	assert_int_equal(refs_of(w, 0), 0);
	assert_int_equal(world_seq(w, 1), 4);
	assert_int_equal(refs_of(w, 1), 1);
	assert_int_equal(world_seq(w, 2), 4);
	assert_int_equal(refs_of(w, 2), 0);
	assert_int_equal(world_seq(w, 3), 6);
	assert_true(at_head(w, 2));
	world_free(w);
}

/* The moment of the drain does not matter for one access (C.13). */
static void test_drain_timing(void **unused)
{
	const struct world_options options = {.batch = 31};
	struct world *w = world_new(&options);

	(void)unused;
	set_window(w, 7, 4, 4);
	world_add(w, 0, 0);
	world_mark(w, 0, 1);
	world_drain(w);
	world_add(w, 1, 0);
	world_drain(w);
	world_mark(w, 1, 1);
	assert_int_equal(world_seq(w, 0), world_seq(w, 1));
	assert_int_equal(refs_of(w, 0), refs_of(w, 1));
	world_free(w);
}

/* ---- C.8 ---- */

/* F.4: all refs go into the shadow, at most three come back. */
static void round_trip(bool fault)
{
	static const int64_t seq_read[] = {4, 4, 5, 5, 5, 5, 5, 5},
			     seq_fault[] = {4, 6, 7, 7, 7, 7, 7, 7};
	static const unsigned int tiers[] = {0, 0, 1, 2, 2, 3, 3, 3}, nr_of_tier[] = {2, 1, 2, 3};
	struct world *w = world_window("fg", 7, 4);
	unsigned int refs;

	for (refs = 0; refs <= 7; refs++)
		put(w, refs, 0, 4, refs);
	put(w, 20, 0, 4, 0); /* keeps the oldest generation open */
	evict(w, 8);
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++)
		assert_int_equal(evicted(w, TYPE_FILE, tier), nr_of_tier[tier]);
	for (refs = 0; refs <= 7; refs++) {
		uint64_t shadow = w->pages[refs].shadow;

		assert_int_equal(shadow_time(shadow) >> SHADOW_REFS_BITS, 4);
		assert_int_equal((shadow_time(shadow) & 3) << 1 | shadow_workingset(shadow), refs);
		assert_int_equal(shadow_memcg_id(shadow), w->e->memcgs[0].id);
	}
	w->cpu.in_lru_fault = fault;
	for (refs = 0; refs <= 7; refs++) {
		int64_t before = refaulted(w, TYPE_FILE, tiers[refs]),
			restored = stat_of_root(w, STAT_RESTORE_FILE);
		int64_t activated = stat_of_root(w, STAT_ACTIVATE_FILE);

		world_add(w, refs, 0);
		assert_int_equal(refs_of(w, refs), MIN(refs, 3u));
		assert_int_equal(world_seq(w, refs), fault ? seq_fault[refs] : seq_read[refs]);
		assert_int_equal(refaulted(w, TYPE_FILE, tiers[refs]), before + 1);
		assert_int_equal(stat_of_root(w, STAT_RESTORE_FILE) - restored, refs >= 2);
		assert_int_equal(stat_of_root(w, STAT_ACTIVATE_FILE) - activated,
				 fault && refs >= 1);
	}
	assert_int_equal(stat_of_root(w, STAT_REFAULT_FILE), 8);
	world_check(w);
	world_free(w);
}

static void test_round_trip(void **unused)
{
	(void)unused;
	round_trip(false);
	round_trip(true);
}

static void test_cap_refault(void **unused)
{
	struct world *w = world_window("fg:cap_refault=5", 7, 4);

	(void)unused;
	for (unsigned int refs = 0; refs <= 7; refs++) {
		w->pages[refs].shadow = make_shadow(w, 0, 4, refs);
		world_add(w, refs, 0);
		assert_int_equal(refs_of(w, refs), MIN(refs, 5u));
	}
	world_free(w);
}

/* One more access makes the returned page with one ref a member of the working set. */
static void test_returned_with_one(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	w->pages[0].shadow = make_shadow(w, 0, 4, 1);
	assert_false(world_read(w, 0));
	assert_int_equal(world_seq(w, 0), 5);
	assert_int_equal(refs_of(w, 0), 2);
	world_free(w);
}

/* ---- C.10 ---- */

static uint64_t active(const struct world *w, unsigned int type)
{
	return w->e->ops->active(w->e, root(w), type);
}

static void test_active_by_refs(void **unused)
{
	static const char *const policies[] = {"fg", "fg:activated=3"};

	(void)unused;
	for (unsigned int i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);
		unsigned int threshold = 2 + i;

		put(w, 0, 0, 7, 0);
		for (unsigned int refs = 1; refs <= 4; refs++) {
			world_mark(w, 0, 1);
			assert_int_equal(active(w, TYPE_FILE), refs >= threshold);
		}
		world_add_to(w, 1, 0, 0, 0, 3, 0); /* pages, not folios */
		world_mark(w, 1, threshold);
		assert_int_equal(active(w, TYPE_FILE), 9);
		foliage_folio_clear_refs(w->e, 1);
		assert_int_equal(active(w, TYPE_FILE), 1);
		world_mark(w, 1, threshold);
		foliage_folio_deactivate(w->e, &w->cpu, 1);
		assert_int_equal(active(w, TYPE_FILE), 1);
		world_check(w);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 0), 0);
		assert_int_equal(active(w, TYPE_FILE), 0);
		world_free(w);
	}
}

/* Protection caps at two: above an `activated` of three that is no longer active. */
static void test_active_after_a_cap(void **unused)
{
	struct world *w = world_window("fg:activated=3", 7, 4);

	(void)unused;
	make_hot(w, TYPE_FILE, 1);
	put(w, 0, 0, 4, 5);
	assert_int_equal(active(w, TYPE_FILE), 1);
	evict(w, 64);
	assert_true(world_present(w, 0));
	assert_int_equal(active(w, TYPE_FILE), 0);
	world_check(w);
	world_free(w);
}

/* Generations may go by: what is active under FG stays so. Mainline's numbers jump with each. */
static void test_aging_and_active(void **unused)
{
	struct world *fg = world_window("fg", 7, 4), *mainline = world_window("mglru", 7, 4);

	(void)unused;
	put_range(fg, 0, 10, 7, 2);
	put_range(fg, 10, 20, 7, 0);
	put_range(mainline, 0, 30, 7, 0);
	assert_int_equal(active(mainline, TYPE_FILE), 30);
	for (uint64_t seq = 8; seq <= 12; seq++) {
		world_age_to(fg, 0, seq);
		assert_int_equal(active(fg, TYPE_FILE), 10);
	}
	world_age_to(mainline, 0, 8);
	assert_int_equal(active(mainline, TYPE_FILE), 30);
	world_age_to(mainline, 0, 9);
	assert_int_equal(active(mainline, TYPE_FILE), 0);
	world_free(fg);
	world_free(mainline);
}

/* Without swap nobody moves anon when generations open: the oldest ones alias the youngest, and
 * mainline calls them active. */
static void test_swapless(void **unused)
{
	static const char *const policies[] = {"fg", "mglru"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);
		bool reversed = false;

		for (uint32_t page = 0; page < 10; page++)
			put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
		assert_int_equal(active(w, TYPE_ANON), 0);
		for (uint64_t seq = 7; seq < 11; seq++) {
			assert_true(gen_inc_max_seq(w->e, root(w), seq, 0));
			reversed |= active(w, TYPE_ANON) == 10;
		}
		assert_int_equal(reversed, i == 1);
		world_free(w);
	}
}

/* ---- C.13 ---- */

/* A cold set larger than memory, read once beside a hot set: nothing of it is promoted, and the
 * hot set stays. */
static void test_scan(void **unused)
{
	const uint32_t room = 2000, hot = 400, cold = 3 * room;
	struct world *w = world_window("fg", 3, 0);
	uint32_t inside = 0, kept = 0;

	(void)unused;
	for (uint32_t i = 0; i < hot; i++)
		world_read(w, i);
	for (uint32_t round = 0; round < 12; round++)
		for (uint32_t i = 0; i < hot; i++)
			world_mark(w, i, 1);
	inside = hot;
	for (uint32_t i = 0; i < cold; i++) {
		if (inside >= room)
			inside -= (uint32_t)world_reclaim(w, 0, 32);
		assert_false(world_read(w, hot + i));
		inside++;
		if (i % 8 == 0)
			world_mark(w, i / 8 % hot, 1);
	}
	for (uint32_t i = 0; i < cold; i++)
		if (world_present(w, hot + i)) {
			assert_int_equal(refs_of(w, hot + i), 1);
			assert_true(list_seq(w, hot + i) < (int64_t)gen_max_seq(root(w)));
		}
	for (uint32_t i = 0; i < hot; i++)
		kept += world_present(w, i);
	assert_int_equal(kept, hot);
	/* Every gen move by access was one of the hot set's pages. */
	assert_int_equal(protected_in(w, TYPE_FILE, 0), 0);
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort_promoted),
		cmocka_unit_test(test_sort_protected),
		cmocka_unit_test(test_saturated_is_evicted),
		cmocka_unit_test(test_sort_zone),
		cmocka_unit_test(test_forced_aging),
		cmocka_unit_test(test_feedback_edges),
		cmocka_unit_test(test_feedback_is_cumulative),
		cmocka_unit_test(test_feedback_gains),
		cmocka_unit_test(test_rmap_decision),
		cmocka_unit_test(test_rmap_survivors),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_insertion),
		cmocka_unit_test(test_drain_timing),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cap_refault),
		cmocka_unit_test(test_returned_with_one),
		cmocka_unit_test(test_active_by_refs),
		cmocka_unit_test(test_active_after_a_cap),
		cmocka_unit_test(test_aging_and_active),
		cmocka_unit_test(test_swapless),
		cmocka_unit_test(test_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
