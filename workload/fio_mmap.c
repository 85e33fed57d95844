/* SPDX-License-Identifier: MIT
 *
 * fio, ioengine=mmap: 16 jobs, each loading 4 KiB at zipf offsets out of a mapping of its own file of
 * 2560 MiB, in one memory group. As in the read() suite one job in a sixteenth of the limit stands
 * for all of them, at their modelled size.
 *
 * What is modelled: the mapping's page tables, faults, fault-around, read-around and when it gives
 * up, the group's limit and what it pays for besides file pages (page tables, index nodes, fio's own
 * memory), reclaim in the faulting task, the flushing of statistics every two seconds. What is left
 * out: kswapd (no node is short of memory), TLBs, which hide accesses to the hottest pages from the
 * accessed bit for as long as they stay in.
 *
 * The published length is 600 s, of which the default runs a part. Refaults of a shorter run cannot be
 * compared, because blocks that are read for the first time do not count as refaults and become rarer;
 * pages read from the device do not depend on that. So a part says: pages read a load in its second
 * half, when policies have settled, less the first reads a load of the whole run, whose expectation follows from the offsets' distribution.
 * --check-scale runs all of it and says how far off that is. At theta 1.4 the cache takes most of the
 * ramp to fill and several times that to settle: a part is no result, and says so.
 *
 * Every parameter: jobs, sizes, block size, theta, limits, ramp and run time are of the published
 * command line; fio's offsets are fio's own (zipf_fio.c). The ramp is 45 s of virtual time, most of
 * which the cache takes to fill at the device's rate. The number of loads that count is the published
 * rate times 600 s, for each policy its own rate.
 *
 * IOPS come from refaults by the model of iops.c, fitted on the classic LRU's published rows of the
 * same suite alone.
 */
#include "workload/fio_mmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "machine/machine.h"
#include "mm/types.h"
#include "workload/interval.h"
#include "workload/iops.h"
#include "workload/published.h"
#include "workload/suite_policies.h"
#include "workload/zipf_fio.h"

enum {
	JOBS = 16,
	FILE_PAGES = 655360, /* 2560 MiB */
	RAMP_S = 45,
	RUN_S = 600,
	GIB_PAGES = 262144,
	LOCK_RUN_S =
		345, /* ramp and run of the rerun, both inside the 355 s of perf lock contention */
	LOCK_RAMP_S = 15, /* 4 GiB are full after 13, and then waits are longest */
	LOCK_LOADS = 24000000,
	/* Two parameters of the lock rerun are fitted, on the classic LRU's 10 s alone: what a folio costs
	 * outside the lock; see docs/published.md. */
	LOCK_RMAP_NS = 1550,
	DEMO = 4,
	/* What a job takes of the limit, in pages, for good: the tables of its mapping; the nodes of its
	 * file's index, of 64 slots and 576 + 8 bytes, which hold a shadow where they hold no page; and
	 * fio itself, anonymous: 28 pages a job and 1329 that all share. scripts/measure-fio-memcg.sh counts
	 * on a real kernel; docs/published.md has what it found. */
	TABLES = FILE_PAGES / 512 + 4,
	NODES = FILE_PAGES / 64 + FILE_PAGES / 4096 + FILE_PAGES / 262144 + 1,
	NODE_BYTES = 584,
	KERNEL_PAGES = TABLES + NODES * NODE_BYTES / 4096,
	PROCESS_PAGES = 28 + 1329 / JOBS,
};

const struct suite_param fio_mmap_params[FIO_NR_PARAMS] = {
	[FIO_LOAD_NS] = {"load_ns", machine_fio_mmap_ns, 0, 0,
			 "780 ns a load of each job at 16G/1.4, less 0.00205 refaults of 194 us"},
	[FIO_DEVICE_NS] = {"device_ns", 194000, 1000, 0,
			   "12.1 us a page of 16 jobs in a closed loop"},
	[FIO_READAHEAD] = {"readahead_pages", 32, 1, 512, "Linux's default of 128 KiB"},
	[FIO_FAULT_AROUND] = {"fault_around_pages", 16, 1, 512, "Linux's default of 64 KiB"},
};

/* One policy in one case. */
struct cell {
	const struct fio_mmap_case *which;
	const struct policy_choice *policy;
	unsigned int run, jobs;
	bool lock;             /* the run that counts waits */
	uint64_t ramp;         /* ns that do not count */
	uint64_t total;        /* loads of a job that do */
	uint64_t part, length; /* of the default, and published */
	/* What came out: */
	bool done;
	double refaults;  /* a load */
	double estimate;  /* the same, from the default's part of the run */
	double lock_wait; /* of LOCK_RUN_S seconds */
};

