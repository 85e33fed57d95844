/* SPDX-License-Identifier: MIT
 *
 * The rmap check at eviction (A.3) and its look around (B.10): what is counted, which neighbours
 * are seen, what they get, what the next walk is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mm/mm_list.h"
#include "tests/support/world.h"

struct fixture {
	struct world *w;
	struct lruvec *lv;
	struct scan_control sc;
	uint32_t mm;
};

static struct fixture setup(const char *policy)
{
	const struct world_options options = {.policy = policy, .nr_folios = 8192, .max_memcgs = 2};
	struct fixture f = {.w = world_new(&options)};

	f.lv = world_lruvec(f.w, 0, 0);
	f.mm = world_mm(f.w, 0);
	world_scan_control(f.w, &f.sc);
	return f;
}

/* The first VMA starts at `start`; pages have the numbers of their virtual pages. */
static void map_vma(struct fixture *f, uint32_t start, uint32_t nr, uint32_t flags)
{
	world_vma(f->w, f->mm, start, nr, flags);
	for (uint32_t i = start; i < start + nr; i++) {
		world_add(f->w, i, flags & FOLIAGE_VMA_ANON ? FOLIAGE_FOLIO_ANON : 0);
		world_map(f->w, f->mm, i, i);
	}
}

static void touch_range(struct fixture *f, uint32_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		world_touch(f->w, f->mm, first + i, false);
}

static struct referenced look(struct fixture *f, uint32_t page, bool around)
{
	struct referenced ref;

	folio_referenced(f->w->e, &f->sc, (folio_id)page, around, &ref);
	return ref;
}

static void expect_seen(const struct fixture *f, uint32_t first, uint32_t nr, uint32_t seen_first,
			uint32_t seen_end)
{
	for (uint32_t i = first; i < first + nr; i++)
		if (world_young(f->w, f->mm, i) == (i >= seen_first && i < seen_end))
			fail_msg("page %u: %s, expected %u..%u", i,
				 world_young(f->w, f->mm, i) ? "young" : "old", seen_first,
				 seen_end - 1);
}

/* ---- the window ---- */

static void test_window(void **unused)
{
	static const struct {
		uint32_t vma, nr, page, first, end;
	} cases[] = {
		/* VMA and table are wide: 32 before, 31 after. */
		{512, 512, 700, 668, 732},
		/* Shifted at the edges of the VMA... */
		{600, 300, 600, 600, 664},
		{600, 300, 631, 600, 664},
		{600, 300, 632, 600, 664},
		{600, 300, 633, 601, 665},
		{600, 300, 867, 835, 899},
		{600, 300, 868, 836, 900},
		{600, 300, 869, 836, 900},
		{600, 300, 899, 836, 900},
		/* ... and of the table. */
		{100, 1500, 512, 512, 576},
		{100, 1500, 511, 448, 512},
		{100, 1500, 1000, 960, 1024},
		{100, 1500, 1023, 960, 1024},
		/* A VMA of 64 pages or less is read whole. */
		{700, 64, 763, 700, 764},
		{700, 10, 703, 700, 710},
		{700, 65, 764, 701, 765},
		{700, 65, 700, 700, 764},
		/* The part of a small VMA that lies in the table. */
		{1000, 60, 1010, 1000, 1024},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = setup("mglru");

		map_vma(&f, cases[i].vma, cases[i].nr, 0);
		touch_range(&f, cases[i].vma, cases[i].nr);
		assert_int_equal(look(&f, cases[i].page, true).ptes, 1);
		expect_seen(&f, cases[i].vma, cases[i].nr, cases[i].first, cases[i].end);
		world_check(f.w);
		world_free(f.w);
	}
}

static void test_old_pte_does_not_look(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 10);
	assert_int_equal(look(&f, 530, true).ptes, 0);
	expect_seen(&f, 512, 10, 0, 0);
	world_free(f.w);
}

static void test_without_looking_around(void **unused)
{
	struct fixture f = setup("clru");

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 64);
	assert_int_equal(look(&f, 530, false).ptes, 1);
	expect_seen(&f, 512, 64, 530, 531);
	/* The classic policies have nothing to do with neighbours, whatever the caller wants. */
	assert_int_equal(look(&f, 531, true).ptes, 1);
	expect_seen(&f, 512, 64, 530, 532);
	world_free(f.w);
}

/* ---- what is counted (A.3) ---- */

