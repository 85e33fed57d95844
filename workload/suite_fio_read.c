/* SPDX-License-Identifier: MIT
 *
 * Suite fio-read: refaults per read and I/O operations a second of the published read() table. A
 * task is one theta (and one of several runs): all policies on one sequence.
 *
 * Several runs take several of the sixteen jobs, so that they differ in seed and in the place of
 * the hot blocks; their mean is reported, as the published numbers are means of three.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "workload/fio_read.h"
#include "workload/interval.h"
#include "workload/suite_policies.h"

struct fio_suite {
	struct suite_options options;
	unsigned int jobs; /* that read at once */
	struct published published;
	struct iops_model model;
	struct suite_policies policies;
	double thetas[FIO_READ_NR_THETAS];
	size_t nr_thetas;
	struct fio_read_cell *cells; /* [theta][run][policy] */
};

static const char *const default_policies = "clru,mglru,fg";

static struct fio_read_cell *cells_of(const struct fio_suite *s, size_t theta, size_t run)
{
	return s->cells + (theta * s->options.runs + run) * s->policies.nr;
}

static int plan(struct fio_suite *s, struct err *err)
{
	s->cells = calloc(s->nr_thetas * s->options.runs * s->policies.nr, sizeof(*s->cells));
	if (!s->cells)
		return err_set(err, -ENOMEM, "fio-read: out of memory");
	for (size_t t = 0; t < s->nr_thetas; t++) {
		for (size_t run = 0; run < s->options.runs; run++) {
			struct fio_read_cell *cells = cells_of(s, t, run);

			for (size_t i = 0; i < s->policies.nr; i++) {
				int r;

				cells[i].policy = &s->policies.all[i];
				r = fio_read_plan(&s->published, s->thetas[t], s->jobs, &cells[i]);
				if (r)
					return err_set(err, r,
						       "fio-read: nothing published for theta %g",
						       s->thetas[t]);
			}
		}
	}
	return 0;
}

static int check_options(struct fio_suite *s, struct err *err)
{
	for (size_t i = 0; i < FIO_READ_NR_THETAS; i++) {
		const bool short_run = fio_read_thetas[i] < 1; /* rates are an order lower */

		if (s->options.nr_thetas || !s->options.demo
			    ? suite_wants_theta(&s->options, fio_read_thetas[i])
			    : short_run)
			s->thetas[s->nr_thetas++] = fio_read_thetas[i];
	}
	if (!s->nr_thetas && !s->options.lenient)
		return err_set(err, -EINVAL, "--theta: fio-read has 0.8, 0.9, 1.1 and 1.2");
	if (s->options.full && s->options.demo)
		return err_set(err, -EINVAL, "--full and --demo exclude each other");
	if (s->options.full && s->options.runs > 1)
		return err_set(err, -EINVAL,
			       "--runs: a full run of fio-read has all jobs in it already");
	if (s->options.runs > FIO_READ_JOBS)
		return err_set(err, -EINVAL, "--runs: fio-read has %d jobs to choose from",
			       FIO_READ_JOBS);
	s->jobs = s->options.full ? FIO_READ_JOBS : 1;
	return 0;
}

static void close_suite(void *state)
{
	struct fio_suite *s = state;

	suite_policies_free(&s->policies);
	free(s->cells);
	published_free(&s->published);
	free(s);
}

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	struct fio_suite *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, -ENOMEM, "fio-read: out of memory");
	s->options = *options;
	r = published_load(&s->published, err);
	if (!r && fio_read_fit(&s->published, &s->model))
		r = err_set(err, -EILSEQ, "fio-read: no published row to fit the model to");
	if (!r)
		r = suite_policies_choose(&s->policies, &suite_fio_read, SUITE_RUNS_ONLINE, options,
					  default_policies, err);
	if (!r)
		r = check_options(s, err);
	if (!r)
		r = plan(s, err);
	if (r) {
		close_suite(s);
		return r;
	}
	*state = s;
	return 0;
}

/* ---- tasks: the longest first, so that the last thread does not start with it ---- */

static size_t nr_tasks(const void *state)
{
	const struct fio_suite *s = state;

	return s->nr_thetas * s->options.runs;
}

static int run_task(void *state, size_t task, struct err *err)
{
	struct fio_suite *s = state;
	const size_t theta = s->nr_thetas - 1 - task / s->options.runs,
		     run = task % s->options.runs;

	return fio_read_run(s->thetas[theta], (unsigned int)run, s->jobs, cells_of(s, theta, run),
			    s->policies.nr, s->options.stopped, err);
}

/* ---- rows ---- */

/* Sums over the runs. */
static struct fio_read_cell total(const struct fio_suite *s, size_t theta, size_t policy)
{
	struct fio_read_cell sum = {.policy = &s->policies.all[policy]};

	for (size_t run = 0; run < s->options.runs; run++) {
		const struct fio_read_cell *cell = &cells_of(s, theta, run)[policy];

		sum.done += cell->done;
		sum.accesses += cell->accesses;
		sum.refaults += cell->refaults;
		sum.seconds += cell->seconds;
	}
	return sum;
}

static double refaults_per_read(const struct fio_read_cell *cell)
{
	return (double)cell->refaults / (double)cell->accesses;
}

static struct suite_row *start_row(const struct fio_suite *s, size_t theta, const char *metric,
				   const char *policy, double measured, struct suite_report *report)
{
	struct suite_row *row = suite_report_row(report);

	if (!row)
		return NULL;
	row->suite = suite_fio_read.name;
	fio_read_case(s->thetas[theta], row->case_name, sizeof(row->case_name));
	snprintf(row->metric, sizeof(row->metric), "%s", metric);
	snprintf(row->policy, sizeof(row->policy), "%s", policy);
	row->measured = measured;
	return row;
}

