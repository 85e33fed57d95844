#!/bin/bash
# SPDX-License-Identifier: MIT
# SQLite's own command line and Python's sqlite3 module, on the adapter and without it: the same output, byte for byte, on a scripted
# workload of more than 10,000 statements each, with a budget so small that pages are evicted and transactions spill.
# test_sqlite_preload.sh LIBFOLIAGE-SQLITE
set -eu
adapter=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
if ldd "$adapter" | grep -qE 'lib(asan|tsan)'; then
	echo "SKIP: a sanitizer's run-time cannot be preloaded into a program without it"
	exit 0
fi

# statements(page size, journal mode): a deterministic script. Inserts, updates and deletes of rows of all sizes, indexes,
# aggregates, blobs, temporary tables, in-memory databases, savepoints, rollbacks, large transactions that spill, vacuum.
statements() {
	awk -v page="$1" -v mode="$2" -v seed="$3" '
	function rnd(n) { seed = (seed * 16807) % 2147483647; return seed % n }
	BEGIN {
		print "PRAGMA page_size=" page ";"
		print "PRAGMA journal_mode=" mode ";"
		print "PRAGMA synchronous=OFF; PRAGMA cache_size=60; PRAGMA cache_spill=20;"
		print "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c BLOB);"
		print "CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b);"
		print "ATTACH \":memory:\" AS mem; CREATE TABLE mem.m(x INTEGER PRIMARY KEY, y TEXT);"
		print "CREATE TEMP TABLE tmp(x, y);"
		for (i = 0; i < 3600; i++) {
			r = rnd(100)
			if (r < 40) print "INSERT INTO t(a,b,c) VALUES(" rnd(1000) ",hex(" rnd(1000000) ")||" rnd(9999) ",zeroblob(" rnd(3) * rnd(900) "));"
			else if (r < 55) print "UPDATE t SET a=a+1, b=b||" rnd(10) " WHERE id%97=" rnd(97) ";"
			else if (r < 62) print "DELETE FROM t WHERE id%211=" rnd(211) ";"
			else if (r < 75) print "SELECT count(*), sum(a), max(length(b)), sum(length(c)) FROM t WHERE a BETWEEN " rnd(500) " AND " 500 + rnd(500) ";"
			else if (r < 80) print "SELECT id, b FROM t ORDER BY b, id LIMIT 3 OFFSET " rnd(50) ";"
			else if (r < 84) print "INSERT OR REPLACE INTO mem.m VALUES(" rnd(4000) ",hex(" rnd(100000) ")); SELECT count(*),sum(length(y)) FROM mem.m;"
			else if (r < 88) print "INSERT INTO tmp SELECT a, substr(b,1,9) FROM t WHERE id%13=" rnd(13) "; SELECT count(*), count(DISTINCT y) FROM tmp;"
			else if (r < 92) print "BEGIN; INSERT INTO t(a,b) SELECT a, b||a FROM t WHERE id%7=" rnd(7) " LIMIT 400; SAVEPOINT s; DELETE FROM t WHERE a<" rnd(200) "; ROLLBACK TO s; RELEASE s; COMMIT;"
			else if (r < 95) print "BEGIN; UPDATE t SET c=zeroblob(length(c)+40), b=b||1; SELECT count(*), sum(length(b)) FROM t; ROLLBACK;"
			else if (r < 97) print "DELETE FROM t WHERE id NOT IN (SELECT id FROM t ORDER BY id LIMIT 1500); DELETE FROM tmp;"
			else if (r < 99) print "SELECT a, count(*), total(length(c)) FROM t GROUP BY a ORDER BY 2 DESC, 1 LIMIT 4;"
			else print (i % 3 ? "PRAGMA integrity_check;" : "VACUUM;") " PRAGMA shrink_memory; PRAGMA page_count;"
		}
		print "PRAGMA integrity_check; SELECT count(*), sum(a), sum(length(b)), sum(length(c)) FROM t; VACUUM; PRAGMA page_count;"
	}'
}

