/* SPDX-License-Identifier: MIT
 *
 * The rarer things that touch a folio's refs: advice, page-table users other than reclaim, split
 * and migration (B.14 and the lower half of the table in C.9).
 */
#include "mm/engine.h"
#include "mm/gen.h"

#include <errno.h>

static bool known(const struct foliage_engine *e, folio_id id)
{
	return id >= 0 && (uint32_t)id < e->nr_folios;
}

/* Take the folio off its list for something that is not reclaim; NULL when it is on none. The
 * lruvec is locked. */
static struct lruvec *lock_on_lru(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);
	struct lruvec *lv;
	uint64_t flags;

	foliage_cpu_drain(e, cpu);
	lv = folio_lruvec_lock(e, f);
	flags = folio_flags(f);
	if ((flags & (F_PRESENT | F_LRU)) == (F_PRESENT | F_LRU) && flags_evictable(flags))
		return lv;
	lruvec_unlock(e, lv, 0);
	return NULL;
}

void foliage_folio_deactivate(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id)
{
	struct lruvec *lv = lock_on_lru(e, cpu, id);

	if (!lv)
		return;
	e->ops->deactivate(e, lv, id);
	lruvec_unlock(e, lv, 1);
}

void foliage_folio_activate(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id)
{
	struct lruvec *lv = lock_on_lru(e, cpu, id);

	if (!lv)
		return;
	if (!(folio_flags(folio_at(e, id)) & F_ACTIVE))
		e->ops->activate(e, lv, id);
	lruvec_unlock(e, lv, 1);
}

void foliage_folio_lazyfree(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id)
{
	struct lruvec *lv = lock_on_lru(e, cpu, id);
	struct folio *f = folio_at(e, id);

	if (!lv)
		return;
	/* Only anonymous memory may be thrown away dirty. */
	if ((folio_flags(f) & (F_ANON | F_SWAPBACKED)) != (F_ANON | F_SWAPBACKED)) {
		lruvec_unlock(e, lv, 0);
		return;
	}
	lruvec_del_folio(e, lv, id);
	folio_change(e, f, F_REFS_MASK | F_ACTIVE | F_SWAPBACKED | F_SWAPCACHE | F_DIRTY, 0);
	lruvec_add_folio(e, lv, id, false);
	stat_add(e, lv, STAT_PGLAZYFREED, flags_nr(folio_flags(f)));
	lruvec_unlock(e, lv, 1);
}

int64_t foliage_folio_pageout(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id)
{
	struct foliage_reclaim_request request = {.nr = 1, .swappiness = -1, .proactive = true};
	struct folio_set set = {.nr = 1, .ids = {id}};
	struct scan_control sc;
	struct lruvec *lv;
	struct folio *f;
	int64_t freed;

	if (!known(e, id))
		return -EINVAL;
	f = folio_at(e, id);
	lv = lock_on_lru(e, cpu, id);
	if (!lv)
		return -EBUSY;
	lruvec_del_folio(e, lv, id);
	folio_change(e, f, 0, F_ISOLATED);
	/* A forced eviction says nothing about the page's worth: it must not feed the statistics of
	 * the hot tiers. */
	if (e->ops->rules && e->ops->rules->refs_active) {
		uint64_t old = folio_flags(f), new;

		do {
			new = flags_with_fg_refs(
				old, MIN(flags_fg_refs(old), gen_knobs(e)->pageout_cap));
		} while (!folio_cas(e, f, &old, new));
	}
	lruvec_unlock(e, lv, 1);
	request.memcg = lv->memcg;
	request.node = lv->node;
	scan_control_init(e, &sc, cpu, &request);
	sc.ignore_references = true;
	freed = shrink_folio_list(e, &sc, &set);
	putback_folios(e, &set);
	return freed;
}

/* The refs of a folio changed, wherever it is: keep the active count right (C.10). */
static void refs_changed(struct foliage_engine *e, folio_id id, uint64_t old, uint64_t new)
{
	const struct gen_rules *rules = e->ops->rules;
	struct lruvec *lv = folio_lruvec(e, folio_at(e, id));
	bool was, is;

	if (!rules || !rules->refs_active || !(old & F_LRU))
		return;
	was = flags_fg_refs(old) >= gen_knobs(e)->activated;
	is = flags_fg_refs(new) >= gen_knobs(e)->activated;
	if (was == is)
		return;
	counter_add(e, &lv->gen.nr_active[flags_type(old)], is ? flags_nr(old) : -flags_nr(old));
	if (!e->exclusive)
		gen_settle_dying(e, lv);
}

void foliage_folio_clear_refs(struct foliage_engine *e, foliage_folio id)
{
	uint64_t old = folio_change(e, folio_at(e, id), F_REFS_MASK, 0);

	refs_changed(e, id, old, old & ~F_REFS_MASK);
}

