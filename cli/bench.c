/* SPDX-License-Identifier: MIT
 *
 * foliage bench: what others measured, measured again, side by side.
 *
 * This file is the command line and the printing; bench_run.c runs suites, sensitivity.c asks what
 * their orders depend on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/bench_run.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "cli/sensitivity.h"
#include "cli/table.h"
#include "cli/verdict.h"
#include "workload/suite.h"

enum { THETAS_MAX = 16, RUNS_MAX = 1000, THREADS_MAX = 1024 };

struct request {
	const char *policies, *thetas, *format, *output, *set, *memory;
	uint64_t runs, threads;
	bool full, demo, no_timing, list, sensitivity, check_scale;
	/* Derived: */
	enum table_format table_format;
	double theta[THETAS_MAX];
	struct suite_options options;
	char *command; /* the command line, for those who find the results */
};

/* ---- the command line ---- */

static bool stopped(void)
{
	return cli_interrupted;
}

static int parse_thetas(struct request *request, struct err *err)
{
	char *copy = strdup(request->thetas), *rest = copy, *word;
	int r = copy ? 0 : err_set(err, -ENOMEM, "out of memory");

	while (!r && (word = strsep(&rest, ","))) {
		if (request->options.nr_thetas == THETAS_MAX)
			r = err_set(err, -EINVAL, "--theta: at most %d values", THETAS_MAX);
		else
			r = parse_real(word, "--theta",
				       &request->theta[request->options.nr_thetas++], err);
	}
	free(copy);
	return r;
}

static int parse_memory(struct request *request, struct err *err)
{
	struct size_list sizes = {0};
	int r = sizes_parse_memory(&sizes, request->memory, err);

	if (!r && sizes.nr != 1)
		r = err_set(err, -EINVAL, "--memory: one size, '%s' has %zu", request->memory,
			    sizes.nr);
	if (!r && sizes.items->percent)
		request->options.memory_part = sizes.items->value / 100;
	else if (!r)
		request->options.memory = (uint32_t)MIN(sizes.items->value, 1e9);
	sizes_free(&sizes);
	return r;
}

static int check_request(struct request *request, struct err *err)
{
	int r = parse_choice(request->format, "--format", table_formats, err);

	if (r < 0)
		return r;
	request->table_format = (enum table_format)r;
	if (request->runs < 1 || request->runs > RUNS_MAX)
		return err_set(err, -EINVAL, "--runs: must be between 1 and %d", RUNS_MAX);
	if (request->threads > THREADS_MAX)
		return err_set(err, -EINVAL, "--jobs: at most %d", THREADS_MAX);
	r = request->thetas ? parse_thetas(request, err) : 0;
	if (!r && request->memory)
		r = parse_memory(request, err);
	request->options.policies = request->policies;
	request->options.thetas = request->theta;
	request->options.full = request->full;
	request->options.demo = request->demo;
	request->options.check_scale = request->check_scale;
	request->options.timing = !request->no_timing;
	request->options.runs = (unsigned int)request->runs;
	request->options.stopped = stopped;
	return r ? r : outfile_check(request->output, err);
}

static int parse_request(int argc, char **argv, struct request *request, struct err *err)
{
	const struct option_spec specs[] = {
		{"policy", 'p', OPTION_TEXT, &request->policies},
		{"theta", 0, OPTION_TEXT, &request->thetas},
		{"full", 0, OPTION_FLAG, &request->full},
		{"demo", 0, OPTION_FLAG, &request->demo},
		{"jobs", 'j', OPTION_COUNT, &request->threads},
		{"runs", 0, OPTION_COUNT, &request->runs},
		{"format", 0, OPTION_TEXT, &request->format},
		{"no-timing", 0, OPTION_FLAG, &request->no_timing},
		{"output", 'o', OPTION_TEXT, &request->output},
		{"list", 0, OPTION_FLAG, &request->list},
		{"check-scale", 0, OPTION_FLAG, &request->check_scale},
		{"set", 0, OPTION_TEXT, &request->set},
		{"memory", 0, OPTION_TEXT, &request->memory},
		{"sensitivity", 0, OPTION_FLAG, &request->sensitivity},
	};
	int nr = options_parse(argc, argv, specs, ARRAY_SIZE(specs), err);
	int r = nr < 0 ? nr : check_request(request, err);

	return r ? r : nr;
}

