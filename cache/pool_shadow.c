/* SPDX-License-Identifier: MIT
 *
 * What the pool remembers of pages that left: their shadows, in buckets of one cache line, five to
 * a bucket, each under 32 bits of its name's hash, oldest first. A full bucket forgets the first,
 * which is also the first that a refault would no longer count as recent. So memory is fixed, and
 * there is room for the evictions of the last few generations.
 *
 * A bucket has a lock of one word; evictions and insertions take it for a few instructions.
 */
#include "cache/pool.h"

#include <sched.h>

#include "base/mem.h"

enum { BUCKET_ENTRIES = 5 };

struct shadow_bucket {
	_Atomic uint32_t locked;
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

	while (atomic_exchange_explicit(&b->locked, 1, memory_order_acquire))
		sched_yield();
	return b;
}

static void bucket_unlock(struct shadow_bucket *b)
{
	atomic_store_explicit(&b->locked, 0, memory_order_release);
}

void pool_shadows_put(struct pool_shadows *s, uint64_t hash, uint64_t shadow)
{
	struct shadow_bucket *b = bucket_lock(s, hash);
	int i = 0;

	/* The first that is free, or else the oldest, makes way; younger ones move up. */
	while (i < BUCKET_ENTRIES && b->shadow[i])
		i++;
	for (i %= BUCKET_ENTRIES; i + 1 < BUCKET_ENTRIES; i++) {
		b->name[i] = b->name[i + 1];
		b->shadow[i] = b->shadow[i + 1];
	}
	b->name[i] = pool_hash_low(hash);
	b->shadow[i] = shadow;
	bucket_unlock(b);
}

uint64_t pool_shadows_take(struct pool_shadows *s, uint64_t hash)
{
	struct shadow_bucket *b = bucket_lock(s, hash);
	uint64_t shadow = 0;

	for (int i = 0; i < BUCKET_ENTRIES; i++)
		if (b->shadow[i] && b->name[i] == pool_hash_low(hash)) {
			shadow = b->shadow[i];
			b->shadow[i] = 0;
		}
	bucket_unlock(b);
	return shadow;
}
