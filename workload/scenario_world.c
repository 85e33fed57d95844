/* SPDX-License-Identifier: MIT
 *
 * The scenario's world: the paths of read(), write() and page faults down to the engine, in the
 * order in which Linux 6.12 takes them.
 *
 *   read     readahead decides what comes in (charge, insert, one page after another), then the
 *            page is marked, unless it is the one where the previous read of this open file ended.
 *   write    the whole page is overwritten: no read, no refault, no mark.
 *   fault    brings exactly its page in (or a window around it), maps it young, and with it
 *            neighbours that are there.
 *   swap     a synchronous device without a swap cache: out in one step, in by the fault.
 *
 * A file's page is one folio; private memory has its own folios in each process that touches it. A
 * folio's handle keeps the shadow.
 */
#include "workload/scenario_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mm/engine.h"
#include "mm/folio.h"

enum {
	ENTRIES = 512,
	MMAP_LOTS_OF_MISSES = 100,
	PAGE_BYTES = 4096,
	/* As measured: what the kernel charges for one node of a file's index, and for the buffer
	 * head of a written page. */
	NODE_BYTES = 592,
	BUFFER_BYTES = 112,
	NODE_SHIFT = 6,
};

static bool private_memory(const struct scenario_world *w, uint32_t folio)
{
	return w->s->files[w->file_of[folio]].kind == SCENARIO_ANON;
}

static uint64_t offset_of(const struct scenario_world *w, uint32_t folio)
{
	return folio - w->base[w->file_of[folio]][w->process_of[folio]];
}

static foliage_folio *entry_of(struct scenario_region *r, uint64_t page)
{
	return r->tables ? &r->tables[page / ENTRIES].folio[page % ENTRIES] : NULL;
}

/* ---- the kernel's bookkeeping ---- */

static bool within(const char *group, const char *ancestor)
{
	size_t n = strlen(ancestor);

	return !strncmp(group, ancestor, n) && (!group[n] || group[n] == '/');
}

int64_t scenario_world_slab(const struct scenario_world *w, uint32_t group)
{
	int64_t pages = 0;

	for (uint32_t g = 0; g < w->s->head.nr_groups; g++)
		if (within(w->s->groups[g].path, w->s->groups[group].path))
			pages += (w->slab_bytes[g] + PAGE_BYTES - 1) / PAGE_BYTES;
	return pages;
}

void scenario_world_limits(struct scenario_world *w)
{
	for (uint32_t i = 0; i < w->nr_limits; i++) {
		const struct scenario_limit *l = &w->limits[i];
		int64_t other = w->fixed[l->group] + scenario_world_slab(w, l->group);
		uint64_t less = (uint64_t)MAX(other, (int64_t)0);

		foliage_memcg_set(w->engine, w->groups[l->group], l->what,
				  l->pages - MIN(l->pages, less));
	}
}

/* True: it took or gave back a page. */
static bool charge_slab(struct scenario_world *w, uint32_t group, int64_t bytes)
{
	int64_t before = (w->slab_bytes[group] + PAGE_BYTES - 1) / PAGE_BYTES;

	w->slab_bytes[group] += bytes;
	if ((w->slab_bytes[group] + PAGE_BYTES - 1) / PAGE_BYTES == before)
		return false;
	scenario_world_limits(w);
	return true;
}

/* Index nodes that page `page` needs and that are not there: bytes. */
static int64_t grow_index(struct scenario_world *w, uint32_t file, uint64_t page)
{
	struct scenario_index *x = &w->index[file];
	int64_t bytes = 0;

	while (x->levels < ARRAY_SIZE(x->nodes) && (page >> x->levels * NODE_SHIFT || !x->levels))
		x->levels++;
	for (uint32_t l = 0; l < x->levels; l++) {
		uint64_t node = page >> (l + 1) * NODE_SHIFT;

		if (!bit_test(x->nodes[l], node)) {
			bit_set(x->nodes[l], node);
			bytes += NODE_BYTES;
		}
	}
	return bytes;
}

/* ---- backend ---- */

