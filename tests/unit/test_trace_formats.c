/* SPDX-License-Identifier: MIT
 *
 * Every reader on a few records of its format, and on what is wrong with files: the message must
 * name the file, the place and the reason.
 */
#include "test_trace.h"

#include <errno.h>

#include "base/bits.h"

struct expected {
	uint64_t page;
	uint32_t nr, file, process;
	enum trace_op op;
};

static void check(const void *data, size_t bytes, const char *name,
		  const struct trace_options *options, const struct expected *expected, size_t n)
{
	struct trace_record *records;
	struct err err = {""};
	ssize_t got = slurp_memory(data, bytes, name, options, &records, &err);

	if (got < 0)
		fail_msg("%s", err.text);
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(records[i].page, expected[i].page);
		assert_int_equal(records[i].nr, expected[i].nr);
		assert_int_equal(records[i].file, expected[i].file);
		assert_int_equal(records[i].process, expected[i].process);
		assert_int_equal(records[i].op, expected[i].op);
	}
	free(records);
}

static void check_text(const char *text, const char *name, const struct trace_options *options,
		       const struct expected *expected, size_t n)
{
	check(text, strlen(text), name, options, expected, n);
}

static void check_bad(const void *data, size_t bytes, const char *name,
		      const struct trace_options *options, int code, const char *message)
{
	struct trace_record *records;
	struct err err = {""};

	assert_int_equal(slurp_memory(data, bytes, name, options, &records, &err), code);
	if (strncmp(err.text, name, strlen(name)) != 0 || !strstr(err.text, message) ||
	    strchr(err.text, '\n'))
		fail_msg("message '%s', wanted '%s: ... %s'", err.text, name, message);
}

static void check_bad_text(const char *text, const char *name, int code, const char *message)
{
	check_bad(text, strlen(text), name, NULL, code, message);
}

#define PAGES(...)                                                                                 \
	((const struct expected[]){__VA_ARGS__}),                                                  \
		sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected)

static void test_raw(void **state)
{
	static const uint8_t u32[] = {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 2, 1, 0, 0};
	static const uint8_t u64[] = {1, 0, 0, 0, 0, 0, 0, 0x80, 7, 0, 0, 0, 0, 0, 0, 0};

	(void)state;
	check(u32, sizeof(u32), "a.u32", NULL,
	      PAGES({1, 1, 0, 0, 0}, {UINT32_MAX, 1, 0, 0, 0}, {1, 1, 0, 0, 0}, {258, 1, 0, 0, 0}));
	check(u64, sizeof(u64), "a.U64", NULL,
	      PAGES({UINT64_C(1) << 63 | 1, 1, 0, 0, 0}, {7, 1, 0, 0, 0}));
	check(u64, sizeof(u64), "a.u32", &(struct trace_options){.format = "u64"},
	      PAGES({UINT64_C(1) << 63 | 1, 1, 0, 0, 0}, {7, 1, 0, 0, 0}));
	check_bad(u32, 15, "a.u32", NULL, -EILSEQ,
		  "record 4 (byte 12): truncated: 3 of the 4 bytes");
	check_bad(u64, 9, "a.u64", NULL, -EILSEQ, "record 2 (byte 8): truncated");
	check_bad(u32, 0, "a.u32", NULL, -ENODATA, "byte 0: empty");
	check_bad(u32, sizeof(u32), "a.u33", &(struct trace_options){.format = "u33"}, -EINVAL,
		  "unknown trace format 'u33' (formats: foliage, ");
}

static void put(uint8_t *to, uint64_t x, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(x >> 8 * i);
}

static void oracle_record(uint8_t *to, uint32_t time, uint64_t id, uint32_t size, int64_t next)
{
	put(to, time, 4);
	put(to + 4, id, 8);
	put(to + 12, size, 4);
	put(to + 16, (uint64_t)next, 8);
}

