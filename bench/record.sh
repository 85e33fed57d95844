#!/bin/bash
# SPDX-License-Identifier: MIT
# What being recorded costs a program: accesses a second alone and recorded by BPF and by preloading, in turns, the best of
# ROUNDS (3) each; then lost events and how many of the accesses are in the trace. Two programs: fio's psync engine
# (zipf 0.9, 4 KiB), and a loop of nothing but pread() of cached pages, the hardest case.
#
# usage: bench/record.sh FOLIAGE BENCH_RECORD_READS
set -eu
foliage=$(realpath "$1")
reads=$(realpath "$2")
rounds=${ROUNDS:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
head -c 104857600 /dev/zero >data
accesses=200000

run_fio() {
	"$@" fio --name=j --ioengine=psync --filename="$dir/data" --size=100m --io_size=$((accesses * 4))k --bs=4k --rw=randread \
		--norandommap --random_distribution=zipf:0.9 --fadvise_hint=random --output-format=terse | cut -d';' -f8
}
run_loop() {
	"$@" "$reads" "$dir/data" $accesses
}
max() { [ "${1%.*}" -gt "${2%.*}" ] && echo "$1" || echo "$2"; }

measure() { # PROGRAM NAME
	local alone=0 rate lost pages method
	declare -A best
	for _ in $(seq "$rounds"); do
		alone=$(max "$("$1")" $alone)
		for method in $methods; do
			rate=$("$1" "$foliage" record --method "$method" -o "$method.foliage" --file "$dir/data" -- 2>"$method.err")
			best[$method]=$(max "$rate" "${best[$method]:-0}")
		done
	done
	for method in $methods; do
		lost=$(sed -n 's/.*; \([0-9,]*\) events lost$/\1/p' "$method.err")
		pages=$(sed -n 's/.*pages: \([0-9,]*\) read.*/\1/p' "$method.err")
		awk -v name="$2" -v method="$method" -v alone="$alone" -v rate="${best[$method]}" -v lost="$lost" -v pages="$pages" \
			'BEGIN { printf "%-6s %-8s %12d %12d %8.2f %12s %6s\n", name, method, alone, rate, rate / alone, pages, lost }'
	done
}

methods="bpf preload"
if ! "$foliage" record -q --method bpf -o probe.foliage -- true 2>err; then
	echo "SKIP: $(cat err)"
	methods=preload
fi
printf '%-6s %-8s %12s %12s %8s %12s %6s\n' program method alone/s recorded/s ratio "pages seen" lost
if command -v fio >/dev/null; then measure run_fio fio; else echo "SKIP: no fio"; fi
measure run_loop loop
