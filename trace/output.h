/* SPDX-License-Identifier: MIT
 *
 * Output: bytes of a new file, zstd-packed when its name ends in .zst. Unless asked for in place,
 * they go to a temporary file beside it, so that the name appears only when everything is there.
 */
#ifndef FOLIAGE_TRACE_OUTPUT_H
#define FOLIAGE_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct output;

/* "-": standard output, never packed. */
int output_open(const char *path, bool in_place, struct output **out, struct err *err);
int output_put(struct output *out, const void *data, size_t bytes, struct err *err);
/* Everything so far reaches the file, in a form that can be unpacked that far. */
int output_flush(struct output *out, struct err *err);
/* Finish the file and give it its name. Frees `out` in any case; on failure nothing is left. */
int output_commit(struct output *out, struct err *err);
/* Give up: nothing is left, but what was written in place. NULL is allowed. */
void output_discard(struct output *out);

#endif
