/* SPDX-License-Identifier: MIT
 *
 * foliage/reclaim.h - the reclaim engine, for people who bring their own pages: a pager, a
 * hypervisor, a cache.
 *
 * You own the pages and a number for each of them (a folio: 0..nr_folios-1). The engine ranks them:
 * tell it when one comes in (foliage_folio_add), is used (foliage_folio_mark_accessed) or goes away
 * (foliage_folio_remove), ask it for room (foliage_reclaim), and it calls your backend's `evict`
 * for each one that must leave, with a 64-bit shadow that you keep with the page's identity and
 * hand back when the page returns.
 *
 * Caveats
 *   - Everything the engine keeps per folio is 32 bytes in a table of its own (or the first 32
 *     bytes of an entry of yours, see `folio_bytes`), reserved at creation and backed when touched.
 *   - `exclusive` engines must be used by one thread at a time; they take no locks and are about
 *     twice as fast. Otherwise every function may be called from several threads, each with a
 *     struct foliage_cpu of its own.
 *   - Backend callbacks run inside the call that caused them, without any engine lock held unless
 *     noted. They must not call foliage_reclaim*.
 *   - A folio's number may be used again once `evict` returned or foliage_folio_remove() returned.
 *   - Functions return 0 or a negative errno; nothing prints, exits or aborts on what you pass.
 *
 * examples/reclaim.c is a complete program.
 */
#ifndef FOLIAGE_RECLAIM_H
#define FOLIAGE_RECLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "foliage/version.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_engine;
typedef int32_t foliage_folio;

/* What a kernel keeps per CPU. Zero it before the first use; one for each thread. The engine
 * keeps a pointer to it from the first use until foliage_cpu_exit() (or the engine's destruction).
 */
#define FOLIAGE_BATCH 31
struct foliage_cpu {
	uint32_t batch; /* add batch in use: 1..FOLIAGE_BATCH; 0 means FOLIAGE_BATCH */
	uint32_t nr_add, nr_activate;
	foliage_folio add[FOLIAGE_BATCH], activate[FOLIAGE_BATCH];
	uint32_t credit_owner, credits; /* readahead credits (spec D.3) */
	bool in_lru_fault; /* a page fault in a mapping with recency is running (0.2.3) */
	bool in_reclaim;
	int lock;                      /* guards the batches against whoever drains them */
	struct foliage_engine *engine; /* registered at the first use, see foliage_cpu_exit() */
	struct foliage_cpu *next;
};

/* Folio flags that a caller may set at foliage_folio_add(). */
enum {
	FOLIAGE_FOLIO_ANON = 1 << 0,      /* anonymous; else file */
	FOLIAGE_FOLIO_SHMEM = 1 << 1,     /* swap-backed file */
	FOLIAGE_FOLIO_SWAPCACHE = 1 << 2, /* came from swap */
	FOLIAGE_FOLIO_EXEC = 1 << 3,      /* file page of an executable mapping */
	FOLIAGE_FOLIO_MAPPED = 1 << 4,    /* in a page table */
	FOLIAGE_FOLIO_DIRTY = 1 << 5,
	FOLIAGE_FOLIO_WRITE = 1 << 6,      /* inserted to be overwritten: no refault is counted */
	FOLIAGE_FOLIO_DROPBEHIND = 1 << 7, /* used once */
	FOLIAGE_FOLIO_MLOCKED = 1 << 8,
	FOLIAGE_FOLIO_ACCESSED = 1 << 9, /* created "already accessed" (refs 1) */
	FOLIAGE_FOLIO_LOCKED =
		1 << 10, /* being read in: reclaim keeps it until foliage_folio_unlock() */
};

/* Answers of `pageout`. */
enum foliage_pageout {
	FOLIAGE_PAGEOUT_KEEP,     /* cannot now; goes back to where it was */
	FOLIAGE_PAGEOUT_ACTIVATE, /* cannot for long */
	FOLIAGE_PAGEOUT_STARTED,  /* write-back runs; foliage_folio_end_writeback() will follow */
	FOLIAGE_PAGEOUT_CLEAN,    /* written, clean now */
};

