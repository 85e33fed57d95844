/* SPDX-License-Identifier: MIT
 *
 * Belady's MIN: the page whose next access is furthest away leaves. Optimal for a cache that must
 * take every missed page in, which is what a page cache does. A max-heap over the residents is
 * keyed by the next access; a hit only ever moves that later, a miss replaces the top. The heap's
 * slots are the links of struct ids put to another use: `prev` of a resident is its place in the
 * heap.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/mem.h"
#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct belady_entry {
	uint64_t next;
	uint32_t id;
};

struct belady {
	struct ids ids;
	struct belady_entry *heap;
	uint32_t nr;
};

static size_t belady_heap_bytes(const struct belady *b)
{
	return ((size_t)MIN(b->ids.env.room, b->ids.env.nr_ids) + 1) * sizeof(*b->heap);
}

static void belady_destroy(void *state)
{
	struct belady *b = state;

	if (!b)
		return;
	mem_table_free(b->heap, belady_heap_bytes(b));
	ids_destroy(b);
}

static int belady_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct belady *b;

	(void)knobs;
	if (!env->next)
		return -EINVAL;
	b = ids_create(sizeof(*b), env);
	if (!b)
		return -ENOMEM;
	b->heap = mem_table(belady_heap_bytes(b));
	if (!b->heap) {
		belady_destroy(b);
		return -ENOMEM;
	}
	*state = b;
	return 0;
}

static void belady_put(struct belady *b, uint32_t place, struct belady_entry entry)
{
	b->heap[place] = entry;
	b->ids.nodes[entry.id].prev = place;
}

static void belady_up(struct belady *b, uint32_t place, struct belady_entry entry)
{
	while (place && b->heap[(place - 1) / 2].next < entry.next) {
		belady_put(b, place, b->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	belady_put(b, place, entry);
}

static void belady_down(struct belady *b, uint32_t place, struct belady_entry entry)
{
	for (;;) {
		uint64_t child = 2 * (uint64_t)place + 1;

		if (child >= b->nr)
			break;
		if (child + 1 < b->nr && b->heap[child + 1].next > b->heap[child].next)
			child++;
		if (b->heap[child].next <= entry.next)
			break;
		belady_put(b, place, b->heap[child]);
		place = (uint32_t)child;
	}
	belady_put(b, place, entry);
}

static bool belady_access(void *state, uint32_t id, uint64_t now)
{
	struct belady *b = state;
	struct belady_entry entry = {.next = b->ids.env.next[now], .id = id};
	uint32_t victim;

	if (b->ids.nodes[id].where) {
		belady_up(b, b->ids.nodes[id].prev, entry);
		return true;
	}
	b->ids.now = now;
	b->ids.nodes[id].where = 1;
	if (b->nr < b->ids.env.room) {
		belady_up(b, b->nr++, entry);
		return false;
	}
	victim = b->heap[0].id;
	b->ids.nodes[victim].where = 0;
	ids_evicted(&b->ids, victim, 1);
	belady_down(b, 0, entry);
	return false;
}

const struct foliage_policy foliage_policy_belady = {
	.abi = FOLIAGE_POLICY_ABI,
	.flags = FOLIAGE_POLICY_OFFLINE,
	.name = "belady",
	.summary = "offline optimum: evicts what is used furthest in the future",
	.create = belady_create,
	.destroy = belady_destroy,
	.access = belady_access,
	.stats = ids_stats,
};
