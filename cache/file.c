/* SPDX-License-Identifier: MIT
 *
 * Handles and nodes: opening, closing, and what is remembered of files that are closed.
 *
 * A node lives as long as it has a handle, a dirty page or somebody who writes it back. After that
 * it is idle: its pages stay where they are, its descriptors are closed, and what the file looked
 * like is remembered. If it looks different when it is opened again, it gets another number in the
 * pool, and the old pages leave by themselves. Nodes that have been idle for longest are forgotten
 * in the same way.
 */
#include "cache/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- descriptors ---- */

/* The same file, opened once more in another way. */
static int reopen(int fd, int flags)
{
	char path[40];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static void put_fd(struct file_node *n, enum fd_use use, int fd)
{
	atomic_store_explicit(&n->fds[use], fd, memory_order_release);
}

static int get_fd(const struct file_node *n, enum fd_use use)
{
	return atomic_load_explicit(&n->fds[use], memory_order_relaxed);
}

/* The incomplete last page is written through the kernel's page cache, all others past it. The two
 * must not meet in one folio of the kernel at the same time, or it reports an error for the file.
 * Without its read-ahead folios there are as small as the write that made them. */
static void no_large_folios(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

/* Take over what `fd` (opened for reading, and for writing if `writable`) has for the node that it
 * lacks; `fd` is used or closed. Under cache->lock. */
static void node_take_fd(struct file_node *n, int fd, bool writable)
{
	bool direct = n->cache->direct, used = false;

	if (direct)
		no_large_folios(fd);
	if (writable && get_fd(n, FD_WRITE) < 0) {
		put_fd(n, FD_WRITE, fd);
		used = true;
		if (direct)
			put_fd(n, FD_WRITE_DIRECT, MAX(reopen(fd, O_RDWR | O_DIRECT), -1));
	}
	if (get_fd(n, FD_READ) < 0) {
		if (!used)
			put_fd(n, FD_READ, fd);
		used = true;
		if (get_fd(n, FD_WRITE) >= 0) {
			put_fd(n, FD_READ, get_fd(n, FD_WRITE));
			put_fd(n, FD_READ_DIRECT, get_fd(n, FD_WRITE_DIRECT));
		} else if (direct) {
			put_fd(n, FD_READ_DIRECT, MAX(reopen(fd, O_RDONLY | O_DIRECT), -1));
		}
	}
	if (!used)
		close(fd);
}

void node_close_fds(struct file_node *n)
{
	for (enum fd_use use = FD_READ_DIRECT; use < NR_FDS; use++)
		if (get_fd(n, use) >= 0 &&
		    (use != FD_READ_DIRECT || get_fd(n, use) != get_fd(n, FD_WRITE_DIRECT)))
			close(get_fd(n, use));
	if (get_fd(n, FD_READ) >= 0 && get_fd(n, FD_READ) != get_fd(n, FD_WRITE))
		close(get_fd(n, FD_READ));
	if (get_fd(n, FD_WRITE) >= 0)
		close(get_fd(n, FD_WRITE));
	for (enum fd_use use = 0; use < NR_FDS; use++)
		put_fd(n, use, -1);
}

/* ---- nodes ---- */

static struct file_node **bucket(struct foliage_cache *c, dev_t dev, ino_t ino)
{
	uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 40) * UINT64_C(0x9E3779B97F4A7C15);

	return &c->table[hash >> 32 & (NODE_BUCKETS - 1)];
}

static struct file_node *find(struct foliage_cache *c, dev_t dev, ino_t ino)
{
	struct file_node *n = *bucket(c, dev, ino);

	while (n && (n->dev != dev || n->ino != ino))
		n = n->chain;
	return n;
}

static struct file_node *node_new(struct foliage_cache *c, const struct stat *st, uint64_t size)
{
	struct file_node *n = calloc(1, sizeof(*n)), **at = bucket(c, st->st_dev, st->st_ino);

	if (!n)
		return NULL;
	n->cache = c;
	n->id = c->next_id++;
	n->dev = st->st_dev;
	n->ino = st->st_ino;
	n->unsynced_first = NO_PAGE;
	atomic_init(&n->size, size);
	for (enum fd_use use = 0; use < NR_FDS; use++)
		atomic_init(&n->fds[use], -1);
	pthread_mutex_init(&n->write_lock, NULL);
	pthread_mutex_init(&n->sync_lock, NULL);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->cond, NULL);
	n->chain = *at;
	*at = n;
	c->nr_nodes++;
	return n;
}

