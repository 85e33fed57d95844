/* SPDX-License-Identifier: MIT
 *
 * Inside of the simulated machine: what its files share. See machine.h for what it does.
 *
 *   sched.c   events, tasks as fibers, CPUs
 *   lock.c    lruvec locks in virtual time
 *   frames.c  physical memory: allocation, charging, kswapd, direct reclaim, OOM
 *   device.c  block devices
 *   swap.c    swap slots on zram or a disk
 *   files.c   page cache: read, write, readahead
 *   writeback.c  dirty pages, flusher, throttled writers
 *   space.c   address spaces: mappings, unmapping, fork, advice
 *   fault.c   page faults
 *   world.c   the engine's backend
 *   stats.c   counters, texts, the validity walker
 */
#ifndef FOLIAGE_MACHINE_SIM_H
#define FOLIAGE_MACHINE_SIM_H

#include <ucontext.h>

#include "machine/machine.h"
#include "mm/engine_policy.h"

enum {
	NO_FRAME = -1,
	NO_SLOT = -1,
	NO_MAP = -1,
	MMS_MAX = 65536,
	ENTRIES = 512,
	STACK_BYTES = 128 * 1024,
};

/* ---- events ---- */
struct event {
	uint64_t time, seq;
	void (*call)(struct machine *m, void *arg);
	void *arg;
	bool owned; /* arg is malloc'ed, and freed by the call */
};

/* ---- tasks ---- */
enum task_state { TASK_READY, TASK_RUNNING, TASK_BLOCKED, TASK_DEAD };

struct task {
	ucontext_t context;
	void *stack;
	struct machine *m;
	task_fn fn;
	void *arg;
	enum task_state state;
	uint64_t now;     /* its own clock, ahead of the machine's by at most a quantum */
	uint64_t horizon; /* where it must let others run */
	uint64_t slice_end;
	uint64_t wake; /* blocked: wakes by itself then; UINT64_MAX: somebody must */
	int cpu;       /* -1: none */
	bool woken;
	bool in_lru_fault; /* pages it brings in now come by a fault with recency */
	bool pinned;       /* inside the engine: keeps its CPU */
	bool kernel;       /* not a process */
	bool own_cpu; /* waits for no CPU: reclaim, which keeps its own, may wait for this task */
	struct space *space;
	uint32_t memcg;
	struct task *parent, *next_ready, *next_all;
	uint32_t children;
	bool waits_children;
};

/* ---- memory ---- */
enum frame_kind { FRAME_FREE, FRAME_FILE, FRAME_ANON, FRAME_KERNEL };

struct frame {
	uint64_t ready;       /* its read ends then */
	uint32_t file, index; /* of a file page */
	int32_t slot;         /* swap slot that holds the same content, NO_SLOT */
	int32_t next;         /* free list */
	uint32_t mm, page;    /* first mapping, if mapcount */
	int32_t maps;         /* further ones: nodes */
	uint32_t mapcount;
	uint32_t memcg;
	uint8_t kind;
	bool dirty, ra_mark, writeback, reading;
	bool doomed; /* freed when its write-back ends */
};

struct map_node {
	uint32_t mm, page;
	int32_t next;
};

struct swap_slot {
	uint64_t shadow;
	uint32_t refs; /* page-table entries that name it, plus one for a frame that does */
	int32_t frame; /* holds the same content, NO_FRAME */
	int32_t next;  /* free list */
	uint32_t memcg;
	bool stored; /* in compressed memory */
};

/* A slot of a file's cache: 0 empty; bit 0 set: a shadow; else (frame + 1) << 1. */
struct file {
	uint64_t *slots;
	uint32_t pages, room;
	uint32_t mmap_miss;
	uint32_t nr_cached, nr_dirty;
	bool used;
};

struct open_file {
	int file;
	enum file_advice advice;
	uint32_t ra_start, ra_size, ra_async;
	int64_t last; /* page where the previous read ended, -1 */
};

