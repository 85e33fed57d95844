/* SPDX-License-Identifier: MIT
 *
 * The lower half of C.9's table, B.14, and what mainline does in their place: advice,
 * get_user_pages, smaps, split, migration.
 */
#include "test_gen_common.h"

/* ---- MADV_COLD ---- */

static void test_deactivate(void **unused)
{
	static const char *const policies[] = {"fg", "mglru"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);

		put(w, 0, 0, 7, 15);
		put(w, 1, 0, 4, 15);
		put(w, 2, 0, 4, 0);
		foliage_folio_deactivate(w->e, &w->cpu, 0);
		foliage_folio_deactivate(w->e, &w->cpu, 1);
		assert_int_equal(world_seq(w, 0), 4);
		assert_true(at_head(w, 0));
		assert_true(at_tail(w, 1)); /* in the oldest already: it does not move */
		for (uint32_t page = 0; page < 2; page++)
			assert_int_equal(refs_bits(w, page), 0);
		assert_int_equal(stat_of_root(w, STAT_PGDEACTIVATE), 1);
		world_check(w);
		world_free(w);
	}
}

/* In a batch, unevictable, or gone: no harm. */
static void test_not_on_a_list(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	world_add(w, 0, FOLIAGE_FOLIO_MLOCKED);
	for (folio_id id = 0; id < 2; id++) {
		uint64_t before = world_flags(w, (uint32_t)id);

		foliage_folio_deactivate(w->e, &w->cpu, id);
		foliage_folio_activate(w->e, &w->cpu, id);
		foliage_folio_lazyfree(w->e, &w->cpu, id);
		assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, id), -EBUSY);
		assert_int_equal(world_flags(w, (uint32_t)id), before);
	}
	/* Ours is drained first. */
	w->cpu.batch = 31;
	world_add(w, 2, 0);
	foliage_folio_activate(w->e, &w->cpu, 2);
	assert_int_equal(world_seq(w, 2), 6);
	world_check(w);
	world_free(w);
}

/* ---- DAMON's lru_prio ---- */

static void test_activate(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 1);
	put(w, 1, 0, 4, 2);
	foliage_folio_activate(w->e, &w->cpu, 0);
	foliage_folio_activate(w->e, &w->cpu, 1);
	assert_int_equal(world_seq(w, 0), 6);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(world_refs(w, 0), 1);
	assert_int_equal(world_refs(w, 1), 2);
	assert_int_equal(stat_of_root(w, STAT_PGACTIVATE), 2);
	world_check(w);
	world_free(w);
}

/* ---- MADV_FREE ---- */

static void test_lazyfree(void **unused)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);
		uint64_t seq = i == 2 ? 5 : 4;

		put(w, 0, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_DIRTY, 6, 15);
		assert_int_equal(w->e->ops->size(w->e, root(w), TYPE_ANON), 1);
		foliage_folio_lazyfree(w->e, &w->cpu, 0);
		assert_int_equal(w->e->ops->size(w->e, root(w), TYPE_ANON), 0);
		assert_int_equal(w->e->ops->size(w->e, root(w), TYPE_FILE), 1);
		assert_int_equal(world_seq(w, 0), seq);
		assert_int_equal(refs_bits(w, 0), 0);
		assert_int_equal(stat_of_root(w, STAT_PGLAZYFREED), 1);
		world_check(w);
		/* A file page keeps what it has not written yet. */
		put(w, 1, FOLIAGE_FOLIO_DIRTY, 6, 3);
		foliage_folio_lazyfree(w->e, &w->cpu, 1);
		assert_true(world_flags(w, 1) & F_DIRTY);
		assert_int_equal(world_seq(w, 1), 6);
		/* Reclaimed without swap. */
		settle(w, 0, 4);
		w->swap_free = 0;
		evict(w, 64);
		assert_false(world_present(w, 0));
		assert_int_equal(w->nr_pageouts, 0);
		world_free(w);
	}
}

/* ---- MADV_PAGEOUT ---- */

