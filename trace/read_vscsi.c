/* SPDX-License-Identifier: MIT
 *
 * VMware's vscsi traces, little-endian. Version 1, 32 bytes: u32 serial, u32 bytes, u32 segments,
 * u16 command, u16 version, u64 sector, u64 time. Version 2, 40 bytes: u16 command, u16 version,
 * u32 serial, u32 bytes, u32 segments, u64 sector, u64 time, u64 response time. The version word is
 * 1 or 2 in its high byte; all records of a file have the same.
 *
 * A command without data touches no page and is passed over; of the rest, what is no SCSI write is
 * a read.
 */
#include "trace/reader.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct vscsi_layout {
	unsigned int version;
	size_t size, command, version_at, bytes, sector;
};

static const struct vscsi_layout layouts[] = {
	{.version = 1, .size = 32, .command = 12, .version_at = 14, .bytes = 4, .sector = 16},
	{.version = 2, .size = 40, .command = 0, .version_at = 2, .bytes = 8, .sector = 16},
};

static uint16_t get16(const uint8_t *from)
{
	uint16_t x;

	memcpy(&x, from, sizeof(x));
	return le16toh(x);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t x;

	memcpy(&x, from, sizeof(x));
	return le32toh(x);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t x;

	memcpy(&x, from, sizeof(x));
	return le64toh(x);
}

static bool version_fits(const struct vscsi_layout *layout, const uint8_t *record)
{
	return (unsigned int)get16(record + layout->version_at) >> 8 == layout->version;
}

static const struct vscsi_layout *vscsi_layout(const uint8_t *head, size_t bytes)
{
	for (size_t v = 0; v < 2; v++) {
		const struct vscsi_layout *layout = &layouts[v];
		size_t n = bytes / layout->size, i = 0;

		while (i < n && i < 8 && version_fits(layout, head + i * layout->size))
			i++;
		if (n && (i == n || i == 8))
			return layout;
	}
	return NULL;
}

static bool vscsi_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return vscsi_layout(head, bytes) != NULL;
}

static int vscsi_open(struct trace *trace, const struct trace_options *options, struct err *err)
{
	struct input *in = trace->in;
	const struct vscsi_layout **state;

	(void)options;
	/* One record decides: a bad one later on gets a message with its place. */
	state = malloc(sizeof(*state));
	if (!state)
		return err_set(err, -ENOMEM, "%s: no memory", trace->path);
	trace->state = state;
	*state = NULL;
	for (size_t v = 0; v < 2 && !*state; v++)
		if (in->end - in->pos >= layouts[v].size &&
		    version_fits(&layouts[v], in->buf + in->pos))
			*state = &layouts[v];
	if (!*state)
		return reader_bad_record(trace, 0, err, "no vscsi record of version 1 or 2");
	return 0;
}

static bool is_write(unsigned int command)
{
	return command == 0x0a || command == 0x2a || command == 0x8a || command == 0xaa ||
	       command == 0x2e || command == 0x8e || command == 0xae || command == 0x41 ||
	       command == 0x93;
}

static ssize_t vscsi_read(struct trace *trace, struct trace_record *records, size_t max,
			  struct err *err)
{
	const struct vscsi_layout *layout = *(const struct vscsi_layout **)trace->state;
	size_t filled = 0;

	while (!filled) {
		ssize_t n = reader_fixed(trace, layout->size, max, err);

		if (n <= 0)
			return n;
		for (ssize_t i = 0; i < n; i++) {
			const uint8_t *from = trace->in->buf + trace->in->pos;
			struct trace_record *r = &records[filled];
			uint32_t bytes = get32(from + layout->bytes);

			if (!version_fits(layout, from))
				return reader_bad_record(trace, input_offset(trace->in), err,
							 "no vscsi record of version %u",
							 layout->version);
			*r = (struct trace_record){.page = get64(from + layout->sector), .nr = 1};
			r->op = is_write(get16(from + layout->command)) ? TRACE_WRITE : TRACE_READ;
			if (!trace->objects)
				reader_set_sectors(r, r->page, bytes);
			filled += bytes != 0;
			trace->in->pos += layout->size;
			trace->place++;
		}
	}
	return (ssize_t)filled;
}

static void vscsi_close(struct trace *trace)
{
	free(trace->state);
}

const struct reader reader_vscsi = {
	.name = "vscsi",
	.suffixes = ".vscsi ",
	.sniff = vscsi_sniff,
	.open = vscsi_open,
	.read = vscsi_read,
	.close = vscsi_close,
};
