/* SPDX-License-Identifier: MIT
 *
 * The SQLite adapter from inside: the methods of the cache as SQLite calls them, against what its
 * manual says of them; what is outside the budget is counted; connections of many threads share the
 * budget and get their own data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_SQLITE
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/sqlite/foliage_sqlite.h"

static sqlite3_pcache_methods2 m;

static struct foliage_sqlite_stats stats(void)
{
	struct foliage_sqlite_stats s;

	assert_int_equal(foliage_sqlite_stats(&s), 0);
	return s;
}

static int setup(void **state)
{
	(void)state;
	/* The constructor has installed it: asking again changes nothing. */
	assert_int_equal(foliage_sqlite_install(), SQLITE_OK);
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &m), SQLITE_OK);
	assert_int_equal(sqlite3_initialize(), SQLITE_OK);
	assert_int_equal(foliage_sqlite_install(), SQLITE_MISUSE);
	return 0;
}

static sqlite3_pcache_page *get(sqlite3_pcache *c, unsigned int key, int create)
{
	sqlite3_pcache_page *p = m.xFetch(c, key, create);

	if (p && create && !*(void **)p->pExtra) {
		*(void **)p->pExtra = p;
		memset(p->pBuf, (int)(key & 255), 512);
	}
	if (p) {
		assert_ptr_equal(*(void **)p->pExtra,
				 p); /* stays where it is while the page does */
		assert_int_equal(*(unsigned char *)p->pBuf, key & 255);
	}
	return p;
}

static void test_methods(void **state)
{
	static const int sizes[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int purgeable = 0; purgeable < 2; purgeable++) {
			sqlite3_pcache *c = m.xCreate(sizes[i], 136, purgeable);
			sqlite3_pcache_page *p, *q;

			m.xCachesize(c, 50);
			assert_null(get(c, 1, 0));
			p = get(c, 1, 1);
			assert_non_null(p);
			assert_ptr_equal(get(c, 1, 0), p);
			assert_ptr_equal(get(c, 1, 2), p);
			m.xUnpin(c, p, 0);
			assert_ptr_equal(get(c, 1, 0), p);
			q = get(c, 2, 2);
			m.xUnpin(c, q, 0);
			assert_int_equal(m.xPagecount(c), 2);
			/* Page 2 gives way to page 1, which keeps its place and contents. */
			m.xRekey(c, p, 1, 2);
			assert_int_equal(*(unsigned char *)p->pBuf, 1);
			memset(p->pBuf, 2, 512);
			assert_int_equal(m.xPagecount(c), 1);
			assert_null(get(c, 1, 0));
			m.xUnpin(c, p, 0);
			assert_ptr_equal(get(c, 2, 0), p);
			m.xUnpin(c, p, 1);
			assert_null(get(c, 2, 0));
			for (unsigned int key = 1; key <= 10; key++) {
				p = get(c, key, 2);
				if (key % 2)
					m.xUnpin(c, p, 0);
			}
			m.xTruncate(c, 4); /* pinned or not */
			assert_int_equal(m.xPagecount(c), 3);
			m.xUnpin(c, get(c, 2, 0), 0);
			m.xShrink(c);
			assert_true(m.xPagecount(c) <= 3);
			m.xDestroy(c);
		}
	assert_int_equal(stats().unpurgeable_bytes, 0);
	assert_int_equal(stats().overflow_bytes, 0);
	assert_int_equal(stats().caches, 0);
}

/* More pins than the cache is to have: the gentle request is refused, the urgent one is not, and
 * what exceeds the budget counts. */
