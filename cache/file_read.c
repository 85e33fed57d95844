/* SPDX-License-Identifier: MIT
 *
 * Reading: hits page by page out of the pool; at a miss all consecutive missing pages of the
 * request (and what read-ahead adds, if it has no ring to do that by itself) in one call of the
 * system.
 */
#include "cache/file.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

void file_copy(struct file_cursor *at, char *page, size_t bytes, bool out)
{
	while (bytes) {
		size_t part = MIN(bytes, at->iov->iov_len - at->skip);
		char *theirs = (char *)at->iov->iov_base + at->skip;

		if (out)
			file_copy_bytes(theirs, page, part);
		else
			file_copy_bytes(page, theirs, part);
		page += part;
		bytes -= part;
		at->skip += part;
		if (at->skip == at->iov->iov_len) {
			at->iov++;
			at->skip = 0;
		}
	}
}

/* ---- filling ---- */

/* Bytes beyond the end of the file are zero in every cached page: the end may move. */
static void zero_tail(struct file_node *n, char *data, uint64_t at, uint64_t have)
{
	uint64_t size = node_size(n), valid = size > at ? size - at : 0;

	valid = MIN(valid, have);
	if (valid < n->cache->page_bytes)
		memset(data + valid, 0, n->cache->page_bytes - valid);
}

uint32_t file_filled(struct file_node *n, struct foliage_page **pages, uint64_t first, uint32_t nr,
		     uint64_t got, int error, bool keep)
{
	struct foliage_cache *c = n->cache;
	uint32_t good = error ? (uint32_t)MIN(got >> c->shift, (uint64_t)nr) : nr;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t before = (uint64_t)i << c->shift;

		if (i >= good) {
			foliage_pool_unpin(c->pool, pages[i], FOLIAGE_UNPIN_DISCARD);
			continue;
		}
		zero_tail(n, pages[i]->data, (first + i) << c->shift,
			  got > before ? got - before : 0);
		if (keep)
			foliage_pool_ready(c->pool, pages[i]);
		else
			foliage_pool_unpin(c->pool, pages[i], 0);
	}
	io_kick(&c->io);
	return good;
}

uint32_t file_fill_now(struct file_node *n, struct foliage_page **pages, uint64_t first,
		       uint32_t nr, int *error)
{
	struct foliage_cache *c = n->cache;
	struct foliage_group *group = node_group(n); /* may change meanwhile */
	struct iovec iov[FILE_RUN];
	uint64_t got;

	for (uint32_t i = 0; i < nr; i++)
		iov[i] = (struct iovec){pages[i]->data, c->page_bytes};
	foliage_group_stall_begin(group, FOLIAGE_STALL_IO);
	got = io_read(&c->io, node_read_fd(n), iov, (int)nr, first << c->shift, node_size(n),
		      error);
	foliage_group_stall_end(group, FOLIAGE_STALL_IO);
	return file_filled(n, pages, first, nr, got, *error, true);
}

/* ---- a miss ---- */

struct run {
	struct foliage_page *pages[FILE_RUN], *hit; /* a page that was there ends the run */
	uint32_t nr;
};

/* Missing pages after the first, up to `last`. */
static void extend(struct foliage_file *f, struct run *run, uint64_t first, uint64_t last,
		   unsigned int flags)
{
	struct file_node *n = f->node;

	while (run->nr < FILE_RUN && first + run->nr <= last) {
		struct foliage_page *page;
		int rc = node_fetch(n, first + run->nr, flags, &page);

		if (rc != FOLIAGE_NEW) {
			run->hit = rc == FOLIAGE_HIT ? page : NULL;
			break;
		}
		run->pages[run->nr++] = page;
	}
}

/* Page `first` is new: read it and those missing after it, as far as the request goes. The pages
 * run->pages[0 .. returned - 1] are pinned and full. */
