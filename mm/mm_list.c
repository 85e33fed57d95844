/* SPDX-License-Identifier: MIT
 *
 * mm lists: see mm_list.h.
 *
 * Each lruvec remembers in `head` how far its running pass came, and in `tail` the first process
 * added since its previous pass. A process joins at the end of its memcg's list, so everything from
 * `tail` on is new: there the Bloom filter knows nothing, and the walker that comes by turns to
 * scanning everything.
 *
 * A process is skipped unless it ran on the node since it was last visited: what did not run
 * touched nothing.
 *
 * Entries live in chunks that never move, so that foliage_mm_ran() needs no lock; a number is
 * reused only when no walker holds it.
 */
#include "mm/mm_list.h"
#include "mm/gen.h"
#include "mm/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAIL_END = -1, /* nothing is new */
	TAIL_ALL = -2, /* no pass has finished yet: everything is new */

	CHUNK_SHIFT = 8,
	CHUNK_SIZE = 1 << CHUNK_SHIFT,
	MAX_CHUNKS = 1 << 12,
};

struct mm_entry {
	pthread_mutex_t busy; /* held while a walker reads its page tables */
	bool dead;            /* removed; written under both locks */
	uint32_t users;       /* walkers that hold the number */
	uint32_t memcg;
	int32_t prev, next;   /* in the memcg's list; next also chains free entries */
	_Atomic uint64_t ran; /* a bit per node */
};

struct mm_list {
	int32_t first, last;
};

struct mm_table {
	pthread_mutex_t lock; /* lists, cursors, entries; taken inside e->tree_lock */
	uint32_t nr_lruvecs;  /* that need the table */
	uint32_t nr_entries;
	int32_t free;
	struct mm_list *lists; /* by memcg */
	struct mm_entry *_Atomic chunk[MAX_CHUNKS];
};

static void table_lock(const struct foliage_engine *e)
{
	if (!e->exclusive)
		pthread_mutex_lock(&e->mms->lock);
}

static void table_unlock(const struct foliage_engine *e)
{
	if (!e->exclusive)
		pthread_mutex_unlock(&e->mms->lock);
}

static struct mm_entry *entry_at(const struct mm_table *t, int32_t mm)
{
	struct mm_entry *chunk =
		atomic_load_explicit(&t->chunk[(uint32_t)mm >> CHUNK_SHIFT], memory_order_acquire);

	return &chunk[mm & (CHUNK_SIZE - 1)];
}

/* The entry of a number that came from outside; NULL when there never was one. */
static struct mm_entry *entry_find(const struct foliage_engine *e, uint32_t mm)
{
	if (!e->mms || mm >= (uint32_t)MAX_CHUNKS << CHUNK_SHIFT ||
	    !atomic_load_explicit(&e->mms->chunk[mm >> CHUNK_SHIFT], memory_order_acquire))
		return NULL;
	return entry_at(e->mms, (int32_t)mm);
}

/* ---- the table's life: it exists while any lruvec does ---- */

