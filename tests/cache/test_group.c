/* SPDX-License-Identifier: MIT
 *
 * Groups of a pool: the tree and its names, protection and limits under pressure, removal, pools in
 * groups, statistics that add up, pressure figures.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/group.h"

enum { MIB = 1 << 20, PAGE = 4096 };

struct world {
	struct foliage_pool *pool;
	struct foliage_group *root;
	int kind;
};

static struct world open_world(uint32_t groups, const char *policy)
{
	struct foliage_pool_options options = {
		.bytes = 8 * MIB, .max_groups = groups, .policy = policy};
	struct world w;
	char message[200];

	if (foliage_pool_create(&options, &w.pool, message, sizeof(message)))
		fail_msg("%s", message);
	w.root = foliage_pool_group(w.pool);
	w.kind = foliage_pool_kind(w.pool, PAGE, 0);
	return w;
}

static struct foliage_group *new_group(struct foliage_group *parent, const char *name)
{
	struct foliage_group *g;

	assert_int_equal(foliage_group_create(parent, name, &g), 0);
	return g;
}

/* Bring in or use pages first .. last of the object; how many were made. */
static int touch(const struct world *w, struct foliage_group *g, uint64_t object, uint64_t first,
		 uint64_t last)
{
	struct foliage_page *page;
	int made = 0;

	for (uint64_t i = first; i <= last; i++) {
		int rc = foliage_group_fetch(g, w->pool, object, i, w->kind,
					     FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY, &page);

		if (rc < 0)
			fail_msg("%d %d: %d", (int)object, (int)i, rc);
		made += rc == FOLIAGE_NEW;
		assert_int_equal(foliage_pool_unpin(w->pool, page, 0), 0);
	}
	return made;
}

static int present(const struct world *w, uint64_t object, uint64_t first, uint64_t last)
{
	struct foliage_page *page;
	int n = 0;

	for (uint64_t i = first; i <= last; i++)
		if (foliage_pool_fetch(w->pool, object, i, w->kind, FOLIAGE_HINT_WILL_NEED,
				       &page) == FOLIAGE_HIT) {
			n++;
			foliage_pool_unpin(w->pool, page, 0);
		}
	return n;
}

static int64_t pages_of(struct foliage_group *g)
{
	return foliage_group_current(g) / PAGE;
}

