/* SPDX-License-Identifier: MIT
 *
 * The results of mrc for people (a line a size, a column a policy), as csv and json (a line a
 * cell), and as curves.
 *
 * The answer to "how much memory for this miss ratio" is read off the curve: the first size, from
 * the smallest up, where the curve crosses the target, on the straight line between the two sizes
 * around it.
 */
#include "cli/mrc_print.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/svg.h"

#define PAGE_BYTES UINT64_C(4096)
#define MIB        (1024.0 * 1024.0)

static double mib(double pages)
{
	return pages * (double)PAGE_BYTES / MIB;
}

static const struct mrc_cell *cell_at(const struct mrc *mrc, const struct mrc_trace *trace,
				      size_t size, size_t policy)
{
	return &trace->cells[size * mrc->nr_choices + policy];
}

/* ---- the answer ---- */

enum answer_kind { ANSWER_AT, ANSWER_AT_MOST, ANSWER_NEVER, ANSWER_UNKNOWN };

struct answer {
	enum answer_kind kind;
	double pages; /* of ANSWER_AT and ANSWER_AT_MOST */
	double best;  /* the lowest miss ratio there is */
};

void mrc_sort_sizes(const struct mrc_trace *trace, size_t *order)
{
	for (size_t i = 0; i < trace->nr_sizes; i++) {
		size_t j = i;

		while (j && trace->sizes[order[j - 1]] > trace->sizes[i]) {
			order[j] = order[j - 1];
			j--;
		}
		order[j] = i;
	}
}

static struct answer find_answer(const struct mrc *mrc, const struct mrc_trace *trace,
				 const size_t *order, size_t policy)
{
	struct answer answer = {.kind = ANSWER_UNKNOWN, .best = INFINITY};
	const struct mrc_cell *last = NULL;
	double last_pages = 0;

	for (size_t i = 0; i < trace->nr_sizes; i++) {
		const struct mrc_cell *cell = cell_at(mrc, trace, order[i], policy);
		double pages = trace->sizes[order[i]];

		if (!cell->done)
			continue;
		answer.best = fmin(answer.best, cell->miss_ratio);
		if (cell->miss_ratio <= mrc->target) {
			double fall = last ? last->miss_ratio - cell->miss_ratio : 0;

			answer.kind = last ? ANSWER_AT : ANSWER_AT_MOST;
			answer.pages = pages;
			if (last && fall > 0)
				answer.pages = last_pages +
					       (pages - last_pages) *
						       (last->miss_ratio - mrc->target) / fall;
			answer.pages = ceil(answer.pages - 1e-6);
			return answer;
		}
		answer.kind = ANSWER_NEVER;
		last = cell;
		last_pages = pages;
	}
	return answer;
}

static void put_answer(FILE *out, const struct answer *answer, const char *label)
{
	char count[32];

	if (answer->kind == ANSWER_NEVER)
		fprintf(out, "%s does not reach it (%.4f)", label, answer->best);
	else if (answer->kind == ANSWER_UNKNOWN)
		fprintf(out, "%s did not run", label);
	else
		fprintf(out, "%s needs %s%.1f MiB (%s pages)", label,
			answer->kind == ANSWER_AT_MOST ? "at most " : "", mib(answer->pages),
			count_text((uint64_t)answer->pages, count));
}

static void put_sentence(FILE *out, const struct mrc *mrc, const struct mrc_trace *trace,
			 const size_t *order)
{
	fprintf(out, "For a miss ratio of %g", mrc->target);
	for (size_t p = 0; p < mrc->nr_choices; p++) {
		struct answer answer = find_answer(mrc, trace, order, p);

		fputs(p ? ", " : " ", out);
		put_answer(out, &answer, mrc->choices[p].label);
	}
	fputs(".\n", out);
}

/* ---- for people ---- */

