/* SPDX-License-Identifier: MIT
 *
 * FG-W's reclaim (rule 6): P gives first while it is above its target, else M's true tail. A page
 * with refs left goes on to M, or once more round it; the others are isolated and freed.
 *
 * One lock section looks at no more than FGW_EXAMINE_MAX folios, lazy moves included.
 */
#include "mm/fgw.h"
#include "mm/gen.h"
#include "mm/walk.h"

struct scan {
	unsigned int type;
	int budget;     /* folios that may still be looked at */
	int64_t pages;  /* isolated */
	bool main;      /* P's pages cannot go: M gives, whatever P's size is */
	uint32_t fresh; /* isolated from F, to have their young bits cleared */
	bool unusable;  /* met some that this request may not free */
	uint64_t stale; /* ticks without use after which M gives first; 0: never */
	struct folio_set *out;
};

/* ---- one folio ---- */

/* May this request free it? */
static bool usable(const struct scan_control *sc, uint64_t flags)
{
	if (flags_zone(flags) > sc->reclaim_idx)
		return false;
	return sc->gfp_io || flags_type(flags) == TYPE_FILE ||
	       (flags & (F_SWAPCACHE | F_DIRTY)) == F_SWAPCACHE;
}

static unsigned int next_round(const struct fgw_knobs *k, unsigned int refs)
{
	switch ((enum fgw_chance)k->chance) {
	case FGW_CHANCE_HALVE:
		return refs / 2;
	case FGW_CHANCE_DECREMENT:
		return refs - 1;
	case FGW_CHANCE_CLEAR:
	case FGW_CHANCE_NONE:
		break;
	}
	return 0;
}

/* A page with refs left pays for staying; false when it has none, and then it is isolated. */
static bool pay_or_isolate(struct foliage_engine *e, folio_id id, bool main, uint64_t *flags)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	bool pays;

	do {
		unsigned int refs = flags_fg_refs(old);

		pays = refs && flags_evictable(old) && !(main && k->chance == FGW_CHANCE_NONE);
		if (pays)
			new = flags_with_fg_refs(old, main ? next_round(k, refs) : 0);
		else
			new = ((old & ~F_LRU) | F_ISOLATED) + F_VERSION_ONE;
	} while (!folio_cas(e, f, &old, new));
	*flags = old;
	return pays;
}

static void examine(struct foliage_engine *e, struct lruvec *lv, const struct scan_control *sc,
		    struct scan *s, folio_id id, bool main)
{
	uint64_t clock = fgw_clock(lv, s->type), flags = folio_flags(folio_at(e, id)), seq;

	s->budget--;
	if (flags_evictable(flags) && !usable(sc, flags)) {
		s->unusable = true;
		fgw_unlink(e, lv, id);
		if (main)
			fgw_link_m(e, lv, id, clock);
		else
			fgw_link_p(e, lv, id, false);
		return;
	}
	if (!pay_or_isolate(e, id, main, &flags)) {
		fgw_unlink(e, lv, id);
		s->out->ids[s->out->nr++] = id;
		s->pages += flags_nr(flags);
		return;
	}
	seq = main ? clock : fgw_seq_of(lv, s->type, flags);
	fgw_unlink(e, lv, id);
	fgw_link_m(e, lv, id, seq);
	stat_add(e, lv, main ? STAT_PROTECTED : STAT_PROMOTED, flags_nr(flags));
	folio_event(e, id, FOLIAGE_EV_MOVE,
		    main ? FOLIAGE_WHY_SECOND_CHANCE : FOLIAGE_WHY_PROBATION,
		    main ? (int64_t)lv->fgw->type[s->type].oldest : -1, (int64_t)seq, flags,
		    folio_flags(folio_at(e, id)));
}

/* ---- one lock section ---- */

/* M's true tail, if it is M's turn: P is within its target, or empty, or the tail has not been used
 * for so long that P may have it (a first fill of junk, a working set that is gone). */
