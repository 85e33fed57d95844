/* SPDX-License-Identifier: MIT
 *
 * Several traces as one: each has numbers of its own for files and processes. Files of equal path are
 * one file; what has no path (none at all, or a name that is no path, as "memory") stays apart, and so
 * does every process.
 */
#ifndef FOLIAGE_TRACE_MERGE_H
#define FOLIAGE_TRACE_MERGE_H

#include "trace/write.h"

struct merge;

/* NULL: no memory. */
struct merge *merge_create(struct trace_writer *writer);
void merge_free(struct merge *merge);
/* Records from here on are of another trace. */
void merge_next(struct merge *merge, const struct trace *trace);
/* Give the records the numbers of the whole, in place, and name these in the writer's trace. */
int merge_records(struct merge *merge, struct trace_record *records, size_t n, struct err *err);

#endif
