/* SPDX-License-Identifier: MIT
 *
 * foliage mrc: the miss ratio of every policy at every size of the room, as curves.
 *
 * Exact, each (size, policy) pair is a cell that runs the whole trace, as in replay. Sampled, a
 * cell runs only the pages that trace/sample.c chose, in a room shrunk alike; the engine is told
 * the scale. A room below ROOM_PAGES says little, since a policy divides it into parts, so a cell
 * whose room would be smaller takes as many more pages as make it that large: small sizes cost more
 * than the rate says, which is little in all.
 *
 * How far a sampled ratio is from the exact one is estimated from what half of the sample says, and
 * from how steep the curve is there. Halves are run at a quarter of the sizes. With --bound they run
 * at all of them, and where the estimate is more than was allowed the cell runs again with four
 * times as many pages, and again, and in the end with all of them: passes over the cells that are
 * left.
 *
 * The working set is exact in both cases: unique pages in each window of the trace.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/jobs.h"
#include "cli/mrc_print.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "machine/room.h"
#include "trace/sample.h"

/* The part of the asked rate that each pass runs; from EXACT_FROM on a cell runs the whole trace. */
static const double passes[] = {0.5, 1, 4, 16, INFINITY};
#define EXACT_FROM 0.25

/* The estimate of an error: that of any sample of so many pages (this over the root of them), what
 * the last pass changed, and a part of the step to the next size. docs/mrc.md has how often it was
 * wrong. */
#define BOUND_NOISE 0.2
#define BOUND_STEP  0.2

enum { HALVES_EVERY = 4 }; /* sizes, without --bound */

enum { CHUNK = 65536, ROOM_PAGES = 96, WINDOWS_MAX = 10000, DEFAULT_SIZES = 32 };

struct request {
	const char *pages, *memory, *policies, *sample, *format, *output, *svg;
	struct trace_options trace;
	uint64_t limit, seed, threads, windows;
	double target, bound;
	bool mapped, working_set;
	/* Derived: */
	enum table_format table_format;
	double rate; /* 1: exact */
	struct size_list sizes;
	struct policy_choice *choices;
	size_t nr_choices;
};

/* One trace at work. */
struct work {
	const struct request *request;
	struct mrc_trace *result;
	struct resolved whole;
	bool whole_ready; /* it has what policies need to run it */
	size_t *order;    /* sizes from the smallest up */
	double *before;   /* [cell] what the last pass said */
	struct err *errors;
	/* Of the pass: */
	size_t pass;
	size_t *todo, nr_todo;
	struct resolved *samples; /* [nr_samples], of ascending rates */
	double *rates;
	size_t nr_samples;
	size_t *sample_of; /* [size] index into samples, SIZE_MAX: the whole trace */
};

/* ---- progress ---- */

static void show_progress(const char *text)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text);
}

static bool reading(void *ctx, uint64_t accesses)
{
	const struct work *work = ctx;
	char text[400], count[32];

	snprintf(text, sizeof(text), "reading %.300s: %s", work->result->path,
		 count_text(accesses, count));
	show_progress(text);
	return !cli_interrupted;
}

static void cell_finished(void *ctx, size_t done)
{
	const struct work *work = ctx;
	char text[400];

	snprintf(text, sizeof(text), "%.300s: %zu of %zu", work->result->path, done, work->nr_todo);
	show_progress(text);
}

/* ---- one cell ---- */

static int feed(struct room *room, const struct resolved *t)
{
	for (uint64_t at = 0; at < t->n; at += CHUNK) {
		size_t n = (size_t)MIN(t->n - at, (uint64_t)CHUNK);
		int r = cli_interrupted
				? -EINTR
				: room_run(room, t->ids + at, t->ops ? t->ops + at : NULL, n);

		if (r)
			return r;
	}
	return 0;
}

