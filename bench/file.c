/* SPDX-License-Identifier: MIT
 *
 * Files through the cache beside the kernel's, in one run on one file of 1 GiB in pages of 4 KiB:
 *
 *   hits   all of it is in memory, in the kernel's page cache for pread() and mmap, in ours for
 *          foliage_file_read() and foliage_file_pin(); pages zipf 1.0, one and two threads. ns a
 *          page, wall time (best of three) and CPU beside. `memcpy` copies the same pages out of
 *          plain memory in huge pages: the floor of whatever copies. The zero-copy rows read 8
 *          bytes of each page.
 *   cold   4 KiB random reads, 32 in flight, none of it in any cache: foliage_cache_submit()
 *          against fio's io_uring engine with O_DIRECT (fio is left out where it is missing). A
 *          read is a copy more than what fio does; a pin, like fio, leaves the page where the
 *          device put it.
 *
 * usage: bench_file [--gib N] [FILE]      FILE is made, and removed at the end; default: here
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "foliage/file.h"
#include "workload/zipf_oracle.h"

enum { PAGE = 4096, ACCESSES = 1500000, ROUNDS = 3, DEPTH = 32, COLD_SECONDS = 3, COLD_ROUNDS = 2 };

struct bench {
	const char *path;
	uint64_t pages;
	uint32_t *keys;
	int fd;
	char *map, *plain;
	struct foliage_cache *cache;
	struct foliage_file *file;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "bench_file: %s: %s\n", what, strerror(error));
	exit(2);
}

static const char *to_remove;

static void remove_file(void)
{
	unlink(to_remove);
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- hits ---- */

typedef uint64_t (*access_fn)(struct bench *b, const uint32_t *keys, size_t n);

static uint64_t by_memcpy(struct bench *b, const uint32_t *keys, size_t n)
{
	char buffer[PAGE] __attribute__((aligned(PAGE)));
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(buffer, b->plain + (uint64_t)keys[i] * PAGE, PAGE);
		__asm__ volatile("" ::"r"(buffer) : "memory");
		sum += *(uint64_t *)buffer;
	}
	return sum;
}

static uint64_t by_pread(struct bench *b, const uint32_t *keys, size_t n)
{
	char buffer[PAGE] __attribute__((aligned(PAGE)));
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (pread(b->fd, buffer, PAGE, (off_t)keys[i] * PAGE) != PAGE)
			die(b->path, errno);
		sum += *(uint64_t *)buffer;
	}
	return sum;
}

static uint64_t by_read(struct bench *b, const uint32_t *keys, size_t n)
{
	char buffer[PAGE] __attribute__((aligned(PAGE)));
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t got = foliage_file_read(b->file, buffer, PAGE, (uint64_t)keys[i] * PAGE);

		if (got != PAGE)
			die(b->path, (int)-got);
		sum += *(uint64_t *)buffer;
	}
	return sum;
}

static uint64_t by_map(struct bench *b, const uint32_t *keys, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += *(volatile uint64_t *)(b->map + (uint64_t)keys[i] * PAGE);
	return sum;
}

static uint64_t by_pin(struct bench *b, const uint32_t *keys, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		struct foliage_pin pin;
		int rc = foliage_file_pin(b->file, (uint64_t)keys[i] * PAGE, FOLIAGE_FETCH_LOCAL,
					  &pin);

		if (rc)
			die(b->path, -rc);
		sum += *(const uint64_t *)pin.data;
		foliage_file_unpin(b->file, &pin);
	}
	return sum;
}

static const struct {
	const char *name;
	access_fn run;
} ways[] = {
	{"memcpy", by_memcpy},
	{"pread, kernel", by_pread},
	{"foliage_file_read", by_read},
	{"mmap, kernel, 8 bytes", by_map},
	{"foliage_file_pin, 8 bytes", by_pin},
};
enum { WAY_MEMCPY, WAY_PREAD, WAY_READ, WAY_MAP, WAY_PIN };

struct racer {
	struct bench *b;
	access_fn run;
	const uint32_t *keys;
	size_t n;
	uint64_t sum;
	pthread_t thread;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	r->sum = r->run(r->b, r->keys, r->n);
	return NULL;
}

static void time_once(struct bench *b, access_fn run, int threads, double *wall, double *cpu)
{
	double w = seconds(CLOCK_MONOTONIC), p = seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct racer racers[2];
	uint64_t sum = 0;

	for (int i = 0; i < threads; i++) {
		size_t n = (size_t)(ACCESSES / threads);

		racers[i] =
			(struct racer){.b = b, .run = run, .keys = b->keys + i * (long)n, .n = n};
		if (pthread_create(&racers[i].thread, NULL, race, &racers[i]))
			die("thread", EAGAIN);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(racers[i].thread, NULL);
		sum += racers[i].sum;
	}
	*wall = MIN(*wall, (seconds(CLOCK_MONOTONIC) - w) * 1e9 / ACCESSES);
	*cpu = MIN(*cpu, (seconds(CLOCK_PROCESS_CPUTIME_ID) - p) * 1e9 / ACCESSES);
	if (!sum)
		die("contents", EIO);
}

