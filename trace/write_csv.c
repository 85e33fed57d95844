/* SPDX-License-Identifier: MIT
 *
 * CSV: "page,nr,op,file,process", one request a line, read back by column names. A file or process
 * is written by name, or as #NUMBER when it has none; number 0 is an empty field.
 */
#include "trace/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char header[] = "page,nr,op,file,process\n";

static int csv_open(struct trace_writer *w, struct err *err)
{
	return output_put(w->out, header, sizeof(header) - 1, err);
}

static int csv_name(struct trace_writer *w, enum trace_name_kind kind, uint32_t number,
		    const char *name, struct err *err)
{
	struct names *names = kind == TRACE_NAME_FILE ? &w->files : &w->processes;
	int code = names_set(names, number, name, strlen(name));

	return code ? err_set(err, code, "%s: file or process number %u: %s", w->path, number,
			      strerror(-code))
		    : 0;
}

static int put_text(struct trace_writer *w, const char *text, struct err *err)
{
	return output_put(w->out, text, strlen(text), err);
}

/* A line is a record: control characters of a name become question marks. */
static int put_name(struct trace_writer *w, const struct names *names, uint32_t number,
		    const char *behind, struct err *err)
{
	const char *name = names_get(names, number);
	char text[16] = "";
	int code;

	if (!name || !*name) {
		if (number)
			snprintf(text, sizeof(text), "#%u", number);
		code = put_text(w, text, err);
		return code ? code : put_text(w, behind, err);
	}
	code = put_text(w, "\"", err);
	for (; *name && !code; name++) {
		char c = (unsigned char)*name < ' ' ? '?' : *name;

		code = output_put(w->out, (char[]){c, c}, c == '"' ? 2 : 1, err);
	}
	if (!code)
		code = put_text(w, "\"", err);
	return code ? code : put_text(w, behind, err);
}

static int csv_write(struct trace_writer *w, const struct trace_record *records, size_t n,
		     struct err *err)
{
	static const char *const ops[TRACE_NR_OPS] = {
		[TRACE_READ] = "read",   [TRACE_WRITE] = "write", [TRACE_LOAD] = "load",
		[TRACE_STORE] = "store", [TRACE_EXEC] = "exec",
	};

	for (size_t i = 0; i < n; i++, w->place++) {
		const struct trace_record *r = &records[i];
		char line[64];
		int bytes = snprintf(line, sizeof(line), "%" PRIu64 ",%u,%s,", r->page, r->nr,
				     ops[r->op]);
		int code = output_put(w->out, line, (size_t)bytes, err);

		if (!code)
			code = put_name(w, &w->files, r->file, ",", err);
		if (!code)
			code = put_name(w, &w->processes, r->process, "\n", err);
		if (code)
			return code;
	}
	return 0;
}

const struct writer_ops writer_csv = {
	.name = "csv",
	.suffixes = ".csv ",
	.open = csv_open,
	.write = csv_write,
	.name_it = csv_name,
};
