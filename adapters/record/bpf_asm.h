/* SPDX-License-Identifier: MIT
 *
 * An assembler for BPF: instructions are appended to a buffer, jumps name labels that may be placed
 * later. Programs this small need no compiler, and offsets into kernel structures are known only
 * when the recorder runs.
 *
 * Errors (too many instructions, a label never placed) are kept until asm_finish().
 */
#ifndef FOLIAGE_ADAPTERS_RECORD_BPF_ASM_H
#define FOLIAGE_ADAPTERS_RECORD_BPF_ASM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ASM_MAX = 1024, ASM_LABELS = 64, ASM_JUMPS = 128 };

/* Bytes of a load or store. */
enum asm_size { ASM_U32 = BPF_W, ASM_U64 = BPF_DW, ASM_U16 = BPF_H };

enum asm_condition {
	ASM_EQ = BPF_JEQ,
	ASM_NE = BPF_JNE,
	ASM_LT = BPF_JLT, /* unsigned */
	ASM_LE = BPF_JLE,
	ASM_GT = BPF_JGT,
	ASM_GE = BPF_JGE,
	ASM_SLE = BPF_JSLE, /* signed */
	ASM_BITS = BPF_JSET,
};

struct bpf_asm {
	struct bpf_insn code[ASM_MAX];
	size_t nr;
	int label_at[ASM_LABELS]; /* -1: not placed */
	int nr_labels;
	struct {
		size_t at;
		int label;
	} jumps[ASM_JUMPS];
	size_t nr_jumps;
	bool overflow;
};

void asm_start(struct bpf_asm *a);
/* 0, or -E2BIG, -EINVAL: the program cannot be. */
int asm_finish(struct bpf_asm *a);

int asm_label(struct bpf_asm *a);
void asm_place(struct bpf_asm *a, int label);
/* Whether a jump so far goes there. */
bool asm_leads_to(const struct bpf_asm *a, int label);

void asm_move(struct bpf_asm *a, int to, int from);
void asm_set(struct bpf_asm *a, int to, int32_t value);
void asm_set64(struct bpf_asm *a, int to, uint64_t value);
void asm_set_map(struct bpf_asm *a, int to, int fd);
/* `operation`: BPF_ADD, BPF_SUB, BPF_LSH, BPF_RSH, BPF_AND; 64 bits. */
void asm_compute(struct bpf_asm *a, int operation, int to, int32_t value);
void asm_compute_by(struct bpf_asm *a, int operation, int to, int by);
void asm_load(struct bpf_asm *a, enum asm_size size, int to, int base, int offset);
void asm_store(struct bpf_asm *a, enum asm_size size, int base, int offset, int from);
void asm_store_value(struct bpf_asm *a, enum asm_size size, int base, int offset, int32_t value);
/* Add register `by` to the 64 bits in memory; `fetch`: `by` becomes what was there. */
void asm_add_atomic(struct bpf_asm *a, int base, int offset, int by, bool fetch);
void asm_jump(struct bpf_asm *a, int label);
void asm_jump_if(struct bpf_asm *a, int left, enum asm_condition condition, int32_t value,
		 int label);
void asm_jump_if_by(struct bpf_asm *a, int left, enum asm_condition condition, int right,
		    int label);
void asm_call(struct bpf_asm *a, int helper);
void asm_return(struct bpf_asm *a);

#endif
