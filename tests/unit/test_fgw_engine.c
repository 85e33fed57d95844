/* SPDX-License-Identifier: MIT
 *
 * FG-W as a citizen of the engine: page tables, anon against file, groups and their removal,
 * write-back, large folios, MADV_COLD, switching, and the bound on what one lock section looks at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mm/fgw.h"
#include "mm/policies.h"
#include "mm/shadow.h"
#include "tests/support/world.h"

enum { ROOM = 320, TICK = ROOM / 32 };

static struct world *fgw_world(const char *policy, uint32_t memcgs)
{
	const struct world_options options = {
		.policy = policy, .nr_folios = 8192, .totalram_pages = ROOM, .max_memcgs = memcgs};

	return world_new(&options);
}

static bool on_m(struct world *w, uint32_t page)
{
	return !fgw_is_p(world_list(w, page));
}

static struct fgw_type *type_of(struct world *w, unsigned int type)
{
	return &world_lruvec(w, 0, 0)->fgw->type[type];
}

static void pass(struct world *w, uint32_t nr)
{
	while (nr--) {
		world_add(w, 8000, 0);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 8000), 0);
	}
}

/* 299 pages on M, 21 on P, whose tail is page 299; reclaim has run. */
static struct world *full_world(const char *policy)
{
	struct world *w = fgw_world(policy, 1);

	for (uint32_t page = 0; page < ROOM; page++) {
		world_add(w, page, 0);
		world_mark(w, page, 1);
	}
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	return w;
}

/* Add an old page that a process maps; its own fault is over. */
static void add_mapped(struct world *w, uint32_t mm, uint32_t page, uint32_t flags)
{
	w->cpu.in_lru_fault = true;
	world_add(w, page, flags);
	w->cpu.in_lru_fault = false;
	world_map(w, mm, page, page);
	world_touch(w, mm, page, false);
}

/* ---- page tables ---- */

static void fault_alone_does_not_count(void **state)
{
	struct world *w = full_world("fgw:walk_every=0,target_min=0,fresh=0");
	uint32_t mm = world_mm(w, 0);

	(void)state;
	world_vma(w, mm, 0, 4096, 0);
	add_mapped(w, mm, 1000, 0);
	add_mapped(w, mm, 1001, 0);
	world_add(w, 1002, 0);
	pass(w, 2 * TICK);
	type_of(w, TYPE_FILE)->target = 1;
	/* 1001 has been seen and cleared once, then used again. */
	w->e->ops->walk_young(w->e, world_lruvec(w, 0, 0), 1001, false);
	assert_int_equal(world_refs(w, 1001), 0);
	pass(w, TICK);
	assert_int_equal(world_reclaim(w, 0, 22), 22);
	assert_int_equal(w->pages[1000].evictions, 1);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_true(world_present(w, 1001));
	assert_true(on_m(w, 1001));
	assert_int_equal(world_refs(w, 1001), 0);
	world_check(w);
	world_free(w);
}

static bool on_f(struct world *w, uint32_t page)
{
	return fgw_is_f(world_list(w, page));
}

/* F: the young bit that a fault left is cleared before P, so that one found at P's tail is a use. */
static void faults_are_told_from_uses(void **state)
{
	struct world *w = full_world("fgw:walk_every=0");
	uint32_t mm = world_mm(w, 0);

	(void)state;
	world_vma(w, mm, 0, 4096, 0);
	world_add(w, 999, 0);
	for (uint32_t page = 1000; page < 1010; page++)
		add_mapped(w, mm, page, 0);
	assert_false(on_f(w, 999));
	assert_true(on_f(w, 1000) && on_f(w, 1009));
	assert_int_equal(type_of(w, TYPE_FILE)->fresh, 10);
	world_check(w);
	/* Two may be fresh, a tenth of P's target of 22: the others move on, unused as yet. */
	assert_int_equal(world_reclaim(w, 0, 5), 5);
	assert_int_equal(type_of(w, TYPE_FILE)->fresh, 2);
	for (uint32_t page = 1000; page < 1008; page++) {
		assert_true(world_present(w, page) && !on_f(w, page) && !on_m(w, page));
		assert_false(world_young(w, mm, page));
		assert_int_equal(world_refs(w, page), 0);
		assert_false(world_flags(w, page) & F_READAHEAD);
	}
	world_check(w);
	/* Used now; the next one is not. */
	world_touch(w, mm, 1000, false);
	pass(w, TICK);
	world_add_range(w, 2000, 40, 0);
	assert_true(world_reclaim(w, 0, 40) >= 40);
	assert_true(world_present(w, 1000) && on_m(w, 1000));
	assert_false(world_present(w, 1001));
	world_check(w);
	world_free(w);
}

