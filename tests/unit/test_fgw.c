/* SPDX-License-Identifier: MIT
 *
 * FG-W, rule by rule (docs/fg-w.md): what a hit counts, where a page enters, when a refault moves
 * P's target and when it enters M, what reclaim takes first and what it lets go on, how the clock
 * ages M; and the defaults of all knobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "mm/fgw.h"
#include "mm/policies.h"
#include "mm/shadow.h"
#include "tests/support/world.h"

enum { ROOM = 320, TICK = ROOM / 32 };

static struct world *fgw_world(const char *policy)
{
	const struct world_options options = {
		.policy = policy, .nr_folios = 4096, .totalram_pages = ROOM};

	return world_new(&options);
}

static struct fgw_type *file_of(struct world *w)
{
	return &world_lruvec(w, 0, 0)->fgw->type[TYPE_FILE];
}

static uint64_t clock_of(struct world *w)
{
	return fgw_clock(world_lruvec(w, 0, 0), TYPE_FILE);
}

static bool on_m(struct world *w, uint32_t page)
{
	return !fgw_is_p(world_list(w, page));
}

static unsigned int stamp_age(struct world *w, uint32_t page)
{
	return (unsigned int)fgw_age(clock_of(w), world_flags(w, page));
}

static uint64_t pages_on(struct world *w, bool main)
{
	return counter_size(fgw_size(world_lruvec(w, 0, 0), TYPE_FILE, main));
}

/* Bring `nr` new pages from `first` on in; those that are there are left alone. */
static void fill(struct world *w, uint32_t first, uint32_t nr)
{
	for (uint32_t page = first; page < first + nr; page++) {
		world_add(w, page, 0);
		world_mark(w, page, 1);
	}
}

/* `nr` pages come in and go again: the clock moves, nothing else does. */
static void pass(struct world *w, uint32_t nr)
{
	while (nr--) {
		world_add(w, 4000, 0);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 4000), 0);
	}
}

/* A full room: 299 pages on M, then 21 on P, whose target is 22. Reclaim has run and took the
 * first of M. Page 299 is
 * P's tail. */
static struct world *full_world(const char *policy, uint32_t gone)
{
	struct world *w = fgw_world(policy);

	fill(w, 0, ROOM);
	assert_int_equal(world_reclaim(w, 0, gone), gone);
	return w;
}

/* ---- rule 1 ---- */

static void once_a_tick(void **state)
{
	struct world *w = full_world("fgw", 1);
	uint32_t page = ROOM - 1;

	(void)state;
	/* What it was brought in for does not count, nor what comes within the tick. */
	world_mark(w, page, 5);
	assert_int_equal(world_refs(w, page), 0);
	for (unsigned int i = 1; i <= 9; i++) {
		pass(w, TICK);
		assert_int_equal(stamp_age(w, page), 1);
		world_mark(w, page, 3);
		assert_int_equal(world_refs(w, page), MIN(i, 7u));
		assert_int_equal(stamp_age(w, page), 0);
	}
	world_check(w);
	world_free(w);
}

static void counted_hit_writes_once(void **state)
{
	struct world *w = full_world("fgw", 1);
	uint64_t before;

	(void)state;
	pass(w, TICK);
	world_mark(w, 300, 1);
	before = world_flags(w, 300);
	world_mark(w, 300, 10);
	assert_int_equal(world_flags(w, 300), before);
	world_free(w);
}

static void every_access_without_once(void **state)
{
	struct world *w = full_world("fgw:once=0", 1);

	(void)state;
	world_mark(w, 300, 3);
	assert_int_equal(world_refs(w, 300), 3);
	world_free(w);
}

/* ---- rule 2 ---- */

static void first_fill_goes_to_main(void **state)
{
	struct world *w = fgw_world("fgw");
	uint32_t target = (uint32_t)(0.07 * ROOM);

	(void)state;
	fill(w, 0, ROOM);
	assert_true(on_m(w, 0));
	assert_true(on_m(w, ROOM - target));
	assert_false(on_m(w, ROOM - target + 1));
	assert_int_equal(world_refs(w, 0), 0);
	/* From the first reclaim on, new pages start on P. */
	assert_int_equal(world_reclaim(w, 0, 200), 200);
	fill(w, 1000, 1);
	assert_false(on_m(w, 1000));
	world_check(w);
	world_free(w);

	w = fgw_world("fgw:first_fill=0");
	fill(w, 0, 10);
	assert_false(on_m(w, 0));
	world_free(w);
}

/* ---- rules 3 and 4 ---- */

/* Push page 299 out of P. */
static void evict_299(struct world *w)
{
	fill(w, 1000, 2);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_int_equal(w->pages[299].evictions, 1);
}

