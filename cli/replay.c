/* SPDX-License-Identifier: MIT
 *
 * foliage replay: every policy at every size over a trace.
 *
 * The trace is read once and resolved to dense ids; each (size, policy) pair is then a cell of its
 * own room, run on as many threads as --jobs says. Cells share only what they read. Results are
 * kept and printed together at the end, so that a failure prints nothing and the order does not
 * depend on the threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/events.h"
#include "cli/jobs.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "cli/table.h"
#include "machine/room.h"
#include "trace/trace.h"

enum { AGES_MAX = 10000 };
enum { CHUNK = 65536 }; /* accesses between two looks at SIGINT */

static const char *const dump_names[] = {"lru_gen", "lru_gen_full", "memory.stat", NULL};

struct request {
	const char *pages, *memory, *policies, *format, *dump, *events, *output;
	struct trace_options trace;
	uint64_t warmup, limit, seed, ages;
	double scale;
	bool mapped, gap, no_timing;
	/* Derived: */
	enum table_format table_format;
	uint64_t threads;
	struct size_list sizes;
	struct policy_choice *choices;
	size_t nr_choices;
	struct policy_choice belady; /* for --gap when nobody asked for belady */
	bool belady_hidden;
	char *command; /* the command line, for those who find the results */
};

struct cell {
	const struct policy_choice *choice;
	uint32_t pages;
	bool done, hidden; /* hidden: only to know the gap */
	struct foliage_stats stats;
	double seconds;
	char *dump;
	char *ages; /* json: how old the pages were, at equal distances */
	struct err err;
};

/* One trace at work. */
struct replay {
	const struct request *request;
	const char *path;
	struct resolved resolved;
	struct cell *cells;
	size_t nr_cells;
	struct events_writer *events;
};

/* Column numbers of the result table. */
enum {
	COL_TRACE,
	COL_POLICY,
	COL_PAGES,
	COL_ACCESSES,
	COL_HITS,
	COL_MISSES,
	COL_REFAULTS,
	COL_SCANNED,
	COL_STOLEN,
	COL_SECONDS,
	COL_PROMOTED,
	COL_PROTECTED,
	COL_AGINGS,
	COL_MISS_RATIO,
	COL_REFAULTS_PER_ACCESS,
	COL_GAP,
	COL_SPEED,
	COL_DUMP,
	COL_COMMAND,
	COL_AGES,
	NR_COLS,
};

/* The order of the first ten in csv is a promise; new ones go behind. */
static const struct table_column columns[NR_COLS] = {
	[COL_TRACE] = {.key = "trace", .kind = TABLE_TEXT},
	[COL_POLICY] = {.key = "policy", .title = "policy", .kind = TABLE_TEXT},
	[COL_PAGES] = {.key = "pages", .title = "pages", .kind = TABLE_COUNT},
	[COL_ACCESSES] = {.key = "accesses", .title = "accesses", .kind = TABLE_COUNT},
	[COL_HITS] = {.key = "hits", .title = "hits", .kind = TABLE_COUNT},
	[COL_MISSES] = {.key = "misses", .title = "misses", .kind = TABLE_COUNT},
	[COL_REFAULTS] = {.key = "refaults", .title = "refaults", .kind = TABLE_COUNT},
	[COL_SCANNED] = {.key = "scanned", .title = "scanned", .kind = TABLE_COUNT},
	[COL_STOLEN] = {.key = "stolen", .title = "stolen", .kind = TABLE_COUNT},
	[COL_SECONDS] = {.key = "seconds",
			 .title = "seconds",
			 .kind = TABLE_REAL,
			 .decimals = 3,
			 .precise = 6},
	[COL_PROMOTED] = {.key = "promoted", .title = "promoted", .kind = TABLE_COUNT},
	[COL_PROTECTED] = {.key = "protected", .title = "protected", .kind = TABLE_COUNT},
	[COL_AGINGS] = {.key = "agings", .title = "agings", .kind = TABLE_COUNT},
	[COL_MISS_RATIO] = {.key = "miss_ratio",
			    .title = "miss ratio",
			    .kind = TABLE_REAL,
			    .decimals = 4,
			    .precise = 6},
	[COL_REFAULTS_PER_ACCESS] = {.key = "refaults_per_access",
				     .title = "refaults/access",
				     .kind = TABLE_REAL,
				     .decimals = 4,
				     .precise = 6},
	[COL_GAP] = {.key = "gap", .title = "gap", .kind = TABLE_REAL, .decimals = 3, .precise = 6},
	[COL_SPEED] = {.key = "accesses_per_second", .title = "accesses/s", .kind = TABLE_COUNT},
	[COL_DUMP] = {.key = "dump", .kind = TABLE_TEXT, .json_only = true},
	[COL_COMMAND] = {.key = "command", .kind = TABLE_TEXT, .json_only = true},
	[COL_AGES] = {.key = "ages", .kind = TABLE_RAW, .json_only = true},
};

