# SPDX-License-Identifier: MIT
# The commands of docs/tutorial.md, taken out of the text and run in its order; what is predicted and what is measured are
# within 0.03. FOLIAGE_TEST_LONG=1 also runs the blocks marked long (a minute, under valgrind).
. "$(dirname "$0")/lib.sh"
tutorial=$here/../../docs/tutorial.md
build=$(dirname "$foliage")
export PATH="$build:$PATH" LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if ! command -v sqlite3 >/dev/null || [ ! -e "$build/libfoliage-sqlite.so" ]; then
	echo "SKIP: no sqlite3 or no libfoliage-sqlite.so"
	exit 0
fi
if ldd "$foliage" | grep -qE 'lib(asan|tsan)'; then
	echo "SKIP: a sanitizer's run-time cannot be preloaded into a program without it"
	exit 0
fi
# The server is the same program as the checker, which Debian also packs without the service.
if ! command -v redis-server >/dev/null && command -v redis-check-rdb >/dev/null; then
	mkdir bin
	ln -s "$(command -v redis-check-rdb)" bin/redis-server
	export PATH="$scratch/bin:$PATH"
fi
# Each block becomes a file; those of redis need it, and another port than somebody's.
awk '/^```sh/ { name = sprintf("block-%02d%s.sh", ++n, $2 == "long" ? "-long" : ""); next } /^```/ { name = ""; next } name { print > name }' "$tutorial"
[ -e block-05.sh ] || complain "the tutorial has few commands"
port=$((20000 + $$ % 10000))
trap 'redis-cli -p $port shutdown nosave >/dev/null 2>&1; umount -l mnt 2>/dev/null; rm -rf "$scratch"' EXIT
wanted=0
for block in block-*.sh; do
	sed -i "s/7391/$port/g" "$block"
	if grep -q redis-server "$block" && ! command -v redis-server >/dev/null; then
		echo "SKIP: no redis-server for $block"
		continue
	fi
	if grep -q 'foliage mount' "$block" && { [ ! -w /dev/fuse ] || ! "$foliage" --version | grep -q '^libfuse [0-9]\|^fuse3\? [0-9]'; }; then
		echo "SKIP: no /dev/fuse, or no libfuse in this build, for $block"
		continue
	fi
	if grep -q 'restart.foliage' "$block" && [ ! -e restart.foliage ] && ! "$foliage" record -q --method bpf -o probe.foliage -- true 2>probe.err; then
		echo "SKIP: redis reads by stdio, which only BPF sees: $(cat probe.err)"
		continue
	fi
	if [ "${block%-long.sh}" != "$block" ] && [ "${FOLIAGE_TEST_LONG:-0}" != 1 ]; then
		echo "SKIP: $block takes a minute: FOLIAGE_TEST_LONG=1"
		continue
	fi
	grep -q 'miss ratio predicted' "$block" && wanted=$((wanted + 1 + $(grep -c '^for policy in' "$block" | sed 's/[1-9]/1/')))
	bash -eu "$block" >"$block.out" 2>"$block.err" || complain "$block: $(tail -3 "$block.err")"
done
[ -z "${FOLIAGE_TUTORIAL_SHOW:-}" ] || tail -n 100 block-*.out
[ -s shop.html ] && [ -s shop.svg ] || complain "no picture"
cat block-*.out | awk -v wanted="$wanted" '/miss ratio predicted/ {
		n++
		d = $5 - $7
		if (d > 0.03 || d < -0.03) { print "FAILED: " $0; bad = 1 }
	}
	END { if (n != wanted) { print "FAILED: " n " predictions, not " wanted; bad = 1 } exit bad }' >&2 || failures=$((failures + 1))
finish
