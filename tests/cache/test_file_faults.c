/* SPDX-License-Identifier: MIT
 *
 * A fixed piece of work on a file is done once for every call of the system that it makes, and that
 * call goes wrong: EIO, ENOSPC, EINTR, a short transfer. EINTR and short transfers are nobody's
 * business. A read error reaches the reader, and the next read finds the data. After a write or
 * sync error nothing is lost: fsync says so, once to each handle, and the next one writes it all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cache/file.h"
#include "support_disk.h"

enum { SIZE = 300000, PAGE = 4096 };

struct world {
	struct faults faults;
	struct foliage_cache *cache;
	struct foliage_file *file, *other;
	char path[64];
	char model[2 * SIZE], buffer[2 * SIZE];
	uint64_t size;
	enum fault kind;
	bool harmless;
	int told[2];
};

static void check_error(const struct world *w, int64_t rc)
{
	int error = w->kind == FAULT_ENOSPC ? -ENOSPC : -EIO;

	assert_false(w->harmless);
	assert_int_equal(rc, error);
	assert_true(w->faults.hits > 0);
}

static void read_at(struct world *w, uint64_t at, size_t bytes)
{
	uint64_t want = at < w->size ? MIN(bytes, w->size - at) : 0, before = w->faults.hit_reads;
	int64_t got = foliage_file_read(w->file, w->buffer, bytes, at);

	if (got < 0) {
		check_error(w, got);
		/* Not cached: the same once more. */
		got = foliage_file_read(w->file, w->buffer, bytes, at);
	} else if ((uint64_t)got < want) {
		assert_false(w->harmless);
		assert_true(w->faults.hit_reads > before);
		assert_memory_equal(w->buffer, w->model + at, (size_t)got);
		got = foliage_file_read(w->file, w->buffer, bytes, at);
	}
	assert_int_equal(got, want);
	assert_memory_equal(w->buffer, w->model + at, want);
}

static void write_at(struct world *w, uint64_t at, size_t bytes, char value)
{
	int64_t put;

	memset(w->buffer, value, bytes);
	put = foliage_file_write(w->file, w->buffer, bytes, at);
	if (put < 0 || (size_t)put < bytes) {
		/* Part of a page could not be read. */
		if (put < 0)
			check_error(w, put);
		assert_true(w->faults.hit_reads > 0);
		put = foliage_file_write(w->file, w->buffer, bytes, at);
	}
	assert_int_equal(put, bytes);
	memset(w->model + at, value, bytes);
	w->size = MAX(w->size, at + bytes);
}

static void truncate_to(struct world *w, uint64_t size)
{
	int rc = foliage_file_truncate(w->file, size);

	if (rc) {
		check_error(w, rc);
		assert_int_equal(foliage_file_size(w->file), w->size);
		read_at(w, 0, SIZE);
		assert_int_equal(foliage_file_truncate(w->file, size), 0);
	}
	if (size < w->size)
		memset(w->model + size, 0, w->size - size);
	w->size = size;
}

static void check_disk(struct world *w)
{
	int fd = open(w->path, O_RDONLY);

	assert_int_equal(pread(fd, w->buffer, sizeof(w->buffer), 0), w->size);
	assert_memory_equal(w->buffer, w->model, w->size);
	close(fd);
}

/* Each handle is told once, whoever met the error; then all is well. */
static void sync_all(struct world *w)
{
	uint64_t before = w->faults.hit_writes + w->faults.hit_others;
	bool again = true;
	int told = w->told[0];

	while (again) {
		again = false;
		for (int i = 0; i < 2; i++) {
			int rc = foliage_file_fsync(i ? w->other : w->file);

			if (!rc)
				continue;
			check_error(w, rc);
			w->told[i]++;
			again = true;
		}
	}
	assert_int_equal(w->told[0], w->told[1]);
	/* An error that is swallowed is the one thing that must not happen. */
	if (!w->harmless && w->faults.hit_writes + w->faults.hit_others > before)
		assert_int_equal(w->told[0], told + 1);
	check_disk(w);
}

/* Some of everything. */
static void work(struct world *w)
{
	write_at(w, 0, SIZE, 'a');
	write_at(w, 5000, 100, 'b');
	sync_all(w);
	assert_int_equal(foliage_file_invalidate(w->file, 0, 0), 0);
	read_at(w, 0, 100);
	read_at(w, 100000, 50000);
	write_at(w, 200001, 3, 'c'); /* must read first */
	truncate_to(w, 250001);
	write_at(w, 280000, 10, 'd');
	sync_all(w);
	foliage_file_advise(w->file, FOLIAGE_ADVICE_DONTNEED, 0, 0);
	read_at(w, 0, SIZE);
	truncate_to(w, SIZE);
	write_at(w, SIZE - 3, 100, 'e');
	sync_all(w);
}

