/* SPDX-License-Identifier: MIT
 *
 * Open files. A handle of the kernel is a handle of the file cache, and the kernel is told to keep
 * nothing itself (direct_io): each read and write comes here. Files with certain names are left to
 * the kernel's page cache instead, because only it can map them shared; a file that is open is one
 * or the other for all who have it open.
 *
 * close() writes a file's dirty pages to SOURCE, as network file systems do: who looks into SOURCE
 * after it sees the whole file, and unmounting, which the kernel does not wait for, finds nothing
 * left to write.
 */
#include "adapters/fuse/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512, PAGE = 4096 };

/* ---- handles ---- */

/* Which of the two caches has the file: as long as one has it open, all are served by that. */
static bool choose_uncached(struct mount *mount, struct node *node)
{
	bool uncached;

	pthread_mutex_lock(&mount->nodes.lock);
	uncached = node->uncached_handles || (node->uncached && !node->cached_handles);
	if (uncached)
		node->uncached_handles++;
	else
		node->cached_handles++;
	node->refs++;
	pthread_mutex_unlock(&mount->nodes.lock);
	return uncached;
}

static void unchoose(struct mount *mount, struct node *node, bool uncached)
{
	pthread_mutex_lock(&mount->nodes.lock);
	if (uncached)
		node->uncached_handles--;
	else
		node->cached_handles--;
	pthread_mutex_unlock(&mount->nodes.lock);
	node_unref(mount, node, 1);
}

/* Before the kernel caches a file: what this cache has of it goes. */
static int forget_cached(struct mount *mount, int fd)
{
	struct foliage_file *file;
	int code = foliage_file_open_fd(mount->cache, fd, &file);

	if (code)
		return code;
	code = foliage_file_invalidate(file, 0, 0);
	foliage_file_close(file);
	return code;
}

int data_open(struct mount *mount, struct node *node, int fd, struct fuse_file_info *fi)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	bool uncached;
	int code;

	if (!handle) {
		close(fd);
		return -ENOMEM;
	}
	uncached = choose_uncached(mount, node);
	handle->node = node;
	handle->fd = fd;
	handle->refs = 1;
	handle->writable = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	code = uncached ? forget_cached(mount, fd)
			: foliage_file_open_fd(mount->cache, fd, &handle->file);
	if (code) {
		unchoose(mount, node, uncached);
		close(fd);
		free(handle);
		return code;
	}
	fi->fh = (uintptr_t)handle;
	fi->direct_io = !uncached;
	fi->keep_cache = uncached;
	return 0;
}

void data_close(struct mount *mount, struct handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) != 1)
		return;
	if (handle->file)
		foliage_file_close(handle->file);
	close(handle->fd);
	unchoose(mount, handle->node, !handle->file);
	free(handle);
}

/* A descriptor of its own for the node's file. Whoever writes also reads: the rest of a page of
 * which a part is written. */
static int reopen(const struct node *node, int flags)
{
	struct node_path path = node_path(node);
	int fd;

	flags = (flags & (O_DSYNC | O_SYNC)) |
		((flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
	fd = open(path.text, flags);
	return fd < 0 ? -errno : fd;
}

void op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	struct node *node = node_of(req, number);
	int fd = reopen(node, fi->flags);
	int code = fd < 0 ? fd : data_open(mount, node, fd, fi);

	if (code)
		fuse_reply_err(req, -code);
	else if (fuse_reply_open(req, fi)) /* interrupted: no release will come */
		data_close(mount, handle_of(fi));
}

void op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)number;
	data_close(mount_of(req), handle_of(fi));
	fuse_reply_err(req, 0);
}

void op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	int code = 0;
	struct stat st;

	(void)number;
	/* What has lost its last name goes with the last handle, unwritten. */
	if (handle->file && handle->writable && !fstat(handle->fd, &st) && st.st_nlink) {
		code = foliage_file_flush(handle->file);
		data_settle(mount_of(req), handle->node);
	}
	fuse_reply_err(req, -code);
}

void op_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	int code;

	(void)number;
	if (!handle->file)
		code = (data_only ? fdatasync(handle->fd) : fsync(handle->fd)) ? -errno : 0;
	else
		code = data_only ? foliage_file_fdatasync(handle->file)
				 : foliage_file_fsync(handle->file);
	fuse_reply_err(req, -code);
}

/* ---- reading and writing ---- */

/* What lies within one page goes to the kernel from where it is. With the answer the kernel may
 * already close the handle while the page is still pinned here. */
static void reply_pinned(fuse_req_t req, struct handle *handle, size_t bytes, off_t offset)
{
	struct mount *mount = mount_of(req);
	struct foliage_pin pin;
	int code = foliage_file_pin(handle->file, (uint64_t)offset, 0, &pin);

	if (code == -ENODATA) {
		fuse_reply_buf(req, NULL, 0);
	} else if (code) {
		fuse_reply_err(req, -code);
	} else {
		atomic_fetch_add(&handle->refs, 1);
		fuse_reply_buf(req, pin.data, bytes < pin.bytes ? bytes : pin.bytes);
		foliage_file_unpin(handle->file, &pin);
		data_close(mount, handle);
	}
}

