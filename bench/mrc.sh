#!/bin/bash
# SPDX-License-Identifier: MIT
# 32 sizes by 4 policies of a trace, exact and sampled: CPU time of both (the best of five of the sampled one, reading
# the trace included) and the worst difference of a miss ratio.
# usage: bench/mrc.sh FOLIAGE TRACE
set -eu
foliage=$(realpath "$1")
trace=$(realpath "$2")
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
cells=(--policy lru,clru,mglru,fg --memory '1%..100%/32' --format csv --jobs 2)
TIMEFORMAT='%U %S'
cpu() { # FILE-OF-THE-TIMES COMMAND...
	local times=$1
	shift
	{ time "$@" 2>err; } 2>"$times"
}
cpu exact "$foliage" mrc "$trace" "${cells[@]}" -o exact.csv
for i in 1 2 3 4 5; do cpu sample.$i "$foliage" mrc "$trace" "${cells[@]}" --sample 1% -o sampled.csv; done
cat sample.? | awk -v exact="$(cat exact)" 'BEGIN { split(exact, e, " "); whole = e[1] + e[2] }
	NR == 1 || $1 + $2 < best { best = $1 + $2 }
	END { printf "exact %.2f s of CPU time, sampled %.2f s, %.1f times faster\n", whole, best, whole / best }'
paste -d, exact.csv sampled.csv | tail -n +2 | awk -F, '{ d = $8 - $17; if (d < 0) d = -d; if (d > worst) worst = d }
	END { printf "sampled within %.4f of the exact miss ratio\n", worst }'