/* ---- progress ---- */

static void show_progress(const char *text)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text);
}

static bool reading(void *ctx, uint64_t accesses)
{
	const struct replay *replay = ctx;
	char text[400], count[32];

	snprintf(text, sizeof(text), "reading %.300s: %s", replay->path,
		 count_text(accesses, count));
	show_progress(text);
	return !cli_interrupted;
}

static void cell_finished(void *ctx, size_t done)
{
	const struct replay *replay = ctx;
	char text[400];

	snprintf(text, sizeof(text), "%.300s: %zu of %zu", replay->path, done, replay->nr_cells);
	show_progress(text);
}

/* ---- one cell ---- */

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Accesses from..to in chunks. `ops` is room for one chunk, used when --mapped changes what the
 * trace says. */
static int feed(const struct replay *replay, struct room *room, uint8_t *ops, uint64_t from,
		uint64_t to)
{
	const struct resolved *t = &replay->resolved;

	while (from < to) {
		size_t n = (size_t)MIN(to - from, (uint64_t)CHUNK);
		const uint8_t *kinds = t->ops ? t->ops + from : NULL;
		int r;

		if (cli_interrupted)
			return -EINTR;
		if (replay->request->mapped) {
			for (size_t i = 0; i < n; i++)
				ops[i] = (uint8_t)((kinds ? kinds[i] : 0) | FOLIAGE_ACCESS_MAPPED);
			kinds = ops;
		}
		r = room_run(room, t->ids + from, kinds, n);
		if (r)
			return r;
		from += n;
	}
	return 0;
}

static void put_ages(FILE *out, uint64_t access, const struct engine_ages *ages)
{
	fprintf(out, "{\"access\": %llu, ", (unsigned long long)access);
	if (ages->generations)
		fprintf(out, "\"min_seq\": %llu, ", (unsigned long long)ages->min_seq);
	fputs("\"pages\": [", out);
	for (unsigned int i = 0; i < ages->nr; i++)
		fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)ages->pages[i]);
	fputs("]}", out);
}

/* The accesses that count, with a look at the ages after each of equal parts. */
static int feed_looking(struct replay *replay, struct cell *cell, struct room *room, uint8_t *ops)
{
	const uint64_t from = replay->request->warmup, n = replay->resolved.n - from,
		       parts = replay->request->ages;
	struct engine_ages ages;
	size_t bytes;
	FILE *out;
	int r = 0;

	if (!parts || cell->hidden || room_ages(room, &ages))
		return feed(replay, room, ops, from, from + n);
	out = open_memstream(&cell->ages, &bytes);
	if (!out)
		return -ENOMEM;
	fputc('[', out);
	for (uint64_t i = 0; i < parts && !r; i++) {
		uint64_t to = from + n / parts * (i + 1) + n % parts * (i + 1) / parts;

		r = feed(replay, room, ops, from + n / parts * i + n % parts * i / parts, to);
		room_ages(room, &ages);
		fputs(i ? ", " : "", out);
		put_ages(out, to, &ages);
	}
	fputc(']', out);
	return fclose(out) && !r ? -ENOMEM : r;
}

static int run_room(struct replay *replay, struct cell *cell, struct room *room, uint8_t *ops)
{
	const struct request *request = replay->request;
	double start;
	int r = feed(replay, room, ops, 0, request->warmup);

	if (r)
		return r;
	if (request->warmup)
		room_stats_reset(room);
	start = cpu_seconds();
	r = feed_looking(replay, cell, room, ops);
	cell->seconds = cpu_seconds() - start;
	if (r)
		return r;
	room_stats(room, &cell->stats);
	if (request->dump && !cell->hidden) {
		r = room_dump(room, request->dump, &cell->dump);
		if (r == -EOPNOTSUPP)
			return 0;
		if (r)
			return err_set(&cell->err, r, "--dump: %s", strerror(-r));
	}
	return 0;
}

