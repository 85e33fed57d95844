/* SPDX-License-Identifier: MIT
 *
 * Attributes, extended attributes and the file system's numbers. What a file's data in the cache
 * changes of them (its size, when it was written) is data.c's to say.
 *
 * Calls that take no O_PATH descriptor go through its name in /proc/self/fd, which leads to the
 * file itself, a symbolic link included, without looking at any path.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "adapters/fuse/data.h"
#include "adapters/fuse/node.h"

int attr_of(struct mount *mount, struct node *node, struct stat *st)
{
	if (fstatat(node->fd, "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -errno;
	data_attr(mount, node, st);
	return 0;
}

void change_begin(struct change *change, int fd, const char *name)
{
	if (fstatat(fd, name, &change->before, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		change->before.st_mode = 0;
}

void change_end(const struct mount *mount, const struct change *change, int fd, const char *name)
{
	struct stat after;

	if (S_ISREG(change->before.st_mode) &&
	    !fstatat(fd, name, &after, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		foliage_cache_restamp(mount->cache, &change->before, &after);
}

static void reply_attr(fuse_req_t req, struct node *node)
{
	struct mount *mount = mount_of(req);
	struct stat st;
	int code = attr_of(mount, node, &st);

	if (code)
		fuse_reply_err(req, -code);
	else
		fuse_reply_attr(req, &st, mount->options->timeout);
}

void op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(req, node_of(req, number));
}

static int set_rights(struct mount *mount, struct node *node, const struct stat *st, int set)
{
	uid_t uid = set & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1;
	gid_t gid = set & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1;
	struct change change;
	int code = 0;

	change_begin(&change, node->fd, "");
	if (set & FUSE_SET_ATTR_MODE)
		code = chmod(node_path(node).text, st->st_mode) ? -errno : 0;
	if (!code && (set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		code = fchownat(node->fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)
			       ? -errno
			       : 0;
	change_end(mount, &change, node->fd, "");
	return code;
}

static int set_times(struct mount *mount, struct node *node, const struct stat *st, int set)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

	if (set & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	else if (set & FUSE_SET_ATTR_ATIME)
		times[0] = st->st_atim;
	if (set & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	else if (set & FUSE_SET_ATTR_MTIME)
		times[1] = st->st_mtim;
	return data_set_times(mount, node, times);
}

void op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *st, int set,
		struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	struct node *node = node_of(req, number);
	int code = 0;

	data_settle(mount, node);
	if (set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		code = set_rights(mount, node, st, set);
	if (!code && (set & FUSE_SET_ATTR_SIZE))
		code = data_truncate(mount, node, fi, st->st_size);
	if (!code && (set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)))
		code = set_times(mount, node, st, set);
	if (code)
		fuse_reply_err(req, -code);
	else
		reply_attr(req, node);
}

/* ---- extended attributes ---- */

void op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value,
		 size_t bytes, int flags)
{
	struct node *node = node_of(req, number);
	struct node_path path = node_path(node);
	struct change change;
	int code;

	change_begin(&change, node->fd, "");
	code = setxattr(path.text, name, value, bytes, flags) ? errno : 0;
	change_end(mount_of(req), &change, node->fd, "");
	fuse_reply_err(req, code);
}

void op_removexattr(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct node *node = node_of(req, number);
	struct node_path path = node_path(node);
	struct change change;
	int code;

	change_begin(&change, node->fd, "");
	code = removexattr(path.text, name) ? errno : 0;
	change_end(mount_of(req), &change, node->fd, "");
	fuse_reply_err(req, code);
}

/* The value of `name`, or the list of names for NULL; 0 bytes asks how many there are. */
static void reply_xattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t bytes)
{
	struct node_path path = node_path(node_of(req, number));
	char *value = bytes ? malloc(bytes) : NULL;
	ssize_t n;

	if (bytes && !value) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = name ? getxattr(path.text, name, value, bytes) : listxattr(path.text, value, bytes);
	if (n < 0)
		fuse_reply_err(req, errno);
	else if (bytes)
		fuse_reply_buf(req, value, (size_t)n);
	else
		fuse_reply_xattr(req, (size_t)n);
	free(value);
}

void op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t bytes)
{
	reply_xattr(req, number, name, bytes);
}

void op_listxattr(fuse_req_t req, fuse_ino_t number, size_t bytes)
{
	reply_xattr(req, number, NULL, bytes);
}

void op_statfs(fuse_req_t req, fuse_ino_t number)
{
	struct statvfs st;

	if (fstatvfs(node_of(req, number)->fd, &st))
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &st);
}
