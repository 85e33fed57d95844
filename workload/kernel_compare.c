/* SPDX-License-Identifier: MIT
 *
 * What the two kernel suites share: which boots to repeat, their rows, and the bands of boots that
 * differ in the seed only.
 *
 * `--policy` chooses boots by the kernel's name of the policy ("fg-tail") or the engine's ("fg");
 * knobs after the name are set over those that make the engine behave like that kernel.
 */
#include "workload/kernel_compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mm/policies.h"
#include "workload/suite_policies.h"

struct comparison {
	const struct kernel_table *table;
	struct suite_options options;
	struct kernel_run *runs;
	size_t nr_runs;
	struct suite_policies policies; /* only what was left out */
};

static const char *const metric_names[KERNEL_NR_METRICS] = {
	"refaults", "pgscan", "pgsteal", "workingset_activate", "workingset_restore",
};

/* ---- which boots ---- */

/* The length of the first policy in "a,b:k=1,j=2,c": a comma ends it unless a knob follows. */
static size_t first_policy(const char *text)
{
	size_t length = strcspn(text, ",");

	while (text[length]) {
		const char *next = text + length + 1;
		const size_t word = strcspn(next, ",=:");

		if (next[word] != '=')
			break;
		length += 1 + strcspn(next, ",");
	}
	return length;
}

static bool same(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && !memcmp(name, text, length);
}

/* Does one policy of the list mean this boot? Then its knobs come last and win. */
static int match(struct kernel_run *run, const char *item, size_t length, struct err *err)
{
	const char *colon = memchr(item, ':', length);
	const size_t name = colon ? (size_t)(colon - item) : length;
	const size_t base = strcspn(run->engine, ":"), have = strlen(run->engine);
	const char separator = base == have ? ':' : ',';

	if (!same(run->policy, item, name) && !(base == name && !memcmp(run->engine, item, name)))
		return 0;
	if (!colon)
		return 1;
	if (have + length - name + 1 > sizeof(run->engine))
		return err_set(err, -EINVAL, "--policy: '%.*s' is too long", (int)length, item);
	memcpy(run->engine + have, item + name, length - name);
	run->engine[have] = separator;
	run->engine[have + length - name] = 0;
	return 1;
}

static bool unknown_name(const struct comparison *c, const char *item, size_t length)
{
	const char *colon = memchr(item, ':', length);
	const size_t name = colon ? (size_t)(colon - item) : length;

	for (size_t i = 0; i < c->nr_runs; i++) {
		if (same(c->runs[i].policy, item, name) ||
		    (strcspn(c->runs[i].engine, ":") == name &&
		     !memcmp(c->runs[i].engine, item, name)))
			return false;
	}
	return true;
}

static int wanted(const struct comparison *c, struct kernel_run *run, struct err *err)
{
	const char *text = c->options.policies;

	if (!suite_wants_theta(&c->options, run->theta))
		return 0;
	if (c->options.demo &&
	    (run->seed != 1 || run->limit != 16384 || fabs(run->theta - 0.9) > 1e-9))
		return 0;
	while (text) {
		const size_t length = first_policy(text);
		const int r = match(run, text, length, err);

		if (r)
			return r;
		text = text[length] ? text + length + 1 : NULL;
	}
	return !c->options.policies;
}

/* Policies which the kernel was not booted with. */
static int check_names(struct comparison *c, struct err *err)
{
	const char *text = c->options.policies;

	while (text) {
		const size_t length = first_policy(text);

		if (unknown_name(c, text, length) && c->options.lenient)
			suite_policies_leave_out(&c->policies, text, length);
		else if (unknown_name(c, text, length))
			return err_set(err, -ENOENT, "--policy: %s has no policy '%.*s'",
				       c->table->suite, (int)length, text);
		text = text[length] ? text + length + 1 : NULL;
	}
	return 0;
}

static int choose(struct comparison *c, struct err *err)
{
	size_t kept = 0;
	int r = check_names(c, err);

	for (size_t i = 0; i < c->nr_runs && r >= 0; i++) {
		r = wanted(c, &c->runs[i], err);
		if (r > 0)
			c->runs[kept++] = c->runs[i];
	}
	c->nr_runs = kept;
	if (r >= 0 && !kept && !c->options.lenient)
		return err_set(err, -ENOENT, "%s: no such run of the kernel", c->table->suite);
	/* A wrong knob is told now, not after the first minute. */
	for (size_t i = 0; i < kept && r >= 0; i++) {
		struct policy_choice choice;

		r = policy_parse(c->runs[i].engine, &choice, err);
		if (!r)
			policy_choice_free(&choice);
	}
	return r < 0 ? r : 0;
}

int kernel_compare_open(const struct kernel_table *table, const struct suite_options *options,
			void **state, struct err *err)
{
	struct comparison *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "%s: out of memory", table->suite);
	c->table = table;
	c->options = *options;
	if (options->policies && !strcmp(options->policies, "all"))
		c->options.policies = NULL;
	r = kernel_runs_load(table, &c->runs, &c->nr_runs, err);
	if (!r)
		r = choose(c, err);
	if (r) {
		kernel_compare_close(c);
		return r;
	}
	*state = c;
	return 0;
}

void kernel_compare_close(void *state)
{
	struct comparison *c = state;

	free(c->runs);
	free(c);
}

