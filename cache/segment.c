/* SPDX-License-Identifier: MIT
 *
 * Writing a statistics segment. An update makes the stamp odd, stores every word, and makes it even
 * again: a reader that saw the same even stamp before and after has seen one update. Updates of
 * several threads take turns by a mutex of the writer's own memory, which readers cannot hold.
 */
#include "cache/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct foliage_segment {
	struct segment_layout *shared;
	uint64_t updates;
	pid_t pid; /* of the creator: nobody else writes */
	pthread_mutex_t lock;
	/* The thread that publishes. */
	pthread_cond_t cond;
	pthread_t thread;
	bool running, stop;
	uint32_t interval_ms;
	int (*fill)(void *ctx, struct foliage_segment_values *values);
	void *ctx;
	char path[PATH_MAX];
};

/* ---- the file ---- */

static int make_file(const char *path, uint32_t mode)
{
	int fd =
		open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, mode ? mode : 0644u);
	int rc;

	if (fd < 0)
		return -errno;
	/* Not ftruncate(): a full file system must say so now, not by a signal at an update. */
	rc = posix_fallocate(fd, 0, sizeof(struct segment_layout));
	if (rc) {
		close(fd);
		unlink(path);
		return -rc;
	}
	return fd;
}

/* The first free foliage.PID.N; what an earlier process of our number left is not in the way. */
static int make_named(struct foliage_segment *s, uint32_t mode)
{
	int fd = -EEXIST;

	for (unsigned int n = 0; n < 10000 && fd == -EEXIST; n++) {
		snprintf(s->path, sizeof(s->path), "%s/%s%d.%u", SEGMENT_FOLDER, SEGMENT_PREFIX,
			 (int)s->pid, n);
		fd = make_file(s->path, mode);
	}
	return fd;
}

static bool is_stale(const char *path)
{
	struct foliage_segment_reader *reader;
	bool stale;

	if (foliage_segment_open(path, &reader))
		return false;
	stale = !foliage_segment_alive(reader);
	foliage_segment_close(reader);
	return stale;
}

static int make_at(struct foliage_segment *s, const char *path, uint32_t mode)
{
	int fd;

	if (!path[0])
		return -EINVAL;
	if (snprintf(s->path, sizeof(s->path), "%s%s", strchr(path, '/') ? "" : "./", path) >=
	    (int)sizeof(s->path))
		return -ENAMETOOLONG;
	fd = make_file(s->path, mode);
	if (fd == -EEXIST && is_stale(s->path)) {
		unlink(s->path);
		fd = make_file(s->path, mode);
	}
	return fd;
}

static int map_file(struct foliage_segment *s, int fd)
{
	void *map = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int rc = map == MAP_FAILED ? -errno : 0;

	close(fd);
	if (rc)
		unlink(s->path);
	else
		s->shared = map;
	return rc;
}

/* ---- create and destroy ---- */

static int check_text(const char *text, size_t bytes)
{
	return text && strlen(text) >= bytes ? -EINVAL : 0;
}

static int check_options(const struct foliage_segment_options *o)
{
	const struct foliage_segment_identity *identity = NULL;

	if (o->mode & ~0666u || check_text(o->program, sizeof(identity->program)) ||
	    check_text(o->policy, sizeof(identity->policy)) ||
	    check_text(o->label, sizeof(identity->label)))
		return -EINVAL;
	return 0;
}

static void describe(struct foliage_segment *s, const struct foliage_segment_options *o)
{
	struct segment_layout *shared = s->shared;
	struct foliage_segment_identity *identity = &shared->identity;

	shared->version = FOLIAGE_SEGMENT_VERSION;
	shared->bytes = sizeof(*shared);
	shared->groups = FOLIAGE_SEGMENT_GROUPS;
	shared->start_ticks = segment_start_ticks((uint64_t)s->pid);
	identity->pid = (uint64_t)s->pid;
	identity->created_s = (uint64_t)time(NULL);
	snprintf(identity->program, sizeof(identity->program), "%s",
		 o->program ? o->program : program_invocation_short_name);
	snprintf(identity->policy, sizeof(identity->policy), "%s", o->policy ? o->policy : "");
	snprintf(identity->label, sizeof(identity->label), "%s", o->label ? o->label : "");
	atomic_store_explicit(&shared->magic, SEGMENT_MAGIC, memory_order_release);
}

