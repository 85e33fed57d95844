/* SPDX-License-Identifier: MIT
 *
 * Eviction of the multi-gen family: scan, sort, isolate and survivors (B.4), what happens to
 * dirty, mapped, pinned and large folios (A.6), and the loop of one lruvec with its budget (B.11).
 */
#include "test_gen_common.h"

static struct scan_control control(struct world *w)
{
	struct scan_control sc;

	world_scan_control(w, &sc);
	return sc;
}

/* ---- scan ---- */

static void test_scan_limits(void **unused)
{
	static const struct {
		uint32_t pages;
		int64_t nr, freed;
	} cases[] = {{200, 64, 64}, {200, 10, 10}, {200, 100, 64}, {20, 64, 20}, {0, 64, 0}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);

		put_range(w, 0, cases[i].pages, 4, 0);
		put(w, 1000, 0, 5, 0);
		put(w, 1001, FOLIAGE_FOLIO_ANON, 4, 0);
		assert_int_equal(evict(w, cases[i].nr), cases[i].pages ? cases[i].freed : 1);
		assert_int_equal(w->nr_evicted, cases[i].pages ? cases[i].freed : 1);
		/* From the tail. */
		for (uint32_t page = 0; page < cases[i].freed; page++)
			assert_int_equal(w->pages[page].eviction_nr, page + 1);
		world_check(w);
		world_free(w);
	}
}

/* The batch that empties the oldest generation closes it as well; the shadows name the next one. */
static void test_closes_behind(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put_range(w, 0, 10, 4, 0);
	put(w, 10, 0, 5, 0);
	evict(w, 9);
	assert_int_equal(gen_min_seq(root(w), TYPE_FILE), 4);
	assert_int_equal(shadow_time(w->pages[0].shadow) >> SHADOW_REFS_BITS, 4);
	evict(w, 64);
	assert_int_equal(gen_min_seq(root(w), TYPE_FILE), 5);
	assert_int_equal(shadow_time(w->pages[9].shadow) >> SHADOW_REFS_BITS, 5);
	assert_true(world_present(w, 10));
	world_free(w);
}

static void test_two_generations(void **unused)
{
	static const char *const policies[] = {"mglru", "fg", "mglru-6.12"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 6);

		put_range(w, 0, 100, 6, 0);
		assert_int_equal(evict(w, 64), 0);
		assert_int_equal(w->nr_evicted, 0);
		world_free(w);
	}
}

static void test_smaller_batch(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	put_range(w, 0, 100, 4, 0);
	sc.batch = 5;
	assert_int_equal(gen_evict(w->e, root(w), &sc, 64, 0), 5);
	assert_int_equal(w->nr_evicted, 5);
	world_free(w);
}

/* Examined folios count although they were only sorted; where nothing was isolated the type gets a
 * second round. */
static void test_sorted_count(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	put_range(w, 0, 100, 4, 15);
	assert_int_equal(gen_evict(w->e, root(w), &sc, 30, 0),
			 30); /* one evictable type: one round */
	assert_int_equal(w->nr_evicted, 0);
	assert_int_equal(gen_evict(w->e, root(w), &sc, 30, 60), 60);
	assert_int_equal(w->nr_evicted, 0);
	assert_int_equal(stat_of_root(w, STAT_PROTECTED), 90);
	assert_int_equal(stat_of_root(w, STAT_PGREFILL), 90);
	world_check(w);
	world_free(w);
}

/* The other type is tried when the first has nothing to scan. */
static void test_other_type(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	set_window(w, 7, 4, 6);
	put_range(w, 0, 10, 6, 0);
	put(w, 100, FOLIAGE_FOLIO_ANON, 4, 0);
	w->pageout = FOLIAGE_PAGEOUT_CLEAN;
	assert_int_equal(gen_evict(w->e, root(w), &sc, 64, 60), 1);
	assert_false(world_present(w, 100));
	assert_int_equal(stat_of_root(w, STAT_PGSTEAL_ANON), 1);
	world_free(w);
}

/* ---- sort ---- */

/* F.5: a saturated folio goes up one generation when eviction meets it, keeps W, and is not
 * counted as protected. */
