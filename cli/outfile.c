/* SPDX-License-Identifier: MIT
 *
 * Streams on new files (base/newfile.h), and standard output as one of them.
 */
#include "cli/outfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

static int fail(const struct outfile *output, int code, struct err *err)
{
	return err_set(err, code, "%s: %s",
		       is_stdout(output->path) ? "standard output" : output->path, strerror(-code));
}

int outfile_open(struct outfile *output, const char *path, struct err *err)
{
	int fd;

	*output = (struct outfile){.path = path};
	if (is_stdout(path)) {
		output->stream = stdout;
		return 0;
	}
	fd = newfile_open(&output->file, path, false);
	if (fd < 0)
		return fail(output, fd, err);
	output->stream = fdopen(fd, "w");
	if (output->stream)
		return 0;
	close(fd);
	fd = fail(output, -ENOMEM, err);
	outfile_discard(output);
	return fd;
}

int outfile_flush(struct outfile *output, struct err *err)
{
	int code = 0;

	if (fflush(output->stream) || ferror(output->stream))
		code = fail(output, errno ? -errno : -EIO, err);
	if (code)
		outfile_discard(output);
	return code;
}

int outfile_commit(struct outfile *output, struct err *err)
{
	int code = 0;

	if (fflush(output->stream) || ferror(output->stream))
		code = errno ? -errno : -EIO;
	if (output->stream != stdout) {
		if (fclose(output->stream) && !code)
			code = -errno;
		output->stream = NULL;
	}
	if (!code)
		code = newfile_commit(&output->file, output->path ? output->path : "-");
	if (code)
		code = fail(output, code, err);
	outfile_discard(output);
	return code;
}

void outfile_discard(struct outfile *output)
{
	if (output->stream && output->stream != stdout)
		fclose(output->stream);
	newfile_discard(&output->file);
	*output = (struct outfile){0};
}

int outfile_check(const char *path, struct err *err)
{
	struct outfile output;
	struct stat st;
	int r;

	if (is_stdout(path))
		return 0;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			return err_set(err, -EISDIR, "%s: %s", path, strerror(EISDIR));
		return access(path, W_OK) ? err_set(err, -EACCES, "%s: %s", path, strerror(errno))
					  : 0;
	}
	r = outfile_open(&output, path, err);
	if (!r)
		outfile_discard(&output);
	return r;
}

bool outfile_is_same(const char *a, const char *b)
{
	struct stat x, y;

	if (!strcmp(a, b))
		return true;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Devices and pipes lose nothing: /dev/null may be many outputs, a terminal input and output. */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

int outfile_check_inputs(const char *path, size_t nr, char *const *inputs, struct err *err)
{
	if (is_stdout(path) || is_special(path))
		return 0;
	for (size_t i = 0; i < nr; i++) {
		if (outfile_is_same(path, inputs[i]))
			return err_set(err, -EINVAL, "%s: the output would replace the input %s",
				       path, inputs[i]);
	}
	return 0;
}

/* -EINVAL if the two outputs are one file or both standard output. */
static int check_apart(const char *option, const char *path, const char *output, struct err *err)
{
	bool both = is_stdout(path) && is_stdout(output);

	if (!both && (is_stdout(path) || is_stdout(output) || is_special(path) ||
		      !outfile_is_same(path, output)))
		return 0;
	return err_set(err, -EINVAL, "%s and --output are both %s", option,
		       both ? "standard output" : path);
}

int outfile_check_both(const char *option, const char *path, const char *output, size_t nr,
		       char *const *inputs, struct err *err)
{
	int r = path ? check_apart(option, path, output, err) : 0;

	if (!r && path)
		r = outfile_check_inputs(path, nr, inputs, err);
	if (!r && path)
		r = outfile_check(path, err);
	if (!r)
		r = outfile_check_inputs(output, nr, inputs, err);
	return r ? r : outfile_check(output, err);
}

int outfile_write(const char *path, const char *text, struct err *err)
{
	struct outfile output;
	int r = outfile_open(&output, path, err);

	if (r)
		return r;
	fputs(text, output.stream);
	return outfile_commit(&output, err);
}
