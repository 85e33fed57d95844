/* SPDX-License-Identifier: MIT
 *
 * What the files of the pool share.
 *
 * A slot of the table of names is an entry of the engine's folio table: 32 bytes of the engine, 32
 * of ours, one cache line, and its number is the folio's. Who may write what:
 *
 *   word (folio.flags)  by compare-exchange; pins, FROZEN (no new pins) and LOCKED (being filled)
 *                       are ours
 *   state               0: free. Claimed by compare-exchange, given back by whoever took the folio
 *                       out of the engine
 *   name, data, extra   between the claim and F_PRESENT, by the claimer; then they stand until the
 *                       slot is free
 *   passed              names whose probe sequence goes past this slot (pool_index.c)
 *
 * Taking a name away: set FROZEN, while holding a pin. Whoever holds the only pin of a frozen folio
 * takes it out of the engine; one who lets go of the last pin and finds FROZEN takes it again
 * first. Reclaim may be quicker, then its evict() cleans up.
 *
 * Locks, outermost first: resize, shard, groups, (engine: tree, cpu, lruvec), frames, room; a shadow
 * bucket's under none but a shard's.
 */
#ifndef FOLIAGE_CACHE_POOL_H
#define FOLIAGE_CACHE_POOL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "foliage/cache.h"
#include "foliage/group.h"
#include "foliage/reclaim.h"
#include "mm/engine.h"
#include "mm/engine_policy.h"

enum {
	POOL_SHARDS = 32,
	POOL_KINDS = 64,
	POOL_SPACES = 256, /* name spaces: pools in the groups of one */
	POOL_LEVELS = 3,   /* times that the table may double */
	POOL_LINE = 64,
	POOL_HELD = 8,   /* pages that a thread pins for itself at a time: one cache line */
	POOL_MARKS = 32, /* accesses that a thread counts together */
	SLAB_MIN = 128 << 10,
	SLAB_MAX = 2 << 20,
	SLAB_NONE = -1,
};

#define PIN_ONE (UINT64_C(1) << F_PINS_SHIFT)
/* A bit of the folio word that the engine leaves alone: no new pins by threads for themselves, they
 * take counted ones. The same is said by F_ISOLATED. */
#define F_BARRED (UINT64_C(1) << 48)
#define PIN_MANY (UINT64_C(1) << (F_PINS_SHIFT + 11)) /* no more pins from here on */

enum {
	SLOT_USED = 1 << 0,
	SLOT_LEVEL_SHIFT = 1,  /* two bits: the table's level when the name came in */
	SLOT_DOOMED = 1 << 3,  /* its name was taken away */
	SLOT_KIND_SHIFT = 8,   /* eight bits */
	SLOT_SPACE_SHIFT = 16, /* the name space, the third part of the name */
};

enum { STARVED_POOL = 1 << 0, STARVED_GROUP = 1 << 1 };

struct pool_slot {
	struct folio folio; /* handle: the extra bytes */
	void *data;
	uint64_t object, index;
	_Atomic uint32_t passed;
	_Atomic uint32_t state;
};
_Static_assert(sizeof(struct pool_slot) == POOL_LINE, "a hit touches one cache line");
_Static_assert(offsetof(struct pool_slot, data) == offsetof(struct folio, handle) + 8 &&
		       sizeof(void *) == 8,
	       "handle, data, object and index are a struct foliage_page");

enum pool_count {
	COUNT_HITS,
	COUNT_MISSES,
	COUNT_CREATED,
	COUNT_EVICTED,
	COUNT_DISCARDED,
	COUNT_REKEYED,
	COUNT_NO_ROOM,
	COUNT_WAITS,
	COUNT_SLAB_MOVES,
	NR_COUNTS,
};

