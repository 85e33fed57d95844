/* SPDX-License-Identifier: MIT
 *
 * Memory stays within the budget while everything happens at once: threads fetch pages of all sizes in
 * three groups, hold some of them, discard, rename and truncate, and the budget shrinks and grows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "foliage/group.h"
#include "support_rss.h"

enum { MIB = 1 << 20, THREADS = 4, HELD = 6, STEPS = 40000, NUMBERS = 60000 };

static const uint32_t sizes[] = {4096, 512, 65536, 1024, 8192, 2048, 32768, 16384};

struct mix {
	struct foliage_pool *pool;
	struct foliage_group *groups[3];
	int kinds[ARRAY_SIZE(sizes)];
	_Atomic int running;
};

struct worker {
	pthread_t id;
	struct mix *mix;
	uint64_t rng, fetched, refused, wrong;
	struct foliage_page *held[HELD];
};

static void let_go(struct worker *w, size_t i, unsigned int flags)
{
	if (w->held[i])
		foliage_pool_unpin(w->mix->pool, w->held[i], flags);
	w->held[i] = NULL;
}

static void fetch(struct worker *w)
{
	struct mix *m = w->mix;
	size_t k = splitmix64_below(&w->rng, ARRAY_SIZE(sizes)),
	       i = splitmix64_below(&w->rng, HELD);
	uint64_t number = splitmix64_below(&w->rng, NUMBERS);
	struct foliage_page *page;
	int r = foliage_group_fetch(m->groups[splitmix64_below(&w->rng, ARRAY_SIZE(m->groups))],
				    m->pool, k, number, m->kinds[k], FOLIAGE_FETCH_CREATE, &page);

	if (r == -ENOBUFS) {
		w->refused++;
		return;
	}
	if (r < 0) {
		w->wrong++;
		return;
	}
	w->fetched++;
	if (r == FOLIAGE_NEW) {
		memset(page->data, (int)k + 1, sizes[k]);
		foliage_pool_ready(m->pool, page);
	}
	w->wrong += ((const char *)page->data)[sizes[k] - 1] != (char)(k + 1);
	let_go(w, i, splitmix64_below(&w->rng, 20) ? 0 : FOLIAGE_UNPIN_DISCARD);
	w->held[i] = page;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int step = 0; step < STEPS; step++) {
		fetch(w);
		if (splitmix64_below(&w->rng, 2000) == 0) {
			uint64_t first = splitmix64_below(&w->rng, NUMBERS);

			foliage_pool_truncate(w->mix->pool,
					      splitmix64_below(&w->rng, ARRAY_SIZE(sizes)), first,
					      first + 200);
		}
	}
	for (size_t i = 0; i < HELD; i++)
		let_go(w, i, 0);
	atomic_fetch_sub(&w->mix->running, 1);
	return NULL;
}

static void start(struct mix *m, uint64_t budget)
{
	const struct foliage_pool_options options = {.bytes = budget, .max_groups = 3};
	static const char *const names[] = {"a", "b", "c"};
	char message[200];

	if (foliage_pool_create(&options, &m->pool, message, sizeof(message)))
		fail_msg("%s", message);
	for (size_t i = 0; i < ARRAY_SIZE(m->groups); i++)
		assert_int_equal(
			foliage_group_create(foliage_pool_group(m->pool), names[i], &m->groups[i]),
			0);
	assert_int_equal(foliage_group_set(m->groups[0], FOLIAGE_GROUP_LOW, 8 * MIB), 0);
	assert_int_equal(foliage_group_set(m->groups[1], FOLIAGE_GROUP_MAX, 12 * MIB), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		m->kinds[i] = foliage_pool_kind(m->pool, sizes[i], i % 2 ? 160 : 0);
}

static void everything_at_once(void **state)
{
	const uint64_t budget = 64 * MIB;
	struct mix m = {0};
	struct worker workers[THREADS] = {0};
	struct foliage_pool_stats stats;
	uint64_t before = rss_bytes(), most = 0, fetched = 0, refused = 0;
	unsigned int resized = 0;

	(void)state;
	start(&m, budget);
	m.running = THREADS;
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i].mix = &m;
		workers[i].rng = i + 1;
		assert_int_equal(pthread_create(&workers[i].id, NULL, work, &workers[i]), 0);
	}
	while (atomic_load(&m.running)) {
		int r = foliage_pool_resize(m.pool, resized++ % 2 ? budget : budget * 3 / 4);

		assert_true(r == 0 || r == -EBUSY);
		for (int i = 0; i < 20; i++) {
			most = MAX(most, rss_bytes() - before);
			usleep(1000);
		}
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].id, NULL);
		assert_int_equal(workers[i].wrong, 0);
		fetched += workers[i].fetched;
		refused += workers[i].refused;
	}
	foliage_pool_stats(m.pool, &stats);
	print_message(
		"budget %u KiB, most resident %llu KiB; %llu fetches, %llu refused, %llu evicted, "
		"%u resizes, %llu slabs moved\n",
		(unsigned int)(budget / 1024), (unsigned long long)most / 1024,
		(unsigned long long)fetched, (unsigned long long)refused,
		(unsigned long long)stats.evicted, resized, (unsigned long long)stats.slab_moves);
	assert_true(fetched > THREADS * STEPS * 9 / 10);
	assert_true(stats.evicted > THREADS * STEPS / 4);
	assert_true(resized > 4);
	/* Nothing is held any more: a smaller budget is kept at once. */
	assert_int_equal(foliage_pool_resize(m.pool, budget / 2), 0);
	foliage_pool_stats(m.pool, &stats);
	assert_true(stats.metadata_bytes + stats.frame_bytes <= budget / 2);
	before = MIN(before, rss_bytes());
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("SKIP: what is resident is the sanitizer's\n");
#else
	assert_true(rss_bytes() - before <= budget / 2 + budget / 100 + 8 * MIB);
	assert_true(most <= budget + budget / 50 + 8 * MIB);
	assert_true(most >= budget / 2); /* and it uses what it may */
#endif
	foliage_pool_destroy(m.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(everything_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
