/* SPDX-License-Identifier: MIT
 *
 * foliage convert: traces into one of another format. The output's name appears when all of it is
 * written.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outfile.h"
#include "trace/merge.h"
#include "trace/trace.h"
#include "trace/write.h"

enum { RECORDS = 2048 };

struct convert {
	char *const *ins;
	size_t nr_ins;
	const char *in, *out, *to; /* in: the one at hand */
	struct trace_options options;
	uint64_t limit, left, total;
	struct trace *trace;
	struct trace_writer *writer;
	struct merge *merge; /* NULL: one trace, which keeps its numbers */
	size_t cursor[2];    /* of names, by enum trace_name_kind */
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

static int copy_all_names(struct convert *c, struct err *err)
{
	int code = copy_names(c, TRACE_NAME_FILE, err);

	return code ? code : copy_names(c, TRACE_NAME_PROCESS, err);
}

static int copy_records(struct convert *c, struct trace_record *records, struct err *err)
{
	ssize_t n = 0;

	while (c->left && (n = trace_read(c->trace, records, RECORDS, err)) > 0) {
		size_t kept = trace_cut(records, (size_t)n, &c->left);
		int code = c->merge ? merge_records(c->merge, records, kept, err)
				    : copy_all_names(c, err);

		if (!code)
			code = trace_write(c->writer, records, kept, err);
		if (code)
			return code;
		if (cli_interrupted)
			return -EINTR;
		c->total += kept;
	}
	return n < 0 ? (int)n : 0;
}

static int copy_trace(struct convert *c, struct trace_record *records, struct err *err)
{
	int code = trace_open(c->in, &c->options, &c->trace, err);

	if (!code && c->merge)
		merge_next(c->merge, c->trace);
	if (!code)
		code = copy_records(c, records, err);
	trace_close(c->trace);
	c->trace = NULL;
	return code;
}

static int create_output(struct convert *c, struct err *err)
{
	int code = trace_create(c->out, c->to, 0, &c->writer, err);

	if (code)
		return code;
	c->options.work = !strcmp(trace_writer_format(c->writer), "foliage");
	if (c->nr_ins > 1 && !(c->merge = merge_create(c->writer)))
		return err_set(err, -ENOMEM, "no memory");
	return 0;
}

static int convert(struct convert *c, struct err *err)
{
	struct trace_record *records = malloc(RECORDS * sizeof(*records));
	int code;

	if (!records)
		return err_set(err, -ENOMEM, "no memory");
	c->left = c->limit ? c->limit : UINT64_MAX;
	code = create_output(c, err);
	for (size_t i = 0; !code && i < c->nr_ins && c->left; i++) {
		c->in = c->ins[i];
		code = copy_trace(c, records, err);
	}
	if (!code && !c->total)
		code = err_set(err, -ENODATA, "%s: no page access in it", c->in);
	if (!code)
		code = trace_commit(c->writer, err);
	else
		trace_discard(c->writer);
	merge_free(c->merge);
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
	if (operands < 2)
		return cli_fail("convert: needs IN and OUT, %d given", operands);
	c.ins = argv + 1;
	c.nr_ins = (size_t)operands - 1;
	c.out = argv[operands];
	code = outfile_check_inputs(c.out, c.nr_ins, c.ins, &err);
	if (!code)
		code = convert(&c, &err);
	if (code == -EINTR && cli_interrupted)
		return 130;
	return code ? cli_fail("%s", err.text) : 0;
}

static const char help[] =
	"Usage: foliage convert [OPTION]... IN... OUT\n"
	"\n"
	"Rewrite a trace in another format, or several as one. IN may be packed with zstd, gzip or "
	"xz; \"-\" is "
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
	"Several traces follow each other in OUT. Files of equal path are one file there; files "
	"without a path,\n"
	"among them the private memory of programs, and processes stay apart.\n"
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
