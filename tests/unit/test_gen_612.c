/* SPDX-License-Identifier: MIT
 *
 * The rows of LINUX-6.12.md section 1.1, one by one, also those that a run of plain reads against
 * the booted kernel cannot see.
 */
#include "test_gen_common.h"

/* ---- B.2: what the bits mean ---- */

static void test_ladder(void **unused)
{
	static const uint64_t steps[] = {
		R, R | W, R | W | C(1), R | W | C(2), R | W | C(3), R | W | C(3)};
	static const unsigned int tiers[] = {0, 1, 2, 2, 3, 3};
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		world_mark(w, 0, 1);
		assert_int_equal(refs_bits(w, 0), steps[i]);
		assert_int_equal(w->e->ops->rules->tier(steps[i]), tiers[i]);
		assert_int_equal(w->e->ops->rules->saturated(steps[i]), i >= 4);
		assert_int_equal(world_seq(w, 0), 4);
	}
	/* The first access does not reset C. */
	put(w, 1, 0, 4, 2 | 2 << 2);
	world_mark(w, 1, 1);
	assert_int_equal(refs_bits(w, 1), R | W | C(2));
	world_add(w, 2, FOLIAGE_FOLIO_MLOCKED);
	world_mark(w, 2, 3);
	assert_int_equal(refs_bits(w, 2), 0);
	world_free(w);
}

static void test_walk(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);
	void (*look)(struct foliage_engine *, struct lruvec *, folio_id, bool) =
		w->e->ops->walk_young;

	(void)unused;
	put(w, 0, 0, 4, 15);
	look(w->e, root(w), 0, false);
	assert_int_equal(world_seq(w, 0), 7);
	assert_int_equal(refs_bits(w, 0), 0);
	put(w, 1, 0, 7, 3);
	look(w->e, root(w), 1, true);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(refs_bits(w, 1), 0);
	assert_int_equal(stat_of_root(w, STAT_PROMOTED), 1);
	w->cpu.batch = 31; /* off the lists: only R */
	world_add(w, 2, 0);
	look(w->e, root(w), 2, false);
	assert_int_equal(refs_bits(w, 2), R);
	world_drain(w);
	world_check(w);
	world_free(w);
}

static void test_neighbours(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 0, 0, 5, 15);
	put(w, 1, 0, 7, 15);
	for (folio_id id = 0; id < 2; id++)
		w->e->ops->neighbour_young(w->e, &w->cpu, id, false);
	assert_int_equal(refs_bits(w, 0), 0);
	assert_int_equal(world_seq(w, 0), 5);
	assert_int_equal(refs_bits(w, 1), R | W | C(3)); /* youngest already: nothing */
	assert_int_equal(w->cpu.nr_activate, 1);
	world_drain(w);
	assert_int_equal(world_seq(w, 0), 7);
	world_check(w);
	world_free(w);
}

static void test_references(void **unused)
{
	static const struct {
		uint64_t before;
		int ptes;
		bool exec, contended;
		uint32_t flags;
		enum references out;
		uint64_t after;
	} cases[] = {
		{0, 0, false, false, 0, REFERENCES_RECLAIM, 0},
		{0, 1, false, false, 0, REFERENCES_KEEP, R},
		{0, 2, false, false, 0, REFERENCES_ACTIVATE, R},
		{R, 1, false, false, 0, REFERENCES_ACTIVATE, R},
		{0, 1, true, false, 0, REFERENCES_ACTIVATE, R},
		{0, 1, true, false, FOLIAGE_FOLIO_ANON, REFERENCES_KEEP, R},
		{R, 0, false, false, 0, REFERENCES_RECLAIM_CLEAN, 0},
		{R, 0, false, false, FOLIAGE_FOLIO_ANON, REFERENCES_RECLAIM, 0},
		{R, 0, false, true, 0, REFERENCES_KEEP, R},
	};
	struct world *w = world_window("mglru-6.12", 7, 4);
	struct scan_control sc;

	(void)unused;
	world_scan_control(w, &sc);
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct referenced ref = {.ptes = cases[i].ptes,
					       .exec = cases[i].exec,
					       .contended = cases[i].contended};

		put(w, i, cases[i].flags, 4, (unsigned int)(cases[i].before >> F_REFS_SHIFT));
		assert_int_equal(w->e->ops->references(w->e, &sc, (folio_id)i, &ref), cases[i].out);
		assert_int_equal(refs_bits(w, i), cases[i].after);
	}
	world_free(w);
}

