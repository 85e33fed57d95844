/* SPDX-License-Identifier: MIT
 *
 * memcgs: the tree and its slots, charging, limits, protection (A.8).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "mm/memcg.h"
#include "mm/shadow.h"
#include "tests/support/world.h"

static void check(struct world *w)
{
	struct err err = {{0}};

	world_check(w);
	if (memcg_is_valid(w->e, &err))
		fail_msg("%s", err.text);
}

static uint32_t group(struct world *w, uint32_t parent, const char *name)
{
	int slot = foliage_memcg_create(w->e, parent, name);

	if (slot <= 0)
		fail_msg("foliage_memcg_create: %d", slot);
	return (uint32_t)slot;
}

static void limit(struct world *w, uint32_t memcg, enum foliage_limit what, uint64_t value)
{
	assert_int_equal(foliage_memcg_set(w->e, memcg, what, value), 0);
}

static void fill(struct world *w, uint32_t memcg, uint32_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		world_add_to(w, first + i, memcg, 0, 0, 0, 0);
}

static uint32_t present(const struct world *w, uint32_t first, uint32_t nr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++)
		n += world_present(w, first + i);
	return n;
}

static struct world *small_world(const char *policy, uint32_t memcgs)
{
	return world_new(
		&(struct world_options){.policy = policy, .nr_folios = 4096, .max_memcgs = memcgs});
}

/* ---- the tree ---- */

static void test_tree_order(void **state)
{
	struct world *w = small_world("fg", 8);
	uint32_t a = group(w, 0, "a"), b = group(w, 0, "b"), a1 = group(w, a, "x"),
		 a2 = group(w, a, "y");
	uint32_t order[] = {0, a, a1, a2, b}, at = UINT32_MAX;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		at = memcg_next(w->e, 0, at);
		assert_int_equal(at, order[i]);
	}
	assert_int_equal(memcg_next(w->e, 0, at), UINT32_MAX);
	assert_int_equal(memcg_next(w->e, a, UINT32_MAX), a);
	assert_int_equal(memcg_next(w->e, a, a), a1);
	assert_int_equal(memcg_next(w->e, a, a2), UINT32_MAX);
	assert_int_equal(memcg_next(w->e, b, b), UINT32_MAX);
	/* A place outside the subtree ends the walk instead of leaving it. */
	assert_int_equal(memcg_next(w->e, a, b), UINT32_MAX);
	assert_true(memcg_has_ancestor(w->e, a2, a));
	assert_true(memcg_has_ancestor(w->e, a2, 0));
	assert_true(memcg_has_ancestor(w->e, a2, a2));
	assert_false(memcg_has_ancestor(w->e, a2, b));
	assert_false(memcg_has_ancestor(w->e, a, a2));
	check(w);
	world_free(w);
}

static void test_tree_errors(void **state)
{
	struct world *w = small_world("fg", 3);
	char name[80];
	uint32_t a = group(w, 0, "a");

	(void)state;
	memset(name, 'n', sizeof(name));
	name[63] = '\0';
	assert_int_equal(foliage_memcg_create(w->e, 0, "a"), -EEXIST);
	assert_int_equal(foliage_memcg_create(w->e, 0, ""), -EINVAL);
	assert_int_equal(foliage_memcg_create(w->e, 0, NULL), -EINVAL);
	assert_int_equal(foliage_memcg_create(w->e, 0, "a/b"), -EINVAL);
	assert_int_equal(foliage_memcg_create(w->e, 0, ".."), -EINVAL);
	assert_int_equal(foliage_memcg_create(w->e, 7, "b"), -ENOENT);
	assert_int_equal(foliage_memcg_create(w->e, 2, "b"), -ENOENT);
	assert_int_equal(group(w, a, name), 2);
	name[63] = 'n';
	name[64] = '\0';
	assert_int_equal(foliage_memcg_create(w->e, 0, name), -EINVAL);
	assert_int_equal(foliage_memcg_create(w->e, 0, "b"), -ENOSPC);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, a), -EBUSY);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 0), -EINVAL);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 3), -ENOENT);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, UINT32_MAX), -ENOENT);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), -ENOENT);
	assert_int_equal(foliage_memcg_create(w->e, 2, "c"), -ENOENT);
	assert_int_equal(foliage_memcg_set(w->e, a, FOLIAGE_SWAPPINESS, 201), -EINVAL);
	assert_int_equal(foliage_memcg_set(w->e, a, (enum foliage_limit)99, 1), -EINVAL);
	assert_int_equal(foliage_memcg_set(w->e, 9, FOLIAGE_MAX, 1), -ENOENT);
	assert_int_equal(foliage_memcg_set(w->e, 2, FOLIAGE_MAX, 1), -ENOENT);
	assert_int_equal(foliage_memcg_usage(w->e, 9), -ENOENT);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, 9, 1, false), -ENOENT);
	check(w);
	world_free(w);
}

