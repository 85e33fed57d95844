/* SPDX-License-Identifier: MIT
 *
 * What changes directories, and looking up in them. Everything goes to the directory's O_PATH
 * descriptor, so no path is ever put together. The kernel has checked permissions before it asks
 * (default_permissions).
 *
 * A mount of root serves everybody, and what somebody makes is to belong to him: such an operation
 * runs with the caller's user and group as this thread's for the file system, and with the right to
 * pass over permissions, which the kernel has checked by the caller's supplementary groups, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/fuse/data.h"
#include "adapters/fuse/node.h"

/* ---- the caller's identity ---- */

/* Changing the user for the file system took the capability from this thread's effective set; it is
 * still permitted. */
static void pass_over_permissions(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return;
	data[0].effective |= data[0].permitted & (1u << CAP_DAC_OVERRIDE);
	syscall(SYS_capset, &header, data);
}

static bool caller_become(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	if (!mount_of(req)->as_root || (!ctx->uid && !ctx->gid))
		return false;
	setfsgid(ctx->gid);
	setfsuid(ctx->uid);
	if (ctx->uid)
		pass_over_permissions();
	return true;
}

static void caller_leave(bool became)
{
	if (!became)
		return;
	setfsuid(0);
	setfsgid(0);
}

/* ---- lookups ---- */

static void reply_lookup(fuse_req_t req, struct node *parent, const char *name)
{
	struct mount *mount = mount_of(req);
	struct fuse_entry_param entry;
	int code = node_lookup(mount, parent, name, &entry);

	if (code)
		fuse_reply_err(req, -code);
	else if (fuse_reply_entry(req, &entry)) /* interrupted: the kernel does not know it */
		node_unref(mount, node_of(req, entry.ino), 1);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_lookup(req, node_of(req, parent), name);
}

void op_forget(fuse_req_t req, fuse_ino_t number, uint64_t nr)
{
	node_unref(mount_of(req), node_of(req, number), nr);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		node_unref(mount_of(req), node_of(req, forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

void op_readlink(fuse_req_t req, fuse_ino_t number)
{
	char text[PATH_MAX + 1];
	ssize_t n = readlinkat(node_of(req, number)->fd, "", text, sizeof(text) - 1);

	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	text[n] = 0;
	fuse_reply_readlink(req, text);
}

/* ---- new names ---- */

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct node *node = node_of(req, parent);
	bool became = caller_become(req);
	int code;

	/* Making a device is the caller's right, which the kernel has checked, not the user's. */
	if (S_ISBLK(mode) || S_ISCHR(mode)) {
		caller_leave(became);
		became = false;
	}
	code = mknodat(node->fd, name, mode, rdev) ? errno : 0;
	caller_leave(became);
	if (code)
		fuse_reply_err(req, code);
	else
		reply_lookup(req, node, name);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct node *node = node_of(req, parent);
	bool became = caller_become(req);
	int code = mkdirat(node->fd, name, mode) ? errno : 0;

	caller_leave(became);
	if (code)
		fuse_reply_err(req, code);
	else
		reply_lookup(req, node, name);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct node *node = node_of(req, parent);
	bool became = caller_become(req);
	int code = symlinkat(target, node->fd, name) ? errno : 0;

	caller_leave(became);
	if (code)
		fuse_reply_err(req, code);
	else
		reply_lookup(req, node, name);
}

void op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t to, const char *to_name)
{
	struct node *node = node_of(req, number), *folder = node_of(req, to);
	struct node_path path = node_path(node);
	struct change change;
	int code = 0;

	change_begin(&change, node->fd, "");
	/* A symbolic link has no way through /proc that is not followed; a descriptor has. */
	if (linkat(node->fd, "", folder->fd, to_name, AT_EMPTY_PATH) &&
	    (errno != ENOENT ||
	     linkat(AT_FDCWD, path.text, folder->fd, to_name, AT_SYMLINK_FOLLOW)))
		code = errno;
	change_end(mount_of(req), &change, node->fd, "");
	if (code)
		fuse_reply_err(req, code);
	else
		reply_lookup(req, folder, to_name);
}

/* ---- names that go ---- */

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct node *folder = node_of(req, parent);
	struct change change;
	int fd = -1, code;

	/* A file that has other names goes on. */
	change_begin(&change, folder->fd, name);
	if (S_ISREG(change.before.st_mode) && change.before.st_nlink > 1)
		fd = openat(folder->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	code = unlinkat(folder->fd, name, 0) ? errno : 0;
	if (fd >= 0) {
		change_end(mount_of(req), &change, fd, "");
		close(fd);
	}
	fuse_reply_err(req, code);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, unlinkat(node_of(req, parent)->fd, name, AT_REMOVEDIR) ? errno : 0);
}

/* A file that gets another name is left to the kernel's cache, or no longer, from its next first
 * open on. */
static void renamed(struct mount *mount, struct node *folder, const char *name)
{
	struct fuse_entry_param entry;

	if (node_lookup(mount, folder, name, &entry))
		return;
	if (entry.ino != FUSE_ROOT_ID) {
		struct node *node = (struct node *)(uintptr_t)entry.ino;

		node->uncached = name_is_uncached(mount, name);
		node_unref(mount, node, 1);
	}
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
	       const char *to_name, unsigned int flags)
{
	struct mount *mount = mount_of(req);
	struct node *from = node_of(req, parent), *folder = node_of(req, to);
	struct change change;

	change_begin(&change, from->fd, name);
	if (renameat2(from->fd, name, folder->fd, to_name, flags)) {
		fuse_reply_err(req, errno);
		return;
	}
	change_end(mount, &change, folder->fd, to_name);
	if (name_is_uncached(mount, name) != name_is_uncached(mount, to_name)) {
		renamed(mount, folder, to_name);
		if (flags & RENAME_EXCHANGE)
			renamed(mount, from, name);
	}
	fuse_reply_err(req, 0);
}

/* ---- a name and a handle in one ---- */

/* The node of an open file, whatever its name leads to by now. */
static int adopt_opened(struct mount *mount, int fd, const char *name,
			struct fuse_entry_param *entry)
{
	char path[40];
	int handle;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	handle = open(path, O_PATH | O_CLOEXEC);
	return handle < 0 ? -errno : node_adopt(mount, handle, name, entry);
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	struct node *folder = node_of(req, parent);
	struct fuse_entry_param entry;
	bool became = caller_become(req);
	/* Both ways whatever is asked for: pages are read before a part of them is written, and
	 * only now does the mode of the file not matter. */
	int fd = openat(folder->fd, name,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
				(fi->flags & (O_EXCL | O_DSYNC | O_SYNC)),
			mode);
	int code = fd < 0 ? errno : 0;

	caller_leave(became);
	if (code) {
		fuse_reply_err(req, code);
		return;
	}
	code = -adopt_opened(mount, fd, name, &entry);
	if (code) {
		close(fd);
		fuse_reply_err(req, code);
		return;
	}
	code = -data_open(mount, node_of(req, entry.ino), fd, fi);
	if (code) {
		node_unref(mount, node_of(req, entry.ino), 1);
		fuse_reply_err(req, code);
	} else if (fuse_reply_create(req, &entry, fi)) {
		data_close(mount, handle_of(fi));
		node_unref(mount, node_of(req, entry.ino), 1);
	}
}
