/* SPDX-License-Identifier: MIT
 *
 * Suite cassandra: reads of partitions out of mapped tables, where what fault readahead brought in
 * is used soon.
 *
 * The real one: a Cassandra benchmark of the readahead-protection thread; throughput and p99 were
 * published as ranges, the configuration was not.
 *
 * Modelled: one process whose threads serve clients in a closed loop. A request looks up a page of
 * the partition index and reads rows of one partition, both in tables mapped without advice, as
 * Cassandra maps them. Partitions are several pages long and a request reads a slice of one, so
 * that the next request for the same partition wants pages next to the last one's: what readahead
 * brought in. The heap is locked, as Cassandra locks it at start.
 *
 * Left out: writes, commit log, compaction, garbage collection, the network (in the time of a
 * request), Bloom filters and summaries (in the heap).
 *
 * Parameters: none was published, the table below has the free ones. The group's limit is 4 GiB
 * with --full, else a thirty-second of it, modelled as 4 GiB. Counted: 10 requests for each page of
 * the limit, after a warm-up of 5 for each. No policy's figure is fitted; fg's is a prediction, the
 * thread asked for it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"
#include "workload/latency.h"
#include "workload/scene.h"
#include "workload/zipf_fio.h"

enum {
	FULL_PAGES = 1048576,
	CLIENTS_MAX = 512,
	INDEX_ENTRIES = 64, /* of a page: key, offset and length in 64 bytes */
};

enum param { DB_LIMITS, THETA, PARTITION, SLICE, HEAP_SHARE, CLIENTS, REQUEST_NS, CPUS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[DB_LIMITS] = {"db_limits", 4, 0.75, 64, "assumed: size of the tables / the group's limit"},
	[THETA] = {"theta", 0.99, 0.01, 1.2, "assumed: YCSB's constant"},
	[PARTITION] = {"partition_pages", 16, 1, 256,
		       "assumed: 64 KiB, the threshold of Cassandra's own index of a partition"},
	[SLICE] = {"slice_pages", 1, 1, 16, "assumed: a few rows"},
	[HEAP_SHARE] = {"heap_share", 0.25, 0, 0.5,
			"Cassandra's default heap: a quarter of memory up to 8 GiB"},
	[CLIENTS] = {"clients", 64, 1, CLIENTS_MAX, "assumed: a thread for each"},
	[REQUEST_NS] = {"request_ns", 200000, 0, 0, "assumed: CPU time of a read"},
	[CPUS] = {"cpus", 16, 1, 64, "assumed"},
};

static const char *const cases[] = {"first-report"};
enum { OPS_LOW, OPS_HIGH, P99_LOW, P99_HIGH, REFAULTS, MAJOR };
static const struct grid_metric metrics[] = {
	[OPS_LOW] = {"ops_per_s_low", 0},   [OPS_HIGH] = {"ops_per_s_high", 0},
	[P99_LOW] = {"p99_ms_low", 2},      [P99_HIGH] = {"p99_ms_high", 2},
	[REFAULTS] = {"refault_per_op", 4}, [MAJOR] = {"majfault_per_op", 4},
};

struct server {
	struct machine *m;
	const double *params;
	uint32_t partitions, partition, slice, heap;
	int index, data;
	uint64_t index_addr, data_addr;
	struct zipf_fio_dist dist;
	uint64_t warm, requests; /* of a client */
	uint64_t seed;
	struct client *clients;
	uint32_t nr_clients, ready;
	uint64_t since, end;
	int64_t refaults;
	uint64_t major;
	struct latency latency;
};

struct client {
	struct server *s;
	struct zipf_fio keys;
	uint64_t rng;
};

static void request(struct task *t, struct client *c)
{
	struct server *s = c->s;
	uint64_t partition = zipf_fio_next(&c->keys);
	uint32_t at = splitmix64_below(&c->rng, s->partition - s->slice + 1);

	task_touch(t, s->index_addr + partition / INDEX_ENTRIES, TASK_LOAD);
	for (uint32_t i = 0; i < s->slice; i++)
		task_touch(t, s->data_addr + partition * s->partition + at + i, TASK_LOAD);
	task_compute(t, (uint64_t)s->params[REQUEST_NS]);
}

