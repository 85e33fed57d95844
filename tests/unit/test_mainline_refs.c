/* SPDX-License-Identifier: MIT
 *
 * Mainline's access counter (B.2), the survivors of eviction that it decides on (B.4), and its
 * refault (B.7); with the variants that differ there (D.1).
 */
#include "test_gen_common.h"

/* ---- fd accesses ---- */

/* R, then C 1..3, then W: five accesses saturate. No generation changes. */
static void test_ladder(void **unused)
{
	static const uint64_t steps[] = {
		R, R | C(1), R | C(2), R | C(3), R | C(3) | W, R | C(3) | W, R | C(3) | W,
	};
	static const unsigned int tiers[] = {0, 1, 2, 2, 3, 3, 3};
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	for (uint64_t seq = 4; seq <= 7; seq++) {
		uint32_t page = (uint32_t)seq;

		put(w, page, 0, seq, 0);
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
			world_mark(w, page, 1);
			assert_int_equal(refs_bits(w, page), steps[i]);
			assert_int_equal(w->e->ops->rules->tier(world_flags(w, page)), tiers[i]);
			assert_int_equal(w->e->ops->rules->saturated(world_flags(w, page)), i >= 4);
			assert_int_equal(world_seq(w, page), seq);
		}
	}
	world_check(w);
	world_free(w);
}

/* C means nothing while R is clear, and the first access zeroes it. */
static void test_stale_counter(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	put(w, 0, 0, 4, 3 << 2);
	assert_int_equal(refs_bits(w, 0), C(3));
	assert_int_equal(w->e->ops->rules->tier(world_flags(w, 0)), 0);
	world_mark(w, 0, 1);
	assert_int_equal(refs_bits(w, 0), R);
	put(w, 1, 0, 4, 2);
	assert_int_equal(w->e->ops->rules->tier(world_flags(w, 1)), 3); /* W alone */
	assert_false(w->e->ops->rules->saturated(world_flags(w, 1)));
	world_free(w);
}

static void test_ignored(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	world_add(w, 0, FOLIAGE_FOLIO_MLOCKED);
	world_add(w, 1, FOLIAGE_FOLIO_DROPBEHIND);
	world_mark(w, 0, 9);
	world_mark(w, 1, 9);
	assert_int_equal(refs_bits(w, 0), 0);
	assert_int_equal(refs_bits(w, 1), 0);
	world_free(w);
}

static void test_run(void **unused)
{
	static const char *const policies[] = {"mglru", "mglru-6.12"};
	static const uint64_t twice[] = {R | C(1), R | W};
	static const uint32_t ids[] = {0, 1, 0, 9, 1};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct world *w = world_window(policies[i], 7, 4);

		put_range(w, 0, 2, 6, 0);
		assert_int_equal(w->e->ops->mark_run(w->e, &w->cpu, ids, ARRAY_SIZE(ids)), 3);
		assert_int_equal(refs_bits(w, 0), twice[i]);
		assert_int_equal(refs_bits(w, 1), R);
		world_free(w);
	}
}

/* ---- the aging walk ---- */

static void test_walk(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	void (*look)(struct foliage_engine *, struct lruvec *, folio_id, bool) =
		w->e->ops->walk_young;

	(void)unused;
	put(w, 0, 0, 4, 3 << 2);
	look(w->e, root(w), 0, false);
	assert_int_equal(world_seq(w, 0), 4);
	assert_int_equal(refs_bits(w, 0), R);
	look(w->e, root(w), 0, false);
	assert_int_equal(world_seq(w, 0), 7);
	assert_int_equal(refs_bits(w, 0), W);
	put(w, 1, FOLIAGE_FOLIO_EXEC, 4, 0);
	look(w->e, root(w), 1, true);
	assert_int_equal(world_seq(w, 1), 7);
	assert_int_equal(refs_bits(w, 1), W);
	put(w, 2, FOLIAGE_FOLIO_ANON, 4, 0);
	look(w->e, root(w), 2, true);
	assert_int_equal(world_seq(w, 2), 4);
	put(w, 3, 0, 5, 2); /* W alone is known */
	look(w->e, root(w), 3, false);
	assert_int_equal(world_seq(w, 3), 7);
	assert_int_equal(list_seq(w, 3), 5);
	assert_int_equal(stat_of_root(w, STAT_PROMOTED), 3);
	world_check(w);
	world_free(w);
}

/* ---- rmap: the isolated folio and the neighbours ---- */

struct rmap_case {
	uint64_t before;
	bool exec;
	enum references out;
	uint64_t after;
};

