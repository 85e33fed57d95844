/* SPDX-License-Identifier: MIT
 *
 * Random operations on every engine policy, and after each single one everything that can be
 * counted twice is: every lruvec, the memcg tree, and that all pages charged are on a list or in a
 * batch. A failure names policy, seed, step and operation; FOLIAGE_SEED runs that seed alone,
 * FOLIAGE_STEPS changes the length.
 *
 * One rule of B.8 breaks one invariant by design: aging that may not evict a type passes over its
 * oldest generation without touching it, the list's index is reused, and a folio that had been
 * promoted from that list by one generation then stands on a younger list than its flags name; when
 * eviction closes that generation, the flags are outside the window until the index is reused. So
 * worlds are of three kinds:
 *
 *   BOTH_TYPES  both types can always be evicted: every invariant holds
 *   FILE_ONLY   no swap, swappiness 0, no I/O, and no anonymous pages: every invariant holds
 *   INVERTING   all of it together: nothing is lost, links and totals agree, flags may be outside
 *               the window
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mm/memcg.h"
#include "mm/policies.h"
#include "tests/support/world.h"

enum { PAGES = 400, GROUPS = 6, NODES = 2, ZONES = 2, STEPS = 2000, SEEDS = 2 };

enum kind { BOTH_TYPES, FILE_ONLY, INVERTING };

struct run {
	struct world *w;
	enum kind kind;
	uint64_t rng, seed;
	const char *policy; /* the first one */
	const char *op;
	unsigned int step;
	uint32_t mms[GROUPS];
	uint32_t nr_mms;
	bool switching;
};

static uint32_t below(struct run *r, uint32_t n)
{
	return splitmix64_below(&r->rng, n);
}

static uint32_t any_page(struct run *r)
{
	/* Half of the accesses go to a twentieth of the pages. */
	return below(r, 2) ? below(r, PAGES) : below(r, PAGES / 20);
}

/* An online group. */
static uint32_t any_group(struct run *r)
{
	uint32_t memcg;

	do
		memcg = below(r, GROUPS);
	while (!r->w->e->memcgs[memcg].online);
	return memcg;
}

static const struct foliage_policy *engine_policy(size_t i)
{
	for (size_t at = 0; foliage_policies[at]; at++)
		if (foliage_policies[at]->engine && !i--)
			return foliage_policies[at];
	return NULL;
}

/* ---- operations ---- */

static void op_add(struct run *r)
{
	uint32_t page = any_page(r), flags = 0, order = below(r, 12) ? 0 : below(r, 5);

	if (world_present(r->w, page))
		return;
	if (r->kind != FILE_ONLY && below(r, 3) == 0)
		flags |= below(r, 4) ? FOLIAGE_FOLIO_ANON : FOLIAGE_FOLIO_SHMEM;
	else if (below(r, 8) == 0)
		flags |= FOLIAGE_FOLIO_EXEC;
	if (below(r, 6) == 0)
		flags |= FOLIAGE_FOLIO_DIRTY;
	if (below(r, 25) == 0)
		flags |= FOLIAGE_FOLIO_MLOCKED;
	if (below(r, 20) == 0)
		flags |= FOLIAGE_FOLIO_LOCKED;
	if (below(r, 20) == 0)
		flags |= FOLIAGE_FOLIO_DROPBEHIND;
	if (below(r, 10) == 0)
		flags |= FOLIAGE_FOLIO_ACCESSED;
	if (below(r, 10) == 0)
		flags |= FOLIAGE_FOLIO_WRITE;
	if (flags & FOLIAGE_FOLIO_ANON && below(r, 3) == 0)
		flags |= FOLIAGE_FOLIO_SWAPCACHE;
	r->w->cpu.in_lru_fault = below(r, 2);
	world_add_to(r->w, page, any_group(r), below(r, NODES), below(r, ZONES), order, flags);
	r->w->cpu.in_lru_fault = false;
	if (below(r, 2))
		world_mark(r->w, page, 1 + below(r, 3));
}

static void op_mark(struct run *r)
{
	world_mark(r->w, any_page(r), 1 + below(r, 4));
}

static bool mapped_anywhere(struct run *r, uint32_t page)
{
	return r->w->pages[page].ptes != NULL;
}

