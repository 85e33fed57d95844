/* SPDX-License-Identifier: MIT
 *
 * Suites out of recordings: each traced process becomes a task of the simulated machine, which makes
 * its accesses in order.
 *
 * Modelled: reads go through the machine's readahead, one open file for each process and file;
 * loads, stores and instructions through mappings of the whole file, one executable and one plain
 * and private, and faults; memory of no file is anonymous, laid out as it was within 2 MiB, and goes
 * to compressed swap; a file that a process wrote before anybody read it grows as it is written. A
 * process begins when those have ended that had ended before its first record; with `jobs`, when fewer
 * than so many run and those have ended that wrote what it reads. Between its accesses a process computes for as long as the trace says, or
 * for a constant time when the trace has no times.
 *
 * Left out: what the recording does not have. Unmapping: memory is given back when the process ends.
 * Sharing of written mappings, and fork: a process begins with nothing. Directories and slab. Times
 * are those of the recorded computer's instructions, waits are the simulated one's.
 *
 * Two recordings are compiled in; scripts/record-real-*.sh made them.
 */
#include "workload/suite_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mm/types.h"
#include "workload/data.h"
#include "workload/scene.h"
#include "workload/script.h"

enum {
	PROGRAMS = 4, /* that have a metric of their own */
	NAME_BYTES = 40,
	AHEAD = 256, /* processes that a job slot looks at */
};

enum param {
	MEMORY_PART,
	SWAP_PART,
	JOBS,
	ROUNDS,
	CPUS,
	CPU_SCALE,
	THINK_NS,
	ZRAM_RATIO,
	NR_PARAMS
};

enum {
	REAL,
	SYS,
	STALL,
	PGPGIN,
	PGPGOUT,
	PSWPIN,
	PSWPOUT,
	MAJFAULT,
	REFAULT_FILE,
	REFAULT_ANON,
	ALLOCSTALL,
	NR_METRICS
};
static const struct grid_metric machine_metrics[NR_METRICS] = {
	[REAL] = {"real_s", 3},
	[SYS] = {"sys_s", 3},
	[STALL] = {"stall_s", 3},
	[PGPGIN] = {"pgpgin", 0},
	[PGPGOUT] = {"pgpgout", 0},
	[PSWPIN] = {"pswpin", 0},
	[PSWPOUT] = {"pswpout", 0},
	[MAJFAULT] = {"pgmajfault", 0},
	[REFAULT_FILE] = {"refault_file", 0},
	[REFAULT_ANON] = {"refault_anon", 0},
	[ALLOCSTALL] = {"allocstall", 0},
};

/* What a suite is made of. */
struct recording {
	const unsigned char *data; /* compiled in; NULL: a file */
	const size_t *bytes;
	const char *path;    /* or what stands for it in messages */
	bool programs_first; /* the times of programs are what it is about */
};

/* An open suite. */
struct recorded {
	struct script script;
	void *grid;
	struct grid_kind kind;
	struct grid_metric metrics[GRID_METRICS];
	char names[PROGRAMS][NAME_BYTES];                 /* of metrics: "cc1_ms" */
	size_t nr_programs, first_program, first_machine; /* places among the metrics */
	uint32_t memory;                                  /* pages; 0: by the parameter */
};

/* ---- running ---- */

struct actor {
	struct play *play;
	const struct script_process *process;
};

struct play {
	const struct recorded *recorded;
	const struct script *script;
	const double *params;
	struct machine *m;
	int *files; /* of the machine, -1: none */
	struct actor *actors;
	bool *begun, *ended; /* of each actor */
	uint32_t nr, first;  /* actors; the first that has not begun */
	uint32_t nr_begun, nr_ended;
	uint32_t prefix; /* all of the first `prefix` in the order of ends have ended */
	double ms[PROGRAMS];
	uint32_t timed[PROGRAMS];
};

static void begin_processes(struct play *p);

/* What a process has of a file. */
struct use {
	struct open_file *open;
	uint64_t plain, exec; /* where it is mapped, 0: not yet */
};