struct fio_mmap {
	const struct fio_mmap_kind *kind;
	struct suite_options options;
	struct published published;
	struct iops_model model;
	struct suite_policies policies;
	struct cell *cells;
	size_t nr_cells;
};

/* ---- planning ---- */

static bool find(const struct fio_mmap *s, const struct fio_mmap_case *c, const char *metric,
		 const char *policy, double *value)
{
	return published_find(&s->published, s->kind->suite->name, c->name, metric, policy, value);
}

static int plan_cell(const struct fio_mmap *s, struct cell *cell, struct err *err)
{
	const struct fio_mmap_case *c = cell->which;
	bool whole = s->options.full || s->options.check_scale;
	double iops;

	if (!find(s, c, "iops", cell->policy->policy->name, &iops) &&
	    !find(s, c, "iops", "clru", &iops))
		return err_set(err, -ENOENT, "%s: nothing published for %s", s->kind->suite->name,
			       c->name);
	iops /= JOBS;
	cell->ramp = (uint64_t)RAMP_S * 1000000000;
	cell->length = (uint64_t)(iops * RUN_S);
	cell->part = cell->length / c->shorter / (s->options.demo && !whole ? DEMO : 1);
	cell->total = whole ? cell->length : cell->part;
	cell->jobs = 1;
	if (cell->lock) {
		cell->jobs = JOBS;
		cell->total = LOCK_LOADS / JOBS;
		cell->ramp = (uint64_t)LOCK_RAMP_S * 1000000000;
	}
	return 0;
}

static int plan(struct fio_mmap *s, struct err *err)
{
	const struct fio_mmap_kind *kind = s->kind;
	size_t max = (kind->nr_cases * s->options.runs + 1) * s->policies.nr;
	int r = 0;

	s->cells = calloc(max + 1, sizeof(*s->cells));
	if (!s->cells)
		return err_set(err, -ENOMEM, "%s: out of memory", kind->suite->name);
	for (size_t i = 0; i <= kind->nr_cases; i++) {
		const struct fio_mmap_case *c =
			i < kind->nr_cases ? &kind->cases[i] : kind->lock_case;
		unsigned int runs = i < kind->nr_cases ? s->options.runs : 1;

		if (!c || !suite_wants_theta(&s->options, c->theta) ||
		    (s->options.demo && c != &kind->cases[kind->demo_case]))
			continue;
		for (size_t k = 0; k < runs * s->policies.nr && !r; k++) {
			struct cell *cell = &s->cells[s->nr_cells++];

			*cell = (struct cell){
				.which = c,
				.policy = &s->policies.all[k % s->policies.nr],
				.run = (unsigned int)(k / s->policies.nr),
				.lock = i == kind->nr_cases,
			};
			r = plan_cell(s, cell, err);
		}
	}
	if (!r && !s->nr_cells && !s->options.lenient)
		return err_set(err, -EINVAL, "--theta: %s has no such case", kind->suite->name);
	return r;
}

static int fit(struct fio_mmap *s)
{
	double refaults[16], iops[16];
	size_t nr = 0;

	for (size_t i = 0; i < s->kind->nr_cases && nr < ARRAY_SIZE(iops); i++)
		if (!s->kind->cases[i].remark &&
		    find(s, &s->kind->cases[i], "iops", "clru", &iops[nr]) &&
		    find(s, &s->kind->cases[i], "refault_per_read", "clru", &refaults[nr]))
			nr++;
	return iops_model_fit(&s->model, refaults, iops, nr);
}

static int check_options(const struct fio_mmap *s, struct err *err)
{
	if (s->options.runs > JOBS)
		return err_set(err, -EINVAL, "--runs: fio has %d jobs to choose from", JOBS);
	return 0;
}

int fio_mmap_open(const struct fio_mmap_kind *kind, const struct suite_options *options,
		  void **state, struct err *err)
{
	struct fio_mmap *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, -ENOMEM, "%s: out of memory", kind->suite->name);
	s->kind = kind;
	s->options = *options;
	r = published_load(&s->published, err);
	if (!r)
		r = suite_policies_choose(&s->policies, kind->suite, SUITE_RUNS_ENGINE, options,
					  "clru,mglru,fg", err);
	if (!r)
		r = check_options(s, err);
	if (!r)
		r = plan(s, err);
	if (!r && fit(s))
		s->model = (struct iops_model){0}; /* too few rows: no rates */
	if (r) {
		fio_mmap_close(s);
		return r;
	}
	*state = s;
	return 0;
}

