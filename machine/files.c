/* SPDX-License-Identifier: MIT
 *
 * Files and their page cache: read, write, truncate, advice. Readahead decides here what to bring in
 * (LINUX-6.12 section 3); machine/writeback.c gets dirty pages out again.
 *
 * A file's cache is an array with one slot a page: empty, a frame, or the shadow of one that was
 * evicted. A read marks a page accessed unless the previous read of the same open file ended in it;
 * a page that only readahead brought in is not marked.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { POLL_NS = 10000 };

int32_t file_frame(const struct file *f, uint32_t index)
{
	uint64_t slot = index < f->pages ? f->slots[index] : 0;

	return slot && !(slot & 1) ? (int32_t)(slot >> 1) - 1 : NO_FRAME;
}

static void set_frame(struct file *f, uint32_t index, int32_t frame)
{
	f->slots[index] = (uint64_t)(uint32_t)(frame + 1) << 1;
	f->nr_cached++;
}

/* ---- files ---- */

static int grow(struct file *f, uint32_t pages)
{
	uint64_t *slots;
	uint32_t room;

	if (pages > f->room) {
		room = MAX(pages, f->room + f->room / 2);
		slots = realloc(f->slots, room * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		memset(slots + f->room, 0, (room - f->room) * sizeof(*slots));
		f->slots = slots;
		f->room = room;
	}
	f->pages = MAX(f->pages, pages);
	return 0;
}

static int free_number(struct machine *m)
{
	for (uint32_t i = m->file_hint; i < m->nr_files; i++)
		if (!m->files[i].used) {
			m->file_hint = i + 1;
			return (int)i;
		}
	m->file_hint = m->nr_files;
	if (m->nr_files == m->max_files) {
		uint32_t max = MAX(2 * m->max_files, 64u);
		struct file *files = realloc(m->files, max * sizeof(*files));

		if (!files)
			return -ENOMEM;
		m->files = files;
		m->max_files = max;
	}
	m->files[m->nr_files] = (struct file){0};
	return (int)m->nr_files++;
}

int machine_file(struct machine *m, uint32_t pages)
{
	int number = free_number(m);

	if (number < 0)
		return number;
	m->files[number] = (struct file){.used = true};
	if (grow(&m->files[number], MAX(pages, 1u))) {
		m->files[number].used = false;
		return -ENOMEM;
	}
	m->files[number].pages = pages;
	return number;
}

struct open_file *task_open(struct task *t, int file)
{
	struct open_file *f = calloc(1, sizeof(*f));

	(void)t;
	if (!f)
		return NULL;
	f->file = file;
	f->last = -2;
	return f;
}

void task_close(struct task *t, struct open_file *f)
{
	(void)t;
	free(f);
}

void task_fadvise(struct open_file *f, enum file_advice advice)
{
	f->advice = advice;
}

/* ---- pages in and out ---- */

void file_evicted(struct machine *m, int32_t frame, uint64_t shadow)
{
	struct frame *fr = &m->frames[frame];
	struct file *f = &m->files[fr->file];

	f->slots[fr->index] = shadow;
	f->nr_cached--;
	memcg_count(m, fr->memcg, MEMCG_FILE, -1);
	frame_free(m, frame);
}

/* The page goes away with its content; nothing maps, reads or writes it. */
void drop_cached(struct machine *m, int32_t frame)
{
	struct frame *fr = &m->frames[frame];

	if (foliage_folio_remove(m->engine, this_cpu(m), frame))
		return;
	if (fr->dirty)
		file_clean(m, frame);
	file_evicted(m, frame, 0);
}

void file_wait(struct task *t, int32_t frame)
{
	struct frame *fr = &t->m->frames[frame];

	if (!fr->reading && fr->ready <= t->now)
		return;
	/* Not submitted yet: whoever brings it in is still looking for the rest of its window. */
	wait_io(t, fr->ready == UINT64_MAX ? t->now + POLL_NS : fr->ready,
		foliage_folio_workingset(t->m->engine, frame));
	if (fr->reading && fr->ready <= t->now) {
		fr->reading = false;
		foliage_folio_unlock(t->m->engine, frame);
	}
}

void io_done(struct machine *m, void *arg)
{
	struct io *io = arg;

	for (uint32_t i = 0; i < io->nr; i++) {
		struct frame *fr = &m->frames[io->frames[i]];

		if (!fr->reading || fr->ready != io->done)
			continue;
		fr->reading = false;
		foliage_folio_unlock(m->engine, io->frames[i]);
	}
	free(io);
}

/* A new page of the cache; NO_FRAME when somebody else brought it meanwhile. */
static int32_t insert(struct task *t, uint32_t file, uint32_t index, uint32_t flags)
{
	struct machine *m = t->m;
	int32_t frame = frame_alloc(m, t->memcg, false);
	struct file *f = &m->files[file];
	struct frame *fr = &m->frames[frame];
	uint64_t slot = index < f->pages ? f->slots[index] : 2;

	if (slot && !(slot & 1)) {
		frame_free(m, frame);
		return NO_FRAME;
	}
	fr->kind = FRAME_FILE;
	fr->file = file;
	fr->index = index;
	set_frame(f, index, frame);
	memcg_count(m, t->memcg, MEMCG_FILE, 1);
	this_cpu(m)->in_lru_fault = t->in_lru_fault;
	foliage_folio_add(m->engine, this_cpu(m), frame, t->memcg, 0, 0, 0, flags, slot);
	this_cpu(m)->in_lru_fault = false;
	return frame;
}

/* One request for pages that lie one after another. */
static void submit_run(struct machine *m, struct io *run)
{
	uint64_t done = device_submit(m, &m->disk, run->nr, false);
	struct io *io;

	for (uint32_t i = 0; i < run->nr; i++)
		m->frames[run->frames[i]].ready = done;
	/* A single page is unlocked by who waits for it. */
	if (run->nr == 1 && !run->async)
		return;
	io = malloc(sizeof(*io));
	if (!io) {
		machine_fail(m, "no memory for a request");
		return;
	}
	*io = *run;
	io->done = done;
	event_at(m, done, io_done, io, true);
}

void file_read_pages(struct task *t, uint32_t file, uint32_t first, uint32_t nr, uint32_t mark,
		     bool async)
{
	struct machine *m = t->m;
	struct io run = {0};

	nr = MIN(nr, m->files[file].pages - MIN(first, m->files[file].pages));
	/* Of a window only one page is waited for, and it need not be the one that is read alone. */
	run.async = async || nr > 1;
	for (uint32_t i = first; i < first + nr; i++) {
		int32_t frame = NO_FRAME;

		if (file_frame(&m->files[file], i) == NO_FRAME)
			frame = insert(t, file, i, FOLIAGE_FOLIO_LOCKED);
		if (frame != NO_FRAME) {
			m->frames[frame].reading = true;
			m->frames[frame].ready = UINT64_MAX;
			m->frames[frame].ra_mark = i == mark;
			run.frames[run.nr++] = frame;
		}
		if (run.nr && (frame == NO_FRAME || run.nr == ARRAY_SIZE(run.frames))) {
			submit_run(m, &run);
			run.nr = 0;
		}
	}
	if (run.nr)
		submit_run(m, &run);
}

/* ---- readahead of read() ---- */

static uint32_t first_window(uint32_t request, uint32_t ra)
{
	uint32_t n = 1u << order_base_2(request);

	return n <= ra / 32 ? 4 * n : n <= ra / 4 ? 2 * n : ra;
}

static uint32_t next_window(uint32_t size, uint32_t ra)
{
	return size < ra / 16 ? 4 * size : size <= ra / 2 ? 2 * size : ra;
}

static uint32_t cached_below(const struct file *f, uint32_t index, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && n < index && file_frame(f, index - 1 - n) != NO_FRAME)
		n++;
	return n == most ? most - 1 : n;
}

