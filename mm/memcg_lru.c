/* SPDX-License-Identifier: MIT
 *
 * The memcg LRU (B.11): which memcg global reclaim of the multi-gen family looks at next.
 *
 * Per node, memcgs (their lruvecs) stand in three generations of eight bins. seq mod 3 is the old
 * generation, seq + 1 mod 3 the young one; the third is empty, so that one that is still being
 * emptied never meets its successor. Reclaim starts at a random bin of the old generation, shrinks
 * one memcg after another and moves each as its outcome says; when the old generation is empty the
 * young one becomes old. Eight bins and a random start keep concurrent reclaimers apart.
 *
 *   HEAD   same generation, head of a random bin      OLD    old generation, head (going offline)
 *   TAIL   same generation, tail of a random bin      YOUNG  young generation, tail
 *
 * A bin is a circle of lruvec indices; memcg_bins holds its first, whose memcg_prev is the last.
 * B.12 (min_ttl_ms) asks all memcgs of a node and lives here for that.
 */
#include "base/rng.h"
#include "mm/gen.h"

enum { GENS = 3, BINS = 8, OFF = UINT8_MAX };

static void bins_lock(const struct foliage_engine *e, struct node *n)
{
	if (!e->exclusive)
		pthread_mutex_lock(&n->memcg_lru_lock);
}

static void bins_unlock(const struct foliage_engine *e, struct node *n)
{
	if (!e->exclusive)
		pthread_mutex_unlock(&n->memcg_lru_lock);
}

static unsigned int old_gen(const struct node *n)
{
	return (unsigned int)(n->memcg_seq % GENS);
}

static void bin_insert(struct foliage_engine *e, struct node *n, struct lruvec *lv,
		       unsigned int gen, bool head)
{
	unsigned int bin = splitmix64_below(&n->rng, BINS);
	int32_t *first = &n->memcg_bins[gen][bin], id = (int32_t)lv->index;

	lv->gen.memcg_gen = (uint8_t)gen;
	lv->gen.memcg_bin = (uint8_t)bin;
	n->memcg_nr[gen]++;
	if (*first < 0) {
		lv->gen.memcg_prev = lv->gen.memcg_next = id;
		*first = id;
		return;
	}
	lv->gen.memcg_next = *first;
	lv->gen.memcg_prev = e->lruvecs[*first].gen.memcg_prev;
	e->lruvecs[lv->gen.memcg_prev].gen.memcg_next = id;
	e->lruvecs[*first].gen.memcg_prev = id;
	if (head)
		*first = id;
}

static void bin_remove(struct foliage_engine *e, struct node *n, struct lruvec *lv)
{
	int32_t *first = &n->memcg_bins[lv->gen.memcg_gen][lv->gen.memcg_bin];

	n->memcg_nr[lv->gen.memcg_gen]--;
	if (lv->gen.memcg_next == (int32_t)lv->index) {
		*first = -1;
		return;
	}
	e->lruvecs[lv->gen.memcg_prev].gen.memcg_next = lv->gen.memcg_next;
	e->lruvecs[lv->gen.memcg_next].gen.memcg_prev = lv->gen.memcg_prev;
	if (*first == (int32_t)lv->index)
		*first = lv->gen.memcg_next;
}

/* The last memcg has left `gen`: if that was the old one, the young one takes its place. */
static void advance_if_empty(struct node *n, unsigned int gen)
{
	if (!n->memcg_nr[gen] && gen == old_gen(n))
		n->memcg_seq++;
}

void memcg_lru_init(struct foliage_engine *e)
{
	for (uint32_t i = 0; i < e->nr_nodes; i++) {
		struct node *n = &e->nodes[i];

		n->memcg_seq = 0;
		for (unsigned int gen = 0; gen < GENS; gen++) {
			n->memcg_nr[gen] = 0;
			for (unsigned int bin = 0; bin < BINS; bin++)
				n->memcg_bins[gen][bin] = -1;
		}
	}
}

