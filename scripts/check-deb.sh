#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs the packages of a folder in a clean Debian made for it, and uses them there as a stranger would: the tool,
# its manual, completion, a C program built by pkg-config. Needs root, debootstrap and a mirror: without those it is
# skipped, loudly, with status 0. Nothing stays.
#
# usage: scripts/check-deb.sh FOLDER
set -u
folder=$(realpath "${1:?usage: scripts/check-deb.sh FOLDER}")
here=$(dirname "$(realpath "$0")")
suite=${FOLIAGE_DEBIAN_SUITE:-bookworm}
mirror=${FOLIAGE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
skip() {
	echo "SKIP: $*: the packages were NOT installed anywhere"
	exit 0
}
fail() {
	echo "check-deb: $*" >&2
	[ ! -e "$log" ] || tail -20 "$log" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || skip "not root"
command -v debootstrap >/dev/null || skip "no debootstrap"
ls "$folder"/foliage_*.deb >/dev/null 2>&1 || { echo "check-deb: no packages in $folder" >&2; exit 1; }
root=$(mktemp -d)
log=$root.log
trap 'rm -rf "$root" "$log"' EXIT
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >"$log" 2>&1 ||
	{ tail -3 "$log"; skip "debootstrap of $suite from $mirror failed"; }
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
		chroot "$root" "$@" </dev/null
}
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages"
cp "$folder"/*.deb "$root/packages"
inside sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /packages/*.deb' >"$log" 2>&1 ||
	fail "the packages do not install"
inside sh -c 'dpkg --audit' >"$log" 2>&1
[ ! -s "$log" ] || fail "dpkg --audit complains"

version=$(inside foliage --version 2>"$log" | sed -n 's/^foliage //p')
[ -n "$version" ] || fail "foliage --version fails there"
cp "$here/../data/demo.csv.zst" "$root/packages"
inside foliage replay /packages/demo.csv.zst --memory 5% --policy fg --format csv --no-timing >"$root/out" 2>"$log" ||
	fail "foliage replay fails there"
grep -q '^/packages/demo.csv.zst,fg,2154,624895,' "$root/out" || fail "foliage replay counts otherwise: $(cat "$root/out")"
inside bash -c '. /usr/share/bash-completion/completions/foliage
	COMP_WORDS=(foliage repl) COMP_CWORD=1; _foliage; [ "${COMPREPLY[*]}" = replay ]' >"$log" 2>&1 || fail "completion"
# A minimal Debian is told to leave out manual pages; what matters is that the package has them.
inside dpkg -L foliage | grep -q '/man1/foliage-replay.1.gz' || fail "no manual pages"

inside apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config >"$log" 2>&1 || fail "no compiler there"
cp "$here/../examples/reclaim.c" "$root/packages/program.c"
inside sh -c 'cd /packages && gcc -Wall -Wextra -Werror program.c -o program $(pkg-config --cflags --libs foliage) -lm && ./program' \
	>"$log" 2>&1 || fail "a program does not build against libfoliage-dev"
inside apt-get purge -y -qq foliage foliage-sqlite libfoliage-dev libfoliage0 >"$log" 2>&1 || fail "the packages do not go"
left=$(inside find /usr -path '*foliage*' -not -path '/usr/share/doc*' 2>/dev/null)
[ -z "$left" ] || fail "the packages leave something: $left"
echo "foliage $version: installed, used and removed in a clean $suite"
