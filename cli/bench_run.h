/* SPDX-License-Identifier: MIT
 *
 * Running suites by name on a few threads: what `foliage bench` and its sensitivity analysis share.
 */
#ifndef FOLIAGE_CLI_BENCH_RUN_H
#define FOLIAGE_CLI_BENCH_RUN_H

#include "workload/suite.h"

struct bench_plan {
	char *const *names; /* of suites, or "all" */
	size_t nr_names;
	const struct suite_options *options;
	const char *set; /* NAME=VALUE,... of free parameters; NULL: none */
	unsigned int threads;
};

/* Suite number `i` of the plan; NULL behind the last. -ENOENT from bench_check() when a name is unknown,
 * of a suite or of a parameter that none of the suites has. */
const struct suite *bench_suite(const struct bench_plan *plan, size_t i);
int bench_check(const struct bench_plan *plan, struct err *err);

/* The values of the suite's free parameters under this plan: suite->nr_params of them. */
int bench_params(const struct bench_plan *plan, const struct suite *suite, double *values,
		 struct err *err);
/* One suite with these values of its parameters; its rows are added to the report. An interrupted run
 * is no error: the rows of what has been measured are there. */
int bench_run_suite(const struct bench_plan *plan, const struct suite *suite, const double *params,
		    struct suite_report *report, struct err *err);
/* All of them. */
int bench_run(const struct bench_plan *plan, struct suite_report *report, struct err *err);

#endif
