/* SPDX-License-Identifier: MIT
 *
 * Virtual time: a heap of events, tasks as fibers, CPUs.
 *
 * Each task has a clock of its own, ahead of the machine's by at most a quantum: between two
 * switches it runs thousands of page touches without asking anybody. When nobody else could run
 * before the time it has reached, it does not switch at all, so that a machine with one task is as
 * fast as a loop.
 *
 * Engine calls run without interruption but for the engine's yields, at which a task that has spent time lets those
 * run that are behind it. It keeps its CPU meanwhile, because the engine holds on to the CPU's batches.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"

enum { FLUSH_NS = 2000000000 };

/* ---- the heap ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

int event_at(struct machine *m, uint64_t time, void (*call)(struct machine *m, void *arg),
	     void *arg, bool owned)
{
	struct event e = {
		.time = MAX(time, m->now),
		.seq = m->event_seq++,
		.call = call,
		.arg = arg,
		.owned = owned,
	};
	uint32_t i;

	if (m->nr_events == m->max_events) {
		uint32_t max = MAX(2 * m->max_events, 256u);
		struct event *events = realloc(m->events, max * sizeof(*events));

		if (!events) {
			machine_fail(m, "no memory for events");
			return -ENOMEM;
		}
		m->events = events;
		m->max_events = max;
	}
	for (i = m->nr_events++; i && earlier(&e, &m->events[(i - 1) / 2]); i = (i - 1) / 2)
		m->events[i] = m->events[(i - 1) / 2];
	m->events[i] = e;
	return 0;
}

static struct event pop_event(struct machine *m)
{
	struct event top = m->events[0], last = m->events[--m->nr_events];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < m->nr_events) {
		if (child + 1 < m->nr_events && earlier(&m->events[child + 1], &m->events[child]))
			child++;
		if (!earlier(&m->events[child], &last))
			break;
		m->events[i] = m->events[child];
		i = child;
	}
	if (m->nr_events)
		m->events[i] = last;
	return top;
}

/* ---- CPUs ---- */

static void run_event(struct machine *m, void *arg);

static void put_on_cpu(struct machine *m, struct task *t, int cpu, uint64_t time)
{
	m->on_cpu[cpu] = t;
	t->cpu = cpu;
	t->now = MAX(t->now, time) + m->costs.context_switch;
	t->slice_end = t->now + m->costs.slice;
	t->state = TASK_READY;
	event_at(m, t->now, run_event, t, false);
}

static void make_ready(struct machine *m, struct task *t, uint64_t time)
{
	t->state = TASK_READY;
	t->now = MAX(t->now, time);
	if (t->own_cpu) {
		put_on_cpu(m, t, (int)m->options.cpus, time);
		return;
	}
	for (uint32_t i = 0; i < m->options.cpus; i++)
		if (!m->on_cpu[i]) {
			put_on_cpu(m, t, (int)i, time);
			return;
		}
	t->next_ready = NULL;
	if (m->ready_tail)
		m->ready_tail->next_ready = t;
	else
		m->ready_head = t;
	m->ready_tail = t;
}

static void release_cpu(struct machine *m, struct task *t)
{
	int cpu = t->cpu;
	struct task *next = m->ready_head;

	m->on_cpu[cpu] = NULL;
	t->cpu = -1;
	if (!next || cpu == (int)m->options.cpus)
		return;
	m->ready_head = next->next_ready;
	if (!m->ready_head)
		m->ready_tail = NULL;
	put_on_cpu(m, next, cpu, t->now);
}

static void wake_event(struct machine *m, void *arg)
{
	struct task *t = arg;

	/* Woken earlier by somebody, and asleep again: not this one's business. */
	if (t->state != TASK_BLOCKED || t->wake > m->now)
		return;
	make_ready(m, t, m->now);
}

void task_wake(struct task *t, uint64_t time)
{
	if (t->state == TASK_BLOCKED)
		make_ready(t->m, t, MAX(time, t->m->now));
	else
		t->woken = true;
}

void task_wake_at(struct task *t, uint64_t time)
{
	if (t->state != TASK_BLOCKED || t->wake <= time)
		return;
	t->wake = time;
	event_at(t->m, time, wake_event, t, false);
}

/* ---- fibers ---- */

static void fiber_main(unsigned int low, unsigned int high)
{
	struct task *t = (struct task *)((uintptr_t)low | (uintptr_t)high << 32);

	t->fn(t, t->arg);
	task_exit(t);
}

static void switch_out(struct task *t)
{
	swapcontext(&t->context, &t->m->scheduler);
}

static void set_horizon(struct machine *m, struct task *t)
{
	t->horizon = t->now + m->costs.quantum;
	if (t->space)
		foliage_mm_ran(m->engine, t->space->mm);
}

/* The machine's time has come to where this task stands. */
static void run_event(struct machine *m, void *arg)
{
	struct task *t = arg;

	t->state = TASK_RUNNING;
	m->current = t;
	set_horizon(m, t);
	swapcontext(&m->scheduler, &t->context);
	m->current = NULL;
	switch (t->state) {
	case TASK_RUNNING:
		if (m->ready_head && t->now >= t->slice_end && !t->pinned) {
			release_cpu(m, t);
			make_ready(m, t, t->now);
		} else {
			t->state = TASK_READY;
			event_at(m, t->now, run_event, t, false);
		}
		break;
	case TASK_BLOCKED:
		release_cpu(m, t);
		if (t->woken)
			make_ready(m, t, t->now);
		else if (t->wake != UINT64_MAX)
			event_at(m, t->wake, wake_event, t, false);
		t->woken = false;
		break;
	case TASK_DEAD:
		release_cpu(m, t);
		break;
	case TASK_READY:
		break;
	}
}

