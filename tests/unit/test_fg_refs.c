/* SPDX-License-Identifier: MIT
 *
 * FG's counter: C.1 (tiers), C.2 with every tail mode and scope, C.3, and the first rows of C.9.
 */
#include "test_gen_common.h"

struct step {
	int64_t seq;
	unsigned int refs;
};

static void expect(const struct world *w, uint32_t page, int64_t seq, unsigned int refs)
{
	if (world_seq(w, page) != seq || world_refs(w, page) != refs)
		fail_msg("page %u: generation %lld, %u refs; expected %lld, %u", page,
			 (long long)world_seq(w, page), world_refs(w, page), (long long)seq, refs);
}

static void climb(struct world *w, uint32_t page, const struct step *steps, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		world_mark(w, page, 1);
		expect(w, page, steps[i].seq, steps[i].refs);
	}
	world_check(w);
}

/* ---- F.1, F.2 ---- */

static void test_ladder_min(void **unused)
{
	static const struct step steps[] = {
		{5, 1}, {5, 2}, {5, 3}, {5, 4}, {5, 5}, {5, 6}, {5, 7}, {6, 3}, {6, 4}, {6, 5},
		{6, 6}, {6, 7}, {7, 3}, {7, 4}, {7, 5}, {7, 6}, {7, 7}, {7, 7}, {7, 7},
	};
	struct world *w = world_window("fg:tail_mode=min", 7, 4);

	(void)unused;
	put(w, 0, 0, 5, 0);
	climb(w, 0, steps, ARRAY_SIZE(steps));
	assert_int_equal(stat_of_root(w, STAT_PROMOTED), 2);
	world_free(w);
}

static void test_ladder_tail(void **unused)
{
	static const struct step steps[] = {
		{5, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 5}, {6, 6}, {6, 7}, {7, 3}, {7, 4},
	};
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 5, 0);
	climb(w, 0, steps, ARRAY_SIZE(steps));
	world_free(w);
}

static void test_oldest(void **unused)
{
	static const char *const modes[] = {"fg", "fg:tail_mode=min", "fg:tail_mode=list",
					    "fg:tail_mode=min_both"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct world *w = world_window(modes[i], 7, 4);

		put(w, 0, 0, 4, 1);
		put(w, 1, 0, 4, 0);
		put(w, 2, 0, 4, 6);
		world_mark(w, 0, 1);
		world_mark(w, 1, 1);
		world_mark(w, 2, 1);
		expect(w, 0, 5, 2);
		expect(w, 1, 4, 1);
		expect(w, 2, 5, 3); /* a deferral caps */
		evict(w, 64);
		assert_true(world_present(w, 0));
		assert_false(world_present(w, 1));
		assert_true(world_present(w, 2));
		world_check(w);
		world_free(w);
	}
}

/* The list stays where it is until eviction passes by. */
static void test_move_is_lazy(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 1);
	world_mark(w, 0, 1);
	assert_int_equal(world_seq(w, 0), 5);
	assert_int_equal(list_seq(w, 0), 4);
	assert_int_equal(counter_read(&root(w)->gen.nr_pages[gen_of(4)][TYPE_FILE][0]), 0);
	assert_int_equal(counter_read(&root(w)->gen.nr_pages[gen_of(5)][TYPE_FILE][0]), 1);
	evict(w, 64);
	assert_int_equal(list_seq(w, 0), 5);
	assert_int_equal(world_refs(w, 0), 2);
	world_free(w);
}

/* ---- tail modes: which of the generations defer the second access ---- */

static void test_tail_modes(void **unused)
{
	/* File is at 4..7, anon at 5..7. */
	static const struct {
		const char *policy;
		bool file[4], anon[3];
	} modes[] = {
		{"fg:tail_mode=tail", {true, true, false, false}, {true, false, false}},
		{"fg:tail_mode=min", {true, false, false, false}, {true, false, false}},
		{"fg:tail_mode=min_both", {true, false, false, false}, {false, false, false}},
		{"fg:tail_mode=list", {true, false, false, false}, {true, false, false}},
	};

	(void)unused;
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		struct world *w = world_window(modes[m].policy, 7, 4);

		set_window(w, 7, 5, 4);
		for (uint32_t i = 0; i < 4; i++) {
			put(w, i, 0, 4 + i, 1);
			world_mark(w, i, 1);
			expect(w, i, 4 + i + modes[m].file[i], 2);
		}
		for (uint32_t i = 0; i < 3; i++) {
			put(w, 8 + i, FOLIAGE_FOLIO_ANON, 5 + i, 1);
			world_mark(w, 8 + i, 1);
			expect(w, 8 + i, 5 + i + modes[m].anon[i], 2);
		}
		world_check(w);
		world_free(w);
	}
}