static int table_create(struct foliage_engine *e)
{
	struct mm_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->lists = malloc(e->nr_memcgs * sizeof(*t->lists));
	if (!t->lists) {
		free(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < e->nr_memcgs; i++)
		t->lists[i] = (struct mm_list){MM_NONE, MM_NONE};
	t->free = MM_NONE;
	pthread_mutex_init(&t->lock, NULL);
	e->mms = t;
	return 0;
}

static void table_destroy(struct foliage_engine *e)
{
	struct mm_table *t = e->mms;

	for (uint32_t i = 0; i < MAX_CHUNKS; i++) {
		struct mm_entry *chunk = atomic_load_explicit(&t->chunk[i], memory_order_relaxed);

		if (!chunk)
			break;
		for (int j = 0; j < CHUNK_SIZE; j++)
			pthread_mutex_destroy(&chunk[j].busy);
		free(chunk);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->lists);
	free(t);
	e->mms = NULL;
}

int walk_init(struct foliage_engine *e, struct lruvec *lv)
{
	int err = e->mms ? 0 : table_create(e);

	if (err)
		return err;
	lv->walk = calloc(1, sizeof(*lv->walk));
	if (lv->walk) {
		lv->walk->head = MM_NONE;
		lv->walk->tail = TAIL_ALL;
	}
	table_lock(e);
	e->mms->nr_lruvecs += lv->walk != NULL;
	err = e->mms->nr_lruvecs ? 0 : -ENOMEM;
	table_unlock(e);
	if (err)
		table_destroy(e);
	return lv->walk ? 0 : -ENOMEM;
}

void walk_reset(struct foliage_engine *e, struct lruvec *lv)
{
	struct mm_walk_state *state = lv->walk;

	if (!state)
		return;
	table_lock(e);
	bloom_fini(&state->bloom);
	memset(state, 0, sizeof(*state));
	state->head = MM_NONE;
	state->tail = TAIL_ALL;
	table_unlock(e);
}

void walk_fini(struct foliage_engine *e, struct lruvec *lv)
{
	bool unused;

	if (!lv->walk)
		return;
	bloom_fini(&lv->walk->bloom);
	free(lv->walk);
	lv->walk = NULL;
	table_lock(e);
	unused = --e->mms->nr_lruvecs == 0;
	table_unlock(e);
	if (unused)
		table_destroy(e);
}

/* ---- processes come, run and go ---- */

static int grow(struct mm_table *t)
{
	uint32_t at = t->nr_entries >> CHUNK_SHIFT;
	struct mm_entry *chunk;

	if (at == MAX_CHUNKS)
		return -ENOMEM;
	chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	/* Lowest number first. */
	for (int i = CHUNK_SIZE - 1; i >= 0; i--) {
		pthread_mutex_init(&chunk[i].busy, NULL);
		chunk[i].dead = true;
		chunk[i].next = t->free;
		t->free = (int32_t)t->nr_entries + i;
	}
	atomic_store_explicit(&t->chunk[at], chunk, memory_order_release);
	t->nr_entries += CHUNK_SIZE;
	return 0;
}

static void list_append(struct foliage_engine *e, uint32_t memcg, int32_t mm)
{
	struct mm_list *list = &e->mms->lists[memcg];
	struct mm_entry *entry = entry_at(e->mms, mm);

	entry->memcg = memcg;
	entry->next = MM_NONE;
	entry->prev = list->last;
	if (list->last == MM_NONE)
		list->first = mm;
	else
		entry_at(e->mms, list->last)->next = mm;
	list->last = mm;
	e->memcgs[memcg].nr_mms++;
	for (uint32_t node = 0; node < e->nr_nodes; node++) {
		struct mm_walk_state *state = lruvec_of(e, memcg, node)->walk;

		if (state && state->tail == TAIL_END)
			state->tail = mm;
	}
}

static void list_unlink(struct foliage_engine *e, int32_t mm)
{
	struct mm_entry *entry = entry_at(e->mms, mm);
	struct mm_list *list = &e->mms->lists[entry->memcg];

	for (uint32_t node = 0; node < e->nr_nodes; node++) {
		struct mm_walk_state *state = lruvec_of(e, entry->memcg, node)->walk;

		if (state && state->head == mm)
			state->head = entry->prev;
		if (state && state->tail == mm)
			state->tail = entry->next == MM_NONE ? TAIL_END : entry->next;
	}
	if (entry->prev == MM_NONE)
		list->first = entry->next;
	else
		entry_at(e->mms, entry->prev)->next = entry->next;
	if (entry->next == MM_NONE)
		list->last = entry->prev;
	else
		entry_at(e->mms, entry->next)->prev = entry->prev;
	e->memcgs[entry->memcg].nr_mms--;
}

static void number_free(struct mm_table *t, int32_t mm)
{
	struct mm_entry *entry = entry_at(t, mm);

	entry->next = t->free;
	t->free = mm;
}

int foliage_mm_add(struct foliage_engine *e, uint32_t memcg)
{
	struct mm_entry *entry;
	int mm, err = 0;

	if (memcg >= e->nr_memcgs)
		return -EINVAL;
	pthread_mutex_lock(&e->tree_lock);
	if (!e->memcgs[memcg].online) {
		pthread_mutex_unlock(&e->tree_lock);
		return -ENOENT;
	}
	table_lock(e);
	if (e->mms->free == MM_NONE)
		err = grow(e->mms);
	mm = e->mms->free;
	if (!err) {
		entry = entry_at(e->mms, mm);
		e->mms->free = entry->next;
		entry->dead = false;
		entry->users = 0;
		atomic_store_explicit(&entry->ran, 0, memory_order_relaxed);
		list_append(e, memcg, mm);
	}
	table_unlock(e);
	pthread_mutex_unlock(&e->tree_lock);
	return err ? err : mm;
}

void foliage_mm_remove(struct foliage_engine *e, uint32_t mm)
{
	struct mm_entry *entry = entry_find(e, mm);

	if (!entry)
		return;
	if (!e->exclusive)
		pthread_mutex_lock(&entry->busy);
	table_lock(e);
	if (!entry->dead) {
		entry->dead = true;
		list_unlink(e, (int32_t)mm);
		if (!entry->users)
			number_free(e->mms, (int32_t)mm);
	}
	table_unlock(e);
	if (!e->exclusive)
		pthread_mutex_unlock(&entry->busy);
}

void foliage_mm_ran(struct foliage_engine *e, uint32_t mm)
{
	struct mm_entry *entry = entry_find(e, mm);

	/* Every node: where its memory lies is not known here. */
	if (entry && atomic_load_explicit(&entry->ran, memory_order_relaxed) != UINT64_MAX)
		atomic_store_explicit(&entry->ran, UINT64_MAX, memory_order_relaxed);
}

void walk_reparent(struct foliage_engine *e, uint32_t memcg, uint32_t parent)
{
	int32_t mm;

	table_lock(e);
	while ((mm = e->mms->lists[memcg].first) != MM_NONE) {
		list_unlink(e, mm);
		list_append(e, parent, mm);
	}
	table_unlock(e);
}

bool mm_enter(struct foliage_engine *e, int32_t mm)
{
	struct mm_entry *entry = entry_at(e->mms, mm);

	if (!e->exclusive)
		pthread_mutex_lock(&entry->busy);
	if (!entry->dead)
		return true;
	if (!e->exclusive)
		pthread_mutex_unlock(&entry->busy);
	return false;
}

void mm_leave(struct foliage_engine *e, int32_t mm)
{
	if (!e->exclusive)
		pthread_mutex_unlock(&entry_at(e->mms, mm)->busy);
}

/* ---- one pass ---- */

static bool stale(const struct lruvec *lv, uint64_t seq)
{
	return lv->walk->seq == seq || gen_max_seq(lv) != seq;
}

static bool keeps_history(const struct foliage_engine *e)
{
	return e->ops->rules && gen_knobs(e)->histgens;
}

static void add_stats(struct mm_walk *walk)
{
	struct mm_walk_state *state = walk->lv->walk;
	bool history = keeps_history(walk->e);
	unsigned int slot = history ? walk->seq % MAX_NR_HIST : 0;

	/* Without history the kernel never forgets. */
	if (history && state->stat_seq[slot] != walk->seq) {
		state->stat_seq[slot] = walk->seq;
		memset(state->stat[slot], 0, sizeof(state->stat[slot]));
	}
	for (unsigned int i = 0; i < WALK_STATS; i++)
		state->stat[slot][i] += walk->stat[i];
	memset(walk->stat, 0, sizeof(walk->stat));
}

static void put(struct mm_walk *walk, int32_t mm)
{
	struct mm_entry *entry = entry_at(walk->e->mms, mm);

	add_stats(walk);
	if (--entry->users == 0 && entry->dead)
		number_free(walk->e->mms, mm);
}

/* Step the cursor; MM_NONE at the end. */
static int32_t step(struct mm_walk *walk)
{
	struct mm_table *t = walk->e->mms;
	struct mm_walk_state *state = walk->lv->walk;
	int32_t mm = state->head == MM_NONE ? t->lists[walk->lv->memcg].first
					    : entry_at(t, state->head)->next;

	state->head = mm;
	if (mm != MM_NONE && (state->tail == TAIL_ALL || state->tail == mm)) {
		int32_t next = entry_at(t, mm)->next;

		state->tail = next == MM_NONE ? TAIL_END : next;
		walk->force_scan = true;
	}
	return mm;
}

static bool worth_a_visit(const struct mm_walk *walk, struct mm_entry *entry)
{
	uint64_t bit = UINT64_C(1) << (walk->lv->node % 64);

	if (!walk->force_scan && !(atomic_load_explicit(&entry->ran, memory_order_relaxed) & bit))
		return false;
	atomic_fetch_and_explicit(&entry->ran, ~bit, memory_order_relaxed);
	return true;
}

static bool take_next(struct mm_walk *walk, int32_t *mm)
{
	struct mm_walk_state *state = walk->lv->walk;

	if (state->pass != walk->seq) {
		state->pass = walk->seq;
		state->fresh = true;
		state->head = MM_NONE;
	}
	for (;;) {
		int32_t next = step(walk);

		if (next == MM_NONE) {
			state->seq = walk->seq;
			return true;
		}
		if (!worth_a_visit(walk, entry_at(walk->e->mms, next)))
			continue;
		entry_at(walk->e->mms, next)->users++;
		*mm = next;
		return false;
	}
}

bool mm_list_next(struct mm_walk *walk, int32_t *mm)
{
	struct mm_walk_state *state = walk->lv->walk;
	bool last = false;

	table_lock(walk->e);
	if (*mm != MM_NONE)
		put(walk, *mm);
	*mm = MM_NONE;
	if (!stale(walk->lv, walk->seq))
		last = take_next(walk, mm);
	if (*mm != MM_NONE && state->fresh) {
		state->fresh = false;
		bloom_reset(&state->bloom, walk->seq + 1);
	}
	table_unlock(walk->e);
	return last;
}

bool mm_list_skip(struct foliage_engine *e, struct lruvec *lv, uint64_t seq)
{
	struct mm_walk_state *state = lv->walk;
	bool first;

	table_lock(e);
	first = !stale(lv, seq);
	if (first) {
		state->seq = state->pass = seq;
		state->head = MM_NONE;
	}
	table_unlock(e);
	return first;
}

void walk_stats(const struct foliage_engine *e, const struct lruvec *lv, uint64_t seq,
		uint64_t out[WALK_STATS])
{
	const struct mm_walk_state *state = lv->walk;
	bool history = keeps_history(e);
	unsigned int slot = history ? seq % MAX_NR_HIST : 0;

	memset(out, 0, WALK_STATS * sizeof(*out));
	if (!state)
		return;
	table_lock(e);
	if (!history || state->stat_seq[slot] == seq)
		memcpy(out, state->stat[slot], sizeof(state->stat[slot]));
	table_unlock(e);
}