static void test_tree(void **state)
{
	struct world w = open_world(3, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *b = new_group(a, "b"), *g;

	(void)state;
	assert_int_equal(foliage_group_create(w.root, "a", &g), -EEXIST);
	assert_int_equal(foliage_group_create(w.root, "x/y", &g), -EINVAL);
	assert_int_equal(foliage_group_create(w.root, "", &g), -EINVAL);
	new_group(a, "c");
	assert_int_equal(foliage_group_create(w.root, "d", &g), -ENOSPC);
	assert_int_equal(foliage_group_remove(a), -EBUSY);
	assert_int_equal(foliage_group_remove(w.root), -EINVAL);
	assert_int_equal(foliage_group_set(w.root, FOLIAGE_GROUP_MAX, MIB), -EINVAL);
	assert_int_equal(foliage_group_set(b, (enum foliage_group_limit)9, MIB), -EINVAL);
	foliage_group_hold(b);
	assert_int_equal(foliage_group_remove(b), 0);
	assert_int_equal(foliage_group_remove(b), -ENOENT);
	assert_int_equal(foliage_group_set(b, FOLIAGE_GROUP_MAX, MIB), -ENOENT);
	assert_int_equal(foliage_group_create(b, "e", &g), -ENOENT);
	/* It stands for its parent. */
	assert_int_equal(touch(&w, b, 1, 0, 9), 10);
	assert_int_equal(pages_of(a), 10);
	assert_int_equal(pages_of(b), 10);
	foliage_group_release(b);
	new_group(w.root, "d");
	foliage_pool_destroy(w.pool);
}

static int collect_path(void *ctx, struct foliage_group *g, const char *path)
{
	char *text = ctx;

	assert_non_null(g);
	strcat(text, path);
	strcat(text, " ");
	return strcmp(path, "/a/stop") ? 0 : 7;
}

static void test_each(void **state)
{
	struct world w = open_world(4, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *b = new_group(a, "b");
	char text[200] = "";

	(void)state;
	new_group(b, "c");
	assert_int_equal(foliage_group_each(w.root, collect_path, text), 0);
	assert_string_equal(text, "/ /a /a/b /a/b/c ");
	text[0] = '\0';
	assert_int_equal(foliage_group_each(b, collect_path, text), 0);
	assert_string_equal(text, "/a/b /a/b/c ");
	new_group(a, "stop");
	text[0] = '\0';
	assert_int_equal(foliage_group_each(w.root, collect_path, text), 7);
	foliage_pool_destroy(w.pool);
}

/* What min and low protect stays while a stream of others' pages goes through; without, it goes. */
static void protection(const char *policy, int limit)
{
	struct world w = open_world(2, policy);
	struct foliage_group *kept = new_group(w.root, "kept"),
			     *stream = new_group(w.root, "stream");
	struct foliage_group_stats stats;
	int n;

	if (limit >= 0)
		assert_int_equal(
			foliage_group_set(kept, (enum foliage_group_limit)limit, 600 * PAGE), 0);
	touch(&w, kept, 1, 0, 499);
	touch(&w, stream, 2, 0, 19999);
	n = present(&w, 1, 0, 499);
	assert_int_equal(foliage_group_stats(kept, &stats), 0);
	print_message("%s, limit %d: %d of 500 pages stayed\n", policy, limit, n);
	if (limit < 0) {
		assert_true(n < 100);
		assert_true(stats.evicted >= 400);
	} else {
		assert_int_equal(n, 500);
		assert_int_equal(stats.evicted, 0);
		assert_int_equal(stats.low_events, 0);
	}
	foliage_pool_destroy(w.pool);
}

static void test_protection(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "clru", "fgw"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		protection(policies[i], -1);
		protection(policies[i], FOLIAGE_GROUP_MIN);
		protection(policies[i], FOLIAGE_GROUP_LOW);
	}
}

/* When everything is below low, low yields and min does not. */
static void test_low_yields(void **state)
{
	struct world w = open_world(2, NULL);
	struct foliage_group *min = new_group(w.root, "min"), *low = new_group(w.root, "low");
	struct foliage_group_stats stats;

	(void)state;
	foliage_group_set(min, FOLIAGE_GROUP_MIN, 300 * PAGE);
	foliage_group_set(low, FOLIAGE_GROUP_LOW, 100 * MIB);
	touch(&w, min, 1, 0, 299);
	touch(&w, low, 2, 0, 9999);
	assert_int_equal(present(&w, 1, 0, 299), 300);
	foliage_group_stats(low, &stats);
	assert_true(stats.low_events > 0);
	assert_true(stats.evicted > 5000);
	foliage_pool_destroy(w.pool);
}

static void test_max(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "clru", "fgw"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world w = open_world(3, policies[i]);
		struct foliage_group *a = new_group(w.root, "a"), *b = new_group(a, "b");
		struct foliage_group_stats stats;

		assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, 200 * PAGE + 100), 0);
		for (uint64_t n = 0; n < 3000; n += 10) {
			touch(&w, n % 20 ? a : b, 1, n, n + 9);
			assert_true(pages_of(a) <= 200);
		}
		assert_true(pages_of(a) > 150);
		assert_true(pages_of(b) <= pages_of(a));
		foliage_group_stats(a, &stats);
		assert_true(stats.max_events > 0);
		assert_int_equal(stats.no_room, 0);
		assert_int_equal(stats.max, 200 * PAGE);
		/* Others do not feel it. */
		touch(&w, NULL, 2, 0, 999);
		assert_int_equal(present(&w, 2, 0, 999), 1000);
		/* Lowered while it is full. */
		assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, 50 * PAGE), 0);
		assert_true(pages_of(a) <= 50);
		assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, UINT64_MAX), 0);
		touch(&w, a, 3, 0, 499);
		assert_true(pages_of(a) >= 500);
		foliage_pool_destroy(w.pool);
	}
}

/* All of the group pinned: said at once, again and again; a page let go is room again, in this group
 * and not in another that is full as well. */
static void test_max_pinned(void **state)
{
	struct world w = open_world(2, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *b = new_group(w.root, "b");
	struct foliage_page *pages[2][40], *page;
	struct foliage_group_stats stats;
	const unsigned int create = FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY;

	(void)state;
	foliage_group_set(a, FOLIAGE_GROUP_MAX, 40 * PAGE);
	foliage_group_set(b, FOLIAGE_GROUP_MAX, 40 * PAGE);
	for (uint64_t i = 0; i < 80; i++)
		assert_int_equal(foliage_group_fetch(i % 2 ? b : a, w.pool, i % 2, i / 2, w.kind,
						     create, &pages[i % 2][i / 2]),
				 FOLIAGE_NEW);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(
			foliage_group_fetch(i % 2 ? b : a, w.pool, 9, 9, w.kind, create, &page),
			-ENOBUFS);
	foliage_group_stats(a, &stats);
	assert_int_equal(stats.no_room, 10000);
	foliage_group_stats(w.root, &stats);
	assert_int_equal(stats.no_room, 20000);
	touch(&w, NULL, 8, 0, 10);
	foliage_pool_unpin(w.pool, pages[0][7], 0);
	assert_int_equal(foliage_group_fetch(b, w.pool, 9, 9, w.kind, create, &page), -ENOBUFS);
	assert_int_equal(foliage_group_fetch(a, w.pool, 9, 9, w.kind, create, &page), FOLIAGE_NEW);
	assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, 20 * PAGE), -EBUSY);
	foliage_pool_destroy(w.pool);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Above high pages are reclaimed; when they are pinned, whoever wants more is slowed down, and that
 * is seen as pressure. */