/* Three times the step while M's tail is of the first fill and unused, as here. */
static const struct {
	const char *policy;
	double step;
} steps[] = {{"fgw:fill_factor=1", 2}, {"fgw", 6}, {"fgw:step=0", 0}};

static void near_refault_from_p_grows_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct world *w = full_world(steps[i].policy, 1);
		double before;

		evict_299(w);
		before = file_of(w)->target;
		world_add(w, 299, 0);
		assert_true(file_of(w)->target == before + steps[i].step);
		/* M's tail is of the first fill and far older than the page: it enters M. */
		assert_true(on_m(w, 299));
		assert_int_equal(world_refs(w, 299), 0);
		world_check(w);
		world_free(w);
	}
}

static void near_refault_from_m_shrinks_p(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct world *w = full_world(steps[i].policy, 30);
		double before = file_of(w)->target;

		assert_int_equal(shadow_time(w->pages[25].shadow) >> 35, 1);
		world_add(w, 25, 0);
		assert_true(file_of(w)->target == before - steps[i].step);
		world_free(w);
	}
}

/* Used once, M's tail is no junk. */
static void used_fill_has_the_plain_step(void **state)
{
	struct world *w = full_world("fgw", 1);
	double before;

	(void)state;
	evict_299(w);
	for (uint32_t page = 0; page < 299; page++)
		if (world_present(w, page))
			world_set_refs(w, page, 1);
	before = file_of(w)->target;
	world_add(w, 299, 0);
	assert_true(file_of(w)->target == before + 2);
	world_free(w);
}

static void far_refault_moves_nothing(void **state)
{
	struct world *w = full_world("fgw", 1);
	double before;
	uint32_t next = 1002;

	(void)state;
	evict_299(w);
	/* 0.09 of the room and more of P are evicted in between. */
	for (int i = 0; i < ROOM / 8; i++) {
		fill(w, next++, 1);
		assert_int_equal(world_reclaim(w, 0, 1), 1);
	}
	before = file_of(w)->target;
	world_add(w, 299, 0);
	assert_true(file_of(w)->target == before);
	world_free(w);
}

static void shadow_expires(void **state)
{
	struct world *w = full_world("fgw:history=0.5", 1);
	struct lruvec *lv = world_lruvec(w, 0, 0);
	uint32_t next = 1002;

	(void)state;
	evict_299(w);
	for (int i = 0; i < ROOM * 5 / 8; i++) {
		fill(w, next++, 1);
		assert_int_equal(world_reclaim(w, 0, 1), 1);
	}
	world_add(w, 299, 0);
	assert_int_equal(counter_read(&lv->stat[STAT_REFAULT_FILE]), 1);
	assert_int_equal(counter_read(&lv->stat[STAT_REFAULT_STALE]), 1);
	assert_false(on_m(w, 299));
	world_free(w);
}

/* Brought in ahead of use and evicted unused: it comes back as a new page, and counts for nothing. */
static void unused_pages_leave_expired_shadows(void **state)
{
	struct world *w = full_world("fgw", 1);
	struct lruvec *lv = world_lruvec(w, 0, 0);
	double before;

	(void)state;
	for (uint32_t page = 1000; page < 1030; page++)
		world_add(w, page, 0);
	assert_int_equal(world_reclaim(w, 0, 30), 30);
	assert_false(world_present(w, 1005));
	before = file_of(w)->target;
	world_add(w, 1005, 0);
	assert_false(on_m(w, 1005));
	assert_true(file_of(w)->target == before);
	assert_int_equal(counter_read(&lv->stat[STAT_REFAULT_STALE]), 1);
	assert_int_equal(counter_read(&file_of(w)->spared), 0);
	world_free(w);
}

/* The shadow's clock has 19 bits: 256 ticks later a shadow is old, not new again. */
static void shadow_does_not_alias(void **state)
{
	struct world *w = full_world("fgw", 1);
	struct lruvec *lv = world_lruvec(w, 0, 0);
	uint64_t clock;

	(void)state;
	evict_299(w);
	clock = clock_of(w);
	while (clock_of(w) < clock + 256)
		pass(w, 1);
	world_add(w, 299, 0);
	assert_int_equal(counter_read(&lv->stat[STAT_REFAULT_STALE]), 1);
	world_free(w);
}

/* M's tail is used all the time: a page that was away for longer does not get in. */
static void gate_keeps_far_refaults_out(void **state)
{
	static const char *const policies[] = {"fgw:gate_scan=500", "fgw:gate_scan=500,gate=0"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world *w = full_world(policies[i], 1);

		evict_299(w);
		pass(w, 5 * TICK);
		for (uint32_t page = 0; page < ROOM; page++)
			if (world_present(w, page))
				world_mark(w, page, 1);
		/* Its last use is ticks ago, that of M's tail is now. */
		world_add(w, 299, 0);
		assert_int_equal(on_m(w, 299), i == 1);
		world_check(w);
		world_free(w);
	}
}

