/* SPDX-License-Identifier: MIT
 *
 * What the files of the file cache share.
 *
 * A node is a file of the system, told apart by device and inode number; handles are what callers
 * have of it. A page of it is the pool's page (node->id, number).
 *
 * Who keeps what from whom
 *   - A page is NEW to the one who fetched it first, until it is filled: nobody else sees it.
 *     Whoever meets such a page waits holding nothing, in file_wait_news().
 *   - node->lock: the contents of pages change, and are copied for write-back, under it; which
 *     pages are dirty; the size. Held for one page's copying; by truncation and its like, for
 *     everything from changing the file on disk until the pages have lost their names. No page is
 *     waited for and no room made under it.
 *   - node->generation changes, under the lock, after pages have lost their names. A writer looks at
 *     it before it fetches a page and again under the lock: if it has changed, the page may be
 *     nobody's any more. Not before they lose them: a writer that saw the new number could still
 *     fetch one of the old pages.
 *   - A reader needs none of it. It inserts the page, then reads the disk; truncation changes the
 *     disk, then takes the names away: so what a reader has read too early has lost its name.
 *   - node->write_lock: one write call, truncation or the like at a time. Outermost.
 *   - cache->lock: the table of nodes, handles, descriptors. Outside of node->lock.
 *   - cache->dirty_lock: the list of nodes with dirty pages. Innermost.
 */
#ifndef FOLIAGE_CACHE_FILE_H
#define FOLIAGE_CACHE_FILE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "cache/io.h"
#include "foliage/file.h"
#include "foliage/group.h"

enum {
	FILE_RUN = 32, /* pages of one read */
	GROUP_PAGES = 64,
	NODE_BUCKETS = 4096,
	NODE_IDLE_MAX = 4096, /* closed, clean files that are remembered */
	CLOSED_DIRTY_MAX = 256,
	COUNT_SHARDS = 64, /* the last is shared by threads beyond */
	RETRY_MS = 1000,   /* until a page that could not be written is tried again unasked */
	WAIT_SLICE_MS = 5,
	WRITERS = 2, /* who may write back at the same time */
	WRITER_BYTES = 1 << 20,
};
#define NO_PAGE    UINT64_MAX
#define FILE_HINTS (FOLIAGE_HINT_SEQUENTIAL | FOLIAGE_HINT_ONCE | FOLIAGE_HINT_WILL_NEED)
/* An access of nobody, to a page that is there. */
#define FILE_FETCH_INSIDE (FOLIAGE_FETCH_NOWAIT | FOLIAGE_HINT_ONCE)

enum fd_use { FD_READ, FD_WRITE, FD_READ_DIRECT, FD_WRITE_DIRECT, NR_FDS };

/* Dirty pages of a file, 64 neighbours. */
struct dirty_group {
	struct dirty_group *chain;       /* of the hash bucket */
	struct dirty_group *next, *prev; /* of the node, by age */
	uint64_t base;                   /* number of the first page / 64 */
	uint64_t dirty, writeback;
	uint64_t since_ms;
};

struct file_node {
	struct foliage_cache *cache;
	uint64_t id;           /* the pool's object; changes when closed and found changed */
	_Atomic uint64_t size; /* changes under lock */
	_Atomic uint64_t generation;
	_Atomic int fds[NR_FDS];
	struct foliage_group *_Atomic group; /* of new pages; NULL: the pool's own */
	_Atomic uint32_t fills;              /* under way through the ring */

	/* Under cache->lock. */
	dev_t dev;
	ino_t ino;
	struct file_node *chain;
	struct file_node *idle_next, *idle_prev;
	struct timespec known_mtime, known_ctime; /* when it became idle */
	uint32_t handles;
	bool idle;

	/* Under cache->dirty_lock. */
	struct file_node *dirty_next, *dirty_prev;
	bool listed;
	uint32_t users; /* who writes it back without having a handle */
	uint64_t round; /* of the flusher, when it was last seen */

