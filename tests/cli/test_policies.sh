# The list of policies and their knobs.
. "$(dirname "$0")/lib.sh"

run 0 policies
for policy in clru mglru mglru-revert mglru-quickfix mglru-oneline mglru-credit mglru-noio fg mglru-6.12 clru-6.12 \
	fifo lru clock sieve s3fifo arc twoq slru lirs qdlp lfu wtinylfu belady static; do
	grep -q "^$policy  *\(engine\|reference\|offline\) " out || complain "policies lacks $policy"
done
rows=$(($(wc -l <out) - 1))
grep -q '^belady  *offline ' out || complain 'belady is offline'
run 0 policies --format csv
same 'csv header' "$(head -1 out)" 'policy,kind,knobs,preset,summary'
same 'csv rows' "$(($(wc -l <out) - 1))" "$rows"
run 0 policies --format json
[ "$(grep -c '"policy"' out)" = "$rows" ] || complain 'json rows'

run 0 policies fg
has out 'fg (engine): '
grep -qE '^tail_mode +choice +[a-z]+ +.*min' out || complain "no tail_mode: $(head -5 out)"
run 0 policies fg --format csv
same 'knobs as csv' "$(head -1 out)" 'policy,knob,kind,default,range,summary'
# Defaults are those after the preset: every knob, set to what is printed as its default, is accepted.
tail -n +2 out | cut -d, -f2,4 | tr ',' '=' | while read -r setting; do
	"$foliage" policies "fg:$setting" >/dev/null 2>>refused || echo "$setting" >>refused
done
[ -s refused ] && complain "defaults that are refused: $(cat refused)"
run 0 policies -v
has out 'fg (engine): '
has out 'fifo (reference): '
finish
