/* SPDX-License-Identifier: MIT
 *
 * Several walkers share one walk (B.9), and walks run beside everything else: touching, fd
 * accesses, eviction with its look-around, processes that come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "base/rng.h"
#include "tests/support/world.h"

enum { NR_MMS = 200, PAGES = 16, ROOM = 4096 };

static void make_processes(struct world *w, uint32_t mm[NR_MMS])
{
	for (uint32_t i = 0; i < NR_MMS; i++) {
		mm[i] = world_mm(w, 0);
		world_vma(w, mm[i], 0, 512, 0);
		for (uint32_t j = 0; j < PAGES; j++) {
			world_add(w, i * PAGES + j, 0);
			world_map(w, mm[i], j, i * PAGES + j);
			world_touch(w, mm[i], j, false);
		}
	}
}

/* ---- one walk, two walkers ---- */

struct inner {
	bool won, ran;
};

/* Where a walker lets others in, another reclaimer of the simulated machine starts the same walk.
 */
static void walk_inside(struct world *w)
{
	struct inner *inner = w->test;
	struct scan_control sc;

	if (inner->ran)
		return;
	inner->ran = true;
	world_scan_control(w, &sc);
	inner->won = walk_mms(w->e, world_lruvec(w, 0, 0), &sc, 3, 60, false);
}

static void test_nested_walkers_share(void **unused)
{
	const struct world_options options = {.policy = "mglru-6.12", .nr_folios = ROOM};
	struct world *w = world_new(&options);
	struct inner inner = {0};
	struct scan_control sc;
	uint32_t mm[NR_MMS];

	(void)unused;
	make_processes(w, mm);
	world_scan_control(w, &sc);
	w->test = &inner;
	w->on_yield = walk_inside;
	/* The inner one takes all but the first, and is the one that finishes. */
	assert_false(walk_mms(w->e, world_lruvec(w, 0, 0), &sc, 3, 60, false));
	assert_true(inner.won);
	assert_int_equal(w->nr_mm_locks, NR_MMS);
	for (uint32_t page = 0; page < NR_MMS * PAGES; page++)
		assert_int_equal(world_seq(w, page), 3);
	world_check(w);
	world_free(w);
}

struct walker {
	struct world *w;
	pthread_barrier_t *start;
	bool won;
};

static void *walk_thread(void *arg)
{
	struct walker *walker = arg;
	struct world *w = walker->w;
	struct foliage_cpu cpu = {.batch = 1};
	struct scan_control sc;

	world_scan_control(w, &sc);
	sc.cpu = &cpu;
	pthread_barrier_wait(walker->start);
	walker->won = walk_mms(w->e, world_lruvec(w, 0, 0), &sc, 3, 60, false);
	return NULL;
}

static void test_threads_share(void **unused)
{
	(void)unused;
	for (int round = 0; round < 10; round++) {
		const struct world_options options = {
			.policy = "mglru-6.12", .nr_folios = ROOM, .threads = true};
		struct world *w = world_new(&options);
		struct walker walkers[3];
		pthread_t threads[3];
		pthread_barrier_t start;
		uint32_t mm[NR_MMS];
		uint64_t stats[4];
		int won = 0;

		make_processes(w, mm);
		pthread_barrier_init(&start, NULL, 3);
		for (int i = 0; i < 3; i++) {
			walkers[i] = (struct walker){w, &start, false};
			pthread_create(&threads[i], NULL, walk_thread, &walkers[i]);
		}
		for (int i = 0; i < 3; i++) {
			pthread_join(threads[i], NULL);
			won += walkers[i].won;
		}
		pthread_barrier_destroy(&start);
		/* One finished it, each process was visited once, every page was found. */
		assert_int_equal(won, 1);
		assert_int_equal(w->nr_mm_locks, NR_MMS);
		walk_stats(w->e, world_lruvec(w, 0, 0), 3, stats);
		assert_int_equal(stats[1], NR_MMS * PAGES);
		for (uint32_t page = 0; page < NR_MMS * PAGES; page++)
			assert_int_equal(world_seq(w, page), 3);
		world_check(w);
		world_free(w);
	}
}

