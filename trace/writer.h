/* SPDX-License-Identifier: MIT
 *
 * What an output format is made of: one `struct writer_ops` a format, in the table of write.c.
 */
#ifndef FOLIAGE_TRACE_WRITER_H
#define FOLIAGE_TRACE_WRITER_H

#include "trace/names.h"
#include "trace/output.h"
#include "trace/write.h"

struct writer_ops {
	const char *name, *suffixes; /* suffixes as in struct reader */
	int (*open)(struct trace_writer *w, struct err *err);
	int (*write)(struct trace_writer *w, const struct trace_record *records, size_t n,
		     struct err *err);
	int (*name_it)(struct trace_writer *w, enum trace_name_kind kind, uint32_t number,
		       const char *name, struct err *err);
	int (*flush)(struct trace_writer *w, struct err *err);
	int (*finish)(struct trace_writer *w, struct err *err); /* before the output is committed */
	void (*close)(struct trace_writer *w);                  /* frees w->state */
};

struct trace_writer {
	const struct writer_ops *ops;
	struct output *out;
	char *path;
	uint64_t place; /* records written */
	void *state;
	struct names files, processes; /* for formats that write names in the records */
};

extern const struct writer_ops writer_foliage, writer_u32, writer_u64, writer_text, writer_csv,
	writer_oracle;

#endif
