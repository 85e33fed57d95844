/* SPDX-License-Identifier: MIT
 *
 * Chart and table are made from one array, so that they cannot differ. A table wider than the page
 * scrolls in its own box; on paper it is whole.
 */
#include "cli/report_matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/svg.h"
#include "cli/table.h"

int matrix_make(struct matrix *m, size_t rows, size_t series)
{
	*m = (struct matrix){.rows = rows, .series = series, .decimals = 4};
	m->x = calloc(rows + 1, sizeof(*m->x));
	m->labels = calloc(rows + 1, sizeof(*m->labels));
	m->names = calloc(series + 1, sizeof(*m->names));
	m->y = calloc(rows * series + 1, sizeof(*m->y));
	if (!m->x || !m->labels || !m->names || !m->y) {
		matrix_free(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < rows * series; i++)
		m->y[i] = NAN;
	return 0;
}

void matrix_free(struct matrix *m)
{
	free(m->x);
	free(m->labels);
	free(m->names);
	free(m->y);
	memset(m, 0, sizeof(*m));
}

static void put_value(FILE *out, double value, int decimals)
{
	char count[32];

	fputs("<td>", out);
	if (isnan(value))
		; /* stays empty */
	else if (decimals < 0 && fabs(value) >= 10000 && fabs(value) < 1e15)
		fprintf(out, "%s%s", value < 0 ? "-" : "",
			count_text((uint64_t)fabs(round(value)), count));
	else if (decimals < 0)
		fprintf(out, "%.6g", value);
	else
		fprintf(out, "%.*f", decimals, value);
	fputs("</td>", out);
}

static void put_head(FILE *out, const char *text)
{
	fputs("<th scope=\"col\">", out);
	xml_text(out, text);
	fputs("</th>", out);
}

static void put_table(const struct matrix *m, bool labels, FILE *out)
{
	fputs("<div class=\"wide\"><table><thead><tr>", out);
	put_head(out, m->row_title);
	for (size_t s = 0; s < m->series; s++)
		put_head(out, m->names[s]);
	if (m->extra)
		put_head(out, m->extra_title);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t r = 0; r < m->rows; r++) {
		fputs("<tr><th scope=\"row\">", out);
		if (labels)
			xml_text(out, m->labels[r]);
		else
			fprintf(out, "%.*f", m->x_decimals, m->x[r]);
		fputs("</th>", out);
		for (size_t s = 0; s < m->series; s++)
			put_value(out, m->y[s * m->rows + r], m->decimals);
		if (m->extra)
			put_value(out, m->extra[r], 2);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

static struct svg_series *make_series(const struct matrix *m)
{
	struct svg_series *series = calloc(m->series + 1, sizeof(*series));

	for (size_t s = 0; series && s < m->series; s++)
		series[s] = (struct svg_series){
			.name = m->names[s], .x = m->x, .y = m->y + s * m->rows, .n = m->rows};
	return series;
}

static void end_figure(const struct matrix *m, bool labels, FILE *out)
{
	fputs("<figcaption>", out);
	xml_text(out, m->value_title);
	fputs(": the same numbers</figcaption>\n", out);
	put_table(m, labels, out);
	fputs("</figure>\n", out);
}

int matrix_curves(const struct matrix *m, FILE *out)
{
	struct svg_series *series = make_series(m);
	const struct svg_chart chart = {.title = m->title,
					.x_title = m->row_title,
					.y_title = m->value_title,
					.series = series,
					.nr = m->series};

	if (!series)
		return -ENOMEM;
	fputs("<figure>\n<div class=\"wide\">", out);
	svg_charts(out, &chart, 1, false);
	fputs("</div>\n", out);
	end_figure(m, false, out);
	free(series);
	return 0;
}

int matrix_dots(const struct matrix *m, FILE *out)
{
	struct svg_series *series = make_series(m);
	const char **labels = calloc(m->rows + 1, sizeof(*labels));
	const struct svg_dots dots = {.title = m->title,
				      .x_title = m->value_title,
				      .y_title = m->row_title,
				      .labels = labels,
				      .rows = m->rows,
				      .series = series,
				      .nr = m->series};
	int r = series && labels ? 0 : -ENOMEM;

	if (!r) {
		for (size_t i = 0; i < m->rows; i++)
			labels[i] = m->labels[i];
		fputs("<figure>\n<div class=\"wide\">", out);
		svg_dots(out, &dots, false);
		fputs("</div>\n", out);
		end_figure(m, true, out);
	}
	free(series);
	free(labels);
	return r;
}

/* Each value as a part of what its row has in all. */
static double *row_parts(const struct matrix *m)
{
	double *parts = calloc(m->rows * m->series + 1, sizeof(*parts));

	for (size_t r = 0; parts && r < m->rows; r++) {
		double sum = 0;

		for (size_t s = 0; s < m->series; s++) {
			double value = m->y[s * m->rows + r];

			sum += isnan(value) ? 0 : value;
		}
		for (size_t s = 0; s < m->series; s++)
			parts[s * m->rows + r] = sum > 0 ? m->y[s * m->rows + r] / sum : NAN;
	}
	return parts;
}

int matrix_heat(const struct matrix *m, const char *label, FILE *out)
{
	const char **columns = calloc(m->rows + 1, sizeof(*columns));
	double *parts = row_parts(m);
	int r = columns && parts ? 0 : -ENOMEM;

	if (!r) {
		const struct svg_heat heat = {.title = m->title,
					      .x_title = m->row_title,
					      .y_title = label,
					      .row_labels = m->names,
					      .column_labels = columns,
					      .rows = m->series,
					      .columns = m->rows,
					      .value = parts};

		for (size_t i = 0; i < m->rows; i++)
			columns[i] = m->labels[i];
		fputs("<figure>\n<div class=\"wide\">", out);
		svg_heat(out, &heat, false);
		fputs("</div>\n<p>The stronger the shade, the more of the pages in memory are of "
		      "that age; the "
		      "digit says how many tenths, X all.</p>\n",
		      out);
		end_figure(m, true, out);
	}
	free(columns);
	free(parts);
	return r;
}