/* What F holds goes with the group, and to another policy. */
static void fresh_pages_move_with_the_lists(void **state)
{
	struct world *w = fgw_world("fgw", 3);
	int group = foliage_memcg_create(w->e, 0, "a");

	(void)state;
	assert_true(group > 0);
	foliage_memcg_set(w->e, (uint32_t)group, FOLIAGE_MAX, 100);
	for (uint32_t page = 0; page < 100; page++)
		world_add_to(w, page, (uint32_t)group, 0, 0, 0, 0);
	assert_int_equal(world_reclaim(w, (uint32_t)group, 10), 10);
	w->cpu.in_lru_fault = true;
	for (uint32_t page = 200; page < 205; page++)
		world_add_to(w, page, (uint32_t)group, 0, 0, 0, 0);
	w->cpu.in_lru_fault = false;
	assert_true(on_f(w, 202));
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, (uint32_t)group), 0);
	assert_int_equal(type_of(w, TYPE_FILE)->fresh, 5);
	assert_true(on_f(w, 202));
	world_check(w);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "fg", NULL, 0), 0);
	world_check(w);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "fgw", NULL, 0), 0);
	world_check(w);
	assert_int_equal(type_of(w, TYPE_FILE)->fresh, 0);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 95);
	world_free(w);
}

static void young_bits_count_once_a_tick(void **state)
{
	struct world *w = full_world("fgw");
	struct lruvec *lv = world_lruvec(w, 0, 0);

	(void)state;
	pass(w, TICK);
	w->e->ops->walk_young(w->e, lv, 310, false);
	w->e->ops->walk_young(w->e, lv, 310, false);
	assert_int_equal(world_refs(w, 310), 1);
	/* Code counts twice, anonymous memory never as code. */
	w->e->ops->walk_young(w->e, lv, 311, true);
	assert_int_equal(world_refs(w, 311), 2);
	pass(w, TICK);
	w->e->ops->neighbour_young(w->e, &w->cpu, 310, false);
	assert_int_equal(world_refs(w, 310), 2);
	world_free(w);
}

static uint64_t stamp(struct world *w, uint32_t page)
{
	return folio_flags(folio_at(w->e, (folio_id)page)) & F_GEN_MASK;
}

/* The first young bit may be that of the fault, long ago: seeing it makes the page no younger. */
static void a_fault_seen_late_keeps_its_time(void **state)
{
	struct world *w = full_world("fgw:walk_every=0");
	struct lruvec *lv = world_lruvec(w, 0, 0);
	uint32_t mm = world_mm(w, 0);
	uint64_t born;

	(void)state;
	world_vma(w, mm, 0, 4096, 0);
	add_mapped(w, mm, 1000, 0);
	world_add(w, 1001, 0);
	born = stamp(w, 1000);
	pass(w, 3 * TICK);
	w->e->ops->walk_young(w->e, lv, 1000, false);
	assert_int_equal(stamp(w, 1000), born);
	w->e->ops->walk_young(w->e, lv, 1000, false);
	assert_int_equal(stamp(w, 1000), born + 3);
	assert_int_equal(world_refs(w, 1000), 1);
	/* A read says when it is. */
	foliage_folio_mark_accessed(w->e, &w->cpu, 1001);
	assert_int_equal(stamp(w, 1001), born + 3);
	assert_int_equal(world_refs(w, 1001), 0);
	world_check(w);
	world_free(w);
}

