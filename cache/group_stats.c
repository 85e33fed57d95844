/* SPDX-License-Identifier: MIT
 *
 * What groups say of themselves: as numbers, and as the text files of Linux's memory cgroups.
 */
#include "cache/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t group_stat(struct foliage_group *g, enum stat_item anon)
{
	const struct foliage_engine *e = g->pool->engine;
	uint32_t memcg = group_memcg(g);
	int64_t sum = memcg_stat(e, memcg, anon) + memcg_stat(e, memcg, stat_of(anon, TYPE_FILE));

	return sum > 0 ? (uint64_t)sum : 0;
}

static uint64_t bytes_of(const struct pool *p, uint64_t pages)
{
	return pages == FOLIAGE_UNLIMITED ? UINT64_MAX : pages << p->page_shift;
}

static uint64_t event(const struct foliage_group *g, enum group_event what)
{
	return atomic_load_explicit(&g->events[what], memory_order_relaxed);
}

static void read_stats(struct foliage_group *g, struct foliage_group_stats *out)
{
	struct pool *p = g->pool;
	const struct memcg *m = &p->engine->memcgs[g->memcg];
	struct memcg_sizes sizes;

	memcg_sizes(p->engine, g->memcg, &sizes);
	*out = (struct foliage_group_stats){
		.current = bytes_of(p, counter_size(&m->usage)),
		.min = bytes_of(p, m->min),
		.low = bytes_of(p, m->low),
		.high = bytes_of(p, m->high),
		.max = bytes_of(p, m->max),
		.active = bytes_of(p, sizes.active[TYPE_FILE] + sizes.active[TYPE_ANON]),
		.inactive = bytes_of(p, sizes.inactive[TYPE_FILE] + sizes.inactive[TYPE_ANON]),
		.refaults = group_stat(g, STAT_REFAULT_ANON),
		.activated = group_stat(g, STAT_ACTIVATE_ANON),
		.restored = group_stat(g, STAT_RESTORE_ANON),
		.scanned = group_stat(g, STAT_PGSCAN_ANON),
		.evicted = group_stat(g, STAT_PGSTEAL_ANON),
		.low_events = (uint64_t)memcg_stat(p->engine, g->memcg, STAT_LOW_EVENTS),
		.high_events = event(g, GROUP_HIGH),
		.max_events = event(g, GROUP_MAX),
		.no_room = event(g, GROUP_NO_ROOM),
	};
	group_pressure_read(g, FOLIAGE_STALL_MEMORY, &out->memory);
	group_pressure_read(g, FOLIAGE_STALL_IO, &out->io);
}

int foliage_group_stats(struct foliage_group *g, struct foliage_group_stats *out)
{
	unsigned int session;

	if (!pool_alive(g->pool))
		return -ECHILD;
	session = memcg_enter(g->pool->engine);
	read_stats(group_live(g), out);
	memcg_leave(g->pool->engine, session);
	return 0;
}

/* ---- text ---- */

static void put_limit(FILE *out, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		fprintf(out, "max\n");
	else
		fprintf(out, "%" PRIu64 "\n", bytes);
}

static void put_pressure(FILE *out, const struct foliage_pressure *p)
{
	fprintf(out, "some avg10=%.2f avg60=%.2f avg300=%.2f total=%" PRIu64 "\n", p->some_avg[0],
		p->some_avg[1], p->some_avg[2], p->some_us);
	fprintf(out, "full avg10=%.2f avg60=%.2f avg300=%.2f total=%" PRIu64 "\n", p->full_avg[0],
		p->full_avg[1], p->full_avg[2], p->full_us);
}

static int put_text(struct foliage_group *g, FILE *out, const char *what)
{
	struct pool *p = g->pool;
	struct foliage_group_stats s;

	read_stats(g, &s);
	if (!strcmp(what, "memory.stat"))
		return memcg_put_stat(p->engine, out, g->memcg, UINT64_C(1) << p->page_shift);
	if (!strcmp(what, "memory.current"))
		put_limit(out, s.current);
	else if (!strcmp(what, "memory.min"))
		put_limit(out, s.min);
	else if (!strcmp(what, "memory.low"))
		put_limit(out, s.low);
	else if (!strcmp(what, "memory.high"))
		put_limit(out, s.high);
	else if (!strcmp(what, "memory.max"))
		put_limit(out, s.max);
	else if (!strcmp(what, "memory.pressure"))
		put_pressure(out, &s.memory);
	else if (!strcmp(what, "io.pressure"))
		put_pressure(out, &s.io);
	else if (!strcmp(what, "memory.events"))
		fprintf(out,
			"low %" PRIu64 "\nhigh %" PRIu64 "\nmax %" PRIu64 "\noom %" PRIu64 "\n",
			s.low_events, s.high_events, s.max_events, s.no_room);
	else
		return -EINVAL;
	return 0;
}

int foliage_group_text(struct foliage_group *g, const char *what, char **text)
{
	unsigned int session;
	size_t size = 0;
	FILE *out;
	int rc;

	if (!pool_alive(g->pool))
		return -ECHILD;
	*text = NULL;
	out = open_memstream(text, &size);
	if (!out)
		return -ENOMEM;
	session = memcg_enter(g->pool->engine);
	rc = put_text(group_live(g), out, what);
	memcg_leave(g->pool->engine, session);
	if (fclose(out) && !rc)
		rc = -ENOMEM;
	if (rc) {
		free(*text);
		*text = NULL;
	}
	return rc;
}
