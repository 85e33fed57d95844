/* SPDX-License-Identifier: MIT
 *
 * The pool's life, and the path of a fetch: find and pin (pool_index.c); if the page is not there,
 * make room (pool_room.c), and under the shard lock of the name look again, claim a slot and let
 * the engine have the folio, already pinned by us. Before that nobody sees it; after that it is
 * like any other, but for F_LOCKED until it is filled.
 */
#include "cache/group.h"
#include "cache/pool.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HINTS (FOLIAGE_HINT_SEQUENTIAL | FOLIAGE_HINT_ONCE | FOLIAGE_HINT_WILL_NEED)

/* ---- create and destroy ---- */

static int bad(char *message, size_t bytes, int code, const char *text)
{
	if (message && bytes)
		snprintf(message, bytes, "%s", text);
	return code;
}

static bool page_size_ok(uint64_t bytes)
{
	return bytes >= FOLIAGE_PAGE_MIN && bytes <= FOLIAGE_PAGE_MAX && !(bytes & (bytes - 1));
}

static int check_options(const struct foliage_pool_options *o, char *message, size_t bytes)
{
	if (o->bytes < FOLIAGE_POOL_MIN || o->bytes > UINT64_C(1) << 46)
		return bad(message, bytes, -EINVAL, "the budget must be at least 1 MiB");
	if (o->max_bytes && (o->max_bytes < o->bytes || o->max_bytes / 8 > o->bytes))
		return bad(message, bytes, -EINVAL, "max_bytes must be 1 to 8 times the budget");
	if (o->page_bytes && !page_size_ok(o->page_bytes))
		return bad(message, bytes, -EINVAL,
			   "page_bytes must be a power of two, 512 to 65536");
	if (o->extra_bytes > FOLIAGE_EXTRA_MAX)
		return bad(message, bytes, -EINVAL, "extra_bytes must be at most 4096");
	if (o->max_groups > FOLIAGE_GROUPS_MAX)
		return bad(message, bytes, -EINVAL, "max_groups must be at most 1024");
	return 0;
}

/* A word that reads 0 in a forked child. */
static int make_alive(struct pool *p)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic uint64_t *word =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (word == MAP_FAILED)
		return -ENOMEM;
	if (madvise(word, bytes, MADV_WIPEONFORK)) {
		munmap(word, bytes);
		return -ENOSYS;
	}
	atomic_store(word, p->serial);
	p->alive = p->self.alive = word;
	return 0;
}

static void init_locks(struct pool *p)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->room_cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&p->room_lock, NULL);
	pthread_mutex_init(&p->resize_lock, NULL);
	pthread_mutex_init(&p->groups_lock, NULL);
	for (int i = 0; i < POOL_SHARDS; i++)
		pthread_mutex_init(&p->shards[i].lock, NULL);
}