void fio_mmap_close(void *state)
{
	struct fio_mmap *s = state;

	suite_policies_free(&s->policies);
	free(s->cells);
	published_free(&s->published);
	free(s);
}

/* ---- running ---- */

struct job {
	const struct cell *cell;
	const struct fio_mmap_kind *kind;
	struct zipf_fio offsets;
	int file;
	uint64_t load_ns;
	/* When the ramp ended: */
	int64_t refaults;
	uint64_t loads, lock_wait, since;
	/* Half-way through the default's part, and at its end: */
	uint64_t pages, part_pages;
};

static void load(struct task *t, struct job *j, uint64_t addr)
{
	task_touch(t, addr + zipf_fio_next(&j->offsets), TASK_LOAD);
	task_compute(t, j->load_ns);
}

static void job_main(struct task *t, void *arg)
{
	struct job *j = arg;
	struct machine *m = task_machine(t);
	uint64_t addr = task_map_file(t, j->file, 0, FILE_PAGES, 0);

	if (task_kalloc(t, KERNEL_PAGES + PROCESS_PAGES, false))
		return;
	if (j->kind->random)
		task_madvise(t, addr, FILE_PAGES, ADVICE_RANDOM);
	for (; task_now(t) < j->cell->ramp; j->loads++)
		load(t, j, addr);
	j->refaults = machine_engine_stat(m, 0, STAT_REFAULT_FILE);
	j->lock_wait = machine_stat(m, MACHINE_LOCK_WAIT_NS);
	j->since = task_now(t);
	for (uint64_t i = 0; i < j->cell->total; i++) {
		if (i == j->cell->part / 2)
			j->pages = machine_stat(m, MACHINE_DISK_READ);
		if (i == j->cell->part)
			j->part_pages = machine_stat(m, MACHINE_DISK_READ);
		load(t, j, addr);
	}
	if (j->cell->total <= j->cell->part)
		j->part_pages = machine_stat(m, MACHINE_DISK_READ);
}

/* fio numbers its copies 1, N, N-1, ... 2. */
static void start_job(struct job *j, const struct zipf_fio_dist *dist, unsigned int number)
{
	char name[32];

	snprintf(name, sizeof(name), "read.%u.0", number);
	zipf_fio_init(&j->offsets, dist, name, number ? JOBS + 1 - number : 1);
}

static double param(const struct fio_mmap *s, enum fio_mmap_param which)
{
	return suite_param(s->kind->suite, &s->options, which);
}

/* First reads a load that are expected of the published length. */
static int first_reads(const struct cell *cell, const struct job *job,
		       const struct zipf_fio_dist *dist, double *share)
{
	double *p = malloc(dist->n * sizeof(*p));

	if (!p)
		return -ENOMEM;
	zipf_fio_probabilities(dist, p);
	*share = zipf_fio_first_reads(p, dist->n, (double)job->loads, (double)cell->length) /
		 (double)cell->length;
	free(p);
	return 0;
}

static int measure(struct machine *m, struct cell *cell, const struct job *job,
		   const struct zipf_fio_dist *dist, struct err *err)
{
	double seconds = (double)(machine_now(m) - job->since) / 1e9, first;
	uint64_t waited = machine_stat(m, MACHINE_LOCK_WAIT_NS) - job->lock_wait;

	cell->lock_wait = (double)job->lock_wait / 1e9 +
			  (double)waited / 1e9 * (LOCK_RUN_S - LOCK_RAMP_S) / seconds;
	if (!cell->lock) {
		if (first_reads(cell, job, dist, &first))
			return err_set(err, -ENOMEM, "out of memory");
		cell->estimate = (double)(job->part_pages - job->pages) /
					 (double)(cell->part - cell->part / 2) -
				 first;
		cell->refaults =
			(double)(machine_engine_stat(m, 0, STAT_REFAULT_FILE) - job->refaults) /
			(double)cell->total;
		if (cell->total < cell->length)
			cell->refaults = cell->estimate;
	}
	cell->done = true;
	return 0;
}

