#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing of the packages that a purpose needs; does nothing when all of it is there.
# Only Debian's package manager is known; elsewhere cmake tells what it lacks.
#
# usage: scripts/setup.sh [build] [test] [ci] [deb]     (build alone when nothing is named)
set -eu
# What `make` and `make demo` need. SQLite is for its adapter, ncurses for the screen of `foliage top`.
build="gcc make cmake pkg-config libc6-dev libzstd-dev zlib1g-dev liblzma-dev libjson-c-dev libsqlite3-dev libncurses-dev libbpf-dev"
# Asynchronous I/O of the page cache's files.
build="$build liburing-dev"
# `foliage mount`.
build="$build libfuse3-dev"
# The tests: cmocka, a C++ compiler for the headers, what the scripts call.
test="g++ libcmocka-dev binutils gzip xz-utils zstd groff-base python3 sqlite3 fio valgrind redis-tools git mount"
# The other compiler, sanitizers and fuzzers, the format.
ci="clang-14 libclang-rt-14-dev clang-format-14 util-linux git"
# Debian packages; debootstrap makes the clean system that they are installed in.
deb="dpkg-dev debootstrap"

[ $# -gt 0 ] || set -- build
need=""
for purpose; do
	case $purpose in
	build) need="$need $build" ;;
	test) need="$need $test" ;;
	ci) need="$need $ci $deb" ;;
	deb) need="$need $deb" ;;
	*)
		echo "usage: scripts/setup.sh [build] [test] [ci] [deb]" >&2
		exit 2
		;;
	esac
done

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || exit 0
# One call: a name that dpkg has never heard of is only a line on standard error.
# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${Package} ${Status}\n' $need 2>/dev/null | sed -n 's/ install ok installed$//p') || true
missing=""
for package in $need; do
	echo "$have" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "foliage: missing packages, install them with: sudo apt-get install$missing" >&2
	exit 1
fi
echo "Installing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
install() {
	# shellcheck disable=SC2086
	apt-get install -y -qq --no-install-recommends $missing </dev/null
}
# The lists may be absent or too old to find the files: then fetch them and try again.
if ! install >"$log" 2>&1; then
	apt-get update -qq >"$log" 2>&1 && install >>"$log" 2>&1 || {
		cat "$log" >&2
		echo "foliage: installing failed:$missing" >&2
		exit 1
	}
fi
