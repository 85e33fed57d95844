/* SPDX-License-Identifier: MIT
 *
 * The balance of the classic LRU (A.5; section F, test 8): the inactive ratio, may_deactivate, the
 * special modes, both cost models, the fractions and the budgets.
 */
#include "test_clru_world.h"

static const uint64_t GIB = UINT64_C(1) << 18; /* pages */

static void set_file(struct world *w, uint64_t inactive, uint64_t active)
{
	world_set(&w->lv->clru.size[LIST_INACTIVE_FILE], (int64_t)inactive);
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], (int64_t)active);
}

/* The largest inactive list that is low is the one that says the ratio. */
static void expect_ratio(struct world *w, uint64_t total, uint64_t ratio)
{
	uint64_t inactive = (total + ratio) / (ratio + 1); /* ceil(total / (ratio + 1)) */

	set_file(w, inactive, total - inactive);
	assert_false(clru_inactive_is_low(w->e, w->lv, TYPE_FILE));
	set_file(w, inactive - 1, total - inactive + 1);
	assert_true(clru_inactive_is_low(w->e, w->lv, TYPE_FILE));
}

static void ratios(void **state)
{
	static const struct {
		double gib;
		uint64_t ratio;
	} table[] = {{0.5, 1}, {1, 3}, {10, 10}, {100, 31}, {1024, 101}, {10240, 320}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t total = (uint64_t)(table[i].gib * (double)GIB);
		struct foliage_engine_options o = {.exclusive = true, .scale = 16};
		struct world *w = world_new("clru", NULL);

		expect_ratio(w, total, table[i].ratio);
		world_free(w);
		/* A sixteenth that stands for the same memory has the same ratio. */
		w = world_new("clru", &o);
		expect_ratio(w, total / 16, table[i].ratio);
		world_free(w);
	}
}

/* Active lists may be scanned while ACTIVATE moves, or while inactive is low, or when forced. */
static void deactivation(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	set_file(w, 100, 100);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	world_set(&w->lv->stat[STAT_ACTIVATE_FILE], 7);
	for (int pass = 0; pass < 2; pass++) { /* every pass of the session */
		clru_prepare_scan(w->e, &sc);
		assert_int_equal(sc.may_deactivate, 1 << TYPE_FILE);
	}
	clru_end_session(w->e, &sc);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	set_file(w, 99, 100);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 1 << TYPE_FILE);
	set_file(w, 100, 100);
	world_set(&w->lv->clru.size[LIST_ACTIVE_ANON], 1);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 1 << TYPE_ANON);
	sc.force_deactivate = true;
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 1 << TYPE_ANON | 1 << TYPE_FILE);
	world_free(w);
}

/* The subtree of the target decides, not the lruvec alone. */
static void subtree(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	set_file(w, 10, 100);
	assert_true(clru_inactive_is_low(w->e, w->root, TYPE_FILE));
	world_set(&w->root->clru.size[LIST_INACTIVE_FILE], 90);
	assert_false(clru_inactive_is_low(w->e, w->root, TYPE_FILE));
	assert_true(clru_inactive_is_low(w->e, w->lv, TYPE_FILE));
	world_set(&w->lv->stat[STAT_ACTIVATE_FILE], 1);
	sc.target = 0;
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 1 << TYPE_FILE);
	world_free(w);
}

/* clru-6.12 sees only what the last flush saw; its scan budget alone is exact. */
static void frozen(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4];

	(void)state;
	set_file(w, 8192, 16384);
	world_set(&w->lv->stat[STAT_ACTIVATE_FILE], 5);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	assert_false(sc.cache_trim_mode);
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 2);
	assert_int_equal(nr[LIST_ACTIVE_FILE], 4);
	foliage_flush_stats(w->e);
	set_file(w, 16384, 0);
	clru_prepare_scan(w->e, &sc); /* frozen: low */
	assert_int_equal(sc.may_deactivate, 1 << TYPE_FILE);
	clru_end_session(w->e, &sc);
	foliage_flush_stats(w->e);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	assert_true(sc.cache_trim_mode);
	/* The snapshot is of the frozen number: what moved since shows after the next flush, for
	 * one session. */
	world_set(&w->lv->stat[STAT_ACTIVATE_FILE], 9);
	clru_end_session(w->e, &sc);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	foliage_flush_stats(w->e);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 1 << TYPE_FILE);
	clru_end_session(w->e, &sc);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.may_deactivate, 0);
	world_free(w);
}

