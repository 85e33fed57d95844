/* SPDX-License-Identifier: MIT
 *
 * The room of an engine policy: one memcg, one file, no time. A page's id is its folio's number,
 * its shadow lives in the folio's handle, so that an access touches one cache line.
 *
 *   hit      mark the folio; nothing else.
 *   miss     with the room full one reclaim session first (LINUX-6.12 section 2): batches of 64 or
 *            32, in rooms below 1024 pages at most a sixteenth of the room; then insert; then mark,
 *            once.
 *   mapped   a hit sets a young bit and marks nothing; a miss is a fault. Only the page-table walk,
 *            the look-around and eviction's own check see young bits.
 *
 * Nothing here is ever dirty: a store is an access, and write-back takes no time in a world without
 * a clock.
 *
 * The add batch (31 folios, at most a sixteenth of the room) counts as resident.
 */
#include "machine/mapped.h"
#include "machine/room.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mm/clru.h"
#include "mm/engine.h"
#include "mm/engine_policy.h"

/* A session that frees nothing is repeated: a room of clean pages always yields in the end. */
enum { SESSIONS_MAX = 64, FAULT_AROUND = 16 };

struct engine_room {
	struct foliage_engine *engine;
	struct foliage_cpu cpu;
	struct foliage_reclaim_request request;
	struct mapped_space *mapped;
	const struct foliage_policy_env *env;
	uint32_t resident;
	bool sampled;
	uint32_t waiting; /* of a sample: in the cpu's batches at the last access */
	double passed;    /* pages that entered a batch since it was emptied, unsampled ones too */
	uint32_t flush_every; /* clru-6.12: accesses between two flushes of its statistics, 0: none
			       */
	uint64_t now, next_flush;
	struct foliage_stats stats; /* accesses, hits, misses; the rest is the engine's */
};

/* ---- backend ---- */

static void room_evict(void *ctx, foliage_folio folio, uint64_t shadow)
{
	struct engine_room *r = ctx;

	*foliage_folio_handle(r->engine, folio) = shadow;
	r->resident--;
}

static bool room_unmap(void *ctx, foliage_folio folio)
{
	struct engine_room *r = ctx;

	mapped_unmap(r->mapped, (uint32_t)folio);
	return true;
}

static bool room_rmap(void *ctx, foliage_folio folio, uint32_t cursor, struct foliage_mapping *out)
{
	struct engine_room *r = ctx;

	return r->mapped && mapped_rmap(r->mapped, folio, cursor, out);
}

static bool room_next_mapping(void *ctx, uint32_t mm, uint64_t from, struct foliage_mapping *out)
{
	struct engine_room *r = ctx;

	(void)mm;
	return r->mapped && mapped_next(r->mapped, from, out);
}

static uint64_t room_now_ms(void *ctx)
{
	struct engine_room *r = ctx;

	return r->now;
}

static const struct foliage_backend room_backend = {
	.evict = room_evict,
	.unmap = room_unmap,
	.rmap = room_rmap,
	.next_mapping = room_next_mapping,
	.now_ms = room_now_ms,
};

static void room_tell(void *ctx, folio_id folio, int what, int why, int64_t from, int64_t to,
		      unsigned int refs_from, unsigned int refs_to)
{
	struct engine_room *r = ctx;
	struct foliage_event event = {
		.access = r->now,
		.id = (uint32_t)folio,
		.what = (uint16_t)what,
		.why = (uint16_t)why,
		.from = (int32_t)from,
		.to = (int32_t)to,
		.refs_from = (uint8_t)refs_from,
		.refs_to = (uint8_t)refs_to,
	};

	r->env->event(r->env->event_ctx, &event);
}

/* ---- life ---- */

static void engine_room_close(void *state)
{
	struct engine_room *r = state;

	foliage_engine_destroy(r->engine);
	mapped_destroy(r->mapped);
	free(r);
}

/* Reclaim takes smaller parts of the whole room than of a sample. Shrunk with the sample its batches
 * would be single pages, which misplaces more than it mends: halfway is best (docs/mrc.md). */
static uint32_t sampled_batch(uint32_t pages, double sample)
{
	return (uint32_t)MAX(lround(pages * sqrt(sample)), 1L);
}

