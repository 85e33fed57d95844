/* SPDX-License-Identifier: MIT
 *
 * What depends on size and what must not: a machine of half the size that is told the modelled one
 * behaves as the larger, and one that is not told does not. And active/inactive counters that say the
 * same before and after an aging.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "machine/sim.h"
#include "mm/gen.h"

/* ---- two scales ---- */

enum { MODELLED = 4194304 }; /* pages: 16 GiB */

struct reader {
	int file;
	uint32_t pages;
	uint64_t accesses, rng;
	int64_t refaults;
};

/* Skewed by shares of the file, which do not depend on its size as a zipf's do. */
static uint32_t draw(struct reader *r)
{
	static const uint32_t shares[] = {200, 50, 20, 8, 4, 2, 1, 1};

	return splitmix64_below(&r->rng, r->pages / shares[splitmix64(&r->rng) % 8]);
}

static void read_main(struct task *t, void *arg)
{
	struct reader *r = arg;
	struct open_file *f = task_open(t, r->file);

	task_fadvise(f, FILE_RANDOM);
	for (uint64_t i = 0; i < r->accesses; i++) {
		if (i == r->accesses / 2)
			r->refaults = machine_engine_stat(task_machine(t), 0, STAT_REFAULT_FILE);
		task_read(t, f, draw(r), 1);
	}
	task_close(t, f);
}

/* Refaults a read in a room of so many pages, modelled `scale` times that. */
static double refaults(const char *policy, uint32_t room, double scale)
{
	struct machine *m;
	struct err err = {""};
	struct reader r = {.pages = room * 5 / 2, .accesses = room * UINT64_C(40), .rng = 1};
	double result;
	int group;

	if (machine_create(
		    &(struct machine_options){
			    .policy = policy, .memory = 2 * room + 1024, .scale = scale, .seed = 1},
		    &m, &err))
		fail_msg("%s", err.text);
	group = machine_memcg(m, 0, "room", room);
	r.file = machine_file(m, r.pages);
	machine_spawn(m, (uint32_t)group, read_main, &r);
	assert_int_equal(machine_run(m, 0, NULL), 0);
	result = (double)(machine_engine_stat(m, 0, STAT_REFAULT_FILE) - r.refaults) /
		 (double)(r.accesses / 2);
	machine_destroy(m);
	return result;
}

static void half_the_size_says_the_same(void **state)
{
	static const char *const policies[] = {"clru", "mglru", "fg"};
	double told_worst = 0, untold_worst = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double large = refaults(policies[i], 16384, MODELLED / 16384.0);
		double small = refaults(policies[i], 8192, MODELLED / 8192.0);
		double untold = refaults(policies[i], 8192, 1);

		print_message("%-6s refaults a read: %.5f, half the size %.5f (%+.2f %%), not told "
			      "its size %.5f (%+.2f %%)\n",
			      policies[i], large, small, 100 * (small / large - 1), untold,
			      100 * (untold / large - 1));
		told_worst = MAX(told_worst, fabs(small / large - 1));
		untold_worst = MAX(untold_worst, fabs(untold / large - 1));
	}
	assert_true(told_worst < 0.02);
	assert_true(untold_worst > 0.05);
}

/* ---- counters ---- */

enum { PAGES = 2000, HOT = 500, AGINGS = 6 };

struct counters {
	int file;
	uint64_t anon; /* address */
	uint64_t active_anon[AGINGS + 1], active_file[AGINGS + 1];
};

static uint64_t counter_of(struct machine *m, const char *name)
{
	char *text, *at, wanted[32];
	uint64_t value;

	assert_int_equal(machine_text(m, "memory.stat", &text), 0);
	snprintf(wanted, sizeof(wanted), "\n%s ", name);
	at = strstr(text, wanted);
	assert_non_null(at);
	value = strtoull(at + strlen(wanted), NULL, 10) / 4096;
	free(text);
	return value;
}

static void age(struct task *t)
{
	struct machine *m = task_machine(t);
	char command[64];

	foliage_cpu_drain(machine_engine(m), this_cpu(m));
	snprintf(command, sizeof(command), "+ 1 0 %llu 60 1",
		 (unsigned long long)gen_max_seq(&machine_engine(m)->lruvecs[0]));
	assert_int_equal(task_lru_gen_write(t, command), 0);
}

static void look(struct task *t, struct counters *c, int i)
{
	c->active_anon[i] = counter_of(task_machine(t), "active_anon");
	c->active_file[i] = counter_of(task_machine(t), "active_file");
}

/* A file of which a part is read twice, and anonymous memory of which a part stays in use. */
static void counters_main(struct task *t, void *arg)
{
	struct counters *c = arg;
	struct open_file *f = task_open(t, c->file);

	task_fadvise(f, FILE_RANDOM);
	c->anon = task_map_anon(t, PAGES, 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		task_read(t, f, i, 1);
		task_touch(t, c->anon + i, TASK_STORE);
	}
	for (uint32_t i = 0; i < HOT; i++)
		task_read(t, f, i * 3, 1);
	/* Twice seen in the page tables: in use. */
	age(t);
	for (uint32_t i = 0; i < HOT; i++)
		task_touch(t, c->anon + i, TASK_STORE);
	age(t);
	look(t, c, 0);
	for (int i = 1; i <= AGINGS; i++) {
		age(t);
		look(t, c, i);
	}
	task_close(t, f);
}

static void count(const char *policy, struct counters *c)
{
	struct machine *m;
	struct err err = {""};

	*c = (struct counters){0};
	if (machine_create(&(struct machine_options){.policy = policy, .memory = 8192}, &m, &err))
		fail_msg("%s", err.text);
	c->file = machine_file(m, PAGES);
	machine_spawn(m, 0, counters_main, c);
	if (machine_run(m, 0, NULL))
		fail_msg("%s", machine_oom(m));
	machine_destroy(m);
}

/* C.10, on a machine without swap, where mainline's anonymous generations are only renamed. */
static void counters_do_not_age(void **state)
{
	struct counters fg, mglru;
	bool jumped = false;

	(void)state;
	count("fg", &fg);
	count("mglru", &mglru);
	for (int i = 0; i <= AGINGS; i++) {
		print_message(
			"after %d agings: active_file fg %llu mglru %llu, active_anon fg %llu "
			"mglru %llu\n",
			i, (unsigned long long)fg.active_file[i],
			(unsigned long long)mglru.active_file[i],
			(unsigned long long)fg.active_anon[i],
			(unsigned long long)mglru.active_anon[i]);
		assert_int_equal(fg.active_file[i], HOT);
		assert_int_equal(fg.active_anon[i], HOT);
		jumped |= mglru.active_file[i] != mglru.active_file[0] ||
			  mglru.active_anon[i] != mglru.active_anon[0];
	}
	assert_true(jumped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_the_size_says_the_same),
		cmocka_unit_test(counters_do_not_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
