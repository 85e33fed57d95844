/* SPDX-License-Identifier: MIT
 *
 * A directory shown at another place, with the contents of its files in the page cache of this
 * process instead of the kernel's: a FUSE passthrough of everything that has a name, and the file
 * cache for everything that is read and written. docs/mount.md is the manual.
 *
 * node.c knows what the kernel has looked up, names.c changes directories, attr.c attributes,
 * dir.c lists directories, data.c opens, reads and writes, range.c has what changes a file beside
 * reading and writing, session.c starts and ends it all.
 */
#ifndef FOLIAGE_ADAPTERS_FUSE_MOUNT_H
#define FOLIAGE_ADAPTERS_FUSE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mount_options {
	const char *source, *mountpoint; /* folders that exist; as they resolve */
	const char *policy;              /* any policy of the engine */
	uint64_t memory;                 /* the cache's budget, bytes */
	uint64_t pages;     /* never more pages of 4 KiB than this; 0: as many as fit */
	uint64_t readahead; /* at most, bytes; 0: none */
	/* Write-back: from so many percent of the budget in dirty pages on, at which writers wait,
	 * and after so many milliseconds; 0: what the cache takes to be right. */
	uint32_t dirty_background, dirty_limit, dirty_expire_ms;
	const char *uncached; /* names left to the kernel's cache: patterns with commas */
	uint64_t threads;     /* that answer the kernel; 1: no others than the caller's */
	double timeout;       /* how long the kernel believes names and attributes, s */
	bool read_only, allow_other, direct;
	/* Called once, when the mount can be used. */
	void (*ready)(void *ctx);
	void *ctx;
};

/* The patterns of `uncached` when nobody says otherwise. */
#define MOUNT_UNCACHED "*-shm,data.mdb,lock.mdb"

/* Mount, answer until it is unmounted or SIGINT, SIGTERM or SIGHUP comes, write everything back,
 * unmount. To be called with one thread in the process, after any fork(). 0; a negative errno with
 * the reason in `err`: it could not start, or something could not be written back. */
int mount_run(const struct mount_options *options, struct err *err);

#endif
