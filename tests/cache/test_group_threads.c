/* SPDX-License-Identifier: MIT
 *
 * Threads that bring pages into groups while another changes limits, creates and removes groups and
 * reads statistics. Every page has the contents of its name; at rest what the groups have adds up to
 * what the pool has. Made for ThreadSanitizer.
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
#include <string.h>

#include "base/rng.h"
#include "cache/group.h"

enum { THREADS = 3, GROUPS = 3, ROUNDS = 6000, INDEXES = 1500, PAGE = 4096 };

struct shared {
	struct foliage_pool *pool;
	int kind;
	struct foliage_group *groups[GROUPS]; /* of one parent; the last one comes and goes */
	struct foliage_group *parent;
	pthread_rwlock_t lock; /* of groups[GROUPS - 1] */
	_Atomic uint64_t wrong, made, refused, changes;
	atomic_bool stop;
};

struct worker {
	pthread_t id;
	struct shared *s;
	uint64_t rng;
};

static void use(struct shared *s, struct foliage_pool *pool, struct foliage_group *g,
		uint64_t object, uint64_t index)
{
	uint64_t value = object * 1000003 + index, is;
	struct foliage_page *page;
	int rc = foliage_group_fetch(g, pool, object, index, s->kind,
				     FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT, &page);

	if (rc == FOLIAGE_NEW) {
		memcpy(page->data, &value, sizeof(value));
		s->made++;
	} else if (rc == FOLIAGE_HIT) {
		memcpy(&is, page->data, sizeof(is));
		s->wrong += is != value;
	} else {
		s->refused++;
		s->wrong += rc != -ENOBUFS && rc != -EAGAIN;
		return;
	}
	foliage_pool_unpin(pool, page, 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t which = splitmix64_below(&w->rng, GROUPS);
		struct foliage_group *g;

		pthread_rwlock_rdlock(&s->lock);
		g = s->groups[which];
		foliage_group_hold(g);
		pthread_rwlock_unlock(&s->lock);
		for (int j = 0; j < 4; j++)
			use(s, s->pool, g, which, splitmix64_below(&w->rng, INDEXES));
		foliage_group_release(g);
	}
	return NULL;
}

/* A pool of its own in a group, again and again. */
static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->s;

	while (!s->stop) {
		struct foliage_pool *pool;

		if (foliage_group_pool(s->groups[0], NULL, &pool)) {
			s->wrong++;
			break;
		}
		for (uint64_t j = 0; j < 200; j++)
			use(s, pool, s->groups[j % 2], 7, j);
		foliage_pool_destroy(pool);
	}
	return NULL;
}

static void replace_group(struct shared *s)
{
	struct foliage_group *g;
	int rc;

	pthread_rwlock_wrlock(&s->lock);
	if (foliage_group_remove(s->groups[GROUPS - 1]))
		s->wrong++;
	/* Whoever reclaims for long on a busy machine keeps places from being free. */
	while ((rc = foliage_group_create(s->parent, "guest", &g)) == -ENOSPC)
		sched_yield();
	if (rc)
		abort();
	s->groups[GROUPS - 1] = g;
	pthread_rwlock_unlock(&s->lock);
}

static void *change(void *arg)
{
	static const enum foliage_group_limit limits[] = {FOLIAGE_GROUP_MIN, FOLIAGE_GROUP_LOW,
							  FOLIAGE_GROUP_HIGH, FOLIAGE_GROUP_MAX};
	struct worker *w = arg;
	struct shared *s = w->s;

	while (!s->stop) {
		enum foliage_group_limit limit = limits[splitmix64_below(&w->rng, 4)];
		uint64_t pages = 50 + splitmix64_below(&w->rng, 400);
		struct foliage_group *g = splitmix64_below(&w->rng, 4)
						  ? s->groups[splitmix64_below(&w->rng, GROUPS)]
						  : s->parent;
		struct foliage_group_stats stats;
		char *text;
		int rc = foliage_group_set(
			g, limit, splitmix64_below(&w->rng, 3) ? pages * PAGE : UINT64_MAX);

		s->wrong += rc && rc != -EBUSY;
		s->wrong += foliage_group_stats(g, &stats) != 0;
		if (foliage_group_text(g, "memory.stat", &text))
			s->wrong++;
		else
			free(text);
		if (!splitmix64_below(&w->rng, 8))
			replace_group(s);
		s->changes++;
		sched_yield();
	}
	return NULL;
}

