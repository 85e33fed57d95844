/* SPDX-License-Identifier: MIT
 *
 * The fake world: see world.h. Page tables are one array of PTE tables per process; a page
 * remembers which entries map it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/world.h"

enum { NR_PMDS = WORLD_VPAGES / 512, MAX_MMS = 4096 };

struct world_vma {
	uint64_t start, nr;
	uint32_t flags;
};

struct world_table {
	struct foliage_pte_table pte;
	bool young, contended;
};

struct world_mm {
	pthread_mutex_t lock; /* VMAs; what mm_trylock takes */
	uint32_t nr_vmas, nr_ptes;
	struct world_vma *vmas; /* sorted */
	struct world_table *tables[NR_PMDS];
};

/* One entry (the first one of a large folio) that maps a page. */
struct world_pte {
	struct world_pte *next;
	uint32_t mm;
	uint64_t vpage;
};

/* ---- page tables ---- */

static struct world_mm *mm_find(const struct world *w, uint32_t mm)
{
	return mm < w->nr_mms ? __atomic_load_n(&w->mms[mm], __ATOMIC_ACQUIRE) : NULL;
}

static struct world_mm *mm_of(const struct world *w, uint32_t mm)
{
	if (!mm_find(w, mm))
		fail_msg("no process %u", mm);
	return mm_find(w, mm);
}

static const struct world_vma *vma_at(const struct world_mm *mm, uint64_t vpage)
{
	for (uint32_t i = 0; i < mm->nr_vmas; i++)
		if (vpage < mm->vmas[i].start + mm->vmas[i].nr)
			return &mm->vmas[i];
	return NULL;
}

static struct world_table *table_of(const struct world *w, uint32_t mm, uint64_t vpage)
{
	struct world_table *table = mm_of(w, mm)->tables[vpage / 512];

	if (!table)
		fail_msg("process %u has no page table at %llu", mm, (unsigned long long)vpage);
	return table;
}

static void describe(struct world_mm *mm, uint32_t nr, const struct world_vma *vma, uint64_t vpage,
		     struct foliage_mapping *out)
{
	uint64_t pmd = vpage & ~UINT64_C(511);
	struct world_table *table = mm->tables[vpage / 512];

	*out = (struct foliage_mapping){
		.mm = nr,
		.vma_flags = vma->flags,
		.pmd = pmd,
		.first = vma->start > pmd ? (uint32_t)(vma->start - pmd) : 0,
		.last = (uint32_t)MIN(vma->start + vma->nr - pmd, UINT64_C(512)) - 1,
		.index = (uint32_t)(vpage - pmd),
		.pmd_young = &table->young,
		.contended = table->contended,
		.table = &table->pte,
	};
}

static bool cb_next_mapping(void *ctx, uint32_t nr, uint64_t from, struct foliage_mapping *out)
{
	struct world *w = ctx;
	struct world_mm *mm = mm_find(w, nr); /* NULL: world_mm() is still at it */
	const struct world_vma *vma;

	while (mm && (vma = vma_at(mm, from))) {
		if (from < vma->start)
			from = vma->start;
		if (!__atomic_load_n(&mm->tables[from / 512], __ATOMIC_ACQUIRE)) {
			from = (from / 512 + 1) * 512;
			continue;
		}
		describe(mm, nr, vma, from, out);
		w->nr_next_mappings++;
		if (w->on_mapping)
			w->on_mapping(w, nr, out->pmd);
		return true;
	}
	return false;
}

static bool cb_rmap(void *ctx, foliage_folio id, uint32_t cursor, struct foliage_mapping *out)
{
	struct world *w = ctx;
	const struct world_pte *pte = w->pages[id].ptes;

	if (w->pages[id].rmap_busy) {
		*out = (struct foliage_mapping){0};
		return cursor == 0;
	}
	while (pte && cursor--)
		pte = pte->next;
	if (!pte)
		return false;
	describe(w->mms[pte->mm], pte->mm, vma_at(w->mms[pte->mm], pte->vpage), pte->vpage, out);
	return true;
}

/* Returns whether the entry was dirty. */
static bool clear_bits(struct foliage_pte_table *t, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	__atomic_fetch_and(&t->young[i / 64], ~bit, __ATOMIC_RELAXED);
	return __atomic_fetch_and(&t->dirty[i / 64], ~bit, __ATOMIC_RELAXED) & bit;
}

