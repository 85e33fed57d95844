# SPDX-License-Identifier: MIT
# Several jobs print what one job prints; small enough for the thread sanitizer.
. "$(dirname "$0")/lib.sh"

seq 1 400 >one
cat one one one >loop.txt
for command in "replay loop.txt --pages 40,80 --policy fg,clru,mglru,lru --no-timing --format csv" \
	"mrc loop.txt --pages 40,80,160 --policy fg,lru --format csv"; do
	# shellcheck disable=SC2086
	run 0 $command --jobs 1
	cp out expected
	# shellcheck disable=SC2086
	run 0 $command --jobs 4
	cmp -s out expected || complain "--jobs 4 prints something else: $command"
done
finish
