/* SPDX-License-Identifier: MIT
 *
 * Rules of MGLRU in Linux 6.12 (LINUX-6.12.md section 1.1): the policy that can be held against a
 * booted kernel.
 *
 * The access counter: the first access sets R, the second W, the next three raise C to 3; refs = C
 * + W (0..4), and R only says that there was an access since the folio was last isolated.
 */
#include "mm/engine_policies.h"
#include "mm/gen.h"
#include "mm/shadow.h"

static unsigned int v612_refs(uint64_t flags)
{
	return flags_lru_refs(flags) + !!(flags & F_WORKINGSET);
}

static unsigned int v612_tier(uint64_t flags)
{
	return order_base_2(v612_refs(flags) + 1);
}

static bool v612_saturated(uint64_t flags)
{
	return v612_refs(flags) == 4;
}

static uint64_t v612_bump(const struct gen_knobs *k, uint64_t flags)
{
	(void)k;
	return flags & ~F_REFS_MASK;
}

static uint64_t v612_isolate(uint64_t flags)
{
	return flags & F_REFERENCED ? flags & ~F_REFERENCED : flags & ~F_REFS_MASK;
}

static unsigned int v612_token(uint64_t flags)
{
	unsigned int refs = v612_refs(flags);

	return (refs ? refs - 1 : 0) << 1 | (refs > 0);
}

static uint64_t v612_place(const struct gen_knobs *k, const struct lruvec *lv, uint64_t *flags,
			   bool reclaiming)
{
	unsigned int type = flags_type(*flags);
	uint64_t max_seq = gen_max_seq(lv), min_seq = gen_min_seq(lv, type);

	(void)k;
	if (*flags & F_ACTIVE) {
		*flags &= ~(F_REFERENCED | F_LRU_REFS_MASK);
		return max_seq;
	}
	if ((*flags & F_ANON && type == TYPE_ANON && !(*flags & F_SWAPCACHE)) ||
	    (*flags & F_RECLAIM && *flags & (F_DIRTY | F_WRITEBACK)))
		return max_seq - 1;
	if (reclaiming || min_seq + MIN_NR_GENS >= max_seq)
		return min_seq;
	return min_seq + 1;
}

static uint64_t v612_next(uint64_t flags)
{
	if (!(flags & F_REFERENCED))
		return flags | F_REFERENCED;
	if (!(flags & F_WORKINGSET))
		return flags | F_WORKINGSET;
	if (flags_lru_refs(flags) < 3)
		return flags + (UINT64_C(1) << F_LRU_REFS_SHIFT);
	return flags;
}

static inline __attribute__((always_inline)) void
v612_mark(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id, uint64_t flags)
{
	(void)cpu;
	gen_count_access(e, id, flags, v612_next);
}

static void v612_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	v612_mark(e, cpu, id, folio_flags(folio_at(e, id)));
}

static size_t v612_mark_run(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			    size_t n)
{
	return gen_mark_run(e, cpu, ids, n, v612_mark);
}

static void v612_walk_young(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool exec)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	int from, to;

	(void)exec;
	do {
		if (!(old & F_PRESENT))
			return;
		from = flags_gen(old);
		to = gen_of(gen_max_seq(lv));
		new = from < 0 ? old | F_REFERENCED : flags_with_gen(old & ~F_REFS_MASK, to);
		if (new == old)
			return;
	} while (!folio_cas(e, f, &old, new));
	if (from >= 0 && from != to) {
		gen_move_size(e, lv, old, from, to);
		stat_add(e, lv, STAT_PROMOTED, flags_nr(old));
		folio_event(e, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_YOUNG,
			    (int64_t)gen_seq(gen_max_seq(lv), from), (int64_t)gen_max_seq(lv), old,
			    new);
	}
}

static void v612_neighbour_young(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
				 bool exec)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	(void)exec;
	if (flags_gen(flags) < 0) {
		folio_change(e, f, 0, F_REFERENCED);
	} else if (flags_gen(flags) != gen_of(gen_max_seq(folio_lruvec(e, f)))) {
		folio_change(e, f, F_REFS_MASK, 0);
		cpu_queue_activate(e, cpu, id);
	}
}