static uint64_t map_it(struct task *t, const struct play *p, const struct script_slot *slot,
		       unsigned int flags)
{
	uint64_t at = slot->pages
			      ? task_map_anon(t, slot->pages, 0)
			      : task_map_file(t, p->files[slot->file], 0,
					      MAX(p->script->files[slot->file].pages, 1u), flags);

	if (!at)
		task_exit(t);
	return at;
}

static void touch_step(struct task *t, const struct play *p, const struct script_slot *slot,
		       struct use *use, const struct script_step *step)
{
	const bool exec = step->op == TRACE_EXEC && !slot->pages;
	const enum task_access access = step->op == TRACE_EXEC    ? TASK_EXEC
					: step->op == TRACE_STORE ? TASK_STORE
								  : TASK_LOAD;
	uint64_t *at = exec ? &use->exec : &use->plain;

	if (!*at)
		*at = map_it(t, p, slot, exec ? MAPPING_EXEC : 0);
	for (uint32_t i = 0; i < step->nr; i++)
		task_touch(t, *at + step->page + i, access);
}

static void take_step(struct task *t, const struct play *p, const struct script_process *process,
		      struct use *uses, const struct script_step *step)
{
	const struct script_slot *slot = &process->slots[step->slot];
	struct use *use = &uses[step->slot];

	/* read() and write() of what is private memory by its name have no file to go to. */
	if (slot->pages || (step->op != TRACE_READ && step->op != TRACE_WRITE)) {
		touch_step(t, p, slot, use, step);
		return;
	}
	if (!use->open)
		use->open = task_open(t, p->files[slot->file]);
	if (!use->open)
		task_exit(t);
	if (step->op == TRACE_READ)
		task_read(t, use->open, step->page, step->nr);
	else
		task_write(t, use->open, step->page, step->nr);
}

static size_t program_of(const struct recorded *r, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < r->nr_programs; i++)
		if (!strncmp(r->names[i], name, length) && !strcmp(r->names[i] + length, "_ms"))
			return i;
	return SIZE_MAX;
}

/* The first process of each program finds nothing in memory and does not count, if others come. */
static void count_time(struct play *p, const struct script_process *process, uint64_t ns)
{
	size_t i = program_of(p->recorded, process->name);

	if (i == SIZE_MAX)
		return;
	if (p->timed[i]++ == 1)
		p->ms[i] = 0;
	p->ms[i] += (double)ns / 1e6;
}

static void actor_main(struct task *t, void *arg)
{
	const struct actor *a = arg;
	struct play *p = a->play;
	const struct script_process *process = a->process;
	const uint64_t think = p->script->timed ? 0 : (uint64_t)p->params[THINK_NS];
	struct use *uses = calloc(process->nr_slots + 1, sizeof(*uses));
	uint64_t start = task_now(t);

	for (uint64_t i = 0; uses && i < process->nr_steps; i++) {
		const struct script_step *step = &process->steps[i];

		if (step->op == TRACE_WORK) {
			task_compute(t, (uint64_t)(step->page * p->params[CPU_SCALE]));
			continue;
		}
		take_step(t, p, process, uses, step);
		if (think)
			task_compute(t, think);
	}
	for (uint32_t i = 0; uses && i < process->nr_slots; i++)
		if (uses[i].open)
			task_close(t, uses[i].open);
	free(uses);
	count_time(p, process, task_now(t) - start);
	p->ended[a - p->actors] = true;
	p->nr_ended++;
	begin_processes(p);
}

/* Whether all have ended that had ended before in the recording. */
static bool recorded_turn(struct play *p, uint32_t actor)
{
	const uint32_t n = p->script->nr_processes, round = actor / n;

	while (p->prefix < p->nr && p->ended[p->prefix / n * n + p->script->ends[p->prefix % n]])
		p->prefix++;
	return p->prefix >= round * n + p->actors[actor].process->after;
}

