/* SPDX-License-Identifier: MIT
 *
 * foliage tune: search the knobs of a policy on development traces, and judge what was found on
 * others.
 *
 * A setting is one value for each knob that was asked for. It is measured on every (trace, size):
 * misses of the setting divided by those of the reference, which is the policy with its own
 * settings or the best of several policies, and the geometric mean of these ratios is what is to be
 * small. If all combinations fit the budget they are all tried; otherwise the search goes from knob
 * to knob, keeps the best value of each, and repeats until nothing gets better.
 *
 * What is best on the traces it was chosen on proves nothing, so the same file may not be on both
 * sides.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/jobs.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "cli/table.h"
#include "machine/room.h"
#include "trace/trace.h"

enum { MAX_KNOBS = 32, MAX_VALUES = 64, MAX_TRACES = 256, CHUNK = 65536, SETTING_BYTES = 512 };

struct axis {
	char name[64];
	char value[MAX_VALUES][32];
	size_t nr;
};

struct setting {
	uint8_t at[MAX_KNOBS]; /* index of each knob's value */
	double mean, worst;
	char worst_cell[200];
};

/* One (trace, size). */
struct cell {
	size_t trace;
	uint32_t pages;
	double reference; /* misses */
};

/* Traces of one side with their cells. */
struct side {
	const char *paths[MAX_TRACES];
	struct resolved resolved[MAX_TRACES];
	size_t nr_paths;
	struct cell *cells;
	size_t nr_cells;
};

struct tune {
	const char *policy, *knobs, *memory, *reference, *format;
	uint64_t budget, threads, limit;
	struct trace_options trace;
	struct size_list sizes;
	enum table_format table_format;
	struct axis axes[MAX_KNOBS];
	size_t nr_axes;
	struct side dev, val;
	struct setting *tried; /* [0]: the policy as it was named */
	size_t nr_tried;
};

/* Policies x cells, run in any order. */
struct work {
	const struct side *side;
	const struct policy_choice *choices;
	double *misses; /* [choice][cell] */
};

/* ---- measuring ---- */

static int run_one(void *ctx, size_t i)
{
	struct work *w = ctx;
	const struct cell *c = &w->side->cells[i % w->side->nr_cells];
	const struct resolved *t = &w->side->resolved[c->trace];
	struct foliage_policy_env env = {.room = c->pages,
					 .nr_ids = t->nr_ids,
					 .nr_accesses = t->n,
					 .seed = 1,
					 .next = t->next,
					 .counts = t->counts,
					 .scale = 1,
					 .order = t->order};
	struct foliage_stats stats;
	struct room *room;
	struct err err = {""};
	int r = room_open(&w->choices[i / w->side->nr_cells], &env, &room, &err);

	if (r)
		return r;
	for (uint64_t at = 0; at < t->n && !r; at += CHUNK) {
		size_t n = (size_t)MIN(t->n - at, (uint64_t)CHUNK);

		r = cli_interrupted ? -EINTR
				    : room_run(room, t->ids + at, t->ops ? t->ops + at : NULL, n);
	}
	room_stats(room, &stats);
	room_close(room);
	w->misses[i] = (double)stats.misses;
	return r;
}

/* Misses of each choice in each cell of a side. */
static int measure(const struct tune *tune, const struct side *side,
		   const struct policy_choice *choices, size_t nr, double *misses, struct err *err)
{
	struct work w = {.side = side, .choices = choices, .misses = misses};
	const struct jobs jobs = {.nr = nr * side->nr_cells,
				  .threads = (unsigned int)tune->threads,
				  .run = run_one,
				  .ctx = &w};
	int r = jobs_run(&jobs);

	if (!r && cli_interrupted)
		r = -EINTR;
	if (r && r != -EINTR)
		return err_set(err, r, "tune: %s", strerror(-r));
	return r;
}

