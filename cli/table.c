/* SPDX-License-Identifier: MIT
 *
 * Cells keep their values; each format renders them when printing, because only then are the widths
 * known. Nothing depends on the locale: two runs print the same bytes.
 */
#include "cli/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

const char *const table_formats[] = {"table", "csv", "json", NULL};

struct cell {
	bool filled;
	union {
		char *text;
		uint64_t count;
		double real;
	};
};

struct table {
	const struct table_column *columns;
	size_t nr_columns, nr_rows, max_rows;
	struct cell *cells; /* [row][column] */
};

struct table *table_create(const struct table_column *columns, size_t nr)
{
	struct table *table = calloc(1, sizeof(*table));

	if (table) {
		table->columns = columns;
		table->nr_columns = nr;
	}
	return table;
}

static bool is_text(const struct table_column *column)
{
	return column->kind == TABLE_TEXT || column->kind == TABLE_RAW;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->nr_rows * table->nr_columns; i++) {
		if (is_text(&table->columns[i % table->nr_columns]))
			free(table->cells[i].text);
	}
	free(table->cells);
	free(table);
}

static struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
	return &table->cells[row * table->nr_columns + column];
}

int table_row(struct table *table)
{
	size_t bytes = table->nr_columns * sizeof(struct cell);

	if (table->nr_rows == table->max_rows) {
		size_t max = MAX(table->max_rows * 2, 16u);
		struct cell *cells = realloc(table->cells, max * bytes);

		if (!cells)
			return -ENOMEM;
		table->cells = cells;
		table->max_rows = max;
	}
	memset(cell_at(table, table->nr_rows++, 0), 0, bytes);
	return 0;
}

static struct cell *fill(struct table *table, size_t column)
{
	struct cell *cell = cell_at(table, table->nr_rows - 1, column);

	cell->filled = true;
	return cell;
}

int table_text(struct table *table, size_t column, const char *text)
{
	char *copy = strdup(text);
	struct cell *cell;

	if (!copy)
		return -ENOMEM;
	cell = fill(table, column);
	free(cell->text);
	cell->text = copy;
	return 0;
}

int table_count(struct table *table, size_t column, uint64_t value)
{
	fill(table, column)->count = value;
	return 0;
}

int table_real(struct table *table, size_t column, double value)
{
	fill(table, column)->real = value;
	return 0;
}

size_t table_rows(const struct table *table)
{
	return table->nr_rows;
}

/* ---- for people ---- */

const char *count_text(uint64_t value, char *text)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	char *out = text;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = 0;
	return text;
}

/* What people see in a cell; a number is written to `buffer`. */
static const char *shown(const struct table_column *column, const struct cell *cell, char *buffer,
			 size_t size)
{
	if (!cell->filled)
		return "";
	switch (column->kind) {
	case TABLE_TEXT:
	case TABLE_RAW:
		return cell->text;
	case TABLE_COUNT:
		return count_text(cell->count, buffer);
	case TABLE_REAL:
		snprintf(buffer, size, "%.*f", column->decimals, cell->real);
		return buffer;
	}
	return "";
}

/* Columns that text takes on a terminal: continuation bytes of UTF-8 take none. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xC0) != 0x80;
	return width;
}

/* The width of a column for people; 0: it is left out. */
static size_t column_width(const struct table *table, size_t column, size_t first, size_t end)
{
	const struct table_column *c = &table->columns[column];
	size_t width = 0;
	bool any = false;

	if (!c->title || c->json_only)
		return 0;
	for (size_t row = first; row < end; row++) {
		const struct cell *cell = cell_at(table, row, column);
		char buffer[400];

		any |= cell->filled;
		width = MAX(width, width_of(shown(c, cell, buffer, sizeof(buffer))));
	}
	return any ? MAX(width, width_of(c->title)) : 0;
}

static void put_padded(FILE *out, const char *text, size_t width, bool left, bool last)
{
	size_t have = width_of(text);
	int pad = have < width ? (int)(width - have) : 0;

	if (!left)
		fprintf(out, "%*s%s", pad, "", text);
	else if (last)
		fputs(text, out);
	else
		fprintf(out, "%s%*s", text, pad, "");
}

