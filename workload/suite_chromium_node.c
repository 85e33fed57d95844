/* SPDX-License-Identifier: MIT
 *
 * Suite chromium-node: many workers that render pages in fresh browser processes, on compressed
 * swap.
 *
 * The real one: Chromium and Node.js, 64 workers on a machine of 48 cores (96 threads) and 128 GB
 * with zram, total requests in an hour. What a request does was not published.
 *
 * Modelled: a worker is a Node.js process with a heap of its own. A request goes over the hot part
 * of the heap, starts a renderer: a process that executes the browser's binary, which all map,
 * reads assets from a disk cache that all share, fills private memory, goes over it a few times,
 * and exits.
 *
 * Left out: the browser process that stays, the network, JavaScript's collector.
 *
 * Parameters: workers, threads, memory and zram as published, the table has the free ones. By
 * default a hundred-and-twenty-eighth of every size and of the time; of the hour a sixtieth is run
 * after a warm-up as long, and the number of requests is that of the hour.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"
#include "workload/scene.h"
#include "workload/zipf_fio.h"

enum {
	MIB = 256, /* pages */
	WORKERS = 64,
	CPUS = 96,
	MEMORY_MIB = 131072,
	TEXT_MIB = 240, /* the browser's binary and its libraries */
	ASSET_PAGES = 8,
	SHARE_OF_HOUR = 60,
	PASSES = 2,
};

enum param {
	HEAP_MIB,
	HOT_SHARE,
	RENDERER_MIB,
	ASSETS_GIB,
	ASSETS,
	THETA,
	REQUEST_S,
	ZRAM_RATIO,
	NR_PARAMS
};
static const struct suite_param params[NR_PARAMS] = {
	[HEAP_MIB] =
		{"heap_mib", 2600, 256, 5000,
		 "a worker's memory: assumed, so that all of them take 1.3 times the machine's"},
	[HOT_SHARE] = {"hot_share", 0.2, 0.01, 1, "part of it that a request uses: assumed"},
	[RENDERER_MIB] = {"renderer_mib", 200, 16, 800, "private memory of a renderer: assumed"},
	[ASSETS_GIB] = {"assets_gib", 32, 1, 256, "the disk cache: assumed"},
	[ASSETS] = {"assets", 600, 32, 5000, "files of 32 KiB read by a request: assumed"},
	[THETA] = {"theta", 0.8, 0.3, 1.2, "how unlike the assets are: assumed"},
	[REQUEST_S] = {"request_s", 0.6, 0.05, 10, "CPU time of a request: assumed"},
	[ZRAM_RATIO] = {"zram_ratio", 3, 1.5, 6, "assumed"},
};

static const char *const cases[] = {"zram"};
enum { REQUESTS, PSWPIN, REFAULT_FILE, SYS };
static const struct grid_metric metrics[] = {
	[REQUESTS] = {"requests", 0},
	[PSWPIN] = {"pswpin_per_request", 0},
	[REFAULT_FILE] = {"refault_file_per_request", 0},
	[SYS] = {"sys_share", 4},
};

struct farm {
	struct machine *m;
	const double *params;
	uint32_t part, text, heap, hot, renderer, assets, nr_assets;
	uint64_t compute_ns, warm, until, requests;
	int binary, cache;
	struct zipf_fio_dist dist;
	int64_t refaults;
	uint64_t swapped, sys, user;
	bool counting;
};

struct worker {
	struct farm *f;
	struct zipf_fio names;
	uint64_t rng;
};

static void renderer_main(struct task *t, void *arg)
{
	struct worker *w = arg;
	struct farm *f = w->f;
	struct open_file *cache;
	uint64_t text, anon;

	text = task_map_file(t, f->binary, 0, f->text, MAPPING_EXEC);
	anon = task_map_anon(t, f->renderer, 0);
	/* The front half is what every renderer runs. */
	for (uint32_t i = 0; i < f->text; i += i < f->text / 2 ? 1 : 4)
		task_touch(t, text + i, TASK_EXEC);
	cache = task_open(t, f->cache);
	for (uint32_t i = 0; i < f->assets; i++)
		task_read(t, cache, (uint32_t)zipf_fio_next(&w->names) * ASSET_PAGES, ASSET_PAGES);
	task_close(t, cache);
	for (uint32_t pass = 0; pass < PASSES; pass++) {
		for (uint32_t i = 0; i < f->renderer; i++)
			task_touch(t, anon + i, TASK_STORE);
		task_compute(t, f->compute_ns / PASSES);
	}
}