static void op_map_and_touch(struct run *r)
{
	uint32_t page = any_page(r), mm = r->mms[below(r, r->nr_mms)];
	uint64_t flags = world_flags(r->w, page);

	if (!world_present(r->w, page) || flags_nr(flags) > 1)
		return;
	if (!world_mapped(r->w, mm, page)) {
		world_map(r->w, mm, page, page);
		folio_change(r->w->e, folio_at(r->w->e, (folio_id)page), 0, F_MAPPED);
	}
	world_touch(r->w, mm, page, below(r, 4) == 0);
	if (below(r, 2))
		foliage_mm_ran(r->w->e, mm);
}

static void op_remove(struct run *r)
{
	uint32_t page = any_page(r);

	if (!mapped_anywhere(r, page))
		foliage_folio_remove(r->w->e, &r->w->cpu, (foliage_folio)page);
}

static void op_dirty(struct run *r)
{
	foliage_folio page = (foliage_folio)any_page(r);

	if (!foliage_folio_present(r->w->e, page))
		return;
	switch (below(r, 4)) {
	case 0:
		foliage_folio_set_dirty(r->w->e, page);
		break;
	case 1:
		foliage_folio_clear_dirty(r->w->e, page);
		break;
	case 2:
		foliage_folio_start_writeback(r->w->e, page);
		break;
	case 3:
		foliage_folio_unlock(r->w->e, page);
		break;
	}
}

static void op_end_writeback(struct run *r)
{
	world_end_writeback(r->w);
}

static void op_deactivate(struct run *r)
{
	foliage_folio page = (foliage_folio)any_page(r);

	if (foliage_folio_present(r->w->e, page))
		foliage_folio_deactivate(r->w->e, &r->w->cpu, page);
}

static void op_drain(struct run *r)
{
	world_drain(r->w);
}

static int any_swappiness(struct run *r)
{
	static const int choices[] = {-1, 1, 60, 100, 199, 200, 0};

	return choices[below(r, r->kind == BOTH_TYPES ? 6 : 7)];
}

static void op_reclaim(struct run *r)
{
	struct foliage_reclaim_request request = {
		.memcg = below(r, 3) ? any_group(r) : 0,
		.node = below(r, NODES),
		.nr = below(r, 100),
		.swappiness = any_swappiness(r),
		.batch = below(r, 2) ? 0 : 1 + below(r, 64),
		.memcg_limit = below(r, 2),
		.kswapd = below(r, 4) == 0,
		.no_io = below(r, 4) == 0,
		.no_swap = r->kind != BOTH_TYPES && below(r, 8) == 0,
		.no_unmap = below(r, 8) == 0,
	};

	if (below(r, 8) == 0) {
		request.proactive = true;
		if (r->kind == INVERTING && below(r, 2))
			request.swappiness = SWAPPINESS_ANON_ONLY;
	}
	assert_true(foliage_reclaim(r->w->e, &r->w->cpu, &request) >= 0);
}

static void op_make_room(struct run *r)
{
	foliage_memcg_make_room(r->w->e, &r->w->cpu, any_group(r), 1 + below(r, 40), below(r, 2));
}

static void op_command(struct run *r)
{
	uint32_t memcg = any_group(r), node = below(r, NODES);
	struct lruvec *lv = world_lruvec(r->w, memcg, node);
	uint64_t seq = gen_max_seq(lv);
	uint32_t swappiness = r->kind == BOTH_TYPES || below(r, 4) ? 1 + below(r, 200) : 0;
	char text[100];

	if (below(r, 2))
		snprintf(text, sizeof(text), "+ %u %u %llu %u %u", r->w->e->memcgs[memcg].id, node,
			 (unsigned long long)seq, swappiness, below(r, 2));
	else
		snprintf(text, sizeof(text), "- %u %u %llu %u %u", r->w->e->memcgs[memcg].id, node,
			 (unsigned long long)(seq - 2 - below(r, 2)), swappiness, below(r, 64));
	foliage_lru_gen_write(r->w->e, &r->w->cpu, text);
}

static void op_create(struct run *r)
{
	char name[16];

	snprintf(name, sizeof(name), "g%u", r->step);
	foliage_memcg_create(r->w->e, any_group(r), name);
}

static void op_remove_group(struct run *r)
{
	foliage_memcg_remove(r->w->e, &r->w->cpu, any_group(r));
}

static void op_limit(struct run *r)
{
	enum foliage_limit what = (enum foliage_limit)below(r, FOLIAGE_SWAPPINESS + 1);
	uint64_t value = below(r, 201);

	if (what != FOLIAGE_SWAPPINESS && below(r, 3) == 0)
		value = what <= FOLIAGE_LOW ? 0 : FOLIAGE_UNLIMITED;
	if (what == FOLIAGE_SWAPPINESS && r->kind == BOTH_TYPES)
		value = MAX(value, UINT64_C(1));
	foliage_memcg_set(r->w->e, any_group(r), what, value);
}

