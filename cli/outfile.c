/* SPDX-License-Identifier: MIT
 *
 * A file grows under a temporary name in its own folder and is renamed when it is whole, so that
 * readers see the old content or the new, never a part.
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

/* The permissions of a newly made file: the temporary one was made private. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static int open_temporary(struct outfile *output, mode_t mode)
{
	int fd, code;

	if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0) {
		output->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkstemp(output->temporary);
	if (fd < 0) {
		code = -errno;
		free(output->temporary);
		output->temporary = NULL;
		return code;
	}
	fchmod(fd, mode);
	output->stream = fdopen(fd, "w");
	if (output->stream)
		return 0;
	close(fd);
	outfile_discard(output);
	return -ENOMEM;
}

int outfile_open(struct outfile *output, const char *path, struct err *err)
{
	struct stat st;
	bool exists;
	int r;

	*output = (struct outfile){.path = path};
	if (is_stdout(path)) {
		output->stream = stdout;
		return 0;
	}
	exists = !stat(path, &st);
	if (exists && !S_ISREG(st.st_mode)) {
		output->stream = fopen(path, "w");
		return output->stream ? 0 : fail(output, -errno, err);
	}
	r = open_temporary(output, exists ? st.st_mode & 07777 : usual_mode());
	return r ? fail(output, r, err) : 0;
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
	if (!code && output->temporary && rename(output->temporary, output->path))
		code = -errno;
	if (code) {
		code = fail(output, code, err);
	} else if (output->temporary) {
		free(output->temporary);
		output->temporary = NULL;
	}
	outfile_discard(output);
	return code;
}

void outfile_discard(struct outfile *output)
{
	if (output->stream && output->stream != stdout)
		fclose(output->stream);
	if (output->temporary)
		unlink(output->temporary);
	free(output->temporary);
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

int outfile_write(const char *path, const char *text, struct err *err)
{
	struct outfile output;
	int r = outfile_open(&output, path, err);

	if (r)
		return r;
	fputs(text, output.stream);
	return outfile_commit(&output, err);
}
