/* SPDX-License-Identifier: MIT
 *
 * Reclaim from the outside in: one session is a loop over priorities 12..0 (A.6); each pass shrinks
 * every eligible lruvec of the target, until enough pages are free. Memcg-limit reclaim walks the
 * subtree; global reclaim of the multi-gen family goes through the memcg LRU (B.11).
 */
#include "mm/reclaim.h"
#include "mm/policies.h"

#include <errno.h>

uint64_t engine_now_ms(const struct foliage_engine *e)
{
	return e->backend.now_ms ? e->backend.now_ms(e->ctx) : 0;
}

void engine_yield(const struct foliage_engine *e)
{
	if (e->backend.yield)
		e->backend.yield(e->ctx);
}

uint64_t scaled_budget(const struct foliage_engine *e, uint64_t n, int priority)
{
	/* In a sample each page stands for many, those that are scanned as well. */
	if (__builtin_expect(e->scale > 1 && e->sample >= 1, 0))
		n = (uint64_t)((double)n * e->scale);
	return n >> priority;
}

bool can_reclaim_anon(const struct foliage_engine *e, uint32_t memcg, const struct scan_control *sc)
{
	return sc->may_swap && e->backend.swap_free && e->backend.swap_free(e->ctx, memcg) > 0;
}

int get_swappiness(const struct foliage_engine *e, const struct lruvec *lv,
		   const struct scan_control *sc)
{
	int swappiness = sc->swappiness >= 0 ? sc->swappiness : e->memcgs[lv->memcg].swappiness;

	if (swappiness == SWAPPINESS_ANON_ONLY)
		return swappiness;
	if (!sc->may_swap || !e->backend.swap_free ||
	    e->backend.swap_free(e->ctx, lv->memcg) < MIN_LRU_BATCH)
		return 0;
	return swappiness;
}

int scan_swappiness(struct foliage_engine *e, struct lruvec *lv, const struct scan_control *sc,
		    int swappiness)
{
	int64_t swapcache;

	if (sc->gfp_io || swappiness == 0 || swappiness == SWAPPINESS_ANON_ONLY)
		return swappiness;
	swapcache = e->backend.swapcache_pages ? e->backend.swapcache_pages(e->ctx, lv->node) : 0;
	if (swapcache < (int64_t)(e->ops->size(e, lv, TYPE_ANON) / 64))
		return 0;
	return swappiness;
}

static void shrink_memcg(struct foliage_engine *e, struct scan_control *sc, uint32_t memcg)
{
	struct lruvec *lv = lruvec_of(e, memcg, sc->node);

	if (atomic_load(&lv->dying) || memcg_below_min(e, sc->target, memcg))
		return;
	if (memcg_below_low(e, sc->target, memcg)) {
		if (!sc->low_reclaim) {
			sc->low_skipped = true;
			return;
		}
		stat_add(e, lv, STAT_LOW_EVENTS, 1);
	}
	if (e->ops->shrink_lruvec(e, lv, sc) && e->ops->memcg_lru)
		memcg_lru_rotate(e, lv, MEMCG_LRU_YOUNG);
	engine_yield(e);
}

/* Each memcg of the subtree once. An ordinary request stops as soon as it has enough; the next one
 * starts behind where it stopped, so that siblings take turns. */
static void shrink_tree(struct foliage_engine *e, struct scan_control *sc)
{
	_Atomic uint32_t *iter = &e->memcgs[sc->target].reclaim_iter;
	bool partial = !sc->kswapd && !sc->full_walk;
	uint32_t start = partial ? atomic_load(iter) : UINT32_MAX, memcg = start;
	bool wrapped = start == UINT32_MAX;

	for (;;) {
		memcg = memcg_next(e, sc->target, memcg);
		if (memcg == UINT32_MAX) {
			if (wrapped)
				break;
			wrapped = true;
			continue;
		}
		shrink_memcg(e, sc, memcg);
		if (partial && sc->nr_reclaimed >= sc->nr_to_reclaim)
			break;
		if (wrapped && memcg == start)
			break;
	}
	if (partial)
		atomic_store(iter, memcg);
}

/* What was isolated is on its way to the device: wait for it. */
static void note_congestion(struct foliage_engine *e, struct scan_control *sc)
{
	if (sc->seen.taken && (sc->seen.immediate || sc->seen.writeback == sc->seen.taken) &&
	    e->backend.throttle)
		e->backend.throttle(e->ctx);
	sc->seen.writeback = sc->seen.immediate = sc->seen.taken = 0;
}

static void priority_loop(struct foliage_engine *e, struct scan_control *sc)
{
	for (; sc->priority >= 0; sc->priority--) {
		foliage_cpu_drain(e, sc->cpu);
		if (e->ops->prepare_scan)
			e->ops->prepare_scan(e, sc);
		if (e->ops->memcg_lru && sc->root_reclaim && sc->target == 0)
			memcg_lru_shrink(e, sc);
		else
			shrink_tree(e, sc);
		note_congestion(e, sc);
		if (sc->nr_reclaimed >= sc->nr_to_reclaim)
			break;
	}
	if (e->ops->end_session)
		e->ops->end_session(e, sc);
}