static bool cb_unmap(void *ctx, foliage_folio id)
{
	struct world *w = ctx;
	struct world_page *page = &w->pages[id];

	w->nr_unmaps++;
	if (page->no_unmap)
		return false;
	while (page->ptes) {
		struct world_pte *pte = page->ptes;
		struct foliage_pte_table *t = &w->mms[pte->mm]->tables[pte->vpage / 512]->pte;

		for (uint64_t i = pte->vpage % 512; i < 512 && t->folio[i] == id; i++) {
			__atomic_store_n(&t->folio[i], -1, __ATOMIC_RELEASE);
			if (clear_bits(t, i))
				foliage_folio_set_dirty(w->e, id);
		}
		page->ptes = pte->next;
		free(pte);
	}
	return true;
}

uint32_t world_mm(struct world *w, uint32_t memcg)
{
	struct world_mm *mm = calloc(1, sizeof(*mm));
	int nr = foliage_mm_add(w->e, memcg);

	pthread_mutex_init(&mm->lock, NULL);
	if (nr < 0)
		fail_msg("foliage_mm_add: %d", nr);
	if ((uint32_t)nr >= w->nr_mms || w->mms[nr])
		fail_msg("process number %d is in use or too high", nr);
	__atomic_store_n(&w->mms[nr], mm, __ATOMIC_RELEASE);
	return (uint32_t)nr;
}

static void mm_free(struct world *w, uint32_t nr)
{
	struct world_mm *mm = w->mms[nr];

	for (uint32_t page = 0; page < w->nr_pages && mm->nr_ptes; page++)
		for (struct world_pte **link = &w->pages[page].ptes; *link;) {
			struct world_pte *pte = *link;

			if (pte->mm != nr) {
				link = &pte->next;
				continue;
			}
			*link = pte->next;
			free(pte);
		}
	for (uint32_t i = 0; i < NR_PMDS; i++)
		free(mm->tables[i]);
	free(mm->vmas);
	pthread_mutex_destroy(&mm->lock);
	free(mm);
	__atomic_store_n(&w->mms[nr], NULL, __ATOMIC_RELEASE);
}

void world_mm_exit(struct world *w, uint32_t mm)
{
	mm_of(w, mm);
	foliage_mm_remove(w->e, mm);
	mm_free(w, mm);
}

void world_vma(struct world *w, uint32_t nr, uint64_t start, uint64_t nr_pages, uint32_t flags)
{
	struct world_mm *mm = mm_of(w, nr);
	uint32_t at;

	if (start + nr_pages > WORLD_VPAGES)
		fail_msg("VMA beyond the end of the address space");
	pthread_mutex_lock(&mm->lock);
	at = mm->nr_vmas;
	mm->vmas = realloc(mm->vmas, (mm->nr_vmas + 1) * sizeof(mm->vmas[0]));
	for (; at > 0 && mm->vmas[at - 1].start > start; at--)
		mm->vmas[at] = mm->vmas[at - 1];
	mm->vmas[at] = (struct world_vma){start, nr_pages, flags};
	mm->nr_vmas++;
	pthread_mutex_unlock(&mm->lock);
}

void world_map(struct world *w, uint32_t nr, uint64_t vpage, uint32_t page)
{
	struct world_mm *mm = mm_of(w, nr);
	const struct world_vma *vma = vma_at(mm, vpage);
	uint64_t pages = (uint64_t)flags_nr(world_flags(w, page));
	struct world_table *table = mm->tables[vpage / 512];
	struct world_pte *pte = calloc(1, sizeof(*pte));

	if (!vma || vma->start > vpage || vma->start + vma->nr < vpage + pages ||
	    vpage % 512 + pages > 512)
		fail_msg("page %u does not fit at %llu", page, (unsigned long long)vpage);
	if (!table) {
		table = calloc(1, sizeof(*table));
		memset(table->pte.folio, 0xff, sizeof(table->pte.folio));
		__atomic_store_n(&mm->tables[vpage / 512], table, __ATOMIC_RELEASE);
	}
	for (uint64_t i = vpage % 512; i < vpage % 512 + pages; i++) {
		clear_bits(&table->pte, i);
		__atomic_store_n(&table->pte.folio[i], (foliage_folio)page, __ATOMIC_RELEASE);
	}
	mm->nr_ptes++;
	*pte = (struct world_pte){w->pages[page].ptes, nr, vpage};
	w->pages[page].ptes = pte;
	folio_change(w->e, folio_at(w->e, (folio_id)page), 0, F_MAPPED);
}