static void check_rmap(const char *policy, const struct rmap_case *cases, size_t nr)
{
	struct world *w = world_window(policy, 7, 4);
	struct scan_control sc;

	world_scan_control(w, &sc);
	for (uint32_t i = 0; i < nr; i++) {
		const struct referenced ref = {.ptes = 1, .exec = cases[i].exec};
		uint32_t queued = w->cpu.nr_activate;

		put(w, i, 0, 4, (unsigned int)(cases[i].before >> F_REFS_SHIFT));
		if (w->e->ops->references(w->e, &sc, (folio_id)i, &ref) != cases[i].out ||
		    refs_bits(w, i) != cases[i].after)
			fail_msg("%s, case %u: refs %#llx", policy, i,
				 (unsigned long long)refs_bits(w, i));
		/* A neighbour: the same, and promotion goes through the activate batch. */
		put(w, 100 + i, 0, 4, (unsigned int)(cases[i].before >> F_REFS_SHIFT));
		w->e->ops->neighbour_young(w->e, &w->cpu, (folio_id)(100 + i), cases[i].exec);
		assert_int_equal(refs_bits(w, 100 + i), cases[i].after);
		assert_int_equal(world_seq(w, 100 + i), 4);
		assert_int_equal(w->cpu.nr_activate - queued, cases[i].out == REFERENCES_ACTIVATE);
		world_drain(w);
		if (cases[i].out == REFERENCES_ACTIVATE)
			assert_int_equal(world_seq(w, 100 + i), cases[i].after & W ? 7 : 6);
	}
	world_check(w);
	world_free(w);
}

static void test_rmap(void **unused)
{
	static const struct rmap_case cases[] = {
		{0, false, REFERENCES_KEEP, R},
		{C(2), false, REFERENCES_KEEP, R},
		{0, true, REFERENCES_ACTIVATE, W},
		{R, false, REFERENCES_ACTIVATE, R | C(1)}, /* refs 1: only one more access */
		{R | C(1), false, REFERENCES_ACTIVATE, W},
		{R | C(3), false, REFERENCES_ACTIVATE, W},
		{W, false, REFERENCES_ACTIVATE, R | W}, /* refs 0 */
		{R | W, false, REFERENCES_ACTIVATE, R | C(1) | W},
		{R | C(3) | W, false, REFERENCES_ACTIVATE, W},
	};

	(void)unused;
	check_rmap("mglru", cases, ARRAY_SIZE(cases));
	check_rmap("mglru-oneline", cases, ARRAY_SIZE(cases));
	check_rmap("mglru-credit", cases, ARRAY_SIZE(cases));
	check_rmap("mglru-noio", cases, ARRAY_SIZE(cases));
}

/* Before 6cbdd9726fb5 the second look sets W whatever was counted. */
static void test_rmap_reverted(void **unused)
{
	static const struct rmap_case cases[] = {
		{0, false, REFERENCES_KEEP, R},     {0, true, REFERENCES_ACTIVATE, W},
		{R, false, REFERENCES_ACTIVATE, W}, {R | C(1), false, REFERENCES_ACTIVATE, W},
		{W, false, REFERENCES_ACTIVATE, W},
	};

	(void)unused;
	check_rmap("mglru-revert", cases, ARRAY_SIZE(cases));
	check_rmap("mglru-quickfix", cases, ARRAY_SIZE(cases));
	check_rmap("mglru:rmap_refs=0", cases, ARRAY_SIZE(cases));
}

static void test_rmap_other_answers(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	const struct referenced none = {0}, contended = {.contended = true};
	const struct referenced code = {.ptes = 1, .exec = true};
	struct scan_control sc;

	(void)unused;
	world_scan_control(w, &sc);
	put(w, 0, 0, 4, 15);
	assert_int_equal(w->e->ops->references(w->e, &sc, 0, &none), REFERENCES_RECLAIM);
	assert_int_equal(w->e->ops->references(w->e, &sc, 0, &contended), REFERENCES_KEEP);
	assert_int_equal(refs_bits(w, 0), R | W | C(3));
	put(w, 1, FOLIAGE_FOLIO_ANON, 4, 0); /* code is files only */
	assert_int_equal(w->e->ops->references(w->e, &sc, 1, &code), REFERENCES_KEEP);
	assert_int_equal(refs_bits(w, 1), R);
	world_free(w);
}

/* B.4: isolation forgets C where R is clear, and nothing else. */
static void test_isolation(void **unused)
{
	struct world *w = world_window("mglru", 7, 4);
	uint64_t (*isolate)(uint64_t) = w->e->ops->rules->isolate;

	(void)unused;
	assert_int_equal(isolate(C(2)), 0);
	assert_int_equal(isolate(W | C(2)), W);
	assert_int_equal(isolate(R | C(2)), R | C(2));
	assert_int_equal(isolate(R | W | C(3)), R | W | C(3));
	world_free(w);
}

