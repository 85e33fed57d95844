/* SPDX-License-Identifier: MIT
 *
 * Eviction of the multi-gen family (B.4, C.5): walk the oldest generation of a type from the tail,
 * put what was promoted or is protected where it belongs, isolate the rest, reclaim it. And the
 * loop over batches of one lruvec (B.11).
 *
 *   Linux 6.12 and the newer kernels differ in the loops, not in the idea: 6.12 examines up to 4096
 *   folios a batch and recomputes its budget each time; newer kernels examine at most what the
 *   budget allows and compute it once.
 */
#include "mm/gen.h"

/* Longest run of folios examined in one lock section by 6.12. */
enum { SCAN_LIMIT_612 = MAX_LRU_BATCH };

struct gen_scan {
	unsigned int type;
	int tier_idx;
	int64_t remaining; /* folios that may still be examined */
	int64_t isolated, scanned, skipped, sorted;
	struct folio_set *out;
	struct folio_set *aside; /* could not be isolated: back to the head */
};

static void relink(struct foliage_engine *e, struct lruvec *lv, folio_id id, int gen,
		   unsigned int type, unsigned int zone, bool tail)
{
	struct folio *f = folio_at(e, id);

	folio_set_list(f, gen_list(gen, type, zone));
	list_del(e, id);
	if (tail)
		list_add_tail(e, list_head(lv->index, f->list), id);
	else
		list_add(e, list_head(lv->index, f->list), id);
}

/* Sort one folio of the oldest list (B.4, C.5); true: it was put somewhere else. */
static bool sort_folio(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		       struct gen_scan *scan, folio_id id, uint64_t flags)
{
	const struct gen_rules *rules = e->ops->rules;
	uint64_t min_seq = gen_min_seq(lv, scan->type);
	unsigned int zone = flags_zone(flags), tier;
	bool saturated, yielded;
	int gen;

	if (!flags_evictable(flags))
		return false;
	if (flags_gen(flags) != gen_of(min_seq)) {
		relink(e, lv, id, flags_gen(flags), scan->type, zone, false);
		folio_event(e, id, FOLIAGE_EV_SORT, FOLIAGE_WHY_LAZY, (int64_t)min_seq,
			    (int64_t)gen_seq(gen_max_seq(lv), flags_gen(flags)), flags, flags);
		return true;
	}
	tier = rules->tier(flags);
	saturated = rules->saturated(flags);
	if ((int)tier > scan->tier_idx || saturated) {
		gen = gen_inc(e, lv, id, &yielded);
		relink(e, lv, id, gen, scan->type, zone, !yielded && rules->sort_to_tail);
		if (!yielded && (!saturated || rules->count_saturated))
			lv->gen.protected_[gen_hist(gen_knobs(e), min_seq)][scan->type][tier] +=
				(uint64_t)flags_nr(flags);
		stat_add(e, lv, STAT_PROTECTED, flags_nr(flags));
		folio_event(e, id, FOLIAGE_EV_MOVE,
			    saturated ? FOLIAGE_WHY_SATURATED : FOLIAGE_WHY_PROTECT,
			    (int64_t)min_seq, (int64_t)gen_seq(gen_max_seq(lv), gen), flags,
			    folio_flags(folio_at(e, id)));
		return true;
	}
	if (zone > sc->reclaim_idx) {
		gen = gen_inc(e, lv, id, &yielded);
		relink(e, lv, id, gen, scan->type, zone, true);
		return true;
	}
	return false;
}

