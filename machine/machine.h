/* SPDX-License-Identifier: MIT
 *
 * The simulated computer: tasks in virtual time on a few CPUs, files with a page cache and
 * readahead, address spaces with page tables, swap, devices, memory groups, kswapd. Reclaim is the
 * engine's; the machine is its world.
 *
 * A task is an ordinary C function on a stack of its own. Inside it, every task_*() call takes
 * virtual time and may let other tasks run. Everything is deterministic: same options, same seed,
 * same result, to the nanosecond. A machine belongs to one thread; many machines may run on many.
 *
 * Addresses are page numbers. Sizes are pages of 4 KiB.
 */
#ifndef FOLIAGE_MACHINE_MACHINE_H
#define FOLIAGE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "foliage/reclaim.h"
#include "machine/costs.h"

struct machine;
struct task;
struct open_file;

enum machine_swap { MACHINE_NO_SWAP, MACHINE_ZRAM, MACHINE_DISK_SWAP };

struct machine_options {
	const char *policy;  /* NULL: fg */
	uint32_t memory;     /* pages of RAM */
	uint32_t cpus;       /* 0: 1 */
	uint32_t max_memcgs; /* 0: 64 */
	double scale;        /* modelled size / this size; 0: 1 */
	uint64_t seed;
	enum machine_swap swap;
	uint32_t swap_pages;
	double zram_ratio;     /* pages stored in one; 0: 3 */
	uint32_t caps;         /* FOLIAGE_LRU_GEN_*; 0: all. Core only: no page-table walker */
	uint32_t fault_around; /* pages; 0: 16 */
	bool born_old;         /* fault-around entries start old (arm64), else young (x86) */
	uint32_t readahead;    /* window in pages; 0: 32 */
	bool kernel_stats;     /* the classic LRU decides on statistics flushed every two seconds */
	const struct machine_costs *costs;             /* NULL: machine_costs_default */
	const struct machine_device *disk, *swap_disk; /* NULL: machine_nvme */
};

int machine_create(const struct machine_options *options, struct machine **machine,
		   struct err *err);
void machine_destroy(struct machine *m);

/* A group below `parent` (0: the root); its number or a negative errno. `max`: FOLIAGE_UNLIMITED or pages. */
int machine_memcg(struct machine *m, uint32_t parent, const char *name, uint64_t max);
int machine_memcg_set(struct machine *m, uint32_t memcg, enum foliage_limit what, uint64_t value);
/* A file of so many pages on the disk; its number or a negative errno. */
int machine_file(struct machine *m, uint32_t pages);

typedef void (*task_fn)(struct task *t, void *arg);
/* A new process; `arg` must live as long as it runs. NULL: no memory. */
struct task *machine_spawn(struct machine *m, uint32_t memcg, task_fn fn, void *arg);
/* Run until every task has ended or `until` ns is reached (0: no limit). -ENOMEM: simulated OOM, which
 * ends the run, see machine_oom(); -EDEADLK: every task waits for another; -EINTR: `stopped` (may be
 * NULL) said so. */
int machine_run(struct machine *m, uint64_t until, bool (*stopped)(void));
/* After the last task has ended: let write-back and everything else under way end too. */
void machine_settle(struct machine *m);
/* Why the last run ended with -ENOMEM; "" when it did not. */
const char *machine_oom(const struct machine *m);
uint64_t machine_now(const struct machine *m); /* ns */
/* The task whose turn it is, kernel tasks too; NULL between two. */
const struct task *machine_running(const struct machine *m);

/* ---- inside a task ---- */
struct machine *task_machine(struct task *t);
uint64_t task_now(const struct task *t);
void task_compute(struct task *t, uint64_t ns);
void task_sleep(struct task *t, uint64_t ns);

/* Files. The open file carries the readahead state; one task uses it at a time. NULL: no memory. */
enum file_advice { FILE_NORMAL, FILE_RANDOM, FILE_SEQUENTIAL, FILE_NOREUSE };
struct open_file *task_open(struct task *t, int file);
void task_close(struct task *t, struct open_file *f);
void task_fadvise(struct open_file *f, enum file_advice advice);
void task_fadvise_dontneed(struct task *t, struct open_file *f, uint32_t first, uint32_t nr);
/* One call each; beyond the end nothing is read. A write past the end makes the file longer. */
void task_read(struct task *t, struct open_file *f, uint32_t first, uint32_t nr);
void task_write(struct task *t, struct open_file *f, uint32_t first, uint32_t nr);
void task_fsync(struct task *t, struct open_file *f);
/* Drop the cached pages and shadows, as unlink does; the number may be used again. */
void task_truncate(struct task *t, int file);

