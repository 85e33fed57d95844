/* SPDX-License-Identifier: MIT
 *
 * An order is a pair of policies whose measured values of one metric in one case differ by more than
 * a percent in the run as it is. Each free parameter of the workload is then halved and doubled, one
 * at a time, and the order looked at again:
 *
 *   holds    the same policy is ahead
 *   ties     the two came within a percent of each other
 *   flips    the other one is ahead by more than a percent: the suite does not support the order,
 *            because it depends on a number that nobody published
 *   no run   the workload does not fit into its machine with that value, which says nothing
 *
 * Parameters that have bounds stop there; one that does not move at all is not run.
 */
#include "cli/sensitivity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"

static const double tie = 0.01;

enum fate { HOLDS, TIES, FLIPS, NO_RUN };
static const char *const fates[] = {"holds", "ties", "flips", "no run"};

enum {
	COL_SUITE,
	COL_CASE,
	COL_METRIC,
	COL_LESS,
	COL_MORE,
	COL_RATIO,
	COL_PARAMETER,
	COL_VALUE,
	COL_VARIED,
	COL_FATE,
	NR_COLS
};

static const struct table_column columns[NR_COLS] = {
	[COL_SUITE] = {.key = "suite", .title = "suite", .kind = TABLE_TEXT},
	[COL_CASE] = {.key = "case", .title = "case", .kind = TABLE_TEXT},
	[COL_METRIC] = {.key = "metric", .title = "metric", .kind = TABLE_TEXT},
	[COL_LESS] = {.key = "less", .title = "less", .kind = TABLE_TEXT},
	[COL_MORE] = {.key = "more", .title = "more", .kind = TABLE_TEXT},
	[COL_RATIO] = {.key = "ratio",
		       .title = "less/more",
		       .kind = TABLE_REAL,
		       .decimals = 3,
		       .precise = 6},
	[COL_PARAMETER] = {.key = "parameter", .title = "parameter", .kind = TABLE_TEXT},
	[COL_VALUE] = {.key = "value",
		       .title = "set to",
		       .kind = TABLE_REAL,
		       .decimals = 3,
		       .precise = 6},
	[COL_VARIED] = {.key = "varied_ratio",
			.title = "then",
			.kind = TABLE_REAL,
			.decimals = 3,
			.precise = 6},
	[COL_FATE] = {.key = "order", .title = "order", .kind = TABLE_TEXT},
};

/* One suite's sums. */
struct tally {
	size_t orders, unsupported, runs;
	bool *flipped; /* of each pair of rows: base->nr_rows squared */
};

struct study {
	const struct bench_plan *plan;
	enum table_format format;
	struct table *table;
	FILE *summary;
	const struct suite *suite;
	struct suite_report base;
	struct tally tally;
	double params[SUITE_PARAMS];
};

/* ---- orders ---- */

static bool same_question(const struct suite_row *a, const struct suite_row *b)
{
	return !strcmp(a->case_name, b->case_name) && !strcmp(a->metric, b->metric);
}

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

/* Rows about one policy; not those about two, nor the width of an interval. */
static bool ranks(const struct suite_row *row)
{
	return !row->detail && row->measured > 0 && !ends_with(row->metric, "_ratio") &&
	       !ends_with(row->metric, "_ci95");
}

static bool is_order(const struct suite_row *less, const struct suite_row *more)
{
	return ranks(less) && ranks(more) && same_question(less, more) &&
	       less->measured < (1 - tie) * more->measured;
}

static const struct suite_row *again(const struct suite_report *report, const struct suite_row *row)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		if (same_question(&report->rows[i], row) &&
		    !strcmp(report->rows[i].policy, row->policy))
			return &report->rows[i];
	return NULL;
}

static enum fate fate_of(double less, double more)
{
	if (less < (1 - tie) * more)
		return HOLDS;
	return more < (1 - tie) * less ? FLIPS : TIES;
}

/* ---- rows ---- */

static int add_row(struct study *s, const struct suite_row *less, const struct suite_row *more,
		   size_t param, double value, double varied, enum fate fate)
{
	struct table *t = s->table;
	const bool failed = table_row(t) || table_text(t, COL_SUITE, s->suite->name) ||
			    table_text(t, COL_CASE, less->case_name) ||
			    table_text(t, COL_METRIC, less->metric) ||
			    table_text(t, COL_LESS, less->policy) ||
			    table_text(t, COL_MORE, more->policy) ||
			    table_real(t, COL_RATIO, less->measured / more->measured) ||
			    table_text(t, COL_PARAMETER, s->suite->params[param].name) ||
			    table_real(t, COL_VALUE, value) ||
			    (fate != NO_RUN && table_real(t, COL_VARIED, varied)) ||
			    table_text(t, COL_FATE, fates[fate]);

	return failed ? -ENOMEM : 0;
}

