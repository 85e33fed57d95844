/* SPDX-License-Identifier: MIT
 *
 * FIFO: the page that came first leaves first; a hit changes nothing.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

struct fifo {
	struct ids ids;
	struct ids_list queue;
};

static int fifo_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct fifo *f = ids_create(sizeof(*f), env);

	(void)knobs;
	if (!f)
		return -ENOMEM;
	f->queue = ids_list(1);
	*state = f;
	return 0;
}

static bool fifo_access(void *state, uint32_t id, uint64_t now)
{
	struct fifo *f = state;

	if (f->ids.nodes[id].where)
		return true;
	f->ids.now = now;
	if (f->queue.nr == f->ids.env.room)
		ids_evict(&f->ids, &f->queue, f->queue.tail);
	ids_push_head(f->ids.nodes, &f->queue, id);
	return false;
}

const struct foliage_policy foliage_policy_fifo = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "fifo",
	.summary = "first in, first out",
	.create = fifo_create,
	.destroy = ids_destroy,
	.access = fifo_access,
	.stats = ids_stats,
};
