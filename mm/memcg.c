/* SPDX-License-Identifier: MIT
 *
 * memcgs: the tree, charging and its limits, protection (A.8).
 *
 * Slots are type-stable. A memcg lives in its slot through three states:
 *
 *   online    takes folios; its id is in the table that shadows are looked up in.
 *   dying     removed: its id has vanished, its folios hang on the parent's lists, and whoever
 *             still holds its slot number (a folio's owner, an add batch) is redirected to the
 *             parent by lruvec.dying. A policy without `reparent` (Linux 6.12) leaves the folios
 *             where they are: then the lruvec is offline, not dying.
 *   free      no folio names the slot any more and no child hangs on it: found out when a slot is
 *             needed, and taken out of the tree. Given to the next memcg when every reclaim session
 *             that may have met it is over, the one that has been free longest first.
 *
 * A parent outlives its children's slots, so the parent of a slot never changes while it is used.
 * The tree is walked without a lock: children are published last, and a child that leaves keeps its
 * own links.
 */
#include "mm/memcg.h"
#include "mm/engine.h"
#include "mm/gen.h"
#include "mm/walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NO_MEMCG = UINT32_MAX, ROOT_ID = 1, CHARGE_RETRIES = 16, COSTLY_PAGES = 8 };

__extension__ typedef unsigned __int128 wide;

/* ---- the tree ---- */

static void tree_lock(struct foliage_engine *e)
{
	if (!e->exclusive)
		pthread_mutex_lock(&e->tree_lock);
}

static void tree_unlock(struct foliage_engine *e)
{
	if (!e->exclusive)
		pthread_mutex_unlock(&e->tree_lock);
}

bool memcg_has_ancestor(const struct foliage_engine *e, uint32_t memcg, uint32_t ancestor)
{
	while (memcg != ancestor && memcg != 0)
		memcg = e->memcgs[memcg].parent;
	return memcg == ancestor;
}

uint32_t memcg_next(const struct foliage_engine *e, uint32_t root, uint32_t prev)
{
	uint32_t next;

	if (prev == NO_MEMCG)
		return root;
	/* A remembered place may have died and its slot may be elsewhere in the tree by now. */
	if (!e->memcgs[prev].used || !memcg_has_ancestor(e, prev, root))
		return NO_MEMCG;
	next = e->memcgs[prev].children;
	while (next == NO_MEMCG) {
		if (prev == root || prev == 0)
			return NO_MEMCG;
		next = e->memcgs[prev].next_sibling;
		prev = e->memcgs[prev].parent;
	}
	return next;
}

static void link_child(struct foliage_engine *e, uint32_t parent, uint32_t child)
{
	_Atomic uint32_t *link = &e->memcgs[parent].children;

	while (*link != NO_MEMCG)
		link = &e->memcgs[*link].next_sibling;
	*link = child;
}

static void unlink_child(struct foliage_engine *e, uint32_t parent, uint32_t child)
{
	_Atomic uint32_t *link = &e->memcgs[parent].children;

	while (*link != child)
		link = &e->memcgs[*link].next_sibling;
	*link = e->memcgs[child].next_sibling;
}

static bool id_taken(const struct foliage_engine *e, uint16_t id)
{
	if (e->memcg_of_id[id])
		return true;
	for (uint32_t i = 0; i < e->nr_memcgs; i++)
		if (e->memcgs[i].used && e->memcgs[i].id == id)
			return true;
	return false;
}

/* Ids rise and wrap, so that a shadow of a vanished memcg meets nobody for as long as possible.
 * There are more ids than slots. */
static uint16_t new_id(struct foliage_engine *e)
{
	do {
		if (++e->last_memcg_id == 0)
			e->last_memcg_id = ROOT_ID;
	} while (id_taken(e, e->last_memcg_id));
	return e->last_memcg_id;
}

/* ---- slots ---- */

/* A slot used before keeps its locks and its walk state: somebody with a stale index may be about
 * to take one. */
