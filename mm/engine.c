/* SPDX-License-Identifier: MIT
 *
 * The engine's life, and a folio's: in (add), used (mark_accessed), dirty and clean, out (remove).
 * Eviction is in mm/shrink.c.
 */
#include "mm/memcg.h"
#include "mm/engine.h"
#include "mm/engine_policy.h"
#include "mm/policies.h"
#include "mm/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_FOLIOS = 1 << 30, MAX_MEMCGS = 4096, MAX_NODES = 16 };

const char *foliage_version(void)
{
	return FOLIAGE_VERSION;
}

static int bad(char *message, size_t bytes, int code, const char *text)
{
	if (message && bytes)
		snprintf(message, bytes, "%s", text);
	return code;
}

static int check_options(const struct foliage_engine_options *o, char *message, size_t bytes)
{
	if (!o->backend || !o->backend->evict)
		return bad(message, bytes, -EINVAL, "the backend needs an evict callback");
	if (!o->nr_folios || o->nr_folios > MAX_FOLIOS)
		return bad(message, bytes, -EINVAL, "nr_folios must be 1 .. 2^30");
	if (o->max_memcgs > MAX_MEMCGS || o->nr_nodes > MAX_NODES || o->nr_zones > MAX_NR_ZONES)
		return bad(message, bytes, -EINVAL,
			   "too many memcgs (4096), nodes (16) or zones (3)");
	if (o->folio_bytes != 0 && o->folio_bytes != 32 && o->folio_bytes != 64)
		return bad(message, bytes, -EINVAL, "folio_bytes must be 32 or 64");
	if (!(o->sample >= 0 && o->sample <= 1))
		return bad(message, bytes, -EINVAL, "sample must be between 0 and 1");
	if (o->scale < 0 || (o->scale > 0 && o->scale < 1))
		return bad(message, bytes, -EINVAL, "scale must be at least 1");
	return 0;
}

static int alloc_tables(struct foliage_engine *e)
{
	size_t heads = (size_t)e->nr_memcgs * e->nr_nodes * NR_LISTS;
	uint32_t nr_lruvecs = e->nr_memcgs * e->nr_nodes;

	/* Folios start on a cache line, whatever their size. */
	heads = (heads + 1) & ~(size_t)1;
	e->table_bytes = (heads + e->nr_folios) << e->folio_shift;
	e->table = mem_table(e->table_bytes);
	e->memcgs = calloc(e->nr_memcgs, sizeof(*e->memcgs));
	e->lruvecs = calloc(nr_lruvecs, sizeof(*e->lruvecs));
	e->nodes = calloc(e->nr_nodes, sizeof(*e->nodes));
	e->memcg_of_id = calloc(65536, sizeof(*e->memcg_of_id));
	if (!e->table || !e->memcgs || !e->lruvecs || !e->nodes || !e->memcg_of_id)
		return -ENOMEM;
	e->folios = (struct folio *)((char *)e->table + (heads << e->folio_shift));
	for (uint32_t i = 0; i < e->nr_nodes; i++) {
		pthread_mutex_init(&e->nodes[i].memcg_lru_lock, NULL);
		e->nodes[i].rng = e->seed + i;
	}
	return 0;
}

static int init_lruvecs(struct foliage_engine *e)
{
	int err = 0;

	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes && !err; i++) {
		/* Heads of memcgs that never exist stay untouched and cost no memory. */
		if (i < e->nr_nodes)
			err = engine_init_lruvec(e, i);
	}
	return err;
}

int engine_init_lruvec(struct foliage_engine *e, uint32_t index)
{
	struct lruvec *lv = &e->lruvecs[index];
	int err;

	lruvec_init(e, lv, index);
	err = walk_init(e, lv);
	if (!err && e->ops->prepare)
		err = e->ops->prepare(e, lv);
	if (err) {
		engine_fini_lruvec(e, index);
		return err;
	}
	e->ops->init(e, lv);
	return 0;
}

void engine_fini_lruvec(struct foliage_engine *e, uint32_t index)
{
	struct lruvec *lv = &e->lruvecs[index];

	if (e->ops && e->ops->fini)
		e->ops->fini(e, lv);
	walk_fini(e, lv);
	pthread_mutex_destroy(&lv->lock);
}

