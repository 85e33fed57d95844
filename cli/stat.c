/* SPDX-License-Identifier: MIT
 *
 * foliage stat: what a running cache counts, read once from its statistics segment. People get a
 * line a number, programs one row.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "foliage/segment.h"

enum {
	COL_LABEL,
	COL_PROGRAM,
	COL_PID,
	COL_POLICY,
	COL_COUNTS,
	COL_HIT_RATIO = COL_COUNTS + 22,
	COL_REFAULTS_PER_FETCH,
	NR_COLS,
};

#define VALUE(k, t)                                                                                \
	{                                                                                          \
		.key = #k, .title = (t), .kind = TABLE_COUNT                                       \
	}

/* The order is a promise; new ones go behind. */
static const struct table_column columns[NR_COLS] = {
	[COL_LABEL] = {.key = "label", .title = "mount point or label", .kind = TABLE_TEXT},
	[COL_PROGRAM] = {.key = "program", .title = "program", .kind = TABLE_TEXT},
	[COL_PID] = {.key = "pid", .title = "process", .kind = TABLE_COUNT},
	[COL_POLICY] = {.key = "policy", .title = "policy", .kind = TABLE_TEXT},
	[COL_COUNTS] = VALUE(budget, "budget, bytes"),
	VALUE(metadata_bytes, "of it tables, bytes"),
	VALUE(frame_bytes, "of it memory for pages, bytes"),
	VALUE(pages, "pages"),
	VALUE(page_bytes, "their data, bytes"),
	VALUE(dirty_bytes, "dirty, bytes"),
	VALUE(writeback_bytes, "being written, bytes"),
	VALUE(hits, "hits, pages"),
	VALUE(misses, "misses, pages"),
	VALUE(created, "pages brought in"),
	VALUE(refaults, "of them had been here (refaults)"),
	VALUE(evictions, "pages evicted"),
	VALUE(discarded, "pages discarded"),
	VALUE(readahead, "pages read ahead"),
	VALUE(no_room, "requests that found no room"),
	VALUE(waits, "requests that waited for room"),
	VALUE(read_bytes, "read by programs, bytes"),
	VALUE(written_bytes, "written by programs, bytes"),
	VALUE(disk_read_bytes, "read from storage, bytes"),
	VALUE(disk_written_bytes, "written to storage, bytes"),
	VALUE(io_errors, "input and output errors"),
	VALUE(updates, "times published"),
	[COL_HIT_RATIO] = {.key = "hit_ratio",
			   .title = "hit ratio",
			   .kind = TABLE_REAL,
			   .decimals = 4,
			   .precise = 6},
	[COL_REFAULTS_PER_FETCH] = {.key = "refaults_per_fetch",
				    .title = "refaults per hit or miss",
				    .kind = TABLE_REAL,
				    .decimals = 4,
				    .precise = 6},
};

/* Where the values of the columns from COL_COUNTS on are. */
static const size_t offsets[] = {
	offsetof(struct foliage_segment_values, budget),
	offsetof(struct foliage_segment_values, metadata_bytes),
	offsetof(struct foliage_segment_values, frame_bytes),
	offsetof(struct foliage_segment_values, pages),
	offsetof(struct foliage_segment_values, page_bytes),
	offsetof(struct foliage_segment_values, dirty_bytes),
	offsetof(struct foliage_segment_values, writeback_bytes),
	offsetof(struct foliage_segment_values, hits),
	offsetof(struct foliage_segment_values, misses),
	offsetof(struct foliage_segment_values, created),
	offsetof(struct foliage_segment_values, refaults),
	offsetof(struct foliage_segment_values, evictions),
	offsetof(struct foliage_segment_values, discarded),
	offsetof(struct foliage_segment_values, readahead),
	offsetof(struct foliage_segment_values, no_room),
	offsetof(struct foliage_segment_values, waits),
	offsetof(struct foliage_segment_values, read_bytes),
	offsetof(struct foliage_segment_values, written_bytes),
	offsetof(struct foliage_segment_values, disk_read_bytes),
	offsetof(struct foliage_segment_values, disk_written_bytes),
	offsetof(struct foliage_segment_values, io_errors),
	offsetof(struct foliage_segment_values, updates),
};
_Static_assert(ARRAY_SIZE(offsets) == COL_HIT_RATIO - COL_COUNTS, "a column for each value");

struct snapshot {
	struct foliage_segment_identity identity;
	struct foliage_segment_values values;
};

static uint64_t value_at(const struct snapshot *snapshot, size_t i)
{
	uint64_t value;

	memcpy(&value, (const char *)&snapshot->values + offsets[i], sizeof(value));
	return value;
}