static int reuse_lruvec(struct foliage_engine *e, struct lruvec *lv)
{
	int err = e->ops->prepare ? e->ops->prepare(e, lv) : 0;

	if (err)
		return err;
	lruvec_lock(e, lv);
	memset(&lv->gen, 0, sizeof(lv->gen));
	memset(&lv->clru, 0, sizeof(lv->clru));
	memset(lv->stat, 0, sizeof(lv->stat));
	for (int i = 0; i < NR_LISTS; i++)
		list_init(e, list_head(lv->index, i));
	lruvec_unlock(e, lv, 0);
	walk_reset(e, lv);
	e->ops->init(e, lv);
	return 0;
}

static void slot_lruvecs_undo(struct foliage_engine *e, uint32_t slot, uint32_t nodes, bool before)
{
	for (uint32_t node = 0; node < nodes; node++) {
		struct lruvec *lv = lruvec_of(e, slot, node);

		if (!before)
			engine_fini_lruvec(e, lv->index);
		else if (e->ops->fini)
			e->ops->fini(e, lv);
	}
}

static int slot_lruvecs_init(struct foliage_engine *e, uint32_t slot)
{
	bool before = e->memcgs[slot].id != 0;

	for (uint32_t node = 0; node < e->nr_nodes; node++) {
		struct lruvec *lv = lruvec_of(e, slot, node);
		int err = before ? reuse_lruvec(e, lv)
				 : engine_init_lruvec(e, slot * e->nr_nodes + node);

		if (err) {
			slot_lruvecs_undo(e, slot, node, before);
			return err;
		}
	}
	return 0;
}

static void slot_fill(struct foliage_engine *e, uint32_t slot, uint32_t parent, const char *name)
{
	struct memcg *m = &e->memcgs[slot];

	snprintf(m->name, sizeof(m->name), "%s", name);
	m->parent = parent;
	m->children = m->next_sibling = NO_MEMCG;
	m->min = m->low = 0;
	m->high = m->max = FOLIAGE_UNLIMITED;
	m->swappiness = slot == 0 ? 60 : (int)e->memcgs[parent].swappiness;
	m->usage = m->nr_owned = 0;
	m->nr_mms = 0;
	m->reclaim_iter = NO_MEMCG;
	m->id = slot == 0 ? ROOT_ID : new_id(e);
	m->online = m->used = true;
}

int memcg_init(struct foliage_engine *e)
{
	memcg_lru_init(e);
	e->last_memcg_id = ROOT_ID;
	slot_fill(e, 0, 0, "");
	e->memcg_of_id[ROOT_ID] = 1;
	memcg_lru_online(e, 0);
	return 0;
}

void memcg_fini(struct foliage_engine *e)
{
	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes; i++) {
		const struct memcg *m = &e->memcgs[i / e->nr_nodes];

		if (m->used || (m->id && !m->retired)) {
			engine_fini_lruvec(e, i);
		} else if (m->id) {
			walk_fini(e, &e->lruvecs[i]);
			pthread_mutex_destroy(&e->lruvecs[i].lock);
		}
	}
}

/* What the subtree counted must not shrink when a slot of it is freed. */
static void inherit_stats(struct foliage_engine *e, uint32_t slot)
{
	for (uint32_t node = 0; node < e->nr_nodes; node++) {
		struct lruvec *from = lruvec_of(e, slot, node);
		struct lruvec *to = lruvec_of(e, e->memcgs[slot].parent, node);

		for (int i = 0; i < NR_STATS; i++)
			stat_add(e, to, (enum stat_item)i, counter_read(&from->stat[i]));
	}
}

/* Out of the tree; whoever is in its lruvecs may stay there. */
static void slot_free(struct foliage_engine *e, uint32_t slot)
{
	struct memcg *m = &e->memcgs[slot];

	inherit_stats(e, slot);
	memcg_lru_release(e, slot);
	unlink_child(e, m->parent, slot);
	/* Walks that would go on from here start anew. */
	for (uint32_t i = 0; i < e->nr_memcgs; i++) {
		uint32_t place = slot;

		atomic_compare_exchange_strong(&e->memcgs[i].reclaim_iter, &place, NO_MEMCG);
	}
	m->retired = false;
	m->unlinked = e->grace;
}

