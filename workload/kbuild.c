/* SPDX-License-Identifier: MIT
 *
 * A parallel build. `make` keeps a number of compilers running. Each is a fresh process: it
 * executes the compiler, whose text all of them map, reads its source and the headers it includes,
 * among which a few are everybody's, builds trees in private memory, going back to what it built
 * before, writes an object and exits. In the end a linker reads all objects.
 *
 * Modelled: fork and exec, the text mapped executable, read() of sources and headers from start to
 * end, anonymous memory that only grows until the exit frees it, output written back by the
 * flusher, link.
 *
 * Left out: make's own scanning, directories and slab, the assembler as a process of its own (its
 * work is in the compiler's), scripts, modules.
 *
 * Sources: the compiler of Debian 12 (gcc 12.2, cc1 of 33.3 MB) on files of Foliage itself: `gcc
 * -H` names 77 to 137 headers of 286 to 439 KB, rusage says 37 to 41 MiB resident, 10,962 to 12,683
 * minor faults, 0.24 to 0.45 s, objects of 34 to 123 KB. A kernel unit includes several times as
 * much; the table says what was assumed of it.
 */
#include "workload/kbuild.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mm/types.h"
#include "workload/zipf_fio.h"

enum {
	MIB = 256,            /* pages */
	TEXT_PAGES = 8141,    /* cc1's 33.3 MB */
	TEXT_SHARE = 2,       /* half of it is run by one unit: resident less anonymous */
	COMPILER_CHUNKS = 16, /* reading headers and building trees take turns */
};

const struct suite_param kbuild_params[KBUILD_NR_PARAMS] = {
	[KBUILD_ANON_MIB] =
		{"anon_mib", 91, 8, 512,
		 "a compiler's private memory at its end: 22 of Foliage's files; so that "
		 "mainline alone swaps out about as much as published on zram"},
	[KBUILD_REVISITS] = {"revisits", 2, 0, 16,
			     "older pages touched for each new one: 11,000 faults a unit, assumed"},
	[KBUILD_SOURCE_PAGES] =
		{"source_pages", 20, 1, 256,
		 "read by one unit only: 165,000 pages that the classic LRU read and that were no "
		 "refaults, less headers and compiler, are 22 for each of 6,000 units"},
	[KBUILD_HEADERS] = {"headers", 500, 32, 2000,
			    "headers read by a unit: 77-137 of Foliage's, assumed 500"},
	[KBUILD_HEADER_FILES] = {"header_files", 6000, 256, 30000,
				 "headers that a build reads at all: assumed"},
	[KBUILD_HEADER_PAGES] = {"header_pages", 2, 1, 8, "3.2-3.7 KB of Foliage's, assumed 8 KB"},
	[KBUILD_THETA] = {"theta", 0.8, 0.3, 1.2, "how unlike the headers are: assumed"},
	[KBUILD_OBJECT_PAGES] = {"object_pages", 33, 1, 1024,
				 "object and list of dependencies: what kbuild-memcg's mainline "
				 "wrote besides swap, "
				 "85,000 pages, over its 2,550 units"},
	[KBUILD_UNIT_S] = {"unit_s", 0.6, 0.05, 10,
			   "user time of a unit: 0.24-0.45 s of Foliage's, assumed 0.6"},
	[KBUILD_ZRAM_RATIO] = {"zram_ratio", 3, 1.5, 6, "lzo-rle on compilers' memory: assumed"},
	[KBUILD_LIMIT_MIB] = {"limit_mib", 1195, 128, 4096,
			      "kbuild-memcg: not given; so that mainline reads in about as much as "
			      "published"},
};

struct site {
	const struct kbuild *build;
	const double *params;
	uint32_t units, jobs;
	uint32_t text, runs, anon, sources, headers, header_files, header_pages, objects;
	uint64_t chunk_ns;
	int cc1;
	int *source, *header, *object;
	struct zipf_fio_dist dist;
	uint32_t next;
};

struct unit {
	struct site *s;
	uint32_t nr;
};