struct pool_thread {
	/* What the thread has pinned for itself (pool_local.c): written by it alone, read by whoever
	 * evicts. */
	_Alignas(POOL_LINE) struct pool_slot *_Atomic held[POOL_HELD];
	/* Accesses that wait to be counted (pool_thread.c). */
	_Alignas(POOL_LINE) _Atomic uint32_t nr_marks;
	uint32_t held_mask;                 /* of `held` in use */
	bool local;                         /* evictors know that they must look at `held` */
	_Atomic uint64_t counts[NR_COUNTS]; /* written by the thread alone */
	uint64_t marks[POOL_MARKS];         /* version of the folio word | slot */
	struct foliage_cpu cpu;
	uint32_t number;
	struct foliage_group *charging; /* above high, and the thread may sleep for it */
	/* Pages of the batch that it is evicting that others hold. */
	uint32_t nr_guards;
	bool examines; /* pool_held() was asked for the batch */
	struct pool_slot *guards[MIN_LRU_BATCH];
	struct pool *pool;
	struct pool_thread *prev, *next;
};

/* A kind of page; written once, before nr_kinds counts it. */
struct pool_kind {
	uint32_t bytes, shift, extra; /* extra rounded up to 16 */
	uint32_t stride;              /* from one frame to the next */
	bool packed;                  /* a frame's extra bytes follow it */
	uint32_t per_slab;
	int32_t partial;      /* slabs with free frames, under the frames lock */
	uint64_t used, slabs; /* frames in use, slabs held */
};

struct pool_slab {
	int32_t prev, next;      /* in the kind's partial list, or the free list */
	uint32_t nr_free, fresh; /* frames free; frames from `fresh` on were never used */
	uint32_t free_head;      /* the others: a list through the owner array */
	int16_t kind;            /* -1: free */
	bool listed, draining;
};

struct pool_frames {
	pthread_mutex_t lock;
	char *base;
	size_t mapped;
	void *mapping;
	uint32_t slab_shift, nr_slabs;  /* of the address range */
	_Atomic uint32_t limit, backed; /* slabs: allowed in memory, in memory */
	uint32_t fresh;                 /* slabs from here on were never used */
	int32_t free, released;         /* slabs without a kind: in memory, given back */
	struct pool_slab *slabs;
	struct pool_kind kinds[POOL_KINDS];
	_Atomic uint32_t nr_kinds;
};

struct pool_shadows {
	struct shadow_bucket *buckets;
	uint32_t nr;
	size_t bytes;
};

/* What a caller holds: a name space in the memory of a core. The one that was created with it comes
 * first in the core; the others are pools in groups. */
struct foliage_pool {
	struct pool *core;
	const _Atomic uint64_t *alive; /* a page that fork() wipes */
	uint32_t space, wait_ms;
	uint64_t salt;
	struct foliage_group *group; /* of its new pages */
	void (*dropped)(void *ctx, const struct foliage_page *page);
	uint64_t (*leaving)(void *ctx, struct foliage_page *const *pages, uint32_t nr,
			    enum foliage_leaving step); /* only that of `self` is asked */
	void *ctx;
	_Atomic uint64_t users;   /* its pages, and one while it is open */
	_Atomic uint32_t calling; /* threads in `dropped` */
	atomic_bool closed;
};

/* A page that somebody wants. */
struct pool_ask {
	uint64_t object, index, hash;
	struct foliage_pool *in;
	struct foliage_group *group; /* that a new page belongs to */
	uint32_t space, kind;
	unsigned int flags; /* enum foliage_fetch */
};

struct pool {
	/* Read by every hit. */
	const _Atomic uint64_t *alive; /* `serial`, or 0 in a forked child */
	char *slots;
	const struct foliage_engine_policy *ops;
	struct foliage_engine *engine;
	uint64_t serial;
	uint32_t base; /* slots at level 0 */
	_Atomic uint32_t level;
	_Atomic uint64_t nr_slots; /* at that level */
	_Atomic uint32_t
		starved; /* STARVED_*: reclaim found nothing, and nobody has let go since */
	_Atomic uint32_t waiting; /* threads that wait, for room or for a page to be filled */
	bool can_local;           /* the system has the barrier that pool_local.c needs */
	atomic_bool local;        /* some thread has pinned for itself */

