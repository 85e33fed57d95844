/* SPDX-License-Identifier: MIT
 *
 * Suite leveldb-scan-get: point look-ups with a skewed key choice beside long scans, on a
 * log-structured store whose tables are mapped.
 *
 * The real one: the GET/SCAN workload of the cache_ext paper on LevelDB; throughput was published
 * on two machines, sizes and commands were not repeated there.
 *
 * Modelled: tables of 2 MiB, mapped read-only without advice, as LevelDB's POSIX environment maps
 * them. A GET looks at one index page and one data page of a table; index pages lie at the tables'
 * ends. A scan reads a run of data pages from a random place on. All threads belong to one
 * process in a group, each has a CPU. The second machine (`reply`) has a slow disk, see below.
 *
 * Left out: writes and compaction, LevelDB's block cache (blocks of mapped tables that are not
 * compressed bypass it), locks.
 *
 * Parameters: none was published, the table below has the free ones. The limit is 1 GiB with
 * --full, else a thirty-second of it, modelled as 1 GiB; keys lie scattered over the data pages.
 * Counted: GETs and scans a second, 40 GETs for each page of the limit, after a warm-up of 8 for
 * each. The disks are those of machine/costs.h: for `letter` the NVMe, for `reply`, whose rates are
 * lower, the SSD.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"
#include "workload/scene.h"
#include "workload/zipf_fio.h"

enum {
	FULL_PAGES = 262144,
	TABLE_PAGES = 512,
	GETTERS_MAX = 64,
	SCANNERS_MAX = 16,
};

enum param { DB_LIMITS, THETA, GETTERS, SCANNERS, SCAN_PAGES, GET_NS, SCAN_PAGE_NS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[DB_LIMITS] = {"db_limits", 4, 1.5, 64,
		       "assumed: size of the database / the group's limit"},
	[THETA] = {"theta", 0.99, 0.7, 1.2, "assumed: YCSB's constant"},
	[GETTERS] = {"getters", 8, 1, GETTERS_MAX, "assumed"},
	[SCANNERS] = {"scanners", 1, 1, SCANNERS_MAX, "assumed"},
	[SCAN_PAGES] = {"scan_pages", 4000, 1, 8000, "assumed"},
	[GET_NS] = {"get_ns", 2000, 0, 0, "assumed"},
	[SCAN_PAGE_NS] = {"scan_page_ns", 1000, 0, 0, "assumed"},
};

enum { LETTER, REPLY };
static const char *const cases[] = {[LETTER] = "letter", [REPLY] = "reply"};
static const struct grid_metric metrics[] = {
	{"ops_per_s", 1}, {"refault_per_get", 5}, {"get_us", 2}, {"scans", 0}};

struct store;

struct getter {
	struct store *s;
	struct zipf_fio keys;
};

struct scanner {
	struct store *s;
	uint64_t rng;
};

struct store {
	struct machine *m;
	uint32_t pages; /* of the database */
	uint32_t getters, scanners, scan_pages;
	uint64_t addr;
	struct getter getter[GETTERS_MAX];
	struct scanner scanner[SCANNERS_MAX];
	uint64_t get_ns, scan_page_ns;
	int file;
	struct zipf_fio_dist dist;
	uint64_t warm, gets; /* of a thread */
	uint32_t getters_left;
	/* Since the first thread was warm: */
	uint64_t since, scans, end;
	int64_t refaults;
};

static void get(struct task *t, struct store *s, uint64_t addr, uint64_t page)
{
	uint64_t index = page / TABLE_PAGES * TABLE_PAGES + TABLE_PAGES - 1;

	task_touch(t, addr + MIN(index, (uint64_t)s->pages - 1), TASK_LOAD);
	task_touch(t, addr + page, TASK_LOAD);
	task_compute(t, s->get_ns);
}

static void getter_main(struct task *t, void *arg)
{
	struct getter *g = arg;
	struct store *s = g->s;

	for (uint64_t i = 0; i < s->warm + s->gets; i++) {
		if (i == s->warm && !s->since) {
			s->since = task_now(t);
			s->refaults = machine_engine_stat(s->m, 0, STAT_REFAULT_FILE);
		}
		get(t, s, s->addr, zipf_fio_next(&g->keys));
	}
	s->end = MAX(s->end, task_now(t));
	s->getters_left--;
}

