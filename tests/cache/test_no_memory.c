/* SPDX-License-Identifier: MIT
 *
 * Out of memory at every allocation in turn: whatever is asked of the library returns -ENOMEM or an
 * error that its manual has for it, or does without; nothing is lost or left behind, and the next call
 * works. malloc() and its family and mmap() are this file's, for the whole program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "foliage/cache.h"
#include "foliage/file.h"
#include "foliage/group.h"
#include "foliage/reclaim.h"
#include "foliage/segment.h"

#ifdef HAVE_SQLITE
#include <sqlite3.h>

#include "adapters/sqlite/foliage_sqlite.h"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAVE_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAVE_SANITIZER 1
#endif
#endif

/* ---- the allocator ---- */

#ifndef HAVE_SANITIZER
static _Atomic long left = -1; /* allocations until one fails; negative: none does */
static _Atomic long live;      /* blocks that are allocated */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t nr, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static bool fails(void)
{
	return atomic_load(&left) >= 0 && atomic_fetch_sub(&left, 1) == 0;
}

static void *counted(void *block)
{
	live += block != NULL;
	return block;
}

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

/* The C library is to use them as well. */
#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
	return fails() ? no_memory() : counted(__libc_malloc(bytes));
}

void *calloc(size_t nr, size_t bytes)
{
	return fails() ? no_memory() : counted(__libc_calloc(nr, bytes));
}