int foliage_segment_create(const struct foliage_segment_options *o,
			   struct foliage_segment **segment)
{
	struct foliage_segment *s;
	pthread_condattr_t monotonic;
	int rc = check_options(o);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->pid = getpid();
	rc = o->path ? make_at(s, o->path, o->mode) : make_named(s, o->mode);
	if (rc >= 0)
		rc = map_file(s, rc);
	if (rc) {
		free(s);
		return rc;
	}
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&s->lock, NULL);
	describe(s, o);
	*segment = s;
	return 0;
}

const char *foliage_segment_path(const struct foliage_segment *s)
{
	return s->path;
}

void foliage_segment_destroy(struct foliage_segment *s)
{
	if (!s)
		return;
	/* In a forked child there is no thread to wait for, and the file is the parent's. */
	if (s->pid == getpid()) {
		if (s->running) {
			pthread_mutex_lock(&s->lock);
			s->stop = true;
			pthread_cond_signal(&s->cond);
			pthread_mutex_unlock(&s->lock);
			pthread_join(s->thread, NULL);
		}
		unlink(s->path);
		pthread_cond_destroy(&s->cond);
		pthread_mutex_destroy(&s->lock);
	}
	munmap(s->shared, sizeof(*s->shared));
	free(s);
}

/* ---- updates ---- */

static void store_words(struct foliage_segment_values *to,
			const struct foliage_segment_values *from)
{
	uint64_t word;

	for (size_t at = 0; at < sizeof(*to); at += sizeof(word)) {
		memcpy(&word, (const char *)from + at, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)((char *)to + at), word, __ATOMIC_RELAXED);
	}
}

/* Under the lock. */
static void update(struct foliage_segment *s, const struct foliage_segment_values *values)
{
	struct segment_layout *shared = s->shared;
	uint64_t stamp = atomic_load_explicit(&shared->stamp, memory_order_relaxed);
	struct timespec now;

	atomic_store_explicit(&shared->stamp, stamp + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	store_words(&shared->values, values);
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->updates++;
	__atomic_store_n(&shared->values.updates, s->updates, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->values.time_ns,
			 (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
			 __ATOMIC_RELAXED);
	atomic_store_explicit(&shared->stamp, stamp + 2, memory_order_release);
}

int foliage_segment_update(struct foliage_segment *s, const struct foliage_segment_values *values)
{
	if (s->pid != getpid())
		return -ECHILD;
	pthread_mutex_lock(&s->lock);
	update(s, values);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- the thread ---- */

static struct timespec after(uint32_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static void *publish(void *arg)
{
	struct foliage_segment *s = arg;
	struct foliage_segment_values values;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		struct timespec until = after(s->interval_ms);

		/* Not under the lock: `fill` may take its time, others may update. */
		pthread_mutex_unlock(&s->lock);
		memset(&values, 0, sizeof(values));
		if (!s->fill(s->ctx, &values))
			foliage_segment_update(s, &values);
		pthread_mutex_lock(&s->lock);
		while (!s->stop && !pthread_cond_timedwait(&s->cond, &s->lock, &until))
			;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int foliage_segment_start(struct foliage_segment *s, uint32_t interval_ms,
			  int (*fill)(void *ctx, struct foliage_segment_values *values), void *ctx)
{
	sigset_t all, before;
	int rc;

	if (s->pid != getpid())
		return -ECHILD;
	if (interval_ms < 10 || interval_ms > 60000 || !fill)
		return -EINVAL;
	if (s->running)
		return -EBUSY;
	s->interval_ms = interval_ms;
	s->fill = fill;
	s->ctx = ctx;
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&s->thread, NULL, publish, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = !rc;
	return -rc;
}