static int simulate(const struct fio_mmap *s, struct cell *cell, struct job *jobs,
		    const struct zipf_fio_dist *dist, struct err *err)
{
	uint32_t room = cell->which->gib * GIB_PAGES / JOBS * cell->jobs;
	struct machine_device disk = machine_nvme;
	struct machine_costs costs = machine_costs_default;
	const struct machine_options options = {
		.policy = cell->policy->label,
		/* More than the group may use: the node never reclaims. */
		.memory = room + room / 4 + 8192,
		.cpus = cell->jobs,
		.scale = (double)JOBS / cell->jobs,
		.seed = cell->run + 1,
		.kernel_stats = true,
		.costs = &costs,
		.readahead = (uint32_t)param(s, FIO_READAHEAD),
		.fault_around = (uint32_t)param(s, FIO_FAULT_AROUND),
		.disk = &disk,
	};
	struct machine *m = NULL;
	int r, group;

	if (cell->lock)
		costs.rmap = LOCK_RMAP_NS;
	disk.latency = (uint64_t)param(s, FIO_DEVICE_NS);
	r = machine_create(&options, &m, err);
	if (r)
		return r;
	group = machine_memcg(m, 0, "fio", room);
	for (unsigned int i = 0; i < cell->jobs && !r; i++) {
		jobs[i] = (struct job){
			.cell = cell, .kind = s->kind, .load_ns = (uint64_t)param(s, FIO_LOAD_NS)};
		start_job(&jobs[i], dist, (cell->run + i) % JOBS);
		jobs[i].file = machine_file(m, FILE_PAGES);
		if (group < 0 || jobs[i].file < 0 ||
		    !machine_spawn(m, (uint32_t)group, job_main, &jobs[i]))
			r = err_set(err, -ENOMEM, "out of memory");
	}
	if (!r)
		r = machine_run(m, 0, s->options.stopped);
	if (r == -ENOMEM)
		err_set(err, r, "%s", machine_oom(m));
	if (!r)
		r = measure(m, cell, &jobs[0], dist, err);
	machine_destroy(m);
	return r;
}

size_t fio_mmap_tasks(const void *state)
{
	const struct fio_mmap *s = state;

	return s->nr_cells;
}

int fio_mmap_run(void *state, size_t task, struct err *err)
{
	const struct fio_mmap *s = state;
	struct cell *cell = &s->cells[task];
	struct job *jobs = calloc(JOBS, sizeof(*jobs));
	struct zipf_fio_dist dist;
	int r = jobs ? zipf_fio_dist_init(&dist, FILE_PAGES, cell->which->theta) : -ENOMEM;

	if (!r)
		r = simulate(s, cell, jobs, &dist, err);
	else
		err_set(err, r, "out of memory");
	free(jobs);
	return r;
}

/* ---- rows ---- */

struct result {
	struct interval refaults, estimate;
	double lock_wait; /* there is one run of it */
};

/* Over the runs; false: there was none. */
static bool over_runs(const struct fio_mmap *s, const struct fio_mmap_case *c,
		      const struct policy_choice *policy, bool lock, struct result *result)
{
	*result = (struct result){0};
	for (size_t i = 0; i < s->nr_cells; i++) {
		const struct cell *cell = &s->cells[i];

		if (!cell->done || cell->which != c || cell->policy != policy || cell->lock != lock)
			continue;
		interval_add(&result->refaults, cell->refaults);
		interval_add(&result->estimate, cell->estimate);
		result->lock_wait = cell->lock_wait;
	}
	return result->refaults.n > 0;
}

static struct suite_row *add_row(const struct fio_mmap *s, const struct fio_mmap_case *c,
				 const char *metric, const char *policy, double measured,
				 int decimals, struct suite_report *report)
{
	struct suite_row *row = suite_report_row(report);

	if (!row)
		return NULL;
	row->suite = s->kind->suite->name;
	snprintf(row->case_name, sizeof(row->case_name), "%s", c->name);
	snprintf(row->metric, sizeof(row->metric), "%s", metric);
	snprintf(row->policy, sizeof(row->policy), "%s", policy);
	row->measured = measured;
	row->decimals = decimals;
	return row;
}

static int policy_rows(const struct fio_mmap *s, const struct fio_mmap_case *c,
		       const struct policy_choice *policy, struct suite_report *report)
{
	const char *name = policy->policy->name;
	struct result result;
	struct suite_row *row;

	if (!over_runs(s, c, policy, false, &result))
		return 0;
	row = add_row(s, c, "refault_per_read", policy->label, result.refaults.mean, 5, report);
	if (!row)
		return -ENOMEM;
	row->has_published = find(s, c, row->metric, name, &row->published);
	if (result.refaults.n >= INTERVAL_RUNS &&
	    !add_row(s, c, "refault_per_read_ci95", policy->label, interval_half(&result.refaults),
		     5, report))
		return -ENOMEM;
	if (s->options.check_scale &&
	    (!add_row(s, c, "refault_per_read_default", policy->label, result.estimate.mean, 5,
		      report) ||
	     !add_row(s, c, "default_deviation", policy->label,
		      result.estimate.mean / result.refaults.mean - 1, 4, report)))
		return -ENOMEM;
	if (s->model.device <= 0 || c->remark)
		return 0;
	row = add_row(s, c, "iops", policy->label,
		      iops_model_predict(&s->model, result.refaults.mean), 0, report);
	if (!row)
		return -ENOMEM;
	row->has_published = find(s, c, row->metric, name, &row->published);
	return 0;
}

