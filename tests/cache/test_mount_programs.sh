#!/bin/bash
# SPDX-License-Identifier: MIT
# Real programs on the mount, with a cache so small that pages leave all the time: fio verifies what it wrote, SQLite in WAL mode
# gives what it gives in a plain directory, gcc makes the same object files, git clones and finds its objects whole.
# MOUNT_PROGRAMS="fio sqlite compile git" chooses some; FIO_MOUNT_SIZE (12M) is the size of fio's files.
. "$(dirname "$(realpath "$0")")/mount.sh"
root=$(realpath "$here/../..")

missing() {
	command -v "$1" >/dev/null && return 1
	echo "SKIP: no $1: $2 was NOT run on the mount"
}

# verify NAME OPTION...: fio writes, reads and checks; it fails loudly by itself.
verify() {
	fio --name="$1" --directory=mnt --size="${FIO_MOUNT_SIZE:-12M}" --ioengine=psync --verify=crc32c --verify_fatal=1 \
		--fallocate=none --output=fio.out "${@:2}" 2>fio.err || complain "fio $1: $(cat fio.err; tail -20 fio.out)"
	grep -q 'err= 0' fio.out || complain "fio $1: $(cat fio.out)"
}

run_fio() {
	missing fio 'fio verify' && return
	verify sequential --rw=write --bs=64k --do_verify=1
	verify reread --rw=read --filename=sequential.0.0 --bs=64k
	verify mixed --rw=randrw --bs=4k --rwmixread=40 --numjobs=2 --do_verify=1
	verify odd --rw=randwrite --bsrange=512-40k --bs_unaligned --do_verify=1
	verify synced --rw=randwrite --bs=8k --fsync=32 --size=4M --do_verify=1
	rm -f mnt/*
}

run_sqlite() {
	missing sqlite3 'SQLite in WAL mode' && return
	awk 'function rnd(n) { seed = (seed * 16807) % 2147483647; return seed % n }
	BEGIN {
		seed = 7
		print "PRAGMA journal_mode=WAL; PRAGMA cache_size=50; PRAGMA wal_autocheckpoint=100;"
		print "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT); CREATE INDEX ta ON t(a, b);"
		for (i = 0; i < 300; i++) {
			print "BEGIN;"
			for (k = 0; k < 6; k++) print "INSERT INTO t(a,b) VALUES(" rnd(500) ",hex(" rnd(1000000) ")||\"" rnd(100000) "\");"
			print "UPDATE t SET b=b||" rnd(100) " WHERE id%83=" rnd(83) ";"
			if (i % 9 == 0) print "DELETE FROM t WHERE a=" rnd(500) ";"
			print (i % 11 == 0) ? "ROLLBACK;" : "COMMIT;"
			if (i % 5 == 0) print "SELECT count(*), sum(a), sum(length(b)) FROM t WHERE a<" rnd(500) ";"
			if (i % 100 == 0) print "PRAGMA wal_checkpoint(TRUNCATE); VACUUM;"
		}
		print "PRAGMA integrity_check; SELECT count(*), sum(a), total(length(b)) FROM t;"
	}' >script.sql
	for place in plain mnt; do
		sqlite3 $place/db <script.sql >$place.out 2>&1 &
		sleep 0.05
		wait $!
		# Another process reads while one writes: the shared -shm file must work.
		{
			sqlite3 $place/db 'PRAGMA journal_mode; BEGIN; SELECT count(*) FROM t;'
			printf 'BEGIN IMMEDIATE;\nINSERT INTO t(a) VALUES(1);\n.shell sqlite3 %s/db "SELECT count(*) FROM t; BEGIN IMMEDIATE;"\nCOMMIT;\n' $place |
				sqlite3 $place/db
			sqlite3 $place/db 'SELECT count(*) FROM t'
		} >$place.more 2>&1
		sqlite3 $place/db .dump | cksum >$place.sum
	done
	cmp plain.out mnt.out || complain "sqlite: $(diff plain.out mnt.out | head -5)"
	grep -qx ok mnt.out || complain "sqlite: $(tail -3 mnt.out)"
	grep -q 'database is locked' mnt.more || complain "sqlite: two writers at once: $(cat mnt.more)"
	sed 's/plain/X/' plain.more >a
	sed 's/mnt/X/' mnt.more >b
	cmp a b || complain "sqlite: $(diff a b)"
	cmp plain.sum mnt.sum || complain "sqlite: the dumps differ"
}

run_compile() {
	local cc=${CC:-gcc}
	missing "$cc" 'the compiler' && return
	for place in plain mnt; do
		mkdir $place/p
		cp -rp "$root/base" "$root/mm" "$root/include" $place/p
		(cd $place/p && for file in base/*.c mm/*.c; do
			echo "$file"
		done | xargs -P 2 -n 4 "$cc" -std=gnu17 -D_GNU_SOURCE -DFOLIAGE_VERSION='"x"' -O0 -g0 -Iinclude -I. -c 2>&1 && ar rc lib.a *.o) ||
			complain "compiling in $place"
		(cd $place/p && find . -type f | sort | xargs cksum) >$place.sums
	done
	[ "$(grep -c '\.o$' mnt.sums)" -gt 20 ] || complain "compiled only: $(grep '\.o$' mnt.sums)"
	cmp plain.sums mnt.sums || complain "compiled differently: $(diff plain.sums mnt.sums)"
	# What was linked on the mount runs from it (private mappings).
	printf '#include <stdio.h>\nint main(void) { return puts("runs") < 0; }\n' >mnt/hello.c
	"$cc" -o mnt/hello mnt/hello.c || complain "linking"
	same 'a program on the mount' "$(mnt/hello)" runs
}

run_git() {
	missing git 'git' && return
	git -c safe.directory='*' -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || {
		echo "SKIP: $root is no repository: git was NOT run on the mount"
		return
	}
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
	git clone -q --no-hardlinks "$root" mnt/clone 2>err || complain "git clone: $(cat err)"
	git -C mnt/clone fsck --full --strict --no-dangling 2>err || complain "git fsck: $(cat err)"
	same 'files that git finds changed' "$(git -C mnt/clone status --porcelain)" ''
	same 'stat data in the index is current' "$(git -C mnt/clone diff-files --name-only)" ''
	git -C mnt/clone gc -q 2>err || complain "git gc: $(cat err)"
	git -C mnt/clone fsck --full --no-dangling 2>err || complain "git fsck after gc: $(cat err)"
	same 'the head' "$(git -C mnt/clone rev-parse HEAD)" "$(git -C "$root" rev-parse HEAD)"
}

mkdir plain
start source mnt --memory 8M
for program in ${MOUNT_PROGRAMS:-fio sqlite compile git}; do
	before=$SECONDS
	"run_$program"
	echo "$program: $((SECONDS - before)) s"
done
"$foliage" stat mnt >stat.out
grep -qE '^input and output errors  *0$' stat.out || complain "errors: $(cat stat.out)"
awk '/^pages evicted/ { if ($3 == 0) exit 1 }' stat.out || complain "nothing was evicted: $(cat stat.out)"
stop mnt
finish
