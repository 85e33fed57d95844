/* SPDX-License-Identifier: MIT
 *
 * Requests through io_uring. At most `depth` are with the kernel; more wait in a list here. Under
 * io->lock but for the completion side, which belongs to the one thread that has set `reaping`.
 */
#include "cache/io.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_LIBURING
#include <liburing.h>

#include "base/bits.h"

enum { REAP_BATCH = 64 };

struct io_ring {
	struct io_uring uring;
	uint32_t depth, in_flight;
	bool reaping, fixed;
	struct io_request *first, *last; /* waiting for a place */
	uint32_t nr_waiting;
};

int io_ring_create(uint32_t depth, void *fixed, size_t fixed_bytes, struct io_ring **out)
{
	struct io_uring_params params = {0};
	struct io_ring *ring = calloc(1, sizeof(*ring));
	int rc;

	if (!ring)
		return -ENOMEM;
	ring->depth = depth;
	rc = io_uring_queue_init_params(depth, &ring->uring, &params);
	if (rc) {
		free(ring);
		return -ENOSYS;
	}
	/* Waiting with a time-out must not touch the submission side. */
	if (!(params.features & IORING_FEAT_EXT_ARG) || !(params.features & IORING_FEAT_NODROP)) {
		io_ring_destroy(ring);
		return -ENOSYS;
	}
	if (fixed) {
		struct iovec iov = {fixed, fixed_bytes};

		/* Refused when the limit of locked memory is low: then each write maps its own. */
		ring->fixed = !io_uring_register_buffers(&ring->uring, &iov, 1);
	}
	*out = ring;
	return 0;
}

void io_ring_destroy(struct io_ring *ring)
{
	io_uring_queue_exit(&ring->uring);
	free(ring);
}

uint32_t io_ring_in_flight(const struct io_ring *ring)
{
	return ring->in_flight + ring->nr_waiting;
}

static void append(struct io_ring *ring, struct io_request *r)
{
	r->next = NULL;
	if (ring->first)
		ring->last->next = r;
	else
		ring->first = r;
	ring->last = r;
	ring->nr_waiting++;
}

void io_ring_add(struct io *io, struct io_request *list)
{
	while (list) {
		struct io_request *next = list->next;

		append(io->ring, list);
		list = next;
	}
}

static void prepare(const struct io_ring *ring, struct io_uring_sqe *sqe, struct io_request *r)
{
	int fd = r->file.direct >= 0 ? r->file.direct : r->file.plain;

	if (r->op == IO_WRITE && r->fixed && ring->fixed)
		io_uring_prep_write_fixed(sqe, fd, r->iov->iov_base, (unsigned int)r->bytes, r->at,
					  0);
	else if (r->op == IO_WRITE)
		io_uring_prep_write(sqe, fd, r->iov->iov_base, (unsigned int)r->bytes, r->at);
	else if (r->nr_iov == 1)
		io_uring_prep_read(sqe, fd, r->iov->iov_base, (unsigned int)r->bytes, r->at);
	else
		io_uring_prep_readv(sqe, fd, r->iov, (unsigned int)r->nr_iov, r->at);
	io_uring_sqe_set_data(sqe, r);
}

void io_ring_flush(struct io *io)
{
	struct io_ring *ring = io->ring;

	while (ring->first && ring->in_flight < ring->depth) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
		struct io_request *r = ring->first;

		if (!sqe)
			break;
		ring->first = r->next;
		ring->nr_waiting--;
		ring->in_flight++;
		prepare(ring, sqe, r);
	}
	/* What the kernel does not take now (out of memory, interrupted) it takes the next time. */
	if (io_uring_sq_ready(&ring->uring))
		io_uring_submit(&ring->uring);
}

/* Take completions out of the ring; wait up to `ms` for the first. Only the reaper calls. */
static unsigned int take(struct io_ring *ring, struct io_request **requests, int64_t *results,
			 uint64_t ms)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int nr = io_uring_peek_batch_cqe(&ring->uring, cqes, REAP_BATCH);

	if (!nr && ms) {
		struct __kernel_timespec limit = {
			.tv_sec = (int64_t)(ms / 1000),
			.tv_nsec = (long long)(ms % 1000) * 1000000,
		};

		io_uring_wait_cqe_timeout(&ring->uring, cqes, &limit);
		nr = io_uring_peek_batch_cqe(&ring->uring, cqes, REAP_BATCH);
	}
	for (unsigned int i = 0; i < nr; i++) {
		requests[i] = io_uring_cqe_get_data(cqes[i]);
		results[i] = cqes[i]->res;
	}
	io_uring_cq_advance(&ring->uring, nr);
	return nr;
}

int io_ring_reap(struct io *io, uint64_t ms)
{
	struct io_request *requests[REAP_BATCH];
	int64_t results[REAP_BATCH];
	struct io_ring *ring = io->ring;
	unsigned int nr;

	if (ring->reaping)
		return -1;
	ring->reaping = true;
	if (io_uring_sq_ready(&ring->uring))
		io_ring_flush(io);
	pthread_mutex_unlock(&io->lock);
	nr = take(ring, requests, results, ms);
	pthread_mutex_lock(&io->lock);
	ring->reaping = false;
	ring->in_flight -= nr;
	if (ring->first)
		io_ring_flush(io);
	pthread_mutex_unlock(&io->lock);
	for (unsigned int i = 0; i < nr; i++) {
		struct io_request *r = requests[i];

		if (io->backend.result)
			results[i] = io->backend.result(io->backend.ctx, r->op, r->at, results[i]);
		io_complete(io, r, results[i]);
	}
	pthread_mutex_lock(&io->lock);
	return (int)nr;
}

#else

int io_ring_create(uint32_t depth, void *fixed, size_t fixed_bytes, struct io_ring **ring)
{
	(void)depth, (void)fixed, (void)fixed_bytes, (void)ring;
	return -ENOSYS;
}

void io_ring_destroy(struct io_ring *ring)
{
	(void)ring;
}

void io_ring_add(struct io *io, struct io_request *list)
{
	(void)io, (void)list;
}

void io_ring_flush(struct io *io)
{
	(void)io;
}

uint32_t io_ring_in_flight(const struct io_ring *ring)
{
	(void)ring;
	return 0;
}

int io_ring_reap(struct io *io, uint64_t ms)
{
	(void)io, (void)ms;
	return -1;
}
#endif
