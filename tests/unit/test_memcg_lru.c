/* SPDX-License-Identifier: MIT
 *
 * The memcg LRU (B.11): where each operation puts a memcg, when the generations advance, what
 * shrink_one answers, and that global reclaim gets round. And min_ttl_ms (B.12).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "mm/memcg.h"
#include "mm/reclaim.h"
#include "tests/support/world.h"

enum { GROUPS = 6 };

static void check(struct world *w)
{
	struct err err = {{0}};

	world_check(w);
	if (memcg_is_valid(w->e, &err))
		fail_msg("%s", err.text);
}

/* A world with groups 1..GROUPS below the root. */
static struct world *crowd(const char *policy, uint64_t seed)
{
	struct world *w = world_new(&(struct world_options){
		.policy = policy, .nr_folios = 65536, .max_memcgs = GROUPS + 1, .seed = seed});

	for (int i = 1; i <= GROUPS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "g%d", i);
		assert_int_equal(foliage_memcg_create(w->e, 0, name), i);
	}
	return w;
}

static struct lru_gen *gen_state(struct world *w, uint32_t memcg)
{
	return &world_lruvec(w, memcg, 0)->gen;
}

static bool first_in_bin(struct world *w, uint32_t memcg)
{
	const struct lru_gen *g = gen_state(w, memcg);

	return w->e->nodes[0].memcg_bins[g->memcg_gen][g->memcg_bin] == (int32_t)memcg;
}

static bool last_in_bin(struct world *w, uint32_t memcg)
{
	const struct lru_gen *g = gen_state(w, memcg);

	return w->e->lruvecs[w->e->nodes[0].memcg_bins[g->memcg_gen][g->memcg_bin]]
		       .gen.memcg_prev == (int32_t)memcg;
}

static void test_online(void **state)
{
	struct world *w = crowd("fg", 1);
	uint32_t bins = 0;

	(void)state;
	for (uint32_t i = 0; i <= GROUPS; i++) {
		assert_int_equal(gen_state(w, i)->memcg_gen, 0);
		assert_int_equal(gen_state(w, i)->memcg_seg, MEMCG_LRU_DEFAULT);
		bins |= 1u << gen_state(w, i)->memcg_bin;
	}
	assert_int_equal(w->e->nodes[0].memcg_nr[0], GROUPS + 1);
	assert_int_equal(w->e->nodes[0].memcg_seq, 0);
	/* random bins, not one */
	assert_true(__builtin_popcount(bins) > 1);
	check(w);
	world_free(w);
}

static void test_ops(void **state)
{
	struct world *w = crowd("fg", 2);

	(void)state;
	/* Often enough that ends of shared bins are met. */
	for (int round = 0; round < 50; round++) {
		uint32_t a = 1 + (uint32_t)round % GROUPS;
		struct lruvec *lv = world_lruvec(w, a, 0);

		memcg_lru_rotate(w->e, lv, MEMCG_LRU_HEAD);
		assert_int_equal(lv->gen.memcg_gen, 0);
		assert_int_equal(lv->gen.memcg_seg, MEMCG_LRU_SEG_HEAD);
		assert_true(first_in_bin(w, a));
		memcg_lru_rotate(w->e, lv, MEMCG_LRU_TAIL);
		assert_int_equal(lv->gen.memcg_gen, 0);
		assert_int_equal(lv->gen.memcg_seg, MEMCG_LRU_SEG_TAIL);
		assert_true(last_in_bin(w, a));
		memcg_lru_rotate(w->e, lv, MEMCG_LRU_NOP);
		assert_int_equal(lv->gen.memcg_seg, MEMCG_LRU_SEG_TAIL);
		memcg_lru_rotate(w->e, lv, MEMCG_LRU_YOUNG);
		assert_int_equal(lv->gen.memcg_gen, 1);
		assert_int_equal(lv->gen.memcg_seg, MEMCG_LRU_DEFAULT);
		assert_true(last_in_bin(w, a));
		memcg_lru_rotate(w->e, lv, MEMCG_LRU_OLD);
		assert_int_equal(lv->gen.memcg_gen, 0);
		assert_int_equal(lv->gen.memcg_seg, MEMCG_LRU_DEFAULT);
		assert_true(first_in_bin(w, a));
		check(w);
	}
	assert_int_equal(w->e->nodes[0].memcg_seq, 0);
	world_free(w);
}

