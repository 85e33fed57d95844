/* SPDX-License-Identifier: MIT
 *
 * Scenarios without a kernel: the compiler and its messages, and the world's readahead,
 * write-back, swap and limits, each on a case small enough to count by hand. What the numbers must
 * be against a real kernel is tests/kernel's business.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload/scenario_run.h"

static int compile(const char *text, struct scenario *s, struct err *err)
{
	char path[] = "/tmp/scenario-test-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	rc = scenario_compile(path, s, err);
	unlink(path);
	return rc;
}

/* A kernel's record that says nothing but how much of the limit was in use. */
static struct scenario_record kernel_record(const char *log)
{
	struct scenario_record record = {0};

	assert_int_equal(scenario_record_parse(strdup(log), &record), 0);
	return record;
}

static struct scenario_record run(const char *text, const char *log, struct scenario *s)
{
	struct scenario_record kernel = kernel_record(log), engine;
	struct err err = {""};

	assert_int_equal(compile(text, s, &err), 0);
	if (scenario_run(s, "mglru-6.12", &kernel, 0, &engine, &err))
		fail_msg("%s", err.text);
	scenario_record_free(&kernel);
	return engine;
}

static uint64_t misses(const struct scenario *s, const struct scenario_record *r)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->head.nr_accesses; i++)
		n += r->missed[i];
	return n;
}

static double number(const struct scenario_record *r, size_t entry, const char *name)
{
	double value = -1;

	assert_true(entry < r->nr_entries);
	scenario_number(&r->entries[entry], name, &value);
	return value;
}

static void test_compile(void **unused)
{
	struct scenario s;
	struct err err;

	(void)unused;
	assert_int_equal(compile("file a 100\nanon h 50\ngroup t\nprocess p t\nzram 1M\n"
				 "scan s a read 0 100 4\nuniform u h store 10 5 7\n"
				 "repeat 3\nrun 2 s\nrun 1 u\nend\ndo fsync a\nstat x # end\n",
				 &s, &err),
			 0);
	assert_int_equal(s.head.nr_files, 2);
	assert_int_equal(s.head.nr_ops, 3 * 3 + 2);
	assert_int_equal(s.head.nr_accesses, 3 * (2 * 4 + 1));
	assert_int_equal(s.zram, 1 << 20);
	assert_int_equal(s.ops[1].page, 4);
	assert_int_equal(s.ops[3].page, 8);
	assert_in_range(s.ops[2].page, 10, 14);
	assert_int_equal(s.ops[9].code, SCENARIO_PROCESS);
	assert_string_equal(s.texts + s.ops[10].page, "stat x");
	scenario_free(&s);
}

static void test_messages(void **unused)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"file a 10\ngroup t\nprocess p t\nrun 5 z\n", "line 4: unknown generator: z"},
		{"file a 10\ngroup t\nprocess p t\nscan s a read 5 6 1\n",
		 "line 4: beyond the end of the file: a"},
		{"file a 10\nprocess p t\n", "line 2: unknown group: t"},
		{"file a 10\ngroup t\nprocess p t\nrepeat 2\n", "a repeat without end"},
		{"group t\nprocess p t\nscan s a read 0 1 1\n",
		 "GEN FILE OP expected, with a file declared above: a"},
		{"file a 10\n", "no process"},
		{"expect agree x\n", "line 1: expect"},
		{"tlb 3\n", "line 1: not a power of two: 3"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scenario s;
		struct err err = {""};

		assert_int_equal(compile(cases[i].text, &s, &err), -EILSEQ);
		if (!strstr(err.text, cases[i].message))
			fail_msg("'%s' instead of '%s'", err.text, cases[i].message);
	}
}

/* From the first page on: 4 pages, then 8, 16, 32, 32, ...: only the first read finds its page
 * missing. Behind the last mark (96 - 32 = 64) the window 92..123 was asked for, clipped at the
 * end of the file. */
