/* SPDX-License-Identifier: MIT
 *
 * Foliage's own format. Every block is checked whole before its first record is handed out, and the
 * end mark proves that nothing is missing. A recording that was interrupted has no end mark: as
 * "foliage" that is an error, as "foliage-partial" it is read up to its last complete block.
 */
#include "trace/format.h"
#include "trace/reader.h"

#include <errno.h>
#include <stdlib.h>

struct foliage {
	struct crc32c crc;
	struct format_state at;
	bool partial, work;  /* work: hand out TRACE_WORK */
	size_t left;         /* payload bytes of the open block, at the window's front */
	uint32_t items_left; /* records of it */
	uint64_t nr_records, nr_pages;
	uint32_t sums; /* checksum of the blocks' checksums */
};

static bool foliage_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return bytes >= 8 && !memcmp(head, FORMAT_MAGIC, 8);
}

static int bad(struct trace *trace, struct err *err, const char *reason)
{
	return err_set(err, -EILSEQ, "%s: byte %llu: %s", trace->path,
		       (unsigned long long)input_offset(trace->in), reason);
}

static int foliage_open(struct trace *trace, const struct trace_options *options, struct err *err)
{
	struct foliage *f = calloc(1, sizeof(*f));
	const uint8_t *head;
	ssize_t have;

	if (!f)
		return err_set(err, -ENOMEM, "%s: no memory", trace->path);
	trace->state = f;
	f->work = options && options->work;
	f->partial = trace->reader == &reader_foliage_partial;
	crc32c_init(&f->crc);
	have = input_fill(trace->in, FORMAT_HEAD, err);
	if (have < 0)
		return (int)have;
	head = trace->in->buf + trace->in->pos;
	if (!foliage_sniff(head, (size_t)have, false))
		return bad(trace, err, "no Foliage trace: wrong magic");
	if (have < FORMAT_HEAD)
		return bad(trace, err, "truncated inside the head");
	if (get_le(head + 12, 4) != crc32c(&f->crc, 0, head, 12))
		return bad(trace, err, "corrupt head: wrong checksum");
	if (get_le(head + 8, 2) != FORMAT_VERSION || get_le(head + 10, 2))
		return err_set(err, -ENOTSUP,
			       "%s: byte 8: version %u, flags %u: this reader knows version %d",
			       trace->path, (unsigned int)get_le(head + 8, 2),
			       (unsigned int)get_le(head + 10, 2), FORMAT_VERSION);
	trace->in->pos += FORMAT_HEAD;
	return 0;
}

static int names_block(struct trace *trace, const uint8_t *p, const uint8_t *end, uint32_t items,
		       struct err *err)
{
	for (; items; items--) {
		uint64_t number, length;
		struct names *names;
		int code;

		if (p == end || (*p != 'f' && *p != 'p'))
			return bad(trace, err, "corrupt table of names");
		names = *p == 'f' ? &trace->files : &trace->processes;
		p = get_varint(p + 1, end, &number);
		if (p)
			p = get_varint(p, end, &length);
		if (!p || number >= NAMES_MAX || length > (uint64_t)(end - p))
			return bad(trace, err, "corrupt table of names");
		code = names_set(names, (uint32_t)number, (const char *)p, (size_t)length);
		if (code)
			return err_set(err, code, "%s: no memory", trace->path);
		p += length;
	}
	return p == end ? 0 : bad(trace, err, "corrupt table of names");
}

/* Returns 1: this is the end. */
static int end_block(struct trace *trace, const uint8_t *payload, size_t bytes, struct err *err)
{
	const struct foliage *f = trace->state;
	ssize_t more;

	if (bytes != FORMAT_END_PAYLOAD)
		return bad(trace, err, "corrupt end mark");
	if (get_le(payload, 8) != f->nr_records || get_le(payload + 8, 8) != f->nr_pages ||
	    get_le(payload + 16, 4) != f->sums)
		return err_set(err, -EILSEQ,
			       "%s: byte %llu: the end mark counts %llu records, here are %llu: "
			       "blocks are missing or exchanged",
			       trace->path, (unsigned long long)input_offset(trace->in),
			       (unsigned long long)get_le(payload, 8),
			       (unsigned long long)f->nr_records);
	trace->in->pos += FORMAT_BLOCK_HEAD + bytes;
	more = input_fill(trace->in, 1, err);
	if (more < 0)
		return (int)more;
	return more ? bad(trace, err, "data after the end mark") : 1;
}

