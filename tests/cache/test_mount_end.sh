#!/bin/bash
# SPDX-License-Identifier: MIT
# How a mount begins and ends, and what holds whatever happens: unmounting, SIGTERM and SIGINT write everything back, a killed
# mount loses nothing that was fsynced, SOURCE's changes are noticed at open, the names left to the kernel's cache can be mapped
# shared and no others can, nothing can be changed on a read-only mount, mistakes are told in one line.
. "$(dirname "$(realpath "$0")")/mount.sh"
command -v python3 >/dev/null || skip "no python3"

mkdir source mnt

# ---- unmounted, asked to end ----
start source mnt --memory 4M --threads 2
head -c 3000000 /dev/urandom >random
cp random mnt/copied
cmp random source/copied || complain "close() has not written to SOURCE"
# Written and not closed by any program that could: only the mount can have brought it to SOURCE.
python3 - mnt/open "${mounts[mnt]}" <<'PY'
import os, signal, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.write(fd, b"kept" * 5000)
os.kill(int(sys.argv[2]), signal.SIGTERM)
for i in range(600):
    if not os.path.exists("/proc/" + sys.argv[2]):
        break
    time.sleep(0.1)
try:
    os.write(fd, b"x")
    print("written to a mount that is gone")
except OSError:
    pass
PY
gone "${mounts[mnt]}"
unset "mounts[mnt]"
same 'what SIGTERM wrote back' "$(cksum <source/open)" "$(python3 -c 'print("kept" * 5000, end="")' | cksum)"
mountpoint -q mnt && complain "still mounted after SIGTERM"

# ---- in the foreground ----
: >said
# A shell starts background jobs with SIGINT ignored, and it is to stay so: hence python.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
	"$foliage" mount --foreground --memory 4M source mnt >said 2>err &
pid=$!
mounts[mnt]=$pid
for i in $(seq 1 300); do
	grep -q ' on ' said && break
	sleep 0.1
done
same 'what it says when it is ready' "$(cat said)" "$scratch/source on $scratch/mnt"
cmp random mnt/copied || complain "read after mounting again"
kill -INT $pid
gone $pid
unset "mounts[mnt]"
wait $pid
same 'status after SIGINT' $? 0
[ -s err ] && complain "says at the end: $(cat err)"

# ---- killed ----
start source mnt --memory 4M
python3 - mnt "${mounts[mnt]}" >promised <<'PY'
import os, random, signal, sys
rnd = random.Random(1)
fds = [os.open(sys.argv[1] + "/k%d" % i, os.O_CREAT | os.O_RDWR) for i in range(5)]
images = [bytearray() for _ in fds]
for step in range(400):
    i = rnd.randrange(len(fds))
    offset, n = rnd.randrange(300000), rnd.randrange(1, 20000)
    data = bytes([rnd.randrange(1, 256)]) * n
    os.pwrite(fds[i], data, offset)
    if len(images[i]) < offset + n:
        images[i].extend(bytes(offset + n - len(images[i])))
    images[i][offset:offset + n] = data
for fd in fds[:4]:
    os.fsync(fd) if fd % 2 else os.fdatasync(fd)
os.pwrite(fds[4], b"never promised", 0)
os.kill(int(sys.argv[2]), signal.SIGKILL)
import hashlib
for i in range(4):
    print(hashlib.md5(images[i]).hexdigest(), "", "source/k%d" % i)
PY
gone "${mounts[mnt]}"
unset "mounts[mnt]"
md5sum --quiet -c promised || complain "a killed mount has lost what was fsynced"
same 'promises' "$(wc -l <promised)" 4
refuses 'umount --lazy' mount source mnt
umount -l mnt

# ---- SOURCE changes behind the mount ----
start source mnt --memory 4M
echo before >mnt/note
cat mnt/note >/dev/null
sleep 0.01
echo 'after, and longer' >source/note
same 'a change behind the mount' "$(cat mnt/note)" 'after, and longer'
echo 'made in SOURCE' >source/new
same 'a new file' "$(cat mnt/new)" 'made in SOURCE'

