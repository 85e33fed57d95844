/* SPDX-License-Identifier: MIT
 *
 * From refaults to I/O operations a second: reads of a closed loop of jobs cost a copy out of the
 * cache, and some of them a page from the device besides.
 */
#ifndef FOLIAGE_WORKLOAD_IOPS_H
#define FOLIAGE_WORKLOAD_IOPS_H

#include <stddef.h>

struct iops_model {
	double hit;    /* seconds of the whole system a read that hits */
	double device; /* seconds of the device a page: 1 / its rate */
};

/* Fit both parameters to measured pairs, by least squares of the relative error of the time a
 * read. -EINVAL: fewer than two pairs, or all of the same refaults. */
int iops_model_fit(struct iops_model *model, const double *refaults, const double *iops, size_t nr);
double iops_model_predict(const struct iops_model *model, double refaults);

#endif
