/* SPDX-License-Identifier: MIT
 *
 * The multi-gen family: generations, tiers, feedback. One implementation serves mglru-6.12, mglru
 * (mainline) with its variants, and fg; what differs is a table of rules (struct gen_rules) and the
 * knobs.
 *
 *   mm/gen.c        geometry, placement, lists, feedback (B.1, B.3, B.6)
 *   mm/gen_age.c    opening and closing generations (B.8)
 *   mm/gen_evict.c  scan, sort, isolate, evict; the loop of one lruvec (B.4, B.11)
 *   mm/gen_612.c, mm/gen_main.c, mm/fg.c   the rules and the policies
 */
#ifndef FOLIAGE_MM_GEN_H
#define FOLIAGE_MM_GEN_H

#include "mm/reclaim.h"

enum tail_mode { TAIL_MODE_TAIL, TAIL_MODE_MIN, TAIL_MODE_MIN_BOTH, TAIL_MODE_LIST };
enum pt_scope { PT_SCOPE_TAIL, PT_SCOPE_ALL, PT_SCOPE_MIN };
enum fault_add { FAULT_ADD_MARK, FAULT_ADD_ACTIVE, FAULT_ADD_CREDIT };
enum gup_fast { GUP_FAST_FLOOR, GUP_FAST_INC };

/* Knobs of the whole family; each policy's table offers those that it reads. */
struct gen_knobs {
	uint32_t histgens;             /* NR_HIST_GENS: 0: 1, 1: 4 */
	uint32_t memcg_abort;          /* memcg-limit reclaim stops once its target is met */
	uint32_t gain_base, gain_tier; /* B.6, C.6 */
	/* mainline and variants (D.1-D.3) */
	uint32_t fault_add; /* enum fault_add */
	uint32_t lift; /* placement: accesses that lift an ordinary folio to the second oldest; 0: W
			  only */
	uint32_t file_far;  /* quick fix: PG_active file folios without W one generation below the
			       second youngest */
	uint32_t rmap_refs; /* rmap's second look sets W only when refs > 1 */
	uint32_t restore_only; /* ACTIVATE statistic only for W */
	uint32_t noio; /* anon is unreclaimable without __GFP_IO when the swap cache is small */
	uint32_t noio_fold; /* the reviewer's variant: aging is restricted as well */
	uint32_t credit_batch, credit_cap, credit_decay;
	/* FG (C.14) */
	uint32_t tail_mode, pt_promote_scope, activated;
	uint32_t refs_max, cap_promote, cap_bump, cap_refault, pageout_cap, gup_fast;
};

struct gen_rules {
	/* Accesses that the word remembers, for people. */
	unsigned int (*refs)(uint64_t flags);
	/* Tier of a flag word (0..3), and whether its counter is full in the sense of B.4 sort
	 * rule 3. */
	unsigned int (*tier)(uint64_t flags);
	bool (*saturated)(uint64_t flags);
	/* Flags after a move up by eviction or forced aging. */
	uint64_t (*bump)(const struct gen_knobs *k, uint64_t flags);
	/* Where an off-list folio goes: returns the seq, may clear bits of *flags (PG_active is
	 * cleared by the caller). */
	uint64_t (*place)(const struct gen_knobs *k, const struct lruvec *lv, uint64_t *flags,
			  bool reclaiming);
	/* Flags when reclaim isolates the folio. */
	uint64_t (*isolate)(uint64_t flags);
	/* Highest tier that is not protected. */
	int (*tier_idx)(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type);
	/* refs that a shadow keeps (0..7: bit 0 is its workingset bit, the rest goes next to
	 * min_seq). */
	unsigned int (*token)(uint64_t flags);
	/* max_seq or a min_seq has changed; under the lock. Optional. */
	void (*window_moved)(const struct foliage_engine *e, struct lruvec *lv);
	bool v612;            /* the loops of Linux 6.12 (LINUX-6.12.md 1.1, B.4, B.8, B.11 rows) */
	bool refs_active;     /* active/inactive by refs, not by generation (C.10) */
	bool sort_to_tail;    /* protected folios go to the tail */
	bool count_saturated; /* protected[] counts saturated folios */
	bool count_forced;    /* protected[] counts folios moved by forced aging */
};

extern const char *const gen_histgens_names[]; /* of the knob */

static inline const struct gen_knobs *gen_knobs(const struct foliage_engine *e)
{
	return e->knobs;
}

static inline int gen_of(uint64_t seq)
{
	return (int)(seq % MAX_NR_GENS);
}

static inline uint64_t gen_max_seq(const struct lruvec *lv)
{
	return atomic_load_explicit(&lv->gen.max_seq, memory_order_acquire);
}

static inline uint64_t gen_min_seq(const struct lruvec *lv, unsigned int type)
{
	return atomic_load_explicit(&lv->gen.min_seq[type], memory_order_acquire);
}

static inline unsigned int gen_nr(const struct lruvec *lv, unsigned int type)
{
	return (unsigned int)(gen_max_seq(lv) - gen_min_seq(lv, type) + 1);
}

/* seq of a generation index under the window ending at max_seq */
static inline uint64_t gen_seq(uint64_t max_seq, int gen)
{
	return max_seq - ((max_seq - (uint64_t)gen) % MAX_NR_GENS);
}

static inline int gen_list(int gen, unsigned int type, unsigned int zone)
{
	return LIST_GEN + (gen * NR_TYPES + (int)type) * MAX_NR_ZONES + (int)zone;
}

