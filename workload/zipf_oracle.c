/* SPDX-License-Identifier: MIT
 *
 * The kernel comparison's generator. One draw an access gives u in [0,1); u gives a rank, by Gray's
 * approximation below theta 1 and by binary search of the cumulative distribution from 1 on; a
 * seeded shuffle gives the page. The order of every floating-point operation is part of the
 * definition: sums run upwards from rank 1.
 */
#include "workload/zipf_oracle.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x100000001b3)

static void shuffle(uint32_t *page, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		page[i] = i;
	for (uint32_t i = n - 1; i >= 1; i--) {
		const uint32_t j = (uint32_t)(splitmix64(&seed) % (i + UINT64_C(1)));
		const uint32_t held = page[i];

		page[i] = page[j];
		page[j] = held;
	}
}

int zipf_oracle_init(struct zipf_oracle *z, uint32_t n, double theta, uint64_t seed,
		     uint64_t permutation_seed)
{
	*z = (struct zipf_oracle){.n = n, .theta = theta, .state = seed, .hash = FNV_OFFSET};
	if (!n || !(theta > 0) || !isfinite(theta))
		return -EINVAL;
	z->page = malloc(n * sizeof(*z->page));
	if (theta >= 1.0)
		z->cdf = malloc(n * sizeof(*z->cdf));
	if (!z->page || (theta >= 1.0 && !z->cdf)) {
		zipf_oracle_free(z);
		return -ENOMEM;
	}
	shuffle(z->page, n, permutation_seed);
	for (uint32_t i = 0; i < n; i++) {
		z->zetan += pow((double)(i + UINT64_C(1)), -theta);
		if (z->cdf)
			z->cdf[i] = z->zetan;
	}
	if (z->cdf) {
		for (uint32_t i = 0; i < n; i++)
			z->cdf[i] /= z->zetan;
		return 0;
	}
	z->alpha = 1.0 / (1.0 - theta);
	z->second = 1.0 + pow(0.5, theta);
	z->eta = (1.0 - pow(2.0 / n, 1.0 - theta)) / (1.0 - (1.0 + pow(2.0, -theta)) / z->zetan);
	return 0;
}

void zipf_oracle_free(struct zipf_oracle *z)
{
	free(z->page);
	free(z->cdf);
	z->page = NULL;
	z->cdf = NULL;
}

/* The smallest rank whose cumulative share exceeds u. */
static uint32_t rank_exact(const struct zipf_oracle *z, double u)
{
	uint32_t low = 0, high = z->n - 1;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (u < z->cdf[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint32_t rank_gray(const struct zipf_oracle *z, double u)
{
	const double uz = u * z->zetan;
	uint64_t rank;

	if (uz < 1.0)
		return 0;
	if (uz < z->second)
		return z->n > 1 ? 1 : 0;
	rank = (uint64_t)(z->n * pow(z->eta * u - z->eta + 1.0, z->alpha));
	return rank < z->n ? (uint32_t)rank : z->n - 1;
}

void zipf_oracle_fill(struct zipf_oracle *z, uint32_t *pages, size_t nr)
{
	uint64_t hash = z->hash;

	for (size_t i = 0; i < nr; i++) {
		const double u = splitmix64_unit(&z->state);
		const uint32_t page = z->page[z->cdf ? rank_exact(z, u) : rank_gray(z, u)];

		pages[i] = page;
		for (unsigned int byte = 0; byte < 4; byte++)
			hash = (hash ^ (page >> (8 * byte) & 0xff)) * FNV_PRIME;
	}
	z->hash = hash;
}
