/* SPDX-License-Identifier: MIT
 *
 * Shrinking the classic LRU: batches from the tails of the lists (A.4), what the references of a
 * folio at the tail mean (A.3), and the loop that spends the budgets of the four lists (A.6).
 *
 *   new, refaulted ------------> head  inactive  tail ---> isolate ---> freed, or back to a head
 *   second access, referenced -> head   active   tail ---> isolate ---> head of inactive
 */
#include "mm/clru.h"
#include "mm/walk.h"

/* -- isolation -- */

/* What a batch from the tail of one list found. */
struct batch {
	int64_t scanned, taken; /* pages */
	struct folio_set set;
};

static bool zone_too_high(const struct scan_control *sc, uint64_t flags)
{
	return flags_zone(flags) > sc->reclaim_idx;
}

static void isolate_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f);

	while (!folio_cas(e, f, &old, ((old & ~F_LRU) | F_ISOLATED) + F_VERSION_ONE))
		;
	list_del(e, id);
	counter_add(e, &lv->clru.size[f->list], -flags_nr(old));
}

/* The folios that were skipped are what is left behind the cursor: move them, order kept, to the
 * head. */
static void requeue_skipped(struct foliage_engine *e, folio_id head, folio_id cursor)
{
	struct folio *h = folio_at(e, head), *c = folio_at(e, cursor);
	folio_id first = c->next, last = h->prev;

	if (cursor == head || first == head)
		return;
	c->next = head;
	h->prev = cursor;
	folio_at(e, first)->prev = head;
	folio_at(e, last)->next = h->next;
	folio_at(e, h->next)->prev = last;
	h->next = first;
}

/* Take folios from the tail of a list until `want` pages were looked at. Folios in zones that the
 * request cannot use do not count, unless there are too many of them. */
static void isolate(struct foliage_engine *e, struct lruvec *lv, const struct scan_control *sc,
		    int list, int64_t want, struct batch *b)
{
	folio_id head = list_head(lv->index, list), id = list_last(e, head), prev;
	uint32_t skipped = 0, skip_max = clru_knobs(e)->skip_max;

	b->scanned = b->taken = 0;
	b->set.nr = 0;
	for (; id != head && b->scanned < want && b->set.nr < ARRAY_SIZE(b->set.ids); id = prev) {
		uint64_t flags = folio_flags(folio_at(e, id));

		prev = folio_at(e, id)->prev;
		if (zone_too_high(sc, flags) && (!skip_max || skipped < skip_max)) {
			skipped++;
			continue;
		}
		b->scanned += flags_nr(flags);
		if (flags & F_MAPPED && !sc->may_unmap) {
			list_del(e, id);
			list_add(e, head, id);
			continue;
		}
		isolate_folio(e, lv, id);
		b->taken += flags_nr(flags);
		b->set.ids[b->set.nr++] = id;
	}
	if (skipped)
		requeue_skipped(e, head, id);
}

static void note_isolated(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			  int64_t nr)
{
	counter_add(e, &lv->clru.isolated[type], nr);
}

/* Survivors go back where F_ACTIVE says; those that go up advance the non-resident age. */
static void put_back(struct foliage_engine *e, struct lruvec *lv, const struct batch *b,
		     unsigned int type)
{
	int64_t up = 0;

	for (uint32_t i = 0; i < b->set.nr; i++) {
		uint64_t flags = folio_flags(folio_at(e, b->set.ids[i]));

		if (flags & F_ACTIVE && flags_evictable(flags))
			up += flags_nr(flags);
	}
	if (up)
		workingset_age(e, lv, up);
	if (b->set.nr)
		putback_folios(e, &b->set);
	note_isolated(e, lv, type, -b->taken);
}

/* -- the inactive list -- */

