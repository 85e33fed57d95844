# SPDX-License-Identifier: MIT
# foliage record: what is refused; then, each by BPF (where it is allowed) and by the preloaded library: every page of a
# known sequence of calls in order, fio's own log, SQLite's own count, filters, hidden names, how a recording ends.
. "$(dirname "$0")/lib.sh"

# The trace's lines "page nr op" of a file that matches, in order.
pages_of() { # TRACE WORDS
	"$foliage" convert --to csv "$1" - 2>/dev/null | awk -F, -v file="$2" 'NR > 1 && index($4, file) { print $1, $2, $3 }'
}

# ---- what is refused ----
refuses "one of --pid, --cgroup and -- COMMAND" record -o x.foliage
refuses "one of --pid, --cgroup and -- COMMAND" record -o x.foliage --pid 1 -- true
refuses "did you mean '--cgroup'" record --cgrou /x
refuses "'x' is not a count" record --pid x
refuses "--pid: process 2147483647" record --pid 2147483647
refuses "no process has the number 0" record --pid 0
refuses "standard output is the command's" record -o - -- true
refuses "no-such-command: No such file" record -o x.foliage -- no-such-command
refuses "/dev/null: Permission denied" record -o x.foliage -- /dev/null
refuses "can only observe a command" record --method preload --pid $$
refuses "unknown 'bfp', did you mean 'bpf'?" record --method bfp -- true
refuses "unknown 'all'" record --writes all -- true
refuses "--min-size: 'big' is not a size" record --min-size big -- true
refuses "--seconds: must be above 0" record --seconds 0 -- true
refuses "--collapse: must be between 1 and 1024" record --mapped --collapse 0 -- true
refuses "--mapped: needs a command" record --mapped --pid $$
refuses "none/x.foliage: No such file" record --method preload -o none/x.foliage -- true
refuses "x.foo: the name's ending tells no output format" record --method preload -o x.foo -- true
[ -e x.foliage ] && complain "a refused recording left a file"
printf '#!/no/such/interpreter\n' >bad && chmod +x bad
refuses "./bad: No such file" record --method preload -o x.foliage -- ./bad
[ -e x.foliage ] && complain "a command that never ran left a file"

methods=preload
if "$foliage" record -q --method bpf -o probe.foliage -- true 2>err; then
	methods="bpf preload"
elif grep -qE 'not permitted|no tracepoint|no libbpf|has no' err; then
	echo "SKIP: recording by BPF: $(cat err)"
else
	complain "record --method bpf: $(cat err)"
fi
if ldd "$foliage" | grep -qE 'lib(asan|tsan)'; then
	echo "SKIP: a sanitizer's run-time cannot be preloaded into a program without it"
	methods=${methods%preload}
fi

