# Miss-ratio curves: what replay counts, sampled, drawn, and the sentence at the end.
. "$(dirname "$0")/lib.sh"
shared=${FOLIAGE_SHARED:-$FOLIAGE_SOURCE_DIR/../shared}/traces

# A loop of 100 pages: lru misses always below 100 pages, once a page from 100 on.
for _ in 1 2 3 4 5; do seq 1 100; done >loop.txt
run 0 mrc loop.txt --policy lru,fifo --pages 50,100 --format csv
same 'csv header' "$(head -1 out)" 'trace,policy,pages,bytes,rate,accesses,misses,miss_ratio,bound'
same 'a loop' "$(tail -n +2 out | cut -d, -f2,3,4,6,7,8 | tr '\n' ' ')" \
	'lru,50,204800,500,500,1.000000 fifo,50,204800,500,500,1.000000 lru,100,409600,500,100,0.200000 fifo,100,409600,500,100,0.200000 '
run 0 mrc loop.txt --policy lru --pages 50,100 --target 0.6
has out 'loop.txt: 500 accesses, 100 unique pages'
same 'halfway' "$(tail -1 out)" 'For a miss ratio of 0.6 lru needs 0.3 MiB (75 pages).'
run 0 mrc loop.txt --policy lru,belady --pages 100,50 --target 0.2
same 'sizes in any order' "$(tail -1 out)" \
	'For a miss ratio of 0.2 lru needs 0.4 MiB (100 pages), belady needs 0.4 MiB (100 pages).'
run 0 mrc loop.txt --policy lru --pages 100 --target 0.5
same 'nothing smaller tried' "$(tail -1 out)" 'For a miss ratio of 0.5 lru needs at most 0.4 MiB (100 pages).'
run 0 mrc loop.txt --policy lru --target 0.1
same 'out of reach' "$(tail -1 out)" 'For a miss ratio of 0.1 lru does not reach it (0.2000).'
same 'default sizes' "$(grep -cE '^ *[0-9]+ ' out)" 32
same 'from the smallest room' "$(sed -n 4p out | awk '{ print $1 }')" 8

# The working set: five windows of one round each, then of half a round.
run 0 mrc loop.txt --policy lru --pages 50 --windows 5 --working-set --format csv
same 'rounds' "$(tr '\n' ' ' <out)" \
	"trace,window,from,accesses,unique_pages,bytes $(for i in 0 1 2 3 4; do printf 'loop.txt,%d,%d,100,100,409600 ' $((i + 1)) $((i * 100)); done)"
run 0 mrc loop.txt --policy lru --pages 50 --windows 7 --working-set --format csv
same 'the last window is what is left' "$(tail -1 out)" 'loop.txt,7,432,68,68,278528'
run 0 mrc loop.txt --policy lru --pages 50 --windows 10000 --working-set --format csv
same 'no more windows than accesses' "$(wc -l <out)" 501

# The same numbers as replay, and the same bytes whatever the number of threads.
skewed 60000 4000 >skewed.txt
for mapped in '' --mapped; do
	run 0 mrc skewed.txt --policy clru,fg,lru,s3fifo,belady --memory 5%,20%,60% $mapped --format csv
	tail -n +2 out | cut -d, -f2,3,7,8 >mrc
	run 0 replay skewed.txt --policy clru,fg,lru,s3fifo,belady --memory 5%,20%,60% $mapped --format csv --no-timing
	tail -n +2 out | awk -F, '{ print $2 "," $3 "," $6 "," $14 }' >replay
	cmp -s mrc replay || complain "mrc and replay $mapped differ: $(diff mrc replay | head -4)"
done
for format in table csv json; do
	run 0 mrc skewed.txt --policy clru,fg,arc,belady --sample 20% --target 0.3 --format $format --jobs 1
	cp out one
	run 0 mrc skewed.txt --policy clru,fg,arc,belady --sample 20% --target 0.3 --format $format -j 2
	cmp -s one out || complain "$format: --jobs 2 differs"
