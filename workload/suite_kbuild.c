/* SPDX-License-Identifier: MIT
 *
 * Suite kbuild: a kernel built in a group too small for its compilers, on compressed swap and on a
 * disk.
 *
 * The real one: make -j48 in a group of 3 GB, sources and output on NVMe, swap on a zram device
 * (256 GB, lzo-rle) or an SSD; 15 builds for each policy, three at each of five values of
 * swappiness that were not listed; averages.
 *
 * Modelled, left out, and the sources of a compiler's numbers: see kbuild.c. One build at each of
 * five values of swappiness, spread over the range: 20, 60, 100, 140, 180. The machine of the
 * published run has 96 CPUs and 128 GB; here 48 CPUs, so that every job has one.
 *
 * By default a quarter of the jobs, units of an eighth, memory of a thirty-second, modelled at its
 * size; a sixteenth of the units are built; counts and times are those of the whole. The swap disk is
 * the SSD of costs.h. A kernel has about 6,000 units in
 * the configuration that the published user time suggests (see unit_s).
 */
#include <errno.h>

#include "base/bits.h"
#include "workload/kbuild.h"

enum { UNITS = 6000, SWAPPINESS_VALUES = 5 };
static const int swappiness[SWAPPINESS_VALUES] = {20, 60, 100, 140, 180};

enum { ZRAM, SSD };
static const char *const cases[] = {[ZRAM] = "zram", [SSD] = "ssd"};

enum { REAL, SYS, PGPGIN, PSWPIN, PSWPOUT, REFAULT_FILE, REFAULT_ANON };
static const struct grid_metric metrics[] = {
	[REAL] = {"real_s", 1},
	[SYS] = {"sys_s", 1},
	[PGPGIN] = {"pgpgin", 0},
	[PSWPIN] = {"pswpin", 0},
	[PSWPOUT] = {"pswpout", 0},
	[REFAULT_FILE] = {"refault_file", 0},
	[REFAULT_ANON] = {"refault_anon", 0},
};

static void add(double *out, const struct kbuild_result *r, double times)
{
	out[REAL] += r->real_s * times;
	out[SYS] += r->sys_s * times;
	out[PGPGIN] += r->pgpgin * times;
	out[PSWPIN] += r->pswpin * times;
	out[PSWPOUT] += r->pswpout * times;
	out[REFAULT_FILE] += r->refault_file * times;
	out[REFAULT_ANON] += r->refault_anon * times;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	struct kbuild build = {
		.limit_mib = 3072,
		.memory_mib = 16384, /* the group's limit decides */
		.jobs = 48,
		.cpus = 48,
		.units = run->full   ? UNITS
			 : run->demo ? UNITS / 32
				     : UNITS / 16,
		.fewer = run->full ? 1 : 4,
		.smaller = run->full ? 1 : 8,
		.swap = run->which == ZRAM ? MACHINE_ZRAM : MACHINE_DISK_SWAP,
		.swap_mib = 16384,
	};
	int r = 0;

	for (int i = 0; i < SWAPPINESS_VALUES && !r; i++) {
		struct kbuild_result result;

		build.swappiness = swappiness[i];
		build.seed = run->seed * SWAPPINESS_VALUES + (uint64_t)i;
		r = kbuild_run(&build, run, &result, err);
		if (!r)
			add(out, &result, (double)UNITS / build.units / SWAPPINESS_VALUES);
	}
	return r;
}

static const struct grid_kind kind = {
	.suite = &suite_kbuild,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,fg",
	.simulate = simulate,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_kbuild = {
	.name = "kbuild",
	.summary = "a kernel build in a group of 3 GB, five values of swappiness, zram and disk",
	.params = kbuild_params,
	.nr_params = KBUILD_NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