/* What became of the order of two rows of the base in the varied report. */
static int look_again(struct study *s, size_t a, size_t b, const struct suite_report *varied,
		      size_t param, double value)
{
	const struct suite_row *less = &s->base.rows[a], *more = &s->base.rows[b];
	const struct suite_row *less2 = again(varied, less), *more2 = again(varied, more);
	enum fate fate;

	if (!less2 || !more2 || less2->measured <= 0 || more2->measured <= 0)
		return 0;
	fate = fate_of(less2->measured, more2->measured);
	s->tally.flipped[a * s->base.nr_rows + b] |= fate == FLIPS;
	if (fate == HOLDS && s->format == TABLE_PEOPLE)
		return 0;
	return add_row(s, less, more, param, value, less2->measured / more2->measured, fate);
}

static int compare(struct study *s, const struct suite_report *varied, size_t param, double value)
{
	int r = 0;

	for (size_t a = 0; a < s->base.nr_rows && !r; a++)
		for (size_t b = 0; b < s->base.nr_rows && !r; b++)
			if (is_order(&s->base.rows[a], &s->base.rows[b]))
				r = look_again(s, a, b, varied, param, value);
	return r;
}

/* A simulated machine ran out of memory with this value; people get one line of it. */
static int cannot_run(struct study *s, size_t param, double value, const struct err *why)
{
	int r = 0;

	fprintf(s->summary, "%s; no run with %s set to %g\n", why->text,
		s->suite->params[param].name, value);
	if (s->format == TABLE_PEOPLE)
		return 0;
	for (size_t a = 0; a < s->base.nr_rows && !r; a++)
		for (size_t b = 0; b < s->base.nr_rows && !r; b++)
			if (is_order(&s->base.rows[a], &s->base.rows[b]))
				r = add_row(s, &s->base.rows[a], &s->base.rows[b], param, value, 0,
					    NO_RUN);
	return r;
}

/* ---- runs ---- */

static int vary(struct study *s, size_t param, double factor, struct err *err)
{
	const struct suite_param *p = &s->suite->params[param];
	double before = s->params[param], value = MAX(before * factor, p->min);
	struct suite_report report = {0};
	int r;

	if (p->max > 0)
		value = MIN(value, p->max);
	if (fabs(value - before) <= 1e-9 * fabs(before) || cli_interrupted)
		return 0;
	s->params[param] = value;
	r = bench_run_suite(s->plan, s->suite, s->params, &report, err);
	s->params[param] = before;
	s->tally.runs++;
	if (r == -ENOMEM)
		r = cannot_run(s, param, value, err);
	else if (!r)
		r = compare(s, &report, param, value);
	if (r == -ENOMEM)
		err_set(err, r, "out of memory");
	suite_report_free(&report);
	return r;
}

static void count(struct study *s)
{
	const size_t nr = s->base.nr_rows;

	for (size_t a = 0; a < nr; a++)
		for (size_t b = 0; b < nr; b++) {
			s->tally.orders += is_order(&s->base.rows[a], &s->base.rows[b]);
			s->tally.unsupported += s->tally.flipped[a * nr + b];
		}
}

static int study_suite(struct study *s, struct err *err)
{
	int r = bench_params(s->plan, s->suite, s->params, err);

	s->base = (struct suite_report){0};
	s->tally = (struct tally){0};
	if (!r)
		r = bench_run_suite(s->plan, s->suite, s->params, &s->base, err);
	if (!r) {
		s->tally.flipped = calloc(s->base.nr_rows * s->base.nr_rows + 1, sizeof(bool));
		if (!s->tally.flipped)
			r = err_set(err, -ENOMEM, "out of memory");
	}
	for (size_t param = 0; param < s->suite->nr_params && !r; param++) {
		r = vary(s, param, 0.5, err);
		if (!r)
			r = vary(s, param, 2, err);
	}
	if (!r) {
		count(s);
		fprintf(s->summary,
			"%s: %zu orders, %zu parameters, %zu runs with one of them halved or "
			"doubled: "
			"%zu orders not supported\n",
			s->suite->name, s->tally.orders, s->suite->nr_params, s->tally.runs,
			s->tally.unsupported);
	}
	free(s->tally.flipped);
	suite_report_free(&s->base);
	return r;
}

static int study_all(struct study *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; !r && !cli_interrupted && (s->suite = bench_suite(s->plan, i)); i++) {
		if (s->suite->nr_params)
			r = study_suite(s, err);
		else
			fprintf(s->summary, "%s: no free parameter\n", s->suite->name);
	}
	return r;
}

int sensitivity_run(const struct bench_plan *plan, enum table_format format, FILE *out,
		    struct err *err)
{
	struct study s = {.plan = plan, .format = format};
	char *summary = NULL;
	size_t size;
	FILE *lines = open_memstream(&summary, &size);
	int r = bench_check(plan, err);

	s.summary = lines;
	s.table = table_create(columns, NR_COLS);
	if (!r && (!lines || !s.table))
		r = err_set(err, -ENOMEM, "out of memory");
	if (!r)
		r = study_all(&s, err);
	if (lines && fclose(lines) && !r)
		r = err_set(err, -ENOMEM, "out of memory");
	if (!r) {
		if (format != TABLE_PEOPLE || table_rows(s.table))
			table_print(s.table, format, 0, table_rows(s.table), out);
		if (format == TABLE_PEOPLE)
			fprintf(out, "%s%s", table_rows(s.table) ? "\n" : "", summary);
	}
	table_free(s.table);
	free(summary);
	return r;
}
