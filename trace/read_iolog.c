/* SPDX-License-Identifier: MIT
 *
 * fio's I/O logs, "fio version 2 iolog" and "fio version 3 iolog". Lines are "FILE ACTION" or "FILE
 * ACTION OFFSET LENGTH", in version 3 with the time in front. Only reads and writes touch pages;
 * opening, closing, waiting, syncing and trimming are checked and passed over.
 */
#include "trace/reader.h"

#include <errno.h>
#include <string.h>

static const char head_line[] = "fio version ";

static bool iolog_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return bytes >= sizeof(head_line) - 1 && !memcmp(head, head_line, sizeof(head_line) - 1);
}

static int iolog_open(struct trace *trace, const struct trace_options *options, struct err *err)
{
	char *line;
	int code = reader_line(trace, &line, err);

	(void)options;
	if (code < 0)
		return code;
	if (code && !strcmp(line, "fio version 2 iolog"))
		trace->state = NULL;
	else if (code && !strcmp(line, "fio version 3 iolog"))
		trace->state = trace; /* as a flag: lines begin with a time */
	else
		return reader_bad_line(trace, err,
				       "neither 'fio version 2 iolog' nor 'fio version 3 iolog'");
	return 0;
}

static char *next_word(char **line)
{
	char *word = reader_blanks(*line), *end = word + strcspn(word, " \t");

	*line = *end ? end + 1 : end;
	*end = 0;
	return word;
}

static bool is_passed_over(const char *action)
{
	static const char *const actions[] = {"add",  "open",     "close", "wait",
					      "sync", "datasync", "trim",  "sync_file_range"};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(action, actions[i]))
			return true;
	return false;
}

/* 0: a record, 1: nothing that touches a page. */
static int iolog_parse(struct trace *trace, char *line, struct trace_record *r, struct err *err)
{
	uint64_t offset, length, time;
	char *word, *file, *action;
	int code;

	*r = (struct trace_record){.nr = 1};
	if (trace->state) {
		word = next_word(&line);
		if (!reader_number(&word, &time) || *word)
			return reader_bad_line(trace, err, "no time in front");
	}
	file = next_word(&line);
	action = next_word(&line);
	if (is_passed_over(action))
		return 1;
	if (strcmp(action, "read") != 0 && strcmp(action, "write") != 0)
		return reader_bad_line(trace, err, "'%.40s' is no action", action);
	r->op = *action == 'w' ? TRACE_WRITE : TRACE_READ;
	line = reader_blanks(line);
	if (!reader_number(&line, &offset) || (*line != ' ' && *line != '\t'))
		return reader_bad_line(trace, err, "%s without offset and length", action);
	line = reader_blanks(line);
	if (!reader_number(&line, &length) || *reader_blanks(line))
		return reader_bad_line(trace, err, "%s without offset and length", action);
	if (!length)
		return 1;
	if (!reader_set_bytes(r, offset, length))
		return reader_bad_line(trace, err, "a request of %llu bytes",
				       (unsigned long long)length);
	if (trace->objects)
		r->nr = 1;
	code = names_intern(&trace->files, file, strlen(file), &r->file);
	if (code == -E2BIG)
		return reader_bad_line(trace, err, "more than %u files", NAMES_MAX);
	return code ? err_set(err, code, "%s: no memory", trace->path) : 0;
}

static ssize_t iolog_read(struct trace *trace, struct trace_record *records, size_t max,
			  struct err *err)
{
	size_t filled = 0;

	while (filled < max) {
		char *line;
		int code = reader_line(trace, &line, err);

		if (!code)
			break;
		if (code > 0)
			code = iolog_parse(trace, line, &records[filled], err);
		if (code < 0)
			return code;
		filled += code == 0;
	}
	return (ssize_t)filled;
}

const struct reader reader_iolog = {
	.name = "iolog",
	.suffixes = ".iolog ",
	.sniff = iolog_sniff,
	.open = iolog_open,
	.read = iolog_read,
};