static void test_counts_mappings(void **unused)
{
	struct fixture f = setup("mglru");
	uint32_t other = world_mm(f.w, 0), third = world_mm(f.w, 0);
	struct referenced ref;

	(void)unused;
	map_vma(&f, 512, 1, 0);
	world_vma(f.w, other, 0, 10, 0);
	world_vma(f.w, other, 100, 10, FOLIAGE_VMA_EXEC);
	world_vma(f.w, third, 0, 10, 0);
	world_map(f.w, other, 5, 512);
	world_map(f.w, other, 105, 512);
	world_map(f.w, third, 7, 512);
	world_touch(f.w, f.mm, 512, false);
	world_touch(f.w, other, 5, false);
	ref = look(&f, 512, true);
	assert_int_equal(ref.ptes, 2);
	assert_false(ref.exec || ref.locked || ref.contended);
	world_touch(f.w, other, 105, false);
	ref = look(&f, 512, true);
	assert_int_equal(ref.ptes, 1);
	assert_true(ref.exec);
	assert_int_equal(look(&f, 512, true).ptes, 0);
	world_free(f.w);
}

static void test_exec_is_for_files(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	map_vma(&f, 512, 1, FOLIAGE_VMA_EXEC | FOLIAGE_VMA_ANON);
	world_touch(f.w, f.mm, 512, false);
	assert_false(look(&f, 512, true).exec);
	/* A file page known to be executable through another mapping counts. */
	world_vma(f.w, f.mm, 0, 10, 0);
	world_add(f.w, 3, FOLIAGE_FOLIO_EXEC);
	world_map(f.w, f.mm, 3, 3);
	world_touch(f.w, f.mm, 3, false);
	assert_true(look(&f, 3, true).exec);
	world_free(f.w);
}

static void test_no_recency(void **unused)
{
	static const uint32_t flags[] = {FOLIAGE_VMA_SEQ_READ, FOLIAGE_VMA_RAND_READ,
					 FOLIAGE_VMA_NOREUSE};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct fixture f = setup("fg");

		map_vma(&f, 512, 64, flags[i]);
		touch_range(&f, 512, 64);
		assert_int_equal(look(&f, 520, true).ptes, 0);
		expect_seen(&f, 512, 64, 0, 0);
		world_free(f.w);
	}
}

static void test_locked(void **unused)
{
	struct fixture f = setup("mglru");
	struct referenced ref;

	(void)unused;
	map_vma(&f, 512, 64, FOLIAGE_VMA_LOCKED);
	touch_range(&f, 512, 64);
	ref = look(&f, 520, true);
	assert_true(ref.locked);
	assert_int_equal(ref.ptes, 0);
	world_free(f.w);
}

static void test_rmap_busy(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 64);
	f.w->pages[520].rmap_busy = true;
	assert_true(look(&f, 520, true).contended);
	expect_seen(&f, 512, 64, 0, 0);
	world_free(f.w);
}

static void test_no_rmap(void **unused)
{
	const struct world_options options = {.policy = "mglru", .nr_folios = 64, .no_rmap = true};
	struct world *w = world_new(&options);
	struct referenced ref = {.ptes = 9, .contended = true};
	struct scan_control sc;

	(void)unused;
	world_scan_control(w, &sc);
	world_add(w, 0, 0);
	folio_referenced(w->e, &sc, 0, true, &ref);
	assert_int_equal(ref.ptes, 0);
	assert_false(ref.contended);
	world_free(w);
}

/* A busy table or a special VMA: the folio's own bit is all that is taken. */
static void test_contended_and_special(void **unused)
{
	(void)unused;
	for (int special = 0; special < 2; special++) {
		struct fixture f = setup("mglru");

		map_vma(&f, 512, 64, special ? FOLIAGE_VMA_SPECIAL : 0);
		touch_range(&f, 512, 64);
		if (!special)
			world_contend(f.w, f.mm, 512, true);
		assert_int_equal(look(&f, 520, true).ptes, 1);
		expect_seen(&f, 512, 64, 520, 521);
		world_free(f.w);
	}
}

static void test_large_folio(void **unused)
{
	struct fixture f = setup("fg");

	(void)unused;
	world_vma(f.w, f.mm, 512, 512, 0);
	world_add_to(f.w, 1, 0, 0, 0, 4, 0);
	world_map(f.w, f.mm, 600, 1);
	world_add_to(f.w, 32, 0, 0, 0, 3, 0);
	world_map(f.w, f.mm, 616, 32);
	touch_range(&f, 600, 24);
	/* Sixteen entries, one mapping; the neighbour's eight are one access. */
	assert_int_equal(look(&f, 1, true).ptes, 1);
	expect_seen(&f, 600, 24, 600, 624);
	assert_int_equal(world_refs(f.w, 1), 0); /* that is for references() to count */
	assert_int_equal(world_refs(f.w, 32), 1);
	world_check(f.w);
	world_free(f.w);
}

/* ---- what neighbours get ---- */

