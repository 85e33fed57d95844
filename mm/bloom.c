/* SPDX-License-Identifier: MIT
 *
 * Bloom filters: see bloom.h.
 */
#include "mm/bloom.h"

#include <stdlib.h>

#define GOLDEN_RATIO_64 UINT64_C(0x61C8864680B583EB)

struct bloom_keys {
	uint32_t low, high;
};

static struct bloom_keys keys_of(uint64_t item)
{
	uint32_t hash = (uint32_t)(item * GOLDEN_RATIO_64 >> (64 - 2 * BLOOM_SHIFT));

	return (struct bloom_keys){hash & ((1u << BLOOM_SHIFT) - 1), hash >> BLOOM_SHIFT};
}

static struct bloom_bits *filter_of(const struct bloom *bloom, uint64_t seq)
{
	return atomic_load_explicit(&bloom->filter[seq % NR_BLOOM_FILTERS], memory_order_acquire);
}

void bloom_fini(struct bloom *bloom)
{
	for (unsigned int i = 0; i < NR_BLOOM_FILTERS; i++) {
		free(filter_of(bloom, i));
		atomic_store_explicit(&bloom->filter[i], NULL, memory_order_relaxed);
	}
}

void bloom_reset(struct bloom *bloom, uint64_t seq)
{
	struct bloom_bits *bits = filter_of(bloom, seq);

	if (!bits) {
		bits = calloc(1, sizeof(*bits));
		atomic_store_explicit(&bloom->filter[seq % NR_BLOOM_FILTERS], bits,
				      memory_order_release);
		return;
	}
	for (unsigned int i = 0; i < BLOOM_WORDS; i++)
		atomic_store_explicit(&bits->word[i], 0, memory_order_relaxed);
}

static bool test_key(const struct bloom_bits *bits, uint32_t key)
{
	return atomic_load_explicit(&bits->word[key / 64], memory_order_relaxed) >> (key % 64) & 1;
}

static void set_key(struct bloom_bits *bits, uint32_t key)
{
	/* Most insertions repeat an earlier one: look before dirtying the line. */
	if (!test_key(bits, key))
		atomic_fetch_or_explicit(&bits->word[key / 64], UINT64_C(1) << (key % 64),
					 memory_order_relaxed);
}

bool bloom_test(const struct bloom *bloom, uint64_t seq, uint64_t item)
{
	const struct bloom_bits *bits = filter_of(bloom, seq);
	struct bloom_keys keys = keys_of(item);

	return !bits || (test_key(bits, keys.low) && test_key(bits, keys.high));
}

void bloom_add(struct bloom *bloom, uint64_t seq, uint64_t item)
{
	struct bloom_bits *bits = filter_of(bloom, seq);
	struct bloom_keys keys = keys_of(item);

	if (!bits)
		return;
	set_key(bits, keys.low);
	set_key(bits, keys.high);
}
