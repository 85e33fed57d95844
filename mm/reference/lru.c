/* SPDX-License-Identifier: MIT
 *
 * LRU: the page whose last access is longest ago leaves.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct lru {
	struct ids ids;
	struct ids_list stack;
};

static int lru_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct lru *l = ids_create(sizeof(*l), env);

	(void)knobs;
	if (!l)
		return -ENOMEM;
	l->stack = ids_list(1);
	*state = l;
	return 0;
}

static bool lru_access(void *state, uint32_t id, uint64_t now)
{
	struct lru *l = state;

	if (l->ids.nodes[id].where) {
		ids_to_head(l->ids.nodes, &l->stack, id);
		return true;
	}
	l->ids.now = now;
	if (l->stack.nr == l->ids.env.room)
		ids_evict(&l->ids, &l->stack, l->stack.tail);
	ids_push_head(l->ids.nodes, &l->stack, id);
	return false;
}

const struct foliage_policy foliage_policy_lru = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "lru",
	.summary = "least recently used, exact",
	.create = lru_create,
	.destroy = ids_destroy,
	.access = lru_access,
	.stats = ids_stats,
};
