#!/bin/bash
# SPDX-License-Identifier: MIT
# The program of docs/embedding.md compiles without warnings, runs, and hits: test_embedding.sh LIBFOLIAGE COMPILER
set -eu
library=$1
compiler=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n '/^```c$/,/^```$/p' "$FOLIAGE_SOURCE_DIR/docs/embedding.md" | sed '1d;$d' >"$dir/embedding.c"
lines=$(grep -c . "$dir/embedding.c")
if [ "$lines" -gt 75 ]; then
	echo "the program has $lines lines: too long for an example"
	exit 1
fi
# A library built with a sanitizer needs its run-time in the program.
flags=
for s in asan:address tsan:thread ubsan:undefined; do
	if ldd "$library" | grep -q "lib${s%%:*}"; then flags="$flags -fsanitize=${s##*:}"; fi
done
"$compiler" -std=gnu17 -O2 -Wall -Wextra -Werror $flags -I"$FOLIAGE_SOURCE_DIR/include" "$dir/embedding.c" \
	-o "$dir/embedding" "$library" -Wl,-rpath,"$(dirname "$library")" -lpthread
out=$("$dir/embedding")
echo "$out"
hits=${out%% *}
[ "$hits" -gt 100000 ]
