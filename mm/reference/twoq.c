/* SPDX-License-Identifier: MIT
 *
 * 2Q (Johnson and Shasha, VLDB 1994), the full version: new pages enter the FIFO `in`, where hits
 * count for nothing (they are correlated); what leaves it is remembered in `out`; a miss found
 * there enters the LRU `main`. `in` gives up a page whenever it holds more than its share, else
 * `main` does.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { TWOQ_IN = 1, TWOQ_MAIN, TWOQ_OUT };

struct twoq_knobs {
	double kin, kout;
};

struct twoq {
	struct ids ids;
	struct ids_list in, main, out;
	uint32_t in_pages, out_pages;
};

static const struct foliage_knob twoq_knobs[] = {
	{"kin", "queue of new pages, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct twoq_knobs, kin), 25, 0.1, 99, NULL},
	{"kout", "remembered pages, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct twoq_knobs, kout), 50, 0, 1000, NULL},
	{0},
};

static int twoq_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct twoq_knobs *k = knobs;
	struct twoq *q = ids_create(sizeof(*q), env);

	if (!q)
		return -ENOMEM;
	q->in = ids_list(TWOQ_IN);
	q->main = ids_list(TWOQ_MAIN);
	q->out = ids_list(TWOQ_OUT);
	q->in_pages = ids_share(env->room, k->kin);
	q->out_pages = (uint32_t)((double)env->room * k->kout / 100.0);
	*state = q;
	return 0;
}

static void twoq_remember(struct twoq *q, uint32_t id)
{
	if (!q->out_pages)
		return;
	if (q->out.nr == q->out_pages)
		ids_remove(q->ids.nodes, &q->out, q->out.tail);
	ids_push_head(q->ids.nodes, &q->out, id);
}

static void twoq_evict(struct twoq *q)
{
	if (q->in.nr > q->in_pages || !q->main.nr) {
		uint32_t id = q->in.tail;

		ids_evict(&q->ids, &q->in, id);
		twoq_remember(q, id);
	} else {
		ids_evict(&q->ids, &q->main, q->main.tail);
	}
}

static bool twoq_access(void *state, uint32_t id, uint64_t now)
{
	struct twoq *q = state;
	struct ids_node *nodes = q->ids.nodes;
	bool known = nodes[id].where == TWOQ_OUT;

	if (nodes[id].where == TWOQ_IN)
		return true;
	if (nodes[id].where == TWOQ_MAIN) {
		ids_to_head(nodes, &q->main, id);
		return true;
	}
	q->ids.now = now;
	if (known)
		ids_remove(nodes, &q->out, id);
	if (q->in.nr + q->main.nr == q->ids.env.room)
		twoq_evict(q);
	ids_push_head(nodes, known ? &q->main : &q->in, id);
	return false;
}

const struct foliage_policy foliage_policy_twoq = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "twoq",
	.summary = "2Q: a FIFO for new pages, an LRU for those that come back after leaving it",
	.knobs = twoq_knobs,
	.knobs_size = sizeof(struct twoq_knobs),
	.create = twoq_create,
	.destroy = ids_destroy,
	.access = twoq_access,
	.stats = ids_stats,
};
