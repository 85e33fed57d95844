/* SPDX-License-Identifier: MIT
 *
 * foliage/group.h - groups of pages inside one pool's budget: a tree with protection and limits, as
 * Linux's memory cgroups are.
 *
 * 	struct foliage_group *index, *scans;
 *
 * 	foliage_group_create(foliage_pool_group(pool), "index", &index);
 * 	foliage_group_create(foliage_pool_group(pool), "scans", &scans);
 * 	foliage_group_set(index, FOLIAGE_GROUP_LOW, 64 << 20);	// keeps 64 MiB while others have some
 * 	foliage_group_set(scans, FOLIAGE_GROUP_MAX, 16 << 20);	// never has more than 16 MiB
 * 	foliage_group_fetch(scans, pool, file, number, kind, FOLIAGE_FETCH_CREATE, &page);
 *
 * The pool must have been created with room for groups (`max_groups`). Its own group is the root of
 * the tree; a page belongs to the group in which it was brought in, until it leaves. A group that is
 * named nowhere else can have pools of its own (foliage_group_pool()): name spaces that share the
 * memory.
 *
 *   min    the group's pages are not reclaimed for others while it has no more than this
 *   low    the same, unless nothing else can be reclaimed
 *   high   above it whoever brings a page in reclaims from the group first, and waits a little (up
 *          to 100 ms) when that did not help
 *   max    never more: a fetch reclaims from the group, or fails with -ENOBUFS (or waits, with
 *          FOLIAGE_FETCH_WAIT) when all of it is pinned or dirty
 *
 * Each of them holds for the group and everything below it; what protects children is shared out
 * among them up to what their parent has, as in cgroup v2.
 *
 * Caveats
 *   - Memory is counted in pages of the pool's typical size (`page_bytes`): a smaller page counts as
 *     one, extra bytes do not count. Limits are rounded down to such pages.
 *   - Threads that bring pages in at the same moment may pass a max by a page each.
 *   - The pages of a removed group belong to its parent at once. Its place becomes free for a new
 *     group when nothing names it any more; when places run out (there are twice as many as
 *     max_groups), creating one walks over all pages once.
 *   - Pressure is what Linux's PSI means by it. `some`: the time in which at least one thread waited;
 *     `full`: in which every thread that is active in the group did. Hits are not seen: a thread is
 *     active for 2 to 4 seconds after it brought in a page. More than 64 threads share 64 marks.
 *   - Functions may be called from any thread. A forked child gets -ECHILD.
 */
#ifndef FOLIAGE_GROUP_H
#define FOLIAGE_GROUP_H

#include "foliage/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_group;

/* The group that the pages of a pool belong to: the root, or that of foliage_group_pool(). */
FOLIAGE_API struct foliage_group *foliage_pool_group(struct foliage_pool *pool);

/* A new child of `parent`. Names are 1 to 63 bytes without '/' and newline. -EINVAL; -EEXIST; -ENOENT:
 * the parent was removed; -ENOSPC: max_groups exist, or their places are not free yet; -ENOMEM;
 * -ECHILD. */
FOLIAGE_API int foliage_group_create(struct foliage_group *parent, const char *name,
				     struct foliage_group **group);
/* Its pages become its parent's; so do new ones of those who still name it. -EBUSY: it has children;
 * -EINVAL: it is the root; -ENOENT: it was removed before. `group` is invalid afterwards, unless
 * somebody holds it. */
FOLIAGE_API int foliage_group_remove(struct foliage_group *group);
/* Keep the memory of a group that others may remove (a file that names it). */
FOLIAGE_API void foliage_group_hold(struct foliage_group *group);
FOLIAGE_API void foliage_group_release(struct foliage_group *group);

enum foliage_group_limit {
	FOLIAGE_GROUP_MIN,
	FOLIAGE_GROUP_LOW,
	FOLIAGE_GROUP_HIGH,
	FOLIAGE_GROUP_MAX,
};
/* Change a limit while the group is in use: bytes, or UINT64_MAX for none. A lowered high or max is
 * enforced before the call returns. -EBUSY: it is set, but pinned and dirty pages are in the way;
 * -EINVAL: the root's (foliage_pool_resize() does that); -ENOENT: it was removed. */
FOLIAGE_API int foliage_group_set(struct foliage_group *group, enum foliage_group_limit limit,
				  uint64_t bytes);

/* Fetch as foliage_pool_fetch() does; a page that is made belongs to `group` (NULL: the pool's own),
 * a group of the same memory. -EINVAL: it is not. */
FOLIAGE_API int foliage_group_fetch(struct foliage_group *group, struct foliage_pool *pool,
				    uint64_t object, uint64_t index, int kind, unsigned int flags,
				    struct foliage_page **page);

/* A pool inside the group: a name space of its own in the same memory, for all functions of
 * foliage/cache.h. Of the options only dropped, ctx and wait_ms are looked at; NULL: none. Kinds,
 * statistics, shrink and resize are those of the whole. foliage_pool_destroy() discards its pages,
 * none of which may be pinned; it must come before that of the whole. -ENOSPC: there are 255 already;
 * -ENOENT: the group was removed; -ENOMEM; -ECHILD. */
FOLIAGE_API int foliage_group_pool(struct foliage_group *group,
				   const struct foliage_pool_options *options,
				   struct foliage_pool **pool);

/* Bytes that the group and those below it have, or a negative errno. */
FOLIAGE_API int64_t foliage_group_current(struct foliage_group *group);

struct foliage_pressure {
	uint64_t some_us, full_us;       /* since the group was made */
	double some_avg[3], full_avg[3]; /* percent of the last 10, 60, 300 seconds */
};

/* Of the group and everything below it, but for the limits. */
struct foliage_group_stats {
	uint64_t current, min, low, high, max; /* bytes */
	uint64_t active, inactive;             /* bytes on the lists of the policy */
	uint64_t refaults, activated, restored, scanned, evicted; /* pages */
	uint64_t low_events, high_events, max_events; /* reclaimed below low; met high; met max */
	uint64_t no_room;                             /* fetches that failed at max */
	struct foliage_pressure memory, io;
};
FOLIAGE_API int foliage_group_stats(struct foliage_group *group, struct foliage_group_stats *stats);

/* The same as text, malloc'ed, under the names and in the formats of Linux: "memory.current",
 * "memory.min", "memory.low", "memory.high", "memory.max", "memory.stat", "memory.events",
 * "memory.pressure", "io.pressure". -EINVAL: no such text; -ENOMEM. */
FOLIAGE_API int foliage_group_text(struct foliage_group *group, const char *what, char **text);

/* Call `visit` for the group and each one below it, parents first, until it returns something else
 * than 0, which is returned. `path` is "/" for the root. `visit` must not create or remove groups. */
FOLIAGE_API int foliage_group_each(struct foliage_group *group,
				   int (*visit)(void *ctx, struct foliage_group *group,
						const char *path),
				   void *ctx);

enum foliage_stall { FOLIAGE_STALL_MEMORY, FOLIAGE_STALL_IO };
/* The calling thread begins, or has ended, to wait for something because of this group's pages.
 * Reclaim and waiting for room are counted by themselves; tell of I/O. */
FOLIAGE_API void foliage_group_stall_begin(struct foliage_group *group, enum foliage_stall what);
FOLIAGE_API void foliage_group_stall_end(struct foliage_group *group, enum foliage_stall what);

#ifdef __cplusplus
}
#endif
#endif
