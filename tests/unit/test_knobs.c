/* SPDX-License-Identifier: MIT
 *
 * Policy texts: what they mean, and every way in which they can be wrong, with the message that a
 * person gets.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "mm/policies.h"

/* A policy with a knob of every kind. */
struct sample {
	uint32_t depth, flag, mode;
	double share;
};

static const char *const modes[] = {"min", "half", "none", NULL};

static const struct foliage_knob sample_knobs[] = {
	{"depth", "how deep", FOLIAGE_KNOB_UINT, offsetof(struct sample, depth), 3, 1, 15, NULL},
	{"flag", "whether", FOLIAGE_KNOB_BOOL, offsetof(struct sample, flag), 1, 0, 1, NULL},
	{"mode", "which way", FOLIAGE_KNOB_ENUM, offsetof(struct sample, mode), 1, 0, 2, modes},
	{"share", "how much", FOLIAGE_KNOB_DOUBLE, offsetof(struct sample, share), 2.5, 0.5, 99,
	 NULL},
	{0},
};

static const struct foliage_policy sample_policy = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "sample",
	.knobs = sample_knobs,
	.knobs_size = sizeof(struct sample),
	.preset = "mode=none,depth=7",
};

static void test_defaults_and_preset(void **unused)
{
	struct sample s;

	(void)unused;
	memset(&s, 0xff, sizeof(s));
	policy_knobs_default(&sample_policy, &s);
	assert_int_equal(s.depth, 7);
	assert_int_equal(s.flag, 1);
	assert_int_equal(s.mode, 2);
	assert_true(s.share == 2.5);
}

static void test_values(void **unused)
{
	static const struct {
		const char *text;
		uint32_t flag;
	} flags[] = {{"flag=0", 0},   {"flag=1", 1},  {"flag=no", 0},    {"flag=yes", 1},
		     {"flag=off", 0}, {"flag=on", 1}, {"flag=false", 0}, {"flag=true", 1}};
	struct sample s;
	struct err err;

	(void)unused;
	policy_knobs_default(&sample_policy, &s);
	assert_int_equal(
		policy_knobs_parse(&sample_policy, &s, "depth=15,mode=half,share=1e1", &err), 0);
	assert_int_equal(s.depth, 15);
	assert_int_equal(s.mode, 1);
	assert_true(s.share == 10.0);
	assert_int_equal(s.flag, 1);
	/* The last of two settings counts. */
	assert_int_equal(policy_knobs_parse(&sample_policy, &s, "depth=2,depth=1", &err), 0);
	assert_int_equal(s.depth, 1);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		assert_int_equal(policy_knobs_parse(&sample_policy, &s, flags[i].text, &err), 0);
		assert_int_equal(s.flag, flags[i].flag);
	}
}

static void test_knob_errors(void **unused)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "policy sample: empty knob setting, expected knob=value"},
		{"depth=1,", "policy sample: empty knob setting, expected knob=value"},
		{",depth=1", "policy sample: empty knob setting, expected knob=value"},
		{"dept=1", "policy sample: unknown knob 'dept'; did you mean 'depth'?"},
		{"zzzzzz=1", "policy sample: unknown knob 'zzzzzz'"},
		{"=1", "policy sample: unknown knob ''"},
		{"depth", "policy sample: knob 'depth' needs a value: depth=..."},
		{"depth=", "policy sample: depth='' is not a whole number"},
		{"depth=x", "policy sample: depth='x' is not a whole number"},
		{"depth=1.5", "policy sample: depth='1.5' is not a whole number"},
		{"depth=-1", "policy sample: depth='-1' is not a whole number"},
		{"depth= 1", "policy sample: depth=' 1' is not a whole number"},
		{"depth=0x1", "policy sample: depth='0x1' is not a whole number"},
		{"depth=0", "policy sample: depth=0 is out of range 1..15"},
		{"depth=16", "policy sample: depth=16 is out of range 1..15"},
		{"depth=4294967297", "policy sample: depth=4294967297 is out of range 1..15"},
		{"share=", "policy sample: share='' is not a decimal number"},
		{"share=nan", "policy sample: share='nan' is not a decimal number"},
		{"share=1e999", "policy sample: share='1e999' is not a number"},
		{"share=1.2.3", "policy sample: share='1.2.3' is not a number"},
		{"share=e", "policy sample: share='e' is not a number"},
		{"share=0.4", "policy sample: share=0.4 is out of range 0.5..99"},
		{"share=99.01", "policy sample: share=99.01 is out of range 0.5..99"},
		{"flag=2", "policy sample: flag='2' must be 0 or 1"},
		{"flag=", "policy sample: flag='' must be 0 or 1"},
		{"mode=haf", "policy sample: mode has no value 'haf'; did you mean 'half'?"},
		{"mode=", "policy sample: mode has no value '', but 'min' for one"},
		{"depth=1=2", "policy sample: depth='1=2' is not a whole number"},
		{"depth=1,share=0", "policy sample: share=0 is out of range 0.5..99"},
	};
	struct sample s;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {0};

		policy_knobs_default(&sample_policy, &s);
		assert_int_equal(policy_knobs_parse(&sample_policy, &s, cases[i].text, &err),
				 -EINVAL);
		assert_string_equal(err.text, cases[i].message);
		assert_int_equal(policy_knobs_parse(&sample_policy, &s, cases[i].text, NULL),
				 -EINVAL);
	}
}

