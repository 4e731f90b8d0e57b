"""How files are replaced, whoever writes them: what the old file had beside its
bytes, locks, and what a killed process leaves."""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest
from conftest import PATIENCE, PROGRAM, keys, run
from parquet_file import BINARY, I32, I64, LIST, STRUCT, dump

NOBODY = 65534
DOCUMENTS = "".join(f'{{"text": "document {i} says {i * 7} and {i * 11}"}}\n'
                    for i in range(50))


# ------------------------------------------------------------- every writer

def parquet():
    """A Parquet file of one column, x, of ten integers."""
    def listed(kind, *values):
        return (kind, list(values))
    values = b"".join(i.to_bytes(8, "little") for i in range(10))
    chunk = dump(STRUCT, [[1, I32, 0], [2, I32, 80], [3, I32, 80],
                          [5, STRUCT, [[1, I32, 10], [2, I32, 0], [3, I32, 3],
                                       [4, I32, 3]]]]) + values
    column = [[1, I32, 2], [2, LIST, listed(I32, 0)],
              [3, LIST, listed(BINARY, b"x")], [4, I32, 0], [5, I64, 10],
              [6, I64, len(chunk)], [7, I64, len(chunk)], [9, I64, 4]]
    group = [[1, LIST, listed(STRUCT, [[2, I64, 4], [3, STRUCT, column]])],
             [2, I64, len(chunk)], [3, I64, 10]]
    footer = dump(STRUCT, [
        [1, I32, 1],
        [2, LIST, listed(STRUCT, [[4, BINARY, b"root"], [5, I32, 1]],
                         [[1, I32, 2], [3, I32, 0], [4, BINARY, b"x"]])],
        [3, I64, 10], [4, LIST, listed(STRUCT, group)]])
    return (b"PAR1" + chunk + footer + len(footer).to_bytes(4, "little") +
            b"PAR1")


def prepare(folder):
    """Inputs that the writers below need."""
    folder.mkdir(exist_ok=True)
    for name, first in (("a", 0), ("b", 50)):
        assert run("build", "-q", "-o", f"{name}.bly", "--items", "1000",
                   "--kind", "counting", "-O", "folds=1", cwd=folder,
                   stdin=keys(first, 100)).status == 0
    assert run("delta", "-q", "a.bly", "b.bly", "-o", "ab.bld",
               cwd=folder).status == 0
    (folder / "docs.jsonl").write_text(DOCUMENTS)
    (folder / "list.txt").write_text(keys(0, 100))
    (folder / "t.parquet").write_bytes(parquet())


# What is typed to write OUT where it is not the file that is changed.
WRITERS = {
    "build": "build -q -o OUT list.txt",
    "build --format": "build -q --format guava -o OUT list.txt",
    "merge": "merge -q -o OUT a.bly b.bly",
    "intersect": "intersect -q -o OUT a.bly b.bly",
    "shrink": "shrink -q -o OUT a.bly",
    "compress": "compress -q -o OUT a.bly",
    "delta": "delta -q a.bly b.bly -o OUT",
    "apply": "apply -q a.bly ab.bld -o OUT",
    "convert": "convert -q a.bly --kind classic -o OUT",
    "dedup": "dedup -q -o OUT docs.jsonl",
    "dedup --pairs": "dedup -q --pairs OUT docs.jsonl",
    "dedup --clusters": "dedup -q --clusters OUT docs.jsonl",
    "dedup --removed": "dedup -q --removed OUT docs.jsonl",
    "dedup --save-index": "dedup -q --save-index OUT docs.jsonl",
    "dedup --index bloom": "dedup -q --index bloom -o OUT docs.jsonl",
    "parquet add": "parquet add -q t.parquet --column x -o OUT",
    "index build": "index build -q -o OUT list.txt docs.jsonl",
    "plan --plot": "plan -n 1000 -p 1% --plot OUT",
    "explain --plot": "explain --plot OUT",
}
# Those that change OUT, which is a filter.
CHANGERS = {
    "add": "add -q OUT more",
    "remove": "remove -q OUT key-1",
    "merge onto": "merge -q -o OUT OUT b.bly",
    "intersect onto": "intersect -q -o OUT OUT b.bly",
    "shrink": "shrink -q OUT",
    "compress": "compress -q -o OUT OUT",
    "apply": "apply -q OUT ab.bld",
}
EVERY = [*(("writes", n) for n in WRITERS), *(("changes", n) for n in CHANGERS)]