static int run_cell(void *ctx, size_t i)
{
	struct replay *replay = ctx;
	struct cell *cell = &replay->cells[i];
	const struct resolved *t = &replay->resolved;
	struct foliage_policy_env env = {
		.room = cell->pages,
		.nr_ids = t->nr_ids,
		.nr_accesses = t->n,
		.seed = replay->request->seed,
		.next = t->next,
		.counts = t->counts,
		.scale = replay->request->scale,
		.order = t->order,
	};
	uint8_t *ops = replay->request->mapped ? malloc(CHUNK) : NULL;
	struct room *room = NULL;
	int r = -ENOMEM;

	if (replay->events) {
		env.event = events_write;
		env.event_ctx = replay->events;
	}
	if (ops || !replay->request->mapped)
		r = room_open(cell->choice, &env, &room, &cell->err);
	if (!r) {
		r = run_room(replay, cell, room, ops);
		room_close(room);
	}
	free(ops);
	cell->done = !r;
	if (r == -EINTR)
		return 0;
	if (r && !cell->err.text[0])
		err_set(&cell->err, r, "%s at %u pages: %s", cell->choice->label, cell->pages,
			strerror(-r));
	return r;
}

/* ---- one trace ---- */

static bool is_belady(const struct policy_choice *choice)
{
	return !strcmp(choice->policy->name, "belady");
}

/* Cells in the order of the results: sizes as asked, within a size the policies as asked. */
static int make_cells(struct replay *replay, const uint32_t *pages, size_t nr_pages)
{
	const struct request *request = replay->request;
	size_t i = 0, per_size = request->nr_choices + request->belady_hidden;

	replay->nr_cells = nr_pages * per_size;
	replay->cells = calloc(replay->nr_cells, sizeof(*replay->cells));
	if (!replay->cells)
		return -ENOMEM;
	for (size_t s = 0; s < nr_pages; s++) {
		for (size_t p = 0; p < per_size; p++, i++) {
			struct cell *cell = &replay->cells[i];

			cell->pages = pages[s];
			cell->hidden = p == request->nr_choices;
			cell->choice = cell->hidden ? &request->belady : &request->choices[p];
		}
	}
	return 0;
}

/* What only some runs need, since each costs memory. */
static int resolve_more(struct replay *replay)
{
	const struct request *request = replay->request;
	bool offline = request->belady_hidden;
	int r = 0;

	for (size_t i = 0; i < request->nr_choices; i++)
		offline |= (request->choices[i].policy->flags & FOLIAGE_POLICY_OFFLINE) != 0;
	if (offline)
		r = resolved_next(&replay->resolved);
	if (!r && offline)
		r = resolved_counts(&replay->resolved);
	if (!r && (request->mapped || replay->resolved.ops))
		r = resolved_order(&replay->resolved);
	return r;
}

static int fail_path(const struct replay *replay, const char *reason, struct err *err)
{
	return err_set(err, -EINVAL, "%s: %s", replay->path, reason);
}

static int prepare(struct replay *replay, struct err *err)
{
	const struct request *request = replay->request;
	uint32_t *pages = NULL;
	size_t nr_pages;
	struct err why;
	int r = trace_resolve(&replay->path, 1, &request->trace, request->limit, reading, replay,
			      &replay->resolved, err);

	if (r)
		return r;
	if (cli_interrupted)
		return -EINTR;
	if (request->warmup >= replay->resolved.n)
		return fail_path(replay, "the warm-up leaves no access to count", err);
	if (sizes_resolve(&request->sizes, replay->resolved.nr_ids, &pages, &nr_pages, &why))
		return fail_path(replay, why.text, err);
	if (request->events && nr_pages != 1)
		r = fail_path(replay, "--events needs one policy and one size", err);
	if (!r && (make_cells(replay, pages, nr_pages) || resolve_more(replay)))
		r = err_set(err, -ENOMEM, "%s: out of memory", replay->path);
	free(pages);
	return r;
}

