/* SPDX-License-Identifier: MIT
 *
 * foliage/cache.h - a page cache to build into a program: a fixed budget of memory, pages of 512
 * bytes to 64 KiB mixed in it, ranked by the reclaim engine, found and held without a lock.
 *
 * 	struct foliage_pool_options options = {.bytes = 256 << 20};
 * 	struct foliage_pool *pool;
 * 	struct foliage_page *page;
 *
 * 	foliage_pool_create(&options, &pool, message, sizeof(message));
 * 	kind = foliage_pool_kind(pool, 4096, 0);
 * 	switch (foliage_pool_fetch(pool, file, number, kind, FOLIAGE_FETCH_CREATE, &page)) {
 * 	case FOLIAGE_NEW:	// nobody else sees it before you unpin it or call it ready
 * 		if (pread(fd, page->data, 4096, number * 4096) != 4096) {
 * 			foliage_pool_unpin(pool, page, FOLIAGE_UNPIN_DISCARD);
 * 			return -EIO;
 * 		}
 * 		foliage_pool_ready(pool, page);
 * 	case FOLIAGE_HIT:	// falls through: page->data is yours to read until you unpin it
 * 		use(page->data);
 * 		foliage_pool_unpin(pool, page, 0);
 * 	}
 *
 * docs/embedding.md has a complete program.
 *
 * A page is named by (object, index): a file and a page number, or whatever two numbers mean to
 * you. While you hold a pin it stays where it is and keeps its contents; between pins it may leave
 * at any time, unless it is dirty.
 *
 * What costs what
 *   - A fetch that hits and its unpin are one compare-exchange and one atomic add on the page's own
 *     cache line, and with FOLIAGE_FETCH_LOCAL no locked instruction at all: about half the time.
 *     They take no lock, wait for nobody and finish while any other thread holds any lock of the
 *     pool. Once a thread has used FOLIAGE_FETCH_LOCAL, whoever evicts, discards or renames pays a
 *     membarrier(2) for each batch of pages.
 *   - Accesses are counted 32 at a time, and before the thread brings a page in; a thread that does
 *     nothing any more may keep as many to itself.
 *   - A miss takes short locks (of one of 32 shards of names, of the engine's lists, of the frames)
 *     and, when the budget is used up, reclaims about 32 pages in the calling thread. The pool has
 *     no threads of its own.
 *
 * Caveats
 *   - The budget is for everything: pages, their extra bytes, the table of names (64 bytes a slot,
 *     2 slots for a page of the typical size), what the pool remembers of pages that left. Frames
 *     come in slabs of budget / 32, 128 KiB to 2 MiB; a slab holds one kind of page and moves to
 *     another kind only when all its pages can leave.
 *   - `page_bytes` should say the typical size. The table of names grows when pages turn out
 *     smaller, out of the same budget, three times by two; it does not shrink again.
 *   - A new page is nobody else's until it is unpinned or ready: others that fetch it wait (-EAGAIN
 *     with FOLIAGE_FETCH_NOWAIT). A thread that fetches a page which it is itself filling waits for
 *     ever.
 *   - The contents of a new page are whatever the frame held before; its extra bytes are zero.
 *   - A dirty page never leaves by itself. Write it and unpin it with FOLIAGE_UNPIN_CLEAN. A pool
 *     full of dirty and pinned pages has no room: -ENOBUFS.
 *   - At most 2048 pins of one page at a time; -EAGAIN beyond. A page that was fetched with
 *     FOLIAGE_FETCH_LOCAL is let go of in the same thread, any other in any thread.
 *   - Discarding or truncating a page that others have pinned takes its name away at once, and its
 *     memory when the last of them lets go.
 *   - After fork() the child's copy is dead: every call returns -ECHILD (statistics, too), only
 *     foliage_pool_destroy() works. Make a new pool there.
 *   - Each thread that uses a pool costs about 1.5 KiB until it ends or the pool is destroyed. No
 *     thread may use a pool while it is destroyed. One pool takes one of the process's pthread
 *     keys.
 *   - Functions return a negative errno; nothing prints, exits or aborts on what you pass.
 */
#ifndef FOLIAGE_CACHE_H
#define FOLIAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "foliage/version.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_pool;

/* A page that you have pinned. Read the members, do not write them. */
struct foliage_page {
	void *extra; /* extra bytes of its kind, 16-byte aligned; NULL when it has none */
	void *data;  /* aligned to its size within the slab */
	uint64_t object, index;
};

