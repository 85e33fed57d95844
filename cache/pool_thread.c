/* SPDX-License-Identifier: MIT
 *
 * What belongs to a thread: the engine's batches and the counters of its fetches. The pool keeps a
 * list of them; a thread finds its own through a pthread key, whose destructor drains the batches
 * and saves the counters when the thread ends. In front of the key stands a thread-local copy of
 * the last answer, so that a hit does not pay a call.
 */
#include "cache/pool.h"

#include <stdlib.h>

_Thread_local struct pool_last pool_last;

/* Accesses are counted in batches, because a locked instruction in the middle of a hit keeps the
 * processor from fetching the next page meanwhile. They wait as long as the thread only hits: before
 * it brings in a page, evicts, renames or ends, they are counted, in their order. The version in the
 * folio word tells whether it is still the same stay of the same page. */
void pool_count_marks(struct pool *p, struct pool_thread *t)
{
	uint32_t ids[POOL_MARKS], marks = pool_nr_marks(t), nr = 0, done = 0;

	for (uint32_t i = 0; i < marks; i++) {
		struct pool_slot *s =
			(struct pool_slot *)(uintptr_t)(t->marks[i] & ~F_VERSION_MASK);
		uint64_t word = folio_flags(&s->folio);

		if (word & F_PRESENT && !((word ^ t->marks[i]) & F_VERSION_MASK))
			ids[nr++] = (uint32_t)slot_id(p, s);
	}
	pool_count(t, COUNT_HITS, marks);
	atomic_store_explicit(&t->nr_marks, 0, memory_order_relaxed);
	while (done < nr) {
		if (p->ops->mark_run)
			done += (uint32_t)p->ops->mark_run(p->engine, &t->cpu, ids + done,
							   nr - done);
		else
			p->ops->mark_accessed(p->engine, &t->cpu, (folio_id)ids[done++]);
		if (done < nr && !(folio_flags(&pool_slot(p, ids[done])->folio) & F_PRESENT))
			done++; /* it has left meanwhile */
	}
}

static void thread_unlink(struct pool *p, struct pool_thread *t)
{
	pthread_mutex_lock(&p->threads_lock);
	if (t->next)
		t->next->prev = t->prev;
	if (t->prev)
		t->prev->next = t->next;
	else
		p->threads = t->next;
	for (int i = 0; i < NR_COUNTS; i++)
		p->past[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
	pthread_mutex_unlock(&p->threads_lock);
}

/* The thread ends. */
static void thread_exit(void *arg)
{
	struct pool_thread *t = arg;
	struct pool *p = t->pool;

	pool_last.pool = NULL;
	if (!pool_alive(p))
		return; /* a forked child: the locks may be held for ever */
	pool_count_marks(p, t);
	foliage_cpu_exit(p->engine, &t->cpu);
	thread_unlink(p, t);
	free(t);
}

int pool_threads_init(struct pool *p)
{
	int rc = pthread_key_create(&p->key, thread_exit);

	pthread_mutex_init(&p->threads_lock, NULL);
	p->has_key = !rc;
	return -rc;
}

void pool_threads_fini(struct pool *p)
{
	if (p->has_key)
		pthread_key_delete(p->key);
	while (p->threads) {
		struct pool_thread *t = p->threads;

		p->threads = t->next;
		free(t);
	}
}

struct pool_thread *pool_thread_slow(struct pool *p)
{
	struct pool_thread *t = pthread_getspecific(p->key);

	if (!t) {
		t = aligned_alloc(POOL_LINE, (sizeof(*t) + POOL_LINE - 1) / POOL_LINE * POOL_LINE);
		if (!t)
			return NULL;
		*t = (struct pool_thread){
			.pool = p,
			.held[0] = POOL_NOT_YET,
			.cpu.batch = p->request.nr > 31 ? 31 : (uint32_t)p->request.nr};
		if (pthread_setspecific(p->key, t)) {
			free(t);
			return NULL;
		}
		pthread_mutex_lock(&p->threads_lock);
		t->number = p->next_thread++;
		t->next = p->threads;
		if (t->next)
			t->next->prev = t;
		p->threads = t;
		pthread_mutex_unlock(&p->threads_lock);
	}
	pool_last = (struct pool_last){p, p->serial, t};
	return t;
}

void pool_threads_sum(struct pool *p, uint64_t sums[NR_COUNTS])
{
	pthread_mutex_lock(&p->threads_lock);
	for (int i = 0; i < NR_COUNTS; i++) {
		sums[i] = p->past[i];
		for (struct pool_thread *t = p->threads; t; t = t->next)
			sums[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
	}
	for (struct pool_thread *t = p->threads; t; t = t->next)
		sums[COUNT_HITS] += pool_nr_marks(t);
	pthread_mutex_unlock(&p->threads_lock);
}
