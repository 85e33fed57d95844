/* SPDX-License-Identifier: MIT
 *
 * The published read() table as a computation: sixteen fio jobs in one room, or one of them in its
 * share of it.
 */
#ifndef FOLIAGE_WORKLOAD_FIO_READ_H
#define FOLIAGE_WORKLOAD_FIO_READ_H

#include <stdint.h>

#include "mm/policies.h"
#include "workload/iops.h"
#include "workload/published.h"
#include "workload/zipf_fio.h"

enum {
	FIO_READ_JOBS = 16,
	FIO_READ_BLOCKS = 655360, /* of one job's file: 2560 MiB */
	FIO_READ_ROOM = 4194304,  /* the whole room: 16 GiB */
	FIO_READ_RAMP = 45,       /* seconds that do not count */
	FIO_READ_SECONDS = 600,   /* seconds that do */
	FIO_READ_FLUSH = 2,       /* seconds between two flushes of a kernel's memcg statistics */
	FIO_READ_NR_THETAS = 4,
};

extern const double fio_read_thetas[FIO_READ_NR_THETAS];

/* One policy reading at one theta. */
struct fio_read_cell {
	const struct policy_choice *policy;
	uint64_t ramp, total; /* accesses before counting starts, and altogether */
	uint64_t flush;       /* accesses in FIO_READ_FLUSH seconds */

	struct room *room;
	struct policy_choice timed; /* `policy` with what depends on time set */
	uint64_t done;
	uint64_t accesses, refaults; /* that count */
	double seconds;              /* CPU time of the policy */
};

/* All policies at one theta on the same reads: the sequence is made once. `nr_jobs` is 1 or
 * FIO_READ_JOBS; `first_job` (from 0) is the one that reads when only one does. -EINTR when
 * stopped; what has been counted is in the cells. */
int fio_read_run(double theta, unsigned int first_job, unsigned int nr_jobs,
		 struct fio_read_cell *cells, size_t nr, bool (*stopped)(void), struct err *err);

/* The lengths of a cell's run, from the published rate of its policy; of the classic LRU's for
 * others. */
int fio_read_plan(const struct published *p, double theta, unsigned int nr_jobs,
		  struct fio_read_cell *cell);
/* The rate model, fitted to the classic LRU's published row and nothing else. */
int fio_read_fit(const struct published *p, struct iops_model *model);

/* A job of the published run as fio seeds it; jobs from 0. */
void fio_read_job(struct zipf_fio *job, const struct zipf_fio_dist *dist, unsigned int number);

/* "16G/0.8" */
void fio_read_case(double theta, char *text, size_t size);

#endif
