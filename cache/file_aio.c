/* SPDX-License-Identifier: MIT
 *
 * Asynchronous requests. Each walks along its range, doing what needs no waiting: a hit is copied,
 * a missing page becomes part of a fill, which goes to the ring with an eye on the request. What
 * can only be waited for (a page that somebody else is filling, room, fewer dirty pages) parks the
 * request; each poll lets the parked ones try again.
 *
 * Complete requests queue up until somebody polls: that is the only place where callbacks run.
 */
#include "cache/file.h"

#include <stdlib.h>
#include <string.h>

/* So many requests go to the ring together: the device begins with them while the next are
 * prepared. */
enum { FREE_FILLS_MAX = 256, SUBMIT_BATCH = 2 };

/* ---- queues ---- */

void aio_push(struct aio_queue *q, struct foliage_aio *aio)
{
	aio_state(aio)->next = NULL;
	if (q->first)
		aio_state(q->last)->next = aio;
	else
		q->first = aio;
	q->last = aio;
}

struct foliage_aio *aio_pop(struct aio_queue *q)
{
	struct foliage_aio *aio = q->first;

	if (aio)
		q->first = aio_state(aio)->next;
	return aio;
}

void file_aio_complete(struct foliage_aio *aio, int64_t result)
{
	struct foliage_cache *c = aio->file->node->cache;

	pthread_mutex_lock(&c->aio_lock);
	aio->result = result;
	aio_push(aio->done ? &c->called : &c->done, aio);
	pthread_mutex_unlock(&c->aio_lock);
	io_kick(&c->io);
}

static void park(struct foliage_aio *aio)
{
	struct foliage_cache *c = aio->file->node->cache;
	struct aio_state *s = aio_state(aio);

	if (!s->waits_since_ms)
		s->waits_since_ms = io_now_ms();
	pthread_mutex_lock(&c->aio_lock);
	aio_push(&c->parked, aio);
	pthread_mutex_unlock(&c->aio_lock);
}

/* ---- one request ---- */

/* Nothing from `at` on can be had. */
static void fail(struct foliage_aio *aio, uint64_t at, int error)
{
	struct foliage_cache *c = aio->file->node->cache;
	struct aio_state *s = aio_state(aio);

	pthread_mutex_lock(&c->aio_lock);
	if (at < s->fail_at) {
		s->fail_at = at;
		s->error = error;
	}
	pthread_mutex_unlock(&c->aio_lock);
}

static void finish(struct foliage_aio *aio)
{
	struct foliage_file *f = aio->file;
	struct foliage_cache *c = f->node->cache;
	struct aio_state *s = aio_state(aio);
	uint64_t end = MIN(s->end, s->fail_at);
	int64_t result = end > aio->offset ? (int64_t)(end - aio->offset) : s->error;

	switch (aio->op) {
	case FOLIAGE_AIO_PIN:
		result = s->fail_at == UINT64_MAX ? 0 : s->error;
		if (!result)
			file_count_read(c, c->page_bytes);
		break;
	case FOLIAGE_AIO_READ:
		file_count_read(c, end - aio->offset);
		break;
	default:
		file_count_write(c, end - aio->offset);
		if (result > 0 && (f->sync_data || f->sync_all)) {
			aio->result = result;
			writeback_fsync_later(aio);
			return;
		}
	}
	file_aio_complete(aio, result);
}

static void put(struct foliage_aio *aio)
{
	struct foliage_cache *c = aio->file->node->cache;
	bool last;

	pthread_mutex_lock(&c->aio_lock);
	last = !--aio_state(aio)->pending;
	pthread_mutex_unlock(&c->aio_lock);
	if (last)
		finish(aio);
}

static void get(struct foliage_aio *aio)
{
	struct foliage_cache *c = aio->file->node->cache;

	pthread_mutex_lock(&c->aio_lock);
	aio_state(aio)->pending++;
	pthread_mutex_unlock(&c->aio_lock);
}

/* ---- fills ---- */

struct file_fill *file_fill_new(struct foliage_cache *c)
{
	struct file_fill *fill;

	pthread_mutex_lock(&c->aio_lock);
	fill = c->free_fills;
	if (fill) {
		c->free_fills = fill->next_free;
		c->nr_free_fills--;
	}
	pthread_mutex_unlock(&c->aio_lock);
	if (!fill)
		fill = malloc(sizeof(*fill));
	if (fill)
		fill->nr = 0;
	return fill;
}

static void file_fill_free(struct foliage_cache *c, struct file_fill *fill)
{
	bool keep;

	pthread_mutex_lock(&c->aio_lock);
	keep = c->nr_free_fills < FREE_FILLS_MAX;
	if (keep) {
		fill->next_free = c->free_fills;
		c->free_fills = fill;
		c->nr_free_fills++;
	}
	pthread_mutex_unlock(&c->aio_lock);
	if (!keep)
		free(fill);
}

