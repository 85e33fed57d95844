# The search of knobs: what it finds, what it prints, what it refuses.
. "$(dirname "$0")/lib.sh"

skewed 20000 1000 >a.txt
skewed 20000 700 | awk '{print NR % 3 ? $1 : 5000 + NR % 900}' >b.txt
cp a.txt c.txt
ln -s a.txt link.txt

run 0 tune a.txt --policy fgw --knobs 'ticks=8|32,gate=0..1.5/4' --memory 10%,40% --validate b.txt --format csv
same header "$(head -1 out)" \
	setting,mean,worst,worst_cell,validated_mean,validated_worst,validated_worst_cell
same 'the policy itself and 2 x 4 settings' "$(($(wc -l <out) - 1))" 9
# Against itself the policy is 1 everywhere.
same 'itself' "$(sed -n 2p out | cut -d, -f1-3)" fgw,1.000000,1.000000
same 'itself, validated' "$(sed -n 2p out | cut -d, -f5)" 1.000000
# Best first, and the setting that is the default is the policy itself.
tail -n +3 out | sed 's/^"[^"]*"//' | cut -d, -f2 >means
sort -c -g means || complain "not best first: $(cat means)"
has out '"ticks=32,gate=0.5"'
# Only the best is validated.
same 'validated rows' "$(tail -n +2 out | awk -F, '$NF != ""' | wc -l)" 2

# The means are those of replay.
run 0 tune a.txt --policy fgw --knobs 'once=0|1' --memory 10% --format csv
tuned=$(grep '^once=0,' out | cut -d, -f2)
run 0 replay a.txt --policy fgw,fgw:once=0 --memory 10% --format csv --no-timing
replayed=$(awk -F, 'NR > 1 {m[NR] = $6} END {printf "%.6f", m[3] / m[2]}' out)
same 'ratio of misses' "$tuned" "$replayed"

# Too many for the budget: from knob to knob, never more than it allows; jobs change nothing.
run 0 tune a.txt --policy fgw --knobs 'ticks=8..48/6,gate=0..2/6,step=1..6' --memory 10% --budget 20 --format csv
[ "$(wc -l <out)" -le 22 ] || complain "more than the budget: $(wc -l <out)"
[ "$(wc -l <out)" -ge 8 ] || complain "hardly searched: $(wc -l <out)"
same 'no setting twice' "$(tail -n +3 out | sort | uniq -d)" ''
mv out first
run 0 tune a.txt --policy fgw --knobs 'ticks=8..48/6,gate=0..2/6,step=1..6' --memory 10% --budget 20 --format csv -j 2
cmp -s out first || complain 'jobs change the result'

# Any policy, against the best of others.
run 0 tune a.txt --policy s3fifo:move=1 --knobs 'ghost=50|100' --reference lru,fifo --memory 10%
run 0 tune a.txt b.txt --policy fg --knobs 'tail_mode=tail|min,refs_max=3..8' --reference lru,fifo --memory 10% \
	--format json
same 'json rows' "$(grep -c '"setting"' out)" 13

refuses 'the same file' tune a.txt --policy fgw --knobs ticks=8..9 --validate ./a.txt
refuses 'the same file' tune a.txt --policy fgw --knobs ticks=8..9 --validate link.txt
run 0 tune a.txt --policy fgw --knobs ticks=8..9 --memory 10% --validate c.txt
refuses 'no trace' tune --policy fgw --knobs ticks=8..9
refuses 'no trace' tune a.txt --policy fgw --knobs ticks=8..9 --validate
refuses 'no knob to search' tune a.txt --policy fgw
refuses "did you mean 'ticks'" tune a.txt --policy fgw --knobs tick=8..9
refuses 'out of range' tune a.txt --policy fgw --knobs ticks=1..3
refuses 'is no range' tune a.txt --policy fgw --knobs gate=2..1
refuses 'empty' tune a.txt --policy fgw --knobs 'gate=1||2'
refuses 'not knob=values' tune a.txt --policy fgw --knobs gate
refuses '--budget' tune a.txt --policy fgw --knobs ticks=8..9 --budget 0
refuses 'nosuch' tune nosuch --policy fgw --knobs ticks=8..9
refuses '--format' tune a.txt --policy fgw --knobs ticks=8..9 --format xml
finish
