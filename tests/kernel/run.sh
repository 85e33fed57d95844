#!/bin/bash
# Run scenarios on a booted Linux 6.12 and on the engine, and print both with the deviation of every counter.
#
#     tests/kernel/run.sh [SCENARIO|FILE.scn ...]     default: all of scenarios/; "short": the three-minute set
#
# environment: FOLIAGE_BUILD        a build directory with libfoliage_tool.a (default: build/ of the source tree)
#              FOLIAGE_KERNEL_DIR   kernel, guest and results (default: ~/.cache/foliage-kernel)
#              REUSE=1              boot only what was not recorded with the same scenario and guest before
#              SUMMARY=1            one line a window
# Exit 0: every scenario met what it expects; 1: one did not; 2: something could not be run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${FOLIAGE_BUILD:-$root/build}
export FOLIAGE_KERNEL_DIR=${FOLIAGE_KERNEL_DIR:-$HOME/.cache/foliage-kernel}
dir=$FOLIAGE_KERNEL_DIR

[ -f "$build/libfoliage_tool.a" ] || { echo "run.sh: $build: no libfoliage_tool.a; run make first" >&2; exit 2; }
"$here/setup.sh" || exit 2
libs=
for l in libzstd zlib liblzma; do libs+=" $(pkg-config --silence-errors --libs $l || true)"; done
${CC:-gcc} -std=gnu17 -O2 -D_GNU_SOURCE -I"$root" -I"$root/include" -o "$dir/kernel_compare" "$here/compare.c" \
	"$build/libfoliage_tool.a" $libs -lm -ldl -lpthread || exit 2

[ $# -gt 0 ] || set -- $(cd "$here/scenarios" && ls *.scn | grep -v '^short-' | sed 's/\.scn$//')
[ "$1" != short ] || set -- short-pread short-memcg short-mmap

status=0
for name in "$@"; do
	file=$here/scenarios/$name.scn
	case $name in *.scn) file=$name; name=$(basename "$name" .scn) ;; esac
	out=$dir/results/$name; mkdir -p "$out"
	machine=$("$dir/kernel_compare" compile "$file" "$out/scenario") || exit 2
	sum=$(cat "$out/scenario" "$dir/initrd.gz" | sha256sum; echo "$machine")
	if [ -z "${REUSE:-}" ] || [ "$sum" != "$(cat "$out/sum" 2>/dev/null)" ]; then
		rm -f "$out/sum"
		# A busy host can make the emulated timer look broken at boot.
		env $machine "$here/boot.sh" "$out/scenario" "$out" || env $machine "$here/boot.sh" "$out/scenario" "$out" || exit 2
		echo "$sum" > "$out/sum"
	fi
	rm -f "$out/scenario"
	echo "=== $name: $(head -1 "$file" | sed 's/^# *//')"
	rc=0; "$dir/kernel_compare" show "$file" "$out" > "$out/table" || rc=$?
	[ $rc -le 1 ] || exit 2
	[ $rc -eq 0 ] || status=1
	if [ -n "${SUMMARY:-}" ]; then grep -E 'agree|refault|pgsteal|equal|exceeds|below' "$out/table" || true; else cat "$out/table"; fi
done
exit $status
