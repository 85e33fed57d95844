/* SPDX-License-Identifier: MIT
 *
 * The nouns of the engine, defined once. Spec sections are those of the algorithm specification
 * (docs/spec-map.md).
 *
 *   folio     the unit of reclaim: 1..512 base pages, one entry of the folio table, named by its
 *             index. All its state is one 64-bit word (mm/folio.h) that a hit updates without a
 *             lock.
 *   list      circular, doubly linked by 32-bit indices. Heads sit in the same table at negative
 *             indices, so that unlinking needs no branch and no knowledge of the list.
 *   lruvec    the reclaim domain of one (memcg, node): a lock, its lists, its counters.
 *   memcg     a node of the tree of groups, with limits and protection; slot 0 is the root.
 *   gen, seq  a generation: seq counts up for ever, gen = seq mod 4 names the list; the flag word
 *             keeps gen + 1 (0: on no list). A folio's flag gen and the list it is on may differ:
 *             promotion changes the flag, eviction moves the folio when it meets it.
 *   tier      a class of refs inside a generation, for statistics only.
 *   shadow    what is left of an evicted folio: 64 bits, kept by the backend, handed back at the
 *             refault.
 *   backend   what the world answers: is it young, unmap it, write it, drop it, what time is it.
 *   cpu       what a kernel keeps per CPU: the add and activate batches; owned by the caller.
 *
 * The folio table:
 *
 *        heads of lruvec 1   heads of lruvec 0 |  folios
 *      ... -2*L .. -L-1     -L ........... -1  |  0 .......................... nr_folios-1
 *                                              ^ e->folios, entries of 1 << e->folio_shift bytes
 */
#ifndef FOLIAGE_MM_TYPES_H
#define FOLIAGE_MM_TYPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "foliage/policy.h"
#include "foliage/reclaim.h"

typedef foliage_folio folio_id; /* >= 0: a folio; < 0: a list head; FOLIO_NONE: neither */
#define FOLIO_NONE INT32_MIN

enum {
	TYPE_ANON = 0,
	TYPE_FILE = 1,
	NR_TYPES = 2,

	MIN_NR_GENS = 2,
	MAX_NR_GENS = 4,
	MAX_NR_TIERS = 4,
	MAX_NR_ZONES = 3,
	MAX_NR_HIST = 4, /* NR_HIST_GENS is a knob: 1, or 4 with history */

	SWAP_CLUSTER_MAX = 32,
	DEF_PRIORITY = 12,
	MIN_LRU_BATCH = 64,
	MAX_LRU_BATCH = 4096,
	FOLIO_BATCH_SIZE = FOLIAGE_BATCH,
	SWAPPINESS_ANON_ONLY = 201,
};

/* Lists of one lruvec. */
enum {
	LIST_INACTIVE_ANON,
	LIST_ACTIVE_ANON,
	LIST_INACTIVE_FILE,
	LIST_ACTIVE_FILE,
	LIST_UNEVICTABLE,
	LIST_GEN, /* MAX_NR_GENS x NR_TYPES x MAX_NR_ZONES */
	LIST_FGW = LIST_GEN +
		   MAX_NR_GENS * NR_TYPES * MAX_NR_ZONES, /* per type: F, P, then 32 generations */
	NR_LISTS = LIST_FGW + NR_TYPES * 34,
};

struct folio {
	_Atomic uint64_t flags; /* mm/folio.h */
	folio_id prev, next;    /* under the lruvec's lock */
	uint32_t owner;         /* lruvec index; a dying lruvec redirects to its parent */
	uint16_t list; /* LIST_*: where it physically is; written under the lruvec's lock */
	uint16_t spare;
	uint64_t handle; /* the backend's own */
};
_Static_assert(sizeof(struct folio) == 32, "a simulation of 40 GiB must fit in a gigabyte");

typedef _Atomic int64_t counter_t;