/* `list` looks at where the folio lies, not at its flag: one that rose already is deferred again.
 */
static void test_tail_list_follows_the_list(void **unused)
{
	struct world *w = world_window("fg:tail_mode=list", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 1);
	put(w, 1, 0, 5, 0); /* keeps the window open */
	world_mark(w, 0, 2);
	expect(w, 0, 6, 3);
	evict(w, 64);
	world_mark(w, 0, 1);
	expect(w, 0, 6, 4);
	world_free(w);
}

/* With three generations tail and min coincide; with two, tail defers nothing. */
static void test_tail_small_windows(void **unused)
{
	struct world *w = world_window("fg", 7, 5);

	(void)unused;
	put(w, 0, 0, 5, 1);
	put(w, 1, 0, 6, 1);
	world_mark(w, 0, 1);
	world_mark(w, 1, 1);
	expect(w, 0, 6, 2);
	expect(w, 1, 6, 2);
	world_free(w);
	w = world_window("fg", 7, 6);
	put(w, 0, 0, 6, 1);
	world_mark(w, 0, 1);
	expect(w, 0, 6, 2);
	world_free(w);
	w = world_window("fg:tail_mode=min", 7, 6);
	put(w, 0, 0, 6, 1);
	world_mark(w, 0, 1);
	expect(w, 0, 7, 2);
	world_free(w);
}

/* ---- the other knobs of C.2 ---- */

static void test_refs_max(void **unused)
{
	static const unsigned int max[] = {3, 7, 12, 15};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(max); i++) {
		char policy[32];
		struct world *w;

		snprintf(policy, sizeof(policy), "fg:refs_max=%u", max[i]);
		w = world_window(policy, 7, 4);
		put(w, 0, 0, 6, 0);
		world_mark(w, 0, max[i]);
		expect(w, 0, 6, max[i]);
		world_mark(w, 0, 1);
		expect(w, 0, 7, 3);
		world_mark(w, 0, 20);
		expect(w, 0, 7, max[i]);
		world_check(w);
		world_free(w);
	}
}

/* More than 7 refs do not fit in a shadow, and are of the top tier. */
static void test_refs_max_shadow(void **unused)
{
	struct world *w = world_window("fg:refs_max=15,cap_refault=7", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 15);
	assert_int_equal(w->e->ops->rules->tier(world_flags(w, 0)), 3);
	evict(w, 64);
	assert_int_equal(evicted(w, TYPE_FILE, 3), 1);
	world_add(w, 0, 0);
	assert_int_equal(world_refs(w, 0), 7);
	world_free(w);
}

static void test_cap_promote(void **unused)
{
	static const unsigned int caps[] = {0, 2, 3, 5};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		char policy[64];
		struct world *w;

		snprintf(policy, sizeof(policy), "fg:cap_promote=%u", caps[i]);
		w = world_window(policy, 7, 4);
		put(w, 0, 0, 6, 7);
		put(w, 1, 0, 4, 5);
		put(w, 2, 0, 4, 1);
		for (uint32_t page = 0; page < 3; page++)
			world_mark(w, page, 1);
		expect(w, 0, 7, caps[i]);
		expect(w, 1, 5, caps[i]);
		expect(w, 2, 5, MIN(2u, caps[i]));
		world_check(w);
		world_free(w);
	}
}

/* ---- C.2 rules 1 and 2, and who does not count ---- */

static void test_in_the_batch(void **unused)
{
	const struct world_options options = {.batch = 31};
	struct world *w = world_new(&options);

	(void)unused;
	world_add(w, 0, 0);
	world_mark(w, 0, 9);
	expect(w, 0, -1, 7);
	assert_int_equal(counter_read(&root(w)->gen.nr_active[TYPE_FILE]), 0);
	world_drain(w);
	assert_int_equal(counter_read(&root(w)->gen.nr_active[TYPE_FILE]), 1);
	world_check(w);
	world_free(w);
}

