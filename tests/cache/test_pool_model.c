/* SPDX-License-Identifier: MIT
 *
 * The pool against a plain model in memory, through random operations: a page that is pinned or
 * dirty must be there with its contents, a page whose name was taken away must not be, any other is
 * either there with its contents or gone. Under every policy of the engine; after each thousand
 * steps the engine's own walkers agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cache/pool.h"
#include "mm/memcg.h"

enum { OBJECTS = 4, INDEXES = 700, PINS_MAX = 40, STEPS = 30000 };

struct model_page {
	bool named, dirty;
	uint64_t value;
	unsigned int pins;
	struct foliage_page *page; /* while pinned */
};

struct model {
	struct foliage_pool *pool;
	struct model_page pages[OBJECTS][INDEXES];
	int kinds[OBJECTS];
	unsigned int pinned, dirty;
	uint64_t rng, next_value, hits, misses, dropped;
};

static const uint32_t sizes[OBJECTS] = {4096, 512, 65536, 2048}, extras[OBJECTS] = {0, 200, 0, 24};

static uint32_t below(struct model *m, uint32_t n)
{
	return splitmix64_below(&m->rng, n);
}

static void write_page(struct model *m, unsigned int o, struct foliage_page *page, uint64_t value)
{
	(void)m;
	memcpy(page->data, &value, sizeof(value));
	memcpy((char *)page->data + sizes[o] - sizeof(value), &value, sizeof(value));
	if (extras[o])
		memcpy((char *)page->extra + extras[o] - sizeof(value), &value, sizeof(value));
}

static void check_page(unsigned int o, uint64_t index, const struct foliage_page *page,
		       uint64_t value)
{
	uint64_t first, last, extra = value;

	memcpy(&first, page->data, sizeof(first));
	memcpy(&last, (char *)page->data + sizes[o] - sizeof(last), sizeof(last));
	if (extras[o])
		memcpy(&extra, (char *)page->extra + extras[o] - sizeof(extra), sizeof(extra));
	assert_int_equal(page->object, o);
	assert_int_equal(page->index, index);
	assert_int_equal(first, value);
	assert_int_equal(last, value);
	assert_int_equal(extra, value);
}

static void dropped(void *ctx, const struct foliage_page *page)
{
	struct model *m = ctx;

	m->dropped++;
	assert_true(page->object < OBJECTS && page->index < INDEXES);
}

static void step_fetch(struct model *m)
{
	static const unsigned int hints[] = {
		0, 0, 0, FOLIAGE_HINT_ONCE, FOLIAGE_HINT_SEQUENTIAL, FOLIAGE_HINT_WILL_NEED};
	unsigned int o = below(m, OBJECTS), flags = hints[below(m, 6)] |
						    (below(m, 2) ? FOLIAGE_FETCH_READY : 0) |
						    (below(m, 2) ? FOLIAGE_FETCH_LOCAL : 0);
	uint32_t i = below(m, 3) ? below(m, INDEXES / 8) : below(m, INDEXES);
	struct model_page *mp = &m->pages[o][i];
	struct foliage_page *page;
	int rc = foliage_pool_fetch(m->pool, o, i, m->kinds[o],
				    flags | (below(m, 4) ? FOLIAGE_FETCH_CREATE : 0), &page);

	switch (rc) {
	case FOLIAGE_HIT:
		m->hits++;
		assert_true(mp->named);
		check_page(o, i, page, mp->value);
		break;
	case FOLIAGE_NEW:
		m->misses++;
		assert_false(mp->named && (mp->pins || mp->dirty));
		if (extras[o])
			for (uint32_t b = 0; b < extras[o]; b++)
				assert_int_equal(((char *)page->extra)[b], 0);
		mp->named = true;
		mp->value = ++m->next_value;
		write_page(m, o, page, mp->value);
		break;
	case -ENOENT:
		assert_false(mp->named && (mp->pins || mp->dirty));
		mp->named = false;
		return;
	case -ENOBUFS:
		assert_false(mp->named && (mp->pins || mp->dirty));
		return;
	default:
		fail_msg("fetch: %d", rc);
	}
	if (m->pinned < PINS_MAX && !below(m, 8)) {
		if (mp->pins)
			assert_ptr_equal(mp->page, page);
		assert_int_equal(foliage_pool_ready(m->pool, page), 0);
		mp->page = page;
		mp->pins++;
		m->pinned++;
		return;
	}
	flags = 0;
	if (!mp->dirty && m->dirty < 60 && !below(m, 6)) {
		mp->dirty = true;
		m->dirty++;
		mp->value = ++m->next_value;
		write_page(m, o, page, mp->value);
		flags = FOLIAGE_UNPIN_DIRTY;
	} else if (mp->dirty && below(m, 2)) {
		mp->dirty = false;
		m->dirty--;
		flags = FOLIAGE_UNPIN_CLEAN;
	}
	assert_int_equal(foliage_pool_unpin(m->pool, page, flags), 0);
}

