/* SPDX-License-Identifier: MIT
 *
 * The machine under random operations of several processes: whatever they do, between two events
 * every page is where everybody says it is, statistics add up over the tree of groups, traffic
 * equals what the devices served, and time does not go back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/machine.h"
#include "mm/types.h"

enum { FILES = 6, FILE_PAGES = 700, ANON_PAGES = 600, OPS = 3000 };

struct world {
	struct machine *m;
	int files[FILES];
	uint64_t last_now;
	bool forks;
};

struct worker {
	struct world *w;
	uint64_t rng;
	uint32_t ops;
	uint64_t map[3], anon;
	struct open_file *open[FILES];
};

static uint32_t below(struct worker *k, uint32_t n)
{
	return splitmix64_below(&k->rng, n);
}

static void child_main(struct task *t, void *arg)
{
	struct worker *k = arg;

	for (uint32_t i = 0; i < 40; i++)
		task_touch(t, k->anon + (i * 7) % ANON_PAGES, i % 2 ? TASK_STORE : TASK_LOAD);
}

static void random_op(struct task *t, struct worker *k)
{
	uint32_t f = below(k, FILES), page = below(k, FILE_PAGES);

	switch (below(k, 16)) {
	case 0:
	case 1:
		task_read(t, k->open[f], page, 1 + below(k, 8));
		break;
	case 2:
		task_write(t, k->open[f], page, 1 + below(k, 4));
		break;
	case 3:
	case 4:
	case 5:
		task_touch(t, k->map[0] + page, TASK_LOAD);
		break;
	case 6:
		task_touch(t, k->map[1] + page, below(k, 2) ? TASK_STORE : TASK_LOAD);
		break;
	case 7:
		task_touch(t, k->map[2] + page, below(k, 2) ? TASK_STORE : TASK_EXEC);
		break;
	case 8:
	case 9:
	case 10:
		task_touch(t, k->anon + below(k, ANON_PAGES), below(k, 3) ? TASK_STORE : TASK_LOAD);
		break;
	case 11:
		task_madvise(t, below(k, 2) ? k->anon : k->map[0], 64, ADVICE_COLD + below(k, 3));
		break;
	case 12:
		task_fadvise(k->open[f], (enum file_advice)below(k, 4));
		break;
	case 13:
		task_sleep(t, below(k, 100000));
		break;
	case 14:
		if (below(k, 50) == 0)
			task_fsync(t, k->open[f]);
		else
			task_fadvise_dontneed(t, k->open[f], page, 16);
		break;
	default:
		if (k->w->forks && below(k, 20) == 0) {
			task_fork(t, child_main, k);
			if (below(k, 2))
				task_wait_children(t);
		}
		break;
	}
}

static void worker_main(struct task *t, void *arg)
{
	struct worker *k = arg;
	struct world *w = k->w;

	for (int i = 0; i < FILES; i++)
		k->open[i] = task_open(t, w->files[i]);
	k->map[0] = task_map_file(t, w->files[0], 0, FILE_PAGES, 0);
	k->map[1] = task_map_file(t, w->files[1], 0, FILE_PAGES, MAPPING_SHARED_WRITE);
	k->map[2] = task_map_file(t, w->files[2], 0, FILE_PAGES, MAPPING_EXEC);
	k->anon = task_map_anon(t, ANON_PAGES, 0);
	for (uint32_t i = 0; i < k->ops; i++) {
		uint64_t before = task_now(t);

		random_op(t, k);
		assert_true(task_now(t) >= before);
	}
	task_wait_children(t);
	for (int i = 0; i < FILES; i++)
		task_close(t, k->open[i]);
}

static void check_traffic(struct machine *m)
{
	uint64_t disk_read = machine_stat(m, MACHINE_DISK_READ),
		 swap_read = machine_stat(m, MACHINE_SWAP_READ);
	uint64_t disk_out = machine_stat(m, MACHINE_DISK_WRITTEN),
		 swap_out = machine_stat(m, MACHINE_SWAP_WRITTEN);

	assert_int_equal(machine_stat(m, MACHINE_PGPGIN), 4 * (disk_read + swap_read));
	assert_int_equal(machine_stat(m, MACHINE_PGPGOUT), 4 * (disk_out + swap_out));
	assert_int_equal(machine_stat(m, MACHINE_PSWPIN), swap_read);
	assert_int_equal(machine_stat(m, MACHINE_PSWPOUT), swap_out);
}

/* The root holds nothing itself: it is the sum of its children. The last group is inside the first. */
static void check_tree(struct machine *m, const uint32_t *groups, size_t nr)
{
	for (int item = 0; item < NR_STATS; item++) {
		int64_t sum = 0;

		for (size_t i = 0; i < nr; i++)
			sum += machine_engine_stat(m, groups[i], item);
		assert_int_equal(machine_engine_stat(m, 0, item), sum);
		assert_true(machine_engine_stat(m, groups[0], item) >=
			    machine_engine_stat(m, groups[nr], item));
	}
	for (int what = 0; what < MEMCG_NR_STATS; what++) {
		int64_t sum = 0;

		for (size_t i = 0; i < nr; i++)
			sum += machine_memcg_stat(m, groups[i], (enum machine_memcg_stat)what);
		assert_int_equal(machine_memcg_stat(m, 0, (enum machine_memcg_stat)what), sum);
		assert_true(machine_memcg_stat(m, groups[0], (enum machine_memcg_stat)what) >=
			    machine_memcg_stat(m, groups[nr], (enum machine_memcg_stat)what));
	}
	assert_int_equal(machine_memcg_stat(m, 0, MEMCG_PGFAULT), machine_stat(m, MACHINE_PGFAULT));
	assert_int_equal(machine_memcg_stat(m, 0, MEMCG_PGMAJFAULT),
			 machine_stat(m, MACHINE_PGMAJFAULT));
}

