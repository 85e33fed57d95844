/* SPDX-License-Identifier: MIT
 *
 * Look-up in the compiled-in table of published numbers. It has a few hundred rows and is asked a
 * few dozen times a run: a linear search will do.
 */
#include "workload/published.h"

#include <errno.h>
#include <string.h>

#include "workload/data.h"

int published_load(struct published *p, struct err *err)
{
	int r = csv_parse("published.csv", data_published, strlen(data_published), &p->csv, err);

	if (r)
		return r;
	p->suite = csv_column(&p->csv, "suite");
	p->case_name = csv_column(&p->csv, "case");
	p->metric = csv_column(&p->csv, "metric");
	p->policy = csv_column(&p->csv, "policy");
	p->value = csv_column(&p->csv, "value");
	if (p->suite >= 0 && p->case_name >= 0 && p->metric >= 0 && p->policy >= 0 && p->value >= 0)
		return 0;
	published_free(p);
	return err_set(err, -EILSEQ, "published.csv: a column is missing");
}

void published_free(struct published *p)
{
	csv_free(&p->csv);
}

static bool is(const struct published *p, size_t row, int column, const char *wanted)
{
	return !strcmp(csv_text(&p->csv, row, column), wanted);
}

bool published_find(const struct published *p, const char *suite, const char *case_name,
		    const char *metric, const char *policy, double *value)
{
	for (size_t row = 0; row < p->csv.nr_rows; row++) {
		if (is(p, row, p->suite, suite) && is(p, row, p->case_name, case_name) &&
		    is(p, row, p->metric, metric) && is(p, row, p->policy, policy))
			return csv_number(&p->csv, row, p->value, value);
	}
	return false;
}