/* One young PTE keeps, and the survivor goes to the youngest generation with nothing on its
 * account. */
static void test_mapped_survivor(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);
	uint32_t mm = world_mm(w, 0);

	(void)unused;
	world_vma(w, mm, 0, 1024, 0);
	put(w, 0, 0, 4, 0);
	world_map(w, mm, 0, 0);
	world_touch(w, mm, 0, false);
	put(w, 1, 0, 4, 0);
	world_map(w, mm, 600, 1);
	evict(w, 64);
	assert_int_equal(world_seq(w, 0), 7);
	assert_int_equal(refs_bits(w, 0), 0);
	assert_false(world_present(w, 1));
	world_check(w);
	world_free(w);
}

/* ---- B.3 ---- */

static void test_placement(void **unused)
{
	static const struct {
		uint64_t flags;
		bool reclaiming;
		int seq[3]; /* min_seq 4, 5, 6 */
	} rows[] = {
		{F_ACTIVE, false, {7, 7, 7}},
		{F_ACTIVE | W, true, {7, 7, 7}},
		{F_ANON | F_SWAPBACKED, false, {6, 6, 6}},
		{F_ANON | F_SWAPBACKED, true, {6, 6, 6}},
		{F_RECLAIM | F_DIRTY, false, {6, 6, 6}},
		{F_RECLAIM | F_WRITEBACK, true, {6, 6, 6}},
		{F_ANON | F_SWAPBACKED | F_SWAPCACHE, false, {5, 5, 6}},
		{0, true, {4, 5, 6}},
		{0, false, {5, 5, 6}},
		{R | W | C(3), false, {5, 5, 6}}, /* counts for nothing */
		{F_RECLAIM, false, {5, 5, 6}},
	};

	(void)unused;
	for (uint64_t min_seq = 4; min_seq <= 6; min_seq++) {
		struct world *w = world_window("mglru-6.12", 7, min_seq);

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			uint64_t flags = rows[i].flags | R | W | C(2);
			uint64_t seq = w->e->ops->rules->place(gen_knobs(w->e), root(w), &flags,
							       rows[i].reclaiming);

			if (seq != (uint64_t)rows[i].seq[min_seq - 4])
				fail_msg("row %zu with min_seq %llu: %llu", i,
					 (unsigned long long)min_seq, (unsigned long long)seq);
			/* PG_active forgets R and C, keeps W. */
			assert_int_equal(flags & F_REFS_MASK,
					 rows[i].flags & F_ACTIVE
						 ? W
						 : (rows[i].flags & F_REFS_MASK) | R | W | C(2));
		}
		world_free(w);
	}
}

/* The moment of the drain does not matter. */
static void test_drain_timing(void **unused)
{
	for (uint64_t min_seq = 4; min_seq <= 5; min_seq++) {
		struct world *w = world_window("mglru-6.12", 7, min_seq);

		w->cpu.batch = 31;
		world_add(w, 0, 0);
		world_mark(w, 0, 3);
		world_drain(w);
		world_add(w, 1, 0);
		world_drain(w);
		world_mark(w, 1, 3);
		assert_int_equal(world_seq(w, 0), 5);
		assert_int_equal(world_seq(w, 1), 5);
		assert_int_equal(refs_bits(w, 0), refs_bits(w, 1));
		world_free(w);
	}
	(void)unused;
}

