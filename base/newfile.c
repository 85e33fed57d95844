/* SPDX-License-Identifier: MIT
 *
 * The temporary name is the path and six letters; one that exists is never opened. The file is made
 * with the usual permissions rather than as private: asking for the umask means to change it, which
 * other threads would notice.
 */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"

enum { ATTEMPTS = 100, LETTERS = 6 };

static uint64_t some_seed(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)getpid() << 32 ^ (uint64_t)t.tv_sec << 30 ^ (uint64_t)t.tv_nsec;
}

static int open_temporary(struct newfile *file, const char *path)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t seed = some_seed();
	int length = asprintf(&file->temporary, "%s.XXXXXX", path), fd = -1;

	if (length < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
		for (int j = 1; j <= LETTERS; j++)
			file->temporary[length - j] =
				letters[splitmix64_below(&seed, sizeof(letters) - 1)];
		fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd >= 0)
		return fd;
	fd = -errno;
	free(file->temporary);
	file->temporary = NULL;
	return fd;
}

int newfile_open(struct newfile *file, const char *path, bool in_place)
{
	struct stat st;
	bool exists = !stat(path, &st);
	int fd;

	file->temporary = NULL;
	if (in_place || (exists && !S_ISREG(st.st_mode))) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
		return fd < 0 ? -errno : fd;
	}
	fd = open_temporary(file, path);
	/* Where that is refused the new file has the usual permissions. */
	if (fd >= 0 && exists && fchmod(fd, st.st_mode & 07777))
		errno = 0;
	return fd;
}

int newfile_commit(struct newfile *file, const char *path)
{
	int code = file->temporary && rename(file->temporary, path) ? -errno : 0;

	if (code) {
		newfile_discard(file);
		return code;
	}
	free(file->temporary);
	file->temporary = NULL;
	return 0;
}

void newfile_discard(struct newfile *file)
{
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	file->temporary = NULL;
}
