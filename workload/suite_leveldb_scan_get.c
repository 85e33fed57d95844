/* SPDX-License-Identifier: MIT
 *
 * Suite leveldb-scan-get: point look-ups with a skewed key choice beside long scans, on a
 * log-structured store whose tables are mapped.
 *
 * The real one: the GET/SCAN workload of the cache_ext paper on LevelDB; throughput was published on
 * two machines, sizes and commands were not repeated there.
 *
 * Modelled: tables of 2 MiB, mapped read-only without advice, as LevelDB's POSIX environment maps
 * them. A GET looks at one index page and one data page of a table; index pages lie at the tables'
 * ends. A scan reads a run of data pages from a random place on. All threads belong to one group;
 * each has a CPU and, unlike threads, page tables of its own.
 *
 * Left out: writes and compaction, LevelDB's block cache (blocks of mapped tables that are not
 * compressed bypass it), locks.
 *
 * Parameters, stated assumptions: a database of 4 times the group's limit; the limit is 1 GiB with
 * --full, else a thirty-second of it, modelled as 1 GiB; GETs by zipf with theta 0.99 (the YCSB
 * constant) over the data pages, scattered; 8 GET threads and 1 scanner; 2 us of CPU time a GET, 1 us
 * a scanned page; a scan takes 4,000 pages. Counted: GETs and scans a second, 40 GETs for each page of
 * the limit, after a warm-up of 8 for each.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/machine.h"
#include "mm/types.h"
#include "workload/grid.h"
#include "workload/zipf_fio.h"

enum {
	FULL_PAGES = 262144,
	TABLE_PAGES = 512,
	DB_LIMITS = 4,
	GETTERS = 8,
	SCAN_PAGES = 4000,
	GET_NS = 2000,
	SCAN_PAGE_NS = 1000,
};

static const char *const cases[] = {"letter"};
static const struct grid_metric metrics[] = {
	{"ops_per_s", 1}, {"refault_per_get", 5}, {"get_us", 2}, {"scans", 0}};

struct store {
	struct machine *m;
	uint32_t pages; /* of the database */
	int file;
	struct zipf_fio_dist dist;
	uint64_t warm, gets; /* of a thread */
	uint32_t getters_left;
	/* Since the first thread was warm: */
	uint64_t since, scans, end;
	int64_t refaults;
};

struct getter {
	struct store *s;
	struct zipf_fio keys;
};

static void get(struct task *t, struct store *s, uint64_t addr, uint64_t page)
{
	uint64_t index = page / TABLE_PAGES * TABLE_PAGES + TABLE_PAGES - 1;

	task_touch(t, addr + MIN(index, (uint64_t)s->pages - 1), TASK_LOAD);
	task_touch(t, addr + page, TASK_LOAD);
	task_compute(t, GET_NS);
}

static void getter_main(struct task *t, void *arg)
{
	struct getter *g = arg;
	struct store *s = g->s;
	uint64_t addr = task_map_file(t, s->file, 0, s->pages, 0);

	for (uint64_t i = 0; i < s->warm + s->gets; i++) {
		if (i == s->warm && !s->since) {
			s->since = task_now(t);
			s->refaults = machine_engine_stat(s->m, 0, STAT_REFAULT_FILE);
		}
		get(t, s, addr, zipf_fio_next(&g->keys));
	}
	s->end = MAX(s->end, task_now(t));
	s->getters_left--;
}

static void scanner_main(struct task *t, void *arg)
{
	struct store *s = arg;
	uint64_t addr = task_map_file(t, s->file, 0, s->pages, 0), rng = 7;

	while (s->getters_left) {
		uint32_t from = splitmix64_below(&rng, s->pages - SCAN_PAGES);

		for (uint32_t i = 0; i < SCAN_PAGES && s->getters_left; i++) {
			task_touch(t, addr + from + i, TASK_LOAD);
			task_compute(t, SCAN_PAGE_NS);
		}
		s->scans += s->since > 0;
	}
}

static int play(struct store *s, struct getter *getters, const struct grid_run *run, uint32_t limit,
		struct err *err)
{
	int group = machine_memcg(s->m, 0, "leveldb", limit), r;

	s->pages = limit * DB_LIMITS;
	s->warm = (uint64_t)limit * 8 / GETTERS;
	s->gets = (uint64_t)limit * (run->demo ? 8 : 40) / GETTERS;
	s->file = machine_file(s->m, s->pages);
	if (group < 0 || s->file < 0 || zipf_fio_dist_init(&s->dist, s->pages, 0.99))
		return err_set(err, -ENOMEM, "out of memory");
	s->getters_left = GETTERS;
	for (uint32_t i = 0; i < GETTERS; i++) {
		getters[i].s = s;
		/* All threads share the hot keys, each draws for itself. */
		zipf_fio_init(&getters[i].keys, &s->dist, "db", (uint32_t)run->seed);
		getters[i].keys.s1 += 1000 * i;
		if (!machine_spawn(s->m, (uint32_t)group, getter_main, &getters[i]))
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (!machine_spawn(s->m, (uint32_t)group, scanner_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	r = machine_run(s->m, 0, run->stopped);
	return r == -ENOMEM ? err_set(err, r, "%s", machine_oom(s->m)) : r;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t limit = run->full ? FULL_PAGES : FULL_PAGES / 32;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = 2 * limit,
		.cpus = GETTERS + 1,
		.scale = (double)FULL_PAGES / limit,
		.seed = run->seed,
		.kernel_stats = true,
	};
	struct getter getters[GETTERS];
	struct store s = {0};
	int r = machine_create(&options, &s.m, err);

	if (r)
		return r;
	r = play(&s, getters, run, limit, err);
	if (!r) {
		double seconds = (double)(s.end - s.since) / 1e9, gets = (double)(s.gets * GETTERS);

		out[0] = (gets + (double)s.scans) / seconds;
		out[1] = (double)(machine_engine_stat(s.m, 0, STAT_REFAULT_FILE) - s.refaults) /
			 gets;
		out[2] = seconds * GETTERS / gets * 1e6;
		out[3] = (double)s.scans;
	}
	machine_destroy(s.m);
	return r;
}

static const char *const notes[] = {
	"sizes were not published: compare the ratios of the policies, not their rates",
	"on the second published machine clru and mglru are the other way round: no target",
	NULL,
};

static const struct grid_kind kind = {
	.suite = &suite_leveldb_scan_get,
	.cases = cases,
	.nr_cases = 1,
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,mglru-revert,mglru-quickfix,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_leveldb_scan_get = {
	.name = "leveldb-scan-get",
	.summary = "skewed look-ups beside long scans in mapped tables",
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
