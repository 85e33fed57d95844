/* SPDX-License-Identifier: MIT
 *
 * References at the tail (A.3), isolation and batches (A.4), the loop of one lruvec and sessions
 * (A.6).
 */
#include "test_clru_world.h"

/* -- A.3 -- */

struct reference_case {
	struct referenced ref;
	bool had, anon;
	enum references verdict, verdict_612;
	bool left; /* PG_referenced afterwards */
};

static void decision_table(void **state)
{
	static const struct reference_case table[] = {
		{{.locked = true}, true, false, REFERENCES_ACTIVATE, REFERENCES_ACTIVATE, true},
		{{.ptes = 3, .contended = true},
		 false,
		 false,
		 REFERENCES_KEEP,
		 REFERENCES_KEEP,
		 false},
		{{.contended = true}, true, true, REFERENCES_KEEP, REFERENCES_KEEP, true},
		{{.ptes = 1}, true, false, REFERENCES_ACTIVATE, REFERENCES_ACTIVATE, true},
		{{.ptes = 2}, false, false, REFERENCES_ACTIVATE, REFERENCES_ACTIVATE, true},
		{{.ptes = 1, .exec = true},
		 false,
		 false,
		 REFERENCES_ACTIVATE,
		 REFERENCES_ACTIVATE,
		 true},
		{{.ptes = 1, .exec = true}, false, true, REFERENCES_KEEP, REFERENCES_KEEP, true},
		{{.ptes = 1}, false, false, REFERENCES_KEEP, REFERENCES_KEEP, true},
		{{.ptes = 1}, false, true, REFERENCES_KEEP, REFERENCES_KEEP, true},
		{{.ptes = 0}, false, false, REFERENCES_RECLAIM, REFERENCES_RECLAIM, false},
		{{.ptes = 0}, true, false, REFERENCES_RECLAIM, REFERENCES_RECLAIM_CLEAN, false},
		{{.ptes = 0}, true, true, REFERENCES_RECLAIM, REFERENCES_RECLAIM, false},
	};

	(void)state;
	for (int old = 0; old < 2; old++) {
		struct world *w = world_new(old ? "clru-6.12" : "clru", NULL);
		struct scan_control sc = world_scan(w);

		for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
			const struct reference_case *c = &table[i];

			world_add(w, (foliage_folio)i,
				  (c->anon ? FOLIAGE_FOLIO_ANON : 0) |
					  (c->had ? FOLIAGE_FOLIO_ACCESSED : 0));
			assert_int_equal(w->e->ops->references(w->e, &sc, (folio_id)i, &c->ref),
					 old ? c->verdict_612 : c->verdict);
			assert_int_equal(!!(world_flags(w, (foliage_folio)i) & F_REFERENCED),
					 c->left);
		}
		world_free(w);
	}
}

/* What the decisions do: the active one to the active head, the kept one to the inactive head, the
 * others leave, coldest first. */
static void verdicts_move(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 4, FOLIAGE_FOLIO_MAPPED);
	world_mark(w, 2);
	w->table.young[0] = 1u << 1 | 1u << 2;
	sc.priority = 0;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 2);
	assert_int_equal(w->evicted[0], 0);
	assert_int_equal(w->evicted[1], 3);
	assert_int_equal(world_head(w, LIST_ACTIVE_FILE, 0), 2);
	assert_int_equal(world_head(w, LIST_INACTIVE_FILE, 0), 1);
	assert_int_equal(w->table.young[0], 0);
	assert_int_equal(sc.nr_reclaimed, 2);
	assert_int_equal(sc.nr_scanned, 4);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 4);
	assert_int_equal(world_stat(w, STAT_PGSTEAL_FILE), 2);
	assert_int_equal(world_stat(w, STAT_PGROTATE_FILE), 2);
	assert_int_equal(world_stat(w, STAT_PGACTIVATE), 1);
	world_check(w);
	world_free(w);
}

/* -- A.4 -- */

static struct scan_control active_scan(struct world *w)
{
	struct scan_control sc = world_scan(w);

	sc.may_deactivate = 1u << TYPE_FILE;
	sc.priority = 0;
	return sc;
}

/* Deactivation ignores references, keeps PG_referenced, remembers the workingset, and keeps the
 * order: the coldest ends deepest in the batch at the inactive head. */