static void test_sort_saturated(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put(w, 10, 0, 5, 0);
	put(w, 0, 0, 4, 0);
	world_mark(w, 0, 5);
	put(w, 1, 0, 4, 0);
	world_mark(w, 1, 4);
	put(w, 2, 0, 4, 0);
	evict(w, 2);
	assert_int_equal(world_seq(w, 0), 5);
	assert_int_equal(list_seq(w, 0), 5);
	assert_true(at_head(w, 0));
	assert_int_equal(refs_bits(w, 0), W);
	assert_false(world_present(w, 1));
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++)
		assert_int_equal(protected_in(w, TYPE_FILE, tier), 0);
	world_check(w);
	world_free(w);
}

static void test_sort_protected(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 2, 1000, 1000);
	put(w, 10, 0, 5, 0);
	put(w, 0, 0, 4, 1 | 2 << 2); /* refs 3 */
	put(w, 1, 0, 4, 2);          /* W: tier 3 */
	put(w, 2, 0, 4, 1 | 1 << 2); /* refs 2: tier 1 */
	put(w, 3, 0, 4, 15);         /* saturated */
	put(w, 4, 0, 4, 0);
	evict(w, 4);
	assert_int_equal(world_seq(w, 0), 5);
	assert_int_equal(refs_bits(w, 0), 0);
	assert_int_equal(world_seq(w, 1), 5);
	assert_int_equal(refs_bits(w, 1), W);
	assert_false(world_present(w, 2));
	assert_true(at_head(w, 3));
	assert_true(at_tail(w, 10));
	assert_int_equal(protected_in(w, TYPE_FILE, 1), 0);
	assert_int_equal(protected_in(w, TYPE_FILE, 2), 1);
	assert_int_equal(protected_in(w, TYPE_FILE, 3), 1);
	world_check(w);
	world_free(w);
}

static void test_sort_lazy(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put(w, 10, 0, 7, 0);
	put(w, 0, 0, 4, 1);
	put(w, 1, 0, 4, 0);
	w->e->ops->walk_young(w->e, root(w), 0, false);
	assert_int_equal(list_seq(w, 0), 4);
	evict(w, 1);
	assert_int_equal(list_seq(w, 0), 7);
	assert_true(at_head(w, 0));
	world_check(w);
	world_free(w);
}

static void test_sort_zone(void **unused)
{
	const struct world_options options = {.policy = "mglru", .nr_folios = 64, .nr_zones = 3};
	struct world *w = world_new(&options);
	struct scan_control sc = control(w);

	(void)unused;
	set_window(w, 7, 4, 4);
	for (uint32_t zone = 0; zone < 3; zone++) {
		world_add_to(w, zone, 0, 0, zone, 0, 0);
		settle(w, zone, 4);
		world_set_refs(w, zone, 3);
		world_add_to(w, 10 + zone, 0, 0, zone, 0, 0);
		settle(w, 10 + zone, 5);
	}
	sc.reclaim_idx = 1;
	gen_evict(w->e, root(w), &sc, 64, 0);
	assert_false(world_present(w, 0));
	assert_false(world_present(w, 1));
	assert_int_equal(list_seq(w, 2), 5);
	assert_true(at_tail(w, 2));
	assert_int_equal(refs_bits(w, 2), W);
	/* From the highest usable zone down, then round. */
	assert_true(w->pages[1].eviction_nr < w->pages[0].eviction_nr);
	world_check(w);
	world_free(w);
}

/* Found unevictable: let through, and put where it belongs. */
static void test_unevictable(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 15);
	folio_change(w->e, folio_at(w->e, 0), 0, F_MLOCKED);
	evict(w, 64);
	assert_int_equal(world_list(w, 0), LIST_UNEVICTABLE);
	assert_int_equal(world_seq(w, 0), -1);
	assert_int_equal(w->nr_evicted, 0);
	world_check(w);
	world_free(w);
}

/* ---- isolation ---- */