/* "fgw:ticks=16" and a setting of the knobs make one policy text. */
static void setting_text(const struct tune *tune, const struct setting *s, char *text,
			 bool with_policy)
{
	size_t n = 0;

	text[0] = '\0';
	if (with_policy)
		n = (size_t)snprintf(text, SETTING_BYTES, "%s", tune->policy);
	for (size_t i = 0; i < tune->nr_axes && n < SETTING_BYTES; i++) {
		const char *between = i || !with_policy           ? ","
				      : strchr(tune->policy, ':') ? ","
								  : ":";

		n += (size_t)snprintf(text + n, SETTING_BYTES - n, "%s%s=%s", n ? between : "",
				      tune->axes[i].name, tune->axes[i].value[s->at[i]]);
	}
}

static void judge(const struct side *side, const double *misses, struct setting *s)
{
	double sum = 0;

	s->worst = 0;
	for (size_t i = 0; i < side->nr_cells; i++) {
		const struct cell *c = &side->cells[i];
		double ratio = MAX(misses[i], 1.0) / MAX(c->reference, 1.0);
		const char *name = strrchr(side->paths[c->trace], '/');

		sum += log(ratio);
		if (ratio <= s->worst)
			continue;
		s->worst = ratio;
		snprintf(s->worst_cell, sizeof(s->worst_cell), "%.150s at %u pages",
			 name ? name + 1 : side->paths[c->trace], c->pages);
	}
	s->mean = exp(sum / (double)side->nr_cells);
}

/* ---- searching ---- */

static struct setting *known(const struct tune *tune, const struct setting *s)
{
	for (size_t i = 1; i < tune->nr_tried; i++)
		if (!memcmp(tune->tried[i].at, s->at, sizeof(s->at)))
			return &tune->tried[i];
	return NULL;
}

/* Measure a list of settings that are not known yet, as far as the budget goes. */
static int try_all(struct tune *tune, const struct setting *wanted, size_t nr, struct err *err)
{
	struct policy_choice *choices = calloc(nr, sizeof(*choices));
	struct setting *fresh = calloc(nr, sizeof(*fresh));
	double *misses = calloc(nr * tune->dev.nr_cells, sizeof(*misses));
	char text[SETTING_BYTES];
	size_t n = 0;
	int r = choices && fresh && misses ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (size_t i = 0; i < nr && !r && tune->nr_tried + n <= tune->budget; i++) {
		if (known(tune, &wanted[i]))
			continue;
		setting_text(tune, &wanted[i], text, true);
		r = policy_parse(text, &choices[n], err);
		fresh[n] = wanted[i];
		n += !r;
	}
	if (!r && n)
		r = measure(tune, &tune->dev, choices, n, misses, err);
	for (size_t i = 0; i < n; i++) {
		judge(&tune->dev, misses + i * tune->dev.nr_cells, &fresh[i]);
		if (!r)
			tune->tried[tune->nr_tried++] = fresh[i];
		policy_choice_free(&choices[i]);
	}
	free(choices);
	free(fresh);
	free(misses);
	return r;
}

static const struct setting *best_of(const struct tune *tune)
{
	const struct setting *best = NULL;

	for (size_t i = 1; i < tune->nr_tried; i++)
		if (!best || tune->tried[i].mean < best->mean)
			best = &tune->tried[i];
	return best;
}

static double combinations(const struct tune *tune)
{
	double n = 1;

	for (size_t i = 0; i < tune->nr_axes; i++)
		n *= (double)tune->axes[i].nr;
	return n;
}

static int search_grid(struct tune *tune, size_t nr, struct err *err)
{
	struct setting *all = calloc(nr, sizeof(*all));
	int r;

	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		size_t rest = i;

		for (size_t k = 0; k < tune->nr_axes; k++) {
			all[i].at[k] = (uint8_t)(rest % tune->axes[k].nr);
			rest /= tune->axes[k].nr;
		}
	}
	r = try_all(tune, all, nr, err);
	free(all);
	return r;
}

