/* SPDX-License-Identifier: MIT
 *
 * Pressure of groups: for how long their threads waited, for memory and for I/O, as Linux's PSI
 * counts it. A clock runs while at least one thread waits ("some"), another while all of those
 * active in the group do ("full"). Both are brought up to now whenever a thread begins or ends to
 * wait, and when somebody reads them; averages are taken every two seconds at most, with weights
 * that fall off over 10, 60 and 300 seconds. A wait counts in the group and in all above it.
 *
 * Which threads are active is known from their misses: each sets its bit in the mask of the present
 * two seconds. Hits do not touch the group.
 */
#include "cache/group.h"

#include <math.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (2 * SECOND)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void group_pressure_init(struct foliage_group *g)
{
	uint64_t now = now_ns();

	for (int i = 0; i < PRESSURE_KINDS; i++) {
		struct pressure *pr = &g->pressure[i];

		pthread_mutex_init(&pr->lock, NULL);
		pr->until = pr->averaged_at = now;
	}
}

void group_pressure_fini(struct foliage_group *g)
{
	for (int i = 0; i < PRESSURE_KINDS; i++)
		pthread_mutex_destroy(&g->pressure[i].lock);
}

/* The masks are of this window and of the one before. Threads that meet here at its beginning may
 * lose a bit of each other's, until their next miss. */
static void turn_window(struct foliage_group *g, uint64_t window)
{
	uint64_t old = atomic_load_explicit(&g->window, memory_order_relaxed);

	if (old == window || !atomic_compare_exchange_strong(&g->window, &old, window))
		return;
	atomic_store_explicit(&g->seen[window & 1], 0, memory_order_relaxed);
	if (old + 1 != window)
		atomic_store_explicit(&g->seen[~window & 1], 0, memory_order_relaxed);
}

void group_seen(struct foliage_group *g, const struct pool_thread *t)
{
	uint64_t window = now_ns() / WINDOW, bit = UINT64_C(1) << t->number % 64;

	for (; g; g = g->parent) {
		_Atomic uint64_t *seen = &g->seen[window & 1];

		turn_window(g, window);
		if (!(atomic_load_explicit(seen, memory_order_relaxed) & bit))
			atomic_fetch_or_explicit(seen, bit, memory_order_relaxed);
	}
}

static uint32_t active_threads(struct foliage_group *g, uint64_t now)
{
	turn_window(g, now / WINDOW);
	return (uint32_t)__builtin_popcountll(
		atomic_load_explicit(&g->seen[0], memory_order_relaxed) |
		atomic_load_explicit(&g->seen[1], memory_order_relaxed));
}

static void take_averages(struct pressure *pr, uint64_t now)
{
	static const double seconds[PRESSURE_AVERAGES] = {10, 60, 300};
	double passed = (double)(now - pr->averaged_at);

	for (int what = 0; what < 2; what++) {
		double part = (double)(pr->total[what] - pr->averaged[what]) / passed;

		for (int i = 0; i < PRESSURE_AVERAGES; i++) {
			double keep = exp(-passed / (seconds[i] * (double)SECOND));

			pr->average[what][i] = pr->average[what][i] * keep + part * (1 - keep);
		}
		pr->averaged[what] = pr->total[what];
	}
	pr->averaged_at = now;
}

/* Up to now nothing changed. Locked. */
static void bring_up(struct foliage_group *g, struct pressure *pr, uint64_t now)
{
	if (now <= pr->until)
		return;
	if (pr->stalled)
		pr->total[PRESSURE_SOME] += now - pr->until;
	if (pr->stalled && pr->stalled >= active_threads(g, now))
		pr->total[PRESSURE_FULL] += now - pr->until;
	pr->until = now;
	if (now - pr->averaged_at >= WINDOW)
		take_averages(pr, now);
}

void group_stall(struct foliage_group *g, const struct pool_thread *t, enum foliage_stall what,
		 bool begin)
{
	uint64_t now = now_ns();

	if (t && begin)
		group_seen(g, t);
	for (; g; g = g->parent) {
		struct pressure *pr = &g->pressure[what];

		pthread_mutex_lock(&pr->lock);
		bring_up(g, pr, now);
		if (begin)
			pr->stalled++;
		else if (pr->stalled)
			pr->stalled--;
		pthread_mutex_unlock(&pr->lock);
	}
}

static void stall_outside(struct foliage_group *g, enum foliage_stall what, bool begin)
{
	if (pool_alive(g->pool) && (unsigned int)what < PRESSURE_KINDS)
		group_stall(g, pool_thread(g->pool), what, begin);
}

void foliage_group_stall_begin(struct foliage_group *g, enum foliage_stall what)
{
	stall_outside(g, what, true);
}

void foliage_group_stall_end(struct foliage_group *g, enum foliage_stall what)
{
	stall_outside(g, what, false);
}

void group_pressure_read(struct foliage_group *g, enum foliage_stall what,
			 struct foliage_pressure *out)
{
	struct pressure *pr = &g->pressure[what];

	pthread_mutex_lock(&pr->lock);
	bring_up(g, pr, now_ns());
	out->some_us = pr->total[PRESSURE_SOME] / 1000;
	out->full_us = pr->total[PRESSURE_FULL] / 1000;
	for (int i = 0; i < PRESSURE_AVERAGES; i++) {
		out->some_avg[i] = 100 * pr->average[PRESSURE_SOME][i];
		out->full_avg[i] = 100 * pr->average[PRESSURE_FULL][i];
	}
	pthread_mutex_unlock(&pr->lock);
}
