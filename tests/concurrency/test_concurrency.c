/* SPDX-License-Identifier: MIT
 *
 * Many threads on one engine: hits, insertions, removals, reclaim, aging, groups that come and go,
 * all at once; then, at rest, every counter agrees with the folios, no generation is outside its
 * window, and everything can be reclaimed. Made for ThreadSanitizer, and worth running without it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "mm/engine_policy.h"
#include "mm/gen.h"
#include "mm/memcg.h"

enum {
	PAGES = 3000,
	ROOM = 1200,
	GROUPS = 6,
	NODES = 2,
	HITTERS = 2,
	FILLERS = 2,
	THREADS = HITTERS + FILLERS + 2
};

/* Who has the right to a page number. */
enum page_state { PAGE_FREE, PAGE_BUSY, PAGE_IN, PAGE_LEAVING, PAGE_GONE };

struct shared {
	struct foliage_engine *e;
	_Atomic int state[PAGES];
	_Atomic uint64_t shadow[PAGES];
	_Atomic uint64_t clock;
	_Atomic uint64_t evicted, hits, added;
	atomic_bool stop;
};

struct thread {
	pthread_t id;
	struct shared *s;
	struct foliage_cpu cpu;
	uint64_t rng;
};

static uint32_t below(struct thread *t, uint32_t n)
{
	return splitmix64_below(&t->rng, n);
}

/* ---- the world ---- */

static bool claim(struct shared *s, uint32_t page, int from, int to)
{
	return atomic_compare_exchange_strong(&s->state[page], &from, to);
}

/* Who is adding or removing the page at the moment gives its number back. */
static void cb_evict(void *ctx, foliage_folio id, uint64_t shadow)
{
	struct shared *s = ctx;

	s->evicted++;
	s->shadow[id] = shadow;
	if (!claim(s, (uint32_t)id, PAGE_LEAVING, PAGE_GONE) &&
	    !claim(s, (uint32_t)id, PAGE_BUSY, PAGE_GONE))
		s->state[id] = PAGE_FREE;
}

static uint64_t cb_now_ms(void *ctx)
{
	return ((struct shared *)ctx)->clock++;
}

static bool cb_add_to_swap(void *ctx, foliage_folio id)
{
	(void)ctx;
	(void)id;
	return true;
}

static int64_t cb_swap_free(void *ctx, uint32_t memcg)
{
	(void)ctx;
	(void)memcg;
	return 1 << 20;
}

static enum foliage_pageout cb_pageout(void *ctx, foliage_folio id)
{
	(void)ctx;
	(void)id;
	return FOLIAGE_PAGEOUT_CLEAN;
}

static struct shared *shared_new(const char *policy)
{
	static const struct foliage_backend backend = {
		.evict = cb_evict,
		.now_ms = cb_now_ms,
		.add_to_swap = cb_add_to_swap,
		.swap_free = cb_swap_free,
		.pageout = cb_pageout,
	};
	struct shared *s = calloc(1, sizeof(*s));
	struct foliage_engine_options options = {
		.policy = policy,
		.nr_folios = PAGES,
		.max_memcgs = GROUPS,
		.nr_nodes = NODES,
		.seed = 7,
		.backend = &backend,
		.ctx = s,
	};
	char message[200] = "";

	if (foliage_engine_create(&options, &s->e, message, sizeof(message)))
		fail_msg("%s", message);
	assert_int_equal(foliage_memcg_set(s->e, 0, FOLIAGE_MAX, ROOM), 0);
	for (int i = 1; i <= 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "g%d", i);
		assert_int_equal(foliage_memcg_create(s->e, i == 3 ? 1 : 0, name), i);
	}
	return s;
}

static void shared_free(struct shared *s)
{
	foliage_engine_destroy(s->e);
	free(s);
}

/* ---- what threads do ---- */

static void *hitter(void *arg)
{
	struct thread *t = arg;

	while (!t->s->stop) {
		for (int i = 0; i < 64; i++)
			foliage_folio_mark_accessed(
				t->s->e, &t->cpu,
				(foliage_folio)below(t, below(t, 2) ? PAGES : PAGES / 10));
		t->s->hits += 64;
	}
	return NULL;
}

static void bring_in(struct thread *t, uint32_t page)
{
	struct shared *s = t->s;
	uint32_t memcg = below(t, GROUPS), flags = below(t, 4) ? 0 : FOLIAGE_FOLIO_ANON,
		 order = below(t, 16) ? 0 : 2;
	int err;

	t->cpu.in_lru_fault = below(t, 2);
	err = foliage_folio_add(s->e, &t->cpu, (foliage_folio)page, memcg, below(t, NODES), 0,
				order, flags, s->shadow[page]);
	s->added += !err; /* -EINVAL: a slot without a group */
	/* It may have been evicted before foliage_folio_add() returned. */
	if (err || !claim(s, page, PAGE_BUSY, PAGE_IN))
		s->state[page] = PAGE_FREE;
}

