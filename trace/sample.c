/* SPDX-License-Identifier: MIT
 *
 * Spatial sampling: a page is in the sample with all its accesses or not at all, so that reuse
 * distances shrink by the rate and a room shrunk by the rate sees the same misses.
 *
 * Which pages: not those whose number hashes below a threshold, as is usual. A few pages take most
 * of the accesses of a skewed trace, and whether the hash picks the hottest one or none of the
 * first hundred moves the whole curve. Pages are put in the order of their number of accesses, and
 * within one number in the order of appearance; page p of that order is in when the fraction of p
 * times the golden ratio (plus the seed's offset) is below the rate. Those fractions are spread as
 * evenly as can be over any stretch, so every class of pages, the hot, the warm, those used once,
 * those of each part of the trace, is there with its share. A larger rate only adds pages.
 * docs/mrc.md has the errors of both ways.
 */
#include "trace/sample.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS, NOWHERE = 255 };

#define GOLDEN UINT32_C(0x9E3779B9) /* 2^32 over the golden ratio */

static uint32_t digit_of(uint32_t count, unsigned int shift)
{
	return ~count >> shift & (DIGITS - 1);
}

/* One pass of a stable sort of ids, most accesses first. `start` has a place for each digit. */
static void sort_pass(const struct resolved *r, unsigned int shift, const uint32_t *from,
		      uint32_t *to, uint32_t *start)
{
	uint32_t sum = 0;

	memset(start, 0, DIGITS * sizeof(*start));
	for (uint32_t i = 0; i < r->nr_ids; i++)
		start[digit_of(r->counts[i], shift)]++;
	for (uint32_t d = 0; d < DIGITS; d++) {
		uint32_t count = start[d];

		start[d] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < r->nr_ids; i++)
		to[start[digit_of(r->counts[from[i]], shift)]++] = from[i];
}

/* level[id]: the first rate whose sample has the page, or NOWHERE. */
static void choose(const struct resolved *r, const uint32_t *order, const double *rates, size_t nr,
		   uint64_t seed, uint8_t *level)
{
	uint32_t offset = (uint32_t)(splitmix64(&seed) >> 32);

	for (uint32_t p = 0; p < r->nr_ids; p++) {
		double key = (double)(uint32_t)(p * GOLDEN + offset) / 4294967296.0;
		size_t l = 0;

		while (l < nr && key >= rates[l])
			l++;
		level[order[p]] = l < nr ? (uint8_t)l : NOWHERE;
	}
}

static int choose_levels(const struct resolved *r, const double *rates, size_t nr, uint64_t seed,
			 uint8_t *level)
{
	const size_t bytes = r->nr_ids * sizeof(uint32_t), start_bytes = DIGITS * sizeof(uint32_t);
	uint32_t *a = mem_table(bytes), *b = mem_table(bytes), *start = mem_table(start_bytes);
	int code = a && b && start ? 0 : -ENOMEM;

	if (!code) {
		for (uint32_t id = 0; id < r->nr_ids; id++)
			a[id] = id;
		sort_pass(r, 0, a, b, start);
		sort_pass(r, DIGIT_BITS, b, a, start);
		choose(r, a, rates, nr, seed, level);
	}
	mem_table_free(a, bytes);
	mem_table_free(b, bytes);
	mem_table_free(start, start_bytes);
	return code;
}

/* The tables of each sample have the size that its n and nr_ids say, which is how resolved_free()
 * knows it. */
static int make_tables(const struct resolved *whole, const uint8_t *level, size_t nr,
		       struct resolved *out)
{
	uint64_t counted = 0;

	for (uint32_t id = 0; id < whole->nr_ids; id++) {
		counted += whole->counts[id];
		for (size_t l = level[id]; l < nr; l++) {
			out[l].nr_ids++;
			out[l].n += whole->counts[id];
		}
	}
	/* A count that is full says less than there is. */
	if (counted != whole->n)
		return -EOVERFLOW;
	for (size_t l = 0; l < nr; l++) {
		struct resolved *r = &out[l];

		if (!r->n)
			continue;
		r->ids = mem_table(r->n * sizeof(*r->ids));
		r->pages = mem_table(r->nr_ids * sizeof(*r->pages));
		r->ops = whole->ops ? mem_table(r->n) : NULL;
		if (!r->ids || !r->pages || (whole->ops && !r->ops))
			return -ENOMEM;
	}
	return 0;
}

/* Ids of a trace count up as they appear first, and so they do in a sample: one pass over the ids
 * renumbers them. */
static void renumber(const struct resolved *whole, const uint8_t *level, size_t l, uint32_t *number,
		     struct resolved *out)
{
	uint32_t next = 0;

	for (uint32_t id = 0; id < whole->nr_ids; id++) {
		if (level[id] > l)
			continue;
		out->pages[next] = whole->pages[id];
		number[id] = next++;
	}
}

/* The accesses of the largest sample, by the ids of the whole trace; the smaller ones are parts of
 * it. */
static void gather(const struct resolved *whole, const uint8_t *level, struct resolved *out)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < whole->n; i++) {
		if (level[whole->ids[i]] == NOWHERE)
			continue;
		if (whole->ops)
			out->ops[n] = whole->ops[i];
		out->ids[n++] = whole->ids[i];
	}
}

static void fill(const struct resolved *largest, const uint8_t *level, size_t l,
		 const uint32_t *number, struct resolved *out)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < largest->n; i++) {
		uint32_t id = largest->ids[i];

		if (level[id] > l)
			continue;
		if (largest->ops)
			out->ops[n] = largest->ops[i];
		out->ids[n++] = number[id];
	}
}

static int cut_out(const struct resolved *whole, const uint8_t *level, size_t nr,
		   struct resolved *out)
{
	const size_t bytes = whole->nr_ids * sizeof(uint32_t);
	uint32_t *number = mem_table(bytes);
	int code = number ? make_tables(whole, level, nr, out) : -ENOMEM;

	if (!code) {
		gather(whole, level, &out[nr - 1]);
		for (size_t l = 0; l < nr; l++) {
			/* The last one is its own source and renumbers itself in place. */
			renumber(whole, level, l, number, &out[l]);
			fill(&out[nr - 1], level, l, number, &out[l]);
		}
	}
	mem_table_free(number, bytes);
	return code;
}

static bool rates_are_right(const double *rates, size_t nr)
{
	if (!nr || nr > SAMPLE_RATES_MAX)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!(rates[i] > 0 && rates[i] <= 1) || (i && rates[i] < rates[i - 1]))
			return false;
	}
	return true;
}

int sample_take(struct resolved *whole, const double *rates, size_t nr, uint64_t seed,
		struct resolved *out)
{
	uint8_t *level;
	int code;

	if (!rates_are_right(rates, nr))
		return -EINVAL;
	memset(out, 0, nr * sizeof(*out));
	if (!whole->n)
		return 0;
	if (resolved_counts(whole))
		return -ENOMEM;
	level = mem_table(whole->nr_ids);
	if (!level)
		return -ENOMEM;
	code = choose_levels(whole, rates, nr, seed, level);
	if (!code)
		code = cut_out(whole, level, nr, out);
	mem_table_free(level, whole->nr_ids);
	for (size_t l = 0; code && l < nr; l++)
		resolved_free(&out[l]);
	return code;
}

double sample_miss_ratio(uint64_t misses, double rate, uint64_t accesses)
{
	return MIN((double)misses / (rate * (double)accesses), 1.0);
}
