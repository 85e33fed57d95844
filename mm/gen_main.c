/* SPDX-License-Identifier: MIT
 *
 * Rules of mainline MGLRU (part B) and of the threads' variants of it (part D): mglru,
 * mglru-revert, mglru-quickfix, mglru-oneline, mglru-credit, mglru-noio. They are one policy with
 * knobs; each variant is a preset.
 *
 * The access counter: refs = R ? C + 1 : 0, and W once five accesses were seen; refs live within a
 * generation, only W survives a move (B.2).
 */
#include "mm/engine_policies.h"
#include "mm/gen.h"
#include "mm/shadow.h"

static unsigned int main_refs(uint64_t flags)
{
	return flags & F_REFERENCED ? flags_lru_refs(flags) + 1 : 0;
}

static unsigned int main_tier(uint64_t flags)
{
	return flags & F_WORKINGSET ? MAX_NR_TIERS - 1 : order_base_2(main_refs(flags));
}

static bool main_saturated(uint64_t flags)
{
	return (flags & F_REFS_MASK) == F_REFS_MASK;
}

static uint64_t main_bump(const struct gen_knobs *k, uint64_t flags)
{
	(void)k;
	return flags & ~(F_REFERENCED | F_LRU_REFS_MASK);
}

static uint64_t main_isolate(uint64_t flags)
{
	return flags & F_REFERENCED ? flags : flags & ~F_LRU_REFS_MASK;
}

static unsigned int main_token(uint64_t flags)
{
	unsigned int refs = main_refs(flags);

	return (refs ? refs - 1 : 0) << 1 | !!(flags & F_WORKINGSET);
}

/* B.3, with the columns of D.1. */
static uint64_t main_place(const struct gen_knobs *k, const struct lruvec *lv, uint64_t *flags,
			   bool reclaiming)
{
	unsigned int type = flags_type(*flags);
	bool w = *flags & F_WORKINGSET;
	uint64_t distance;

	if (*flags & F_ACTIVE)
		distance = k->file_far && type == TYPE_FILE ? (w ? 1 : 3) : 2u - w;
	else if (reclaiming)
		distance = MAX_NR_GENS;
	else if ((*flags & F_ANON && type == TYPE_ANON && !(*flags & F_SWAPCACHE)) ||
		 (*flags & F_RECLAIM && *flags & (F_DIRTY | F_WRITEBACK)))
		distance = MIN_NR_GENS;
	else
		distance = MAX_NR_GENS - (uint64_t)(w || (k->lift && main_refs(*flags) >= k->lift));
	return MAX(gen_max_seq(lv) - distance + 1, gen_min_seq(lv, type));
}

/* ---- accesses ---- */

static uint64_t main_next(uint64_t flags)
{
	if (!(flags & F_REFERENCED))
		return (flags | F_REFERENCED) & ~F_LRU_REFS_MASK;
	if (flags_lru_refs(flags) < 3)
		return flags + (UINT64_C(1) << F_LRU_REFS_SHIFT);
	return flags | F_WORKINGSET;
}

static inline __attribute__((always_inline)) void
main_mark(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id, uint64_t flags)
{
	(void)cpu;
	gen_count_access(e, id, flags, main_next);
}

static void main_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	main_mark(e, cpu, id, folio_flags(folio_at(e, id)));
}

static size_t main_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			    size_t n)
{
	return gen_mark_run(e, cpu, ids, n, main_mark);
}

/* Flags after rmap found the folio young (B.2), and whether that promotes it. */
static uint64_t main_rmap_next(const struct gen_knobs *k, uint64_t flags, bool exec, bool *promote)
{
	bool known = flags & (F_REFERENCED | F_WORKINGSET);

	*promote = known || (exec && flags_type(flags) == TYPE_FILE);
	if (!*promote)
		return (flags | F_REFERENCED) & ~F_LRU_REFS_MASK;
	if (known && k->rmap_refs && main_refs(flags) <= 1)
		return main_next(flags);
	return (flags & ~(F_REFERENCED | F_LRU_REFS_MASK)) | F_WORKINGSET;
}

static bool main_rmap(struct foliage_engine *e, folio_id id, bool exec)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	bool promote;

	do {
		new = main_rmap_next(gen_knobs(e), old, exec, &promote);
	} while (!folio_cas(e, f, &old, new));
	folio_event(e, id, FOLIAGE_EV_ACCESS, FOLIAGE_WHY_YOUNG, -1, -1, old, new);
	return promote;
}

static void main_neighbour_young(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
				 bool exec)
{
	if (main_rmap(e, id, exec))
		cpu_queue_activate(e, cpu, id);
}

static enum references main_references(struct foliage_engine *e, struct scan_control *sc,
				       folio_id id, const struct referenced *ref)
{
	(void)sc;
	if (ref->contended)
		return REFERENCES_KEEP;
	if (!ref->ptes)
		return REFERENCES_RECLAIM;
	return main_rmap(e, id, ref->exec) ? REFERENCES_ACTIVATE : REFERENCES_KEEP;
}

