#!/bin/sh
# SPDX-License-Identifier: MIT
# Configures a build folder, silently unless that fails. A folder that is configured already is left to the
# build itself, which looks at CMake's files, unless there are options to set.
#
# usage: scripts/configure.sh BUILD [CMAKE-OPTION...]
set -eu
build=$1
shift
source=$(cd "$(dirname "$0")/.." && pwd)
cache=$build/CMakeCache.txt
[ $# = 0 ] && [ -e "$build/Makefile" ] && grep -qs '^CMAKE_TARGET_MESSAGES:.*OFF' "$cache" && exit 0
mkdir -p "$build"
cmake -S "$source" -B "$build" -G 'Unix Makefiles' -DCMAKE_RULE_MESSAGES:BOOL=OFF -DCMAKE_TARGET_MESSAGES:BOOL=OFF \
	-DCMAKE_MESSAGE_LOG_LEVEL:STRING=NOTICE "$@" >"$build/configure.log" 2>&1 || {
	cat "$build/configure.log" >&2
	exit 1
}
