/* SPDX-License-Identifier: MIT
 *
 * What the pool remembers of pages that left: their shadows, in buckets of one cache line, five to
 * a bucket, each under 32 bits of its name's hash. A full bucket forgets the one that came first,
 * which is also the first that a refault would no longer count as recent. So memory is fixed, and
 * there is room for the evictions of the last few generations.
 *
 * A bucket has a lock of one bit; evictions and insertions take it for a few instructions.
 */
#include "cache/pool.h"

#include <sched.h>

#include "base/mem.h"

enum { BUCKET_ENTRIES = 5 };
#define BUCKET_LOCKED (UINT32_C(1) << 31)

struct shadow_bucket {
	_Atomic uint32_t head; /* the lock, and which entry is replaced next */
	uint32_t name[BUCKET_ENTRIES];
	uint64_t shadow[BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct shadow_bucket) == POOL_LINE, "a cache line");

int pool_shadows_init(struct pool_shadows *s, uint64_t entries)
{
	uint64_t nr = entries / BUCKET_ENTRIES + 1;

	s->nr = (uint32_t)MIN(nr, (uint64_t)UINT32_MAX);
	s->bytes = (size_t)s->nr * sizeof(struct shadow_bucket);
	s->buckets = mem_table(s->bytes);
	return s->buckets ? 0 : -ENOMEM;
}

void pool_shadows_fini(struct pool_shadows *s)
{
	mem_table_free(s->buckets, s->bytes);
}

static struct shadow_bucket *bucket_lock(struct pool_shadows *s, uint64_t hash)
{
	struct shadow_bucket *b = &s->buckets[(hash >> 32) * s->nr >> 32];

	while (atomic_fetch_or_explicit(&b->head, BUCKET_LOCKED, memory_order_acquire) &
	       BUCKET_LOCKED)
		sched_yield();
	return b;
}

static void bucket_unlock(struct shadow_bucket *b, uint32_t hand)
{
	atomic_store_explicit(&b->head, hand, memory_order_release);
}

static uint32_t bucket_hand(struct shadow_bucket *b)
{
	return atomic_load_explicit(&b->head, memory_order_relaxed) & ~BUCKET_LOCKED;
}

void pool_shadows_put(struct pool_shadows *s, uint64_t hash, uint64_t shadow)
{
	struct shadow_bucket *b = bucket_lock(s, hash);
	uint32_t hand = bucket_hand(b);

	b->name[hand] = (uint32_t)hash;
	b->shadow[hand] = shadow;
	bucket_unlock(b, (hand + 1) % BUCKET_ENTRIES);
}

uint64_t pool_shadows_take(struct pool_shadows *s, uint64_t hash)
{
	struct shadow_bucket *b = bucket_lock(s, hash);
	uint64_t shadow = 0;

	for (int i = 0; i < BUCKET_ENTRIES; i++)
		if (b->shadow[i] && b->name[i] == (uint32_t)hash) {
			shadow = b->shadow[i];
			b->shadow[i] = 0;
		}
	bucket_unlock(b, bucket_hand(b));
	return shadow;
}
