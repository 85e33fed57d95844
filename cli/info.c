/* SPDX-License-Identifier: MIT
 *
 * foliage info: what is in a trace. Everything is exact, reuse distances included.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "trace/distance.h"
#include "trace/names.h"
#include "trace/resolve.h"
#include "trace/trace.h"

enum {
	COL_TRACE,
	COL_FORMAT,
	COL_PACKING,
	COL_REQUESTS,
	COL_ACCESSES,
	COL_UNIQUE,
	COL_FOOTPRINT,
	COL_READS,
	COL_WRITES,
	COL_LOADS,
	COL_STORES,
	COL_EXECS,
	COL_FILES,
	COL_PROCESSES,
	COL_SEQUENTIAL,
	COL_ONCE,
	COL_REUSES,
	COL_P10,
	COL_P99 = COL_P10 + 5,
	COL_BELOW_1,
	COL_BELOW_40 = COL_BELOW_1 + 2,
	COL_SHARE_1,
	COL_SHARE_40 = COL_SHARE_1 + 2,
	NR_COLS,
};

static const unsigned int percentiles[] = {10, 25, 50, 75, 90, 99};
static const unsigned int rooms[] = {1, 10, 40};

#define COUNT(k, t)                                                                                \
	{                                                                                          \
		.key = (k), .title = (t), .kind = TABLE_COUNT                                      \
	}
#define SHARE(k, t)                                                                                \
	{                                                                                          \
		.key = (k), .title = (t), .kind = TABLE_REAL, .decimals = 4, .precise = 6          \
	}

static const struct table_column columns[NR_COLS] = {
	[COL_TRACE] = {.key = "trace", .title = "trace", .kind = TABLE_TEXT},
	[COL_FORMAT] = {.key = "format", .title = "format", .kind = TABLE_TEXT},
	[COL_PACKING] = {.key = "packing", .title = "packing", .kind = TABLE_TEXT},
	[COL_REQUESTS] = COUNT("requests", "requests"),
	[COL_ACCESSES] = COUNT("accesses", "page accesses"),
	[COL_UNIQUE] = COUNT("unique", "unique pages"),
	[COL_FOOTPRINT] = COUNT("footprint", "footprint, bytes"),
	[COL_READS] = COUNT("reads", "reads"),
	[COL_WRITES] = COUNT("writes", "writes"),
	[COL_LOADS] = COUNT("loads", "mapped loads"),
	[COL_STORES] = COUNT("stores", "mapped stores"),
	[COL_EXECS] = COUNT("execs", "executions"),
	[COL_FILES] = COUNT("files", "files"),
	[COL_PROCESSES] = COUNT("processes", "processes"),
	[COL_SEQUENTIAL] = SHARE("sequential", "sequential share"),
	[COL_ONCE] = COUNT("once", "pages accessed once"),
	[COL_REUSES] = COUNT("reuses", "accesses to pages seen before"),
	[COL_P10] = COUNT("distance_p10", "reuse distance, 10 % within"),
	[COL_P10 + 1] = COUNT("distance_p25", "25 % within"),
	[COL_P10 + 2] = COUNT("distance_p50", "50 % within"),
	[COL_P10 + 3] = COUNT("distance_p75", "75 % within"),
	[COL_P10 + 4] = COUNT("distance_p90", "90 % within"),
	[COL_P99] = COUNT("distance_p99", "99 % within"),
	[COL_BELOW_1] = COUNT("below_1pct", "accesses at distances below 1 % of the pages"),
	[COL_BELOW_1 + 1] = COUNT("below_10pct", "below 10 %"),
	[COL_BELOW_40] = COUNT("below_40pct", "below 40 %"),
	[COL_SHARE_1] = SHARE("share_1pct", "their share (hit ratio of LRU) at 1 %"),
	[COL_SHARE_1 + 1] = SHARE("share_10pct", "at 10 %"),
	[COL_SHARE_40] = SHARE("share_40pct", "at 40 %"),
};

struct value {
	bool filled;
	const char *text;
	uint64_t count;
	double real;
};

struct info {
	struct trace_options options;
	uint64_t limit;
	/* Of the trace at hand: */
	struct resolved resolved;
	uint64_t requests, accesses[TRACE_NR_OPS];
	uint64_t *files, *processes; /* bitmaps of numbers seen */
	const char *format, *packing;
	struct value value[NR_COLS];
};

static void set_text(struct info *info, size_t column, const char *text)
{
	info->value[column] = (struct value){.filled = true, .text = text};
}

static void set_count(struct info *info, size_t column, uint64_t count)
{
	info->value[column] = (struct value){.filled = true, .count = count};
}

static void set_share(struct info *info, size_t column, uint64_t part, uint64_t whole)
{
	info->value[column] = (struct value){.filled = true, .real = (double)part / (double)whole};
}

