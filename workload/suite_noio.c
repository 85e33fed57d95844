/* SPDX-License-Identifier: MIT
 *
 * Suite noio: what one allocation that may not wait for I/O takes, when nearly all memory is
 * anonymous and none of it in the swap cache.
 *
 * The real one: the GFP_NOIO RFC v2. dm-verity reads hash blocks through dm-bufio, whose buffers
 * are allocated GFP_NOIO|NORETRY|NOMEMALLOC|NOWARN. Two tables: medians over allocations that
 * succeeded after entering direct reclaim, and the first such one after setting up four generations
 * of anon, two of file and an empty swap cache, for several sizes of the oldest anon generation.
 *
 * Modelled: an allocation of one page that may neither write nor swap, fails when one reclaim frees
 * nothing, and is timed in the task that asks. Its parts come from the engine's events: time that
 * ends in a move by aging is aging's, the rest eviction's.
 *   oldest-anon-*: a process fills the oldest generation, then a younger share; the lru_gen interface
 *   ages and empties file as the setup says; file pages are read last, into the two youngest. Then
 *   single pages are allocated in a burst, as a run of hash misses does, until one enters reclaim.
 *   median: the same setup, then as many hash blocks as dm-bufio keeps by default, 2 % of memory, one
 *   after another without waiting for their reads, as a prefetching dm-verity asks for them. Medians
 *   over all allocations that entered reclaim.
 *
 * Left out: dm-bufio's locks, and shrinkers: where the real baseline ends a fruitless round of all
 * priorities with what a slab cache gives, the machine's returns no page. So an allocation that
 * failed counts like one that succeeded; both are numbered.
 *
 * Published: sizes of the oldest generation, four and two generations, the swap cache's emptiness.
 * Not published: memory, the share of younger pages and of file, what pressed; see the table of
 * free parameters. By default the two smaller sizes, all five with --full; nothing is scaled.
 *
 * `noio_fold=1` is the reviewer's variant: the rule inside get_swappiness, so that aging does not
 * see anon either. anon_young says what that costs: the share of all anon pages that sits in the
 * two youngest generations afterwards, where the shortcut puts the coldest.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mm/types.h"
#include "workload/scene.h"

enum {
	MIB = 256, /* pages */
	NR_SMALL = 5,
	SAMPLES_MAX = 300,
	BUFIO_PERCENT = 2, /* of memory: dm-bufio's default */
	BURST_MAX = 1 << 20,
};

enum { MEDIAN };
static const char *const cases[] = {
	[MEDIAN] = "median",    "oldest-anon-1755MiB",  "oldest-anon-1840MiB",
	"oldest-anon-4835MiB",  "oldest-anon-4813MiB",  "oldest-anon-8942MiB",
	"oldest-anon-9013MiB",  "oldest-anon-13105MiB", "oldest-anon-13047MiB",
	"oldest-anon-17187MiB", "oldest-anon-17125MiB",
};

enum { ALLOC, RECLAIM, EVICTION, AGING, SUCCEEDED, FAILED, YOUNG };
static const struct grid_metric metrics[] = {
	[ALLOC] = {"alloc_ms", 3},       [RECLAIM] = {"direct_reclaim_ms", 3},
	[EVICTION] = {"eviction_ms", 3}, [AGING] = {"aging_ms", 3},
	[SUCCEEDED] = {"succeeded", 0},  [FAILED] = {"failed", 0},
	[YOUNG] = {"anon_young", 4},
};

enum { YOUNGER, FILE_SHARE, MEDIAN_MIB };
static const struct suite_param params[] = {
	[YOUNGER] = {"younger_share", 0.125, 0, 1,
		     "anon pages younger than the oldest generation, to those in it: assumed"},
	[FILE_SHARE] = {"file_share", 1.0 / 64, 0, 0.5,
			"file pages to pages of the oldest anon generation: 'nearly all anon'"},
	[MEDIAN_MIB] = {"median_mib", 2048, 256, 32768,
			"median: the oldest generation; 180 ms lie between 1755 and 4835 MiB"},
};

/* ---- one allocation, taken apart ---- */

struct probe {
	struct task *t;
	uint64_t start, last, aging;
	bool on, aged;
};