static void test_high(void **state)
{
	struct world w = open_world(1, NULL);
	struct foliage_group *a = new_group(w.root, "a");
	struct foliage_page *pages[60];
	struct foliage_group_stats stats;
	double start;

	(void)state;
	foliage_group_set(a, FOLIAGE_GROUP_HIGH, 100 * PAGE);
	for (uint64_t n = 0; n < 2000; n++) {
		touch(&w, a, 1, n, n);
		assert_true(pages_of(a) <= 101);
	}
	foliage_group_stats(a, &stats);
	assert_true(stats.high_events > 0);
	foliage_group_set(a, FOLIAGE_GROUP_HIGH, 20 * PAGE);
	start = seconds();
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(foliage_group_fetch(a, w.pool, 2, i, w.kind,
						     FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY,
						     &pages[i]),
				 FOLIAGE_NEW);
	/* From page 31 on it is half as much again as it should be: 100 ms each. */
	assert_true(seconds() - start > 2);
	foliage_group_stats(a, &stats);
	assert_true(stats.memory.some_us > 2000000);
	assert_true(stats.memory.full_us > 2000000); /* the only active thread */
	assert_true(stats.memory.some_avg[0] > 10 && stats.memory.some_avg[0] <= 100);
	assert_true(stats.memory.some_avg[2] < stats.memory.some_avg[0]);
	assert_int_equal(stats.io.some_us, 0);
	/* Whoever must not wait does not. */
	start = seconds();
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(foliage_group_fetch(a, w.pool, 3, i, w.kind,
						     FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_NOWAIT,
						     &pages[i]),
				 FOLIAGE_NEW);
	assert_true(seconds() - start < 0.9);
	foliage_pool_destroy(w.pool);
}

static uint64_t value_of(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *at = text;

	while (strncmp(at, name, len) || at[len] != ' ') {
		at = strchr(at, '\n');
		if (!at)
			fail_msg("no %s", name);
		at++;
	}
	return strtoull(at + len, NULL, 10);
}

static uint64_t stat_value(struct foliage_group *g, const char *file, const char *name)
{
	char *text;
	uint64_t n;

	assert_int_equal(foliage_group_text(g, file, &text), 0);
	n = value_of(text, name);
	free(text);
	return n;
}

static void test_statistics_add_up(void **state)
{
	static const char *const names[] = {"file", "pgscan", "pgsteal", "workingset_refault_file"};
	struct world w = open_world(4, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *parts[3];
	struct foliage_pool_stats whole;
	struct foliage_group_stats stats, sum = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 3; i++)
		parts[i] = new_group(a, i == 0 ? "x" : i == 1 ? "y" : "z");
	foliage_group_set(parts[0], FOLIAGE_GROUP_MAX, 100 * PAGE);
	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < 3; i++)
			touch(&w, parts[i], i, 0, 1500);
	engine_drain_all(w.pool->core->engine);
	foliage_group_stats(a, &stats);
	for (int i = 0; i < 3; i++) {
		struct foliage_group_stats part;

		foliage_group_stats(parts[i], &part);
		sum.current += part.current;
		sum.evicted += part.evicted;
		sum.refaults += part.refaults;
		sum.active += part.active;
		sum.inactive += part.inactive;
		assert_int_equal(part.active + part.inactive, part.current);
	}
	assert_int_equal(stats.current, sum.current);
	assert_int_equal(stats.evicted, sum.evicted);
	assert_int_equal(stats.refaults, sum.refaults);
	assert_int_equal(stats.active, sum.active);
	assert_int_equal(stats.inactive, sum.inactive);
	foliage_pool_stats(w.pool, &whole);
	assert_int_equal(whole.page_bytes, stats.current);
	assert_int_equal(whole.evicted, stats.evicted);
	assert_int_equal(whole.refaults, stats.refaults);
	assert_true(stats.refaults > 0);
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		uint64_t parts_sum = 0;

		for (int i = 0; i < 3; i++)
			parts_sum += stat_value(parts[i], "memory.stat", names[n]);
		assert_int_equal(stat_value(a, "memory.stat", names[n]), parts_sum);
		assert_int_equal(stat_value(w.root, "memory.stat", names[n]), parts_sum);
	}
	assert_int_equal(stat_value(a, "memory.stat", "file"), stats.current);
	assert_int_equal(stat_value(parts[0], "memory.events", "max"), stats.max_events);
	assert_int_equal(foliage_group_text(parts[0], "memory.max", &text), 0);
	assert_string_equal(text, "409600\n");
	free(text);
	assert_int_equal(foliage_group_text(a, "memory.high", &text), 0);
	assert_string_equal(text, "max\n");
	free(text);
	assert_int_equal(foliage_group_text(a, "memory.pressure", &text), 0);
	assert_int_equal(strncmp(text, "some avg10=", 11), 0);
	assert_non_null(strstr(text, "\nfull avg10="));
	free(text);
	assert_int_equal(foliage_group_text(a, "memory.nonsense", &text), -EINVAL);
	foliage_pool_destroy(w.pool);
}

