/* SPDX-License-Identifier: MIT
 *
 * The table of policies, and policy texts: "fg:tail_mode=min,refs_max=15" or "./mine.so:knob=3".
 */
#ifndef FOLIAGE_MM_POLICIES_H
#define FOLIAGE_MM_POLICIES_H

#include "base/err.h"
#include "foliage/policy.h"

/* All built-in policies, engine policies first; ends with NULL. */
extern const struct foliage_policy *const foliage_policies[];

/* A policy with its knobs set. */
struct policy_choice {
	const struct foliage_policy *policy;
	void *knobs;     /* policy->knobs_size bytes, or NULL */
	char label[160]; /* as the user wrote it: "fg:tail_mode=min" */
	void *library;   /* dlopen handle of a loaded policy */
};

const struct foliage_policy *policy_find(const char *name);

/* Parse one policy text. -ENOENT: unknown policy (the message suggests the nearest), -EINVAL: bad
 * knob or value, -ELIBBAD: a shared object that is no policy. On success free with
 * policy_choice_free. */
int policy_parse(const char *text, struct policy_choice *choice, struct err *err);

/* Parse "a,b:k=1,k2=2,c" or "all": a comma starts a new policy unless what follows is `knob=`. The
 * array is malloc'ed and belongs to the caller. "all" is every built-in policy. */
int policy_parse_list(const char *text, struct policy_choice **choices, size_t *nr,
		      struct err *err);
void policy_choice_free(struct policy_choice *choice);

/* Set every knob of `policy` to its default and then its preset. */
void policy_knobs_default(const struct foliage_policy *policy, void *knobs);
/* Apply "a=1,b=2" over what is there. */
int policy_knobs_parse(const struct foliage_policy *policy, void *knobs, const char *text,
		       struct err *err);

#endif
