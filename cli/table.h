/* SPDX-License-Identifier: MIT
 *
 * Results as rows and columns, printed for people (table), for spreadsheets (csv) or for programs
 * (json).
 */
#ifndef FOLIAGE_CLI_TABLE_H
#define FOLIAGE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum table_format { TABLE_PEOPLE, TABLE_CSV, TABLE_JSON };
extern const char *const table_formats[]; /* "table", "csv", "json", NULL: for parse_choice() */

enum table_kind {
	TABLE_TEXT,
	TABLE_COUNT, /* people see 1,234,567 */
	TABLE_REAL,
	TABLE_RAW, /* text that is json already; of json_only columns */
};

struct table_column {
	const char *key;   /* in csv and json */
	const char *title; /* for people; NULL: they do not see the column */
	enum table_kind kind;
	int decimals; /* of a real, for people */
	int precise;  /* of a real, in csv and json */
	bool json_only;
};

struct table;

/* NULL when memory is short. The columns must live as long as the table. */
struct table *table_create(const struct table_column *columns, size_t nr);
void table_free(struct table *table);

/* Start a row of empty cells, then fill it; a cell left empty is blank, or null in json. All return
 * 0 or -ENOMEM. Text is copied. */
int table_row(struct table *table);
int table_text(struct table *table, size_t column, const char *text);
int table_count(struct table *table, size_t column, uint64_t value);
int table_real(struct table *table, size_t column, double value);
size_t table_rows(const struct table *table);

/* Print the header and the rows from `first` up to `end`. For people, a column without any filled
 * cell is left out. */
void table_print(const struct table *table, enum table_format format, size_t first, size_t end,
		 FILE *out);

/* Length of the well-formed UTF-8 sequence that starts at `s`, 0 when it is none. */
size_t utf8_length(const unsigned char *s);
/* A quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);
/* 1234567 as "1,234,567"; `text` holds at least 32 bytes. */
const char *count_text(uint64_t value, char *text);

#endif
