/* SPDX-License-Identifier: MIT
 *
 * Files and address spaces of the machine: readahead windows, write-back, fault-around, copy on
 * write, swap, advice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "machine/sim.h"

struct scene {
	struct machine *m;
	int file;
	uint64_t seen[16];
};

static void run(struct scene *s, const struct machine_options *options, task_fn fn)
{
	struct err err = {""};

	if (machine_create(options, &s->m, &err))
		fail_msg("%s", err.text);
	s->file = machine_file(s->m, 1000);
	machine_spawn(s->m, 0, fn, s);
	if (machine_run(s->m, 0, NULL))
		fail_msg("%s", machine_oom(s->m));
	machine_settle(s->m);
	if (machine_is_valid(s->m, &err))
		fail_msg("%s", err.text);
}

static uint32_t cached(const struct scene *s)
{
	return s->m->files[s->file].nr_cached;
}

/* ---- readahead of read() ---- */

static void sequential(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct open_file *f = task_open(t, s->file);

	task_read(t, f, 0, 1);
	s->seen[0] = cached(s); /* 4, the mark on page 1 */
	task_read(t, f, 1, 1);
	s->seen[1] = cached(s); /* the mark is met: next window 8 (2c of 4) from 4 */
	task_read(t, f, 2, 1);
	s->seen[2] = cached(s);
	for (uint32_t i = 3; i < 5; i++)
		task_read(t, f, i, 1);
	s->seen[3] = cached(s); /* mark at 4: 16 more */
	for (uint32_t i = 5; i < 100; i++)
		task_read(t, f, i, 1);
	s->seen[4] = machine_stat(s->m, MACHINE_DISK_READ);
	task_close(t, f);
}

static void readahead_grows(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096}, sequential);
	assert_int_equal(s.seen[0], 4);
	assert_int_equal(s.seen[1], 12);
	assert_int_equal(s.seen[2], 12);
	assert_int_equal(s.seen[3], 28);
	/* Windows of 32 from page 28 on; page 92 starts the one that ends at 156. */
	assert_int_equal(s.seen[4], 156);
	assert_int_equal(machine_stat(s.m, MACHINE_PGPGIN), 4 * 156);
	machine_destroy(s.m);
}

static void random_reads(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct open_file *f = task_open(t, s->file);

	task_read(t, f, 500, 1);
	s->seen[0] = cached(s); /* nothing around it is cached: only itself */
	task_fadvise(f, FILE_RANDOM);
	task_read(t, f, 0, 1);
	task_read(t, f, 1, 1);
	s->seen[1] = cached(s);
	task_close(t, f);
}

static void random_reads_bring_one(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096}, random_reads);
	assert_int_equal(s.seen[0], 1);
	assert_int_equal(s.seen[1], 3);
	machine_destroy(s.m);
}

/* ---- write-back ---- */

static void writer(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct open_file *f = task_open(t, s->file);
	uint64_t addr;

	task_write(t, f, 0, 10);
	s->seen[0] = machine_stat(s->m, MACHINE_DISK_WRITTEN);
	s->seen[1] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_FILE_DIRTY);
	task_fsync(t, f);
	s->seen[2] = machine_stat(s->m, MACHINE_DISK_WRITTEN);
	s->seen[3] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_FILE_DIRTY);
	task_write(t, f, 0, 1);
	task_sleep(t, UINT64_C(40000000000));
	s->seen[4] = machine_stat(s->m, MACHINE_DISK_WRITTEN);
	/* A store through a shared mapping is noticed, once, and again after it was written. */
	addr = task_map_file(t, s->file, 0, 100, MAPPING_SHARED_WRITE);
	task_touch(t, addr + 5, TASK_STORE);
	task_touch(t, addr + 5, TASK_STORE);
	s->seen[5] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_FILE_DIRTY);
	task_fsync(t, f);
	task_touch(t, addr + 5, TASK_STORE);
	s->seen[6] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_FILE_DIRTY);
	task_close(t, f);
}