/* One PTE table: 512 entries, 2 MiB of address space. The world keeps it, the walkers read and
 * clear it. */
struct foliage_pte_table {
	foliage_folio folio[512]; /* < 0: not present */
	uint64_t young[8], dirty[8];
};

/* VMA properties that the walkers and the rmap check need. */
enum {
	FOLIAGE_VMA_EXEC = 1 << 0,
	FOLIAGE_VMA_LOCKED = 1 << 1,
	FOLIAGE_VMA_SEQ_READ = 1 << 2, /* these three: no recency */
	FOLIAGE_VMA_RAND_READ = 1 << 3,
	FOLIAGE_VMA_NOREUSE = 1 << 4,
	FOLIAGE_VMA_ANON = 1 << 5,
	FOLIAGE_VMA_SHMEM = 1 << 6,
	FOLIAGE_VMA_SPECIAL = 1 << 7,      /* PFNMAP, IO, MIXEDMAP, DONTEXPAND */
	FOLIAGE_VMA_INACCESSIBLE = 1 << 8, /* PROT_NONE */
	FOLIAGE_VMA_HUGETLB = 1 << 9,
	FOLIAGE_VMA_UNEVICTABLE = 1 << 10, /* unevictable or DAX mapping */
};

/* The part of one VMA that one PTE table maps. */
struct foliage_mapping {
	uint32_t mm;          /* as returned by foliage_mm_add() */
	uint32_t vma_flags;   /* FOLIAGE_VMA_* */
	uint64_t pmd;         /* first page number of the table's range: page >> 9 << 9 */
	uint32_t first, last; /* entries of the table that belong to the VMA */
	uint32_t index;       /* rmap: the entry that maps the folio */
	bool *pmd_young;      /* non-leaf accessed bit, or NULL */
	bool contended;       /* the table's lock is held by somebody else */
	struct foliage_pte_table *table;
};

struct foliage_backend {
	/* The folio leaves memory; keep `shadow` with its identity. Required. */
	void (*evict)(void *ctx, foliage_folio folio, uint64_t shadow);
	/* Milliseconds since anything. NULL: time stands still. */
	uint64_t (*now_ms)(void *ctx);
	/* Unmap from every page table; false when that failed. NULL: nothing is ever mapped. */
	bool (*unmap)(void *ctx, foliage_folio folio);
	/* Write a dirty folio out. NULL: anonymous memory cannot be swapped. */
	enum foliage_pageout (*pageout)(void *ctx, foliage_folio folio);
	/* Give an anonymous folio a swap slot; false when there is none. */
	bool (*add_to_swap)(void *ctx, foliage_folio folio);
	/* Free swap pages for `memcg`; NULL: no swap. */
	int64_t (*swap_free)(void *ctx, uint32_t memcg);
	/* Pages of the swap cache of a node (spec D.2). */
	int64_t (*swapcache_pages)(void *ctx, uint32_t node);
	/* Every isolated page was dirty and none queued: wake the flusher. */
	void (*wake_flusher)(void *ctx);
	/* Reclaim outruns write-back or others: wait a little (virtually or really). */
	void (*throttle)(void *ctx);
	/* The `cursor`th mapping of a folio; false when there are no more. NULL: never mapped. */
	bool (*rmap)(void *ctx, foliage_folio folio, uint32_t cursor, struct foliage_mapping *out);
	/* The first mapping of `mm` at or above page number `from`; false at the end. */
	bool (*next_mapping)(void *ctx, uint32_t mm, uint64_t from, struct foliage_mapping *out);
	/* Try to lock the mm against changes; false: busy, skip it. NULL: always free. */
	bool (*mm_trylock)(void *ctx, uint32_t mm);
	void (*mm_unlock)(void *ctx, uint32_t mm);
	/* Lock sections, for a simulated machine: lruvec taken; dropped after handling `nr` folios.
	 */
	void (*lock_taken)(void *ctx, uint32_t lruvec);
	void (*lock_dropped)(void *ctx, uint32_t lruvec, uint32_t nr);
	/* These folios are off their lists and examined now, some will be evicted; pin those that
	 * must not be. That was all of them. Both or neither, in the same thread. */
	void (*taken)(void *ctx, const foliage_folio *folios, uint32_t nr);
	void (*given_back)(void *ctx);
	/* Between batches: others may run. No lock is held. */
	void (*yield)(void *ctx);
	/* No lruvec of the node is old enough to be reclaimed under min_ttl_ms, or nothing can be
	 * freed. */
	void (*out_of_memory)(void *ctx, uint32_t memcg);
};

