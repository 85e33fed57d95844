/* SPDX-License-Identifier: MIT
 *
 * Raw numbers: one little-endian u32 or u64 a page access, nothing else.
 */
#include "trace/reader.h"

#include <endian.h>
#include <string.h>

static void set_page(struct trace_record *record, uint64_t page)
{
	*record = (struct trace_record){.page = page, .nr = 1};
}

static ssize_t u32_read(struct trace *trace, struct trace_record *records, size_t max,
			struct err *err)
{
	ssize_t n = reader_fixed(trace, sizeof(uint32_t), max, err);
	const uint8_t *from = trace->in->buf + trace->in->pos;

	if (n <= 0)
		return n;
	for (size_t i = 0; i < (size_t)n; i++) {
		uint32_t page;

		memcpy(&page, from + i * sizeof(page), sizeof(page));
		set_page(&records[i], le32toh(page));
	}
	trace->in->pos += (size_t)n * sizeof(uint32_t);
	trace->place += (size_t)n;
	return n;
}

static ssize_t u64_read(struct trace *trace, struct trace_record *records, size_t max,
			struct err *err)
{
	ssize_t n = reader_fixed(trace, sizeof(uint64_t), max, err);
	const uint8_t *from = trace->in->buf + trace->in->pos;

	if (n <= 0)
		return n;
	for (size_t i = 0; i < (size_t)n; i++) {
		uint64_t page;

		memcpy(&page, from + i * sizeof(page), sizeof(page));
		set_page(&records[i], le64toh(page));
	}
	trace->in->pos += (size_t)n * sizeof(uint64_t);
	trace->place += (size_t)n;
	return n;
}

const struct reader reader_u32 = {.name = "u32", .suffixes = ".u32 ", .read = u32_read};
const struct reader reader_u64 = {.name = "u64", .suffixes = ".u64 ", .read = u64_read};
