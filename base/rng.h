/* SPDX-License-Identifier: MIT
 *
 * Random numbers: splitmix64, the generator of every seeded choice in Foliage.
 */
#ifndef FOLIAGE_BASE_RNG_H
#define FOLIAGE_BASE_RNG_H

#include <stdint.h>

static inline uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* Uniform in [0,1), 53 bits, one draw. */
static inline double splitmix64_unit(uint64_t *state)
{
	return (double)(splitmix64(state) >> 11) * (1.0 / 9007199254740992.0);
}

/* Uniform in [0,n), n > 0; the bias of the multiply-shift is below n / 2^32. */
static inline uint32_t splitmix64_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((splitmix64(state) >> 32) * n) >> 32);
}

#endif
