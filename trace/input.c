/* SPDX-License-Identifier: MIT
 *
 * The window slides: what readers have consumed is dropped when more is wanted, and the window
 * grows only for a reader that asks for more than it holds (one block of Foliage's own format, one
 * long line). Packed files are recognized by their first bytes, never by their name.
 */
#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RAW_BUFFER = 128 << 10,
	LONGEST_LINE = 64 << 10,
	/* One spare byte behind the window, where a last line gets its zero. */
	SPARE = 1,
};

int input_raw_more(struct input *in, struct err *err)
{
	ssize_t n;

	if (in->raw_pos < in->raw_end || in->raw_eof)
		return 0;
	in->raw_base += in->raw_end;
	in->raw_pos = in->raw_end = 0;
	if (in->fd < 0) {
		in->raw_eof = true;
		return 0;
	}
	do {
		n = read(in->fd, in->raw, in->raw_size);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		int code = -errno;

		return err_set(err, code, "%s: byte %llu: %s", in->name,
			       (unsigned long long)in->raw_base, strerror(-code));
	}
	in->raw_end = (size_t)n;
	in->raw_eof = n == 0;
	return 0;
}

int input_bad_packing(struct input *in, struct err *err, const char *reason)
{
	return err_set(err, -EILSEQ, "%s: byte %llu of the packed file: corrupt %s data: %s",
		       in->name, (unsigned long long)(in->raw_base + in->raw_pos),
		       in->unpacker->name, reason);
}

int input_truncated_packing(struct input *in, struct err *err)
{
	in->truncated = true;
	return err_set(err, -EILSEQ, "%s: byte %llu of the packed file: truncated inside %s data",
		       in->name, (unsigned long long)(in->raw_base + in->raw_pos),
		       in->unpacker->name);
}

static int plain_run(struct input *in, uint8_t *out, size_t room, size_t *got, struct err *err)
{
	int code = input_raw_more(in, err);

	if (code)
		return code;
	*got = in->raw_end - in->raw_pos;
	if (*got > room)
		*got = room;
	memcpy(out, in->raw + in->raw_pos, *got);
	in->raw_pos += *got;
	return 0;
}

static const struct unpacker plain = {.name = "none", .run = plain_run};

/* Enough of the head must be in raw to tell the packing; a pipe may deliver it byte by byte. */
static int raw_head(struct input *in, struct err *err)
{
	while (in->fd >= 0 && in->raw_end < 8) {
		ssize_t n = read(in->fd, in->raw + in->raw_end, in->raw_size - in->raw_end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int code = -errno;

			return err_set(err, code, "%s: %s", in->name, strerror(-code));
		}
		if (n == 0)
			break;
		in->raw_end += (size_t)n;
	}
	return 0;
}

static int input_start(struct input *in, struct err *err)
{
	const char *missing = NULL;
	int code = raw_head(in, err);

	if (code)
		return code;
	in->between = true;
	in->unpacker = unpacker_find(in->raw, in->raw_end, &missing);
	if (missing)
		return err_set(err, -ENOTSUP, "%s: packed, and this build has no %s to unpack it",
			       in->name, missing);
	if (!in->unpacker)
		in->unpacker = &plain;
	if (in->unpacker->open)
		return in->unpacker->open(in, err);
	return 0;
}

static struct input *input_new(const char *name, size_t raw_size)
{
	struct input *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->fd = -1;
	in->name = strdup(name);
	in->size = INPUT_WINDOW;
	in->buf = malloc(in->size + SPARE);
	in->raw_size = raw_size;
	in->raw = malloc(raw_size ? raw_size : 1);
	if (in->name && in->buf && in->raw)
		return in;
	input_close(in);
	return NULL;
}

static int input_finish_open(struct input *in, struct input **out, struct err *err)
{
	int code = input_start(in, err);

	if (code)
		input_close(in);
	else
		*out = in;
	return code;
}

int input_open(const char *path, struct input **out, struct err *err)
{
	bool standard = !strcmp(path, "-");
	struct input *in = input_new(standard ? "standard input" : path, RAW_BUFFER);

	if (!in)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	in->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (in->fd < 0) {
		int code = -errno;

		err_set(err, code, "%s: %s", in->name, strerror(-code));
		input_close(in);
		return code;
	}
	return input_finish_open(in, out, err);
}

int input_open_memory(const void *data, size_t bytes, const char *name, struct input **out,
		      struct err *err)
{
	struct input *in = input_new(name, bytes);

	if (!in)
		return err_set(err, -ENOMEM, "%s: no memory", name);
	if (bytes)
		memcpy(in->raw, data, bytes);
	in->raw_end = bytes;
	return input_finish_open(in, out, err);
}

void input_close(struct input *in)
{
	if (!in)
		return;
	if (in->unpacker && in->unpacker->close)
		in->unpacker->close(in);
	if (in->fd >= 0)
		close(in->fd);
	free(in->raw);
	free(in->buf);
	free(in->name);
	free(in);
}

const char *input_packing(const struct input *in)
{
	return in->unpacker->name;
}

static int window_make_room(struct input *in, size_t want, struct err *err)
{
	if (in->pos) {
		memmove(in->buf, in->buf + in->pos, in->end - in->pos);
		in->base += in->pos;
		in->end -= in->pos;
		in->pos = 0;
	}
	if (want > in->size) {
		uint8_t *buf = realloc(in->buf, want + SPARE);

		if (!buf)
			return err_set(err, -ENOMEM, "%s: no memory", in->name);
		in->buf = buf;
		in->size = want;
	}
	return 0;
}

ssize_t input_fill(struct input *in, size_t want, struct err *err)
{
	int code;

	if (in->end - in->pos >= want || in->eof)
		return (ssize_t)(in->end - in->pos);
	code = window_make_room(in, want, err);
	if (code)
		return code;
	while (in->end < want) {
		size_t got = 0;

		code = in->unpacker->run(in, in->buf + in->end, in->size - in->end, &got, err);
		if (code)
			return code;
		if (!got) {
			in->eof = true;
			break;
		}
		in->end += got;
	}
	return (ssize_t)in->end;
}

int input_line(struct input *in, char **line, size_t *length, struct err *err)
{
	uint8_t *start, *newline;
	size_t seen = 0, n;

	for (;;) {
		ssize_t have = input_fill(in, seen + 1, err);

		if (have < 0)
			return (int)have;
		start = in->buf + in->pos;
		newline = memchr(start + seen, '\n', (size_t)have - seen);
		if (newline || (size_t)have == seen)
			break;
		seen = (size_t)have;
		if (seen > LONGEST_LINE)
			return err_set(
				err, -EILSEQ, "%s: byte %llu: a line longer than %d bytes: no text",
				in->name, (unsigned long long)input_offset(in), LONGEST_LINE);
	}
	if (!newline && !seen)
		return 0;
	n = newline ? (size_t)(newline - start) : seen;
	in->pos += n + (newline != NULL);
	if (n && start[n - 1] == '\r')
		n--;
	start[n] = 0;
	*line = (char *)start;
	*length = n;
	return 1;
}