def line_of(how, name, out="out"):
    words = (WRITERS if how == "writes" else CHANGERS)[name].split()
    return [out if w == "OUT" else w for w in words]


def as_user(uid):
    """For subprocess: become that user. None: stay."""
    def become():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    return become if uid is not None and uid != os.getuid() else None


def has_tool(*names):
    return all(shutil.which(n) for n in names)


def text_of(*argv, cwd):
    return subprocess.run(argv, cwd=cwd, check=True, capture_output=True,
                          text=True).stdout


def places():
    """Folders to test in: a disk's and memory's."""
    found = {"disk": None}
    if os.access("/dev/shm", os.W_OK):
        found["shm"] = "/dev/shm"
    return found


@pytest.fixture(scope="module")
def everyones():
    """The command where everybody can run it: the tree may lie in a home."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for program in pathlib.Path(PROGRAM).parent.glob("bloomery-*"):
        if program.is_file() and os.access(program, os.X_OK):
            shutil.copy(program, folder)
    yield shutil.copy(PROGRAM, folder)
    shutil.rmtree(folder)


@pytest.fixture(params=[(p, u) for p in places() for u in ("root", "nobody")],
                ids=lambda p: "-".join(p))
def place(request, everyones):
    """A folder, and the user who writes there."""
    where, user = request.param
    if user == "root" and os.getuid():
        pytest.skip("needs root")
    # pytest's folders are private, and nobody could not enter them.
    base = places()[where] or tempfile.gettempdir()
    uid = NOBODY if user == "nobody" and os.getuid() == 0 else os.getuid()
    folder = pathlib.Path(tempfile.mkdtemp(dir=base))
    folder.chmod(0o755)
    prepare(folder)
    for p in (folder, *folder.iterdir()):
        os.chown(p, uid, uid if uid == NOBODY else -1)

    def call(*argv, **kw):
        return run(*argv, cwd=folder, program=everyones,
                   preexec_fn=as_user(uid), **kw)
    call.path, call.uid = folder, uid
    yield call
    shutil.rmtree(folder)


def can_attributes(folder):
    return has_tool("setfattr", "getfattr") and subprocess.run(
        ["setfattr", "-n", "user.try", "-v", "1", "."], cwd=folder,
        capture_output=True).returncode == 0


def can_lists(folder):
    return has_tool("setfacl", "getfacl") and subprocess.run(
        ["setfacl", "-m", "u:1:r", "a.bly"], cwd=folder,
        capture_output=True).returncode == 0 and not subprocess.run(
        ["setfacl", "-b", "a.bly"], cwd=folder).returncode


def old_file(call, how):
    out = call.path / "out"
    shutil.copy(call.path / "a.bly", out)
    os.chown(out, call.uid, call.uid if call.uid == NOBODY else -1)
    return out


@pytest.mark.parametrize("how, name", EVERY, ids=lambda w: w)
def test_special_bits_go_and_the_rest_stays(place, how, name):
    """A law over every command that writes a file: permission bits, access
    control list, extended attributes and links stay; what would make a program
    of somebody's bytes does not."""
    out = old_file(place, how)
    attributes, lists = can_attributes(place.path), can_lists(place.path)
    out.chmod(0o640)
    if lists:
        subprocess.run(["setfacl", "-m", "u:7:r,g:9:rw,m::r", "out"],
                       cwd=place.path, check=True)
    if attributes:
        subprocess.run(["setfattr", "-n", "user.note", "-v", "by hand", "out"],
                       cwd=place.path, check=True)
        subprocess.run(["setfattr", "-n", "user.bytes", "-v", "0x00ff0a",
                        "out"], cwd=place.path, check=True)
    if attributes and os.getuid() == 0:
        # Only the superuser can make it a program with capabilities.
        subprocess.run(["setfattr", "-n", "security.capability", "-v",
                        "0x0100000200200000000000000000000000000000", "out"],
                       cwd=place.path, check=True)
    out.chmod(stat.S_IMODE(out.stat().st_mode) | 0o7000)
    os.link(out, place.path / "other")
    os.symlink("out", place.path / "link")
    before = out.stat()
    listed = text_of("getfacl", "-pn", "out", cwd=place.path) if lists else ""

    done = place(*line_of(how, name, "link"))
    assert done.status == 0, done.err
    after = out.stat()
    assert after.st_ino != before.st_ino
    assert stat.S_IMODE(after.st_mode) == stat.S_IMODE(before.st_mode) & 0o777
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert (place.path / "link").is_symlink()
    assert (place.path / "other").stat().st_ino == before.st_ino
    if lists:
        flags = re.compile("^# flags:.*\n", re.M)
        assert text_of("getfacl", "-pn", "out", cwd=place.path) == \
            flags.sub("", listed)
    if attributes:
        assert os.getxattr(out, "user.note") == b"by hand"
        assert os.getxattr(out, "user.bytes") == b"\x00\xff\x0a"
        assert "security.capability" not in os.listxattr(out)
    assert not [p for p in place.path.iterdir() if p.suffix == ".tmp"]