static int run_room(const struct work *work, size_t i, const struct resolved *t, double rate)
{
	const size_t policies = work->request->nr_choices;
	struct mrc_cell *cell = &work->result->cells[i];
	const struct foliage_policy_env env = {
		.room = (uint32_t)lround((double)work->result->sizes[i / policies] * rate),
		.nr_ids = t->nr_ids,
		.nr_accesses = t->n,
		.seed = work->request->seed,
		.next = t->next,
		.counts = t->counts,
		.scale = 1 / rate,
		.sample = rate,
		.order = t->order,
	};
	struct foliage_stats stats;
	struct room *room;
	int r = room_open(&work->request->choices[i % policies], &env, &room, &work->errors[i]);

	if (r)
		return r;
	r = feed(room, t);
	if (!r) {
		room_stats(room, &stats);
		cell->accesses = stats.accesses;
		cell->misses = stats.misses;
		cell->rate = rate;
		cell->noise = BOUND_NOISE / sqrt(t->nr_ids);
		cell->bound = rate < 1 ? NAN : 0;
		cell->miss_ratio = sample_miss_ratio(stats.misses, rate, work->whole.n);
		cell->done = true;
	}
	room_close(room);
	return r;
}

static int run_cell(void *ctx, size_t job)
{
	const struct work *work = ctx;
	const size_t i = work->todo[job];
	const struct policy_choice *choice = &work->request->choices[i % work->request->nr_choices];
	size_t s = work->sample_of[i / work->request->nr_choices];
	int r = run_room(work, i, s == SIZE_MAX ? &work->whole : &work->samples[s],
			 s == SIZE_MAX ? 1 : work->rates[s]);

	if (r == -EINTR)
		return 0;
	if (r && !work->errors[i].text[0])
		err_set(&work->errors[i], r, "%s at %u pages: %s", choice->label,
			work->result->sizes[i / work->request->nr_choices], strerror(-r));
	return r;
}

/* ---- sampling ---- */

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The rate at which the pass runs a size; 1: the whole trace. */
static double rate_for(const struct work *work, size_t size)
{
	double rate = MAX(work->request->rate, ROOM_PAGES / (double)work->result->sizes[size]);

	if (rate >= 1)
		return 1;
	rate *= passes[work->pass];
	return passes[work->pass] > 1 && rate >= EXACT_FROM ? 1 : rate;
}

static bool is_left(const struct work *work, size_t place, const struct mrc_cell *cell)
{
	/* Not the smallest size, whose sample is the largest. */
	const size_t first = MIN(work->result->nr_sizes - 1, (size_t)HALVES_EVERY / 2);
	const bool bounded = !isnan(work->request->bound);

	if (!work->pass)
		return bounded || work->request->rate >= 1 || place % HALVES_EVERY == first;
	if (!cell->done)
		return true;
	return cell->rate < 1 &&
	       (work->pass < 2 || (bounded && cell->bound > work->request->bound));
}

/* The cells of the pass. */
static void list_cells(struct work *work)
{
	const size_t policies = work->request->nr_choices;

	work->nr_todo = 0;
	for (size_t i = 0; i < work->result->nr_sizes; i++) {
		for (size_t p = 0; p < policies; p++) {
			size_t at = work->order[i] * policies + p;

			if (is_left(work, i, &work->result->cells[at]))
				work->todo[work->nr_todo++] = at;
		}
	}
}

/* The different rates that the sizes of the pass need. */
static void list_rates(struct work *work)
{
	const size_t policies = work->request->nr_choices, nr = work->result->nr_sizes;
	size_t n = 0;

	for (size_t i = 0; i < work->nr_todo; i++) {
		double rate = rate_for(work, work->todo[i] / policies);

		if (rate < 1 && (!i || work->todo[i] / policies != work->todo[i - 1] / policies))
			work->rates[n++] = rate;
	}
	qsort(work->rates, n, sizeof(*work->rates), ascending);
	work->nr_samples = 0;
	for (size_t i = 0; i < n; i++) {
		if (!work->nr_samples || work->rates[i] > work->rates[work->nr_samples - 1])
			work->rates[work->nr_samples++] = work->rates[i];
	}
	for (size_t i = 0; i < nr; i++) {
		size_t s = 0;

		while (s < work->nr_samples && work->rates[s] < rate_for(work, i))
			s++;
		work->sample_of[i] = s < work->nr_samples ? s : SIZE_MAX;
	}
}

