/* SPDX-License-Identifier: MIT
 *
 * memcgs: the tree, charging, protection (A.8), statistics over subtrees.
 */
#ifndef FOLIAGE_MM_MEMCG_H
#define FOLIAGE_MM_MEMCG_H

#include <stdio.h>

#include "base/err.h"
#include "mm/lruvec.h"

/* Create the root in slot 0; destroy everything. */
int memcg_init(struct foliage_engine *e);
void memcg_fini(struct foliage_engine *e);

/* Charge (nr < 0: uncharge) pages to `memcg` and its ancestors. */
void memcg_charge(struct foliage_engine *e, uint32_t memcg, int64_t nr);

/* The nearest of the memcg and its ancestors whose max, or high, leaves no room for `nr` more pages;
 * UINT32_MAX: none. */
uint32_t memcg_over(const struct foliage_engine *e, uint32_t memcg, uint32_t nr, bool high);

/* Pre-order walk of the subtree below `root`: start with prev = UINT32_MAX; UINT32_MAX at the end.
 * Children in order of creation. Only used slots, online or not. */
uint32_t memcg_next(const struct foliage_engine *e, uint32_t root, uint32_t prev);

/* Between the two no slot that was met in the tree is given to another memcg: around everything
 * that walks the tree and uses the lruvecs it finds. Returns what memcg_leave() wants. */
unsigned int memcg_enter(struct foliage_engine *e);
void memcg_leave(struct foliage_engine *e, unsigned int session);
/* Free the slots of memcgs that have died and whose sessions are over; under the tree lock or
 * alone. */
void memcg_settle(struct foliage_engine *e);

bool memcg_has_ancestor(const struct foliage_engine *e, uint32_t memcg, uint32_t ancestor);

/* Protection of `memcg` as seen by a reclaim whose target is `target` (the target itself has none).
 */
bool memcg_below_min(const struct foliage_engine *e, uint32_t target, uint32_t memcg);
bool memcg_below_low(const struct foliage_engine *e, uint32_t target, uint32_t memcg);
/* Scale a scan budget by the protection (A.8). */
uint64_t memcg_protect_scan(const struct foliage_engine *e, const struct scan_control *sc,
			    uint32_t memcg, uint64_t nr);

/* A statistic of the memcg's subtree, all nodes. */
int64_t memcg_stat(const struct foliage_engine *e, uint32_t memcg, enum stat_item item);

/* Pages that stand on the lists of the memcg's subtree; those in batches are on none. mm/text.c. */
struct memcg_sizes {
	uint64_t inactive[NR_TYPES], active[NR_TYPES], unevictable;
};
void memcg_sizes(struct foliage_engine *e, uint32_t memcg, struct memcg_sizes *sizes);
/* memory.stat of the subtree, for pages of `page` bytes. Inside a session. */
int memcg_put_stat(struct foliage_engine *e, FILE *out, uint32_t memcg, uint64_t page);

/* O(folios) walker over the tree, usage, owners, ids and the memcg LRU: 0, or -EUCLEAN and why.
 * Nobody else may run. */
int memcg_is_valid(struct foliage_engine *e, struct err *err);

/* B.12: is there a lruvec of sc->node worth reclaiming whose oldest generation is older than
 * e->min_ttl_ms? */
bool lru_gen_min_ttl_ok(struct foliage_engine *e, struct scan_control *sc);

/* memcg LRU (B.11), mm/memcg_lru.c. */
enum memcg_lru_op { MEMCG_LRU_NOP, MEMCG_LRU_HEAD, MEMCG_LRU_TAIL, MEMCG_LRU_OLD, MEMCG_LRU_YOUNG };
enum memcg_lru_seg { MEMCG_LRU_DEFAULT, MEMCG_LRU_SEG_HEAD, MEMCG_LRU_SEG_TAIL };
void memcg_lru_init(struct foliage_engine *e);
void memcg_lru_online(struct foliage_engine *e, uint32_t memcg);
void memcg_lru_offline(struct foliage_engine *e, uint32_t memcg);
void memcg_lru_release(struct foliage_engine *e, uint32_t memcg);
void memcg_lru_rotate(struct foliage_engine *e, struct lruvec *lv, enum memcg_lru_op op);
/* shrink_many: walk the old generation from a random bin until nr_to_reclaim is met. */
void memcg_lru_shrink(struct foliage_engine *e, struct scan_control *sc);

#endif
