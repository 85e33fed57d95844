/* SPDX-License-Identifier: MIT
 *
 * Files where room ends: everything pinned by zero-copy reads, a group's max, the budget under a
 * mix of everything; a forked child; and hits of files that finish while every lock is held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "cache/file.h"
#include "cache/pool.h"
#include "support_rss.h"

enum { PAGE = 4096, MIB = 1 << 20, WAIT_MS = 300 };

struct world {
	struct foliage_cache *cache;
	struct foliage_file *file;
	char path[64];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each word of the file says where it is. */
static void fill(char *buffer, uint64_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8)
		*(uint64_t *)(buffer + i) = at + i;
}

static void write_file(struct foliage_file *f, uint64_t pages)
{
	uint64_t buffer[PAGE / 8];

	for (uint64_t i = 0; i < pages; i++) {
		fill((char *)buffer, i * PAGE, PAGE);
		assert_int_equal(foliage_file_write(f, buffer, PAGE, i * PAGE), PAGE);
	}
}

static void setup(struct world *w, struct foliage_cache_options options, uint64_t pages)
{
	snprintf(w->path, sizeof(w->path), "foliage-limits-%d", (int)getpid());
	unlink(w->path);
	assert_int_equal(foliage_cache_create(&options, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	write_file(w->file, pages);
	assert_int_equal(foliage_file_invalidate(w->file, 0, 0), 0);
}

static void teardown(struct world *w)
{
	foliage_file_close(w->file);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	unlink(w->path);
}

/* ---- all pinned ---- */

struct reader {
	struct world *w;
	uint64_t page;
	int64_t got;
	pthread_t thread;
};

static void *read_one(void *arg)
{
	struct reader *r = arg;
	uint64_t buffer[PAGE / 8];

	r->got = foliage_file_read(r->w->file, buffer, PAGE, r->page * PAGE);
	if (r->got == PAGE && buffer[1] != r->page * PAGE + 8)
		r->got = -EILSEQ;
	return NULL;
}

/* What does not find room, and how fast it says so. */
static void check_no_room(struct world *w, uint64_t page)
{
	uint64_t buffer[PAGE / 8] = {0};
	struct iovec iov = {buffer, PAGE};
	struct foliage_aio aio = {.file = w->file,
				  .op = FOLIAGE_AIO_READ,
				  .buffer = buffer,
				  .bytes = PAGE,
				  .offset = page * PAGE};
	struct foliage_aio *list[1] = {&aio};
	struct foliage_pin pin;
	double start = now();

	assert_int_equal(foliage_file_readv(w->file, &iov, 1, page * PAGE, FOLIAGE_RW_NOWAIT),
			 -EAGAIN);
	assert_int_equal(foliage_file_writev(w->file, &iov, 1, page * PAGE, FOLIAGE_RW_NOWAIT),
			 -EAGAIN);
	assert_int_equal(foliage_file_pin(w->file, page * PAGE, FOLIAGE_RW_NOWAIT, &pin), -EAGAIN);
	assert_true(now() - start < WAIT_MS / 1000.0);
	assert_int_equal(foliage_file_read(w->file, buffer, PAGE, page * PAGE), -ENOBUFS);
	assert_int_equal(foliage_file_write(w->file, buffer, PAGE, page * PAGE), -ENOBUFS);
	assert_int_equal(foliage_cache_submit(w->cache, list, 1), 1);
	assert_int_equal(foliage_cache_poll(w->cache, list, 1, -1), 1);
	assert_int_equal(aio.result, -ENOBUFS);
}

static void test_all_pinned(void **state)
{
	struct foliage_pin *pins = calloc(2048, sizeof(*pins));
	struct reader r;
	struct world w;
	uint64_t n = 0, buffer[PAGE / 8];
	int rc = 0;

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = MIB, .wait_ms = WAIT_MS}, 512);
	while (n < 512 && !(rc = foliage_file_pin(w.file, n * PAGE, 0, &pins[n])))
		n++;
	assert_int_equal(rc, -ENOBUFS);
	assert_true(n > 100 && n < 256);
	check_no_room(&w, n + 1);
	for (uint64_t i = 0; i < n; i++) { /* what is there is still read */
		assert_int_equal(foliage_file_read(w.file, buffer, PAGE, i * PAGE), PAGE);
		assert_int_equal(buffer[511], i * PAGE + 511 * 8);
	}
	/* One who waits gets the room that another lets go. */
	r = (struct reader){.w = &w, .page = n + 1};
	assert_int_equal(pthread_create(&r.thread, NULL, read_one, &r), 0);
	usleep(WAIT_MS * 1000 / 4);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(*(const uint64_t *)pins[i].data, i * PAGE);
		foliage_file_unpin(w.file, &pins[i]);
	}
	pthread_join(r.thread, NULL);
	assert_int_equal(r.got, PAGE);
	teardown(&w);
	free(pins);
}

