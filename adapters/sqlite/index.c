/* SPDX-License-Identifier: MIT
 *
 * A cache's own table of its pages (index.h): open addressing, one step at a time, made anew when
 * three quarters are used: twice as large as the pages that are there need.
 *
 * When may `leaving` be taken back? Somebody who has written it will look at `held` later; if it were
 * taken back in between, and the page held and its pin given up, the look may have come too early. So
 * only while nobody is between those two (`examining`), under the lock: whoever comes next writes it
 * again afterwards.
 */
#include "adapters/sqlite/index.h"

#include <stdlib.h>

enum { ENTRIES_MIN = 64 };

static struct entry *make_entries(struct indexes *all, uint32_t nr)
{
	struct entry *entries = calloc(nr, sizeof(*entries));

	if (entries)
		atomic_fetch_add(&all->bytes, nr * sizeof(*entries));
	return entries;
}

static void free_entries(struct indexes *all, struct entry *entries, uint32_t nr)
{
	if (entries)
		atomic_fetch_sub(&all->bytes, nr * sizeof(*entries));
	free(entries);
}

bool index_init(struct index *x, struct indexes *all)
{
	x->all = all;
	pthread_mutex_init(&x->lock, NULL);
	x->entries = make_entries(all, ENTRIES_MIN);
	x->mask = ENTRIES_MIN - 1;
	return x->entries;
}

void index_fini(struct index *x)
{
	pthread_mutex_destroy(&x->lock);
	free_entries(x->all, x->entries, x->mask + 1);
}

static uint32_t nr_pages(const struct index *x)
{
	return atomic_load_explicit(&x->nr_pages, memory_order_relaxed);
}

static void count_page(struct index *x, int by)
{
	atomic_store_explicit(&x->nr_pages, nr_pages(x) + (uint32_t)by, memory_order_relaxed);
}

static struct head *head_of(const struct entry *e)
{
	return atomic_load_explicit(&e->head, memory_order_relaxed);
}

/* The entry of the head; NULL: it has none. The lock is held, and the head's key does not change
 * without it. */
static struct entry *find(const struct index *x, const struct head *h)
{
	for (uint32_t i = index_place(x, h->key); head_of(&x->entries[i]); i = (i + 1) & x->mask)
		if (head_of(&x->entries[i]) == h)
			return &x->entries[i];
	return NULL;
}

static struct entry *place(struct index *x, struct head *h)
{
	uint32_t i = index_place(x, h->key);

	/* One stays free, as an end to every search. */
	while (head_of(&x->entries[i]) != BURIED && (head_of(&x->entries[i]) || x->used == x->mask))
		i = (i + 1) & x->mask;
	x->used += !head_of(&x->entries[i]);
	x->entries[i].key = h->key;
	return &x->entries[i];
}

/* The lock is held. */
static void make_anew(struct index *x, struct entry *entries, uint32_t nr)
{
	struct entry *before = x->entries;
	uint32_t nr_before = x->mask + 1;

	x->entries = entries;
	x->mask = nr - 1;
	x->used = 0;
	for (uint32_t i = 0; i < nr_before; i++) {
		struct head *h = head_of(&before[i]);
		struct entry *e;

		if (!h || h == BURIED)
			continue;
		e = place(x, h);
		e->allocated = before[i].allocated;
		atomic_store_explicit(&e->leaving, before[i].leaving, memory_order_relaxed);
		atomic_store_explicit(&e->held, before[i].held, memory_order_relaxed);
		atomic_store_explicit(&e->head, h, memory_order_relaxed);
		if (before[i].held)
			h->entry = e;
	}
	free_entries(x->all, before, nr_before);
}

bool index_reserve(struct index *x)
{
	uint32_t nr = ENTRIES_MIN;
	struct entry *entries;

	if (x->used < x->mask / 4 * 3)
		return true;
	while (nr < 2 * (nr_pages(x) + 1))
		nr *= 2;
	entries = make_entries(x->all, nr);
	if (!entries)
		return x->used < x->mask;
	pthread_mutex_lock(&x->lock);
	make_anew(x, entries, nr);
	pthread_mutex_unlock(&x->lock);
	return true;
}