	_Alignas(POOL_LINE) _Atomic uint64_t used; /* slots claimed or about to be */
	_Atomic uint32_t reclaimers;
	_Alignas(POOL_LINE) struct {
		_Alignas(POOL_LINE) pthread_mutex_t lock;
	} shards[POOL_SHARDS];
	struct pool_frames frames;
	struct pool_shadows shadows;
	struct foliage_reclaim_request request;
	uint32_t page_shift; /* of the typical page */
	uint64_t budget, max_bytes, max_pages, fixed_bytes;
	void (*dirty)(void *ctx);
	struct foliage_pool self;
	struct foliage_pool
		*spaces[POOL_SPACES]; /* under the groups lock, but for users of a page */
	struct foliage_group *root;   /* the first of the list of groups */
	uint32_t nr_groups, max_groups;
	_Atomic uint32_t wakes; /* times that `starved` was taken back */

	pthread_mutex_t resize_lock;
	pthread_mutex_t groups_lock;
	pthread_mutex_t room_lock;
	pthread_cond_t room_cond;
	pthread_mutex_t threads_lock;
	pthread_key_t key;
	bool has_key;
	struct pool_thread *threads;
	uint32_t next_thread;
	uint64_t past[NR_COUNTS]; /* of threads that ended */
};

static inline bool pool_alive(const struct pool *p)
{
	return atomic_load_explicit(p->alive, memory_order_relaxed) != 0;
}

static inline struct pool_slot *pool_slot(const struct pool *p, uint64_t i)
{
	return (struct pool_slot *)(p->slots + i * sizeof(struct pool_slot));
}

static inline folio_id slot_id(const struct pool *p, const struct pool_slot *s)
{
	return (folio_id)(((const char *)s - p->slots) / (ptrdiff_t)sizeof(struct pool_slot));
}

static inline struct foliage_page *slot_page(struct pool_slot *s)
{
	return (struct foliage_page *)&s->folio.handle;
}

static inline struct pool_slot *page_slot(struct foliage_page *page)
{
	return (struct pool_slot *)((char *)page - offsetof(struct folio, handle));
}

static inline uint32_t slot_state(const struct pool_slot *s)
{
	return atomic_load_explicit(&s->state, memory_order_relaxed);
}

static inline uint32_t slot_kind(const struct pool_slot *s)
{
	return atomic_load_explicit(&s->state, memory_order_relaxed) >> SLOT_KIND_SHIFT & 0xff;
}

static inline uint32_t slot_space(const struct pool_slot *s)
{
	return atomic_load_explicit(&s->state, memory_order_relaxed) >> SLOT_SPACE_SHIFT;
}

static inline uint64_t slot_object(const struct pool_slot *s)
{
	return __atomic_load_n(&s->object, __ATOMIC_RELAXED);
}

static inline uint64_t slot_index(const struct pool_slot *s)
{
	return __atomic_load_n(&s->index, __ATOMIC_RELAXED);
}

/* The high half chooses the slot. `salt`: of the name space. */
static inline uint64_t pool_hash(uint64_t salt, uint64_t object, uint64_t index)
{
	return ((index ^ (object << 40 | object >> 24)) + salt) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint64_t pool_salt(uint32_t space)
{
	return space * UINT64_C(0xC2B2AE3D27D4EB4F);
}

/* Another 32 bits, in which all of the name has its say: the stride, the shard, the shadow's name. */
static inline uint32_t pool_hash_low(uint64_t hash)
{
	return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93) >> 32);
}

static inline uint64_t pool_slots(const struct pool *p, uint32_t level)
{
	return (uint64_t)p->base << level;
}

static inline bool slot_named(const struct pool_slot *s, const struct pool_ask *ask)
{
	return slot_index(s) == ask->index && slot_object(s) == ask->object &&
	       slot_space(s) == ask->space;
}

static inline uint64_t slot_hash(const struct pool_slot *s)
{
	return pool_hash(pool_salt(slot_space(s)), slot_object(s), slot_index(s));
}

