/* SPDX-License-Identifier: MIT
 *
 * Asynchronous requests: many in flight, by callback and by polling, over each other's pages, with
 * faults, with a pool that has no room, with read-ahead; one result each, and the right one.
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
#include "base/rng.h"
#include "cache/file.h"
#include "support_disk.h"

enum { SIZE = 4 << 20, DEPTH = 32, BLOCK = 20000 };

struct world {
	struct faults faults;
	struct foliage_cache *cache;
	struct foliage_file *file;
	char path[64], *model;
	uint64_t rng, called, errors;
	bool faulty;
};

struct slot {
	struct foliage_aio aio;
	struct world *world;
	char data[BLOCK];
	bool busy, mine; /* mine: by callback */
};

static void setup(struct world *w, struct foliage_cache_options options)
{
	*w = (struct world){.rng = 1, .model = malloc(SIZE)};
	snprintf(w->path, sizeof(w->path), "foliage-aio-%d", (int)getpid());
	unlink(w->path);
	faults_init(&w->faults);
	for (uint64_t i = 0; i < SIZE; i++)
		w->model[i] = (char)splitmix64(&w->rng);
	assert_int_equal(file_cache_create(&options, &w->faults.backend, &w->cache, NULL, 0), 0);
	assert_int_equal(foliage_file_open(w->cache, w->path, O_RDWR | O_CREAT, 0600, &w->file), 0);
	assert_int_equal(foliage_file_write(w->file, w->model, SIZE, 0), SIZE);
	assert_int_equal(foliage_file_invalidate(w->file, 0, 0), 0);
}

static void teardown(struct world *w)
{
	char *found = malloc(SIZE);
	int fd;

	assert_int_equal(foliage_file_fsync(w->file), 0);
	foliage_file_close(w->file);
	assert_int_equal(foliage_cache_destroy(w->cache), 0);
	fd = open(w->path, O_RDONLY);
	assert_int_equal(pread(fd, found, SIZE, 0), SIZE);
	assert_memory_equal(found, w->model, SIZE);
	close(fd);
	unlink(w->path);
	free(found);
	free(w->model);
}

/* A result is what was asked for, or a fault's. */
static void complete(struct slot *s)
{
	struct foliage_aio *aio = &s->aio;
	struct world *w = s->world;

	assert_true(s->busy);
	s->busy = false;
	if (aio->result < 0 || (aio->op == FOLIAGE_AIO_READ && (size_t)aio->result < aio->bytes &&
				aio->offset + aio->bytes <= SIZE)) {
		assert_true(w->faulty);
		w->errors++;
	}
	if (aio->op == FOLIAGE_AIO_READ && aio->result > 0)
		assert_memory_equal(s->data, w->model + aio->offset, (size_t)aio->result);
	if (aio->op == FOLIAGE_AIO_PIN && !aio->result) {
		assert_memory_equal(aio->pin.data, w->model + aio->offset, aio->pin.bytes);
		foliage_file_unpin(w->file, &aio->pin);
	}
	if (aio->op == FOLIAGE_AIO_WRITE && !w->faulty)
		assert_int_equal(aio->result, aio->bytes);
}

static void called(struct foliage_aio *aio)
{
	struct slot *s = (struct slot *)aio;

	s->world->called++;
	complete(s);
}

/* The first half of the file is read; of the second, each slot has a part that it writes. */
static void prepare(struct world *w, struct slot *s, uint32_t i)
{
	uint64_t part = SIZE / 2 / DEPTH, start = SIZE / 2 + i * part;

	s->world = w;
	s->busy = true;
	s->aio = (struct foliage_aio){.file = w->file, .buffer = s->data};
	s->aio.done = splitmix64_below(&w->rng, 2) ? called : NULL;
	s->aio.bytes = 1 + splitmix64_below(&w->rng, BLOCK - 1);
	switch (splitmix64_below(&w->rng, 16)) {
	case 0:
		s->aio.op =
			splitmix64_below(&w->rng, 2) ? FOLIAGE_AIO_FSYNC : FOLIAGE_AIO_FDATASYNC;
		break;
	case 1 ... 4:
		s->aio.op = FOLIAGE_AIO_WRITE;
		s->aio.offset = start + splitmix64_below(&w->rng, (uint32_t)(part - BLOCK));
		for (size_t j = 0; j < s->aio.bytes; j++)
			s->data[j] = (char)splitmix64(&w->rng);
		memcpy(w->model + s->aio.offset, s->data, s->aio.bytes);
		break;
	case 5 ... 7:
		s->aio.op = FOLIAGE_AIO_PIN;
		s->aio.offset = splitmix64_below(&w->rng, SIZE / 2);
		break;
	default:
		s->aio.op = FOLIAGE_AIO_READ;
		s->aio.offset = splitmix64_below(&w->rng, SIZE / 2 - BLOCK);
	}
}

