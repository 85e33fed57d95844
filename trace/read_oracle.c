/* SPDX-License-Identifier: MIT
 *
 * oracleGeneral: packed little-endian records of 24 bytes: u32 time, u64 id, u32 size in bytes, i64
 * index of the next access to the id or -1.
 *
 * Of a block trace the id is a sector of 512 bytes and the size a multiple of it. Object traces
 * give size 0 or 1 where they know no size: such a record is one page with the id as its number. A
 * request covers every page that its bytes touch.
 */
#include "trace/reader.h"

#include <endian.h>
#include <string.h>

enum { RECORD = 24, LARGEST_SIZE = 1 << 30, SNIFFED = 64 };

struct oracle_record {
	uint32_t time, size;
	uint64_t id;
	int64_t next;
};

static struct oracle_record oracle_decode(const uint8_t *from)
{
	struct oracle_record r;
	uint64_t next;

	memcpy(&r.time, from, 4);
	memcpy(&r.id, from + 4, 8);
	memcpy(&r.size, from + 12, 4);
	memcpy(&next, from + 16, 8);
	r.time = le32toh(r.time);
	r.id = le64toh(r.id);
	r.size = le32toh(r.size);
	r.next = (int64_t)le64toh(next);
	return r;
}

/* Time never runs back, and `next` is ahead. No reader of wrong guesses gets through a few of
 * these. */
static bool oracle_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	uint32_t time = 0;
	size_t n = bytes / RECORD;

	if (!n || (whole && bytes % RECORD))
		return false;
	for (size_t i = 0; i < n && i < SNIFFED; i++) {
		struct oracle_record r = oracle_decode(head + i * RECORD);

		if (r.time < time || r.size > LARGEST_SIZE || r.next < -1 ||
		    r.next > (int64_t)1 << 40)
			return false;
		time = r.time;
	}
	return true;
}

static ssize_t oracle_read(struct trace *trace, struct trace_record *records, size_t max,
			   struct err *err)
{
	ssize_t n = reader_fixed(trace, RECORD, max, err);

	for (ssize_t i = 0; i < n; i++) {
		struct oracle_record r = oracle_decode(trace->in->buf + trace->in->pos);

		records[i] = (struct trace_record){.page = r.id, .nr = 1};
		if (r.next < -1)
			return reader_bad_record(trace, input_offset(trace->in), err,
						 "next access %lld: no oracleGeneral record",
						 (long long)r.next);
		if (!trace->objects && r.size > 1)
			reader_set_sectors(&records[i], r.id, r.size);
		trace->in->pos += RECORD;
		trace->place++;
	}
	return n;
}

const struct reader reader_oracle = {
	.name = "oracle",
	.suffixes = ".oracleGeneral .oracleGeneral.bin .oracle ",
	.sniff = oracle_sniff,
	.read = oracle_read,
};
