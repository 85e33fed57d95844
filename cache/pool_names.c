/* SPDX-License-Identifier: MIT
 *
 * Names that go: discard, truncate, rekey. A name is taken away by freezing the folio, whoever may
 * have it pinned; the folio itself goes when nobody holds it (pool.h). So a page that was truncated
 * under a reader stays intact until the reader lets go.
 */
#include "cache/pool.h"
#include "mm/memcg.h"

#include <sched.h>

enum { BUSY_TRIES = 64, DOOM_BATCH = 64 };

/* Take the folio out of the engine. While another thread's reclaim has it, there is nothing to
 * take. */
static int leave_engine(struct pool *p, struct pool_thread *t, struct pool_slot *s)
{
	int rc = -EBUSY;

	for (int i = 0; i < BUSY_TRIES && rc == -EBUSY; i++) {
		if (i)
			sched_yield();
		rc = engine_remove_pinned(p->engine, &t->cpu, slot_id(p, s));
	}
	return rc;
}

void pool_remove(struct pool *p, struct pool_slot *s)
{
	struct pool_thread *t = pool_thread(p);
	int rc = t ? leave_engine(p, t, s) : -EBUSY;

	if (rc == -EBUSY) {
		/* Nameless, clean and unpinned: it leaves the next time that reclaim meets it. */
		atomic_fetch_or_explicit(&s->state, SLOT_DOOMED, memory_order_release);
		folio_change(p->engine, &s->folio, F_DIRTY | F_LOCKED, 0);
		atomic_fetch_sub(&s->folio.flags, PIN_ONE);
		return;
	}
	atomic_fetch_sub(&s->folio.flags, PIN_ONE);
	if (s->data) /* not what a rekey left behind */
		pool_count(t, COUNT_DISCARDED, 1);
	pool_release_slot(p, s);
}

uint32_t pool_doom(struct pool *p, struct pool_slot *const *slots, uint32_t nr)
{
	uint32_t named = 0;
	uint64_t held;

	for (uint32_t i = 0; i < nr; i++) {
		struct pool_slot *s = slots[i];

		named += !(folio_change(p->engine, &s->folio, F_DIRTY | F_LOCKED, F_FROZEN) &
			   F_FROZEN);
		atomic_fetch_or_explicit(&s->state, SLOT_DOOMED, memory_order_release);
	}
	held = pool_held(p, slots, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct pool_slot *s = slots[i];
		uint64_t word = folio_flags(&s->folio);

		/* No new pins come to a frozen folio: ours is the only one, or the last to go takes
		 * it out. */
		if (!(held >> i & 1) && (word & F_PINS_MASK) == PIN_ONE) {
			pool_remove(p, s);
			pool_wake(p);
		} else {
			pool_drop_pin(p, s);
		}
	}
	pool_held_done(p);
	return named;
}

int foliage_pool_discard(struct foliage_pool *h, uint64_t object, uint64_t index)
{
	int64_t nr = foliage_pool_truncate(h, object, index, index);

	return nr < 0 ? (int)nr : nr ? 0 : -ENOENT;
}

/* Names of one space: first <= index <= last of one object, or all. */
struct range {
	uint64_t object, first, last;
	uint32_t space;
	bool all;
};

static bool in_range(const struct pool_slot *s, const struct range *r)
{
	return slot_space(s) == r->space &&
	       (r->all ||
		(slot_object(s) == r->object && slot_index(s) - r->first <= r->last - r->first));
}

static uint64_t all_slots(const struct pool *p)
{
	return pool_slots(p, atomic_load_explicit(&p->level, memory_order_acquire));
}

/* Pages that are going to be doomed, pinned: all of a batch cost one barrier. */
struct batch {
	uint32_t nr;
	int64_t named;
	struct pool_slot *slots[DOOM_BATCH];
};

static void doom_batch(struct pool *p, struct batch *b)
{
	b->named += pool_doom(p, b->slots, b->nr);
	b->nr = 0;
}

static void batch_add(struct pool *p, struct batch *b, struct pool_slot *s)
{
	b->slots[b->nr++] = s;
	if (b->nr == DOOM_BATCH)
		doom_batch(p, b);
}

/* Every slot whose name is in the range. */
static void doom_range(struct pool *p, struct batch *b, const struct range *r)
{
	for (uint64_t i = 0; i < all_slots(p); i++) {
		struct pool_slot *s = pool_slot(p, i);

		if (!in_range(s, r) || !pool_pin_slot(p, s))
			continue;
		if (in_range(s, r))
			batch_add(p, b, s);
		else
			pool_drop_pin(p, s);
	}
}

void pool_clear_space(struct foliage_pool *h)
{
	struct range r = {.space = h->space, .all = true};
	struct batch b = {.nr = 0};
	struct pool *p = h->core;

	if (!pool_thread(p))
		return;
	doom_range(p, &b, &r);
	doom_batch(p, &b);
}

int64_t foliage_pool_truncate(struct foliage_pool *h, uint64_t object, uint64_t first,
			      uint64_t last)
{
	struct range r = {.object = object, .first = first, .last = last, .space = h->space};
	struct batch b = {.nr = 0};
	struct pool *p = h->core;

	if (!pool_alive(p))
		return -ECHILD;
	if (!pool_thread(p))
		return -ENOMEM;
	if (last < first)
		return 0;
	if (last - first >= all_slots(p) / 16) {
		doom_range(p, &b, &r);
	} else {
		for (uint64_t i = first;; i++) {
			struct pool_ask ask = pool_name(h, object, i);
			struct pool_slot *s;

			if (pool_find(p, &ask, true, &s) == POOL_FOUND)
				batch_add(p, &b, s);
			if (i == last)
				break;
		}
	}
	doom_batch(p, &b);
	return b.named;
}