/* Its name is gone; whoever has it pinned is told so by us, and lets go. */
static void forget(struct model *m, unsigned int o, uint32_t i)
{
	struct model_page *mp = &m->pages[o][i];

	m->dirty -= mp->dirty;
	mp->dirty = mp->named = false;
	while (mp->pins) {
		check_page(o, i, mp->page, mp->value);
		assert_int_equal(foliage_pool_unpin(m->pool, mp->page, 0), 0);
		mp->pins--;
		m->pinned--;
	}
}

static struct model_page *random_pinned(struct model *m, unsigned int *o, uint32_t *i)
{
	if (!m->pinned)
		return NULL;
	for (;;) {
		*o = below(m, OBJECTS);
		*i = below(m, INDEXES);
		if (m->pages[*o][*i].pins)
			return &m->pages[*o][*i];
	}
}

static void step_unpin(struct model *m)
{
	unsigned int o;
	uint32_t i;
	struct model_page *mp = random_pinned(m, &o, &i);

	if (!mp)
		return;
	check_page(o, i, mp->page, mp->value);
	mp->pins--;
	m->pinned--;
	if (below(m, 10)) {
		assert_int_equal(foliage_pool_unpin(m->pool, mp->page, 0), 0);
	} else {
		assert_int_equal(foliage_pool_unpin(m->pool, mp->page, FOLIAGE_UNPIN_DISCARD), 0);
		forget(m, o, i);
	}
}

static void step_discard(struct model *m)
{
	unsigned int o = below(m, OBJECTS);
	uint32_t i = below(m, INDEXES);
	bool must = m->pages[o][i].pins || m->pages[o][i].dirty, named = m->pages[o][i].named;
	int rc = foliage_pool_discard(m->pool, o, i);

	assert_true(rc == 0 ? named : rc == -ENOENT && !must);
	forget(m, o, i);
}

static void step_truncate(struct model *m)
{
	unsigned int o = below(m, OBJECTS);
	uint64_t first = below(m, INDEXES), last = below(m, 4) ? first + below(m, 50) : UINT64_MAX;
	int64_t nr = foliage_pool_truncate(m->pool, o, first, last), named = 0, must = 0;

	for (uint64_t i = first; i < INDEXES && i <= last; i++) {
		named += m->pages[o][i].named;
		must += m->pages[o][i].pins || m->pages[o][i].dirty;
		forget(m, o, (uint32_t)i);
	}
	assert_true(nr >= must && nr <= named);
}

static void step_rekey(struct model *m)
{
	unsigned int o;
	uint32_t i, to = below(m, INDEXES);
	struct model_page *mp = random_pinned(m, &o, &i), *target;
	struct foliage_page *page;
	void *data;
	int rc;

	if (!mp || to == i)
		return;
	target = &m->pages[o][to];
	page = mp->page;
	data = page->data;
	rc = foliage_pool_rekey(m->pool, &page, o, to);
	if (mp->pins > 1 || target->pins) {
		assert_int_equal(rc, -EBUSY);
		return;
	}
	assert_int_equal(rc, 0);
	assert_ptr_equal(page->data, data);
	forget(m, o, to);
	*target = *mp;
	target->page = page;
	*mp = (struct model_page){0};
	check_page(o, to, page, target->value);
}

