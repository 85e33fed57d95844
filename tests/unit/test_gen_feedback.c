/* SPDX-License-Identifier: MIT
 *
 * Tier feedback (B.6) at its edges, what is carried over when a generation closes, and the recency
 * of a refault (B.7).
 */
#include "test_gen_common.h"

static int tier_idx(const struct world *w)
{
	return w->e->ops->rules->tier_idx(gen_knobs(w->e), root(w), TYPE_FILE);
}

/* F.6: a ratio of exactly 1.5 is not protected, nor are 63 refaults. */
static void test_edges(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	assert_int_equal(tier_idx(w), 3);
	set_tier(w, TYPE_FILE, 0, 99, 936); /* (99 + 1) / (936 + 64) = 10 % */
	for (unsigned int tier = 1; tier < MAX_NR_TIERS; tier++) {
		set_tier(w, TYPE_FILE, tier, 150, 1000);
		assert_int_equal(tier_idx(w), 3);
		set_tier(w, TYPE_FILE, tier, 151, 1000);
		assert_int_equal(tier_idx(w), (int)tier - 1);
		set_tier(w, TYPE_FILE, tier, 63, 0);
		assert_int_equal(tier_idx(w), 3);
		set_tier(w, TYPE_FILE, tier, 64, 0);
		assert_int_equal(tier_idx(w), (int)tier - 1);
		set_tier(w, TYPE_FILE, tier, 0, 0);
	}
	world_free(w);
}

/* Always against tier 0, and the first tier that is not in order ends the search. */
static void test_against_tier_0(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	set_tier(w, TYPE_FILE, 0, 99, 936);
	set_tier(w, TYPE_FILE, 1, 140, 1000);
	set_tier(w, TYPE_FILE, 2, 160, 1000); /* not above what is below by itself */
	assert_int_equal(tier_idx(w), 1);
	set_tier(w, TYPE_FILE, 2, 100, 1000);
	set_tier(w, TYPE_FILE, 1, 160, 1000);
	set_tier(w, TYPE_FILE, 3, 0, 1000);
	assert_int_equal(tier_idx(w), 0);
	world_free(w);
}

static void test_gains(void **unused)
{
	/* policy, the highest number of refaults of 1000 that is in order against 10 % */
	static const struct {
		const char *policy;
		int64_t edge;
	} cases[] = {
		{"mglru", 150},
		{"mglru:gain_base=1", 300},
		{"mglru:gain_tier=4", 200},
		{"mglru-revert", 150},
		{"mglru-6.12", 200},
		{"mglru-6.12:gain_base=2", 100},
		{"mglru-6.12:gain_tier=3", 300},
		{"fg", 200},
		{"fg:gain_base=2", 100},
		{"fg:gain_tier=3", 300},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);

		set_tier(w, TYPE_FILE, 0, 99, 936);
		set_tier(w, TYPE_FILE, 1, cases[i].edge, 1000);
		assert_int_equal(tier_idx(w), 3);
		set_tier(w, TYPE_FILE, 1, cases[i].edge + 1, 1000);
		assert_int_equal(tier_idx(w), 0);
		world_free(w);
	}
}

/* Averages and the pages that were protected belong to the totals. */
static void test_totals(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct lru_gen *g = &root(w)->gen;
	struct ctrl_pos pos;

	(void)unused;
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++) {
		g->avg_refaulted[TYPE_FILE][tier] = 1 + tier;
		g->avg_total[TYPE_FILE][tier] = 10 + tier;
		g->protected_[0][TYPE_FILE][tier] = 100 + tier;
		set_tier(w, TYPE_FILE, tier, 1000, 10000);
	}
	pos = gen_ctrl_pos(gen_knobs(w->e), root(w), TYPE_FILE, 1, 2, 7);
	assert_int_equal(pos.refaulted, 2 + 3 + 2000);
	assert_int_equal(pos.total, 11 + 12 + 101 + 102 + 20000);
	assert_int_equal(pos.gain, 7);
	world_free(w);
}

static void test_ok_rounding(void **unused)
{
	const struct ctrl_pos sp = {.refaulted = 0, .total = 0, .gain = 1};
	struct ctrl_pos pv = {.refaulted = 63, .total = 0, .gain = 1};

	(void)unused;
	assert_true(gen_ctrl_ok(&sp, &pv));
	pv.refaulted = 64;
	pv.total = 4096; /* 64 x 64 <= 1 x 4096 */
	assert_true(gen_ctrl_ok(&sp, &pv));
	pv.total = 4095;
	assert_false(gen_ctrl_ok(&sp, &pv));
}