void memcg_lru_online(struct foliage_engine *e, uint32_t memcg)
{
	for (uint32_t i = 0; i < e->nr_nodes; i++) {
		struct lruvec *lv = lruvec_of(e, memcg, i);

		bins_lock(e, &e->nodes[i]);
		lv->gen.memcg_seg = MEMCG_LRU_DEFAULT;
		bin_insert(e, &e->nodes[i], lv, old_gen(&e->nodes[i]), false);
		bins_unlock(e, &e->nodes[i]);
	}
}

void memcg_lru_offline(struct foliage_engine *e, uint32_t memcg)
{
	for (uint32_t i = 0; i < e->nr_nodes; i++)
		memcg_lru_rotate(e, lruvec_of(e, memcg, i), MEMCG_LRU_OLD);
}

void memcg_lru_release(struct foliage_engine *e, uint32_t memcg)
{
	for (uint32_t i = 0; i < e->nr_nodes; i++) {
		struct lruvec *lv = lruvec_of(e, memcg, i);
		unsigned int gen;

		bins_lock(e, &e->nodes[i]);
		gen = lv->gen.memcg_gen;
		if (gen != OFF) {
			bin_remove(e, &e->nodes[i], lv);
			lv->gen.memcg_gen = OFF;
			advance_if_empty(&e->nodes[i], gen);
		}
		bins_unlock(e, &e->nodes[i]);
	}
}

void memcg_lru_rotate(struct foliage_engine *e, struct lruvec *lv, enum memcg_lru_op op)
{
	struct node *n = &e->nodes[lv->node];
	unsigned int from, to;

	if (op == MEMCG_LRU_NOP)
		return;
	bins_lock(e, n);
	from = lv->gen.memcg_gen;
	if (from != OFF) {
		to = from;
		if (op == MEMCG_LRU_OLD)
			to = old_gen(n);
		else if (op == MEMCG_LRU_YOUNG)
			to = (unsigned int)((n->memcg_seq + 1) % GENS);
		bin_remove(e, n, lv);
		lv->gen.memcg_seg = op == MEMCG_LRU_HEAD   ? MEMCG_LRU_SEG_HEAD
				    : op == MEMCG_LRU_TAIL ? MEMCG_LRU_SEG_TAIL
							   : MEMCG_LRU_DEFAULT;
		bin_insert(e, n, lv, to, op == MEMCG_LRU_HEAD || op == MEMCG_LRU_OLD);
		advance_if_empty(n, from);
	}
	bins_unlock(e, n);
}

static bool is_sizable(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	uint64_t size = 0;

	if (e->ops->rules)
		return gen_is_sizable(e, lv, sc);
	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (type_evictable(type, get_swappiness(e, lv, sc)))
			size += e->ops->size(e, lv, type);
	return scaled_budget(e, size, sc->priority) != 0;
}

static unsigned int segment(const struct foliage_engine *e, const struct lruvec *lv)
{
	struct node *n = &e->nodes[lv->node];
	unsigned int seg;

	bins_lock(e, n);
	seg = lv->gen.memcg_seg;
	bins_unlock(e, n);
	return seg;
}

/* Shrink one memcg; the answer is where it goes. */
static enum memcg_lru_op shrink_one(struct foliage_engine *e, struct lruvec *lv,
				    struct scan_control *sc)
{
	uint32_t memcg = lv->memcg;
	bool rotate;

	if (memcg_below_min(e, 0, memcg))
		return MEMCG_LRU_YOUNG;
	if (memcg_below_low(e, 0, memcg)) {
		if (segment(e, lv) != MEMCG_LRU_SEG_TAIL)
			return MEMCG_LRU_TAIL;
		stat_add(e, lv, STAT_LOW_EVENTS, 1);
	}
	rotate = e->ops->shrink_lruvec(e, lv, sc);
	engine_yield(e);
	if (rotate && e->memcgs[memcg].online)
		return MEMCG_LRU_YOUNG;
	if (!rotate && is_sizable(e, lv, sc))
		return MEMCG_LRU_NOP;
	return segment(e, lv) != MEMCG_LRU_SEG_TAIL ? MEMCG_LRU_TAIL : MEMCG_LRU_YOUNG;
}

