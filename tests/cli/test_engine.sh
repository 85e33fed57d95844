# Options that reach into the engine: dumps, mapped accesses, the modelled size.
. "$(dirname "$0")/lib.sh"
skewed 20000 400 >t.txt
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }' out; }

# The state at the end, for those that have one; sizes of the generations sum up to at most the room.
run 0 replay t.txt --pages 64 --policy fg,lru --dump lru_gen --no-timing
has out 'lru_gen of fg at 64 pages:'
has out 'memcg '
grep -q 'lru_gen of lru' out && complain 'lru has no lru_gen'
sum=$(awk '/^lru_gen of fg/ { on = 1; next } on && NF == 4 { sum += $4 } END { print sum + 0 }' out)
[ "$sum" -ge 48 ] && [ "$sum" -le 64 ] || complain "generations hold $sum pages of 64"
run 0 replay t.txt --pages 64 --policy mglru --dump lru_gen_full --no-timing
grep -qE '[0-9]+r +[0-9]+e +[0-9]+p' out || complain "no tiers: $(tail -5 out)"
run 0 replay t.txt --pages 64 --policy clru --dump memory.stat --no-timing
refaults=$(awk '$1 == "workingset_refault_file" { print $2 }' out)
run 0 replay t.txt --pages 64 --policy clru --format csv
same 'refaults of memory.stat' "$refaults" "$(column refaults)"
run 0 replay t.txt --pages 64 --policy fg --dump lru_gen --format json
has out '"dump": "memcg '

# Mapped accesses are found by walk, look-around and eviction only.
run 0 replay t.txt --pages 64 --policy fg --format csv
plain=$(column misses)
run 0 replay t.txt --pages 64 --policy fg --mapped --format csv --events mapped.tsv
[ "$(column misses)" != "$plain" ] || complain '--mapped changes nothing'
[ "$(awk -F'\t' '$4 == "young"' mapped.tsv | wc -l)" -gt 100 ] || complain 'no young bit was found'
same 'every access is counted' "$(column accesses)" 20000
# Stores through a mapping make pages dirty, which must not fill the room for ever.
for i in $(seq 1 100); do printf 's 0x%x\n' $((i * 4096)); done >stores.trace
run 0 replay stores.trace --trace-format address --pages 16 --policy fg,mglru,clru --format csv
same 'stores through a mapping' "$(tail -n +2 out | cut -d, -f2,4-6 | tr '\n' ' ')" 'fg,100,0,100 mglru,100,0,100 clru,100,0,100 '
# A policy of the literature knows no page tables.
run 0 replay t.txt --pages 64 --policy lru --format csv
plain=$(column misses)
run 0 replay t.txt --pages 64 --policy lru --mapped --format csv
same '--mapped with lru' "$(column misses)" "$plain"

# A small room that stands for a large one.
run 0 replay t.txt --pages 64 --policy mglru --format csv
plain=$(column misses)
run 0 replay t.txt --pages 64 --policy mglru --scale 1000 --format csv
[ "$(column misses)" != "$plain" ] || complain '--scale changes nothing'

# The smallest room.
run 0 replay t.txt --pages 8 --policy fg,mglru,clru,mglru-6.12,clru-6.12 --format csv
same 'smallest room' "$(tail -n +2 out | awk -F, '$5 + $6 != 20000 || $4 != 20000' | wc -l)" 0
finish