/* ---- printing ---- */

enum {
	COL_SUITE,
	COL_CASE,
	COL_METRIC,
	COL_POLICY,
	COL_PUBLISHED,
	COL_MEASURED,
	COL_DEVIATION,
	NR_COLS
};

/* Numbers are texts here: their decimals differ from row to row. */
static const struct table_column columns[NR_COLS] = {
	[COL_SUITE] = {.key = "suite", .title = "suite", .kind = TABLE_TEXT},
	[COL_CASE] = {.key = "case", .title = "case", .kind = TABLE_TEXT},
	[COL_METRIC] = {.key = "metric", .title = "metric", .kind = TABLE_TEXT},
	[COL_POLICY] = {.key = "policy", .title = "policy", .kind = TABLE_TEXT},
	[COL_PUBLISHED] = {.key = "published", .title = "   published", .kind = TABLE_TEXT},
	[COL_MEASURED] = {.key = "measured", .title = "    measured", .kind = TABLE_TEXT},
	[COL_DEVIATION] = {.key = "deviation", .title = " deviation", .kind = TABLE_TEXT},
};

static int people_number(struct table *table, size_t column, double value, int decimals)
{
	char text[40], count[32];

	if (decimals == 0 && value >= 0 && value < 1e18)
		snprintf(text, sizeof(text), "%12s", count_text((uint64_t)(value + 0.5), count));
	else
		snprintf(text, sizeof(text), "%12.*f", decimals, value);
	return table_text(table, column, text);
}

static int csv_number(struct table *table, size_t column, double value, int decimals)
{
	char text[400];

	snprintf(text, sizeof(text), "%.*f", decimals ? decimals + 3 : 0, value);
	return table_text(table, column, text);
}

/* What was published is printed as it was. */
static int csv_published(struct table *table, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.10g", value);
	return table_text(table, COL_PUBLISHED, text);
}

static int fill_numbers(struct table *table, const struct suite_row *row, bool people)
{
	char text[40];
	double deviation;
	int r = 0;

	if (row->has_published)
		r = people ? people_number(table, COL_PUBLISHED, row->published, row->decimals)
			   : csv_published(table, row->published);
	if (!r)
		r = people ? people_number(table, COL_MEASURED, row->measured, row->decimals)
			   : csv_number(table, COL_MEASURED, row->measured, row->decimals);
	if (r || !suite_row_deviation(row, &deviation))
		return r;
	snprintf(text, sizeof(text), people ? "%+8.2f %%" : "%.6f",
		 people ? 100 * deviation : deviation);
	return table_text(table, COL_DEVIATION, text);
}

static int print_rows(const struct suite_report *report, const struct request *request, FILE *out)
{
	const bool people = request->table_format == TABLE_PEOPLE;
	struct table *table = table_create(columns, NR_COLS);
	int r = table ? 0 : -ENOMEM;

	for (size_t i = 0; i < report->nr_rows && !r; i++) {
		const struct suite_row *row = &report->rows[i];

		if (people && row->detail)
			continue;
		r = table_row(table);
		if (!r)
			r = table_text(table, COL_SUITE, row->suite);
		if (!r)
			r = table_text(table, COL_CASE, row->case_name);
		if (!r)
			r = table_text(table, COL_METRIC, row->metric);
		if (!r)
			r = table_text(table, COL_POLICY, row->policy);
		if (!r)
			r = fill_numbers(table, row, people);
	}
	if (!r)
		table_print(table, request->table_format, 0, table_rows(table), out);
	table_free(table);
	return r;
}

