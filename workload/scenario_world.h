/* SPDX-License-Identifier: MIT
 *
 * The world in which the engine executes a scenario: a page cache with readahead, private memory
 * with swap, page tables, groups. No time and no CPUs but one: what a kernel does at some moment
 * of its own (write-back, statistics) happens when the scenario says so.
 */
#ifndef FOLIAGE_WORKLOAD_SCENARIO_WORLD_H
#define FOLIAGE_WORKLOAD_SCENARIO_WORLD_H

#include "foliage/reclaim.h"
#include "workload/scenario.h"

/* One open file's readahead (LINUX-6.12.md section 3). */
struct scenario_readahead {
	uint64_t start, size, async;
	uint64_t read_end; /* byte behind the last read; UINT64_MAX: none */
	bool random;
};

/* A process's mapping of a file. */
struct scenario_region {
	uint64_t first_vpage; /* a multiple of 512 */
	uint32_t nr_tables, vma_flags, misses;
	struct foliage_pte_table *tables;
	bool *young, *used; /* of each table */
};

/* A limit of the scenario. What a group holds besides the scenario's pages counts against it:
 * `fixed`, an input, and the kernel's bookkeeping for each file, which the world counts itself. */
struct scenario_limit {
	uint32_t group;
	enum foliage_limit what;
	uint64_t pages;
};

/* Index nodes of one file: one for each 64 slots of the level below, and never given back while
 * shadows are left. */
struct scenario_index {
	uint64_t *nodes[4]; /* bits: the nodes of each level */
	uint32_t levels;
};

struct scenario_world {
	const struct scenario *s;
	struct foliage_engine *engine;
	struct foliage_cpu cpu;
	uint32_t nr_folios;
	uint32_t base[SCENARIO_FILES_MAX]
		     [SCENARIO_PROCESSES_MAX]; /* first folio; private memory: of each process */
	uint32_t groups[SCENARIO_GROUPS_MAX];  /* memcg slots */
	uint32_t mms[SCENARIO_PROCESSES_MAX];
	struct scenario_region regions[SCENARIO_PROCESSES_MAX][SCENARIO_FILES_MAX];
	struct scenario_readahead readahead[SCENARIO_PROCESSES_MAX][SCENARIO_FILES_MAX];
	uint64_t *marks;                /* PG_readahead of each folio */
	uint64_t *dirty;                /* of each folio; what an fsync writes */
	uint64_t *swapped;              /* of each folio */
	uint16_t *file_of, *process_of; /* of each folio */
	uint8_t *owner_of;              /* the group that paid for it */
	uint64_t *buffers;              /* of each folio: was written since it came in */
	struct scenario_index index[SCENARIO_FILES_MAX];
	int64_t slab_bytes[SCENARIO_GROUPS_MAX]; /* of each group alone */
	int64_t fixed[SCENARIO_GROUPS_MAX];
	struct scenario_limit limits[SCENARIO_GROUPS_MAX * 3];
	uint32_t nr_limits;
	uint64_t swap_pages, swap_used;
	uint64_t *tlb; /* direct-mapped: the page whose translation is cached, 0: none */
	/* Knobs, as the scenario sets them. */
	uint32_t ra_pages, fault_around;
};

int scenario_world_open(struct scenario_world *w, const struct scenario *s, const char *policy,
			struct err *err);
void scenario_world_close(struct scenario_world *w);

/* The limits less everything that is not the scenario's pages, told to the engine. */
void scenario_world_limits(struct scenario_world *w);

/* Pages of index nodes, buffer heads and page tables that a group and those below it pay for. */
int64_t scenario_world_slab(const struct scenario_world *w, uint32_t group);

/* One operation of any number of pages; missed[] gets 1 for every page that was not in memory. */
int scenario_world_access(struct scenario_world *w, const struct scenario_op *op, uint8_t *missed);
void scenario_world_fsync(struct scenario_world *w, uint32_t file);
int scenario_world_fadvise(struct scenario_world *w, uint32_t process, uint32_t file,
			   const char *advice);
int scenario_world_madvise(struct scenario_world *w, uint32_t process, uint32_t file,
			   uint64_t first, uint64_t nr, const char *advice);
uint64_t scenario_world_resident(const struct scenario_world *w, uint32_t file);

#endif
