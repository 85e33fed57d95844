/* SPDX-License-Identifier: MIT
 *
 * The text is copied once and cut in place: commas and line ends become the fields' terminators.
 */
#include "workload/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t count_char(const char *text, size_t length, char wanted)
{
	size_t nr = 0;

	for (size_t i = 0; i < length; i++)
		nr += text[i] == wanted;
	return nr;
}

/* Cut one line into fields; returns how many there were. */
static size_t cut_line(char *line, char **fields, size_t max)
{
	size_t nr = 0;
	char *field;

	while ((field = strsep(&line, ","))) {
		if (nr < max)
			fields[nr] = field;
		nr++;
	}
	return nr;
}

static int cut(const char *name, struct csv *csv, struct err *err)
{
	char *rest = csv->text, *line;
	size_t row = 0;

	while ((line = strsep(&rest, "\n"))) {
		size_t nr;

		if (!*line)
			continue;
		nr = cut_line(line, csv->fields + row * csv->nr_columns, csv->nr_columns);
		if (nr != csv->nr_columns)
			return err_set(err, -EILSEQ, "%s: row %zu: %zu fields instead of %zu", name,
				       row, nr, csv->nr_columns);
		row++;
	}
	csv->nr_rows = row - 1;
	return 0;
}

int csv_parse(const char *name, const char *text, size_t length, struct csv *csv, struct err *err)
{
	const char *eol = memchr(text, '\n', length);
	size_t lines = count_char(text, length, '\n') + 1;
	int r;

	*csv = (struct csv){0};
	if (!eol || eol == text)
		return err_set(err, -EILSEQ, "%s: no header", name);
	csv->nr_columns = count_char(text, (size_t)(eol - text), ',') + 1;
	csv->text = malloc(length + 1);
	csv->fields = calloc(lines * csv->nr_columns, sizeof(*csv->fields));
	if (!csv->text || !csv->fields) {
		csv_free(csv);
		return err_set(err, -ENOMEM, "%s: out of memory", name);
	}
	memcpy(csv->text, text, length);
	csv->text[length] = 0;
	r = cut(name, csv, err);
	if (r)
		csv_free(csv);
	return r;
}

void csv_free(struct csv *csv)
{
	free(csv->text);
	free(csv->fields);
	*csv = (struct csv){0};
}

int csv_column(const struct csv *csv, const char *name)
{
	for (size_t i = 0; i < csv->nr_columns; i++) {
		if (!strcmp(csv->fields[i], name))
			return (int)i;
	}
	return -1;
}

const char *csv_text(const struct csv *csv, size_t row, int column)
{
	return column < 0 ? NULL : csv->fields[(row + 1) * csv->nr_columns + (size_t)column];
}

bool csv_number(const struct csv *csv, size_t row, int column, double *value)
{
	const char *text = csv_text(csv, row, column);
	char *end;

	if (!text || !*text)
		return false;
	*value = strtod(text, &end);
	return !*end;
}
