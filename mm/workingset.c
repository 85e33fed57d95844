/* SPDX-License-Identifier: MIT
 *
 * Refault distance (A.7): is a page that comes back one that a slightly larger cache would have
 * kept?
 *
 * Every lruvec has a clock, the non-resident age. It advances by a page whenever one leaves the
 * inactive list: downwards, by eviction, or upwards, by activation. An evicted folio leaves the
 * time of its eviction behind. When it returns, the time that has passed is the least number of
 * further inactive slots that would have kept it. If the active list has that many pages, the
 * returning one is taken to be at least as hot as those: it comes back active, and the coldest
 * active ones will have to compete with it.
 *
 * Clocks count for the whole subtree: whatever ages an lruvec ages its ancestors. A shadow holds
 * the time and the name of the memcg that was being reclaimed, which may be an ancestor of the
 * folio's own, because it is that one's room that was too small.
 */
#include "mm/clru.h"
#include "mm/memcg.h"
#include "mm/shadow.h"

void workingset_age(const struct foliage_engine *e, struct lruvec *lv, int64_t nr)
{
	for (;;) {
		uint32_t parent = e->memcgs[lv->memcg].parent;

		counter_add(e, &lv->clru.nonresident_age, nr);
		if (parent == lv->memcg)
			return;
		lv = lruvec_of(e, parent, lv->node);
	}
}

/* How coarse the clock of a shadow is: 0 until memory has more pages than the timestamp has
 * values. */
static unsigned int bucket_order(const struct foliage_engine *e)
{
	unsigned int bits = fls64(e->totalram_pages - 1);

	return bits > SHADOW_TIME_BITS ? bits - SHADOW_TIME_BITS : 0;
}

uint64_t workingset_eviction(struct foliage_engine *e, struct lruvec *target, folio_id id)
{
	uint64_t flags = folio_flags(folio_at(e, id));
	uint64_t age = (uint64_t)counter_read(&target->clru.nonresident_age);

	workingset_age(e, target, flags_nr(flags));
	return shadow_pack(e->memcgs[target->memcg].id, target->node,
			   age >> bucket_order(e) & SHADOW_TIME_MASK, flags & F_WORKINGSET);
}

/* Pages that would have to give way to one of this type. */
static uint64_t workingset_size(const struct foliage_engine *e, const struct lruvec *lv,
				unsigned int type)
{
	uint64_t size = clru_seen_size(e, lv, LIST_ACTIVE_FILE);

	if (type == TYPE_ANON)
		size += clru_seen_size(e, lv, LIST_INACTIVE_FILE);
	if (e->backend.swap_free && e->backend.swap_free(e->ctx, lv->memcg) > 0) {
		size += clru_seen_size(e, lv, LIST_ACTIVE_ANON);
		if (type == TYPE_FILE)
			size += clru_seen_size(e, lv, LIST_INACTIVE_ANON);
	}
	return size;
}

static bool distance_fits(const struct foliage_engine *e, const struct lruvec *lv,
			  unsigned int type, uint64_t shadow)
{
	unsigned int order = bucket_order(e);
	uint64_t age =
		(uint64_t)counter_read(&lv->clru.nonresident_age) - (shadow_time(shadow) << order);

	return (age & ((UINT64_C(1) << (SHADOW_TIME_BITS + order)) - 1)) <=
	       workingset_size(e, lv, type);
}

/* The distance is measured in the memcg that was reclaimed, which nothing of the page's keeps: the
 * session does, from the look for its slot on, so that the slot is not made another's meanwhile. */
static bool refault_is_recent(struct foliage_engine *e, unsigned int type, uint64_t shadow)
{
	unsigned int session = memcg_enter(e);
	const struct lruvec *lv = shadow_lruvec(e, shadow);
	bool recent = lv && clru_knobs(e)->refault != CLRU_REFAULT_NEVER;

	if (recent && clru_knobs(e)->refault != CLRU_REFAULT_ALWAYS)
		recent = distance_fits(e, lv, type, shadow);
	memcg_leave(e, session);
	return recent;
}

void workingset_refault(struct foliage_engine *e, struct foliage_cpu *cpu, struct lruvec *lv,
			folio_id id, uint64_t shadow)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f), set = F_ACTIVE;
	unsigned int type = flags_type(flags);
	int64_t nr = flags_nr(flags);

	(void)cpu;
	stat_add(e, lv, clru_stat(STAT_REFAULT_ANON, type), nr);
	if (!refault_is_recent(e, type, shadow)) {
		stat_add(e, lv, STAT_REFAULT_STALE, nr);
		folio_event(e, id, FOLIAGE_EV_REFAULT, FOLIAGE_WHY_STALE, -1, -1, flags, flags);
		return;
	}
	workingset_age(e, lv, nr);
	stat_add(e, lv, clru_stat(STAT_ACTIVATE_ANON, type), nr);
	if (shadow_workingset(shadow)) {
		set |= F_WORKINGSET;
		stat_add(e, lv, clru_stat(STAT_RESTORE_ANON, type), nr);
		clru_note_cost(e, lv, type, (uint64_t)nr, 0);
	}
	folio_change(e, f, 0, set);
	folio_event(e, id, FOLIAGE_EV_REFAULT, FOLIAGE_WHY_RECENT, -1, -1, flags, flags | set);
}
