/* SPDX-License-Identifier: MIT
 *
 * Aging (B.8): closing the oldest generation of a type and opening a new youngest one.
 *
 * Closing is usually free, because eviction has emptied the list. When aging comes first, with four
 * generations in use, the oldest has to be moved up folio by folio: under the lock, which is given
 * up every 4096 folios.
 */
#include "mm/gen.h"
#include "mm/walk.h"

#ifdef FOLIAGE_DEBUG_VALID
#include <assert.h>
#endif

static void close_oldest(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	gen_carry_over(e, lv, type);
	atomic_fetch_add_explicit(&lv->gen.min_seq[type], 1, memory_order_release);
	gen_window_moved(e, lv);
}

/* Move up to `budget` folios of the oldest generation; returns true when none is left. */
static bool move_oldest(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			uint32_t *budget)
{
	const struct gen_rules *rules = e->ops->rules;
	uint64_t min_seq = gen_min_seq(lv, type);
	unsigned int hist = gen_hist(gen_knobs(e), min_seq);

	for (unsigned int zone = 0; zone < e->nr_zones; zone++) {
		folio_id head = list_head(lv->index, gen_list(gen_of(min_seq), type, zone));

		while (!list_empty(e, head)) {
			folio_id id = list_last(e, head);
			struct folio *f = folio_at(e, id);
			uint64_t flags = folio_flags(f);
			bool yielded;
			int gen = gen_inc(e, lv, id, &yielded);

			if (!yielded && rules->count_forced &&
			    (rules->count_saturated || !rules->saturated(flags)))
				lv->gen.protected_[hist][type][rules->tier(flags)] +=
					(uint64_t)flags_nr(flags);
			folio_set_list(f, gen_list(gen, type, zone));
			list_del(e, id);
			list_add_tail(e, list_head(lv->index, f->list), id);
			folio_event(e, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_FORCED_AGE,
				    (int64_t)min_seq, (int64_t)gen_seq(gen_max_seq(lv), gen), flags,
				    folio_flags(f));
			if (--*budget == 0)
				return false;
		}
	}
	return true;
}

void gen_raise_oldest(struct foliage_engine *e, struct lruvec *lv, unsigned int type)
{
	uint32_t budget;

	do {
		budget = UINT32_MAX;
	} while (!move_oldest(e, lv, type, &budget));
	close_oldest(e, lv, type);
}

/* False: the lock must be given up before going on. */
static bool inc_min_seq(struct foliage_engine *e, struct lruvec *lv, unsigned int type,
			int swappiness)
{
	uint32_t budget = MAX_LRU_BATCH;

	/* The shortcut: folios that may not be evicted are not touched. The list index is reused,
	 * so that they become the youngest generation: the inversion that the GFP_NOIO thread is
	 * about (D.2). */
	if (type_evictable(type, swappiness) && !move_oldest(e, lv, type, &budget))
		return false;
	close_oldest(e, lv, type);
	return true;
}

static bool oldest_empty(const struct foliage_engine *e, const struct lruvec *lv, unsigned int type,
			 uint64_t seq)
{
	for (unsigned int zone = 0; zone < e->nr_zones; zone++)
		if (!list_empty(e, list_head(lv->index, gen_list(gen_of(seq), type, zone))))
			return false;
	return true;
}

/* Keep the types within one another's reach (B.8; LINUX-6.12 row "try_to_inc_min_seq"). */
static void limit_reach(const struct gen_rules *rules, uint64_t max_seq, uint64_t min_seq[NR_TYPES],
			uint64_t file_before)
{
	uint64_t s = max_seq - MIN_NR_GENS;

	if (rules->v612) {
		min_seq[TYPE_ANON] = MIN(min_seq[TYPE_ANON], min_seq[TYPE_FILE]);
		min_seq[TYPE_FILE] = MAX(min_seq[TYPE_ANON], file_before);
		return;
	}
	if (min_seq[TYPE_ANON] > s && min_seq[TYPE_FILE] < s)
		min_seq[TYPE_ANON] = s;
	else if (min_seq[TYPE_FILE] > s && min_seq[TYPE_ANON] < s)
		min_seq[TYPE_FILE] = s;
}

bool gen_try_inc_min_seq(struct foliage_engine *e, struct lruvec *lv, int swappiness)
{
	uint64_t max_seq = gen_max_seq(lv);
	uint64_t before[NR_TYPES] = {gen_min_seq(lv, TYPE_ANON), gen_min_seq(lv, TYPE_FILE)};
	uint64_t min_seq[NR_TYPES] = {before[TYPE_ANON], before[TYPE_FILE]};
	bool advanced = false, done = false;

	for (unsigned int type = 0; type < NR_TYPES; type++) {
		if (!type_evictable(type, swappiness))
			continue;
		while (min_seq[type] + MIN_NR_GENS <= max_seq &&
		       oldest_empty(e, lv, type, min_seq[type])) {
			min_seq[type]++;
			advanced = true;
		}
	}
	if (!advanced)
		return false;
	if (swappiness > 0 && swappiness <= 200)
		limit_reach(e->ops->rules, max_seq, min_seq, before[TYPE_FILE]);
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		if (min_seq[type] <= before[type])
			continue;
		/* 6.12 carries over once, however far it advances. */
		for (uint64_t seq = before[type]; seq < min_seq[type]; seq++)
			if (seq == before[type] || !e->ops->rules->v612) {
				gen_carry_over(e, lv, type);
				if (!e->ops->rules->v612)
					atomic_store_explicit(&lv->gen.min_seq[type], seq + 1,
							      memory_order_release);
			}
		atomic_store_explicit(&lv->gen.min_seq[type], min_seq[type], memory_order_release);
		gen_window_moved(e, lv);
		done = true;
	}
	return done;
}

bool gen_inc_max_seq(struct foliage_engine *e, struct lruvec *lv, uint64_t seq, int swappiness)
{
	uint64_t now = engine_now_ms(e);

	lruvec_lock(e, lv);
restart:
	if (seq < gen_max_seq(lv)) {
		lruvec_unlock(e, lv, 0);
		return false;
	}
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		if (gen_nr(lv, type) < MAX_NR_GENS || inc_min_seq(e, lv, type, swappiness))
			continue;
		lruvec_unlock(e, lv, MAX_LRU_BATCH);
		engine_yield(e);
		lruvec_lock(e, lv);
		goto restart;
	}
	gen_clear_history(e, lv, seq + 1);
	lv->gen.timestamps[gen_of(seq + 1)] = now;
	atomic_store_explicit(&lv->gen.max_seq, seq + 1, memory_order_release);
	gen_window_moved(e, lv);
	stat_add(e, lv, STAT_AGINGS, 1);
	folio_event(e, -1, FOLIAGE_EV_AGE, FOLIAGE_WHY_NONE, (int64_t)seq, (int64_t)seq + 1, 0, 0);
#ifdef FOLIAGE_DEBUG_VALID
	assert(!e->exclusive || gen_is_valid(e, lv, NULL) == 0);
#endif
	lruvec_unlock(e, lv, 1);
	return true;
}

bool gen_try_inc_max_seq(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			 uint64_t seq, int swappiness, bool force_scan)
{
	bool mine;

	if (e->caps & FOLIAGE_LRU_GEN_MM_WALK && e->backend.next_mapping)
		mine = walk_mms(e, lv, sc, seq, swappiness, force_scan);
	else
		mine = walk_skip(e, lv, seq);
	return mine && gen_inc_max_seq(e, lv, seq, swappiness);
}