static int metric_row(const struct fio_suite *s, size_t theta, const char *metric,
		      const struct policy_choice *policy, double measured, int decimals,
		      struct suite_report *report)
{
	struct suite_row *row = start_row(s, theta, metric, policy->label, measured, report);

	if (!row)
		return -ENOMEM;
	row->decimals = decimals;
	row->has_published = published_find(&s->published, row->suite, row->case_name, row->metric,
					    policy->policy->name, &row->published);
	return 0;
}

/* Half the 95 % interval of refaults a read, from three runs on. */
static int interval_row(const struct fio_suite *s, size_t theta, size_t policy,
			struct suite_report *report)
{
	struct interval runs = {0};

	for (size_t run = 0; run < s->options.runs; run++) {
		const struct fio_read_cell *cell = &cells_of(s, theta, run)[policy];

		if (cell->accesses)
			interval_add(&runs, refaults_per_read(cell));
	}
	if (runs.n < INTERVAL_RUNS)
		return 0;
	return metric_row(s, theta, "refault_per_read_ci95", &s->policies.all[policy],
			  interval_half(&runs), 5, report);
}

/* How much better one policy is than another: where a common error cancels. */
static int ratio_row(const struct fio_suite *s, size_t theta, size_t a, size_t b,
		     struct suite_report *report)
{
	const struct fio_read_cell first = total(s, theta, a), second = total(s, theta, b);
	char label[sizeof(report->rows->policy)];
	struct suite_row *row;
	double pa, pb;

	if (!first.accesses || !second.refaults)
		return 0;
	if ((size_t)snprintf(label, sizeof(label), "%s/%s", first.policy->label,
			     second.policy->label) >= sizeof(label))
		return 0;
	row = start_row(s, theta, "refault_per_read_ratio", label,
			refaults_per_read(&first) / refaults_per_read(&second), report);
	if (!row)
		return -ENOMEM;
	row->decimals = 4;
	row->has_published = published_find(&s->published, row->suite, row->case_name,
					    "refault_per_read", first.policy->policy->name, &pa) &&
			     published_find(&s->published, row->suite, row->case_name,
					    "refault_per_read", second.policy->policy->name, &pb);
	if (row->has_published)
		row->published = pa / pb;
	return 0;
}

static int policy_rows(const struct fio_suite *s, size_t theta, size_t policy,
		       struct suite_report *report)
{
	const struct fio_read_cell sum = total(s, theta, policy);
	double refaults;
	int r;

	if (!sum.accesses)
		return 0;
	refaults = refaults_per_read(&sum);
	r = metric_row(s, theta, "refault_per_read", sum.policy, refaults, 5, report);
	if (!r)
		r = interval_row(s, theta, policy, report);
	if (!r)
		r = metric_row(s, theta, "iops", sum.policy,
			       iops_model_predict(&s->model, refaults), 0, report);
	if (!r && s->options.timing)
		r = metric_row(s, theta, "seconds", sum.policy, sum.seconds, 2, report);
	if (!r && s->options.timing && sum.seconds > 0)
		r = metric_row(s, theta, "accesses_per_s", sum.policy,
			       (double)sum.done / sum.seconds, 0, report);
	return r;
}

/* Every later policy against every earlier one of the list, when there are few. */
static int theta_rows(const struct fio_suite *s, size_t theta, struct suite_report *report)
{
	int r = 0;

	for (size_t i = 0; i < s->policies.nr && !r; i++)
		r = policy_rows(s, theta, i, report);
	for (size_t i = 1; i < s->policies.nr && s->policies.nr <= 4 && !r; i++) {
		for (size_t j = 0; j < i && !r; j++)
			r = ratio_row(s, theta, i, j, report);
	}
	return r;
}

static int notes(const struct fio_suite *s, struct suite_report *report)
{
	int r = suite_report_note(report,
				  "%u of %d jobs, %d blocks a file, a room of %u pages, memory "
				  "modelled %u times that",
				  s->jobs, FIO_READ_JOBS, FIO_READ_BLOCKS,
				  FIO_READ_ROOM / FIO_READ_JOBS * s->jobs, FIO_READ_JOBS / s->jobs);

	if (!r)
		r = suite_report_note(
			report,
			"statistics of policies with the knob `frozen` are flushed every %d s, "
			"as a kernel does",
			FIO_READ_FLUSH);
	if (!r)
		r = suite_report_note(report,
				      "iops: 1 / (hit + refaults * page), fitted on clru's "
				      "published row alone: hit "
				      "%.1f ns (%d jobs at once), page %.2f us (%.0f pages/s)",
				      s->model.hit * 1e9, FIO_READ_JOBS, s->model.device * 1e6,
				      1 / s->model.device);
	return r;
}

static int report_suite(const void *state, struct suite_report *report)
{
	const struct fio_suite *s = state;
	int r = 0;

	for (size_t t = 0; t < s->nr_thetas && !r; t++)
		r = theta_rows(s, t, report);
	if (!r && s->nr_thetas && s->policies.nr)
		r = notes(s, report);
	return r ? r : suite_policies_note(&s->policies, suite_fio_read.name, report);
}

const struct suite suite_fio_read = {
	.name = "fio-read",
	.summary =
		"16 fio jobs reading at zipf offsets: refaults per read, I/O operations a second",
	.open = open_suite,
	.tasks = nr_tasks,
	.run = run_task,
	.report = report_suite,
	.close = close_suite,
};