static void client_main(struct task *t, void *arg)
{
	struct client *c = arg;
	struct server *s = c->s;

	for (uint64_t i = 0; i < s->warm + s->requests; i++) {
		uint64_t start = task_now(t);

		if (i == s->warm && !s->since) {
			s->since = start;
			s->refaults = machine_engine_stat(s->m, 0, STAT_REFAULT_FILE);
			s->major = machine_stat(s->m, MACHINE_PGMAJFAULT);
		}
		request(t, c);
		if (s->since)
			latency_add(&s->latency, task_now(t) - start);
	}
	s->end = MAX(s->end, task_now(t));
}

static void server_main(struct task *t, void *arg)
{
	struct server *s = arg;
	uint64_t heap = s->heap ? task_map_anon(t, s->heap, MAPPING_MLOCK) : 0;

	for (uint32_t i = 0; i < s->heap; i++)
		task_touch(t, heap + i, TASK_STORE);
	s->index_addr = task_map_file(t, s->index, 0, s->partitions / INDEX_ENTRIES + 1, 0);
	s->data_addr = task_map_file(t, s->data, 0, s->partitions * s->partition, 0);
	for (uint32_t i = 0; i < s->nr_clients; i++)
		task_thread(t, client_main, &s->clients[i]);
}

static int set_up(struct server *s, uint32_t limit, struct err *err)
{
	int group = machine_memcg(s->m, 0, "cassandra", limit);

	s->partition = (uint32_t)s->params[PARTITION];
	s->slice = MIN((uint32_t)s->params[SLICE], s->partition);
	s->partitions = (uint32_t)(limit * s->params[DB_LIMITS] / s->partition);
	s->heap = (uint32_t)(limit * s->params[HEAP_SHARE]);
	s->nr_clients = (uint32_t)s->params[CLIENTS];
	s->index = machine_file(s->m, s->partitions / INDEX_ENTRIES + 1);
	s->data = machine_file(s->m, s->partitions * s->partition);
	s->clients = calloc(s->nr_clients, sizeof(*s->clients));
	if (group < 0 || s->index < 0 || s->data < 0 || !s->clients ||
	    zipf_fio_dist_init(&s->dist, s->partitions, s->params[THETA]) ||
	    !machine_spawn(s->m, (uint32_t)group, server_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < s->nr_clients; i++) {
		s->clients[i] = (struct client){.s = s, .rng = s->seed * CLIENTS_MAX + i};
		/* All clients share the hot partitions, each draws for itself. */
		zipf_fio_init(&s->clients[i].keys, &s->dist, "tables", (uint32_t)s->seed);
		s->clients[i].keys.s1 += 1000 * i;
	}
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : 32, limit = FULL_PAGES / part;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = 2 * limit,
		.cpus = (uint32_t)run->params[CPUS],
		.scale = part,
		.seed = run->seed,
		.kernel_stats = true,
	};
	struct server s = {.params = run->params, .seed = run->seed};
	uint64_t clients = (uint64_t)run->params[CLIENTS];
	int r = machine_create(&options, &s.m, err);

	s.warm = (uint64_t)limit * 5 / clients;
	s.requests = (uint64_t)limit * (run->demo ? 3 : 10) / clients;
	if (!r)
		r = set_up(&s, limit, err);
	if (!r)
		r = scene_run(s.m, run, err);
	if (!r) {
		double done = (double)(s.requests * clients);

		out[OPS_LOW] = out[OPS_HIGH] = done / ((double)(s.end - s.since) / 1e9);
		out[P99_LOW] = out[P99_HIGH] = latency_percentile(&s.latency, 99) / 1e6;
		out[REFAULTS] =
			(double)(machine_engine_stat(s.m, 0, STAT_REFAULT_FILE) - s.refaults) /
			done;
		out[MAJOR] = (double)(machine_stat(s.m, MACHINE_PGMAJFAULT) - s.major) / done;
	}
	machine_destroy(s.m);
	free(s.clients);
	return r;
}

static const char *const notes[] = {
	"published are ranges, low and high; measured is one number beside both",
	"fg on Cassandra was asked for and never published: its row is a prediction",
	"the configuration was not published: compare the ratios of the policies, not their rates",
	NULL,
};

static const struct grid_kind kind = {
	.suite = &suite_cassandra,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,mglru-revert,mglru-credit,mglru-quickfix,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_cassandra = {
	.name = "cassandra",
	.summary = "slices of partitions in mapped tables, where fault readahead is useful",
	.params = params,
	.nr_params = ARRAY_SIZE(params),
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