void *realloc(void *block, size_t bytes)
{
	void *p;

	if (fails())
		return no_memory();
	p = __libc_realloc(block, bytes);
	return block ? p : counted(p);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? no_memory() : counted(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	void *p = fails() ? NULL : counted(__libc_memalign(alignment, bytes));

	if (!p)
		return ENOMEM;
	*block = p;
	return 0;
}

void free(void *block)
{
	live -= block != NULL;
	__libc_free(block);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

#pragma GCC visibility pop
#endif

/* ---- what is asked ---- */

enum { PAGE = 4096, PAGES = 600, MIB = 1 << 20, ALLOCATIONS_MAX = 3000 };

static int expected(int rc)
{
	/* No thread is what pthread_create() says when it has no memory for one. */
	if (rc < 0 && rc != -ENOMEM && rc != -EAGAIN && rc != -ENOBUFS)
		fail_msg("error %d", rc);
	return rc;
}

static int fill_pool(struct foliage_pool *pool, struct foliage_group *group, int kind)
{
	struct foliage_page *page;

	for (uint64_t i = 0; i < PAGES; i++) {
		int rc = foliage_group_fetch(group, pool, 1, i, kind, FOLIAGE_FETCH_CREATE, &page);

		if (expected(rc) < 0)
			return rc;
		if (rc == FOLIAGE_NEW)
			memcpy(page->data, &i, sizeof(i));
		assert_memory_equal(page->data, &i, sizeof(i));
		assert_int_equal(foliage_pool_unpin(pool, page, 0), 0);
	}
	return 0;
}

static int use_pool(struct foliage_pool *pool)
{
	struct foliage_group *group = NULL, *root = foliage_pool_group(pool);
	int rc = foliage_pool_kind(pool, PAGE, 16), kind = rc;
	char *text = NULL;

	if (expected(rc) >= 0)
		rc = expected(foliage_group_create(root, "tenant", &group));
	if (rc >= 0)
		rc = expected(foliage_group_set(group, FOLIAGE_GROUP_MAX, MIB));
	if (rc >= 0)
		rc = fill_pool(pool, group, kind);
	if (rc >= 0)
		rc = expected(foliage_group_text(root, "memory.stat", &text));
	free(text);
	if (rc >= 0)
		rc = expected(foliage_pool_resize(pool, 3 * MIB));
	if (group && !foliage_group_remove(group) && rc >= 0)
		rc = fill_pool(pool, root, kind);
	return rc;
}

static int with_pool(void)
{
	struct foliage_pool_options options = {
		.bytes = 2 * MIB, .max_bytes = 4 * MIB, .max_groups = 8};
	struct foliage_pool *pool = NULL;
	char message[200] = "";
	int rc = foliage_pool_create(&options, &pool, message, sizeof(message));

	if (expected(rc) < 0) {
		assert_true(message[0]);
		return rc;
	}
	rc = use_pool(pool);
	foliage_pool_destroy(pool);
	return rc;
}

static int watch(struct foliage_pool *pool)
{
	const struct foliage_segment_options options = {.label = "none", .policy = "fg"};
	struct foliage_segment *segment = NULL;
	int rc = expected(foliage_segment_create(&options, &segment));

	if (rc >= 0) {
		rc = expected(foliage_segment_start_pool(segment, pool, 100));
		foliage_segment_destroy(segment);
	}
	return rc;
}

static int with_segment(void)
{
	struct foliage_pool_options options = {.bytes = MIB};
	struct foliage_pool *pool = NULL;
	int rc = expected(foliage_pool_create(&options, &pool, NULL, 0));

	if (rc >= 0) {
		rc = watch(pool);
		foliage_pool_destroy(pool);
	}
	return rc;
}

static char path[] = "/tmp/foliage-no-memory-XXXXXX";

/* What was written is there, in memory or on the disk. */
static int write_and_read(struct foliage_file *file, unsigned char byte)
{
	static char out[16 * PAGE], in[16 * PAGE];
	int64_t n;

	memset(out, byte, sizeof(out));
	for (uint64_t at = 0; at < 4 * MIB; at += sizeof(out)) {
		n = foliage_file_write(file, out, sizeof(out), at);
		if (n != (int64_t)sizeof(out))
			return expected(n < 0 ? (int)n : -ENOMEM);
		n = foliage_file_read(file, in, sizeof(in), at);
		if (n != (int64_t)sizeof(in))
			return expected(n < 0 ? (int)n : -ENOMEM);
		assert_memory_equal(in, out, sizeof(out));
	}
	return expected(foliage_file_fsync(file));
}

static void check_file(unsigned char byte)
{
	static char in[PAGE];
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	for (off_t at = 0; at < 4 * MIB; at += PAGE) {
		assert_int_equal(pread(fd, in, PAGE, at), PAGE);
		for (int i = 0; i < PAGE; i += 512)
			assert_int_equal((unsigned char)in[i], byte);
	}
	close(fd);
}

static int with_files(enum foliage_io io)
{
	static unsigned char byte;
	struct foliage_cache_options options = {.bytes = 2 * MIB, .io = io, .wait_ms = 50};
	struct foliage_cache *cache = NULL;
	struct foliage_file *file = NULL;
	int rc = expected(foliage_cache_create(&options, &cache, NULL, 0)), end;

	if (rc < 0)
		return rc;
	byte++;
	rc = expected(foliage_file_open(cache, path, O_RDWR, 0, &file));
	if (rc >= 0)
		rc = write_and_read(file, byte);
	/* It was not all said to be written: now it must be, or closing says that it is not. */
	if (rc < 0 && file && foliage_file_fsync(file) == 0 && write_and_read(file, byte) == 0)
		check_file(byte);
	else if (rc >= 0)
		check_file(byte);
	if (file)
		expected(foliage_file_close(file));
	end = expected(foliage_cache_destroy(cache));
	return rc < 0 ? rc : end;
}

enum { REQUESTS = 32, REQUEST_BYTES = 8 * PAGE };

/* All of one kind at once; whatever is accepted completes. */
static int run_requests(struct foliage_cache *cache, struct foliage_aio *aio,
			enum foliage_aio_op op, size_t bytes)
{
	struct foliage_aio *all[REQUESTS], *done;
	int rc = 0;

	for (int i = 0; i < REQUESTS; i++) {
		aio[i].op = op;
		aio[i].bytes = bytes;
		aio[i].offset = (uint64_t)i * REQUEST_BYTES;
		all[i] = &aio[i];
	}
	assert_int_equal(foliage_cache_submit(cache, all, REQUESTS), REQUESTS);
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(foliage_cache_poll(cache, &done, 1, -1), 1);
	for (int i = 0; i < REQUESTS; i++)
		if (aio[i].result < (int64_t)bytes)
			rc = expected(aio[i].result < 0 ? (int)aio[i].result : -ENOMEM);
	return rc;
}

static int use_requests(struct foliage_cache *cache, struct foliage_file *file, char byte)
{
	static char buffers[REQUESTS][REQUEST_BYTES];
	struct foliage_aio aio[REQUESTS] = {0};
	int rc;

	memset(buffers, byte, sizeof(buffers));
	for (int i = 0; i < REQUESTS; i++) {
		aio[i].file = file;
		aio[i].buffer = buffers[i];
	}
	rc = run_requests(cache, aio, FOLIAGE_AIO_WRITE, REQUEST_BYTES);
	if (rc >= 0)
		rc = run_requests(cache, aio, FOLIAGE_AIO_FSYNC, 0);
	if (rc >= 0)
		rc = expected(foliage_file_invalidate(file, 0, UINT64_MAX));
	memset(buffers, ~byte, sizeof(buffers));
	if (rc >= 0)
		rc = run_requests(cache, aio, FOLIAGE_AIO_READ, REQUEST_BYTES);
	for (int i = 0; i < REQUESTS && rc >= 0; i++)
		for (int at = 0; at < REQUEST_BYTES; at += 512)
			assert_int_equal(buffers[i][at], byte);
	return rc;
}

static int with_requests(void)
{
	static char byte;
	struct foliage_cache_options options = {.bytes = 2 * MIB, .wait_ms = 50};
	struct foliage_cache *cache = NULL;
	struct foliage_file *file = NULL;
	int rc = expected(foliage_cache_create(&options, &cache, NULL, 0)), end;

	if (rc < 0)
		return rc;
	rc = expected(foliage_file_open(cache, path, O_RDWR, 0, &file));
	if (rc >= 0)
		rc = use_requests(cache, file, ++byte);
	end = expected(foliage_cache_destroy(cache));
	return rc < 0 ? rc : end;
}

/* Nobody has asked for the data to be written when the cache ends. */
static int with_end(void)
{
	static unsigned char byte;
	static char out[MIB];
	struct foliage_cache_options options = {
		.bytes = 8 * MIB, .dirty_background = 70, .dirty_limit = 80};
	struct foliage_cache *cache = NULL;
	struct foliage_file *file = NULL;
	int rc = expected(foliage_cache_create(&options, &cache, NULL, 0)), end;

	if (rc < 0)
		return rc;
	byte++;
	memset(out, byte, sizeof(out));
	rc = expected(foliage_file_open(cache, path, O_RDWR, 0, &file));
	for (uint64_t i = 0; i < 4 && rc >= 0; i++) {
		int64_t n = foliage_file_write(file, out, sizeof(out), i * MIB);

		rc = n == MIB ? 0 : expected(n < 0 ? (int)n : -ENOMEM);
	}
	end = expected(foliage_cache_destroy(cache));
	if (rc >= 0 && end >= 0)
		check_file(byte);
	return rc < 0 ? rc : end;
}

static int with_sync(void)
{
	return with_files(FOLIAGE_IO_SYNC);
}

static int with_ring(void)
{
	return with_files(FOLIAGE_IO_AUTO);
}

static void evicted(void *ctx, foliage_folio folio, uint64_t shadow)
{
	(void)ctx, (void)folio, (void)shadow;
}

static int use_engine(struct foliage_engine *e, struct foliage_cpu *cpu)
{
	const struct foliage_reclaim_request request = {.nr = 32, .swappiness = -1};
	int child = expected(foliage_memcg_create(e, 0, "child")), rc = child;

	for (foliage_folio f = 0; f < 200 && rc >= 0; f++)
		rc = expected(foliage_folio_add(e, cpu, f, (uint32_t)child, 0, 0, 0, 0, 0));
	if (rc >= 0)
		rc = expected((int)foliage_reclaim(e, cpu, &request));
	if (rc >= 0)
		rc = expected(foliage_engine_switch(e, cpu, "clru", NULL, 0));
	for (int i = 0; i < 2 && rc >= 0; i++)
		rc = expected(
			foliage_engine_switch(e, cpu, i ? "fgw:first_fill=0" : "fgw", NULL, 0));
	if (rc < 0 && child >= 0) /* what it holds is in order */
		expected((int)foliage_reclaim(e, cpu, &request));
	if (child >= 0)
		expected(foliage_memcg_remove(e, cpu, (uint32_t)child));
	return rc;
}

static int with_engine(const char *policy)
{
	static const struct foliage_backend backend = {.evict = evicted};
	struct foliage_engine_options options = {
		.nr_folios = 1000,
		.max_memcgs = 4,
		.totalram_pages = 1000,
		.policy = policy,
		.backend = &backend,
	};
	struct foliage_engine *e = NULL;
	struct foliage_cpu cpu = {0};
	int rc = expected(foliage_engine_create(&options, &e, NULL, 0));

	if (rc >= 0) {
		rc = use_engine(e, &cpu);
		foliage_cpu_exit(e, &cpu);
		foliage_engine_destroy(e);
	}
	return rc;
}

static int from_mglru(void)
{
	return with_engine("mglru");
}

static int from_fgw(void)
{
	return with_engine("fgw");
}

#ifdef HAVE_SQLITE
static int no_memory_or_ok(int rc)
{
	if (rc != SQLITE_OK && (rc & 255) != SQLITE_NOMEM && rc != SQLITE_IOERR_NOMEM)
		fail_msg("SQLite: %s", sqlite3_errstr(rc));
	return rc == SQLITE_OK ? 0 : -ENOMEM;
}

static int count_rows(sqlite3 *db)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT count(v) FROM t", -1, &stmt, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW)
			assert_int_equal(sqlite3_column_int(stmt, 0), 300);
	}
	sqlite3_finalize(stmt);
	return no_memory_or_ok(rc == SQLITE_ROW ? SQLITE_OK : rc);
}