static void deactivation(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = active_scan(w);

	(void)state;
	world_fill(w, 0, 8, FOLIAGE_FOLIO_MAPPED);
	world_activate(w, 0, 8);
	world_mark(w, 3);
	w->table.young[0] = 0xff;
	sc.nr_to_reclaim = 1;
	sc.cluster = 4;
	sc.priority = 1; /* 8 >> 1 = 4 of the active list, none of the empty inactive one */
	clru_shrink_lruvec(w->e, w->lv, &sc);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(world_tail(w, LIST_INACTIVE_FILE, i), i);
		assert_int_equal(world_tail(w, LIST_ACTIVE_FILE, i), 4 + i);
		assert_int_equal(world_flags(w, i) & (F_ACTIVE | F_WORKINGSET), F_WORKINGSET);
	}
	assert_int_equal(world_flags(w, 3) & F_REFERENCED, F_REFERENCED);
	assert_int_equal(world_flags(w, 2) & F_REFERENCED, 0);
	assert_int_equal(w->table.young[0], 0xf0); /* looking clears */
	assert_int_equal(world_stat(w, STAT_PGDEACTIVATE), 4);
	assert_int_equal(world_stat(w, STAT_PGREFILL), 4);
	assert_int_equal(world_stat(w, STAT_PGROTATE_FILE), 0);
	world_check(w);
	world_free(w);
}

static void deactivation_forgets(void **state)
{
	struct world *w = world_new("clru:deactivate_ref=1", NULL);
	struct scan_control sc = active_scan(w);

	(void)state;
	world_fill(w, 0, 1, 0);
	world_activate(w, 0, 1);
	world_mark(w, 0);
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(folio_at(w->e, 0)->list, LIST_INACTIVE_FILE);
	assert_int_equal(world_flags(w, 0) & F_REFERENCED, 0);
	world_free(w);
}

/* Only referenced code stays active, and that costs. */
static void code_rotates(void **state)
{
	static const char *const policies[] = {"clru", "clru-6.12"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_new(policies[i], NULL);
		struct scan_control sc = active_scan(w);

		world_fill(w, 0, 4000, FOLIAGE_FOLIO_MAPPED);
		world_activate(w, 0, 4000);
		foliage_flush_stats(w->e);
		w->vma_flags = FOLIAGE_VMA_EXEC;
		w->table.young[0] = 0x5;
		sc.priority = 10; /* three */
		clru_shrink_lruvec(w->e, w->lv, &sc);
		assert_int_equal(world_size(w, LIST_INACTIVE_FILE), 1);
		assert_int_equal(world_head(w, LIST_INACTIVE_FILE, 0), 1);
		assert_int_equal(world_head(w, LIST_ACTIVE_FILE, 0), 2);
		assert_int_equal(world_head(w, LIST_ACTIVE_FILE, 1), 0);
		assert_int_equal(world_stat(w, STAT_PGROTATE_FILE), 2);
		clru_prepare_scan(w->e, &sc);
		assert_int_equal(sc.file_cost, 2);
		assert_int_equal(w->root->clru.cost[TYPE_FILE], i == 0 ? 0 : 2);
		world_check(w);
		world_free(w);
	}
}

/* Anon that is referenced through an executable mapping is no code. */
static void executable_anon_does_not_rotate(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = active_scan(w);

	(void)state;
	w->swap_free = 1000;
	world_fill(w, 0, 40, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_MAPPED);
	world_activate(w, 0, 40);
	foliage_flush_stats(w->e);
	w->vma_flags = FOLIAGE_VMA_EXEC;
	w->table.young[0] = 0x5;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_size(w, LIST_INACTIVE_ANON), 32);
	assert_int_equal(world_head(w, LIST_INACTIVE_ANON, 31), 0);
	assert_int_equal(world_head(w, LIST_INACTIVE_ANON, 29), 2);
	assert_int_equal(world_stat(w, STAT_PGROTATE_ANON), 0);
	world_check(w);
	world_free(w);
}

/* An active list that may not be deactivated is not scanned; its budget is used up, and the caller
 * is told. */
static void deactivation_refused(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 8, 0);
	world_activate(w, 0, 8);
	sc.priority = 0;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_true(sc.skipped_deactivate);
	assert_int_equal(world_size(w, LIST_ACTIVE_FILE), 8);
	/* A whole session that gets nothing forces it in the end: here inactive is low, nothing
	 * needs force. */
	assert_true(world_reclaim(w, 4) > 0);
	world_check(w);
	world_free(w);
}

/* clru-6.12 before the first flush sees empty lists: only force gets at the active pages. */
static void forced(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);

	(void)state;
	world_fill(w, 0, 64, 0);
	world_activate(w, 0, 64);
	assert_true(world_reclaim(w, 32) > 0);
	assert_true(world_stat(w, STAT_PGDEACTIVATE) > 0);
	world_check(w);
	world_free(w);
}

/* Folios of zones too high do not count and end at the head, in order; at most skip_max of them in
 * one call. */