static int run_cells(struct replay *replay, struct err *err)
{
	struct jobs jobs = {
		.nr = replay->nr_cells,
		.threads = (unsigned int)replay->request->threads,
		.run = run_cell,
		.finished = cell_finished,
		.ctx = replay,
	};
	int r = jobs_run(&jobs);

	for (size_t i = 0; r && i < replay->nr_cells; i++) {
		if (replay->cells[i].err.text[0])
			return err_set(err, r, "%s: %s", replay->path, replay->cells[i].err.text);
	}
	return r;
}

static int run_with_events(struct replay *replay, struct err *err)
{
	const struct request *request = replay->request;
	const struct policy_choice *choice = &request->choices[0];
	struct events_header header = {.places = "generation"};
	struct events_writer writer = {
		.pages = replay->resolved.pages,
		.nr_ids = replay->resolved.nr_ids,
	};
	struct outfile output;
	int r = outfile_open(&output, request->events, err);

	if (r)
		return r;
	if (!strncmp(choice->policy->name, "clru", 4))
		snprintf(header.places, sizeof(header.places), "list");
	snprintf(header.policy, sizeof(header.policy), "%s", choice->label);
	snprintf(header.room, sizeof(header.room), "%u", replay->cells[0].pages);
	snprintf(header.trace, sizeof(header.trace), "%s", replay->path);
	events_write_header(output.stream, &header);
	writer.out = output.stream;
	replay->events = &writer;
	r = run_cells(replay, err);
	replay->events = NULL;
	if (!r)
		return outfile_commit(&output, err);
	outfile_discard(&output);
	return r;
}

static void replay_free(struct replay *replay)
{
	for (size_t i = 0; i < replay->nr_cells; i++) {
		free(replay->cells[i].dump);
		free(replay->cells[i].ages);
	}
	free(replay->cells);
	resolved_free(&replay->resolved);
}

/* ---- results ---- */

/* Misses of the offline optimum at this size, 0 when unknown. */
static uint64_t optimum(const struct replay *replay, uint32_t pages)
{
	for (size_t i = 0; i < replay->nr_cells; i++) {
		const struct cell *cell = &replay->cells[i];

		if (cell->pages == pages && cell->done && is_belady(cell->choice))
			return cell->stats.misses;
	}
	return 0;
}

static int add_ratios(struct table *table, const struct replay *replay, const struct cell *cell)
{
	const struct foliage_stats *s = &cell->stats;
	uint64_t best = optimum(replay, cell->pages);
	int r = 0;

	if (s->accesses) {
		double accesses = (double)s->accesses;

		r |= table_real(table, COL_MISS_RATIO, (double)s->misses / accesses);
		r |= table_real(table, COL_REFAULTS_PER_ACCESS, (double)s->refaults / accesses);
	}
	if (best)
		r |= table_real(table, COL_GAP, (double)s->misses / (double)best);
	if (!replay->request->no_timing) {
		double speed = (double)s->accesses / MAX(cell->seconds, 1e-9);

		r |= table_real(table, COL_SECONDS, cell->seconds);
		r |= table_count(table, COL_SPEED, (uint64_t)speed);
	}
	if (cell->dump)
		r |= table_text(table, COL_DUMP, cell->dump);
	if (cell->ages)
		r |= table_text(table, COL_AGES, cell->ages);
	return r;
}

static int add_row(struct table *table, const struct replay *replay, const struct cell *cell)
{
	const struct foliage_stats *s = &cell->stats;
	const struct {
		int column;
		uint64_t value;
	} counts[] = {
		{COL_PAGES, cell->pages},
		{COL_ACCESSES, s->accesses},
		{COL_HITS, s->hits},
		{COL_MISSES, s->misses},
		{COL_REFAULTS, s->refaults},
		{COL_SCANNED, s->scanned},
		{COL_STOLEN, s->stolen},
		{COL_PROMOTED, s->promoted},
		{COL_PROTECTED, s->protected_},
		{COL_AGINGS, s->agings},
	};
	int r = table_row(table);

	if (r)
		return r;
	r |= table_text(table, COL_TRACE, replay->path);
	r |= table_text(table, COL_POLICY, cell->choice->label);
	r |= table_text(table, COL_COMMAND, replay->request->command);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		r |= table_count(table, (size_t)counts[i].column, counts[i].value);
	r |= add_ratios(table, replay, cell);
	return r ? -ENOMEM : 0;
}

