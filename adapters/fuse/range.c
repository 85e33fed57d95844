/* SPDX-License-Identifier: MIT
 *
 * What programs ask of a file beside reading and writing: space, holes, copies of ranges. The file
 * system of SOURCE does it on the file itself, so what is in the cache is written to the file
 * before, and forgotten after what changes it. Nobody writes to the file in between (node->gate).
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "adapters/fuse/data.h"

void op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t bytes,
		  struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	int code;

	(void)number;
	if (!handle->file) {
		code = fallocate(handle->fd, mode, offset, bytes) ? -errno : 0;
	} else {
		pthread_rwlock_wrlock(&handle->node->gate);
		code = foliage_file_allocate(handle->file, mode, (uint64_t)offset, (uint64_t)bytes);
		pthread_rwlock_unlock(&handle->node->gate);
	}
	fuse_reply_err(req, -code);
}

/* Only SEEK_DATA and SEEK_HOLE come here. */
void op_lseek(fuse_req_t req, fuse_ino_t number, off_t offset, int whence,
	      struct fuse_file_info *fi)
{
	struct handle *handle = handle_of(fi);
	int code = handle->file ? foliage_file_flush(handle->file) : 0;
	off_t found;

	(void)number;
	if (code) {
		fuse_reply_err(req, -code);
		return;
	}
	found = lseek(handle->fd, offset, whence);
	if (found < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_lseek(req, found);
}

/* The cache forgets what is copied to before and after: before, so that none of it is written back
 * over the copy, after, so that what readers have brought in meanwhile does not stay. */
static ssize_t copy(const struct handle *from, off_t from_offset, const struct handle *to,
		    off_t to_offset, size_t bytes, unsigned int flags)
{
	int code = from->file ? foliage_file_flush(from->file) : 0;
	ssize_t n;

	if (!code && to->file)
		code = foliage_file_invalidate(to->file, (uint64_t)to_offset, bytes);
	if (code)
		return code;
	n = copy_file_range(from->fd, &from_offset, to->fd, &to_offset, bytes, flags);
	if (n < 0)
		n = -errno;
	if (n > 0 && to->file)
		code = foliage_file_invalidate(to->file, (uint64_t)(to_offset - n), (uint64_t)n);
	return code ? code : n;
}

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset,
			struct fuse_file_info *from_fi, fuse_ino_t to, off_t to_offset,
			struct fuse_file_info *to_fi, size_t bytes, int flags)
{
	struct handle *target = handle_of(to_fi);
	ssize_t n = 0;

	(void)from;
	(void)to;
	if (bytes) {
		pthread_rwlock_wrlock(&target->node->gate);
		n = copy(handle_of(from_fi), from_offset, target, to_offset, bytes,
			 (unsigned int)flags);
		pthread_rwlock_unlock(&target->node->gate);
	}
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}