static void test_seq_advances_when_old_is_empty(void **state)
{
	struct world *w = crowd("fg", 3);

	(void)state;
	for (uint32_t i = 0; i <= GROUPS; i++) {
		assert_int_equal(w->e->nodes[0].memcg_seq, 0);
		memcg_lru_rotate(w->e, world_lruvec(w, i, 0), MEMCG_LRU_YOUNG);
	}
	assert_int_equal(w->e->nodes[0].memcg_seq, 1);
	assert_int_equal(w->e->nodes[0].memcg_nr[1], GROUPS + 1);
	memcg_lru_rotate(w->e, world_lruvec(w, 1, 0), MEMCG_LRU_YOUNG);
	assert_int_equal(gen_state(w, 1)->memcg_gen, 2);
	/* A group that goes offline while young is brought back to the old ones; removal by a
	 * policy that reparents takes it off altogether. */
	memcg_lru_offline(w->e, 1);
	assert_int_equal(gen_state(w, 1)->memcg_gen, 1);
	check(w);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 1), 0);
	assert_int_equal(w->e->nodes[0].memcg_nr[1], GROUPS);
	/* Nothing happens to one that is gone. */
	memcg_lru_rotate(w->e, world_lruvec(w, 1, 0), MEMCG_LRU_YOUNG);
	assert_int_equal(w->e->nodes[0].memcg_nr[1] + w->e->nodes[0].memcg_nr[2], GROUPS);
	check(w);
	world_free(w);
}

static void global_reclaim(struct world *w, uint64_t nr)
{
	struct foliage_reclaim_request request = {.nr = nr, .swappiness = -1};

	assert_true(foliage_reclaim(w->e, &w->cpu, &request) >= 0);
}

/* Nobody is starved or plundered: of groups of one size none loses three times what another does.
 */
static void test_global_reclaim_gets_round(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12"};

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = crowd(policies[p], 4 + p);
		uint32_t least = UINT32_MAX, most = 0;

		for (uint32_t i = 0; i < 8000 * GROUPS; i++)
			world_add_to(w, i, 1 + i % GROUPS, 0, 0, 0, 0);
		for (int i = 0; i < 300; i++) {
			global_reclaim(w, 32);
			check(w);
		}
		assert_true(w->nr_evicted >= 300 * 32);
		for (uint32_t i = 1; i <= GROUPS; i++) {
			uint32_t lost = 8000 - (uint32_t)foliage_memcg_usage(w->e, i);

			least = MIN(least, lost);
			most = MAX(most, lost);
		}
		assert_true(most < 3 * least);
		world_free(w);
	}
}

static void test_shrink_moves(void **state)
{
	struct world *w = crowd("fg", 7);
	struct scan_control sc;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		world_add_to(w, i, 1, 0, 0, 0, 0);
	for (uint32_t i = 0; i < 100; i++)
		world_add_to(w, 1000 + i, 2, 0, 0, 0, 0);
	assert_int_equal(foliage_memcg_set(w->e, 1, FOLIAGE_MIN, 100), 0);
	assert_int_equal(foliage_memcg_set(w->e, 2, FOLIAGE_LOW, 100), 0);
	world_scan_control(w, &sc);
	sc.root_reclaim = true;
	sc.target = 0;
	sc.nr_to_reclaim = 1000000;
	sc.priority = DEF_PRIORITY;
	memcg_lru_shrink(w->e, &sc);
	/* Below min: young at once. Below low: to the tail, where it is met again unless that bin
	 * was past. Too small to scan at this priority (the empty ones): likewise tail, then young.
	 *  */
	assert_int_equal(gen_state(w, 1)->memcg_gen,
			 (w->e->nodes[0].memcg_seq + (w->e->nodes[0].memcg_seq == 0)) % 3);
	assert_int_equal(w->nr_evicted, 0);
	for (uint32_t i = 2; i <= GROUPS; i++)
		assert_true(gen_state(w, i)->memcg_gen == 1 ||
			    gen_state(w, i)->memcg_seg == MEMCG_LRU_SEG_TAIL);
	check(w);
	/* Once all have been seen twice, everybody is in the young generation, which thereby is the
	 * old one. */
	for (int i = 0; i < 2 && w->e->nodes[0].memcg_seq == 0; i++)
		memcg_lru_shrink(w->e, &sc);
	assert_true(w->e->nodes[0].memcg_seq > 0);
	check(w);
	world_free(w);
}

