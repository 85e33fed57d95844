/* SPDX-License-Identifier: MIT
 *
 * S3-FIFO (Yang and others, SOSP 2023): three FIFOs. New pages enter `small`; one that leaves it
 * with at least `move` hits goes to `main`, others are evicted and remembered in `ghost`. A miss
 * found in `ghost` enters `main` at once. `main` reinserts a page with hits left, one hit less each
 * round. Most pages are seen once and so spend a tenth of the room only.
 */
#include <errno.h>

#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { S3FIFO_SMALL = 1, S3FIFO_MAIN, S3FIFO_GHOST, S3FIFO_MAX_REFS = 3 };

struct s3fifo_knobs {
	double small, ghost;
	uint32_t move;
};

struct s3fifo {
	struct ids ids;
	struct ids_list small, main, ghost;
	uint32_t main_pages, ghost_pages, move;
};

static const struct foliage_knob s3fifo_knobs[] = {
	{"small", "small queue, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct s3fifo_knobs, small), 10, 0.1, 90, NULL},
	{"ghost", "ghost queue, % of the room", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct s3fifo_knobs, ghost), 90, 0, 1000, NULL},
	{"move", "hits in the small queue that lead to the main one", FOLIAGE_KNOB_UINT,
	 offsetof(struct s3fifo_knobs, move), 2, 1, 3, NULL},
	{0},
};

static int s3fifo_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct s3fifo_knobs *k = knobs;
	struct s3fifo *s = ids_create(sizeof(*s), env);

	if (!s)
		return -ENOMEM;
	s->small = ids_list(S3FIFO_SMALL);
	s->main = ids_list(S3FIFO_MAIN);
	s->ghost = ids_list(S3FIFO_GHOST);
	s->main_pages = env->room - ids_share(env->room, k->small);
	s->ghost_pages = (uint32_t)((double)env->room * k->ghost / 100.0);
	s->move = k->move;
	*state = s;
	return 0;
}

static void s3fifo_remember(struct s3fifo *s, uint32_t id)
{
	if (!s->ghost_pages)
		return;
	if (s->ghost.nr == s->ghost_pages)
		ids_remove(s->ids.nodes, &s->ghost, s->ghost.tail);
	ids_push_head(s->ids.nodes, &s->ghost, id);
}

static void s3fifo_evict_main(struct s3fifo *s)
{
	struct ids_node *nodes = s->ids.nodes;
	uint32_t id;

	while (nodes[id = s->main.tail].refs) {
		nodes[id].refs--;
		ids_spared(&s->ids, id, S3FIFO_MAIN, FOLIAGE_WHY_SECOND_CHANCE);
		ids_to_head(nodes, &s->main, id);
	}
	ids_evict(&s->ids, &s->main, id);
}

/* False when every page of `small` deserved `main` and nothing left the room. */
static bool s3fifo_evict_small(struct s3fifo *s)
{
	struct ids_node *nodes = s->ids.nodes;

	while (s->small.nr) {
		uint32_t id = s->small.tail;

		if (nodes[id].refs < s->move) {
			ids_evict(&s->ids, &s->small, id);
			s3fifo_remember(s, id);
			return true;
		}
		nodes[id].refs = 0;
		ids_remove(nodes, &s->small, id);
		ids_push_head(nodes, &s->main, id);
		ids_promoted(&s->ids, id, S3FIFO_SMALL, S3FIFO_MAIN);
	}
	return false;
}

static void s3fifo_evict(struct s3fifo *s)
{
	if (s->main.nr > s->main_pages || !s3fifo_evict_small(s))
		s3fifo_evict_main(s);
}

static bool s3fifo_access(void *state, uint32_t id, uint64_t now)
{
	struct s3fifo *s = state;
	struct ids_node *node = &s->ids.nodes[id];
	bool known = node->where == S3FIFO_GHOST;

	if (node->where && !known) {
		if (node->refs < S3FIFO_MAX_REFS)
			node->refs++;
		return true;
	}
	s->ids.now = now;
	if (known)
		ids_remove(s->ids.nodes, &s->ghost, id);
	while (s->small.nr + s->main.nr >= s->ids.env.room)
		s3fifo_evict(s);
	node->refs = 0;
	ids_push_head(s->ids.nodes, known ? &s->main : &s->small, id);
	return false;
}

const struct foliage_policy foliage_policy_s3fifo = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "s3fifo",
	.summary = "three FIFOs: small for newcomers, main with reinsertion, ghost of the evicted",
	.knobs = s3fifo_knobs,
	.knobs_size = sizeof(struct s3fifo_knobs),
	.create = s3fifo_create,
	.destroy = ids_destroy,
	.access = s3fifo_access,
	.stats = ids_stats,
};