/* lru_gen/enabled (spec B.13) */
enum {
	FOLIAGE_LRU_GEN_CORE = 0x1,
	FOLIAGE_LRU_GEN_MM_WALK = 0x2,
	FOLIAGE_LRU_GEN_NONLEAF_YOUNG = 0x4,
};

struct foliage_engine_options {
	const char *policy;                      /* "fg", "mglru:histgens=4", ...; NULL: "fg" */
	uint32_t nr_folios;                      /* folio numbers are below this; at most 2^30 */
	uint32_t max_memcgs, nr_nodes, nr_zones; /* 0: 1 each */
	bool exclusive;
	uint32_t folio_bytes;    /* entry size of the folio table: 0 (32), 32 or 64 */
	uint64_t totalram_pages; /* 0: nr_folios */
	double scale;            /* modelled size / this size; 0: 1 */
	uint64_t seed;
	uint32_t caps; /* FOLIAGE_LRU_GEN_*; 0: core only when there is no next_mapping, else all */
	const struct foliage_backend *backend; /* copied */
	void *ctx;
	/* The pages are a sample of the modelled ones, this part of them (0: all): thresholds that
	 * count pages shrink with it, and the scan budget is that of the sample. */
	double sample;
};

/* -EINVAL: a bad option, with the reason in `message` (may be NULL) of `message_bytes`; -ENOMEM. */
FOLIAGE_API int foliage_engine_create(const struct foliage_engine_options *options,
				      struct foliage_engine **engine, char *message,
				      size_t message_bytes);
FOLIAGE_API void foliage_engine_destroy(struct foliage_engine *engine);

/* Change the policy of a running engine: every folio moves to the new structure, in batches (B.14).
 * No other call may run at the same time. */
FOLIAGE_API int foliage_engine_switch(struct foliage_engine *engine, struct foliage_cpu *cpu,
				      const char *policy, char *message, size_t message_bytes);

/* The backend's 64 bits of a folio: yours to read and write. */
FOLIAGE_API uint64_t *foliage_folio_handle(struct foliage_engine *engine, foliage_folio folio);
/* Where entry `folio` of the table lies (folio_bytes apart; bytes from 32 on are yours). */
FOLIAGE_API void *foliage_folio_entry(struct foliage_engine *engine, foliage_folio folio);

/* ---- groups ---- */
#define FOLIAGE_UNLIMITED UINT64_MAX
enum foliage_limit { FOLIAGE_MIN, FOLIAGE_LOW, FOLIAGE_HIGH, FOLIAGE_MAX, FOLIAGE_SWAPPINESS };

/* New child of `parent` (0: the root); returns its number > 0, -ENOSPC when max_memcgs exist,
 * -ENOENT. */
FOLIAGE_API int foliage_memcg_create(struct foliage_engine *engine, uint32_t parent,
				     const char *name);
/* Take it offline: its folios become the parent's (B.14, C.11). -EBUSY while it has online
 * children. */
