/* SPDX-License-Identifier: MIT
 *
 * The compiled-in tables and what the suites make of them before any policy runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "workload/csv.h"
#include "workload/data.h"
#include "workload/fio_read.h"
#include "workload/interval.h"
#include "workload/kernel_compare.h"
#include "workload/published.h"

static void csv_cuts(void **state)
{
	static const char text[] = "a,b,c\n1,,x\n\n-2.5,7,y";
	struct err err = {""};
	struct csv csv;
	double value = 0;

	(void)state;
	assert_int_equal(csv_parse("t", text, strlen(text), &csv, &err), 0);
	assert_int_equal(csv.nr_rows, 2);
	assert_int_equal(csv_column(&csv, "c"), 2);
	assert_int_equal(csv_column(&csv, "d"), -1);
	assert_string_equal(csv_text(&csv, 1, 2), "y");
	assert_null(csv_text(&csv, 1, -1));
	assert_true(csv_number(&csv, 1, 0, &value));
	assert_true(value == -2.5);
	assert_false(csv_number(&csv, 0, 1, &value)); /* empty */
	assert_false(csv_number(&csv, 0, 2, &value)); /* no number */
	csv_free(&csv);
}

static void csv_refuses(void **state)
{
	struct err err = {""};
	struct csv csv;

	(void)state;
	assert_int_equal(csv_parse("t", "", 0, &csv, &err), -EILSEQ);
	assert_int_equal(csv_parse("t", "\n1,2\n", 5, &csv, &err), -EILSEQ);
	assert_int_equal(csv_parse("t", "a,b\n1,2\n3\n", 10, &csv, &err), -EILSEQ);
	assert_non_null(strstr(err.text, "t: row 2"));
	assert_int_equal(csv_parse("t", "a,b\n1,2,3\n", 10, &csv, &err), -EILSEQ);
}

/* What is compiled in is what lies in data/, byte for byte. */
static void embedded(void **state)
{
	static const struct {
		const char *path, *text;
	} files[] = {
		{FOLIAGE_SOURCE_DIR "/data/published.csv", data_published},
		{FOLIAGE_SOURCE_DIR "/data/kernel-6.12.csv", data_kernel_612},
		{FOLIAGE_SOURCE_DIR "/data/kernel-newer.csv", data_kernel_newer},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		FILE *f = fopen(files[i].path, "r");
		size_t at = 0;
		int c;

		assert_non_null(f);
		while ((c = getc(f)) != EOF)
			assert_int_equal(c, (unsigned char)files[i].text[at++]);
		fclose(f);
		assert_int_equal(files[i].text[at], 0);
	}
}

static void published_values(void **state)
{
	struct err err = {""};
	struct published p;
	double value = 0;

	(void)state;
	assert_int_equal(published_load(&p, &err), 0);
	assert_true(published_find(&p, "fio-read", "16G/1.1", "refault_per_read", "fg", &value));
	assert_true(value == 0.03065);
	assert_true(published_find(&p, "fio-mmap", "16G/0.8", "iops", "clru", &value));
	assert_true(value == 1521315);
	assert_false(published_find(&p, "fio-read", "16G/1.1", "refault_per_read", "lru", &value));
	assert_false(published_find(&p, "fio-read", "16G/1.0", "iops", "fg", &value));
	published_free(&p);
}

static const struct kernel_run *find_run(const struct kernel_run *runs, size_t nr,
					 const char *policy, double theta, uint64_t seed,
					 uint64_t stat_every, uint32_t limit)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(runs[i].policy, policy) && fabs(runs[i].theta - theta) < 1e-9 &&
		    runs[i].seed == seed && runs[i].stat_every == stat_every &&
		    runs[i].limit == limit)
			return &runs[i];
	}
	fail_msg("no run of %s at %g", policy, theta);
	return NULL;
}

/* The room is the largest number of file pages of the run's windows. */
static void kernel_runs(void **state)
{
	const struct kernel_run *run;
	struct kernel_run *runs;
	struct err err = {""};
	size_t nr;

	(void)state;
	assert_int_equal(kernel_runs_load(&kernel_table_612, &runs, &nr, &err), 0);
	assert_int_equal(nr, 12);
	run = find_run(runs, nr, "mglru-6.12", 0.9, 1, 1000000, 16384);
	assert_int_equal(run->room, 16201);
	assert_int_equal(run->npages, 40960);
	assert_int_equal(run->nr_windows, 6);
	assert_string_equal(run->windows[0].phase, "warm");
	assert_true(run->windows[1].kernel[KERNEL_REFAULTS] == 160276);
	assert_true(run->windows[1].kernel[KERNEL_RESTORE] == 1291);
	assert_true(isnan(run->windows[1].engine[KERNEL_REFAULTS]));
	run = find_run(runs, nr, "clru-6.12", 1.2, 1, 2000, 16384);
	assert_int_equal(run->room, 16117);
	assert_non_null(strstr(run->engine, "flush_every=2000"));
	run = find_run(runs, nr, "clru-6.12", 1.2, 1, 1000000, 16384);
	assert_null(strstr(run->engine, "flush_every"));
	free(runs);
}

