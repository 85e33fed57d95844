/* SPDX-License-Identifier: MIT
 *
 * Entries of a PTE table: runs of entries that map one folio, their young and dirty bits. The world
 * sets the bits whenever it likes, as hardware does; here they are read and cleared with atomic
 * operations.
 */
#ifndef FOLIAGE_MM_PTE_H
#define FOLIAGE_MM_PTE_H

#include "mm/lruvec.h"

enum {
	PTES_PER_TABLE = 512,
	/* Entries in 64 bytes: one young entry in each cache line's worth makes a range dense. */
	PTES_PER_LINE = 8,
	LOOK_AROUND_PTES = 64,
};

/* What an entry maps: FOLIO_NONE when it is not present. Others may unmap meanwhile; a folio that
 * has just left is at worst promoted for somebody else's access. */
static inline folio_id pte_folio(const struct foliage_engine *e, const struct foliage_pte_table *t,
				 uint32_t i)
{
	folio_id id = __atomic_load_n(&t->folio[i], __ATOMIC_RELAXED);

	return (uint32_t)id < e->nr_folios ? id : FOLIO_NONE;
}

/* Where the entries after `i` that map the same (large) folio end; at most `end`. */
static inline uint32_t pte_run_end(const struct foliage_pte_table *t, folio_id id, uint32_t i,
				   uint32_t end)
{
	uint32_t next = i + 1;

	while (next < end && __atomic_load_n(&t->folio[next], __ATOMIC_RELAXED) == id)
		next++;
	return next;
}

/* Bits from..end-1 of word w. */
static inline uint64_t pte_mask(uint32_t w, uint32_t from, uint32_t end)
{
	uint32_t low = MAX(from, w * 64) - w * 64, high = MIN(end, w * 64 + 64) - w * 64;

	return (high == 64 ? UINT64_MAX : (UINT64_C(1) << high) - 1) & ~((UINT64_C(1) << low) - 1);
}

static inline bool pte_any(const uint64_t *map, uint32_t from, uint32_t end)
{
	for (uint32_t w = from / 64; w * 64 < end; w++)
		if (__atomic_load_n(&map[w], __ATOMIC_RELAXED) & pte_mask(w, from, end))
			return true;
	return false;
}

static inline bool pte_take(uint64_t *map, uint32_t from, uint32_t end)
{
	uint64_t had = 0;

	for (uint32_t w = from / 64; w * 64 < end; w++) {
		uint64_t mask = pte_mask(w, from, end);

		if (__atomic_load_n(&map[w], __ATOMIC_RELAXED) & mask)
			had |= __atomic_fetch_and(&map[w], ~mask, __ATOMIC_ACQ_REL) & mask;
	}
	return had != 0;
}

static inline bool vma_has_recency(uint32_t vma_flags)
{
	return !(vma_flags & (FOLIAGE_VMA_SEQ_READ | FOLIAGE_VMA_RAND_READ | FOLIAGE_VMA_NOREUSE));
}

/* Does an access through this VMA count as one of executable file memory? */
static inline bool pte_exec(uint32_t vma_flags, uint64_t flags)
{
	return flags_type(flags) == TYPE_FILE && (vma_flags & FOLIAGE_VMA_EXEC || flags & F_EXEC);
}

/* Is a young entry of this folio worth noticing for a walker of `lv`? */
bool pte_wanted(const struct foliage_engine *e, const struct lruvec *lv, folio_id id);
/* What hardware knows of dirtiness becomes the folio's. */
void pte_move_dirty(struct foliage_engine *e, struct foliage_pte_table *t, folio_id id,
		    uint32_t from, uint32_t end);

/* A PMD's name in the Bloom filters. */
static inline uint64_t pmd_key(const struct foliage_mapping *m)
{
	return (uint64_t)m->mm << 40 ^ m->pmd / PTES_PER_TABLE;
}

static inline bool pmd_dense(uint64_t total, uint64_t young)
{
	return total && young * PTES_PER_LINE >= total;
}

#endif