static void print_heading(FILE *out, const struct replay *replay)
{
	const struct request *request = replay->request;
	char accesses[32], unique[32], warm[32];

	fprintf(out, "%s: %s accesses, %s unique pages", replay->path,
		count_text(replay->resolved.n, accesses),
		count_text(replay->resolved.nr_ids, unique));
	if (request->warmup)
		fprintf(out, ", %s of them to warm up", count_text(request->warmup, warm));
	fputs("\n\n", out);
}

static int print_dumps(FILE *out, const struct replay *replay, struct err *err)
{
	bool any = false;

	for (size_t i = 0; i < replay->nr_cells; i++) {
		const struct cell *cell = &replay->cells[i];

		any |= cell->dump != NULL || !cell->done;
		if (cell->dump && replay->request->table_format == TABLE_PEOPLE)
			fprintf(out, "\n%s of %s at %u pages:\n%s", replay->request->dump,
				cell->choice->label, cell->pages, cell->dump);
	}
	if (!any)
		return err_set(err, -EOPNOTSUPP, "--dump: none of these policies has %s",
			       replay->request->dump);
	return 0;
}

static int report(struct table *table, const struct replay *replay, FILE *out, struct err *err)
{
	size_t first = table_rows(table);

	for (size_t i = 0; i < replay->nr_cells; i++) {
		const struct cell *cell = &replay->cells[i];

		if (cell->done && !cell->hidden && add_row(table, replay, cell))
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (replay->request->table_format == TABLE_PEOPLE) {
		if (first)
			fputc('\n', out);
		print_heading(out, replay);
		table_print(table, TABLE_PEOPLE, first, table_rows(table), out);
	}
	return replay->request->dump ? print_dumps(out, replay, err) : 0;
}

static int replay_trace(const struct request *request, const char *path, struct table *table,
			FILE *out, struct err *err)
{
	struct replay replay = {.request = request, .path = path};
	int r = prepare(&replay, err);

	if (!r)
		r = request->events ? run_with_events(&replay, err) : run_cells(&replay, err);
	show_progress("");
	if (!r)
		r = report(table, &replay, out, err);
	replay_free(&replay);
	return r;
}

/* ---- the command line ---- */

static int parse_sizes(struct request *request, struct err *err)
{
	int r;

	if (!request->pages && !request->memory)
		request->memory = "10%";
	r = sizes_parse(&request->sizes, request->pages, request->memory, err);
	/* Sizes that need no trace are checked before one is read. */
	for (size_t i = 0; !r && i < request->sizes.nr; i++) {
		struct size_list one = {.items = &request->sizes.items[i], .nr = 1};
		uint32_t *pages;
		size_t nr;

		if (one.items->percent)
			continue;
		r = sizes_resolve(&one, 0, &pages, &nr, err);
		if (!r)
			free(pages);
	}
	return r;
}

static int parse_policies(struct request *request, struct err *err)
{
	bool has_belady = false;
	int r = policy_parse_list(request->policies, &request->choices, &request->nr_choices, err);

	if (r)
		return r;
	for (size_t i = 0; i < request->nr_choices; i++)
		has_belady |= is_belady(&request->choices[i]);
	if (request->gap && !has_belady) {
		r = policy_parse("belady", &request->belady, err);
		request->belady_hidden = !r;
	}
	return r;
}

static int check_request(struct request *request, int nr_traces, char **traces, struct err *err)
{
	int r = check_traces("replay", nr_traces, traces, err);

	if (!r)
		r = parse_format(request->format, &request->table_format, err);
	if (!r)
		r = check_jobs(request->threads, err);
	if (r)
		return r;
	if (!(request->scale >= 1 && request->scale <= 1e9))
		return err_set(err, -EINVAL, "--scale: must be between 1 and 1e9");
	if (request->dump && parse_choice(request->dump, "--dump", dump_names, err) < 0)
		return -EINVAL;
	if (request->dump && request->table_format == TABLE_CSV)
		return err_set(err, -EINVAL, "--dump: not with --format csv");
	if (request->ages > AGES_MAX)
		return err_set(err, -EINVAL, "--ages: at most %d", AGES_MAX);
	if (request->ages && request->table_format != TABLE_JSON)
		return err_set(err, -EINVAL, "--ages: only with --format json");
	r = parse_sizes(request, err);
	if (!r)
		r = parse_policies(request, err);
	if (r)
		return r;
	if (request->events &&
	    (nr_traces != 1 || request->nr_choices != 1 || request->sizes.nr != 1))
		return err_set(err, -EINVAL, "--events needs one trace, one policy and one size");
	if (request->events && request->belady_hidden)
		return err_set(err, -EINVAL, "--events: not with --gap");
	return outfile_check_both("--events", request->events, request->output, (size_t)nr_traces,
				  traces, err);
}

static int parse_request(int argc, char **argv, struct request *request, struct err *err)
{
	const struct option_spec specs[] = {
		{"pages", 0, OPTION_TEXT, &request->pages},
		{"memory", 0, OPTION_TEXT, &request->memory},
		{"policy", 'p', OPTION_TEXT, &request->policies},
		{"warmup", 0, OPTION_COUNT, &request->warmup},
		{"limit", 0, OPTION_COUNT, &request->limit},
		{"jobs", 'j', OPTION_COUNT, &request->threads},
		{"mapped", 0, OPTION_FLAG, &request->mapped},
		{"objects", 0, OPTION_FLAG, &request->trace.objects},
		{"trace-format", 0, OPTION_TEXT, &request->trace.format},
		{"columns", 0, OPTION_TEXT, &request->trace.columns},
		{"seed", 0, OPTION_COUNT, &request->seed},
		{"scale", 0, OPTION_REAL, &request->scale},
		{"gap", 0, OPTION_FLAG, &request->gap},
		{"format", 0, OPTION_TEXT, &request->format},
		{"no-timing", 0, OPTION_FLAG, &request->no_timing},
		{"dump", 0, OPTION_TEXT, &request->dump},
		{"ages", 0, OPTION_COUNT, &request->ages},
		{"events", 0, OPTION_TEXT, &request->events},
		{"output", 'o', OPTION_TEXT, &request->output},
	};
	int nr = options_parse(argc, argv, specs, ARRAY_SIZE(specs), err);
	int r = nr < 0 ? nr : check_request(request, nr, argv + 1, err);

	return r ? r : nr;
}

static void request_free(struct request *request)
{
	for (size_t i = 0; i < request->nr_choices; i++)
		policy_choice_free(&request->choices[i]);
	free(request->choices);
	if (request->belady_hidden)
		policy_choice_free(&request->belady);
	sizes_free(&request->sizes);
	free(request->command);
}

/* The whole report in memory; csv and json print once every trace is in the table. */
static int replay_all(const struct request *request, int nr, char **paths, char **text,
		      struct err *err)
{
	struct table *table = table_create(columns, NR_COLS);
	size_t size;
	FILE *out = open_memstream(text, &size);
	int r = 0;

	if (!table || !out)
		r = err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < nr && !r && !cli_interrupted; i++)
		r = replay_trace(request, paths[i], table, out, err);
	if (r == -EINTR)
		r = 0;
	if (!r && request->table_format != TABLE_PEOPLE)
		table_print(table, request->table_format, 0, table_rows(table), out);
	if (out && fclose(out) && !r)
		r = err_set(err, -ENOMEM, "out of memory");
	table_free(table);
	return r;
}

