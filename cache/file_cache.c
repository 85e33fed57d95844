/* SPDX-License-Identifier: MIT
 *
 * The file cache as a whole: made, asked for its figures, ended. file.h draws who keeps what from
 * whom.
 */
#include "cache/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/pool.h"

static int bad(char *message, size_t bytes, int code, const char *text)
{
	if (message && bytes)
		snprintf(message, bytes, "%s", text);
	return code;
}

static int check_options(const struct foliage_cache_options *o, char *message, size_t bytes)
{
	uint32_t page = o->page_bytes ? o->page_bytes : 4096;

	if (o->io > FOLIAGE_IO_URING || o->direct > FOLIAGE_DIRECT_NEVER)
		return bad(message, bytes, -EINVAL, "io or direct has no such value");
	if (o->queue_depth > 4096)
		return bad(message, bytes, -EINVAL, "queue_depth must be at most 4096");
	if (o->readahead_bytes > 4 << 20)
		return bad(message, bytes, -EINVAL, "readahead_bytes must be at most 4 MiB");
	if (page < FOLIAGE_PAGE_MIN || page > FOLIAGE_PAGE_MAX || page & (page - 1))
		return bad(message, bytes, -EINVAL,
			   "page_bytes must be a power of two, 512 to 65536");
	if (o->dirty_limit > 80 || o->dirty_background > 80)
		return bad(message, bytes, -EINVAL,
			   "dirty_background and dirty_limit must be at most 80 percent");
	return 0;
}

/* Reclaim met only dirty pages; called in the thread that needs room, which may hold anything. */
static void pool_is_dirty(void *ctx)
{
	struct foliage_cache *c = ctx;

	atomic_store_explicit(&c->pool_starves, true, memory_order_relaxed);
	writeback_kick(c);
}

static int make_pool(struct foliage_cache *c, const struct foliage_cache_options *o, char *message,
		     size_t bytes)
{
	struct foliage_pool_options options = {
		.bytes = o->bytes,
		.max_bytes = o->max_bytes,
		.max_pages = o->max_pages,
		.page_bytes = c->page_bytes,
		.policy = o->policy,
		.seed = o->seed,
		.max_groups = o->max_groups,
		.dirty = pool_is_dirty,
		.ctx = c,
	};
	int rc = foliage_pool_create(&options, &c->pool, message, bytes);

	if (rc)
		return rc;
	c->kind = foliage_pool_kind(c->pool, c->page_bytes, 0);
	return c->kind < 0 ? bad(message, bytes, c->kind, "the budget is too small for its pages")
			   : 0;
}

static int make_io(struct foliage_cache *c, const struct foliage_cache_options *o,
		   const struct io_backend *backend, char *message, size_t bytes)
{
	uint32_t depth = o->queue_depth ? o->queue_depth : 128;
	int rc;

	c->fixed = aligned_alloc(4096, (size_t)WRITERS * WRITER_BYTES);
	if (!c->fixed)
		return -ENOMEM;
	rc = io_init(&c->io, backend, o->io == FOLIAGE_IO_SYNC ? 0 : depth, c->fixed,
		     (size_t)WRITERS * WRITER_BYTES);
	if (rc == -ENOSYS && o->io == FOLIAGE_IO_URING)
		return bad(message, bytes, rc, "io_uring is not built in, or not allowed here");
	return rc == -ENOSYS ? 0 : rc;
}

static void set_limits(struct foliage_cache *c, const struct foliage_cache_options *o)
{
	uint64_t pages = MIN(o->bytes >> c->shift, o->max_pages ? o->max_pages : UINT64_MAX);
	uint32_t ahead = o->readahead_bytes ? o->readahead_bytes : 128 << 10;

	c->dirty_background =
		MAX(pages * (o->dirty_background ? o->dirty_background : 10) / 100, UINT64_C(1));
	c->dirty_limit = MAX(pages * (o->dirty_limit ? o->dirty_limit : 30) / 100, UINT64_C(2));
	c->dirty_background = MIN(c->dirty_background, c->dirty_limit / 2 + 1);
	c->expire_ms = o->dirty_expire_ms ? o->dirty_expire_ms : 5000;
	c->wake_ms = o->dirty_wake_ms ? o->dirty_wake_ms : 500;
	c->wait_ms = o->wait_ms ? o->wait_ms : 10000;
	/* A window is a guess: not more than a 16th of the room. */
	c->readahead_max =
		o->no_readahead ? 0 : (uint32_t)MIN((uint64_t)ahead >> c->shift, pages / 16);
}