void node_free(struct file_node *n)
{
	struct foliage_group *group = atomic_load(&n->group);

	node_close_fds(n);
	if (group && file_cache_alive(n->cache))
		foliage_group_release(group);
	dirty_fini(n);
	pthread_cond_destroy(&n->cond);
	pthread_mutex_destroy(&n->lock);
	pthread_mutex_destroy(&n->sync_lock);
	pthread_mutex_destroy(&n->write_lock);
	free(n);
}

static void idle_del(struct foliage_cache *c, struct file_node *n)
{
	if (!n->idle)
		return;
	n->idle = false;
	c->nr_idle--;
	if (n->idle_prev)
		n->idle_prev->idle_next = n->idle_next;
	else
		c->idle_first = n->idle_next;
	if (n->idle_next)
		n->idle_next->idle_prev = n->idle_prev;
	else
		c->idle_last = n->idle_prev;
}

static void idle_add(struct foliage_cache *c, struct file_node *n)
{
	n->idle = true;
	c->nr_idle++;
	n->idle_next = NULL;
	n->idle_prev = c->idle_last;
	if (c->idle_last)
		c->idle_last->idle_next = n;
	else
		c->idle_first = n;
	c->idle_last = n;
}

static void node_forget(struct foliage_cache *c, struct file_node *n)
{
	struct file_node **at = bucket(c, n->dev, n->ino);

	idle_del(c, n);
	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	c->nr_nodes--;
	node_free(n);
}

