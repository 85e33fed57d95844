/* SPDX-License-Identifier: MIT
 *
 * Opening a trace: which format is it? In this order:
 *   1. what the caller says;
 *   2. the magic of Foliage's own format and fio's first line, which no other format can begin
 *      with;
 *   3. the name's ending, packing's ending aside;
 *   4. the content: text by its first line, binary by whether the first records make sense.
 * Raw u32 and u64 look like anything, so they are recognized by name only.
 */
#include "trace/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trace/reader.h"

/* Tried in this order by content. */
static const struct reader *const readers[] = {
	&reader_foliage,
	&reader_iolog,
	&reader_vscsi,
	&reader_oracle,
	&reader_address,
	&reader_lis,
	&reader_csv,
	&reader_text,
	&reader_u32,
	&reader_u64,
	&reader_foliage_partial,
};

enum { HEAD = 4096 };

static bool has_suffix(const char *name, size_t length, const char *suffix, size_t n)
{
	return length > n && !strncasecmp(name + length - n, suffix, n);
}

static const struct reader *reader_by_name(const char *path)
{
	static const char *const packings[] = {".zst", ".gz", ".xz"};
	size_t length = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(packings); i++) {
		if (has_suffix(path, length, packings[i], strlen(packings[i]))) {
			length -= strlen(packings[i]);
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		const char *suffix = readers[i]->suffixes;
		size_t n;

		for (; *suffix; suffix += n + 1) {
			n = strcspn(suffix, " ");
			if (has_suffix(path, length, suffix, n))
				return readers[i];
		}
	}
	return NULL;
}

static const struct reader *reader_by_format(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (!strcmp(readers[i]->name, format))
			return readers[i];
	return NULL;
}

const char *const *trace_formats(void)
{
	static const char *const names[] = {
		"foliage", "foliage-partial", "oracle",  "vscsi", "csv", "text", "u32", "u64",
		"lis",     "iolog",           "address", NULL,
	};

	return names;
}

static int unknown_format(struct err *err, const char *path, const char *what)
{
	char list[160] = "";

	for (const char *const *name = trace_formats(); *name; name++) {
		size_t n = strlen(list);

		snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", *name);
	}
	return err_set(err, -EINVAL, "%s: %s (formats: %s)", path, what, list);
}

static int trace_detect(struct trace *trace, const struct trace_options *options, struct err *err)
{
	ssize_t have = input_fill(trace->in, HEAD, err);
	const uint8_t *head = trace->in->buf + trace->in->pos;
	size_t bytes;

	if (have < 0)
		return (int)have;
	if (have == 0)
		return err_set(err, -ENODATA, "%s: byte 0: empty, no trace", trace->path);
	bytes = (size_t)have;
	if (options && options->format) {
		char what[96];

		trace->reader = reader_by_format(options->format);
		if (trace->reader)
			return 0;
		snprintf(what, sizeof(what), "unknown trace format '%.40s'", options->format);
		return unknown_format(err, trace->path, what);
	}
	if (reader_foliage.sniff(head, bytes, false))
		trace->reader = &reader_foliage;
	else if (reader_iolog.sniff(head, bytes, false))
		trace->reader = &reader_iolog;
	else
		trace->reader = reader_by_name(trace->path);
	for (size_t i = 0; !trace->reader && i < ARRAY_SIZE(readers); i++)
		if (readers[i]->sniff && readers[i]->sniff(head, bytes, bytes < HEAD))
			trace->reader = readers[i];
	if (!trace->reader)
		return unknown_format(err, trace->path,
				      "byte 0: neither name nor content tell the format, give one");
	return 0;
}

static int trace_start(struct input *in, const struct trace_options *options, struct trace **out,
		       struct err *err)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	int code;

	if (!trace) {
		input_close(in);
		return err_set(err, -ENOMEM, "no memory");
	}
	trace->in = in;
	trace->path = in->name;
	trace->objects = options && options->objects;
	code = trace_detect(trace, options, err);
	if (!code && trace->reader->open)
		code = trace->reader->open(trace, options, err);
	if (code)
		trace_close(trace);
	else
		*out = trace;
	return code;
}

int trace_open(const char *path, const struct trace_options *options, struct trace **trace,
	       struct err *err)
{
	struct input *in;
	int code = input_open(path, &in, err);

	return code ? code : trace_start(in, options, trace, err);
}

int trace_open_memory(const void *data, size_t bytes, const char *name,
		      const struct trace_options *options, struct trace **trace, struct err *err)
{
	struct input *in;
	int code = input_open_memory(data, bytes, name, &in, err);

	return code ? code : trace_start(in, options, trace, err);
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	if (trace->reader && trace->reader->close)
		trace->reader->close(trace);
	names_free(&trace->files);
	names_free(&trace->processes);
	input_close(trace->in);
	free(trace);
}

const char *trace_format(const struct trace *trace)
{
	return trace->reader->name;
}

const char *trace_packing(const struct trace *trace)
{
	return input_packing(trace->in);
}

const char *trace_file_name(const struct trace *trace, uint32_t file)
{
	return names_get(&trace->files, file);
}

const char *trace_process_name(const struct trace *trace, uint32_t process)
{
	return names_get(&trace->processes, process);
}

bool trace_next_name(const struct trace *trace, enum trace_name_kind kind, size_t *cursor,
		     uint32_t *number, const char **name)
{
	const struct names *names = kind == TRACE_NAME_FILE ? &trace->files : &trace->processes;

	if (*cursor >= names->nr)
		return false;
	*number = names->log[*cursor].number;
	*name = names->log[*cursor].text;
	++*cursor;
	return true;
}

ssize_t trace_read(struct trace *trace, struct trace_record *records, size_t max, struct err *err)
{
	ssize_t n;

	if (trace->failed)
		return err_set(err, trace->failed, "%s: reading it failed before", trace->path);
	if (trace->done || !max)
		return 0;
	n = trace->reader->read(trace, records, max, err);
	if (n < 0)
		trace->failed = (int)n;
	else if (n == 0)
		trace->done = true;
	return n;
}

size_t trace_cut(struct trace_record *records, size_t n, uint64_t *left)
{
	size_t i = 0;

	for (; i < n && *left; i++) {
		if (records[i].nr > *left)
			records[i].nr = (uint32_t)*left;
		*left -= records[i].nr;
	}
	return i;
}
