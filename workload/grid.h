/* SPDX-License-Identifier: MIT
 *
 * What most suites on the simulated machine share: cases by policies by seeds, a few metrics each,
 * means and 95 % confidence intervals over the seeds.
 */
#ifndef FOLIAGE_WORKLOAD_GRID_H
#define FOLIAGE_WORKLOAD_GRID_H

#include <stdint.h>

#include "workload/suite.h"

enum { GRID_METRICS = 16 };

struct grid_metric {
	const char *name; /* as in published.csv */
	int decimals;
};

struct grid_run {
	const void *ctx; /* of the kind */
	size_t which;    /* case */
	const char *policy;
	uint64_t seed;
	/* Values of the suite's free parameters, in the order of suite->params. */
	double params[SUITE_PARAMS];
	bool full, demo;
	bool (*stopped)(void);
};

struct grid_kind {
	const struct suite *suite;
	const char *const *cases;
	size_t nr_cases;
	const struct grid_metric *metrics;
	size_t nr_metrics;
	const char *policies; /* by default */
	/* One run; fills metrics[]. May run beside others. -EINTR when stopped. */
	int (*simulate)(const struct grid_run *run, double *metrics, struct err *err);
	const char *const *notes; /* ends with NULL */
	const void *ctx;          /* the suite's own */
};

int grid_open(const struct grid_kind *kind, const struct suite_options *options, void **state,
	      struct err *err);
size_t grid_tasks(const void *state);
int grid_run(void *state, size_t task, struct err *err);
int grid_report(const void *state, struct suite_report *report);
void grid_close(void *state);
const struct suite_options *grid_options(const void *state);

#endif
