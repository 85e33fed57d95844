/* SPDX-License-Identifier: MIT
 *
 * I/O one call at a time, whole transfers, and waiting for those that are under way (io.h).
 */
#include "cache/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"

enum { RETRIES = 64 }; /* of a call that says EINTR or EAGAIN: then it is an error like others */

/* ---- the system ---- */

static ssize_t system_preadv(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	ssize_t n = preadv(fd, iov, nr, (off_t)at);

	(void)ctx;
	return n < 0 ? -errno : n;
}

static ssize_t system_pwritev(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	ssize_t n = pwritev(fd, iov, nr, (off_t)at);

	(void)ctx;
	return n < 0 ? -errno : n;
}

static int system_sync(void *ctx, int fd, bool data_only)
{
	(void)ctx;
	return (data_only ? fdatasync(fd) : fsync(fd)) ? -errno : 0;
}

static int system_truncate(void *ctx, int fd, uint64_t size)
{
	(void)ctx;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int system_allocate(void *ctx, int fd, int mode, uint64_t at, uint64_t bytes)
{
	(void)ctx;
	return fallocate(fd, mode, (off_t)at, (off_t)bytes) ? -errno : 0;
}

const struct io_backend io_system = {
	.preadv = system_preadv,
	.pwritev = system_pwritev,
	.sync = system_sync,
	.truncate = system_truncate,
	.allocate = system_allocate,
};

uint64_t io_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- whole transfers ---- */

static void advance(struct iovec **iov, int *nr, size_t bytes)
{
	while (*nr && bytes >= (*iov)->iov_len) {
		bytes -= (*iov)->iov_len;
		++*iov;
		--*nr;
	}
	if (*nr) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + bytes;
		(*iov)->iov_len -= bytes;
	}
}

static bool try_again(ssize_t n, int *tries)
{
	return (n == -EINTR || n == -EAGAIN) && ++*tries < RETRIES;
}

/* O_DIRECT asks for more than this file can be asked, or than is left after a short transfer. */
static bool not_direct(ssize_t n, struct io_file *file)
{
	if (n != -EINVAL || file->direct < 0 || file->plain < 0)
		return false;
	file->direct = -1;
	return true;
}

uint64_t io_read(struct io *io, struct io_file file, struct iovec *iov, int nr, uint64_t at,
		 uint64_t end, int *error)
{
	const struct io_backend *b = &io->backend;
	uint64_t got = 0;
	int tries = 0;

	*error = 0;
	while (nr && at + got < end) {
		int fd = file.direct >= 0 ? file.direct : file.plain;
		ssize_t n = b->preadv(b->ctx, fd, iov, MIN(nr, IOV_MAX), at + got);

		if (try_again(n, &tries) || not_direct(n, &file))
			continue;
		atomic_fetch_add_explicit(&io->reads, 1, memory_order_relaxed);
		if (n < 0)
			*error = (int)n;
		if (n <= 0)
			break;
		got += (uint64_t)n;
		advance(&iov, &nr, (size_t)n);
		if (got % 512 && file.plain >= 0)
			file.direct = -1;
	}
	atomic_fetch_add_explicit(&io->read_bytes, got, memory_order_relaxed);
	if (*error)
		atomic_fetch_add_explicit(&io->read_errors, 1, memory_order_relaxed);
	return got;
}

static uint64_t write_all(struct io *io, struct io_file file, const void *data, size_t bytes,
			  uint64_t at, int *error)
{
	const struct io_backend *b = &io->backend;
	uint64_t done = 0;
	int tries = 0;

	*error = 0;
	while (done < bytes && !*error) {
		size_t left = bytes - done, part = left;
		struct iovec iov = {.iov_base = (char *)(uintptr_t)data + done};
		int fd = file.plain;
		ssize_t n;

		if (file.direct >= 0 && !((at + done) % 512) && left >= 512) {
			fd = file.direct;
			part = left & ~(size_t)511;
		}
		iov.iov_len = part;
		n = b->pwritev(b->ctx, fd, &iov, 1, at + done);
		if (try_again(n, &tries) || (fd == file.direct && not_direct(n, &file)))
			continue;
		atomic_fetch_add_explicit(&io->writes, 1, memory_order_relaxed);
		if (n <= 0)
			*error = n ? (int)n : -EIO;
		else
			done += (uint64_t)n;
	}
	atomic_fetch_add_explicit(&io->write_bytes, done, memory_order_relaxed);
	if (*error)
		atomic_fetch_add_explicit(&io->write_errors, 1, memory_order_relaxed);
	return done;
}

