/* SPDX-License-Identifier: MIT
 *
 * SQLite's pcache2 interface on a pool.
 *
 * A cache is an object of the pool. SQLite wants, of each page, a sqlite3_pcache_page that stays
 * where it is while the page does, also when it is rekeyed: it is the beginning of the page's extra
 * bytes (struct head), and what follows are SQLite's own. A hit is one lock-free fetch. SQLite uses
 * a cache from one thread at a time, so all that belongs to a cache is free of locks, but for the
 * list of its pages: these leave whenever anybody's reclaim says so.
 *
 * A page that SQLite lets go of stays pinned for a moment, in one of a few places of its cache that its
 * number chooses: the upper pages of a B-tree come and go with every look-up, and that way cost neither
 * a search nor a locked instruction. These pins are given up when somebody else's name is in the way,
 * when room is short, and altogether when there are so many caches that they would add up.
 *
 * Pages that may not leave (SQLite calls the cache unpurgeable), and those for which the pool has
 * no room because all is pinned while SQLite cannot do without, are allocated, and found through a
 * hash table of the cache. The latter are freed when unpinned.
 */
#include "adapters/sqlite/foliage_sqlite.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MEMORY = 64 << 20, BUCKETS_MIN = 64, KEPT = 16, KEPT_SHARE = 16 };

struct cache;

/* In front of SQLite's extra bytes. */
struct head {
	sqlite3_pcache_page page;    /* what SQLite sees */
	struct foliage_page *pooled; /* NULL: allocated */
	struct cache *cache;
	/* Pages of the cache: pooled under its lock; allocated: next in the hash chain. */
	struct head *prev, *next;
	struct head *prev_pin, *next_pin;
	uint32_t key;
	bool pinned;
};

/* Rounded up so that SQLite's bytes are aligned to 16. */
#define HEAD_BYTES ((sizeof(struct head) + 15) & ~(size_t)15)

struct cache {
	struct foliage_pool *pool;
	uint64_t object;
	int kind;
	size_t page_bytes, extra_bytes;
	bool purgeable;
	unsigned int max_pages, nr_pinned;
	struct head *pins;
	struct head *kept[KEPT]; /* let go of by SQLite, still pinned */
	/* Allocated pages. */
	struct head **buckets;
	unsigned int nr_buckets, nr_allocated;

	pthread_mutex_t lock; /* of what follows */
	struct head *pages;
	_Atomic unsigned int nr_pooled; /* written under the lock */
	bool closed;                    /* goes with its last page */
};

/* What SQLite's methods share: it passes no context to them. */
static struct {
	pthread_mutex_t lock;
	struct foliage_pool *pool;
	uint64_t budget;
	_Atomic uint64_t next_object, caches, unpurgeable_bytes, overflow_bytes, overflows;
} adapter = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the pool ---- */

static void cache_free(struct cache *c)
{
	pthread_mutex_destroy(&c->lock);
	free(c->buckets);
	free(c);
}

/* A page leaves the pool: off the list of its cache. */
static void page_dropped(void *ctx, const struct foliage_page *page)
{
	struct head *h = page->extra;
	struct cache *c = h->cache;
	bool last;

	(void)ctx;
	if (!c)
		return; /* it never got as far as a list */
	pthread_mutex_lock(&c->lock);
	if (h->next)
		h->next->prev = h->prev;
	if (h->prev)
		h->prev->next = h->next;
	else
		c->pages = h->next;
	last = !--c->nr_pooled && c->closed;
	pthread_mutex_unlock(&c->lock);
	if (last)
		cache_free(c);
}

/* "64M"; 0: not a size. */
static uint64_t parse_size(const char *text)
{
	char *end;
	uint64_t n;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end) {
		unsigned int shift = *end == 'K' || *end == 'k'   ? 10
				     : *end == 'M' || *end == 'm' ? 20
								  : 30;

		if (!strchr("KMGkmg", *end) || end[1] || n > UINT64_MAX >> shift)
			return 0;
		n <<= shift;
	}
	return errno ? 0 : n;
}