/* A removed group's pages are its parent's, with what they have earned; its counts stay in the sums. */
static void test_removal(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "clru", "fgw"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world w = open_world(3, policies[i]);
		struct foliage_group *a = new_group(w.root, "a"), *b;
		struct err err = {{0}};

		for (int round = 0; round < 20; round++) {
			uint64_t object = (uint64_t)round;

			b = new_group(a, "b");
			assert_int_equal(touch(&w, b, object, 0, 59), 60);
			assert_int_equal(pages_of(b), 60);
			assert_int_equal(foliage_group_remove(b), 0);
			assert_int_equal(present(&w, object, 0, 59), 60);
			assert_true(pages_of(a) >= 60 * (round + 1));
			if (memcg_is_valid(w.pool->core->engine, &err))
				fail_msg("%s: %s", policies[i], err.text);
		}
		/* Gone with their pages: the parent can be emptied. */
		assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, 0), 0);
		assert_int_equal(pages_of(a), 0);
		foliage_pool_destroy(w.pool);
	}
}

/* ---- pools in groups ---- */

static int drops;

static void count_drop(void *ctx, const struct foliage_page *page)
{
	assert_ptr_equal(ctx, &drops);
	assert_int_equal(page->object, 1);
	drops++;
}

static void test_pools(void **state)
{
	struct world w = open_world(2, NULL);
	struct foliage_group *a = new_group(w.root, "a");
	struct foliage_pool_options options = {.dropped = count_drop, .ctx = &drops};
	struct foliage_pool *pools[2];
	struct foliage_page *page, *pinned;
	struct foliage_pool_stats stats;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(foliage_group_pool(a, i ? &options : NULL, &pools[i]), 0);
		assert_ptr_equal(foliage_pool_group(pools[i]), a);
	}
	/* The same name, three pages. */
	touch(&w, NULL, 1, 5, 5);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(foliage_pool_fetch(pools[i], 1, 5, w.kind, 0, &page), -ENOENT);
		assert_int_equal(foliage_pool_fetch(pools[i], 1, 5, w.kind,
						    FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY,
						    &page),
				 FOLIAGE_NEW);
		memset(page->data, i + 1, PAGE);
		foliage_pool_unpin(pools[i], page, 0);
	}
	assert_int_equal(pages_of(a), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(foliage_pool_fetch(pools[i], 1, 5, w.kind, 0, &page), FOLIAGE_HIT);
		assert_int_equal(*(char *)page->data, i + 1);
		assert_int_equal(page->object, 1);
		foliage_pool_unpin(pools[i], page, 0);
	}
	/* Each call stays in its own space. */
	assert_int_equal(foliage_pool_truncate(pools[0], 1, 0, UINT64_MAX), 1);
	assert_int_equal(foliage_pool_fetch(pools[0], 1, 5, w.kind, 0, &page), -ENOENT);
	assert_int_equal(foliage_pool_fetch(pools[1], 1, 5, w.kind, 0, &pinned), FOLIAGE_HIT);
	assert_int_equal(foliage_pool_rekey(pools[1], &pinned, 1, 6), 0);
	assert_int_equal(present(&w, 1, 5, 6), 1);
	assert_int_equal(foliage_pool_discard(pools[1], 1, 5), -ENOENT);
	foliage_pool_unpin(pools[1], pinned, 0);
	assert_int_equal(drops, 0);
	/* Pages evicted for others are told to their own. */
	touch(&w, NULL, 2, 0, 999);
	assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, 0), 0);
	assert_int_equal(drops, 1);
	assert_int_equal(pages_of(a), 0);
	assert_int_equal(foliage_group_set(a, FOLIAGE_GROUP_MAX, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(foliage_pool_fetch(pools[1], 1, i, w.kind,
						    FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY,
						    &page),
				 FOLIAGE_NEW);
		foliage_pool_unpin(pools[1], page, 0);
	}
	foliage_pool_stats(w.pool, &stats);
	foliage_pool_destroy(pools[1]);
	assert_int_equal(drops, 11);
	/* The group may go while a pool names it. */
	assert_int_equal(foliage_group_remove(a), 0);
	assert_int_equal(foliage_pool_fetch(pools[0], 1, 5, w.kind,
					    FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY, &page),
			 FOLIAGE_NEW);
	foliage_pool_unpin(pools[0], page, 0);
	foliage_pool_destroy(pools[0]);
	assert_int_equal(present(&w, 2, 900, 999), 100);
	foliage_pool_destroy(w.pool);
}

