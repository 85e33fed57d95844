/* SPDX-License-Identifier: MIT
 *
 * Counters and texts of the machine, its creation and end, and the walker that checks it.
 */
#include "machine/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mm/engine.h"
#include "mm/memcg.h"

/* ---- life ---- */

/* The statistics on which the classic LRU decides stand still between two flushes, as a kernel's do. */
static int set_kernel_stats(struct policy_choice *choice, struct err *err)
{
	for (const struct foliage_knob *k = choice->policy->knobs; k && k->name; k++)
		if (!strcmp(k->name, "frozen") && !strstr(choice->label, "frozen="))
			return policy_knobs_parse(choice->policy, choice->knobs, "frozen=1", err);
	return 0;
}

static int open_engine(struct machine *m, struct err *err)
{
	const struct foliage_engine_options options = {
		.nr_folios = m->options.memory,
		.max_memcgs = m->options.max_memcgs,
		.exclusive = true,
		.totalram_pages = (uint64_t)((double)m->options.memory * m->options.scale),
		.scale = m->options.scale,
		.seed = m->options.seed,
		.caps = m->options.caps,
		.backend = &world_backend,
		.ctx = m,
	};
	struct policy_choice choice;
	char message[256] = "";
	int rc = policy_parse(m->options.policy, &choice, err);

	if (rc)
		return rc;
	if (m->options.kernel_stats)
		rc = set_kernel_stats(&choice, err);
	if (!rc) {
		rc = engine_create(&options, &choice, &m->engine, message, sizeof(message));
		if (rc)
			err_set(err, rc, "policy %s: %s", choice.label, message);
	}
	policy_choice_free(&choice);
	return rc;
}

static void set_defaults(struct machine *m)
{
	struct machine_options *o = &m->options;

	o->policy = o->policy ? o->policy : "fg";
	o->cpus = MAX(o->cpus, 1u);
	o->max_memcgs = o->max_memcgs ? o->max_memcgs : 64;
	o->scale = o->scale >= 1 ? o->scale : 1;
	o->zram_ratio = o->zram_ratio > 0 ? o->zram_ratio : 3;
	o->caps = o->caps ? o->caps : 7;
	o->fault_around = o->fault_around ? o->fault_around : 16;
	o->readahead = o->readahead ? o->readahead : 32;
	o->disk = o->disk ? o->disk : &machine_nvme;
	o->swap_disk = o->swap_disk ? o->swap_disk : &machine_nvme;
	m->costs = o->costs ? *o->costs : machine_costs_default;
}

int machine_create(const struct machine_options *options, struct machine **machine, struct err *err)
{
	struct machine *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return err_set(err, -ENOMEM, "out of memory");
	m->options = *options;
	m->until = UINT64_MAX;
	set_defaults(m);
	rc = m->options.memory >= 256 ? open_engine(m, err)
				      : err_set(err, -EINVAL, "a machine has at least 256 pages");
	if (!rc) {
		m->spaces = calloc(MMS_MAX, sizeof(struct space *));
		m->memcg_stat = calloc(m->options.max_memcgs, sizeof(*m->memcg_stat));
		if (!m->spaces || !m->memcg_stat || sched_init(m) || frames_init(m) ||
		    files_init(m) || swap_init(m) ||
		    device_init(&m->swap_disk, m->options.swap_disk))
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	if (rc) {
		machine_destroy(m);
		return rc;
	}
	*machine = m;
	return 0;
}

void machine_destroy(struct machine *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->spaces && i < m->nr_spaces; i++)
		if (m->spaces[i])
			space_free(m, m->spaces[i]);
	for (uint32_t i = 0; i < m->nr_events; i++)
		if (m->events[i].owned)
			free(m->events[i].arg);
	files_fini(m);
	swap_fini(m);
	device_fini(&m->swap_disk);
	foliage_engine_destroy(m->engine);
	frames_fini(m);
	sched_fini(m);
	free(m->spaces);
	free(m->memcg_stat);
	free(m);
}

int machine_memcg(struct machine *m, uint32_t parent, const char *name, uint64_t max)
{
	int memcg = foliage_memcg_create(m->engine, parent, name);

	if (memcg > 0 && max != FOLIAGE_UNLIMITED)
		foliage_memcg_set(m->engine, (uint32_t)memcg, FOLIAGE_MAX, max);
	return memcg;
}