static void world_evict(void *ctx, foliage_folio folio, uint64_t shadow)
{
	struct scenario_world *w = ctx;
	uint32_t id = (uint32_t)folio;

	*foliage_folio_handle(w->engine, folio) = shadow;
	bit_clear(w->marks, id);
	bit_clear(w->dirty, id);
	if (bit_test(w->buffers, id)) {
		bit_clear(w->buffers, id);
		charge_slab(w, w->owner_of[id], -BUFFER_BYTES);
	}
	if (private_memory(w, id)) {
		bit_set(w->swapped, id);
		w->swap_used++;
	}
}

/* The `cursor`th process whose page tables hold the folio. */
static struct scenario_region *mapper(struct scenario_world *w, uint32_t id, uint32_t cursor,
				      uint32_t *process)
{
	uint32_t file = w->file_of[id], first = 0, end = w->s->head.nr_processes;
	uint64_t page = offset_of(w, id);

	if (private_memory(w, id)) {
		first = w->process_of[id];
		end = first + 1;
	}
	for (uint32_t p = first; p < end; p++) {
		struct scenario_region *r = &w->regions[p][file];

		if (r->tables && *entry_of(r, page) >= 0 && cursor-- == 0) {
			*process = p;
			return r;
		}
	}
	return NULL;
}

static void describe(const struct scenario_world *w, uint32_t process, uint32_t file, uint64_t page,
		     struct foliage_mapping *out)
{
	const struct scenario_region *r = &w->regions[process][file];
	uint64_t table = page / ENTRIES, left = w->s->files[file].pages - table * ENTRIES;

	*out = (struct foliage_mapping){
		.mm = w->mms[process],
		.vma_flags = r->vma_flags,
		.pmd = r->first_vpage + table * ENTRIES,
		.last = (uint32_t)MIN(left, (uint64_t)ENTRIES) - 1,
		.index = (uint32_t)(page % ENTRIES),
		.pmd_young = &r->young[table],
		.table = &r->tables[table],
	};
}

static bool world_rmap(void *ctx, foliage_folio folio, uint32_t cursor, struct foliage_mapping *out)
{
	struct scenario_world *w = ctx;
	uint32_t process;

	if (!mapper(w, (uint32_t)folio, cursor, &process))
		return false;
	describe(w, process, w->file_of[folio], offset_of(w, (uint32_t)folio), out);
	return true;
}

/* Tables that were never filled do not exist. */
static bool table_used(const struct scenario_region *r, uint32_t table)
{
	for (int i = 0; i < ENTRIES; i++)
		if (r->tables[table].folio[i] >= 0)
			return true;
	return false;
}

static bool world_next_mapping(void *ctx, uint32_t mm, uint64_t from, struct foliage_mapping *out)
{
	struct scenario_world *w = ctx;
	uint32_t process = 0;

	while (process < w->s->head.nr_processes && w->mms[process] != mm)
		process++;
	for (uint32_t f = 0; process < w->s->head.nr_processes && f < w->s->head.nr_files; f++) {
		const struct scenario_region *r = &w->regions[process][f];
		uint64_t table =
			from > r->first_vpage ? (from - r->first_vpage + ENTRIES - 1) / ENTRIES : 0;

		for (; r->tables && table < r->nr_tables; table++) {
			if (!table_used(r, (uint32_t)table))
				continue;
			describe(w, process, f, table * ENTRIES, out);
			return true;
		}
	}
	return false;
}

static void unmap_entry(struct scenario_world *w, struct scenario_region *r, uint64_t page)
{
	struct foliage_pte_table *t = &r->tables[page / ENTRIES];
	uint32_t i = (uint32_t)(page % ENTRIES);
	uint64_t bit = UINT64_C(1) << i % 64;
	foliage_folio id = t->folio[i];

	if (t->dirty[i / 64] & bit) {
		foliage_folio_set_dirty(w->engine, id);
		bit_set(w->dirty, (uint32_t)id);
	}
	t->folio[i] = -1;
	t->young[i / 64] &= ~bit;
	t->dirty[i / 64] &= ~bit;
}

/* Unmapping makes the processor forget the page; clearing its young bit does not, so that the bit
 * stays clear for as long as the translation is cached. */
