/* SPDX-License-Identifier: MIT
 *
 * The tasks of a suite run on as many threads as there are processors; rows are gathered when all
 * are done, so that neither their order nor their content depends on the threads. SIGINT ends the
 * tasks at their next chunk; what has been counted by then is reported.
 */
#include "cli/bench_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/jobs.h"
#include "cli/options.h"

/* One suite at work. */
struct bench {
	const struct suite *suite;
	void *state;
	struct err *errors; /* of each task */
};

/* ---- names ---- */

static const char trace_prefix[] = "trace:";

static bool is_trace(const char *name)
{
	return !strncmp(name, trace_prefix, strlen(trace_prefix));
}

int bench_traces(char *const *names, size_t nr, struct suite ***traces, struct err *err)
{
	struct suite **made = calloc(nr + 1, sizeof(*made));
	int r = made ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !r; i++) {
		if (!is_trace(names[i]))
			continue;
		if (!names[i][strlen(trace_prefix)]) {
			bench_traces_free(made, nr);
			return err_set(err, -EINVAL, "%s which file? (%sFILE)", names[i],
				       trace_prefix);
		}
		made[i] = suite_trace_create(names[i] + strlen(trace_prefix));
		r = made[i] ? 0 : -ENOMEM;
	}
	if (r) {
		bench_traces_free(made, nr);
		return err_set(err, r, "out of memory");
	}
	*traces = made;
	return 0;
}

void bench_traces_free(struct suite **traces, size_t nr)
{
	for (size_t i = 0; traces && i < nr; i++)
		suite_trace_free(traces[i]);
	free(traces);
}

static const struct suite *find_suite(const char *name, struct err *err)
{
	struct nearest nearest;

	nearest_start(&nearest, name);
	for (int i = 0; suites[i]; i++) {
		if (!strcmp(suites[i]->name, name))
			return suites[i];
		nearest_try(&nearest, suites[i]->name);
	}
	if (nearest.best)
		err_set(err, -ENOENT, "unknown suite '%s', did you mean '%s'?", name, nearest.best);
	else
		err_set(err, -ENOENT, "unknown suite '%s' (see foliage bench --list)", name);
	return NULL;
}

const struct suite *bench_suite(const struct bench_plan *plan, size_t i)
{
	for (size_t name = 0; name < plan->nr_names; name++) {
		if (plan->traces[name] && !i--)
			return plan->traces[name];
		for (size_t k = 0; suites[k]; k++)
			if ((!strcmp(plan->names[name], "all") ||
			     !strcmp(plan->names[name], suites[k]->name)) &&
			    !i--)
				return suites[k];
	}
	return NULL;
}

/* One NAME=VALUE of --set: how many of the suites' parameters it names. */
static int known_setting(const struct bench_plan *plan, const char *word)
{
	const size_t length = strcspn(word, "=");
	const struct suite *suite;
	int nr = 0;

	for (size_t i = 0; (suite = bench_suite(plan, i)); i++)
		for (size_t k = 0; k < suite->nr_params; k++)
			nr += strlen(suite->params[k].name) == length &&
			      !strncmp(suite->params[k].name, word, length);
	return nr;
}

/* Calls `each` for every NAME=VALUE of --set, cut out of the text. */
static int for_each_setting(const struct bench_plan *plan,
			    int (*each)(const struct bench_plan *plan, const char *word, void *ctx,
					struct err *err),
			    void *ctx, struct err *err)
{
	char *copy, *rest, *word;
	int r = 0;

	if (!plan->set)
		return 0;
	rest = copy = strdup(plan->set);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	while (!r && (word = strsep(&rest, ",")))
		r = each(plan, word, ctx, err);
	free(copy);
	return r;
}

static int check_setting(const struct bench_plan *plan, const char *word, void *ctx,
			 struct err *err)
{
	double value;

	(void)ctx;
	if (!strchr(word, '='))
		return err_set(err, -EINVAL, "--set: '%s' is not NAME=VALUE", word);
	if (!known_setting(plan, word))
		return err_set(err, -ENOENT,
			       "--set: no suite of this run has a parameter '%.*s' "
			       "(see foliage bench --list)",
			       (int)strcspn(word, "="), word);
	return parse_real(strchr(word, '=') + 1, "--set", &value, err);
}

