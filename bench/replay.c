/* SPDX-License-Identifier: MIT
 *
 * Speed of the replay loop, as CPU time, best of five, each beside what it is compared with in the
 * same run:
 *
 *   touch     a loop that only reads the folio word of each access (same table, same prefetch): the
 *             floor
 *   policies  the replay of w106 at 10 %, or of a zipf trace of a million pages
 *   scaling   cost per access with 1 M and 10 M unique pages, room for 10 %
 *
 * bench_replay hits N  runs N hits and nothing else, for `bench/instructions.sh` to count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "machine/room.h"
#include "mm/folio.h"
#include "trace/trace.h"
#include "workload/zipf_oracle.h"

enum { ROUNDS = 5, PREFETCH = 24 };

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(2);
}

/* ---- the floor ---- */

static double touch_ns(const uint32_t *ids, size_t n, uint32_t nr_ids)
{
	size_t bytes = (size_t)nr_ids * sizeof(struct folio);
	struct folio *table = mem_table(bytes);
	double best = 1e9;

	if (!table)
		die("touch", "out of memory");
	for (uint32_t i = 0; i < nr_ids; i++)
		atomic_store_explicit(&table[i].flags, i & 1, memory_order_relaxed);
	for (int round = 0; round < ROUNDS; round++) {
		double start = cpu_seconds();
		uint64_t sum = 0;

		for (size_t i = 0; i < n; i++) {
			__builtin_prefetch(&table[ids[MIN(i + PREFETCH, n - 1)]]);
			sum += atomic_load_explicit(&table[ids[i]].flags, memory_order_acquire);
		}
		*(volatile uint64_t *)&table[0].handle = sum;
		best = MIN(best, cpu_seconds() - start);
	}
	mem_table_free(table, bytes);
	return best / (double)n * 1e9;
}

/* ---- policies ---- */

static double replay_ns(const char *policy, const uint32_t *ids, size_t n, uint32_t nr_ids,
			uint32_t room_pages, double *miss_ratio)
{
	struct foliage_policy_env env = {
		.room = room_pages, .nr_ids = nr_ids, .nr_accesses = n, .seed = 1, .scale = 1};
	struct policy_choice choice;
	struct foliage_stats stats;
	struct err err = {{0}};
	double best = 1e9;

	if (policy_parse(policy, &choice, &err))
		die(policy, err.text);
	for (int round = 0; round < ROUNDS; round++) {
		struct room *room;
		double start;

		if (room_open(&choice, &env, &room, &err))
			die(policy, err.text);
		start = cpu_seconds();
		if (room_run(room, ids, NULL, n))
			die(policy, "replay failed");
		best = MIN(best, cpu_seconds() - start);
		room_stats(room, &stats);
		room_close(room);
	}
	policy_choice_free(&choice);
	*miss_ratio = (double)stats.misses / (double)stats.accesses;
	return best / (double)n * 1e9;
}

static void compare(const char *name, const uint32_t *ids, size_t n, uint32_t nr_ids, uint32_t room)
{
	static const char *const policies[] = {"fg",    "mglru",  "clru", "lru",
					       "clock", "s3fifo", "arc"};
	double floor = touch_ns(ids, n, nr_ids);

	printf("\n%s: %zu accesses, %u pages, room %u\n", name, n, nr_ids, room);
	printf("%-10s %12s %12s %12s %12s\n", "", "ns/access", "M/s", "x touch", "miss ratio");
	printf("%-10s %12.2f %12.1f %12.2f\n", "touch", floor, 1e3 / floor, 1.0);
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		double miss_ratio, ns = replay_ns(policies[i], ids, n, nr_ids, room, &miss_ratio);

		printf("%-10s %12.2f %12.1f %12.2f %12.4f\n", policies[i], ns, 1e3 / ns, ns / floor,
		       miss_ratio);
		fflush(stdout);
	}
}

/* ---- inputs ---- */

