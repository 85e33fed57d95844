/* SPDX-License-Identifier: MIT
 *
 * A trace as processes with their accesses: sizes of files, private memory, who waits for whom; and
 * the two recordings, which run the same way every time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workload/script.h"
#include "workload/suite.h"

static void load(const char *text, struct script *s)
{
	struct trace_options options = {.format = "csv", .work = true};
	struct trace *trace;
	struct err err = {""};

	assert_int_equal(trace_open_memory(text, strlen(text), "text", &options, &trace, &err), 0);
	if (script_load(s, trace, "text", &err))
		fail_msg("%s", err.text);
	trace_close(trace);
}

/* a writes what b reads; c begins while b runs. */
static void files_and_order(void **state)
{
	struct script s;

	(void)state;
	load("page,nr,op,file,process\n"
	     "0,9,read,/in,a\n"
	     "0,3,write,/out,a\n"
	     "1000000000,2,load,/sparse,b\n"
	     "5,1,load,/sparse,b\n"
	     "0,3,read,/out,c\n"
	     "3,4,write,/in,c\n"
	     "700,1,exec,/sparse,b\n",
	     &s);
	assert_int_equal(s.nr_processes, 3);
	assert_string_equal(s.processes[0].name, "a");
	assert_int_equal(s.processes[0].after, 0);
	assert_int_equal(s.processes[1].after, 1); /* a has ended */
	assert_int_equal(s.processes[2].after, 1); /* b has not */
	assert_int_equal(s.ends[0], 0);
	assert_int_equal(s.ends[1], 2);
	assert_int_equal(s.ends[2], 1);
	assert_int_equal(s.processes[1].rank, 2);
	assert_int_equal(s.nr_files, 3);
	assert_int_equal(s.files[0].pages, 9);
	assert_int_equal(s.files[0].from_start, 9);
	assert_true(s.files[0].writer == NO_WRITER);
	assert_int_equal(s.files[1].pages, 3);
	assert_int_equal(s.files[1].from_start, 0);
	assert_int_equal(s.files[1].writer, 0);
	/* Three stretches of 2 MiB: that of page 5, that of page 700, and the far one. */
	assert_int_equal(s.processes[1].steps[1].page, 5);
	assert_int_equal(s.processes[1].steps[2].page, 700);
	assert_int_equal(s.processes[1].steps[0].page, 1024 + 1000000000 % 512);
	assert_int_equal(s.files[2].pages, 1024 + 1000000000 % 512 + 2);
	assert_int_equal(s.touched, 9 + 3 + 4);
	assert_int_equal(s.accesses, 9 + 3 + 2 + 1 + 3 + 4 + 1);
	assert_false(s.timed);
	script_free(&s);
}

/* The same addresses in two processes are two pages. */
static void private_memory(void **state)
{
	struct script s;

	(void)state;
	load("page,nr,op,file,process\n"
	     "34359738367,1,store,memory,a\n"
	     "513,1,store,memory,a\n"
	     "34359738367,1,load,memory,b\n",
	     &s);
	assert_int_equal(s.touched, 3);
	assert_int_equal(s.processes[0].slots[0].pages, 1024);
	assert_int_equal(s.processes[1].slots[0].pages, 512);
	assert_int_equal(s.processes[0].steps[0].page, 512 + 511);
	assert_int_equal(s.processes[0].steps[1].page, 1);
	assert_int_equal(s.processes[1].steps[0].page, 511);
	script_free(&s);
}

static void run_suite(const struct suite *suite, struct suite_report *report)
{
	const struct suite_options options = {
		.suite = suite, .policies = "clru,mglru,fg", .runs = 1};
	struct err err = {""};
	void *state;

	if (suite->open(&options, &state, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < suite->tasks(state); i++)
		if (suite->run(state, i, &err))
			fail_msg("%s: %s", suite->name, err.text);
	assert_int_equal(suite->report(state, report), 0);
	suite->close(state);
}

static double measured(const struct suite_report *report, const char *metric, const char *policy)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		if (!strcmp(report->rows[i].metric, metric) &&
		    !strcmp(report->rows[i].policy, policy))
			return report->rows[i].measured;
	fail_msg("no %s of %s", metric, policy);
	return 0;
}

static const struct suite *suite_of(const char *name)
{
	for (size_t i = 0; suites[i]; i++)
		if (!strcmp(suites[i]->name, name))
			return suites[i];
	return NULL;
}

/* Twice, byte for byte. */
static void same_twice(const char *name, struct suite_report *first)
{
	const struct suite *suite = suite_of(name);
	struct suite_report second = {0};

	if (!suite) {
		print_message("SKIP: %s: this build has no zstd\n", name);
		skip();
	}
	run_suite(suite, first);
	run_suite(suite, &second);
	assert_int_equal(first->nr_rows, second.nr_rows);
	for (size_t i = 0; i < first->nr_rows; i++) {
		assert_string_equal(first->rows[i].metric, second.rows[i].metric);
		assert_memory_equal(&first->rows[i].measured, &second.rows[i].measured,
				    sizeof(double));
	}
	suite_report_free(&second);
}

static void recorded_sqlite_grep(void **state)
{
	struct suite_report report = {0};

	(void)state;
	same_twice("real-sqlite-grep", &report);
	/* The order that was published for the same two programs. */
	assert_true(measured(&report, "sqlite3_ms", "mglru") >
		    measured(&report, "sqlite3_ms", "clru"));
	assert_true(measured(&report, "sqlite3_ms", "mglru") >
		    measured(&report, "sqlite3_ms", "fg"));
	suite_report_free(&report);
}

static void recorded_kbuild(void **state)
{
	static const char *const policies[] = {"clru", "mglru", "fg"};
	struct suite_report report = {0};

	(void)state;
	same_twice("real-kbuild", &report);
	for (size_t i = 0; i < 3; i++) {
		/* What is read again was read before, and what comes back had gone. */
		assert_true(measured(&report, "pgpgin", policies[i]) >=
			    4 * (measured(&report, "refault_file", policies[i]) +
				 measured(&report, "pswpin", policies[i])));
		assert_true(measured(&report, "pswpin", policies[i]) ==
			    measured(&report, "refault_anon", policies[i]));
		assert_true(measured(&report, "cc1_ms", policies[i]) > 0);
	}
	suite_report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_order),
		cmocka_unit_test(private_memory),
		cmocka_unit_test(recorded_sqlite_grep),
		cmocka_unit_test(recorded_kbuild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
