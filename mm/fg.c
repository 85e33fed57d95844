/* SPDX-License-Identifier: MIT
 *
 * MGLRU-FG, frequency guided promotion (part C): one counter per folio that every kind of access
 * feeds, that survives generation changes (capped) and eviction (whole), and that lifts folios up
 * the generations.
 *
 *   refs     tier   name
 *   0, 1     0      1 = REFERENCED: used once, no protection
 *   2        1      WORKINGSET: used twice, the floor of every user of "workingset"
 *   3, 4     2      3 = PROTECTED: cap after a promotion or deferral, and at a refault
 *   5..7     3      7 = MAX: the next access overflows and promotes
 *
 * A move is a compare-exchange of the flag word and two counter updates; eviction moves the folio
 * when it meets it.
 */
#include "mm/engine_policies.h"
#include "mm/gen.h"
#include "mm/shadow.h"

enum access_kind { ACCESS_FD, ACCESS_MAPPED, ACCESS_EXEC };

static unsigned int fg_tier_of(unsigned int refs)
{
	return refs < 2 ? 0 : MIN(fls64(refs - 1), (unsigned int)MAX_NR_TIERS - 1);
}

static unsigned int fg_tier(uint64_t flags)
{
	return fg_tier_of(flags_fg_refs(flags));
}

static bool fg_saturated(uint64_t flags)
{
	(void)flags; /* saturated folios were promoted when they saturated (C.5) */
	return false;
}

static uint64_t fg_bump(const struct gen_knobs *k, uint64_t flags)
{
	return flags_with_fg_refs(flags, MIN(flags_fg_refs(flags), k->cap_bump));
}

static uint64_t fg_isolate(uint64_t flags)
{
	return flags;
}

static unsigned int fg_token(uint64_t flags)
{
	return MIN(flags_fg_refs(flags), 7u);
}

/* C.7 */
static uint64_t fg_place(const struct gen_knobs *k, const struct lruvec *lv, uint64_t *flags,
			 bool reclaiming)
{
	unsigned int type = flags_type(*flags);
	bool w = flags_fg_refs(*flags) >= 2;
	uint64_t distance;

	(void)k;
	if (*flags & F_ACTIVE)
		distance = 2u - w;
	else if (reclaiming)
		distance = MAX_NR_GENS;
	else if ((*flags & F_ANON && type == TYPE_ANON && !(*flags & F_SWAPCACHE)) ||
		 (*flags & F_RECLAIM && *flags & (F_DIRTY | F_WRITEBACK)))
		distance = MIN_NR_GENS;
	else
		distance = (uint64_t)MAX_NR_GENS - w;
	return MAX(gen_max_seq(lv) - distance + 1, gen_min_seq(lv, type));
}

/* C.6: tier t is protected when it refaults twice as often as everything below it. */
static int fg_tier_idx(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type)
{
	unsigned int tier;

	for (tier = 1; tier < MAX_NR_TIERS; tier++) {
		struct ctrl_pos sp = gen_ctrl_pos(k, lv, type, 0, tier - 1, k->gain_base);
		struct ctrl_pos pv = gen_ctrl_pos(k, lv, type, tier, tier, k->gain_tier);

		if (!gen_ctrl_ok(&sp, &pv))
			break;
	}
	return (int)tier - 1;
}

/* ---- accesses (C.2, C.3) ---- */

/* Is a folio of generation `gen` at the tail of its LRU, in the sense of the knob? */
static inline bool fg_at_tail(const struct gen_knobs *k, const struct lruvec *lv,
			      const struct folio *f, uint64_t max_seq, uint64_t flags)
{
	unsigned int type = flags_type(flags);
	int gen = flags_gen(flags);

	switch ((enum tail_mode)k->tail_mode) {
	case TAIL_MODE_TAIL:
		return (max_seq - (uint64_t)gen) % MAX_NR_GENS >= MIN_NR_GENS;
	case TAIL_MODE_MIN:
		return gen == gen_of(gen_min_seq(lv, type));
	case TAIL_MODE_MIN_BOTH:
		return gen == gen_of(MIN(gen_min_seq(lv, TYPE_ANON), gen_min_seq(lv, TYPE_FILE)));
	case TAIL_MODE_LIST:
		return __atomic_load_n(&f->list, __ATOMIC_RELAXED) ==
		       gen_list(gen_of(gen_min_seq(lv, type)), type, flags_zone(flags));
	}
	return false;
}

