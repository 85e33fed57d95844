/* SPDX-License-Identifier: MIT
 *
 * The smallest FUSE passthrough of one file, for bench/mount.sh to compare `foliage mount` with:
 * libfuse's multi-threaded loop, direct_io, pread() into a buffer and pwrite() on the file. What it
 * takes is what the kernel, libfuse and the system's own page cache take.
 *
 * usage: bench_passthrough FILE MOUNTPOINT THREADS    (the file appears as MOUNTPOINT/file)
 */
#if __has_include(<fuse3/fuse_lowlevel.h>)

#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NODE = 2, FOREVER = 86400 };

static int fd_of(fuse_req_t req)
{
	return *(int *)fuse_req_userdata(req);
}

static void get(fuse_req_t req, fuse_ino_t number, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (number == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0755;
		st->st_nlink = 2;
	} else {
		fstat(fd_of(req), st);
	}
	st->st_ino = number;
}

static void bare_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	get(req, number, &st);
	fuse_reply_attr(req, &st, FOREVER);
}

static void bare_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = FILE_NODE, .attr_timeout = FOREVER, .entry_timeout = FOREVER};

	(void)parent;
	if (strcmp(name, "file") != 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	get(req, FILE_NODE, &entry.attr);
	fuse_reply_entry(req, &entry);
}

static void bare_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)number;
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
}

static void bare_read(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
		      struct fuse_file_info *fi)
{
	char *buffer = malloc(bytes);
	ssize_t n = buffer ? pread(fd_of(req), buffer, bytes, offset) : -1;

	(void)number;
	(void)fi;
	if (n < 0)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_buf(req, buffer, (size_t)n);
	free(buffer);
}

static void bare_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t bytes,
		       off_t offset, struct fuse_file_info *fi)
{
	ssize_t n = pwrite(fd_of(req), data, bytes, offset);

	(void)number;
	(void)fi;
	if (n < 0)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_write(req, (size_t)n);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = bare_lookup,
	.getattr = bare_getattr,
	.open = bare_open,
	.read = bare_read,
	.write = bare_write,
};

static int serve(struct fuse_session *session, unsigned int threads)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int code;

	fuse_loop_cfg_set_clone_fd(config, threads > 1);
	fuse_loop_cfg_set_max_threads(config, threads);
	code = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return code;
}

int main(int argc, char **argv)
{
	char *words[] = {argv[0], (char *)"-o", (char *)"fsname=bench_passthrough", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_session *session;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_passthrough FILE MOUNTPOINT THREADS\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR);
	session = fd < 0 ? NULL : fuse_session_new(&args, &operations, sizeof(operations), &fd);
	if (!session || fuse_session_mount(session, argv[2])) {
		fprintf(stderr, "bench_passthrough: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fuse_set_signal_handlers(session);
	puts("ready");
	fflush(stdout);
	serve(session, (unsigned int)atoi(argv[3]));
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	close(fd);
	return 0;
}

#else

#include <stdio.h>

int main(void)
{
	fprintf(stderr, "bench_passthrough: not built in: no libfuse3\n");
	return 1;
}

#endif