size_t kernel_compare_tasks(const void *state)
{
	return ((const struct comparison *)state)->nr_runs;
}

int kernel_compare_run(void *state, size_t task, struct err *err)
{
	struct comparison *c = state;

	return kernel_run_engine(&c->runs[task], c->options.stopped, err);
}

bool kernel_policy_has_knob(const char *policy, const char *knob)
{
	const struct foliage_policy *p = policy_find(policy);

	for (const struct foliage_knob *k = p ? p->knobs : NULL; k && k->name; k++) {
		if (!strcmp(k->name, knob))
			return true;
	}
	return false;
}

/* ---- rows ---- */

static void name_case(const struct kernel_run *run, const char *phase, char *text, size_t size)
{
	char seed[24] = "", stat[24] = "";

	if (run->seed != 1)
		snprintf(seed, sizeof(seed), "/seed%llu", (unsigned long long)run->seed);
	if (run->stat_every && run->stat_every < 100000)
		snprintf(stat, sizeof(stat), "/stat%llu", (unsigned long long)run->stat_every);
	snprintf(text, size, "%s/%g%s%s/%s", run->memory, run->theta, seed, stat, phase);
}

static int add_row(struct suite_report *report, const struct comparison *c,
		   const struct kernel_run *run, const char *phase, enum kernel_metric metric,
		   double kernel, double engine)
{
	struct suite_row *row;

	if (isnan(kernel) || isnan(engine))
		return 0;
	row = suite_report_row(report);
	if (!row)
		return -ENOMEM;
	row->suite = c->table->suite;
	name_case(run, phase, row->case_name, sizeof(row->case_name));
	snprintf(row->metric, sizeof(row->metric), "%s", metric_names[metric]);
	snprintf(row->policy, sizeof(row->policy), "%s", run->policy);
	row->published = kernel;
	row->measured = engine;
	row->has_published = true;
	row->detail = metric != KERNEL_REFAULTS && strcmp(phase, "all");
	return 0;
}

static int report_run(const struct comparison *c, const struct kernel_run *run,
		      struct suite_report *report)
{
	int r = 0;

	for (size_t w = 0; w < run->done && !r; w++) {
		const struct kernel_window *window = &run->windows[w];

		for (int m = 0; m < KERNEL_NR_METRICS && !r; m++)
			r = add_row(report, c, run, window->phase, (enum kernel_metric)m,
				    window->kernel[m], window->engine[m]);
	}
	for (int m = 0; m < KERNEL_NR_METRICS && !r && run->done == run->nr_windows; m++) {
		double kernel, engine;

		kernel_run_sum(run, (enum kernel_metric)m, &kernel, &engine);
		r = add_row(report, c, run, "all", (enum kernel_metric)m, kernel, engine);
	}
	if (!r && run->done)
		r = suite_report_note(
			report, "%s %s/%g seed %llu: engine %s, room %u pages, sequence %016llx",
			run->policy, run->memory, run->theta, (unsigned long long)run->seed,
			run->engine, run->room, (unsigned long long)run->hash);
	if (!r && run->done && run->room_low)
		r = suite_report_note(
			report, "    the kernel's file_pages allow rooms of %u..%u%s",
			run->room_low, run->room_high,
			run->room_low > run->room_high ? ": its room changed during the run" : "");
	return r;
}

/* The first boot of a set that differs in nothing but the seed tells the set's band. */
static int report_band(const struct comparison *c, size_t first, struct suite_report *report)
{
	const struct kernel_run *run = &c->runs[first];
	double low = INFINITY, high = 0, engine_low = INFINITY, engine_high = 0;
	size_t nr = 0;

	for (size_t i = 0; i < c->nr_runs; i++) {
		const struct kernel_run *other = &c->runs[i];
		double kernel, engine;

		if (strcmp(other->policy, run->policy) || strcmp(other->memory, run->memory) ||
		    other->stat_every != run->stat_every || fabs(other->theta - run->theta) > 1e-9)
			continue;
		if (i < first || other->done < other->nr_windows)
			return 0;
		kernel_run_sum(other, KERNEL_REFAULTS, &kernel, &engine);
		low = fmin(low, kernel);
		high = fmax(high, kernel);
		engine_low = fmin(engine_low, engine);
		engine_high = fmax(engine_high, engine);
		nr++;
	}
	if (nr < 2)
		return 0;
	return suite_report_note(
		report,
		"%s %s/%g, %zu seeds: refaults of the kernel %.0f..%.0f, of the engine %.0f..%.0f, "
		"%+.2f %% outside the band",
		run->policy, run->memory, run->theta, nr, low, high, engine_low, engine_high,
		engine_high > high ? 100 * (engine_high / high - 1)
		: engine_low < low ? 100 * (engine_low / low - 1)
				   : 0.0);
}

int kernel_compare_report(const void *state, struct suite_report *report)
{
	const struct comparison *c = state;
	int r = 0;

	for (size_t i = 0; i < c->nr_runs && !r; i++)
		r = report_run(c, &c->runs[i], report);
	for (size_t i = 0; i < c->nr_runs && !r; i++)
		r = report_band(c, i, report);
	return r ? r : suite_policies_note(&c->policies, c->table->suite, report);
}
