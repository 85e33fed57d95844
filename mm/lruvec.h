/* SPDX-License-Identifier: MIT
 *
 * lruvecs: finding the live one of a folio, its lock, its counters; the per-cpu add and activate
 * batches in front of its lists.
 */
#ifndef FOLIAGE_MM_LRUVEC_H
#define FOLIAGE_MM_LRUVEC_H

#include "mm/list.h"

static inline int64_t counter_read(const counter_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* Counters may be touched without the lruvec's lock and be negative for a moment (C.10). */
static inline uint64_t counter_size(const counter_t *c)
{
	int64_t n = counter_read(c);

	return n > 0 ? (uint64_t)n : 0;
}

static inline void counter_add(const struct foliage_engine *e, counter_t *c, int64_t n)
{
	if (e->exclusive)
		atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline void stat_add(const struct foliage_engine *e, struct lruvec *lv, enum stat_item item,
			    int64_t n)
{
	counter_add(e, &lv->stat[item], n);
}

/* The counter of a type, given that of anon: file's follows it. */
static inline enum stat_item stat_of(enum stat_item anon, unsigned int type)
{
	return (enum stat_item)((unsigned int)anon + type);
}

static inline struct lruvec *lruvec_of(const struct foliage_engine *e, uint32_t memcg,
				       uint32_t node)
{
	return &e->lruvecs[memcg * e->nr_nodes + node];
}

/* The nearest lruvec that is not dying: the owner's, or an ancestor's once the owner's memcg was
 * removed. */
static inline struct lruvec *lruvec_live(const struct foliage_engine *e, uint32_t index)
{
	struct lruvec *lv = &e->lruvecs[index];

	while (atomic_load_explicit(&lv->dying, memory_order_acquire))
		lv = lruvec_of(e, e->memcgs[lv->memcg].parent, lv->node);
	return lv;
}

static inline struct lruvec *folio_lruvec(const struct foliage_engine *e, const struct folio *f)
{
	return lruvec_live(e, __atomic_load_n(&f->owner, __ATOMIC_ACQUIRE));
}

void lruvec_lock(struct foliage_engine *e, struct lruvec *lv);
void lruvec_unlock(struct foliage_engine *e, struct lruvec *lv, uint32_t handled);

/* Lock the live lruvec of a folio: the owner may die between the look and the lock. */
struct lruvec *folio_lruvec_lock(struct foliage_engine *e, const struct folio *f);

void lruvec_init(struct foliage_engine *e, struct lruvec *lv, uint32_t index);

/* Put a folio on / take it off the unevictable list; the caller holds the lock. */
void lruvec_add_unevictable(struct foliage_engine *e, struct lruvec *lv, folio_id id);
/* Take a folio off whatever list it is on: F_LRU, gen and counters go, refs and the rest stay. */
void lruvec_del_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id);
/* Put a folio that is on no list where the policy places it. `reclaiming`: rotated for reclaim
 * (tail). */
void lruvec_add_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming);

/* Append to the add batch; the last entry drains it. */
void cpu_queue_add(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);
void cpu_queue_activate(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);
/* Is the folio still in this cpu's add batch? */
bool cpu_batch_has(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);
/* Drain every registered cpu: reclaim found nothing, or a folio must leave a batch that is not
 * ours. */
void engine_drain_all(struct foliage_engine *e);
/* Folios on lists that still name a memcg which was removed: they belong to the live one from now on,
 * and the slot may be free then. O(folios). */
void engine_adopt_all(struct foliage_engine *e);
void cpu_lock(struct foliage_engine *e, struct foliage_cpu *cpu);
void cpu_unlock(struct foliage_engine *e, struct foliage_cpu *cpu);

void engine_tell(const struct foliage_engine *e, folio_id id, int what, int why, int64_t from,
		 int64_t to, uint64_t flags_from, uint64_t flags_to);

/* Tell the observer why; one predictable branch when nobody listens. */
static inline void folio_event(const struct foliage_engine *e, folio_id id, int what, int why,
			       int64_t from, int64_t to, uint64_t refs_from, uint64_t refs_to)
{
	if (__builtin_expect(e->event != NULL, 0))
		engine_tell(e, id, what, why, from, to, refs_from, refs_to);
}

#endif
