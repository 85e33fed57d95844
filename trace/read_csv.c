/* SPDX-License-Identifier: MIT
 *
 * CSV: which column means what comes from trace_options.columns, "key=column,...", a column being a
 * header's name or a number from 1 on; or from a header whose names are known. Keys:
 *   page    page number             block   sector of 512 bytes        offset  byte offset or
 *           address
 *   size    bytes of the request    nr      pages of the request
 *   op      read, write, load, store, exec (or r, w, l, s, x, or a SCSI command in hexadecimal)
 *   file, process   names
 * Exactly one of page, block and offset. The separator is the first of comma, semicolon, tab and |
 * that the first line holds. A first line none of whose fields begins with a digit is a header.
 */
#include "trace/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum key {
	KEY_PAGE,
	KEY_BLOCK,
	KEY_OFFSET,
	KEY_SIZE,
	KEY_NR,
	KEY_OP,
	KEY_FILE,
	KEY_PROCESS,
	NR_KEYS
};

enum { MAX_FIELDS = 64 };

struct csv {
	int column[NR_KEYS]; /* -1: none */
	enum key where;      /* the one of page, block, offset */
	char separator;
	char *pending; /* a first line that was no header */
};

/* The names that a header may use, the key itself included. */
static const char *const synonyms[NR_KEYS] = {
	[KEY_PAGE] = " page id key obj_id object_id object ",
	[KEY_BLOCK] = " block lbn lba sector ",
	[KEY_OFFSET] = " offset addr address ",
	[KEY_SIZE] = " size bytes length len obj_size ",
	[KEY_NR] = " nr pages ",
	[KEY_OP] = " op operation type cmd command ",
	[KEY_FILE] = " file filename inode path ",
	[KEY_PROCESS] = " process pid comm ",
};

static const char *const key_names[NR_KEYS] = {"page", "block", "offset", "size",
					       "nr",   "op",    "file",   "process"};

/* Split in place; a field in double quotes may hold the separator, and "" for a quote. */
static int split(char *line, char separator, char **field)
{
	int n = 0;

	while (n < MAX_FIELDS) {
		char *to;

		line = separator == '\t' ? line : reader_blanks(line);
		field[n++] = to = line;
		if (*line == '"') {
			for (line++; *line && (*line != '"' || line[1] == '"'); line++) {
				line += *line == '"';
				*to++ = *line;
			}
			line += *line == '"';
		}
		while (*line && *line != separator)
			*to++ = *line++;
		if (!*line) {
			*to = 0;
			return n;
		}
		*to = 0;
		line++;
	}
	return n;
}

static int field_by_name(char *const *field, int n, const char *name, size_t length)
{
	for (int i = 0; i < n; i++)
		if (strlen(field[i]) == length && !strncasecmp(field[i], name, length))
			return i;
	return -1;
}

