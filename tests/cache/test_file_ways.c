/* SPDX-License-Identifier: MIT
 *
 * The ways in which a file can be served: with io_uring and O_DIRECT, or where one or both are not
 * allowed (a seccomp filter in a child); and what advice changes about them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "cache/file.h"

enum { PAGE = 4096, MIB = 1 << 20, PAGES = 512 };

struct world {
	struct foliage_cache *cache;
	struct foliage_file *file;
	char path[64];
	uint64_t buffer[PAGE / 8];
};

static void setup(struct world *w, struct foliage_cache_options options)
{
	options.bytes = options.bytes ? options.bytes : 4 * MIB;
	snprintf(w->path, sizeof(w->path), "foliage-ways-%d", (int)getpid());
	unlink(w->path);
	assert_int_equal(foliage_cache_create(&options, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	for (uint64_t i = 0; i < PAGES; i++) {
		memset(w->buffer, (int)(i % 251 + 1), PAGE);
		assert_int_equal(foliage_file_write(w->file, w->buffer, PAGE, i * PAGE), PAGE);
	}
	assert_int_equal(foliage_file_invalidate(w->file, 0, 0), 0);
}

static void teardown(struct world *w)
{
	foliage_file_close(w->file);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	unlink(w->path);
}

static void read_page(struct world *w, struct foliage_file *f, uint64_t page)
{
	assert_int_equal(foliage_file_read(f, w->buffer, PAGE, page * PAGE), PAGE);
	assert_int_equal(((unsigned char *)w->buffer)[77], page % 251 + 1);
}

static struct foliage_cache_stats stats_of(const struct world *w)
{
	struct foliage_cache_stats stats;

	assert_int_equal(foliage_cache_stats(w->cache, &stats), 0);
	return stats;
}

/* ---- what is not allowed ---- */

enum { NO_URING = 1, NO_DIRECT = 2, NO_FIXED = 4 };

/* io_uring_setup() fails with EPERM, as containers have it; open() with O_DIRECT with EINVAL, as file
 * systems that cannot do it have it; registering memory with ENOMEM, as a limit of locked memory has
 * it. */
static void forbid(unsigned int what)
{
	const uint32_t eperm = SECCOMP_RET_ERRNO | EPERM, einval = SECCOMP_RET_ERRNO | EINVAL,
		       enomem = SECCOMP_RET_ERRNO | ENOMEM;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what & NO_URING ? eperm : SECCOMP_RET_ALLOW),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what & NO_FIXED ? enomem : SECCOMP_RET_ALLOW),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what & NO_DIRECT ? einval : SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(code), code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Some of everything, and on disk at the end. */
static void use(struct world *w)
{
	struct foliage_aio aio = {.file = w->file,
				  .op = FOLIAGE_AIO_READ,
				  .buffer = w->buffer,
				  .bytes = 100,
				  .offset = 5 * PAGE - 50};
	struct foliage_aio *list[1] = {&aio};
	char found[PAGE];
	int fd;

	for (uint64_t i = 0; i < PAGES; i++)
		read_page(w, w->file, i);
	assert_int_equal(foliage_file_invalidate(w->file, 0, 0), 0);
	assert_int_equal(foliage_cache_submit(w->cache, list, 1), 1);
	assert_int_equal(foliage_cache_poll(w->cache, list, 1, -1), 1);
	assert_int_equal(aio.result, 100);
	assert_int_equal(((unsigned char *)w->buffer)[49], 5);
	assert_int_equal(((unsigned char *)w->buffer)[50], 6);
	assert_int_equal(foliage_file_write(w->file, "odd", 3, PAGES * (uint64_t)PAGE - 1), 3);
	assert_int_equal(foliage_file_fsync(w->file), 0);
	fd = open(w->path, O_RDONLY);
	assert_int_equal(pread(fd, found, PAGE, (PAGES - 1) * (off_t)PAGE + 2), PAGE);
	assert_memory_equal(found + PAGE - 3, "odd", 3);
	close(fd);
}

