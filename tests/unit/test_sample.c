/* SPDX-License-Identifier: MIT
 *
 * Sampling: which pages are in. How far the curves of a sample are from the exact ones is in
 * tests/anchors/test_sample_curves.c.
 */
#include "test_trace.h"

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "foliage/policy.h"
#include "trace/sample.h"

enum { PAGES = 20000, ACCESSES = 400000 };

/* A skewed trace: the cube of a uniform number. Every third access is a write. */
static void make_trace(struct resolved *r)
{
	uint32_t *ids = malloc(PAGES * sizeof(*ids));
	uint64_t seed = 7;

	assert_non_null(ids);
	memset(ids, 0xff, PAGES * sizeof(*ids));
	*r = (struct resolved){.n = ACCESSES};
	r->ids = mem_table(ACCESSES * sizeof(*r->ids));
	r->ops = mem_table(ACCESSES);
	r->pages = mem_table(PAGES * sizeof(*r->pages));
	assert_true(r->ids && r->ops && r->pages);
	for (size_t i = 0; i < ACCESSES; i++) {
		double u = splitmix64_unit(&seed);
		uint32_t page = (uint32_t)(u * u * u * PAGES);

		if (ids[page] == UINT32_MAX) {
			r->pages[r->nr_ids] = 1000 + page;
			ids[page] = r->nr_ids++;
		}
		r->ids[i] = ids[page];
		r->ops[i] = i % 3 ? 0 : FOLIAGE_ACCESS_WRITE;
	}
	free(ids);
}

/* The table of pages was made for more of them than came. */
static void drop_trace(struct resolved *r)
{
	mem_table_free(r->pages, PAGES * sizeof(*r->pages));
	r->pages = NULL;
	resolved_free(r);
}

static void take(struct resolved *whole, const double *rates, size_t nr, uint64_t seed,
		 struct resolved *out)
{
	assert_int_equal(sample_take(whole, rates, nr, seed, out), 0);
}

/* Every access to a chosen page is there, in order, with its kind, and no other. */
static void test_whole_pages(void **state)
{
	const double rates[] = {0.01, 0.1};
	struct resolved whole, out[2];

	(void)state;
	make_trace(&whole);
	take(&whole, rates, 2, 1, out);
	for (size_t l = 0; l < 2; l++) {
		char *in = calloc(PAGES + 1000, 1);
		uint64_t n = 0;

		assert_non_null(in);
		for (uint32_t id = 0; id < out[l].nr_ids; id++)
			in[out[l].pages[id]] = 1;
		for (uint64_t i = 0; i < whole.n; i++) {
			uint64_t page = whole.pages[whole.ids[i]];

			if (!in[page])
				continue;
			assert_true(n < out[l].n);
			assert_int_equal(out[l].pages[out[l].ids[n]], page);
			assert_int_equal(out[l].ops[n], whole.ops[i]);
			n++;
		}
		assert_int_equal(n, out[l].n);
		free(in);
	}
	resolved_free(&out[0]);
	resolved_free(&out[1]);
	drop_trace(&whole);
}

/* A page of the smaller sample is in the larger one; ids count up by first appearance. */
static void test_nested(void **state)
{
	const double rates[] = {0.01, 0.05, 0.2};
	struct resolved whole, out[3];

	(void)state;
	make_trace(&whole);
	take(&whole, rates, 3, 5, out);
	for (size_t l = 0; l < 3; l++) {
		uint32_t next = 0;

		for (uint64_t i = 0; i < out[l].n; i++) {
			assert_true(out[l].ids[i] <= next);
			next += out[l].ids[i] == next;
		}
		assert_int_equal(next, out[l].nr_ids);
	}
	for (size_t l = 0; l + 1 < 3; l++) {
		uint32_t at = 0;

		for (uint32_t id = 0; id < out[l].nr_ids; id++) {
			while (at < out[l + 1].nr_ids && out[l + 1].pages[at] != out[l].pages[id])
				at++;
			assert_true(at < out[l + 1].nr_ids);
		}
	}
	for (size_t l = 0; l < 3; l++)
		resolved_free(&out[l]);
	drop_trace(&whole);
}

/* The shares are right for all pages and for the hottest hundredth, whatever the seed. */
static void test_shares(void **state)
{
	const double rate = 0.05;
	struct resolved whole, out;

	(void)state;
	make_trace(&whole);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		take(&whole, &rate, 1, seed, &out);
		assert_true(fabs((double)out.nr_ids - rate * whole.nr_ids) <= 3);
		/* Here the hottest page has 3.7 % of the accesses and the 20 hottest 10 %: one of
		 * them is in. */
		assert_true(fabs((double)out.n / (rate * (double)whole.n) - 1) < 0.75);
		resolved_free(&out);
	}
	drop_trace(&whole);
}

static void test_repeatable(void **state)
{
	const double rate = 0.03;
	struct resolved whole, a, b, c;

	(void)state;
	make_trace(&whole);
	take(&whole, &rate, 1, 1, &a);
	take(&whole, &rate, 1, 1, &b);
	take(&whole, &rate, 1, 2, &c);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.ids, b.ids, a.n * sizeof(*a.ids));
	assert_memory_equal(a.pages, b.pages, a.nr_ids * sizeof(*a.pages));
	assert_true(a.nr_ids != c.nr_ids ||
		    memcmp(a.pages, c.pages, a.nr_ids * sizeof(*a.pages)) != 0);
	resolved_free(&a);
	resolved_free(&b);
	resolved_free(&c);
	drop_trace(&whole);
}

static void test_all_and_none(void **state)
{
	const double all = 1, few = 1e-9, bad[] = {0.5, 0.1};
	struct resolved whole, out, two[2];

	(void)state;
	make_trace(&whole);
	take(&whole, &all, 1, 1, &out);
	assert_int_equal(out.n, whole.n);
	assert_memory_equal(out.ids, whole.ids, whole.n * sizeof(*whole.ids));
	resolved_free(&out);
	take(&whole, &few, 1, 1, &out);
	assert_int_equal(out.n, 0);
	resolved_free(&out);
	assert_int_equal(sample_take(&whole, bad, 2, 1, two), -EINVAL);
	assert_int_equal(sample_take(&whole, bad, 0, 1, two), -EINVAL);
	drop_trace(&whole);
}

static void test_ratio(void **state)
{
	(void)state;
	assert_true(fabs(sample_miss_ratio(10, 0.01, 2000) - 0.5) < 1e-12);
	assert_true(fabs(sample_miss_ratio(30, 0.01, 2000) - 1) < 1e-12);
	assert_true(fabs(sample_miss_ratio(0, 0.01, 2000)) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_pages),  cmocka_unit_test(test_nested),
		cmocka_unit_test(test_shares),       cmocka_unit_test(test_repeatable),
		cmocka_unit_test(test_all_and_none), cmocka_unit_test(test_ratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
