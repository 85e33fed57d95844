/* SPDX-License-Identifier: MIT
 *
 * The classic LRU: lists and flags (A.1), accesses (A.2), and the two policies made of it.
 *
 *   F_ACTIVE      on, or on its way to, the active list. On a list it agrees with the list and
 *                 changes only under the lock; off the lists it is a wish that add() grants in the
 *                 same step that sets F_LRU.
 *   F_REFERENCED  one access is remembered; the second one activates.
 *   F_WORKINGSET  has been on an active list at some time.
 */
#include "mm/clru.h"

#include <errno.h>

/* -- lists -- */

static void clru_add(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), now;
	int list;

	do {
		now = (old & ~(F_ISOLATED | (reclaiming ? F_ACTIVE : 0))) | F_LRU;
	} while (!folio_cas(e, f, &old, now));
	list = clru_list(flags_type(now), now & F_ACTIVE);
	f->list = (uint16_t)list;
	if (reclaiming)
		list_add_tail(e, list_head(lv->index, list), id);
	else
		list_add(e, list_head(lv->index, list), id);
	counter_add(e, &lv->clru.size[list], flags_nr(now));
	folio_event(e, id, FOLIAGE_EV_ADD, FOLIAGE_WHY_PLACE, -1, list, old, now);
}

static void clru_del(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f);

	while (!folio_cas(e, f, &old, (old & ~F_LRU) + F_VERSION_ONE))
		;
	list_del(e, id);
	counter_add(e, &lv->clru.size[f->list], -flags_nr(old));
}

/* From one list to the head of another, F_LRU set all the while. */
static void move_to(struct foliage_engine *e, struct lruvec *lv, folio_id id, int list)
{
	struct folio *f = folio_at(e, id);
	int64_t nr = flags_nr(folio_flags(f));

	list_del(e, id);
	counter_add(e, &lv->clru.size[f->list], -nr);
	f->list = (uint16_t)list;
	list_add(e, list_head(lv->index, list), id);
	counter_add(e, &lv->clru.size[list], nr);
}

static void clru_activate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_change(e, f, 0, F_ACTIVE);
	int from = f->list, to = clru_list(flags_type(old), true);

	move_to(e, lv, id, to);
	stat_add(e, lv, STAT_PGACTIVATE, flags_nr(old));
	folio_event(e, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_ACTIVATE, from, to, old, old);
}

/* Coldness is only news about an active folio; an inactive one stays where it is. */
static void clru_deactivate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f);
	int from = f->list, to = clru_list(flags_type(old), false);

	if (!(old & F_ACTIVE))
		return;
	old = folio_change(e, f, F_ACTIVE | F_REFERENCED, 0);
	move_to(e, lv, id, to);
	stat_add(e, lv, STAT_PGDEACTIVATE, flags_nr(old));
	folio_event(e, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_DEACTIVATE, from, to, old,
		    old & ~F_REFERENCED);
}

/* -- accesses -- */

static void activate_now(struct foliage_engine *e, struct folio *f, folio_id id)
{
	struct lruvec *lv = folio_lruvec_lock(e, f);
	uint64_t flags = folio_flags(f);

	if (flags & F_LRU && !(flags & F_ACTIVE) && flags_evictable(flags))
		clru_activate(e, lv, id);
	lruvec_unlock(e, lv, 1);
}

/* Still in the add batch: it lands on the active list, unless the batch has just been drained by
 * somebody else. */
static void activate_in_batch(struct foliage_engine *e, struct folio *f)
{
	uint64_t old = folio_flags(f);

	while ((old & (F_PRESENT | F_LRU | F_ISOLATED | F_ACTIVE)) == F_PRESENT &&
	       !folio_cas(e, f, &old, old | F_ACTIVE))
		;
}

/* An inactive folio that was referenced is accessed again. */
static __attribute__((noinline)) void second_access(struct foliage_engine *e,
						    struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	if (!flags_evictable(flags))
		return;
	if (flags & F_LRU) {
		if (clru_knobs(e)->activate_batch)
			cpu_queue_activate(e, cpu, id);
		else
			activate_now(e, f, id);
	} else if (cpu_batch_has(e, cpu, id)) {
		activate_in_batch(e, f);
	}
	folio_change(e, f, F_REFERENCED, 0);
	if (clru_knobs(e)->clock_activate)
		workingset_age(e, folio_lruvec(e, f), flags_nr(flags));
	folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_ACTIVATE, -1, -1, flags,
		    flags & ~F_REFERENCED);
}

