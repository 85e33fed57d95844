/* SPDX-License-Identifier: MIT
 *
 * Every reference policy on sequences short enough to be worked out by hand: letters are pages, the
 * expected string has an h or m for each. Rooms below the eight pages of FOLIAGE_ROOM_MIN are fine
 * for the policies themselves.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mm/policies.h"

enum { LETTERS = 26, LONGEST = 64 };

static void future_of(const char *pages, uint64_t *next, uint32_t *counts)
{
	uint64_t later[LETTERS];

	for (int i = 0; i < LETTERS; i++) {
		later[i] = FOLIAGE_NEVER;
		counts[i] = 0;
	}
	for (size_t i = strlen(pages); i-- > 0;) {
		next[i] = later[pages[i] - 'a'];
		later[pages[i] - 'a'] = i;
		counts[pages[i] - 'a']++;
	}
}

static void check(const char *policy, uint32_t room, const char *pages, const char *expected)
{
	uint64_t next[LONGEST];
	uint32_t counts[LETTERS];
	struct foliage_policy_env env = {.room = room, .nr_ids = LETTERS, .scale = 1};
	struct policy_choice choice;
	struct err err = {0};
	char seen[LONGEST + 1] = "";
	void *state;

	assert_true(strlen(pages) == strlen(expected) && strlen(pages) <= LONGEST);
	future_of(pages, next, counts);
	env.next = next;
	env.counts = counts;
	assert_int_equal(policy_parse(policy, &choice, &err), 0);
	assert_int_equal(choice.policy->create(&env, choice.knobs, &state), 0);
	for (size_t i = 0; pages[i]; i++)
		seen[i] = choice.policy->access(state, (uint32_t)(pages[i] - 'a'), i) ? 'h' : 'm';
	choice.policy->destroy(state);
	policy_choice_free(&choice);
	if (strcmp(seen, expected))
		fail_msg("%s, room %u: %s gave %s, expected %s", policy, room, pages, seen,
			 expected);
}

/* One sequence that tells the three apart: a hit saves `a` once (CLOCK), again and again (LRU), or
 * never. */
static void test_fifo_lru_clock(void **unused)
{
	(void)unused;
	check("fifo", 3, "abcadabcda", "mmmhmmmmmm");
	check("lru", 3, "abcadabcda", "mmmhmhmmmm");
	check("clock", 3, "abcadabcda", "mmmhmhmmmh");
}

/* Two hits buy `a` two rounds with a two-bit counter, one with one bit. */
static void test_clock_bits(void **unused)
{
	(void)unused;
	check("clock:bits=1", 2, "aaabcda", "mhhmmmm");
	check("clock:bits=2", 2, "aaabcda", "mhhmmmh");
	check("clock:bits=2", 2, "aaabcdea", "mhhmmmmm");
}

/* The hand spares `a` once and then sifts newcomers, while `a` keeps its place at the tail. */
static void test_sieve(void **unused)
{
	(void)unused;
	check("sieve", 3, "abcadefabga", "mmmhmmmhmmh");
	check("lru", 3, "abcadefabga", "mmmhmmmmmmh");
}

/* small 1, main 4, ghost 4. `a` earns main in small; b, c, d, e come back from the ghost; e makes
 * main overfull, so `b` leaves from there (its hit saves `a`) and is not remembered. */
static void test_s3fifo(void **unused)
{
	(void)unused;
	check("s3fifo:small=20", 5, "aaabcdefbacedgehab", "mhhmmmmmmhmhmmmmhm");
	/* One hit suffices with move=1: `a` survives the scan, else it does not. */
	check("s3fifo:small=20,move=1", 5, "aabcdefa", "mhmmmmmh");
	check("s3fifo:small=20,move=2", 5, "aabcdefa", "mhmmmmmm");
}

/* B1 hit (c) grows p and takes `a` from T2, B2 hit (a) shrinks it again. */
static void test_arc(void **unused)
{
	(void)unused;
	check("arc", 2, "abacdcdadc", "mmhmmmhmhm");
}

/* in 1, out 2: hits in `in` do not move a page, b has been forgotten when it comes back, e has not.
 */
static void test_twoq(void **unused)
{
	(void)unused;
	check("twoq", 4, "abcdeaafdgbea", "mmmmmmhmhmmmh");
}

/* Two segments of two: the first four pages fill both; a's promotion demotes c. */
static void test_slru(void **unused)
{
	(void)unused;
	check("slru:segments=2", 4, "abcdaebdcae", "mmmmhmmhmhm");
	/* One segment is LRU. */
	check("slru:segments=1", 3, "abcadabcda", "mmmhmhmmmm");
}

/* Five pages in two segments: the odd page is the lower segment's until a demotion takes it back.
 */
static void test_slru_leftover(void **unused)
{
	(void)unused;
	check("slru:segments=2", 5, "abcdeabf", "mmmmmhmm");
}

/* LIR a and b; c comes back while in the stack and takes a's role; a, hit twice in a row, takes
 * b's. */
static void test_lirs(void **unused)
{
	(void)unused;
	check("lirs:hir=34", 3, "abcdcaabdc", "mmmmmhhhmh");
	/* c is forgotten when d leaves: it comes back as HIR, and a stays LIR. One more ghost, and
	 * it is not. */
	check("lirs:hir=34,ghosts=34", 3, "abcdecfa", "mmmmmmmh");
	check("lirs:hir=34,ghosts=67", 3, "abcdecfa", "mmmmmmmm");
}

/* small 1, main 4: b..e come back from the ghost; e finds main full and b leaves, for `a` was hit.
 */
static void test_qdlp(void **unused)
{
	(void)unused;
	check("qdlp:small=20", 5, "aabcdefbacdeab", "mhmmmmmmhmmmhm");
}

static void test_lfu(void **unused)
{
	(void)unused;
	check("lfu", 3, "aabbcdcabcec", "mhmhmmmhhhmm");
	/* Ties: the first to reach the count leaves. */
	check("lfu", 3, "abcdbca", "mmmmhhm");
}

/* window 1, protected 1: newcomers lose against `a` until it is protected, then beat the others. */
static void test_wtinylfu(void **unused)
{
	(void)unused;
	check("wtinylfu:window=25,protected=50", 4, "aaabcdedeadbae", "mhhmmmmmmhmmhh");
}

/* The textbook sequence: seven faults with three frames. */
static void test_belady(void **unused)
{
	(void)unused;
	check("belady", 3, "abcdabeabcde", "mmmmhhmhhmmh");
}

static void test_static(void **unused)
{
	(void)unused;
	check("static", 2, "abacabd", "mmhmhhm");
	/* Ties: the page that appears first. Everything fits: first touches only. */
	check("static", 2, "abcabc", "mmmhhm");
	check("static", 9, "abcabc", "mmmhhh");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo_lru_clock),
		cmocka_unit_test(test_clock_bits),
		cmocka_unit_test(test_sieve),
		cmocka_unit_test(test_s3fifo),
		cmocka_unit_test(test_arc),
		cmocka_unit_test(test_twoq),
		cmocka_unit_test(test_slru),
		cmocka_unit_test(test_slru_leftover),
		cmocka_unit_test(test_lirs),
		cmocka_unit_test(test_qdlp),
		cmocka_unit_test(test_lfu),
		cmocka_unit_test(test_wtinylfu),
		cmocka_unit_test(test_belady),
		cmocka_unit_test(test_static),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
