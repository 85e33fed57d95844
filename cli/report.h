/* SPDX-License-Identifier: MIT
 *
 * The results that a report shows, read from the json of replay, mrc and bench.
 */
#ifndef FOLIAGE_CLI_REPORT_H
#define FOLIAGE_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Of replay and mrc: one policy in one room. */
struct report_point {
	const char *trace, *policy;
	double pages, miss_ratio;
};

/* Of replay --ages: one look at the ages of the pages, the oldest first. */
enum { REPORT_AGES = 4 };
struct report_look {
	double access, min_seq; /* min_seq NaN: inactive and active */
	double pages[REPORT_AGES];
	size_t nr;
};

struct report_ages {
	const char *trace, *policy;
	double room;
	struct report_look *looks;
	size_t nr;
};

/* Of mrc. */
struct report_window {
	const char *trace;
	double end, pages;
};

struct report_answer {
	const char *trace, *policy;
	double target, pages; /* pages NaN: not reached */
	bool at_most;
};

/* Of bench; NaN: none. */
struct report_row {
	const char *suite, *case_name, *metric, *policy;
	double published, measured, deviation;
};

struct report_input {
	const char *path, *command; /* command: NULL when the file does not say */
	double rate;                /* of an mrc; 1: exact */
	struct report_point *points;
	struct report_window *windows;
	struct report_answer *answers;
	struct report_row *rows;
	struct report_ages *ages;
	size_t nr_ages;
	size_t nr_points, nr_windows, nr_answers, nr_rows;
	void *json; /* owns the texts */
};

/* Read one file; the message names the file, the place and the reason. -ENOSYS: built without
 * json-c. */
int report_read(const char *path, struct report_input *input, struct err *err);
void report_input_free(struct report_input *input);

/* The page. 0 or -ENOMEM. */
int report_html(const struct report_input *inputs, size_t nr, FILE *out);

#endif
