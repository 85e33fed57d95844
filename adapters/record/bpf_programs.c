/* SPDX-License-Identifier: MIT
 *
 * Every program that records an access has the same shape: is the process one that we observe (and
 * has it been announced); which inode, which pages; has the file been announced; one event.
 *
 * Announcing happens in the kernel at first sight, because who asks later finds short-lived
 * processes gone and files closed. A file's path is the names from its dentry up to the root of its
 * file system, one event each; only then is it entered in the table of files, so that an access
 * that finds it there comes behind its name in the ring.
 *
 * Kernel structures are read in two ways: by plain loads through the typed pointers of a BTF
 * tracepoint, which the verifier follows, and by bpf_probe_read_kernel through numbers, where the
 * types are lost (what a file descriptor leads to).
 *
 * Registers: r6 context, r7 process, r8 inode, r9 the file's number; the others are scratch.
 */
#include "adapters/record/bpf_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/stat.h>

/* The stack, as offsets from the frame pointer. */
enum {
	STACK_TID = -16, /* u32 thread, u32 process */
	STACK_PID = -12,
	STACK_FIRST = -24,
	STACK_LAST = -32,
	STACK_KEY = -48,    /* struct bpf_key */
	STACK_NUMBER = -56, /* of a file; of a write: its descriptor */
	STACK_DENTRY = -64, /* also the file of a write */
	STACK_PARENT = -72,
	STACK_NAME = -80,
	STACK_SCRATCH = -88,
	STACK_MODE = -96, /* of a write: PLACE_... */
};

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

enum { DEPTH_MAX = 48 };

struct program {
	struct bpf_asm *a;
	const struct bpf_world *world;
	int out, lost; /* labels */
	bool typed;    /* r8 is a pointer that loads may follow */
};

static void begin(struct program *p)
{
	p->out = asm_label(p->a);
	p->lost = asm_label(p->a);
	asm_move(p->a, R6, R1);
}

/* Stack address `offset` into a register. */
static void stack_address(struct program *p, int to, int offset)
{
	asm_move(p->a, to, FP);
	asm_compute(p->a, BPF_ADD, to, offset);
}

static void lookup(struct program *p, int map, int key)
{
	asm_set_map(p->a, R1, map);
	stack_address(p, R2, key);
	asm_call(p->a, BPF_FUNC_map_lookup_elem);
}

static void update(struct program *p, int map, int key, int value, int flags)
{
	asm_set_map(p->a, R1, map);
	stack_address(p, R2, key);
	stack_address(p, R3, value);
	asm_set(p->a, R4, flags);
	asm_call(p->a, BPF_FUNC_map_update_elem);
}

/* The totals' address in r0. */
static void totals(struct program *p, int none)
{
	asm_store_value(p->a, ASM_U32, FP, STACK_SCRATCH, 0);
	lookup(p, p->world->totals, STACK_SCRATCH);
	asm_jump_if(p->a, R0, ASM_EQ, 0, none);
}

static void end(struct program *p)
{
	/* The verifier wants no code that nothing leads to. */
	if (asm_leads_to(p->a, p->lost)) {
		asm_jump(p->a, p->out);
		asm_place(p->a, p->lost);
		totals(p, p->out);
		asm_set(p->a, R1, 1);
		asm_add_atomic(p->a, R0, offsetof(struct bpf_totals, lost), R1, false);
	}
	asm_place(p->a, p->out);
	asm_set(p->a, R0, 0);
	asm_return(p->a);
}

/* An event of `bytes`, its address in r0. */
static void reserve(struct program *p, int bytes)
{
	asm_set_map(p->a, R1, p->world->ring);
	asm_set(p->a, R2, bytes);
	asm_set(p->a, R3, 0);
	asm_call(p->a, BPF_FUNC_ringbuf_reserve);
	asm_jump_if(p->a, R0, ASM_EQ, 0, p->lost);
}