static void test_oracle(void **state)
{
	const struct trace_options objects = {.objects = true};
	uint8_t data[4 * 24];

	(void)state;
	oracle_record(data, 1, 16, 8192, -1); /* pages 2 and 3 */
	oracle_record(data + 24, 1, 15, 1024,
		      3); /* the last sector of page 1, the first of page 2 */
	oracle_record(data + 48, 2, 17, 512, -1);
	oracle_record(data + 72, 3, UINT64_MAX, 1, -1); /* an object without size */
	check(data, sizeof(data), "noname", NULL,
	      PAGES({2, 2, 0, 0, 0}, {1, 2, 0, 0, 0}, {2, 1, 0, 0, 0}, {UINT64_MAX, 1, 0, 0, 0}));
	check(data, sizeof(data), "x.oracleGeneral", &objects,
	      PAGES({16, 1, 0, 0, 0}, {15, 1, 0, 0, 0}, {17, 1, 0, 0, 0},
		    {UINT64_MAX, 1, 0, 0, 0}));
	check_bad(data, 50, "x.oracleGeneral", NULL, -EILSEQ,
		  "record 3 (byte 48): truncated: 2 of the 24");
	oracle_record(data + 24, 1, 15, 1024, -2);
	check_bad(data, sizeof(data), "x.oracleGeneral", NULL, -EILSEQ,
		  "record 2 (byte 24): next access -2");
}

static void test_vscsi(void **state)
{
	uint8_t one[3 * 32] = {0}, two[2 * 40] = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		put(one + i * 32 + 14, 0x0100, 2);
	put(one + 4, 4096, 4), put(one + 12, 0x2a, 2), put(one + 16, 20, 8);
	/* the second one moves no data */
	put(one + 64 + 4, 512, 4), put(one + 64 + 12, 0x28, 2), put(one + 64 + 16, 8, 8);
	check(one, sizeof(one), "noname", NULL,
	      PAGES({2, 2, 0, 0, TRACE_WRITE}, {1, 1, 0, 0, TRACE_READ}));
	check(one, sizeof(one), "noname", &(struct trace_options){.objects = true},
	      PAGES({20, 1, 0, 0, TRACE_WRITE}, {8, 1, 0, 0, TRACE_READ}));
	for (size_t i = 0; i < 2; i++)
		put(two + i * 40 + 2, 0x0200, 2);
	put(two, 0x8a, 2), put(two + 8, 12288, 4), put(two + 16, 80, 8);
	put(two + 40, 0x08, 2), put(two + 48, 512, 4), put(two + 56, 80, 8);
	check(two, sizeof(two), "noname", NULL,
	      PAGES({10, 3, 0, 0, TRACE_WRITE}, {10, 1, 0, 0, TRACE_READ}));
	check_bad(two, 79, "x.vscsi", NULL, -EILSEQ, "record 2 (byte 40): truncated: 39 of the 40");
	put(two + 42, 0x0100, 2);
	check_bad(two, sizeof(two), "x.vscsi", NULL, -EILSEQ,
		  "record 2 (byte 40): no vscsi record of version 2");
	check_bad("0123456789012345678901234567890123456789", 40, "x.vscsi", NULL, -EILSEQ,
		  "record 1 (byte 0): no vscsi record");
}

static void test_text(void **state)
{
	(void)state;
	check_text("# blocks\n\n 7\n0x10\r\n04015  \n9", "noname", NULL,
		   PAGES({7, 1, 0, 0, 0}, {16, 1, 0, 0, 0}, {4015, 1, 0, 0, 0}, {9, 1, 0, 0, 0}));
	check_text("18446744073709551615\n", "a.txt", NULL, PAGES({UINT64_MAX, 1, 0, 0, 0}));
	check_bad_text("1\n2\nx3\n", "a.txt", -EILSEQ, "line 3: 'x3' is no page number");
	check_bad_text("1\n18446744073709551616\n", "a.txt", -EILSEQ, "line 2: ");
	check_bad_text("1\n0x10000000000000000\n", "a.txt", -EILSEQ, "line 2: ");
	check_bad_text("1\n0x\n", "a.txt", -EILSEQ, "line 2: ");
	check_bad_text("1\n-3\n", "a.txt", -EILSEQ, "line 2: '-3'");
	check_bad("1\n2\0\n", 5, "a.txt", NULL, -EILSEQ, "line 2: a zero byte");
	check_bad_text("hello world\n", "noname", -EINVAL, "neither name nor content");
}