static inline bool fg_in_scope(const struct gen_knobs *k, const struct lruvec *lv, uint64_t max_seq,
			       uint64_t flags)
{
	switch ((enum pt_scope)k->pt_promote_scope) {
	case PT_SCOPE_ALL:
		return true;
	case PT_SCOPE_TAIL:
		return (max_seq - (uint64_t)flags_gen(flags)) % MAX_NR_GENS >= MIN_NR_GENS;
	case PT_SCOPE_MIN:
		return flags_gen(flags) == gen_of(gen_min_seq(lv, flags_type(flags)));
	}
	return false;
}

/* The six rules of C.2, in their order. */
static inline __attribute__((always_inline)) uint64_t fg_next(const struct gen_knobs *k,
							      const struct lruvec *lv,
							      const struct folio *f, uint64_t flags,
							      enum access_kind kind, int *why)
{
	unsigned int refs = flags_fg_refs(flags) + 1;
	uint64_t max_seq;
	int gen = flags_gen(flags), up;

	*why = refs > k->refs_max ? FOLIAGE_WHY_SATURATED : FOLIAGE_WHY_COUNT;
	if (gen < 0)
		return flags_with_fg_refs(flags, MIN(refs, k->refs_max));
	/* Read inside the caller's compare-exchange loop: a walker may open a generation meanwhile
	 * (C.3, v4). */
	max_seq = gen_max_seq(lv);
	if (gen == gen_of(max_seq))
		return flags_with_fg_refs(flags, MIN(refs, k->refs_max));
	up = (gen + 1) % MAX_NR_GENS;
	if (kind != ACCESS_FD) {
		if (!fg_in_scope(k, lv, max_seq, flags))
			return flags_with_fg_refs(flags, MIN(refs, k->refs_max));
		*why = FOLIAGE_WHY_YOUNG;
		if (refs >= 2 || kind == ACCESS_EXEC)
			up = gen_of(max_seq);
		return flags_with_gen(flags_with_fg_refs(flags, MIN(refs, k->cap_promote)), up);
	}
	if (refs > k->refs_max) {
		*why = FOLIAGE_WHY_OVERFLOW;
		return flags_with_gen(flags_with_fg_refs(flags, k->cap_promote), up);
	}
	if (refs >= 2 && fg_at_tail(k, lv, f, max_seq, flags)) {
		*why = FOLIAGE_WHY_DEFER;
		return flags_with_gen(flags_with_fg_refs(flags, MIN(refs, k->cap_promote)), up);
	}
	return flags_with_fg_refs(flags, refs);
}

/* After a word changed: generation sizes, and the active threshold (C.10). */
static __attribute__((noinline)) void fg_account(const struct foliage_engine *e, struct lruvec *lv,
						 uint64_t old, uint64_t new)
{
	const struct gen_knobs *k = gen_knobs(e);
	bool was = flags_fg_refs(old) >= k->activated, is = flags_fg_refs(new) >= k->activated;

	if ((new ^ old) & F_GEN_MASK)
		stat_add(e, lv, STAT_PROMOTED, flags_nr(old));
	if (new &F_LRU && was != is)
		counter_add(e, &lv->gen.nr_active[flags_type(new)],
			    is ? flags_nr(new) : -flags_nr(new));
	if ((new ^ old) & F_GEN_MASK || was != is)
		gen_move_size(e, lv, old, flags_gen(old),
			      flags_gen(new)); /* also settles a dying lruvec */
}

/* C.11: lock-free. The version in the flag word changes whenever the folio leaves its list, so a
 * word that still matches belongs to the same stay: the generation it names still holds the folio,
 * and the one it is stamped with was opened before and cannot be closed while an older one is not
 * empty. */
