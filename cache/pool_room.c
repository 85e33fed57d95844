/* SPDX-License-Identifier: MIT
 *
 * Making room, in the thread that needs it. In this order:
 *
 *   a free frame of the kind, or a slab that has no kind;
 *   once another kind has a slab's worth of free frames: empty one of its slabs and take it over;
 *   the engine reclaims about 32 pages, the coldest of all kinds.
 *
 * So kinds share the budget by the heat of their pages, not by quota. When reclaim finds nothing
 * although nobody else is at it, everything is pinned or dirty: the pool is `starved`. Until
 * somebody lets go of a page, each fetch that needs room says so at once, or waits, and does not
 * scan again.
 */
#include "cache/group.h"
#include "cache/pool.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { SESSIONS = 8, DRAIN_CANDIDATES = 8, WAIT_SLICE_MS = 20 };

/* ---- what the engine asks ---- */

static void room_evict(void *ctx, foliage_folio id, uint64_t shadow)
{
	struct pool *p = ctx;
	struct pool_slot *s = pool_slot(p, (uint64_t)id);
	struct pool_thread *t = pool_thread(p);

	if (!(atomic_load_explicit(&s->state, memory_order_acquire) & SLOT_DOOMED))
		pool_shadows_put(&p->shadows, slot_hash(s), shadow);
	if (t && s->data) /* not what a rekey left behind */
		pool_count(t, COUNT_EVICTED, 1);
	pool_release_slot(p, s);
}