int bench_check(const struct bench_plan *plan, struct err *err)
{
	const struct suite *suite;

	for (size_t i = 0; i < plan->nr_names; i++)
		if (strcmp(plan->names[i], "all") && !plan->traces[i] &&
		    !find_suite(plan->names[i], err))
			return -ENOENT;
	for (size_t i = 0; (suite = bench_suite(plan, i)); i++)
		if (!suite->data && (plan->options->memory || plan->options->memory_part > 0))
			return err_set(err, -EINVAL,
				       "--memory: the memory of %s is its own; only recordings "
				       "take another",
				       suite->name);
	return for_each_setting(plan, check_setting, NULL, err);
}

struct setting {
	const struct suite *suite;
	double *values;
};

static int apply_setting(const struct bench_plan *plan, const char *word, void *ctx,
			 struct err *err)
{
	const struct setting *setting = ctx;
	const size_t length = strcspn(word, "=");

	(void)plan;
	for (size_t k = 0; k < setting->suite->nr_params; k++) {
		const struct suite_param *param = &setting->suite->params[k];
		double value;
		int r;

		if (strlen(param->name) != length || strncmp(param->name, word, length))
			continue;
		r = parse_real(word + length + 1, param->name, &value, err);
		if (r)
			return r;
		if (value < param->min || (param->max > 0 && value > param->max))
			return err_set(err, -EINVAL, "--set: %s: must be between %g and %g",
				       param->name, param->min, param->max);
		setting->values[k] = value;
	}
	return 0;
}

int bench_params(const struct bench_plan *plan, const struct suite *suite, double *values,
		 struct err *err)
{
	struct setting setting = {.suite = suite, .values = values};

	for (size_t k = 0; k < suite->nr_params; k++)
		values[k] = suite->params[k].value;
	return for_each_setting(plan, apply_setting, &setting, err);
}

/* ---- running ---- */

static void show_progress(const char *text)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text);
}

static int run_task(void *ctx, size_t task)
{
	const struct bench *bench = ctx;

	return bench->suite->run(bench->state, task, &bench->errors[task]);
}

static void task_finished(void *ctx, size_t done)
{
	const struct bench *bench = ctx;
	char text[100];

	snprintf(text, sizeof(text), "%s: %zu of %zu", bench->suite->name, done,
		 bench->suite->tasks(bench->state));
	show_progress(text);
}

/* The message of the lowest task that failed for a reason of its own. */
static int explain(const struct bench *bench, size_t nr, int code, struct err *err)
{
	for (size_t i = 0; i < nr; i++) {
		if (bench->errors[i].text[0])
			return err_set(err, code, "%s: %s", bench->suite->name,
				       bench->errors[i].text);
	}
	return err_set(err, code, "%s: %s", bench->suite->name, strerror(-code));
}

static int run_tasks(struct bench *bench, unsigned int threads, struct err *err)
{
	const size_t nr = bench->suite->tasks(bench->state);
	const struct jobs jobs = {
		.nr = nr,
		.threads = threads,
		.run = run_task,
		.finished = task_finished,
		.ctx = bench,
	};
	int r;

	bench->errors = calloc(nr ? nr : 1, sizeof(*bench->errors));
	if (!bench->errors)
		return err_set(err, -ENOMEM, "out of memory");
	r = jobs_run(&jobs);
	show_progress("");
	if (r && r != -EINTR)
		r = explain(bench, nr, r, err);
	free(bench->errors);
	return r == -EINTR ? 0 : r;
}

int bench_run_suite(const struct bench_plan *plan, const struct suite *suite, const double *params,
		    struct suite_report *report, struct err *err)
{
	struct bench bench = {.suite = suite};
	struct suite_options options = *plan->options;
	int r;

	options.params = params;
	options.suite = suite;
	r = suite->open(&options, &bench.state, err);
	if (r)
		return r;
	r = run_tasks(&bench, plan->threads, err);
	if (!r && suite->report(bench.state, report))
		r = err_set(err, -ENOMEM, "out of memory");
	suite->close(bench.state);
	return r;
}

int bench_run(const struct bench_plan *plan, struct suite_report *report, struct err *err)
{
	const struct suite *suite;
	/* A wrong name is told before the first suite runs. */
	int r = bench_check(plan, err);

	for (size_t i = 0; !r && !cli_interrupted && (suite = bench_suite(plan, i)); i++) {
		double params[SUITE_PARAMS];

		r = bench_params(plan, suite, params, err);
		if (!r)
			r = bench_run_suite(plan, suite, params, report, err);
	}
	return r;
}