static struct foliage_pool *open_pool(char *message, size_t bytes)
{
	const char *memory = getenv("FOLIAGE_SQLITE_MEMORY"),
		   *policy = getenv("FOLIAGE_SQLITE_POLICY");
	struct foliage_pool_options options = {
		.bytes = memory ? parse_size(memory) : DEFAULT_MEMORY,
		.extra_bytes = 320,
		.policy = policy,
		.dropped = page_dropped,
	};
	struct foliage_pool *pool = NULL;

	if (!options.bytes)
		snprintf(message, bytes, "FOLIAGE_SQLITE_MEMORY: %.40s: not a size", memory);
	else
		foliage_pool_create(&options, &pool, message, bytes);
	adapter.budget = options.bytes;
	return pool;
}

/* The process's pool; a forked child makes its own. NULL: out of memory. */
static struct foliage_pool *the_pool(void)
{
	struct foliage_pool_stats stats;
	struct foliage_pool *pool;
	char message[200];

	pthread_mutex_lock(&adapter.lock);
	if (adapter.pool && foliage_pool_stats(adapter.pool, &stats) == -ECHILD)
		adapter.pool = NULL; /* inherited caches still name it */
	if (!adapter.pool)
		adapter.pool = open_pool(message, sizeof(message));
	pool = adapter.pool;
	pthread_mutex_unlock(&adapter.lock);
	return pool;
}

/* ---- pins ---- */

static void pin(struct cache *c, struct head *h)
{
	h->pinned = true;
	c->nr_pinned++;
	h->prev_pin = NULL;
	h->next_pin = c->pins;
	if (h->next_pin)
		h->next_pin->prev_pin = h;
	c->pins = h;
}

static void unpin(struct cache *c, struct head *h)
{
	h->pinned = false;
	c->nr_pinned--;
	if (h->next_pin)
		h->next_pin->prev_pin = h->prev_pin;
	if (h->prev_pin)
		h->prev_pin->next_pin = h->next_pin;
	else
		c->pins = h->next_pin;
}

/* ---- kept pins ---- */

static struct head **kept_place(struct cache *c, uint32_t key)
{
	return &c->kept[key % KEPT];
}

static void give_up(struct cache *c, struct head **place)
{
	if (*place)
		foliage_pool_unpin(c->pool, (*place)->pooled, 0);
	*place = NULL;
}

static void give_up_all(struct cache *c)
{
	for (int i = 0; i < KEPT; i++)
		give_up(c, &c->kept[i]);
}

/* All caches together keep at most a sixteenth of the budget. */
static bool may_keep(const struct cache *c)
{
	return atomic_load_explicit(&adapter.caches, memory_order_relaxed) * KEPT * KEPT_SHARE *
		       c->page_bytes <=
	       adapter.budget;
}

static void keep(struct cache *c, struct head *h)
{
	struct head **place = kept_place(c, h->key);

	give_up(c, place);
	*place = h;
}

/* The page if its pin was kept, which is the caller's now. */
static struct head *take_kept(struct cache *c, uint32_t key)
{
	struct head **place = kept_place(c, key), *h = *place;

	if (!h || h->key != key)
		return NULL;
	*place = NULL;
	return h;
}

/* ---- allocated pages ---- */

static _Atomic uint64_t *allocated_counter(const struct cache *c)
{
	return c->purgeable ? &adapter.overflow_bytes : &adapter.unpurgeable_bytes;
}

static size_t allocated_bytes(const struct cache *c)
{
	return c->page_bytes + HEAD_BYTES + c->extra_bytes;
}

static struct head **bucket(const struct cache *c, uint32_t key)
{
	return &c->buckets[key & (c->nr_buckets - 1)];
}

static struct head *allocated_find(const struct cache *c, uint32_t key)
{
	struct head *h = c->nr_allocated ? *bucket(c, key) : NULL;

	while (h && h->key != key)
		h = h->next;
	return h;
}