static inline void mark(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
			struct folio *f, uint64_t flags)
{
	if (flags & F_DROPBEHIND)
		return;
	if (flags & F_REFERENCED) {
		if (!(flags & F_ACTIVE))
			second_access(e, cpu, id);
		return;
	}
	folio_change(e, f, 0, F_REFERENCED);
	folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_COUNT, -1, -1, flags,
		    flags | F_REFERENCED);
}

static void clru_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);

	mark(e, cpu, id, f, folio_flags(f));
}

static size_t clru_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			    size_t n)
{
	enum { AHEAD = 16 };
	const uint64_t done = F_PRESENT | F_REFERENCED | F_ACTIVE;
	size_t i;

	for (i = 0; i < n; i++) {
		struct folio *f = folio_at(e, (folio_id)ids[i]);
		uint64_t flags = folio_flags(f);

		if (i + AHEAD < n)
			__builtin_prefetch(folio_at(e, (folio_id)ids[i + AHEAD]), 1);
		if ((flags & done) == done)
			continue;
		if (!(flags & F_PRESENT))
			break;
		mark(e, cpu, (folio_id)ids[i], f, flags);
	}
	return i;
}

/* -- life -- */

static uint64_t clru_size(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	(void)e;
	return counter_size(&lv->clru.size[clru_list(type, false)]) +
	       counter_size(&lv->clru.size[clru_list(type, true)]);
}

static uint64_t clru_active(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	(void)e;
	return counter_size(&lv->clru.size[clru_list(type, true)]);
}

static void splice_counter(struct foliage_engine *e, counter_t *from, counter_t *to)
{
	int64_t nr = counter_read(from);

	counter_add(e, to, nr);
	counter_add(e, from, -nr);
}

/* The child's pages come behind the parent's: they are the first to go. Its clock stays: what it
 * evicted before is measured by nothing any more. */
static void clru_reparent(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent)
{
	for (int list = LIST_INACTIVE_ANON; list <= LIST_UNEVICTABLE; list++) {
		list_splice_tail(e, list_head(child->index, list), list_head(parent->index, list));
		splice_counter(e, &child->clru.size[list], &parent->clru.size[list]);
		if (list < LIST_UNEVICTABLE)
			splice_counter(e, &child->clru.frozen_size[list],
				       &parent->clru.frozen_size[list]);
	}
}

/* Hottest first. */
static folio_id clru_drain_next(struct foliage_engine *e, struct lruvec *lv, bool *active)
{
	static const int order[] = {LIST_ACTIVE_ANON, LIST_ACTIVE_FILE, LIST_INACTIVE_ANON,
				    LIST_INACTIVE_FILE};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		folio_id head = list_head(lv->index, order[i]);

		*active = order[i] % 2;
		if (!list_empty(e, head))
			return list_first(e, head);
	}
	return FOLIO_NONE;
}

/* NULL, or what is wrong with a folio found on a list. */
static const char *defect(const struct foliage_engine *e, const struct lruvec *lv, int list,
			  folio_id id)
{
	const struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	if (folio_at(e, f->next)->prev != id || folio_at(e, f->prev)->next != id)
		return "its neighbours do not know it";
	if ((flags & (F_PRESENT | F_LRU | F_ISOLATED)) != (F_PRESENT | F_LRU))
		return "it is not present, not marked as listed, or isolated";
	if (f->list != list)
		return "it believes to be on another list";
	if (folio_lruvec(e, f) != lv)
		return "it belongs to another lruvec";
	if (flags & F_GEN_MASK)
		return "it has a generation";
	if (list == LIST_UNEVICTABLE)
		return flags & F_UNEVICTABLE ? NULL : "it is evictable";
	if (flags & F_UNEVICTABLE)
		return "it is unevictable";
	return clru_list(flags_type(flags), flags & F_ACTIVE) == list
		       ? NULL
		       : "its flags name another list";
}

static int clru_is_valid(struct foliage_engine *e, struct lruvec *lv, struct err *err)
{
	for (int list = LIST_INACTIVE_ANON; list <= LIST_UNEVICTABLE; list++) {
		folio_id head = list_head(lv->index, list);
		int64_t nr = 0, size = counter_read(&lv->clru.size[list]);

		for (folio_id id = list_first(e, head); id != head; id = folio_at(e, id)->next) {
			const char *what = id < 0 || (uint32_t)id >= e->nr_folios
						   ? "it is no folio"
						   : defect(e, lv, list, id);

			if (what)
				return err_set(err, -EUCLEAN, "lruvec %u, list %d, folio %d: %s",
					       lv->index, list, id, what);
			nr += flags_nr(folio_flags(folio_at(e, id)));
			if (nr > size)
				break;
		}
		if (nr != size)
			return err_set(
				err, -EUCLEAN,
				"lruvec %u, list %d: the counter says %lld, the list has %lld%s",
				lv->index, list, (long long)size, (long long)nr,
				nr > size ? " or more" : "");
	}
	return 0;
}