static void take_out(struct thread *t, uint32_t page)
{
	/* Failed: it is in a reclaimer's hands, who will tell, or who has told already. */
	if (foliage_folio_remove(t->s->e, &t->cpu, (foliage_folio)page) &&
	    claim(t->s, page, PAGE_LEAVING, PAGE_IN))
		return;
	t->s->state[page] = PAGE_FREE;
}

static void *filler(void *arg)
{
	struct thread *t = arg;

	while (!t->s->stop) {
		uint32_t page = below(t, PAGES);

		if (claim(t->s, page, PAGE_FREE, PAGE_BUSY)) {
			foliage_memcg_make_room(t->s->e, &t->cpu, 0, 4, false);
			bring_in(t, page);
		} else if (below(t, 16) == 0 && claim(t->s, page, PAGE_IN, PAGE_LEAVING)) {
			take_out(t, page);
		} else if (below(t, 16) == 0) {
			foliage_folio_set_dirty(t->s->e, (foliage_folio)page);
			foliage_folio_clear_dirty(t->s->e, (foliage_folio)page);
		}
	}
	return NULL;
}

static void *ager(void *arg)
{
	struct thread *t = arg;

	while (!t->s->stop) {
		uint32_t node = below(t, NODES), memcg = below(t, GROUPS);
		struct foliage_reclaim_request request = {
			.memcg = 0, .node = node, .swappiness = -1, .proactive = true};
		unsigned int session = memcg_enter(t->s->e);
		char text[64] = "", *dump = NULL;

		if (t->s->e->memcgs[memcg].used)
			snprintf(text, sizeof(text), "+ %u %u %llu 60 1", t->s->e->memcgs[memcg].id,
				 node,
				 (unsigned long long)gen_max_seq(lruvec_of(t->s->e, memcg, node)));
		memcg_leave(t->s->e, session);
		foliage_lru_gen_write(t->s->e, &t->cpu, text);
		if (below(t, 4) == 0)
			foliage_reclaim(t->s->e, &t->cpu, &request);
		if (below(t, 16) == 0 &&
		    foliage_text(t->s->e, below(t, 2) ? "lru_gen_full" : "memory.stat", &dump) == 0)
			free(dump);
	}
	return NULL;
}

static void *gardener(void *arg)
{
	struct thread *t = arg;
	unsigned int nr = 0;

	while (!t->s->stop) {
		const struct timespec pause = {0, 1000000};
		char name[16];

		snprintf(name, sizeof(name), "n%u", nr++);
		foliage_memcg_create(t->s->e, below(t, GROUPS), name);
		nanosleep(&pause, NULL);
		foliage_memcg_remove(t->s->e, &t->cpu, 1 + below(t, GROUPS - 1));
		foliage_memcg_set(t->s->e, 1 + below(t, GROUPS - 1), FOLIAGE_LOW, below(t, 300));
	}
	return NULL;
}

/* ---- at rest ---- */

static void check(struct shared *s)
{
	struct foliage_engine *e = s->e;
	struct err err = {{0}};
	uint64_t pages = 0, in = 0;

	for (uint32_t i = 0; i < GROUPS * NODES; i++) {
		struct lruvec *lv = &e->lruvecs[i];

		if (!e->memcgs[i / NODES].used)
			continue;
		if (e->ops->is_valid(e, lv, &err))
			fail_msg("%s: %s", e->policy->name, err.text);
		pages += e->ops->size(e, lv, TYPE_ANON) + e->ops->size(e, lv, TYPE_FILE);
	}
	if (memcg_is_valid(e, &err))
		fail_msg("%s: %s", e->policy->name, err.text);
	assert_int_equal(pages, foliage_memcg_usage(e, 0));
	for (uint32_t i = 0; i < PAGES; i++) {
		assert_int_equal(s->state[i] == PAGE_IN,
				 foliage_folio_present(e, (foliage_folio)i));
		if (s->state[i] == PAGE_IN)
			in += (uint64_t)flags_nr(folio_flags(folio_at(e, (folio_id)i)));
	}
	assert_int_equal(in, pages);
}

/* Nothing leaks: limits and protection gone, all of it can be reclaimed. */
static void drain_everything(struct shared *s, struct foliage_cpu *cpu)
{
	for (uint32_t i = 1; i < GROUPS; i++)
		foliage_memcg_set(s->e, i, FOLIAGE_LOW, 0);
	for (int i = 0; i < 2000 && foliage_memcg_usage(s->e, 0); i++) {
		struct foliage_reclaim_request request = {.node = (uint32_t)i % NODES,
							  .nr = 512,
							  .swappiness = 100,
							  .memcg_limit = true};

		foliage_flush_stats(s->e);
		foliage_reclaim(s->e, cpu, &request);
	}
	assert_int_equal(foliage_memcg_usage(s->e, 0), 0);
	for (uint32_t i = 0; i < PAGES; i++)
		assert_int_equal(s->state[i], PAGE_FREE);
	check(s);
}