static int interrupted(struct trace *trace, struct err *err)
{
	const struct foliage *f = trace->state;

	if (f->partial)
		return 1;
	return err_set(err, -EILSEQ,
		       "%s: byte %llu: no end mark after %llu records: truncated, or an "
		       "interrupted recording (format foliage-partial reads those)",
		       trace->path, (unsigned long long)input_offset(trace->in),
		       (unsigned long long)f->nr_records);
}

/* A whole, checked block at the window's front: 0; 1: there is none, the recording ends here. */
static int load_block(struct trace *trace, size_t *bytes, struct err *err)
{
	struct foliage *f = trace->state;
	struct input *in = trace->in;
	ssize_t have = input_fill(in, FORMAT_BLOCK_HEAD, err);
	const uint8_t *head = in->buf + in->pos;

	if (have >= FORMAT_BLOCK_HEAD) {
		*bytes = (size_t)get_le(head + 8, 4);
		if ((*head != FORMAT_RECORDS && *head != FORMAT_NAMES && *head != FORMAT_END) ||
		    *bytes > FORMAT_BLOCK_MAX || get_le(head + 1, 3))
			return bad(trace, err, "corrupt block: wrong head");
		have = input_fill(in, FORMAT_BLOCK_HEAD + *bytes, err);
		head = in->buf + in->pos;
		if (have >= 0 && (size_t)have >= FORMAT_BLOCK_HEAD + *bytes) {
			uint32_t sum =
				format_block_sum(&f->crc, head, head + FORMAT_BLOCK_HEAD, *bytes);

			return sum == get_le(head + 12, 4)
				       ? 0
				       : bad(trace, err, "corrupt block: wrong checksum");
		}
	}
	if (have < 0 && !(f->partial && in->truncated))
		return (int)have;
	return interrupted(trace, err);
}

/* Go to the next block of records: 0, 1 at the end, or a negative errno. */
static int next_block(struct trace *trace, struct err *err)
{
	struct foliage *f = trace->state;
	struct input *in = trace->in;

	for (;;) {
		size_t bytes = 0;
		int code = load_block(trace, &bytes, err);
		const uint8_t *head = in->buf + in->pos, *payload = head + FORMAT_BLOCK_HEAD;
		uint32_t items;

		if (code)
			return code;
		items = (uint32_t)get_le(head + 4, 4);
		if (*head == FORMAT_END)
			return end_block(trace, payload, bytes, err);
		f->sums = crc32c(&f->crc, f->sums, head + 12, 4);
		if (*head == FORMAT_RECORDS) {
			if (!items || items > bytes)
				return bad(trace, err, "corrupt block: wrong number of records");
			memset(&f->at, 0, sizeof(f->at));
			in->pos += FORMAT_BLOCK_HEAD;
			f->left = bytes;
			f->items_left = items;
			return 0;
		}
		code = names_block(trace, payload, payload + bytes, items, err);
		if (code)
			return code;
		in->pos += FORMAT_BLOCK_HEAD + bytes;
	}
}

/* Time that a process has computed: no file, no position. */
static const uint8_t *decode_work(struct format_state *at, const uint8_t *p, const uint8_t *end,
				  struct trace_record *r)
{
	uint64_t process = at->process, ns;
	unsigned int tag = *p++;

	if ((tag & ~(unsigned int)FORMAT_TAG_PROCESS) != (TRACE_WORK | FORMAT_DELTA_VARINT))
		return NULL;
	if (tag & FORMAT_TAG_PROCESS && !(p = get_varint(p, end, &process)))
		return NULL;
	p = get_varint(p, end, &ns);
	if (!p || process >= NAMES_MAX)
		return NULL;
	at->process = (uint32_t)process;
	*r = (struct trace_record){.page = ns, .process = at->process, .op = TRACE_WORK};
	return p;
}