static void tlb_forget(struct scenario_world *w, uint64_t vpage)
{
	if (w->s->tlb)
		w->tlb[vpage & (w->s->tlb - 1)] = 0;
}

/* True: the processor knows the translation and does not look at the page table. */
static bool tlb_hit(struct scenario_world *w, uint32_t process, uint64_t vpage)
{
	uint64_t *entry = w->s->tlb ? &w->tlb[vpage & (w->s->tlb - 1)] : NULL,
		 key = (uint64_t)(process + 1) << 40 | vpage;

	if (!entry)
		return false;
	if (*entry == key)
		return true;
	*entry = key;
	return false;
}

static bool world_unmap(void *ctx, foliage_folio folio)
{
	struct scenario_world *w = ctx;
	struct scenario_region *r;
	uint32_t process;

	while ((r = mapper(w, (uint32_t)folio, 0, &process))) {
		tlb_forget(w, r->first_vpage + offset_of(w, (uint32_t)folio));
		unmap_entry(w, r, offset_of(w, (uint32_t)folio));
	}
	return true;
}

static int64_t world_swap_free(void *ctx, uint32_t memcg)
{
	const struct scenario_world *w = ctx;

	(void)memcg;
	return (int64_t)(w->swap_pages - w->swap_used);
}

static bool world_add_to_swap(void *ctx, foliage_folio folio)
{
	(void)folio;
	return world_swap_free(ctx, 0) > 0;
}

static enum foliage_pageout world_pageout(void *ctx, foliage_folio folio)
{
	(void)ctx;
	(void)folio;
	return FOLIAGE_PAGEOUT_CLEAN;
}

/* The flusher, woken: in a world without time it is done at once. */
static void world_wake_flusher(void *ctx)
{
	struct scenario_world *w = ctx;

	for (uint32_t f = 0; f < w->s->head.nr_files; f++)
		if (w->s->files[f].kind != SCENARIO_ANON)
			scenario_world_fsync(w, f);
}

static const struct foliage_backend world_backend = {
	.evict = world_evict,
	.unmap = world_unmap,
	.rmap = world_rmap,
	.next_mapping = world_next_mapping,
	.pageout = world_pageout,
	.add_to_swap = world_add_to_swap,
	.swap_free = world_swap_free,
	.wake_flusher = world_wake_flusher,
};

/* ---- coming in ---- */

static int bring_in(struct scenario_world *w, uint32_t process, uint32_t id, uint32_t flags)
{
	uint32_t group = w->s->processes[process].group, memcg = w->groups[group];
	int rc = foliage_memcg_make_room(w->engine, &w->cpu, memcg, 1, false);

	/* The page is paid for first, then the index node that it needs. */
	if (!rc && !private_memory(w, id) &&
	    charge_slab(w, group, grow_index(w, w->file_of[id], offset_of(w, id))))
		rc = foliage_memcg_make_room(w->engine, &w->cpu, memcg, 1, false);
	if (rc)
		return rc;
	w->owner_of[id] = (uint8_t)group;
	return foliage_folio_add(w->engine, &w->cpu, (foliage_folio)id, memcg, 0, 0, 0, flags,
				 *foliage_folio_handle(w->engine, (foliage_folio)id));
}

static bool present(const struct scenario_world *w, uint32_t id)
{
	return foliage_folio_present(w->engine, (foliage_folio)id);
}

/* The missing pages of a window; the mark stands `async` pages before the window's end. */
static int read_window(struct scenario_world *w, uint32_t process, uint32_t file, uint64_t start,
		       uint64_t size, uint64_t async)
{
	uint64_t pages = w->s->files[file].pages, mark = UINT64_MAX;
	uint32_t base = w->base[file][0];

	if (start >= pages)
		return 0;
	size = MIN(size, pages - start);
	if (async <= size)
		mark = start + size - async;
	for (uint64_t page = start; page < start + size; page++) {
		uint32_t id = base + (uint32_t)page;
		int rc;

		if (present(w, id))
			continue;
		rc = bring_in(w, process, id, 0);
		if (rc)
			return rc;
		if (page == mark)
			bit_set(w->marks, id);
	}
	return 0;
}

