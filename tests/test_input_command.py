"""What the command reads: compressed lists, files that are not lists, keys that
are names of files."""
import gzip
import io
import lzma
import os
import sqlite3
import subprocess
import tarfile
import time
import zipfile
import zlib

import pytest
from conftest import PROGRAM, ROOT, keys, run

N = 5000
TEXT = keys(0, N).encode()


def program(*argv):
    """What a program makes of its standard input."""
    return lambda text: subprocess.run(argv, input=text, check=True,
                                       capture_output=True).stdout


PACKERS = {
    "gz": program("gzip", "-c"),
    "zst": program("zstd", "-q", "-c"),
    "xz": program("xz", "-c"),
    "xz-crc32": program("xz", "-c", "--check=crc32", "-0"),
    "xz-blocks": program("xz", "-c", "--block-size=1000"),
    "bz2": program("bzip2", "-c"),
    "bz2-small": program("bzip2", "-c", "-1"),
}


@pytest.fixture
def five(ok):
    """The filter of the lines as they are, and what has says of a key."""
    ok("build", "-q", "-o", "plain.bly", stdin=TEXT)
    return ok


def same_as_plain(ok, name):
    return ((ok.path / name).read_bytes() ==
            (ok.path / "plain.bly").read_bytes())


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_lists_are_lists(five, packer):
    pack = PACKERS[packer]
    (five.path / "one").write_bytes(pack(TEXT))
    (five.path / "two").write_bytes(pack(TEXT[:999]) + pack(b"") +
                                    pack(TEXT[999:]))
    for name in "one", "two":
        done = five("build", "-o", "b.bly", name)
        assert f"{N} keys read" in done.out
        assert same_as_plain(five, "b.bly")
        # A pipe, and a list of keys to be asked.
        five("build", "-q", "-o", "b.bly",
             stdin=(five.path / name).read_bytes())
        assert same_as_plain(five, "b.bly")
        assert five("has", "-c", "plain.bly", "-f", name).out == f"{N}\n"


@pytest.mark.parametrize("packer", PACKERS)
def test_half_a_compressed_list_is_an_error(five, trouble, packer):
    packed = PACKERS[packer](TEXT)
    cuts = {len(packed) // 3, len(packed) // 2, len(packed) - 5,
            len(packed) - 1, 30, 12}
    for cut in sorted(cuts):
        (five.path / "cut").write_bytes(packed[:cut])
        trouble("build", "-o", "b.bly", "cut", says=["cut: ", "ends too early"])
    assert not (five.path / "b.bly").exists()


@pytest.mark.parametrize("packer", PACKERS)
def test_what_follows_a_compressed_list_is_an_error(five, trouble, packer):
    (five.path / "more").write_bytes(PACKERS[packer](TEXT) +
                                     b"key-x\n" * 9)
    trouble("build", "-o", "b.bly", "more", says=["more: ", "damaged"])