static void test_policy(void **unused)
{
	struct policy_choice choice;

	(void)unused;
	assert_int_equal(policy_parse("clock:bits=3", &choice, NULL), 0);
	assert_ptr_equal(choice.policy, policy_find("clock"));
	assert_string_equal(choice.label, "clock:bits=3");
	assert_int_equal(*(uint32_t *)choice.knobs, 3);
	assert_null(choice.library);
	policy_choice_free(&choice);
	assert_null(choice.policy);
	assert_int_equal(policy_parse("clock", &choice, NULL), 0);
	assert_int_equal(*(uint32_t *)choice.knobs, 1);
	policy_choice_free(&choice);
	assert_null(policy_find("no such"));
}

static void test_long_label(void **unused)
{
	struct policy_choice choice;
	char text[600] = "clock:bits=1";

	(void)unused;
	while (strlen(text) < 500)
		strcat(text, ",bits=2");
	assert_int_equal(policy_parse(text, &choice, NULL), 0);
	assert_int_equal(strlen(choice.label), sizeof(choice.label) - 1);
	policy_choice_free(&choice);
}

static void test_policy_errors(void **unused)
{
	static const struct {
		const char *text, *message;
		int code;
	} cases[] = {
		{"", "empty policy name in ''", -EINVAL},
		{":bits=1", "empty policy name in ':bits=1'", -EINVAL},
		{"seive", "unknown policy 'seive'; did you mean 'sieve'?", -ENOENT},
		{"s3-fifo", "unknown policy 's3-fifo'; did you mean 's3fifo'?", -ENOENT},
		{"qqqqqqqqqqqqqqqqqq", "unknown policy 'qqqqqqqqqqqqqqqqqq'", -ENOENT},
		{"clock:", "policy clock: empty knob setting, expected knob=value", -EINVAL},
		{"clock:bits", "policy clock: knob 'bits' needs a value: bits=...", -EINVAL},
		{"clock:bits=9", "policy clock: bits=9 is out of range 1..8", -EINVAL},
		{"clock:bit=1", "policy clock: unknown knob 'bit'; did you mean 'bits'?", -EINVAL},
		{"arc:p=1", "policy arc: unknown knob 'p'; it has none", -EINVAL},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_choice choice;
		struct err err = {0};

		assert_int_equal(policy_parse(cases[i].text, &choice, &err), cases[i].code);
		assert_string_equal(err.text, cases[i].message);
		assert_null(choice.knobs);
	}
}