static void zones(void **state)
{
	struct foliage_engine_options o = {.exclusive = true, .nr_zones = 2};

	(void)state;
	for (int limited = 0; limited < 2; limited++) {
		struct world *w = world_new(limited ? "clru:skip_max=3" : "clru", &o);
		struct scan_control sc = world_scan(w);

		for (foliage_folio id = 0; id < 12; id++)
			assert_int_equal(foliage_folio_add(w->e, &w->cpu, id, w->memcg, 0,
							   id % 2 == 0, 0, 0, 0),
					 0);
		foliage_cpu_drain(w->e, &w->cpu);
		sc.reclaim_idx = 0;
		sc.priority = 1; /* six */
		sc.cluster = 3;
		sc.nr_to_reclaim = 3;
		clru_shrink_lruvec(w->e, w->lv, &sc);
		assert_int_equal(w->nr_evicted, 3);
		assert_int_equal(w->evicted[0], 1);
		assert_int_equal(w->evicted[1], 3);
		assert_int_equal(w->evicted[2], 5);
		assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(world_head(w, LIST_INACTIVE_FILE, i), 4 - 2 * i);
		assert_int_equal(world_tail(w, LIST_INACTIVE_FILE, 0), 6);
		world_check(w);
		/* The tail is 6 (high), 7, 8 (high), 9, ...: three are skipped, the next high one
		 * is ordinary. */
		sc.nr_to_reclaim = 5;
		sc.cluster = 5;
		sc.priority =
			0; /* nine: two rounds of five and four, the first frees enough if it may */
		clru_shrink_lruvec(w->e, w->lv, &sc);
		assert_int_equal(w->nr_evicted, limited ? 8 : 6);
		assert_int_equal(foliage_folio_present(w->e, 4), true);
		world_check(w);
		world_free(w);
	}
}

/* Mapped folios that must not be unmapped are rotated and count as looked at. */
static void no_unmap(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 1, FOLIAGE_FOLIO_MAPPED);
	world_fill(w, 1, 3, 0);
	sc.may_unmap = false;
	sc.priority = 1; /* two */
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 1);
	assert_int_equal(w->evicted[0], 1);
	assert_int_equal(world_head(w, LIST_INACTIVE_FILE, 0), 0);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 2);
	world_check(w);
	/* Alone on its list it is met once. */
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 2), 0);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 3), 0);
	sc.priority = 0;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_true(foliage_folio_present(w->e, 0));
	world_check(w);
	world_free(w);
}

/* A large folio is looked at whole: it counts its pages. */
static void large(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	assert_int_equal(foliage_folio_add(w->e, &w->cpu, 0, w->memcg, 0, 0, 6, 0, 0), 0);
	world_fill(w, 1, 64, 0);
	sc.priority = 2; /* 128 >> 2 = 32 */
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 1);
	assert_int_equal(sc.nr_reclaimed, 64);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 64);
	assert_int_equal(counter_read(&w->lv->clru.nonresident_age), 64);
	world_check(w);
	world_free(w);
}

/* When others hold more than an eighth of the list: wait once, then leave; kswapd never waits, and
 * who may not do I/O only when they hold more than all of it. */
static void isolation_limit(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 64, 0);
	sc.priority = 4;
	world_set(&w->lv->clru.isolated[TYPE_FILE], 9);
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 0);
	assert_int_equal(w->throttled, 1);
	world_set(&w->lv->clru.isolated[TYPE_FILE], 8);
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 4);
	world_set(&w->lv->clru.isolated[TYPE_FILE], 60);
	sc.gfp_io = false;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 7);
	world_set(&w->lv->clru.isolated[TYPE_FILE], 58);
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 7);
	assert_int_equal(w->throttled, 2);
	sc.kswapd = true;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 10);
	world_free(w);
}

/* -- A.6 -- */

/* The proportional tail, by hand: 3,200 anon and 6,400 file pages at priority 2 with equal
 * fractions give 400 and 800. The first round takes 32 + 32 and meets the target. Left: 368 and
 * 768. Anon has less left: it stops; its share is 368 * 100 / 401 = 91 %, so file may scan 800 *
 * 9 / 100 = 72 in all, 40 more, of which one round of 32 happens before both are found to be
 * through. */
static void proportional_tail(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	w->swap_free = 1000;
	world_fill(w, 0, 3200, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	world_fill(w, 10000, 6400, 0);
	sc.swappiness = 100;
	sc.priority = 2;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_stat(w, STAT_PGSCAN_ANON), 32);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 64);
	assert_int_equal(sc.nr_reclaimed, 96);
	world_check(w);
	world_free(w);

	/* File has less left: 32 + 32 of 800 and 400; anon is cut to 72. kswapd does the same. */
	w = world_new("clru", NULL);
	sc = world_scan(w);
	w->swap_free = 1000;
	world_fill(w, 0, 6400, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	world_fill(w, 10000, 3200, 0);
	sc.swappiness = 100;
	sc.priority = 2;
	sc.kswapd = sc.root_reclaim = true;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_stat(w, STAT_PGSCAN_ANON), 64);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 32);
	world_check(w);
	world_free(w);

	/* Less than a round: 3,268 * 100 / 3,301 = 99 %, file may scan 34 in all. */
	w = world_new("clru", NULL);
	sc = world_scan(w);
	w->swap_free = 1000;
	world_fill(w, 0, 3300, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	world_fill(w, 10000, 3400, 0);
	sc.swappiness = 100;
	sc.priority = 0;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_stat(w, STAT_PGSCAN_ANON), 32);
	assert_int_equal(world_stat(w, STAT_PGSCAN_FILE), 34);
	world_check(w);
	world_free(w);
}