static int fill_curves(const struct mrc *mrc, const struct mrc_trace *trace, struct table *table)
{
	for (size_t s = 0; s < trace->nr_sizes; s++) {
		int r = table_row(table);

		if (r)
			return r;
		table_count(table, 0, trace->sizes[s]);
		table_real(table, 1, mib(trace->sizes[s]));
		table_real(table, 2, 100.0 * trace->sizes[s] / trace->unique);
		for (size_t p = 0; p < mrc->nr_choices; p++) {
			const struct mrc_cell *cell = cell_at(mrc, trace, s, p);

			if (cell->done)
				table_real(table, 3 + p, cell->miss_ratio);
		}
	}
	return 0;
}

static int print_curves(const struct mrc *mrc, const struct mrc_trace *trace, FILE *out)
{
	const size_t nr = 3 + mrc->nr_choices;
	struct table_column *columns = calloc(nr, sizeof(*columns));
	struct table *table = columns ? table_create(columns, nr) : NULL;
	int r = table ? 0 : -ENOMEM;

	if (!r) {
		columns[0] = (struct table_column){
			.key = "pages", .title = "pages", .kind = TABLE_COUNT};
		columns[1] = (struct table_column){
			.key = "mib", .title = "MiB", .kind = TABLE_REAL, .decimals = 1};
		columns[2] = (struct table_column){
			.key = "percent", .title = "%", .kind = TABLE_REAL, .decimals = 2};
		for (size_t p = 0; p < mrc->nr_choices; p++)
			columns[3 + p] = (struct table_column){.key = mrc->choices[p].label,
							       .title = mrc->choices[p].label,
							       .kind = TABLE_REAL,
							       .decimals = 4};
		r = fill_curves(mrc, trace, table);
	}
	if (!r)
		table_print(table, TABLE_PEOPLE, 0, table_rows(table), out);
	table_free(table);
	free(columns);
	return r;
}

/* ---- the working set ---- */

enum { WS_TRACE, WS_WINDOW, WS_FROM, WS_ACCESSES, WS_UNIQUE, WS_BYTES, WS_MIB, WS_NR };

static const struct table_column ws_people[WS_NR] = {
	[WS_TRACE] = {.key = "trace", .kind = TABLE_TEXT},
	[WS_WINDOW] = {.key = "window", .title = "window", .kind = TABLE_COUNT},
	[WS_FROM] = {.key = "from", .title = "from access", .kind = TABLE_COUNT},
	[WS_ACCESSES] = {.key = "accesses", .title = "accesses", .kind = TABLE_COUNT},
	[WS_UNIQUE] = {.key = "unique_pages", .title = "unique pages", .kind = TABLE_COUNT},
	[WS_BYTES] = {.key = "bytes", .kind = TABLE_COUNT},
	[WS_MIB] = {.key = "mib",
		    .title = "MiB",
		    .kind = TABLE_REAL,
		    .decimals = 1,
		    .json_only = false},
};

/* In csv and json the bytes say what the MiB say. */
static struct table *ws_create(bool people)
{
	return table_create(ws_people, people ? WS_NR : WS_MIB);
}

static int ws_fill(const struct mrc_trace *trace, bool people, struct table *table)
{
	for (size_t w = 0; w < trace->nr_windows; w++) {
		uint64_t from = w * trace->window;
		int r = table_row(table);

		if (!r)
			r = table_text(table, WS_TRACE, trace->path);
		if (r)
			return r;
		table_count(table, WS_WINDOW, w + 1);
		table_count(table, WS_FROM, from);
		table_count(table, WS_ACCESSES, MIN(trace->window, trace->accesses - from));
		table_count(table, WS_UNIQUE, trace->windows[w]);
		table_count(table, WS_BYTES, trace->windows[w] * PAGE_BYTES);
		if (people)
			table_real(table, WS_MIB, mib(trace->windows[w]));
	}
	return 0;
}

static int print_working_sets(const struct mrc *mrc, size_t from, size_t to,
			      enum table_format format, FILE *out)
{
	const bool people = format == TABLE_PEOPLE;
	struct table *table = ws_create(people);
	int r = table ? 0 : -ENOMEM;

	for (size_t i = from; i < to && !r; i++)
		r = ws_fill(&mrc->traces[i], people, table);
	if (!r)
		table_print(table, format, 0, table_rows(table), out);
	table_free(table);
	return r;
}