bool world_try_touch(struct world *w, uint32_t mm, uint64_t vpage, bool write)
{
	struct world_table *table = table_of(w, mm, vpage);
	uint64_t bit = UINT64_C(1) << vpage % 64;
	size_t word = vpage % 512 / 64;

	if (__atomic_load_n(&table->pte.folio[vpage % 512], __ATOMIC_ACQUIRE) < 0)
		return false;
	__atomic_fetch_or(&table->pte.young[word], bit, __ATOMIC_RELAXED);
	if (write)
		__atomic_fetch_or(&table->pte.dirty[word], bit, __ATOMIC_RELAXED);
	__atomic_store_n(&table->young, true, __ATOMIC_RELAXED);
	return true;
}

void world_touch(struct world *w, uint32_t mm, uint64_t vpage, bool write)
{
	if (!world_try_touch(w, mm, vpage, write))
		fail_msg("process %u touches %llu, which is not mapped", mm,
			 (unsigned long long)vpage);
}

bool world_young(const struct world *w, uint32_t mm, uint64_t vpage)
{
	return bit_test(table_of(w, mm, vpage)->pte.young, vpage % 512);
}

bool world_pte_dirty(const struct world *w, uint32_t mm, uint64_t vpage)
{
	return bit_test(table_of(w, mm, vpage)->pte.dirty, vpage % 512);
}

bool *world_pmd_young(struct world *w, uint32_t mm, uint64_t vpage)
{
	return &table_of(w, mm, vpage)->young;
}

void world_contend(struct world *w, uint32_t mm, uint64_t vpage, bool contended)
{
	table_of(w, mm, vpage)->contended = contended;
}

bool world_mapped(const struct world *w, uint32_t mm, uint64_t vpage)
{
	const struct world_table *table = mm_of(w, mm)->tables[vpage / 512];

	return table && table->pte.folio[vpage % 512] >= 0;
}

/* ---- the other answers of the backend ---- */

static void cb_evict(void *ctx, foliage_folio id, uint64_t shadow)
{
	struct world *w = ctx;

	w->pages[id].shadow = shadow;
	w->pages[id].evictions++;
	w->pages[id].eviction_nr = ++w->nr_evicted;
}

static uint64_t cb_now_ms(void *ctx)
{
	return ((struct world *)ctx)->now_ms;
}

static enum foliage_pageout cb_pageout(void *ctx, foliage_folio id)
{
	struct world *w = ctx;

	w->nr_pageouts++;
	if (w->pageout == FOLIAGE_PAGEOUT_STARTED)
		foliage_folio_start_writeback(w->e, id);
	return w->pageout;
}

static bool cb_add_to_swap(void *ctx, foliage_folio id)
{
	struct world *w = ctx;
	int64_t nr = flags_nr(world_flags(w, (uint32_t)id));

	if (w->swap_free < nr)
		return false;
	w->swap_free -= nr;
	return true;
}

static int64_t cb_swap_free(void *ctx, uint32_t memcg)
{
	(void)memcg;
	return ((struct world *)ctx)->swap_free;
}

static int64_t cb_swapcache_pages(void *ctx, uint32_t node)
{
	(void)node;
	return ((struct world *)ctx)->swapcache;
}

static void cb_wake_flusher(void *ctx)
{
	((struct world *)ctx)->nr_flusher++;
}

static void cb_throttle(void *ctx)
{
	((struct world *)ctx)->nr_throttled++;
}

static bool cb_mm_trylock(void *ctx, uint32_t mm)
{
	struct world *w = ctx;

	if (w->mm_busy || !mm_find(w, mm) || pthread_mutex_trylock(&w->mms[mm]->lock))
		return false;
	w->nr_mm_locks++;
	w->mm_locked++;
	return true;
}

