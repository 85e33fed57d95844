/* SPDX-License-Identifier: MIT
 *
 * foliage top: what a mount, or a program that embeds the cache, is doing now, read from its
 * statistics segment. It is never asked: the segment is read as it is, so that looking costs the
 * program nothing.
 */
#include "cli/top.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"

struct request {
	bool once, clean;
	double interval;
	const char *format;
	enum table_format table_format;
};

struct target {
	struct foliage_segment_reader *reader;
	char name[PATH_MAX];
};

/* ---- reading ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A reading in the middle of updates, or of one that a dying writer left half, changes nothing. */
static bool read_again(void *ctx, struct top_view *view)
{
	struct target *target = ctx;
	struct foliage_segment_values values;
	bool later = false;
	uint64_t now;

	view->alive = foliage_segment_alive(target->reader);
	if (!foliage_segment_read(target->reader, &values) && values.updates != view->now.updates) {
		later = true;
		view->before = view->now.updates ? view->now : values;
		view->now = values;
		view->seconds = (double)(int64_t)(view->now.time_ns - view->before.time_ns) / 1e9;
	}
	now = now_ns();
	view->age = now > view->now.time_ns ? (double)(now - view->now.time_ns) / 1e9 : 0;
	return later;
}

static void pause_for(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds,
			     .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};

	nanosleep(&t, NULL);
}

static int open_target(const char *text, struct target *target, struct err *err)
{
	int r = foliage_segment_find(text, target->name, sizeof(target->name));

	if (r == -ENOENT)
		return err_set(err, r,
			       "%s: no program publishes statistics under this name, process "
			       "number, label or mount point (foliage top lists those that do)",
			       text);
	if (r == -ENOTUNIQ)
		return err_set(err, r,
			       "%s: several programs fit, name the segment (foliage top lists "
			       "them)",
			       text);
	if (!r)
		r = foliage_segment_open(target->name, &target->reader);
	return r ? err_set(err, r, "%s: %s", text, strerror(-r)) : 0;
}

/* ---- without a target: a list ---- */

enum { COL_SEGMENT, COL_PROGRAM, COL_PID, COL_STATE, COL_POLICY, COL_LABEL, NR_COLS };

static const struct table_column list_columns[NR_COLS] = {
	[COL_SEGMENT] = {.key = "segment", .title = "segment", .kind = TABLE_TEXT},
	[COL_PROGRAM] = {.key = "program", .title = "program", .kind = TABLE_TEXT},
	[COL_PID] = {.key = "pid", .title = "process", .kind = TABLE_COUNT},
	[COL_STATE] = {.key = "state", .title = "state", .kind = TABLE_TEXT},
	[COL_POLICY] = {.key = "policy", .title = "policy", .kind = TABLE_TEXT},
	[COL_LABEL] = {.key = "label", .title = "label", .kind = TABLE_TEXT},
};

static int add_segment(void *ctx, const char *name, const struct foliage_segment_identity *id,
		       bool alive)
{
	struct table *t = ctx;
	bool failed = table_row(t) || table_text(t, COL_SEGMENT, name) ||
		      table_text(t, COL_PROGRAM, id->program) || table_count(t, COL_PID, id->pid) ||
		      table_text(t, COL_STATE, alive ? "running" : "ended") ||
		      table_text(t, COL_POLICY, id->policy) || table_text(t, COL_LABEL, id->label);

	return failed ? -ENOMEM : 0;
}