static bool slot_dead(const struct foliage_engine *e, uint32_t slot)
{
	const struct memcg *m = &e->memcgs[slot];

	return m->used && !m->online && m->children == NO_MEMCG && !counter_read(&m->nr_owned) &&
	       !m->nr_mms;
}

/* From here on nobody may add to it; false when somebody just did (claim_owner() counts, then
 * looks: one of the two sees the other). */
static bool slot_close(struct foliage_engine *e, uint32_t slot)
{
	struct memcg *m = &e->memcgs[slot];

	m->used = false;
	atomic_thread_fence(memory_order_seq_cst);
	if (!counter_read(&m->nr_owned))
		return true;
	m->used = true;
	return false;
}

/* Free what has died. Children may sit in higher or lower slots than their parents: until nothing
 * changes. */
static void reap(struct foliage_engine *e)
{
	bool again;

	do {
		again = false;
		for (uint32_t i = 1; i < e->nr_memcgs; i++) {
			if (slot_dead(e, i) && slot_close(e, i)) {
				slot_free(e, i);
				again = true;
			}
		}
	} while (again);
}

unsigned int memcg_enter(struct foliage_engine *e)
{
	unsigned int session = 0;

	if (!e->exclusive) {
		session = e->grace & 1;
		e->sessions[session]++;
	}
	return session;
}

void memcg_leave(struct foliage_engine *e, unsigned int session)
{
	if (!e->exclusive)
		e->sessions[session]--;
}

/* Sessions count themselves under the parity of the step they begin in. Two steps after a slot left
 * the tree all those that began before have ended. */
static void advance_grace(struct foliage_engine *e)
{
	for (int i = 0; i < 2; i++)
		if (!e->sessions[(e->grace + 1) & 1])
			e->grace++;
}

void memcg_settle(struct foliage_engine *e)
{
	reap(e);
	advance_grace(e);
	for (uint32_t i = 1; i < e->nr_memcgs; i++) {
		struct memcg *m = &e->memcgs[i];

		if (m->used || !m->id || m->retired || e->grace - m->unlinked < 2)
			continue;
		for (uint32_t node = 0; node < e->nr_nodes && e->ops->fini; node++)
			e->ops->fini(e, lruvec_of(e, i, node));
		m->retired = true;
	}
}

/* A slot never used, or else the one whose last memcg was created longest ago. */
static uint32_t find_slot(struct foliage_engine *e)
{
	uint32_t best = NO_MEMCG;
	uint16_t age = 0;

	for (uint32_t i = 1; i < e->nr_memcgs; i++) {
		const struct memcg *m = &e->memcgs[i];
		uint16_t distance = (uint16_t)(e->last_memcg_id - m->id);

		if (m->used)
			continue;
		if (!m->id)
			return i;
		if (m->retired && (best == NO_MEMCG || distance > age)) {
			best = i;
			age = distance;
		}
	}
	return best;
}

static bool name_ok(const struct foliage_engine *e, const char *name)
{
	return name && *name && strlen(name) < sizeof(e->memcgs->name) && !strpbrk(name, "/\n") &&
	       strcmp(name, ".") && strcmp(name, "..");
}

static int create_locked(struct foliage_engine *e, uint32_t parent, const char *name)
{
	uint32_t slot;
	int err;

	if (parent >= e->nr_memcgs || !e->memcgs[parent].used || !e->memcgs[parent].online)
		return -ENOENT;
	for (slot = e->memcgs[parent].children; slot != NO_MEMCG;
	     slot = e->memcgs[slot].next_sibling)
		if (e->memcgs[slot].online && !strcmp(e->memcgs[slot].name, name))
			return -EEXIST;
	memcg_settle(e);
	slot = find_slot(e);
	if (slot == NO_MEMCG)
		return -ENOSPC;
	err = slot_lruvecs_init(e, slot);
	if (err)
		return err;
	slot_fill(e, slot, parent, name);
	for (uint32_t node = 0; node < e->nr_nodes; node++)
		atomic_store_explicit(&lruvec_of(e, slot, node)->dying, false,
				      memory_order_release);
	memcg_lru_online(e, slot);
	e->memcg_of_id[e->memcgs[slot].id] = (uint16_t)(slot + 1);
	link_child(e, parent, slot);
	return (int)slot;
}

