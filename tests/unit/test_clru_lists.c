/* SPDX-License-Identifier: MIT
 *
 * The classic LRU's lists and flags: A.1, the ladder of mark_accessed (A.2), deactivation,
 * reparenting, draining for a policy switch, and the validity walker.
 */
#include "test_clru_world.h"

static const uint64_t LADDER = F_REFERENCED | F_ACTIVE;

/* First access marks, second activates and forgets, third marks the active folio, more change
 * nothing. */
static void ladder(void **state)
{
	struct world *w = world_new("clru:activate_batch=0", NULL);
	uint64_t before;

	(void)state;
	world_fill(w, 0, 3, 0);
	assert_int_equal(world_flags(w, 1) & LADDER, 0);
	world_mark(w, 1);
	assert_int_equal(world_flags(w, 1) & LADDER, F_REFERENCED);
	assert_int_equal(folio_at(w->e, 1)->list, LIST_INACTIVE_FILE);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 0);
	world_mark(w, 1);
	assert_int_equal(world_flags(w, 1) & LADDER, F_ACTIVE);
	assert_int_equal(folio_at(w->e, 1)->list, LIST_ACTIVE_FILE);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1);
	assert_int_equal(world_stat(w, STAT_PGACTIVATE), 1);
	world_mark(w, 1);
	assert_int_equal(world_flags(w, 1) & LADDER, LADDER);
	before = world_flags(w, 1);
	world_mark(w, 1);
	assert_int_equal(world_flags(w, 1), before);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1);
	assert_int_equal(world_size(w, LIST_INACTIVE_FILE), 2);
	assert_int_equal(world_size(w, LIST_ACTIVE_FILE), 1);
	world_check(w);
	world_free(w);
}

/* On an SMP kernel the move waits; an access in between starts the ladder anew and survives it. */
static void ladder_batch(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_fill(w, 0, 64, 0);
	world_mark(w, 5);
	world_mark(w, 5);
	assert_int_equal(folio_at(w->e, 5)->list, LIST_INACTIVE_FILE);
	assert_int_equal(world_flags(w, 5) & LADDER, 0);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 1);
	world_mark(w, 5);
	foliage_cpu_drain(w->e, &w->cpu);
	assert_int_equal(folio_at(w->e, 5)->list, LIST_ACTIVE_FILE);
	assert_int_equal(world_flags(w, 5) & LADDER, LADDER);
	/* The 31st waiting folio empties the batch. */
	for (foliage_folio id = 10; id < 10 + FOLIO_BATCH_SIZE; id++) {
		assert_int_equal(world_size(w, LIST_ACTIVE_FILE), 1);
		world_mark(w, id);
		world_mark(w, id);
	}
	assert_int_equal(world_size(w, LIST_ACTIVE_FILE), 1 + FOLIO_BATCH_SIZE);
	/* The last one activated is at the head. */
	assert_int_equal(world_head(w, LIST_ACTIVE_FILE, 0), 9 + FOLIO_BATCH_SIZE);
	world_check(w);
	world_free(w);
}

/* In the local add batch the second access makes it land active; in another cpu's it only loses its
 * mark. */
static void ladder_add_batch(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct foliage_cpu other = {0};

	(void)state;
	world_add(w, 0, 0);
	world_add(w, 1, 0);
	for (int i = 0; i < 2; i++) {
		world_mark(w, 0);
		foliage_folio_mark_accessed(w->e, &other, 1);
	}
	assert_int_equal(world_flags(w, 0) & (LADDER | F_LRU), F_ACTIVE);
	assert_int_equal(world_flags(w, 1) & (LADDER | F_LRU), 0);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 2);
	foliage_cpu_drain(w->e, &w->cpu);
	foliage_cpu_drain(w->e, &other);
	assert_int_equal(folio_at(w->e, 0)->list, LIST_ACTIVE_FILE);
	assert_int_equal(folio_at(w->e, 1)->list, LIST_INACTIVE_FILE);
	world_check(w);
	foliage_cpu_exit(w->e, &other);
	world_free(w);
}

static void ladder_exceptions(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_fill(w, 0, 1, FOLIAGE_FOLIO_DROPBEHIND);
	world_fill(w, 1, 1, FOLIAGE_FOLIO_MLOCKED);
	for (int i = 0; i < 3; i++) {
		world_mark(w, 0);
		world_mark(w, 1);
	}
	foliage_cpu_drain(w->e, &w->cpu);
	/* Drop-behind: a no-op. Unevictable: the mark stays, nothing else happens. */
	assert_int_equal(world_flags(w, 0) & LADDER, 0);
	assert_int_equal(world_flags(w, 1) & LADDER, F_REFERENCED);
	assert_int_equal(folio_at(w->e, 1)->list, LIST_UNEVICTABLE);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 0);
	world_check(w);
	world_free(w);
}