/* ---- groups ---- */

static struct foliage_group *make_group(struct world *w, const char *name, uint64_t max)
{
	struct foliage_group *group;

	assert_int_equal(foliage_group_create(foliage_pool_group(foliage_cache_pool(w->cache)),
					      name, &group),
			 0);
	assert_int_equal(foliage_group_set(group, FOLIAGE_GROUP_MAX, max), 0);
	return group;
}

/* A file in a group reads and writes through what its group may have, and leaves the rest alone. */
static void test_group(void **state)
{
	uint64_t buffer[PAGE / 8];
	struct foliage_group_stats stats;
	struct foliage_cache_stats before, after;
	struct foliage_group *group, *other;
	struct foliage_file *mine;
	struct world w;
	char path[80];

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = 4 * MIB, .max_groups = 4}, 256);
	group = make_group(&w, "small", 64 * PAGE);
	other = make_group(&w, "other", UINT64_MAX);
	snprintf(path, sizeof(path), "%s-grouped", w.path);
	assert_int_equal(foliage_file_open(w.cache, path, O_RDWR | O_CREAT | O_TRUNC, 0600, &mine),
			 0);
	assert_int_equal(foliage_file_set_group(mine, group), 0);
	assert_int_equal(foliage_file_set_group(mine, group), 0);
	assert_int_equal(foliage_file_set_group(mine, other), -EBUSY);
	for (uint64_t i = 0; i < 256; i++)
		assert_int_equal(foliage_file_read(w.file, buffer, PAGE, i * PAGE), PAGE);
	/* Sixteen times what it may have, dirty: write-back makes the room. */
	write_file(mine, 1024);
	assert_true(foliage_group_current(group) <= 64 * PAGE);
	assert_int_equal(foliage_file_fsync(mine), 0);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 1024; i++) {
			assert_int_equal(foliage_file_read(mine, buffer, PAGE, i * PAGE), PAGE);
			assert_int_equal(buffer[3], i * PAGE + 24);
			assert_true(foliage_group_current(group) <= 64 * PAGE);
		}
	assert_int_equal(foliage_group_stats(group, &stats), 0);
	assert_true(stats.evicted > 1024 && stats.io.some_us > 0);
	assert_int_equal(foliage_group_current(other), 0);
	foliage_cache_stats(w.cache, &before);
	for (uint64_t i = 0; i < 256; i++)
		assert_int_equal(foliage_file_read(w.file, buffer, PAGE, i * PAGE), PAGE);
	foliage_cache_stats(w.cache, &after);
	assert_int_equal(after.disk_reads, before.disk_reads);
	foliage_file_close(mine);
	unlink(path);
	teardown(&w);
}

/* ---- fork ---- */

