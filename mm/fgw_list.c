/* SPDX-License-Identifier: MIT
 *
 * FG-W's lists: P and the generations of M, the clock that opens generations, the room and P's
 * share of it.
 *
 * The clock ticks as pages come in, `ticks` times while the room turns over once, so that an age
 * says how much has come in since. A hit only stamps a page with the clock; its place on M is
 * mended when reclaim meets it at the tail (fgw_main_tail), and when the window is full the oldest
 * list is spliced onto the next one: no page is touched.
 *
 * The room C is what the lruvec holds when reclaim runs. Before that has ever happened it is the
 * tightest limit above the lruvec, or all of memory.
 */
#include "mm/fgw.h"

#include <errno.h>

/* ---- the room ---- */

/* The first limit that will make reclaim run. */
static uint64_t limit_above(const struct foliage_engine *e, uint32_t memcg)
{
	uint64_t limit = e->totalram_pages;

	for (;; memcg = e->memcgs[memcg].parent) {
		const struct memcg *m = &e->memcgs[memcg];

		limit = MIN(limit, MIN((uint64_t)m->max, (uint64_t)m->high));
		if (memcg == 0)
			return MAX(limit, UINT64_C(1));
	}
}

static uint64_t resident(struct lruvec *lv, unsigned int type)
{
	return counter_size(fgw_size(lv, type, false)) + counter_size(fgw_size(lv, type, true));
}

uint64_t fgw_room(const struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	uint64_t room = atomic_load_explicit(&lv->fgw->type[type].room, memory_order_relaxed);

	if (!room)
		return limit_above(e, lv->memcg);
	/* The room grows before reclaim runs again. */
	return MAX(room, resident(lv, type));
}

uint64_t fgw_room_of_both(struct lruvec *lv)
{
	uint64_t room = 0;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		room += MAX(atomic_load_explicit(&lv->fgw->type[type].room, memory_order_relaxed),
			    resident(lv, type));
	return room;
}

uint64_t fgw_turnover(const struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	const struct fgw_knobs *k = fgw_knobs(e);

	return MAX(fgw_room(e, lv, type), (uint64_t)k->ticks * k->tick_min);
}

static double clamp_target(const struct fgw_knobs *k, double target, uint64_t room)
{
	target = MIN(target, k->target_max * (double)room);
	return MAX(target, MAX(1.0, k->target_min * (double)room));
}

uint64_t fgw_target(const struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	const struct fgw_type *t = &lv->fgw->type[type];
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t room;

	if (t->room)
		return (uint64_t)t->target;
	room = fgw_room(e, lv, type);
	return (uint64_t)clamp_target(k, k->target * (double)room, room);
}

void fgw_set_room(const struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	struct fgw_type *t = &lv->fgw->type[type];
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t room = resident(lv, type);

	if (!room || room == t->room)
		return;
	if (!t->room) {
		t->fill_seq = lv->clock[type];
		t->target = k->target * (double)room;
	} else {
		t->target *= (double)room / (double)t->room;
	}
	t->target = clamp_target(k, t->target, room);
	t->tick = MIN(t->tick, room);
	atomic_store_explicit(&t->room, room,
			      memory_order_relaxed); /* read by refaults without the lock */
}

void fgw_move_target(const struct foliage_engine *e, struct lruvec *lv, unsigned int type,
		     double pages)
{
	struct fgw_type *t = &lv->fgw->type[type];

	if (t->room)
		t->target = clamp_target(fgw_knobs(e), t->target + pages, fgw_room(e, lv, type));
}

/* ---- the clock ---- */

static void open_generation(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	struct fgw_type *t = &lv->fgw->type[type];
	uint64_t clock = fgw_clock(lv, type) + 1;

	atomic_store_explicit(&lv->clock[type], clock, memory_order_release);
	while (clock - t->oldest >= fgw_knobs(e)->gens - 1) {
		list_splice_tail(e, list_head(lv->index, fgw_list_m(type, t->oldest)),
				 list_head(lv->index, fgw_list_m(type, t->oldest + 1)));
		t->oldest++;
	}
	stat_add(e, lv, STAT_AGINGS, 1);
	folio_event(e, -1, FOLIAGE_EV_AGE, FOLIAGE_WHY_NONE, (int64_t)clock - 1, (int64_t)clock, 0,
		    0);
}