static void main_walk_young(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool exec)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	int from, to;

	do {
		from = to = flags_gen(old);
		if (from < 0 || !(old & F_PRESENT))
			return;
		if (!(old & (F_REFERENCED | F_WORKINGSET)) &&
		    !(exec && flags_type(old) == TYPE_FILE)) {
			new = (old | F_REFERENCED) & ~F_LRU_REFS_MASK;
		} else {
			to = gen_of(gen_max_seq(lv));
			new = (flags_with_gen(old, to) & ~(F_REFERENCED | F_LRU_REFS_MASK)) |
			      F_WORKINGSET;
		}
		if (new == old)
			return;
	} while (!folio_cas(e, f, &old, new));
	if (from != to) {
		gen_move_size(e, lv, old, from, to);
		stat_add(e, lv, STAT_PROMOTED, flags_nr(old));
	}
	folio_event(e, id, from == to ? FOLIAGE_EV_ACCESS : FOLIAGE_EV_MOVE, FOLIAGE_WHY_YOUNG,
		    (int64_t)gen_seq(gen_max_seq(lv), from), (int64_t)gen_seq(gen_max_seq(lv), to),
		    old, new);
}

/* ---- coming in ---- */

/* Spend readahead credits, pulling a batch from the lruvec's pot when the cpu's pocket is empty
 * (D.3). */
static bool take_credit(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			uint32_t nr)
{
	int64_t pot, take;

	if (cpu->credit_owner != lv->index + 1) {
		cpu->credit_owner = lv->index + 1;
		cpu->credits = 0;
	}
	if (cpu->credits < nr) {
		pot = counter_read(&lv->gen.ra_credits);
		do {
			take = MIN(pot, (int64_t)gen_knobs(e)->credit_batch);
			if (take <= 0)
				break;
		} while (!atomic_compare_exchange_weak(&lv->gen.ra_credits, &pot, pot - take));
		if (take > 0)
			cpu->credits += (uint32_t)take;
	}
	if (cpu->credits < nr)
		return false;
	cpu->credits -= nr;
	return true;
}

static void main_queue(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	const struct gen_knobs *k = gen_knobs(e);
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	bool activate;

	if (!cpu->in_lru_fault || cpu->in_reclaim || !flags_evictable(flags))
		return;
	activate = k->fault_add == FAULT_ADD_ACTIVE || flags & F_WORKINGSET;
	if (!activate && k->fault_add == FAULT_ADD_CREDIT && flags_type(flags) == TYPE_FILE)
		activate = take_credit(e, cpu, folio_lruvec(e, f), (uint32_t)flags_nr(flags));
	if (activate)
		folio_change(e, f, 0, F_ACTIVE);
	else if (!(flags & F_REFERENCED))
		main_mark_accessed(e, cpu, id);
}

static void accrue_credit(struct foliage_engine *e, struct lruvec *lv, int64_t nr)
{
	const struct gen_knobs *k = gen_knobs(e);
	int64_t cap = (int64_t)(gen_type_size(e, lv, TYPE_FILE) / k->credit_cap);

	if (counter_read(&lv->gen.ra_credits) < cap)
		counter_add(e, &lv->gen.ra_credits, nr);
}

/* B.7 */
static void main_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			 folio_id id, uint64_t shadow)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f), refs = shadow_time(shadow) & 3;
	unsigned int type = flags_type(flags);
	bool w = shadow_workingset(shadow);

	if (!gen_refault_begin(e, lv, id, shadow, false))
		return;
	gen_refault_tier(e, lv, id, w ? MAX_NR_TIERS - 1 : order_base_2(refs + 1));
	if (cpu->in_lru_fault && type == TYPE_FILE && gen_knobs(e)->fault_add == FAULT_ADD_CREDIT)
		accrue_credit(e, lv, flags_nr(flags));
	if (cpu->in_lru_fault && (w || !gen_knobs(e)->restore_only))
		stat_add(e, lv, stat_of(STAT_ACTIVATE_ANON, type), flags_nr(flags));
	if (w) {
		folio_change(e, f, 0, F_WORKINGSET);
		stat_add(e, lv, stat_of(STAT_RESTORE_ANON, type), flags_nr(flags));
	} else {
		folio_change(e, f, F_LRU_REFS_MASK, refs << F_LRU_REFS_SHIFT);
	}
}

/* ---- the policies ---- */

static unsigned int main_accesses(uint64_t flags)
{
	return flags & F_WORKINGSET ? 5 : main_refs(flags);
}

static const struct gen_rules main_rules = {
	.refs = main_accesses,
	.tier = main_tier,
	.saturated = main_saturated,
	.bump = main_bump,
	.place = main_place,
	.isolate = main_isolate,
	.tier_idx = gen_tier_idx,
	.token = main_token,
	.count_forced = true,
};

