/* SPDX-License-Identifier: MIT
 *
 * FG-W, frequency-guided working set: Foliage's own policy. docs/fg-w.md is its specification.
 *
 *   F   fresh: what faults brought in, until the young bits that the faults left are cleared
 *   P   probation, one FIFO for each type; F counts as a part of it
 *   M   the main part: up to 32 lists, one for each generation (FIFO each), lists[seq mod 32]
 *
 *        new, or refault too far ---> head (F) P  tail ---> refs 0: evicted
 *        refault inside M's reach                   \--> refs > 0: to M's list of its stamp
 *                          \---> newest ... M ... oldest ---> refs 0: evicted
 *                                  ^---- refs > 0: halved, once more round ----/
 *
 *   mm/fgw.c         knobs, accesses, coming and going, the policy's tables
 *   mm/fgw_list.c    P and M: placement, the clock of generations, M's true tail, validity
 *   mm/fgw_evict.c   reclaim: victims, second chances, survivors, the loop of one lruvec
 *
 * The flag word keeps the stamp (the generation of the last counted access, mod 256) where the
 * multi-gen family keeps its generation, and refs in the three bits that FG uses. What is on P or M
 * is told by struct folio.list. Pages on P and on M are counted in clru.size[], inactive and
 * active. The clock that hits read is lruvec.clock[].
 */
#ifndef FOLIAGE_MM_FGW_H
#define FOLIAGE_MM_FGW_H

#include "mm/reclaim.h"

enum {
	FGW_GENS = 32,        /* lists of M */
	FGW_EXAMINE_MAX = 64, /* folios looked at in one lock section */
};

enum fgw_chance { FGW_CHANCE_HALVE, FGW_CHANCE_CLEAR, FGW_CHANCE_DECREMENT, FGW_CHANCE_NONE };

struct fgw_knobs {
	uint32_t gens;     /* lists of M in use */
	uint32_t ticks;    /* ticks of the clock while the room turns over once */
	uint32_t tick_min; /* pages that a tick lasts at least */
	uint32_t once;     /* count at most one access a tick */
	uint32_t refs_max;
	uint32_t chance;                       /* enum fgw_chance: what another round in M costs */
	double target, target_min, target_max; /* of P, in parts of the room */
	double step;                           /* pages by which a near refault moves P's target */
	double near;                           /* how near that is, in parts of the room */
	double fill_factor; /* the step's multiple while M's tail is a page of the first fill that
			       nobody used */
	double history;     /* turnovers of the room for which a shadow is valid */
	double gate; /* a refault enters M if its distance is within gate times the age of M's tail;
			0: always */
	double stale;   /* turnovers without use after which M's tail goes before P's; 0: never */
	double balance; /* a refault counts for the balance of the types when so much of both
				  came in of its type since, in parts of the room of both */
	double balance_window; /* of the room of both, evicted between two halvings */
	uint32_t balance_min;  /* pages that this takes at least */
	uint32_t balance_cost; /* of a page of either type, beside swappiness : 200 - swappiness */
	uint32_t gate_scan;    /* lazy moves that one look for M's tail may make */
	uint32_t first_fill;   /* the first pages fill M */
	uint32_t walk_every;   /* ticks between two page-table walks; 0: no walks */
	uint32_t young_refs,
		exec_refs;    /* what a young bit counts, and one of an executable mapping */
	double fresh;         /* F's size, in parts of P's target; 0: no F */
	uint32_t born;        /* the access that a page was brought in for does not count */
	uint32_t noio;        /* without I/O, anon counts only if the swap cache is large (D.2) */
	uint32_t memcg_abort; /* memcg-limit reclaim stops once its target is met */
};

/* Of a type: everything under the lruvec's lock, but for the counters. */
struct fgw_type {
	uint64_t oldest;       /* min_seq of M; the newest is lruvec.clock[type] */
	uint64_t tick;         /* insertions since the last tick, times `ticks` */
	_Atomic uint64_t room; /* C in pages when reclaim last ran; 0: it never has */
	uint64_t fill_seq;     /* the clock when the first fill ended */
	double target;         /* P's wanted size in pages, once there is a room */
	uint64_t fresh;        /* pages on F */
	counter_t evicted[2];  /* pages evicted from P and from M, ever */
	/* Refaults that a little more room would have spared, for the choice between anon and
	 * file: in this window, and before. */
	counter_t spared;
	uint64_t spared_before;
};

struct fgw_state {
	struct fgw_type type[NR_TYPES];
	uint64_t window; /* pages evicted, of both types, until the last halving */
	uint64_t walked; /* sum of the clocks at the last page-table walk */
};

static inline const struct fgw_knobs *fgw_knobs(const struct foliage_engine *e)
{
	return e->knobs;
}

static inline int fgw_list_f(unsigned int type)
{
	return LIST_FGW + (int)type * (FGW_GENS + 2);
}

static inline int fgw_list_p(unsigned int type)
{
	return fgw_list_f(type) + 1;
}

static inline int fgw_list_m(unsigned int type, uint64_t seq)
{
	return fgw_list_p(type) + 1 + (int)(seq % FGW_GENS);
}