/* The observer looks by itself, often enough: waking it costs more than an event. */
static void submit(struct program *p, int event)
{
	asm_move(p->a, R1, event);
	asm_set(p->a, R2, BPF_RB_NO_WAKEUP);
	asm_call(p->a, BPF_FUNC_ringbuf_submit);
}

/* stack[to] = `bytes` at address r_base + offset, a number. */
static void probe(struct program *p, int to, int bytes, int base, int offset)
{
	asm_move(p->a, R3, base);
	asm_compute(p->a, BPF_ADD, R3, offset);
	stack_address(p, R1, to);
	asm_set(p->a, R2, bytes);
	asm_call(p->a, BPF_FUNC_probe_read_kernel);
}

static void field(struct program *p, enum asm_size size, int to, int base, int offset)
{
	if (p->typed) {
		asm_load(p->a, size, to, base, offset);
		return;
	}
	asm_store_value(p->a, ASM_U64, FP, STACK_SCRATCH, 0);
	probe(p, STACK_SCRATCH, size == ASM_U64 ? 8 : size == ASM_U32 ? 4 : 2, base, offset);
	asm_load(p->a, size, to, FP, STACK_SCRATCH);
}

/* ---- processes ---- */

static void announce_process(struct program *p)
{
	asm_store_value(p->a, ASM_U32, R0, 0, 1);
	reserve(p, sizeof(struct bpf_process));
	asm_move(p->a, R9, R0);
	asm_store_value(p->a, ASM_U32, R9, offsetof(struct bpf_process, kind), BPF_EVENT_PROCESS);
	asm_store(p->a, ASM_U32, R9, offsetof(struct bpf_process, pid), R7);
	/* The leader's: threads may have names of their own. */
	asm_call(p->a, BPF_FUNC_get_current_task_btf);
	asm_load(p->a, ASM_U64, R3, R0, p->world->at.task_leader);
	asm_compute(p->a, BPF_ADD, R3, p->world->at.task_comm);
	asm_move(p->a, R1, R9);
	asm_compute(p->a, BPF_ADD, R1, offsetof(struct bpf_process, comm));
	asm_set(p->a, R2, BPF_COMM_BYTES);
	asm_call(p->a, BPF_FUNC_probe_read_kernel);
	submit(p, R9);
}

/* Go on only in a process that is observed; r7 and the stack know its number then. */
static void filter_process(struct program *p)
{
	struct bpf_asm *a = p->a;
	int there = asm_label(a), known = asm_label(a);

	asm_call(a, BPF_FUNC_get_current_pid_tgid);
	asm_store(a, ASM_U64, FP, STACK_TID, R0);
	asm_move(a, R7, R0);
	asm_compute(a, BPF_RSH, R7, 32);
	asm_jump_if(a, R7, ASM_EQ, (int32_t)p->world->self, p->out);
	if (p->world->cgroups >= 0) {
		asm_set_map(a, R1, p->world->cgroups);
		asm_set(a, R2, 0);
		asm_call(a, BPF_FUNC_current_task_under_cgroup);
		asm_jump_if(a, R0, ASM_NE, 1, p->out);
	}
	lookup(p, p->world->processes, STACK_PID);
	if (p->world->cgroups >= 0) {
		asm_jump_if(a, R0, ASM_NE, 0, there);
		asm_store_value(a, ASM_U32, FP, STACK_SCRATCH, 0);
		update(p, p->world->processes, STACK_PID, STACK_SCRATCH, BPF_ANY);
		lookup(p, p->world->processes, STACK_PID);
		asm_jump_if(a, R0, ASM_EQ, 0, p->lost);
		asm_place(a, there);
	} else {
		asm_jump_if(a, R0, ASM_EQ, 0, p->out);
		asm_place(a, there);
	}
	asm_load(a, ASM_U32, R1, R0, 0);
	asm_jump_if(a, R1, ASM_NE, 0, known);
	announce_process(p);
	asm_place(a, known);
}

/* ---- files ---- */