int io_write(struct io *io, struct io_file file, const void *data, size_t bytes, uint64_t at)
{
	int error;

	write_all(io, file, data, bytes, at, &error);
	return error;
}

int io_sync(struct io *io, struct io_file file, bool data_only)
{
	int tries = 0, rc;

	do
		rc = io->backend.sync(io->backend.ctx, file.plain, data_only);
	while (try_again(rc, &tries));
	atomic_fetch_add_explicit(&io->syncs, 1, memory_order_relaxed);
	return rc;
}

void io_complete(struct io *io, struct io_request *r, int64_t result)
{
	uint64_t got = result > 0 ? (uint64_t)result : 0, more;
	bool reading = r->op == IO_READ;
	struct iovec *iov = r->iov;
	int nr = r->nr_iov, error = 0;

	if (result > 0) {
		advance(&iov, &nr, (size_t)result);
		atomic_fetch_add_explicit(reading ? &io->reads : &io->writes, 1,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(reading ? &io->read_bytes : &io->write_bytes, got,
					  memory_order_relaxed);
	}
	if (result < 0 && result != -EINTR && result != -EAGAIN &&
	    !not_direct((ssize_t)result, &r->file)) {
		error = (int)result;
		atomic_fetch_add_explicit(reading ? &io->read_errors : &io->write_errors, 1,
					  memory_order_relaxed);
	} else if (reading && got < r->bytes && (result || r->end == UINT64_MAX)) {
		if (got % 512 && r->file.plain >= 0)
			r->file.direct = -1;
		more = io_read(io, r->file, iov, nr, r->at + got, r->end, &error);
		got += more;
	} else if (!reading) {
		/* Writes come in one piece each. */
		if (got < r->bytes)
			got += write_all(io, r->file, iov->iov_base, r->bytes - got, r->at + got,
					 &error);
	}
	r->done(r, got, error);
}

/* ---- requests ---- */

int io_init(struct io *io, const struct io_backend *backend, uint32_t depth, void *fixed,
	    size_t fixed_bytes)
{
	pthread_condattr_t monotonic;

	*io = (struct io){.backend = *backend};
	pthread_mutex_init(&io->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&io->cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return depth ? io_ring_create(depth, fixed, fixed_bytes, &io->ring) : 0;
}

void io_fini(struct io *io)
{
	if (io->ring)
		io_ring_destroy(io->ring);
	io->ring = NULL;
	pthread_cond_destroy(&io->cond);
	pthread_mutex_destroy(&io->lock);
}

void io_submit(struct io *io, struct io_request *list)
{
	if (io->ring) {
		pthread_mutex_lock(&io->lock);
		io_ring_add(io, list);
		io_ring_flush(io);
		pthread_mutex_unlock(&io->lock);
		return;
	}
	while (list) {
		struct io_request *next = list->next;

		io_complete(io, list, -EINTR);
		list = next;
	}
}

uint32_t io_in_flight(struct io *io)
{
	uint32_t nr = 0;

	if (io->ring) {
		pthread_mutex_lock(&io->lock);
		nr = io_ring_in_flight(io->ring);
		pthread_mutex_unlock(&io->lock);
	}
	return nr;
}

static void sleep_until_news(struct io *io, uint64_t ms)
{
	uint64_t before = io->events;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(ms / 1000);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	atomic_fetch_add(&io->waiting, 1);
	if (io->events == before)
		pthread_cond_timedwait(&io->cond, &io->lock, &until);
	atomic_fetch_sub(&io->waiting, 1);
}

bool io_wait(struct io *io, uint64_t ms)
{
	int nr = -1;

	pthread_mutex_lock(&io->lock);
	if (io->ring && io_ring_in_flight(io->ring))
		nr = io_ring_reap(io, ms);
	if (nr > 0) {
		io->events++;
		pthread_cond_broadcast(&io->cond);
	} else if (nr < 0 && ms) {
		sleep_until_news(io, ms);
	}
	pthread_mutex_unlock(&io->lock);
	return nr > 0;
}

void io_kick(struct io *io)
{
	if (!atomic_load(&io->waiting))
		return;
	pthread_mutex_lock(&io->lock);
	io->events++;
	pthread_cond_broadcast(&io->cond);
	pthread_mutex_unlock(&io->lock);
}