int machine_memcg_set(struct machine *m, uint32_t memcg, enum foliage_limit what, uint64_t value)
{
	return foliage_memcg_set(m->engine, memcg, what, value);
}

struct machine *task_machine(struct task *t)
{
	return t->m;
}

uint64_t task_now(const struct task *t)
{
	return t->now;
}

void task_compute(struct task *t, uint64_t ns)
{
	while (ns) {
		uint64_t step = MIN(ns, (uint64_t)t->m->costs.quantum);

		charge_user(t, step);
		ns -= step;
		task_checkpoint(t);
		check_failed(t->m);
	}
}

void task_sleep(struct task *t, uint64_t ns)
{
	uint64_t end = t->now + ns;

	while (t->now < end) {
		task_block(t, end);
		check_failed(t->m);
	}
}

/* ---- counters ---- */

uint64_t machine_stat(const struct machine *m, enum machine_stat what)
{
	switch (what) {
	case MACHINE_DISK_READ:
		return m->disk.read;
	case MACHINE_DISK_WRITTEN:
		return m->disk.written;
	case MACHINE_SWAP_READ:
		return m->swap_disk.read;
	case MACHINE_SWAP_WRITTEN:
		return m->swap_disk.written;
	default:
		return what < MACHINE_NR_STATS ? m->stat[what] : 0;
	}
}

int64_t machine_memcg_stat(const struct machine *m, uint32_t memcg, enum machine_memcg_stat what)
{
	int64_t sum = 0;
	uint32_t i = UINT32_MAX;

	while ((i = memcg_next(m->engine, memcg, i)) != UINT32_MAX)
		sum += m->memcg_stat[i][what];
	return sum;
}

int64_t machine_engine_stat(const struct machine *m, uint32_t memcg, int item)
{
	return memcg_stat(m->engine, memcg, (enum stat_item)item);
}

struct foliage_engine *machine_engine(struct machine *m)
{
	return m->engine;
}

static int print_vmstat(struct machine *m, char **text)
{
	static const struct {
		const char *name;
		enum machine_stat what;
	} lines[] = {
		{"pgpgin", MACHINE_PGPGIN},         {"pgpgout", MACHINE_PGPGOUT},
		{"pswpin", MACHINE_PSWPIN},         {"pswpout", MACHINE_PSWPOUT},
		{"pgfault", MACHINE_PGFAULT},       {"pgmajfault", MACHINE_PGMAJFAULT},
		{"allocstall", MACHINE_ALLOCSTALL},
	};
	static const char *const types[] = {"anon", "file"};
	size_t bytes;
	FILE *out = open_memstream(text, &bytes);

	if (!out)
		return -ENOMEM;
	fprintf(out, "nr_free_pages %" PRIu32 "\n", m->nr_free);
	fprintf(out, "nr_dirty %" PRIu32 "\nnr_writeback %" PRIu32 "\n", m->nr_dirty,
		m->nr_writeback);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		fprintf(out, "%s %" PRIu64 "\n", lines[i].name, machine_stat(m, lines[i].what));
	for (int type = 0; type < NR_TYPES; type++) {
		fprintf(out, "workingset_refault_%s %" PRId64 "\n", types[type],
			machine_engine_stat(m, 0, STAT_REFAULT_ANON + type));
		fprintf(out, "pgscan_%s %" PRId64 "\n", types[type],
			machine_engine_stat(m, 0, STAT_PGSCAN_ANON + type));
		fprintf(out, "pgsteal_%s %" PRId64 "\n", types[type],
			machine_engine_stat(m, 0, STAT_PGSTEAL_ANON + type));
	}
	return fclose(out) ? -ENOMEM : 0;
}

int machine_text(struct machine *m, const char *what, char **text)
{
	return strcmp(what, "vmstat") ? foliage_text(m->engine, what, text) : print_vmstat(m, text);
}

/* ---- the walker ---- */

static int bad(struct err *err, const char *what, long long a, long long b)
{
	return err_set(err, -EUCLEAN, "%s: %lld, %lld", what, a, b);
}

static int check_mapping(const struct machine *m, int32_t frame, uint32_t mm, uint32_t page,
			 struct err *err)
{
	const struct space *s = mm < m->nr_spaces ? m->spaces[mm] : NULL;
	const struct pte_page *table =
		s && page / ENTRIES < s->nr_tables ? s->tables[page / ENTRIES] : NULL;

