# Free parameters of suites: listed, set within bounds, halved and doubled.
. "$(dirname "$0")/lib.sh"

run 0 bench --list
has out "hot_pages"

refuses "no suite of this run has a parameter 'foo'" bench sqlite-grep --set foo=3
refuses "is not NAME=VALUE" bench sqlite-grep --set hot_pages
refuses "hot_pages: must be between 64" bench sqlite-grep --set hot_pages=3
refuses "did you mean 'sqlite-grep'" bench sqlite-grap --sensitivity

# Half the hot pages, half SQLite's time when they stay cached.
run 0 bench sqlite-grep --demo --policy fg --format csv
whole=$(awk -F, '$3 == "sqlite_ms" { print $6 }' out)
run 0 bench sqlite-grep --demo --policy fg --format csv --set hot_pages=625
half=$(awk -F, '$3 == "sqlite_ms" { print $6 }' out)
same "half of the hot pages" "$(awk -v a="$whole" -v b="$half" 'BEGIN { print (b / a > 0.45 && b / a < 0.55) }')" 1

run 0 bench sqlite-grep --demo --policy fg,mglru --sensitivity --format csv
same header "$(head -1 out)" suite,case,metric,less,more,ratio,parameter,value,varied_ratio,order
same "an order that holds" "$(grep -c 'sqlite_ms,fg,mglru.*hot_pages.*holds' out)" 2
same "memory for all files leaves nothing to order" "$(grep -c 'sqlite_ms,fg,mglru.*grep_share,0.625000.*ties' out)" 1
run 0 bench sqlite-grep --demo --policy fg,mglru --sensitivity
has out "5 parameters, 10 runs"

# Twice the applications do not fit into the machine: that value says nothing, the others count.
run 0 bench android-global --demo --policy fg --sensitivity
has out "android-global: out of memory at"
has out "no run with anon_mib set to 520"
has out "11 parameters"

# One suite refuses a policy that it cannot run, several leave it out and say so.
refuses "'lru' is no policy of the engine" bench mysql-like --policy lru,fg
refuses "has no policy 'clru'" bench kernel-6.12 --policy clru --demo
run 0 bench kernel-6.12 mysql-like android-global --demo --policy lru,clru,fg
has out "kernel-6.12 cannot run lru, clru, fg"
has out "mysql-like cannot run lru"
same "policies that ran" "$(grep -c '^mysql-like.*ops_per_s .*c*lru ' out)" 1
refuses "unknown policy 'nosuch'" bench all --demo --policy fg,nosuch
refuses "has no such case" bench fio-mmap --theta 3
run 0 bench fio-read fio-mmap kernel-6.12 --theta 3
run 0 bench mysql-like --demo --policy all --format csv
same "policies of the machine only" "$(grep -c ",lru," out)" 0
has out ",mglru-6.12,"

# From three runs on each mean has its interval, whether a suite is a grid or not.
for suite in mysql-like fio-tight; do
	run 0 bench $suite --demo --runs 3 --policy mglru,fg --format csv
	same "$suite: intervals" "$(grep -c '_ci95,fg,' out)" "$(grep -v _ci95 out | grep -v iops | grep -c ',fg,')"
	run 0 bench $suite --demo --runs 2 --policy mglru,fg --format csv
	same "$suite: none of two" "$(grep -c _ci95 out)" 0
done

finish