done

# Sampled: rooms are the whole trace's, the rate is told, small rooms have a larger one.
run 0 mrc skewed.txt --policy lru --pages 200,750,3000 --sample 10% --format csv
same rates "$(tail -n +2 out | cut -d, -f5 | tr '\n' ' ')" '0.480000 0.128000 0.100000 '
run 0 mrc skewed.txt --policy lru --pages 96,1000 --sample 10% --format csv
same 'a small room is exact' "$(sed -n 2p out | cut -d, -f5,6)" '1.000000,60000'
run 0 mrc skewed.txt --policy lru,fifo --pages 1000,2000 --sample 50% --format csv
cp out sampled
run 0 mrc skewed.txt --policy lru,fifo --pages 1000,2000 --format csv
paste -d, out sampled | tail -n +2 | awk -F, '{ d = $8 - $17; if (d < 0) d = -d; if (d > 0.01) bad = 1 }
	END { exit bad }' || complain "half of the pages are off: $(cat out sampled)"
run 0 mrc skewed.txt --policy lru --pages 1000 --sample 10% --seed 1 --format csv
cp out one
run 0 mrc skewed.txt --policy lru --pages 1000 --sample 10% --seed 2 --format csv
cmp -s one out && complain 'the seed chooses no other pages'
run 0 mrc skewed.txt --policy lru --sample 10%
has out 'sampled at 10%, estimated to be within 0.0'

# A bound: what is estimated to be further off runs again, in the end with all pages. The estimate may be wrong, but mostly
# is not, and what it lets pass is nearer than without it.
run 0 mrc skewed.txt --policy lru,clru,fg --memory 5%..95%/40 --format csv
cp out exact
run 0 mrc skewed.txt --policy lru,clru,fg --memory 5%..95%/40 --sample 10% --format csv
cp out plain
run 0 mrc skewed.txt --policy lru,clru,fg --memory 5%..95%/40 --sample 10% --bound 0.02 --format csv
cp out bounded
paste -d, exact plain bounded | tail -n +2 | awk -F, 'function off(a, b) { return a > b ? a - b : b - a }
	{
		exact += $23 == 1
		if ($9 != 0 || $27 > 0.02 || ($23 == 1) != ($27 == 0) || ($23 == 1 && $26 != $8)) wrong = 1
		held += off($8, $26) <= $27 + 1e-6
		sum_plain += off($8, $17)
		sum_bounded += off($8, $26)
	}
	END {
		printf "bound: %d of %d held, %d exact, mean error %.4f without, %.4f with\n", held, NR, exact, sum_plain / NR, sum_bounded / NR
		exit wrong || NR != 120 || held < 108 || !exact || exact == NR || sum_bounded * 2 > sum_plain
	}' || complain 'the bound does not hold'
run 0 mrc skewed.txt --policy lru,clru,fg --memory 5%..95%/40 --sample 10% --bound 0.02 --format csv --jobs 1
cmp -s out bounded || complain '--jobs 1 differs with --bound'
run 0 mrc skewed.txt --policy fg --memory 5%..95%/10 --sample 10% --bound 0.004
has out ' exact'

# The picture: well-formed, axes with titles, lines that differ without colour.
run 0 mrc skewed.txt loop.txt --policy lru,fg --pages 20,50,80 --svg c.svg
for words in 'Miss ratio by memory: skewed.txt' 'Working set: loop.txt' 'memory (MiB)' 'miss ratio (misses per access)' \
	'working set (MiB)' 'stroke-dasharray="8 4"' 'prefers-color-scheme:dark'; do
	has c.svg "$words"
done
if command -v python3 >/dev/null; then
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' c.svg || complain 'not xml'
	cp loop.txt '<&">.txt'
	run 0 mrc '<&">.txt' --policy lru --pages 20,50 --svg odd.svg
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' odd.svg || complain 'a name breaks the xml'
	run 0 mrc skewed.txt --policy lru,fg --pages 20,50 --target 0.5 --format json
	python3 -c '
