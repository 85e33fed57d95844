/* SPDX-License-Identifier: MIT
 *
 * A parallel build as the simulated machine runs it: many short compilers in one memory group. Suites
 * kbuild and kbuild-memcg say in which machine.
 */
#ifndef FOLIAGE_WORKLOAD_KBUILD_H
#define FOLIAGE_WORKLOAD_KBUILD_H

#include "workload/scene.h"

/* Free parameters of both suites, in this order. */
enum kbuild_param {
	KBUILD_ANON_MIB,
	KBUILD_REVISITS,
	KBUILD_SOURCE_PAGES,
	KBUILD_HEADERS,
	KBUILD_HEADER_FILES,
	KBUILD_HEADER_PAGES,
	KBUILD_THETA,
	KBUILD_OBJECT_PAGES,
	KBUILD_UNIT_S,
	KBUILD_ZRAM_RATIO,
	KBUILD_LIMIT_MIB, /* of kbuild-memcg; that of kbuild was published */
	KBUILD_NR_PARAMS,
};
extern const struct suite_param kbuild_params[KBUILD_NR_PARAMS];

struct kbuild {
	uint32_t limit_mib, memory_mib, jobs, cpus;
	uint32_t units; /* that are built */
	/* Jobs and CPUs are divided by `fewer`, a unit's sizes and time by `smaller`, memory and the
	 * files that all share by both: then a job is to the memory of all what it is in the whole. */
	uint32_t fewer, smaller;
	enum machine_swap swap;
	uint32_t swap_mib;
	int swappiness;
	uint64_t seed;
};

/* Of the whole modelled build: what the part did, times what was left out. */
struct kbuild_result {
	double real_s, user_s, sys_s;
	double pgpgin, pgpgout, pswpin, pswpout, refault_file, refault_anon;
};

int kbuild_run(const struct kbuild *build, const struct grid_run *run, struct kbuild_result *result,
	       struct err *err);

#endif
