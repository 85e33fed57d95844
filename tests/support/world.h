/* SPDX-License-Identifier: MIT
 *
 * A small fake world for engine tests: one engine, folios, processes with VMAs and page tables,
 * swap, dirty pages and write-back, a clock that only the test moves, and a record of what reclaim
 * did.
 *
 * Page N of the world is folio N of the engine. An evicted page keeps its shadow in shadow[N], and
 * the next world_add() of N hands it back, as a page cache would.
 *
 * With several threads, each page is added, mapped and reclaimed by one and the same of them, with
 * a struct foliage_cpu of its own (w->cpu is the first one's); touching, walking, marking and aging
 * are free. Processes come and go in one thread.
 *
 * What cannot go wrong in a sane test (no memory, a bad policy text) ends the test with a cmocka
 * failure. Fields of struct world without a comment are for the test to read; those marked `knob`
 * may be set at any time.
 */
#ifndef FOLIAGE_TESTS_SUPPORT_WORLD_H
#define FOLIAGE_TESTS_SUPPORT_WORLD_H

#include "mm/gen.h"
#include "mm/walk.h"

struct world_options {
	const char *policy;                      /* "fg:tail_mode=min"; NULL: "fg" */
	uint32_t nr_folios;                      /* 0: 65536 */
	uint32_t max_memcgs, nr_nodes, nr_zones; /* 0: 1 */
	bool threads;                            /* several threads: not an exclusive engine */
	bool no_walk, no_rmap;                   /* leave next_mapping / rmap NULL */
	uint32_t caps;                           /* FOLIAGE_LRU_GEN_*; 0: the engine's default */
	uint32_t batch; /* add batch of the world's cpu; 0: 1, so that folios reach the lists at
			   once */
	uint64_t totalram_pages;
	double scale;
	uint64_t seed;
};

struct world_page {
	uint64_t shadow;      /* left by the last eviction; 0: none */
	uint32_t evictions;   /* how often reclaim took it */
	uint32_t eviction_nr; /* w->nr_evicted at the last eviction (1: the first page to go) */
	bool no_unmap;        /* knob: unmapping fails */
	bool rmap_busy;       /* knob: the rmap lock is contended */
	struct world_pte *ptes;
};

struct world_mm; /* processes and page tables: world.c */

struct world {
	struct foliage_engine *e;
	struct foliage_cpu cpu;
	uint32_t nr_pages;
	struct world_page *pages;
	struct world_mm **mms; /* by mm number; NULL: none */
	uint32_t nr_mms;

	uint64_t now_ms;                   /* knob */
	int64_t swap_free;                 /* knob; initially a million */
	int64_t swapcache;                 /* knob */
	enum foliage_pageout pageout;      /* knob: what pageout answers; initially STARTED */
	bool mm_busy;                      /* knob: mm_trylock fails for every mm */
	void (*on_yield)(struct world *w); /* knob: called by yield */
	void (*on_mapping)(struct world *w, uint32_t mm,
			   uint64_t pmd); /* knob: each next_mapping answer */
	void *test;                       /* knob: the test's own */

	_Atomic uint32_t nr_evicted, nr_pageouts, nr_unmaps, nr_flusher, nr_throttled, nr_oom,
		nr_yields;
	_Atomic uint32_t nr_mm_locks;      /* successful mm_trylock calls */
	_Atomic uint32_t nr_next_mappings; /* mappings handed out */
	_Atomic int32_t mm_locked;         /* locks held now */
};

struct world *world_new(const struct world_options *options); /* NULL: all defaults */
void world_free(struct world *w);

/* ---- pages ---- */
/* Bring a page in with FOLIAGE_FOLIO_* flags: root memcg, node 0, zone 0, one base page. */
void world_add(struct world *w, uint32_t page, uint32_t flags);
void world_add_to(struct world *w, uint32_t page, uint32_t memcg, uint32_t node, uint32_t zone,
		  uint32_t order, uint32_t flags);
/* Pages first..first+nr-1. */
void world_add_range(struct world *w, uint32_t first, uint32_t nr, uint32_t flags);
/* One mark_accessed, `times` times. */
void world_mark(struct world *w, uint32_t page, unsigned int times);
/* read(): a miss brings the page in, then it is marked. True: it was a hit. */
bool world_read(struct world *w, uint32_t page);
void world_drain(struct world *w);
/* Every folio under write-back is written now. */
void world_end_writeback(struct world *w);
bool world_present(const struct world *w, uint32_t page);

/* ---- reclaim ---- */
/* memcg-limit reclaim of `memcg` on node 0 with its own swappiness. Returns pages freed. */
int64_t world_reclaim(struct world *w, uint32_t memcg, uint64_t nr);
/* A scan_control as reclaim would make one, for tests of single functions. */
void world_scan_control(struct world *w, struct scan_control *sc);

/* ---- processes ---- */
/* Virtual pages are 0 .. WORLD_VPAGES-1 of each process: 16 PUDs. */
#define WORLD_VPAGES (1u << 22)
uint32_t world_mm(struct world *w, uint32_t memcg); /* a process; its number */
void world_mm_exit(struct world *w, uint32_t mm);
/* VMAs may not overlap; flags FOLIAGE_VMA_*. */
void world_vma(struct world *w, uint32_t mm, uint64_t start, uint64_t nr, uint32_t flags);
/* Map a page (of a large folio: all its base pages, one after another); the entry is born old. */
void world_map(struct world *w, uint32_t mm, uint64_t vpage, uint32_t page);
/* What hardware does: set young (and dirty, and the PMD's young bit). The page must be mapped;
 * world_try_touch() says whether it was. */
void world_touch(struct world *w, uint32_t mm, uint64_t vpage, bool write);
bool world_try_touch(struct world *w, uint32_t mm, uint64_t vpage, bool write);
bool world_young(const struct world *w, uint32_t mm, uint64_t vpage);
bool world_pte_dirty(const struct world *w, uint32_t mm, uint64_t vpage);
bool *world_pmd_young(struct world *w, uint32_t mm, uint64_t vpage);
/* The PTE table's lock is held by somebody else (walk and look-around back off). */
void world_contend(struct world *w, uint32_t mm, uint64_t vpage, bool contended);
/* Is the entry present? */
bool world_mapped(const struct world *w, uint32_t mm, uint64_t vpage);

/* ---- looking inside ---- */
struct lruvec *world_lruvec(const struct world *w, uint32_t memcg, uint32_t node);
uint64_t world_flags(const struct world *w, uint32_t page);
/* Generation that the flag word names, as a sequence number; -1: on no generation list. */
int64_t world_seq(const struct world *w, uint32_t page);
/* LIST_* where the folio physically is, -1 when on none. */
int world_list(const struct world *w, uint32_t page);
/* FG's counter. */
unsigned int world_refs(const struct world *w, uint32_t page);
/* Set FG's counter, or R (1), W (2), C << 2 of mainline and 6.12. The folio does not move; FG's
 * active pages are accounted. */
void world_set_refs(struct world *w, uint32_t page, unsigned int refs);
/* Run every lruvec's validity walker; a broken invariant fails the test. */
void world_check(struct world *w);
/* Multi-gen policies: open generations (no walk) until max_seq is `seq`; the oldest ones close as
 * needed. */
void world_age_to(struct world *w, uint32_t memcg, uint64_t seq);

#endif