static uint64_t first_window(uint64_t request, uint64_t max)
{
	uint64_t n = 1;

	while (n < request)
		n *= 2;
	if (n <= max / 32)
		return n * 4;
	return n <= max / 4 ? n * 2 : max;
}

static uint64_t next_window(uint64_t size, uint64_t max)
{
	if (size < max / 16)
		return 4 * size;
	return size <= max / 2 ? 2 * size : max;
}

/* Cached pages directly below `index`, at most `max` - 1; *from_start: they reach the file's first
 * page. */
static uint64_t cached_below(const struct scenario_world *w, uint32_t base, uint64_t index,
			     uint64_t max, bool *from_start)
{
	uint64_t n = 0;

	while (n < max && n < index && present(w, base + (uint32_t)(index - n - 1)))
		n++;
	*from_start = n == index && n < max;
	return n == max ? max - 1 : n;
}

static int sync_readahead(struct scenario_world *w, uint32_t process, uint32_t file, uint64_t index,
			  uint64_t request)
{
	struct scenario_readahead *ra = &w->readahead[process][file];
	uint64_t max = MAX((uint64_t)w->ra_pages, MIN(request, (uint64_t)w->ra_pages)), below;
	uint64_t last = ra->read_end == UINT64_MAX ? UINT64_MAX >> 12 : ra->read_end >> 12;
	bool from_start;

	if (ra->random || !w->ra_pages)
		return read_window(w, process, file, index, ra->random ? request : 1, UINT64_MAX);
	if (!index || request > max || index - last <= 1) {
		ra->start = index;
		ra->size = first_window(request, max);
		ra->async = ra->size > request ? ra->size - request : ra->size / 2;
		return read_window(w, process, file, ra->start, ra->size, ra->async);
	}
	below = cached_below(w, w->base[file][0], index, max, &from_start);
	if (below <= request)
		return read_window(w, process, file, index, request, UINT64_MAX);
	if (from_start)
		below *= 2;
	ra->start = index;
	ra->size = MIN(below + request, max);
	ra->async = 1;
	return read_window(w, process, file, ra->start, ra->size, ra->async);
}

static int async_readahead(struct scenario_world *w, uint32_t process, uint32_t file,
			   uint64_t index, uint64_t request)
{
	struct scenario_readahead *ra = &w->readahead[process][file];
	uint64_t start = index + 1, max = w->ra_pages;

	bit_clear(w->marks, w->base[file][0] + (uint32_t)index);
	if (!max)
		return 0;
	if (index == ra->start + ra->size - ra->async) {
		ra->start += ra->size;
		ra->size = MAX(ra->size, next_window(ra->size, max));
	} else {
		while (start - index <= max && start < w->s->files[file].pages &&
		       present(w, w->base[file][0] + (uint32_t)start))
			start++;
		if (start - index > max)
			return 0;
		ra->start = start;
		ra->size = next_window(start - index + request, max);
	}
	ra->async = ra->size;
	return read_window(w, process, file, ra->start, ra->size, ra->async);
}

/* ---- read and write ---- */

static int read_pages(struct scenario_world *w, const struct scenario_op *op)
{
	struct scenario_readahead *ra = &w->readahead[op->process][op->file];
	uint32_t base = w->base[op->file][0];
	int rc = 0;

	for (uint32_t i = 0; i < op->nr && !rc; i++) {
		uint64_t page = op->page + i;
		uint32_t id = base + (uint32_t)page;

		if (!present(w, id)) {
			rc = sync_readahead(w, op->process, op->file, page, op->nr - i);
			if (!rc && !present(w, id))
				rc = bring_in(w, op->process, id, 0);
		}
		if (!rc && bit_test(w->marks, id))
			rc = async_readahead(w, op->process, op->file, page, op->nr - i);
		if (!rc && (i || ra->read_end == UINT64_MAX || page != (ra->read_end - 1) >> 12))
			foliage_folio_mark_accessed(w->engine, &w->cpu, (foliage_folio)id);
	}
	ra->read_end = (op->page + op->nr) << 12;
	return rc;
}

static void make_dirty(struct scenario_world *w, uint32_t id)
{
	foliage_folio_set_dirty(w->engine, (foliage_folio)id);
	bit_set(w->dirty, id);
}

