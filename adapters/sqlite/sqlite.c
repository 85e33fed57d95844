/* SPDX-License-Identifier: MIT
 *
 * SQLite's pcache2 interface on a pool.
 *
 * A cache is an object of the pool. SQLite wants, of each page, a sqlite3_pcache_page that stays
 * where it is while the page does, also when it is rekeyed: it is the beginning of the page's extra
 * bytes (struct head, index.h), and what follows are SQLite's own. SQLite uses a cache from one thread
 * at a time, so all that belongs to a cache is free of locks, but for its index, which pages leave
 * whenever anybody's reclaim says so.
 *
 * A hit is found in the cache's own index and held by a mark there. The pool hears of it, for its
 * ranking, unless it has heard of the same page within the cache's last few fetches: the upper pages
 * of a B-tree come and go with every look-up.
 *
 * Pages that may not leave (SQLite calls the cache unpurgeable), and those for which the pool has
 * no room because all is pinned while SQLite cannot do without, are allocated. The latter are freed
 * when unpinned.
 */
#include "adapters/sqlite/foliage_sqlite.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/sqlite/index.h"

enum { DEFAULT_MEMORY = 64 << 20, TOUCH_EVERY = 16, RETRY_EVERY = 64, FEW_KEYS = 32 };

/* Rounded up so that SQLite's bytes are aligned to 16. */
#define HEAD_BYTES ((sizeof(struct head) + 15) & ~(size_t)15)

struct cache {
	struct index index;
	struct foliage_pool *pool;
	uint64_t object;
	int kind;
	bool purgeable;
	uint32_t forks; /* of the process, when it was made */
	uint32_t nr_fetches;
	unsigned int max_pages, nr_pinned;
	uint32_t max_key; /* no page has a higher number */
	size_t page_bytes, extra_bytes;
};

/* What SQLite's methods share: it passes no context to them. */
static struct {
	pthread_mutex_t lock;
	struct foliage_pool *pool;
	_Atomic uint32_t forks;
	atomic_bool
		starved; /* the pool had no room, and does not know that a mark was taken back */
	_Atomic uint64_t next_object, caches, unpurgeable_bytes, overflow_bytes, overflows;
	struct indexes indexes;
} adapter = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the pool ---- */

static void cache_free(struct cache *c)
{
	index_fini(&c->index);
	free(c);
}

/* A page leaves the pool. */
static void page_dropped(void *ctx, const struct foliage_page *page)
{
	struct head *h = page->extra;
	struct cache *c = atomic_load_explicit(&h->cache, memory_order_relaxed);

	(void)ctx;
	/* Without one it never got as far as an index. */
	if (c && index_bury(&c->index, h))
		cache_free(c);
}

static uint64_t pages_leaving(void *ctx, struct foliage_page *const *pages, uint32_t nr,
			      enum foliage_leaving step)
{
	uint64_t answer = 0;

	(void)ctx;
	if (step == FOLIAGE_LEAVING_WARN)
		atomic_fetch_add(&adapter.indexes.examining, 1);
	if (step == FOLIAGE_LEAVING_DONE)
		atomic_fetch_sub(&adapter.indexes.examining, 1);
	for (uint32_t i = 0; i < nr; i++) {
		struct head *h = pages[i]->extra;
		struct cache *c = atomic_load(&h->cache);

		if (!c)
			continue;
		if (step == FOLIAGE_LEAVING_WARN)
			answer |= index_warn(&c->index, h);
		else if (index_is_marked(&c->index, h))
			answer |= UINT64_C(1) << i;
	}
	return answer;
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
		.leaving = pages_leaving,
	};
	struct foliage_pool *pool = NULL;

	if (!options.bytes)
		snprintf(message, bytes, "FOLIAGE_SQLITE_MEMORY: %.40s: not a size", memory);
	else
		foliage_pool_create(&options, &pool, message, bytes);
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