static void dirty_pages_are_written_once(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096}, writer);
	assert_int_equal(s.seen[0], 0);
	assert_int_equal(s.seen[1], 10);
	assert_int_equal(s.seen[2], 10);
	assert_int_equal(s.seen[3], 0);
	assert_int_equal(s.seen[4], 11); /* by the flusher, after 30 s */
	assert_int_equal(s.seen[5], 1);
	assert_int_equal(s.seen[6], 1);
	assert_int_equal(machine_stat(s.m, MACHINE_DISK_WRITTEN), 13);
	assert_int_equal(machine_stat(s.m, MACHINE_DISK_READ),
			 0); /* written pages need no reading */
	machine_destroy(s.m);
}

/* ---- faults ---- */

static void fault_neighbours(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct open_file *f = task_open(t, s->file);
	uint64_t addr = task_map_file(t, s->file, 0, 1000, 0);
	struct pte_page *table;

	for (uint32_t i = 32; i < 64; i++)
		task_read(t, f, i, 1);
	task_sleep(t, 10000000);
	s->seen[0] = machine_stat(s->m, MACHINE_PGFAULT);
	task_touch(t, addr + 37, TASK_LOAD);
	table = space_table(t->space, addr + 37, false);
	for (uint32_t i = 0; i < 1000; i++)
		if (table->pte.folio[(addr + i) % ENTRIES] >= 0 &&
		    (addr + i) / ENTRIES == addr / ENTRIES) {
			s->seen[1]++;
			s->seen[2] += map_test(table->pte.young, (uint32_t)((addr + i) % ENTRIES));
		}
	task_touch(t, addr + 47, TASK_LOAD);
	s->seen[3] = machine_stat(s->m, MACHINE_PGFAULT) - s->seen[0];
	s->seen[4] = machine_stat(s->m, MACHINE_PGMAJFAULT);
	task_close(t, f);
}

static void faults_map_around(void **state)
{
	struct scene s = {0};

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096}, fault_neighbours);
	assert_int_equal(s.seen[1], 16);
	assert_int_equal(s.seen[2], 16);
	assert_int_equal(s.seen[3], 1);
	assert_int_equal(s.seen[4], 0);
	machine_destroy(s.m);
	s = (struct scene){0};
	run(&s, &(struct machine_options){.memory = 4096, .born_old = true}, fault_neighbours);
	assert_int_equal(s.seen[1], 16);
	assert_int_equal(s.seen[2], 1);
	machine_destroy(s.m);
	s = (struct scene){0};
	run(&s, &(struct machine_options){.memory = 4096, .fault_around = 1}, fault_neighbours);
	assert_int_equal(s.seen[1], 1);
	assert_int_equal(s.seen[3], 2);
	machine_destroy(s.m);
}

static void scattered_misses(struct task *t, void *arg)
{
	struct scene *s = arg;
	int big = machine_file(s->m, 100000);
	uint64_t addr = task_map_file(t, big, 0, 100000, 0);

	task_touch(t, addr + 50000, TASK_LOAD);
	s->seen[0] = machine_stat(s->m, MACHINE_DISK_READ); /* read-around: 32 */
	for (uint32_t i = 0; i < 99; i++)
		task_touch(t, addr + (uint64_t)i * 100, TASK_LOAD);
	s->seen[1] = machine_stat(s->m, MACHINE_DISK_READ);
	for (uint32_t i = 0; i < 50; i++)
		task_touch(t, addr + 60000 + (uint64_t)i * 100, TASK_LOAD);
	s->seen[2] = machine_stat(s->m, MACHINE_DISK_READ);
	s->seen[3] = machine_stat(s->m, MACHINE_PGMAJFAULT);
}