static int in_child(struct world *w)
{
	struct foliage_cache_stats stats;
	struct foliage_aio aio = {.file = w->file, .op = FOLIAGE_AIO_FSYNC}, *list[1] = {&aio};
	struct foliage_file *file;
	struct foliage_pin pin;
	char byte = 0;
	int rc[] = {
		(int)foliage_file_read(w->file, &byte, 1, 0),
		(int)foliage_file_write(w->file, &byte, 1, 0),
		foliage_file_pin(w->file, 0, 0, &pin),
		foliage_file_open(w->cache, w->path, O_RDWR, 0, &file),
		foliage_file_open_fd(w->cache, 0, &file),
		foliage_file_flush(w->file),
		foliage_file_fsync(w->file),
		foliage_file_fdatasync(w->file),
		foliage_file_truncate(w->file, 0),
		foliage_file_allocate(w->file, 0, 0, 1),
		foliage_file_invalidate(w->file, 0, 0),
		foliage_file_advise(w->file, FOLIAGE_ADVICE_WILLNEED, 0, 0),
		foliage_cache_submit(w->cache, list, 1),
		foliage_cache_poll(w->cache, list, 1, -1),
		foliage_cache_stats(w->cache, &stats),
		foliage_cache_sync(w->cache),
		foliage_file_close(w->file),
	};

	for (int i = 0; i < (int)ARRAY_SIZE(rc); i++)
		if (rc[i] != -ECHILD)
			return 1 + i;
	return foliage_cache_destroy(w->cache) ? 100 : 0;
}

static void test_fork(void **state)
{
	uint64_t buffer[PAGE / 8];
	struct world w;
	pid_t child;
	int status, fd;

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = MIB, .dirty_wake_ms = 1000000}, 16);
	memset(buffer, 'x', PAGE);
	assert_int_equal(foliage_file_write(w.file, buffer, PAGE, 0), PAGE);
	child = fork();
	if (!child)
		_exit(in_child(&w));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fd = open(w.path, O_RDONLY);
	assert_int_equal(pread(fd, buffer, PAGE, 0), PAGE);
	assert_int_equal(buffer[1], 8); /* the child has written nothing */
	assert_int_equal(foliage_file_fsync(w.file), 0);
	assert_int_equal(pread(fd, buffer, PAGE, 0), PAGE);
	assert_memory_equal(buffer, "xxxxxxxx", 8);
	close(fd);
	teardown(&w);
}

/* ---- hits while every lock is held ---- */

struct hitter {
	struct world *w;
	uint64_t pages, wrong;
	atomic_bool done;
};

static void *hit(void *arg)
{
	struct hitter *h = arg;
	struct foliage_file *f = h->w->file;
	uint64_t a[PAGE / 8], b[PAGE / 8];
	struct iovec iov[2] = {{a, PAGE}, {b, PAGE}};
	struct foliage_pin pin;

	for (int round = 0; round < 100; round++) {
		for (uint64_t i = 0; i + 1 < h->pages; i++) {
			h->wrong += foliage_file_read(f, a, PAGE, i * PAGE) != PAGE;
			h->wrong += a[0] != i * PAGE;
			h->wrong += foliage_file_read(f, a, PAGE, i * PAGE + 8) != PAGE;
			h->wrong += a[0] != i * PAGE + 8;
			h->wrong += foliage_file_readv(f, iov, 2, i * PAGE, 0) != 2 * PAGE;
			h->wrong += b[0] != (i + 1) * PAGE;
			h->wrong += foliage_file_pin(f, i * PAGE, 0, &pin) != 0;
			h->wrong += *(const uint64_t *)pin.data != i * PAGE;
			foliage_file_unpin(f, &pin);
			h->wrong += foliage_file_size(f) != h->pages * PAGE;
		}
	}
	atomic_store(&h->done, true);
	return NULL;
}