static int with_sqlite(void)
{
	static const char make[] =
		"PRAGMA page_size=1024; PRAGMA cache_size=20; PRAGMA synchronous=off; BEGIN;"
		"DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB);"
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300)"
		"INSERT INTO t SELECT i, zeroblob(900) FROM n; COMMIT";
	char name[64];
	sqlite3 *db = NULL;
	int rc;

	snprintf(name, sizeof(name), "%s.db", path);
	rc = no_memory_or_ok(sqlite3_open(name, &db));
	if (rc >= 0)
		rc = no_memory_or_ok(sqlite3_exec(db, make, NULL, NULL, NULL));
	if (rc >= 0)
		rc = count_rows(db);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return rc;
}
#endif

/* ---- every allocation in turn ---- */

static void each_fails(int (*ask)(void))
{
#ifdef HAVE_SANITIZER
	(void)ask;
	print_message("SKIP: the allocator is the sanitizer's\n");
	skip();
#else
	long before, refused = 0, n;

	assert_int_equal(ask(), 0); /* what the C library keeps for itself comes with the first */
	assert_int_equal(ask(), 0);
	for (n = 0; n < ALLOCATIONS_MAX; n++) {
		int rc;

		before = live;
		left = n;
		rc = ask();
		if (left >= 0)
			break;
		left = -1;
		refused += rc < 0;
		if (live != before)
			fail_msg("allocation %ld: %ld blocks are left", n, live - before);
		assert_int_equal(ask(), 0);
	}
	left = -1;
	print_message("%ld allocations, %ld of them could not be done without\n", n, refused);
	assert_true(n < ALLOCATIONS_MAX && refused > 0);
#endif
}