void fgw_tick(struct foliage_engine *e, struct lruvec *lv, unsigned int type, int64_t nr)
{
	struct fgw_type *t = &lv->fgw->type[type];
	uint64_t turnover = fgw_turnover(e, lv, type);

	for (t->tick += (uint64_t)nr * fgw_knobs(e)->ticks; t->tick >= turnover;
	     t->tick -= turnover)
		open_generation(e, lv, type);
}

/* ---- the balance of the types ---- */

/* The balance of the types is struck over one window for both, whatever their clocks do: the
 * present counts half, what was before the other half. Windows are measured in pages evicted, for that is
 * what the balance decides on: of the pages that come in many may be freed by their owners and never be
 * reclaimed (a compiler's memory), and a window of those would be over before a few had gone. */
void fgw_pass_window(const struct foliage_engine *e, struct lruvec *lv)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	double room = (double)fgw_room_of_both(lv);
	uint64_t gone = 0;

	for (int type = 0; type < NR_TYPES; type++)
		for (int main = 0; main < 2; main++)
			gone += (uint64_t)counter_read(&lv->fgw->type[type].evicted[main]);
	if ((double)(gone - lv->fgw->window) <
	    MAX(k->balance_window * room, (double)k->balance_min))
		return;
	lv->fgw->window = gone;
	for (int type = 0; type < NR_TYPES; type++) {
		struct fgw_type *t = &lv->fgw->type[type];

		t->spared_before =
			(t->spared_before + (uint64_t)atomic_exchange(&t->spared, 0)) / 2;
	}
}

/* ---- on and off the lists ---- */

static void link_folio(struct foliage_engine *e, struct lruvec *lv, folio_id id, int list,
		       bool tail)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	unsigned int type = flags_type(flags);
	bool main = !fgw_is_p(list);

	/* Generations are spliced without touching pages: every page of M names the same list. */
	folio_set_list(f, main ? fgw_list_m(type, 0) : list);
	if (tail)
		list_add_tail(e, list_head(lv->index, list), id);
	else
		list_add(e, list_head(lv->index, list), id);
	counter_add(e, fgw_size(lv, type, main), flags_nr(flags));
}

void fgw_link_f(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	uint64_t flags = folio_flags(folio_at(e, id));
	unsigned int type = flags_type(flags);

	link_folio(e, lv, id, fgw_list_f(type), false);
	lv->fgw->type[type].fresh += (uint64_t)flags_nr(flags);
}

void fgw_link_p(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool tail)
{
	link_folio(e, lv, id, fgw_list_p(flags_type(folio_flags(folio_at(e, id)))), tail);
}

void fgw_link_m(struct foliage_engine *e, struct lruvec *lv, folio_id id, uint64_t seq)
{
	link_folio(e, lv, id, fgw_list_m(flags_type(folio_flags(folio_at(e, id))), seq), false);
}

void fgw_unlink(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	unsigned int type = fgw_type_of_list(f->list);
	int64_t nr = flags_nr(folio_flags(f));

	list_del(e, id);
	counter_add(e, fgw_size(lv, type, !fgw_is_p(f->list)), -nr);
	if (fgw_is_f(f->list))
		lv->fgw->type[type].fresh -= (uint64_t)nr;
}

uint64_t fgw_seq_of(const struct lruvec *lv, unsigned int type, uint64_t flags)
{
	uint64_t clock = fgw_clock(lv, type), window = clock - lv->fgw->type[type].oldest;

	return clock - MIN(fgw_age(clock, flags), window);
}

folio_id fgw_main_tail(struct foliage_engine *e, struct lruvec *lv, unsigned int type, int *budget)
{
	struct fgw_type *t = &lv->fgw->type[type];
	uint64_t clock = fgw_clock(lv, type);

	for (;;) {
		folio_id head = list_head(lv->index, fgw_list_m(type, t->oldest)),
			 id = list_last(e, head);
		uint64_t flags, age;

		if (id == head) {
			if (t->oldest == clock)
				return FOLIO_NONE;
			t->oldest++;
			continue;
		}
		flags = folio_flags(folio_at(e, id));
		age = fgw_age(clock, flags);
		if (age >= clock - t->oldest || *budget <= 0)
			return id;
		--*budget;
		list_del(e, id);
		list_add(e, list_head(lv->index, fgw_list_m(type, clock - age)), id);
		stat_add(e, lv, STAT_PROMOTED, flags_nr(flags));
		folio_event(e, id, FOLIAGE_EV_SORT, FOLIAGE_WHY_LAZY, (int64_t)t->oldest,
			    (int64_t)(clock - age), flags, flags);
	}
}

