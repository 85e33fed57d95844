/* SPDX-License-Identifier: MIT
 *
 * LFU, in-cache: the page with the fewest accesses since it came in leaves; among equals the one
 * that got there first. An evicted page's count is forgotten. Constant time: pages of equal count
 * form a bucket, buckets are linked in order of count, and a hit moves a page to the next bucket,
 * made on demand.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/mem.h"
#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct lfu_bucket {
	struct ids_list pages;
	uint32_t count;
	uint32_t lower, higher; /* neighbours; `higher` also links free buckets */
};

struct lfu {
	struct ids ids;
	struct lfu_bucket
		*buckets;    /* one more than residents: one is made before another empties */
	uint32_t *bucket_of; /* by id */
	uint32_t lowest, free, nr;
};

static size_t lfu_buckets_bytes(const struct lfu *l)
{
	return ((size_t)MIN(l->ids.env.room, l->ids.env.nr_ids) + 1) * sizeof(*l->buckets);
}

static size_t lfu_index_bytes(const struct lfu *l)
{
	return ((size_t)l->ids.env.nr_ids + 1) * sizeof(*l->bucket_of);
}

static void lfu_destroy(void *state)
{
	struct lfu *l = state;

	if (!l)
		return;
	mem_table_free(l->buckets, lfu_buckets_bytes(l));
	mem_table_free(l->bucket_of, lfu_index_bytes(l));
	ids_destroy(l);
}

static int lfu_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct lfu *l = ids_create(sizeof(*l), env);

	(void)knobs;
	if (!l)
		return -ENOMEM;
	l->buckets = mem_table(lfu_buckets_bytes(l));
	l->bucket_of = mem_table(lfu_index_bytes(l));
	if (!l->buckets || !l->bucket_of) {
		lfu_destroy(l);
		return -ENOMEM;
	}
	l->lowest = l->free = IDS_NONE;
	for (uint32_t i = 0; i <= MIN(env->room, env->nr_ids); i++) {
		l->buckets[i].higher = l->free;
		l->free = i;
	}
	*state = l;
	return 0;
}

/* A new bucket between `lower` (IDS_NONE: none) and `higher`. */
static uint32_t lfu_bucket_new(struct lfu *l, uint32_t count, uint32_t lower, uint32_t higher)
{
	uint32_t b = l->free;

	l->free = l->buckets[b].higher;
	l->buckets[b] = (struct lfu_bucket){
		.pages = ids_list(1), .count = count, .lower = lower, .higher = higher};
	if (lower != IDS_NONE)
		l->buckets[lower].higher = b;
	else
		l->lowest = b;
	if (higher != IDS_NONE)
		l->buckets[higher].lower = b;
	return b;
}

static void lfu_bucket_drop_if_empty(struct lfu *l, uint32_t b)
{
	struct lfu_bucket *bucket = &l->buckets[b];

	if (bucket->pages.nr)
		return;
	if (bucket->lower != IDS_NONE)
		l->buckets[bucket->lower].higher = bucket->higher;
	else
		l->lowest = bucket->higher;
	if (bucket->higher != IDS_NONE)
		l->buckets[bucket->higher].lower = bucket->lower;
	bucket->higher = l->free;
	l->free = b;
}

static void lfu_hit(struct lfu *l, uint32_t id)
{
	uint32_t b = l->bucket_of[id], next = l->buckets[b].higher, count = l->buckets[b].count;

	if (count == UINT32_MAX)
		return;
	if (next == IDS_NONE || l->buckets[next].count != count + 1)
		next = lfu_bucket_new(l, count + 1, b, next);
	ids_remove(l->ids.nodes, &l->buckets[b].pages, id);
	ids_push_head(l->ids.nodes, &l->buckets[next].pages, id);
	l->bucket_of[id] = next;
	lfu_bucket_drop_if_empty(l, b);
}

static bool lfu_access(void *state, uint32_t id, uint64_t now)
{
	struct lfu *l = state;
	uint32_t b;

	if (l->ids.nodes[id].where) {
		lfu_hit(l, id);
		return true;
	}
	l->ids.now = now;
	if (l->nr == l->ids.env.room) {
		b = l->lowest;
		ids_evict(&l->ids, &l->buckets[b].pages, l->buckets[b].pages.tail);
		lfu_bucket_drop_if_empty(l, b);
		l->nr--;
	}
	b = l->lowest;
	if (b == IDS_NONE || l->buckets[b].count != 1)
		b = lfu_bucket_new(l, 1, IDS_NONE, b);
	ids_push_head(l->ids.nodes, &l->buckets[b].pages, id);
	l->bucket_of[id] = b;
	l->nr++;
	return false;
}

const struct foliage_policy foliage_policy_lfu = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "lfu",
	.summary = "least frequently used since it came in; ties by age",
	.create = lfu_create,
	.destroy = lfu_destroy,
	.access = lfu_access,
	.stats = ids_stats,
};