static void test_many_pools(void **state)
{
	struct world w = open_world(0, NULL);
	struct foliage_pool *pools[256];
	int n = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		while (n < 256 && !foliage_group_pool(w.root, NULL, &pools[n]))
			n++;
		assert_int_equal(n, 255);
		assert_int_equal(foliage_group_pool(w.root, NULL, &pools[n]), -ENOSPC);
		while (n > round)
			foliage_pool_destroy(pools[--n]);
	}
	while (n)
		foliage_pool_destroy(pools[--n]);
	foliage_pool_destroy(w.pool);
}

/* ---- pressure ---- */

struct waiter {
	struct world w;
	struct foliage_group *group;
	uint64_t object;
	double from, to;
};

/* Is active, waits for a while, is active. */
static void *wait_a_while(void *arg)
{
	struct waiter *me = arg;
	double start = seconds();

	touch(&me->w, me->group, me->object, 0, 9);
	usleep((useconds_t)(1e6 * me->from));
	foliage_group_stall_begin(me->group, FOLIAGE_STALL_IO);
	while (seconds() - start < me->to)
		usleep(1000);
	foliage_group_stall_end(me->group, FOLIAGE_STALL_IO);
	return NULL;
}

/* One waits from 0.1 to 0.5 s, another from 0.3 to 0.7 s: some for 0.6 s, full for 0.2 s. */
static void test_pressure(void **state)
{
	struct world w = open_world(2, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *b = new_group(a, "b");
	struct waiter waiters[2] = {{w, a, 1, 0.1, 0.5}, {w, b, 2, 0.3, 0.7}};
	struct foliage_group_stats stats;
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_a_while, &waiters[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	foliage_group_stats(a, &stats);
	print_message("io: some %.3f s, full %.3f s\n", (double)stats.io.some_us / 1e6,
		      (double)stats.io.full_us / 1e6);
	/* Threads may be late on a busy machine, by whatever it takes, but not early. */
	assert_true(stats.io.some_us >= 590000);
	assert_true(stats.io.full_us < stats.io.some_us);
	foliage_group_stats(b, &stats);
	assert_true(stats.io.some_us >= 390000);
	assert_int_equal(stats.io.full_us, stats.io.some_us); /* the only one in b */
	assert_int_equal(stats.memory.some_us, 0);
	foliage_group_stats(w.root, &stats);
	assert_true(stats.io.some_us >= 590000);
	foliage_pool_destroy(w.pool);
}

static void test_fork(void **state)
{
	struct world w = open_world(2, NULL);
	struct foliage_group *a = new_group(w.root, "a"), *b;
	struct foliage_group_stats stats;
	struct foliage_pool *pool;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(foliage_group_create(a, "b", &b) != -ECHILD ||
		      foliage_group_remove(a) != -ECHILD ||
		      foliage_group_set(a, FOLIAGE_GROUP_MAX, 1) != -ECHILD ||
		      foliage_group_current(a) != -ECHILD ||
		      foliage_group_stats(a, &stats) != -ECHILD ||
		      foliage_group_pool(a, NULL, &pool) != -ECHILD);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	foliage_pool_destroy(w.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),       cmocka_unit_test(test_each),
		cmocka_unit_test(test_protection), cmocka_unit_test(test_low_yields),
		cmocka_unit_test(test_max),        cmocka_unit_test(test_max_pinned),
		cmocka_unit_test(test_high),       cmocka_unit_test(test_statistics_add_up),
		cmocka_unit_test(test_removal),    cmocka_unit_test(test_pools),
		cmocka_unit_test(test_many_pools), cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