static void read_window(struct task *t, struct open_file *of)
{
	file_read_pages(t, (uint32_t)of->file, of->ra_start, of->ra_size,
			of->ra_start + of->ra_size - of->ra_async, false);
}

/* A miss at `index` of a request that wants `request` pages from there. */
static void sync_readahead(struct task *t, struct open_file *of, uint32_t index, uint32_t request)
{
	struct machine *m = t->m;
	const struct file *f = &m->files[of->file];
	uint32_t ra = m->options.readahead * (of->advice == FILE_SEQUENTIAL ? 2 : 1), below;
	int64_t gap = (int64_t)index - of->last;

	request = MIN(request, ra);
	if (of->advice == FILE_RANDOM) {
		file_read_pages(t, (uint32_t)of->file, index, request, UINT32_MAX, false);
		return;
	}
	if (index == 0 || gap == 1 || gap == 2) {
		of->ra_start = index;
		of->ra_size = first_window(request, ra);
		of->ra_async = of->ra_size > request ? of->ra_size - request : of->ra_size;
		read_window(t, of);
		return;
	}
	below = cached_below(f, index, ra);
	if (below <= 1) {
		file_read_pages(t, (uint32_t)of->file, index, request, UINT32_MAX, false);
		return;
	}
	if (below >= index)
		below *= 2;
	of->ra_start = index;
	of->ra_size = MIN(below + request, ra);
	of->ra_async = 1;
	read_window(t, of);
}

