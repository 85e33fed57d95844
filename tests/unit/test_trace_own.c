/* SPDX-License-Identifier: MIT
 *
 * Foliage's own format: what is written comes back, a changed or cut file never reads as a good
 * one, and an interrupted recording gives what was flushed.
 */
#include "test_trace.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "trace/names.h"
#include "trace/write.h"

static char folder[] = "/tmp/foliage-test-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[2][128];
	static unsigned int turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Requests as programs make them: runs, jumps, repeats, several files and processes, all
 * operations. */
static struct trace_record *make_records(size_t n, uint64_t seed)
{
	struct trace_record *r = calloc(n, sizeof(*r));

	assert_non_null(r);
	for (size_t i = 0; i < n; i++) {
		uint32_t kind = splitmix64_below(&seed, 8);

		r[i].op = (uint8_t)splitmix64_below(&seed, TRACE_NR_OPS);
		r[i].nr = kind == 0 ? 1 + splitmix64_below(&seed, TRACE_REQUEST_MAX)
				    : 1 + splitmix64_below(&seed, 3);
		r[i].file = splitmix64_below(&seed, 3) ? 1 : splitmix64_below(&seed, 1 << 24);
		r[i].process = splitmix64_below(&seed, 4) ? 7 : splitmix64_below(&seed, 1 << 24);
		r[i].page = kind < 3 && i   ? r[i - 1].page + r[i - 1].nr
			    : kind < 5 && i ? r[i - 1].page
			    : kind == 5     ? splitmix64(&seed)
					    : splitmix64_below(&seed, 1000);
	}
	return r;
}

static void write_records(const char *path, const struct trace_record *records, size_t n,
			  bool names, bool commit)
{
	struct trace_writer *w;
	struct err err = {""};

	assert_int_equal(trace_create(path, "foliage", commit ? 0 : TRACE_WRITE_IN_PLACE, &w, &err),
			 0);
	if (names) {
		assert_int_equal(
			trace_write_name(w, TRACE_NAME_FILE, 1, "/usr/lib/libc.so.6", &err), 0);
		assert_int_equal(trace_write_name(w, TRACE_NAME_PROCESS, 7, "gcc", &err), 0);
	}
	for (size_t i = 0; i < n; i += 100)
		assert_int_equal(trace_write(w, records + i, n - i < 100 ? n - i : 100, &err), 0);
	if (commit) {
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(trace_commit(w, &err), 0);
	} else {
		/* As if killed after a flush: nothing more reaches the file. */
		assert_int_equal(trace_flush(w, &err), 0);
		trace_discard(w);
	}
}

static void check_same(const struct trace_record *a, const struct trace_record *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(a[i].page, b[i].page);
		assert_int_equal(a[i].nr, b[i].nr);
		assert_int_equal(a[i].file, b[i].file);
		assert_int_equal(a[i].process, b[i].process);
		assert_int_equal(a[i].op, b[i].op);
	}
}

static void round_trip(const char *name, size_t n)
{
	const char *path = in_folder(name);
	struct trace_record *records = make_records(n, n), *back;
	struct trace *trace;
	struct err err = {""};

	write_records(path, records, n, true, true);
	assert_int_equal(trace_open(path, NULL, &trace, &err), 0);
	assert_string_equal(trace_format(trace), "foliage");
	assert_int_equal(slurp(trace, &back, 333, &err), n);
	check_same(records, back, n);
	assert_string_equal(trace_file_name(trace, 1), "/usr/lib/libc.so.6");
	assert_string_equal(trace_process_name(trace, 7), "gcc");
	assert_null(trace_file_name(trace, 2));
	trace_close(trace);
	free(records);
	free(back);
	unlink(path);
}

