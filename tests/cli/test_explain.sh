# Files of events, and one page's story.
. "$(dirname "$0")/lib.sh"

# Page 7 comes in, is hit twice, is pushed out by others, comes back.
{ echo 7; echo 7; echo 7; seq 101 140; echo 7; } >t.txt
run 0 replay t.txt --pages 10 --policy lru --events e.tsv
same magic "$(head -1 e.tsv)" '# foliage events 1'
same titles "$(grep -v '^#' e.tsv | head -1)" \
	"$(printf 'access\tpage\tevent\trule\tfrom\tto\trefs_from\trefs_to')"
same 'events of page 7 by awk' "$(awk -F'\t' '$2 == 7 && $3 != "add" { print $1, $3 }' e.tsv | tr '\n' ';')" \
	"$(printf '0 insert;1 hit;2 hit;12 evict;43 refault;')"
run 0 explain e.tsv --page 7
has out 'Page 7 of t.txt under lru, room 10:'
grep -q '^access 0: came in.*not been here before' out || complain "no insertion: $(cat out)"
grep -q '^accesses 1 to 2: 2 hits' out || complain "hits are not told together: $(cat out)"
grep -q '^access 12: was evicted' out || complain "no eviction: $(cat out)"
grep -q '^access 43: came back, a refault' out || complain "no refault: $(cat out)"
has out 'In all: 2 hits, 1 eviction, 1 refault.'
refuses 'e.tsv: page 5000: nothing happened to it' explain e.tsv --page 5000

# An engine policy tells its rules with their sections: in, placed, counted, aged, evicted, back.
skewed 20000 400 >skewed.txt
for policy in fg mglru clru; do
	run 0 replay skewed.txt --pages 64 --policy $policy --events $policy.tsv --format csv
	hits=$(sed -n 2p out | cut -d, -f5)
	misses=$(sed -n 2p out | cut -d, -f6)
	refaults=$(sed -n 2p out | cut -d, -f7)
	stolen=$(sed -n 2p out | cut -d, -f9)
	count() { awk -F'\t' -v e="$1" '!/^#/ && $3 == e' $policy.tsv | wc -l; }
	# The engine marks what it brings in, and a hit that changes nothing leaves no event.
	told=$(awk -F'\t' '/^#/ { next } $3 == "insert" || $3 == "refault" { entry[$2] = $1 }
		($3 == "hit" || $4 == "defer" || $4 == "overflow") && entry[$2] != $1 { n++ }
		END { print n + 0 }' $policy.tsv)
	[ "$told" -gt $((hits / 2)) ] && [ "$told" -le "$hits" ] || complain "$policy: $told events of $hits hits"
	same "$policy: insertions and refaults" "$(($(count insert) + $(count refault)))" "$misses"
	same "$policy: refaults" "$(count refault)" "$refaults"
	same "$policy: evictions" "$(count evict)" "$stolen"
	page=$(awk -F'\t' '$3 == "refault" { print $2; exit }' $policy.tsv)
	run 0 explain $policy.tsv --page "$page"
	has out "under $policy, room 64:"
	has out 'was evicted'
	has out 'came back, a refault'
	grep -qE '\([ABC]\.[0-9]' out || complain "$policy: no section of a rule: $(head -20 out)"
done
run 0 explain fg.tsv --page "$(awk -F'\t' '$4 == "overflow" || $4 == "defer" { print $2; exit }' fg.tsv)"
grep -qE 'C\.2 rule [45]' out || complain "fg: no rule of its own: $(head -20 out)"

# Without the last byte, with a strange line, with strange names.
head -c -1 e.tsv >cut.tsv
refuses 'cut.tsv: line ' explain cut.tsv --page 7
head -3 e.tsv >head.tsv
refuses 'head.tsv: line 3: the file ends in its header' explain head.tsv --page 7
{ cat e.tsv; echo hello; } >bad.tsv
refuses 'not an event' explain bad.tsv --page 7
sed 's/\tevict\t/\tvanish\t/' e.tsv >what.tsv
refuses 'unknown event' explain what.tsv --page 7
sed 's/\tfirst\t/\tluck\t/' e.tsv >why.tsv
refuses 'unknown rule' explain why.tsv --page 7
finish
