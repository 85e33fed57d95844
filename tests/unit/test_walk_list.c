/* SPDX-License-Identifier: MIT
 *
 * Which processes an aging walk visits (B.9): the list, its cursor, "ran", force_scan, one finisher
 * a walk, and who comes and goes meanwhile.
 *
 * Each process maps one page of its own; whether its young bit was taken tells whether the walk
 * came by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "tests/support/world.h"

enum { NR = 4 };

struct fixture {
	struct world *w;
	uint32_t mm[NR];
	uint32_t added, removed;
};

static void add_process(struct world *w, uint32_t memcg, uint32_t *mm, uint32_t page)
{
	*mm = world_mm(w, memcg);
	world_vma(w, *mm, 512 + page, 1, 0);
	world_add_to(w, page, memcg, 0, 0, 0, 0);
	world_map(w, *mm, 512 + page, page);
}

static void setup_policy(struct fixture *f, const char *policy, bool no_walk)
{
	const struct world_options options = {
		.policy = policy, .nr_folios = 4096, .max_memcgs = 4, .no_walk = no_walk};

	*f = (struct fixture){.w = world_new(&options)};
	f->w->test = f;
	for (uint32_t i = 0; i < NR; i++)
		add_process(f->w, 0, &f->mm[i], i);
}

static void touch_all(struct fixture *f)
{
	for (uint32_t i = 0; i < NR; i++)
		world_touch(f->w, f->mm[i], 512 + i, false);
}

/* A bit for each of the first NR processes that was visited since touch_all(). */
static unsigned int visited(const struct fixture *f)
{
	unsigned int bits = 0;

	for (uint32_t i = 0; i < NR; i++)
		bits |= (unsigned int)!world_young(f->w, f->mm[i], 512 + i) << i;
	return bits;
}

static bool walk_of(struct world *w, uint32_t memcg, uint64_t seq, bool force)
{
	struct scan_control sc;

	world_scan_control(w, &sc);
	return walk_mms(w->e, world_lruvec(w, memcg, 0), &sc, seq, 60, force);
}

/* A whole aging: walk, open the next generation, touch everything again. */
static unsigned int age(struct fixture *f, bool force)
{
	struct lruvec *lv = world_lruvec(f->w, 0, 0);
	uint64_t seq = gen_max_seq(lv);
	unsigned int bits;

	touch_all(f);
	assert_true(walk_of(f->w, 0, seq, force));
	bits = visited(f);
	assert_true(gen_inc_max_seq(f->w->e, lv, seq, 60));
	world_check(f->w);
	return bits;
}

static void test_first_pass_visits_all(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	/* None of them ever ran: they are new. */
	assert_int_equal(age(&f, false), 0xf);
	assert_int_equal(f.w->nr_mm_locks, NR);
	assert_int_equal(f.w->mm_locked, 0);
	world_free(f.w);
}

static void test_only_who_ran(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	age(&f, false);
	assert_int_equal(age(&f, false), 0);
	foliage_mm_ran(f.w->e, f.mm[1]);
	foliage_mm_ran(f.w->e, f.mm[3]);
	assert_int_equal(age(&f, false), 0xa);
	/* The visit took the mark. */
	assert_int_equal(age(&f, false), 0);
	world_free(f.w);
}

static void test_force_scan_visits_all(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	age(&f, false);
	foliage_mm_ran(f.w->e, f.mm[2]);
	assert_int_equal(age(&f, true), 0xf);
	assert_int_equal(age(&f, false), 0); /* a forced visit takes the mark as well */
	world_free(f.w);
}

/* "ran" is per node: the walk of one node leaves it to the other. */
static void test_ran_is_per_node(void **unused)
{
	const struct world_options options = {.policy = "mglru", .nr_folios = 64, .nr_nodes = 2};
	struct world *w = world_new(&options);
	struct scan_control sc;
	uint32_t mm;

	(void)unused;
	world_scan_control(w, &sc);
	mm = world_mm(w, 0);
	world_vma(w, mm, 0, 2, 0);
	for (uint32_t node = 0; node < 2; node++) {
		world_add_to(w, node, 0, node, 0, 0, 0);
		world_map(w, mm, node, node);
	}
	for (uint64_t seq = 3; seq < 5; seq++) {
		foliage_mm_ran(w->e, mm);
		for (uint32_t node = 0; node < 2; node++) {
			world_touch(w, mm, 0, false);
			world_touch(w, mm, 1, false);
			assert_true(walk_mms(w->e, world_lruvec(w, 0, node), &sc, seq, 60, false));
			/* Only folios of the walked node are looked at. */
			assert_false(world_young(w, mm, node));
			assert_true(world_young(w, mm, !node));
		}
		for (uint32_t node = 0; node < 2; node++)
			assert_true(gen_inc_max_seq(w->e, world_lruvec(w, 0, node), seq, 60));
	}
	world_check(w);
	world_free(w);
}

