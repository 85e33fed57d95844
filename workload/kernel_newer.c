/* SPDX-License-Identifier: MIT
 *
 * Suite kernel-newer: the rules of newer multi-gen LRU and of FG, built into a Linux 6.12 as an
 * experiment.
 *
 * The table says per window what the cgroup held besides file pages; the median of a boot's windows
 * is taken, because the kernel returns its slab pages late after a burst of evictions. Names ending
 * in "-abort" leave a pass once its target is reclaimed; the others are the kernel's own way, which
 * for FG is chaotic: one page of room moves it by percents, so it is compared with the band of its
 * boots. The engine's numbers are means over five rooms from 8 pages below the kernel's to 8 above.
 */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "workload/data.h"
#include "workload/kernel_compare.h"

/* A page of room more or less moves a run by up to 0.3 %: the engine is run in five rooms around
 * the kernel's. */
enum { SPREAD = 8 };

static const struct {
	const char *kernel, *engine;
} names[] = {
	{"mglru-6.12", "mglru-6.12"},
	{"mglru", "mglru:memcg_abort=0"},
	{"fg-tail", "fg:tail_mode=tail,memcg_abort=0"},
	{"fg-min", "fg:tail_mode=min,memcg_abort=0"},
	{"fg-tail-abort", "fg:tail_mode=tail,memcg_abort=1"},
	{"fg-min-abort", "fg:tail_mode=min,memcg_abort=1"},
};

static double median_other(const struct kernel_run *run)
{
	double sorted[KERNEL_WINDOWS_MAX];

	for (size_t i = 0; i < run->nr_windows; i++) {
		size_t at = i;

		for (; at && sorted[at - 1] > run->windows[i].other_pages; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = run->windows[i].other_pages;
	}
	return sorted[(run->nr_windows - 1) / 2];
}

static bool map(struct kernel_run *run)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i].kernel, run->policy))
			continue;
		snprintf(run->engine, sizeof(run->engine), "%s%s", names[i].engine,
			 !strchr(names[i].engine, ':') &&
					 kernel_policy_has_knob(names[i].engine, "memcg_abort")
				 ? ":memcg_abort=0"
				 : "");
		run->room = run->limit - (uint32_t)median_other(run);
		run->spread = SPREAD;
		return true;
	}
	return false;
}

const struct kernel_table kernel_table_newer = {
	.suite = "kernel-newer",
	.text = data_kernel_newer,
	.map = map,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return kernel_compare_open(&kernel_table_newer, options, state, err);
}

const struct suite suite_kernel_newer = {
	.name = "kernel-newer",
	.summary = "the newer rules and FG built into a kernel: refaults, scanned and stolen pages",
	.open = open_suite,
	.tasks = kernel_compare_tasks,
	.run = kernel_compare_run,
	.report = kernel_compare_report,
	.close = kernel_compare_close,
};