static void set_pin(struct foliage_aio *aio, struct foliage_page *page)
{
	struct foliage_cache *c = aio->file->node->cache;
	size_t skip = aio->offset & (c->page_bytes - 1);

	aio->pin = (struct foliage_pin){
		.data = (const char *)page->data + skip,
		.bytes = MIN(c->page_bytes - skip, aio_state(aio)->end - aio->offset),
		.page = page,
	};
}

/* The part of a page that the request wants. */
static void copy_page(struct foliage_aio *aio, const struct foliage_page *page, uint64_t number)
{
	struct foliage_cache *c = aio->file->node->cache;
	uint64_t start = number << c->shift, from = MAX(start, aio->offset),
		 to = MIN(start + c->page_bytes, aio_state(aio)->end);

	if (from < to)
		file_copy_bytes((char *)aio->buffer + (from - aio->offset),
				(const char *)page->data + (from - start), to - from);
}

/* What the request gets out of its fill, of which `good` pages are full and pinned. */
static void take_fill(struct foliage_aio *aio, struct file_fill *fill, uint32_t good, int error)
{
	struct foliage_cache *c = fill->node->cache;

	for (uint32_t i = 0; i < good; i++) {
		if (aio->op == FOLIAGE_AIO_PIN) {
			set_pin(aio, fill->pages[i]);
			continue;
		}
		if (aio->op == FOLIAGE_AIO_READ)
			copy_page(aio, fill->pages[i], fill->first + i);
		foliage_pool_unpin(c->pool, fill->pages[i], 0);
	}
	if (good < fill->nr)
		fail(aio, MAX((fill->first + good) << c->shift, aio->offset), error);
	if (aio->op == FOLIAGE_AIO_WRITE && good)
		park(aio); /* the page is there: go on */
	else
		put(aio);
}

static void fill_done(struct io_request *request, uint64_t got, int error)
{
	struct file_fill *fill = (struct file_fill *)request;
	struct file_node *n = fill->node;
	struct foliage_cache *c = n->cache;
	struct foliage_aio *aio = fill->aio;
	uint32_t good = file_filled(n, fill->pages, fill->first, fill->nr, got, error, aio);

	if (aio)
		take_fill(aio, fill, good, error);
	file_fill_free(c, fill);
	/* The last touch: whoever closes the file may be waiting for it. */
	atomic_fetch_sub(&n->fills, 1);
}

void file_fill_start(struct file_fill *fill, struct io_request **list)
{
	struct file_node *n = fill->node;
	struct foliage_cache *c = n->cache;

	for (uint32_t i = 0; i < fill->nr; i++)
		fill->iov[i] = (struct iovec){fill->pages[i]->data, c->page_bytes};
	fill->request = (struct io_request){
		.op = IO_READ,
		.file = node_read_fd(n),
		.iov = fill->iov,
		.nr_iov = (int)fill->nr,
		.at = fill->first << c->shift,
		.bytes = (uint64_t)fill->nr << c->shift,
		.end = node_size(n),
		.done = fill_done,
		.next = *list,
	};
	atomic_fetch_add(&n->fills, 1);
	*list = &fill->request;
}

/* ---- reading ---- */

/* `page` is new: read it, and what is missing after it of the request. */
static void start_read(struct foliage_aio *aio, struct foliage_page *page, uint64_t first,
		       unsigned int flags, struct io_request **list)
{
	struct file_node *n = aio->file->node;
	struct foliage_cache *c = n->cache;
	struct aio_state *s = aio_state(aio);
	struct file_fill *fill = file_fill_new(c);
	uint64_t last = aio->op == FOLIAGE_AIO_READ ? (s->end - 1) >> c->shift : first;
	struct foliage_page *hit = NULL;

	if (!fill) {
		foliage_pool_unpin(c->pool, page, FOLIAGE_UNPIN_DISCARD);
		fail(aio, s->at, -ENOMEM);
		s->at = s->end;
		return;
	}
	fill->node = n;
	fill->aio = aio;
	fill->first = first;
	fill->pages[fill->nr++] = page;
	while (first + fill->nr <= last && fill->nr < FILE_RUN) {
		int rc = node_fetch(n, first + fill->nr, flags, &hit);

		if (rc != FOLIAGE_NEW) {
			if (rc != FOLIAGE_HIT)
				hit = NULL;
			break;
		}
		fill->pages[fill->nr++] = hit;
		hit = NULL;
	}
	s->at = MIN((first + fill->nr) << c->shift, s->end);
	if (hit) {
		copy_page(aio, hit, first + fill->nr);
		foliage_pool_unpin(c->pool, hit, 0);
		s->at = MIN((first + fill->nr + 1) << c->shift, s->end);
	}
	get(aio);
	file_fill_start(fill, list);
}

