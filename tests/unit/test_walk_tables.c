/* SPDX-License-Identifier: MIT
 *
 * What an aging walk does inside a process (B.9): which VMAs and tables it reads, the density test,
 * the filters, the accessed bit of whole tables, large folios, dirty bits; and what a young entry
 * means to each policy (B.2, C.3, LINUX-6.12 1.1).
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
	uint32_t mm;
};

static struct fixture setup_caps(const char *policy, uint32_t caps)
{
	const struct world_options options = {
		.policy = policy, .nr_folios = 8192, .caps = caps, .nr_zones = 1};
	struct fixture f = {.w = world_new(&options)};

	f.lv = world_lruvec(f.w, 0, 0);
	f.mm = world_mm(f.w, 0);
	return f;
}

static struct fixture setup(const char *policy)
{
	return setup_caps(policy, 0);
}

static void walk_with(struct fixture *f, int swappiness, bool force)
{
	struct scan_control sc;
	uint64_t seq = gen_max_seq(f->lv);

	world_scan_control(f->w, &sc);
	foliage_mm_ran(f->w->e, f->mm);
	assert_true(walk_mms(f->w->e, f->lv, &sc, seq, swappiness, force));
}

static void walk(struct fixture *f, bool force)
{
	walk_with(f, 60, force);
}

/* The next walk needs the next generation. */
static void open_next(struct fixture *f)
{
	assert_true(gen_inc_max_seq(f->w->e, f->lv, gen_max_seq(f->lv), 60));
	world_check(f->w);
}

/* Pages first.. at the same virtual pages. */
static void map_range(struct fixture *f, uint32_t first, uint32_t nr)
{
	world_add_range(f->w, first, nr, 0);
	for (uint32_t i = 0; i < nr; i++)
		world_map(f->w, f->mm, first + i, first + i);
}

static bool in_filter(const struct fixture *f, uint64_t seq, uint64_t vpage)
{
	return bloom_test(&f->lv->walk->bloom, seq, (uint64_t)f->mm << 40 ^ vpage / 512);
}

/* ---- VMAs ---- */

static void test_vma_skip_list(void **unused)
{
	static const struct {
		uint32_t flags;
		int swappiness;
		bool walked;
	} cases[] = {
		{0, 60, true},
		{0, 0, true},
		{0, 200, true},
		{0, 201, false},
		{FOLIAGE_VMA_EXEC, 60, true},
		{FOLIAGE_VMA_EXEC, 201, false},
		{FOLIAGE_VMA_ANON, 60, true},
		{FOLIAGE_VMA_ANON, 1, true},
		{FOLIAGE_VMA_ANON, 0, false},
		{FOLIAGE_VMA_ANON, 201, true},
		{FOLIAGE_VMA_SHMEM, 60, true},
		{FOLIAGE_VMA_SHMEM, 0, false},
		{FOLIAGE_VMA_SHMEM, 201, true},
		{FOLIAGE_VMA_INACCESSIBLE, 60, false},
		{FOLIAGE_VMA_HUGETLB, 60, false},
		{FOLIAGE_VMA_SEQ_READ, 60, false},
		{FOLIAGE_VMA_RAND_READ, 60, false},
		{FOLIAGE_VMA_NOREUSE, 60, false},
		{FOLIAGE_VMA_LOCKED, 60, false},
		{FOLIAGE_VMA_SPECIAL, 60, false},
		{FOLIAGE_VMA_UNEVICTABLE, 60, false},
		{FOLIAGE_VMA_ANON | FOLIAGE_VMA_LOCKED, 60, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = setup("mglru-6.12");
		bool anon = cases[i].flags & FOLIAGE_VMA_ANON;

		world_vma(f.w, f.mm, 100, 10, cases[i].flags);
		world_add(f.w, 5, anon ? FOLIAGE_FOLIO_ANON : 0);
		world_map(f.w, f.mm, 105, 5);
		world_touch(f.w, f.mm, 105, false);
		walk_with(&f, cases[i].swappiness, true); /* force_scan changes nothing */
		if (world_young(f.w, f.mm, 105) == cases[i].walked)
			fail_msg("VMA flags %#x at swappiness %d: walked is %d", cases[i].flags,
				 cases[i].swappiness, !cases[i].walked);
		world_free(f.w);
	}
}

/* Several VMAs share a table: one decision, one density, and the skipped one stays out of it. */
static void test_vmas_of_one_table(void **unused)
{
	struct fixture f = setup("mglru-6.12");
	uint64_t stats[WALK_STATS];

	(void)unused;
	world_vma(f.w, f.mm, 0, 100, 0);
	world_vma(f.w, f.mm, 100, 100, FOLIAGE_VMA_RAND_READ);
	world_vma(f.w, f.mm, 300, 1000, 0);
	map_range(&f, 0, 200);
	map_range(&f, 300, 300); /* up to 599: two tables */
	world_touch(f.w, f.mm, 50, false);
	world_touch(f.w, f.mm, 150, false);
	world_touch(f.w, f.mm, 400, false);
	world_touch(f.w, f.mm, 599, false);
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 50));
	assert_true(world_young(f.w, f.mm, 150));
	assert_false(world_young(f.w, f.mm, 400));
	assert_false(world_young(f.w, f.mm, 599));
	walk_stats(f.w->e, f.lv, 3, stats);
	assert_int_equal(stats[WALK_LEAF_TOTAL], 100 + 212 + 512); /* holes count */
	assert_int_equal(stats[WALK_LEAF_YOUNG], 3);
	assert_int_equal(stats[WALK_PMD_FOUND], 2);
	assert_int_equal(stats[WALK_PMD_ADDED], 0);
	world_free(f.w);
}

