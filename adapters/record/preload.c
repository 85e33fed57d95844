/* SPDX-License-Identifier: MIT
 *
 * libfoliage-record.so, preloaded by `foliage record`: the calls that move data between files and
 * memory, each as the C library has it, and behind it one event in the recorder's ring.
 *
 * What a descriptor stands for is asked of the kernel at every call (statx, and lseek where the
 * call uses the file's position). A table of descriptors would save these, and would be wrong after
 * each close that does not come through here: those of stdio, of raw system calls, of descriptors
 * that were passed on.
 *
 * Everything here may run in signal handlers and between fork and exec: no locks, no allocation.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "adapters/record/ring.h"
#include "trace/trace.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	SEEN = 8192,       /* files of which the recorder knows the name, or that are passed over */
	PATIENCE = 20000,  /* waits of 100 us for room in the ring before an event is given up */
	WONDER = 1000,     /* waits before asking whether there still is a recorder */
	DIRECT_ALIGN = 512 /* O_DIRECT needs at least so much; anything else goes through pages */
};

static struct {
	struct ring *ring; /* NULL: nobody records */
	uint32_t pid;
	/* Keyed by their hash: 0 free, bit 0: passed over. Losing an entry costs an announcement. */
	_Atomic uint64_t seen[SEEN];
} recorder;

/* ---- the ring ---- */

static bool reserve(struct ring *ring, uint32_t slots, uint64_t *position)
{
	const struct timespec moment = {.tv_nsec = 100000};
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	for (int waits = 0; !atomic_load_explicit(&ring->stopped, memory_order_relaxed);) {
		uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

		if (head + slots - tail > ring->slots) {
			if (waits++ == PATIENCE)
				break;
			if (waits % WONDER == 0 && kill(ring->recorder, 0) && errno == ESRCH)
				atomic_store(&ring->stopped, 1);
			nanosleep(&moment, NULL);
			head = atomic_load_explicit(&ring->head, memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(&ring->head, &head, head + slots,
							  memory_order_relaxed,
							  memory_order_relaxed)) {
			*position = head;
			return true;
		}
	}
	atomic_fetch_add(&ring->lost, 1);
	return false;
}

static void put(enum ring_kind kind, enum trace_op op, const struct ring_key *key, uint64_t first,
		uint64_t last, const char *text, size_t bytes)
{
	struct ring *ring = recorder.ring;
	struct ring_slot *slot;
	uint64_t at;

	if (!reserve(ring, ring_slots_of((uint32_t)bytes), &at))
		return;
	for (size_t done = 0, i = 1; done < bytes; i++) {
		size_t n = bytes - done < RING_SLOT_TEXT ? bytes - done : RING_SLOT_TEXT;

		memcpy(ring_slot(ring, at + i)->text, text + done, n);
		done += n;
	}
	slot = ring_slot(ring, at);
	slot->kind = (uint8_t)kind;
	slot->op = (uint8_t)op;
	slot->bytes = (uint16_t)bytes;
	slot->pid = recorder.pid;
	slot->key = *key;
	slot->first = first;
	slot->last = last;
	atomic_store_explicit(&slot->turn, at + 1, memory_order_release);
}

/* ---- processes ---- */

static void announce_process(void)
{
	const struct ring_key none = {0};
	char comm[17] = "";

	recorder.pid = (uint32_t)getpid();
	prctl(PR_GET_NAME, comm);
	put(RING_PROCESS, TRACE_READ, &none, 0, 0, comm, strlen(comm));
}

static void after_fork(void)
{
	if (recorder.ring)
		announce_process();
}

static struct ring *map_ring(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	struct ring *ring = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(*ring))
		ring = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ring == MAP_FAILED)
		return NULL;
	if (ring->magic == RING_MAGIC && ring->version == RING_VERSION)
		return ring;
	munmap(ring, (size_t)st.st_size);
	return NULL;
}

static __attribute__((constructor)) void start(void)
{
	const char *path = getenv(RING_VARIABLE);
	int before = errno;

	recorder.ring = path ? map_ring(path) : NULL;
	if (recorder.ring) {
		atomic_fetch_add(&recorder.ring->programs, 1);
		announce_process();
		pthread_atfork(NULL, NULL, after_fork);
	}
	errno = before;
}

/* ---- files ---- */

static uint64_t hash_key(const struct ring_key *key)
{
	uint64_t h = key->inode * UINT64_C(0x9E3779B97F4A7C15) ^
		     ((uint64_t)key->device << 32 | key->birth) * UINT64_C(0xC2B2AE3D27D4EB4F);

	h ^= h >> 29;
	h *= UINT64_C(0xBF58476D1CE4E5B9);
	h ^= h >> 32;
	return (h | 2) & ~UINT64_C(1);
}

