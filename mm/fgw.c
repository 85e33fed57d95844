/* SPDX-License-Identifier: MIT
 *
 * FG-W: accesses, coming and going, and the policy's table of operations and knobs. mm/fgw.h draws
 * the picture.
 *
 * A hit compares the page's stamp with the clock and, once a tick, counts: one compare-exchange of
 * the flag word, no list, no lock, no shared counter. Everything else happens when pages come in or
 * reclaim runs, under the lruvec's lock.
 *
 * What a new page is worth is decided when it reaches its first list: the shadow waits in the
 * page's own link, which is not in use yet, because the decision looks at M's tail.
 *
 * The time field of a shadow (36 bits):
 *
 *     35 | 34 .. 27 | 26 ........ 8 | 7 ...... 0
 *      q | stamp    | clock         | own
 *
 *   q      evicted from M
 *   stamp  generation of the last counted access
 *   clock  generation at eviction
 *   own    pages evicted from the same list until then, in units of about C/64
 */
#include "mm/engine_policies.h"
#include "mm/fgw.h"
#include "mm/gen.h"
#include "mm/shadow.h"
#include "mm/walk.h"

#include <errno.h>
#include <stdlib.h>

enum {
	OWN_BITS = 8,
	CLOCK_SHIFT = 8,
	CLOCK_BITS = 19,
	STAMP_SHIFT = 27,
	MAIN_SHIFT = 35,
	UNITS = 64, /* of the own counter, in a room */
	CLOCK_START = FGW_GENS,
};

/* What waits in a new folio, in folio.spare. A folio that left its batch for good leaves the mark
 * behind, and fgw_queue() makes it good when the folio is next used. */
enum arrival { ARRIVAL_NONE, ARRIVAL_NEW, ARRIVAL_REFAULT, ARRIVAL_SHADOW };
enum { ARRIVAL_FAULT = 4 }; /* beside the others: a fault brought it in */

/* ---- accesses ---- */

static inline __attribute__((always_inline)) void
fgw_mark(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id, uint64_t flags)
{
	(void)cpu;
	fgw_count(e, folio_lruvec(e, folio_at(e, id)), id, flags, 1, FOLIAGE_WHY_COUNT);
}

static void fgw_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	fgw_mark(e, cpu, id, folio_flags(folio_at(e, id)));
}

static size_t fgw_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			   size_t n)
{
	return gen_mark_run(e, cpu, ids, n, fgw_mark);
}

static void fgw_walk_young(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool exec)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t flags = folio_flags(folio_at(e, id));

	exec = exec && flags_type(flags) == TYPE_FILE;
	fgw_count(e, lv, id, flags, exec ? k->exec_refs : k->young_refs, FOLIAGE_WHY_YOUNG);
}

static void fgw_neighbour_young(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
				bool exec)
{
	(void)cpu;
	fgw_walk_young(e, folio_lruvec(e, folio_at(e, id)), id, exec);
}

/* ---- shadows ---- */

/* The own counter counts in the largest power of two up to C / 64. */
static unsigned int own_shift(uint64_t room)
{
	return room < 2 * UNITS ? 0 : fls64(room / UNITS) - 1;
}

static uint64_t fgw_shadow(struct foliage_engine *e, struct lruvec *target, folio_id id)
{
	struct folio *f = folio_at(e, id);
	struct lruvec *lv = folio_lruvec(e, f);
	uint64_t flags = folio_flags(f), time, own;
	unsigned int type = flags_type(flags);
	struct fgw_type *t = &lv->fgw->type[type];
	uint64_t clock = fgw_clock(lv, type);
	bool main = !fgw_is_p(f->list);

	/* Never used: that it is wanted again says nothing about how soon. Long expired. */
	if (flags & F_READAHEAD)
		clock -= UINT64_C(1) << (CLOCK_BITS - 1);
	(void)target; /* the memcg id is the folio's own */
	own = (uint64_t)counter_read(&t->evicted[main]) >> own_shift(fgw_room(e, lv, type));
	counter_add(e, &t->evicted[main], flags_nr(flags));
	time = own & ((1u << OWN_BITS) - 1);
	time |= (clock & ((1u << CLOCK_BITS) - 1)) << CLOCK_SHIFT;
	time |= (flags & F_GEN_MASK) << STAMP_SHIFT | (uint64_t)main << MAIN_SHIFT;
	return shadow_pack(e->memcgs[lv->memcg].id, lv->node, time & SHADOW_TIME_MASK, false);
}

