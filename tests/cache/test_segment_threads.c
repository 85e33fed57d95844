/* SPDX-License-Identifier: MIT
 *
 * Statistics segments: what is written is what is read, never half of an update; who is gone is
 * known to be gone; files that are none, or lie, are errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/segment.h"
#include "foliage/cache.h"
#include "foliage/group.h"
#include "foliage/reclaim.h"

static struct foliage_segment *make(const char *path, const char *label)
{
	const struct foliage_segment_options options = {
		.path = path, .program = "prog", .policy = "fg:refs_max=3", .label = label};
	struct foliage_segment *s = NULL;

	assert_int_equal(foliage_segment_create(&options, &s), 0);
	return s;
}

static const char *base_name(const struct foliage_segment *s)
{
	return strrchr(foliage_segment_path(s), '/') + 1;
}

static void test_round_trip(void **state)
{
	static struct foliage_segment_values in, out;
	struct foliage_segment *s = make(NULL, "round trip");
	struct foliage_segment_reader *r;
	const struct foliage_segment_identity *id;

	(void)state;
	assert_int_equal(foliage_segment_open(base_name(s), &r), 0);
	id = foliage_segment_identity(r);
	assert_int_equal(id->pid, getpid());
	assert_string_equal(id->program, "prog");
	assert_string_equal(id->policy, "fg:refs_max=3");
	assert_string_equal(id->label, "round trip");
	assert_true(foliage_segment_alive(r));

	assert_int_equal(foliage_segment_read(r, &out), 0);
	assert_int_equal(out.updates, 0);

	memset(&in, 0x5a, sizeof(in));
	snprintf(in.groups[63].name, sizeof(in.groups[63].name), "/last");
	assert_int_equal(foliage_segment_update(s, &in), 0);
	assert_int_equal(foliage_segment_update(s, &in), 0);
	assert_int_equal(foliage_segment_read(r, &out), 0);
	assert_int_equal(out.updates, 2);
	assert_true(out.time_ns > 0);
	assert_int_equal(out.hits, in.hits);
	assert_int_equal(out.file.pages[7], in.file.pages[7]);
	assert_string_equal(out.groups[63].name, "/last");
	/* Not terminated by the writer: terminated by the reader. */
	assert_int_equal(strlen(out.groups[62].name), FOLIAGE_SEGMENT_NAME - 1);
	foliage_segment_destroy(s);
	/* The reader of a segment that was destroyed still has the last values. */
	assert_int_equal(foliage_segment_read(r, &out), 0);
	assert_int_equal(out.updates, 2);
	foliage_segment_close(r);
}

static int sum_up(void *ctx, const char *name, const struct foliage_segment_identity *id,
		  bool alive)
{
	(void)name;
	if (alive && id->pid == (uint64_t)getpid())
		++*(int *)ctx;
	return 0;
}