/* The labels of the parsed list, joined by blanks. */
static void check_list(const char *text, const char *expected)
{
	struct policy_choice *choices;
	char labels[512] = "";
	struct err err = {0};
	size_t nr;

	if (policy_parse_list(text, &choices, &nr, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < nr; i++) {
		strcat(labels, i ? " " : "");
		strcat(labels, choices[i].label);
		policy_choice_free(&choices[i]);
	}
	free(choices);
	assert_string_equal(labels, expected);
}

static void test_list(void **unused)
{
	(void)unused;
	check_list("lru", "lru");
	check_list("lru,fifo", "lru fifo");
	check_list("s3fifo:small=5,move=1,lru", "s3fifo:small=5,move=1 lru");
	check_list("lru,s3fifo:small=5,move=1", "lru s3fifo:small=5,move=1");
	check_list("clock:bits=1,clock:bits=2,twoq:kin=10,kout=20",
		   "clock:bits=1 clock:bits=2 twoq:kin=10,kout=20");
}

static void test_list_all(void **unused)
{
	struct policy_choice *choices;
	size_t nr, expected = 0;

	(void)unused;
	while (foliage_policies[expected])
		expected++;
	assert_int_equal(policy_parse_list("all,clock:bits=2", &choices, &nr, NULL), 0);
	assert_int_equal(nr, expected + 1);
	for (size_t i = 0; i < nr; i++) {
		if (i < expected)
			assert_ptr_equal(choices[i].policy, foliage_policies[i]);
		policy_choice_free(&choices[i]);
	}
	free(choices);
}

static void test_list_errors(void **unused)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "empty policy name in ''"},
		{"lru,", "empty policy name in 'lru,'"},
		{",lru", "empty policy name in ',lru'"},
		{"lru,,fifo", "empty policy name in 'lru,,fifo'"},
		{"bits=1",
		 "'bits=1' sets a knob of no policy; settings follow as policy:knob=value"},
		{"clock,bits=1",
		 "'bits=1' sets a knob of no policy; settings follow as policy:knob=value"},
		{"lru,arcc", "unknown policy 'arcc'; did you mean 'arc'?"},
		{"clock:bits=1,lru,fifo:x=1", "policy fifo: unknown knob 'x'; it has none"},
		{"all:x=1", "unknown policy 'all'"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_choice *choices = (void *)&cases;
		struct err err = {0};
		size_t nr = 5;

		assert_true(policy_parse_list(cases[i].text, &choices, &nr, &err) < 0);
		assert_string_equal(err.text, cases[i].message);
		assert_null(choices);
		assert_int_equal(nr, 0);
	}
}

/* Every built-in policy: unique name, a summary, knobs inside their structure with defaults inside
 * their bounds, and a preset that parses. */
static void check_knob_of(const struct foliage_policy *p, const struct foliage_knob *k)
{
	size_t size = k->kind == FOLIAGE_KNOB_DOUBLE ? sizeof(double) : sizeof(uint32_t);
	uint32_t nr_names = 0;

	assert_non_null(k->summary);
	assert_true(k->offset + size <= p->knobs_size && k->offset % size == 0);
	if (k->kind == FOLIAGE_KNOB_ENUM) {
		while (k->names[nr_names])
			nr_names++;
		assert_true(k->def >= 0 && k->def < nr_names);
	} else if (k->kind == FOLIAGE_KNOB_BOOL) {
		assert_true(k->def == 0 || k->def == 1);
	} else {
		assert_true(k->min <= k->def && k->def <= k->max);
	}
	assert_true(strcspn(k->name, ":,=/ ") == strlen(k->name));
}

static void test_table(void **unused)
{
	struct err err = {0};

	(void)unused;
	for (size_t i = 0; foliage_policies[i]; i++) {
		const struct foliage_policy *p = foliage_policies[i];
		void *knobs = calloc(1, p->knobs_size + 1);

		assert_int_equal(p->abi, FOLIAGE_POLICY_ABI);
		assert_ptr_equal(policy_find(p->name), p);
		assert_true(p->summary && strlen(p->summary) > 5);
		assert_true(strcspn(p->name, ":,=/ ") == strlen(p->name));
		assert_true(p->engine || (p->create && p->destroy && (p->access || p->run)));
		for (const struct foliage_knob *k = p->knobs; k && k->name; k++)
			check_knob_of(p, k);
		if (p->preset && *p->preset && policy_knobs_parse(p, knobs, p->preset, &err))
			fail_msg("%s", err.text);
		free(knobs);
	}
}

/* The documented parameters of the reference policies: the anchors hold for these. */
static void test_reference_defaults(void **unused)
{
	static const struct {
		const char *policy, *knob;
		double def;
	} defaults[] = {
		{"clock", "bits", 1},          {"s3fifo", "small", 10},
		{"s3fifo", "ghost", 90},       {"s3fifo", "move", 2},
		{"twoq", "kin", 25},           {"twoq", "kout", 50},
		{"slru", "segments", 4},       {"lirs", "hir", 1},
		{"lirs", "ghosts", 100},       {"qdlp", "small", 10},
		{"qdlp", "ghost", 90},         {"qdlp", "move", 1},
		{"qdlp", "bits", 2},           {"wtinylfu", "window", 1},
		{"wtinylfu", "protected", 80}, {"wtinylfu", "sample", 10},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		const struct foliage_knob *k = policy_find(defaults[i].policy)->knobs;

		while (k->name && strcmp(k->name, defaults[i].knob) != 0)
			k++;
		assert_non_null(k->name);
		assert_true(k->def == defaults[i].def);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_and_preset),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_knob_errors),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_long_label),
		cmocka_unit_test(test_policy_errors),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_list_all),
		cmocka_unit_test(test_list_errors),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_reference_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
