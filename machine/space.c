/* SPDX-License-Identifier: MIT
 *
 * Address spaces: mappings and page tables, how they are made, copied and taken down.
 *
 * A mapping gets fresh addresses, never reused within its space, aligned to a page-table page when it
 * is that large. Page tables are those the engine walks; a third bitmap says which entries a store
 * may not go through: pages shared by fork, and file pages whose next store must be noticed.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mm/pte.h"

struct space *space_new(struct machine *m, uint32_t memcg)
{
	struct space *s = calloc(1, sizeof(*s));
	int mm = s ? foliage_mm_add(m->engine, memcg) : -1;

	if (mm < 0 || mm >= MMS_MAX) {
		free(s);
		return NULL;
	}
	s->mm = (uint32_t)mm;
	s->memcg = memcg;
	s->users = 1;
	s->next_page = ENTRIES;
	m->spaces[mm] = s;
	m->nr_spaces = MAX(m->nr_spaces, s->mm + 1);
	return s;
}

struct vma *space_find(struct space *s, uint64_t page)
{
	uint32_t low = 0, high = s->nr_vmas;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (s->vmas[mid].end <= page)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->nr_vmas ? &s->vmas[low] : NULL; /* the first that ends above `page` */
}

struct pte_page *space_table(struct space *s, uint64_t page, bool make)
{
	uint64_t i = page / ENTRIES;
	struct pte_page *table;

	if (i < s->nr_tables && s->tables[i])
		return s->tables[i];
	if (!make)
		return NULL;
	if (i >= s->nr_tables) {
		uint32_t nr = (uint32_t)MAX(i + 1, (uint64_t)s->nr_tables * 2);
		struct pte_page **tables = realloc(s->tables, nr * sizeof(struct pte_page *));

		if (!tables)
			return NULL;
		memset(tables + s->nr_tables, 0, (nr - s->nr_tables) * sizeof(struct pte_page *));
		s->tables = tables;
		s->nr_tables = nr;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	for (uint32_t k = 0; k < ENTRIES; k++)
		table->pte.folio[k] = PTE_NONE;
	s->tables[i] = table;
	return table;
}

void space_set(struct pte_page *table, uint64_t page, int32_t entry, bool young, bool dirty)
{
	uint32_t i = (uint32_t)(page % ENTRIES);

	table->used += (uint32_t)(entry != PTE_NONE) - (uint32_t)(table->pte.folio[i] != PTE_NONE);
	table->pte.folio[i] = entry;
	map_clear(table->pte.young, i);
	map_clear(table->pte.dirty, i);
	map_clear(table->protect, i);
	if (young) {
		map_set(table->pte.young, i);
		table->young = true;
	}
	if (dirty)
		map_set(table->pte.dirty, i);
}

/* ---- mappings ---- */

static uint64_t add_vma(struct space *s, struct vma v, uint32_t nr)
{
	if (!nr || s->next_page + nr > UINT32_MAX - ENTRIES)
		return 0;
	if (s->nr_vmas == s->max_vmas) {
		uint32_t max = MAX(2 * s->max_vmas, 8u);
		struct vma *vmas = realloc(s->vmas, max * sizeof(*vmas));

		if (!vmas)
			return 0;
		s->vmas = vmas;
		s->max_vmas = max;
	}
	v.start = s->next_page;
	if (nr >= ENTRIES)
		v.start = (v.start + ENTRIES - 1) / ENTRIES * ENTRIES;
	v.end = v.start + nr;
	s->next_page = v.end + 1; /* a guard page, so that neighbours stay apart */
	s->vmas[s->nr_vmas++] = v;
	return v.start;
}

static uint32_t flags_of(unsigned int flags)
{
	return (flags & MAPPING_EXEC ? FOLIAGE_VMA_EXEC : 0) |
	       (flags & MAPPING_MLOCK ? FOLIAGE_VMA_LOCKED : 0);
}

uint64_t task_map_file(struct task *t, int file, uint32_t first, uint32_t nr, unsigned int flags)
{
	struct vma v = {
		.file = file,
		.first = first,
		.flags = flags_of(flags),
		.shared_write = flags & MAPPING_SHARED_WRITE,
	};

	return add_vma(t->space, v, nr);
}

uint64_t task_map_anon(struct task *t, uint32_t nr, unsigned int flags)
{
	return add_vma(t->space,
		       (struct vma){.file = -1, .flags = flags_of(flags) | FOLIAGE_VMA_ANON}, nr);
}

/* ---- taking entries away ---- */

static void free_anon(struct machine *m, int32_t frame)
{
	struct frame *f = &m->frames[frame];

	if (f->writeback) {
		f->doomed = true;
		return;
	}
	if (foliage_folio_remove(m->engine, this_cpu(m), frame))
		return;
	memcg_count(m, f->memcg, MEMCG_ANON, -1);
	swap_forget(m, frame);
	frame_free(m, frame);
}

void anon_written(struct machine *m, int32_t frame)
{
	if (m->frames[frame].doomed)
		free_anon(m, frame);
}

static void zap_present(struct machine *m, struct space *s, const struct vma *v,
			struct pte_page *table, uint64_t page, int32_t frame)
{
	struct frame *f = &m->frames[frame];
	uint32_t i = (uint32_t)(page % ENTRIES);
	bool young = map_test(table->pte.young, i);

