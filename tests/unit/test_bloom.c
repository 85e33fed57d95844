/* SPDX-License-Identifier: MIT
 *
 * The walk's Bloom filters (B.9): absent means yes, no false negatives, two filters by parity,
 * reset, false positives of the size that 2^15 bits and two keys give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "mm/bloom.h"

static void test_absent_says_yes(void **unused)
{
	struct bloom bloom = {.filter = {NULL}};

	(void)unused;
	assert_true(bloom_test(&bloom, 3, 12345));
	bloom_add(&bloom, 3, 12345); /* into nothing: no effect */
	bloom_reset(&bloom, 4);
	assert_true(bloom_test(&bloom, 3, 12345));
	assert_false(bloom_test(&bloom, 4, 12345));
	bloom_fini(&bloom);
	assert_true(bloom_test(&bloom, 4, 12345));
}

static void test_two_take_turns(void **unused)
{
	struct bloom bloom = {.filter = {NULL}};

	(void)unused;
	bloom_reset(&bloom, 3);
	bloom_reset(&bloom, 4);
	bloom_add(&bloom, 4, 7);
	assert_true(bloom_test(&bloom, 4, 7));
	assert_false(bloom_test(&bloom, 3, 7));
	/* 6 reuses the filter of 4, and starts empty once reset. */
	assert_true(bloom_test(&bloom, 6, 7));
	bloom_reset(&bloom, 6);
	assert_false(bloom_test(&bloom, 6, 7));
	bloom_fini(&bloom);
}

static void test_no_false_negatives(void **unused)
{
	struct bloom bloom = {.filter = {NULL}};
	uint64_t rng = 1;

	(void)unused;
	bloom_reset(&bloom, 0);
	for (int i = 0; i < 5000; i++)
		bloom_add(&bloom, 0, splitmix64(&rng));
	rng = 1;
	for (int i = 0; i < 5000; i++)
		assert_true(bloom_test(&bloom, 0, splitmix64(&rng)));
	bloom_fini(&bloom);
}

/* n keys leave a share p = exp(-2n/m) of the bits clear: (1-p)^2 of strangers pass. n = m/8: 4.9 %.
 */
static void test_false_positives(void **unused)
{
	struct bloom bloom = {.filter = {NULL}};
	unsigned int passed = 0;

	(void)unused;
	bloom_reset(&bloom, 0);
	for (uint64_t pmd = 0; pmd < (1 << BLOOM_SHIFT) / 8; pmd++)
		bloom_add(&bloom, 0, UINT64_C(1) << 40 | pmd * 37);
	for (uint64_t pmd = 0; pmd < 100000; pmd++)
		passed += bloom_test(&bloom, 0, UINT64_C(9) << 40 ^ pmd * 41);
	assert_in_range(passed, 4000, 6000);
	bloom_fini(&bloom);
}

/* Both keys count: an item sharing one key only is refused. */
static void test_two_keys(void **unused)
{
	struct bloom bloom = {.filter = {NULL}};
	unsigned int bits = 0;

	(void)unused;
	bloom_reset(&bloom, 1);
	bloom_add(&bloom, 1, 99);
	for (unsigned int i = 0; i < BLOOM_WORDS; i++)
		bits += (unsigned int)__builtin_popcountll(bloom.filter[1]->word[i]);
	assert_int_equal(bits, 2);
	for (unsigned int i = 0; i < BLOOM_WORDS; i++)
		if (bloom.filter[1]->word[i]) {
			bloom.filter[1]->word[i] &= bloom.filter[1]->word[i] - 1;
			break;
		}
	assert_false(bloom_test(&bloom, 1, 99));
	bloom_fini(&bloom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent_says_yes),    cmocka_unit_test(test_two_take_turns),
		cmocka_unit_test(test_no_false_negatives), cmocka_unit_test(test_false_positives),
		cmocka_unit_test(test_two_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
