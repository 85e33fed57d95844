/* SPDX-License-Identifier: MIT
 *
 * The engine's life and a folio's: bad arguments, folios that leave from wherever they are, the
 * add batch, and the change of policy at run time, which keeps every folio and their order.
 */
#include "test_gen_common.h"

/* ---- bad arguments ---- */

static void no_evict(void *ctx, foliage_folio folio, uint64_t shadow)
{
	(void)ctx;
	(void)folio;
	(void)shadow;
}

static int create(const struct foliage_engine_options *o, char *message, size_t bytes)
{
	struct foliage_engine *e = NULL;
	int err = foliage_engine_create(o, &e, message, bytes);

	if (!err)
		foliage_engine_destroy(e);
	else
		assert_null(e);
	return err;
}

static void test_bad_options(void **unused)
{
	const struct foliage_backend good = {.evict = no_evict}, bad = {0};
	const struct {
		struct foliage_engine_options o;
		int err;
	} cases[] = {
		{{.nr_folios = 64, .backend = &good}, 0},
		{{.nr_folios = 64,
		  .backend = &good,
		  .folio_bytes = 64,
		  .max_memcgs = 4096,
		  .nr_nodes = 1},
		 0},
		{{.nr_folios = 64}, -EINVAL},
		{{.nr_folios = 64, .backend = &bad}, -EINVAL},
		{{.nr_folios = 0, .backend = &good}, -EINVAL},
		{{.nr_folios = (1u << 30) + 1, .backend = &good}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .max_memcgs = 4097}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .nr_nodes = 17}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .nr_zones = 4}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .folio_bytes = 48}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .scale = 0.5}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .scale = -1}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .policy = "fg:tail_mode=nowhere"}, -EINVAL},
		{{.nr_folios = 64, .backend = &good, .policy = "fgg"}, -ENOENT},
		{{.nr_folios = 64, .backend = &good, .policy = "sieve"},
		 -EINVAL}, /* of a fixed room */
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char message[128] = "";

		assert_int_equal(create(&cases[i].o, message, sizeof(message)), cases[i].err);
		if ((message[0] != 0) != (cases[i].err != 0))
			fail_msg("case %zu: \"%s\"", i, message);
		assert_int_equal(create(&cases[i].o, NULL, 0), cases[i].err);
	}
}

static void test_bad_folios(void **unused)
{
	const struct world_options options = {.nr_folios = 64, .max_memcgs = 2};
	struct world *w = world_new(&options);
	const struct {
		foliage_folio id;
		uint32_t memcg, node, zone, order;
		int err;
	} cases[] = {
		{-1, 0, 0, 0, 0, -EINVAL}, {64, 0, 0, 0, 0, -EINVAL}, {0, 1, 0, 0, 0, -EINVAL},
		{0, 2, 0, 0, 0, -EINVAL},  {0, 0, 1, 0, 0, -EINVAL},  {0, 0, 0, 1, 0, -EINVAL},
		{0, 0, 0, 0, 10, -EINVAL}, {0, 0, 0, 0, 9, 0},        {0, 0, 0, 0, 0, -EEXIST},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(foliage_folio_add(w->e, &w->cpu, cases[i].id, cases[i].memcg,
						   cases[i].node, cases[i].zone, cases[i].order, 0,
						   0),
				 cases[i].err);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 512);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, -1), -EINVAL);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 64), -EINVAL);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 1), -ENOENT);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 0), 0);
	assert_int_equal(foliage_memcg_usage(w->e, 0), 0);
	world_check(w);
	world_free(w);
}

static void test_bad_requests(void **unused)
{
	static const struct foliage_reclaim_request bad[] = {
		{.memcg = 1, .swappiness = -1},
		{.memcg = 9, .swappiness = -1},
		{.node = 1, .swappiness = -1},
		{.swappiness = 202},
		{.swappiness = -2},
	};
	const struct world_options options = {.nr_folios = 64, .max_memcgs = 2};
	struct world *w = world_new(&options);

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(foliage_reclaim(w->e, &w->cpu, &bad[i]), -EINVAL);
	assert_int_equal(world_reclaim(w, 0, 32), 0); /* nothing here */
	world_free(w);
}

/* ---- leaving ---- */

