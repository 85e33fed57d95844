# Sizes of rooms: units, percentages, ranges, duplicates, the smallest room.
. "$(dirname "$0")/lib.sh"
seq 1 1000 >thousand.txt # 1000 unique pages

sizes() { # what the tool makes of the options
	run 0 replay thousand.txt --policy lru --format csv "$@"
	tail -n +2 out | cut -d, -f3 | tr '\n' ' '
}
same list "$(sizes --pages 100,8,50)" '100 8 50 '
same percent "$(sizes --memory 1%,10%,40%)" '10 100 400 '
same fraction "$(sizes --memory 1.29%)" '12 '
same memory "$(sizes --memory 64K,1M,1MiB,2mb)" '16 256 512 '
same giga "$(sizes --memory 1G,0.5G)" '262144 131072 '
same range "$(sizes --memory 1%..50%/3)" '10 255 500 '
same 'range ends' "$(sizes --memory 1%..50%/10 | wc -w)" 10
same 'page range' "$(sizes --pages 10..20/6)" '10 12 14 16 18 20 '
same backwards "$(sizes --pages 20..10/2)" '20 10 '
same both "$(sizes --pages 33 --memory 10%)" '33 100 '
same duplicates "$(sizes --pages 100,100 --memory 10%,400K)" '100 '
same default "$(sizes)" '100 '
same smallest "$(sizes --pages 8)" '8 '

replay() { refuses "$1" replay thousand.txt --policy lru "${@:2}"; }
replay 'a room of 7 pages: the smallest is 8 pages' --pages 7
replay 'a room of 0 pages: the smallest is 8 pages' --pages 0
replay 'a room of 1 pages: the smallest is 8 pages' --memory 4K
replay 'thousand.txt: 0.5% of 1000 unique pages is a room of 5: the smallest is 8 pages' --memory 0.5%
replay 'too large' --pages 99999999999
replay 'too large' --pages 99999999999999999999999
replay "'ten' is not a count" --pages ten
replay "'' is not a count" --pages 10,
replay "'-10' is not a count" --pages=-10
replay "'64' needs a unit" --memory 64
replay "'64Q' needs a unit" --memory 64Q
replay "'-5%' is not a size" --memory=-5%
replay "'%' is not a size" --memory %
replay "'nan%' is not a size" --memory nan%
replay "needs a number of sizes" --memory 1%..50%
replay 'mixes units' --memory 1%..50M/3
replay 'a range has 2 to' --memory 1%..50%/1
replay 'a range has 2 to' --memory 1%..50%/99999999
replay 'is not a count' --memory 1%..50%/x
# Wrong sizes are told before a trace is read.
refuses 'a room of 7 pages' replay does-not-exist --pages 7
finish
