/* SPDX-License-Identifier: MIT
 *
 * The room itself: what it refuses, what it counts, and that a run in pieces is the run.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "machine/room.h"

static const uint32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 1, 0, 2};

enum { N = sizeof(ids) / sizeof(ids[0]) };

static int open_text(const char *text, const struct foliage_policy_env *env, struct room **room,
		     struct err *err)
{
	struct policy_choice choice;
	int ret;

	assert_int_equal(policy_parse(text, &choice, err), 0);
	ret = room_open(&choice, env, room, err);
	policy_choice_free(&choice);
	return ret;
}

static void test_refused(void **unused)
{
	struct foliage_policy_env env = {.room = 7, .nr_ids = 10, .scale = 1};
	const uint32_t counts[10] = {0};
	const uint64_t next[N] = {0};
	struct room *room;
	struct err err = {0};

	(void)unused;
	assert_int_equal(open_text("lru", &env, &room, &err), -EINVAL);
	assert_string_equal(err.text, "policy lru: a room of 7 pages is below the smallest, 8");
	env.room = 8;
	assert_int_equal(open_text("belady", &env, &room, &err), -EINVAL);
	assert_string_equal(err.text, "policy belady: needs the whole trace beforehand");
	assert_int_equal(open_text("static", &env, &room, &err), -EINVAL);
	env.counts = counts;
	assert_int_equal(open_text("belady", &env, &room, &err), -EINVAL);
	env.counts = NULL;
	env.next = next;
	assert_int_equal(open_text("static", &env, &room, &err), -EINVAL);
}

/* Room of 8: 0..7 fill it, 0 hits, 8 evicts 1 (LRU), 9 evicts 2, 1 refaults and evicts 3, 0 hits,
 * 2 refaults. */
static void test_counts(void **unused)
{
	struct foliage_policy_env env = {.room = 8, .nr_ids = 10, .scale = 1};
	struct foliage_stats stats;
	struct room *room;

	(void)unused;
	assert_int_equal(open_text("lru", &env, &room, NULL), 0);
	assert_int_equal(room_run(room, ids, NULL, N), 0);
	room_stats(room, &stats);
	assert_int_equal(stats.accesses, 14);
	assert_int_equal(stats.hits, 2);
	assert_int_equal(stats.misses, 12);
	assert_int_equal(stats.refaults, 2);
	assert_int_equal(stats.stolen, 4);
	room_close(room);
}

static void test_reset_keeps_pages(void **unused)
{
	struct foliage_policy_env env = {.room = 8, .nr_ids = 10, .scale = 1};
	struct foliage_stats stats;
	struct room *room;

	(void)unused;
	assert_int_equal(open_text("lru", &env, &room, NULL), 0);
	assert_int_equal(room_run(room, ids, NULL, 10), 0);
	room_stats_reset(room);
	room_stats(room, &stats);
	assert_int_equal(stats.accesses + stats.hits + stats.misses + stats.refaults + stats.stolen,
			 0);
	assert_int_equal(room_run(room, ids + 10, NULL, N - 10), 0);
	room_stats(room, &stats);
	assert_int_equal(stats.accesses, 4);
	assert_int_equal(stats.hits, 1);
	assert_int_equal(stats.misses, 3);
	assert_int_equal(stats.refaults, 2);
	assert_int_equal(stats.stolen, 3);
	room_close(room);
}

static void test_no_dump(void **unused)
{
	struct foliage_policy_env env = {.room = 8, .nr_ids = 10, .scale = 1};
	struct room *room;
	char *text = (char *)&env;

	(void)unused;
	assert_int_equal(open_text("fifo", &env, &room, NULL), 0);
	assert_int_equal(room_dump(room, "lru_gen_full", &text), -EOPNOTSUPP);
	assert_null(text);
	room_close(room);
}

/* ---- a policy that runs and counts by itself ---- */

struct runner {
	uint64_t accesses, expected_now, writes;
};

static int runner_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	(void)env;
	(void)knobs;
	*state = calloc(1, sizeof(struct runner));
	return *state ? 0 : -ENOMEM;
}

static int runner_run(void *state, const uint32_t *pages, const uint8_t *ops, size_t n,
		      uint64_t now)
{
	struct runner *r = state;

	if (now != r->expected_now)
		return -ERANGE;
	for (size_t i = 0; i < n; i++) {
		if (pages[i] == 9)
			return -EIO;
		r->writes += ops && ops[i] == FOLIAGE_ACCESS_WRITE;
	}
	r->accesses += n;
	r->expected_now += n;
	return 0;
}

static void runner_stats(const void *state, struct foliage_stats *stats)
{
	const struct runner *r = state;

	stats->accesses += r->accesses;
	stats->misses += r->accesses;
	stats->promoted += r->writes;
}

static void test_run(void **unused)
{
	static const struct foliage_policy policy = {
		.abi = FOLIAGE_POLICY_ABI,
		.name = "runner",
		.create = runner_create,
		.destroy = free,
		.run = runner_run,
		.stats = runner_stats,
	};
	struct policy_choice choice = {.policy = &policy, .label = "runner"};
	struct foliage_policy_env env = {.room = 8, .nr_ids = 10, .scale = 1};
	const uint8_t ops[3] = {0, FOLIAGE_ACCESS_WRITE, FOLIAGE_ACCESS_WRITE};
	struct foliage_stats stats;
	struct room *room;

	(void)unused;
	assert_int_equal(room_open(&choice, &env, &room, NULL), 0);
	assert_int_equal(room_run(room, ids, NULL, 5), 0);
	room_stats_reset(room);
	assert_int_equal(room_run(room, ids + 5, ops, 3), 0);
	room_stats(room, &stats);
	assert_int_equal(stats.accesses, 3);
	assert_int_equal(stats.misses, 3);
	assert_int_equal(stats.promoted, 2);
	assert_int_equal(room_run(room, ids + 8, NULL, 4), -EIO);
	room_close(room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_reset_keeps_pages),
		cmocka_unit_test(test_no_dump),
		cmocka_unit_test(test_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