/* Not only the first VMA of a table profits when the table's accessed bit is cleared. */
static void test_vmas_share_the_accessed_bit(void **unused)
{
	struct fixture f = setup("mglru-6.12");

	(void)unused;
	world_vma(f.w, f.mm, 0, 4, 0);
	world_vma(f.w, f.mm, 8, 4, 0);
	map_range(&f, 0, 4);
	map_range(&f, 8, 4);
	for (int round = 0; round < 2; round++) {
		world_touch(f.w, f.mm, 0, false);
		world_touch(f.w, f.mm, 8, false);
		walk(&f, false);
		assert_false(world_young(f.w, f.mm, 0));
		assert_false(world_young(f.w, f.mm, 8));
		open_next(&f);
	}
	world_free(f.w);
}

/* ---- tables ---- */

static void test_density(void **unused)
{
	/* Of the table's part of the VMA, whether mapped or not. */
	static const struct {
		uint32_t range, mapped, young;
		bool dense;
	} cases[] = {
		{1, 1, 0, false},      {1, 1, 1, true},      {8, 8, 1, true},
		{9, 9, 1, false},      {16, 16, 2, true},    {17, 17, 2, false},
		{512, 512, 63, false}, {512, 512, 64, true}, {512, 512, 512, true},
		{512, 63, 63, false},  {512, 64, 64, true},  {9, 1, 1, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f = setup("mglru-6.12");
		uint64_t stats[WALK_STATS];

		world_vma(f.w, f.mm, 512, cases[i].range, 0);
		world_add_range(f.w, 512, cases[i].mapped, 0);
		for (uint32_t j = 0; j < cases[i].mapped; j++)
			world_map(f.w, f.mm, 512 + j, 512 + j);
		for (uint32_t j = 0; j < cases[i].young; j++)
			world_touch(f.w, f.mm, 512 + j, false);
		walk(&f, true);
		assert_int_equal(in_filter(&f, 4, 512), cases[i].dense);
		walk_stats(f.w->e, f.lv, 3, stats);
		assert_int_equal(stats[WALK_LEAF_TOTAL], cases[i].range);
		assert_int_equal(stats[WALK_LEAF_YOUNG], cases[i].young);
		assert_int_equal(stats[WALK_PMD_FOUND], 1);
		assert_int_equal(stats[WALK_PMD_ADDED], cases[i].dense);
		world_free(f.w);
	}
}

/* A sparse table drops out; only a forced scan, or eviction's look-around, brings it back. */
static void test_filter_decides(void **unused)
{
	struct fixture f = setup("mglru-6.12");

	(void)unused;
	world_vma(f.w, f.mm, 0, 16, 0);
	world_vma(f.w, f.mm, 1024, 16, 0);
	map_range(&f, 0, 16);    /* dense: 8 of 16 */
	map_range(&f, 1024, 16); /* sparse: 1 of 16 */
	for (uint32_t i = 0; i < 8; i++)
		world_touch(f.w, f.mm, i, false);
	world_touch(f.w, f.mm, 1024, false);
	walk(&f, false);
	open_next(&f);
	world_touch(f.w, f.mm, 0, false);
	world_touch(f.w, f.mm, 1, false);
	world_touch(f.w, f.mm, 1025, false);
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 0));
	assert_true(world_young(f.w, f.mm, 1025));
	open_next(&f);
	/* The first table was dense again. The second is reported by somebody. */
	world_touch(f.w, f.mm, 0, false);
	bloom_add(&f.lv->walk->bloom, 5, (uint64_t)f.mm << 40 ^ 1024 / 512);
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 0));
	assert_false(world_young(f.w, f.mm, 1025));
	open_next(&f);
	world_touch(f.w, f.mm, 1026, false);
	walk(&f, false);
	assert_true(world_young(f.w, f.mm, 1026));
	open_next(&f);
	walk(&f, true);
	assert_false(world_young(f.w, f.mm, 1026));
	world_free(f.w);
}