/* A copy of the choice's knobs, for adopt_choice(). */
static int copy_knobs(const struct policy_choice *choice, void **knobs, char *message, size_t bytes)
{
	*knobs = NULL;
	if (!choice->policy->engine)
		return bad(message, bytes, -EINVAL,
			   "this policy works on a fixed room only, not in the engine");
	if (!choice->policy->knobs_size)
		return 0;
	*knobs = malloc(choice->policy->knobs_size);
	if (!*knobs)
		return bad(message, bytes, -ENOMEM, "out of memory");
	memcpy(*knobs, choice->knobs, choice->policy->knobs_size);
	return 0;
}

static void adopt_choice(struct foliage_engine *e, const struct policy_choice *choice, void *knobs)
{
	free(e->knobs);
	e->policy = choice->policy;
	e->ops = choice->policy->engine;
	e->knobs = knobs;
}

static int parse_choice(const char *text, struct policy_choice *choice, char *message, size_t bytes)
{
	struct err err = {{0}};
	int rc = policy_parse(text ? text : "fg", choice, &err);

	return rc ? bad(message, bytes, rc, err.text) : 0;
}

int foliage_engine_create(const struct foliage_engine_options *o, struct foliage_engine **engine,
			  char *message, size_t bytes)
{
	struct policy_choice choice;
	int err = parse_choice(o->policy, &choice, message, bytes);

	if (err)
		return err;
	err = engine_create(o, &choice, engine, message, bytes);
	policy_choice_free(&choice);
	return err;
}

int engine_create(const struct foliage_engine_options *o, const struct policy_choice *choice,
		  struct foliage_engine **engine, char *message, size_t bytes)
{
	struct foliage_engine *e;
	int err = check_options(o, message, bytes);
	void *knobs;

	if (err)
		return err;
	e = calloc(1, sizeof(*e));
	if (!e)
		return bad(message, bytes, -ENOMEM, "out of memory");
	e->exclusive = o->exclusive;
	e->folio_shift = o->folio_bytes == 64 ? 6 : 5;
	e->backend = *o->backend;
	e->ctx = o->ctx;
	e->nr_folios = o->nr_folios;
	e->nr_memcgs = MAX(o->max_memcgs, 1u);
	e->nr_nodes = MAX(o->nr_nodes, 1u);
	e->nr_zones = MAX(o->nr_zones, 1u);
	e->scale = o->scale > 0 ? o->scale : 1;
	e->sample = o->sample > 0 ? o->sample : 1;
	e->totalram_pages = o->totalram_pages ? o->totalram_pages : o->nr_folios;
	e->seed = o->seed;
	e->caps = o->caps;
	if (!e->caps)
		e->caps = o->backend->next_mapping ? 7 : FOLIAGE_LRU_GEN_CORE;
	pthread_mutex_init(&e->tree_lock, NULL);
	err = copy_knobs(choice, &knobs, message, bytes);
	if (!err) {
		adopt_choice(e, choice, knobs);
		err = alloc_tables(e);
	}
	if (!err)
		err = init_lruvecs(e);
	if (!err)
		err = memcg_init(e);
	if (err) {
		if (err == -ENOMEM)
			bad(message, bytes, err, "out of memory");
		foliage_engine_destroy(e);
		return err;
	}
	*engine = e;
	return 0;
}

void foliage_engine_destroy(struct foliage_engine *e)
{
	if (!e)
		return;
	for (struct foliage_cpu *cpu = e->cpus; cpu; cpu = cpu->next)
		cpu->engine = NULL;
	if (e->table && e->memcgs && e->lruvecs && e->nodes && e->memcg_of_id)
		memcg_fini(e);
	mem_table_free(e->table, e->table_bytes);
	free(e->memcgs);
	free(e->lruvecs);
	free(e->nodes);
	free(e->memcg_of_id);
	free(e->knobs);
	pthread_mutex_destroy(&e->tree_lock);
	free(e);
}

uint64_t *foliage_folio_handle(struct foliage_engine *e, foliage_folio id)
{
	return &folio_at(e, id)->handle;
}

