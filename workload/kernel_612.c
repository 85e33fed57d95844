/* SPDX-License-Identifier: MIT
 *
 * Suite kernel-6.12: the counters of a stock Linux 6.12 kernel with either of its reclaim
 * algorithms.
 *
 * The room is the largest number of file pages that the cgroup held at the end of a window: its
 * limit pays for other things too, and what those take is the kernel's, measured, not ours to
 * choose. The classic LRU decides on statistics that the kernel flushes from time to time; where
 * memory.stat was read every 2,000 accesses they are flushed then, else about every two seconds,
 * which the policy's own default stands for.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mm/types.h"
#include "workload/data.h"
#include "workload/kernel_compare.h"

static bool map(struct kernel_run *run)
{
	const bool classic = !strcmp(run->policy, "clru-6.12");
	double largest = 0, smallest = INFINITY;

	if (!classic && strcmp(run->policy, "mglru-6.12"))
		return false;
	for (size_t i = 0; i < run->nr_windows; i++) {
		largest = fmax(largest, run->windows[i].file_pages);
		smallest = fmin(smallest, run->windows[i].file_pages);
	}
	run->room = (uint32_t)largest;
	if (!classic) {
		run->room_low = (uint32_t)largest;
		run->room_high = (uint32_t)smallest + MIN_LRU_BATCH - 1;
	}
	snprintf(run->engine, sizeof(run->engine), "%s%s", run->policy,
		 kernel_policy_has_knob(run->policy, "memcg_abort") ? ":memcg_abort=0" : "");
	if (classic && run->stat_every < 100000) {
		const size_t have = strlen(run->engine);

		snprintf(run->engine + have, sizeof(run->engine) - have, "%cflush_every=%llu",
			 strchr(run->engine, ':') ? ',' : ':', (unsigned long long)run->stat_every);
	}
	return true;
}

const struct kernel_table kernel_table_612 = {
	.suite = "kernel-6.12",
	.text = data_kernel_612,
	.map = map,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return kernel_compare_open(&kernel_table_612, options, state, err);
}

const struct suite suite_kernel_612 = {
	.name = "kernel-6.12",
	.summary = "a booted Linux 6.12: refaults, scanned and stolen pages, window by window",
	.open = open_suite,
	.tasks = kernel_compare_tasks,
	.run = kernel_compare_run,
	.report = kernel_compare_report,
	.close = kernel_compare_close,
};
