/* SPDX-License-Identifier: MIT
 *
 * Many threads on the same files: each writes records of its own and checks them, all read what
 * nobody writes, one truncates and punches its own file while others read it, handles come and go,
 * write-back and fsync run, the pool is shrunk. Made for ThreadSanitizer.
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
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "cache/file.h"

enum { THREADS = 4, RECORD = 256, RECORDS = 12000, STATIC = 2 << 20, ROUNDS = 4000 };

struct shared {
	struct foliage_cache *cache;
	struct foliage_file *records, *fixed;
	char paths[3][64];
	_Atomic uint64_t wrong, errors;
	atomic_bool stop;
};

struct worker {
	pthread_t thread;
	struct shared *s;
	uint32_t id, rounds;
	uint64_t rng;
	uint32_t versions[RECORDS / THREADS];
};

static uint32_t stamp(uint64_t word)
{
	return (uint32_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Record i of a thread lies among the others' in the same pages. */
static void own_record(struct worker *w)
{
	uint32_t i = splitmix64_below(&w->rng, RECORDS / THREADS), buffer[RECORD / 4];
	uint64_t at = (uint64_t)(i * THREADS + w->id) * RECORD;

	if (splitmix64_below(&w->rng, 2)) {
		uint32_t version = w->versions[i] + 1;

		for (uint32_t j = 0; j < RECORD / 4; j++)
			buffer[j] = version;
		if (foliage_file_write(w->s->records, buffer, RECORD, at) == RECORD)
			w->versions[i] = version;
		else
			w->s->errors++;
	} else if (w->versions[i]) {
		if (foliage_file_read(w->s->records, buffer, RECORD, at) != RECORD)
			w->s->errors++;
		for (uint32_t j = 0; j < RECORD / 4; j++)
			w->s->wrong += buffer[j] != w->versions[i];
	}
}

static void fixed_contents(struct worker *w)
{
	uint32_t buffer[3000];
	uint64_t at = splitmix64_below(&w->rng, STATIC / 4 - 3000) * UINT64_C(4);
	struct foliage_pin pin;

	if (foliage_file_read(w->s->fixed, buffer, sizeof(buffer), at) != sizeof(buffer))
		w->s->errors++;
	for (uint64_t j = 0; j < 3000; j++)
		w->s->wrong += buffer[j] != stamp(at / 4 + j);
	if (foliage_file_pin(w->s->fixed, at, 0, &pin)) {
		w->s->errors++;
		return;
	}
	w->s->wrong += *(const uint32_t *)pin.data != stamp(at / 4);
	foliage_file_unpin(w->s->fixed, &pin);
}

static void handles(struct worker *w)
{
	struct foliage_file *f;
	char buffer[100];

	if (foliage_file_open(w->s->cache, w->s->paths[splitmix64_below(&w->rng, 2)], O_RDWR, 0,
			      &f)) {
		w->s->errors++;
		return;
	}
	foliage_file_read(f, buffer, sizeof(buffer), 0);
	foliage_file_advise(f, FOLIAGE_ADVICE_DONTNEED, splitmix64_below(&w->rng, STATIC), 100000);
	if (foliage_file_fdatasync(f))
		w->s->errors++;
	foliage_file_close(f);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint32_t i = 0; i < w->rounds; i++) {
		switch (splitmix64_below(&w->rng, 64)) {
		case 0:
			handles(w);
			break;
		case 1 ... 12:
			fixed_contents(w);
			break;
		case 13:
			foliage_file_advise(w->s->fixed, FOLIAGE_ADVICE_WILLNEED,
					    splitmix64_below(&w->rng, STATIC), 50000);
			break;
		default:
			own_record(w);
		}
	}
	return NULL;
}

/* A file that grows and shrinks: all bytes are 1 up to the size, or 0 where it was extended. */
static void *resize(void *arg)
{
	struct worker *w = arg;
	static char ones[70000];
	struct foliage_file *f;

	memset(ones, 1, sizeof(ones));
	if (foliage_file_open(w->s->cache, w->s->paths[2], O_RDWR | O_CREAT, 0600, &f)) {
		w->s->errors++;
		return NULL;
	}
	for (uint32_t i = 0; i < w->rounds / 8 && !w->s->stop; i++) {
		uint64_t size = splitmix64_below(&w->rng, sizeof(ones));

		w->s->errors += foliage_file_truncate(f, size) != 0;
		w->s->errors += foliage_file_size(f) != size;
		w->s->errors += foliage_file_write(f, ones, 5000, FOLIAGE_APPEND) != 5000;
		if (!splitmix64_below(&w->rng, 16))
			foliage_pool_shrink(foliage_cache_pool(w->s->cache), 1 << 20);
		if (!splitmix64_below(&w->rng, 16))
			w->s->errors += foliage_file_invalidate(f, 0, 0) != 0;
		if (!splitmix64_below(&w->rng, 16))
			w->s->errors += foliage_cache_sync(w->s->cache) != 0;
	}
	foliage_file_close(f);
	return NULL;
}