/* One knob after another, the others at the best setting known. */
static int search_descent(struct tune *tune, struct err *err)
{
	struct setting line[MAX_VALUES], at = {0};
	size_t still = 0;
	int r;

	for (size_t k = 0; k < tune->nr_axes; k++)
		at.at[k] = (uint8_t)(tune->axes[k].nr / 2);
	r = try_all(tune, &at, 1, err);
	for (size_t k = 0; !r && still < tune->nr_axes && tune->nr_tried <= tune->budget;
	     k = (k + 1) % tune->nr_axes) {
		double before = best_of(tune)->mean;

		for (size_t v = 0; v < tune->axes[k].nr; v++) {
			line[v] = *best_of(tune);
			line[v].at[k] = (uint8_t)v;
		}
		r = try_all(tune, line, tune->axes[k].nr, err);
		still = best_of(tune)->mean < before ? 0 : still + 1;
	}
	return r;
}

/* ---- what to search ---- */

/* "a|b|c" */
static int parse_words(struct axis *axis, const char *text, struct err *err)
{
	for (const char *at = text; axis->nr < MAX_VALUES; at++) {
		size_t n = strcspn(at, "|");

		if (!n || n >= sizeof(axis->value[0]))
			return err_set(err, -EINVAL, "--knobs: %s has an empty or too long value",
				       axis->name);
		snprintf(axis->value[axis->nr++], sizeof(axis->value[0]), "%.*s", (int)n, at);
		at += n;
		if (!*at)
			return 0;
	}
	return err_set(err, -EINVAL, "--knobs: %s has more than %d values", axis->name, MAX_VALUES);
}

/* "1..8", every whole number, or "1..8/4", so many at equal distances. `text` is written to. */
static int parse_range(struct axis *axis, char *text, struct err *err)
{
	char *to_text = strstr(text, ".."), *slash = strchr(to_text, '/');
	double from, to;
	uint64_t steps = 0;
	int r;

	*to_text = '\0';
	if (slash)
		*slash = '\0';
	r = parse_real(text, "--knobs", &from, err);
	if (!r)
		r = parse_real(to_text + 2, "--knobs", &to, err);
	if (!r && slash)
		r = parse_count(slash + 1, "--knobs", &steps, err);
	if (r)
		return r;
	if (!slash && to > from && to - from < MAX_VALUES)
		steps = (uint64_t)(to - from) + 1;
	if (steps < 2 || steps > MAX_VALUES || to <= from)
		return err_set(err, -EINVAL, "--knobs: %s is no range of 2 to %d values",
			       axis->name, MAX_VALUES);
	for (uint64_t i = 0; i < steps; i++) {
		double value = slash ? from + (to - from) * (double)i / (double)(steps - 1)
				     : from + (double)i;

		snprintf(axis->value[axis->nr++], sizeof(axis->value[0]), "%.10g", value);
	}
	return 0;
}

static int parse_knobs(struct tune *tune, struct err *err)
{
	char *copy = strdup(tune->knobs), *save = NULL;
	int r = copy ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (char *part = r ? NULL : strtok_r(copy, ",", &save); part && !r;
	     part = strtok_r(NULL, ",", &save)) {
		struct axis *axis = &tune->axes[tune->nr_axes];
		char *equals = strchr(part, '=');

		if (tune->nr_axes == MAX_KNOBS) {
			r = err_set(err, -EINVAL, "--knobs: more than %d", MAX_KNOBS);
		} else if (!equals || equals == part ||
			   (size_t)(equals - part) >= sizeof(axis->name)) {
			r = err_set(err, -EINVAL, "--knobs: '%.60s' is not knob=values", part);
		} else {
			snprintf(axis->name, sizeof(axis->name), "%.*s", (int)(equals - part),
				 part);
			r = strstr(equals, "..") ? parse_range(axis, equals + 1, err)
						 : parse_words(axis, equals + 1, err);
			tune->nr_axes++;
		}
	}
	free(copy);
	if (!r && !tune->nr_axes)
		r = err_set(err, -EINVAL, "tune: no knob to search: --knobs a=1..8,b=x|y");
	return r;
}