/* A run is the same as its accesses one by one, and stops before the first absent folio. */
static void run_of_accesses(void **state)
{
	struct world *one = world_new("clru", NULL), *run = world_new("clru", NULL);
	uint32_t ids[4000], rng = 1;

	(void)state;
	world_fill(one, 0, 500, 0);
	world_fill(run, 0, 500, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		rng = rng * 1664525u + 1013904223u;
		ids[i] = i == 3000 ? 500 : (rng >> 8) % 500; /* 500 was never added */
		if (i != 3000)
			world_mark(one, (foliage_folio)ids[i]);
	}
	assert_int_equal(run->e->ops->mark_run(run->e, &run->cpu, ids, ARRAY_SIZE(ids)), 3000);
	assert_int_equal(run->e->ops->mark_run(run->e, &run->cpu, ids + 3001, 999), 999);
	foliage_cpu_drain(one->e, &one->cpu);
	foliage_cpu_drain(run->e, &run->cpu);
	for (foliage_folio id = 0; id < 500; id++) {
		assert_int_equal(world_flags(one, id), world_flags(run, id));
		assert_int_equal(folio_at(one->e, id)->next, folio_at(run->e, id)->next);
	}
	world_check(run);
	world_free(one);
	world_free(run);
}

/* New folios enter the head of the inactive list of their type; rotated ones its tail. */
static void placement(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_fill(w, 0, 3, 0);
	world_fill(w, 10, 2, FOLIAGE_FOLIO_ANON);
	world_fill(w, 20, 1, FOLIAGE_FOLIO_SHMEM);
	assert_int_equal(world_head(w, LIST_INACTIVE_FILE, 0), 2);
	assert_int_equal(world_tail(w, LIST_INACTIVE_FILE, 0), 0);
	assert_int_equal(world_head(w, LIST_INACTIVE_ANON, 0), 20);
	assert_int_equal(world_tail(w, LIST_INACTIVE_ANON, 0), 10);

	/* The end of a write-back that reclaim waits for. */
	world_activate(w, 2, 1);
	foliage_folio_start_writeback(w->e, 2);
	folio_change(w->e, folio_at(w->e, 2), 0, F_RECLAIM);
	foliage_folio_end_writeback(w->e, &w->cpu, 2);
	assert_int_equal(world_tail(w, LIST_INACTIVE_FILE, 0), 2);
	assert_int_equal(world_flags(w, 2) & F_ACTIVE, 0);
	world_check(w);
	world_free(w);
}

static void deactivate(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_fill(w, 0, 4, 0);
	world_activate(w, 1, 2);
	world_mark(w, 1);
	world_mark(w, 0);
	foliage_folio_deactivate(w->e, &w->cpu, 1);
	assert_int_equal(world_head(w, LIST_INACTIVE_FILE, 0), 1);
	assert_int_equal(world_flags(w, 1) & (LADDER | F_WORKINGSET), 0);
	/* An inactive one keeps its place and its mark. */
	foliage_folio_deactivate(w->e, &w->cpu, 0);
	assert_int_equal(world_tail(w, LIST_INACTIVE_FILE, 0), 0);
	assert_int_equal(world_flags(w, 0) & LADDER, F_REFERENCED);
	assert_int_equal(world_stat(w, STAT_PGDEACTIVATE), 1);
	world_check(w);
	world_free(w);
}

/* The child's pages come behind the parent's, counted there; 6.12 leaves them where they are. */
static void reparent(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct foliage_engine *e = w->e;

	(void)state;
	world_fill(w, 0, 4, 0);
	world_activate(w, 2, 2);
	assert_int_equal(foliage_folio_add(e, &w->cpu, 9, 0, 0, 0, 0, 0, 0), 0);
	assert_int_equal(foliage_memcg_remove(e, &w->cpu, w->memcg), 0);
	assert_int_equal(counter_read(&w->root->clru.size[LIST_INACTIVE_FILE]), 3);
	assert_int_equal(counter_read(&w->root->clru.size[LIST_ACTIVE_FILE]), 2);
	assert_int_equal(world_size(w, LIST_INACTIVE_FILE), 0);
	assert_int_equal(list_first(e, list_head(w->root->index, LIST_INACTIVE_FILE)), 9);
	assert_int_equal(list_last(e, list_head(w->root->index, LIST_INACTIVE_FILE)), 0);
	assert_ptr_equal(folio_lruvec(e, folio_at(e, 0)), w->root);
	world_check(w);
	world_free(w);

	w = world_new("clru-6.12", NULL);
	world_fill(w, 0, 4, 0);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, w->memcg), 0);
	assert_int_equal(world_size(w, LIST_INACTIVE_FILE), 4);
	assert_ptr_equal(folio_lruvec(w->e, folio_at(w->e, 0)), w->lv);
	world_check(w);
	world_free(w);
}

static void drain_next(void **state)
{
	struct world *w = world_new("clru", NULL);
	static const folio_id order[] = {3, 2, 1, 0};
	bool active;

	(void)state;
	world_fill(w, 0, 4, 0);
	world_activate(w, 2, 2);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		assert_int_equal(w->e->ops->drain_next(w->e, w->lv, &active), order[i]);
		assert_int_equal(active, i < 2);
		w->e->ops->del(w->e, w->lv, order[i]);
		assert_int_equal(world_flags(w, order[i]) & F_LRU, 0);
	}
	assert_int_equal(w->e->ops->drain_next(w->e, w->lv, &active), FOLIO_NONE);
	for (int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++)
		assert_int_equal(world_size(w, list), 0);
	world_free(w);
}

