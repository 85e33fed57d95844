/* SPDX-License-Identifier: MIT
 *
 * Virtual time: CPUs, sleep, devices, locks of reclaimers, deadlock, out of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "machine/machine.h"
#include "mm/types.h"

static struct machine *make(const struct machine_options *options)
{
	struct machine *m = NULL;
	struct err err = {""};

	if (machine_create(options, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static void work(struct task *t, void *arg)
{
	task_compute(t, *(uint64_t *)arg);
}

/* Ten tasks of 30 ms: alone on a CPU, or on four. */
static uint64_t time_of_ten(uint32_t cpus)
{
	struct machine *m = make(&(struct machine_options){.memory = 1024, .cpus = cpus});
	uint64_t ns = 30000000, now;

	for (int i = 0; i < 10; i++)
		machine_spawn(m, 0, work, &ns);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	now = machine_now(m);
	machine_destroy(m);
	return now;
}

static void cpus_share_work(void **state)
{
	uint64_t one = time_of_ten(1), four = time_of_ten(4), ten = time_of_ten(10);

	(void)state;
	assert_in_range(one, 300000000, 302000000);
	assert_in_range(four, 75000000,
			92000000); /* three rounds of 30 ms at worst, shared out by slices */
	assert_in_range(ten, 30000000, 30100000);
}

static void sleeper(struct task *t, void *arg)
{
	uint64_t before = task_now(t);

	task_sleep(t, 5000000);
	assert_in_range(task_now(t), before + 5000000, before + 5100000);
	*(uint64_t *)arg = task_now(t);
}

static void sleep_takes_no_cpu(void **state)
{
	struct machine *m = make(&(struct machine_options){.memory = 1024, .cpus = 1});
	uint64_t ends[20] = {0};

	(void)state;
	for (int i = 0; i < 20; i++)
		machine_spawn(m, 0, sleeper, &ends[i]);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	assert_true(machine_now(m) < 5300000);
	machine_destroy(m);
}

static void write_then_read(struct task *t, void *arg)
{
	struct open_file *f = task_open(t, *(int *)arg);

	task_write(t, f, 0, 1);
	task_read(t, f, 100, 1); /* gives the CPU away */
	task_compute(t, 1000000000);
	task_close(t, f);
}

/* The first dirty page tells the flusher to look in five seconds. Until then it waits, and does so
 * without the only CPU. */
static void flusher_waits_without_a_cpu(void **state)
{
	struct machine *m = make(&(struct machine_options){.memory = 4096, .cpus = 1});
	int file = machine_file(m, 200);

	(void)state;
	machine_spawn(m, 0, write_then_read, &file);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	assert_in_range(machine_now(m), 1000000000, 1100000000);
	machine_destroy(m);
}

static void fill_with_dirty(struct task *t, void *arg)
{
	struct open_file *f = task_open(t, *(int *)arg);

	for (uint32_t page = 0; page < 3000; page++)
		task_write(t, f, page, 1);
	task_close(t, f);
}

/* A group whose pages are all dirty has room when they are written: reclaim, which does not give its CPU away,
 * asks the flusher, who must not wait for that CPU. */
static void reclaim_does_not_starve_the_flusher(void **state)
{
	struct machine *m =
		make(&(struct machine_options){.memory = 65536, .cpus = 1, .max_memcgs = 4});
	int file = machine_file(m, 3000), group = machine_memcg(m, 0, "group", 300);

	(void)state;
	machine_spawn(m, (uint32_t)group, fill_with_dirty, &file);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	assert_true(machine_now(m) < 1000000000);
	machine_destroy(m);
}

static void wait_for_itself(struct task *t, void *arg)
{
	(void)arg;
	task_fork(t, wait_for_itself, NULL);
	task_wait_children(t);
}

/* Processes that make processes for ever, each in need of page tables and memory. */
static void run_stops_at_its_end(void **state)
{
	struct machine *m = make(&(struct machine_options){.memory = 1024});

	(void)state;
	machine_spawn(m, 0, wait_for_itself, NULL);
	assert_int_equal(machine_run(m, 10000000, NULL), 0);
	assert_int_equal(machine_now(m), 10000000);
	machine_destroy(m);
}

static bool always(void)
{
	return true;
}

static void long_work(struct task *t, void *arg)
{
	(void)arg;
	task_compute(t, UINT64_C(3600000000000));
}

static void stop(void **state)
{
	struct machine *m = make(&(struct machine_options){.memory = 1024});

	(void)state;
	machine_spawn(m, 0, long_work, NULL);
	assert_int_equal(machine_run(m, 0, always), -EINTR);
	assert_true(machine_now(m) < UINT64_C(1000000000));
	machine_destroy(m);
}

/* ---- out of memory ---- */