static void read_around_gives_up(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 8192}, scattered_misses);
	assert_int_equal(s.seen[0], 32);
	/* The first window starts at 0 and reaches 31; each of the others is whole. */
	assert_int_equal(s.seen[1], 100 * 32);
	assert_int_equal(s.seen[2] - s.seen[1], 50);
	assert_int_equal(s.seen[3], 150);
	machine_destroy(s.m);
}

/* ---- fork ---- */

static void child(struct task *t, void *arg)
{
	struct scene *s = arg;

	for (uint32_t i = 0; i < 10; i++)
		task_touch(t, s->seen[0] + i, TASK_STORE);
	s->seen[2] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_ANON);
}

static void parent(struct task *t, void *arg)
{
	struct scene *s = arg;

	s->seen[0] = task_map_anon(t, 100, 0);
	for (uint32_t i = 0; i < 100; i++)
		task_touch(t, s->seen[0] + i, TASK_STORE);
	s->seen[1] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_ANON);
	task_fork(t, child, s);
	task_wait_children(t);
	s->seen[3] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_ANON);
	s->seen[4] = machine_stat(s->m, MACHINE_PGFAULT);
	/* The child is gone: no copy is needed any more, only the fault that finds out. */
	task_touch(t, s->seen[0], TASK_STORE);
	task_touch(t, s->seen[0], TASK_STORE);
	s->seen[5] = machine_stat(s->m, MACHINE_PGFAULT) - s->seen[4];
	s->seen[6] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_ANON);
}

static void fork_copies_on_write(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096, .cpus = 2}, parent);
	assert_int_equal(s.seen[1], 100);
	assert_int_equal(s.seen[2], 110);
	assert_int_equal(s.seen[3], 100);
	assert_int_equal(s.seen[5], 1);
	assert_int_equal(s.seen[6], 100);
	machine_destroy(s.m);
}

/* ---- swap and advice ---- */

/* ---- threads ---- */

enum { SHARED_PAGES = 600, THREADS = 4 };

static void thread(struct task *t, void *arg)
{
	struct scene *s = arg;

	for (uint32_t i = 0; i < SHARED_PAGES; i++)
		task_touch(t, s->seen[0] + i, TASK_STORE);
	s->seen[1]++;
}

static void threaded(struct task *t, void *arg)
{
	struct scene *s = arg;

	s->seen[0] = task_map_anon(t, SHARED_PAGES, 0);
	for (uint32_t i = 0; i < THREADS; i++)
		task_thread(t, thread, s);
	/* The address space outlives its creator. */
}

static void counted(struct task *t, void *arg)
{
	struct scene *s = arg;

	task_spawn(t, threaded, s);
	while (s->seen[1] < THREADS)
		task_sleep(t, 1000);
	task_wait_children(t);
	/* Pages that were being swapped out go when their writes end. */
	task_sleep(t, 50000000);
	s->seen[2] = (uint64_t)machine_memcg_stat(s->m, 0, MEMCG_ANON);
}

/* All of them touch the same pages at the same time: each page exists once, and goes with the last. */
static void threads_share_pages(void **state)
{
	struct scene s = {0};

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096, .cpus = 6}, counted);
	assert_int_equal(s.seen[1], THREADS);
	assert_int_equal(s.seen[2], 0);
	assert_int_equal(machine_stat(s.m, MACHINE_PGFAULT), SHARED_PAGES);
	machine_destroy(s.m);
	s = (struct scene){0};
	/* Under pressure as well. */
	run(&s,
	    &(struct machine_options){
		    .memory = 512, .cpus = 6, .swap = MACHINE_DISK_SWAP, .swap_pages = 2048},
	    counted);
	assert_int_equal(s.seen[2], 0);
	assert_true(machine_stat(s.m, MACHINE_PSWPOUT) > 0);
	machine_destroy(s.m);
}

