/* SPDX-License-Identifier: MIT
 *
 * Bits: logarithms, rounding, bitmaps of 64-bit words.
 */
#ifndef FOLIAGE_BASE_BITS_H
#define FOLIAGE_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Index of the highest set bit, counted from 1; fls(0) = 0. */
static inline unsigned int fls64(uint64_t x)
{
	return x ? 64u - (unsigned int)__builtin_clzll(x) : 0;
}

/* ceil(log2 n); 0 for n <= 1. */
static inline unsigned int order_base_2(uint64_t n)
{
	return n > 1 ? fls64(n - 1) : 0;
}

static inline bool bit_test(const uint64_t *map, size_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void bit_set(uint64_t *map, size_t i)
{
	map[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void bit_clear(uint64_t *map, size_t i)
{
	map[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static inline size_t bitmap_words(size_t bits)
{
	return (bits + 63) / 64;
}

/* floor(sqrt(x)) without floating point. */
static inline uint64_t isqrt(uint64_t x)
{
	uint64_t r = 0, bit = UINT64_C(1) << 62;

	while (bit > x)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (x >= r + bit) {
			x -= r + bit;
			r = (r >> 1) + bit;
		} else {
			r >>= 1;
		}
	}
	return r;
}

#endif