/* The filter of the next walk is emptied when a walk takes its first process, not before and not
 * again. */
static void test_filter_is_emptied(void **unused)
{
	struct fixture f = setup("mglru-6.12");
	uint32_t other = world_mm(f.w, 0);

	(void)unused;
	world_vma(f.w, f.mm, 0, 1, 0);
	world_vma(f.w, other, 0, 1, 0);
	map_range(&f, 0, 1);
	world_add(f.w, 1, 0);
	world_map(f.w, other, 0, 1);
	for (uint64_t seq = 3; seq < 8; seq++) {
		world_touch(f.w, f.mm, 0, false);
		foliage_mm_ran(f.w->e, other);
		walk(&f, true);
		/* Added by the first process and still there after the second. */
		assert_true(in_filter(&f, seq + 1, 0));
		assert_false(bloom_test(&f.lv->walk->bloom, seq + 1, (uint64_t)other << 40));
		assert_false(in_filter(&f, seq + 1, 777 * 512));
		bloom_add(&f.lv->walk->bloom, seq, (uint64_t)f.mm << 40 ^ 777);
		open_next(&f);
	}
	world_free(f.w);
}

static void test_accessed_bit_of_tables(void **unused)
{
	struct fixture f = setup("mglru-6.12");

	(void)unused;
	world_vma(f.w, f.mm, 0, 8, 0);
	map_range(&f, 0, 8);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, false); /* forced, as the process is new: the bit stays */
	assert_true(*world_pmd_young(f.w, f.mm, 0));
	open_next(&f);
	world_touch(f.w, f.mm, 1, false);
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 1));
	assert_false(*world_pmd_young(f.w, f.mm, 0));
	open_next(&f);
	/* In the filter, but old: what hardware did not touch is not read. */
	world_touch(f.w, f.mm, 2, false);
	*world_pmd_young(f.w, f.mm, 0) = false;
	assert_true(in_filter(&f, 5, 0));
	walk(&f, false);
	assert_true(world_young(f.w, f.mm, 2));
	open_next(&f);
	walk(&f, true);
	assert_false(world_young(f.w, f.mm, 2));
	world_free(f.w);
}

/* Without the cap (0x4) only the filter counts. */
static void test_accessed_bit_unused(void **unused)
{
	struct fixture f = setup_caps("mglru-6.12", FOLIAGE_LRU_GEN_CORE | FOLIAGE_LRU_GEN_MM_WALK);

	(void)unused;
	world_vma(f.w, f.mm, 0, 8, 0);
	map_range(&f, 0, 8);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, false);
	open_next(&f);
	world_touch(f.w, f.mm, 1, false);
	*world_pmd_young(f.w, f.mm, 0) = false;
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 1));
	world_free(f.w);
}

