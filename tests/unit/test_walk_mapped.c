/* SPDX-License-Identifier: MIT
 *
 * The page tables of a mapped replay (machine/mapped.h): layout by rank, faults with fault-around,
 * bits, what reclaim and the walk see of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "machine/mapped.h"
#include "mm/gen.h"
#include "mm/walk.h"

enum { NR = 1500 };

struct room {
	struct mapped_space *space;
	struct foliage_engine *e;
	struct foliage_cpu cpu;
	uint32_t evictions[NR];
};

static void cb_evict(void *ctx, foliage_folio folio, uint64_t shadow)
{
	(void)shadow;
	((struct room *)ctx)->evictions[folio]++;
}

static bool cb_unmap(void *ctx, foliage_folio folio)
{
	mapped_unmap(((struct room *)ctx)->space, (uint32_t)folio);
	return true;
}

static bool cb_rmap(void *ctx, foliage_folio folio, uint32_t cursor, struct foliage_mapping *out)
{
	return mapped_rmap(((struct room *)ctx)->space, folio, cursor, out);
}

static bool cb_next(void *ctx, uint32_t mm, uint64_t from, struct foliage_mapping *out)
{
	(void)mm;
	return mapped_next(((struct room *)ctx)->space, from, out);
}

static const struct foliage_backend backend = {
	.evict = cb_evict, .unmap = cb_unmap, .rmap = cb_rmap, .next_mapping = cb_next};

static struct room *setup(const char *policy, const struct mapped_options *mapped)
{
	struct room *room = calloc(1, sizeof(*room));
	const struct foliage_engine_options options = {.policy = policy,
						       .nr_folios = NR,
						       .exclusive = true,
						       .backend = &backend,
						       .ctx = room};

	room->cpu.batch = 1;
	assert_int_equal(mapped_create(mapped, &room->space), 0);
	assert_int_equal(foliage_engine_create(&options, &room->e, NULL, 0), 0);
	assert_int_equal(mapped_attach(room->space, room->e, 0), 0);
	return room;
}

static void teardown(struct room *room)
{
	foliage_engine_destroy(room->e);
	mapped_destroy(room->space);
	free(room);
}

static void add(struct room *room, uint32_t id)
{
	assert_int_equal(
		foliage_folio_add(room->e, &room->cpu, (foliage_folio)id, 0, 0, 0, 0, 0, 0), 0);
}

static uint64_t flags(const struct room *room, uint32_t id)
{
	return folio_flags(folio_at(room->e, (folio_id)id));
}

static bool young(const struct room *room, uint32_t id)
{
	struct foliage_mapping m;

	assert_true(mapped_rmap(room->space, (foliage_folio)id, 0, &m));
	assert_int_equal(m.table->folio[m.index], id);
	return bit_test(m.table->young, m.index);
}

static void test_touch_and_fault(void **unused)
{
	const struct mapped_options options = {.nr_ids = NR};
	struct room *room = setup("fg", &options);

	(void)unused;
	assert_false(mapped_touch(room->space, 3, false, false));
	add(room, 3);
	assert_int_equal(mapped_map(room->space, 3, false, false), 1);
	assert_true(flags(room, 3) & F_MAPPED);
	assert_true(young(room, 3));
	assert_true(mapped_touch(room->space, 3, false, false));
	assert_false(flags(room, 3) & (F_EXEC | F_DIRTY));
	assert_true(mapped_touch(room->space, 3, true, true));
	assert_true(flags(room, 3) & F_EXEC);
	assert_false(flags(room, 3) & F_DIRTY);
	/* What hardware knows is not lost with the mapping. */
	mapped_unmap(room->space, 3);
	assert_true(flags(room, 3) & F_DIRTY);
	assert_false(flags(room, 3) & F_MAPPED);
	assert_false(mapped_touch(room->space, 3, false, false));
	mapped_unmap(room->space, 3); /* twice: harmless */
	/* Mapped again, it starts clean. */
	foliage_folio_clear_dirty(room->e, 3);
	mapped_map(room->space, 3, false, false);
	mapped_unmap(room->space, 3);
	assert_false(flags(room, 3) & F_DIRTY);
	teardown(room);
}

/* An aligned window of present pages, within the file. */
static void test_fault_around(void **unused)
{
	static const struct {
		uint32_t around, page, first, end;
	} cases[] = {{16, 40, 32, 48},       {16, 32, 32, 48}, {16, 47, 32, 48},
		     {16, 1499, 1488, 1500}, {1, 40, 40, 41},  {0, 40, 40, 41},
		     {1024, 600, 512, 1024}};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int old = 0; old < 2; old++) {
			const struct mapped_options options = {
				.nr_ids = NR, .fault_around = cases[i].around, .born_old = old};
			struct room *room = setup("fg", &options);
			uint32_t odd = 0, page = cases[i].page;

			/* Only odd pages and the faulting one are present. */
			for (uint32_t id = 0; id < NR; id++)
				if (id % 2 || id == page)
					add(room, id);
			for (uint32_t id = cases[i].first; id < cases[i].end; id++)
				odd += id % 2 || id == page;
			assert_int_equal(mapped_map(room->space, page, false, false), odd);
			for (uint32_t id = 0; id < NR; id++) {
				bool expect = id >= cases[i].first && id < cases[i].end &&
					      (id % 2 || id == page);

				assert_int_equal(mapped_is_mapped(room->space, id), expect);
				assert_int_equal(!!(flags(room, id) & F_MAPPED), expect);
				if (expect)
					assert_int_equal(young(room, id), id == page || !old);
			}
			teardown(room);
		}
}

