/* SPDX-License-Identifier: MIT
 *
 * The aging walk (B.9): read and clear the young bits of every process of a memcg, so that pages
 * used through page tables rise without an rmap lookup for each.
 *
 * It pays because young entries come in clumps. A PTE table is visited only if the Bloom filter
 * says that the previous walk, or eviction's look-around since, found it dense: one young entry in
 * eight. Where the world keeps an accessed bit for whole tables, an old one is not even asked for.
 *
 * No engine lock is held while walking. After each gigabyte of address space, once enough has
 * moved, the process is let go, others may run, and the walk resumes where it was.
 */
#include "mm/walk.h"
#include "mm/gen.h"
#include "mm/mm_list.h"
#include "mm/pte.h"

enum { PAGES_PER_PUD_SHIFT = 18 };

struct density {
	uint64_t total, young;
	bool contended;
};

bool pte_wanted(const struct foliage_engine *e, const struct lruvec *lv, folio_id id)
{
	const struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);

	if (!(flags & F_PRESENT) || folio_lruvec(e, f) != lv)
		return false;
	/* 6.12 marks isolated folios as well. */
	return (flags & (F_LRU | F_UNEVICTABLE)) == F_LRU || (e->ops->rules && e->ops->rules->v612);
}

void pte_move_dirty(struct foliage_engine *e, struct foliage_pte_table *t, folio_id id,
		    uint32_t from, uint32_t end)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	/* Anonymous memory without a swap slot has nothing to be dirty against. */
	if ((flags & (F_ANON | F_SWAPBACKED)) == (F_ANON | F_SWAPBACKED) && !(flags & F_SWAPCACHE))
		return;
	if (pte_take(t->dirty, from, end))
		foliage_folio_set_dirty(e, id);
}

static bool skip_vma(const struct mm_walk *walk, uint32_t vma)
{
	if (vma & (FOLIAGE_VMA_INACCESSIBLE | FOLIAGE_VMA_HUGETLB | FOLIAGE_VMA_LOCKED |
		   FOLIAGE_VMA_SPECIAL | FOLIAGE_VMA_UNEVICTABLE) ||
	    !vma_has_recency(vma))
		return true;
	if (vma & (FOLIAGE_VMA_ANON | FOLIAGE_VMA_SHMEM))
		return walk->swappiness == 0;
	return walk->swappiness >= SWAPPINESS_ANON_ONLY;
}

/* Is the table worth reading? Forgets that it was used, if the world knows. */
static bool want_pmd(const struct mm_walk *walk, const struct foliage_mapping *m)
{
	struct foliage_engine *e = walk->e;

	if (walk->force_scan)
		return true;
	if (e->caps & FOLIAGE_LRU_GEN_NONLEAF_YOUNG && m->pmd_young) {
		if (!__atomic_load_n(m->pmd_young, __ATOMIC_RELAXED))
			return false;
		if (!bloom_test(&walk->lv->walk->bloom, walk->seq, pmd_key(m)))
			return false;
		__atomic_store_n(m->pmd_young, false, __ATOMIC_RELEASE);
		return true;
	}
	return bloom_test(&walk->lv->walk->bloom, walk->seq, pmd_key(m));
}

static void promote(struct mm_walk *walk, folio_id id, uint32_t vma_flags)
{
	struct foliage_engine *e = walk->e;
	struct folio *f = folio_at(e, id);
	uint64_t before = folio_flags(f);

	e->ops->walk_young(e, walk->lv, id, pte_exec(vma_flags, before));
	if (flags_gen(folio_flags(f)) != flags_gen(before))
		walk->batched += (uint64_t)flags_nr(before);
}

static void read_table(struct mm_walk *walk, const struct foliage_mapping *m, struct density *d)
{
	struct foliage_engine *e = walk->e;
	struct foliage_pte_table *t = m->table;
	uint32_t end = MIN(m->last + 1, (uint32_t)PTES_PER_TABLE), next;

	if (!t || m->contended) {
		d->contended = true;
		return;
	}
	/* Density is of the range, holes included: as a booted kernel counts. */
	d->total += end - MIN(m->first, end);
	for (uint32_t i = m->first; i < end; i = next) {
		folio_id id = pte_folio(e, t, i);

		next = i + 1;
		if (id == FOLIO_NONE)
			continue;
		next = pte_run_end(t, id, i, end);
		if (!pte_any(t->young, i, next) || !pte_wanted(e, walk->lv, id) ||
		    !pte_take(t->young, i, next))
			continue;
		d->young += next - i;
		pte_move_dirty(e, t, id, i, next);
		promote(walk, id, m->vma_flags);
	}
}

