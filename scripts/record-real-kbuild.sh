#!/bin/sh
# SPDX-License-Identifier: MIT
# Records data/real-kbuild.foliage.zst: compiling and assembling files of Foliage itself, and linking them, every load,
# store, instruction and read() by page, with the time between them. What `foliage bench real-kbuild` runs.
#
# usage: scripts/record-real-kbuild.sh [SOURCE.c...]  (needs gcc, as, ld, valgrind, zstd; ten minutes)
#
# FOLIAGE: the tool, else build/foliage; OUT: the trace. The sources are copied to $TMPDIR/foliage-kbuild, so that names in
# the trace do not depend on where the project lies; that folder must not exist. One process is recorded at a time:
# how many run at once is the bench's parameter `jobs`.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
foliage=${FOLIAGE:-$here/build/foliage}
out=${OUT:-$here/data/real-kbuild.foliage.zst}
units=${*:-base/err.c base/mem.c trace/read_raw.c workload/iops.c workload/latency.c workload/scene.c}
work=${TMPDIR:-/tmp}/foliage-kbuild
for tool in gcc as ld valgrind zstd "$foliage"; do
	command -v "$tool" >/dev/null || { echo "record-real-kbuild: $tool is missing" >&2; exit 2; }
done
mkdir "$work"
trap 'rm -rf "$work"' EXIT INT TERM
(cd "$here" && tar cf - base include mm machine trace workload) | (cd "$work" && tar xf -)
cd "$work"

traces=
record() { # COMMAND...: one process, one trace
	n=$((${n:-0} + 1))
	"$foliage" record -q --mapped --collapse 512 -o "$n.foliage" -- "$@"
	traces="$traces $n.foliage"
}
# What the compiler's driver would start: the one line of its plan that begins with a blank.
driver() {
	eval "record $(gcc -### "$@" 2>&1 | grep '^ ')"
}
objects=
for unit in $units; do
	name=$(basename "$unit" .c)
	driver -std=gnu17 -O2 -D_GNU_SOURCE -I. -Iinclude -S "$unit" -o "$name.s"
	driver -c "$name.s" -o "$name.o"
	objects="$objects $name.o"
done
# shellcheck disable=SC2086
record ld -r -o all.o $objects
# shellcheck disable=SC2086
"$foliage" convert $traces all.foliage
zstd -q -f -19 all.foliage -o "$out"
ls -l "$out"
