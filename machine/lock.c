/* SPDX-License-Identifier: MIT
 *
 * lruvec locks in virtual time. A lock is a timeline of the intervals in which somebody holds it. A
 * section of the engine is placed into the first gap that is long enough, from the moment on at which
 * its task asked for the lock; what lies between is the task's wait.
 *
 * Tasks do not run in the order of time: one that is ahead by a quantum, or by a whole batch of
 * reclaim, has placed its sections before another comes to ask for an earlier time. Two sections
 * never overlap for that, so that the lock's total work is right and contention shows however long
 * sections are; only who of two waits for whom may come out the other way round.
 *
 * Nobody can ask for a time before the machine's own: what ended by then is forgotten.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { BUSY_MAX = 256 };

struct busy {
	uint64_t from, until;
};

struct lock_clock {
	struct busy busy[BUSY_MAX]; /* in order, with gaps between them */
	uint32_t nr;
	uint64_t taken;
};

static struct lock_clock *lock_of(struct machine *m, uint32_t lruvec)
{
	if (!m->locks[lruvec])
		m->locks[lruvec] = calloc(1, sizeof(*m->locks[lruvec]));
	return m->locks[lruvec];
}

static void drop_first(struct lock_clock *l, uint32_t nr)
{
	l->nr -= nr;
	memmove(l->busy, l->busy + nr, l->nr * sizeof(l->busy[0]));
}

static void forget(struct lock_clock *l, uint64_t now)
{
	uint32_t nr = 0;

	while (nr < l->nr && l->busy[nr].until <= now)
		nr++;
	if (nr)
		drop_first(l, nr);
}

/* The first gap of `length` from `from` on; *at: the interval behind it. */
static uint64_t find_gap(const struct lock_clock *l, uint64_t from, uint64_t length, uint32_t *at)
{
	uint32_t i = 0;

	while (i < l->nr && l->busy[i].until <= from)
		i++;
	for (; i < l->nr && from + length > l->busy[i].from; i++)
		from = MAX(from, l->busy[i].until);
	*at = i;
	return from;
}

/* Number `at` becomes [from, until); neighbours without a gap become one. */
static void insert(struct lock_clock *l, uint32_t at, uint64_t from, uint64_t until)
{
	bool before = at && l->busy[at - 1].until == from;
	bool behind = at < l->nr && l->busy[at].from == until;

	if (before && behind) {
		l->busy[at - 1].until = l->busy[at].until;
		memmove(l->busy + at, l->busy + at + 1, (l->nr - at - 1) * sizeof(l->busy[0]));
		l->nr--;
	} else if (before) {
		l->busy[at - 1].until = until;
	} else if (behind) {
		l->busy[at].from = from;
	} else {
		if (l->nr == BUSY_MAX) {
			if (!at)
				return; /* the oldest of all: as if forgotten */
			drop_first(l, 1);
			at--;
		}
		memmove(l->busy + at + 1, l->busy + at, (l->nr - at) * sizeof(l->busy[0]));
		l->busy[at] = (struct busy){from, until};
		l->nr++;
	}
}

void lock_clock_take(struct machine *m, uint32_t lruvec)
{
	struct lock_clock *l = lock_of(m, lruvec);

	if (l && m->current)
		l->taken = m->current->now;
}

void lock_clock_drop(struct machine *m, uint32_t lruvec, uint32_t nr)
{
	struct lock_clock *l = m->locks[lruvec];
	uint64_t folio = m->costs.lock_folio + (m->engine->ops->rules ? m->costs.lock_gen : 0);
	uint64_t held = m->costs.lock_section + nr * folio, from;
	uint32_t at;

	if (!l || !m->current)
		return;
	/* What the section itself has been charged for meanwhile is part of it. */
	held += m->current->now - l->taken;
	forget(l, m->now);
	from = find_gap(l, l->taken, held, &at);
	insert(l, at, from, from + held);
	m->stat[MACHINE_LOCK_SECTIONS]++;
	m->stat[MACHINE_LOCK_HELD_NS] += held;
	m->stat[MACHINE_LOCK_WAIT_NS] += from - l->taken;
	charge(m, from + held - m->current->now);
}

int locks_init(struct machine *m)
{
	m->locks = calloc(m->options.max_memcgs, sizeof(*m->locks));
	return m->locks ? 0 : -ENOMEM;
}

void locks_fini(struct machine *m)
{
	for (uint32_t i = 0; m->locks && i < m->options.max_memcgs; i++)
		free(m->locks[i]);
	free(m->locks);
}
