/* SPDX-License-Identifier: MIT
 *
 * Page-table walk (B.9), Bloom filters, look-around (B.10), and the rmap check that starts it.
 */
#ifndef FOLIAGE_MM_WALK_H
#define FOLIAGE_MM_WALK_H

#include "mm/engine_policy.h"

int walk_init(struct foliage_engine *e, struct lruvec *lv);
void walk_fini(struct foliage_engine *e, struct lruvec *lv);
/* Forget all walks, as after walk_init(); for a policy whose sequence numbers start anew
 * (gen_init). The processes stay. */
void walk_reset(struct foliage_engine *e, struct lruvec *lv);

/* Walk the mms of the lruvec's memcg for sequence `seq` (= max_seq). Returns true for exactly one
 * caller per seq, the one that finished the list and must open the new generation. `swappiness` and
 * `force_scan` as B.8/B.9. */
bool walk_mms(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc, uint64_t seq,
	      int swappiness, bool force_scan);
/* Walking disabled or impossible: lets one caller per seq through. */
bool walk_skip(struct foliage_engine *e, struct lruvec *lv, uint64_t seq);

/* rmap at eviction: test and clear the young bits of every mapping of the folio (A.3), look around
 * each young one (B.10) if `look_around`, feed the Bloom filter. */
void folio_referenced(struct foliage_engine *e, struct scan_control *sc, folio_id id,
		      bool look_around, struct referenced *out);

/* The mms of a memcg move to its parent (memcg removal). */
void walk_reparent(struct foliage_engine *e, uint32_t memcg, uint32_t parent);

/* Statistics of the last walks, for lru_gen_full: total and young leaf entries, PMDs found in and
 * added to the filter. */
void walk_stats(const struct foliage_engine *e, const struct lruvec *lv, uint64_t seq,
		uint64_t out[4]);

#endif