static bool shadow_valid(const struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			 uint64_t time)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t since = (fgw_clock(lv, type) - (time >> CLOCK_SHIFT)) & ((1u << CLOCK_BITS) - 1);

	return (double)(since * fgw_turnover(e, lv, type)) <=
	       k->history * k->ticks * (double)fgw_room(e, lv, type);
}

/* Had the type had a little more of what both types share, the page would not have been away. The
 * reach is the same number of pages for both types, and a shadow that is too old for anything else
 * still counts: a type squeezed to nothing must be able to come back. */
static bool would_be_spared(const struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			    uint64_t time)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	double since = (double)((fgw_clock(lv, type) - (time >> CLOCK_SHIFT)) &
				((1u << CLOCK_BITS) - 1)),
	       room = (double)fgw_room_of_both(lv);

	return since * (double)fgw_turnover(e, lv, type) <= k->balance * k->ticks * room;
}

/* What the first list needs of a shadow's time. */
static uint32_t pack_link(uint64_t time)
{
	return (uint32_t)(time >> STAMP_SHIFT) << OWN_BITS |
	       (uint32_t)(time & ((1u << OWN_BITS) - 1));
}

/* Was it evicted from M? */
static bool link_of_main(uint32_t link)
{
	return link >> (OWN_BITS + MAIN_SHIFT - STAMP_SHIFT) & 1;
}

/* Read without a lock by fgw_workingset(). */
static void set_arrival(struct folio *f, unsigned int arrival)
{
	__atomic_store_n(&f->spare, (uint16_t)arrival, __ATOMIC_RELAXED);
}

static void fgw_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			folio_id id, uint64_t shadow)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f), time = shadow_time(shadow);
	unsigned int type = flags_type(flags);
	bool mine = shadow_lruvec(e, shadow) == lv,
	     recent = mine && shadow_valid(e, lv, type, time);

	(void)cpu;
	if (mine) {
		stat_add(e, lv, type == TYPE_ANON ? STAT_REFAULT_ANON : STAT_REFAULT_FILE,
			 flags_nr(flags));
		if (!recent)
			stat_add(e, lv, STAT_REFAULT_STALE, flags_nr(flags));
	}
	folio_event(e, id, FOLIAGE_EV_REFAULT, recent ? FOLIAGE_WHY_RECENT : FOLIAGE_WHY_STALE, -1,
		    -1, 0, 0);
	if (mine && would_be_spared(e, lv, type, time))
		counter_add(e, &lv->fgw->type[type].spared, flags_nr(flags));
	if (!recent)
		return;
	__atomic_store_n(&f->prev, (folio_id)pack_link(time), __ATOMIC_RELAXED);
	set_arrival(f, ARRIVAL_SHADOW);
}

/* ---- coming in ---- */

static void fgw_queue(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f), set;

	set_arrival(f, (f->spare == ARRIVAL_SHADOW ? ARRIVAL_REFAULT : ARRIVAL_NEW) |
			       (cpu->in_lru_fault ? ARRIVAL_FAULT : 0u));
	set = fgw_clock(folio_lruvec(e, f), flags_type(flags)) & F_GEN_MASK;
	if (fgw_knobs(e)->born)
		set |= F_READAHEAD;
	folio_change(e, f, F_GEN_MASK, set);
}

/* Is M's tail what the first fill left there, never used? */
static bool unused_fill(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	const struct fgw_type *t = &lv->fgw->type[type];
	uint64_t clock = fgw_clock(lv, type), flags;
	int budget = (int)fgw_knobs(e)->gate_scan;
	folio_id tail = fgw_main_tail(e, lv, type, &budget);

	if (tail == FOLIO_NONE || clock - t->fill_seq > F_GEN_MASK)
		return false;
	flags = folio_flags(folio_at(e, tail));
	return !flags_fg_refs(flags) && fgw_age(clock, flags) >= clock - t->fill_seq;
}

/* Rule 3: had its list been a little longer, the page would have been there. */
static void adapt(struct foliage_engine *e, struct lruvec *lv, unsigned int type, uint32_t link)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	struct fgw_type *t = &lv->fgw->type[type];
	uint64_t room = fgw_room(e, lv, type), own = link & ((1u << OWN_BITS) - 1), now;
	unsigned int shift = own_shift(room);
	bool main = link_of_main(link);
	double distance, step = k->step;

	now = (uint64_t)counter_read(&t->evicted[main]) >> shift;
	/* Half a unit is what both ends were rounded down by. */
	distance = (double)((now - own) & ((1u << OWN_BITS) - 1)) + 0.5;
	if (distance * (double)(UINT64_C(1) << shift) >= k->near * (double)room)
		return;
	if (k->fill_factor > 1 && unused_fill(e, lv, type))
		step *= k->fill_factor;
	fgw_move_target(e, lv, type, main ? -step : step);
}