/* The largest bound of all cells is the one that a reader can rely on. */
static void put_sampling(FILE *out, const struct mrc *mrc, const struct mrc_trace *trace)
{
	size_t nr = trace->nr_sizes * mrc->nr_choices, exact = 0;
	double worst = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct mrc_cell *cell = &trace->cells[i];

		exact += cell->done && cell->rate >= 1;
		if (cell->done && !isnan(cell->bound))
			worst = fmax(worst, cell->bound);
	}
	fprintf(out, ", sampled at %g%%, estimated to be within %.4f", 100 * mrc->rate, worst);
	if (exact)
		fprintf(out, ", %zu of %zu exact", exact, nr);
}

static int print_people(const struct mrc *mrc, size_t i, bool working_set, FILE *out)
{
	const struct mrc_trace *trace = &mrc->traces[i];
	size_t *order = calloc(trace->nr_sizes, sizeof(*order));
	char accesses[32], unique[32];
	int r = order ? 0 : -ENOMEM;

	fprintf(out, "%s%s: %s accesses, %s unique pages", i ? "\n" : "", trace->path,
		count_text(trace->accesses, accesses), count_text(trace->unique, unique));
	if (mrc->rate < 1)
		put_sampling(out, mrc, trace);
	fputs("\n\n", out);
	if (!r && working_set)
		r = print_working_sets(mrc, i, i + 1, TABLE_PEOPLE, out);
	else if (!r)
		r = print_curves(mrc, trace, out);
	if (!r && !isnan(mrc->target)) {
		mrc_sort_sizes(trace, order);
		fputc('\n', out);
		put_sentence(out, mrc, trace, order);
	}
	free(order);
	return r;
}

/* ---- csv and json ---- */

enum {
	COL_TRACE,
	COL_POLICY,
	COL_PAGES,
	COL_BYTES,
	COL_RATE,
	COL_ACCESSES,
	COL_MISSES,
	COL_MISS_RATIO,
	COL_BOUND,
	NR_COLS
};

static const struct table_column columns_of_cells[NR_COLS] = {
	[COL_TRACE] = {.key = "trace", .kind = TABLE_TEXT},
	[COL_POLICY] = {.key = "policy", .kind = TABLE_TEXT},
	[COL_PAGES] = {.key = "pages", .kind = TABLE_COUNT},
	[COL_BYTES] = {.key = "bytes", .kind = TABLE_COUNT},
	[COL_RATE] = {.key = "rate", .kind = TABLE_REAL, .precise = 6},
	[COL_ACCESSES] = {.key = "accesses", .kind = TABLE_COUNT},
	[COL_MISSES] = {.key = "misses", .kind = TABLE_COUNT},
	[COL_MISS_RATIO] = {.key = "miss_ratio", .kind = TABLE_REAL, .precise = 6},
	[COL_BOUND] = {.key = "bound", .kind = TABLE_REAL, .precise = 4},
};

static int add_cell(struct table *table, const struct mrc *mrc, const struct mrc_trace *trace,
		    size_t s, size_t p)
{
	const struct mrc_cell *cell = cell_at(mrc, trace, s, p);
	int r = cell->done ? table_row(table) : 0;

	if (r || !cell->done)
		return r;
	r = table_text(table, COL_TRACE, trace->path);
	if (!r)
		r = table_text(table, COL_POLICY, mrc->choices[p].label);
	table_count(table, COL_PAGES, trace->sizes[s]);
	table_count(table, COL_BYTES, trace->sizes[s] * PAGE_BYTES);
	table_real(table, COL_RATE, cell->rate);
	table_count(table, COL_ACCESSES, cell->accesses);
	table_count(table, COL_MISSES, cell->misses);
	table_real(table, COL_MISS_RATIO, cell->miss_ratio);
	if (!isnan(cell->bound))
		table_real(table, COL_BOUND, cell->bound);
	return r;
}