FOLIAGE_API int foliage_memcg_remove(struct foliage_engine *engine, struct foliage_cpu *cpu,
				     uint32_t memcg);
FOLIAGE_API int foliage_memcg_set(struct foliage_engine *engine, uint32_t memcg,
				  enum foliage_limit what, uint64_t value);
FOLIAGE_API int64_t foliage_memcg_usage(struct foliage_engine *engine, uint32_t memcg);

/* ---- folios ---- */

/* A folio of 1 << order pages comes in: `flags` FOLIAGE_FOLIO_*; `shadow` is what its slot held, 0
 * if nothing. Runs the refault hook (0.2.1), charges the memcg, queues it on the cpu's add batch.
 */
FOLIAGE_API int foliage_folio_add(struct foliage_engine *engine, struct foliage_cpu *cpu,
				  foliage_folio folio, uint32_t memcg, uint32_t node, uint32_t zone,
				  uint32_t order, uint32_t flags, uint64_t shadow);
/* It was read or written through a file descriptor. Lock-free. */
FOLIAGE_API void foliage_folio_mark_accessed(struct foliage_engine *engine, struct foliage_cpu *cpu,
					     foliage_folio folio);
/* It goes away for reasons of its own (truncate, free); leaves no shadow. */
FOLIAGE_API int foliage_folio_remove(struct foliage_engine *engine, struct foliage_cpu *cpu,
				     foliage_folio folio);
FOLIAGE_API void foliage_folio_set_dirty(struct foliage_engine *engine, foliage_folio folio);
FOLIAGE_API void foliage_folio_clear_dirty(struct foliage_engine *engine, foliage_folio folio);
FOLIAGE_API void foliage_folio_start_writeback(struct foliage_engine *engine, foliage_folio folio);
/* Rotates a folio that reclaim waits for to where it is evicted next (A.6). */
FOLIAGE_API void foliage_folio_end_writeback(struct foliage_engine *engine, struct foliage_cpu *cpu,
					     foliage_folio folio);
FOLIAGE_API void foliage_folio_unlock(struct foliage_engine *engine, foliage_folio folio);
/* MADV_COLD and failed invalidation (B.14). */
FOLIAGE_API void foliage_folio_deactivate(struct foliage_engine *engine, struct foliage_cpu *cpu,
					  foliage_folio folio);
/* MADV_FREE: refs are forgotten, the clean page becomes reclaimable like a file's (B.14). */
FOLIAGE_API void foliage_folio_lazyfree(struct foliage_engine *engine, struct foliage_cpu *cpu,
					foliage_folio folio);
/* DAMON's lru_prio and the like: to the young end (C.9). */
FOLIAGE_API void foliage_folio_activate(struct foliage_engine *engine, struct foliage_cpu *cpu,
					foliage_folio folio);
/* MADV_PAGEOUT: reclaim this folio now, references ignored, refs capped first (C.9). Pages freed,
 * or -EBUSY. */
FOLIAGE_API int64_t foliage_folio_pageout(struct foliage_engine *engine, struct foliage_cpu *cpu,
					  foliage_folio folio);
/* get_user_pages: the slow path is an fd access, the fast path touches the flag word only (C.9). */
FOLIAGE_API void foliage_folio_gup_fast(struct foliage_engine *engine, foliage_folio folio);
/* smaps: reset the counter, generation untouched; and "Referenced", "workingset" as every reader
 * must test them. */
FOLIAGE_API void foliage_folio_clear_refs(struct foliage_engine *engine, foliage_folio folio);
FOLIAGE_API bool foliage_folio_referenced(struct foliage_engine *engine, foliage_folio folio);
FOLIAGE_API bool foliage_folio_workingset(struct foliage_engine *engine, foliage_folio folio);
/* Split a large folio into single pages: `folio` keeps its number for the first page, the others
 * get parts[0 .. nr_pages - 2]; all inherit refs and generation. `young`: its PMD entry was young,
 * which counts as an access. */