static int take_samples(struct work *work, struct err *err)
{
	const char *path = work->result->path;
	int r;

	list_rates(work);
	if (!work->nr_samples)
		return 0;
	work->samples = calloc(work->nr_samples, sizeof(*work->samples));
	r = work->samples ? sample_take(&work->whole, work->rates, work->nr_samples,
					work->request->seed, work->samples)
			  : -ENOMEM;
	if (r)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	for (size_t i = 0; i < work->nr_samples; i++) {
		if (!work->samples[i].n)
			return err_set(err, -EINVAL,
				       "%s: a sample of %g%% has none of its %u pages", path,
				       100 * work->rates[i], work->whole.nr_ids);
	}
	return 0;
}

static void drop_samples(struct work *work)
{
	for (size_t i = 0; i < work->nr_samples && work->samples; i++)
		resolved_free(&work->samples[i]);
	free(work->samples);
	work->samples = NULL;
	work->nr_samples = 0;
}

/* The ratio of a cell, in the order of the sizes; NAN: there is none. */
static double ratio_at(const struct work *work, size_t place, size_t policy)
{
	const struct mrc_cell *cell;

	if (place >= work->result->nr_sizes)
		return NAN;
	cell = &work->result->cells[work->order[place] * work->request->nr_choices + policy];
	return cell->done ? cell->miss_ratio : NAN;
}

/* What more pages changed at this size, or at the nearest ones where that was seen; NAN: nowhere. */
static double change_at(const struct work *work, size_t place, size_t policy)
{
	double change = NAN;

	for (int way = -1; way <= 1; way += 2) {
		for (size_t i = place; i < work->result->nr_sizes; i += (size_t)way) {
			double before =
				work->before[work->order[i] * work->request->nr_choices + policy];

			if (isnan(before))
				continue;
			change = fmax(change, fabs(ratio_at(work, i, policy) - before));
			break;
		}
	}
	return change;
}

static void set_bounds(struct work *work)
{
	const size_t policies = work->request->nr_choices;

	for (size_t i = 0; i < work->result->nr_sizes * policies; i++) {
		const size_t place = i / policies, policy = i % policies;
		struct mrc_cell *cell =
			&work->result->cells[work->order[place] * policies + policy];
		double down = place ? fabs(ratio_at(work, place - 1, policy) - cell->miss_ratio)
				    : NAN,
		       up = fabs(ratio_at(work, place + 1, policy) - cell->miss_ratio);

		if (cell->done && cell->rate < 1 && work->pass)
			cell->bound = cell->noise + change_at(work, place, policy) +
				      BOUND_STEP * fmax(isnan(down) ? 0 : down, isnan(up) ? 0 : up);
	}
}

/* ---- one trace ---- */

static int mark_mapped(struct resolved *t)
{
	if (!t->ops)
		t->ops = mem_table(t->n);
	if (!t->ops)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->n; i++)
		t->ops[i] |= FOLIAGE_ACCESS_MAPPED;
	return 0;
}

/* What only some policies and some accesses need. */
static int resolve_more(const struct request *request, struct resolved *t)
{
	bool offline = false;
	int r = 0;

	for (size_t i = 0; i < request->nr_choices; i++)
		offline |= (request->choices[i].policy->flags & FOLIAGE_POLICY_OFFLINE) != 0;
	if (offline)
		r = resolved_next(t);
	if (!r && offline)
		r = resolved_counts(t);
	return !r && t->ops ? resolved_order(t) : r;
}

/* Without sizes from the user: even steps up to all pages, from 1 % or the smallest room. */
static int default_sizes(uint32_t unique, struct size_list *list, struct err *err)
{
	double from = MAX(1.0, ceil(100.0 * FOLIAGE_ROOM_MIN / unique));
	char text[64];

	snprintf(text, sizeof(text), from < 100 ? "%g%%..100%%/%d" : "100%%", from, DEFAULT_SIZES);
	return sizes_parse_memory(list, text, err);
}