/* Slots come back when they are empty, ids only after all the others; swappiness is inherited. */
static void test_slots_and_ids(void **state)
{
	struct world *w = small_world("fg", 3);
	uint32_t a = group(w, 0, "a"), b;
	uint16_t id = w->e->memcgs[a].id;

	(void)state;
	assert_int_equal(w->e->memcgs[0].id, 1);
	assert_int_equal(id, 2);
	limit(w, a, FOLIAGE_SWAPPINESS, 17);
	b = group(w, a, "b");
	assert_int_equal(w->e->memcgs[b].swappiness, 17);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, b), 0);
	for (int i = 0; i < 10; i++) {
		uint32_t c = group(w, 0, "c");

		assert_int_equal(c, b);
		assert_int_equal(w->e->memcgs[c].id, id + 2 + i);
		assert_int_equal(w->e->memcgs[c].swappiness, 60);
		check(w);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, c), 0);
		check(w);
	}
	/* The counter wraps: 0 is nobody's, 1 and 2 are taken. */
	w->e->last_memcg_id = UINT16_MAX;
	assert_int_equal(w->e->memcgs[group(w, 0, "d")].id, 3);
	check(w);
	world_free(w);
}

/* A dead child keeps its dead parent's slot, whichever number is lower. */
static void test_slots_of_dead_families(void **state)
{
	struct world *w = small_world("fg", 4);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b"), c = group(w, b, "c");

	(void)state;
	fill(w, c, 0, 10);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, c), 0);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, b), 0);
	check(w);
	/* c's slot is still named by 10 folios that are a's. */
	assert_int_equal(foliage_memcg_create(w->e, 0, "x"), -ENOSPC);
	assert_int_equal(foliage_memcg_usage(w->e, a), 10);
	assert_ptr_equal(folio_lruvec(w->e, folio_at(w->e, 0)), lruvec_of(w->e, a, 0));
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, (foliage_folio)i), 0);
	assert_int_equal(foliage_memcg_usage(w->e, a), 0);
	group(w, 0, "x");
	group(w, 0, "y");
	assert_int_equal(foliage_memcg_create(w->e, 0, "z"), -ENOSPC);
	check(w);
	world_free(w);
}

/* A reclaim session that may still be looking at a group's lists keeps the slot from being given
 * away. */
static void test_slots_wait_for_sessions(void **state)
{
	struct world *w = world_new(
		&(struct world_options){.nr_folios = 64, .max_memcgs = 2, .threads = true});
	uint32_t a = group(w, 0, "a");
	unsigned int before, after;

	(void)state;
	before = memcg_enter(w->e);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, a), 0);
	assert_int_equal(foliage_memcg_create(w->e, 0, "b"), -ENOSPC);
	/* One that begins now cannot meet it, and goes on for ever. */
	after = memcg_enter(w->e);
	assert_int_equal(foliage_memcg_create(w->e, 0, "b"), -ENOSPC);
	memcg_leave(w->e, before);
	memcg_leave(w->e, after);
	assert_int_equal(foliage_memcg_create(w->e, 0, "b"), a);
	check(w);
	world_free(w);
}

