/* SPDX-License-Identifier: MIT
 *
 * The small world of the classic LRU's tests: two memcgs (the root and `a` below it), one node, a
 * page table that maps folio i at entry i, swap that can be filled and emptied, and a record of
 * what was evicted.
 */
#ifndef FOLIAGE_TESTS_TEST_CLRU_WORLD_H
#define FOLIAGE_TESTS_TEST_CLRU_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mm/clru.h"
#include "mm/shadow.h"

enum { WORLD_FOLIOS = 1 << 17 };

struct world {
	struct foliage_engine *e;
	struct foliage_cpu cpu;
	struct lruvec *root, *lv; /* lv: of memcg `a` */
	uint32_t memcg;
	int64_t swap_free;
	uint32_t vma_flags;
	uint32_t throttled;
	struct foliage_pte_table table;
	uint64_t *shadows;
	foliage_folio *evicted;
	uint32_t nr_evicted;
};

static void world_evict(void *ctx, foliage_folio folio, uint64_t shadow)
{
	struct world *w = ctx;

	w->shadows[folio] = shadow;
	w->evicted[w->nr_evicted++ % WORLD_FOLIOS] = folio;
}

static int64_t world_swap_free(void *ctx, uint32_t memcg)
{
	const struct world *w = ctx;

	(void)memcg;
	return w->swap_free;
}

static bool world_rmap(void *ctx, foliage_folio folio, uint32_t cursor, struct foliage_mapping *out)
{
	struct world *w = ctx;

	if (cursor || folio >= 512)
		return false;
	*out = (struct foliage_mapping){.vma_flags = w->vma_flags,
					.last = 512,
					.index = (uint32_t)folio,
					.table = &w->table};
	return true;
}

static bool world_unmap(void *ctx, foliage_folio folio)
{
	(void)ctx;
	(void)folio;
	return true;
}

static void world_throttle(void *ctx)
{
	struct world *w = ctx;

	w->throttled++;
}

static inline struct world *world_new(const char *policy, const struct foliage_engine_options *more)
{
	static const struct foliage_backend backend = {
		.evict = world_evict,
		.swap_free = world_swap_free,
		.rmap = world_rmap,
		.unmap = world_unmap,
		.throttle = world_throttle,
	};
	struct foliage_engine_options o =
		more ? *more : (struct foliage_engine_options){.exclusive = true};
	struct world *w = calloc(1, sizeof(*w));
	char message[256] = "";
	int rc;

	assert_non_null(w);
	w->shadows = calloc(WORLD_FOLIOS, sizeof(*w->shadows));
	w->evicted = calloc(WORLD_FOLIOS, sizeof(*w->evicted));
	for (size_t i = 0; i < ARRAY_SIZE(w->table.folio); i++)
		w->table.folio[i] = (foliage_folio)i;
	o.policy = policy;
	o.nr_folios = WORLD_FOLIOS;
	o.max_memcgs = 4;
	o.backend = &backend;
	o.ctx = w;
	if (foliage_engine_create(&o, &w->e, message, sizeof(message)))
		fail_msg("%s", message);
	rc = foliage_memcg_create(w->e, 0, "a");
	assert_true(rc > 0);
	w->memcg = (uint32_t)rc;
	w->lv = lruvec_of(w->e, w->memcg, 0);
	w->root = lruvec_of(w->e, 0, 0);
	return w;
}

static inline void world_free(struct world *w)
{
	foliage_engine_destroy(w->e);
	free(w->shadows);
	free(w->evicted);
	free(w);
}

static inline void world_check(struct world *w)
{
	struct err err = {{0}};

	for (uint32_t i = 0; i < w->e->nr_memcgs; i++)
		if (w->e->memcgs[i].used && w->e->ops->is_valid(w->e, lruvec_of(w->e, i, 0), &err))
			fail_msg("%s", err.text);
}

static inline void world_add(struct world *w, foliage_folio id, uint32_t flags)
{
	assert_int_equal(
		foliage_folio_add(w->e, &w->cpu, id, w->memcg, 0, 0, 0, flags, w->shadows[id]), 0);
	w->shadows[id] = 0;
}

/* Folios first..first+n-1 of memcg `a`, on the lists. */
static inline void world_fill(struct world *w, foliage_folio first, uint32_t n, uint32_t flags)
{
	for (uint32_t i = 0; i < n; i++)
		world_add(w, first + (foliage_folio)i, flags);
	foliage_cpu_drain(w->e, &w->cpu);
}

static inline void world_mark(struct world *w, foliage_folio id)
{
	foliage_folio_mark_accessed(w->e, &w->cpu, id);
}

static inline void world_activate(struct world *w, foliage_folio first, uint32_t n)
{
	for (uint32_t i = 0; i < 2 * n; i++)
		world_mark(w, first + (foliage_folio)(i / 2));
	foliage_cpu_drain(w->e, &w->cpu);
}

static inline uint64_t world_flags(struct world *w, foliage_folio id)
{
	return folio_flags(folio_at(w->e, id));
}

static inline int64_t world_size(struct world *w, int list)
{
	return counter_read(&w->lv->clru.size[list]);
}

static inline int64_t world_stat(struct world *w, enum stat_item item)
{
	return counter_read(&w->lv->stat[item]);
}

static inline void world_set(counter_t *c, int64_t n)
{
	atomic_store(c, n);
}

static inline folio_id world_head(struct world *w, int list, int steps)
{
	folio_id id = list_first(w->e, list_head(w->lv->index, list));

	while (steps-- > 0)
		id = folio_at(w->e, id)->next;
	return id;
}

static inline folio_id world_tail(struct world *w, int list, int steps)
{
	folio_id id = list_last(w->e, list_head(w->lv->index, list));

	while (steps-- > 0)
		id = folio_at(w->e, id)->prev;
	return id;
}

static inline struct scan_control world_scan(struct world *w)
{
	struct foliage_reclaim_request r = {
		.memcg = w->memcg, .swappiness = -1, .memcg_limit = true};
	struct scan_control sc;

	scan_control_init(w->e, &sc, &w->cpu, &r);
	sc.priority = DEF_PRIORITY;
	return sc;
}

static inline int64_t world_reclaim(struct world *w, uint64_t nr)
{
	struct foliage_reclaim_request r = {
		.memcg = w->memcg, .nr = nr, .swappiness = -1, .memcg_limit = true};

	return foliage_reclaim(w->e, &w->cpu, &r);
}

#endif
