/* SPDX-License-Identifier: MIT
 *
 * ARC (Megiddo and Modha, FAST 2003): T1 holds pages seen once lately, T2 pages seen at least
 * twice, B1 and B2 remember what each of them lost. A miss found in B1 says that T1 should be
 * larger, one found in B2 that T2 should; `p` is the size that T1 is steered to. T1 + B1 hold at
 * most the room, all four at most twice.
 */
#include <errno.h>

#include "base/bits.h"
#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { ARC_T1 = 1, ARC_T2, ARC_B1, ARC_B2 };

struct arc {
	struct ids ids;
	struct ids_list t1, t2, b1, b2;
	double p;
};

static int arc_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct arc *a = ids_create(sizeof(*a), env);

	(void)knobs;
	if (!a)
		return -ENOMEM;
	a->t1 = ids_list(ARC_T1);
	a->t2 = ids_list(ARC_T2);
	a->b1 = ids_list(ARC_B1);
	a->b2 = ids_list(ARC_B2);
	*state = a;
	return 0;
}

/* The paper's REPLACE: one page leaves T1 or T2 and is remembered. */
static void arc_replace(struct arc *a, bool in_b2)
{
	struct ids_node *nodes = a->ids.nodes;
	uint32_t id;

	if (a->t1.nr && ((double)a->t1.nr > a->p || (in_b2 && (double)a->t1.nr >= a->p))) {
		id = a->t1.tail;
		ids_evict(&a->ids, &a->t1, id);
		ids_push_head(nodes, &a->b1, id);
	} else {
		id = a->t2.tail;
		ids_evict(&a->ids, &a->t2, id);
		ids_push_head(nodes, &a->b2, id);
	}
}

/* Cases II and III: a ghost comes back, as a page of T2. */
static void arc_ghost(struct arc *a, uint32_t id)
{
	bool in_b2 = a->ids.nodes[id].where == ARC_B2;
	double room = a->ids.env.room, b1 = a->b1.nr, b2 = a->b2.nr;

	if (in_b2)
		a->p = MAX(a->p - MAX(b1 / b2, 1.0), 0.0);
	else
		a->p = MIN(a->p + MAX(b2 / b1, 1.0), room);
	arc_replace(a, in_b2);
	ids_remove(a->ids.nodes, in_b2 ? &a->b2 : &a->b1, id);
	ids_push_head(a->ids.nodes, &a->t2, id);
}

/* Case IV: a page that nobody remembers. */
static void arc_new(struct arc *a, uint32_t id)
{
	uint64_t room = a->ids.env.room, l1 = (uint64_t)a->t1.nr + a->b1.nr;
	uint64_t l2 = (uint64_t)a->t2.nr + a->b2.nr;

	if (l1 == room) {
		if (a->t1.nr < room) {
			ids_remove(a->ids.nodes, &a->b1, a->b1.tail);
			arc_replace(a, false);
		} else {
			ids_evict(&a->ids, &a->t1, a->t1.tail);
		}
	} else if (l1 + l2 >= room) {
		if (l1 + l2 == 2 * room)
			ids_remove(a->ids.nodes, &a->b2, a->b2.tail);
		arc_replace(a, false);
	}
	ids_push_head(a->ids.nodes, &a->t1, id);
}

static bool arc_access(void *state, uint32_t id, uint64_t now)
{
	struct arc *a = state;

	a->ids.now = now;
	switch (a->ids.nodes[id].where) {
	case ARC_T1:
		ids_remove(a->ids.nodes, &a->t1, id);
		ids_push_head(a->ids.nodes, &a->t2, id);
		ids_promoted(&a->ids, id, ARC_T1, ARC_T2);
		return true;
	case ARC_T2:
		ids_to_head(a->ids.nodes, &a->t2, id);
		return true;
	case ARC_B1:
	case ARC_B2:
		arc_ghost(a, id);
		return false;
	default:
		arc_new(a, id);
		return false;
	}
}

const struct foliage_policy foliage_policy_arc = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "arc",
	.summary = "adaptive replacement: recency and frequency lists, balanced by their ghosts",
	.create = arc_create,
	.destroy = ids_destroy,
	.access = arc_access,
	.stats = ids_stats,
};
