/* SPDX-License-Identifier: MIT
 *
 * LIRS (Jiang and Zhang, SIGMETRICS 2002). Pages of low inter-reference recency (LIR) fill all but
 * `hir` percent of the room and are never victims; the others (HIR) pass through the queue Q, whose
 * front leaves. The stack S orders pages by recency down to the last LIR page and remembers HIR
 * pages that have left the room: a HIR page accessed while in S has a shorter recency than that
 * last LIR page and swaps roles with it.
 *
 * The paper leaves S unlimited; here the pages that it remembers are at most `ghosts` percent of
 * the room, and the one that left the room first is forgotten for the next.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/mem.h"
#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { LIRS_OUT, LIRS_LIR, LIRS_HIR }; /* `bits`: not in the room, or its role there */
enum { LIRS_STACK = 1, LIRS_QUEUE, LIRS_GHOSTS };

struct lirs_knobs {
	double hir, ghosts;
};

struct lirs {
	struct ids ids;         /* its nodes are the links of S */
	struct ids_node *other; /* links of Q, or of the ghosts: a page is never on both */
	struct ids_list stack, queue, ghosts; /* newest at the head */
	uint32_t nr_lir, lir_pages, ghost_pages;
};

static const struct foliage_knob lirs_knobs[] = {
	{"hir", "pages for newcomers (HIR), % of the room, at least one", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct lirs_knobs, hir), 1, 0, 90, NULL},
	{"ghosts", "pages remembered after they left, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct lirs_knobs, ghosts), 100, 0, 100000, NULL},
	{0},
};

static size_t lirs_nodes_bytes(const struct lirs *l)
{
	return ((size_t)l->ids.env.nr_ids + 1) * sizeof(*l->other);
}

static void lirs_destroy(void *state)
{
	struct lirs *l = state;

	if (!l)
		return;
	mem_table_free(l->other, lirs_nodes_bytes(l));
	ids_destroy(l);
}

static int lirs_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct lirs_knobs *k = knobs;
	struct lirs *l = ids_create(sizeof(*l), env);

	if (!l)
		return -ENOMEM;
	l->other = mem_table(lirs_nodes_bytes(l));
	if (!l->other) {
		lirs_destroy(l);
		return -ENOMEM;
	}
	l->stack = ids_list(LIRS_STACK);
	l->queue = ids_list(LIRS_QUEUE);
	l->ghosts = ids_list(LIRS_GHOSTS);
	l->ghost_pages = (uint32_t)MIN((double)env->room * k->ghosts / 100.0, (double)UINT32_MAX);
	l->lir_pages = env->room - ids_share(env->room, k->hir);
	*state = l;
	return 0;
}

/* S forgets a page. */
static void lirs_forget(struct lirs *l, uint32_t id)
{
	if (l->other[id].where == LIRS_GHOSTS)
		ids_remove(l->other, &l->ghosts, id);
	ids_remove(l->ids.nodes, &l->stack, id);
}

/* The bottom of S is a LIR page again: what lies below the last one is forgotten. */
static void lirs_prune(struct lirs *l)
{
	while (l->stack.nr && l->ids.nodes[l->stack.tail].bits != LIRS_LIR)
		lirs_forget(l, l->stack.tail);
}

static void lirs_evict(struct lirs *l)
{
	uint32_t victim = l->queue.tail;

	ids_remove(l->other, &l->queue, victim);
	l->ids.nodes[victim].bits = LIRS_OUT;
	ids_evicted(&l->ids, victim, LIRS_QUEUE);
	if (!l->ids.nodes[victim].where)
		return;
	ids_push_head(l->other, &l->ghosts, victim);
	if (l->ghosts.nr > l->ghost_pages)
		lirs_forget(l, l->ghosts.tail);
}

static void lirs_stack_top(struct lirs *l, uint32_t id)
{
	if (l->ids.nodes[id].where)
		ids_to_head(l->ids.nodes, &l->stack, id);
	else
		ids_push_head(l->ids.nodes, &l->stack, id);
}

/* `id`, on top of S, becomes LIR; when that is one too many, the LIR page at the bottom becomes
 * HIR. */
static void lirs_promote(struct lirs *l, uint32_t id)
{
	l->ids.nodes[id].bits = LIRS_LIR;
	l->nr_lir++;
	if (l->nr_lir > l->lir_pages) {
		uint32_t bottom = l->stack.tail;

		ids_remove(l->ids.nodes, &l->stack, bottom);
		l->ids.nodes[bottom].bits = LIRS_HIR;
		ids_push_head(l->other, &l->queue, bottom);
		l->nr_lir--;
		ids_promoted(&l->ids, id, LIRS_QUEUE, LIRS_STACK);
	}
	lirs_prune(l);
}

static void lirs_hit(struct lirs *l, uint32_t id)
{
	bool in_stack = l->ids.nodes[id].where;

	lirs_stack_top(l, id);
	if (l->ids.nodes[id].bits == LIRS_LIR) {
		lirs_prune(l);
	} else if (in_stack) {
		ids_remove(l->other, &l->queue, id);
		lirs_promote(l, id);
	} else {
		ids_to_head(l->other, &l->queue, id);
	}
}

static bool lirs_access(void *state, uint32_t id, uint64_t now)
{
	struct lirs *l = state;
	struct ids_node *node = &l->ids.nodes[id];
	bool remembered = node->where;

	l->ids.now = now;
	if (node->bits != LIRS_OUT) {
		lirs_hit(l, id);
		return true;
	}
	if (remembered)
		ids_remove(l->other, &l->ghosts, id);
	if (l->nr_lir + l->queue.nr == l->ids.env.room)
		lirs_evict(l);
	lirs_stack_top(l, id);
	if (l->nr_lir < l->lir_pages || remembered) {
		lirs_promote(l, id);
	} else {
		node->bits = LIRS_HIR;
		ids_push_head(l->other, &l->queue, id);
	}
	return false;
}

const struct foliage_policy foliage_policy_lirs = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "lirs",
	.summary =
		"low inter-reference recency set: keeps pages whose last two accesses were close",
	.knobs = lirs_knobs,
	.knobs_size = sizeof(struct lirs_knobs),
	.create = lirs_create,
	.destroy = lirs_destroy,
	.access = lirs_access,
	.stats = ids_stats,
};
