/* SPDX-License-Identifier: MIT
 *
 * Mean and variance one value at a time (Welford), so that no suite keeps its runs' values for it.
 */
#include "workload/interval.h"

#include <math.h>

#include "base/bits.h"

/* Student's t for 95 % and n - 1 degrees of freedom. */
static double student(size_t n)
{
	static const double t[] = {0,     0,     12.706, 4.303, 3.182, 2.776,
				   2.571, 2.447, 2.365,  2.306, 2.262};

	return n < ARRAY_SIZE(t) ? t[n] : 1.96 + 2.4 / (double)(n - 1);
}

void interval_add(struct interval *i, double value)
{
	const double before = value - i->mean;

	i->n++;
	i->mean += before / (double)i->n;
	i->squares += before * (value - i->mean);
}

double interval_half(const struct interval *i)
{
	if (i->n < 2)
		return 0;
	return student(i->n) * sqrt(i->squares / (double)(i->n - 1) / (double)i->n);
}
