/* SPDX-License-Identifier: MIT
 *
 * Resolution step by step, for callers that look at the records themselves.
 */
#ifndef FOLIAGE_TRACE_RESOLVE_H
#define FOLIAGE_TRACE_RESOLVE_H

#include "trace/trace.h"

struct resolver;

int resolver_open(uint64_t limit, struct resolver **resolver); /* limit: page accesses, 0: all */
/* 0; 1 when the limit is reached; -ENOMEM; -E2BIG: more than 3 * 2^30 unique pages. */
int resolver_add(struct resolver *resolver, const struct trace_record *records, size_t n);
uint64_t resolver_accesses(const struct resolver *resolver);
/* Hand over what there is and free the resolver. */
void resolver_finish(struct resolver *resolver, struct resolved *out);

#endif