	if (!table || table->pte.folio[page % ENTRIES] != frame)
		return bad(err, "a frame names a page table that does not name it", frame, page);
	return 0;
}

static int check_frame(const struct machine *m, int32_t frame, struct err *err)
{
	const struct frame *f = &m->frames[frame];
	bool present = foliage_folio_present(m->engine, frame);
	int32_t node = f->maps;
	uint32_t mm = f->mm, page = f->page;

	if (f->kind == FRAME_FREE || f->kind == FRAME_KERNEL)
		return present ? bad(err, "a free frame is a folio", frame, f->kind) : 0;
	if (!present)
		return bad(err, "a page is no folio", frame, f->kind);
	if (f->kind == FRAME_FILE && file_frame(&m->files[f->file], f->index) != frame)
		return bad(err, "a cached page is not where it says", frame, f->index);
	if (f->slot != NO_SLOT && m->slots[f->slot].frame != frame)
		return bad(err, "a swap slot does not know its frame", frame, f->slot);
	for (uint32_t i = 0; i < f->mapcount; i++) {
		int rc = check_mapping(m, frame, mm, page, err);

		if (rc)
			return rc;
		if (node == NO_MAP)
			return i + 1 == f->mapcount
				       ? 0
				       : bad(err, "too few mappings", frame, f->mapcount);
		mm = m->nodes[node].mm;
		page = m->nodes[node].page;
		node = m->nodes[node].next;
	}
	return 0;
}

/* Every present entry names a frame that knows of it; their number is that of all mapcounts. */
static int check_tables(const struct machine *m, uint64_t mapped, struct err *err)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < m->nr_spaces; i++) {
		const struct space *s = m->spaces[i];
		uint64_t rss = 0;

		for (uint32_t n = 0; s && n < s->nr_tables; n++)
			for (uint32_t k = 0; s->tables[n] && k < ENTRIES; k++) {
				int32_t frame = s->tables[n]->pte.folio[k];

				if (frame < 0)
					continue;
				if (m->frames[frame].kind == FRAME_FREE)
					return bad(err, "a free frame is mapped", frame, i);
				rss++;
			}
		if (s && rss != s->rss)
			return bad(err, "rss", (long long)rss, (long long)s->rss);
		found += rss;
	}
	return found == mapped ? 0 : bad(err, "mappings", (long long)found, (long long)mapped);
}

static int check_groups(struct machine *m, const int64_t *pages, struct err *err)
{
	uint32_t memcg = UINT32_MAX;

	while ((memcg = memcg_next(m->engine, 0, memcg)) != UINT32_MAX) {
		int64_t sum = 0;
		uint32_t i = UINT32_MAX;

		while ((i = memcg_next(m->engine, memcg, i)) != UINT32_MAX)
			sum += pages[i];
		if (sum != foliage_memcg_usage(m->engine, memcg))
			return bad(err, "usage of a group", sum,
				   (long long)foliage_memcg_usage(m->engine, memcg));
		sum -= machine_memcg_stat(m, memcg, MEMCG_ANON) +
		       machine_memcg_stat(m, memcg, MEMCG_FILE) +
		       machine_memcg_stat(m, memcg, MEMCG_KERNEL);
		if (sum)
			return bad(err, "anon + file + kernel of a group", sum, memcg);
	}
	return 0;
}

int machine_is_valid(struct machine *m, struct err *err)
{
	int64_t *pages = calloc(m->options.max_memcgs, sizeof(*pages));
	uint64_t mapped = 0;
	uint32_t nr_free = 0, nr_dirty = 0;
	int rc = pages ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (uint32_t i = 0; i < m->options.memory && !rc; i++) {
		rc = check_frame(m, (int32_t)i, err);
		nr_free += m->frames[i].kind == FRAME_FREE;
		if (m->frames[i].kind != FRAME_FREE) {
			mapped += m->frames[i].mapcount;
			nr_dirty += m->frames[i].kind == FRAME_FILE && m->frames[i].dirty;
			pages[m->frames[i].memcg]++;
		}
	}
	if (!rc && nr_free != m->nr_free)
		rc = bad(err, "free frames", nr_free, m->nr_free);
	if (!rc && nr_dirty != m->nr_dirty)
		rc = bad(err, "dirty frames", nr_dirty, m->nr_dirty);
	if (!rc)
		rc = check_tables(m, mapped, err);
	if (!rc)
		rc = check_groups(m, pages, err);
	free(pages);
	return rc;
}
