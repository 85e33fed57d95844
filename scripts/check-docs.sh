#!/bin/sh
# SPDX-License-Identifier: MIT
# Documents against the tree and the tool: every relative link leads to a file, every `foliage COMMAND --option`
# in code of a document is one that the tool knows, and the manual pages are written and typeset without a
# complaint (the latter where groff is installed).
#
# usage: scripts/check-docs.sh FOLIAGE
set -eu
foliage=$(realpath "$1")
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
complain() {
	echo "$*" >&2
	status=1
}
find . \( -name 'build*' -o -name '.[!.]*' \) -prune -o -type f -name '*.md' -print | sort >"$scratch/documents"

# Links: [text](target), but not in code.
while read -r document; do
	awk -v document="$document" '
	/^[ \t]*(```|~~~)/ { fence = !fence }
	!fence {
		gsub(/`[^`]*`/, "")
		while (match($0, /\]\([^) ]+/)) {
			print document "\t" FNR "\t" substr($0, RSTART + 2, RLENGTH - 2)
			$0 = substr($0, RSTART + RLENGTH)
		}
	}' "$document"
done <"$scratch/documents" >"$scratch/links"
while IFS="$(printf '\t')" read -r document line target; do
	case $target in
	*://* | mailto:* | '#'*) continue ;;
	esac
	[ -e "$(dirname "$document")/${target%%#*}" ] || complain "$document:$line: no such file: $target"
done <"$scratch/links"

# Commands: in code spans and in fenced or indented lines; one a line, to the next pipe or redirection.
while read -r document; do
	awk -v document="$document" '
	function command(text) {
		sub(/^[ \t]*([$#] )?/, "", text)
		while (text ~ /^[A-Z_]+=[^ ]* /)
			sub(/^[^ ]* /, "", text)
		if (text !~ /^([a-zA-Z0-9_.-]*\/)*foliage /)
			return
		sub(/^[^ ]* /, "", text)
		sub(/[ \t]*[|<>;&#].*/, "", text)
		print document "\t" FNR "\t" text
	}
	/^[ \t]*(```|~~~)/ { fence = !fence; next }
	fence || /^(    |\t)/ { command($0); next }
	{
		while (match($0, /`[^`]+`/)) {
			command(substr($0, RSTART + 1, RLENGTH - 2))
			$0 = substr($0, RSTART + RLENGTH)
		}
	}' "$document"
done <"$scratch/documents" >"$scratch/commands"
"$foliage" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' >"$scratch/known"
[ -s "$scratch/known" ] || complain "foliage --help lists no commands"
while IFS="$(printf '\t')" read -r document line words; do
	# shellcheck disable=SC2086
	set -f
	set -- $words
	command=$1
	case $command in
	-* | help | [A-Z]* | ...) continue ;; # the tool's own options, or a placeholder
	esac
	command=$(echo "$command" | tr -d '.,:()')
	if ! grep -qx -- "$command" "$scratch/known"; then
		complain "$document:$line: no such command: foliage $command"
		continue
	fi
	[ -e "$scratch/help.$command" ] || "$foliage" help "$command" >"$scratch/help.$command"
	shift
	for word; do
		option=$(echo "$word" | sed -n 's/^[[]*\(--[a-z][a-z-]*\).*/\1/p')
		[ -z "$option" ] || grep -qE -- "(^|[^a-z-])$option([^a-z-]|\$)" "$scratch/help.$command" ||
			complain "$document:$line: foliage $command has no $option"
	done
done <"$scratch/commands"
set +f

# Every document says what it is.
while read -r document; do
	[ "$(head -c 2 "$document")" = "# " ] || grep -qm1 . "$document" || complain "$document: empty"
done <"$scratch/documents"

# Every folder of code has a README.
for folder in base mm mm/reference machine cache trace workload cli bench fuzz examples tests; do
	[ ! -d "$folder" ] || [ -z "$(find "$folder" -maxdepth 2 -name '*.[ch]' | head -1)" ] || [ -s "$folder/README.md" ] ||
		complain "$folder has no README.md"
done

mkdir "$scratch/man"
"$foliage" --man-all "$scratch/man" || complain "foliage --man-all fails"
if command -v groff >/dev/null; then
	for page in "$scratch"/man/*.1 man/*.[1-9]; do
		groff -ww -man -Tascii -z "$page" 2>"$scratch/warnings" || true
		[ ! -s "$scratch/warnings" ] || complain "$page: $(head -3 "$scratch/warnings")"
	done
fi
exit $status
