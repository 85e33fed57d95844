/* SPDX-License-Identifier: MIT
 *
 * Physical memory: frames, who may have one, and what happens when there is none.
 *
 * A frame is the engine's folio of the same number. A page is first charged to its group, which may
 * reclaim against a limit; then a frame is taken, which below the low watermark wakes kswapd and
 * below the min watermark reclaims in the task's own time. Watermarks as Linux computes them:
 * min = 4 * sqrt(KiB of memory) KiB, and from there a tenth of a percent of memory, or a quarter of
 * min, up to low and again to high. Pages stored compressed take memory that nobody else gets.
 *
 * What maps a frame is a list; the first entry lives in the frame.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "mm/memcg.h"

enum { DIRECT_RETRIES = 16, KSWAPD_RETRIES = 16, RETRY_NS = 1000000 };

static int64_t free_pages(const struct machine *m)
{
	return (int64_t)m->nr_free - (int64_t)m->zram_frames;
}

void frames_update(struct machine *m)
{
	int64_t n = free_pages(m);

	m->engine->nodes[0].free_pages = n > 0 ? (uint64_t)n : 0;
}

void memcg_count(struct machine *m, uint32_t memcg, enum machine_memcg_stat what, int64_t n)
{
	m->memcg_stat[memcg][what] += n;
}

/* ---- kswapd ---- */

static void kswapd_main(struct task *t, void *arg)
{
	struct machine *m = t->m;
	uint32_t fruitless = 0;

	(void)arg;
	for (;;) {
		struct foliage_reclaim_request request = {.swappiness = -1, .kswapd = true};
		int64_t got;

		check_failed(m);
		if (free_pages(m) >= m->wm_high || fruitless >= KSWAPD_RETRIES) {
			fruitless = 0;
			task_block(t, UINT64_MAX);
			continue;
		}
		request.nr = (uint64_t)MAX((int64_t)m->wm_high - free_pages(m),
					   (int64_t)SWAP_CLUSTER_MAX);
		got = foliage_reclaim(m->engine, this_cpu(m), &request);
		fruitless = got > 0 ? 0 : fruitless + 1;
		task_checkpoint(t);
	}
}

void wake_kswapd(struct machine *m)
{
	if (m->kswapd->state == TASK_BLOCKED)
		task_wake(m->kswapd, this_now(m));
}

/* ---- allocation ---- */

static bool direct_reclaim(struct machine *m, bool no_io)
{
	struct foliage_reclaim_request request = {.swappiness = -1, .no_io = no_io};
	uint64_t start = this_now(m);
	int64_t got;

	m->stat[MACHINE_ALLOCSTALL]++;
	got = foliage_reclaim(m->engine, this_cpu(m), &request);
	m->stat[MACHINE_STALL_NS] += this_now(m) - start;
	return got > 0;
}

static bool take_frame(struct machine *m, bool no_io)
{
	for (int tries = 0;;) {
		if (free_pages(m) < m->wm_low)
			wake_kswapd(m);
		if (free_pages(m) > m->wm_min)
			return true;
		if (!direct_reclaim(m, no_io)) {
			if (no_io || ++tries > DIRECT_RETRIES)
				return false;
			/* Write-back may be what everybody waits for. */
			task_block(m->current, m->current->now + RETRY_NS);
		}
		check_failed(m);
	}
}

/* Who makes no progress waits a little before it tries again, as Linux throttles direct reclaim: another's
 * walk of the page tables, or write-back, may be all that stands between it and a page. */
static bool charge_group(struct machine *m, uint32_t memcg, bool no_io)
{
	uint64_t start = this_now(m);
	int rc;

	for (int tries = 0;; tries++) {
		rc = foliage_memcg_make_room(m->engine, this_cpu(m), memcg, 1, no_io);
		if (rc != -ENOMEM || no_io || tries == DIRECT_RETRIES)
			break;
		task_block(m->current, m->current->now + RETRY_NS);
		check_failed(m);
	}
	m->stat[MACHINE_STALL_NS] += this_now(m) - start;
	return !rc;
}

static int32_t refuse(struct machine *m, uint32_t memcg, const char *what, bool no_io)
{
	if (no_io)
		return NO_FRAME;
	machine_fail(m,
		     "out of memory at %.3f s: %s %s: usage %lld of %llu pages, free %lld, min %u, "
		     "swap free %u",
		     (double)this_now(m) / 1e9, what, m->engine->memcgs[memcg].name,
		     (long long)foliage_memcg_usage(m->engine, memcg),
		     (unsigned long long)m->engine->memcgs[memcg].max, (long long)free_pages(m),
		     m->wm_min, m->slots_free);
	check_failed(m);
	return NO_FRAME;
}

int32_t frame_alloc(struct machine *m, uint32_t memcg, bool no_io)
{
	int32_t frame;

	charge(m, m->costs.page_alloc);
	if (!charge_group(m, memcg, no_io))
		return refuse(m, memcg, "memory group", no_io);
	check_failed(m);
	if (!take_frame(m, no_io))
		return refuse(m, memcg, "no free page for group", no_io);
	frame = m->free_head;
	m->free_head = m->frames[frame].next;
	m->nr_free--;
	frames_update(m);
	m->frames[frame] = (struct frame){
		.slot = NO_SLOT,
		.next = NO_FRAME,
		.maps = NO_MAP,
		.memcg = memcg,
		.kind = FRAME_KERNEL,
	};
	return frame;
}