/* A marked page was reached: the next window, without waiting for it. */
static void async_readahead(struct task *t, struct open_file *of, uint32_t index)
{
	struct machine *m = t->m;
	const struct file *f = &m->files[of->file];
	uint32_t ra = m->options.readahead * (of->advice == FILE_SEQUENTIAL ? 2 : 1);
	uint32_t missing = index + 1;

	if (of->advice == FILE_RANDOM)
		return;
	if (index == of->ra_start + of->ra_size - of->ra_async) {
		of->ra_start += of->ra_size;
		of->ra_size = MAX(of->ra_size, next_window(of->ra_size, ra));
	} else {
		while (missing <= index + ra && file_frame(f, missing) != NO_FRAME)
			missing++;
		if (missing > index + ra)
			return;
		of->ra_start = missing;
		of->ra_size = next_window(missing - index, ra);
	}
	of->ra_async = of->ra_size;
	file_read_pages(t, (uint32_t)of->file, of->ra_start, of->ra_size, of->ra_start, true);
}

/* ---- read and write ---- */

/* The cached page, read in if it was not; `wait` until it is there. */
static int32_t get_page(struct task *t, struct open_file *of, uint32_t index, uint32_t request)
{
	struct machine *m = t->m;

	for (;;) {
		int32_t frame = file_frame(&m->files[of->file], index);

		check_failed(m);
		if (index >= m->files[of->file].pages)
			return NO_FRAME;
		if (frame == NO_FRAME) {
			sync_readahead(t, of, index, request);
			continue;
		}
		if (m->frames[frame].ra_mark) {
			m->frames[frame].ra_mark = false;
			async_readahead(t, of, index);
		}
		if (m->frames[frame].reading) {
			file_wait(t, frame);
			/* It may be gone again by now. */
			if (file_frame(&m->files[of->file], index) != frame)
				continue;
		}
		return frame;
	}
}

void task_read(struct task *t, struct open_file *of, uint32_t first, uint32_t nr)
{
	struct machine *m = t->m;
	uint32_t pages = m->files[of->file].pages;

	nr = MIN(nr, pages - MIN(first, pages));
	charge(m, m->costs.read_hit);
	for (uint32_t i = first; i < first + nr; i++) {
		int32_t frame = get_page(t, of, i, first + nr - i);

		if (frame == NO_FRAME)
			break;
		if (i != first)
			charge(m, m->costs.read_page);
		if (!(i == first && of->last == (int64_t)i) && of->advice != FILE_NOREUSE)
			foliage_folio_mark_accessed(m->engine, this_cpu(m), frame);
		of->last = i;
		task_checkpoint(t);
	}
	check_failed(m);
}