/* Whether those have ended that made what it reads. */
static bool has_inputs(const struct play *p, uint32_t actor)
{
	const struct script_process *process = p->actors[actor].process;
	const uint32_t n = p->script->nr_processes, round = actor / n;

	for (uint32_t i = 0; i < process->nr_slots; i++) {
		const struct script_slot *slot = &process->slots[i];
		uint32_t writer = slot->pages ? NO_WRITER : p->script->files[slot->file].writer;

		if (writer != NO_WRITER && p->script->processes[writer].rank < process->after &&
		    !p->ended[round * n + writer])
			return false;
	}
	return true;
}

static void begin(struct play *p, uint32_t actor)
{
	p->begun[actor] = true;
	p->nr_begun++;
	while (p->first < p->nr && p->begun[p->first])
		p->first++;
	/* Without memory for it the run ends early, which is seen at its end. */
	machine_spawn(p->m, 0, actor_main, &p->actors[actor]);
}

static void begin_processes(struct play *p)
{
	const uint32_t jobs = (uint32_t)p->params[JOBS];

	while (!jobs && p->first < p->nr && recorded_turn(p, p->first))
		begin(p, p->first);
	/* A job slot takes the next process that can begin, as make does. */
	for (uint32_t i = p->first; jobs && i < MIN(p->nr, p->first + AHEAD); i++) {
		if (p->nr_begun - p->nr_ended >= jobs)
			break;
		if (!p->begun[i] && has_inputs(p, i))
			begin(p, i);
	}
}

static int set_up(struct play *p, const struct script *s, struct err *err)
{
	p->nr = s->nr_processes * (uint32_t)p->params[ROUNDS];
	p->files = malloc((s->nr_files + 1) * sizeof(*p->files));
	p->actors = calloc(p->nr, sizeof(*p->actors));
	p->begun = calloc(p->nr, sizeof(*p->begun));
	p->ended = calloc(p->nr, sizeof(*p->ended));
	for (uint32_t i = 0; p->files && i < s->nr_files; i++) {
		p->files[i] = machine_file(p->m, s->files[i].from_start);
		if (p->files[i] < 0)
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (!p->files || !p->actors || !p->begun || !p->ended)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < p->nr; i++)
		p->actors[i] = (struct actor){p, &s->processes[i % s->nr_processes]};
	begin_processes(p);
	return 0;
}

static void measure(const struct play *p, double *out)
{
	const struct recorded *r = p->recorded;
	double *of_machine = out + r->first_machine, *of_programs = out + r->first_program;
	const struct machine *m = p->m;

	of_machine[REAL] = (double)machine_now(m) / 1e9;
	of_machine[SYS] = (double)machine_stat(m, MACHINE_SYS_NS) / 1e9;
	of_machine[STALL] = (double)machine_stat(m, MACHINE_STALL_NS) / 1e9;
	of_machine[PGPGIN] = (double)machine_stat(m, MACHINE_PGPGIN);
	of_machine[PGPGOUT] = (double)machine_stat(m, MACHINE_PGPGOUT);
	of_machine[PSWPIN] = (double)machine_stat(m, MACHINE_PSWPIN);
	of_machine[PSWPOUT] = (double)machine_stat(m, MACHINE_PSWPOUT);
	of_machine[MAJFAULT] = (double)machine_stat(m, MACHINE_PGMAJFAULT);
	of_machine[REFAULT_FILE] = (double)machine_engine_stat(m, 0, STAT_REFAULT_FILE);
	of_machine[REFAULT_ANON] = (double)machine_engine_stat(m, 0, STAT_REFAULT_ANON);
	of_machine[ALLOCSTALL] = (double)machine_stat(m, MACHINE_ALLOCSTALL);
	for (size_t i = 0; i < r->nr_programs; i++)
		of_programs[i] = p->ms[i] / MAX(p->timed[i] - (p->timed[i] > 1), 1u);
}

