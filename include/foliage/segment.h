/* SPDX-License-Identifier: MIT
 *
 * foliage/segment.h - statistics in shared memory: a program that embeds the cache writes what it
 * counts, `foliage top`, `foliage stat` and any other program read it, whenever they like.
 *
 * 	struct foliage_segment_options options = {.label = "orders.db", .policy = "fg"};
 * 	struct foliage_segment *segment;
 *
 * 	foliage_segment_create(&options, &segment);
 * 	foliage_segment_start_pool(segment, pool, 500);	// a thread publishes twice a second
 * 	...
 * 	foliage_segment_destroy(segment);		// before the pool
 *
 * or, without a thread, foliage_segment_publish_pool() whenever it suits, or foliage_segment_update()
 * with values of your own.
 *
 * A segment is a file of fixed layout: in POSIX shared memory as foliage.PID.N, or where you say.
 * Readers only read it: they take no lock, and the writer never notices them. Values carry a stamp
 * that is odd while they change, so that a reader sees all of one update or reads again.
 *
 * Caveats
 *   - A program that is killed leaves its segment. Readers recognise it (the process is gone, or its
 *     number belongs to one that started at another time); foliage_segment_clean() removes it.
 *   - Readers must see the writer's /proc: another PID namespace takes it for gone.
 *   - After fork() the child's copy is dead: updates return -ECHILD, and destroying it there leaves
 *     the segment to the parent.
 *   - Functions return a negative errno; nothing prints, exits or aborts on what you pass or on what
 *     a file that is read contains.
 */
#ifndef FOLIAGE_SEGMENT_H
#define FOLIAGE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "foliage/version.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_pool;
struct foliage_segment;
struct foliage_segment_reader;

enum {
	FOLIAGE_SEGMENT_VERSION = 1, /* of the layout; readers refuse others */
	FOLIAGE_SEGMENT_GROUPS = 64,
	FOLIAGE_SEGMENT_GENS = 8,
	FOLIAGE_SEGMENT_NAME = 64,
	FOLIAGE_SEGMENT_LABEL = 1024,
};

/* What the numbers of struct foliage_segment_lists are. */
enum foliage_segment_order {
	FOLIAGE_SEGMENT_UNKNOWN,     /* not published */
	FOLIAGE_SEGMENT_GENERATIONS, /* pages[seq - min_seq], the oldest first */
	FOLIAGE_SEGMENT_CLASSIC,     /* pages[0] inactive, pages[1] active */
};

/* Pages of one type by age. */
struct foliage_segment_lists {
	uint64_t order;            /* enum foliage_segment_order */
	uint64_t min_seq, max_seq; /* generations: the oldest and the youngest there is */
	uint64_t pages[FOLIAGE_SEGMENT_GENS];
};

/* Times are nanoseconds, averages hundredths of a percent over 10, 60 and 300 seconds, counters
 * totals since the program began, limits bytes with UINT64_MAX for none. */
struct foliage_segment_pressure {
	uint64_t some_ns, full_ns; /* some, or all, of the threads at work stood still */
	uint64_t some_avg[3], full_avg[3];
};

struct foliage_segment_group {
	char name[FOLIAGE_SEGMENT_NAME]; /* a path from the root: "/", "/orders" */
	uint64_t current;                /* bytes */
	uint64_t min, low, high, max;
	uint64_t hits, misses; /* UINT64_MAX: nobody counts them by group, as in a pool */
	uint64_t refaults, evictions;
	uint64_t reserved[4];
	struct foliage_segment_pressure pressure;
};

struct foliage_segment_values {
	uint64_t updates; /* set by foliage_segment_update(): how many there were */
	uint64_t time_ns; /* set by foliage_segment_update(): CLOCK_MONOTONIC */
	/* Memory, in bytes but for `pages`. */
	uint64_t budget, metadata_bytes, frame_bytes;
	uint64_t pages, page_bytes;
	uint64_t dirty_bytes, writeback_bytes;
	/* Events of pages. */
	uint64_t hits, misses, created, refaults, evictions, discarded;
	uint64_t readahead;      /* pages read before they were asked for */
	uint64_t no_room, waits; /* requests that failed, or waited, for want of room */
	/* Bytes: what programs read and wrote, what storage did for it. */
	uint64_t read_bytes, written_bytes;
	uint64_t disk_read_bytes, disk_written_bytes;
	uint64_t io_errors;
	uint64_t reserved[16];
	struct foliage_segment_pressure pressure;
	struct foliage_segment_lists anon, file;
	/* Groups: how many there are, and the first FOLIAGE_SEGMENT_GROUPS of them. */
	uint64_t nr_groups;
	struct foliage_segment_group groups[FOLIAGE_SEGMENT_GROUPS];
};

