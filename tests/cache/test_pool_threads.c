/* SPDX-License-Identifier: MIT
 *
 * Many threads on one pool: hits, misses, discards, truncation, rekeying, resizing, threads that
 * come and go. Every page that anybody gets has the contents of its name. At rest everything adds
 * up and nothing is left behind. Made for ThreadSanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cache/pool.h"
#include "mm/memcg.h"

enum { THREADS = 4, SHARED = 3, INDEXES = 2500, ROUNDS = 12000, RESIZE_EVERY = 50 };

struct shared {
	struct foliage_pool *pool;
	int kinds[SHARED + 1];
	_Atomic uint64_t wrong, created, hits, busy;
	atomic_bool stop;
};

struct worker {
	pthread_t id;
	struct shared *s;
	uint64_t rng, object; /* of its own, for rekeying */
};

static uint64_t contents(uint64_t object, uint64_t index)
{
	return object * 1000003 + index;
}

static void fill(const struct foliage_page *page)
{
	uint64_t value = contents(page->object, page->index);

	memcpy(page->data, &value, sizeof(value));
	memcpy((char *)page->data + 504, &value, sizeof(value));
}

static void check(struct shared *s, const struct foliage_page *page, uint64_t object,
		  uint64_t index)
{
	uint64_t value = contents(object, index), first, last;

	memcpy(&first, page->data, sizeof(first));
	memcpy(&last, (char *)page->data + 504, sizeof(last));
	s->wrong +=
		first != value || last != value || page->object != object || page->index != index;
}

static void access_page(struct worker *w)
{
	struct shared *s = w->s;
	uint64_t object = splitmix64_below(&w->rng, SHARED),
		 index = splitmix64_below(&w->rng, INDEXES);
	struct foliage_page *page;
	int rc;

	if (splitmix64_below(&w->rng, 2))
		index /= 16;
	rc = foliage_pool_fetch(s->pool, object, index, s->kinds[object],
				FOLIAGE_FETCH_CREATE |
					(splitmix64_below(&w->rng, 3) ? FOLIAGE_FETCH_LOCAL : 0),
				&page);
	if (rc == FOLIAGE_NEW) {
		fill(page);
		s->created++;
		if (!splitmix64_below(&w->rng, 16)) { /* the read failed */
			foliage_pool_unpin(s->pool, page, FOLIAGE_UNPIN_DISCARD);
			return;
		}
		if (splitmix64_below(&w->rng, 2))
			foliage_pool_ready(s->pool, page);
	} else if (rc == FOLIAGE_HIT) {
		s->hits++;
		check(s, page, object, index);
	} else {
		s->busy++;
		return;
	}
	check(s, page, object, index);
	foliage_pool_unpin(s->pool, page,
			   splitmix64_below(&w->rng, 64) ? 0 : FOLIAGE_UNPIN_DISCARD);
}

static void rename_page(struct worker *w)
{
	struct shared *s = w->s;
	uint64_t from = splitmix64_below(&w->rng, 50), to = splitmix64_below(&w->rng, 50);
	struct foliage_page *page;
	int rc = foliage_pool_fetch(s->pool, w->object, from, s->kinds[SHARED],
				    FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY |
					    (to % 2 ? FOLIAGE_FETCH_LOCAL : 0),
				    &page);

	if (rc < 0) {
		s->busy++;
		return;
	}
	if (rc == FOLIAGE_NEW)
		fill(page);
	check(s, page, w->object, from);
	if (foliage_pool_rekey(s->pool, &page, w->object, to))
		s->wrong++; /* nobody else knows the object */
	fill(page);
	foliage_pool_unpin(s->pool, page, 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t what = splitmix64_below(&w->rng, 1000);

		if (what < 950)
			access_page(w);
		else if (what < 980)
			rename_page(w);
		else if (what < 995)
			foliage_pool_discard(w->s->pool, what % SHARED,
					     splitmix64_below(&w->rng, INDEXES / 16));
		else if (what < 998)
			foliage_pool_truncate(w->s->pool, what % SHARED, INDEXES / 2, UINT64_MAX);
		else
			foliage_pool_shrink(w->s->pool, 1 << 18);
	}
	return NULL;
}

/* By the work done, not by the clock: on a busy machine it would leave the others nothing to hit. */
static void *resize(void *arg)
{
	struct shared *s = arg;

	for (uint64_t i = 0; !s->stop; i++) {
		foliage_pool_resize(s->pool, (3 + i % 4) << 20);
		for (uint64_t done = s->hits + s->created;
		     !s->stop && s->hits + s->created < done + RESIZE_EVERY;)
			sched_yield();
	}
	return NULL;
}

