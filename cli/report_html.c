/* SPDX-License-Identifier: MIT
 *
 * The page: for every input its command line, then
 *
 *   replay, mrc   a trace: miss ratio by memory; the policies side by side at the smallest, the
 *                 middle and the largest size; who needs how much; the verdict; the working set;
 *                 the ages of pages as heat maps
 *   bench         a suite and metric: published beside measured, in parts that fit a page; the
 *                 verdict
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/report.h"
#include "cli/report_matrix.h"
#include "cli/svg.h"
#include "cli/table.h"

enum { SIDE_BY_SIDE = 3, BENCH_ROWS = 40, HEAT_COLUMNS = 20 };

#define MIB_PAGES 256.0 /* pages of a MiB */

/* Texts in the order of their first appearance. */
struct names {
	const char **name;
	size_t nr;
};

static int names_add(struct names *names, const char *name)
{
	const char **more;

	for (size_t i = 0; i < names->nr; i++) {
		if (!strcmp(names->name[i], name))
			return 0;
	}
	more = realloc(names->name, (names->nr + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	names->name = more;
	more[names->nr++] = name;
	return 0;
}

static size_t names_find(const struct names *names, const char *name)
{
	size_t i = 0;

	while (strcmp(names->name[i], name) != 0)
		i++;
	return i;
}

/* The last part of a path, which is what people call a file. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_element(FILE *out, const char *element, const char *text)
{
	fprintf(out, "<%s>", element);
	xml_text(out, text);
	fprintf(out, "</%s>\n", element);
}

/* ---- one trace ---- */

/* The points of one trace of one input: sizes from the smallest up, policies as they came. */
static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int gather_sizes(const struct report_input *input, const char *trace, double **sizes,
			size_t *nr)
{
	double *all = calloc(input->nr_points + 1, sizeof(*all));
	size_t n = 0, unique = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < input->nr_points; i++) {
		if (!strcmp(input->points[i].trace, trace))
			all[n++] = input->points[i].pages;
	}
	qsort(all, n, sizeof(*all), by_size);
	for (size_t i = 0; i < n; i++) {
		if (!unique || all[i] > all[unique - 1])
			all[unique++] = all[i];
	}
	*sizes = all;
	*nr = unique;
	return 0;
}

static int trace_matrix(const struct report_input *input, const char *trace, struct matrix *m)
{
	struct names policies = {0};
	double *sizes = NULL;
	size_t nr = 0;
	int r = gather_sizes(input, trace, &sizes, &nr);

	for (size_t i = 0; i < input->nr_points && !r; i++) {
		if (!strcmp(input->points[i].trace, trace))
			r = names_add(&policies, input->points[i].policy);
	}
	if (!r)
		r = matrix_make(m, nr, policies.nr);
	if (!r) {
		memcpy(m->names, policies.name, policies.nr * sizeof(*policies.name));
		for (size_t s = 0; s < nr; s++)
			m->x[s] = sizes[s] / MIB_PAGES;
		for (size_t i = 0; i < input->nr_points; i++) {
			const struct report_point *point = &input->points[i];
			size_t s = 0;

			if (strcmp(point->trace, trace) != 0)
				continue;
			while (sizes[s] < point->pages)
				s++;
			m->y[names_find(&policies, point->policy) * nr + s] = point->miss_ratio;
		}
	}
	free(policies.name);
	free(sizes);
	return r;
}

/* Rows are policies, series the smallest, the middle and the largest size. */
static int side_by_side(const struct matrix *curves, const char *trace, FILE *out)
{
	const size_t last = curves->rows - 1, picks[SIDE_BY_SIDE] = {0, last / 2, last};
	const size_t nr = MIN(curves->rows, (size_t)SIDE_BY_SIDE);
	char names[SIDE_BY_SIDE][60];
	struct matrix m;
	int r = matrix_make(&m, curves->series, nr);

	if (r)
		return r;
	for (size_t s = 0; s < nr; s++) {
		size_t size = nr == SIDE_BY_SIDE ? picks[s] : s;

		snprintf(names[s], sizeof(names[s]), "%.2f MiB", curves->x[size]);
		m.names[s] = names[s];
		for (size_t p = 0; p < curves->series; p++)
			m.y[s * m.rows + p] = curves->y[p * curves->rows + size];
	}
	for (size_t p = 0; p < curves->series; p++)
		snprintf(m.labels[p], MATRIX_LABEL, "%s", curves->names[p]);
	snprintf(m.title, sizeof(m.title), "Policies side by side: %s", base_name(trace));
	m.row_title = "policy";
	m.value_title = "miss ratio (misses per access)";
	r = matrix_dots(&m, out);
	matrix_free(&m);
	return r;
}

/* Misses of every policy as multiples of the best at each size, in the geometric mean. */
static void trace_verdict(const struct matrix *m, FILE *out)
{
	put_element(out, "h3", "Verdict");
	fputs("<div class=\"wide\"><table><thead><tr><th scope=\"col\">policy</th>"
	      "<th scope=\"col\">mean miss ratio</th><th scope=\"col\">misses / best, geometric "
	      "mean</th>"
	      "<th scope=\"col\">best at (sizes)</th></tr></thead>\n<tbody>\n",
	      out);
	for (size_t p = 0; p < m->series; p++) {
		double sum = 0, logs = 0;
		size_t n = 0, best_at = 0, compared = 0;

		for (size_t s = 0; s < m->rows; s++) {
			double mine = m->y[p * m->rows + s], best = INFINITY;

			if (isnan(mine))
				continue;
			for (size_t q = 0; q < m->series; q++)
				best = fmin(best, m->y[q * m->rows + s]);
			sum += mine;
			n++;
			best_at += mine <= best;
			if (best > 0) {
				logs += log(mine / best);
				compared++;
			}
		}
		fputs("<tr><th scope=\"row\">", out);
		xml_text(out, m->names[p]);
		fprintf(out, "</th><td>%.4f</td><td>%.3f</td><td>%zu of %zu</td></tr>\n",
			n ? sum / (double)n : 0, compared ? exp(logs / (double)compared) : 1,
			best_at, n);
	}
	fputs("</tbody></table></div>\n", out);
}

static void trace_answers(const struct report_input *input, const char *trace, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < input->nr_answers; i++) {
		const struct report_answer *answer = &input->answers[i];

		if (strcmp(answer->trace, trace) != 0)
			continue;
		if (!any)
			fprintf(out, "<p>For a miss ratio of %g", answer->target);
		fputs(any ? ", " : " ", out);
		any = true;
		xml_text(out, answer->policy);
		if (isnan(answer->pages))
			fputs(" does not reach it", out);
		else
			fprintf(out, " needs %s%.1f MiB", answer->at_most ? "at most " : "",
				answer->pages / MIB_PAGES);
	}
	if (any)
		fputs(".</p>\n", out);
}

