/* SPDX-License-Identifier: MIT
 *
 * What reclaim does with each isolated folio, whatever the policy (A.6): the order of the tests is
 * the order of the spec, and the first that applies decides. A folio leaves through the backend's
 * evict(), which gets the shadow; the others stay in the set, marked F_ACTIVE if they were
 * activated, and go back on the lists.
 */
#include "mm/reclaim.h"
#include "mm/engine.h"
#include "mm/gen.h"
#include "mm/walk.h"

enum outcome { OUT_FREED, OUT_KEEP, OUT_ACTIVATE, OUT_GO_ON };

static enum outcome check_writeback(struct foliage_engine *e, struct scan_control *sc,
				    struct folio *f, uint64_t flags)
{
	sc->seen.writeback++;
	if (sc->kswapd && flags & F_RECLAIM)
		sc->seen.immediate++;
	else
		folio_change(e, f, 0, F_RECLAIM);
	return OUT_ACTIVATE;
}

/* A.3, B.2, C.4: what the page tables and the flags say. */
static enum outcome check_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
				     uint64_t flags, bool *clean_only)
{
	struct referenced ref = {0};

	/* 6.12: look-around touched it after it was isolated. */
	if (e->ops->rules && e->ops->rules->v612 &&
	    (flags & (F_MAPPED | F_REFERENCED)) == (F_MAPPED | F_REFERENCED))
		return OUT_KEEP;
	if (flags & F_MAPPED)
		folio_referenced(e, sc, id, e->ops->neighbour_young != NULL, &ref);
	if (ref.locked) {
		folio_change(e, folio_at(e, id), 0, F_MLOCKED);
		return OUT_ACTIVATE;
	}
	switch (e->ops->references(e, sc, id, &ref)) {
	case REFERENCES_ACTIVATE:
		return OUT_ACTIVATE;
	case REFERENCES_KEEP:
		return OUT_KEEP;
	case REFERENCES_RECLAIM_CLEAN:
		*clean_only = true;
		break;
	case REFERENCES_RECLAIM:
		break;
	}
	return OUT_GO_ON;
}

static enum outcome prepare_swap(struct foliage_engine *e, struct scan_control *sc, folio_id id,
				 uint64_t flags)
{
	if (!(flags & F_ANON) || !(flags & F_SWAPBACKED) || flags & F_SWAPCACHE)
		return OUT_GO_ON;
	if (!sc->gfp_io)
		return OUT_KEEP;
	if (!e->backend.add_to_swap || !e->backend.add_to_swap(e->ctx, id))
		return OUT_ACTIVATE;
	folio_change(e, folio_at(e, id), 0, F_SWAPCACHE | F_DIRTY);
	return OUT_GO_ON;
}

static enum outcome write_out(struct foliage_engine *e, struct scan_control *sc, folio_id id,
			      bool clean_only)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	if (!(flags & F_DIRTY))
		return OUT_GO_ON;
	if (!(flags & F_SWAPBACKED)) {
		/* Reclaim never writes file pages: the flusher does, and the end of its I/O brings
		 * the folio to where it is evicted next. */
		folio_change(e, f, 0, F_RECLAIM);
		return OUT_ACTIVATE;
	}
	if (clean_only || !sc->gfp_io || !e->backend.pageout)
		return OUT_KEEP;
	switch (e->backend.pageout(e->ctx, id)) {
	case FOLIAGE_PAGEOUT_KEEP:
		return OUT_KEEP;
	case FOLIAGE_PAGEOUT_ACTIVATE:
		return OUT_ACTIVATE;
	case FOLIAGE_PAGEOUT_STARTED:
		sc->seen.io += (uint64_t)flags_nr(flags);
		flags = folio_flags(f);
		if (flags & (F_WRITEBACK | F_DIRTY)) {
			folio_change(e, f, 0, F_RECLAIM);
			return OUT_KEEP;
		}
		return OUT_GO_ON; /* a synchronous device */
	case FOLIAGE_PAGEOUT_CLEAN:
		sc->seen.io += (uint64_t)flags_nr(flags);
		folio_change(e, f, F_DIRTY, 0);
		return OUT_GO_ON;
	}
	return OUT_KEEP;
}

/* Out of the cache, with a shadow: the non-resident clock and the tier counters move here (A.7,
 * B.7, C.8). */
static enum outcome free_folio(struct foliage_engine *e, struct scan_control *sc, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f), shadow;
	struct lruvec *target;

	if (flags & (F_PINS_MASK | F_DIRTY))
		return OUT_ACTIVATE;
	target = lruvec_of(e, sc->target, e->lruvecs[f->owner].node);
	shadow = e->ops->shadow(e, target, id);
	folio_event(e, id, FOLIAGE_EV_EVICT, FOLIAGE_WHY_COLD, -1, -1, flags, flags);
	if (!engine_release_folio(e, id, false))
		return OUT_ACTIVATE;
	e->backend.evict(e->ctx, id, shadow);
	return OUT_FREED;
}

