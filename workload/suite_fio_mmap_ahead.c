/* SPDX-License-Identifier: MIT
 *
 * Suite fio-mmap-ahead: why refaults were published for fio through mmap that lie below what keeping
 * the likeliest pages for ever could reach.
 *
 * That bound supposes that all jobs load at one rate. They share one cache in a closed loop: a job whose
 * file is cached loads at the speed of memory, which keeps its pages young and the file cached; the
 * others wait for the device. Both states, all alike and a few ahead, last. The suite runs 16 jobs at
 * once, of which 0, 1 or 2 have read their file before the others start, and counts what all of them
 * do together afterwards.
 *
 * Sizes: everything is a sixteenth of the published run (files of 160 MiB, 1 GiB of memory) and modelled
 * at its size; zipf over fewer blocks is not the same zipf, so the numbers are of the right order and no
 * more. Left out and costs: as in fio_mmap.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "machine/machine.h"
#include "mm/types.h"
#include "workload/grid.h"
#include "workload/zipf_fio.h"

enum {
	JOBS = 16,
	PART = 16,
	FILE_PAGES = 655360 / PART,
	LIMIT = 4194304 / PART,
	RA_PAGES = 32,
};
static const uint64_t start_ns = 1000000000, ramp_ns = 2000000000, run_ns = 1000000000;

enum param { LOAD_NS, DEVICE_NS, NR_PARAMS };
static const struct suite_param params[NR_PARAMS] = {
	[LOAD_NS] = {"load_ns", machine_fio_mmap_ns, 0, 0, "as in fio-mmap"},
	[DEVICE_NS] = {"device_ns", 194000, 1000, 0, "as in fio-mmap"},
};

static const struct {
	double theta;
	unsigned int ahead;
} scenes[] = {{0.8, 0}, {0.8, 1}, {0.8, 2}, {1.1, 0}, {1.1, 1}};
static const char *const cases[] = {"0.8/none", "0.8/one", "0.8/two", "1.1/none", "1.1/one"};
static const struct grid_metric metrics[] = {
	{"refault_per_read", 5}, {"iops", 0}, {"fastest_share", 3}};

struct job {
	struct zipf_fio offsets;
	int file;
	bool ahead, first;
	uint64_t load_ns, loads;
	int64_t *refaults; /* of the group when the ramp ended */
};

static void run_until(struct task *t, struct job *j, uint64_t addr, uint64_t end)
{
	while (task_now(t) < end) {
		task_touch(t, addr + zipf_fio_next(&j->offsets), TASK_LOAD);
		task_compute(t, j->load_ns);
		j->loads++;
	}
}

static void job_main(struct task *t, void *arg)
{
	struct job *j = arg;
	uint64_t addr = task_map_file(t, j->file, 0, FILE_PAGES, 0);

	if (j->ahead) {
		struct open_file *f = task_open(t, j->file);

		for (uint32_t i = 0; i < FILE_PAGES; i += RA_PAGES)
			task_read(t, f, i, RA_PAGES);
		task_close(t, f);
		for (uint32_t i = 0; i < FILE_PAGES; i++)
			task_touch(t, addr + i, TASK_LOAD);
	} else {
		task_sleep(t, start_ns);
	}
	run_until(t, j, addr, start_ns + ramp_ns);
	j->loads = 0;
	if (j->first)
		*j->refaults = machine_engine_stat(task_machine(t), 0, STAT_REFAULT_FILE);
	run_until(t, j, addr, start_ns + ramp_ns + run_ns);
}

static int spawn(struct machine *m, struct job *jobs, const struct grid_run *run,
		 const struct zipf_fio_dist *dist, int64_t *refaults)
{
	int group = machine_memcg(m, 0, "fio", LIMIT);

	for (unsigned int i = 0; i < JOBS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "read.%u.0", i);
		jobs[i] = (struct job){
			.file = machine_file(m, FILE_PAGES),
			.ahead = i < scenes[run->which].ahead,
			.first = !i,
			.load_ns = (uint64_t)run->params[LOAD_NS],
			.refaults = refaults,
		};
		zipf_fio_init(&jobs[i].offsets, dist, name, i + (uint32_t)run->seed);
		if (group < 0 || jobs[i].file < 0 ||
		    !machine_spawn(m, (uint32_t)group, job_main, &jobs[i]))
			return -ENOMEM;
	}
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	struct machine_device disk = machine_nvme;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = LIMIT + LIMIT / 4 + 8192,
		.cpus = JOBS,
		.scale = PART,
		.seed = run->seed,
		.kernel_stats = true,
		.disk = &disk,
	};
	struct job jobs[JOBS];
	struct zipf_fio_dist dist;
	struct machine *m = NULL;
	int64_t refaults = 0;
	double loads = 0, most = 0;
	int r;

	disk.latency = (uint64_t)run->params[DEVICE_NS];
	if (zipf_fio_dist_init(&dist, FILE_PAGES, scenes[run->which].theta))
		return err_set(err, -EINVAL, "bad theta");
	r = machine_create(&options, &m, err);
	if (r)
		return r;
	r = spawn(m, jobs, run, &dist, &refaults);
	if (!r)
		r = machine_run(m, 0, run->stopped);
	for (unsigned int i = 0; i < JOBS; i++) {
		loads += (double)jobs[i].loads;
		most = MAX(most, (double)jobs[i].loads);
	}
	if (r == -ENOMEM)
		err_set(err, r, "%s", machine_oom(m)[0] ? machine_oom(m) : "out of memory");
	if (!r) {
		out[0] = (double)(machine_engine_stat(m, 0, STAT_REFAULT_FILE) - refaults) / loads;
		out[1] = loads / ((double)run_ns / 1e9);
		out[2] = most / loads;
	}
	machine_destroy(m);
	return r;
}

static const char *const notes[] = {
	"case: theta / jobs that have read their file before the others start; no published rows: "
	"see fio-mmap",
	NULL,
};

static const struct grid_kind kind = {
	.suite = &suite_fio_mmap_ahead,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "mglru,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(&kind, options, state, err);
}

const struct suite suite_fio_mmap_ahead = {
	.name = "fio-mmap-ahead",
	.summary = "16 fio jobs through mmap at once, a few of them ahead: two lasting states",
	.params = params,
	.nr_params = NR_PARAMS,
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
