/* SPDX-License-Identifier: MIT
 *
 * W-TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017). New pages enter a small LRU window. What
 * the window gives up is a candidate for the main area, a segmented LRU of probation and protected;
 * in a full room the candidate and the tail of probation compare their frequencies in a count-min
 * sketch, and the rarer of the two leaves. Its counters stop at 15 and are halved every `sample`
 * times room accesses, so that it forgets.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "mm/reference/ids.h"
#include "mm/reference/reference.h"

enum { TLFU_WINDOW = 1, TLFU_PROBATION, TLFU_PROTECTED };

/* The sketch: rows, counters of a row per page of the room, and where a counter saturates (four
 * bits). */
enum { TLFU_ROWS = 4, TLFU_COUNTERS = 4, TLFU_MAX = 15 };

struct tlfu_knobs {
	double window, protected_;
	uint32_t sample;
};

struct tlfu {
	struct ids ids;
	struct ids_list window, probation, protected_;
	uint32_t window_pages, protected_pages;
	uint8_t *sketch; /* a counter a byte, rows one after another */
	uint32_t width;  /* of a row, a power of two */
	uint64_t added, sample;
};

static const struct foliage_knob tlfu_knobs[] = {
	{"window", "window, % of the room, at least one page", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct tlfu_knobs, window), 1, 0, 90, NULL},
	{"protected", "protected segment, % of the main area", FOLIAGE_KNOB_DOUBLE,
	 offsetof(struct tlfu_knobs, protected_), 80, 0, 100, NULL},
	{"sample", "accesses between two halvings of the sketch, times the room", FOLIAGE_KNOB_UINT,
	 offsetof(struct tlfu_knobs, sample), 10, 1, 1000, NULL},
	{0},
};

static void tlfu_destroy(void *state)
{
	struct tlfu *t = state;

	if (!t)
		return;
	mem_table_free(t->sketch, (size_t)t->width * TLFU_ROWS);
	ids_destroy(t);
}

static int tlfu_create(const struct foliage_policy_env *env, const void *knobs, void **state)
{
	const struct tlfu_knobs *k = knobs;
	struct tlfu *t = ids_create(sizeof(*t), env);
	uint32_t pages;

	if (!t)
		return -ENOMEM;
	t->window = ids_list(TLFU_WINDOW);
	t->probation = ids_list(TLFU_PROBATION);
	t->protected_ = ids_list(TLFU_PROTECTED);
	t->window_pages = ids_share(env->room, k->window);
	t->protected_pages = (uint32_t)((env->room - t->window_pages) * k->protected_ / 100.0);
	t->sample = (uint64_t)env->room * k->sample;
	pages = MIN(env->room, MAX(env->nr_ids, 1u));
	t->width = (uint32_t)TLFU_COUNTERS << MIN(order_base_2(pages), 28u);
	t->sketch = mem_table((size_t)t->width * TLFU_ROWS);
	if (!t->sketch) {
		tlfu_destroy(t);
		return -ENOMEM;
	}
	*state = t;
	return 0;
}

static uint8_t *tlfu_counter(const struct tlfu *t, uint64_t *hash, uint32_t row)
{
	return &t->sketch[(size_t)row * t->width + (splitmix64(hash) & (t->width - 1))];
}

static uint32_t tlfu_frequency(const struct tlfu *t, uint32_t id)
{
	uint64_t hash = t->ids.env.seed ^ id;
	uint32_t frequency = TLFU_MAX;

	for (uint32_t row = 0; row < TLFU_ROWS; row++) {
		uint32_t count = *tlfu_counter(t, &hash, row);

		frequency = MIN(frequency, count);
	}
	return frequency;
}

static void tlfu_count(struct tlfu *t, uint32_t id)
{
	uint64_t hash = t->ids.env.seed ^ id;

	for (uint32_t row = 0; row < TLFU_ROWS; row++) {
		uint8_t *counter = tlfu_counter(t, &hash, row);

		if (*counter < TLFU_MAX)
			++*counter;
	}
	if (++t->added < t->sample)
		return;
	t->added /= 2;
	for (size_t i = 0; i < (size_t)t->width * TLFU_ROWS; i++)
		t->sketch[i] >>= 1;
}

static void tlfu_hit(struct tlfu *t, uint32_t id)
{
	struct ids_node *nodes = t->ids.nodes;

	switch (nodes[id].where) {
	case TLFU_WINDOW:
		ids_to_head(nodes, &t->window, id);
		return;
	case TLFU_PROTECTED:
		ids_to_head(nodes, &t->protected_, id);
		return;
	default:
		break;
	}
	ids_remove(nodes, &t->probation, id);
	ids_push_head(nodes, &t->protected_, id);
	ids_promoted(&t->ids, id, TLFU_PROBATION, TLFU_PROTECTED);
	if (t->protected_.nr > t->protected_pages) {
		uint32_t tail = t->protected_.tail;

		ids_remove(nodes, &t->protected_, tail);
		ids_push_head(nodes, &t->probation, tail);
	}
}

/* The window is over its share: its tail goes to the main area, and in a full room someone leaves
 * for it. */
static void tlfu_admit(struct tlfu *t)
{
	struct ids_node *nodes = t->ids.nodes;
	uint32_t candidate = t->window.tail, victim;
	bool full = t->window.nr + t->probation.nr + t->protected_.nr > t->ids.env.room;

	if (full) {
		struct ids_list *from = t->probation.nr ? &t->probation : &t->protected_;

		victim = from->tail;
		if (tlfu_frequency(t, candidate) <= tlfu_frequency(t, victim)) {
			ids_evict(&t->ids, &t->window, candidate);
			return;
		}
		ids_evict(&t->ids, from, victim);
	}
	ids_remove(nodes, &t->window, candidate);
	ids_push_head(nodes, &t->probation, candidate);
}

static bool tlfu_access(void *state, uint32_t id, uint64_t now)
{
	struct tlfu *t = state;

	t->ids.now = now;
	tlfu_count(t, id);
	if (t->ids.nodes[id].where) {
		tlfu_hit(t, id);
		return true;
	}
	ids_push_head(t->ids.nodes, &t->window, id);
	if (t->window.nr > t->window_pages)
		tlfu_admit(t);
	return false;
}

const struct foliage_policy foliage_policy_wtinylfu = {
	.abi = FOLIAGE_POLICY_ABI,
	.name = "wtinylfu",
	.summary = "an LRU window, then a segmented LRU entered by winning a comparison of "
		   "frequencies",
	.knobs = tlfu_knobs,
	.knobs_size = sizeof(struct tlfu_knobs),
	.create = tlfu_create,
	.destroy = tlfu_destroy,
	.access = tlfu_access,
	.stats = ids_stats,
};
