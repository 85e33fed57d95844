/* SPDX-License-Identifier: MIT
 *
 * Suite kbuild-memcg: the kernel build of the quick fix's mail.
 *
 * The real one: a kernel built in a memory group, mainline with and without the quick fix of
 * October 16 and with the commit reverted. Neither the limit nor the parallelism nor the swap
 * device were given.
 *
 * Modelled, left out, and the sources of a compiler's numbers: see kbuild.c. Stated assumptions:
 * the user time of 1,531 s in 109 s are fourteen busy CPUs, so 16 CPUs and jobs; the limit is a
 * free parameter, set once so that mainline alone reads in about as much as published; compressed
 * swap; swappiness 60. A unit's user time and these 1,531 s give the number of units.
 *
 * By default half of the jobs, units of an eighth, memory of a sixteenth, modelled at its size; an
 * eighth of the units are built; counts and times are those of the whole.
 */
#include <errno.h>

#include "base/bits.h"
#include "workload/kbuild.h"

enum { USER_S = 1531 };

static const char *const cases[] = {"quickfix-mail"};
enum { REAL, USER, SYS, PSWPIN, PSWPOUT, PGPGIN, PGPGOUT, REFAULT_FILE, REFAULT_ANON };
static const struct grid_metric metrics[] = {
	[REAL] = {"real_s", 1},
	[USER] = {"user_s", 1},
	[SYS] = {"sys_s", 1},
	[PSWPIN] = {"pswpin", 0},
	[PSWPOUT] = {"pswpout", 0},
	[PGPGIN] = {"pgpgin", 0},
	[PGPGOUT] = {"pgpgout", 0},
	[REFAULT_FILE] = {"refault_file", 0},
	[REFAULT_ANON] = {"refault_anon", 0},
};

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t units = (uint32_t)(USER_S / run->params[KBUILD_UNIT_S]);
	const struct kbuild build = {
		.limit_mib = (uint32_t)run->params[KBUILD_LIMIT_MIB],
		.memory_mib = 8192,
		.jobs = 16,
		.cpus = 16,
		.units = run->full   ? units
			 : run->demo ? units / 16
				     : units / 8,
		.fewer = run->full ? 1 : 2,
		.smaller = run->full ? 1 : 8,
		.swap = MACHINE_ZRAM,
		.swap_mib = 8192,
		.swappiness = 60,
		.seed = run->seed,
	};
	double times = (double)units / build.units;
	struct kbuild_result result;
	int r = kbuild_run(&build, run, &result, err);

	if (r)
		return r;
	out[REAL] = result.real_s * times;
	out[USER] = result.user_s * times;
	out[SYS] = result.sys_s * times;
	out[PSWPIN] = result.pswpin * times;
	out[PSWPOUT] = result.pswpout * times;
	out[PGPGIN] = result.pgpgin * times;
	out[PGPGOUT] = result.pgpgout * times;
	out[REFAULT_FILE] = result.refault_file * times;
	out[REFAULT_ANON] = result.refault_anon * times;
	return 0;
}

static const struct grid_kind kind = {
	.suite = &suite_kbuild_memcg,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,mglru-revert,mglru-quickfix,fg",
	.simulate = simulate,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_kbuild_memcg = {
	.name = "kbuild-memcg",
	.summary = "a kernel build in a group, as in the quick fix's mail",
	.params = kbuild_params,
	.nr_params = KBUILD_NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