static int write_pages(struct scenario_world *w, const struct scenario_op *op)
{
	int rc = 0;

	for (uint32_t i = 0; i < op->nr && !rc; i++) {
		uint32_t id = w->base[op->file][0] + (uint32_t)op->page + i;

		if (!present(w, id))
			rc = bring_in(w, op->process, id, FOLIAGE_FOLIO_WRITE);
		if (!rc && !bit_test(w->buffers, id)) {
			bit_set(w->buffers, id);
			if (charge_slab(w, w->owner_of[id], BUFFER_BYTES))
				rc = foliage_memcg_make_room(w->engine, &w->cpu,
							     w->groups[w->owner_of[id]], 0, false);
		}
		if (!rc)
			make_dirty(w, id);
	}
	return rc;
}

/* ---- faults ---- */

static int make_tables(struct scenario_world *w, uint32_t process, uint32_t file)
{
	struct scenario_region *r = &w->regions[process][file];

	if (r->tables)
		return 0;
	r->tables = malloc(r->nr_tables * sizeof(*r->tables));
	r->young = calloc(r->nr_tables, sizeof(*r->young));
	r->used = calloc(r->nr_tables, sizeof(*r->used));
	if (!r->tables || !r->young || !r->used)
		return -ENOMEM;
	for (uint32_t t = 0; t < r->nr_tables; t++) {
		memset(&r->tables[t], 0, sizeof(r->tables[t]));
		for (int i = 0; i < ENTRIES; i++)
			r->tables[t].folio[i] = -1;
	}
	return 0;
}

static void touch(struct scenario_region *r, uint64_t page, bool store)
{
	struct foliage_pte_table *t = &r->tables[page / ENTRIES];
	uint64_t bit = UINT64_C(1) << page % 64;

	t->young[page % ENTRIES / 64] |= bit;
	r->young[page / ENTRIES] = true;
	if (store)
		t->dirty[page % ENTRIES / 64] |= bit;
}

static bool pte_dirty(const struct scenario_region *r, uint64_t page)
{
	return r->tables[page / ENTRIES].dirty[page % ENTRIES / 64] >> page % 64 & 1;
}

static void map_page(struct scenario_world *w, struct scenario_region *r, uint64_t page,
		     uint32_t id)
{
	*entry_of(r, page) = (foliage_folio)id;
	folio_change(w->engine, folio_at(w->engine, (folio_id)id), 0, F_MAPPED);
	touch(r, page, false);
}

/* Present neighbours are mapped along, born young (x86). */
static void map_around(struct scenario_world *w, struct scenario_region *r, uint32_t base,
		       uint64_t page, uint64_t pages)
{
	uint64_t first = page - page % MAX(w->fault_around, 1u);
	uint64_t end = MIN(first + w->fault_around, pages);

	for (uint64_t i = first; i < end; i++)
		if (i != page && *entry_of(r, i) < 0 && present(w, base + (uint32_t)i))
			map_page(w, r, i, base + (uint32_t)i);
}

static int read_around(struct scenario_world *w, uint32_t process, uint32_t file, uint64_t page)
{
	struct scenario_region *r = &w->regions[process][file];
	struct scenario_readahead *ra = &w->readahead[process][file];

	if (r->vma_flags & FOLIAGE_VMA_RAND_READ || !w->ra_pages)
		return 0;
	if (r->misses < MMAP_LOTS_OF_MISSES * 10)
		r->misses++;
	if (r->misses > MMAP_LOTS_OF_MISSES)
		return 0;
	ra->start = page > w->ra_pages / 2 ? page - w->ra_pages / 2 : 0;
	ra->size = w->ra_pages;
	ra->async = w->ra_pages / 4;
	return read_window(w, process, file, ra->start, ra->size, ra->async);
}

