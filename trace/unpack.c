/* SPDX-License-Identifier: MIT
 *
 * Unpackers: zstd, gzip and xz, each over its own library, all streaming and all accepting several
 * frames in a row. The end of the file is good only between two frames; anywhere else the file is
 * truncated.
 */
#include "trace/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#ifdef HAVE_ZSTD
#include <zstd.h>

static int zstd_open(struct input *in, struct err *err)
{
	in->state = ZSTD_createDStream();
	return in->state ? 0 : err_set(err, -ENOMEM, "%s: no memory", in->name);
}

static int zstd_run(struct input *in, uint8_t *out, size_t room, size_t *got, struct err *err)
{
	ZSTD_outBuffer to = {out, room, 0};

	for (;;) {
		ZSTD_inBuffer from;
		size_t hint;
		int code = input_raw_more(in, err);

		if (code)
			return code;
		if (in->raw_eof && in->between)
			break;
		from = (ZSTD_inBuffer){in->raw, in->raw_end, in->raw_pos};
		hint = ZSTD_decompressStream(in->state, &to, &from);
		in->raw_pos = from.pos;
		if (ZSTD_isError(hint))
			return input_bad_packing(in, err, ZSTD_getErrorName(hint));
		in->between = hint == 0;
		if (to.pos)
			break;
		if (in->raw_eof && !in->between)
			return input_truncated_packing(in, err);
	}
	*got = to.pos;
	return 0;
}

static void zstd_close(struct input *in)
{
	ZSTD_freeDStream(in->state);
}

static const struct unpacker zstd_unpacker = {
	.name = "zstd",
	.open = zstd_open,
	.run = zstd_run,
	.close = zstd_close,
};
#define ZSTD_UNPACKER (&zstd_unpacker)
#else
#define ZSTD_UNPACKER NULL
#endif

#ifdef HAVE_ZLIB
#include <zlib.h>

static int gzip_open(struct input *in, struct err *err)
{
	z_stream *z = calloc(1, sizeof(*z));

	/* 15 bits of window; 16 more ask for gzip's header and trailer. */
	if (!z || inflateInit2(z, 15 + 16) != Z_OK) {
		free(z);
		return err_set(err, -ENOMEM, "%s: no memory", in->name);
	}
	in->state = z;
	return 0;
}

static int gzip_run(struct input *in, uint8_t *out, size_t room, size_t *got, struct err *err)
{
	z_stream *z = in->state;

	z->next_out = out;
	z->avail_out = (uInt)room;
	while (z->avail_out == room) {
		int code = input_raw_more(in, err);

		if (code)
			return code;
		if (in->raw_eof) {
			if (in->between)
				break;
			return input_truncated_packing(in, err);
		}
		z->next_in = in->raw + in->raw_pos;
		z->avail_in = (uInt)(in->raw_end - in->raw_pos);
		in->between = false;
		code = inflate(z, Z_NO_FLUSH);
		in->raw_pos = in->raw_end - z->avail_in;
		if (code == Z_STREAM_END) {
			in->between = true;
			inflateReset(z);
		} else if (code != Z_OK && code != Z_BUF_ERROR) {
			return input_bad_packing(in, err, z->msg ? z->msg : "unreadable");
		}
	}
	*got = room - z->avail_out;
	return 0;
}

static void gzip_close(struct input *in)
{
	if (in->state)
		inflateEnd(in->state);
	free(in->state);
}

static const struct unpacker gzip_unpacker = {
	.name = "gzip",
	.open = gzip_open,
	.run = gzip_run,
	.close = gzip_close,
};
#define ZLIB_UNPACKER (&gzip_unpacker)
#else
#define ZLIB_UNPACKER NULL
#endif

#ifdef HAVE_LZMA
#include <lzma.h>

/* What the decoder may take; xz -9 needs 65 MiB. */
#define XZ_MEMORY (UINT64_C(512) << 20)

static int xz_open(struct input *in, struct err *err)
{
	lzma_stream *x = calloc(1, sizeof(*x));

	if (!x || lzma_stream_decoder(x, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
		free(x);
		return err_set(err, -ENOMEM, "%s: no memory", in->name);
	}
	in->state = x;
	return 0;
}

static int xz_failed(struct input *in, lzma_ret code, struct err *err)
{
	switch (code) {
	case LZMA_BUF_ERROR:
		return input_truncated_packing(in, err);
	case LZMA_MEM_ERROR:
		return err_set(err, -ENOMEM, "%s: no memory", in->name);
	case LZMA_MEMLIMIT_ERROR:
		return input_bad_packing(in, err, "wants more than 512 MiB to unpack");
	case LZMA_OPTIONS_ERROR:
		return input_bad_packing(in, err, "options this library does not know");
	default:
		return input_bad_packing(in, err, "bad data or check");
	}
}

static int xz_run(struct input *in, uint8_t *out, size_t room, size_t *got, struct err *err)
{
	lzma_stream *x = in->state;

	*got = 0;
	if (in->raw_eof && in->between)
		return 0;
	in->between = false;
	x->next_out = out;
	x->avail_out = room;
	while (x->avail_out == room) {
		int code = input_raw_more(in, err);
		lzma_ret ret;

		if (code)
			return code;
		x->next_in = in->raw + in->raw_pos;
		x->avail_in = in->raw_end - in->raw_pos;
		ret = lzma_code(x, in->raw_eof ? LZMA_FINISH : LZMA_RUN);
		in->raw_pos = in->raw_end - x->avail_in;
		if (ret == LZMA_STREAM_END) {
			in->between = true;
			break;
		}
		if (ret != LZMA_OK)
			return xz_failed(in, ret, err);
	}
	*got = room - x->avail_out;
	return 0;
}

static void xz_close(struct input *in)
{
	if (in->state)
		lzma_end(in->state);
	free(in->state);
}

static const struct unpacker xz_unpacker = {
	.name = "xz",
	.open = xz_open,
	.run = xz_run,
	.close = xz_close,
};
#define LZMA_UNPACKER (&xz_unpacker)
#else
#define LZMA_UNPACKER NULL
#endif

const struct unpacker *unpacker_find(const uint8_t *head, size_t bytes, const char **missing)
{
	static const struct {
		const char *magic, *library;
		size_t bytes;
		const struct unpacker *unpacker;
	} packings[] = {
		{"\x28\xb5\x2f\xfd", "libzstd", 4, ZSTD_UNPACKER},
		{"\x1f\x8b\x08", "zlib", 3, ZLIB_UNPACKER},
		{"\xfd"
		 "7zXZ",
		 "liblzma", 6, LZMA_UNPACKER},
	};

	*missing = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(packings); i++) {
		if (bytes < packings[i].bytes ||
		    memcmp(head, packings[i].magic, packings[i].bytes) != 0)
			continue;
		if (!packings[i].unpacker)
			*missing = packings[i].library;
		return packings[i].unpacker;
	}
	return NULL;
}