/* Evicts one page of M or of P and says which. */
static uint32_t evict_one(struct world *w, bool main)
{
	uint32_t before[1100];

	for (uint32_t page = 0; page < ARRAY_SIZE(before); page++)
		before[page] = w->pages[page].evictions;
	type_of(w, TYPE_FILE)->target = main ? ROOM : 1;
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	for (uint32_t page = 0; page < ARRAY_SIZE(before); page++)
		if (w->pages[page].evictions != before[page])
			return page;
	fail_msg("nothing was evicted");
	return 0;
}

/* What stalls are counted by: pages of M, and those that M had to give up. */
static void workingset_is_what_m_holds(void **state)
{
	struct world *w = full_world("fgw");
	uint32_t from_m, from_p;

	(void)state;
	world_add_range(w, 1001, 40, 0);
	foliage_cpu_drain(w->e, &w->cpu);
	from_m = evict_one(w, true);
	from_p = evict_one(w, false);
	assert_int_not_equal(from_m, from_p);
	w->cpu.batch = FOLIAGE_BATCH;
	world_add(w, 1000, 0);
	world_add(w, from_m, 0);
	world_add(w, from_p, 0);
	assert_false(foliage_folio_workingset(w->e, 1000));
	assert_true(foliage_folio_workingset(w->e, (foliage_folio)from_m));
	assert_false(foliage_folio_workingset(w->e, (foliage_folio)from_p));
	w->cpu.batch = 1;
	foliage_cpu_drain(w->e, &w->cpu);
	assert_false(on_m(w, 1000));
	assert_false(foliage_folio_workingset(w->e, 1000));
	assert_true(on_m(w, from_m));
	assert_true(foliage_folio_workingset(w->e, (foliage_folio)from_m));
	/* Refs are no sign of it. */
	pass(w, TICK);
	world_mark(w, 1000, 1);
	pass(w, TICK);
	world_mark(w, 1000, 1);
	pass(w, TICK);
	world_mark(w, 1000, 1);
	assert_int_equal(world_refs(w, 1000), 2);
	assert_false(foliage_folio_workingset(w->e, 1000));
	world_check(w);
	world_free(w);
}

static void walks_at_the_clock(void **state)
{
	struct world *w = full_world("fgw:walk_every=4");
	struct lruvec *lv = world_lruvec(w, 0, 0);
	uint32_t mm = world_mm(w, 0);
	uint64_t walks;

	(void)state;
	world_vma(w, mm, 0, 4096, 0);
	world_map(w, mm, 310, 310);
	foliage_mm_ran(w->e, mm);
	pass(w, 4 * TICK);
	world_touch(w, mm, 310, false);
	walks = gen_max_seq(lv);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_int_equal(gen_max_seq(lv), walks + 1);
	assert_int_equal(world_refs(w, 310), 1);
	assert_false(world_young(w, mm, 310));
	/* Not due again. */
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_int_equal(gen_max_seq(lv), walks + 1);
	world_free(w);
}

/* ---- types ---- */

static void swappiness_chooses_the_type(void **state)
{
	static const struct {
		int swappiness;
		bool anon_stays, file_stays;
	} cases[] = {{0, true, false}, {201, false, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = fgw_world("fgw", 1);
		struct foliage_reclaim_request request = {
			.nr = 20, .swappiness = cases[i].swappiness, .memcg_limit = true};

		w->pageout = FOLIAGE_PAGEOUT_CLEAN;
		world_add_range(w, 0, 100, FOLIAGE_FOLIO_ANON);
		world_add_range(w, 100, 100, 0);
		assert_int_equal(foliage_reclaim(w->e, &w->cpu, &request), 20);
		assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_ANON) == 100,
				 cases[i].anon_stays);
		assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE) == 100,
				 cases[i].file_stays);
		world_check(w);
		world_free(w);
	}
}

