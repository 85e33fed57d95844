# Sourced by the scripts beside it: a scratch folder, and checks that name what they wanted and what they got.
set -u
foliage=$(realpath "${1:?usage: bash test_NAME.sh PATH-OF-FOLIAGE}")
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0

complain() {
	echo "FAILED: $*" >&2
	failures=$((failures + 1))
}

# run STATUS ARGUMENT...: the tool must end with STATUS; its output is in ./out and ./err.
run() {
	local want=$1 got
	shift
	"$foliage" "$@" >out 2>err
	got=$?
	[ "$got" = "$want" ] || complain "foliage $*: status $got, not $want; $(cat err)"
}

# refuses WORDS ARGUMENT...: status 2, nothing on standard output, one line on standard error that has WORDS.
refuses() {
	local words=$1
	shift
	run 2 "$@"
	[ -s out ] && complain "foliage $*: prints although it fails: $(head -3 out)"
	[ "$(wc -l <err)" = 1 ] || complain "foliage $*: not one line: $(cat err)"
	grep -q '^foliage: ' err || complain "foliage $*: no 'foliage: ' in: $(cat err)"
	grep -qF -- "$words" err || complain "foliage $*: wanted '$words', got: $(cat err)"
}

# same WHAT GOT WANTED
same() {
	[ "$2" = "$3" ] || complain "$1: got '$2', wanted '$3'"
}

has() { # FILE WORDS
	grep -qF -- "$2" "$1" || complain "$1 lacks '$2': $(head -5 "$1")"
}

# A pseudo-random trace of COUNT accesses over PAGES pages, hot ones low; one number a line.
skewed() {
	awk -v n="$1" -v pages="$2" 'BEGIN {
		x = 12345
		for (i = 0; i < n; i++) {
			x = (x * 1103515245 + 12345) % 2147483648
			u = x / 2147483648
			print int(u * u * pages)
		}
	}'
}

# build_example NAME FLAG...: ./NAME from examples/NAME.c, the public headers (below $source) and the shared library
# alone; ends the script where there is no compiler, or when it does not compile.
build_example() {
	local name=$1 build kind sanitize=
	shift
	source=$(realpath "${FOLIAGE_SOURCE_DIR:-$here/../..}")
	build=$(dirname "$foliage")
	if ! command -v "${CC:-cc}" >/dev/null; then
		echo "SKIP: no ${CC:-cc}"
		exit 0
	fi
	# Built with a sanitizer, the library wants the program to be so as well.
	for kind in address undefined thread; do
		grep -q "^FOLIAGE_SANITIZE:STRING=.*$kind" "$build/CMakeCache.txt" 2>/dev/null && sanitize="$sanitize -fsanitize=$kind"
	done
	# shellcheck disable=SC2086
	if ! "${CC:-cc}" -O1 -Wall -Wextra -Werror $sanitize -I"$source/include" -o "$name" "$source/examples/$name.c" "$@" \
		-L"$build" -lfoliage -lm -Wl,-rpath,"$build" 2>cc.err; then
		complain "the example does not compile: $(cat cc.err)"
		finish
	fi
}

finish() {
	[ "$failures" = 0 ] || { echo "$failures failed" >&2; exit 1; }
	echo passed
}