static void test_names(void **state)
{
	struct foliage_segment *a = make(NULL, "one"), *b = make(NULL, "/usr/.."), *c;
	char name[200], pid[20];
	int count = 0;

	(void)state;
	assert_string_not_equal(base_name(a), base_name(b));
	assert_int_equal(foliage_segment_list(sum_up, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(foliage_segment_find("one", name, sizeof(name)), 0);
	assert_string_equal(name, base_name(a));
	assert_int_equal(foliage_segment_find(base_name(b), name, sizeof(name)), 0);
	assert_string_equal(name, base_name(b));
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_int_equal(foliage_segment_find(pid, name, sizeof(name)), -ENOTUNIQ);
	assert_int_equal(foliage_segment_find("one", name, 4), -ENAMETOOLONG);
	assert_int_equal(foliage_segment_find("two", name, sizeof(name)), -ENOENT);
	assert_int_equal(foliage_segment_find("", name, sizeof(name)), -ENOENT);
	foliage_segment_destroy(a);
	assert_int_equal(foliage_segment_find(pid, name, sizeof(name)), 0);
	assert_string_equal(name, base_name(b));
	/* A path finds the label it resolves to. */
	c = make(NULL, "/usr");
	assert_int_equal(foliage_segment_find("/usr/", name, sizeof(name)), 0);
	assert_string_equal(name, base_name(c));
	foliage_segment_destroy(b);
	foliage_segment_destroy(c);
	assert_int_equal(foliage_segment_find(pid, name, sizeof(name)), -ENOENT);
}

static void test_files(void **state)
{
	char path[] = "/tmp/foliage-segment-XXXXXX", text[4096];
	const struct foliage_segment_options at = {.path = path}, wrong = {.mode = 0777},
					     nowhere = {.path = "/proc/none/segment"};
	struct foliage_segment_options lengthy = {.label = text};
	struct foliage_segment *s = NULL, *other = NULL;
	struct foliage_segment_reader *r;
	int fd = mkstemp(path);

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(foliage_segment_create(&wrong, &s), -EINVAL);
	assert_int_equal(foliage_segment_create(&lengthy, &s), -EINVAL);
	assert_int_equal(foliage_segment_create(&nowhere, &s), -ENOENT);
	/* Somebody's file is not overwritten, whatever it is; and it is not a segment. */
	assert_int_equal(foliage_segment_create(&at, &s), -EEXIST);
	assert_int_equal(foliage_segment_open(path, &r), -EPROTO);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	assert_int_equal(foliage_segment_open(path, &r), -EPROTO);
	assert_int_equal(foliage_segment_open("/dev/null", &r), -EPROTO);
	assert_int_equal(foliage_segment_open("/tmp", &r), -EPROTO);
	assert_int_equal(foliage_segment_open("/tmp/none/none", &r), -ENOENT);
	close(fd);
	unlink(path);

	assert_int_equal(foliage_segment_create(&at, &s), 0);
	assert_int_equal(foliage_segment_create(&at, &other), -EEXIST);
	assert_int_equal(foliage_segment_open(path, &r), 0);
	/* Cut off while it is read: an error. */
	assert_int_equal(truncate(path, 3000), 0);
	{
		static struct foliage_segment_values values;

		assert_int_equal(foliage_segment_read(r, &values), -EIO);
	}
	foliage_segment_close(r);
	foliage_segment_destroy(s);
	assert_int_equal(access(path, F_OK), -1);
}

/* A segment as a killed process leaves it; `odd`: in the middle of an update. */
static pid_t leave(const char *path, bool odd, int *status_fd)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		const struct foliage_segment_options options = {.path = path, .label = "dead"};
		static struct foliage_segment_values values = {.hits = 7};
		struct foliage_segment *s;

		if (foliage_segment_create(&options, &s) || foliage_segment_update(s, &values))
			_exit(1);
		if (odd) {
			int fd = open(foliage_segment_path(s), O_RDWR);
			uint64_t stamp = 3;

			if (pwrite(fd, &stamp, sizeof(stamp),
				   offsetof(struct segment_layout, stamp)) < 0)
				_exit(1);
		}
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ends[1]);
	*status_fd = ends[0];
	return pid;
}

static void test_dead_writer(void **state)
{
	static struct foliage_segment_values values;
	char path[] = "/tmp/foliage-segment-XXXXXX", byte;
	struct foliage_segment_reader *r;
	struct foliage_segment *s;
	char name[200];
	int fd;
	pid_t pid;

	(void)state;
	close(mkstemp(path));
	unlink(path);
	pid = leave(path, false, &fd);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	assert_int_equal(foliage_segment_open(path, &r), 0);
	assert_true(foliage_segment_alive(r));
	kill(pid, SIGKILL);
	/* Dead, not yet buried: neither can be alive. */
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(foliage_segment_alive(r));
	waitpid(pid, NULL, 0);
	assert_false(foliage_segment_alive(r));
	assert_int_equal(foliage_segment_read(r, &values), 0);
	assert_int_equal(values.hits, 7);
	foliage_segment_close(r);
	/* Its place may be taken. */
	s = make(path, "heir");
	foliage_segment_destroy(s);

	pid = leave(NULL, true, &fd);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	snprintf(name, sizeof(name), "foliage.%d.0", (int)pid);
	assert_int_equal(foliage_segment_open(name, &r), 0);
	assert_int_equal(foliage_segment_read(r, &values), -EAGAIN);
	foliage_segment_close(r);
	assert_int_equal(foliage_segment_find("dead", name, sizeof(name)), -ENOENT);
	assert_true(foliage_segment_clean() >= 1);
	snprintf(name, sizeof(name), "foliage.%d.0", (int)pid);
	assert_int_equal(foliage_segment_open(name, &r), -ENOENT);
}