static int fault_file(struct scenario_world *w, uint32_t process, uint32_t file, uint64_t page)
{
	struct scenario_region *r = &w->regions[process][file];
	uint32_t id = w->base[file][0] + (uint32_t)page;
	int rc = 0;

	if (!present(w, id)) {
		rc = read_around(w, process, file, page);
		if (!rc && !present(w, id))
			rc = bring_in(w, process, id,
				      w->s->files[file].kind == SCENARIO_FILE_EXEC
					      ? FOLIAGE_FOLIO_EXEC
					      : 0);
	} else if (r->misses) {
		r->misses--;
	}
	if (rc)
		return rc;
	if (w->fault_around > 1)
		map_around(w, r, w->base[file][0], page, w->s->files[file].pages);
	map_page(w, r, page, id);
	return 0;
}

static int fault_private(struct scenario_world *w, uint32_t process, uint32_t file, uint64_t page)
{
	uint32_t id = w->base[file][process] + (uint32_t)page;
	int rc = bring_in(w, process, id, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_MAPPED);

	if (rc)
		return rc;
	if (bit_test(w->swapped, id)) {
		bit_clear(w->swapped, id);
		w->swap_used--;
	}
	*foliage_folio_handle(w->engine, (foliage_folio)id) = 0;
	map_page(w, &w->regions[process][file], page, id);
	return 0;
}

/* A page table is paid for before the page that needs it. */
static int use_table(struct scenario_world *w, uint32_t process, struct scenario_region *r,
		     uint64_t page)
{
	uint32_t group = w->s->processes[process].group;

	if (r->used[page / ENTRIES])
		return 0;
	r->used[page / ENTRIES] = true;
	charge_slab(w, group, PAGE_BYTES);
	return foliage_memcg_make_room(w->engine, &w->cpu, w->groups[group], 0, false);
}

static int touch_pages(struct scenario_world *w, const struct scenario_op *op)
{
	struct scenario_region *r = &w->regions[op->process][op->file];
	bool anon = w->s->files[op->file].kind == SCENARIO_ANON, store = op->code == SCENARIO_STORE;
	int rc = make_tables(w, op->process, op->file);

	foliage_mm_ran(w->engine, w->mms[op->process]);
	for (uint32_t i = 0; i < op->nr && !rc; i++) {
		uint64_t page = op->page + i;

		if (*entry_of(r, page) < 0) {
			w->cpu.in_lru_fault =
				!(r->vma_flags & (FOLIAGE_VMA_RAND_READ | FOLIAGE_VMA_SEQ_READ));
			rc = use_table(w, op->process, r, page);
			if (!rc)
				rc = anon ? fault_private(w, op->process, op->file, page)
					  : fault_file(w, op->process, op->file, page);
			w->cpu.in_lru_fault = false;
		}
		if (rc)
			return rc;
		if (!tlb_hit(w, op->process, r->first_vpage + page) ||
		    (store && !pte_dirty(r, page)))
			touch(r, page, store);
		if (store && !anon)
			make_dirty(w, (uint32_t)*entry_of(r, page));
	}
	return rc;
}

int scenario_world_access(struct scenario_world *w, const struct scenario_op *op, uint8_t *missed)
{
	uint32_t owner = w->s->files[op->file].kind == SCENARIO_ANON ? op->process : 0;
	uint32_t base = w->base[op->file][owner];

	for (uint32_t i = 0; i < op->nr; i++)
		missed[i] = !present(w, base + (uint32_t)op->page + i);
	switch (op->code) {
	case SCENARIO_READ:
		return read_pages(w, op);
	case SCENARIO_WRITE:
		return write_pages(w, op);
	case SCENARIO_LOAD:
	case SCENARIO_STORE:
		return touch_pages(w, op);
	default:
		return -EINVAL;
	}
}

/* ---- write-back and advice ---- */

/* Write-protects the mappings, so that the next store makes the page dirty anew. */
static void clean_entries(struct scenario_world *w, uint32_t id)
{
	struct scenario_region *r;
	uint32_t process;

	for (uint32_t cursor = 0; (r = mapper(w, id, cursor, &process)); cursor++)
		r->tables[offset_of(w, id) / ENTRIES].dirty[offset_of(w, id) % ENTRIES / 64] &=
			~(UINT64_C(1) << offset_of(w, id) % 64);
}