/* File refaults all the time, anon never: anon pays. */
static void dear_type_is_spared(void **state)
{
	struct world *w = fgw_world("fgw", 1);
	struct fgw_type *file, *anon;
	struct foliage_reclaim_request request = {.nr = 10, .swappiness = 100, .memcg_limit = true};

	(void)state;
	w->pageout = FOLIAGE_PAGEOUT_CLEAN;
	world_add_range(w, 0, 100, FOLIAGE_FOLIO_ANON);
	world_add_range(w, 100, 100, 0);
	file = type_of(w, TYPE_FILE);
	anon = type_of(w, TYPE_ANON);
	file->spared_before = 500;
	assert_int_equal(foliage_reclaim(w->e, &w->cpu, &request), 10);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 100);
	file->spared_before = 0;
	anon->spared_before = 500;
	assert_int_equal(foliage_reclaim(w->e, &w->cpu, &request), 10);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 90);
	world_free(w);
}

/* Refaults of either type that cost the same: 400 - swappiness of anon, 200 + swappiness of file. */
static void swappiness_weighs(void **state)
{
	static const struct {
		int swappiness;
		uint64_t file, anon;
		bool anon_goes;
	} cases[] = {{1, 1985, 1000, false}, {1, 1990, 1000, true},   {60, 1305, 1000, false},
		     {60, 1310, 1000, true}, {200, 500, 1000, false}, {200, 501, 1000, true},
		     {200, 63, 0, false},    {200, 64, 0, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = fgw_world("fgw", 1);
		struct foliage_reclaim_request request = {
			.nr = 10, .swappiness = cases[i].swappiness, .memcg_limit = true};

		w->pageout = FOLIAGE_PAGEOUT_CLEAN;
		world_add_range(w, 0, 100, FOLIAGE_FOLIO_ANON);
		world_add_range(w, 100, 100, 0);
		type_of(w, TYPE_FILE)->spared_before = cases[i].file;
		type_of(w, TYPE_ANON)->spared_before = cases[i].anon;
		assert_int_equal(foliage_reclaim(w->e, &w->cpu, &request), 10);
		assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_ANON),
				 cases[i].anon_goes ? 90 : 100);
		world_free(w);
	}
}

/* Which refaults count for the balance: those of 0.09 of the room of both types, whatever the
 * type's own share is. */
