/* SPDX-License-Identifier: MIT
 *
 * The power goes while several files are written at random places, by plain, vectored and
 * asynchronous writes and through O_DSYNC handles, are cut and grow: what an fsync, of whatever kind,
 * has covered is there, file by file; what was changed since is old, new, or gone if it was cut off.
 *
 * Everything is written in cells of 64 bytes that are full of a version number, which only grows. Of
 * each cell one knows the least and the greatest version that may be found.
 *
 * FOLIAGE_CRASH_ROUNDS=n: n rounds instead of 100.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "cache/file.h"
#include "support_disk.h"

enum { CELL = 64, WORDS = CELL / 4, CELLS = 6000, SIZE = CELL * CELLS, MOST = 300, FILES = 3 };

struct ledger {
	struct foliage_file *file, *synced; /* the second writes with O_DSYNC */
	struct disk *disk;
	uint32_t now[CELLS], least[CELLS], most[CELLS];
	uint64_t size;
	char path[64];
};

struct world {
	struct disks disks;
	struct foliage_cache *cache;
	struct ledger files[FILES];
	uint32_t version;
	uint64_t rng, fsyncs, cuts;
};

static uint32_t buffers[2][MOST * WORDS];

static uint32_t dice(struct world *w, uint32_t n)
{
	return splitmix64_below(&w->rng, n);
}

/* New versions for a range of cells, into a buffer. */
static uint32_t new_cells(struct world *w, struct ledger *l, uint32_t first, uint32_t *buffer)
{
	uint32_t nr = 1 + dice(w, MIN((uint32_t)MOST, CELLS - first));

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t version = ++w->version;

		l->now[first + i] = l->most[first + i] = version;
		for (uint32_t j = 0; j < WORDS; j++)
			buffer[i * WORDS + j] = version;
	}
	l->size = MAX(l->size, (uint64_t)(first + nr) * CELL);
	return nr;
}

static void covered(struct world *w, struct ledger *l)
{
	memcpy(l->least, l->now, sizeof(l->now));
	memcpy(l->most, l->now, sizeof(l->now));
	w->fsyncs++;
}

static void write_plain(struct world *w, struct ledger *l, struct foliage_file *f)
{
	uint32_t first = dice(w, CELLS), nr = new_cells(w, l, first, buffers[0]);

	assert_int_equal(foliage_file_write(f, buffers[0], nr * CELL, (uint64_t)first * CELL),
			 nr * CELL);
}

static void write_vector(struct world *w, struct ledger *l)
{
	uint32_t first = dice(w, CELLS), nr = new_cells(w, l, first, buffers[0]),
		 part = dice(w, nr);
	struct iovec iov[3] = {{buffers[0], part * CELL + 13},
			       {(char *)buffers[0] + part * CELL + 13, 0},
			       {(char *)buffers[0] + part * CELL + 13, (nr - part) * CELL - 13}};

	assert_int_equal(foliage_file_writev(l->file, iov, 3, (uint64_t)first * CELL, 0),
			 nr * CELL);
}