/* JSON has numbers, which the table's texts are not. */
static void print_json(const struct suite_report *report, const char *command, FILE *out)
{
	fputs("[\n", out);
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct suite_row *row = &report->rows[i];
		double deviation;

		fputs("  {\"suite\": ", out);
		json_string(out, row->suite);
		fputs(", \"case\": ", out);
		json_string(out, row->case_name);
		fputs(", \"metric\": ", out);
		json_string(out, row->metric);
		fputs(", \"policy\": ", out);
		json_string(out, row->policy);
		if (row->has_published)
			fprintf(out, ", \"published\": %.10g", row->published);
		else
			fputs(", \"published\": null", out);
		fprintf(out, ", \"measured\": %.*f", row->decimals ? row->decimals + 3 : 0,
			row->measured);
		if (suite_row_deviation(row, &deviation))
			fprintf(out, ", \"deviation\": %.6f", deviation);
		else
			fputs(", \"deviation\": null", out);
		fputs(", \"command\": ", out);
		json_string(out, command);
		fputc('}', out);
		fputs(i + 1 < report->nr_rows ? ",\n" : "\n", out);
	}
	fputs("]\n", out);
}

static int print_report(const struct suite_report *report, const struct request *request, FILE *out)
{
	if (request->table_format == TABLE_JSON) {
		print_json(report, request->command, out);
		return 0;
	}
	if (print_rows(report, request, out))
		return -ENOMEM;
	if (request->table_format != TABLE_PEOPLE)
		return 0;
	if (report->nr_notes)
		fputc('\n', out);
	for (size_t i = 0; i < report->nr_notes; i++)
		fprintf(out, "%s\n", report->notes[i]);
	return verdict_print(report, out);
}

/* Suites and their free parameters. */
static void print_list(FILE *out)
{
	for (int i = 0; suites[i]; i++) {
		fprintf(out, "%-16s %s\n", suites[i]->name, suites[i]->summary);
		for (size_t k = 0; k < suites[i]->nr_params; k++) {
			const struct suite_param *param = &suites[i]->params[k];

			fprintf(out, "    %-20s %10.10g  %s\n", param->name, param->value,
				param->source);
		}
	}
}

/* ---- the command ---- */

/* Everything that goes to the output, in memory: nothing is printed when something fails. */
static int bench_all(struct request *request, int nr, char **names, char **text, struct err *err)
{
	struct suite_report report = {0};
	struct suite **traces = NULL;
	size_t size;
	FILE *out = open_memstream(text, &size);
	int r = out ? 0 : err_set(err, -ENOMEM, "out of memory");

	if (!r && request->list) {
		print_list(out);
	} else if (!r && !nr) {
		r = err_set(err, -EINVAL, "bench: which suite? (see foliage bench --list)");
	} else if (!r && !(r = bench_traces(names, (size_t)nr, &traces, err))) {
		request->options.lenient = nr > 1 || !strcmp(names[0], "all");
		const struct bench_plan plan = {
			.names = names,
			.nr_names = (size_t)nr,
			.traces = traces,
			.options = &request->options,
			.set = request->set,
			.threads = (unsigned int)request->threads,
		};

		if (request->sensitivity)
			r = sensitivity_run(&plan, request->table_format, out, err);
		else
			r = bench_run(&plan, &report, err);
		if (!r && !request->sensitivity && print_report(&report, request, out))
			r = err_set(err, -ENOMEM, "out of memory");
	}
	if (out && fclose(out) && !r)
		r = err_set(err, -ENOMEM, "out of memory");
	suite_report_free(&report);
	bench_traces_free(traces, (size_t)nr);
	return r;
}

static int bench_main(int argc, char **argv)
{
	struct request request = {.format = "table", .runs = 1};
	struct err err = {""};
	char *text = NULL;
	int nr, r;

	request.command = cli_command_line(argc, argv);
	nr = request.command ? parse_request(argc, argv, &request, &err) : -ENOMEM;
	r = MIN(nr, 0);
	if (!r)
		r = bench_all(&request, nr, argv + 1, &text, &err);
	if (!r)
		r = outfile_write(request.output, text, &err);
	free(text);
	free(request.command);
	if (r)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-r));
	return cli_interrupted ? 130 : 0;
}