static void test_fault_add(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	w->cpu.in_lru_fault = true;
	world_add(w, 0, 0);
	world_add(w, 1, FOLIAGE_FOLIO_ANON);
	w->cpu.in_reclaim = true;
	world_add(w, 2, 0);
	assert_int_equal(world_seq(w, 0), 7);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(world_seq(w, 2), 5);
	world_free(w);
}

/* ---- B.4 ---- */

/* Protected and saturated folios: everything forgotten, to the tail, counted in the column below;
 * tier 0 never. */
static void test_sort(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 2, 1000, 1000); /* protects refs 2 and 3 (tier 2) and above */
	put(w, 10, 0, 5, 0);
	put(w, 0, 0, 4, 3 | 1 << 2); /* refs 2 */
	put(w, 1, 0, 4, 3 | 3 << 2); /* refs 4: saturated */
	put(w, 2, 0, 4, 3);          /* refs 1 */
	evict(w, 64);
	for (uint32_t page = 0; page < 2; page++) {
		assert_int_equal(world_seq(w, page), 5);
		assert_int_equal(refs_bits(w, page), 0);
	}
	assert_true(at_head(w, 10));
	assert_true(at_tail(w, 1));
	assert_false(world_present(w, 2));
	/* The batch closed generation 4: what it protected is in the averages. */
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][2], (1000 + 1) / 2);
	assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][3], 0);
	world_check(w);
	world_free(w);
	w = world_window("mglru-6.12", 7, 4);
	for (uint32_t page = 0; page < 4; page++)
		put(w, page, 0, 4, 15);
	put_range(w, 10, 100, 4, 0);
	evict(w, 64);
	assert_int_equal(protected_in(w, TYPE_FILE, 3), 4); /* saturated ones are counted too */
	assert_int_equal(protected_in(w, TYPE_FILE, 0), 0);
	world_free(w);
}

static void test_isolation(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);
	uint64_t (*isolate)(uint64_t) = w->e->ops->rules->isolate;

	(void)unused;
	assert_int_equal(isolate(W | C(3)), 0);
	assert_int_equal(isolate(R | W | C(3)), W | C(3));
	assert_int_equal(isolate(R), 0);
	world_free(w);
}

/* Up to 4096 folios are examined whatever the budget; a pass that only sorted reports 0. */
static void test_scan_limit(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put_range(w, 0, 4095, 4, 15);
	put_range(w, 5000, 100, 4, 0);
	put(w, 9000, FOLIAGE_FOLIO_ANON, 4, 0);
	assert_int_equal(evict(w, 1), 4096); /* one isolated, the limit reached */
	assert_int_equal(w->nr_evicted, 1);
	assert_int_equal(evict(w, 1), 64);
	assert_int_equal(w->nr_evicted, 65);
	world_free(w);
	w = world_window("mglru-6.12", 7, 4);
	put_range(w, 0, 100, 4, 15);
	put(w, 9000, FOLIAGE_FOLIO_ANON, 4, 0);
	assert_int_equal(evict(w, 1), 1); /* 0, and 1 for the generation that closed */
	assert_int_equal(stat_of_root(w, STAT_PROTECTED), 100);
	world_free(w);
}

/* The deciding type down to two generations: 0, although the batch is freed. */
static void test_scanned_nothing(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 5);

	(void)unused;
	put_range(w, 0, 10, 5, 0);
	assert_int_equal(evict(w, 64), 0);
	assert_int_equal(w->nr_evicted, 10);
	assert_int_equal(gen_min_seq(root(w), TYPE_FILE), 6);
	world_free(w);
}