/* Take the folio off its list into our hands; false when that is not allowed or lost a race. */
static bool isolate_folio(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			  folio_id id)
{
	const struct gen_rules *rules = e->ops->rules;
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f), new;

	/* Freeing it would need I/O: dirty, or anonymous without a slot. Clean shmem has its slot
	 * in its file. */
	if (!sc->gfp_io && flags_type(old) == TYPE_ANON &&
	    (old & F_DIRTY || (old & (F_ANON | F_SWAPCACHE)) == F_ANON))
		return false;
	do {
		new = ((rules->isolate(old) & ~(F_GEN_MASK | F_LRU)) | F_ISOLATED) + F_VERSION_ONE;
	} while (!folio_cas(e, f, &old, new));
	list_del(e, id);
	gen_move_size(e, lv, old, flags_gen(old), -1);
	if (rules->refs_active && flags_fg_refs(old) >= gen_knobs(e)->activated)
		counter_add(e, &lv->gen.nr_active[flags_type(old)], -flags_nr(old));
	return true;
}

static void scan_zone(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		      struct gen_scan *scan, unsigned int zone)
{
	folio_id head = list_head(lv->index,
				  gen_list(gen_of(gen_min_seq(lv, scan->type)), scan->type, zone));
	int64_t skipped = 0;

	scan->aside->nr = 0;
	while (!list_empty(e, head)) {
		folio_id id = list_last(e, head);
		struct folio *f = folio_at(e, id);
		uint64_t flags = folio_flags(f);

		/* Two ahead: the next one's line was asked for in the round before. */
		__builtin_prefetch(folio_at(e, folio_at(e, f->prev)->prev));
		scan->scanned += flags_nr(flags);
		if (sort_folio(e, lv, sc, scan, id, flags)) {
			scan->sorted += flags_nr(flags);
		} else if (isolate_folio(e, lv, sc, id)) {
			scan->out->ids[scan->out->nr++] = id;
			scan->isolated += flags_nr(flags);
		} else {
			list_del(e, id);
			scan->aside->ids[scan->aside->nr++] = id;
			skipped += flags_nr(flags);
		}
		if (--scan->remaining <= 0 || MAX(scan->isolated, skipped) >= sc->batch)
			break;
	}
	for (uint32_t i = 0; i < scan->aside->nr; i++)
		list_add(e, head, scan->aside->ids[i]);
	scan->skipped += skipped;
}

/* Returns what the caller counts as scanned (the two eras differ, see B.4 rows). */
static int64_t scan_folios(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			   unsigned int type, int tier_idx, int64_t nr_to_scan,
			   struct folio_set *out, int64_t *isolated)
{
	bool v612 = e->ops->rules->v612;
	struct folio_set aside;
	struct gen_scan scan = {
		.type = type,
		.tier_idx = tier_idx,
		.remaining = v612 ? SCAN_LIMIT_612 : nr_to_scan,
		.out = out,
		.aside = &aside,
	};

	*isolated = 0;
	if (gen_nr(lv, type) == MIN_NR_GENS)
		return 0;
	for (unsigned int i = e->nr_zones; i > 0; i--) {
		scan_zone(e, lv, sc, &scan, (sc->reclaim_idx + i) % e->nr_zones);
		if (scan.remaining <= 0 || scan.isolated >= sc->batch)
			break;
	}
	stat_add(e, lv, type == TYPE_ANON ? STAT_PGSCAN_ANON : STAT_PGSCAN_FILE, scan.isolated);
	stat_add(e, lv, STAT_PGREFILL, scan.sorted);
	sc->nr_scanned += scan.isolated;
	*isolated = scan.isolated;
	if (v612)
		return scan.isolated || scan.remaining <= 0 ? scan.scanned : 0;
	return scan.scanned;
}

/* ---- which type, which tier ---- */

static unsigned int type_to_scan(const struct foliage_engine *e, const struct lruvec *lv,
				 int swappiness)
{
	const struct gen_knobs *k = gen_knobs(e);
	struct ctrl_pos sp, pv;

	if (swappiness <= 1)
		return TYPE_FILE;
	if (swappiness >= 200)
		return TYPE_ANON;
	sp = gen_ctrl_pos(k, lv, TYPE_ANON, 0, MAX_NR_TIERS - 1, (uint32_t)swappiness);
	pv = gen_ctrl_pos(k, lv, TYPE_FILE, 0, MAX_NR_TIERS - 1, 200 - (uint32_t)swappiness);
	return gen_ctrl_ok(&sp, &pv) ? TYPE_FILE : TYPE_ANON;
}