static int trace_windows(const struct report_input *input, const char *trace, FILE *out)
{
	struct matrix m;
	size_t nr = 0;
	int r;

	for (size_t i = 0; i < input->nr_windows; i++)
		nr += !strcmp(input->windows[i].trace, trace);
	if (!nr)
		return 0;
	r = matrix_make(&m, nr, 1);
	if (r)
		return r;
	nr = 0;
	for (size_t i = 0; i < input->nr_windows; i++) {
		if (strcmp(input->windows[i].trace, trace) != 0)
			continue;
		m.x[nr] = input->windows[i].end;
		m.y[nr++] = input->windows[i].pages / MIB_PAGES;
	}
	snprintf(m.title, sizeof(m.title), "Working set over time: %s", base_name(trace));
	m.names[0] = "unique pages of a window (MiB)";
	m.row_title = "end of the window (accesses since the start)";
	m.value_title = "working set (MiB)";
	m.decimals = 2;
	r = matrix_curves(&m, out);
	matrix_free(&m);
	return r;
}

/* ---- ages ---- */

static const char *const generation_names[REPORT_AGES] = {"youngest", "second", "third", "fourth"};
static const char *const list_names[2] = {"active", "inactive"};

/* At most HEAT_COLUMNS of the looks, at equal distances, the last one among them. */
static size_t pick_look(const struct report_ages *ages, size_t column, size_t columns)
{
	return (column + 1) * ages->nr / columns - 1;
}

static int ages_figure(const struct report_ages *ages, FILE *out)
{
	const size_t columns = MIN(ages->nr, (size_t)HEAT_COLUMNS);
	bool lists = isnan(ages->looks[0].min_seq);
	size_t rows = lists ? 2 : REPORT_AGES;
	struct matrix m;
	int r = matrix_make(&m, columns, rows);

	if (r)
		return r;
	for (size_t s = 0; s < rows; s++)
		m.names[s] = lists ? list_names[s] : generation_names[s];
	for (size_t c = 0; c < columns; c++) {
		const struct report_look *look = &ages->looks[pick_look(ages, c, columns)];
		char count[32];

		snprintf(m.labels[c], MATRIX_LABEL, "%s",
			 count_text((uint64_t)look->access, count));
		for (size_t s = 0; s < rows; s++)
			m.y[s * columns + c] = s < look->nr ? look->pages[look->nr - 1 - s] : 0;
	}
	snprintf(m.title, sizeof(m.title), "Ages of pages: %s, %.2f MiB", ages->policy,
		 ages->room / MIB_PAGES);
	m.row_title = "accesses so far";
	m.value_title = lists ? "pages of each list" : "pages of each generation";
	m.decimals = -1;
	r = matrix_heat(&m, lists ? "list" : "generation", out);
	matrix_free(&m);
	return r;
}