/* ---- carry-over ---- */

static void test_carry_over(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	struct lru_gen *g = &root(w)->gen;

	(void)unused;
	set_tier(w, TYPE_FILE, 1, 101, 201);
	set_tier(w, TYPE_ANON, 1, 7, 7);
	g->protected_[0][TYPE_FILE][1] = 30;
	gen_carry_over(w->e, root(w), TYPE_FILE);
	assert_int_equal(g->avg_refaulted[TYPE_FILE][1], 50);
	assert_int_equal(g->avg_total[TYPE_FILE][1], 115);
	assert_int_equal(refaulted(w, TYPE_FILE, 1), 0);
	assert_int_equal(evicted(w, TYPE_FILE, 1), 0);
	assert_int_equal(protected_in(w, TYPE_FILE, 1), 0);
	/* The other type is left alone. */
	assert_int_equal(refaulted(w, TYPE_ANON, 1), 7);
	assert_int_equal(g->avg_refaulted[TYPE_ANON][1], 0);
	set_tier(w, TYPE_FILE, 1, 11, 6);
	gen_carry_over(w->e, root(w), TYPE_FILE);
	assert_int_equal(g->avg_refaulted[TYPE_FILE][1], 30);
	assert_int_equal(g->avg_total[TYPE_FILE][1], 60);
	gen_carry_over(w->e, root(w), TYPE_FILE);
	assert_int_equal(g->avg_refaulted[TYPE_FILE][1], 15);
	world_free(w);
}

/* With history the slots live until aging takes them for a new generation. */
static void test_histgens(void **unused)
{
	static const char *const policies[] = {"mglru:histgens=4", "mglru-6.12:histgens=4",
					       "fg:histgens=4"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 5);
		struct lru_gen *g = &root(w)->gen;

		atomic_store(&g->refaulted[1][TYPE_FILE][1], 100); /* of generation 5 */
		atomic_store(&g->refaulted[0][TYPE_FILE][1], 8);   /* of generation 8, to be */
		gen_carry_over(w->e, root(w), TYPE_FILE);
		assert_int_equal(g->avg_refaulted[TYPE_FILE][1], 50);
		assert_int_equal(g->refaulted[1][TYPE_FILE][1], 100);
		world_age_to(w, 0, 8);
		assert_int_equal(g->refaulted[0][TYPE_FILE][1], 0);
		assert_int_equal(g->refaulted[1][TYPE_FILE][1], 100);
		/* The feedback reads the slot of the oldest generation. */
		set_window(w, 8, 6, 6);
		assert_int_equal(hist_of(w, TYPE_FILE), 2);
		gen_refault_tier(w->e, root(w), 0, 3);
		assert_int_equal(g->refaulted[2][TYPE_FILE][3], 1);
		world_free(w);
	}
}

/* ---- which type ---- */

