# examples/reclaim.c against the public header and the shared library alone; and the public headers as C++.
. "$(dirname "$0")/lib.sh"
source=$(realpath "${FOLIAGE_SOURCE_DIR:-$here/../..}")
build=$(dirname "$foliage")
if ! command -v "${CC:-cc}" >/dev/null; then
	echo "SKIP: no ${CC:-cc}"
	exit 0
fi

# Built with a sanitizer, the library wants the program to be so as well.
sanitize=
for kind in address undefined thread; do
	grep -q "^FOLIAGE_SANITIZE:STRING=.*$kind" "$build/CMakeCache.txt" 2>/dev/null && sanitize="$sanitize -fsanitize=$kind"
done
# shellcheck disable=SC2086
if ! "${CC:-cc}" -std=c17 -O1 -Wall -Wextra -Werror $sanitize -I"$source/include" -o pager \
	"$source/examples/reclaim.c" -L"$build" -lfoliage -lm -Wl,-rpath,"$build" 2>cc.err; then
	complain "the example does not compile: $(cat cc.err)"
	finish
fi
for policy in fg mglru mglru-6.12; do
	./pager $policy >out 2>err || complain "$policy: status $?, $(cat err)"
	./pager $policy >again
	cmp -s out again || complain "$policy: two runs differ"
	awk 'NR == 1 { exit !($3 + 0 > 0.45 && $3 + 0 < 0.75 && $4 <= 100 && $4 > 90) }' out ||
		complain "$policy: unlikely: $(head -1 out)"
	sed -n 2p out | grep -q '^memcg ' || complain "$policy: no lru_gen text: $(cat out)"
	# The generations hold what the pager counts, but for what waits in the add batch.
	awk 'NR == 1 { n = $4 } NR > 3 { sum += $3 + $4 } END { exit !(sum <= n && sum >= n - 6 && NR > 4) }' out ||
		complain "$policy: other pages in the generations: $(cat out)"
done
./pager clru >out || complain "clru: status $?"
same "lines of a policy without generations" "$(wc -l <out)" 1
./pager nosuch >out 2>err && complain "an unknown policy is accepted"
has err nosuch

if command -v g++ >/dev/null; then
	for header in "$source"/include/foliage/*.h; do
		echo "#include \"$header\""
	done >all.cc
	g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$source/include" all.cc 2>cc.err ||
		complain "the public headers are not C++: $(cat cc.err)"
else
	echo "SKIP: no g++ for the headers"
fi
finish