/* One name a turn, from the inode's dentry upwards. Uses r8 and r9. */
static void announce_path(struct program *p)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;
	int turn = asm_label(a), done = asm_label(a);

	probe(p, STACK_DENTRY, 8, R8, at->inode_dentry);
	asm_load(a, ASM_U64, R1, FP, STACK_DENTRY);
	asm_jump_if(a, R1, ASM_EQ, 0, done);
	asm_compute(a, BPF_SUB, R1, at->dentry_alias);
	asm_store(a, ASM_U64, FP, STACK_DENTRY, R1);
	asm_set(a, R9, 0);
	asm_place(a, turn);
	asm_load(a, ASM_U64, R8, FP, STACK_DENTRY);
	probe(p, STACK_PARENT, 8, R8, at->dentry_parent);
	asm_load(a, ASM_U64, R1, FP, STACK_PARENT);
	asm_jump_if_by(a, R1, ASM_EQ, R8, done);
	asm_jump_if(a, R1, ASM_EQ, 0, done);
	probe(p, STACK_NAME, 8, R8, at->dentry_name);
	reserve(p, sizeof(struct bpf_name));
	asm_move(a, R8, R0);
	asm_store_value(a, ASM_U32, R8, offsetof(struct bpf_name, kind), BPF_EVENT_NAME);
	asm_load(a, ASM_U32, R1, FP, STACK_NUMBER);
	asm_store(a, ASM_U32, R8, offsetof(struct bpf_name, file), R1);
	asm_move(a, R1, R8);
	asm_compute(a, BPF_ADD, R1, offsetof(struct bpf_name, name));
	asm_set(a, R2, BPF_NAME_BYTES);
	asm_load(a, ASM_U64, R3, FP, STACK_NAME);
	asm_call(a, BPF_FUNC_probe_read_kernel_str);
	submit(p, R8);
	asm_load(a, ASM_U64, R1, FP, STACK_PARENT);
	asm_store(a, ASM_U64, FP, STACK_DENTRY, R1);
	asm_compute(a, BPF_ADD, R9, 1);
	asm_jump_if(a, R9, ASM_LT, DEPTH_MAX, turn);
	asm_place(a, done);
}

static void announce_file(struct program *p)
{
	struct bpf_asm *a = p->a;

	totals(p, p->lost);
	asm_set(a, R1, 1);
	asm_add_atomic(a, R0, offsetof(struct bpf_totals, files), R1, true);
	asm_compute(a, BPF_ADD, R1, 1);
	asm_store(a, ASM_U64, FP, STACK_NUMBER, R1);
	reserve(p, sizeof(struct bpf_file));
	asm_store_value(a, ASM_U32, R0, offsetof(struct bpf_file, kind), BPF_EVENT_FILE);
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_file, pid), R7);
	asm_load(a, ASM_U32, R1, FP, STACK_NUMBER);
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_file, file), R1);
	asm_load(a, ASM_U32, R1, FP, STACK_KEY + (int)offsetof(struct bpf_key, device));
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_file, device), R1);
	asm_load(a, ASM_U64, R1, FP, STACK_KEY + (int)offsetof(struct bpf_key, inode));
	asm_store(a, ASM_U64, R0, offsetof(struct bpf_file, inode), R1);
	asm_load(a, ASM_U32, R1, FP, STACK_KEY + (int)offsetof(struct bpf_key, generation));
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_file, generation), R1);
	submit(p, R0);
	announce_path(p);
	/* Another processor may have been quicker: then its number is the file's. */
	update(p, p->world->files, STACK_KEY, STACK_NUMBER, BPF_NOEXIST);
}

