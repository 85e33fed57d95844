/* SPDX-License-Identifier: MIT
 *
 * SIEVE (Zhang and others, NSDI 2024): a FIFO and a hand. A hit sets the page's visited bit. The
 * hand walks from tail to head, clears visited bits and takes the first page without one; survivors
 * keep their place, so new pages near the head are sifted out while the hand works through the old
 * ones.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct sieve {
	struct ids ids;
	struct ids_list queue;
	uint32_t hand; /* where the last search stopped; IDS_NONE: start at the tail */
};

static int sieve_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct sieve *s = ids_create(sizeof(*s), env);

	(void)knobs;
	if (!s)
		return -ENOMEM;
	s->queue = ids_list(1);
	s->hand = IDS_NONE;
	*state = s;
	return 0;
}

static void sieve_evict(struct sieve *s)
{
	struct ids_node *nodes = s->ids.nodes;
	uint32_t id = s->hand;

	for (;; id = nodes[id].prev) {
		if (id == IDS_NONE)
			id = s->queue.tail;
		if (!nodes[id].bits)
			break;
		nodes[id].bits = 0;
		ids_spared(&s->ids, id, s->queue.tag, FOLIAGE_WHY_SECOND_CHANCE);
	}
	s->hand = nodes[id].prev;
	ids_evict(&s->ids, &s->queue, id);
}

static bool sieve_access(void *state, uint32_t id, uint64_t now)
{
	struct sieve *s = state;
	struct ids_node *node = &s->ids.nodes[id];

	if (node->where) {
		node->bits = 1;
		return true;
	}
	s->ids.now = now;
	if (s->queue.nr == s->ids.env.room)
		sieve_evict(s);
	ids_push_head(s->ids.nodes, &s->queue, id);
	return false;
}

const struct foliage_policy foliage_policy_sieve = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "sieve",
	.summary = "a FIFO with a hand that takes the first page not visited since it last passed",
	.create = sieve_create,
	.destroy = ids_destroy,
	.access = sieve_access,
	.stats = ids_stats,
};
