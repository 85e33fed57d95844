/* SPDX-License-Identifier: MIT
 *
 * One reader on hostile bytes. FUZZ_FORMAT names it; "auto" lets the content decide, unpackers
 * included. The first input byte chooses the options. What must hold: no crash, and records that
 * keep their promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format.h"
#include "trace/names.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Random bytes never have the right checksums: repair those of the own format, to get behind them.
 */
static void repair_checksums(uint8_t *data, size_t bytes)
{
	struct crc32c crc;
	uint32_t sums = 0;
	size_t at = FORMAT_HEAD;

	crc32c_init(&crc);
	if (bytes < FORMAT_HEAD)
		return;
	memcpy(data, FORMAT_MAGIC, 8);
	put_le(data + 8, FORMAT_VERSION, 4);
	put_le(data + 12, crc32c(&crc, 0, data, 12), 4);
	while (bytes - at >= FORMAT_BLOCK_HEAD) {
		uint8_t *head = data + at, *payload = head + FORMAT_BLOCK_HEAD;
		size_t size = (size_t)get_le(head + 8, 4);

		if (size > bytes - at - FORMAT_BLOCK_HEAD)
			break;
		if (*head == FORMAT_END && size == FORMAT_END_PAYLOAD)
			put_le(payload + 16, sums, 4);
		put_le(head + 12, format_block_sum(&crc, head, payload, size), 4);
		sums = crc32c(&crc, sums, head + 12, 4);
		at += FORMAT_BLOCK_HEAD + size;
	}
}

static void read_all(struct trace *trace, size_t batch)
{
	struct trace_record records[64];
	struct err err = {""};
	uint64_t left = 1 << 20; /* a small packed file may hold gigabytes */
	ssize_t n;

	while (left-- && (n = trace_read(trace, records, batch, &err)) > 0) {
		if ((size_t)n > batch)
			abort();
		for (ssize_t i = 0; i < n; i++) {
			if (!records[i].nr || records[i].nr > TRACE_REQUEST_MAX ||
			    records[i].op >= TRACE_NR_OPS || records[i].file >= NAMES_MAX)
				abort();
			trace_file_name(trace, records[i].file);
			trace_process_name(trace, records[i].process);
		}
	}
	if (n < 0 && (!err.text[0] || strchr(err.text, '\n')))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *const columns[] = {NULL, "page=1,op=2", "block=a,size=b,nr=3",
					      "offset=1,file=2,process=3"};
	struct trace_options options = {.format = FUZZ_FORMAT};
	struct trace *trace;
	struct err err = {""};
	uint8_t *copy;

	if (!bytes)
		return 0;
	options.objects = *data & 1;
	options.columns = columns[*data >> 1 & 3];
	if (!strcmp(options.format, "auto"))
		options.format = NULL;
	copy = malloc(bytes);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, bytes - 1);
	if (options.format && !strncmp(options.format, "foliage", 7) && *data & 8)
		repair_checksums(copy, bytes - 1);
	if (!trace_open_memory(copy, bytes - 1, "fuzz", &options, &trace, &err)) {
		read_all(trace, *data & 16 ? 64 : 1);
		trace_close(trace);
	} else if (!err.text[0] || strchr(err.text, '\n')) {
		abort();
	}
	free(copy);
	return 0;
}