static void test_long_line(void **state)
{
	char *text = malloc(1 << 20);

	(void)state;
	assert_non_null(text);
	memset(text, '1', 1 << 20);
	check_bad(text, 1 << 20, "a.txt", NULL, -EILSEQ, "byte 0: a line longer than");
	free(text);
}

static void test_lis(void **state)
{
	(void)state;
	check_text("5 3 0 0\n9 1 0 1\n7 0 0 2\n1 2 0 3\n", "noname", NULL,
		   PAGES({5, 3, 0, 0, 0}, {9, 1, 0, 0, 0}, {1, 2, 0, 0, 0}));
	check_text("5 3 0 0\n", "a.lis", &(struct trace_options){.objects = true},
		   PAGES({5, 1, 0, 0, 0}));
	check_bad_text("5 3 0 0\n5 3 0\n", "a.lis", -EILSEQ, "line 2: '5 3 0' is not four numbers");
	check_bad_text("5 3 0 0 1\n", "a.lis", -EILSEQ, "line 1: '5 3 0 0 1' is more than four");
	check_bad_text("5 4000000000 0 0\n", "a.lis", -EILSEQ, "line 1: 4000000000 blocks");
}

static void test_address(void **state)
{
	(void)state;
	check_text("s 0x1fffff58 1\nl 0x1000 6\nl 0xfff 0\n", "noname", NULL,
		   PAGES({0x1ffff, 1, 0, 0, TRACE_STORE}, {1, 1, 0, 0, TRACE_LOAD},
			 {0, 1, 0, 0, TRACE_LOAD}));
	check_text("l 0x2000 6\n", "a", &(struct trace_options){.objects = true},
		   PAGES({2, 1, 0, 0, TRACE_LOAD}));
	check_bad_text("l 0x1000 6\nm 0x1000 6\n", "a", -EILSEQ,
		       "line 2: 'm 0x1000 6' is no 's 0xADDRESS");
	check_bad_text("l 0x1000 6\nl 0x100g 6\n", "a", -EILSEQ, "line 2: ");
	check_bad_text("l 0x1000 6\nl0x1000 6\n", "a", -EILSEQ, "line 2: ");
}

static void test_iolog(void **state)
{
	static const char v2[] =
		"fio version 2 iolog\n/dev/a add\n/dev/a open\n/b add\n/dev/a read 8192 4096\n"
		"/b write 4095 2\n/dev/a wait 100\n/dev/a sync 0 0\n/dev/a read 0 1\n/dev/a "
		"close\n";
	static const char v3[] = "fio version 3 iolog\n0 /dev/a add\n12 /dev/a read 8192 8192\n"
				 "15 /dev/a trim 0 4096\n";

	(void)state;
	check_text(v2, "noname", NULL,
		   PAGES({2, 1, 1, 0, TRACE_READ}, {0, 2, 2, 0, TRACE_WRITE},
			 {0, 1, 1, 0, TRACE_READ}));
	check_text(v3, "x.u32", NULL, PAGES({2, 2, 1, 0, TRACE_READ}));
	check_text(v3, "x", &(struct trace_options){.objects = true},
		   PAGES({2, 1, 1, 0, TRACE_READ}));
	check_bad_text("fio version 2 iolog\na raed 0 1\n", "a", -EILSEQ,
		       "line 2: 'raed' is no action");
	check_bad_text("fio version 2 iolog\na read 0\n", "a", -EILSEQ,
		       "line 2: read without offset");
	check_bad_text("fio version 2 iolog\na read 0 -1\n", "a", -EILSEQ, "line 2: read without");
	check_bad_text("fio version 3 iolog\na read 0 1\n", "a", -EILSEQ,
		       "line 2: no time in front");
	check_bad_text("fio version 4 iolog\na read 0 1\n", "a", -EILSEQ, "line 1: neither");
	check_bad_text("fio version 2 iolog\na read 0 99999999999999\n", "a", -EILSEQ,
		       "line 2: a request of");
}

