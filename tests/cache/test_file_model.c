/* SPDX-License-Identifier: MIT
 *
 * Files against a plain array: random reads, writes, truncation, fsync, holes, advice, evictions,
 * handles that come and go, faults, on a cache that holds a fraction of the file. Whatever was read
 * is what the array says; whatever was fsynced is what the file says.
 *
 * FOLIAGE_FILE_ROUNDS=n runs n times as many operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "cache/file.h"
#include "support_disk.h"

enum { MAX = 3 << 20, HANDLES = 3, OPERATIONS = 3000 };

struct world {
	struct faults faults;
	struct foliage_cache_options options;
	struct foliage_cache *cache;
	struct foliage_file *files[HANDLES];
	char path[64];
	char *model, *buffer, *check;
	uint64_t size, rng;
	bool with_faults;
	uint64_t errors;
	bool struck; /* a fault has happened; its error may be told later */
};

static uint32_t dice(struct world *w, uint32_t n)
{
	return splitmix64_below(&w->rng, n);
}

static void start_cache(struct world *w)
{
	char message[200] = "";
	int rc = file_cache_create(&w->options, &w->faults.backend, &w->cache, message,
				   sizeof(message));

	if (rc)
		fail_msg("%s", message);
	for (int i = 0; i < HANDLES; i++)
		assert_int_equal(
			foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->files[i]),
			0);
}

static void setup(struct world *w, uint64_t seed)
{
	w->rng = seed;
	snprintf(w->path, sizeof(w->path), "foliage-model-%d", (int)getpid());
	unlink(w->path);
	w->model = calloc(1, MAX + 1);
	w->buffer = malloc(MAX);
	w->check = malloc(MAX + 1);
	faults_init(&w->faults);
	start_cache(w);
}

static struct foliage_file *any(struct world *w)
{
	return w->files[dice(w, HANDLES)];
}

/* A place, near the beginning more often, and on a page's border now and then. */
static uint64_t place(struct world *w, uint64_t limit)
{
	uint64_t at = dice(w, (uint32_t)limit + 1);

	if (dice(w, 2))
		at = at * dice(w, 1000) / 1000;
	return dice(w, 3) ? at : at & ~(uint64_t)4095;
}

static size_t length(struct world *w)
{
	static const uint32_t limits[] = {100, 5000, 5000, 20000, 200000};

	return 1 + dice(w, limits[dice(w, 5)]);
}

/* An operation may only fail when a fault was due. */
static bool failed(struct world *w, int64_t rc)
{
	if (rc >= 0)
		return false;
	if (!w->struck)
		fail_msg("operation failed: %s", strerror((int)-rc));
	w->errors++;
	return true;
}

static void op_read(struct world *w)
{
	uint64_t at = place(w, w->size + 1000), bytes = length(w), want;
	struct iovec iov[3] = {{w->buffer, bytes / 3},
			       {w->buffer + bytes / 3, 0},
			       {w->buffer + bytes / 3, bytes - bytes / 3}};
	int64_t got = dice(w, 2) ? foliage_file_read(any(w), w->buffer, bytes, at)
				 : foliage_file_readv(any(w), iov, 3, at, 0);

	if (failed(w, got))
		return;
	want = at >= w->size ? 0 : MIN(bytes, w->size - at);
	if ((uint64_t)got != want && !w->struck)
		fail_msg("read %lld of %llu", (long long)got, (unsigned long long)want);
	assert_true((uint64_t)got <= want);
	assert_memory_equal(w->buffer, w->model + at, (size_t)got);
}

static void op_pin(struct world *w)
{
	uint64_t at = place(w, w->size + 1000);
	struct foliage_file *f = any(w);
	struct foliage_pin pin;
	int rc = foliage_file_pin(f, at, 0, &pin);

	if (at >= w->size) {
		assert_int_equal(rc, -ENODATA);
		return;
	}
	if (failed(w, rc))
		return;
	assert_true(at + pin.bytes <= w->size);
	assert_memory_equal(pin.data, w->model + at, pin.bytes);
	foliage_file_unpin(f, &pin);
}

