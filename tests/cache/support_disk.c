/* SPDX-License-Identifier: MIT
 *
 * See support_disk.h.
 */
#include "support_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "base/rng.h"

/* ---- faults ---- */

static enum fault next_fault(struct faults *f, uint32_t what)
{
	uint64_t call;

	if (!(atomic_load(&f->which) & what))
		return FAULT_NONE;
	call = atomic_fetch_add(&f->calls, 1);
	if (!atomic_load(&f->kind) || call < f->after || call >= f->after + f->repeat)
		return FAULT_NONE;
	atomic_fetch_add(&f->hits, 1);
	atomic_fetch_add(what == HIT_WRITE  ? &f->hit_writes
			 : what == HIT_READ ? &f->hit_reads
					    : &f->hit_others,
			 1);
	return (enum fault)atomic_load(&f->kind);
}

static int error_of(enum fault fault)
{
	switch (fault) {
	case FAULT_EIO:
		return -EIO;
	case FAULT_ENOSPC:
		return -ENOSPC;
	case FAULT_EINTR:
		return -EINTR;
	default:
		return 0;
	}
}

/* About half of it, not on a sector's border. */
static size_t shortened(const struct iovec *iov)
{
	return iov->iov_len > 1 ? iov->iov_len / 2 | 1 : iov->iov_len;
}

static ssize_t faulty_preadv(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	enum fault fault = next_fault(ctx, HIT_READ);
	struct iovec part;

	if (error_of(fault))
		return error_of(fault);
	if (fault != FAULT_SHORT)
		return io_system.preadv(NULL, fd, iov, nr, at);
	/* The kernel refuses odd lengths to O_DIRECT: read all, say less. */
	part = *iov;
	{
		ssize_t n = io_system.preadv(NULL, fd, &part, 1, at);

		return n > 1 ? MIN(n, (ssize_t)shortened(iov)) : n;
	}
}

static ssize_t faulty_pwritev(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	enum fault fault = next_fault(ctx, HIT_WRITE);
	ssize_t n;

	if (error_of(fault))
		return error_of(fault);
	n = io_system.pwritev(NULL, fd, iov, nr, at);
	return fault == FAULT_SHORT && n > 1 ? MIN(n, (ssize_t)shortened(iov)) : n;
}

static int faulty_sync(void *ctx, int fd, bool data_only)
{
	int error = error_of(next_fault(ctx, HIT_SYNC));

	return error ? error : io_system.sync(NULL, fd, data_only);
}

static int faulty_truncate(void *ctx, int fd, uint64_t size)
{
	int error = error_of(next_fault(ctx, HIT_TRUNCATE));

	return error ? error : io_system.truncate(NULL, fd, size);
}

static int faulty_allocate(void *ctx, int fd, int mode, uint64_t at, uint64_t bytes)
{
	int error = error_of(next_fault(ctx, HIT_TRUNCATE));

	return error ? error : io_system.allocate(NULL, fd, mode, at, bytes);
}

static int64_t faulty_result(void *ctx, enum io_op op, uint64_t at, int64_t result)
{
	enum fault fault = next_fault(ctx, op == IO_READ ? HIT_READ : HIT_WRITE);

	(void)at;
	if (error_of(fault))
		return error_of(fault);
	return fault == FAULT_SHORT && result > 1 ? result / 2 | 1 : result;
}

void faults_init(struct faults *f)
{
	*f = (struct faults){.backend = {.preadv = faulty_preadv,
					 .pwritev = faulty_pwritev,
					 .sync = faulty_sync,
					 .truncate = faulty_truncate,
					 .allocate = faulty_allocate,
					 .result = faulty_result,
					 .ctx = f},
			     .which = HIT_ALL};
}

void faults_arm(struct faults *f, enum fault kind, uint64_t after, uint64_t repeat, uint32_t which)
{
	atomic_store(&f->kind, FAULT_NONE);
	atomic_store(&f->which, which);
	f->after = atomic_load(&f->calls) + after;
	f->repeat = repeat;
	f->hits = f->hit_writes = f->hit_reads = f->hit_others = 0;
	atomic_store(&f->kind, kind);
}

/* ---- a disk that forgets ---- */

static ssize_t disk_preadv(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	struct disk *d = ctx;
	ssize_t got = 0;

	(void)fd;
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < nr && at < d->size && !d->off; i++) {
		size_t part = MIN(iov[i].iov_len, d->size - at);

		memcpy(iov[i].iov_base, d->now + at, part);
		at += part;
		got += (ssize_t)part;
	}
	if (d->off)
		got = -EIO;
	pthread_mutex_unlock(&d->lock);
	return got;
}

/* Remember what is not safe yet. */
static void pend(struct disk *d, uint64_t at, const void *data, uint64_t bytes)
{
	struct pending_write w = {.at = at, .bytes = bytes};

	if (d->nr == d->room) {
		d->room = 2 * d->room + 64;
		d->writes = realloc(d->writes, d->room * sizeof(w));
	}
	if (data) {
		w.data = malloc(bytes + 1);
		memcpy(w.data, data, bytes);
	}
	d->writes[d->nr++] = w;
}