static inline __attribute__((always_inline)) void fg_inc_refs(struct foliage_engine *e,
							      struct lruvec *lv, folio_id id,
							      uint64_t old, enum access_kind kind)
{
	const struct gen_knobs *k = gen_knobs(e);
	struct folio *f = folio_at(e, id);
	uint64_t new;
	int why;

	do {
		if (!(old & F_PRESENT))
			return;
		new = fg_next(k, lv, f, old, kind, &why);
		if (new == old) {
			folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_SATURATED, -1, -1, old,
				    old);
			return;
		}
	} while (!folio_cas(e, f, &old, new));
	fg_account(e, lv, old, new);
	if (__builtin_expect(e->event != NULL, 0)) {
		uint64_t max_seq = gen_max_seq(lv);
		bool moved = (new ^ old) & F_GEN_MASK, on = flags_gen(old) >= 0;

		folio_event(e, id, moved ? FOLIAGE_EV_MOVE : FOLIAGE_EV_ACCESS, why,
			    on ? (int64_t)gen_seq(max_seq, flags_gen(old)) : -1,
			    on ? (int64_t)gen_seq(max_seq, flags_gen(new)) : -1, old, new);
	}
}

/* The hit path looks the answer up: for each type, what one more fd access makes of the low 12 bits
 * of the word (gen + 1 and refs), computed by fg_next() whenever the window moves. `make bench`
 * prints the instructions a hit takes, which the rules themselves would triple. An entry read just
 * before the window moved is as good as an access made just before. */
enum { NEXT_MOVED = 1 << 12, NEXT_CROSSED = 1 << 13 };
#define FG_LOW_MASK (F_GEN_MASK | F_REFS_MASK)

static inline unsigned int fg_slot(uint64_t flags)
{
	return (unsigned int)((flags & 7) | (flags >> 5 & 0x78));
}

static void fg_window_moved(const struct foliage_engine *e, struct lruvec *lv)
{
	const struct gen_knobs *k = gen_knobs(e);
	struct folio probe = {0};
	int why;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		for (unsigned int gen = 0; gen <= MAX_NR_GENS; gen++)
			for (unsigned int refs = 0; refs < 16; refs++) {
				uint64_t flags = gen | (uint64_t)refs << F_REFS_SHIFT |
						 (type ? 0 : F_SWAPBACKED);
				uint64_t new = fg_next(k, lv, &probe, flags, ACCESS_FD, &why);
				unsigned int entry = (unsigned int)(new &FG_LOW_MASK);

				if ((new ^ flags) & F_GEN_MASK)
					entry |= NEXT_MOVED;
				if (gen &&
				    (refs >= k->activated) != (flags_fg_refs(new) >= k->activated))
					entry |= NEXT_CROSSED;
				__atomic_store_n(&lv->gen.next_access[type][fg_slot(flags)],
						 (uint16_t)entry, __ATOMIC_RELAXED);
			}
}

/* What one more access makes of the word; 0: nothing to write. */
static inline __attribute__((always_inline)) unsigned int fg_look_up(const struct lruvec *lv,
								     uint64_t old, uint64_t *new)
{
	unsigned int entry;

	if (__builtin_expect((old & (F_PRESENT | F_UNEVICTABLE | F_MLOCKED)) != F_PRESENT, 0))
		return 0;
	entry = __atomic_load_n(&lv->gen.next_access[flags_type(old)][fg_slot(old)],
				__ATOMIC_RELAXED);
	*new = (old & ~FG_LOW_MASK) | (entry & FG_LOW_MASK);
	return *new == old ? 0 : entry;
}

/* A hit that moves pages between counters. The session keeps the slot of a memcg that is removed
 * meanwhile from being reused between the exchange and the counters. */
static __attribute__((noinline)) void fg_hit_moving(struct foliage_engine *e, struct folio *f,
						    uint64_t old)
{
	unsigned int session = memcg_enter(e);
	struct lruvec *lv = folio_lruvec(e, f);
	uint64_t new;

	while (fg_look_up(lv, old, &new))
		if (folio_cas(e, f, &old, new)) {
			fg_account(e, lv, old, new);
			break;
		}
	memcg_leave(e, session);
}

static inline __attribute__((always_inline)) void
fg_hit(struct foliage_engine *e, struct lruvec *lv, struct folio *f, uint64_t old, bool exclusive)
{
	unsigned int entry;
	uint64_t new;

	do {
		entry = fg_look_up(lv, old, &new);
		if (!entry)
			return;
		if (!exclusive && __builtin_expect(entry & (NEXT_MOVED | NEXT_CROSSED), 0)) {
			fg_hit_moving(e, f, old);
			return;
		}
	} while (!folio_cas_if(f, &old, new, exclusive));
	if (__builtin_expect(entry & (NEXT_MOVED | NEXT_CROSSED), 0))
		fg_account(e, lv, old, new);
}