/* All VMAs that share the table of *m; leaves the first mapping after it in *m. False at the end of
 * the process. */
static bool visit_pmd(struct mm_walk *walk, struct foliage_mapping *m)
{
	struct foliage_engine *e = walk->e;
	const struct foliage_mapping first = *m;
	struct density d = {0};
	bool decided = false, wanted = false, more;

	do {
		if (!skip_vma(walk, m->vma_flags)) {
			if (!decided)
				wanted = want_pmd(walk, m);
			decided = true;
			if (wanted)
				read_table(walk, m, &d);
		}
		more = e->backend.next_mapping(e->ctx, first.mm, m->pmd + m->last + 1, m);
	} while (more && m->pmd == first.pmd);
	walk->stat[WALK_LEAF_TOTAL] += d.total;
	walk->stat[WALK_LEAF_YOUNG] += d.young;
	if (!wanted)
		return more;
	walk->stat[WALK_PMD_FOUND]++;
	/* A table that others hold is in use; it keeps its place in the filter. */
	if (d.contended || pmd_dense(d.total, d.young)) {
		bloom_add(&walk->lv->walk->bloom, walk->seq + 1, pmd_key(&first));
		walk->stat[WALK_PMD_ADDED]++;
	}
	return more;
}

/* Walk from *from to the end of the process, or to a gigabyte boundary where it is time to let
 * others in: then true, and *from is where to resume. */
static bool walk_section(struct mm_walk *walk, uint32_t mm, uint64_t *from)
{
	struct foliage_engine *e = walk->e;
	struct foliage_mapping m;
	bool more = e->backend.next_mapping(e->ctx, mm, *from, &m);

	while (more) {
		uint64_t pud = m.pmd >> PAGES_PER_PUD_SHIFT;

		m.mm = mm;
		more = visit_pmd(walk, &m);
		if (more && m.pmd >> PAGES_PER_PUD_SHIFT != pud && walk->batched >= MAX_LRU_BATCH) {
			*from = m.pmd + m.first;
			return true;
		}
	}
	return false;
}

static void walk_mm(struct mm_walk *walk, int32_t mm)
{
	struct foliage_engine *e = walk->e;
	uint64_t from = 0;
	bool more = true;

	while (more && gen_max_seq(walk->lv) == walk->seq && mm_enter(e, mm)) {
		bool locked = !e->backend.mm_trylock || e->backend.mm_trylock(e->ctx, (uint32_t)mm);

		/* A busy process is left out of this generation. */
		more = locked && walk_section(walk, (uint32_t)mm, &from);
		if (locked && e->backend.mm_unlock)
			e->backend.mm_unlock(e->ctx, (uint32_t)mm);
		mm_leave(e, mm);
		walk->batched = 0;
		if (e->backend.yield)
			e->backend.yield(e->ctx);
	}
}

static bool can_walk(const struct foliage_engine *e)
{
	return e->backend.next_mapping && e->ops->walk_young && e->caps & FOLIAGE_LRU_GEN_MM_WALK;
}

bool walk_mms(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc, uint64_t seq,
	      int swappiness, bool force_scan)
{
	struct mm_walk walk = {
		.e = e,
		.lv = lv,
		.seq = seq,
		.swappiness = swappiness,
		.force_scan = force_scan,
	};
	int32_t mm = MM_NONE;
	bool last;

	if (!can_walk(e))
		return walk_skip(e, lv, seq);
	do {
		last = mm_list_next(&walk, &mm);
		if (sc && (last || mm != MM_NONE))
			sc->walk = lv->walk;
		if (mm != MM_NONE)
			walk_mm(&walk, mm);
	} while (mm != MM_NONE);
	return last;
}

bool walk_skip(struct foliage_engine *e, struct lruvec *lv, uint64_t seq)
{
	return mm_list_skip(e, lv, seq);
}