static folio_id main_victim(struct foliage_engine *e, struct lruvec *lv, struct scan *s)
{
	uint64_t probation = counter_size(fgw_size(lv, s->type, false)),
		 clock = fgw_clock(lv, s->type);
	folio_id tail;

	bool turn = s->main || probation <= fgw_target(e, lv, s->type);

	if (!turn && !s->stale)
		return FOLIO_NONE;
	tail = fgw_main_tail(e, lv, s->type, &s->budget);
	if (turn || tail == FOLIO_NONE)
		return tail;
	return fgw_age(clock, folio_flags(folio_at(e, tail))) >= s->stale ? tail : FOLIO_NONE;
}

/* A page that a fault brought in leaves F: the young bit of that fault is cleared, outside the lock,
 * so that at P's tail a young bit is an access. One whose fault was seen already goes on. */
static void examine_fresh(struct foliage_engine *e, struct lruvec *lv, struct scan *s, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), pending = F_MAPPED | F_READAHEAD;

	s->budget--;
	fgw_unlink(e, lv, id);
	if ((old & pending) != pending || !flags_evictable(old)) {
		fgw_link_p(e, lv, id, false);
		return;
	}
	while (!folio_cas(e, f, &old, ((old & ~F_LRU) | F_ISOLATED) + F_VERSION_ONE))
		;
	s->out->ids[s->out->nr++] = id;
	s->fresh++;
}

static folio_id probation_victim(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
				 bool *fresh)
{
	uint64_t limit = (uint64_t)(fgw_knobs(e)->fresh * (double)fgw_target(e, lv, type));
	folio_id head = list_head(lv->index, fgw_list_p(type)), id = list_last(e, head);

	*fresh = lv->fgw->type[type].fresh > limit || id == head;
	if (!*fresh)
		return id;
	head = list_head(lv->index, fgw_list_f(type));
	return list_last(e, head);
}

static bool examine_next(struct foliage_engine *e, struct lruvec *lv, const struct scan_control *sc,
			 struct scan *s)
{
	folio_id id = main_victim(e, lv, s);
	bool main = id != FOLIO_NONE, fresh = false;

	if (!main) {
		id = probation_victim(e, lv, s->type, &fresh);
		if (id < 0)
			return false;
		__builtin_prefetch(folio_at(e, folio_at(e, id)->prev));
	}
	if (s->budget <= 0)
		return false;
	if (fresh)
		examine_fresh(e, lv, s, id);
	else
		examine(e, lv, sc, s, id, main);
	return true;
}

/* Returns how many folios were looked at. */
static int isolate(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		   struct scan *s, int64_t want)
{
	int budget = s->budget;

	while (s->budget > 0 && s->pages < want && examine_next(e, lv, sc, s))
		;
	stat_add(e, lv, s->type == TYPE_ANON ? STAT_PGSCAN_ANON : STAT_PGSCAN_FILE, s->pages);
	sc->nr_scanned += s->pages;
	return budget - s->budget;
}

static uint64_t spared(const struct fgw_type *t)
{
	return t->spared_before + counter_size(&t->spared);
}

/* A little more room for the type that would spare more refaults by it, weighted by what they cost:
 * the other one is scanned. File while its refaults are too few to tell. */
static unsigned int type_to_scan(const struct foliage_engine *e, const struct lruvec *lv,
				 int swappiness)
{
	uint64_t file = spared(&lv->fgw->type[TYPE_FILE]), anon = spared(&lv->fgw->type[TYPE_ANON]),
		 cost = fgw_knobs(e)->balance_cost;

	if (swappiness == 0)
		return TYPE_FILE;
	if (swappiness >= SWAPPINESS_ANON_ONLY)
		return TYPE_ANON;
	if (file < MIN_LRU_BATCH)
		return TYPE_FILE;
	return file * ((uint64_t)swappiness + cost) <=
			       (anon + 1) * (200 - (uint64_t)swappiness + cost)
		       ? TYPE_FILE
		       : TYPE_ANON;
}

