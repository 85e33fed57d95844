/* SPDX-License-Identifier: MIT
 *
 * SQLite on the adapter beside SQLite as it is: eight threads, each with a read-only connection of its
 * own and a table of its own in one database, of unequal heat (the first makes 32 times as many
 * look-ups as the last), rows zipf 1.0. Equal total memory: the stock caches get an eighth each, as
 * PRAGMA cache_size; the adapter gives one budget to all, of which its own tables are a part. SQLite's
 * memory statistics are off, for both: they take a mutex of the process at every allocation.
 *
 *   hits    everything fits
 *   misses  room for a quarter and for a tenth of the database
 *
 * `bench_sqlite`. Each run is a process of its own, the adapter is preloaded; best of three.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "workload/zipf_oracle.h"

enum { THREADS = 8, ROWS = 25000, ROW_BYTES = 380, ROUNDS = 3, UNIT = 24000, PAGE = 4096 };

static const int heat[THREADS] = {32, 16, 8, 4, 2, 1, 1, 1};

struct result {
	double wall, cpu; /* seconds */
	uint64_t lookups, hits, misses;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s\n", what, why);
	exit(2);
}

static void must(sqlite3 *db, int rc, const char *what)
{
	if (rc != SQLITE_OK)
		die(what, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void make_database(const char *path)
{
	char sql[300];
	sqlite3 *db;

	must(NULL, sqlite3_open(path, &db), path);
	must(db, sqlite3_exec(db, "PRAGMA page_size=4096; PRAGMA synchronous=off; BEGIN", 0, 0, 0),
	     path);
	for (int i = 0; i < THREADS; i++) {
		snprintf(sql, sizeof(sql),
			 "CREATE TABLE t%d(id INTEGER PRIMARY KEY, v BLOB);"
			 "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
			 "INSERT INTO t%d SELECT i, randomblob(%d) FROM n",
			 i, ROWS - 1, i, ROW_BYTES);
		must(db, sqlite3_exec(db, sql, 0, 0, 0), sql);
	}
	must(db, sqlite3_exec(db, "COMMIT", 0, 0, 0), path);
	sqlite3_close(db);
}

/* ---- one run, in a process of its own ---- */

struct reader {
	pthread_t id;
	const char *path;
	int number;
	unsigned int rounds;
	uint64_t stock_bytes; /* 0: not stock */
	uint32_t *keys;
	size_t nr;
	pthread_barrier_t *start, *warm, *end;
	uint64_t hits, misses;
};

static void look_up(sqlite3 *db, sqlite3_stmt *stmt, const uint32_t *keys, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		sqlite3_bind_int64(stmt, 1, keys[i]);
		if (sqlite3_step(stmt) != SQLITE_ROW || sqlite3_column_int(stmt, 0) != ROW_BYTES)
			die("look-up", sqlite3_errmsg(db));
		sqlite3_reset(stmt);
	}
}

static uint64_t counted(sqlite3 *db, int what)
{
	int now = 0, most = 0;

	sqlite3_db_status(db, what, &now, &most, 0);
	return (uint64_t)now;
}

/* A scan of the table and a quarter of the look-ups warm up, the rest counts. */
static void *read_rows(void *arg)
{
	struct reader *r = arg;
	sqlite3_stmt *stmt;
	char sql[100];
	sqlite3 *db;

	must(NULL, sqlite3_open_v2(r->path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL),
	     r->path);
	snprintf(sql, sizeof(sql), "PRAGMA cache_size=-%llu; BEGIN",
		 (unsigned long long)(r->stock_bytes ? r->stock_bytes : UINT64_C(1) << 30) / 1024);
	must(db, sqlite3_exec(db, sql, 0, 0, 0), sql);
	snprintf(sql, sizeof(sql), "SELECT length(v) FROM t%d WHERE id=?", r->number);
	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	pthread_barrier_wait(r->start);
	snprintf(sql, sizeof(sql), "SELECT sum(length(v)) FROM t%d", r->number);
	must(db, sqlite3_exec(db, sql, 0, 0, 0), sql);
	look_up(db, stmt, r->keys, r->nr / 4);
	r->hits = counted(db, SQLITE_DBSTATUS_CACHE_HIT);
	r->misses = counted(db, SQLITE_DBSTATUS_CACHE_MISS);
	pthread_barrier_wait(r->warm);
	look_up(db, stmt, r->keys + r->nr / 4, r->nr - r->nr / 4);
	pthread_barrier_wait(r->end);
	r->hits = counted(db, SQLITE_DBSTATUS_CACHE_HIT) - r->hits;
	r->misses = counted(db, SQLITE_DBSTATUS_CACHE_MISS) - r->misses;
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return NULL;
}

static void make_keys(struct reader *r)
{
	struct zipf_oracle zipf;

	r->nr = (size_t)heat[r->number] * UNIT;
	r->keys = malloc(r->nr * sizeof(*r->keys));
	if (!r->keys || zipf_oracle_init(&zipf, ROWS, 1.0, (uint64_t)r->number + 1, 42))
		die("keys", "out of memory");
	zipf_oracle_fill(&zipf, r->keys, r->nr);
	zipf_oracle_free(&zipf);
}

/* Prints the result for the parent. */
static void run(const char *path, uint64_t stock_bytes)
{
	struct reader readers[THREADS];
	pthread_barrier_t start, warm, end;
	struct result sum = {0};
	double wall, cpu;

	must(NULL, sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), "memory statistics");
	pthread_barrier_init(&start, NULL, THREADS);
	pthread_barrier_init(&warm, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.path = path,
					     .number = i,
					     .stock_bytes = stock_bytes / THREADS,
					     .start = &start,
					     .warm = &warm,
					     .end = &end};
		make_keys(&readers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&readers[i].id, NULL, read_rows, &readers[i]))
			die("thread", "cannot be had");
	pthread_barrier_wait(&warm);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	pthread_barrier_wait(&end);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(readers[i].id, NULL);
		sum.lookups += readers[i].nr - readers[i].nr / 4;
		sum.hits += readers[i].hits;
		sum.misses += readers[i].misses;
		free(readers[i].keys);
	}
	printf("%.9f %.9f %llu %llu %llu\n", wall, cpu, (unsigned long long)sum.lookups,
	       (unsigned long long)sum.hits, (unsigned long long)sum.misses);
}

