/* SPDX-License-Identifier: MIT
 *
 * The table of nodes. The kernel names a file by a number that it got from a lookup, until it says
 * that it forgot as many lookups as it made; a node is what stands behind the number. It is found
 * by device and inode, so that the links of a file are one node, and it holds the file by an O_PATH
 * descriptor: whatever happens to its names, the inode stays and its number is not given to
 * another file.
 *
 * One lock for the table: it is held for the time of a hash lookup, which is little beside the
 * system calls of the operation around it.
 */
#include "adapters/fuse/node.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MIN = 1024 };

static size_t slot_of(const struct nodes *nodes, dev_t dev, ino_t ino)
{
	uint64_t key = (ino ^ (dev << 40)) * 0x9e3779b97f4a7c15u;

	return (size_t)(key >> 20) & (nodes->size - 1);
}

int nodes_init(struct mount *mount)
{
	struct nodes *nodes = &mount->nodes;
	struct stat st;

	mount->root = (struct node){.refs = 1, .type = S_IFDIR};
	mount->root.fd = open(mount->options->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mount->root.fd < 0)
		return -errno;
	if (fstat(mount->root.fd, &st)) {
		int code = -errno;

		close(mount->root.fd);
		return code;
	}
	mount->root.dev = st.st_dev;
	mount->root.ino = st.st_ino;
	nodes->size = TABLE_MIN;
	nodes->table = calloc(nodes->size, sizeof(struct node *));
	if (!nodes->table) {
		close(mount->root.fd);
		return -ENOMEM;
	}
	pthread_mutex_init(&nodes->lock, NULL);
	return 0;
}

static void node_free(struct node *node)
{
	close(node->fd);
	pthread_rwlock_destroy(&node->gate);
	free(node);
}

void nodes_destroy(struct mount *mount)
{
	struct nodes *nodes = &mount->nodes;

	for (size_t i = 0; i < nodes->size; i++) {
		struct node *next;

		for (struct node *node = nodes->table[i]; node; node = next) {
			next = node->next;
			node_free(node);
		}
	}
	free(nodes->table);
	pthread_mutex_destroy(&nodes->lock);
	close(mount->root.fd);
}

/* Twice as large. Without memory chains grow longer instead. */
static void grow(struct nodes *nodes)
{
	struct nodes larger = {.size = nodes->size * 2};

	larger.table = calloc(larger.size, sizeof(struct node *));
	if (!larger.table)
		return;
	for (size_t i = 0; i < nodes->size; i++) {
		struct node *next;

		for (struct node *node = nodes->table[i]; node; node = next) {
			size_t slot = slot_of(&larger, node->dev, node->ino);

			next = node->next;
			node->next = larger.table[slot];
			larger.table[slot] = node;
		}
	}
	free(nodes->table);
	nodes->table = larger.table;
	nodes->size = larger.size;
}

/* With the lock held. */
static struct node *find(struct mount *mount, const struct stat *st)
{
	struct nodes *nodes = &mount->nodes;

	if (st->st_ino == mount->root.ino && st->st_dev == mount->root.dev)
		return &mount->root;
	for (struct node *node = nodes->table[slot_of(nodes, st->st_dev, st->st_ino)]; node;
	     node = node->next) {
		if (node->ino == st->st_ino && node->dev == st->st_dev)
			return node;
	}
	return NULL;
}

/* The node of the file behind the O_PATH descriptor, which becomes the node's or is closed, with a
 * reference more. NULL: no memory. */
static struct node *get(struct mount *mount, int fd, const struct stat *st)
{
	struct nodes *nodes = &mount->nodes;
	struct node *node, *new = NULL;

	pthread_mutex_lock(&nodes->lock);
	node = find(mount, st);
	if (!node) {
		new = calloc(1, sizeof(*new));
		if (new) {
			size_t slot;

			if (nodes->nr++ >= nodes->size)
				grow(nodes);
			slot = slot_of(nodes, st->st_dev, st->st_ino);
			*new = (struct node){.next = nodes->table[slot],
					     .dev = st->st_dev,
					     .ino = st->st_ino,
					     .type = st->st_mode & S_IFMT,
					     .fd = fd};
			pthread_rwlock_init(&new->gate, NULL);
			nodes->table[slot] = new;
			node = new;
		}
	}
	if (node)
		node->refs++;
	pthread_mutex_unlock(&nodes->lock);
	if (!new)
		close(fd);
	return node;
}

void node_ref(struct mount *mount, struct node *node)
{
	pthread_mutex_lock(&mount->nodes.lock);
	node->refs++;
	pthread_mutex_unlock(&mount->nodes.lock);
}

void node_unref(struct mount *mount, struct node *node, uint64_t nr)
{
	struct nodes *nodes = &mount->nodes;
	struct node **link;
	bool last;

	pthread_mutex_lock(&nodes->lock);
	node->refs -= nr;
	last = !node->refs && node != &mount->root;
	if (last) {
		link = &nodes->table[slot_of(nodes, node->dev, node->ino)];
		while (*link != node)
			link = &(*link)->next;
		*link = node->next;
		nodes->nr--;
	}
	pthread_mutex_unlock(&nodes->lock);
	if (last)
		node_free(node);
}

struct node_path node_path(const struct node *node)
{
	struct node_path path;

	snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", node->fd);
	return path;
}

bool name_is_uncached(const struct mount *mount, const char *name)
{
	const char *rest = mount->options->uncached;
	char pattern[256];

	while (*rest) {
		size_t n = strcspn(rest, ",");

		if (n && n < sizeof(pattern)) {
			memcpy(pattern, rest, n);
			pattern[n] = 0;
			if (!fnmatch(pattern, name, 0))
				return true;
		}
		rest += n + (rest[n] == ',');
	}
	return false;
}

int node_adopt(struct mount *mount, int fd, const char *name, struct fuse_entry_param *entry)
{
	struct node *node;
	struct stat st;
	int code;

	if (fstatat(fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) {
		code = -errno;
		close(fd);
		return code;
	}
	node = get(mount, fd, &st);
	if (!node)
		return -ENOMEM;
	if (name_is_uncached(mount, name))
		node->uncached = true;
	*entry = (struct fuse_entry_param){
		.ino = node == &mount->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node,
		.attr_timeout = mount->options->timeout,
		.entry_timeout = mount->options->timeout,
	};
	code = attr_of(mount, node, &entry->attr);
	if (code)
		node_unref(mount, node, 1);
	return code;
}

int node_lookup(struct mount *mount, struct node *parent, const char *name,
		struct fuse_entry_param *entry)
{
	int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : node_adopt(mount, fd, name, entry);
}
