/* SPDX-License-Identifier: MIT
 *
 * Reference policies on random sequences: against models so naive that they are the definition, and
 * against what is true of any policy (residents never exceed the room, a hit is a hit because the
 * page is there, nothing leaves while there is space), known from the events that a policy reports.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "machine/room.h"

enum { NR_IDS = 400, NR_ACCESSES = 20000 };

struct sequence {
	uint32_t ids[NR_ACCESSES];
	uint64_t next[NR_ACCESSES];
	uint32_t counts[NR_IDS];
};

/* A skewed mix with scans and a drifting working set, ids in order of first appearance. */
static void sequence_make(struct sequence *s, uint64_t seed)
{
	uint32_t id_of[NR_IDS], nr = 0, scan = 0;
	uint64_t later[NR_IDS];

	memset(s, 0, sizeof(*s));
	memset(id_of, 0xff, sizeof(id_of));
	for (uint32_t i = 0; i < NR_ACCESSES; i++) {
		double u = splitmix64_unit(&seed);
		uint32_t page = (uint32_t)(u * u * u * (NR_IDS - 1));

		if (i / 500 % 4 == 3)
			page = scan++ % NR_IDS;
		else
			page = (page + i / 2000 * 7) % NR_IDS;
		if (id_of[page] == UINT32_MAX)
			id_of[page] = nr++;
		s->ids[i] = id_of[page];
	}
	memset(later, 0xff, sizeof(later));
	for (uint32_t i = NR_ACCESSES; i-- > 0;) {
		s->next[i] = later[s->ids[i]];
		later[s->ids[i]] = i;
		s->counts[s->ids[i]]++;
	}
}

static struct foliage_policy_env sequence_env(const struct sequence *s, uint32_t room)
{
	return (struct foliage_policy_env){.room = room,
					   .nr_ids = NR_IDS,
					   .nr_accesses = NR_ACCESSES,
					   .next = s->next,
					   .counts = s->counts,
					   .scale = 1};
}

static struct room *open_room(const char *text, const struct foliage_policy_env *env)
{
	struct policy_choice choice;
	struct room *room = NULL;
	struct err err = {0};

	if (policy_parse(text, &choice, &err) || room_open(&choice, env, &room, &err))
		fail_msg("%s", err.text);
	policy_choice_free(&choice);
	return room;
}

static uint64_t misses_of(const char *text, const struct sequence *s, uint32_t room_pages)
{
	struct foliage_policy_env env = sequence_env(s, room_pages);
	struct room *room = open_room(text, &env);
	struct foliage_stats stats;

	assert_int_equal(room_run(room, s->ids, NULL, NR_ACCESSES), 0);
	room_stats(room, &stats);
	room_close(room);
	return stats.misses;
}

/* ---- models ---- */

struct resident {
	uint32_t id, refs;
	uint64_t came, used, next;
};

struct model {
	struct resident pages[NR_IDS];
	uint32_t nr, room;
	/* Which of a full room leaves; may change the others. */
	uint32_t (*victim)(struct model *m, uint64_t now);
};

static uint32_t victim_fifo(struct model *m, uint64_t now)
{
	uint32_t best = 0;

	(void)now;
	for (uint32_t i = 1; i < m->nr; i++)
		if (m->pages[i].came < m->pages[best].came)
			best = i;
	return best;
}

static uint32_t victim_lru(struct model *m, uint64_t now)
{
	uint32_t best = 0;

	(void)now;
	for (uint32_t i = 1; i < m->nr; i++)
		if (m->pages[i].used < m->pages[best].used)
			best = i;
	return best;
}

static uint32_t victim_clock(struct model *m, uint64_t now)
{
	for (uint64_t turn = 1;; turn++) {
		uint32_t oldest = victim_fifo(m, now);

		if (!m->pages[oldest].refs)
			return oldest;
		m->pages[oldest].refs = 0;
		/* Behind all that are here, in the order of turns: times go in steps of 1024. */
		m->pages[oldest].came = now * 1024 + turn;
	}
}