static uint64_t serial_number(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int file_cache_create(const struct foliage_cache_options *o, const struct io_backend *backend,
		      struct foliage_cache **cache, char *message, size_t bytes)
{
	struct foliage_cache *c;
	int rc = check_options(o, message, bytes);

	if (rc)
		return rc;
	c = aligned_alloc(64, sizeof(*c));
	if (!c)
		return bad(message, bytes, -ENOMEM, "out of memory");
	memset(c, 0, sizeof(*c));
	if (message && bytes)
		message[0] = '\0';
	c->page_bytes = o->page_bytes ? o->page_bytes : 4096;
	c->shift = fls64(c->page_bytes) - 1;
	/* A write that bypasses the kernel's cache must not meet one through it in the same page of
	 * the kernel: see node_take_fd(). */
	c->direct = o->direct == FOLIAGE_DIRECT_AUTO && c->page_bytes >= 4096;
	c->next_id = 1;
	c->serial = serial_number();
	set_limits(c, o);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->dirty_lock, NULL);
	pthread_mutex_init(&c->aio_lock, NULL);
	rc = make_pool(c, o, message, bytes);
	if (!rc)
		rc = make_io(c, o, backend, message, bytes);
	if (!rc)
		rc = writeback_init(c);
	if (rc) {
		if (message && bytes && !message[0])
			bad(message, bytes, rc, strerror(-rc));
		foliage_cache_destroy(c);
		return rc;
	}
	*cache = c;
	return 0;
}

int foliage_cache_create(const struct foliage_cache_options *o, struct foliage_cache **cache,
			 char *message, size_t bytes)
{
	return file_cache_create(o, &io_system, cache, message, bytes);
}

/* ---- all files ---- */

/* The file behind `n` (NULL: the first) that may have something to write, or written and not yet
 * fsynced. It is kept by `users`, `n` no longer. No list is made of them: the end of a cache must
 * write everything, also without memory for a list. */
static struct file_node *next_unwritten(struct foliage_cache *c, struct file_node *n, int *bucket)
{
	struct file_node *next;

	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&c->dirty_lock);
	next = n ? n->chain : c->table[*bucket];
	for (;;) {
		while (next && (next->idle || atomic_load(&next->fds[FD_WRITE]) < 0))
			next = next->chain;
		if (next || ++*bucket == NODE_BUCKETS)
			break;
		next = c->table[*bucket];
	}
	if (next)
		next->users++;
	if (n)
		n->users--;
	pthread_mutex_unlock(&c->dirty_lock);
	pthread_mutex_unlock(&c->lock);
	if (n)
		node_settle(n);
	return next;
}

static int write_everything(struct foliage_cache *c, bool sync)
{
	struct file_node *n = NULL;
	int first = 0, bucket = 0;

	while ((n = next_unwritten(c, n, &bucket))) {
		int rc = sync ? writeback_sync(n, false) : writeback_node(n);

		if (!first)
			first = rc;
	}
	return first;
}

int foliage_cache_sync(struct foliage_cache *c)
{
	return file_cache_alive(c) ? write_everything(c, true) : -ECHILD;
}

/* ---- the end ---- */

static void free_nodes(struct foliage_cache *c)
{
	while (c->files) {
		struct foliage_file *next = c->files->next;

		free(c->files);
		c->files = next;
	}
	for (int i = 0; i < NODE_BUCKETS; i++) {
		while (c->table[i]) {
			struct file_node *n = c->table[i];

			c->table[i] = n->chain;
			node_free(n);
		}
	}
}

int foliage_cache_destroy(struct foliage_cache *c)
{
	bool alive;
	int rc = 0;

	if (!c)
		return 0;
	alive = file_cache_alive(c);
	if (alive) {
		file_aio_drain(c);
		rc = write_everything(c, false);
	}
	writeback_fini(c);
	io_fini(&c->io);
	free_nodes(c);
	while (c->free_fills) {
		struct file_fill *next = c->free_fills->next_free;

		free(c->free_fills);
		c->free_fills = next;
	}
	foliage_pool_destroy(c->pool);
	free(c->fixed);
	free(c);
	return rc;
}

bool file_cache_alive(const struct foliage_cache *c)
{
	return c->pool && atomic_load_explicit(c->pool->alive, memory_order_relaxed);
}

/* ---- waiting ---- */

