# examples/groups.c: two tenants of one pool; limits keep the pages of the one that comes back.
. "$(dirname "$0")/lib.sh"
source=$(realpath "${FOLIAGE_SOURCE_DIR:-$here/../..}")
build=$(dirname "$foliage")
if ! command -v "${CC:-cc}" >/dev/null; then
	echo "SKIP: no ${CC:-cc}"
	exit 0
fi

# Built with a sanitizer, the library wants the program to be so as well.
sanitize=
for kind in address undefined thread; do
	grep -q "^FOLIAGE_SANITIZE:STRING=.*$kind" "$build/CMakeCache.txt" 2>/dev/null && sanitize="$sanitize -fsanitize=$kind"
done
# shellcheck disable=SC2086
if ! "${CC:-cc}" -std=gnu17 -O1 -Wall -Wextra -Werror $sanitize -I"$source/include" -o groups \
	"$source/examples/groups.c" -L"$build" -lfoliage -lm -lpthread -Wl,-rpath,"$build" 2>cc.err; then
	complain "the example does not compile: $(cat cc.err)"
	finish
fi
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