/* B.11: a large global request starts where one pass can meet it. */
static int initial_priority(struct foliage_engine *e, const struct scan_control *sc)
{
	bool swap = get_swappiness(e, lruvec_of(e, 0, sc->node), sc) > 0;
	uint64_t reclaimable = 0;
	uint32_t memcg = UINT32_MAX;
	int priority;

	if (!sc->root_reclaim || !e->ops->memcg_lru || sc->nr_to_reclaim < MIN_LRU_BATCH)
		return DEF_PRIORITY;
	while ((memcg = memcg_next(e, 0, memcg)) != UINT32_MAX) {
		struct lruvec *lv = lruvec_of(e, memcg, sc->node);

		for (unsigned int type = swap ? TYPE_ANON : TYPE_FILE; type < NR_TYPES; type++) {
			uint64_t size = e->ops->size(e, lv, type);

			reclaimable += size - MIN(size, e->ops->active(e, lv, type));
		}
	}
	priority = (int)fls64(reclaimable) - 1 - (int)fls64((uint64_t)sc->nr_to_reclaim - 1);
	return MIN(MAX(priority, DEF_PRIORITY / 2), DEF_PRIORITY);
}

int64_t reclaim_session(struct foliage_engine *e, struct scan_control *sc)
{
	bool was = sc->cpu->in_reclaim;

	sc->cpu->in_reclaim = true;
	sc->priority = initial_priority(e, sc);
	priority_loop(e, sc);
	/* Last resorts, when nothing at all came (A.6): the whole tree, active lists, memory.low.
	 */
	if (!sc->nr_reclaimed && !sc->kswapd && !sc->full_walk) {
		sc->full_walk = true;
		sc->priority = DEF_PRIORITY;
		priority_loop(e, sc);
	}
	if (!sc->nr_reclaimed && !sc->kswapd && sc->skipped_deactivate) {
		sc->force_deactivate = true;
		sc->skipped_deactivate = false;
		sc->priority = DEF_PRIORITY;
		priority_loop(e, sc);
		sc->force_deactivate = false;
	}
	if (!sc->nr_reclaimed && !sc->kswapd && sc->low_skipped) {
		sc->low_reclaim = true;
		sc->low_skipped = false;
		sc->priority = DEF_PRIORITY;
		priority_loop(e, sc);
	}
	sc->cpu->in_reclaim = was;
	return sc->nr_reclaimed;
}

void scan_control_init(struct foliage_engine *e, struct scan_control *sc, struct foliage_cpu *cpu,
		       const struct foliage_reclaim_request *r)
{
	uint32_t batch = r->batch ? MIN(r->batch, (uint32_t)MIN_LRU_BATCH) : MIN_LRU_BATCH;

	*sc = (struct scan_control){
		.cpu = cpu,
		.target = r->memcg,
		.node = r->node,
		.nr_to_reclaim =
			r->nr ? (int64_t)MIN(r->nr, (uint64_t)INT64_MAX) : SWAP_CLUSTER_MAX,
		.swappiness = r->swappiness,
		.reclaim_idx = e->nr_zones - 1,
		.batch = batch,
		.cluster = MIN(batch, (uint32_t)SWAP_CLUSTER_MAX),
		.kswapd = r->kswapd,
		.proactive = r->proactive,
		.root_reclaim = !r->memcg_limit && r->memcg == 0,
		.may_unmap = !r->no_unmap,
		.may_swap = !r->no_swap,
		.gfp_io = !r->no_io,
	};
}

static int64_t reclaim_in_session(struct foliage_engine *e, struct foliage_cpu *cpu,
				  const struct foliage_reclaim_request *r)
{
	struct scan_control sc;

	if (r->memcg >= e->nr_memcgs || !e->memcgs[r->memcg].used || r->node >= e->nr_nodes ||
	    r->swappiness > 201 || r->swappiness < -1)
		return -EINVAL;
	scan_control_init(e, &sc, cpu, r);
	if (r->kswapd && e->min_ttl_ms && !lru_gen_min_ttl_ok(e, &sc)) {
		if (e->backend.out_of_memory)
			e->backend.out_of_memory(e->ctx, r->memcg);
		return 0;
	}
	return reclaim_session(e, &sc);
}

int64_t foliage_reclaim(struct foliage_engine *e, struct foliage_cpu *cpu,
			const struct foliage_reclaim_request *r)
{
	unsigned int session = memcg_enter(e);
	int64_t freed = reclaim_in_session(e, cpu, r);

	memcg_leave(e, session);
	return freed;
}
