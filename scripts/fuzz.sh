#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one libFuzzer target for some seconds, from nothing. Quiet when it finds nothing; otherwise its output and
# the input that broke it, as base64 so that it can be taken from a log.
#
# usage: scripts/fuzz.sh TARGET SECONDS
set -u
target=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
"$target" -max_total_time="$2" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -verbosity=1 >log 2>&1 </dev/null
status=$?
if [ $status = 0 ]; then
	grep -o 'Done [0-9]* runs.*' log
	# A target that ran nothing has tested nothing.
	grep -q 'Done [0-9]* runs' log
	exit
fi
tail -30 log
for input in crash-* leak-* timeout-* oom-*; do
	[ -s "$input" ] && echo "$input, base64:" && base64 "$input"
done
exit 1
