/* SPDX-License-Identifier: MIT
 *
 * A policy that is missing skips loudly: a comparison that did not happen must not look like one
 * that held.
 */
#include "tests/published/support_published.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "mm/policies.h"

void need_policy(const char *name)
{
	if (policy_find(name))
		return;
	print_message("SKIP: this build has no policy '%s': nothing was compared\n", name);
	skip();
}

void expect_near(const char *what, double measured, double published, double limit)
{
	const double deviation = measured / published - 1;

	print_message("%-44s %14.6g %14.6g %+8.3f %% (limit %.2f %%)\n", what, published, measured,
		      100 * deviation, 100 * limit);
	if (!(fabs(deviation) <= limit))
		fail_msg("%s: %g instead of %g", what, measured, published);
}

void run_engine(struct kernel_run *run)
{
	struct err err = {""};
	const int r = kernel_run_engine(run, NULL, &err);

	if (r)
		fail_msg("%s: %s (%d)", run->engine, err.text, r);
	assert_int_equal(run->done, run->nr_windows);
}

void expect_refaults_from(const struct kernel_run *run, size_t first, double together, double each)
{
	double kernel = 0, engine = 0;
	char what[128];

	for (size_t i = first; i < run->nr_windows; i++) {
		const struct kernel_window *window = &run->windows[i];

		snprintf(what, sizeof(what), "%s %g stat_every %llu %s", run->policy, run->theta,
			 (unsigned long long)run->stat_every, window->phase);
		expect_near(what, window->engine[KERNEL_REFAULTS], window->kernel[KERNEL_REFAULTS],
			    each);
		kernel += window->kernel[KERNEL_REFAULTS];
		engine += window->engine[KERNEL_REFAULTS];
	}
	snprintf(what, sizeof(what), "%s %s/%g seed %llu room %u", run->policy, run->memory,
		 run->theta, (unsigned long long)run->seed, run->room);
	expect_near(what, engine, kernel, together);
}

void expect_refaults(const struct kernel_run *run, double together, double each)
{
	expect_refaults_from(run, 1, together, each);
}
