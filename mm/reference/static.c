/* SPDX-License-Identifier: MIT
 *
 * Static: the room keeps the pages with the most accesses in the whole trace for ever (ties: the id
 * that appears first) and nothing else. No page ever leaves; the first access to a kept page is a
 * miss, and so is every access to any other page, which passes by without coming in. It is the
 * optimum among those that never change their mind, what frequency alone is worth.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "mm/reference/reference.h"

struct fixed {
	uint64_t *keep, *here; /* bits by id: belongs in the room; has come in */
	size_t bytes;          /* of each */
};

static void fixed_destroy(void *state)
{
	struct fixed *f = state;

	if (!f)
		return;
	mem_table_free(f->keep, f->bytes);
	mem_table_free(f->here, f->bytes);
	free(f);
}

static uint32_t fixed_at_least(const struct foliage_policy_env *env, uint64_t count)
{
	uint32_t nr = 0;

	for (uint32_t id = 0; id < env->nr_ids; id++)
		nr += env->counts[id] >= count;
	return nr;
}

/* Mark the `room` pages of the highest counts: all above a threshold, and the first ones at it. */
static void fixed_choose(struct fixed *f, const struct foliage_policy_env *env)
{
	uint64_t low = 0,
		 high = (uint64_t)UINT32_MAX + 1; /* at_least(low) >= room > at_least(high) */
	uint32_t ties;

	if (env->nr_ids <= env->room)
		high = 1;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (fixed_at_least(env, middle) >= env->room)
			low = middle;
		else
			high = middle;
	}
	ties = env->room - MIN(env->room, fixed_at_least(env, high));
	for (uint32_t id = 0; id < env->nr_ids; id++) {
		bool tie = env->counts[id] == low && ties;

		if (env->counts[id] >= high || tie)
			bit_set(f->keep, id);
		ties -= tie;
	}
}

static int fixed_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	struct fixed *f;

	(void)knobs;
	if (!env->counts)
		return -EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->bytes = bitmap_words((size_t)env->nr_ids + 1) * sizeof(uint64_t);
	f->keep = mem_table(f->bytes);
	f->here = mem_table(f->bytes);
	if (!f->keep || !f->here) {
		fixed_destroy(f);
		return -ENOMEM;
	}
	fixed_choose(f, env);
	*state = f;
	return 0;
}

static bool fixed_access(void *state, uint32_t id, uint64_t now)
{
	struct fixed *f = state;

	(void)now;
	if (bit_test(f->here, id))
		return true;
	if (bit_test(f->keep, id))
		bit_set(f->here, id);
	return false;
}

const struct foliage_policy foliage_policy_static = {
	.abi = FOLIAGE_POLICY_ABI,
	.flags = FOLIAGE_POLICY_OFFLINE,
	.name = "static",
	.summary = "offline: keeps the most frequent pages for ever",
	.create = fixed_create,
	.destroy = fixed_destroy,
	.access = fixed_access,
};