/* Cut the pages at the end of the file; what is wholly behind it touches nothing. */
static void clamp_to_size(struct program *p)
{
	struct bpf_asm *a = p->a;
	int within = asm_label(a);

	field(p, ASM_U64, R9, R8, p->world->at.inode_size);
	asm_jump_if(a, R9, ASM_SLE, 0, p->out);
	if (p->world->min_size) {
		asm_set64(a, R1, p->world->min_size);
		asm_jump_if_by(a, R9, ASM_LT, R1, p->out);
	}
	asm_compute(a, BPF_SUB, R9, 1);
	asm_compute(a, BPF_RSH, R9, TRACE_PAGE_SHIFT);
	asm_load(a, ASM_U64, R1, FP, STACK_LAST);
	asm_jump_if_by(a, R1, ASM_LE, R9, within);
	asm_store(a, ASM_U64, FP, STACK_LAST, R9);
	asm_place(a, within);
	asm_load(a, ASM_U64, R1, FP, STACK_FIRST);
	asm_load(a, ASM_U64, R2, FP, STACK_LAST);
	asm_jump_if_by(a, R1, ASM_GT, R2, p->out);
}

/* Pages STACK_FIRST..STACK_LAST of the inode in r8. */
static void record(struct program *p, enum trace_op op)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;
	int there = asm_label(a);

	clamp_to_size(p);
	field(p, ASM_U64, R1, R8, at->inode_ino);
	asm_store(a, ASM_U64, FP, STACK_KEY + (int)offsetof(struct bpf_key, inode), R1);
	field(p, ASM_U32, R1, R8, at->inode_generation);
	asm_store(a, ASM_U32, FP, STACK_KEY + (int)offsetof(struct bpf_key, generation), R1);
	field(p, ASM_U64, R1, R8, at->inode_sb);
	field(p, ASM_U32, R1, R1, at->sb_dev);
	asm_store(a, ASM_U32, FP, STACK_KEY + (int)offsetof(struct bpf_key, device), R1);
	lookup(p, p->world->files, STACK_KEY);
	asm_jump_if(a, R0, ASM_NE, 0, there);
	announce_file(p);
	lookup(p, p->world->files, STACK_KEY);
	asm_jump_if(a, R0, ASM_EQ, 0, p->lost);
	asm_place(a, there);
	asm_load(a, ASM_U32, R9, R0, 0);
	asm_store_value(a, ASM_U64, FP, STACK_SCRATCH, 0);
	if (op == TRACE_READ) {
		/* How many reads the thread has finished tells one call's events from the next's. */
		asm_call(a, BPF_FUNC_get_current_task_btf);
		asm_load(a, ASM_U64, R1, R0, at->task_calls);
		asm_store(a, ASM_U64, FP, STACK_SCRATCH, R1);
	}
	reserve(p, sizeof(struct bpf_access));
	asm_store_value(a, ASM_U32, R0, offsetof(struct bpf_access, kind),
			BPF_EVENT_ACCESS | (int)op << 8);
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_access, pid), R7);
	asm_load(a, ASM_U32, R1, FP, STACK_TID);
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_access, tid), R1);
	asm_store(a, ASM_U32, R0, offsetof(struct bpf_access, file), R9);
	asm_load(a, ASM_U64, R1, FP, STACK_FIRST);
	asm_store(a, ASM_U64, R0, offsetof(struct bpf_access, first), R1);
	asm_load(a, ASM_U64, R1, FP, STACK_LAST);
	asm_store(a, ASM_U64, R0, offsetof(struct bpf_access, last), R1);
	asm_load(a, ASM_U64, R1, FP, STACK_SCRATCH);
	asm_store(a, ASM_U64, R0, offsetof(struct bpf_access, call), R1);
	submit(p, R0);
}

/* ---- the programs ---- */

/* Context: mapping, first page, last page; or the same page twice. */
static void build_pages(struct program *p, enum trace_op op)
{
	struct bpf_asm *a = p->a;

	filter_process(p);
	asm_load(a, ASM_U64, R8, R6, 0);
	asm_load(a, ASM_U64, R8, R8, p->world->at.mapping_host);
	asm_load(a, ASM_U64, R1, R6, 8);
	asm_store(a, ASM_U64, FP, STACK_FIRST, R1);
	asm_load(a, ASM_U64, R1, R6, op == TRACE_READ ? 16 : 8);
	asm_store(a, ASM_U64, FP, STACK_LAST, R1);
	record(p, op);
}

