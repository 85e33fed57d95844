/* SPDX-License-Identifier: MIT
 *
 * Where a folio enters under mainline and the variants of the threads: the table of B.3, every row
 * of D.1's table, the credits of D.3, and the scanning of D.2.
 */
#include "test_gen_common.h"

/* ---- B.3 and its columns in D.1 ---- */

struct place_row {
	uint64_t flags;
	bool reclaiming;
	int seq[4]; /* with generations 4..7: mglru, revert, quickfix, oneline */
};

static const struct place_row place_rows[] = {
	/* PG_active: 2 - w; the quick fix: file W 1, else 3, anon as ever */
	{F_ACTIVE, false, {6, 6, 5, 6}},
	{F_ACTIVE | R, false, {6, 6, 5, 6}},
	{F_ACTIVE | W, false, {7, 7, 7, 7}},
	{F_ACTIVE | R | W | C(3), false, {7, 7, 7, 7}},
	{F_ACTIVE | F_ANON | F_SWAPBACKED, false, {6, 6, 6, 6}},
	{F_ACTIVE | F_ANON | F_SWAPBACKED | W, false, {7, 7, 7, 7}},
	{F_ACTIVE, true, {6, 6, 5, 6}},
	/* rotated for reclaim: 4 */
	{0, true, {4, 4, 4, 4}},
	{R | W | C(3), true, {4, 4, 4, 4}},
	{F_RECLAIM | F_DIRTY, true, {4, 4, 4, 4}},
	{F_ANON | F_SWAPBACKED, true, {4, 4, 4, 4}},
	/* fresh anon, or reclaim waits for it: 2 */
	{F_ANON | F_SWAPBACKED, false, {6, 6, 6, 6}},
	{F_ANON | F_SWAPBACKED | W, false, {6, 6, 6, 6}},
	{F_RECLAIM | F_DIRTY, false, {6, 6, 6, 6}},
	{F_RECLAIM | F_WRITEBACK, false, {6, 6, 6, 6}},
	{F_RECLAIM, false, {4, 4, 4, 4}},
	{F_DIRTY, false, {4, 4, 4, 4}},
	/* otherwise 4 - (w or R); reverted 4 - w; one line: w or two refs */
	{0, false, {4, 4, 4, 4}},
	{C(3), false, {4, 4, 4, 4}},
	{R, false, {5, 4, 4, 4}},
	{R | C(1), false, {5, 4, 4, 5}},
	{R | C(3), false, {5, 4, 4, 5}},
	{W, false, {5, 5, 5, 5}},
	{F_SWAPBACKED, false, {4, 4, 4, 4}},
	{F_ANON, false, {4, 4, 4, 4}}, /* MADV_FREE */
	{F_ANON | F_SWAPBACKED | F_SWAPCACHE, false, {4, 4, 4, 4}},
	{F_ANON | F_SWAPBACKED | F_SWAPCACHE | R, false, {5, 4, 4, 4}},
	{F_ANON | F_SWAPBACKED | F_SWAPCACHE | W, false, {5, 5, 5, 5}},
};

static void check_place(const char *policy, unsigned int column)
{
	for (uint64_t min_seq = 4; min_seq <= 6; min_seq++) {
		struct world *w = world_window(policy, 7, min_seq);

		for (size_t i = 0; i < ARRAY_SIZE(place_rows); i++) {
			uint64_t flags = place_rows[i].flags;
			uint64_t seq = w->e->ops->rules->place(gen_knobs(w->e), root(w), &flags,
							       place_rows[i].reclaiming);

			/* Clipped at min_seq. */
			if (seq != MAX((uint64_t)place_rows[i].seq[column], min_seq))
				fail_msg("%s, row %zu with min_seq %llu: %llu", policy, i,
					 (unsigned long long)min_seq, (unsigned long long)seq);
		}
		world_free(w);
	}
}

static void test_placement(void **unused)
{
	(void)unused;
	check_place("mglru", 0);
	check_place("mglru-credit", 0);
	check_place("mglru-noio", 0);
	check_place("mglru-revert", 1);
	check_place("mglru-quickfix", 2);
	check_place("mglru-oneline", 3);
	/* The knobs one by one. */
	check_place("mglru-revert:lift=1", 0);
	check_place("mglru:lift=0", 1);
	check_place("mglru-revert:file_far=1", 2);
	check_place("mglru:lift=2", 3);
}

/* Each type is clipped at its own oldest generation. */
static void test_clipped_by_type(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	set_window(w, 7, 6, 4);
	world_add(w, 0, 0);
	world_add(w, 1, FOLIAGE_FOLIO_SHMEM);
	assert_int_equal(world_seq(w, 0), 4);
	assert_int_equal(world_seq(w, 1), 6);
	world_free(w);
}