void op_read(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
	     struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	char *buffer;
	int64_t n;

	(void)number;
	if (handle->file && offset % PAGE + (off_t)bytes <= PAGE) {
		reply_pinned(req, handle, bytes, offset);
		return;
	}
	buffer = malloc(bytes);
	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (handle->file) {
		n = foliage_file_read(handle->file, buffer, bytes, (uint64_t)offset);
	} else {
		n = pread(handle->fd, buffer, bytes, offset);
		if (n < 0)
			n = -errno;
	}
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, buffer, (size_t)n);
	free(buffer);
}

/* Who may not keep them makes a file lose its set-user and set-group bits by writing to it. The
 * kernel asks for that itself, except where it bypasses its cache. */
static void drop_privileges(fuse_req_t req, const struct handle *handle)
{
	struct stat st;

	if (!fuse_req_ctx(req)->uid || fstat(handle->fd, &st) ||
	    !(st.st_mode & (S_ISUID | S_ISGID)))
		return;
	st.st_mode &= ~(mode_t)S_ISUID;
	if (st.st_mode & S_IXGRP)
		st.st_mode &= ~(mode_t)S_ISGID;
	fchmod(handle->fd, st.st_mode & 07777);
}

void op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t bytes, off_t offset,
	      struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	int64_t n;

	(void)number;
	drop_privileges(req, handle);
	if (handle->file) {
		pthread_rwlock_rdlock(&handle->node->gate);
		n = foliage_file_write(handle->file, data, bytes, (uint64_t)offset);
		pthread_rwlock_unlock(&handle->node->gate);
	} else {
		n = pwrite(handle->fd, data, bytes, offset);
		if (n < 0)
			n = -errno;
	}
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* ---- attributes ---- */

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static struct timespec later(struct timespec a, struct timespec b)
{
	if (a.tv_sec != b.tv_sec)
		return a.tv_sec > b.tv_sec ? a : b;
	return a.tv_nsec > b.tv_nsec ? a : b;
}

/* Writing back changes the change time of the file of SOURCE long after the program wrote, and
 * programs that remember it (git's index) would take that for another change. So the time that was
 * shown while data was in memory stays the one that is shown, until the file system has another
 * one than it had right after write-back. */
static void steady_ctime(struct mount *mount, struct node *node, struct stat *st, bool dirty)
{
	pthread_mutex_lock(&mount->nodes.lock);
	if (dirty) {
		node->shown = later(later(st->st_ctim, st->st_mtim), node->shown);
		node->ctime = CTIME_PENDING;
	} else if (node->ctime == CTIME_PENDING) {
		node->shown = later(node->shown, st->st_mtim);
		node->real = st->st_ctim;
		node->ctime = CTIME_SHOWN;
	} else if (node->ctime == CTIME_SHOWN && !same_time(node->real, st->st_ctim)) {
		node->ctime = CTIME_REAL;
		node->shown = (struct timespec){0};
	}
	if (node->ctime != CTIME_REAL)
		st->st_ctim = node->shown;
	pthread_mutex_unlock(&mount->nodes.lock);
}

void data_attr(struct mount *mount, struct node *node, struct stat *st)
{
	bool dirty;

	if (!S_ISREG(st->st_mode))
		return;
	dirty = foliage_cache_stat(mount->cache, st);
	/* Few blocks say that a file has holes; these have only not been written yet. */
	if (dirty && st->st_blocks < st->st_size / SECTOR)
		st->st_blocks = (st->st_size + SECTOR - 1) / SECTOR;
	if (dirty || node->ctime != CTIME_REAL)
		steady_ctime(mount, node, st, dirty);
}

void data_settle(struct mount *mount, struct node *node)
{
	struct stat st;

	if (node->ctime == CTIME_PENDING)
		attr_of(mount, node, &st);
}

/* Write what is dirty of a file that nobody may have open. */
static int flush_node(struct mount *mount, struct node *node)
{
	struct foliage_file *file;
	int fd = reopen(node, O_RDONLY), code;

	if (fd < 0)
		return fd;
	code = foliage_file_open_fd(mount->cache, fd, &file);
	if (!code) {
		code = foliage_file_flush(file);
		foliage_file_close(file);
	}
	close(fd);
	return code;
}

int data_set_times(struct mount *mount, struct node *node, const struct timespec times[2])
{
	struct stat st = {0};
	struct change change;
	int code = 0;

	/* Writing back later would set the time of the last write again. */
	if (S_ISREG(node->type) && !fstatat(node->fd, "", &st, AT_EMPTY_PATH) &&
	    foliage_cache_stat(mount->cache, &st))
		code = flush_node(mount, node);
	if (code)
		return code;
	change_begin(&change, node->fd, "");
	if (utimensat(node->fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		code = -errno;
	change_end(mount, &change, node->fd, "");
	return code;
}

int data_truncate(struct mount *mount, struct node *node, struct fuse_file_info *fi, off_t size)
{
	struct foliage_file *file;
	int fd, code;

	if (fi && handle_of(fi)->writable) {
		struct handle *handle = handle_of(fi);

		if (handle->file)
			return foliage_file_truncate(handle->file, (uint64_t)size);
		return ftruncate(handle->fd, size) ? -errno : 0;
	}
	fd = reopen(node, O_RDWR);
	if (fd < 0)
		return fd;
	code = foliage_file_open_fd(mount->cache, fd, &file);
	if (!code) {
		code = foliage_file_truncate(file, (uint64_t)size);
		foliage_file_close(file);
	}
	close(fd);
	return code;
}