void foliage_folio_gup_fast(struct foliage_engine *e, foliage_folio id)
{
	bool counts = e->ops->rules && e->ops->rules->refs_active;
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;

	do {
		if (!counts)
			new = old | F_REFERENCED;
		else if (gen_knobs(e)->gup_fast == GUP_FAST_INC)
			new = flags_with_fg_refs(
				old, MIN(flags_fg_refs(old) + 1, gen_knobs(e)->refs_max));
		else
			new = flags_with_fg_refs(old, MAX(flags_fg_refs(old), 1u));
		if (new == old)
			return;
	} while (!folio_cas(e, f, &old, new));
	refs_changed(e, id, old, new);
}

bool foliage_folio_referenced(struct foliage_engine *e, foliage_folio id)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	return e->ops->rules && e->ops->rules->refs_active ? flags_fg_refs(flags) >= 1
							   : flags & F_REFERENCED;
}

bool foliage_folio_workingset(struct foliage_engine *e, foliage_folio id)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	if (e->ops->workingset)
		return e->ops->workingset(e, id);
	return e->ops->rules && e->ops->rules->refs_active ? flags_fg_refs(flags) >= 2
							   : flags & F_WORKINGSET;
}

/* A free number becomes a folio with the word, owner and charge of another; pins stay with the
 * number. */
static void clone_folio(struct foliage_engine *e, folio_id from, folio_id to, uint64_t flags)
{
	struct folio *f = folio_at(e, from), *t = folio_at(e, to);
	uint64_t own = folio_flags(t) & (F_VERSION_MASK | F_PINS_MASK);

	__atomic_store_n(&t->owner, f->owner, __ATOMIC_RELEASE);
	atomic_store_explicit(&t->flags, (flags & ~(F_VERSION_MASK | F_PINS_MASK)) | own,
			      memory_order_release);
	counter_add(e, &e->memcgs[e->lruvecs[f->owner].memcg].nr_owned, 1);
}

static bool usable(struct foliage_engine *e, folio_id id)
{
	return known(e, id) && !(folio_flags(folio_at(e, id)) & F_PRESENT);
}

int foliage_folio_split(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id,
			const foliage_folio *parts, bool young)
{
	struct lruvec *lv;
	struct folio *f;
	uint64_t flags;
	int64_t nr;

	if (!known(e, id) || !parts)
		return -EINVAL;
	f = folio_at(e, id);
	nr = flags_nr(folio_flags(f));
	if (!(folio_flags(f) & F_PRESENT) || nr == 1)
		return -EINVAL;
	for (int64_t i = 0; i + 1 < nr; i++)
		if (!usable(e, parts[i]))
			return -EEXIST;
	/* FG takes the torn entry for an access like any other; before, it only set PG_referenced
	 * (C.9). */
	if (young && e->ops->rules && e->ops->rules->refs_active)
		e->ops->neighbour_young(e, cpu, id, folio_flags(f) & F_EXEC);
	else if (young)
		folio_change(e, f, 0, F_REFERENCED);
	lv = lock_on_lru(e, cpu, id);
	if (!lv)
		return -EBUSY;
	/* The counters count pages: the parts take over what the whole had at the moment its order
	 * went. Each goes on the list behind it. */
	flags = folio_change(e, f, F_ORDER_MASK, 0) & ~F_ORDER_MASK;
	for (int64_t i = 0; i + 1 < nr; i++) {
		clone_folio(e, id, parts[i], flags);
		folio_set_list(folio_at(e, parts[i]), f->list);
		list_insert(e, id, f->next, parts[i]);
	}
	lruvec_unlock(e, lv, (uint32_t)nr);
	return 0;
}

int foliage_folio_migrate(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio from,
			  foliage_folio to)
{
	struct lruvec *lv;
	bool active = false;
	uint64_t flags;

	if (!known(e, from) || !known(e, to))
		return -EINVAL;
	if (!usable(e, to))
		return -EEXIST;
	lv = lock_on_lru(e, cpu, from);
	if (!lv)
		return -EBUSY;
	flags = folio_flags(folio_at(e, from));
	if (e->ops->rules) {
		uint64_t max_seq = gen_max_seq(lv);

		/* Taken from one of the two youngest generations, it goes back there (B.1). */
		active = flags_gen(flags) == gen_of(max_seq) ||
			 flags_gen(flags) == gen_of(max_seq - 1);
	} else {
		active = flags & F_ACTIVE;
	}
	lruvec_del_folio(e, lv, from);
	flags = folio_flags(folio_at(e, from));
	clone_folio(e, from, to, (flags & ~F_ACTIVE) | (active ? F_ACTIVE : 0));
	memcg_charge(e, lv->memcg, flags_nr(flags));
	lruvec_add_folio(e, lv, to, false);
	engine_release_folio(e, from, true);
	lruvec_unlock(e, lv, 1);
	return 0;
}