/* Double the hash table; as it is, if memory is short, unless there is none. */
static bool grow_buckets(struct cache *c)
{
	unsigned int nr = c->nr_buckets ? c->nr_buckets * 2 : BUCKETS_MIN, old = c->nr_buckets;
	struct head **buckets = calloc(nr, sizeof(struct head *)), **before = c->buckets;

	if (!buckets)
		return before;
	c->buckets = buckets;
	c->nr_buckets = nr;
	for (unsigned int i = 0; i < old; i++)
		for (struct head *h = before[i], *next; h; h = next) {
			next = h->next;
			h->next = *bucket(c, h->key);
			*bucket(c, h->key) = h;
		}
	free(before);
	return true;
}

static void allocated_insert(struct cache *c, struct head *h, uint32_t key)
{
	h->key = key;
	h->next = *bucket(c, key);
	*bucket(c, key) = h;
	c->nr_allocated++;
}

static void allocated_remove(struct cache *c, struct head *h)
{
	struct head **link = bucket(c, h->key);

	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	c->nr_allocated--;
}

static struct head *allocated_new(struct cache *c, uint32_t key)
{
	struct head *h;
	char *block;

	if (c->nr_allocated >= c->nr_buckets && !grow_buckets(c))
		return NULL;
	/* Data first, for its alignment. */
	block = malloc(allocated_bytes(c));
	if (!block)
		return NULL;
	h = (struct head *)(block + c->page_bytes);
	memset(h, 0, HEAD_BYTES + c->extra_bytes);
	h->page.pBuf = block;
	h->page.pExtra = (char *)h + HEAD_BYTES;
	h->cache = c;
	allocated_insert(c, h, key);
	atomic_fetch_add(allocated_counter(c), allocated_bytes(c));
	if (c->purgeable)
		atomic_fetch_add(&adapter.overflows, 1);
	return h;
}

static void allocated_free(struct cache *c, struct head *h)
{
	allocated_remove(c, h);
	atomic_fetch_sub(allocated_counter(c), allocated_bytes(c));
	free(h->page.pBuf);
}

/* ---- pooled pages ---- */

static struct head *pooled_new(struct cache *c, struct foliage_page *page, uint32_t key)
{
	struct head *h = page->extra;

	h->page.pBuf = page->data;
	h->page.pExtra = (char *)h + HEAD_BYTES;
	h->pooled = page;
	h->key = key;
	pthread_mutex_lock(&c->lock);
	h->cache = c;
	h->next = c->pages;
	if (h->next)
		h->next->prev = h;
	c->pages = h;
	c->nr_pooled++;
	pthread_mutex_unlock(&c->lock);
	return h;
}

/* Keys of the pages from `limit` on, or of all that are not pinned; at most `max`. */
static unsigned int collect(struct cache *c, uint32_t limit, bool unpinned, uint32_t *keys,
			    unsigned int max)
{
	unsigned int nr = 0;

	pthread_mutex_lock(&c->lock);
	for (struct head *h = c->pages; h && nr < max; h = h->next)
		if (h->key >= limit && !(unpinned && h->pinned))
			keys[nr++] = h->key;
	pthread_mutex_unlock(&c->lock);
	return nr;
}

static void discard_pooled(struct cache *c, uint32_t limit, bool unpinned)
{
	unsigned int max = c->nr_pooled > 64 ? c->nr_pooled : 64, nr;
	uint32_t few[64], *keys = malloc(max * sizeof(*keys));
	bool some;

	if (!keys)
		max = 64;
	do {
		nr = collect(c, limit, unpinned, keys ? keys : few, max);
		some = false;
		for (unsigned int i = 0; i < nr; i++)
			some |= !foliage_pool_discard(c->pool, c->object, (keys ? keys : few)[i]);
	} while (nr == max && some);
	free(keys);
}

/* ---- SQLite's methods ---- */

static int method_init(void *arg)
{
	(void)arg;
	return the_pool() ? SQLITE_OK : SQLITE_NOMEM;
}

/* The pool stays: its memory is wanted again at the next sqlite3_initialize(), and threads may
 * still end. */
