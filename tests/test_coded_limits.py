"""Coded filters take up to a thousand times their bytes: each loader has a bound.

Here are the command, SQLite and Python. tests/test_redis_import.py has BLY.IMPORT,
tests/test_spie.c the digests of traffic, tests/js_checks.mjs JavaScript.
"""
import ctypes
import sqlite3
import struct
import subprocess
import sys

import pytest

from conftest import BUILD, PATIENCE, PROGRAM
from wire_support import frame, greeting

# Runs a program, and writes its largest resident size in KiB to a file. A
# program inherits that of the process it was started from, so that has to be
# small.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], stdin=sys.stdin.buffer)
with open(sys.argv[1], "w") as f:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=f)
sys.exit(done.returncode)
"""


def measured(folder, *argv, stdin=b""):
    """Status, what it said, and how many KiB it took."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, "peak", *map(str, argv)],
        input=stdin, cwd=folder, capture_output=True, timeout=PATIENCE)
    return (done.returncode, (done.stdout + done.stderr).decode(errors="replace"),
            int((folder / "peak").read_text()))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """small.bly, and big.bly: 25 KB that take 23 MB."""
    folder = tmp_path_factory.mktemp("coded")
    for name, items in ("small", "1000"), ("big", "10M"):
        subprocess.run([PROGRAM, "build", "-q", "-k", "compressed", "-n",
                        items, "-o", f"{name}.bly"], cwd=folder, check=True,
                       input=b"7\n12\n")
    assert (folder / "big.bly").stat().st_size < 100_000
    return folder


MUCH = 10_000  # KiB; big.bly would take 23,000 more than small.bly


def request(path):
    """A join's, with this filter: apps/join/wire.h."""
    data, most = b"\0" + path.read_bytes(), 65536
    pieces = [data[at:at + most] for at in range(0, len(data), most)] + [b""]
    return greeting(b"blyjoin") + b"".join(frame(b"\1" + piece, number=i) for i, piece in enumerate(pieces))


def test_join_serve(files):
    (files / "r").write_text("7\n8\n")
    argv = PROGRAM, "join", "--serve", "--memory", "1M", "r"
    status, _, least = measured(files, *argv,
                                stdin=request(files / "small.bly"))
    assert status == 0
    status, said, peak = measured(files, *argv,
                                  stdin=request(files / "big.bly"))
    assert status == 2 and "use a larger --memory" in said
    assert peak - least < MUCH
    status, _, peak = measured(files, PROGRAM, "join", "--serve", "r",
                               stdin=request(files / "big.bly"))
    assert status == 0 and peak - least > MUCH


def xxh3(data):
    """As the library has it."""
    library = ctypes.CDLL(str(BUILD / "libbloomery.so"))
    library.bly_hash.restype = ctypes.c_uint64
    hasher = struct.pack("<IIQQQ", 1, 0, 0, 0, 0)
    return library.bly_hash(hasher, data, ctypes.c_size_t(len(data)))


def with_filter(table, f):
    """A table, with another filter and the sums made right."""
    body, footer = table[:-96], table[-96:]
    words = list(struct.unpack("<11Q", footer[:88]))
    at, last = words[5], words[6]
    body = body[:at] + f + body[last:]
    words[6] = at + len(f)
    words[8] = xxh3(f)
    words[10] = xxh3(struct.pack("<10Q", *words[:10]))
    return body + struct.pack("<11Q", *words) + footer[88:]


def test_table(files):
    """One with a large filter is refused, and is not built either."""
    rows = b"".join(b"%d\tx\n" % i for i in range(200))
    build = PROGRAM, "table", "build", "-k", "compressed"
    subprocess.run([*build, "-q", "-o", "t.blt"], cwd=files, input=rows,
                   check=True)
    table = (files / "t.blt").read_bytes()
    for name in "small", "big":
        (files / f"{name}.blt").write_bytes(
            with_filter(table, (files / f"{name}.bly").read_bytes()))
    get = PROGRAM, "table", "get"
    status, said, least = measured(files, *get, "small.blt", "7")
    assert status == 0 and "x" in said
    status, said, peak = measured(files, *get, "big.blt", "7")
    assert status == 2 and "more than 1024 bits per key" in said
    assert peak - least < MUCH
    built = subprocess.run(
        [*build, "-p", "0.000001", "-O", "memory=1000000", "-o", "no.blt"],
        cwd=files, input=rows, capture_output=True)
    assert built.returncode == 2 and b"1024 bits per key" in built.stderr
    assert not (files / "no.blt").exists()


SQLITE = """
import sqlite3, sys
db = sqlite3.connect(":memory:")
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
f = open("big.bly", "rb").read()
if sys.argv[2]:
    db.execute("PRAGMA hard_heap_limit = " + sys.argv[2])
try:
    print(db.execute(sys.argv[3], (f,) if "?" in sys.argv[3] else ()).fetchall())
except (sqlite3.Error, MemoryError) as wrong:
    print("refused", wrong)
"""


@pytest.mark.skipif(not (BUILD / "bloomery_sqlite.so").exists() or
                    not hasattr(sqlite3.Connection, "enable_load_extension"),
                    reason="no extension for SQLite, or none can be loaded")
@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 31),
                    reason="this SQLite has no hard_heap_limit")
@pytest.mark.parametrize("sql", [
    "SELECT bly_has(?, '7')", "SELECT bly_has('big.bly', '7')",
    "SELECT bly_info(?)", "SELECT bly_info('big.bly')",
    "SELECT bly_likeness(?1, ?1)", "SELECT length(bly_merge_agg(?))",
    "SELECT length(bly_load('big.bly'))", "SELECT bly_save(?, 'out.bly')",
    "SELECT * FROM bly_file('big.bly')"])
def test_sqlite(files, sql):
    argv = sys.executable, "-c", SQLITE, BUILD / "bloomery_sqlite.so"
    _, _, least = measured(files, *argv, "", "SELECT 1")
    _, said, peak = measured(files, *argv, "8000000", sql)
    assert "refused" in said and peak - least < MUCH, said
    _, said, peak = measured(files, *argv, "", sql)
    assert "refused" not in said and peak - least > MUCH, said


PYTHON = """
import sys
sys.path.insert(0, sys.argv[1])
import bloomery
f = open("big.bly", "rb").read()
most = eval(sys.argv[2])
try:
    print(eval(sys.argv[3]))
except (bloomery.Error, ValueError, MemoryError) as wrong:
    print("refused", wrong)
"""


@pytest.mark.skipif(not (BUILD / "python" / ".done").exists(), reason="no module for Python")
@pytest.mark.parametrize("use", [
    "bloomery.Filter.from_bytes(f, max_bytes=most)", "bloomery.Filter.open('big.bly', max_bytes=most)",
    "bloomery.Filter.open('big.bly', mapped=False, max_bytes=most)"])
def test_python(files, use):
    argv = "/usr/bin/python3", "-c", PYTHON, BUILD / "python"
    _, _, least = measured(files, *argv, "0", "0")
    for most in "8_000_000", "'8M'":
        _, said, peak = measured(files, *argv, most, use)
        assert "refused" in said and peak - least < MUCH, said
    for most in "30_000_000", "None":
        _, said, peak = measured(files, *argv, most, use)
        assert "refused" not in said and peak - least > MUCH, said