/* Nobody is left to protect: what a removed group was promised does not bind its heirs. */
static void test_protection_ends_with_the_group(void **state)
{
	static const char *const policies[] = {"fg", "clru-6.12"};

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = small_world(policies[p], 3);
		uint32_t a = group(w, 0, "a");

		fill(w, a, 0, 100);
		limit(w, a, FOLIAGE_MIN, 100);
		world_reclaim(w, 0, 32);
		assert_int_equal(w->nr_evicted, 0);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, a), 0);
		world_reclaim(w, 0, 32);
		assert_true(w->nr_evicted >= 32);
		world_free(w);
	}
}

/* ---- charging and limits ---- */

static void test_charge_propagates(void **state)
{
	struct world *w = small_world("fg", 5);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b"), c = group(w, 0, "c");

	(void)state;
	fill(w, b, 0, 7);
	fill(w, a, 100, 2);
	world_add_to(w, 200, c, 0, 0, 4, 0);
	assert_int_equal(foliage_memcg_usage(w->e, b), 7);
	assert_int_equal(foliage_memcg_usage(w->e, a), 9);
	assert_int_equal(foliage_memcg_usage(w->e, c), 16);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 25);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 200), 0);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 3), 0);
	assert_int_equal(foliage_memcg_usage(w->e, b), 6);
	assert_int_equal(foliage_memcg_usage(w->e, a), 8);
	assert_int_equal(foliage_memcg_usage(w->e, c), 0);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 8);
	check(w);
	world_free(w);
}

/* The limit of an ancestor is met by reclaim below that ancestor and nowhere else, and only once it
 * is reached. */
static void test_max_of_ancestor(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12", "clru", "clru-6.12"};

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = small_world(policies[p], 5);
		uint32_t a = group(w, 0, "a"), b = group(w, a, "b"), c = group(w, 0, "c");

		limit(w, a, FOLIAGE_MAX, 300);
		fill(w, c, 1000, 500);
		fill(w, a, 0, 100);
		fill(w, b, 100, 199);
		assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 1, false), 0);
		assert_int_equal(w->nr_evicted, 0);
		world_add_to(w, 299, b, 0, 0, 0, 0);
		assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, c, 1, false), 0);
		assert_int_equal(w->nr_evicted, 0);
		assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 1, false), 0);
		assert_true(w->nr_evicted >= 32);
		assert_int_equal(present(w, 1000, 500), 500);
		assert_int_equal(foliage_memcg_usage(w->e, a), 300 - (int64_t)w->nr_evicted);
		/* Lowering the limit is obeyed by the next charge, however far it is. */
		limit(w, a, FOLIAGE_MAX, 20);
		assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, a, 8, false), 0);
		assert_true(foliage_memcg_usage(w->e, a) <= 12);
		assert_int_equal(w->nr_oom, 0);
		check(w);
		world_free(w);
	}
}

static void test_max_out_of_memory(void **state)
{
	struct world *w = small_world("fg", 4);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b");

	(void)state;
	limit(w, a, FOLIAGE_MAX, 10);
	for (uint32_t i = 0; i < 10; i++)
		world_add_to(w, i, b, 0, 0, 0, FOLIAGE_FOLIO_MLOCKED);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 1, false), -ENOMEM);
	assert_int_equal(w->nr_oom, 1);
	assert_int_equal(memcg_stat(w->e, a, STAT_OOM), 1);
	assert_int_equal(memcg_stat(w->e, b, STAT_OOM), 0);
	assert_int_equal(w->nr_evicted, 0);
	/* More than the limit itself can never fit. */
	limit(w, a, FOLIAGE_MAX, 20);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 10, false), 0);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 21, false), -ENOMEM);
	check(w);
	world_free(w);
}

/* memory.high reclaims, waits when that does not help, and never refuses. */
static void test_high_is_soft(void **state)
{
	struct world *w = small_world("fg", 4);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b");

	(void)state;
	fill(w, b, 0, 200);
	limit(w, a, FOLIAGE_HIGH, 200);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, b, 1, false), 0);
	assert_true(w->nr_evicted >= 32);
	assert_int_equal(w->nr_throttled, 0);
	world_free(w);

	w = small_world("fg", 4);
	a = group(w, 0, "a");
	for (uint32_t i = 0; i < 20; i++)
		world_add_to(w, i, a, 0, 0, 0, FOLIAGE_FOLIO_MLOCKED);
	limit(w, a, FOLIAGE_HIGH, 10);
	assert_int_equal(foliage_memcg_make_room(w->e, &w->cpu, a, 1, false), 0);
	assert_int_equal(w->nr_evicted, 0);
	assert_int_equal(w->nr_throttled, 1);
	assert_int_equal(w->nr_oom, 0);
	world_free(w);
}