static void method_shutdown(void *arg)
{
	(void)arg;
}

static sqlite3_pcache *method_create(int page_bytes, int extra_bytes, int purgeable)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->pool = the_pool();
	c->object = atomic_fetch_add(&adapter.next_object, 1);
	c->page_bytes = (size_t)page_bytes;
	c->extra_bytes = (size_t)extra_bytes;
	c->purgeable = purgeable;
	pthread_mutex_init(&c->lock, NULL);
	if (c->pool)
		c->kind = foliage_pool_kind(c->pool, (uint32_t)page_bytes,
					    (uint32_t)(HEAD_BYTES + c->extra_bytes) |
						    FOLIAGE_EXTRA_FOLLOWS);
	if (!c->pool || c->kind < 0) {
		cache_free(c);
		return NULL;
	}
	atomic_fetch_add(&adapter.caches, 1);
	return (sqlite3_pcache *)c;
}

static void method_cachesize(sqlite3_pcache *cache, int nr)
{
	((struct cache *)cache)->max_pages = nr > 0 ? (unsigned int)nr : 0;
}

static int method_pagecount(sqlite3_pcache *cache)
{
	struct cache *c = (struct cache *)cache;

	return (int)(atomic_load_explicit(&c->nr_pooled, memory_order_relaxed) + c->nr_allocated);
}

/* A new page. `must`: SQLite cannot do without; else it would rather write some of its pinned
 * pages first. */
static struct head *create_page(struct cache *c, uint32_t key, bool must)
{
	struct foliage_page *page;
	int rc;

	if (!c->purgeable)
		return allocated_new(c, key);
	if (!must && c->nr_pinned >= c->max_pages - c->max_pages / 10)
		return NULL;
	rc = foliage_pool_fetch(c->pool, c->object, key, c->kind,
				FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY, &page);
	if (rc == -ENOBUFS) {
		give_up_all(c);
		rc = foliage_pool_fetch(c->pool, c->object, key, c->kind,
					FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY, &page);
	}
	if (rc == FOLIAGE_NEW)
		return pooled_new(c, page, key);
	return rc != -ECHILD && must ? allocated_new(c, key) : NULL;
}

/* SQLite will look at its own bytes, then at the head of the page: let them come together. */
static void fetch_ahead(const struct foliage_page *page)
{
	__builtin_prefetch(page->data);
	for (size_t i = 0; i < HEAD_BYTES + 128; i += 64)
		__builtin_prefetch((const char *)page->extra + i);
}

static sqlite3_pcache_page *method_fetch(sqlite3_pcache *cache, unsigned int key, int create)
{
	struct cache *c = (struct cache *)cache;
	struct foliage_page *page;
	struct head *h = take_kept(c, key);

	if (h) {
		pin(c, h);
		return &h->page;
	}
	h = allocated_find(c, key);
	if (!h && c->purgeable &&
	    foliage_pool_fetch(c->pool, c->object, key, c->kind, 0, &page) == FOLIAGE_HIT) {
		h = page->extra;
		fetch_ahead(page);
		if (h->pinned) /* SQLite counts its own references: one pin a page is enough */
			foliage_pool_unpin(c->pool, page, 0);
	}
	if (!h && create)
		h = create_page(c, key, create == 2);
	if (!h)
		return NULL;
	if (!h->pinned)
		pin(c, h);
	return &h->page;
}

static void method_unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard)
{
	struct cache *c = (struct cache *)cache;
	struct head *h = (struct head *)page;

	unpin(c, h);
	if (h->pooled && !discard && may_keep(c))
		keep(c, h);
	else if (h->pooled)
		foliage_pool_unpin(c->pool, h->pooled, discard ? FOLIAGE_UNPIN_DISCARD : 0);
	else if (discard || c->purgeable)
		allocated_free(c, h);
}

/* Another thread's search may hold the page for a moment, on its way to another name. */
static void rekey_pooled(struct cache *c, struct head *h, uint32_t key)
{
	struct foliage_page *page = h->pooled;

	while (foliage_pool_rekey(c->pool, &page, c->object, key) == -EBUSY)
		sched_yield();
	h->pooled = page;
}

