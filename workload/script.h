/* SPDX-License-Identifier: MIT
 *
 * A trace as the simulated machine runs it: each traced process with its accesses in order, files
 * with sizes, and which processes had ended before another began.
 *
 * A file of the name "memory" is private memory, one for each process that touches it. Page numbers
 * keep their place within 2 MiB, the reach of a page-table page; 2 MiB in which nothing is touched
 * are left out, so that addresses and sparse files become small numbers.
 */
#ifndef FOLIAGE_WORKLOAD_SCRIPT_H
#define FOLIAGE_WORKLOAD_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

#define NO_WRITER UINT32_MAX

struct script_step {
	uint32_t page; /* of TRACE_WORK: nanoseconds */
	uint32_t nr;
	uint32_t slot; /* into the process's slots */
	uint8_t op;    /* enum trace_op, or TRACE_WORK */
};

/* A file, or memory, as one process uses it. */
struct script_slot {
	uint32_t file;  /* into files; of private memory: no meaning */
	uint32_t pages; /* of private memory, 0: a file */
};

struct script_file {
	char *name;          /* NULL: none */
	uint32_t pages;      /* the highest that is touched, and one */
	uint32_t from_start; /* pages that it has before the run: touched first by no write */
	uint32_t writer;     /* the process that made it; NO_WRITER: it was there */
};

struct script_process {
	char *name; /* without the number behind; "" when the trace has none */
	struct script_step *steps;
	uint64_t nr_steps;
	struct script_slot *slots;
	uint32_t nr_slots;
	/* It may begin when so many of the processes, in the order of `ends`, have ended. */
	uint32_t after;
	uint32_t rank; /* its own place there */
};

struct script {
	struct script_process *processes; /* in the order of their first accesses */
	uint32_t *ends;                   /* processes in the order of their last ones */
	uint32_t nr_processes;
	struct script_file *files;
	uint32_t nr_files;
	uint64_t touched; /* distinct pages, private ones too */
	uint64_t accesses;
	bool timed; /* there are records of work */
};

enum {
	SCRIPT_PAGES_MAX = 1 << 26,   /* of all files, and of one process's memory */
	SCRIPT_RECORDS_MAX = 1 << 26, /* requests of a trace */
};

/* Read the whole trace, which was opened with `work`. -ENODATA: nothing in it; -E2BIG: more than the
 * limits above, with what to do about it. */
int script_load(struct script *script, struct trace *trace, const char *name, struct err *err);
void script_free(struct script *script);

#endif