/* ---- protection ---- */

static void assert_scan(struct world *w, uint32_t target, uint32_t memcg, bool low_reclaim,
			uint64_t nr, uint64_t expected)
{
	struct scan_control sc;

	world_scan_control(w, &sc);
	sc.target = target;
	sc.low_reclaim = low_reclaim;
	assert_int_equal(memcg_protect_scan(w->e, &sc, memcg, nr), expected);
}

static void test_protect_scan(void **state)
{
	struct world *w = small_world("fg", 4);
	uint32_t a = group(w, 0, "a");

	(void)state;
	fill(w, a, 0, 1000);
	assert_scan(w, 0, a, false, 1000, 1000);
	assert_scan(w, 0, a, false, 0, 0);
	limit(w, a, FOLIAGE_LOW, 400);
	/* 1000 - 1000 * 400 / 1001 */
	assert_scan(w, 0, a, false, 1000, 601);
	/* low is overridden and there is no min: p = 0 */
	assert_scan(w, 0, a, true, 1000, 1000);
	limit(w, a, FOLIAGE_MIN, 100);
	assert_scan(w, 0, a, false, 1000, 601);
	/* 1000 - 1000 * 100 / 1001 */
	assert_scan(w, 0, a, true, 1000, 901);
	/* min above low rules */
	limit(w, a, FOLIAGE_MIN, 600);
	assert_scan(w, 0, a, false, 1000, 401);
	/* never less than 32 */
	limit(w, a, FOLIAGE_MIN, 990);
	assert_scan(w, 0, a, false, 1000, 32);
	assert_scan(w, 0, a, false, 10, 32);
	/* protected beyond usage: usage counts as p; 5000 - 5000 * 4000 / 4001 = 2 */
	limit(w, a, FOLIAGE_MIN, 4000);
	assert_scan(w, 0, a, false, 5000, 32);
	/* 500000 - 500000 * 4000 / 4001 = 125 */
	assert_scan(w, 0, a, false, 500000, 125);
	limit(w, a, FOLIAGE_MIN, FOLIAGE_UNLIMITED);
	assert_scan(w, 0, a, false, UINT64_MAX / 2, 32);
	/* the target of the reclaim has no protection */
	assert_scan(w, a, a, false, 1000, 1000);
	world_free(w);
}

static void test_below(void **state)
{
	struct world *w = small_world("fg", 4);
	uint32_t a = group(w, 0, "a");

	(void)state;
	assert_false(memcg_below_min(w->e, 0, a)); /* empty, but nothing is protected */
	fill(w, a, 0, 100);
	limit(w, a, FOLIAGE_MIN, 99);
	limit(w, a, FOLIAGE_LOW, 100);
	assert_false(memcg_below_min(w->e, 0, a));
	assert_true(memcg_below_low(w->e, 0, a));
	assert_false(memcg_below_low(w->e, a, a));
	limit(w, a, FOLIAGE_MIN, 100);
	assert_true(memcg_below_min(w->e, 0, a));
	limit(w, 0, FOLIAGE_MIN, 1000);
	assert_false(memcg_below_min(w->e, 0, 0));
	world_free(w);
}