static void cache_trim(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	set_file(w, 4095, 0);
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.cache_trim_mode); /* 4095 >> 12 is nothing */
	set_file(w, 4096, 0);
	clru_prepare_scan(w->e, &sc);
	assert_true(sc.cache_trim_mode);
	set_file(w, 4096, 5000);
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.cache_trim_mode);
	world_free(w);
}

static void tiny_file(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);
	struct node *node = &w->e->nodes[0];

	(void)state;
	set_file(w, 600, 300);
	world_set(&w->lv->clru.size[LIST_INACTIVE_ANON], 4096);
	node->free_pages = 100;
	node->high_watermark = 1000;
	sc.target = 0;
	sc.root_reclaim = true;
	clru_prepare_scan(w->e, &sc);
	assert_true(sc.file_is_tiny);
	node->free_pages = 101;
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.file_is_tiny);
	node->free_pages = 100;
	world_set(&w->lv->clru.size[LIST_INACTIVE_ANON], 4095);
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.file_is_tiny);
	world_set(&w->lv->clru.size[LIST_INACTIVE_ANON], 4096);
	world_set(&w->lv->clru.size[LIST_ACTIVE_ANON], 4097); /* anon may be deactivated */
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.file_is_tiny);
	world_set(&w->lv->clru.size[LIST_ACTIVE_ANON], 0);
	sc.root_reclaim = false; /* only global reclaim */
	clru_prepare_scan(w->e, &sc);
	assert_false(sc.file_is_tiny);
	world_free(w);
}

/* Newest: 32 a page read back (anon: or written), 1 a page rotated, since the last pass; halved
 * until within a quarter of the lists. */
static void cost_sampled(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	set_file(w, 4000, 0);
	world_set(&w->lv->stat[STAT_PGROTATE_FILE], 10);
	world_set(&w->lv->stat[STAT_RESTORE_FILE], 2);
	world_set(&w->lv->stat[STAT_PGROTATE_ANON], 3);
	world_set(&w->lv->stat[STAT_RESTORE_ANON], 4);
	world_set(&w->lv->stat[STAT_PSWPOUT], 5);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.file_cost, 74);
	assert_int_equal(sc.anon_cost, 3 + 32 * 9);
	clru_prepare_scan(w->e, &sc); /* nothing new */
	assert_int_equal(sc.file_cost, 74);
	/* 74 + 3705 + 291 = 4070 > 1000: halved three times (4070, 2035, 1017, 508). */
	world_set(&w->lv->stat[STAT_PGROTATE_FILE], 10 + 3705);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.file_cost, 3779 / 8);
	assert_int_equal(sc.anon_cost, 291 / 8);
	/* Exactly a quarter stays. */
	world_set(&w->lv->stat[STAT_PGROTATE_FILE], 3715 + 1000 - 3779 / 8 - 291 / 8);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.file_cost + sc.anon_cost, 1000);
	world_set(&w->lv->stat[STAT_PGROTATE_FILE], 3716 + 1000 - 3779 / 8 - 291 / 8);
	clru_prepare_scan(w->e, &sc);
	assert_true(sc.file_cost + sc.anon_cost <= 501);
	/* This model ignores events. */
	clru_note_cost(w->e, w->lv, TYPE_FILE, 100, 0);
	assert_int_equal(w->lv->clru.cost[TYPE_FILE], sc.file_cost);
	world_free(w);
}

/* Older: added at the event, for all ancestors, both halved once when beyond a quarter of the
 * frozen lists. */