/* A busy table is taken for hot and carried over to the next walk unread. */
static void test_contended_table(void **unused)
{
	struct fixture f = setup("mglru-6.12");

	(void)unused;
	world_vma(f.w, f.mm, 0, 512, 0);
	map_range(&f, 0, 100);
	world_contend(f.w, f.mm, 0, true);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, false);
	assert_true(world_young(f.w, f.mm, 0));
	assert_true(in_filter(&f, 4, 0));
	open_next(&f);
	world_contend(f.w, f.mm, 0, false);
	walk(&f, false);
	assert_false(world_young(f.w, f.mm, 0));
	assert_false(in_filter(&f, 5, 0));
	world_free(f.w);
}

static void test_large_folio_is_one_access(void **unused)
{
	struct fixture f = setup("fg:pt_promote_scope=all");
	uint64_t stats[WALK_STATS];

	(void)unused;
	world_age_to(f.w, 0, 7);
	world_vma(f.w, f.mm, 60, 16, 0);
	world_add_to(f.w, 0, 0, 0, 0, 4, 0);
	world_map(f.w, f.mm, 60, 0); /* crosses a word of the young bits */
	world_touch(f.w, f.mm, 61, false);
	world_touch(f.w, f.mm, 70, true);
	assert_int_equal(world_seq(f.w, 0), 4);
	walk(&f, true);
	assert_int_equal(world_refs(f.w, 0), 1);
	assert_int_equal(world_seq(f.w, 0), 5);
	assert_false(world_young(f.w, f.mm, 61));
	assert_false(world_young(f.w, f.mm, 70));
	assert_true(world_flags(f.w, 0) & F_DIRTY);
	walk_stats(f.w->e, f.lv, 7, stats);
	assert_int_equal(stats[WALK_LEAF_TOTAL], 16);
	assert_int_equal(stats[WALK_LEAF_YOUNG], 16);
	world_check(f.w);
	world_free(f.w);
}

static void test_dirty_moves_to_the_folio(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	world_vma(f.w, f.mm, 0, 512, 0);
	world_vma(f.w, f.mm, 512, 512, FOLIAGE_VMA_ANON);
	map_range(&f, 0, 2);
	world_add(f.w, 600, FOLIAGE_FOLIO_ANON);
	world_map(f.w, f.mm, 600, 600);
	world_add(f.w, 601, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	world_map(f.w, f.mm, 601, 601);
	world_touch(f.w, f.mm, 0, true);
	world_touch(f.w, f.mm, 1, false);
	world_touch(f.w, f.mm, 600, true);
	world_touch(f.w, f.mm, 601, true);
	walk(&f, false);
	assert_true(world_flags(f.w, 0) & F_DIRTY);
	assert_false(world_pte_dirty(f.w, f.mm, 0));
	assert_false(world_flags(f.w, 1) & F_DIRTY);
	/* Anonymous memory is dirty only against a swap slot. */
	assert_false(world_flags(f.w, 600) & F_DIRTY);
	assert_true(world_pte_dirty(f.w, f.mm, 600));
	assert_true(world_flags(f.w, 601) & F_DIRTY);
	world_free(f.w);
}

/* ---- what a young entry means ---- */

static const char *const one_page_policies[] = {"mglru", "mglru-6.12", "fg"};

/* A folio on no list keeps its young bit, and so the access is not lost. 6.12 marks it instead. */
static void test_off_list(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(one_page_policies); i++) {
		struct fixture f = setup(one_page_policies[i]);
		bool v612 = i == 1;

		f.w->cpu.batch = 31;
		world_vma(f.w, f.mm, 0, 512, 0);
		world_add(f.w, 0, 0); /* in the add batch */
		world_map(f.w, f.mm, 0, 0);
		world_touch(f.w, f.mm, 0, false);
		assert_int_equal(world_list(f.w, 0), -1);
		walk(&f, true);
		assert_int_equal(world_young(f.w, f.mm, 0), !v612);
		assert_int_equal(!!(world_flags(f.w, 0) & F_REFERENCED), v612);
		world_free(f.w);
	}
}