# ---- a known sequence of calls ----
head -c 1048676 /dev/urandom >data # 256 pages and 100 bytes
cat >calls.py <<'PY'
import os, sys
say = lambda *a: print(*a, file=log)
log = open("wanted", "w")
fd = os.open("data", os.O_RDONLY)
def pread(at, n):
    got = len(os.pread(fd, n, at))
    if got:
        say(at // 4096, (at + got - 1) // 4096 - at // 4096 + 1, "read")
pread(0, 4096); pread(4096, 4096); pread(0, 4096); pread(0, 4096)
pread(4095, 2)                # two pages by one byte each
pread(12345, 1)
pread(0, 1 << 20)             # longer than the kernel handles at once
pread(40960, (1 << 20) - 40960)  # the same end, begun elsewhere: a call of its own
pread(81920, (1 << 20) - 81920)
pread(1 << 20, 65536)         # ends with the file
pread(1048675, 4096)
pread(1048676, 4096)          # behind it: nothing
pread(1 << 30, 1)
os.lseek(fd, 8192, 0)
for page in (2, 3, 4):
    assert len(os.read(fd, 4096)) == 4096
    say(page, 1, "read")
assert os.readv(fd, [bytearray(100), bytearray(8000)]) == 8100
say(5, 2, "read")
assert os.preadv(fd, [bytearray(4096), bytearray(4096)], 409600) == 8192
say(100, 2, "read")
if os.fork() == 0:
    os.pread(fd, 4096, 300 * 1024)
    os._exit(0)
os.wait()
say(75, 1, "read")
out = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
def wrote(first, nr): say(first, nr, "write")
os.write(out, b"x" * 10000); wrote(0, 3)
os.write(out, b"y"); wrote(2, 1)
os.pwrite(out, b"z" * 4097, 4096); wrote(1, 2)
os.writev(out, [b"a" * 3000, b"b" * 3000]); wrote(2, 2)
os.pwritev(out, [b"a", b"b"], 1 << 20); wrote(256, 1)
src = os.open("data", os.O_RDONLY)
at = os.lseek(out, 0, 1)  # where writev ended: 16001
assert os.sendfile(out, src, 4096, 8192) == 8192
say(1, 2, "read"); wrote(at // 4096, (at + 8191) // 4096 - at // 4096 + 1)
if "ext" in sys.argv[1]:  # elsewhere a copy may share blocks, and read and write nothing
    assert os.copy_file_range(src, out, 8192, 40960, 81920) == 8192
    say(10, 2, "read"); wrote(20, 2)
app = os.open("out", os.O_WRONLY | os.O_APPEND)
os.write(app, b"c" * 4096); wrote(256, 2)
os.pread(out, 8192, 1 << 20); say(256, 2, "read")
PY
have_python=0
command -v python3 >/dev/null && have_python=1 || echo "SKIP: no python3 for the sequence of calls"
for method in $methods; do
	[ $have_python = 1 ] || break
	run 0 record -q --method "$method" -o calls.foliage --file '*/data,*/out' -- python3 calls.py "$(stat -f -c %T .)"
	"$foliage" convert --to csv calls.foliage - | awk -F, 'NR > 1 { print $1, $2, $3 }' >got
	cmp -s wanted got || complain "$method: the sequence of calls: $(diff wanted got | head -5)"
	"$foliage" info calls.foliage >info.txt
	same "$method: files" "$(awk '$1 == "files" { print $2 }' info.txt)" 2
	same "$method: processes" "$(awk '$1 == "processes" { print $2 }' info.txt)" 2
	"$foliage" convert --to csv calls.foliage - | grep -q "\"$scratch/data\",\"python3\[" ||
		complain "$method: names: $("$foliage" convert --to csv calls.foliage - | sed -n 2p)"
done

# ---- programs that end soon, their names, their status ----
for method in $methods; do
	run 7 record -q --method "$method" -o many.foliage --file '*/data' -- \
		sh -c 'head -c 100 data; for i in 1 2 3; do dd if=data bs=4096 count=2 status=none; done >/dev/null; exit 7'
	"$foliage" convert --to csv many.foliage - | awk -F, 'NR > 1 { sub(/\[.*/, "", $5); n[$5] += $2 }
		END { print n["\"dd"], (n["\"head"] > 0) }' >got
	same "$method: pages by process" "$(cat got)" "6 1"
	run 137 record -q --method "$method" -o killed.foliage -- sh -c 'kill -9 $$'
	run 0 record -q --method "$method" -o none.foliage --file '*/nothing' -- cat data
	run 0 record -q --method "$method" -o big.foliage --min-size 1025K -- cat data
	same "$method: a file below --min-size" "$(pages_of big.foliage /data)" ""
	run 0 record -q --method "$method" -o named.foliage --process 'dd,x*' -- \
		sh -c 'head -c 100 data; dd if=data of=/dev/null bs=4096 count=2 status=none'
	same "$method: --process" "$(pages_of named.foliage /data)" "0 1 read
1 1 read"
	run 0 record -q --method "$method" -o hidden.foliage --anonymize --file '*/data' -- head -c 9000 data
	"$foliage" convert --to csv hidden.foliage - >got
	grep -qE '"file-[0-9a-f]{16}","process-[0-9a-f]{16}"' got || grep -qE 'file-[0-9a-f]{16},process-[0-9a-f]{16}' got ||
		complain "$method: --anonymize: $(sed -n 2p got)"
	grep -aqE 'data|head' hidden.foliage && complain "$method: --anonymize leaves names"
	run 0 record -q --method "$method" --writes no -o quiet.foliage --file '*/out2' -- \
		dd if=data of=out2 bs=4096 count=4 status=none
	same "$method: --writes no" "$("$foliage" info quiet.foliage 2>/dev/null | grep -c writes)" 0
	run 0 record --method "$method" -o said.foliage --file '*/data' -- dd if=data of=/dev/null bs=64k status=none
	has err "said.foliage: pages: 257 read, 0 written, 0 loaded, 0 stored, 0 executed; 1 files, 1 processes; 0 events lost"
done

# ---- a ring that is too small: the preloaded program waits for it ----
case $methods in *preload)
	truncate -s 20480000 large
	run 0 record --method preload --buffer 8K -o small.foliage --file '*/large' -- dd if=large of=/dev/null bs=4096 status=none
	has err "pages: 5,000 read"
	has err "; 0 events lost"
	# A recorder that dies does not hold it up.
	"$foliage" record -q --method preload --buffer 8K -o dies.foliage --file '*/large' -- \
		sh -c 'echo $$ >pid; kill -KILL $PPID; exec dd if=large of=copied bs=4096 status=none' 2>/dev/null
	for _ in $(seq 100); do kill -0 "$(cat pid)" 2>/dev/null || break; sleep 0.1; done
	cmp -s large copied || complain "preload: the recorder's death changed what the program does"
	;;
esac

# ---- fio: every access of its generator, in order ----
if command -v fio >/dev/null; then
	fio_job="--name=j --ioengine=psync --filename=$scratch/fio.dat --size=16m --bs=4k --fadvise_hint=random --rw=randrw --rwmixread=90
		--io_size=120m --norandommap --random_distribution=zipf:0.9 --number_ios=30000 --randseed=7"
	fio --name=lay --filename="$scratch/fio.dat" --size=16m --bs=1m --rw=write >/dev/null || complain "fio cannot write its file"
	for method in $methods; do
		rm -f io.log
		# shellcheck disable=SC2086
		run 0 record --method "$method" -o fio.foliage --file '*/fio.dat' -- fio $fio_job --write_iolog=io.log
		has err "; 0 events lost"
		awk '$3 == "read" || $3 == "write" { print $4 / 4096, 1, $3 }' io.log >wanted
		same "fio's own number of accesses" "$(wc -l <wanted)" 30000
		pages_of fio.foliage fio.dat >got
		cmp -s wanted got || complain "$method: fio's accesses: $(diff wanted got | head -5)"
	done
else
	echo "SKIP: no fio"
fi

# ---- SQLite: as many page reads as it counts itself ----
if command -v sqlite3 >/dev/null; then
	sqlite3 s.db "PRAGMA page_size=4096; CREATE TABLE t(id INTEGER PRIMARY KEY, b TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000)
		INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n;" >/dev/null
	{
		echo "PRAGMA cache_size=20; PRAGMA locking_mode=EXCLUSIVE; PRAGMA mmap_size=0;"
		awk 'BEGIN { x = 1; for (i = 0; i < 3000; i++) { x = x * 16807 % 2147483647; print "SELECT length(b) FROM t WHERE id=" 1 + x % 20000 ";" } }'
		echo ".stats on"
		echo "SELECT 1;"
	} >q.sql
	for method in $methods; do
		run 0 record -q --method "$method" -o s.foliage --file '*/s.db' -- sqlite3 s.db '.read q.sql'
		misses=$(awk -F: '/Page cache misses/ { print $2 + 0 }' out)
		[ "${misses:-0}" -gt 1000 ] || complain "SQLite counts ${misses:-no} misses"
		# Page 0 also holds the header, which SQLite reads without counting.
		got=$(pages_of s.foliage s.db | awk '$1 > 0 { n += $2 } END { print n }')
		zero=$(pages_of s.foliage s.db | awk '$1 == 0 && $2 == 1 { n++ } END { print n + 0 }')
		# It fetches page 1 once through the cache.
		same "$method: SQLite's misses, less page 1's" "$got" $((misses - 1))
		[ "$zero" -ge 1 ] || complain "$method: page 0 was never read"
		"$foliage" replay s.foliage --memory 100% --policy lru --format csv >csv
		same "$method: replayed" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "accesses") c = i } NR == 2 { print $c }' csv)" \
			$((got + zero))
	done