/* Drop what nobody can ever read, unless somebody has opened it again. */
static void drop_unlinked(struct file_node *n)
{
	struct foliage_cache *c = n->cache;
	uint64_t pages;

	pthread_mutex_lock(&c->lock);
	if (!n->handles) {
		pthread_mutex_lock(&n->lock);
		writeback_hold(n);
		pages = cache_pages(c, node_size(n));
		dirty_forget(n, 0, UINT64_MAX);
		if (pages)
			foliage_pool_truncate(c->pool, n->id, 0, pages - 1);
		atomic_fetch_add(&n->generation, 1);
		writeback_release(n);
		pthread_mutex_unlock(&n->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

static bool unlinked(struct file_node *n)
{
	int fd = MAX(get_fd(n, FD_READ), get_fd(n, FD_WRITE));
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink;
}

/* No user, and nothing that would bring one. Under cache->lock. */
static bool unused(struct foliage_cache *c, struct file_node *n)
{
	bool is;

	pthread_mutex_lock(&c->dirty_lock);
	is = !n->handles && !n->users && !n->listed && !atomic_load(&n->nr_dirty) &&
	     !atomic_load(&n->nr_writeback) && !atomic_load(&n->fills);
	pthread_mutex_unlock(&c->dirty_lock);
	return is;
}

void node_settle(struct file_node *n)
{
	struct foliage_cache *c = n->cache;
	struct stat st;

	pthread_mutex_lock(&c->lock);
	if (!n->idle && unused(c, n)) {
		int fd = MAX(get_fd(n, FD_READ), get_fd(n, FD_WRITE));

		if (fd < 0 || fstat(fd, &st) || !st.st_nlink) {
			node_forget(c, n);
		} else {
			n->known_mtime = st.st_mtim;
			n->known_ctime = st.st_ctim;
			node_close_fds(n);
			idle_add(c, n);
			if (c->nr_idle > NODE_IDLE_MAX)
				node_forget(c, c->idle_first);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* An idle node is wanted again. */
static void wake_node(struct foliage_cache *c, struct file_node *n, const struct stat *st,
		      uint64_t size)
{
	idle_del(c, n);
	if (same_time(st->st_mtim, n->known_mtime) && same_time(st->st_ctim, n->known_ctime) &&
	    size == node_size(n))
		return;
	n->id = c->next_id++;
	atomic_store(&n->size, size);
}

/* ---- open and close ---- */

static int file_size(int fd, const struct stat *st, uint64_t *size)
{
	*size = (uint64_t)st->st_size;
	if (S_ISREG(st->st_mode))
		return 0;
	if (!S_ISBLK(st->st_mode))
		return -ENODEV;
	return ioctl(fd, BLKGETSIZE64, size) ? -errno : 0;
}

/* A handle of the open `fd`, which is taken over. */
static int open_node(struct foliage_cache *c, int fd, bool writable, struct foliage_file *f)
{
	struct file_node *n;
	struct stat st;
	uint64_t size;
	int rc = fstat(fd, &st) ? -errno : file_size(fd, &st, &size);

	if (rc) {
		close(fd);
		return rc;
	}
	pthread_mutex_lock(&c->lock);
	n = find(c, st.st_dev, st.st_ino);
	if (n && n->idle)
		wake_node(c, n, &st, size);
	if (!n)
		n = node_new(c, &st, size);
	if (n) {
		node_take_fd(n, fd, writable);
		n->handles++;
		f->node = n;
		f->prev = NULL;
		f->next = c->files;
		if (c->files)
			c->files->prev = f;
		c->files = f;
		c->nr_files++;
	}
	pthread_mutex_unlock(&c->lock);
	if (!n) {
		close(fd);
		return -ENOMEM;
	}
	/* An error that nobody has heard of is for this handle as well. */
	pthread_mutex_lock(&n->lock);
	atomic_init(&f->error_seq, n->error_seq - (n->error_seq && !n->error_seen));
	pthread_mutex_unlock(&n->lock);
	return 0;
}

static int open_taken(struct foliage_cache *c, int fd, int flags, struct foliage_file **file)
{
	int access = flags & O_ACCMODE, rc;
	struct foliage_file *f = calloc(1, sizeof(*f));

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->readable = access != O_WRONLY;
	f->writable = access != O_RDONLY;
	f->append = flags & O_APPEND;
	f->sync_all = (flags & O_SYNC) == O_SYNC;
	f->sync_data = flags & O_DSYNC;
	atomic_init(&f->trigger, NO_PAGE);
	rc = open_node(c, fd, f->writable, f);
	if (rc) {
		free(f);
		return rc;
	}
	*file = f;
	return 0;
}

int foliage_file_open(struct foliage_cache *c, const char *path, int flags, mode_t mode,
		      struct foliage_file **file)
{
	int fd, rc, access = (flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;

	if (!file_cache_alive(c))
		return -ECHILD;
	if ((flags & O_ACCMODE) == O_ACCMODE || flags & O_PATH)
		return -EINVAL;
	/* Nonblocking: it may be a pipe that nobody writes to. */
	fd = open(path,
		  access | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
			  (flags & (O_CREAT | O_EXCL | O_NOFOLLOW | O_TMPFILE | O_NOATIME)),
		  mode);
	if (fd < 0)
		return -errno;
	rc = open_taken(c, fd, flags, file);
	if (!rc && flags & O_TRUNC && (flags & O_ACCMODE) != O_RDONLY) {
		rc = foliage_file_truncate(*file, 0);
		if (rc)
			foliage_file_close(*file);
	}
	return rc;
}

int foliage_file_open_fd(struct foliage_cache *c, int fd, struct foliage_file **file)
{
	int flags = fcntl(fd, F_GETFL), own;

	if (!file_cache_alive(c))
		return -ECHILD;
	if (flags < 0)
		return -errno;
	if (flags & O_PATH)
		return -EBADF;
	own = reopen(fd, (flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR);
	/* No /proc. What appends would append whatever offset is asked for. */
	if (own == -ENOENT && !(flags & O_APPEND) && (flags & O_ACCMODE) != O_WRONLY)
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? own : open_taken(c, own, flags, file);
}

int foliage_file_close(struct foliage_file *f)
{
	struct file_node *n = f->node;
	struct foliage_cache *c = n->cache;
	bool last, many = false;

	if (!file_cache_alive(c))
		return -ECHILD;
	pthread_mutex_lock(&c->dirty_lock);
	n->users++; /* until it is settled */
	pthread_mutex_unlock(&c->dirty_lock);
	pthread_mutex_lock(&c->lock);
	if (f->prev)
		f->prev->next = f->next;
	else
		c->files = f->next;
	if (f->next)
		f->next->prev = f->prev;
	c->nr_files--;
	last = !--n->handles;
	many = c->nr_nodes - c->nr_idle > c->nr_files + CLOSED_DIRTY_MAX;
	pthread_mutex_unlock(&c->lock);
	free(f);
	while (last && atomic_load(&n->fills))
		file_wait_news(c);
	if (last && unlinked(n))
		drop_unlinked(n);
	else if (last && many)
		writeback_node(n);
	pthread_mutex_lock(&c->dirty_lock);
	n->users--;
	pthread_mutex_unlock(&c->dirty_lock);
	node_settle(n);
	return 0;
}

int foliage_file_fd(struct foliage_file *f)
{
	int fd = get_fd(f->node, FD_WRITE);

	return fd >= 0 ? fd : get_fd(f->node, FD_READ);
}

uint64_t foliage_file_size(struct foliage_file *f)
{
	return node_size(f->node);
}

void foliage_cache_restamp(struct foliage_cache *c, const struct stat *before,
			   const struct stat *after)
{
	struct file_node *n;

	if (!file_cache_alive(c))
		return;
	pthread_mutex_lock(&c->lock);
	n = find(c, before->st_dev, before->st_ino);
	if (n && n->idle && same_time(before->st_mtim, n->known_mtime) &&
	    same_time(before->st_ctim, n->known_ctime) &&
	    (uint64_t)after->st_size == node_size(n)) {
		n->known_mtime = after->st_mtim;
		n->known_ctime = after->st_ctim;
	}
	pthread_mutex_unlock(&c->lock);
}

int foliage_file_set_group(struct foliage_file *f, struct foliage_group *group)
{
	struct file_node *n = f->node;
	struct foliage_group *before;

	if (!file_cache_alive(n->cache))
		return -ECHILD;
	if (group)
		foliage_group_hold(group);
	/* Threads may be fetching for the old one: that is let go of with the node. */
	pthread_mutex_lock(&n->cache->lock);
	before = atomic_load(&n->group);
	if (!before)
		atomic_store_explicit(&n->group, group, memory_order_release);
	pthread_mutex_unlock(&n->cache->lock);
	if (before && group)
		foliage_group_release(group);
	return before && before != group ? -EBUSY : 0;
}

bool foliage_cache_stat(struct foliage_cache *c, struct stat *st)
{
	bool known = false;
	struct file_node *n;

	if (!file_cache_alive(c) || !S_ISREG(st->st_mode))
		return false;
	pthread_mutex_lock(&c->lock);
	n = find(c, st->st_dev, st->st_ino);
	if (n && !n->idle) {
		pthread_mutex_lock(&n->lock);
		if (n->touched || atomic_load(&n->nr_dirty) || atomic_load(&n->nr_writeback)) {
			st->st_size = (off_t)node_size(n);
			st->st_mtim = st->st_ctim = n->mtime;
			known = true;
		}
		pthread_mutex_unlock(&n->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return known;
}
