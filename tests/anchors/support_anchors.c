/* SPDX-License-Identifier: MIT
 *
 * What the comparisons with anchors share: the table, the traces, one replay.
 */
#include "tests/anchors/support_anchors.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "machine/room.h"

struct anchor anchors[MAX_ANCHORS];
size_t nr_anchors;

/* The shared folder, or NULL. */
static const char *shared_path(void)
{
	const char *path = getenv("FOLIAGE_SHARED");
	struct stat st;
	static char file[512];

	if (!path)
		path = FOLIAGE_SOURCE_DIR "/../shared";
	snprintf(file, sizeof(file), "%s/anchors/misses.csv", path);
	return stat(file, &st) == 0 ? path : NULL;
}

const char *need_shared(void)
{
	const char *path = shared_path();

	if (!path) {
		printf("SKIP: no shared traces (set FOLIAGE_SHARED): the anchors are NOT "
		       "checked\n");
		skip();
	}
	return path;
}

int load_anchors(void **unused)
{
	const char *path = shared_path();
	char file[512], line[256];
	FILE *f;

	(void)unused;
	if (!path)
		return 0;
	snprintf(file, sizeof(file), "%s/anchors/misses.csv", path);
	f = fopen(file, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f) && nr_anchors < MAX_ANCHORS) {
		struct anchor *a = &anchors[nr_anchors];

		if (sscanf(line, "%63[^,],%23[^,],%u,%lu,%lu,%63[^\n]", a->trace, a->policy,
			   &a->pages, &a->accesses, &a->misses, a->trust) == 6)
			nr_anchors++;
	}
	fclose(f);
	return 0;
}

void resolve(const char *shared, const char *name, struct resolved *trace)
{
	const struct trace_options options = {.objects = true};
	struct err err = {0};
	char path[512];
	const char *paths[1] = {path};

	snprintf(path, sizeof(path), "%s/traces/%s", shared, name);
	if (trace_resolve(paths, 1, &options, 0, NULL, NULL, trace, &err))
		fail_msg("%s", err.text);
	assert_int_equal(resolved_next(trace), 0);
	assert_int_equal(resolved_counts(trace), 0);
}

uint64_t misses_of(const char *policy, const struct resolved *trace, uint32_t pages)
{
	struct foliage_policy_env env = {
		.room = pages,
		.nr_ids = trace->nr_ids,
		.nr_accesses = trace->n,
		.next = trace->next,
		.counts = trace->counts,
		.scale = 1,
	};
	struct foliage_stats stats;
	struct policy_choice choice;
	struct err err = {0};
	struct room *room = NULL;

	if (policy_parse(policy, &choice, &err) || room_open(&choice, &env, &room, &err))
		fail_msg("%s", err.text);
	assert_int_equal(room_run(room, trace->ids, NULL, trace->n), 0);
	room_stats(room, &stats);
	room_close(room);
	policy_choice_free(&choice);
	assert_int_equal(stats.accesses, trace->n);
	return stats.misses;
}
