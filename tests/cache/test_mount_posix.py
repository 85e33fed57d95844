# SPDX-License-Identifier: MIT
# What POSIX and Linux ask of a file system, as a transcript: run it in two directories and compare. Everything
# printed must be equal on both, so there are no inode numbers and no times of day.
import ctypes, errno, fcntl, hashlib, mmap, os, random, stat, sys, time

os.chdir(sys.argv[1])
os.umask(0o022)
libc = ctypes.CDLL(None, use_errno=True)
KEEP, PUNCH, ZERO = 1, 2, 16 # FUSE has no others
NOREPLACE, EXCHANGE = 1, 2


def say(*what):
    print(*what, flush=True)


def attempt(label, call, *args, **named):
    try:
        result = call(*args, **named)
    except OSError as e:
        result = errno.errorcode[e.errno]
    say(label, result)
    return result


def renameat2(a, b, flags):
    if libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), flags):
        raise OSError(ctypes.get_errno(), "")


def fallocate(fd, mode, offset, length):
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if libc.fallocate(fd, mode, offset, length):
        raise OSError(ctypes.get_errno(), "")


def show(path):
    s = os.lstat(path)
    # The size of a directory is the file system's own affair.
    say(path, oct(s.st_mode), s.st_nlink if not stat.S_ISDIR(s.st_mode) else "", s.st_uid, s.st_gid,
        s.st_size if not stat.S_ISDIR(s.st_mode) else "", s.st_rdev)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.md5(f.read()).hexdigest()