static int64_t isolate_folios(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			      int swappiness, int64_t nr_to_scan, struct folio_set *out,
			      unsigned int *type_out)
{
	unsigned int type = type_to_scan(e, lv, swappiness);
	int64_t scanned = 0, isolated = 0;

	for (unsigned int round = 0; round < NR_TYPES; round++) {
		int64_t n;

		if (!type_evictable(round, swappiness))
			continue; /* as many rounds as there are evictable types */
		n = scan_folios(e, lv, sc, type, e->ops->rules->tier_idx(gen_knobs(e), lv, type),
				nr_to_scan, out, &isolated);
		*type_out = type;
		scanned += n;
		if (isolated)
			break;
		if (!n)
			type = !type;
	}
	return scanned;
}

/* 6.12 chooses by tier 0 alone, and that comparison also yields the tier (B.4, B.6 rows). */
static int64_t isolate_folios_612(struct foliage_engine *e, struct lruvec *lv,
				  struct scan_control *sc, int swappiness, struct folio_set *out,
				  unsigned int *type_out)
{
	const struct gen_knobs *k = gen_knobs(e);
	unsigned int type = TYPE_FILE;
	int tier = -1;
	int64_t scanned, isolated;

	if (swappiness == 0)
		type = TYPE_FILE;
	else if (gen_min_seq(lv, TYPE_ANON) < gen_min_seq(lv, TYPE_FILE))
		type = TYPE_ANON;
	else if (swappiness == 1)
		type = TYPE_FILE;
	else if (swappiness == 200)
		type = TYPE_ANON;
	else if (!sc->gfp_io)
		type = TYPE_FILE;
	else {
		uint32_t gain[NR_TYPES] = {(uint32_t)swappiness, 200 - (uint32_t)swappiness};
		struct ctrl_pos sp = gen_ctrl_pos(k, lv, TYPE_ANON, 0, 0, gain[TYPE_ANON]);
		struct ctrl_pos pv = gen_ctrl_pos(k, lv, TYPE_FILE, 0, 0, gain[TYPE_FILE]);

		type = gen_ctrl_ok(&sp, &pv) ? TYPE_FILE : TYPE_ANON;
		sp = gen_ctrl_pos(k, lv, !type, 0, 0, gain[!type]);
		for (tier = 1; tier < MAX_NR_TIERS; tier++) {
			pv = gen_ctrl_pos(k, lv, type, (unsigned int)tier, (unsigned int)tier,
					  gain[type]);
			if (!gen_ctrl_ok(&sp, &pv))
				break;
		}
		tier--;
	}
	for (unsigned int round = 0; round < (swappiness ? 2u : 1u); round++) {
		if (tier < 0)
			tier = e->ops->rules->tier_idx(k, lv, type);
		scanned = scan_folios(e, lv, sc, type, tier, 0, out, &isolated);
		*type_out = type;
		if (scanned)
			return scanned;
		type = !type;
		tier = -1;
	}
	return 0;
}

/* ---- survivors ---- */

static bool lands_oldest(const struct foliage_engine *e, const struct lruvec *lv, uint64_t flags)
{
	return e->ops->rules->place(gen_knobs(e), lv, &flags, false) ==
	       gen_min_seq(lv, flags_type(flags));
}

/* Split off those worth a second try; prepare the others for where they go (B.4 survivors). */
static void treat_survivors(struct foliage_engine *e, struct lruvec *lv, struct folio_set *set,
			    struct folio_set *again, bool first)
{
	const struct gen_rules *rules = e->ops->rules;
	uint32_t kept = 0;

