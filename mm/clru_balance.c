/* SPDX-License-Identifier: MIT
 *
 * The balance of the classic LRU (A.5): how many pages of which list a pass looks at.
 *
 *   active against inactive  the active list is scanned only while pages come back from outside
 *                            faster than before (ACTIVATE moved since the last session) or the
 *                            inactive list is too short
 *   anon against file        by what each has cost lately: pages that were scanned in vain, and
 *                            pages that were read back, weighted 32 times
 *
 * All of it reads numbers of a whole subtree. Under `frozen` these are those of the last flush: a
 * kernel flushes its memcg statistics every two seconds or when somebody reads them, so its
 * decisions swing with that period. The scan budget alone uses exact list sizes.
 */
#include "mm/clru.h"

#include <math.h>

enum { IO_WEIGHT = SWAP_CLUSTER_MAX };

/* -- numbers -- */

static int64_t own_size(const struct foliage_engine *e, const struct lruvec *lv, unsigned int list)
{
	(void)e;
	return (int64_t)counter_size(&lv->clru.size[list]);
}

static int64_t own_seen_size(const struct foliage_engine *e, const struct lruvec *lv,
			     unsigned int list)
{
	return clru_knobs(e)->frozen ? counter_read(&lv->clru.frozen_size[list])
				     : own_size(e, lv, list);
}

static int64_t own_seen_activate(const struct foliage_engine *e, const struct lruvec *lv,
				 unsigned int type)
{
	if (clru_knobs(e)->frozen)
		return counter_read(&lv->clru.frozen_activate[type]);
	return counter_read(&lv->stat[clru_stat(STAT_ACTIVATE_ANON, type)]);
}

static int64_t own_rotated(const struct foliage_engine *e, const struct lruvec *lv,
			   unsigned int type)
{
	(void)e;
	return counter_read(&lv->stat[clru_stat(STAT_PGROTATE_ANON, type)]);
}

static int64_t own_io(const struct foliage_engine *e, const struct lruvec *lv, unsigned int type)
{
	int64_t io = counter_read(&lv->stat[clru_stat(STAT_RESTORE_ANON, type)]);

	(void)e;
	return type == TYPE_ANON ? io + counter_read(&lv->stat[STAT_PSWPOUT]) : io;
}

typedef int64_t (*number_fn)(const struct foliage_engine *e, const struct lruvec *lv,
			     unsigned int item);

/* Sum of a number over the memcg of `lv` and everything below, on its node. */
static int64_t subtree(const struct foliage_engine *e, const struct lruvec *lv, number_fn own,
		       unsigned int item)
{
	int64_t sum = 0;

	if (e->memcgs[lv->memcg].children == UINT32_MAX)
		return own(e, lv, item);
	for (uint32_t m = memcg_next(e, lv->memcg, UINT32_MAX); m != UINT32_MAX;
	     m = memcg_next(e, lv->memcg, m))
		sum += own(e, lruvec_of(e, m, lv->node), item);
	return sum;
}

uint64_t clru_seen_size(const struct foliage_engine *e, const struct lruvec *lv, int list)
{
	int64_t n = subtree(e, lv, own_seen_size, (unsigned int)list);

	return n > 0 ? (uint64_t)n : 0;
}

int64_t clru_seen_activate(const struct foliage_engine *e, const struct lruvec *lv,
			   unsigned int type)
{
	return subtree(e, lv, own_seen_activate, type);
}

static uint64_t seen_total(const struct foliage_engine *e, const struct lruvec *lv)
{
	uint64_t total = 0;

	for (int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++)
		total += clru_seen_size(e, lv, list);
	return total;
}

void clru_flush_stats(struct foliage_engine *e, struct lruvec *lv)
{
	for (unsigned int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++)
		atomic_store_explicit(&lv->clru.frozen_size[list], own_size(e, lv, list),
				      memory_order_relaxed);
	for (unsigned int type = 0; type < NR_TYPES; type++)
		atomic_store_explicit(&lv->clru.frozen_activate[type],
				      counter_read(&lv->stat[clru_stat(STAT_ACTIVATE_ANON, type)]),
				      memory_order_relaxed);
}

static void snapshot(struct foliage_engine *e, struct lruvec *lv)
{
	for (unsigned int type = 0; type < NR_TYPES; type++)
		atomic_store_explicit(&lv->clru.refaults[type], clru_seen_activate(e, lv, type),
				      memory_order_relaxed);
}

