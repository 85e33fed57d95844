/* SPDX-License-Identifier: MIT
 *
 * Cases by policies by seeds. Rows: every metric of every case and policy beside what was
 * published, then the ratio of each policy to mglru beside the published ratio, where errors common
 * to both cancel. From three runs up a row of half the width of the 95 % confidence interval goes
 * with each mean.
 */
#include "workload/grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload/interval.h"
#include "workload/published.h"
#include "workload/suite_policies.h"

struct result {
	bool done;
	double metrics[GRID_METRICS];
};

struct grid {
	const struct grid_kind *kind;
	struct suite_options options;
	struct published published;
	struct suite_policies policies;
	struct result *results; /* [case][policy][run] */
};

static struct result *result_of(const struct grid *g, size_t which, size_t policy, size_t run)
{
	return &g->results[(which * g->policies.nr + policy) * g->options.runs + run];
}

int grid_open(const struct grid_kind *kind, const struct suite_options *options, void **state,
	      struct err *err)
{
	struct grid *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(err, -ENOMEM, "%s: out of memory", kind->suite->name);
	g->kind = kind;
	g->options = *options;
	r = published_load(&g->published, err);
	if (!r)
		r = suite_policies_choose(&g->policies, kind->suite, SUITE_RUNS_ENGINE, options,
					  kind->policies, err);
	if (!r) {
		g->results = calloc(kind->nr_cases * g->policies.nr * g->options.runs + 1,
				    sizeof(*g->results));
		if (!g->results)
			r = err_set(err, -ENOMEM, "%s: out of memory", kind->suite->name);
	}
	if (r) {
		grid_close(g);
		return r;
	}
	*state = g;
	return 0;
}

void grid_close(void *state)
{
	struct grid *g = state;

	suite_policies_free(&g->policies);
	free(g->results);
	published_free(&g->published);
	free(g);
}

size_t grid_tasks(const void *state)
{
	const struct grid *g = state;

	return g->kind->nr_cases * g->policies.nr * g->options.runs;
}

const struct suite_options *grid_options(const void *state)
{
	return &((const struct grid *)state)->options;
}

int grid_run(void *state, size_t task, struct err *err)
{
	const struct grid *g = state;
	size_t per_case = g->policies.nr * g->options.runs;
	struct result *result = &g->results[task];
	struct grid_run run = {
		.ctx = g->kind->ctx,
		.which = task / per_case,
		.policy = g->policies.all[task % per_case / g->options.runs].label,
		.seed = task % g->options.runs + 1,
		.full = g->options.full,
		.demo = g->options.demo,
		.stopped = g->options.stopped,
	};
	int r;

	for (size_t i = 0; i < g->kind->suite->nr_params && i < SUITE_PARAMS; i++)
		run.params[i] = suite_param(g->kind->suite, &g->options, i);
	r = g->kind->simulate(&run, result->metrics, err);
	result->done = !r;
	return r;
}

/* ---- rows ---- */

/* Over the runs that were done. */
static struct interval over_runs(const struct grid *g, size_t which, size_t policy, size_t metric)
{
	struct interval all = {0};

	for (size_t run = 0; run < g->options.runs; run++) {
		const struct result *r = result_of(g, which, policy, run);

		if (r->done)
			interval_add(&all, r->metrics[metric]);
	}
	return all;
}

static struct suite_row *add_row(const struct grid *g, size_t which, const char *metric,
				 const char *suffix, const char *policy, double measured,
				 int decimals, struct suite_report *report)
{
	struct suite_row *row = suite_report_row(report);

	if (!row)
		return NULL;
	row->suite = g->kind->suite->name;
	snprintf(row->case_name, sizeof(row->case_name), "%s", g->kind->cases[which]);
	snprintf(row->metric, sizeof(row->metric), "%s%s", metric, suffix);
	snprintf(row->policy, sizeof(row->policy), "%s", policy);
	row->measured = measured;
	row->decimals = decimals;
	return row;
}

static bool published_of(const struct grid *g, size_t which, size_t metric, size_t policy,
			 double *value)
{
	return published_find(&g->published, g->kind->suite->name, g->kind->cases[which],
			      g->kind->metrics[metric].name, g->policies.all[policy].policy->name,
			      value);
}

static int metric_rows(const struct grid *g, size_t which, size_t policy,
		       struct suite_report *report)
{
	for (size_t k = 0; k < g->kind->nr_metrics; k++) {
		const struct grid_metric *metric = &g->kind->metrics[k];
		const struct interval runs = over_runs(g, which, policy, k);
		struct suite_row *row;

		if (!runs.n)
			continue;
		row = add_row(g, which, metric->name, "", g->policies.all[policy].label, runs.mean,
			      metric->decimals, report);
		if (!row)
			return -ENOMEM;
		row->has_published = published_of(g, which, k, policy, &row->published);
		if (runs.n >= INTERVAL_RUNS &&
		    !add_row(g, which, metric->name, "_ci95", g->policies.all[policy].label,
			     interval_half(&runs), metric->decimals, report))
			return -ENOMEM;
	}
	return 0;
}

static int ratio_rows(const struct grid *g, size_t which, size_t a, size_t b,
		      struct suite_report *report)
{
	for (size_t k = 0; k < g->kind->nr_metrics; k++) {
		const struct interval ra = over_runs(g, which, a, k),
				      rb = over_runs(g, which, b, k);
		double pa, pb;
		char label[192];
		struct suite_row *row;

		if (!ra.n || !rb.n || rb.mean <= 0 ||
		    (size_t)snprintf(label, sizeof(label), "%s/%s", g->policies.all[a].label,
				     g->policies.all[b].label) >= sizeof(label))
			continue;
		row = add_row(g, which, g->kind->metrics[k].name, "_ratio", label,
			      ra.mean / rb.mean, 4, report);
		if (!row)
			return -ENOMEM;
		row->has_published =
			published_of(g, which, k, a, &pa) && published_of(g, which, k, b, &pb);
		if (row->has_published)
			row->published = pa / pb;
	}
	return 0;
}

int grid_report(const void *state, struct suite_report *report)
{
	const struct grid *g = state;
	size_t base = SIZE_MAX;
	int r = 0;

	for (size_t i = 0; i < g->policies.nr; i++)
		if (!strcmp(g->policies.all[i].label, "mglru"))
			base = i;
	for (size_t which = 0; which < g->kind->nr_cases; which++) {
		for (size_t i = 0; i < g->policies.nr && !r; i++)
			r = metric_rows(g, which, i, report);
		for (size_t i = 0; i < g->policies.nr && base != SIZE_MAX && !r; i++)
			if (i != base)
				r = ratio_rows(g, which, i, base, report);
	}
	for (size_t i = 0; g->policies.nr && g->kind->notes && g->kind->notes[i] && !r; i++)
		r = suite_report_note(report, "%s: %s", g->kind->suite->name, g->kind->notes[i]);
	return r ? r : suite_policies_note(&g->policies, g->kind->suite->name, report);
}