/* ---- allocated pages ---- */

static _Atomic uint64_t *allocated_counter(const struct cache *c)
{
	return c->purgeable ? &adapter.overflow_bytes : &adapter.unpurgeable_bytes;
}

static size_t allocated_bytes(const struct cache *c)
{
	return c->page_bytes + HEAD_BYTES + c->extra_bytes;
}

static struct head *allocated_new(struct cache *c, uint32_t key)
{
	/* Data first, for its alignment. */
	char *block = malloc(allocated_bytes(c));
	struct head *h;

	if (!block)
		return NULL;
	h = (struct head *)(block + c->page_bytes);
	memset(h, 0, HEAD_BYTES + c->extra_bytes);
	h->page.pBuf = block;
	h->page.pExtra = (char *)h + HEAD_BYTES;
	h->key = key;
	index_insert(&c->index, c, h);
	atomic_fetch_add(allocated_counter(c), allocated_bytes(c));
	if (c->purgeable)
		atomic_fetch_add(&adapter.overflows, 1);
	return h;
}

static void allocated_free(struct cache *c, struct head *h)
{
	index_remove(&c->index, h);
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
	h->touched = c->nr_fetches;
	index_insert(&c->index, c, h);
	return h;
}

/* The page may be leaving: ask the pool for a pin. */
static struct head *pooled_get(struct cache *c, uint32_t key)
{
	struct foliage_page *page;
	struct head *h;

	if (foliage_pool_fetch(c->pool, c->object, key, c->kind, 0, &page) != FOLIAGE_HIT)
		return NULL;
	h = page->extra;
	h->touched = c->nr_fetches;
	index_hold_pin(&c->index, h);
	return h;
}

static bool is_marked(const struct head *h)
{
	return atomic_load_explicit(&h->entry->held, memory_order_relaxed) == HELD_BY_MARK;
}

/* A page that is held is discarded. */
static void pooled_discard(struct cache *c, struct head *h)
{
	struct foliage_page *page = h->pooled;
	uint32_t key = h->key;
	bool marked = is_marked(h);

	index_let_go(h);
	if (marked)
		foliage_pool_discard(c->pool, c->object, key);
	else
		foliage_pool_unpin(c->pool, page, FOLIAGE_UNPIN_DISCARD);
}

/* Discard pages that are not held, by their numbers or, if these did not fit, all from `limit` on. */
struct discards {
	uint32_t nr, keys[FEW_KEYS];
};

static void discard_key(struct cache *c, struct discards *d, uint32_t key, bool flush)
{
	if (d->nr < FEW_KEYS)
		d->keys[d->nr] = key;
	d->nr++;
	if (!flush || d->nr < FEW_KEYS)
		return;
	for (uint32_t i = 0; i < FEW_KEYS; i++)
		foliage_pool_discard(c->pool, c->object, d->keys[i]);
	d->nr = 0;
}