static int engine_room_open(const struct policy_choice *choice,
			    const struct foliage_policy_env *env, void **state, struct err *err)
{
	struct engine_room *r = calloc(1, sizeof(*r));
	struct foliage_engine_options options = {
		.nr_folios = env->nr_ids,
		.exclusive = true,
		.scale = env->scale,
		.seed = env->seed,
		.totalram_pages = env->room,
		.caps = FOLIAGE_LRU_GEN_CORE | FOLIAGE_LRU_GEN_MM_WALK |
			FOLIAGE_LRU_GEN_NONLEAF_YOUNG,
		.backend = &room_backend,
		.ctx = r,
		.sample = env->sample,
	};
	uint32_t batch = MAX(env->room / 16, 1u), cluster = SWAP_CLUSTER_MAX,
		 lru_batch = MIN_LRU_BATCH;
	char message[256] = "";
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "policy %s: out of memory", choice->label);
	r->env = env;
	rc = engine_create(&options, choice, &r->engine, message, sizeof(message));
	if (rc) {
		free(r);
		return err_set(err, rc, "policy %s: %s", choice->label, message);
	}
	r->sampled = env->sample > 0 && env->sample < 1;
	if (r->sampled) {
		cluster = sampled_batch(cluster, env->sample);
		lru_batch = sampled_batch(lru_batch, env->sample);
	}
	r->cpu.batch = r->sampled ? FOLIAGE_BATCH : MIN(batch, FOLIAGE_BATCH);
	r->request = (struct foliage_reclaim_request){
		.nr = MIN(batch, cluster),
		.batch = MIN(batch, lru_batch),
		.swappiness = -1,
		.memcg_limit = true,
	};
	r->flush_every = clru_flush_every(r->engine);
	r->next_flush = r->flush_every ? r->flush_every : UINT64_MAX;
	if (env->event) {
		r->engine->event = room_tell;
		r->engine->event_ctx = r;
	}
	*state = r;
	return 0;
}

static int start_mapping(struct engine_room *r)
{
	struct mapped_options options = {
		.nr_ids = r->env->nr_ids,
		.order = r->env->order,
		.fault_around = FAULT_AROUND,
	};
	int rc = mapped_create(&options, &r->mapped);

	if (rc)
		return rc;
	rc = mapped_attach(r->mapped, r->engine, 0);
	return rc < 0 ? rc : 0;
}

/* ---- accesses ---- */

/* Before an access to a page of a sample there were others to pages that are not in it, and those
 * fill the cpu's batch as well: it is emptied when as many have passed as it holds. As in the whole
 * room, the page that fills a batch is listed before its access is marked, and all others after:
 * mglru lifts those. A batch shrunk with the sample would list a third of the pages unmarked, which
 * put mglru's ratio off by up to 0.15 (docs/mrc.md). True: some pages still wait in the batch. */
static inline bool pass_unsampled(struct engine_room *r)
{
	uint32_t waiting = r->cpu.nr_add + r->cpu.nr_activate;

	if (__builtin_expect(!waiting, 1)) {
		r->waiting = 0;
		return false;
	}
	if (waiting > r->waiting)
		r->passed += (waiting - r->waiting) / r->env->sample;
	if (r->passed >= FOLIAGE_BATCH) {
		r->passed -= floor(r->passed / FOLIAGE_BATCH) * FOLIAGE_BATCH;
		foliage_cpu_drain(r->engine, &r->cpu);
		waiting = 0;
	}
	r->waiting = waiting;
	return waiting > 0;
}

static int bring_in(struct engine_room *r, uint32_t id, uint32_t flags)
{
	struct folio *f = folio_at(r->engine, (folio_id)id);
	int rc;

	for (int i = 0; r->resident >= r->env->room; i++) {
		int64_t freed = foliage_reclaim(r->engine, &r->cpu, &r->request);

		if (freed < 0)
			return (int)freed;
		if (i == SESSIONS_MAX)
			return -ENOMEM;
	}
	rc = foliage_folio_add(r->engine, &r->cpu, (foliage_folio)id, 0, 0, 0, 0, flags, f->handle);
	r->resident += !rc;
	r->stats.misses++;
	if (r->sampled && r->stats.misses % FOLIAGE_BATCH == 0)
		foliage_cpu_drain(r->engine, &r->cpu);
	return rc;
}

static int miss(struct engine_room *r, uint32_t id)
{
	int rc = bring_in(r, id, 0);

	if (!rc)
		foliage_folio_mark_accessed(r->engine, &r->cpu, (foliage_folio)id);
	return rc;
}