void *foliage_folio_entry(struct foliage_engine *e, foliage_folio id)
{
	return folio_at(e, id);
}

static uint64_t flags_of_add(uint32_t flags)
{
	static const struct {
		uint32_t add;
		uint64_t flag;
	} map[] = {
		{FOLIAGE_FOLIO_ANON, F_ANON | F_SWAPBACKED},
		{FOLIAGE_FOLIO_SHMEM, F_SWAPBACKED},
		{FOLIAGE_FOLIO_SWAPCACHE, F_SWAPCACHE},
		{FOLIAGE_FOLIO_EXEC, F_EXEC | F_MAPPED},
		{FOLIAGE_FOLIO_MAPPED, F_MAPPED},
		{FOLIAGE_FOLIO_DIRTY, F_DIRTY},
		{FOLIAGE_FOLIO_DROPBEHIND, F_DROPBEHIND},
		{FOLIAGE_FOLIO_MLOCKED, F_MLOCKED},
		{FOLIAGE_FOLIO_ACCESSED, F_REFERENCED},
		{FOLIAGE_FOLIO_LOCKED, F_LOCKED},
	};
	uint64_t out = F_PRESENT;

	if (!(flags & ~(uint32_t)FOLIAGE_FOLIO_WRITE))
		return out;
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (flags & map[i].add)
			out |= map[i].flag;
	return out;
}

/* Count a folio to the memcg that will own it before anything names that memcg: a slot that owns
 * folios is not freed. It may have been freed between the look and the count: look again. */
static struct lruvec *claim_owner(struct foliage_engine *e, uint32_t memcg, uint32_t node)
{
	while (e->memcgs[memcg].used) {
		struct lruvec *lv = lruvec_live(e, memcg * e->nr_nodes + node);

		counter_add(e, &e->memcgs[lv->memcg].nr_owned, 1);
		if (e->exclusive)
			return lv;
		atomic_thread_fence(memory_order_seq_cst);
		if (e->memcgs[lv->memcg].used && !atomic_load(&lv->dying))
			return lv;
		counter_add(e, &e->memcgs[lv->memcg].nr_owned, -1);
	}
	return NULL;
}

int foliage_folio_add(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id,
		      uint32_t memcg, uint32_t node, uint32_t zone, uint32_t order, uint32_t flags,
		      uint64_t shadow)
{
	struct folio *f;
	uint64_t old, word;
	struct lruvec *lv;

	if (id < 0 || (uint32_t)id >= e->nr_folios || memcg >= e->nr_memcgs ||
	    node >= e->nr_nodes || zone >= e->nr_zones || order > 9 || !e->memcgs[memcg].used)
		return -EINVAL;
	f = folio_at(e, id);
	old = folio_flags(f);
	if (old & F_PRESENT)
		return -EEXIST;
	lv = claim_owner(e, memcg, node);
	if (!lv)
		return -EINVAL;
	__atomic_store_n(&f->owner, lv->index, __ATOMIC_RELEASE);
	word = flags_of_add(flags) | (uint64_t)order << F_ORDER_SHIFT |
	       (uint64_t)zone << F_ZONE_SHIFT;
	atomic_store_explicit(&f->flags, (old & (F_VERSION_MASK | F_PINS_MASK)) | word,
			      memory_order_release);
	memcg_charge(e, lv->memcg, flags_nr(word));
	if (shadow && !(flags & FOLIAGE_FOLIO_WRITE))
		e->ops->refault(e, cpu, lv, id, shadow);
	else
		folio_event(e, id, FOLIAGE_EV_INSERT, FOLIAGE_WHY_FIRST, -1, -1, 0, 0);
	if (e->ops->queue)
		e->ops->queue(e, cpu, id);
	cpu_queue_add(e, cpu, id);
	return 0;
}

/* The folio is on no list: forget it. Returns false when somebody pinned it meanwhile, or did and
 * left it dirty. */