static void discard_rest(struct cache *c, const struct discards *d, uint32_t limit)
{
	if (d->nr > FEW_KEYS)
		foliage_pool_truncate(c->pool, c->object, limit, c->max_key);
	else
		for (uint32_t i = 0; i < d->nr; i++)
			foliage_pool_discard(c->pool, c->object, d->keys[i]);
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
	c->forks = atomic_load(&adapter.forks);
	if (c->pool)
		c->kind = foliage_pool_kind(c->pool, (uint32_t)page_bytes,
					    (uint32_t)(HEAD_BYTES + c->extra_bytes) |
						    FOLIAGE_EXTRA_FOLLOWS);
	if (!index_init(&c->index, &adapter.indexes) || !c->pool || c->kind < 0) {
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

	return (int)atomic_load_explicit(&c->index.nr_pages, memory_order_relaxed);
}

/* Said first that there is no room, and tried once more then: a mark that was taken back meanwhile must
 * not be overlooked. */
static int create_in_pool(struct cache *c, uint32_t key, struct foliage_page **page)
{
	const unsigned int flags = FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY;
	int rc = foliage_pool_fetch(c->pool, c->object, key, c->kind, flags, page);

	if (rc != -ENOBUFS || atomic_exchange(&adapter.starved, true))
		return rc;
	foliage_pool_unmarked(c->pool);
	return foliage_pool_fetch(c->pool, c->object, key, c->kind, flags, page);
}

/* SQLite lets go of a page. Of those outside the budget only some are a reason to try again. */
static __attribute__((noinline)) void let_go_starved(struct cache *c, bool pooled)
{
	if (!pooled && c->nr_fetches % RETRY_EVERY)
		return;
	atomic_store(&adapter.starved, false);
	foliage_pool_unmarked(c->pool);
}

/* A new page. `must`: SQLite cannot do without; else it would rather write some of its pinned
 * pages first. */
static struct head *create_page(struct cache *c, uint32_t key, bool must)
{
	struct foliage_page *page;
	int rc;

	if (!index_reserve(&c->index))
		return NULL;
	if (c->purgeable && !must && c->nr_pinned >= c->max_pages - c->max_pages / 10)
		return NULL;
	c->max_key = key > c->max_key ? key : c->max_key;
	if (!c->purgeable)
		return allocated_new(c, key);
	rc = create_in_pool(c, key, &page);
	if (rc == FOLIAGE_NEW)
		return pooled_new(c, page, key);
	return rc != -ECHILD && must ? allocated_new(c, key) : NULL;
}

/* Not at hand in the index. */
static __attribute__((noinline)) struct head *fetch_otherwise(struct cache *c, uint32_t key,
							      int create, bool maybe)
{
	struct head *h = maybe ? pooled_get(c, key) : NULL;

	if (!h && create)
		h = create_page(c, key, create == 2);
	if (h)
		c->nr_pinned++;
	return h;
}

/* SQLite will look at its own bytes, then at the head of the page: let them come together. */
static void fetch_ahead(const struct head *h)
{
	__builtin_prefetch(h->page.pBuf);
	__builtin_prefetch((const char *)h + 64);
	__builtin_prefetch((const char *)h + 128);
}

static sqlite3_pcache_page *method_fetch(sqlite3_pcache *cache, unsigned int key, int create)
{
	struct cache *c = (struct cache *)cache;
	bool fresh = false, maybe = false;
	struct head *h;

	if (c->forks != atomic_load_explicit(&adapter.forks, memory_order_relaxed))
		return NULL; /* inherited by a child */
	c->nr_fetches++;
	h = index_hold(&c->index, key, &fresh, &maybe);
	if (!h) {
		h = fetch_otherwise(c, key, create, maybe);
		return h ? &h->page : NULL;
	}
	if (!fresh)
		return &h->page; /* SQLite counts its own references */
	c->nr_pinned++;
	fetch_ahead(h);
	if (c->nr_fetches - h->touched >= TOUCH_EVERY && h->pooled) {
		h->touched = c->nr_fetches;
		foliage_pool_touch(c->pool, h->pooled);
	}
	return &h->page;
}

static void method_unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard)
{
	struct cache *c = (struct cache *)cache;
	struct head *h = (struct head *)page;

	bool pooled = h->pooled;

	c->nr_pinned--;
	if (!pooled) {
		index_let_go(h);
		if (discard || c->purgeable)
			allocated_free(c, h);
	} else if (discard) {
		pooled_discard(c, h);
	} else if (is_marked(h)) {
		index_let_go(h);
	} else {
		struct foliage_page *pinned = h->pooled;

		index_let_go(h);
		foliage_pool_unpin(c->pool, pinned, 0);
	}
	if (__builtin_expect(atomic_load_explicit(&adapter.starved, memory_order_relaxed), 0))
		let_go_starved(c, pooled);
}

