/* SPDX-License-Identifier: MIT
 *
 * Writing: into pages in memory, one at a time, which become dirty. A page that is not there is
 * read first only if the write leaves something of it standing.
 */
#include "cache/file.h"

#include <limits.h>
#include <string.h>

/* A new page gets what the write will not give it. True: it is public already. */
static int prepare_page(struct file_node *n, struct foliage_page *page, uint64_t at, size_t bytes,
			bool may_read, bool *ready)
{
	struct foliage_cache *c = n->cache;
	uint64_t size = node_size(n), start = at & ~(uint64_t)(c->page_bytes - 1);
	size_t skip = at - start, end = skip + bytes;
	int error;

	*ready = false;
	if ((skip && start < size) || at + bytes < MIN(start + c->page_bytes, size)) {
		if (!may_read) {
			foliage_pool_unpin(c->pool, page, FOLIAGE_UNPIN_DISCARD);
			io_kick(&c->io);
			return -ENODATA;
		}
		*ready = true;
		return file_fill_now(n, &page, start >> c->shift, 1, &error) ? 0 : error;
	}
	memset(page->data, 0, skip);
	memset((char *)page->data + end, 0, c->page_bytes - end);
	return 0;
}

/* The locked instructions around each page wait until all of it is stored: its lines are to be on
 * their way before them. */
static void expect_write(const char *data, size_t bytes)
{
	for (size_t i = 0; i < MIN(bytes, (size_t)4096); i += 64)
		__builtin_prefetch(data + i, 1);
}

/* Under node->lock: the page has changed. */
static void note_write(struct file_node *n, uint64_t end)
{
	if (end > node_size(n))
		atomic_store_explicit(&n->size, end, memory_order_release);
	clock_gettime(CLOCK_REALTIME_COARSE, &n->mtime);
	n->touched = true;
}

int file_write_page(struct file_node *n, uint64_t at, struct file_cursor *from, size_t bytes,
		    unsigned int hints, bool may_read)
{
	struct foliage_cache *c = n->cache;
	unsigned int fetch = FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT | hints;

	for (;;) {
		uint64_t generation = atomic_load(&n->generation), number = at >> c->shift;
		struct foliage_page *page;
		bool ready = true, same, marked = false;
		int rc = node_fetch(n, number, fetch, &page);

		if (rc == FOLIAGE_NEW)
			rc = prepare_page(n, page, at, bytes, may_read, &ready);
		if (rc < 0)
			return rc;
		expect_write((char *)page->data + (at & (c->page_bytes - 1)), bytes);
		pthread_mutex_lock(&n->lock);
		same = generation == atomic_load(&n->generation);
		if (same)
			marked = dirty_mark(n, number);
		if (marked) {
			file_copy(from, (char *)page->data + (at & (c->page_bytes - 1)), bytes,
				  false);
			note_write(n, at + bytes);
		}
		foliage_pool_unpin(c->pool, page,
				   marked  ? FOLIAGE_UNPIN_DIRTY
				   : ready ? 0
					   : FOLIAGE_UNPIN_DISCARD);
		pthread_mutex_unlock(&n->lock);
		if (!ready)
			io_kick(&c->io);
		if (same)
			return marked ? 0 : -ENOMEM;
	}
}

bool file_dirty_limit(struct file_node *n, int *error)
{
	struct foliage_cache *c = n->cache;
	uint64_t nr = atomic_load_explicit(&c->nr_dirty, memory_order_relaxed) +
		      atomic_load_explicit(&c->nr_writeback, memory_order_relaxed);

	*error = 0;
	if (__builtin_expect(nr <= c->dirty_limit, 1))
		return false;
	pthread_mutex_lock(&n->lock);
	*error = n->failing;
	pthread_mutex_unlock(&n->lock);
	writeback_kick(c);
	return true;
}