static int trace_ages(const struct report_input *input, const char *trace, FILE *out)
{
	int r = 0;

	for (size_t i = 0; i < input->nr_ages && !r; i++) {
		const struct report_ages *ages = &input->ages[i];

		if (ages->nr && !strcmp(ages->trace, trace))
			r = ages_figure(ages, out);
	}
	return r;
}

static int trace_section(const struct report_input *input, const char *trace, FILE *out)
{
	struct matrix m;
	int r = trace_matrix(input, trace, &m);

	if (r)
		return r;
	put_element(out, "h2", base_name(trace));
	if (input->rate < 1)
		fprintf(out, "<p>From a sample of %g %% of the pages.</p>\n", 100 * input->rate);
	trace_answers(input, trace, out);
	snprintf(m.title, sizeof(m.title), "Miss ratio by memory: %s", base_name(trace));
	m.row_title = "memory (MiB)";
	m.x_decimals = 2;
	m.value_title = "miss ratio (misses per access)";
	if (m.rows > 1)
		r = matrix_curves(&m, out);
	if (!r)
		r = side_by_side(&m, trace, out);
	if (!r)
		trace_verdict(&m, out);
	if (!r)
		r = trace_windows(input, trace, out);
	if (!r)
		r = trace_ages(input, trace, out);
	matrix_free(&m);
	return r;
}

static int trace_sections(const struct report_input *input, FILE *out)
{
	struct names traces = {0};
	int r = 0;

	for (size_t i = 0; i < input->nr_points && !r; i++)
		r = names_add(&traces, input->points[i].trace);
	for (size_t i = 0; i < traces.nr && !r; i++)
		r = trace_section(input, traces.name[i], out);
	free(traces.name);
	return r;
}

/* ---- one suite ---- */

static bool same_metric(const struct report_row *a, const struct report_row *b)
{
	return !strcmp(a->suite, b->suite) && !strcmp(a->metric, b->metric);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Suites name their metrics so that the unit can be told. */
static const char *unit_of(const char *metric)
{
	if (ends_with(metric, "_ratio"))
		return "ratio of two policies";
	if (ends_with(metric, "_per_read"))
		return "pages per read";
	if (!strcmp(metric, "iops"))
		return "operations per second";
	if (ends_with(metric, "_per_s"))
		return "per second";
	if (ends_with(metric, "_ms"))
		return "milliseconds";
	if (ends_with(metric, "_s") || !strcmp(metric, "seconds"))
		return "seconds";
	return "count";
}

/* Up to BENCH_ROWS rows of one metric, from row *next on. */
static int bench_part(const struct report_input *input, const struct report_row *first,
		      size_t *next, size_t part, FILE *out)
{
	double deviations[BENCH_ROWS];
	char value_title[200];
	struct matrix m;
	size_t n = 0;
	int r = matrix_make(&m, BENCH_ROWS, 2);

	if (r)
		return r;
	for (; *next < input->nr_rows && n < BENCH_ROWS; (*next)++) {
		const struct report_row *row = &input->rows[*next];

		if (!same_metric(row, first))
			continue;
		snprintf(m.labels[n], MATRIX_LABEL, "%s, %s", row->case_name, row->policy);
		m.y[n] = row->published;
		m.y[BENCH_ROWS + n] = row->measured;
		deviations[n++] = 100 * row->deviation;
	}
	/* Fewer rows than there was room for: the second series moves up. */
	memmove(m.y + n, m.y + BENCH_ROWS, n * sizeof(*m.y));
	m.rows = n;
	m.names[0] = "published";
	m.names[1] = "measured";
	m.extra = deviations;
	m.extra_title = "deviation (%)";
	m.decimals = -1;
	m.row_title = "case, policy";
	snprintf(value_title, sizeof(value_title), "%.100s (%s)", first->metric,
		 unit_of(first->metric));
	m.value_title = value_title;
	snprintf(m.title, sizeof(m.title), part ? "%.100s: %.100s, part %zu" : "%.100s: %.100s",
		 first->suite, first->metric, part + 1);
	r = n ? matrix_dots(&m, out) : 0;
	matrix_free(&m);
	return r;
}

static int bench_metric(const struct report_input *input, size_t at, FILE *out)
{
	const struct report_row *first = &input->rows[at];
	int r = 0;

	for (size_t part = 0; at < input->nr_rows && !r; part++)
		r = bench_part(input, first, &at, part, out);
	return r;
}

static bool is_first(const struct report_input *input, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (same_metric(&input->rows[i], &input->rows[at]))
			return false;
	}
	return true;
}