/* Ordinary adds go to the head, a rotation to the tail; PG_active is gone, refs are not. */
static void test_ends_of_the_list(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	world_add_range(w, 0, 3, 0);
	assert_true(at_head(w, 2));
	assert_true(at_tail(w, 0));
	world_mark(w, 2, 3);
	folio_change(w->e, folio_at(w->e, 2), 0, F_RECLAIM | F_WRITEBACK);
	foliage_folio_end_writeback(w->e, &w->cpu, 2);
	assert_true(at_tail(w, 2));
	assert_int_equal(world_flags(w, 2) & (F_RECLAIM | F_WRITEBACK), 0);
	foliage_folio_activate(w->e, &w->cpu, 0);
	assert_int_equal(world_seq(w, 0), 6);
	assert_int_equal(world_flags(w, 0) & F_ACTIVE, 0);
	world_check(w);
	world_free(w);
}

/* F.5: marked before the batch drains, a page lands second oldest, afterwards in the oldest. */
static void test_drain_timing(void **unused)
{
	static const struct {
		const char *policy;
		int64_t seq[3]; /* marked 0, 1, 2 times before the drain */
	} cases[] = {
		{"mglru", {4, 5, 5}},          {"mglru-revert", {4, 4, 4}},
		{"mglru-quickfix", {4, 4, 4}}, {"mglru-oneline", {4, 4, 5}},
		{"mglru-credit", {4, 5, 5}},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct world_options options = {.policy = cases[i].policy, .batch = 31};
		struct world *w = world_new(&options);

		set_window(w, 7, 4, 4);
		for (uint32_t page = 0; page < 3; page++) {
			world_add(w, page, 0);
			world_mark(w, page, page);
		}
		world_drain(w);
		for (uint32_t page = 0; page < 3; page++) {
			world_mark(w, page, 2);
			assert_int_equal(world_seq(w, page), cases[i].seq[page]);
		}
		world_free(w);
	}
}

/* ---- added in a fault: D.1's first column ---- */

static void test_fault_add(void **unused)
{
	static const struct {
		const char *policy;
		/* file, file with W, fresh anon, swapped-in anon, swapped-in anon with W */
		int64_t seq[5];
		bool marked;
	} cases[] = {
		{"mglru", {5, 7, 6, 5, 7}, true},
		{"mglru-oneline", {4, 7, 6, 4, 7}, true},
		{"mglru-credit", {5, 7, 6, 5, 7}, true},
		{"mglru-noio", {5, 7, 6, 5, 7}, true},
		{"mglru-revert", {6, 7, 6, 6, 7}, false},
		{"mglru-quickfix", {5, 7, 6, 6, 7}, false},
		{"mglru:fault_add=active", {6, 7, 6, 6, 7}, false},
	};
	static const uint32_t flags[] = {0, 0, FOLIAGE_FOLIO_ANON,
					 FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE,
					 FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);

		w->cpu.in_lru_fault = true;
		w->pages[1].shadow = w->pages[4].shadow = make_shadow(w, 0, 4, 1);
		for (uint32_t page = 0; page < 5; page++) {
			world_add(w, page, flags[page]);
			if (world_seq(w, page) != cases[i].seq[page])
				fail_msg("%s, page %u: %lld", cases[i].policy, page,
					 (long long)world_seq(w, page));
		}
		assert_int_equal(refs_bits(w, 0), cases[i].marked ? R : 0);
		assert_int_equal(refs_bits(w, 1), W);
		/* Not while reclaiming, and not the unevictable. */
		w->cpu.in_reclaim = true;
		world_add(w, 5, 0);
		assert_int_equal(world_seq(w, 5), 4);
		assert_int_equal(refs_bits(w, 5), 0);
		w->cpu.in_reclaim = false;
		world_add(w, 6, FOLIAGE_FOLIO_MLOCKED);
		assert_int_equal(world_list(w, 6), LIST_UNEVICTABLE);
		assert_int_equal(refs_bits(w, 6), 0);
		/* Already accessed: not marked twice. */
		if (cases[i].marked) {
			world_add(w, 7, FOLIAGE_FOLIO_ACCESSED);
			assert_int_equal(refs_bits(w, 7), R);
		}
		world_check(w);
		world_free(w);
	}
}

/* The hazard of the quick fix: with three generations its PG_active file folio lands in the
 * oldest. */
static void test_quickfix_three_generations(void **unused)
{
	struct world *w = world_window("mglru-quickfix", 7, 5);

	(void)unused;
	w->cpu.in_lru_fault = true;
	world_add(w, 0, 0);
	assert_int_equal(world_seq(w, 0), 5);
	world_free(w);
}

/* ---- D.3 ---- */

