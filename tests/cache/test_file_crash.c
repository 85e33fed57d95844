/* SPDX-License-Identifier: MIT
 *
 * What was fsynced is there afterwards: after kill -9 at any moment, and after the power has gone
 * from a disk that keeps any part, in any order, of what no completed fsync covers.
 *
 * Everything is written in cells of 64 bytes that are full of a version number, which only grows.
 * So of each cell one knows which version was fsynced, and which was written last: what is found
 * must be between.
 *
 * FOLIAGE_CRASH_ROUNDS=n: n rounds of each instead of 100.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "cache/file.h"
#include "support_disk.h"

enum { CELL = 64, CELLS = 16384, SIZE = CELL * CELLS, MOST = 300 };

/* What the writer knows; shared with who kills it. */
struct ledger {
	_Atomic uint32_t version;
	_Atomic uint32_t written[CELLS], synced[CELLS];
	_Atomic uint32_t fsyncs;
};

static uint64_t rounds(void)
{
	const char *n = getenv("FOLIAGE_CRASH_ROUNDS");

	return n ? strtoull(n, NULL, 10) : 100;
}

static void write_cells(struct ledger *l, struct foliage_file *f, uint64_t *rng)
{
	static uint32_t buffer[MOST * CELL / 4];
	uint32_t first = splitmix64_below(rng, CELLS),
		 nr = 1 + splitmix64_below(rng, MIN((uint32_t)MOST, CELLS - first));

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t version = ++l->version;

		l->written[first + i] = version;
		for (uint32_t j = 0; j < CELL / 4; j++)
			buffer[i * CELL / 4 + j] = version;
	}
	if (foliage_file_write(f, buffer, nr * CELL, (uint64_t)first * CELL) != (int64_t)nr * CELL)
		abort();
}

static void fsync_cells(struct ledger *l, struct foliage_file *f, uint64_t *rng)
{
	static uint32_t before[CELLS];

	for (uint32_t i = 0; i < CELLS; i++)
		before[i] = l->written[i];
	if (splitmix64_below(rng, 2) ? foliage_file_fsync(f) : foliage_file_fdatasync(f))
		return;
	for (uint32_t i = 0; i < CELLS; i++)
		l->synced[i] = before[i];
	l->fsyncs++;
}

static void work(struct ledger *l, struct foliage_file *f, uint64_t *rng)
{
	static char buffer[20000];

	switch (splitmix64_below(rng, 12)) {
	case 0:
		fsync_cells(l, f, rng);
		break;
	case 1:
	case 2:
		foliage_file_read(f, buffer, sizeof(buffer), splitmix64_below(rng, SIZE));
		break;
	default:
		write_cells(l, f, rng);
	}
}

static const struct foliage_cache_options options = {
	.bytes = 1 << 20,
	.dirty_wake_ms = 2,
	.dirty_expire_ms = 3,
};

/* Whether what is found is what may be. */
static void check(const struct ledger *l, const char *found, uint64_t size)
{
	for (uint32_t i = 0; i < CELLS; i++) {
		uint32_t cell[CELL / 4] = {0};

		if ((uint64_t)i * CELL < size)
			memcpy(cell, found + (size_t)i * CELL,
			       MIN((uint64_t)CELL, size - (uint64_t)i * CELL));
		for (uint32_t j = 1; j < CELL / 4; j++)
			if (cell[j] != cell[0])
				fail_msg("cell %u is torn", i);
		if (cell[0] < l->synced[i] || cell[0] > l->written[i])
			fail_msg("cell %u: %u is not in %u .. %u", i, cell[0], l->synced[i],
				 l->written[i]);
	}
}

/* ---- kill -9 ---- */

static void be_killed(const char *path, struct ledger *l, uint64_t rng)
{
	struct foliage_cache *cache;
	struct foliage_file *file;

	if (foliage_cache_create(&options, &cache, NULL, 0) ||
	    foliage_file_open(cache, path, O_RDWR | O_CREAT, 0600, &file))
		_exit(1);
	for (;;)
		work(l, file, &rng);
}

static void test_kill(void **state)
{
	struct ledger *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *found = malloc(SIZE), path[64];
	uint64_t rng = 1, fsyncs = 0;

	(void)state;
	snprintf(path, sizeof(path), "foliage-crash-%d", (int)getpid());
	for (uint64_t i = 0; i < rounds(); i++) {
		pid_t child;
		int status, fd;
		ssize_t size;

		memset(l, 0, sizeof(*l));
		unlink(path);
		child = fork();
		if (!child)
			be_killed(path, l, i + 1);
		/* Not before there is something to lose. */
		while (!l->version && !waitpid(child, &status, WNOHANG))
			usleep(100);
		usleep(splitmix64_below(&rng, 15000));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0);
		size = pread(fd, found, SIZE, 0);
		close(fd);
		assert_true(size >= 0);
		check(l, found, (uint64_t)size);
		fsyncs += l->fsyncs;
	}
	assert_true(fsyncs > 0);
	unlink(path);
	munmap(l, sizeof(*l));
	free(found);
}

/* ---- power cut ---- */

static void cut_power(const char *path, uint64_t seed, uint64_t *fsyncs)
{
	struct foliage_cache_options o = options;
	struct ledger *l = calloc(1, sizeof(*l));
	struct foliage_cache *cache;
	struct foliage_file *file;
	uint64_t rng = seed;
	struct disk disk;

	disk_init(&disk, SIZE);
	/* The disk in memory is no file: its requests cannot go to a ring. */
	o.io = FOLIAGE_IO_SYNC;
	assert_int_equal(file_cache_create(&o, &disk.backend, &cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(cache, path, O_RDWR | O_CREAT | O_TRUNC, 0600, &file),
			 0);
	for (uint32_t n = splitmix64_below(&rng, 300); n; n--)
		work(l, file, &rng);
	disk_cut(&disk, &rng);
	check(l, disk.safe, disk.safe_size);
	*fsyncs += l->fsyncs;
	foliage_cache_destroy(cache); /* says -EIO: the disk is off */
	disk_fini(&disk);
	free(l);
}

static void test_power(void **state)
{
	uint64_t fsyncs = 0;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "foliage-power-%d", (int)getpid());
	for (uint64_t i = 0; i < rounds(); i++)
		cut_power(path, i + 1, &fsyncs);
	assert_true(fsyncs > rounds());
	unlink(path);
}

/* The test can fail: without fsync the disk forgets. */
static void test_it_forgets(void **state)
{
	struct ledger *l = calloc(1, sizeof(*l));
	struct foliage_cache_options o = options;
	struct foliage_cache *cache;
	struct foliage_file *file;
	uint64_t rng = 5, lost = 0;
	struct disk disk;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "foliage-power-%d", (int)getpid());
	disk_init(&disk, SIZE);
	o.io = FOLIAGE_IO_SYNC;
	assert_int_equal(file_cache_create(&o, &disk.backend, &cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(cache, path, O_RDWR | O_CREAT, 0600, &file), 0);
	for (int i = 0; i < 200; i++)
		write_cells(l, file, &rng);
	assert_int_equal(foliage_file_flush(file), 0);
	disk_cut(&disk, &rng);
	for (uint32_t i = 0; i < CELLS; i++)
		lost += *(uint32_t *)(disk.safe + (size_t)i * CELL) != l->written[i];
	assert_true(lost > 10);
	foliage_cache_destroy(cache);
	disk_fini(&disk);
	free(l);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_it_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
