/* SPDX-License-Identifier: MIT
 *
 * What changes a file as a whole, and advice. The order is always the same: nothing of the file is
 * being written (writeback_hold()), the file on disk changes, then pages lose their names, all of
 * it under node->lock. file.h says why readers need not know.
 */
#include "cache/file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

enum { CLEAN_TRIES = 100, DROP_BATCH = 1024 };

static int check_change(const struct foliage_file *f)
{
	if (!file_cache_alive(f->node->cache))
		return -ECHILD;
	return f->writable ? 0 : -EBADF;
}

/* Pages first .. last lose their names. Under node->lock. */
static void drop_names(struct file_node *n, uint64_t first, uint64_t last)
{
	if (first <= last)
		foliage_pool_truncate(n->cache->pool, n->id, first, last);
	atomic_fetch_add(&n->generation, 1);
}

static void changed_now(struct file_node *n)
{
	clock_gettime(CLOCK_REALTIME_COARSE, &n->mtime);
	n->touched = true;
}

/* ---- truncate ---- */

/* The file has become shorter on disk. `tail`: the last page, if it is dirty. */
static void shrink_node(struct file_node *n, uint64_t size, struct foliage_page *tail)
{
	struct foliage_cache *c = n->cache;
	uint64_t before = cache_pages(c, node_size(n)), first = cache_pages(c, size);
	size_t rest = size & (c->page_bytes - 1);

	atomic_store_explicit(&n->size, size, memory_order_release);
	dirty_forget(n, first, UINT64_MAX);
	if (tail)
		memset((char *)tail->data + rest, 0, c->page_bytes - rest);
	else if (rest)
		first--; /* somebody may be reading it from disk with its old tail */
	if (before)
		drop_names(n, first, before - 1);
}

static int truncate_node(struct file_node *n, uint64_t size)
{
	struct foliage_cache *c = n->cache;
	struct io_backend *b = &c->io.backend;
	struct foliage_page *tail = NULL;
	uint64_t last = size >> c->shift;
	int rc;

	if (size < node_size(n) && size & (c->page_bytes - 1) && dirty_test(n, last)) {
		rc = node_fetch(n, last, FILE_FETCH_INSIDE, &tail);
		if (rc)
			return -EBUSY; /* 2048 pins */
	}
	rc = b->truncate(b->ctx, node_write_fd(n).plain, size);
	if (!rc) {
		if (size < node_size(n))
			shrink_node(n, size, tail);
		else
			atomic_store_explicit(&n->size, size, memory_order_release);
		changed_now(n);
	}
	if (tail)
		foliage_pool_unpin(c->pool, tail, 0);
	return rc;
}

int foliage_file_truncate(struct foliage_file *f, uint64_t size)
{
	struct file_node *n = f->node;
	int rc = check_change(f);

	if (rc)
		return rc;
	if (size > INT64_MAX)
		return -EFBIG;
	pthread_mutex_lock(&n->write_lock);
	pthread_mutex_lock(&n->lock);
	writeback_hold(n);
	do
		rc = truncate_node(n, size);
	while (rc == -EINTR);
	writeback_release(n);
	pthread_mutex_unlock(&n->lock);
	pthread_mutex_unlock(&n->write_lock);
	return rc;
}

/* ---- what needs everything to be on disk first ---- */

/* Write everything back; 0: node->lock is held, nothing is dirty or being written. */
static int hold_clean(struct file_node *n)
{
	for (int i = 0; i < CLEAN_TRIES; i++) {
		int rc = writeback_node(n);

		if (rc)
			return rc;
		pthread_mutex_lock(&n->lock);
		writeback_hold(n);
		if (!atomic_load(&n->nr_dirty))
			return 0;
		writeback_release(n);
		pthread_mutex_unlock(&n->lock);
	}
	return -EBUSY; /* asynchronous writes without end */
}

static void release_clean(struct file_node *n)
{
	writeback_release(n);
	pthread_mutex_unlock(&n->lock);
}

/* The file has been changed on disk from `offset` on: the cache follows. */
static void follow_allocate(struct file_node *n, int mode, uint64_t offset, uint64_t bytes)
{
	struct foliage_cache *c = n->cache;
	uint64_t size = node_size(n), after = size, pages = cache_pages(c, size);
	uint64_t first = offset >> c->shift, last = (offset + bytes - 1) >> c->shift;

	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		after = size - bytes;
	else if (mode & FALLOC_FL_INSERT_RANGE)
		after = size + bytes;
	else if (!(mode & FALLOC_FL_KEEP_SIZE))
		after = MAX(size, offset + bytes);
	if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE))
		last = UINT64_MAX;
	if (after != size)
		atomic_store_explicit(&n->size, after, memory_order_release);
	if (pages && first < pages && mode & ~FALLOC_FL_KEEP_SIZE)
		drop_names(n, first, MIN(last, pages - 1));
	changed_now(n);
}