/* ---- survivors ---- */

enum references fgw_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
			       const struct referenced *ref)
{
	struct folio *f = folio_at(e, id);
	struct lruvec *lv = folio_lruvec(e, f);
	uint64_t old = folio_flags(f);
	unsigned int refs, type = flags_type(old);
	const struct fgw_knobs *k = fgw_knobs(e);

	(void)sc;
	if (ref->contended)
		return REFERENCES_KEEP;
	/* Young now, or hit since it was isolated. */
	if (ref->ptes)
		fgw_count(e, lv, id, old,
			  ref->exec && type == TYPE_FILE ? k->exec_refs : k->young_refs,
			  FOLIAGE_WHY_YOUNG);
	if (fgw_is_f(f->list))
		return REFERENCES_KEEP;
	old = folio_flags(f);
	refs = flags_fg_refs(old);
	if (!refs || (k->chance == FGW_CHANCE_NONE && !ref->ptes && !fgw_is_p(f->list)))
		return REFERENCES_RECLAIM;
	/* Leaving P costs the refs, as it does when reclaim finds them there. */
	if (fgw_is_p(f->list))
		while (!folio_cas(e, f, &old, flags_with_fg_refs(old, 0)))
			;
	return REFERENCES_ACTIVATE;
}

/* Pages that cannot go: being read, dirty, under write-back, not for this request. A batch that held
 * pages and freed none makes M of the type give next, and if that is no better, the other type; but not
 * when I/O was started or is on its way: swapping out frees a page at its end, and the type that was
 * chosen is the one that can be spared. */
enum stuck { STUCK_NOT, STUCK_P, STUCK_TYPE };

/* What one pass over an lruvec remembers from batch to batch. */
struct pass {
	int swappiness;
	int64_t left;
	enum stuck stuck[NR_TYPES];
};

static unsigned int type_of_batch(const struct foliage_engine *e, const struct lruvec *lv,
				  const struct pass *p)
{
	unsigned int type = type_to_scan(e, lv, p->swappiness);

	if (p->stuck[type] == STUCK_TYPE && p->stuck[!type] != STUCK_TYPE &&
	    type_evictable(!type, p->swappiness))
		return !type;
	return type;
}

static void note_batch(struct pass *p, unsigned int type, bool fruitless, bool waiting)
{
	if (!fruitless)
		p->stuck[type] = STUCK_NOT;
	else if (p->stuck[type] == STUCK_NOT)
		p->stuck[type] = STUCK_P;
	else if (waiting)
		return;
	else if (p->stuck[type] == STUCK_P)
		p->stuck[type] = STUCK_TYPE;
	else /* both have been tried */
		p->stuck[TYPE_ANON] = p->stuck[TYPE_FILE] = STUCK_NOT;
}

/* One batch of a type. Returns folios looked at, 0: nothing left. *waits: pages, all of them under write-back. */
static int evict_type(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		      struct pass *p, unsigned int type, bool *waits)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	struct folio_set set = {0};
	int64_t want = MIN(MAX(sc->nr_to_reclaim - sc->nr_reclaimed, INT64_C(1)),
			   (int64_t)sc->batch),
		freed = 0;
	struct scan s = {
		.type = type,
		.main = p->stuck[type] == STUCK_P,
		.budget = (int)MIN(p->left, (int64_t)FGW_EXAMINE_MAX),
		.stale = (uint64_t)(k->stale * k->ticks),
		.out = &set,
	};
	const uint64_t io = sc->seen.io, writeback = sc->seen.writeback;
	uint64_t taken;
	int looked;

	lruvec_lock(e, lv);
	looked = isolate(e, lv, sc, &s, want);
	lruvec_unlock(e, lv, (uint32_t)looked);
	taken = set.nr;
	if (taken)
		freed = shrink_folio_list(e, sc, &set);
	*waits = taken && sc->seen.writeback - writeback == taken;
	if (looked)
		note_batch(p, type, !freed && (set.nr > s.fresh || s.unusable),
			   sc->seen.io + sc->seen.writeback > io + writeback);
	if (set.nr)
		putback_folios(e, &set);
	stat_add(e, lv, type == TYPE_ANON ? STAT_PGSTEAL_ANON : STAT_PGSTEAL_FILE, freed);
	sc->nr_reclaimed += freed;
	return looked;
}