/* Rule 4: was it last used more recently than M's tail, give or take the factor? */
static bool gate(struct foliage_engine *e, struct lruvec *lv, unsigned int type, uint32_t link)
{
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t clock = fgw_clock(lv, type), reach;
	int budget = (int)k->gate_scan;
	folio_id tail;

	if (k->gate <= 0)
		return true;
	tail = fgw_main_tail(e, lv, type, &budget);
	if (tail == FOLIO_NONE)
		return true;
	reach = MAX(fgw_age(clock, folio_flags(folio_at(e, tail))),
		    clock - lv->fgw->type[type].oldest);
	return (double)fgw_age(clock, link >> OWN_BITS) <= k->gate * (double)reach;
}

/* Rule 2: as long as the room has never been full, M is filled before P. */
static bool first_fill(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	uint64_t resident = 0;

	if (lv->fgw->type[type].room || !fgw_knobs(e)->first_fill)
		return false;
	for (int i = LIST_INACTIVE_ANON; i <= LIST_ACTIVE_FILE; i++)
		resident += counter_size(&lv->clru.size[i]);
	return resident + fgw_target(e, lv, type) <= fgw_room(e, lv, type);
}

static bool goes_to_main(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			 uint64_t flags, enum arrival arrival, uint32_t link)
{
	bool main = flags & F_ACTIVE;

	if (arrival == ARRIVAL_REFAULT) {
		adapt(e, lv, type, link);
		if (gate(e, lv, type, link)) {
			stat_add(e, lv, type == TYPE_ANON ? STAT_ACTIVATE_ANON : STAT_ACTIVATE_FILE,
				 flags_nr(flags));
			main = true;
		}
	} else if (arrival == ARRIVAL_NEW) {
		main |= first_fill(e, lv, type);
	}
	return main;
}

static void fgw_add(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming)
{
	struct folio *f = folio_at(e, id);
	bool faulted = f->spare & ARRIVAL_FAULT;
	enum arrival arrival = f->spare & (ARRIVAL_FAULT - 1);
	uint32_t link = (uint32_t)f->prev;
	uint64_t old = folio_change(e, f, F_ISOLATED | F_ACTIVE, F_LRU);
	unsigned int type = flags_type(old);
	bool main;

	set_arrival(f, ARRIVAL_NONE);
	main = !reclaiming && goes_to_main(e, lv, type, old, arrival, link);
	if (main)
		fgw_link_m(e, lv, id, fgw_clock(lv, type));
	else if (faulted && old & F_READAHEAD && !reclaiming && fgw_knobs(e)->fresh > 0)
		fgw_link_f(e, lv, id);
	else
		fgw_link_p(e, lv, id, reclaiming);
	folio_event(e, id, FOLIAGE_EV_ADD, main ? FOLIAGE_WHY_PLACE : FOLIAGE_WHY_PROBATION, -1,
		    main ? (int64_t)fgw_clock(lv, type) : -1, old, old);
	if (arrival != ARRIVAL_NONE)
		fgw_tick(e, lv, type, flags_nr(old));
}

/* A page of M, or one on its way to a list that M had to give up not long ago. */
static bool fgw_workingset(const struct foliage_engine *e, folio_id id)
{
	struct folio *f = folio_at(e, id);

	if (folio_flags(f) & (F_LRU | F_ISOLATED))
		return !fgw_is_p(__atomic_load_n(&f->list, __ATOMIC_RELAXED));
	if ((__atomic_load_n(&f->spare, __ATOMIC_RELAXED) & (ARRIVAL_FAULT - 1)) < ARRIVAL_REFAULT)
		return false;
	return link_of_main((uint32_t)__atomic_load_n(&f->prev, __ATOMIC_RELAXED));
}

/* ---- going ---- */

static void fgw_del(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f);

	while (!folio_cas(e, f, &old, (old & ~F_LRU) + F_VERSION_ONE))
		;
	fgw_unlink(e, lv, id);
}

static void fgw_activate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	fgw_unlink(e, lv, id);
	fgw_link_m(e, lv, id, fgw_clock(lv, flags_type(flags)));
	stat_add(e, lv, STAT_PGACTIVATE, flags_nr(flags));
}

/* Cold on request: next to go. */
static void fgw_deactivate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	uint64_t old = folio_change(e, folio_at(e, id), F_REFS_MASK, 0);

	fgw_unlink(e, lv, id);
	fgw_link_p(e, lv, id, true);
	stat_add(e, lv, STAT_PGDEACTIVATE, flags_nr(old));
}

/* ---- life ---- */