static void cb_mm_unlock(void *ctx, uint32_t mm)
{
	struct world *w = ctx;

	w->mm_locked--;
	pthread_mutex_unlock(&w->mms[mm]->lock);
}

static void cb_yield(void *ctx)
{
	struct world *w = ctx;

	w->nr_yields++;
	if (w->on_yield)
		w->on_yield(w);
}

static void cb_out_of_memory(void *ctx, uint32_t memcg)
{
	(void)memcg;
	((struct world *)ctx)->nr_oom++;
}

/* ---- life ---- */

static struct foliage_backend backend_of(const struct world_options *o)
{
	return (struct foliage_backend){
		.evict = cb_evict,
		.now_ms = cb_now_ms,
		.unmap = cb_unmap,
		.pageout = cb_pageout,
		.add_to_swap = cb_add_to_swap,
		.swap_free = cb_swap_free,
		.swapcache_pages = cb_swapcache_pages,
		.wake_flusher = cb_wake_flusher,
		.throttle = cb_throttle,
		.rmap = o->no_rmap ? NULL : cb_rmap,
		.next_mapping = o->no_walk ? NULL : cb_next_mapping,
		.mm_trylock = cb_mm_trylock,
		.mm_unlock = cb_mm_unlock,
		.yield = cb_yield,
		.out_of_memory = cb_out_of_memory,
	};
}

struct world *world_new(const struct world_options *options)
{
	static const struct world_options none;
	const struct world_options *o = options ? options : &none;
	struct world *w = calloc(1, sizeof(*w));
	struct foliage_backend backend = backend_of(o);
	struct foliage_engine_options eo = {
		.policy = o->policy,
		.nr_folios = o->nr_folios ? o->nr_folios : 65536,
		.max_memcgs = o->max_memcgs,
		.nr_nodes = o->nr_nodes,
		.nr_zones = o->nr_zones,
		.exclusive = !o->threads,
		.totalram_pages = o->totalram_pages,
		.scale = o->scale,
		.seed = o->seed,
		.caps = o->caps,
		.backend = &backend,
		.ctx = w,
	};
	char message[256] = "";

	w->nr_pages = eo.nr_folios;
	w->pages = calloc(w->nr_pages, sizeof(w->pages[0]));
	w->nr_mms = MAX_MMS;
	w->mms = calloc(w->nr_mms, sizeof(w->mms[0]));
	w->cpu.batch = o->batch ? o->batch : 1;
	w->swap_free = 1000000;
	w->pageout = FOLIAGE_PAGEOUT_STARTED;
	if (foliage_engine_create(&eo, &w->e, message, sizeof(message)))
		fail_msg("foliage_engine_create(%s): %s", o->policy ? o->policy : "fg", message);
	return w;
}

void world_free(struct world *w)
{
	for (uint32_t i = 0; i < w->nr_mms; i++)
		if (w->mms[i])
			mm_free(w, i);
	foliage_engine_destroy(w->e);
	free(w->mms);
	free(w->pages);
	free(w);
}

/* ---- pages ---- */

void world_add_to(struct world *w, uint32_t page, uint32_t memcg, uint32_t node, uint32_t zone,
		  uint32_t order, uint32_t flags)
{
	uint64_t shadow = w->pages[page].shadow;
	int err;

	w->pages[page].shadow = 0;
	err = foliage_folio_add(w->e, &w->cpu, (foliage_folio)page, memcg, node, zone, order, flags,
				shadow);
	if (err)
		fail_msg("foliage_folio_add(page %u): %d", page, err);
}

void world_add(struct world *w, uint32_t page, uint32_t flags)
{
	world_add_to(w, page, 0, 0, 0, 0, flags);
}

void world_add_range(struct world *w, uint32_t first, uint32_t nr, uint32_t flags)
{
	for (uint32_t i = 0; i < nr; i++)
		world_add(w, first + i, flags);
}

void world_mark(struct world *w, uint32_t page, unsigned int times)
{
	while (times--)
		foliage_folio_mark_accessed(w->e, &w->cpu, (foliage_folio)page);
}

bool world_read(struct world *w, uint32_t page)
{
	bool hit = world_present(w, page);

	if (!hit)
		world_add(w, page, 0);
	world_mark(w, page, 1);
	return hit;
}

