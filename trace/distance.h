/* SPDX-License-Identifier: MIT
 *
 * Reuse distances: for an access, how many other pages came since its page came last. An LRU room
 * of N pages hits exactly the accesses at distances below N.
 */
#ifndef FOLIAGE_TRACE_DISTANCE_H
#define FOLIAGE_TRACE_DISTANCE_H

#include "trace/trace.h"

/* count[d] += accesses at distance d, for d < nr_ids; first accesses have none. `progress` as of
 * trace_resolve. -ENOMEM, -EINTR, -E2BIG: more than 2^30 unique pages. */
int trace_distances(const struct resolved *r, uint64_t *count,
		    bool (*progress)(void *ctx, uint64_t accesses), void *ctx);

#endif
