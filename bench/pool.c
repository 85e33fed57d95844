/* SPDX-License-Identifier: MIT
 *
 * The pool beside what storage engines use today, in one run: keys zipf 1.0 over a million, equal
 * entry counts.
 *
 *   hits    every key is resident; fetch + unpin; ns each as wall time, with one thread and with
 *           two; CPU time beside, which other work on the machine disturbs less; what the second
 *           thread brings, from wall time and from CPU time
 *   misses  room for 10 % and 40 % of the keys; get or create; misses per access after as many
 *           accesses of warm-up
 *
 *
 * `bench_pool [all|hits|misses [PART OF A NAME]]`.
 *
 * Beside it: SQLite's own page cache (pcache1), which is not made for several threads and gets a
 * mutex for two, as its shared cache has; RocksDB's LRUCache and HyperClockCache where the library
 * was found.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/bits.h"
#include "foliage/cache.h"
#include "workload/zipf_oracle.h"
#ifdef HAVE_SQLITE
#include <sqlite3.h>
#endif

enum { KEYS = 1000000, ACCESSES = 8000000, ROUNDS = 5, PAGE = 512 };

/* One cache under test. */
struct contender {
	const char *name;
	void *(*open)(uint64_t entries);
	void (*close)(void *cache);
	/* Access each key; create what is missing when `create`; returns the misses. */
	uint64_t (*run)(void *cache, const uint32_t *keys, size_t n, bool create);
	uint64_t (*run_shared)(void *cache, const uint32_t *keys, size_t n,
			       bool create); /* several threads */
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(2);
}

/* ---- the pool ---- */

static void *pool_open(uint64_t entries)
{
	struct foliage_pool_options options = {
		.bytes = entries * (PAGE + 192) + (8 << 20),
		.page_bytes = PAGE,
		.max_pages = entries,
		.seed = 1,
	};
	struct foliage_pool *pool;
	char message[200];

	if (foliage_pool_create(&options, &pool, message, sizeof(message)))
		die("pool", message);
	if (foliage_pool_kind(pool, PAGE, 0) != 0)
		die("pool", "no kind");
	return pool;
}

static void pool_close(void *pool)
{
	foliage_pool_destroy(pool);
}

static inline __attribute__((always_inline)) uint64_t
pool_access(struct foliage_pool *pool, const uint32_t *keys, size_t n, unsigned int flags)
{
	struct foliage_page *page;
	uint64_t misses = 0;

	for (size_t i = 0; i < n; i++) {
		int rc = foliage_pool_fetch(pool, 1, keys[i], 0, flags, &page);

		misses += rc != FOLIAGE_HIT;
		if (rc >= 0)
			foliage_pool_unpin(pool, page, 0);
	}
	return misses;
}

static unsigned int pool_flags(bool create)
{
	return create ? FOLIAGE_FETCH_CREATE | FOLIAGE_FETCH_READY : 0;
}

static uint64_t pool_run(void *cache, const uint32_t *keys, size_t n, bool create)
{
	return pool_access(cache, keys, n, pool_flags(create) | FOLIAGE_FETCH_LOCAL);
}

/* Pins that any thread may let go of. */
static uint64_t pool_run_counted(void *cache, const uint32_t *keys, size_t n, bool create)
{
	return pool_access(cache, keys, n, pool_flags(create));
}

/* ---- the floor: each key's cache line is found by hashing, and read ---- */

struct floor_table {
	uint64_t lines;
	_Alignas(64) uint64_t line[][8];
};

static void *floor_open(uint64_t entries)
{
	struct floor_table *f;

	if (posix_memalign((void **)&f, 2 << 20, sizeof(*f) + 2 * entries * 64))
		die("floor", "out of memory");
	madvise(f, sizeof(*f) + 2 * entries * 64, MADV_HUGEPAGE);
	f->lines = 2 * entries;
	for (uint64_t i = 0; i < 2 * entries; i++)
		f->line[i][0] = i;
	return f;
}

static void floor_close(void *cache)
{
	free(cache);
}

static uint64_t floor_run(void *cache, const uint32_t *keys, size_t n, bool create)
{
	struct floor_table *f = cache;
	uint64_t wrong = 0;

	(void)create;
	for (size_t i = 0; i < n; i++) {
		uint64_t hash = keys[i] * UINT64_C(0x9E3779B97F4A7C15);
		uint64_t at = (hash >> 32) * f->lines >> 32;

		wrong += f->line[at][0] != at;
	}
	return wrong;
}