static bool enough(const struct foliage_engine *e, const struct scan_control *sc)
{
	const struct node *n = &e->nodes[sc->node];

	if (sc->nr_reclaimed >= sc->nr_to_reclaim)
		return true;
	return sc->kswapd && n->high_watermark &&
	       n->free_pages >= n->high_watermark + MIN_LRU_BATCH;
}

/* After `lv` in its bin, -1 at the end; *moved when the walk has lost its bin to somebody else's
 * move. */
static int32_t next_in_bin(const struct foliage_engine *e, const struct lruvec *lv,
			   unsigned int gen, unsigned int bin, bool *moved)
{
	struct node *n = &e->nodes[lv->node];
	int32_t next = -1;

	bins_lock(e, n);
	*moved = lv->gen.memcg_gen != gen || lv->gen.memcg_bin != bin;
	if (!*moved && lv->gen.memcg_next != n->memcg_bins[gen][bin])
		next = lv->gen.memcg_next;
	bins_unlock(e, n);
	return next;
}

enum walk_end { WALK_ENOUGH, WALK_END, WALK_LOST };

/* Each memcg of one bin of the old generation. A memcg moves only after its successor is known. */
static enum walk_end shrink_bin(struct foliage_engine *e, struct scan_control *sc, unsigned int bin)
{
	struct node *n = &e->nodes[sc->node];
	unsigned int gen;
	int32_t at;

	bins_lock(e, n);
	gen = old_gen(n);
	at = n->memcg_bins[gen][bin];
	bins_unlock(e, n);
	while (at >= 0) {
		struct lruvec *lv = &e->lruvecs[at];
		enum memcg_lru_op op = shrink_one(e, lv, sc);
		bool moved;

		at = next_in_bin(e, lv, gen, bin, &moved);
		if (!moved)
			memcg_lru_rotate(e, lv, op);
		if (enough(e, sc))
			return WALK_ENOUGH;
		if (moved)
			return WALK_LOST;
	}
	return WALK_END;
}

void memcg_lru_shrink(struct foliage_engine *e, struct scan_control *sc)
{
	struct node *n = &e->nodes[sc->node];
	unsigned int first, bin;

	bins_lock(e, n);
	first = splitmix64_below(&n->rng, BINS);
	bins_unlock(e, n);
	bin = first;
	do {
		enum walk_end end;

		do
			end = shrink_bin(e, sc, bin);
		while (end == WALK_LOST);
		if (end == WALK_ENOUGH)
			return;
		bin = (bin + 1) % BINS;
	} while (bin != first);
}

/* Is there anything in this lruvec that min_ttl_ms does not protect? */
static bool old_enough(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc)
{
	int swappiness = get_swappiness(e, lv, sc);
	uint64_t seq = UINT64_MAX;

	if (memcg_below_min(e, 0, lv->memcg) || !is_sizable(e, lv, sc))
		return false;
	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (type_evictable(type, swappiness))
			seq = MIN(seq, gen_min_seq(lv, type));
	return engine_now_ms(e) > lv->gen.timestamps[gen_of(seq)] + e->min_ttl_ms;
}

bool lru_gen_min_ttl_ok(struct foliage_engine *e, struct scan_control *sc)
{
	uint32_t memcg = UINT32_MAX;

	if (!e->min_ttl_ms || !e->ops->rules)
		return true;
	while ((memcg = memcg_next(e, 0, memcg)) != UINT32_MAX)
		if (old_enough(e, lruvec_of(e, memcg, sc->node), sc))
			return true;
	return false;
}
