"""Nothing from outside steers a terminal: names in files, names of files, and
keys, through every command that tells of them."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest
from conftest import KINDS, PATIENCE, PROGRAM, ROOT, keys, run
from parquet_file import BINARY, I32, I64, LIST, STRUCT, dump

# An escape, a bell, a carriage return, DEL; a CSI in UTF-8 and one that is a
# byte; a character cut short; a turn of the direction; and what must stay.
HOSTILE = (b"caf\xc3\xa9\x1b[31m\x07\r\x7f\xc2\x9b2J\x9b\xff\xe2\x82"
           b"\xe2\x80\xae\xe2\x81\xa6end")
SHOWN = "café?[31m?????2J"
# Those of has; the one above is none of them.
OWN_COLOURS = re.compile(rb"\x1b\[(?:01;31|3[256])?m")
TURNS = {*range(0x2028, 0x202f), *range(0x2066, 0x206a)}


def assert_clean(raw, what):
    """UTF-8, and no control character but newlines and tabs."""
    text = raw.decode("utf-8", "strict") if isinstance(raw, bytes) else raw
    bad = {hex(ord(c)) for c in text
           if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160
           or ord(c) in TURNS}
    assert not bad, (what, bad, text)


def told(folder, *argv, stdin=b""):
    """What a command says, both streams, which must be clean."""
    done = subprocess.run([PROGRAM, *argv], input=stdin, cwd=folder,
                          capture_output=True, timeout=PATIENCE)
    assert done.returncode in (0, 1, 2), (argv, done)
    for raw in done.stdout, done.stderr:
        assert_clean(raw, argv)
    return (done.stdout + done.stderr).decode()


def on_terminal(folder, *argv, stdin=b""):
    """The same with standard output on a terminal: its bytes, as written."""
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST  # a newline is a newline
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    (folder / "in").write_bytes(stdin)
    with open(folder / "in", "rb") as source:
        child = subprocess.Popen([PROGRAM, *argv], cwd=folder, stdin=source,
                                 stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            got = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not got:
            break
        out += got
    os.close(master)
    child.wait()
    out = OWN_COLOURS.sub(b"", out)
    assert_clean(out, argv)
    return out.decode()


# ---------------------------------------------------------- names of files

@pytest.mark.parametrize("kind", KINDS)
def test_names_of_filters(tmp_path, kind):
    content = (ROOT / "tests/golden" / f"{kind}.bly").read_bytes()
    name = HOSTILE + b".bly"
    (tmp_path / os.fsdecode(name)).write_bytes(content)
    (tmp_path / os.fsdecode(b"cut" + name)).write_bytes(content[:5000 % (
        len(content) - 1)])
    for line in (["info", name], ["info", b"cut" + name],
                 ["compare", name, name], ["merge", "-o", b"m" + name, name,
                                           name],
                 ["shrink", "-o", b"s" + name, name], ["add", name, HOSTILE],
                 ["compress", "-o", b"z" + name, name], ["remove", name, "x"],
                 ["convert", "--kind", "classic", "-o", b"k" + name, name],
                 ["delta", "-o", b"d" + name, name, name],
                 ["has", "-c", b"cut" + name, "x"], ["info", b"no" + name]):
        said = told(tmp_path, *line)
        assert SHOWN in said or not said, (line, said)


FORMATS = run("formats", "--json").json
MADE = [f["format"] for f in FORMATS if "build" in f["can"]]


@pytest.mark.parametrize("name", MADE)
def test_names_of_files_of_other_systems(tmp_path, name):
    told(tmp_path, "build", "--format", name, "-o", HOSTILE,
         stdin=keys(0, 100, "http://item.test/").encode())
    for line in (["info", HOSTILE], ["info", "--parts", HOSTILE],
                 ["has", "--parts", HOSTILE, "http://item.test/1"],
                 ["has", "-c", "--format", "guava", HOSTILE, "x"],
                 ["has", "-c", "-O", HOSTILE + b"=" + HOSTILE, HOSTILE, "x"],
                 ["convert", "--to", "dcso", "-o", "x", HOSTILE]):
        told(tmp_path, *line)


@pytest.mark.parametrize("seed", sorted(
    p.name for p in (ROOT / "fuzz/corpus/foreign").iterdir()))
def test_what_is_in_files_of_other_systems(tmp_path, seed):
    """Seeds of the fuzzer, and the same with letters become escapes: a piece at
    a time, so that the rest still reads as what it was."""
    raw = (ROOT / "fuzz/corpus/foreign" / seed).read_bytes()[1:]
    places = [i for i, b in enumerate(raw) if chr(b).isascii()
              and chr(b).isalpha()]
    steps = [places[i:i + 8] for i in range(0, len(places), 8)]
    variants = [raw]
    for step in steps[::max(1, len(steps) // 12)]:
        changed = bytearray(raw)
        for i, at in enumerate(step):
            changed[at] = HOSTILE[5 + i]
        variants.append(bytes(changed))
    for content in variants:
        (tmp_path / "f").write_bytes(content)
        told(tmp_path, "info", "--parts", "f")
        told(tmp_path, "has", "--parts", "f", "key")


# ----------------------------------------------------------------- Parquet

def parquet(path, sbbf, name=HOSTILE):
    """Two columns of text of hostile names, 3 rows, each with a filter."""
    values = b"".join(struct.pack("<I", 5) + b"key-%d" % i for i in range(3))
    page = dump(STRUCT, [[1, I32, 0], [2, I32, len(values)],
                         [3, I32, len(values)],
                         [5, STRUCT, [[1, I32, 3], [2, I32, 0], [3, I32, 3],
                                      [4, I32, 3]]]]) + values
    data, chunks = b"PAR1", []
    names = [name, b"b" + name]
    for column in names:
        at = len(data)
        data += page
        filter_at = len(data)
        data += sbbf
        meta = [[1, I32, 6], [2, LIST, [I32, [0]]], [3, LIST, [BINARY,
                                                               [column]]],
                [4, I32, 0], [5, I64, 3], [6, I64, len(page)],
                [7, I64, len(page)], [9, I64, at], [14, I64, filter_at],
                [15, I32, len(sbbf)]]
        chunks.append([[2, I64, at], [3, STRUCT, meta]])
    schema = [[[4, BINARY, name], [5, I32, 2]]] + [
        [[1, I32, 6], [3, I32, 0], [4, BINARY, c]] for c in names]
    footer = dump(STRUCT, [
        [1, I32, 1], [2, LIST, [STRUCT, schema]], [3, I64, 3],
        [4, LIST, [STRUCT, [[[1, LIST, [STRUCT, chunks]],
                             [2, I64, 2 * len(page)], [3, I64, 3]]]]],
        [6, BINARY, name]])
    path.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")


def test_columns_of_parquet(ok, tmp_path):
    ok("build", "-q", "--format", "sbbf", "-o", "sbbf", stdin=keys(0, 3))
    parquet(tmp_path / "f", (tmp_path / "sbbf").read_bytes())
    shown = told(tmp_path, "parquet", "info", "f")
    assert shown.count(SHOWN) >= 3  # two columns, and who made it
    for line in (["info", "f"], ["info", "--parts", "f"],
                 ["has", "--parts", "-O", b"column=" + HOSTILE, "f", "key-1"],
                 ["has", "--parts", "f", "key-1"],
                 ["parquet", "has", "--column", HOSTILE, "f", "key-1"],
                 ["parquet", "has", "--column", b"no" + HOSTILE, "f", "x"],
                 ["parquet", "add", "--replace", "--column", HOSTILE, "-o", "g",
                  "f"], ["parquet", "add", "--column", b"b" + HOSTILE, "-o",
                         "h", "f"]):
        told(tmp_path, *line)
    # Programs are told the name itself, as far as JSON can hold it.
    for line in (["parquet", "info", "--json", "f"],
                 ["info", "--parts", "--json", "f"]):
        assert "caf\u00e9\\u001b[31m\\u0007" in told(tmp_path, *line)


# ---------------------------------------------------------------- messages

def test_messages(ok, tmp_path):
    """Whatever is quoted: keys, options, lines."""
    ok("build", "-q", "--kind", "counting", "--items", 100, "-o", "c.bly")
    ok("build", "-q", "--format", "squid", "-o", "d", stdin="http://a/\n")
    (tmp_path / "v").write_bytes(b"a\t1\n" + HOSTILE + b"\t" + HOSTILE + b"\n")
    (tmp_path / "docs").write_bytes(b'{"text": 1}\n' + HOSTILE + b"\n")
    (tmp_path / os.fsdecode(HOSTILE)).write_bytes(b"x\n")
    for line in (["remove", "c.bly", "--", HOSTILE],
                 ["has", "c.bly", "-v", "-c", HOSTILE],
                 [b"no" + HOSTILE], ["info", b"--" + HOSTILE],
                 ["plan", "--kind", HOSTILE], ["plan", "--items", HOSTILE],
                 ["plan", "--items", "9", "-O", HOSTILE + b"=" + HOSTILE],
                 ["build", "-o", "x", "--kind", "bloomier", "v"],
                 ["build", "-o", b"no/" + HOSTILE, "v"],
                 ["build", "-o", "x", b"no" + HOSTILE],
                 ["add", "c.bly", HOSTILE], ["help", HOSTILE],
                 ["digest", "has", "d", HOSTILE],
                 ["digest", "build", "--from", "docs", "-o", "x"],
                 ["dedup", "docs", "-o", "x", "--strict"],
                 ["dedup", "docs", "-o", "x"], ["similar", "v", HOSTILE],
                 ["explain", "--size", "8", "--hash", HOSTILE, HOSTILE],
                 ["explain", HOSTILE], ["parquet", HOSTILE],
                 ["formats", HOSTILE], ["kinds", HOSTILE]):
        told(tmp_path, *line)


# --------------------------------------------------------- keys on a terminal

def test_keys_are_bytes_in_a_pipe_and_clean_on_a_terminal(ok, tmp_path):
    lines = b"one\n" + HOSTILE + b"\n" + HOSTILE + b"\n\ttwo\n"
    ok("build", "-q", "--kind", "counting", "-o", "c.bly", stdin=lines)
    ok("build", "-q", "--kind", "bloomier", "-o", "v.bly",
       stdin=b"one\t1\n" + HOSTILE + b"\t2\n")
    assert ok("has", "c.bly", stdin=lines).raw == lines
    seen = on_terminal(tmp_path, "has", "c.bly", stdin=lines)
    assert seen.startswith("one\n" + SHOWN) and seen.endswith("end\n\ttwo\n")
    for line, given in ((["has", "-0", "c.bly"], HOSTILE + b"\0one\0"),
                        (["count", "c.bly"], lines), (["top"], lines),
                        (["top", "-0"], HOSTILE + b"\0"),
                        (["get", "v.bly"], HOSTILE + b"\n"),
                        (["basket", "-T", "0.1"],
                         (b"one " + HOSTILE + b" two\n") * 3)):
        seen = on_terminal(tmp_path, *line, stdin=given)
        assert SHOWN[:10] in seen and seen.endswith("\n"), (line, seen)


def test_other_keys_on_a_terminal(ok, tmp_path):
    ok("build", "-q", "--format", "sbbf", "-o", "sbbf", stdin=keys(0, 3))
    parquet(tmp_path / "f", b"", b"c")
    ok("build", "-q", "--format", "guava", "-o", "g", stdin=HOSTILE + b"\n")
    assert SHOWN in on_terminal(tmp_path, "has", "--parts", "g",
                                stdin=HOSTILE + b"\n")
    parquet(tmp_path / "f", (tmp_path / "sbbf").read_bytes(), b"c")
    on_terminal(tmp_path, "parquet", "has", "--column", "c", "f",
                stdin=HOSTILE + b"\nkey-1\n")
    url = b"http://item.test/" + HOSTILE
    ok("digest", "build", "-o", "d", stdin=url + b"\n")
    on_terminal(tmp_path, "digest", "has", "d", stdin=url + b"\n")


def test_documents_on_a_terminal(ok, tmp_path):
    lines = HOSTILE + b" one\n" + HOSTILE + b" one\ntwo\n" + \
        (HOSTILE + b" three ") * 20000 + b"\n"
    (tmp_path / "docs").write_bytes(lines)
    for more in ["-o", "-"], ["--removed", "-"], ["--pairs", "-"]:
        seen = on_terminal(tmp_path, "dedup", "-q", "--lines", "docs", *more)
        assert seen, more
    # Bytes, in a pipe.
    done = ok("dedup", "-q", "--lines", "docs", "-o", "-")
    assert done.raw == lines.replace(HOSTILE + b" one\n", b"", 1)


# --------------------------------------------------------------- progress

def with_progress(folder, widths, **environment):
    """What `has` writes to a terminal on standard error while keys come and the
    window is resized, each time when three lines were shown at the width before
    or, where nothing is shown, after two seconds."""
    master, slave = pty.openpty()

    def resize(columns):
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, columns, 0, 0))

    resize(widths[0])
    child = subprocess.Popen([PROGRAM, "has", "-c", "f.bly"], cwd=folder,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=slave,
                             env={**os.environ, "TERM": "xterm", **environment})
    block = keys(0, 100000).encode()
    shown, asked, silent = [], 0, time.monotonic() + 2
    for columns in widths:
        resize(columns)
        before = len(shown)
        # Drawn three times: the first may have been on its way already.
        while (b"".join(shown[before:]).count(b"\r\x1b[K") < 3
               and (shown or time.monotonic() < silent or environment == {})):
            child.stdin.write(block)
            asked += 100000
            while select.select([master], [], [], 0.01)[0]:
                shown.append(os.read(master, 65536))
    child.stdin.close()
    assert child.stdout.read() == b"%d\n" % asked
    assert child.wait() == 0
    while select.select([master], [], [], 0.1)[0]:
        shown.append(os.read(master, 65536))
    os.close(slave)
    os.close(master)
    return b"".join(shown).decode()


def test_progress_fits_a_window_that_is_resized(tmp_path, ok):
    """The line is never as wide as the window, so it never wraps; and it is gone
    at the end."""
    ok("build", "-q", "-o", tmp_path / "f.bly", stdin=keys(0, 100000))
    # 16 columns hold ten digits of keys, but not four and a rate: a slow
    # machine has small numbers of both, and at 22 they fitted.
    text = with_progress(tmp_path, [300, 16])
    lines = [line for line in re.split(r"\r\x1b\[K(?:\x1b\[A)?", text) if line]
    assert lines and all("keys" in line for line in lines), text
    assert "/s" in lines[0] and "/s" not in lines[-1] and len(lines[-1]) < 16
    assert text.endswith("\r\x1b[K")


@pytest.mark.parametrize("term", ["dumb", ""])
def test_no_progress_where_a_line_cannot_be_wiped(tmp_path, ok, term):
    ok("build", "-q", "-o", tmp_path / "f.bly", stdin=keys(0, 100000))
    assert with_progress(tmp_path, [80], TERM=term) == ""
