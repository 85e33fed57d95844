/* SPDX-License-Identifier: MIT
 *
 * Page tables of one mapping: see mapped.h.
 *
 * An entry that is not present keeps its page's number as -1 - id, so that fault-around finds its
 * neighbours' pages without a table of ranks to ids; entries beyond the last page hold INT32_MIN.
 */
#include "machine/mapped.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "mm/folio.h"

enum { ENTRIES = 512 };

struct mapped_space {
	struct foliage_pte_table *tables;
	bool *young; /* of whole tables */
	size_t bytes;
	uint32_t nr_ids, nr_tables;
	const uint32_t *order;
	uint32_t fault_around;
	bool born_old;
	struct foliage_engine *engine;
	uint32_t mm;
};

static uint32_t rank_of(const struct mapped_space *s, uint32_t id)
{
	return s->order ? s->order[id] : id;
}

static foliage_folio *entry_of(const struct mapped_space *s, uint32_t rank)
{
	return &s->tables[rank / ENTRIES].folio[rank % ENTRIES];
}

static int fill(struct mapped_space *s)
{
	for (uint32_t rank = 0; rank < s->nr_tables * ENTRIES; rank++)
		*entry_of(s, rank) = INT32_MIN;
	for (uint32_t id = 0; id < s->nr_ids; id++) {
		uint32_t rank = rank_of(s, id);

		if (rank >= s->nr_ids || *entry_of(s, rank) != INT32_MIN)
			return -EINVAL;
		*entry_of(s, rank) = -1 - (foliage_folio)id;
	}
	return 0;
}

int mapped_create(const struct mapped_options *options, struct mapped_space **space)
{
	struct mapped_space *s;
	int err;

	if (!options->nr_ids || options->nr_ids > INT32_MAX - ENTRIES)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->nr_ids = options->nr_ids;
	s->nr_tables = (s->nr_ids + ENTRIES - 1) / ENTRIES;
	s->order = options->order;
	s->fault_around = MAX(options->fault_around, 1u);
	s->born_old = options->born_old;
	s->bytes = s->nr_tables * sizeof(*s->tables);
	s->tables = mem_table(s->bytes);
	s->young = calloc(s->nr_tables, sizeof(*s->young));
	err = s->tables && s->young ? fill(s) : -ENOMEM;
	if (err) {
		mapped_destroy(s);
		return err;
	}
	*space = s;
	return 0;
}

void mapped_destroy(struct mapped_space *s)
{
	if (!s)
		return;
	if (s->tables)
		mem_table_free(s->tables, s->bytes);
	free(s->young);
	free(s);
}

int mapped_attach(struct mapped_space *s, struct foliage_engine *engine, uint32_t memcg)
{
	int mm = foliage_mm_add(engine, memcg);

	if (mm < 0)
		return mm;
	s->engine = engine;
	s->mm = (uint32_t)mm;
	return mm;
}

bool mapped_is_mapped(const struct mapped_space *s, uint32_t id)
{
	return *entry_of(s, rank_of(s, id)) >= 0;
}

/* Set a bit that others only clear; writes only when that changes something. */
static void raise_bit(uint64_t *map, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (!(__atomic_load_n(&map[i / 64], __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(&map[i / 64], bit, __ATOMIC_RELAXED);
}

static void make_young(struct mapped_space *s, uint32_t rank)
{
	bool *young = &s->young[rank / ENTRIES];

	raise_bit(s->tables[rank / ENTRIES].young, rank % ENTRIES);
	if (!__atomic_load_n(young, __ATOMIC_RELAXED))
		__atomic_store_n(young, true, __ATOMIC_RELAXED);
}

static void mark(struct mapped_space *s, uint32_t id, uint32_t rank, bool store, bool exec)
{
	make_young(s, rank);
	if (store)
		raise_bit(s->tables[rank / ENTRIES].dirty, rank % ENTRIES);
	if (exec)
		folio_change(s->engine, folio_at(s->engine, (folio_id)id), 0, F_EXEC);
}

bool mapped_touch(struct mapped_space *s, uint32_t id, bool store, bool exec)
{
	uint32_t rank = rank_of(s, id);

	if (*entry_of(s, rank) < 0)
		return false;
	mark(s, id, rank, store, exec);
	return true;
}

static void set_entry(struct mapped_space *s, uint32_t rank, uint32_t id)
{
	*entry_of(s, rank) = (foliage_folio)id;
	folio_change(s->engine, folio_at(s->engine, (folio_id)id), 0, F_MAPPED);
}

uint32_t mapped_map(struct mapped_space *s, uint32_t id, bool store, bool exec)
{
	uint32_t rank = rank_of(s, id), nr = 1;
	/* An aligned window, within the table and the file. */
	uint32_t first = rank - rank % s->fault_around, end = first + s->fault_around;

	first = MAX(first, rank / ENTRIES * ENTRIES);
	end = MIN(MIN(end, (rank / ENTRIES + 1) * ENTRIES), s->nr_ids);
	for (uint32_t i = first; i < end; i++) {
		foliage_folio entry = *entry_of(s, i);

		if (i == rank || entry >= 0 || !foliage_folio_present(s->engine, -1 - entry))
			continue;
		set_entry(s, i, (uint32_t)(-1 - entry));
		if (!s->born_old)
			make_young(s, i);
		nr++;
	}
	set_entry(s, rank, id);
	mark(s, id, rank, store, exec);
	return nr;
}

void mapped_unmap(struct mapped_space *s, uint32_t id)
{
	uint32_t rank = rank_of(s, id), i = rank % ENTRIES;
	struct foliage_pte_table *t = &s->tables[rank / ENTRIES];
	uint64_t bit = UINT64_C(1) << i % 64;

	if (t->folio[i] < 0)
		return;
	t->folio[i] = -1 - (foliage_folio)id;
	__atomic_fetch_and(&t->young[i / 64], ~bit, __ATOMIC_RELAXED);
	if (__atomic_fetch_and(&t->dirty[i / 64], ~bit, __ATOMIC_RELAXED) & bit)
		foliage_folio_set_dirty(s->engine, (foliage_folio)id);
	folio_change(s->engine, folio_at(s->engine, (folio_id)id), F_MAPPED, 0);
}

static void describe(const struct mapped_space *s, uint32_t table, uint32_t index,
		     struct foliage_mapping *out)
{
	*out = (struct foliage_mapping){
		.mm = s->mm,
		.pmd = (uint64_t)table * ENTRIES,
		.first = 0,
		.last = MIN(s->nr_ids - table * ENTRIES, (uint32_t)ENTRIES) - 1,
		.index = index,
		.pmd_young = &s->young[table],
		.table = &s->tables[table],
	};
}

bool mapped_rmap(const struct mapped_space *s, foliage_folio folio, uint32_t cursor,
		 struct foliage_mapping *out)
{
	uint32_t rank = rank_of(s, (uint32_t)folio);

	if (cursor || *entry_of(s, rank) < 0)
		return false;
	describe(s, rank / ENTRIES, rank % ENTRIES, out);
	return true;
}

bool mapped_next(const struct mapped_space *s, uint64_t from, struct foliage_mapping *out)
{
	if (from >= s->nr_ids)
		return false;
	describe(s, (uint32_t)(from / ENTRIES), 0, out);
	return true;
}
