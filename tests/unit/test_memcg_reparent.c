/* SPDX-License-Identifier: MIT
 *
 * Removing a memcg (B.14, C.11), and changing the policy of a running engine (B.14): wherever a
 * folio is at that moment (on any list, promoted but not moved yet, unevictable, in a batch) it is
 * not lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "mm/memcg.h"
#include "mm/policies.h"
#include "mm/shadow.h"
#include "tests/support/world.h"

static void check(struct world *w)
{
	struct err err = {{0}};

	world_check(w);
	if (memcg_is_valid(w->e, &err))
		fail_msg("%s: %s", w->e->policy->name, err.text);
}

static struct world *two_groups(const char *policy)
{
	struct world *w = world_new(&(struct world_options){
		.policy = policy, .nr_folios = 8192, .max_memcgs = 3, .nr_zones = 2});

	assert_int_equal(foliage_memcg_create(w->e, 0, "a"), 1);
	assert_int_equal(foliage_memcg_create(w->e, 1, "b"), 2);
	return w;
}

/* Pages on the lists of the group's own lruvec. */
static uint64_t on_lists(struct world *w, uint32_t memcg)
{
	struct lruvec *lv = world_lruvec(w, memcg, 0);

	return w->e->ops->size(w->e, lv, TYPE_ANON) + w->e->ops->size(w->e, lv, TYPE_FILE) +
	       counter_size(&lv->clru.size[LIST_UNEVICTABLE]);
}

/* 600 pages of every kind in group 2: both types, both zones, large, mlocked, dirty; some used a
 * lot. */
static void populate(struct world *w)
{
	for (uint32_t i = 0; i < 600; i++) {
		uint32_t flags = 0;

		if (i % 3 == 0)
			flags |= FOLIAGE_FOLIO_ANON;
		if (i % 7 == 0)
			flags |= FOLIAGE_FOLIO_MLOCKED;
		if (i % 5 == 0)
			flags |= FOLIAGE_FOLIO_DIRTY;
		world_add_to(w, i, 2, 0, i % 2, i % 11 == 0 ? 3 : 0, flags);
	}
	for (uint32_t i = 0; i < 600; i += 2)
		world_mark(w, i, i % 9);
}

static int64_t pages_of_600(struct world *w)
{
	int64_t pages = 0;

	for (uint32_t i = 0; i < 600; i++) {
		assert_true(world_present(w, i));
		pages += flags_nr(world_flags(w, i));
	}
	return pages;
}

static const struct foliage_policy *engine_policy(size_t i)
{
	for (size_t at = 0; foliage_policies[at]; at++)
		if (foliage_policies[at]->engine && !i--)
			return foliage_policies[at];
	return NULL;
}

static void test_remove_keeps_every_folio(void **state)
{
	const struct foliage_policy *policy;

	(void)state;
	for (size_t p = 0; (policy = engine_policy(p)); p++) {
		struct world *w = two_groups(policy->name);
		int64_t pages;

		populate(w);
		check(w);
		pages = pages_of_600(w);
		assert_int_equal(on_lists(w, 2), pages);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
		check(w);
		assert_int_equal(pages_of_600(w), pages);
		assert_int_equal(foliage_memcg_usage(w->e, 1), pages);
		if (w->e->ops->reparent) {
			assert_int_equal(on_lists(w, 2), 0);
			assert_int_equal(on_lists(w, 1), pages);
		}
		/* Every page can still be taken off, used, and added anew; the slot is free when
		 * all of them have left. */
		for (uint32_t i = 0; i < 600; i++) {
			world_mark(w, i, 1);
			assert_int_equal(foliage_memcg_create(w->e, 0, "c"), -ENOSPC);
			assert_int_equal(foliage_folio_remove(w->e, &w->cpu, (foliage_folio)i), 0);
		}
		check(w);
		assert_int_equal(foliage_memcg_usage(w->e, 0), 0);
		assert_int_equal(foliage_memcg_create(w->e, 0, "c"), 2);
		world_add_to(w, 0, 2, 0, 0, 0, 0);
		assert_int_equal(on_lists(w, 2), 1);
		check(w);
		world_free(w);
	}
}