static uint32_t memory_of(const struct recorded *r, const double *params)
{
	double part = (double)r->script.touched * params[MEMORY_PART];

	return r->memory ? r->memory : (uint32_t)MIN(part + 0.5, 1e9);
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	const struct recorded *r = run->ctx;
	const uint32_t memory = memory_of(r, run->params);
	const struct machine_options options = {
		.policy = run->policy,
		.memory = memory,
		.cpus = (uint32_t)run->params[CPUS],
		.seed = run->seed,
		.swap = run->params[SWAP_PART] > 0 ? MACHINE_ZRAM : MACHINE_NO_SWAP,
		.swap_pages = (uint32_t)MIN(memory * run->params[SWAP_PART], 1e9),
		.zram_ratio = run->params[ZRAM_RATIO],
		.kernel_stats = true,
	};
	struct play p = {.recorded = r, .script = &r->script, .params = run->params};
	int code = machine_create(&options, &p.m, err);

	if (!code)
		code = set_up(&p, &r->script, err);
	if (!code)
		code = scene_run(p.m, run, err);
	if (!code && p.nr_ended < p.nr)
		code = err_set(err, -ENOMEM,
			       "%u of %u processes did not reach their end: out of memory",
			       p.nr - p.nr_ended, p.nr);
	if (!code)
		measure(&p, out);
	machine_destroy(p.m);
	free(p.files);
	free(p.actors);
	free(p.begun);
	free(p.ended);
	return code;
}

/* ---- the suite ---- */

static int load(const struct recording *recording, struct script *script, struct err *err)
{
	const struct trace_options options = {.work = true};
	struct trace *trace = NULL;
	int r = recording->data ? trace_open_memory(recording->data, *recording->bytes,
						    recording->path, &options, &trace, err)
				: trace_open(recording->path, &options, &trace, err);

	if (!r)
		r = script_load(script, trace, recording->path, err);
	trace_close(trace);
	return r;
}

/* The first few programs have a metric of their own. */
static void name_programs(struct recorded *r)
{
	for (uint32_t i = 0; i < r->script.nr_processes && r->nr_programs < PROGRAMS; i++) {
		const char *name = r->script.processes[i].name;

		if (*name && strlen(name) < NAME_BYTES - 4 && program_of(r, name) == SIZE_MAX)
			snprintf(r->names[r->nr_programs++], NAME_BYTES, "%s_ms", name);
	}
}

static void make_metrics(struct recorded *r, bool programs_first)
{
	r->first_program = programs_first ? 0 : 1;
	r->first_machine = programs_first ? r->nr_programs : 0;
	memcpy(r->metrics + r->first_machine, machine_metrics, sizeof(machine_metrics));
	if (!programs_first)
		r->first_program = NR_METRICS;
	for (size_t i = 0; i < r->nr_programs; i++)
		r->metrics[r->first_program + i] = (struct grid_metric){r->names[i], 2};
}

static const char *const cases[] = {"recorded"};

static void recorded_close(void *state)
{
	struct recorded *r = state;

	if (r->grid)
		grid_close(r->grid);
	script_free(&r->script);
	free(r);
}

static int recorded_open(const struct suite_options *options, void **state, struct err *err)
{
	const struct recording *recording = options->suite->data;
	struct recorded *r = calloc(1, sizeof(*r));
	int code = r ? load(recording, &r->script, err) : err_set(err, -ENOMEM, "out of memory");

	if (!code) {
		name_programs(r);
		make_metrics(r, recording->programs_first);
		r->memory = options->memory_part > 0
				    ? (uint32_t)MIN(
					      (double)r->script.touched * options->memory_part, 1e9)
				    : options->memory;
		r->kind = (struct grid_kind){
			.suite = options->suite,
			.cases = cases,
			.nr_cases = 1,
			.metrics = r->metrics,
			.nr_metrics = NR_METRICS + r->nr_programs,
			.policies = "clru,mglru,fg",
			.simulate = simulate,
			.ctx = r,
		};
		code = grid_open(&r->kind, options, &r->grid, err);
	}
	if (code && r)
		recorded_close(r);
	else
		*state = r;
	return code;
}

static size_t recorded_tasks(const void *state)
{
	return grid_tasks(((const struct recorded *)state)->grid);
}

static int recorded_run(void *state, size_t task, struct err *err)
{
	return grid_run(((struct recorded *)state)->grid, task, err);
}