/* The table knows neither list positions nor how to tell why. */
static inline bool fg_by_rules(const struct foliage_engine *e)
{
	return e->event || gen_knobs(e)->tail_mode == TAIL_MODE_LIST;
}

static void fg_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	(void)cpu;
	if (__builtin_expect(!fg_by_rules(e), 1))
		fg_hit(e, folio_lruvec(e, f), f, flags, e->exclusive);
	else if (flags_evictable(flags)) {
		unsigned int session = memcg_enter(e);

		fg_inc_refs(e, folio_lruvec(e, f), id, flags, ACCESS_FD);
		memcg_leave(e, session);
	}
}

/* Everything that the loop needs again and again is in locals: the compiler must assume that a
 * store to a folio changes the engine. */
static inline __attribute__((always_inline)) size_t
fg_run(struct foliage_engine *e, const uint32_t *ids, size_t n, bool exclusive)
{
	char *base = (char *)e->folios;
	const unsigned int shift = e->folio_shift;
	struct lruvec *lv = NULL;
	uint32_t owner = UINT32_MAX;
	size_t i;

	for (i = 0; i < n; i++) {
		struct folio *f = (struct folio *)(base + ((size_t)ids[i] << shift));
		uint64_t flags = folio_flags(f);
		uint32_t now;

		__builtin_prefetch(base + ((size_t)ids[MIN(i + HIT_PREFETCH, n - 1)] << shift), 1);
		if (!(flags & F_PRESENT))
			break;
		now = __atomic_load_n(&f->owner, __ATOMIC_ACQUIRE);
		if (__builtin_expect(now != owner ||
					     atomic_load_explicit(&lv->dying, memory_order_acquire),
				     0)) {
			lv = lruvec_live(e, now);
			owner = now;
		}
		fg_hit(e, lv, f, flags, exclusive);
	}
	return i;
}

static size_t fg_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			  size_t n)
{
	size_t i;

	if (__builtin_expect(!fg_by_rules(e), 1))
		return e->exclusive ? fg_run(e, ids, n, true) : fg_run(e, ids, n, false);
	for (i = 0; i < n && folio_flags(folio_at(e, (folio_id)ids[i])) & F_PRESENT; i++)
		fg_mark_accessed(e, cpu, (folio_id)ids[i]);
	return i;
}

static void fg_walk_young(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool exec)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	exec = exec && flags_type(flags) == TYPE_FILE;
	fg_inc_refs(e, lv, id, flags, exec ? ACCESS_EXEC : ACCESS_MAPPED);
}

static void fg_neighbour_young(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
			       bool exec)
{
	(void)cpu;
	fg_walk_young(e, folio_lruvec(e, folio_at(e, id)), id, exec);
}

/* C.4 */
static enum references fg_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
				     const struct referenced *ref)
{
	const struct gen_knobs *k = gen_knobs(e);
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;

	(void)sc;
	if (ref->contended)
		return REFERENCES_KEEP;
	if (!ref->ptes)
		return REFERENCES_RECLAIM;
	do {
		new = flags_with_fg_refs(old, MIN(flags_fg_refs(old) + 1, k->cap_promote));
	} while (!folio_cas(e, f, &old, new));
	folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_YOUNG, -1, -1, old, new);
	return flags_fg_refs(old) + 1 >= 2 || (ref->exec && flags_type(old) == TYPE_FILE)
		       ? REFERENCES_ACTIVATE
		       : REFERENCES_KEEP;
}

/* C.8 */
static void fg_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
		       folio_id id, uint64_t shadow)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	unsigned int refs =
		(unsigned int)(shadow_time(shadow) & 3) << 1 | shadow_workingset(shadow);
	unsigned int type = flags_type(old);

	if (!gen_refault_begin(e, lv, id, shadow, false))
		return;
	gen_refault_tier(e, lv, id, fg_tier_of(refs));
	if (!refs)
		return;
	do {
		new = flags_with_fg_refs(old, MIN(refs, gen_knobs(e)->cap_refault)) |
		      (cpu->in_lru_fault ? F_ACTIVE : 0);
	} while (!folio_cas(e, f, &old, new));
	if (cpu->in_lru_fault)
		stat_add(e, lv, stat_of(STAT_ACTIVATE_ANON, type), flags_nr(old));
	if (refs >= 2)
		stat_add(e, lv, stat_of(STAT_RESTORE_ANON, type), flags_nr(old));
}