static inline struct pool_ask pool_name(struct foliage_pool *in, uint64_t object, uint64_t index)
{
	return (struct pool_ask){
		.object = object,
		.index = index,
		.hash = pool_hash(in->salt, object, index),
		.in = in,
		.group = in->group,
		.space = in->space,
	};
}

static inline pthread_mutex_t *pool_shard(struct pool *p, uint64_t hash)
{
	return &p->shards[pool_hash_low(hash) % POOL_SHARDS].lock;
}

static inline void pool_count(struct pool_thread *t, enum pool_count what, uint64_t nr)
{
	uint64_t n = atomic_load_explicit(&t->counts[what], memory_order_relaxed);

	atomic_store_explicit(&t->counts[what], n + nr, memory_order_relaxed);
}

/* -- pool_thread.c -- */
/* The calling thread's part of the pool; NULL: out of memory. */
struct pool_thread *pool_thread_slow(struct pool *p);
/* Count the accesses that wait. */
void pool_count_marks(struct pool *p, struct pool_thread *t);
int pool_threads_init(struct pool *p);
void pool_threads_fini(struct pool *p);
void pool_threads_sum(struct pool *p, uint64_t sums[NR_COUNTS]);

/* -- pool_index.c -- */
enum pool_found { POOL_FOUND, POOL_ABSENT, POOL_FILLING, POOL_TOO_MANY_PINS };
/* Find a name and pin it, `filling`: also a page that is being filled. Lock-free. */
enum pool_found pool_find(struct pool *p, const struct pool_ask *ask, bool filling,
			  struct pool_slot **slot);
/* Pin whatever is in a slot; false: nothing that can be pinned. */
bool pool_pin_slot(struct pool *p, struct pool_slot *s);
/* Claim a slot for the name; there is one, by the limit on `used`. */
struct pool_slot *pool_claim(struct pool *p, const struct pool_ask *ask);
/* The folio has left the engine: the frame and the slot are free again. Without frame if data is
 * NULL. */
void pool_release_slot(struct pool *p, struct pool_slot *s);
/* No pin is left that is counted: was it the last of a folio without a name, or does somebody wait for room? */
void pool_last_pin(struct pool *p, struct pool_slot *s, uint64_t word);
/* Names that fit at the present level. */
uint64_t pool_limit(const struct pool *p);

/* -- pool_local.c -- */
void pool_local_init(struct pool *p);
/* held[0] of a thread of which evictors do not know yet that they must look. */
#define POOL_NOT_YET ((struct pool_slot *)1)
/* Pin for the thread in any of its places; the word, or 0: it must be a counted pin. */
uint64_t pool_local_pin(struct pool *p, struct pool_thread *t, struct pool_slot *s,
			const struct pool_ask *ask);
/* Which of the thread's own pins is of this page; POOL_HELD: none. */
unsigned int pool_local_find(const struct pool_thread *t, const struct pool_slot *s);
/* If the thread has pinned the page for itself, make a counted pin of it. */
void pool_local_to_counted(struct pool_thread *t, struct pool_slot *s);
/* Whatever any thread does before it looks at the flags of a page that it holds has been seen. */
void pool_barrier(struct pool *p);
/* Does any thread hold one of the slots for itself, or the program by a mark of its own? Their words
 * keep new ones from coming (FROZEN, ISOLATED or BARRED). Bit i stands for slots[i]. */
uint64_t pool_held(struct pool *p, struct pool_slot *const *slots, uint32_t nr);
/* After each pool_held(): what was to be done with the slots is done. */
void pool_held_done(struct pool *p);
/* The engine examines folios, and has done so. */
void pool_taken(void *ctx, const foliage_folio *ids, uint32_t nr);
void pool_given_back(void *ctx);