static int fgw_prepare(struct foliage_engine *e, struct lruvec *lv)
{
	(void)e;
	if (!lv->fgw)
		lv->fgw = malloc(sizeof(*lv->fgw));
	return lv->fgw ? 0 : -ENOMEM;
}

static void fgw_init(struct foliage_engine *e, struct lruvec *lv)
{
	*lv->fgw = (struct fgw_state){0};
	for (int type = 0; type < NR_TYPES; type++) {
		lv->fgw->type[type].oldest = CLOCK_START;
		atomic_store(&lv->clock[type], CLOCK_START);
	}
	lv->fgw->walked = NR_TYPES * CLOCK_START;
	/* Only page-table walks use the multi-gen clock here. */
	atomic_store(&lv->gen.max_seq, MIN_NR_GENS + 1);
	walk_reset(e, lv);
}

static void fgw_fini(struct foliage_engine *e, struct lruvec *lv)
{
	(void)e;
	free(lv->fgw);
	lv->fgw = NULL;
}

static void splice(struct foliage_engine *e, struct lruvec *child, int from, struct lruvec *parent,
		   int to)
{
	list_splice_tail(e, list_head(child->index, from), list_head(parent->index, to));
}

/* Each list goes behind the parent's list of the same age, or the oldest there is. Stamps keep the
 * child's clock until the next hit: wrong by a constant, which may cost or spare a page one round.
 */
static void fgw_reparent(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent)
{
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		uint64_t clock = fgw_clock(child, type), at = fgw_clock(parent, type);
		uint64_t window = at - parent->fgw->type[type].oldest;

		splice(e, child, fgw_list_f(type), parent, fgw_list_f(type));
		parent->fgw->type[type].fresh += child->fgw->type[type].fresh;
		child->fgw->type[type].fresh = 0;
		splice(e, child, fgw_list_p(type), parent, fgw_list_p(type));
		for (uint64_t seq = clock;; seq--) {
			splice(e, child, fgw_list_m(type, seq), parent,
			       fgw_list_m(type, at - MIN(clock - seq, window)));
			if (seq == child->fgw->type[type].oldest)
				break;
		}
		child->fgw->type[type].oldest = clock;
		for (int main = 0; main < 2; main++) {
			counter_add(e, fgw_size(parent, type, main),
				    counter_read(fgw_size(child, type, main)));
			atomic_store(fgw_size(child, type, main), 0);
		}
	}
}

static folio_id hottest(const struct foliage_engine *e, struct lruvec *lv, bool *active)
{
	*active = true;
	for (uint64_t age = 0; age < FGW_GENS; age++)
		for (unsigned int type = 0; type < NR_TYPES; type++) {
			folio_id head =
				list_head(lv->index, fgw_list_m(type, fgw_clock(lv, type) - age));

			if (!list_empty(e, head))
				return list_first(e, head);
		}
	*active = false;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		for (int list = fgw_list_f(type); list <= fgw_list_p(type); list++)
			if (!list_empty(e, list_head(lv->index, list)))
				return list_first(e, list_head(lv->index, list));
	return FOLIO_NONE;
}

static folio_id fgw_drain_next(struct foliage_engine *e, struct lruvec *lv, bool *active)
{
	folio_id id = hottest(e, lv, active);

	/* The stamp means nothing to another policy. */
	if (id != FOLIO_NONE)
		folio_change(e, folio_at(e, id), F_GEN_MASK | F_READAHEAD, 0);
	return id;
}

static uint64_t fgw_type_size(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	(void)e;
	return counter_size(fgw_size(lv, type, false)) + counter_size(fgw_size(lv, type, true));
}

static uint64_t fgw_active(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	(void)e;
	return counter_size(fgw_size(lv, type, true));
}

static const struct foliage_engine_policy fgw_ops = {
	.mark_accessed = fgw_mark_accessed,
	.mark_run = fgw_mark_run,
	.neighbour_young = fgw_neighbour_young,
	.walk_young = fgw_walk_young,
	.refault = fgw_refault,
	.queue = fgw_queue,
	.shadow = fgw_shadow,
	.add = fgw_add,
	.del = fgw_del,
	.activate = fgw_activate,
	.deactivate = fgw_deactivate,
	.references = fgw_references,
	.shrink_lruvec = fgw_shrink_lruvec,
	.size = fgw_type_size,
	.active = fgw_active,
	.workingset = fgw_workingset,
	.memcg_lru = true,
	.prepare = fgw_prepare,
	.init = fgw_init,
	.fini = fgw_fini,
	.reparent = fgw_reparent,
	.drain_next = fgw_drain_next,
	.is_valid = fgw_is_valid,
};

