/* SPDX-License-Identifier: MIT
 *
 * fio's generator against what fio itself logged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "workload/fio_read.h"
#include "workload/zipf_fio.h"

struct vector {
	const char *file;
	uint64_t blocks;
	double theta;
	uint64_t hash; /* FNV-1a over the first 100,000 block numbers as little-endian u32 */
	uint32_t first[64];
};

/* Block numbers that fio 3.33 itself logged (--write_iolog, randread, 4 KiB blocks,
 * --norandommap). */
static const struct vector vectors[] = {
	{
		.file = "small.dat",
		.blocks = 40960,
		.theta = 0.8,
		.hash = UINT64_C(0x05e2a80891c2b445),
		.first =
			{
				13942, 12308, 35548, 11077, 3013,  12623, 3690,  29508,
				29339, 22940, 26838, 22100, 29836, 40452, 24421, 26711,
				24488, 15859, 27920, 30044, 11456, 15330, 39046, 21588,
				24217, 40944, 25407, 12050, 3904,  38205, 1877,  33655,
				20731, 24956, 33108, 5686,  19768, 6220,  37564, 37659,
				16001, 15358, 19041, 10242, 24432, 14635, 6670,  32049,
				12394, 34831, 17831, 25345, 10406, 21779, 19819, 5177,
				28968, 25791, 32145, 1872,  21576, 37309, 36015, 39334,
			},
	},
	{
		.file = "small.dat",
		.blocks = 40960,
		.theta = 1.2,
		.hash = UINT64_C(0x9f6889fd4830a90b),
		.first =
			{
				5059,  38532, 26962, 39334, 6225,  197,   24956, 4214,
				19768, 32145, 12248, 32145, 19773, 35317, 9071,  13126,
				11413, 34151, 24956, 26962, 5661,  26962, 19773, 40500,
				24946, 34151, 35317, 24956, 10232, 711,   32145, 28968,
				24956, 39334, 24956, 24956, 39334, 32145, 26962, 39334,
				26711, 23785, 34151, 39334, 32145, 26957, 22100, 39665,
				30974, 28968, 10242, 9066,  13419, 39334, 18602, 24956,
				39334, 39334, 39334, 32145, 24956, 1990,  11413, 39334,
			},
	},
	{
		.file = "r.0.0",
		.blocks = 655360,
		.theta = 0.8,
		.hash = UINT64_C(0xe659096b5e547337),
		.first =
			{
				135161, 36446,  429323, 181383, 547210, 566407, 638892, 219298,
				136821, 649838, 579927, 142419, 651201, 490424, 240749, 443297,
				451581, 324523, 376138, 250350, 358196, 420189, 587027, 542497,
				445916, 434942, 451272, 287822, 19770,  338087, 495914, 6081,
				163930, 582164, 474731, 144245, 290932, 344238, 251242, 133633,
				92118,  309719, 86520,  200124, 268230, 633268, 592698, 302310,
				490077, 557619, 190337, 539425, 441237, 20741,  411493, 297461,
				514551, 504463, 294042, 256901, 58615,  236810, 183103, 260400,
			},
	},
	{
		.file = "r.0.0",
		.blocks = 655360,
		.theta = 1.2,
		.hash = UINT64_C(0xcc03e344fe0228c3),
		.first =
			{
				57403,  438954, 33702,  550379, 367400, 256057, 220280, 287822,
				581731, 434942, 287822, 256057, 256057, 145045, 180822, 220280,
				184834, 287822, 367400, 220280, 260400, 287822, 581731, 378734,
				287822, 220280, 582062, 220280, 604647, 291834, 173420, 225496,
				157743, 256057, 220280, 617508, 287822, 55717,  170441, 455137,
				535384, 256057, 220280, 590086, 367731, 260731, 291834, 291834,
				220280, 220280, 600027, 581731, 6280,   371743, 317561, 581731,
				220611, 617508, 287822, 256057, 1937,   220611, 323599, 220280,
			},
	},
};

