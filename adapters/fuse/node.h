/* SPDX-License-Identifier: MIT
 *
 * Nodes: the files of SOURCE that the kernel has looked up and not yet forgotten, and the state of
 * one mount.
 */
#ifndef FOLIAGE_ADAPTERS_FUSE_NODE_H
#define FOLIAGE_ADAPTERS_FUSE_NODE_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "adapters/fuse/mount.h"

struct node {
	struct node *next; /* of its chain in the table */
	dev_t dev;
	ino_t ino;
	mode_t type;   /* S_IFMT bits */
	int fd;        /* O_PATH: as long as it is open the inode's number means this file */
	uint64_t refs; /* the kernel's lookups and open handles; under the table's lock */
	/* A name by which it is known is one that is left to the kernel's cache. */
	_Atomic bool uncached;
	unsigned int cached_handles, uncached_handles; /* never both; under the table's lock */
	/* Held by writers together, alone by who changes the file beneath the cache. */
	pthread_rwlock_t gate;
	/* A change time that was shown while written data was in memory only, and what the file
	 * system said when it had got the data: see data_attr(). Under the table's lock; `ctime` may
	 * be looked at without. */
	struct timespec shown, real;
	_Atomic int ctime; /* enum node_ctime */
};

enum node_ctime { CTIME_REAL, CTIME_PENDING, CTIME_SHOWN };

struct nodes {
	pthread_mutex_t lock;
	struct node **table;
	size_t size, nr; /* size: a power of two */
};

struct mount {
	const struct mount_options *options;
	struct nodes nodes;
	struct node root;
	struct foliage_cache *cache;
	bool as_root; /* new files are to belong to who made them */
};

static inline struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* The kernel's number of a node is its address; the root's is FUSE_ROOT_ID. */
static inline struct node *node_of(fuse_req_t req, fuse_ino_t number)
{
	return number == FUSE_ROOT_ID ? &mount_of(req)->root : (struct node *)(uintptr_t)number;
}

/* The root is opened by `source`. 0 or a negative errno. */
int nodes_init(struct mount *mount);
/* Everything that the kernel has not forgotten. No thread answers it any more. */
void nodes_destroy(struct mount *mount);

/* The node of the file behind the O_PATH descriptor, which becomes the node's or is closed: a
 * reference is taken. */
int node_adopt(struct mount *mount, int fd, const char *name, struct fuse_entry_param *entry);
/* Look `name` up in `parent` and take a reference: what goes to the kernel is in `entry`. */
int node_lookup(struct mount *mount, struct node *parent, const char *name,
		struct fuse_entry_param *entry);
void node_ref(struct mount *mount, struct node *node);
void node_unref(struct mount *mount, struct node *node, uint64_t nr);

/* The way to an O_PATH descriptor's file for calls that take no descriptor of this kind. */
struct node_path {
	char text[40];
};
struct node_path node_path(const struct node *node);

/* Is `name` among the patterns that are left to the kernel's cache? */
bool name_is_uncached(const struct mount *mount, const char *name);

/* ---- operations, by file ---- */

/* attr.c */
int attr_of(struct mount *mount, struct node *node, struct stat *st);
void op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *st, int set,
		struct fuse_file_info *fi);
void op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value,
		 size_t bytes, int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t bytes);
void op_listxattr(fuse_req_t req, fuse_ino_t number, size_t bytes);
void op_removexattr(fuse_req_t req, fuse_ino_t number, const char *name);
void op_statfs(fuse_req_t req, fuse_ino_t number);

/* An operation of ours changes a file's attributes, not its contents: the cache is to know its pages
 * for good. Around it, for a file by node, or by folder and name (before and after). */
struct change {
	struct stat before;
};
void change_begin(struct change *change, int fd, const char *name);
void change_end(const struct mount *mount, const struct change *change, int fd, const char *name);

/* names.c */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t number, uint64_t nr);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_readlink(fuse_req_t req, fuse_ino_t number);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
	       const char *to_name, unsigned int flags);
void op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t to, const char *to_name);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi);

/* dir.c */
void op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
		struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset,
		    struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi);

#endif