static void op_world(struct run *r)
{
	static const enum foliage_pageout answers[] = {
		FOLIAGE_PAGEOUT_KEEP, FOLIAGE_PAGEOUT_ACTIVATE, FOLIAGE_PAGEOUT_STARTED,
		FOLIAGE_PAGEOUT_CLEAN};

	switch (below(r, 6)) {
	case 0:
		r->w->pageout = answers[below(r, 4)];
		break;
	case 1:
		r->w->swap_free = r->kind == BOTH_TYPES || below(r, 3) ? 100000 : below(r, 100);
		break;
	case 2:
		r->w->swapcache = below(r, 50);
		break;
	case 3:
		r->w->mm_busy = below(r, 3) == 0;
		break;
	case 4:
		r->w->pages[any_page(r)].no_unmap = below(r, 4) == 0;
		break;
	case 5:
		r->w->cpu.batch = 1 + below(r, FOLIAGE_BATCH);
		break;
	}
	r->w->now_ms += below(r, 1000);
	foliage_flush_stats(r->w->e);
}

static void op_switch(struct run *r)
{
	char message[200];
	size_t nr = 0;

	if (!r->switching || below(r, 4))
		return;
	while (engine_policy(nr))
		nr++;
	if (foliage_engine_switch(r->w->e, &r->w->cpu, engine_policy(below(r, (uint32_t)nr))->name,
				  message, sizeof(message)))
		fail_msg("%s", message);
}

static const struct {
	const char *name;
	void (*run)(struct run *r);
	unsigned int weight;
} operations[] = {
	{"add", op_add, 120},
	{"mark", op_mark, 80},
	{"map and touch", op_map_and_touch, 40},
	{"remove", op_remove, 8},
	{"dirty", op_dirty, 15},
	{"end of write-back", op_end_writeback, 8},
	{"deactivate", op_deactivate, 8},
	{"drain", op_drain, 8},
	{"reclaim", op_reclaim, 30},
	{"make room", op_make_room, 10},
	{"lru_gen command", op_command, 20},
	{"create group", op_create, 8},
	{"remove group", op_remove_group, 6},
	{"limit", op_limit, 8},
	{"world", op_world, 8},
	{"switch", op_switch, 8},
};

/* ---- the checks ---- */

static int64_t pages_in_batch(const struct run *r)
{
	int64_t pages = 0;

	for (uint32_t i = 0; i < r->w->cpu.nr_add; i++)
		pages += flags_nr(world_flags(r->w, (uint32_t)r->w->cpu.add[i]));
	return pages;
}

/* Pages on any list of the lruvec, counted by walking; -1: links disagree. */
static int64_t walk_lists(const struct foliage_engine *e, const struct lruvec *lv)
{
	int64_t pages = 0;

	for (int list = 0; list < NR_LISTS; list++) {
		folio_id head = list_head(lv->index, list);

		for (folio_id id = list_first(e, head), prev = head;;
		     prev = id, id = folio_at(e, id)->next) {
			if (folio_at(e, id)->prev != prev)
				return -1;
			if (id == head)
				break;
			if (folio_lruvec(e, folio_at(e, id)) != lv)
				return -1;
			pages += flags_nr(folio_flags(folio_at(e, id)));
		}
	}
	return pages;
}

/* Pages that the counters of the multi-gen family know, in all generations whether or not they
 * exist. */
static int64_t gen_counters(const struct lruvec *lv)
{
	int64_t pages = 0;

	for (int gen = 0; gen < MAX_NR_GENS; gen++)
		for (int type = 0; type < NR_TYPES; type++)
			for (int zone = 0; zone < MAX_NR_ZONES; zone++)
				pages += counter_read(&lv->gen.nr_pages[gen][type][zone]);
	return pages;
}

static int check_lruvec(struct run *r, struct lruvec *lv, int64_t *pages, struct err *err)
{
	struct foliage_engine *e = r->w->e;
	int64_t walked = walk_lists(e, lv),
		unevictable = counter_read(&lv->clru.size[LIST_UNEVICTABLE]), counted;

	*pages += walked;
	if (walked < 0)
		return err_set(err, -1, "lruvec %u: broken links", lv->index);
	if (r->kind == INVERTING) {
		counted = gen_counters(lv) + unevictable;
		if (e->ops->rules && counted != walked)
			return err_set(err, -1, "lruvec %u: counters say %lld pages, lists %lld",
				       lv->index, (long long)counted, (long long)walked);
		return 0;
	}
	counted = unevictable;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		counted += (int64_t)e->ops->size(e, lv, type);
	if (counted != walked)
		return err_set(err, -1, "lruvec %u: sizes say %lld pages, lists %lld", lv->index,
			       (long long)counted, (long long)walked);
	return e->ops->is_valid(e, lv, err);
}

