#!/bin/sh
# SPDX-License-Identifier: MIT
# Whether programs in C and in C++ find an installed library by pkg-config, build without a warning and run.
#
# usage: scripts/check-install.sh DESTDIR PREFIX
set -eu
root=$1
prefix=$2
pc=$(find "$root$prefix" -name foliage.pc)
[ -n "$pc" ] || {
	echo "check-install: no foliage.pc under $root$prefix" >&2
	exit 1
}
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$root
# With the prefix /usr the paths of the compiler itself are left out otherwise, and DESTDIR with them.
PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_ALLOW_SYSTEM_CFLAGS PKG_CONFIG_ALLOW_SYSTEM_LIBS LD_LIBRARY_PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for header in "$root$prefix"/include/foliage/*.h; do
	echo "#include <foliage/$(basename "$header")>"
done >"$scratch/program.c"
cat >>"$scratch/program.c" <<'PROGRAM'
#include <stdio.h>
int main(void)
{
	return puts(foliage_version()) < 0;
}
PROGRAM
cp "$scratch/program.c" "$scratch/program.cc"
flags=$(pkg-config --cflags --libs foliage)
cd "$scratch"
for compiler in "${CC:-cc} -std=c17 program.c" "${CXX:-c++} -std=c++17 program.cc"; do
	# shellcheck disable=SC2086
	$compiler -Wall -Wextra -Werror $flags -o program
	[ "$(./program)" = "$(pkg-config --modversion foliage)" ]
done