/* One line: of titles when `row` is SIZE_MAX. */
static void print_line(const struct table *table, const size_t *widths, size_t row, FILE *out)
{
	size_t last = table->nr_columns;
	bool began = false;

	while (last && !widths[last - 1])
		last--;
	for (size_t i = 0; i < last; i++) {
		const struct table_column *c = &table->columns[i];
		char buffer[400];

		if (!widths[i])
			continue;
		if (began)
			fputs("  ", out);
		began = true;
		put_padded(out,
			   row == SIZE_MAX
				   ? c->title
				   : shown(c, cell_at(table, row, i), buffer, sizeof(buffer)),
			   widths[i], c->kind == TABLE_TEXT, i + 1 == last);
	}
	fputc('\n', out);
}

static void print_people(const struct table *table, size_t first, size_t end, FILE *out)
{
	size_t *widths = calloc(table->nr_columns, sizeof(*widths));

	if (!widths)
		return;
	for (size_t i = 0; i < table->nr_columns; i++)
		widths[i] = column_width(table, i, first, end);
	if (end > first)
		print_line(table, widths, SIZE_MAX, out);
	for (size_t row = first; row < end; row++)
		print_line(table, widths, row, out);
	free(widths);
}

/* ---- csv ---- */

static void csv_text(FILE *out, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void print_number(FILE *out, const struct table_column *column, const struct cell *cell)
{
	if (column->kind == TABLE_COUNT)
		fprintf(out, "%llu", (unsigned long long)cell->count);
	else
		fprintf(out, "%.*f", column->precise, cell->real);
}

static void csv_row(const struct table *table, size_t row, FILE *out)
{
	bool began = false;

	for (size_t i = 0; i < table->nr_columns; i++) {
		const struct table_column *c = &table->columns[i];
		const struct cell *cell = cell_at(table, row, i);

		if (c->json_only)
			continue;
		if (began)
			fputc(',', out);
		began = true;
		if (!cell->filled)
			continue;
		if (c->kind == TABLE_TEXT)
			csv_text(out, cell->text);
		else
			print_number(out, c, cell);
	}
	fputc('\n', out);
}

static void print_csv(const struct table *table, size_t first, size_t end, FILE *out)
{
	bool began = false;

	for (size_t i = 0; i < table->nr_columns; i++) {
		if (table->columns[i].json_only)
			continue;
		if (began)
			fputc(',', out);
		began = true;
		csv_text(out, table->columns[i].key);
	}
	fputc('\n', out);
	for (size_t row = first; row < end; row++)
		csv_row(table, row, out);
}

/* ---- json ---- */

size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;

	if (s[0] > 0xF4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
	    (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return n;
}

void json_string(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s) {
		size_t n = utf8_length(s);

		if (!n) {
			fputs("\\ufffd", out);
			s++;
			continue;
		}
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s == '\n')
			fputs("\\n", out);
		else if (*s == '\t')
			fputs("\\t", out);
		else if (*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			fwrite(s, 1, n, out);
		s += n;
	}
	fputc('"', out);
}

static void json_row(const struct table *table, size_t row, FILE *out)
{
	fputc('{', out);
	for (size_t i = 0; i < table->nr_columns; i++) {
		const struct table_column *c = &table->columns[i];
		const struct cell *cell = cell_at(table, row, i);

		if (i)
			fputs(", ", out);
		json_string(out, c->key);
		fputs(": ", out);
		if (!cell->filled)
			fputs("null", out);
		else if (c->kind == TABLE_RAW)
			fputs(cell->text, out);
		else if (c->kind == TABLE_TEXT)
			json_string(out, cell->text);
		else
			print_number(out, c, cell);
	}
	fputc('}', out);
}

static void print_json(const struct table *table, size_t first, size_t end, FILE *out)
{
	fputs("[\n", out);
	for (size_t row = first; row < end; row++) {
		fputs("  ", out);
		json_row(table, row, out);
		fputs(row + 1 < end ? ",\n" : "\n", out);
	}
	fputs("]\n", out);
}

void table_print(const struct table *table, enum table_format format, size_t first, size_t end,
		 FILE *out)
{
	switch (format) {
	case TABLE_PEOPLE:
		print_people(table, first, end, out);
		break;
	case TABLE_CSV:
		print_csv(table, first, end, out);
		break;
	case TABLE_JSON:
		print_json(table, first, end, out);
		break;
	}
}