static void build_dirtied(struct program *p)
{
	struct bpf_asm *a = p->a;

	filter_process(p);
	asm_load(a, ASM_U64, R1, R6, 0);
	asm_load(a, ASM_U64, R1, R1, p->world->at.folio_index);
	asm_store(a, ASM_U64, FP, STACK_FIRST, R1);
	asm_store(a, ASM_U64, FP, STACK_LAST, R1);
	asm_load(a, ASM_U64, R8, R6, 8);
	asm_load(a, ASM_U64, R8, R8, p->world->at.mapping_host);
	record(p, TRACE_WRITE);
}

/* The numbers of x86-64; that the call's registers are those is known from their names. */
enum {
	CALL_WRITE = 1,
	CALL_PWRITE = 18,
	CALL_WRITEV = 20,
	CALL_SENDFILE = 40,
	CALL_PWRITEV = 296,
	CALL_COPY_FILE_RANGE = 326,
	CALL_PWRITEV2 = 328,
};

/* Where the bytes of a call are: in front of the file's position; where its fourth argument says;
 * in front of what its fourth argument points to, which the call has moved on. */
enum { PLACE_POSITION, PLACE_GIVEN, PLACE_POINTED };

/* Leave unless the call writes and has a result; STACK_MODE is the place, STACK_NUMBER the file's
 * descriptor. */
static void filter_call(struct program *p)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;
	int given = asm_label(a), maybe = asm_label(a), copy = asm_label(a), go = asm_label(a);

	asm_load(a, ASM_U64, R1, R6, 8);
	asm_jump_if(a, R1, ASM_SLE, 0, p->out);
	asm_load(a, ASM_U64, R2, R6, 0);
	asm_load(a, ASM_U64, R1, R2, at->regs_call);
	asm_load(a, ASM_U64, R3, R2, at->regs_arg0);
	asm_store_value(a, ASM_U64, FP, STACK_MODE, PLACE_POSITION);
	asm_jump_if(a, R1, ASM_EQ, CALL_WRITE, go);
	asm_jump_if(a, R1, ASM_EQ, CALL_PWRITE, given);
	asm_jump_if(a, R1, ASM_EQ, CALL_WRITEV, go);
	asm_jump_if(a, R1, ASM_EQ, CALL_SENDFILE, go);
	asm_jump_if(a, R1, ASM_EQ, CALL_PWRITEV, given);
	asm_jump_if(a, R1, ASM_EQ, CALL_COPY_FILE_RANGE, copy);
	asm_jump_if(a, R1, ASM_EQ, CALL_PWRITEV2, maybe);
	asm_jump(a, p->out);
	asm_place(a, copy);
	asm_load(a, ASM_U64, R3, R2, at->regs_arg2);
	asm_load(a, ASM_U64, R1, R2, at->regs_arg3);
	asm_jump_if(a, R1, ASM_EQ, 0, go);
	asm_store_value(a, ASM_U64, FP, STACK_MODE, PLACE_POINTED);
	asm_jump(a, go);
	asm_place(a, maybe);
	asm_load(a, ASM_U64, R1, R2, at->regs_arg3);
	asm_jump_if(a, R1, ASM_EQ, -1, go); /* pwritev2's way to say "at the file's position" */
	asm_place(a, given);
	asm_store_value(a, ASM_U64, FP, STACK_MODE, PLACE_GIVEN);
	asm_place(a, go);
	asm_store(a, ASM_U64, FP, STACK_NUMBER, R3);
}

