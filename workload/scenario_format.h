/* SPDX-License-Identifier: MIT
 *
 * A compiled scenario: what the guest of a booted kernel and the engine both execute, step by
 * step. One file, little-endian:
 *
 *     head | files | groups | processes | texts | operations
 *
 * An access is one operation of 16 bytes; everything else is a line of text (docs/fidelity.md
 * lists them) that an operation names by its offset among the texts. Page accesses are numbered
 * from 0 on in order; a result is one byte for each: 1 when the page was not in memory.
 *
 * The guest is a program of its own: this header includes nothing of Foliage.
 */
#ifndef FOLIAGE_WORKLOAD_SCENARIO_FORMAT_H
#define FOLIAGE_WORKLOAD_SCENARIO_FORMAT_H

#include <stdint.h>

#define SCENARIO_MAGIC UINT64_C(0x31304e4353464f4c)

enum {
	SCENARIO_NAME = 32,
	SCENARIO_FILES_MAX = 32,
	SCENARIO_GROUPS_MAX = 16,
	SCENARIO_PROCESSES_MAX = 16,
};

enum scenario_opcode {
	SCENARIO_READ,
	SCENARIO_WRITE,
	SCENARIO_LOAD,
	SCENARIO_STORE,
	SCENARIO_NR_ACCESSES,
	SCENARIO_CONTROL = 16, /* a text, executed outside every group */
	SCENARIO_PROCESS = 17, /* a text, executed by the process */
};

enum scenario_kind {
	SCENARIO_FILE,
	SCENARIO_FILE_EXEC, /* mapped executable */
	SCENARIO_ANON,      /* private memory of the process that touches it */
};

struct scenario_head {
	uint64_t magic;
	uint32_t nr_files, nr_groups, nr_processes, text_bytes;
	uint64_t nr_ops, nr_accesses;
};

struct scenario_file {
	char name[SCENARIO_NAME];
	uint64_t pages;
	uint32_t kind, spare;
};

struct scenario_group {
	char path[SCENARIO_NAME]; /* below the root: "t", "t/a" */
};

struct scenario_process {
	char name[SCENARIO_NAME];
	uint32_t group, spare;
};

struct scenario_op {
	uint8_t code, process;
	uint16_t file;
	uint32_t nr;   /* pages */
	uint64_t page; /* first page, or where the text begins */
};

#endif
