/* SPDX-License-Identifier: MIT
 *
 * Touching memory, and what happens when the page is not there.
 *
 * A fault on a file page maps the cached pages around it too; a miss reads around it, unless the
 * mapping's misses have outnumbered its hits so far that this would only waste I/O (0.2.7). A fault
 * on anonymous memory takes a zeroed page, one from swap, or a copy of one shared by fork.
 */
#include "machine/sim.h"

#include <stdlib.h>

#include "base/bits.h"
#include "mm/pte.h"

enum { LOTS_OF_MISSES = 100 };

static void map_frame(struct task *t, struct pte_page *table, uint64_t page, int32_t frame,
		      bool young, bool dirty)
{
	space_set(table, page, frame, young, dirty);
	frame_map(t->m, frame, t->space, (uint32_t)page);
}

/* ---- anonymous memory ---- */

/* For the entry of `page`; NO_FRAME when that is no longer `entry`: another thread was here. */
static int32_t new_anon(struct task *t, const struct pte_page *table, uint64_t page, int32_t entry)
{
	struct machine *m = t->m;
	int32_t frame = frame_alloc(m, t->memcg, false);

	if (table->pte.folio[page % ENTRIES] != entry) {
		frame_free(m, frame);
		return NO_FRAME;
	}
	m->frames[frame].kind = FRAME_ANON;
	memcg_count(m, t->memcg, MEMCG_ANON, 1);
	this_cpu(m)->in_lru_fault = t->in_lru_fault;
	foliage_folio_add(m->engine, this_cpu(m), frame, t->memcg, 0, 0, 0, FOLIAGE_FOLIO_ANON, 0);
	this_cpu(m)->in_lru_fault = false;
	return frame;
}

/* The page is only in swap. False: look again. */
static bool fault_swap(struct task *t, struct pte_page *table, uint64_t page, int32_t entry,
		       bool store)
{
	struct machine *m = t->m;
	uint32_t k = (uint32_t)(page % ENTRIES);
	int32_t slot = PTE_SWAP - entry, frame;
	bool major, shared;

	frame = swap_in(t, slot, &major);
	if (major) {
		m->stat[MACHINE_PGMAJFAULT]++;
		memcg_count(m, t->memcg, MEMCG_PGMAJFAULT, 1);
	}
	if (table->pte.folio[k] != entry || m->slots[slot].frame != frame)
		return false;
	map_frame(t, table, page, frame, true, store);
	swap_slot_put(m, slot);
	shared = m->slots[slot].refs > 1 || m->frames[frame].mapcount > 1;
	if (shared) {
		map_set(table->protect, k);
		return !store;
	}
	/* A compressed copy is memory; a copy on disk is let go when swap fills up. */
	if (m->options.swap == MACHINE_ZRAM || m->slots_free < m->nr_slots / 2)
		if (!m->frames[frame].writeback)
			swap_forget(m, frame);
	return true;
}

/* A store to an entry that is there but protected. */
static bool fault_protected(struct task *t, struct vma *v, struct pte_page *table, uint64_t page,
			    int32_t frame)
{
	struct machine *m = t->m;
	uint32_t k = (uint32_t)(page % ENTRIES);
	struct frame *f = &m->frames[frame];
	int32_t copy;

	if (f->kind == FRAME_FILE && v->shared_write) {
		file_dirty(m, frame);
		map_clear(table->protect, k);
		map_set(table->pte.dirty, k);
		balance_dirty(t);
		return true;
	}
	if (f->kind == FRAME_ANON && f->mapcount == 1 &&
	    (f->slot == NO_SLOT || m->slots[f->slot].refs == 1)) {
		map_clear(table->protect, k);
		return true;
	}
	copy = new_anon(t, table, page, frame);
	if (copy == NO_FRAME)
		return false;
	charge(m, m->costs.page_copy);
	space_zap(m, t->space, v, page);
	map_frame(t, table, page, copy, true, true);
	return true;
}

/* ---- files ---- */

static void count_misses(struct file *f, int n)
{
	if (n > 0)
		f->mmap_miss = MIN(f->mmap_miss + (uint32_t)n, 10u * LOTS_OF_MISSES);
	else
		f->mmap_miss -= MIN(f->mmap_miss, (uint32_t)-n);
}

/* Map the cached pages of the aligned window around `page`, within the mapping and its table. */
static bool fault_around(struct task *t, const struct vma *v, struct pte_page *table, uint64_t page)
{
	struct machine *m = t->m;
	uint64_t window = m->options.fault_around, first = page - page % window,
		 end = first + window;
	bool found = false;
	int hits = 0;

	first = MAX(MAX(first, v->start), page / ENTRIES * ENTRIES);
	end = MIN(MIN(end, v->end), (page / ENTRIES + 1) * ENTRIES);
	for (uint64_t p = first; p < end; p++) {
		uint32_t index = v->first + (uint32_t)(p - v->start);
		int32_t frame = file_frame(&m->files[v->file], index);

		if (table->pte.folio[p % ENTRIES] != PTE_NONE || frame == NO_FRAME ||
		    m->frames[frame].reading || m->frames[frame].ra_mark)
			continue;
		map_frame(t, table, p, frame, p == page || !m->options.born_old, false);
		if (v->shared_write && !m->frames[frame].dirty)
			map_set(table->protect, (uint32_t)(p % ENTRIES));
		if (!v->shared_write)
			map_set(table->protect, (uint32_t)(p % ENTRIES));
		charge(m, m->costs.fault_around);
		found |= p == page;
		hits++;
	}
	count_misses(&m->files[v->file], -hits);
	return found;
}

