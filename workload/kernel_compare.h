/* SPDX-License-Identifier: MIT
 *
 * The engine next to a booted kernel: the same sequence of reads, window by window.
 */
#ifndef FOLIAGE_WORKLOAD_KERNEL_COMPARE_H
#define FOLIAGE_WORKLOAD_KERNEL_COMPARE_H

#include <stdint.h>

#include "workload/suite.h"

enum { KERNEL_WINDOWS_MAX = 8 };

/* What is counted in a window; NAN when the kernel's table or the engine does not say. */
enum kernel_metric {
	KERNEL_REFAULTS,
	KERNEL_PGSCAN,
	KERNEL_PGSTEAL,
	KERNEL_ACTIVATE,
	KERNEL_RESTORE,
	KERNEL_NR_METRICS,
};

struct kernel_window {
	char phase[8]; /* "warm", "w0", "w1", ... */
	uint64_t accesses;
	double kernel[KERNEL_NR_METRICS], engine[KERNEL_NR_METRICS];
	double file_pages, other_pages;
};

/* One boot of the kernel: the rows of its windows. */
struct kernel_run {
	char policy[32], memory[16];
	double theta;
	uint32_t limit, npages; /* in pages */
	uint64_t seed, permutation_seed, stat_every;
	struct kernel_window windows[KERNEL_WINDOWS_MAX];
	size_t nr_windows;

	char engine[192]; /* policy text */
	uint32_t room;
	uint32_t spread; /* the engine's counts are means over rooms of room - spread .. room +
			    spread */
	/* The rooms that the kernel's own file_pages allow: it frees 64 pages at a time, so a
	 * window ends between room - 63 and room. low > high: the room changed during the run. 0:
	 * not known. */
	uint32_t room_low, room_high;
	size_t done; /* windows that the engine has run */
	uint64_t hash;
};

/* What distinguishes the suites. */
struct kernel_table {
	const char *suite;
	const char *text;
	/* Fill run->engine and run->room from the kernel's side. False: no such policy. */
	bool (*map)(struct kernel_run *run);
};

/* False for a policy that does not exist, too. */
bool kernel_policy_has_knob(const char *policy, const char *knob);

/* Reads the table only. */
int kernel_runs_load(const struct kernel_table *table, struct kernel_run **runs, size_t *nr,
		     struct err *err);
/* Runs the engine through one boot's windows. -EILSEQ: the sequence is not the kernel's. */
int kernel_run_engine(struct kernel_run *run, bool (*stopped)(void), struct err *err);
/* Sum over the measured windows that both sides have; NAN when one of them lacks it. */
void kernel_run_sum(const struct kernel_run *run, enum kernel_metric metric, double *kernel,
		    double *engine);

/* The suite's functions. */
int kernel_compare_open(const struct kernel_table *table, const struct suite_options *options,
			void **state, struct err *err);
size_t kernel_compare_tasks(const void *state);
int kernel_compare_run(void *state, size_t task, struct err *err);
int kernel_compare_report(const void *state, struct suite_report *report);
void kernel_compare_close(void *state);

extern const struct kernel_table kernel_table_612, kernel_table_newer;

#endif