static void run(struct foliage_cache_options options, bool faulty, uint32_t total)
{
	struct slot *slots = calloc(DEPTH, sizeof(*slots));
	struct world w;
	uint32_t busy = 0;

	options.bytes = 1 << 20;
	setup(&w, options);
	w.faulty = faulty;
	for (uint32_t nr = 0; nr < total || busy;) {
		struct foliage_aio *batch[DEPTH], *done[5];
		uint64_t before = w.called;
		uint32_t n = 0;
		int got;

		for (uint32_t i = 0; i < DEPTH && nr < total; i++) {
			if (slots[i].busy || splitmix64_below(&w.rng, 3) == 0)
				continue;
			prepare(&w, &slots[i], i);
			batch[n++] = &slots[i].aio;
			nr++;
		}
		if (faulty && !splitmix64_below(&w.rng, 10))
			faults_arm(&w.faults, 1 + splitmix64_below(&w.rng, NR_FAULTS - 1), 3, 2,
				   HIT_READ);
		assert_int_equal(foliage_cache_submit(w.cache, batch, n), n);
		busy += n;
		got = foliage_cache_poll(w.cache, done, 5, nr < total ? 0 : -1);
		assert_true(got >= 0);
		busy -= (uint32_t)got;
		for (uint32_t i = 0; i < (uint32_t)got - (w.called - before); i++)
			complete((struct slot *)done[i]);
	}
	for (int i = 0; i < DEPTH; i++)
		assert_false(slots[i].busy);
	assert_int_equal(foliage_cache_poll(w.cache, NULL, 0, -1), 0);
	if (faulty)
		assert_true(w.errors > 0);
	faults_arm(&w.faults, FAULT_NONE, 0, 0, HIT_ALL);
	if (faulty) { /* writes that could not read their page have not happened */
		for (uint64_t at = 0; at < SIZE; at += BLOCK)
			foliage_file_read(w.file, w.model + at, MIN((uint64_t)BLOCK, SIZE - at),
					  at);
	}
	teardown(&w);
	free(slots);
}

static void test_ring(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.dirty_wake_ms = 5}, false, 4000);
	run((struct foliage_cache_options){.queue_depth = 1, .no_readahead = true}, false, 500);
}

static void test_calls(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.io = FOLIAGE_IO_SYNC}, false, 2000);
}

static void test_faults(void **state)
{
	(void)state;
	run((struct foliage_cache_options){.wait_ms = 1000}, true, 2000);
	run((struct foliage_cache_options){.io = FOLIAGE_IO_SYNC, .wait_ms = 1000}, true, 2000);
}

/* Bad requests are refused, the good ones before them taken. */
static void test_refused(void **state)
{
	struct foliage_aio good, bad, *both[2] = {&good, &bad}, *done[2];
	struct world w;
	char data[10];

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = 1 << 20});
	good = (struct foliage_aio){
		.file = w.file, .op = FOLIAGE_AIO_READ, .buffer = data, .bytes = 10};
	bad = good;
	bad.op = 99;
	assert_int_equal(foliage_cache_submit(w.cache, both, 2), 1);
	assert_int_equal(foliage_cache_submit(w.cache, both + 1, 1), -EINVAL);
	bad.op = FOLIAGE_AIO_WRITE;
	bad.offset = FOLIAGE_APPEND;
	assert_int_equal(foliage_cache_submit(w.cache, both + 1, 1), -EFBIG);
	assert_int_equal(foliage_cache_poll(w.cache, done, 2, -1), 1);
	assert_ptr_equal(done[0], &good);
	assert_int_equal(good.result, 10);
	/* At the end and beyond. */
	good.offset = SIZE - 4;
	assert_int_equal(foliage_cache_submit(w.cache, both, 1), 1);
	assert_int_equal(foliage_cache_poll(w.cache, done, 2, -1), 1);
	assert_int_equal(good.result, 4);
	good.offset = SIZE;
	good.op = FOLIAGE_AIO_PIN;
	assert_int_equal(foliage_cache_submit(w.cache, both, 1), 1);
	assert_int_equal(foliage_cache_poll(w.cache, done, 2, -1), 1);
	assert_int_equal(good.result, -ENODATA);
	teardown(&w);
}

/* A callback may submit its request again. */
static void again(struct foliage_aio *aio)
{
	struct slot *s = (struct slot *)aio;

	assert_int_equal(aio->result, 4096);
	assert_memory_equal(s->data, s->world->model + aio->offset, 4096);
	if (++s->world->called < 1000) {
		aio->offset = splitmix64_below(&s->world->rng, SIZE / 4096) * UINT64_C(4096);
		assert_int_equal(foliage_cache_submit(s->world->cache, &aio, 1), 1);
	}
}

static void test_again(void **state)
{
	struct slot *s = calloc(1, sizeof(*s));
	struct foliage_aio *aio = &s->aio;
	struct world w;

	(void)state;
	setup(&w, (struct foliage_cache_options){.bytes = 1 << 20});
	s->world = &w;
	*aio = (struct foliage_aio){
		.file = w.file, .buffer = s->data, .bytes = 4096, .done = again};
	assert_int_equal(foliage_cache_submit(w.cache, &aio, 1), 1);
	while (foliage_cache_poll(w.cache, NULL, 0, -1) > 0)
		;
	assert_int_equal(w.called, 1000);
	teardown(&w);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),   cmocka_unit_test(test_calls),
		cmocka_unit_test(test_faults), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