void world_drain(struct world *w)
{
	foliage_cpu_drain(w->e, &w->cpu);
}

void world_end_writeback(struct world *w)
{
	for (uint32_t page = 0; page < w->nr_pages; page++)
		if (world_flags(w, page) & F_WRITEBACK)
			foliage_folio_end_writeback(w->e, &w->cpu, (foliage_folio)page);
}

bool world_present(const struct world *w, uint32_t page)
{
	return foliage_folio_present(w->e, (foliage_folio)page);
}

/* ---- reclaim ---- */

int64_t world_reclaim(struct world *w, uint32_t memcg, uint64_t nr)
{
	const struct foliage_reclaim_request request = {
		.memcg = memcg,
		.nr = nr,
		.swappiness = -1,
		.memcg_limit = true,
	};
	int64_t freed = foliage_reclaim(w->e, &w->cpu, &request);

	if (freed < 0)
		fail_msg("foliage_reclaim: %lld", (long long)freed);
	return freed;
}

void world_scan_control(struct world *w, struct scan_control *sc)
{
	*sc = (struct scan_control){
		.cpu = &w->cpu,
		.nr_to_reclaim = SWAP_CLUSTER_MAX,
		.priority = DEF_PRIORITY,
		.swappiness = -1,
		.reclaim_idx = w->e->nr_zones - 1,
		.batch = MIN_LRU_BATCH,
		.cluster = SWAP_CLUSTER_MAX,
		.may_unmap = true,
		.may_swap = true,
		.gfp_io = true,
	};
}

/* ---- looking inside ---- */

struct lruvec *world_lruvec(const struct world *w, uint32_t memcg, uint32_t node)
{
	return lruvec_of(w->e, memcg, node);
}

uint64_t world_flags(const struct world *w, uint32_t page)
{
	return folio_flags(folio_at(w->e, (folio_id)page));
}

int64_t world_seq(const struct world *w, uint32_t page)
{
	const struct folio *f = folio_at(w->e, (folio_id)page);
	int gen = flags_gen(folio_flags(f));

	return gen < 0 ? -1 : (int64_t)gen_seq(gen_max_seq(folio_lruvec(w->e, f)), gen);
}

int world_list(const struct world *w, uint32_t page)
{
	const struct folio *f = folio_at(w->e, (folio_id)page);

	return folio_flags(f) & F_LRU ? f->list : -1;
}

unsigned int world_refs(const struct world *w, uint32_t page)
{
	return flags_fg_refs(world_flags(w, page));
}

void world_set_refs(struct world *w, uint32_t page, unsigned int refs)
{
	struct folio *f = folio_at(w->e, (folio_id)page);
	uint64_t new = flags_with_fg_refs(0, refs), old = folio_change(w->e, f, F_REFS_MASK, new);
	const struct gen_rules *rules = w->e->ops->rules;
	int64_t active;

	if (!rules || !rules->refs_active || !(old & F_LRU))
		return;
	active = (refs >= gen_knobs(w->e)->activated) -
		 (flags_fg_refs(old) >= gen_knobs(w->e)->activated);
	counter_add(w->e, &folio_lruvec(w->e, f)->gen.nr_active[flags_type(old)],
		    active * flags_nr(old));
}

void world_check(struct world *w)
{
	for (uint32_t i = 0; i < w->e->nr_memcgs * w->e->nr_nodes; i++) {
		struct err err = {{0}};
		int broken;

		if (!w->e->memcgs[i / w->e->nr_nodes].used || !w->e->ops->is_valid)
			continue;
		broken = w->e->ops->is_valid(w->e, &w->e->lruvecs[i], &err);
		if (broken)
			fail_msg("lruvec %u: invariant %d broken: %s", i, broken, err.text);
	}
}

void world_age_to(struct world *w, uint32_t memcg, uint64_t seq)
{
	struct lruvec *lv = world_lruvec(w, memcg, 0);

	while (gen_max_seq(lv) < seq)
		if (!gen_inc_max_seq(w->e, lv, gen_max_seq(lv), 60))
			fail_msg("no new generation after %llu",
				 (unsigned long long)gen_max_seq(lv));
}
