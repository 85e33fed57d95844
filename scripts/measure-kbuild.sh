#!/bin/sh
# SPDX-License-Identifier: MIT
# What compiling Foliage's own files takes: where the numbers of the suites kbuild and kbuild-memcg come from, as far as
# these files can tell, and what an instruction takes.
#
# usage: scripts/measure-kbuild.sh [SOURCE.c...]  (needs gcc, valgrind; half a minute; default: every seventh file)
#
# A library preloaded into cc1 writes down at its exit what the kernel says of its memory and time. Instructions are
# counted by valgrind for the three files that take the least time.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
for tool in gcc valgrind awk; do
	command -v "$tool" >/dev/null || { echo "measure-kbuild: $tool is missing" >&2; exit 2; }
done
cd "$here"
units=${*:-$(find base mm machine trace workload cli -name '*.c' | sort | awk 'NR % 7 == 1')}

cat >"$tmp/last.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
__attribute__((destructor)) static void last(void)
{
	FILE *status = fopen("/proc/self/status", "r"), *out = fopen(getenv("LAST_WORDS"), "a");
	struct rusage used;
	char line[256];
	long anon = 0, file = 0;

	while (status && fgets(line, sizeof(line), status)) {
		sscanf(line, "RssAnon: %ld", &anon);
		sscanf(line, "RssFile: %ld", &file);
	}
	getrusage(RUSAGE_SELF, &used);
	if (out)
		fprintf(out, "%ld %ld %ld %.6f\n", anon, file, used.ru_minflt,
			(double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6);
}
C
gcc -O1 -shared -fPIC -o "$tmp/last.so" "$tmp/last.c"

flags='-std=gnu17 -O2 -D_GNU_SOURCE -I. -Iinclude -DFOLIAGE_VERSION="0" -DFOLIAGE_LIBRARY_DIR="."'
# The compiler proper, as the driver would start it: the one line of its plan that begins with a blank.
plan() {
	gcc -### $flags -S "$1" -o "$2" 2>&1 | grep '^ '
}
: >"$tmp/units"
for unit in $units; do
	: >"$tmp/words"
	gcc $flags -S "$unit" -o "$tmp/unit.s" 2>/dev/null || { echo "passed over: $unit" >&2; continue; }
	for i in 1 2 3; do
		eval "LAST_WORDS=$tmp/words LD_PRELOAD=$tmp/last.so $(plan "$unit" "$tmp/unit.s")"
	done
	gcc -c "$tmp/unit.s" -o "$tmp/unit.o"
	gcc $flags -M "$unit" | tr ' \\' '\n\n' | grep '\.h$' | sort -u >"$tmp/headers"
	cat "$tmp/headers" >>"$tmp/all-headers"
	awk '{ s += $4 } END { printf "%d %d %d %.6f ", $1, $2, $3, s / NR }' "$tmp/words" >>"$tmp/units"
	echo "$(wc -l <"$tmp/headers") $(xargs cat <"$tmp/headers" | wc -c) $(stat -c %s "$tmp/unit.o") $unit" >>"$tmp/units"
done

awk '
function show(what, unit, column, scale,   i, n, x) {
	n = 0
	for (i = 1; i <= NR; i++)
		x[++n] = value[i, column] / scale
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && x[k - 1] > x[k]; k--) {
			t = x[k]; x[k] = x[k - 1]; x[k - 1] = t
		}
	printf "%-34s %10.4g %10.4g %10.4g  %s\n", what, x[1], x[int((n + 1) / 2)], x[n], unit
}
{ for (i = 1; i <= 7; i++) value[NR, i] = $i }
END {
	printf "%d units of Foliage, gcc -O2%15s %10s %10s\n", NR, "least", "median", "most"
	show("private memory at exit", "MiB", 1, 1024)
	show("mapped files at exit", "MiB", 2, 1024)
	show("faults without I/O", "", 3, 1)
	show("user time", "s", 4, 1)
	show("headers", "", 5, 1)
	show("bytes of headers", "KB", 6, 1000)
	show("object", "KB", 7, 1000)
}' "$tmp/units"

# How unlike headers are: the slope of log(how many units include it) over log(rank).
sort "$tmp/all-headers" | uniq -c | sort -rn | awk '
{ x = log(NR); y = log($1); sx += x; sy += y; sxx += x * x; sxy += x * y; files[NR] = $2 }
END {
	printf "%-34s %10d\n", "headers that all units read", NR
	printf "%-34s %10.2f\n", "theta of their use", -(NR * sxy - sx * sy) / (NR * sxx - sx * sx)
}'
sort -u "$tmp/all-headers" | xargs cat | wc -c | awk -v n="$(sort -u "$tmp/all-headers" | wc -l)" '
{ printf "%-34s %10.2f  KB\n", "mean size of a header", $1 / n / 1000 }'

# Picoseconds of an instruction. The kernel divides time into user and system by samples: the mean of thirty runs.
sort -n -k4 "$tmp/units" | head -3 | while read -r _ _ _ _ _ _ _ unit; do
	eval "valgrind --tool=lackey --log-file=$tmp/lackey $(plan "$unit" "$tmp/unit.s")"
	: >"$tmp/words"
	i=0
	while [ $i -lt 30 ]; do
		eval "LAST_WORDS=$tmp/words LD_PRELOAD=$tmp/last.so $(plan "$unit" "$tmp/unit.s")"
		i=$((i + 1))
	done
	awk '{ s += $4 } END { print s / NR }' "$tmp/words" | awk -v unit="$unit" '
	FNR == NR { s = $1; next }
	/guest instrs:/ {
		gsub(",", "")
		printf "%-34s %10.0f  ps (%.1f million, %s)\n", "user time of an instruction", s * 1e12 / $NF, $NF / 1e6, unit
		exit
	}' - "$tmp/lackey"
done
