/* SPDX-License-Identifier: MIT
 *
 * Two tenants in one pool: an index that is looked up again and again, and scans that never come back
 * to a page. Without limits the policy alone decides; with them the index keeps what it is promised,
 * and the scans never have more than their share. Prints each group's memory and what the index missed.
 *
 * usage: groups [POLICY]
 */
#include <stdio.h>
#include <stdlib.h>

#include <foliage/cache.h>
#include <foliage/group.h>

enum { PAGE = 4096, INDEX = 1, SCANS = 2, INDEX_PAGES = 1500, ROUNDS = 20 };

/* One access by a group; 1: the page had to be brought in. */
static int use(struct foliage_group *group, struct foliage_pool *pool, int kind, uint64_t object,
	       uint64_t number)
{
	struct foliage_page *page;
	int r = foliage_group_fetch(group, pool, object, number, kind, FOLIAGE_FETCH_CREATE, &page);

	if (r < 0) {
		fprintf(stderr, "groups: no room for page %llu\n", (unsigned long long)number);
		exit(1);
	}
	if (r == FOLIAGE_NEW)
		foliage_pool_ready(pool, page); /* a real program reads it first */
	foliage_pool_unpin(pool, page, 0);
	return r == FOLIAGE_NEW;
}

static int show(void *ctx, struct foliage_group *group, const char *path)
{
	struct foliage_group_stats stats;

	(void)ctx;
	if (!foliage_group_stats(group, &stats))
		printf("%-8s %8llu KiB, %llu refaults, %llu times at its max\n", path,
		       (unsigned long long)stats.current >> 10, (unsigned long long)stats.refaults,
		       (unsigned long long)stats.max_events);
	return 0;
}

static void run(const char *policy, int limits)
{
	const struct foliage_pool_options options = {
		.bytes = 16 << 20, .policy = policy, .max_groups = 2};
	struct foliage_group *index, *scans;
	struct foliage_pool *pool;
	char message[200];
	uint64_t scanned = 0;
	unsigned int misses = 0;
	int kind;

	if (foliage_pool_create(&options, &pool, message, sizeof(message))) {
		fprintf(stderr, "groups: %s\n", message);
		exit(1);
	}
	kind = foliage_pool_kind(pool, PAGE, 0);
	if (foliage_group_create(foliage_pool_group(pool), "index", &index) ||
	    foliage_group_create(foliage_pool_group(pool), "scans", &scans))
		exit(1);
	if (limits && (foliage_group_set(index, FOLIAGE_GROUP_LOW, 8 << 20) ||
		       foliage_group_set(scans, FOLIAGE_GROUP_MAX, 4 << 20)))
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint64_t number = 0; number < INDEX_PAGES; number++)
			misses += use(index, pool, kind, INDEX, number);
		for (int i = 0; i < 20000; i++)
			use(scans, pool, kind, SCANS, scanned++);
	}
	printf("%s limits: %u misses of the index in %d look-ups\n", limits ? "with" : "without",
	       misses, ROUNDS * INDEX_PAGES);
	foliage_group_each(foliage_pool_group(pool), show, NULL);
	foliage_pool_destroy(pool);
}

int main(int argc, char **argv)
{
	const char *policy = argc > 1 ? argv[1] : "fg";

	run(policy, 0);
	run(policy, 1);
	return 0;
}
