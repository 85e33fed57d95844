/* SPDX-License-Identifier: MIT
 *
 * Three formats of one line a record; empty lines and lines that begin with # are passed over.
 *   text      one page number, decimal or 0x hexadecimal
 *   lis       "start count ignored request-number", the traces of the ARC paper: `count` pages
 *             from `start` on
 *   address   "l 0xADDRESS n" or "s 0xADDRESS n": a load or store of the page that holds the
 *             address; n, the instructions since the last one, is not used. Always pages,
 *             --objects or not.
 */
#include "trace/reader.h"

#include <errno.h>
#include <string.h>

typedef int (*parse_fn)(struct trace *trace, char *line, struct trace_record *record,
			struct err *err);

static ssize_t read_lines(struct trace *trace, struct trace_record *records, size_t max,
			  struct err *err, parse_fn parse)
{
	size_t filled = 0;

	while (filled < max) {
		char *line;
		int code = reader_line(trace, &line, err);

		if (code < 0)
			return code;
		if (!code)
			break;
		records[filled] = (struct trace_record){.nr = 1};
		code = parse(trace, line, &records[filled], err);
		if (code < 0)
			return code;
		filled += code == 0;
	}
	return (ssize_t)filled;
}

static int parse_text(struct trace *trace, char *line, struct trace_record *record, struct err *err)
{
	char *p = line;

	if (!reader_number(&p, &record->page) || *reader_blanks(p))
		return reader_bad_line(trace, err, "'%.40s' is no page number", line);
	return 0;
}

/* Returns 1 for a line with a count of 0. */
static int parse_lis(struct trace *trace, char *line, struct trace_record *record, struct err *err)
{
	char *p = line;
	uint64_t number[4];

	for (int i = 0; i < 4; i++) {
		if (!reader_number(&p, &number[i]) || (*p && *p != ' ' && *p != '\t'))
			return reader_bad_line(trace, err, "'%.40s' is not four numbers", line);
		p = reader_blanks(p);
	}
	if (*p)
		return reader_bad_line(trace, err, "'%.40s' is more than four numbers", line);
	if (number[1] > TRACE_REQUEST_MAX || number[0] > UINT64_MAX - number[1])
		return reader_bad_line(trace, err, "%llu blocks in one request",
				       (unsigned long long)number[1]);
	record->page = number[0];
	record->nr = trace->objects ? 1 : (uint32_t)number[1];
	return number[1] == 0;
}

static int parse_address(struct trace *trace, char *line, struct trace_record *record,
			 struct err *err)
{
	uint64_t address;
	char *p = reader_blanks(line + 1);

	if ((*line != 's' && *line != 'l') || p == line + 1 || !reader_number(&p, &address) ||
	    (*p && *p != ' ' && *p != '\t'))
		return reader_bad_line(trace, err,
				       "'%.40s' is no 's 0xADDRESS n' or 'l 0xADDRESS n'", line);
	record->page = address >> TRACE_PAGE_SHIFT;
	record->op = *line == 's' ? TRACE_STORE : TRACE_LOAD;
	return 0;
}

static ssize_t text_read(struct trace *trace, struct trace_record *records, size_t max,
			 struct err *err)
{
	return read_lines(trace, records, max, err, parse_text);
}

static ssize_t lis_read(struct trace *trace, struct trace_record *records, size_t max,
			struct err *err)
{
	return read_lines(trace, records, max, err, parse_lis);
}

static ssize_t address_read(struct trace *trace, struct trace_record *records, size_t max,
			    struct err *err)
{
	return read_lines(trace, records, max, err, parse_address);
}

/* Numbers on the line; -1 when there is anything else. */
static int count_numbers(char *line)
{
	int n = 0;
	uint64_t number;

	while (*line) {
		if (!reader_number(&line, &number) || (*line && *line != ' ' && *line != '\t'))
			return -1;
		line = reader_blanks(line);
		n++;
	}
	return n;
}

static bool is_text_line(char *line)
{
	return count_numbers(line) == 1;
}

static bool is_lis_line(char *line)
{
	return count_numbers(line) == 4;
}

static bool is_address_line(char *line)
{
	return (line[0] == 's' || line[0] == 'l') && line[1] == ' ' && line[2] == '0' &&
	       line[3] == 'x';
}

static bool text_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return reader_sniff_line(head, bytes, is_text_line);
}

static bool lis_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return reader_sniff_line(head, bytes, is_lis_line);
}

static bool address_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return reader_sniff_line(head, bytes, is_address_line);
}

const struct reader reader_text = {
	.name = "text",
	.suffixes = ".txt .text ",
	.sniff = text_sniff,
	.read = text_read,
};
const struct reader reader_lis = {
	.name = "lis",
	.suffixes = ".lis ",
	.sniff = lis_sniff,
	.read = lis_read,
};
const struct reader reader_address = {
	.name = "address",
	.suffixes = "",
	.sniff = address_sniff,
	.read = address_read,
};
