/* SPDX-License-Identifier: MIT
 *
 * FG-W on public traces, every object one page, at 1, 10 and 40 % of the unique pages: 24 cells.
 * Its misses against the best of the algorithms in the anchors (geometric mean at most 1.00, no
 * cell above 1.07), and on the six large traces against the prototype that the policy was first
 * measured with (at most 1 % more).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "machine/room.h"
#include "trace/trace.h"

enum { SIZES = 3 };

static const struct {
	const char *trace;
	bool large;
	uint64_t prototype[SIZES];
} traces[] = {
	{"cloudPhysicsIO.oracleGeneral.zst", true, {94354, 84551, 59525}},
	{"w106.u32.zst", true, {933189, 368237, 288707}},
	{"scarab-recs.u64.zst", true, {709858, 454344, 298673}},
	{"oltp.u32.zst", true, {486605, 286914, 211471}},
	{"orm-busy.u32.zst", true, {1127356, 512276, 175287}},
	{"arc-P3.u32.zst", true, {3725640, 2479573, 1212933}},
	{"lirs-multi3.oracleGeneral.zst", false, {23719, 15525, 9849}},
	{"lirs-sprite.oracleGeneral.zst", false, {108283, 17958, 8411}},
};

static const unsigned int percent[SIZES] = {1, 10, 40};

static const char *shared(void)
{
	const char *path = getenv("FOLIAGE_SHARED");
	static char file[512];
	struct stat st;

	if (!path)
		path = FOLIAGE_SOURCE_DIR "/../shared";
	snprintf(file, sizeof(file), "%s/anchors/misses.csv", path);
	return stat(file, &st) == 0 ? path : NULL;
}

/* Fewest misses of an algorithm that does not look ahead; 0: no anchor. */
static uint64_t best_anchor(const char *path, const char *trace, uint32_t pages)
{
	char file[512], line[256], name[64], algorithm[24];
	uint64_t accesses, misses, best = 0;
	uint32_t at;
	FILE *f;

	snprintf(file, sizeof(file), "%s/anchors/misses.csv", path);
	f = fopen(file, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^,],%23[^,],%u,%lu,%lu", name, algorithm, &at, &accesses,
			   &misses) != 5 ||
		    at != pages || strcmp(name, trace) != 0 || !strcmp(algorithm, "belady"))
			continue;
		best = best ? MIN(best, misses) : misses;
	}
	fclose(f);
	return best;
}

static uint64_t misses_of(const struct policy_choice *choice, const struct resolved *trace,
			  uint32_t pages)
{
	struct foliage_policy_env env = {.room = pages,
					 .nr_ids = trace->nr_ids,
					 .nr_accesses = trace->n,
					 .seed = 1,
					 .scale = 1};
	struct foliage_stats stats;
	struct err err = {0};
	struct room *room;

	if (room_open(choice, &env, &room, &err))
		fail_msg("%s", err.text);
	assert_int_equal(room_run(room, trace->ids, NULL, trace->n), 0);
	room_stats(room, &stats);
	room_close(room);
	return stats.misses;
}

static void resolve(const char *path, const char *name, struct resolved *trace)
{
	const struct trace_options options = {.objects = true};
	const char *paths[1];
	struct err err = {0};
	char file[512];

	snprintf(file, sizeof(file), "%s/traces/%s", path, name);
	paths[0] = file;
	if (trace_resolve(paths, 1, &options, 0, NULL, NULL, trace, &err))
		fail_msg("%s", err.text);
}

static void cells(void **state)
{
	const char *path = shared();
	struct policy_choice choice;
	struct err err = {0};
	double sum = 0, worst = 0;
	unsigned int over = 0;

	(void)state;
	if (!path) {
		printf("SKIP: no shared traces (set FOLIAGE_SHARED): FG-W's misses are NOT "
		       "checked\n");
		skip();
	}
	assert_int_equal(policy_parse("fgw", &choice, &err), 0);
	for (size_t t = 0; t < ARRAY_SIZE(traces); t++) {
		struct resolved trace;

		resolve(path, traces[t].trace, &trace);
		for (int i = 0; i < SIZES; i++) {
			uint32_t pages = (uint32_t)((uint64_t)trace.nr_ids * percent[i] / 100);
			uint64_t misses = misses_of(&choice, &trace, pages);
			uint64_t best = best_anchor(path, traces[t].trace, pages);
			double ratio, prototype = (double)misses / (double)traces[t].prototype[i];

			assert_true(best > 0);
			ratio = (double)misses / (double)best;
			printf("%-34s %2u %% %8lu misses, %.4f of the best, %.4f of the "
			       "prototype\n",
			       traces[t].trace, percent[i], misses, ratio, prototype);
			sum += log(ratio);
			worst = MAX(worst, ratio);
			over += traces[t].large && prototype > 1.01;
		}
		resolved_free(&trace);
	}
	policy_choice_free(&choice);
	printf("geometric mean %.4f, worst %.4f\n", exp(sum / (SIZES * ARRAY_SIZE(traces))), worst);
	assert_int_equal(over, 0);
	assert_true(worst <= 1.07);
	assert_true(sum <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
