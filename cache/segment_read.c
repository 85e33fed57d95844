/* SPDX-License-Identifier: MIT
 *
 * Reading statistics segments. A reader never maps the file: it reads copies, so that a file which
 * shrinks or lies is an error and not a signal, and it checks what it was told before anybody sees
 * it. Whether the writer lives is asked of the system, by its number and the time it started.
 */
#include "cache/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_ATTEMPTS = 1000 };

struct foliage_segment_reader {
	int fd;
	uint64_t start_ticks;
	struct foliage_segment_identity identity;
};

/* ---- processes ---- */

uint64_t segment_start_ticks(uint64_t pid)
{
	char path[64], text[1024];
	unsigned long long ticks;
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The name, field 2, may contain anything; it ends at the last parenthesis. Then the state. */
	at = strrchr(text, ')');
	if (!at || strspn(at, ") ") != 2 || strchr("ZX", at[2]))
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}

bool foliage_segment_alive(const struct foliage_segment_reader *r)
{
	uint64_t pid = r->identity.pid;

	if (!pid || pid > INT_MAX || (kill((pid_t)pid, 0) && errno != EPERM))
		return false;
	return !r->start_ticks || segment_start_ticks(pid) == r->start_ticks;
}

/* ---- one segment ---- */

static int read_at(int fd, void *to, size_t bytes, size_t offset)
{
	ssize_t n = pread(fd, to, bytes, (off_t)offset);

	return n < 0 ? -errno : (size_t)n == bytes ? 0 : -EIO;
}

static int path_of(const char *name, char *path, size_t bytes)
{
	int n = snprintf(path, bytes, "%s%s", strchr(name, '/') ? "" : SEGMENT_FOLDER "/", name);

	return n < 0 || (size_t)n >= bytes ? -ENAMETOOLONG : 0;
}

static int check(struct foliage_segment_reader *r)
{
	struct segment_layout *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	rc = read_at(r->fd, l, offsetof(struct segment_layout, stamp), 0);
	if (rc == -EIO || rc == -EISDIR ||
	    (!rc &&
	     (atomic_load(&l->magic) != SEGMENT_MAGIC || l->version != FOLIAGE_SEGMENT_VERSION ||
	      l->bytes != sizeof(*l) || l->groups != FOLIAGE_SEGMENT_GROUPS)))
		rc = -EPROTO;
	r->start_ticks = l->start_ticks;
	r->identity = l->identity;
	r->identity.program[sizeof(r->identity.program) - 1] = '\0';
	r->identity.policy[sizeof(r->identity.policy) - 1] = '\0';
	r->identity.label[sizeof(r->identity.label) - 1] = '\0';
	free(l);
	return rc;
}

int foliage_segment_open(const char *name, struct foliage_segment_reader **reader)
{
	struct foliage_segment_reader *r = calloc(1, sizeof(*r));
	char path[PATH_MAX];
	struct stat st;
	int rc;

	if (!r)
		return -ENOMEM;
	rc = path_of(name, path, sizeof(path));
	/* A pipe or a device of that name must not hold us up. */
	r->fd = rc ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (!rc && r->fd < 0)
		rc = -errno;
	if (!rc && fstat(r->fd, &st))
		rc = -errno;
	if (!rc && !S_ISREG(st.st_mode))
		rc = -EPROTO;
	if (!rc)
		rc = check(r);
	if (rc) {
		foliage_segment_close(r);
		return rc;
	}
	*reader = r;
	return 0;
}

const struct foliage_segment_identity *
foliage_segment_identity(const struct foliage_segment_reader *r)
{
	return &r->identity;
}

static void sanitize(struct foliage_segment_values *v)
{
	for (int i = 0; i < FOLIAGE_SEGMENT_GROUPS; i++)
		v->groups[i].name[FOLIAGE_SEGMENT_NAME - 1] = '\0';
}

