/* SPDX-License-Identifier: MIT
 *
 * The published fio runs through mmap as computations on the simulated machine. Three suites share
 * this: they differ in their table of cases.
 */
#ifndef FOLIAGE_WORKLOAD_FIO_MMAP_H
#define FOLIAGE_WORKLOAD_FIO_MMAP_H

#include <stdint.h>

#include "workload/suite.h"

struct fio_mmap_case {
	const char *name; /* in published.csv: limit/theta */
	uint32_t gib;     /* the group's limit */
	double theta;
	unsigned int shorter; /* by default 1 / shorter of the published length runs */
	bool unfilled;        /* which is too short for the cache to settle: no result */
	const char *remark;   /* NULL, or what to know about the published numbers */
};

struct fio_mmap_kind {
	const struct suite *suite;
	const struct fio_mmap_case *cases;
	size_t nr_cases;
	size_t demo_case;
	bool random; /* the mapping is advised MADV_RANDOM */
	/* A case run again by all 16 jobs at once, for the waits at the lruvec's lock; NULL: none. */
	const struct fio_mmap_case *lock_case;
};

enum fio_mmap_param { FIO_LOAD_NS, FIO_DEVICE_NS, FIO_READAHEAD, FIO_FAULT_AROUND, FIO_NR_PARAMS };
extern const struct suite_param fio_mmap_params[FIO_NR_PARAMS];

int fio_mmap_open(const struct fio_mmap_kind *kind, const struct suite_options *options,
		  void **state, struct err *err);
size_t fio_mmap_tasks(const void *state);
int fio_mmap_run(void *state, size_t task, struct err *err);
int fio_mmap_report(const void *state, struct suite_report *report);
void fio_mmap_close(void *state);

#endif