static void op_write(struct world *w)
{
	bool append = !dice(w, 5);
	uint64_t at = append ? w->size : place(w, MIN(w->size + 30000, (uint64_t)MAX - 1)),
		 bytes = MIN(length(w), (uint64_t)MAX - at);
	struct iovec iov[3] = {
		{w->buffer, 0}, {w->buffer, bytes / 2}, {w->buffer + bytes / 2, bytes - bytes / 2}};
	int64_t put;

	if (!bytes)
		return;
	for (uint64_t i = 0; i < bytes; i++)
		w->buffer[i] = (char)(dice(w, 255) + 1);
	put = dice(w, 2)
		      ? foliage_file_write(any(w), w->buffer, bytes, append ? FOLIAGE_APPEND : at)
		      : foliage_file_writev(any(w), iov, 3, append ? FOLIAGE_APPEND : at, 0);
	if (failed(w, put))
		return;
	if ((uint64_t)put != bytes && !w->struck)
		fail_msg("wrote %lld of %llu", (long long)put, (unsigned long long)bytes);
	memcpy(w->model + at, w->buffer, (size_t)put);
	w->size = MAX(w->size, at + (uint64_t)put);
}

static void op_truncate(struct world *w)
{
	uint64_t size = place(w, MIN(2 * w->size + 5000, (uint64_t)MAX));

	if (failed(w, foliage_file_truncate(any(w), size)))
		return;
	if (size < w->size)
		memset(w->model + size, 0, w->size - size);
	w->size = size;
}

static void op_allocate(struct world *w)
{
	uint64_t at = place(w, MIN(w->size, (uint64_t)MAX - 1)),
		 bytes = MIN(length(w), (uint64_t)MAX - at);
	int mode = dice(w, 3) ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0;
	int rc = foliage_file_allocate(any(w), mode, at, bytes);

	if (rc == -EOPNOTSUPP || failed(w, rc))
		return;
	if (mode)
		memset(w->model + at, 0, MIN(bytes, w->size > at ? w->size - at : 0));
	else
		w->size = MAX(w->size, at + bytes);
}

/* As the system sees the file. */
static void check_disk(struct world *w)
{
	int fd = open(w->path, O_RDONLY);
	ssize_t got;

	assert_true(fd >= 0);
	got = pread(fd, w->check, MAX + 1, 0);
	close(fd);
	assert_int_equal(got, w->size);
	assert_memory_equal(w->check, w->model, w->size);
}

static void op_fsync(struct world *w)
{
	struct foliage_cache_stats stats;

	if (failed(w, dice(w, 2) ? foliage_file_fsync(any(w)) : foliage_file_fdatasync(any(w))))
		return;
	if (!dice(w, 4))
		check_disk(w);
	foliage_cache_stats(w->cache, &stats);
	assert_int_equal(stats.dirty_bytes, 0);
	assert_int_equal(stats.writeback_bytes, 0);
}

static void op_other(struct world *w)
{
	uint64_t at = place(w, w->size), bytes = dice(w, 2) ? 0 : length(w);
	int i = (int)dice(w, HANDLES);

	switch (dice(w, 7)) {
	case 0:
		failed(w, foliage_file_advise(any(w), dice(w, 6), at, bytes));
		break;
	case 1:
		failed(w, foliage_file_flush(any(w)));
		break;
	case 2:
		failed(w, foliage_file_invalidate(any(w), at, bytes));
		break;
	case 3:
		foliage_pool_shrink(foliage_cache_pool(w->cache), dice(w, 1 << 20));
		break;
	case 4:
		failed(w, foliage_cache_sync(w->cache));
		break;
	default:
		assert_int_equal(foliage_file_close(w->files[i]), 0);
		assert_int_equal(foliage_file_open(w->cache, w->path,
						   O_RDWR | (dice(w, 20) ? 0 : O_APPEND), 0,
						   &w->files[i]),
				 0);
		w->files[i]->append = false; /* the model's offsets count */
	}
}

