#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What a memory group's limit pays for besides file pages while fio loads from mappings: the figures
# of KERNEL_PAGES and PROCESS_PAGES in workload/fio_mmap.c. Runs N jobs (default 2) as the published command
# line has them, with sparse files of 2560 MiB, in a new memory group with 256 MiB a job, and prints pages
# of each job after SECONDS (default 25) seconds. Needs root, fio, and a memory controller in version 1 or 2.
#
# usage: measure-fio-memcg.sh [N [SECONDS]]
set -eu
jobs=${1:-2} seconds=${2:-25}
dir=$(mktemp -d)
root=/sys/fs/cgroup
if [ -d $root/memory ]; then
	group=$root/memory/foliage-fio.$$ limit=memory.limit_in_bytes
else
	group=$root/foliage-fio.$$ limit=memory.max
fi
cleanup()
{
	sleep 1
	rmdir "$group" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$group"
echo $((jobs * 268435456)) >"$group/$limit"
for i in $(seq 0 $((jobs - 1))); do
	truncate -s 2560M "$dir/read.$i.0"
done
sh -c "echo \$\$ >'$group/cgroup.procs'; exec fio --name=read --directory='$dir' --numjobs=$jobs \
	--size=2560M --ioengine=mmap --fadvise_hint=0 --rw=randread --bs=4k \
	--random_distribution=zipf:1.2 --time_based --runtime=$((seconds + 5)) --invalidate=0 \
	--group_reporting --output='$dir/out'" &
sleep "$seconds"

# field NAME: of memory.stat, in bytes
field()
{
	awk -v name="$1" '$1 == name { print $2 }' "$group/memory.stat"
}

if [ -e "$group/memory.kmem.usage_in_bytes" ]; then
	kernel=$(cat "$group/memory.kmem.usage_in_bytes")
	process=$(field rss)
	file=$(field mapped_file)
	cache=$(field cache)
else
	kernel=$(field kernel)
	process=$(field anon)
	file=$(field file_mapped)
	cache=$(field file)
fi
echo "pages a job: kernel $((kernel / 4096 / jobs)) anonymous $((process / 4096 / jobs))" \
	"cached $((cache / 4096 / jobs)) of them mapped $((file / 4096 / jobs)), limit 65536"
wait