enum {
	FOLIAGE_PAGE_MIN = 512,
	FOLIAGE_PAGE_MAX = 65536,
	FOLIAGE_EXTRA_MAX = 4096,
	FOLIAGE_EXTRA_FOLLOWS = 1 << 30,
	FOLIAGE_POOL_MIN = 1 << 20,
	FOLIAGE_GROUPS_MAX = 1024
};

/* For a program that finds pages by an index of its own and holds them by marks of its own, without a
 * word to the pool. Whoever is about to take pages away asks it in three steps, in one thread, the
 * second possibly left out. Locks of the pool may be held: do not call it. */
enum foliage_leaving {
	/* These pages may leave. Write that where your index leads. A thread that finds a page sets
	 * its mark first, looks at that note then, and if it is there takes the mark back and calls
	 * foliage_pool_fetch(). Neither needs a fence, but from the compiler. The answer: not 0 if a
	 * barrier is needed, because for one of the pages this was news, or somebody who wrote it has
	 * not come to the next step yet. */
	FOLIAGE_LEAVING_WARN,
	/* All threads have passed a barrier since, if one was needed: bit i for pages[i] that is marked, which stays. */
	FOLIAGE_LEAVING_ASK,
	/* What is still there stays. No pages are named. A note may be taken back once no thread is
	 * between its first step and this, and while a pin of the pool holds the page. */
	FOLIAGE_LEAVING_DONE,
};

struct foliage_pool_options {
	uint64_t bytes;      /* the budget; at least FOLIAGE_POOL_MIN */
	uint64_t max_bytes;  /* what foliage_pool_resize() may ask, up to 8 x `bytes`; 0: `bytes` */
	uint32_t page_bytes; /* the typical page, a power of two; 0: 4096 */
	uint32_t extra_bytes; /* typical extra bytes */
	uint64_t max_pages;   /* never more pages than this; 0: as many as fit */
	const char *policy;   /* "fg", "mglru", "clru:...", any policy of the engine; NULL: "fg" */
	uint64_t seed;
	uint32_t wait_ms; /* how long FOLIAGE_FETCH_WAIT waits for room */
	/* The page leaves the pool, evicted or discarded: a last look. No locks are held; do not
	 * call the pool. */
	void (*dropped)(void *ctx, const struct foliage_page *page);
	/* See enum foliage_leaving; at most 64 pages at a time. NULL: you hold pages only by pins. Pages
	 * that you discard, truncate or rename must not be marked. */
	uint64_t (*leaving)(void *ctx, struct foliage_page *const *pages, uint32_t nr,
			    enum foliage_leaving step);
	/* Reclaim met only dirty pages: write some. No locks are held; called by a thread that
	 * needs room. */
	void (*dirty)(void *ctx);
	void *ctx;
	uint32_t max_groups; /* groups at a time (foliage/group.h), each about 17 KiB of the budget;
				at most FOLIAGE_GROUPS_MAX */
};

/* 0; -EINVAL with the reason in `message` (may be NULL); -ENOMEM; -EAGAIN: no pthread key left;
 * -ENOSYS: `leaving` needs membarrier(2), which the system does not have. */
FOLIAGE_API int foliage_pool_create(const struct foliage_pool_options *options,
				    struct foliage_pool **pool, char *message,
				    size_t message_bytes);
/* Every page goes, pinned or not. */
FOLIAGE_API void foliage_pool_destroy(struct foliage_pool *pool);

/* The number of a kind of page: a size (power of two, 512 .. 65536) and extra bytes (0 .. 4096)
 * beside the data. With FOLIAGE_EXTRA_FOLLOWS added to them they follow the data of their page, which is
 * then aligned to 16 bytes only, and the beginnings of pages do not compete for the same few sets of the
 * processor's caches: faster, for what is not read directly from a disk. Asking twice gives the same number. -EINVAL; -ENOSPC: there are 64 kinds
 * already. */
FOLIAGE_API int foliage_pool_kind(struct foliage_pool *pool, uint32_t page_bytes,
				  uint32_t extra_bytes);

enum foliage_fetch {
	FOLIAGE_FETCH_CREATE = 1 << 0, /* a page that is not there is made */
	FOLIAGE_FETCH_WAIT =
		1 << 1, /* no room: wait up to wait_ms for some, instead of -ENOBUFS at once */
	FOLIAGE_FETCH_NOWAIT =
		1 << 2, /* somebody is filling the page: -EAGAIN instead of waiting */
	FOLIAGE_FETCH_READY =
		1 << 3, /* a new page is everybody's at once: you synchronise its filling */
	/* What the access says about the page's future; none of them: normal, it counts. */
	FOLIAGE_HINT_SEQUENTIAL =
		1 << 4, /* part of a stream: counts when it brings the page in, not again */
	FOLIAGE_HINT_ONCE =
		1 << 5, /* will not be needed again: does not count, nor make the past count */
	FOLIAGE_HINT_WILL_NEED = 1 << 6, /* read ahead: the access that counts will follow */
	/* The thread that fetches the page lets go of it, soon. Then a hit and its unpin need no
	 * locked instruction; a thread has 8 such pins at a time, more are like any other. */
	FOLIAGE_FETCH_LOCAL = 1 << 7,
};

