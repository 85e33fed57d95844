#!/bin/bash
# SPDX-License-Identifier: MIT
# The loop closed, small: what fio's zipf reads cost on the mount is what a replay of the same offsets says, and fg beats the others.
. "$(dirname "$(realpath "$0")")/mount.sh"
command -v fio >/dev/null || skip "no fio"
ZIPF_MIB=16 ZIPF_READS=40000 bash "$here/../../bench/mount_zipf.sh" "$foliage" || complain "the mount and the replay do not agree"
finish
