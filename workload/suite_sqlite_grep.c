/* SPDX-License-Identifier: MIT
 *
 * Suite sqlite-grep: a database whose hot part is small, and greps over more small files than memory
 * holds.
 *
 * The real one: in turns, SQLite scans and looks up a small hot part of a database, and grep goes over
 * small files that total more than RAM; the time of SQLite's turn and of grep's were published, sizes and
 * commands were not.
 *
 * Modelled: SQLite's turn is a fresh connection that reads pages of 4 KiB by pread: the hot pages in the
 * order of an index, scattered over the database, then each of them again for a look-up; the inner pages
 * stay in SQLite's own cache. grep opens each file, reads it to its end in buffers of 96 KiB, and goes on.
 * Memory is the machine's: kswapd reclaims.
 *
 * Left out: SQLite's writes, directory reads, slab.
 *
 * Parameters: grep's buffer is GNU grep's initial size, SQLite's page size its default. Stated
 * assumptions: that both take turns (the tables speak of time per iteration); files of 16 KiB, about the
 * mean of a kernel tree; what else is free stands in the table below. Memory 1 GiB with --full, else a quarter of it, modelled as
 * 1 GiB.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/machine.h"
#include "workload/grid.h"

enum {
	FULL_PAGES = 262144,
	FILE_PAGES = 4,
	GREP_BUFFER = 24, /* pages */
	HOT_MAX = 16384,
	WARM_ROUNDS = 2, /* of grep, that do not count */
	ROUNDS = 4,
};

enum param { DB_PAGES, HOT_PAGES, GREP_SHARE, SQLITE_PAGE_NS, GREP_PAGE_NS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[DB_PAGES] = {"db_pages", 16384, 4096, 1 << 20, "assumed: 64 MiB"},
	[HOT_PAGES] = {"hot_pages", 1250, 64, HOT_MAX,
		       "10.58 ms at 4.2 us a read are 2,500 reads, two of each page"},
	[GREP_SHARE] = {"grep_share", 1.25, 0.1, 16, "of memory; \"more than RAM\""},
	[SQLITE_PAGE_NS] = {"sqlite_page_ns", 3500, 0, 0, "assumed: 40 rows a page at 90 ns"},
	[GREP_PAGE_NS] = {"grep_page_ns", 1000, 0, 0, "assumed: 4 GB/s"},
};

static const char *const cases[] = {"letter"};
static const struct grid_metric metrics[] = {{"sqlite_ms", 2}, {"grep_ms", 2}};

struct scene {
	struct machine *m;
	uint32_t nr_files;
	int *files, db;
	uint32_t hot, scan[HOT_MAX], lookups[HOT_MAX]; /* the same pages */
	uint64_t sqlite_page_ns, grep_page_ns;
	uint32_t rounds;
	uint64_t query_ns, grep_ns;
};

static void grep_file(struct task *t, const struct scene *s, int file)
{
	struct open_file *f = task_open(t, file);

	for (uint32_t at = 0; at < FILE_PAGES; at += GREP_BUFFER) {
		task_read(t, f, at, GREP_BUFFER);
		task_compute(t, s->grep_page_ns * FILE_PAGES);
	}
	task_close(t, f);
}

static void query(struct task *t, const struct scene *s)
{
	struct open_file *f = task_open(t, s->db);

	for (uint32_t i = 0; i < 2 * s->hot; i++) {
		task_read(t, f, i < s->hot ? s->scan[i] : s->lookups[i - s->hot], 1);
		task_compute(t, s->sqlite_page_ns);
	}
	task_close(t, f);
}

static void scene_main(struct task *t, void *arg)
{
	struct scene *s = arg;

	for (uint32_t round = 0; round < WARM_ROUNDS + s->rounds; round++) {
		uint64_t start = task_now(t), between;

		query(t, s);
		between = task_now(t);
		for (uint32_t i = 0; i < s->nr_files; i++)
			grep_file(t, s, s->files[i]);
		if (round < WARM_ROUNDS)
			continue;
		s->query_ns += between - start;
		s->grep_ns += task_now(t) - between;
	}
}

static void shuffle(uint32_t *pages, uint32_t nr, uint64_t *seed)
{
	for (uint32_t i = nr - 1; i; i--) {
		uint32_t k = splitmix64_below(seed, i + 1), swap = pages[i];

		pages[i] = pages[k];
		pages[k] = swap;
	}
}

/* Distinct pages all over the database, in two orders. */
static void choose_pages(struct scene *s, uint32_t db_pages, uint64_t seed)
{
	uint32_t step = MAX(db_pages / s->hot, 1u);

	for (uint32_t i = 0; i < s->hot; i++)
		s->scan[i] = s->lookups[i] = i * step + splitmix64_below(&seed, step);
	shuffle(s->scan, s->hot, &seed);
	shuffle(s->lookups, s->hot, &seed);
}

static int play(struct scene *s, const struct grid_run *run, uint32_t memory, struct err *err)
{
	uint32_t db_pages = (uint32_t)run->params[DB_PAGES];
	int r;

	s->hot = MIN((uint32_t)run->params[HOT_PAGES], db_pages);
	s->sqlite_page_ns = (uint64_t)run->params[SQLITE_PAGE_NS];
	s->grep_page_ns = (uint64_t)run->params[GREP_PAGE_NS];
	choose_pages(s, db_pages, run->seed);
	s->nr_files = (uint32_t)((double)memory * run->params[GREP_SHARE]) / FILE_PAGES;
	s->rounds = run->demo ? 1 : ROUNDS;
	s->files = malloc(s->nr_files * sizeof(*s->files));
	s->db = machine_file(s->m, db_pages);
	for (uint32_t i = 0; s->files && i < s->nr_files; i++) {
		s->files[i] = machine_file(s->m, FILE_PAGES);
		if (s->files[i] < 0)
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (!s->files || s->db < 0 || !machine_spawn(s->m, 0, scene_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	r = machine_run(s->m, 0, run->stopped);
	return r == -ENOMEM ? err_set(err, r, "%s", machine_oom(s->m)) : r;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t memory = run->full ? FULL_PAGES : FULL_PAGES / 4;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = memory,
		.cpus = 2,
		.scale = (double)FULL_PAGES / memory,
		.seed = run->seed,
		.kernel_stats = true,
	};
	struct scene *s = calloc(1, sizeof(*s));
	int r = s ? machine_create(&options, &s->m, err) : err_set(err, -ENOMEM, "out of memory");

	if (!r)
		r = play(s, run, memory, err);
	if (!r) {
		out[0] = (double)s->query_ns / s->rounds / 1e6;
		out[1] = (double)s->grep_ns / s->rounds / 1e6;
	}
	if (s) {
		machine_destroy(s->m);
		free(s->files);
	}
	free(s);
	return r;
}

static const char *const notes[] = {
	"the size of memory was not published: times of grep compare between policies only",
	NULL,
};

static const struct grid_kind kind = {
	.suite = &suite_sqlite_grep,
	.cases = cases,
	.nr_cases = 1,
	.metrics = metrics,
	.nr_metrics = 2,
	.policies = "clru,mglru,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_sqlite_grep = {
	.name = "sqlite-grep",
	.summary = "SQLite on a small hot part of a database, in turns with grep over more than "
		   "memory",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