static void test_pool(void **state)
{
	(void)state;
	each_fails(with_pool);
}

static void test_segment(void **state)
{
	(void)state;
	each_fails(with_segment);
}

static void test_files(void **state)
{
	(void)state;
	each_fails(with_sync);
}

static void test_files_ring(void **state)
{
	(void)state;
	each_fails(with_ring);
}

static void test_requests(void **state)
{
	(void)state;
	each_fails(with_requests);
}

static void test_end(void **state)
{
	(void)state;
	each_fails(with_end);
}

static void test_engine(void **state)
{
	(void)state;
	each_fails(from_mglru);
	each_fails(from_fgw);
}

static void test_sqlite(void **state)
{
	(void)state;
#ifdef HAVE_SQLITE
	struct foliage_sqlite_stats stats;

	each_fails(with_sqlite);
	assert_int_equal(foliage_sqlite_stats(&stats), 0);
	assert_true(stats.pool.created > 0);
	assert_int_equal(stats.caches + stats.unpurgeable_bytes + stats.overflow_bytes, 0);
#else
	print_message("SKIP: SQLite's library is not here\n");
	skip();
#endif
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || ftruncate(fd, 4 * MIB))
		return -1;
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	char name[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s.db%s", path, i ? "-journal" : "");
		unlink(name);
	}
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_engine),     cmocka_unit_test(test_pool),
		cmocka_unit_test(test_segment),    cmocka_unit_test(test_files),
		cmocka_unit_test(test_files_ring), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_end),        cmocka_unit_test(test_sqlite),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