static void check_rest(struct shared *s)
{
	struct foliage_engine *e = s->pool->core->engine;
	struct foliage_pool_stats stats;
	struct err err = {{0}};

	engine_drain_all(e);
	if (e->ops->is_valid(e, &e->lruvecs[0], &err) || memcg_is_valid(e, &err))
		fail_msg("%s", err.text);
	foliage_pool_stats(s->pool, &stats);
	assert_int_equal(stats.pages, stats.created - stats.evicted - stats.discarded);
	for (uint64_t o = 0; o < SHARED + THREADS; o++)
		assert_true(foliage_pool_truncate(s->pool, o, 0, UINT64_MAX) >= 0);
	/* What was discarded while another thread's reclaim had it leaves when it is met. */
	foliage_pool_shrink(s->pool, UINT64_MAX);
	assert_int_equal(s->pool->core->used, 0);
	assert_int_equal(s->pool->core->frames.backed, 0);
	for (uint64_t i = 0; i < pool_slots(s->pool->core, s->pool->core->level); i++) {
		assert_int_equal(pool_slot(s->pool->core, i)->passed, 0);
		assert_int_equal(folio_flags(&pool_slot(s->pool->core, i)->folio) &
					 (F_PRESENT | F_PINS_MASK),
				 0);
	}
}

static void run(const char *policy)
{
	struct shared *s = calloc(1, sizeof(*s));
	struct worker workers[THREADS];
	struct foliage_pool_options options = {
		.bytes = 3 << 20, .max_bytes = 6 << 20, .policy = policy, .page_bytes = 2048};
	pthread_t resizer;
	char message[200];

	if (foliage_pool_create(&options, &s->pool, message, sizeof(message)))
		fail_msg("%s", message);
	for (int i = 0; i <= SHARED; i++)
		s->kinds[i] = foliage_pool_kind(s->pool, 512u << i, i == 1 ? 64 : 0);
	assert_int_equal(pthread_create(&resizer, NULL, resize, s), 0);
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < THREADS; i++) {
			workers[i] = (struct worker){.s = s, .rng = i + 1, .object = SHARED + i};
			assert_int_equal(pthread_create(&workers[i].id, NULL, work, &workers[i]),
					 0);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(workers[i].id, NULL);
	}
	s->stop = true;
	pthread_join(resizer, NULL);
	print_message("%s: %llu hits, %llu created, %llu without room\n", policy,
		      (unsigned long long)s->hits, (unsigned long long)s->created,
		      (unsigned long long)s->busy);
	assert_int_equal(s->wrong, 0);
	/* Both ways were gone often; how often is the scheduler's. */
	assert_true(s->hits > ROUNDS / 4 && s->created > ROUNDS / 4);
	check_rest(s);
	foliage_pool_destroy(s->pool);
	free(s);
}

static void test_fg(void **state)
{
	(void)state;
	run("fg");
}

static void test_mglru(void **state)
{
	(void)state;
	run("mglru");
}

static void test_clru(void **state)
{
	(void)state;
	run("clru");
}

static void test_fgw(void **state)
{
	(void)state;
	run("fgw");
}

/* One thread creates, the others wait until the page is filled, or are told to come back. */
struct filling {
	struct foliage_pool *pool;
	int kind;
	_Atomic int waited;
};

static void *wait_filled(void *arg)
{
	struct filling *f = arg;
	struct foliage_page *page;

	if (foliage_pool_fetch(f->pool, 1, 1, f->kind, FOLIAGE_FETCH_NOWAIT, &page) != -EAGAIN)
		return NULL;
	f->waited++;
	if (foliage_pool_fetch(f->pool, 1, 1, f->kind, 0, &page) != FOLIAGE_HIT)
		return NULL;
	if (!memcmp(page->data, "filled", 6))
		f->waited++;
	foliage_pool_unpin(f->pool, page, 0);
	return NULL;
}

static void test_filling(void **state)
{
	struct foliage_pool_options options = {.bytes = 4 << 20};
	struct filling f = {0};
	struct foliage_page *page;
	pthread_t threads[2];

	(void)state;
	assert_int_equal(foliage_pool_create(&options, &f.pool, NULL, 0), 0);
	f.kind = foliage_pool_kind(f.pool, 4096, 0);
	assert_int_equal(foliage_pool_fetch(f.pool, 1, 1, f.kind, FOLIAGE_FETCH_CREATE, &page),
			 FOLIAGE_NEW);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_filled, &f), 0);
	while (f.waited < 2)
		sched_yield();
	memcpy(page->data, "filled", 6);
	foliage_pool_unpin(f.pool, page, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(f.waited, 4);
	foliage_pool_destroy(f.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fg),      cmocka_unit_test(test_mglru),
		cmocka_unit_test(test_clru),    cmocka_unit_test(test_fgw),
		cmocka_unit_test(test_filling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
