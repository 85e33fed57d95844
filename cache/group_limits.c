/* SPDX-License-Identifier: MIT
 *
 * Limits of groups: set while the group is in use, and met on the way of a page that comes in, before
 * the pool as a whole is asked for room (pool_room.c). The engine has the numbers and reclaims; here
 * is what a thread does when that was in vain.
 */
#include "cache/group.h"

#include <time.h>

enum { NO_MEMCG = UINT32_MAX, THROTTLE_MAX_MS = 100 };

static uint64_t to_pages(const struct pool *p, uint64_t bytes)
{
	return bytes == UINT64_MAX ? FOLIAGE_UNLIMITED : bytes >> p->page_shift;
}

static uint64_t usage(const struct foliage_group *g)
{
	return counter_size(&g->pool->engine->memcgs[g->memcg].usage);
}

/* ---- on the way in ---- */

bool group_has_room(struct foliage_group *g, uint32_t order)
{
	uint32_t memcg = group_memcg(g);

	return !memcg || memcg_over(g->pool->engine, memcg, 1u << order, false) == NO_MEMCG;
}

/* An event of a group is one of those above it, too. */
static void count(struct foliage_group *g, enum group_event what)
{
	for (; g; g = g->parent)
		atomic_fetch_add_explicit(&g->events[what], 1, memory_order_relaxed);
}

/* Count the event where the limit is. */
static void count_over(struct foliage_group *g, uint32_t over, enum group_event what)
{
	for (g = group_live(g); g; g = g->parent)
		if (g->memcg == over) {
			count(g, what);
			break;
		}
}

bool group_make_room(struct foliage_group *g, struct pool_thread *t, uint32_t order)
{
	struct foliage_engine *e = g->pool->engine;
	uint32_t memcg = group_memcg(g), nr = 1u << order;
	uint32_t over = memcg_over(e, memcg, nr, false);

	if (over == NO_MEMCG)
		return true;
	count_over(g, over, GROUP_MAX);
	if (!foliage_memcg_make_room(e, &t->cpu, memcg, nr, true))
		return true;
	/* What there is may wait in the batches of threads that do nothing. */
	engine_drain_all(e);
	return !foliage_memcg_make_room(e, &t->cpu, memcg, nr, true);
}

void group_keep_below_high(struct foliage_group *g, struct pool_thread *t,
			   const struct pool_ask *ask)
{
	struct foliage_engine *e = g->pool->engine;
	uint32_t memcg = group_memcg(g), nr = 1u << pool_order(g->pool, ask->kind), over;

	if (!memcg)
		return;
	over = memcg_over(e, memcg, nr, true);
	if (over == NO_MEMCG)
		return;
	count_over(g, over, GROUP_HIGH);
	group_stall(g, t, FOLIAGE_STALL_MEMORY, true);
	t->charging = ask->flags & FOLIAGE_FETCH_NOWAIT ? NULL : g;
	foliage_memcg_make_room(e, &t->cpu, memcg, nr, true);
	t->charging = NULL;
	group_stall(g, t, FOLIAGE_STALL_MEMORY, false);
}

/* The further above high, the longer: with the square of the excess. */
void group_throttle(struct pool *p)
{
	struct pool_thread *t = pool_thread(p);
	double most = 0, ms;

	if (!t || !t->charging)
		return;
	for (struct foliage_group *g = group_live(t->charging); g->parent; g = g->parent) {
		uint64_t high = p->engine->memcgs[g->memcg].high;

		if (high != FOLIAGE_UNLIMITED && usage(g) > high)
			most = MAX(most,
				   (double)(usage(g) - high) / (double)MAX(high, UINT64_C(1)));
	}
	ms = MIN(1 + 1000 * most * most, (double)THROTTLE_MAX_MS);
	nanosleep(&(struct timespec){.tv_nsec = (long)(ms * 1e6)}, NULL);
}

bool group_is_stuck(struct foliage_group *g)
{
	return atomic_load(&group_live(g)->stuck) == atomic_load(&g->pool->wakes) + 1;
}

void group_set_stuck(struct foliage_group *g)
{
	atomic_store(&group_live(g)->stuck, atomic_load(&g->pool->wakes) + 1);
}

void group_count_no_room(struct foliage_group *g)
{
	count(group_live(g), GROUP_NO_ROOM);
}

/* ---- setting ---- */

/* Reclaim until no more than `limit` pages are left; false: they cannot be. */
static bool enforce(struct foliage_group *g, struct pool_thread *t, uint64_t limit)
{
	struct foliage_reclaim_request request = g->pool->request;
	bool drained = false;

	request.memcg = g->memcg;
	while (usage(g) > limit) {
		request.nr = usage(g) - limit;
		if (foliage_reclaim(g->pool->engine, &t->cpu, &request) > 0)
			continue;
		if (drained)
			return usage(g) <= limit;
		engine_drain_all(g->pool->engine);
		drained = true;
	}
	return true;
}

int foliage_group_set(struct foliage_group *g, enum foliage_group_limit limit, uint64_t bytes)
{
	static const enum foliage_limit map[] = {
		[FOLIAGE_GROUP_MIN] = FOLIAGE_MIN,
		[FOLIAGE_GROUP_LOW] = FOLIAGE_LOW,
		[FOLIAGE_GROUP_HIGH] = FOLIAGE_HIGH,
		[FOLIAGE_GROUP_MAX] = FOLIAGE_MAX,
	};
	struct pool *p = g->pool;
	struct pool_thread *t;
	uint64_t pages;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	if ((unsigned int)limit >= ARRAY_SIZE(map) || !g->parent)
		return -EINVAL;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	pages = to_pages(p, bytes);
	pthread_mutex_lock(&p->groups_lock); /* it stays what it is meanwhile */
	rc = g->removed ? -ENOENT : foliage_memcg_set(p->engine, g->memcg, map[limit], pages);
	pthread_mutex_unlock(&p->groups_lock);
	if (rc)
		return rc;
	pool_wake(p); /* more may fit now */
	if (limit == FOLIAGE_GROUP_HIGH || limit == FOLIAGE_GROUP_MAX)
		return enforce(g, t, pages) ? 0 : -EBUSY;
	return 0;
}

int64_t foliage_group_current(struct foliage_group *g)
{
	struct pool *p = g->pool;

	if (!pool_alive(p))
		return -ECHILD;
	return (int64_t)(usage(group_live(g)) << p->page_shift);
}