/* Every value must be one that the knob takes, before anything is read. */
static int check_values(const struct tune *tune, struct err *err)
{
	struct setting s = {0};
	char text[SETTING_BYTES];
	int r = 0;

	for (size_t k = 0; k < tune->nr_axes && !r; k++) {
		for (size_t v = 0; v < tune->axes[k].nr && !r; v++) {
			struct policy_choice choice;

			s.at[k] = (uint8_t)v;
			setting_text(tune, &s, text, true);
			if (strlen(text) >= sizeof(choice.label))
				return err_set(err, -EINVAL, "--knobs: too long a setting: %.100s",
					       text);
			r = policy_parse(text, &choice, err);
			if (!r)
				policy_choice_free(&choice);
		}
	}
	return r;
}

/* ---- traces ---- */

static int check_sides(const struct tune *tune, struct err *err)
{
	for (size_t i = 0; i < tune->dev.nr_paths; i++)
		for (size_t j = 0; j < tune->val.nr_paths; j++)
			if (outfile_is_same(tune->dev.paths[i], tune->val.paths[j]))
				return err_set(err, -EINVAL,
					       "%s: searched on and validated on is the same file",
					       tune->val.paths[j]);
	return 0;
}

static bool going(void *ctx, uint64_t accesses)
{
	(void)ctx;
	(void)accesses;
	return !cli_interrupted;
}

static int add_cells(const struct tune *tune, struct side *side, size_t t, struct err *err)
{
	uint32_t *pages;
	size_t nr;
	struct err why;
	struct cell *cells;
	int r = sizes_resolve(&tune->sizes, side->resolved[t].nr_ids, &pages, &nr, &why);

	if (r)
		return err_set(err, r, "%s: %s", side->paths[t], why.text);
	cells = reallocarray(side->cells, side->nr_cells + nr, sizeof(*cells));
	if (cells) {
		side->cells = cells;
		for (size_t i = 0; i < nr; i++)
			side->cells[side->nr_cells++] =
				(struct cell){.trace = t, .pages = pages[i]};
	}
	free(pages);
	return cells ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int load(const struct tune *tune, struct side *side, struct err *err)
{
	for (size_t t = 0; t < side->nr_paths; t++) {
		int r = trace_resolve(&side->paths[t], 1, &tune->trace, tune->limit, going, NULL,
				      &side->resolved[t], err);

		if (!r &&
		    (resolved_next(&side->resolved[t]) || resolved_counts(&side->resolved[t]) ||
		     (side->resolved[t].ops && resolved_order(&side->resolved[t]))))
			r = err_set(err, -ENOMEM, "out of memory");
		if (!r)
			r = add_cells(tune, side, t, err);
		if (r)
			return r;
	}
	return 0;
}

/* The yardstick of each cell: the fewest misses of any reference policy. */
static int set_reference(const struct tune *tune, struct side *side, struct err *err)
{
	struct policy_choice *choices;
	size_t nr;
	double *misses;
	int r = policy_parse_list(tune->reference, &choices, &nr, err);

	if (r)
		return r;
	misses = calloc(nr * side->nr_cells, sizeof(*misses));
	r = misses ? measure(tune, side, choices, nr, misses, err)
		   : err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < side->nr_cells && !r; i++) {
		side->cells[i].reference = misses[i];
		for (size_t p = 1; p < nr; p++)
			side->cells[i].reference =
				MIN(side->cells[i].reference, misses[p * side->nr_cells + i]);
	}
	free(misses);
	for (size_t p = 0; p < nr; p++)
		policy_choice_free(&choices[p]);
	free(choices);
	return r;
}

static void side_free(struct side *side)
{
	for (size_t i = 0; i < side->nr_paths; i++)
		resolved_free(&side->resolved[i]);
	free(side->cells);
}

