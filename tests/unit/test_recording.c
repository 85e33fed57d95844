/* SPDX-License-Identifier: MIT
 *
 * Recordings: what becomes of a source's events (numbers, names, filters, hidden names), and the
 * source that reads valgrind's text, from a pipe that the test writes.
 */
#include "test_trace.h"

#include <errno.h>
#include <unistd.h>

#include "adapters/record/recording.h"
#include "adapters/record/source.h"

static char path[] = "/tmp/foliage-test-XXXXXX.foliage";

static int make_path(void **state)
{
	int fd = mkstemps(path, (int)strlen(".foliage"));

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int drop_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct recording *begin(struct recording_options options)
{
	struct recording *r;
	struct err err = {""};

	options.path = path;
	assert_int_equal(recording_create(&options, &r, &err), 0);
	return r;
}

/* Finish it and read it again. The trace stays open for its names. */
static struct trace *reread(struct recording *r, struct trace_record **records, ssize_t wanted)
{
	const struct trace_options options = {0};
	struct err err = {""};
	struct trace *trace;

	assert_int_equal(recording_finish(r, &err), 0);
	assert_int_equal(trace_open(path, &options, &trace, &err), 0);
	assert_int_equal(slurp(trace, records, 16, &err), wanted);
	return trace;
}

static void expect(const struct trace_record *r, enum trace_op op, uint32_t file, uint64_t page,
		   uint32_t nr)
{
	assert_int_equal(r->op, op);
	assert_int_equal(r->file, file);
	assert_int_equal(r->page, page);
	assert_int_equal(r->nr, nr);
}

static void test_numbers_and_names(void **state)
{
	struct recording *r = begin((struct recording_options){0});
	struct recording_counts counts;
	struct trace_record *records;
	struct trace *trace;

	(void)state;
	assert_int_equal(recording_process(r, 4000, 4000, "first"), 0);
	assert_int_equal(recording_file(r, 700, "a", "/a"), 0);
	assert_int_equal(recording_file(r, 5, "b", "/b"), 0);
	assert_int_equal(recording_file(r, 6, "a", "/a"), 0); /* another id of the same file */
	assert_int_equal(recording_access(r, TRACE_READ, 5, 4000, 10, 12), 0);
	assert_int_equal(recording_access(r, TRACE_WRITE, 6, 4000, 7, 7), 0);
	assert_int_equal(recording_access(r, TRACE_LOAD, 700, 4000, 8, 8), 0);
	assert_int_equal(recording_access(r, TRACE_READ, 9, 4001, 1, 1), 0); /* no names */
	/* A request longer than a trace's longest becomes several. */
	assert_int_equal(recording_access(r, TRACE_READ, 5, 4000, 0, TRACE_REQUEST_MAX), 0);
	assert_int_equal(recording_access(r, TRACE_READ, 5, 4000, 3, 2), 0); /* nothing */
	recording_counts(r, &counts);
	assert_int_equal(counts.files, 3);
	assert_int_equal(counts.processes, 2);
	assert_int_equal(counts.records, 6);
	assert_int_equal(counts.pages, 3 + 1 + 1 + 1 + TRACE_REQUEST_MAX + 1);
	assert_int_equal(counts.pages_by_op[TRACE_WRITE], 1);
	trace = reread(r, &records, 6);
	expect(&records[0], TRACE_READ, 1, 10, 3);
	expect(&records[1], TRACE_WRITE, 2, 7, 1);
	expect(&records[2], TRACE_LOAD, 2, 8, 1);
	expect(&records[3], TRACE_READ, 3, 1, 1);
	expect(&records[4], TRACE_READ, 1, 0, TRACE_REQUEST_MAX);
	expect(&records[5], TRACE_READ, 1, TRACE_REQUEST_MAX, 1);
	assert_int_equal(records[0].process, 1);
	assert_int_equal(records[3].process, 2);
	assert_string_equal(trace_file_name(trace, 1), "/b");
	assert_string_equal(trace_file_name(trace, 2), "/a");
	assert_null(trace_file_name(trace, 3));
	assert_string_equal(trace_process_name(trace, 1), "first[4000]");
	trace_close(trace);
	free(records);
}

static void test_filters(void **state)
{
	struct recording *r =
		begin((struct recording_options){.files = "*.db,/var/*", .processes = "sql*"});
	struct trace_record *records;
	struct trace *trace;

	(void)state;
	recording_process(r, 1, 1, "sqlite3");
	recording_process(r, 2, 2, "other");
	recording_file(r, 1, NULL, "/x/y.db");
	recording_file(r, 2, NULL, "/var/z");
	recording_file(r, 3, NULL, "/x/y.txt");
	for (uint32_t process = 0; process < 3; process++)
		for (uint32_t file = 0; file < 4; file++)
			assert_int_equal(recording_access(r, TRACE_READ, file, process, file, file),
					 0);
	/* A process that becomes another program by exec. */
	recording_process(r, 2, 2, "sqldiff");
	recording_access(r, TRACE_READ, 1, 2, 9, 9);
	trace = reread(r, &records, 3);
	expect(&records[0], TRACE_READ, 1, 1, 1);
	expect(&records[1], TRACE_READ, 2, 2, 1);
	expect(&records[2], TRACE_READ, 1, 9, 1);
	assert_string_equal(trace_process_name(trace, records[2].process), "sqldiff[2]");
	trace_close(trace);
	free(records);
}

static void test_anonymous(void **state)
{
	char names[2][64];
	struct trace_record *records;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct recording *r = begin((struct recording_options){.anonymize = true});
		struct trace *trace;

		recording_process(r, 1, 1, "secret");
		recording_file(r, 1, "1", "/secret");
		recording_file(r, 2, "2", "/secret");
		recording_access(r, TRACE_READ, 1, 1, 0, 0);
		recording_access(r, TRACE_READ, 2, 1, 0, 0);
		trace = reread(r, &records, 2);
		snprintf(names[i], sizeof(names[i]), "%s", trace_file_name(trace, 1));
		assert_int_equal(strlen(names[i]), strlen("file-") + 16);
		/* Equal names are equal, although the files are two. */
		assert_string_equal(trace_file_name(trace, 2), names[i]);
		assert_null(strstr(trace_process_name(trace, 1), "secret"));
		trace_close(trace);
		free(records);
	}
	/* Each recording has a key of its own. */
	assert_string_not_equal(names[0], names[1]);
}

