/* SPDX-License-Identifier: MIT
 *
 * The ring between programs with libfoliage-record.so in them and the recorder: slots in shared
 * memory, reserved by compare-exchange on the head, handed over by the turn in the first slot of an
 * event, freed by the tail.
 *
 * The recorder's file descriptor of the memory is named by an environment variable, as a path under
 * /proc, so that programs that close everything can still map it after an exec.
 */
#ifndef FOLIAGE_ADAPTERS_RECORD_RING_H
#define FOLIAGE_ADAPTERS_RECORD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RING_VARIABLE "FOLIAGE_RECORD_RING"

enum {
	RING_MAGIC = 0x466f6c52,
	RING_VERSION = 1,
	RING_SLOT_TEXT = 56,  /* bytes of a slot behind its turn */
	RING_NAME_MAX = 4000, /* of a path; longer ones are cut at the front */
};

enum ring_kind { RING_ACCESS = 1, RING_FILE, RING_PROCESS };

struct ring_key {
	uint64_t inode;
	uint32_t device;
	uint32_t birth; /* tells a file from one that had its inode before */
};

struct ring_slot {
	_Atomic uint64_t turn; /* position + 1 when the event that begins here is complete */
	union {
		struct {
			uint8_t kind, op; /* enum ring_kind, enum trace_op */
			uint16_t bytes;   /* of the text in the slots behind */
			uint32_t pid;
			struct ring_key key;
			uint64_t first, last; /* pages */
		};
		char text[RING_SLOT_TEXT];
	};
};

struct ring {
	uint32_t magic, version;
	uint32_t slots; /* a power of two */
	uint32_t no_writes;
	int32_t recorder; /* process number */
	uint32_t unused;
	uint64_t min_size; /* of a file, bytes */
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(64) _Atomic uint64_t lost;
	_Atomic uint32_t programs; /* that have mapped it */
	_Atomic uint32_t stopped;  /* nobody takes events any more */
	_Alignas(64) struct ring_slot slot[];
};

static inline uint32_t ring_slots_of(uint32_t bytes)
{
	return 1 + (bytes + RING_SLOT_TEXT - 1) / RING_SLOT_TEXT;
}

static inline struct ring_slot *ring_slot(struct ring *ring, uint64_t position)
{
	return &ring->slot[position & (ring->slots - 1)];
}

#endif