	frame_unmap_one(m, frame, s->mm, (uint32_t)page);
	s->rss--;
	if (f->kind == FRAME_FILE) {
		if (young && vma_has_recency(v->flags))
			foliage_folio_mark_accessed(m->engine, this_cpu(m), frame);
	} else if (!f->mapcount) {
		free_anon(m, frame);
	}
}

/* A page that is only left in the swap cache has nobody to come back for it. */
static void zap_swapped(struct machine *m, int32_t slot)
{
	int32_t frame = m->slots[slot].frame;

	swap_slot_put(m, slot);
	if (frame != NO_FRAME && m->slots[slot].refs == 1 && !m->frames[frame].mapcount &&
	    !m->frames[frame].reading)
		free_anon(m, frame);
}

void space_zap(struct machine *m, struct space *s, const struct vma *v, uint64_t page)
{
	struct pte_page *table = space_table(s, page, false);
	int32_t entry = table ? table->pte.folio[page % ENTRIES] : PTE_NONE;

	if (entry == PTE_NONE)
		return;
	charge(m, m->costs.zap);
	if (entry >= 0)
		zap_present(m, s, v, table, page, entry);
	else
		zap_swapped(m, PTE_SWAP - entry);
	space_set(table, page, PTE_NONE, false, false);
}

static void zap_range(struct machine *m, struct space *s, const struct vma *v, uint64_t from,
		      uint64_t end)
{
	for (uint64_t page = from; page < end;) {
		struct pte_page *table = space_table(s, page, false);
		uint64_t next = MIN(end, (page / ENTRIES + 1) * ENTRIES);

		while (table && table->used && page < next)
			space_zap(m, s, v, page++);
		page = next;
	}
}

void task_unmap(struct task *t, uint64_t addr, uint32_t nr)
{
	struct space *s = t->space;
	struct vma *v = space_find(s, addr);
	uint64_t end = addr + nr;

	/* Whole mappings, or their tails. */
	if (!v || addr < v->start || end < v->end)
		return;
	zap_range(t->m, s, v, addr, v->end);
	if (addr > v->start) {
		v->end = addr;
		return;
	}
	memmove(v, v + 1, (size_t)(&s->vmas[s->nr_vmas] - (v + 1)) * sizeof(*v));
	s->nr_vmas--;
	task_checkpoint(t);
}

static void space_empty(struct machine *m, struct space *s)
{
	for (uint32_t i = 0; i < s->nr_vmas; i++)
		zap_range(m, s, &s->vmas[i], s->vmas[i].start, s->vmas[i].end);
	s->nr_vmas = 0;
}

void space_free(struct machine *m, struct space *s)
{
	m->spaces[s->mm] = NULL;
	for (uint32_t i = 0; i < s->nr_tables; i++)
		free(s->tables[i]);
	free(s->tables);
	free(s->vmas);
	free(s);
}

void space_put(struct machine *m, struct space *s)
{
	if (--s->users)
		return;
	space_empty(m, s);
	foliage_mm_remove(m->engine, s->mm);
	space_free(m, s);
}

/* ---- processes ---- */

struct task *machine_spawn(struct machine *m, uint32_t memcg, task_fn fn, void *arg)
{
	struct space *s = space_new(m, memcg);
	struct task *t = s ? task_new(m, memcg, fn, arg) : NULL;

	if (!t) {
		if (s)
			space_put(m, s);
		return NULL;
	}
	t->space = s;
	m->live++;
	return t;
}

static bool copy_table(struct machine *m, struct space *from, struct space *to, const struct vma *v,
		       uint32_t i)
{
	struct pte_page *src = from->tables[i], *dst;
	uint64_t first = MAX(v->start, (uint64_t)i * ENTRIES),
		 end = MIN(v->end, (uint64_t)(i + 1) * ENTRIES);

	charge(m, m->costs.fork_table);
	dst = space_table(to, (uint64_t)i * ENTRIES, true);
	if (!dst)
		return false;
	for (uint64_t page = first; page < end; page++) {
		uint32_t k = (uint32_t)(page % ENTRIES);
		int32_t entry = src->pte.folio[k];

		/* Pages of files come back by fault. */
		if (entry == PTE_NONE || (entry >= 0 && m->frames[entry].kind == FRAME_FILE))
			continue;
		space_set(dst, page, entry, entry >= 0 && map_test(src->pte.young, k),
			  entry >= 0 && map_test(src->pte.dirty, k));
		if (entry < 0) {
			m->slots[PTE_SWAP - entry].refs++;
			continue;
		}
		map_set(src->protect, k);
		map_set(dst->protect, k);
		if (!frame_map(m, entry, to, (uint32_t)page))
			return false;
	}
	return true;
}

static bool copy_space(struct machine *m, struct space *from, struct space *to)
{
	to->vmas = malloc(MAX(from->max_vmas, 1u) * sizeof(*to->vmas));
	if (!to->vmas)
		return false;
	if (from->nr_vmas)
		memcpy(to->vmas, from->vmas, from->nr_vmas * sizeof(*to->vmas));
	to->nr_vmas = from->nr_vmas;
	to->max_vmas = MAX(from->max_vmas, 1u);
	to->next_page = from->next_page;
	for (uint32_t n = 0; n < from->nr_vmas; n++) {
		const struct vma *v = &from->vmas[n];

		for (uint64_t i = v->start / ENTRIES; i < from->nr_tables && i * ENTRIES < v->end;
		     i++)
			if (from->tables[i] && from->tables[i]->used &&
			    !copy_table(m, from, to, v, (uint32_t)i))
				return false;
	}
	return true;
}

static struct task *new_child(struct task *t, task_fn fn, void *arg, bool copy)
{
	struct machine *m = t->m;
	struct task *child;