static void test_csv_by_header(void **state)
{
	(void)state;
	check_text("version,time,op,size,lbn\n1,5,2a,4096,20\n1,6,28,512,8\n", "noname", NULL,
		   PAGES({2, 2, 0, 0, TRACE_WRITE}, {1, 1, 0, 0, TRACE_READ}));
	check_text("version,time,op,size,lbn\n1,5,2a,4096,20\n", "noname",
		   &(struct trace_options){.objects = true}, PAGES({20, 1, 0, 0, TRACE_WRITE}));
	check_text("Offset;Type;Length\n4095;Write;2\n", "a.csv", NULL,
		   PAGES({0, 2, 0, 0, TRACE_WRITE}));
	check_text("page,nr,op,file,process\n5,2,exec,\"a,\"\"b\",sh\n6,1,store,,\n7,1,load,\"a,"
		   "\"\"b\",sh\n",
		   "a.csv", NULL,
		   PAGES({5, 2, 1, 1, TRACE_EXEC}, {6, 1, 0, 0, TRACE_STORE},
			 {7, 1, 1, 1, TRACE_LOAD}));
	check_text("page\n5\n", "a.csv", NULL, PAGES({5, 1, 0, 0, 0}));
	check_text("5\n6\n", "a.csv", NULL, PAGES({5, 1, 0, 0, 0}, {6, 1, 0, 0, 0}));
	check_bad_text("a,b\n1,2\n", "a.csv", -EILSEQ, "line 1: no column of a known name");
	check_bad_text("1,2\n1,2\n", "a.csv", -EILSEQ, "line 1: no header");
	check_bad_text("page,op\n1,read\n2,raed\n", "a.csv", -EILSEQ,
		       "line 3: column 2: 'raed' is no operation");
	check_bad_text("page,op\n1,read\n2\n", "a.csv", -EILSEQ,
		       "line 3: 1 columns, column 2 is wanted");
	check_bad_text("page,op\nx,read\n", "a.csv", -EILSEQ, "line 2: column 1: 'x' is no number");
	check_bad_text("page,nr\n1,0\n", "a.csv", -EILSEQ, "line 2: a request of 0 pages");
	check_bad_text("page,size\n1,999999999999\n", "a.csv", -EILSEQ,
		       "line 2: a request of 999999999999 bytes");
}

static void test_csv_by_choice(void **state)
{
	static const char msr[] = "128166372003061629,hm,0,Read,8192,4096,58000\n"
				  "128166372016382155,hm,0,Write,4096,8192,1500\n";
	const struct trace_options numbers = {.columns = "offset=5,size=6,op=4,process=2"};
	const struct trace_options names = {.columns = "page=B,file=a"};
	const struct trace_options bad_key = {.columns = "place=1"},
				   bad_column = {.columns = "page=c"};
	const struct trace_options none = {.columns = "size=a"},
				   two = {.columns = "page=a,block=b"};

	(void)state;
	check_text(msr, "a.csv", &numbers,
		   PAGES({2, 1, 0, 1, TRACE_READ}, {1, 2, 0, 1, TRACE_WRITE}));
	check_text("a,b\nx,9\n", "a.csv", &names, PAGES({9, 1, 1, 0, 0}));
	check_bad("a,b\nx,9\n", 8, "a.csv", &bad_key, -EINVAL, "columns: 'place=1'");
	check_bad("a,b\nx,9\n", 8, "a.csv", &bad_column, -EINVAL, "no column 'c'");
	check_bad("a,b\nx,9\n", 8, "a.csv", &none, -EILSEQ, "say which columns");
	check_bad("a,b\nx,9\n", 8, "a.csv", &two, -EINVAL, "only one of page, block and offset");
}

static void test_names(void **state)
{
	static const char csv[] = "page,file,process\n1,one,sh\n2,\"t\"\"w,o\",\n3,one,ls\n";
	struct trace_record records[8];
	struct trace *trace;
	struct err err;

	(void)state;
	assert_int_equal(trace_open_memory(csv, sizeof(csv) - 1, "a.csv", NULL, &trace, &err), 0);
	assert_null(trace_file_name(trace, 1));
	assert_int_equal(trace_read(trace, records, 8, &err), 3);
	assert_string_equal(trace_file_name(trace, 1), "one");
	assert_string_equal(trace_file_name(trace, 2), "t\"w,o");
	assert_null(trace_file_name(trace, 3));
	assert_string_equal(trace_process_name(trace, records[2].process), "ls");
	assert_string_equal(trace_format(trace), "csv");
	assert_string_equal(trace_packing(trace), "none");
	assert_int_equal(trace_read(trace, records, 8, &err), 0);
	trace_close(trace);
}