static void step_resize(struct model *m)
{
	static const uint64_t budgets[] = {4 << 20, 6 << 20, 8 << 20, 16 << 20};
	int rc = below(m, 3) ? foliage_pool_resize(m->pool, budgets[below(m, 4)])
			     : (int)foliage_pool_shrink(m->pool, 1 << 20);

	assert_true(rc >= 0 || rc == -EBUSY);
}

static void check_all(struct model *m)
{
	struct err err = {{0}};
	struct foliage_engine *e = m->pool->core->engine;
	struct foliage_pool_stats stats;

	engine_drain_all(e);
	if (e->ops->is_valid(e, &e->lruvecs[0], &err) || memcg_is_valid(e, &err))
		fail_msg("%s", err.text);
	assert_int_equal(foliage_pool_stats(m->pool, &stats), 0);
	assert_int_equal(stats.created + stats.misses >= stats.created, true);
	assert_int_equal(stats.pages, stats.created - stats.evicted - stats.discarded);
	assert_int_equal(stats.evicted + stats.discarded, m->dropped);
	for (unsigned int o = 0; o < OBJECTS; o++)
		for (uint32_t i = 0; i < INDEXES; i++)
			if (m->pages[o][i].pins)
				check_page(o, i, m->pages[o][i].page, m->pages[o][i].value);
}

/* Every slot that nobody passes any more says so, once all names are gone. */
static void check_empty(struct model *m)
{
	for (unsigned int o = 0; o < OBJECTS; o++) {
		for (uint32_t i = 0; i < INDEXES; i++)
			forget(m, o, i);
		assert_true(foliage_pool_truncate(m->pool, o, 0, UINT64_MAX) >= 0);
	}
	for (uint64_t i = 0; i < pool_slots(m->pool->core, m->pool->core->level); i++) {
		assert_int_equal(pool_slot(m->pool->core, i)->passed, 0);
		assert_int_equal(pool_slot(m->pool->core, i)->state, 0);
		assert_int_equal(folio_flags(&pool_slot(m->pool->core, i)->folio) &
					 (F_PRESENT | F_PINS_MASK),
				 0);
	}
	assert_int_equal(m->pool->core->used, 0);
	assert_true(foliage_pool_shrink(m->pool, UINT64_MAX) >= 0);
	assert_int_equal(m->pool->core->frames.backed, 0);
}

static void run_model(const char *policy, uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	struct foliage_pool_options options = {
		.bytes = 4 << 20,
		.max_bytes = 16 << 20,
		.policy = policy,
		.seed = seed,
		.dropped = dropped,
		.ctx = m,
	};
	char message[200];

	m->rng = seed;
	if (foliage_pool_create(&options, &m->pool, message, sizeof(message)))
		fail_msg("%s", message);
	for (unsigned int o = 0; o < OBJECTS; o++)
		m->kinds[o] = foliage_pool_kind(m->pool, sizes[o], extras[o]);
	for (int step = 1; step <= STEPS; step++) {
		uint32_t what = below(m, 1000);

		if (what < 900)
			step_fetch(m);
		else if (what < 950)
			step_unpin(m);
		else if (what < 970)
			step_discard(m);
		else if (what < 973)
			step_truncate(m);
		else if (what < 997)
			step_rekey(m);
		else
			step_resize(m);
		if (step % 1000 == 0)
			check_all(m);
	}
	assert_true(m->hits > STEPS / 20 && m->misses > STEPS / 20);
	check_empty(m);
	foliage_pool_destroy(m->pool);
	free(m);
}

static void test_fg(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_model("fg", seed);
}

static void test_every_policy(void **state)
{
	static const char *const policies[] = {"fg:tail_mode=list", "mglru", "mglru-6.12", "clru",
					       "clru-6.12",         "fgw"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_model(policies[i], 10 + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fg),
		cmocka_unit_test(test_every_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
