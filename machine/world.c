/* SPDX-License-Identifier: MIT
 *
 * What the engine asks of the machine: evict, unmap, swap, page tables, time. Nothing here may switch
 * tasks but yield and throttle, at which the engine holds nothing.
 */
#include "machine/sim.h"

#include "base/bits.h"

enum { THROTTLE_NS = 20000000 };

static void world_evict(void *ctx, foliage_folio frame, uint64_t shadow)
{
	struct machine *m = ctx;
	struct frame *f = &m->frames[frame];

	charge(m, m->costs.evict);
	if (f->kind == FRAME_FILE) {
		file_evicted(m, frame, shadow);
		return;
	}
	memcg_count(m, f->memcg, MEMCG_ANON, -1);
	if (f->slot != NO_SLOT) {
		int32_t slot = f->slot;

		m->slots[slot].shadow = shadow;
		m->slots[slot].frame = NO_FRAME;
		m->swapcache--;
		f->slot = NO_SLOT;
		swap_slot_put(m, slot);
	}
	frame_free(m, frame);
}

static uint64_t world_now_ms(void *ctx)
{
	return this_now(ctx) / 1000000;
}

static bool world_unmap(void *ctx, foliage_folio frame)
{
	struct machine *m = ctx;
	struct frame *f = &m->frames[frame];
	bool dirty = false;

	while (f->mapcount) {
		uint32_t mm = f->mm, page = f->page, k = page % ENTRIES;
		struct space *s = m->spaces[mm];
		struct pte_page *table = space_table(s, page, false);

		charge(m, m->costs.unmap);
		dirty |= map_test(table->pte.dirty, k);
		if (f->kind == FRAME_ANON) {
			m->slots[f->slot].refs++;
			space_set(table, page, PTE_SWAP - f->slot, false, false);
		} else {
			space_set(table, page, PTE_NONE, false, false);
		}
		frame_unmap_one(m, frame, mm, page);
		s->rss--;
	}
	if (dirty && f->kind == FRAME_ANON)
		foliage_folio_set_dirty(m->engine, frame);
	return true;
}

static enum foliage_pageout world_pageout(void *ctx, foliage_folio frame)
{
	return swap_out(ctx, frame);
}

static bool world_add_to_swap(void *ctx, foliage_folio frame)
{
	struct machine *m = ctx;
	int32_t slot = swap_slot_alloc(m, m->frames[frame].memcg);

	if (slot == NO_SLOT)
		return false;
	m->slots[slot].refs = 1;
	m->slots[slot].frame = frame;
	m->frames[frame].slot = slot;
	m->swapcache++;
	return true;
}

static int64_t world_swap_free(void *ctx, uint32_t memcg)
{
	const struct machine *m = ctx;

	(void)memcg;
	return m->slots_free;
}

static int64_t world_swapcache_pages(void *ctx, uint32_t node)
{
	const struct machine *m = ctx;

	(void)node;
	return (int64_t)m->swapcache;
}

static void world_wake_flusher(void *ctx)
{
	wake_flusher(ctx);
}

static void world_yield(void *ctx)
{
	struct machine *m = ctx;
	struct task *t = m->current;
	uint64_t free_at;

	if (!t)
		return;
	/* The block layer takes no more requests than its queue holds: who writes swap waits for one. */
	free_at = m->options.swap == MACHINE_DISK_SWAP ? device_free_at(&m->swap_disk) : 0;
	if (free_at > t->now) {
		m->stat[MACHINE_IO_WAIT_NS] += free_at - t->now;
		m->stat[MACHINE_STALL_NS] += free_at - t->now;
		t->now = free_at;
	}
	t->pinned = true;
	task_checkpoint(t);
	t->pinned = false;
}

/* The CPU waits with its task: see sched.c. */
static void world_throttle(void *ctx)
{
	struct machine *m = ctx;
	struct task *t = m->current;

	if (!t)
		return;
	m->stat[MACHINE_STALL_NS] += THROTTLE_NS;
	t->now += THROTTLE_NS;
	world_yield(m);
}

static bool describe(struct machine *m, struct space *s, const struct vma *v, uint64_t page,
		     struct foliage_mapping *out)
{
	struct pte_page *table = space_table(s, page, false);
	uint64_t pmd = page / ENTRIES * ENTRIES;

	(void)m;
	if (!table)
		return false;
	*out = (struct foliage_mapping){
		.mm = s->mm,
		.vma_flags = v->flags,
		.pmd = pmd,
		.first = (uint32_t)(MAX(v->start, pmd) - pmd),
		.last = (uint32_t)(MIN(v->end, pmd + ENTRIES) - pmd) - 1,
		.index = (uint32_t)(page - pmd),
		.pmd_young = &table->young,
		.table = &table->pte,
	};
	return true;
}

static bool world_rmap(void *ctx, foliage_folio frame, uint32_t cursor, struct foliage_mapping *out)
{
	struct machine *m = ctx;
	const struct frame *f = &m->frames[frame];
	uint32_t mm = f->mm, page = f->page;
	int32_t node = f->maps;

	if (cursor >= f->mapcount)
		return false;
	for (uint32_t i = 0; i < cursor; i++) {
		mm = m->nodes[node].mm;
		page = m->nodes[node].page;
		node = m->nodes[node].next;
	}
	charge(m, m->costs.rmap);
	return describe(m, m->spaces[mm], space_find(m->spaces[mm], page), page, out);
}

static bool world_next_mapping(void *ctx, uint32_t mm, uint64_t from, struct foliage_mapping *out)
{
	struct machine *m = ctx;
	struct space *s = mm < m->nr_spaces ? m->spaces[mm] : NULL;

	if (!s)
		return false;
	for (struct vma *v = space_find(s, from); v && v < s->vmas + s->nr_vmas; v++)
		for (uint64_t page = MAX(from, v->start); page < v->end;
		     page = (page / ENTRIES + 1) * ENTRIES) {
			struct pte_page *table = space_table(s, page, false);

			if (!table || !table->used)
				continue;
			charge(m, m->costs.walk_table);
			return describe(m, s, v, page, out);
		}
	return false;
}

static void world_lock_taken(void *ctx, uint32_t lruvec)
{
	lock_clock_take(ctx, lruvec);
}

static void world_lock_dropped(void *ctx, uint32_t lruvec, uint32_t nr)
{
	lock_clock_drop(ctx, lruvec, nr);
}

const struct foliage_backend world_backend = {
	.evict = world_evict,
	.now_ms = world_now_ms,
	.unmap = world_unmap,
	.pageout = world_pageout,
	.add_to_swap = world_add_to_swap,
	.swap_free = world_swap_free,
	.swapcache_pages = world_swapcache_pages,
	.wake_flusher = world_wake_flusher,
	.throttle = world_throttle,
	.rmap = world_rmap,
	.next_mapping = world_next_mapping,
	.lock_taken = world_lock_taken,
	.lock_dropped = world_lock_dropped,
	.yield = world_yield,
};