/* The file of the call's descriptor into r8. */
static void find_file(struct program *p)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;

	asm_call(a, BPF_FUNC_get_current_task_btf);
	probe(p, STACK_NAME, 8, R0, at->task_files);
	asm_load(a, ASM_U64, R1, FP, STACK_NAME);
	asm_jump_if(a, R1, ASM_EQ, 0, p->out);
	field(p, ASM_U64, R8, R1, at->files_table);
	field(p, ASM_U32, R9, R8, at->table_max);
	field(p, ASM_U64, R8, R8, at->table_files);
	asm_load(a, ASM_U32, R2, FP, STACK_NUMBER);
	asm_jump_if_by(a, R2, ASM_GE, R9, p->out);
	asm_compute(a, BPF_LSH, R2, 3);
	asm_compute_by(a, BPF_ADD, R8, R2);
	field(p, ASM_U64, R8, R8, 0);
	asm_jump_if(a, R8, ASM_EQ, 0, p->out);
}

/* Where the bytes of the call begin, in STACK_FIRST, and how many, in STACK_LAST; the file is in r8.
 */
static void find_place(struct program *p)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;
	int given = asm_label(a), pointed = asm_label(a), before = asm_label(a),
	    known = asm_label(a);

	asm_load(a, ASM_U64, R9, R6, 8);
	asm_store(a, ASM_U64, FP, STACK_LAST, R9);
	asm_load(a, ASM_U64, R1, FP, STACK_MODE);
	asm_jump_if(a, R1, ASM_EQ, PLACE_GIVEN, given);
	asm_jump_if(a, R1, ASM_EQ, PLACE_POINTED, pointed);
	field(p, ASM_U64, R1, R8, at->file_position);
	asm_jump(a, before);
	asm_place(a, pointed);
	asm_load(a, ASM_U64, R2, R6, 0);
	asm_load(a, ASM_U64, R3, R2, at->regs_arg3);
	stack_address(p, R1, STACK_SCRATCH);
	asm_set(a, R2, 8);
	asm_call(a, BPF_FUNC_probe_read_user);
	asm_jump_if(a, R0, ASM_NE, 0, p->lost);
	asm_load(a, ASM_U64, R1, FP, STACK_SCRATCH);
	asm_place(a, before);
	asm_compute_by(a, BPF_SUB, R1, R9);
	asm_jump(a, known);
	asm_place(a, given);
	asm_load(a, ASM_U64, R2, R6, 0);
	asm_load(a, ASM_U64, R1, R2, at->regs_arg3);
	asm_place(a, known);
	asm_store(a, ASM_U64, FP, STACK_FIRST, R1);
}

/* Bytes STACK_FIRST on, and how many in STACK_LAST, to pages. */
static void bytes_to_pages(struct program *p)
{
	struct bpf_asm *a = p->a;

	asm_load(a, ASM_U64, R1, FP, STACK_FIRST);
	asm_load(a, ASM_U64, R2, FP, STACK_LAST);
	asm_compute_by(a, BPF_ADD, R2, R1);
	asm_compute(a, BPF_SUB, R2, 1);
	asm_compute(a, BPF_RSH, R1, TRACE_PAGE_SHIFT);
	asm_compute(a, BPF_RSH, R2, TRACE_PAGE_SHIFT);
	asm_store(a, ASM_U64, FP, STACK_FIRST, R1);
	asm_store(a, ASM_U64, FP, STACK_LAST, R2);
}

/* Context: registers, result. */
static void build_write(struct program *p)
{
	const struct bpf_offsets *at = &p->world->at;
	struct bpf_asm *a = p->a;
	int regular = asm_label(a);

	filter_call(p);
	filter_process(p);
	p->typed = false;
	find_file(p);
	field(p, ASM_U32, R1, R8, at->file_flags);
	asm_jump_if(a, R1, ASM_BITS, O_DIRECT, p->out);
	find_place(p);
	bytes_to_pages(p);
	field(p, ASM_U64, R8, R8, at->file_mapping);
	field(p, ASM_U64, R8, R8, at->mapping_host);
	field(p, ASM_U16, R1, R8, at->inode_mode);
	asm_compute(a, BPF_AND, R1, S_IFMT);
	asm_jump_if(a, R1, ASM_EQ, S_IFREG, regular);
	asm_jump_if(a, R1, ASM_NE, S_IFBLK, p->out);
	asm_place(a, regular);
	/* Reads of these leave no event, so half a picture would be drawn. */
	field(p, ASM_U64, R1, R8, at->inode_sb);
	field(p, ASM_U64, R1, R1, at->sb_magic);
	asm_jump_if(a, R1, ASM_EQ, TMPFS_MAGIC, p->out);
	asm_jump_if(a, R1, ASM_EQ, PROC_SUPER_MAGIC, p->out);
	asm_jump_if(a, R1, ASM_EQ, SYSFS_MAGIC, p->out);
	asm_jump_if(a, R1, ASM_EQ, CGROUP_SUPER_MAGIC, p->out);
	asm_jump_if(a, R1, ASM_EQ, CGROUP2_SUPER_MAGIC, p->out);
	record(p, TRACE_WRITE);
}

