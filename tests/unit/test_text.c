/* SPDX-License-Identifier: MIT
 *
 * The texts byte for byte (B.13), and every way a command can go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mm/memcg.h"
#include "mm/policies.h"
#include "tests/support/world.h"

static void assert_text(struct world *w, const char *what, const char *expected)
{
	char *text = NULL;

	assert_int_equal(foliage_text(w->e, what, &text), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void assert_no_text(struct world *w, const char *what, int expected)
{
	char *text = (char *)"untouched";

	assert_int_equal(foliage_text(w->e, what, &text), expected);
	assert_null(text);
}

static int write_command(struct world *w, const char *commands)
{
	return foliage_lru_gen_write(w->e, &w->cpu, commands);
}

static uint64_t max_seq(struct world *w, uint32_t memcg)
{
	return gen_max_seq(world_lruvec(w, memcg, 0));
}

/* ---- texts ---- */

static void test_lru_gen(void **state)
{
	struct world *w = world_new(
		&(struct world_options){.nr_folios = 4096, .max_memcgs = 4, .nr_nodes = 2});

	(void)state;
	assert_int_equal(foliage_memcg_create(w->e, 0, "a"), 1);
	assert_int_equal(foliage_memcg_create(w->e, 1, "b"), 2);
	assert_int_equal(foliage_memcg_create(w->e, 0, "gone"), 3);
	assert_int_equal(foliage_memcg_remove(w->e, &w->cpu, 3), 0);
	w->now_ms = 1234;
	for (uint32_t i = 0; i < 50; i++)
		world_add_to(w, i, 2, 0, 0, 0, i < 10 ? FOLIAGE_FOLIO_ANON : 0);
	world_add_to(w, 50, 2, 1, 0, 9, 0);
	for (uint32_t i = 10; i < 20; i++)
		world_mark(w, i, 2); /* deferred by one generation */
	assert_int_equal(write_command(w, "+ 3 0 3"), 0);
	w->now_ms = 2000;
	assert_text(w, "lru_gen",
		    "memcg     1 /\n"
		    " node     0\n"
		    "          0       2000          0           0 \n"
		    "          1       2000          0           0 \n"
		    "          2       2000          0           0 \n"
		    "          3       2000          0           0 \n"
		    " node     1\n"
		    "          0       2000          0           0 \n"
		    "          1       2000          0           0 \n"
		    "          2       2000          0           0 \n"
		    "          3       2000          0           0 \n"
		    "memcg     2 /a\n"
		    " node     0\n"
		    "          0       2000          0           0 \n"
		    "          1       2000          0           0 \n"
		    "          2       2000          0           0 \n"
		    "          3       2000          0           0 \n"
		    " node     1\n"
		    "          0       2000          0           0 \n"
		    "          1       2000          0           0 \n"
		    "          2       2000          0           0 \n"
		    "          3       2000          0           0 \n"
		    "memcg     3 /a/b\n"
		    " node     0\n"
		    "          1       2000          0          40 \n"
		    "          2       2000         10           0 \n"
		    "          3       2000          0           0 \n"
		    "          4        766          0           0 \n"
		    " node     1\n"
		    "          0       2000          0         512 \n"
		    "          1       2000          0           0 \n"
		    "          2       2000          0           0 \n"
		    "          3       2000          0           0 \n");
	world_free(w);
}

static struct world *evicted_and_refaulted(const char *policy)
{
	struct world *w = world_new(&(struct world_options){.policy = policy, .nr_folios = 4096});

	for (uint32_t i = 0; i < 80; i++)
		world_add(w, i, 0);
	world_mark(w, 79, 8);
	assert_int_equal(write_command(w, "+ 1 0 3"), 0);
	/* 79 folios of the oldest generation go, 40 come back. */
	w->now_ms = 99;
	assert_int_equal(write_command(w, "- 1 0 1"), 0);
	assert_int_equal(w->nr_evicted, 79);
	for (uint32_t i = 0; i < 40; i++)
		world_add(w, i, 0);
	return w;
}

static void test_lru_gen_full(void **state)
{
	struct world *w = evicted_and_refaulted("fg");

	(void)state;
	/* Generations 1 and 2 are closed. 39 of the 79 moved up by aging, and 64 evicted before the
	 * second batch found generation 1 empty: (39 + 64) / 2 / 2 is the average that tier 0 of
	 * file has; the last 15 count at once, like the 40 refaults. Page 79 was promoted to
	 * generation 3. */
	assert_text(w, "lru_gen_full",
		    "memcg     1 /\n"
		    " node     0\n"
		    "          1         99          0x          0x\n"
		    "                     0          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     1          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     2          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     3          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                                0x          0x          0x          0x\n"
		    "          2         99          0x          0x\n"
		    "                     0          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     1          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     2          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                     3          0x          0x          0x          0x        "
		    "  0x          0x\n"
		    "                                0x          0x          0x          0x\n"
		    "          3         99          0          41 \n"
		    "                     0          0r          0e          0p         40r        "
		    " 15e          0p\n"
		    "                     1          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     2          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     3          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                                0x          0x          0x          0x\n"
		    "          4         99          0           0 \n"
		    "                     0          0R          0T          0x          0R        "
		    " 25T          0x\n"
		    "                     1          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                     2          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                     3          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                                0T          0Y          0F          0A\n");
	world_free(w);
}