/* A recent file refault in a fault: its pages become credits. */
static void fault_in(struct world *w, uint32_t page, bool recent)
{
	w->cpu.in_lru_fault = true;
	w->pages[page].shadow = recent ? make_shadow(w, 0, 4, 0) : 0;
	world_add(w, page, 0);
	w->cpu.in_lru_fault = false;
}

static int64_t pot(const struct world *w)
{
	return counter_read(&root(w)->gen.ra_credits);
}

static void test_credits(void **unused)
{
	struct world *w = world_window("mglru-credit", 7, 4);

	(void)unused;
	put_range(w, 1000, 1600, 4, 0); /* the cap is 200 */
	fault_in(w, 0, false);
	assert_int_equal(world_seq(w, 0), 5); /* none: as mainline */
	assert_int_equal(refs_bits(w, 0), R);
	fault_in(w, 1, true);
	assert_int_equal(world_seq(w, 1), 6); /* the refault paid for itself */
	assert_int_equal(refs_bits(w, 1), 0);
	assert_int_equal(pot(w), 0);
	/* A read earns nothing. */
	w->pages[2].shadow = make_shadow(w, 0, 4, 0);
	world_add(w, 2, 0);
	assert_int_equal(pot(w), 0);
	/* Anon neither earns nor spends. */
	w->cpu.in_lru_fault = true;
	w->pages[3].shadow = make_shadow(w, 0, 4, 0);
	world_add(w, 3, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	assert_int_equal(pot(w), 0);
	assert_int_equal(world_seq(w, 3), 5);
	atomic_store(&root(w)->gen.ra_credits, 150);
	world_add(w, 4, FOLIAGE_FOLIO_ANON | FOLIAGE_FOLIO_SWAPCACHE);
	assert_int_equal(world_seq(w, 4), 5);
	assert_int_equal(pot(w), 150);
	/* W needs none. */
	w->pages[5].shadow = make_shadow(w, 0, 4, 1);
	atomic_store(&root(w)->gen.ra_credits, 0);
	w->cpu.credits = 0;
	world_add(w, 5, 0);
	assert_int_equal(world_seq(w, 5), 7);
	assert_int_equal(pot(w), 1);
	world_check(w);
	world_free(w);
}

/* Credits are pulled 64 at a time, belong to the lruvec, and are forfeited when the cpu turns to
 * another. */
static void test_credit_batch(void **unused)
{
	static const uint32_t batches[] = {64, 5};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
		char policy[48];
		struct world *w;
		int memcg;

		snprintf(policy, sizeof(policy), "mglru-credit:credit_batch=%u", batches[i]);
		w = world_window(i ? policy : "mglru-credit", 7, 4);
		memcg = foliage_memcg_create(w->e, 0, "a");
		assert_true(memcg > 0);
		atomic_store(&root(w)->gen.ra_credits, 100);
		fault_in(w, 0, false);
		assert_int_equal(world_seq(w, 0), 6);
		assert_int_equal(pot(w), 100 - batches[i]);
		assert_int_equal(w->cpu.credits, batches[i] - 1);
		fault_in(w, 1, false);
		assert_int_equal(pot(w), 100 - batches[i]);
		assert_int_equal(w->cpu.credits, batches[i] - 2);
		w->cpu.in_lru_fault = true;
		world_add_to(w, 2, (uint32_t)memcg, 0, 0, 0, 0);
		assert_int_equal(w->cpu.credits, 0);
		assert_true(world_flags(w, 2) & F_REFERENCED);
		fault_in(w, 3, false);
		assert_int_equal(pot(w), i ? 90 : 0); /* what is left, at most a batch */
		/* A large folio needs as many credits as it has pages. */
		atomic_store(&root(w)->gen.ra_credits, 0);
		w->cpu.credits = 3;
		w->cpu.in_lru_fault = true;
		world_add_to(w, 4, 0, 0, 0, 2, 0);
		assert_int_equal(world_seq(w, 4), 5);
		assert_int_equal(w->cpu.credits, 3);
		w->cpu.credits = 4;
		world_add_to(w, 5, 0, 0, 0, 2, 0);
		assert_int_equal(world_seq(w, 5), 6);
		assert_int_equal(w->cpu.credits, 0);
		world_free(w);
	}
}