/* Times between accesses come back when they are asked for, and nobody else sees them. */
static void test_work(void **state)
{
	const char *path = in_folder("work.foliage");
	struct trace_record *records = make_records(3000, 5), *back;
	struct trace_options options = {.work = true};
	struct trace *trace;
	struct err err = {""};
	size_t plain = 0;
	uint64_t seed = 1;

	(void)state;
	/* Whole blocks of them, too. */
	for (size_t i = 0; i < 3000; i++)
		if (i < 1500 || i % 3 == 0)
			records[i] = (struct trace_record){.op = TRACE_WORK,
							   .page = splitmix64(&seed) >> i % 64,
							   .process = records[i].process};
	write_records(path, records, 3000, false, true);
	assert_int_equal(trace_open(path, &options, &trace, &err), 0);
	assert_int_equal(slurp(trace, &back, 333, &err), 3000);
	check_same(records, back, 3000);
	trace_close(trace);
	free(back);
	for (size_t i = 0; i < 3000; i++)
		if (records[i].op != TRACE_WORK)
			records[plain++] = records[i];
	assert_int_equal(trace_open(path, NULL, &trace, &err), 0);
	assert_int_equal(slurp(trace, &back, 7, &err), plain);
	check_same(records, back, plain);
	trace_close(trace);
	free(back);
	free(records);
	unlink(path);
}

static void test_round_trip(void **state)
{
	(void)state;
	round_trip("one", 1);
	round_trip("few.foliage", 100);
	round_trip("many.foliage", 50000); /* several blocks */
}

static void test_round_trip_packed(void **state)
{
	const char *path;
	struct trace_record *records, *back;
	struct trace *trace;
	struct trace_writer *w;
	struct err err = {""};
	int code;

	(void)state;
	path = in_folder("a.foliage.zst");
	code = trace_create(path, NULL, 0, &w, &err);
	if (code == -ENOTSUP) {
		print_message("SKIP: this build has no libzstd\n");
		skip();
	}
	assert_int_equal(code, 0);
	records = make_records(50000, 5);
	assert_int_equal(trace_write(w, records, 50000, &err), 0);
	assert_int_equal(trace_commit(w, &err), 0);
	assert_int_equal(trace_open(path, NULL, &trace, &err), 0);
	assert_string_equal(trace_packing(trace), "zstd");
	assert_int_equal(slurp(trace, &back, 1000, &err), 50000);
	check_same(records, back, 50000);
	trace_close(trace);
	free(records);
	free(back);
	unlink(path);
}

static void test_sizes(void **state)
{
	struct trace_record sequential[1000];
	FILE *file;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		sequential[i] = (struct trace_record){.page = i, .nr = 1, .op = TRACE_WRITE};
	write_records(in_folder("a"), sequential, 1000, false, true);
	file = fopen(in_folder("a"), "re");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	/* Head, one block of a byte a record, end mark. */
	assert_int_equal(ftell(file), 16 + 16 + 1000 + 16 + 24);
	fclose(file);
	unlink(in_folder("a"));
}

static uint8_t *load(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "re");
	uint8_t *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*bytes = (size_t)ftell(file);
	rewind(file);
	data = malloc(*bytes);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	fclose(file);
	return data;
}

static void test_every_cut_and_bit(void **state)
{
	struct trace_record *records = make_records(60, 3), *back;
	struct err err = {""};
	size_t bytes;
	uint8_t *data;

	(void)state;
	write_records(in_folder("a"), records, 60, true, true);
	data = load(in_folder("a"), &bytes);
	unlink(in_folder("a"));
	assert_int_equal(slurp_memory(data, bytes, "a", NULL, &back, &err), 60);
	free(back);
	for (size_t cut = 1; cut < bytes; cut++) {
		const struct trace_options options = {.format = "foliage"};

		err.text[0] = 0;
		assert_int_equal(slurp_memory(data, cut, "a", &options, &back, &err), -EILSEQ);
		assert_non_null(strstr(err.text, "a: byte "));
	}
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		const struct trace_options options = {.format = "foliage"};

		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(slurp_memory(data, bytes, "a", &options, &back, &err), -EILSEQ);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(data);
	free(records);
}

static void test_block_missing(void **state)
{
	struct trace_record *records = make_records(30000, 3), *back;
	struct err err = {""};
	size_t bytes, block;
	uint8_t *data;

	(void)state;
	write_records(in_folder("a"), records, 30000, false, true);
	data = load(in_folder("a"), &bytes);
	unlink(in_folder("a"));
	block = 16 + (size_t)(data[24] | data[25] << 8 | data[26] << 16);
	memmove(data + 16, data + 16 + block, bytes - 16 - block);
	assert_int_equal(slurp_memory(data, bytes - block, "a", NULL, &back, &err), -EILSEQ);
	assert_non_null(strstr(err.text, "blocks are missing or exchanged"));
	free(data);
	free(records);
}

