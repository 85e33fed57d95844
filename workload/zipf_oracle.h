/* SPDX-License-Identifier: MIT
 *
 * The access sequence on which a booted kernel's counters were taken: zipf-distributed page numbers
 * out of splitmix64, defined exactly, with a running hash by which two implementations prove that
 * they agree.
 */
#ifndef FOLIAGE_WORKLOAD_ZIPF_ORACLE_H
#define FOLIAGE_WORKLOAD_ZIPF_ORACLE_H

#include <stddef.h>
#include <stdint.h>

struct zipf_oracle {
	uint32_t n;
	double theta, zetan, alpha, eta, second;
	double *cdf;    /* theta >= 1: the exact distribution; NULL: Gray's approximation */
	uint32_t *page; /* of each rank */
	uint64_t state;
	uint64_t hash; /* FNV-1a over all page numbers so far, as little-endian u32 */
};

/* -EINVAL: n of 0, or theta not positive; -ENOMEM. */
int zipf_oracle_init(struct zipf_oracle *z, uint32_t n, double theta, uint64_t seed,
		     uint64_t permutation_seed);
void zipf_oracle_free(struct zipf_oracle *z);
void zipf_oracle_fill(struct zipf_oracle *z, uint32_t *pages, size_t nr);

#endif
