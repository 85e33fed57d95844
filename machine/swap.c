/* SPDX-License-Identifier: MIT
 *
 * Swap: slots, on compressed memory or on a disk.
 *
 * Compressed memory answers at once and costs CPU time and a part of the memory it saves; a disk
 * takes requests. A page that is both in memory and in a slot is in the swap cache: clean, it leaves
 * without being written again. Compressed slots are freed when their page is back and nobody else
 * needs them. Read-ahead from swap is not modelled.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

static void zram_update(struct machine *m)
{
	if (m->options.swap != MACHINE_ZRAM)
		return;
	m->zram_frames = (uint32_t)((double)m->zram_stored / m->options.zram_ratio);
	frames_update(m);
}

int32_t swap_slot_alloc(struct machine *m, uint32_t memcg)
{
	int32_t slot = m->free_slot;

	if (slot == NO_SLOT)
		return NO_SLOT;
	m->free_slot = m->slots[slot].next;
	m->slots_free--;
	m->slots[slot] = (struct swap_slot){.frame = NO_FRAME, .next = NO_SLOT, .memcg = memcg};
	return slot;
}

void swap_slot_put(struct machine *m, int32_t slot)
{
	struct swap_slot *s = &m->slots[slot];

	if (--s->refs)
		return;
	if (s->stored)
		m->zram_stored--;
	s->stored = false;
	s->next = m->free_slot;
	m->free_slot = slot;
	m->slots_free++;
	zram_update(m);
}

void swap_forget(struct machine *m, int32_t frame)
{
	int32_t slot = m->frames[frame].slot;

	if (slot == NO_SLOT)
		return;
	m->frames[frame].slot = NO_SLOT;
	m->slots[slot].frame = NO_FRAME;
	m->swapcache--;
	folio_change(m->engine, folio_at(m->engine, frame), F_SWAPCACHE | F_DIRTY, 0);
	swap_slot_put(m, slot);
}

static void written(struct machine *m, void *arg)
{
	int32_t frame = (int32_t)(intptr_t)arg;

	m->frames[frame].writeback = false;
	m->nr_writeback--;
	foliage_folio_end_writeback(m->engine, this_cpu(m), frame);
	anon_written(m, frame);
}

enum foliage_pageout swap_out(struct machine *m, int32_t frame)
{
	struct frame *f = &m->frames[frame];
	uint64_t done;

	m->stat[MACHINE_PSWPOUT]++;
	if (m->options.swap == MACHINE_ZRAM) {
		charge(m, m->costs.compress);
		m->swap_disk.written++;
		m->stat[MACHINE_PGPGOUT] += 4;
		m->zram_stored += !m->slots[f->slot].stored;
		m->slots[f->slot].stored = true;
		zram_update(m);
		return FOLIAGE_PAGEOUT_CLEAN;
	}
	done = device_submit(m, &m->swap_disk, 1, true);
	f->writeback = true;
	f->ready = done;
	m->nr_writeback++;
	foliage_folio_start_writeback(m->engine, frame);
	event_at(m, done, written, (void *)(intptr_t)frame, false);
	return FOLIAGE_PAGEOUT_STARTED;
}

/* Somebody else brought it in while we looked for a frame. */
static int32_t cached(struct task *t, int32_t slot)
{
	int32_t frame = t->m->slots[slot].frame;

	if (frame != NO_FRAME && t->m->frames[frame].reading)
		file_wait(t, frame);
	return t->m->slots[slot].frame;
}

static void read_slot(struct task *t, int32_t slot, int32_t frame)
{
	struct machine *m = t->m;
	struct frame *f = &m->frames[frame];

	m->stat[MACHINE_PSWPIN]++;
	if (m->options.swap == MACHINE_ZRAM) {
		m->swap_disk.read++;
		m->stat[MACHINE_PGPGIN] += 4;
		m->stat[MACHINE_STALL_NS] += m->costs.decompress;
		charge(m, m->costs.decompress);
		return;
	}
	f->ready = device_submit(m, &m->swap_disk, 1, false);
	f->reading = true;
	m->slots[slot].frame = frame;
	file_wait(t, frame);
}

int32_t swap_in(struct task *t, int32_t slot, bool *major)
{
	struct machine *m = t->m;
	struct swap_slot *s = &m->slots[slot];
	uint32_t flags = FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE;
	int32_t frame = cached(t, slot);

	*major = frame == NO_FRAME;
	if (frame != NO_FRAME)
		return frame;
	s->refs++; /* stays while we sleep */
	frame = frame_alloc(m, t->memcg, false);
	if (cached(t, slot) != NO_FRAME) {
		frame_free(m, frame);
		swap_slot_put(m, slot);
		return m->slots[slot].frame;
	}
	m->frames[frame].kind = FRAME_ANON;
	m->frames[frame].slot = slot; /* takes over our reference */
	s->frame = frame;
	m->swapcache++;
	memcg_count(m, t->memcg, MEMCG_ANON, 1);
	if (m->options.swap == MACHINE_DISK_SWAP)
		flags |= FOLIAGE_FOLIO_LOCKED;
	this_cpu(m)->in_lru_fault = true;
	foliage_folio_add(m->engine, this_cpu(m), frame, t->memcg, 0, 0, 0, flags, s->shadow);
	this_cpu(m)->in_lru_fault = false;
	read_slot(t, slot, frame);
	return frame;
}

int swap_init(struct machine *m)
{
	m->nr_slots = m->slots_free =
		m->options.swap == MACHINE_NO_SWAP ? 0 : m->options.swap_pages;
	m->free_slot = m->nr_slots ? 0 : NO_SLOT;
	m->slots = calloc(MAX(m->nr_slots, 1u), sizeof(*m->slots));
	if (!m->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nr_slots; i++)
		m->slots[i].next = i + 1 < m->nr_slots ? (int32_t)i + 1 : NO_SLOT;
	return 0;
}

void swap_fini(struct machine *m)
{
	free(m->slots);
}