	pthread_mutex_t write_lock;
	pthread_mutex_t sync_lock;
	pthread_mutex_t lock;
	pthread_cond_t cond; /* write-back of some pages is over */
	/* Under lock; the counts may be read without. */
	struct dirty_group **groups, *oldest, *newest;
	uint32_t nr_buckets, nr_groups;
	_Atomic uint64_t nr_dirty, nr_writeback;
	uint32_t hold;               /* nobody starts write-back: somebody waits for its end */
	uint64_t epoch, in_epoch[2]; /* pages in write-back since an fsync began, and before */
	uint64_t unsynced_first, unsynced_last; /* written since the last fsync that succeeded */
	struct timespec mtime;
	bool touched; /* written since the modification time was set on disk */
	uint32_t error_seq;
	int error;         /* of error_seq */
	bool error_seen;   /* by any handle */
	int failing;       /* the latest write-back failed with this */
	uint64_t retry_ms; /* not again before */
};

struct foliage_file {
	struct file_node *node;
	struct foliage_file *next, *prev; /* under cache->lock */
	bool readable, writable, append;
	bool sync_data, sync_all;   /* O_DSYNC, O_SYNC */
	_Atomic uint32_t error_seq; /* as far as this handle has been told */
	/* Read-ahead; a lost update costs one window. */
	_Atomic uint32_t advice, once;
	_Atomic uint64_t next_page; /* a miss there is sequential */
	_Atomic uint64_t trigger;   /* a hit there reads the next window */
	_Atomic uint32_t window;    /* pages */
	_Atomic uint64_t last_end;  /* of a read that ended inside a page */
};

/* An asynchronous request in hand. */
struct aio_state {
	struct foliage_aio *next;
	uint64_t at, end; /* the next byte to look at, the last + 1 */
	uint64_t fail_at; /* the first byte that could not be had */
	uint64_t waits_since_ms;
	int32_t error;
	uint32_t pending; /* fills that it waits for, and 1 while it is being looked at */
};
_Static_assert(sizeof(struct aio_state) <= sizeof(((struct foliage_aio *)0)->reserved),
	       "the state fits into the caller's request");

/* Consecutive new pages that are being read. */
struct file_fill {
	struct io_request request;
	struct file_node *node;
	struct foliage_aio *aio; /* gets its part of each page; NULL: read-ahead */
	struct file_fill *next_free;
	uint64_t first;
	uint32_t nr;
	struct foliage_page *pages[FILE_RUN];
	struct iovec iov[FILE_RUN];
};

struct count_shard {
	_Alignas(64) _Atomic uint64_t reads;
	_Atomic uint64_t read_bytes, writes, write_bytes;
};

struct aio_queue {
	struct foliage_aio *first, *last;
};

/* Someone's means to write back: a piece of fixed memory. */
struct writer;

struct foliage_cache {
	struct foliage_pool *pool;
	int kind;
	uint32_t shift, page_bytes;
	struct io io;
	bool direct;
	uint32_t readahead_max;                 /* pages; 0: none */
	uint64_t dirty_background, dirty_limit; /* pages */
	uint32_t expire_ms, wake_ms, wait_ms;

	pthread_mutex_t lock;
	struct file_node *table[NODE_BUCKETS];
	struct file_node *idle_first, *idle_last;
	struct foliage_file *files;
	uint32_t nr_nodes, nr_idle, nr_files, nr_closed_dirty;
	uint64_t next_id;

	pthread_mutex_t dirty_lock;
	struct file_node *dirty_first, *dirty_last;

	_Atomic uint64_t nr_dirty, nr_writeback; /* pages */
	_Atomic uint64_t progress;               /* pages written */
	_Atomic uint64_t readahead_pages, throttled;
	struct count_shard counts[COUNT_SHARDS];
	_Atomic uint32_t counting; /* shards taken */
	uint64_t serial;           /* tells caches at the same address apart */

	pthread_mutex_t writers_lock;
	pthread_cond_t writers_cond;
	struct writer *writers[WRITERS], *free_writers;
	char *fixed;

	pthread_t flusher;
	bool has_flusher;
	pthread_mutex_t flusher_lock;
	pthread_cond_t flusher_cond;
	bool stop;
	_Atomic bool kicked;
	_Atomic bool pool_starves; /* reclaim met only dirty pages */
	struct aio_queue fsyncs;   /* under flusher_lock */

	pthread_mutex_t aio_lock;
	struct aio_queue parked, done, called; /* waiting for pages or room; complete */
	uint32_t nr_aio;                       /* submitted, not delivered */
	struct file_fill *free_fills;
	uint32_t nr_free_fills;
};

/* Where in a caller's buffers. An empty buffer may only be at their end. */
struct file_cursor {
	const struct iovec *iov;
	size_t skip; /* of *iov */
};