/* A removed group's clean file pages are reclaimed through the parent, whichever way the policy
 * keeps them. */
static void test_removed_pages_are_reclaimed(void **state)
{
	const struct foliage_policy *policy;

	(void)state;
	for (size_t p = 0; (policy = engine_policy(p)); p++) {
		struct world *w = two_groups(policy->name);

		for (uint32_t i = 0; i < 300; i++)
			world_add_to(w, i, 2, 0, 0, 0, 0);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
		for (int i = 0; i < 40 && foliage_memcg_usage(w->e, 1); i++)
			world_reclaim(w, 1, 32);
		assert_int_equal(foliage_memcg_usage(w->e, 1), 0);
		check(w);
		assert_int_equal(foliage_memcg_create(w->e, 0, "c"), 2);
		world_free(w);
	}
}

/* Lazy promotion leaves a folio on the list of a generation that its own lruvec may have closed
 * since. */
static void test_lazily_placed(void **state)
{
	static const char *const policies[] = {"fg", "mglru"};

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = two_groups(policies[p]);
		struct lruvec *child = world_lruvec(w, 2, 0), *parent = world_lruvec(w, 1, 0);
		uint32_t away = 0;

		/* The parent is at another place in its count. */
		world_age_to(w, 1, 9);
		for (uint32_t i = 0; i < 64; i++)
			world_add_to(w, i, 2, 0, 0, 0, 0);
		for (uint32_t i = 0; i < 32; i++)
			w->e->ops->walk_young(w->e, child, (folio_id)i, true);
		for (uint32_t i = 0; i < 32; i++)
			away += world_list(w, i) !=
				gen_list(flags_gen(world_flags(w, i)), TYPE_FILE, 0);
		assert_int_equal(away, 32);
		check(w);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
		check(w);
		assert_int_equal(gen_nr(parent, TYPE_FILE), MAX_NR_GENS);
		assert_int_equal(gen_nr(parent, TYPE_ANON), MAX_NR_GENS);
		assert_int_equal(on_lists(w, 1), 64);
		/* Same generation index in the parent's window. */
		for (uint32_t i = 0; i < 32; i++)
			assert_int_equal(flags_gen(world_flags(w, i)), gen_of(MIN_NR_GENS + 1));
		for (int i = 0; i < 40 && on_lists(w, 1); i++)
			world_reclaim(w, 1, 32);
		assert_int_equal(on_lists(w, 1), 0);
		check(w);
		world_free(w);
	}
}

/* A folio that waits in a batch lands at the parent when it drains; one that is added to the dead
 * group does too. */
static void test_batches_and_late_comers(void **state)
{
	const struct foliage_policy *policy;

	(void)state;
	for (size_t p = 0; (policy = engine_policy(p)); p++) {
		struct world *w = world_new(&(struct world_options){
			.policy = policy->name, .nr_folios = 256, .max_memcgs = 3, .batch = 31});
		struct foliage_cpu other = {0};
		uint32_t home;

		assert_int_equal(foliage_memcg_create(w->e, 0, "a"), 1);
		assert_int_equal(foliage_memcg_create(w->e, 1, "b"), 2);
		for (foliage_folio i = 0; i < 5; i++)
			assert_int_equal(foliage_folio_add(w->e, &other, i, 2, 0, 0, 0, 0, 0), 0);
		world_add_to(w, 5, 2, 0, 0, 0, 0);
		assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
		world_add_to(w, 6, 2, 0, 0, 0, 0);
		foliage_cpu_exit(w->e, &other);
		world_drain(w);
		home = w->e->ops->reparent ? 1 : 2;
		for (uint32_t i = 0; i < 7; i++)
			assert_ptr_equal(folio_lruvec(w->e, folio_at(w->e, (folio_id)i)),
					 world_lruvec(w, home, 0));
		assert_int_equal(on_lists(w, home), 7);
		check(w);
		world_free(w);
	}
}