/* ---- results ---- */

enum {
	COL_SETTING,
	COL_MEAN,
	COL_WORST,
	COL_CELL,
	COL_VAL_MEAN,
	COL_VAL_WORST,
	COL_VAL_CELL,
	NR_COLS
};

static const struct table_column columns[NR_COLS] = {
	[COL_SETTING] = {.key = "setting", .title = "setting", .kind = TABLE_TEXT},
	[COL_MEAN] =
		{.key = "mean", .title = "mean", .kind = TABLE_REAL, .decimals = 4, .precise = 6},
	[COL_WORST] =
		{.key = "worst", .title = "worst", .kind = TABLE_REAL, .decimals = 4, .precise = 6},
	[COL_CELL] = {.key = "worst_cell", .title = "worst cell", .kind = TABLE_TEXT},
	[COL_VAL_MEAN] = {.key = "validated_mean",
			  .title = "validated",
			  .kind = TABLE_REAL,
			  .decimals = 4,
			  .precise = 6},
	[COL_VAL_WORST] = {.key = "validated_worst",
			   .title = "worst there",
			   .kind = TABLE_REAL,
			   .decimals = 4,
			   .precise = 6},
	[COL_VAL_CELL] = {.key = "validated_worst_cell",
			  .title = "worst cell there",
			  .kind = TABLE_TEXT},
};

static int by_mean(const void *a, const void *b)
{
	const struct setting *x = a, *y = b;

	return (x->mean > y->mean) - (x->mean < y->mean);
}

/* The policy as named, and the best found, on the validation traces. */
static int validate(const struct tune *tune, struct setting out[2], struct err *err)
{
	struct policy_choice choices[2] = {{0}};
	double *misses = calloc(2 * tune->val.nr_cells, sizeof(*misses));
	char text[SETTING_BYTES];
	int r = misses ? policy_parse(tune->policy, &choices[0], err)
		       : err_set(err, -ENOMEM, "out of memory");

	setting_text(tune, best_of(tune), text, true);
	if (!r)
		r = policy_parse(text, &choices[1], err);
	if (!r)
		r = measure(tune, &tune->val, choices, 2, misses, err);
	for (int i = 0; i < 2; i++) {
		if (!r)
			judge(&tune->val, misses + (size_t)i * tune->val.nr_cells, &out[i]);
		policy_choice_free(&choices[i]);
	}
	free(misses);
	return r;
}

static int add_row(struct table *table, const char *text, const struct setting *s,
		   const struct setting *val)
{
	int r = table_row(table);

	if (r)
		return r;
	r |= table_text(table, COL_SETTING, text);
	r |= table_real(table, COL_MEAN, s->mean);
	r |= table_real(table, COL_WORST, s->worst);
	r |= table_text(table, COL_CELL, s->worst_cell);
	if (!val)
		return r;
	r |= table_real(table, COL_VAL_MEAN, val->mean);
	r |= table_real(table, COL_VAL_WORST, val->worst);
	return r | table_text(table, COL_VAL_CELL, val->worst_cell);
}

static int report(struct tune *tune, struct setting *val, struct err *err)
{
	struct table *table = table_create(columns, NR_COLS);
	char text[SETTING_BYTES];
	int r = table ? 0 : -ENOMEM;

	/* Best first, below the policy as it was named. */
	qsort(tune->tried + 1, tune->nr_tried - 1, sizeof(*tune->tried), by_mean);
	if (!r)
		r = add_row(table, tune->policy, &tune->tried[0], val);
	for (size_t i = 1; i < tune->nr_tried && !r; i++) {
		setting_text(tune, &tune->tried[i], text, false);
		r = add_row(table, text, &tune->tried[i], val && i == 1 ? &val[1] : NULL);
	}
	if (!r && tune->table_format == TABLE_PEOPLE)
		printf("misses as a multiple of %s; %zu settings of %.0f on %zu cells\n\n",
		       tune->reference, tune->nr_tried - 1, combinations(tune), tune->dev.nr_cells);
	if (!r)
		table_print(table, tune->table_format, 0, table_rows(table), stdout);
	table_free(table);
	return r ? err_set(err, -ENOMEM, "out of memory") : 0;
}

