#!/bin/sh
# SPDX-License-Identifier: MIT
# Whether every C file is as clang-format 14 would write it. --fix rewrites instead; names limit it to these files.
#
# usage: scripts/check-format.sh [--fix] [FILE...]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
tool=${CLANG_FORMAT:-clang-format-14}
command -v "$tool" >/dev/null || {
	echo "check-format: $tool is missing (scripts/setup.sh ci)" >&2
	exit 2
}
mode="--dry-run -Werror"
if [ "${1:-}" = --fix ]; then
	mode=-i
	shift
fi
[ $# -gt 0 ] || {
	cd "$here"
	# shellcheck disable=SC2046
	set -- $(find . \( -name 'build*' -o -name '.[!.]*' \) -prune -o -type f -name '*.[ch]' -print | sort)
}
status=0
bad=""
for file; do
	# shellcheck disable=SC2086
	"$tool" --style=file $mode "$file" >/dev/null 2>&1 || {
		bad="$bad ${file#./}"
		status=1
	}
done
[ $status = 0 ] || {
	echo "not formatted, run scripts/check-format.sh --fix on:" >&2
	echo "$bad" | tr ' ' '\n' | sed '/^$/d; s/^/  /' >&2
}
exit $status