static void method_rekey(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned int old,
			 unsigned int new)
{
	struct cache *c = (struct cache *)cache;
	struct head *h = (struct head *)page, *there = allocated_find(c, new);

	(void)old;
	give_up(c, kept_place(c, new));
	if (there && there != h) {
		if (there->pinned)
			unpin(c, there);
		allocated_free(c, there);
	}
	if (h->pooled) {
		rekey_pooled(c, h, new);
		pthread_mutex_lock(&c->lock);
		h->key = new;
		pthread_mutex_unlock(&c->lock);
		return;
	}
	if (c->purgeable)
		foliage_pool_discard(c->pool, c->object, new);
	allocated_remove(c, h);
	allocated_insert(c, h, new);
}

static void discard_allocated(struct cache *c, uint32_t limit, bool unpinned)
{
	for (unsigned int i = 0; i < c->nr_buckets && c->nr_allocated; i++)
		for (struct head *h = c->buckets[i], *next; h; h = next) {
			next = h->next;
			if (h->key >= limit && !(unpinned && h->pinned))
				allocated_free(c, h);
		}
}

static void method_truncate(sqlite3_pcache *cache, unsigned int limit)
{
	struct cache *c = (struct cache *)cache;

	give_up_all(c);
	/* Pinned pages are let go of by this, too. */
	for (struct head *h = c->pins, *next; h; h = next) {
		next = h->next_pin;
		if (h->key < limit)
			continue;
		unpin(c, h);
		if (h->pooled)
			foliage_pool_unpin(c->pool, h->pooled, FOLIAGE_UNPIN_DISCARD);
	}
	discard_allocated(c, limit, false);
	if (c->nr_pooled)
		discard_pooled(c, limit, false);
}

static void method_destroy(sqlite3_pcache *cache)
{
	struct cache *c = (struct cache *)cache;
	bool last;

	method_truncate(cache, 0);
	atomic_fetch_sub(&adapter.caches, 1);
	/* Pages in the hands of another thread's reclaim leave in a moment, or when they are
	 * next met. */
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	last = !c->nr_pooled;
	pthread_mutex_unlock(&c->lock);
	if (last)
		cache_free(c);
}

static void method_shrink(sqlite3_pcache *cache)
{
	struct cache *c = (struct cache *)cache;

	give_up_all(c);
	if (c->purgeable)
		discard_pooled(c, 0, true);
}

static const sqlite3_pcache_methods2 methods = {
	.iVersion = 1,
	.xInit = method_init,
	.xShutdown = method_shutdown,
	.xCreate = method_create,
	.xCachesize = method_cachesize,
	.xPagecount = method_pagecount,
	.xFetch = method_fetch,
	.xUnpin = method_unpin,
	.xRekey = method_rekey,
	.xTruncate = method_truncate,
	.xDestroy = method_destroy,
	.xShrink = method_shrink,
};

int foliage_sqlite_install(void)
{
	return sqlite3_config(SQLITE_CONFIG_PCACHE2, &methods);
}

/* Preloaded or linked: before main(). What the environment says is checked here, where it can
 * still be refused. */
static __attribute__((constructor)) void install(void)
{
	char message[200] = "";

	adapter.pool = open_pool(message, sizeof(message));
	if (adapter.pool)
		foliage_sqlite_install();
	else
		fprintf(stderr, "foliage: SQLite keeps its own page cache: %s\n", message);
}

int foliage_sqlite_stats(struct foliage_sqlite_stats *stats)
{
	int rc = adapter.pool ? foliage_pool_stats(adapter.pool, &stats->pool) : -ENODEV;

	if (rc)
		return rc;
	stats->caches = atomic_load(&adapter.caches);
	stats->unpurgeable_bytes = atomic_load(&adapter.unpurgeable_bytes);
	stats->overflow_bytes = atomic_load(&adapter.overflow_bytes);
	stats->overflows = atomic_load(&adapter.overflows);
	return 0;
}