/* Without I/O, anon outside the swap cache stays, at the head, and dirty anon too. */
static void test_no_io(void **unused)
{
	static const struct {
		uint32_t flags;
		bool freed;
	} cases[] = {
		{FOLIAGE_FOLIO_ANON, false},
		{FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE, true},
		{FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE | FOLIAGE_FOLIO_DIRTY, false},
		{FOLIAGE_FOLIO_SHMEM, true},
		{FOLIAGE_FOLIO_SHMEM | FOLIAGE_FOLIO_DIRTY, false},
		{0, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc = control(w);

		sc.gfp_io = false;
		put(w, 0, cases[i].flags, 4, 0);
		put(w, 1, cases[i].flags, 4, 0);
		gen_evict(w->e, root(w), &sc, 1, cases[i].flags ? 201 : 0);
		if (world_present(w, 0) == cases[i].freed)
			fail_msg("case %zu", i);
		assert_true(world_present(w, 1));
		if (!cases[i].freed)
			assert_true(at_head(w, 0));
		assert_int_equal(w->nr_pageouts, 0);
		world_check(w);
		world_free(w);
	}
}

/* Folios that cannot be isolated fill a batch as those do that can. */
static void test_batch_of_skipped(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	for (uint32_t page = 0; page < 20; page++)
		put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
	sc.gfp_io = false;
	sc.batch = 5;
	assert_int_equal(gen_evict(w->e, root(w), &sc, 64, 201), 5);
	assert_int_equal(w->nr_evicted, 0);
	assert_true(at_tail(w, 5));
	world_check(w);
	world_free(w);
}

/* ---- survivors ---- */

static void test_survivors(void **unused)
{
	static const struct {
		const char *policy;
		uint64_t min_seq;
		unsigned int refs;
		uint64_t seq, after;
	} cases[] = {
		/* would be placed oldest: PG_active instead, R and C forgotten */
		{"mglru", 4, 0, 6, 0},
		{"mglru", 4, 1, 5, R}, /* R lifts it anyway */
		{"mglru", 4, 2, 5, W},
		{"mglru", 5, 1, 6, 0}, /* three generations: second oldest of four is the oldest */
		{"mglru", 5, 2, 7, W},
		{"mglru-revert", 4, 1, 6, 0},
		{"mglru-quickfix", 4, 0, 5, 0},
		{"mglru-quickfix", 5, 0, 5, 0}, /* the hazard: still oldest */
		{"fg", 4, 0, 6, 0},
		{"fg", 4, 1, 6, R}, /* refs are kept */
		{"fg", 4, 2, 5, W},
		{"fg", 5, 3, 7, R | W},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, cases[i].min_seq);

		put(w, 1, 0, cases[i].min_seq, 0);
		put(w, 0, FOLIAGE_FOLIO_LOCKED, cases[i].min_seq, cases[i].refs);
		put(w, 2, 0, cases[i].min_seq, 0);
		evict(w, 2);
		if (world_seq(w, 0) != (int64_t)cases[i].seq || refs_bits(w, 0) != cases[i].after)
			fail_msg("case %zu: seq %lld, refs %#llx", i, (long long)world_seq(w, 0),
				 (unsigned long long)refs_bits(w, 0));
		assert_int_equal(world_flags(w, 0) & (F_ACTIVE | F_ISOLATED), 0);
		world_check(w);
		world_free(w);
	}
}

static void test_held(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	uint32_t mm = world_mm(w, 0);

	(void)unused;
	world_vma(w, mm, 0, 64, 0);
	world_vma(w, mm, 64, 64, FOLIAGE_VMA_LOCKED);
	put(w, 0, 0, 4, 0);
	folio_change(w->e, folio_at(w->e, 0), 0, UINT64_C(1) << F_PINS_SHIFT);
	put(w, 1, 0, 4, 0);
	world_map(w, mm, 1, 1);
	w->pages[1].no_unmap = true;
	put(w, 2, 0, 4, 0);
	world_map(w, mm, 64, 2);
	put(w, 3, 0, 4, 0);
	world_map(w, mm, 3, 3);
	put(w, 4, 0, 4, 0);
	world_map(w, mm, 4, 4);
	w->pages[4].rmap_busy = true;
	put(w, 50, 0, 4, 0); /* keeps the oldest generation open */
	evict(w, 5);
	assert_int_equal(world_seq(w, 0), 6);                 /* pinned: activated */
	assert_int_equal(world_seq(w, 1), 6);                 /* cannot be unmapped: activated */
	assert_int_equal(world_list(w, 2), LIST_UNEVICTABLE); /* a locked mapping */
	assert_false(world_present(w, 3));                    /* unmapped and gone */
	assert_false(world_mapped(w, mm, 3));
	assert_int_equal(world_seq(w, 4), 6); /* kept */
	assert_int_equal(stat_of_root(w, STAT_PGACTIVATE), 2);
	assert_int_equal(evicted(w, TYPE_FILE, 0), 1); /* the feedback heard of page 3 alone */
	world_check(w);
	world_free(w);
}