static void test_survivors(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_LOCKED, 4, 3);
	put(w, 1, 0, 4, 2);
	folio_change(w->e, folio_at(w->e, 1), 0, UINT64_C(1) << F_PINS_SHIFT);
	put(w, 2, FOLIAGE_FOLIO_DIRTY, 4, 0);
	put(w, 3, FOLIAGE_FOLIO_DIRTY, 4, 3 | 1 << 2);
	evict(w, 64);
	/* Kept, pinned: the youngest generation, all forgotten. */
	assert_int_equal(world_seq(w, 0), 7);
	assert_int_equal(refs_bits(w, 0), 0);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(refs_bits(w, 1), 0);
	/* Dirty: reclaim waits for it; activated by A.6 all the same. W gets R back, which
	 * PG_active then forgets. */
	assert_true(world_flags(w, 2) & F_RECLAIM);
	assert_int_equal(world_seq(w, 2), 7);
	assert_int_equal(world_seq(w, 3), 7);
	assert_int_equal(refs_bits(w, 3), W);
	world_check(w);
	world_free(w);
}

/* ---- B.6 ---- */

static void test_type_choice(void **unused)
{
	static const struct {
		int swappiness;
		uint64_t min_anon, min_file;
		int64_t anon_refaults[2], file_refaults; /* anon: of tiers 0 and 1 */
		bool no_io, anon;
	} cases[] = {
		{60, 4, 4, {0, 0}, 100, false, true}, /* file refaults more */
		{60, 4, 4, {99, 0}, 100, false, false},
		{60, 4, 4, {0, 9999}, 100, false, true}, /* tier 0 alone decides */
		{60, 4, 4, {0, 0}, 100, true, false},    /* no I/O: file */
		{0, 4, 5, {0, 0}, 1000, false, false},
		{1, 4, 4, {0, 0}, 1000, false, false},
		{2, 4, 4, {0, 0}, 1000, false, true},
		{1, 4, 5, {0, 0}, 100, false, true}, /* anon lags behind */
		{199, 4, 4, {999, 0}, 63, false, false},
		{200, 4, 4, {999, 0}, 63, false, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru-6.12", 7, 4);
		struct scan_control sc;

		set_window(w, 7, cases[i].min_anon, cases[i].min_file);
		for (uint32_t page = 0; page < 100; page++) {
			put(w, page, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE,
			    cases[i].min_anon, 0);
			put(w, 200 + page, 0, cases[i].min_file, 0);
		}
		set_tier(w, TYPE_ANON, 0, cases[i].anon_refaults[0], 936);
		set_tier(w, TYPE_ANON, 1, cases[i].anon_refaults[1], 936);
		set_tier(w, TYPE_FILE, 0, cases[i].file_refaults, 1000);
		world_scan_control(w, &sc);
		sc.gfp_io = !cases[i].no_io;
		gen_evict(w->e, root(w), &sc, 1, cases[i].swappiness);
		if ((stat_of_root(w, STAT_PGSCAN_ANON) > 0) != cases[i].anon ||
		    (stat_of_root(w, STAT_PGSCAN_FILE) > 0) == cases[i].anon)
			fail_msg("case %zu", i);
		world_free(w);
	}
}

/* The tiers of the chosen type are held against the other type's tier 0, by swappiness. */
static void test_tier_by_the_other_type(void **unused)
{
	for (int over = 0; over < 2; over++) {
		struct world *w = world_window("mglru-6.12", 7, 4);
		struct scan_control sc;

		for (uint32_t page = 0; page < 10; page++)
			put(w, page, 0, 4, 3); /* tier 1 */
		put_range(w, 100, 10, 4, 0);
		put(w, 500, FOLIAGE_FOLIO_ANON, 4, 0);
		set_tier(w, TYPE_ANON, 0, 99, 936);
		set_tier(w, TYPE_FILE, 1, 300 + over,
			 1000); /* ref * 1000 * 50 <= 100 * 1000 * 150 */
		world_scan_control(w, &sc);
		gen_evict(w->e, root(w), &sc, 1, 50);
		for (uint32_t page = 0; page < 10; page++)
			assert_int_equal(world_present(w, page), over);
		world_free(w);
	}
	(void)unused;
}

/* ---- B.7 ---- */

/* Shadows of refs 0..4, and what comes back: three and more return saturated, the others with
 * nothing. */
static void test_round_trip(void **unused)
{
	static const struct {
		uint64_t flags;
		unsigned int refs, tier;
	} rows[] = {
		{W | C(3), 0, 0}, /* R clear: isolation forgets */
		{R, 0, 0},        {R | W, 1, 1}, {R | W | C(1), 2, 2}, {R | W | C(2), 3, 2},
	};

	(void)unused;
	for (int fault = 0; fault < 2; fault++) {
		struct world *w = world_window("mglru-6.12", 7, 4);

		put(w, 90, FOLIAGE_FOLIO_ANON, 4, 0);
		for (uint32_t i = 1; i < ARRAY_SIZE(rows); i++)
			put(w, i, 0, 4, (unsigned int)(rows[i].flags >> F_REFS_SHIFT));
		put_range(w, 100, 100, 4, 0);
		evict(w, 64);
		w->cpu.in_lru_fault = fault;
		w->cpu.batch = 31;
		for (uint32_t i = 1; i < ARRAY_SIZE(rows); i++) {
			uint64_t shadow = w->pages[i].shadow;
			int64_t before = refaulted(w, TYPE_FILE, rows[i].tier);
			bool restored = fault || rows[i].refs >= 3;
			int64_t restores = stat_of_root(w, STAT_RESTORE_FILE);

			assert_int_equal(shadow_time(shadow),
					 4 << 2 | (rows[i].refs ? rows[i].refs - 1 : 0));
			assert_int_equal(shadow_workingset(shadow), rows[i].refs > 0);
			world_add(w, i, 0);
			assert_int_equal(refaulted(w, TYPE_FILE, rows[i].tier), before + 1);
			assert_int_equal(refs_bits(w, i), restored ? (W | C(3)) : 0);
			assert_int_equal(stat_of_root(w, STAT_RESTORE_FILE) - restores, restored);
			assert_int_equal(stat_of_root(w, STAT_ACTIVATE_FILE), i);
			assert_int_equal(w->e->ops->rules->saturated(world_flags(w, i)), restored);
		}
		world_drain(w);
		world_free(w);
	}
	{
		struct world *w = world_window("mglru-6.12", 7, 4);

		assert_int_equal(w->e->ops->rules->tier(rows[0].flags), 3);
		assert_int_equal(w->e->ops->rules->token(w->e->ops->rules->isolate(rows[0].flags)),
				 0);
		world_free(w);
	}
}

/* Recent is the oldest generation of now, exactly. */
static void test_recency(void **unused)
{
	static const struct {
		uint64_t seq;
		bool recent;
	} cases[] = {{5, true}, {4, false}, {6, false}, {7, false}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru-6.12", 7, 5);

		w->pages[0].shadow = make_shadow(w, 0, cases[i].seq, 7);
		world_add(w, 0, 0);
		assert_int_equal(stat_of_root(w, STAT_REFAULT_FILE), 1);
		assert_int_equal(refaulted(w, TYPE_FILE, 3), cases[i].recent);
		assert_int_equal(refs_bits(w, 0), cases[i].recent ? (W | C(3)) : 0);
		world_free(w);
	}
}

/* ---- B.8, B.11 ---- */

/* Forced aging counts nothing, forgets everything, and moves to the tail. */
static void test_forced_aging(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 10, 0, 5, 0);
	put(w, 0, 0, 4, 15);
	put(w, 1, 0, 4, 3);
	gen_raise_oldest(w->e, root(w), TYPE_FILE);
	for (uint32_t page = 0; page < 2; page++) {
		assert_int_equal(world_seq(w, page), 5);
		assert_int_equal(refs_bits(w, page), 0);
	}
	assert_true(at_head(w, 10));
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++)
		assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][tier], 0);
	world_check(w);
	world_free(w);
}

