/* SPDX-License-Identifier: MIT
 *
 * Numbers by rows and series, shown twice: as a chart and as the table beneath it.
 */
#ifndef FOLIAGE_CLI_REPORT_MATRIX_H
#define FOLIAGE_CLI_REPORT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { MATRIX_LABEL = 200 };

struct matrix {
	char title[400];
	const char *row_title, *value_title; /* with their units */
	size_t rows, series;
	double *x;                    /* [rows], of curves */
	char (*labels)[MATRIX_LABEL]; /* [rows], of dots */
	const char **names;           /* [series] */
	double *y;                    /* [series][rows]; NaN: empty */
	int x_decimals;               /* of x in the table */
	int decimals;                 /* of the table; -1: as many as six digits need */
	const double *extra;          /* [rows] one more column of the table alone; NULL: none */
	const char *extra_title;
};

/* Empty cells everywhere. -ENOMEM: nothing to free. */
int matrix_make(struct matrix *m, size_t rows, size_t series);
void matrix_free(struct matrix *m);

/* A <figure> of a chart of lines, or of dots, and its table. -ENOMEM. */
int matrix_curves(const struct matrix *m, FILE *out);
int matrix_dots(const struct matrix *m, FILE *out);
/* Rows from the left to the right, series from the top: each value's part of its row, as a heat
 * map; `label` stands beside the series. The table has the values. */
int matrix_heat(const struct matrix *m, const char *label, FILE *out);

#endif
