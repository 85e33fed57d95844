/* SPDX-License-Identifier: MIT
 *
 * Traces: a stream of page accesses out of any of the formats that people have, and the resolution
 * of page numbers to the dense ids that a replay runs on.
 */
#ifndef FOLIAGE_TRACE_TRACE_H
#define FOLIAGE_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum trace_op {
	TRACE_READ,  /* read()-like */
	TRACE_WRITE, /* write()-like */
	TRACE_LOAD,  /* through a mapping */
	TRACE_STORE,
	TRACE_EXEC, /* through an executable mapping */
	TRACE_NR_OPS,
	/* No access, and handed out only on request (struct trace_options.work): the process has
	 * computed for so many nanoseconds since its record before. */
	TRACE_WORK = TRACE_NR_OPS,
};

/* One request: `nr` consecutive 4 KiB pages of one file, from `page` on. */
struct trace_record {
	uint64_t page;    /* of TRACE_WORK: the nanoseconds */
	uint32_t nr;      /* of TRACE_WORK: 0 */
	uint32_t file;    /* 0 when the format knows no files */
	uint32_t process; /* 0 when the format knows no processes */
	uint8_t op;       /* enum trace_op */
};

struct trace_options {
	const char *format; /* NULL: by content and name */
	bool objects;       /* every record is one page, whatever its size */
	bool work;          /* also records of TRACE_WORK, which only Foliage's format has */
	/* CSV: "block=lbn,size=size,op=op,..." (see docs/trace-format.md); NULL: by header */
	const char *columns;
};

enum {
	TRACE_PAGE_SHIFT = 12,
	TRACE_FILE_SHIFT = 40,       /* where the file goes in a page's identity */
	TRACE_REQUEST_MAX = 1 << 24, /* pages of one request; more is taken for corruption */
};

struct trace;

/* Open `path` ("-" is standard input; .zst, .gz and .xz are unpacked). The message of a failure
 * names the file. */
int trace_open(const char *path, const struct trace_options *options, struct trace **trace,
	       struct err *err);
void trace_close(struct trace *trace);
/* The same for bytes in memory, which are copied; `name` stands for the path. */
int trace_open_memory(const void *data, size_t bytes, const char *name,
		      const struct trace_options *options, struct trace **trace, struct err *err);
const char *trace_format(const struct trace *trace);  /* the format in use, a static string */
const char *trace_packing(const struct trace *trace); /* "none", "zstd", "gzip" or "xz" */
const char *const *trace_formats(void);               /* every format's name, NULL-terminated */

/* The name of a file or process, as far as it has been read; NULL: it has none. */
const char *trace_file_name(const struct trace *trace, uint32_t file);
const char *trace_process_name(const struct trace *trace, uint32_t process);

enum trace_name_kind { TRACE_NAME_FILE, TRACE_NAME_PROCESS };

/* The names read so far, one a call, in the order in which the trace gave them; *cursor is 0 at
 * first. False: no more now, later reads may bring some. */
bool trace_next_name(const struct trace *trace, enum trace_name_kind kind, size_t *cursor,
		     uint32_t *number, const char **name);

/* Up to `max` records; 0 at the end; a negative errno (-EILSEQ: malformed, -EIO, ...) with file,
 * place (record or line) and reason in *err. */
ssize_t trace_read(struct trace *trace, struct trace_record *records, size_t max, struct err *err);

/* How many of the records are within *left page accesses; the last one is shortened to fit. Counts
 * *left down. */
size_t trace_cut(struct trace_record *records, size_t n, uint64_t *left);

/* Page number and file in one number, by which pages are told apart. */
static inline uint64_t trace_page_key(uint32_t file, uint64_t page)
{
	return (uint64_t)file << TRACE_FILE_SHIFT ^ page;
}

/* ---- resolution ---- */

struct resolved {
	uint64_t n;      /* page accesses */
	uint32_t nr_ids; /* unique pages, numbered by first appearance */
	uint32_t *ids;   /* [n] */
	uint8_t *ops;    /* [n] FOLIAGE_ACCESS_*; NULL when every access is a plain read */
	uint64_t *pages; /* [nr_ids] page number of each id (file << 40 ^ page for several files) */
	/* Filled by resolved_order(), resolved_next(), resolved_counts() on demand: */
	uint32_t *order;  /* [nr_ids] rank of the page number */
	uint64_t *next;   /* [n] as foliage_policy_env.next */
	uint32_t *counts; /* [nr_ids] */
};

/* Read whole traces, one after another, at most `limit` page accesses (0: all). Page numbers of
 * different paths are the same pages. -ENODATA when there is no access at all. A pipe is read once
 * and needs no temporary file here, since everything is kept resolved. `progress` may be NULL; it
 * is called with accesses so far and returns false to stop early with -EINTR (what was read stays
 * valid). */
int trace_resolve(const char *const *paths, size_t nr_paths, const struct trace_options *options,
		  uint64_t limit, bool (*progress)(void *ctx, uint64_t accesses), void *ctx,
		  struct resolved *out, struct err *err);
int resolved_order(struct resolved *r);
int resolved_next(struct resolved *r);
int resolved_counts(struct resolved *r);
void resolved_free(struct resolved *r);

#endif
