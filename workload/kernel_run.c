/* SPDX-License-Identifier: MIT
 *
 * One boot of the kernel, repeated: the table gives the sequence (theta, seeds, lengths of the
 * windows) and the room, the generator gives the same accesses, and where the kernel's table knows
 * their hash it must be equal before a single number is compared.
 */
#include "workload/kernel_compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "machine/room.h"
#include "workload/csv.h"
#include "workload/zipf_oracle.h"

enum { CHUNK = 1 << 16, NPAGES_DEFAULT = 40960 };

/* Hashes that the kernel's side printed for 6 M accesses of seed 1 over 40,960 pages. */
static const struct {
	double theta;
	uint64_t hash;
} known_hashes[] = {
	{0.8, UINT64_C(0x8bf07fabeb962cc2)},
	{0.9, UINT64_C(0x38a54664edc487f8)},
	{1.1, UINT64_C(0xeb86bcaed728fea8)},
	{1.2, UINT64_C(0xbb34c41ad921428e)},
};

/* ---- the table ---- */

/* memory.max in pages: "64M". */
static uint32_t memory_pages(const char *text)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	return (uint32_t)(value * (*end == 'G' ? 262144 : 256));
}

static double column_or(const struct csv *csv, size_t row, const char *name, double otherwise)
{
	double value;

	return csv_number(csv, row, csv_column(csv, name), &value) ? value : otherwise;
}

static void read_window(const struct csv *csv, size_t row, struct kernel_window *window)
{
	static const char *const names[KERNEL_NR_METRICS] = {
		"refaults", "pgscan", "pgsteal", "workingset_activate", "workingset_restore",
	};

	strncpy(window->phase, csv_text(csv, row, csv_column(csv, "phase")),
		sizeof(window->phase) - 1);
	window->accesses = (uint64_t)column_or(csv, row, "accesses", 0);
	for (int i = 0; i < KERNEL_NR_METRICS; i++) {
		window->kernel[i] = column_or(csv, row, names[i], NAN);
		window->engine[i] = NAN;
	}
	window->file_pages = column_or(csv, row, "file_pages", NAN);
	window->other_pages = column_or(csv, row, "other_pages", NAN);
}

static void read_run(const struct csv *csv, size_t row, struct kernel_run *run)
{
	*run = (struct kernel_run){0};
	strncpy(run->policy, csv_text(csv, row, csv_column(csv, "policy")),
		sizeof(run->policy) - 1);
	strncpy(run->memory, csv_text(csv, row, csv_column(csv, "memory_max")),
		sizeof(run->memory) - 1);
	run->limit = memory_pages(run->memory);
	run->theta = column_or(csv, row, "theta", 0);
	run->seed = (uint64_t)column_or(csv, row, "seed", 1);
	run->permutation_seed = (uint64_t)column_or(csv, row, "permseed", 42);
	run->npages = (uint32_t)column_or(csv, row, "npages", NPAGES_DEFAULT);
	run->stat_every = (uint64_t)column_or(csv, row, "stat_every", 0);
}

/* A boot's rows are consecutive and start with its warm-up. */
static int read_runs(const struct kernel_table *table, const struct csv *csv,
		     struct kernel_run *runs, size_t *nr, struct err *err)
{
	const int phase = csv_column(csv, "phase");
	struct kernel_run *run = NULL;

	*nr = 0;
	for (size_t row = 0; row < csv->nr_rows; row++) {
		if (!strcmp(csv_text(csv, row, phase), "warm")) {
			run = &runs[(*nr)++];
			read_run(csv, row, run);
		}
		if (!run || run->nr_windows == KERNEL_WINDOWS_MAX)
			return err_set(err, -EILSEQ, "%s: row %zu: a window of no run",
				       table->suite, row + 1);
		read_window(csv, row, &run->windows[run->nr_windows++]);
	}
	for (size_t i = 0; i < *nr; i++) {
		if (!table->map(&runs[i]))
			return err_set(err, -EILSEQ, "%s: unknown kernel policy '%s'", table->suite,
				       runs[i].policy);
	}
	return 0;
}

int kernel_runs_load(const struct kernel_table *table, struct kernel_run **runs, size_t *nr,
		     struct err *err)
{
	static const char *const needed[] = {"policy", "theta",    "memory_max",
					     "phase",  "accesses", "refaults"};
	struct csv csv;
	int r = csv_parse(table->suite, table->text, strlen(table->text), &csv, err);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(needed) && !r; i++) {
		if (csv_column(&csv, needed[i]) < 0)
			r = err_set(err, -EILSEQ, "%s: no column '%s'", table->suite, needed[i]);
	}
	*runs = r ? NULL : calloc(csv.nr_rows + 1, sizeof(**runs));
	if (!r && !*runs)
		r = err_set(err, -ENOMEM, "%s: out of memory", table->suite);
	if (!r)
		r = read_runs(table, &csv, *runs, nr, err);
	csv_free(&csv);
	if (r) {
		free(*runs);
		*runs = NULL;
	}
	return r;
}

/* ---- the engine ---- */