/* ---- SQLite's pcache1 ---- */

#ifdef HAVE_SQLITE
struct pcache {
	sqlite3_pcache_methods2 m;
	sqlite3_pcache *cache;
	pthread_mutex_t lock;
};

static void *pcache_open(uint64_t entries)
{
	struct pcache *c = calloc(1, sizeof(*c));

	if (!c || sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &c->m) || sqlite3_initialize())
		die("pcache1", "cannot be had");
	pthread_mutex_init(&c->lock, NULL);
	c->cache = c->m.xCreate(PAGE, 16, 1);
	c->m.xCachesize(c->cache, (int)entries);
	return c;
}

static void pcache_close(void *cache)
{
	struct pcache *c = cache;

	c->m.xDestroy(c->cache);
	free(c);
	sqlite3_shutdown();
}

static inline uint64_t pcache_access(struct pcache *c, uint32_t key, bool create)
{
	sqlite3_pcache_page *page = c->m.xFetch(c->cache, key + 1, 0);
	bool miss = !page;

	if (miss && create)
		page = c->m.xFetch(c->cache, key + 1, 2);
	if (page)
		c->m.xUnpin(c->cache, page, 0);
	return miss;
}

static uint64_t pcache_run(void *cache, const uint32_t *keys, size_t n, bool create)
{
	uint64_t misses = 0;

	for (size_t i = 0; i < n; i++)
		misses += pcache_access(cache, keys[i], create);
	return misses;
}

static uint64_t pcache_run_shared(void *cache, const uint32_t *keys, size_t n, bool create)
{
	struct pcache *c = cache;
	uint64_t misses = 0;

	for (size_t i = 0; i < n; i++) {
		pthread_mutex_lock(&c->lock);
		misses += pcache_access(c, keys[i], create);
		pthread_mutex_unlock(&c->lock);
	}
	return misses;
}
#endif

#ifdef HAVE_ROCKSDB
/* bench/rocksdb_cache.cc */
void *bench_rocksdb_lru(uint64_t entries);
void *bench_rocksdb_hyper_clock(uint64_t entries);
void bench_rocksdb_close(void *cache);
uint64_t bench_rocksdb_run(void *cache, const uint32_t *keys, size_t n, bool create);
#endif

static const struct contender contenders[] = {
	{"foliage pool, own pins", pool_open, pool_close, pool_run, pool_run},
	{"foliage pool, any pins", pool_open, pool_close, pool_run_counted, pool_run_counted},
#ifdef HAVE_SQLITE
	{"SQLite pcache1", pcache_open, pcache_close, pcache_run, pcache_run_shared},
#endif
#ifdef HAVE_ROCKSDB
	{"RocksDB LRUCache", bench_rocksdb_lru, bench_rocksdb_close, bench_rocksdb_run,
	 bench_rocksdb_run},
	{"RocksDB HyperClockCache", bench_rocksdb_hyper_clock, bench_rocksdb_close,
	 bench_rocksdb_run, bench_rocksdb_run},
#endif
};
enum { OURS = 2 }; /* contenders that are ours come first */

static const struct contender floor_of_all = {"floor: hash and one line", floor_open, floor_close,
					      floor_run, floor_run};

/* ---- the race ---- */

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct racer {
	const struct contender *c;
	void *cache;
	const uint32_t *keys;
	size_t n;
	uint64_t misses;
	pthread_t thread;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	r->misses = r->c->run_shared(r->cache, r->keys, r->n, false);
	return NULL;
}

/* ns of wall time (best of five) and CPU time for each access, over all threads. */
static void race_hits(const struct contender *c, void *cache, const uint32_t *keys, int threads,
		      double *wall, double *cpu)
{
	*wall = *cpu = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		struct racer racers[2];
		double w = seconds(CLOCK_MONOTONIC), p = seconds(CLOCK_PROCESS_CPUTIME_ID);

		for (int i = 0; i < threads; i++) {
			racers[i] = (struct racer){c,
						   cache,
						   keys + i * (ACCESSES / threads),
						   (size_t)(ACCESSES / threads),
						   0,
						   0};
			if (threads > 1)
				pthread_create(&racers[i].thread, NULL, race, &racers[i]);
			else
				racers[i].misses = c->run(cache, keys, ACCESSES, false);
		}
		for (int i = 0; i < threads && threads > 1; i++)
			pthread_join(racers[i].thread, NULL);
		w = (seconds(CLOCK_MONOTONIC) - w) * 1e9 / ACCESSES;
		p = (seconds(CLOCK_PROCESS_CPUTIME_ID) - p) * 1e9 / ACCESSES;
		for (int i = 0; i < threads; i++)
			if (racers[i].misses)
				die(c->name, "a resident key was missed");
		*wall = MIN(*wall, w);
		*cpu = MIN(*cpu, p);
	}
}