static inline unsigned int fgw_type_of_list(int list)
{
	return (unsigned int)(list - LIST_FGW) / (FGW_GENS + 2);
}

static inline bool fgw_is_f(int list)
{
	return (list - LIST_FGW) % (FGW_GENS + 2) == 0;
}

/* P, or F, which is its first part. */
static inline bool fgw_is_p(int list)
{
	return (list - LIST_FGW) % (FGW_GENS + 2) <= 1;
}

static inline uint64_t fgw_clock(const struct lruvec *lv, unsigned int type)
{
	return atomic_load_explicit(&lv->clock[type], memory_order_acquire);
}

/* Age of the stamp of a flag word, in ticks. */
static inline uint64_t fgw_age(uint64_t clock, uint64_t flags)
{
	return (clock - flags) & F_GEN_MASK;
}

/* Pages on P, on M. */
static inline counter_t *fgw_size(struct lruvec *lv, unsigned int type, bool main)
{
	return &lv->clru.size[type * 2 + main];
}

/* The flag word after an access that counts as `refs` (rule 1): at most once a tick. `young`: it was
 * seen as a young bit, at some time before. */
static inline __attribute__((always_inline)) uint64_t fgw_next(const struct foliage_engine *e,
							       const struct lruvec *lv,
							       uint64_t old, unsigned int refs,
							       bool young)
{
	const uint64_t unit = UINT64_C(1) << F_REFS_SHIFT, gone = F_UNEVICTABLE | F_MLOCKED;
	const struct fgw_knobs *k = fgw_knobs(e);
	uint64_t stamp = fgw_clock(lv, flags_type(old)) & F_GEN_MASK,
		 new = (old & ~F_GEN_MASK) | stamp;

	/* Nearly all hits of hot pages end here: counted in this tick already. */
	if (__builtin_expect((old & (F_GEN_MASK | F_READAHEAD)) == stamp, 1) && k->once)
		return old;
	if ((old & (F_PRESENT | gone)) != F_PRESENT)
		return old;
	/* It was brought in for this access. The young bit may have been there since the fault, and says
	 * nothing about now. */
	if (old & F_READAHEAD)
		return (young ? old : new) & ~F_READAHEAD;
	return (new & ~F_REFS_MASK) | MIN((old & F_REFS_MASK) + refs * unit, k->refs_max * unit);
}

static inline __attribute__((always_inline)) void fgw_count(struct foliage_engine *e,
							    struct lruvec *lv, folio_id id,
							    uint64_t old, unsigned int refs,
							    int why)
{
	uint64_t new;

	do {
		new = fgw_next(e, lv, old, refs, why == FOLIAGE_WHY_YOUNG);
		if (new == old)
			return;
	} while (!folio_cas(e, folio_at(e, id), &old, new));
	folio_event(e, id, FOLIAGE_EV_ACCESS, why, -1, -1, old, new);
}

/* -- fgw_list.c -- */
/* C: the room that pages of the type share now. */
uint64_t fgw_room(const struct foliage_engine *e, struct lruvec *lv, unsigned int type);
/* What both types share: their rooms, or what is there now. */
uint64_t fgw_room_of_both(struct lruvec *lv);
/* The room of a type, but no smaller than what `ticks` ticks last. */
uint64_t fgw_turnover(const struct foliage_engine *e, struct lruvec *lv, unsigned int type);
/* P's wanted size in pages. */
uint64_t fgw_target(const struct foliage_engine *e, struct lruvec *lv, unsigned int type);
/* Reclaim runs: what is there now is the room. */
void fgw_set_room(const struct foliage_engine *e, struct lruvec *lv, unsigned int type);
void fgw_move_target(const struct foliage_engine *e, struct lruvec *lv, unsigned int type,
		     double pages);
/* `nr` pages have come in: the clock may tick. */
void fgw_tick(struct foliage_engine *e, struct lruvec *lv, unsigned int type, int64_t nr);
/* The refaults that the types are compared by are halved when a window is over. */
void fgw_pass_window(const struct foliage_engine *e, struct lruvec *lv);
/* Put a folio that is on no list on F; on P, at its head or tail; on M, at the head of list `seq`. Take
 * it off. */
void fgw_link_f(struct foliage_engine *e, struct lruvec *lv, folio_id id);
void fgw_link_p(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool tail);
void fgw_link_m(struct foliage_engine *e, struct lruvec *lv, folio_id id, uint64_t seq);
void fgw_unlink(struct foliage_engine *e, struct lruvec *lv, folio_id id);
/* The list that a stamp names, within M's window. */
uint64_t fgw_seq_of(const struct lruvec *lv, unsigned int type, uint64_t flags);
/* M's true tail, FOLIO_NONE if M is empty. A folio whose stamp is newer than its list is moved to
 * the list of its stamp, which costs one of *budget; when that is spent, the answer is whatever is
 * at the tail. */
folio_id fgw_main_tail(struct foliage_engine *e, struct lruvec *lv, unsigned int type, int *budget);
int fgw_is_valid(struct foliage_engine *e, struct lruvec *lv, struct err *err);

/* -- fgw_evict.c -- */
bool fgw_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc);
enum references fgw_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
			       const struct referenced *ref);

#endif