/* The cached page, or a new one; not before a read that is on its way has brought it. */
static int32_t page_to_write(struct task *t, struct open_file *of, uint32_t index)
{
	struct machine *m = t->m;

	for (;;) {
		int32_t frame = file_frame(&m->files[of->file], index);

		if (frame == NO_FRAME)
			insert(t, (uint32_t)of->file, index, FOLIAGE_FOLIO_WRITE);
		else if (m->frames[frame].reading)
			/* Afterwards it may have been evicted, and the frame be another page's. */
			file_wait(t, frame);
		else
			return frame;
	}
}

void task_write(struct task *t, struct open_file *of, uint32_t first, uint32_t nr)
{
	struct machine *m = t->m;

	if (grow(&m->files[of->file], first + nr))
		machine_fail(m, "no memory for a file");
	check_failed(m);
	charge(m, m->costs.read_hit);
	for (uint32_t i = first; i < first + nr; i++) {
		int32_t frame = page_to_write(t, of, i);

		charge(m, m->costs.read_page);
		foliage_folio_mark_accessed(m->engine, this_cpu(m), frame);
		file_dirty(m, frame);
		balance_dirty(t);
		task_checkpoint(t);
	}
	check_failed(m);
}

/* ---- out ---- */

static void drop_range(struct task *t, uint32_t file, uint32_t first, uint32_t nr, bool all)
{
	struct machine *m = t->m;

	for (uint32_t i = first; i < first + nr && i < m->files[file].pages; i++) {
		int32_t frame = file_frame(&m->files[file], i);

		if (frame == NO_FRAME) {
			if (all)
				m->files[file].slots[i] = 0;
			continue;
		}
		if (m->frames[frame].mapcount || (!all && m->frames[frame].dirty)) {
			if (!all)
				foliage_folio_deactivate(m->engine, this_cpu(m), frame);
			continue;
		}
		while (file_frame(&m->files[file], i) == frame &&
		       (m->frames[frame].reading || m->frames[frame].writeback)) {
			if (m->frames[frame].reading)
				file_wait(t, frame);
			else
				wait_io(t, MAX(m->frames[frame].ready, t->now + 1), false);
		}
		if (file_frame(&m->files[file], i) == frame && !m->frames[frame].mapcount &&
		    (all || !m->frames[frame].dirty))
			drop_cached(m, frame);
		charge(m, m->costs.evict);
	}
	task_checkpoint(t);
}

void task_fadvise_dontneed(struct task *t, struct open_file *f, uint32_t first, uint32_t nr)
{
	drop_range(t, (uint32_t)f->file, first, nr, false);
}

void task_truncate(struct task *t, int file)
{
	struct machine *m = t->m;
	struct file *f = &m->files[file];

	drop_range(t, (uint32_t)file, 0, f->pages, true);
	f = &m->files[file];
	if (f->nr_cached) /* still mapped: the file stays until its last mapping goes */
		return;
	free(f->slots);
	*f = (struct file){0};
	m->file_hint = MIN(m->file_hint, (uint32_t)file);
}

int files_init(struct machine *m)
{
	m->flusher = task_new(m, 0, flusher_main, NULL);
	if (!m->flusher)
		return -ENOMEM;
	m->flusher->kernel = true;
	m->flusher->own_cpu = true;
	return device_init(&m->disk, m->options.disk);
}

void files_fini(struct machine *m)
{
	for (uint32_t i = 0; i < m->nr_files; i++)
		free(m->files[i].slots);
	free(m->files);
	free(m->dirty_ring);
	device_fini(&m->disk);
}