static uint32_t miss(struct foliage_file *f, struct run *run, uint64_t first, uint64_t last,
		     unsigned int flags, int *error)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t ahead = file_ahead_miss(f, first, last);
	uint32_t asked, good;

	run->nr = 1;
	run->hit = NULL;
	extend(f, run, first, last, flags);
	asked = run->nr;
	if (ahead && c->io.ring) {
		file_ahead_start(n, last + 1, last + ahead);
	} else if (ahead && !run->hit && first + run->nr > last) {
		extend(f, run, first, last + ahead,
		       FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT | FOLIAGE_HINT_WILL_NEED);
		if (run->hit)
			foliage_pool_unpin(c->pool, run->hit, 0);
		run->hit = NULL;
		atomic_fetch_add_explicit(&c->readahead_pages, run->nr - asked,
					  memory_order_relaxed);
	}
	good = file_fill_now(n, run->pages, first, run->nr, error);
	for (; good > asked; good--)
		foliage_pool_unpin(c->pool, run->pages[good - 1], 0);
	if (good == asked)
		*error = 0; /* what failed was not asked for */
	return good;
}

/* Copy what the run has; returns the first byte after. */
static uint64_t copy_run(struct foliage_cache *c, struct run *run, uint32_t good,
			 struct file_cursor *to, uint64_t at, uint64_t end)
{
	if (run->hit && good == run->nr)
		run->pages[good++] = run->hit;
	else if (run->hit)
		foliage_pool_unpin(c->pool, run->hit, 0);
	for (uint32_t i = 0; i < good; i++) {
		size_t skip = at & (c->page_bytes - 1);
		size_t part = MIN(c->page_bytes - skip, end - at);

		if (at < end)
			file_copy(to, (char *)run->pages[i]->data + skip, part, true);
		at += part;
		foliage_pool_unpin(c->pool, run->pages[i], 0);
	}
	return MIN(at, end);
}

/* ---- read ---- */

static void note_end(struct foliage_file *f, uint64_t end)
{
	if (end & (f->node->cache->page_bytes - 1))
		atomic_store_explicit(&f->last_end, end, memory_order_relaxed);
}

/* The page could not be had: may we try again? 0 or the error. */
static int wait_for_page(struct file_node *n, int rc, unsigned int flags, struct room_wait *w)
{
	struct foliage_group *group = node_group(n);
	struct foliage_cache *c = n->cache;

	if (flags & FOLIAGE_RW_NOWAIT)
		return rc == -ENOENT || rc == -ENOBUFS ? -EAGAIN : rc;
	if (rc == -EAGAIN) {
		foliage_group_stall_begin(group, FOLIAGE_STALL_IO);
		file_wait_news(c);
		foliage_group_stall_end(group, FOLIAGE_STALL_IO);
		return 0;
	}
	if (rc == -ENOBUFS)
		return file_wait_room(c, w) ? 0 : rc;
	return rc;
}

/* Bytes from `start` to `end`, which is not beyond the end of the file. The first page has been
 * fetched, with the result `rc`. */
static int64_t read_range(struct foliage_file *f, struct file_cursor to, uint64_t start,
			  uint64_t end, unsigned int flags, int rc, struct foliage_page *page)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t at = start, last = (end - 1) >> c->shift;
	struct room_wait waited = {0};
	int error = 0;

	for (;;) {
		unsigned int fetch = file_fetch_flags(f, at, flags);
		size_t skip = at & (c->page_bytes - 1), part = MIN(c->page_bytes - skip, end - at);

		if (rc == FOLIAGE_HIT) {
			file_copy(&to, (char *)page->data + skip, part, true);
			foliage_pool_unpin(c->pool, page, 0);
			at += part;
		} else if (rc == FOLIAGE_NEW) {
			struct run run = {.pages = {page}};
			uint32_t good = miss(f, &run, at >> c->shift, last, fetch, &error);

			at = copy_run(c, &run, good, &to, at, end);
		} else {
			error = wait_for_page(n, rc, flags, &waited);
		}
		if (at >= end || error)
			break;
		rc = node_fetch(n, at >> c->shift,
				file_fetch_flags(f, at, flags) | FOLIAGE_FETCH_LOCAL, &page);
	}
	file_ahead_touch(f, start >> c->shift, last);
	note_end(f, at);
	file_count_read(c, at - start);
	return at > start ? (int64_t)(at - start) : error;
}