	charge(m, m->costs.fork_base);
	child = machine_spawn(m, t->memcg, fn, arg);
	if (!child || (copy && !copy_space(m, t->space, child->space))) {
		machine_fail(m, "no memory for a process");
		check_failed(m);
		return NULL;
	}
	child->parent = t;
	t->children++;
	task_checkpoint(t);
	return child;
}

struct task *task_fork(struct task *t, task_fn fn, void *arg)
{
	return new_child(t, fn, arg, true);
}

struct task *task_spawn(struct task *t, task_fn fn, void *arg)
{
	return new_child(t, fn, arg, false);
}

struct task *task_thread(struct task *t, task_fn fn, void *arg)
{
	struct task *thread = task_new(t->m, t->memcg, fn, arg);

	if (!thread)
		return NULL;
	thread->space = t->space;
	t->space->users++;
	t->m->live++;
	return thread;
}

void task_exec(struct task *t)
{
	struct machine *m = t->m;
	struct space *s = space_new(m, t->memcg);

	if (!s) {
		machine_fail(m, "no memory for a process");
		check_failed(m);
	}
	space_put(m, t->space);
	t->space = s;
}

void task_wait_children(struct task *t)
{
	while (t->children) {
		t->waits_children = true;
		task_block(t, UINT64_MAX);
		t->waits_children = false;
		check_failed(t->m);
	}
}

void task_exit(struct task *t)
{
	struct machine *m = t->m;

	if (t->space && !m->failed) {
		struct space *s = t->space;

		space_put(m, s);
		t->space = NULL;
	}
	/* Children that are still there have nobody to tell. */
	for (struct task *c = m->all; c && t->children; c = c->next_all)
		if (c->parent == t)
			c->parent = NULL;
	if (t->parent) {
		t->parent->children--;
		if (t->parent->waits_children)
			task_wake(t->parent, t->now);
	}
	task_die(t);
}

/* ---- advice ---- */

static void advise_pages(struct task *t, const struct vma *v, uint64_t from, uint64_t end,
			 enum map_advice advice)
{
	struct machine *m = t->m;

	for (uint64_t page = from; page < end; page++) {
		struct pte_page *table = space_table(t->space, page, false);
		uint32_t k = (uint32_t)(page % ENTRIES);
		int32_t frame = table ? table->pte.folio[k] : PTE_NONE;

		if (advice == ADVICE_DONTNEED) {
			space_zap(m, t->space, v, page);
			continue;
		}
		/* What others map as well is left alone. */
		if (frame < 0 || m->frames[frame].mapcount != 1)
			continue;
		map_clear(table->pte.young, k);
		charge(m, m->costs.rmap);
		if (advice == ADVICE_COLD)
			foliage_folio_deactivate(m->engine, this_cpu(m), frame);
		else
			foliage_folio_pageout(m->engine, this_cpu(m), frame);
	}
}

void task_madvise(struct task *t, uint64_t addr, uint32_t nr, enum map_advice advice)
{
	struct vma *v = space_find(t->space, addr);
	uint64_t end;

	if (!v || addr < v->start)
		return;
	end = MIN(v->end, addr + nr);
	switch (advice) {
	case ADVICE_NORMAL:
	case ADVICE_RANDOM:
	case ADVICE_SEQUENTIAL:
		v->flags &= ~(uint32_t)(FOLIAGE_VMA_RAND_READ | FOLIAGE_VMA_SEQ_READ);
		v->flags |= advice == ADVICE_RANDOM       ? FOLIAGE_VMA_RAND_READ
			    : advice == ADVICE_SEQUENTIAL ? FOLIAGE_VMA_SEQ_READ
							  : 0;
		break;
	case ADVICE_COLD:
	case ADVICE_PAGEOUT:
	case ADVICE_DONTNEED:
		advise_pages(t, v, addr, end, advice);
		break;
	}
	task_checkpoint(t);
	check_failed(t->m);
}
