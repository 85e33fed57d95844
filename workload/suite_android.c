/* SPDX-License-Identifier: MIT
 *
 * Suite android: applications launched and cycled, each in a memory group of its own.
 *
 * The real one: a Pixel 9 Pro of 16 GB with 8 GB of zram, 34 applications and 20 browser tabs
 * launched and cycled, a short scroll in each, 16 rounds in about an hour, 12 runs for each kernel,
 * trimmed means.
 *
 * Modelled, left out, and the free parameters: see android.c. By default a sixty-fourth of every
 * size and of the hour, modelled at full size; counts are those of the whole.
 */
#include "base/bits.h"
#include "workload/android.h"

static const char *const cases[] = {"pixel-16G"};

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	return android_run(run, true, out, err);
}

static const struct grid_kind kind = {
	.suite = &suite_android,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = android_metrics,
	.nr_metrics = ANDROID_NR_METRICS,
	.policies = "clru,mglru,fg",
	.simulate = simulate,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_android = {
	.name = "android",
	.summary = "applications in turn on a phone, each in a group of its own, zram",
	.params = android_params,
	.nr_params = ANDROID_NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
