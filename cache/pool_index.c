/* SPDX-License-Identifier: MIT
 *
 * Finding a page by name: open addressing in the table of folios, without a lock.
 *
 * Entries cannot move, because a slot's number is its folio's, and cannot be shifted under readers.
 * So each slot counts the names that were placed further along because it was taken: `passed`. A
 * search ends at the first slot that nobody has passed. Whoever places a name counts itself on the
 * way, before the name appears; whoever takes one away counts it out after it is gone: no search
 * for a name that is there can end early.
 *
 * A search goes from pair to pair of slots: both of a pair, which the processor fetches together,
 * then the pair a stride further, which depends on the name (with a stride of one, chains would
 * grow together and never part, since nothing is moved). The number of pairs is a prime times a
 * power of two, the stride odd and below the prime: every slot is reached.
 *
 * The table may double (three times), for pages that turn out smaller than expected. Names that are
 * in stay where they are: a slot remembers the level at which its name was placed, and a search
 * tries the present level first, then the older ones.
 *
 * A search sees a name without holding anything, pins, and looks again: pinned, the name stands.
 */
#include "cache/pool.h"

static inline __attribute__((always_inline)) void
probe_next(const struct pool *p, struct pool_probe *probe, uint64_t hash)
{
	probe->at ^= 1;
	if (!probe->second) {
		probe->second = true;
		return;
	}
	probe->second = false;
	if (!probe->step)
		probe->step = 2 + 4 * ((uint64_t)pool_hash_low(hash) * (p->base / 4 - 1) >> 32);
	probe->at += probe->step;
	if (probe->at >= probe->slots)
		probe->at -= probe->slots;
}

/* Pin if the word allows: POOL_ABSENT when the folio is gone or going. */
static inline enum pool_found pin(struct pool_slot *s, bool filling)
{
	const uint64_t state = F_PRESENT | F_FROZEN | PIN_MANY | (filling ? 0 : F_LOCKED);
	uint64_t word = folio_flags(&s->folio);

	do {
		if (__builtin_expect((word & state) != F_PRESENT, 0)) {
			if ((word & (F_PRESENT | F_FROZEN)) != F_PRESENT)
				return POOL_ABSENT;
			return word & PIN_MANY ? POOL_TOO_MANY_PINS : POOL_FILLING;
		}
	} while (!folio_cas_if(&s->folio, &word, word + PIN_ONE, false));
	return POOL_FOUND;
}

static enum pool_found find_at(struct pool *p, const struct pool_ask *ask, uint32_t level,
			       bool filling, struct pool_slot **slot)
{
	struct pool_probe probe = pool_probe_start(p, ask->hash, level);

	for (uint64_t i = 0; i < probe.slots; i++) {
		struct pool_slot *s = pool_slot(p, probe.at);

		if (slot_named(s, ask)) {
			enum pool_found found = pin(s, filling);

			if (__builtin_expect(found == POOL_FOUND, 1)) {
				if (__builtin_expect(slot_named(s, ask), 1)) {
					*slot = s;
					return POOL_FOUND;
				}
				/* Between the look and the pin it became another's. */
				pool_drop_pin(p, s);
			} else if (found != POOL_ABSENT) {
				return found;
			}
		}
		if (!atomic_load_explicit(&s->passed, memory_order_acquire))
			return POOL_ABSENT;
		probe_next(p, &probe, ask->hash);
	}
	return POOL_ABSENT;
}

enum pool_found pool_find(struct pool *p, const struct pool_ask *ask, bool filling,
			  struct pool_slot **slot)
{
	uint32_t level = atomic_load_explicit(&p->level, memory_order_acquire);

	for (;; level--) {
		enum pool_found found = find_at(p, ask, level, filling, slot);

		if (found != POOL_ABSENT || !level)
			return found;
	}
}