/* With NR_HIST_GENS = 4 every generation tells its own counters; the youngest has only averages. */
static void test_lru_gen_full_history(void **state)
{
	struct world *w = evicted_and_refaulted("fg:histgens=4");

	(void)state;
	assert_text(w, "lru_gen_full",
		    "memcg     1 /\n"
		    " node     0\n"
		    "          1         99          0x          0x\n"
		    "                     0          0r          0e          0p          0r        "
		    " 64e          0p\n"
		    "                     1          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     2          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     3          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                                0t          0y          0f          0a\n"
		    "          2         99          0x          0x\n"
		    "                     0          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     1          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     2          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     3          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                                0t          0y          0f          0a\n"
		    "          3         99          0          41 \n"
		    "                     0          0r          0e          0p         40r        "
		    " 15e          0p\n"
		    "                     1          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     2          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                     3          0r          0e          0p          0r        "
		    "  0e          0p\n"
		    "                                0t          0y          0f          0a\n"
		    "          4         99          0           0 \n"
		    "                     0          0R          0T          0x          0R        "
		    " 25T          0x\n"
		    "                     1          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                     2          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                     3          0R          0T          0x          0R        "
		    "  0T          0x\n"
		    "                                0x          0x          0x          0x\n");
	world_free(w);
}

/* 64 mapped pages, 40 of them touched, in two tables. */
static void test_walk_line(void **state)
{
	struct world *w = world_new(&(struct world_options){.nr_folios = 4096});
	uint32_t mm = world_mm(w, 0);
	char *text;

	(void)state;
	world_vma(w, mm, 0, 32, 0);
	world_vma(w, mm, 512 + 32, 32, 0);
	for (uint32_t i = 0; i < 64; i++) {
		world_add(w, i, FOLIAGE_FOLIO_MAPPED);
		world_map(w, mm, i < 32 ? i : 512 + i, i);
		if (i < 40)
			world_touch(w, mm, i < 32 ? i : 512 + i, false);
	}
	assert_int_equal(write_command(w, "+ 1 0 3"), 0);
	assert_int_equal(foliage_text(w->e, "lru_gen_full", &text), 0);
	/* Forced, so both tables count as found; both are dense enough for the next filter: 32 of
	 * 32 and 8 of 32 are at least one in eight. */
	assert_non_null(strstr(
		text,
		"\n                               64T         40Y          2F          2A\n"));
	free(text);
	world_free(w);
}

static void test_memory_stat(void **state)
{
	struct world *w = world_new(&(struct world_options){.nr_folios = 4096, .max_memcgs = 4});

	(void)state;
	assert_int_equal(foliage_memcg_create(w->e, 0, "a"), 1);
	assert_int_equal(foliage_memcg_create(w->e, 1, "b"), 2);
	assert_int_equal(foliage_memcg_create(w->e, 0, "ab"), 3);
	world_add_to(w, 2000, 3, 0, 0, 0, 0);
	for (uint32_t i = 0; i < 200; i++)
		world_add_to(w, i, 1 + i % 2, 0, 0, 0, 0);
	for (uint32_t i = 200; i < 210; i++)
		world_add_to(w, i, 2, 0, 0, 0, FOLIAGE_FOLIO_ANON);
	world_add_to(w, 211, 2, 0, 0, 0, FOLIAGE_FOLIO_MLOCKED);
	/* Twice deferred: generation 2. */
	for (uint32_t i = 0; i < 20; i += 2)
		world_mark(w, i, 3);
	/* Aging takes those 10 off the oldest list, then 90 file pages of a go; those of b stay. */
	assert_int_equal(write_command(w, "+ 2 0 3,- 2 0 1"), 0);
	for (uint32_t i = 100; i < 110; i += 2)
		world_add_to(w, i, 1, 0, 0, 0, 0);
	assert_text(w, "memory.stat:/a",
		    "anon 40960\n"
		    "file 471040\n"
		    "inactive_anon 40960\n"
		    "active_anon 0\n"
		    "inactive_file 430080\n"
		    "active_file 40960\n"
		    "unevictable 4096\n"
		    "workingset_refault_anon 0\n"
		    "workingset_refault_file 5\n"
		    "workingset_activate_anon 0\n"
		    "workingset_activate_file 0\n"
		    "workingset_restore_anon 0\n"
		    "workingset_restore_file 0\n"
		    "pswpout 0\n"
		    "pgscan 90\n"
		    "pgsteal 90\n"
		    "pgscan_anon 0\n"
		    "pgscan_file 90\n"
		    "pgsteal_anon 0\n"
		    "pgsteal_file 90\n"
		    "pgrefill 0\n"
		    "pgactivate 0\n"
		    "pgdeactivate 0\n"
		    "pglazyfreed 0\n"
		    "pgpromoted 20\n"
		    "pgprotected 0\n"
		    "agings 1\n"
		    "refault_stale 0\n");
	assert_no_text(w, "memory.stat:/c", -ENOENT);
	assert_no_text(w, "memory.stat:/a/b/c", -ENOENT);
	assert_no_text(w, "memory.stat:a", -ENOENT);
	assert_no_text(w, "memory.stats", -EINVAL);
	world_free(w);
}

