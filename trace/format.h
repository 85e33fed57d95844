/* SPDX-License-Identifier: MIT
 *
 * Foliage's own trace format, as docs/trace-format.md defines it: what reader and writer share.
 */
#ifndef FOLIAGE_TRACE_FORMAT_H
#define FOLIAGE_TRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FORMAT_MAGIC                                                                               \
	"\x8c"                                                                                     \
	"Foliage" /* no text, and no u32 count of anything small */

enum {
	FORMAT_VERSION = 1,
	FORMAT_HEAD = 16,       /* magic, u16 version, u16 flags, u32 checksum */
	FORMAT_BLOCK_HEAD = 16, /* u8 type, 3 zero, u32 items, u32 payload bytes, u32 checksum */
	FORMAT_BLOCK_MAX = 1 << 20,     /* payload bytes that a reader accepts */
	FORMAT_BLOCK_FULL = 64 << 10,   /* payload bytes at which the writer ends a block */
	FORMAT_RECORD_MAX = 1 + 4 * 10, /* bytes of the longest record */
	FORMAT_END_PAYLOAD =
		24, /* u64 records, u64 page accesses, u32 checksum of checksums, u32 zero */
	FORMAT_SLOTS = 256, /* positions that are remembered, one a file, by file % 256 */
};

enum format_block {
	FORMAT_RECORDS = 'R',
	FORMAT_NAMES = 'N',
	FORMAT_END = 'E',
};

/* The first byte of a record. */
enum {
	FORMAT_TAG_OP = 7,            /* bits 0-2: enum trace_op; TRACE_WORK: see the document */
	FORMAT_TAG_FILE = 1 << 3,     /* a varint file follows; else as in the record before */
	FORMAT_TAG_PROCESS = 1 << 4,  /* a varint process follows */
	FORMAT_TAG_NR = 1 << 5,       /* a varint of pages - 2 follows; else one page */
	FORMAT_TAG_DELTA = 3 << 6,    /* bits 6-7, where it begins: */
	FORMAT_DELTA_NEXT = 0 << 6,   /* behind the last page of the file's record before */
	FORMAT_DELTA_SAME = 1 << 6,   /* at that record's first page */
	FORMAT_DELTA_VARINT = 2 << 6, /* a zigzag varint from NEXT's place follows */
};

struct format_position {
	uint64_t first, behind; /* of the last record of a file with this slot */
};

/* What the coding of a record depends on; all zero at the beginning of every block. */
struct format_state {
	uint32_t file, process;
	struct format_position position[FORMAT_SLOTS];
};

/* CRC-32C (Castagnoli). The table belongs to the user: the library has no globals to fill. */
struct crc32c {
	uint32_t table[256];
};

static inline void crc32c_init(struct crc32c *crc)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
		crc->table[i] = c;
	}
}

/* Continue from `sum` (0 to begin). */
static inline uint32_t crc32c(const struct crc32c *crc, uint32_t sum, const void *data,
			      size_t bytes)
{
	const uint8_t *p = data;

	sum = ~sum;
	while (bytes--)
		sum = crc->table[(sum ^ *p++) & 0xff] ^ sum >> 8;
	return ~sum;
}

static inline void put_le(uint8_t *to, uint64_t x, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(x >> 8 * i);
}

static inline uint64_t get_le(const uint8_t *from, size_t bytes)
{
	uint64_t x = 0;

	for (size_t i = 0; i < bytes; i++)
		x |= (uint64_t)from[i] << 8 * i;
	return x;
}

/* The checksum of a block covers its head up to the checksum, then the payload. */
static inline uint32_t format_block_sum(const struct crc32c *crc, const uint8_t *head,
					const uint8_t *payload, size_t bytes)
{
	return crc32c(crc, crc32c(crc, 0, head, FORMAT_BLOCK_HEAD - 4), payload, bytes);
}

static inline uint8_t *put_varint(uint8_t *to, uint64_t x)
{
	for (; x >= 0x80; x >>= 7)
		*to++ = (uint8_t)(x | 0x80);
	*to++ = (uint8_t)x;
	return to;
}

/* NULL when the number does not end before `end` or in 64 bits. */
static inline const uint8_t *get_varint(const uint8_t *from, const uint8_t *end, uint64_t *x)
{
	unsigned int shift = 0;

	for (*x = 0; from < end; shift += 7) {
		uint8_t byte = *from++;

		if (shift == 63 && byte > 1)
			return NULL;
		*x |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return from;
	}
	return NULL;
}

static inline uint64_t zigzag(uint64_t delta)
{
	return delta << 1 ^ (0 - (delta >> 63));
}

static inline uint64_t unzigzag(uint64_t x)
{
	return x >> 1 ^ (0 - (x & 1));
}

#endif
