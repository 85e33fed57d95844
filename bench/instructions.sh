#!/bin/sh
# Instructions per hit, counted by valgrind's callgrind: the difference of a long and a short run of hits.
# usage: bench/instructions.sh BENCH_REPLAY [POLICY...]
set -eu
bench=$1
shift
[ $# -gt 0 ] || set -- fg mglru clru mglru-6.12
command -v valgrind >/dev/null || { echo "SKIP: instructions per hit need valgrind"; exit 0; }
count() {
	POLICY=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" hits "$2" 2>&1 |
		awk '/Collected/ { print $4 }'
}
short=2000000
long=6000000
for policy in "$@"; do
	a=$(count "$policy" $short)
	b=$(count "$policy" $long)
	echo "$policy $a $b" | awk -v n=$((long - short)) '{ printf "%-12s %6.1f instructions per hit\n", $1, ($3 - $2) / n }'
done
