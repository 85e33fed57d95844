/* SPDX-License-Identifier: MIT
 *
 * What mrc found, and how it is printed and drawn.
 */
#ifndef FOLIAGE_CLI_MRC_PRINT_H
#define FOLIAGE_CLI_MRC_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/table.h"
#include "mm/policies.h"

struct mrc_cell {
	bool done;
	uint64_t accesses, misses; /* that ran */
	double rate;               /* the part of the pages that ran */
	double miss_ratio;         /* of the whole trace */
	double noise;              /* of a sample of its size */
	double bound;              /* how far it may be from the exact one; NAN: not known */
};

struct mrc_trace {
	const char *path;
	uint64_t accesses;
	uint32_t unique;
	uint32_t *sizes;
	size_t nr_sizes;
	struct mrc_cell *cells; /* [size][policy] */
	uint64_t window;        /* accesses of a window */
	uint32_t *windows;      /* unique pages of each */
	size_t nr_windows;
};

struct mrc {
	char *command;
	const struct policy_choice *choices;
	size_t nr_choices;
	double rate, target; /* 1: exact; NaN: none */
	struct mrc_trace *traces;
	size_t nr_traces;
};

/* Indices of the sizes from the smallest up, in `order`. */
void mrc_sort_sizes(const struct mrc_trace *trace, size_t *order);
/* 0 or -ENOMEM. csv is curves, or the working set; json is everything. */
int mrc_print(const struct mrc *mrc, enum table_format format, bool working_set, FILE *out);
int mrc_print_svg(const struct mrc *mrc, FILE *out);

#endif