bool engine_release_folio(struct foliage_engine *e, folio_id id, bool force)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_flags(f);
	uint32_t owner = f->owner;

	do {
		if (!force && old & (F_PINS_MASK | F_DIRTY))
			return false;
	} while (!folio_cas(e, f, &old, (old & (F_VERSION_MASK | F_PINS_MASK)) + F_VERSION_ONE));
	memcg_charge(e, e->lruvecs[owner].memcg, -flags_nr(old));
	counter_add(e, &e->memcgs[e->lruvecs[owner].memcg].nr_owned, -1);
	return true;
}

/* Take the folio out of the add batch that holds it, ours or another cpu's. */
static void leave_batch(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	cpu_lock(e, cpu);
	for (uint32_t i = cpu->nr_add; i-- > 0;)
		if (cpu->add[i] == id) {
			memmove(&cpu->add[i], &cpu->add[i + 1],
				(cpu->nr_add - i - 1) * sizeof(cpu->add[0]));
			cpu->nr_add--;
			cpu_unlock(e, cpu);
			return;
		}
	cpu_unlock(e, cpu);
	engine_drain_all(e);
}

static int remove_folio(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id,
			uint64_t busy)
{
	struct folio *f = folio_at(e, id);
	uint64_t flags = folio_flags(f);
	struct lruvec *lv;

	if (!(flags & F_PRESENT))
		return -ENOENT;
	if (flags & busy)
		return -EBUSY;
	if (!(flags & F_LRU))
		leave_batch(e, cpu, id);
	lv = folio_lruvec_lock(e, f);
	flags = folio_flags(f);
	/* Reclaim may have taken or evicted it between the look and the lock. */
	if (flags & F_ISOLATED || !(flags & F_PRESENT)) {
		lruvec_unlock(e, lv, 0);
		return flags & F_PRESENT ? -EBUSY : -ENOENT;
	}
	if (flags & F_LRU)
		lruvec_del_folio(e, lv, id);
	engine_release_folio(e, id, true);
	lruvec_unlock(e, lv, 1);
	return 0;
}

int engine_remove_pinned(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id)
{
	return remove_folio(e, cpu, id, F_ISOLATED);
}

int foliage_folio_remove(struct foliage_engine *e, struct foliage_cpu *cpu, foliage_folio id)
{
	if (id < 0 || (uint32_t)id >= e->nr_folios)
		return -EINVAL;
	return remove_folio(e, cpu, id, F_ISOLATED | F_PINS_MASK);
}

void foliage_folio_mark_accessed(struct foliage_engine *e, struct foliage_cpu *cpu,
				 foliage_folio id)
{
	uint64_t flags = folio_flags(folio_at(e, id));

	if (flags & F_PRESENT && !(flags & F_DROPBEHIND))
		e->ops->mark_accessed(e, cpu, id);
}

bool foliage_folio_present(struct foliage_engine *e, foliage_folio id)
{
	return folio_flags(folio_at(e, id)) & F_PRESENT;
}

void foliage_folio_set_dirty(struct foliage_engine *e, foliage_folio id)
{
	folio_change(e, folio_at(e, id), 0, F_DIRTY);
}

void foliage_folio_clear_dirty(struct foliage_engine *e, foliage_folio id)
{
	folio_change(e, folio_at(e, id), F_DIRTY, 0);
}

void foliage_folio_unlock(struct foliage_engine *e, foliage_folio id)
{
	folio_change(e, folio_at(e, id), F_LOCKED, 0);
}

void foliage_folio_start_writeback(struct foliage_engine *e, foliage_folio id)
{
	folio_change(e, folio_at(e, id), F_DIRTY, F_WRITEBACK);
}

void foliage_folio_end_writeback(struct foliage_engine *e, struct foliage_cpu *cpu,
				 foliage_folio id)
{
	struct folio *f = folio_at(e, id);
	uint64_t old = folio_change(e, f, F_WRITEBACK | F_RECLAIM, 0);
	struct lruvec *lv;

	if (!(old & F_RECLAIM) || !(old & F_PRESENT))
		return;
	foliage_cpu_drain(e, cpu);
	lv = folio_lruvec_lock(e, f);
	old = folio_flags(f);
	if (old & F_LRU && flags_evictable(old)) {
		lruvec_del_folio(e, lv, id);
		lruvec_add_folio(e, lv, id, true);
	}
	lruvec_unlock(e, lv, 1);
}