static void spared_refaults(void **state)
{
	static const struct {
		uint32_t since;
		int64_t spared;
	} cases[] = {{20, 1}, {40, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = full_world("fgw");

		assert_int_equal(counter_read(&type_of(w, TYPE_FILE)->spared), 0);
		world_add_range(w, 1000, 2, 0);
		assert_int_equal(world_reclaim(w, 0, 1), 1);
		assert_int_equal(w->pages[299].evictions, 1);
		pass(w, cases[i].since);
		world_add(w, 299, 0);
		assert_int_equal(counter_read(&type_of(w, TYPE_FILE)->spared), cases[i].spared);
		world_free(w);
	}
}

/* Both counts are halved together, after 512 pages or a quarter of the room were evicted; pages that
 * only come in, and may be freed by their owners, do not count. */
static void balance_forgets(void **state)
{
	struct world *w = full_world("fgw");
	struct lruvec *lv = world_lruvec(w, 0, 0);

	(void)state;
	type_of(w, TYPE_FILE)->spared_before = 300;
	type_of(w, TYPE_ANON)->spared_before = 100;
	counter_add(w->e, &type_of(w, TYPE_ANON)->spared, 50);
	lv->fgw->window = (uint64_t)(counter_read(&type_of(w, TYPE_FILE)->evicted[false]) +
				     counter_read(&type_of(w, TYPE_FILE)->evicted[true]));
	pass(w, 600);
	counter_add(w->e, &type_of(w, TYPE_FILE)->evicted[true], 500);
	counter_add(w->e, &type_of(w, TYPE_ANON)->evicted[false], 11);
	fgw_pass_window(w->e, lv);
	assert_int_equal(type_of(w, TYPE_FILE)->spared_before, 300);
	counter_add(w->e, &type_of(w, TYPE_FILE)->evicted[false], 1);
	fgw_pass_window(w->e, lv);
	assert_int_equal(type_of(w, TYPE_FILE)->spared_before, 150);
	assert_int_equal(type_of(w, TYPE_ANON)->spared_before, 75);
	assert_int_equal(counter_read(&type_of(w, TYPE_ANON)->spared), 0);
	world_free(w);
}

/* Anon can be spared, and its device takes time: nothing is freed in this pass, and file is not taken
 * instead. */
static void swapping_out_keeps_its_turn(void **state)
{
	struct world *w = fgw_world("fgw", 1);
	struct foliage_reclaim_request request = {.nr = 32, .swappiness = 60};

	(void)state;
	w->pageout = FOLIAGE_PAGEOUT_STARTED;
	world_add_range(w, 0, 1000, FOLIAGE_FOLIO_ANON);
	world_add_range(w, 1000, 1000, 0);
	type_of(w, TYPE_FILE)->spared_before = 1000;
	foliage_reclaim(w->e, &w->cpu, &request);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 1000);
	world_check(w);
	world_free(w);
}

/* All of file is dirty and nobody writes it: anon has its turn. */
static void stuck_type_passes_its_turn(void **state)
{
	struct world *w = fgw_world("fgw", 1);
	struct foliage_reclaim_request request = {.nr = 32, .swappiness = 60};

	(void)state;
	w->pageout = FOLIAGE_PAGEOUT_CLEAN;
	world_add_range(w, 0, 1000, FOLIAGE_FOLIO_ANON);
	world_add_range(w, 1000, 1000, 0);
	for (uint32_t page = 1000; page < 2000; page++)
		foliage_folio_set_dirty(w->e, (foliage_folio)page);
	assert_true(foliage_reclaim(w->e, &w->cpu, &request) >= 32);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 1000);
	world_check(w);
	world_free(w);
}

/* All of P is being read: M gives, although P is above its target. */
static void busy_probation_does_not_stop_reclaim(void **state)
{
	struct world *w = full_world("fgw");
	uint64_t before;

	(void)state;
	world_add_range(w, 1000, 100, FOLIAGE_FOLIO_LOCKED);
	for (uint32_t page = 299; page < ROOM; page++)
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, (foliage_folio)page), 0);
	before = counter_size(fgw_size(world_lruvec(w, 0, 0), TYPE_FILE, true));
	assert_true(world_reclaim(w, 0, 32) >= 32);
	assert_true(counter_size(fgw_size(world_lruvec(w, 0, 0), TYPE_FILE, true)) <= before - 32);
	assert_int_equal(counter_size(fgw_size(world_lruvec(w, 0, 0), TYPE_FILE, false)), 100);
	world_check(w);
	world_free(w);
}

/* Without I/O, and no swap cache to take from: file only, at any swappiness. */
static void without_io_anon_is_left_alone(void **state)
{
	struct world *w = fgw_world("fgw", 1);
	struct foliage_reclaim_request request = {.nr = 10, .swappiness = 200, .no_io = true};
	int64_t scanned;

	(void)state;
	world_add_range(w, 0, 1000, FOLIAGE_FOLIO_ANON);
	world_add_range(w, 1000, 1000, 0);
	type_of(w, TYPE_FILE)->spared_before = 1000;
	assert_true(foliage_reclaim(w->e, &w->cpu, &request) >= 10);
	scanned = counter_read(&world_lruvec(w, 0, 0)->stat[STAT_PGSCAN_ANON]);
	assert_int_equal(scanned, 0);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_ANON), 1000);
	world_check(w);
	world_free(w);
}

