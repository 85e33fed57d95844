/* SPDX-License-Identifier: MIT
 *
 * A part of a trace's pages that stands for all of them, so that a curve costs a hundredth.
 */
#ifndef FOLIAGE_TRACE_SAMPLE_H
#define FOLIAGE_TRACE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* Every access to the chosen pages of `whole`, in order, renumbered: one trace for each of the `nr`
 * rates (0 < rate
 * <= 1, ascending; a page of one is in all that follow). Equal `seed`, equal pages. Counts the
 * accesses of `whole` (resolved_counts()). -ENOMEM, -EOVERFLOW (2^32 accesses to one page): nothing
 * is left to free. -EINVAL: no such rate, or more than SAMPLE_RATES_MAX of them. A rate so small
 * that it chooses no page gives an empty trace. */
int sample_take(struct resolved *whole, const double *rates, size_t nr, uint64_t seed,
		struct resolved *out);

/* Misses in a sample as a ratio of the whole trace's accesses. The sample should have rate *
 * accesses; what it has more or less is due to the hottest pages, whose accesses hit, so misses are
 * compared with what it should have. */
double sample_miss_ratio(uint64_t misses, double rate, uint64_t accesses);

enum { SAMPLE_RATES_MAX = 250 };

#endif
