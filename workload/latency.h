/* SPDX-License-Identifier: MIT
 *
 * Latencies by percentile: a histogram with eight buckets for each power of two, so that a value is
 * known to one part in eight, and interpolated within its bucket.
 */
#ifndef FOLIAGE_WORKLOAD_LATENCY_H
#define FOLIAGE_WORKLOAD_LATENCY_H

#include <stdint.h>

enum { LATENCY_STEPS = 8, LATENCY_BUCKETS = 64 * LATENCY_STEPS };

struct latency {
	uint64_t nr, buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);
/* The value below which `percent` of all lie; 0 when there are none. */
double latency_percentile(const struct latency *l, double percent);

#endif
