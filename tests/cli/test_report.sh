# The page that shows results: what is in it, that a browser is content with it, and what it refuses.
. "$(dirname "$0")/lib.sh"
skewed 20000 2000 >'a<b>&.txt'
for _ in 1 2 3; do seq 1 60; done >loop.txt
run 0 mrc 'a<b>&.txt' loop.txt --policy lru,fg --pages 10,20,50 --target 0.5 --format json --jobs 2 -o mrc.json
run 0 replay loop.txt --pages 20 --policy lru,fg,clru --format json --no-timing -o replay.json
run 0 replay loop.txt --pages 10 --policy fg:tail_mode=min,lru --format json --no-timing -o knobs.json
run 0 replay 'a<b>&.txt' --pages 200 --policy clru,fg,lru --ages 30 --format json --no-timing -o ages.json
run 0 bench kernel-6.12 --demo --format json -o bench.json
grep -qi 'not built in' err && complain 'bench'

if ! "$foliage" report probe.html replay.json 2>err && grep -q 'not built in' err; then
	echo 'SKIP: built without json-c, no report was made'
	finish
	exit
fi
run 0 report out.html mrc.json replay.json knobs.json ages.json bench.json
[ -s out ] && complain 'report prints'
[ "$(wc -c <out.html)" -lt 2000000 ] || complain 'larger than 2 MB'
for words in '<h2>a&lt;b&gt;&amp;.txt</h2>' '<h2>loop.txt</h2>' 'For a miss ratio of 0.5 lru' '>fg:tail_mode=min<' \
	"foliage mrc 'a&lt;b&gt;&amp;.txt' loop.txt --policy lru,fg --pages 10,20,50 --target 0.5 --format json" \
	'foliage replay loop.txt --pages 20 --policy lru,fg,clru --format json --no-timing' \
	'foliage bench kernel-6.12 --demo --format json' 'Published beside measured' 'Verdict' 'miss ratio (misses per access)' \
	'prefers-color-scheme:dark' '@media print' 'name="viewport"'; do
	has out.html "$words"
done
grep -qE 'https?://' out.html && [ "$(grep -oE 'https?://[^"<]*' out.html | sort -u)" != http://www.w3.org/2000/svg ] &&
	complain 'the page names the network'
grep -q '<script' out.html && complain 'a script'

# Every chart has a table beneath it with the numbers that it draws.
if command -v python3 >/dev/null; then
	python3 - <<'PY' || complain 'charts and tables'
import json, re
page = open("out.html").read()
figures = re.findall(r"<figure>.*?</figure>", page, re.S)
assert figures and len(figures) == page.count("<svg")
for figure in figures:
    titles = re.findall(r'class="axis[^"]*"[^>]*>([^<]+)<', figure)
    assert len(titles) == 2 and "<table>" in figure and "<figcaption>" in figure, titles