/* -- the policies -- */

static const struct foliage_engine_policy clru_ops = {
	.mark_accessed = clru_mark_accessed,
	.mark_run = clru_mark_run,
	.refault = workingset_refault,
	.shadow = workingset_eviction,
	.add = clru_add,
	.del = clru_del,
	.activate = clru_activate,
	.deactivate = clru_deactivate,
	.references = clru_references,
	.shrink_lruvec = clru_shrink_lruvec,
	.prepare_scan = clru_prepare_scan,
	.end_session = clru_end_session,
	.size = clru_size,
	.active = clru_active,
	.init = clru_balance_init,
	.reparent = clru_reparent,
	.drain_next = clru_drain_next,
	.is_valid = clru_is_valid,
	.flush_stats = clru_flush_stats,
};

/* Without reparenting: a removed memcg's folios stay in its lruvec. */
static const struct foliage_engine_policy clru_612_ops = {
	.mark_accessed = clru_mark_accessed,
	.mark_run = clru_mark_run,
	.refault = workingset_refault,
	.shadow = workingset_eviction,
	.add = clru_add,
	.del = clru_del,
	.activate = clru_activate,
	.deactivate = clru_deactivate,
	.references = clru_references,
	.shrink_lruvec = clru_shrink_lruvec,
	.prepare_scan = clru_prepare_scan,
	.end_session = clru_end_session,
	.size = clru_size,
	.active = clru_active,
	.init = clru_balance_init,
	.drain_next = clru_drain_next,
	.is_valid = clru_is_valid,
	.flush_stats = clru_flush_stats,
};

uint32_t clru_flush_every(const struct foliage_engine *e)
{
	if (e->ops != &clru_ops && e->ops != &clru_612_ops)
		return 0;
	return clru_knobs(e)->frozen ? clru_knobs(e)->flush_every : 0;
}

static const char *const cost_names[] = {"sampled", "noted", NULL};
static const char *const refault_names[] = {"distance", "always", "never", NULL};

#define BOOL_KNOB(field, value, text)                                                              \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_BOOL, offsetof(struct clru_knobs, field), value, 0, 1,  \
			NULL                                                                       \
	}
#define UINT_KNOB(field, value, text)                                                              \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_UINT, offsetof(struct clru_knobs, field), value, 0,     \
			UINT32_MAX, NULL                                                           \
	}
#define ENUM_KNOB(field, value, names, text)                                                       \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_ENUM, offsetof(struct clru_knobs, field), value, 0,     \
			ARRAY_SIZE(names) - 2, names                                               \
	}

static const struct foliage_knob knobs[] = {
	BOOL_KNOB(frozen, 0, "decide on the statistics of the last flush, as a kernel does"),
	UINT_KNOB(flush_every, 130000, "accesses between two flushes (0: never); only with frozen"),
	ENUM_KNOB(cost, CLRU_COST_SAMPLED, cost_names,
		  "cost of reclaim: sampled at each pass, or noted at each event"),
	ENUM_KNOB(refault, CLRU_REFAULT_DISTANCE, refault_names, "which refaults come back active"),
	BOOL_KNOB(activate_batch, 1,
		  "second accesses wait in the cpu's batch of 31; 0: one-cpu kernel"),
	BOOL_KNOB(reclaim_clean, 0,
		  "a referenced file folio without a young bit is freed only if clean"),
	BOOL_KNOB(deactivate_ref, 0, "deactivation forgets the remembered access"),
	BOOL_KNOB(clock_activate, 1, "activations by a second access advance the non-resident age"),
	UINT_KNOB(skip_max, 32768, "folios of too high zones set aside at once; 0: any number"),
	BOOL_KNOB(anon_only, 1,
		  "swappiness 201 (max) reclaims anonymous memory only; 0: it is 200"),
	{NULL, NULL, FOLIAGE_KNOB_UINT, 0, 0, 0, 0, NULL},
};

const struct foliage_policy foliage_policy_clru = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "clru",
	.summary = "classic active/inactive LRU with refault distance, newest kernel",
	.knobs = knobs,
	.knobs_size = sizeof(struct clru_knobs),
	.engine = &clru_ops,
};

const struct foliage_policy foliage_policy_clru_612 = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "clru-6.12",
	.summary = "classic LRU of Linux 6.12: decides on flushed statistics, older cost model",
	.knobs = knobs,
	.knobs_size = sizeof(struct clru_knobs),
	.preset = "frozen=1,cost=noted,reclaim_clean=1,skip_max=0,anon_only=0",
	.engine = &clru_612_ops,
};