static void advance_read(struct foliage_aio *aio, struct io_request **list)
{
	struct foliage_file *f = aio->file;
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	struct aio_state *s = aio_state(aio);

	while (s->at < s->end) {
		uint64_t first = s->at >> c->shift;
		unsigned int flags = file_fetch_flags(f, s->at, aio->flags);
		struct foliage_page *page;
		int rc = node_fetch(n, first, flags, &page);

		if (rc == FOLIAGE_HIT && aio->op == FOLIAGE_AIO_PIN) {
			set_pin(aio, page);
			s->at = s->end;
		} else if (rc == FOLIAGE_HIT) {
			copy_page(aio, page, first);
			foliage_pool_unpin(c->pool, page, 0);
			s->at = MIN((first + 1) << c->shift, s->end);
		} else if (rc == FOLIAGE_NEW) {
			start_read(aio, page, first, flags, list);
		} else if (rc == -EAGAIN ||
			   (rc == -ENOBUFS &&
			    (!s->waits_since_ms || io_now_ms() - s->waits_since_ms < c->wait_ms))) {
			park(aio);
			return;
		} else {
			fail(aio, s->at, rc);
			break;
		}
		s->waits_since_ms = 0;
	}
	put(aio);
}

/* ---- writing ---- */

/* The page must be read before it can be written to in part. */
static void read_before_write(struct foliage_aio *aio, uint64_t number, struct io_request **list)
{
	struct file_node *n = aio->file->node;
	struct foliage_cache *c = n->cache;
	struct foliage_page *page;
	int rc = node_fetch(n, number,
			    FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT | FOLIAGE_HINT_WILL_NEED,
			    &page);
	struct file_fill *fill = rc == FOLIAGE_NEW ? file_fill_new(c) : NULL;

	if (!fill) {
		if (rc >= 0)
			foliage_pool_unpin(c->pool, page,
					   rc == FOLIAGE_NEW ? FOLIAGE_UNPIN_DISCARD : 0);
		park(aio);
		return;
	}
	fill->node = n;
	fill->aio = aio;
	fill->first = number;
	fill->pages[fill->nr++] = page;
	file_fill_start(fill, list);
}

static void advance_write(struct foliage_aio *aio, struct io_request **list)
{
	struct file_node *n = aio->file->node;
	struct foliage_cache *c = n->cache;
	struct aio_state *s = aio_state(aio);
	unsigned int hints = aio->flags & FILE_HINTS;

	if (atomic_load_explicit(&aio->file->once, memory_order_relaxed))
		hints |= FOLIAGE_HINT_ONCE;
	while (s->at < s->end && s->fail_at == UINT64_MAX) {
		struct iovec iov = {(char *)aio->buffer + (s->at - aio->offset), s->end - s->at};
		struct file_cursor from = {.iov = &iov};
		size_t part = MIN(c->page_bytes - (s->at & (c->page_bytes - 1)), s->end - s->at);
		bool waits = s->waits_since_ms && io_now_ms() - s->waits_since_ms >= c->wait_ms;
		int rc = -ENOBUFS, error;

		iov.iov_len = part;
		if (!file_dirty_limit(n, &error))
			rc = file_write_page(n, s->at, &from, part, hints, false);
		else if (error)
			rc = error;
		if (rc == -ENODATA) {
			read_before_write(aio, s->at >> c->shift, list);
			return;
		}
		if (rc == -EAGAIN || (rc == -ENOBUFS && !waits)) {
			if (rc == -ENOBUFS) {
				atomic_store_explicit(&c->pool_starves, true, memory_order_relaxed);
				writeback_kick(c);
			}
			park(aio);
			return;
		}
		if (rc) {
			fail(aio, s->at, rc);
			break;
		}
		s->at += part;
		s->waits_since_ms = 0;
	}
	put(aio);
}

static void advance(struct foliage_aio *aio, struct io_request **list)
{
	if (aio->op == FOLIAGE_AIO_WRITE)
		advance_write(aio, list);
	else
		advance_read(aio, list);
}

/* ---- submit ---- */

static int check(struct foliage_cache *c, const struct foliage_aio *aio)
{
	if (!aio->file || aio->file->node->cache != c)
		return -EINVAL;
	switch (aio->op) {
	case FOLIAGE_AIO_READ:
	case FOLIAGE_AIO_PIN:
		return file_check_read(aio->file, aio->offset);
	case FOLIAGE_AIO_WRITE:
		return aio->file->append ? -EINVAL
					 : file_check_write(aio->file, aio->offset, aio->bytes);
	case FOLIAGE_AIO_FSYNC:
	case FOLIAGE_AIO_FDATASYNC:
		return 0;
	}
	return -EINVAL;
}