enum references clru_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
				const struct referenced *ref)
{
	struct folio *f = folio_at(e, id);
	uint64_t old;

	(void)sc;
	if (ref->locked)
		return REFERENCES_ACTIVATE;
	if (ref->contended)
		return REFERENCES_KEEP;
	if (!ref->ptes) {
		old = folio_change(e, f, F_REFERENCED, 0);
		if (clru_knobs(e)->reclaim_clean && old & F_REFERENCED &&
		    flags_type(old) == TYPE_FILE)
			return REFERENCES_RECLAIM_CLEAN;
		return REFERENCES_RECLAIM;
	}
	old = folio_change(e, f, 0, F_REFERENCED);
	if (old & F_REFERENCED || ref->ptes > 1)
		return REFERENCES_ACTIVATE;
	if (ref->exec && flags_type(old) == TYPE_FILE)
		return REFERENCES_ACTIVATE;
	return REFERENCES_KEEP;
}

/* Others hold more of the list than they leave on it: wait once, then give up. */
static bool too_many_isolated(struct foliage_engine *e, struct lruvec *lv,
			      const struct scan_control *sc, unsigned int type)
{
	for (int attempt = 0; attempt < 2 && !sc->kswapd; attempt++) {
		uint64_t inactive = counter_size(&lv->clru.size[clru_list(type, false)]);

		/* Those who may not do I/O may take more, so that they never wait for those who
		 * may. */
		if (counter_size(&lv->clru.isolated[type]) <=
		    (sc->gfp_io ? inactive >> 3 : inactive))
			return false;
		if (attempt == 0 && e->backend.throttle)
			e->backend.throttle(e->ctx);
	}
	return !sc->kswapd;
}

static int64_t shrink_inactive(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			       unsigned int type, int64_t want)
{
	struct batch b;
	uint64_t io = sc->seen.io;
	int64_t freed;

	if (too_many_isolated(e, lv, sc, type))
		return 0;
	foliage_cpu_drain(e, sc->cpu);
	lruvec_lock(e, lv);
	isolate(e, lv, sc, clru_list(type, false), want, &b);
	note_isolated(e, lv, type, b.taken);
	lruvec_unlock(e, lv, b.set.nr);
	sc->nr_scanned += b.scanned;
	stat_add(e, lv, clru_stat(STAT_PGSCAN_ANON, type), b.scanned);
	if (!b.taken)
		return 0;

	freed = shrink_folio_list(e, sc, &b.set);
	put_back(e, lv, &b, type);
	io = sc->seen.io - io;
	stat_add(e, lv, clru_stat(STAT_PGSTEAL_ANON, type), freed);
	stat_add(e, lv, clru_stat(STAT_PGROTATE_ANON, type), b.scanned - freed);
	if (io)
		stat_add(e, lv, STAT_PSWPOUT, (int64_t)io);
	clru_note_cost(e, lv, type, io, (uint64_t)(b.scanned - freed));
	return freed;
}

/* -- the active list -- */

/* Only code keeps its place for having been used: everything else is deactivated, looked at or not,
 * and has the whole inactive list to prove itself. */
static bool stays_active(struct foliage_engine *e, struct scan_control *sc, folio_id id,
			 uint64_t flags)
{
	struct referenced ref = {0};

	if (!(flags & F_MAPPED))
		return false;
	folio_referenced(e, sc, id, false, &ref);
	return (ref.ptes || ref.contended) && ref.exec && flags_type(flags) == TYPE_FILE;
}