/* The kernel's own recorder does not see these either, nor do they have a disk behind them. */
static bool passed_over(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == PROC_SUPER_MAGIC ||
	       fs.f_type == SYSFS_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC ||
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

static void announce_file(int fd, const struct ring_key *key)
{
	static const char deleted[] = " (deleted)";
	char link[64], path[RING_NAME_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n > (ssize_t)sizeof(deleted) &&
	    !memcmp(path + n - sizeof(deleted) + 1, deleted, sizeof(deleted) - 1))
		n -= (ssize_t)sizeof(deleted) - 1;
	put(RING_FILE, TRACE_READ, key, 0, 0, path, n > 0 ? (size_t)n : 0);
}

/* Whether accesses to the file are to be recorded; the recorder knows its name then. */
static bool know_file(int fd, const struct ring_key *key)
{
	uint64_t hash = hash_key(key);
	_Atomic uint64_t *seen = &recorder.seen[hash % (2 * SEEN) / 2];
	uint64_t there = atomic_load_explicit(seen, memory_order_relaxed);

	if ((there & ~UINT64_C(1)) != hash) {
		there = hash | passed_over(fd);
		if (!(there & 1))
			announce_file(fd, key);
		atomic_store_explicit(seen, there, memory_order_relaxed);
	}
	return !(there & 1);
}

static bool is_direct(int fd, uint64_t place)
{
	return !(place % DIRECT_ALIGN) && (fcntl(fd, F_GETFL) & O_DIRECT);
}

/* `bytes` have been moved at `offset`, -1: in front of the file's position. */
static void note_bytes(int fd, enum trace_op op, uint64_t bytes, off_t offset)
{
	struct statx stx;
	struct ring_key key;
	uint64_t first;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_SIZE | STATX_BTIME, &stx))
		return;
	if ((!S_ISREG(stx.stx_mode) && !S_ISBLK(stx.stx_mode)) ||
	    (S_ISREG(stx.stx_mode) && stx.stx_size < recorder.ring->min_size))
		return;
	if (offset < 0)
		offset = lseek(fd, 0, SEEK_CUR) - (off_t)bytes;
	first = (uint64_t)offset;
	if (offset < 0 || is_direct(fd, first | bytes))
		return;
	key = (struct ring_key){
		.inode = stx.stx_ino,
		.device = stx.stx_dev_major << 20 | stx.stx_dev_minor,
		.birth = (uint32_t)stx.stx_btime.tv_sec * 1000003u ^ stx.stx_btime.tv_nsec,
	};
	if (know_file(fd, &key))
		put(RING_ACCESS, op, &key, first >> TRACE_PAGE_SHIFT,
		    (first + bytes - 1) >> TRACE_PAGE_SHIFT, NULL, 0);
}

static ssize_t note(int fd, enum trace_op op, ssize_t result, off_t offset)
{
	int before = errno;

	if (result <= 0 || !recorder.ring || (op == TRACE_WRITE && recorder.ring->no_writes))
		return result;
	note_bytes(fd, op, (uint64_t)result, offset);
	errno = before;
	return result;
}

/* ---- the calls ---- */

/* The next library's function of this name. The table is filled before there are threads, or by
 * several of them with the same addresses. */
static void *next(void **function, const char *name)
{
	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
	return *function;
}

typedef ssize_t (*plain_call)(int, const void *, size_t);
typedef ssize_t (*placed_call)(int, const void *, size_t, off_t);
typedef ssize_t (*checked_call)(int, const void *, size_t, size_t);
typedef ssize_t (*checked_placed_call)(int, const void *, size_t, off_t, size_t);
typedef ssize_t (*vector_call)(int, const struct iovec *, int);
typedef ssize_t (*placed_vector_call)(int, const struct iovec *, int, off_t);
typedef ssize_t (*flagged_vector_call)(int, const struct iovec *, int, off_t, int);
typedef ssize_t (*sendfile_call)(int, int, off_t *, size_t);
typedef ssize_t (*copy_call)(int, off64_t *, int, off64_t *, size_t, unsigned int);

EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
	static void *call;

	return note(fd, TRACE_READ, ((plain_call)next(&call, "read"))(fd, data, bytes), -1);
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
	static void *call;

	return note(fd, TRACE_WRITE, ((plain_call)next(&call, "write"))(fd, data, bytes), -1);
}

EXPORT ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
	static void *call;

	return note(fd, TRACE_READ, ((placed_call)next(&call, "pread"))(fd, data, bytes, at), at);
}