/* Returns the bytes after the record, NULL when it is malformed. */
static const uint8_t *decode(struct format_state *at, const uint8_t *p, const uint8_t *end,
			     struct trace_record *r)
{
	uint64_t file = at->file, process = at->process, nr = 1, delta = 0;
	struct format_position *position;
	unsigned int tag = *p;

	if ((tag & FORMAT_TAG_OP) == TRACE_WORK)
		return decode_work(at, p, end, r);
	p++;
	if (tag & FORMAT_TAG_FILE && !(p = get_varint(p, end, &file)))
		return NULL;
	if (tag & FORMAT_TAG_PROCESS && !(p = get_varint(p, end, &process)))
		return NULL;
	if (tag & FORMAT_TAG_NR) {
		p = get_varint(p, end, &nr);
		if (!p || nr > TRACE_REQUEST_MAX - 2u)
			return NULL;
		nr += 2;
	}
	if (file >= NAMES_MAX || process >= NAMES_MAX || (tag & FORMAT_TAG_OP) >= TRACE_NR_OPS)
		return NULL;
	position = &at->position[file % FORMAT_SLOTS];
	switch (tag & FORMAT_TAG_DELTA) {
	case FORMAT_DELTA_NEXT:
		r->page = position->behind;
		break;
	case FORMAT_DELTA_SAME:
		r->page = position->first;
		break;
	case FORMAT_DELTA_VARINT:
		p = get_varint(p, end, &delta);
		r->page = position->behind + unzigzag(delta);
		break;
	default:
		return NULL;
	}
	r->nr = (uint32_t)nr;
	r->op = tag & FORMAT_TAG_OP;
	r->file = at->file = (uint32_t)file;
	r->process = at->process = (uint32_t)process;
	position->first = r->page;
	position->behind = r->page + nr;
	return p;
}

/* Records of the open block. */
static ssize_t read_block(struct trace *trace, struct trace_record *records, size_t max,
			  struct err *err)
{
	struct foliage *f = trace->state;
	struct input *in = trace->in;
	const uint8_t *p, *end;
	size_t n = 0;

	p = in->buf + in->pos;
	end = p + f->left;
	for (; n < max && f->items_left; f->items_left--) {
		const uint8_t *next = p < end ? decode(&f->at, p, end, &records[n]) : NULL;

		if (!next)
			return reader_bad_record(trace, input_offset(in), err, "malformed");
		in->pos += (size_t)(next - p);
		f->left -= (size_t)(next - p);
		p = next;
		f->nr_records++;
		f->nr_pages += records[n].nr;
		trace->place++;
		if (records[n].op == TRACE_WORK) {
			n += f->work;
			continue;
		}
		if (trace->objects)
			records[n].nr = 1;
		n++;
	}
	if (!f->items_left && f->left)
		return bad(trace, err, "corrupt block: bytes after its last record");
	return (ssize_t)n;
}

static ssize_t foliage_read(struct trace *trace, struct trace_record *records, size_t max,
			    struct err *err)
{
	const struct foliage *f = trace->state;
	ssize_t n = 0;

	/* A block may hold nothing that was asked for. */
	while (!n) {
		int code = f->items_left ? 0 : next_block(trace, err);

		if (code)
			return code < 0 ? code : 0;
		n = read_block(trace, records, max, err);
	}
	return n;
}

static void foliage_close(struct trace *trace)
{
	free(trace->state);
}

const struct reader reader_foliage = {
	.name = "foliage",
	.suffixes = ".foliage ",
	.sniff = foliage_sniff,
	.open = foliage_open,
	.read = foliage_read,
	.close = foliage_close,
};
const struct reader reader_foliage_partial = {
	.name = "foliage-partial",
	.suffixes = "",
	.open = foliage_open,
	.read = foliage_read,
	.close = foliage_close,
};