static uint64_t serial_number(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How many pages of the typical size fit, each with its share of the tables: 2 slots and 3
 * shadows a page. */
static uint64_t typical_pages(const struct pool *p, const struct foliage_pool_options *o)
{
	uint64_t page =
		(UINT64_C(1) << p->page_shift) + ((o->extra_bytes + 15) & ~15u) + sizeof(uint32_t);
	uint64_t pages = (o->bytes - p->fixed_bytes) /
			 (page + 2 * sizeof(struct pool_slot) + 3 * POOL_LINE / 5 + 1);

	return MIN(MAX(pages, UINT64_C(16)), p->max_pages);
}

static uint64_t next_prime(uint64_t n)
{
	for (n |= 1;; n += 2) {
		uint64_t i = 3;

		while (i * i <= n && n % i)
			i += 2;
		if (i * i > n)
			return n;
	}
}

/* A removed group keeps its slot until no page names it: twice as many as groups. */
static uint32_t pool_memcgs(const struct foliage_pool_options *o)
{
	return 1 + 2 * o->max_groups;
}

static int make_tables(struct pool *p, const struct foliage_pool_options *o, char *message,
		       size_t bytes)
{
	uint64_t pages = typical_pages(p, o), slots = 2 * next_prime(MAX(pages, UINT64_C(31))),
		 batch = MAX(pages / 16, UINT64_C(1));
	struct foliage_engine_options options = {
		.policy = o->policy,
		.nr_folios = (uint32_t)(slots << POOL_LEVELS),
		.max_memcgs = pool_memcgs(o),
		.folio_bytes = sizeof(struct pool_slot),
		.totalram_pages = pages,
		.seed = o->seed,
		.backend = &pool_backend,
		.ctx = p,
	};
	int rc;

	if (slots << POOL_LEVELS > UINT64_C(1) << 30)
		return bad(message, bytes, -EINVAL,
			   "the budget has too many pages: choose a larger page_bytes");
	p->base = (uint32_t)slots;
	atomic_store(&p->nr_slots, slots);
	p->request = (struct foliage_reclaim_request){
		.nr = MIN(batch, (uint64_t)SWAP_CLUSTER_MAX),
		.batch = (uint32_t)MIN(batch, (uint64_t)MIN_LRU_BATCH),
		.swappiness = -1,
		.memcg_limit = true,
	};
	rc = foliage_engine_create(&options, &p->engine, message, bytes);
	if (rc)
		return rc == -ENOENT ? -EINVAL : rc; /* no such policy */
	p->ops = p->engine->ops;
	p->slots = (char *)p->engine->folios;
	return pool_shadows_init(&p->shadows, 3 * pages);
}

static int fill_pool(struct pool *p, const struct foliage_pool_options *o, char *message,
		     size_t bytes)
{
	uint32_t page = o->page_bytes ? o->page_bytes : 4096;
	uint64_t tables;
	int rc;

	p->budget = o->bytes;
	p->max_bytes = o->max_bytes ? o->max_bytes : o->bytes;
	p->max_pages = o->max_pages ? o->max_pages : UINT64_MAX;
	p->page_shift = fls64(page) - 1;
	p->dirty = o->dirty;
	p->max_groups = o->max_groups;
	p->self = (struct foliage_pool){
		.core = p,
		.wait_ms = o->wait_ms,
		.dropped = o->dropped,
		.leaving = o->leaving,
		.ctx = o->ctx,
		.users = 1,
	};
	p->spaces[0] = &p->self;
	p->serial = serial_number();
	/* The engine's own, small beside the tables: ids of groups, heads of lists, lruvecs. */
	p->fixed_bytes = sizeof(*p) + 65536 * sizeof(uint16_t) + sizeof(struct node) +
			 pool_memcgs(o) * (NR_LISTS * sizeof(struct pool_slot) +
					   sizeof(struct lruvec) + sizeof(struct memcg));
	if (p->fixed_bytes > p->budget / 2)
		return bad(message, bytes, -EINVAL, "the budget is too small for max_groups");
	pool_local_init(p);
	if (o->leaving && !p->can_local)
		return bad(message, bytes, -ENOSYS, "the system has no membarrier(2)");
	rc = make_alive(p);
	if (!rc)
		rc = make_tables(p, o, message, bytes);
	if (!rc)
		rc = pool_frames_init(&p->frames, p->budget, p->max_bytes);
	if (rc)
		return rc;
	tables = pool_metadata_bytes(p, 0);
	if (p->budget < tables + (UINT64_C(2) << p->frames.slab_shift))
		return bad(message, bytes, -EINVAL, "the budget is too small for its tables");
	atomic_store(&p->frames.limit, (uint32_t)MIN((p->budget - tables) >> p->frames.slab_shift,
						     (uint64_t)p->frames.nr_slabs));
	rc = pool_threads_init(p);
	return rc ? rc : group_init(p);
}

static void pool_free(struct pool *p)
{
	foliage_engine_destroy(p->engine); /* it knows the threads' batches */
	pool_threads_fini(p);
	group_fini(p);
	pool_shadows_fini(&p->shadows);
	pool_frames_fini(&p->frames);
	if (p->alive)
		munmap((void *)(uintptr_t)p->alive, (size_t)sysconf(_SC_PAGESIZE));
	free(p);
}

int foliage_pool_create(const struct foliage_pool_options *o, struct foliage_pool **pool,
			char *message, size_t bytes)
{
	struct pool *p;
	int rc = check_options(o, message, bytes);

	if (rc)
		return rc;
	p = aligned_alloc(POOL_LINE, sizeof(*p));
	if (!p)
		return bad(message, bytes, -ENOMEM, "out of memory");
	memset(p, 0, sizeof(*p));
	init_locks(p);
	if (message && bytes)
		message[0] = '\0';
	rc = fill_pool(p, o, message, bytes);
	if (rc) {
		if (message && bytes && !message[0])
			bad(message, bytes, rc, strerror(-rc));
		pool_free(p);
		return rc;
	}
	*pool = &p->self;
	return 0;
}

/* A name space closes: its pages go, and nobody is told of one any more that somebody else's reclaim
 * has just now. */
static void close_space(struct foliage_pool *h)
{
	if (pool_alive(h->core))
		pool_clear_space(h);
	atomic_store(&h->closed, true);
	while (atomic_load(&h->calling) && pool_alive(h->core))
		sched_yield();
	pool_space_leave(h);
}

void pool_space_leave(struct foliage_pool *h)
{
	struct pool *p = h->core;

	if (atomic_fetch_sub_explicit(&h->users, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&p->groups_lock);
	p->spaces[h->space] = NULL;
	pthread_mutex_unlock(&p->groups_lock);
	group_release(h->group);
	free(h);
}

void foliage_pool_destroy(struct foliage_pool *h)
{
	if (!h)
		return;
	if (h->space)
		close_space(h);
	else
		pool_free(h->core);
}

int foliage_pool_kind(struct foliage_pool *h, uint32_t page_bytes, uint32_t extra_bytes)
{
	bool packed = extra_bytes & FOLIAGE_EXTRA_FOLLOWS;
	struct pool *p = h->core;

	if (!pool_alive(p))
		return -ECHILD;
	extra_bytes &= ~(uint32_t)FOLIAGE_EXTRA_FOLLOWS;
	if (!page_size_ok(page_bytes) || extra_bytes > FOLIAGE_EXTRA_MAX)
		return -EINVAL;
	if (page_bytes + extra_bytes + sizeof(uint32_t) > UINT64_C(1) << p->frames.slab_shift)
		return -EINVAL;
	return pool_frames_kind(&p->frames, page_bytes, extra_bytes, packed);
}

/* ---- fetch ---- */

uint32_t pool_order(const struct pool *p, uint32_t kind)
{
	uint32_t shift = p->frames.kinds[kind].shift;

	return shift > p->page_shift ? shift - p->page_shift : 0;
}

/* A memcg that is removed just now may have left the tree already, but in a session its slot is nobody
 * else's, and knows the parent. */
void pool_add_folio(struct pool *p, struct pool_thread *t, folio_id id, uint32_t memcg,
		    uint32_t order, uint32_t add, uint64_t shadow)
{
	while (foliage_folio_add(p->engine, &t->cpu, id, memcg, 0, 0, order, add, shadow) && memcg)
		memcg = p->engine->memcgs[memcg].parent;
}

/* Under the shard lock: the slot, the frame, the engine. */
static struct pool_slot *insert(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
				void *data)
{
	struct pool_slot *s = pool_claim(p, ask);
	uint32_t kind = ask->kind, add = 0;
	uint64_t shadow =
		ask->flags & FOLIAGE_HINT_ONCE ? 0 : pool_shadows_take(&p->shadows, ask->hash);
	void *extra = pool_frames_extra(&p->frames, kind, data);
	unsigned int session;

	if (extra)
		memset(extra, 0, p->frames.kinds[kind].extra);
	s->data = data;
	s->folio.handle = (uint64_t)(uintptr_t)extra;
	__atomic_store_n(&s->object, ask->object, __ATOMIC_RELAXED);
	__atomic_store_n(&s->index, ask->index, __ATOMIC_RELAXED);
	pool_frames_set_owner(&p->frames, kind, data, slot_id(p, s));
	atomic_fetch_add_explicit(&s->folio.flags, PIN_ONE, memory_order_relaxed);
	if (!(ask->flags & FOLIAGE_FETCH_READY))
		add |= FOLIAGE_FOLIO_LOCKED;
	if (ask->flags & FOLIAGE_HINT_ONCE)
		add |= FOLIAGE_FOLIO_DROPBEHIND;
	session = memcg_enter(p->engine);
	pool_add_folio(p, t, slot_id(p, s), group_memcg(ask->group), pool_order(p, kind), add,
		       shadow);
	memcg_leave(p->engine, session);
	return s;
}

static enum pool_found create(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
			      struct pool_slot **slot, int *rc)
{
	enum pool_found found;
	void *data = NULL;

	pool_count_marks(p, t);
	*rc = pool_make_room(p, t, ask, &data);
	if (*rc)
		return POOL_ABSENT;
	pthread_mutex_lock(pool_shard(p, ask->hash));
	found = pool_find(p, ask, false, slot);
	if (found == POOL_ABSENT)
		*slot = insert(p, t, ask, data);
	pthread_mutex_unlock(pool_shard(p, ask->hash));
	if (found != POOL_ABSENT) {
		pool_give_room(p, ask->kind, data);
		return found;
	}
	if (!(ask->flags & (FOLIAGE_HINT_ONCE | FOLIAGE_HINT_WILL_NEED)))
		p->ops->mark_accessed(p->engine, &t->cpu, slot_id(p, *slot));
	pool_count(t, COUNT_CREATED, 1);
	*rc = FOLIAGE_NEW;
	return POOL_FOUND;
}

/* Until the page is pinned or there is a reason why not: FOLIAGE_HIT, FOLIAGE_NEW or an error. */
static int fetch_until(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
		       struct pool_slot **slot)
{
	enum pool_found found = pool_find(p, ask, false, slot);
	int rc = FOLIAGE_HIT;

	for (;;) {
		switch (found) {
		case POOL_FOUND:
			return rc;
		case POOL_TOO_MANY_PINS:
			return -EAGAIN;
		case POOL_FILLING:
			if (ask->flags & FOLIAGE_FETCH_NOWAIT)
				return -EAGAIN;
			pool_wait_filled(p, t, ask);
			rc = FOLIAGE_HIT;
			found = pool_find(p, ask, false, slot);
			break;
		case POOL_ABSENT:
			if (!(ask->flags & FOLIAGE_FETCH_CREATE))
				return -ENOENT;
			found = create(p, t, ask, slot, &rc);
			if (rc < 0)
				return rc;
			break;
		}
	}
}

static void let_go(struct pool *p, struct pool_thread *t, struct pool_slot *s)
{
	unsigned int own = t ? pool_local_find(t, s) : POOL_HELD;

	if (own < POOL_HELD)
		pool_local_clear(p, t, s, own);
	else
		pool_drop_pin(p, s);
}

/* At the first two places of the name; NULL: look properly. */
static struct pool_slot *find_near(struct pool *p, struct pool_thread *t,
				   const struct pool_ask *ask)
{
	const uint64_t care = F_PRESENT | F_FROZEN | PIN_MANY | F_LOCKED;
	struct pool_slot *s = pool_near(p, ask->hash, ask->index);
	uint64_t word;

	if (ask->flags & FOLIAGE_FETCH_LOCAL && pool_local_pin(p, t, s, ask))
		return s;
	word = folio_flags(&s->folio);
	if ((word & care) != F_PRESENT || !slot_named(s, ask) ||
	    !folio_cas_if(&s->folio, &word, word + PIN_ONE, false))
		return NULL;
	if (__builtin_expect(slot_named(s, ask), 1))
		return s;
	pool_drop_pin(p, s);
	return NULL;
}

static int fetch_thorough(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
			  struct pool_slot **slot)
{
	struct pool_slot *s;
	int rc = FOLIAGE_HIT;

	if (ask->kind >= atomic_load_explicit(&p->frames.nr_kinds, memory_order_acquire))
		return -EINVAL;
	s = find_near(p, t, ask);
	if (!s)
		rc = fetch_until(p, t, ask, &s);
	if (rc >= 0 && slot_kind(s) != ask->kind) {
		let_go(p, t, s);
		return -EINVAL;
	}
	*slot = s;
	return rc;
}

static int fetch_in(struct foliage_pool *h, struct foliage_group *group, uint64_t object,
		    uint64_t index, int kind, unsigned int flags, struct foliage_page **page)
{
	struct pool_ask ask = pool_name(h, object, index);
	struct pool *p = h->core;
	struct pool_thread *t;
	struct pool_slot *s;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	ask.group = group;
	ask.kind = (uint32_t)kind;
	ask.flags = flags;
	rc = fetch_thorough(p, t, &ask, &s);
	if (rc == FOLIAGE_HIT && !(flags & HINTS)) {
		pool_mark(t, s, folio_flags(&s->folio));
		if (pool_nr_marks(t) == POOL_MARKS)
			pool_count_marks(p, t);
	} else if (rc != -EINVAL && rc != -EAGAIN) {
		pool_count(t, rc == FOLIAGE_HIT ? COUNT_HITS : COUNT_MISSES, 1);
	}
	if (rc >= 0)
		*page = slot_page(s);
	return rc;
}

static __attribute__((noinline)) int fetch_any(struct foliage_pool *h, uint64_t object,
					       uint64_t index, int kind, unsigned int flags,
					       struct foliage_page **page)
{
	return fetch_in(h, h->group, object, index, kind, flags, page);
}

static __attribute__((noinline)) int fetch_instead(struct foliage_pool *h, uint64_t object,
						   uint64_t index, int kind, unsigned int flags,
						   struct foliage_page **page)
{
	struct pool_thread *t = pool_last.thread;

	pool_local_clear(h->core, t, atomic_load_explicit(&t->held[0], memory_order_relaxed), 0);
	return fetch_any(h, object, index, kind, flags, page);
}

/* A plain hit with a counted pin. */
static __attribute__((noinline)) int fetch_counted(struct foliage_pool *h, uint64_t object,
						   uint64_t index, int kind, unsigned int flags,
						   struct foliage_page **page)
{
	const uint64_t care = F_PRESENT | F_FROZEN | PIN_MANY | F_LOCKED;
	uint32_t state = (uint32_t)kind << SLOT_KIND_SHIFT | h->space << SLOT_SPACE_SHIFT;
	struct pool *p = h->core;
	struct pool_thread *t = pool_thread_known(p);
	struct pool_slot *s = pool_near(p, pool_hash(h->salt, object, index), index);
	uint64_t word = folio_flags(&s->folio);

	if (__builtin_expect(!t || pool_nr_marks(t) >= POOL_MARKS - 1 ||
				     (word & care) != F_PRESENT ||
				     !pool_is_page(s, object, index, state) ||
				     !folio_cas_if(&s->folio, &word, word + PIN_ONE, false),
			     0))
		return fetch_any(h, object, index, kind, flags, page);
	if (__builtin_expect(!pool_is_page(s, object, index, state), 0)) {
		pool_drop_pin(p, s);
		return fetch_any(h, object, index, kind, flags, page);
	}
	pool_mark(t, s, word);
	*page = slot_page(s);
	return FOLIAGE_HIT;
}

/* A hit that the thread pins for itself is this one straight piece: as many hits as fit into the
 * processor's window wait for memory together. Everything else is jumped to. */
int foliage_pool_fetch(struct foliage_pool *h, uint64_t object, uint64_t index, int kind,
		       unsigned int flags, struct foliage_page **page)
{
	struct pool *p = h->core;
	struct pool_thread *t = pool_thread_known(p);
	uint32_t state = (uint32_t)kind << SLOT_KIND_SHIFT | h->space << SLOT_SPACE_SHIFT;
	struct pool_slot *s;
	uint64_t word;

	if (!(flags & (FOLIAGE_FETCH_LOCAL | HINTS)))
		return fetch_counted(h, object, index, kind, flags, page);
	if (__builtin_expect((flags & HINTS) || !t, 0))
		return fetch_any(h, object, index, kind, flags, page);
	s = pool_near(p, pool_hash(h->salt, object, index), index);
	if (__builtin_expect(pool_nr_marks(t) >= POOL_MARKS - 1 ||
				     atomic_load_explicit(&t->held[0], memory_order_relaxed),
			     0))
		return fetch_any(h, object, index, kind, flags, page);
	word = pool_local_set(t, s, 0, object, index, state);
	if (__builtin_expect(!word, 0))
		return fetch_instead(h, object, index, kind, flags, page);
	pool_mark(t, s, word);
	*page = slot_page(s);
	return FOLIAGE_HIT;
}

static __attribute__((noinline)) int touch_any(struct foliage_pool *h, struct pool_slot *s)
{
	struct pool *p = h->core;
	struct pool_thread *t;

	if (!pool_alive(p))
		return -ECHILD;
	t = pool_thread(p);
	if (!t)
		return 0;
	pool_mark(t, s, folio_flags(&s->folio));
	if (pool_nr_marks(t) == POOL_MARKS)
		pool_count_marks(p, t);
	return 0;
}

int foliage_pool_touch(struct foliage_pool *h, struct foliage_page *page)
{
	struct pool_slot *s = page_slot(page);
	struct pool_thread *t = pool_thread_known(h->core);

	if (__builtin_expect(!t || pool_nr_marks(t) >= POOL_MARKS - 1, 0))
		return touch_any(h, s);
	pool_mark(t, s, folio_flags(&s->folio));
	return 0;
}

int foliage_group_fetch(struct foliage_group *group, struct foliage_pool *h, uint64_t object,
			uint64_t index, int kind, unsigned int flags, struct foliage_page **page)
{
	if (group && group->pool != h->core)
		return -EINVAL;
	return fetch_in(h, group ? group : h->group, object, index, kind, flags, page);
}

/* ---- letting go ---- */

static void unlock_page(struct pool *p, struct pool_slot *s)
{
	if (folio_change(p->engine, &s->folio, F_LOCKED, 0) & F_LOCKED &&
	    atomic_load_explicit(&p->waiting, memory_order_seq_cst))
		pool_wake(p);
}

int foliage_pool_ready(struct foliage_pool *h, struct foliage_page *page)
{
	if (!pool_alive(h->core))
		return -ECHILD;
	unlock_page(h->core, page_slot(page));
	return 0;
}

static __attribute__((noinline)) int unpin_any(struct foliage_pool *h, struct foliage_page *page,
					       unsigned int flags)
{
	struct pool_slot *s = page_slot(page);
	struct pool *p = h->core;

	if (!pool_alive(p))
		return -ECHILD;
	if (flags & FOLIAGE_UNPIN_DISCARD) {
		pool_local_to_counted(pool_thread(p), s);
		pool_doom(p, &s, 1);
		return 0;
	}
	if (flags & (FOLIAGE_UNPIN_DIRTY | FOLIAGE_UNPIN_CLEAN))
		folio_change(p->engine, &s->folio, flags & FOLIAGE_UNPIN_DIRTY ? 0 : F_DIRTY,
			     flags & FOLIAGE_UNPIN_DIRTY ? F_DIRTY : 0);
	if (folio_flags(&s->folio) & F_LOCKED)
		unlock_page(p, s);
	let_go(p, pool_thread(p), s);
	return 0;
}

static __attribute__((noinline)) int last_pin(struct pool *p, struct pool_slot *s, uint64_t word)
{
	pool_last_pin(p, s, word);
	return 0;
}

/* In a thread that has no pins of its own. */
static __attribute__((noinline)) int unpin_counted(struct foliage_pool *h,
						   struct foliage_page *page)
{
	struct pool_slot *s = page_slot(page);

	if (__builtin_expect(folio_flags(&s->folio) & F_LOCKED, 0))
		return unpin_any(h, page, 0);
	pool_drop_pin(h->core, s);
	return 0;
}

int foliage_pool_unpin(struct foliage_pool *h, struct foliage_page *page, unsigned int flags)
{
	struct pool_slot *s = page_slot(page), *held;
	struct pool *p = h->core;
	struct pool_thread *t = pool_thread_known(p);
	uint64_t word;

	if (__builtin_expect(!t || flags, 0))
		return unpin_any(h, page, flags);
	held = atomic_load_explicit(&t->held[0], memory_order_relaxed);
	if (__builtin_expect(held != s, 0))
		return held == POOL_NOT_YET ? unpin_counted(h, page) : unpin_any(h, page, flags);
	atomic_store_explicit(&t->held[0], NULL, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	word = folio_flags(&s->folio);
	if (__builtin_expect(word & F_FROZEN || pool_is_awaited(p), 0))
		return last_pin(p, s, word);
	return 0;
}

/* ---- statistics ---- */

const char *foliage_pool_policy(const struct foliage_pool *h)
{
	return h->core->engine->policy->name;
}

int foliage_pool_stats(struct foliage_pool *h, struct foliage_pool_stats *out)
{
	struct pool *p = h->core;
	uint64_t sums[NR_COUNTS];
	uint32_t level;

	if (!pool_alive(p))
		return -ECHILD;
	level = atomic_load(&p->level);
	pool_threads_sum(p, sums);
	*out = (struct foliage_pool_stats){
		.budget = p->budget,
		.metadata_bytes = pool_metadata_bytes(p, level),
		.frame_bytes = (uint64_t)atomic_load(&p->frames.backed) << p->frames.slab_shift,
		.pages = atomic_load(&p->used),
		.slots = pool_slots(p, level),
		.hits = sums[COUNT_HITS],
		.misses = sums[COUNT_MISSES],
		.created = sums[COUNT_CREATED],
		.evicted = sums[COUNT_EVICTED],
		.refaults = group_stat(p->root, STAT_REFAULT_ANON),
		.discarded = sums[COUNT_DISCARDED],
		.rekeyed = sums[COUNT_REKEYED],
		.no_room = sums[COUNT_NO_ROOM],
		.waits = sums[COUNT_WAITS],
		.slab_moves = sums[COUNT_SLAB_MOVES],
		.activated = group_stat(p->root, STAT_ACTIVATE_ANON),
		.restored = group_stat(p->root, STAT_RESTORE_ANON),
	};
	pthread_mutex_lock(&p->frames.lock);
	for (uint32_t i = 0; i < atomic_load(&p->frames.nr_kinds); i++)
		out->page_bytes += p->frames.kinds[i].used * p->frames.kinds[i].bytes;
	pthread_mutex_unlock(&p->frames.lock);
	return 0;
}
