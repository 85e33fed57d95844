/* SPDX-License-Identifier: MIT
 *
 * Internal side of reclaim: the per-folio part that every policy shares (A.6, mm/shrink.c) and the
 * priority loop (mm/reclaim.c).
 */
#ifndef FOLIAGE_MM_RECLAIM_H
#define FOLIAGE_MM_RECLAIM_H

#include "mm/engine_policy.h"
#include "mm/memcg.h"

/* Folios in a reclaimer's hands: off the lists, F_ISOLATED. At most one batch. */
struct folio_set {
	uint32_t nr; /* folios */
	folio_id ids[MIN_LRU_BATCH];
};

/* Try to free each folio of `set`; returns the pages freed. What survives is left in `set` in
 * order, to be put back; F_ACTIVE marks those that were activated. */
int64_t shrink_folio_list(struct foliage_engine *e, struct scan_control *sc, struct folio_set *set);

/* Survivors back on the lists; takes the locks. */
void putback_folios(struct foliage_engine *e, const struct folio_set *set);

/* Swappiness in force for an lruvec and request (B.11 get_swappiness; 201 kept, 0: anon not
 * reclaimable). */
int get_swappiness(const struct foliage_engine *e, const struct lruvec *lv,
		   const struct scan_control *sc);
/* The same when only what can be freed counts (D.2): a request without I/O frees anon from a clean
 * swap cache alone, and while that is small (less than 1/64 of anon) scans file only: 0. */
int scan_swappiness(struct foliage_engine *e, struct lruvec *lv, const struct scan_control *sc,
		    int swappiness);
/* Could anon of this memcg be reclaimed: swap space left? (A.5.2) */
bool can_reclaim_anon(const struct foliage_engine *e, uint32_t memcg,
		      const struct scan_control *sc);

/* Fill a scan control from a public request. */
void scan_control_init(struct foliage_engine *e, struct scan_control *sc, struct foliage_cpu *cpu,
		       const struct foliage_reclaim_request *r);

/* One session: priorities 12..0, then the last resorts (A.6). Returns the pages freed. */
int64_t reclaim_session(struct foliage_engine *e, struct scan_control *sc);

uint64_t engine_now_ms(const struct foliage_engine *e);
void engine_yield(const struct foliage_engine *e);
/* n >> priority of the modelled size. */
uint64_t scaled_budget(const struct foliage_engine *e, uint64_t n, int priority);

#endif
