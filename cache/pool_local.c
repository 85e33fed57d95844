/* SPDX-License-Identifier: MIT
 *
 * Pins that a thread takes for itself (FOLIAGE_FETCH_LOCAL): it writes down the slot in a place of its
 * own, looks at the folio word, and has pinned the page if that names it, is present and nobody wants
 * it to leave. To let go it clears the place and looks at the word once more. That is a plain store
 * and a load, each way; a counted pin is a locked instruction, each way, that also keeps the processor
 * from starting on the next page.
 *
 * The price is paid by whoever takes pages away. It marks them first (ISOLATED by the engine, FROZEN,
 * or BARRED), then makes every running thread of the process pass a full barrier (membarrier(2)), then
 * reads the places of all threads: a thread whose place does not name the page yet will see the mark
 * and take a counted pin instead, or wait for its turn. Pages that are held get a counted pin while the
 * engine examines the batch. One barrier is for a batch, none is needed as long as no thread pins for
 * itself, or only this one.
 *
 * Marks of the program's own (enum foliage_leaving) work alike, but that the program keeps both the
 * marks and the notes that pages may leave.
 */
#include "cache/pool.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

void pool_local_init(struct pool *p)
{
	p->can_local = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static void begin(struct pool *p, struct pool_thread *t)
{
	atomic_store(&p->local, true);
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->held[0], NULL, memory_order_release);
}

unsigned int pool_local_find(const struct pool_thread *t, const struct pool_slot *s)
{
	unsigned int i = 0;

	while (i < POOL_HELD && atomic_load_explicit(&t->held[i], memory_order_relaxed) != s)
		i++;
	return i;
}

uint64_t pool_local_pin(struct pool *p, struct pool_thread *t, struct pool_slot *s,
			const struct pool_ask *ask)
{
	uint32_t state = ask->kind << SLOT_KIND_SHIFT | ask->space << SLOT_SPACE_SHIFT;
	unsigned int i;
	uint64_t word;

	if (!p->can_local)
		return 0;
	if (atomic_load_explicit(&t->held[0], memory_order_relaxed) == POOL_NOT_YET)
		begin(p, t);
	i = pool_local_find(t, NULL);
	if (i == POOL_HELD)
		return 0;
	word = pool_local_set(t, s, i, ask->object, ask->index, state);
	if (!word)
		pool_local_clear(p, t, s, i);
	return word;
}

void pool_local_to_counted(struct pool_thread *t, struct pool_slot *s)
{
	unsigned int i = t ? pool_local_find(t, s) : POOL_HELD;

	if (i == POOL_HELD)
		return;
	atomic_fetch_add_explicit(&s->folio.flags, PIN_ONE, memory_order_seq_cst);
	atomic_store_explicit(&t->held[i], NULL, memory_order_release);
}

/* Is this the only thread of the pool that pins for itself? The threads lock is held. */
static bool alone(const struct pool *p)
{
	const struct pool_thread *t = p->threads;

	return !t || (t == pool_last.thread && pool_last.pool == p && !t->next);
}

static void barrier_of_all(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void pool_barrier(struct pool *p)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&p->local))
		barrier_of_all();
}

static uint64_t find_slot(struct pool_slot *const *slots, uint32_t nr, const struct pool_slot *s)
{
	for (uint32_t i = 0; i < nr; i++)
		if (slots[i] == s)
			return UINT64_C(1) << i;
	return 0;
}

/* Those of the slots that the program may have marked. */
struct own_pages {
	uint32_t nr;
	struct foliage_page *pages[MIN_LRU_BATCH];
	uint8_t of[MIN_LRU_BATCH]; /* slots[of[i]] has pages[i] */
};

/* True: a barrier is needed. */
static bool warn_own(struct pool *p, struct pool_slot *const *slots, uint32_t nr,
		     struct own_pages *own)
{
	own->nr = 0;
	if (!p->self.leaving)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		/* Not what a rekey left behind. */
		if (slot_space(slots[i]) || !__atomic_load_n(&slots[i]->data, __ATOMIC_RELAXED))
			continue;
		own->of[own->nr] = (uint8_t)i;
		own->pages[own->nr++] = slot_page(slots[i]);
	}
	return p->self.leaving(p->self.ctx, own->pages, own->nr, FOLIAGE_LEAVING_WARN);
}

static uint64_t ask_own(struct pool *p, const struct own_pages *own)
{
	uint64_t held = 0, marked;

	if (!own->nr)
		return 0;
	marked = p->self.leaving(p->self.ctx, own->pages, own->nr, FOLIAGE_LEAVING_ASK);
	for (; marked; marked &= marked - 1)
		held |= UINT64_C(1) << own->of[__builtin_ctzll(marked)];
	return held;
}

void pool_held_done(struct pool *p)
{
	if (p->self.leaving)
		p->self.leaving(p->self.ctx, NULL, 0, FOLIAGE_LEAVING_DONE);
}

static uint64_t held_by_threads(struct pool *p, struct pool_slot *const *slots, uint32_t nr,
				bool passed)
{
	uint64_t held = 0;

	pthread_mutex_lock(&p->threads_lock);
	if (!passed && !alone(p))
		barrier_of_all();
	for (struct pool_thread *t = p->threads; t; t = t->next)
		for (int i = 0; i < POOL_HELD; i++) {
			struct pool_slot *s =
				atomic_load_explicit(&t->held[i], memory_order_acquire);

			if (s)
				held |= find_slot(slots, nr, s);
		}
	pthread_mutex_unlock(&p->threads_lock);
	return held;
}

uint64_t pool_held(struct pool *p, struct pool_slot *const *slots, uint32_t nr)
{
	struct own_pages own;
	uint64_t held = 0;
	bool passed = warn_own(p, slots, nr, &own);

	atomic_thread_fence(memory_order_seq_cst);
	if (passed)
		barrier_of_all();
	if (atomic_load(&p->local))
		held = held_by_threads(p, slots, nr, passed);
	return held | ask_own(p, &own);
}

/* May anybody hold pages other than by counted pins? */
static bool may_hold(struct pool *p)
{
	return p->self.leaving || atomic_load(&p->local);
}

void pool_taken(void *ctx, const foliage_folio *ids, uint32_t nr)
{
	struct pool_slot *slots[MIN_LRU_BATCH];
	struct pool *p = ctx;
	struct pool_thread *t;
	uint64_t held;

	if (!may_hold(p) || nr > MIN_LRU_BATCH)
		return;
	for (uint32_t i = 0; i < nr; i++)
		slots[i] = pool_slot(p, (uint64_t)ids[i]);
	t = pool_thread(p);
	t->examines = true;
	for (held = pool_held(p, slots, nr); held; held &= held - 1) {
		struct pool_slot *s = slots[__builtin_ctzll(held)];

		atomic_fetch_add_explicit(&s->folio.flags, PIN_ONE, memory_order_seq_cst);
		t->guards[t->nr_guards++] = s;
	}
}

void pool_given_back(void *ctx)
{
	struct pool *p = ctx;
	struct pool_thread *t;

	if (!may_hold(p))
		return;
	t = pool_thread(p);
	if (!t->examines)
		return;
	t->examines = false;
	pool_held_done(p);
	while (t->nr_guards)
		pool_drop_pin(p, t->guards[--t->nr_guards]);
}