/* ---- the comparison ---- */

static struct result run_child(const char *self, const char *path, bool stock, uint64_t bytes)
{
	char command[1000];
	unsigned long long lookups, hits, misses;
	struct result r;
	FILE *f;

	if (stock)
		snprintf(command, sizeof(command), "'%s' '%s' %llu", self, path,
			 (unsigned long long)bytes);
	else
		snprintf(command, sizeof(command),
			 "LD_PRELOAD='%s' FOLIAGE_SQLITE_MEMORY=%llu '%s' '%s' 0", FOLIAGE_ADAPTER,
			 (unsigned long long)bytes, self, path);
	f = popen(command, "r");
	if (!f ||
	    fscanf(f, "%lf %lf %llu %llu %llu", &r.wall, &r.cpu, &lookups, &hits, &misses) != 5)
		die(command, "failed");
	pclose(f);
	r.lookups = lookups;
	r.hits = hits;
	r.misses = misses;
	return r;
}

static struct result best_of(const char *self, const char *path, bool stock, uint64_t bytes)
{
	struct result best = run_child(self, path, stock, bytes);

	for (int i = 1; i < ROUNDS; i++) {
		struct result r = run_child(self, path, stock, bytes);

		best.wall = MIN(best.wall, r.wall);
		best.cpu = MIN(best.cpu, r.cpu);
		best.misses = MIN(best.misses, r.misses);
	}
	return best;
}

static void print(const char *what, const char *who, const struct result *r)
{
	double n = (double)r->lookups;

	printf("%-24s %-8s %12.0f %12.0f %10.4f\n", what, who, r->wall * 1e9 / n, r->cpu * 1e9 / n,
	       (double)r->misses / n);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		double room;
	} cases[] = {{"all fits", 2}, {"room for a quarter", 0.25}, {"room for a tenth", 0.1}};
	char path[] = "/tmp/foliage-bench-XXXXXX";
	uint64_t bytes;
	int fd;

	if (argc == 3) {
		run(argv[1], strtoull(argv[2], NULL, 10));
		return 0;
	}
	fd = mkstemp(path);
	if (fd < 0)
		die(path, "cannot be made");
	make_database(path);
	bytes = (uint64_t)lseek(fd, 0, SEEK_END);
	printf("%d threads, %llu MiB of tables\n", THREADS, (unsigned long long)bytes >> 20);
	printf("%-24s %-8s %12s %12s %10s\n", "", "", "wall ns", "CPU ns", "misses");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t room = (uint64_t)((double)bytes * cases[i].room);
		struct result stock = best_of(argv[0], path, true, room);
		struct result ours = best_of(argv[0], path, false, room);

		print(cases[i].what, "stock", &stock);
		print(cases[i].what, "foliage", &ours);
		printf("%-24s %-8s %11.2fx %11.2fx %9.2fx\n", "", "ratio", stock.wall / ours.wall,
		       stock.cpu / ours.cpu,
		       ours.misses ? (double)stock.misses / (double)ours.misses : 1.0);
		fflush(stdout);
	}
	close(fd);
	unlink(path);
	return 0;
}
