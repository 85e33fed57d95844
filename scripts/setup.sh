#!/bin/sh
# Installs what the build and the tests need; does nothing when all of it is there.
set -eu
need="gcc g++ make cmake pkg-config libc6-dev libzstd-dev zlib1g-dev liblzma-dev libcmocka-dev"
missing=""
for p in $need; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "foliage: these packages are missing:$missing" >&2
	exit 1
fi
echo "installing:$missing" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
