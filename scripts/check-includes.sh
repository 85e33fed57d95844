#!/bin/sh
# SPDX-License-Identifier: MIT
# Includes point down only: for every folder, which folders its files may include. Tests, fuzzers and benches
# may include anything. Then every header must compile on its own.
#
# usage: scripts/check-includes.sh
set -eu
cd "$(dirname "$0")/.."
files=$(find base mm machine cache trace workload adapters cli examples include -type f -name '*.[ch]' | sort)
# shellcheck disable=SC2086
awk '
BEGIN {
	allow["include/foliage"] = "foliage"
	allow["base"] = "base"
	allow["mm"] = "base foliage mm"
	allow["mm/reference"] = "base foliage mm/reference"
	allow["machine"] = "base foliage mm machine"
	allow["cache"] = "base foliage mm cache"
	allow["trace"] = "base foliage trace"
	allow["workload"] = "base foliage mm machine cache trace workload"
	allow["adapters"] = "base foliage mm cache trace adapters"
	allow["cli"] = "base foliage mm machine cache trace workload adapters cli"
	allow["examples"] = "foliage"
}
function folder(path) {
	sub("/[^/]*$", "", path)
	while (!(path in allow) && path ~ "/")
		sub("/[^/]*$", "", path)
	return path
}
FNR == 1 { here = folder(FILENAME) }
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	path = $0
	sub(/^[^"<]*["<]/, "", path)
	sub(/[">].*/, "", path)
	system_header = $0 ~ /</
	if (system_header && path !~ "^foliage/")
		next
	if (path !~ "/")
		into = here # beside the file
	else {
		into = folder(path)
		# The table of policies may name the reference policies.
		if (FILENAME == "mm/policies.c" && into == "mm/reference")
			next
	}
	if (index(" " allow[here] " ", " " into " ") == 0) {
		printf "%s:%d: %s may not include %s (only: %s)\n", FILENAME, FNR, here, path, allow[here]
		bad = 1
	}
}
END { exit bad }' $files >&2 || status=1
status=${status:-0}

compiler=${CC:-cc}
if command -v "$compiler" >/dev/null; then
	for header in $(echo "$files" | grep '\.h$'); do
		echo "#include \"$header\"" | "$compiler" -std=gnu17 -D_GNU_SOURCE -DFOLIAGE_VERSION='"0"' -Iinclude -I. \
			-Wall -Wextra -Wno-unused-function -Werror -fsyntax-only -x c - 2>/dev/null || {
			echo "$header: does not compile on its own" >&2
			status=1
		}
	done
fi
exit $status