static void test_remove_from_anywhere(void **unused)
{
	static const char *const policies[] = {"fg", "mglru", "mglru-6.12", "clru", "clru-6.12"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		const struct world_options options = {
			.policy = policies[i], .nr_folios = 256, .batch = 31};
		struct world *w = world_new(&options);
		struct foliage_cpu other = {0};

		for (uint32_t page = 0; page < 5; page++)
			world_add(w, page, 0);
		for (foliage_folio id = 10; id < 15; id++)
			assert_int_equal(foliage_folio_add(w->e, &other, id, 0, 0, 0, 0, 0, 0), 0);
		/* Our batch: the others keep their order. */
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 2), 0);
		assert_int_equal(w->cpu.nr_add, 4);
		assert_int_equal(w->cpu.add[2], 3);
		assert_int_equal(w->cpu.add[3], 4);
		/* Another cpu's. */
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 12), 0);
		assert_false(cpu_batch_has(w->e, &other, 12));
		foliage_cpu_drain(w->e, &other);
		world_drain(w);
		assert_false(world_present(w, 2));
		assert_false(world_present(w, 12));
		assert_int_equal(foliage_memcg_usage(w->e, 0), 8);
		/* A list. */
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 3), 0);
		/* The unevictable list. */
		world_add(w, 20, FOLIAGE_FOLIO_MLOCKED);
		world_drain(w);
		assert_int_equal(world_list(w, 20), LIST_UNEVICTABLE);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 20), 0);
		/* Held by somebody. */
		folio_change(w->e, folio_at(w->e, 4), 0, UINT64_C(1) << F_PINS_SHIFT);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 4), -EBUSY);
		folio_change(w->e, folio_at(w->e, 4), F_PINS_MASK, F_ISOLATED);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 4), -EBUSY);
		folio_change(w->e, folio_at(w->e, 4), F_ISOLATED, 0);
		assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 4), 0);
		assert_int_equal(foliage_memcg_usage(w->e, 0), 6);
		assert_int_equal(w->nr_evicted, 0); /* no shadows */
		/* Numbers are free again, and start anew. */
		world_add(w, 2, 0);
		world_add(w, 12, 0);
		assert_int_equal(refs_bits(w, 2), 0);
		world_drain(w);
		world_check(w);
		foliage_cpu_exit(w->e, &other);
		world_free(w);
	}
}

/* The version changes with every stay, so that nobody's compare-exchange mistakes one for the
 * next. */
static void test_version(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	uint64_t before;

	(void)unused;
	world_add(w, 0, 0);
	before = world_flags(w, 0);
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 0), 0);
	world_add(w, 0, 0);
	assert_int_equal(world_flags(w, 0) & ~F_VERSION_MASK, before & ~F_VERSION_MASK);
	assert_true((world_flags(w, 0) ^ before) & F_VERSION_MASK);
	before = world_flags(w, 0);
	settle(w, 0, 4);
	put(w, 1, 0, 4, 0);
	evict(w, 1);
	assert_false(world_present(w, 0));
	assert_true((world_flags(w, 0) ^ before) & F_VERSION_MASK);
	world_free(w);
}

/* ---- the batch ---- */

static void test_batch(void **unused)
{
	const struct world_options options = {.nr_folios = 256, .batch = 31};
	struct world *w = world_new(&options);

	(void)unused;
	for (uint32_t page = 0; page < 30; page++)
		world_add(w, page, 0);
	assert_int_equal(world_seq(w, 0), -1);
	assert_int_equal(w->cpu.nr_add, 30);
	world_add(w, 30, 0);
	assert_int_equal(w->cpu.nr_add, 0);
	assert_true(at_head(w, 30));
	assert_true(at_tail(w, 0));
	/* A large folio does not wait, nor do those before it. */
	world_add(w, 40, 0);
	world_add_to(w, 41, 0, 0, 0, 1, 0);
	assert_int_equal(w->cpu.nr_add, 0);
	assert_true(at_head(w, 41));
	/* Reclaim drains first. */
	world_add(w, 50, 0);
	world_reclaim(w, 0, 1);
	assert_int_equal(w->cpu.nr_add, 0);
	world_check(w);
	world_free(w);
}