static void test_other_policies(void **state)
{
	static const char *const classic[] = {"clru", "clru-6.12"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(classic); i++) {
		struct world *w =
			world_new(&(struct world_options){.policy = classic[i], .nr_folios = 64});
		char *text;

		world_add(w, 0, 0);
		world_add(w, 1, 0);
		world_mark(w, 1, 2);
		world_drain(w);
		assert_no_text(w, "lru_gen", -EOPNOTSUPP);
		assert_no_text(w, "lru_gen_full", -EOPNOTSUPP);
		assert_no_text(w, "lru_gen_fuller", -EINVAL);
		assert_int_equal(write_command(w, "+ 1 0 3"), -EOPNOTSUPP);
		assert_text(w, "enabled", "0x0000\n");
		assert_int_equal(foliage_text(w->e, "memory.stat", &text), 0);
		assert_non_null(strstr(text, "\nfile 8192\n"));
		assert_non_null(strstr(text, "\ninactive_file 4096\nactive_file 4096\n"));
		free(text);
		world_free(w);
	}
}

static void test_settings(void **state)
{
	struct world *w = world_new(NULL);

	(void)state;
	assert_text(w, "enabled", "0x0007\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "0x1"), 0);
	assert_text(w, "enabled", "0x0001\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "5"), 0);
	assert_text(w, "enabled", "0x0005\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "y"), 0);
	assert_text(w, "enabled", "0x0007\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "n"), -EOPNOTSUPP);
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "6"), -EOPNOTSUPP);
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "8"), -EINVAL);
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", "yes"), -EINVAL);
	assert_int_equal(foliage_lru_gen_set(w->e, "enabled", ""), -EINVAL);
	assert_text(w, "enabled", "0x0007\n");
	assert_text(w, "min_ttl_ms", "0\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "min_ttl_ms", "1000"), 0);
	assert_text(w, "min_ttl_ms", "1000\n");
	assert_int_equal(foliage_lru_gen_set(w->e, "min_ttl_ms", "-1"), -EINVAL);
	assert_int_equal(foliage_lru_gen_set(w->e, "min_ttl_ms", "1s"), -EINVAL);
	assert_int_equal(foliage_lru_gen_set(w->e, "swappiness", "1"), -EINVAL);
	world_free(w);
}

/* ---- commands ---- */

static void test_aging_command(void **state)
{
	struct world *w = world_new(&(struct world_options){.nr_folios = 256, .max_memcgs = 2});

	(void)state;
	assert_int_equal(foliage_memcg_create(w->e, 0, "a"), 1);
	assert_int_equal(write_command(w, "+ 2 0 3"), 0);
	assert_int_equal(max_seq(w, 1), 4);
	assert_int_equal(max_seq(w, 0), 3);
	assert_int_equal(write_command(w, "+ 2 0 5"), -EINVAL);
	assert_int_equal(write_command(w, "+ 2 0 3"), -EEXIST);
	assert_int_equal(write_command(w, "+ 2 0 4 0 0"), 0);
	assert_int_equal(write_command(w, "+ 2 0 5 max 1"), 0);
	assert_int_equal(write_command(w, "+ 2 0 6 201"), 0);
	assert_int_equal(max_seq(w, 1), 7);
	/* Separators, blanks, and the first error ends the run. */
	assert_int_equal(write_command(w, "  + 2 0 7 ;+ 2 0 8,\n\n ,+2 0 9\n"), 0);
	assert_int_equal(max_seq(w, 1), 10);
	assert_int_equal(write_command(w, "+ 2 0 10,+ 2 0 99,+ 2 0 11"), -EINVAL);
	assert_int_equal(max_seq(w, 1), 11);
	assert_int_equal(write_command(w, ""), 0);
	assert_int_equal(write_command(w, " \n;,"), 0);
	assert_int_equal(max_seq(w, 1), 11);
	world_free(w);
}

static void test_bad_commands(void **state)
{
	static const char *const bad[] = {
		"+",
		"+ 1",
		"+ 1 0",
		"* 1 0 3",
		"1 0 3",
		"+ 1 0 x",
		"+ 1 0 3 x",
		"+ 1 0 3 202",
		"+ 1 0 3 60 1 1",
		"+ 1 0 3 maximum",
		"+ 1 0 -3",
		"+ 1 0 3 60 -1",
		"+ 1 1 3",
		"+ 2 0 3",
		"+ 0 0 3",
		"+ 65536 0 3",
		"+ 65537 0 3",
		"+ 1 4294967296 3",
		"+ 1\n0 3",
		"- 1 0 2",
		"- 1 0 3",
		"- 1 0 99",
		"- 1 0 1 60 1 1",
		"- 1 0 1 60 x",
		"- 2 0 1",
		"- 1 0 18446744073709551615",
		"+ 1 0 99999999999999999999",
		"+ 1 0 3x",
		"+ 1 0 3 60x",
	};
	struct world *w = world_new(&(struct world_options){.nr_folios = 256});

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		world_add(w, i, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int rc = write_command(w, bad[i]);

		if (rc != -EINVAL)
			fail_msg("\"%s\": %d", bad[i], rc);
	}
	assert_int_equal(max_seq(w, 0), 3);
	assert_int_equal(w->nr_evicted, 0);
	world_check(w);
	world_free(w);
}

static void test_eviction_command(void **state)
{
	struct world *w = world_new(&(struct world_options){.nr_folios = 4096});

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		world_add(w, i, 0);
	for (uint32_t i = 2000; i < 2100; i++)
		world_add(w, i, FOLIAGE_FOLIO_ANON);
	/* At most what was asked, give or take a batch of 64. */
	assert_int_equal(write_command(w, "- 1 0 1 0 0"), 0);
	assert_int_equal(w->nr_evicted, 0);
	assert_int_equal(write_command(w, "- 1 0 1 0 100"), 0);
	assert_in_range(w->nr_evicted, 100, 127);
	/* Generation 0 is empty of file pages afterwards; with swappiness 0 anon is not asked for.
	 *  */
	assert_int_equal(write_command(w, "- 1 0 0 0"), 0);
	assert_int_equal(w->nr_evicted, 1000);
	assert_int_equal(w->nr_pageouts, 0);
	assert_true(gen_min_seq(world_lruvec(w, 0, 0), TYPE_FILE) > 0);
	/* Nothing as old as that is left: done at once. */
	assert_int_equal(write_command(w, "- 1 0 0 0"), 0);
	/* Anonymous pages stand in generation 2 until that is old enough. */
	assert_int_equal(write_command(w, "+ 1 0 3,- 1 0 2 max"), 0);
	assert_int_equal(w->nr_pageouts, 100);
	world_check(w);
	world_free(w);
}

static void test_commands_of_612(void **state)
{
	struct world *w =
		world_new(&(struct world_options){.policy = "mglru-6.12", .nr_folios = 4096});

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		world_add(w, i, 0);
	/* Four generations: only by force, which is also what an omitted argument means. */
	assert_int_equal(write_command(w, "+ 1 0 3 60 0"), -ERANGE);
	assert_int_equal(max_seq(w, 0), 3);
	assert_int_equal(write_command(w, "+ 1 0 3 60"), 0);
	assert_int_equal(max_seq(w, 0), 4);
	assert_int_equal(write_command(w, "+ 1 0 4 60 1"), 0);
	assert_int_equal(max_seq(w, 0), 5);
	/* A generation that exists already is no error. */
	assert_int_equal(write_command(w, "+ 1 0 3"), 0);
	assert_int_equal(max_seq(w, 0), 5);
	assert_int_equal(write_command(w, "+ 1 0 6"), -EINVAL);
	assert_int_equal(write_command(w, "+ 1 0 5 max"), -EINVAL);
	assert_int_equal(write_command(w, "+ 1 0 5 201"), -EINVAL);
	assert_int_equal(write_command(w, "- 1 0 4"), -EINVAL);
	assert_int_equal(write_command(w, "- 1 0 3 60 1"), 0);
	assert_in_range(w->nr_evicted, 1, 64);
	assert_int_equal(write_command(w, "- 1 0 3 0"), 0);
	assert_int_equal(w->nr_evicted, 1000);
	world_check(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lru_gen),
		cmocka_unit_test(test_lru_gen_full),
		cmocka_unit_test(test_lru_gen_full_history),
		cmocka_unit_test(test_walk_line),
		cmocka_unit_test(test_memory_stat),
		cmocka_unit_test(test_other_policies),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_aging_command),
		cmocka_unit_test(test_bad_commands),
		cmocka_unit_test(test_eviction_command),
		cmocka_unit_test(test_commands_of_612),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
