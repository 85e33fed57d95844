#!/bin/bash
# SPDX-License-Identifier: MIT
# The loop closed: fio reads a file on the mount at random, zipf distributed, with room for 40 % of its pages; then the very offsets that
# fio logged are replayed by `foliage replay` with the same number of pages and the same policy. One engine, once with real reads of a
# real program, once on a list of page numbers. Prints hits and refaults a read of both and the deviation; exits 1 when one deviates by
# more than 3 %, or fg is not the best.
#
# usage: bench/mount_zipf.sh FOLIAGE [POLICY...]     ZIPF_MIB (32) is the file's size, ZIPF_READS (100000), ZIPF_THETAS ("0.9 1.1")
set -eu
foliage=$(realpath "${1:?usage: bench/mount_zipf.sh FOLIAGE [POLICY...]}")
shift
[ $# -gt 0 ] || set -- clru mglru fg
mib=${ZIPF_MIB:-32}
reads=${ZIPF_READS:-100000}
pages=$((mib * 256))
room=$((pages * 2 / 5))
command -v fio >/dev/null || { echo "SKIP: bench/mount_zipf.sh needs fio"; exit 0; }
[ -w /dev/fuse ] && [ "$(id -u)" = 0 ] || { echo "SKIP: bench/mount_zipf.sh needs /dev/fuse and root"; exit 0; }
work=$(mktemp -d)
trap 'umount -l "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/source" "$work/mnt"
head -c "${mib}m" /dev/zero >"$work/source/file"

# column NAME: of the csv on standard input
column() {
	awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i } NR == 2 { print $n }'
}

# fio's offsets depend on its seed and the name of the file, so every policy gets the same.
on_the_mount() { # POLICY THETA
	"$foliage" mount --memory "${mib}M" --pages $room --policy "$1" --readahead 0 --threads 1 --buffered "$work/source" "$work/mnt"
	rm -f "$work/iolog"
	fio --name=zipf --filename="$work/mnt/file" --size="${mib}m" --ioengine=psync --rw=randread --bs=4k --random_distribution="zipf:$2" \
		--norandommap --randrepeat=1 --invalidate=0 --fallocate=none --number_ios="$reads" --io_size=1t --write_iolog="$work/iolog" \
		--output="$work/fio.out"
	# Unmounted the process is gone, and its numbers: half a second for the last of them to be published.
	sleep 0.7
	"$foliage" stat --format csv "$work/mnt" >"$work/stat.csv"
	umount "$work/mnt"
}

status=0
printf '%d pages, room for %d, %d reads\n\n' $pages $room "$reads"
printf '%5s  %-8s %12s %12s %8s %16s %16s %8s\n' theta policy 'misses' 'replayed' '' 'refaults/read' 'replayed' ''
for theta in ${ZIPF_THETAS:-0.9 1.1}; do
	for policy; do
		on_the_mount "$policy" "$theta"
		"$foliage" replay --pages $room --policy "$policy" --format csv "$work/iolog" >"$work/replay.csv"
		echo "$(column misses <"$work/stat.csv") $(column misses <"$work/replay.csv")" \
			"$(column refaults <"$work/stat.csv") $(column refaults <"$work/replay.csv")" |
			awk -v theta="$theta" -v policy="$policy" -v reads="$reads" '{
				m = $1 / $2 - 1; r = $3 / $4 - 1
				printf "%5s  %-8s %12d %12d %7.2f%% %16.4f %16.4f %7.2f%%\n", theta, policy, $1, $2, 100 * m, $3 / reads, $4 / reads, 100 * r
				exit m * m > 0.0009 || r * r > 0.0009
			}' || status=1
		echo "$theta $policy $(column refaults <"$work/stat.csv")" >>"$work/all"
	done
done
# fg before all others, at each theta.
awk '{ n[$1 " " $2] = $3; thetas[$1]; policies[$2] }
END { for (t in thetas) for (p in policies) if ("fg" in policies && n[t " fg"] > n[t " " p]) { print "theta " t ": fg has more refaults than " p; bad = 1 } exit bad }' \
	"$work/all" || status=1
[ $status = 0 ] || echo "NOT within 3 %, or fg is not the best"
exit $status