/* The walker must see every kind of damage. */
static void walker_sees(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct foliage_engine *e = w->e;
	struct err err;

	(void)state;
	world_fill(w, 0, 3, 0);
	world_check(w);
	folio_change(e, folio_at(e, 1), 0, F_ACTIVE);
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	folio_change(e, folio_at(e, 1), F_ACTIVE, F_ISOLATED);
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	folio_change(e, folio_at(e, 1), F_ISOLATED, 0);
	folio_at(e, 1)->list = LIST_ACTIVE_FILE;
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	folio_at(e, 1)->list = LIST_INACTIVE_FILE;
	folio_at(e, 1)->owner = w->root->index;
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	folio_at(e, 1)->owner = w->lv->index;
	folio_at(e, 1)->prev = 1;
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	folio_at(e, 1)->prev = 2;
	world_check(w);
	counter_add(e, &w->lv->clru.size[LIST_INACTIVE_FILE], 1);
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	counter_add(e, &w->lv->clru.size[LIST_INACTIVE_FILE], -2);
	assert_int_not_equal(e->ops->is_valid(e, w->lv, &err), 0);
	world_free(w);
}

/* Random life under both policies and both locking modes: valid after each step, nothing lost. */
static void random_life(void **state)
{
	static const char *const policies[] = {"clru", "clru-6.12",
					       "clru:activate_batch=0,cost=noted,deactivate_ref=1"};

	(void)state;
	for (unsigned int turn = 0; turn < 2 * ARRAY_SIZE(policies); turn++) {
		struct foliage_engine_options o = {.exclusive = turn % 2, .seed = turn};
		struct world *w = world_new(policies[turn / 2], &o);
		uint32_t rng = turn + 1, present = 0;

		for (int step = 0; step < 3000; step++) {
			foliage_folio id;

			rng = rng * 1664525u + 1013904223u;
			id = (foliage_folio)(rng >> 8) % 400;
			if (!foliage_folio_present(w->e, id))
				world_add(w, id, (rng >> 4) % 8 == 0 ? FOLIAGE_FOLIO_MLOCKED : 0);
			else if ((rng >> 20) % 16 == 0)
				assert_int_equal(foliage_folio_remove(w->e, &w->cpu, id), 0);
			else if ((rng >> 20) % 16 == 1)
				foliage_folio_deactivate(w->e, &w->cpu, id);
			world_mark(w, id);
			if (step % 50 == 0)
				foliage_flush_stats(w->e);
			if (step % 40 == 39)
				world_reclaim(w, 32);
			world_check(w);
		}
		foliage_cpu_drain(w->e, &w->cpu);
		for (foliage_folio id = 0; id < 400; id++)
			present += foliage_folio_present(w->e, id);
		for (int list = LIST_INACTIVE_ANON; list <= LIST_UNEVICTABLE; list++)
			present -= (uint32_t)world_size(w, list);
		assert_int_equal(present, 0);
		assert_true(w->nr_evicted > 100);
		assert_int_equal(counter_read(&w->lv->clru.isolated[TYPE_FILE]), 0);
		world_free(w);
	}
}

/* Each knob of the table is read, and the two policies differ where 6.12 does. */
static void policies(void **state)
{
	struct world *w = world_new("clru", NULL);
	const struct clru_knobs *k = clru_knobs(w->e);

	(void)state;
	assert_int_equal(clru_flush_every(w->e), 0);
	assert_true(!k->frozen && k->cost == CLRU_COST_SAMPLED && !k->reclaim_clean &&
		    k->skip_max == 32768);
	assert_true(k->anon_only && k->activate_batch && k->clock_activate && !k->deactivate_ref);
	assert_int_equal(k->refault, CLRU_REFAULT_DISTANCE);
	world_free(w);
	w = world_new("clru-6.12", NULL);
	k = clru_knobs(w->e);
	assert_int_equal(clru_flush_every(w->e), 130000);
	assert_true(k->frozen && k->cost == CLRU_COST_NOTED && k->reclaim_clean && !k->skip_max &&
		    !k->anon_only);
	world_free(w);
	w = world_new("clru-6.12:flush_every=2000", NULL);
	assert_int_equal(clru_flush_every(w->e), 2000);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ladder),           cmocka_unit_test(ladder_batch),
		cmocka_unit_test(ladder_add_batch), cmocka_unit_test(ladder_exceptions),
		cmocka_unit_test(run_of_accesses),  cmocka_unit_test(placement),
		cmocka_unit_test(deactivate),       cmocka_unit_test(reparent),
		cmocka_unit_test(drain_next),       cmocka_unit_test(walker_sees),
		cmocka_unit_test(random_life),      cmocka_unit_test(policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
