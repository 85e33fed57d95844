/* SPDX-License-Identifier: MIT
 *
 * Suites by policies against mglru. For each suite and policy the metric that the suite's rows
 * begin with decides: the geometric mean over the cases of measured(policy) / measured(mglru),
 * turned so that above 1 is better. Less than 1 % apart is called equal.
 */
#include "cli/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

enum { POLICIES_MAX = 64, SUITES_MAX = 64 };
static const char base_policy[] = "mglru";
static const double equal_within = 0.01;

struct verdicts {
	const char *policies[POLICIES_MAX], *suites[SUITES_MAX], *metrics[SUITES_MAX];
	size_t nr_policies, nr_suites;
};

/* Rates and counts of work done grow; times, refaults and traffic shrink. A suite may add a suffix
 * for what the rate is of (ops_per_s_low). */
static bool more_is_better(const char *metric)
{
	static const char *const rates[] = {"iops", "ops_per_s", "requests_per_s", "requests",
					    "accesses_per_s"};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (!strncmp(metric, rates[i], strlen(rates[i])))
			return true;
	return false;
}

static size_t find_or_add(const char **names, size_t *nr, size_t max, const char *name)
{
	for (size_t i = 0; i < *nr; i++)
		if (!strcmp(names[i], name))
			return i;
	if (*nr < max)
		names[(*nr)++] = name;
	return *nr - 1;
}

static const struct suite_row *find_row(const struct suite_report *report, const char *suite,
					const char *case_name, const char *metric,
					const char *policy)
{
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct suite_row *row = &report->rows[i];

		if (!strcmp(row->suite, suite) && !strcmp(row->case_name, case_name) &&
		    !strcmp(row->metric, metric) && !strcmp(row->policy, policy))
			return row;
	}
	return NULL;
}

/* Suites that ran mglru, their first metric, and the policies besides. */
static void collect(const struct suite_report *report, struct verdicts *v)
{
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct suite_row *row = &report->rows[i];
		size_t before = v->nr_suites, suite;

		if (row->detail ||
		    !find_row(report, row->suite, row->case_name, row->metric, base_policy))
			continue;
		suite = find_or_add(v->suites, &v->nr_suites, SUITES_MAX, row->suite);
		if (v->nr_suites > before)
			v->metrics[suite] = row->metric;
		if (strcmp(row->policy, base_policy))
			find_or_add(v->policies, &v->nr_policies, POLICIES_MAX, row->policy);
	}
}

/* How many times better; 0: nothing to compare. */
static double judge(const struct suite_report *report, const struct verdicts *v, size_t suite,
		    const char *policy)
{
	double sum = 0;
	size_t nr = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct suite_row *row = &report->rows[i], *base;

		if (strcmp(row->suite, v->suites[suite]) ||
		    strcmp(row->metric, v->metrics[suite]) || strcmp(row->policy, policy))
			continue;
		base = find_row(report, row->suite, row->case_name, row->metric, base_policy);
		if (!base || base->measured <= 0 || row->measured <= 0)
			continue;
		sum += log(row->measured / base->measured);
		nr++;
	}
	if (!nr)
		return 0;
	return exp(more_is_better(v->metrics[suite]) ? sum / (double)nr : -sum / (double)nr);
}

static void word_of(double better, char *text, size_t size)
{
	if (better <= 0)
		snprintf(text, size, "%s", "");
	else if (fabs(better - 1) < equal_within)
		snprintf(text, size, "equal");
	else if (better >= 1)
		snprintf(text, size, "better %.2fx", better);
	else
		snprintf(text, size, "worse %.2fx", 1 / better);
}

static struct table *make_table(const struct verdicts *v, struct table_column *columns)
{
	columns[0] = (struct table_column){.key = "suite", .title = "suite", .kind = TABLE_TEXT};
	columns[1] =
		(struct table_column){.key = "metric", .title = "judged by", .kind = TABLE_TEXT};
	for (size_t i = 0; i < v->nr_policies; i++)
		columns[i + 2] = (struct table_column){
			.key = v->policies[i], .title = v->policies[i], .kind = TABLE_TEXT};
	return table_create(columns, v->nr_policies + 2);
}

static int fill_row(struct table *table, const struct suite_report *report,
		    const struct verdicts *v, size_t suite)
{
	int r = table_row(table);

	if (!r)
		r = table_text(table, 0, v->suites[suite]);
	if (!r)
		r = table_text(table, 1, v->metrics[suite]);
	for (size_t i = 0; i < v->nr_policies && !r; i++) {
		char text[32];

		word_of(judge(report, v, suite, v->policies[i]), text, sizeof(text));
		if (text[0])
			r = table_text(table, i + 2, text);
	}
	return r;
}

int verdict_print(const struct suite_report *report, FILE *out)
{
	struct verdicts v = {0};
	struct table_column columns[POLICIES_MAX + 2];
	struct table *table;
	int r = 0;

	collect(report, &v);
	if (!v.nr_policies)
		return 0;
	table = make_table(&v, columns);
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < v.nr_suites && !r; i++)
		r = fill_row(table, report, &v, i);
	if (!r) {
		fprintf(out,
			"\nAgainst %s (geometric mean over the cases; within %.0f %% is equal)\n",
			base_policy, 100 * equal_within);
		table_print(table, TABLE_PEOPLE, 0, table_rows(table), out);
	}
	table_free(table);
	return r;
}
