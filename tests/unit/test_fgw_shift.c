/* SPDX-License-Identifier: MIT
 *
 * FG-W where the working set moves: zipf whose permutation changes, measured over whole phases and
 * right after each change, against fg in the same room. The limits are what docs/fg-w.md says was
 * measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/room.h"

enum { PAGES = 50000, PHASES = 3, PHASE = 1000000, WINDOW = 125000 };

struct trace {
	uint32_t *ids, *permutation;
	double *cdf;
};

static uint32_t rank_of(const double *cdf, double u)
{
	uint32_t low = 0, high = PAGES - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (cdf[middle] < u)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void shifting_zipf(struct trace *t, double theta)
{
	uint64_t rng = 42;
	double sum = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		t->cdf[i] = sum += pow(i + 1, -theta);
		t->permutation[i] = i;
	}
	for (uint32_t i = 0; i < PAGES; i++)
		t->cdf[i] /= sum;
	for (int phase = 0; phase < PHASES; phase++) {
		for (uint32_t i = PAGES - 1; i > 0; i--) {
			uint32_t j = (uint32_t)splitmix64_below(&rng, i + 1),
				 swap = t->permutation[i];

			t->permutation[i] = t->permutation[j];
			t->permutation[j] = swap;
		}
		for (int i = 0; i < PHASE; i++) {
			double u = (double)(splitmix64(&rng) >> 11) * 0x1p-53;

			t->ids[at++] = t->permutation[rank_of(t->cdf, u)];
		}
	}
}

/* Misses of all phases but the first, and of the first window of each. */
static void run(const struct trace *t, const char *policy, uint32_t pages, uint64_t *whole,
		uint64_t *first)
{
	struct foliage_policy_env env = {.room = pages, .nr_ids = PAGES, .seed = 1, .scale = 1};
	struct foliage_stats stats;
	struct policy_choice choice;
	struct err err = {0};
	struct room *room;

	if (policy_parse(policy, &choice, &err) || room_open(&choice, &env, &room, &err))
		fail_msg("%s", err.text);
	*whole = *first = 0;
	for (int i = 0; i < PHASES * (PHASE / WINDOW); i++) {
		assert_int_equal(room_run(room, t->ids + (size_t)i * WINDOW, NULL, WINDOW), 0);
		room_stats(room, &stats);
		room_stats_reset(room);
		if (i < PHASE / WINDOW)
			continue;
		*whole += stats.misses;
		*first += i % (PHASE / WINDOW) ? 0 : stats.misses;
	}
	room_close(room);
	policy_choice_free(&choice);
}

static void after_a_shift(void **state)
{
	static const double thetas[] = {0.7, 0.9, 1.1};
	static const uint32_t rooms[] = {500, 5000, 20000};
	struct trace t = {
		.ids = malloc(sizeof(*t.ids) * PHASES * PHASE),
		.permutation = malloc(sizeof(*t.permutation) * PAGES),
		.cdf = malloc(sizeof(*t.cdf) * PAGES),
	};

	(void)state;
	assert_true(t.ids && t.permutation && t.cdf);
	for (size_t i = 0; i < ARRAY_SIZE(thetas); i++) {
		shifting_zipf(&t, thetas[i]);
		for (size_t j = 0; j < ARRAY_SIZE(rooms); j++) {
			uint64_t fg[2], fgw[2];

			run(&t, "fg", rooms[j], &fg[0], &fg[1]);
			run(&t, "fgw", rooms[j], &fgw[0], &fgw[1]);
			printf("theta %.1f, %5u pages: whole %.4f, first window %.4f of fg\n",
			       thetas[i], rooms[j], (double)fgw[0] / (double)fg[0],
			       (double)fgw[1] / (double)fg[1]);
			assert_true((double)fgw[0] <= 1.01 * (double)fg[0]);
			assert_true((double)fgw[1] <= 1.02 * (double)fg[1]);
		}
	}
	free(t.ids);
	free(t.permutation);
	free(t.cdf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_shift),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
