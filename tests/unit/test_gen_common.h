/* SPDX-License-Identifier: MIT
 *
 * What the tests of the multi-gen family share: a world whose window is set by hand, pages that
 * sit where the test wants them, and scans of one batch. It includes cmocka.
 */
#ifndef FOLIAGE_TESTS_TEST_GEN_COMMON_H
#define FOLIAGE_TESTS_TEST_GEN_COMMON_H

#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mm/shadow.h"
#include "tests/support/world.h"

#define R    F_REFERENCED
#define W    F_WORKINGSET
#define C(n) ((uint64_t)(n) << F_LRU_REFS_SHIFT)

static inline struct lruvec *root(const struct world *w)
{
	return world_lruvec(w, 0, 0);
}

/* The lists must be empty, or the pages must lie within the new window. */
static inline void set_window(struct world *w, uint64_t max_seq, uint64_t min_anon,
			      uint64_t min_file)
{
	struct lruvec *lv = root(w);

	atomic_store(&lv->gen.max_seq, max_seq);
	atomic_store(&lv->gen.min_seq[TYPE_ANON], min_anon);
	atomic_store(&lv->gen.min_seq[TYPE_FILE], min_file);
	gen_window_moved(w->e, lv);
}

static inline struct world *world_window(const char *policy, uint64_t max_seq, uint64_t min_seq)
{
	const struct world_options options = {
		.policy = policy, .nr_folios = 16384, .max_memcgs = 3};
	struct world *w = world_new(&options);

	set_window(w, max_seq, min_seq, min_seq);
	return w;
}

/* A page on the lists moves, flag and list, to the head of generation `seq`. */
static inline void settle(struct world *w, uint32_t page, uint64_t seq)
{
	struct folio *f = folio_at(w->e, (folio_id)page);
	struct lruvec *lv = folio_lruvec(w->e, f);
	uint64_t flags = folio_flags(f);

	gen_move_size(w->e, lv, flags, flags_gen(flags), gen_of(seq));
	folio_change(w->e, f, F_GEN_MASK, (uint64_t)gen_of(seq) + 1);
	list_del(w->e, (folio_id)page);
	folio_set_list(f, gen_list(gen_of(seq), flags_type(flags), flags_zone(flags)));
	list_add(w->e, list_head(lv->index, f->list), (folio_id)page);
}

/* A new page, `refs` as world_set_refs() takes them, at the head of generation `seq`. */
static inline void put(struct world *w, uint32_t page, uint32_t flags, uint64_t seq,
		       unsigned int refs)
{
	world_add(w, page, flags);
	world_drain(w);
	world_set_refs(w, page, refs);
	settle(w, page, seq);
}

static inline void put_range(struct world *w, uint32_t first, uint32_t nr, uint64_t seq,
			     unsigned int refs)
{
	for (uint32_t i = 0; i < nr; i++)
		put(w, first + i, 0, seq, refs);
}

static inline uint64_t refs_bits(const struct world *w, uint32_t page)
{
	return world_flags(w, page) & F_REFS_MASK;
}

/* The sequence number of the list on which a page is. */
static inline int64_t list_seq(const struct world *w, uint32_t page)
{
	int list = world_list(w, page);

	if (list < LIST_GEN)
		return -1;
	return (int64_t)gen_seq(gen_max_seq(root(w)),
				(list - LIST_GEN) / (NR_TYPES * MAX_NR_ZONES));
}

static inline bool at_head(const struct world *w, uint32_t page)
{
	return list_first(w->e, list_head(0, world_list(w, page))) == (folio_id)page;
}

static inline bool at_tail(const struct world *w, uint32_t page)
{
	return list_last(w->e, list_head(0, world_list(w, page))) == (folio_id)page;
}

/* One eviction batch of the root, files only. Returns what gen_evict() reports as scanned. */
static inline int64_t evict(struct world *w, int64_t nr)
{
	struct scan_control sc;

	world_scan_control(w, &sc);
	return gen_evict(w->e, root(w), &sc, nr, 0);
}

static inline int64_t stat_of_root(const struct world *w, enum stat_item item)
{
	return counter_read(&root(w)->stat[item]);
}

/* Tier counters of the current history slot. */
static inline unsigned int hist_of(const struct world *w, unsigned int type)
{
	return gen_hist(gen_knobs(w->e), gen_min_seq(root(w), type));
}

static inline int64_t refaulted(const struct world *w, unsigned int type, unsigned int tier)
{
	return counter_read(&root(w)->gen.refaulted[hist_of(w, type)][type][tier]);
}

static inline int64_t evicted(const struct world *w, unsigned int type, unsigned int tier)
{
	return counter_read(&root(w)->gen.evicted[hist_of(w, type)][type][tier]);
}

static inline uint64_t protected_in(const struct world *w, unsigned int type, unsigned int tier)
{
	return root(w)->gen.protected_[hist_of(w, type)][type][tier];
}

static inline void set_tier(struct world *w, unsigned int type, unsigned int tier, int64_t refaults,
			    int64_t evictions)
{
	struct lru_gen *g = &root(w)->gen;

	atomic_store(&g->refaulted[hist_of(w, type)][type][tier], refaults);
	atomic_store(&g->evicted[hist_of(w, type)][type][tier], evictions);
}

/* The shadow of a page evicted by memcg `memcg` when its oldest generation was `seq`. */
static inline uint64_t make_shadow(const struct world *w, uint32_t memcg, uint64_t seq,
				   unsigned int refs)
{
	return shadow_pack(w->e->memcgs[memcg].id, 0,
			   ((seq << SHADOW_REFS_BITS) | refs >> 1) & SHADOW_TIME_MASK, refs & 1);
}

#endif
