/* SPDX-License-Identifier: MIT
 *
 * memcg_is_valid(): everything about the tree that can be counted twice is counted twice. For tests
 * and debug builds, at rest: no other call runs.
 */
#include "mm/memcg.h"

#include <errno.h>
#include <stdlib.h>

static int check_links(const struct foliage_engine *e, struct err *err)
{
	uint32_t used = 0, reached = 0, memcg = UINT32_MAX;

	for (uint32_t i = 0; i < e->nr_memcgs; i++) {
		const struct memcg *m = &e->memcgs[i];

		if (!m->online && e->memcg_of_id[m->id] == i + 1)
			return err_set(err, -EUCLEAN, "memcg %u: gone, but its id leads here", i);
		if (!m->used)
			continue;
		used++;
		if (!e->memcgs[m->parent].used)
			return err_set(err, -EUCLEAN, "memcg %u: its parent's slot %u is free", i,
				       (uint32_t)m->parent);
		if (m->online && !e->memcgs[m->parent].online)
			return err_set(err, -EUCLEAN, "memcg %u: online below an offline parent",
				       i);
		if (m->online && e->memcg_of_id[m->id] != i + 1)
			return err_set(err, -EUCLEAN, "memcg %u: id %u does not lead here", i,
				       (unsigned int)m->id);
		for (uint32_t node = 0; node < e->nr_nodes; node++)
			if (m->online && lruvec_of(e, i, node)->dying)
				return err_set(err, -EUCLEAN,
					       "memcg %u: online, its lruvec is dying", i);
	}
	while ((memcg = memcg_next(e, 0, memcg)) != UINT32_MAX && reached <= used) {
		if (!e->memcgs[memcg].used)
			return err_set(err, -EUCLEAN, "memcg %u: in the tree, its slot is free",
				       memcg);
		reached++;
	}
	if (reached != used)
		return err_set(err, -EUCLEAN, "%u slots are used, the tree reaches %u", used,
			       reached);
	return 0;
}

/* Usage of a removed memcg is nobody's: its folios may have been handed up without it. */
static int check_usage(const struct foliage_engine *e, int64_t *pages, const int64_t *owned,
		       struct err *err)
{
	for (uint32_t i = 0; i < e->nr_memcgs; i++)
		if (counter_read(&e->memcgs[i].nr_owned) != owned[i])
			return err_set(err, -EUCLEAN, "memcg %u: nr_owned is %lld, folios say %lld",
				       i, (long long)counter_read(&e->memcgs[i].nr_owned),
				       (long long)owned[i]);
	for (uint32_t i = 0; i < e->nr_memcgs; i++) {
		uint32_t memcg = UINT32_MAX;
		int64_t sum = 0;

		if (!e->memcgs[i].used || !e->memcgs[i].online)
			continue;
		while ((memcg = memcg_next(e, i, memcg)) != UINT32_MAX)
			sum += pages[memcg];
		if (counter_read(&e->memcgs[i].usage) != sum)
			return err_set(err, -EUCLEAN,
				       "memcg %u: usage is %lld, its folios have %lld pages", i,
				       (long long)counter_read(&e->memcgs[i].usage),
				       (long long)sum);
	}
	return 0;
}

static int check_folios(const struct foliage_engine *e, struct err *err)
{
	int64_t *pages = calloc(2 * (size_t)e->nr_memcgs, sizeof(*pages)),
		*owned = pages + e->nr_memcgs;
	int rc = 0;

	if (!pages)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t id = 0; id < e->nr_folios && !rc; id++) {
		const struct folio *f = folio_at(e, (folio_id)id);
		uint64_t flags = folio_flags(f);
		uint32_t slot = f->owner / e->nr_nodes;

		if (!(flags & F_PRESENT))
			continue;
		if (slot >= e->nr_memcgs || !e->memcgs[slot].used) {
			rc = err_set(err, -EUCLEAN, "folio %u: owner %u is a free slot", id, slot);
			break;
		}
		pages[slot] += flags_nr(flags);
		owned[slot]++;
	}
	if (!rc)
		rc = check_usage(e, pages, owned, err);
	free(pages);
	return rc;
}

static int check_bin(const struct foliage_engine *e, uint32_t node, unsigned int gen,
		     unsigned int bin, uint32_t *nr, struct err *err)
{
	int32_t first = e->nodes[node].memcg_bins[gen][bin], at = first;
	uint32_t limit = e->nr_memcgs;

	if (first < 0)
		return 0;
	do {
		const struct lru_gen *g = &e->lruvecs[at].gen;

		if (g->memcg_gen != gen || g->memcg_bin != bin || e->lruvecs[at].node != node)
			return err_set(
				err, -EUCLEAN,
				"lruvec %d: in bin %u of memcg generation %u, says otherwise", at,
				bin, gen);
		if (e->lruvecs[g->memcg_next].gen.memcg_prev != at)
			return err_set(err, -EUCLEAN, "lruvec %d: memcg LRU links disagree", at);
		if (!e->memcgs[e->lruvecs[at].memcg].used)
			return err_set(err, -EUCLEAN,
				       "lruvec %d: in the memcg LRU, its slot is free", at);
		++*nr;
		at = g->memcg_next;
	} while (at != first && limit-- > 0);
	return at == first ? 0 : err_set(err, -EUCLEAN, "memcg LRU bin %u does not close", bin);
}

static int check_memcg_lru(const struct foliage_engine *e, struct err *err)
{
	for (uint32_t i = 0; i < e->nr_nodes; i++) {
		const struct node *n = &e->nodes[i];
		uint32_t total = 0, expected = 0;
		int rc;

		for (unsigned int gen = 0; gen < 3; gen++) {
			uint32_t nr = 0;

			for (unsigned int bin = 0; bin < 8; bin++) {
				rc = check_bin(e, i, gen, bin, &nr, err);
				if (rc)
					return rc;
			}
			if (nr != n->memcg_nr[gen])
				return err_set(err, -EUCLEAN,
					       "node %u: %u memcgs in generation %u, counted as %u",
					       i, nr, gen, n->memcg_nr[gen]);
			total += nr;
		}
		if (n->memcg_nr[(n->memcg_seq + 2) % 3] || !n->memcg_nr[n->memcg_seq % 3])
			return err_set(err, -EUCLEAN,
				       "node %u: memcg LRU generations %u %u %u at seq %llu", i,
				       n->memcg_nr[0], n->memcg_nr[1], n->memcg_nr[2],
				       (unsigned long long)n->memcg_seq);
		for (uint32_t memcg = 0; memcg < e->nr_memcgs; memcg++)
			expected += e->memcgs[memcg].used && !lruvec_of(e, memcg, i)->dying;
		if (total != expected)
			return err_set(err, -EUCLEAN,
				       "node %u: %u memcgs in the memcg LRU, %u exist", i, total,
				       expected);
	}
	return 0;
}

int memcg_is_valid(struct foliage_engine *e, struct err *err)
{
	int rc = check_links(e, err);

	if (!rc)
		rc = check_folios(e, err);
	return rc ? rc : check_memcg_lru(e, err);
}