/* The room is the limit minus the median of what else the cgroup held. */
static void newer_kernel_runs(void **state)
{
	const struct kernel_run *run;
	struct kernel_run *runs;
	struct err err = {""};
	size_t nr;

	(void)state;
	assert_int_equal(kernel_runs_load(&kernel_table_newer, &runs, &nr, &err), 0);
	assert_int_equal(nr, 48);
	run = find_run(runs, nr, "mglru", 0.8, 1, 0, 16384);
	assert_int_equal(run->room, 16384 - 172);
	assert_string_equal(run->engine, "mglru:memcg_abort=0");
	assert_true(isnan(run->windows[1].kernel[KERNEL_ACTIVATE]));
	run = find_run(runs, nr, "fg-min-abort", 0.8, 1, 0, 16384);
	assert_string_equal(run->engine, "fg:tail_mode=min,memcg_abort=1");
	run = find_run(runs, nr, "fg-tail", 1.1, 3, 0, 16384);
	assert_string_equal(run->engine, "fg:tail_mode=tail,memcg_abort=0");
	run = find_run(runs, nr, "mglru-6.12", 0.9, 1, 0, 65536);
	assert_int_equal(run->npages, 163840);
	assert_int_equal(run->nr_windows, 4);
	free(runs);
}

static void sums_are_of_measured_windows(void **state)
{
	struct kernel_run run = {.nr_windows = 3, .done = 3};
	double kernel, engine;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		run.windows[i].kernel[KERNEL_PGSCAN] = (double)(10 + i);
		run.windows[i].engine[KERNEL_PGSCAN] = (double)(20 + i);
	}
	kernel_run_sum(&run, KERNEL_PGSCAN, &kernel, &engine);
	assert_true(kernel == 11 + 12);
	assert_true(engine == 21 + 22);
}

/* The published rate times 45 s and 645 s, of a sixteenth of the jobs; policies without a row
 * borrow clru's. */
static void fio_read_lengths(void **state)
{
	const struct foliage_policy fg = {.name = "fg"}, other = {.name = "other"};
	const struct policy_choice choices[] = {{.policy = &fg}, {.policy = &other}};
	struct fio_read_cell cell = {.policy = &choices[0]};
	struct err err = {""};
	struct published p;

	(void)state;
	assert_int_equal(published_load(&p, &err), 0);
	assert_int_equal(fio_read_plan(&p, 0.8, 1, &cell), 0);
	assert_int_equal(cell.ramp, 449714u * 45 / 16);
	assert_int_equal(cell.total, 449714u * 645 / 16);
	assert_int_equal(cell.flush, 449714u * 2 / 16);
	assert_int_equal(fio_read_plan(&p, 1.2, 16, &cell), 0);
	assert_int_equal(cell.total, 5066901u * UINT64_C(645));
	cell.policy = &choices[1];
	assert_int_equal(fio_read_plan(&p, 0.8, 1, &cell), 0);
	assert_int_equal(cell.total, 397572u * 645 / 16);
	assert_int_equal(fio_read_plan(&p, 0.7, 1, &cell), -ENOENT);
	published_free(&p);
}

struct flush_knobs {
	uint32_t frozen, flush_every;
};

/* What the last room of the policy below was opened with. */
static struct flush_knobs seen;
static double seen_scale;
static uint32_t seen_room;

static int record_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	memcpy(&seen, knobs, sizeof(seen));
	seen_scale = env->scale;
	seen_room = env->room;
	*state = &seen;
	return 0;
}

static void record_destroy(void *state)
{
	assert_ptr_equal(state, &seen);
}

static bool record_access(void *state, uint32_t id, uint64_t now)
{
	(void)state;
	(void)now;
	assert_true(id < FIO_READ_BLOCKS);
	return false;
}

