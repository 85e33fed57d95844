/* SPDX-License-Identifier: MIT
 *
 * Aging (B.8): when generations open and close, what forced aging does to the folios, the shortcut
 * that turns old into young, and how far the types may drift apart.
 */
#include "test_gen_common.h"

static void expect_window(const struct world *w, uint64_t max_seq, uint64_t min_anon,
			  uint64_t min_file)
{
	if (gen_max_seq(root(w)) != max_seq || gen_min_seq(root(w), TYPE_ANON) != min_anon ||
	    gen_min_seq(root(w), TYPE_FILE) != min_file)
		fail_msg("generations %llu/%llu..%llu",
			 (unsigned long long)gen_min_seq(root(w), TYPE_ANON),
			 (unsigned long long)gen_min_seq(root(w), TYPE_FILE),
			 (unsigned long long)gen_max_seq(root(w)));
}

static void test_start(void **unused)
{
	struct world *w = world_new(NULL);

	(void)unused;
	expect_window(w, 3, 0, 0);
	world_free(w);
}

/* ---- opening ---- */

static void test_window_of_four(void **unused)
{
	struct world *w = world_window("mglru", 7, 6);

	(void)unused;
	w->now_ms = 1234;
	put_range(w, 0, 3, 6, 0);
	assert_true(gen_inc_max_seq(w->e, root(w), 7, 60));
	expect_window(w, 8, 6, 6);
	assert_int_equal(root(w)->gen.timestamps[gen_of(8)], 1234);
	assert_int_equal(stat_of_root(w, STAT_AGINGS), 1);
	assert_true(gen_inc_max_seq(w->e, root(w), 8, 60));
	expect_window(w, 9, 6, 6);
	/* The fifth would not fit: the oldest closes. */
	assert_true(gen_inc_max_seq(w->e, root(w), 9, 60));
	expect_window(w, 10, 7, 7);
	assert_int_equal(world_seq(w, 0), 7);
	/* One opening for each sequence number. */
	assert_false(gen_inc_max_seq(w->e, root(w), 9, 60));
	expect_window(w, 10, 7, 7);
	world_check(w);
	world_free(w);
}

static void test_one_caller_each(void **unused)
{
	static const uint32_t caps[] = {FOLIAGE_LRU_GEN_CORE, 7};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		const struct world_options options = {
			.policy = "mglru", .nr_folios = 64, .caps = caps[i]};
		struct world *w = world_new(&options);
		struct scan_control sc;

		world_scan_control(w, &sc);
		assert_true(gen_try_inc_max_seq(w->e, root(w), &sc, 3, 60, false));
		assert_false(gen_try_inc_max_seq(w->e, root(w), &sc, 3, 60, false));
		assert_true(gen_try_inc_max_seq(w->e, root(w), &sc, 4, 60, false));
		expect_window(w, 5, 2, 2);
		world_free(w);
	}
}

/* ---- forced: the oldest generation moves up ---- */

static void test_forced_mainline(void **unused)
{
	static const uint64_t before[] = {0, R, R | C(1), R | C(3), W, R | W | C(3)};
	static const unsigned int protected_tier[] = {0, 0, 1, 2, 3, 9};
	struct world *w = world_window("mglru:histgens=4", 7, 4);
	uint64_t expected[MAX_NR_TIERS] = {0};

	(void)unused;
	put(w, 50, 0, 5, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(before); i++) {
		put(w, i, 0, 4, (unsigned int)(before[i] >> F_REFS_SHIFT));
		if (protected_tier[i] < MAX_NR_TIERS)
			expected[protected_tier[i]]++;
	}
	put(w, 60, 0, 4, 0);
	settle(w, 60, 4);
	folio_change(w->e, folio_at(w->e, 60), F_GEN_MASK,
		     (uint64_t)gen_of(6) + 1); /* promoted meanwhile */
	gen_move_size(w->e, root(w), world_flags(w, 60), gen_of(4), gen_of(6));
	gen_raise_oldest(w->e, root(w), TYPE_FILE);
	for (uint32_t i = 0; i < ARRAY_SIZE(before); i++) {
		assert_int_equal(world_seq(w, i), 5);
		assert_int_equal(list_seq(w, i), 5);
		assert_int_equal(refs_bits(w, i), before[i] & W); /* W alone is kept */
	}
	assert_int_equal(list_seq(w, 60), 6);
	assert_true(at_head(w, 50)); /* to the tail, behind the old inhabitants */
	assert_true(at_tail(w, ARRAY_SIZE(before) - 1));
	/* Saturated folios are not counted as protected (F.5). */
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++) {
		assert_int_equal(root(w)->gen.protected_[gen_of(4)][TYPE_FILE][tier],
				 expected[tier]);
		assert_int_equal(root(w)->gen.avg_total[TYPE_FILE][tier], expected[tier] / 2);
	}
	expect_window(w, 7, 4, 5);
	world_check(w);
	world_free(w);
}