static int replay_main(int argc, char **argv)
{
	struct request request = {.policies = "clru,mglru,fg",
				  .format = "table",
				  .threads = 1,
				  .seed = 1,
				  .scale = 1};
	struct err err = {""};
	char *text = NULL;
	int nr, r;

	request.command = cli_command_line(argc, argv);
	nr = request.command ? parse_request(argc, argv, &request, &err) : -ENOMEM;
	r = MIN(nr, 0);
	if (!r)
		r = replay_all(&request, nr, argv + 1, &text, &err);
	if (!r)
		r = outfile_write(request.output, text, &err);
	free(text);
	request_free(&request);
	if (r)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-r));
	return cli_interrupted ? 130 : 0;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "run a trace through page-replacement policies",
	.help = "usage: foliage replay TRACE... [--pages N,...] [--memory SIZE,...] [--policy "
		"NAME,...]\n"
		"                      [OPTION...]\n"
		"\n"
		"Replays traces of page accesses through one policy after another, in rooms of "
		"one\n"
		"size after another, and prints what each did. TRACE is a file in any format that\n"
		"`foliage info` knows, compressed or not, or - for standard input.\n"
		"\n"
		"Sizes:\n"
		"  --pages N,N,...     rooms of so many pages; FROM..TO/N for N sizes at equal "
		"distances\n"
		"  --memory S,S,...    rooms of so much memory: 64M, 1G (powers of 1024), or a "
		"part of the\n"
		"                      trace's unique pages: 10%, 1%..50%/10 (rounded down to "
		"pages).\n"
		"                      Without --pages and --memory: 10%. The smallest room is 8 "
		"pages.\n"
		"\n"
		"Policies:\n"
		"  -p, --policy P,...  names as in `foliage policies`, with knobs: "
		"fg:tail_mode=min,\n"
		"                      a shared object that holds one: ./mine.so, or all.\n"
		"                      Default: clru,mglru,fg\n"
		"  --gap               compare with belady, the offline optimum, even if it is not "
		"asked for\n"
		"  --seed N            of the policies' random choices (default 1)\n"
		"  --scale X           the run stands for a room X times as large: what depends on "
		"the\n"
		"                      absolute size behaves as there (default 1)\n"
		"\n"
		"Accesses:\n"
		"  --warmup N          do not count the first N accesses\n"
		"  --limit N           read at most N accesses of each trace\n"
		"  --mapped            accesses go through page tables: they set young bits, which "
		"only a\n"
		"                      walk, look-around or eviction's own check find\n"
		"  --objects           each record is one page, whatever its size\n"
		"  --trace-format F    do not guess the format\n"
		"  --columns C         the columns of a CSV trace, as in page=lbn,size=size,op=op\n"
		"\n"
		"Output:\n"
		"  --format F          table, csv or json\n"
		"  --no-timing         leave out times, so that equal runs print equal bytes\n"
		"  --dump WHAT         also the state at the end: lru_gen, lru_gen_full or "
		"memory.stat\n"
		"  --ages N            also how many pages were in each generation, or active and "
		"inactive, after\n"
		"                      each of N equal parts of the trace, for `foliage report` "
		"(json; engine\n"
		"                      policies)\n"
		"  --events FILE       write what happened to every page and why (one policy, one "
		"size),\n"
		"                      for `foliage explain`\n"
		"  -j, --jobs N        so many cells at once (default 1, 0: one a processor); "
		"results do\n"
		"                      not depend on it\n"
		"  -o, --output FILE   write there; the file appears when it is whole\n"
		"\n"
		"Columns:\n"
		"  misses              accesses that found the page absent; the room starts empty\n"
		"  refaults            misses of pages that had been in the room before\n"
		"  scanned, stolen     pages that reclaim looked at, and those it took\n"
		"  promoted            moved to a younger generation or to an active list\n"
		"  protected           kept by tier feedback or a second chance\n"
		"  agings              generations opened\n"
		"  gap                 misses as a multiple of belady's, when belady ran\n"
		"  seconds             CPU time of the replay loop alone\n"
		"\n"
		"The header of csv starts with\n"
		"trace,policy,pages,accesses,hits,misses,refaults,scanned,stolen,seconds and may "
		"grow\n"
		"at its end.\n"
		"\n"
		"Semantics:\n"
		"A miss with the room full makes one reclaim session in the batches of the "
		"policy's\n"
		"kernel (64 or 32 pages, at most a sixteenth of the room), then inserts. The add "
		"batch\n"
		"(at most 31 pages, at most a sixteenth of the room) counts as resident and "
		"drains\n"
		"before reclaim. Then the access is marked, once. Room means file pages, not a "
		"cgroup's\n"
		"limit.\n"
		"\n"
		"Exit status:\n"
		"  0                   done\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"  130                 SIGINT: the cells that were finished are printed\n"
		"\n"
		"Examples:\n"
		"  foliage replay web.oracleGeneral.zst --memory 1%,10%,40% --policy lru,arc,fg "
		"--gap\n"
		"  foliage replay t.csv --pages 1000 --policy fg --events t.events\n"
		"  foliage explain t.events --page 4711\n",
	.run = replay_main,
};
