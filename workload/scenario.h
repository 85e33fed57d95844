/* SPDX-License-Identifier: MIT
 *
 * Scenarios: scripted accesses that a booted kernel and the engine both execute, so that their
 * counters can be put side by side. A scenario is a short text; compiling it writes every access
 * out, so that neither side draws random numbers of its own. docs/fidelity.md describes the text.
 */
#ifndef FOLIAGE_WORKLOAD_SCENARIO_H
#define FOLIAGE_WORKLOAD_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "workload/scenario_format.h"

struct scenario {
	struct scenario_head head;
	struct scenario_file files[SCENARIO_FILES_MAX];
	struct scenario_group groups[SCENARIO_GROUPS_MAX];
	struct scenario_process processes[SCENARIO_PROCESSES_MAX];
	char *texts;
	struct scenario_op *ops;
	/* What the text says of the machine. */
	char lru[8];          /* "y", "n" */
	uint64_t zram;        /* bytes of swap, 0: none */
	uint32_t tlb;         /* entries of the processor's translation cache, 0: it has none */
	char policy[64];      /* engine policy; empty: by lru */
	double agree, within; /* what is expected, in percent; 0: nothing */
	int room_within;      /* pages by which the room may be off: the best of them is judged */
	size_t texts_room, ops_room;
};

/* Compile the text at `path`. -EILSEQ with file, line and reason; -errno of the file; -ENOMEM. */
int scenario_compile(const char *path, struct scenario *s, struct err *err);
int scenario_write(const struct scenario *s, const char *path, struct err *err);
void scenario_free(struct scenario *s);

#endif
