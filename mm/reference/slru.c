/* SPDX-License-Identifier: MIT
 *
 * Segmented LRU (Karedla, Love and Wherry 1994, here with any number of segments): equal LRU
 * segments in a row. A hit moves a page to the head of the next higher segment; a segment that
 * thereby overflows hands its tail to the head of the one below. The lowest segment's tail leaves.
 * While there is space, a new page enters the lowest segment that has any; in a full room always
 * the lowest one.
 *
 * The room is divided evenly and rounded down. Into what is left over the lowest segment grows on a
 * miss, and a page demoted to it takes it back to its even share.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { SLRU_MAX_SEGMENTS = 8 };

struct slru_knobs {
	uint32_t segments;
};

struct slru {
	struct ids ids;
	struct ids_list segments[SLRU_MAX_SEGMENTS]; /* tags 1, 2, ... */
	uint32_t nr, pages;                          /* how many, and the even share of each */
	uint32_t total;                              /* pages in the room */
};

static const struct foliage_knob slru_knobs[] = {
	{"segments", "number of LRU segments", FOLIAGE_KNOB_UINT,
	 offsetof(struct slru_knobs, segments), 4, 1, SLRU_MAX_SEGMENTS, NULL},
	{0},
};

static int slru_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct slru_knobs *k = knobs;
	struct slru *s = ids_create(sizeof(*s), env);

	if (!s)
		return -ENOMEM;
	s->nr = k->segments;
	s->pages = env->room / s->nr;
	for (uint32_t i = 0; i < s->nr; i++)
		s->segments[i] = ids_list((uint8_t)(i + 1));
	*state = s;
	return 0;
}

static void slru_evict(struct slru *s)
{
	uint32_t i = 0;

	while (!s->segments[i].nr)
		i++;
	ids_evict(&s->ids, &s->segments[i], s->segments[i].tail);
	s->total--;
}

static void slru_hit(struct slru *s, uint32_t id, uint32_t segment)
{
	struct ids_node *nodes = s->ids.nodes;

	if (segment == s->nr - 1) {
		ids_to_head(nodes, &s->segments[segment], id);
		return;
	}
	ids_remove(nodes, &s->segments[segment], id);
	ids_push_head(nodes, &s->segments[segment + 1], id);
	ids_promoted(&s->ids, id, (uint8_t)(segment + 1), (uint8_t)(segment + 2));
	if (s->segments[segment + 1].nr > s->pages) {
		uint32_t tail = s->segments[segment + 1].tail;

		ids_remove(nodes, &s->segments[segment + 1], tail);
		ids_push_head(nodes, &s->segments[segment], tail);
		while (s->segments[segment].nr > s->pages)
			slru_evict(s);
	}
}

static bool slru_access(void *state, uint32_t id, uint64_t now)
{
	struct slru *s = state;
	struct ids_node *nodes = s->ids.nodes;
	uint32_t i;

	s->ids.now = now;
	if (nodes[id].where) {
		slru_hit(s, id, nodes[id].where - 1u);
		return true;
	}
	if (s->total == s->ids.env.room)
		slru_evict(s);
	for (i = 0; i < s->nr && s->segments[i].nr >= s->pages; i++)
		;
	if (i == s->nr)
		i = 0;
	s->total++;
	ids_push_head(nodes, &s->segments[i], id);
	return false;
}

const struct foliage_policy foliage_policy_slru = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "slru",
	.summary = "segmented LRU: a hit moves a page one segment up",
	.knobs = slru_knobs,
	.knobs_size = sizeof(struct slru_knobs),
	.create = slru_create,
	.destroy = ids_destroy,
	.access = slru_access,
	.stats = ids_stats,
};
