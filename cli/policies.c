/* SPDX-License-Identifier: MIT
 *
 * foliage policies: the table of policies, and of the knobs of those that are named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "mm/policies.h"

enum { POLICY_NAME, POLICY_KIND, POLICY_KNOBS, POLICY_PRESET, POLICY_SUMMARY, NR_POLICY_COLS };

static const struct table_column policy_columns[NR_POLICY_COLS] = {
	[POLICY_NAME] = {.key = "policy", .title = "policy", .kind = TABLE_TEXT},
	[POLICY_KIND] = {.key = "kind", .title = "kind", .kind = TABLE_TEXT},
	[POLICY_KNOBS] = {.key = "knobs", .title = "knobs", .kind = TABLE_COUNT},
	[POLICY_PRESET] = {.key = "preset", .kind = TABLE_TEXT},
	[POLICY_SUMMARY] = {.key = "summary", .title = "what it is", .kind = TABLE_TEXT},
};

enum { KNOB_POLICY, KNOB_NAME, KNOB_KIND, KNOB_DEFAULT, KNOB_RANGE, KNOB_SUMMARY, NR_KNOB_COLS };

static const struct table_column knob_columns[NR_KNOB_COLS] = {
	[KNOB_POLICY] = {.key = "policy", .kind = TABLE_TEXT},
	[KNOB_NAME] = {.key = "knob", .title = "knob", .kind = TABLE_TEXT},
	[KNOB_KIND] = {.key = "kind", .title = "kind", .kind = TABLE_TEXT},
	[KNOB_DEFAULT] = {.key = "default", .title = "default", .kind = TABLE_TEXT},
	[KNOB_RANGE] = {.key = "range", .title = "range", .kind = TABLE_TEXT},
	[KNOB_SUMMARY] = {.key = "summary", .title = "what it does", .kind = TABLE_TEXT},
};

static const char *kind_of(const struct foliage_policy *policy)
{
	if (policy->engine)
		return "engine";
	return policy->flags & FOLIAGE_POLICY_OFFLINE ? "offline" : "reference";
}

static int add_policy(struct table *table, const struct foliage_policy *policy)
{
	size_t knobs = 0;
	int r = table_row(table);

	while (policy->knobs && policy->knobs[knobs].name)
		knobs++;
	if (!r)
		r = table_text(table, POLICY_NAME, policy->name);
	if (!r)
		r = table_text(table, POLICY_KIND, kind_of(policy));
	if (!r)
		r = table_count(table, POLICY_KNOBS, knobs);
	if (!r && policy->preset)
		r = table_text(table, POLICY_PRESET, policy->preset);
	return r ? r : table_text(table, POLICY_SUMMARY, policy->summary);
}

/* A knob's value in a structure of knobs, as one would write it. */
static void value_text(const struct foliage_knob *knob, const void *knobs, char *text, size_t size)
{
	const char *at = (const char *)knobs + knob->offset;
	uint32_t value = 0;
	double real = 0;

	if (knob->kind == FOLIAGE_KNOB_DOUBLE)
		memcpy(&real, at, sizeof(real));
	else
		memcpy(&value, at, sizeof(value));
	if (knob->kind == FOLIAGE_KNOB_DOUBLE)
		snprintf(text, size, "%g", real);
	else if (knob->kind == FOLIAGE_KNOB_ENUM)
		snprintf(text, size, "%s", knob->names[value]);
	else
		snprintf(text, size, "%u", value);
}

static void range_text(const struct foliage_knob *knob, char *text, size_t size)
{
	size_t len = 0;

	if (knob->kind == FOLIAGE_KNOB_BOOL) {
		snprintf(text, size, "0|1");
	} else if (knob->kind != FOLIAGE_KNOB_ENUM) {
		snprintf(text, size, "%.10g..%.10g", knob->min, knob->max);
	} else {
		for (size_t i = 0; knob->names[i] && len < size; i++)
			len += (size_t)snprintf(text + len, size - len, "%s%s", i ? "|" : "",
						knob->names[i]);
	}
}

static int add_knob(struct table *table, const struct foliage_policy *policy,
		    const struct foliage_knob *knob, const void *values)
{
	static const char *const kinds[] = {
		[FOLIAGE_KNOB_UINT] = "integer",
		[FOLIAGE_KNOB_DOUBLE] = "real",
		[FOLIAGE_KNOB_BOOL] = "switch",
		[FOLIAGE_KNOB_ENUM] = "choice",
	};
	char value[64], range[256];
	int r = table_row(table);

	value_text(knob, values, value, sizeof(value));
	range_text(knob, range, sizeof(range));
	if (!r)
		r = table_text(table, KNOB_POLICY, policy->name);
	if (!r)
		r = table_text(table, KNOB_NAME, knob->name);
	if (!r)
		r = table_text(table, KNOB_KIND, kinds[knob->kind]);
	if (!r)
		r = table_text(table, KNOB_DEFAULT, value);
	if (!r)
		r = table_text(table, KNOB_RANGE, range);
	return r ? r : table_text(table, KNOB_SUMMARY, knob->summary);
}

