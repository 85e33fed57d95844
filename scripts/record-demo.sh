#!/bin/sh
# SPDX-License-Identifier: MIT
# Records data/demo.csv.zst: the page reads of two real programs that share a machine, by strace.
# The sqlite3 shell looks rows up in a database, most of them in a small hot part, and scans a table
# now and then; grep -r runs over a tree of small files in the meantime. The interesting question is
# whether the hot part survives the scans.
#
# usage: scripts/record-demo.sh [TREE]  (needs sqlite3, strace, python3, zstd; a minute)
#
# The rows, the queries and their order come from a fixed seed, so two recordings differ only in how
# the two programs interleave and in what is in TREE. SQLite's own cache is held at 10 pages: what it
# asks the kernel for is the trace.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
tree=${1:-/usr/include}
out=${OUT:-$here/data/demo.csv.zst}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
for tool in sqlite3 strace python3 zstd; do
	command -v $tool >/dev/null || { echo "record-demo: $tool is missing" >&2; exit 2; }
done

python3 - "$tmp" <<'PY'
import random, sys
out = sys.argv[1]
rnd = random.Random(2026)
rows = 120000
with open(out + "/make.sql", "w") as f:
	f.write("PRAGMA page_size=4096; PRAGMA journal_mode=OFF; BEGIN;\n")
	f.write("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, body TEXT);\n")
	for i in range(rows):
		name = "%08x" % rnd.getrandbits(32)
		f.write("INSERT INTO item VALUES(%d,'%s',hex(zeroblob(%d)));\n" % (i, name, rnd.randint(60, 260)))
	f.write("CREATE INDEX item_name ON item(name); COMMIT;\n")
# One lookup in five goes anywhere, the others to a hot set of 1 % with a skew of its own; every
# 20,000 lookups one query reads a third of the table.
hot = rnd.sample(range(rows), rows // 100)
with open(out + "/query.sql", "w") as f:
	f.write("PRAGMA cache_size=10; PRAGMA mmap_size=0;\n")
	for i in range(240000):
		if i % 100 == 0:
			f.write(("COMMIT;" if i else "") + "BEGIN;\n")
		if i % 20000 == 10000:
			k = rnd.randrange(rows * 2 // 3)
			f.write("SELECT sum(length(body)) FROM item NOT INDEXED WHERE id BETWEEN %d AND %d;\n" %
				(k, k + rows // 3))
		if rnd.random() < 0.2:
			k = rnd.randrange(rows)
		else:
			k = hot[int(len(hot) * rnd.random() ** 2)]
		f.write("SELECT length(body) FROM item WHERE id=%d;\n" % k)
	f.write("COMMIT;\n")
PY
sqlite3 "$tmp/demo.db" <"$tmp/make.sql" >/dev/null
cat >"$tmp/run.sh" <<RUN
sqlite3 "$tmp/demo.db" <"$tmp/query.sql" >/dev/null &
for i in 1 2 3 4; do sleep 3; grep -r no-such-string "$tree" >/dev/null; done &
wait
RUN
strace -f -y -s 0 --seccomp-bpf -e trace=openat,read,pread64,lseek -o "$tmp/log" sh "$tmp/run.sh" || true
python3 "$here/scripts/strace-pages.py" "$tmp/log" "$tmp/demo.db" "$tree" >"$tmp/demo.csv"
zstd -q -19 -f "$tmp/demo.csv" -o "$out"
ls -l "$out"