/* Counters of an lruvec, under the names of memory.stat. */
enum stat_item {
	STAT_REFAULT_ANON,
	STAT_REFAULT_FILE,
	STAT_ACTIVATE_ANON,
	STAT_ACTIVATE_FILE,
	STAT_RESTORE_ANON,
	STAT_RESTORE_FILE,
	STAT_REFAULT_STALE, /* refaults too old to count */
	STAT_PGSCAN_ANON,
	STAT_PGSCAN_FILE,
	STAT_PGSTEAL_ANON,
	STAT_PGSTEAL_FILE,
	STAT_PGACTIVATE,
	STAT_PGDEACTIVATE,
	STAT_PGREFILL,
	STAT_PGROTATE_ANON,
	STAT_PGROTATE_FILE,
	STAT_PGLAZYFREED,
	STAT_PROMOTED,  /* gen moves by access */
	STAT_PROTECTED, /* gen moves by tier feedback */
	STAT_AGINGS,
	STAT_PSWPOUT,
	STAT_WRITEBACK_SEEN,
	STAT_LOW_EVENTS,
	STAT_OOM,
	NR_STATS,
};

/* Multi-gen state (B.1), of every variant. */
struct lru_gen {
	_Atomic uint64_t max_seq;
	_Atomic uint64_t min_seq[NR_TYPES];
	uint64_t timestamps[MAX_NR_GENS]; /* birth, ms */
	counter_t nr_pages[MAX_NR_GENS][NR_TYPES][MAX_NR_ZONES];
	counter_t nr_active[NR_TYPES]; /* FG: pages with refs >= activated (C.10) */
	counter_t ra_credits;          /* readahead credits (D.3) */
	/* Tier feedback (B.6), under the lock but for refaulted and evicted, which are only
	 * statistics. */
	uint64_t avg_refaulted[NR_TYPES][MAX_NR_TIERS];
	uint64_t avg_total[NR_TYPES][MAX_NR_TIERS];
	counter_t evicted[MAX_NR_HIST][NR_TYPES][MAX_NR_TIERS];
	counter_t refaulted[MAX_NR_HIST][NR_TYPES][MAX_NR_TIERS];
	uint64_t protected_[MAX_NR_HIST][NR_TYPES][MAX_NR_TIERS];
	double sample; /* what feedback counts is of this part of the pages; 0: all */
	/* What one more fd access makes of (gen + 1, refs), for each type: see mm/fg.c. Rebuilt
	 * when the window moves. */
	uint16_t next_access[NR_TYPES][128];
	/* memcg LRU (B.11), under the node's memcg-LRU lock. */
	uint8_t memcg_gen, memcg_seg, memcg_bin;
	int32_t memcg_prev, memcg_next;
};

/* Classic state (part A). */
struct clru {
	counter_t size[5]; /* pages per LIST_INACTIVE_ANON .. LIST_UNEVICTABLE */
	counter_t nonresident_age;
	/* What decisions read: the live numbers, or under clru-6.12 those of the last flush (1.2,
	 * A.5). */
	counter_t frozen_size[4], frozen_activate[NR_TYPES];
	counter_t refaults[NR_TYPES]; /* ACTIVATE at the end of the last session */
	counter_t isolated[NR_TYPES]; /* pages in the hands of reclaimers */
	uint64_t cost[NR_TYPES];      /* older model: lru_note_cost; newest: count */
	int64_t last_rotated[NR_TYPES], last_io[NR_TYPES];
};

struct mm_walk_state; /* mm/walk.h: cursor, sequence, Bloom filters of one lruvec */
struct fgw_state;     /* mm/fgw.c */

struct lruvec {
	pthread_mutex_t lock;
	uint32_t index, memcg, node;      /* index = memcg * nr_nodes + node */
	atomic_bool dying;                /* redirects to the parent memcg's lruvec of the node */
	_Atomic uint64_t clock[NR_TYPES]; /* FG-W: the newest generation, read by every hit */
	struct lru_gen gen;
	struct clru clru;
	struct mm_walk_state *walk;
	struct fgw_state *fgw;
	counter_t stat[NR_STATS];
};

