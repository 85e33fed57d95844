/* SPDX-License-Identifier: MIT
 *
 * What belongs to a thread: the engine's batches and the counters of its fetches. The pool keeps a
 * list of them; a thread finds its own through a pthread key, whose destructor drains the batches
 * and saves the counters when the thread ends. In front of the key stands a thread-local copy of
 * the last answer, so that a hit does not pay a call; the pool's serial number tells it from an
 * earlier pool at the same address.
 */
#include "cache/pool.h"

#include <stdlib.h>

static _Thread_local struct {
	const struct pool *pool;
	uint64_t serial;
	struct pool_thread *thread;
} last __attribute__((tls_model("initial-exec")));

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

	last.pool = NULL;
	if (!pool_alive(p))
		return; /* a forked child: the locks may be held for ever */
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
			.pool = p, .cpu.batch = p->request.nr > 31 ? 31 : (uint32_t)p->request.nr};
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
	last.pool = p;
	last.serial = p->serial;
	last.thread = t;
	return t;
}

struct pool_thread *pool_thread(struct pool *p)
{
	if (__builtin_expect(last.pool == p && last.serial == p->serial, 1))
		return last.thread;
	return pool_thread_slow(p);
}

void pool_threads_sum(struct pool *p, uint64_t sums[NR_COUNTS])
{
	pthread_mutex_lock(&p->threads_lock);
	for (int i = 0; i < NR_COUNTS; i++) {
		sums[i] = p->past[i];
		for (struct pool_thread *t = p->threads; t; t = t->next)
			sums[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
	}
	pthread_mutex_unlock(&p->threads_lock);
}
