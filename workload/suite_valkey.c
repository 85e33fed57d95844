/* SPDX-License-Identifier: MIT
 *
 * Suite valkey: uniform GETs of a data set larger than memory, on compressed swap, without a page-table
 * walker, with and without a child that saves the data set meanwhile.
 *
 * The real one: Valkey in an ARM64 virtual machine of 1.5 GB with 8 GB of zram, maxmemory 2560M;
 * benchmark -r 3000000 -n 3000000 -d 1024 -c 12 -P 32 get; lru_gen/enabled 0x0001.
 *
 * Modelled: one server thread; a GET looks at an entry of the hash table and at the page of the value,
 * both anonymous. It stores its access time into the value's header, unless a child is saving, as the
 * server does to spare copies. The child of BGSAVE is a fork that looks at every page once and writes the
 * file. Fault-around entries start old.
 *
 * Left out: the network (in the time of a request), the allocator, keys that are missing, transparent huge
 * pages.
 *
 * Parameters: sizes and the number of requests from the published command line; 3,000,000 values of 1 KiB do
 * not fit into 2560 MiB, so that is the data set. The free ones stand in the table below. By default an eighth of everything, modelled at full size.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/machine.h"
#include "workload/grid.h"

enum {
	MEMORY_PAGES = 393216, /* 1.5 GB */
	ZRAM_PAGES = 2097152,  /* 8 GB */
	DATA_PAGES = 655360,   /* 2560 MiB */
	REQUESTS = 3000000,
};

enum param { TABLE_PART, REQUEST_NS, SAVE_PAGE_NS, CPUS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[TABLE_PART] = {"table_part", 1.0 / 16, 0.001, 0.5,
			"assumed: hash table and keys, of the data set"},
	[REQUEST_NS] = {"request_ns", 1600, 0, 0, "assumed: a server thread with pipelining"},
	[SAVE_PAGE_NS] = {"save_page_ns", 4000, 0, 0, "assumed: serialize and checksum 4 KiB"},
	[CPUS] = {"cpus", 4, 1, 16, "assumed"},
};

enum { BGSAVE, PLAIN };
static const char *const cases[] = {[BGSAVE] = "bgsave", [PLAIN] = "plain"};
static const struct grid_metric metrics[] = {{"requests_per_s", 2}, {"pswpin", 0}, {"pswpout", 0}};

struct server {
	struct machine *m;
	bool saves;
	uint32_t pages, table;
	uint64_t request_ns, save_page_ns;
	uint64_t requests, rng, ns, addr;
	int rdb;
	bool saving;
};

static void save_main(struct task *t, void *arg)
{
	struct server *s = arg;
	struct open_file *f = task_open(t, s->rdb);

	for (uint32_t i = 0; i < s->pages; i++) {
		task_touch(t, s->addr + i, TASK_LOAD);
		task_compute(t, s->save_page_ns);
		task_write(t, f, i, 1);
	}
	task_close(t, f);
	s->saving = false;
}

static void server_main(struct task *t, void *arg)
{
	struct server *s = arg;
	uint64_t start;

	s->addr = task_map_anon(t, s->pages, 0);
	for (uint32_t i = 0; i < s->pages; i++)
		task_touch(t, s->addr + i, TASK_STORE);
	s->saving = s->saves;
	if (s->saves)
		task_fork(t, save_main, s);
	start = task_now(t);
	for (uint64_t i = 0; i < s->requests; i++) {
		uint32_t value = s->table + splitmix64_below(&s->rng, s->pages - s->table);

		task_touch(t, s->addr + splitmix64_below(&s->rng, s->table), TASK_LOAD);
		task_touch(t, s->addr + value, s->saving ? TASK_LOAD : TASK_STORE);
		task_compute(t, s->request_ns);
	}
	s->ns = task_now(t) - start;
	task_wait_children(t);
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : run->demo ? 32 : 8;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = MEMORY_PAGES / part,
		.cpus = (uint32_t)run->params[CPUS],
		.scale = part,
		.seed = run->seed,
		.swap = MACHINE_ZRAM,
		.swap_pages = ZRAM_PAGES / part,
		.caps = FOLIAGE_LRU_GEN_CORE,
		.born_old = true,
		.kernel_stats = true,
	};
	struct server s = {
		.saves = run->which == BGSAVE,
		.pages = DATA_PAGES / part,
		.table = MAX((uint32_t)(run->params[TABLE_PART] * DATA_PAGES / part), 1u),
		.request_ns = (uint64_t)run->params[REQUEST_NS],
		.save_page_ns = (uint64_t)run->params[SAVE_PAGE_NS],
		.requests = REQUESTS / part,
		.rng = run->seed,
	};
	int r = machine_create(&options, &s.m, err);

	if (r)
		return r;
	s.rdb = machine_file(s.m, 0);
	if (s.rdb < 0 || !machine_spawn(s.m, 0, server_main, &s))
		r = err_set(err, -ENOMEM, "out of memory");
	else
		r = machine_run(s.m, 0, run->stopped);
	if (r && machine_oom(s.m)[0])
		err_set(err, r, "%s", machine_oom(s.m));
	if (!r) {
		out[0] = (double)s.requests / ((double)s.ns / 1e9);
		out[1] = (double)machine_stat(s.m, MACHINE_PSWPIN) * part;
		out[2] = (double)machine_stat(s.m, MACHINE_PSWPOUT) * part;
	}
	machine_destroy(s.m);
	return r;
}

static const struct grid_kind kind = {
	.suite = &suite_valkey,
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

const struct suite suite_valkey = {
	.name = "valkey",
	.summary = "uniform GETs on compressed swap, with and without a saving child",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
