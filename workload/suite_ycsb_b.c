/* SPDX-License-Identifier: MIT
 *
 * Suite ycsb-b: a B-tree storage engine with a cache of its own above the page cache.
 *
 * The real one: MongoDB under YCSB's workloadb, recordcount 20,000,000, operationcount 6,000,000,
 * 48 threads, a group of 16 GB, three runs.
 *
 * Modelled: records of 1 KB in leaf blocks of 32 KiB, keys scattered over them by a hash, 95 %
 * reads and 5 % updates of zipf-chosen records. A block that is not in the engine's own cache is
 * read with one pread of its 8 pages; a dirty block is written when it leaves. The engine's cache
 * is private memory. Before the counted operations the database is loaded: written from end to end.
 *
 * Left out: internal blocks (always in the engine's cache), checkpoints, the journal, compression
 * (YCSB's fields are random letters), clients (in the time of an operation).
 *
 * Parameters: counts, threads and the group's size from the published command line; theta 0.99, ten
 * fields of 100 bytes and the scattering from YCSB; the engine's cache of half of (memory - 1 GiB)
 * and leaf blocks of 32 KiB from MongoDB's documentation; the disk is costs.h's measured one, since
 * the published rate is far below what the NVMe model gives. The table has the free ones. By
 * default a thirty-second of sizes and counts, modelled at full size.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"
#include "workload/block_cache.h"
#include "workload/scene.h"
#include "workload/zipf_fio.h"

enum {
	LIMIT_PAGES = 4194304, /* 16 GB */
	RECORDS = 20000000,
	OPERATIONS = 6000000,
	THREADS = 48,
	BLOCK_PAGES = 8,
	UPDATE_PERCENT = 5,
	GIB_PAGES = 262144,
	BLOCK_BYTES = BLOCK_PAGES * 4096,
};

enum param { OP_NS, RECORD_BYTES, CPUS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[OP_NS] = {"op_ns", 300000, 0, 0,
		   "assumed: CPU time of an operation, MongoDB's and the client's"},
	[RECORD_BYTES] =
		{"record_bytes", 1200, 1000, 4000,
		 "ten fields of 100 bytes, their names, and blocks not quite full: assumed"},
	[CPUS] = {"cpus", 48, 4, 256, "assumed: one for each thread"},
};

static const char *const cases[] = {"16G"};
enum { OPS, REFAULTS, MISSES };
static const struct grid_metric metrics[] = {
	[OPS] = {"ops_per_s", 2},
	[REFAULTS] = {"refault_per_op", 5},
	[MISSES] = {"own_misses_per_op", 5},
};

struct database {
	struct machine *m;
	const double *params;
	uint32_t blocks, records, left; /* left: operations not begun */
	int file;
	uint64_t cache_addr, seed, misses, since, end;
	int64_t refaults;
	struct block_cache cache;
	struct zipf_fio_dist dist;
};

struct client {
	struct database *db;
	struct zipf_fio keys;
	uint64_t rng;
};

static void touch_slot(struct task *t, const struct database *db, uint32_t slot)
{
	for (uint32_t i = 0; i < BLOCK_PAGES; i++)
		task_touch(t, db->cache_addr + (uint64_t)slot * BLOCK_PAGES + i, TASK_STORE);
}

static void operate(struct task *t, struct client *c, struct open_file *f)
{
	struct database *db = c->db;
	uint64_t record = zipf_fio_next(&c->keys);
	uint32_t block = (uint32_t)(record * db->blocks / db->records);
	bool update = splitmix64_below(&c->rng, 100) < UPDATE_PERCENT;
	struct block_get get = block_cache_get(&db->cache, block, update);

	if (!get.hit) {
		db->misses++;
		if (get.write)
			task_write(t, f, get.victim * BLOCK_PAGES, BLOCK_PAGES);
		task_read(t, f, block * BLOCK_PAGES, BLOCK_PAGES);
		touch_slot(t, db, get.slot);
	}
	task_compute(t, (uint64_t)db->params[OP_NS]);
}

static void client_main(struct task *t, void *arg)
{
	struct client *c = arg;
	struct database *db = c->db;
	struct open_file *f = task_open(t, db->file);

	while (db->left) {
		db->left--;
		operate(t, c, f);
	}
	task_close(t, f);
	db->end = MAX(db->end, task_now(t));
	free(c);
}

static void load(struct task *t, struct database *db)
{
	struct open_file *f = task_open(t, db->file);

	for (uint32_t i = 0; i < db->blocks; i++)
		task_write(t, f, i * BLOCK_PAGES, BLOCK_PAGES);
	task_fsync(t, f);
	task_close(t, f);
}

static void server_main(struct task *t, void *arg)
{
	struct database *db = arg;

	db->cache_addr = task_map_anon(t, db->cache.room * BLOCK_PAGES, 0);
	load(t, db);
	db->since = task_now(t);
	db->refaults = machine_engine_stat(db->m, 0, STAT_REFAULT_FILE);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct client *c = malloc(sizeof(*c));

		if (!c)
			continue;
		*c = (struct client){.db = db, .rng = db->seed * THREADS + i};
		/* All threads share the hot keys, each draws for itself. */
		zipf_fio_init(&c->keys, &db->dist, "usertable", (uint32_t)db->seed);
		c->keys.s1 += 1000 * i;
		if (!task_thread(t, client_main, c))
			free(c);
	}
}

static int set_up(struct database *db, uint32_t part, struct err *err)
{
	int group = machine_memcg(db->m, 0, "mongod", LIMIT_PAGES / part);
	uint32_t room = (LIMIT_PAGES - GIB_PAGES) / 2 / part / BLOCK_PAGES;
	double bytes = (double)db->records * db->params[RECORD_BYTES];

	db->blocks = (uint32_t)(bytes / BLOCK_BYTES);
	db->file = machine_file(db->m, db->blocks * BLOCK_PAGES);
	if (group < 0 || db->file < 0 || block_cache_init(&db->cache, room, db->blocks) ||
	    zipf_fio_dist_init(&db->dist, db->records, 0.99) ||
	    !machine_spawn(db->m, (uint32_t)group, server_main, db))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : 32;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = 2 * LIMIT_PAGES / part,
		.cpus = (uint32_t)run->params[CPUS],
		.scale = part,
		.seed = run->seed,
		.kernel_stats = true,
		.disk = &machine_ssd,
	};
	uint32_t operations = OPERATIONS / part / (run->demo ? 4 : 1);
	struct database db = {
		.params = run->params,
		.records = RECORDS / part,
		.left = operations,
		.seed = run->seed,
	};
	int r = machine_create(&options, &db.m, err);

	if (!r)
		r = set_up(&db, part, err);
	if (!r)
		r = scene_run(db.m, run, err);
	if (!r) {
		out[OPS] = operations / ((double)(db.end - db.since) / 1e9);
		out[REFAULTS] =
			(double)(machine_engine_stat(db.m, 0, STAT_REFAULT_FILE) - db.refaults) /
			operations;
		out[MISSES] = (double)db.misses / operations;
	}
	machine_destroy(db.m);
	block_cache_free(&db.cache);
	return r;
}

static const struct grid_kind kind = {
	.suite = &suite_ycsb_b,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,fg",
	.simulate = simulate,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_ycsb_b = {
	.name = "ycsb-b",
	.summary = "a B-tree engine with a cache of its own, 95 % reads by zipf in 16 GB",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
