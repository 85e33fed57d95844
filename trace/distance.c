/* SPDX-License-Identifier: MIT
 *
 * Every page holds one position on a tape, at its last access; a distance is the number of
 * positions held behind it. Positions are bits; lines of 512 bits have their sums in a Fenwick
 * tree, so that a query takes one short walk in a small tree and one popcount of a cache line. The
 * tape is twice as long as there are pages; when its end is reached the held positions move
 * together at the front.
 */
#include "trace/distance.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

enum { LINE = 512, WORDS = LINE / 64, NONE = UINT32_MAX };

struct tape {
	uint32_t length, end; /* positions: all, used so far */
	uint32_t nr_lines, held;
	uint64_t *bits;     /* [length / 64] */
	uint32_t *sums;     /* Fenwick tree, [1..nr_lines] */
	uint32_t *owner;    /* [length] id */
	uint32_t *position; /* [nr_ids] NONE: not seen yet */
	uint32_t nr_ids;
};

static void tape_close(struct tape *t)
{
	mem_table_free(t->bits, t->length / 8);
	mem_table_free(t->sums, (t->nr_lines + 1) * sizeof(*t->sums));
	mem_table_free(t->owner, t->length * sizeof(*t->owner));
	mem_table_free(t->position, t->nr_ids * sizeof(*t->position));
}

static int tape_open(struct tape *t, uint32_t nr_ids)
{
	if (nr_ids > 1u << 30)
		return -E2BIG;
	t->nr_ids = nr_ids;
	t->nr_lines = nr_ids / (LINE / 2) + 8;
	t->length = t->nr_lines * LINE;
	t->bits = mem_table(t->length / 8);
	t->sums = mem_table((t->nr_lines + 1) * sizeof(*t->sums));
	t->owner = mem_table(t->length * sizeof(*t->owner));
	t->position = mem_table(nr_ids * sizeof(*t->position));
	if (!t->bits || !t->sums || !t->owner || !t->position) {
		tape_close(t);
		return -ENOMEM;
	}
	memset(t->position, 0xff, nr_ids * sizeof(*t->position));
	return 0;
}

static void sums_add(struct tape *t, uint32_t position, uint32_t what)
{
	for (uint32_t i = position / LINE + 1; i <= t->nr_lines; i += i & -i)
		t->sums[i] += what;
}

/* Positions held up to and with `position`. */
static uint32_t held_up_to(const struct tape *t, uint32_t position)
{
	uint32_t line = position / LINE, word = position / 64, sum = 0;

	for (uint32_t i = line; i; i &= i - 1)
		sum += t->sums[i];
	for (uint32_t w = line * WORDS; w < word; w++)
		sum += (uint32_t)__builtin_popcountll(t->bits[w]);
	return sum + (uint32_t)__builtin_popcountll(t->bits[word] << (63 - position % 64));
}

static void tape_compact(struct tape *t)
{
	uint32_t to = 0;

	for (uint32_t from = 0; from < t->end; from++) {
		if (!bit_test(t->bits, from))
			continue;
		t->owner[to] = t->owner[from];
		t->position[t->owner[to]] = to;
		to++;
	}
	memset(t->bits, 0, t->length / 8);
	memset(t->sums, 0, (t->nr_lines + 1) * sizeof(*t->sums));
	for (uint32_t i = 0; i < to; i++)
		bit_set(t->bits, i);
	for (uint32_t i = 0; i < to; i += LINE)
		sums_add(t, i, MIN(to - i, LINE));
	t->end = to;
}

/* The distance of this access, or NONE. */
static uint32_t tape_access(struct tape *t, uint32_t id)
{
	uint32_t position = t->position[id], distance = NONE;

	if (position != NONE) {
		distance = t->held - held_up_to(t, position);
		bit_clear(t->bits, position);
		sums_add(t, position, (uint32_t)-1);
		t->held--;
	}
	if (t->end == t->length)
		tape_compact(t);
	position = t->end++;
	t->position[id] = position;
	t->owner[position] = id;
	bit_set(t->bits, position);
	sums_add(t, position, 1);
	t->held++;
	return distance;
}

int trace_distances(const struct resolved *r, uint64_t *count,
		    bool (*progress)(void *ctx, uint64_t accesses), void *ctx)
{
	struct tape t = {0};
	int code = tape_open(&t, r->nr_ids);

	if (code)
		return code;
	for (uint64_t i = 0; i < r->n && !code; i++) {
		uint32_t distance = tape_access(&t, r->ids[i]);

		if (distance != NONE)
			count[distance]++;
		if (progress && !(i & 0xffff) && !progress(ctx, i))
			code = -EINTR;
	}
	tape_close(&t);
	return code;
}
