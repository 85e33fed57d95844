/* SPDX-License-Identifier: MIT
 *
 * Knobs: from "tail_mode=min,refs_max=15" to the fields of a policy's knob structure. The policy
 * describes its knobs in a table (name, kind, offset, default, bounds), and everything here follows
 * that table, so that a knob is one line in its policy and is parsed, checked, listed and explained
 * like any other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/nearest.h"
#include "mm/policies.h"

static void knob_store(const struct foliage_knob *knob, void *knobs, double value)
{
	char *field = (char *)knobs + knob->offset;
	uint32_t integer;

	if (knob->kind == FOLIAGE_KNOB_DOUBLE) {
		memcpy(field, &value, sizeof(value));
		return;
	}
	integer = (uint32_t)value;
	memcpy(field, &integer, sizeof(integer));
}

static const struct foliage_knob *knob_find(const struct foliage_policy *policy, const char *name,
					    struct err *err)
{
	struct nearest nearest;

	nearest_start(&nearest, name);
	for (const struct foliage_knob *k = policy->knobs; k && k->name; k++) {
		if (!strcmp(k->name, name))
			return k;
		nearest_try(&nearest, k->name);
	}
	if (nearest.best)
		err_set(err, -EINVAL, "policy %s: unknown knob '%.80s'; did you mean '%s'?",
			policy->name, name, nearest.best);
	else if (policy->knobs && policy->knobs->name)
		err_set(err, -EINVAL, "policy %s: unknown knob '%.80s'", policy->name, name);
	else
		err_set(err, -EINVAL, "policy %s: unknown knob '%.80s'; it has none", policy->name,
			name);
	return NULL;
}

static int knob_number(const struct foliage_policy *policy, const struct foliage_knob *knob,
		       const char *text, double *value, struct err *err)
{
	bool whole = knob->kind == FOLIAGE_KNOB_UINT;
	char *end;

	/* Digits, and for a fraction one point and an exponent: strtod alone also takes blanks,
	 * hex, "nan". */
	if (!*text || text[strspn(text, whole ? "0123456789" : "0123456789.eE+-")])
		return err_set(err, -EINVAL, "policy %s: %s='%.80s' is not a %s number",
			       policy->name, knob->name, text, whole ? "whole" : "decimal");
	*value = strtod(text, &end);
	if (*end || !isfinite(*value))
		return err_set(err, -EINVAL, "policy %s: %s='%.80s' is not a number", policy->name,
			       knob->name, text);
	if (*value < knob->min || *value > knob->max)
		return err_set(err, -EINVAL, "policy %s: %s=%.80s is out of range %.10g..%.10g",
			       policy->name, knob->name, text, knob->min, knob->max);
	return 0;
}

static int knob_bool(const struct foliage_policy *policy, const struct foliage_knob *knob,
		     const char *text, double *value, struct err *err)
{
	static const char *const words[] = {"0", "1", "off", "on", "no", "yes", "false", "true"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(text, words[i])) {
			*value = (double)(i & 1);
			return 0;
		}
	}
	return err_set(err, -EINVAL, "policy %s: %s='%.80s' must be 0 or 1", policy->name,
		       knob->name, text);
}

static int knob_enum(const struct foliage_policy *policy, const struct foliage_knob *knob,
		     const char *text, double *value, struct err *err)
{
	struct nearest nearest;

	nearest_start(&nearest, text);
	for (uint32_t i = 0; knob->names[i]; i++) {
		if (!strcmp(text, knob->names[i])) {
			*value = i;
			return 0;
		}
		nearest_try(&nearest, knob->names[i]);
	}
	if (nearest.best)
		return err_set(err, -EINVAL,
			       "policy %s: %s has no value '%.80s'; did you mean '%s'?",
			       policy->name, knob->name, text, nearest.best);
	return err_set(err, -EINVAL, "policy %s: %s has no value '%.80s', but '%s' for one",
		       policy->name, knob->name, text, knob->names[0]);
}

/* One "name=value"; `setting` is written to. */
static int knob_set(const struct foliage_policy *policy, void *knobs, char *setting,
		    struct err *err)
{
	char *equals = strchr(setting, '=');
	const struct foliage_knob *knob;
	double value = 0;
	int ret;

	if (!*setting)
		return err_set(err, -EINVAL, "policy %s: empty knob setting, expected knob=value",
			       policy->name);
	if (equals)
		*equals = '\0';
	knob = knob_find(policy, setting, err);
	if (!knob)
		return -EINVAL;
	if (!equals)
		return err_set(err, -EINVAL, "policy %s: knob '%s' needs a value: %s=...",
			       policy->name, knob->name, knob->name);
	switch (knob->kind) {
	case FOLIAGE_KNOB_BOOL:
		ret = knob_bool(policy, knob, equals + 1, &value, err);
		break;
	case FOLIAGE_KNOB_ENUM:
		ret = knob_enum(policy, knob, equals + 1, &value, err);
		break;
	default:
		ret = knob_number(policy, knob, equals + 1, &value, err);
		break;
	}
	if (!ret)
		knob_store(knob, knobs, value);
	return ret;
}

int policy_knobs_parse(const struct foliage_policy *policy, void *knobs, const char *text,
		       struct err *err)
{
	char *copy = strdup(text), *setting = copy, *comma;
	int ret;

	if (!copy)
		return err_set(err, -ENOMEM, "policy %s: out of memory", policy->name);
	do {
		comma = strchr(setting, ',');
		if (comma)
			*comma++ = '\0';
		ret = knob_set(policy, knobs, setting, err);
		setting = comma;
	} while (!ret && setting);
	free(copy);
	return ret;
}

void policy_knobs_default(const struct foliage_policy *policy, void *knobs)
{
	for (const struct foliage_knob *k = policy->knobs; k && k->name; k++)
		knob_store(k, knobs, k->def);
	if (policy->preset && *policy->preset)
		policy_knobs_parse(policy, knobs, policy->preset, NULL);
}