static uint32_t *zipf_ids(uint32_t nr_ids, size_t n)
{
	struct zipf_oracle zipf;
	uint32_t *ids = malloc(n * sizeof(*ids));

	if (!ids || zipf_oracle_init(&zipf, nr_ids, 1.0, 1, 42))
		die("zipf", "out of memory");
	zipf_oracle_fill(&zipf, ids, n);
	zipf_oracle_free(&zipf);
	return ids;
}

static void bench_w106(const char *path)
{
	struct resolved r;
	struct err err = {{0}};
	double start = cpu_seconds(), seconds, ratio, ns;

	if (trace_resolve(&path, 1, &(struct trace_options){0}, 0, NULL, NULL, &r, &err)) {
		printf("SKIP: w106: %s\n", err.text);
		return;
	}
	seconds = cpu_seconds() - start;
	compare("w106", r.ids, r.n, r.nr_ids, r.nr_ids / 10);
	ns = replay_ns("fg", r.ids, r.n, r.nr_ids, r.nr_ids / 10, &ratio);
	printf("reading, unpacking and resolving: %.1f M/s; with the fg replay: %.1f M/s\n",
	       (double)r.n / seconds / 1e6,
	       (double)r.n / (seconds + ns * 1e-9 * (double)r.n) / 1e6);
	resolved_free(&r);
}

static void bench_scaling(void)
{
	const uint32_t sizes[] = {1000000, 10000000};
	double ns[2], ratio;

	for (int i = 0; i < 2; i++) {
		size_t n = (size_t)sizes[i] * 3;
		uint32_t *ids = malloc(n * sizeof(*ids));
		uint64_t state = 7;

		if (!ids)
			die("scaling", "out of memory");
		/* Skewed by squaring: mostly hits in a tenth of the pages, spread all over the
		 * table. */
		for (size_t j = 0; j < n; j++) {
			double u = splitmix64_unit(&state);

			ids[j] = (uint32_t)((uint64_t)(u * u * u * u * sizes[i]) * 2654435761u %
					    sizes[i]);
		}
		ns[i] = replay_ns("fg", ids, n, sizes[i], sizes[i] / 10, &ratio);
		printf("fg, %8u unique pages: %6.2f ns/access, miss ratio %.4f\n", sizes[i], ns[i],
		       ratio);
		free(ids);
	}
	printf("10 M against 1 M pages: %.2f times the cost per access\n", ns[1] / ns[0]);
}

static void run_hits(size_t n)
{
	enum { PAGES = 4096, CHUNK = 1 << 16 };
	static uint32_t ids[CHUNK];
	struct foliage_policy_env env = {.room = 2 * PAGES, .nr_ids = PAGES, .scale = 1};
	const char *policy = getenv("POLICY");
	struct policy_choice choice;
	struct room *room;
	struct err err = {{0}};
	uint64_t state = 1;

	if (policy_parse(policy ? policy : "fg", &choice, &err) ||
	    room_open(&choice, &env, &room, &err))
		die("hits", err.text);
	for (size_t i = 0; i < CHUNK; i++)
		ids[i] = splitmix64_below(&state, PAGES);
	for (size_t done = 0; done < n; done += CHUNK)
		room_run(room, ids, NULL, MIN(n - done, (size_t)CHUNK));
	room_close(room);
	policy_choice_free(&choice);
}

int main(int argc, char **argv)
{
	const char *shared = getenv("FOLIAGE_SHARED");
	char path[4096];
	uint32_t *ids;

	if (argc == 3 && !strcmp(argv[1], "hits")) {
		run_hits(strtoull(argv[2], NULL, 10));
		return 0;
	}
	printf("CPU time, best of %d, one thread\n", ROUNDS);
	snprintf(path, sizeof(path), "%s/traces/w106.u32.zst",
		 shared ? shared : FOLIAGE_SOURCE_DIR "/../shared");
	bench_w106(path);
	ids = zipf_ids(1000000, 10000000);
	compare("zipf 1.0", ids, 10000000, 1000000, 100000);
	free(ids);
	printf("\n");
	bench_scaling();
	return 0;
}