/* B.6: all tiers of anon with gain swappiness against all of file with 200 - swappiness. */
static void test_type_choice(void **unused)
{
	static const struct {
		int swappiness;
		int64_t anon_refaults, file_refaults;
		bool anon;
	} cases[] = {
		{60, 0, 100, true}, /* file refaults and anon does not: scan anon */
		{60, 99, 100, false},   {100, 99, 100, false},   {0, 0, 1000, false},
		{1, 0, 1000, false},                             /* however much it refaults */
		{2, 0, 1000, true},     {199, 10000, 63, false}, /* too few refaults of file to say
								  */
		{200, 10000, 63, true}, {200, 10000, 100, true}, {201, 10000, 100, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc;
		int64_t anon, file;

		for (uint32_t page = 0; page < 100; page++) {
			put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
			put(w, 100 + page, 0, 4, 0);
		}
		set_tier(w, TYPE_ANON, 2, cases[i].anon_refaults, 936); /* not only tier 0 */
		set_tier(w, TYPE_FILE, 3, cases[i].file_refaults, 1000);
		world_scan_control(w, &sc);
		gen_evict(w->e, root(w), &sc, 16, cases[i].swappiness);
		anon = stat_of_root(w, STAT_PGSCAN_ANON);
		file = stat_of_root(w, STAT_PGSCAN_FILE);
		if ((anon > 0) != cases[i].anon || (file > 0) == cases[i].anon)
			fail_msg("case %zu: %lld anon, %lld file", i, (long long)anon,
				 (long long)file);
		world_free(w);
	}
}

/* The exact edge at swappiness 60: pv.ref * (sp.tot + 64) * 60 <= (sp.ref + 1) * pv.tot * 140. */
static void test_type_edge(void **unused)
{
	for (int over = 0; over < 2; over++) {
		struct world *w = world_window("mglru", 7, 4);
		struct scan_control sc;

		for (uint32_t page = 0; page < 10; page++) {
			put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
			put(w, 100 + page, 0, 4, 0);
		}
		set_tier(w, TYPE_ANON, 0, 59, 936); /* 60 / 1000 */
		set_tier(w, TYPE_FILE, 0, 140 + over, 1000);
		world_scan_control(w, &sc);
		gen_evict(w->e, root(w), &sc, 4, 60);
		assert_int_equal(stat_of_root(w, STAT_PGSCAN_FILE), over ? 0 : 4);
		assert_int_equal(stat_of_root(w, STAT_PGSCAN_ANON), over ? 4 : 0);
		world_free(w);
	}
	(void)unused;
}

/* ---- recency ---- */

/* |max_seq - token| < 4 in the stored width: 3 behind counts, 4 does not. */
static void test_recency(void **unused)
{
	static const char *const policies[] = {"mglru", "fg"};
	static const struct {
		uint64_t seq;
		bool recent;
	} cases[] = {{7, true},  {6, true},  {4, true},  {3, false},
		     {0, false}, {10, true}, {11, false}};

	(void)unused;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct world *w = world_window(policies[p], 7, 4);

			w->pages[0].shadow = make_shadow(w, 0, cases[i].seq, 0);
			world_add(w, 0, 0);
			assert_int_equal(stat_of_root(w, STAT_REFAULT_FILE), 1);
			assert_int_equal(refaulted(w, TYPE_FILE, 0), cases[i].recent);
			assert_int_equal(stat_of_root(w, STAT_REFAULT_STALE), !cases[i].recent);
			world_free(w);
		}
}

/* Sequence numbers are compared in the bits that a shadow has for them. */
static void test_recency_wraps(void **unused)
{
	const uint64_t high = SHADOW_SEQ_MASK + 1;
	struct world *w = world_window("mglru", high + 6, high + 4);

	(void)unused;
	w->pages[0].shadow = make_shadow(w, 0, high + 4, 0);
	world_add(w, 0, 0);
	assert_int_equal(refaulted(w, TYPE_FILE, 0), 1);
	world_free(w);
}

/* Only the evicting lruvec counts its refaults. */
static void test_other_lruvec(void **unused)
{
	static const char *const policies[] = {"mglru", "fg", "mglru-6.12"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);
		int a = foliage_memcg_create(w->e, 0, "a");

		assert_true(a > 0);
		w->pages[0].shadow = make_shadow(w, (uint32_t)a, 4, 7);
		world_add(w, 0, 0);
		w->pages[1].shadow = make_shadow(w, 0, 4, 7);
		world_add_to(w, 1, (uint32_t)a, 0, 0, 0, 0);
		assert_int_equal(memcg_stat(w->e, 0, STAT_REFAULT_FILE), 0);
		assert_int_equal(refs_bits(w, 0), 0);
		assert_int_equal(refs_bits(w, 1), 0);
		/* Overwritten, not read: no refault. */
		w->pages[2].shadow = make_shadow(w, 0, 4, 7);
		world_add(w, 2, FOLIAGE_FOLIO_WRITE);
		assert_int_equal(memcg_stat(w->e, 0, STAT_REFAULT_FILE), 0);
		assert_int_equal(refs_bits(w, 2), 0);
		/* A large folio counts its pages. */
		w->pages[3].shadow = make_shadow(w, 0, 4, 0);
		world_add_to(w, 3, 0, 0, 0, 4, 0);
		assert_int_equal(memcg_stat(w->e, 0, STAT_REFAULT_FILE), 16);
		assert_int_equal(refaulted(w, TYPE_FILE, 0), 16);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),         cmocka_unit_test(test_against_tier_0),
		cmocka_unit_test(test_gains),         cmocka_unit_test(test_totals),
		cmocka_unit_test(test_ok_rounding),   cmocka_unit_test(test_carry_over),
		cmocka_unit_test(test_histgens),      cmocka_unit_test(test_type_choice),
		cmocka_unit_test(test_type_edge),     cmocka_unit_test(test_recency),
		cmocka_unit_test(test_recency_wraps), cmocka_unit_test(test_other_lruvec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