static int recorded_report(const void *state, struct suite_report *report)
{
	const struct recorded *r = state;
	int code = grid_report(r->grid, report);
	double params[NR_PARAMS];

	for (size_t i = 0; i < NR_PARAMS; i++)
		params[i] = suite_param(r->kind.suite, grid_options(r->grid), i);
	if (!code)
		code = suite_report_note(
			report,
			"%s: %u processes, %llu page accesses, %.1f MiB touched in %.1f MiB of "
			"memory; %s",
			r->kind.suite->name, r->script.nr_processes,
			(unsigned long long)r->script.accesses, (double)r->script.touched / 256,
			(double)memory_of(r, params) / 256,
			r->script.timed ? "computing time as recorded"
					: "the trace has no times: think_ns between accesses");
	return code;
}

/* Values that differ from recording to recording; everything else is said once. */
#define RECORDING_PARAMS(memory, jobs, rounds)                                                     \
	{                                                                                          \
		[MEMORY_PART] = {"memory_part", memory, 0.01, 100,                                 \
				 "memory as a part of what the run touches: a choice (--memory)"}, \
		[SWAP_PART] = {"swap_part", 4, 0, 100,                                             \
			       "zram's room as a part of memory; 0: no swap: a choice"},           \
		[JOBS] = {"jobs", jobs, 0, 4096, "processes at once; 0: as recorded"},             \
		[ROUNDS] = {"rounds", rounds, 1, 1000, "how often the recording runs: a choice"},  \
		[CPUS] = {"cpus", 2, 1, 256, "of the simulated machine: a choice"},                \
		[CPU_SCALE] = {"cpu_scale", 1, 0.001, 1000, "on computing times: as recorded"},    \
		[THINK_NS] = {"think_ns", 1000, 0, 1e9,                                            \
			      "between two accesses of a trace without times: assumed"},           \
		[ZRAM_RATIO] = {"zram_ratio", 3, 1.5, 6, "lzo-rle: assumed"},                      \
	}

static const struct suite_param trace_params[NR_PARAMS] = RECORDING_PARAMS(0.5, 0, 1),
				kbuild_recorded[NR_PARAMS] = RECORDING_PARAMS(0.5, 2, 4),
				sqlite_recorded[NR_PARAMS] = RECORDING_PARAMS(0.6, 0, 2);

static const struct recording of_kbuild = {
	.data = data_real_kbuild, .bytes = &data_real_kbuild_bytes, .path = "real-kbuild"};
static const struct recording of_sqlite = {.data = data_real_sqlite_grep,
					   .bytes = &data_real_sqlite_grep_bytes,
					   .path = "real-sqlite-grep",
					   .programs_first = true};

const struct suite suite_real_kbuild = {
	.name = "real-kbuild",
	.summary = "a recording: files of Foliage compiled, assembled and linked by gcc 12",
	.params = kbuild_recorded,
	.nr_params = NR_PARAMS,
	.data = &of_kbuild,
	.open = recorded_open,
	.tasks = recorded_tasks,
	.run = recorded_run,
	.report = recorded_report,
	.close = recorded_close,
};

const struct suite suite_real_sqlite_grep = {
	.name = "real-sqlite-grep",
	.summary = "a recording: the sqlite3 shell on hot rows, in turns with grep -r",
	.params = sqlite_recorded,
	.nr_params = NR_PARAMS,
	.data = &of_sqlite,
	.open = recorded_open,
	.tasks = recorded_tasks,
	.run = recorded_run,
	.report = recorded_report,
	.close = recorded_close,
};

/* One piece of memory for all that the suite of a file consists of. */
struct of_file {
	struct suite suite;
	struct recording recording;
	char path[];
};

struct suite *suite_trace_create(const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct of_file *f = calloc(1, sizeof(*f) + bytes);

	if (!f)
		return NULL;
	memcpy(f->path, path, bytes);
	f->recording.path = f->path;
	f->suite = suite_real_kbuild;
	f->suite.name = f->path;
	f->suite.summary = "a trace";
	f->suite.params = trace_params;
	f->suite.data = &f->recording;
	return &f->suite;
}

void suite_trace_free(struct suite *suite)
{
	free(suite); /* which is the first of struct of_file */
}