static uint64_t run(struct world *w, const struct foliage_cache_options *options, enum fault kind,
		    uint64_t call, uint32_t which)
{
	struct foliage_cache_stats stats;
	uint64_t before, hits;

	memset(w, 0, sizeof(*w));
	snprintf(w->path, sizeof(w->path), "foliage-faults-%d", (int)getpid());
	unlink(w->path);
	faults_init(&w->faults);
	w->kind = kind;
	w->harmless = kind == FAULT_EINTR || kind == FAULT_SHORT || kind == FAULT_NONE;
	assert_int_equal(file_cache_create(options, &w->faults.backend, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR, 0, &w->other), 0);
	before = w->faults.calls;
	faults_arm(&w->faults, kind, call, 1, which);
	work(w);
	hits = w->faults.hits;
	foliage_cache_stats(w->cache, &stats);
	assert_int_equal(stats.dirty_bytes + stats.writeback_bytes, 0);
	if (hits && !w->harmless && which == HIT_WRITE)
		assert_true(stats.write_errors > 0 && w->told[0] == 1 && w->told[1] == 1);
	foliage_file_close(w->file);
	foliage_file_close(w->other);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	check_disk(w);
	unlink(w->path);
	return w->faults.calls - before;
}

static struct world world;

static void every_call(const struct foliage_cache_options *options)
{
	static const uint32_t which[] = {HIT_READ, HIT_WRITE, HIT_SYNC, HIT_TRUNCATE};

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		uint64_t calls = run(&world, options, FAULT_NONE, 0, which[i]);

		assert_true(calls >= 2);
		for (enum fault kind = FAULT_EIO; kind < NR_FAULTS; kind++) {
			if (kind == FAULT_ENOSPC && which[i] == HIT_READ)
				continue;
			if (kind == FAULT_SHORT && which[i] > HIT_WRITE)
				continue;
			for (uint64_t call = 0; call < calls; call++)
				run(&world, options, kind, call, which[i]);
		}
	}
}

static void test_calls(void **state)
{
	const struct foliage_cache_options options = {
		.bytes = 2 << 20,
		.io = FOLIAGE_IO_SYNC,
		.dirty_wake_ms = 1000000,
	};

	(void)state;
	every_call(&options);
}

static void test_ring(void **state)
{
	const struct foliage_cache_options options = {.bytes = 2 << 20, .dirty_wake_ms = 1000000};

	(void)state;
	every_call(&options);
}

/* Errors that the flusher meets reach every handle that was open, and the next one if nobody has
 * been told; the data is written when the disk is well again. */
static void test_background(void **state)
{
	struct world *w = &world;
	struct foliage_cache_options options = {
		.bytes = 2 << 20, .dirty_wake_ms = 1, .dirty_expire_ms = 1};
	struct foliage_cache_stats stats;

	(void)state;
	memset(w, 0, sizeof(*w));
	snprintf(w->path, sizeof(w->path), "foliage-faults-%d", (int)getpid());
	unlink(w->path);
	faults_init(&w->faults);
	assert_int_equal(file_cache_create(&options, &w->faults.backend, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	faults_arm(&w->faults, FAULT_ENOSPC, 0, 1000000, HIT_WRITE);
	write_at(w, 0, 20000, 'x');
	do {
		usleep(1000);
		foliage_cache_stats(w->cache, &stats);
	} while (!stats.write_errors);
	read_at(w, 0, 20000); /* still there */
	foliage_file_close(w->file);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR, 0, &w->file), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR, 0, &w->other), 0);
	faults_arm(&w->faults, FAULT_NONE, 0, 0, HIT_WRITE);
	assert_int_equal(foliage_file_fsync(w->other), -ENOSPC);
	assert_int_equal(foliage_file_fsync(w->other), 0);
	assert_int_equal(foliage_file_fsync(w->file), -ENOSPC);
	assert_int_equal(foliage_file_fsync(w->file), 0);
	check_disk(w);
	/* Everybody has been told. */
	foliage_file_close(w->file);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR, 0, &w->file), 0);
	assert_int_equal(foliage_file_fsync(w->file), 0);
	/* What cannot be written by the end is lost, and destroy says so. */
	faults_arm(&w->faults, FAULT_EIO, 0, 1000000, HIT_WRITE);
	write_at(w, 0, 10, 'y');
	assert_int_equal(foliage_cache_destroy(w->cache), -EIO);
	unlink(w->path);
}

/* A disk that takes nothing: writers fill the room that dirty pages may have, then they are told
 * why, and readers still get what is there. */
static void test_full_disk(void **state)
{
	struct world *w = &world;
	struct foliage_cache_options options = {.bytes = 1 << 20, .wait_ms = 300};
	int64_t put = 0;
	uint64_t at = 0;

	(void)state;
	memset(w, 0, sizeof(*w));
	snprintf(w->path, sizeof(w->path), "foliage-faults-%d", (int)getpid());
	unlink(w->path);
	faults_init(&w->faults);
	assert_int_equal(file_cache_create(&options, &w->faults.backend, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	faults_arm(&w->faults, FAULT_ENOSPC, 0, UINT32_MAX, HIT_WRITE);
	memset(w->model, 'z', sizeof(w->model));
	for (; at < sizeof(w->model); at += (uint64_t)put) {
		put = foliage_file_write(w->file, w->model, PAGE, at);
		if (put < 0)
			break;
	}
	assert_int_equal(put, -ENOSPC);
	assert_true(at >= (1 << 20) / 10);
	w->size = at;
	read_at(w, 0, sizeof(w->buffer));
	faults_arm(&w->faults, FAULT_NONE, 0, 0, HIT_WRITE);
	assert_int_equal(foliage_file_fsync(w->file), -ENOSPC);
	assert_int_equal(foliage_file_fsync(w->file), 0);
	check_disk(w);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	unlink(w->path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
