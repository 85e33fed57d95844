/* SPDX-License-Identifier: MIT
 *
 * Generations: where a folio enters (B.3, C.7), what the counters say, how tiers are judged (B.6,
 * C.6).
 *
 *      min_seq                                max_seq
 *      | oldest |            | second youngest | youngest |
 *      evicted from  <- - - - aging opens one here - - - ->
 *
 * Between two and four generations of each type exist. nr_pages[] follows the flag word of a folio,
 * the lists follow when eviction passes by.
 */
#include "mm/gen.h"
#include "mm/shadow.h"
#include "mm/walk.h"

#include <errno.h>

const char *const gen_histgens_names[] = {"1", "4", NULL};

/* Hand the counters of a dying lruvec to the live ancestor. */
static void gen_settle(const struct foliage_engine *e, struct lruvec *lv)
{
	struct lruvec *to = lruvec_live(e, lv->index);

	for (int gen = 0; gen < MAX_NR_GENS; gen++)
		for (int type = 0; type < NR_TYPES; type++)
			for (int zone = 0; zone < MAX_NR_ZONES; zone++)
				counter_add(e, &to->gen.nr_pages[gen][type][zone],
					    atomic_exchange(&lv->gen.nr_pages[gen][type][zone], 0));
	for (int type = 0; type < NR_TYPES; type++)
		counter_add(e, &to->gen.nr_active[type],
			    atomic_exchange(&lv->gen.nr_active[type], 0));
	/* The ancestor may have begun to die meanwhile, and collected its counters already. */
	gen_settle_dying(e, to);
}

void gen_settle_dying(const struct foliage_engine *e, struct lruvec *lv)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&lv->dying, memory_order_relaxed))
		gen_settle(e, lv);
}

/* ---- on and off the lists ---- */

void gen_add(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming)
{
	const struct gen_rules *rules = e->ops->rules;
	const struct gen_knobs *k = gen_knobs(e);
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new, seq;
	unsigned int type = flags_type(old);
	int gen;

	do {
		new = old & ~F_ISOLATED;
		seq = rules->place(k, lv, &new, reclaiming);
		gen = gen_of(seq);
		new = flags_with_gen(new & ~F_ACTIVE, gen) | F_LRU;
	} while (!folio_cas(e, f, &old, new));
	gen_move_size(e, lv, new, -1, gen);
	if (rules->refs_active && flags_fg_refs(new) >= k->activated)
		counter_add(e, &lv->gen.nr_active[type], flags_nr(new));
	folio_set_list(f, gen_list(gen, type, flags_zone(new)));
	if (reclaiming)
		list_add_tail(e, list_head(lv->index, f->list), id);
	else
		list_add(e, list_head(lv->index, f->list), id);
	folio_event(e, id, FOLIAGE_EV_ADD, FOLIAGE_WHY_PLACE, -1, (int64_t)seq, old, new);
}

void gen_del(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;

	do {
		new = (old & ~(F_GEN_MASK | F_LRU)) + F_VERSION_ONE;
	} while (!folio_cas(e, f, &old, new));
	list_del(e, id);
	gen_move_size(e, lv, old, flags_gen(old), -1);
	if (e->ops->rules->refs_active && flags_fg_refs(old) >= gen_knobs(e)->activated)
		counter_add(e, &lv->gen.nr_active[flags_type(old)], -flags_nr(old));
}

void gen_activate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	gen_del(e, lv, id);
	folio_change(e, folio_at(e, id), 0, F_ACTIVE);
	gen_add(e, lv, id, false);
	stat_add(e, lv, STAT_PGACTIVATE, flags_nr(folio_flags(folio_at(e, id))));
}