static int access_mapped(struct engine_room *r, uint32_t id, uint8_t op)
{
	bool exec = op & FOLIAGE_ACCESS_EXEC;
	int rc = 0;

	if (!r->mapped)
		rc = start_mapping(r);
	if (rc)
		return rc;
	if (r->sampled)
		pass_unsampled(r);
	foliage_mm_ran(r->engine, 0);
	if (foliage_folio_present(r->engine, (foliage_folio)id)) {
		r->stats.hits++;
		if (mapped_touch(r->mapped, id, false, exec))
			return 0;
	} else {
		r->cpu.in_lru_fault = true;
		rc = bring_in(r, id, 0);
		r->cpu.in_lru_fault = false;
		if (rc)
			return rc;
	}
	mapped_map(r->mapped, id, false, exec);
	return 0;
}

/* Runs of plain reads between two flushes. */
static int run_reads(struct engine_room *r, const uint32_t *ids, size_t n)
{
	const struct foliage_engine_policy *ops = r->engine->ops;
	size_t i = 0;

	while (i < n) {
		size_t run = r->sampled && pass_unsampled(r) ? 1 : n - i, hits;
		int rc;

		if (ops->mark_run && !r->env->event) {
			hits = ops->mark_run(r->engine, &r->cpu, ids + i, run);
		} else {
			hits = foliage_folio_present(r->engine, (foliage_folio)ids[i]);
			if (hits)
				ops->mark_accessed(r->engine, &r->cpu, (foliage_folio)ids[i]);
		}
		r->stats.hits += hits;
		r->now += hits;
		i += hits;
		if (i == n || hits)
			continue;
		rc = miss(r, ids[i]);
		if (rc)
			return rc;
		r->now++;
		i++;
	}
	return 0;
}

static int run_ops(struct engine_room *r, const uint32_t *ids, const uint8_t *ops, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		if (ops[i] & FOLIAGE_ACCESS_MAPPED) {
			rc = access_mapped(r, ids[i], ops[i]);
			r->now++;
		} else {
			rc = run_reads(r, ids + i, 1);
		}
	}
	return rc;
}

static int engine_room_run(void *state, const uint32_t *ids, const uint8_t *ops, size_t n,
			   uint64_t now)
{
	struct engine_room *r = state;
	size_t done = 0;
	int rc = 0;

	r->now = now;
	r->stats.accesses += n;
	while (done < n && !rc) {
		size_t chunk = (size_t)MIN((uint64_t)(n - done), r->next_flush - r->now);

		rc = ops ? run_ops(r, ids + done, ops + done, chunk)
			 : run_reads(r, ids + done, chunk);
		done += chunk;
		if (r->now == r->next_flush) {
			foliage_flush_stats(r->engine);
			r->next_flush += r->flush_every;
		}
	}
	return rc;
}

static int64_t stat(const struct engine_room *r, enum stat_item anon)
{
	const struct lruvec *lv = &r->engine->lruvecs[0];

	return counter_read(&lv->stat[anon]) + counter_read(&lv->stat[anon + 1]);
}

static void engine_room_stats(const void *state, struct foliage_stats *out)
{
	const struct engine_room *r = state;
	const struct lruvec *lv = &r->engine->lruvecs[0];

	*out = r->stats;
	out->refaults = (uint64_t)stat(r, STAT_REFAULT_ANON);
	out->scanned = (uint64_t)stat(r, STAT_PGSCAN_ANON);
	out->stolen = (uint64_t)stat(r, STAT_PGSTEAL_ANON);
	out->promoted = (uint64_t)(counter_read(&lv->stat[STAT_PROMOTED]) +
				   counter_read(&lv->stat[STAT_PGACTIVATE]));
	out->protected_ = (uint64_t)counter_read(&lv->stat[STAT_PROTECTED]);
	out->agings = (uint64_t)counter_read(&lv->stat[STAT_AGINGS]);
}

static int engine_room_dump(const void *state, const char *what, char **text)
{
	const struct engine_room *r = state;

	return foliage_text(r->engine, what, text);
}

static void engine_room_ages(const void *state, struct engine_ages *ages)
{
	const struct engine_room *r = state;

	engine_ages(r->engine, TYPE_FILE, ages);
}

const struct room_ops engine_room_ops = {
	.open = engine_room_open,
	.close = engine_room_close,
	.run = engine_room_run,
	.stats = engine_room_stats,
	.dump = engine_room_dump,
	.ages = engine_room_ages,
};