static void test_no_unmap(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);
	uint32_t mm = world_mm(w, 0);

	(void)unused;
	world_vma(w, mm, 0, 64, 0);
	put(w, 0, 0, 4, 0);
	world_map(w, mm, 0, 0);
	sc.may_unmap = false;
	gen_evict(w->e, root(w), &sc, 64, 0);
	assert_true(world_mapped(w, mm, 0));
	assert_true(world_present(w, 0));
	assert_int_equal(w->nr_unmaps, 0);
	world_free(w);
}

/* ---- dirty, write-back, rotation ---- */

static void test_dirty_file(void **unused)
{
	static const char *const policies[] = {"mglru", "fg"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);

		put(w, 10, 0, 6, 0);
		put_range(w, 20, 2, 4, 0);
		put(w, 0, FOLIAGE_FOLIO_DIRTY, 4, 0);
		settle(w, 20, 4);
		settle(w, 21, 4);
		evict(w, 1);
		/* Never written here: it waits in the second youngest generation. */
		assert_int_equal(w->nr_pageouts, 0);
		assert_int_equal(world_seq(w, 0), 6);
		assert_true(world_flags(w, 0) & F_RECLAIM);
		foliage_folio_start_writeback(w->e, 0);
		assert_false(world_flags(w, 0) & F_DIRTY);
		/* Written: to the very tail, whatever its refs, and the next to go. */
		world_set_refs(w, 0, 3);
		foliage_folio_end_writeback(w->e, &w->cpu, 0);
		assert_int_equal(world_seq(w, 0), 4);
		assert_true(at_tail(w, 0));
		assert_int_equal(world_flags(w, 0) & (F_RECLAIM | F_WRITEBACK), 0);
		assert_int_equal(refs_bits(w, 0), R | W);
		world_check(w);
		evict(w, 1);
		assert_false(world_present(w, 0));
		world_free(w);
	}
}

/* Written without anybody waiting: nothing moves. */
static void test_end_of_writeback(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_DIRTY, 6, 0);
	foliage_folio_start_writeback(w->e, 0);
	foliage_folio_end_writeback(w->e, &w->cpu, 0);
	assert_int_equal(world_seq(w, 0), 6);
	world_free(w);
}

static void test_under_writeback(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_DIRTY, 4, 0);
	foliage_folio_start_writeback(w->e, 0);
	evict(w, 64);
	assert_true(world_flags(w, 0) & F_RECLAIM);
	assert_int_equal(world_seq(w, 0), 6);
	world_free(w);
}

/* All of a batch was dirty and nobody writes: the flusher is woken. One clean page, and it is not. */
static void test_flusher(void **unused)
{
	for (uint32_t clean = 0; clean < 2; clean++) {
		struct world *w = world_window("mglru", 7, 4);

		for (uint32_t i = 0; i < 4096; i++)
			put(w, i, i || !clean ? FOLIAGE_FOLIO_DIRTY : 0, 4, 0);
		/* At priority 12 one page is looked at. */
		world_reclaim(w, 0, 1);
		assert_int_equal(w->nr_flusher > 0, !clean);
		world_free(w);
	}
	(void)unused;
}

/* Batches are judged one by one: what another one of the pass freed does not put the flusher off. */
static void test_flusher_of_a_batch(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	for (uint32_t i = 0; i < 4096; i++)
		put(w, i, i >= 64 && i < 128 ? FOLIAGE_FOLIO_DIRTY : 0, 4, 0);
	/* 64 clean ones leave, 64 dirty ones stay. */
	evict(w, 64);
	assert_int_equal(w->nr_flusher, 0);
	evict(w, 64);
	assert_int_equal(w->nr_flusher, 1);
	world_free(w);
}