/* Below the top level siblings share what their parent got. */
static void test_nested_protection(void **state)
{
	struct world *w = small_world("fg", 6);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b"), c = group(w, a, "c"),
		 d = group(w, a, "d");

	(void)state;
	fill(w, b, 0, 300);
	fill(w, c, 300, 300);
	fill(w, d, 600, 400);
	limit(w, b, FOLIAGE_MIN, 200);
	limit(w, c, FOLIAGE_MIN, 600);
	/* The parent protects nothing, so its children cannot from outside... */
	assert_scan(w, 0, b, false, 300, 300);
	assert_false(memcg_below_min(w->e, 0, c));
	/* ... but they can from reclaim that starts at the parent. */
	assert_scan(w, a, b, false, 300, 300 - 300 * 200 / 301);
	assert_true(memcg_below_min(w->e, a, c));
	/* 250 for 200 + 300 that are protected and used: half of each. */
	limit(w, a, FOLIAGE_MIN, 250);
	assert_scan(w, 0, b, false, 300, 300 - 300 * 100 / 301);
	assert_scan(w, 0, c, false, 300, 300 - 300 * 150 / 301);
	assert_scan(w, 0, d, false, 300, 300);
	/* Enough for all: nobody is scaled, but none gets more than it uses. */
	limit(w, a, FOLIAGE_MIN, 500);
	assert_scan(w, 0, b, false, 300, 300 - 300 * 200 / 301);
	assert_true(memcg_below_min(w->e, 0, c));
	world_free(w);
}

static void test_protected_is_skipped(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12", "clru", "clru-6.12"};

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = small_world(policies[p], 5);
		uint32_t a = group(w, 0, "a"), min = group(w, a, "min"), low = group(w, a, "low"),
			 c = group(w, a, "c");

		fill(w, min, 0, 500);
		fill(w, low, 500, 500);
		fill(w, c, 1000, 500);
		limit(w, min, FOLIAGE_MIN, 500);
		limit(w, low, FOLIAGE_LOW, 500);
		for (int i = 0; i < 7; i++)
			world_reclaim(w, a, 32);
		assert_true(w->nr_evicted >= 7 * 32);
		assert_int_equal(present(w, 0, 1000), 1000);
		/* With nothing else left, low gives way and min does not. */
		for (int i = 0; i < 40; i++)
			world_reclaim(w, a, 32);
		assert_int_equal(present(w, 1000, 500), 0);
		assert_int_equal(present(w, 0, 500), 500);
		assert_true(present(w, 500, 500) < 500);
		assert_true(memcg_stat(w->e, low, STAT_LOW_EVENTS) > 0);
		assert_int_equal(memcg_stat(w->e, min, STAT_LOW_EVENTS), 0);
		check(w);
		world_free(w);
	}
}

/* What a freed slot counted stays in its parent's subtree. */
static void test_stats_survive_slots(void **state)
{
	struct world *w = small_world("fg", 3);
	uint32_t a = group(w, 0, "a"), b = group(w, a, "b");

	(void)state;
	fill(w, b, 0, 200);
	assert_true(world_reclaim(w, b, 64) >= 64);
	assert_int_equal(memcg_stat(w->e, b, STAT_PGSTEAL_FILE), w->nr_evicted);
	assert_int_equal(memcg_stat(w->e, a, STAT_PGSTEAL_FILE), w->nr_evicted);
	for (uint32_t i = 0; i < 200; i++)
		if (world_present(w, i))
			assert_int_equal(foliage_folio_remove(w->e, &w->cpu, (foliage_folio)i), 0);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, b), 0);
	assert_int_equal(group(w, 0, "c"), b);
	assert_int_equal(memcg_stat(w->e, a, STAT_PGSTEAL_FILE), w->nr_evicted);
	assert_int_equal(memcg_stat(w->e, b, STAT_PGSTEAL_FILE), 0);
	assert_int_equal(memcg_stat(w->e, 0, STAT_PGSTEAL_FILE), w->nr_evicted);
	check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_order),
		cmocka_unit_test(test_tree_errors),
		cmocka_unit_test(test_slots_and_ids),
		cmocka_unit_test(test_slots_of_dead_families),
		cmocka_unit_test(test_slots_wait_for_sessions),
		cmocka_unit_test(test_protection_ends_with_the_group),
		cmocka_unit_test(test_charge_propagates),
		cmocka_unit_test(test_max_of_ancestor),
		cmocka_unit_test(test_max_out_of_memory),
		cmocka_unit_test(test_high_is_soft),
		cmocka_unit_test(test_protect_scan),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_nested_protection),
		cmocka_unit_test(test_protected_is_skipped),
		cmocka_unit_test(test_stats_survive_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