static void test_no_lock_on_hits(void **state)
{
	struct world w;
	struct hitter h = {.w = &w, .pages = 64};
	pthread_t thread;
	double start;

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = MIB, .dirty_wake_ms = 1000000}, h.pages);
	{
		struct foliage_cache *c = w.cache;
		struct file_node *n = w.file->node;
		struct pool *p = c->pool->core;
		/* In the order in which they are taken. */
		pthread_mutex_t *locks[] = {&n->write_lock,   &n->sync_lock,     &c->lock,
					    &n->lock,         &c->dirty_lock,    &c->writers_lock,
					    &c->flusher_lock, &c->aio_lock,      &c->io.lock,
					    &p->resize_lock,  &p->shards[0].lock};
		pthread_mutex_t *inner[] = {&p->groups_lock,
					    &p->engine->tree_lock,
					    &p->engine->lruvecs[0].lock,
					    &p->engine->nodes[0].memcg_lru_lock,
					    &p->frames.lock,
					    &p->room_lock};
		uint64_t buffer[PAGE / 8];

		for (uint64_t i = 0; i < h.pages; i++)
			assert_int_equal(foliage_file_read(w.file, buffer, PAGE, i * PAGE), PAGE);
		for (size_t i = 0; i < ARRAY_SIZE(locks); i++)
			pthread_mutex_lock(locks[i]);
		for (int i = 1; i < POOL_SHARDS; i++)
			pthread_mutex_lock(&p->shards[i].lock);
		for (size_t i = 0; i < ARRAY_SIZE(inner); i++)
			pthread_mutex_lock(inner[i]);
		assert_int_equal(pthread_create(&thread, NULL, hit, &h), 0);
		for (start = now(); !atomic_load(&h.done) && now() - start < 60;)
			usleep(1000);
		assert_true(atomic_load(&h.done));
		for (size_t i = ARRAY_SIZE(inner); i--;)
			pthread_mutex_unlock(inner[i]);
		for (int i = 1; i < POOL_SHARDS; i++)
			pthread_mutex_unlock(&p->shards[i].lock);
		for (size_t i = ARRAY_SIZE(locks); i--;)
			pthread_mutex_unlock(locks[i]);
	}
	pthread_join(thread, NULL);
	assert_int_equal(h.wrong, 0);
	teardown(&w);
}

/* ---- the budget ---- */

struct mixer {
	struct world *w;
	uint64_t rng, first, pages, errors;
	pthread_t thread;
};

static void *mix(void *arg)
{
	struct mixer *m = arg;
	static _Thread_local char buffer[32 * PAGE];

	for (int i = 0; i < 4000; i++) {
		uint64_t at =
			(m->first + splitmix64_below(&m->rng, (uint32_t)m->pages - 32)) * PAGE;
		size_t bytes = 1 + splitmix64_below(&m->rng, sizeof(buffer) - 1);
		int64_t n = splitmix64_below(&m->rng, 3)
				    ? foliage_file_read(m->w->file, buffer, bytes, at)
				    : foliage_file_write(m->w->file, buffer, bytes, at);

		m->errors += n != (int64_t)bytes;
	}
	return NULL;
}

/* Each thread has a part of the file: what a read sees of bytes that are being written is not promised.
 * Everything at once takes the budget, 2 % and 8 MiB: dirty pages, write-back, read-ahead, all. */
static void test_memory_bound(void **state)
{
	const uint64_t budget = 24 * MIB, part = 80 * MIB / PAGE / 3;
	uint64_t before = rss_bytes(), most = 0;
	struct mixer mixers[3] = {0};
	struct world w;

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = budget, .dirty_wake_ms = 10}, 64);
	assert_int_equal(foliage_file_truncate(w.file, 80 * MIB), 0);
	for (size_t i = 0; i < ARRAY_SIZE(mixers); i++) {
		mixers[i] = (struct mixer){.w = &w, .rng = i + 1, .first = i * part, .pages = part};
		assert_int_equal(pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(mixers); i++) {
		while (pthread_tryjoin_np(mixers[i].thread, NULL)) {
			most = MAX(most, rss_bytes() - MIN(before, rss_bytes()));
			usleep(2000);
		}
		assert_int_equal(mixers[i].errors, 0);
	}
	print_message("budget %llu KiB, most resident %llu KiB\n",
		      (unsigned long long)budget / 1024, (unsigned long long)most / 1024);
	teardown(&w);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("SKIP: what is resident is the sanitizer's\n");
	skip();
#endif
	assert_true(most <= budget + budget / 50 + 8 * MIB);
	assert_true(most >= budget * 3 / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_bound),    cmocka_unit_test(test_all_pinned),
		cmocka_unit_test(test_group),           cmocka_unit_test(test_fork),
		cmocka_unit_test(test_no_lock_on_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