static void observe(void *ctx, foliage_folio folio, int what, int why, int64_t from, int64_t to,
		    unsigned int refs_from, unsigned int refs_to)
{
	struct probe *p = ctx;
	bool aging = what == FOLIAGE_EV_AGE ||
		     (what == FOLIAGE_EV_MOVE && why == FOLIAGE_WHY_FORCED_AGE);
	uint64_t now;

	(void)folio, (void)from, (void)to, (void)refs_from, (void)refs_to;
	/* The page-table walk of an aging tells of accesses: they belong to what follows. */
	if (!p->on || what == FOLIAGE_EV_ACCESS || machine_running(task_machine(p->t)) != p->t)
		return;
	now = task_now(p->t);
	if (aging || p->aged)
		p->aging += now - p->last;
	p->aged = what == FOLIAGE_EV_AGE;
	p->last = now;
}

struct sample {
	double alloc, reclaim, eviction, aging; /* ms */
};

struct scene {
	struct machine *m;
	struct probe probe;
	uint32_t oldest, younger, file_pages, memory;
	int file;
	struct sample samples[SAMPLES_MAX];
	uint32_t succeeded, failed;
	bool median;
	double young;
};

/* One page. False: it got none. */
static bool allocate(struct scene *s)
{
	struct probe *p = &s->probe;
	struct sample *sample = &s->samples[s->succeeded + s->failed];
	uint32_t own = machine_costs_default.page_alloc;
	uint64_t took;
	int rc;

	p->start = p->last = task_now(p->t);
	p->aging = 0;
	p->aged = false;
	p->on = true;
	rc = task_kalloc(p->t, 1, true);
	p->on = false;
	took = task_now(p->t) - p->start;
	if (took <= own)
		return true; /* it did not need to reclaim */
	s->succeeded += !rc;
	s->failed += rc != 0;
	sample->alloc = (double)took / 1e6;
	sample->reclaim = (double)(took - own) / 1e6;
	sample->aging = (double)p->aging / 1e6;
	sample->eviction = sample->reclaim - sample->aging;
	return !rc;
}

/* ---- the lru_gen interface ---- */

struct generations {
	unsigned int memcg;
	uint64_t oldest, youngest;
	int64_t anon, last[2]; /* of the two youngest */
};

/* Of the root group; false for a policy without generations. */
static bool look(struct machine *m, struct generations *g)
{
	char *text = NULL, *line, *rest;
	uint64_t seq, age;
	int64_t anon, file;

	*g = (struct generations){.oldest = UINT64_MAX};
	if (machine_text(m, "lru_gen", &text))
		return false;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		if (sscanf(line, "memcg %u", &g->memcg) == 1)
			continue;
		if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &seq, &age, &anon,
			   &file) != 4)
			continue;
		g->oldest = MIN(g->oldest, seq);
		g->youngest = seq;
		g->anon += anon;
		g->last[1] = g->last[0];
		g->last[0] = anon;
	}
	free(text);
	return true;
}

static void command(struct task *t, char op, int back, const char *options)
{
	struct generations g;
	char text[80];

	if (!look(task_machine(t), &g))
		return;
	snprintf(text, sizeof(text), "%c %u 0 %" PRIu64 " %s", op, g.memcg,
		 g.youngest - (uint64_t)back, options);
	task_lru_gen_write(t, text);
}

/* ---- the table of medians ---- */

static void read_hashes(struct scene *s)
{
	uint32_t cap = s->memory * BUFIO_PERCENT / 100, held = 0;

	while (held < cap && s->succeeded + s->failed < SAMPLES_MAX)
		held += allocate(s);
}

/* ---- the table by size ---- */

static void store_all(struct task *t, uint64_t addr, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		task_touch(t, addr + i, TASK_STORE);
}

static void note_young(struct scene *s)
{
	struct generations g;

	if (look(s->m, &g) && g.anon)
		s->young = (double)(g.last[0] + g.last[1]) / (double)g.anon;
}

static void size_main(struct task *t, void *arg)
{
	struct scene *s = arg;
	uint64_t addr = task_map_anon(t, s->oldest + s->younger, 0);
	struct open_file *f = task_open(t, s->file);

	s->probe.t = t;
	store_all(t, addr, s->oldest);
	/* This walk finds every page just stored to and takes it to the youngest generation. */
	command(t, '+', 0, "");
	command(t, '+', 0, "");
	store_all(t, addr + s->oldest, s->younger);
	command(t, '+', 0, "");
	/* Close the empty generations of file, then fill what is left. */
	command(t, '-', 2, "0 1");
	for (uint32_t i = 0; i < s->file_pages; i++)
		task_read(t, f, i, 1);
	task_close(t, f);
	if (s->median)
		read_hashes(s);
	for (uint32_t i = 0; i < BURST_MAX && !s->succeeded && !s->failed; i++)
		allocate(s);
	note_young(s);
}