static bool in_list(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strcasestr(list, word); p && n; p = strcasestr(p + 1, word))
		if (p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

static void columns_by_header(struct csv *csv, char *const *field, int n)
{
	for (int key = 0; key < NR_KEYS; key++)
		for (int i = n; i-- > 0;)
			if (*field[i] && *field[i] != ' ' && in_list(synonyms[key], field[i]))
				csv->column[key] = i;
	/* A trace with several kinds of place: a page number says most, a block more than an
	 * offset. */
	for (int key = KEY_OFFSET; key > KEY_PAGE; key--)
		if (csv->column[key - 1] >= 0 || (key == KEY_OFFSET && csv->column[KEY_PAGE] >= 0))
			csv->column[key] = -1;
}

static int columns_by_text(struct trace *trace, struct csv *csv, const char *text,
			   char *const *field, int n, bool header, struct err *err)
{
	while (*text) {
		size_t length = strcspn(text, ","), equals = strcspn(text, "=,");
		const char *column = text + equals + 1;
		int key = 0, at;
		char *end;

		while (key < NR_KEYS && (strlen(key_names[key]) != equals ||
					 strncmp(key_names[key], text, equals) != 0))
			key++;
		if (key == NR_KEYS || equals == length || equals + 1 == length)
			return err_set(err, -EINVAL,
				       "%s: columns: '%.*s': need key=column, the keys being "
				       "page, block, offset, size, nr, op, file, process",
				       trace->path, (int)MIN(length, 40), text);
		length -= equals + 1;
		at = header ? field_by_name(field, n, column, length) : -1;
		if (at < 0) {
			unsigned long number = strtoul(column, &end, 10);

			if (end != column + length || number < 1 || number > (unsigned long)n)
				return err_set(err, -EINVAL,
					       "%s: columns: the first line has no column '%.*s'",
					       trace->path, (int)MIN(length, 40), column);
			at = (int)number - 1;
		}
		csv->column[key] = at;
		text = column + length;
		text += *text == ',';
	}
	return 0;
}

static int choose_where(struct trace *trace, struct csv *csv, bool header, int n, struct err *err)
{
	int found = 0;

	for (int key = KEY_PAGE; key <= KEY_OFFSET; key++) {
		if (csv->column[key] < 0)
			continue;
		csv->where = (enum key)key;
		found++;
	}
	if (!found && !header && n == 1) {
		csv->where = KEY_PAGE;
		csv->column[KEY_PAGE] = 0;
		found = 1;
	}
	if (found == 1)
		return 0;
	if (found > 1)
		return err_set(err, -EINVAL,
			       "%s: columns: only one of page, block and offset can be the place",
			       trace->path);
	return reader_bad_line(
		trace, err,
		"%s: say which columns hold page, block or offset, size, op (columns=...)",
		header ? "no column of a known name" : "no header");
}

static char find_separator(const char *line)
{
	for (const char *s = ",;\t|"; *s; s++)
		if (strchr(line, *s))
			return *s;
	return ',';
}

static int csv_open(struct trace *trace, const struct trace_options *options, struct err *err)
{
	struct csv *csv = calloc(1, sizeof(*csv));
	char *line, *field[MAX_FIELDS];
	bool header = true;
	int n, code;

	if (!csv)
		return err_set(err, -ENOMEM, "%s: no memory", trace->path);
	trace->state = csv;
	for (int key = 0; key < NR_KEYS; key++)
		csv->column[key] = -1;
	code = reader_line(trace, &line, err);
	if (code < 0)
		return code;
	if (!code)
		return err_set(err, -ENODATA, "%s: line 1: no line but comments", trace->path);
	csv->pending = strdup(line);
	if (!csv->pending)
		return err_set(err, -ENOMEM, "%s: no memory", trace->path);
	csv->separator = find_separator(line);
	n = split(line, csv->separator, field);
	for (int i = 0; i < n; i++)
		header &= *field[i] < '0' || *field[i] > '9';
	if (options && options->columns) {
		code = columns_by_text(trace, csv, options->columns, field, n, header, err);
		if (code)
			return code;
	} else if (header) {
		columns_by_header(csv, field, n);
	}
	if (header) {
		free(csv->pending);
		csv->pending = NULL;
	}
	return choose_where(trace, csv, header, n, err);
}

static bool parse_op(const char *text, uint8_t *op)
{
	static const struct {
		const char *names;
		enum trace_op op;
	} ops[] = {
		{" read r rs get 8 08 28 88 a8 0x8 0x08 0x28 0x88 0xa8 ", TRACE_READ},
		{" write w ws set put a 0a 2a 8a aa 0xa 0x0a 0x2a 0x8a 0xaa ", TRACE_WRITE},
		{" load l ", TRACE_LOAD},
		{" store s ", TRACE_STORE},
		{" exec x ", TRACE_EXEC},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (!strchr(text, ' ') && in_list(ops[i].names, text)) {
			*op = (uint8_t)ops[i].op;
			return true;
		}
	}
	return false;
}

static int parse_field(struct trace *trace, char *const *field, int at, uint64_t *number,
		       struct err *err)
{
	char *p = field[at];

	if (!reader_number(&p, number) || *reader_blanks(p))
		return reader_bad_line(trace, err, "column %d: '%.40s' is no number", at + 1,
				       field[at]);
	return 0;
}

static int parse_name(struct trace *trace, struct names *names, const char *text, uint32_t *number,
		      struct err *err)
{
	int code = *text ? names_intern(names, text, strlen(text), number) : 0;

	if (code == -E2BIG)
		return reader_bad_line(trace, err, "more than %u names", NAMES_MAX);
	return code ? err_set(err, code, "%s: no memory", trace->path) : 0;
}

/* Where the request is and how far it goes. */
static int parse_extent(struct trace *trace, const struct csv *csv, char *const *field,
			struct trace_record *r, struct err *err)
{
	uint64_t place = 0, size = 0, nr = 1;
	bool fits = true;
	int code = parse_field(trace, field, csv->column[csv->where], &place, err);

	if (!code && csv->column[KEY_SIZE] >= 0)
		code = parse_field(trace, field, csv->column[KEY_SIZE], &size, err);
	if (!code && csv->column[KEY_NR] >= 0)
		code = parse_field(trace, field, csv->column[KEY_NR], &nr, err);
	if (code)
		return code;
	r->page = place;
	r->nr = 1;
	if (trace->objects)
		return 0;
	if (csv->where == KEY_BLOCK)
		fits = reader_set_sectors(r, place, size);
	else if (csv->where == KEY_OFFSET)
		fits = reader_set_bytes(r, place, size);
	else if (reader_set_bytes(r, 0, size))
		r->page = place;
	else
		fits = false;
	if (csv->column[KEY_NR] >= 0)
		r->nr = (uint32_t)nr;
	if (!fits || nr > TRACE_REQUEST_MAX || !nr)
		return reader_bad_line(trace, err, "a request of %llu %s",
				       (unsigned long long)(fits ? nr : size),
				       fits ? "pages" : "bytes");
	return 0;
}

static int csv_parse(struct trace *trace, char *line, struct trace_record *r, struct err *err)
{
	const struct csv *csv = trace->state;
	char *field[MAX_FIELDS];
	int n = split(line, csv->separator, field), code;

	*r = (struct trace_record){0};
	for (int key = 0; key < NR_KEYS; key++)
		if (csv->column[key] >= n)
			return reader_bad_line(trace, err, "%d columns, column %d is wanted", n,
					       csv->column[key] + 1);
	code = parse_extent(trace, csv, field, r, err);
	if (!code && csv->column[KEY_OP] >= 0 && !parse_op(field[csv->column[KEY_OP]], &r->op))
		code = reader_bad_line(trace, err, "column %d: '%.40s' is no operation",
				       csv->column[KEY_OP] + 1, field[csv->column[KEY_OP]]);
	if (!code && csv->column[KEY_FILE] >= 0)
		code = parse_name(trace, &trace->files, field[csv->column[KEY_FILE]], &r->file,
				  err);
	if (!code && csv->column[KEY_PROCESS] >= 0)
		code = parse_name(trace, &trace->processes, field[csv->column[KEY_PROCESS]],
				  &r->process, err);
	return code;
}

static ssize_t csv_read(struct trace *trace, struct trace_record *records, size_t max,
			struct err *err)
{
	struct csv *csv = trace->state;
	size_t filled = 0;
	char *line;
	int code;

	if (csv->pending) {
		code = csv_parse(trace, csv->pending, &records[filled++], err);
		free(csv->pending);
		csv->pending = NULL;
		if (code)
			return code;
	}
	for (; filled < max; filled++) {
		code = reader_line(trace, &line, err);
		if (!code)
			break;
		if (code > 0)
			code = csv_parse(trace, line, &records[filled], err);
		if (code < 0)
			return code;
	}
	return (ssize_t)filled;
}

static void csv_close(struct trace *trace)
{
	struct csv *csv = trace->state;

	if (csv)
		free(csv->pending);
	free(csv);
}

static bool is_csv_line(char *line)
{
	return line[strcspn(line, ",;|")] != 0;
}

static bool csv_sniff(const uint8_t *head, size_t bytes, bool whole)
{
	(void)whole;
	return reader_sniff_line(head, bytes, is_csv_line);
}

const struct reader reader_csv = {
	.name = "csv",
	.suffixes = ".csv .tsv ",
	.sniff = csv_sniff,
	.open = csv_open,
	.read = csv_read,
	.close = csv_close,
};