static void try_without(unsigned int what, const struct foliage_cache_stats *here)
{
	struct foliage_cache_options options = {.bytes = 4 * MIB, .io = FOLIAGE_IO_URING};
	struct foliage_cache_stats stats;
	struct foliage_cache *cache;
	struct world w;
	char message[200];
	int status;
	pid_t child = fork();

	if (!child) {
		forbid(what);
		setup(&w, (struct foliage_cache_options){.bytes = 4 * MIB});
		stats = stats_of(&w);
		if (what & NO_URING) {
			assert_false(stats.uring);
			assert_int_equal(foliage_cache_create(&options, &cache, message, 200),
					 -ENOSYS);
			assert_non_null(strstr(message, "io_uring"));
		} else {
			assert_int_equal(stats.uring, here->uring);
		}
		assert_int_equal(stats.direct_files, what & NO_DIRECT ? 0 : here->direct_files);
		use(&w);
		teardown(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_not_allowed(void **state)
{
	struct foliage_cache_stats stats;
	struct world w;

	(void)state;
	setup(&w, (struct foliage_cache_options){0});
	stats = stats_of(&w);
	print_message("here: io_uring %s, O_DIRECT on %d of 1 files\n", stats.uring ? "yes" : "no",
		      (int)stats.direct_files);
	use(&w);
	teardown(&w);
	for (unsigned int what = 1; what < 8; what++)
		try_without(what, &stats);
}

/* ---- advice ---- */

static void test_read_ahead(void **state)
{
	struct foliage_cache_stats before, after;
	struct world w;

	(void)state;
	setup(&w, (struct foliage_cache_options){.io = FOLIAGE_IO_SYNC});
	before = stats_of(&w);
	for (uint64_t i = 0; i < 128; i++)
		read_page(&w, w.file, i);
	after = stats_of(&w);
	assert_true(after.readahead_pages - before.readahead_pages >= 100);
	assert_true(after.disk_reads - before.disk_reads <= 16);
	/* RANDOM: a read for each page, and none more. */
	assert_int_equal(foliage_file_advise(w.file, FOLIAGE_ADVICE_RANDOM, 0, 0), 0);
	assert_int_equal(foliage_file_invalidate(w.file, 0, 0), 0);
	before = stats_of(&w);
	for (uint64_t i = 0; i < 128; i++)
		read_page(&w, w.file, i);
	after = stats_of(&w);
	assert_int_equal(after.readahead_pages, before.readahead_pages);
	assert_int_equal(after.disk_reads - before.disk_reads, 128);
	/* SEQUENTIAL: from anywhere, from the first read on. */
	assert_int_equal(foliage_file_advise(w.file, FOLIAGE_ADVICE_SEQUENTIAL, 0, 0), 0);
	before = stats_of(&w);
	read_page(&w, w.file, 300);
	after = stats_of(&w);
	assert_true(after.readahead_pages > before.readahead_pages);
	assert_int_equal(foliage_file_advise(w.file, FOLIAGE_ADVICE_NORMAL, 0, 0), 0);
	before = stats_of(&w);
	read_page(&w, w.file, 450);
	after = stats_of(&w);
	assert_int_equal(after.readahead_pages, before.readahead_pages);
	assert_int_equal(foliage_file_advise(w.file, 99, 0, 0), -EINVAL);
	teardown(&w);
}

static void test_will_and_dont_need(void **state)
{
	struct foliage_cache_stats before, after;
	struct world w;

	(void)state;
	setup(&w, (struct foliage_cache_options){.dirty_wake_ms = 1000000});
	assert_int_equal(
		foliage_file_advise(w.file, FOLIAGE_ADVICE_WILLNEED, 100 * PAGE, 50 * PAGE), 0);
	for (uint64_t i = 100; i < 150; i++)
		read_page(&w, w.file, i);
	after = stats_of(&w);
	assert_int_equal(after.readahead_pages, 50);
	/* Whole pages inside of the range; the others stay. */
	assert_int_equal(foliage_file_advise(w.file, FOLIAGE_ADVICE_RANDOM, 0, 0), 0);
	assert_int_equal(foliage_file_write(w.file, "dirty", 5, 110 * PAGE), 5);
	assert_int_equal(
		foliage_file_advise(w.file, FOLIAGE_ADVICE_DONTNEED, 100 * PAGE + 1, 20 * PAGE), 0);
	before = stats_of(&w);
	for (uint64_t i = 100; i < 150; i++) {
		struct foliage_pin pin;

		assert_int_equal(foliage_file_pin(w.file, i * PAGE, 0, &pin), 0);
		assert_int_equal(((const unsigned char *)pin.data)[77], i % 251 + 1);
		foliage_file_unpin(w.file, &pin);
	}
	after = stats_of(&w);
	/* 101 .. 119 but the dirty one, which is being written meanwhile. */
	assert_int_equal(after.disk_reads - before.disk_reads, 18);
	assert_int_equal(foliage_file_fsync(w.file), 0);
	teardown(&w);
}

/* What NOREUSE handles touch often is not kept for it. */
static void test_noreuse(void **state)
{
	struct foliage_cache_stats before, after;
	struct foliage_file *once;
	uint64_t missed[2];
	struct world w;

	(void)state;
	setup(&w,
	      (struct foliage_cache_options){
		      .bytes = MIB, .policy = "clru", .io = FOLIAGE_IO_SYNC, .no_readahead = true});
	assert_int_equal(foliage_file_open(w.cache, w.path, O_RDONLY, 0, &once), 0);
	assert_int_equal(foliage_file_advise(once, FOLIAGE_ADVICE_NOREUSE, 0, 0), 0);
	for (int round = 0; round < 4; round++)
		for (uint64_t i = 0; i < 40; i++) {
			read_page(&w, w.file, i);
			read_page(&w, once, 100 + i);
		}
	for (uint64_t i = 200; i < 500; i++)
		read_page(&w, w.file, i);
	for (uint64_t set = 0; set < 2; set++) {
		before = stats_of(&w);
		for (uint64_t i = 0; i < 40; i++) {
			struct foliage_pin pin;

			if (foliage_file_pin(w.file, (100 * set + i) * PAGE, FOLIAGE_RW_NOWAIT,
					     &pin) == 0)
				foliage_file_unpin(w.file, &pin);
		}
		after = stats_of(&w);
		missed[set] = 40 - (after.pool.hits - before.pool.hits);
	}
	print_message("of 40 pages each, gone after a scan: %d, without reuse %d\n", (int)missed[0],
		      (int)missed[1]);
	assert_true(missed[0] <= 10);
	assert_true(missed[1] >= 30);
	foliage_file_close(once);
	teardown(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_allowed),
		cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_will_and_dont_need),
		cmocka_unit_test(test_noreuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