else
	echo "SKIP: no sqlite3"
fi

# ---- how a recording ends ----
case $methods in bpf*)
	tail -f /dev/null &
	idle=$!
	sh -c 'while :; do dd if=data of=/dev/null bs=4096 count=1 status=none; done' &
	busy=$!
	set -m
	"$foliage" record -o int.foliage --file '*/data' --pid $busy,$idle 2>err &
	recorder=$!
	set +m
	for _ in $(seq 100); do [ "$(stat -c %s int.foliage 2>/dev/null || echo 0)" -gt 16 ] && break; sleep 0.1; done
	kill -INT $recorder
	wait $recorder
	same "status after SIGINT" $? 130
	run 0 info int.foliage
	"$foliage" record -q -o term.foliage --file '*/data' --pid $busy &
	recorder=$!
	for _ in $(seq 100); do [ -e term.foliage ] && break; sleep 0.1; done
	sleep 0.2
	kill -TERM $recorder
	wait $recorder
	same "status after SIGTERM" $? 130
	run 0 info term.foliage
	"$foliage" record -q -o crash.foliage --file '*/data' --pid $busy 2>err &
	recorder=$!
	for _ in $(seq 100); do [ "$(stat -c %s crash.foliage 2>/dev/null || echo 0)" -gt 60 ] && break; sleep 0.1; done
	kill -KILL $recorder
	wait $recorder 2>/dev/null
	refuses "no end mark" info crash.foliage
	run 0 info --trace-format foliage-partial crash.foliage
	# The observed end; until then --seconds.
	run 0 record -q -o short.foliage --seconds 0.3 --pid $busy
	"$foliage" record -q -o gone.foliage --pid $busy &
	recorder=$!
	sleep 0.2
	kill $busy $idle
	wait $recorder
	same "status after the observed have ended" $? 0
	wait $busy $idle 2>/dev/null

	# While the recorder stands still the ring overflows, and what is lost is counted, to the event.
	truncate -s 20480000 large
	mkfifo go
	sh -c 'exec 3<go; exec dd if=large of=/dev/null bs=4096 count=5000 status=none' &
	lazy=$!
	"$foliage" record --buffer 8K -o lost.foliage --file '*/large' --pid $lazy 2>lost.err &
	recorder=$!
	for _ in $(seq 100); do [ -e lost.foliage ] && break; sleep 0.1; done
	sleep 0.1
	kill -STOP $recorder
	exec 3>go
	wait $lazy
	exec 3>&-
	kill -CONT $recorder
	wait $recorder
	awk '{ gsub(",", ""); lost = $(NF - 2); for (i = 1; i < NF; i++) if ($(i + 1) == "read") seen = $i }
		END { print seen + lost, (lost > 1000) }' lost.err >got
	same "seen and lost" "$(cat got)" "5000 1"

	refuses "none: No such file" record --cgroup none
	refuses "not a folder of cgroup v2" record --cgroup "$scratch"
	group=$(awk '$(NF - 2) == "cgroup2" { print $5; exit }' /proc/self/mountinfo)/foliage-test-$$
	if mkdir "$group" 2>/dev/null; then
		"$foliage" record -q -o group.foliage --file '*/data' --cgroup "$group" --seconds 1.5 &
		recorder=$!
		sleep 0.5
		head -c 5000 data >/dev/null
		sh -c "echo \$\$ >$group/cgroup.procs; head -c 9000 data >/dev/null"
		wait $recorder
		same "--cgroup" "$(pages_of group.foliage data | awk '{ n += $2 } END { print n }')" 3
		rmdir "$group"
	else
		echo "SKIP: no cgroup v2 in which to make one"
	fi
	;;
esac
finish
