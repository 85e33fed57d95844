/* SPDX-License-Identifier: MIT
 *
 * Groups of a pool, inside (foliage/group.h says what they are). A group is a memcg of the engine and
 * what the engine does not know: who names it, what its threads wait for. Its memory stays while
 * anybody holds it; once removed it stands for its parent.
 */
#ifndef FOLIAGE_CACHE_GROUP_H
#define FOLIAGE_CACHE_GROUP_H

#include "cache/pool.h"
#include "mm/memcg.h"

enum { PRESSURE_KINDS = 2, PRESSURE_SOME = 0, PRESSURE_FULL = 1, PRESSURE_AVERAGES = 3 };

/* Under its lock: times in ns. */
struct pressure {
	pthread_mutex_t lock;
	uint32_t stalled;               /* threads, now */
	uint64_t until;                 /* what follows is known up to here */
	uint64_t total[2], averaged[2]; /* some and full; when the averages were taken */
	uint64_t averaged_at;
	double average[2][PRESSURE_AVERAGES]; /* parts of one */
};

enum group_event { GROUP_HIGH, GROUP_MAX, GROUP_NO_ROOM, NR_GROUP_EVENTS };

struct foliage_group {
	struct pool *pool;
	struct foliage_group *parent, *next; /* next: of all, under the groups lock */
	uint32_t memcg;
	_Atomic uint32_t refs; /* its creator, children, pools, holders */
	atomic_bool removed;
	_Atomic uint32_t stuck; /* pool.wakes + 1 when there was nothing to be reclaimed */
	_Atomic uint64_t events[NR_GROUP_EVENTS]; /* of the group and all below it */
	/* Threads that brought in a page in this window of time and in the one before. */
	_Atomic uint64_t window, seen[2];
	struct pressure pressure[PRESSURE_KINDS];
};

static inline struct foliage_group *group_live(struct foliage_group *g)
{
	while (atomic_load_explicit(&g->removed, memory_order_acquire))
		g = g->parent;
	return g;
}

/* Its number in the engine; good while a session of memcg_enter() lasts. */
static inline uint32_t group_memcg(struct foliage_group *g)
{
	return group_live(g)->memcg;
}

/* -- group.c -- */
int group_init(struct pool *p);
void group_fini(struct pool *p);
void group_release(struct foliage_group *g);

/* -- group_limits.c -- */
/* May 1 << order more pages come in, as far as max says? */
bool group_has_room(struct foliage_group *g, uint32_t order);
/* Reclaim from whatever is full; false: in vain. */
bool group_make_room(struct foliage_group *g, struct pool_thread *t, uint32_t order);
void group_keep_below_high(struct foliage_group *g, struct pool_thread *t,
			   const struct pool_ask *ask);
/* The engine wants the thread to wait: its group is above high, and reclaim did not help. */
void group_throttle(struct pool *p);
bool group_is_stuck(struct foliage_group *g);
void group_set_stuck(struct foliage_group *g);
void group_count_no_room(struct foliage_group *g);

/* -- group_pressure.c -- */
void group_pressure_init(struct foliage_group *g);
void group_pressure_fini(struct foliage_group *g);
/* The thread is active in the group. */
void group_seen(struct foliage_group *g, const struct pool_thread *t);
void group_stall(struct foliage_group *g, const struct pool_thread *t, enum foliage_stall what,
		 bool begin);
void group_pressure_read(struct foliage_group *g, enum foliage_stall what,
			 struct foliage_pressure *out);

/* -- group_stats.c -- */
/* A statistic of both types of pages of the group and below. */
uint64_t group_stat(struct foliage_group *g, enum stat_item anon);

#endif