static inline bool type_evictable(unsigned int type, int swappiness)
{
	return type == TYPE_FILE ? swappiness <= 200 : swappiness > 0;
}

static inline unsigned int gen_hist(const struct gen_knobs *k, uint64_t seq)
{
	return k->histgens ? (unsigned int)(seq % MAX_NR_HIST) : 0;
}

/* -- gen.c -- */
void gen_add(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming);
void gen_del(struct foliage_engine *e, struct lruvec *lv, folio_id id);
void gen_activate(struct foliage_engine *e, struct lruvec *lv, folio_id id);
void gen_deactivate(struct foliage_engine *e, struct lruvec *lv, folio_id id);
/* Reparenting marks the child dying, then collects its counters: whoever adds afterwards must see
 * the mark. */
void gen_settle_dying(const struct foliage_engine *e, struct lruvec *lv);

/* Move the folio's pages between generation counters (-1: none); correct even while the lruvec is
 * being reparented. */
static inline void gen_move_size(const struct foliage_engine *e, struct lruvec *lv, uint64_t flags,
				 int from, int to)
{
	unsigned int type = flags_type(flags), zone = flags_zone(flags);
	int64_t nr = flags_nr(flags);

	if (from >= 0)
		counter_add(e, &lv->gen.nr_pages[from][type][zone], -nr);
	if (to >= 0)
		counter_add(e, &lv->gen.nr_pages[to][type][zone], nr);
	if (!e->exclusive)
		gen_settle_dying(e, lv);
}

/* Move a folio on a list one generation above the oldest of its type, or wherever its flag says it
 * already went; returns the generation. Under the lock. */
int gen_inc(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool *yielded);
uint64_t gen_type_size(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
uint64_t gen_active(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
void gen_init(struct foliage_engine *e, struct lruvec *lv);
void gen_reparent(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent);
folio_id gen_drain_next(struct foliage_engine *e, struct lruvec *lv, bool *active);
int gen_is_valid(struct foliage_engine *e, struct lruvec *lv, struct err *err);

/* Feedback (B.6). */
struct ctrl_pos {
	uint64_t refaulted, total;
	uint32_t gain;
	double sample; /* part of the pages that are counted; 0: all */
};
struct ctrl_pos gen_ctrl_pos(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type,
			     unsigned int first, unsigned int last, uint32_t gain);
bool gen_ctrl_ok(const struct ctrl_pos *sp, const struct ctrl_pos *pv);
/* Tier t is protected when it refaults gain_tier / gain_base times as often as tier 0 (B.6). */
int gen_tier_idx(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type);
/* Start of every refault hook: counts it; true when the shadow is recent (B.7): within 4
 * generations of max_seq, or `exact`: of the oldest generation of now (6.12). */
bool gen_refault_begin(struct foliage_engine *e, struct lruvec *lv, folio_id id, uint64_t shadow,
		       bool exact);
void gen_refault_tier(struct foliage_engine *e, struct lruvec *lv, folio_id id, unsigned int tier);
void gen_carry_over(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
void gen_clear_history(struct foliage_engine *e, struct lruvec *lv, uint64_t seq);

/* Look-ahead of the hit loops: far enough for memory, near enough to stay in the first-level cache.
 */
enum { HIT_PREFETCH = 24 };

/* An fd access where accesses are only counted and move nothing (B.2): `next` is inlined. */
static inline __attribute__((always_inline)) void gen_count_access(struct foliage_engine *e,
								   folio_id id, uint64_t old,
								   uint64_t (*next)(uint64_t flags))
{
	struct folio *f = folio_at(e, id);
	uint64_t new;

	do {
		if (!flags_evictable(old) || !(old & F_PRESENT))
			return;
		new = next(old);
		if (new == old) {
			folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_SATURATED, -1, -1, old,
				    old);
			return;
		}
	} while (!folio_cas(e, f, &old, new));
	folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_COUNT, -1, -1, old, new);
}

/* Mark a run of folios while they are present; `mark` is inlined into the loop. */
static inline __attribute__((always_inline)) size_t
gen_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids, size_t n,
	     void (*mark)(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
			  uint64_t flags))
{
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t flags = folio_flags(folio_at(e, (folio_id)ids[i]));

		if (i + HIT_PREFETCH < n)
			__builtin_prefetch(folio_at(e, (folio_id)ids[i + HIT_PREFETCH]), 1);
		if (!(flags & F_PRESENT))
			break;
		mark(e, cpu, (folio_id)ids[i], flags);
	}
	return i;
}

uint64_t gen_shadow(struct foliage_engine *e, struct lruvec *target, folio_id id);

static inline void gen_window_moved(const struct foliage_engine *e, struct lruvec *lv)
{
	if (e->ops->rules->window_moved)
		e->ops->rules->window_moved(e, lv);
}

/* -- gen_age.c -- */
/* Move the whole oldest generation of a type up by one and close it; locked. */
void gen_raise_oldest(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
bool gen_try_inc_min_seq(struct foliage_engine *e, struct lruvec *lv, int swappiness);
bool gen_inc_max_seq(struct foliage_engine *e, struct lruvec *lv, uint64_t seq, int swappiness);
/* Walk and open a generation; false when somebody else did (B.8). */
bool gen_try_inc_max_seq(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			 uint64_t seq, int swappiness, bool force_scan);

/* -- gen_evict.c -- */
bool gen_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc);
int64_t gen_evict(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		  int64_t nr_to_scan, int swappiness);
/* Is the lruvec worth the memcg LRU's attention: size >> priority (B.11, D.2). */
bool gen_is_sizable(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc);

#endif