void scenario_world_fsync(struct scenario_world *w, uint32_t file)
{
	for (uint64_t page = 0; page < w->s->files[file].pages; page++) {
		uint32_t id = w->base[file][0] + (uint32_t)page;

		if (!bit_test(w->dirty, id))
			continue;
		bit_clear(w->dirty, id);
		clean_entries(w, id);
		foliage_folio_clear_dirty(w->engine, (foliage_folio)id);
		foliage_folio_start_writeback(w->engine, (foliage_folio)id);
		foliage_folio_end_writeback(w->engine, &w->cpu, (foliage_folio)id);
	}
}

int scenario_world_fadvise(struct scenario_world *w, uint32_t process, uint32_t file,
			   const char *advice)
{
	if (strcmp(advice, "random") && strcmp(advice, "normal"))
		return -EOPNOTSUPP;
	w->readahead[process][file].random = !strcmp(advice, "random");
	return 0;
}

int scenario_world_madvise(struct scenario_world *w, uint32_t process, uint32_t file,
			   uint64_t first, uint64_t nr, const char *advice)
{
	struct scenario_region *r = &w->regions[process][file];

	if (!strcmp(advice, "random") || !strcmp(advice, "sequential") ||
	    !strcmp(advice, "normal")) {
		/* Only of a whole mapping: parts would be VMAs of their own. */
		if (first || nr != w->s->files[file].pages)
			return -EOPNOTSUPP;
		r->vma_flags &= ~(uint32_t)(FOLIAGE_VMA_RAND_READ | FOLIAGE_VMA_SEQ_READ);
		r->vma_flags |= *advice == 'r'   ? FOLIAGE_VMA_RAND_READ
				: *advice == 's' ? FOLIAGE_VMA_SEQ_READ
						 : 0;
		return 0;
	}
	return -EOPNOTSUPP;
}

uint64_t scenario_world_resident(const struct scenario_world *w, uint32_t file)
{
	uint64_t n = 0;

	for (uint64_t page = 0; page < w->s->files[file].pages; page++)
		n += present(w, w->base[file][0] + (uint32_t)page);
	return n;
}

/* ---- life ---- */

static int number_folios(struct scenario_world *w)
{
	const struct scenario *s = w->s;
	uint64_t nr = 0;

	for (uint32_t f = 0; f < s->head.nr_files; f++)
		for (uint32_t p = 0; p < s->head.nr_processes; p++) {
			bool shares = p && s->files[f].kind != SCENARIO_ANON;

			w->base[f][p] = shares ? w->base[f][0] : (uint32_t)nr;
			if (!shares)
				nr += s->files[f].pages;
		}
	if (nr >= INT32_MAX)
		return -E2BIG;
	w->nr_folios = (uint32_t)nr;
	w->marks = calloc(bitmap_words(nr), sizeof(*w->marks));
	w->dirty = calloc(bitmap_words(nr), sizeof(*w->dirty));
	w->swapped = calloc(bitmap_words(nr), sizeof(*w->swapped));
	w->file_of = calloc(nr, sizeof(*w->file_of));
	w->process_of = calloc(nr, sizeof(*w->process_of));
	w->tlb = calloc(s->tlb + 1, sizeof(*w->tlb));
	w->buffers = calloc(bitmap_words(nr), sizeof(*w->buffers));
	w->owner_of = calloc(nr, sizeof(*w->owner_of));
	for (uint32_t f = 0; f < s->head.nr_files; f++)
		for (uint32_t l = 0; l < ARRAY_SIZE(w->index[f].nodes); l++) {
			w->index[f].nodes[l] = calloc(
				bitmap_words((s->files[f].pages >> (l + 1) * NODE_SHIFT) + 1),
				sizeof(uint64_t));
			if (!w->index[f].nodes[l])
				return -ENOMEM;
		}
	if (!w->tlb || !w->buffers || !w->owner_of || !w->marks || !w->dirty || !w->swapped ||
	    !w->file_of || !w->process_of)
		return -ENOMEM;
	for (uint32_t f = 0; f < s->head.nr_files; f++)
		for (uint32_t p = 0; p < s->head.nr_processes; p++)
			for (uint64_t i = 0; i < s->files[f].pages; i++) {
				w->file_of[w->base[f][p] + i] = (uint16_t)f;
				w->process_of[w->base[f][p] + i] =
					(uint16_t)(s->files[f].kind == SCENARIO_ANON ? p : 0);
			}
	return 0;
}