/* Not present: PTE_NONE, or the swap slot as PTE_SWAP - slot. */
enum { PTE_NONE = -1, PTE_SWAP = -2 };

struct pte_page {
	struct foliage_pte_table pte;
	uint64_t protect
		[ENTRIES /
		 64];  /* a store must fault: shared after fork, or a clean shared file page */
	uint32_t used; /* entries that are not PTE_NONE */
	bool young;
};

struct vma {
	uint64_t start, end; /* pages */
	int32_t file;        /* -1: anonymous */
	uint32_t first;      /* page of the file */
	uint32_t flags;      /* FOLIAGE_VMA_* */
	bool shared_write;
	uint32_t ra_start, ra_size, ra_async;
};

struct space {
	uint32_t mm, memcg, users;
	struct vma *vmas;
	uint32_t nr_vmas, max_vmas;
	struct pte_page **tables;
	uint32_t nr_tables;
	uint64_t next_page; /* where the next mapping goes */
	uint64_t rss;
};

struct device {
	struct machine_device model;
	uint64_t *busy; /* of each queue slot */
	uint64_t bus;
	uint64_t read, written; /* pages */
};

struct io { /* pages that a device reads or writes */
	uint64_t done;
	bool async; /* nobody waits for it */
	uint32_t nr;
	int32_t frames[32];
};

struct machine {
	struct machine_costs costs;
	struct machine_options options;
	struct foliage_engine *engine;
	uint64_t now;

	struct event *events;
	uint32_t nr_events, max_events;
	uint64_t event_seq;

	ucontext_t scheduler;
	struct task *current, *all, *ready_head, *ready_tail;
	uint32_t live; /* tasks that are not the kernel's own */
	struct foliage_cpu *cpus;
	struct task **on_cpu;
	struct task *dead;
	bool (*stopped)(void);
	uint32_t polls;
	bool stop;
	struct lock_clock **locks; /* of each lruvec; NULL: never taken */
	uint64_t until;
	bool failed;
	char oom[256];

	struct frame *frames;
	int32_t free_head, kernel_head;
	uint32_t nr_free, wm_min, wm_low, wm_high;
	uint32_t zram_frames; /* of memory, taken by compressed pages */
	struct task *kswapd, *flusher;
	struct map_node *nodes;
	int32_t free_node;
	uint32_t nr_nodes, max_nodes;

	struct swap_slot *slots;
	int32_t free_slot;
	uint32_t nr_slots, slots_free;
	uint64_t swapcache, zram_stored;
	struct device disk, swap_disk;

	struct file *files;
	uint32_t nr_files, max_files;
	struct dirty *dirty_ring; /* oldest first */
	bool flush_asked;
	uint32_t file_hint;
	uint32_t dirty_head, dirty_nr, dirty_max;
	uint32_t nr_dirty, nr_writeback;

	struct space **spaces; /* by mm number */
	uint32_t nr_spaces;

	uint64_t stat[MACHINE_NR_STATS];
	int64_t (*memcg_stat)[MEMCG_NR_STATS];
};

/* -- sched.c -- */
int sched_init(struct machine *m);
void sched_fini(struct machine *m);
int event_at(struct machine *m, uint64_t time, void (*call)(struct machine *m, void *arg),
	     void *arg, bool owned);