static void bench_verdict_row(const struct report_input *input, const struct report_row *of,
			      FILE *out)
{
	const struct report_row *worst = NULL;
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < input->nr_rows; i++) {
		const struct report_row *row = &input->rows[i];

		if (!same_metric(row, of) || isnan(row->deviation))
			continue;
		sum += fabs(row->deviation);
		n++;
		if (!worst || fabs(row->deviation) > fabs(worst->deviation))
			worst = row;
	}
	if (!worst)
		return;
	fputs("<tr><th scope=\"row\">", out);
	xml_text(out, of->suite);
	fputs("</th><td>", out);
	xml_text(out, of->metric);
	fprintf(out, "</td><td>%zu</td><td>%.2f</td><td>%+.2f</td><td>", n, 100 * sum / (double)n,
		100 * worst->deviation);
	xml_text(out, worst->case_name);
	fputs(", ", out);
	xml_text(out, worst->policy);
	fputs("</td></tr>\n", out);
}

static int bench_section(const struct report_input *input, FILE *out)
{
	int r = 0;

	put_element(out, "h2", "Published beside measured");
	put_element(out, "h3", "Verdict");
	fputs("<div class=\"wide\"><table><thead><tr><th scope=\"col\">suite</th><th "
	      "scope=\"col\">metric</th>"
	      "<th scope=\"col\">rows compared</th><th scope=\"col\">mean deviation, either way "
	      "(%)</th>"
	      "<th scope=\"col\">largest (%)</th><th "
	      "scope=\"col\">where</th></tr></thead>\n<tbody>\n",
	      out);
	for (size_t i = 0; i < input->nr_rows; i++) {
		if (is_first(input, i))
			bench_verdict_row(input, &input->rows[i], out);
	}
	fputs("</tbody></table></div>\n", out);
	for (size_t i = 0; i < input->nr_rows && !r; i++) {
		if (is_first(input, i))
			r = bench_metric(input, i, out);
	}
	return r;
}

/* ---- the page ---- */

static void put_style(FILE *out)
{
	fputs("<style>\n:root{color-scheme:light dark}\n"
	      "body{font:16px/1.5 system-ui,sans-serif;max-width:760px;margin:0 "
	      "auto;padding:1rem;color:#222;"
	      "background:#fff}\n"
	      "h1,h2,h3{line-height:1.2}h2{margin-top:2.5rem;overflow-wrap:anywhere}\n"
	      "figure{margin:1.5rem 0}figcaption{font-size:.9rem;margin:.5rem 0}\n"
	      "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f2f2f2;padding:.6rem;"
	      "border-radius:4px}\n"
	      ".wide{overflow-x:auto}.wide svg{min-width:480px}\n"
	      "table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\n"
	      "th,td{padding:.2rem .6rem;border-bottom:1px solid #ccc;text-align:right}\n"
	      "tbody th{font-weight:400}th:first-child{text-align:left}\n"
	      "@media screen and (prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181c}"
	      "pre{background:#24272d}th,td{border-color:#444}}\n"
	      "@media "
	      "print{body{max-width:none;font-size:11pt}.wide{overflow:visible}svg,tr{break-inside:"
	      "avoid}"
	      "h2,h3,figcaption{break-after:avoid}}\n",
	      out);
	svg_style(out);
	fputs("</style>\n", out);
}

static int input_section(const struct report_input *input, FILE *out)
{
	int r;

	fputs("<section>\n", out);
	fputs("<p>From <b>", out);
	xml_text(out, base_name(input->path));
	fputs(input->command ? "</b>, made by</p>\n"
			     : "</b>, which does not say how it was made.</p>\n",
	      out);
	if (input->command)
		put_element(out, "pre", input->command);
	if (!input->nr_points && !input->nr_rows)
		put_element(out, "p", "It has no results.");
	r = trace_sections(input, out);
	if (!r && input->nr_rows)
		r = bench_section(input, out);
	fputs("</section>\n", out);
	return r;
}

int report_html(const struct report_input *inputs, size_t nr, FILE *out)
{
	int r = 0;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>Foliage report</title>\n",
	      out);
	put_style(out);
	fputs("</head>\n<body>\n<h1>Foliage report</h1>\n", out);
	for (size_t i = 0; i < nr && !r; i++)
		r = input_section(&inputs[i], out);
	fputs("</body>\n</html>\n", out);
	return r;
}