void foliage_flush_stats(struct foliage_engine *e)
{
	if (!e->ops->flush_stats)
		return;
	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes; i++)
		if (e->memcgs[i / e->nr_nodes].used)
			e->ops->flush_stats(e, &e->lruvecs[i]);
}

/* Take everything off the lists of the running policy, in batches of 4096 under the lock, chaining
 * the folios through their own links; what the folio knew (dirty, mapped, order) stays, what it
 * earned starts anew. */
static uint64_t switch_lruvec(struct foliage_engine *e, struct lruvec *lv, folio_id *chain)
{
	uint64_t nr = 0;
	bool active;
	folio_id id;

	lruvec_lock(e, lv);
	while ((id = e->ops->drain_next(e, lv, &active)) != FOLIO_NONE) {
		e->ops->del(e, lv, id);
		folio_change(e, folio_at(e, id), F_REFS_MASK | F_ACTIVE, active ? F_ACTIVE : 0);
		folio_at(e, id)->next = *chain;
		*chain = id;
		if (++nr % MAX_LRU_BATCH == 0) {
			lruvec_unlock(e, lv, MAX_LRU_BATCH);
			if (e->backend.yield)
				e->backend.yield(e->ctx);
			lruvec_lock(e, lv);
		}
	}
	lruvec_unlock(e, lv, (uint32_t)(nr % MAX_LRU_BATCH));
	return nr;
}

/* What may fail of a switch, before anything is taken apart: `to` gets its memory beside what the running
 * policy has. */
static int prepare_lruvecs(struct foliage_engine *e, const struct foliage_engine_policy *to)
{
	uint32_t nr = e->nr_memcgs * e->nr_nodes, i;
	int err = 0;

	for (i = 0; i < nr && !err && to->prepare; i++)
		if (e->memcgs[i / e->nr_nodes].used)
			err = to->prepare(e, &e->lruvecs[i]);
	/* What the running policy has as well stays. */
	while (err && i-- > 0)
		if (e->memcgs[i / e->nr_nodes].used && to->fini != e->ops->fini)
			to->fini(e, &e->lruvecs[i]);
	return err;
}

/* From `before` to the policy that is now the engine's; the lists are empty. */
static void init_switched(struct foliage_engine *e, const struct foliage_engine_policy *before)
{
	for (uint32_t i = 0; i < e->nr_memcgs * e->nr_nodes; i++) {
		if (!e->memcgs[i / e->nr_nodes].used)
			continue;
		if (before->fini && before->fini != e->ops->fini)
			before->fini(e, &e->lruvecs[i]);
		e->ops->init(e, &e->lruvecs[i]);
	}
}

int foliage_engine_switch(struct foliage_engine *e, struct foliage_cpu *cpu, const char *policy,
			  char *message, size_t bytes)
{
	uint32_t nr = e->nr_memcgs * e->nr_nodes;
	const struct foliage_engine_policy *before = e->ops;
	folio_id chain = FOLIO_NONE;
	struct policy_choice choice;
	void *knobs;
	int err;

	foliage_cpu_drain(e, cpu);
	engine_drain_all(e);
	memcg_settle(e);
	err = parse_choice(policy, &choice, message, bytes);
	if (err)
		return err;
	err = copy_knobs(&choice, &knobs, message, bytes);
	if (!err && prepare_lruvecs(e, choice.policy->engine)) {
		free(knobs);
		err = bad(message, bytes, -ENOMEM, "out of memory");
	}
	if (err) {
		policy_choice_free(&choice);
		return err;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (e->memcgs[e->lruvecs[i].memcg].used)
			switch_lruvec(e, &e->lruvecs[i], &chain);
	adopt_choice(e, &choice, knobs);
	policy_choice_free(&choice);
	init_switched(e, before);
	while (chain != FOLIO_NONE) {
		folio_id id = chain;
		struct lruvec *lv = folio_lruvec_lock(e, folio_at(e, id));

		chain = folio_at(e, id)->next;
		lruvec_add_folio(e, lv, id, false);
		lruvec_unlock(e, lv, 1);
	}
	return 0;
}
