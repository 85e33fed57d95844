#!/bin/bash
# SPDX-License-Identifier: MIT
# `foliage mount` beside a bare libfuse passthrough (bench/passthrough.c) of an equal file: both direct_io, the same libfuse loop, the same
# number of threads, the same fio job, turn and turn about. The file is in memory on both sides: in the mount's cache, in the kernel's
# page cache behind the passthrough. Dirty pages may stay as long as the kernel would let them, so that neither side writes to the disk
# meanwhile; the rows with the mount's own thresholds (10 % and 30 % of its memory, 5 seconds) are those where only the mount does. Prints
# operations a second, the best of the rounds, and the ratio.
#
# usage: bench/mount.sh BUILD [THREADS...]      MOUNT_MIB (64) is the file's size, MOUNT_ROUNDS (8), MOUNT_MS (400) a round
set -eu
build=$(realpath "${1:?usage: bench/mount.sh BUILD [THREADS...]}")
shift
[ $# -gt 0 ] || set -- 1 2
mib=${MOUNT_MIB:-64}
for program in fio python3; do
	command -v $program >/dev/null || { echo "SKIP: bench/mount.sh needs $program"; exit 0; }
done
[ -w /dev/fuse ] && [ "$(id -u)" = 0 ] || { echo "SKIP: bench/mount.sh needs /dev/fuse and root"; exit 0; }
work=$(mktemp -d)
pid=
end() {
	umount -l "$work/ours" 2>/dev/null || true
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	umount -l "$work/bare" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
mkdir "$work/source" "$work/ours" "$work/bare"
head -c $((mib << 20)) /dev/urandom >"$work/source/file"
# A file of its own: the mount would notice at each open that the passthrough has written to its file, and forget it.
cp "$work/source/file" "$work/other"

# speed FOLDER FIO-OPTION...: operations a second
speed() {
	fio --name=bench --filename="$1/file" --size=${mib}m --ioengine=psync --time_based --runtime="${MOUNT_MS:-400}ms" --fallocate=none \
		--invalidate=0 --norandommap --randrepeat=0 --group_reporting --output-format=json "${@:2}" |
		python3 -c 'import json, sys; j = json.load(sys.stdin)["jobs"][0]; print(int(j["read"]["iops"] + j["write"]["iops"]))'
}

# compare THREADS NAME FIO-OPTION...
compare() {
	local i a b best_a=0 best_b=0
	for i in $(seq "${MOUNT_ROUNDS:-8}"); do
		a=$(speed "$work/ours" "${@:3}")
		b=$(speed "$work/bare" "${@:3}")
		[ "$a" -le $best_a ] || best_a=$a
		[ "$b" -le $best_b ] || best_b=$b
	done
	printf '%7s  %-38s %12s %12s %8s\n' "$1" "$2" $best_a $best_b "$(echo "$best_a $best_b" | awk '{ printf "%.2f", $1 / $2 }')"
}

# rows THREADS LABEL MOUNT-OPTION...: both mounted, the jobs
rows() {
	local threads=$1 label=$2
	"$build/foliage" mount --memory $((mib * 2))M --threads "$threads" "${@:3}" "$work/source" "$work/ours"
	"$build/bench_passthrough" "$work/other" "$work/bare" "$threads" >"$work/ready" &
	pid=$!
	until [ -s "$work/ready" ]; do sleep 0.1; done
	cat "$work/ours/file" "$work/bare/file" >/dev/null
	[ -n "$label" ] || compare "$threads" 'random read, 4 KiB' --rw=randread --bs=4k --numjobs="$threads"
	[ -n "$label" ] || compare "$threads" 'sequential read, 128 KiB' --rw=read --bs=128k --numjobs="$threads"
	compare "$threads" "random write, 4 KiB$label" --rw=randwrite --bs=4k --numjobs="$threads"
	compare "$threads" "sequential write, 128 KiB$label" --rw=write --bs=128k --numjobs="$threads"
	umount "$work/ours" "$work/bare"
	wait $pid || true
	pid=
	rm "$work/ready"
}

printf '%7s  %-38s %12s %12s %8s\n' threads job 'mount, op/s' 'bare, op/s' ratio
for threads; do
	rows "$threads" '' --dirty-background 70 --dirty-limit 80 --dirty-expire 30
	rows "$threads" ', own thresholds'
done