static ssize_t disk_pwritev(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	struct disk *d = ctx;
	ssize_t put = 0;

	(void)fd;
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < nr && !d->off; i++) {
		uint64_t bytes = iov[i].iov_len;

		if (at + bytes > d->max)
			abort();
		pend(d, at, iov[i].iov_base, bytes);
		memcpy(d->now + at, iov[i].iov_base, bytes);
		at += bytes;
		d->size = MAX(d->size, at);
		put += (ssize_t)bytes;
	}
	if (d->off)
		put = -EIO;
	pthread_mutex_unlock(&d->lock);
	return put;
}

static void forget_writes(struct disk *d)
{
	for (uint32_t i = 0; i < d->nr; i++)
		free(d->writes[i].data);
	d->nr = 0;
}

static int disk_sync(void *ctx, int fd, bool data_only)
{
	struct disk *d = ctx;
	int rc = 0;

	(void)fd, (void)data_only;
	pthread_mutex_lock(&d->lock);
	if (d->off) {
		rc = -EIO;
	} else {
		memcpy(d->safe, d->now, d->max);
		d->safe_size = d->size;
		forget_writes(d);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static int disk_truncate(void *ctx, int fd, uint64_t size)
{
	struct disk *d = ctx;

	int rc = 0;

	(void)fd;
	pthread_mutex_lock(&d->lock);
	if (d->off) {
		rc = -EIO;
	} else {
		if (size < d->size)
			memset(d->now + size, 0, d->size - size);
		d->size = size;
		pend(d, size, NULL, 0);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void disk_init(struct disk *d, uint64_t max)
{
	*d = (struct disk){.backend = {.preadv = disk_preadv,
				       .pwritev = disk_pwritev,
				       .sync = disk_sync,
				       .truncate = disk_truncate,
				       .ctx = d},
			   .now = calloc(1, max),
			   .safe = calloc(1, max),
			   .max = max};
	pthread_mutex_init(&d->lock, NULL);
}

void disk_fini(struct disk *d)
{
	forget_writes(d);
	free(d->writes);
	free(d->now);
	free(d->safe);
}

static void survive(struct disk *d, const struct pending_write *w, uint64_t *rng)
{
	if (!w->data) {
		if (w->at < d->safe_size)
			memset(d->safe + w->at, 0, d->safe_size - w->at);
		d->safe_size = w->at;
		return;
	}
	for (uint64_t at = 0; at < w->bytes; at += 512) {
		uint64_t bytes = MIN(w->bytes - at, UINT64_C(512));

		if (splitmix64_below(rng, 4) == 0)
			continue; /* torn */
		memcpy(d->safe + w->at + at, w->data + at, bytes);
		d->safe_size = MAX(d->safe_size, w->at + at + bytes);
	}
}

void disk_cut(struct disk *d, uint64_t *rng)
{
	pthread_mutex_lock(&d->lock);
	d->off = true;
	for (uint32_t i = 0; i < 2 * d->nr; i++) {
		const struct pending_write *w = &d->writes[splitmix64_below(rng, d->nr)];

		if (splitmix64_below(rng, 3))
			survive(d, w, rng);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- several files ---- */

struct disk *disks_of(struct disks *d, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		abort();
	for (int i = 0; i < DISK_FILES; i++) {
		uint64_t none = 0;

		if (atomic_load(&d->ino[i]) == st.st_ino ||
		    atomic_compare_exchange_strong(&d->ino[i], &none, st.st_ino) ||
		    none == st.st_ino)
			return &d->files[i];
	}
	abort();
}

static ssize_t disks_preadv(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	return disk_preadv(disks_of(ctx, fd), fd, iov, nr, at);
}

static ssize_t disks_pwritev(void *ctx, int fd, const struct iovec *iov, int nr, uint64_t at)
{
	return disk_pwritev(disks_of(ctx, fd), fd, iov, nr, at);
}

static int disks_sync(void *ctx, int fd, bool data_only)
{
	return disk_sync(disks_of(ctx, fd), fd, data_only);
}

static int disks_truncate(void *ctx, int fd, uint64_t size)
{
	return disk_truncate(disks_of(ctx, fd), fd, size);
}

void disks_init(struct disks *d, uint64_t max)
{
	*d = (struct disks){.backend = {.preadv = disks_preadv,
					.pwritev = disks_pwritev,
					.sync = disks_sync,
					.truncate = disks_truncate,
					.ctx = d}};
	for (int i = 0; i < DISK_FILES; i++)
		disk_init(&d->files[i], max);
}

void disks_fini(struct disks *d)
{
	for (int i = 0; i < DISK_FILES; i++)
		disk_fini(&d->files[i]);
}