static int resolve_sizes(struct work *work, struct err *err)
{
	const struct request *request = work->request;
	struct mrc_trace *result = work->result;
	struct size_list list = {0};
	struct err why = {""};
	int r = request->sizes.nr ? 0 : default_sizes(work->whole.nr_ids, &list, &why);

	if (!r)
		r = sizes_resolve(request->sizes.nr ? &request->sizes : &list, work->whole.nr_ids,
				  &result->sizes, &result->nr_sizes, &why);
	sizes_free(&list);
	return r ? err_set(err, r, "%s: %s", result->path, why.text) : 0;
}

static int count_windows(struct work *work)
{
	struct mrc_trace *result = work->result;
	const struct resolved *t = &work->whole;
	uint64_t windows = MIN(work->request->windows, t->n),
		 length = (t->n + windows - 1) / windows;
	const size_t bytes = t->nr_ids * sizeof(uint32_t);
	uint32_t *seen = mem_table(bytes), window = 0, unique = 0;

	result->window = length;
	result->nr_windows = (size_t)((t->n + length - 1) / length);
	result->windows = calloc(result->nr_windows, sizeof(*result->windows));
	if (!seen || !result->windows) {
		mem_table_free(seen, bytes);
		return -ENOMEM;
	}
	for (uint64_t begin = 0; begin < t->n; begin += length) {
		uint64_t end = MIN(begin + length, t->n);

		window++;
		unique = 0;
		for (uint64_t i = begin; i < end; i++) {
			unique += seen[t->ids[i]] != window;
			seen[t->ids[i]] = window;
		}
		result->windows[window - 1] = unique;
	}
	mem_table_free(seen, bytes);
	return 0;
}

static int prepare(struct work *work, struct err *err)
{
	const struct request *request = work->request;
	struct mrc_trace *result = work->result;
	size_t cells;
	int r = trace_resolve(&result->path, 1, &request->trace, request->limit, reading, work,
			      &work->whole, err);

	if (!r && cli_interrupted)
		r = -EINTR;
	if (!r)
		r = resolve_sizes(work, err);
	if (r)
		return r;
	result->accesses = work->whole.n;
	result->unique = work->whole.nr_ids;
	cells = result->nr_sizes * request->nr_choices;
	work->sample_of = calloc(result->nr_sizes, sizeof(*work->sample_of));
	work->rates = calloc(result->nr_sizes, sizeof(*work->rates));
	work->order = calloc(result->nr_sizes, sizeof(*work->order));
	work->errors = calloc(cells, sizeof(*work->errors));
	work->before = calloc(cells, sizeof(*work->before));
	work->todo = calloc(cells, sizeof(*work->todo));
	result->cells = calloc(cells, sizeof(*result->cells));
	if (!work->sample_of || !work->rates || !work->order || !work->errors || !work->before ||
	    !work->todo || !result->cells || count_windows(work) ||
	    (request->mapped && mark_mapped(&work->whole)))
		return err_set(err, -ENOMEM, "%s: out of memory", result->path);
	mrc_sort_sizes(result, work->order);
	for (size_t i = 0; i < cells; i++)
		work->before[i] = NAN;
	return 0;
}

/* What the traces of the pass need beside themselves. */
static int resolve_pass(struct work *work, struct err *err)
{
	const struct request *request = work->request;
	bool whole = false;
	int r = 0;

	for (size_t i = 0; i < work->nr_todo; i++)
		whole |= work->sample_of[work->todo[i] / request->nr_choices] == SIZE_MAX;
	if (whole && !work->whole_ready) {
		r = resolve_more(request, &work->whole);
		work->whole_ready = true;
	}
	for (size_t i = 0; i < work->nr_samples && !r; i++)
		r = resolve_more(request, &work->samples[i]);
	return r ? err_set(err, r, "%s: %s", work->result->path, strerror(-r)) : 0;
}

