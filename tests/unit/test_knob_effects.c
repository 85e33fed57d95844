/* SPDX-License-Identifier: MIT
 *
 * Every knob of the multi-gen family: its default, under every name that offers it, and the tests
 * that fail when its effect changes. A new knob must come here.
 *
 *   tail_mode, refs_max, cap_promote, pt_promote_scope     test_fg_refs
 *   activated, cap_bump, cap_refault                        test_fg_evict
 *   pageout_cap, gup_fast                                   test_advice
 *   gain_base, gain_tier, histgens                          test_gen_feedback
 *   memcg_abort                                             test_gen_evict
 *   fault_add, lift, file_far, noio, noio_fold, credit_*    test_mainline_place
 *   rmap_refs, restore_only                                 test_mainline_refs
 */
#include "test_gen_common.h"
#include "mm/policies.h"

struct expected {
	const char *name;
	uint32_t offset; /* in struct gen_knobs */
	uint32_t value;
};

#define KNOB(name, value)                                                                          \
	{                                                                                          \
#name, offsetof(struct gen_knobs, name), value                                     \
	}

static const struct expected fg[] = {
	KNOB(tail_mode, TAIL_MODE_TAIL),
	KNOB(pt_promote_scope, PT_SCOPE_TAIL),
	KNOB(activated, 2),
	KNOB(refs_max, 7),
	KNOB(cap_promote, 3),
	KNOB(cap_bump, 2),
	KNOB(cap_refault, 3),
	KNOB(pageout_cap, 2),
	KNOB(gup_fast, GUP_FAST_FLOOR),
	KNOB(gain_base, 1),
	KNOB(gain_tier, 2),
	KNOB(memcg_abort, 1),
	KNOB(histgens, 0),
};

#define MAINLINE(fault_add_, lift_, file_far_, rmap_refs_, restore_only_, noio_)                   \
	{                                                                                          \
		KNOB(fault_add, fault_add_), KNOB(lift, lift_), KNOB(file_far, file_far_),         \
			KNOB(rmap_refs, rmap_refs_), KNOB(restore_only, restore_only_),            \
			KNOB(noio, noio_), KNOB(noio_fold, 0), KNOB(credit_batch, 64),             \
			KNOB(credit_cap, 8), KNOB(credit_decay, 1), KNOB(memcg_abort, 1),          \
			KNOB(histgens, 0), KNOB(gain_base, 2), KNOB(gain_tier, 3),                 \
	}

static const struct expected mainline[][14] = {
	MAINLINE(FAULT_ADD_MARK, 1, 0, 1, 1, 0),   MAINLINE(FAULT_ADD_ACTIVE, 0, 0, 0, 0, 0),
	MAINLINE(FAULT_ADD_ACTIVE, 0, 1, 0, 0, 0), MAINLINE(FAULT_ADD_MARK, 2, 0, 1, 1, 0),
	MAINLINE(FAULT_ADD_CREDIT, 1, 0, 1, 1, 0), MAINLINE(FAULT_ADD_MARK, 1, 0, 1, 1, 1),
};

static const struct expected v612[] = {
	KNOB(memcg_abort, 0),
	KNOB(histgens, 0),
	KNOB(gain_base, 1),
	KNOB(gain_tier, 2),
};

static const struct {
	const char *policy;
	const struct expected *knobs;
	size_t nr;
} policies[] = {
	{"fg", fg, ARRAY_SIZE(fg)},
	{"mglru", mainline[0], ARRAY_SIZE(mainline[0])},
	{"mglru-revert", mainline[1], ARRAY_SIZE(mainline[1])},
	{"mglru-quickfix", mainline[2], ARRAY_SIZE(mainline[2])},
	{"mglru-oneline", mainline[3], ARRAY_SIZE(mainline[3])},
	{"mglru-credit", mainline[4], ARRAY_SIZE(mainline[4])},
	{"mglru-noio", mainline[5], ARRAY_SIZE(mainline[5])},
	{"mglru-6.12", v612, ARRAY_SIZE(v612)},
};

static uint32_t value_of(const struct gen_knobs *k, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)k + offset, sizeof(value));
	return value;
}