/* min_seq[anon] <= min_seq[file], and an advance by two carries over once. */
static void test_reach(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_ANON, 6, 0);
	put(w, 1, 0, 5, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 60));
	assert_int_equal(gen_min_seq(root(w), TYPE_ANON), 5);
	assert_int_equal(gen_min_seq(root(w), TYPE_FILE), 5);
	world_free(w);
	w = world_window("mglru-6.12", 7, 4);
	set_tier(w, TYPE_FILE, 1, 100, 0);
	put(w, 1, 0, 6, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 0));
	assert_int_equal(gen_min_seq(root(w), TYPE_FILE), 6);
	assert_int_equal(root(w)->gen.avg_refaulted[TYPE_FILE][1], 50);
	world_free(w);
}

static void test_budget(void **unused)
{
	/* pages of generations max - 3 .. max; what one pass frees at a priority, and whether it
	 * ages */
	static const struct {
		uint64_t min_seq;
		uint32_t nr[4];
		int priority;
		int64_t freed;
		bool ages;
	} cases[] = {
		{4, {4096, 0, 0, 0}, 12, 64, false}, /* 1 page: one batch of 64 all the same */
		{5, {0, 4096, 0, 0}, 11, 64, false},
		{5, {0, 2000, 0, 2096}, 11, 0, true},    /* the young are more than half */
		{5, {0, 2000, 0, 2096}, 12, 64, false},  /* but not at priority 12 */
		{5, {0, 2048, 0, 2048}, 11, 64, false},  /* exactly half */
		{5, {0, 1023, 2050, 1023}, 11, 0, true}, /* the old are less than a quarter */
		{5, {0, 1024, 2048, 1024}, 11, 64, false},
		{4, {100, 0, 0, 4000}, 11, 64, false}, /* four generations: never */
		{6, {0, 0, 4096, 0}, 12, 0, false},    /* two: budget 0 at priority 12 */
		{6, {0, 0, 4096, 0}, 11, 0, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru-6.12", 7, cases[i].min_seq);
		struct scan_control sc;
		bool rotate;

		for (uint32_t gen = 0; gen < 4; gen++)
			put_range(w, gen * 4096, cases[i].nr[gen], 4 + gen, 0);
		world_scan_control(w, &sc);
		sc.swappiness = 0;
		sc.priority = cases[i].priority;
		rotate = gen_shrink_lruvec(w->e, root(w), &sc);
		if (sc.nr_reclaimed != cases[i].freed ||
		    (gen_max_seq(root(w)) == 8) != cases[i].ages)
			fail_msg("case %zu: %lld freed, max_seq %llu", i,
				 (long long)sc.nr_reclaimed,
				 (unsigned long long)gen_max_seq(root(w)));
		assert_int_equal(rotate, cases[i].ages);
		world_check(w);
		world_free(w);
	}
}

/* ---- B.14 ---- */

static void test_deactivate(void **unused)
{
	struct world *w = world_window("mglru-6.12", 7, 4);

	(void)unused;
	put(w, 0, 0, 7, 15);
	put(w, 1, 0, 4, 15);
	foliage_folio_deactivate(w->e, &w->cpu, 0);
	foliage_folio_deactivate(w->e, &w->cpu, 1);
	for (uint32_t page = 0; page < 2; page++) {
		assert_int_equal(world_seq(w, page), 5); /* B.3, also from the oldest */
		assert_int_equal(refs_bits(w, page), W | C(3));
	}
	assert_true(at_head(w, 1));
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ladder),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_mapped_survivor),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_drain_timing),
		cmocka_unit_test(test_fault_add),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_isolation),
		cmocka_unit_test(test_scan_limit),
		cmocka_unit_test(test_scanned_nothing),
		cmocka_unit_test(test_survivors),
		cmocka_unit_test(test_type_choice),
		cmocka_unit_test(test_tier_by_the_other_type),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_recency),
		cmocka_unit_test(test_forced_aging),
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_deactivate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