EXPORT ssize_t pread64(int fd, void *data, size_t bytes, off64_t at)
{
	static void *call;

	return note(fd, TRACE_READ, ((placed_call)next(&call, "pread64"))(fd, data, bytes, at), at);
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	static void *call;

	return note(fd, TRACE_WRITE, ((placed_call)next(&call, "pwrite"))(fd, data, bytes, at), at);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at)
{
	static void *call;

	return note(fd, TRACE_WRITE, ((placed_call)next(&call, "pwrite64"))(fd, data, bytes, at),
		    at);
}

ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *data, size_t bytes, off64_t at, size_t room);

EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room)
{
	static void *call;

	return note(fd, TRACE_READ,
		    ((checked_call)next(&call, "__read_chk"))(fd, data, bytes, room), -1);
}

EXPORT ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t at, size_t room)
{
	static void *call;
	checked_placed_call f = (checked_placed_call)next(&call, "__pread_chk");

	return note(fd, TRACE_READ, f(fd, data, bytes, at, room), at);
}

EXPORT ssize_t __pread64_chk(int fd, void *data, size_t bytes, off64_t at, size_t room)
{
	static void *call;
	checked_placed_call f = (checked_placed_call)next(&call, "__pread64_chk");

	return note(fd, TRACE_READ, f(fd, data, bytes, at, room), at);
}

EXPORT ssize_t readv(int fd, const struct iovec *vector, int count)
{
	static void *call;

	return note(fd, TRACE_READ, ((vector_call)next(&call, "readv"))(fd, vector, count), -1);
}

EXPORT ssize_t writev(int fd, const struct iovec *vector, int count)
{
	static void *call;

	return note(fd, TRACE_WRITE, ((vector_call)next(&call, "writev"))(fd, vector, count), -1);
}

EXPORT ssize_t preadv(int fd, const struct iovec *vector, int count, off_t at)
{
	static void *call;
	placed_vector_call f = (placed_vector_call)next(&call, "preadv");

	return note(fd, TRACE_READ, f(fd, vector, count, at), at);
}

EXPORT ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t at)
{
	static void *call;
	placed_vector_call f = (placed_vector_call)next(&call, "preadv64");

	return note(fd, TRACE_READ, f(fd, vector, count, at), at);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
	static void *call;
	placed_vector_call f = (placed_vector_call)next(&call, "pwritev");

	return note(fd, TRACE_WRITE, f(fd, vector, count, at), at);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t at)
{
	static void *call;
	placed_vector_call f = (placed_vector_call)next(&call, "pwritev64");

	return note(fd, TRACE_WRITE, f(fd, vector, count, at), at);
}

EXPORT ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t at, int flags)
{
	static void *call;
	flagged_vector_call f = (flagged_vector_call)next(&call, "preadv2");

	return note(fd, TRACE_READ, f(fd, vector, count, at, flags), at);
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *vector, int count, off64_t at, int flags)
{
	static void *call;
	flagged_vector_call f = (flagged_vector_call)next(&call, "preadv64v2");

	return note(fd, TRACE_READ, f(fd, vector, count, at, flags), at);
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *vector, int count, off_t at, int flags)
{
	static void *call;
	flagged_vector_call f = (flagged_vector_call)next(&call, "pwritev2");

	return note(fd, TRACE_WRITE, f(fd, vector, count, at, flags), at);
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *vector, int count, off64_t at, int flags)
{
	static void *call;
	flagged_vector_call f = (flagged_vector_call)next(&call, "pwritev64v2");

	return note(fd, TRACE_WRITE, f(fd, vector, count, at, flags), at);
}

/* An offset that the call has moved on is where the bytes end. */
static void note_moved(int fd, enum trace_op op, ssize_t moved, const off_t *at)
{
	if (moved > 0)
		note(fd, op, moved, at ? *at - moved : -1);
}

EXPORT ssize_t sendfile(int out, int in, off_t *at, size_t bytes)
{
	static void *call;
	ssize_t moved = ((sendfile_call)next(&call, "sendfile"))(out, in, at, bytes);

	note_moved(in, TRACE_READ, moved, at);
	note_moved(out, TRACE_WRITE, moved, NULL);
	return moved;
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *at, size_t bytes)
{
	static void *call;
	ssize_t moved = ((sendfile_call)next(&call, "sendfile64"))(out, in, at, bytes);

	note_moved(in, TRACE_READ, moved, at);
	note_moved(out, TRACE_WRITE, moved, NULL);
	return moved;
}

EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
			       unsigned int flags)
{
	static void *call;
	copy_call f = (copy_call)next(&call, "copy_file_range");
	ssize_t moved = f(in, in_at, out, out_at, bytes, flags);

	note_moved(in, TRACE_READ, moved, in_at);
	note_moved(out, TRACE_WRITE, moved, out_at);
	return moved;
}
