/* SPDX-License-Identifier: MIT
 *
 * QD-LP-FIFO (Yang and others, HotOS 2023): quick demotion, lazy promotion. New pages enter a
 * probationary FIFO; a page that leaves it after at least `move` hits goes to the main CLOCK,
 * others are evicted and remembered in a ghost FIFO. A miss found there enters the main CLOCK at
 * once. A full main CLOCK gives up one of its own for each page that enters it; while it is not
 * full, probation may hold more than its share, so that the room is used.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { QDLP_SMALL = 1, QDLP_MAIN, QDLP_GHOST };

struct qdlp_knobs {
	double small, ghost;
	uint32_t move, bits;
};

struct qdlp {
	struct ids ids;
	struct ids_list small, main, ghost;
	uint32_t main_pages, ghost_pages, move;
	uint16_t max;
};

static const struct foliage_knob qdlp_knobs[] = {
	{"small", "probationary queue, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct qdlp_knobs, small), 10, 0.1, 90, NULL},
	{"ghost", "ghost queue, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct qdlp_knobs, ghost), 90, 0, 1000, NULL},
	{"move", "hits in probation that lead to the main queue", FOLIAGE_KNOB_UINT,
	 offsetof(struct qdlp_knobs, move), 1, 1, 255, NULL},
	{"bits", "bits of the main CLOCK's counter", FOLIAGE_KNOB_UINT,
	 offsetof(struct qdlp_knobs, bits), 2, 1, 8, NULL},
	{0},
};

static int qdlp_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct qdlp_knobs *k = knobs;
	struct qdlp *q = ids_create(sizeof(*q), env);

	if (!q)
		return -ENOMEM;
	q->small = ids_list(QDLP_SMALL);
	q->main = ids_list(QDLP_MAIN);
	q->ghost = ids_list(QDLP_GHOST);
	q->main_pages = env->room - ids_share(env->room, k->small);
	q->ghost_pages = (uint32_t)((double)env->room * k->ghost / 100.0);
	q->move = k->move;
	q->max = (uint16_t)((1u << k->bits) - 1);
	*state = q;
	return 0;
}

static void qdlp_remember(struct qdlp *q, uint32_t id)
{
	if (!q->ghost_pages)
		return;
	if (q->ghost.nr == q->ghost_pages)
		ids_remove(q->ids.nodes, &q->ghost, q->ghost.tail);
	ids_push_head(q->ids.nodes, &q->ghost, id);
}

static void qdlp_evict_main(struct qdlp *q)
{
	struct ids_node *nodes = q->ids.nodes;
	uint32_t id;

	while (nodes[id = q->main.tail].refs) {
		nodes[id].refs--;
		ids_spared(&q->ids, id, QDLP_MAIN, FOLIAGE_WHY_SECOND_CHANCE);
		ids_to_head(nodes, &q->main, id);
	}
	ids_evict(&q->ids, &q->main, id);
}

static void qdlp_to_main(struct qdlp *q, uint32_t id)
{
	if (q->main.nr == q->main_pages)
		qdlp_evict_main(q);
	q->ids.nodes[id].refs = 0;
	ids_push_head(q->ids.nodes, &q->main, id);
}

/* One step: the oldest newcomer leaves, or moves to the main queue, which gives up a page for it if
 * full. */
static void qdlp_evict(struct qdlp *q)
{
	struct ids_node *nodes = q->ids.nodes;
	uint32_t id = q->small.tail;

	if (!q->small.nr) {
		qdlp_evict_main(q);
	} else if (nodes[id].refs >= q->move) {
		ids_remove(nodes, &q->small, id);
		qdlp_to_main(q, id);
		ids_promoted(&q->ids, id, QDLP_SMALL, QDLP_MAIN);
	} else {
		ids_evict(&q->ids, &q->small, id);
		qdlp_remember(q, id);
	}
}

static bool qdlp_access(void *state, uint32_t id, uint64_t now)
{
	struct qdlp *q = state;
	struct ids_node *node = &q->ids.nodes[id];
	bool known = node->where == QDLP_GHOST;

	if (node->where && !known) {
		if (node->refs < q->max)
			node->refs++;
		return true;
	}
	q->ids.now = now;
	if (known)
		ids_remove(q->ids.nodes, &q->ghost, id);
	while (q->small.nr + q->main.nr == q->ids.env.room)
		qdlp_evict(q);
	if (known) {
		qdlp_to_main(q, id);
	} else {
		node->refs = 0;
		ids_push_head(q->ids.nodes, &q->small, id);
	}
	return false;
}

const struct foliage_policy foliage_policy_qdlp = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "qdlp",
	.summary =
		"quick demotion, lazy promotion: a probationary FIFO before a CLOCK, and a ghost",
	.knobs = qdlp_knobs,
	.knobs_size = sizeof(struct qdlp_knobs),
	.create = qdlp_create,
	.destroy = ids_destroy,
	.access = qdlp_access,
	.stats = ids_stats,
};