static int ratio_row(const struct fio_mmap *s, const struct fio_mmap_case *c,
		     const struct policy_choice *a, const struct policy_choice *b,
		     struct suite_report *report)
{
	struct result ra, rb;
	double pa, pb;
	char label[192];
	struct suite_row *row;

	if (!over_runs(s, c, a, false, &ra) || !over_runs(s, c, b, false, &rb) ||
	    rb.refaults.mean <= 0 ||
	    (size_t)snprintf(label, sizeof(label), "%s/%s", a->label, b->label) >= sizeof(label))
		return 0;
	row = add_row(s, c, "refault_per_read_ratio", label, ra.refaults.mean / rb.refaults.mean, 4,
		      report);
	if (!row)
		return -ENOMEM;
	row->has_published = find(s, c, "refault_per_read", a->policy->name, &pa) &&
			     find(s, c, "refault_per_read", b->policy->name, &pb);
	if (row->has_published)
		row->published = pa / pb;
	return 0;
}

static int case_rows(const struct fio_mmap *s, const struct fio_mmap_case *c,
		     struct suite_report *report)
{
	int r = 0;

	for (size_t i = 0; i < s->policies.nr && !r; i++)
		r = policy_rows(s, c, &s->policies.all[i], report);
	for (size_t i = 1; i < s->policies.nr && s->policies.nr <= 4 && !r; i++)
		for (size_t k = 0; k < i && !r; k++)
			r = ratio_row(s, c, &s->policies.all[i], &s->policies.all[k], report);
	return r;
}

/* The published waits are rounded ("~10 s") and stand in no table. */
static int lock_rows(const struct fio_mmap *s, struct suite_report *report)
{
	static const struct {
		const char *policy;
		double seconds;
	} waits[] = {{"clru", 10}, {"mglru", 75}, {"fg", 78}};

	for (size_t i = 0; i < s->policies.nr; i++) {
		struct result result;
		struct suite_row *row;

		if (!over_runs(s, s->kind->lock_case, &s->policies.all[i], true, &result))
			continue;
		row = add_row(s, s->kind->lock_case, "lock_wait_s", s->policies.all[i].label,
			      result.lock_wait, 2, report);
		if (!row)
			return -ENOMEM;
		for (size_t k = 0; k < ARRAY_SIZE(waits); k++)
			if (!strcmp(waits[k].policy, s->policies.all[i].policy->name)) {
				row->published = waits[k].seconds;
				row->has_published = true;
			}
	}
	return 0;
}

int fio_mmap_report(const void *state, struct suite_report *report)
{
	const struct fio_mmap *s = state;
	int r = suite_policies_note(&s->policies, s->kind->suite->name, report);

	if (!s->nr_cells)
		return r;
	for (size_t i = 0; i < s->kind->nr_cases && !r; i++)
		r = case_rows(s, &s->kind->cases[i], report);
	if (!r && s->kind->lock_case)
		r = lock_rows(s, report);
	if (!r)
		r = suite_report_note(report,
				      "%s: one of %d jobs in a sixteenth of the limit, memory "
				      "modelled %d times that",
				      s->kind->suite->name, JOBS, JOBS);
	for (size_t i = 0; i < s->kind->nr_cases && !r; i++) {
		const struct fio_mmap_case *c = &s->kind->cases[i];

		if (s->options.demo && i != s->kind->demo_case)
			continue;
		if (suite_wants_theta(&s->options, c->theta) && c->remark)
			r = suite_report_note(report, "%s %s: %s", s->kind->suite->name, c->name,
					      c->remark);
		if (suite_wants_theta(&s->options, c->theta) && c->unfilled && !s->options.full &&
		    !s->options.check_scale && !r)
			r = suite_report_note(report,
					      "%s %s: NO RESULT: 1/%u of the published length, in "
					      "which the cache does not settle (--full: all of it)",
					      s->kind->suite->name, c->name,
					      c->shorter * (s->options.demo ? DEMO : 1));
	}
	if (!r && s->model.device > 0)
		r = suite_report_note(report,
				      "%s iops: 1 / (hit + refaults * page), fitted on clru's "
				      "published rows alone: "
				      "hit %.1f ns, page %.2f us",
				      s->kind->suite->name, s->model.hit * 1e9,
				      s->model.device * 1e6);
	return r;
}