static void start_counting(struct farm *f)
{
	f->counting = true;
	f->refaults = machine_engine_stat(f->m, 0, STAT_REFAULT_FILE);
	f->swapped = machine_stat(f->m, MACHINE_PSWPIN);
	f->sys = machine_stat(f->m, MACHINE_SYS_NS);
	f->user = machine_stat(f->m, MACHINE_USER_NS);
}

static void worker_main(struct task *t, void *arg)
{
	struct worker *w = arg;
	struct farm *f = w->f;
	uint64_t heap = task_map_anon(t, f->heap, 0);

	for (uint32_t i = 0; i < f->heap; i++)
		task_touch(t, heap + i, TASK_STORE);
	/* The time counts from when all have filled their heaps, about. */
	while (task_now(t) < f->until) {
		for (uint32_t i = 0; i < f->hot; i++)
			task_touch(t, heap + i, i % 4 ? TASK_LOAD : TASK_STORE);
		task_touch(t, heap + splitmix64_below(&w->rng, f->heap), TASK_LOAD);
		task_spawn(t, renderer_main, w);
		task_wait_children(t);
		if (task_now(t) < f->warm)
			continue;
		if (!f->counting)
			start_counting(f);
		f->requests++;
	}
	free(w);
}

static uint32_t part_of(const struct farm *f, double pages)
{
	return MAX((uint32_t)(pages / f->part), 1u);
}

static int set_up(struct farm *f, uint64_t seed, struct err *err)
{
	const double *p = f->params;

	f->text = part_of(f, TEXT_MIB * MIB);
	f->heap = part_of(f, p[HEAP_MIB] * MIB);
	f->hot = MAX((uint32_t)(f->heap * p[HOT_SHARE]), 1u);
	f->renderer = part_of(f, p[RENDERER_MIB] * MIB);
	f->assets = part_of(f, p[ASSETS]);
	f->nr_assets = part_of(f, p[ASSETS_GIB] * 1024 * MIB / ASSET_PAGES);
	f->compute_ns = (uint64_t)(p[REQUEST_S] * 1e9 / f->part);
	f->binary = machine_file(f->m, f->text);
	f->cache = machine_file(f->m, f->nr_assets * ASSET_PAGES);
	if (f->binary < 0 || f->cache < 0 || zipf_fio_dist_init(&f->dist, f->nr_assets, p[THETA]))
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct worker *w = malloc(sizeof(*w));

		if (!w || !machine_spawn(f->m, 0, worker_main, w)) {
			free(w);
			return err_set(err, -ENOMEM, "out of memory");
		}
		*w = (struct worker){.f = f, .rng = seed * WORKERS + i};
		zipf_fio_init(&w->names, &f->dist, "assets", (uint32_t)seed);
		w->names.s1 += 1000 * i;
	}
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : 128;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = MEMORY_MIB * MIB / part,
		.cpus = CPUS,
		.scale = part,
		.seed = run->seed,
		.swap = MACHINE_ZRAM,
		.swap_pages = 2 * MEMORY_MIB * MIB / part,
		.zram_ratio = run->params[ZRAM_RATIO],
		.kernel_stats = true,
	};
	struct farm f = {.params = run->params, .part = part};
	uint64_t hour = UINT64_C(3600000000000) / part, counted = hour / SHARE_OF_HOUR;
	int r = machine_create(&options, &f.m, err);

	f.warm = run->demo ? counted / 2 : counted;
	f.until = f.warm + (run->demo ? counted / 4 : counted);
	if (!r)
		r = set_up(&f, run->seed, err);
	if (!r)
		r = scene_run(f.m, run, err);
	if (!r) {
		double n = (double)MAX(f.requests, UINT64_C(1));
		double sys = (double)(machine_stat(f.m, MACHINE_SYS_NS) - f.sys);
		double user = (double)(machine_stat(f.m, MACHINE_USER_NS) - f.user);

		out[REQUESTS] = (double)f.requests * (double)hour / (double)(f.until - f.warm);
		out[PSWPIN] = (double)(machine_stat(f.m, MACHINE_PSWPIN) - f.swapped) * part / n;
		out[REFAULT_FILE] =
			(double)(machine_engine_stat(f.m, 0, STAT_REFAULT_FILE) - f.refaults) *
			part / n;
		out[SYS] = sys / MAX(sys + user, 1.0);
	}
	machine_destroy(f.m);
	return r;
}

static const char *const notes[] = {
	"what a request does was not published: compare the ratios of the policies",
	NULL,
};

static const struct grid_kind kind = {
	.suite = &suite_chromium_node,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "clru,mglru,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_chromium_node = {
	.name = "chromium-node",
	.summary = "64 workers that render pages in fresh processes, zram",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