static const struct foliage_engine_policy main_ops = {
	.mark_accessed = main_mark_accessed,
	.mark_run = main_mark_run,
	.neighbour_young = main_neighbour_young,
	.walk_young = main_walk_young,
	.refault = main_refault,
	.queue = main_queue,
	.shadow = gen_shadow,
	.add = gen_add,
	.del = gen_del,
	.activate = gen_activate,
	.deactivate = gen_deactivate,
	.references = main_references,
	.references_by_ptes = true,
	.shrink_lruvec = gen_shrink_lruvec,
	.size = gen_type_size,
	.active = gen_active,
	.memcg_lru = true,
	.init = gen_init,
	.reparent = gen_reparent,
	.drain_next = gen_drain_next,
	.is_valid = gen_is_valid,
	.rules = &main_rules,
};

static const char *const fault_add_names[] = {"mark", "active", "credit", NULL};

static const struct foliage_knob main_knobs[] = {
	{"fault_add",
	 "pages added in a fault: mark once (6cbdd9726fb5), set active (revert), by credit (D.1, "
	 "D.3)",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, fault_add), FAULT_ADD_MARK, 0, 2,
	 fault_add_names},
	{"lift",
	 "accesses before the drain that lift a folio to the second oldest generation; 0: "
	 "workingset only (B.3)",
	 FOLIAGE_KNOB_UINT, offsetof(struct gen_knobs, lift), 1, 0, 4, NULL},
	{"file_far",
	 "active file folios without W enter one below the second youngest generation (quick fix, "
	 "D.1)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, file_far), 0, 0, 1, NULL},
	{"rmap_refs", "the second look by rmap sets W only from two refs on (6cbdd9726fb5, B.2)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, rmap_refs), 1, 0, 1, NULL},
	{"restore_only", "only workingset refaults count as activated (6cbdd9726fb5, B.7)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, restore_only), 1, 0, 1, NULL},
	{"noio", "without __GFP_IO scan file only when the swap cache is below 1/64 of anon (D.2)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, noio), 0, 0, 1, NULL},
	{"noio_fold", "the reviewer's variant of noio: aging is restricted as well (D.2)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, noio_fold), 0, 0, 1, NULL},
	{"credit_batch", "credits a cpu pulls at once (D.3)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, credit_batch), 64, 1, 4096, NULL},
	{"credit_cap", "credits are capped at the file pages divided by this (FREE, D.3)",
	 FOLIAGE_KNOB_UINT, offsetof(struct gen_knobs, credit_cap), 8, 1, 1024, NULL},
	{"credit_decay", "halve the credits when the oldest file generation closes (FREE, D.3)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, credit_decay), 1, 0, 1, NULL},
	{"memcg_abort", "memcg-limit reclaim stops once its target is met (B.11)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, memcg_abort), 1, 0, 1, NULL},
	{"histgens", "generations with counters of their own: 1, or 4 as with CONFIG_LRU_GEN_STATS",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, histgens), 0, 0, 1, gen_histgens_names},
	{"gain_base", "weight of tier 0 in the feedback (B.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_base), 2, 1, 100, NULL},
	{"gain_tier", "weight of the judged tier in the feedback (B.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_tier), 3, 1, 100, NULL},
	{0},
};

const struct foliage_policy foliage_policy_mglru = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru",
	.summary = "mainline multi-gen LRU of autumn 2026, the \"before\" of the threads (part B)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.engine = &main_ops,
};

const struct foliage_policy foliage_policy_mglru_revert = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-revert",
	.summary = "mglru with commit 6cbdd9726fb5 reverted (D.1)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.preset = "fault_add=active,lift=0,rmap_refs=0,restore_only=0",
	.engine = &main_ops,
};

const struct foliage_policy foliage_policy_mglru_quickfix = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-quickfix",
	.summary = "the quick fix of October 16: faulted file pages enter below the second "
		   "youngest (D.1)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.preset = "fault_add=active,lift=0,file_far=1,rmap_refs=0,restore_only=0",
	.engine = &main_ops,
};

const struct foliage_policy foliage_policy_mglru_oneline = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-oneline",
	.summary = "the one-line variant: two accesses before the drain lift a folio (D.1)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.preset = "lift=2",
	.engine = &main_ops,
};

const struct foliage_policy foliage_policy_mglru_credit = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-credit",
	.summary = "mglru with dynamic protection of readahead faults by credits (D.3)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.preset = "fault_add=credit",
	.engine = &main_ops,
};

const struct foliage_policy foliage_policy_mglru_noio = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-noio",
	.summary = "mglru with the GFP_NOIO scanning RFC v2 (D.2)",
	.knobs = main_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.preset = "noio=1",
	.engine = &main_ops,
};