/* ---- the command line ---- */

/* Operands up to --validate are searched on, those behind it are validated on. */
static int parse_request(struct tune *tune, int argc, char **argv, struct err *err)
{
	const char *jobs = NULL;
	const struct option_spec specs[] = {
		{"policy", 'p', OPTION_TEXT, &tune->policy},
		{"knobs", 'k', OPTION_TEXT, &tune->knobs},
		{"memory", 0, OPTION_TEXT, &tune->memory},
		{"reference", 0, OPTION_TEXT, &tune->reference},
		{"budget", 0, OPTION_COUNT, &tune->budget},
		{"limit", 0, OPTION_COUNT, &tune->limit},
		{"jobs", 'j', OPTION_TEXT, &jobs},
		{"objects", 0, OPTION_FLAG, &tune->trace.objects},
		{"trace-format", 0, OPTION_TEXT, &tune->trace.format},
		{"format", 0, OPTION_TEXT, &tune->format},
	};
	struct side *sides[2] = {&tune->dev, &tune->val};
	int split = argc;

	for (int i = argc - 1; i > 0; i--)
		if (!strcmp(argv[i], "--validate"))
			split = i;
	for (int s = 0; s < 2 && !(s && split == argc); s++) {
		char **args = s ? argv + split : argv;
		int nr = options_parse(s ? argc - split : split, args, specs, ARRAY_SIZE(specs),
				       err);

		if (nr < 0)
			return nr;
		if (nr > MAX_TRACES)
			return err_set(err, -EINVAL, "tune: more than %d traces", MAX_TRACES);
		for (int i = 0; i < nr; i++)
			sides[s]->paths[sides[s]->nr_paths++] = args[i + 1];
	}
	if (!tune->dev.nr_paths)
		return err_set(err, -EINVAL, "tune: no trace (foliage help tune)");
	if (split < argc && !tune->val.nr_paths)
		return err_set(err, -EINVAL, "--validate: no trace");
	return jobs ? parse_count(jobs, "--jobs", &tune->threads, err) : 0;
}

static int check_request(struct tune *tune, struct err *err)
{
	int r = parse_choice(tune->format, "--format", table_formats, err);

	if (r < 0)
		return r;
	tune->table_format = (enum table_format)r;
	if (!tune->knobs)
		return err_set(err, -EINVAL, "tune: no knob to search: --knobs a=1..8,b=x|y");
	if (!tune->budget || tune->budget > 100000)
		return err_set(err, -EINVAL, "--budget: must be 1 .. 100000");
	if (tune->threads > 1024)
		return err_set(err, -EINVAL, "--jobs: at most 1024");
	if (!tune->reference)
		tune->reference = tune->policy;
	r = check_sides(tune, err);
	if (!r)
		r = parse_knobs(tune, err);
	if (!r)
		r = check_values(tune, err);
	return r ? r : sizes_parse_memory(&tune->sizes, tune->memory, err);
}

static int start(struct tune *tune, struct err *err)
{
	struct policy_choice choice = {0};
	double *misses;
	int r = load(tune, &tune->dev, err);

	if (!r)
		r = load(tune, &tune->val, err);
	if (!r)
		r = set_reference(tune, &tune->dev, err);
	if (!r && tune->val.nr_paths)
		r = set_reference(tune, &tune->val, err);
	if (r)
		return r;
	tune->tried = calloc(tune->budget + 2, sizeof(*tune->tried));
	misses = calloc(tune->dev.nr_cells, sizeof(*misses));
	r = tune->tried && misses ? policy_parse(tune->policy, &choice, err)
				  : err_set(err, -ENOMEM, "out of memory");
	if (!r)
		r = measure(tune, &tune->dev, &choice, 1, misses, err);
	if (!r)
		judge(&tune->dev, misses, &tune->tried[tune->nr_tried++]);
	policy_choice_free(&choice);
	free(misses);
	return r;
}