def test_a_default_list_opens_nothing(place):
    """A folder's default list is for new files: a private one that is replaced
    stays private."""
    if not can_lists(place.path):
        pytest.skip("no access control lists here")
    subprocess.run(["setfacl", "-d", "-m", "u:7:rwx,g::rwx,o::r", "."],
                   cwd=place.path, check=True)
    out = old_file(place, "changes")
    subprocess.run(["setfacl", "-b", "out"], cwd=place.path, check=True)
    out.chmod(0o640)
    assert place("add", "-q", "out", "more").status == 0
    assert "user:7" not in text_of("getfacl", "-pn", "out", cwd=place.path)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    # A new one gets what the folder gives.
    assert place("build", "-q", "-o", "new", "list.txt").status == 0
    assert "user:7:rw" in text_of("getfacl", "-pn", "new", cwd=place.path)


def test_a_list_that_cannot_be_kept(place):
    """Another's file, of a group that the writer is not in."""
    if not can_lists(place.path) or place.uid == 0 or os.getuid():
        pytest.skip("needs root, another user, and access control lists")
    out = old_file(place, "changes")
    os.chown(out, 0, 0)
    subprocess.run(["setfacl", "-m", f"u:{NOBODY}:rw,u:7:r", "out"],
                   cwd=place.path, check=True)
    before, listed = out.read_bytes(), text_of("getfacl", "-p", "out",
                                               cwd=place.path)
    done = place("add", "out", "more")
    assert done.status == 2 and done.raw == b""
    assert "access control list cannot be kept" in done.err
    assert "setfacl -b" in done.err and len(done.err.splitlines()) == 1
    assert out.read_bytes() == before
    assert text_of("getfacl", "-p", "out", cwd=place.path) == listed
    # Without a list it goes, and nobody gains a right.
    subprocess.run(["setfacl", "-b", "out"], cwd=place.path, check=True)
    out.chmod(0o666)
    assert place("add", "-q", "out", "more").status == 0
    out.chmod(0o626)
    os.chown(out, 0, 0)
    assert place("add", "-q", "out", "more").status == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o622


def test_many_attributes(place):
    if not can_attributes(place.path):
        pytest.skip("no extended attributes here")
    out = old_file(place, "changes")
    kept = {}
    for i in range(200):
        try:
            os.setxattr(out, f"user.{i:03}", os.urandom(40))
        except OSError:
            break  # the file system has its bounds too
    kept = {n: os.getxattr(out, n) for n in os.listxattr(out)
            if n.startswith("user.")}
    assert len(kept) > 10
    assert place("add", "-q", "out", "more").status == 0
    assert {n: os.getxattr(out, n) for n in os.listxattr(out)
            if n.startswith("user.")} == kept


def mounted(folder, *argv):
    folder.mkdir()
    done = subprocess.run(["mount", *argv, str(folder)], capture_output=True)
    return done.returncode == 0