static int list(const struct request *request, struct err *err)
{
	struct table *table = table_create(list_columns, NR_COLS);
	int r = table ? foliage_segment_list(add_segment, table) : -ENOMEM;

	if (!r && !table_rows(table) && request->table_format == TABLE_PEOPLE)
		puts("No program publishes statistics.");
	else if (!r)
		table_print(table, request->table_format, 0, table_rows(table), stdout);
	table_free(table);
	return r ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static int clean(struct err *err)
{
	int r = foliage_segment_clean();

	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	printf("removed: %d\n", r);
	return 0;
}

/* ---- one target ---- */

static int print_once(const struct request *request, const struct top_view *view)
{
	if (request->table_format == TABLE_CSV)
		return top_csv(view, stdout);
	if (request->table_format == TABLE_JSON)
		top_json(view, stdout);
	else
		top_text(view, INT_MAX, stdout);
	return 0;
}

/* Rates need two updates: wait for the second one, twice the interval at most. */
static void wait_for_rates(struct target *target, const struct request *request,
			   struct top_view *view)
{
	const uint64_t begin = now_ns(), limit = (uint64_t)(2e9 * request->interval);

	while (view->alive && !cli_interrupted && now_ns() - begin < limit) {
		pause_for(view->now.updates && now_ns() - begin < limit / 2 ? request->interval
									    : 0.02);
		if (read_again(target, view) && view->seconds > 0)
			break;
	}
}

static int watch(struct target *target, const struct request *request, struct err *err)
{
	struct top_view *view = calloc(1, sizeof(*view));
	int r;

	if (!view)
		return err_set(err, -ENOMEM, "out of memory");
	view->name = target->name;
	view->identity = foliage_segment_identity(target->reader);
	read_again(target, view);
	if (request->once && request->interval > 0)
		wait_for_rates(target, request, view);
	r = request->once ? print_once(request, view)
			  : top_screen(view, request->interval, read_again, target);
	free(view);
	if (r == -ENOTSUP)
		return err_set(err, r,
			       "top: built without ncurses, there is no screen: use --once");
	if (r == -ENOTTY)
		return err_set(err, r, "top: no terminal for the screen: use --once");
	return r ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* ---- the command line ---- */

static int parse_request(int argc, char **argv, struct request *request, struct err *err)
{
	const struct option_spec specs[] = {
		{"once", '1', OPTION_FLAG, &request->once},
		{"interval", 'i', OPTION_REAL, &request->interval},
		{"format", 0, OPTION_TEXT, &request->format},
		{"clean", 0, OPTION_FLAG, &request->clean},
	};
	int nr = options_parse(argc, argv, specs, ARRAY_SIZE(specs), err), r;

	if (nr < 0)
		return nr;
	if (nr > 1)
		return err_set(err, -EINVAL, "top: one target at a time (foliage help top)");
	if (request->clean && nr)
		return err_set(err, -EINVAL, "--clean: takes no target");
	if (!(request->interval >= (request->once ? 0 : 0.1) && request->interval <= 3600))
		return err_set(err, -EINVAL, "--interval: must be between %s and 3600 seconds",
			       request->once ? "0" : "0.1");
	r = parse_format(request->format, &request->table_format, err);
	if (r)
		return r;
	if (nr && !request->once && request->table_format != TABLE_PEOPLE)
		return err_set(err, -EINVAL, "--format: the screen has none, add --once");
	return nr;
}

static int top_main(int argc, char **argv)
{
	struct request request = {.interval = 1, .format = "table"};
	struct target target = {0};
	struct err err = {""};
	int nr = parse_request(argc, argv, &request, &err), r = nr < 0 ? nr : 0;

	if (!r && request.clean)
		r = clean(&err);
	else if (!r && !nr)
		r = list(&request, &err);
	else if (!r)
		r = open_target(argv[1], &target, &err);
	if (!r && target.reader)
		r = watch(&target, &request, &err);
	foliage_segment_close(target.reader);
	if (r)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-r));
	return cli_interrupted ? 130 : 0;
}

const struct command command_top = {
	.name = "top",
	.summary = "watch a mount, or a program that embeds the cache",
	.help = "usage: foliage top [TARGET] [--once] [--interval SECONDS] [--format F]\n"
		"       foliage top --clean\n"
		"\n"
		"Shows what a cache is doing: memory, hit ratio, refaults, generations, groups, "
		"time stood still.\n"
		"TARGET is a mount point, the number of a process, the label that a program gave "
		"its cache, or the\n"
		"name of a statistics segment. Without TARGET, lists who publishes statistics.\n"
		"\n"
		"The program is not asked and does not notice: it writes its counters to shared "
		"memory at times of\n"
		"its own, and this reads them there.\n"
		"\n"
		"Options:\n"
		"  -1, --once          print one reading and end; the rates are those of the "
		"interval\n"
		"  -i, --interval S    seconds between readings (default 1); with --once, 0: no "
		"rates\n"
		"  --format F          of --once and the list: table, csv or json\n"
		"  --clean             remove the segments of processes that have ended\n"
		"\n"
		"Keys:\n"
		"  q                   leave\n"
		"  blank               hold still, or go on\n"
		"  arrows              scroll\n"
		"\n"
		"Columns:\n"
		"  csv                 segment, group, bytes, max, hits, misses, refaults, "
		"evictions, hit_ratio,\n"
		"                      hits_per_s, misses_per_s, refaults_per_s, stall_some_ns, "
		"stall_full_ns; the\n"
		"                      first line is the whole cache, group *\n"
		"\n"
		"Exit status:\n"
		"  0                   done\n"
		"  2                   no such target, or no terminal for the screen\n"
		"  130                 SIGINT\n"
		"\n"
		"Examples:\n"
		"  foliage top /mnt/data\n"
		"  foliage top --once --format json $(pidof orders)\n",
	.run = top_main,
};