/* Mainline without a walk buffer: the rmap's rule; the second look activates. */
static void test_mainline_neighbours(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 2);
	look(&f, 512, true);
	assert_int_equal(world_flags(f.w, 513) & F_REFS_MASK, F_REFERENCED);
	assert_int_equal(f.w->cpu.nr_activate, 0);
	world_set_refs(f.w, 513, 1 | 1 << 2); /* R and C = 1: two refs */
	touch_range(&f, 512, 2);
	look(&f, 512, true);
	assert_int_equal(world_flags(f.w, 513) & F_REFS_MASK, F_WORKINGSET);
	assert_int_equal(f.w->cpu.nr_activate, 1);
	world_drain(f.w);
	assert_int_equal(world_seq(f.w, 513), 3); /* PG_active with W: the youngest */
	world_check(f.w);
	world_free(f.w);
}

/* With a buffer (aging needed one, kswapd, proactive): the walk's rule, to the youngest at once. */
static void test_neighbours_with_a_buffer(void **unused)
{
	(void)unused;
	for (int who = 0; who < 4; who++) {
		struct fixture f = setup("mglru");

		map_vma(&f, 512, 64, 0);
		world_set_refs(f.w, 513, 1);
		touch_range(&f, 512, 2);
		f.sc.walk = who == 1 ? f.lv->walk : NULL;
		f.sc.kswapd = who == 2;
		f.sc.proactive = who == 3;
		look(&f, 512, true);
		if (who) {
			assert_int_equal(world_seq(f.w, 513), 3);
			assert_int_equal(world_flags(f.w, 513) & F_REFS_MASK, F_WORKINGSET);
			assert_int_equal(f.w->cpu.nr_activate, 0);
		} else {
			assert_int_equal(f.w->cpu.nr_activate, 1);
		}
		world_check(f.w);
		world_free(f.w);
	}
}

static void test_fg_neighbours(void **unused)
{
	struct fixture f = setup("fg");

	(void)unused;
	world_age_to(f.w, 0, 7);
	map_vma(&f, 512, 64, 0);
	assert_int_equal(world_seq(f.w, 513), 4);
	touch_range(&f, 512, 2);
	look(&f, 512, true);
	assert_int_equal(world_seq(f.w, 513), 5);
	assert_int_equal(world_refs(f.w, 513), 1);
	touch_range(&f, 512, 2);
	look(&f, 512, true);
	assert_int_equal(world_seq(f.w, 513), 7);
	assert_int_equal(world_refs(f.w, 513), 2);
	world_check(f.w);
	world_free(f.w);
}

/* 6.12: an isolated neighbour is marked, and then kept without being looked at. */
static void test_612_neighbours(void **unused)
{
	struct fixture f = setup("mglru-6.12");
	struct referenced ref;

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 4);
	lruvec_lock(f.w->e, f.lv);
	lruvec_del_folio(f.w->e, f.lv, 513);
	lruvec_unlock(f.w->e, f.lv, 1);
	look(&f, 512, true);
	assert_true(world_flags(f.w, 513) & F_REFERENCED);
	assert_int_equal(f.w->cpu.nr_activate, 2); /* 514 and 515 */
	world_drain(f.w);
	assert_int_equal(world_seq(f.w, 514), 3);
	world_touch(f.w, f.mm, 513, false);
	ref = look(&f, 513, true);
	assert_true(ref.contended);
	assert_true(world_young(f.w, f.mm, 513));
	world_free(f.w);
}

/* Mainline and FG leave the young bit of a folio on no list alone. */
static void test_isolated_neighbour_keeps_its_bit(void **unused)
{
	static const char *const policies[] = {"mglru", "fg"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct fixture f = setup(policies[i]);

		map_vma(&f, 512, 64, 0);
		touch_range(&f, 512, 3);
		lruvec_lock(f.w->e, f.lv);
		lruvec_del_folio(f.w->e, f.lv, 513);
		lruvec_unlock(f.w->e, f.lv, 1);
		look(&f, 512, true);
		assert_true(world_young(f.w, f.mm, 513));
		assert_false(world_young(f.w, f.mm, 514));
		assert_int_equal(world_refs(f.w, 513), 0);
		world_free(f.w);
	}
}

static void test_neighbours_of_other_memcgs(void **unused)
{
	struct fixture f = setup("mglru");
	uint32_t group = (uint32_t)foliage_memcg_create(f.w->e, 0, "group");

	(void)unused;
	map_vma(&f, 512, 2, 0);
	world_vma(f.w, f.mm, 514, 10, 0);
	world_vma(f.w, f.mm, 600, 10, 0);
	world_add_to(f.w, 600, group, 0, 0, 0, 0);
	world_map(f.w, f.mm, 600, 600);
	world_add(f.w, 601, 0);
	world_map(f.w, f.mm, 601, 601);
	touch_range(&f, 600, 2);
	look(&f, 601, true);
	assert_true(world_young(f.w, f.mm, 600));
	assert_false(world_young(f.w, f.mm, 601));
	world_free(f.w);
}