int foliage_file_allocate(struct foliage_file *f, int mode, uint64_t offset, uint64_t bytes)
{
	struct file_node *n = f->node;
	struct io_backend *b = &n->cache->io.backend;
	int rc = check_change(f);

	if (rc)
		return rc;
	if (!bytes || offset > INT64_MAX || bytes > INT64_MAX)
		return -EINVAL;
	if (bytes > INT64_MAX - offset)
		return -EFBIG;
	pthread_mutex_lock(&n->write_lock);
	rc = hold_clean(n);
	if (!rc) {
		do
			rc = b->allocate(b->ctx, node_write_fd(n).plain, mode, offset, bytes);
		while (rc == -EINTR);
		if (!rc)
			follow_allocate(n, mode, offset, bytes);
		release_clean(n);
	}
	pthread_mutex_unlock(&n->write_lock);
	return rc;
}

/* The pages that a range touches; bytes 0: to the end of everything. */
static uint64_t last_touched(const struct foliage_cache *c, uint64_t offset, uint64_t bytes)
{
	if (!bytes || bytes > INT64_MAX || offset > INT64_MAX)
		return UINT64_MAX;
	return (offset + bytes - 1) >> c->shift;
}

int foliage_file_invalidate(struct foliage_file *f, uint64_t offset, uint64_t bytes)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t last = last_touched(c, offset, bytes), pages;
	struct stat st;
	int rc;

	if (!file_cache_alive(c))
		return -ECHILD;
	pthread_mutex_lock(&n->write_lock);
	rc = hold_clean(n);
	if (!rc) {
		pages = cache_pages(c, node_size(n));
		if (pages)
			drop_names(n, offset >> c->shift, MIN(last, pages - 1));
		if (!fstat(foliage_file_fd(f), &st) && S_ISREG(st.st_mode))
			atomic_store_explicit(&n->size, (uint64_t)st.st_size, memory_order_release);
		release_clean(n);
	}
	pthread_mutex_unlock(&n->write_lock);
	return rc;
}

/* ---- advice ---- */

/* Clean pages of first .. last go; dirty ones are old from now on. */
static void dont_need(struct file_node *n, uint64_t first, uint64_t last)
{
	struct foliage_cache *c = n->cache;
	bool dirty = false;

	for (uint64_t i = first; i <= last;) {
		pthread_mutex_lock(&n->lock);
		if (!n->nr_groups) {
			drop_names(n, i, last);
			i = last + 1;
		}
		for (int batch = 0; i <= last && batch < DROP_BATCH; batch++, i++) {
			struct dirty_group *g = dirty_find(n, i / GROUP_PAGES);

			if (g && (g->dirty | g->writeback) >> i % GROUP_PAGES & 1) {
				g->since_ms = 0;
				dirty = true;
			} else {
				foliage_pool_discard(c->pool, n->id, i);
			}
		}
		atomic_fetch_add(&n->generation, 1);
		pthread_mutex_unlock(&n->lock);
	}
	if (dirty)
		writeback_kick(c);
}

static void advise_range(struct foliage_file *f, enum foliage_advice advice, uint64_t offset,
			 uint64_t bytes)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t size = node_size(n), end = bytes ? offset + bytes : size, first, last;

	end = MIN(end, size);
	if (offset >= end)
		return;
	if (advice == FOLIAGE_ADVICE_WILLNEED) {
		struct foliage_pool_stats stats;

		foliage_pool_stats(c->pool, &stats);
		first = offset >> c->shift;
		last = MIN((end - 1) >> c->shift, first + (stats.budget / 2 >> c->shift));
		file_ahead_start(n, first, last);
		return;
	}
	first = cache_pages(c, offset);
	last = end == size ? cache_pages(c, size) : end >> c->shift;
	if (first < last)
		dont_need(n, first, last - 1);
}

int foliage_file_advise(struct foliage_file *f, enum foliage_advice advice, uint64_t offset,
			uint64_t bytes)
{
	if (!file_cache_alive(f->node->cache))
		return -ECHILD;
	if (offset > INT64_MAX || bytes > INT64_MAX - offset)
		return -EINVAL;
	switch (advice) {
	case FOLIAGE_ADVICE_NORMAL:
	case FOLIAGE_ADVICE_SEQUENTIAL:
	case FOLIAGE_ADVICE_RANDOM:
		atomic_store_explicit(&f->advice, advice, memory_order_relaxed);
		atomic_store_explicit(&f->once, 0, memory_order_relaxed);
		return 0;
	case FOLIAGE_ADVICE_NOREUSE:
		atomic_store_explicit(&f->once, 1, memory_order_relaxed);
		return 0;
	case FOLIAGE_ADVICE_WILLNEED:
	case FOLIAGE_ADVICE_DONTNEED:
		advise_range(f, advice, offset, bytes);
		return 0;
	}
	return -EINVAL;
}