static void test_spill_and_overflow(void **state)
{
	sqlite3_pcache *c = m.xCreate(4096, 136, 1);
	static sqlite3_pcache_page *pages[4000];
	unsigned int n = 1;

	(void)state;
	m.xCachesize(c, 100);
	while ((pages[n] = get(c, n, 1)))
		n++;
	assert_int_equal(n - 1, 90);
	for (; n < 4000; n++) {
		pages[n] = get(c, n, 2);
		assert_non_null(pages[n]);
	}
	assert_int_equal(m.xPagecount(c), 3999);
	assert_true(stats().overflows > 1000);
	assert_true(stats().overflow_bytes > 1000 * 4096);
	assert_true(stats().pool.frame_bytes + stats().pool.metadata_bytes <= stats().pool.budget);
	m.xRekey(c, pages[3999], 3999, 5000);
	for (n = 1; n < 3999; n++) {
		assert_ptr_equal(get(c, n, 0), pages[n]);
		m.xUnpin(c, pages[n], 0);
	}
	m.xUnpin(c, pages[3999], 0);
	assert_int_equal(stats().overflow_bytes, 0);
	m.xDestroy(c);
	assert_int_equal(stats().pool.pages, 0);
}

static void test_memory_database(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TABLE t(a); WITH RECURSIVE n(i) AS (SELECT 1 UNION "
				      "ALL SELECT i+1 FROM n LIMIT 3000)"
				      "INSERT INTO t SELECT zeroblob(1000) FROM n",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_true(stats().unpurgeable_bytes > 3000 * 1000);
	sqlite3_close(db);
	assert_int_equal(stats().unpurgeable_bytes, 0);
}

enum { READERS = 4, ROWS = 4000 };

struct reader {
	pthread_t id;
	const char *path;
	int n;
	long wrong;
};

static void exec(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message))
		fail_msg("%s: %s", sql, message);
}

static void *read_rows(void *arg)
{
	struct reader *r = arg;
	sqlite3_stmt *s = NULL;
	sqlite3 *db;

	if (sqlite3_open_v2(r->path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) ||
	    sqlite3_prepare_v2(db, "SELECT a, length(b) FROM t WHERE id=?", -1, &s, NULL))
		r->wrong = -1;
	for (int i = 0; i < 8000 && r->wrong >= 0; i++) {
		/* Two are hot on a few rows, two on all. */
		int id = 1 + (i * 7919 + r->n) % (r->n % 2 ? ROWS : ROWS / 20);

		sqlite3_bind_int(s, 1, id);
		r->wrong += sqlite3_step(s) != SQLITE_ROW || sqlite3_column_int(s, 0) != id * 3 ||
			    sqlite3_column_int(s, 1) != id % 900;
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
	sqlite3_close(db);
	return NULL;
}

static void test_threads(void **state)
{
	char path[] = "/tmp/foliage_sqliteXXXXXX";
	struct reader readers[READERS];
	uint64_t hits = stats().pool.hits;
	sqlite3 *db;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)");
	exec(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 4000)"
		 "INSERT INTO t SELECT i, i*3, zeroblob(i%900) FROM n");
	sqlite3_close(db);
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.path = path, .n = i};
		assert_int_equal(pthread_create(&readers[i].id, NULL, read_rows, &readers[i]), 0);
	}
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].id, NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	/* Of the upper pages of the tree the pool hears now and then. */
	assert_true(stats().pool.hits - hits > 8000);
	assert_int_equal(stats().caches, 0);
	unlink(path);
}

/* Caches whose pages push each other out all the time, held for a while each: a page that is held stays
 * what it is, also beside reclaim in the other threads, renaming and truncation in its own. */
enum { HOLDERS = 4, HELD = 12, KEYS = 900, STEPS = 40000 };

struct holder {
	pthread_t id;
	uint64_t n, wrong, found;
};

static uint64_t stamp(const struct holder *h, unsigned int key)
{
	return h->n << 32 | key;
}

static void let_go(sqlite3_pcache *c, struct holder *h, sqlite3_pcache_page **p, unsigned int key)
{
	if (*p) {
		h->wrong +=
			*(uint64_t *)(*p)->pBuf != stamp(h, key) || *(void **)(*p)->pExtra != *p;
		m.xUnpin(c, *p, 0);
	}
	*p = NULL;
}