/* Another thread's search may hold the page for a moment, on its way to another name. */
static void rekey_pooled(struct cache *c, struct head *h, uint32_t key)
{
	struct foliage_page *page = h->pooled;

	if (is_marked(h)) {
		/* It cannot have left. */
		while (foliage_pool_fetch(c->pool, c->object, h->key, c->kind, 0, &page) == -EAGAIN)
			sched_yield();
		index_hold_pin(&c->index, h);
	}
	while (foliage_pool_rekey(c->pool, &page, c->object, key) == -EBUSY)
		sched_yield();
	h->pooled = page;
}

static void method_rekey(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned int old,
			 unsigned int new)
{
	struct cache *c = (struct cache *)cache;
	struct head *h = (struct head *)page, *there = index_allocated(&c->index, new);

	(void)old;
	if (there && there != h) {
		c->nr_pinned -= atomic_load(&there->entry->held) != HELD_NOT;
		allocated_free(c, there);
	}
	if (h->pooled)
		rekey_pooled(c, h, new);
	else if (c->purgeable)
		foliage_pool_discard(c->pool, c->object, new);
	c->max_key = new > c->max_key ? new : c->max_key;
	index_rekey(&c->index, h, new);
}

/* A page of the index at this place, of at least this number; NULL: none, or it is being buried. */
static struct entry *entry_from(struct cache *c, uint32_t i, uint32_t limit, struct head **h)
{
	struct entry *e = &c->index.entries[i];

	*h = atomic_load_explicit(&e->head, memory_order_acquire);
	return *h && *h != BURIED && e->key >= limit ? e : NULL;
}

/* Pinned pages are let go of by this, too. */
static void method_truncate(sqlite3_pcache *cache, unsigned int limit)
{
	struct cache *c = (struct cache *)cache;
	struct discards unheld = {.nr = 0};
	struct head *h;

	if (limit > c->max_key)
		return;
	for (uint32_t i = 0; i <= c->index.mask; i++) {
		struct entry *e = entry_from(c, i, limit, &h);
		bool held = e && atomic_load_explicit(&e->held, memory_order_relaxed) != HELD_NOT;

		if (!e)
			continue;
		c->nr_pinned -= held;
		if (e->allocated)
			allocated_free(c, h);
		else if (held)
			pooled_discard(c, h);
		else
			discard_key(c, &unheld, e->key, false);
	}
	discard_rest(c, &unheld, limit);
	c->max_key = limit ? limit - 1 : 0;
}

static void method_destroy(sqlite3_pcache *cache)
{
	struct cache *c = (struct cache *)cache;

	method_truncate(cache, 0);
	atomic_fetch_sub(&adapter.caches, 1);
	/* Pages in the hands of another thread's reclaim leave in a moment, or when they are
	 * next met. */
	if (index_close(&c->index))
		cache_free(c);
}

static void method_shrink(sqlite3_pcache *cache)
{
	struct cache *c = (struct cache *)cache;
	struct discards unheld = {.nr = 0};
	struct head *h;

	for (uint32_t i = 0; i <= c->index.mask; i++) {
		struct entry *e = entry_from(c, i, 0, &h);

		if (e && !e->allocated && !atomic_load_explicit(&e->held, memory_order_relaxed))
			discard_key(c, &unheld, e->key, true);
	}
	discard_rest(c, &unheld, 0);
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

/* The child has one thread, and none of the pool's. */
static void forked(void)
{
	atomic_fetch_add(&adapter.forks, 1);
	atomic_store(&adapter.indexes.examining, 0);
}

/* Preloaded or linked: before main(). What the environment says is checked here, where it can
 * still be refused. */
static __attribute__((constructor)) void install(void)
{
	char message[200] = "";

	adapter.pool = open_pool(message, sizeof(message));
	if (adapter.pool && !pthread_atfork(NULL, NULL, forked))
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
	stats->index_bytes = atomic_load(&adapter.indexes.bytes);
	return 0;
}
