/* SPDX-License-Identifier: MIT
 *
 * Suite android-global: the same phone with one memory group for all.
 *
 * The real one: an Xperia 1 V on 5.15 with one global group: "much better", no numbers. Modelled as
 * the other phone without groups.
 *
 * Modelled, left out, and the free parameters: see android.c. By default a sixty-fourth of every
 * size and of the hour, modelled at full size; counts are those of the whole.
 */
#include "base/bits.h"
#include "workload/android.h"

static const char *const cases[] = {"one-group"};

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	return android_run(run, false, out, err);
}

static const struct grid_kind kind = {
	.suite = &suite_android_global,
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

const struct suite suite_android_global = {
	.name = "android-global",
	.summary = "applications in turn on a phone, all in one group, zram",
	.params = android_params,
	.nr_params = ANDROID_NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
