/* SPDX-License-Identifier: MIT
 *
 * Real traces, where the shared ones are there: their counts, and that several forms of one trace
 * are one.
 */
#include "test_trace.h"

#include <errno.h>

static void count_trace(const char *name, bool objects, uint64_t accesses, uint32_t unique)
{
	const char *path = shared_trace(name);
	const struct trace_options options = {.objects = objects};
	struct resolved r;
	struct err err = {""};

	if (trace_resolve(&path, 1, &options, 0, NULL, NULL, &r, &err))
		fail_msg("%s", err.text);
	if (r.n != accesses || r.nr_ids != unique)
		fail_msg("%s: %llu accesses, %u pages; wanted %llu, %u", name,
			 (unsigned long long)r.n, r.nr_ids, (unsigned long long)accesses, unique);
	resolved_free(&r);
}

static void test_counts(void **state)
{
	(void)state;
	count_trace("w106.u32.zst", true, 5292456, 275171);
	count_trace("oltp.u32.zst", true, 914145, 186880);
	count_trace("arc-OLTP.lis.zst", true, 914145, 186880);
	count_trace("arc-P3.u32.zst", false, 3912296, 762543);
	count_trace("scarab-recs.u64.zst", true, 1245184, 258368);
	count_trace("orm-busy.u32.zst", true, 5000000, 76349);
	count_trace("lirs-multi3.oracleGeneral.zst", false, 30241, 7454);
	count_trace("lirs-multi3.oracleGeneral.zst", true, 30241, 7454);
	count_trace("lirs-multi3.trace.gz", false, 30241, 7454);
	count_trace("lirs-sprite.oracleGeneral.zst", false, 133996, 7075);
	count_trace("lirs-2_pools.u32.zst", false, 100000, 9939);
	count_trace("lirs-loop.u32.zst", false, 505500, 1011);
	count_trace("lirs-zigzag.trace.gz", false, 52001, 2001);
	count_trace("address-gzip.trace.gz", false, 481044, 39856);
	count_trace("address-mcf.trace.gz", false, 727230, 1442);
}

static void load(const char *name, bool objects, struct resolved *r)
{
	const char *path = shared_trace(name);
	const struct trace_options options = {.objects = objects};
	struct err err = {""};

	if (trace_resolve(&path, 1, &options, 0, NULL, NULL, r, &err))
		fail_msg("%s", err.text);
}

static void check_same(const char *a, const char *b, bool objects, bool numbers)
{
	struct resolved x, y;

	load(a, objects, &x);
	load(b, objects, &y);
	assert_int_equal(x.n, y.n);
	assert_int_equal(x.nr_ids, y.nr_ids);
	assert_memory_equal(x.ids, y.ids, x.n * sizeof(*x.ids));
	if (numbers)
		assert_memory_equal(x.pages, y.pages, x.nr_ids * sizeof(*x.pages));
	resolved_free(&x);
	resolved_free(&y);
}

static void test_forms(void **state)
{
	(void)state;
	check_same("arc-OLTP.lis.zst", "oltp.u32.zst", false, false);
	check_same("lirs-multi3.oracleGeneral.zst", "lirs-multi3.trace.gz", false, false);
	check_same("cloudPhysicsIO.csv.xz", "cloudPhysicsIO.vscsi.xz", true, true);
	check_same("cloudPhysicsIO.csv.xz", "cloudPhysicsIO.oracleGeneral.zst", true, true);
	check_same("cloudPhysicsIO.csv.xz", "cloudPhysicsIO.vscsi.xz", false, true);
}

static void test_cloudphysics_counts(void **state)
{
	(void)state;
	count_trace("cloudPhysicsIO.oracleGeneral.zst", false, 1182153, 268270);
	count_trace("cloudPhysicsIO.oracleGeneral.zst", true, 113872, 48974);
	count_trace("cloudPhysicsIO.csv.xz", true, 113872, 48974);
	count_trace("cloudPhysicsIO.vscsi.xz", true, 113872, 48974);
}

static size_t read_all(const char *name, bool objects, struct trace_record **records)
{
	const struct trace_options options = {.objects = objects};
	struct trace *trace;
	struct err err = {""};
	ssize_t n;

	if (trace_open(shared_trace(name), &options, &trace, &err))
		fail_msg("%s", err.text);
	n = slurp(trace, records, 4096, &err);
	trace_close(trace);
	assert_true(n > 0);
	return (size_t)n;
}

/* The oracleGeneral form gives every request the size of the first request to its sector, so its
 * pages differ from the others' only there: with the same rule applied to the vscsi form they are
 * equal. */
static void test_cloudphysics_pages(void **state)
{
	struct trace_record *oracle, *vscsi, *ids, **first;
	struct resolved r;
	size_t n = read_all("cloudPhysicsIO.vscsi.xz", false, &vscsi);

	(void)state;
	assert_int_equal(read_all("cloudPhysicsIO.oracleGeneral.zst", false, &oracle), n);
	assert_int_equal(read_all("cloudPhysicsIO.vscsi.xz", true, &ids), n);
	load("cloudPhysicsIO.vscsi.xz", true, &r);
	first = calloc(r.nr_ids, sizeof(struct trace_record *));
	assert_non_null(first);
	for (size_t i = 0; i < n; i++) {
		if (!first[r.ids[i]])
			first[r.ids[i]] = &vscsi[i];
		assert_true(r.pages[r.ids[i]] == ids[i].page);
		assert_true(oracle[i].page == vscsi[i].page);
		assert_int_equal(oracle[i].nr, first[r.ids[i]]->nr);
	}
	free(first);
	free(oracle);
	free(vscsi);
	free(ids);
	resolved_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_cloudphysics_counts),
		cmocka_unit_test(test_cloudphysics_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