	again->nr = 0;
	for (uint32_t i = 0; i < set->nr; i++) {
		folio_id id = set->ids[i];
		struct folio *f = folio_at(e, id);
		uint64_t flags = folio_flags(f);
		uint64_t busy = F_ACTIVE | F_MAPPED | F_DIRTY | F_WRITEBACK | F_LOCKED |
				F_UNEVICTABLE | F_MLOCKED;

		if (rules->v612)
			busy |= F_REFERENCED;
		if (rules->v612 && flags & F_RECLAIM && flags & (F_DIRTY | F_WRITEBACK)) {
			if (flags & F_WORKINGSET)
				folio_change(e, f, 0, F_REFERENCED);
			set->ids[kept++] = id;
		} else if (first && !(flags & busy)) {
			again->ids[again->nr++] = id;
		} else {
			if (rules->v612)
				folio_change(e, f, F_REFS_MASK, F_ACTIVE);
			else if (!(flags & F_ACTIVE) && lands_oldest(e, lv, flags))
				folio_change(e, f,
					     rules->refs_active ? 0
								: F_REFERENCED | F_LRU_REFS_MASK,
					     F_ACTIVE);
			set->ids[kept++] = id;
		}
	}
	set->nr = kept;
}

int64_t gen_evict(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		  int64_t nr_to_scan, int swappiness)
{
	const struct gen_rules *rules = e->ops->rules;
	struct folio_set set = {0}, again;
	unsigned int type = TYPE_FILE;
	int64_t scanned, freed = 0;

	lruvec_lock(e, lv);
	if (rules->v612) {
		scanned = isolate_folios_612(e, lv, sc, swappiness, &set, &type);
		scanned += gen_try_inc_min_seq(e, lv, swappiness);
		if (gen_nr(lv, swappiness ? TYPE_ANON : TYPE_FILE) == MIN_NR_GENS)
			scanned = 0;
	} else {
		gen_try_inc_min_seq(e, lv, swappiness);
		scanned = isolate_folios(e, lv, sc, swappiness, nr_to_scan, &set, &type);
		if (scanned)
			gen_try_inc_min_seq(e, lv, swappiness);
	}
	lruvec_unlock(e, lv, (uint32_t)MIN(scanned, (int64_t)UINT32_MAX));
	for (bool first = true; set.nr; first = false) {
		freed += shrink_folio_list(e, sc, &set);
		if (!set.nr)
			break;
		treat_survivors(e, lv, &set, &again, first);
		putback_folios(e, &set);
		set = again;
	}
	stat_add(e, lv, type == TYPE_ANON ? STAT_PGSTEAL_ANON : STAT_PGSTEAL_FILE, freed);
	sc->nr_reclaimed += freed;
	return scanned;
}

/* ---- one lruvec ---- */

static int gen_scan_swappiness(struct foliage_engine *e, struct lruvec *lv,
			       const struct scan_control *sc, int swappiness)
{
	return gen_knobs(e)->noio ? scan_swappiness(e, lv, sc, swappiness) : swappiness;
}

static uint64_t evictable_size(struct foliage_engine *e, struct lruvec *lv, int swappiness)
{
	uint64_t total = 0;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (type_evictable(type, swappiness))
			total += gen_type_size(e, lv, type);
	return total;
}

bool gen_is_sizable(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	int swappiness = gen_scan_swappiness(e, lv, sc, get_swappiness(e, lv, sc));

	return scaled_budget(e, evictable_size(e, lv, swappiness), sc->priority) > 0;
}

static uint64_t evictable_min_seq(const struct lruvec *lv, int swappiness)
{
	uint64_t seq = UINT64_MAX;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (type_evictable(type, swappiness))
			seq = MIN(seq, gen_min_seq(lv, type));
	return seq;
}

static bool should_run_aging(const struct lruvec *lv, const struct scan_control *sc,
			     uint64_t max_seq, int swappiness)
{
	uint64_t min_seq = evictable_min_seq(lv, swappiness);

	if (min_seq + MIN_NR_GENS > max_seq)
		return true;
	return sc->priority != DEF_PRIORITY && min_seq + MIN_NR_GENS == max_seq;
}