/* The same seed walks the same way. */
static void test_deterministic(void **state)
{
	uint32_t evictions[2][2000];

	(void)state;
	for (int run = 0; run < 2; run++) {
		struct world *w = crowd("fg", 11);

		for (uint32_t i = 0; i < 2000; i++)
			world_add_to(w, i, 1 + i % GROUPS, 0, 0, 0, 0);
		for (int i = 0; i < 20; i++)
			global_reclaim(w, 32);
		for (uint32_t i = 0; i < 2000; i++)
			evictions[run][i] = w->pages[i].eviction_nr;
		world_free(w);
	}
	assert_memory_equal(evictions[0], evictions[1], sizeof(evictions[0]));
}

/* ---- B.12 ---- */

static void kswapd(struct world *w)
{
	struct foliage_reclaim_request request = {.nr = 32, .swappiness = -1, .kswapd = true};

	assert_true(foliage_reclaim(w->e, &w->cpu, &request) >= 0);
}

static bool ttl_ok(struct world *w, int priority)
{
	struct scan_control sc;

	world_scan_control(w, &sc);
	sc.root_reclaim = true;
	sc.target = 0;
	sc.priority = priority;
	return lru_gen_min_ttl_ok(w->e, &sc);
}

static void test_min_ttl(void **state)
{
	struct world *w = crowd("fg", 5);

	(void)state;
	w->now_ms = 5000;
	for (uint32_t i = 0; i < 8192; i++)
		world_add_to(w, i, 1 + i % 2, 0, 0, 0, 0);
	assert_true(ttl_ok(w, 0)); /* off */
	assert_int_equal(foliage_lru_gen_set(w->e, "min_ttl_ms", "6000"), 0);
	/* The oldest generation was born at 0: 5,000 ms ago. It must be older than that. */
	assert_false(ttl_ok(w, 0));
	w->now_ms = 6000;
	assert_false(ttl_ok(w, 0));
	w->now_ms = 6001;
	assert_true(ttl_ok(w, 0));
	/* 4096 pages each: worth a look at priority 12, but not when they are protected; empty
	 * groups are not. */
	assert_true(ttl_ok(w, DEF_PRIORITY));
	assert_int_equal(foliage_memcg_set(w->e, 1, FOLIAGE_MIN, 8192), 0);
	assert_true(ttl_ok(w, DEF_PRIORITY));
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 1), 0);
	assert_false(ttl_ok(w, DEF_PRIORITY));
	assert_true(ttl_ok(w, DEF_PRIORITY - 1));
	world_free(w);
}

static void test_min_ttl_kills(void **state)
{
	struct world *w = crowd("fg", 6);

	(void)state;
	for (uint32_t i = 0; i < 2000; i++)
		world_add_to(w, i, 1, 0, 0, 0, 0);
	assert_int_equal(foliage_lru_gen_set(w->e, "min_ttl_ms", "1000"), 0);
	w->now_ms = 500;
	kswapd(w);
	assert_int_equal(w->nr_oom, 1);
	assert_int_equal(w->nr_evicted, 0);
	/* Only kswapd asks. */
	global_reclaim(w, 32);
	assert_int_equal(w->nr_oom, 1);
	assert_true(w->nr_evicted >= 32);
	w->now_ms = 100000;
	kswapd(w);
	assert_int_equal(w->nr_oom, 1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_online),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_seq_advances_when_old_is_empty),
		cmocka_unit_test(test_global_reclaim_gets_round),
		cmocka_unit_test(test_shrink_moves),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_min_ttl),
		cmocka_unit_test(test_min_ttl_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