/* Fewer dirty pages than the limit: 0, or why there will not be. */
static int throttle(struct file_node *n, unsigned int flags)
{
	struct room_wait waited = {0};
	int error;

	if (!file_dirty_limit(n, &error))
		return 0;
	if (flags & FOLIAGE_RW_NOWAIT)
		return -EAGAIN;
	atomic_fetch_add_explicit(&n->cache->throttled, 1, memory_order_relaxed);
	do {
		if (error)
			return error;
		if (!file_wait_room(n->cache, &waited))
			return -ENOBUFS;
	} while (file_dirty_limit(n, &error));
	return 0;
}

/* Until the page is written, or cannot be. */
static int write_page(struct file_node *n, uint64_t at, struct file_cursor *from, size_t bytes,
		      unsigned int flags)
{
	bool wait = !(flags & FOLIAGE_RW_NOWAIT);
	struct room_wait waited = {0};
	int rc = throttle(n, flags), error;

	while (!rc) {
		rc = file_write_page(n, at, from, bytes, flags & FILE_HINTS, wait);
		if (rc == -ENODATA || (!wait && rc == -ENOBUFS))
			return -EAGAIN;
		if (!wait || (rc != -EAGAIN && rc != -ENOBUFS))
			break;
		if (rc == -EAGAIN) {
			file_wait_news(n->cache);
		} else if (!file_wait_room(n->cache, &waited)) {
			pthread_mutex_lock(&n->lock);
			error = n->failing;
			pthread_mutex_unlock(&n->lock);
			return error ? error : rc;
		}
		rc = 0;
	}
	return rc;
}

/* Under write_lock. */
static int64_t write_range(struct foliage_file *f, struct file_cursor from, uint64_t start,
			   uint64_t end, unsigned int flags)
{
	struct file_node *n = f->node;
	uint32_t page = n->cache->page_bytes;
	uint64_t at = start;
	int rc = 0;

	if (atomic_load_explicit(&f->once, memory_order_relaxed))
		flags |= FOLIAGE_HINT_ONCE;
	while (at < end) {
		size_t part = MIN(page - (at & (page - 1)), end - at);

		rc = write_page(n, at, &from, part, flags);
		if (rc)
			break;
		at += part;
	}
	file_count_write(n->cache, at - start);
	return at > start ? (int64_t)(at - start) : rc;
}

int file_check_write(const struct foliage_file *f, uint64_t offset, uint64_t bytes)
{
	if (!f->writable)
		return -EBADF;
	return offset > INT64_MAX || bytes > INT64_MAX - offset ? -EFBIG : 0;
}

int64_t foliage_file_write(struct foliage_file *f, const void *buffer, size_t bytes,
			   uint64_t offset)
{
	struct iovec iov = {(void *)(uintptr_t)buffer, bytes};

	return foliage_file_writev(f, &iov, 1, offset, 0);
}

int64_t foliage_file_writev(struct foliage_file *f, const struct iovec *iov, int nr,
			    uint64_t offset, unsigned int flags)
{
	struct file_cursor from = {.iov = iov};
	struct file_node *n = f->node;
	uint64_t bytes = 0;
	int64_t written;
	int rc;

	if (!file_cache_alive(n->cache))
		return -ECHILD;
	for (int i = 0; i < nr; i++)
		bytes += iov[i].iov_len;
	if (flags & FOLIAGE_RW_NOWAIT) {
		if (pthread_mutex_trylock(&n->write_lock))
			return -EAGAIN;
	} else {
		pthread_mutex_lock(&n->write_lock);
	}
	if (f->append || offset == FOLIAGE_APPEND)
		offset = node_size(n);
	rc = file_check_write(f, offset, bytes);
	while (!rc && bytes && !from.iov->iov_len)
		from.iov++;
	written = rc ? rc : bytes ? write_range(f, from, offset, offset + bytes, flags) : 0;
	pthread_mutex_unlock(&n->write_lock);
	if (written > 0 && (f->sync_data || f->sync_all)) {
		rc = f->sync_all ? foliage_file_fsync(f) : foliage_file_fdatasync(f);
		if (rc)
			return rc;
	}
	return written;
}
