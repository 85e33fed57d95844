/* SPDX-License-Identifier: MIT
 *
 * A phone under memory pressure. Applications and browser tabs are brought to the front one after
 * another, round after round. One that comes to the front runs code of its own and of the shared
 * libraries, goes through what it keeps in memory, hot parts more than cold ones, reads something
 * new, and gives back what it only needed meanwhile; then it waits in the background until its next
 * turn.
 *
 * Modelled: code mapped executable, libraries mapped by all, private memory on compressed swap,
 * files that are read once per session, small writes, memory that the kernel, the graphics and the
 * camera hold.
 *
 * Left out: the killing of applications (keep-alive was the same with every kernel), MADV_COLD by
 * the platform, jank, services in the background.
 */
#include "workload/android.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"

enum {
	MIB = 256, /* pages */
	APPS = 54, /* 34 and 20 tabs */
	ROUNDS = 16,
	MEMORY_MIB = 16384,
	ZRAM_MIB = 8192,
	CPUS = 8,
	HOUR_S = 3600,
	GROUPS = 64,
};

const struct suite_param android_params[ANDROID_NR_PARAMS] = {
	[ANDROID_ANON_MIB] = {"anon_mib", 260, 32, 600,
			      "private memory of an application, on average: assumed, so that zram "
			      "nearly fills as published"},
	[ANDROID_FILE_MIB] = {"file_mib", 110, 8, 600, "code and resources of one: assumed"},
	[ANDROID_SHARED_MIB] = {"shared_mib", 700, 32, 4000,
				"libraries and framework that all map: assumed"},
	[ANDROID_KERNEL_MIB] = {"kernel_mib", 4096, 0, 8192,
				"kernel, graphics, carve-outs: assumed a quarter of memory"},
	[ANDROID_HOT_SHARE] = {"hot_share", 0.3, 0.05, 1,
			       "part of its memory that every session uses: assumed"},
	[ANDROID_COLD_STRIDE] = {"cold_stride", 64, 2, 1024,
				 "of so many other pages one: assumed, as the next"},
	[ANDROID_COLD_MIB] = {"cold_mib", 30, 1, 200, "read once in a session: assumed"},
	[ANDROID_ZRAM_RATIO] = {"zram_ratio", 2.8, 1.5, 6, "assumed: lz4 on phones' memory"},
	[ANDROID_SWAPPINESS] = {"swappiness", 100, 1, 200, "assumed: Android's usual value"},
	[ANDROID_SHUFFLED] = {"shuffled", 0, 0, 1,
			      "1: applications come in another order every round: the published "
			      "rounds are taken to be alike"},
	[ANDROID_SESSION_CPU] = {"session_cpu_s", 30, 1, 40,
				 "CPU time of a session: 8 CPUs busy for an hour of 864"},
};

const struct grid_metric android_metrics[ANDROID_NR_METRICS] = {
	{"workingset_refault_anon", 0},
	{"workingset_refault_file", 0},
	{"pgscan_anon", 0},
	{"pgsteal_anon", 0},
	{"pgscan_file", 0},
	{"pgsteal_file", 0},
	{"pswpout", 0},
	{"pgpgin", 0},
	{"pgmajfault", 0},
	{"pgpgout", 0},
	{"allocstall", 0},
	{"stall_s", 2},
};

struct phone {
	struct machine *m;
	const double *params;
	uint64_t seed;
	uint32_t part, shared_pages, cold_pages;
	int shared;
	uint8_t turn[ROUNDS][APPS]; /* of each application in a round */
};

struct app {
	struct phone *p;
	uint32_t nr, anon, code;
	int file, fresh, written;
	uint64_t anon_addr, code_addr, shared_addr, rng;
};

static uint32_t part_of(const struct phone *p, double mib)
{
	return MAX((uint32_t)(mib * MIB / p->part), 1u);
}

/* Each page of the hot front, and one of so many behind it. */
static void visit(struct task *t, struct app *a, uint64_t addr, uint32_t pages,
		  enum task_access access)
{
	uint32_t front = (uint32_t)(pages * a->p->params[ANDROID_HOT_SHARE]);
	uint32_t stride = 2 * (uint32_t)a->p->params[ANDROID_COLD_STRIDE];

	for (uint32_t i = 0; i < front; i++)
		task_touch(t, addr + i, access == TASK_STORE && i % 3 ? TASK_LOAD : access);
	for (uint32_t i = front; i < pages; i += 1 + splitmix64_below(&a->rng, stride))
		task_touch(t, addr + i, access);
}

static void session(struct task *t, struct app *a, uint32_t round)
{
	struct phone *p = a->p;
	uint64_t cpu = (uint64_t)(p->params[ANDROID_SESSION_CPU] * 1e9 / p->part / CPUS / 4);
	uint32_t temporary = a->anon / 8;
	struct open_file *f;
	uint64_t addr;

	visit(t, a, a->code_addr, a->code, TASK_EXEC);
	visit(t, a, a->shared_addr, p->shared_pages, TASK_EXEC);
	task_compute(t, cpu);
	visit(t, a, a->anon_addr, a->anon, TASK_STORE);
	task_compute(t, cpu);
	f = task_open(t, a->fresh);
	task_read(t, f, round * p->cold_pages, p->cold_pages);
	task_close(t, f);
	addr = task_map_anon(t, temporary, 0);
	for (uint32_t i = 0; i < temporary; i++)
		task_touch(t, addr + i, TASK_STORE);
	task_compute(t, cpu);
	f = task_open(t, a->written);
	task_write(t, f, 0, MAX(p->cold_pages / 8, 1u));
	task_close(t, f);
	task_unmap(t, addr, temporary);
	task_compute(t, cpu);
}