static void scanner_main(struct task *t, void *arg)
{
	struct scanner *scanner = arg;
	struct store *s = scanner->s;

	while (s->getters_left) {
		uint32_t from = splitmix64_below(&scanner->rng, s->pages - s->scan_pages);

		for (uint32_t i = 0; i < s->scan_pages && s->getters_left; i++) {
			task_touch(t, s->addr + from + i, TASK_LOAD);
			task_compute(t, s->scan_page_ns);
		}
		s->scans += s->since > 0;
	}
}

static void set_up(struct store *s, const struct grid_run *run, uint32_t limit)
{
	s->pages = (uint32_t)(limit * run->params[DB_LIMITS]);
	s->getters = (uint32_t)run->params[GETTERS];
	s->scanners = (uint32_t)run->params[SCANNERS];
	s->scan_pages = (uint32_t)run->params[SCAN_PAGES];
	s->get_ns = (uint64_t)run->params[GET_NS];
	s->scan_page_ns = (uint64_t)run->params[SCAN_PAGE_NS];
	s->warm = (uint64_t)limit * 8 / s->getters;
	s->gets = (uint64_t)limit * (run->demo ? 8 : 40) / s->getters;
}

/* One process, as the program is; its threads share the page tables. */
static void store_main(struct task *t, void *arg)
{
	struct store *s = arg;

	s->addr = task_map_file(t, s->file, 0, s->pages, 0);
	for (uint32_t i = 0; i < s->getters; i++)
		task_thread(t, getter_main, &s->getter[i]);
	for (uint32_t i = 0; i < s->scanners; i++)
		task_thread(t, scanner_main, &s->scanner[i]);
}

static void start(struct store *s, const struct grid_run *run)
{
	s->getters_left = s->getters;
	for (uint32_t i = 0; i < s->getters; i++) {
		s->getter[i].s = s;
		/* All threads share the hot keys, each draws for itself. */
		zipf_fio_init(&s->getter[i].keys, &s->dist, "db", (uint32_t)run->seed);
		s->getter[i].keys.s1 += 1000 * i;
	}
	for (uint32_t i = 0; i < s->scanners; i++)
		s->scanner[i] = (struct scanner){.s = s, .rng = 6 + run->seed + i * UINT64_C(1000)};
}

static int play(struct store *s, const struct grid_run *run, uint32_t limit, struct err *err)
{
	int group = machine_memcg(s->m, 0, "leveldb", limit);

	set_up(s, run, limit);
	s->file = machine_file(s->m, s->pages);
	if (group < 0 || s->file < 0 ||
	    zipf_fio_dist_init(&s->dist, s->pages, run->params[THETA]) ||
	    !machine_spawn(s->m, (uint32_t)group, store_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	start(s, run);
	return scene_run(s->m, run, err);
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t limit = run->full ? FULL_PAGES : FULL_PAGES / 32;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = 2 * limit,
		.cpus = (uint32_t)(run->params[GETTERS] + run->params[SCANNERS]),
		.scale = (double)FULL_PAGES / limit,
		.seed = run->seed,
		.kernel_stats = true,
		.disk = run->which == REPLY ? &machine_ssd : NULL,
	};
	struct store *s = calloc(1, sizeof(*s));
	int r = s ? machine_create(&options, &s->m, err) : err_set(err, -ENOMEM, "out of memory");

	if (!r)
		r = play(s, run, limit, err);
	if (!r) {
		double seconds = (double)(s->end - s->since) / 1e9,
		       gets = (double)(s->gets * s->getters);

		out[0] = (gets + (double)s->scans) / seconds;
		out[1] = (double)(machine_engine_stat(s->m, 0, STAT_REFAULT_FILE) - s->refaults) /
			 gets;
		out[2] = seconds * s->getters / gets * 1e6;
		out[3] = (double)s->scans;
	}
	if (s)
		machine_destroy(s->m);
	free(s);
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
	.nr_cases = ARRAY_SIZE(cases),
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
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