FOLIAGE_API int foliage_folio_split(struct foliage_engine *engine, struct foliage_cpu *cpu,
				    foliage_folio folio, const foliage_folio *parts, bool young);
/* Migration: `to` (not in the engine) takes over everything that `from` has earned. */
FOLIAGE_API int foliage_folio_migrate(struct foliage_engine *engine, struct foliage_cpu *cpu,
				      foliage_folio from, foliage_folio to);
/* Is it in the engine, and not evicted? */
FOLIAGE_API bool foliage_folio_present(struct foliage_engine *engine, foliage_folio folio);
/* Put everything that waits in the cpu's batches on the lists. */
FOLIAGE_API void foliage_cpu_drain(struct foliage_engine *engine, struct foliage_cpu *cpu);
/* Drain and forget the cpu; its memory may be reused. */
FOLIAGE_API void foliage_cpu_exit(struct foliage_engine *engine, struct foliage_cpu *cpu);

/* Charge `nr` pages to a memcg before bringing them in: reclaims (as 0.2 and LINUX-6.12 section 2
 * say) while the memcg or an ancestor is at its max. foliage_folio_add() charges the folio itself:
 * this call only makes the room. -ENOMEM when nothing more can be freed (the backend's
 * out_of_memory was told). */
FOLIAGE_API int foliage_memcg_make_room(struct foliage_engine *engine, struct foliage_cpu *cpu,
					uint32_t memcg, uint32_t nr, bool no_io);

/* ---- reclaim ---- */
struct foliage_reclaim_request {
	uint32_t memcg, node;
	uint64_t nr;      /* pages wanted; 0: 32 */
	int swappiness;   /* 0..201, or -1: the memcg's own */
	uint32_t batch;   /* eviction batch, 0: 64 (tiny rooms use less) */
	bool memcg_limit; /* because a limit was hit; else global direct reclaim */
	bool kswapd, proactive, no_io, no_swap, no_unmap;
};
/* Free pages; returns how many, or a negative errno. */
FOLIAGE_API int64_t foliage_reclaim(struct foliage_engine *engine, struct foliage_cpu *cpu,
				    const struct foliage_reclaim_request *request);

/* Freeze the statistics on which clru-6.12 decides (LINUX-6.12 1.2); a no-op for the others. */
FOLIAGE_API void foliage_flush_stats(struct foliage_engine *engine);

/* ---- address spaces ---- */
/* A process comes to a memcg: returns its number, or -ENOMEM. `mm` numbers are passed to the
 * backend. */
FOLIAGE_API int foliage_mm_add(struct foliage_engine *engine, uint32_t memcg);
FOLIAGE_API void foliage_mm_remove(struct foliage_engine *engine, uint32_t mm);
/* It was scheduled in: the next walk must visit it (B.9). */
FOLIAGE_API void foliage_mm_ran(struct foliage_engine *engine, uint32_t mm);

/* ---- texts ---- */
/* "lru_gen", "lru_gen_full", "enabled", "min_ttl_ms" (spec B.13), "memory.stat" or
 * "memory.stat:/group/subgroup"; malloc'ed. -EINVAL: no such text; -ENOENT: no such group;
 * -EOPNOTSUPP: the policy has no generations. */
FOLIAGE_API int foliage_text(struct foliage_engine *engine, const char *what, char **text);
/* The `+` and `-` commands (B.13). */
FOLIAGE_API int foliage_lru_gen_write(struct foliage_engine *engine, struct foliage_cpu *cpu,
				      const char *commands);
/* Set "enabled" (y or a mask; the core bit cannot go, that is foliage_engine_switch()) or
 * "min_ttl_ms" (B.12, 0: off). No other call may run at the same time. */
FOLIAGE_API int foliage_lru_gen_set(struct foliage_engine *engine, const char *name,
				    const char *value);

#ifdef __cplusplus
}
#endif
#endif