static int print_cells(const struct mrc *mrc, enum table_format format, FILE *out)
{
	struct table *table = table_create(columns_of_cells, NR_COLS);
	int r = table ? 0 : -ENOMEM;

	for (size_t t = 0; t < mrc->nr_traces && !r; t++) {
		for (size_t s = 0; s < mrc->traces[t].nr_sizes && !r; s++) {
			for (size_t p = 0; p < mrc->nr_choices && !r; p++)
				r = add_cell(table, mrc, &mrc->traces[t], s, p);
		}
	}
	if (!r)
		table_print(table, format, 0, table_rows(table), out);
	table_free(table);
	return r;
}

static void json_answer(FILE *out, const struct mrc *mrc, const struct mrc_trace *trace,
			const size_t *order, size_t p)
{
	struct answer answer = find_answer(mrc, trace, order, p);

	fputs("{\"trace\": ", out);
	json_string(out, trace->path);
	fputs(", \"policy\": ", out);
	json_string(out, mrc->choices[p].label);
	fprintf(out, ", \"target\": %.10g, \"pages\": ", mrc->target);
	if (answer.kind == ANSWER_AT || answer.kind == ANSWER_AT_MOST)
		fprintf(out, "%.0f, \"bytes\": %.0f", answer.pages,
			answer.pages * (double)PAGE_BYTES);
	else
		fputs("null, \"bytes\": null", out);
	fprintf(out, ", \"at_most\": %s}", answer.kind == ANSWER_AT_MOST ? "true" : "false");
}

static int json_answers(const struct mrc *mrc, FILE *out)
{
	const char *comma = "\n  ";

	for (size_t t = 0; t < mrc->nr_traces && !isnan(mrc->target); t++) {
		const struct mrc_trace *trace = &mrc->traces[t];
		size_t *order = calloc(trace->nr_sizes + 1, sizeof(*order));

		if (!order)
			return -ENOMEM;
		mrc_sort_sizes(trace, order);
		for (size_t p = 0; p < mrc->nr_choices && trace->nr_sizes; p++) {
			fputs(comma, out);
			json_answer(out, mrc, trace, order, p);
			comma = ",\n  ";
		}
		free(order);
	}
	return 0;
}

static void json_traces(const struct mrc *mrc, FILE *out)
{
	for (size_t t = 0; t < mrc->nr_traces; t++) {
		fputs(t ? ",\n  {\"trace\": " : "\n  {\"trace\": ", out);
		json_string(out, mrc->traces[t].path);
		fprintf(out,
			", \"accesses\": %" PRIu64 ", \"unique_pages\": %u, \"window\": %" PRIu64
			"}",
			mrc->traces[t].accesses, mrc->traces[t].unique, mrc->traces[t].window);
	}
}

static int print_json(const struct mrc *mrc, FILE *out)
{
	int r;

	fputs("{\"foliage\": \"mrc\",\n\"command\": ", out);
	json_string(out, mrc->command);
	fprintf(out, ",\n\"rate\": %.6g,\n\"traces\": [", mrc->rate);
	json_traces(mrc, out);
	fputs("],\n\"curves\": ", out);
	r = print_cells(mrc, TABLE_JSON, out);
	fputs(",\n\"working_set\": ", out);
	if (!r)
		r = print_working_sets(mrc, 0, mrc->nr_traces, TABLE_JSON, out);
	fputs(",\n\"answers\": [", out);
	if (!r)
		r = json_answers(mrc, out);
	fputs("]}\n", out);
	return r;
}

int mrc_print(const struct mrc *mrc, enum table_format format, bool working_set, FILE *out)
{
	int r = 0;

	if (format == TABLE_JSON)
		return print_json(mrc, out);
	if (format == TABLE_CSV)
		return working_set ? print_working_sets(mrc, 0, mrc->nr_traces, format, out)
				   : print_cells(mrc, format, out);
	for (size_t i = 0; i < mrc->nr_traces && !r; i++) {
		if (mrc->traces[i].nr_sizes)
			r = print_people(mrc, i, working_set, out);
	}
	return r;
}

/* ---- charts ---- */

