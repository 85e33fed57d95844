/* SPDX-License-Identifier: MIT
 *
 * Suite fio-mmap-random: theta 1.1 of the mmap table without fadvise_hint=0: fio advises the
 * mapping random, which takes recency from it. Published: no gain of fg over mglru. Refaults were
 * not published; the order of rates is, and rates fall with refaults.
 */
#include "base/bits.h"
#include "workload/fio_mmap.h"

static const struct fio_mmap_case cases[] = {
	{"16G/1.1", 16, 1.1, 8, false, NULL},
};

static const struct fio_mmap_kind kind = {
	.suite = &suite_fio_mmap_random,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.random = true,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return fio_mmap_open(&kind, options, state, err);
}

const struct suite suite_fio_mmap_random = {
	.name = "fio-mmap-random",
	.summary = "the same advised random (MADV_RANDOM): accessed bits do not count",
	.params = fio_mmap_params,
	.nr_params = FIO_NR_PARAMS,
	.open = open_suite,
	.tasks = fio_mmap_tasks,
	.run = fio_mmap_run,
	.report = fio_mmap_report,
	.close = fio_mmap_close,
};
