# What replay counts and how it prints it.
. "$(dirname "$0")/lib.sh"

# Misses of the offline optimum, told independently: on a miss in a full room, the page whose next use is furthest goes.
optimum() { # ROOM FILE
	awk -v room="$1" '{ page[NR] = $1 }
	END {
		for (i = NR; i >= 1; i--) {
			after[i] = (page[i] in seen) ? seen[page[i]] : NR + 1
			seen[page[i]] = i
		}
		for (i = 1; i <= NR; i++) {
			if (!(page[i] in in_room)) {
				misses++
				if (nr == room) {
					victim = ""
					for (p in in_room)
						if (victim == "" || in_room[p] > in_room[victim]) victim = p
					delete in_room[victim]
					nr--
				}
				nr++
			}
			in_room[page[i]] = after[i]
		}
		print misses
	}' "$2"
}
column() { # NAME LINE FILE
	awk -F, -v name="$1" -v line="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i }
		NR == line + 1 { print $c }' "$3"
}

for i in 1 2 3; do seq 1 20; done >loop.txt
run 0 replay loop.txt --pages 10,20 --policy lru,belady --format csv --no-timing
cp out loop.csv
same 'csv header' "$(head -1 loop.csv | cut -d, -f1-10)" \
	'trace,policy,pages,accesses,hits,misses,refaults,scanned,stolen,seconds'
same 'rows' "$(wc -l <loop.csv)" 5
same 'order' "$(tail -n +2 loop.csv | cut -d, -f2,3 | tr '\n' ' ')" 'lru,10 belady,10 lru,20 belady,20 '
same 'lru 10' "$(sed -n 2p loop.csv | cut -d, -f1,4-7)" 'loop.txt,60,0,60,40'
same 'lru 20' "$(sed -n 4p loop.csv | cut -d, -f1,4-7)" 'loop.txt,60,40,20,0'
same 'belady 10' "$(column misses 2 loop.csv)" "$(optimum 10 loop.txt)"
same 'seconds without timing' "$(column seconds 1 loop.csv)" ''
same 'speed without timing' "$(column accesses_per_second 1 loop.csv)" ''
same 'miss ratio' "$(column miss_ratio 3 loop.csv)" 0.333333
same 'refaults per access' "$(column refaults_per_access 1 loop.csv)" 0.666667
same 'gap of belady' "$(column gap 2 loop.csv)" 1.000000

skewed 20000 600 >skewed.txt
best=$(optimum 60 skewed.txt)
run 0 replay skewed.txt --pages 60 --policy lru --gap --format csv
same '--gap shows no row of its own' "$(wc -l <out)" 2
same gap "$(column gap 1 out)" \
	"$(awk -v m="$(column misses 1 out)" -v b="$best" 'BEGIN { printf "%.6f", m / b }')"
column seconds 1 out | grep -qE '^[0-9]+\.[0-9]{6}$' || complain "seconds: $(column seconds 1 out)"
[ "$(column accesses_per_second 1 out)" -gt 0 ] || complain 'no speed'
run 0 replay skewed.txt --pages 60 --policy lru --format csv
same 'no gap unless asked' "$(column gap 1 out)" ''

# Warm-up and limit.
run 0 replay loop.txt --pages 20 --policy lru --warmup 20 --format csv
same warmup "$(sed -n 2p out | cut -d, -f4-7)" '40,40,0,0'
run 0 replay loop.txt --pages 20 --policy lru --limit 30 --format csv
same limit "$(sed -n 2p out | cut -d, -f4-7)" '30,10,20,0'
refuses 'loop.txt: the warm-up leaves no access to count' replay loop.txt --pages 20 --policy lru --warmup 60

# Several traces, standard input, compressed input.
cp loop.txt again.txt
run 0 replay loop.txt again.txt --pages 10 --policy lru --format csv
same 'two traces' "$(tail -n +2 out | cut -d, -f1,6 | tr '\n' ' ')" 'loop.txt,60 again.txt,60 '
"$foliage" replay - --pages 10 --policy lru --format csv <loop.txt >out 2>err
same 'standard input' "$(sed -n 2p out | cut -d, -f6)" 60
gzip -k loop.txt
if "$foliage" --version | grep -q '^zlib [0-9]'; then
	run 0 replay loop.txt.gz --pages 10 --policy lru --format csv
	same gzip "$(sed -n 2p out | cut -d, -f6)" 60
fi

# Knobs have commas: csv quotes them. Labels stay as written, and knobs reach the policy.
run 0 replay skewed.txt --pages 60 --policy wtinylfu:window=50,protected=20,wtinylfu --format csv
same 'quoted label' "$(sed -n 2p out | cut -d, -f1-4)" 'skewed.txt,"wtinylfu:window=50,protected=20",60'
same 'label after it' "$(sed -n 3p out | cut -d, -f1-3)" 'skewed.txt,wtinylfu,60'
[ "$(sed -n 2p out | cut -d, -f7)" != "$(sed -n 3p out | cut -d, -f6)" ] || complain 'knobs change nothing'

# The three formats say the same.
run 0 replay skewed.txt --pages 60,100 --policy lru,arc,belady --format json --no-timing
if command -v python3 >/dev/null; then
	python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))
assert all(row["seconds"] is None and row["dump"] is None for row in rows)
for row in rows:
    print(row["policy"], row["pages"], row["accesses"], row["hits"], row["misses"], sep=",")
' out >json.csv || complain 'not json'
	run 0 replay skewed.txt --pages 60,100 --policy lru,arc,belady --format csv --no-timing
	same 'json and csv' "$(cat json.csv)" "$(tail -n +2 out | cut -d, -f2-6)"
else
	echo 'SKIP: no python3, json was not parsed'
fi
run 0 replay skewed.txt --pages 60 --policy lru,arc --no-timing
has out 'skewed.txt: 20,000 accesses, '
grep -q seconds out && complain 'a table without timing has a column of seconds'
grep -qE '^lru +60 +20,000 ' out || complain "table: $(cat out)"
grep -qE ' (gap|accesses/s)' out && complain 'empty columns are shown'

# The same bytes again, whatever the number of threads.
all='replay skewed.txt loop.txt --pages 16,60 --policy all --no-timing --gap'
for format in table csv json; do
	run 0 $all --format $format --jobs 1
	cp out one
	run 0 $all --format $format --jobs 1
	cmp -s one out || complain "$format: two equal runs differ"
	run 0 $all --format $format -j 2
	cmp -s one out || complain "$format: --jobs 2 differs"
	run 0 $all --format $format --jobs 0
	cmp -s one out || complain "$format: --jobs 0 differs"
done

# Objects and formats: a record of 8 pages is one page with --objects.
printf 'lbn,size\n0,32768\n8,4096\n' >sized.csv
run 0 replay sized.csv --trace-format csv --columns page=lbn,size=size --pages 8 --policy lru --format csv
same pages "$(column accesses 1 out)" 9
run 0 replay sized.csv --trace-format csv --columns page=lbn,size=size --pages 8 --policy lru --format csv --objects
same objects "$(column accesses 1 out)" 2
finish