static void bench_hits(struct bench *b)
{
	double wall[ARRAY_SIZE(ways)][2], cpu[ARRAY_SIZE(ways)][2];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		for (int t = 0; t < 2; t++)
			wall[i][t] = cpu[i][t] = 1e9;
	/* Turn by turn: a noisy minute disturbs all of them. */
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
			for (int t = 0; t < 2; t++)
				time_once(b, ways[i].run, t + 1, &wall[i][t], &cpu[i][t]);
	printf("%-26s %12s %12s %12s %12s\n", "hits, zipf 1.0", "1 thr ns", "(cpu)", "2 thr ns",
	       "(cpu)");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		printf("%-26s %12.1f %12.1f %12.1f %12.1f\n", ways[i].name, wall[i][0], cpu[i][0],
		       wall[i][1], cpu[i][1]);
	for (size_t i = WAY_READ; i <= WAY_PIN; i += WAY_PIN - WAY_READ)
		printf("%-26s %11.2fx %11.2fx %11.2fx %11.2fx\n",
		       i == WAY_READ ? "read against pread" : "pin against pread",
		       wall[WAY_PREAD][0] / wall[i][0], cpu[WAY_PREAD][0] / cpu[i][0],
		       wall[WAY_PREAD][1] / wall[i][1], cpu[WAY_PREAD][1] / cpu[i][1]);
}

/* ---- cold ---- */

/* Reads a second, 32 in flight. */
static double cold_foliage(struct bench *b, enum foliage_aio_op op, uint64_t seed)
{
	static char buffers[DEPTH][PAGE] __attribute__((aligned(PAGE)));
	struct foliage_aio aio[DEPTH], *list[DEPTH], *done[DEPTH];
	struct foliage_cache_options options = {.bytes = 64 << 20};
	double start, now;
	uint64_t reads = 0;
	int n = DEPTH;

	if (foliage_cache_create(&options, &b->cache, NULL, 0) ||
	    foliage_file_open(b->cache, b->path, O_RDONLY, 0, &b->file))
		die(b->path, EIO);
	foliage_file_advise(b->file, FOLIAGE_ADVICE_RANDOM, 0, 0);
	for (int i = 0; i < DEPTH; i++) {
		aio[i] = (struct foliage_aio){
			.file = b->file, .op = op, .buffer = buffers[i], .bytes = PAGE};
		list[i] = &aio[i];
	}
	start = now = seconds(CLOCK_MONOTONIC);
	while (now < start + COLD_SECONDS) {
		for (int i = 0; i < n; i++)
			list[i]->offset =
				splitmix64_below(&seed, (uint32_t)b->pages) * (uint64_t)PAGE;
		if (foliage_cache_submit(b->cache, list, (unsigned int)n) != n)
			die("submit", EIO);
		n = foliage_cache_poll(b->cache, done, DEPTH, -1);
		for (int i = 0; i < n; i++) {
			list[i] = done[i];
			if (done[i]->result != (op == FOLIAGE_AIO_READ ? PAGE : 0))
				die("read", (int)-done[i]->result);
			if (op == FOLIAGE_AIO_PIN)
				foliage_file_unpin(b->file, &done[i]->pin);
		}
		reads += (uint64_t)n;
		now = seconds(CLOCK_MONOTONIC);
	}
	while ((n = foliage_cache_poll(b->cache, done, DEPTH, -1)) > 0)
		for (int i = 0; i < n && op == FOLIAGE_AIO_PIN; i++)
			foliage_file_unpin(b->file, &done[i]->pin);
	foliage_file_close(b->file);
	foliage_cache_destroy(b->cache);
	return (double)reads / (now - start);
}

static double cold_fio(struct bench *b)
{
	char command[600], line[2000];
	double iops = 0;
	FILE *fio;

	snprintf(command, sizeof(command),
		 "fio --name=cold --filename='%s' --rw=randread --bs=4k --direct=1 "
		 "--ioengine=io_uring --iodepth=32 --norandommap --time_based --runtime=%d "
		 "--size=%llu --randrepeat=0 --output-format=terse 2>/dev/null",
		 b->path, COLD_SECONDS, (unsigned long long)b->pages * PAGE);
	fio = popen(command, "r");
	while (fio && fgets(line, sizeof(line), fio)) {
		/* terse version 3: the 8th field is read iops */
		char *at = line;

		for (int i = 0; i < 7 && at; i++)
			at = strchr(at + (i > 0), ';');
		if (at)
			iops = strtod(at + 1, NULL);
	}
	if (fio)
		pclose(fio);
	return iops;
}

