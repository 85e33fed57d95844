/* SPDX-License-Identifier: MIT
 *
 * Block devices: a request takes the device's latency in one of its queue slots, and the pages of all
 * requests share one bus. Reads and writes are alike.
 */
#include "machine/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

int device_init(struct device *d, const struct machine_device *model)
{
	d->model = *model;
	d->busy = calloc(MAX(model->depth, 1u), sizeof(*d->busy));
	return d->busy ? 0 : -ENOMEM;
}

void device_fini(struct device *d)
{
	free(d->busy);
}

static uint32_t first_free(const struct device *d)
{
	uint32_t slot = 0;

	for (uint32_t i = 1; i < d->model.depth; i++)
		if (d->busy[i] < d->busy[slot])
			slot = i;
	return slot;
}

uint64_t device_free_at(const struct device *d)
{
	return d->busy[first_free(d)];
}

uint64_t device_submit(struct machine *m, struct device *d, uint32_t nr, bool write)
{
	uint64_t now, start, done;
	uint32_t slot = first_free(d);

	charge(m, m->costs.submit_io);
	now = this_now(m);
	start = MAX(now, d->busy[slot]);
	d->bus = MAX(start, d->bus) + (uint64_t)nr * d->model.ns_per_page;
	done = MAX(start + d->model.latency, d->bus);
	d->busy[slot] = done;
	*(write ? &d->written : &d->read) += nr;
	m->stat[write ? MACHINE_PGPGOUT : MACHINE_PGPGIN] += 4 * (uint64_t)nr;
	return done;
}

void wait_io(struct task *t, uint64_t done, bool memory_stall)
{
	struct machine *m = t->m;

	if (done <= t->now)
		return;
	m->stat[MACHINE_IO_WAIT_NS] += done - t->now;
	if (memory_stall)
		m->stat[MACHINE_STALL_NS] += done - t->now;
	while (t->now < done) {
		task_block(t, done);
		check_failed(m);
	}
}
