#!/bin/bash
# SPDX-License-Identifier: MIT
# foliage convert and foliage info: formats into one another, what is wrong with inputs and outputs, and that nothing
# partial is left. Usage: test_convert.sh FOLIAGE
set -u
foliage=$(realpath "$1")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}

# Column $2 (by key) of the info of trace $1, further arguments passed on.
info() {
	local trace=$1 key=$2
	shift 2
	"$foliage" info --format csv "$@" "$trace" | awk -F, -v key="$key" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == key) at = i }
		NR == 2 { print $at }'
}

is() { # what, got, wanted
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# The command must exit 2 with one line on stderr that contains $1, print nothing, and leave no file of $2*.
refuses() {
	local message=$1 out=$2
	shift 2
	"$foliage" "$@" >stdout.txt 2>stderr.txt
	is "exit status of $*" $? 2
	is "lines of stderr of $*" "$(wc -l <stderr.txt)" 1
	is "bytes of stdout of $*" "$(wc -c <stdout.txt)" 0
	grep -qF -- "$message" stderr.txt || fail "$*: '$(cat stderr.txt)' lacks '$message'"
	grep -q '^foliage: ' stderr.txt || fail "$*: '$(cat stderr.txt)' does not begin with foliage:"
	[ -z "$out" ] || ! compgen -G "$out*" >/dev/null || fail "$*: left $(compgen -G "$out*")"
}

cat >a.csv <<'EOF'
page,nr,op,file,process
5,2,exec,"/lib/a, b",sh
7,1,write,,
5,1,load,"/lib/a, b",ls
900,3,store,/tmp/"x"",sh
7,1,read,,
EOF
sed -i 's|/tmp/"x""|"/tmp/""x"""|' a.csv
"$foliage" convert a.csv a.foliage || fail "csv to foliage"
"$foliage" convert a.foliage b.csv || fail "foliage to csv"
"$foliage" convert --to csv a.foliage - >c.csv || fail "to standard output"
sed 's|/tmp/""x""|&|' a.csv | sed 's|,sh$|,"sh"|; s|,ls$|,"ls"|' >wanted.csv
cmp b.csv wanted.csv || fail "csv through foliage differs"
cmp b.csv c.csv || fail "standard output differs"
"$foliage" convert - - <a.csv >d.foliage || fail "standard input"
cmp a.foliage d.foliage || fail "through pipes differs"
is "requests" "$(info a.foliage requests)" 5
is "accesses" "$(info a.foliage accesses)" 8
is "unique" "$(info a.foliage unique)" 6
is "execs" "$(info a.foliage execs)" 2
is "stores" "$(info a.foliage stores)" 3
is "files" "$(info a.foliage files)" 2
is "processes" "$(info a.foliage processes)" 2
is "objects" "$(info a.foliage accesses --objects)" 5
is "limit" "$(info a.foliage accesses --limit 6)" 6

# Plain formats hold the same pages; every chain of them ends in the same bytes.
seq 1 3 20000 >n.txt
seq 1 700 >>n.txt
seq 5 40 9000 >>n.txt
for to in foliage u32 u64 csv oracleGeneral txt; do
	"$foliage" convert n.txt "n.$to" 2>/dev/null || [ $to = txt ] || fail "text to $to"
	"$foliage" convert "n.$to" "back-$to.txt" || fail "$to to text"
	cmp n.txt "back-$to.txt" || fail "text through $to differs"
	is "unique of $to" "$(info "n.$to" unique)" "$(sort -u n.txt | wc -l)"
done
if "$foliage" convert n.txt n.foliage.zst 2>stderr.txt; then
	is "packing" "$(info n.foliage.zst packing)" zstd
	"$foliage" convert n.foliage.zst back.u32 && cmp back.u32 n.u32 || fail "zst differs"
	head -c $(($(wc -c <n.foliage.zst) - 9)) n.foliage.zst >cut.zst
	refuses "cut.zst: byte " x. convert cut.zst x.u32
else
	grep -q libzstd stderr.txt && echo "SKIP: this build has no libzstd" || fail "zst: $(cat stderr.txt)"
fi
"$foliage" convert --limit 100 n.txt l.txt && cmp l.txt <(head -100 n.txt) || fail "limit"

# What is wrong.
printf '1\n2\nx\n' >bad.txt
head -c 10 n.u32 >cut.u32
head -c 3000 n.foliage >cut.foliage
: >empty.u32
printf '# nothing\n' >nothing.txt
refuses "bad.txt: line 3: 'x' is no page number" x. convert bad.txt x.u32
refuses "cut.u32: record 3 (byte 8): truncated" x. convert cut.u32 x.txt
refuses "cut.foliage: byte 16: no end mark" x. convert cut.foliage x.txt
refuses "empty.u32: byte 0: empty" x. convert empty.u32 x.txt
refuses "nothing.txt: no page access" x. convert nothing.txt x.u32
refuses "none.u32: No such file" x. convert none.u32 x.txt
refuses "unknown trace format 'u31'" x. convert --trace-format u31 n.u32 x.txt
refuses "n.txt: byte 0: no Foliage trace" x. convert --trace-format foliage n.txt x.u32
refuses "name's ending tells no output format" x. convert n.u32 x.what
refuses "unknown output format 'u31'" x. convert --to u31 n.u32 x.u32
refuses "only .zst packing" x. convert n.u32 x.u32.gz
refuses "none/x.txt: No such file" "" convert n.u32 none/x.txt
refuses "needs IN and OUT" "" convert n.u32
refuses "limit" "" convert --limit x n.u32 x.txt
refuses "needs a trace" "" info
refuses "bad.txt: line 3" "" info --format csv n.txt bad.txt
refuses "csv" "" info --format cvs n.txt
echo 4294967296 >big.txt
refuses "record 1: page 4294967296 does not fit in 32 bits" x. convert big.txt x.u32
[ ! -c /dev/full ] || refuses "/dev/full: No space left" "" convert --to text n.u32 /dev/full

# An output that exists stays as it is when the new one fails.
cp n.txt keep.u32
refuses "bad.txt" "" convert bad.txt keep.u32
cmp keep.u32 n.txt || fail "a failed convert changed its output"

# A closed pipe ends quietly.
for _ in $(seq 20); do cat n.txt; done >long.txt
"$foliage" convert --to text long.txt - 2>stderr.txt | head -1 >/dev/null
is "stderr after a closed pipe" "$(cat stderr.txt)" ""

# SIGINT: 130, and no output. Job control keeps the shell from having background jobs ignore it.
mkfifo fifo
set -m
"$foliage" convert --trace-format text --to text fifo x.txt &
pid=$!
set +m
exec 3>fifo
cat n.txt >&3
kill -INT $pid
cat n.txt n.txt n.txt n.txt n.txt n.txt >&3 2>/dev/null
exec 3>&-
wait $pid
is "exit status after SIGINT" $? 130
compgen -G "x.*" >/dev/null && fail "SIGINT left $(compgen -G "x.*")"

# Reuse distances give what LRU misses in the published anchors.
shared=${FOLIAGE_SHARED:-${FOLIAGE_SOURCE_DIR:-.}/../shared}
anchors=$shared/anchors/misses.csv
if [ -r "$anchors" ]; then
	for trace in oltp.u32.zst lirs-sprite.oracleGeneral.zst cloudPhysicsIO.oracleGeneral.zst lirs-2_pools.u32.zst; do
		got=
		for share in 1 10 40; do
			below=$(info "$shared/traces/$trace" below_${share}pct --objects)
			got="$got $(($(info "$shared/traces/$trace" accesses --objects) - below))"
		done
		is "LRU misses of $trace" "$got" "$(awk -F, -v t="$trace" '$1 == t && $2 == "lru" { printf " %s", $5 }' "$anchors")"
	done
else
	echo "SKIP: no shared traces at $shared"
fi
[ $failed = 0 ] && echo "convert: all good"
exit $failed