static void app_main(struct task *t, void *arg)
{
	struct app *a = arg;
	struct phone *p = a->p;
	uint64_t slot = (uint64_t)HOUR_S * 1000000000 / p->part / ROUNDS / APPS;

	a->code_addr = task_map_file(t, a->file, 0, a->code, MAPPING_EXEC);
	a->shared_addr = task_map_file(t, p->shared, 0, p->shared_pages, MAPPING_EXEC);
	a->anon_addr = task_map_anon(t, a->anon, 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t turn = (round * APPS + p->turn[round][a->nr]) * slot;

		if (task_now(t) < turn)
			task_sleep(t, turn - task_now(t));
		if (!round)
			for (uint32_t i = 0; i < a->anon; i++)
				task_touch(t, a->anon_addr + i, TASK_STORE);
		session(t, a, round);
	}
}

static void kernel_main(struct task *t, void *arg)
{
	const struct phone *p = arg;

	task_kalloc(t, part_of(p, p->params[ANDROID_KERNEL_MIB]), false);
}

/* A fixed order, or each round shuffled for itself. */
static void draw_turns(struct phone *p, bool shuffled)
{
	uint64_t rng = p->seed;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint8_t *turn = p->turn[round];

		for (uint32_t i = 0; i < APPS; i++) {
			uint32_t k = shuffled ? splitmix64_below(&rng, i + 1) : i;

			turn[i] = turn[k];
			turn[k] = (uint8_t)i;
		}
	}
}

static int add_app(struct phone *p, struct app *a, uint32_t nr, bool groups)
{
	char name[16] = "app00";
	int group = 0;

	a->p = p;
	a->nr = nr;
	a->rng = p->seed * APPS + nr;
	/* From half to one and a half of the mean. */
	a->anon = part_of(p, p->params[ANDROID_ANON_MIB] * (0.5 + splitmix64_unit(&a->rng)));
	a->code = part_of(p, p->params[ANDROID_FILE_MIB] * (0.5 + splitmix64_unit(&a->rng)));
	a->file = machine_file(p->m, a->code);
	a->fresh = machine_file(p->m, p->cold_pages * ROUNDS);
	a->written = machine_file(p->m, 1);
	name[3] = (char)('0' + nr / 10);
	name[4] = (char)('0' + nr % 10);
	if (groups)
		group = machine_memcg(p->m, 0, name, FOLIAGE_UNLIMITED);
	if (group < 0 || a->file < 0 || a->fresh < 0 || a->written < 0)
		return -ENOMEM;
	machine_memcg_set(p->m, (uint32_t)group, FOLIAGE_SWAPPINESS,
			  (uint64_t)p->params[ANDROID_SWAPPINESS]);
	return machine_spawn(p->m, (uint32_t)group, app_main, a) ? 0 : -ENOMEM;
}

static void measure(const struct phone *p, double *out)
{
	static const int items[] = {STAT_REFAULT_ANON, STAT_REFAULT_FILE, STAT_PGSCAN_ANON,
				    STAT_PGSTEAL_ANON, STAT_PGSCAN_FILE,  STAT_PGSTEAL_FILE};
	static const enum machine_stat stats[] = {MACHINE_PSWPOUT, MACHINE_PGPGIN,
						  MACHINE_PGMAJFAULT, MACHINE_PGPGOUT,
						  MACHINE_ALLOCSTALL};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		out[n++] = (double)machine_engine_stat(p->m, 0, items[i]) * p->part;
	for (size_t i = 0; i < ARRAY_SIZE(stats); i++)
		out[n++] = (double)machine_stat(p->m, stats[i]) * p->part;
	out[n] = (double)machine_stat(p->m, MACHINE_STALL_NS) / 1e9 * p->part;
}

int android_run(const struct grid_run *run, bool groups, double *out, struct err *err)
{
	uint32_t part = run->full ? 1 : run->demo ? 128 : 64;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = MEMORY_MIB * MIB / part,
		.cpus = CPUS,
		.max_memcgs = GROUPS,
		.scale = part,
		.seed = run->seed,
		.swap = MACHINE_ZRAM,
		.swap_pages = ZRAM_MIB * MIB / part,
		.zram_ratio = run->params[ANDROID_ZRAM_RATIO],
		.born_old = true,
		.kernel_stats = true,
	};
	struct phone p = {.params = run->params, .seed = run->seed, .part = part};
	struct app *apps = calloc(APPS, sizeof(*apps));
	int r = apps ? machine_create(&options, &p.m, err) : err_set(err, -ENOMEM, "out of memory");

	if (!r) {
		p.shared_pages = part_of(&p, run->params[ANDROID_SHARED_MIB]);
		p.cold_pages = part_of(&p, run->params[ANDROID_COLD_MIB]);
		draw_turns(&p, run->params[ANDROID_SHUFFLED] > 0);
		p.shared = machine_file(p.m, p.shared_pages);
		if (p.shared < 0 || !machine_spawn(p.m, 0, kernel_main, &p))
			r = err_set(err, -ENOMEM, "out of memory");
		for (uint32_t i = 0; i < APPS && !r; i++)
			if (add_app(&p, &apps[i], i, groups))
				r = err_set(err, -ENOMEM, "out of memory");
	}
	if (!r)
		r = scene_run(p.m, run, err);
	if (!r)
		measure(&p, out);
	machine_destroy(p.m);
	free(apps);
	return r;
}
