/* SPDX-License-Identifier: MIT
 *
 * The engine's policies on public traces, every object one page: FG against a rough prototype of
 * the specification and against the best algorithm of each cell, and MGLRU behind FG.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "mm/policies.h"
#include "tests/anchors/support_anchors.h"

/* Misses of the prototype; the engine may have 1 % more. */
static const struct {
	const char *trace;
	uint32_t pages;
	uint64_t misses;
} prototype[] = {
	{"w106.u32.zst", 27517, 423020},    {"w106.u32.zst", 110068, 296377},
	{"arc-P3.u32.zst", 76254, 2574728}, {"scarab-recs.u64.zst", 25836, 466598},
	{"oltp.u32.zst", 18688, 293838},
};

static void test_prototype(void **unused)
{
	const char *shared = need_shared();

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(prototype); i++) {
		struct resolved trace;
		uint64_t fg, mglru;

		resolve(shared, prototype[i].trace, &trace);
		fg = misses_of("fg", &trace, prototype[i].pages);
		mglru = misses_of("mglru", &trace, prototype[i].pages);
		resolved_free(&trace);
		printf("%s %u: fg %lu misses, prototype %lu, %+.2f %%; mglru %lu\n",
		       prototype[i].trace, prototype[i].pages, fg, prototype[i].misses,
		       ((double)fg / (double)prototype[i].misses - 1) * 100, mglru);
		assert_true((double)fg <= 1.01 * (double)prototype[i].misses);
		assert_true(mglru > fg);
	}
}

/* Fewest misses of any algorithm that does not look at the future. */
static uint64_t best_anchor(const char *trace, uint32_t pages)
{
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i < nr_anchors; i++)
		if (!strcmp(anchors[i].trace, trace) && anchors[i].pages == pages &&
		    strcmp(anchors[i].policy, "belady"))
			best = MIN(best, anchors[i].misses);
	return best;
}

/* Geometric mean of misses / best over the cells of the table, without the two traces that are
 * loops by design. */
static void test_geometric_mean(void **unused)
{
	const char *shared = need_shared();
	const char *last = "";
	struct resolved trace = {0};
	double logs = 0;
	size_t cells = 0;

	(void)unused;
	for (size_t i = 0; i < nr_anchors; i++) {
		const struct anchor *a = &anchors[i];
		double ratio;

		if (strcmp(a->policy, "belady") || !strncmp(a->trace, "lirs-loop", 9) ||
		    !strncmp(a->trace, "lirs-2_pools", 12))
			continue;
		if (strcmp(last, a->trace)) {
			resolved_free(&trace);
			resolve(shared, a->trace, &trace);
			last = a->trace;
		}
		ratio = (double)misses_of("fg", &trace, a->pages) /
			(double)best_anchor(a->trace, a->pages);
		printf("%s %u: fg / best %.4f\n", a->trace, a->pages, ratio);
		logs += log(ratio);
		cells++;
	}
	resolved_free(&trace);
	printf("fg: geometric mean %.4f over %zu cells\n", exp(logs / (double)cells), cells);
	assert_int_equal(cells, 24);
	assert_true(exp(logs / (double)cells) <= 1.065);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prototype),
		cmocka_unit_test(test_geometric_mean),
	};

	return cmocka_run_group_tests(tests, load_anchors, NULL);
}
