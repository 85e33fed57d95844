/* SPDX-License-Identifier: MIT */
#include "workload/suite_policies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void suite_policies_leave_out(struct suite_policies *policies, const char *name, size_t length)
{
	const size_t used = strlen(policies->left_out);

	snprintf(policies->left_out + used, sizeof(policies->left_out) - used, "%s%.*s",
		 used ? ", " : "", (int)length, name);
}

static bool can_run(enum suite_ability ability, const struct foliage_policy *policy)
{
	if (ability == SUITE_RUNS_ONLINE)
		return !(policy->flags & FOLIAGE_POLICY_OFFLINE);
	return policy->engine != NULL;
}

static int cannot_run(const struct suite *suite, const struct policy_choice *choice,
		      struct err *err)
{
	if (choice->policy->flags & FOLIAGE_POLICY_OFFLINE)
		return err_set(err, -EINVAL, "--policy: %s: '%s' needs to know the future",
			       suite->name, choice->label);
	return err_set(err, -EINVAL, "--policy: %s: '%s' is no policy of the engine", suite->name,
		       choice->label);
}

int suite_policies_choose(struct suite_policies *policies, const struct suite *suite,
			  enum suite_ability ability, const struct suite_options *options,
			  const char *own, struct err *err)
{
	const char *text = options->policies ? options->policies : own;
	const bool everything = !strcmp(text, "all");
	size_t kept = 0;
	int r = policy_parse_list(text, &policies->all, &policies->nr, err);

	for (size_t i = 0; i < policies->nr; i++) {
		struct policy_choice *choice = &policies->all[i];

		if (can_run(ability, choice->policy)) {
			policies->all[kept++] = *choice;
			continue;
		}
		if (!everything && options->lenient)
			suite_policies_leave_out(policies, choice->label, strlen(choice->label));
		else if (!everything && !r)
			r = cannot_run(suite, choice, err);
		policy_choice_free(choice);
	}
	policies->nr = kept;
	return r;
}

void suite_policies_free(struct suite_policies *policies)
{
	for (size_t i = 0; i < policies->nr; i++)
		policy_choice_free(&policies->all[i]);
	free(policies->all);
	*policies = (struct suite_policies){0};
}

int suite_policies_note(const struct suite_policies *policies, const char *suite,
			struct suite_report *report)
{
	if (!policies->left_out[0])
		return 0;
	return suite_report_note(report, "%s cannot run %s", suite, policies->left_out);
}
