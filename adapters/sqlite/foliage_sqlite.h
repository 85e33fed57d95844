/* SPDX-License-Identifier: MIT
 *
 * libfoliage-sqlite.so: SQLite's page cache on a Foliage pool, one budget for all connections of a
 * process.
 *
 *   Unchanged programs:  LD_PRELOAD=libfoliage-sqlite.so FOLIAGE_SQLITE_MEMORY=256M sqlite3 my.db
 *   Your own program:    link it; its constructor installs it before main(). Call
 *                        foliage_sqlite_install() after a sqlite3_shutdown() that took it out.
 *
 *   FOLIAGE_SQLITE_MEMORY  the budget in bytes, with K, M or G; default 64M
 *   FOLIAGE_SQLITE_POLICY  default fg
 *
 * Caveats
 *   - `PRAGMA cache_size` no longer sizes a connection's cache, the budget does; it still says when
 *     a large transaction begins to spill: when nine tenths of it are pinned.
 *   - Caches that SQLite must not lose pages of (in-memory databases, and temporary ones before
 *     they have a file) are outside the budget, on malloc; so are pages without which a statement
 *     would fail when all of the budget is pinned. Both are counted.
 *   - Each cache has a table of its pages, 16 bytes for each of twice to five times as many as there
 *     are, outside the budget and counted. Of accesses to a page within 16 fetches of its cache the
 *     pool hears, and counts, one.
 *   - The kernel must have membarrier(2) (Linux 4.14). Else SQLite keeps its own cache.
 *   - A program whose SQLite is linked in statically and hidden is not reached by preloading.
 *   - After fork() the child's inherited connections get SQLITE_NOMEM, as SQLite forbids using
 *     them; new ones work.
 */
#ifndef FOLIAGE_SQLITE_H
#define FOLIAGE_SQLITE_H

#include "foliage/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_sqlite_stats {
	struct foliage_pool_stats pool;
	uint64_t caches;            /* open now */
	uint64_t unpurgeable_bytes; /* outside the budget by their nature, now */
	uint64_t overflow_bytes;    /* outside the budget because all of it was pinned, now */
	uint64_t overflows;         /* how many pages ever were */
	uint64_t index_bytes;       /* the caches' own tables, now */
};

/* An SQLite result code; SQLITE_MISUSE when SQLite is initialised already. */
FOLIAGE_API int foliage_sqlite_install(void);
/* 0, or -ENODEV when the adapter is not in use. */
FOLIAGE_API int foliage_sqlite_stats(struct foliage_sqlite_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