/* B.2: the first look marks, the second moves to the youngest generation, with W. */
static void test_mainline_two_looks(void **unused)
{
	struct fixture f = setup("mglru");
	int64_t seq;

	(void)unused;
	world_vma(f.w, f.mm, 0, 512, 0);
	map_range(&f, 0, 1);
	seq = world_seq(f.w, 0);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, true);
	assert_int_equal(world_seq(f.w, 0), seq);
	assert_int_equal(world_flags(f.w, 0) & F_REFS_MASK, F_REFERENCED);
	/* Not young: nothing. */
	world_age_to(f.w, 0, 4);
	world_set_refs(f.w, 0, 1); /* forced aging resets it */
	walk(&f, true);
	assert_int_equal(world_flags(f.w, 0) & F_REFS_MASK, F_REFERENCED);
	world_age_to(f.w, 0, 5);
	world_set_refs(f.w, 0, 1);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, true);
	assert_int_equal(world_seq(f.w, 0), 5);
	assert_int_equal(world_flags(f.w, 0) & F_REFS_MASK, F_WORKINGSET);
	world_check(f.w);
	world_free(f.w);
}

static void test_mainline_exec(void **unused)
{
	struct fixture f = setup("mglru");

	(void)unused;
	world_vma(f.w, f.mm, 0, 512, FOLIAGE_VMA_EXEC);
	world_vma(f.w, f.mm, 512, 512, FOLIAGE_VMA_EXEC | FOLIAGE_VMA_ANON);
	map_range(&f, 0, 1);
	world_add(f.w, 600, FOLIAGE_FOLIO_ANON);
	world_map(f.w, f.mm, 600, 600);
	world_touch(f.w, f.mm, 0, false);
	world_touch(f.w, f.mm, 600, false);
	walk(&f, true);
	assert_int_equal(world_seq(f.w, 0), 3);
	assert_int_equal(world_flags(f.w, 0) & F_REFS_MASK, F_WORKINGSET);
	/* Executable anonymous memory is nothing special. */
	assert_int_equal(world_flags(f.w, 600) & F_REFS_MASK, F_REFERENCED);
	world_free(f.w);
}

/* LINUX-6.12 1.1: one look moves to the youngest and forgets everything. */
static void test_612_one_look(void **unused)
{
	struct fixture f = setup("mglru-6.12");

	(void)unused;
	world_vma(f.w, f.mm, 0, 512, 0);
	map_range(&f, 0, 1);
	world_mark(f.w, 0, 4);
	assert_int_equal(world_flags(f.w, 0) & F_LRU_REFS_MASK, UINT64_C(2) << F_LRU_REFS_SHIFT);
	world_touch(f.w, f.mm, 0, false);
	walk(&f, false);
	assert_int_equal(world_seq(f.w, 0), 3);
	assert_int_equal(world_flags(f.w, 0) & F_REFS_MASK, 0);
	world_check(f.w);
	world_free(f.w);
}

/* Spec F.3: max_seq 7, min_seq 4. Pages 0 (plain) and 1 (executable) of seq 4, and page 2 of seq 6.
 */
static struct fixture f3(const char *policy)
{
	struct fixture f = setup(policy);

	world_age_to(f.w, 0, 7);
	assert_int_equal(gen_min_seq(f.lv, TYPE_FILE), 4);
	world_vma(f.w, f.mm, 0, 512, 0);
	world_vma(f.w, f.mm, 512, 512, FOLIAGE_VMA_EXEC);
	world_vma(f.w, f.mm, 1024, 512, FOLIAGE_VMA_ANON);
	map_range(&f, 0, 1);
	world_add(f.w, 1, 0);
	world_map(f.w, f.mm, 512, 1);
	world_add(f.w, 2, FOLIAGE_FOLIO_ANON); /* fresh: second youngest */
	world_map(f.w, f.mm, 1024, 2);
	assert_int_equal(world_seq(f.w, 0), 4);
	assert_int_equal(world_seq(f.w, 1), 4);
	assert_int_equal(world_seq(f.w, 2), 6);
	return f;
}

