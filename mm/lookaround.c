/* SPDX-License-Identifier: MIT
 *
 * What the page tables say of a folio about to be evicted (A.3), and a look around while there
 * (B.10).
 *
 * The rmap finds every mapping of the folio; a young bit is cleared and counted. Finding one costs
 * cold cache lines, so the 64 entries around it are read too: young neighbours are promoted now,
 * long before eviction would have asked for each of them, and a dense neighbourhood is told to the
 * Bloom filter of the next aging walk.
 */
#include "mm/gen.h"
#include "mm/mm_list.h"
#include "mm/pte.h"
#include "mm/walk.h"

struct window {
	uint32_t first, end;
};

/* 64 entries within the VMA and the table, the found one in the middle unless that is too near an
 * edge. */
static struct window window_around(const struct foliage_mapping *m)
{
	uint32_t half = LOOK_AROUND_PTES / 2, end = MIN(m->last + 1, (uint32_t)PTES_PER_TABLE);

	if (end - m->first <= LOOK_AROUND_PTES)
		return (struct window){m->first, end};
	if (m->index - m->first < half)
		return (struct window){m->first, m->first + LOOK_AROUND_PTES};
	if (end - m->index < half)
		return (struct window){end - LOOK_AROUND_PTES, end};
	return (struct window){m->index - half, m->index + half};
}

/* The entries around m->index that map the folio. */
static struct window run_of(const struct foliage_mapping *m, folio_id id)
{
	struct window run = {m->index, pte_run_end(m->table, id, m->index,
						   MIN(m->last + 1, (uint32_t)PTES_PER_TABLE))};

	while (run.first > m->first &&
	       __atomic_load_n(&m->table->folio[run.first - 1], __ATOMIC_RELAXED) == id)
		run.first--;
	return run;
}

/* Who comes with a page-table walk buffer applies the walk's rule: kswapd and proactive reclaim
 * bring one, others have it once aging in the same session needed it. */
static bool has_walk_buffer(const struct scan_control *sc)
{
	return sc->walk || sc->kswapd || sc->proactive;
}

static void promote_neighbour(struct foliage_engine *e, struct scan_control *sc, struct lruvec *lv,
			      folio_id id, uint32_t vma_flags)
{
	bool exec = pte_exec(vma_flags, folio_flags(folio_at(e, id)));

	if (has_walk_buffer(sc) && e->ops->walk_young)
		e->ops->walk_young(e, lv, id, exec);
	else
		e->ops->neighbour_young(e, sc->cpu, id, exec);
}

/* `found`: the entries of the folio itself, young and cleared already. */
static void look_around(struct foliage_engine *e, struct scan_control *sc, struct lruvec *lv,
			const struct foliage_mapping *m, struct window found)
{
	struct foliage_pte_table *t = m->table;
	struct window w = window_around(m);
	uint64_t young = MIN(found.end, w.end) - MAX(found.first, w.first);
	uint32_t next;

	if (m->contended || m->vma_flags & FOLIAGE_VMA_SPECIAL)
		return;
	for (uint32_t i = w.first; i < w.end; i = next) {
		folio_id id = pte_folio(e, t, i);

		next = i + 1;
		if (id == FOLIO_NONE)
			continue;
		next = pte_run_end(t, id, i, w.end);
		if ((i >= found.first && i < found.end) || !pte_any(t->young, i, next) ||
		    !pte_wanted(e, lv, id) || !pte_take(t->young, i, next))
			continue;
		young += next - i;
		pte_move_dirty(e, t, id, i, next);
		promote_neighbour(e, sc, lv, id, m->vma_flags);
	}
	if (lv->walk && pmd_dense(w.end - w.first, young))
		bloom_add(&lv->walk->bloom, gen_max_seq(lv), pmd_key(m));
}

/* 6.12: a neighbour's look-around touched the folio after it was isolated; it is kept without a
 * look. */
static bool marked_since_isolation(const struct foliage_engine *e, uint64_t flags)
{
	return e->ops->rules && e->ops->rules->v612 && flags & F_REFERENCED;
}

void folio_referenced(struct foliage_engine *e, struct scan_control *sc, folio_id id, bool look,
		      struct referenced *out)
{
	struct lruvec *lv = folio_lruvec(e, folio_at(e, id));
	uint64_t flags = folio_flags(folio_at(e, id));
	struct foliage_mapping m = {0};

	*out = (struct referenced){0};
	if (!e->backend.rmap)
		return;
	if (marked_since_isolation(e, flags)) {
		out->contended = true;
		return;
	}
	for (uint32_t cursor = 0; e->backend.rmap(e->ctx, id, cursor, &m); cursor++) {
		struct window run;

		if (m.vma_flags & FOLIAGE_VMA_LOCKED) {
			out->locked = true;
			return;
		}
		if (!vma_has_recency(m.vma_flags))
			continue;
		if (!m.table) { /* the world could not take the rmap's lock */
			out->contended = true;
			return;
		}
		run = run_of(&m, id);
		if (!pte_take(m.table->young, run.first, run.end))
			continue;
		out->ptes++;
		out->exec |= pte_exec(m.vma_flags, flags);
		if (look && e->ops->neighbour_young)
			look_around(e, sc, lv, &m, run);
	}
}
