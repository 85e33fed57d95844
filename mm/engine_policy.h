/* SPDX-License-Identifier: MIT
 *
 * The table of operations of an engine policy. CLRU is one implementation, MGLRU with FG and all
 * variants another (one set of functions, three small tables of rules in mm/gen.h), FG-W a third.
 */
#ifndef FOLIAGE_MM_ENGINE_POLICY_H
#define FOLIAGE_MM_ENGINE_POLICY_H

#include "base/err.h"
#include "mm/lruvec.h"

/* What the page tables said of one folio (A.3). */
struct referenced {
	int ptes;       /* mappings found young, cleared */
	bool exec;      /* one of them executable */
	bool locked;    /* some mapping is VM_LOCKED */
	bool contended; /* the rmap lock was busy, or the only mapper is exiting */
};

enum references {
	REFERENCES_RECLAIM,
	REFERENCES_RECLAIM_CLEAN,
	REFERENCES_KEEP,
	REFERENCES_ACTIVATE
};

struct gen_rules;

struct foliage_engine_policy {
	/* -- the hit path: any thread, no lock -- */
	void (*mark_accessed)(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);
	/* The same for a run of folios while they are present: returns how many leading ids were.
	 * Optional. */
	size_t (*mark_run)(struct foliage_engine *e, struct foliage_cpu *cpu, const uint32_t *ids,
			   size_t n);
	/* A young bit was found by look-around without a walk buffer (B.10). */
	void (*neighbour_young)(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
				bool exec);
	/* A young bit was found by the aging walk, or by look-around with its buffer (B.2, C.3). */
	void (*walk_young)(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool exec);

	/* -- coming and going -- */
	/* Before a new folio is queued (0.2.1): refault decision; sets flags on the off-list folio.
	 */
	void (*refault)(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			folio_id id, uint64_t shadow);
	/* A new folio is about to be queued (folio_add_lru). Optional. */
	void (*queue)(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);
	/* The shadow of a folio that reclaim evicts; `target` is the lruvec of the reclaim's target
	 * memcg. */
	uint64_t (*shadow)(struct foliage_engine *e, struct lruvec *target, folio_id id);

	/* -- lists, under the lruvec's lock -- */
	void (*add)(struct foliage_engine *e, struct lruvec *lv, folio_id id, bool reclaiming);
	void (*del)(struct foliage_engine *e, struct lruvec *lv, folio_id id);
	/* Drain of the activate batch: an evictable folio on the lists, not active. */
	void (*activate)(struct foliage_engine *e, struct lruvec *lv, folio_id id);
	/* MADV_COLD (B.14). */
	void (*deactivate)(struct foliage_engine *e, struct lruvec *lv, folio_id id);

	/* -- reclaim -- */
	enum references (*references)(struct foliage_engine *e, struct scan_control *sc,
				      folio_id id, const struct referenced *ref);
	/* references() has nothing to say about a folio that no page table maps: the common case
	 * skips it. */
	bool references_by_ptes;
	/* One lruvec at one priority; true: wants rotation in the memcg LRU. */
	bool (*shrink_lruvec)(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc);
	/* Once per priority pass of the target, before its lruvecs (A.5). Optional. */
	void (*prepare_scan)(struct foliage_engine *e, struct scan_control *sc);
	/* End of a session at the target (A.5 snapshot). Optional. */
	void (*end_session)(struct foliage_engine *e, struct scan_control *sc);
	/* Pages of the lruvec that are on evictable lists, for sizing (B.11). */
	uint64_t (*size)(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
	uint64_t (*active)(struct foliage_engine *e, struct lruvec *lv, unsigned int type);
	/* Would its absence have cost its users something (folio_test_workingset)? NULL: the flag word
	 * says it, as the family of the policy reads it. Any time, without a lock. */
	bool (*workingset)(const struct foliage_engine *e, folio_id id);
	/* Global reclaim goes through the memcg LRU instead of the tree. */
	bool memcg_lru;

	/* -- life -- */
	/* The memory that init() wants, unless the lruvec has it: -ENOMEM. fini() frees it. */
	int (*prepare)(struct foliage_engine *e, struct lruvec *lv);
	void (*init)(struct foliage_engine *e, struct lruvec *lv);
	void (*fini)(struct foliage_engine *e, struct lruvec *lv);
	/* Move everything of a dying child to its parent; both locked (B.14, C.11). */
	void (*reparent)(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent);
	/* For a policy switch: the hottest folio on the lists (head of the youngest or active list
	 * first), FOLIO_NONE when empty; *active: it is in a young generation or on an active list.
	 * The caller deletes it. Locked. */
	folio_id (*drain_next)(struct foliage_engine *e, struct lruvec *lv, bool *active);
	/* O(pages) walker: 0, or the number of a broken invariant. */
	int (*is_valid)(struct foliage_engine *e, struct lruvec *lv, struct err *err);
	void (*flush_stats)(struct foliage_engine *e, struct lruvec *lv);

	const struct gen_rules *rules; /* of the multi-gen family */
};

#endif