static void test_pageout(void **unused)
{
	static const struct {
		const char *policy;
		unsigned int before, after, tier;
	} cases[] = {
		{"fg", 0, 0, 0},
		{"fg", 1, 1, 0},
		{"fg", 2, 2, 1},
		{"fg", 7, 2, 1}, /* forced evictions do not feed the hot tiers */
		{"fg:pageout_cap=3", 7, 3, 2},
		{"fg:pageout_cap=7", 7, 7, 3},
		{"fg:pageout_cap=0", 7, 0, 0},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);
		uint32_t mm = world_mm(w, 0);
		uint64_t shadow;

		world_vma(w, mm, 0, 64, 0);
		put(w, 0, 0, 7, cases[i].before);
		world_map(w, mm, 0, 0);
		world_touch(w, mm, 0, false); /* references are ignored */
		assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, 0), 1);
		assert_false(world_present(w, 0));
		shadow = w->pages[0].shadow;
		assert_int_equal((shadow_time(shadow) & 3) << 1 | shadow_workingset(shadow),
				 cases[i].after);
		assert_int_equal(evicted(w, TYPE_FILE, cases[i].tier), 1);
		assert_int_equal(counter_read(&root(w)->gen.nr_active[TYPE_FILE]), 0);
		world_check(w);
		world_free(w);
	}
}

static void test_pageout_fails(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_DIRTY, 5, 5);
	assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, 0), 0);
	assert_true(world_present(w, 0));
	assert_int_equal(world_refs(w, 0), 2);
	assert_int_equal(world_seq(w, 0), 7);
	world_check(w);
	put(w, 1, FOLIAGE_FOLIO_ANON, 5, 0);
	w->pageout = FOLIAGE_PAGEOUT_CLEAN;
	assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, 1), 1);
	assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, -1), -EINVAL);
	assert_int_equal(foliage_folio_pageout(w->e, &w->cpu, 1 << 20), -EINVAL);
	world_free(w);
}

/* ---- get_user_pages, smaps ---- */

static void test_gup_fast(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	unsigned int refs;

	(void)unused;
	for (refs = 0; refs <= 7; refs++) {
		put(w, refs, 0, 4, refs);
		foliage_folio_gup_fast(w->e, (foliage_folio)refs);
		assert_int_equal(world_refs(w, refs), MAX(refs, 1u));
		assert_int_equal(world_seq(w, refs), 4);
	}
	world_check(w);
	world_free(w);
	w = world_window("fg:gup_fast=inc", 7, 4);
	for (refs = 0; refs <= 7; refs++) {
		put(w, refs, 0, 4, refs);
		foliage_folio_gup_fast(w->e, (foliage_folio)refs);
		assert_int_equal(world_refs(w, refs), MIN(refs + 1, 7u));
		assert_int_equal(world_seq(w, refs), 4); /* never a move */
	}
	assert_int_equal(counter_read(&root(w)->gen.nr_active[TYPE_FILE]), 7);
	world_check(w);
	world_free(w);
	w = world_window("mglru", 7, 4);
	put(w, 0, 0, 4, 0);
	foliage_folio_gup_fast(w->e, 0);
	assert_int_equal(refs_bits(w, 0), R);
	world_free(w);
}

/* "Referenced" and "workingset" ask the counter, not the bits: with 2, 4 and 6 refs PG_referenced
 * is clear. */
static void test_readers(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	for (unsigned int refs = 0; refs <= 7; refs++) {
		put(w, refs, 0, 6, refs);
		assert_int_equal(foliage_folio_referenced(w->e, (foliage_folio)refs), refs >= 1);
		assert_int_equal(foliage_folio_workingset(w->e, (foliage_folio)refs), refs >= 2);
	}
	for (unsigned int refs = 0; refs <= 7; refs++) {
		foliage_folio_clear_refs(w->e, (foliage_folio)refs);
		assert_int_equal(world_refs(w, refs), 0);
		assert_int_equal(world_seq(w, refs), 6);
	}
	assert_int_equal(counter_read(&root(w)->gen.nr_active[TYPE_FILE]), 0);
	world_check(w);
	world_free(w);
	w = world_window("mglru", 7, 4);
	put(w, 0, 0, 6, 0);
	world_mark(w, 0, 4);
	assert_true(foliage_folio_referenced(w->e, 0));
	assert_false(foliage_folio_workingset(w->e, 0)); /* four accesses are not enough */
	world_mark(w, 0, 1);
	assert_true(foliage_folio_workingset(w->e, 0));
	world_free(w);
}

/* ---- split ---- */