static bool asked_to_stop(struct machine *m)
{
	if (m->stopped && ++m->polls % 1024 == 0 && m->stopped())
		m->stop = true;
	return m->stop;
}

/* Nobody else can run up to `time`: the machine's clock may simply go there. */
static bool alone_until(struct machine *m, uint64_t time)
{
	if (m->nr_events && m->events[0].time <= time)
		return false;
	if (time >= m->until || asked_to_stop(m))
		return false;
	m->now = MAX(m->now, time);
	return true;
}

void task_checkpoint(struct task *t)
{
	struct machine *m = t->m;

	if (t->now < t->horizon)
		return;
	if ((!m->ready_head || t->now < t->slice_end || t->pinned) && alone_until(m, t->now))
		set_horizon(m, t);
	else
		switch_out(t);
}

void task_block(struct task *t, uint64_t time)
{
	struct machine *m = t->m;

	if (t->woken) {
		t->woken = false;
		return;
	}
	time = MAX(time, t->now);
	if (time != UINT64_MAX && !m->ready_head && alone_until(m, time)) {
		t->now = time;
		set_horizon(m, t);
		return;
	}
	t->wake = time;
	t->state = TASK_BLOCKED;
	switch_out(t);
}

struct task *task_new(struct machine *m, uint32_t memcg, task_fn fn, void *arg)
{
	struct task *t = m->dead;
	void *stack = NULL;

	if (t) {
		m->dead = t->next_ready;
		stack = t->stack;
	} else {
		t = calloc(1, sizeof(*t));
		if (!t)
			return NULL;
		stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stack == MAP_FAILED) {
			free(t);
			return NULL;
		}
		t->next_all = m->all;
		m->all = t;
	}
	*t = (struct task){
		.stack = stack,
		.m = m,
		.fn = fn,
		.arg = arg,
		.memcg = memcg,
		.cpu = -1,
		.next_all = t->next_all,
	};
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = stack;
	t->context.uc_stack.ss_size = STACK_BYTES;
	t->context.uc_link = NULL;
	makecontext(&t->context, (void (*)(void))fiber_main, 2, (unsigned int)(uintptr_t)t,
		    (unsigned int)((uintptr_t)t >> 32));
	make_ready(m, t, this_now(m));
	return t;
}

void task_die(struct task *t)
{
	struct machine *m = t->m;

	t->state = TASK_DEAD;
	t->next_ready = m->dead;
	m->dead = t;
	m->live -= !t->kernel;
	switch_out(t);
	abort(); /* a dead fiber is never resumed */
}

/* ---- clocks ---- */

uint64_t this_now(const struct machine *m)
{
	return m->current ? m->current->now : m->now;
}

struct foliage_cpu *this_cpu(struct machine *m)
{
	return m->current ? &m->cpus[m->current->cpu] : &m->cpus[m->options.cpus];
}

void charge(struct machine *m, uint64_t ns)
{
	if (!m->current)
		return;
	m->current->now += ns;
	m->stat[MACHINE_SYS_NS] += ns;
}

void charge_user(struct task *t, uint64_t ns)
{
	t->now += ns;
	t->m->stat[MACHINE_USER_NS] += ns;
}

/* ---- failing ---- */

void machine_fail(struct machine *m, const char *format, ...)
{
	va_list args;

	if (m->failed)
		return;
	m->failed = true;
	va_start(args, format);
	vsnprintf(m->oom, sizeof(m->oom), format, args);
	va_end(args);
}

void check_failed(struct machine *m)
{
	if (m->failed && m->current)
		task_die(m->current);
}

/* ---- the loop ---- */

static void flush_event(struct machine *m, void *arg)
{
	(void)arg;
	foliage_flush_stats(m->engine);
	/* Nothing else will ever happen: do not keep the machine going. */
	if (m->nr_events || m->ready_head)
		event_at(m, m->now + FLUSH_NS, flush_event, NULL, false);
}

int sched_init(struct machine *m)
{
	uint32_t nr = m->options.cpus;

	m->cpus = calloc(nr + 1, sizeof(*m->cpus)); /* the last one is the interrupts' */
	m->on_cpu = calloc(nr + 1, sizeof(struct task *));
	if (!m->cpus || !m->on_cpu || locks_init(m))
		return -ENOMEM;
	return event_at(m, FLUSH_NS, flush_event, NULL, false);
}

void sched_fini(struct machine *m)
{
	while (m->all) {
		struct task *t = m->all;

		m->all = t->next_all;
		munmap(t->stack, STACK_BYTES);
		free(t);
	}
	free(m->events);
	free(m->cpus);
	free(m->on_cpu);
	locks_fini(m);
}

int machine_run(struct machine *m, uint64_t until, bool (*stopped)(void))
{
	m->until = until ? until : UINT64_MAX;
	m->stopped = stopped;
	m->stop = false;
	while (m->live && !m->failed) {
		struct event e;

		if (asked_to_stop(m))
			return -EINTR;
		if (!m->nr_events)
			return -EDEADLK;
		if (m->events[0].time >= m->until) {
			m->now = m->until;
			return 0;
		}
		e = pop_event(m);
		m->now = e.time;
		e.call(m, e.arg);
	}
	return m->failed ? -ENOMEM : 0;
}

void machine_settle(struct machine *m)
{
	m->until = UINT64_MAX;
	while (m->nr_events && !m->failed) {
		struct event e = pop_event(m);

		m->now = e.time;
		e.call(m, e.arg);
	}
}

const struct task *machine_running(const struct machine *m)
{
	return m->current;
}

uint64_t machine_now(const struct machine *m)
{
	return m->now;
}

const char *machine_oom(const struct machine *m)
{
	return m->oom;
}