static void pageout(struct task *t, void *arg)
{
	struct scene *s = arg;
	uint64_t addr = task_map_anon(t, 100, 0);

	for (uint32_t i = 0; i < 100; i++)
		task_touch(t, addr + i, TASK_STORE);
	foliage_cpu_drain(s->m->engine, this_cpu(s->m));
	task_madvise(t, addr, 100, ADVICE_PAGEOUT);
	task_sleep(t, 50000000);
	s->seen[0] = machine_stat(s->m, MACHINE_PSWPOUT);
	task_madvise(t, addr, 100, ADVICE_PAGEOUT);
	for (uint32_t i = 0; i < 30; i++)
		task_touch(t, addr + i, TASK_LOAD);
	s->seen[1] = machine_stat(s->m, MACHINE_PSWPIN);
	s->seen[2] = (uint64_t)machine_engine_stat(s->m, 0, STAT_REFAULT_ANON);
	/* Clean copies of what a disk still has are not written again; compressed ones were given up. */
	foliage_cpu_drain(s->m->engine, this_cpu(s->m));
	task_madvise(t, addr, 100, ADVICE_PAGEOUT);
	task_sleep(t, 50000000);
	s->seen[3] = machine_stat(s->m, MACHINE_PSWPOUT);
}

static void swap_keeps_and_returns(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096, .swap = MACHINE_ZRAM, .swap_pages = 1000},
	    pageout);
	assert_int_equal(s.seen[0], 100);
	assert_int_equal(s.seen[1], 30);
	assert_int_equal(s.seen[2], 30);
	assert_int_equal(s.seen[3], 130);
	assert_int_equal(s.m->slots_free, 1000); /* all given back at exit */
	assert_int_equal(s.m->zram_stored, 0);
	machine_destroy(s.m);
}

static void small_swap(struct task *t, void *arg)
{
	struct scene *s = arg;
	uint64_t addr = task_map_anon(t, 500, 0);

	for (uint32_t i = 0; i < 500; i++)
		task_touch(t, addr + i, TASK_STORE);
	foliage_cpu_drain(s->m->engine, this_cpu(s->m));
	task_madvise(t, addr, 500, ADVICE_PAGEOUT);
	s->seen[0] = s->m->slots_free;
	task_unmap(t, addr, 500);
	s->seen[1] = s->m->slots_free;
}

static void full_swap_takes_no_more(void **state)
{
	struct scene s;

	(void)state;
	run(&s, &(struct machine_options){.memory = 4096, .swap = MACHINE_ZRAM, .swap_pages = 300},
	    small_swap);
	assert_int_equal(s.seen[0], 0);
	assert_int_equal(s.seen[1], 300);
	machine_destroy(s.m);
}

struct queue {
	struct machine *m;
	uint32_t pages; /* that the writer writes out */
	uint64_t asked, waited;
};

/* A page that is out, and so many writes of others just before it is read. */
static void reader_behind_writer(struct task *t, void *arg)
{
	struct queue *q = arg;
	const struct foliage_reclaim_request gone = {.nr = 1, .swappiness = 200};
	uint64_t mine = task_map_anon(t, 1, 0), others = task_map_anon(t, 64, 0);

	task_touch(t, mine, TASK_STORE);
	foliage_cpu_drain(q->m->engine, this_cpu(q->m));
	task_madvise(t, mine, 1, ADVICE_PAGEOUT);
	task_sleep(t, 100000000);
	/* Written, it is still in the swap cache. */
	assert_int_equal(foliage_reclaim(q->m->engine, this_cpu(q->m), &gone), 1);
	for (uint32_t i = 0; i < 64; i++)
		task_touch(t, others + i, TASK_STORE);
	foliage_cpu_drain(q->m->engine, this_cpu(q->m));
	if (q->pages)
		task_madvise(t, others, q->pages, ADVICE_PAGEOUT);
	q->asked = t->now;
	task_touch(t, mine, TASK_LOAD);
	q->waited = t->now - q->asked;
}

