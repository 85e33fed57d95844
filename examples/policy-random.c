/* SPDX-License-Identifier: MIT
 *
 * A policy of one's own in a shared object: random replacement. With `tries` above one it draws
 * that many residents and evicts the one used longest ago, which comes close to LRU without any
 * list.
 *
 *     cc -O2 -shared -fPIC -Iinclude -o random.so examples/policy-random.c
 *     foliage replay trace.txt --memory 10% --policy lru,./random.so,./random.so:tries=5
 */
#include <errno.h>
#include <stdlib.h>

#include "foliage/policy.h"

struct knobs {
	uint32_t tries;
};

struct state {
	uint32_t room, nr, tries;
	uint64_t random;
	uint32_t *slots; /* the residents */
	uint64_t *last;  /* by id: when it was last used, plus one; 0: not in the room */
};

static const struct foliage_knob knobs[] = {
	{"tries", "residents drawn; the one used longest ago leaves", FOLIAGE_KNOB_UINT,
	 offsetof(struct knobs, tries), 1, 1, 64, NULL},
	{0},
};

static void destroy(void *state)
{
	struct state *s = state;

	free(s->slots);
	free(s->last);
	free(s);
}

static int create(const struct foliage_policy_env *env, const void *knob_values, void **state)
{
	const struct knobs *k = knob_values;
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->room = env->room;
	s->tries = k->tries;
	s->random = env->seed * 2 + 1;
	s->slots = calloc(env->room, sizeof(*s->slots));
	s->last = calloc((size_t)env->nr_ids + 1, sizeof(*s->last));
	if (!s->slots || !s->last) {
		destroy(s);
		return -ENOMEM;
	}
	*state = s;
	return 0;
}

static uint32_t draw(struct state *s)
{
	s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(((s->random >> 32) * s->room) >> 32);
}

static bool access_page(void *state, uint32_t id, uint64_t now)
{
	struct state *s = state;
	bool hit = s->last[id];
	uint32_t slot;

	s->last[id] = now + 1;
	if (hit)
		return true;
	if (s->nr < s->room) {
		s->slots[s->nr++] = id;
		return false;
	}
	slot = draw(s);
	for (uint32_t i = 1; i < s->tries; i++) {
		uint32_t other = draw(s);

		if (s->last[s->slots[other]] < s->last[s->slots[slot]])
			slot = other;
	}
	s->last[s->slots[slot]] = 0;
	s->slots[slot] = id;
	return false;
}

__attribute__((visibility("default"))) extern const struct foliage_policy foliage_policy;
const struct foliage_policy foliage_policy = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "random",
	.summary = "evicts a page drawn at random",
	.knobs = knobs,
	.knobs_size = sizeof(struct knobs),
	.create = create,
	.destroy = destroy,
	.access = access_page,
};