void file_wait_news(struct foliage_cache *c)
{
	io_wait(&c->io, WAIT_SLICE_MS);
}

bool file_wait_room(struct foliage_cache *c, struct room_wait *w)
{
	uint64_t now = io_now_ms(), progress = atomic_load(&c->progress);

	if (!w->since_ms || progress != w->progress)
		*w = (struct room_wait){.since_ms = now, .progress = progress};
	else if (now - w->since_ms >= c->wait_ms)
		return false;
	if (atomic_load(&c->nr_dirty)) {
		atomic_store_explicit(&c->pool_starves, true, memory_order_relaxed);
		writeback_kick(c);
	}
	file_wait_news(c);
	return true;
}

/* ---- figures ---- */

struct foliage_pool *foliage_cache_pool(struct foliage_cache *c)
{
	return c->pool;
}

/* The thread's own counters. A thread takes a place the first time that it counts, for good; those
 * that come too late share the last one. */
static struct count_shard *counts_of(struct foliage_cache *c)
{
	static _Thread_local struct {
		const struct foliage_cache *cache;
		uint64_t serial;
		struct count_shard *shard;
	} last __attribute__((tls_model("initial-exec")));
	uint32_t place;

	if (__builtin_expect(last.cache == c && last.serial == c->serial, 1))
		return last.shard;
	place = atomic_load(&c->counting);
	if (place < COUNT_SHARDS - 1)
		place = atomic_fetch_add(&c->counting, 1);
	last.cache = c;
	last.serial = c->serial;
	last.shard = &c->counts[MIN(place, (uint32_t)COUNT_SHARDS - 1)];
	return last.shard;
}

static void count(_Atomic uint64_t *calls, _Atomic uint64_t *bytes, bool shared, uint64_t nr)
{
	if (__builtin_expect(shared, 0)) {
		atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(bytes, nr, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(calls, atomic_load_explicit(calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(bytes, atomic_load_explicit(bytes, memory_order_relaxed) + nr,
			      memory_order_relaxed);
}

void file_count_read(struct foliage_cache *c, uint64_t bytes)
{
	struct count_shard *s = counts_of(c);

	count(&s->reads, &s->read_bytes, s == &c->counts[COUNT_SHARDS - 1], bytes);
}

void file_count_write(struct foliage_cache *c, uint64_t bytes)
{
	struct count_shard *s = counts_of(c);

	count(&s->writes, &s->write_bytes, s == &c->counts[COUNT_SHARDS - 1], bytes);
}

static void count_files(struct foliage_cache *c, struct foliage_cache_stats *out)
{
	pthread_mutex_lock(&c->lock);
	out->files_known = c->nr_nodes;
	for (int i = 0; i < NODE_BUCKETS; i++) {
		for (const struct file_node *n = c->table[i]; n; n = n->chain) {
			if (!n->handles)
				continue;
			out->files_open++;
			out->direct_files += atomic_load(&n->fds[FD_READ_DIRECT]) >= 0 ||
					     atomic_load(&n->fds[FD_WRITE_DIRECT]) >= 0;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

int foliage_cache_stats(struct foliage_cache *c, struct foliage_cache_stats *out)
{
	*out = (struct foliage_cache_stats){0};
	if (!file_cache_alive(c))
		return -ECHILD;
	foliage_pool_stats(c->pool, &out->pool);
	for (int i = 0; i < COUNT_SHARDS; i++) {
		out->reads += atomic_load(&c->counts[i].reads);
		out->read_bytes += atomic_load(&c->counts[i].read_bytes);
		out->writes += atomic_load(&c->counts[i].writes);
		out->write_bytes += atomic_load(&c->counts[i].write_bytes);
	}
	out->disk_reads = atomic_load(&c->io.reads);
	out->disk_read_bytes = atomic_load(&c->io.read_bytes);
	out->disk_writes = atomic_load(&c->io.writes);
	out->disk_write_bytes = atomic_load(&c->io.write_bytes);
	out->read_errors = atomic_load(&c->io.read_errors);
	out->write_errors = atomic_load(&c->io.write_errors);
	out->fsyncs = atomic_load(&c->io.syncs);
	out->readahead_pages = atomic_load(&c->readahead_pages);
	out->throttled = atomic_load(&c->throttled);
	out->dirty_bytes = atomic_load(&c->nr_dirty) << c->shift;
	out->writeback_bytes = atomic_load(&c->nr_writeback) << c->shift;
	out->uring = c->io.ring;
	count_files(c, out);
	return 0;
}
