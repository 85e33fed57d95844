/* SPDX-License-Identifier: MIT
 *
 * The newer rules built into a kernel. With the pass left once its target is reclaimed FG is
 * repeatable and compared boot by boot; without it is chaotic, and has to stay inside the band of
 * three boots of different seeds, widened by 3 %; one theta of four here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/published/support_published.h"

static struct kernel_run *runs;
static size_t nr_runs;

static int load(void **state)
{
	struct err err = {""};

	(void)state;
	return kernel_runs_load(&kernel_table_newer, &runs, &nr_runs, &err);
}

static int unload(void **state)
{
	(void)state;
	free(runs);
	return 0;
}

static bool wanted(const struct kernel_run *run, const char *policy)
{
	return !strcmp(run->policy, policy) && run->limit == 16384;
}

static void compare(const char *needed, const char *policy, double limit, size_t expected)
{
	size_t compared = 0;

	need_policy(needed);
	for (size_t i = 0; i < nr_runs; i++) {
		double kernel, engine;
		char what[96];

		if (!wanted(&runs[i], policy) || runs[i].seed != 1)
			continue;
		run_engine(&runs[i]);
		kernel_run_sum(&runs[i], KERNEL_REFAULTS, &kernel, &engine);
		snprintf(what, sizeof(what), "%s %g seed %llu", policy, runs[i].theta,
			 (unsigned long long)runs[i].seed);
		expect_near(what, engine, kernel, limit);
		compared++;
	}
	assert_int_equal(compared, expected);
}

static void compare_band(const char *policy, double theta)
{
	double low = INFINITY, high = 0;
	size_t boots = 0;

	need_policy("fg");
	for (size_t i = 0; i < nr_runs; i++) {
		double kernel, engine;

		if (!wanted(&runs[i], policy) || fabs(runs[i].theta - theta) > 1e-9)
			continue;
		run_engine(&runs[i]);
		kernel_run_sum(&runs[i], KERNEL_REFAULTS, &kernel, &engine);
		low = fmin(low, kernel);
		high = fmax(high, kernel);
		boots++;
	}
	assert_int_equal(boots, 3);
	for (size_t i = 0; i < nr_runs; i++) {
		double kernel, engine;

		if (!wanted(&runs[i], policy) || fabs(runs[i].theta - theta) > 1e-9)
			continue;
		kernel_run_sum(&runs[i], KERNEL_REFAULTS, &kernel, &engine);
		print_message("%s %g seed %llu: kernel %.0f, engine %.0f, band %.0f..%.0f\n",
			      policy, theta, (unsigned long long)runs[i].seed, kernel, engine,
			      low * 0.97, high * 1.03);
		assert_true(engine >= low * 0.97 && engine <= high * 1.03);
	}
}

static void mglru(void **state)
{
	(void)state;
	compare("mglru", "mglru", 0.003, 4);
}

static void fg_tail_abort(void **state)
{
	(void)state;
	compare("fg", "fg-tail-abort", 0.01, 4);
}

static void fg_min_abort(void **state)
{
	(void)state;
	compare("fg", "fg-min-abort", 0.01, 4);
}

static void fg_bands(void **state)
{
	(void)state;
	compare_band("fg-tail", 0.9);
	compare_band("fg-min", 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mglru),
		cmocka_unit_test(fg_tail_abort),
		cmocka_unit_test(fg_min_abort),
		cmocka_unit_test(fg_bands),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