static void test_ignored(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	uint64_t before;

	(void)unused;
	world_add(w, 0, FOLIAGE_FOLIO_MLOCKED);
	world_add(w, 1, FOLIAGE_FOLIO_DROPBEHIND);
	world_mark(w, 0, 3);
	world_mark(w, 1, 3);
	assert_int_equal(world_refs(w, 0), 0);
	assert_int_equal(world_refs(w, 1), 0);
	before = world_flags(w, 2);
	world_mark(w, 2, 3); /* was never here */
	assert_int_equal(world_flags(w, 2), before);
	world_free(w);
}

/* ---- page tables: F.3 ---- */

static void look(struct world *w, uint32_t page, bool exec)
{
	w->e->ops->walk_young(w->e, root(w), (folio_id)page, exec);
}

static void test_walk_scope_all(void **unused)
{
	struct world *w = world_window("fg:pt_promote_scope=all", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 0);
	look(w, 0, false);
	expect(w, 0, 5, 1);
	look(w, 0, false);
	expect(w, 0, 7, 2);
	look(w, 0, false);
	expect(w, 0, 7, 3);
	for (int i = 0; i < 9; i++)
		look(w, 0, false);
	expect(w, 0, 7, 7);
	put(w, 1, FOLIAGE_FOLIO_EXEC, 4, 0);
	look(w, 1, true);
	expect(w, 1, 7, 1);
	put(w, 2, FOLIAGE_FOLIO_ANON, 4, 0); /* exec counts for files only */
	look(w, 2, true);
	expect(w, 2, 5, 1);
	put(w, 3, 0, 6, 0);
	look(w, 3, false);
	expect(w, 3, 7, 1);
	put(w, 4, 0, 4, 5);
	look(w, 4, false);
	expect(w, 4, 7, 3); /* capped */
	world_check(w);
	world_free(w);
}

static void test_walk_scope_tail(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 0);
	look(w, 0, false);
	expect(w, 0, 5, 1);
	look(w, 0, false);
	expect(w, 0, 7, 2);
	put(w, 1, 0, 6, 0);
	look(w, 1, false);
	expect(w, 1, 6, 1);
	for (int i = 0; i < 9; i++)
		look(w, 1, false);
	expect(w, 1, 6, 7);
	put(w, 2, FOLIAGE_FOLIO_EXEC, 6, 0);
	look(w, 2, true);
	expect(w, 2, 6, 1);
	world_check(w);
	world_free(w);
}

static void test_walk_scope_min(void **unused)
{
	struct world *w = world_window("fg:pt_promote_scope=min", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 0);
	put(w, 1, 0, 5, 1);
	look(w, 0, false);
	look(w, 1, false);
	expect(w, 0, 5, 1);
	expect(w, 1, 5, 2);
	look(w, 0, false);
	expect(w, 0, 5, 2);
	world_check(w);
	world_free(w);
}

/* Look-around without a walk buffer is the same (C.9). */
static void test_neighbour(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 0);
	put(w, 1, FOLIAGE_FOLIO_EXEC, 5, 0);
	w->e->ops->neighbour_young(w->e, &w->cpu, 0, false);
	w->e->ops->neighbour_young(w->e, &w->cpu, 1, true);
	expect(w, 0, 5, 1);
	expect(w, 1, 7, 1);
	assert_int_equal(w->cpu.nr_activate, 0);
	world_free(w);
}

/* The walk that raced with another one's aging uses the window of now: no stamp outside it. */
static void test_walk_reads_the_window_late(void **unused)
{
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	put(w, 0, 0, 6, 1);
	set_window(w, 8, 5, 5);
	look(w, 0, false);
	expect(w, 0, 8, 2);
	world_free(w);
}

/* ---- tiers ---- */

