/* SPDX-License-Identifier: MIT
 *
 * Suite fio-tight: nine cases of limit and theta, ioengine=mmap, and one of them again with all
 * jobs at once for the time they wait at the lruvec's lock.
 */
#include "base/bits.h"
#include "workload/fio_mmap.h"

static const struct fio_mmap_case cases[] = {
	{"16G/1.4", 16, 1.4, 32, true, NULL}, {"8G/1.4", 8, 1.4, 32, true, NULL},
	{"4G/1.4", 4, 1.4, 32, true, NULL},   {"12G/1.2", 12, 1.2, 4, false, NULL},
	{"8G/1.2", 8, 1.2, 8, false, NULL},   {"4G/1.2", 4, 1.2, 4, false, NULL},
	{"12G/1.1", 12, 1.1, 4, false, NULL}, {"8G/1.1", 8, 1.1, 8, false, NULL},
	{"6G/1.1", 6, 1.1, 8, false, NULL},
};

static const struct fio_mmap_kind kind = {
	.suite = &suite_fio_tight,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.demo_case = 8,
	.lock_case = &cases[5],
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return fio_mmap_open(&kind, options, state, err);
}

const struct suite suite_fio_tight = {
	.name = "fio-tight",
	.summary = "fio through mmap in tighter limits; waits at the lruvec's lock",
	.params = fio_mmap_params,
	.nr_params = FIO_NR_PARAMS,
	.open = open_suite,
	.tasks = fio_mmap_tasks,
	.run = fio_mmap_run,
	.report = fio_mmap_report,
	.close = fio_mmap_close,
};