/* ---- */

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const struct scene *s, size_t offset)
{
	double values[SAMPLES_MAX];
	uint32_t nr = s->succeeded + s->failed;

	if (!nr)
		return 0;
	for (uint32_t i = 0; i < nr; i++)
		memcpy(&values[i], (const char *)&s->samples[i] + offset, sizeof(values[i]));
	qsort(values, nr, sizeof(values[0]), by_value);
	return values[nr / 2];
}

static void choose_sizes(struct scene *s, const struct grid_run *run)
{
	double oldest = run->params[MEDIAN_MIB];

	s->median = run->which == MEDIAN;
	if (!s->median)
		oldest = strtod(cases[run->which] + strlen("oldest-anon-"), NULL);
	oldest *= MIB;
	s->oldest = (uint32_t)oldest;
	s->younger = (uint32_t)(oldest * run->params[YOUNGER]);
	s->file_pages = (uint32_t)(oldest * run->params[FILE_SHARE]);
	/* Room for a burst above the watermarks, which take a few thousandths. */
	s->memory = s->oldest + s->younger + s->file_pages + s->oldest / 50;
}

static int set_up(struct scene *s, struct err *err)
{
	s->file = machine_file(s->m, s->file_pages);
	if (s->file < 0 || !machine_spawn(s->m, 0, size_main, s))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int simulate(const struct grid_run *run, double *out, struct err *err)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct machine_options options = {
		.policy = run->policy,
		.cpus = 4,
		.seed = run->seed,
		.swap = MACHINE_ZRAM,
		.kernel_stats = true,
	};
	int r = s ? 0 : err_set(err, -ENOMEM, "out of memory");

	if (!r) {
		choose_sizes(s, run);
		options.memory = s->memory;
		options.swap_pages = 3 * s->memory;
		r = machine_create(&options, &s->m, err);
	}
	if (!r) {
		machine_engine(s->m)->event = observe;
		machine_engine(s->m)->event_ctx = &s->probe;
		r = set_up(s, err);
	}
	if (!r)
		r = scene_run(s->m, run, err);
	if (!r) {
		out[ALLOC] = median(s, offsetof(struct sample, alloc));
		out[RECLAIM] = median(s, offsetof(struct sample, reclaim));
		out[EVICTION] = median(s, offsetof(struct sample, eviction));
		out[AGING] = median(s, offsetof(struct sample, aging));
		out[SUCCEEDED] = s->succeeded;
		out[FAILED] = s->failed;
		out[YOUNG] = s->young;
	}
	if (s)
		machine_destroy(s->m);
	free(s);
	return r;
}

static const char *const notes[] = {
	"the size in a case's name belongs to the policy for which that case was published",
	"where mglru finds nothing it returns no page; the kernel had slab caches to fall back on",
	NULL,
};

/* The small ones by default. */
static const struct grid_kind kind = {
	.suite = &suite_noio,
	.cases = cases,
	.nr_cases = NR_SMALL,
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "mglru,mglru-noio,mglru-noio:noio_fold=1,fg",
	.simulate = simulate,
	.notes = notes,
};

static const struct grid_kind full_kind = {
	.suite = &suite_noio,
	.cases = cases,
	.nr_cases = ARRAY_SIZE(cases),
	.metrics = metrics,
	.nr_metrics = ARRAY_SIZE(metrics),
	.policies = "mglru,mglru-noio,mglru-noio:noio_fold=1,fg",
	.simulate = simulate,
	.notes = notes,
};

static int open_suite(const struct suite_options *options, void **state, struct err *err)
{
	return grid_open(options->full ? &full_kind : &kind, options, state, err);
}

const struct suite suite_noio = {
	.name = "noio",
	.summary = "allocations that may not wait for I/O, with memory full of anonymous pages",
	.params = params,
	.nr_params = ARRAY_SIZE(params),
	.open = open_suite,
	.tasks = grid_tasks,
	.run = grid_run,
	.report = grid_report,
	.close = grid_close,
};