/* ---- refaults ---- */

/* Evict a page with `refs`, bring it back, and say what it came back with. */
static uint64_t come_back(const char *policy, unsigned int refs, bool fault, int64_t *activated,
			  int64_t *restored)
{
	struct world *w = world_window(policy, 7, 4);
	uint64_t bits;

	put(w, 0, 0, 4, refs);
	put(w, 1, 0, 4, 0);
	evict(w, 1);
	assert_true(w->pages[0].shadow);
	w->cpu.in_lru_fault = fault;
	w->cpu.batch = 31; /* the batch keeps what the refault left */
	world_add(w, 0, 0);
	bits = refs_bits(w, 0);
	*activated = stat_of_root(w, STAT_ACTIVATE_FILE);
	*restored = stat_of_root(w, STAT_RESTORE_FILE);
	assert_int_equal(stat_of_root(w, STAT_REFAULT_FILE), 1);
	world_drain(w);
	world_free(w);
	return bits;
}

/* Only W survives eviction: C is restored, but means nothing until R is set, which zeroes it. */
static void test_refault(void **unused)
{
	static const struct {
		unsigned int before;
		uint64_t after;
	} cases[] = {
		{0, 0}, {1, 0}, {1 | 1 << 2, C(1)}, {1 | 2 << 2, C(2)}, {1 | 3 << 2, C(3)},
		{2, W}, {3, W}, {3 | 2 << 2, W},
	};
	int64_t activated, restored;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool workingset = cases[i].before & 2;

		assert_int_equal(come_back("mglru", cases[i].before, false, &activated, &restored),
				 cases[i].after);
		assert_int_equal(activated, 0);
		assert_int_equal(restored, workingset);
		/* In a fault the statistic rises for W alone, as the commit has it. */
		come_back("mglru", cases[i].before, true, &activated, &restored);
		assert_int_equal(activated, workingset);
		assert_int_equal(restored, workingset);
		come_back("mglru-revert", cases[i].before, true, &activated, &restored);
		assert_int_equal(activated, 1);
		assert_int_equal(restored, workingset);
		come_back("mglru-quickfix", cases[i].before, true, &activated, &restored);
		assert_int_equal(activated, 1);
		come_back("mglru:restore_only=0", cases[i].before, true, &activated, &restored);
		assert_int_equal(activated, 1);
		come_back("mglru-revert", cases[i].before, false, &activated, &restored);
		assert_int_equal(activated, 0);
	}
}

/* F.4's round trip for mainline: tier and refs in the shadow. */
static void test_token(void **unused)
{
	static const struct {
		uint64_t flags;
		unsigned int low, w, tier;
	} rows[] = {
		{0, 0, 0, 0},        {C(3), 0, 0, 0},     {R, 0, 0, 0},
		{R | C(1), 1, 0, 1}, {R | C(2), 2, 0, 2}, {R | C(3), 3, 0, 2},
		{W, 0, 1, 3},        {R | W, 0, 1, 3},    {R | W | C(2), 2, 1, 3},
	};
	struct world *w = world_window("mglru", 7, 4);

	(void)unused;
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		put(w, i, 0, 4, (unsigned int)(rows[i].flags >> F_REFS_SHIFT));
	put(w, 100, 0, 4, 0);
	evict(w, ARRAY_SIZE(rows));
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t shadow = w->pages[i].shadow;
		int64_t before = refaulted(w, TYPE_FILE, rows[i].tier);

		assert_int_equal(shadow_time(shadow), 4 << 2 | rows[i].low);
		assert_int_equal(shadow_workingset(shadow), rows[i].w);
		world_add(w, i, 0);
		assert_int_equal(refaulted(w, TYPE_FILE, rows[i].tier), before + 1);
	}
	assert_int_equal(evicted(w, TYPE_FILE, 0), 3);
	assert_int_equal(evicted(w, TYPE_FILE, 1), 1);
	assert_int_equal(evicted(w, TYPE_FILE, 2), 2);
	assert_int_equal(evicted(w, TYPE_FILE, 3), 3);
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ladder),        cmocka_unit_test(test_stale_counter),
		cmocka_unit_test(test_ignored),       cmocka_unit_test(test_run),
		cmocka_unit_test(test_walk),          cmocka_unit_test(test_rmap),
		cmocka_unit_test(test_rmap_reverted), cmocka_unit_test(test_rmap_other_answers),
		cmocka_unit_test(test_isolation),     cmocka_unit_test(test_refault),
		cmocka_unit_test(test_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