struct memcg { /* the tree is read without a lock, written under the tree lock */
	atomic_bool used, online;
	_Atomic uint16_t id;                     /* in shadows; not reused while the slot lives */
	_Atomic uint32_t parent;                 /* slot; the root is its own parent */
	_Atomic uint32_t children, next_sibling; /* slots, UINT32_MAX ends */
	char name[64];
	_Atomic uint64_t min, low, high, max; /* pages; UINT64_MAX: none */
	atomic_int swappiness;                /* 0..200 */
	counter_t usage;                      /* pages of this memcg and its subtree */
	counter_t nr_owned;                   /* folios that name this slot as owner */
	atomic_int nr_mms;
	uint32_t unlinked; /* of a free slot: e->grace when it left the tree */
	bool retired; /* of a free slot: nobody is in its lruvecs, the policy's state is gone */
	_Atomic uint32_t reclaim_iter; /* where the next partial walk of the subtree goes on;
					  UINT32_MAX: start */
};

/* Refs carried by a shadow, one packing for every policy (A.7): see mm/shadow.h. */

struct node {
	pthread_mutex_t memcg_lru_lock;
	uint64_t memcg_seq;
	int32_t memcg_bins[3][8]; /* first lruvec index of each (gen, bin), -1: empty */
	uint32_t memcg_nr[3];
	uint64_t high_watermark, free_pages; /* as told by the backend; pages */
	uint64_t rng;
};

struct foliage_engine {
	struct folio *folios;
	unsigned int folio_shift;
	bool exclusive; /* one thread only: no locks, no compare-exchange */
	const struct foliage_policy *policy;
	const struct foliage_engine_policy *ops;
	void *knobs;
	struct foliage_backend backend;
	void *ctx;

	uint32_t nr_folios, nr_memcgs, nr_nodes, nr_zones;
	struct memcg *memcgs;   /* [nr_memcgs] */
	struct lruvec *lruvecs; /* [nr_memcgs * nr_nodes] */
	struct node *nodes;
	_Atomic uint16_t *memcg_of_id; /* [65536] slot + 1, 0: vanished */
	uint16_t last_memcg_id;
	/* Slots that have left the tree are reused two steps of `grace` later; a step waits for the
	 * sessions that began before the last one (memcg_enter). */
	_Atomic uint32_t grace, sessions[2];
	pthread_mutex_t tree_lock; /* memcg tree, mm lists, list of cpus */
	struct foliage_cpu *cpus;
	struct mm_table *mms; /* mm/walk.h */

	double scale;  /* modelled size / simulated size */
	double sample; /* part of the modelled pages that are here */
	uint64_t totalram_pages;
	uint32_t caps;       /* FOLIAGE_LRU_GEN_* (B.13) */
	uint64_t min_ttl_ms; /* B.12 */
	uint64_t seed;

	/* Who asks "why": called for every decision while set (FOLIAGE_EV_*). */
	void (*event)(void *ctx, folio_id folio, int what, int why, int64_t from, int64_t to,
		      unsigned int refs_from, unsigned int refs_to);
	void *event_ctx;

	void *table; /* the mapping that holds heads and folios */
	size_t table_bytes;
};

/* One reclaim request. */
struct scan_control {
	struct foliage_cpu *cpu;
	uint32_t target; /* memcg slot at the root of the reclaimed subtree; 0: global */
	uint32_t node;
	int64_t nr_to_reclaim, nr_reclaimed, nr_scanned;
	int priority;
	int swappiness; /* -1: each memcg's own */
	unsigned int reclaim_idx;
	uint32_t batch;                       /* MGLRU eviction batch; 64, less in tiny rooms */
	uint32_t cluster;                     /* classic batch; 32, less in tiny rooms */
	bool kswapd, proactive, root_reclaim; /* root_reclaim: not because of a memcg limit */
	bool may_unmap, may_swap, gfp_io, ignore_references;
	bool low_reclaim, low_skipped, full_walk;
	bool force_deactivate, skipped_deactivate;
	/* Balance decisions of the classic LRU, recomputed at each priority (A.5). */
	unsigned int may_deactivate;
	bool cache_trim_mode, file_is_tiny;
	uint64_t anon_cost, file_cost;
	void *walk; /* page-table walk buffer, once aging has needed one */
	/* What shrink_folio_list saw. */
	struct {
		uint64_t unqueued_dirty, writeback, immediate, io, taken;
	} seen;
};

#endif