/* A child of an observed process is observed. Context: parent, child. */
static void build_fork(struct program *p)
{
	struct bpf_asm *a = p->a;

	asm_load(a, ASM_U64, R1, R6, 0);
	asm_load(a, ASM_U32, R7, R1, p->world->at.task_tgid);
	asm_load(a, ASM_U64, R1, R6, 8);
	asm_load(a, ASM_U32, R8, R1, p->world->at.task_tgid);
	asm_jump_if_by(a, R7, ASM_EQ, R8, p->out);
	asm_store(a, ASM_U32, FP, STACK_PID, R7);
	lookup(p, p->world->processes, STACK_PID);
	asm_jump_if(a, R0, ASM_EQ, 0, p->out);
	asm_store(a, ASM_U32, FP, STACK_PID, R8);
	asm_store_value(a, ASM_U32, FP, STACK_SCRATCH, 0);
	update(p, p->world->processes, STACK_PID, STACK_SCRATCH, BPF_ANY);
	asm_jump_if(a, R0, ASM_NE, 0, p->lost);
}

/* Announce it anew, under its new name. Context: task. */
static void build_exec(struct program *p)
{
	struct bpf_asm *a = p->a;

	asm_load(a, ASM_U64, R1, R6, 0);
	asm_load(a, ASM_U32, R1, R1, p->world->at.task_tgid);
	asm_store(a, ASM_U32, FP, STACK_PID, R1);
	lookup(p, p->world->processes, STACK_PID);
	asm_jump_if(a, R0, ASM_EQ, 0, p->out);
	asm_store_value(a, ASM_U32, R0, 0, 0);
}

/* The number will be somebody else's. Context: task. */
static void build_free(struct program *p)
{
	struct bpf_asm *a = p->a;

	asm_load(a, ASM_U64, R1, R6, 0);
	asm_load(a, ASM_U32, R2, R1, p->world->at.task_tgid);
	asm_load(a, ASM_U32, R3, R1, p->world->at.task_pid);
	asm_jump_if_by(a, R2, ASM_NE, R3, p->out);
	asm_store(a, ASM_U32, FP, STACK_PID, R2);
	asm_set_map(a, R1, p->world->processes);
	stack_address(p, R2, STACK_PID);
	asm_call(a, BPF_FUNC_map_delete_elem);
}

int record_program_build(enum record_program program, const struct bpf_world *world,
			 struct bpf_asm *a)
{
	struct program p = {.a = a, .world = world, .typed = true};

	asm_start(a);
	begin(&p);
	switch (program) {
	case PROGRAM_READ:
		build_pages(&p, TRACE_READ);
		break;
	case PROGRAM_FAULT:
		build_pages(&p, TRACE_LOAD);
		break;
	case PROGRAM_WRITE:
		build_write(&p);
		break;
	case PROGRAM_DIRTIED:
		build_dirtied(&p);
		break;
	case PROGRAM_FORK:
		build_fork(&p);
		break;
	case PROGRAM_EXEC:
		build_exec(&p);
		break;
	case PROGRAM_FREE:
		build_free(&p);
		break;
	case NR_PROGRAMS:
		return -EINVAL;
	}
	end(&p);
	return asm_finish(a);
}