static void fill_anon(struct task *t, void *arg)
{
	uint32_t nr = *(uint32_t *)arg;
	uint64_t addr = task_map_anon(t, nr, 0);

	for (uint32_t i = 0; i < nr; i++)
		task_touch(t, addr + i, TASK_STORE);
}

static void fill_kernel(struct task *t, void *arg)
{
	task_kalloc(t, *(uint32_t *)arg, false);
}

static void expect_oom(const struct machine_options *options, uint64_t limit, task_fn fn,
		       uint32_t nr)
{
	struct machine *m = make(options);
	int group = machine_memcg(m, 0, "pinned", limit);
	struct err err = {""};

	machine_spawn(m, (uint32_t)group, fn, &nr);
	assert_int_equal(machine_run(m, 0, NULL), -ENOMEM);
	assert_non_null(strstr(machine_oom(m), "out of memory"));
	assert_non_null(strstr(machine_oom(m), "pinned"));
	if (machine_is_valid(m, &err))
		fail_msg("%s", err.text);
	assert_true(machine_now(m) < UINT64_C(60000000000));
	machine_destroy(m);
}

static void the_impossible_ends(void **state)
{
	static const char *const policies[] = {"fg", "mglru", "clru"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct machine_options o = {.policy = policies[i], .memory = 4096};

		expect_oom(&o, 1000, fill_anon, 2000);
		expect_oom(&o, 1000, fill_kernel, 2000);
		expect_oom(&o, FOLIAGE_UNLIMITED, fill_anon, 8000);
		o.swap = MACHINE_ZRAM;
		o.swap_pages = 500;
		expect_oom(&o, 1000, fill_anon, 3000);
		/* Compressed memory takes memory: at two to one, 4096 pages do not hold 20,000. */
		o.swap_pages = 100000;
		o.zram_ratio = 2;
		expect_oom(&o, FOLIAGE_UNLIMITED, fill_anon, 20000);
	}
}

struct noio {
	int rc;
};

static void try_kalloc(struct task *t, void *arg)
{
	struct noio *n = arg;
	uint64_t addr = task_map_anon(t, 980, 0);

	for (uint32_t i = 0; i < 980; i++)
		task_touch(t, addr + i, TASK_STORE);
	n->rc = task_kalloc(t, 200, true);
}

/* Without I/O anonymous memory cannot go: the allocation fails, the machine goes on. */
static void no_io_fails_softly(void **state)
{
	struct machine *m = make(&(struct machine_options){
		.memory = 4096, .swap = MACHINE_ZRAM, .swap_pages = 9000});
	int group = machine_memcg(m, 0, "g", 1000);
	struct noio n = {1};

	(void)state;
	machine_spawn(m, (uint32_t)group, try_kalloc, &n);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	assert_int_equal(n.rc, -ENOMEM);
	assert_int_equal(machine_memcg_stat(m, 0, MEMCG_KERNEL), 0);
	machine_destroy(m);
}

/* ---- reclaimers meet ---- */

static void scan_file(struct task *t, void *arg)
{
	struct open_file *f = task_open(t, *(int *)arg);

	for (uint32_t i = 0; i < 20000; i += 8)
		task_read(t, f, i, 8);
	task_close(t, f);
}

static uint64_t lock_wait(uint32_t cpus)
{
	static const struct machine_device quick = {
		.latency = 1000, .ns_per_page = 10, .depth = 64};
	struct machine *m =
		make(&(struct machine_options){.memory = 16384, .cpus = cpus, .disk = &quick});
	int group = machine_memcg(m, 0, "g", 4000), files[8];
	uint64_t wait;

	for (int i = 0; i < 8; i++) {
		files[i] = machine_file(m, 20000);
		machine_spawn(m, (uint32_t)group, scan_file, &files[i]);
	}
	assert_int_equal(machine_run(m, 0, NULL), 0);
	wait = machine_stat(m, MACHINE_LOCK_WAIT_NS);
	/* One lock, held by one at a time. */
	assert_true(machine_stat(m, MACHINE_LOCK_HELD_NS) <= machine_now(m) + 1000000);
	assert_true(machine_stat(m, MACHINE_LOCK_SECTIONS) > 1000);
	machine_destroy(m);
	return wait;
}

static void locks_are_waited_for(void **state)
{
	(void)state;
	/* One CPU only meets itself where a task ran ahead by a quantum. */
	assert_true(lock_wait(8) > 1000000);
	assert_true(lock_wait(1) * 10 < lock_wait(8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_share_work),
		cmocka_unit_test(sleep_takes_no_cpu),
		cmocka_unit_test(flusher_waits_without_a_cpu),
		cmocka_unit_test(reclaim_does_not_starve_the_flusher),
		cmocka_unit_test(run_stops_at_its_end),
		cmocka_unit_test(stop),
		cmocka_unit_test(the_impossible_ends),
		cmocka_unit_test(no_io_fails_softly),
		cmocka_unit_test(locks_are_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
