/* SPDX-License-Identifier: MIT
 *
 * See latency.h.
 */
#include "workload/latency.h"

#include "base/bits.h"

/* The first value of a bucket. */
static double bucket_start(uint32_t i)
{
	uint32_t power = i / LATENCY_STEPS, step = i % LATENCY_STEPS;

	if (!power)
		return step;
	return (double)(LATENCY_STEPS + step) * (double)(UINT64_C(1) << (power - 1));
}

void latency_add(struct latency *l, uint64_t ns)
{
	uint32_t bits = (uint32_t)fls64(ns | (LATENCY_STEPS - 1)), power = bits - 3;
	uint32_t i = power ? power * LATENCY_STEPS + (uint32_t)(ns >> (power - 1)) - LATENCY_STEPS
			   : (uint32_t)ns;

	l->buckets[MIN(i, (uint32_t)LATENCY_BUCKETS - 1)]++;
	l->nr++;
}

double latency_percentile(const struct latency *l, double percent)
{
	double wanted = (double)l->nr * percent / 100, below = 0;

	for (uint32_t i = 0; i < LATENCY_BUCKETS && l->nr; i++) {
		double here = (double)l->buckets[i], start = bucket_start(i);

		if (here > 0 && below + here >= wanted)
			return start + (bucket_start(i + 1) - start) * (wanted - below) / here;
		below += here;
	}
	return 0;
}