static void test_credit_cap_and_decay(void **unused)
{
	static const struct {
		const char *policy;
		int64_t cap, after;
	} cases[] = {
		{"mglru-credit", 4, 50},
		{"mglru-credit:credit_cap=4", 8, 50},
		{"mglru-credit:credit_decay=0", 4, 100},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);

		put_range(w, 100, 32, 4, 0);
		w->cpu.batch = 31;     /* the file pages of the cap stay 32 */
		w->cpu.credits = 1000; /* nobody takes from the pot */
		w->cpu.credit_owner = root(w)->index + 1;
		for (uint32_t page = 0; page < 20; page++)
			fault_in(w, page, true);
		assert_int_equal(pot(w), cases[i].cap);
		world_drain(w);
		atomic_store(&root(w)->gen.ra_credits, 100);
		gen_carry_over(w->e, root(w), TYPE_ANON);
		assert_int_equal(pot(w), 100);
		gen_carry_over(w->e, root(w), TYPE_FILE);
		assert_int_equal(pot(w), cases[i].after);
		world_free(w);
	}
}

/* ---- D.2 ---- */

static int64_t reclaim_without_io(struct world *w)
{
	const struct foliage_reclaim_request request = {
		.nr = 1, .swappiness = 100, .memcg_limit = true, .no_io = true};

	return foliage_reclaim(w->e, &w->cpu, &request);
}

/* 640 anon pages in four generations, file pages in the two youngest only. */
static struct world *noio_world(const char *policy, int64_t swapcache)
{
	struct world *w = world_window(policy, 7, 4);

	set_window(w, 7, 4, 6);
	for (uint32_t i = 0; i < 640; i++)
		put(w, i, FOLIAGE_FOLIO_ANON, 4 + i / 160, 0);
	put_range(w, 1000, 6400, 6, 0);
	w->swapcache = swapcache;
	return w;
}

static uint32_t anon_order_broken(const struct world *w)
{
	uint32_t broken = 0;

	for (uint32_t i = 160; i < 640; i++)
		broken += world_seq(w, i) < world_seq(w, i - 160);
	return broken;
}

/* F.7: file at two generations is aged with the original swappiness, so the anon pages are moved,
 * not aliased. */
static void test_noio(void **unused)
{
	struct world *w = noio_world("mglru-noio", 9); /* 640 / 64 = 10 */

	(void)unused;
	assert_int_equal(reclaim_without_io(w), 1);
	assert_int_equal(stat_of_root(w, STAT_PGSCAN_ANON), 0);
	assert_int_equal(gen_max_seq(root(w)), 8);
	assert_int_equal(gen_min_seq(root(w), TYPE_ANON), 5);
	assert_int_equal(anon_order_broken(w), 0);
	for (uint32_t i = 0; i < 160; i++)
		assert_int_equal(world_seq(w, i), 5);
	world_check(w);
	world_free(w);
}

/* The reviewer's variant passes the restricted swappiness on to aging: the shortcut turns anon
 * upside down. */
static void test_noio_fold(void **unused)
{
	struct world *w = noio_world("mglru-noio:noio_fold=1", 9);

	(void)unused;
	assert_int_equal(reclaim_without_io(w), 1);
	assert_int_equal(gen_max_seq(root(w)), 8);
	for (uint32_t i = 0; i < 160; i++)
		assert_int_equal(world_seq(w, i), 8);
	assert_int_equal(anon_order_broken(w), 160);
	world_free(w);
}

/* Enough swap cache, or I/O allowed: anon is scanned as ever. Without the knob it always is. */
static void test_noio_conditions(void **unused)
{
	static const struct {
		const char *policy;
		int64_t swapcache;
		bool anon;
	} cases[] = {{"mglru-noio", 9, false},
		     {"mglru-noio", 10, true},
		     {"mglru", 0, true},
		     {"mglru-noio:noio=0", 0, true}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_window(cases[i].policy, 7, 4);
		struct scan_control sc;

		/* Anon only: whether it counts says whether the lruvec is worth a visit. */
		for (uint32_t page = 0; page < 640; page++)
			put(w, page, FOLIAGE_FOLIO_ANON, 4, 0);
		w->swapcache = cases[i].swapcache;
		world_scan_control(w, &sc);
		sc.gfp_io = false;
		sc.priority = 2;
		assert_int_equal(gen_is_sizable(w->e, root(w), &sc), cases[i].anon);
		sc.gfp_io = true;
		assert_true(gen_is_sizable(w->e, root(w), &sc));
		/* Anon-only requests are left alone. */
		sc.gfp_io = false;
		sc.swappiness = SWAPPINESS_ANON_ONLY;
		assert_true(gen_is_sizable(w->e, root(w), &sc));
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_clipped_by_type),
		cmocka_unit_test(test_ends_of_the_list),
		cmocka_unit_test(test_drain_timing),
		cmocka_unit_test(test_fault_add),
		cmocka_unit_test(test_quickfix_three_generations),
		cmocka_unit_test(test_credits),
		cmocka_unit_test(test_credit_batch),
		cmocka_unit_test(test_credit_cap_and_decay),
		cmocka_unit_test(test_noio),
		cmocka_unit_test(test_noio_fold),
		cmocka_unit_test(test_noio_conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