static int take(const char *target, struct snapshot *snapshot, struct err *err)
{
	struct foliage_segment_reader *reader;
	char name[FOLIAGE_SEGMENT_LABEL];
	int code = foliage_segment_find(target, name, sizeof(name));

	if (code == -ENOENT)
		return err_set(err, code, "%s: no statistics of this name, or process gone",
			       target);
	if (code == -ENOTUNIQ)
		return err_set(err, code, "%s: several have this name, give the process number",
			       target);
	if (!code)
		code = foliage_segment_open(name, &reader);
	if (code)
		return err_set(err, code, "%s: %s", target, strerror(-code));
	snapshot->identity = *foliage_segment_identity(reader);
	code = foliage_segment_read(reader, &snapshot->values);
	if (!code && !foliage_segment_alive(reader))
		code = -ESRCH;
	foliage_segment_close(reader);
	return code ? err_set(err, code, "%s: %s", target, strerror(-code)) : 0;
}

static int add_row(struct table *table, const struct snapshot *snapshot)
{
	const struct foliage_segment_values *v = &snapshot->values;
	double fetches = (double)(v->hits + v->misses);
	int code = table_row(table);

	code |= table_text(table, COL_LABEL, snapshot->identity.label);
	code |= table_text(table, COL_PROGRAM, snapshot->identity.program);
	code |= table_count(table, COL_PID, snapshot->identity.pid);
	code |= table_text(table, COL_POLICY, snapshot->identity.policy);
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		code |= table_count(table, COL_COUNTS + i, value_at(snapshot, i));
	if (fetches > 0) {
		code |= table_real(table, COL_HIT_RATIO, (double)v->hits / fetches);
		code |= table_real(table, COL_REFAULTS_PER_FETCH, (double)v->refaults / fetches);
	}
	return code;
}

static void print_text(const char *title, const char *text)
{
	printf("%-36s %s\n", title, text);
}

static void print_standing(const struct snapshot *snapshot)
{
	const struct foliage_segment_values *v = &snapshot->values;
	double fetches = (double)(v->hits + v->misses);
	char text[32];

	print_text(columns[COL_LABEL].title, snapshot->identity.label);
	print_text(columns[COL_PROGRAM].title, snapshot->identity.program);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)snapshot->identity.pid);
	print_text(columns[COL_PID].title, text);
	print_text(columns[COL_POLICY].title, snapshot->identity.policy);
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		print_text(columns[COL_COUNTS + i].title, count_text(value_at(snapshot, i), text));
	if (fetches > 0) {
		printf("%-36s %.4f\n", columns[COL_HIT_RATIO].title, (double)v->hits / fetches);
		printf("%-36s %.4f\n", columns[COL_REFAULTS_PER_FETCH].title,
		       (double)v->refaults / fetches);
	}
}

static int print(const struct snapshot *snapshot, enum table_format format)
{
	struct table *table;
	int code;

	if (format == TABLE_PEOPLE) {
		print_standing(snapshot);
		return 0;
	}
	table = table_create(columns, NR_COLS);
	code = table ? add_row(table, snapshot) : -ENOMEM;
	if (!code)
		table_print(table, format, 0, 1, stdout);
	table_free(table);
	return code;
}

static int run(int argc, char **argv)
{
	const char *format_name = "table";
	const struct option_spec specs[] = {
		{"format", 0, OPTION_TEXT, &format_name},
	};
	struct err err = {""};
	struct snapshot snapshot;
	int operands = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err), format;

	if (operands < 0)
		return cli_fail("stat: %s", err.text);
	if (operands != 1)
		return cli_fail("stat: needs a mount point, a process number or a segment");
	format = parse_choice(format_name, "--format", table_formats, &err);
	if (format < 0 || take(argv[1], &snapshot, &err))
		return cli_fail("stat: %s", err.text);
	if (print(&snapshot, (enum table_format)format))
		return cli_fail("stat: no memory");
	return 0;
}

static const char help[] =
	"usage: foliage stat [--format FORMAT] TARGET\n"
	"\n"
	"What a running page cache counts: of a mount (TARGET is the mount point), or of any\n"
	"program that publishes statistics (its process number, or the name or path of its\n"
	"segment). The numbers are as of its last publication, for a mount half a second ago at\n"
	"most; counters are totals since it began.\n"
	"\n"
	"Options:\n"
	"  --format F          table, csv or json\n"
	"\n"
	"Examples:\n"
	"  foliage stat /mnt/src\n"
	"  foliage stat --format json 4711\n";

const struct command command_stat = {
	.name = "stat",
	.summary = "what a running cache or mount counts",
	.help = help,
	.run = run,
};