void clru_balance_init(struct foliage_engine *e, struct lruvec *lv)
{
	if (!e->memcgs[lv->memcg].used) /* being created: everything is zero */
		return;
	clru_flush_stats(e, lv);
	snapshot(e, lv);
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		lv->clru.cost[type] = 0;
		lv->clru.last_rotated[type] = subtree(e, lv, own_rotated, type);
		lv->clru.last_io[type] = subtree(e, lv, own_io, type);
	}
}

/* -- costs -- */

static void halve(uint64_t cost[NR_TYPES])
{
	cost[TYPE_ANON] /= 2;
	cost[TYPE_FILE] /= 2;
}

void clru_note_cost(struct foliage_engine *e, struct lruvec *lv, unsigned int type, uint64_t nr_io,
		    uint64_t nr_rotated)
{
	uint64_t cost = nr_io * IO_WEIGHT + nr_rotated;

	if (!cost || clru_knobs(e)->cost != CLRU_COST_NOTED)
		return;
	for (;;) {
		uint32_t parent = e->memcgs[lv->memcg].parent;
		uint64_t total = seen_total(e, lv);

		lruvec_lock(e, lv);
		lv->clru.cost[type] += cost;
		if (lv->clru.cost[TYPE_ANON] + lv->clru.cost[TYPE_FILE] > total / 4)
			halve(lv->clru.cost);
		lruvec_unlock(e, lv, 0);
		if (parent == lv->memcg)
			return;
		lv = lruvec_of(e, parent, lv->node);
	}
}

/* The newest model: look at what happened since the last pass of this target. */
static void sample_costs(struct foliage_engine *e, struct lruvec *lv)
{
	uint64_t *cost = lv->clru.cost;

	for (unsigned int type = 0; type < NR_TYPES; type++) {
		int64_t rotated = subtree(e, lv, own_rotated, type),
			io = subtree(e, lv, own_io, type);

		cost[type] += (uint64_t)((io - lv->clru.last_io[type]) * IO_WEIGHT +
					 (rotated - lv->clru.last_rotated[type]));
		lv->clru.last_io[type] = io;
		lv->clru.last_rotated[type] = rotated;
	}
	while (cost[TYPE_ANON] + cost[TYPE_FILE] > seen_total(e, lv) / 4)
		halve(cost);
}

/* -- decisions -- */

bool clru_inactive_is_low(const struct foliage_engine *e, const struct lruvec *lv,
			  unsigned int type)
{
	uint64_t inactive = clru_seen_size(e, lv, clru_list(type, false));
	uint64_t active = clru_seen_size(e, lv, clru_list(type, true));
	uint64_t gb = (uint64_t)((double)(inactive + active) * e->scale) >> 18;

	return inactive * (gb ? isqrt(10 * gb) : 1) < active;
}

static bool may_deactivate(const struct foliage_engine *e, const struct lruvec *lv,
			   const struct scan_control *sc, unsigned int type)
{
	return sc->force_deactivate ||
	       clru_seen_activate(e, lv, type) != counter_read(&lv->clru.refaults[type]) ||
	       clru_inactive_is_low(e, lv, type);
}

/* The node has next to no file pages left: thrashing them would not help. */
static bool file_is_tiny(const struct foliage_engine *e, const struct scan_control *sc)
{
	const struct node *node = &e->nodes[sc->node];
	const struct lruvec *root = lruvec_of(e, 0, sc->node);
	int64_t file = subtree(e, root, own_size, LIST_INACTIVE_FILE) +
		       subtree(e, root, own_size, LIST_ACTIVE_FILE);
	int64_t anon = subtree(e, root, own_size, LIST_INACTIVE_ANON);

	return (uint64_t)file + node->free_pages <= node->high_watermark &&
	       !(sc->may_deactivate & 1u << TYPE_ANON) &&
	       scaled_budget(e, (uint64_t)anon, sc->priority);
}