static uint64_t wait_behind(uint32_t pages)
{
	struct queue q = {.pages = pages};
	struct err err = {""};

	assert_int_equal(machine_create(&(struct machine_options){.memory = 4096,
								  .swap = MACHINE_DISK_SWAP,
								  .swap_pages = 1000,
								  .swap_disk = &machine_ssd},
					&q.m, &err),
			 0);
	machine_spawn(q.m, 0, reader_behind_writer, &q);
	assert_int_equal(machine_run(q.m, 0, NULL), 0);
	assert_int_equal(machine_stat(q.m, MACHINE_PSWPOUT), 1 + pages);
	assert_int_equal(machine_stat(q.m, MACHINE_PSWPIN), 1);
	machine_destroy(q.m);
	return q.waited;
}

/* Reads and writes of a disk share one queue: who reads a page in waits for the writes before it. */
static void a_reader_waits_behind_swap_writes(void **state)
{
	uint64_t idle = wait_behind(0), few = wait_behind(8), many = wait_behind(16);

	(void)state;
	print_message("swap-in: %.0f us alone, %.0f behind 8 writes, %.0f behind 16\n",
		      (double)idle / 1e3, (double)few / 1e3, (double)many / 1e3);
	assert_in_range(idle, machine_ssd.latency, machine_ssd.latency + 20000);
	/* Each write holds the bus for its page; less the time that the writer needs for each. */
	assert_true(few > idle);
	assert_true(many > few + 2 * machine_ssd.ns_per_page);
}

/* ---- pressure ---- */

static void read_skewed(struct task *t, void *arg)
{
	struct scene *s = arg;
	struct open_file *f = task_open(t, s->file);
	uint64_t rng = 3;

	task_fadvise(f, FILE_RANDOM);
	for (uint32_t i = 0; i < 60000; i++) {
		uint32_t a = splitmix64_below(&rng, 1000), b = splitmix64_below(&rng, 1000);

		task_read(t, f, a < b ? a : b, 1);
	}
	task_close(t, f);
}

static uint64_t stall_of(const char *policy)
{
	const struct machine_options options = {.policy = policy, .memory = 4096, .scale = 1024};
	struct scene s = {0};
	struct err err = {""};
	uint64_t stall;

	if (machine_create(&options, &s.m, &err))
		fail_msg("%s", err.text);
	s.file = machine_file(s.m, 1000);
	machine_spawn(s.m, (uint32_t)machine_memcg(s.m, 0, "g", 500), read_skewed, &s);
	if (machine_run(s.m, 0, NULL))
		fail_msg("%s", machine_oom(s.m));
	assert_true(machine_engine_stat(s.m, 0, STAT_REFAULT_FILE) > 1000);
	stall = machine_stat(s.m, MACHINE_STALL_NS);
	machine_destroy(s.m);
	return stall;
}

/* Pages used twice are the working set. Waiting for their return is pressure; mainline, which calls a
 * page that only after its fifth access, sees little of it. */
static void pressure_that_mainline_misses(void **state)
{
	uint64_t fg = stall_of("fg"), mglru = stall_of("mglru");

	(void)state;
	print_message("stalled: fg %.1f ms, mglru %.1f ms\n", (double)fg / 1e6,
		      (double)mglru / 1e6);
	assert_true(fg > 5 * mglru);
	assert_true(fg > 100 * (uint64_t)machine_nvme.latency);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readahead_grows),
		cmocka_unit_test(random_reads_bring_one),
		cmocka_unit_test(dirty_pages_are_written_once),
		cmocka_unit_test(faults_map_around),
		cmocka_unit_test(read_around_gives_up),
		cmocka_unit_test(fork_copies_on_write),
		cmocka_unit_test(threads_share_pages),
		cmocka_unit_test(swap_keeps_and_returns),
		cmocka_unit_test(full_swap_takes_no_more),
		cmocka_unit_test(a_reader_waits_behind_swap_writes),
		cmocka_unit_test(pressure_that_mainline_misses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
