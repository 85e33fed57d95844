/* SPDX-License-Identifier: MIT
 *
 * Time a read = hit + refaults * device, IOPS = 1 / time.
 *
 * Sixteen jobs read in a closed loop. A miss takes the device's time for one page, which the jobs
 * share: the device is saturated, and its rate is what limits them. A hit takes a system call and a
 * copy, on as many processors as there are jobs, but nothing overlaps within one job: a job that
 * waits for its page hits nothing. So both times add up. Whether a policy's own work costs time
 * does not enter; what it saves in misses does.
 */
#include "workload/iops.h"

#include <errno.h>

int iops_model_fit(struct iops_model *model, const double *refaults, const double *iops, size_t nr)
{
	double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0, det;

	/* Minimize the sum of (hit * a + device * b - 1)^2 with a = iops and b = refaults *
	 * iops. */
	for (size_t i = 0; i < nr; i++) {
		const double a = iops[i], b = refaults[i] * iops[i];

		aa += a * a;
		ab += a * b;
		bb += b * b;
		a1 += a;
		b1 += b;
	}
	det = aa * bb - ab * ab;
	if (nr < 2 || !(det > 1e-9 * aa * bb))
		return -EINVAL;
	model->hit = (a1 * bb - b1 * ab) / det;
	model->device = (aa * b1 - ab * a1) / det;
	return 0;
}

double iops_model_predict(const struct iops_model *model, double refaults)
{
	return 1.0 / (model->hit + refaults * model->device);
}