static void read_whole(struct task *t, int file, uint32_t pages)
{
	struct open_file *f = task_open(t, file);

	task_read(t, f, 0, pages);
	task_close(t, f);
}

/* What the compiler runs lies together by function, so its text is touched in runs. */
static void run_text(struct task *t, const struct site *s, uint64_t text, uint64_t *rng)
{
	const uint32_t run = 16;

	for (uint32_t i = 0; i < s->runs; i++) {
		/* The middle is hot: the mean of two draws. */
		uint32_t from =
			(splitmix64_below(rng, s->text) + splitmix64_below(rng, s->text)) / 2;

		for (uint32_t k = 0; k < run && from + k < s->text; k++)
			task_touch(t, text + from + k, TASK_EXEC);
	}
}

static void grow(struct task *t, const struct site *s, uint64_t anon, uint32_t from, uint32_t to,
		 uint64_t *rng)
{
	uint32_t revisits = (uint32_t)s->params[KBUILD_REVISITS];

	for (uint32_t i = from; i < to; i++) {
		task_touch(t, anon + i, TASK_STORE);
		/* Recent trees more often than old ones. */
		for (uint32_t k = 0; k < revisits; k++) {
			double back = splitmix64_unit(rng);

			task_touch(t, anon + i - (uint32_t)(back * back * i), TASK_LOAD);
		}
	}
}

static void compiler_main(struct task *t, void *arg)
{
	const struct unit *u = arg;
	struct site *s = u->s;
	uint64_t rng = s->build->seed * 1000003 + u->nr, text, anon;
	/* Units differ: from half to one and a half of the mean. */
	uint32_t pages = (uint32_t)(s->anon * (0.5 + splitmix64_unit(&rng)));
	struct zipf_fio names;
	struct open_file *out;

	zipf_fio_init(&names, &s->dist, "include", u->nr + 1);
	task_exec(t);
	text = task_map_file(t, s->cc1, 0, s->text, MAPPING_EXEC);
	anon = task_map_anon(t, MAX(pages, 1u), 0);
	read_whole(t, s->source[u->nr], s->sources);
	for (uint32_t c = 0; c < COMPILER_CHUNKS; c++) {
		run_text(t, s, text, &rng);
		for (uint32_t i = s->headers * c / COMPILER_CHUNKS;
		     i < s->headers * (c + 1) / COMPILER_CHUNKS; i++)
			read_whole(t, s->header[zipf_fio_next(&names)], s->header_pages);
		grow(t, s, anon, pages * c / COMPILER_CHUNKS, pages * (c + 1) / COMPILER_CHUNKS,
		     &rng);
		task_compute(t, (uint64_t)((double)s->chunk_ns * pages / s->anon));
	}
	out = task_open(t, s->object[u->nr]);
	task_write(t, out, 0, s->objects);
	task_close(t, out);
}

/* One of make's job slots. */
static void slot_main(struct task *t, void *arg)
{
	struct site *s = arg;

	while (s->next < s->units) {
		struct unit u = {.s = s, .nr = s->next++};

		task_fork(t, compiler_main, &u);
		task_wait_children(t);
	}
}

static void make_main(struct task *t, void *arg)
{
	struct site *s = arg;

	for (uint32_t i = 0; i < s->jobs; i++)
		task_fork(t, slot_main, s);
	task_wait_children(t);
	for (uint32_t i = 0; i < s->units; i++)
		read_whole(t, s->object[i], s->objects);
}

static uint32_t part_of(double whole, uint32_t part)
{
	return MAX((uint32_t)(whole / part + 0.5), 1u);
}

