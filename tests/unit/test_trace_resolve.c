/* SPDX-License-Identifier: MIT
 *
 * Resolution, what is derived from it, and reuse distances, each against a slow and simple twin.
 */
#include "test_trace.h"

#include <errno.h>
#include <unistd.h>

#include "base/rng.h"
#include "foliage/policy.h"
#include "trace/distance.h"
#include "trace/resolve.h"

static void resolve_records(const struct trace_record *records, size_t n, uint64_t limit,
			    struct resolved *out)
{
	struct resolver *r;

	assert_int_equal(resolver_open(limit, &r), 0);
	for (size_t i = 0; i < n; i += 700)
		assert_true(resolver_add(r, records + i, n - i < 700 ? n - i : 700) >= 0);
	resolver_finish(r, out);
}

static void resolve_pages(const uint64_t *pages, size_t n, struct resolved *out)
{
	struct trace_record *records = calloc(n, sizeof(*records));

	assert_non_null(records);
	for (size_t i = 0; i < n; i++)
		records[i] = (struct trace_record){.page = pages[i], .nr = 1};
	resolve_records(records, n, 0, out);
	free(records);
}

static void test_ids(void **state)
{
	const uint64_t pages[] = {9, 7, 9, UINT64_MAX, 0, 7, 0};
	const uint32_t ids[] = {0, 1, 0, 2, 3, 1, 3};
	struct resolved r;

	(void)state;
	resolve_pages(pages, 7, &r);
	assert_int_equal(r.n, 7);
	assert_int_equal(r.nr_ids, 4);
	assert_memory_equal(r.ids, ids, sizeof(ids));
	assert_int_equal(r.pages[2], UINT64_MAX);
	assert_int_equal(r.pages[3], 0);
	assert_null(r.ops);
	resolved_free(&r);
}

/* First appearances count up, and pages[] undoes ids[]; through several growths of every table. */
static void check_many(uint64_t (*page)(uint64_t *seed), size_t n)
{
	uint64_t *pages = malloc(n * sizeof(*pages)), seed = 1;
	struct resolved r;
	uint32_t fresh = 0;

	assert_non_null(pages);
	for (size_t i = 0; i < n; i++)
		pages[i] = page(&seed);
	resolve_pages(pages, n, &r);
	assert_int_equal(r.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(r.ids[i] <= fresh);
		fresh += r.ids[i] == fresh;
		assert_true(r.pages[r.ids[i]] == pages[i]);
	}
	assert_int_equal(fresh, r.nr_ids);
	/* No page twice: ranks of distinct pages are a permutation that sorts. */
	assert_int_equal(resolved_order(&r), 0);
	for (uint32_t id = 0; id < r.nr_ids; id++)
		pages[r.order[id]] = r.pages[id];
	for (uint32_t rank = 1; rank < r.nr_ids; rank++)
		assert_true(pages[rank - 1] < pages[rank]);
	resolved_free(&r);
	free(pages);
}

static uint64_t any_page(uint64_t *seed)
{
	return splitmix64(seed);
}

static uint64_t close_page(uint64_t *seed)
{
	return splitmix64_below(seed, 300000);
}

static uint64_t strided_page(uint64_t *seed)
{
	return (uint64_t)splitmix64_below(seed, 100000) << 32;
}

static void test_many(void **state)
{
	(void)state;
	check_many(any_page, 300000);
	check_many(close_page, 500000);
	check_many(strided_page, 300000);
}

static void test_next_and_counts(void **state)
{
	enum { N = 3000 };
	uint64_t pages[N], seed = 2;
	struct resolved r;

	(void)state;
	for (size_t i = 0; i < N; i++)
		pages[i] = splitmix64_below(&seed, 400);
	resolve_pages(pages, N, &r);
	assert_int_equal(resolved_next(&r), 0);
	assert_int_equal(resolved_counts(&r), 0);
	for (size_t i = 0; i < N; i++) {
		uint64_t next = i + 1, count = 0;

		while (next < N && pages[next] != pages[i])
			next++;
		assert_true(r.next[i] == (next < N ? next : FOLIAGE_NEVER));
		for (size_t k = 0; k < N; k++)
			count += pages[k] == pages[i];
		assert_int_equal(r.counts[r.ids[i]], count);
	}
	resolved_free(&r);
}

