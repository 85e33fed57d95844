/* SPDX-License-Identifier: MIT
 *
 * Suite mysql-like: a database that keeps its data in private memory and goes around the page
 * cache. No policy should make a difference, and none was claimed.
 *
 * The real one: "MySQL and others: no regression"; neither numbers nor configuration were
 * published.
 *
 * Modelled: a server whose buffer pool of 16 KiB blocks takes three quarters of its group, as
 * MySQL's manual recommends for a dedicated server. Blocks that it misses are read with O_DIRECT: a
 * request to the device and no page of the cache. The redo log is written through the cache and
 * synced by every commit in a hundred (group commit), a binary log is appended and never read, and
 * the group's swap takes what is not used.
 *
 * Left out: purge, doublewrite, the network. By default a sixteenth of a group of 8 GiB, modelled
 * at that size; four times as many operations as blocks of the pool.
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
	LIMIT_PAGES = 2097152, /* 8 GiB */
	BLOCK_PAGES = 4,
	THREADS = 32,
	LOG_PAGES = 4096,
	OPS_PER_BLOCK = 4,
	COMMITS_PER_SYNC = 100,
};

enum param { POOL_SHARE, DB_POOLS, THETA, OP_NS, CPUS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[POOL_SHARE] = {"pool_share", 0.75, 0.1, 0.9, "MySQL's manual: 50 to 75 % of memory"},
	[DB_POOLS] = {"db_pools", 2, 1, 16, "assumed: size of the database / the pool"},
	[THETA] = {"theta", 0.8, 0.3, 1.2, "assumed: sysbench's skewed tables"},
	[OP_NS] = {"op_ns", 50000, 0, 0, "assumed: CPU time of a statement"},
	[CPUS] = {"cpus", 32, 2, 256, "assumed: one for each thread"},
};

static const char *const cases[] = {"8G"};
enum { OPS, PSWPIN, PSWPOUT };
static const struct grid_metric metrics[] = {
	[OPS] = {"ops_per_s", 0}, [PSWPIN] = {"pswpin", 0}, [PSWPOUT] = {"pswpout", 0}};

struct server {
	struct machine *m;
	const double *params;
	uint32_t blocks, left, commits, logged;
	int redo, binlog;
	uint64_t pool_addr, seed, since, end;
	struct block_cache pool;
	struct zipf_fio_dist dist;
};

struct client {
	struct server *s;
	struct zipf_fio keys;
	uint64_t rng;
};

static void operate(struct task *t, struct client *c, struct open_file *redo,
		    struct open_file *binlog)
{
	struct server *s = c->s;
	bool update = splitmix64_below(&c->rng, 10) == 0;
	struct block_get get = block_cache_get(&s->pool, (uint32_t)zipf_fio_next(&c->keys), update);
	uint64_t addr = s->pool_addr + (uint64_t)get.slot * BLOCK_PAGES;

	if (!get.hit) { /* O_DIRECT: the device writes into the pool */
		task_sleep(t, machine_nvme.latency * (get.write ? 2 : 1));
		for (uint32_t i = 0; i < BLOCK_PAGES; i++)
			task_touch(t, addr + i, TASK_STORE);
	}
	task_touch(t, addr + splitmix64_below(&c->rng, BLOCK_PAGES),
		   update ? TASK_STORE : TASK_LOAD);
	task_compute(t, (uint64_t)s->params[OP_NS]);
	if (!update)
		return;
	task_write(t, redo, s->commits++ % LOG_PAGES, 1);
	if (s->commits % COMMITS_PER_SYNC == 0)
		task_fsync(t, redo);
	if (s->commits % 16 == 0) /* 256 bytes of the binary log each */
		task_write(t, binlog, s->logged++, 1);
}

static void client_main(struct task *t, void *arg)
{
	struct client *c = arg;
	struct server *s = c->s;
	struct open_file *redo = task_open(t, s->redo), *binlog = task_open(t, s->binlog);

	while (s->left) {
		s->left--;
		operate(t, c, redo, binlog);
	}
	task_close(t, redo);
	task_close(t, binlog);
	s->end = MAX(s->end, task_now(t));
	free(c);
}

static void server_main(struct task *t, void *arg)
{
	struct server *s = arg;
	uint32_t pages = s->pool.room * BLOCK_PAGES;

	s->pool_addr = task_map_anon(t, pages, 0);
	for (uint32_t i = 0; i < s->pool.room; i++)
		block_cache_get(&s->pool, i, false);
	for (uint32_t i = 0; i < pages; i++)
		task_touch(t, s->pool_addr + i, TASK_STORE);
	s->since = task_now(t);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct client *c = malloc(sizeof(*c));

		if (!c)
			continue;
		*c = (struct client){.s = s, .rng = s->seed * THREADS + i};
		zipf_fio_init(&c->keys, &s->dist, "sbtest", (uint32_t)s->seed);
		c->keys.s1 += 1000 * i;
		if (!task_thread(t, client_main, c))
			free(c);
	}
}

static int set_up(struct server *s, uint32_t limit, struct err *err)
{
	int group = machine_memcg(s->m, 0, "mysqld", limit);
	uint32_t room = (uint32_t)(limit * s->params[POOL_SHARE] / BLOCK_PAGES);

	s->blocks = (uint32_t)(room * s->params[DB_POOLS]);
	s->redo = machine_file(s->m, LOG_PAGES);
	s->binlog = machine_file(s->m, 1);
	if (group < 0 || s->redo < 0 || s->binlog < 0 ||
	    block_cache_init(&s->pool, room, s->blocks) ||
	    zipf_fio_dist_init(&s->dist, s->blocks, s->params[THETA]) ||
	    !machine_spawn(s->m, (uint32_t)group, server_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : 16, limit = LIMIT_PAGES / part;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = 2 * limit,
		.cpus = (uint32_t)run->params[CPUS],
		.scale = part,
		.seed = run->seed,
		.swap = MACHINE_DISK_SWAP,
		.swap_pages = limit,
		.kernel_stats = true,
	};
	uint32_t operations =
		(uint32_t)(limit * run->params[POOL_SHARE]) / BLOCK_PAGES * OPS_PER_BLOCK;
	struct server s = {.params = run->params, .left = operations, .seed = run->seed};
	int r = machine_create(&options, &s.m, err);

	if (!r)
		r = set_up(&s, limit, err);
	if (!r)
		r = scene_run(s.m, run, err);
	if (!r) {
		out[OPS] = operations / ((double)(s.end - s.since) / 1e9);
		out[PSWPIN] = (double)machine_stat(s.m, MACHINE_PSWPIN) * part;
		out[PSWPOUT] = (double)machine_stat(s.m, MACHINE_PSWPOUT) * part;
	}
	machine_destroy(s.m);
	block_cache_free(&s.pool);
	return r;
}

static const struct grid_kind kind = {
	.suite = &suite_mysql_like,
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

const struct suite suite_mysql_like = {
	.name = "mysql-like",
	.summary = "a buffer pool in private memory, data past the page cache: no regression",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
