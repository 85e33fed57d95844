/* SPDX-License-Identifier: MIT
 *
 * The counters of a booted Linux 6.12 on an exactly defined sequence: refaults of the five measured
 * windows together and of each one. The classic LRU's limits are wider where the kernel flushed its
 * statistics when it liked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/published/support_published.h"

static struct kernel_run *runs;
static size_t nr_runs;

static int load(void **state)
{
	struct err err = {""};

	(void)state;
	return kernel_runs_load(&kernel_table_612, &runs, &nr_runs, &err);
}

static int unload(void **state)
{
	(void)state;
	free(runs);
	return 0;
}

/* The largest of seven samples of a sawtooth of 64 pages lies below the room by chance, by up to 31
 * pages here, which is 0.2 % of refaults at theta 1.2. So the room is the middle of what the
 * kernel's file_pages allow; when they contradict any constant room (theta 1.1: the warm-up had 27
 * pages less than the last windows at least), the window after the warm-up is not judged, and the
 * test says so. */
static void settle_room(struct kernel_run *run, size_t *first)
{
	*first = 1;
	if (run->room_low <= run->room_high) {
		run->room = (run->room_low + run->room_high) / 2;
		return;
	}
	print_message("%s %g: file_pages of %u..%u: the kernel's room changed, judged from window "
		      "w1 on\n",
		      run->policy, run->theta, run->room_low, run->room_high);
	*first = 2;
}

static void mglru(void **state)
{
	size_t compared = 0;

	(void)state;
	for (size_t i = 0; i < nr_runs; i++) {
		size_t first;

		if (strcmp(runs[i].policy, "mglru-6.12"))
			continue;
		settle_room(&runs[i], &first);
		run_engine(&runs[i]);
		expect_refaults_from(&runs[i], first, 0.001, 0.003);
		compared++;
	}
	assert_int_equal(compared, 4);
}

/* All boots of one policy; `frequent`: those whose statistics were read every 2,000 accesses. */
static void compare(const char *policy, bool frequent, double together, double each)
{
	size_t compared = 0;

	need_policy(policy);
	for (size_t i = 0; i < nr_runs; i++) {
		if (strcmp(runs[i].policy, policy) || (runs[i].stat_every == 2000) != frequent)
			continue;
		run_engine(&runs[i]);
		expect_refaults(&runs[i], together, each);
		compared++;
	}
	assert_int_equal(compared, 4);
}

static void clru_exact_statistics(void **state)
{
	(void)state;
	compare("clru-6.12", true, 0.002, 0.004);
}

static void clru(void **state)
{
	(void)state;
	compare("clru-6.12", false, 0.01, 0.015);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mglru),
		cmocka_unit_test(clru_exact_statistics),
		cmocka_unit_test(clru),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
