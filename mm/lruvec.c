/* SPDX-License-Identifier: MIT
 *
 * lruvecs and what stands in front of their lists: the per-cpu batches (0.2.1).
 *
 * A folio that has just come in waits in its cpu's add batch, on no list, and is invisible to
 * reclaim until the batch drains: when it is full, when a large folio arrives, when reclaim starts
 * on that cpu. Order within the batch is the order on the list. Batches have a tiny lock of their
 * own, because anyone may drain anyone's.
 */
#include "mm/engine_policy.h"
#include "mm/gen.h"

#include <sched.h>

void lruvec_lock(struct foliage_engine *e, struct lruvec *lv)
{
	if (!e->exclusive)
		pthread_mutex_lock(&lv->lock);
	if (e->backend.lock_taken)
		e->backend.lock_taken(e->ctx, lv->index);
}

void lruvec_unlock(struct foliage_engine *e, struct lruvec *lv, uint32_t handled)
{
	if (e->backend.lock_dropped)
		e->backend.lock_dropped(e->ctx, lv->index, handled);
	if (!e->exclusive)
		pthread_mutex_unlock(&lv->lock);
}

struct lruvec *folio_lruvec_lock(struct foliage_engine *e, const struct folio *f)
{
	for (;;) {
		struct lruvec *lv = folio_lruvec(e, f);

		lruvec_lock(e, lv);
		if (lv == folio_lruvec(e, f))
			return lv;
		lruvec_unlock(e, lv, 0);
	}
}

void lruvec_init(struct foliage_engine *e, struct lruvec *lv, uint32_t index)
{
	pthread_mutex_init(&lv->lock, NULL);
	lv->index = index;
	lv->memcg = index / e->nr_nodes;
	lv->node = index % e->nr_nodes;
	for (int i = 0; i < NR_LISTS; i++)
		list_init(e, list_head(index, i));
}

void lruvec_add_unevictable(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old =
		folio_change(e, f, F_ACTIVE | F_ISOLATED | F_GEN_MASK, F_LRU | F_UNEVICTABLE);

	f->list = LIST_UNEVICTABLE;
	list_add(e, list_head(lv->index, LIST_UNEVICTABLE), id);
	counter_add(e, &lv->clru.size[LIST_UNEVICTABLE], flags_nr(old));
}

void lruvec_del_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);

	if (f->list != LIST_UNEVICTABLE) {
		e->ops->del(e, lv, id);
		return;
	}
	list_del(e, id);
	counter_add(e, &lv->clru.size[LIST_UNEVICTABLE], -flags_nr(folio_flags(f)));
	folio_change(e, f, F_LRU | F_UNEVICTABLE, 0);
}

/* A folio that comes back on a list belongs to the live lruvec from now on, so that the slot of a
 * removed memcg empties by and by. */
static void adopt(struct foliage_engine *e, struct lruvec *lv, struct folio *f)
{
	uint32_t owner = f->owner;

	if (__builtin_expect(owner == lv->index, 1))
		return;
	counter_add(e, &e->memcgs[e->lruvecs[owner].memcg].nr_owned, -1);
	counter_add(e, &e->memcgs[lv->memcg].nr_owned, 1);
	__atomic_store_n(&f->owner, lv->index, __ATOMIC_RELEASE);
}

void engine_adopt_all(struct foliage_engine *e)
{
	for (uint32_t id = 0; id < e->nr_folios; id++) {
		struct folio *f = folio_at(e, (folio_id)id);
		struct lruvec *lv;

		if (!(folio_flags(f) & F_LRU) ||
		    folio_lruvec(e, f)->index == __atomic_load_n(&f->owner, __ATOMIC_ACQUIRE))
			continue;
		lv = folio_lruvec_lock(e, f);
		if (folio_flags(f) & F_LRU)
			adopt(e, lv, f);
		lruvec_unlock(e, lv, 1);
	}
}

void lruvec_add_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming)
{
	struct folio *f = folio_at(e, id);

	adopt(e, lv, f);
	if (flags_evictable(folio_flags(f)))
		e->ops->add(e, lv, id, reclaiming);
	else
		lruvec_add_unevictable(e, lv, id);
}