int file_check_read(const struct foliage_file *f, uint64_t offset)
{
	if (!f->readable)
		return -EBADF;
	return offset > INT64_MAX ? -EINVAL : 0;
}

int64_t foliage_file_read(struct foliage_file *f, void *buffer, size_t bytes, uint64_t offset)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t size = node_size(n), number = offset >> c->shift;
	size_t skip = offset & (c->page_bytes - 1);
	struct iovec iov = {buffer, bytes};
	struct foliage_page *page;
	int rc;

	/* Most reads are of one page that is there. Zero bytes wrap around. */
	if (__builtin_expect(!f->readable || bytes - 1 >= c->page_bytes - skip || offset >= size ||
				     bytes > size - offset,
			     0))
		return foliage_file_readv(f, &iov, 1, offset, 0);
	rc = node_fetch(n, number, file_fetch_flags(f, offset, 0) | FOLIAGE_FETCH_LOCAL, &page);
	if (__builtin_expect(rc != FOLIAGE_HIT, 0))
		return read_range(f, (struct file_cursor){.iov = &iov}, offset, offset + bytes, 0,
				  rc, page);
	file_copy_bytes(buffer, (const char *)page->data + skip, bytes);
	foliage_pool_unpin(c->pool, page, 0);
	file_ahead_touch(f, number, number);
	note_end(f, offset + bytes);
	file_count_read(c, bytes);
	return (int64_t)bytes;
}

int64_t foliage_file_readv(struct foliage_file *f, const struct iovec *iov, int nr, uint64_t offset,
			   unsigned int flags)
{
	struct file_cursor to = {.iov = iov};
	uint64_t size = node_size(f->node), bytes = 0;
	struct foliage_page *page = NULL;
	int rc = file_check_read(f, offset);

	if (rc)
		return rc;
	for (int i = 0; i < nr; i++)
		bytes += iov[i].iov_len;
	bytes = MIN(bytes, (uint64_t)INT64_MAX);
	if (!file_cache_alive(f->node->cache))
		return -ECHILD;
	if (offset >= size || !bytes)
		return 0;
	while (!to.iov->iov_len)
		to.iov++;
	rc = node_fetch(f->node, offset >> f->node->cache->shift,
			file_fetch_flags(f, offset, flags) | FOLIAGE_FETCH_LOCAL, &page);
	return read_range(f, to, offset, offset + MIN(bytes, size - offset), flags, rc, page);
}

/* ---- pins ---- */

int foliage_file_pin(struct foliage_file *f, uint64_t offset, unsigned int flags,
		     struct foliage_pin *pin)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	uint64_t size = node_size(n), first = offset >> c->shift;
	size_t skip = offset & (c->page_bytes - 1);
	struct room_wait waited = {0};
	int rc = file_check_read(f, offset), error;
	struct run run;

	if (rc)
		return rc;
	if (offset >= size)
		return file_cache_alive(c) ? -ENODATA : -ECHILD;
	for (;;) {
		rc = node_fetch(n, first,
				file_fetch_flags(f, offset, flags) | (flags & FOLIAGE_FETCH_LOCAL),
				&run.pages[0]);
		if (__builtin_expect(rc == FOLIAGE_HIT, 1)) {
			file_ahead_touch(f, first, first);
			break;
		}
		if (rc == FOLIAGE_NEW) {
			if (miss(f, &run, first, first, 0, &error))
				break;
			return error;
		}
		rc = wait_for_page(n, rc, flags, &waited);
		if (rc)
			return rc;
	}
	pin->page = run.pages[0];
	pin->data = (const char *)run.pages[0]->data + skip;
	pin->bytes = MIN(c->page_bytes - skip, size - offset);
	file_count_read(c, c->page_bytes);
	return 0;
}

void foliage_file_unpin(struct foliage_file *f, struct foliage_pin *pin)
{
	foliage_pool_unpin(f->node->cache->pool, pin->page, 0);
}