/* The clock that charges go to: the running task's. */
void charge(struct machine *m, uint64_t ns);
void charge_user(struct task *t, uint64_t ns);
/* Let others run if this task is far ahead of them. */
void task_checkpoint(struct task *t);
/* Give the CPU up until `time`, or until woken. */
void task_block(struct task *t, uint64_t time);
void task_wake(struct task *t, uint64_t time);
/* It wakes by itself then, unless it does before or somebody wakes it. */
void task_wake_at(struct task *t, uint64_t time);
void task_die(struct task *t) __attribute__((noreturn));
struct task *task_new(struct machine *m, uint32_t memcg, task_fn fn, void *arg);
struct foliage_cpu *this_cpu(struct machine *m);
uint64_t this_now(const struct machine *m);
/* Anything failed: this task stops here. */
void check_failed(struct machine *m);
void machine_fail(struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -- lock.c -- */
int locks_init(struct machine *m);
void locks_fini(struct machine *m);
void lock_clock_take(struct machine *m, uint32_t lruvec);
void lock_clock_drop(struct machine *m, uint32_t lruvec, uint32_t nr);

/* -- frames.c -- */
int frames_init(struct machine *m);
void frames_fini(struct machine *m);
/* A free frame, charged to nobody yet, after reclaim if need be; NO_FRAME for no_io only. */
int32_t frame_alloc(struct machine *m, uint32_t memcg, bool no_io);
void frame_free(struct machine *m, int32_t frame);
void frames_update(struct machine *m);
void wake_kswapd(struct machine *m);
bool frame_map(struct machine *m, int32_t frame, struct space *s, uint32_t page);
void frame_unmap_one(struct machine *m, int32_t frame, uint32_t mm, uint32_t page);
void memcg_count(struct machine *m, uint32_t memcg, enum machine_memcg_stat what, int64_t n);

/* -- device.c -- */
int device_init(struct device *d, const struct machine_device *model);
void device_fini(struct device *d);
/* When a request of `nr` pages, submitted now, is done. */
uint64_t device_submit(struct machine *m, struct device *d, uint32_t nr, bool write);
/* When its queue has room again. */
uint64_t device_free_at(const struct device *d);
void wait_io(struct task *t, uint64_t done, bool memory_stall);

/* -- swap.c -- */
int swap_init(struct machine *m);
void swap_fini(struct machine *m);
int32_t swap_slot_alloc(struct machine *m, uint32_t memcg);
void swap_slot_put(struct machine *m, int32_t slot);
enum foliage_pageout swap_out(struct machine *m, int32_t frame);
/* The frame of a slot, read in if need be. */
int32_t swap_in(struct task *t, int32_t slot, bool *major);
/* The content changes: the copy in swap is worthless. */
void swap_forget(struct machine *m, int32_t frame);

/* -- files.c -- */
int files_init(struct machine *m);
void files_fini(struct machine *m);
int32_t file_frame(const struct file *f, uint32_t index);
/* Insert the missing pages of first..first+nr-1 and start reading them; `mark`: page that gets the
 * readahead mark, UINT32_MAX: none. `async`: the caller will not wait for the first of them. */
void file_read_pages(struct task *t, uint32_t file, uint32_t first, uint32_t nr, uint32_t mark,
		     bool async);
void file_wait(struct task *t, int32_t frame);
void file_evicted(struct machine *m, int32_t frame, uint64_t shadow);
void io_done(struct machine *m, void *io);
void drop_cached(struct machine *m, int32_t frame);

/* -- writeback.c -- */
void file_dirty(struct machine *m, int32_t frame);
void file_clean(struct machine *m, int32_t frame);
void balance_dirty(struct task *t);
void flusher_main(struct task *t, void *arg);
void wake_flusher(struct machine *m);

/* -- space.c -- */
struct space *space_new(struct machine *m, uint32_t memcg);
void space_put(struct machine *m, struct space *s);
/* Its memory only; the machine goes away. */
void space_free(struct machine *m, struct space *s);
/* A page whose mappings went away during its write-back. */
void anon_written(struct machine *m, int32_t frame);
struct vma *space_find(struct space *s, uint64_t page);
struct pte_page *space_table(struct space *s, uint64_t page, bool make);
void space_set(struct pte_page *table, uint64_t page, int32_t entry, bool young, bool dirty);
/* Take one entry away as munmap does: accessed and dirty bits are told to the folio. */
void space_zap(struct machine *m, struct space *s, const struct vma *v, uint64_t page);

/* -- fault.c -- */
void fault(struct task *t, uint64_t page, enum task_access access);

/* -- world.c -- */
extern const struct foliage_backend world_backend;

static inline bool map_test(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void map_set(uint64_t *map, uint32_t i)
{
	map[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void map_clear(uint64_t *map, uint32_t i)
{
	map[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

#endif