static void test_split(void **unused)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12"};
	foliage_folio parts[7];

	(void)unused;
	for (int i = 0; i < 7; i++)
		parts[i] = 100 + i;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		for (int young = 0; young < 2; young++) {
			struct world *w = world_window(policies[i], 7, 4);
			uint64_t bits = 2 << F_REFS_SHIFT;
			int64_t seq = 5;

			world_add_to(w, 0, 0, 0, 0, 3, 0);
			world_set_refs(w, 0, 2);
			settle(w, 0, 5);
			assert_int_equal(foliage_folio_split(w->e, &w->cpu, 0, parts, young), 0);
			if (young && i == 0) {
				bits = 3 << F_REFS_SHIFT; /* a real access: the second look, to the
							     youngest */
				seq = 7;
			} else if (young) {
				bits |= R;
			}
			for (uint32_t page = 0; page < 8; page++) {
				uint32_t id = page ? 99 + page : 0;

				assert_true(world_present(w, id));
				assert_int_equal(flags_nr(world_flags(w, id)), 1);
				assert_int_equal(refs_bits(w, id), bits);
				assert_int_equal(world_seq(w, id), seq);
				assert_int_equal(list_seq(w, id), 5);
			}
			assert_int_equal(foliage_memcg_usage(w->e, 0), 8);
			world_check(w);
			assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 103), 0);
			assert_int_equal(foliage_memcg_usage(w->e, 0), 7);
			world_check(w);
			world_free(w);
		}
}

static void test_split_refused(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	foliage_folio parts[3] = {10, 11, 12};

	(void)unused;
	world_add(w, 0, 0);
	world_add(w, 11, 0);
	world_add_to(w, 1, 0, 0, 0, 2, 0);
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, 0, parts, false),
			 -EINVAL); /* one page */
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, 2, parts, false),
			 -EINVAL); /* not here */
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, -7, parts, false), -EINVAL);
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, 1, NULL, false), -EINVAL);
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, 1, parts, false), -EEXIST);
	parts[1] = 1 << 24;
	assert_int_equal(foliage_folio_split(w->e, &w->cpu, 1, parts, true), -EEXIST);
	assert_int_equal(flags_nr(world_flags(w, 1)), 4);
	assert_int_equal(world_refs(w, 1), 0);
	world_check(w);
	world_free(w);
}

/* ---- migration ---- */

static void test_migrate(void **unused)
{
	static const struct {
		const char *policy;
		uint64_t seq;
		unsigned int refs;
		int64_t lands;
	} cases[] = {
		{"fg", 7, 0, 6},    {"fg", 6, 1, 6},         {"fg", 6, 2, 7},
		{"fg", 5, 2, 5},    {"fg", 5, 7, 5},         {"fg", 4, 1, 4},
		{"mglru", 7, 1, 6}, {"mglru", 7, 2, 7},      {"mglru", 4, 0, 4},
		{"mglru", 4, 1, 5}, {"mglru-6.12", 6, 0, 7}, {"mglru-6.12", 4, 0, 5},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);

		put(w, 0, FOLIAGE_FOLIO_DIRTY, cases[i].seq, cases[i].refs);
		assert_int_equal(foliage_folio_migrate(w->e, &w->cpu, 0, 1), 0);
		assert_false(world_present(w, 0));
		assert_true(world_present(w, 1));
		assert_true(world_flags(w, 1) & F_DIRTY);
		if (world_seq(w, 1) != cases[i].lands || world_refs(w, 1) != cases[i].refs)
			fail_msg("case %zu: %lld, %u", i, (long long)world_seq(w, 1),
				 world_refs(w, 1));
		assert_int_equal(foliage_memcg_usage(w->e, 0), 1);
		assert_int_equal(foliage_folio_migrate(w->e, &w->cpu, 0, 2), -EBUSY);
		assert_int_equal(foliage_folio_migrate(w->e, &w->cpu, 1, 1), -EEXIST);
		assert_int_equal(foliage_folio_migrate(w->e, &w->cpu, -1, 1), -EINVAL);
		assert_int_equal(foliage_folio_migrate(w->e, &w->cpu, 1, 1 << 24), -EINVAL);
		world_check(w);
		/* The old number is free again. */
		world_add(w, 0, 0);
		assert_int_equal(refs_bits(w, 0), 0);
		world_check(w);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deactivate), cmocka_unit_test(test_not_on_a_list),
		cmocka_unit_test(test_activate),   cmocka_unit_test(test_lazyfree),
		cmocka_unit_test(test_pageout),    cmocka_unit_test(test_pageout_fails),
		cmocka_unit_test(test_gup_fast),   cmocka_unit_test(test_readers),
		cmocka_unit_test(test_split),      cmocka_unit_test(test_split_refused),
		cmocka_unit_test(test_migrate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
