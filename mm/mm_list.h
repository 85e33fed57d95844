/* SPDX-License-Identifier: MIT
 *
 * The processes whose page tables an aging walk visits (B.9): a FIFO per memcg, and for each lruvec
 * a cursor in it.
 *
 * One pass over the list is one walk; walkers of the same sequence number share it, each taking the
 * next process. The one that runs off the end has finished the walk, and is the only one told so.
 */
#ifndef FOLIAGE_MM_MM_LIST_H
#define FOLIAGE_MM_MM_LIST_H

#include "mm/bloom.h"
#include "mm/types.h"

enum { MM_NONE = -1, WALK_STATS = 4 };

/* What one walker counts; the order is that of lru_gen_full's last line. */
enum walk_stat { WALK_LEAF_TOTAL, WALK_LEAF_YOUNG, WALK_PMD_FOUND, WALK_PMD_ADDED };

/* Of one lruvec; all but the filters under the lock of the mm table. */
struct mm_walk_state {
	struct bloom bloom;
	uint64_t seq;  /* of the last finished walk */
	uint64_t pass; /* of the walk that is running, or the last one */
	bool fresh;    /* the pass has not taken a process yet */
	int32_t head;  /* the process taken last; MM_NONE: before the first */
	int32_t tail;  /* the first one added since the previous pass: TAIL_* or a number */
	uint64_t stat_seq[MAX_NR_HIST];
	uint64_t stat[MAX_NR_HIST][WALK_STATS];
};

/* One walker's request. */
struct mm_walk {
	struct foliage_engine *e;
	struct lruvec *lv;
	uint64_t seq;
	int swappiness;
	bool force_scan;  /* visit everything: asked for, or met a process newer than the last pass
			   */
	uint64_t batched; /* pages moved since others were last let in */
	uint64_t stat[WALK_STATS];
};

/* Give back *mm (MM_NONE: none yet) and take the next process that is worth a visit. Returns true,
 * with MM_NONE, to the one walker of walk->seq that reached the end of the list. */
bool mm_list_next(struct mm_walk *walk, int32_t *mm);
/* Count a walk as finished without walking; true for one caller per seq. */
bool mm_list_skip(struct foliage_engine *e, struct lruvec *lv, uint64_t seq);

/* While entered, foliage_mm_remove() of the process waits. False: it is gone. */
bool mm_enter(struct foliage_engine *e, int32_t mm);
void mm_leave(struct foliage_engine *e, int32_t mm);

#endif
