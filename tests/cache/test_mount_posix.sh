#!/bin/bash
# SPDX-License-Identifier: MIT
# The mount against the plain directory it shows: one transcript of some 2,000 lines of names, attributes, contents, space, locks and
# permissions, made in both, must be equal, and what is in SOURCE afterwards, too. Then two threads of random operations at once.
. "$(dirname "$(realpath "$0")")/mount.sh"
command -v python3 >/dev/null || skip "no python3"
chmod 755 "$scratch"

transcript() { # FOLDER OUTPUT SEED STEPS
	python3 "$here/test_mount_posix.py" "$1" "$3" "$4" >"$2" 2>err || complain "$1: $(cat err)"
}

# What the policy, the way to the disk and the memory are must not matter.
compare() { # NAME SEED OPTION...
	rm -rf plain source
	mkdir plain source
	start source mnt --allow-other "${@:3}"
	transcript plain plain.out "$2" 1200
	transcript mnt mnt.out "$2" 1200
	cmp plain.out mnt.out || complain "$1: $(diff plain.out mnt.out | head -20)"
	[ "$(wc -l <mnt.out)" -gt 1500 ] || complain "$1: only $(wc -l <mnt.out) lines"
	(cd plain && find . -type f -exec cksum {} +) | sort >plain.sums
	(cd mnt && find . -type f -exec cksum {} +) | sort >mnt.sums
	cmp plain.sums mnt.sums || complain "$1: contents on the mount"
	stop mnt
	(cd source && find . -type f -exec cksum {} +) | sort >source.sums
	cmp plain.sums source.sums || complain "$1: contents of SOURCE"
	(cd plain && find . -printf '%p %y %m %n %U %G %l\n') | sed 's/ d \([0-9]*\) [0-9]*/ d \1/' | sort >plain.attrs
	(cd source && find . -printf '%p %y %m %n %U %G %l\n') | sed 's/ d \([0-9]*\) [0-9]*/ d \1/' | sort >source.attrs
	cmp plain.attrs source.attrs || complain "$1: attributes of SOURCE: $(diff plain.attrs source.attrs | head -5)"
}

compare 'small' 1 --memory 2M
compare 'classic, buffered, one thread, no readahead' 2 --memory 4M --policy clru --buffered --threads 1 --readahead 0
finish
