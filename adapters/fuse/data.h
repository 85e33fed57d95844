/* SPDX-License-Identifier: MIT
 *
 * The contents of files: handles that the kernel has opened.
 */
#ifndef FOLIAGE_ADAPTERS_FUSE_DATA_H
#define FOLIAGE_ADAPTERS_FUSE_DATA_H

#include "adapters/fuse/node.h"
#include "foliage/file.h"

struct handle {
	struct node *node;
	int fd;                    /* of the file of SOURCE, the handle's own */
	struct foliage_file *file; /* NULL: left to the kernel's cache */
	bool writable;
	_Atomic unsigned int refs; /* the kernel's, and of threads that still hold pages of it */
};

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

/* A handle on `node` for the kernel; `fd` becomes the handle's, or is closed on failure. */
int data_open(struct mount *mount, struct node *node, int fd, struct fuse_file_info *fi);
/* Let go of it; the last one closes it, without a word to anybody. */
void data_close(struct mount *mount, struct handle *handle);

/* What the cache knows better than the file system. */
void data_attr(struct mount *mount, struct node *node, struct stat *st);
/* Somebody is about to change the node's attributes: the change time that write-back has left is
 * not to be taken for his. */
void data_settle(struct mount *mount, struct node *node);
int data_set_times(struct mount *mount, struct node *node, const struct timespec times[2]);
/* `fi` may be NULL. */
int data_truncate(struct mount *mount, struct node *node, struct fuse_file_info *fi, off_t size);

/* data.c */
void op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
	     struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t bytes, off_t offset,
	      struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi);

/* range.c */
void op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t bytes,
		  struct fuse_file_info *fi);
void op_lseek(fuse_req_t req, fuse_ino_t number, off_t offset, int whence,
	      struct fuse_file_info *fi);
void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset,
			struct fuse_file_info *from_fi, fuse_ino_t to, off_t to_offset,
			struct fuse_file_info *to_fi, size_t bytes, int flags);

#endif