static void test_failures_stay(void **state)
{
	char link[sizeof(path) + 16];
	const struct recording_options full = {.path = link}, nameless = {.path = "/tmp/x.what"},
				       nowhere = {.path = "/none/x.foliage"};
	struct recording *r;
	struct err err = {""};
	int code = 0;

	(void)state;
	snprintf(link, sizeof(link), "%s-full.foliage", path);
	assert_int_equal(recording_create(&nowhere, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/none/x.foliage"));
	assert_int_equal(recording_create(&nameless, &r, &err), -EINVAL);
	if (symlink("/dev/full", link) && errno != EEXIST)
		return;
	/* A full disk is told at the first write that meets it, and at the end again. */
	assert_int_equal(recording_create(&full, &r, &err), 0);
	for (uint32_t i = 0; i < 200000 && !code; i++)
		code = recording_access(r, TRACE_READ, i % 100, 1, i * 7919 % 100000,
					i * 7919 % 100000);
	assert_int_equal(code, -ENOSPC);
	assert_int_equal(recording_access(r, TRACE_READ, 1, 1, 1, 1), -ENOSPC);
	assert_int_equal(recording_flush(r, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "No space left"));
	assert_int_equal(recording_finish(r, &err), -ENOSPC);
	unlink(link);
}

/* What lackey says, poured into the source. */
static ssize_t pour(const char *text, uint32_t collapse, struct trace_record **records,
		    ssize_t wanted, struct trace **trace)
{
	struct recording *r = begin((struct recording_options){0});
	struct source *source;
	struct err err = {""};
	int log;
	ssize_t n;

	assert_int_equal(source_lackey_open(collapse, "/bin/program", &source, &log, &err), 0);
	assert_int_equal(source->ops->observe(source, getpid(), &err), 0);
	assert_int_equal(source->ops->poll(source, r, &err), 0);
	assert_int_equal(write(log, text, strlen(text)), strlen(text));
	close(log);
	while ((n = source->ops->poll(source, r, &err)) > 0)
		;
	source->ops->close(source);
	*trace = reread(r, records, wanted);
	return n;
}

static void test_lackey_calls(void **state)
{
	static const char text[] =
		"==1== Lackey, an example Valgrind tool\n"
		"SYSCALL[1,1](257) sys_openat ( 4294967196, 0x1(/data), 524288 ) --> [async] ... \n"
		"SYSCALL[1,1](257) ... [async] --> Success(0x3) \n"
		"SYSCALL[1,1](9) sys_mmap ( 0x0, 12000, 3, 1, 3, 40960 ) --> [pre-success] "
		"Success(0x700000000000) \n"
		"SYSCALL[1,1](9) sys_mmap ( 0x0, 4096, 3, 34, 4294967295, 0 ) --> [pre-success] "
		"Success(0x700000100000) \n"
		"SYSCALL[1,1](3) sys_close ( 3 )[sync] --> Success(0x0) \n"
		" L 700000000000,4\n"
		" S 700000001ffe,8\n" /* over the end of a page */
		" L 700000100008,8\n"
		"SYSCALL[1,1](11) sys_munmap ( 0x700000001000, 4096 )[sync] --> Success(0x0) \n"
		" M 700000002000,1\n"
		"SYSCALL[1,1](257) sys_openat ( 4294967196, 0x1(/none), 0 ) --> [async] ... \n"
		"SYSCALL[1,1](257) ... [async] --> Failure(0x2) \n"
		"nonsense\n"
		" L zz\n"
		"I  700000000004,3\n";
	struct trace_record *records;
	struct trace *trace;

	(void)state;
	assert_int_equal(pour(text, 1, &records, 6, &trace), -ENODATA);
	expect(&records[0], TRACE_LOAD, 1, 10, 1);
	expect(&records[1], TRACE_STORE, 1, 11, 1);
	expect(&records[2], TRACE_STORE, 1, 12, 1);
	expect(&records[3], TRACE_LOAD, 2, 0x700000100000 >> 12, 1);
	expect(&records[4], TRACE_STORE, 1, 12, 1);
	expect(&records[5], TRACE_EXEC, 1, 10, 1);
	assert_string_equal(trace_file_name(trace, 1), "/data");
	assert_string_equal(trace_file_name(trace, 2), "memory");
	assert_non_null(strstr(trace_process_name(trace, 1), "program["));
	trace_close(trace);
	free(records);
}

/* The rule of the manual, on a window of two pages. */
static void test_lackey_collapse(void **state)
{
	static const char text[] =
		"SYSCALL[1,1](9) sys_mmap ( 0x0, 409600, 3, 34, 4294967295, 0 ) --> [pre-success] "
		"Success(0x100000) \n"
		" L 100000,1\n"  /* a page is new: a record */
		" L 101000,1\n"  /* and so is the next */
		" L 100000,1\n"  /* one of the last two */
		" S 101000,1\n"  /* its first store */
		" S 101000,1\n"  /* not the first */
		" L 102000,1\n"  /* new; page 100 falls out, touched since its record */
		" L 103000,1\n"  /* new; page 101 falls out, touched since its store */
		" L 104000,1\n"; /* new; page 102 falls out, with its record as its last touch */
	static const uint64_t pages[] = {0x100, 0x101, 0x101, 0x100, 0x102, 0x101, 0x103, 0x104};
	static const enum trace_op ops[] = {TRACE_LOAD, TRACE_LOAD,  TRACE_STORE, TRACE_LOAD,
					    TRACE_LOAD, TRACE_STORE, TRACE_LOAD,  TRACE_LOAD};
	struct trace_record *records;
	struct trace *trace;

	(void)state;
	assert_int_equal(pour(text, 2, &records, 8, &trace), -ENODATA);
	for (size_t i = 0; i < 8; i++)
		expect(&records[i], ops[i], 1, pages[i], 1);
	trace_close(trace);
	free(records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_names), cmocka_unit_test(test_filters),
		cmocka_unit_test(test_anonymous),         cmocka_unit_test(test_failures_stay),
		cmocka_unit_test(test_lackey_calls),      cmocka_unit_test(test_lackey_collapse),
	};

	return cmocka_run_group_tests(tests, make_path, drop_path);
}
