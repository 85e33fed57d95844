/* SPDX-License-Identifier: MIT
 *
 * The flag word of a folio, and the only functions that write it.
 *
 *   bit  0..7   gen + 1 (0: on no generation list); FG-W keeps its 8-bit stamp here
 *        8..11  refs: bit 8 is PG_referenced (R), bit 9 PG_workingset (W), bits 10-11 the LRU_REFS
 *               field (C). FG reads all four as one counter (0..7 by default, C.1); mainline and
 *               6.12 read them apart (B.2).
 *       12..    the F_* flags below
 *       36..47  pins: somebody outside holds the folio; reclaim keeps it
 *       48      the backend's own
 *       52..63  version: changes whenever the folio leaves its lists, so that a compare-exchange
 *               prepared before cannot succeed after (no ABA across an eviction)
 *
 * Every write is a compare-exchange, or a plain store in an exclusive engine: folio_cas() is the
 * one place that knows the difference.
 */
#ifndef FOLIAGE_MM_FOLIO_H
#define FOLIAGE_MM_FOLIO_H

#include "mm/types.h"

#define F_GEN_MASK       UINT64_C(0xff)
#define F_REFS_SHIFT     8
#define F_REFERENCED     (UINT64_C(1) << 8)
#define F_WORKINGSET     (UINT64_C(1) << 9)
#define F_LRU_REFS_SHIFT 10
#define F_LRU_REFS_MASK  (UINT64_C(3) << 10)
#define F_REFS_MASK      (UINT64_C(15) << 8) /* R, W and C together */
#define F_ACTIVE         (UINT64_C(1) << 12)
#define F_LRU            (UINT64_C(1) << 13) /* on a list */
#define F_SWAPBACKED     (UINT64_C(1) << 14) /* type anon: anonymous and shmem; cleared by lazyfree */
#define F_ANON           (UINT64_C(1) << 15)
#define F_SWAPCACHE      (UINT64_C(1) << 16)
#define F_DIRTY          (UINT64_C(1) << 17)
#define F_WRITEBACK      (UINT64_C(1) << 18)
#define F_RECLAIM        (UINT64_C(1) << 19) /* reclaim waits for its write-back */
#define F_UNEVICTABLE    (UINT64_C(1) << 20)
#define F_MLOCKED        (UINT64_C(1) << 21)
#define F_EXEC           (UINT64_C(1) << 22) /* file folio in an executable mapping */
#define F_MAPPED         (UINT64_C(1) << 23)
#define F_LOCKED         (UINT64_C(1) << 24)
#define F_DROPBEHIND     (UINT64_C(1) << 25)
#define F_PRESENT        (UINT64_C(1) << 26) /* in memory: added and not evicted */
#define F_ISOLATED       (UINT64_C(1) << 27) /* in a reclaimer's hands */
#define F_READAHEAD      (UINT64_C(1) << 28)
#define F_ORDER_SHIFT    29
#define F_ORDER_MASK     (UINT64_C(15) << F_ORDER_SHIFT)
#define F_ZONE_SHIFT     33
#define F_ZONE_MASK      (UINT64_C(3) << F_ZONE_SHIFT)
#define F_FROZEN         (UINT64_C(1) << 35)
#define F_PINS_SHIFT     36
#define F_PINS_MASK      (UINT64_C(0xfff) << F_PINS_SHIFT)
#define F_VERSION_SHIFT  52
#define F_VERSION_ONE    (UINT64_C(1) << F_VERSION_SHIFT)
#define F_VERSION_MASK   (UINT64_C(0xfff) << F_VERSION_SHIFT)

static inline struct folio *folio_at(const struct foliage_engine *e, folio_id id)
{
	return (struct folio *)((char *)e->folios +
				(ptrdiff_t)id * ((ptrdiff_t)1 << e->folio_shift));
}

static inline uint64_t folio_flags(const struct folio *f)
{
	return atomic_load_explicit(&f->flags, memory_order_acquire);
}

/* Replace *old by `new`; on failure *old is what is there now. Loops that know `exclusive`
 * beforehand pass it. */
static inline __attribute__((always_inline)) bool folio_cas_if(struct folio *f, uint64_t *old,
							       uint64_t new, bool exclusive)
{
	if (exclusive) {
		atomic_store_explicit(&f->flags, new, memory_order_relaxed);
		return true;
	}
	return atomic_compare_exchange_weak_explicit(&f->flags, old, new, memory_order_acq_rel,
						     memory_order_acquire);
}

static inline bool folio_cas(const struct foliage_engine *e, struct folio *f, uint64_t *old,
			     uint64_t new)
{
	return folio_cas_if(f, old, new, e->exclusive);
}

/* Clear `clear`, then set `set`; returns the word before. */
static inline uint64_t folio_change(const struct foliage_engine *e, struct folio *f, uint64_t clear,
				    uint64_t set)
{
	uint64_t old = folio_flags(f);

	while (((old & ~clear) | set) != old && !folio_cas(e, f, &old, (old & ~clear) | set))
		;
	return old;
}

/* Written under the lruvec's lock, peeked at without it by TAIL_MODE_LIST. */
static inline void folio_set_list(struct folio *f, int list)
{
	__atomic_store_n(&f->list, (uint16_t)list, __ATOMIC_RELAXED);
}

static inline int flags_gen(uint64_t flags) /* -1: on no list */
{
	return (int)(flags & F_GEN_MASK) - 1;
}

static inline unsigned int flags_type(uint64_t flags)
{
	return flags & F_SWAPBACKED ? TYPE_ANON : TYPE_FILE;
}

static inline unsigned int flags_zone(uint64_t flags)
{
	return (unsigned int)((flags & F_ZONE_MASK) >> F_ZONE_SHIFT);
}

static inline int64_t flags_nr(uint64_t flags) /* base pages */
{
	return INT64_C(1) << ((flags & F_ORDER_MASK) >> F_ORDER_SHIFT);
}

static inline bool flags_evictable(uint64_t flags)
{
	return !(flags & (F_UNEVICTABLE | F_MLOCKED));
}

/* FG's counter (C.1). */
static inline unsigned int flags_fg_refs(uint64_t flags)
{
	return (unsigned int)((flags & F_REFS_MASK) >> F_REFS_SHIFT);
}

static inline uint64_t flags_with_fg_refs(uint64_t flags, unsigned int refs)
{
	return (flags & ~F_REFS_MASK) | (uint64_t)refs << F_REFS_SHIFT;
}

static inline unsigned int flags_lru_refs(uint64_t flags) /* the C field */
{
	return (unsigned int)((flags & F_LRU_REFS_MASK) >> F_LRU_REFS_SHIFT);
}

static inline uint64_t flags_with_gen(uint64_t flags, int gen)
{
	return (flags & ~F_GEN_MASK) | (uint64_t)(gen + 1);
}

#endif