/* Points of one trace's charts: x and then one row of y a policy; the windows alike. */
struct drawing {
	double *x, *y, *wx, *wy;
	struct svg_series *series, ws;
	size_t *order;
	char *title, *ws_title;
};

static void drawing_free(struct drawing *d)
{
	free(d->x);
	free(d->y);
	free(d->wx);
	free(d->wy);
	free(d->series);
	free(d->order);
	free(d->title);
	free(d->ws_title);
}

static int drawing_alloc(struct drawing *d, const struct mrc *mrc, const struct mrc_trace *trace)
{
	d->x = calloc(trace->nr_sizes + 1, sizeof(*d->x));
	d->y = calloc(trace->nr_sizes * mrc->nr_choices + 1, sizeof(*d->y));
	d->wx = calloc(trace->nr_windows + 1, sizeof(*d->wx));
	d->wy = calloc(trace->nr_windows + 1, sizeof(*d->wy));
	d->series = calloc(mrc->nr_choices, sizeof(*d->series));
	d->order = calloc(trace->nr_sizes + 1, sizeof(*d->order));
	if (asprintf(&d->title, "Miss ratio by memory: %s", trace->path) < 0)
		d->title = NULL;
	if (asprintf(&d->ws_title, "Working set: %s", trace->path) < 0)
		d->ws_title = NULL;
	return d->x && d->y && d->wx && d->wy && d->series && d->order && d->title && d->ws_title
		       ? 0
		       : -ENOMEM;
}

static void draw(struct drawing *d, const struct mrc *mrc, const struct mrc_trace *trace,
		 struct svg_chart *charts)
{
	mrc_sort_sizes(trace, d->order);
	for (size_t s = 0; s < trace->nr_sizes; s++)
		d->x[s] = mib(trace->sizes[d->order[s]]);
	for (size_t p = 0; p < mrc->nr_choices; p++) {
		double *y = d->y + p * trace->nr_sizes;

		for (size_t s = 0; s < trace->nr_sizes; s++) {
			const struct mrc_cell *cell = cell_at(mrc, trace, d->order[s], p);

			y[s] = cell->done ? cell->miss_ratio : NAN;
		}
		d->series[p] = (struct svg_series){
			.name = mrc->choices[p].label, .x = d->x, .y = y, .n = trace->nr_sizes};
	}
	for (size_t w = 0; w < trace->nr_windows; w++) {
		d->wx[w] = (double)MIN((w + 1) * trace->window, trace->accesses);
		d->wy[w] = mib(trace->windows[w]);
	}
	d->ws = (struct svg_series){
		.name = "unique pages of a window", .x = d->wx, .y = d->wy, .n = trace->nr_windows};
	charts[0] = (struct svg_chart){.title = d->title,
				       .x_title = "memory (MiB)",
				       .y_title = "miss ratio (misses per access)",
				       .series = d->series,
				       .nr = mrc->nr_choices};
	charts[1] = (struct svg_chart){.title = d->ws_title,
				       .x_title = "end of the window (accesses since the start)",
				       .y_title = "working set (MiB)",
				       .series = &d->ws,
				       .nr = 1};
}

int mrc_print_svg(const struct mrc *mrc, FILE *out)
{
	struct drawing *drawings = calloc(mrc->nr_traces + 1, sizeof(*drawings));
	struct svg_chart *charts = calloc(2 * mrc->nr_traces + 1, sizeof(*charts));
	int r = drawings && charts ? 0 : -ENOMEM;
	size_t nr = 0;

	for (size_t t = 0; t < mrc->nr_traces && !r; t++) {
		if (!mrc->traces[t].nr_sizes)
			continue;
		r = drawing_alloc(&drawings[t], mrc, &mrc->traces[t]);
		if (!r)
			draw(&drawings[t], mrc, &mrc->traces[t], &charts[nr]);
		nr += 2;
	}
	if (!r) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
		svg_charts(out, charts, nr, true);
	}
	for (size_t t = 0; t < mrc->nr_traces && drawings; t++)
		drawing_free(&drawings[t]);
	free(drawings);
	free(charts);
	return r;
}
