/* SPDX-License-Identifier: MIT
 *
 * Shadows: what an evicted folio leaves behind (A.7). 64 bits, never 0:
 *
 *     63 ............... 28 | 27 ........ 12 | 11 ..... 2 | 1 |     0
 *     timestamp (36 bits)   | memcg id (16)  | node (10)  | W | always 1
 *
 * The timestamp is the non-resident age (classic), or min_seq << 2 | refs bits (multi-gen),
 * truncated.
 */
#ifndef FOLIAGE_MM_SHADOW_H
#define FOLIAGE_MM_SHADOW_H

#include "mm/types.h"

enum { SHADOW_TIME_BITS = 36, SHADOW_REFS_BITS = 2, SHADOW_NODE_BITS = 10 };
#define SHADOW_TIME_MASK ((UINT64_C(1) << SHADOW_TIME_BITS) - 1)
#define SHADOW_SEQ_MASK  ((UINT64_C(1) << (SHADOW_TIME_BITS - SHADOW_REFS_BITS)) - 1)

static inline uint64_t shadow_pack(uint16_t memcg_id, uint32_t node, uint64_t time, bool workingset)
{
	return time << 28 | (uint64_t)memcg_id << 12 | (uint64_t)(node & 1023) << 2 |
	       (uint64_t)workingset << 1 | 1;
}

static inline uint64_t shadow_time(uint64_t shadow)
{
	return shadow >> 28;
}

static inline uint16_t shadow_memcg_id(uint64_t shadow)
{
	return (uint16_t)(shadow >> 12);
}

static inline uint32_t shadow_node(uint64_t shadow)
{
	return (uint32_t)(shadow >> 2) & 1023;
}

static inline bool shadow_workingset(uint64_t shadow)
{
	return shadow >> 1 & 1;
}

/* The lruvec that evicted; NULL when its memcg has vanished. */
static inline struct lruvec *shadow_lruvec(const struct foliage_engine *e, uint64_t shadow)
{
	uint16_t slot = e->memcg_of_id[shadow_memcg_id(shadow)];
	uint32_t node = shadow_node(shadow);

	if (!slot || node >= e->nr_nodes)
		return NULL;
	return &e->lruvecs[(slot - 1u) * e->nr_nodes + node];
}

#endif