/* "t/a" is the child a of t, which stands before it. */
static int make_groups(struct scenario_world *w)
{
	const struct scenario *s = w->s;

	for (uint32_t i = 0; i < s->head.nr_groups; i++) {
		const char *path = s->groups[i].path, *slash = strrchr(path, '/');
		uint32_t parent = 0;
		int memcg;

		for (uint32_t k = 0; slash && k < i; k++)
			if (strlen(s->groups[k].path) == (size_t)(slash - path) &&
			    !strncmp(s->groups[k].path, path, (size_t)(slash - path)))
				parent = w->groups[k];
		memcg = foliage_memcg_create(w->engine, parent, slash ? slash + 1 : path);
		if (memcg < 0)
			return memcg;
		w->groups[i] = (uint32_t)memcg;
	}
	return 0;
}

static int make_processes(struct scenario_world *w)
{
	const struct scenario *s = w->s;

	for (uint32_t p = 0; p < s->head.nr_processes; p++) {
		int mm = foliage_mm_add(w->engine, w->groups[s->processes[p].group]);
		uint64_t vpage = ENTRIES;

		if (mm < 0)
			return mm;
		w->mms[p] = (uint32_t)mm;
		for (uint32_t f = 0; f < s->head.nr_files; f++) {
			struct scenario_region *r = &w->regions[p][f];

			r->first_vpage = vpage;
			r->nr_tables = (uint32_t)((s->files[f].pages + ENTRIES - 1) / ENTRIES);
			r->vma_flags = s->files[f].kind == SCENARIO_ANON        ? FOLIAGE_VMA_ANON
				       : s->files[f].kind == SCENARIO_FILE_EXEC ? FOLIAGE_VMA_EXEC
										: 0;
			vpage += (uint64_t)(r->nr_tables + 1) * ENTRIES;
			w->readahead[p][f].read_end = UINT64_MAX;
		}
	}
	return 0;
}

int scenario_world_open(struct scenario_world *w, const struct scenario *s, const char *policy,
			struct err *err)
{
	struct foliage_engine_options options = {
		.policy = policy,
		.max_memcgs = s->head.nr_groups + 1,
		.exclusive = true,
		.totalram_pages = 2048 * 256,
		.caps = FOLIAGE_LRU_GEN_CORE | FOLIAGE_LRU_GEN_MM_WALK |
			FOLIAGE_LRU_GEN_NONLEAF_YOUNG,
		.backend = &world_backend,
		.ctx = w,
	};
	char message[256] = "";
	int rc;

	*w = (struct scenario_world){
		.s = s, .ra_pages = 32, .fault_around = 16, .swap_pages = s->zram / 4096};
	rc = number_folios(w);
	options.nr_folios = w->nr_folios;
	if (!rc)
		rc = foliage_engine_create(&options, &w->engine, message, sizeof(message));
	if (!rc)
		rc = make_groups(w);
	if (!rc)
		rc = make_processes(w);
	if (rc) {
		scenario_world_close(w);
		return err_set(err, rc, "%s: %s", policy, *message ? message : strerror(-rc));
	}
	return 0;
}

void scenario_world_close(struct scenario_world *w)
{
	if (w->engine)
		foliage_engine_destroy(w->engine);
	for (uint32_t p = 0; p < SCENARIO_PROCESSES_MAX; p++)
		for (uint32_t f = 0; f < SCENARIO_FILES_MAX; f++) {
			free(w->regions[p][f].tables);
			free(w->regions[p][f].young);
			free(w->regions[p][f].used);
		}
	free(w->marks);
	free(w->dirty);
	free(w->swapped);
	free(w->file_of);
	free(w->process_of);
	free(w->buffers);
	free(w->tlb);
	free(w->owner_of);
	for (uint32_t f = 0; f < SCENARIO_FILES_MAX; f++)
		for (uint32_t l = 0; l < ARRAY_SIZE(w->index[f].nodes); l++)
			free(w->index[f].nodes[l]);
}
