/* SPDX-License-Identifier: MIT
 *
 * Running suites by name on a few threads: what `foliage bench` and its sensitivity analysis share.
 */
#ifndef FOLIAGE_CLI_BENCH_RUN_H
#define FOLIAGE_CLI_BENCH_RUN_H

#include "workload/suite_trace.h"

struct bench_plan {
	char *const *names; /* of suites, "all", or trace:FILE */
	size_t nr_names;
	struct suite **traces; /* [nr_names] of each name that is a trace: bench_traces() */
	const struct suite_options *options;
	const char *set; /* NAME=VALUE,... of free parameters; NULL: none */
	unsigned int threads;
};

/* The suites that the names trace:FILE stand for: [nr], NULL where a name is none. -ENOMEM. */
int bench_traces(char *const *names, size_t nr, struct suite ***traces, struct err *err);
void bench_traces_free(struct suite **traces, size_t nr);

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