/* "1\n2\n3\n" as gzip, xz and zstd pack it. */
static const uint8_t gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			       0x03, 0x33, 0xe4, 0x32, 0xe2, 0x32, 0xe6, 0x02, 0x00,
			       0xd8, 0x54, 0x5f, 0x77, 0x06, 0x00, 0x00, 0x00};
static const uint8_t xz[] = {
	0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02,
	0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00,
	0x05, 0x31, 0x0a, 0x32, 0x0a, 0x33, 0x0a, 0x00, 0x00, 0x00, 0xe3, 0xc1, 0xb1,
	0x7e, 0x5b, 0xb8, 0x57, 0x4e, 0x00, 0x01, 0x1e, 0x06, 0xc1, 0x2f, 0xa4, 0x1d,
	0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
};
static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x06, 0x31, 0x00, 0x00, 0x31,
			       0x0a, 0x32, 0x0a, 0x33, 0x0a, 0xbb, 0x08, 0xa1, 0x78};

/* Packed is packed, whatever the name; every cut is found; so is a changed check sum. */
static void check_packing(const uint8_t *data, size_t bytes, const char *packing, size_t bad_byte)
{
	uint8_t copy[160];
	struct err err = {""};
	struct trace *trace;
	char message[64];

	check(data, bytes, "a.txt.gz", NULL,
	      PAGES({1, 1, 0, 0, 0}, {2, 1, 0, 0, 0}, {3, 1, 0, 0, 0}));
	memcpy(copy, data, bytes);
	memcpy(copy + bytes, data, bytes);
	check(copy, 2 * bytes, "noname", NULL,
	      PAGES({1, 1, 0, 0, 0}, {2, 1, 0, 0, 0}, {3, 1, 0, 0, 0}, {1, 1, 0, 0, 0},
		    {2, 1, 0, 0, 0}, {3, 1, 0, 0, 0}));
	assert_int_equal(trace_open_memory(data, bytes, "a", NULL, &trace, &err), 0);
	assert_string_equal(trace_packing(trace), packing);
	trace_close(trace);
	snprintf(message, sizeof(message), "truncated inside %s data", packing);
	for (size_t cut = 6; cut < bytes; cut++)
		check_bad(data, cut, "noname", NULL, -EILSEQ, message);
	for (size_t cut = bytes + 6; cut < 2 * bytes; cut++)
		check_bad(copy, cut, "noname", NULL, -EILSEQ, message);
	copy[bad_byte] ^= 1;
	snprintf(message, sizeof(message), "corrupt %s data", packing);
	check_bad(copy, bytes, "noname", NULL, -EILSEQ, message);
}

static void test_packing(void **state)
{
	(void)state;
	check_packing(gzip, sizeof(gzip), "gzip", 20);
	check_packing(xz, sizeof(xz), "xz", 30);
	check_packing(zstd, sizeof(zstd), "zstd", 11);
}

static void test_no_file(void **state)
{
	struct trace *trace;
	struct err err = {""};

	(void)state;
	assert_int_equal(trace_open("/proc/none/x.u32", NULL, &trace, &err), -ENOENT);
	assert_string_equal(err.text, "/proc/none/x.u32: No such file or directory");
	assert_int_equal(trace_open("/", NULL, &trace, &err), -EISDIR);
	assert_string_equal(err.text, "/: Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw),           cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_vscsi),         cmocka_unit_test(test_text),
		cmocka_unit_test(test_long_line),     cmocka_unit_test(test_lis),
		cmocka_unit_test(test_address),       cmocka_unit_test(test_iolog),
		cmocka_unit_test(test_csv_by_header), cmocka_unit_test(test_csv_by_choice),
		cmocka_unit_test(test_names),         cmocka_unit_test(test_packing),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