void clru_prepare_scan(struct foliage_engine *e, struct scan_control *sc)
{
	struct lruvec *lv = lruvec_of(e, sc->target, sc->node);

	lruvec_lock(e, lv);
	if (clru_knobs(e)->cost == CLRU_COST_SAMPLED)
		sample_costs(e, lv);
	sc->anon_cost = lv->clru.cost[TYPE_ANON];
	sc->file_cost = lv->clru.cost[TYPE_FILE];
	lruvec_unlock(e, lv, 0);

	sc->may_deactivate = 0;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (may_deactivate(e, lv, sc, type))
			sc->may_deactivate |= 1u << type;
	sc->cache_trim_mode =
		!(sc->may_deactivate & 1u << TYPE_FILE) &&
		scaled_budget(e, clru_seen_size(e, lv, LIST_INACTIVE_FILE), sc->priority);
	sc->file_is_tiny = sc->root_reclaim && file_is_tiny(e, sc);
}

void clru_end_session(struct foliage_engine *e, struct scan_control *sc)
{
	snapshot(e, lruvec_of(e, sc->target, sc->node));
}

/* -- budgets -- */

enum balance { BALANCE_EQUAL, BALANCE_FRACT, BALANCE_FILE, BALANCE_ANON, BALANCE_NONE };

static enum balance choose_balance(const struct foliage_engine *e, const struct lruvec *lv,
				   const struct scan_control *sc, uint64_t swappiness)
{
	bool anon = can_reclaim_anon(e, lv->memcg, sc);

	if (swappiness == SWAPPINESS_ANON_ONLY)
		return anon ? BALANCE_ANON : BALANCE_NONE;
	if (!sc->may_swap || !anon)
		return BALANCE_FILE;
	if (!sc->root_reclaim && !swappiness)
		return BALANCE_FILE;
	if (!sc->priority && swappiness)
		return BALANCE_EQUAL;
	if (sc->file_is_tiny)
		return BALANCE_ANON;
	return sc->cache_trim_mode ? BALANCE_FILE : BALANCE_FRACT;
}

/* Shares of anon and file. Adding the total to each cost keeps either side from falling below a
 * third. */
static void fractions(const struct scan_control *sc, uint64_t swappiness, uint64_t share[NR_TYPES])
{
	uint64_t total = sc->anon_cost + sc->file_cost;
	uint64_t anon = total + sc->anon_cost, file = total + sc->file_cost;

	share[TYPE_ANON] = swappiness * (anon + file + 1) / (anon + 1);
	share[TYPE_FILE] = (200 - swappiness) * (anon + file + 1) / (file + 1);
}

static uint64_t request_swappiness(const struct foliage_engine *e, const struct lruvec *lv,
				   const struct scan_control *sc)
{
	int swappiness = sc->swappiness >= 0 ? sc->swappiness : e->memcgs[lv->memcg].swappiness;

	if (swappiness > 200 && !clru_knobs(e)->anon_only)
		swappiness = 200;
	return (uint64_t)swappiness;
}

/* The list's part in a pass. A sample has batches by the root of its rate, and what a pass scans must
 * stay in proportion to them: whether one pass is enough decides how often the lists are balanced. */
static uint64_t list_budget(const struct foliage_engine *e, uint64_t n, int priority)
{
	if (__builtin_expect(e->sample < 1, 0))
		return (uint64_t)lround((double)((uint64_t)((double)n * e->scale) >> priority) *
					sqrt(e->sample));
	return scaled_budget(e, n, priority);
}

void clru_scan_count(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		     uint64_t nr[4])
{
	uint64_t swappiness = request_swappiness(e, lv, sc);
	enum balance balance = choose_balance(e, lv, sc, swappiness);
	bool online = e->memcgs[lv->memcg].online;
	uint64_t share[NR_TYPES] = {0}, whole = 1;

	if (balance == BALANCE_FRACT) {
		fractions(sc, swappiness, share);
		whole = share[TYPE_ANON] + share[TYPE_FILE];
	}
	for (int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++) {
		unsigned int type = (unsigned int)list / 2;
		uint64_t size = counter_size(&lv->clru.size[list]);
		uint64_t n =
			list_budget(e, memcg_protect_scan(e, sc, lv->memcg, size), sc->priority);

		n = MIN(n, size);
		if (!n && !online)
			n = MIN(size, (uint64_t)SWAP_CLUSTER_MAX);
		if (balance == BALANCE_FRACT)
			n = (n * share[type] + (online ? 0 : whole - 1)) / whole;
		else if (balance == BALANCE_NONE ||
			 balance == (type == TYPE_ANON ? BALANCE_FILE : BALANCE_ANON))
			n = 0;
		nr[list] = n;
	}
}