static void test_defaults(void **unused)
{
	(void)unused;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		const struct foliage_policy *policy = policy_find(policies[p].policy);
		struct gen_knobs k = {0};

		assert_non_null(policy);
		assert_int_equal(policy->knobs_size, sizeof(k));
		policy_knobs_default(policy, &k);
		for (size_t i = 0; i < policies[p].nr; i++)
			if (value_of(&k, policies[p].knobs[i].offset) != policies[p].knobs[i].value)
				fail_msg("%s: %s is %u", policy->name, policies[p].knobs[i].name,
					 value_of(&k, policies[p].knobs[i].offset));
	}
}

/* Each knob offered is in the table above, and sets its own field and no other. */
static void test_table(void **unused)
{
	(void)unused;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		const struct foliage_policy *policy = policy_find(policies[p].policy);
		size_t nr = 0;

		for (const struct foliage_knob *knob = policy->knobs; knob->name; knob++, nr++) {
			const struct expected *expected = NULL;
			struct gen_knobs before = {0}, after = {0};
			struct err err = {{0}};
			char text[64];

			for (size_t i = 0; i < policies[p].nr; i++)
				if (!strcmp(policies[p].knobs[i].name, knob->name))
					expected = &policies[p].knobs[i];
			if (!expected)
				fail_msg("%s: knob %s has no test", policy->name, knob->name);
			policy_knobs_default(policy, &before);
			policy_knobs_default(policy, &after);
			if (knob->names)
				snprintf(text, sizeof(text), "%s=%s", knob->name,
					 knob->names[expected->value == 0]);
			else
				snprintf(text, sizeof(text), "%s=%u", knob->name,
					 expected->value == (uint32_t)knob->max
						 ? (uint32_t)knob->min
						 : (uint32_t)knob->max);
			assert_int_equal(policy_knobs_parse(policy, &after, text, &err), 0);
			assert_int_not_equal(value_of(&after, expected->offset), expected->value);
			memcpy((char *)&after + expected->offset, &expected->value,
			       sizeof(uint32_t));
			assert_memory_equal(&before, &after, sizeof(before));
		}
		assert_int_equal(nr, policies[p].nr);
	}
}

/* The engine runs with the knobs it was given, and keeps them over a switch of others. */
static void test_engine_has_them(void **unused)
{
	struct world *w = world_window("fg:tail_mode=list,cap_bump=1", 7, 4);
	char message[128];

	(void)unused;
	assert_int_equal(gen_knobs(w->e)->tail_mode, TAIL_MODE_LIST);
	assert_int_equal(gen_knobs(w->e)->cap_bump, 1);
	assert_int_equal(gen_knobs(w->e)->refs_max, 7);
	assert_int_equal(foliage_engine_switch(w->e, &w->cpu, "mglru-quickfix:lift=3", message,
					       sizeof(message)),
			 0);
	assert_int_equal(gen_knobs(w->e)->lift, 3);
	assert_int_equal(gen_knobs(w->e)->file_far, 1);
	world_free(w);
}

/* ---- what a knob is worth in a run: hit counts of a small skewed workload move with each ---- */

static uint32_t hits(const char *policy)
{
	const struct world_options options = {.policy = policy, .nr_folios = 8192, .batch = 31};
	struct world *w = world_new(&options);
	uint64_t x = 88172645463325252u;
	uint32_t inside = 0, hit = 0;

	for (int i = 0; i < 60000; i++) {
		uint32_t page;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		/* The minimum of three: low numbers are hot. */
		page = (uint32_t)MIN(MIN(x % 4096, (x >> 20) % 4096), (x >> 40) % 4096);
		if (!world_present(w, page) && inside >= 600)
			inside -= (uint32_t)world_reclaim(w, 0, 32);
		if (world_read(w, page))
			hit++;
		else
			inside++;
	}
	world_check(w);
	world_free(w);
	return hit;
}

static void test_worth(void **unused)
{
	static const char *const variants[][2] = {
		{"fg", "fg:tail_mode=min"},
		{"fg", "fg:refs_max=3"},
		{"fg", "fg:cap_promote=1"},
		{"fg", "fg:cap_refault=0"},
		{"fg", "fg:gain_tier=1"},
		{"fg", "fg:memcg_abort=0"},
		{"fg", "mglru"},
		{"mglru", "mglru:lift=0"},
		{"mglru", "mglru-oneline"},
		{"mglru", "mglru-6.12"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		uint32_t a = hits(variants[i][0]), b = hits(variants[i][1]);

		if (a == b)
			fail_msg("%s and %s: %u hits both", variants[i][0], variants[i][1], a);
		assert_int_equal(hits(variants[i][1]), b); /* deterministic */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_engine_has_them),
		cmocka_unit_test(test_worth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
