/* SPDX-License-Identifier: MIT
 *
 * Non-resident age and refault distance (A.7; section F, test 9).
 */
#include "test_clru_world.h"

static uint64_t shadow_of(struct world *w, uint64_t time, bool workingset)
{
	return shadow_pack(w->e->memcgs[w->memcg].id, 0, time, workingset);
}

/* Bring folio `id` back, evicted at `then`, with the clock of memcg a at `now`: does it come back
 * active? */
static bool comes_back_active(struct world *w, foliage_folio id, uint32_t flags, int64_t now,
			      uint64_t shadow)
{
	bool active;

	world_set(&w->lv->clru.nonresident_age, now);
	w->shadows[id] = shadow;
	world_add(w, id, flags);
	active = world_flags(w, id) & F_ACTIVE;
	foliage_folio_remove(w->e, &w->cpu, id);
	return active;
}

/* Equal to the active list is recent, one more is not. */
static void distance(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 100);
	world_set(&w->lv->clru.size[LIST_INACTIVE_FILE], 1000);
	assert_false(comes_back_active(w, 0, 0, 1101, shadow_of(w, 1000, false)));
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1101);
	assert_int_equal(world_stat(w, STAT_REFAULT_FILE), 1);
	assert_int_equal(world_stat(w, STAT_REFAULT_STALE), 1);
	assert_int_equal(world_stat(w, STAT_ACTIVATE_FILE), 0);
	assert_true(comes_back_active(w, 0, 0, 1100, shadow_of(w, 1000, false)));
	/* It activates: that ages the clock. */
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1101);
	assert_int_equal(world_stat(w, STAT_REFAULT_FILE), 2);
	assert_int_equal(world_stat(w, STAT_ACTIVATE_FILE), 1);
	assert_int_equal(world_stat(w, STAT_RESTORE_FILE), 0);
	assert_int_equal(counter_read(&w->root->clru.nonresident_age), 1);
	world_free(w);
}

/* Time is 36 bits wide and wraps. */
static void distance_wraps(void **state)
{
	struct world *w = world_new("clru", NULL);
	int64_t wrap = INT64_C(1) << 36;

	(void)state;
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 15);
	assert_true(
		comes_back_active(w, 0, 0, wrap + 10, shadow_of(w, SHADOW_TIME_MASK - 4, false)));
	assert_false(
		comes_back_active(w, 0, 0, wrap + 11, shadow_of(w, SHADOW_TIME_MASK - 4, false)));
	world_free(w);
}

/* Memory of 2^38 pages: the clock is stored in units of four. */
static void coarse_clock(void **state)
{
	struct foliage_engine_options o = {.exclusive = true, .totalram_pages = UINT64_C(1) << 38};
	struct world *w = world_new("clru", &o);

	(void)state;
	world_fill(w, 0, 1, 0);
	world_set(&w->lv->clru.nonresident_age, 4003);
	assert_int_equal(shadow_time(workingset_eviction(w->e, w->lv, 0)), 1000);
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 20);
	assert_true(comes_back_active(w, 1, 0, 4020, shadow_of(w, 1000, false)));
	assert_false(comes_back_active(w, 1, 0, 4021, shadow_of(w, 1000, false)));
	world_free(w);
}

static void workingset_bit(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 10);
	w->shadows[3] = shadow_of(w, 0, true);
	world_add(w, 3, 0);
	assert_int_equal(world_flags(w, 3) & (F_ACTIVE | F_WORKINGSET | F_REFERENCED),
			 F_ACTIVE | F_WORKINGSET);
	assert_int_equal(world_stat(w, STAT_RESTORE_FILE), 1);
	/* Too old: the bit is worth nothing. */
	world_set(&w->lv->clru.nonresident_age, 100);
	w->shadows[4] = shadow_of(w, 0, true);
	world_add(w, 4, 0);
	assert_int_equal(world_flags(w, 4) & (F_ACTIVE | F_WORKINGSET), 0);
	assert_int_equal(world_stat(w, STAT_RESTORE_FILE), 1);
	/* Evicted again, the bit goes into the shadow. */
	assert_true(shadow_workingset(workingset_eviction(w->e, w->lv, 3)));
	assert_false(shadow_workingset(workingset_eviction(w->e, w->lv, 4)));
	world_free(w);
}

/* What must give way: active file; for anon also inactive file; with swap the anon lists, but never
 * one's own inactive list. */
static void competitors(void **state)
{
	static const struct {
		int64_t swap, size;
		uint32_t flags;
	} cases[] = {
		{0, 1000, 0},
		{0, 1100, FOLIAGE_FOLIO_ANON},
		{5, 1000 + 10 + 1, 0},
		{5, 1100 + 10, FOLIAGE_FOLIO_ANON},
	};
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 1000);
	world_set(&w->lv->clru.size[LIST_INACTIVE_FILE], 100);
	world_set(&w->lv->clru.size[LIST_ACTIVE_ANON], 10);
	world_set(&w->lv->clru.size[LIST_INACTIVE_ANON], 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		w->swap_free = cases[i].swap;
		assert_true(comes_back_active(w, 0, cases[i].flags, cases[i].size,
					      shadow_of(w, 0, false)));
		assert_false(comes_back_active(w, 0, cases[i].flags, cases[i].size + 1,
					       shadow_of(w, 0, false)));
	}
	assert_int_equal(world_stat(w, STAT_REFAULT_ANON), 4);
	assert_int_equal(world_stat(w, STAT_ACTIVATE_ANON), 2);
	world_free(w);
}