static enum outcome shrink_folio(struct foliage_engine *e, struct scan_control *sc, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	enum outcome out = OUT_GO_ON;
	bool clean_only = false;

	/* Most folios are clean, unmapped and unpinned file folios: nothing below can hold them but
	 * references. */
	if (__builtin_expect((flags & (F_LOCKED | F_UNEVICTABLE | F_MLOCKED | F_MAPPED |
				       F_WRITEBACK | F_DIRTY | F_SWAPBACKED | F_PINS_MASK)) == 0,
			     1)) {
		if (!sc->ignore_references && !e->ops->references_by_ptes)
			out = check_references(e, sc, id, flags, &clean_only);
		return out == OUT_GO_ON ? free_folio(e, sc, id) : out;
	}
	if (flags & F_LOCKED)
		return OUT_KEEP;
	if (!flags_evictable(flags))
		return OUT_ACTIVATE;
	if (flags & F_MAPPED && !sc->may_unmap)
		return OUT_KEEP;
	if (flags & F_DIRTY && !(flags & F_SWAPBACKED)) {
		sc->seen.unqueued_dirty += !(flags & F_WRITEBACK);
	}
	if (flags & F_WRITEBACK)
		return check_writeback(e, sc, f, flags);
	if (!sc->ignore_references)
		out = check_references(e, sc, id, flags, &clean_only);
	if (out == OUT_GO_ON)
		out = prepare_swap(e, sc, id, flags);
	if (out == OUT_GO_ON && folio_flags(f) & F_MAPPED) {
		if (!e->backend.unmap || !e->backend.unmap(e->ctx, id))
			return OUT_ACTIVATE;
		folio_change(e, f, F_MAPPED, 0);
	}
	if (out == OUT_GO_ON && folio_flags(f) & F_PINS_MASK)
		return OUT_ACTIVATE;
	if (out == OUT_GO_ON)
		out = write_out(e, sc, id, clean_only);
	return out == OUT_GO_ON ? free_folio(e, sc, id) : out;
}

int64_t shrink_folio_list(struct foliage_engine *e, struct scan_control *sc, struct folio_set *set)
{
	const uint64_t taken = set->nr, dirty = sc->seen.unqueued_dirty;
	int64_t freed = 0;
	uint32_t kept = 0;

	if (e->backend.taken)
		e->backend.taken(e->ctx, set->ids, set->nr);
	for (uint32_t i = 0; i < set->nr; i++) {
		folio_id id = set->ids[i];
		uint64_t flags = folio_flags(folio_at(e, id));

		sc->seen.taken++;
		switch (shrink_folio(e, sc, id)) {
		case OUT_FREED:
			freed += flags_nr(flags);
			continue;
		case OUT_ACTIVATE:
			if (flags_evictable(folio_flags(folio_at(e, id)))) {
				folio_change(e, folio_at(e, id), 0, F_ACTIVE);
				stat_add(e, folio_lruvec(e, folio_at(e, id)), STAT_PGACTIVATE,
					 flags_nr(flags));
			}
			break;
		case OUT_KEEP:
		case OUT_GO_ON:
			break;
		}
		folio_event(e, id, FOLIAGE_EV_KEEP, FOLIAGE_WHY_REFERENCED, -1, -1, flags,
			    folio_flags(folio_at(e, id)));
		set->ids[kept++] = id;
	}
	set->nr = kept;
	if (e->backend.given_back)
		e->backend.given_back(e->ctx);
	/* Everything isolated was dirty and nobody writes it: somebody must, before it is met again. */
	if (taken && sc->seen.unqueued_dirty - dirty == taken && e->backend.wake_flusher)
		e->backend.wake_flusher(e->ctx);
	return freed;
}

void putback_folios(struct foliage_engine *e, const struct folio_set *set)
{
	struct lruvec *lv = NULL;
	uint32_t handled = 0;

	for (uint32_t i = 0; i < set->nr; i++) {
		struct folio *f = folio_at(e, set->ids[i]);

		if (!lv || lv != folio_lruvec(e, f)) {
			if (lv)
				lruvec_unlock(e, lv, handled);
			lv = folio_lruvec_lock(e, f);
			handled = 0;
		}
		folio_change(e, f, F_ISOLATED, 0);
		lruvec_add_folio(e, lv, set->ids[i], false);
		handled++;
	}
	if (lv)
		lruvec_unlock(e, lv, handled);
}
