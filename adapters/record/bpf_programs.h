/* SPDX-License-Identifier: MIT
 *
 * The programs that run at the kernel's tracepoints, and the events that they put into the ring.
 */
#ifndef FOLIAGE_ADAPTERS_RECORD_BPF_PROGRAMS_H
#define FOLIAGE_ADAPTERS_RECORD_BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "adapters/record/bpf_asm.h"
#include "adapters/record/source.h"

/* Bits 0-7 of an event's first word; bits 8-15 of an access are its operation. */
enum bpf_event_kind { BPF_EVENT_ACCESS = 1, BPF_EVENT_PROCESS, BPF_EVENT_FILE, BPF_EVENT_NAME };

enum { BPF_NAME_BYTES = 256, BPF_COMM_BYTES = 16 };

/* Pages first..last. Those of one read call come in several events when the call is long: equal
 * `call`, equal last page. */
struct bpf_access {
	uint32_t kind, pid, tid, file;
	uint64_t first, last, call;
};

/* Before a process's first access, and the first one after each exec. */
struct bpf_process {
	uint32_t kind, pid;
	uint64_t unused;
	char comm[BPF_COMM_BYTES];
};

/* Before a file's first access, followed by its path from its own name to the root's child. */
struct bpf_file {
	uint32_t kind, pid, file, device;
	uint64_t inode;
	uint32_t generation, unused;
};

struct bpf_name {
	uint32_t kind, pid, file, unused;
	char name[BPF_NAME_BYTES];
};

struct bpf_key {
	uint64_t inode;
	uint32_t device, generation;
};

struct bpf_totals {
	uint64_t lost, files;
};

/* Where the fields of the kernel's structures are, from its BTF. */
struct bpf_offsets {
	int mapping_host;
	int inode_ino, inode_generation, inode_sb, inode_size, inode_mode, inode_dentry;
	int sb_dev, sb_magic;
	int dentry_alias, dentry_parent, dentry_name;
	int task_pid, task_tgid, task_leader, task_comm, task_calls, task_files;
	int files_table, table_max, table_files;
	int file_flags, file_mapping, file_position;
	int folio_index;
	/* -1: an architecture whose calls are not known */
	int regs_call, regs_arg0, regs_arg2, regs_arg3;
};

struct bpf_world {
	struct bpf_offsets at;
	int ring, processes, files, totals, cgroups; /* maps; cgroups -1: by process */
	uint32_t self;                               /* the recorder, never observed */
	uint64_t min_size;
};

enum record_program {
	PROGRAM_READ,    /* mm_filemap_get_pages(mapping, first, last) */
	PROGRAM_FAULT,   /* mm_filemap_fault(mapping, page) */
	PROGRAM_WRITE,   /* sys_exit(registers, result) */
	PROGRAM_DIRTIED, /* writeback_dirty_folio(folio, mapping) */
	PROGRAM_FORK,    /* sched_process_fork(parent, child) */
	PROGRAM_EXEC,    /* sched_process_exec(task, ...) */
	PROGRAM_FREE,    /* sched_process_free(task) */
	NR_PROGRAMS,
};

/* Assemble a program; 0 or a negative errno. */
int record_program_build(enum record_program program, const struct bpf_world *world,
			 struct bpf_asm *a);

#endif
