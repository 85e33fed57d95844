/* SPDX-License-Identifier: MIT
 *
 * FG-W between private memory and a file of the same size, equally used, in a group that holds 40 %
 * of both, at three settings of swappiness: no more misses than fg, neither type squeezed to
 * nothing, and swappiness does what it says. The scenarios are those that a booted kernel runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "workload/scenario_run.h"

enum { OTHER_BYTES = 800 * 4096, MEASURED = 200000 };

struct result {
	uint64_t misses; /* of the last window */
	double anon, file;
};

static void run(const struct scenario *s, const char *policy, struct result *out)
{
	char text[256];
	struct scenario_record other = {0}, record;
	const struct scenario_entry *last = NULL;
	struct err err = {0};

	/* What the kernel's record tells the engine: memory that is not the scenario's. */
	snprintf(text, sizeof(text),
		 "stat warm\n group t memory.current %d\nstat w0\n group t memory.current %d\n",
		 OTHER_BYTES, OTHER_BYTES);
	assert_int_equal(scenario_record_parse(strdup(text), &other), 0);
	if (scenario_run(s, policy, &other, 0, &record, &err))
		fail_msg("%s: %s", policy, err.text);
	*out = (struct result){0};
	for (uint64_t i = s->head.nr_accesses - MEASURED; i < s->head.nr_accesses; i++)
		out->misses += record.missed[i];
	for (size_t i = 0; i < record.nr_entries; i++)
		if (!strcmp(record.entries[i].head, "stat w0"))
			last = &record.entries[i];
	assert_non_null(last);
	assert_true(scenario_number(last, "group t anon", &out->anon));
	assert_true(scenario_number(last, "group t file", &out->file));
	scenario_record_free(&other);
	scenario_record_free(&record);
}

static void swappiness(void **state)
{
	static const char *const names[] = {"swap-1", "swap-60", "swap-200"};
	double file = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct scenario s;
		struct result fg, fgw;
		struct err err = {0};
		char path[512];

		snprintf(path, sizeof(path), "%s/tests/kernel/scenarios/%s.scn", FOLIAGE_SOURCE_DIR,
			 names[i]);
		if (scenario_compile(path, &s, &err))
			fail_msg("%s", err.text);
		run(&s, "fg", &fg);
		run(&s, "fgw", &fgw);
		printf("%-8s misses: fg %lu, fgw %lu; anon %.0f, file %.0f pages\n", names[i],
		       fg.misses, fgw.misses, fgw.anon / 4096, fgw.file / 4096);
		assert_true(fgw.misses <= fg.misses);
		assert_true(MIN(fgw.anon, fgw.file) > (fgw.anon + fgw.file) / 20);
		assert_true(fgw.file > file);
		file = fgw.file;
		scenario_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swappiness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
