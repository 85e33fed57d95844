# examples/reclaim.c against the public header and the shared library alone; and the public headers as C++.
. "$(dirname "$0")/lib.sh"
build_example reclaim -std=c17
for policy in fg mglru mglru-6.12; do
	./reclaim $policy >out 2>err || complain "$policy: status $?, $(cat err)"
	./reclaim $policy >again
	cmp -s out again || complain "$policy: two runs differ"
	awk 'NR == 1 { exit !($3 + 0 > 0.45 && $3 + 0 < 0.75 && $4 <= 100 && $4 > 90) }' out ||
		complain "$policy: unlikely: $(head -1 out)"
	sed -n 2p out | grep -q '^memcg ' || complain "$policy: no lru_gen text: $(cat out)"
	# The generations hold what the pager counts, but for what waits in the add batch.
	awk 'NR == 1 { n = $4 } NR > 3 { sum += $3 + $4 } END { exit !(sum <= n && sum >= n - 6 && NR > 4) }' out ||
		complain "$policy: other pages in the generations: $(cat out)"
done
./reclaim clru >out || complain "clru: status $?"
same "lines of a policy without generations" "$(wc -l <out)" 1
./reclaim nosuch >out 2>err && complain "an unknown policy is accepted"
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