/* Another walk of the same generation: the state forgets that it has walked. */
static void walk_again(struct fixture *f, uint64_t vpage)
{
	walk_reset(f->w->e, f->lv);
	world_touch(f->w, f->mm, vpage, false);
	walk(f, true);
	world_check(f->w);
}

static void test_fg_scope_all(void **unused)
{
	struct fixture f = f3("fg:pt_promote_scope=all");

	(void)unused;
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 5);
	assert_int_equal(world_refs(f.w, 0), 1);
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 7);
	assert_int_equal(world_refs(f.w, 0), 2);
	/* In the youngest it counts to 7 and never moves. */
	for (unsigned int i = 3; i < 10; i++) {
		walk_again(&f, 0);
		assert_int_equal(world_seq(f.w, 0), 7);
		assert_int_equal(world_refs(f.w, 0), MIN(i, 7u));
	}
	walk_again(&f, 512);
	assert_int_equal(world_seq(f.w, 1), 7);
	assert_int_equal(world_refs(f.w, 1), 1);
	walk_again(&f, 1024);
	assert_int_equal(world_seq(f.w, 2), 7);
	assert_int_equal(world_refs(f.w, 2), 1);
	world_free(f.w);
}

static void test_fg_scope_tail(void **unused)
{
	struct fixture f = f3("fg");

	(void)unused;
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 5);
	assert_int_equal(world_refs(f.w, 0), 1);
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 7);
	assert_int_equal(world_refs(f.w, 0), 2);
	/* Outside the scope it only counts. */
	for (unsigned int i = 1; i < 9; i++) {
		walk_again(&f, 1024);
		assert_int_equal(world_seq(f.w, 2), 6);
		assert_int_equal(world_refs(f.w, 2), MIN(i, 7u));
	}
	world_free(f.w);
}

static void test_fg_scope_min(void **unused)
{
	struct fixture f = f3("fg:pt_promote_scope=min");

	(void)unused;
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 5);
	walk_again(&f, 0);
	/* No longer in the oldest generation. */
	assert_int_equal(world_seq(f.w, 0), 5);
	assert_int_equal(world_refs(f.w, 0), 2);
	walk_again(&f, 512);
	assert_int_equal(world_seq(f.w, 1), 7);
	world_free(f.w);
}

/* Promotion caps at 3 whatever fd accesses had counted. */
static void test_fg_cap(void **unused)
{
	struct fixture f = f3("fg");

	(void)unused;
	world_set_refs(f.w, 0, 6);
	walk_again(&f, 0);
	assert_int_equal(world_seq(f.w, 0), 7);
	assert_int_equal(world_refs(f.w, 0), 3);
	world_free(f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vma_skip_list),
		cmocka_unit_test(test_vmas_of_one_table),
		cmocka_unit_test(test_vmas_share_the_accessed_bit),
		cmocka_unit_test(test_density),
		cmocka_unit_test(test_filter_decides),
		cmocka_unit_test(test_filter_is_emptied),
		cmocka_unit_test(test_accessed_bit_of_tables),
		cmocka_unit_test(test_accessed_bit_unused),
		cmocka_unit_test(test_contended_table),
		cmocka_unit_test(test_large_folio_is_one_access),
		cmocka_unit_test(test_dirty_moves_to_the_folio),
		cmocka_unit_test(test_off_list),
		cmocka_unit_test(test_mainline_two_looks),
		cmocka_unit_test(test_mainline_exec),
		cmocka_unit_test(test_612_one_look),
		cmocka_unit_test(test_fg_scope_all),
		cmocka_unit_test(test_fg_scope_tail),
		cmocka_unit_test(test_fg_scope_min),
		cmocka_unit_test(test_fg_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
