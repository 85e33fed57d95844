/* SPDX-License-Identifier: MIT
 *
 * Suite fio-mmap: the published mmap table of the 16 GiB limit, ioengine=mmap with fadvise_hint=0,
 * so that the mapping is not advised random and its accessed bits count.
 */
#include "base/bits.h"
#include "workload/fio_mmap.h"

/* Published refaults lie below 0.162 and 0.106, what a cache that keeps the likeliest 40 % of the
 * blocks for ever would have. */
static const char not_reproducible[] =
	"published below what keeping the likeliest pages for ever could reach: not reproducible";

static const struct fio_mmap_case cases[] = {
	{"16G/0.8", 16, 0.8, 16, false, not_reproducible},
	{"16G/0.9", 16, 0.9, 16, false, not_reproducible},
	{"16G/1.1", 16, 1.1, 3, false, NULL},
	{"16G/1.2", 16, 1.2, 3, false, NULL},
};

static const struct fio_mmap_kind kind = {
	.suite = &suite_fio_mmap,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.demo_case = 2,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return fio_mmap_open(&kind, options, state, err);
}

const struct suite suite_fio_mmap = {
	.name = "fio-mmap",
	.summary = "16 fio jobs loading from mappings at zipf offsets: refaults per load",
	.params = fio_mmap_params,
	.nr_params = FIO_NR_PARAMS,
	.open = open_suite,
	.tasks = fio_mmap_tasks,
	.run = fio_mmap_run,
	.report = fio_mmap_report,
	.close = fio_mmap_close,
};
