/* SPDX-License-Identifier: MIT
 *
 * Read-ahead, one state a handle. A miss at the page where the last miss, or window, ended is
 * sequential: a window is read, twice as large as the one before, up to the limit. Any other miss
 * ends it. With a ring, one window is always on its way: touching the first page of the newest
 * window starts the next. Page 0 counts as sequential, since most files are read from there.
 *
 * Hits write nothing here but at the trigger page. Two threads that read through one handle may
 * lose each other's updates; that costs a window.
 */
#include "cache/file.h"

#define FETCH_AHEAD (FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT | FOLIAGE_HINT_WILL_NEED)

static uint32_t limit(const struct foliage_file *f)
{
	const struct foliage_cache *c = f->node->cache;

	switch (atomic_load_explicit(&f->advice, memory_order_relaxed)) {
	case FOLIAGE_ADVICE_RANDOM:
		return 0;
	case FOLIAGE_ADVICE_SEQUENTIAL:
		return 2 * c->readahead_max;
	default:
		return c->readahead_max;
	}
}

/* The first window of a stream of such requests. */
static uint32_t first_window(uint64_t request, uint32_t max)
{
	uint64_t window = UINT64_C(1) << order_base_2(MIN(request, (uint64_t)max));

	if (window <= max / 32)
		window *= 4;
	else if (window <= max / 4)
		window *= 2;
	return (uint32_t)MIN(window, (uint64_t)max);
}

static uint64_t last_page(const struct file_node *n)
{
	uint64_t pages = cache_pages(n->cache, node_size(n));

	return pages ? pages - 1 : 0;
}

uint64_t file_ahead_miss(struct foliage_file *f, uint64_t first, uint64_t last)
{
	uint64_t next = atomic_load_explicit(&f->next_page, memory_order_relaxed),
		 end = last_page(f->node);
	uint32_t max = limit(f), window;

	if (!max)
		return 0;
	window = atomic_load_explicit(&f->window, memory_order_relaxed);
	if (first == next || !first ||
	    atomic_load_explicit(&f->advice, memory_order_relaxed) == FOLIAGE_ADVICE_SEQUENTIAL)
		window = window && first ? MIN(2 * window, max)
					 : first_window(last - first + 1, max);
	else
		window = 0;
	if (last >= end)
		window = 0;
	else
		window = (uint32_t)MIN((uint64_t)window, end - last);
	atomic_store_explicit(&f->window, window, memory_order_relaxed);
	atomic_store_explicit(&f->next_page, last + 1 + window, memory_order_relaxed);
	atomic_store_explicit(&f->trigger, window && f->node->cache->io.ring ? last + 1 : NO_PAGE,
			      memory_order_relaxed);
	return window;
}

void file_ahead_hit(struct foliage_file *f, uint64_t first, uint64_t last)
{
	uint64_t trigger = atomic_load_explicit(&f->trigger, memory_order_relaxed), next, end;
	uint32_t max, window;

	if (__builtin_expect(trigger < first || trigger > last, 1))
		return;
	if (!atomic_compare_exchange_strong(&f->trigger, &trigger, NO_PAGE))
		return;
	max = limit(f);
	end = last_page(f->node);
	next = atomic_load_explicit(&f->next_page, memory_order_relaxed);
	window = atomic_load_explicit(&f->window, memory_order_relaxed);
	if (!max || !window || next > end)
		return;
	window = MIN(2 * window, max);
	window = (uint32_t)MIN((uint64_t)window, end - next + 1);
	atomic_store_explicit(&f->window, window, memory_order_relaxed);
	atomic_store_explicit(&f->next_page, next + window, memory_order_relaxed);
	atomic_store_explicit(&f->trigger, next, memory_order_relaxed);
	file_ahead_start(f->node, next, next + window - 1);
}

void file_ahead_start(struct file_node *n, uint64_t first, uint64_t last)
{
	struct foliage_cache *c = n->cache;
	struct io_request *list = NULL;
	struct file_fill *fill = NULL;
	uint64_t pages = 0;

	for (uint64_t i = first; i <= last; i++) {
		struct foliage_page *page;
		int rc = node_fetch(n, i, FETCH_AHEAD, &page);

		if (rc == FOLIAGE_HIT)
			foliage_pool_unpin(c->pool, page, 0);
		if (fill && (rc != FOLIAGE_NEW || fill->nr == FILE_RUN)) {
			file_fill_start(fill, &list);
			fill = NULL;
		}
		if (rc != FOLIAGE_NEW && rc != FOLIAGE_HIT && rc != -EAGAIN)
			break; /* no room for guesses */
		if (rc != FOLIAGE_NEW)
			continue;
		if (!fill) {
			fill = file_fill_new(c);
			if (!fill) {
				foliage_pool_unpin(c->pool, page, FOLIAGE_UNPIN_DISCARD);
				break;
			}
			fill->node = n;
			fill->first = i;
			fill->aio = NULL;
		}
		fill->pages[fill->nr++] = page;
		pages++;
	}
	if (fill)
		file_fill_start(fill, &list);
	atomic_fetch_add_explicit(&c->readahead_pages, pages, memory_order_relaxed);
	if (list)
		io_submit(&c->io, list);
}