static void check_rest(struct shared *s)
{
	struct foliage_engine *e = s->pool->core->engine;
	struct foliage_pool_stats stats;
	struct err err = {{0}};
	int64_t sum = 0;

	engine_drain_all(e);
	for (uint32_t i = 0; i < e->nr_memcgs; i++)
		if (e->memcgs[i].used && !e->lruvecs[i].dying &&
		    e->ops->is_valid(e, &e->lruvecs[i], &err))
			fail_msg("%s", err.text);
	if (memcg_is_valid(e, &err))
		fail_msg("%s", err.text);
	foliage_pool_stats(s->pool, &stats);
	for (int i = 0; i < GROUPS; i++)
		sum += foliage_group_current(s->groups[i]);
	assert_true(sum <= foliage_group_current(s->parent)); /* it has what removed ones had */
	assert_int_equal(foliage_group_current(s->parent), stats.page_bytes);
	for (int i = 0; i <= GROUPS; i++) {
		struct foliage_group *g = i < GROUPS ? s->groups[i] : s->parent;

		foliage_group_set(g, FOLIAGE_GROUP_MIN, 0);
		foliage_group_set(g, FOLIAGE_GROUP_LOW, 0);
	}
	assert_int_equal(foliage_group_set(s->parent, FOLIAGE_GROUP_MAX, 0), 0);
	assert_int_equal(foliage_group_current(s->parent), 0);
	assert_int_equal(s->pool->core->used, 0);
}

static void run(const char *policy)
{
	struct foliage_pool_options options = {.bytes = 4 << 20, .max_groups = 6, .policy = policy};
	struct shared *s = calloc(1, sizeof(*s));
	struct worker workers[THREADS + 2];

	assert_int_equal(foliage_pool_create(&options, &s->pool, NULL, 0), 0);
	s->kind = foliage_pool_kind(s->pool, PAGE, 0);
	pthread_rwlock_init(&s->lock, NULL);
	assert_int_equal(foliage_group_create(foliage_pool_group(s->pool), "p", &s->parent), 0);
	for (int i = 0; i < GROUPS; i++)
		assert_int_equal(foliage_group_create(s->parent,
						      i == 0   ? "a"
						      : i == 1 ? "b"
							       : "guest",
						      &s->groups[i]),
				 0);
	for (unsigned int i = 0; i < THREADS + 2; i++) {
		workers[i] = (struct worker){.s = s, .rng = i + 1};
		assert_int_equal(pthread_create(&workers[i].id, NULL,
						i < THREADS    ? work
						: i == THREADS ? change
							       : come_and_go,
						&workers[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].id, NULL);
	s->stop = true;
	for (int i = THREADS; i < THREADS + 2; i++)
		pthread_join(workers[i].id, NULL);
	print_message("%s: %llu made, %llu refused, %llu changes\n", policy,
		      (unsigned long long)s->made, (unsigned long long)s->refused,
		      (unsigned long long)s->changes);
	assert_int_equal(s->wrong, 0);
	assert_true(s->made > ROUNDS && s->changes > 10);
	check_rest(s);
	foliage_pool_destroy(s->pool);
	pthread_rwlock_destroy(&s->lock);
	free(s);
}

static void test_fg(void **state)
{
	(void)state;
	run("fg");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fg),
		cmocka_unit_test(test_clru),
		cmocka_unit_test(test_fgw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