/* Memory. */
enum map_flags {
	MAPPING_EXEC = 1 << 0,
	MAPPING_SHARED_WRITE = 1 << 1, /* stores reach the file; else they copy */
	MAPPING_MLOCK = 1 << 2,
};
/* Returns the first page number, 0 when there is no room. */
uint64_t task_map_file(struct task *t, int file, uint32_t first, uint32_t nr, unsigned int flags);
uint64_t task_map_anon(struct task *t, uint32_t nr, unsigned int flags);
void task_unmap(struct task *t, uint64_t addr, uint32_t nr);
enum task_access { TASK_LOAD, TASK_STORE, TASK_EXEC };
void task_touch(struct task *t, uint64_t addr, enum task_access access);
enum map_advice {
	ADVICE_NORMAL,
	ADVICE_RANDOM,
	ADVICE_SEQUENTIAL,
	ADVICE_COLD,
	ADVICE_PAGEOUT,
	ADVICE_DONTNEED
};
void task_madvise(struct task *t, uint64_t addr, uint32_t nr, enum map_advice advice);

/* A child with a copy of the address space, copied page by page as either side writes. */
struct task *task_fork(struct task *t, task_fn fn, void *arg);
/* A child in an empty address space: what vfork and exec, or posix_spawn, make. */
struct task *task_spawn(struct task *t, task_fn fn, void *arg);
/* Another task in the same address space, which must not be mapped, unmapped or forked while several
 * tasks share it; touching is safe. Its creator need not outlive it. NULL: no memory. */
struct task *task_thread(struct task *t, task_fn fn, void *arg);
/* Start anew in an empty address space, of its own. */
void task_exec(struct task *t);
/* Until all children have ended. */
void task_wait_children(struct task *t);
/* Does not return. A task function that returns does the same. */
void task_exit(struct task *t) __attribute__((noreturn));

/* Kernel memory for `nr` pages in this task's name, never to be reclaimed. no_io: neither swap nor wait
 * for I/O, and a failure is -ENOMEM, not a simulated OOM. */
int task_kalloc(struct task *t, uint32_t nr, bool no_io);
void task_kfree(struct task *t, uint32_t nr);
/* Commands of the lru_gen interface, as foliage_lru_gen_write() takes them, in this task's time. */
int task_lru_gen_write(struct task *t, const char *commands);

/* ---- statistics ---- */
/* Names of vmstat and memory.stat, of the whole machine. */
enum machine_stat {
	MACHINE_PGPGIN, /* KiB */
	MACHINE_PGPGOUT,
	MACHINE_PSWPIN, /* pages */
	MACHINE_PSWPOUT,
	MACHINE_PGFAULT,
	MACHINE_PGMAJFAULT,
	MACHINE_ALLOCSTALL,    /* direct reclaims */
	MACHINE_LOCK_SECTIONS, /* of lruvec locks: how often taken */
	MACHINE_LOCK_HELD_NS,  /* how long held */
	MACHINE_LOCK_WAIT_NS,  /* how long waited for */
	MACHINE_STALL_NS,      /* PSI-like: tasks kept from work by memory */
	MACHINE_SYS_NS,        /* CPU time in the kernel */
	MACHINE_USER_NS,
	MACHINE_IO_WAIT_NS,
	MACHINE_DISK_READ, /* what the devices served: pages */
	MACHINE_DISK_WRITTEN,
	MACHINE_SWAP_READ,
	MACHINE_SWAP_WRITTEN,
	MACHINE_NR_STATS,
};
uint64_t machine_stat(const struct machine *m, enum machine_stat what);
/* Of one group, with its descendants. */
enum machine_memcg_stat {
	MEMCG_ANON,
	MEMCG_FILE,
	MEMCG_KERNEL,
	MEMCG_FILE_MAPPED,
	MEMCG_FILE_DIRTY,
	MEMCG_PGFAULT,
	MEMCG_PGMAJFAULT,
	MEMCG_NR_STATS,
};
int64_t machine_memcg_stat(const struct machine *m, uint32_t memcg, enum machine_memcg_stat what);
/* A statistic of the engine, with the descendants of the group: enum stat_item of mm/types.h. */
int64_t machine_engine_stat(const struct machine *m, uint32_t memcg, int item);
struct foliage_engine *machine_engine(struct machine *m);
/* "vmstat", or a text of foliage_text(); malloc'ed. */
int machine_text(struct machine *m, const char *what, char **text);

/* O(pages) check of everything that must hold between two events: 0, or -EUCLEAN and why. */
int machine_is_valid(struct machine *m, struct err *err);

#endif
