/* SPDX-License-Identifier: MIT
 *
 * What the readers share: records of fixed size, lines, numbers, the pages of a byte range, and
 * messages that name the place.
 */
#include "trace/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ssize_t reader_fixed(struct trace *trace, size_t size, size_t max, struct err *err)
{
	struct input *in = trace->in;
	size_t whole = (in->end - in->pos) / size;

	if (!whole) {
		ssize_t have = input_fill(in, size, err);

		if (have <= 0)
			return have;
		if ((size_t)have < size)
			return reader_bad_record(trace, input_offset(in), err,
						 "truncated: %zd of the %zu bytes of a record",
						 have, size);
		whole = (in->end - in->pos) / size;
	}
	return (ssize_t)(whole < max ? whole : max);
}

int reader_bad_record(struct trace *trace, uint64_t byte, struct err *err, const char *format, ...)
{
	char reason[200];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return err_set(err, -EILSEQ, "%s: record %llu (byte %llu): %s", trace->path,
		       (unsigned long long)trace->place + 1, (unsigned long long)byte, reason);
}

int reader_bad_line(struct trace *trace, struct err *err, const char *format, ...)
{
	char reason[200];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	for (char *p = reason; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	return err_set(err, -EILSEQ, "%s: line %llu: %s", trace->path,
		       (unsigned long long)trace->place, reason);
}

char *reader_blanks(char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

int reader_line(struct trace *trace, char **line, struct err *err)
{
	size_t length;
	int code;

	while ((code = input_line(trace->in, line, &length, err)) == 1) {
		trace->place++;
		if (strlen(*line) != length)
			return reader_bad_line(trace, err, "a zero byte: no text");
		*line = reader_blanks(*line);
		if (**line && **line != '#')
			break;
	}
	return code;
}

static bool hex_number(char **text, uint64_t *number)
{
	char *p = *text;
	uint64_t n = 0;

	for (;; p++) {
		char c = *p;
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (unsigned int)((c | 32) - 'a' + 10);
		else
			break;
		if (n >> 60)
			return false;
		n = n << 4 | digit;
	}
	if (p == *text)
		return false;
	*text = p;
	*number = n;
	return true;
}

bool reader_number(char **text, uint64_t *number)
{
	char *p = *text;
	uint64_t n = 0;

	if (p[0] == '0' && (p[1] | 32) == 'x') {
		*text += 2;
		return hex_number(text, number);
	}
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (unsigned int)(*p - '0'), &n))
			return false;
	if (p == *text)
		return false;
	*text = p;
	*number = n;
	return true;
}

static bool is_text(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] < ' ' && !memchr("\t\r\n", bytes[i], 3))
			return false;
	return true;
}

bool reader_sniff_line(const uint8_t *head, size_t bytes, bool (*match)(char *line))
{
	char line[512];

	if (!is_text(head, bytes))
		return false;
	while (bytes) {
		const uint8_t *newline = memchr(head, '\n', bytes);
		size_t n = newline ? (size_t)(newline - head) : bytes;
		char *text;

		if (n >= sizeof(line))
			return false;
		memcpy(line, head, n);
		line[n] = 0;
		line[strcspn(line, "\r")] = 0;
		text = reader_blanks(line);
		if (*text && *text != '#')
			return match(text);
		head += n + (newline != NULL);
		bytes -= n + (newline != NULL);
	}
	return false;
}

static bool set_pages(struct trace_record *record, uint64_t page, unsigned int within,
		      uint64_t bytes)
{
	uint64_t nr;

	if (bytes > (uint64_t)TRACE_REQUEST_MAX << TRACE_PAGE_SHIFT)
		return false;
	nr = (within + (bytes ? bytes : 1) + (1u << TRACE_PAGE_SHIFT) - 1) >> TRACE_PAGE_SHIFT;
	record->page = page;
	record->nr = (uint32_t)nr;
	return nr <= TRACE_REQUEST_MAX;
}

bool reader_set_bytes(struct trace_record *record, uint64_t offset, uint64_t bytes)
{
	unsigned int within = (unsigned int)(offset & ((1u << TRACE_PAGE_SHIFT) - 1));

	return set_pages(record, offset >> TRACE_PAGE_SHIFT, within, bytes);
}

bool reader_set_sectors(struct trace_record *record, uint64_t sector, uint64_t bytes)
{
	return set_pages(record, sector >> 3, (unsigned int)(sector & 7) << 9, bytes);
}