cli() {
	local total=0 n
	for setting in "4096 wal 1" "512 delete 2" "65536 truncate 3" "1024 memory 4"; do
		# shellcheck disable=SC2086
		statements $setting >script.sql
		n=$(grep -o ';' script.sql | wc -l)
		total=$((total + n))
		rm -f stock.db* ours.db*
		sqlite3 stock.db <script.sql >stock.out 2>&1
		LD_PRELOAD="$adapter" FOLIAGE_SQLITE_MEMORY=1M sqlite3 ours.db <script.sql >ours.out 2>&1
		[ -s stock.out ]
		cmp stock.out ours.out
		grep -q '^ok$' ours.out
		sqlite3 stock.db .dump | cksum >stock.sum
		LD_PRELOAD="$adapter" sqlite3 ours.db .dump | cksum >ours.sum
		cmp stock.sum ours.sum
		echo "sqlite3: $setting: $n statements, $(wc -l <ours.out) lines of output, identical"
	done
	[ "$total" -ge 10000 ]
}

# More readers of one WAL database than processors, while a writer goes on; what each reads depends on nothing but the data.
cat >readers.py <<'PY'
import hashlib, sqlite3, sys, threading
db = sys.argv[1]
w = sqlite3.connect(db, isolation_level=None)
w.execute("PRAGMA journal_mode=WAL")
w.execute("PRAGMA cache_size=100")
w.execute("PRAGMA synchronous=OFF")
w.execute("CREATE TABLE fixed(id INTEGER PRIMARY KEY, v TEXT)")
w.execute("CREATE TABLE live(id INTEGER PRIMARY KEY, n INT, v TEXT)")
statements = 4
w.execute("BEGIN")
for i in range(6000):
    w.execute("INSERT INTO fixed VALUES(?,?)", (i, hashlib.md5(str(i).encode()).hexdigest() * (1 + i % 9)))
    statements += 1
w.execute("COMMIT")
out, lock = {}, threading.Lock()
def reader(k):
    c = sqlite3.connect(db, timeout=60)
    h = hashlib.md5()
    n = 0
    for r in range(250):
        i = (r * 7919 + k * 104729) % 6000
        row = c.execute("SELECT v FROM fixed WHERE id=?", (i,)).fetchone()
        h.update(row[0].encode())
        # Every transaction of the writer leaves the sum of n at 0.
        total = c.execute("SELECT coalesce(sum(n),0) FROM live").fetchone()[0]
        assert total == 0, total
        n += 2
    h.update(str(c.execute("SELECT sum(length(v)) FROM fixed").fetchone()).encode())
    c.close()
    with lock:
        out[k] = (h.hexdigest(), n + 1)
threads = [threading.Thread(target=reader, args=(k,)) for k in range(6)]
for t in threads: t.start()
for i in range(700):
    w.execute("BEGIN")
    w.execute("INSERT INTO live(n,v) VALUES(?,?)", (i, "x" * (i % 3000)))
    w.execute("INSERT INTO live(n,v) VALUES(?,?)", (-i, "y" * (i % 700)))
    if i % 5 == 0:
        w.execute("DELETE FROM live WHERE id IN (SELECT id FROM live ORDER BY id LIMIT 2)")
    w.execute("COMMIT")
    statements += 4
for t in threads: t.join()
w.execute("VACUUM")
print(w.execute("PRAGMA integrity_check").fetchone())
for k in sorted(out):
    print(k, out[k][0])
    statements += out[k][1]
print(w.execute("SELECT count(*), sum(n), sum(length(v)) FROM live").fetchone(), statements)
assert statements > 10000 - 1000
mem = sqlite3.connect(":memory:")
mem.execute("CREATE TABLE t(a, b)")
for i in range(4000):
    mem.execute("INSERT INTO t VALUES(?,?)", (i * 7 % 1000, "z" * (i % 500)))
print(mem.execute("SELECT sum(a), sum(length(b)) FROM t").fetchone())
PY

python() {
	rm -f stock.db* ours.db*
	python3 readers.py stock.db >stock.out 2>&1
	LD_PRELOAD="$adapter" FOLIAGE_SQLITE_MEMORY=2M python3 readers.py ours.db >ours.out 2>&1
	cmp stock.out ours.out
	echo "python3: $(tail -2 ours.out | head -1): identical"
}

if command -v sqlite3 >/dev/null; then cli; else echo "SKIP: no sqlite3 program"; fi
if command -v python3 >/dev/null && python3 -c 'import sqlite3' 2>/dev/null; then python; else echo "SKIP: no sqlite3 module of python3"; fi
# What cannot be used is said, and SQLite works without.
LD_PRELOAD="$adapter" FOLIAGE_SQLITE_MEMORY=lots sqlite3 :memory: 'SELECT 1' >out 2>err
grep -q '^foliage: .*FOLIAGE_SQLITE_MEMORY: lots: not a size' err
grep -qx 1 out