/* The classic decision (A.3 with the changes of 1.2). */
static enum references v612_references(struct foliage_engine *e, struct scan_control *sc,
				       folio_id id, const struct referenced *ref)
{
	struct folio *f = folio_at(e, id);
	uint64_t before;

	(void)sc;
	if (ref->contended)
		return REFERENCES_KEEP;
	before = folio_change(e, f, F_REFERENCED, ref->ptes ? F_REFERENCED : 0);
	if (ref->ptes) {
		if (before & F_REFERENCED || ref->ptes > 1)
			return REFERENCES_ACTIVATE;
		if (ref->exec && flags_type(before) == TYPE_FILE)
			return REFERENCES_ACTIVATE;
		return REFERENCES_KEEP;
	}
	return before & F_REFERENCED && flags_type(before) == TYPE_FILE ? REFERENCES_RECLAIM_CLEAN
									: REFERENCES_RECLAIM;
}

static void v612_queue(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	struct folio *f = folio_at(e, id);

	if (cpu->in_lru_fault && !cpu->in_reclaim && flags_evictable(folio_flags(f)))
		folio_change(e, f, 0, F_ACTIVE);
}

static void v612_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			 folio_id id, uint64_t shadow)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	unsigned int refs = (unsigned int)(shadow_time(shadow) & 3) + shadow_workingset(shadow);
	unsigned int type = flags_type(flags);

	if (!gen_refault_begin(e, lv, id, shadow, true))
		return;
	gen_refault_tier(e, lv, id, order_base_2(refs + 1));
	stat_add(e, lv, stat_of(STAT_ACTIVATE_ANON, type), flags_nr(flags));
	if (cpu->in_lru_fault || refs >= 3) {
		folio_change(e, f, 0, F_WORKINGSET | F_LRU_REFS_MASK);
		stat_add(e, lv, stat_of(STAT_RESTORE_ANON, type), flags_nr(flags));
	}
}

static unsigned int v612_accesses(uint64_t flags)
{
	return !!(flags & F_REFERENCED) + v612_refs(flags);
}

static const struct gen_rules v612_rules = {
	.refs = v612_accesses,
	.tier = v612_tier,
	.saturated = v612_saturated,
	.bump = v612_bump,
	.place = v612_place,
	.isolate = v612_isolate,
	.tier_idx = gen_tier_idx,
	.token = v612_token,
	.v612 = true,
	.sort_to_tail = true,
	.count_saturated = true,
};

static const struct foliage_engine_policy v612_ops = {
	.mark_accessed = v612_mark_accessed,
	.mark_run = v612_mark_run,
	.neighbour_young = v612_neighbour_young,
	.walk_young = v612_walk_young,
	.refault = v612_refault,
	.queue = v612_queue,
	.shadow = gen_shadow,
	.add = gen_add,
	.del = gen_del,
	.activate = gen_activate,
	.deactivate = gen_deactivate,
	.references = v612_references,
	.shrink_lruvec = gen_shrink_lruvec,
	.size = gen_type_size,
	.active = gen_active,
	.memcg_lru = true,
	.init = gen_init,
	/* No reparent: a removed cgroup's folios stay in its offline lruvec (B.14 row). */
	.drain_next = gen_drain_next,
	.is_valid = gen_is_valid,
	.rules = &v612_rules,
};

static const struct foliage_knob v612_knobs[] = {
	{"memcg_abort",
	 "memcg-limit reclaim stops once its target is met; the kernel never does (1.1, B.11)",
	 FOLIAGE_KNOB_BOOL, offsetof(struct gen_knobs, memcg_abort), 0, 0, 1, NULL},
	{"histgens", "generations with counters of their own: 1, or 4 as with CONFIG_LRU_GEN_STATS",
	 FOLIAGE_KNOB_ENUM, offsetof(struct gen_knobs, histgens), 0, 0, 1, gen_histgens_names},
	{"gain_base", "weight of tier 0 in the feedback (1.1, B.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_base), 1, 1, 100, NULL},
	{"gain_tier", "weight of the judged tier in the feedback (1.1, B.6)", FOLIAGE_KNOB_UINT,
	 offsetof(struct gen_knobs, gain_tier), 2, 1, 100, NULL},
	{0},
};

const struct foliage_policy foliage_policy_mglru_612 = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "mglru-6.12",
	.summary = "multi-gen LRU of Linux 6.12, held against a booted kernel (LINUX-6.12.md 1.1)",
	.knobs = v612_knobs,
	.knobs_size = sizeof(struct gen_knobs),
	.engine = &v612_ops,
};
