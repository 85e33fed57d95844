/* SPDX-License-Identifier: MIT
 *
 * What a format is made of: one `struct reader` a format, in the table of trace.c.
 */
#ifndef FOLIAGE_TRACE_READER_H
#define FOLIAGE_TRACE_READER_H

#include "trace/input.h"
#include "trace/names.h"
#include "trace/trace.h"

struct reader {
	const char *name;
	const char
		*suffixes; /* ".a .b ": each followed by a space; "" when the name says nothing */
	/* Could `head` begin such a trace? `whole`: nothing follows it. NULL: only by name or on
	 * request. */
	bool (*sniff)(const uint8_t *head, size_t bytes, bool whole);
	int (*open)(struct trace *trace, const struct trace_options *options, struct err *err);
	ssize_t (*read)(struct trace *trace, struct trace_record *records, size_t max,
			struct err *err);
	void (*close)(struct trace *trace); /* frees trace->state */
};

struct trace {
	struct input *in;
	const struct reader *reader;
	const char *path; /* in->name */
	bool objects;
	uint64_t place; /* records or lines read so far */
	void *state;    /* the reader's */
	struct names files, processes;
	int failed; /* sticky */
	bool done;
};

extern const struct reader reader_foliage, reader_foliage_partial, reader_oracle, reader_vscsi,
	reader_u32, reader_u64, reader_csv, reader_text, reader_lis, reader_iolog, reader_address;

/* For formats of records of `size` bytes: how many whole ones are in the window, at most `max`; 0
 * at the end. */
ssize_t reader_fixed(struct trace *trace, size_t size, size_t max, struct err *err);

/* "FILE: record N (byte B): reason" / "FILE: line N: reason"; both return -EILSEQ. */
int reader_bad_record(struct trace *trace, uint64_t byte, struct err *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int reader_bad_line(struct trace *trace, struct err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The next line that is neither empty nor a comment (#), without blanks in front: 1, 0 or a
 * negative errno. */
int reader_line(struct trace *trace, char **line, struct err *err);

/* Parse one unsigned number, decimal or 0x hexadecimal, move *text behind it. False: none, or over
 * 64 bits. */
bool reader_number(char **text, uint64_t *number);
/* Blanks; returns the text behind them. */
char *reader_blanks(char *text);
/* True when the first line of `head` is text that `match` likes. */
bool reader_sniff_line(const uint8_t *head, size_t bytes, bool (*match)(char *line));

/* The pages that bytes offset..offset+bytes touch; at least one. False: too many. */
bool reader_set_bytes(struct trace_record *record, uint64_t offset, uint64_t bytes);
/* The same, from a sector of 512 bytes on, with no limit on the sector's number. */
bool reader_set_sectors(struct trace_record *record, uint64_t sector, uint64_t bytes);

#endif