const struct command command_bench = {
	.name = "bench",
	.summary = "run what others measured again, side by side",
	.help = "usage: foliage bench SUITE|trace:FILE... [--policy NAME,...] [--theta T,...] "
		"[OPTION...]\n"
		"       foliage bench --list\n"
		"\n"
		"Runs workloads whose results are known, from published tables or from a booted "
		"kernel's\n"
		"counters, and prints both numbers and the deviation.\n"
		"\n"
		"SUITE is a name that --list knows, or all. Of several suites each runs those of "
		"the\n"
		"policies that it can run, and says which it left out.\n"
		"\n"
		"trace:FILE is a suite made of any trace, whose processes become tasks of the "
		"simulated "
		"machine;\n"
		"a recording by foliage record --mapped has private memory and times, too.\n"
		"\n"
		"What to run:\n"
		"  -p, --policy P,...  policies with their knobs: fg:tail_mode=min. For the kernel "
		"suites\n"
		"                      those of the kernel, by its name (fg-tail) or the engine's "
		"(fg);\n"
		"                      knobs go over those that imitate the kernel.\n"
		"                      all: every one that the suite can run. Default: those for "
		"which\n"
		"                      something was published\n"
		"  --theta T,...       only these skews of zipf (0.8, 0.9, 1.1, 1.2)\n"
		"  --full              fio-read: all 16 jobs in the whole room, not one in its "
		"share; fio through\n"
		"                      mmap: the published length; others: the modelled size\n"
		"  --demo              a part that takes seconds: of fio-read theta 0.8 and 0.9, "
		"of the kernel\n"
		"                      suites theta 0.9 at 64 MiB, seed 1\n"
		"  --runs N            means over N seeds (fio: over the first N of its 16 jobs), "
		"from three on\n"
		"                      with a 95 % confidence interval. The kernel suites have one "
		"sequence\n"
		"                      and take no notice.\n"
		"\n"
		"  --check-scale       fio-mmap, fio-tight: run the published length, and print "
		"what "
		"the shorter run\n"
		"                      of the default says beside it\n"
		"  --memory SIZE       recordings: memory of the machine, 64M, or 40% of what the "
		"run "
		"touches\n"
		"                      (default: see memory_part in --list)\n"
		"  --set NAME=VALUE,...  free parameters of workloads (see --list), for every "
		"suite "
		"that has them\n"
		"  --sensitivity       run each suite again with each of its free parameters "
		"halved "
		"and doubled,\n"
		"                      and report every order of two policies that flips: such an "
		"order is not\n"
		"                      supported by the suite\n"
		"\n"
		"Output:\n"
		"  --format F          table, csv or json; csv and json have rows that table "
		"leaves out\n"
		"  --no-timing         leave out times, so that equal runs print equal bytes\n"
		"  -j, --jobs N        so many tasks at once (default: one a processor); results "
		"do not\n"
		"                      depend on it\n"
		"  -o, --output FILE   write there; the file appears when it is whole\n"
		"\n"
		"Columns:\n"
		"  suite,case,metric,policy,published,measured,deviation\n"
		"  deviation           measured / published - 1\n"
		"  iops                from a model of two parameters fitted on clru's published "
		"row alone\n"
		"  refault_per_read_ratio  of two policies, where errors common to both cancel\n"
		"\n"
		"At the end of a table: suites by policies, better or worse than mglru by the "
		"first metric of\n"
		"each suite.\n"
		"\n"
		"Exit status:\n"
		"  0                   done, whatever the deviations\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"  130                 SIGINT: what has been counted is printed\n"
		"\n"
		"Examples:\n"
		"  foliage bench kernel-6.12\n"
		"  foliage bench fio-read --policy fg,fg:tail_mode=min --theta 0.8,0.9\n"
		"  foliage bench all --format csv --no-timing -o bench.csv\n",
	.run = bench_main,
};