rows = {(r["policy"], r["pages"]): r["miss_ratio"] for r in json.load(open("mrc.json"))["curves"] if r["trace"] == "loop.txt"}
figure = next(f for f in figures if "Miss ratio by memory: loop.txt" in f)
table = re.findall(r"<tr><th scope=\"row\">([^<]+)</th><td>([^<]*)</td><td>([^<]*)</td></tr>", figure)
assert [float(t[1]) for t in table] == [round(rows["lru", p], 4) for p in (10, 20, 50)], table
ages = {r["policy"]: r["ages"] for r in json.load(open("ages.json"))}
assert ages["lru"] is None and len(ages["fg"]) == len(ages["clru"]) == 30 and ages["fg"][-1]["access"] == 20000, ages
figure = next(f for f in figures if "Ages of pages: fg, 0.78 MiB" in f)
table = re.findall(r"<tr><th scope=\"row\">([^<]+)</th>((?:<td>[^<]*</td>){4})</tr>", figure)
got = [[int(x) for x in re.findall(r"<td>([0-9]+)", t[1])] for t in table]
wanted = [(list(reversed(ages["fg"][(c + 1) * 30 // 20 - 1]["pages"])) + [0, 0])[:4] for c in range(20)]
assert got == wanted and table[-1][0] == "20,000", (got, wanted)
digits = re.findall(r'class="digit[^"]*"[^>]*>([0-9X])<', figure)
assert len(digits) == 80 and digits == ["X" if v / sum(w) >= .95 else str(int(v / sum(w) * 10 + .5)) for s in range(4) for w in wanted for v in [w[s]]]
assert sum("Ages of pages" in f for f in figures) == 2
bench = [r for r in json.load(open("bench.json")) if r["metric"] == "refaults"]
figure = next(f for f in figures if "kernel-6.12: refaults" in f)
table = re.findall(r"<tr><th scope=\"row\">[^<]+</th><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td></tr>", figure)
got = [float(x.replace(",", "")) for t in table for x in t[:2]]
assert got == [float("%.6g" % x) if abs(x) < 10000 else round(x) for r in bench[:40] for x in (r["published"], r["measured"])], got[:6]
PY
else
	echo 'SKIP: no python3, tables and charts were not compared'
fi
cp out.html one.html
run 0 report out.html mrc.json replay.json knobs.json ages.json bench.json
cmp -s one.html out.html || complain 'two equal runs differ'

# A browser finds nothing to complain about, at the width of a phone and in print.
browser=
for name in chromium chromium-browser google-chrome; do
	[ -n "$browser" ] || browser=$(command -v $name || true)
done
if [ -n "$browser" ]; then
	mkdir -p home
	quiet="--headless --no-sandbox --disable-gpu --user-data-dir=$scratch/home"
	$browser $quiet --enable-logging=stderr --window-size=500,900 --screenshot="$scratch/shot.png" "file://$scratch/out.html" \
		>console 2>&1
	[ -s shot.png ] || complain "no screenshot: $(tail -3 console)"
	grep -i 'CONSOLE' console && complain 'the console is not empty'
	# A script of the test's own asks for the widths; the page itself has none.
	sed 's|</body>|<script>document.title = document.documentElement.scrollWidth + " " + innerWidth;</script></body>|' \
		out.html >probe.html
	$browser $quiet --window-size=500,900 --dump-dom "file://$scratch/probe.html" 2>/dev/null |
		grep -o '<title>[0-9]* [0-9]*</title>' | tail -1 | tr -dc '0-9 \n' >widths
	read -r wide window <widths || complain 'the browser did not tell the widths'
	[ "${wide:-1}" -le "${window:-0}" ] || complain "the page is $wide wide in a window of $window"
	$browser $quiet --print-to-pdf="$scratch/out.pdf" "file://$scratch/out.html" >/dev/null 2>&1
	[ "$(head -c 5 out.pdf 2>/dev/null)" = %PDF- ] || complain 'it cannot be printed'
	rm -rf home
else
	echo 'SKIP: no chromium, the page was not opened in a browser'
fi

# Bad input leaves no page.
rm -f ./*.html
refuses 'needs OUT.html' report
refuses 'needs OUT.html' report out.html
refuses 'mrc.json: is both the report and its source' report mrc.json mrc.json
refuses 'does-not-exist: No such file' report out.html does-not-exist
refuses 'nowhere/out.html' report nowhere/out.html mrc.json
printf '[\n{"a": 1},\n' >cut.json
refuses 'cut.json: line 3: not json' report out.html mrc.json cut.json
printf '[]x' >tail.json
refuses 'tail.json: line 1: not json' report out.html tail.json
: >empty.json
refuses 'empty.json: line 1: not json' report out.html empty.json
echo '{"foliage": "else"}' >else.json
refuses 'else.json: not the json of replay, mrc or bench' report out.html else.json
echo '[{"miss_ratio": 0.5, "trace": "t", "policy": "p", "pages": 8}, {"trace": "t", "policy": "p", "pages": "x"}]' >row.json
refuses "row.json: row 2: no number 'pages'" report out.html row.json
echo '[{"suite": "s", "case": "c", "metric": "m", "measured": 1}]' >policy.json
refuses "policy.json: row 1: no text 'policy'" report out.html policy.json
echo '[{"miss_ratio": 0.5, "trace": "t", "policy": "p", "pages": 8, "ages": [{"access": 1, "pages": [1, 2, 3, 4, 5]}]}]' >look.json
refuses "look.json: look 1: no list of at most 4 'pages'" report out.html look.json
echo '[{"miss_ratio": 0.5, "trace": "t", "policy": "p", "pages": 8, "ages": [{"access": 1, "pages": [-1]}]}]' >look.json
refuses "look.json: look 1: no number: 'pages'" report out.html look.json
echo '{"foliage": "mrc", "curves": 1}' >list.json
refuses 'list.json: no list of curve points' report out.html list.json
ls ./*.html* 2>/dev/null && complain 'a page stayed'
finish
