/* SPDX-License-Identifier: MIT
 *
 * foliage/file.h - files read and written through a page cache of your own: a fixed budget of
 * memory, ranked by the reclaim engine, hits without a lock, read-ahead, write-back, fsync.
 *
 * 	struct foliage_cache_options options = {.bytes = 256 << 20};
 * 	struct foliage_cache *cache;
 * 	struct foliage_file *file;
 * 	char message[200];
 *
 * 	foliage_cache_create(&options, &cache, message, sizeof(message));
 * 	foliage_file_open(cache, "data", O_RDWR | O_CREAT, 0666, &file);
 * 	foliage_file_write(file, "hello", 5, 0);
 * 	got = foliage_file_read(file, buffer, sizeof(buffer), 0);
 * 	foliage_file_fsync(file);
 * 	foliage_file_close(file);
 * 	foliage_cache_destroy(cache);
 *
 * A cache is a pool (foliage/cache.h), a way to do I/O, a set of files and one write-back thread.
 * Files are told apart by device and inode number: two handles of one file share its pages, by
 * whatever names it was opened. Offsets and sizes are bytes. Functions return a negative errno;
 * nothing prints, exits or aborts on what you pass. All functions may be called from any thread at
 * any time, but for what a function's own comment excludes.
 *
 * What is promised
 *   - A read sees all writes that returned before it began. One page of a write is atomic towards
 *     other writes and write-back; a read at the same time as a write of the same bytes may see
 *     some of each. A write through a handle is atomic towards other writes as a whole, unless it
 *     is asynchronous.
 *   - A write is in memory when it returns. It is on the medium when a later fsync of the file (by
 *     any handle) has returned 0. Pages are written in no particular order before that.
 *   - A read error reaches the reader of the bytes, and nothing of what failed is cached: the next
 *     read tries again. A read that got some bytes before the error returns those.
 *   - A page that could not be written stays in memory, dirty, and is tried again (by each fsync,
 *     and every second by the write-back thread). Nothing that was written is dropped because of an
 *     error, except by foliage_cache_destroy(), which says so.
 *   - fsync and fdatasync return a write-back error (-EIO, -ENOSPC, ...) once for each handle that
 *     was open when it happened, whoever met it: the write-back thread, another handle's fsync, a
 *     writer. An error that no handle has seen yet is also told to the next handle that is opened.
 *     When fsync returns 0, everything written before it is on the medium, older failures
 *     included: those pages were written again by it. When it returns an error, the pages it could
 *     not write are still dirty, and calling it again is meaningful.
 *   - When the system's own fdatasync() fails, the system may have forgotten what it failed to
 *     write. Pages that were handed to it since the last fsync that succeeded are dirty again
 *     as far as they are still in memory, and fsync returns the error.
 *
 * What costs what
 *   - A read of cached bytes is one pool hit for each page, and the copying. No lock is taken, no
 *     file-wide state written.
 *   - A write holds the file's mutex while it copies into one page.
 *   - A miss is one system call, in the calling thread, for all consecutive missing pages of the
 *     request. Several threads that miss the same page do one I/O.
 *   - Read-ahead and write-back go through io_uring where it is allowed.
 *
 * Caveats
 *   - Changes of a file by others than this cache (another process, a mapping, plain write()) are
 *     not seen for pages that are cached. At open, when nobody has the file open, its modification
 *     time, change time and size are compared with what they were, and everything is forgotten if
 *     they differ. foliage_file_invalidate() forgets on request.
 *   - The size of the file on disk lags behind until write-back; foliage_file_size() and
 *     foliage_cache_stat() know the true one.
 *   - Space is not reserved: a full disk shows at fsync, or at a write that had to wait for
 *     write-back.
 *   - The modification time of a file on disk is set to that of the last write() after its pages
 *     have been written, where that is permitted.
 *   - Files are re-opened through /proc/self/fd for reading (a write of part of a page must read
 *     the rest) and for O_DIRECT. Opening a file for writing only, without permission to read it,
 *     is -EACCES. The cache's own descriptors (two for each file that is open or has dirty pages)
 *     come out of the process's limit. Closing a file closes one of them, and with it, as POSIX
 *     has it, the process's fcntl() locks of that file go; F_OFD_ locks stay.
 *   - Only regular files (and block devices) can be opened: -ENODEV otherwise.
 *   - Memory: `bytes` is the pool's budget. Beside it: write-back buffers (2 MiB), rings, about 400
 *     bytes for each file known and 72 bytes for each group of up to 64 dirty pages.
 *   - After fork() the child's copy is dead, every call returns -ECHILD; only
 *     foliage_cache_destroy() works there, and writes nothing.
 */
#ifndef FOLIAGE_FILE_H
#define FOLIAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "foliage/cache.h"
#include "foliage/group.h"