static void cost_noted(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	set_file(w, 4000, 0);
	foliage_flush_stats(w->e);
	set_file(w, 0, 0);
	clru_note_cost(w->e, w->lv, TYPE_ANON, 10, 5);
	assert_int_equal(w->lv->clru.cost[TYPE_ANON], 325);
	assert_int_equal(w->root->clru.cost[TYPE_ANON], 325);
	clru_note_cost(w->e, w->lv, TYPE_FILE, 0, 675);
	assert_int_equal(w->lv->clru.cost[TYPE_FILE], 675);
	clru_note_cost(w->e, w->lv, TYPE_FILE, 0, 3001);
	assert_int_equal(w->lv->clru.cost[TYPE_FILE], 1838);
	assert_int_equal(w->lv->clru.cost[TYPE_ANON], 162);
	clru_prepare_scan(w->e, &sc);
	assert_int_equal(sc.anon_cost, 162);
	assert_int_equal(sc.file_cost, 1838);
	/* A refault of a workingset folio is such an event: 32 a page. */
	w->shadows[0] = shadow_pack(w->e->memcgs[w->memcg].id, 0, 0, true);
	world_add(w, 0, 0);
	assert_int_equal(w->lv->clru.cost[TYPE_FILE], (1838 + 32) / 2);
	world_free(w);
}

/* Budgets of anon and file for lists of 2^20 pages at priority 2. */
static void counts(struct world *w, struct scan_control *sc, uint64_t nr[4])
{
	for (int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++)
		world_set(&w->lv->clru.size[list], 1 << 20);
	if (sc->priority)
		sc->priority = 2;
	clru_scan_count(w->e, w->lv, sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], nr[LIST_ACTIVE_ANON]);
	assert_int_equal(nr[LIST_INACTIVE_FILE], nr[LIST_ACTIVE_FILE]);
}

static void fractions(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);
	const uint64_t whole = 1 << 18;
	uint64_t nr[4];

	(void)state;
	w->swap_free = 1000;
	/* Equal costs: swappiness : 200 - swappiness. ap = 60 * (6c+1) / (3c+1), floored, and so
	 * on. */
	sc.anon_cost = sc.file_cost = 1000;
	sc.swappiness = 60;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], whole * 119 / (119 + 279));
	assert_int_equal(nr[LIST_INACTIVE_FILE], whole * 279 / (119 + 279));
	sc.swappiness = 100;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], whole / 2);
	assert_int_equal(nr[LIST_INACTIVE_FILE], whole / 2);
	/* However dear anon is, it keeps a third before swappiness: 149 : 299. */
	sc.anon_cost = 1000000;
	sc.file_cost = 0;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], whole * 149 / 448);
	assert_int_equal(nr[LIST_INACTIVE_FILE], whole * 299 / 448);
	sc.anon_cost = UINT64_C(1) << 40;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], whole * 149 / 448);
	world_free(w);
}

/* The order of the rules of get_scan_count: each case meets the ones after it as well. */
static void balances(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4];

	(void)state;
	w->swap_free = 1000;
	sc.swappiness = SWAPPINESS_ANON_ONLY;
	sc.cache_trim_mode = true;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] == 1 << 18 && nr[LIST_INACTIVE_FILE] == 0);
	w->swap_free = 0;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 0);
	sc.swappiness = 60;
	sc.file_is_tiny = true;
	counts(w, &sc, nr); /* no swap */
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 1 << 18);
	w->swap_free = 1000;
	sc.may_swap = false;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 1 << 18);
	sc.may_swap = true;
	sc.swappiness = 0;
	counts(w, &sc, nr); /* memcg limit, swappiness 0 */
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 1 << 18);
	sc.root_reclaim = true;
	counts(w, &sc, nr); /* global falls through, to file_is_tiny */
	assert_true(nr[LIST_INACTIVE_ANON] == 1 << 18 && nr[LIST_INACTIVE_FILE] == 0);
	sc.swappiness = 60;
	sc.priority = 0;
	counts(w, &sc, nr); /* last priority: equal */
	assert_true(nr[LIST_INACTIVE_ANON] == 1 << 20 && nr[LIST_INACTIVE_FILE] == 1 << 20);
	sc.priority = 2;
	sc.file_is_tiny = false;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 1 << 18);
	sc.cache_trim_mode = false;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] > 0 && nr[LIST_INACTIVE_FILE] > nr[LIST_INACTIVE_ANON]);
	world_free(w);

	/* 6.12 knows no 201. */
	w = world_new("clru-6.12", NULL);
	sc = world_scan(w);
	w->swap_free = 1000;
	sc.swappiness = SWAPPINESS_ANON_ONLY;
	sc.cache_trim_mode = true;
	counts(w, &sc, nr);
	assert_true(nr[LIST_INACTIVE_ANON] == 0 && nr[LIST_INACTIVE_FILE] == 1 << 18);
	world_free(w);
}