static void bench_cold(struct bench *b)
{
	double reads = 0, pins = 0, theirs = 0;

	posix_fadvise(b->fd, 0, 0, POSIX_FADV_DONTNEED);
	for (int round = 0; round < COLD_ROUNDS; round++) {
		double x = cold_foliage(b, FOLIAGE_AIO_READ, (uint64_t)round + 1);

		reads = MAX(reads, x);
		x = cold_fio(b);
		theirs = MAX(theirs, x);
		x = cold_foliage(b, FOLIAGE_AIO_PIN, (uint64_t)round + 100);
		pins = MAX(pins, x);
	}
	printf("\n%-26s %12s\n", "cold random, 32 deep", "reads/s");
	printf("%-26s %12.0f\n", "submit, read", reads);
	printf("%-26s %12.0f\n", "submit, pin", pins);
	if (theirs > 0) {
		printf("%-26s %12.0f\n", "fio, io_uring", theirs);
		printf("%-26s %11.2fx\n", "read against fio", reads / theirs);
		printf("%-26s %11.2fx\n", "pin against fio", pins / theirs);
	} else {
		printf("%-26s %12s\n", "fio, io_uring", "not found");
	}
}

/* ---- the file ---- */

static void make_file(struct bench *b)
{
	struct zipf_oracle zipf;
	uint64_t bytes = b->pages * PAGE;

	b->fd = open(b->path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (b->fd < 0)
		die(b->path, errno);
	to_remove = b->path;
	atexit(remove_file);
	b->keys = malloc(ACCESSES * sizeof(*b->keys));
	b->plain = aligned_alloc(2 << 20, bytes);
	if (!b->keys || !b->plain || zipf_oracle_init(&zipf, (uint32_t)b->pages, 1.0, 1, 42))
		die("keys", ENOMEM);
	madvise(b->plain, bytes, MADV_HUGEPAGE);
	zipf_oracle_fill(&zipf, b->keys, ACCESSES);
	zipf_oracle_free(&zipf);
	for (uint64_t i = 0; i < b->pages; i++)
		memset(b->plain + i * PAGE, (int)(i % 255 + 1), PAGE);
	for (uint64_t at = 0; at < bytes; at += 1 << 20)
		if (pwrite(b->fd, b->plain + at, 1 << 20, (off_t)at) != 1 << 20)
			die(b->path, errno);
	if (fdatasync(b->fd))
		die(b->path, errno);
	b->map = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, b->fd, 0);
	if (b->map == MAP_FAILED)
		die(b->path, errno);
}

/* All of the file into our cache. */
static void warm(struct bench *b)
{
	struct foliage_cache_options options = {.bytes = b->pages * (PAGE + 256) + (64 << 20)};
	char message[200], *buffer = malloc(1 << 20);
	struct foliage_cache_stats stats;

	if (foliage_cache_create(&options, &b->cache, message, sizeof(message)) ||
	    foliage_file_open(b->cache, b->path, O_RDONLY, 0, &b->file))
		die(b->path, EIO);
	for (uint64_t at = 0; at < b->pages * PAGE; at += 1 << 20)
		if (foliage_file_read(b->file, buffer, 1 << 20, at) != 1 << 20)
			die(b->path, EIO);
	free(buffer);
	foliage_cache_stats(b->cache, &stats);
	if (stats.pool.evicted)
		die("room for the whole file", ENOBUFS);
	printf("%llu MiB, %s, O_DIRECT on %llu of %llu files\n\n",
	       (unsigned long long)b->pages * PAGE >> 20, stats.uring ? "io_uring" : "preadv",
	       (unsigned long long)stats.direct_files, (unsigned long long)stats.files_open);
}

int main(int argc, char **argv)
{
	struct bench b = {.path = "bench_file.data"};
	double gib = 1;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--gib") && i + 1 < argc)
			gib = strtod(argv[++i], NULL);
		else
			b.path = argv[i];
	}
	b.pages = (uint64_t)(gib * 1024) << 8;
	if (!b.pages)
		die("--gib", EINVAL);
	make_file(&b);
	warm(&b);
	bench_hits(&b);
	foliage_file_close(b.file);
	foliage_cache_destroy(b.cache);
	munmap(b.map, b.pages * PAGE);
	free(b.plain);
	bench_cold(&b);
	close(b.fd);
	free(b.keys);
	return 0;
}