static void check(struct world *w, const uint32_t *groups, size_t nr)
{
	struct err err = {""};

	assert_true(machine_now(w->m) >= w->last_now);
	w->last_now = machine_now(w->m);
	if (machine_is_valid(w->m, &err))
		fail_msg("%s", err.text);
	check_traffic(w->m);
	check_tree(w->m, groups, nr);
}

static uint64_t run_world(const struct machine_options *options, bool forks, uint64_t limit)
{
	struct world w = {.forks = forks};
	struct worker workers[6];
	uint32_t groups[3];
	struct err err = {""};
	uint64_t digest, until = 0;
	int rc;

	if (machine_create(options, &w.m, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < FILES; i++)
		w.files[i] = machine_file(w.m, FILE_PAGES);
	groups[0] = (uint32_t)machine_memcg(w.m, 0, "a", limit);
	groups[1] = (uint32_t)machine_memcg(w.m, 0, "b", FOLIAGE_UNLIMITED);
	groups[2] = (uint32_t)machine_memcg(w.m, groups[0], "c", limit / 2);
	for (uint32_t i = 0; i < ARRAY_SIZE(workers); i++) {
		workers[i] = (struct worker){.w = &w, .rng = options->seed * 100 + i, .ops = OPS};
		machine_spawn(w.m, groups[i % 3], worker_main, &workers[i]);
	}
	do {
		until += 20000000;
		rc = machine_run(w.m, until, NULL);
		if (rc)
			fail_msg("%s at %s: %d %s", options->policy, "run", rc, machine_oom(w.m));
		check(&w, groups, 2);
	} while (machine_now(w.m) == until);
	machine_settle(w.m);
	check(&w, groups, 2);
	assert_int_equal(machine_memcg_stat(w.m, 0, MEMCG_ANON), 0);
	assert_int_equal(machine_memcg_stat(w.m, 0, MEMCG_FILE_MAPPED), 0);
	assert_int_equal(machine_memcg_stat(w.m, 0, MEMCG_FILE_DIRTY), 0);
	digest = machine_now(w.m) * 31 + machine_stat(w.m, MACHINE_PGPGIN) * 7 +
		 (uint64_t)machine_engine_stat(w.m, 0, STAT_REFAULT_FILE);
	machine_destroy(w.m);
	return digest;
}

static const char *const policies[] = {"fg", "mglru", "clru", "mglru-6.12", "mglru-credit"};

static void zram(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_world(&(struct machine_options){.policy = policies[i],
						    .memory = 3000,
						    .cpus = 3,
						    .seed = 1 + i,
						    .swap = MACHINE_ZRAM,
						    .swap_pages = 20000},
			  false, 900);
}

static void disk_swap_and_forks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_world(&(struct machine_options){.policy = policies[i],
						    .memory = 3000,
						    .cpus = 2,
						    .seed = 11 + i,
						    .swap = MACHINE_DISK_SWAP,
						    .swap_pages = 20000,
						    .swap_disk = &machine_ssd},
			  true, 900);
}

static void zram_and_forks_without_walker(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		run_world(&(struct machine_options){.policy = policies[i],
						    .memory = 2500,
						    .cpus = 8,
						    .seed = 21 + i,
						    .caps = FOLIAGE_LRU_GEN_CORE,
						    .born_old = true,
						    .swap = MACHINE_ZRAM,
						    .swap_pages = 20000},
			  true, 900);
}

static void same_seed_same_run(void **state)
{
	const struct machine_options options = {.policy = "fg",
						.memory = 3000,
						.cpus = 4,
						.seed = 5,
						.swap = MACHINE_ZRAM,
						.swap_pages = 20000};
	uint64_t first = run_world(&options, true, 900);
	struct machine_options other = options;

	(void)state;
	assert_int_equal(first, run_world(&options, true, 900));
	other.seed = 6;
	assert_true(first != run_world(&other, true, 900));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zram),
		cmocka_unit_test(disk_swap_and_forks),
		cmocka_unit_test(zram_and_forks_without_walker),
		cmocka_unit_test(same_seed_same_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