enum { FOLIAGE_HIT = 0, FOLIAGE_NEW = 1 };

/* Pin the page (object, index) of `kind`. FOLIAGE_HIT; FOLIAGE_NEW: it was made, fill it;
 * -ENOENT: not there, and not to be made; -ENOBUFS: no room, everything is pinned or dirty;
 * -EAGAIN (see above); -EINVAL: another kind of page has this name, or a bad kind; -ECHILD. */
FOLIAGE_API int foliage_pool_fetch(struct foliage_pool *pool, uint64_t object, uint64_t index,
				   int kind, unsigned int flags, struct foliage_page **page);
/* A new page is filled: others may have it. The pin stays. */
FOLIAGE_API int foliage_pool_ready(struct foliage_pool *pool, struct foliage_page *page);

enum foliage_unpin {
	FOLIAGE_UNPIN_DIRTY = 1 << 0,   /* changed: must not leave before it was clean again */
	FOLIAGE_UNPIN_CLEAN = 1 << 1,   /* written */
	FOLIAGE_UNPIN_DISCARD = 1 << 2, /* away with it, dirty or not */
};
FOLIAGE_API int foliage_pool_unpin(struct foliage_pool *pool, struct foliage_page *page,
				   unsigned int flags);

/* You found a page by yourself and hold it, by a pin or a mark: this is an access that counts, and a
 * hit. 0 or -ECHILD. */
FOLIAGE_API int foliage_pool_touch(struct foliage_pool *pool, struct foliage_page *page);

/* You have taken back a mark of your own since a fetch said -ENOBUFS, which the pool cannot see: the
 * next fetch that needs room tries in earnest. 0 or -ECHILD. */
FOLIAGE_API int foliage_pool_unmarked(struct foliage_pool *pool);

/* Drop a page that you have not pinned: 0 or -ENOENT. */
FOLIAGE_API int foliage_pool_discard(struct foliage_pool *pool, uint64_t object, uint64_t index);
/* Give the page that you alone have pinned another name, and *page the place where it is now
 * known (data and extra do not move). A page that has the name already and is not pinned is
 * discarded. -EBUSY: somebody else has pinned either. */
FOLIAGE_API int foliage_pool_rekey(struct foliage_pool *pool, struct foliage_page **page,
				   uint64_t object, uint64_t index);
/* Discard first <= index <= last of an object; returns how many pages lost their names, or a
 * negative errno. */
FOLIAGE_API int64_t foliage_pool_truncate(struct foliage_pool *pool, uint64_t object,
					  uint64_t first, uint64_t last);

/* Give up to `bytes` of memory back to the system, coldest pages first; the budget stays.
 * Returns what was given back. */
FOLIAGE_API int64_t foliage_pool_shrink(struct foliage_pool *pool, uint64_t bytes);
/* Change the budget. -EINVAL: outside what was agreed at creation, or less than the tables need;
 * -EBUSY: smaller from now on, but pinned and dirty pages are in the way, and their memory goes
 * when they do. */
FOLIAGE_API int foliage_pool_resize(struct foliage_pool *pool, uint64_t bytes);

struct foliage_pool_stats {
	uint64_t budget;            /* bytes */
	uint64_t metadata_bytes;    /* tables of names and shadows, the engine's */
	uint64_t frame_bytes;       /* slabs in memory */
	uint64_t pages, page_bytes; /* pages that have a name, and the bytes of their data */
	uint64_t slots;             /* of the table of names */
	uint64_t hits, misses;      /* fetches that found the page, or did not */
	uint64_t created, evicted, refaults, discarded, rekeyed;
	uint64_t no_room;             /* fetches that failed with -ENOBUFS */
	uint64_t waits;               /* fetches that waited for room */
	uint64_t slab_moves;          /* slabs emptied for another kind or for shrinking */
	uint64_t activated, restored; /* refaults of pages that had been active, or much used */
};
/* A snapshot; counters of running threads may lag by the fetch in progress. */
FOLIAGE_API int foliage_pool_stats(struct foliage_pool *pool, struct foliage_pool_stats *stats);
/* The name of its policy, without knobs. */
FOLIAGE_API const char *foliage_pool_policy(const struct foliage_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
