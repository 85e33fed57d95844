#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs ctest in a build folder and then says, which ctest does not, what was skipped and why. The last line is
# `N passed, N failed`.
#
# usage: scripts/run-tests.sh BUILD [CTEST-OPTION...]
set -u
build=$1
shift
log=$build/test.log
ctest --test-dir "$build" --output-on-failure --no-tests=error --output-log "$log" "$@" </dev/null
status=$?
full=$build/Testing/Temporary/LastTest.log
if [ -e "$full" ]; then
	skips=$(grep -ho 'SKIP: .*' "$full" | sort | uniq -c | sort -rn)
	[ -z "$skips" ] || printf '\nSkipped (times, why):\n%s\n' "$skips"
	cases=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test(s).*/\1/p' "$full" | awk '{ n += $1 } END { print n + 0 }')
	printf '\n%s cases of cmocka passed inside these programs.\n' "$cases"
fi
# "98% tests passed, 1 tests failed out of 63"
counts=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$log" | tail -1)
if [ -z "$counts" ]; then
	echo "0 passed, 1 failed"
	exit 1
fi
failed=${counts% *}
total=${counts#* }
echo "$((total - failed)) passed, $failed failed"
exit $status