/* Its cpu may be forgotten by whoever ends. */
static void test_cpu_exit(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	struct foliage_cpu other = {0};

	(void)unused;
	assert_int_equal(foliage_folio_add(w->e, &other, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_ptr_equal(other.engine, w->e);
	foliage_cpu_exit(w->e, &other);
	assert_null(other.engine);
	assert_int_equal(world_seq(w, 0), 4);
	memset(&other, 0xff, sizeof(other));
	assert_int_equal(foliage_folio_remove(w->e, &w->cpu, 0), 0);
	engine_drain_all(w->e);
	world_free(w);
}

/* ---- switching ---- */

static const char *const engine_policies[] = {
	"fg", "mglru", "mglru-6.12", "clru", "fg:tail_mode=min,histgens=4", "mglru-quickfix"};

/* Order of the evictable files, coldest first. */
static uint32_t order(struct world *w, uint32_t *ids)
{
	uint32_t nr = 0;

	for (int back = MAX_NR_GENS - 1; back >= 0 && w->e->ops->rules; back--) {
		uint64_t seq = gen_max_seq(root(w)) + MAX_NR_GENS - (uint64_t)back;
		folio_id head = list_head(0, gen_list(gen_of(seq), TYPE_FILE, 0));

		for (folio_id id = list_last(w->e, head); id != head; id = folio_at(w->e, id)->prev)
			ids[nr++] = (uint32_t)id;
	}
	for (int list = LIST_INACTIVE_FILE; list <= LIST_ACTIVE_FILE && !w->e->ops->rules; list++) {
		folio_id head = list_head(0, list);

		for (folio_id id = list_last(w->e, head); id != head; id = folio_at(w->e, id)->prev)
			ids[nr++] = (uint32_t)id;
	}
	return nr;
}

static void test_switch(void **unused)
{
	uint32_t before[256], after[256];
	char message[128];

	(void)unused;
	for (size_t from = 0; from < ARRAY_SIZE(engine_policies); from++)
		for (size_t to = 0; to < ARRAY_SIZE(engine_policies); to++) {
			const struct world_options options = {
				.policy = engine_policies[from], .nr_folios = 256, .batch = 31};
			struct world *w = world_new(&options);
			uint32_t nr;

			if (w->e->ops->rules)
				set_window(w, 7, 4, 4);
			for (uint32_t page = 0; page < 100; page++)
				world_add(w, page, page % 10 ? 0 : FOLIAGE_FOLIO_DIRTY);
			world_add(w, 200, FOLIAGE_FOLIO_ANON);
			world_add(w, 201, FOLIAGE_FOLIO_MLOCKED);
			world_drain(w);
			for (uint32_t page = 0; page < 100; page += 7)
				foliage_folio_activate(w->e, &w->cpu, (foliage_folio)page);
			nr = order(w, before);
			assert_int_equal(nr, 100);
			assert_int_equal(foliage_engine_switch(w->e, &w->cpu, engine_policies[to],
							       message, sizeof(message)),
					 0);
			world_check(w);
			assert_int_equal(order(w, after), nr);
			assert_memory_equal(before, after, nr * sizeof(before[0]));
			assert_int_equal(foliage_memcg_usage(w->e, 0), 102);
			for (uint32_t page = 0; page < 100; page++)
				assert_int_equal(!!(world_flags(w, page) & F_DIRTY),
						 page % 10 == 0);
			assert_true(world_present(w, 200));
			assert_int_equal(world_list(w, 201), LIST_UNEVICTABLE);
			/* What was active is so still; the quick fix had not activated it. */
			if (!w->e->ops->rules)
				assert_int_equal(world_list(w, 0) == LIST_ACTIVE_FILE,
						 strcmp(engine_policies[from], "mglru-quickfix") !=
							 0);
			else if (strcmp(engine_policies[from], "mglru-quickfix"))
				assert_true(world_seq(w, 0) > world_seq(w, 1));
			world_free(w);
		}
}

/* The new policy ages and evicts, whatever was walked before: generation 3 had been. */
static void test_switch_then_age(void **unused)
{
	static const char *const policies[] = {"mglru", "fg", "mglru-6.12"};
	char message[128];

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		const struct world_options options = {.policy = "mglru", .nr_folios = 8192};
		struct world *w = world_new(&options);
		struct scan_control sc;

		world_scan_control(w, &sc);
		world_add_range(w, 0, 4096, 0);
		assert_true(gen_try_inc_max_seq(w->e, root(w), &sc, 3, 0, false));
		assert_int_equal(
			foliage_engine_switch(w->e, &w->cpu, policies[i], message, sizeof(message)),
			0);
		assert_int_equal(gen_max_seq(root(w)), 3);
		assert_true(gen_try_inc_max_seq(w->e, root(w), &sc, 3, 0, false));
		for (int session = 0; session < 200 && w->nr_evicted < 4096; session++)
			world_reclaim(w, 0, 32);
		assert_int_equal(w->nr_evicted, 4096);
		world_check(w);
		world_free(w);
	}
}

/* A bad text changes nothing. */
static void test_switch_refused(void **unused)
{
	struct world *w = world_window("fg", 7, 4);
	char message[128] = "";

	(void)unused;
	put(w, 0, 0, 6, 5);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "lru", message, sizeof(message)),
			 -EINVAL);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "nosuch", message, sizeof(message)),
			 -ENOENT);
	assert_int_equal(
		foliage_engine_switch(w->e, &w->cpu, "fg:refs_max=99", message, sizeof(message)),
		-EINVAL);
	assert_true(message[0] != 0);
	assert_int_equal(world_seq(w, 0), 6);
	assert_int_equal(world_refs(w, 0), 5);
	assert_string_equal(w->e->policy->name, "fg");
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_options),     cmocka_unit_test(test_bad_folios),
		cmocka_unit_test(test_bad_requests),    cmocka_unit_test(test_remove_from_anywhere),
		cmocka_unit_test(test_version),         cmocka_unit_test(test_batch),
		cmocka_unit_test(test_cpu_exit),        cmocka_unit_test(test_switch),
		cmocka_unit_test(test_switch_then_age), cmocka_unit_test(test_switch_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