/* B.14; 6.12 drops only PG_referenced and knows no special case for the oldest generation. */
void gen_deactivate(struct foliage_engine *e, struct lruvec *lv, folio_id id)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	bool v612 = e->ops->rules->v612, oldest;

	oldest = flags_gen(flags) == gen_of(gen_min_seq(lv, flags_type(flags)));
	if (!v612 && oldest) {
		uint64_t old = folio_change(e, f, F_REFS_MASK, 0);

		if (e->ops->rules->refs_active && flags_fg_refs(old) >= gen_knobs(e)->activated)
			counter_add(e, &lv->gen.nr_active[flags_type(old)], -flags_nr(old));
		return;
	}
	gen_del(e, lv, id);
	folio_change(e, f, F_ACTIVE | (v612 ? F_REFERENCED : F_REFS_MASK), 0);
	gen_add(e, lv, id, false);
	stat_add(e, lv, STAT_PGDEACTIVATE, flags_nr(flags));
}

int gen_inc(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool *yielded)
{
	const struct gen_rules *rules = e->ops->rules;
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;
	int oldest = gen_of(gen_min_seq(lv, flags_type(old))), gen = (oldest + 1) % MAX_NR_GENS;

	do {
		/* An access promoted it between the look and here: its choice stands. */
		*yielded = flags_gen(old) != oldest;
		if (*yielded)
			return flags_gen(old);
		new = flags_with_gen(rules->bump(gen_knobs(e), old), gen);
	} while (!folio_cas(e, f, &old, new));
	gen_move_size(e, lv, new, oldest, gen);
	if (rules->refs_active && flags_fg_refs(old) >= gen_knobs(e)->activated &&
	    flags_fg_refs(new) < gen_knobs(e)->activated)
		counter_add(e, &lv->gen.nr_active[flags_type(old)], -flags_nr(old));
	return gen;
}

/* ---- sizes ---- */

uint64_t gen_type_size(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	uint64_t max_seq = gen_max_seq(lv), size = 0;

	for (uint64_t seq = gen_min_seq(lv, type); seq <= max_seq; seq++)
		for (unsigned int zone = 0; zone < e->nr_zones; zone++)
			size += counter_size(&lv->gen.nr_pages[gen_of(seq)][type][zone]);
	return size;
}

uint64_t gen_active(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	uint64_t max_seq = gen_max_seq(lv), size = 0;

	if (e->ops->rules->refs_active)
		return counter_size(&lv->gen.nr_active[type]);
	for (unsigned int zone = 0; zone < e->nr_zones; zone++)
		size += counter_size(&lv->gen.nr_pages[gen_of(max_seq)][type][zone]) +
			counter_size(&lv->gen.nr_pages[gen_of(max_seq - 1)][type][zone]);
	return size;
}

/* ---- feedback ---- */

struct ctrl_pos gen_ctrl_pos(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type,
			     unsigned int first, unsigned int last, uint32_t gain)
{
	const struct lru_gen *g = &lv->gen;
	unsigned int hist = gen_hist(k, gen_min_seq(lv, type));
	struct ctrl_pos pos = {.gain = gain, .sample = g->sample};

	for (unsigned int t = first; t <= last; t++) {
		pos.refaulted +=
			g->avg_refaulted[type][t] + counter_size(&g->refaulted[hist][type][t]);
		pos.total += g->avg_total[type][t] + g->protected_[hist][type][t] +
			     counter_size(&g->evicted[hist][type][t]);
	}
	return pos;
}

/* What counts single refaults, in a sample where each stands for 1 / unit of them. */
static bool ctrl_ok_sampled(const struct ctrl_pos *sp, const struct ctrl_pos *pv, double unit)
{
	double refaulted = (double)pv->refaulted, least = MIN_LRU_BATCH * unit;

	return refaulted < least ||
	       refaulted * ((double)sp->total + least) * sp->gain <=
		       ((double)sp->refaulted + unit) * (double)pv->total * pv->gain;
}

bool gen_ctrl_ok(const struct ctrl_pos *sp, const struct ctrl_pos *pv)
{
	if (__builtin_expect(sp->sample > 0, 0))
		return ctrl_ok_sampled(sp, pv, sp->sample);
	return pv->refaulted < MIN_LRU_BATCH ||
	       pv->refaulted * (sp->total + MIN_LRU_BATCH) * sp->gain <=
		       (sp->refaulted + 1) * pv->total * pv->gain;
}

