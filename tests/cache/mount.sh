# Sourced by the tests of `foliage mount`: mount and unmount, or skip where that cannot be.
. "$(dirname "$(realpath "$0")")/../cli/lib.sh"
trap 'end_mounts; cd /; rm -rf "$scratch"' EXIT

skip() {
	echo "SKIP: $*"
	exit 0
}

"$foliage" mount --memory 1 . . 2>&1 | grep -q 'not built in' && skip "foliage mount is not built in (libfuse3)"
[ -e /dev/fuse ] && [ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "no /dev/fuse here"
[ "$(id -u)" = 0 ] || skip "mounting needs root"
mkdir probe.src probe.mnt
"$foliage" mount --memory 4M probe.src probe.mnt 2>err || {
	grep -q 'cannot be mounted' err && skip "mounting is not allowed here: $(cat err)"
	cat err >&2
	exit 1
}
umount probe.mnt || exit 1

declare -A mounts # mount point -> process

# The process of a mount point.
process_of() {
	"$foliage" stat --format csv "$1" | awk -F, 'NR == 2 { print $3 }'
}

# start SOURCE MOUNTPOINT [OPTION...]
start() {
	mkdir -p "$1" "$2"
	"$foliage" mount "${@:3}" "$1" "$2" || {
		complain "foliage mount ${*:3} $1 $2: status $?"
		finish
	}
	mounts[$2]=$(process_of "$scratch/$2")
	[ -n "${mounts[$2]}" ] || complain "$2: its process is not known"
}

gone() { # PROCESS: wait until it has ended; a minute is for sanitizers on loaded machines
	local i
	for i in $(seq 1 600); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	complain "process $1 does not end"
	return 1
}

# stop MOUNTPOINT: unmount, wait for the process
stop() {
	umount "$1" || complain "umount $1: $?"
	gone "${mounts[$1]}"
	unset "mounts[$1]"
}

end_mounts() {
	local point
	for point in "${!mounts[@]}"; do
		umount -l "$scratch/$point" 2>/dev/null
		kill -9 "${mounts[$point]}" 2>/dev/null
	done
}