int foliage_memcg_create(struct foliage_engine *e, uint32_t parent, const char *name)
{
	int slot;

	if (!name_ok(e, name))
		return -EINVAL;
	tree_lock(e);
	slot = create_locked(e, parent, name);
	tree_unlock(e);
	return slot;
}

/* Put every folio on the list that its flags name. Lists go to the parent by index, and there an
 * index means another sequence number: a folio promoted from the child's oldest list to the one
 * above could end up on the parent's youngest list with flags that name its oldest generation,
 * which closes without ever meeting it. */
static void settle_lists(struct foliage_engine *e, struct lruvec *lv)
{
	for (int list = LIST_GEN; list < LIST_FGW; list++) {
		folio_id head = list_head(lv->index, list), next;

		for (folio_id id = list_first(e, head); id != head; id = next) {
			struct folio *f = folio_at(e, id);
			uint64_t flags = folio_flags(f);
			int home = gen_list(flags_gen(flags), flags_type(flags), flags_zone(flags));

			next = f->next;
			if (home == list)
				continue;
			list_del(e, id);
			f->list = (uint16_t)home;
			list_add(e, list_head(lv->index, home), id);
		}
	}
}

/* Both lists locked, so that nobody sees a folio on neither; the flag under the locks, so that
 * whoever waits for the child's lock finds the redirection when it gets it. Only here are two
 * lruvecs locked at once: in the order of their indices, as slots change their places in the tree.
 *  */
static void reparent_lruvec(struct foliage_engine *e, struct lruvec *child, struct lruvec *parent)
{
	struct lruvec *first = child->index < parent->index ? child : parent;
	struct lruvec *second = first == child ? parent : child;

	lruvec_lock(e, first);
	lruvec_lock(e, second);
	if (e->ops->rules)
		settle_lists(e, child);
	e->ops->reparent(e, child, parent);
	list_splice_tail(e, list_head(child->index, LIST_UNEVICTABLE),
			 list_head(parent->index, LIST_UNEVICTABLE));
	counter_add(e, &parent->clru.size[LIST_UNEVICTABLE],
		    counter_read(&child->clru.size[LIST_UNEVICTABLE]));
	child->clru.size[LIST_UNEVICTABLE] = 0;
	atomic_store_explicit(&child->dying, true, memory_order_release);
	lruvec_unlock(e, second, 0);
	lruvec_unlock(e, first, 0);
}

static int remove_locked(struct foliage_engine *e, uint32_t slot)
{
	struct memcg *m;
	uint32_t child;

	if (slot == 0)
		return -EINVAL;
	if (slot >= e->nr_memcgs || !e->memcgs[slot].used || !e->memcgs[slot].online)
		return -ENOENT;
	m = &e->memcgs[slot];
	for (child = m->children; child != NO_MEMCG; child = e->memcgs[child].next_sibling)
		if (e->memcgs[child].online)
			return -EBUSY;
	m->online = false;
	m->min = m->low = 0; /* nobody is left to protect */
	e->memcg_of_id[m->id] = 0;
	memcg_lru_offline(e, slot);
	for (uint32_t node = 0; node < e->nr_nodes && e->ops->reparent; node++)
		reparent_lruvec(e, lruvec_of(e, slot, node), lruvec_of(e, m->parent, node));
	if (e->ops->reparent)
		memcg_lru_release(e, slot);
	walk_reparent(e, slot, m->parent);
	memcg_settle(e);
	return 0;
}

int foliage_memcg_remove(struct foliage_engine *e, struct foliage_cpu *cpu, uint32_t memcg)
{
	int err;

	/* What waits in our batch lands on the lists that are spliced; other cpus' batches are
	 * redirected later. */
	foliage_cpu_drain(e, cpu);
	tree_lock(e);
	err = remove_locked(e, memcg);
	tree_unlock(e);
	return err;
}