/* ---- validity ---- */

/* NULL, or what is wrong with a folio found on a list. */
static const char *defect(const struct foliage_engine *e, const struct lruvec *lv,
			  unsigned int type, int list, folio_id id, folio_id prev)
{
	bool main = !fgw_is_p(list);
	const struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	if (f->prev != prev)
		return "its link back is wrong";
	if ((flags & (F_PRESENT | F_LRU)) != (F_PRESENT | F_LRU))
		return "it is not present, or not marked as listed";
	if (flags & (F_ISOLATED | F_ACTIVE | F_UNEVICTABLE))
		return "it is isolated, active or unevictable";
	if (flags_type(flags) != type || fgw_type_of_list(f->list) != type ||
	    fgw_is_p(f->list) == main || fgw_is_f(f->list) != fgw_is_f(list))
		return "it believes to be on another list";
	if (folio_lruvec(e, f) != lv)
		return "it belongs to another lruvec";
	return flags_fg_refs(flags) > fgw_knobs(e)->refs_max ? "it has too many refs" : NULL;
}

static int check_list(struct foliage_engine *e, struct lruvec *lv, unsigned int type, int list,
		      int64_t *pages, struct err *err)
{
	folio_id head = list_head(lv->index, list);
	bool main = !fgw_is_p(list);
	int64_t most = counter_read(fgw_size(lv, type, main));

	for (folio_id id = list_first(e, head), prev = head; id != head;
	     prev = id, id = folio_at(e, id)->next) {
		const char *what = id < 0 || (uint32_t)id >= e->nr_folios
					   ? "it is no folio"
					   : defect(e, lv, type, list, id, prev);

		if (what)
			return err_set(err, -EUCLEAN, "lruvec %u, list %d, folio %d: %s", lv->index,
				       list, id, what);
		*pages += flags_nr(folio_flags(folio_at(e, id)));
		if (*pages > most)
			return err_set(
				err, -EUCLEAN,
				"lruvec %u, list %d: more than the %lld pages of the counter",
				lv->index, list, (long long)most);
	}
	return 0;
}

static int check_window(const struct foliage_engine *e, const struct lruvec *lv, unsigned int type,
			struct err *err)
{
	uint64_t clock = fgw_clock(lv, type), oldest = lv->fgw->type[type].oldest;

	if (clock - oldest >= fgw_knobs(e)->gens)
		return err_set(err, -EUCLEAN, "lruvec %u: generations %llu..%llu of type %u",
			       lv->index, (unsigned long long)oldest, (unsigned long long)clock,
			       type);
	for (uint64_t seq = clock + 1; seq < oldest + FGW_GENS; seq++)
		if (!list_empty(e, list_head(lv->index, fgw_list_m(type, seq))))
			return err_set(err, -EUCLEAN,
				       "lruvec %u: list %d is outside the generations %llu..%llu",
				       lv->index, fgw_list_m(type, seq), (unsigned long long)oldest,
				       (unsigned long long)clock);
	return 0;
}

int fgw_is_valid(struct foliage_engine *e, struct lruvec *lv, struct err *err)
{
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		int64_t pages[2] = {0};
		int rc = check_window(e, lv, type, err);

		if (!rc)
			rc = check_list(e, lv, type, fgw_list_f(type), &pages[false], err);
		if (!rc && (uint64_t)pages[false] != lv->fgw->type[type].fresh)
			rc = err_set(err, -EUCLEAN,
				     "lruvec %u, type %u: F has %lld pages, the counter %llu",
				     lv->index, type, (long long)pages[false],
				     (unsigned long long)lv->fgw->type[type].fresh);
		for (int list = fgw_list_p(type); list <= fgw_list_p(type) + FGW_GENS && !rc;
		     list++)
			rc = check_list(e, lv, type, list, &pages[!fgw_is_p(list)], err);
		if (rc)
			return rc;
		for (int main = 0; main < 2; main++)
			if (pages[main] != counter_read(fgw_size(lv, type, main)))
				return err_set(
					err, -EUCLEAN,
					"lruvec %u, type %u: %s has %lld pages, the counter %lld",
					lv->index, type, main ? "M" : "P", (long long)pages[main],
					(long long)counter_read(fgw_size(lv, type, main)));
	}
	return 0;
}