/* ---- rekey ---- */

static bool only_pin(uint64_t word, uint64_t state)
{
	return (word & (F_PRESENT | F_FROZEN | F_BARRED | F_PINS_MASK)) ==
	       (F_PRESENT | state | PIN_ONE);
}

/* Make the only pin exclusive. Nobody else may have pinned the page for itself: bar that, look, and
 * freeze if all is well. A name must not be frozen and come back, it might exist twice. */
static bool freeze(struct pool *p, struct pool_slot *s)
{
	uint64_t word = folio_flags(&s->folio);
	bool frozen = false;

	do {
		if (!only_pin(word, 0))
			return false;
	} while (!folio_cas_if(&s->folio, &word, word | F_BARRED, false));
	if (!pool_held(p, &s, 1)) {
		word = folio_flags(&s->folio);
		do {
			frozen = only_pin(word, F_BARRED);
		} while (frozen &&
			 !folio_cas_if(&s->folio, &word, (word | F_FROZEN) & ~F_BARRED, false));
	}
	pool_held_done(p);
	if (!frozen)
		folio_change(p->engine, &s->folio, F_BARRED, 0);
	return frozen;
}

/* The frozen, singly pinned `from` goes over to `to`, which has a pin already, with everything
 * that the engine knows of it. When reclaim holds on to it, it starts anew. */
static void move_folio(struct pool *p, struct pool_thread *t, struct pool_slot *from,
		       struct pool_slot *to)
{
	uint64_t flags = folio_flags(&from->folio);
	uint32_t order = (uint32_t)((flags & F_ORDER_MASK) >> F_ORDER_SHIFT), add = 0;
	unsigned int session = memcg_enter(p->engine);
	uint32_t memcg = folio_lruvec(p->engine, &from->folio)->memcg;
	int rc = -EBUSY;

	for (int i = 0; i < BUSY_TRIES && rc == -EBUSY; i++) {
		rc = foliage_folio_migrate(p->engine, &t->cpu, slot_id(p, from), slot_id(p, to));
		if (rc == -EBUSY && i)
			sched_yield();
		if (rc == -EBUSY)
			engine_drain_all(p->engine);
	}
	__atomic_store_n(&from->data, NULL, __ATOMIC_RELAXED); /* the frame is the other's */
	if (!rc) {
		folio_change(p->engine, &to->folio, F_FROZEN, 0);
		atomic_fetch_sub(&from->folio.flags, PIN_ONE);
		pool_release_slot(p, from);
		memcg_leave(p->engine, session);
		return;
	}
	if (flags & F_DIRTY)
		add |= FOLIAGE_FOLIO_DIRTY;
	if (flags & F_LOCKED)
		add |= FOLIAGE_FOLIO_LOCKED;
	pool_remove(p, from);
	pool_add_folio(p, t, slot_id(p, to), memcg, order, add, 0);
	memcg_leave(p->engine, session);
}

/* Under the shard lock of the new name. */
static int rekey_locked(struct pool *p, struct pool_thread *t, struct pool_slot *from,
			const struct pool_ask *ask, struct pool_slot **out)
{
	struct pool_slot *to = NULL;
	enum pool_found found = pool_find(p, ask, false, &to);

	if (found == POOL_FILLING || found == POOL_TOO_MANY_PINS)
		return -EBUSY;
	if (found == POOL_FOUND) {
		if (!freeze(p, to)) {
			pool_drop_pin(p, to);
			return -EBUSY;
		}
		pool_doom(p, &to, 1);
	}
	/* From here on nothing fails: a name that was frozen and came back might exist twice. */
	if (!freeze(p, from))
		return -EBUSY;
	atomic_fetch_add(&p->used, 1);
	to = pool_claim(p, ask);
	to->data = from->data;
	to->folio.handle = from->folio.handle;
	__atomic_store_n(&to->object, ask->object, __ATOMIC_RELAXED);
	__atomic_store_n(&to->index, ask->index, __ATOMIC_RELAXED);
	atomic_fetch_add(&to->folio.flags, PIN_ONE);
	pool_frames_set_owner(&p->frames, ask->kind, to->data, slot_id(p, to));
	move_folio(p, t, from, to);
	*out = to;
	return 0;
}

int foliage_pool_rekey(struct foliage_pool *h, struct foliage_page **page, uint64_t object,
		       uint64_t index)
{
	struct pool_ask ask = pool_name(h, object, index);
	struct pool_slot *from = page_slot(*page), *to;
	struct pool *p = h->core;
	struct pool_thread *t;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	pool_count_marks(p, t);
	pool_local_to_counted(t, from);
	if (from->object == object && from->index == index)
		return 0;
	if ((folio_flags(&from->folio) & (F_FROZEN | F_PINS_MASK)) != PIN_ONE)
		return -EBUSY;
	ask.kind = slot_kind(from);
	pthread_mutex_lock(pool_shard(p, ask.hash));
	rc = rekey_locked(p, t, from, &ask, &to);
	pthread_mutex_unlock(pool_shard(p, ask.hash));
	if (rc)
		return rc;
	pool_count(t, COUNT_REKEYED, 1);
	*page = slot_page(to);
	return 0;
}