static void test_neighbours_dirty(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	map_vma(&f, 512, 64, 0);
	touch_range(&f, 512, 1);
	world_touch(f.w, f.mm, 513, true);
	look(&f, 512, true);
	assert_true(world_flags(f.w, 513) & F_DIRTY);
	assert_false(world_pte_dirty(f.w, f.mm, 513));
	world_free(f.w);
}

/* ---- what the next walk is told ---- */

static void test_feeds_the_filter(void **unused)
{
	static const struct {
		uint32_t nr, young; /* of the VMA; the folio included */
		bool dense;
	} cases[] = {{8, 1, true},  {9, 1, false},  {16, 2, true},  {17, 2, false},
		     {64, 8, true}, {64, 7, false}, {300, 8, true}, {300, 7, false}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = setup("mglru-6.12");
		uint64_t key = (uint64_t)f.mm << 40 ^ 1;

		map_vma(&f, 512, cases[i].nr, 0);
		/* Nothing is young, so the first walk leaves an empty filter for the second. */
		assert_true(walk_mms(f.w->e, f.lv, &f.sc, 3, 60, false));
		world_age_to(f.w, 0, 4);
		f.sc.walk = NULL;
		touch_range(&f, 512, cases[i].young);
		look(&f, 512, true);
		assert_int_equal(bloom_test(&f.lv->walk->bloom, 4, key), cases[i].dense);
		/* It is what the next walk consults: it goes there, or not. */
		world_touch(f.w, f.mm, 512 + cases[i].nr - 1, false);
		foliage_mm_ran(f.w->e, f.mm);
		assert_true(walk_mms(f.w->e, f.lv, &f.sc, 4, 60, false));
		assert_int_equal(world_young(f.w, f.mm, 512 + cases[i].nr - 1), !cases[i].dense);
		world_free(f.w);
	}
}

/* ---- the whole of it ---- */

/* Bring in what reclaim took; returns how many of the pages were gone. */
static uint32_t fault_in(struct fixture *f, uint32_t first, uint32_t nr)
{
	uint32_t gone = 0;

	for (uint32_t i = first; i < first + nr; i++) {
		if (world_present(f->w, i))
			continue;
		gone++;
		f->w->cpu.in_lru_fault = true;
		world_add(f->w, i, 0);
		f->w->cpu.in_lru_fault = false;
		world_map(f->w, f->mm, i, i);
	}
	return gone;
}

/* Reclaim of a mapped range: what is touched all the time stays, the rest goes and is unmapped.
 * Mainline may take a hot page once: the first look, by a neighbour's look-around, took its young
 * bit and only marked it (B.2). */
static void test_reclaim_keeps_what_is_hot(void **unused)
{
	static const struct {
		const char *policy;
		uint32_t once;
	} cases[] = {{"mglru", 63}, {"mglru-6.12", 0}, {"fg", 0}, {"clru", 0}, {"clru-6.12", 0}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = setup(cases[i].policy);
		uint32_t gone = 0;

		map_vma(&f, 512, 1024, 0);
		for (uint32_t round = 0; round < 12; round++) {
			uint32_t now = fault_in(&f, 512, 64);

			if (round > 5 && now)
				fail_msg("%s evicted %u hot pages in round %u", cases[i].policy,
					 now, round - 1);
			gone += now;
			touch_range(&f, 512, 64);
			world_reclaim(f.w, 0, 32);
			world_check(f.w);
		}
		if (gone > cases[i].once)
			fail_msg("%s evicted %u hot pages", cases[i].policy, gone);
		assert_true(f.w->nr_evicted >= 12 * 32);
		assert_int_equal(f.w->nr_unmaps, f.w->nr_evicted);
		for (uint32_t page = 512; page < 1536; page++)
			assert_int_equal(world_mapped(f.w, f.mm, page), world_present(f.w, page));
		world_free(f.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_old_pte_does_not_look),
		cmocka_unit_test(test_without_looking_around),
		cmocka_unit_test(test_counts_mappings),
		cmocka_unit_test(test_exec_is_for_files),
		cmocka_unit_test(test_no_recency),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_rmap_busy),
		cmocka_unit_test(test_no_rmap),
		cmocka_unit_test(test_contended_and_special),
		cmocka_unit_test(test_large_folio),
		cmocka_unit_test(test_mainline_neighbours),
		cmocka_unit_test(test_neighbours_with_a_buffer),
		cmocka_unit_test(test_fg_neighbours),
		cmocka_unit_test(test_612_neighbours),
		cmocka_unit_test(test_isolated_neighbour_keeps_its_bit),
		cmocka_unit_test(test_neighbours_of_other_memcgs),
		cmocka_unit_test(test_neighbours_dirty),
		cmocka_unit_test(test_feeds_the_filter),
		cmocka_unit_test(test_reclaim_keeps_what_is_hot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