static bool go_on(void *ctx, uint64_t accesses)
{
	(void)ctx;
	(void)accesses;
	return !cli_interrupted;
}

static int count_records(struct info *info, struct resolver *resolver, struct trace *trace,
			 struct err *err)
{
	uint64_t left = info->limit ? info->limit : UINT64_MAX;
	struct trace_record records[512];
	ssize_t n = 0;

	while (left && !cli_interrupted &&
	       (n = trace_read(trace, records, ARRAY_SIZE(records), err)) > 0) {
		size_t kept = trace_cut(records, (size_t)n, &left);
		int code = resolver_add(resolver, records, kept);

		if (code < 0)
			return err_set(err, code, "%s",
				       code == -E2BIG ? "too many unique pages" : "no memory");
		info->requests += kept;
		for (size_t i = 0; i < kept; i++) {
			info->accesses[records[i].op] += records[i].nr;
			bit_set(info->files, records[i].file);
			bit_set(info->processes, records[i].process);
		}
	}
	return n < 0 ? (int)n : 0;
}

static int read_trace(struct info *info, const char *path, struct err *err)
{
	struct resolver *resolver;
	struct trace *trace;
	int code = trace_open(path, &info->options, &trace, err);

	if (code)
		return code;
	info->format = trace_format(trace);
	info->packing = trace_packing(trace);
	code = resolver_open(0, &resolver);
	if (!code) {
		code = count_records(info, resolver, trace, err);
		resolver_finish(resolver, &info->resolved);
	} else {
		err_set(err, code, "no memory");
	}
	trace_close(trace);
	if (!code && !info->resolved.n && !cli_interrupted)
		code = err_set(err, -ENODATA, "%s: no page access in it", path);
	return code;
}

/* Number 0 stands for none. */
static uint64_t count_bits(const uint64_t *map)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bitmap_words(NAMES_MAX); i++)
		n += (uint64_t)__builtin_popcountll(map[i]);
	return n - bit_test(map, 0);
}

static uint64_t count_sequential(const struct resolved *r)
{
	uint64_t n = 0;

	for (uint64_t i = 1; i < r->n; i++)
		n += r->pages[r->ids[i]] == r->pages[r->ids[i - 1]] + 1;
	return n;
}

static void set_distances(struct info *info, const uint64_t *count)
{
	const struct resolved *r = &info->resolved;
	uint64_t reuses = r->n - r->nr_ids, sum = 0;
	size_t p = 0;

	for (uint64_t d = 0; d < r->nr_ids && reuses; d++) {
		sum += count[d];
		for (; p < ARRAY_SIZE(percentiles) && sum * 100 >= reuses * percentiles[p]; p++)
			set_count(info, COL_P10 + p, d);
	}
	for (size_t room = 0; room < ARRAY_SIZE(rooms); room++) {
		uint64_t pages = (uint64_t)r->nr_ids * rooms[room] / 100;

		sum = 0;
		for (uint64_t d = 0; d < pages; d++)
			sum += count[d];
		set_count(info, COL_BELOW_1 + room, sum);
		set_share(info, COL_SHARE_1 + room, sum, r->n);
	}
}

/* Interrupted, the distances stay empty. */
static int find_distances(struct info *info)
{
	const struct resolved *r = &info->resolved;
	size_t bytes = r->nr_ids * sizeof(uint64_t);
	uint64_t *count = mem_table(bytes);
	int code;

	if (!count)
		return -ENOMEM;
	code = trace_distances(r, count, go_on, NULL);
	if (!code)
		set_distances(info, count);
	mem_table_free(count, bytes);
	return code == -EINTR ? 0 : code;
}

static int find_counts(struct info *info, const char *path)
{
	const struct resolved *r = &info->resolved;
	uint64_t once = 0;
	int code = resolved_counts(&info->resolved);

	if (code)
		return code;
	for (uint32_t id = 0; id < r->nr_ids; id++)
		once += r->counts[id] == 1;
	set_text(info, COL_TRACE, path);
	set_text(info, COL_FORMAT, info->format);
	set_text(info, COL_PACKING, info->packing);
	set_count(info, COL_REQUESTS, info->requests);
	set_count(info, COL_ACCESSES, r->n);
	set_count(info, COL_UNIQUE, r->nr_ids);
	set_count(info, COL_FOOTPRINT, (uint64_t)r->nr_ids << TRACE_PAGE_SHIFT);
	for (size_t op = 0; op < TRACE_NR_OPS; op++)
		set_count(info, COL_READS + op, info->accesses[op]);
	set_count(info, COL_FILES, count_bits(info->files));
	set_count(info, COL_PROCESSES, count_bits(info->processes));
	set_share(info, COL_SEQUENTIAL, count_sequential(r), r->n);
	set_count(info, COL_ONCE, once);
	set_count(info, COL_REUSES, r->n - r->nr_ids);
	return 0;
}

