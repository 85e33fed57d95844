/* SPDX-License-Identifier: MIT
 *
 * A phone whose applications are brought to the front in turn, again and again. Suites android and
 * android-global differ in whether each application has a memory group of its own.
 */
#ifndef FOLIAGE_WORKLOAD_ANDROID_H
#define FOLIAGE_WORKLOAD_ANDROID_H

#include "workload/scene.h"

enum android_param {
	ANDROID_ANON_MIB,
	ANDROID_FILE_MIB,
	ANDROID_SHARED_MIB,
	ANDROID_KERNEL_MIB,
	ANDROID_HOT_SHARE,
	ANDROID_COLD_STRIDE,
	ANDROID_COLD_MIB,
	ANDROID_ZRAM_RATIO,
	ANDROID_SWAPPINESS,
	ANDROID_SHUFFLED,
	ANDROID_SESSION_CPU,
	ANDROID_NR_PARAMS,
};
extern const struct suite_param android_params[ANDROID_NR_PARAMS];

enum { ANDROID_NR_METRICS = 12 };
extern const struct grid_metric android_metrics[ANDROID_NR_METRICS];

int android_run(const struct grid_run *run, bool groups, double *out, struct err *err);

#endif