static int run_cells(struct work *work, struct err *err)
{
	const struct jobs jobs = {
		.nr = work->nr_todo,
		.threads = (unsigned int)work->request->threads,
		.run = run_cell,
		.finished = cell_finished,
		.ctx = work,
	};
	int r;

	for (size_t i = 0; i < work->nr_todo; i++) {
		const struct mrc_cell *cell = &work->result->cells[work->todo[i]];

		work->before[work->todo[i]] = cell->done ? cell->miss_ratio : NAN;
	}
	r = jobs_run(&jobs);
	for (size_t i = 0; r && i < work->nr_todo; i++) {
		const struct err *error = &work->errors[work->todo[i]];

		if (error->text[0])
			return err_set(err, r, "%s: %s", work->result->path, error->text);
	}
	return r;
}

static int run_passes(struct work *work, struct err *err)
{
	int r = 0;

	/* Without a sample the first pass runs everything. */
	for (work->pass = 0; work->pass < ARRAY_SIZE(passes) && !r && !cli_interrupted;
	     work->pass++) {
		list_cells(work);
		if (!work->nr_todo)
			break;
		r = take_samples(work, err);
		if (!r)
			r = resolve_pass(work, err);
		if (!r)
			r = run_cells(work, err);
		drop_samples(work);
		if (!r)
			set_bounds(work);
	}
	return r;
}

static int run_trace(const struct request *request, struct mrc_trace *result, struct err *err)
{
	struct work work = {.request = request, .result = result};
	int r = prepare(&work, err);

	if (!r)
		r = run_passes(&work, err);
	show_progress("");
	resolved_free(&work.whole);
	free(work.rates);
	free(work.sample_of);
	free(work.order);
	free(work.before);
	free(work.todo);
	free(work.errors);
	return r;
}

/* ---- the command line ---- */

static int parse_rate(struct request *request, struct err *err)
{
	char text[40];
	size_t n = strlen(request->sample);
	int r;

	if (!n || n >= sizeof(text) || request->sample[n - 1] != '%')
		return err_set(err, -EINVAL, "--sample: '%s' is not a percentage, as in 1%%",
			       request->sample);
	memcpy(text, request->sample, n);
	text[n - 1] = 0;
	r = parse_real(text, "--sample", &request->rate, err);
	if (!r && !(request->rate >= 1e-4 && request->rate <= 100))
		r = err_set(err, -EINVAL, "--sample: must be between 0.0001%% and 100%%");
	request->rate /= 100;
	return r;
}

static int check_request(struct request *request, int nr, char **traces, struct err *err)
{
	int r = check_traces("mrc", nr, traces, err);

	if (!r)
		r = parse_format(request->format, &request->table_format, err);
	if (!r)
		r = check_jobs(request->threads, err);
	if (r)
		return r;
	if (request->windows < 1 || request->windows > WINDOWS_MAX)
		return err_set(err, -EINVAL, "--windows: must be between 1 and %d", WINDOWS_MAX);
	if (!isnan(request->target) && !(request->target > 0 && request->target < 1))
		return err_set(err, -EINVAL, "--target: a miss ratio is between 0 and 1");
	if (!isnan(request->bound) && !(request->bound > 0 && request->bound < 1))
		return err_set(err, -EINVAL, "--bound: must be between 0 and 1");
	if (!isnan(request->bound) && !request->sample)
		return err_set(err, -EINVAL, "--bound: without --sample every ratio is exact");
	r = request->sample ? parse_rate(request, err) : 0;
	if (!r)
		r = sizes_parse(&request->sizes, request->pages, request->memory, err);
	if (!r)
		r = policy_parse_list(request->policies, &request->choices, &request->nr_choices,
				      err);
	return r ? r
		 : outfile_check_both("--svg", request->svg, request->output, (size_t)nr, traces,
				      err);
}