/* -- pool_frames.c -- */
int pool_frames_init(struct pool_frames *f, uint64_t bytes, uint64_t max_bytes);
void pool_frames_fini(struct pool_frames *f);
int pool_frames_kind(struct pool_frames *f, uint32_t bytes, uint32_t extra, bool packed);
void *pool_frames_alloc(struct pool_frames *f, uint32_t kind);
void pool_frames_free(struct pool_frames *f, uint32_t kind, void *data);
void *pool_frames_extra(const struct pool_frames *f, uint32_t kind, void *data);
void pool_frames_set_owner(struct pool_frames *f, uint32_t kind, void *data, folio_id owner);
/* The most bytes that another kind than `kind` (-1: any) has in free frames. */
uint64_t pool_frames_slack(struct pool_frames *f, int kind);
/* Give free slabs back to the system until `target` remain in memory; true: done. */
bool pool_frames_release(struct pool_frames *f, uint32_t target);
/* Choose the slab with the most free frames but `skip` others, of another kind than `kind` that
 * has at least `slack` bytes of free frames, and let nobody allocate from it. owners[per_slab]
 * is filled, FOLIO_NONE for free frames. Returns the slab or SLAB_NONE. */
int pool_frames_drain_begin(struct pool_frames *f, int kind, uint64_t slack, uint32_t skip,
			    folio_id *owners, uint32_t *nr);
/* True: the slab became free. */
bool pool_frames_drain_end(struct pool_frames *f, int slab);
enum { FRAMES_PER_SLAB_MAX = SLAB_MAX / FOLIAGE_PAGE_MIN };

/* -- pool_shadow.c -- */
int pool_shadows_init(struct pool_shadows *s, uint64_t entries);
void pool_shadows_fini(struct pool_shadows *s);
void pool_shadows_put(struct pool_shadows *s, uint64_t hash, uint64_t shadow);
uint64_t pool_shadows_take(struct pool_shadows *s, uint64_t hash); /* 0: none */

/* -- pool_room.c -- */
extern const struct foliage_backend pool_backend;
/* Reserve a slot and a frame for what is asked for, and make room in its group: 0 or -ENOBUFS. */
int pool_make_room(struct pool *p, struct pool_thread *t, const struct pool_ask *ask, void **data);
void pool_give_room(struct pool *p, uint32_t kind, void *data);
/* Somebody may go on: a page was let go, or is filled. */
void pool_wake(struct pool *p);
/* Wait until the page is filled, or a moment. */
void pool_wait_filled(struct pool *p, struct pool_thread *t, const struct pool_ask *ask);
/* Pages of the typical size that one of `kind` counts for, as a power of two. */
uint32_t pool_order(const struct pool *p, uint32_t kind);
uint64_t pool_metadata_bytes(const struct pool *p, uint32_t level);

/* -- pool.c -- */
/* The engine gets the folio, in the memcg or in what has taken its place. */
void pool_add_folio(struct pool *p, struct pool_thread *t, folio_id id, uint32_t memcg,
		    uint32_t order, uint32_t add, uint64_t shadow);
/* One more or one fewer page in the name space; the last of a closed one frees it. */
void pool_space_leave(struct foliage_pool *in);

/* -- pool_names.c -- */
void pool_clear_space(struct foliage_pool *h);
/* Take the names away from at most 64 folios of which the caller holds a counted pin each, and the
 * pins; returns how many still had one. */
uint32_t pool_doom(struct pool *p, struct pool_slot *const *slots, uint32_t nr);
/* The caller holds the only pin of a frozen folio: out with it. */
void pool_remove(struct pool *p, struct pool_slot *s);

/* ---- the hit ---- */

struct pool_probe {
	uint64_t at; /* slot */
	uint64_t step, slots;
	bool second;
};

static inline struct pool_probe pool_probe_start(const struct pool *p, uint64_t hash,
						 uint32_t level)
{
	uint64_t slots = pool_slots(p, level);

	return (struct pool_probe){
		.at = (hash >> 32) * slots >> 32,
		.slots = slots,
	};
}

/* The last answer of pool_thread_slow(). The serial number tells the pool from an earlier one at the
 * same address, and a forked child's copy. */
