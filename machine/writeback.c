/* SPDX-License-Identifier: MIT
 *
 * Dirty pages: a queue by age, a flusher that empties it, writers that wait when it cannot keep up.
 *
 * As Linux by default: pages older than 30 s are written every 5 s; above a tenth of memory the
 * flusher writes without waiting for age; above a fifth writers wait. Inside a group with a limit
 * both fractions are of the limit.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

static const uint64_t expire_ns = UINT64_C(30000000000), retry_ns = 1000000,
		      period_ns = UINT64_C(5000000000), pause_ns = 10000000;

struct dirty {
	uint32_t file, index;
	uint64_t since;
};

static bool push(struct machine *m, struct dirty d)
{
	if (m->dirty_nr == m->dirty_max) {
		uint32_t max = MAX(2 * m->dirty_max, 1024u);
		struct dirty *ring = malloc(max * sizeof(*ring));

		if (!ring)
			return false;
		for (uint32_t i = 0; i < m->dirty_nr; i++)
			ring[i] = m->dirty_ring[(m->dirty_head + i) % m->dirty_max];
		free(m->dirty_ring);
		m->dirty_ring = ring;
		m->dirty_max = max;
		m->dirty_head = 0;
	}
	m->dirty_ring[(m->dirty_head + m->dirty_nr++) % m->dirty_max] = d;
	return true;
}

void file_dirty(struct machine *m, int32_t frame)
{
	struct frame *fr = &m->frames[frame];

	foliage_folio_set_dirty(m->engine, frame);
	if (fr->dirty)
		return;
	fr->dirty = true;
	m->nr_dirty++;
	m->files[fr->file].nr_dirty++;
	memcg_count(m, fr->memcg, MEMCG_FILE_DIRTY, 1);
	if (!push(m, (struct dirty){fr->file, fr->index, this_now(m)}))
		machine_fail(m, "no memory for dirty pages");
	if (m->dirty_nr == 1)
		task_wake_at(m->flusher, this_now(m) + period_ns);
}

void file_clean(struct machine *m, int32_t frame)
{
	struct frame *fr = &m->frames[frame];

	fr->dirty = false;
	m->nr_dirty--;
	m->files[fr->file].nr_dirty--;
	memcg_count(m, fr->memcg, MEMCG_FILE_DIRTY, -1);
	foliage_folio_clear_dirty(m->engine, frame);
}

static void write_done(struct machine *m, void *arg)
{
	struct io *io = arg;

	for (uint32_t i = 0; i < io->nr; i++) {
		m->frames[io->frames[i]].writeback = false;
		m->nr_writeback--;
		foliage_folio_end_writeback(m->engine, this_cpu(m), io->frames[i]);
	}
	free(io);
}

/* Stores through page tables must fault again from here on. */
static void protect(struct machine *m, const struct frame *fr)
{
	uint32_t mm = fr->mm, page = fr->page;
	int32_t node = fr->maps;

	for (uint32_t i = 0; i < fr->mapcount; i++) {
		struct pte_page *table = space_table(m->spaces[mm], page, false);

		map_set(table->protect, page % ENTRIES);
		map_clear(table->pte.dirty, page % ENTRIES);
		if (node == NO_MAP)
			break;
		mm = m->nodes[node].mm;
		page = m->nodes[node].page;
		node = m->nodes[node].next;
	}
}

static void start_write(struct machine *m, struct io *io, int32_t frame)
{
	struct frame *fr = &m->frames[frame];

	protect(m, fr);
	file_clean(m, frame);
	foliage_folio_start_writeback(m->engine, frame);
	fr->writeback = true;
	m->nr_writeback++;
	io->frames[io->nr++] = frame;
}

static uint64_t submit_write(struct machine *m, const struct io *run)
{
	uint64_t done = device_submit(m, &m->disk, run->nr, true);
	struct io *io = malloc(sizeof(*io));

	if (!io) {
		machine_fail(m, "no memory for a request");
		return done;
	}
	*io = *run;
	io->done = done;
	for (uint32_t i = 0; i < io->nr; i++)
		m->frames[io->frames[i]].ready = done;
	event_at(m, done, write_done, io, true);
	return done;
}

static bool writable(const struct machine *m, int32_t frame)
{
	return frame != NO_FRAME && m->frames[frame].dirty && !m->frames[frame].writeback;
}