static void test_sequential_readahead(void **unused)
{
	struct scenario s;
	struct scenario_record r =
		run("file a 100\ngroup t\nprocess p t\nscan s a read 0 100 1\n"
		    "run 1 s\nstat one\nrun 4 s\nstat five\nrun 95 s\nstat all\n",
		    "stat one\nstat five\nstat all\n", &s);

	(void)unused;
	assert_int_equal(misses(&s, &r), 1);
	assert_true(r.missed[0]);
	assert_true(number(&r, 0, "resident a") == 4);
	/* Page 1 was marked: 4..11; page 4 was marked: 12..27. */
	assert_true(number(&r, 1, "resident a") == 28);
	assert_true(number(&r, 2, "resident a") == 100);
	scenario_record_free(&r);
	scenario_free(&s);
}

/* Alone, a page brings nothing with it; nor with FADV_RANDOM when it follows another. */
static void test_no_readahead(void **unused)
{
	struct scenario s;
	struct scenario_record r =
		run("file a 1000\nfile b 1000\ngroup t\nprocess p t\nscan x a read 500 1 1\n"
		    "scan y b read 500 40 1\ndo fadvise b random\nrun 1 x\nrun 40 y\nstat s\n",
		    "stat s\n", &s);

	(void)unused;
	assert_int_equal(misses(&s, &r), 41);
	assert_true(number(&r, 0, "resident a") == 1);
	assert_true(number(&r, 0, "resident b") == 40);
	scenario_record_free(&r);
	scenario_free(&s);
}

/* Of 400 pages 20 are not ours, index nodes among them; the last session may just have freed 64. */
static void test_room(void **unused)
{
	struct scenario s;
	struct scenario_record r =
		run("file a 1000\ngroup t\nprocess p t\nscan s a read 0 1000 1\nset t memory.max "
		    "1600K\n"
		    "do fadvise a random\nrun 1000 s\nstat s\n",
		    "stat s\n resident a 380\n group t memory.current 1638400\n", &s);
	double pages = number(&r, 0, "resident a");

	(void)unused;
	assert_int_equal(misses(&s, &r), 1000);
	assert_in_range((uint64_t)pages, 380 - 63, 380);
	scenario_record_free(&r);
	scenario_free(&s);
}

/* Written pages are dirty until fsync; a dirty tail is passed over and comes back by its
 * write-back. */
static void test_dirty(void **unused)
{
	struct scenario s;
	struct scenario_record r =
		run("file a 2000\ngroup t\nprocess p t\nset t memory.max 1600K\n"
		    "scan w a write 0 100 1\nscan s a read 100 1900 1\ndo fadvise a random\n"
		    "run 100 w\nrun 500 s\nstat dirty\ndo fsync a\nrun 500 s\nstat clean\n",
		    "stat dirty\nstat clean\n", &s);

	(void)unused;
	/* All of them were passed over... */
	assert_true(number(&r, 0, "group t pgactivate") >= 64);
	/* ...and no page was counted as a refault, nor was a write. */
	assert_true(number(&r, 1, "group t workingset_refault_file") == 0);
	scenario_record_free(&r);
	scenario_free(&s);
}

static void test_swap(void **unused)
{
	static const char text[] = "anon h 600\nzram %s\ngroup t\nprocess p t\nset t memory.max "
				   "1600K\nscan s h store 0 600 1\n"
				   "run 600 s\nstat a\nrun 600 s\nstat b\n";
	struct scenario_record r;
	struct scenario s;
	char line[256];

	(void)unused;
	snprintf(line, sizeof(line), text, "4M");
	r = run(line, "stat a\nstat b\n", &s);
	assert_true(number(&r, 0, "group t pgsteal") >= 200);
	assert_true(number(&r, 0, "group t workingset_refault_anon") == 0);
	assert_true(number(&r, 1, "group t workingset_refault_anon") >= 200);
	scenario_record_free(&r);
	scenario_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compile),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_sequential_readahead),
		cmocka_unit_test(test_no_readahead),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_dirty),
		cmocka_unit_test(test_swap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