static int parse_request(int argc, char **argv, struct request *request, struct err *err)
{
	const struct option_spec specs[] = {
		{"pages", 0, OPTION_TEXT, &request->pages},
		{"memory", 0, OPTION_TEXT, &request->memory},
		{"policy", 'p', OPTION_TEXT, &request->policies},
		{"sample", 0, OPTION_TEXT, &request->sample},
		{"bound", 0, OPTION_REAL, &request->bound},
		{"target", 0, OPTION_REAL, &request->target},
		{"limit", 0, OPTION_COUNT, &request->limit},
		{"jobs", 'j', OPTION_COUNT, &request->threads},
		{"mapped", 0, OPTION_FLAG, &request->mapped},
		{"objects", 0, OPTION_FLAG, &request->trace.objects},
		{"trace-format", 0, OPTION_TEXT, &request->trace.format},
		{"columns", 0, OPTION_TEXT, &request->trace.columns},
		{"seed", 0, OPTION_COUNT, &request->seed},
		{"windows", 0, OPTION_COUNT, &request->windows},
		{"working-set", 0, OPTION_FLAG, &request->working_set},
		{"format", 0, OPTION_TEXT, &request->format},
		{"svg", 0, OPTION_TEXT, &request->svg},
		{"output", 'o', OPTION_TEXT, &request->output},
	};
	int nr = options_parse(argc, argv, specs, ARRAY_SIZE(specs), err);
	int r = nr < 0 ? nr : check_request(request, nr, argv + 1, err);

	return r ? r : nr;
}

static void free_all(struct request *request, struct mrc *mrc)
{
	for (size_t i = 0; i < mrc->nr_traces; i++) {
		free(mrc->traces[i].sizes);
		free(mrc->traces[i].cells);
		free(mrc->traces[i].windows);
	}
	free(mrc->traces);
	for (size_t i = 0; i < request->nr_choices; i++)
		policy_choice_free(&request->choices[i]);
	free(request->choices);
	sizes_free(&request->sizes);
}

static int run_all(const struct request *request, int nr, char **paths, struct mrc *mrc,
		   struct err *err)
{
	int r = 0;

	mrc->choices = request->choices;
	mrc->nr_choices = request->nr_choices;
	mrc->rate = request->rate;
	mrc->target = request->target;
	mrc->traces = calloc((size_t)nr, sizeof(*mrc->traces));
	if (!mrc->traces)
		return err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < nr && !r && !cli_interrupted; i++) {
		mrc->traces[i].path = paths[i];
		mrc->nr_traces++;
		r = run_trace(request, &mrc->traces[i], err);
	}
	if (r != -EINTR)
		return r;
	/* Of the trace that was being read there is nothing to show. */
	mrc->traces[mrc->nr_traces - 1].nr_sizes = 0;
	return 0;
}

typedef int (*printer)(const struct mrc *mrc, const struct request *request, FILE *out);

static int print_text(const struct mrc *mrc, const struct request *request, FILE *out)
{
	return mrc_print(mrc, request->table_format, request->working_set, out);
}

static int print_svg(const struct mrc *mrc, const struct request *request, FILE *out)
{
	(void)request;
	return mrc_print_svg(mrc, out);
}

/* Into a file that is still open, to be made whole when everything else has worked. */
static int print_to(struct outfile *output, const char *path, printer print, const struct mrc *mrc,
		    const struct request *request, struct err *err)
{
	int r = outfile_open(output, path, err);

	if (!r && print(mrc, request, output->stream)) {
		outfile_discard(output);
		r = err_set(err, -ENOMEM, "out of memory");
	}
	return r;
}

/* The picture is written first and gets its name last: neither output appears when the other fails. */
static int write_all(const struct mrc *mrc, const struct request *request, struct err *err)
{
	struct outfile svg = {0}, text;
	int r = request->svg ? print_to(&svg, request->svg, print_svg, mrc, request, err) : 0;

	if (!r && request->svg)
		r = outfile_flush(&svg, err);
	if (!r)
		r = print_to(&text, request->output, print_text, mrc, request, err);
	if (!r)
		r = outfile_commit(&text, err);
	if (!r && request->svg)
		return outfile_commit(&svg, err);
	if (request->svg)
		outfile_discard(&svg);
	return r;
}