static void test_anon(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_ANON, 4, 0);
	put(w, 50, FOLIAGE_FOLIO_ANON, 4, 0); /* keeps the oldest generation open */
	gen_evict(w->e, root(w), &sc, 1, 201);
	assert_int_equal(w->nr_pageouts, 1);
	assert_true(world_present(w, 0));
	assert_int_equal(world_flags(w, 0) & (F_RECLAIM | F_WRITEBACK | F_SWAPCACHE | F_DIRTY),
			 F_RECLAIM | F_WRITEBACK | F_SWAPCACHE);
	assert_int_equal(world_seq(w, 0), 6);
	foliage_folio_end_writeback(w->e, &w->cpu, 0);
	assert_int_equal(world_seq(w, 0), 4);
	gen_evict(w->e, root(w), &sc, 1, 201);
	assert_false(world_present(w, 0));
	assert_int_equal(w->nr_pageouts, 1); /* clean now */
	/* A synchronous device frees it at once; without a slot it is activated. */
	w->pageout = FOLIAGE_PAGEOUT_CLEAN;
	put(w, 1, FOLIAGE_FOLIO_ANON, 4, 0);
	settle(w, 50, 4);
	gen_evict(w->e, root(w), &sc, 1, 201);
	assert_false(world_present(w, 1));
	w->swap_free = 0;
	put(w, 2, FOLIAGE_FOLIO_ANON, 4, 0);
	settle(w, 50, 4);
	gen_evict(w->e, root(w), &sc, 1, 201);
	assert_int_equal(world_seq(w, 2), 6);
	assert_false(world_flags(w, 2) & F_SWAPCACHE);
	/* A device that will not have it for long: activated, and with two refs the youngest. */
	w->swap_free = 100;
	w->pageout = FOLIAGE_PAGEOUT_ACTIVATE;
	put(w, 3, FOLIAGE_FOLIO_ANON, 4, 2);
	settle(w, 50, 4);
	gen_evict(w->e, root(w), &sc, 1, 201);
	assert_int_equal(world_seq(w, 3), 7);
	world_check(w);
	world_free(w);
}

/* ---- large folios ---- */

static void test_large(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	for (uint32_t i = 0; i < 10; i++) {
		world_add_to(w, i, 0, 0, 0, 4, 0);
		settle(w, i, 4);
	}
	assert_int_equal(counter_read(&root(w)->gen.nr_pages[gen_of(4)][TYPE_FILE][0]), 160);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 160);
	/* 64 pages are four folios. */
	assert_int_equal(evict(w, 64), 64);
	assert_int_equal(w->nr_evicted, 4);
	assert_int_equal(stat_of_root(w, STAT_PGSTEAL_FILE), 64);
	assert_int_equal(stat_of_root(w, STAT_PGSCAN_FILE), 64);
	assert_int_equal(evicted(w, TYPE_FILE, 0), 64);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 96);
	/* The scan limit counts folios. */
	assert_int_equal(evict(w, 1), 16);
	world_mark(w, 9, 2);
	assert_int_equal(counter_read(&root(w)->gen.nr_pages[gen_of(5)][TYPE_FILE][0]), 16);
	assert_int_equal(stat_of_root(w, STAT_PROMOTED), 16);
	world_check(w);
	world_free(w);
}

/* ---- the loop of one lruvec ---- */

static int64_t freed_at(struct world *w, struct scan_control *sc, int priority)
{
	sc->priority = priority;
	sc->nr_reclaimed = 0;
	gen_shrink_lruvec(w->e, root(w), sc);
	return sc->nr_reclaimed;
}

static void test_budget(void **unused)
{
	static const struct {
		int priority;
		int64_t freed;
	} cases[] = {{12, 2}, {11, 4}, {8, 32}, {7, 64}, {6, 128}, {14, 0}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc = control(w);

		put_range(w, 0, 8192, 4, 0);
		sc.nr_to_reclaim = 10000;
		sc.swappiness = 0;
		assert_int_equal(freed_at(w, &sc, cases[i].priority), cases[i].freed);
		assert_int_equal(stat_of_root(w, STAT_PGSCAN_FILE), cases[i].freed);
		world_free(w);
	}
}