static uint32_t victim_lfu(struct model *m, uint64_t now)
{
	uint32_t best = 0;

	(void)now;
	for (uint32_t i = 1; i < m->nr; i++) {
		const struct resident *a = &m->pages[i], *b = &m->pages[best];

		if (a->refs < b->refs || (a->refs == b->refs && a->used < b->used))
			best = i;
	}
	return best;
}

static uint32_t victim_belady(struct model *m, uint64_t now)
{
	uint32_t best = 0;

	(void)now;
	for (uint32_t i = 1; i < m->nr; i++)
		if (m->pages[i].next > m->pages[best].next)
			best = i;
	return best;
}

static bool model_access(struct model *m, uint32_t id, uint64_t now, uint64_t next)
{
	uint32_t i;

	for (i = 0; i < m->nr && m->pages[i].id != id; i++)
		;
	if (i < m->nr) {
		m->pages[i].refs++;
		m->pages[i].used = now;
		m->pages[i].next = next;
		return true;
	}
	if (m->nr == m->room) {
		i = m->victim(m, now);
		m->pages[i] = m->pages[--m->nr];
	}
	m->pages[m->nr++] =
		(struct resident){.id = id, .came = now * 1024 + 1023, .used = now, .next = next};
	return false;
}

static void check_model(const char *policy, uint32_t (*victim)(struct model *m, uint64_t now))
{
	static const uint32_t rooms[] = {8, 9, 40, 127, 399};
	struct sequence *s = malloc(sizeof(*s));
	struct model *m = malloc(sizeof(*m));

	for (uint64_t round = 0; round < ARRAY_SIZE(rooms); round++) {
		uint64_t misses = 0;

		sequence_make(s, round);
		memset(m, 0, sizeof(*m));
		m->room = rooms[round];
		m->victim = victim;
		for (uint32_t i = 0; i < NR_ACCESSES; i++)
			misses += !model_access(m, s->ids[i], i, s->next[i]);
		assert_int_equal(misses_of(policy, s, rooms[round]), misses);
	}
	free(m);
	free(s);
}

static void test_fifo(void **unused)
{
	(void)unused;
	check_model("fifo", victim_fifo);
}

static void test_lru(void **unused)
{
	(void)unused;
	check_model("lru", victim_lru);
	check_model("slru:segments=1", victim_lru);
}

static void test_clock(void **unused)
{
	(void)unused;
	check_model("clock", victim_clock);
}

static void test_lfu(void **unused)
{
	(void)unused;
	check_model("lfu", victim_lfu);
}

static void test_belady(void **unused)
{
	(void)unused;
	check_model("belady", victim_belady);
}

/* ---- what holds for any policy ---- */

struct witness {
	const char *policy;
	uint64_t here[(NR_IDS + 63) / 64], before[(NR_IDS + 63) / 64];
	uint32_t nr, room;
	bool evicted, hit;
};

static void on_event(void *ctx, const struct foliage_event *event)
{
	struct witness *w = ctx;

	switch (event->what) {
	case FOLIAGE_EV_EVICT:
		if (!bit_test(w->here, event->id))
			fail_msg("%s: evicts a page that is not there", w->policy);
		if (!w->evicted && w->nr < w->room)
			fail_msg("%s: evicts with %u of %u pages", w->policy, w->nr, w->room);
		w->evicted = true;
		bit_clear(w->here, event->id);
		w->nr--;
		break;
	case FOLIAGE_EV_ACCESS:
		if (!bit_test(w->here, event->id))
			fail_msg("%s: a hit of a page that is not there", w->policy);
		w->hit = true;
		break;
	case FOLIAGE_EV_INSERT:
	case FOLIAGE_EV_REFAULT:
		/* It may have been evicted by its own access: W-TinyLFU's candidate is another
		 * page. */
		if (bit_test(w->here, event->id))
			fail_msg("%s: a miss of a page that is there", w->policy);
		assert_int_equal(bit_test(w->before, event->id), event->what == FOLIAGE_EV_REFAULT);
		bit_set(w->before, event->id);
		bit_set(w->here, event->id);
		w->nr++;
		break;
	default:
		break;
	}
}

