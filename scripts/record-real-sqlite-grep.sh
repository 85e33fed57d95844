#!/bin/sh
# SPDX-License-Identifier: MIT
# Records data/real-sqlite-grep.foliage.zst: the sqlite3 shell on a hot part of a database, in turns with grep -r over a
# tree, every load, store, instruction and read() by page, with the time between them. What `foliage bench
# real-sqlite-grep` runs.
#
# usage: scripts/record-real-sqlite-grep.sh [TREE]  (default /usr/include/linux; needs sqlite3, grep, awk, valgrind, zstd;
# six minutes)
#
# FOLIAGE: the tool, else build/foliage; OUT: the trace; ROUNDS: how often both have their turn, 6. The database is in
# $TMPDIR/foliage-sqlite, which must not exist. A turn of SQLite is a fresh connection that scans 600 places of a table by
# ranges of 21 keys, then looks one row of each up in another order; its own cache holds 50 pages.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
foliage=${FOLIAGE:-$here/build/foliage}
out=${OUT:-$here/data/real-sqlite-grep.foliage.zst}
tree=${1:-/usr/include/linux}
rounds=${ROUNDS:-6}
work=${TMPDIR:-/tmp}/foliage-sqlite
for tool in sqlite3 grep awk valgrind zstd "$foliage"; do
	command -v "$tool" >/dev/null || { echo "record-real-sqlite-grep: $tool is missing" >&2; exit 2; }
done
mkdir "$work"
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"

# About 35 rows a page; the hot ones lie all over the table.
awk 'BEGIN {
	print "PRAGMA page_size=4096; PRAGMA journal_mode=OFF; BEGIN;"
	print "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, body TEXT);"
	x = 1
	for (i = 0; i < 160000; i++) {
		x = (x * 16807) % 2147483647
		printf "INSERT INTO item VALUES(%d,\x27%08x\x27,hex(zeroblob(%d)));\n", i, x, 20 + x % 40
	}
	print "CREATE INDEX item_name ON item(name); COMMIT;"
}' | sqlite3 item.db >/dev/null
awk 'BEGIN {
	print "PRAGMA cache_size=50; PRAGMA mmap_size=0; BEGIN;"
	for (i = 0; i < 600; i++)
		printf "SELECT sum(length(body)) FROM item WHERE id BETWEEN %d AND %d;\n", i * 265, i * 265 + 20
	for (i = 0; i < 600; i++)
		printf "SELECT length(body) FROM item WHERE id=%d;\n", i * 7919 % 600 * 265 + i % 20
	print "COMMIT;"
}' >query.sql

traces=
record() { # COMMAND...: one process, one trace; its standard input is query.sql
	n=$((${n:-0} + 1))
	"$foliage" record -q --mapped --collapse 64 -o "$n.foliage" -- "$@" <query.sql >/dev/null || [ $? -eq 1 ]
	traces="$traces $n.foliage"
}
i=0
while [ $i -lt "$rounds" ]; do
	record sqlite3 item.db
	record grep -r no-such-string-anywhere "$tree" # ends with 1: found nothing
	i=$((i + 1))
done
# shellcheck disable=SC2086
"$foliage" convert $traces all.foliage
zstd -q -f -19 all.foliage -o "$out"
ls -l "$out"
