/* SPDX-License-Identifier: MIT
 *
 * Input: the bytes of a trace file, unpacked, as a sliding window that readers look at in place.
 */
#ifndef FOLIAGE_TRACE_INPUT_H
#define FOLIAGE_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct input;

/* One way of packing. run() appends up to `room` bytes at `out`; *got = 0 means the end. */
struct unpacker {
	const char *name; /* "zstd" */
	int (*open)(struct input *in, struct err *err);
	int (*run)(struct input *in, uint8_t *out, size_t room, size_t *got, struct err *err);
	void (*close)(struct input *in);
};

struct input {
	char *name; /* for messages */
	/* The window: bytes pos..end of buf are unread; buf[0] is byte `base` of the unpacked data.
	 */
	uint8_t *buf;
	size_t pos, end, size;
	uint64_t base;
	bool eof;       /* nothing follows the window */
	bool truncated; /* the packed data ended inside a frame */

	/* Below: the packed side, for unpackers. */
	const struct unpacker *unpacker;
	void *state;
	bool between; /* between two frames: the data may end here */
	int fd;       /* -1: all bytes are in raw */
	uint8_t *raw;
	size_t raw_pos, raw_end, raw_size;
	uint64_t raw_base;
	bool raw_eof;
};

enum { INPUT_WINDOW = 256 << 10 };

int input_open(const char *path, struct input **in, struct err *err);
/* The same for bytes in memory, which are copied; `name` is for messages. */
int input_open_memory(const void *data, size_t bytes, const char *name, struct input **in,
		      struct err *err);
void input_close(struct input *in);
const char *input_packing(const struct input *in); /* "none", "zstd", "gzip", "xz" */

/* Make `want` bytes available at buf + pos, fewer only at the end. Returns how many there are. */
ssize_t input_fill(struct input *in, size_t want, struct err *err);

/* The next line without its end, in the window until the next call: 1, 0 at the end, or a negative
 * errno. The line is followed by a zero byte. */
int input_line(struct input *in, char **line, size_t *length, struct err *err);

static inline uint64_t input_offset(const struct input *in)
{
	return in->base + in->pos;
}

/* For unpackers: read more packed bytes when none are left; sets raw_eof. */
int input_raw_more(struct input *in, struct err *err);
int input_bad_packing(struct input *in, struct err *err, const char *reason);
int input_truncated_packing(struct input *in, struct err *err);

/* By the first bytes; NULL: not packed. Sets *missing to the library that this build lacks. */
const struct unpacker *unpacker_find(const uint8_t *head, size_t bytes, const char **missing);

#endif
