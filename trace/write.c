/* SPDX-License-Identifier: MIT
 *
 * The table of output formats, and the formats of one number an access. These know no files: what
 * they write is the page's identity, file and page in one number (trace_page_key).
 */
#include "trace/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trace/format.h"
#include "trace/writer.h"

static const struct writer_ops *const writers[] = {
	&writer_foliage, &writer_u32, &writer_u64, &writer_text, &writer_csv, &writer_oracle,
};

static const struct writer_ops *writer_by_path(const char *path)
{
	static const char *const packings[] = {".zst", ".gz",
					       ".xz"}; /* output refuses all but .zst */
	size_t length = strlen(path);

	if (!strcmp(path, "-"))
		return &writer_foliage;
	for (size_t i = 0; i < ARRAY_SIZE(packings); i++) {
		size_t n = strlen(packings[i]);

		if (length > n && !strcmp(path + length - n, packings[i])) {
			length -= n;
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		const char *suffix = writers[i]->suffixes;
		size_t n;

		for (; *suffix; suffix += n + 1) {
			n = strcspn(suffix, " ");
			if (length > n && !strncasecmp(path + length - n, suffix, n))
				return writers[i];
		}
	}
	return NULL;
}

static int choose_writer(const char *path, const char *format, const struct writer_ops **ops,
			 struct err *err)
{
	*ops = NULL;
	if (!format) {
		*ops = writer_by_path(path);
		if (*ops)
			return 0;
		return err_set(err, -EINVAL,
			       "%s: the name's ending tells no output format "
			       "(foliage, u32, u64, txt, csv, oracleGeneral)",
			       path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		if (!strcmp(writers[i]->name, format))
			*ops = writers[i];
	if (*ops)
		return 0;
	return err_set(err, -EINVAL,
		       "%s: unknown output format '%.40s' (formats: foliage, u32, u64, text, "
		       "csv, oracle)",
		       path, format);
}

int trace_create(const char *path, const char *format, unsigned int flags,
		 struct trace_writer **writer, struct err *err)
{
	const struct writer_ops *ops;
	struct trace_writer *w;
	int code = choose_writer(path, format, &ops, err);

	if (code)
		return code;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	w->ops = ops;
	w->path = strdup(path);
	code = w->path ? output_open(path, flags & TRACE_WRITE_IN_PLACE, &w->out, err)
		       : err_set(err, -ENOMEM, "%s: no memory", path);
	if (!code && ops->open)
		code = ops->open(w, err);
	if (code)
		trace_discard(w);
	else
		*writer = w;
	return code;
}

int trace_write(struct trace_writer *w, const struct trace_record *records, size_t n,
		struct err *err)
{
	return w->ops->write(w, records, n, err);
}

int trace_write_name(struct trace_writer *w, enum trace_name_kind kind, uint32_t number,
		     const char *name, struct err *err)
{
	return w->ops->name_it ? w->ops->name_it(w, kind, number, name, err) : 0;
}

int trace_flush(struct trace_writer *w, struct err *err)
{
	int code = w->ops->flush ? w->ops->flush(w, err) : 0;

	return code ? code : output_flush(w->out, err);
}

static void writer_free(struct trace_writer *w)
{
	if (w->ops->close)
		w->ops->close(w);
	names_free(&w->files);
	names_free(&w->processes);
	free(w->path);
	free(w);
}

int trace_commit(struct trace_writer *w, struct err *err)
{
	int code = w->ops->finish ? w->ops->finish(w, err) : 0;

	if (code) {
		trace_discard(w);
		return code;
	}
	code = output_commit(w->out, err);
	writer_free(w);
	return code;
}

void trace_discard(struct trace_writer *w)
{
	if (!w)
		return;
	output_discard(w->out);
	writer_free(w);
}

const char *trace_writer_format(const struct trace_writer *w)
{
	return w->ops->name;
}

static int put_pages(struct trace_writer *w, const struct trace_record *records, size_t n,
		     size_t bytes, struct err *err)
{
	for (size_t i = 0; i < n; i++, w->place++) {
		uint64_t page = trace_page_key(records[i].file, records[i].page);

		for (uint32_t k = 0; k < records[i].nr; k++) {
			uint8_t raw[8];
			int code;

			put_le(raw, page + k, sizeof(raw));
			if (bytes == 4 && page + k > UINT32_MAX)
				return err_set(err, -ERANGE,
					       "%s: record %" PRIu64 ": page %" PRIu64
					       " does not fit in 32 bits",
					       w->path, w->place + 1, page + k);
			code = output_put(w->out, raw, bytes, err);
			if (code)
				return code;
		}
	}
	return 0;
}

static int u32_write(struct trace_writer *w, const struct trace_record *records, size_t n,
		     struct err *err)
{
	return put_pages(w, records, n, 4, err);
}

static int u64_write(struct trace_writer *w, const struct trace_record *records, size_t n,
		     struct err *err)
{
	return put_pages(w, records, n, 8, err);
}

static int text_write(struct trace_writer *w, const struct trace_record *records, size_t n,
		      struct err *err)
{
	for (size_t i = 0; i < n; i++, w->place++) {
		uint64_t page = trace_page_key(records[i].file, records[i].page);

		for (uint32_t k = 0; k < records[i].nr; k++) {
			char line[24];
			int bytes = snprintf(line, sizeof(line), "%" PRIu64 "\n", page + k);
			int code = output_put(w->out, line, (size_t)bytes, err);

			if (code)
				return code;
		}
	}
	return 0;
}

const struct writer_ops writer_u32 = {.name = "u32", .suffixes = ".u32 ", .write = u32_write};
const struct writer_ops writer_u64 = {.name = "u64", .suffixes = ".u64 ", .write = u64_write};
const struct writer_ops writer_text = {
	.name = "text", .suffixes = ".txt .text .trace ", .write = text_write};