/* One batch of the type that can be spared; of the other one when this one has nothing. Files that are all on their
 * way to the device are followed by a batch of anonymous memory: a pass over nothing but such pages
 * would make the reclaimer wait for them. */
static int evict(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		 struct pass *p)
{
	unsigned int type;
	bool waits;
	int looked;

	lruvec_lock(e, lv);
	fgw_pass_window(e, lv);
	type = type_of_batch(e, lv, p);
	lruvec_unlock(e, lv, 0);
	looked = evict_type(e, lv, sc, p, type, &waits);
	if ((!looked || (waits && type == TYPE_FILE)) && type_evictable(!type, p->swappiness))
		looked += evict_type(e, lv, sc, p, !type, &waits);
	return looked;
}

/* ---- one lruvec ---- */

static void walk_page_tables(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			     int swappiness)
{
	uint64_t clocks = fgw_clock(lv, TYPE_ANON) + fgw_clock(lv, TYPE_FILE),
		 seq = gen_max_seq(lv);
	bool due;

	if (!fgw_knobs(e)->walk_every || !(e->caps & FOLIAGE_LRU_GEN_MM_WALK) ||
	    !e->backend.next_mapping)
		return;
	lruvec_lock(e, lv);
	due = clocks - lv->fgw->walked >= fgw_knobs(e)->walk_every;
	if (due)
		lv->fgw->walked = clocks;
	lruvec_unlock(e, lv, 0);
	if (due && walk_mms(e, lv, sc, seq, swappiness, false))
		atomic_store_explicit(&lv->gen.max_seq, seq + 1, memory_order_release);
}

static bool should_abort(const struct foliage_engine *e, const struct scan_control *sc)
{
	const struct node *node = &e->nodes[sc->node];

	if (!sc->root_reclaim && !sc->proactive && !fgw_knobs(e)->memcg_abort)
		return false;
	if (sc->nr_reclaimed >= sc->nr_to_reclaim)
		return true;
	return sc->kswapd && node->high_watermark &&
	       node->free_pages >= node->high_watermark + MIN_LRU_BATCH;
}

static uint64_t start(struct foliage_engine *e, struct lruvec *lv, int swappiness)
{
	uint64_t total = 0;

	lruvec_lock(e, lv);
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		fgw_set_room(e, lv, type);
		if (type_evictable(type, swappiness))
			total += e->ops->size(e, lv, type);
	}
	lruvec_unlock(e, lv, 0);
	return total;
}

bool fgw_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	int swappiness = get_swappiness(e, lv, sc);
	struct pass p = {.swappiness = fgw_knobs(e)->noio ? scan_swappiness(e, lv, sc, swappiness)
							  : swappiness};
	uint64_t total;

	if (swappiness == SWAPPINESS_ANON_ONLY && !can_reclaim_anon(e, lv->memcg, sc))
		return false;
	total = memcg_protect_scan(e, sc, lv->memcg, start(e, lv, p.swappiness));
	p.left = (int64_t)(e->memcgs[lv->memcg].online ? scaled_budget(e, total, sc->priority)
						       : total);
	if (p.left > 0)
		walk_page_tables(e, lv, sc, swappiness);
	while (p.left > 0) {
		int looked;

		if (memcg_below_min(e, sc->target, lv->memcg))
			return true;
		looked = evict(e, lv, sc, &p);
		if (!looked || should_abort(e, sc))
			break;
		p.left -= looked;
		engine_yield(e);
	}
	return false;
}