static void make_fixed(struct shared *s)
{
	uint32_t *words = malloc(STATIC);

	for (uint64_t i = 0; i < STATIC / 4; i++)
		words[i] = stamp(i);
	assert_int_equal(foliage_file_write(s->fixed, words, STATIC, 0), STATIC);
	free(words);
}

static void check_records(struct shared *s, struct worker *workers)
{
	uint32_t buffer[RECORD / 4];
	int fd = open(s->paths[0], O_RDONLY);

	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t version = workers[i % THREADS].versions[i / THREADS];

		if (!version)
			continue;
		assert_int_equal(pread(fd, buffer, RECORD, (off_t)i * RECORD), RECORD);
		assert_int_equal(buffer[0], version);
		assert_int_equal(buffer[RECORD / 4 - 1], version);
	}
	close(fd);
}

static void run(enum foliage_io io, enum foliage_direct direct)
{
	struct worker *workers = calloc(THREADS + 1, sizeof(*workers));
	struct shared s = {0};
	struct foliage_cache_options options = {.bytes = 2 << 20,
						.io = io,
						.direct = direct,
						.dirty_wake_ms = 3,
						.dirty_expire_ms = 10};
	struct foliage_cache_stats stats;

	for (int i = 0; i < 3; i++) {
		snprintf(s.paths[i], sizeof(s.paths[i]), "foliage-threads-%d-%d", (int)getpid(), i);
		unlink(s.paths[i]);
	}
	assert_int_equal(foliage_cache_create(&options, &s.cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(s.cache, s.paths[0], O_RDWR | O_CREAT, 0600, &s.records),
			 0);
	assert_int_equal(foliage_file_open(s.cache, s.paths[1], O_RDWR | O_CREAT, 0600, &s.fixed),
			 0);
	make_fixed(&s);
	for (uint32_t i = 0; i <= THREADS; i++) {
		workers[i].s = &s;
		workers[i].id = i;
		workers[i].rounds = ROUNDS;
		workers[i].rng = i + 1;
		assert_int_equal(pthread_create(&workers[i].thread, NULL,
						i < THREADS ? work : resize, &workers[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	s.stop = true;
	pthread_join(workers[THREADS].thread, NULL);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.errors, 0);
	assert_int_equal(foliage_cache_sync(s.cache), 0);
	foliage_cache_stats(s.cache, &stats);
	assert_int_equal(stats.dirty_bytes + stats.writeback_bytes, 0);
	assert_true(stats.pool.evicted > 0);
	foliage_file_close(s.records);
	foliage_file_close(s.fixed);
	assert_int_equal(foliage_cache_destroy(s.cache), 0);
	check_records(&s, workers);
	for (int i = 0; i < 3; i++)
		unlink(s.paths[i]);
	free(workers);
}

static void test_auto(void **state)
{
	(void)state;
	run(FOLIAGE_IO_AUTO, FOLIAGE_DIRECT_AUTO);
}

static void test_calls(void **state)
{
	(void)state;
	run(FOLIAGE_IO_SYNC, FOLIAGE_DIRECT_NEVER);
}

/* ---- one page, one read ---- */

enum { COLD = 64 };

struct cold {
	struct foliage_file *file;
	pthread_barrier_t *start;
	_Atomic int failed;
};

static void *read_cold(void *arg)
{
	struct cold *c = arg;
	char buffer[4096];

	pthread_barrier_wait(c->start);
	for (uint64_t i = 0; i < COLD; i++)
		c->failed += foliage_file_read(c->file, buffer, sizeof(buffer), i * 4096) !=
			     sizeof(buffer);
	return NULL;
}

/* Threads that miss the same pages at the same time read each of them once. */
static void test_one_read(void **state)
{
	struct foliage_cache_options options = {.bytes = 2 << 20, .no_readahead = true};
	char path[64], *data = calloc(1, COLD * 4096);
	struct foliage_cache_stats stats;
	struct foliage_cache *cache;
	pthread_t threads[THREADS];
	struct foliage_file *file;
	pthread_barrier_t start;
	struct cold cold = {.failed = 0};

	(void)state;
	snprintf(path, sizeof(path), "foliage-threads-%d", (int)getpid());
	pthread_barrier_init(&start, NULL, THREADS);
	assert_int_equal(foliage_cache_create(&options, &cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(cache, path, O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(foliage_file_write(file, data, COLD * 4096, 0), COLD * 4096);
	assert_int_equal(foliage_file_invalidate(file, 0, 0), 0);
	cold.file = file;
	cold.start = &start;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_cold, &cold), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(cold.failed, 0);
	foliage_cache_stats(cache, &stats);
	assert_int_equal(stats.disk_reads, COLD);
	assert_int_equal(stats.disk_read_bytes, COLD * 4096);
	foliage_file_close(file);
	assert_int_equal(foliage_cache_destroy(cache), 0);
	pthread_barrier_destroy(&start);
	unlink(path);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_one_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
