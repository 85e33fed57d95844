# examples/groups.c: two tenants of one pool; limits keep the pages of the one that comes back.
. "$(dirname "$0")/lib.sh"
build_example groups -std=gnu17 -lpthread
for policy in fg mglru clru fgw; do
	./groups $policy >out 2>err || complain "$policy: status $?, $(cat err)"
	awk '/^without/ { exit !($3 > 20000) }' out || complain "$policy: the index does not suffer without limits: $(cat out)"
	has out "with limits: 1500 misses of the index in 30000 look-ups"
	awk '/^with limits/ { on = 1 } on && $1 == "/index" { index_kib = $2 } on && $1 == "/scans" { scans = $2 }
		END { exit !(index_kib == 6000 && scans <= 4096 && scans > 3000) }' out || complain "$policy: other sizes: $(cat out)"
done
./groups nosuch >out 2>err && complain "an unknown policy is accepted"
has err nosuch
finish
