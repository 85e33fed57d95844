/* SPDX-License-Identifier: MIT
 *
 * How the cache reads and writes files: calls of the system one at a time in the calling thread, or
 * requests to an io_uring that complete later.
 *
 * Whatever the system does, a caller here sees whole transfers: short ones and EINTR are continued,
 * and what O_DIRECT refuses goes through the plain descriptor.
 *
 * The ring is nobody's: no thread waits for it by profession. Whoever needs something to be
 * complete calls io_wait(), and whoever comes first there reaps for all; the others sleep until
 * that one has news. So `done` runs in any thread that is waiting for anything, and must not wait
 * itself.
 *
 * Tests put their own `struct io_backend` beneath: faults, short transfers, a disk that forgets.
 */
#ifndef FOLIAGE_CACHE_IO_H
#define FOLIAGE_CACHE_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum io_op { IO_READ, IO_WRITE };

/* What is asked of the system. Results like the calls they are named after, but -errno. */
struct io_backend {
	ssize_t (*preadv)(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at);
	ssize_t (*pwritev)(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at);
	int (*sync)(void *ctx, int fd, bool data_only);
	int (*truncate)(void *ctx, int fd, uint64_t size);
	int (*allocate)(void *ctx, int fd, int mode, uint64_t at, uint64_t bytes);
	/* A request came back from the ring with this result; returns the result to believe. NULL:
	 * believe it. */
	int64_t (*result)(void *ctx, enum io_op op, uint64_t at, int64_t result);
	void *ctx;
};
extern const struct io_backend io_system;

/* The descriptors of a file; -1: none. */
struct io_file {
	int plain, direct;
};

struct io_ring;

struct io {
	struct io_backend backend;
	struct io_ring *ring; /* NULL: none, requests are done when they are submitted */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint64_t events; /* something may have changed for somebody who waits */
	_Atomic uint32_t waiting;
	_Atomic uint64_t reads, read_bytes, writes, write_bytes, read_errors, write_errors, syncs;
};

/* depth 0: no ring. -ENOSYS: no ring can be had. `fixed`: memory that IO_WRITE requests come from,
 * for the kernel to keep at hand; NULL: none. */
int io_init(struct io *io, const struct io_backend *backend, uint32_t depth, void *fixed,
	    size_t fixed_bytes);
void io_fini(struct io *io);

/* Everything up to `end`, the end of the file as far as known, or its true end: bytes read. *error:
 * 0 or what stopped it. `iov` is used up. */
uint64_t io_read(struct io *io, struct io_file file, struct iovec *iov, int nr, uint64_t at,
		 uint64_t end, int *error);
/* 0 or an error; then anything may have been written of it. */
int io_write(struct io *io, struct io_file file, const void *data, size_t bytes, uint64_t at);
int io_sync(struct io *io, struct io_file file, bool data_only);

struct io_request {
	enum io_op op;
	bool fixed; /* a write from the fixed memory */
	struct io_file file;
	struct iovec *iov;
	int nr_iov;
	uint64_t at, bytes;
	uint64_t end; /* reads: as in io_read() */
	/* `got`: bytes transferred; error: 0 or what stopped it. */
	void (*done)(struct io_request *request, uint64_t got, int error);
	struct io_request *next; /* the io's */
};
/* Start requests, linked by `next`. */
void io_submit(struct io *io, struct io_request *list);
/* Requests that are with the ring. */
uint32_t io_in_flight(struct io *io);
/* Complete what is there; if nothing is, wait up to `ms` for something to happen: a completion, or
 * an io_kick() from elsewhere. True: something was completed here. */
bool io_wait(struct io *io, uint64_t ms);
/* Wake those who wait: something that no completion tells has changed. */
void io_kick(struct io *io);

/* -- io_ring.c, called by io.c -- */
int io_ring_create(uint32_t depth, void *fixed, size_t fixed_bytes, struct io_ring **ring);
void io_ring_destroy(struct io_ring *ring);
/* Under io->lock. */
void io_ring_add(struct io *io, struct io_request *list);
void io_ring_flush(struct io *io);
uint32_t io_ring_in_flight(const struct io_ring *ring);
/* Under io->lock, which is released meanwhile: number of requests completed; -1: another thread is
 * at it. */
int io_ring_reap(struct io *io, uint64_t ms);
/* What a request's first attempt gave; the rest is done here and now. -- io.c -- */
void io_complete(struct io *io, struct io_request *request, int64_t result);

uint64_t io_now_ms(void);

#endif