/* ---- limits ---- */

int foliage_memcg_set(struct foliage_engine *e, uint32_t memcg, enum foliage_limit what,
		      uint64_t value)
{
	struct memcg *m;

	if (memcg >= e->nr_memcgs || !e->memcgs[memcg].used || !e->memcgs[memcg].online)
		return -ENOENT;
	m = &e->memcgs[memcg];
	switch (what) {
	case FOLIAGE_MIN:
		m->min = value;
		return 0;
	case FOLIAGE_LOW:
		m->low = value;
		return 0;
	case FOLIAGE_HIGH:
		m->high = value;
		return 0;
	case FOLIAGE_MAX:
		m->max = value;
		return 0;
	case FOLIAGE_SWAPPINESS:
		if (value > 200)
			return -EINVAL;
		m->swappiness = (int)value;
		return 0;
	}
	return -EINVAL;
}

int64_t foliage_memcg_usage(struct foliage_engine *e, uint32_t memcg)
{
	if (memcg >= e->nr_memcgs || !e->memcgs[memcg].used)
		return -ENOENT;
	return (int64_t)counter_size(&e->memcgs[memcg].usage);
}

void memcg_charge(struct foliage_engine *e, uint32_t memcg, int64_t nr)
{
	for (;; memcg = e->memcgs[memcg].parent) {
		counter_add(e, &e->memcgs[memcg].usage, nr);
		if (memcg == 0)
			return;
	}
}

static bool fits(const struct memcg *m, uint64_t limit, uint32_t nr)
{
	uint64_t usage = counter_size(&m->usage);

	return usage <= limit && limit - usage >= nr;
}

uint32_t memcg_over(const struct foliage_engine *e, uint32_t memcg, uint32_t nr, bool high)
{
	for (;; memcg = e->memcgs[memcg].parent) {
		const struct memcg *m = &e->memcgs[memcg];

		if (!fits(m, high ? m->high : m->max, nr))
			return memcg;
		if (memcg == 0)
			return NO_MEMCG;
	}
}

/* One session against a limit. Nodes in turn until the target is met: a kernel's session
 * interleaves them. */
static int64_t limit_session(struct foliage_engine *e, struct foliage_cpu *cpu, uint32_t memcg,
			     uint32_t nr, bool no_io)
{
	struct foliage_reclaim_request request = {
		.memcg = memcg,
		.nr = MAX(nr, (uint32_t)SWAP_CLUSTER_MAX),
		.swappiness = -1,
		.memcg_limit = true,
		.no_io = no_io,
	};
	int64_t reclaimed = 0;

	for (uint32_t node = 0; node < e->nr_nodes && (uint64_t)reclaimed < request.nr; node++) {
		int64_t got;

		request.node = node;
		got = foliage_reclaim(e, cpu, &request);
		reclaimed += MAX(got, (int64_t)0);
	}
	return reclaimed;
}

static int no_memory(struct foliage_engine *e, uint32_t memcg, uint32_t nr)
{
	stat_add(e, lruvec_of(e, memcg, 0), STAT_OOM, 1);
	if (e->backend.out_of_memory)
		e->backend.out_of_memory(e->ctx, memcg);
	return fits(&e->memcgs[memcg], e->memcgs[memcg].max, nr) ? 0 : -ENOMEM;
}

/* memory.high is soft: one session for each level above it, and a wait if that was not enough. */
static void keep_below_high(struct foliage_engine *e, struct foliage_cpu *cpu, uint32_t memcg,
			    uint32_t nr, bool no_io)
{
	bool above = false;

	for (;; memcg = e->memcgs[memcg].parent) {
		const struct memcg *m = &e->memcgs[memcg];

		if (!fits(m, m->high, nr)) {
			limit_session(e, cpu, memcg, nr, no_io);
			above |= !fits(m, m->high, nr);
		}
		if (memcg == 0)
			break;
	}
	if (above && e->backend.throttle)
		e->backend.throttle(e->ctx);
}

