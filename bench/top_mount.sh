#!/bin/bash
# SPDX-License-Identifier: MIT
# What being watched costs a busy mount: fio reads from it at zipf offsets, with room for a quarter of the file, turn and turn about alone and
# with `foliage top` attached, which redraws its screen ten times a second. Prints operations a second and the CPU time that the mount's
# process took for each, the median and the sum over the rounds, and the ratios. With two processors the bench itself needs both, and top
# takes its share of them: operations a second say what a user sees, CPU time what the mount pays.
#
# usage: bench/top_mount.sh BUILD      MOUNT_MIB (256) is the file's size, MOUNT_ROUNDS (16) of each, MOUNT_MS (1000) a round
set -eu
build=$(realpath "${1:?usage: bench/top_mount.sh BUILD}")
mib=${MOUNT_MIB:-256} rounds=${MOUNT_ROUNDS:-16} interval=${TOP_INTERVAL:-0.1}
for program in fio python3 script; do
	command -v $program >/dev/null || { echo "SKIP: bench/top_mount.sh needs $program"; exit 0; }
done
[ -w /dev/fuse ] && [ "$(id -u)" = 0 ] || { echo "SKIP: bench/top_mount.sh needs /dev/fuse and root"; exit 0; }
work=$(mktemp -d)
watcher=
end() {
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
	umount -l "$work/mount" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
mkdir "$work/source" "$work/mount"
head -c $((mib << 20)) /dev/urandom >"$work/source/file"
"$build/foliage" mount --memory $((mib / 4))M "$work/source" "$work/mount"
pid=$(pgrep -n -f "foliage mount .* $work/mount")

ticks() {
	awk '{ print $14 + $15 }' "/proc/$pid/stat"
}

# one_round NAME: appends "ops ticks" to the file NAME
one_round() {
	local before ops
	before=$(ticks)
	ops=$(fio --name=bench --filename="$work/mount/file" --size="${mib}m" --ioengine=psync --time_based --runtime="${MOUNT_MS:-1000}ms" \
		--rw=randread --bs=4k --random_distribution=zipf:1.1 --invalidate=0 --norandommap --randrepeat=0 --output-format=json |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["read"]["total_ios"])')
	echo "$ops $(($(ticks) - before))" >>"$work/$1"
}

for i in 1 2 3 4; do one_round warm; done
for i in $(seq "$rounds"); do
	one_round alone
	TERM=xterm script -qfc "'$build/foliage' top -i $interval '$work/mount'" "$work/screen" >/dev/null </dev/null &
	watcher=$!
	sleep 0.3
	one_round watched
	pkill -f "foliage top -i $interval $work/mount" && [ "$(stat -c %s "$work/screen")" -gt 1000 ] || {
		echo "bench/top_mount.sh: foliage top ended by itself: $(tail -c 300 "$work/screen")" >&2
		exit 1
	}
	wait $watcher 2>/dev/null || true
	watcher=
done
ms=${MOUNT_MS:-1000}
for way in alone watched; do
	sort -n "$work/$way" | awk -v ms="$ms" -v way=$way -v hz="$(getconf CLK_TCK)" '
		{ ops[NR] = $1; all += $1; cpu += $2 }
		END { printf "%s %.0f %.0f %.3f\n", way, ops[int((NR + 1) / 2)] * 1000 / ms, all * 1000 / ms / NR, cpu / hz * 1e6 / all }'
done | awk '
	BEGIN { printf "%-8s %14s %14s %16s\n", "", "median op/s", "mean op/s", "mount, us a op" }
	{ printf "%-8s %14d %14d %16.3f\n", $1, $2, $3, $4; for (i = 2; i <= 4; i++) v[$1, i] = $i }
	END { printf "%-8s %14.3f %14.3f %16.3f\n", "ratio", v["watched", 2] / v["alone", 2], v["watched", 3] / v["alone", 3], v["watched", 4] / v["alone", 4] }'
