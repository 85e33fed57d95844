/* SPDX-License-Identifier: MIT
 *
 * foliage convert: one trace into another format. The output's name appears when all of it is
 * written.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "trace/trace.h"
#include "trace/write.h"

enum { RECORDS = 2048 };

struct convert {
	const char *in, *out, *to;
	struct trace_options options;
	uint64_t limit;
	struct trace *trace;
	struct trace_writer *writer;
	size_t cursor[2]; /* of names, by enum trace_name_kind */
};

/* Names that the reader has met since the last time. */
static int copy_names(struct convert *c, enum trace_name_kind kind, struct err *err)
{
	const char *name;
	uint32_t number;
	int code = 0;

	while (!code && trace_next_name(c->trace, kind, &c->cursor[kind], &number, &name))
		code = trace_write_name(c->writer, kind, number, name, err);
	return code;
}

static int copy_records(struct convert *c, struct trace_record *records, struct err *err)
{
	uint64_t left = c->limit ? c->limit : UINT64_MAX;
	uint64_t total = 0;
	ssize_t n = 0;

	while (left && (n = trace_read(c->trace, records, RECORDS, err)) > 0) {
		size_t kept = trace_cut(records, (size_t)n, &left);
		int code = copy_names(c, TRACE_NAME_FILE, err);

		if (!code)
			code = copy_names(c, TRACE_NAME_PROCESS, err);
		if (!code)
			code = trace_write(c->writer, records, kept, err);
		if (code)
			return code;
		if (cli_interrupted)
			return -EINTR;
		total += kept;
	}
	if (n < 0)
		return (int)n;
	return total ? 0 : err_set(err, -ENODATA, "%s: no page access in it", c->in);
}

static int convert(struct convert *c, struct err *err)
{
	struct trace_record *records = malloc(RECORDS * sizeof(*records));
	int code;

	if (!records)
		return err_set(err, -ENOMEM, "no memory");
	code = trace_open(c->in, &c->options, &c->trace, err);
	if (!code)
		code = trace_create(c->out, c->to, 0, &c->writer, err);
	if (!code)
		code = copy_records(c, records, err);
	if (!code)
		code = trace_commit(c->writer, err);
	else
		trace_discard(c->writer);
	trace_close(c->trace);
	free(records);
	return code;
}

static int run(int argc, char **argv)
{
	struct convert c = {0};
	struct err err = {""};
	const struct option_spec specs[] = {
		{"trace-format", 0, OPTION_TEXT, &c.options.format},
		{"columns", 0, OPTION_TEXT, &c.options.columns},
		{"objects", 0, OPTION_FLAG, &c.options.objects},
		{"limit", 0, OPTION_COUNT, &c.limit},
		{"to", 0, OPTION_TEXT, &c.to},
	};
	int operands = options_parse(argc, argv, specs, sizeof(specs) / sizeof(specs[0]), &err);
	int code;

	if (operands < 0)
		return cli_fail("convert: %s", err.text);
	if (operands != 2)
		return cli_fail("convert: needs IN and OUT, %d given", operands);
	c.in = argv[1];
	c.out = argv[2];
	code = convert(&c, &err);
	if (code == -EINTR && cli_interrupted)
		return 130;
	return code ? cli_fail("%s", err.text) : 0;
}

static const char help[] =
	"Usage: foliage convert [OPTION]... IN OUT\n"
	"\n"
	"Rewrite a trace in another format. IN may be packed with zstd, gzip or xz; \"-\" is "
	"standard input. OUT is\n"
	"packed when its name ends in .zst; \"-\" is standard output. OUT appears when all of it "
	"is written.\n"
	"\n"
	"Options:\n"
	"  --trace-format F   read IN as F: foliage, foliage-partial, oracle, vscsi, csv, text, "
	"u32, u64, lis, iolog,\n"
	"                     address (default: by content and name)\n"
	"  --columns C        which columns of a CSV file mean what: block=lbn,size=4,op=op\n"
	"                     (keys: page, block, offset, size, nr, op, file, process)\n"
	"  --objects          every record is one page, whatever its size\n"
	"  --limit N          stop after N page accesses\n"
	"  --to F             write F: foliage, u32, u64, text, csv, oracle (default: by OUT's "
	"name)\n"
	"\n"
	"Only foliage and csv keep operations, files and processes; the others hold one number a "
	"page access, in\n"
	"which the file is folded into the page (file << 40 ^ page).\n";

const struct command command_convert = {
	.name = "convert",
	.summary = "rewrite a trace in another format",
	.help = help,
	.run = run,
};