/* The lock is given up after 4096 folios, and the work resumed. */
static void test_forced_lets_go(void **unused)
{
	static const struct {
		uint32_t nr, yields;
	} cases[] = {{4095, 0}, {4096, 1}, {9000, 2}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);

		put_range(w, 0, cases[i].nr, 4, 0);
		assert_true(gen_inc_max_seq(w->e, root(w), 7, 60));
		assert_int_equal(w->nr_yields, cases[i].yields);
		expect_window(w, 8, 5, 5);
		for (uint32_t page = 0; page < cases[i].nr; page++)
			assert_int_equal(world_seq(w, page), 5);
		world_check(w);
		world_free(w);
	}
}

/* F.7: what may not be evicted is not touched; the index is reused, and the coldest become the
 * youngest. */
static void test_shortcut(void **unused)
{
	static const struct {
		int swappiness;
		int64_t anon, file;
	} cases[] = {
		{60, 5, 5}, {200, 5, 5}, {1, 5, 5}, {0, 8, 5}, {201, 5, 8},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);

		put(w, 0, FOLIAGE_FOLIO_ANON, 4, 0);
		put(w, 1, 0, 4, 0);
		set_tier(w, TYPE_ANON, 0, 10, 20);
		set_tier(w, TYPE_FILE, 0, 30, 40);
		assert_true(gen_inc_max_seq(w->e, root(w), 7, cases[i].swappiness));
		expect_window(w, 8, 5, 5);
		assert_int_equal(world_seq(w, 0), cases[i].anon);
		assert_int_equal(world_seq(w, 1), cases[i].file);
		/* Both carry over, whether they moved or not. */
		assert_int_equal(root(w)->gen.avg_refaulted[TYPE_ANON][0], 5);
		assert_int_equal(root(w)->gen.avg_refaulted[TYPE_FILE][0], 15);
		world_check(w);
		world_free(w);
	}
}

/* ---- closing what is empty ---- */

static void test_close_empty(void **unused)
{
	static const struct {
		uint64_t anon_seq, file_seq; /* the only page of each type */
		int swappiness;
		bool advanced;
		uint64_t anon, file;
	} cases[] = {
		{4, 4, 60, false, 4, 4},
		{4, 5, 60, true, 4, 5}, /* each type by itself */
		{5, 5, 60, true, 5, 5},
		{7, 7, 60, true, 6, 6}, /* two generations stay */
		{7, 6, 0, true, 4, 6},  /* anon is not touched without swap */
		{6, 7, 201, true, 6, 4},
		{6, 4, 60, true, 5, 4}, /* file lags: anon stays within reach */
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);

		put(w, 0, FOLIAGE_FOLIO_ANON, cases[i].anon_seq, 0);
		put(w, 1, 0, cases[i].file_seq, 0);
		assert_int_equal(gen_try_inc_min_seq(w->e, root(w), cases[i].swappiness),
				 cases[i].advanced);
		expect_window(w, 7, cases[i].anon, cases[i].file);
		world_check(w);
		world_free(w);
	}
}