bool gen_refault_begin(struct foliage_engine *e, struct lruvec *lv, folio_id id, uint64_t shadow,
		       bool exact)
{
	uint64_t flags = folio_flags(folio_at(e, id)),
		 seq = shadow_time(shadow) >> SHADOW_REFS_BITS, now;
	unsigned int type = flags_type(flags);
	bool recent;

	if (shadow_lruvec(e, shadow) != lv) {
		folio_event(e, id, FOLIAGE_EV_REFAULT, FOLIAGE_WHY_STALE, -1, -1, 0, 0);
		return false;
	}
	stat_add(e, lv, type == TYPE_ANON ? STAT_REFAULT_ANON : STAT_REFAULT_FILE, flags_nr(flags));
	now = (exact ? gen_min_seq(lv, type) : gen_max_seq(lv)) & SHADOW_SEQ_MASK;
	recent = exact ? now == seq : (now > seq ? now - seq : seq - now) < MAX_NR_GENS;
	if (!recent)
		stat_add(e, lv, STAT_REFAULT_STALE, flags_nr(flags));
	folio_event(e, id, FOLIAGE_EV_REFAULT, recent ? FOLIAGE_WHY_RECENT : FOLIAGE_WHY_STALE,
		    (int64_t)seq, -1, 0, 0);
	return recent;
}

void gen_refault_tier(struct foliage_engine *e, struct lruvec *lv, folio_id id, unsigned int tier)
{
	uint64_t flags = folio_flags(folio_at(e, id));
	unsigned int type = flags_type(flags), hist = gen_hist(gen_knobs(e), gen_min_seq(lv, type));

	counter_add(e, &lv->gen.refaulted[hist][type][tier], flags_nr(flags));
}

int gen_tier_idx(const struct gen_knobs *k, const struct lruvec *lv, unsigned int type)
{
	struct ctrl_pos sp = gen_ctrl_pos(k, lv, type, 0, 0, k->gain_base), pv;
	unsigned int tier;

	for (tier = 1; tier < MAX_NR_TIERS; tier++) {
		pv = gen_ctrl_pos(k, lv, type, tier, tier, k->gain_tier);
		if (!gen_ctrl_ok(&sp, &pv))
			break;
	}
	return (int)tier - 1;
}

static void clear_hist(struct lru_gen *g, unsigned int hist, unsigned int type)
{
	for (int t = 0; t < MAX_NR_TIERS; t++) {
		atomic_store_explicit(&g->refaulted[hist][type][t], 0, memory_order_relaxed);
		atomic_store_explicit(&g->evicted[hist][type][t], 0, memory_order_relaxed);
		g->protected_[hist][type][t] = 0;
	}
}

void gen_carry_over(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	const struct gen_knobs *k = gen_knobs(e);
	unsigned int hist = gen_hist(k, gen_min_seq(lv, type));
	struct lru_gen *g = &lv->gen;

	if (type == TYPE_FILE &&
	    k->credit_decay) /* D.3: credits of a past generation are worth half */
		atomic_store_explicit(&g->ra_credits, counter_read(&g->ra_credits) / 2,
				      memory_order_relaxed);
	for (int t = 0; t < MAX_NR_TIERS; t++) {
		uint64_t total =
			counter_size(&g->evicted[hist][type][t]) + g->protected_[hist][type][t];

		g->avg_refaulted[type][t] =
			(g->avg_refaulted[type][t] + counter_size(&g->refaulted[hist][type][t])) /
			2;
		g->avg_total[type][t] = (g->avg_total[type][t] + total) / 2;
	}
	if (!k->histgens)
		clear_hist(g, hist, type);
}

/* With history enabled, the slot of the generation being opened starts empty (B.8). */
void gen_clear_history(struct foliage_engine *e, struct lruvec *lv, uint64_t seq)
{
	const struct gen_knobs *k = gen_knobs(e);

	if (!k->histgens)
		return;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		clear_hist(&lv->gen, gen_hist(k, seq), type);
}