/* Bring the page in, and what readahead wants with it. */
static void read_for_fault(struct task *t, struct vma *v, uint32_t index)
{
	struct machine *m = t->m;
	uint32_t ra = m->options.readahead, file = (uint32_t)v->file, start;
	struct file *f = &m->files[file];

	m->stat[MACHINE_PGMAJFAULT]++;
	memcg_count(m, t->memcg, MEMCG_PGMAJFAULT, 1);
	if (v->flags & FOLIAGE_VMA_RAND_READ) {
		file_read_pages(t, file, index, 1, UINT32_MAX, false);
		return;
	}
	if (v->flags & FOLIAGE_VMA_SEQ_READ) {
		v->ra_start = index;
		v->ra_size = v->ra_async = ra;
		file_read_pages(t, file, index, ra, index + ra / 2, false);
		return;
	}
	count_misses(f, 1);
	if (f->mmap_miss > LOTS_OF_MISSES) {
		file_read_pages(t, file, index, 1, UINT32_MAX, false);
		return;
	}
	start = index - MIN(index, ra / 2);
	v->ra_start = start;
	v->ra_size = ra;
	v->ra_async = ra / 4;
	file_read_pages(t, file, start, ra, start + ra - ra / 4, false);
}

/* A marked page was reached: the window behind the last one. */
static void read_ahead_of_fault(struct task *t, struct vma *v, uint32_t index)
{
	struct machine *m = t->m;
	uint32_t ra = m->options.readahead;

	if (v->flags & FOLIAGE_VMA_RAND_READ)
		return;
	count_misses(&m->files[v->file], -1);
	v->ra_start = index + MAX(v->ra_async, 1u);
	v->ra_size = v->ra_async = ra;
	file_read_pages(t, (uint32_t)v->file, v->ra_start, ra, v->ra_start, true);
}

/* False: look again, it went away meanwhile. */
static bool fault_file(struct task *t, struct vma *v, struct pte_page *table, uint64_t page,
		       bool store)
{
	struct machine *m = t->m;
	uint32_t index = v->first + (uint32_t)(page - v->start), k = (uint32_t)(page % ENTRIES);
	int32_t frame = file_frame(&m->files[v->file], index);

	if (!store && !(v->flags & FOLIAGE_VMA_RAND_READ) && m->options.fault_around > 1 &&
	    fault_around(t, v, table, page))
		return true;
	if (frame == NO_FRAME) {
		read_for_fault(t, v, index);
		frame = file_frame(&m->files[v->file], index);
		if (frame == NO_FRAME)
			return false;
	} else if (m->frames[frame].ra_mark) {
		m->frames[frame].ra_mark = false;
		read_ahead_of_fault(t, v, index);
	}
	while (file_frame(&m->files[v->file], index) == frame && m->frames[frame].reading) {
		file_wait(t, frame);
		check_failed(m);
	}
	if (file_frame(&m->files[v->file], index) != frame || table->pte.folio[k] != PTE_NONE)
		return false;
	map_frame(t, table, page, frame, true, false);
	map_set(table->protect, k);
	return !store;
}

/* ---- */

static bool resolve(struct task *t, struct vma *v, struct pte_page *table, uint64_t page,
		    bool store)
{
	int32_t entry = table->pte.folio[page % ENTRIES], frame;

	if (entry >= 0)
		return !store || !map_test(table->protect, (uint32_t)(page % ENTRIES)) ||
		       fault_protected(t, v, table, page, entry);
	if (entry <= PTE_SWAP)
		return fault_swap(t, table, page, entry, store);
	if (v->file >= 0)
		return fault_file(t, v, table, page, store);
	frame = new_anon(t, table, page, entry);
	if (frame == NO_FRAME)
		return false;
	map_frame(t, table, page, frame, true, store);
	return true;
}

void fault(struct task *t, uint64_t page, enum task_access access)
{
	struct machine *m = t->m;
	struct vma *v = space_find(t->space, page);
	struct pte_page *table;
	bool done = false;

	if (!v || page < v->start ||
	    (v->file >= 0 && v->first + (page - v->start) >= m->files[v->file].pages)) {
		machine_fail(m, "a task touched page %llu, which is not mapped",
			     (unsigned long long)page);
		check_failed(m);
	}
	m->stat[MACHINE_PGFAULT]++;
	memcg_count(m, t->memcg, MEMCG_PGFAULT, 1);
	charge(m, m->costs.fault);
	table = space_table(t->space, page, true);
	if (!table)
		machine_fail(m, "no memory for page tables");
	check_failed(m);
	t->in_lru_fault = vma_has_recency(v->flags);
	while (!done) {
		done = resolve(t, v, table, page, access == TASK_STORE);
		check_failed(m);
	}
	t->in_lru_fault = false;
}

void task_touch(struct task *t, uint64_t page, enum task_access access)
{
	struct space *s = t->space;
	uint64_t i = page / ENTRIES;
	uint32_t k = (uint32_t)(page % ENTRIES);
	struct pte_page *table = i < s->nr_tables ? s->tables[i] : NULL;

	if (!table || table->pte.folio[k] < 0 ||
	    (access == TASK_STORE && map_test(table->protect, k))) {
		fault(t, page, access);
		table = s->tables[i];
	}
	if (!map_test(table->pte.young, k)) {
		map_set(table->pte.young, k);
		table->young = true;
	}
	if (access == TASK_STORE && !map_test(table->pte.dirty, k))
		map_set(table->pte.dirty, k);
	charge_user(t, t->m->costs.touch);
	task_checkpoint(t);
}
