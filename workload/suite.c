/* SPDX-License-Identifier: MIT
 *
 * The table of suites, and what all of them need to report.
 */
#include "workload/suite.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct suite *const suites[] = {
	&suite_kernel_612,
	&suite_kernel_newer,
	&suite_fio_read,
	&suite_fio_mmap,
	&suite_fio_mmap_random,
	&suite_fio_mmap_ahead,
	&suite_fio_tight,
	&suite_sqlite_grep,
	&suite_leveldb_scan_get,
	&suite_valkey,
	&suite_noio,
	&suite_cassandra,
	&suite_kbuild,
	&suite_kbuild_memcg,
	&suite_ycsb_b,
	&suite_chromium_node,
	&suite_android,
	&suite_android_global,
	&suite_mysql_like,

#ifdef HAVE_ZSTD /* recordings are packed */
	&suite_real_sqlite_grep,
	&suite_real_kbuild,
#endif
	NULL,
};

struct suite_row *suite_report_row(struct suite_report *report)
{
	if (report->nr_rows == report->max_rows) {
		const size_t max = report->max_rows ? 2 * report->max_rows : 64;
		struct suite_row *rows = realloc(report->rows, max * sizeof(*rows));

		if (!rows)
			return NULL;
		report->rows = rows;
		report->max_rows = max;
	}
	report->rows[report->nr_rows] = (struct suite_row){0};
	return &report->rows[report->nr_rows++];
}

int suite_report_note(struct suite_report *report, const char *format, ...)
{
	char **notes = realloc(report->notes, (report->nr_notes + 1) * sizeof(*notes));
	va_list args;
	int length;

	if (!notes)
		return -ENOMEM;
	report->notes = notes;
	va_start(args, format);
	length = vasprintf(&notes[report->nr_notes], format, args);
	va_end(args);
	if (length < 0)
		return -ENOMEM;
	report->nr_notes++;
	return 0;
}

void suite_report_free(struct suite_report *report)
{
	for (size_t i = 0; i < report->nr_notes; i++)
		free(report->notes[i]);
	free(report->notes);
	free(report->rows);
	*report = (struct suite_report){0};
}

bool suite_row_deviation(const struct suite_row *row, double *deviation)
{
	if (!row->has_published || row->published == 0)
		return false;
	*deviation = row->measured / row->published - 1;
	return true;
}

double suite_param(const struct suite *suite, const struct suite_options *options, size_t which)
{
	return options->params ? options->params[which] : suite->params[which].value;
}

bool suite_wants_theta(const struct suite_options *options, double theta)
{
	for (size_t i = 0; i < options->nr_thetas; i++) {
		if (fabs(options->thetas[i] - theta) < 1e-9)
			return true;
	}
	return !options->nr_thetas;
}

bool suite_stopped(const struct suite_options *options)
{
	return options->stopped && options->stopped();
}