static bool should_abort(const struct foliage_engine *e, const struct scan_control *sc)
{
	const struct node *node = &e->nodes[sc->node];

	if (!sc->root_reclaim && !sc->proactive && !gen_knobs(e)->memcg_abort)
		return false;
	if (sc->nr_reclaimed >= sc->nr_to_reclaim)
		return true;
	return sc->kswapd && node->high_watermark &&
	       node->free_pages >= node->high_watermark + MIN_LRU_BATCH;
}

static bool shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	int original = get_swappiness(e, lv, sc),
	    swappiness = gen_scan_swappiness(e, lv, sc, original);
	int aging = gen_knobs(e)->noio_fold ? swappiness : original;
	bool online = e->memcgs[lv->memcg].online, rotate = false;
	uint64_t total = evictable_size(e, lv, swappiness);
	int64_t left;

	if (swappiness == SWAPPINESS_ANON_ONLY && !can_reclaim_anon(e, lv->memcg, sc))
		return false;
	total = memcg_protect_scan(e, sc, lv->memcg, total);
	left = (int64_t)(online ? scaled_budget(e, total, sc->priority) : total);
	while (left > 0) {
		uint64_t max_seq = gen_max_seq(lv);
		bool need_aging;
		int64_t n;

		if (memcg_below_min(e, sc->target, lv->memcg))
			return true;
		need_aging = should_run_aging(lv, sc, max_seq, swappiness);
		if (need_aging && gen_try_inc_max_seq(e, lv, sc, max_seq, aging, false))
			rotate = true;
		n = gen_evict(e, lv, sc, MIN(left, (int64_t)sc->batch), swappiness);
		if (!n || should_abort(e, sc) || (sc->root_reclaim && need_aging))
			break;
		left -= n;
		engine_yield(e);
	}
	return rotate;
}

/* ---- 6.12 (LINUX-6.12.md rows B.8 should_run_aging, B.11) ---- */

/* Pages to scan now: -1 rotate and stop, 0 stop. */
static int64_t budget_612(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			  int swappiness)
{
	uint64_t max_seq = gen_max_seq(lv),
		 min_seq = gen_min_seq(lv, swappiness ? TYPE_ANON : TYPE_FILE);
	uint64_t total, young = 0, old = 0;
	bool aging;

	if (memcg_below_min(e, sc->target, lv->memcg))
		return -1;
	total = evictable_size(e, lv, swappiness);
	if (min_seq + MIN_NR_GENS > max_seq) {
		aging = true;
		total = 0;
	} else if (min_seq + MIN_NR_GENS < max_seq) {
		aging = false;
	} else {
		for (unsigned int type = swappiness ? TYPE_ANON : TYPE_FILE; type < NR_TYPES;
		     type++)
			for (unsigned int zone = 0; zone < e->nr_zones; zone++) {
				young += counter_size(
					&lv->gen.nr_pages[gen_of(max_seq)][type][zone]);
				old += counter_size(&lv->gen.nr_pages[gen_of(max_seq - MIN_NR_GENS)]
								     [type][zone]);
			}
		aging = young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total;
	}
	if (total && !e->memcgs[lv->memcg].online)
		return (int64_t)total;
	if (!aging || sc->priority == DEF_PRIORITY)
		return (int64_t)scaled_budget(e, total, sc->priority);
	return gen_try_inc_max_seq(e, lv, sc, max_seq, swappiness, false) ? -1 : 0;
}

static bool shrink_lruvec_612(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	int swappiness = MIN(get_swappiness(e, lv, sc), 200);
	int64_t scanned = 0, left;

	for (;;) {
		int64_t n;

		left = budget_612(e, lv, sc, swappiness);
		if (left <= 0)
			break;
		n = gen_evict(e, lv, sc, left, swappiness);
		if (!n)
			break;
		scanned += n;
		if (scanned >= left || should_abort(e, sc))
			break;
		engine_yield(e);
	}
	return left < 0;
}

bool gen_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	return e->ops->rules->v612 ? shrink_lruvec_612(e, lv, sc) : shrink_lruvec(e, lv, sc);
}
