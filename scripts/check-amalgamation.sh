#!/bin/bash
# SPDX-License-Identifier: MIT
# The two files of the amalgamation alone, in a folder of their own: without a warning in gcc and clang, the header
# in C and in C++ and in several files of one program, no global name without the prefix, and complete programs that run.
#
# usage: scripts/check-amalgamation.sh FOLDER     of foliage.c and foliage.h
set -eu
from=$(realpath "$1")
source=$(dirname "$(realpath "$0")")/..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed -n '/^```c$/,/^```$/p' "$source/docs/embedding.md" | sed '1d;$d' >"$scratch/embedding.c"
cp "$source/examples/reclaim.c" "$scratch"
cp "$from/foliage.c" "$from/foliage.h" "$scratch"
cd "$scratch"
sed -i 's|<foliage/[a-z]*\.h>|"foliage.h"|; s|"foliage/[a-z]*\.h"|"foliage.h"|' embedding.c reclaim.c
cat >both.cc <<'PROGRAM'
#include "foliage.h"
#include "foliage.h"
#include <cstring>
int main()
{
	foliage_pool_options options = {};
	foliage_pool *pool = nullptr;

	options.bytes = 4 << 20;
	if (foliage_pool_create(&options, &pool, nullptr, 0) != 0)
		return 1;
	foliage_pool_destroy(pool);
	return std::strlen(foliage_version()) == 0;
}
PROGRAM
flags="-O1 -fno-strict-aliasing -Wall -Wextra -Werror"
tried=0
for pair in "${CC:-gcc} ${CXX:-g++}" "clang-14 clang++-14"; do
	read -r c cxx <<<"$pair"
	if ! command -v "$c" >/dev/null; then
		echo "SKIP: no $c: the amalgamation was not compiled by it"
		continue
	fi
	$c -std=gnu17 $flags -c foliage.c -o foliage.o
	stray=$(nm -g --defined-only foliage.o | awk '{ print $3 }' | grep -v '^foliage_' || true)
	[ -z "$stray" ] || { echo "global without the prefix: $stray" >&2; exit 1; }
	$c -std=gnu17 $flags embedding.c foliage.o -o embedding -pthread -lm
	hits=$(./embedding)
	[ "${hits%% *}" -gt 100000 ] || { echo "embedding: $hits" >&2; exit 1; }
	$c -std=gnu17 $flags reclaim.c foliage.o -o reclaim -pthread -lm
	./reclaim >/dev/null
	if command -v "$cxx" >/dev/null; then
		$cxx -std=c++17 -Wall -Wextra -Werror both.cc foliage.o -o both -pthread -lm
		./both
	else
		echo "SKIP: no $cxx"
	fi
	tried=$((tried + 1))
done
[ $tried -gt 0 ] || { echo "check-amalgamation: no compiler" >&2; exit 1; }
echo "amalgamation: $(wc -l <foliage.c) lines, $tried compilers"