static int mrc_main(int argc, char **argv)
{
	struct request request = {.policies = "clru,mglru,fg",
				  .format = "table",
				  .seed = 1,
				  .rate = 1,
				  .target = NAN,
				  .bound = NAN,
				  .windows = 20};
	struct mrc mrc = {.command = cli_command_line(argc, argv)};
	struct err err = {""};
	int nr = parse_request(argc, argv, &request, &err), r = MIN(nr, 0);

	if (!r && !mrc.command)
		r = -ENOMEM;
	if (!r)
		r = run_all(&request, nr, argv + 1, &mrc, &err);
	if (!r)
		r = write_all(&mrc, &request, &err);
	free(mrc.command);
	free_all(&request, &mrc);
	if (r)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-r));
	return cli_interrupted ? 130 : 0;
}

const struct command command_mrc = {
	.name = "mrc",
	.summary = "miss-ratio curves: how much memory which policy needs",
	.help = "usage: foliage mrc TRACE... [--policy NAME,...] [--memory SIZE,... | --pages "
		"N,...]\n"
		"                   [--sample RATE%] [--target RATIO] [--svg FILE] [OPTION...]\n"
		"\n"
		"Runs traces through policies in rooms of many sizes and prints the miss ratio of "
		"each. TRACE\n"
		"is a file in any format that `foliage info` knows, compressed or not, or - for "
		"standard input.\n"
		"\n"
		"What to run:\n"
		"  -p, --policy P,...  names as in `foliage policies`, with knobs, a shared "
		"object, or all.\n"
		"                      Default: clru,mglru,fg\n"
		"  --memory S,S,...    rooms of so much memory: 64M, 1G, or a part of the trace's "
		"unique pages:\n"
		"                      10%, 1%..100%/32 (32 sizes at equal distances). That is the "
		"default; in\n"
		"                      a small trace it begins at 8 pages, the smallest room.\n"
		"  --pages N,N,...     rooms of so many pages; FROM..TO/N for N sizes\n"
		"  --sample RATE%      run a part of the pages in rooms shrunk alike. Sizes whose "
		"room would be\n"
		"                      below 96 pages take as many more pages as make it 96. "
		"Each ratio comes with\n"
		"                      an estimate of how far it may be from the exact one\n"
		"  --bound E           run again, with four times as many pages and more, in the "
		"end with all,\n"
		"                      where that estimate is above E. docs/mrc.md has how often "
		"it was wrong\n"
		"  --target RATIO      say how much memory each policy needs for this miss ratio\n"
		"  --seed N            of the policies' random choices and of the sample (default "
		"1)\n"
		"\n"
		"Accesses:\n"
		"  --limit N           read at most N accesses of each trace\n"
		"  --mapped            accesses go through page tables\n"
		"  --objects           each record is one page, whatever its size\n"
		"  --trace-format F    do not guess the format\n"
		"  --columns C         the columns of a CSV trace, as in page=lbn,size=size,op=op\n"
		"\n"
		"Output:\n"
		"  --format F          table, csv or json; json has curves, working set and "
		"answers\n"
		"  --working-set       print the working set instead of the curves (table and "
		"csv)\n"
		"  --windows N         count the working set in N windows of the trace (default "
		"20)\n"
		"  --svg FILE          also draw the curves and the working set\n"
		"  -j, --jobs N        so many cells at once (default: one a processor); results "
		"do not depend\n"
		"                      on it\n"
		"  -o, --output FILE   write there; the file appears when it is whole\n"
		"\n"
		"Columns:\n"
		"  csv of curves       "
		"trace,policy,pages,bytes,rate,accesses,misses,miss_ratio,bound\n"
		"  csv of working set  trace,window,from,accesses,unique_pages,bytes\n"
		"  rate                part of the pages that ran; accesses and misses are those "
		"of the sample\n"
		"  miss_ratio          misses / (rate * accesses of the whole trace)\n"
		"  bound               how far it may be from the exact ratio, estimated; 0: it is "
		"exact\n"
		"\n"
		"Exit status:\n"
		"  0                   done\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"  130                 SIGINT: the cells that were finished are printed\n"
		"\n"
		"Examples:\n"
		"  foliage mrc db.trace --policy lru,fg --target 0.1 --svg curve.svg\n"
		"  foliage mrc big.oracleGeneral.zst --sample 1% --memory 1%..100%/32\n",
	.run = mrc_main,
};