static void mayhem(const char *policy)
{
	static void *(*const job[THREADS])(void *) = {hitter, hitter, filler,
						      filler, ager,   gardener};
	const char *ms = getenv("FOLIAGE_MS");
	long duration = ms ? atol(ms) : 700;
	const struct timespec pause = {duration / 1000, duration % 1000 * 1000000};
	struct shared *s = shared_new(policy);
	struct thread threads[THREADS] = {0};
	struct foliage_cpu cpu = {0};

	for (int i = 0; i < THREADS; i++) {
		threads[i].s = s;
		threads[i].rng = (uint64_t)i * 1000;
		assert_int_equal(pthread_create(&threads[i].id, NULL, job[i], &threads[i]), 0);
	}
	nanosleep(&pause, NULL);
	s->stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	for (int i = 0; i < THREADS; i++)
		foliage_cpu_exit(s->e, &threads[i].cpu);
	assert_true(s->hits > 0);
	assert_true(s->evicted > 0);
	assert_true(s->added > s->evicted);
	check(s);
	drain_everything(s, &cpu);
	foliage_cpu_exit(s->e, &cpu);
	shared_free(s);
}

static void test_mayhem_fg(void **state)
{
	(void)state;
	mayhem("fg");
}

static void test_mayhem_fgw(void **state)
{
	(void)state;
	mayhem("fgw");
}

static void test_mayhem_mglru(void **state)
{
	(void)state;
	mayhem("mglru");
}

static void test_mayhem_mglru_612(void **state)
{
	(void)state;
	mayhem("mglru-6.12");
}

static void test_mayhem_clru(void **state)
{
	(void)state;
	mayhem("clru");
}

static void test_mayhem_clru_612(void **state)
{
	(void)state;
	mayhem("clru-6.12");
}

/* ---- a hit takes no lock ---- */

struct hits {
	struct shared *s;
	struct foliage_cpu cpu;
	unsigned int marks; /* of each page */
};

static void *hit_all(void *arg)
{
	struct hits *h = arg;

	for (unsigned int n = 0; n < h->marks; n++)
		for (foliage_folio i = 0; i < 1000; i++)
			foliage_folio_mark_accessed(h->s->e, &h->cpu, i);
	return NULL;
}

static void hold_everything(struct foliage_engine *e, bool hold)
{
	int (*const act)(pthread_mutex_t *) = hold ? pthread_mutex_lock : pthread_mutex_unlock;

	act(&e->tree_lock);
	for (uint32_t i = 0; i < NODES; i++)
		act(&e->nodes[i].memcg_lru_lock);
	for (uint32_t i = 0; i < e->nr_memcgs * NODES; i++)
		if (e->memcgs[i / NODES].used)
			act(&e->lruvecs[i].lock);
}

/* Every lock of the engine is held here while another thread makes `marks` hits of each of 1000
 * pages. */
static void hits_under_locks(const char *policy, unsigned int marks)
{
	struct shared *s = shared_new(policy);
	struct foliage_cpu cpu = {.batch = 1};
	struct hits hits = {.s = s, .marks = marks};
	struct timespec until;
	pthread_t thread;
	int done;

	for (foliage_folio i = 0; i < 1000; i++) {
		assert_int_equal(foliage_folio_add(s->e, &cpu, i, (uint32_t)i % 4, 0, 0, 0, 0, 0),
				 0);
		s->state[i] = PAGE_IN;
	}
	/* The thread's cpu is registered beforehand: that happens once, not on hits. */
	foliage_cpu_drain(s->e, &hits.cpu);
	hold_everything(s->e, true);
	assert_int_equal(pthread_create(&thread, NULL, hit_all, &hits), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	done = pthread_timedjoin_np(thread, NULL, &until);
	hold_everything(s->e, false);
	if (done) {
		pthread_join(thread, NULL);
		fail_msg("%s: a hit waits for a lock", policy);
	}
	foliage_cpu_exit(s->e, &hits.cpu);
	foliage_cpu_exit(s->e, &cpu);
	check(s);
	shared_free(s);
}

static void test_hits_take_no_lock(void **state)
{
	(void)state;
	/* Up and over all generations. */
	hits_under_locks("fg", 100);
	hits_under_locks("fg:tail_mode=min", 100);
	hits_under_locks("fgw", 100);
	hits_under_locks("mglru", 20);
	hits_under_locks("mglru-6.12", 20);
	/* The classic LRU moves a folio at its second access: through the activate batch, which
	 * takes the lock when it is full. Its first access does not. */
	hits_under_locks("clru", 1);
	hits_under_locks("clru-6.12", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hits_take_no_lock), cmocka_unit_test(test_mayhem_fg),
		cmocka_unit_test(test_mayhem_fgw),        cmocka_unit_test(test_mayhem_mglru),
		cmocka_unit_test(test_mayhem_mglru_612),  cmocka_unit_test(test_mayhem_clru),
		cmocka_unit_test(test_mayhem_clru_612),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