/* Eviction, access and refault age the lruvec and all its ancestors; nobody below or beside. */
static void ancestors(void **state)
{
	struct world *w = world_new("clru:activate_batch=0", NULL);
	struct foliage_engine *e = w->e;
	struct lruvec *child, *sibling;
	int c = foliage_memcg_create(e, w->memcg, "child"),
	    s = foliage_memcg_create(e, 0, "sibling");

	(void)state;
	assert_true(c > 0 && s > 0);
	child = lruvec_of(e, (uint32_t)c, 0);
	sibling = lruvec_of(e, (uint32_t)s, 0);
	assert_int_equal(foliage_folio_add(e, &w->cpu, 0, (uint32_t)c, 0, 0, 0, 0, 0), 0);
	foliage_cpu_drain(e, &w->cpu);
	foliage_folio_mark_accessed(e, &w->cpu, 0);
	foliage_folio_mark_accessed(e, &w->cpu, 0);
	assert_int_equal(counter_read(&child->clru.nonresident_age), 1);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1);
	assert_int_equal(counter_read(&w->root->clru.nonresident_age), 1);
	/* Reclaim for memcg a's limit: the shadow names a and its time, though the folio is the
	 * child's. */
	world_set(&w->lv->clru.nonresident_age, 50);
	w->shadows[0] = workingset_eviction(e, w->lv, 0);
	assert_int_equal(shadow_memcg_id(w->shadows[0]), e->memcgs[w->memcg].id);
	assert_int_equal(shadow_time(w->shadows[0]), 50);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 51);
	assert_int_equal(counter_read(&w->root->clru.nonresident_age), 2);
	assert_int_equal(counter_read(&child->clru.nonresident_age), 1);
	/* It comes back in the sibling: a's clock and a's subtree judge, the sibling counts and
	 * ages. */
	world_set(&child->clru.size[LIST_ACTIVE_FILE], 1);
	assert_int_equal(foliage_folio_add(e, &w->cpu, 1, (uint32_t)s, 0, 0, 0, 0, w->shadows[0]),
			 0);
	assert_true(world_flags(w, 1) & F_ACTIVE);
	assert_int_equal(counter_read(&sibling->stat[STAT_REFAULT_FILE]), 1);
	assert_int_equal(counter_read(&sibling->stat[STAT_ACTIVATE_FILE]), 1);
	assert_int_equal(world_stat(w, STAT_REFAULT_FILE), 0);
	assert_int_equal(counter_read(&sibling->clru.nonresident_age), 1);
	assert_int_equal(counter_read(&w->root->clru.nonresident_age), 3);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 51);
	world_free(w);
}

/* Put back as active ages the clock; put back inactive does not. */
static void put_back_ages(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 4, FOLIAGE_FOLIO_MAPPED);
	w->table.young[0] = 0x3;
	folio_change(w->e, folio_at(w->e, 0), 0, F_REFERENCED);
	sc.priority = 0; /* all four: one activated, one kept, two evicted */
	w->e->ops->shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 2);
	assert_int_equal(folio_at(w->e, 0)->list, LIST_ACTIVE_FILE);
	assert_int_equal(folio_at(w->e, 1)->list, LIST_INACTIVE_FILE);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 3);
	world_check(w);
	world_free(w);
}

static void vanished_memcg(void **state)
{
	struct world *w = world_new("clru", NULL);
	uint64_t shadow = shadow_of(w, 0, false);

	(void)state;
	world_set(&w->root->clru.size[LIST_ACTIVE_FILE], 1000);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, w->memcg), 0);
	assert_int_equal(foliage_folio_add(w->e, &w->cpu, 0, 0, 0, 0, 0, 0, shadow), 0);
	assert_int_equal(world_flags(w, 0) & F_ACTIVE, 0);
	assert_int_equal(counter_read(&w->root->stat[STAT_REFAULT_FILE]), 1);
	assert_int_equal(counter_read(&w->root->stat[STAT_REFAULT_STALE]), 1);
	world_free(w);
}

/* clru-6.12 compares with the active list of the last flush. */
static void frozen_size(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);

	(void)state;
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 100);
	assert_false(comes_back_active(w, 0, 0, 50, shadow_of(w, 0, false)));
	foliage_flush_stats(w->e);
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 0);
	assert_true(comes_back_active(w, 0, 0, 100, shadow_of(w, 0, false)));
	assert_false(comes_back_active(w, 0, 0, 101, shadow_of(w, 0, false)));
	world_free(w);
}

static void refault_knob(void **state)
{
	struct world *w = world_new("clru:refault=always", NULL);

	(void)state;
	assert_true(comes_back_active(w, 0, 0, 1000000, shadow_of(w, 0, false)));
	world_free(w);
	w = world_new("clru:refault=never", NULL);
	world_set(&w->lv->clru.size[LIST_ACTIVE_FILE], 100);
	assert_false(comes_back_active(w, 0, 0, 1, shadow_of(w, 0, false)));
	world_free(w);
}

static void clock_knob(void **state)
{
	struct world *w = world_new("clru:clock_activate=0", NULL);

	(void)state;
	world_fill(w, 0, 1, 0);
	world_activate(w, 0, 1);
	assert_int_equal(world_size(w, LIST_ACTIVE_FILE), 1);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance),      cmocka_unit_test(distance_wraps),
		cmocka_unit_test(coarse_clock),  cmocka_unit_test(workingset_bit),
		cmocka_unit_test(competitors),   cmocka_unit_test(ancestors),
		cmocka_unit_test(put_back_ages), cmocka_unit_test(vanished_memcg),
		cmocka_unit_test(frozen_size),   cmocka_unit_test(refault_knob),
		cmocka_unit_test(clock_knob),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
