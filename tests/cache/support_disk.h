/* SPDX-License-Identifier: MIT
 *
 * Beneath the file cache in tests: the system's calls with faults in between, and a disk in memory
 * that forgets at a power cut what no fsync has covered.
 */
#ifndef FOLIAGE_TESTS_SUPPORT_DISK_H
#define FOLIAGE_TESTS_SUPPORT_DISK_H

#include "cache/io.h"

enum fault { FAULT_NONE, FAULT_EIO, FAULT_ENOSPC, FAULT_EINTR, FAULT_SHORT, NR_FAULTS };

/* Calls that a fault may hit. */
enum { HIT_READ = 1, HIT_WRITE = 2, HIT_SYNC = 4, HIT_TRUNCATE = 8, HIT_ALL = 15 };

struct faults {
	struct io_backend backend; /* give this to the cache */
	_Atomic int kind;
	_Atomic uint64_t calls, after, repeat; /* calls so far; the next faults: from, how many */
	_Atomic uint32_t which;
	_Atomic uint64_t hits, hit_writes, hit_reads, hit_others;
};
void faults_init(struct faults *f);
/* The `repeat` calls after `after` more of them go wrong. */
void faults_arm(struct faults *f, enum fault kind, uint64_t after, uint64_t repeat, uint32_t which);

struct pending_write {
	uint64_t at, bytes;
	char *data; /* NULL: the file was cut to `at` bytes */
};

enum { DISK_FILES = 4 };

/* Files in memory; the cache has real ones open, which stay empty. Each has a disk, so that an fsync
 * of one says nothing of the others. */
struct disk {
	struct io_backend backend;
	pthread_mutex_t lock;
	char *now, *safe; /* what is read; what survives */
	uint64_t size, safe_size, max;
	struct pending_write *writes;
	uint32_t nr, room;
	bool off;
};
void disk_init(struct disk *d, uint64_t max);
void disk_fini(struct disk *d);

struct disks {
	struct io_backend backend;
	struct disk files[DISK_FILES];
	_Atomic uint64_t ino[DISK_FILES]; /* of the real ones, in the order of their first use */
};
void disks_init(struct disks *d, uint64_t max);
void disks_fini(struct disks *d);
/* The disk of the file that is open as fd. */
struct disk *disks_of(struct disks *d, int fd);

/* The power goes: some of what was written, or cut off, since the last fsync, in any order, sector by sector,
 * has made it. Everything fails from now on. */
void disk_cut(struct disk *d, uint64_t *rng);

#endif