/* ---- rule 5 ---- */

static void main_tail_is_lazy(void **state)
{
	struct world *w = full_world("fgw", 30);
	struct lruvec *lv = world_lruvec(w, 0, 0);
	int budget = 100;
	folio_id tail = fgw_main_tail(w->e, lv, TYPE_FILE, &budget), then;

	(void)state;
	assert_int_equal(budget, 100);
	/* The tail is used: it moves to the list of its stamp when somebody looks, and only then.
	 */
	world_mark(w, (uint32_t)tail, 1);
	assert_int_equal(list_last(w->e, list_head(0, fgw_list_m(TYPE_FILE, file_of(w)->oldest))),
			 tail);
	then = fgw_main_tail(w->e, lv, TYPE_FILE, &budget);
	assert_int_equal(budget, 99);
	assert_int_not_equal(then, tail);
	assert_int_equal(list_first(w->e, list_head(0, fgw_list_m(TYPE_FILE, clock_of(w)))), tail);
	/* Without a budget nothing moves. */
	world_mark(w, (uint32_t)then, 1);
	budget = 0;
	assert_int_equal(fgw_main_tail(w->e, lv, TYPE_FILE, &budget), then);
	world_check(w);
	world_free(w);
}

/* ---- rule 6 ---- */

static void p_gives_first_above_target(void **state)
{
	struct world *w = full_world("fgw", 1);

	(void)state;
	fill(w, 1000, 5);
	assert_true((double)pages_on(w, false) > file_of(w)->target);
	assert_int_equal(world_reclaim(w, 0, 5), 5);
	assert_int_equal(w->pages[299].evictions, 1);
	assert_false(shadow_time(w->pages[299].shadow) >> 35);
	/* At its target, M's tail goes. */
	assert_int_equal(pages_on(w, false), (uint64_t)file_of(w)->target);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_int_equal(pages_on(w, false), (uint64_t)file_of(w)->target);
	world_free(w);
}

static void used_page_of_p_goes_to_m(void **state)
{
	struct world *w = full_world("fgw", 1);
	uint32_t page = 299;
	uint64_t seq;

	(void)state;
	fill(w, 1000, TICK);
	world_mark(w, page, 1);
	seq = clock_of(w);
	fill(w, 1000 + TICK, TICK);
	assert_int_equal(world_reclaim(w, 0, 5), 5);
	assert_true(on_m(w, page));
	assert_int_equal(world_refs(w, page), 0);
	/* On the list of its stamp, which the clock has left meanwhile. */
	assert_int_equal(list_first(w->e, list_head(0, fgw_list_m(TYPE_FILE, seq))), page);
	world_free(w);
}

static void main_tail_gets_rounds(void **state)
{
	static const struct {
		const char *policy;
		unsigned int left;
	} cases[] = {{"fgw", 2}, {"fgw:chance=clear", 0}, {"fgw:chance=decrement", 4}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = full_world(cases[i].policy, 30);
		struct lruvec *lv = world_lruvec(w, 0, 0);
		int budget = 100;
		uint32_t page = (uint32_t)fgw_main_tail(w->e, lv, TYPE_FILE, &budget);
		unsigned int age = stamp_age(w, page);

		file_of(w)->target = 200;
		world_set_refs(w, page, 5);
		assert_int_equal(world_reclaim(w, 0, 1), 1);
		assert_true(world_present(w, page));
		assert_int_equal(world_refs(w, page), cases[i].left);
		assert_int_equal(stamp_age(w, page), age);
		assert_int_equal(list_first(w->e, list_head(0, fgw_list_m(TYPE_FILE, clock_of(w)))),
				 page);
		world_check(w);
		world_free(w);
	}
}

static void no_rounds(void **state)
{
	struct world *w = full_world("fgw:chance=none", 30);
	int budget = 100;
	uint32_t page = (uint32_t)fgw_main_tail(w->e, world_lruvec(w, 0, 0), TYPE_FILE, &budget);

	(void)state;
	file_of(w)->target = 200;
	world_set_refs(w, page, 5);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_false(world_present(w, page));
	world_free(w);
}

/* ---- rule 7 ---- */

