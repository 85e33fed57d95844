#!/bin/bash
# One boot, one scenario: boot.sh COMPILED_SCENARIO OUT_DIRECTORY
# environment: LRU=y|n, ZRAM=bytes of swap (none: no swap), MEM, SMP, LIMIT=seconds
set -euo pipefail
dir=${FOLIAGE_KERNEL_DIR:-$HOME/.cache/foliage-kernel}
scenario=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cp "$scenario" "$work/scenario" && tar cf "$work/in.tar" -C "$work" scenario && rm "$work/scenario"
truncate -s '%1M' "$work/in.tar"; truncate -s 256M "$work/out.tar"
disk() { echo -n "-drive if=none,id=$1,file=$2,format=raw,$3 -device virtio-blk-pci,drive=$1"; }
timeout "${LIMIT:-1200}" qemu-system-x86_64 -accel tcg,thread=multi -smp "${SMP:-1}" -m "${MEM:-2048M}" -nodefaults \
	-no-user-config -display none -serial stdio -no-reboot -kernel "$dir"/x/boot/vmlinuz-* -initrd "$dir/initrd.gz" \
	$(disk d0 "$dir/empty.ext4" readonly=on) $(disk d1 "$work/in.tar" readonly=on) $(disk d2 "$work/out.tar" cache=unsafe) \
	-append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check lru=${LRU:-y} zram=${ZRAM:-}" \
	</dev/null | tr -d '\r' > "$out/console"
grep -q '^SCENARIO DONE' "$out/console" || { echo "boot.sh: the guest failed:" >&2; tail -5 "$out/console" >&2; exit 1; }
tar xf "$work/out.tar" -C "$out"
