/* SPDX-License-Identifier: MIT
 *
 * Which policies a suite runs: those asked for, or its own, less those that it cannot run.
 */
#ifndef FOLIAGE_WORKLOAD_SUITE_POLICIES_H
#define FOLIAGE_WORKLOAD_SUITE_POLICIES_H

#include "mm/policies.h"
#include "workload/suite.h"

struct suite_policies {
	struct policy_choice *all;
	size_t nr;
	char left_out[200]; /* names of what was left out, for a note; "" when none was */
};

/* What a suite can run: reference policies have no page tables and no groups, and those that know the
 * future need a trace. */
enum suite_ability { SUITE_RUNS_ENGINE, SUITE_RUNS_ONLINE };

/* The policies among options->policies (NULL: `own`) that the suite can run. Others are left out of "all"
 * silently, of a list under options->lenient with a note, and are -EINVAL else. With options->lenient
 * the result may be empty. */
int suite_policies_choose(struct suite_policies *policies, const struct suite *suite,
			  enum suite_ability ability, const struct suite_options *options,
			  const char *own, struct err *err);
void suite_policies_free(struct suite_policies *policies);

/* Adds a name to what was left out. */
void suite_policies_leave_out(struct suite_policies *policies, const char *name, size_t length);
/* The note, if there is one to make. */
int suite_policies_note(const struct suite_policies *policies, const char *suite,
			struct suite_report *report);

#endif