@pytest.fixture(params=["ramfs", "tmpfs-noacl"])
def bare_system(request, tmp_path):
    """A file system without lists of rights."""
    folder = tmp_path / "mounted"
    argv = {"ramfs": ["-t", "ramfs", "none"],
            "tmpfs-noacl": ["-t", "tmpfs", "-o", "size=8m,noacl", "none"]}
    if os.getuid() or not mounted(folder, *argv[request.param]):
        pytest.skip("cannot mount here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_file_system_without_lists(bare_system):
    prepare(bare_system)
    out = bare_system / "a.bly"
    out.chmod(0o4640)
    for line in ("add -q a.bly more", "dedup -q -o a.bly docs.jsonl"):
        done = run(*line.split(), cwd=bare_system)
        assert done.status == 0, done.err
        assert stat.S_IMODE(out.stat().st_mode) == 0o640


# ---------------------------------------------------------------- full disks

def test_a_full_disk_changes_nothing(tmp_path):
    folder = tmp_path / "mounted"
    if os.getuid() or not mounted(folder, "-t", "tmpfs", "-o", "size=1m",
                                  "none"):
        pytest.skip("cannot mount here")
    try:
        prepare(folder)
        free = os.statvfs(folder)
        (folder / "filler").write_bytes(
            b"x" * (free.f_bavail * free.f_frsize - 8192))
        before = (folder / "a.bly").read_bytes()
        (tmp_path / "big").write_text(
            "".join(f'{{"text": "{i} {i * 7} {i * 11} {i * 13}"}}\n'
                    for i in range(5000)))
        for line in (f"dedup -q -o a.bly {tmp_path}/big",
                     f"dedup -q --save-index a.bly {tmp_path}/big",
                     "build -q --items 1M -o a.bly list.txt"):
            done = run(*line.split(), cwd=folder)
            assert done.status == 2 and "No space left" in done.err, done.err
            assert (folder / "a.bly").read_bytes() == before
            assert not [p for p in folder.iterdir() if p.suffix == ".tmp"]
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# ------------------------------------------------------------------- waiting

class Holder:
    """A process in the middle of an add: it holds the lock."""

    def __init__(self, folder, name="f.bly"):
        self.process = subprocess.Popen(
            [PROGRAM, "add", "-q", name, "-f", "-"], cwd=folder,
            stdin=subprocess.PIPE)
        inode = os.stat(folder / name).st_ino
        lock = re.compile(rf" FLOCK .* {self.process.pid} .*:{inode} ")
        for _ in range(6000):
            if lock.search(pathlib.Path("/proc/locks").read_text()):
                return
            time.sleep(0.01)
        pytest.skip("/proc/locks does not tell")

    def release(self):
        self.process.communicate(b"held\n")
        assert self.process.returncode == 0


WAITS = ["add -q f.bly mine", "remove -q f.bly key-1",
         "merge -q -o f.bly f.bly a.bly", "merge -q -o f.bly a.bly b.bly",
         "shrink -q f.bly", "compress -q -o f.bly f.bly", "apply -q f.bly ab.bld",
         "build -q -o f.bly list.txt", "dedup -q -o f.bly docs.jsonl",
         "dedup -q --index bloom --filter f.bly -o new docs.jsonl",
         "delta -q a.bly b.bly -o f.bly", "convert -q a.bly --kind classic "
         "-o f.bly"]


@pytest.fixture
def held(tmp_path):
    prepare(tmp_path)
    shutil.copy(tmp_path / "a.bly", tmp_path / "f.bly")
    holder = Holder(tmp_path)
    yield tmp_path, holder
    if holder.process.poll() is None:
        holder.release()


def test_not_waiting(held):
    folder, holder = held
    before = (folder / "f.bly").read_bytes()
    for line in WAITS:
        done = run(*line.split(), "--wait", "0", cwd=folder)
        assert (done.status, done.raw) == (2, b""), (line, done.err)
        assert "f.bly: another process is changing it" in done.err, line
        assert f"process {holder.process.pid} (bloomery)" in done.err, line
        assert len(done.err.splitlines()) == 1, done.err
    done = run("add", "f.bly", "mine", "--wait", "0.2", cwd=folder)
    assert done.status == 2
    # Who asks does not wait.
    assert run("has", "-q", "f.bly", "key-1", cwd=folder).status == 0
    assert (folder / "f.bly").read_bytes() == before


def test_waiting_is_told_of(held):
    folder, holder = held
    waits = [subprocess.Popen([PROGRAM, *line.split()], cwd=folder,
                              stderr=subprocess.PIPE, text=True)
             for line in ("add f.bly mine", "build -o f2.bly list.txt",
                          "add -q f.bly mine")]
    assert waits[0].stderr.readline() == \
        "bloomery: add: waiting for another process that is changing f.bly: " \
        f"process {holder.process.pid} (bloomery)\n"
    assert waits[1].wait(PATIENCE) == 0  # another file
    holder.release()
    for w in waits:
        assert w.communicate(timeout=PATIENCE)[1] == ""
        assert w.returncode == 0
    for key in ("held", "mine"):  # nothing is lost
        assert run("has", "-q", "f.bly", key, cwd=folder).status == 0


def test_an_interrupt_ends_the_wait(held):
    folder, holder = held
    w = subprocess.Popen([PROGRAM, "add", "f.bly", "mine"], cwd=folder,
                         stderr=subprocess.PIPE, text=True)
    assert "waiting" in w.stderr.readline()
    w.send_signal(signal.SIGINT)
    assert w.wait(PATIENCE) == -signal.SIGINT
    holder.release()
    assert run("has", "-q", "f.bly", "mine", cwd=folder).status == 1


@pytest.fixture
def fast_clock(tmp_path):
    """A library to preload with which every sleep ends at once, and the clock
    has moved on by as much: a minute of waiting is over at once."""
    (tmp_path / "clock.c").write_text('''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static long long slept; /* nanoseconds */
int nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)left;
    slept += t->tv_sec * 1000000000LL + t->tv_nsec;
    return 0;
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int rc = real(id, t);
    const long long ns = t->tv_nsec + slept;
    t->tv_sec += ns / 1000000000;
    t->tv_nsec = ns % 1000000000;
    return rc;
}
''')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "clock.so", "clock.c"],
                   cwd=tmp_path, check=True)
    return {**os.environ, "LD_PRELOAD": str(tmp_path / "clock.so")}