/* ---- writing ---- */

struct foliage_segment_options {
	const char *path;    /* the file; NULL: foliage.PID.N in shared memory */
	const char *program; /* NULL: what the process is called */
	const char *policy;  /* NULL: "" */
	const char
		*label; /* what `foliage top LABEL` finds: a mount point, a data base; NULL: "" */
	uint32_t mode;  /* of the file, less the umask; 0: 0644 */
};

/* 0; -EINVAL: a text too long; -EEXIST: `path` is there and not the segment of a process that is
 * gone; or what the file system says. Thread-safe. */
FOLIAGE_API int foliage_segment_create(const struct foliage_segment_options *options,
				       struct foliage_segment **segment);
/* Its path, valid until it is destroyed. */
FOLIAGE_API const char *foliage_segment_path(const struct foliage_segment *segment);
/* Publish `values`: all of them, some 13 KiB are copied. Thread-safe. 0; -ECHILD. */
FOLIAGE_API int foliage_segment_update(struct foliage_segment *segment,
				       const struct foliage_segment_values *values);
/* Publish what the pool tells of itself. Thread-safe. 0; -ECHILD. */
FOLIAGE_API int foliage_segment_publish_pool(struct foliage_segment *segment,
					     struct foliage_pool *pool);
/* A thread that publishes every `interval_ms` (10 .. 60000) what `fill` says, until the segment is
 * destroyed. `fill` gets zeroed values; it returns 0, or anything else to publish nothing this time.
 * -EINVAL; -EBUSY: there is one already; -EAGAIN: no thread. */
FOLIAGE_API int foliage_segment_start(struct foliage_segment *segment, uint32_t interval_ms,
				      int (*fill)(void *ctx, struct foliage_segment_values *values),
				      void *ctx);
/* The same with the pool's statistics: destroy the segment before the pool. */
FOLIAGE_API int foliage_segment_start_pool(struct foliage_segment *segment,
					   struct foliage_pool *pool, uint32_t interval_ms);
/* The pool's statistics as values; members that a pool does not know are left alone. 0; -ECHILD. */
FOLIAGE_API int foliage_segment_fill_pool(struct foliage_pool *pool,
					  struct foliage_segment_values *values);
/* Ends the thread, removes the file. NULL is fine. */
FOLIAGE_API void foliage_segment_destroy(struct foliage_segment *segment);

/* ---- reading ---- */

struct foliage_segment_identity {
	uint64_t pid;
	uint64_t created_s;                 /* seconds since 1970 */
	char program[FOLIAGE_SEGMENT_NAME]; /* zero-terminated texts, whatever the file contains */
	char policy[FOLIAGE_SEGMENT_LABEL];
	char label[FOLIAGE_SEGMENT_LABEL];
};

/* `name`: a path when it has a slash, else in shared memory. 0; -ENOENT; -EACCES; -EPROTO: not a
 * segment, or of another version. A reader belongs to one thread at a time. */
FOLIAGE_API int foliage_segment_open(const char *name, struct foliage_segment_reader **reader);
/* Valid until the reader is closed. */
FOLIAGE_API const struct foliage_segment_identity *
foliage_segment_identity(const struct foliage_segment_reader *reader);
/* Is the process that wrote it still there? */
FOLIAGE_API bool foliage_segment_alive(const struct foliage_segment_reader *reader);
/* The values of the last update; zeros before the first. 0; -EAGAIN: they changed under every
 * attempt, or the writer died while they did; -EIO. */
FOLIAGE_API int foliage_segment_read(struct foliage_segment_reader *reader,
				     struct foliage_segment_values *values);
FOLIAGE_API void foliage_segment_close(struct foliage_segment_reader *reader);

/* Call `each` for every segment in shared memory that can be read; another answer than 0 ends it
 * and is returned. 0, or a negative errno of reading the folder. */
FOLIAGE_API int foliage_segment_list(int (*each)(void *ctx, const char *name,
						 const struct foliage_segment_identity *identity,
						 bool alive),
				     void *ctx);
/* The segment of `target`: a path, a name in shared memory, the number of a living process or the
 * label of one (a path is looked up as it resolves, too). Its name goes to `name`. 0; -ENOENT;
 * -ENOTUNIQ: several fit; -ENAMETOOLONG. */
FOLIAGE_API int foliage_segment_find(const char *target, char *name, size_t bytes);
/* Remove the segments in shared memory whose processes are gone: how many, or a negative errno. */
FOLIAGE_API int foliage_segment_clean(void);

#ifdef __cplusplus
}
#endif
#endif