/* Write the page and the dirty ones behind it. */
static uint64_t write_run(struct machine *m, uint32_t file, uint32_t index, uint32_t *written)
{
	struct io io = {0};
	int32_t frame = file_frame(&m->files[file], index);

	while (writable(m, frame) && io.nr < ARRAY_SIZE(io.frames)) {
		start_write(m, &io, frame);
		frame = file_frame(&m->files[file], index + io.nr);
	}
	*written += io.nr;
	return io.nr ? submit_write(m, &io) : this_now(m);
}

/* It may have been written, dropped, or be another page by now. */
static int32_t still_dirty(const struct machine *m, struct dirty d)
{
	int32_t frame = NO_FRAME;

	if (d.file < m->nr_files && m->files[d.file].used)
		frame = file_frame(&m->files[d.file], d.index);
	return frame != NO_FRAME && m->frames[frame].dirty ? frame : NO_FRAME;
}

/* The oldest dirty page to the device. False: none is old enough. */
static bool write_oldest(struct machine *m, bool any_age, uint64_t *done)
{
	while (m->dirty_nr) {
		struct dirty d = m->dirty_ring[m->dirty_head];
		int32_t frame = still_dirty(m, d);
		uint32_t written = 0;

		if (frame != NO_FRAME && !any_age && d.since + expire_ns > this_now(m))
			return false;
		m->dirty_head = (m->dirty_head + 1) % m->dirty_max;
		m->dirty_nr--;
		if (frame == NO_FRAME)
			continue;
		if (m->frames[frame].writeback)
			push(m, d); /* dirtied again while it is being written */
		else
			*done = MAX(*done, write_run(m, d.file, d.index, &written));
		return true;
	}
	return false;
}

void flusher_main(struct task *t, void *arg)
{
	struct machine *m = t->m;
	bool hurry = false;

	(void)arg;
	for (;;) {
		uint64_t done = t->now;
		uint32_t batch = 0;

		check_failed(m);
		while (batch++ < 64 && write_oldest(m, hurry || m->flush_asked, &done))
			;
		if (!m->dirty_nr)
			m->flush_asked = false;
		hurry = m->nr_dirty > m->options.memory / 10;
		if (batch > 64)
			/* Nothing submitted: all were dirtied again under write-back. */
			task_block(t, done > t->now ? done : t->now + retry_ns);
		else
			task_block(t, m->dirty_nr ? t->now + period_ns : UINT64_MAX);
	}
}

void wake_flusher(struct machine *m)
{
	m->flush_asked = true;
	if (m->flusher->state == TASK_BLOCKED)
		task_wake(m->flusher, this_now(m));
}

/* The smallest limit above a group, and how much of it is dirty. */
static bool too_dirty(struct machine *m, uint32_t memcg, uint32_t percent)
{
	const struct foliage_engine *e = m->engine;
	uint64_t memory = m->options.memory;

	if ((uint64_t)(m->nr_dirty + m->nr_writeback) * 100 > memory * percent)
		return true;
	for (; memcg; memcg = e->memcgs[memcg].parent) {
		uint64_t max = e->memcgs[memcg].max;

		if (max < memory && machine_memcg_stat(m, memcg, MEMCG_FILE_DIRTY) > 0 &&
		    (uint64_t)machine_memcg_stat(m, memcg, MEMCG_FILE_DIRTY) * 100 > max * percent)
			return true;
	}
	return false;
}

void balance_dirty(struct task *t)
{
	struct machine *m = t->m;

	if (!too_dirty(m, t->memcg, 10))
		return;
	wake_flusher(m);
	while (too_dirty(m, t->memcg, 20)) {
		wake_flusher(m);
		task_block(t, t->now + pause_ns);
		check_failed(m);
	}
}

void task_fsync(struct task *t, struct open_file *of)
{
	struct machine *m = t->m;
	uint32_t file = (uint32_t)of->file;
	uint64_t done = t->now;

	for (uint32_t i = 0; i < m->files[file].pages && m->files[file].nr_dirty; i++) {
		int32_t frame = file_frame(&m->files[file], i);
		uint32_t written = 0;

		if (frame != NO_FRAME && m->frames[frame].dirty && m->frames[frame].writeback)
			wait_io(t, m->frames[frame].ready + 1, false);
		if (frame != NO_FRAME && m->frames[frame].dirty)
			done = MAX(done, write_run(m, file, i, &written));
	}
	wait_io(t, done, false);
	check_failed(m);
}
