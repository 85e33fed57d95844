#!/bin/sh
# Makes docs/hit-ratio.md: every policy on every public trace in the shared folder, every object one page.
# usage: scripts/hit-ratio.sh [FOLIAGE] > docs/hit-ratio.md      FOLIAGE_SHARED: where traces/ is (default ../shared)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
foliage=${1:-$here/build/foliage}
traces=${FOLIAGE_SHARED:-$here/../shared}/traces
[ -d "$traces" ] || { echo "SKIP: no shared traces at $traces (set FOLIAGE_SHARED)" >&2; exit 2; }
files="arc-OLTP.lis.zst arc-P3.u32.zst cloudPhysicsIO.oracleGeneral.zst lirs-2_pools.u32.zst lirs-loop.u32.zst
lirs-multi3.oracleGeneral.zst lirs-sprite.oracleGeneral.zst lirs-zigzag.trace.gz orm-busy.u32.zst scarab-recs.u64.zst
w106.u32.zst"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for f in $files; do
	"$foliage" replay "$traces/$f" --objects --memory 1%,10%,40% --policy all --jobs 0 --no-timing --format csv |
		sed "s|^[^,]*/$f|$f|" >>"$out"
done
awk -F, '
$1 == "trace" { next }
{
	t = $1; p = $2; n = $3
	if (!(t in seen)) { seen[t] = 1; order[++nt] = t }
	if (!((t, n) in sized)) { sized[t, n] = 1; sizes[t, ++ns[t]] = n }
	if (!((t, p) in known)) { known[t, p] = 1; names[t, ++np[t]] = p }
	acc[t] = $4; miss[t, p, n] = $6
	if (p != "belady" && p != "static" && (!((t, n) in best) || $6 < best[t, n])) best[t, n] = $6
	if (p != "belady" && p != "static") online[p] = 1
}
END {
	print "# Hit ratios on public traces\n"
	print "Made by `scripts/hit-ratio.sh > docs/hit-ratio.md` (`foliage replay TRACE --objects --memory 1%,10%,40% --policy all`)."
	print "Every record is one page; rooms are 1, 10 and 40 % of the unique pages. Each cell: miss ratio, and in brackets the"
	print "misses as a multiple of the best policy of that column that does not know the future (belady and static do)."
	print "A room below eight pages does not exist: such a column is left out.\n"
	print "| policy | geometric mean of the multiples, all cells | without loop and 2_pools | worst cell |"
	print "|---|---|---|---|"
	t = order[1]
	for (i = 1; i <= np[t]; i++) {
		p = names[t, i]; sum = 0; nn = 0; sum2 = 0; n2 = 0; worst = 0
		for (j = 1; j <= nt; j++) for (k = 1; k <= ns[order[j]]; k++) {
			r = miss[order[j], p, sizes[order[j], k]] / best[order[j], sizes[order[j], k]]
			sum += log(r); nn++
			if (r > worst) worst = r
			if (order[j] !~ /loop|2_pools/) { sum2 += log(r); n2++ }
		}
		printf "| %s | %.4f | %.4f | %.3f |\n", p, exp(sum / nn), exp(sum2 / n2), worst
	}
	for (j = 1; j <= nt; j++) {
		t = order[j]
		printf "\n## %s\n\n%d accesses\n\n| policy |", t, acc[t]
		for (k = 1; k <= ns[t]; k++) printf " %d pages |", sizes[t, k]
		printf "\n|---|"
		for (k = 1; k <= ns[t]; k++) printf "---|"
		printf "\n"
		for (i = 1; i <= np[t]; i++) {
			p = names[t, i]
			printf "| %s |", p
			for (k = 1; k <= ns[t]; k++) {
				n = sizes[t, k]
				b = miss[t, p, n] == best[t, n] ? "**" : ""
				printf " %s%.4f%s (%.3f) |", b, miss[t, p, n] / acc[t], b, miss[t, p, n] / best[t, n]
			}
			printf "\n"
		}
	}
}' "$out"