bool pool_pin_slot(struct pool *p, struct pool_slot *s)
{
	uint64_t word = folio_flags(&s->folio);

	(void)p;
	do {
		if ((word & (F_PRESENT | F_FROZEN | PIN_MANY)) != F_PRESENT)
			return false;
	} while (!folio_cas_if(&s->folio, &word, word + PIN_ONE, false));
	return true;
}

uint64_t pool_limit(const struct pool *p)
{
	uint64_t slots = pool_slots(p, atomic_load_explicit(&p->level, memory_order_relaxed));

	return MIN(slots - slots / 5, p->max_pages);
}

struct pool_slot *pool_claim(struct pool *p, const struct pool_ask *ask)
{
	uint32_t level = atomic_load_explicit(&p->level, memory_order_acquire);
	struct pool_probe probe = pool_probe_start(p, ask->hash, level);
	uint32_t state = SLOT_USED | level << SLOT_LEVEL_SHIFT | ask->kind << SLOT_KIND_SHIFT |
			 ask->space << SLOT_SPACE_SHIFT;

	for (;;) {
		struct pool_slot *s = pool_slot(p, probe.at);
		uint32_t none = 0;

		if (atomic_compare_exchange_strong_explicit(
			    &s->state, &none, state, memory_order_acq_rel, memory_order_relaxed)) {
			atomic_fetch_add_explicit(&ask->in->users, 1, memory_order_relaxed);
			return s;
		}
		atomic_fetch_add_explicit(&s->passed, 1, memory_order_acq_rel);
		probe_next(p, &probe, ask->hash);
	}
}

static void say_dropped(struct foliage_pool *in, const struct foliage_page *page)
{
	if (!in->dropped)
		return;
	atomic_fetch_add(&in->calling, 1);
	if (!atomic_load(&in->closed))
		in->dropped(in->ctx, page);
	atomic_fetch_sub(&in->calling, 1);
}

void pool_release_slot(struct pool *p, struct pool_slot *s)
{
	uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
	uint64_t hash = slot_hash(s);
	struct pool_probe probe = pool_probe_start(p, hash, state >> SLOT_LEVEL_SHIFT & 3);
	struct foliage_pool *in = p->spaces[slot_space(s)];

	if (s->data) {
		say_dropped(in, slot_page(s));
		pool_frames_free(&p->frames, slot_kind(s), s->data);
	}
	for (struct pool_slot *on = pool_slot(p, probe.at); on != s; on = pool_slot(p, probe.at)) {
		atomic_fetch_sub_explicit(&on->passed, 1, memory_order_acq_rel);
		probe_next(p, &probe, hash);
	}
	atomic_store_explicit(&s->state, 0, memory_order_release);
	atomic_fetch_sub_explicit(&p->used, 1, memory_order_relaxed);
	pool_space_leave(in);
	pool_wake(p);
}

/* Frozen, it is never held again once it is not. */
static bool held_for_now(struct pool *p, struct pool_slot *s)
{
	bool held = pool_held(p, &s, 1);

	pool_held_done(p);
	return held;
}

/* Taken again, the folio is ours to remove, unless a thread holds it for itself: that one finds it
 * frozen when it lets go. It may do so while we have our pin, and leave the rest to us: look again
 * after ours is gone. */
static void remove_unheld(struct pool *p, struct pool_slot *s, uint64_t word)
{
	while ((word & (F_PRESENT | F_FROZEN | F_PINS_MASK)) == (F_PRESENT | F_FROZEN)) {
		if (!folio_cas_if(&s->folio, &word, word + PIN_ONE, false))
			continue;
		if (!held_for_now(p, s)) {
			pool_remove(p, s);
			return;
		}
		atomic_fetch_sub_explicit(&s->folio.flags, PIN_ONE, memory_order_seq_cst);
		if (held_for_now(p, s))
			return;
		word = folio_flags(&s->folio);
	}
}

void pool_last_pin(struct pool *p, struct pool_slot *s, uint64_t word)
{
	remove_unheld(p, s, word);
	pool_wake(p);
}