/* The reach rule both ways: s = max_seq - 2; who is beyond it while the other is below comes back
 * to it. */
static void test_reach(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put(w, 0, FOLIAGE_FOLIO_ANON, 4, 0);
	put(w, 1, 0, 7, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 60));
	expect_window(w, 7, 4, 5);
	world_free(w);
	/* At s the other does not hold back. */
	w = world_window("mglru", 7, 4);
	put(w, 0, FOLIAGE_FOLIO_ANON, 5, 0);
	put(w, 1, 0, 7, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 60));
	expect_window(w, 7, 5, 6);
	world_free(w);
	/* One type only: no rule. */
	w = world_window("mglru", 7, 4);
	put(w, 0, FOLIAGE_FOLIO_ANON, 4, 0);
	put(w, 1, 0, 7, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 0));
	expect_window(w, 7, 4, 6);
	world_free(w);
}

/* Each generation closed carries over. */
static void test_close_carries_over(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 2, 80, 0);
	put(w, 0, 0, 7, 0);
	put(w, 1, FOLIAGE_FOLIO_ANON, 6, 0);
	assert_true(gen_try_inc_min_seq(w->e, root(w), 60));
	expect_window(w, 7, 6, 6);
	assert_int_equal(root(w)->gen.avg_refaulted[TYPE_FILE][2], 20);
	world_free(w);
}

/* A page promoted by flag still lies on the old list: the generation is not empty. */
static void test_lazy_keeps_open(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 1);
	world_mark(w, 0, 1);
	put(w, 1, FOLIAGE_FOLIO_ANON, 4, 0);
	assert_false(gen_try_inc_min_seq(w->e, root(w), 60));
	expect_window(w, 7, 4, 4);
	world_check(w);
	world_free(w);
}

/* ---- should_run_aging, through a session ---- */

/* One pass over the root at `priority`; says whether a generation was opened. */
static bool ages(struct world *w, int priority, int swappiness)
{
	uint64_t before = gen_max_seq(root(w));
	struct scan_control sc;

	world_scan_control(w, &sc);
	sc.priority = priority;
	sc.swappiness = swappiness;
	sc.nr_to_reclaim = 1;
	gen_shrink_lruvec(w->e, root(w), &sc);
	return gen_max_seq(root(w)) != before;
}

static void test_should_run_aging(void **unused)
{
	static const struct {
		uint64_t min_anon, min_file;
		int priority, swappiness;
		bool ages;
	} cases[] = {
		{4, 4, 12, 60, false}, {4, 4, 3, 60, false}, /* four generations: never */
		{5, 5, 12, 60, false}, {5, 5, 11, 60, true}, /* three: below priority 12 */
		{6, 6, 12, 60, true},  {6, 6, 5, 60, true},  /* two: always */
		{5, 6, 12, 60, false}, {5, 6, 11, 60, true}, /* the farthest evictable type decides
							      */
		{4, 6, 12, 0, true},   {4, 5, 11, 0, true},   {4, 5, 12, 0, false},
		{6, 4, 12, 0, false},  {6, 4, 12, 201, true}, {4, 6, 3, 201, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);

		set_window(w, 7, cases[i].min_anon, cases[i].min_file);
		for (uint32_t page = 0; page < 8192; page++)
			put(w, page, page % 2 ? FOLIAGE_FOLIO_ANON : 0,
			    page % 2 ? cases[i].min_anon : cases[i].min_file, 0);
		if (ages(w, cases[i].priority, cases[i].swappiness) != cases[i].ages)
			fail_msg("case %zu", i);
		world_check(w);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_window_of_four),
		cmocka_unit_test(test_one_caller_each),
		cmocka_unit_test(test_forced_mainline),
		cmocka_unit_test(test_forced_lets_go),
		cmocka_unit_test(test_shortcut),
		cmocka_unit_test(test_close_empty),
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_close_carries_over),
		cmocka_unit_test(test_lazy_keeps_open),
		cmocka_unit_test(test_should_run_aging),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