static int search(struct tune *tune, struct err *err)
{
	int r = combinations(tune) <= (double)tune->budget
			? search_grid(tune, (size_t)combinations(tune), err)
			: search_descent(tune, err);

	/* What was finished before SIGINT is worth reporting. */
	return r == -EINTR && tune->nr_tried > 1 ? 0 : r;
}

static int tune_main(int argc, char **argv)
{
	struct tune *tune = calloc(1, sizeof(*tune));
	struct setting val[2] = {{{0}, 0, 0, ""}};
	struct err err = {""};
	bool validated = false;
	int r = tune ? 0 : -ENOMEM;

	if (!r) {
		tune->policy = "fgw";
		tune->memory = "1%,10%,40%";
		tune->format = "table";
		tune->budget = 64;
		tune->threads = 1;
		r = parse_request(tune, argc, argv, &err);
	}
	if (!r)
		r = check_request(tune, &err);
	if (!r)
		r = start(tune, &err);
	if (!r)
		r = search(tune, &err);
	if (!r && tune->val.nr_paths && !cli_interrupted) {
		r = validate(tune, val, &err);
		validated = !r;
		r = r == -EINTR ? 0 : r;
	}
	if (!r)
		r = report(tune, validated ? val : NULL, &err);
	if (tune) {
		side_free(&tune->dev);
		side_free(&tune->val);
		sizes_free(&tune->sizes);
		free(tune->tried);
		free(tune);
	}
	if (r && cli_interrupted)
		return 130;
	if (r)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-r));
	return cli_interrupted ? 130 : 0;
}

const struct command command_tune = {
	.name = "tune",
	.summary = "search the knobs of a policy on some traces, validate on others",
	.help = "usage: foliage tune TRACE... --policy NAME --knobs A=VALUES,... [OPTION...]\n"
		"                    [--validate TRACE...]\n"
		"\n"
		"Replays development traces with many settings of a policy's knobs and prints "
		"them, best\n"
		"first: the geometric mean of misses as multiples of the reference's over all "
		"traces and\n"
		"sizes, and the worst of these cells. The best setting, and the policy as it was "
		"named,\n"
		"are then run on the traces behind --validate, which must be other files.\n"
		"\n"
		"Options:\n"
		"  -p, --policy P      a name as in `foliage policies`, knobs that stay: "
		"fgw:gens=16\n"
		"  -k, --knobs K,...   knob=1..8 (whole numbers), knob=0.5..1/6 (six values at "
		"equal\n"
		"                      distances), knob=a|b|c\n"
		"  --memory S,S,...    sizes of rooms, as for replay (default 1%,10%,40%)\n"
		"  --reference P,...   measure against the best of these policies in each cell\n"
		"                      (default: the policy as it was named)\n"
		"  --budget N          settings to try (default 64). If all combinations fit, all "
		"are\n"
		"                      tried; otherwise one knob is varied after another, from the "
		"best\n"
		"                      setting so far, until nothing gets better.\n"
		"  --limit N           read at most N accesses of each trace\n"
		"  --objects, --trace-format F\n"
		"                      as for replay\n"
		"  -j, --jobs N        so many replays at once (default 1, 0: one a processor)\n"
		"  --format F          table, csv or json\n"
		"  --validate TRACE... everything behind it is validated on\n"
		"\n"
		"Exit status:\n"
		"  0                   done\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"  130                 SIGINT: what was tried until then is printed\n"
		"\n"
		"Examples:\n"
		"  foliage tune a.zst b.zst --policy fgw --knobs gate=0.8..1.4/4,step=1|2|4 "
		"--validate "
		"c.zst\n",
	.run = tune_main,
};
