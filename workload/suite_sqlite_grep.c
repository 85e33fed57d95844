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
 * assumptions: that both take turns (the tables speak of time per iteration); 1,250 hot pages, each read
 * twice, because 10.58 ms at 4.2 us a read are 2,500 reads; files of 16 KiB, about the mean of a kernel tree,
 * 1.25 times memory of them ("more than RAM"). Memory 1 GiB with --full, else a quarter of it, modelled as
 * 1 GiB.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "machine/machine.h"
#include "workload/grid.h"

enum {
	FULL_PAGES = 262144,
	FILE_PAGES = 4,
	GREP_BUFFER = 24, /* pages */
	DB_PAGES = 16384,
	HOT_PAGES = 1250,
	SQLITE_PAGE_NS = 3500, /* [assumed] 40 rows a page at 90 ns */
	GREP_PAGE_NS = 1000,   /* [assumed] 4 GB/s */
	WARM_ROUNDS = 2,       /* of grep, that do not count */
	ROUNDS = 4,
};

static const char *const cases[] = {"letter"};
static const struct grid_metric metrics[] = {{"sqlite_ms", 2}, {"grep_ms", 2}};

struct scene {
	struct machine *m;
	uint32_t nr_files;
	int *files, db;
	uint32_t scan[HOT_PAGES], lookups[HOT_PAGES]; /* the same pages */
	uint32_t rounds;
	uint64_t query_ns, grep_ns;
};

static void grep_file(struct task *t, int file)
{
	struct open_file *f = task_open(t, file);

	for (uint32_t at = 0; at < FILE_PAGES; at += GREP_BUFFER) {
		task_read(t, f, at, GREP_BUFFER);
		task_compute(t, (uint64_t)GREP_PAGE_NS * FILE_PAGES);
	}
	task_close(t, f);
}

static void query(struct task *t, const struct scene *s)
{
	struct open_file *f = task_open(t, s->db);

	for (uint32_t i = 0; i < 2 * HOT_PAGES; i++) {
		task_read(t, f, i < HOT_PAGES ? s->scan[i] : s->lookups[i - HOT_PAGES], 1);
		task_compute(t, SQLITE_PAGE_NS);
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
			grep_file(t, s->files[i]);
		if (round < WARM_ROUNDS)
			continue;
		s->query_ns += between - start;
		s->grep_ns += task_now(t) - between;
	}
}

static void shuffle(uint32_t *pages, uint64_t *seed)
{
	for (uint32_t i = HOT_PAGES - 1; i; i--) {
		uint32_t k = splitmix64_below(seed, i + 1), swap = pages[i];

		pages[i] = pages[k];
		pages[k] = swap;
	}
}

/* Distinct pages all over the database, in two orders. */
static void choose_pages(struct scene *s, uint64_t seed)
{
	uint32_t step = DB_PAGES / HOT_PAGES;

	for (uint32_t i = 0; i < HOT_PAGES; i++)
		s->scan[i] = s->lookups[i] = i * step + splitmix64_below(&seed, step);
	shuffle(s->scan, &seed);
	shuffle(s->lookups, &seed);
}

static int play(struct scene *s, const struct grid_run *run, uint32_t memory, struct err *err)
{
	int r;

	s->nr_files = (uint32_t)((uint64_t)memory * 5 / 4 / FILE_PAGES);
	s->rounds = run->demo ? 1 : ROUNDS;
	s->files = malloc(s->nr_files * sizeof(*s->files));
	s->db = machine_file(s->m, DB_PAGES);
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

	if (!r) {
		choose_pages(s, run->seed);
		r = play(s, run, memory, err);
	}
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
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