uint64_t gen_shadow(struct foliage_engine *e, struct lruvec *target, folio_id id)
{
	struct folio *f = folio_at(e, id);
	struct lruvec *lv = folio_lruvec(e, f);
	uint64_t flags = folio_flags(f), min_seq;
	unsigned int type = flags_type(flags), refs = e->ops->rules->token(flags);
	unsigned int hist;

	(void)target; /* the memcg id is the folio's own (B.7) */
	min_seq = gen_min_seq(lv, type);
	hist = gen_hist(gen_knobs(e), min_seq);
	counter_add(e, &lv->gen.evicted[hist][type][e->ops->rules->tier(flags)], flags_nr(flags));
	return shadow_pack(e->memcgs[lv->memcg].id, lv->node,
			   ((min_seq << SHADOW_REFS_BITS) | refs >> 1) & SHADOW_TIME_MASK,
			   refs & 1);
}

/* ---- life ---- */

void gen_init(struct foliage_engine *e, struct lruvec *lv)
{
	struct lru_gen *g = &lv->gen;
	uint8_t memcg_gen = g->memcg_gen, seg = g->memcg_seg, bin = g->memcg_bin;
	int32_t prev = g->memcg_prev, next = g->memcg_next;

	*g = (struct lru_gen){.memcg_gen = memcg_gen,
			      .memcg_seg = seg,
			      .memcg_bin = bin,
			      .memcg_prev = prev,
			      .memcg_next = next,
			      .sample = e->sample < 1 ? e->sample : 0};
	atomic_store(&g->max_seq, MIN_NR_GENS + 1);
	for (int i = 0; i < MAX_NR_GENS; i++)
		g->timestamps[i] = engine_now_ms(e);
	gen_window_moved(e, lv);
	walk_reset(e, lv);
}

/* C.11: every list of the child, also those outside its window (lazy moves leave folios there),
 * goes to the parent's list of the same index; the parent then has four generations, so that each
 * index means something. */
void gen_reparent(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent)
{
	for (unsigned int type = 0; type < NR_TYPES; type++)
		while (gen_nr(parent, type) < MAX_NR_GENS) {
			/* Only a parent with empty generations lacks them: open one. */
			uint64_t max_seq = gen_max_seq(parent);

			gen_clear_history(e, parent, max_seq + 1);
			parent->gen.timestamps[gen_of(max_seq + 1)] = engine_now_ms(e);
			for (unsigned int t = 0; t < NR_TYPES; t++)
				if (gen_nr(parent, t) == MAX_NR_GENS)
					gen_raise_oldest(e, parent, t);
			atomic_store_explicit(&parent->gen.max_seq, max_seq + 1,
					      memory_order_release);
			gen_window_moved(e, parent);
		}
	for (int list = LIST_GEN; list < LIST_FGW; list++)
		list_splice_tail(e, list_head(child->index, list), list_head(parent->index, list));
	atomic_store(&child->dying, true);
	atomic_thread_fence(memory_order_seq_cst);
	gen_settle(e, child);
}

folio_id gen_drain_next(struct foliage_engine *e, struct lruvec *lv, bool *active)
{
	uint64_t max_seq = gen_max_seq(lv);

	for (int back = 0; back < MAX_NR_GENS; back++)
		for (unsigned int type = 0; type < NR_TYPES; type++)
			for (unsigned int zone = 0; zone < e->nr_zones; zone++) {
				int gen = gen_of(max_seq + MAX_NR_GENS - (uint64_t)back);
				folio_id head = list_head(lv->index, gen_list(gen, type, zone));

				if (list_empty(e, head))
					continue;
				gen = flags_gen(folio_flags(folio_at(e, list_first(e, head))));
				*active = gen == gen_of(max_seq) || gen == gen_of(max_seq - 1);
				return list_first(e, head);
			}
	return FOLIO_NONE;
}

/* ---- validity ---- */

