# Files appear whole, closed pipes end quietly, full disks are told.
. "$(dirname "$0")/lib.sh"
skewed 5000 300 >t.txt
replay="replay t.txt --pages 30 --policy lru,belady --format csv --no-timing"

run 0 $replay
cp out plain.csv
echo old >r.csv
run 0 $replay -o r.csv
[ -s out ] && complain '-o also prints'
cmp -s plain.csv r.csv || complain '-o writes something else'
run 0 $replay -o -
cmp -s plain.csv out || complain '-o - is not standard output'
mkfifo fifo
cat fifo >through &
run 0 $replay -o fifo
wait
cmp -s plain.csv through || complain '-o does not write into a pipe that is there'
rm fifo through
(umask 027 && "$foliage" $replay -o mode.csv)
same 'mode of a new file' "$(stat -c %a mode.csv)" 640
same 'no temporary files' "$(ls | tr '\n' ' ')" 'err mode.csv out plain.csv r.csv t.txt '

if [ -w /dev/full ]; then
	"$foliage" $replay >/dev/full 2>err
	same 'status on a full disk' $? 2
	same 'message on a full disk' "$(cat err)" 'foliage: standard output: No space left on device'
	"$foliage" policies >/dev/full 2>err
	same 'policies on a full disk' $? 2
	"$foliage" $replay -o /dev/full 2>err
	same 'status of -o on a full disk' $? 2
	has err '/dev/full: No space left on device'
	refuses '/dev/full: No space left on device' mrc t.txt --pages 30 --policy lru --svg /dev/full
else
	echo 'SKIP: no /dev/full'
fi

# A pipe whose reader has left. The output must not fit the pipe's buffer, so that there is an error to meet.
pages=$(seq -s, 8 1200)
"$foliage" replay t.txt --pages "$pages" --policy fifo --format csv --limit 100 2>err | head -1 >first
status=${PIPESTATUS[0]}
[ "$status" = 141 ] || complain "closed pipe: status $status, not 141 (SIGPIPE)"
[ -s err ] && complain "closed pipe: $(cat err)"
has first 'trace,policy,pages'
finish