/* ---- a walk beside everything else ---- */

struct chaos {
	struct world *w;
	uint32_t mm; /* maps all pages */
	atomic_bool stop;
};

static void *toucher(void *arg)
{
	struct chaos *c = arg;
	struct foliage_cpu cpu = {.batch = 1};
	uint64_t rng = 7;

	while (!atomic_load(&c->stop)) {
		uint32_t page = splitmix64_below(&rng, splitmix64_below(&rng, ROOM) + 1);

		world_try_touch(c->w, c->mm, page, page % 16 == 0);
		if (page % 3 == 0)
			foliage_folio_mark_accessed(c->w->e, &cpu, (foliage_folio)page);
	}
	foliage_cpu_exit(c->w->e, &cpu);
	return NULL;
}

static void *ager(void *arg)
{
	struct chaos *c = arg;
	struct lruvec *lv = world_lruvec(c->w, 0, 0);
	struct foliage_cpu cpu = {.batch = 1};
	struct scan_control sc;

	world_scan_control(c->w, &sc);
	sc.cpu = &cpu;
	for (int i = 0; !atomic_load(&c->stop); i++)
		gen_try_inc_max_seq(c->w->e, lv, &sc, gen_max_seq(lv), 60, i % 4 == 0);
	foliage_cpu_exit(c->w->e, &cpu);
	return NULL;
}

static void *forker(void *arg)
{
	struct chaos *c = arg;

	while (!atomic_load(&c->stop)) {
		uint32_t mm = world_mm(c->w, 0);

		world_vma(c->w, mm, 0, 512, 0);
		foliage_mm_ran(c->w->e, mm);
		foliage_mm_ran(c->w->e, c->mm);
		sched_yield();
		world_mm_exit(c->w, mm);
	}
	return NULL;
}

/* The first thread: pages come in, are mapped, and are reclaimed. */
static void fault_and_reclaim(struct chaos *c, unsigned int rounds)
{
	struct world *w = c->w;
	uint64_t rng = 3;

	while (rounds--) {
		for (int i = 0; i < 32; i++) {
			uint32_t page = splitmix64_below(&rng, ROOM);

			if (world_present(w, page))
				continue;
			w->cpu.in_lru_fault = true;
			world_add(w, page, 0);
			w->cpu.in_lru_fault = false;
			world_map(w, c->mm, page, page);
			world_touch(w, c->mm, page, false);
		}
		world_reclaim(w, 0, 32);
		/* The flusher. */
		for (uint32_t i = 0; i < 256; i++)
			foliage_folio_clear_dirty(w->e,
						  (foliage_folio)splitmix64_below(&rng, ROOM));
	}
}

static void run_chaos(const char *policy)
{
	const struct world_options options = {.policy = policy, .nr_folios = ROOM, .threads = true};
	struct chaos c = {.w = world_new(&options)};
	void *(*const bodies[])(void *) = {toucher, ager, forker};
	pthread_t threads[ARRAY_SIZE(bodies)];
	struct world *w = c.w;

	c.mm = world_mm(w, 0);
	world_vma(w, c.mm, 0, ROOM, 0);
	for (uint32_t page = 0; page < ROOM; page++) {
		world_add(w, page, 0);
		world_map(w, c.mm, page, page);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		pthread_create(&threads[i], NULL, bodies[i], &c);
	fault_and_reclaim(&c, 300);
	atomic_store(&c.stop, true);
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		pthread_join(threads[i], NULL);
	world_drain(w);
	world_check(w);
	assert_true(w->nr_evicted > 0);
	assert_int_equal(w->mm_locked, 0);
	assert_int_equal(w->e->memcgs[0].nr_mms, 1);
	for (uint32_t page = 0; page < ROOM; page++)
		assert_true(world_present(w, page) || !world_mapped(w, c.mm, page));
	world_free(w);
}

static void test_chaos(void **unused)
{
	static const char *const policies[] = {"mglru", "mglru-6.12", "fg"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_chaos(policies[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_walkers_share),
		cmocka_unit_test(test_threads_share),
		cmocka_unit_test(test_chaos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
