/* SPDX-License-Identifier: MIT
 *
 * Bytes on their way to a new file (base/newfile.h), through zstd when its name says so.
 */
#include "trace/output.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/newfile.h"

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

enum { OUTPUT_BUFFER = 128 << 10 };

struct output {
	char *path;
	struct newfile file;
	int fd;
	size_t used;
	uint8_t buf[OUTPUT_BUFFER];
#ifdef HAVE_ZSTD
	ZSTD_CStream *zstd; /* NULL: plain */
#endif
};

static int failed(const struct output *out, int code, struct err *err)
{
	return err_set(err, code, "%s: %s", out->path, strerror(-code));
}

static int write_all(struct output *out, const uint8_t *data, size_t bytes, struct err *err)
{
	while (bytes) {
		ssize_t n = write(out->fd, data, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(out, -errno, err);
		data += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int drain(struct output *out, struct err *err)
{
	size_t used = out->used;

	out->used = 0;
	return write_all(out, out->buf, used, err);
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcmp(path + n - m, suffix);
}

static int start_packing(struct output *out, struct err *err)
{
	if (has_suffix(out->path, ".gz") || has_suffix(out->path, ".xz"))
		return err_set(err, -EINVAL, "%s: only .zst packing is written", out->path);
	if (!has_suffix(out->path, ".zst"))
		return 0;
#ifdef HAVE_ZSTD
	out->zstd = ZSTD_createCStream();
	if (!out->zstd)
		return failed(out, -ENOMEM, err);
	ZSTD_CCtx_setParameter(out->zstd, ZSTD_c_compressionLevel, 9);
	ZSTD_CCtx_setParameter(out->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
#else
	return err_set(err, -ENOTSUP, "%s: this build has no libzstd to pack it", out->path);
#endif
}

static int open_target(struct output *out, bool in_place, struct err *err)
{
	if (!strcmp(out->path, "-")) {
		out->fd = dup(STDOUT_FILENO);
		if (out->fd < 0)
			return failed(out, -errno, err);
	} else {
		out->fd = newfile_open(&out->file, out->path, in_place);
		if (out->fd < 0)
			return failed(out, out->fd, err);
	}
	return start_packing(out, err);
}

int output_open(const char *path, bool in_place, struct output **result, struct err *err)
{
	struct output *out = calloc(1, sizeof(*out));
	int code;

	if (!out)
		return err_set(err, -ENOMEM, "%s: no memory", path);
	out->fd = -1;
	out->path = strdup(path);
	if (!out->path) {
		free(out);
		return err_set(err, -ENOMEM, "%s: no memory", path);
	}
	code = open_target(out, in_place, err);
	if (code)
		output_discard(out);
	else
		*result = out;
	return code;
}

#ifdef HAVE_ZSTD
static int pack(struct output *out, const void *data, size_t bytes, ZSTD_EndDirective how,
		struct err *err)
{
	ZSTD_inBuffer from = {data, bytes, 0};
	size_t left;

	do {
		ZSTD_outBuffer to = {out->buf, sizeof(out->buf), out->used};

		left = ZSTD_compressStream2(out->zstd, &to, &from, how);
		if (ZSTD_isError(left))
			return err_set(err, -EIO, "%s: packing: %s", out->path,
				       ZSTD_getErrorName(left));
		out->used = to.pos;
		if (out->used == sizeof(out->buf)) {
			int code = drain(out, err);

			if (code)
				return code;
		}
	} while (from.pos < from.size || (how != ZSTD_e_continue && left));
	return 0;
}
#endif

int output_put(struct output *out, const void *data, size_t bytes, struct err *err)
{
#ifdef HAVE_ZSTD
	if (out->zstd)
		return pack(out, data, bytes, ZSTD_e_continue, err);
#endif
	if (out->used + bytes > sizeof(out->buf)) {
		int code = drain(out, err);

		if (code)
			return code;
	}
	if (bytes > sizeof(out->buf))
		return write_all(out, data, bytes, err);
	memcpy(out->buf + out->used, data, bytes);
	out->used += bytes;
	return 0;
}

int output_flush(struct output *out, struct err *err)
{
#ifdef HAVE_ZSTD
	int code = out->zstd ? pack(out, NULL, 0, ZSTD_e_flush, err) : 0;

	if (code)
		return code;
#endif
	return drain(out, err);
}

static void output_free(struct output *out)
{
#ifdef HAVE_ZSTD
	ZSTD_freeCStream(out->zstd);
#endif
	if (out->fd >= 0)
		close(out->fd);
	newfile_discard(&out->file); /* unless it has its name */
	free(out->path);
	free(out);
}

int output_commit(struct output *out, struct err *err)
{
	int code = 0, fd;

#ifdef HAVE_ZSTD
	if (out->zstd)
		code = pack(out, NULL, 0, ZSTD_e_end, err);
#endif
	if (!code)
		code = drain(out, err);
	if (code) {
		output_discard(out);
		return code;
	}
	fd = out->fd;
	out->fd = -1;
	code = close(fd) ? -errno : newfile_commit(&out->file, out->path);
	if (code)
		failed(out, code, err);
	output_free(out);
	return code;
}

void output_discard(struct output *out)
{
	if (out)
		output_free(out);
}