/* The budget counts the types that may be evicted. */
static void test_budget_of_types(void **unused)
{
	static const struct {
		int swappiness;
		int64_t freed;
	} cases[] = {{0, 64}, {60, 96}, {201, 32}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc = control(w);

		put_range(w, 0, 4096, 4, 0);
		for (uint32_t page = 5000; page < 5000 + 2048; page++)
			put(w, page, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE, 4, 0);
		sc.nr_to_reclaim = 10000;
		sc.swappiness = cases[i].swappiness;
		assert_int_equal(freed_at(w, &sc, 6), cases[i].freed);
		world_free(w);
	}
}

static void test_memcg_abort(void **unused)
{
	static const struct {
		const char *policy;
		bool root_reclaim, proactive;
		int64_t freed;
	} cases[] = {
		{"mglru", false, false, 64},
		{"mglru:memcg_abort=0", false, false, 1024},
		{"fg", false, false, 64},
		{"fg:memcg_abort=0", false, false, 1024},
		{"fg:memcg_abort=0", true, false, 64},
		{"fg:memcg_abort=0", false, true, 64},
		/* Its budget shrinks with what is left: 13 batches, (4096 - 12 * 64) / 4 > 12 *
		 * 64. */
		{"mglru-6.12", false, false, 832},
		{"mglru-6.12:memcg_abort=1", false, false, 64},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);
		struct scan_control sc = control(w);
		int64_t freed;

		put_range(w, 0, 4096, 4, 0);
		sc.swappiness = 0;
		sc.root_reclaim = cases[i].root_reclaim;
		sc.proactive = cases[i].proactive;
		freed = freed_at(w, &sc, 2);
		if (freed != cases[i].freed)
			fail_msg("case %zu: %lld", i, (long long)freed);
		world_free(w);
	}
}

/* kswapd goes home when the node has its watermark and a batch more. */
static void test_kswapd_abort(void **unused)
{
	for (uint64_t missing = 0; missing < 2; missing++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc = control(w);

		put_range(w, 0, 4096, 4, 0);
		sc.swappiness = 0;
		sc.kswapd = sc.root_reclaim = true;
		sc.nr_to_reclaim = 10000;
		w->e->nodes[0].high_watermark = 100;
		w->e->nodes[0].free_pages = 164 - missing;
		assert_int_equal(freed_at(w, &sc, 3), missing ? 512 : 64);
		world_free(w);
	}
	(void)unused;
}

/* A generation opened does not end the pass of memcg-limit reclaim, but it does that of global
 * reclaim. */
static void test_aging_within_a_pass(void **unused)
{
	for (int global = 0; global < 2; global++) {
		struct world *w = world_window("mglru", 7, 5);
		struct scan_control sc = control(w);

		put_range(w, 0, 4096, 5, 0);
		sc.swappiness = 0;
		sc.nr_to_reclaim = 10000;
		sc.root_reclaim = global;
		sc.priority = 3;
		assert_true(gen_shrink_lruvec(w->e, root(w), &sc)); /* rotate */
		assert_int_equal(sc.nr_reclaimed, global ? 64 : 512);
		assert_int_equal(gen_max_seq(root(w)), 8);
		world_free(w);
	}
	(void)unused;
}

static void test_offline(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	put_range(w, 0, 100, 4, 0);
	sc.swappiness = 0;
	sc.nr_to_reclaim = 1000;
	atomic_store(&w->e->memcgs[0].online, false);
	assert_int_equal(freed_at(w, &sc, 12), 100); /* the whole of it */
	atomic_store(&w->e->memcgs[0].online, true);
	world_free(w);
}

