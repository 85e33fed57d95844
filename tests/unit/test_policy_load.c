/* SPDX-License-Identifier: MIT
 *
 * Policies from shared objects: the shipped example is compiled with the system's compiler, loaded
 * and run, and objects that are no policies are turned away with a reason.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "machine/room.h"

static char folder[] = "/tmp/foliage-load-XXXXXX";

/* Compile `source` (relative to the source tree, or absolute) to folder/name. */
static int compile(const char *source, const char *name, const char *defines)
{
	const char *cc = getenv("CC");
	char command[2048];

	snprintf(command, sizeof(command),
		 "cd '%s' && %s -O1 -w -shared -fPIC -Iinclude %s -o '%s/%s' '%s' 2>'%s/log'",
		 FOLIAGE_SOURCE_DIR, cc ? cc : "cc", defines, folder, name, source, folder);
	return system(command);
}

static int setup(void **unused)
{
	(void)unused;
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **unused)
{
	char command[128];

	(void)unused;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void need_compiler(void)
{
	if (system("${CC:-cc} --version >/dev/null 2>&1") == 0)
		return;
	printf("SKIP: no C compiler ($CC or cc), the example policy is not built\n");
	skip();
}

static uint64_t misses_of(const char *text, const uint32_t *ids, size_t n, uint32_t nr_ids)
{
	struct foliage_policy_env env = {.room = 20, .nr_ids = nr_ids, .seed = 1, .scale = 1};
	struct foliage_stats stats;
	struct policy_choice choice;
	struct err err = {0};
	struct room *room = NULL;

	if (policy_parse(text, &choice, &err) || room_open(&choice, &env, &room, &err))
		fail_msg("%s", err.text);
	assert_int_equal(room_run(room, ids, NULL, n), 0);
	room_stats(room, &stats);
	room_close(room);
	policy_choice_free(&choice);
	assert_int_equal(stats.accesses, n);
	return stats.misses;
}

/* In a loop larger than the room LRU misses always, random does not, many draws come near to LRU.
 */
static void test_example(void **unused)
{
	uint32_t ids[3000];
	uint64_t random, sampled;
	char text[128];

	(void)unused;
	need_compiler();
	assert_int_equal(compile("examples/policy-random.c", "random.so", ""), 0);
	for (uint32_t i = 0; i < 3000; i++)
		ids[i] = i % 25;
	snprintf(text, sizeof(text), "%s/random.so", folder);
	random = misses_of(text, ids, 3000, 25);
	snprintf(text, sizeof(text), "%s/random.so:tries=64", folder);
	sampled = misses_of(text, ids, 3000, 25);
	assert_int_equal(misses_of("lru", ids, 3000, 25), 3000);
	assert_in_range(random, 600, 2000);
	assert_in_range(sampled, random + 500, 3000);
}

/* A list may mix; the label keeps the path; knobs of a loaded policy are checked like any other's.
 */
static void test_texts(void **unused)
{
	struct policy_choice choice, *choices;
	char text[200];
	struct err err;
	size_t nr;

	(void)unused;
	need_compiler();
	assert_int_equal(compile("examples/policy-random.c", "random.so", ""), 0);
	snprintf(text, sizeof(text), "lru,%s/random.so:tries=2,fifo", folder);
	assert_int_equal(policy_parse_list(text, &choices, &nr, &err), 0);
	assert_int_equal(nr, 3);
	assert_string_equal(choices[1].policy->name, "random");
	assert_non_null(choices[1].library);
	assert_non_null(strstr(choices[1].label, "random.so:tries=2"));
	for (size_t i = 0; i < nr; i++)
		policy_choice_free(&choices[i]);
	free(choices);
	snprintf(text, sizeof(text), "%s/random.so:tries=65", folder);
	assert_int_equal(policy_parse(text, &choice, &err), -EINVAL);
	assert_string_equal(err.text, "policy random: tries=65 is out of range 1..64");
	/* Without a slash it is a file in the current folder, not one on the library path. */
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(policy_parse("random.so", &choice, &err), 0);
	assert_string_equal(choice.label, "random.so");
	policy_choice_free(&choice);
	assert_int_equal(policy_parse("libc.so", &choice, &err), -ELIBBAD);
}

static void write_source(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("#include \"foliage/policy.h\"\n"
	      "static int create(const struct foliage_policy_env *e, const void *k, void **s) { "
	      "return 0; }\n"
	      "static void destroy(void *s) {}\n"
	      "static bool touch(void *s, uint32_t id, uint64_t now) { return 0; }\n",
	      f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void test_rejected(void **unused)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"int something;", "no policy: it exports no 'foliage_policy'"},
		{"const struct foliage_policy foliage_policy = {.abi = 99};",
		 "policy of interface 99, this is 1"},
		{"const struct foliage_policy foliage_policy = {.abi = 1};", "bad policy: no name"},
		{"const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\"};",
		 "bad policy: no create or no destroy"},
		{"const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy};",
		 "bad policy: neither access nor run"},
		{"const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy, .access = touch, .engine = (void *)1};",
		 "bad policy: an engine policy, which cannot be loaded"},
		{"const struct foliage_knob k[] = {{\"a\", \"b\", FOLIAGE_KNOB_DOUBLE, 4, 0, 0, "
		 "1}, {0}};"
		 "const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy, .access = touch, .knobs = k, .knobs_size "
		 "= 8};",
		 "bad policy: a knob outside its knob structure"},
		{"const struct foliage_knob k[] = {{\"a\", \"b\", FOLIAGE_KNOB_ENUM, 0, 0, 0, 1}, "
		 "{0}};"
		 "const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy, .access = touch, .knobs = k, .knobs_size "
		 "= 8};",
		 "bad policy: an enum knob without names"},
		{"const struct foliage_knob k[] = {{\"a\", \"b\", 77, 0, 0, 0, 1}, {0}};"
		 "const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy, .access = touch, .knobs = k, .knobs_size "
		 "= 8};",
		 "bad policy: a knob of unknown kind"},
		{"const struct foliage_knob k[] = {{\"a\", \"b\", FOLIAGE_KNOB_UINT, 0, 0, 0, "
		 "1e12}, {0}};"
		 "const struct foliage_policy foliage_policy = {.abi = 1, .name = \"x\","
		 " .create = create, .destroy = destroy, .access = touch, .knobs = k, .knobs_size "
		 "= 8};",
		 "bad policy: a whole-number knob with bounds beyond 32 bits"},
	};
	char source[64], object[64];

	(void)unused;
	need_compiler();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_choice choice;
		struct err err = {0};
		char name[16];

		/* A fresh name each time: the loader knows an object by its file. */
		snprintf(name, sizeof(name), "bad%zu.so", i);
		snprintf(source, sizeof(source), "%s/bad.c", folder);
		snprintf(object, sizeof(object), "%s/%s", folder, name);
		write_source(source, cases[i].text);
		assert_int_equal(compile(source, name, ""), 0);
		assert_int_equal(policy_parse(object, &choice, &err), -ELIBBAD);
		if (!strstr(err.text, cases[i].message) ||
		    strncmp(err.text, object, strlen(object)) != 0)
			fail_msg("'%s' instead of '%s'", err.text, cases[i].message);
	}
}

static void test_not_loadable(void **unused)
{
	struct policy_choice choice;
	struct err err = {0};
	char path[64];

	(void)unused;
	snprintf(path, sizeof(path), "%s/absent.so", folder);
	assert_int_equal(policy_parse(path, &choice, &err), -ELIBBAD);
	assert_non_null(strstr(err.text, "cannot be loaded"));
	snprintf(path, sizeof(path), "%s/text.so", folder);
	write_source(path, "not a shared object");
	assert_int_equal(policy_parse(path, &choice, &err), -ELIBBAD);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	assert_null(strchr(err.text, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_rejected),
		cmocka_unit_test(test_not_loadable),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
