#!/bin/sh
# SPDX-License-Identifier: MIT
# What the library promises and a linker can see: only names with the prefix are visible, nothing in it prints or
# ends the process, and it has no variables that can be written.
#
# usage: scripts/check-library.sh LIBFOLIAGE.SO
set -eu
library=$1
[ -s "$library" ] || {
	echo "check-library: no $library" >&2
	exit 2
}
status=0
complain() {
	[ -z "$2" ] && return
	echo "$library: $1:" $2 >&2
	status=1
}
complain "visible without the prefix" \
	"$(nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ && $3 !~ /^foliage_/ { print $3 }')"
# Formatting into a buffer or into a stream that the caller gives is no printing.
complain "prints or ends the process" "$(nm -D --undefined-only "$library" | awk '{ sub("@.*", "", $2); print $2 }' |
	grep -xE '(__)?v?d?printf(_chk)?|puts|putchar|perror|psignal|warnx?|errx?|stdout|stderr|_?exit|_Exit|quick_exit|abort|__assert_fail' || true)"
# .data.rel.ro is written by the dynamic linker only; what is left are the compiler's own words.
complain "variables that can be written" "$(objdump -t "$library" |
	awk '$0 ~ / O / && ($4 == ".data" || $4 == ".bss" || $4 == ".tbss" || $4 == ".tdata") { print $NF }' |
	grep -vE '^(completed\.[0-9]+|__dso_handle|__TMC_END__)$' || true)"
exit $status
