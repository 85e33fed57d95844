/* SPDX-License-Identifier: MIT
 *
 * How old the pages of an engine are: pages a generation, or on the active and inactive lists.
 */
#ifndef FOLIAGE_MM_AGES_H
#define FOLIAGE_MM_AGES_H

#include "mm/types.h"

struct engine_ages {
	bool generations;          /* else [0] is inactive, [1] active */
	uint64_t min_seq, max_seq; /* the oldest and the youngest generation, as the root counts */
	unsigned int nr;           /* of `pages` */
	uint64_t pages[MAX_NR_GENS];
};

/* Of one type, in all memcgs together; the oldest first. Reads counters as they stand, without a
 * lock; where memcgs may go at the same time, call it between memcg_enter() and memcg_leave(). */
void engine_ages(struct foliage_engine *e, unsigned int type, struct engine_ages *ages);

#endif
