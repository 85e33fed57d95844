/* SPDX-License-Identifier: MIT
 *
 * The reference policies against miss counts that others have computed on public traces. Each line
 * of the anchors says how far it can be trusted: `exact` and `deterministic` points must be equal
 * to the unit; `soft` ones are known to deviate from the algorithm's authors, and their deviation
 * is printed. ARC must also give its paper's own table for OLTP, and static, which has no anchors,
 * what can be computed for a loop.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "machine/room.h"
#include "tests/anchors/support_anchors.h"

/* Its anchors are soft, but one implementation of one algorithm: what is left is small change. */
static const double LIRS_TOLERANCE = 0.001;

struct tally {
	unsigned int checked, unequal, soft;
};

static void check_anchor(const struct anchor *a, const struct resolved *trace, struct tally *tally)
{
	bool soft = !strncmp(a->trust, "soft", 4);
	uint64_t misses;

	/* Anchors of policies that are not built in are other people's business. */
	if (!policy_find(a->policy))
		return;
	assert_int_equal(trace->n, a->accesses);
	misses = misses_of(a->policy, trace, a->pages);
	if (soft)
		tally->soft++;
	else
		tally->checked++;
	if (misses == a->misses)
		return;
	if (!soft)
		tally->unequal++;
	else if (!strcmp(a->policy, "lirs"))
		assert_true(fabs((double)misses / (double)a->misses - 1) < LIRS_TOLERANCE);
	printf("%s %s %s %u: %lu misses, anchor %lu, %+.3f %%\n", soft ? "soft   " : "UNEQUAL",
	       a->trace, a->policy, a->pages, misses, a->misses,
	       ((double)misses / (double)a->misses - 1) * 100);
}

static void check_trace(const char *name)
{
	const char *shared = need_shared();
	struct resolved trace;
	struct tally tally = {0};

	resolve(shared, name, &trace);
	for (size_t i = 0; i < nr_anchors; i++)
		if (!strcmp(anchors[i].trace, name))
			check_anchor(&anchors[i], &trace, &tally);
	resolved_free(&trace);
	printf("%s: %u points equal, %u not, %u soft\n", name, tally.checked - tally.unequal,
	       tally.unequal, tally.soft);
	assert_int_equal(tally.unequal, 0);
	/* Eleven policies that have hard anchors, two that have soft ones, three sizes. */
	assert_int_equal(tally.checked, 33);
	assert_int_equal(tally.soft, 6);
}

static void test_trace(void **state)
{
	check_trace(*state);
}

static void test_arc_paper(void **unused)
{
	static const struct {
		uint32_t pages;
		double arc, lru; /* hit ratios in percent, as the paper prints them */
	} rows[] = {{1000, 38.95, 32.83},
		    {2000, 46.08, 42.47},
		    {5000, 55.25, 53.65},
		    {10000, 61.87, 60.70},
		    {15000, 65.40, 64.63}};
	const char *shared = need_shared();
	struct resolved trace;

	(void)unused;
	resolve(shared, "arc-OLTP.lis.zst", &trace);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double n = (double)trace.n;
		double arc = 100 - 100 * (double)misses_of("arc", &trace, rows[i].pages) / n;
		double lru = 100 - 100 * (double)misses_of("lru", &trace, rows[i].pages) / n;

		printf("OLTP %u: arc %.3f (paper %.2f), lru %.3f (paper %.2f)\n", rows[i].pages,
		       arc, rows[i].arc, lru, rows[i].lru);
		assert_true(arc > rows[i].arc - 0.006 && arc < rows[i].arc + 0.006);
		assert_true(lru > rows[i].lru - 0.006 && lru < rows[i].lru + 0.006);
	}
	resolved_free(&trace);
}

static void test_static_loop(void **unused)
{
	const char *shared = need_shared();
	struct resolved trace;

	(void)unused;
	resolve(shared, "lirs-loop.u32.zst", &trace);
	/* Every page equally frequent: the first 404 stay and hit from the second of 500 rounds on.
	 */
	assert_int_equal(misses_of("static", &trace, 404), 505500 - 404 * 499);
	resolved_free(&trace);
}

int main(void)
{
	/* Cheap ones first. */
	static char names[][64] = {
		"lirs-multi3.oracleGeneral.zst",
		"lirs-2_pools.u32.zst",
		"cloudPhysicsIO.oracleGeneral.zst",
		"lirs-sprite.oracleGeneral.zst",
		"lirs-loop.u32.zst",
		"oltp.u32.zst",
		"scarab-recs.u64.zst",
		"arc-P3.u32.zst",
		"orm-busy.u32.zst",
		"w106.u32.zst",
	};
	struct CMUnitTest tests[ARRAY_SIZE(names) + 2] = {
		cmocka_unit_test(test_arc_paper),
		cmocka_unit_test(test_static_loop),
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		tests[i + 2] = (struct CMUnitTest){
			.name = names[i], .test_func = test_trace, .initial_state = names[i]};
	return cmocka_run_group_tests(tests, load_anchors, NULL);
}
