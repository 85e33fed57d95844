#!/bin/sh
# SPDX-License-Identifier: MIT
# `make demo`: the trace that the project ships under several policies, then the published fio table at
# demo scale.
#
# usage: scripts/demo.sh FOLIAGE [JOBS]
set -eu
foliage=$(realpath "$1")
jobs=${2:-1}
cd "$(dirname "$0")/.."
policies=clru,mglru,fg,fgw,lru,s3fifo,arc,belady
say() {
	printf '\n%s\n$ %s\n\n' "$1" "$2"
}
say "Misses of a real program (recorded page reads of sqlite3 and grep -r) in three sizes of memory:" \
	"foliage replay data/demo.csv.zst --memory 1%,5%,10% --policy $policies"
"$foliage" replay data/demo.csv.zst --memory 1%,5%,10% --policy $policies -j "$jobs"
say "Published and measured, at demo scale (fio's zipf reads):" "foliage bench fio-read --demo"
"$foliage" bench fio-read --demo -j "$jobs"
