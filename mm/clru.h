/* SPDX-License-Identifier: MIT
 *
 * The classic LRU (part A of the specification): an active and an inactive list per type.
 *
 *   mm/clru.c          lists and flags, the hit path, the table of operations (A.1, A.2)
 *   mm/clru_shrink.c   isolation, shrinking, the loop of one lruvec (A.3, A.4, A.6)
 *   mm/clru_balance.c  what decides how much of which list is scanned (A.5)
 *   mm/workingset.c    non-resident age, refault distance (A.7)
 *
 * Two policies share it: `clru`, the newest kernel, whose decisions see exact numbers, and
 * `clru-6.12`, which decides on statistics that stand still between two flushes and keeps the older
 * cost model.
 */
#ifndef FOLIAGE_MM_CLRU_H
#define FOLIAGE_MM_CLRU_H

#include "mm/reclaim.h"

enum clru_cost_model { CLRU_COST_SAMPLED, CLRU_COST_NOTED };
enum clru_refault { CLRU_REFAULT_DISTANCE, CLRU_REFAULT_ALWAYS, CLRU_REFAULT_NEVER };

struct clru_knobs {
	uint32_t frozen;         /* decide on the statistics of the last flush */
	uint32_t flush_every;    /* accesses between two flushes, for whoever drives the engine */
	uint32_t cost;           /* enum clru_cost_model */
	uint32_t refault;        /* enum clru_refault: which refaults come back active */
	uint32_t activate_batch; /* second accesses wait in the cpu's batch (SMP) */
	uint32_t reclaim_clean;  /* PG_referenced without a young bit frees only clean folios */
	uint32_t deactivate_ref; /* deactivation clears PG_referenced */
	uint32_t clock_activate; /* activations by access advance the non-resident age */
	uint32_t skip_max;  /* folios of too high zones set aside in one isolation; 0: no limit */
	uint32_t anon_only; /* swappiness 201 means anonymous memory only */
};

static inline const struct clru_knobs *clru_knobs(const struct foliage_engine *e)
{
	return e->knobs;
}

extern const struct foliage_policy foliage_policy_clru, foliage_policy_clru_612;

/* How many accesses may pass between two calls of foliage_flush_stats(); 0: this policy needs
 * none. */
uint32_t clru_flush_every(const struct foliage_engine *e);

static inline int clru_list(unsigned int type, bool active)
{
	return (int)type * 2 + active;
}

/* One of the two statistics that come in an (anon, file) pair. */
static inline enum stat_item clru_stat(enum stat_item anon, unsigned int type)
{
	return (enum stat_item)((unsigned int)anon + type);
}

/* -- clru_shrink.c -- */
enum references clru_references(struct foliage_engine *e, struct scan_control *sc, folio_id id,
				const struct referenced *ref);
bool clru_shrink_lruvec(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc);

/* -- clru_balance.c -- */
/* Pages on a list and ACTIVATE of a type, over the subtree of the lruvec's memcg, as decisions see
 * them. */
uint64_t clru_seen_size(const struct foliage_engine *e, const struct lruvec *lv, int list);
int64_t clru_seen_activate(const struct foliage_engine *e, const struct lruvec *lv,
			   unsigned int type);
bool clru_inactive_is_low(const struct foliage_engine *e, const struct lruvec *lv,
			  unsigned int type);
void clru_prepare_scan(struct foliage_engine *e, struct scan_control *sc);
void clru_end_session(struct foliage_engine *e, struct scan_control *sc);
/* Pages to scan of the four lists at this priority. */
void clru_scan_count(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		     uint64_t nr[4]);
/* The older cost model: what reclaim of a type has cost, told to the lruvec and its ancestors. No
 * lock held. */
void clru_note_cost(struct foliage_engine *e, struct lruvec *lv, unsigned int type, uint64_t nr_io,
		    uint64_t nr_rotated);
void clru_flush_stats(struct foliage_engine *e, struct lruvec *lv);
/* Start decisions from what is there now. */
void clru_balance_init(struct foliage_engine *e, struct lruvec *lv);

/* -- workingset.c -- */
/* Advance the non-resident age of the lruvec and its ancestors. */
void workingset_age(const struct foliage_engine *e, struct lruvec *lv, int64_t nr);
uint64_t workingset_eviction(struct foliage_engine *e, struct lruvec *target, folio_id id);
void workingset_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			folio_id id, uint64_t shadow);

#endif