/* memory.min: hands off, but rotate. memory.low: a scaled budget (A.8). */
static void test_protection(void **unused)
{
	static const struct {
		enum foliage_limit limit;
		uint64_t value;
		int priority;
		int64_t freed;
		bool rotate;
	} cases[] = {
		{FOLIAGE_MIN, 0, 6, 64, false},
		{FOLIAGE_MIN, 4096, 0, 0, true},
		{FOLIAGE_LOW, 2048, 6, 32, false}, /* 4096 - 4096 * 2048 / 4097 = 2049 */
		{FOLIAGE_MIN, 2048, 6, 32, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct world_options options = {
			.policy = "fg", .nr_folios = 8192, .max_memcgs = 3};
		struct world *w = world_new(&options);
		struct scan_control sc = control(w);
		int a = foliage_memcg_create(w->e, 0, "a");
		struct lruvec *lv = world_lruvec(w, (uint32_t)a, 0);

		assert_int_equal(
			foliage_memcg_set(w->e, (uint32_t)a, cases[i].limit, cases[i].value), 0);
		for (uint32_t page = 0; page < 4096; page++)
			world_add_to(w, page, (uint32_t)a, 0, 0, 0, 0);
		sc.swappiness = 0;
		sc.nr_to_reclaim = 1000;
		sc.priority = cases[i].priority;
		assert_int_equal(gen_shrink_lruvec(w->e, lv, &sc), cases[i].rotate);
		assert_int_equal(sc.nr_reclaimed, cases[i].freed);
		world_free(w);
	}
}

static void test_get_swappiness(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct scan_control sc = control(w);

	(void)unused;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 60);
	assert_int_equal(foliage_memcg_set(w->e, 0, FOLIAGE_SWAPPINESS, 150), 0);
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 150);
	sc.swappiness = 10;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 10);
	w->swap_free = 63;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 0);
	w->swap_free = 64;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 10);
	sc.may_swap = false;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), 0);
	sc.swappiness = SWAPPINESS_ANON_ONLY;
	assert_int_equal(get_swappiness(w->e, root(w), &sc), SWAPPINESS_ANON_ONLY);
	/* Anon only, and no swap: nothing to scan. */
	for (uint32_t page = 0; page < 100; page++)
		put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
	assert_int_equal(freed_at(w, &sc, 0), 0);
	assert_int_equal(stat_of_root(w, STAT_PGSCAN_ANON), 0);
	world_free(w);
}

/* Global reclaim of 64 pages and more starts where one pass can meet it (B.11). */
static void test_initial_priority(void **unused)
{
	static const struct {
		uint64_t nr;
		bool memcg_limit;
		int priority;
	} cases[] = {{64, false, 7}, {128, false, 6}, {1024, false, 6}, {64, true, 7}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);
		const struct foliage_reclaim_request request = {
			.nr = cases[i].nr, .swappiness = 0, .memcg_limit = cases[i].memcg_limit};
		struct scan_control sc;

		w->swap_free = 0;
		put_range(w, 0, 8192, 4, 0);
		scan_control_init(w->e, &sc, &w->cpu, &request);
		reclaim_session(w->e, &sc);
		if (cases[i].memcg_limit) {
			/* From 12 on, 2 + 4 + 8 + 16 + 32 + 63. */
			assert_int_equal(sc.priority, cases[i].priority);
			assert_true(sc.nr_reclaimed > 64);
		} else if (cases[i].nr <= 128) {
			assert_int_equal(sc.priority, cases[i].priority);
			assert_int_equal(sc.nr_reclaimed, cases[i].nr);
		} else {
			assert_true(sc.priority < 6);
		}
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_limits),
		cmocka_unit_test(test_closes_behind),
		cmocka_unit_test(test_two_generations),
		cmocka_unit_test(test_smaller_batch),
		cmocka_unit_test(test_sorted_count),
		cmocka_unit_test(test_other_type),
		cmocka_unit_test(test_sort_saturated),
		cmocka_unit_test(test_sort_protected),
		cmocka_unit_test(test_sort_lazy),
		cmocka_unit_test(test_sort_zone),
		cmocka_unit_test(test_unevictable),
		cmocka_unit_test(test_no_io),
		cmocka_unit_test(test_batch_of_skipped),
		cmocka_unit_test(test_survivors),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_no_unmap),
		cmocka_unit_test(test_dirty_file),
		cmocka_unit_test(test_end_of_writeback),
		cmocka_unit_test(test_under_writeback),
		cmocka_unit_test(test_flusher),
		cmocka_unit_test(test_flusher_of_a_batch),
		cmocka_unit_test(test_anon),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_budget_of_types),
		cmocka_unit_test(test_memcg_abort),
		cmocka_unit_test(test_kswapd_abort),
		cmocka_unit_test(test_aging_within_a_pass),
		cmocka_unit_test(test_offline),
		cmocka_unit_test(test_protection),
		cmocka_unit_test(test_get_swappiness),
		cmocka_unit_test(test_initial_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