/* Global direct reclaim at priority 12 spends all its budgets; below that, and for a memcg's limit,
 * the target ends the pass. */
static void whole_budget(void **state)
{
	static const struct {
		bool root, kswapd;
		int priority;
		uint32_t freed;
	} cases[] = {
		{true, false, 12, 4},
		{false, false, 12, 1},
		{true, true, 12, 1},
		{true, false, 11, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_new("clru", NULL);
		struct scan_control sc = world_scan(w);

		world_fill(w, 0, 4 << 12, 0);
		sc.cluster = 1;
		sc.nr_to_reclaim = 1;
		sc.root_reclaim = cases[i].root;
		sc.kswapd = cases[i].kswapd;
		sc.priority = cases[i].priority;
		clru_shrink_lruvec(w->e, w->lv, &sc);
		assert_int_equal(w->nr_evicted, cases[i].freed);
		world_free(w);
	}
}

/* A short inactive anon list is refilled in passing, if anon can go anywhere. */
static void anon_ages(void **state)
{
	struct world *w = world_new("clru", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 100, FOLIAGE_FOLIO_ANON);
	world_activate(w, 0, 100);
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_size(w, LIST_INACTIVE_ANON), 0);
	w->swap_free = 1;
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(world_size(w, LIST_INACTIVE_ANON), 32);
	world_check(w);
	world_free(w);
}

/* The sessions of LINUX-6.12.md section 2, to the page: 8,100 + 8,100 with deactivation is
 * 1+3+7+15+31; an inactive list of 16,000 without is 3+7+15+31. */
static void sessions(void **state)
{
	struct world *w = world_new("clru", NULL);

	(void)state;
	world_fill(w, 0, 16200, 0);
	world_activate(w, 0, 8100);
	world_set(&w->lv->stat[STAT_ACTIVATE_FILE], 1);
	assert_int_equal(world_reclaim(w, 32), 57);
	assert_int_equal(world_stat(w, STAT_PGDEACTIVATE), 57);
	/* That was the session after ACTIVATE moved; the next one leaves the active list alone. */
	assert_int_equal(world_reclaim(w, 32), 57);
	assert_int_equal(world_stat(w, STAT_PGDEACTIVATE), 57);
	world_check(w);
	world_free(w);

	w = world_new("clru", NULL);
	world_fill(w, 0, 16200, 0);
	world_activate(w, 0, 200);
	assert_int_equal(world_reclaim(w, 32), 56);
	assert_int_equal(world_stat(w, STAT_PGDEACTIVATE), 0);
	world_check(w);
	world_free(w);
}

/* The older model is told of scans in vain and of what was written. */
static void reclaim_costs(void **state)
{
	struct world *w = world_new("clru-6.12", NULL);
	struct scan_control sc = world_scan(w);

	(void)state;
	world_fill(w, 0, 400, FOLIAGE_FOLIO_MAPPED);
	foliage_flush_stats(w->e);
	w->table.young[0] = 0x7;
	sc.priority = 5; /* twelve: three are kept */
	clru_shrink_lruvec(w->e, w->lv, &sc);
	assert_int_equal(w->nr_evicted, 9);
	assert_int_equal(w->lv->clru.cost[TYPE_FILE], 3);
	assert_int_equal(w->root->clru.cost[TYPE_FILE], 3);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decision_table),
		cmocka_unit_test(verdicts_move),
		cmocka_unit_test(deactivation),
		cmocka_unit_test(deactivation_forgets),
		cmocka_unit_test(code_rotates),
		cmocka_unit_test(deactivation_refused),
		cmocka_unit_test(forced),
		cmocka_unit_test(zones),
		cmocka_unit_test(no_unmap),
		cmocka_unit_test(large),
		cmocka_unit_test(executable_anon_does_not_rotate),
		cmocka_unit_test(isolation_limit),
		cmocka_unit_test(proportional_tail),
		cmocka_unit_test(whole_budget),
		cmocka_unit_test(anon_ages),
		cmocka_unit_test(sessions),
		cmocka_unit_test(reclaim_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