/* Two seconds of the published rate between flushes, unless the user said otherwise. */
static void fio_read_sets_time(void **state)
{
	static const struct foliage_knob knobs[] = {
		{"frozen", "", FOLIAGE_KNOB_BOOL, offsetof(struct flush_knobs, frozen), 0, 0, 1,
		 NULL},
		{"flush_every", "", FOLIAGE_KNOB_UINT, offsetof(struct flush_knobs, flush_every), 7,
		 0, 4294967295.0, NULL},
		{NULL, NULL, FOLIAGE_KNOB_BOOL, 0, 0, 0, 0, NULL},
	};
	const struct foliage_policy policy = {
		.abi = FOLIAGE_POLICY_ABI,
		.name = "record",
		.knobs = knobs,
		.knobs_size = sizeof(struct flush_knobs),
		.create = record_create,
		.destroy = record_destroy,
		.access = record_access,
	};
	struct flush_knobs defaults = {0, 7};
	struct policy_choice choice = {.policy = &policy, .knobs = &defaults, .label = "record"};
	struct fio_read_cell cell = {.policy = &choice, .ramp = 400, .total = 1000, .flush = 1234};
	struct err err = {""};

	(void)state;
	assert_int_equal(fio_read_run(0.8, 0, 1, &cell, 1, NULL, &err), 0);
	assert_int_equal(seen.frozen, 1);
	assert_int_equal(seen.flush_every, 1234);
	assert_int_equal(defaults.frozen, 0);
	assert_true(seen_scale == 16);
	assert_int_equal(seen_room, 262144);
	assert_int_equal(cell.done, 1000);
	assert_int_equal(cell.accesses, 600);
	assert_true(cell.refaults > 0 && cell.refaults < 600);

	cell.done = 0;
	strcpy(choice.label, "record:frozen=0");
	assert_int_equal(fio_read_run(0.8, 0, 1, &cell, 1, NULL, &err), 0);
	assert_int_equal(seen.frozen, 0);
	assert_int_equal(seen.flush_every, 7);
}

static void model_fits_what_it_is(void **state)
{
	const double refaults[] = {0.2, 0.1, 0.05, 0.01};
	double iops[4];
	struct iops_model model;

	(void)state;
	for (int i = 0; i < 4; i++)
		iops[i] = 1 / (50e-9 + refaults[i] * 10e-6);
	assert_int_equal(iops_model_fit(&model, refaults, iops, 4), 0);
	assert_true(fabs(model.hit - 50e-9) < 1e-15);
	assert_true(fabs(model.device - 10e-6) < 1e-13);
	assert_true(fabs(iops_model_predict(&model, 0.1) / iops[1] - 1) < 1e-9);
	assert_int_equal(iops_model_fit(&model, refaults, iops, 1), -EINVAL);
}

static void deviations(void **state)
{
	struct suite_row row = {.published = 200, .measured = 201, .has_published = true};
	double deviation = 0;

	(void)state;
	assert_true(suite_row_deviation(&row, &deviation));
	assert_true(fabs(deviation - 0.005) < 1e-12);
	row.published = 0;
	assert_false(suite_row_deviation(&row, &deviation));
	row.published = 200;
	row.has_published = false;
	assert_false(suite_row_deviation(&row, &deviation));
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, variance 32 / 7, t of 7 degrees 2.365. */
static void intervals(void **state)
{
	static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct interval i = {0};

	(void)state;
	assert_true(interval_half(&i) == 0);
	for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
		interval_add(&i, values[k]);
		assert_int_equal(i.n, k + 1);
		assert_true(k || interval_half(&i) == 0);
	}
	assert_true(fabs(i.mean - 5) < 1e-12);
	assert_true(fabs(interval_half(&i) - 2.365 * sqrt(32.0 / 7 / 8)) < 1e-9);
	/* More values than the table of t has: the formula behind it, within half a percent. */
	for (size_t k = 0; k < 3 * ARRAY_SIZE(values); k++)
		interval_add(&i, values[k % ARRAY_SIZE(values)]);
	assert_true(fabs(interval_half(&i) / (2.0395 * sqrt(128.0 / 31 / 32)) - 1) < 0.005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_cuts),
		cmocka_unit_test(csv_refuses),
		cmocka_unit_test(embedded),
		cmocka_unit_test(published_values),
		cmocka_unit_test(kernel_runs),
		cmocka_unit_test(newer_kernel_runs),
		cmocka_unit_test(sums_are_of_measured_windows),
		cmocka_unit_test(fio_read_lengths),
		cmocka_unit_test(fio_read_sets_time),
		cmocka_unit_test(model_fits_what_it_is),
		cmocka_unit_test(deviations),
		cmocka_unit_test(intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