/* Two writes at once to two files, then perhaps an fsync of one. */
static void write_async(struct world *w, uint32_t which)
{
	struct foliage_aio aio[2], *list[2] = {&aio[0], &aio[1]}, *done[2];
	int got = 0;

	for (uint32_t i = 0; i < 2; i++) {
		struct ledger *l = &w->files[(which + i) % FILES];
		uint32_t first = dice(w, CELLS), nr = new_cells(w, l, first, buffers[i]);

		aio[i] = (struct foliage_aio){.file = l->file,
					      .op = FOLIAGE_AIO_WRITE,
					      .buffer = buffers[i],
					      .bytes = nr * CELL,
					      .offset = (uint64_t)first * CELL};
	}
	assert_int_equal(foliage_cache_submit(w->cache, list, 2), 2);
	while (got < 2)
		got += foliage_cache_poll(w->cache, done, 2, -1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(aio[i].result, aio[i].bytes);
	if (dice(w, 3))
		return;
	aio[0] = (struct foliage_aio){.file = w->files[which].file,
				      .op = dice(w, 2) ? FOLIAGE_AIO_FSYNC : FOLIAGE_AIO_FDATASYNC};
	assert_int_equal(foliage_cache_submit(w->cache, list, 1), 1);
	assert_int_equal(foliage_cache_poll(w->cache, done, 1, -1), 1);
	assert_int_equal(aio[0].result, 0);
	covered(w, &w->files[which]);
}

static void truncate_file(struct world *w, struct ledger *l)
{
	uint32_t cells = dice(w, CELLS + 1);

	assert_int_equal(foliage_file_truncate(l->file, (uint64_t)cells * CELL), 0);
	for (uint32_t i = cells; i < CELLS; i++)
		l->now[i] = l->least[i] = 0;
	l->size = (uint64_t)cells * CELL;
	w->cuts++;
}

/* All that is there, as it is in memory. */
static void read_some(struct world *w, struct ledger *l)
{
	uint32_t first = dice(w, CELLS), buffer[20 * WORDS];
	int64_t n = foliage_file_read(l->file, buffer, sizeof(buffer), (uint64_t)first * CELL);

	assert_int_equal(foliage_file_size(l->file), l->size);
	for (int64_t i = 0; i < n / 4; i++)
		assert_int_equal(buffer[i], l->now[first + i / WORDS]);
}

static void work(struct world *w)
{
	uint32_t which = dice(w, FILES);
	struct ledger *l = &w->files[which];

	switch (dice(w, 16)) {
	case 0:
		assert_int_equal(dice(w, 2) ? foliage_file_fsync(l->file)
					    : foliage_file_fdatasync(l->synced),
				 0);
		covered(w, l);
		break;
	case 1:
		truncate_file(w, l);
		break;
	case 2:
		write_plain(w, l, l->synced);
		covered(w, l);
		break;
	case 3 ... 5:
		read_some(w, l);
		break;
	case 6 ... 8:
		write_async(w, which);
		break;
	case 9 ... 11:
		write_vector(w, l);
		break;
	default:
		write_plain(w, l, l->file);
	}
}

static void check(const struct ledger *l)
{
	const struct disk *d = l->disk;

	for (uint32_t i = 0; i < CELLS; i++) {
		uint32_t cell[WORDS] = {0};

		if ((uint64_t)i * CELL < d->safe_size)
			memcpy(cell, d->safe + (size_t)i * CELL,
			       MIN((uint64_t)CELL, d->safe_size - (uint64_t)i * CELL));
		for (uint32_t j = 1; j < WORDS; j++)
			if (cell[j] != cell[0])
				fail_msg("%s: cell %u is torn", l->path, i);
		if (cell[0] < l->least[i] || cell[0] > l->most[i])
			fail_msg("%s: cell %u: %u is not in %u .. %u", l->path, i, cell[0],
				 l->least[i], l->most[i]);
	}
}

static void open_files(struct world *w)
{
	for (int i = 0; i < FILES; i++) {
		struct ledger *l = &w->files[i];

		snprintf(l->path, sizeof(l->path), "foliage-power-%d-%d", (int)getpid(), i);
		unlink(l->path);
		assert_int_equal(
			foliage_file_open(w->cache, l->path, O_RDWR | O_CREAT, 0600, &l->file), 0);
		assert_int_equal(
			foliage_file_open(w->cache, l->path, O_RDWR | O_DSYNC, 0, &l->synced), 0);
		l->disk = disks_of(&w->disks, foliage_file_fd(l->file));
	}
}

static void cut_power(uint64_t seed, uint64_t *fsyncs, uint64_t *cuts)
{
	struct foliage_cache_options o = {.bytes = 1 << 20,
					  .io = FOLIAGE_IO_SYNC, /* no files: nothing for a ring */
					  .dirty_wake_ms = 2,
					  .dirty_expire_ms = 3};
	struct world *w = calloc(1, sizeof(*w));

	w->rng = seed;
	disks_init(&w->disks, SIZE);
	assert_int_equal(file_cache_create(&o, &w->disks.backend, &w->cache, NULL, 0), 0);
	open_files(w);
	for (uint32_t n = dice(w, 200); n; n--)
		work(w);
	for (int i = 0; i < DISK_FILES; i++)
		disk_cut(&w->disks.files[i], &w->rng);
	for (int i = 0; i < FILES; i++) {
		check(&w->files[i]);
		unlink(w->files[i].path);
	}
	*fsyncs += w->fsyncs;
	*cuts += w->cuts;
	foliage_cache_destroy(w->cache); /* says -EIO: the disks are off */
	disks_fini(&w->disks);
	free(w);
}

static void test_power(void **state)
{
	const char *n = getenv("FOLIAGE_CRASH_ROUNDS");
	uint64_t rounds = n ? strtoull(n, NULL, 10) : 100, fsyncs = 0, cuts = 0;

	(void)state;
	for (uint64_t i = 0; i < rounds; i++)
		cut_power(i + 1, &fsyncs, &cuts);
	assert_true(fsyncs > rounds && cuts > rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_power)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
