/* SPDX-License-Identifier: MIT
 *
 * Small comma-separated tables held in memory: a header, no quoting. The compiled-in data is all of
 * this kind.
 */
#ifndef FOLIAGE_WORKLOAD_CSV_H
#define FOLIAGE_WORKLOAD_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct csv {
	char *text;                 /* a copy, cut into fields */
	char **fields;              /* [row * nr_columns + column]; row 0 is the header */
	size_t nr_columns, nr_rows; /* rows without the header */
};

/* -EILSEQ: no header, or a row with another number of fields; `name` is for the message. */
int csv_parse(const char *name, const char *text, size_t length, struct csv *csv, struct err *err);
void csv_free(struct csv *csv);

/* The column's index, or -1. */
int csv_column(const struct csv *csv, const char *name);
/* Field of row 0.. (after the header); NULL for column -1. */
const char *csv_text(const struct csv *csv, size_t row, int column);
/* The same as a number; false when there is no such column or it is not one. */
bool csv_number(const struct csv *csv, size_t row, int column, double *value);

#endif