@pytest.mark.parametrize("packer", ["xz", "bz2"])
def test_a_flipped_bit_is_an_error(five, trouble, packer):
    packed = bytearray(PACKERS[packer](TEXT))
    packed[len(packed) // 2] ^= 4
    (five.path / "bad").write_bytes(packed)
    trouble("build", "-o", "b.bly", "bad", says=["bad: ", "damaged"])


def test_padding_between_xz_streams(five):
    packed = PACKERS["xz"](TEXT[:100]) + b"\0" * 8 + PACKERS["xz"](TEXT[100:])
    (five.path / "padded").write_bytes(packed + b"\0" * 4)
    five("build", "-q", "-o", "b.bly", "padded")
    assert same_as_plain(five, "b.bly")


def test_an_xz_file_that_wants_much_memory(five, trouble):
    """The dictionary is the file's wish; a list may not wish for a gigabyte."""
    # Only the head wishes: the packer itself uses a small one.
    small = lzma.compress(TEXT, filters=[{"id": lzma.FILTER_LZMA2,
                                          "dict_size": 1 << 20}])
    # Block header: size, flags, filter id 21, size 1, dictionary; then its CRC.
    head = bytearray(small[12:12 + (small[12] + 1) * 4])
    at = head.index(b"\x21\x01") + 2
    head[at] = 2 * (30 - 12)
    head[-4:] = zlib.crc32(bytes(head[:-4])).to_bytes(4, "little")
    (five.path / "wish.xz").write_bytes(small[:12] + head +
                                        small[12 + len(head):])
    trouble("build", "-o", "b.bly", "wish.xz",
            says=["wish.xz: ", "memory", "xz -dc"])


def test_dedup_reads_them(ok):
    lines = "".join(f'{{"text": "one two three four five six {i}"}}\n'
                    for i in range(50)).encode()
    (ok.path / "c").write_bytes(lines)
    want = ok("dedup", "-q", "-o", "-", "c").raw
    for suffix in "xz", "bz2":
        (ok.path / f"c.{suffix}").write_bytes(PACKERS[suffix](lines))
        assert ok("dedup", "-q", "-o", "-", f"c.{suffix}").raw == want


def test_a_short_key_that_begins_as_they_do(ok):
    for key in "B", "BZ", "BZh", "BZh9", "P", "PK", "PAR1", "SQLite format 3":
        for end in "", "\n", "\nsecond\n":
            ok("build", "-q", "-o", "k.bly", stdin=key + end)
            assert ok("has", "k.bly", key).out == key + "\n"


def test_without_the_libraries(bare, five, trouble):
    for suffix, library in ("xz", "liblzma"), ("bz2", "libbz2"):
        (five.path / "in").write_bytes(PACKERS[suffix](TEXT))
        trouble("build", "-o", "b.bly", "in", program=bare,
                says=["in: ", library, "-dc"])


# ------------------------------------------------------ files that are not lists

def zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as to:
        to.writestr("list.txt", TEXT)
    return stream.getvalue()


def tarred():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as to:
        row = tarfile.TarInfo("list.txt")
        row.size = len(TEXT)
        to.addfile(row, io.BytesIO(TEXT))
    return stream.getvalue()


def lite(folder):
    to = sqlite3.connect(folder / "db")
    to.execute("create table t (a)")
    to.commit()
    to.close()
    return (folder / "db").read_bytes()


OTHERS = {
    "zip archive": lambda folder: zipped(),
    "7z archive": lambda folder: b"7z\xbc\xaf\x27\x1c\0\4" + bytes(100),
    "RAR archive": lambda folder: b"Rar!\x1a\x07\x01\0" + bytes(100),
    "tar archive": lambda folder: tarred(),
    "lz4": lambda folder: program("lz4", "-c")(TEXT)
    if subprocess.run("command -v lz4", shell=True).returncode == 0
    else b"\x04\x22\x4d\x18" + bytes(100),
    "lzip": lambda folder: b"LZIP\x01\x0c" + bytes(100),
    "lzma": lambda folder: lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "SQLite": lambda folder: lite(folder),
    "Parquet": lambda folder: b"PAR1\x15\x04\x15" + bytes(100) + b"PAR1",
    "UTF-16": lambda folder: TEXT.decode().encode("utf-16"),
    ".bly": lambda folder: (ROOT / "tests/golden/blocked.bly").read_bytes(),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_list_is_refused(five, trouble, what, packed):
    content = OTHERS[what](five.path)
    (five.path / "in").write_bytes(gzip.compress(content) if packed
                                   else content)
    before = (five.path / "plain.bly").read_bytes()
    for line in (["build", "-o", "b.bly", "in"], ["top", "in"],
                 ["has", "plain.bly", "-f", "in"],
                 ["add", "plain.bly", "-f", "in"], ["similar", "in", "in"]):
        trouble(*line, says=["in: ", what, "--binary"])
    trouble("build", "-o", "b.bly", says=["standard input: ", what],
            stdin=(five.path / "in").read_bytes())
    assert (five.path / "plain.bly").read_bytes() == before
    assert not (five.path / "b.bly").exists()


@pytest.mark.parametrize("inner", ["gzip", "zstd", "xz", "bzip2"])
def test_what_is_compressed_twice_is_refused(five, trouble, inner):
    (five.path / "in").write_bytes(gzip.compress(program(inner, "-c")(TEXT)))
    for line in (["build", "-o", "b.bly", "in"], ["has", "plain.bly", "-f", "in"],
                 ["similar", "in", "in"]):
        trouble(*line, says=["in: ", "twice", f"{inner} inside gzip", "gzip -dc",
                             "--binary"])
    assert not (five.path / "b.bly").exists()


@pytest.mark.parametrize("what", [x for x in OTHERS if x != "tar archive"])
def test_a_pipe_may_give_its_bytes_one_by_one(five, what):
    content = OTHERS[what](five.path)
    for packed in False, True:
        p = subprocess.Popen([PROGRAM, "build", "-o", "b.bly"],
                             cwd=five.path, stdin=subprocess.PIPE,
                             stderr=subprocess.PIPE, bufsize=0)
        try:
            for byte in (gzip.compress(content, 0) if packed else content)[:60]:
                p.stdin.write(bytes([byte]))
                time.sleep(0.002)
        except BrokenPipeError:
            pass
        assert what in p.communicate()[1].decode() and p.returncode == 2


@pytest.mark.parametrize("what", OTHERS)
def test_binary_takes_the_bytes_as_they_are(five, what):
    content = OTHERS[what](five.path)
    (five.path / "in").write_bytes(content)
    five("build", "-q", "--binary", "-0", "-o", "b.bly", "in")
    first = content.split(b"\0")[0]
    done = five("has", "--binary", "-0", "b.bly", "-f", "in")
    assert done.raw.split(b"\0")[0] == first


def test_binary_does_not_unpack(ok):
    packed = gzip.compress(TEXT)
    (ok.path / "in.gz").write_bytes(packed)
    done = ok("build", "--binary", "-o", "b.bly", "in.gz")
    assert f"{N} keys" not in done.out
    first = packed.split(b"\n")[0]
    assert ok("has", "b.bly", "--binary", stdin=first + b"\n").raw == \
        first + b"\n"


def test_every_command_that_reads_lists_takes_binary():
    """The law: an option for those that read keys, documents or texts."""
    for command in ("build", "add", "has", "top", "dedup", "similar", "basket"):
        assert "--binary" in run(command, "--help").out, command


# ---------------------------------------------------------------------- bombs

BOMB_BYTES = 200 << 20
MOST_KB = 160 << 10  # the command alone takes 10 MB, an xz -9 decoder 65


def held(folder, *argv):
    """Status, what was said, and the most memory that was held, in KB."""
    line = [PROGRAM, *map(str, argv)]
    with open(folder / "said", "w+b") as said:
        child = subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL,
                                 stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return child.returncode, said.read().decode(), used.ru_maxrss


@pytest.mark.parametrize("packer", [["gzip", "-1"], ["zstd", "-q"],
                                    ["xz", "-0"], ["bzip2"]])
def test_a_bomb_that_is_no_filter_is_not_held(five, packer):
    subprocess.run(f"head -c {BOMB_BYTES} /dev/zero | {' '.join(packer)} -c"
                   " > bomb", shell=True, check=True, cwd=five.path)
    assert (five.path / "bomb").stat().st_size < BOMB_BYTES / 200
    for line in (["info", "bomb"], ["info", "--format", "guava", "bomb"],
                 ["has", "bomb", "key"], ["digest", "has", "bomb", "http://a/"],
                 ["convert", "--to", "dcso", "-o", "x", "bomb"],
                 ["build", "-o", "x.bly", "bomb"],
                 ["has", "plain.bly", "-f", "bomb"]):
        status, said, kilobytes = held(five.path, *line)
        assert status == 2 and "bomb: " in said, (line, said)
        assert kilobytes < MOST_KB, (line, kilobytes)
    # Changing a filter unpacks nothing at all.
    assert held(five.path, "add", "bomb", "key")[0] == 2


def test_a_large_filter_of_another_system_in_gzip(ok):
    """What is a filter is unpacked whole, larger than what is looked at."""
    ok("build", "-q", "--format", "guava", "--items", "3M", "-o", "f",
       stdin=TEXT)
    assert (ok.path / "f").stat().st_size > 3 << 20
    for pack in gzip.compress, lzma.compress:
        (ok.path / "packed").write_bytes(pack((ok.path / "f").read_bytes()))
        assert ok("has", "-c", "packed", stdin=TEXT).out == f"{N}\n"


def test_a_compressed_filter_of_ours(five, trouble):
    (five.path / "p.bly.gz").write_bytes(
        gzip.compress((five.path / "plain.bly").read_bytes()))
    for line in ["info", "p.bly.gz"], ["has", "p.bly.gz", "key-1"]:
        trouble(*line, says=[".bly filter", "gzip", "unpack"])


# --------------------------------------------- keys that are names of files

@pytest.fixture
def counted(ok):
    """Filters for every command that takes keys, and a list beside them."""
    (ok.path / "today.log").write_text("one\ntwo\n")
    ok("build", "-q", "--kind", "counting", "--items", 100, "-o", "c.bly")
    (ok.path / "v").write_text("one\t1\n")
    ok("build", "-q", "--kind", "bloomier", "-o", "v.bly", "v")
    return ok


# Commands that change a filter refuse: test_dash_command.py.
ASKING = [["has", "c.bly"], ["count", "c.bly"], ["get", "v.bly"]]


@pytest.mark.parametrize("line", ASKING)
def test_a_key_that_is_a_file_is_told(counted, bly, line):
    plain = bly(*line, "today.log")
    told = [x for x in plain.err.splitlines() if "-f today.log" in x]
    assert len(told) == 1 and "warning" in told[0], plain.err
    # A key all the same: only the warning differs, and -- silences it.
    counted("build", "-q", "--kind", "counting", "--items", 100, "-o", "c.bly")
    for same in ([*line, "--", "today.log"], [line[0], "--", line[1],
                                              "today.log"]):
        quiet = bly(*same)
        assert (quiet.status, quiet.out) == (plain.status, plain.out)
        assert "-f today.log" not in quiet.err
        counted("build", "-q", "--kind", "counting", "--items", 100, "-o",
                "c.bly")


@pytest.mark.parametrize("line", ASKING)
def test_keys_that_are_no_files_are_not(counted, bly, line):
    for more in (["absent"], ["today.log", "one"], ["."], ["-f", "today.log"]):
        assert "-f today.log" not in bly(*line, *more).err
    if line[0] == "has":
        assert "-f today.log" not in bly(*line, "-q", "today.log").err


def test_set_tells_too(counted, bly):
    told = bly("set", "v.bly", "today.log", 1).err
    assert told.count("-f today.log") == 1
    told = bly("set", "v.bly", "today.log").err
    assert "-f today.log" in told
    assert "-f today.log" not in bly("set", "v.bly", "--", "today.log", 1).err
