/* SPDX-License-Identifier: MIT
 *
 * Writing Foliage's own format: records are coded into one block until it is full or flushed, names
 * into another, which goes out first, so that a name is never behind its first use.
 */
#include "trace/format.h"
#include "trace/writer.h"

#include <errno.h>
#include <stdlib.h>

struct block {
	uint8_t head[FORMAT_BLOCK_HEAD];
	uint32_t items;
	size_t used;
	uint8_t payload[FORMAT_BLOCK_FULL + FORMAT_RECORD_MAX];
};

struct foliage_writer {
	struct crc32c crc;
	struct format_state at;
	struct block names, records;
	uint64_t nr_records, nr_pages;
	uint32_t sums;
};

static int foliage_open(struct trace_writer *w, struct err *err)
{
	struct foliage_writer *f = calloc(1, sizeof(*f));
	uint8_t head[FORMAT_HEAD] = FORMAT_MAGIC;

	if (!f)
		return err_set(err, -ENOMEM, "%s: no memory", w->path);
	w->state = f;
	crc32c_init(&f->crc);
	put_le(head + 8, FORMAT_VERSION, 2);
	put_le(head + 10, 0, 2);
	put_le(head + 12, crc32c(&f->crc, 0, head, 12), 4);
	return output_put(w->out, head, sizeof(head), err);
}

static int put_block(struct trace_writer *w, enum format_block type, struct block *block,
		     struct err *err)
{
	struct foliage_writer *f = w->state;
	int code;

	memset(block->head, 0, sizeof(block->head));
	block->head[0] = (uint8_t)type;
	put_le(block->head + 4, block->items, 4);
	put_le(block->head + 8, block->used, 4);
	put_le(block->head + 12,
	       format_block_sum(&f->crc, block->head, block->payload, block->used), 4);
	code = output_put(w->out, block->head, sizeof(block->head), err);
	if (!code)
		code = output_put(w->out, block->payload, block->used, err);
	if (type != FORMAT_END)
		f->sums = crc32c(&f->crc, f->sums, block->head + 12, 4);
	block->items = 0;
	block->used = 0;
	return code;
}

static int foliage_flush(struct trace_writer *w, struct err *err)
{
	struct foliage_writer *f = w->state;
	int code = 0;

	if (f->names.items)
		code = put_block(w, FORMAT_NAMES, &f->names, err);
	if (!code && f->records.items)
		code = put_block(w, FORMAT_RECORDS, &f->records, err);
	memset(&f->at, 0, sizeof(f->at));
	return code;
}

static int foliage_name(struct trace_writer *w, enum trace_name_kind kind, uint32_t number,
			const char *name, struct err *err)
{
	struct foliage_writer *f = w->state;
	size_t length = strlen(name);
	uint8_t *to;

	if (number >= NAMES_MAX)
		return err_set(err, -ERANGE, "%s: file or process number %u is over 24 bits",
			       w->path, number);
	if (length > FORMAT_BLOCK_FULL / 2)
		return err_set(err, -ENAMETOOLONG, "%s: a name of %zu bytes", w->path, length);
	if (f->names.used + length > FORMAT_BLOCK_FULL) {
		/* Names only: the block of records stays open. */
		int code = put_block(w, FORMAT_NAMES, &f->names, err);

		if (code)
			return code;
	}
	to = f->names.payload + f->names.used;
	*to++ = kind == TRACE_NAME_FILE ? 'f' : 'p';
	to = put_varint(to, number);
	to = put_varint(to, length);
	memcpy(to, name, length);
	f->names.used = (size_t)(to + length - f->names.payload);
	f->names.items++;
	return 0;
}

static uint8_t *encode_work(struct format_state *at, uint8_t *to, const struct trace_record *r)
{
	uint8_t *tag = to++;

	*tag = TRACE_WORK | FORMAT_DELTA_VARINT;
	if (r->process != at->process) {
		*tag |= FORMAT_TAG_PROCESS;
		to = put_varint(to, r->process);
	}
	at->process = r->process;
	return put_varint(to, r->page);
}

static uint8_t *encode(struct format_state *at, uint8_t *to, const struct trace_record *r)
{
	struct format_position *position = &at->position[r->file % FORMAT_SLOTS];
	uint8_t *tag = to;

	if (r->op == TRACE_WORK)
		return encode_work(at, to, r);
	to++;
	*tag = r->op;
	if (r->file != at->file) {
		*tag |= FORMAT_TAG_FILE;
		to = put_varint(to, r->file);
	}
	if (r->process != at->process) {
		*tag |= FORMAT_TAG_PROCESS;
		to = put_varint(to, r->process);
	}
	if (r->nr > 1) {
		*tag |= FORMAT_TAG_NR;
		to = put_varint(to, r->nr - 2);
	}
	if (r->page == position->behind) {
		*tag |= FORMAT_DELTA_NEXT;
	} else if (r->page == position->first) {
		*tag |= FORMAT_DELTA_SAME;
	} else {
		*tag |= FORMAT_DELTA_VARINT;
		to = put_varint(to, zigzag(r->page - position->behind));
	}
	at->file = r->file;
	at->process = r->process;
	position->first = r->page;
	position->behind = r->page + r->nr;
	return to;
}

static int foliage_write(struct trace_writer *w, const struct trace_record *records, size_t n,
			 struct err *err)
{
	struct foliage_writer *f = w->state;

	for (size_t i = 0; i < n; i++, w->place++) {
		const struct trace_record *r = &records[i];
		uint8_t *to = f->records.payload + f->records.used;
		int code;

		if (!r->nr != (r->op == TRACE_WORK) || r->nr > TRACE_REQUEST_MAX ||
		    r->file >= NAMES_MAX || r->process >= NAMES_MAX || r->op > TRACE_WORK)
			return err_set(
				err, -ERANGE,
				"%s: record %llu: %u pages, file %u, process %u, operation %u",
				w->path, (unsigned long long)w->place + 1, r->nr, r->file,
				r->process, r->op);
		f->records.used = (size_t)(encode(&f->at, to, r) - f->records.payload);
		f->records.items++;
		f->nr_records++;
		f->nr_pages += r->nr;
		if (f->records.used < FORMAT_BLOCK_FULL)
			continue;
		code = foliage_flush(w, err);
		if (code)
			return code;
	}
	return 0;
}

static int foliage_finish(struct trace_writer *w, struct err *err)
{
	struct foliage_writer *f = w->state;
	int code = foliage_flush(w, err);
	struct block *end = &f->records;

	if (code)
		return code;
	memset(end->payload, 0, FORMAT_END_PAYLOAD);
	put_le(end->payload, f->nr_records, 8);
	put_le(end->payload + 8, f->nr_pages, 8);
	put_le(end->payload + 16, f->sums, 4);
	end->used = FORMAT_END_PAYLOAD;
	return put_block(w, FORMAT_END, end, err);
}

static void foliage_close(struct trace_writer *w)
{
	free(w->state);
}

const struct writer_ops writer_foliage = {
	.name = "foliage",
	.suffixes = ".foliage ",
	.open = foliage_open,
	.write = foliage_write,
	.name_it = foliage_name,
	.flush = foliage_flush,
	.finish = foliage_finish,
	.close = foliage_close,
};