void cpu_lock(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	if (__builtin_expect(cpu->engine != e, 0)) {
		pthread_mutex_lock(&e->tree_lock);
		cpu->engine = e;
		cpu->next = e->cpus;
		e->cpus = cpu;
		pthread_mutex_unlock(&e->tree_lock);
	}
	if (e->exclusive)
		return;
	while (__atomic_exchange_n(&cpu->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

void cpu_unlock(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	if (!e->exclusive)
		__atomic_store_n(&cpu->lock, 0, __ATOMIC_RELEASE);
}

/* Asked by a hit, which waits for nobody: who holds the lock is draining the batch. */
bool cpu_batch_has(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	bool has = false;

	if (!e->exclusive && __atomic_exchange_n(&cpu->lock, 1, __ATOMIC_ACQUIRE))
		return false;
	for (uint32_t i = cpu->nr_add; i-- > 0 && !has;)
		has = cpu->add[i] == id;
	cpu_unlock(e, cpu);
	return has;
}

/* Add batch to the lists; the cpu is locked. Neighbours in the batch mostly share an lruvec: keep
 * its lock. */
static void drain_add(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	struct lruvec *lv = NULL;
	uint32_t handled = 0;

	for (uint32_t i = 0; i < cpu->nr_add; i++) {
		struct folio *f = folio_at(e, cpu->add[i]);

		if (!lv || lv != folio_lruvec(e, f)) {
			if (lv)
				lruvec_unlock(e, lv, handled);
			lv = folio_lruvec_lock(e, f);
			handled = 0;
		}
		lruvec_add_folio(e, lv, cpu->add[i], false);
		handled++;
	}
	if (lv)
		lruvec_unlock(e, lv, handled);
	cpu->nr_add = 0;
}

/* Like the add batch: one lock section for each run of folios of one lruvec. */
static void drain_activate(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	struct lruvec *lv = NULL;
	uint32_t handled = 0;

	for (uint32_t i = 0; i < cpu->nr_activate; i++) {
		struct folio *f = folio_at(e, cpu->activate[i]);
		uint64_t flags;

		if (!lv || lv != folio_lruvec(e, f)) {
			if (lv)
				lruvec_unlock(e, lv, handled);
			lv = folio_lruvec_lock(e, f);
			handled = 0;
		}
		flags = folio_flags(f);
		/* It may have been evicted or isolated since it was queued. */
		if ((flags & (F_PRESENT | F_LRU)) == (F_PRESENT | F_LRU) &&
		    flags_evictable(flags) && !(flags & F_ACTIVE))
			e->ops->activate(e, lv, cpu->activate[i]);
		handled++;
	}
	if (lv)
		lruvec_unlock(e, lv, handled);
	cpu->nr_activate = 0;
}

void cpu_queue_add(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	uint32_t room = cpu->batch ? MIN(cpu->batch, (uint32_t)FOLIO_BATCH_SIZE) : FOLIO_BATCH_SIZE;

	cpu_lock(e, cpu);
	cpu->add[cpu->nr_add++] = id;
	if (cpu->nr_add >= room || flags_nr(folio_flags(folio_at(e, id))) > 1)
		drain_add(e, cpu);
	cpu_unlock(e, cpu);
}

void cpu_queue_activate(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	cpu_lock(e, cpu);
	cpu->activate[cpu->nr_activate++] = id;
	if (cpu->nr_activate == FOLIO_BATCH_SIZE)
		drain_activate(e, cpu);
	cpu_unlock(e, cpu);
}

void foliage_cpu_drain(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	cpu_lock(e, cpu);
	if (cpu->nr_add)
		drain_add(e, cpu);
	if (cpu->nr_activate)
		drain_activate(e, cpu);
	cpu_unlock(e, cpu);
}

void foliage_cpu_exit(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	struct foliage_cpu **link;

	foliage_cpu_drain(e, cpu);
	pthread_mutex_lock(&e->tree_lock);
	for (link = &e->cpus; *link; link = &(*link)->next)
		if (*link == cpu) {
			*link = cpu->next;
			break;
		}
	cpu->engine = NULL;
	cpu->next = NULL;
	pthread_mutex_unlock(&e->tree_lock);
}

void engine_drain_all(struct foliage_engine *e)
{
	pthread_mutex_lock(&e->tree_lock);
	for (struct foliage_cpu *cpu = e->cpus; cpu; cpu = cpu->next)
		foliage_cpu_drain(e, cpu);
	pthread_mutex_unlock(&e->tree_lock);
}

/* The counter as a person counts: accesses seen, whatever bits the policy keeps them in. */
static unsigned int human_refs(const struct foliage_engine *e, uint64_t flags)
{
	return e->ops->rules ? e->ops->rules->refs(flags) : !!(flags & F_REFERENCED);
}

void engine_tell(const struct foliage_engine *e, folio_id id, int what, int why, int64_t from,
		 int64_t to, uint64_t flags_from, uint64_t flags_to)
{
	e->event(e->event_ctx, id, what, why, from, to, human_refs(e, flags_from),
		 human_refs(e, flags_to));
}