/* ---- knobs ---- */

static const char *const chance_names[] = {"halve", "clear", "decrement", "none", NULL};

#define UINT_KNOB(field, def, min, max, text)                                                      \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_UINT, offsetof(struct fgw_knobs, field), def, min, max, \
			NULL                                                                       \
	}
#define REAL_KNOB(field, def, min, max, text)                                                      \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_DOUBLE, offsetof(struct fgw_knobs, field), def, min,    \
			max, NULL                                                                  \
	}
#define BOOL_KNOB(field, def, text)                                                                \
	{                                                                                          \
#field, text, FOLIAGE_KNOB_BOOL, offsetof(struct fgw_knobs, field), def, 0, 1,     \
			NULL                                                                       \
	}

static const struct foliage_knob knobs[] = {
	UINT_KNOB(gens, 32, 3, FGW_GENS, "generation lists of M"),
	UINT_KNOB(ticks, 32, 4, 128, "ticks of the clock while the room turns over once"),
	UINT_KNOB(tick_min, 4, 1, 4096, "pages that a tick lasts at least, in small rooms"),
	BOOL_KNOB(once, 1, "count at most one access a tick (rule 1)"),
	UINT_KNOB(refs_max, 7, 1, 15, "refs stop counting here (rule 1)"),
	{"chance",
	 "what another round in M costs a page: refs halved, cleared, one less; none: no rounds "
	 "(rule 6)",
	 FOLIAGE_KNOB_ENUM, offsetof(struct fgw_knobs, chance), FGW_CHANCE_HALVE, 0, 3,
	 chance_names},
	REAL_KNOB(target, 0.07, 0, 1, "P's target at the start, in parts of the room"),
	REAL_KNOB(target_min, 0.01, 0, 1, "P's smallest target"),
	REAL_KNOB(target_max, 0.9, 0, 1, "P's largest target"),
	REAL_KNOB(step, 2, 0, 4096,
		  "pages by which a near refault moves P's target; 0: no adaptation (rule 3)"),
	REAL_KNOB(near, 0.09, 0, 1,
		  "how near, in parts of the room evicted from the page's list since (rule 3)"),
	REAL_KNOB(fill_factor, 3, 1, 64,
		  "the step's multiple while M's tail is a page of the first fill never used"),
	REAL_KNOB(history, 1.5, 0, 6, "turnovers of the room for which a shadow is valid"),
	REAL_KNOB(gate, 1, 0, 100,
		  "a refault enters M if its distance is at most so many ages of M's tail; 0: "
		  "always"),
	REAL_KNOB(stale, 0, 0, 7,
		  "turnovers without use after which M's tail goes before P's; 0: never"),
	REAL_KNOB(
		balance, 0.09, 0, 6,
		"reach of a refault that counts for the balance of anon and file, in parts of the "
		"room of both"),
	REAL_KNOB(balance_window, 0.25, 0.01, 16,
		  "rooms of both that are evicted between two halvings of these counts"),
	UINT_KNOB(balance_min, 512, 1, 1 << 20, "pages that this takes at least"),
	UINT_KNOB(balance_cost, 200, 0, 100000,
		  "what refaults of either type cost, beside swappiness : 200 - swappiness"),
	UINT_KNOB(gate_scan, FGW_EXAMINE_MAX, 0, 4096,
		  "lazy moves that one look for M's tail may make"),
	BOOL_KNOB(first_fill, 1, "the first pages fill M (rule 2)"),
	UINT_KNOB(walk_every, 8, 0, 1024, "ticks between two page-table walks; 0: none"),
	UINT_KNOB(young_refs, 1, 1, 7, "accesses that a young bit stands for"),
	UINT_KNOB(exec_refs, 2, 1, 7,
		  "accesses that a young bit of an executable mapping stands for"),
	REAL_KNOB(fresh, 0.1, 0, 1,
		  "pages that faults brought in are fresh, in parts of P's target, before their "
		  "young "
		  "bits are cleared; 0: these count when P's tail is looked at"),
	BOOL_KNOB(born, 1, "the access that a page was brought in for does not count (rule 2)"),
	BOOL_KNOB(noio, 1, "reclaim without I/O leaves anon alone while the swap cache is small"),
	BOOL_KNOB(memcg_abort, 1, "memcg-limit reclaim stops once its target is met"),
	{0},
};

const struct foliage_policy foliage_policy_fgw = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "fgw",
	.summary = "FG-W, frequency-guided working set: probation, 32 generations, reuse distances "
		   "(docs/fg-w.md)",
	.knobs = knobs,
	.knobs_size = sizeof(struct fgw_knobs),
	.engine = &fgw_ops,
};
