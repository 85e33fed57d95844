/* SPDX-License-Identifier: MIT
 *
 * CLOCK (Corbato 1968), as FIFO with reinsertion: a hit raises a page's counter (up to 2^bits - 1);
 * a page that reaches the tail with a counter above zero pays one and goes round again, else it
 * leaves.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct clock_knobs {
	uint32_t bits;
};

struct clock {
	struct ids ids;
	struct ids_list queue;
	uint16_t max;
};

static const struct foliage_knob clock_knobs[] = {
	{"bits", "bits of the reference counter", FOLIAGE_KNOB_UINT,
	 offsetof(struct clock_knobs, bits), 1, 1, 8, NULL},
	{0},
};

static int clock_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct clock_knobs *k = knobs;
	struct clock *c = ids_create(sizeof(*c), env);

	if (!c)
		return -ENOMEM;
	c->queue = ids_list(1);
	c->max = (uint16_t)((1u << k->bits) - 1);
	*state = c;
	return 0;
}

static void clock_evict(struct clock *c)
{
	struct ids_node *nodes = c->ids.nodes;
	uint32_t id;

	while (nodes[id = c->queue.tail].refs) {
		nodes[id].refs--;
		ids_spared(&c->ids, id, c->queue.tag, FOLIAGE_WHY_SECOND_CHANCE);
		ids_to_head(nodes, &c->queue, id);
	}
	ids_evict(&c->ids, &c->queue, id);
}

static bool clock_access(void *state, uint32_t id, uint64_t now)
{
	struct clock *c = state;
	struct ids_node *node = &c->ids.nodes[id];

	if (node->where) {
		if (node->refs < c->max)
			node->refs++;
		return true;
	}
	c->ids.now = now;
	if (c->queue.nr == c->ids.env.room)
		clock_evict(c);
	ids_push_head(c->ids.nodes, &c->queue, id);
	return false;
}

const struct foliage_policy foliage_policy_clock = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "clock",
	.summary = "second chance: FIFO, but a page hit since its last turn goes round again",
	.knobs = clock_knobs,
	.knobs_size = sizeof(struct clock_knobs),
	.create = clock_create,
	.destroy = ids_destroy,
	.access = clock_access,
	.stats = ids_stats,
};