static void check_all(struct world *w)
{
	uint64_t at = 0;

	assert_int_equal(foliage_file_size(any(w)), w->size);
	while (at < w->size) {
		int64_t got = foliage_file_read(any(w), w->check, 65536, at);

		assert_true(got > 0);
		if (memcmp(w->check, w->model + at, (size_t)got))
			fail_msg("contents differ behind %llu", (unsigned long long)at);
		at += (uint64_t)got;
	}
}

static void step(struct world *w)
{
	static const uint32_t which[] = {HIT_READ, HIT_WRITE, HIT_SYNC, HIT_TRUNCATE, HIT_ALL};

	if (w->with_faults && !dice(w, 8))
		faults_arm(&w->faults, 1 + dice(w, NR_FAULTS - 1), dice(w, 20), 1 + dice(w, 3),
			   which[dice(w, 5)]);
	w->struck |= w->with_faults;
	switch (dice(w, 40)) {
	case 0 ... 13:
		op_read(w);
		break;
	case 14 ... 17:
		op_pin(w);
		break;
	case 18 ... 30:
		op_write(w);
		break;
	case 31:
	case 32:
		op_truncate(w);
		break;
	case 33:
		op_allocate(w);
		break;
	case 34 ... 36:
		op_fsync(w);
		break;
	default:
		op_other(w);
	}
}

static void finish(struct world *w)
{
	int rc;

	faults_arm(&w->faults, FAULT_NONE, 0, 0, HIT_ALL);
	check_all(w);
	/* Errors of the past are told once to each handle; then there are none. */
	for (int i = 0; i < HANDLES; i++) {
		rc = foliage_file_fsync(w->files[i]);
		if (rc)
			assert_true(w->with_faults);
		assert_int_equal(foliage_file_fsync(w->files[i]), 0);
	}
	check_disk(w);
	for (int i = 0; i < HANDLES; i++)
		foliage_file_close(w->files[i]);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	check_disk(w);
	unlink(w->path);
	free(w->model);
	free(w->buffer);
	free(w->check);
}

static void run(struct foliage_cache_options options, bool with_faults, uint64_t seed)
{
	const char *more = getenv("FOLIAGE_FILE_ROUNDS");
	uint64_t nr = OPERATIONS * (more ? strtoull(more, NULL, 10) : 1);
	struct world w = {.options = options, .with_faults = with_faults};

	w.options.bytes = 1 << 20;
	w.options.seed = seed;
	if (options.page_bytes == 65536)
		w.options.bytes = 4 << 20;
	setup(&w, seed);
	for (uint64_t i = 0; i < nr; i++) {
		step(&w);
		if (i % 500 == 499) {
			faults_arm(&w.faults, FAULT_NONE, 0, 0, HIT_ALL);
			check_all(&w);
		}
	}
	finish(&w);
	if (with_faults)
		assert_true(w.errors > 10);
}

static void test_plain(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.io = FOLIAGE_IO_SYNC, .direct = FOLIAGE_DIRECT_NEVER},
	    false, 1);
}

static void test_auto(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.dirty_wake_ms = 2, .dirty_expire_ms = 5}, false, 2);
	run((struct foliage_cache_options){.queue_depth = 2, .policy = "clru"}, false, 3);
}

static void test_page_sizes(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.page_bytes = 512}, false, 4);
	run((struct foliage_cache_options){.page_bytes = 65536}, false, 5);
}

static void test_faults(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.wait_ms = 500, .dirty_wake_ms = 10}, true, 6);
	run((struct foliage_cache_options){.io = FOLIAGE_IO_SYNC, .wait_ms = 500}, true, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_page_sizes),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
