/* SPDX-License-Identifier: MIT
 *
 * The reference policies, for the table in mm/policies.c.
 */
#ifndef FOLIAGE_MM_REFERENCE_REFERENCE_H
#define FOLIAGE_MM_REFERENCE_REFERENCE_H

#include "foliage/policy.h"

extern const struct foliage_policy foliage_policy_fifo, foliage_policy_lru, foliage_policy_clock,
	foliage_policy_sieve, foliage_policy_s3fifo, foliage_policy_arc, foliage_policy_twoq,
	foliage_policy_slru, foliage_policy_lirs, foliage_policy_qdlp, foliage_policy_lfu,
	foliage_policy_wtinylfu, foliage_policy_belady, foliage_policy_static;

#endif
