/* SPDX-License-Identifier: MIT
 *
 * Writing traces: Foliage's own format, which loses nothing, and the plain ones, one page access a
 * record.
 */
#ifndef FOLIAGE_TRACE_WRITE_H
#define FOLIAGE_TRACE_WRITE_H

#include "trace/trace.h"

struct trace_writer;

enum {
	/* Write under the final name from the beginning, for recorders: what is there when the
	 * recorder dies stays readable up to the last flush ("foliage-partial"). Otherwise the name
	 * appears at trace_commit. */
	TRACE_WRITE_IN_PLACE = 1 << 0,
};

/* `format`: foliage, u32, u64, text, csv, oracle; NULL: by the name's ending, foliage for "-". A
 * name that ends in .zst is packed. -EINVAL: unknown format, or no way to tell. */
int trace_create(const char *path, const char *format, unsigned int flags,
		 struct trace_writer **writer, struct err *err);
/* -ERANGE: the format cannot hold a record (page over 32 bits). */
int trace_write(struct trace_writer *writer, const struct trace_record *records, size_t n,
		struct err *err);
/* Name a file or process number; best before its first record. Formats without names ignore it. */
int trace_write_name(struct trace_writer *writer, enum trace_name_kind kind, uint32_t number,
		     const char *name, struct err *err);
/* Everything so far becomes readable, even if nothing follows. */
int trace_flush(struct trace_writer *writer, struct err *err);
/* Finish; frees the writer in any case. On failure no file is left (unless in place). */
int trace_commit(struct trace_writer *writer, struct err *err);
void trace_discard(struct trace_writer *writer);
const char *trace_writer_format(const struct trace_writer *writer);

#endif