static void test_ops_files_and_requests(void **state)
{
	const struct trace_record records[] = {
		{.page = 5, .nr = 2},
		{.page = 5, .nr = 1, .file = 1, .op = TRACE_WRITE},
		{.page = 6, .nr = 1, .op = TRACE_LOAD},
		{.page = 5, .nr = 1, .file = 1, .op = TRACE_STORE},
		{.page = 5, .nr = 3, .op = TRACE_EXEC},
	};
	const uint32_t ids[] = {0, 1, 2, 1, 2, 0, 1, 3};
	const uint8_t ops[] = {
		0,
		0,
		FOLIAGE_ACCESS_WRITE,
		FOLIAGE_ACCESS_MAPPED,
		FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_WRITE,
		FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_EXEC,
		FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_EXEC,
		FOLIAGE_ACCESS_MAPPED | FOLIAGE_ACCESS_EXEC,
	};
	struct resolver *resolver;
	struct resolved r;

	(void)state;
	resolve_records(records, 5, 0, &r);
	assert_int_equal(r.n, 8);
	assert_memory_equal(r.ids, ids, sizeof(ids));
	assert_memory_equal(r.ops, ops, sizeof(ops));
	assert_int_equal(r.pages[2], UINT64_C(1) << 40 | 5);
	resolved_free(&r);
	/* The limit is told when it is reached, not one record later. */
	assert_int_equal(resolver_open(2, &resolver), 0);
	assert_int_equal(resolver_add(resolver, records, 1), 1);
	resolver_finish(resolver, &r);
	resolved_free(&r);
	for (uint64_t limit = 1; limit <= 8; limit++) {
		resolve_records(records, 5, limit, &r);
		assert_int_equal(r.n, limit);
		assert_memory_equal(r.ids, ids, limit * sizeof(*ids));
		resolved_free(&r);
	}
}

static bool stop_late(void *ctx, uint64_t accesses)
{
	*(uint64_t *)ctx = accesses;
	return accesses < 100000;
}

static void test_files(void **state)
{
	char paths[2][40] = {"/tmp/foliage-test-a.XXXXXX", "/tmp/foliage-test-b.XXXXXX"};
	const char *const list[2] = {paths[0], paths[1]};
	const struct trace_options options = {.format = "u32"};
	uint32_t pages[300000];
	struct resolved r;
	struct err err = {""};
	uint64_t seen = 0;

	(void)state;
	for (uint32_t i = 0; i < 300000; i++)
		pages[i] = i;
	for (int f = 0; f < 2; f++) {
		int fd = mkstemp(paths[f]);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, pages, f ? 40 : sizeof(pages)), f ? 40 : sizeof(pages));
		close(fd);
	}
	assert_int_equal(trace_resolve(list, 2, &options, 0, NULL, NULL, &r, &err), 0);
	assert_int_equal(r.n, 300010);
	assert_int_equal(r.nr_ids, 300000);
	assert_int_equal(r.ids[300009], 9);
	resolved_free(&r);
	assert_int_equal(trace_resolve(list, 2, &options, 7, NULL, NULL, &r, &err), 0);
	assert_int_equal(r.n, 7);
	resolved_free(&r);
	assert_int_equal(trace_resolve(list, 2, &options, 0, stop_late, &seen, &r, &err), -EINTR);
	assert_true(seen >= 100000 && r.n >= seen && r.n < 300000);
	assert_int_equal(r.ids[100000], 100000);
	resolved_free(&r);
	assert_int_equal(truncate(paths[1], 6), 0);
	assert_int_equal(trace_resolve(list + 1, 1, &options, 0, NULL, NULL, &r, &err), -EILSEQ);
	assert_null(r.ids);
	assert_int_equal(truncate(paths[1], 0), 0);
	assert_int_equal(trace_resolve(list + 1, 1, &options, 0, NULL, NULL, &r, &err), -ENODATA);
	unlink(paths[0]);
	unlink(paths[1]);
}

static void test_distances(void **state)
{
	enum { N = 20000, PAGES = 300 };
	uint64_t pages[N], seed = 4, count[PAGES] = {0}, expected[PAGES] = {0};
	struct resolved r;

	(void)state;
	for (size_t i = 0; i < N; i++)
		pages[i] = splitmix64_below(&seed, splitmix64_below(&seed, 4) ? PAGES / 10 : PAGES);
	resolve_pages(pages, N, &r);
	assert_int_equal(r.nr_ids, PAGES);
	for (size_t i = 0; i < N; i++) {
		bool between[PAGES] = {false};
		size_t distance = 0, k = i;

		while (k-- > 0 && pages[k] != pages[i]) {
			distance += !between[pages[k]];
			between[pages[k]] = true;
		}
		if (k != SIZE_MAX)
			expected[distance]++;
	}
	assert_int_equal(trace_distances(&r, count, NULL, NULL), 0);
	assert_memory_equal(count, expected, sizeof(count));
	resolved_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_next_and_counts),
		cmocka_unit_test(test_ops_files_and_requests),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_distances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