/* While the first process is being visited, another one comes. */
static void add_mid_walk(struct world *w, uint32_t mm, uint64_t pmd)
{
	struct fixture *f = w->test;
	uint32_t page = 100;

	(void)pmd;
	if (f->added || mm != f->mm[0])
		return;
	add_process(w, 0, &f->added, page);
	world_touch(w, f->added, 512 + page, false);
	*world_pmd_young(w, f->added, 512 + page) = false;
}

static void test_added_mid_walk_forces_scan(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	age(&f, false);
	foliage_mm_ran(f.w->e, f.mm[0]);
	f.w->on_mapping = add_mid_walk;
	/* It never ran, its table looks unused, and is walked all the same. Who came before it is
	 * not. */
	assert_int_equal(age(&f, false), 0x1);
	assert_true(f.added != 0);
	assert_false(world_young(f.w, f.added, 512 + 100));
	/* By the next pass it is one of the others. */
	world_touch(f.w, f.added, 512 + 100, false);
	assert_int_equal(age(&f, false), 0);
	assert_true(world_young(f.w, f.added, 512 + 100));
	world_free(f.w);
}

static void test_all_new_ones_are_forced(void **unused)
{
	struct fixture f;
	uint32_t mm[3];

	(void)unused;
	setup_policy(&f, "mglru", false);
	age(&f, false);
	for (uint32_t i = 0; i < 3; i++) {
		add_process(f.w, 0, &mm[i], 200 + i);
		world_touch(f.w, mm[i], 512 + 200 + i, false);
	}
	assert_int_equal(age(&f, false), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(world_young(f.w, mm[i], 512 + 200 + i));
	world_free(f.w);
}

static void test_busy_is_left_out(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	f.w->mm_busy = true;
	assert_int_equal(age(&f, false), 0);
	f.w->mm_busy = false;
	/* Left out of that generation altogether: the visit counts as made. */
	assert_int_equal(age(&f, false), 0);
	world_free(f.w);
}

static void test_one_finisher(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	assert_true(walk_of(f.w, 0, 3, false));
	assert_false(walk_of(f.w, 0, 3, false));
	assert_false(walk_skip(f.w->e, world_lruvec(f.w, 0, 0), 3));
	world_age_to(f.w, 0, 4);
	/* The past is past, and the future not yet. */
	assert_false(walk_of(f.w, 0, 3, false));
	assert_false(walk_of(f.w, 0, 5, false));
	assert_true(walk_skip(f.w->e, world_lruvec(f.w, 0, 0), 4));
	assert_false(walk_skip(f.w->e, world_lruvec(f.w, 0, 0), 4));
	assert_false(walk_of(f.w, 0, 4, false));
	world_free(f.w);
}

static void test_no_processes(void **unused)
{
	const struct world_options options = {.policy = "mglru", .nr_folios = 64};
	struct world *w = world_new(&options);

	(void)unused;
	assert_true(walk_of(w, 0, 3, false));
	assert_false(walk_of(w, 0, 3, false));
	world_free(w);
}

/* A backend without page tables, and the cap that forbids the walk: one caller a seq, nothing read.
 */
static void test_walk_impossible(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", true);
	assert_int_equal(age(&f, true), 0);
	assert_false(walk_of(f.w, 0, 3, true));
	assert_int_equal(f.w->nr_mm_locks, 0);
	world_free(f.w);

	setup_policy(&f, "mglru", false);
	f.w->e->caps &= ~(uint32_t)FOLIAGE_LRU_GEN_MM_WALK;
	assert_int_equal(age(&f, true), 0);
	assert_int_equal(f.w->nr_next_mappings, 0);
	world_free(f.w);
}

/* Whoever needed the walk has its buffer for the rest of the session. */
static void test_walk_leaves_a_buffer(void **unused)
{
	struct fixture f;
	struct scan_control sc;

	(void)unused;
	setup_policy(&f, "mglru", false);
	world_scan_control(f.w, &sc);
	walk_mms(f.w->e, world_lruvec(f.w, 0, 0), &sc, 3, 60, false);
	assert_non_null(sc.walk);
	/* Who came too late to walk has none. */
	world_scan_control(f.w, &sc);
	walk_mms(f.w->e, world_lruvec(f.w, 0, 0), &sc, 3, 60, false);
	assert_null(sc.walk);
	world_free(f.w);

	setup_policy(&f, "mglru", true);
	world_scan_control(f.w, &sc);
	walk_mms(f.w->e, world_lruvec(f.w, 0, 0), &sc, 3, 60, false);
	assert_null(sc.walk);
	world_free(f.w);
}

static void open_generation(struct world *w)
{
	struct lruvec *lv = world_lruvec(w, 0, 0);

	w->on_yield = NULL;
	gen_inc_max_seq(w->e, lv, gen_max_seq(lv), 60);
}

static void test_stops_when_max_seq_moves(void **unused)
{
	struct fixture f;

	(void)unused;
	setup_policy(&f, "mglru", false);
	touch_all(&f);
	f.w->on_yield = open_generation;
	assert_false(walk_of(f.w, 0, 3, false));
	assert_int_equal(visited(&f), 0x1);
	/* The walk for the new generation starts from the first process. */
	touch_all(&f);
	assert_true(walk_of(f.w, 0, 4, true));
	assert_int_equal(visited(&f), 0xf);
	world_free(f.w);
}

/* Yields come with nothing locked: processes may exit then, the walked one too. */
static void exit_mid_walk(struct world *w)
{
	struct fixture *f = w->test;

	assert_int_equal(w->mm_locked, 0);
	w->on_yield = NULL;
	f->removed = f->mm[0];
	world_mm_exit(w, f->mm[0]);
	/* Its number is not handed out while the walker still holds it. */
	f->added = world_mm(w, 0);
	assert_int_not_equal(f->added, f->removed);
}

static void test_exit_mid_walk(void **unused)
{
	struct fixture f;
	uint32_t reused;

	(void)unused;
	setup_policy(&f, "mglru", false);
	touch_all(&f);
	f.w->on_yield = exit_mid_walk;
	assert_true(walk_of(f.w, 0, 3, false));
	for (uint32_t i = 1; i < NR; i++)
		assert_false(world_young(f.w, f.mm[i], 512 + i));
	reused = world_mm(f.w, 0);
	assert_int_equal(reused, f.removed);
	assert_int_equal(f.w->e->memcgs[0].nr_mms, NR + 1);
	world_free(f.w);
}

/* Removal anywhere in the list keeps cursor and end mark right. */
static void test_remove_any(void **unused)
{
	(void)unused;
	for (uint32_t gone = 0; gone < NR; gone++) {
		struct fixture f;
		unsigned int others = 0xfu & ~(1u << gone);

		setup_policy(&f, "mglru", false);
		age(&f, false);
		world_mm_exit(f.w, f.mm[gone]);
		foliage_mm_remove(f.w->e, f.mm[gone]); /* twice: harmless */
		for (uint32_t i = 0; i < NR; i++)
			if (i != gone) {
				foliage_mm_ran(f.w->e, f.mm[i]);
				world_touch(f.w, f.mm[i], 512 + i, false);
			}
		assert_true(walk_of(f.w, 0, 4, false));
		for (uint32_t i = 0; i < NR; i++)
			if (others >> i & 1)
				assert_false(world_young(f.w, f.mm[i], 512 + i));
		world_free(f.w);
	}
}

static void test_numbers(void **unused)
{
	const struct world_options options = {.policy = "mglru", .nr_folios = 64, .max_memcgs = 2};
	struct world *w = world_new(&options);

	(void)unused;
	assert_int_equal(foliage_mm_add(w->e, 7), -EINVAL);
	assert_int_equal(foliage_mm_add(w->e, 1), -ENOENT);
	foliage_mm_remove(w->e, 12345);
	foliage_mm_ran(w->e, 12345);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(foliage_mm_add(w->e, 0), i);
	for (uint32_t i = 0; i < 1000; i++)
		foliage_mm_remove(w->e, i);
	assert_int_equal(w->e->memcgs[0].nr_mms, 0);
	assert_true(walk_of(w, 0, 3, false));
	world_free(w);
}

static void test_memcgs_apart(void **unused)
{
	struct fixture f;
	uint32_t mm, group;

	(void)unused;
	setup_policy(&f, "mglru", false);
	group = (uint32_t)foliage_memcg_create(f.w->e, 0, "group");
	add_process(f.w, group, &mm, 100);
	/* A page of the group, mapped by a process of the root as well. */
	world_vma(f.w, f.mm[0], 2048, 512, 0);
	world_map(f.w, f.mm[0], 2048, 100);
	touch_all(&f);
	world_touch(f.w, mm, 512 + 100, false);
	world_touch(f.w, f.mm[0], 2048, false);
	assert_true(walk_of(f.w, 0, 3, false));
	assert_int_equal(visited(&f), 0xf);
	assert_true(world_young(f.w, mm, 512 + 100));
	assert_true(world_young(f.w, f.mm[0], 2048));
	assert_true(walk_of(f.w, group, 3, false));
	assert_false(world_young(f.w, mm, 512 + 100));
	assert_true(world_young(f.w, f.mm[0], 2048));
	world_free(f.w);
}

/* Removing a memcg moves its processes to the parent, where they are new. */
static void test_reparent(void **unused)
{
	struct fixture f;
	uint32_t mm, group;

	(void)unused;
	setup_policy(&f, "mglru", false);
	group = (uint32_t)foliage_memcg_create(f.w->e, 0, "group");
	add_process(f.w, group, &mm, 100);
	age(&f, false);
	assert_int_equal(foliage_memcg_remove(f.w->e, &f.w->cpu, group), 0);
	assert_int_equal(f.w->e->memcgs[group].nr_mms, 0);
	assert_int_equal(f.w->e->memcgs[0].nr_mms, NR + 1);
	world_touch(f.w, mm, 512 + 100, false);
	assert_int_equal(age(&f, false), 0);
	assert_false(world_young(f.w, mm, 512 + 100));
	world_free(f.w);
}

/* A switch restarts the sequence numbers: walks go on. */
static void test_policy_switch(void **unused)
{
	struct fixture f;
	char message[128];

	(void)unused;
	setup_policy(&f, "mglru", false);
	age(&f, false);
	assert_int_equal(foliage_engine_switch(f.w->e, &f.w->cpu, "fg", message, sizeof(message)),
			 0);
	assert_int_equal(age(&f, false), 0xf);
	age(&f, false);
	age(&f, false);
	assert_int_equal(
		foliage_engine_switch(f.w->e, &f.w->cpu, "mglru-6.12", message, sizeof(message)),
		0);
	assert_int_equal(age(&f, false), 0xf);
	world_free(f.w);
}

/* After a gigabyte and 4096 moved pages the process is let go, and the walk resumes where it was.
 */
static void test_lets_go_at_gigabytes(void **unused)
{
	static const struct {
		uint32_t pages, locks;
	} cases[] = {{4094, 1}, {4095, 2}, {4096, 2}, {5000, 2}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct world_options options = {.policy = "mglru-6.12", .nr_folios = 8192};
		struct world *w = world_new(&options);
		uint32_t mm = world_mm(w, 0), n = cases[i].pages;

		world_vma(w, mm, 0, WORLD_VPAGES, 0);
		world_add_range(w, 0, n + 2, 0);
		for (uint32_t page = 0; page < n; page++)
			world_map(w, mm, page, page);
		world_map(w, mm, 1 << 18, n);
		world_map(w, mm, 2 << 18, n + 1);
		for (uint32_t page = 0; page < n; page++)
			world_touch(w, mm, page, false);
		world_touch(w, mm, 1 << 18, false);
		world_touch(w, mm, 2 << 18, false);
		assert_true(walk_of(w, 0, 3, false));
		assert_int_equal(w->nr_mm_locks, cases[i].locks);
		assert_int_equal(w->nr_yields, cases[i].locks);
		for (uint32_t page = 0; page < n + 2; page++)
			assert_int_equal(world_seq(w, page), 3);
		assert_false(world_young(w, mm, 2 << 18));
		world_check(w);
		world_free(w);
	}
}

/* The same inside one process: where it was let go, the walk ends. */
static void test_stops_inside_a_process(void **unused)
{
	const struct world_options options = {.policy = "mglru-6.12", .nr_folios = 8192};
	struct world *w = world_new(&options);
	uint32_t mm = world_mm(w, 0);

	(void)unused;
	world_vma(w, mm, 0, WORLD_VPAGES, 0);
	world_add_range(w, 0, 5001, 0);
	for (uint32_t page = 0; page < 5000; page++) {
		world_map(w, mm, page, page);
		world_touch(w, mm, page, false);
	}
	world_map(w, mm, 1 << 18, 5000);
	world_touch(w, mm, 1 << 18, false);
	w->on_yield = open_generation;
	assert_false(walk_of(w, 0, 3, false));
	assert_false(world_young(w, mm, 0));
	assert_true(world_young(w, mm, 1 << 18));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_pass_visits_all),
		cmocka_unit_test(test_only_who_ran),
		cmocka_unit_test(test_force_scan_visits_all),
		cmocka_unit_test(test_ran_is_per_node),
		cmocka_unit_test(test_added_mid_walk_forces_scan),
		cmocka_unit_test(test_all_new_ones_are_forced),
		cmocka_unit_test(test_busy_is_left_out),
		cmocka_unit_test(test_one_finisher),
		cmocka_unit_test(test_no_processes),
		cmocka_unit_test(test_walk_impossible),
		cmocka_unit_test(test_walk_leaves_a_buffer),
		cmocka_unit_test(test_stops_when_max_seq_moves),
		cmocka_unit_test(test_exit_mid_walk),
		cmocka_unit_test(test_remove_any),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_memcgs_apart),
		cmocka_unit_test(test_reparent),
		cmocka_unit_test(test_policy_switch),
		cmocka_unit_test(test_lets_go_at_gigabytes),
		cmocka_unit_test(test_stops_inside_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