static void shrink_active(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			  unsigned int type, int64_t want)
{
	uint64_t clear = F_ACTIVE | (clru_knobs(e)->deactivate_ref ? F_REFERENCED : 0);
	int64_t rotated = 0, deactivated = 0;
	struct batch b;

	foliage_cpu_drain(e, sc->cpu);
	lruvec_lock(e, lv);
	isolate(e, lv, sc, clru_list(type, true), want, &b);
	note_isolated(e, lv, type, b.taken);
	lruvec_unlock(e, lv, b.set.nr);
	stat_add(e, lv, STAT_PGREFILL, b.scanned);

	for (uint32_t i = 0; i < b.set.nr; i++) {
		folio_id id = b.set.ids[i];
		struct folio *f = folio_at(e, id);
		uint64_t flags = folio_flags(f);

		if (!flags_evictable(flags))
			continue;
		if (stays_active(e, sc, id, flags)) {
			rotated += flags_nr(flags);
			continue;
		}
		flags = folio_change(e, f, clear, F_WORKINGSET);
		deactivated += flags_nr(flags);
		folio_event(e, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_DEACTIVATE, clru_list(type, true),
			    clru_list(type, false), flags, (flags & ~clear) | F_WORKINGSET);
	}
	put_back(e, lv, &b, type);
	stat_add(e, lv, STAT_PGDEACTIVATE, deactivated);
	if (rotated) {
		stat_add(e, lv, clru_stat(STAT_PGROTATE_ANON, type), rotated);
		stat_add(e, lv, STAT_PROTECTED, rotated);
		clru_note_cost(e, lv, type, 0, (uint64_t)rotated);
	}
}

/* -- one lruvec -- */

static int64_t shrink_list(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			   int list, int64_t want)
{
	unsigned int type = (unsigned int)list / 2;

	if (list % 2 == 0)
		return shrink_inactive(e, lv, sc, type, want);
	if (sc->may_deactivate & 1u << type)
		shrink_active(e, lv, sc, type, want);
	else
		sc->skipped_deactivate = true;
	return 0;
}

/* The target is met, but pressure on both types should stay in the proportion of their budgets: the
 * type with less left stops here, the other is cut to the same share of its target. False: one of
 * them is through, stop. */
static bool cut_to_proportion(uint64_t nr[4], const uint64_t target[4])
{
	uint64_t anon = nr[LIST_INACTIVE_ANON] + nr[LIST_ACTIVE_ANON];
	uint64_t file = nr[LIST_INACTIVE_FILE] + nr[LIST_ACTIVE_FILE];
	int stop = file > anon ? LIST_INACTIVE_ANON : LIST_INACTIVE_FILE;
	int go_on = file > anon ? LIST_INACTIVE_FILE : LIST_INACTIVE_ANON;
	uint64_t percent = MIN(anon, file) * 100 / (target[stop] + target[stop + 1] + 1);

	if (!anon || !file)
		return false;
	nr[stop] = nr[stop + 1] = 0;
	for (int list = go_on; list <= go_on + 1; list++) {
		uint64_t scanned = target[list] - nr[list],
			 left = target[list] * (100 - percent) / 100;

		nr[list] = left - MIN(left, scanned);
	}
	return true;
}

bool clru_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	/* Direct global reclaim that is under no pressure yet spends all of its small budgets. */
	bool whole = sc->root_reclaim && !sc->kswapd && sc->priority == DEF_PRIORITY;
	uint64_t nr[4], target[4], cluster = sc->cluster ? sc->cluster : SWAP_CLUSTER_MAX;
	int64_t freed = 0;

	clru_scan_count(e, lv, sc, nr);
	for (int list = 0; list < 4; list++)
		target[list] = nr[list];
	while (nr[LIST_INACTIVE_ANON] || nr[LIST_ACTIVE_FILE] || nr[LIST_INACTIVE_FILE]) {
		for (int list = LIST_INACTIVE_ANON; list <= LIST_ACTIVE_FILE; list++) {
			uint64_t n = MIN(nr[list], cluster);

			nr[list] -= n;
			if (n)
				freed += shrink_list(e, lv, sc, list, (int64_t)n);
		}
		engine_yield(e);
		if (freed >= sc->nr_to_reclaim && !whole && !cut_to_proportion(nr, target))
			break;
	}
	sc->nr_reclaimed += freed;
	if (can_reclaim_anon(e, lv->memcg, sc) && clru_inactive_is_low(e, lv, TYPE_ANON))
		shrink_active(e, lv, sc, TYPE_ANON, (int64_t)cluster);
	return false;
}