int foliage_segment_read(struct foliage_segment_reader *r, struct foliage_segment_values *values)
{
	const size_t stamp_at = offsetof(struct segment_layout, stamp);

	for (int i = 0; i < READ_ATTEMPTS; i++) {
		uint64_t before, now;
		int rc = read_at(r->fd, &before, sizeof(before), stamp_at);

		atomic_thread_fence(memory_order_acquire);
		if (!rc && !(before & 1))
			rc = read_at(r->fd, values, sizeof(*values),
				     offsetof(struct segment_layout, values));
		atomic_thread_fence(memory_order_acquire);
		if (!rc)
			rc = read_at(r->fd, &now, sizeof(now), stamp_at);
		if (rc)
			return rc;
		if (!(before & 1) && now == before) {
			sanitize(values);
			return 0;
		}
		sched_yield();
	}
	return -EAGAIN;
}

void foliage_segment_close(struct foliage_segment_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

/* ---- all of them ---- */

int foliage_segment_list(int (*each)(void *ctx, const char *name,
				     const struct foliage_segment_identity *identity, bool alive),
			 void *ctx)
{
	DIR *folder = opendir(SEGMENT_FOLDER);
	struct dirent *entry;
	int rc = 0;

	if (!folder)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (entry = readdir(folder))) {
		struct foliage_segment_reader *reader;

		if (strncmp(entry->d_name, SEGMENT_PREFIX, strlen(SEGMENT_PREFIX)) != 0 ||
		    foliage_segment_open(entry->d_name, &reader))
			continue;
		rc = each(ctx, entry->d_name, &reader->identity, foliage_segment_alive(reader));
		foliage_segment_close(reader);
	}
	closedir(folder);
	return rc;
}

struct search {
	const char *label;
	uint64_t pid;
	char *name;
	size_t bytes;
	int found;
};

static int compare(void *ctx, const char *name, const struct foliage_segment_identity *identity,
		   bool alive)
{
	struct search *s = ctx;

	if (!alive || (identity->pid != s->pid && strcmp(identity->label, s->label) != 0))
		return 0;
	s->found++;
	return snprintf(s->name, s->bytes, "%s", name) >= (int)s->bytes ? -ENAMETOOLONG : 0;
}

static int search(struct search *s)
{
	int rc = foliage_segment_list(compare, s);

	if (rc)
		return rc;
	return s->found == 1 ? 0 : s->found ? -ENOTUNIQ : -ENOENT;
}

int foliage_segment_find(const char *target, char *name, size_t bytes)
{
	char resolved[PATH_MAX], *end;
	struct search s = {.label = target, .name = name, .bytes = bytes};
	struct foliage_segment_reader *reader;
	int rc;

	if (!target[0])
		return -ENOENT;
	s.pid = strtoull(target, &end, 10);
	if (*end)
		s.pid = UINT64_MAX;
	/* Labels first: to touch the path of a mount is to wait for whoever serves it. */
	rc = search(&s);
	if (rc != -ENOENT)
		return rc;
	s.label = realpath(target, resolved);
	s.pid = UINT64_MAX;
	rc = s.label ? search(&s) : -ENOENT;
	if (rc != -ENOENT)
		return rc;
	rc = foliage_segment_open(target, &reader);
	if (rc)
		return rc == -EPROTO ? -ENOENT : rc;
	foliage_segment_close(reader);
	return snprintf(name, bytes, "%s", target) >= (int)bytes ? -ENAMETOOLONG : 0;
}

static int clean(void *ctx, const char *name, const struct foliage_segment_identity *identity,
		 bool alive)
{
	char path[PATH_MAX];

	(void)identity;
	if (!alive && !path_of(name, path, sizeof(path)) && !unlink(path))
		++*(int *)ctx;
	return 0;
}

int foliage_segment_clean(void)
{
	int removed = 0, rc = foliage_segment_list(clean, &removed);

	return rc ? rc : removed;
}