extern _Thread_local struct pool_last {
	const struct pool *pool;
	uint64_t serial;
	struct pool_thread *thread;
} pool_last __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* NULL: not known, or the pool is dead. */
static inline struct pool_thread *pool_thread_known(const struct pool *p)
{
	if (__builtin_expect(pool_last.pool != p, 0) ||
	    __builtin_expect(
		    pool_last.serial != atomic_load_explicit(p->alive, memory_order_relaxed), 0))
		return NULL;
	return pool_last.thread;
}

static inline struct pool_thread *pool_thread(struct pool *p)
{
	struct pool_thread *t = pool_thread_known(p);

	return t ? t : pool_thread_slow(p);
}

static inline uint32_t pool_nr_marks(const struct pool_thread *t)
{
	return atomic_load_explicit(&t->nr_marks, memory_order_relaxed);
}

/* It is an access, and a hit, and will be counted before this thread does anything else than hits. There
 * is room for it. */
static inline void pool_mark(struct pool_thread *t, struct pool_slot *s, uint64_t word)
{
	uint32_t nr = pool_nr_marks(t);

	t->marks[nr] = (word & F_VERSION_MASK) | (uint64_t)(uintptr_t)s;
	atomic_store_explicit(&t->nr_marks, nr + 1, memory_order_relaxed);
}

/* Somebody may be interested in that a page was let go. */
static inline bool pool_is_awaited(const struct pool *p)
{
	return atomic_load_explicit(&p->starved, memory_order_seq_cst) ||
	       atomic_load_explicit(&p->waiting, memory_order_relaxed);
}

/* Let go of a counted pin; the last of a frozen folio takes it out. */
static inline void pool_drop_pin(struct pool *p, struct pool_slot *s)
{
	uint64_t word =
		atomic_fetch_sub_explicit(&s->folio.flags, PIN_ONE, memory_order_seq_cst) - PIN_ONE;

	if (word & F_PINS_MASK)
		return;
	if (__builtin_expect(word & F_FROZEN || pool_is_awaited(p), 0))
		pool_last_pin(p, s, word);
}

/* Whoever set FROZEN or starved and then looked at our pin either saw it gone, or we see that. */
static inline void pool_local_clear(struct pool *p, struct pool_thread *t, struct pool_slot *s,
				    unsigned int i)
{
	uint64_t word;

	atomic_store_explicit(&t->held[i], NULL, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	word = folio_flags(&s->folio);
	if (__builtin_expect(word & F_FROZEN || pool_is_awaited(p), 0))
		pool_last_pin(p, s, word);
}

static inline bool pool_is_page(const struct pool_slot *s, uint64_t object, uint64_t index,
				uint32_t state)
{
	return !((slot_index(s) ^ index) | (slot_object(s) ^ object) |
		 ((slot_state(s) ^ state) >> SLOT_KIND_SHIFT));
}

/* Pin for this thread in a place that is free: it says so first and looks then, whoever evicts does it
 * the other way round. The word, or 0: it is not what it should be. */
static inline uint64_t pool_local_set(struct pool_thread *t, struct pool_slot *s, unsigned int i,
				      uint64_t object, uint64_t index, uint32_t state)
{
	const uint64_t care = F_PRESENT | F_FROZEN | F_LOCKED | F_ISOLATED | F_BARRED;
	uint64_t word;

	atomic_store_explicit(&t->held[i], s, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	word = folio_flags(&s->folio);
	if (__builtin_expect((word & care) != F_PRESENT || !pool_is_page(s, object, index, state),
			     0))
		return 0;
	return word;
}

/* The first two places of a name: most hits end here. Which of the two it is must not be a branch:
 * guessed wrong, it is found out only when the line has come from memory, and the processor has to throw
 * away what it has begun of the next hits. */
static inline struct pool_slot *pool_near(const struct pool *p, uint64_t hash, uint64_t index)
{
	uint64_t slots = atomic_load_explicit(&p->nr_slots, memory_order_acquire);
	uint64_t at = (hash >> 32) * slots >> 32;

	return pool_slot(p, at ^ (slot_index(pool_slot(p, at)) != index));
}

#endif