static void clock_ages_main(void **state)
{
	struct world *w = full_world("fgw:gens=8", 1);
	uint64_t clock = clock_of(w), in_m = pages_on(w, true);

	(void)state;
	assert_true(clock - file_of(w)->oldest < 7);
	for (uint32_t i = 1; i <= 20; i++) {
		pass(w, TICK);
		assert_int_equal(clock_of(w), clock + i);
		assert_true(clock_of(w) - file_of(w)->oldest < 7);
		world_check(w);
	}
	/* Splicing loses nobody. */
	assert_int_equal(pages_on(w, true), in_m);
	world_free(w);
}

/* A small room's tick lasts four pages. */
static void ticks_of_small_rooms(void **state)
{
	struct world *w = fgw_world("fgw");
	uint64_t clock;

	(void)state;
	fill(w, 0, 64);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	file_of(w)->tick = 0;
	file_of(w)->room = 64;
	clock = clock_of(w);
	fill(w, 1000, 3);
	assert_int_equal(clock_of(w), clock);
	fill(w, 1003, 1);
	assert_int_equal(clock_of(w), clock + 1);
	world_free(w);
}

/* ---- the room ---- */

static void target_follows_the_room(void **state)
{
	struct world *w = full_world("fgw", 160);

	(void)state;
	/* Half of it has gone when reclaim looks again. */
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_int_equal(file_of(w)->room, ROOM / 2);
	assert_in_range((int)(file_of(w)->target * 100), 7 * ROOM / 2 - 1, 7 * ROOM / 2);
	/* Growth counts before reclaim runs. */
	fill(w, 1000, 400);
	assert_int_equal(fgw_room(w->e, world_lruvec(w, 0, 0), TYPE_FILE), ROOM - 161 + 400);
	world_free(w);
}

static void target_is_clamped(void **state)
{
	struct world *w = full_world("fgw", 1);
	struct lruvec *lv = world_lruvec(w, 0, 0);

	(void)state;
	fgw_move_target(w->e, lv, TYPE_FILE, 1e9);
	assert_int_equal(fgw_target(w->e, lv, TYPE_FILE), (uint64_t)(0.9 * ROOM));
	fgw_move_target(w->e, lv, TYPE_FILE, -1e9);
	assert_int_equal(fgw_target(w->e, lv, TYPE_FILE), 3);
	world_free(w);
}

/* ---- knobs ---- */

static void defaults(void **state)
{
	static const struct {
		const char *name;
		double value;
	} want[] = {
		{"gens", 32},         {"ticks", 32},         {"tick_min", 4},
		{"once", 1},          {"refs_max", 7},       {"chance", 0},
		{"target", 0.07},     {"target_min", 0.01},  {"target_max", 0.9},
		{"step", 2},          {"near", 0.09},        {"fill_factor", 3},
		{"history", 1.5},     {"gate", 1},           {"stale", 0},
		{"gate_scan", 64},    {"first_fill", 1},     {"walk_every", 8},
		{"young_refs", 1},    {"exec_refs", 2},      {"born", 1},
		{"memcg_abort", 1},   {"balance", 0.09},     {"balance_window", 0.25},
		{"balance_min", 512}, {"balance_cost", 200}, {"noio", 1},
		{"fresh", 0.1},
	};
	const struct foliage_policy *policy = policy_find("fgw");
	size_t nr = 0;

	(void)state;
	for (const struct foliage_knob *k = policy->knobs; k->name; k++, nr++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(want) && strcmp(want[i].name, k->name) != 0)
			i++;
		assert_true(i < ARRAY_SIZE(want));
		assert_true(want[i].value == k->def);
	}
	assert_int_equal(nr, ARRAY_SIZE(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_a_tick),
		cmocka_unit_test(counted_hit_writes_once),
		cmocka_unit_test(every_access_without_once),
		cmocka_unit_test(first_fill_goes_to_main),
		cmocka_unit_test(near_refault_from_p_grows_it),
		cmocka_unit_test(near_refault_from_m_shrinks_p),
		cmocka_unit_test(used_fill_has_the_plain_step),
		cmocka_unit_test(far_refault_moves_nothing),
		cmocka_unit_test(shadow_expires),
		cmocka_unit_test(unused_pages_leave_expired_shadows),
		cmocka_unit_test(shadow_does_not_alias),
		cmocka_unit_test(gate_keeps_far_refaults_out),
		cmocka_unit_test(main_tail_is_lazy),
		cmocka_unit_test(p_gives_first_above_target),
		cmocka_unit_test(used_page_of_p_goes_to_m),
		cmocka_unit_test(main_tail_gets_rounds),
		cmocka_unit_test(no_rounds),
		cmocka_unit_test(clock_ages_main),
		cmocka_unit_test(ticks_of_small_rooms),
		cmocka_unit_test(target_follows_the_room),
		cmocka_unit_test(target_is_clamped),
		cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