static inline struct io_file node_read_fd(const struct file_node *n)
{
	return (struct io_file){
		.plain = atomic_load_explicit(&n->fds[FD_READ], memory_order_acquire),
		.direct = atomic_load_explicit(&n->fds[FD_READ_DIRECT], memory_order_acquire),
	};
}

static inline struct io_file node_write_fd(const struct file_node *n)
{
	return (struct io_file){
		.plain = atomic_load_explicit(&n->fds[FD_WRITE], memory_order_acquire),
		.direct = atomic_load_explicit(&n->fds[FD_WRITE_DIRECT], memory_order_acquire),
	};
}

static inline struct foliage_group *node_group(const struct file_node *n)
{
	struct foliage_group *group = atomic_load_explicit(&n->group, memory_order_acquire);

	return group ? group : foliage_pool_group(n->cache->pool);
}

static inline int node_fetch(struct file_node *n, uint64_t number, unsigned int flags,
			     struct foliage_page **page)
{
	struct foliage_cache *c = n->cache;
	struct foliage_group *group = atomic_load_explicit(&n->group, memory_order_acquire);

	if (__builtin_expect(group && flags & FOLIAGE_FETCH_CREATE, 0))
		return foliage_group_fetch(group, c->pool, n->id, number, c->kind, flags, page);
	return foliage_pool_fetch(c->pool, n->id, number, c->kind, flags, page);
}

static inline uint64_t node_size(const struct file_node *n)
{
	return atomic_load_explicit(&n->size, memory_order_acquire);
}

/* Pages that a file of so many bytes has. */
static inline uint64_t cache_pages(const struct foliage_cache *c, uint64_t bytes)
{
	return (bytes >> c->shift) + !!(bytes & (c->page_bytes - 1));
}

static inline struct aio_state *aio_state(struct foliage_aio *aio)
{
	return (struct aio_state *)aio->reserved;
}

/* -- file_cache.c -- */
/* foliage_cache_create() on other I/O than the system's. */
int file_cache_create(const struct foliage_cache_options *options, const struct io_backend *backend,
		      struct foliage_cache **cache, char *message, size_t message_bytes);
bool file_cache_alive(const struct foliage_cache *c);
void file_count_read(struct foliage_cache *c, uint64_t bytes);
void file_count_write(struct foliage_cache *c, uint64_t bytes);
/* Nothing to do but wait until something changes: a page is filled, room or write-back. */
void file_wait_news(struct foliage_cache *c);
/* Wait for room in the pool; false: nothing has moved for wait_ms. *waited starts as {0}. */
struct room_wait {
	uint64_t since_ms, progress;
};
bool file_wait_room(struct foliage_cache *c, struct room_wait *waited);

/* -- file.c -- */
/* The node may have lost its last user: forget it, or remember it without descriptors. */
void node_settle(struct file_node *n);
void node_free(struct file_node *n);
void node_close_fds(struct file_node *n);

/* -- file_read.c -- */
/* Read the new pages first .. first + nr - 1 of the node, in this thread. Pages that got their
 * contents are ready, still pinned; the others are gone. Returns how many got it; *error why not
 * all. */
uint32_t file_fill_now(struct file_node *n, struct foliage_page **pages, uint64_t first,
		       uint32_t nr, int *error);
/* What was read of new pages, or not: the same without the reading. */
uint32_t file_filled(struct file_node *n, struct foliage_page **pages, uint64_t first, uint32_t nr,
		     uint64_t got, int error, bool keep);

/* Most copies are of one page of this size. A length and an alignment that the compiler knows become
 * the processor's string instruction, which fetches what is in no cache a fifth faster than the loop
 * of vectors that a library's memcpy() takes for so few bytes. */
static inline void file_copy_bytes(void *to, const void *from, size_t bytes)
{
	if (bytes == 4096 && !(((uintptr_t)to | (uintptr_t)from) % 16))
		memcpy(__builtin_assume_aligned(to, 16), __builtin_assume_aligned(from, 16), 4096);
	else
		memcpy(to, from, bytes);
}

void file_copy(struct file_cursor *at, char *page, size_t bytes, bool out);
/* How to fetch the page of byte `at` for reading; reading on inside a page is one access with what
 * was before. */