/* ---- dirty, large, cold ---- */

static void written_back_goes_next(void **state)
{
	struct world *w = full_world("fgw");

	(void)state;
	foliage_folio_set_dirty(w->e, 299);
	world_add_range(w, 1000, 5, 0);
	assert_int_equal(world_reclaim(w, 0, 3), 3);
	/* It waits on M until it is clean; then it is P's tail. */
	assert_true(world_present(w, 299));
	assert_true(on_m(w, 299));
	foliage_folio_start_writeback(w->e, 299);
	foliage_folio_end_writeback(w->e, &w->cpu, 299);
	assert_false(on_m(w, 299));
	assert_int_equal(list_last(w->e, list_head(0, fgw_list_p(TYPE_FILE))), 299);
	world_check(w);
	world_free(w);
}

/* File is chosen, but all of it is on its way to the device: the pass goes on to anonymous memory, and
 * nobody waits. */
static void files_on_their_way_are_not_waited_for(void **state)
{
	struct world *w = fgw_world("fgw", 1);

	(void)state;
	world_add_range(w, 0, 1000, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	world_add_range(w, 1000, 1000, FOLIAGE_FOLIO_DIRTY);
	for (foliage_folio i = 1000; i < 2000; i++)
		foliage_folio_start_writeback(w->e, i);
	assert_true(world_reclaim(w, 0, 10) >= 10);
	assert_int_equal(w->nr_throttled, 0);
	assert_true(counter_read(&world_lruvec(w, 0, 0)->stat[STAT_PGSTEAL_ANON]) >= 10);
	world_check(w);
	world_free(w);
}

static void cold_goes_next(void **state)
{
	struct world *w = full_world("fgw");

	(void)state;
	pass(w, TICK);
	world_mark(w, 200, 1);
	foliage_folio_deactivate(w->e, &w->cpu, 200);
	assert_int_equal(world_refs(w, 200), 0);
	assert_int_equal(list_last(w->e, list_head(0, fgw_list_p(TYPE_FILE))), 200);
	world_add_range(w, 1000, 5, 0);
	assert_int_equal(world_reclaim(w, 0, 1), 1);
	assert_false(world_present(w, 200));
	world_free(w);
}

static void large_folios_count_in_pages(void **state)
{
	struct world *w = full_world("fgw");
	struct lruvec *lv = world_lruvec(w, 0, 0);
	uint64_t clock = fgw_clock(lv, TYPE_FILE),
		 before = counter_size(fgw_size(lv, TYPE_FILE, false));

	(void)state;
	world_add_to(w, 1000, 0, 0, 0, 6, 0);
	assert_int_equal(counter_size(fgw_size(lv, TYPE_FILE, false)), before + 64);
	assert_int_equal(fgw_clock(lv, TYPE_FILE), clock + 5);
	world_check(w);
	world_free(w);
}

/* ---- groups, switching ---- */

static void removal_keeps_pages_and_their_age(void **state)
{
	struct world *w = fgw_world("fgw", 3);
	int group = foliage_memcg_create(w->e, 0, "a");

	(void)state;
	assert_true(group > 0);
	foliage_memcg_set(w->e, (uint32_t)group, FOLIAGE_MAX, 100);
	for (uint32_t page = 0; page < 100; page++)
		world_add_to(w, page, (uint32_t)group, 0, 0, 0, 0);
	assert_true(on_m(w, 92));
	assert_false(on_m(w, 95));
	assert_int_equal(world_reclaim(w, (uint32_t)group, 10), 10);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, (uint32_t)group), 0);
	assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), 90);
	assert_true(on_m(w, 92));
	world_check(w);
	/* What it left behind means nothing any more. */
	world_add(w, 0, 0);
	assert_int_equal(counter_read(&world_lruvec(w, 0, 0)->stat[STAT_REFAULT_FILE]), 0);
	assert_int_equal(world_reclaim(w, 0, 91), 91);
	world_check(w);
	world_free(w);
}

