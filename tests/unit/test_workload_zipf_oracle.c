/* SPDX-License-Identifier: MIT
 *
 * The kernel comparison's sequences: their hashes are what the booted kernel's side printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <cmocka.h>

#include "base/bits.h"
#include "workload/zipf_oracle.h"

static const struct {
	double theta;
	uint64_t hash;
} known[] = {
	{0.8, UINT64_C(0x8bf07fabeb962cc2)},
	{0.9, UINT64_C(0x38a54664edc487f8)},
	{1.1, UINT64_C(0xeb86bcaed728fea8)},
	{1.2, UINT64_C(0xbb34c41ad921428e)},
};

static void hashes_of_six_million(void **state)
{
	enum { PIECE = 50000 };
	uint32_t *pages = malloc(PIECE * sizeof(*pages));

	(void)state;
	assert_non_null(pages);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct zipf_oracle zipf;

		assert_int_equal(zipf_oracle_init(&zipf, 40960, known[i].theta, 1, 42), 0);
		for (size_t n = 0; n < 6000000; n += PIECE)
			zipf_oracle_fill(&zipf, pages, PIECE);
		assert_true(zipf.hash == known[i].hash);
		zipf_oracle_free(&zipf);
	}
	free(pages);
}

/* One piece or many: one sequence. */
static void pieces_continue(void **state)
{
	struct zipf_oracle whole, pieces;
	uint32_t a[1000], b[1000];

	(void)state;
	assert_int_equal(zipf_oracle_init(&whole, 500, 1.2, 7, 8), 0);
	assert_int_equal(zipf_oracle_init(&pieces, 500, 1.2, 7, 8), 0);
	zipf_oracle_fill(&whole, a, 1000);
	zipf_oracle_fill(&pieces, b, 1);
	zipf_oracle_fill(&pieces, b + 1, 0);
	zipf_oracle_fill(&pieces, b + 1, 999);
	assert_memory_equal(a, b, sizeof(a));
	assert_true(whole.hash == pieces.hash);
	zipf_oracle_free(&whole);
	zipf_oracle_free(&pieces);
}

static void every_seed_counts(void **state)
{
	static const struct {
		double theta;
		uint64_t seed, permutation;
	} with[] = {{0.9, 1, 42}, {0.9, 2, 42}, {0.9, 1, 43}, {0.91, 1, 42}};
	uint64_t hash[ARRAY_SIZE(with)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(with); i++) {
		struct zipf_oracle zipf;
		uint32_t pages[200];

		assert_int_equal(zipf_oracle_init(&zipf, 5000, with[i].theta, with[i].seed,
						  with[i].permutation),
				 0);
		zipf_oracle_fill(&zipf, pages, 200);
		hash[i] = zipf.hash;
		zipf_oracle_free(&zipf);
		for (size_t j = 0; j < i; j++)
			assert_true(hash[j] != hash[i]);
	}
}

static void smallest_and_refused(void **state)
{
	struct zipf_oracle zipf;
	uint32_t pages[50];

	(void)state;
	assert_int_equal(zipf_oracle_init(&zipf, 0, 0.9, 1, 1), -EINVAL);
	assert_int_equal(zipf_oracle_init(&zipf, 10, 0, 1, 1), -EINVAL);
	assert_int_equal(zipf_oracle_init(&zipf, 10, -2, 1, 1), -EINVAL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(zipf_oracle_init(&zipf, 1, i ? 1.1 : 0.9, 1, 1), 0);
		zipf_oracle_fill(&zipf, pages, 50);
		for (size_t j = 0; j < 50; j++)
			assert_int_equal(pages[j], 0);
		zipf_oracle_free(&zipf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_of_six_million),
		cmocka_unit_test(pieces_continue),
		cmocka_unit_test(every_seed_counts),
		cmocka_unit_test(smallest_and_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
