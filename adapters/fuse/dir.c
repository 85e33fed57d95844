/* SPDX-License-Identifier: MIT
 *
 * Listing directories. A handle is a stream of the directory's entries; the kernel says where it
 * wants to go on, which is nearly always where the last answer ended. readdirplus looks every entry
 * up on the way, as a listing with attributes would do one by one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/fuse/node.h"

struct listing {
	pthread_mutex_t lock;
	DIR *stream;
	struct dirent *ahead; /* read, and did not fit into the last answer */
	off_t offset;         /* where the stream is */
};

static struct listing *listing_of(const struct fuse_file_info *fi)
{
	return (struct listing *)(uintptr_t)fi->fh;
}

void op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	int fd = openat(node_of(req, number)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct listing *listing;

	if (fd < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	listing = calloc(1, sizeof(*listing));
	if (listing)
		listing->stream = fdopendir(fd);
	if (!listing || !listing->stream) {
		free(listing);
		close(fd);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	pthread_mutex_init(&listing->lock, NULL);
	fi->fh = (uintptr_t)listing;
	if (fuse_reply_open(req, fi))
		op_releasedir(NULL, number, fi);
}

void op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct listing *listing = listing_of(fi);

	(void)number;
	closedir(listing->stream);
	pthread_mutex_destroy(&listing->lock);
	free(listing);
	if (req)
		fuse_reply_err(req, 0);
}

void op_fsyncdir(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	int fd = dirfd(listing_of(fi)->stream);

	(void)number;
	fuse_reply_err(req, (data_only ? fdatasync(fd) : fsync(fd)) ? errno : 0);
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* The bytes that the entry takes; more than `room`: it does not fit. 0: it is gone meanwhile. The
 * dots are not looked up: the kernel does not count them. */
static size_t put_plus(fuse_req_t req, struct node *folder, const struct dirent *dirent, char *to,
		       size_t room)
{
	struct mount *mount = mount_of(req);
	struct fuse_entry_param entry = {
		.attr = {.st_ino = dirent->d_ino, .st_mode = (mode_t)DTTOIF(dirent->d_type)}};
	bool dot = is_dot(dirent->d_name);
	size_t n;

	if (!dot && node_lookup(mount, folder, dirent->d_name, &entry))
		return 0;
	n = fuse_add_direntry_plus(req, to, room, dirent->d_name, &entry, dirent->d_off);
	if (n > room && !dot)
		node_unref(mount, node_of(req, entry.ino), 1);
	return n;
}

static size_t put_plain(fuse_req_t req, const struct dirent *dirent, char *to, size_t room)
{
	struct stat st = {.st_ino = dirent->d_ino, .st_mode = (mode_t)DTTOIF(dirent->d_type)};

	return fuse_add_direntry(req, to, room, dirent->d_name, &st, dirent->d_off);
}

/* The next entry, NULL at the end or with errno set. */
static struct dirent *next_entry(struct listing *listing)
{
	struct dirent *dirent = listing->ahead;

	listing->ahead = NULL;
	errno = 0;
	return dirent ? dirent : readdir(listing->stream);
}

static void list(fuse_req_t req, struct node *folder, size_t bytes, off_t offset,
		 struct listing *listing, bool plus)
{
	char *buffer = malloc(bytes);
	size_t used = 0;
	int code = 0;

	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	pthread_mutex_lock(&listing->lock);
	if (offset != listing->offset) {
		seekdir(listing->stream, offset);
		listing->ahead = NULL;
		listing->offset = offset;
	}
	for (;;) {
		struct dirent *dirent = next_entry(listing);
		size_t n;

		if (!dirent) {
			code = errno;
			break;
		}
		n = plus ? put_plus(req, folder, dirent, buffer + used, bytes - used)
			 : put_plain(req, dirent, buffer + used, bytes - used);
		if (n > bytes - used) {
			listing->ahead = dirent;
			break;
		}
		used += n;
		listing->offset = dirent->d_off;
	}
	pthread_mutex_unlock(&listing->lock);
	/* What has been looked up must be told; the error comes with the next question. */
	if (code && !used)
		fuse_reply_err(req, code);
	else
		fuse_reply_buf(req, buffer, used);
	free(buffer);
}

void op_readdir(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
		struct fuse_file_info *fi)
{
	list(req, node_of(req, number), bytes, offset, listing_of(fi), false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
		    struct fuse_file_info *fi)
{
	list(req, node_of(req, number), bytes, offset, listing_of(fi), true);
}