static int look(struct info *info, const char *path, struct err *err)
{
	size_t bytes = bitmap_words(NAMES_MAX) * sizeof(uint64_t);
	int code = 0;

	info->requests = 0;
	memset(info->accesses, 0, sizeof(info->accesses));
	memset(info->value, 0, sizeof(info->value));
	info->files = mem_table(bytes);
	info->processes = mem_table(bytes);
	if (!info->files || !info->processes)
		code = err_set(err, -ENOMEM, "no memory");
	else
		code = read_trace(info, path, err);
	if (!code && info->resolved.n) {
		code = find_counts(info, path);
		if (!code)
			code = find_distances(info);
		if (code)
			err_set(err, code, "%s: %s", path, strerror(-code));
	}
	resolved_free(&info->resolved);
	mem_table_free(info->files, bytes);
	mem_table_free(info->processes, bytes);
	return code;
}

static int add_row(struct table *table, const struct info *info)
{
	int code = table_row(table);

	for (size_t i = 0; i < NR_COLS && !code; i++) {
		const struct value *value = &info->value[i];

		if (!value->filled)
			continue;
		if (columns[i].kind == TABLE_TEXT)
			code = table_text(table, i, value->text);
		else if (columns[i].kind == TABLE_COUNT)
			code = table_count(table, i, value->count);
		else
			code = table_real(table, i, value->real);
	}
	return code;
}

/* For people the columns stand: thirty fit on no screen. */
static void print_standing(const struct info *info)
{
	for (size_t i = 0; i < NR_COLS; i++) {
		const struct value *value = &info->value[i];
		char text[32];

		if (!value->filled)
			continue;
		printf("%-46s ", columns[i].title);
		if (columns[i].kind == TABLE_TEXT)
			printf("%s\n", value->text);
		else if (columns[i].kind == TABLE_COUNT)
			printf("%18s\n", count_text(value->count, text));
		else
			printf("%18.*f\n", columns[i].decimals, value->real);
	}
}

static int look_at_all(struct info *info, char **paths, int nr, enum table_format format,
		       struct table *table, struct err *err)
{
	for (int i = 0; i < nr && !cli_interrupted; i++) {
		int code = look(info, paths[i], err);

		if (code)
			return code;
		if (!info->value[COL_TRACE].filled)
			break;
		if (format == TABLE_PEOPLE) {
			if (i)
				putchar('\n');
			print_standing(info);
		} else if (add_row(table, info)) {
			return err_set(err, -ENOMEM, "no memory");
		}
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct info info = {0};
	struct err err = {""};
	const char *format_name = "table";
	const struct option_spec specs[] = {
		{"trace-format", 0, OPTION_TEXT, &info.options.format},
		{"columns", 0, OPTION_TEXT, &info.options.columns},
		{"objects", 0, OPTION_FLAG, &info.options.objects},
		{"limit", 0, OPTION_COUNT, &info.limit},
		{"format", 0, OPTION_TEXT, &format_name},
	};
	int operands = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err);
	struct table *table;
	int format, code;

	if (operands < 0)
		return cli_fail("info: %s", err.text);
	if (!operands)
		return cli_fail("info: needs a trace");
	format = parse_choice(format_name, "--format", table_formats, &err);
	if (format < 0)
		return cli_fail("info: %s", err.text);
	table = table_create(columns, NR_COLS);
	if (!table)
		return cli_fail("no memory");
	code = look_at_all(&info, argv + 1, operands, (enum table_format)format, table, &err);
	if (!code && format != TABLE_PEOPLE)
		table_print(table, (enum table_format)format, 0, table_rows(table), stdout);
	table_free(table);
	if (code)
		return cli_fail("%s", err.text);
	return cli_interrupted ? 130 : 0;
}

static const char help[] =
	"Usage: foliage info [OPTION]... TRACE...\n"
	"\n"
	"What is in a trace: requests, page accesses, unique pages, operations, files and "
	"processes; the share of\n"
	"accesses to the page behind the one before (sequential); exact reuse distances (how many "
	"other pages came\n"
	"since the page came last), which say what an LRU room of that many pages hits.\n"
	"\n"
	"Options:\n"
	"  --trace-format F   read the traces as F: foliage, foliage-partial, oracle, vscsi, csv, "
	"text, u32, u64,\n"
	"                     lis, iolog, address (default: by content and name)\n"
	"  --columns C        which columns of a CSV file mean what: block=lbn,size=4,op=op\n"
	"                     (keys: page, block, offset, size, nr, op, file, process)\n"
	"  --objects          every record is one page, whatever its size\n"
	"  --limit N          stop after N page accesses\n"
	"  --format F         table, csv or json\n";

const struct command command_info = {
	.name = "info",
	.summary = "what is in a trace",
	.help = help,
	.run = run,
};