import json, sys
all = json.load(open(sys.argv[1]))
assert all["foliage"] == "mrc" and all["command"] == sys.argv[2], all["command"]
assert len(all["curves"]) == 4 and len(all["working_set"]) == 20 and len(all["answers"]) == 2
' out 'foliage mrc skewed.txt --policy lru,fg --pages 20,50 --target 0.5 --format json' || complain 'json'
else
	echo 'SKIP: no python3, xml and json were not parsed'
fi
rm -f ./*.svg

# Bad input.
refuses 'no trace' mrc
refuses "--sample: '1' is not a percentage, as in 1%" mrc loop.txt --sample 1
refuses "--sample: 'x' is not a number" mrc loop.txt --sample x%
refuses '--sample: must be between' mrc loop.txt --sample 0%
refuses '--sample: must be between' mrc loop.txt --sample 101%
refuses 'loop.txt: a sample of' mrc loop.txt --sample 0.0001% --pages 100000000
refuses '--bound: must be between 0 and 1' mrc loop.txt --sample 10% --bound 1
refuses '--bound: without --sample' mrc loop.txt --bound 0.01
refuses '--target: a miss ratio is between 0 and 1' mrc loop.txt --target 2
refuses '--windows: must be between' mrc loop.txt --windows 0
refuses '--jobs: at most' mrc loop.txt --jobs 5000
refuses "'belady'" mrc loop.txt --policy beladi
refuses 'the smallest is 8 pages' mrc loop.txt --memory 1%
refuses 'does-not-exist' mrc does-not-exist
refuses 'nowhere/c.svg' mrc loop.txt --svg nowhere/c.svg
refuses 'nowhere/out' mrc loop.txt --svg c.svg -o nowhere/out
refuses 'are both c.svg' mrc loop.txt --svg c.svg -o c.svg
seq 1 5 >tiny.txt
refuses 'tiny.txt: ' mrc tiny.txt
refuses 'tiny.txt: ' mrc loop.txt tiny.txt --svg c.svg -o both.csv
[ -e c.svg ] || [ -e both.csv ] && complain 'a partial output stayed'

# SIGINT: the cells that were finished are printed, and drawn. A slow machine may need longer for the first cell.
for seconds in 1 3 6 12 24 48; do
	env --default-signal=INT "$foliage" mrc skewed.txt --pages 8..2000/2000 --policy lru,fg --jobs 1 --format csv \
		--svg c.svg >out 2>err &
	pid=$!
	sleep $seconds
	kill -INT $pid
	wait $pid
	status=$?
	[ "$(wc -l <out)" -gt 1 ] && break
done
same 'interrupted' $status 130
[ "$(wc -l <out)" -gt 1 ] && [ "$(wc -l <out)" -lt 3980 ] || complain "interrupted: $(wc -l <out) lines"
has c.svg '</svg>'
[ -s err ] && complain "interrupted: $(cat err)"

# 32 sizes and 4 policies of a large trace: what sampling gets wrong (what it saves: bench/mrc.sh).
if [ -e "$shared/w106.u32.zst" ]; then
	large="$shared/w106.u32.zst --policy lru,clru,mglru,fg --memory 1%..100%/32 --format csv --jobs 2"
	run 0 mrc $large -o exact.csv
	run 0 mrc $large --sample 1% -o sampled.csv
	paste -d, exact.csv sampled.csv | tail -n +2 | awk -F, '{ d = $8 - $17; if (d < 0) d = -d; if (d > worst) worst = d }
		END { printf "w106: sampled within %.4f\n", worst; exit !(worst <= 0.01) }' || complain 'sampled: not within 0.01'
else
	echo "SKIP: no shared trace $shared/w106.u32.zst (set FOLIAGE_SHARED), the error of sampling was not measured"
fi
finish
