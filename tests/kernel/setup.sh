#!/bin/bash
# Make the guest: a stock Debian 6.12 kernel (fetched by apt), a root of busybox and the scenario program, an
# empty file system. Everything goes below FOLIAGE_KERNEL_DIR (default ~/.cache/foliage-kernel); done once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${FOLIAGE_KERNEL_DIR:-$HOME/.cache/foliage-kernel}
mkdir -p "$dir" && cd "$dir"

need=()
command -v qemu-system-x86_64 >/dev/null || need+=(qemu-system-x86)
{ [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1; } || need+=(busybox-static)
command -v cpio >/dev/null || need+=(cpio)
command -v mke2fs >/dev/null || need+=(e2fsprogs)
command -v xz >/dev/null || need+=(xz-utils)
[ ${#need[@]} -eq 0 ] || apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null

if ! ls x/boot/vmlinuz-* >/dev/null 2>&1; then
	pkg=$(apt-cache search --names-only '^linux-image-6\.12\..*-cloud-amd64$' | awk '{print $1}' | sort -V | tail -1)
	[ -n "$pkg" ] || { echo "setup.sh: no 6.12 cloud kernel in the package lists: run apt-get update" >&2; exit 1; }
	apt-get download -qq "$pkg" 2>/dev/null
	dpkg -x "$pkg"_*.deb x && rm "$pkg"_*.deb
fi
[ -f empty.ext4 ] || { truncate -s 512M empty.ext4.part && mke2fs -q -F -t ext4 -E lazy_itable_init=0 empty.ext4.part &&
	mv empty.ext4.part empty.ext4; }

rm -rf root && mkdir -p root/{bin,proc,sys,dev,tmp,mnt/d,lib}
${CC:-gcc} -std=gnu17 -O2 -static -I"$here/../.." -o root/bin/scenario "$here/guest/scenario.c"
cp "$(command -v busybox)" root/bin/busybox
for c in sh mount umount cat echo mkdir cut sync insmod tar mkswap swapon sleep poweroff; do ln -sf busybox root/bin/$c; done
for k in drivers/block/virtio_blk drivers/block/brd drivers/block/zram/zram mm/zsmalloc lib/lz4/lz4_compress \
	lib/lz4/lz4hc_compress; do
	f=$(find x -path "*/kernel/$k.ko*" | head -1)
	[ -n "$f" ] || continue
	case $f in *.xz) xz -dc "$f" > "root/lib/$(basename $k).ko" ;; *) cp "$f" "root/lib/$(basename $k).ko" ;; esac
done
cp "$here/guest/init" root/init && chmod +x root/init
(cd root && find . | cpio -o -H newc --quiet | gzip -1) > initrd.part && mv initrd.part initrd.gz
