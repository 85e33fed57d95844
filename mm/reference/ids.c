/* SPDX-License-Identifier: MIT
 *
 * The state that reference policies share: its memory, its counters, and what it tells about
 * victims.
 */
#include "mm/reference/ids.h"

#include <stdlib.h>

#include "base/mem.h"

void *ids_create(size_t size, const struct foliage_policy_env *env)
{
	struct ids *ids = calloc(1, size);

	if (!ids)
		return NULL;
	ids->env = *env;
	ids->nodes = mem_table(((size_t)env->nr_ids + 1) * sizeof(*ids->nodes));
	if (!ids->nodes) {
		free(ids);
		return NULL;
	}
	return ids;
}

void ids_destroy(void *state)
{
	struct ids *ids = state;

	if (!ids)
		return;
	mem_table_free(ids->nodes, ((size_t)ids->env.nr_ids + 1) * sizeof(*ids->nodes));
	free(ids);
}

void ids_stats(const void *state, struct foliage_stats *stats)
{
	const struct ids *ids = state;

	stats->scanned += ids->stats.scanned;
	stats->stolen += ids->stats.stolen;
	stats->promoted += ids->stats.promoted;
	stats->protected_ += ids->stats.protected_;
}

static void ids_tell(const struct ids *ids, uint32_t id, enum foliage_event_what what,
		     enum foliage_event_why why, int from, int to)
{
	const struct foliage_event event = {
		.access = ids->now,
		.id = id,
		.what = (uint16_t)what,
		.why = (uint16_t)why,
		.from = (int16_t)from,
		.to = (int16_t)to,
	};

	ids->env.event(ids->env.event_ctx, &event);
}

void ids_evicted(struct ids *ids, uint32_t id, uint8_t from)
{
	ids->stats.scanned++;
	ids->stats.stolen++;
	if (ids->env.event)
		ids_tell(ids, id, FOLIAGE_EV_EVICT, FOLIAGE_WHY_COLD, from, -1);
}

void ids_evict(struct ids *ids, struct ids_list *list, uint32_t id)
{
	ids_remove(ids->nodes, list, id);
	ids_evicted(ids, id, list->tag);
}

void ids_spared(struct ids *ids, uint32_t id, uint8_t from, enum foliage_event_why why)
{
	ids->stats.scanned++;
	ids->stats.protected_++;
	if (ids->env.event)
		ids_tell(ids, id, FOLIAGE_EV_KEEP, why, from, from);
}

void ids_promoted(struct ids *ids, uint32_t id, uint8_t from, uint8_t to)
{
	ids->stats.promoted++;
	if (ids->env.event)
		ids_tell(ids, id, FOLIAGE_EV_MOVE, FOLIAGE_WHY_ACTIVATE, from, to);
}
