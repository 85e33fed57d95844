/* SPDX-License-Identifier: MIT
 *
 * What a pool publishes of itself: its statistics, its groups, and its pages by age. Nothing here
 * stops anybody: counters are read as they stand, under no lock that a fetch takes.
 */
#include "cache/segment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cache/pool.h"
#include "foliage/group.h"
#include "mm/ages.h"
#include "mm/memcg.h"

/* ---- pages by age ---- */

static void fill_lists(struct foliage_engine *e, unsigned int type,
		       struct foliage_segment_lists *out)
{
	struct engine_ages ages;

	engine_ages(e, type, &ages);
	out->order = ages.generations ? FOLIAGE_SEGMENT_GENERATIONS : FOLIAGE_SEGMENT_CLASSIC;
	out->min_seq = ages.min_seq;
	out->max_seq = ages.max_seq;
	memcpy(out->pages, ages.pages, sizeof(ages.pages));
}

/* ---- groups ---- */

static void copy_pressure(struct foliage_segment_pressure *to, const struct foliage_pressure *from)
{
	to->some_ns = from->some_us * 1000;
	to->full_ns = from->full_us * 1000;
	for (int i = 0; i < 3; i++) {
		to->some_avg[i] = (uint64_t)llround(100 * from->some_avg[i]);
		to->full_avg[i] = (uint64_t)llround(100 * from->full_avg[i]);
	}
}

static int add_group(void *ctx, struct foliage_group *group, const char *path)
{
	struct foliage_segment_values *values = ctx;
	struct foliage_segment_group *g;
	struct foliage_group_stats stats;
	int rc;

	if (values->nr_groups++ >= FOLIAGE_SEGMENT_GROUPS)
		return 0;
	rc = foliage_group_stats(group, &stats);
	if (rc)
		return rc;
	g = &values->groups[values->nr_groups - 1];
	snprintf(g->name, sizeof(g->name), "%s", path);
	g->current = stats.current;
	g->min = stats.min;
	g->low = stats.low;
	g->high = stats.high;
	g->max = stats.max;
	g->hits = g->misses = UINT64_MAX;
	g->refaults = stats.refaults;
	g->evictions = stats.evicted;
	copy_pressure(&g->pressure, &stats.memory);
	if (path[0] == '/' && !path[1])
		values->pressure = g->pressure;
	return 0;
}

/* ---- all of it ---- */

int foliage_segment_fill_pool(struct foliage_pool *pool, struct foliage_segment_values *values)
{
	struct foliage_engine *e = pool->core->engine;
	struct foliage_pool_stats stats;
	unsigned int session;
	int rc = foliage_pool_stats(pool, &stats);

	if (rc)
		return rc;
	values->budget = stats.budget;
	values->metadata_bytes = stats.metadata_bytes;
	values->frame_bytes = stats.frame_bytes;
	values->pages = stats.pages;
	values->page_bytes = stats.page_bytes;
	values->hits = stats.hits;
	values->misses = stats.misses;
	values->created = stats.created;
	values->refaults = stats.refaults;
	values->evictions = stats.evicted;
	values->discarded = stats.discarded;
	values->no_room = stats.no_room;
	values->waits = stats.waits;
	session = memcg_enter(e);
	fill_lists(e, TYPE_FILE, &values->file);
	fill_lists(e, TYPE_ANON, &values->anon);
	memcg_leave(e, session);
	values->nr_groups = 0;
	return foliage_group_each(foliage_pool_group(pool), add_group, values);
}

static int fill_from_pool(void *ctx, struct foliage_segment_values *values)
{
	return foliage_segment_fill_pool(ctx, values);
}

int foliage_segment_publish_pool(struct foliage_segment *s, struct foliage_pool *pool)
{
	struct foliage_segment_values values = {0};
	int rc = foliage_segment_fill_pool(pool, &values);

	return rc ? rc : foliage_segment_update(s, &values);
}

int foliage_segment_start_pool(struct foliage_segment *s, struct foliage_pool *pool,
			       uint32_t interval_ms)
{
	return foliage_segment_start(s, interval_ms, fill_from_pool, pool);
}