static const struct gen_rules fg_rules = {
	.refs = flags_fg_refs,
	.tier = fg_tier,
	.saturated = fg_saturated,
	.bump = fg_bump,
	.place = fg_place,
	.isolate = fg_isolate,
	.tier_idx = fg_tier_idx,
	.token = fg_token,
	.window_moved = fg_window_moved,
	.refs_active = true,
	.count_saturated = true,
	.count_forced = true,
};

static const struct foliage_engine_policy fg_ops = {
	.mark_accessed = fg_mark_accessed,
	.mark_run = fg_mark_run,
	.neighbour_young = fg_neighbour_young,
	.walk_young = fg_walk_young,
	.refault = fg_refault,
	.shadow = gen_shadow,
	.add = gen_add,
	.del = gen_del,
	.activate = gen_activate,
	.deactivate = gen_deactivate,
	.references = fg_references,
	.references_by_ptes = true,
	.shrink_lruvec = gen_shrink_lruvec,
	.size = gen_type_size,
	.active = gen_active,
	.memcg_lru = true,
	.init = gen_init,
	.reparent = gen_reparent,
	.drain_next = gen_drain_next,
	.is_valid = gen_is_valid,
	.rules = &fg_rules,
};

static const char *const tail_mode_names[] = {"tail", "min", "min_both", "list", NULL};
static const char *const pt_scope_names[] = {"tail", "all", "min", NULL};

static const char *const gup_fast_names[] = {"floor", "inc", NULL};

static const struct foliage_knob fg_knobs[] = {
	{"tail_mode",
	 "which folios a second access defers: evictable generations (v4), the type's oldest, the "
	 "oldest of both types, "
	 "those on the oldest list (C.2)",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, tail_mode), TAIL_MODE_TAIL, 0, 3,
	 tail_mode_names},
	{"pt_promote_scope",
	 "where page-table evidence promotes: evictable generations, all, the oldest (C.2)",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, pt_promote_scope), PT_SCOPE_TAIL, 0, 2,
	 pt_scope_names},
	{"activated", "refs from which a page counts as active (FREE, C.1)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, activated), 2, 2, 3, NULL},
	{"refs_max", "refs before an access overflows and promotes (C.1)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, refs_max), 7, 3, 15, NULL},
	{"cap_promote", "refs after a promotion or deferral (C.2)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, cap_promote), 3, 0, 15, NULL},
	{"cap_bump", "refs after a move by tier feedback or forced aging (C.5)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, cap_bump), 2, 0, 15, NULL},
	{"cap_refault", "refs that a refault restores at most (C.8)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, cap_refault), 3, 0, 7, NULL},
	{"pageout_cap", "refs that MADV_PAGEOUT leaves at most (INFERRED, C.9)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, pageout_cap), 2, 0, 7, NULL},
	{"gup_fast", "get_user_pages_fast raises refs to one, or counts (INFERRED, C.9)",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, gup_fast), GUP_FAST_FLOOR, 0, 1,
	 gup_fast_names},
	{"gain_base", "weight of the tiers below in the feedback (C.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_base), 1, 1, 100, NULL},
	{"gain_tier", "weight of the judged tier in the feedback (C.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_tier), 2, 1, 100, NULL},
	{"memcg_abort", "memcg-limit reclaim stops once its target is met (B.11)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, memcg_abort), 1, 0, 1, NULL},
	{"histgens", "generations with counters of their own: 1, or 4 as with CONFIG_LRU_GEN_STATS",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, histgens), 0, 0, 1, gen_histgens_names},
	{0},
};

const struct foliage_policy foliage_policy_fg = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "fg",
	.summary = "MGLRU-FG v4 as reconstructed: frequency guided promotion (part C)",
	.knobs = fg_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.engine = &fg_ops,
};
