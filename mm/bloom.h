/* SPDX-License-Identifier: MIT
 *
 * Bloom filters of the page-table walk (B.9): which PMDs had a dense set of young entries. Two of
 * them take turns by the parity of their sequence number: a walk for seq consults filter seq and
 * fills filter seq + 1, and eviction's look-around adds to the one that the next walk will consult.
 *
 * 2^15 bits and two keys of 15 bits each, out of a 30-bit multiplicative hash. A filter that does
 * not exist yet (or could not be allocated) answers yes to everything, so that the first walk
 * visits everything.
 *
 * Bits are set and read without a lock by several walkers: a lost race costs one needless or one
 * missed visit.
 */
#ifndef FOLIAGE_MM_BLOOM_H
#define FOLIAGE_MM_BLOOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BLOOM_SHIFT = 15, BLOOM_WORDS = (1 << BLOOM_SHIFT) / 64, NR_BLOOM_FILTERS = 2 };

struct bloom_bits {
	_Atomic uint64_t word[BLOOM_WORDS];
};

struct bloom {
	struct bloom_bits *_Atomic filter[NR_BLOOM_FILTERS];
};

void bloom_fini(struct bloom *bloom);
/* Empty the filter of `seq`, allocating it the first time. Callers serialize. */
void bloom_reset(struct bloom *bloom, uint64_t seq);
bool bloom_test(const struct bloom *bloom, uint64_t seq, uint64_t item);
void bloom_add(struct bloom *bloom, uint64_t seq, uint64_t item);

#endif