static const char *only; /* a part of a contender's name */

static bool selected(const struct contender *c)
{
	return !only || strstr(c->name, only);
}

static void bench_hits_of(const struct contender *c, const uint32_t *keys, const uint32_t *all,
			  double wall[2], double cpu[2])
{
	void *cache = c->open(KEYS + KEYS / 20);

	c->run(cache, all, KEYS, true);
	for (int t = 0; t < 2; t++)
		race_hits(c, cache, keys, t + 1, &wall[t], &cpu[t]);
	printf("%-26s %9.1f %9.1f %9.1f %9.1f %8.2fx %8.2fx\n", c->name, wall[0], cpu[0], wall[1],
	       cpu[1], wall[0] / wall[1], 2 * cpu[0] / cpu[1]);
	fflush(stdout);
	c->close(cache);
}

static void bench_hits(const uint32_t *keys, const uint32_t *all)
{
	double best[4] = {1e9, 1e9, 1e9, 1e9}, ours[4] = {0}, of[4];

	printf("%-26s %9s %9s %9s %9s %9s %9s\n", "hits, fetch + unpin", "1 thr ns", "(cpu)",
	       "2 thr ns", "(cpu)", "scaling", "(cpu)");
	for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
		if (!selected(&contenders[i]))
			continue;
		bench_hits_of(&contenders[i], keys, all, of, of + 2);
		for (int t = 0; t < 4; t++) {
			if (i >= OURS)
				best[t] = MIN(best[t], of[t]);
			else if (!i)
				ours[t] = of[t];
		}
	}
	bench_hits_of(&floor_of_all, keys, all, of, of + 2);
	if (best[0] < 1e9)
		printf("%-26s %8.2fx %8.2fx %8.2fx %8.2fx\n", "ours against the best",
		       best[0] / ours[0], best[2] / ours[2], best[1] / ours[1], best[3] / ours[3]);
}

static void bench_misses(const uint32_t *keys)
{
	static const int percents[] = {10, 40};

	printf("\n%-26s %14s %14s\n", "misses per access", "room 10 %", "room 40 %");
	for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
		const struct contender *c = &contenders[i];

		if (!selected(c))
			continue;
		printf("%-26s", c->name);
		for (size_t j = 0; j < ARRAY_SIZE(percents); j++) {
			void *cache = c->open((uint64_t)KEYS * (uint64_t)percents[j] / 100);
			double start, misses;

			c->run(cache, keys, ACCESSES / 2, true);
			start = seconds(CLOCK_PROCESS_CPUTIME_ID);
			misses = (double)c->run(cache, keys + ACCESSES / 2, ACCESSES / 2, true);
			printf(" %8.5f %3.0fns", misses / (ACCESSES / 2),
			       (seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e9 / (ACCESSES / 2));
			c->close(cache);
		}
		printf("\n");
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	uint32_t *keys = malloc(ACCESSES * sizeof(*keys)), *all = malloc(KEYS * sizeof(*all));
	struct zipf_oracle zipf;

	if (!keys || !all || zipf_oracle_init(&zipf, KEYS, 1.0, 1, 42))
		die("keys", "out of memory");
	zipf_oracle_fill(&zipf, keys, ACCESSES);
	zipf_oracle_free(&zipf);
	for (uint32_t i = 0; i < KEYS; i++)
		all[i] = i;
	only = argc > 2 ? argv[2] : NULL;
	if (argc < 2 || !strcmp(argv[1], "all") || !strcmp(argv[1], "hits"))
		bench_hits(keys, all);
	if (argc < 2 || !strcmp(argv[1], "all") || !strcmp(argv[1], "misses"))
		bench_misses(keys);
	free(keys);
	free(all);
	return 0;
}