/* Nobody recognises the shadow of a group that has gone, not even the next tenant of its slot. */
static void test_shadows_vanish(void **state)
{
	struct world *w = two_groups("fg");
	uint32_t victim = 0;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		world_add_to(w, i, 2, 0, 0, 0, 0);
		world_set_refs(w, i, 1);
	}
	world_reclaim(w, 2, 64);
	while (world_present(w, victim))
		victim++;
	assert_ptr_equal(shadow_lruvec(w->e, w->pages[victim].shadow), world_lruvec(w, 2, 0));
	for (uint32_t i = 0; i < 200; i++)
		if (world_present(w, i))
			foliage_folio_remove(w->e, &w->cpu, (foliage_folio)i);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
	assert_null(shadow_lruvec(w->e, w->pages[victim].shadow));
	assert_int_equal(foliage_memcg_create(w->e, 0, "c"), 2);
	assert_null(shadow_lruvec(w->e, w->pages[victim].shadow));
	world_add_to(w, victim, 2, 0, 0, 0, 0);
	assert_int_equal(world_refs(w, victim), 0);
	check(w);
	world_free(w);
}

static void test_processes_move(void **state)
{
	struct world *w = two_groups("fg");
	uint32_t mm = world_mm(w, 2);

	(void)state;
	assert_int_equal(w->e->memcgs[2].nr_mms, 1);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 2), 0);
	assert_int_equal(w->e->memcgs[2].nr_mms, 0);
	assert_int_equal(w->e->memcgs[1].nr_mms, 1);
	assert_int_equal(foliage_mm_add(w->e, 2), -ENOENT);
	world_mm_exit(w, mm);
	assert_int_equal(w->e->memcgs[1].nr_mms, 0);
	check(w);
	world_free(w);
}

/* ---- switching ---- */

static void test_switch_keeps_every_folio(void **state)
{
	const struct foliage_policy *from, *to;
	char message[200];

	(void)state;
	for (size_t p = 0; (from = engine_policy(p)); p++) {
		for (size_t q = 0; (to = engine_policy(q)); q++) {
			struct world *w = two_groups(from->name);
			int64_t pages;

			populate(w);
			world_reclaim(w, 2, 1); /* leaves marks of all sorts */
			for (uint32_t i = 0; i < 600; i++)
				if (!world_present(w, i))
					world_add_to(w, i, 2, 0, i % 2, i % 11 == 0 ? 3 : 0, 0);
			pages = pages_of_600(w);
			assert_int_equal(foliage_engine_switch(w->e, &w->cpu, to->name, message,
							       sizeof(message)),
					 0);
			assert_ptr_equal(w->e->policy, to);
			check(w);
			assert_int_equal(pages_of_600(w), pages);
			assert_int_equal(on_lists(w, 2), pages);
			for (uint32_t i = 0; i < 600; i++)
				world_mark(w, i, 2);
			world_reclaim(w, 2, 64);
			check(w);
			assert_int_equal(foliage_engine_switch(w->e, &w->cpu, from->name, message,
							       sizeof(message)),
					 0);
			check(w);
			world_free(w);
		}
	}
}

static void test_switch_refuses(void **state)
{
	struct world *w = two_groups("fg");
	char message[200];

	(void)state;
	populate(w);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "lirs", message, sizeof(message)),
			 -EINVAL);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "gf", message, sizeof(message)),
			 -ENOENT);
	assert_non_null(strstr(message, "gf"));
	assert_string_equal(w->e->policy->name, "fg");
	assert_int_equal(on_lists(w, 2), pages_of_600(w));
	check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remove_keeps_every_folio),
		cmocka_unit_test(test_removed_pages_are_reclaimed),
		cmocka_unit_test(test_lazily_placed),
		cmocka_unit_test(test_batches_and_late_comers),
		cmocka_unit_test(test_shadows_vanish),
		cmocka_unit_test(test_processes_move),
		cmocka_unit_test(test_switch_keeps_every_folio),
		cmocka_unit_test(test_switch_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
