/* SPDX-License-Identifier: MIT
 *
 * Many independent jobs on a few threads.
 */
#ifndef FOLIAGE_CLI_JOBS_H
#define FOLIAGE_CLI_JOBS_H

#include <stddef.h>

struct jobs {
	size_t nr;
	unsigned int threads; /* 0: one a processor */
	/* Does job `i`; called once a job, from several threads at once. A negative return starts
	 * no further jobs. */
	int (*run)(void *ctx, size_t i);
	/* May be NULL. Called after each job, never from two threads at once. */
	void (*finished)(void *ctx, size_t done);
	void *ctx;
};

/* Runs the jobs in order of their numbers, as threads become free. Returns 0, or the error of the
 * job with the lowest number that failed. After SIGINT no further job starts. */
int jobs_run(const struct jobs *jobs);

#endif
