/* SPDX-License-Identifier: MIT
 *
 * A recording: what a source of events (BPF, a preloaded library, valgrind) hands in, filtered,
 * numbered and written as a trace.
 *
 * A source names files and processes by numbers of its own, "ids", which may be any 32-bit numbers
 * as long as they stay small; the trace's numbers are given in order of first use, so that a
 * trace has no holes for what the filters keep out.
 *
 * None of these functions is thread-safe. A failure is sticky: every later call returns it.
 */
#ifndef FOLIAGE_ADAPTERS_RECORD_RECORDING_H
#define FOLIAGE_ADAPTERS_RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/trace.h"

struct recording_options {
	const char *path;      /* of the trace, "-" is standard output; written in place */
	const char *files;     /* fnmatch patterns of file names, comma-separated; NULL: all */
	const char *processes; /* the same for process names (without the number behind) */
	bool anonymize;        /* names become keyed hashes; the key is drawn and forgotten */
};

struct recording_counts {
	uint64_t records, pages, files, processes;
	uint64_t pages_by_op[TRACE_NR_OPS];
};

struct recording;

/* -EINVAL, -ENOMEM or what opening the file gives; nothing is left then. */
int recording_create(const struct recording_options *options, struct recording **recording,
		     struct err *err);

/* Give id `file` a name. Files of equal `key` are one file, whatever their ids and names; NULL: the
 * id alone tells. To be called before the id's first access; a later call renames. */
int recording_file(struct recording *r, uint32_t file, const char *key, const char *name);

/* The same for a process: `name` is what ps shows, `pid` goes into the trace's name for it. */
int recording_process(struct recording *r, uint32_t process, uint32_t pid, const char *name);

/* Pages first..last (both included) of a file. Ids without a name are taken, without a name, unless
 * a filter asks for one. */
int recording_access(struct recording *r, enum trace_op op, uint32_t file, uint32_t process,
		     uint64_t first, uint64_t last);

/* The process has computed for `ns` nanoseconds since its last access or work. Formats other than
 * Foliage's own have no place for it: it is left out then. */
int recording_work(struct recording *r, uint32_t process, uint64_t ns);

/* What is recorded so far is readable as "foliage-partial", whatever happens next. */
int recording_flush(struct recording *r, struct err *err);

void recording_counts(const struct recording *r, struct recording_counts *counts);

/* Finish the trace; frees the recording in any case. The message is that of the first failure. */
int recording_finish(struct recording *r, struct err *err);
/* Give up: what was created is removed. NULL is allowed. */
void recording_discard(struct recording *r);

#endif
