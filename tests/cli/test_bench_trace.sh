# SPDX-License-Identifier: MIT
# foliage bench trace:FILE: processes of a trace as tasks of the simulated machine.
. "$(dirname "$0")/lib.sh"

# Two programs that take turns: a scan that leaves, a small hot part that stays.
awk 'BEGIN {
	print "page,nr,op,file,process"
	for (turn = 0; turn < 6; turn++) {
		for (i = 0; i < 400; i++)
			printf "%d,1,read,/hot,look-%d\n", i * 7 % 400, turn
		for (i = 0; i < 2000; i += 4)
			printf "%d,4,read,/cold,scan-%d\n", i, turn
	}
}' >turns.csv
value() { # METRIC POLICY
	awk -F, -v m="$1" -v p="$2" '$3 == m && $4 == p { print $6 }' out
}
run 0 bench trace:turns.csv --policy clru,mglru,fg --memory 50% --format csv
same header "$(head -1 out)" suite,case,metric,policy,published,measured,deviation
same suite "$(sed -n 2p out | cut -d, -f1)" turns.csv
cp out first
run 0 bench trace:turns.csv --policy clru,mglru,fg --memory 50% --format csv -j 1
cmp -s first out || complain "equal runs differ: $(diff first out | head -3)"
# Everything is read once at least, in pages of 4 KiB; no less memory than there are pages: no more than once.
for policy in clru mglru fg; do
	[ "$(value pgpgin $policy)" -gt 9600 ] || complain "$policy: pgpgin $(value pgpgin $policy)"
	[ "$(value refault_file $policy)" -gt 0 ] || complain "$policy: no refault in half the memory"
done
run 0 bench trace:turns.csv --policy fg --memory 200% --format csv
same "pgpgin with memory for all" "$(value pgpgin fg)" 9600
same "no refault with memory for all" "$(value refault_file fg)" 0
run 0 bench trace:turns.csv --policy fg --memory 4800K --format csv
same "a size is a size" "$(value refault_file fg)" "$(awk -F, '$3 == "refault_file" && $4 == "fg" { print $6 }' first)"

# Computing adds up: 5,400 requests 100 us apart; processes in turns do not overlap.
run 0 bench trace:turns.csv --policy fg --memory 200% --format csv --set think_ns=100000
slow=$(value real_s fg)
[ "$(awk -v s="$slow" 'BEGIN { print (s > 0.54 && s < 0.65) }')" = 1 ] || complain "5,400 requests 100 us apart last $slow s"
run 0 bench trace:turns.csv --policy fg --memory 200% --format csv --set think_ns=100000,jobs=2
half=$(value real_s fg)
[ "$(awk -v a="$slow" -v b="$half" 'BEGIN { print (b / a > 0.45 && b / a < 0.6) }')" = 1 ] ||
	complain "two at once last $half s, one $slow s"
run 0 bench trace:turns.csv --policy fg,mglru --sensitivity --set think_ns=0
has out memory_part

# Names of programs are metrics, and records of work are time.
cat >build.csv <<'C'
page,nr,op,file,process
0,8,read,/a.c,1
0,2,write,/a.o,1
0,2,read,/a.o,2
C
"$foliage" convert build.csv build.foliage
run 0 bench trace:build.foliage --memory 2M --format csv --policy fg --set jobs=2
# What a process has written is no read from the disk, though it might begin with its maker.
same "only the source is read" "$(value pgpgin fg)" 32

# Several traces as one: files of a path are one, processes stay apart.
run 0 convert build.foliage build.foliage both.foliage
run 0 info --format csv both.foliage
has out ',6,'
run 0 bench trace:both.foliage --memory 2M --format csv --policy fg
same "the source is one file" "$(value pgpgin fg)" 32
has out refault_file

run 0 bench trace:build.foliage --memory 2M --policy fg
has out "2 processes, 12 page accesses"
has out "the trace has no times"

refuses "which file?" bench trace:
refuses "none.foliage: No such file" bench trace:none.foliage
printf 'x\n' >bad.txt
refuses "bad.txt" bench trace:bad.txt
head -c 60 build.foliage >cut.foliage
refuses "cut.foliage: byte" bench trace:cut.foliage
printf '# nothing\n' >nothing.txt
refuses "nothing.txt: no page access" bench trace:nothing.txt
printf '18446744073709551615\n' >far.txt
refuses "far.txt: request 1: page 18446744073709551615" bench trace:far.txt
awk 'BEGIN { for (i = 0; i < 140000; i++) printf "%.0f\n", i * 1000003 }' >scattered.txt
refuses "scattered.txt: its 140000 pages are scattered" bench trace:scattered.txt
refuses "a machine has at least 256 pages" bench trace:build.foliage
refuses "--memory: the memory of valkey is its own" bench valkey --memory 1G
refuses "--memory: one size" bench trace:build.foliage --memory 1M,2M
refuses "memory" bench trace:build.foliage --memory x
refuses "think_ns: must be between" bench trace:build.foliage --set think_ns=-1
refuses "unknown suite 'trac:x'" bench trac:x

finish