static void check_any(const char *policy, const struct sequence *s, uint32_t room_pages)
{
	struct witness w = {.policy = policy, .room = room_pages};
	struct foliage_policy_env env = sequence_env(s, room_pages);
	struct foliage_stats stats;
	struct room *room = NULL;
	uint64_t misses = 0;

	env.event = on_event;
	env.event_ctx = &w;
	room = open_room(policy, &env);
	for (uint32_t i = 0; i < NR_ACCESSES; i++) {
		w.hit = false;
		assert_int_equal(room_run(room, &s->ids[i], NULL, 1), 0);
		misses += !w.hit;
		if (w.nr > room_pages)
			fail_msg("%s: %u pages in a room of %u", policy, w.nr, room_pages);
	}
	room_stats(room, &stats);
	assert_int_equal(stats.accesses, NR_ACCESSES);
	assert_int_equal(stats.misses, misses);
	assert_int_equal(stats.hits + stats.misses, stats.accesses);
	assert_int_equal(stats.refaults, stats.misses - NR_IDS);
	assert_int_equal(stats.stolen, stats.misses - w.nr);
	assert_true(stats.scanned >= stats.stolen);
	room_close(room);
	/* Telling about it changes nothing, and neither does running in one go. */
	assert_int_equal(misses_of(policy, s, room_pages), misses);
}

static void test_any(void **unused)
{
	static const uint32_t rooms[] = {8, 11, 50, 120};
	struct sequence *s = malloc(sizeof(*s));

	(void)unused;
	sequence_make(s, 42);
	for (uint32_t id = 0; id < NR_IDS; id++)
		assert_true(s->counts[id] > 0);
	for (size_t i = 0; foliage_policies[i]; i++) {
		const struct foliage_policy *policy = foliage_policies[i];

		if (policy->engine || !strcmp(policy->name, "static"))
			continue;
		for (size_t r = 0; r < ARRAY_SIZE(rooms); r++)
			check_any(policy->name, s, rooms[r]);
	}
	free(s);
}

/* No policy beats the optimum, and each does better in more room than in none to speak of. */
static void test_bounds(void **unused)
{
	struct sequence *s = malloc(sizeof(*s));
	uint64_t best;

	(void)unused;
	sequence_make(s, 7);
	best = misses_of("belady", s, 60);
	for (size_t i = 0; foliage_policies[i]; i++) {
		const char *name = foliage_policies[i]->name;

		if (foliage_policies[i]->engine)
			continue;
		assert_true(misses_of(name, s, 60) >= best || !strcmp(name, "static"));
		assert_true(misses_of(name, s, 200) < misses_of(name, s, 8));
		assert_int_equal(misses_of(name, s, 800), NR_IDS);
	}
	free(s);
}

/* Every knob does something. */
static void test_knobs_matter(void **unused)
{
	static const char *const texts[] = {
		"clock:bits=2",       "s3fifo:small=30",   "s3fifo:ghost=20",
		"s3fifo:move=1",      "twoq:kin=50",       "twoq:kout=10",
		"slru:segments=2",    "lirs:hir=20",       "qdlp:small=30",
		"qdlp:ghost=20",      "qdlp:move=2",       "qdlp:bits=1",
		"wtinylfu:window=20", "wtinylfu:sample=1", "wtinylfu:protected=20",
		"lirs:ghosts=10",
	};
	struct sequence *s = malloc(sizeof(*s));
	size_t nr_knobs = 0;

	(void)unused;
	sequence_make(s, 3);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(texts[i], ":"), texts[i]);
		if (misses_of(texts[i], s, 50) == misses_of(name, s, 50))
			fail_msg("%s is the same as the default", texts[i]);
	}
	for (size_t i = 0; foliage_policies[i]; i++) {
		if (foliage_policies[i]->engine)
			continue;
		for (const struct foliage_knob *k = foliage_policies[i]->knobs; k && k->name; k++)
			nr_knobs++;
	}
	assert_int_equal(nr_knobs, ARRAY_SIZE(texts));
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo),   cmocka_unit_test(test_lru),
		cmocka_unit_test(test_clock),  cmocka_unit_test(test_lfu),
		cmocka_unit_test(test_belady), cmocka_unit_test(test_any),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_knobs_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