static void check(struct run *r)
{
	struct foliage_engine *e = r->w->e;
	int64_t pages = pages_in_batch(r);
	struct err err = {{0}};
	int broken = 0;

	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes && !broken; i++)
		if (e->memcgs[i / e->nr_nodes].used)
			broken = check_lruvec(r, &e->lruvecs[i], &pages, &err);
	if (!broken)
		broken = memcg_is_valid(e, &err);
	if (!broken && pages != counter_read(&e->memcgs[0].usage))
		broken = err_set(&err, -1, "%lld pages are charged, lists and batch have %lld",
				 (long long)counter_read(&e->memcgs[0].usage), (long long)pages);
	if (broken)
		fail_msg("%s (now %s), kind %d, seed %llu, step %u, %s: %s", r->policy,
			 e->policy->name, (int)r->kind, (unsigned long long)r->seed, r->step, r->op,
			 err.text);
}

static void step(struct run *r)
{
	unsigned int total = 0, choice;
	size_t i = 0;

	for (size_t j = 0; j < ARRAY_SIZE(operations); j++)
		total += operations[j].weight;
	for (choice = below(r, total); choice >= operations[i].weight; i++)
		choice -= operations[i].weight;
	r->op = operations[i].name;
	operations[i].run(r);
	check(r);
}

static void run(const char *policy, enum kind kind, uint64_t seed, bool switching)
{
	const char *steps = getenv("FOLIAGE_STEPS");
	unsigned int nr = steps ? (unsigned int)atoi(steps) : STEPS;
	struct run r = {
		.kind = kind, .policy = policy, .rng = seed, .seed = seed, .switching = switching};

	r.w = world_new(&(struct world_options){.policy = policy,
						.nr_folios = PAGES,
						.max_memcgs = GROUPS,
						.nr_nodes = NODES,
						.nr_zones = ZONES,
						.seed = seed});
	r.w->cpu.batch = 1 + below(&r, FOLIAGE_BATCH);
	for (; r.nr_mms < 3; r.nr_mms++) {
		uint32_t memcg = 0;

		if (r.nr_mms) {
			int slot = foliage_memcg_create(r.w->e, 0, r.nr_mms == 1 ? "one" : "two");

			assert_true(slot > 0);
			memcg = (uint32_t)slot;
		}
		r.mms[r.nr_mms] = world_mm(r.w, memcg);
		world_vma(r.w, r.mms[r.nr_mms], 0, PAGES, r.nr_mms == 2 ? FOLIAGE_VMA_EXEC : 0);
	}
	for (r.step = 0; r.step < nr; r.step++)
		step(&r);
	/* The operations did something. */
	if (nr >= STEPS)
		assert_true(r.w->nr_evicted > 100);
	world_free(r.w);
}

static void run_seeds(const char *policy, bool switching)
{
	const char *only = getenv("FOLIAGE_SEED");
	uint64_t first = only ? strtoull(only, NULL, 0) : 1, last = only ? first : SEEDS;

	for (uint64_t seed = first; seed <= last; seed++)
		for (int kind = BOTH_TYPES; kind <= INVERTING; kind++)
			run(policy, (enum kind)kind, seed, switching);
}

static void test_every_policy(void **state)
{
	const struct foliage_policy *policy;

	(void)state;
	for (size_t i = 0; (policy = engine_policy(i)); i++)
		run_seeds(policy->name, false);
}

/* The knobs that change what the code does rather than by how much. */
static void test_knobs(void **state)
{
	static const char *const policies[] = {
		"fg:tail_mode=min,pt_promote_scope=all",
		"fg:tail_mode=list,pt_promote_scope=min",
		"fg:memcg_abort=1,histgens=4",
		"mglru:memcg_abort=1,histgens=4",
		"mglru-noio:noio_fold=1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_seeds(policies[i], false);
}

static void test_switching(void **state)
{
	(void)state;
	run_seeds("fg", true);
	run_seeds("clru", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_policy),
		cmocka_unit_test(test_knobs),
		cmocka_unit_test(test_switching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