static inline unsigned int file_fetch_flags(struct foliage_file *f, uint64_t at, unsigned int flags)
{
	unsigned int hints = flags & FILE_HINTS;

	if (__builtin_expect(atomic_load_explicit(&f->once, memory_order_relaxed), 0))
		hints |= FOLIAGE_HINT_ONCE;
	if (at & (f->node->cache->page_bytes - 1) &&
	    at == atomic_load_explicit(&f->last_end, memory_order_relaxed))
		hints |= FOLIAGE_HINT_SEQUENTIAL;
	if (flags & FOLIAGE_RW_NOWAIT)
		return hints | FOLIAGE_FETCH_NOWAIT;
	return hints | FOLIAGE_FETCH_NOWAIT | FOLIAGE_FETCH_CREATE;
}

int file_check_read(const struct foliage_file *f, uint64_t offset);

/* -- file_ahead.c -- */
/* A miss at `first`, of a request up to `last`: how many pages after `last` to read as well. */
uint64_t file_ahead_miss(struct foliage_file *f, uint64_t first, uint64_t last);
/* A hit in the window: read the next. */
void file_ahead_hit(struct foliage_file *f, uint64_t first, uint64_t last);
static inline void file_ahead_touch(struct foliage_file *f, uint64_t first, uint64_t last)
{
	uint64_t trigger = atomic_load_explicit(&f->trigger, memory_order_relaxed);

	if (__builtin_expect(trigger >= first && trigger <= last, 0))
		file_ahead_hit(f, first, last);
}
/* Start reading what is missing of first .. last; stops where there is no room. */
void file_ahead_start(struct file_node *n, uint64_t first, uint64_t last);

/* -- file_aio.c -- */
struct file_fill *file_fill_new(struct foliage_cache *c);
/* Start a fill: its node, first, nr, pages and aio are set. */
void file_fill_start(struct file_fill *fill, struct io_request **list);
void file_aio_complete(struct foliage_aio *aio, int64_t result);
void aio_push(struct aio_queue *q, struct foliage_aio *aio);
struct foliage_aio *aio_pop(struct aio_queue *q);
/* Finish what nobody will wait for. */
void file_aio_drain(struct foliage_cache *c);

/* -- file_write.c -- */
/* One write inside one page. What cannot be done without waiting: -EAGAIN (the page is being
 * filled), -ENOBUFS, -ENODATA (the page would have to be read, and !may_read). */
int file_write_page(struct file_node *n, uint64_t at, struct file_cursor *from, size_t bytes,
		    unsigned int hints, bool may_read);
/* Too many dirty pages for another; *error: why there will not be fewer, or 0. */
bool file_dirty_limit(struct file_node *n, int *error);
int file_check_write(const struct foliage_file *f, uint64_t offset, uint64_t bytes);

/* -- file_dirty.c: under node->lock -- */
struct dirty_group *dirty_find(const struct file_node *n, uint64_t base);
/* False: out of memory. */
bool dirty_mark(struct file_node *n, uint64_t page);
bool dirty_test(const struct file_node *n, uint64_t page);
/* A group may have become empty, the node clean or dirty. */
void dirty_group_settle(struct file_node *n, struct dirty_group *g);
/* Forget that pages from `first` to `last` are dirty; none is in write-back. */
void dirty_forget(struct file_node *n, uint64_t first, uint64_t last);
/* Take nr pages of the group from bit `bit` on for write-back, and give them back. */
void dirty_to_writeback(struct file_node *n, struct dirty_group *g, uint32_t bit, uint32_t nr);
void dirty_from_writeback(struct file_node *n, struct dirty_group *g, uint32_t bit, bool failed);
void dirty_fini(struct file_node *n);

/* -- writeback.c -- */
int writeback_init(struct foliage_cache *c);
void writeback_fini(struct foliage_cache *c);
/* Write what is dirty of the node, and wait until it, and what others were writing, is written. 0
 * or the first error. */
int writeback_node(struct file_node *n);
/* The same and fsync. */
int writeback_sync(struct file_node *n, bool data_only);
/* An error happened: every handle is to hear of it. Under node->lock. */
void writeback_error(struct file_node *n, int error);
/* What this handle has not heard yet: 0 or an error, once. */
int writeback_report(struct foliage_file *f);
/* Wait until nothing of the node is being written, and keep others from starting. Under node->lock,
 * which is released meanwhile. */
void writeback_hold(struct file_node *n);
void writeback_release(struct file_node *n);
void writeback_kick(struct foliage_cache *c);
/* The flusher fsyncs for an asynchronous request. */
void writeback_fsync_later(struct foliage_aio *aio);

#endif
