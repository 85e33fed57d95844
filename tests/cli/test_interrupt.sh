# SIGINT in a long run: what is finished is printed, status 130. A second one kills.
. "$(dirname "$0")/lib.sh"
skewed 300000 40000 >t.txt
header='trace,policy,pages,accesses,hits,misses,refaults,scanned,stolen,seconds'

# Background jobs of a script ignore SIGINT, so the run is started by a shell that does not.
interruptible() { # FILE-FOR-OUTPUT ARGUMENT...
	local out=$1
	shift
	bash -c 'trap - INT; exec "$@"' - env --default-signal=INT "$foliage" "$@" >"$out" 2>err <&0 &
	pid=$!
}
# So many cells that the run takes far longer than the wait.
# A slow machine or a sanitizer may need longer for the first cell: then wait longer.
for seconds in 1.5 3 6 12 24 48; do
	interruptible out replay t.txt --pages 8..20000/2000 --policy lru --format csv
	sleep $seconds
	kill -INT $pid
	wait $pid
	status=$?
	[ "$(wc -l <out)" -gt 1 ] && break
done
same 'status' $status 130
same 'header' "$(head -1 out | cut -d, -f1-10)" "$header"
rows=$(($(wc -l <out) - 1))
[ "$rows" -ge 1 ] || complain 'no finished cell was printed'
[ "$rows" -lt 2000 ] || complain 'the run was not interrupted'
same 'whole rows only' "$(awk -F, 'NR == 1 { n = NF } NF != n' out | wc -l)" 0
[ -s err ] && complain "messages: $(cat err)"
same 'first cell' "$(sed -n 2p out | cut -d, -f2-4)" 'lru,8,300000'

# While a pipe is read that never ends: the second signal must do.
mkfifo pipe
sleep 60 >pipe &
writer=$!
interruptible out replay - --trace-format text --pages 10 --policy lru <pipe
sleep 0.5
kill -INT $pid
sleep 0.3
kill -INT $pid 2>/dev/null
wait $pid
same 'status after two' $? 130
[ -s err ] && complain "messages after two: $(cat err)"
kill $writer 2>/dev/null
finish
