/* SPDX-License-Identifier: MIT
 *
 * What some users of a resolved trace need besides the ids: when each page comes next, how often it
 * comes, and its rank among the page numbers.
 */
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "foliage/policy.h"

enum { AHEAD = 32, DIGIT = 1 << 16 };

int resolved_next(struct resolved *r)
{
	size_t bytes = r->nr_ids * sizeof(uint64_t);
	uint64_t *last, *next;

	if (r->next || !r->n)
		return 0;
	last = mem_table(bytes);
	next = mem_table(r->n * sizeof(*next));
	if (!last || !next) {
		mem_table_free(last, bytes);
		mem_table_free(next, r->n * sizeof(*next));
		return -ENOMEM;
	}
	memset(last, 0xff, bytes); /* FOLIAGE_NEVER */
	for (uint64_t i = r->n; i-- > 0;) {
		if (i >= AHEAD)
			__builtin_prefetch(&last[r->ids[i - AHEAD]], 1);
		next[i] = last[r->ids[i]];
		last[r->ids[i]] = i;
	}
	mem_table_free(last, bytes);
	r->next = next;
	return 0;
}

int resolved_counts(struct resolved *r)
{
	uint32_t *counts;

	if (r->counts || !r->n)
		return 0;
	counts = mem_table(r->nr_ids * sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (uint64_t i = 0; i < r->n; i++) {
		if (i + AHEAD < r->n)
			__builtin_prefetch(&counts[r->ids[i + AHEAD]], 1);
		counts[r->ids[i]] += counts[r->ids[i]] != UINT32_MAX;
	}
	r->counts = counts;
	return 0;
}

/* One pass of a least-significant-digit radix sort of ids by 16 bits of their pages. `start` is
 * scratch. */
static void sort_pass(const uint64_t *pages, unsigned int shift, const uint32_t *from, uint32_t *to,
		      uint32_t n, uint32_t *start)
{
	uint32_t sum = 0;

	memset(start, 0, DIGIT * sizeof(*start));
	for (uint32_t i = 0; i < n; i++)
		start[pages[i] >> shift & (DIGIT - 1)]++;
	for (uint32_t d = 0; d < DIGIT; d++) {
		uint32_t count = start[d];

		start[d] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			__builtin_prefetch(&pages[from[i + AHEAD]]);
		to[start[pages[from[i]] >> shift & (DIGIT - 1)]++] = from[i];
	}
}

int resolved_order(struct resolved *r)
{
	size_t bytes = r->nr_ids * sizeof(uint32_t);
	uint32_t *a, *b, *start;
	uint64_t differ = 0;

	if (r->order || !r->nr_ids)
		return 0;
	a = mem_table(bytes);
	b = mem_table(bytes);
	start = mem_table(DIGIT * sizeof(*start));
	if (!a || !b || !start) {
		mem_table_free(a, bytes);
		mem_table_free(b, bytes);
		mem_table_free(start, DIGIT * sizeof(*start));
		return -ENOMEM;
	}
	for (uint32_t id = 0; id < r->nr_ids; id++) {
		a[id] = id;
		differ |= r->pages[id] ^ r->pages[0];
	}
	for (unsigned int shift = 0; shift < 64; shift += 16) {
		uint32_t *swap = a;

		if (!(differ >> shift & (DIGIT - 1)))
			continue;
		sort_pass(r->pages, shift, a, b, r->nr_ids, start);
		a = b;
		b = swap;
	}
	for (uint32_t rank = 0; rank < r->nr_ids; rank++)
		b[a[rank]] = rank;
	mem_table_free(a, bytes);
	mem_table_free(start, DIGIT * sizeof(*start));
	r->order = b;
	return 0;
}

void resolved_free(struct resolved *r)
{
	mem_table_free(r->ids, r->n * sizeof(*r->ids));
	mem_table_free(r->ops, r->n);
	mem_table_free(r->pages, r->nr_ids * sizeof(*r->pages));
	mem_table_free(r->order, r->nr_ids * sizeof(*r->order));
	mem_table_free(r->next, r->n * sizeof(*r->next));
	mem_table_free(r->counts, r->nr_ids * sizeof(*r->counts));
	memset(r, 0, sizeof(*r));
}