static void test_tiers(void **unused)
{
	static const unsigned int tiers[16] = {0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
	struct world *w = world_window("fg", 7, 4);

	(void)unused;
	for (unsigned int refs = 0; refs < 16; refs++)
		assert_int_equal(
			w->e->ops->rules->tier(flags_with_fg_refs(F_PRESENT | F_LRU, refs)),
			tiers[refs]);
	world_free(w);
}

/* ---- the table of the hit path against the rules it is made from ---- */

static void ignore_event(void *ctx, folio_id id, int what, int why, int64_t from, int64_t to,
			 unsigned int refs_from, unsigned int refs_to)
{
	unsigned int *events = ctx;

	(void)id;
	(void)what;
	(void)why;
	(void)from;
	(void)to;
	(void)refs_from;
	(void)refs_to;
	(*events)++;
}

static void compare_paths(const char *policy, uint64_t max_seq, uint64_t min_anon,
			  uint64_t min_file)
{
	struct world *fast = world_window(policy, max_seq, min_file),
		     *slow = world_window(policy, max_seq, min_file);
	unsigned int events = 0;
	uint32_t page = 0;

	set_window(fast, max_seq, min_anon, min_file);
	set_window(slow, max_seq, min_anon, min_file);
	slow->e->event = ignore_event;
	slow->e->event_ctx = &events;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		for (uint64_t seq = type ? min_file : min_anon; seq <= max_seq; seq++)
			for (unsigned int refs = 0; refs <= 7; refs++, page++) {
				uint32_t flags = type ? 0 : FOLIAGE_FOLIO_ANON;

				put(fast, page, flags, seq, refs);
				put(slow, page, flags, seq, refs);
				world_mark(fast, page, 1);
				world_mark(slow, page, 1);
				if ((world_flags(fast, page) ^ world_flags(slow, page)) &
				    (F_GEN_MASK | F_REFS_MASK))
					fail_msg("%s, type %u, seq %llu, refs %u: %#llx or %#llx",
						 policy, type, (unsigned long long)seq, refs,
						 (unsigned long long)world_flags(fast, page),
						 (unsigned long long)world_flags(slow, page));
			}
	if (events <= page)
		fail_msg("%s: %u events of %u pages", policy, events, page);
	assert_int_equal(stat_of_root(fast, STAT_PROMOTED), stat_of_root(slow, STAT_PROMOTED));
	world_check(fast);
	world_check(slow);
	world_free(fast);
	world_free(slow);
}

static void test_hit_path_is_the_rules(void **unused)
{
	static const char *const policies[] = {"fg", "fg:tail_mode=min", "fg:tail_mode=min_both",
					       "fg:activated=3,cap_promote=1"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		compare_paths(policies[i], 7, 4, 4);
		compare_paths(policies[i], 7, 5, 4);
		compare_paths(policies[i], 8, 5, 6);
		compare_paths(policies[i], 9, 8, 8);
	}
}

/* A run stops at the first page that is not there, having marked those before it. */
static void test_run(void **unused)
{
	static const char *const policies[] = {"fg", "fg:tail_mode=list"};
	static const uint32_t ids[] = {0, 1, 0, 2, 9, 1};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);

		put_range(w, 0, 3, 6, 0);
		assert_int_equal(w->e->ops->mark_run(w->e, &w->cpu, ids, ARRAY_SIZE(ids)), 4);
		expect(w, 0, 6, 2);
		expect(w, 1, 6, 1);
		expect(w, 2, 6, 1);
		assert_int_equal(w->e->ops->mark_run(w->e, &w->cpu, ids, 2), 2);
		expect(w, 0, 6, 3);
		world_check(w);
		world_free(w);
	}
}

/* A saturated folio in the youngest generation: nothing is written, not even the same word. */
static void test_no_write_without_change(void **unused)
{
	const struct world_options options = {.policy = "fg", .nr_folios = 64, .threads = true};
	struct world *w = world_new(&options);
	uint64_t before;

	(void)unused;
	set_window(w, 7, 4, 4);
	put(w, 0, 0, 7, 7);
	before = world_flags(w, 0);
	world_mark(w, 0, 3);
	assert_int_equal(world_flags(w, 0), before);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ladder_min),
		cmocka_unit_test(test_ladder_tail),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_move_is_lazy),
		cmocka_unit_test(test_tail_modes),
		cmocka_unit_test(test_tail_list_follows_the_list),
		cmocka_unit_test(test_tail_small_windows),
		cmocka_unit_test(test_refs_max),
		cmocka_unit_test(test_refs_max_shadow),
		cmocka_unit_test(test_cap_promote),
		cmocka_unit_test(test_in_the_batch),
		cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_walk_scope_all),
		cmocka_unit_test(test_walk_scope_tail),
		cmocka_unit_test(test_walk_scope_min),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_walk_reads_the_window_late),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_hit_path_is_the_rules),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_no_write_without_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
