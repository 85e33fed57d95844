/* SPDX-License-Identifier: MIT
 *
 * Charts as SVG: curves, and rows of dots. Axes have titles with units; series differ in dash and
 * marker, so that they can be told apart without colour; light and dark follow the reader's system.
 */
#ifndef FOLIAGE_CLI_SVG_H
#define FOLIAGE_CLI_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A point whose y is NaN is missing: the line has a gap there. */
struct svg_series {
	const char *name;
	const double *x, *y;
	size_t n;
};

struct svg_chart {
	const char *title, *x_title, *y_title;
	const struct svg_series *series;
	size_t nr;
	double y_max; /* the axis ends there; 0: by the data. It begins at zero. */
};

/* One row a label, on it a marker for every series: y[row] of the series (x is not used, n = rows).
 */
struct svg_dots {
	const char *title, *x_title, *y_title;
	const char *const *labels;
	size_t rows;
	const struct svg_series *series;
	size_t nr;
};

/* A field of rows and columns whose shade is value[row * columns + column], 0 to 1; each has its
 * tenths as a digit, X for all, so that it reads without the shade. NaN: empty. */
struct svg_heat {
	const char *title, *x_title, *y_title;
	const char *const *row_labels;    /* from the top */
	const char *const *column_labels; /* every second, fourth ... of many is drawn */
	size_t rows, columns;
	const double *value;
};

/* The rules that the charts' classes need, for a page's <style>. */
void svg_style(FILE *out);
/* One <svg> element. `alone`: it carries its style, as a file of its own must. Several charts are
 * one below the other. */
void svg_charts(FILE *out, const struct svg_chart *charts, size_t nr, bool alone);
void svg_dots(FILE *out, const struct svg_dots *dots, bool alone);
void svg_heat(FILE *out, const struct svg_heat *heat, bool alone);

/* Text as XML wants it; bytes that are not UTF-8 and control characters become U+FFFD. */
void xml_text(FILE *out, const char *text);

#endif