/* Fault-around leaves the bits of what is mapped already alone. */
static void test_fault_around_keeps_neighbours(void **unused)
{
	const struct mapped_options options = {.nr_ids = NR, .fault_around = 16};
	struct room *room = setup("fg", &options);
	struct foliage_mapping m;

	(void)unused;
	add(room, 1);
	mapped_map(room->space, 1, false, false);
	assert_true(mapped_rmap(room->space, 1, 0, &m));
	bit_clear(m.table->young, 1);
	add(room, 2);
	assert_int_equal(mapped_map(room->space, 2, false, false), 1);
	assert_false(young(room, 1));
	teardown(room);
}

static void test_order(void **unused)
{
	uint32_t *order = calloc(NR, sizeof(*order));
	struct mapped_options options = {.nr_ids = NR, .order = order, .fault_around = 2};
	struct mapped_space *space;
	struct foliage_mapping m;
	struct room *room;

	(void)unused;
	assert_int_equal(mapped_create(&options, &space), -EINVAL); /* all zero */
	for (uint32_t id = 0; id < NR; id++)
		order[id] = NR - 1 - id;
	order[0] = NR;
	assert_int_equal(mapped_create(&options, &space), -EINVAL);
	order[0] = NR - 1;
	room = setup("fg", &options);
	add(room, 0);
	add(room, 1);
	mapped_map(room->space, 1, false, false);
	/* Ranks 1498 and 1499 are one window. */
	assert_true(mapped_rmap(room->space, 0, 0, &m));
	assert_int_equal(m.pmd, 1024);
	assert_int_equal(m.index, 1499 - 1024);
	assert_int_equal(m.first, 0);
	assert_int_equal(m.last, 1499 - 1024);
	assert_false(mapped_rmap(room->space, 0, 1, &m));
	assert_false(mapped_rmap(room->space, 5, 0, &m));
	teardown(room);
	options.nr_ids = 0;
	assert_int_equal(mapped_create(&options, &space), -EINVAL);
	free(order);
}

static void test_next(void **unused)
{
	const struct mapped_options options = {.nr_ids = NR};
	struct room *room = setup("fg", &options);
	struct foliage_mapping m;
	uint64_t from = 0;
	uint32_t tables = 0, entries = 0;

	(void)unused;
	for (; mapped_next(room->space, from, &m); from = m.pmd + m.last + 1) {
		tables++;
		entries += m.last - m.first + 1;
	}
	assert_int_equal(tables, 3);
	assert_int_equal(entries, NR);
	teardown(room);
}

/* A replay: hot pages are touched only through the page tables, and stay; the walk finds them. */
static void test_replay(void **unused)
{
	static const char *const policies[] = {"mglru", "mglru-6.12", "fg", "clru"};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		const struct mapped_options options = {.nr_ids = NR, .fault_around = 16};
		struct room *room = setup(policies[i], &options);
		struct foliage_reclaim_request request = {
			.nr = 32, .swappiness = -1, .memcg_limit = true};
		uint64_t rng = 1, hot = 0, cold = 0;
		uint32_t resident = 0;

		for (int n = 0; n < 100000; n++) {
			uint32_t id =
				n % 2 ? splitmix64_below(&rng, 200) : splitmix64_below(&rng, NR);

			if (mapped_touch(room->space, id, false, false))
				continue;
			if (!foliage_folio_present(room->e, (foliage_folio)id)) {
				*(id < 200 ? &hot : &cold) += n > 20000;
				if (resident >= 600)
					resident -= (uint32_t)foliage_reclaim(room->e, &room->cpu,
									      &request);
				room->cpu.in_lru_fault = true;
				add(room, id);
				room->cpu.in_lru_fault = false;
				resident++;
			}
			mapped_map(room->space, id, false, false);
		}
		/* A hot page is touched 8.5 times as often as a cold one. A FIFO room, which sees
		 * no access, would have 0.37 hot misses for each cold one; whoever sees them has
		 * less than half of that. */
		if (hot * 200 > cold * 37)
			fail_msg("%s: %llu hot misses, %llu cold ones", policies[i],
				 (unsigned long long)hot, (unsigned long long)cold);
		teardown(room);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_touch_and_fault),
		cmocka_unit_test(test_fault_around),
		cmocka_unit_test(test_fault_around_keeps_neighbours),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_replay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