static void *hold_pages(void *arg)
{
	struct holder *h = arg;
	sqlite3_pcache *c = m.xCreate(4096, 136, 1);
	sqlite3_pcache_page *pages[HELD] = {NULL};
	unsigned int keys[HELD] = {0};
	uint64_t random = h->n * 77 + 1;

	m.xCachesize(c, 1000);
	for (int i = 0; i < STEPS; i++) {
		unsigned int at = (unsigned int)i % HELD, key;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		key = 1 + (unsigned int)((random >> 40) % KEYS * ((random >> 20) % KEYS) / KEYS);
		let_go(c, h, &pages[at], keys[at]);
		for (unsigned int j = 0; j < HELD; j++)
			if (pages[j] && keys[j] == key)
				let_go(c, h, &pages[j], key);
		if (i % 5000 == 4999) {
			for (unsigned int j = 0; j < HELD; j++)
				let_go(c, h, &pages[j], keys[j]);
			m.xTruncate(c, KEYS / 2);
		}
		pages[at] = m.xFetch(c, key, 2);
		keys[at] = key;
		if (*(void **)pages[at]->pExtra) {
			h->found++;
			h->wrong += *(uint64_t *)pages[at]->pBuf != stamp(h, key);
		}
		if (i % 50 == 0) {
			m.xRekey(c, pages[at], key, KEYS + 1 + key);
			keys[at] = KEYS + 1 + key;
		}
		*(void **)pages[at]->pExtra = pages[at];
		*(uint64_t *)pages[at]->pBuf = stamp(h, keys[at]);
	}
	for (unsigned int j = 0; j < HELD; j++)
		let_go(c, h, &pages[j], keys[j]);
	m.xDestroy(c);
	return NULL;
}

static void test_held_pages_stay(void **state)
{
	struct holder holders[HOLDERS];

	(void)state;
	for (uint64_t i = 0; i < HOLDERS; i++) {
		holders[i] = (struct holder){.n = i + 1};
		assert_int_equal(pthread_create(&holders[i].id, NULL, hold_pages, &holders[i]), 0);
	}
	for (int i = 0; i < HOLDERS; i++) {
		pthread_join(holders[i].id, NULL);
		assert_int_equal(holders[i].wrong, 0);
		assert_true(holders[i].found > STEPS / 10);
	}
	assert_true(stats().pool.evicted > STEPS / 10);
	assert_true(stats().index_bytes <= 4096);
	assert_int_equal(stats().caches, 0);
	assert_int_equal(stats().overflow_bytes, 0);
}

static int count_rows(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT sum(length(b)) FROM t", -1, &s, NULL), rows = -1;

	if (!rc && (rc = sqlite3_step(s)) == SQLITE_ROW)
		rows = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	return rows >= 0 ? rows : -rc;
}

/* A forked child must not use what it inherited, is told so, and may open the database anew. */
static int in_child(sqlite3 *inherited, const char *path)
{
	sqlite3 *db;

	if (count_rows(inherited) != -SQLITE_NOMEM)
		return 1;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) || count_rows(db) != 300000)
		return 2;
	return sqlite3_close(db) == SQLITE_OK ? 0 : 3;
}

static void test_fork(void **state)
{
	char path[] = "/tmp/foliage_sqliteXXXXXX";
	int fd = mkstemp(path), status;
	sqlite3 *db;
	pid_t child;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	exec(db, "CREATE TABLE t(b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
		 "LIMIT 300) INSERT INTO t SELECT randomblob(1000) FROM n");
	assert_int_equal(count_rows(db), 300000);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(in_child(db, path));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(count_rows(db), 300000);
	sqlite3_close(db);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_held_pages_stay),
		cmocka_unit_test(test_spill_and_overflow),
		cmocka_unit_test(test_memory_database),
		cmocka_unit_test(test_threads),
	};

	/* Read before main(): start again with a small budget. */
	if (!getenv("FOLIAGE_SQLITE_MEMORY")) {
		setenv("FOLIAGE_SQLITE_MEMORY", "4M", 1);
		execl("/proc/self/exe", "test_sqlite", (char *)NULL);
		return 1;
	}
	return cmocka_run_group_tests(tests, setup, NULL);
}
#else
static void test_sqlite(void **state)
{
	(void)state;
	print_message("SKIP: built without sqlite3\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sqlite)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
