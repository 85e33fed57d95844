# Bad input: one line that says what and where, status 2, nothing printed.
. "$(dirname "$0")/lib.sh"
seq 1 100 >t.txt

refuses 'no trace' replay
refuses 'does-not-exist' replay does-not-exist --policy lru --pages 10
refuses "unknown option '--polcy', did you mean '--policy'?" replay t.txt --polcy lru
refuses "unknown option '--xyzzy'" replay t.txt --xyzzy
refuses "unknown option '-z'" replay t.txt -z
refuses '--pages needs a value' replay t.txt --pages
refuses '--mapped takes no value' replay t.txt --mapped=1
refuses "--format: unknown 'cvs', did you mean 'csv'?" replay t.txt --format cvs
refuses "--format: unknown 'xyzzy' (one of table, csv, json)" replay t.txt --format xyzzy
refuses "--warmup: 'x' is not a count" replay t.txt --warmup x
refuses "--limit: '99999999999999999999999' is too large" replay t.txt --limit 99999999999999999999999
refuses '--jobs: at most' replay t.txt --jobs 100000
refuses '--scale: must be between' replay t.txt --scale 0.5
refuses "--scale: 'x' is not a number" replay t.txt --scale x
refuses "--dump: unknown 'lru_gem', did you mean 'lru_gen'?" replay t.txt --dump lru_gem
refuses '--ages: only with --format json' replay t.txt --ages 5
refuses '--ages: at most 10000' replay t.txt --ages 10001 --format json
refuses '--dump: not with --format csv' replay t.txt --dump lru_gen --format csv
refuses '--dump: none of these policies has lru_gen' replay t.txt --pages 10 --policy lru --dump lru_gen
refuses 'read only once' replay - - --pages 10
refuses "'belady'" replay t.txt --pages 10 --policy beladi
refuses 'xyzzy' replay t.txt --pages 10 --policy lru,xyzzy
refuses 'nosuchknob' replay t.txt --pages 10 --policy s3fifo:nosuchknob=1
refuses 'mine.so' replay t.txt --pages 10 --policy ./mine.so

: >empty.txt
refuses 'empty.txt' replay empty.txt --policy lru --pages 10
printf '1\n2\nthree\n' >words.txt
refuses 'words.txt' replay words.txt --policy lru --pages 10 --trace-format text
refuses 'nosuchformat' replay t.txt --policy lru --pages 10 --trace-format nosuchformat
printf '123' >cut.u32
refuses 'cut.u32' replay cut.u32 --policy lru --pages 10
# The second trace is bad: nothing of the first is printed.
refuses 'empty.txt' replay t.txt empty.txt --pages 10 --policy lru --format csv
refuses 'empty.txt' replay t.txt empty.txt --pages 10 --policy lru -o both.csv
[ -e both.csv ] && complain 'a partial result file stayed'

# Where to write.
refuses 'nowhere/out.csv' replay t.txt --pages 10 --policy lru -o nowhere/out.csv
refuses 'Is a directory' replay t.txt --pages 10 --policy lru -o .
refuses 'nowhere/e' replay t.txt --pages 10 --policy lru --events nowhere/e
refuses 'one trace, one policy and one size' replay t.txt --pages 10,20 --policy lru --events e
refuses 'one trace, one policy and one size' replay t.txt --pages 10 --policy lru,fifo --events e
refuses 'one trace, one policy and one size' replay t.txt t.txt --pages 10 --policy lru --events e
[ -e e ] && complain 'a file of events stayed'

# No output replaces what it is made from, by whatever name, nor mixes with another output.
cp t.txt kept.txt
ln -s t.txt link.txt
refuses 't.txt: the output would replace the input t.txt' replay t.txt --pages 10 --policy lru -o t.txt
refuses 'link.txt: the output would replace the input t.txt' replay t.txt --pages 10 --policy lru -o link.txt
refuses 'would replace the input' replay t.txt --pages 10 --policy fg --events ./t.txt
refuses 'would replace the input' mrc t.txt --pages 10 --policy lru -o t.txt
refuses 'would replace the input' mrc t.txt --pages 10 --policy lru --svg t.txt
refuses 'would replace the input' convert t.txt --limit 5 t.txt
refuses 'would replace the input' convert kept.txt t.txt link.txt
cmp -s t.txt kept.txt || complain 'an input was replaced'
refuses '--events and --output are both kept.txt' replay t.txt --pages 10 --policy fg --events kept.txt -o kept.txt
refuses '--events and --output are both standard output' replay t.txt --pages 10 --policy fg --events -
refuses '--svg and --output are both standard output' mrc t.txt --pages 10 --policy lru --svg - --format csv
run 0 replay t.txt --pages 10 --policy fg --events /dev/null -o /dev/null
run 0 replay t.txt --pages 10 --policy fg --events - -o /dev/null
has out '# foliage events'
rm kept.txt link.txt

refuses 'needs one file of events' explain
refuses 'needs --page N' explain t.txt
refuses "'x' is not a count" explain t.txt --page x
refuses 't.txt: not a file of events' explain t.txt --page 1
refuses 'does-not-exist' explain does-not-exist --page 1
refuses "'belady'" policies beladi
same 'nothing stays' "$(ls | tr '\n' ' ')" 'cut.u32 empty.txt err out t.txt words.txt '
finish