def as_user(label, uid, call):
    """Run call in a child that has the identity of `uid`; tell what it returns."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.setgroups([uid + 7])
        os.setgid(uid)
        os.setuid(uid)
        try:
            text = str(call())
        except OSError as e:
            text = errno.errorcode[e.errno]
        os.write(w, text.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    say(label, os.read(r, 1000).decode())
    os.close(r)
    os.close(w)


# ---- names ----
os.mkdir("d", 0o755)
os.mkdir("d/e", 0o700)
attempt("mkdir again", os.mkdir, "d")
attempt("rmdir full", os.rmdir, "d")
open("a", "w").write("hello")
os.link("a", "b")
os.symlink("a", "s")
os.symlink("nowhere", "dangling")
os.link("s", "s2", follow_symlinks=False)
os.mkfifo("fifo", 0o640)
os.mknod("null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
for name in ("a", "b", "s", "s2", "dangling", "fifo", "null", "d", "d/e"):
    show(name)
say(os.readlink("s"), os.readlink("s2"), os.readlink("dangling"))
attempt("open dangling", os.open, "dangling", os.O_RDONLY)
attempt("open nofollow", os.open, "s", os.O_RDONLY | os.O_NOFOLLOW)
attempt("open directory for writing", os.open, "d", os.O_WRONLY)
attempt("open exclusively", os.open, "a", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
attempt("open file as directory", os.open, "a", os.O_DIRECTORY)
attempt("missing", os.stat, "missing")
attempt("file as parent", os.stat, "a/x")
attempt("long name", lambda: os.close(os.open("n" * 255, os.O_CREAT | os.O_WRONLY)))
attempt("too long name", os.open, "n" * 256, os.O_CREAT | os.O_WRONLY)
os.unlink("n" * 255)
attempt("unlink directory", os.unlink, "d")
attempt("rmdir file", os.rmdir, "a")
attempt("link directory", os.link, "d", "dd")
attempt("rename noreplace", renameat2, "a", "b", NOREPLACE)
attempt("rename noreplace, free", renameat2, "a", "a2", NOREPLACE)
attempt("rename to own link", os.rename, "a2", "b")
show("a2")
open("x", "w").write("this is x")
attempt("exchange", renameat2, "x", "a2", EXCHANGE)
say(open("x").read(), open("a2").read())
attempt("exchange with directory", renameat2, "x", "d", EXCHANGE)
show("x")
show("d")
attempt("exchange back", renameat2, "x", "d", EXCHANGE)
attempt("rename directory into itself", os.rename, "d", "d/e/f")
attempt("rename over full directory", os.rename, "d/e", "d")
os.mkdir("empty")
attempt("rename over empty directory", os.rename, "d/e", "empty")
attempt("rename file over directory", os.rename, "x", "empty")
say(sorted(os.listdir(".")))
os.mkdir("many")
for i in range(1500):
    os.close(os.open("many/file%d" % i, os.O_CREAT | os.O_WRONLY))
seen = sorted(os.listdir("many"))
say(len(seen), len(set(seen)), hashlib.md5("".join(seen).encode()).hexdigest())
with os.scandir("many") as entries:
    say(all(e.is_file() and e.stat().st_size == 0 for e in entries))
for i in range(0, 1500, 2):
    os.unlink("many/file%d" % i)
say(len(os.listdir("many")))

# ---- attributes ----
os.chmod("a2", 0o4755)
show("a2")
os.chown("a2", 12, 34)
show("a2")
os.chown("s", 5, 6, follow_symlinks=False)
show("s")
os.utime("a2", ns=(1234567890123456789, 987654321987654321))
s = os.stat("a2")
say(s.st_atime_ns, s.st_mtime_ns)
os.utime("s", ns=(1000000001, 2000000002), follow_symlinks=False)
say(os.lstat("s").st_mtime_ns)
for label, call in (("create", lambda: os.setxattr("a2", "user.one", b"1", os.XATTR_CREATE)),
                    ("create again", lambda: os.setxattr("a2", "user.one", b"2", os.XATTR_CREATE)),
                    ("replace none", lambda: os.setxattr("a2", "user.two", b"2", os.XATTR_REPLACE)),
                    ("replace", lambda: os.setxattr("a2", "user.one", b"three" * 100, os.XATTR_REPLACE)),
                    ("empty", lambda: os.setxattr("a2", "user.empty", b"")),
                    ("trusted", lambda: os.setxattr("a2", "trusted.t", b"t")),
                    ("on a directory", lambda: os.setxattr("d", "user.d", b"d")),
                    ("user on a link", lambda: os.setxattr("s", "user.s", b"s", follow_symlinks=False)),
                    ("trusted on a link", lambda: os.setxattr("s", "trusted.s", b"s", follow_symlinks=False)),
                    ("get", lambda: os.getxattr("a2", "user.one")),
                    ("get none", lambda: os.getxattr("a2", "user.none")),
                    ("get of a link", lambda: os.getxattr("s", "trusted.s", follow_symlinks=False)),
                    ("list", lambda: sorted(os.listxattr("a2"))),
                    ("remove", lambda: os.removexattr("a2", "user.one")),
                    ("remove again", lambda: os.removexattr("a2", "user.one")),
                    ("bad name", lambda: os.setxattr("a2", "nonsense", b"")),
                    ("list at last", lambda: sorted(os.listxattr("a2")))):
    attempt("xattr " + label, call)
v = os.statvfs(".")
say(v.f_bsize, v.f_namemax, v.f_blocks > 0)

# ---- contents ----
fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
say(os.pwrite(fd, b"x" * 10000, 0), os.fstat(fd).st_size)
say(os.pwrite(fd, b"end", 1000000), os.fstat(fd).st_size, os.stat("f").st_size)
say(os.pread(fd, 10, 9995), os.pread(fd, 10, 999998), os.pread(fd, 10, 2000000), os.pread(fd, 5, 500000))
say("data and holes", os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE), os.lseek(fd, 20000, os.SEEK_DATA),
    os.lseek(fd, 999999, os.SEEK_HOLE))
attempt("no more data", os.lseek, fd, 2000000, os.SEEK_DATA)
os.ftruncate(fd, 5000)
say(os.fstat(fd).st_size, os.pread(fd, 10000, 4990))
os.ftruncate(fd, 9000)
say(os.fstat(fd).st_size, os.pread(fd, 10000, 4995) == b"x" * 5 + b"\0" * 4000)
other = os.open("f", os.O_RDONLY)
os.truncate("f", 100)
say(os.fstat(fd).st_size, len(os.pread(other, 1000, 0)))
attempt("write on a reader", os.write, other, b"x")
os.pwrite(fd, b"y" * 50000, 0)
say(os.pread(other, 3, 49999), len(os.pread(other, 100000, 0)))
os.unlink("f")
say("unlinked", os.fstat(fd).st_nlink, len(os.pread(other, 100000, 0)), os.pwrite(fd, b"z", 60000), os.pread(other, 2, 60000))
attempt("unlinked", os.stat, "f")
os.close(fd)
os.close(other)
a = os.open("append", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
b = os.open("append", os.O_WRONLY | os.O_APPEND)
for i in range(200):
    os.write(a if i % 3 else b, b"%d\n" % i)
say(digest("append"), os.stat("append").st_size)
os.close(a)
os.close(b)
fd = os.open("append", os.O_RDWR | os.O_TRUNC)
say(os.fstat(fd).st_size, os.read(fd, 10))
os.write(fd, b"again")
os.fsync(fd)
os.fdatasync(fd)
os.close(fd)
say(open("append").read())
folder = os.open("d", os.O_RDONLY)
attempt("fsync of a directory", os.fsync, folder)
for flags in (os.O_SYNC, os.O_DSYNC):
    fd = os.open("sync", os.O_CREAT | os.O_WRONLY | flags)
    say(os.write(fd, b"s" * 5000), os.fstat(fd).st_size)
    os.close(fd)

# ---- the time of writing is the program's, whenever write-back comes ----
fd = os.open("times", os.O_CREAT | os.O_RDWR)
os.write(fd, b"1")
before = os.fstat(fd)
os.utime("times", ns=(5, 1000000000000000005))
os.close(fd)
say(os.stat("times").st_mtime_ns)
fd = os.open("times", os.O_RDWR)
os.pwrite(fd, b"2", 5000)
s = os.fstat(fd)
say("written now", abs(s.st_mtime - time.time()) < 5, s.st_mtime_ns >= before.st_mtime_ns)
os.close(fd)
after = os.stat("times")
say("stays", after.st_mtime_ns == s.st_mtime_ns, after.st_ctime_ns == s.st_ctime_ns)
os.chmod("times", 0o600)
say("moves", os.stat("times").st_ctime_ns > after.st_ctime_ns)

# ---- space ----
fd = os.open("space", os.O_CREAT | os.O_RDWR)
os.pwrite(fd, bytes(range(256)) * 1024, 0)
for label, mode, offset, length in (("keep", KEEP, 1 << 20, 1 << 16), ("grow", 0, 0, 300000), ("punch", KEEP | PUNCH, 5000, 20000),
                                    ("punch without keep", PUNCH, 0, 10), ("zero", ZERO, 100000, 10000),
                                    ("zero and grow", ZERO, 299000, 40000), ("zero, keep", ZERO | KEEP, 330000, 50000),
                                    ("negative", 0, -1, 10), ("nothing", 0, 0, 0)):
    os.pwrite(fd, b"before " + label.encode(), 4990)
    attempt("fallocate " + label, fallocate, fd, mode, offset, length)
    say(os.fstat(fd).st_size, hashlib.md5(os.pread(fd, 1 << 20, 0)).hexdigest())
os.close(fd)
say(digest("space"), os.stat("space").st_size)
source = os.open("space", os.O_RDWR)
target = os.open("copy", os.O_CREAT | os.O_RDWR)
os.pwrite(source, b"just written", 70000)
os.pwrite(target, b"target", 10)
os.pread(target, 100, 0)
say(os.copy_file_range(source, target, 50001, 60000, 777), os.fstat(target).st_size, hashlib.md5(os.pread(target, 1 << 20, 0)).hexdigest())
say(os.copy_file_range(source, source, 4096, 0, 100000), hashlib.md5(os.pread(source, 1 << 20, 0)).hexdigest())
say(os.copy_file_range(source, target, 100, 1 << 30), )
os.close(source)
os.close(target)

# ---- locks: each process has its own, each open file description, too ----
fd = os.open("lock", os.O_CREAT | os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 0)
fcntl.flock(fd, fcntl.LOCK_SH)


def locks():
    mine = os.open("lock", os.O_RDWR)
    told = []
    for call in (lambda: fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 50), lambda: fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 100),
                 lambda: fcntl.flock(mine, fcntl.LOCK_SH | fcntl.LOCK_NB), lambda: fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)):
        try:
            told.append(call())
        except OSError as e:
            told.append(errno.errorcode[e.errno])
    return told


os.chmod("lock", 0o666)
as_user("locks of another", 0, locks)
r, w = os.pipe()
pid = os.fork()
if not pid:
    mine = os.open("lock", os.O_RDWR)
    os.write(w, b".")
    fcntl.lockf(mine, fcntl.LOCK_EX, 10, 0)  # waits
    os.write(w, b"!")
    os._exit(0)
os.read(r, 1)
time.sleep(0.1)
os.write(w, b"still mine")
fcntl.lockf(fd, fcntl.LOCK_UN)
os.waitpid(pid, 0)
say("after waiting", os.read(r, 100))
os.close(fd)

# ---- mapped privately ----
fd = os.open("space", os.O_RDWR)
m = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
say(hashlib.md5(m).hexdigest())
m[0:5] = b"local"
say(os.pread(fd, 5, 0))
m.close()
os.close(fd)

# ---- other users ----
os.mkdir("shared", 0o2775)
os.chown("shared", 0, 77)
os.chmod("shared", 0o2777)
os.mkdir("sticky")
os.chmod("sticky", 0o1777)
open("sticky/root's", "w").close()
open("secret", "w").write("secret")
os.chmod("secret", 0o600)
os.mkdir("group", 0o770)
os.chown("group", 0, 1007)
os.chmod("group", 0o770)


def makes():
    os.umask(0o027)
    open("shared/file", "w").write("mine")
    os.mkdir("shared/folder")
    os.symlink("x", "shared/link")
    os.mkfifo("shared/fifo")
    open("group/by supplementary group", "w").write("mine")


as_user("makes", 1000, makes)
for name in ("shared/file", "shared/folder", "shared/link", "shared/fifo", "group/by supplementary group"):
    show(name)
for label, call in (("secret", lambda: open("secret").read()), ("secret for writing", lambda: os.open("secret", os.O_WRONLY)),
                    ("truncate", lambda: os.truncate("secret", 0)), ("sticky", lambda: os.unlink("sticky/root's")),
                    ("chmod", lambda: os.chmod("secret", 0o666)), ("chown own away", lambda: os.chown("shared/file", 0, 0)),
                    ("unlink in root's", lambda: os.unlink("secret")), ("access", lambda: [os.access("secret", m) for m in (0, 4, 2, 1)]),
                    ("a device", lambda: os.mknod("shared/dev", stat.S_IFCHR | 0o600, os.makedev(1, 3)))):
    as_user(label, 1000, call)
open("suid", "w").write("x" * 100)
os.chmod("suid", 0o6777)


def writes():
    with open("suid", "r+b") as f:
        f.write(b"y")


as_user("write to suid", 1000, writes)
show("suid")

# ---- anything, at random ----
rnd = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
names = ["r%d" % i for i in range(4)]
for step in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1500):
    name = rnd.choice(names)
    op = rnd.randrange(14)
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    offset, length = rnd.randrange(200000), rnd.randrange(1, 30000)
    if op < 4:
        os.pwrite(fd, bytes([rnd.randrange(256)]) * length, offset)
    elif op < 8:
        say(step, hashlib.md5(os.pread(fd, length, offset)).hexdigest())
    elif op == 8:
        os.ftruncate(fd, offset)
    elif op == 9:
        attempt(step, fallocate, fd, rnd.choice([0, KEEP, KEEP | PUNCH, ZERO, ZERO | KEEP]), offset, length)
    elif op == 10:
        other = os.open(rnd.choice(names), os.O_CREAT | os.O_RDWR)
        if not os.path.sameopenfile(fd, other):
            attempt(step, os.copy_file_range, fd, other, length, offset, rnd.randrange(200000))
        os.close(other)
    elif op == 11:
        os.rename(name, rnd.choice(names))
    elif op == 12:
        if rnd.randrange(4) == 0:
            os.unlink(name)
    else:
        os.fsync(fd)
    say(step, op, name, os.fstat(fd).st_size)
    os.close(fd)
for name in names:
    if os.path.exists(name):
        say(name, os.stat(name).st_size, digest(name))