static int add_knobs(struct table *table, const struct foliage_policy *policy)
{
	void *values;
	int r = 0;

	if (!policy->knobs || !policy->knobs_size)
		return 0;
	values = calloc(1, policy->knobs_size);
	if (!values)
		return -ENOMEM;
	policy_knobs_default(policy, values);
	for (const struct foliage_knob *k = policy->knobs; k->name && !r; k++)
		r = add_knob(table, policy, k, values);
	free(values);
	return r;
}

static void print_policy(const struct foliage_policy *policy)
{
	printf("%s (%s): %s\n", policy->name, kind_of(policy), policy->summary);
	if (policy->preset)
		printf("preset: %s\n", policy->preset);
	if (!policy->knobs || !policy->knobs[0].name)
		printf("no knobs\n");
}

/* Knobs of the policies in `list`; for people one table a policy. */
static int print_knobs(const struct foliage_policy *const *list, size_t nr,
		       enum table_format format)
{
	struct table *table = table_create(knob_columns, NR_KNOB_COLS);
	int r = table ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !r; i++) {
		size_t first = table_rows(table);

		r = add_knobs(table, list[i]);
		if (r || format != TABLE_PEOPLE)
			continue;
		if (i)
			putchar('\n');
		print_policy(list[i]);
		table_print(table, format, first, table_rows(table), stdout);
	}
	if (!r && format != TABLE_PEOPLE)
		table_print(table, format, 0, table_rows(table), stdout);
	table_free(table);
	return r;
}

static int print_policies(const struct foliage_policy *const *list, size_t nr,
			  enum table_format format)
{
	struct table *table = table_create(policy_columns, NR_POLICY_COLS);
	int r = table ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && !r; i++)
		r = add_policy(table, list[i]);
	if (!r)
		table_print(table, format, 0, nr, stdout);
	table_free(table);
	return r;
}

static int run_named(int nr, char **names, enum table_format format)
{
	struct policy_choice *choices = calloc((size_t)nr, sizeof(*choices));
	const struct foliage_policy **list = calloc((size_t)nr, sizeof(*list));
	struct err err = {""};
	int done = 0, r = choices && list ? 0 : -ENOMEM;

	while (!r && done < nr) {
		r = policy_parse(names[done], &choices[done], &err);
		if (!r) {
			list[done] = choices[done].policy;
			done++;
		}
	}
	if (!r)
		r = print_knobs(list, (size_t)nr, format);
	for (int i = 0; i < done; i++)
		policy_choice_free(&choices[i]);
	free(choices);
	free(list);
	return r ? cli_fail("%s", err.text[0] ? err.text : strerror(-r)) : 0;
}

static int policies_main(int argc, char **argv)
{
	bool verbose = false;
	const char *format_text = "table";
	const struct option_spec specs[] = {
		{"format", 0, OPTION_TEXT, &format_text},
		{"verbose", 'v', OPTION_FLAG, &verbose},
	};
	struct err err = {""};
	size_t nr = 0;
	int format, r = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err);

	if (r < 0)
		return cli_fail("%s", err.text);
	format = parse_choice(format_text, "--format", table_formats, &err);
	if (format < 0)
		return cli_fail("%s", err.text);
	if (r > 0)
		return run_named(r, argv + 1, (enum table_format)format);
	while (foliage_policies[nr])
		nr++;
	if (verbose)
		r = print_knobs(foliage_policies, nr, (enum table_format)format);
	else
		r = print_policies(foliage_policies, nr, (enum table_format)format);
	return r ? cli_fail("%s", strerror(-r)) : 0;
}

const struct command command_policies = {
	.name = "policies",
	.summary = "list the policies and their knobs",
	.help = "usage: foliage policies [-v] [--format table|csv|json] [NAME...]\n"
		"\n"
		"Without a name, one line a policy. With names (or shared objects that hold a "
		"policy,\n"
		"./mine.so), or with -v for all policies, their knobs: kind, default, range and "
		"one line\n"
		"on what each does.\n"
		"\n"
		"A policy is written NAME or NAME:KNOB=VALUE,KNOB=VALUE, as in fg:tail_mode=min.\n"
		"\n"
		"Options:\n"
		"  -v, --verbose       the knobs of every policy\n"
		"  --format F          table, csv or json\n"
		"\n"
		"Kinds:\n"
		"  engine              a kernel's policy, on the reclaim engine\n"
		"  reference           a policy of the literature, to compare with\n"
		"  offline             looks at the future: a bound, not a contender\n"
		"\n"
		"Examples:\n"
		"  foliage policies\n"
		"  foliage policies fg\n"
		"  foliage replay t.csv --policy fg:tail_mode=min\n",
	.run = policies_main,
};
