/* SPDX-License-Identifier: MIT
 *
 * Mean of a few independent runs and half the width of its 95 % confidence interval, by Student's t.
 * Not thread-safe; zero-initialised it is empty.
 */
#ifndef FOLIAGE_WORKLOAD_INTERVAL_H
#define FOLIAGE_WORKLOAD_INTERVAL_H

#include <stddef.h>

/* Runs from which on suites report an interval: of two it would be wider than anything it says. */
enum { INTERVAL_RUNS = 3 };

struct interval {
	size_t n;
	double mean;
	double squares; /* of deviations from the mean */
};

void interval_add(struct interval *i, double value);
/* In the unit of the values; 0 for fewer than two. */
double interval_half(const struct interval *i);

#endif