#ifdef __cplusplus
extern "C" {
#endif

struct foliage_cache;
struct foliage_file;

/* ---- the cache ---- */

enum foliage_io {
	FOLIAGE_IO_AUTO = 0,  /* io_uring where it is built in and allowed, else FOLIAGE_IO_SYNC */
	FOLIAGE_IO_SYNC = 1,  /* preadv() and pwritev() only; asynchronous calls complete at once */
	FOLIAGE_IO_URING = 2, /* io_uring, or creating the cache fails */
};

enum foliage_direct {
	FOLIAGE_DIRECT_AUTO = 0, /* O_DIRECT for each file that allows it, pages of 4096 and more */
	FOLIAGE_DIRECT_NEVER = 1, /* through the kernel's page cache */
};

struct foliage_cache_options {
	uint64_t bytes;      /* the pool's budget; at least FOLIAGE_POOL_MIN */
	uint64_t max_bytes;  /* see struct foliage_pool_options */
	uint64_t max_pages;  /* never more pages than this; 0: as many as fit */
	uint32_t page_bytes; /* a power of two, 512 .. 65536; 0: 4096. All files' */
	const char *policy;  /* any policy of the engine; NULL: "fg" */
	uint64_t seed;
	uint32_t max_groups; /* as in struct foliage_pool_options */

	enum foliage_io io;
	enum foliage_direct direct;
	uint32_t queue_depth;     /* requests in flight through io_uring; 0: 128; 1 .. 4096 */
	uint32_t readahead_bytes; /* the largest window; 0: 128 KiB; at most 4 MiB */
	bool no_readahead;        /* only what is asked for is read */

	/* Write-back begins at so many percent of the budget in dirty pages (0: 10), or when a page
	 * has been dirty for `dirty_expire_ms` (0: 5000); the thread looks every `dirty_wake_ms`
	 * (0: 500). Writers wait at `dirty_limit` percent (0: 30; at most 80). */
	uint32_t dirty_background, dirty_limit, dirty_expire_ms, dirty_wake_ms;

	/* How long a call waits, while nothing moves, for room in the pool or for fewer dirty
	 * pages, before it gives up with -ENOBUFS (or the error that write-back met). 0: 10000 */
	uint32_t wait_ms;
};

/* 0; -EINVAL with the reason in `message` (may be NULL); -ENOSYS: FOLIAGE_IO_URING was asked for
 * and cannot be had; -ENOMEM; -EAGAIN: no thread, or see foliage_pool_create(). */
FOLIAGE_API int foliage_cache_create(const struct foliage_cache_options *options,
				     struct foliage_cache **cache, char *message,
				     size_t message_bytes);
/* Write everything back, close every handle that is still open, free everything. No other thread
 * may be in a call of the cache, and nothing asynchronous may be unfinished that its owner still
 * wants to hear of: it is waited for, and forgotten. NULL is allowed. Returns 0, or the error of
 * the first file of which something could not be written: that data is lost. The files are
 * written, not fsynced: see foliage_cache_sync(). */
FOLIAGE_API int foliage_cache_destroy(struct foliage_cache *cache);

/* Write everything back and fsync every file that had something to write: what sync() does. 0 or
 * the first error; all files are tried. Handles still hear of errors through their fsync. */
FOLIAGE_API int foliage_cache_sync(struct foliage_cache *cache);

/* The pool of the cache: for foliage_pool_stats(), foliage_pool_shrink(), foliage_pool_resize().
 * Do not fetch, discard or truncate in it. */
FOLIAGE_API struct foliage_pool *foliage_cache_pool(struct foliage_cache *cache);

/* `st` is what fstat() or lstat() said of a file: where the cache knows better (size and
 * modification time of a file with dirty pages), correct it. Returns true if it did. Works for
 * files that are closed, and costs a look into a table otherwise. */
FOLIAGE_API bool foliage_cache_stat(struct foliage_cache *cache, struct stat *st);

/* You have changed a file's attributes (renamed, linked, chmod, utimens ...), not its contents:
 * `before` and `after` are what stat() said around that. Without it the new change time makes the
 * next open forget the pages of a closed file. utimens: foliage_file_flush() before it, or
 * write-back sets the time of the last write. */
FOLIAGE_API void foliage_cache_restamp(struct foliage_cache *cache, const struct stat *before,
				       const struct stat *after);

struct foliage_cache_stats {
	struct foliage_pool_stats pool; /* hits, misses, evicted, refaults ... in pages */
	uint64_t reads, read_bytes;     /* by callers, pins included (as their page) */
	uint64_t writes, write_bytes;   /* by callers */
	uint64_t disk_reads,
		disk_read_bytes; /* what the files were asked for; requests and bytes */
	uint64_t disk_writes, disk_write_bytes;
	uint64_t readahead_pages;              /* read without being asked for */
	uint64_t dirty_bytes, writeback_bytes; /* now: not yet handed over; being written */
	uint64_t read_errors, write_errors;    /* requests that failed */
	uint64_t fsyncs;                       /* of files of the system */
	uint64_t throttled;               /* writes that waited for dirty pages to become fewer */
	uint64_t files_open, files_known; /* files with handles; those and closed ones remembered */
	bool uring;                       /* io_uring is in use */
	uint64_t direct_files;            /* of files_open, those with O_DIRECT */
};
/* A snapshot; 0 or -ECHILD. */
FOLIAGE_API int foliage_cache_stats(struct foliage_cache *cache, struct foliage_cache_stats *stats);

/* ---- handles ---- */

/* Open a file by name. `flags` as for open(): O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC,
 * O_APPEND (each write goes to the end, whatever its offset), O_DSYNC and O_SYNC (each write is
 * followed by fdatasync or fsync), O_NOFOLLOW, O_CLOEXEC (always set); O_DIRECT is ignored, it is
 * the cache's affair. 0 or what open() says; -ENODEV: not a regular file or block device. */
FOLIAGE_API int foliage_file_open(struct foliage_cache *cache, const char *path, int flags,
				  mode_t mode, struct foliage_file **file);
/* The same of a descriptor: its access mode, O_APPEND, O_DSYNC and O_SYNC count. The descriptor
 * stays yours, may be closed at any time, and its file offset is not touched. */
FOLIAGE_API int foliage_file_open_fd(struct foliage_cache *cache, int fd,
				     struct foliage_file **file);
/* Let go of a handle; no other thread may be in a call with it, none of its asynchronous requests
 * unfinished, none of its pages pinned. Does not write: dirty pages stay, are written back in time
 * and are there for the next open; only when more than 256 closed files are dirty it writes this
 * one's. Pages of a file that has no name and no handle any more are dropped. 0. */
FOLIAGE_API int foliage_file_close(struct foliage_file *file);

/* A descriptor of the file, for fstat(), locks and the like. It belongs to the cache and is shared
 * by all handles of the file: do not close it, do not read or write with it, ask again after
 * another handle of the file was opened. */
FOLIAGE_API int foliage_file_fd(struct foliage_file *file);
/* Pages of the file that come in from now on, by whatever handle, belong to `group`, one of the
 * cache's pool (foliage_pool_group() is their root; the cache needs max_groups). A file gets a group
 * once, and keeps it until it is forgotten. -EBUSY: it has another. */
FOLIAGE_API int foliage_file_set_group(struct foliage_file *file, struct foliage_group *group);
/* The size with everything written so far. Lock-free. */
FOLIAGE_API uint64_t foliage_file_size(struct foliage_file *file);

/* ---- read and write ---- */

enum foliage_rw {
	/* FOLIAGE_HINT_SEQUENTIAL, FOLIAGE_HINT_ONCE, FOLIAGE_HINT_WILL_NEED of cache.h as well */
	FOLIAGE_RW_NOWAIT = 1 << 16, /* only what is in memory; -EAGAIN instead of any waiting */
};

/* As an offset of a write: at the end of the file. */
#define FOLIAGE_APPEND UINT64_MAX

/* Bytes read, fewer than asked for only at the end of the file or before an error; 0 at or after
 * the end; -EIO or whatever the read of the file says; -ENOBUFS: see wait_ms; -EBADF: not open for
 * reading; -EINVAL: an offset beyond INT64_MAX. */
FOLIAGE_API int64_t foliage_file_read(struct foliage_file *file, void *buffer, size_t bytes,
				      uint64_t offset);
/* Bytes written, fewer than asked for only before an error; otherwise as read. A write beyond the
 * end leaves zeros between. -EFBIG: beyond INT64_MAX. -ENOSPC and the like: only when it had to
 * wait for write-back, and that failed. */
FOLIAGE_API int64_t foliage_file_write(struct foliage_file *file, const void *buffer, size_t bytes,
				       uint64_t offset);
/* The same with several buffers and flags (enum foliage_rw). At most INT_MAX buffers. */
FOLIAGE_API int64_t foliage_file_readv(struct foliage_file *file, const struct iovec *iov, int nr,
				       uint64_t offset, unsigned int flags);
FOLIAGE_API int64_t foliage_file_writev(struct foliage_file *file, const struct iovec *iov, int nr,
					uint64_t offset, unsigned int flags);

/* Read without copying: what is in the file from `offset` to the end of its page, or of the file.
 * Valid until unpin; like a mapping, it shows writes that happen meanwhile. Do not write there.
 * After the file was truncated the pinned bytes are unspecified, but still memory. 0; -ENODATA: at
 * or after the end; otherwise as read. At most 2048 pins of one page at a time, and pinned pages
 * are room that nobody else has. `flags`: enum foliage_rw, and FOLIAGE_FETCH_LOCAL if this thread
 * unpins it soon, which costs half. */
struct foliage_pin {
	const void *data;
	size_t bytes;
	struct foliage_page *page;
};
FOLIAGE_API int foliage_file_pin(struct foliage_file *file, uint64_t offset, unsigned int flags,
				 struct foliage_pin *pin);
FOLIAGE_API void foliage_file_unpin(struct foliage_file *file, struct foliage_pin *pin);

/* ---- make it so on disk ---- */

/* Hand everything dirty to the system, no more: afterwards the file's descriptor shows what the
 * cache holds. 0 or the error of this attempt (which fsync will report, too). */
FOLIAGE_API int foliage_file_flush(struct foliage_file *file);
/* flush, then fsync() or fdatasync(). The promise is above. */
FOLIAGE_API int foliage_file_fsync(struct foliage_file *file);
FOLIAGE_API int foliage_file_fdatasync(struct foliage_file *file);

/* Change the size, at once on disk as well. -EBADF: not open for writing; what ftruncate() says:
 * then nothing has changed. */
FOLIAGE_API int foliage_file_truncate(struct foliage_file *file, uint64_t size);
/* fallocate() with any mode the file's system knows; the cache follows. */
FOLIAGE_API int foliage_file_allocate(struct foliage_file *file, int mode, uint64_t offset,
				      uint64_t bytes);
/* Write back, then forget everything cached of the range (all pages that it touches) and look at
 * the size again: somebody else is about to change, or has changed, the file. A change between the
 * two is not noticed. bytes = 0: to the end. */
FOLIAGE_API int foliage_file_invalidate(struct foliage_file *file, uint64_t offset, uint64_t bytes);

/* ---- advice ---- */

enum foliage_advice {
	FOLIAGE_ADVICE_NORMAL,     /* read ahead when reads are sequential */
	FOLIAGE_ADVICE_SEQUENTIAL, /* twice as far, from the first read on */
	FOLIAGE_ADVICE_RANDOM,     /* never */
	FOLIAGE_ADVICE_NOREUSE,    /* accesses of this handle do not make pages hotter */
	FOLIAGE_ADVICE_WILLNEED, /* read the range now, in the background where io_uring is used */
	FOLIAGE_ADVICE_DONTNEED, /* drop the range's whole pages that are clean; start writing the
				    * dirty ones */
};
/* NORMAL to NOREUSE: for this handle from now on (range ignored; NOREUSE until the next of the
 * others). bytes = 0: to the end of the file. WILLNEED reads at most half the budget. 0, -EINVAL,
 * or an error of reading (only without io_uring). */
FOLIAGE_API int foliage_file_advise(struct foliage_file *file, enum foliage_advice advice,
				    uint64_t offset, uint64_t bytes);

/* ---- asynchronous ---- */

enum foliage_aio_op {
	FOLIAGE_AIO_READ,
	FOLIAGE_AIO_WRITE,
	FOLIAGE_AIO_PIN,   /* offset; the result is in `pin`, and 0 or an error in `result` */
	FOLIAGE_AIO_FSYNC, /* done by the write-back thread */
	FOLIAGE_AIO_FDATASYNC,
};

/* A request. It is yours, and must stay where it is with its buffers until it is complete. */
struct foliage_aio {
	struct foliage_file *file;
	enum foliage_aio_op op;
	unsigned int flags; /* hints of enum foliage_rw; not NOWAIT */
	void *buffer;       /* read and write: */
	size_t bytes;
	uint64_t offset; /* FOLIAGE_APPEND for writes: -EINVAL; use foliage_file_write() */
	/* Called in the thread that polls, when the request is complete; it may submit, this
	 * request again, too. NULL: foliage_cache_poll() returns the request instead. */
	void (*done)(struct foliage_aio *aio);
	void *ctx; /* yours */

	int64_t result; /* what the synchronous call would return */
	struct foliage_pin pin;

	void *reserved[8]; /* the cache's */
};

/* Start `nr` requests. What is in memory is complete at once, but also only delivered by poll.
 * Misses go to the device together. Requests complete in any order; they are not ordered among
 * each other. Returns how many were accepted, all of them but after -EINVAL (a bad request) or
 * -ECHILD, which are returned when the first is refused. */
FOLIAGE_API int foliage_cache_submit(struct foliage_cache *cache, struct foliage_aio *const *aio,
				     unsigned int nr);
/* Deliver complete requests: call `done`, or put those without into done[] (up to `max`, NULL if
 * 0). Waits up to `timeout_ms` (0: not at all; -1: as long as any is unfinished) for at least one.
 * Returns how many were delivered, both kinds; 0 when there were none. From several threads: each
 * request is delivered once. */
FOLIAGE_API int foliage_cache_poll(struct foliage_cache *cache, struct foliage_aio **done,
				   unsigned int max, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