/* The memcg's own swappiness when the request names none. */
static void own_swappiness(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4];

	(void)state;
	w->swap_free = 1000;
	w->e->memcgs[w->memcg].swappiness = 0;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_ANON], 0);
	w->e->memcgs[w->memcg].swappiness = 200;
	counts(w, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 0);
	world_free(w);
}

/* An offline memcg is drained though its share rounds to nothing. */
static void offline(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4];

	(void)state;
	w->swap_free = 1000;
	sc.target = 0;
	set_file(w, 20, 3000);
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 0);
	w->e->memcgs[w->memcg].online = false;
	sc.cache_trim_mode = true;
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 20);
	assert_int_equal(nr[LIST_ACTIVE_FILE], 32);
	/* Fractions round up: swappiness 60 of 20 and of 32, 7 : 13.something. */
	sc.cache_trim_mode = false;
	sc.swappiness = 60;
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 14); /* 20 * 140 / 200, exact */
	assert_int_equal(nr[LIST_ACTIVE_FILE], 23);   /* 22.4, up */
	world_free(w);
}

/* Protection shrinks the size before the priority does; how much is the memcg's matter. */
static void protection(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4], left;

	(void)state;
	world_set(&w->lv->clru.size[LIST_INACTIVE_FILE], 80000);
	world_set(&w->e->memcgs[w->memcg].usage, 80000);
	world_set(&w->e->memcgs[0].usage, 80000);
	w->e->memcgs[w->memcg].low = 40000;
	sc.target = 0;
	sc.priority = 3;
	left = memcg_protect_scan(w->e, &sc, w->memcg, 80000);
	assert_int_equal(left, 80000 - UINT64_C(80000) * 40000 / 80001);
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], left >> 3);
	sc.target = w->memcg; /* nobody protects a memcg against its own limit */
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 10000);
	world_free(w);
}

/* A scaled-down lruvec has the budget of the modelled size, but never more than it holds. */
static void scaled(void **state)
{
	struct foliage_engine_options o = {.exclusive = true, .scale = 16};
	struct world *w = world_new("clru", &o);
	struct scan_control sc = world_scan(w);
	uint64_t nr[4];

	(void)state;
	set_file(w, 100000, 0);
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 1600000 >> 12);
	sc.priority = 2;
	clru_scan_count(w->e, w->lv, &sc, nr);
	assert_int_equal(nr[LIST_INACTIVE_FILE], 100000);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ratios),         cmocka_unit_test(deactivation),
		cmocka_unit_test(subtree),        cmocka_unit_test(frozen),
		cmocka_unit_test(cache_trim),     cmocka_unit_test(tiny_file),
		cmocka_unit_test(cost_sampled),   cmocka_unit_test(cost_noted),
		cmocka_unit_test(fractions),      cmocka_unit_test(balances),
		cmocka_unit_test(own_swappiness), cmocka_unit_test(offline),
		cmocka_unit_test(protection),     cmocka_unit_test(scaled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