int foliage_memcg_make_room(struct foliage_engine *e, struct foliage_cpu *cpu, uint32_t memcg,
			    uint32_t nr, bool no_io)
{
	int retries = CHARGE_RETRIES;
	uint32_t over;

	if (memcg >= e->nr_memcgs || !e->memcgs[memcg].used)
		return -ENOENT;
	while ((over = memcg_over(e, memcg, nr, false)) != NO_MEMCG) {
		int64_t reclaimed = limit_session(e, cpu, over, nr, no_io);

		/* Progress for a small charge is worth another look for as long as there is any. */
		if (fits(&e->memcgs[over], e->memcgs[over].max, nr) ||
		    (reclaimed && nr <= COSTLY_PAGES))
			continue;
		if (retries-- > 0)
			continue;
		if (no_memory(e, over, nr))
			return -ENOMEM;
		retries = CHARGE_RETRIES;
	}
	keep_below_high(e, cpu, memcg, nr, no_io);
	return 0;
}

/* ---- protection ---- */

static uint64_t own_protection(const struct memcg *m, bool low)
{
	return low ? m->low : m->min;
}

/* Pages of the children that their own settings protect now. */
static uint64_t protected_children(const struct foliage_engine *e, uint32_t parent, bool low)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = e->memcgs[parent].children; i != NO_MEMCG; i = e->memcgs[i].next_sibling)
		sum += MIN(own_protection(&e->memcgs[i], low), counter_size(&e->memcgs[i].usage));
	return sum;
}

/* What of the setting is in force (cgroup v2): the target's children get all of it; further down
 * siblings share what their parent got, in proportion to what each one protects, when that is not
 * enough for all. */
static uint64_t effective(const struct foliage_engine *e, uint32_t target, uint32_t memcg, bool low)
{
	const struct memcg *m = &e->memcgs[memcg];
	uint64_t own = own_protection(m, low), protects, above, siblings;

	if (memcg == target || memcg == 0 || !own)
		return 0;
	if (m->parent == target || m->parent == 0)
		return own;
	above = effective(e, target, m->parent, low);
	protects = MIN(own, counter_size(&m->usage));
	siblings = protected_children(e, m->parent, low);
	if (siblings <= above)
		return protects;
	return (uint64_t)((wide)protects * above / siblings);
}

static bool below(const struct foliage_engine *e, uint32_t target, uint32_t memcg, bool low)
{
	uint64_t protection = effective(e, target, memcg, low);

	return protection && counter_size(&e->memcgs[memcg].usage) <= protection;
}

bool memcg_below_min(const struct foliage_engine *e, uint32_t target, uint32_t memcg)
{
	return below(e, target, memcg, false);
}

bool memcg_below_low(const struct foliage_engine *e, uint32_t target, uint32_t memcg)
{
	return below(e, target, memcg, true);
}

uint64_t memcg_protect_scan(const struct foliage_engine *e, const struct scan_control *sc,
			    uint32_t memcg, uint64_t nr)
{
	uint64_t min = effective(e, sc->target, memcg, false);
	uint64_t low = effective(e, sc->target, memcg, true);
	uint64_t protection, usage;

	if (!min && !low)
		return nr;
	protection = low > min && !sc->low_reclaim ? low : min;
	usage = MAX(counter_size(&e->memcgs[memcg].usage), protection);
	nr -= (uint64_t)((wide)nr * protection / ((wide)usage + 1));
	return MAX(nr, (uint64_t)SWAP_CLUSTER_MAX);
}

/* ---- statistics ---- */

int64_t memcg_stat(const struct foliage_engine *e, uint32_t memcg, enum stat_item item)
{
	uint32_t i = NO_MEMCG;
	int64_t sum = 0;

	while ((i = memcg_next(e, memcg, i)) != NO_MEMCG)
		for (uint32_t node = 0; node < e->nr_nodes; node++)
			sum += counter_read(&lruvec_of(e, i, node)->stat[item]);
	return sum;
}