void frame_free(struct machine *m, int32_t frame)
{
	struct frame *f = &m->frames[frame];

	f->kind = FRAME_FREE;
	f->next = m->free_head;
	m->free_head = frame;
	m->nr_free++;
	frames_update(m);
}

int task_kalloc(struct task *t, uint32_t nr, bool no_io)
{
	struct machine *m = t->m;

	for (uint32_t i = 0; i < nr; i++) {
		int32_t frame = frame_alloc(m, t->memcg, no_io);

		if (frame == NO_FRAME) {
			task_kfree(t, i);
			return -ENOMEM;
		}
		memcg_charge(m->engine, t->memcg, 1);
		memcg_count(m, t->memcg, MEMCG_KERNEL, 1);
		m->frames[frame].next = m->kernel_head;
		m->kernel_head = frame;
	}
	task_checkpoint(t);
	return 0;
}

/* Kernel pages of one group are alike: any of them will do. */
void task_kfree(struct task *t, uint32_t nr)
{
	struct machine *m = t->m;
	int32_t *link = &m->kernel_head;

	while (nr && *link != NO_FRAME) {
		int32_t frame = *link;

		if (m->frames[frame].memcg != t->memcg) {
			link = &m->frames[frame].next;
			continue;
		}
		*link = m->frames[frame].next;
		memcg_charge(m->engine, t->memcg, -1);
		memcg_count(m, t->memcg, MEMCG_KERNEL, -1);
		frame_free(m, frame);
		nr--;
	}
}

int task_lru_gen_write(struct task *t, const char *commands)
{
	int rc = foliage_lru_gen_write(t->m->engine, this_cpu(t->m), commands);

	task_checkpoint(t);
	check_failed(t->m);
	return rc;
}

/* ---- who maps a frame ---- */

static int32_t node_new(struct machine *m)
{
	int32_t node = m->free_node;

	if (node != NO_MAP) {
		m->free_node = m->nodes[node].next;
		return node;
	}
	if (m->nr_nodes == m->max_nodes) {
		uint32_t max = MAX(2 * m->max_nodes, 1024u);
		struct map_node *nodes = realloc(m->nodes, max * sizeof(*nodes));

		if (!nodes)
			return NO_MAP;
		m->nodes = nodes;
		m->max_nodes = max;
	}
	return (int32_t)m->nr_nodes++;
}

bool frame_map(struct machine *m, int32_t frame, struct space *s, uint32_t page)
{
	struct frame *f = &m->frames[frame];

	if (!f->mapcount) {
		f->mm = s->mm;
		f->page = page;
		folio_change(m->engine, folio_at(m->engine, frame), 0, F_MAPPED);
		if (f->kind == FRAME_FILE)
			memcg_count(m, f->memcg, MEMCG_FILE_MAPPED, 1);
	} else {
		int32_t node = node_new(m);

		if (node == NO_MAP) {
			machine_fail(m, "no memory for reverse mappings");
			return false;
		}
		m->nodes[node] = (struct map_node){.mm = s->mm, .page = page, .next = f->maps};
		f->maps = node;
	}
	f->mapcount++;
	s->rss++;
	return true;
}

void frame_unmap_one(struct machine *m, int32_t frame, uint32_t mm, uint32_t page)
{
	struct frame *f = &m->frames[frame];
	int32_t *link = &f->maps, node = f->maps;

	if (f->mm == mm && f->page == page) {
		if (node != NO_MAP) {
			f->mm = m->nodes[node].mm;
			f->page = m->nodes[node].page;
		}
	} else {
		while (m->nodes[node].mm != mm || m->nodes[node].page != page) {
			link = &m->nodes[node].next;
			node = *link;
		}
	}
	if (node != NO_MAP) {
		*link = m->nodes[node].next;
		m->nodes[node].next = m->free_node;
		m->free_node = node;
	}
	if (--f->mapcount)
		return;
	folio_change(m->engine, folio_at(m->engine, frame), F_MAPPED, 0);
	if (f->kind == FRAME_FILE)
		memcg_count(m, f->memcg, MEMCG_FILE_MAPPED, -1);
}

/* ---- life ---- */

int frames_init(struct machine *m)
{
	uint32_t nr = m->options.memory, step;

	m->frames = calloc(nr, sizeof(*m->frames));
	if (!m->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		m->frames[i].next = i + 1 < nr ? (int32_t)i + 1 : NO_FRAME;
	m->nr_free = nr;
	m->free_node = NO_MAP;
	m->kernel_head = NO_FRAME;
	m->wm_min = (uint32_t)isqrt((uint64_t)nr * 4 * 16) / 4;
	step = MAX(m->wm_min / 4, nr / 1000);
	m->wm_low = m->wm_min + step;
	m->wm_high = m->wm_low + step;
	m->engine->nodes[0].high_watermark = m->wm_high;
	frames_update(m);
	m->kswapd = task_new(m, 0, kswapd_main, NULL);
	if (!m->kswapd)
		return -ENOMEM;
	m->kswapd->kernel = true;
	return 0;
}

void frames_fini(struct machine *m)
{
	free(m->frames);
	free(m->nodes);
}