static void test_interrupted(void **state)
{
	const struct trace_options partial = {.format = "foliage-partial"};
	struct trace_record *records = make_records(30000, 3), *back;
	struct err err = {""};
	size_t bytes;
	uint8_t *data;
	ssize_t n;

	(void)state;
	write_records(in_folder("a"), records, 30000, true, false);
	data = load(in_folder("a"), &bytes);
	unlink(in_folder("a"));
	assert_int_equal(slurp_memory(data, bytes, "a", NULL, &back, &err), -EILSEQ);
	assert_non_null(strstr(err.text, "no end mark after 30000 records"));
	assert_int_equal(slurp_memory(data, bytes, "a", &partial, &back, &err), 30000);
	check_same(records, back, 30000);
	free(back);
	/* The last block is cut: the ones before it are there. */
	n = slurp_memory(data, bytes - 1, "a", &partial, &back, &err);
	assert_true(n > 5000 && n < 30000);
	check_same(records, back, (size_t)n);
	free(back);
	/* Partial does not mean corrupt. */
	data[bytes / 2] ^= 1;
	assert_int_equal(slurp_memory(data, bytes, "a", &partial, &back, &err), -EILSEQ);
	free(data);
	free(records);
}

/* Numbers far apart, more than one table of them, one given twice; the order of naming is kept. */
static void test_names(void **state)
{
	const struct trace_record record = {.page = 1, .nr = 1, .file = 5, .process = 4194303};
	struct trace_record back[2];
	struct trace_writer *w;
	struct trace *trace;
	struct err err = {""};
	const char *path, *name;
	size_t cursor = 0;
	uint32_t number;
	char text[16];

	(void)state;
	path = in_folder("a");
	assert_int_equal(trace_create(path, "foliage", 0, &w, &err), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "name %u", i);
		assert_int_equal(
			trace_write_name(w, TRACE_NAME_PROCESS, 4194303 - 4096 * i, text, &err), 0);
	}
	assert_int_equal(trace_write_name(w, TRACE_NAME_PROCESS, 4194303, "again", &err), 0);
	assert_int_equal(trace_write_name(w, TRACE_NAME_FILE, NAMES_MAX, "x", &err), -ERANGE);
	assert_int_equal(trace_write(w, &record, 1, &err), 0);
	assert_int_equal(trace_commit(w, &err), 0);
	assert_int_equal(trace_open(path, NULL, &trace, &err), 0);
	assert_false(trace_next_name(trace, TRACE_NAME_PROCESS, &cursor, &number, &name));
	assert_int_equal(trace_read(trace, back, 2, &err), 1);
	assert_string_equal(trace_process_name(trace, 4194303), "again");
	assert_string_equal(trace_process_name(trace, 4194303 - 4096 * 999), "name 999");
	assert_null(trace_process_name(trace, 4194302));
	assert_null(trace_file_name(trace, 5));
	for (uint32_t i = 0; i < 1001; i++)
		assert_true(trace_next_name(trace, TRACE_NAME_PROCESS, &cursor, &number, &name));
	assert_int_equal(number, 4194303);
	assert_string_equal(name, "again");
	assert_false(trace_next_name(trace, TRACE_NAME_PROCESS, &cursor, &number, &name));
	trace_close(trace);
	unlink(path);
}

static void test_discard_and_bad_output(void **state)
{
	const struct trace_record big = {.page = UINT64_C(1) << 32, .nr = 1};
	struct trace_writer *w;
	struct err err = {""};

	(void)state;
	assert_int_equal(trace_create(in_folder("missing/a.u32"), NULL, 0, &w, &err), -ENOENT);
	assert_int_equal(trace_create(in_folder("a.what"), NULL, 0, &w, &err), -EINVAL);
	assert_int_equal(trace_create(in_folder("a.u32"), "u33", 0, &w, &err), -EINVAL);
	assert_int_equal(trace_create(in_folder("a.u32.gz"), NULL, 0, &w, &err), -EINVAL);
	assert_int_equal(trace_create(in_folder("a.u32"), NULL, 0, &w, &err), 0);
	assert_int_equal(trace_write(w, &big, 1, &err), -ERANGE);
	assert_non_null(strstr(err.text, "record 1: page 4294967296 does not fit in 32 bits"));
	trace_discard(w);
	assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
	assert_int_equal(mkdir(folder, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_round_trip_packed),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_every_cut_and_bit),
		cmocka_unit_test(test_block_missing),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_discard_and_bad_output),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