static int make_files(struct machine *m, int *files, uint32_t nr, uint32_t pages)
{
	for (uint32_t i = 0; i < nr; i++) {
		files[i] = machine_file(m, pages);
		if (files[i] < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Of one unit. */
static void size_unit(struct site *s)
{
	const double *p = s->params;
	uint32_t part = s->build->smaller;

	s->runs = part_of(TEXT_PAGES / TEXT_SHARE / COMPILER_CHUNKS / 16, part);
	s->anon = part_of(p[KBUILD_ANON_MIB] * MIB, part);
	s->sources = part_of(p[KBUILD_SOURCE_PAGES], part);
	s->headers = part_of(p[KBUILD_HEADERS], part);
	s->objects = part_of(p[KBUILD_OBJECT_PAGES], part);
	s->chunk_ns = (uint64_t)(p[KBUILD_UNIT_S] * 1e9 / part / COMPILER_CHUNKS);
}

static int set_up(struct machine *m, struct site *s, struct err *err)
{
	const struct kbuild *b = s->build;
	uint32_t part = b->fewer * b->smaller;
	int group = machine_memcg(m, 0, "build", (uint64_t)b->limit_mib * MIB / part);

	size_unit(s);
	s->units = b->units;
	s->jobs = part_of(b->jobs, b->fewer);
	s->text = part_of(TEXT_PAGES, part);
	s->header_files = part_of(s->params[KBUILD_HEADER_FILES], part);
	s->header_pages = (uint32_t)s->params[KBUILD_HEADER_PAGES];
	s->header = calloc(s->header_files, sizeof(*s->header));
	s->source = calloc(s->units, sizeof(*s->source));
	s->object = calloc(s->units, sizeof(*s->object));
	s->cc1 = machine_file(m, s->text);
	if (group < 0 || !s->header || !s->source || !s->object || s->cc1 < 0 ||
	    machine_memcg_set(m, (uint32_t)group, FOLIAGE_SWAPPINESS, (uint64_t)b->swappiness) ||
	    make_files(m, s->header, s->header_files, s->header_pages) ||
	    make_files(m, s->source, s->units, s->sources) ||
	    make_files(m, s->object, s->units, 1) ||
	    zipf_fio_dist_init(&s->dist, s->header_files, s->params[KBUILD_THETA]) ||
	    !machine_spawn(m, (uint32_t)group, make_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void measure(const struct machine *m, const struct kbuild *b, struct kbuild_result *r)
{
	double part = b->smaller;

	/* So many fewer at a time take so much longer for the same number. */
	r->real_s = (double)machine_now(m) / 1e9 * b->smaller / b->fewer;
	r->user_s = (double)machine_stat(m, MACHINE_USER_NS) / 1e9 * part;
	r->sys_s = (double)machine_stat(m, MACHINE_SYS_NS) / 1e9 * part;
	r->pgpgin = (double)machine_stat(m, MACHINE_PGPGIN) * part;
	r->pgpgout = (double)machine_stat(m, MACHINE_PGPGOUT) * part;
	r->pswpin = (double)machine_stat(m, MACHINE_PSWPIN) * part;
	r->pswpout = (double)machine_stat(m, MACHINE_PSWPOUT) * part;
	r->refault_file = (double)machine_engine_stat(m, 0, STAT_REFAULT_FILE) * part;
	r->refault_anon = (double)machine_engine_stat(m, 0, STAT_REFAULT_ANON) * part;
}

int kbuild_run(const struct kbuild *build, const struct grid_run *run, struct kbuild_result *result,
	       struct err *err)
{
	uint32_t part = build->fewer * build->smaller;
	const struct machine_options options = {
		.policy = run->policy,
		.memory = build->memory_mib * MIB / part,
		.cpus = part_of(build->cpus, build->fewer),
		.scale = part,
		.seed = build->seed,
		.swap = build->swap,
		.swap_pages = build->swap_mib * MIB / part,
		.zram_ratio = run->params[KBUILD_ZRAM_RATIO],
		.kernel_stats = true,
		.swap_disk = &machine_ssd,
	};
	struct site s = {.build = build, .params = run->params};
	struct machine *m = NULL;
	int r = machine_create(&options, &m, err);

	if (!r)
		r = set_up(m, &s, err);
	if (!r)
		r = scene_run(m, run, err);
	if (!r)
		measure(m, build, result);
	machine_destroy(m);
	free(s.source);
	free(s.header);
	free(s.object);
	return r;
}