static void start(struct foliage_aio *aio, struct io_request **list)
{
	struct foliage_file *f = aio->file;
	struct foliage_cache *c = f->node->cache;
	struct aio_state *s = aio_state(aio);
	uint64_t size = node_size(f->node);

	*s = (struct aio_state){.at = aio->offset, .fail_at = UINT64_MAX, .pending = 1};
	aio->result = 0;
	if (aio->op == FOLIAGE_AIO_FSYNC || aio->op == FOLIAGE_AIO_FDATASYNC) {
		writeback_fsync_later(aio);
		return;
	}
	s->end = aio->offset + MIN((uint64_t)aio->bytes, INT64_MAX - aio->offset);
	if (aio->op == FOLIAGE_AIO_PIN)
		s->end = aio->offset + c->page_bytes - (aio->offset & (c->page_bytes - 1));
	if (aio->op != FOLIAGE_AIO_WRITE)
		s->end = MAX(MIN(s->end, size), aio->offset);
	if (aio->op == FOLIAGE_AIO_PIN && s->at == s->end)
		fail(aio, s->at, -ENODATA);
	advance(aio, list);
}

int foliage_cache_submit(struct foliage_cache *c, struct foliage_aio *const *aio, unsigned int nr)
{
	struct io_request *list = NULL;
	unsigned int i;
	int rc = 0;

	if (!file_cache_alive(c))
		return -ECHILD;
	for (i = 0; i < nr; i++) {
		rc = check(c, aio[i]);
		if (rc)
			break;
		pthread_mutex_lock(&c->aio_lock);
		c->nr_aio++;
		pthread_mutex_unlock(&c->aio_lock);
		start(aio[i], &list);
		if (list && i % SUBMIT_BATCH == SUBMIT_BATCH - 1) {
			io_submit(&c->io, list);
			list = NULL;
		}
	}
	if (list)
		io_submit(&c->io, list);
	return i || !rc ? (int)i : rc;
}

/* ---- poll ---- */

static void run_parked(struct foliage_cache *c)
{
	struct io_request *list = NULL;
	struct aio_queue parked;
	struct foliage_aio *aio;

	pthread_mutex_lock(&c->aio_lock);
	parked = c->parked;
	c->parked = (struct aio_queue){0};
	pthread_mutex_unlock(&c->aio_lock);
	while ((aio = aio_pop(&parked)))
		advance(aio, &list);
	if (list)
		io_submit(&c->io, list);
}

/* Hand out what is complete; *left: how many are not, or not wanted. */
static unsigned int deliver(struct foliage_cache *c, struct foliage_aio **done, unsigned int max,
			    uint32_t *left)
{
	struct foliage_aio *aio;
	unsigned int nr = 0, given = 0;

	pthread_mutex_lock(&c->aio_lock);
	while (given < max && (aio = aio_pop(&c->done))) {
		done[given++] = aio;
		c->nr_aio--;
	}
	while ((aio = aio_pop(&c->called))) {
		c->nr_aio--;
		pthread_mutex_unlock(&c->aio_lock);
		aio->done(aio);
		nr++;
		pthread_mutex_lock(&c->aio_lock);
	}
	*left = c->nr_aio;
	pthread_mutex_unlock(&c->aio_lock);
	return nr + given;
}

int foliage_cache_poll(struct foliage_cache *c, struct foliage_aio **done, unsigned int max,
		       int timeout_ms)
{
	uint64_t until = io_now_ms() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0);

	for (;;) {
		unsigned int nr;
		uint32_t left;
		bool parked;

		if (!file_cache_alive(c))
			return -ECHILD;
		io_wait(&c->io, 0);
		run_parked(c);
		nr = deliver(c, done, max, &left);
		if (nr || !left || !timeout_ms || (timeout_ms > 0 && io_now_ms() >= until))
			return (int)nr;
		pthread_mutex_lock(&c->aio_lock);
		parked = c->parked.first;
		pthread_mutex_unlock(&c->aio_lock);
		io_wait(&c->io, parked ? 1 : WAIT_SLICE_MS);
	}
}

void file_aio_drain(struct foliage_cache *c)
{
	struct foliage_aio *aio;
	uint32_t left;

	for (;;) {
		io_wait(&c->io, 0);
		run_parked(c);
		pthread_mutex_lock(&c->aio_lock);
		while ((aio = aio_pop(&c->done)) || (aio = aio_pop(&c->called)))
			c->nr_aio--;
		left = c->nr_aio;
		pthread_mutex_unlock(&c->aio_lock);
		if (!left && !io_in_flight(&c->io))
			return;
		file_wait_news(c);
	}
}