static uint64_t fnv(uint64_t hash, uint32_t block)
{
	for (unsigned int i = 0; i < 4; i++)
		hash = (hash ^ (block >> (8 * i) & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

static void same_as_fio(void **state)
{
	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vectors); v++) {
		uint64_t hash = UINT64_C(0xcbf29ce484222325);
		struct zipf_fio_dist dist;
		struct zipf_fio job;

		assert_int_equal(zipf_fio_dist_init(&dist, vectors[v].blocks, vectors[v].theta), 0);
		zipf_fio_init(&job, &dist, vectors[v].file, 1);
		for (size_t i = 0; i < 100000; i++) {
			const uint32_t block = (uint32_t)zipf_fio_next(&job);

			if (i < ARRAY_SIZE(vectors[v].first))
				assert_int_equal(block, vectors[v].first[i]);
			hash = fnv(hash, block);
		}
		assert_true(hash == vectors[v].hash);
	}
}

static void starts(const char *file, uint32_t job_nr, const uint32_t *expected)
{
	struct zipf_fio_dist dist;
	struct zipf_fio job;

	assert_int_equal(zipf_fio_dist_init(&dist, 40960, 0.9), 0);
	zipf_fio_init(&job, &dist, file, job_nr);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(zipf_fio_next(&job), expected[i]);
}

/* Twelve bytes and more of a name go through the hash's quirk. */
static void long_file_name(void **state)
{
	static const uint32_t expected[8] = {6811, 27871, 25216, 23536, 9148, 6386, 24376, 40939};

	(void)state;
	starts("a-rather-long-file-name.bin", 1, expected);
}

/* `numjobs=4` as fio ran it: the copies have the numbers 1, 4, 3, 2. */
static void copies_of_a_job(void **state)
{
	static const uint32_t expected[4][8] = {
		{32439, 40631, 1361, 7088, 22414, 13175, 25270, 18081},
		{27284, 35131, 13895, 35044, 14261, 31881, 22829, 25798},
		{18213, 17032, 22066, 751, 9442, 17042, 9008, 38908},
		{13251, 5258, 28810, 34479, 34645, 7228, 27885, 12421},
	};

	(void)state;
	starts("j.0.0", 1, expected[0]);
	starts("j.1.0", 4, expected[1]);
	starts("j.2.0", 3, expected[2]);
	starts("j.3.0", 2, expected[3]);
}

static void jobs_of_the_published_run(void **state)
{
	struct zipf_fio_dist dist;
	struct zipf_fio job, expected;

	(void)state;
	assert_int_equal(zipf_fio_dist_init(&dist, 1000, 0.8), 0);
	fio_read_job(&job, &dist, 0);
	zipf_fio_init(&expected, &dist, "read.0.0", 1);
	assert_int_equal(job.s1, expected.s1);
	fio_read_job(&job, &dist, 1);
	zipf_fio_init(&expected, &dist, "read.1.0", 16);
	assert_int_equal(job.s1, expected.s1);
	fio_read_job(&job, &dist, 15);
	zipf_fio_init(&expected, &dist, "read.15.0", 2);
	assert_int_equal(job.s1, expected.s1);
}

/* How many of n blocks any rank leads to. */
static double coverage(uint64_t n)
{
	uint64_t *hit = calloc(bitmap_words(n), sizeof(*hit)), nr = 0;

	assert_non_null(hit);
	for (uint64_t rank = 0; rank < n; rank++)
		bit_set(hit, rank * UINT64_C(0x61C8864680B583EB) % n);
	for (uint64_t i = 0; i < n; i++)
		nr += bit_test(hit, i);
	free(hit);
	return (double)nr / (double)n;
}

static void only_part_of_a_file_is_read(void **state)
{
	static uint8_t seen[4096];
	struct zipf_fio_dist dist;
	struct zipf_fio job;
	uint32_t block;
	size_t nr = 0;

	(void)state;
	assert_int_equal((int)(coverage(40960) * 10000 + 0.5), 9213);
	assert_int_equal((int)(coverage(655360) * 10000 + 0.5), 9412);
	assert_true(coverage(65536) == 1.0);
	/* And so does the generator: a tiny file, read long enough. */
	assert_int_equal(zipf_fio_dist_init(&dist, 1000, 0.5), 0);
	zipf_fio_init(&job, &dist, "x", 1);
	for (size_t i = 0; i < 2000000; i++) {
		zipf_fio_fill(&job, &block, 1);
		assert_true(block < 1000);
		seen[block] = 1;
	}
	for (size_t i = 0; i < 1000; i++)
		nr += seen[i];
	assert_int_equal(nr, (size_t)(coverage(1000) * 1000 + 0.5));
}

static void refuses(void **state)
{
	struct zipf_fio_dist dist;

	(void)state;
	assert_int_equal(zipf_fio_dist_init(&dist, 0, 0.8), -EINVAL);
	assert_int_equal(zipf_fio_dist_init(&dist, 100, 1.0), -EINVAL);
	assert_int_equal(zipf_fio_dist_init(&dist, 100, 0), -EINVAL);
	assert_int_equal(zipf_fio_dist_init(&dist, 100, -1), -EINVAL);
	assert_int_equal(zipf_fio_dist_init(&dist, 100, 0.0 / 0.0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_fio),
		cmocka_unit_test(long_file_name),
		cmocka_unit_test(copies_of_a_job),
		cmocka_unit_test(jobs_of_the_published_run),
		cmocka_unit_test(only_part_of_a_file_is_read),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