/* A counter of memory.stat's text; NAN when it is not there. */
static double stat_value(const char *text, const char *name)
{
	const size_t length = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ')
			return strtod(line + length, NULL);
	}
	return NAN;
}

/* All counters since the room was opened. */
static void read_counters(const struct room *room, double *counters)
{
	struct foliage_stats stats;
	char *text = NULL;

	room_stats(room, &stats);
	counters[KERNEL_REFAULTS] = (double)stats.refaults;
	counters[KERNEL_PGSCAN] = (double)stats.scanned;
	counters[KERNEL_PGSTEAL] = (double)stats.stolen;
	if (room_dump(room, "memory.stat", &text))
		text = NULL;
	counters[KERNEL_ACTIVATE] = text ? stat_value(text, "workingset_activate_file") : NAN;
	counters[KERNEL_RESTORE] = text ? stat_value(text, "workingset_restore_file") : NAN;
	free(text);
}

static int run_window(struct room *room, struct zipf_oracle *zipf, uint32_t *chunk,
		      uint64_t accesses, bool (*stopped)(void))
{
	while (accesses) {
		const size_t nr = MIN(accesses, (uint64_t)CHUNK);
		int r;

		if (stopped && stopped())
			return -EINTR;
		zipf_oracle_fill(zipf, chunk, nr);
		r = room_run(room, chunk, NULL, nr);
		if (r)
			return r;
		accesses -= nr;
	}
	return 0;
}

/* `weight`: this room's part in the mean. */
static int run_windows(struct kernel_run *run, struct room *room, struct zipf_oracle *zipf,
		       uint32_t *chunk, double weight, bool (*stopped)(void))
{
	double before[KERNEL_NR_METRICS], after[KERNEL_NR_METRICS];

	read_counters(room, before);
	for (run->done = 0; run->done < run->nr_windows; run->done++) {
		struct kernel_window *window = &run->windows[run->done];
		int r = run_window(room, zipf, chunk, window->accesses, stopped);

		if (r)
			return r;
		read_counters(room, after);
		for (int i = 0; i < KERNEL_NR_METRICS; i++)
			window->engine[i] += weight * (after[i] - before[i]);
		memcpy(before, after, sizeof(before));
	}
	run->hash = zipf->hash;
	return 0;
}

/* Where the hash of the kernel's own sequence is known, ours must be it. */
static int check_hash(const struct kernel_run *run, uint64_t accesses, struct err *err)
{
	if (run->seed != 1 || run->permutation_seed != 42 || run->npages != NPAGES_DEFAULT ||
	    accesses != 6000000)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(known_hashes); i++) {
		if (fabs(known_hashes[i].theta - run->theta) < 1e-9 &&
		    known_hashes[i].hash != run->hash)
			return err_set(err, -EILSEQ,
				       "theta %g: the sequence has hash %016llx, the kernel read "
				       "one of %016llx",
				       run->theta, (unsigned long long)run->hash,
				       (unsigned long long)known_hashes[i].hash);
	}
	return 0;
}

static int run_in_room(struct kernel_run *run, const struct policy_choice *choice, uint32_t pages,
		       double weight, bool (*stopped)(void), struct err *err)
{
	struct foliage_policy_env env = {
		.room = pages, .nr_ids = run->npages, .seed = run->seed, .scale = 1};
	uint32_t *chunk = malloc(CHUNK * sizeof(*chunk));
	struct zipf_oracle zipf;
	struct room *room = NULL;
	int r = zipf_oracle_init(&zipf, run->npages, run->theta, run->seed, run->permutation_seed);

	for (size_t i = 0; i < run->nr_windows; i++)
		env.nr_accesses += run->windows[i].accesses;
	if (r || !chunk)
		r = err_set(err, r ? r : -ENOMEM, "%s: cannot make the sequence", run->policy);
	else
		r = room_open(choice, &env, &room, err);
	if (!r) {
		r = run_windows(run, room, &zipf, chunk, weight, stopped);
		room_close(room);
		if (!r)
			r = check_hash(run, env.nr_accesses, err);
	}
	zipf_oracle_free(&zipf);
	free(chunk);
	return r;
}

int kernel_run_engine(struct kernel_run *run, bool (*stopped)(void), struct err *err)
{
	const uint32_t step = MAX(run->spread / 2, 1u), rooms = 2 * run->spread / step + 1;
	struct policy_choice choice;
	int r = policy_parse(run->engine, &choice, err);

	if (r)
		return r;
	for (size_t w = 0; w < run->nr_windows; w++)
		for (int i = 0; i < KERNEL_NR_METRICS; i++)
			run->windows[w].engine[i] = 0;
	for (uint32_t i = 0; i < rooms && !r; i++)
		r = run_in_room(run, &choice, run->room - run->spread + i * step, 1.0 / rooms,
				stopped, err);
	policy_choice_free(&choice);
	return r;
}

void kernel_run_sum(const struct kernel_run *run, enum kernel_metric metric, double *kernel,
		    double *engine)
{
	*kernel = 0;
	*engine = 0;
	for (size_t i = 1; i < run->done; i++) {
		*kernel += run->windows[i].kernel[metric];
		*engine += run->windows[i].engine[metric];
	}
}