static void switching_keeps_the_order(void **state)
{
	static const char *const others[] = {"fg", "clru", "mglru-6.12"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct world *w = full_world("fgw");

		assert_int_equal(foliage_engine_switch(w->e, &w->cpu, others[i], NULL, 0), 0);
		world_check(w);
		assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "fgw:target=0.01", NULL, 0),
				 0);
		world_check(w);
		assert_int_equal(w->e->ops->size(w->e, world_lruvec(w, 0, 0), TYPE_FILE), ROOM - 1);
		assert_int_equal(world_reclaim(w, 0, 5), 5);
		/* What was on P is what goes, its tail first. */
		for (uint32_t page = 299; page < 304; page++)
			assert_false(world_present(w, page));
		world_free(w);
	}
}

/* ---- bounded work ---- */

static uint32_t most;

static void note(void *ctx, uint32_t lruvec, uint32_t nr)
{
	(void)ctx;
	(void)lruvec;
	most = MAX(most, nr);
}

/* Every page has been used up to the limit of refs: nothing can be freed without passing all of
 * them. */
static void lock_sections_are_short(void **state)
{
	struct world *w = fgw_world("fgw", 1);

	(void)state;
	world_add_range(w, 0, 4000, 0);
	for (uint32_t page = 0; page < 4000; page++)
		world_set_refs(w, page, 7);
	w->e->backend.lock_dropped = note;
	most = 0;
	assert_true(world_reclaim(w, 0, 32) >= 32);
	assert_in_range(most, 1, FGW_EXAMINE_MAX);
	assert_true(counter_read(&world_lruvec(w, 0, 0)->stat[STAT_PROMOTED]) > 3000);
	/* And a refault that looks for M's tail passes no more than gate_scan of them. */
	pass(w, 100);
	for (uint32_t page = 0; page < 4000; page++)
		if (world_present(w, page))
			world_mark(w, page, 1);
	for (uint32_t page = 0; page < 4000; page++) {
		int64_t moved = counter_read(&world_lruvec(w, 0, 0)->stat[STAT_PROMOTED]);

		if (world_present(w, page))
			continue;
		world_add(w, page, 0);
		moved = counter_read(&world_lruvec(w, 0, 0)->stat[STAT_PROMOTED]) - moved;
		assert_in_range(moved, 0, 2 * 64);
	}
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault_alone_does_not_count),
		cmocka_unit_test(faults_are_told_from_uses),
		cmocka_unit_test(fresh_pages_move_with_the_lists),
		cmocka_unit_test(young_bits_count_once_a_tick),
		cmocka_unit_test(workingset_is_what_m_holds),
		cmocka_unit_test(a_fault_seen_late_keeps_its_time),
		cmocka_unit_test(walks_at_the_clock),
		cmocka_unit_test(swappiness_chooses_the_type),
		cmocka_unit_test(dear_type_is_spared),
		cmocka_unit_test(swappiness_weighs),
		cmocka_unit_test(spared_refaults),
		cmocka_unit_test(balance_forgets),
		cmocka_unit_test(stuck_type_passes_its_turn),
		cmocka_unit_test(swapping_out_keeps_its_turn),
		cmocka_unit_test(busy_probation_does_not_stop_reclaim),
		cmocka_unit_test(without_io_anon_is_left_alone),
		cmocka_unit_test(written_back_goes_next),
		cmocka_unit_test(files_on_their_way_are_not_waited_for),
		cmocka_unit_test(cold_goes_next),
		cmocka_unit_test(large_folios_count_in_pages),
		cmocka_unit_test(removal_keeps_pages_and_their_age),
		cmocka_unit_test(switching_keeps_the_order),
		cmocka_unit_test(lock_sections_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