static uint64_t room_now_ms(void *ctx)
{
	struct timespec now;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void room_wake_flusher(void *ctx)
{
	struct pool *p = ctx;

	if (p->dirty)
		p->dirty(p->self.ctx);
}

static void room_throttle(void *ctx)
{
	group_throttle(ctx);
}

const struct foliage_backend pool_backend = {
	.throttle = room_throttle,
	.taken = pool_taken,
	.given_back = pool_given_back,
	.evict = room_evict,
	.now_ms = room_now_ms,
	.wake_flusher = room_wake_flusher,
};

static int64_t reclaim(struct pool *p, struct pool_thread *t)
{
	int64_t freed = 0;

	pool_count_marks(p, t);
	atomic_fetch_add(&p->reclaimers, 1);
	/* A session may only have aged; a pool of clean pages yields in the end. */
	for (int i = 0; i < SESSIONS && freed <= 0; i++)
		freed = foliage_reclaim(p->engine, &t->cpu, &p->request);
	if (freed <= 0) {
		/* What there is may wait in the batches of threads that do nothing. */
		engine_drain_all(p->engine);
		freed = foliage_reclaim(p->engine, &t->cpu, &p->request);
	}
	atomic_fetch_sub(&p->reclaimers, 1);
	return freed;
}

/* ---- slabs ---- */

static bool can_leave(const struct pool *p, folio_id id)
{
	return !(folio_flags(&pool_slot(p, (uint64_t)id)->folio) &
		 (F_PINS_MASK | F_DIRTY | F_LOCKED));
}

/* Evict what is in one slab of another kind than `kind` that has `slack` to spare; true: it is
 * free. The resize lock is held. */
static bool empty_slab(struct pool *p, struct pool_thread *t, int kind, uint64_t slack)
{
	folio_id *owners = malloc(FRAMES_PER_SLAB_MAX * sizeof(*owners));
	bool empty = false;

	if (!owners)
		return false;
	engine_drain_all(p->engine);
	for (uint32_t skip = 0; skip < DRAIN_CANDIDATES && !empty; skip++) {
		uint32_t nr = 0, i;
		int slab = pool_frames_drain_begin(&p->frames, kind, slack, skip, owners, &nr);

		if (slab == SLAB_NONE)
			break;
		for (i = 0; i < nr; i++)
			if (owners[i] >= 0 && !can_leave(p, owners[i]))
				break;
		if (i == nr)
			for (i = 0; i < nr; i++)
				if (owners[i] >= 0)
					foliage_folio_pageout(p->engine, &t->cpu, owners[i]);
		empty = pool_frames_drain_end(&p->frames, slab);
	}
	free(owners);
	if (empty)
		pool_count(t, COUNT_SLAB_MOVES, 1);
	return empty;
}

static bool take_over(struct pool *p, struct pool_thread *t, int kind, uint64_t slack)
{
	bool done = false;

	if (!pthread_mutex_trylock(&p->resize_lock)) {
		done = empty_slab(p, t, kind, slack);
		pthread_mutex_unlock(&p->resize_lock);
	}
	return done;
}

/* Until at most `target` slabs are in memory. The resize lock is held. */
static bool trim(struct pool *p, struct pool_thread *t, uint32_t target)
{
	uint64_t slab = UINT64_C(1) << p->frames.slab_shift;
	uint64_t rounds = 1000 + 2 * atomic_load(&p->used);

	while (!pool_frames_release(&p->frames, target)) {
		if (!rounds--)
			return false;
		if (pool_frames_slack(&p->frames, -1) >= slab && empty_slab(p, t, -1, slab))
			continue;
		if (reclaim(p, t) <= 0 && !empty_slab(p, t, -1, 0))
			return pool_frames_release(&p->frames, target);
	}
	return true;
}

/* ---- the table of names ---- */

uint64_t pool_metadata_bytes(const struct pool *p, uint32_t level)
{
	return p->fixed_bytes + p->shadows.bytes + pool_slots(p, level) * sizeof(struct pool_slot);
}

/* Slabs that the budget leaves at a level; 0: too few to work with. */
static uint32_t slabs_at(const struct pool *p, uint64_t budget, uint32_t level)
{
	uint64_t tables = pool_metadata_bytes(p, level), slabs;

	if (budget <= tables)
		return 0;
	slabs = (budget - tables) >> p->frames.slab_shift;
	return slabs < 2 ? 0 : (uint32_t)MIN(slabs, (uint64_t)p->frames.nr_slabs);
}

/* Between the two, the fast search looks in other places than names are put: it misses, and the thorough
 * one finds them. */
static void set_level(struct pool *p, uint32_t level)
{
	atomic_store_explicit(&p->level, level, memory_order_release);
	atomic_store_explicit(&p->nr_slots, pool_slots(p, level), memory_order_release);
}

/* Double the table, if the frames can do with so much less. */
static bool grow_table(struct pool *p, struct pool_thread *t)
{
	uint32_t level, slabs, before;
	bool done = false;

	if (pthread_mutex_trylock(&p->resize_lock))
		return false;
	level = atomic_load(&p->level);
	if (level < POOL_LEVELS && pool_limit(p) < p->max_pages) {
		slabs = slabs_at(p, p->budget, level + 1);
		before = atomic_load(&p->frames.limit);
		if (slabs) {
			atomic_store(&p->frames.limit, MIN(slabs, before));
			done = trim(p, t, slabs);
			if (done)
				set_level(p, level + 1);
			else
				atomic_store(&p->frames.limit, before);
		}
	}
	pthread_mutex_unlock(&p->resize_lock);
	return done;
}

/* ---- waiting ---- */

static void try_anew(struct pool *p)
{
	atomic_fetch_add_explicit(&p->wakes, 1, memory_order_seq_cst);
	atomic_store_explicit(&p->starved, 0, memory_order_seq_cst);
}

void pool_wake(struct pool *p)
{
	if (atomic_load_explicit(&p->starved, memory_order_seq_cst))
		try_anew(p);
	if (!atomic_load_explicit(&p->waiting, memory_order_seq_cst))
		return;
	pthread_mutex_lock(&p->room_lock);
	pthread_cond_broadcast(&p->room_cond);
	pthread_mutex_unlock(&p->room_lock);
}

static struct timespec after_ms(uint64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)(ms / 1000);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Until woken, for a slice at most: a wake-up that is missed costs no more than that. The room
 * lock is held. */
static void wait_a_slice(struct pool *p, uint64_t ms)
{
	struct timespec until = after_ms(ms);

	pthread_cond_timedwait(&p->room_cond, &p->room_lock, &until);
}

void pool_wait_filled(struct pool *p, struct pool_thread *t, const struct pool_ask *ask)
{
	struct pool_slot *s = NULL;

	group_stall(ask->group, t, FOLIAGE_STALL_IO, true);
	pthread_mutex_lock(&p->room_lock);
	atomic_fetch_add(&p->waiting, 1);
	if (pool_find(p, ask, false, &s) == POOL_FILLING)
		wait_a_slice(p, WAIT_SLICE_MS);
	atomic_fetch_sub(&p->waiting, 1);
	pthread_mutex_unlock(&p->room_lock);
	group_stall(ask->group, t, FOLIAGE_STALL_IO, false);
	if (s)
		pool_drop_pin(p, s);
}

/* Wait for somebody to let go of a page; false: the time is over. */
static bool wait_for_room(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
			  uint64_t *deadline)
{
	uint64_t now = now_ms();

	if (!*deadline) {
		*deadline = now + ask->in->wait_ms + 1; /* the one that has begun is not whole */
		pool_count(t, COUNT_WAITS, 1);
	}
	if (now >= *deadline)
		return false;
	pthread_mutex_lock(&p->room_lock);
	atomic_fetch_add(&p->waiting, 1);
	if (atomic_load(&p->starved))
		wait_a_slice(p, MIN(*deadline - now, (uint64_t)WAIT_SLICE_MS));
	atomic_fetch_sub(&p->waiting, 1);
	pthread_mutex_unlock(&p->room_lock);
	return true;
}

/* ---- room for one page ---- */

enum lack { LACK_NOTHING, LACK_SLOT, LACK_FRAME, LACK_GROUP };

static enum lack reserve(struct pool *p, const struct pool_ask *ask, void **data)
{
	if (!group_has_room(ask->group, pool_order(p, ask->kind)))
		return LACK_GROUP;
	if (atomic_fetch_add_explicit(&p->used, 1, memory_order_relaxed) >= pool_limit(p)) {
		atomic_fetch_sub_explicit(&p->used, 1, memory_order_relaxed);
		return LACK_SLOT;
	}
	*data = pool_frames_alloc(&p->frames, ask->kind);
	if (*data)
		return LACK_NOTHING;
	atomic_fetch_sub_explicit(&p->used, 1, memory_order_relaxed);
	return LACK_FRAME;
}

void pool_give_room(struct pool *p, uint32_t kind, void *data)
{
	pool_frames_free(&p->frames, kind, data);
	atomic_fetch_sub_explicit(&p->used, 1, memory_order_relaxed);
	pool_wake(p);
}

/* One attempt to change something; false: there is nothing to be had. */
static bool make_progress(struct pool *p, struct pool_thread *t, enum lack lack,
			  const struct pool_ask *ask)
{
	uint64_t slab = UINT64_C(1) << p->frames.slab_shift;
	int kind = (int)ask->kind;

	if (lack == LACK_GROUP)
		return group_make_room(ask->group, t, pool_order(p, ask->kind));
	if (lack == LACK_SLOT && grow_table(p, t))
		return true;
	if (lack == LACK_FRAME && pool_frames_slack(&p->frames, kind) >= slab &&
	    take_over(p, t, kind, slab))
		return true;
	if (reclaim(p, t) > 0)
		return true;
	return lack == LACK_FRAME && take_over(p, t, kind, 0);
}

/* Known to have no room, and nobody has let go of a page since. */
static bool known_starved(struct pool *p, const struct pool_ask *ask, enum lack lack)
{
	uint32_t starved = atomic_load(&p->starved);

	return lack == LACK_GROUP ? starved & STARVED_GROUP && group_is_stuck(ask->group)
				  : starved & STARVED_POOL;
}

static void set_starved(struct pool *p, const struct pool_ask *ask, enum lack lack)
{
	if (lack == LACK_GROUP)
		group_set_stuck(ask->group);
	atomic_fetch_or(&p->starved, lack == LACK_GROUP ? STARVED_GROUP : STARVED_POOL);
	pool_barrier(p);
}

/* Reclaim, and say so when it is in vain; false: there is no room. */
static bool try_hard(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
		     enum lack lack, int *idle)
{
	if (known_starved(p, ask, lack))
		return false;
	if (make_progress(p, t, lack, ask)) {
		*idle = 0;
		return true;
	}
	/* Others may have everything in their hands for the moment. */
	if (atomic_load(&p->reclaimers) && ++*idle < 64) {
		sched_yield();
		return true;
	}
	/* Said first, tried once more: whoever lets go of a page either is seen or sees it. */
	set_starved(p, ask, lack);
	if (!make_progress(p, t, lack, ask))
		return false;
	try_anew(p);
	return true;
}

static int make_room(struct pool *p, struct pool_thread *t, const struct pool_ask *ask,
		     enum lack lack, void **data)
{
	uint64_t deadline = 0;

	for (int idle = 0; lack != LACK_NOTHING; lack = reserve(p, ask, data)) {
		if (try_hard(p, t, ask, lack, &idle))
			continue;
		if (!(ask->flags & FOLIAGE_FETCH_WAIT) || !wait_for_room(p, t, ask, &deadline)) {
			pool_count(t, COUNT_NO_ROOM, 1);
			group_count_no_room(ask->group);
			return -ENOBUFS;
		}
		/* Woken or not: try in earnest. */
		try_anew(p);
		idle = 0;
	}
	return 0;
}

int pool_make_room(struct pool *p, struct pool_thread *t, const struct pool_ask *ask, void **data)
{
	enum lack lack;
	int rc;

	group_seen(ask->group, t);
	group_keep_below_high(ask->group, t, ask);
	lack = reserve(p, ask, data);
	if (lack == LACK_NOTHING)
		return 0;
	group_stall(ask->group, t, FOLIAGE_STALL_MEMORY, true);
	rc = make_room(p, t, ask, lack, data);
	group_stall(ask->group, t, FOLIAGE_STALL_MEMORY, false);
	return rc;
}

/* ---- from outside ---- */

int foliage_pool_unmarked(struct foliage_pool *h)
{
	if (!pool_alive(h->core))
		return -ECHILD;
	pool_wake(h->core);
	return 0;
}

int64_t foliage_pool_shrink(struct foliage_pool *h, uint64_t bytes)
{
	struct pool *p = h->core;
	uint64_t slab = UINT64_C(1) << p->frames.slab_shift;
	uint32_t before, after, want = (uint32_t)MIN((bytes - 1) / slab + 1, (uint64_t)UINT32_MAX);
	struct pool_thread *t;

	if (!pool_alive(p))
		return -ECHILD;
	if (!bytes)
		return 0;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	pthread_mutex_lock(&p->resize_lock);
	before = atomic_load(&p->frames.backed);
	trim(p, t, before > want ? before - want : 0);
	after = atomic_load(&p->frames.backed);
	pthread_mutex_unlock(&p->resize_lock);
	return before > after ? (int64_t)(before - after) << p->frames.slab_shift : 0;
}

int foliage_pool_resize(struct foliage_pool *h, uint64_t bytes)
{
	struct pool *p = h->core;
	struct pool_thread *t;
	uint32_t slabs;
	int rc = 0;

	if (!pool_alive(p))
		return -ECHILD;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	pthread_mutex_lock(&p->resize_lock);
	slabs = slabs_at(p, bytes, atomic_load(&p->level));
	if (!slabs || bytes > p->max_bytes) {
		rc = -EINVAL;
	} else {
		p->budget = bytes;
		atomic_store(&p->frames.limit, slabs);
		if (!trim(p, t, slabs))
			rc = -EBUSY;
	}
	pthread_mutex_unlock(&p->resize_lock);
	pool_wake(p);
	return rc;
}