static void insert_locked(struct index *x, struct head *h)
{
	struct entry *e = place(x, h);

	e->allocated = !h->pooled;
	atomic_store_explicit(&e->leaving, h->pooled ? LEAVING_PASSED : LEAVING_NOT,
			      memory_order_relaxed);
	atomic_store_explicit(&e->held, HELD_BY_PIN, memory_order_relaxed);
	atomic_store_explicit(&e->head, h, memory_order_release);
	h->entry = e;
	count_page(x, 1);
}

void index_insert(struct index *x, struct cache *c, struct head *h)
{
	pthread_mutex_lock(&x->lock);
	/* Whoever examines the page either sees this, and waits for the lock, or is seen. */
	atomic_store(&h->cache, c);
	insert_locked(x, h);
	pthread_mutex_unlock(&x->lock);
}

static void bury(struct index *x, struct entry *e)
{
	atomic_store_explicit(&e->leaving, LEAVING_PASSED, memory_order_relaxed);
	atomic_store_explicit(&e->held, HELD_NOT, memory_order_relaxed);
	atomic_store_explicit(&e->head, BURIED, memory_order_relaxed);
	count_page(x, -1);
}

void index_remove(struct index *x, struct head *h)
{
	pthread_mutex_lock(&x->lock);
	bury(x, find(x, h));
	pthread_mutex_unlock(&x->lock);
}

void index_rekey(struct index *x, struct head *h, uint32_t key)
{
	pthread_mutex_lock(&x->lock);
	bury(x, h->entry);
	h->key = key;
	insert_locked(x, h);
	pthread_mutex_unlock(&x->lock);
}

struct head *index_allocated(struct index *x, uint32_t key)
{
	for (uint32_t i = index_place(x, key);; i = (i + 1) & x->mask) {
		struct head *h = atomic_load_explicit(&x->entries[i].head, memory_order_relaxed);

		if (!h)
			return NULL;
		if (h != BURIED && x->entries[i].key == key && x->entries[i].allocated)
			return h;
	}
}

void index_hold_pin(struct index *x, struct head *h)
{
	pthread_mutex_lock(&x->lock);
	h->entry = find(x, h);
	if (!atomic_load(&x->all->examining))
		atomic_store_explicit(&h->entry->leaving, LEAVING_NOT, memory_order_relaxed);
	atomic_store_explicit(&h->entry->held, HELD_BY_PIN, memory_order_relaxed);
	pthread_mutex_unlock(&x->lock);
}

bool index_close(struct index *x)
{
	bool last;

	pthread_mutex_lock(&x->lock);
	x->closed = true;
	last = !nr_pages(x);
	pthread_mutex_unlock(&x->lock);
	return last;
}

bool index_bury(struct index *x, struct head *h)
{
	struct entry *e;
	bool last;

	pthread_mutex_lock(&x->lock);
	e = find(x, h);
	bury(x, e);
	last = x->closed && !nr_pages(x);
	pthread_mutex_unlock(&x->lock);
	return last;
}

bool index_warn(struct index *x, struct head *h)
{
	bool news = false;
	struct entry *e;

	pthread_mutex_lock(&x->lock);
	e = find(x, h);
	if (e && e->leaving != LEAVING_PASSED) {
		atomic_store_explicit(&e->leaving, LEAVING_NOTED, memory_order_relaxed);
		news = true;
	}
	pthread_mutex_unlock(&x->lock);
	return news;
}

bool index_is_marked(struct index *x, struct head *h)
{
	bool marked = false;
	struct entry *e;

	pthread_mutex_lock(&x->lock);
	e = find(x, h);
	if (e && e->leaving != LEAVING_NOT) {
		atomic_store_explicit(&e->leaving, LEAVING_PASSED, memory_order_relaxed);
		marked = atomic_load_explicit(&e->held, memory_order_acquire) == HELD_BY_MARK;
	}
	pthread_mutex_unlock(&x->lock);
	return marked;
}
