/* SPDX-License-Identifier: MIT
 *
 * Encoding of BPF instructions, and jumps that are filled in at the end.
 */
#include "adapters/record/bpf_asm.h"

#include <errno.h>
#include <string.h>

void asm_start(struct bpf_asm *a)
{
	memset(a, 0, sizeof(*a));
}

static void put(struct bpf_asm *a, int code, int to, int from, int offset, int32_t value)
{
	if (a->nr == ASM_MAX) {
		a->overflow = true;
		return;
	}
	a->code[a->nr++] = (struct bpf_insn){
		.code = (uint8_t)code,
		.dst_reg = (uint8_t)(to & 15),
		.src_reg = (uint8_t)(from & 15),
		.off = (int16_t)offset,
		.imm = value,
	};
}

int asm_label(struct bpf_asm *a)
{
	if (a->nr_labels == ASM_LABELS) {
		a->overflow = true;
		return 0;
	}
	a->label_at[a->nr_labels] = -1;
	return a->nr_labels++;
}

void asm_place(struct bpf_asm *a, int label)
{
	a->label_at[label] = (int)a->nr;
}

bool asm_leads_to(const struct bpf_asm *a, int label)
{
	for (size_t i = 0; i < a->nr_jumps; i++) {
		if (a->jumps[i].label == label)
			return true;
	}
	return false;
}

int asm_finish(struct bpf_asm *a)
{
	for (size_t i = 0; i < a->nr_jumps; i++) {
		int at = a->label_at[a->jumps[i].label];

		if (at < 0)
			return -EINVAL;
		a->code[a->jumps[i].at].off = (int16_t)(at - (int)a->jumps[i].at - 1);
	}
	return a->overflow ? -E2BIG : 0;
}

static void note_jump(struct bpf_asm *a, int label)
{
	if (a->nr_jumps == ASM_JUMPS) {
		a->overflow = true;
		return;
	}
	a->jumps[a->nr_jumps].at = a->nr;
	a->jumps[a->nr_jumps++].label = label;
}

void asm_move(struct bpf_asm *a, int to, int from)
{
	put(a, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

void asm_set(struct bpf_asm *a, int to, int32_t value)
{
	put(a, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

static void put_wide(struct bpf_asm *a, int to, int kind, uint64_t value)
{
	put(a, BPF_LD | BPF_DW | BPF_IMM, to, kind, 0, (int32_t)(uint32_t)value);
	put(a, 0, 0, 0, 0, (int32_t)(uint32_t)(value >> 32));
}

void asm_set64(struct bpf_asm *a, int to, uint64_t value)
{
	put_wide(a, to, 0, value);
}

void asm_set_map(struct bpf_asm *a, int to, int fd)
{
	put_wide(a, to, BPF_PSEUDO_MAP_FD, (uint64_t)fd);
}

void asm_compute(struct bpf_asm *a, int operation, int to, int32_t value)
{
	put(a, BPF_ALU64 | operation | BPF_K, to, 0, 0, value);
}

void asm_compute_by(struct bpf_asm *a, int operation, int to, int by)
{
	put(a, BPF_ALU64 | operation | BPF_X, to, by, 0, 0);
}

void asm_load(struct bpf_asm *a, enum asm_size size, int to, int base, int offset)
{
	put(a, BPF_LDX | BPF_MEM | (int)size, to, base, offset, 0);
}

void asm_store(struct bpf_asm *a, enum asm_size size, int base, int offset, int from)
{
	put(a, BPF_STX | BPF_MEM | (int)size, base, from, offset, 0);
}

void asm_store_value(struct bpf_asm *a, enum asm_size size, int base, int offset, int32_t value)
{
	put(a, BPF_ST | BPF_MEM | (int)size, base, 0, offset, value);
}

void asm_add_atomic(struct bpf_asm *a, int base, int offset, int by, bool fetch)
{
	put(a, BPF_STX | BPF_ATOMIC | BPF_DW, base, by, offset, BPF_ADD | (fetch ? BPF_FETCH : 0));
}

void asm_jump(struct bpf_asm *a, int label)
{
	note_jump(a, label);
	put(a, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void asm_jump_if(struct bpf_asm *a, int left, enum asm_condition condition, int32_t value,
		 int label)
{
	note_jump(a, label);
	put(a, BPF_JMP | (int)condition | BPF_K, left, 0, 0, value);
}

void asm_jump_if_by(struct bpf_asm *a, int left, enum asm_condition condition, int right, int label)
{
	note_jump(a, label);
	put(a, BPF_JMP | (int)condition | BPF_X, left, right, 0, 0);
}

void asm_call(struct bpf_asm *a, int helper)
{
	put(a, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void asm_return(struct bpf_asm *a)
{
	put(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}