# ---- shared mappings ----
python3 - mnt <<'PY' || complain "shared mappings"
import errno, mmap, os, sys, time
def share(name):
    fd = os.open(sys.argv[1] + "/" + name, os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 8192)
    try:
        return mmap.mmap(fd, 8192), fd
    except OSError:
        os.close(fd)
        raise
for name in ("data.mdb", "lock.mdb", "x.db-shm"):
    a, fd = share(name)
    b, other = share(name)
    a[5000:5005] = b"hello"
    assert b[5000:5005] == b"hello", name
    a.flush()
    assert os.pread(other, 5, 5000) == b"hello", name
    os.pwrite(fd, b"again", 5000)
    assert b[5000:5005] == b"again", name
try:
    share("other")
    sys.exit("a cached file was mapped shared")
except OSError as e:
    assert e.errno == errno.ENODEV, e
# A name makes the difference, from the next open on. While a file is open it stays as it was opened, and the kernel tells
# the mount of a close() some time after the program: what was closed above may still be open to it.
os.rename(sys.argv[1] + "/other", sys.argv[1] + "/other-shm")
for i in range(600):
    try:
        a, fd = share("other-shm")
        break
    except OSError as e:
        assert e.errno == errno.ENODEV, e
        time.sleep(0.05)
a[0:4] = b"here"
a.flush()
a.close()
os.close(fd)
os.rename(sys.argv[1] + "/other-shm", sys.argv[1] + "/other")
assert open(sys.argv[1] + "/other", "rb").read(4) == b"here"
PY
stop mnt
cmp <(head -c 4 source/other) <(printf here) || complain "mapped and written, not in SOURCE"
start source mnt --memory 4M --uncached 'no*,*.map'
python3 -c 'import mmap,os; f=open("mnt/x.map","w+b"); f.truncate(4096); m=mmap.mmap(f.fileno(),4096); m[0:1]=b"1"' || complain "--uncached"
stop mnt

# ---- read only ----
start source mnt --memory 4M --read-only
cmp random mnt/copied || complain "reading a read-only mount"
for command in 'touch mnt/none' 'rm mnt/copied' 'truncate -s 0 mnt/copied' 'chmod 600 mnt/copied'; do
	$command 2>err && complain "$command on a read-only mount"
	grep -qi 'read-only' err || complain "$command: $(cat err)"
done
stop mnt

# ---- statistics ----
start source mnt --memory 4M --policy mglru
cat mnt/copied mnt/copied mnt/k? >/dev/null
sleep 1.2
run 0 stat mnt
has out "$scratch/mnt"
run 0 stat --format json mnt
python3 - <<'PY' || complain "statistics: $(cat out)"
import json
s = json.load(open("out"))[0]
assert s["policy"] == "mglru" and s["budget"] == 4 << 20, s
assert s["read_bytes"] >= 6000000 and s["misses"] > 0 and s["pages"] > 0, s
PY
run 0 stat --format csv "${mounts[mnt]}"
same 'lines of csv' "$(wc -l <out)" 2
stop mnt

# ---- mistakes ----
refuses 'needs SOURCE and MOUNTPOINT' mount
refuses 'needs SOURCE and MOUNTPOINT' mount source
refuses 'none: No such file' mount none mnt
refuses 'random: Not a directory' mount source random
refuses 'not a size' mount --memory 64X source mnt
refuses "did you mean 'fg'" mount --policy fh source mnt
refuses 'the cache' mount --memory 1K source mnt
refuses '--threads' mount --threads 0 source mnt
refuses '--readahead' mount --readahead 1G source mnt
refuses '--dirty-background' mount --dirty-background 50 source mnt
refuses '--dirty-limit' mount --dirty-limit 90 source mnt
refuses '--dirty-expire' mount --dirty-expire 0 source mnt
refuses '--timeout' mount --timeout -1 source mnt
refuses 'did you mean' mount --memroy 1M source mnt
mkdir -p source/inside
refuses 'is inside of' mount source source/inside
refuses 'is inside of' mount / mnt
refuses 'no statistics' stat mnt
refuses 'needs a mount point' stat
mountpoint -q mnt && complain "mounted by mistake"
# On the source itself: what was there is still served.
start source source --memory 4M
cmp random source/copied || complain "mounted on itself"
stop source
finish