static void test_number_used_again(void **state)
{
	struct foliage_segment *s = make(NULL, "again");
	struct foliage_segment_reader *r;
	uint64_t ticks = 1;
	int fd = open(foliage_segment_path(s), O_RDWR);

	(void)state;
	assert_true(segment_start_ticks((uint64_t)getpid()) > 1);
	assert_int_equal(
		pwrite(fd, &ticks, sizeof(ticks), offsetof(struct segment_layout, start_ticks)),
		sizeof(ticks));
	close(fd);
	assert_int_equal(foliage_segment_open(base_name(s), &r), 0);
	assert_false(foliage_segment_alive(r));
	foliage_segment_close(r);
	foliage_segment_destroy(s);
}

static void test_fork(void **state)
{
	static struct foliage_segment_values values;
	struct foliage_segment *s = make(NULL, "fork");
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		int rc = foliage_segment_update(s, &values);

		foliage_segment_destroy(s);
		_exit(rc == -ECHILD ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(access(foliage_segment_path(s), F_OK), 0);
	foliage_segment_destroy(s);
}

/* ---- several writers, and readers that want all of one update ---- */

struct race {
	struct foliage_segment *segment;
	_Atomic bool stop;
};

static void fill_words(struct foliage_segment_values *v, uint64_t word)
{
	for (size_t at = 0; at < sizeof(*v); at += sizeof(word))
		memcpy((char *)v + at, &word, sizeof(word));
}

static void *write_words(void *arg)
{
	struct race *race = arg;
	struct foliage_segment_values values;

	for (uint64_t n = 1; !atomic_load(&race->stop); n++) {
		fill_words(&values, n << 32 | n);
		foliage_segment_update(race->segment, &values);
	}
	return NULL;
}

static void test_whole_updates(void **state)
{
	static struct foliage_segment_values values, same;
	struct race race = {.segment = make(NULL, "race")};
	struct foliage_segment_reader *r;
	pthread_t threads[2];
	uint64_t last = 0;
	int whole = 0;

	(void)state;
	assert_int_equal(foliage_segment_open(base_name(race.segment), &r), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_words, &race), 0);
	for (int i = 0; i < 1000; i++) {
		int rc = foliage_segment_read(r, &values);

		if (rc == -EAGAIN)
			continue;
		assert_int_equal(rc, 0);
		assert_true(values.updates >= last);
		last = values.updates;
		fill_words(&same, values.hits);
		same.updates = values.updates;
		same.time_ns = values.time_ns;
		for (int g = 0; g < FOLIAGE_SEGMENT_GROUPS; g++)
			same.groups[g].name[FOLIAGE_SEGMENT_NAME - 1] = '\0';
		assert_memory_equal(&same, &values, sizeof(values));
		whole++;
	}
	atomic_store(&race.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(whole > 100);
	foliage_segment_close(r);
	foliage_segment_destroy(race.segment);
}

/* ---- a pool's thread ---- */

static void use(struct foliage_pool *pool, uint64_t index)
{
	int kind = foliage_pool_kind(pool, 4096, 0);
	struct foliage_page *page;

	assert_true(foliage_pool_fetch(pool, 1, index, kind, FOLIAGE_FETCH_CREATE, &page) >= 0);
	foliage_pool_unpin(pool, page, 0);
}

static uint64_t in_lists(const struct foliage_segment_lists *l)
{
	uint64_t sum = 0;

	for (int i = 0; i < FOLIAGE_SEGMENT_GENS; i++)
		sum += l->pages[i];
	return sum;
}

/* Groups with their limits; another kind of policy. */
static void test_groups(void **state)
{
	const struct foliage_pool_options options = {
		.bytes = 8 << 20, .max_groups = 4, .policy = "clru"};
	struct foliage_segment_values *values = calloc(1, sizeof(*values));
	struct foliage_group *group;
	struct foliage_pool *pool;
	struct foliage_page *page;

	(void)state;
	assert_int_equal(foliage_pool_create(&options, &pool, NULL, 0), 0);
	assert_int_equal(foliage_group_create(foliage_pool_group(pool), "scans", &group), 0);
	assert_int_equal(foliage_group_set(group, FOLIAGE_GROUP_MAX, 1 << 20), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		int kind = foliage_pool_kind(pool, 4096, 0);

		assert_int_equal(
			foliage_group_fetch(group, pool, 1, i, kind, FOLIAGE_FETCH_CREATE, &page),
			FOLIAGE_NEW);
		foliage_pool_unpin(pool, page, 0);
	}
	assert_int_equal(foliage_segment_fill_pool(pool, values), 0);
	assert_int_equal(values->nr_groups, 2);
	assert_string_equal(values->groups[1].name, "/scans");
	assert_int_equal(values->groups[1].max, 1 << 20);
	assert_true(values->groups[1].current <= 1 << 20);
	assert_true(values->groups[1].evictions >= 700);
	assert_int_equal(values->file.order, FOLIAGE_SEGMENT_CLASSIC);
	assert_true(in_lists(&values->file) + FOLIAGE_BATCH >= values->pages);
	assert_true(in_lists(&values->file) <= values->pages);
	foliage_pool_destroy(pool);
	free(values);
}

static void test_pool(void **state)
{
	const struct foliage_pool_options options = {.bytes = 4 << 20};
	struct foliage_segment_values *values = calloc(1, sizeof(*values));
	struct foliage_segment *s = make(NULL, "pool");
	struct foliage_segment_reader *r;
	struct foliage_pool *pool;
	const struct timespec pause = {.tv_nsec = 5000000};

	(void)state;
	assert_int_equal(foliage_pool_create(&options, &pool, NULL, 0), 0);
	assert_int_equal(foliage_segment_open(base_name(s), &r), 0);
	for (uint64_t i = 0; i < 2000; i++)
		use(pool, i);
	for (uint64_t i = 1990; i < 2000; i++)
		use(pool, i);
	assert_int_equal(foliage_segment_publish_pool(s, pool), 0);
	assert_int_equal(foliage_segment_read(r, values), 0);
	assert_int_equal(values->misses, 2000);
	assert_int_equal(values->hits, 10);
	assert_int_equal(values->budget, 4 << 20);
	assert_int_equal(values->pages, 2000 - values->evictions);
	/* The root is a group; its pages, and all others, are in some generation or on their way. */
	assert_int_equal(values->nr_groups, 1);
	assert_string_equal(values->groups[0].name, "/");
	assert_int_equal(values->groups[0].current, values->pages * 4096);
	assert_int_equal(values->file.order, FOLIAGE_SEGMENT_GENERATIONS);
	assert_true(values->file.max_seq >= values->file.min_seq + 1);
	assert_true(in_lists(&values->file) + FOLIAGE_BATCH >= values->pages);
	assert_true(in_lists(&values->file) <= values->pages);
	assert_int_equal(in_lists(&values->anon), 0);

	assert_int_equal(foliage_segment_start_pool(s, pool, 5), -EINVAL);
	assert_int_equal(foliage_segment_start_pool(s, pool, 10), 0);
	assert_int_equal(foliage_segment_start_pool(s, pool, 10), -EBUSY);
	use(pool, 1999);
	for (int i = 0; i < 2000 && values->hits < 11; i++) {
		nanosleep(&pause, NULL);
		assert_int_equal(foliage_segment_read(r, values), 0);
	}
	assert_int_equal(values->hits, 11);
	foliage_segment_close(r);
	foliage_segment_destroy(s);
	foliage_pool_destroy(pool);
	free(values);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_files),         cmocka_unit_test(test_dead_writer),
		cmocka_unit_test(test_fork),          cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_pool),          cmocka_unit_test(test_groups),
		cmocka_unit_test(test_whole_updates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