static int check_list(struct foliage_engine *e, struct lruvec *lv, int list,
		      int64_t sum[MAX_NR_GENS][NR_TYPES][MAX_NR_ZONES], int64_t active[NR_TYPES],
		      struct err *err)
{
	folio_id head = list_head(lv->index, list);
	unsigned int type = (unsigned int)((list - LIST_GEN) / MAX_NR_ZONES) % NR_TYPES;
	unsigned int zone = (unsigned int)(list - LIST_GEN) % MAX_NR_ZONES;
	uint64_t max_seq = gen_max_seq(lv);

	for (folio_id id = list_first(e, head), prev = head; id != head;
	     prev = id, id = folio_at(e, id)->next) {
		struct folio *f = folio_at(e, id);
		uint64_t flags = folio_flags(f);
		int gen = flags_gen(flags);

		if (f->prev != prev)
			return err_set(err, -EUCLEAN, "folio %d: prev link is %d, not %d", id,
				       f->prev, prev);
		if (!(flags & F_LRU) || !(flags & F_PRESENT) || flags & (F_ISOLATED | F_ACTIVE))
			return err_set(err, -EUCLEAN, "folio %d: on a list with flags %#llx", id,
				       (unsigned long long)flags);
		if (flags_type(flags) != type || flags_zone(flags) != zone || f->list != list)
			return err_set(err, -EUCLEAN, "folio %d: on list %d, says %d", id, list,
				       f->list);
		if (folio_lruvec(e, f) != lv)
			return err_set(err, -EUCLEAN, "folio %d: on lruvec %u, owned by another",
				       id, lv->index);
		if (gen < 0 || gen >= MAX_NR_GENS || gen_seq(max_seq, gen) < gen_min_seq(lv, type))
			return err_set(err, -EUCLEAN,
				       "folio %d: generation %d is outside the window %llu..%llu",
				       id, gen, (unsigned long long)gen_min_seq(lv, type),
				       (unsigned long long)max_seq);
		sum[gen][type][zone] += flags_nr(flags);
		if (e->ops->rules->refs_active && flags_fg_refs(flags) >= gen_knobs(e)->activated)
			active[type] += flags_nr(flags);
	}
	return 0;
}

int gen_is_valid(struct foliage_engine *e, struct lruvec *lv, struct err *err)
{
	int64_t sum[MAX_NR_GENS][NR_TYPES][MAX_NR_ZONES] = {{{0}}}, active[NR_TYPES] = {0};
	int rc = 0;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (gen_nr(lv, type) < MIN_NR_GENS || gen_nr(lv, type) > MAX_NR_GENS)
			return err_set(err, -EUCLEAN, "lruvec %u: %u generations of type %u",
				       lv->index, gen_nr(lv, type), type);
	for (int list = LIST_GEN; list < LIST_FGW && !rc; list++)
		rc = check_list(e, lv, list, sum, active, err);
	for (int i = 0; i < MAX_NR_GENS * NR_TYPES * MAX_NR_ZONES && !rc; i++) {
		int gen = i / (NR_TYPES * MAX_NR_ZONES), type = i / MAX_NR_ZONES % NR_TYPES,
		    zone = i % MAX_NR_ZONES;

		if (counter_read(&lv->gen.nr_pages[gen][type][zone]) != sum[gen][type][zone])
			rc = err_set(err, -EUCLEAN,
				     "lruvec %u: nr_pages[%d][%d][%d] is %lld, lists say %lld",
				     lv->index, gen, type, zone,
				     (long long)counter_read(&lv->gen.nr_pages[gen][type][zone]),
				     (long long)sum[gen][type][zone]);
	}
	for (int type = 0; type < NR_TYPES && !rc && e->ops->rules->refs_active; type++)
		if (counter_read(&lv->gen.nr_active[type]) != active[type])
			rc = err_set(err, -EUCLEAN,
				     "lruvec %u: %lld active pages of type %d, flags say %lld",
				     lv->index, (long long)counter_read(&lv->gen.nr_active[type]),
				     type, (long long)active[type]);
	return rc;
}