def test_a_reader_cannot_stop_a_writer_for_ever(tmp_path, fast_clock):
    """Anybody who may read a file can take its lock and keep it."""
    prepare(tmp_path)
    with open(tmp_path / "a.bly") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        done = run("add", "a.bly", "mine", cwd=tmp_path, env=fast_clock)
        assert done.status == 2
        told, why = done.err.splitlines()
        assert "waiting" in told
        for line in told, why:
            assert f"process {os.getpid()} (" in line
        # As long as is wanted.
        done = run("add", "a.bly", "mine", "--wait", "120", cwd=tmp_path,
                   env=fast_clock)
        assert done.status == 2 and f"process {os.getpid()} (" in done.err
    assert run("add", "a.bly", "mine", cwd=tmp_path).status == 0


@pytest.mark.parametrize("text", ["", "-1", "soon", "1x", "nan"])
def test_seconds_to_wait(trouble, text):
    trouble("add", "f.bly", "key", f"--wait={text}", says="--wait")


# --------------------------------------------------------- odd circumstances

def test_links_that_lead_nowhere(ok, trouble):
    (ok.path / "list.txt").write_text(keys(0, 10))
    os.symlink("loop", ok.path / "loop")
    os.symlink("no/such/file", ok.path / "astray")
    os.symlink("new.bly", ok.path / "fresh")
    for name in ("loop", "astray"):
        trouble("build", "-q", "-o", name, "list.txt", says=name)
        trouble("dedup", "-q", "--lines", "-o", name, "list.txt", says=name)
        assert (ok.path / name).is_symlink()
    ok("build", "-q", "-o", "fresh", "list.txt")
    assert (ok.path / "fresh").is_symlink() and (ok.path / "new.bly").exists()


def test_a_folder_that_cannot_be_written(place):
    if place.uid == 0:
        pytest.skip("nothing is read-only for root")
    out = old_file(place, "changes")
    before = out.read_bytes()
    place.path.chmod(0o555)
    for line in ("add out more", "dedup -o out docs.jsonl",
                 "plan -n 10 -p 1% --plot out"):
        done = place(*line.split())
        assert done.status == 2 and "out: " in done.err, done.err
        assert out.read_bytes() == before
    place.path.chmod(0o755)


def test_the_target_becomes_a_folder_meanwhile(held):
    folder, holder = held
    (folder / "f.bly").rename(folder / "away.bly")
    (folder / "f.bly").mkdir()
    holder.process.communicate(b"held\n")
    assert holder.process.returncode == 2
    assert (folder / "f.bly").is_dir()
    assert run("has", "-q", "away.bly", "held", cwd=folder).status == 1
    assert not [p for p in folder.iterdir() if p.suffix == ".tmp"]
