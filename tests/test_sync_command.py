"""sync: lists and folders that two sides do not share, found and brought
together; peers that lie, stop or are cut off; diff -r and rsync as judges."""
import contextlib
import filecmp
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from conftest import BUILD, GRACE, PATIENCE, PROGRAM, run
from wire_support import HELLO, Proxy, frame, relay, speak, take, told

METHODS = ["auto", "rateless", "iblt", "exact", "tree", "bloom"]
COMPLETE = METHODS[:4]


def listed(path, lines):
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def lines_of(path):
    return set(path.read_bytes().split(b"\n")) - {b""}


def two_lists(folder, n, here, there, seed=1):
    """n lines that both have, and some that only one has."""
    chance = random.Random(seed)
    both = [b"%d %x" % (i, chance.getrandbits(64)) for i in range(n)]
    mine = [b"mine %d" % i for i in range(here)]
    theirs = [b"theirs %d" % i for i in range(there)]
    a, b = both + mine, both + theirs
    chance.shuffle(a)
    chance.shuffle(b)
    listed(folder / "a", a)
    listed(folder / "b", b)
    return set(a), set(b)


def fill(folder, files):
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def same(a, b):
    done = subprocess.run(["diff", "-r", a, b], capture_output=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[:500]
    return True


@contextlib.contextmanager
def serving(folder, *argv):
    """A server on a free port; its address, HOST:PORT."""
    server = subprocess.Popen(
        [PROGRAM, "sync", "serve", "--listen", "127.0.0.1:0", *argv],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield re.search(r" on (\S+)", server.stdout.readline())[1]
    finally:
        server.terminate()
        try:
            server.wait(GRACE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
        server.stderr.close()


# --------------------------------------------------------------------- lists

@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n, here, there", [
    (0, 0, 0), (0, 3, 0), (0, 0, 300), (500, 0, 0), (1000, 5, 7),
    (5000, 300, 500)])
def test_lists_differ_as_sets_do(bly, method, n, here, there):
    a, b = two_lists(bly.path, n, here, there)
    got = bly("sync", "local", "a", "b", "--method", method)
    assert got.status == (0 if a == b else 1), got.err
    shown = set(got.raw.split(b"\n")) - {b""}
    exact = {b"< " + x for x in a - b} | {b"> " + x for x in b - a}
    assert shown <= exact
    if method in COMPLETE:
        assert shown == exact
    else:
        assert len(shown) >= 0.8 * len(exact)


@pytest.mark.parametrize("method", METHODS)
def test_both_have_all_in_the_end(ok, method):
    a, b = two_lists(ok.path, 2000, 40, 60)
    report = ok("sync", "both", "a", "b", "--method", method, "--json").json
    assert report["complete"] is (method in COMPLETE)
    if method in COMPLETE:
        assert lines_of(ok.path / "a") == lines_of(ok.path / "b") == a | b
        assert (report["only_here"], report["only_there"]) == (40, 60)
        assert (report["taken"], report["given"]) == (60, 40)
    else:
        assert lines_of(ok.path / "a") <= a | b
        assert len(a | b) - len(lines_of(ok.path / "a")) < 12


def test_pull_puts_lines_behind_the_others(ok):
    listed(ok.path / "a", [b"one", b"two", b"one"])
    (ok.path / "b").write_bytes(b"two\nthree\n\nfour")
    ok("sync", "pull", "a", "b")
    assert (ok.path / "a").read_bytes().startswith(b"one\ntwo\none\n")
    assert sorted((ok.path / "a").read_bytes().split(b"\n")) == sorted(
        [b"", b"", b"four", b"one", b"one", b"three", b"two"])
    assert (ok.path / "b").read_bytes() == b"two\nthree\n\nfour"


def test_delete_makes_a_mirror(ok):
    _, b = two_lists(ok.path, 300, 30, 20)
    ok("sync", "pull", "--delete", "a", "b")
    assert lines_of(ok.path / "a") == b
    two_lists(ok.path, 300, 30, 20)
    a = lines_of(ok.path / "a")
    ok("sync", "push", "--delete", "a", "b")
    assert lines_of(ok.path / "b") == a


def test_missing_lines_to_a_file(ok):
    a, b = two_lists(ok.path, 300, 30, 20)
    before = (ok.path / "a").read_bytes()
    ok("sync", "pull", "a", "b", "-o", "missing")
    assert lines_of(ok.path / "missing") == b - a
    assert (ok.path / "a").read_bytes() == before


def test_null_ends_lines(ok):
    (ok.path / "a").write_bytes(b"x\ny\0z\0")
    (ok.path / "b").write_bytes(b"z\0two\nlines\0")
    ok("sync", "both", "-0", "a", "b")
    assert set((ok.path / "a").read_bytes().split(b"\0")) == {
        b"", b"x\ny", b"z", b"two\nlines"}


def test_compressed_lists_are_read_not_written(ok, trouble):
    listed(ok.path / "b", [b"one", b"two", b"three"])
    listed(ok.path / "a", [b"one"] * 200)
    subprocess.run(["gzip", "a"], cwd=ok.path, check=True)
    ok("sync", "pull", "a.gz", "b", "-o", "more")
    assert lines_of(ok.path / "more") == {b"two", b"three"}
    before = (ok.path / "a.gz").read_bytes()
    trouble("sync", "pull", "a.gz", "b", says=["compressed", "-o"])
    assert (ok.path / "a.gz").read_bytes() == before


def test_few_bytes_for_few_differences(ok):
    two_lists(ok.path, 20000, 5, 5)
    report = ok("sync", "both", "a", "b", "--json").json
    assert report["compared"] < 700
    assert report["plain"] > 300000
    two_lists(ok.path, 20000, 500, 500)
    report = ok("sync", "both", "a", "b", "--json").json
    assert report["method"] == "rateless"
    assert report["compared"] < 32000
    two_lists(ok.path, 200, 5000, 5000)
    report = ok("sync", "both", "a", "b", "--json").json
    assert report["method"] == "exact"


# ------------------------------------------------------------------- folders

def two_folders(folder, n=60):
    """Names of all kinds; changed, new and removed files; one long one."""
    chance = random.Random(7)
    files = {f"d{i % 7}/f{i}": b"file %d\n" % i * (i % 5) for i in range(n)}
    files |= {"with blank/and\nnewline": b"1", "-rf": b"2", "\u00e4/\u00f6": b"3",
              "empty": b"", "long": chance.randbytes(400000)}
    fill(folder / "x", files)
    shutil.copytree(folder / "x", folder / "y")
    fill(folder / "y", {"d1/f8": b"changed", "new/deep/er": b"new",
                        "long": files["long"][:150000] + b"between" +
                        files["long"][150000:],
                        "big new": chance.randbytes(300000)})
    (folder / "y" / "-rf").unlink()
    fill(folder / "x", {"only here": b"mine"})
    os.chmod(folder / "y" / "d1" / "f1", 0o755)
    return folder / "x", folder / "y"


@pytest.mark.parametrize("method", COMPLETE)
def test_folders_become_the_same(ok, method):
    x, y = two_folders(ok.path)
    report = ok("sync", "pull", "--delete", "x", "y", "--method", method,
                "--json").json
    assert same(x, y)
    assert os.access(x / "d1" / "f1", os.X_OK)
    assert report["changed"] == 3 and report["removed"] == 2
    # Of the long file only a chunk or two came.
    assert report["received"] < 300000 + 120000
    assert ok("sync", "x", "y").out == ""


def test_the_report_is_that_of_diff(bly):
    x, y = two_folders(bly.path)
    got = bly("sync", "x", "y")
    assert got.status == 1
    shown = {(line[:1], line[2:]) for line in got.lines}
    exact = set()
    for at, other, mark in (x, y, "<"), (y, x, ">"):
        for path in at.rglob("*"):
            name = path.relative_to(at)
            if path.is_file() and not (other / name).exists():
                exact.add((mark, str(name)))
            elif path.is_file() and (
                    not filecmp.cmp(path, other / name, shallow=False) or
                    os.access(path, os.X_OK) != os.access(other / name,
                                                          os.X_OK)):
                exact.add(("!", str(name)))
    assert shown == exact


@pytest.mark.parametrize("way", ["local", "tcp", "pipe", "rsh"])
@pytest.mark.parametrize("verb", ["pull", "push"])
def test_over_every_line(ok, way, verb):
    x, y = two_folders(ok.path)
    with contextlib.ExitStack() as stack:
        if way == "local":
            to = ["y"]
        elif way == "tcp":
            to = [stack.enter_context(serving(ok.path, "--write", "y"))]
        elif way == "pipe":
            to = ["--pipe", f"{PROGRAM} sync serve --stdio --write y"]
        else:
            rsh = ok.path / "rsh"
            rsh.write_text('#!/bin/sh\n[ "$1" = "a host" ] || exit 9\n'
                           'shift\nexec sh -c "$*"\n')
            rsh.chmod(0o755)
            to = ["--rsh", "./rsh", "--remote", PROGRAM, "a host:y"]
        ok("sync", verb, "--delete", "x", *to)
    assert same(x, y)
    assert (y / "only here").exists() is (verb == "push")


def test_rsync_agrees(ok):
    if not shutil.which("rsync"):
        pytest.skip("rsync is not installed")
    x, y = two_folders(ok.path)
    ok("sync", "pull", "--delete", "x", "y")
    done = subprocess.run(
        ["rsync", "-anci", "--delete", "--no-d", "--no-p", "--no-g", "--no-o",
         "y/", "x/"], cwd=ok.path, capture_output=True, text=True,
        timeout=PATIENCE)
    assert [line for line in done.stdout.splitlines()
            if not line.startswith(".d")] == [], done.stdout


def test_the_newer_file_stays(bly):
    fill(bly.path, {"x/a": b"old", "y/a": b"newer", "x/b": b"NEWER",
                    "y/b": b"old", "x/c": b"same", "y/c": b"time"})
    for name, when in (("x/a", 100), ("y/a", 200), ("x/b", 300), ("y/b", 200),
                       ("x/c", 50), ("y/c", 50)):
        os.utime(bly.path / name, (when, when))
    got = bly("sync", "both", "x", "y")
    assert got.status == 2 and "same time" in got.err
    for side in "xy":
        assert (bly.path / side / "a").read_bytes() == b"newer"
        assert (bly.path / side / "b").read_bytes() == b"NEWER"
        assert (bly.path / side / "a").stat().st_mtime == 200
    assert (bly.path / "x/c").read_bytes() == b"same"
    assert (bly.path / "y/c").read_bytes() == b"time"


def test_objects_are_compared_by_name(ok):
    fill(ok.path, {"x/ab/one": b"1", "x/cd/two": b"2" * 100000,
                   "y/ab/one": b"packed otherwise", "y/ef/three": b"3"})
    ok("sync", "both", "--objects", "x", "y")
    assert (ok.path / "x/ab/one").read_bytes() == b"1"
    assert (ok.path / "y/ab/one").read_bytes() == b"packed otherwise"
    for side in "xy":
        assert (ok.path / side / "cd/two").read_bytes() == b"2" * 100000
        assert (ok.path / side / "ef/three").read_bytes() == b"3"


def test_a_folder_that_is_not_there_yet(ok):
    x, y = two_folders(ok.path)
    ok("sync", "pull", "z/", "x")
    assert same(ok.path / "z", x)
    ok("sync", "push", "x", "w")
    assert same(ok.path / "w", x)


def test_dry_run_changes_nothing(bly):
    x, y = two_folders(bly.path)
    shutil.copytree(x, bly.path / "before")
    for verb in "pull", "push", "both":
        got = bly("sync", verb, "--dry-run", "x", "y")
        assert got.status == 1 and "> new/deep/er" in got.lines
    assert same(x, bly.path / "before")


# ----------------------------------------------------------------- bad input

def test_wrong_words(trouble):
    two_lists(trouble.path, 10, 1, 1)
    (trouble.path / "d").mkdir()
    trouble("sync", "a", "nothing", says="nothing")
    trouble("sync", "local", "a", "d", says="list")
    trouble("sync", "pull", "a", says="needs")
    trouble("sync", "pull", "a", "b", "--method", "magic", says="magic")
    trouble("sync", "both", "a", "b", "--delete", says="--delete")
    trouble("sync", "push", "a", "b", "-o", "c", says="output")
    trouble("sync", "pull", "a", "b", "--delete", "--method", "bloom",
            says="all differences")
    trouble("sync", "pull", "a", "127.0.0.1:1", says="127.0.0.1:1")
    trouble("sync", "pull", "a", "--rsh", "ssh", "--", "-x:y",
            says="HOST:PATH")
    trouble("sync", "serve", says="needs")


def test_others_only_read_unless_they_may_write(bly):
    two_lists(bly.path, 10, 1, 1)
    with serving(bly.path, "b") as at:
        got = bly("sync", "push", "a", at)
        assert got.status == 2 and "--write" in got.err
        assert bly("sync", "pull", "a", at).status == 0


def test_another_key_is_refused(bly):
    two_lists(bly.path, 100, 1, 1)
    (bly.path / "k1").write_bytes(b"0123456789abcdef")
    (bly.path / "k2").write_bytes(b"0123456789abcdeF")
    for name in "k1", "k2":
        (bly.path / name).chmod(0o600)
    with serving(bly.path, "-K", "k1", "b") as at:
        for key in [], ["-K", "k2"]:
            got = bly("sync", "pull", "a", at, *key)
            assert got.status == 2 and "key" in got.err
        assert bly("sync", "pull", "a", at, "-K", "k1").status == 0


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def hello(form, n=5, wishes=0):
    return frame(b"\1blysync1", bytes([form, wishes]), varint(n), varint(99),
                 bytes(8))


class Liar:
    """A peer that answers each question by what `answers` has for its type;
    None: it closes the line."""

    def __init__(self, answers):
        self.answers, self.socket = answers, socket.create_server(
            ("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def __enter__(self):
        self.pid = os.fork()
        if not self.pid:
            with contextlib.suppress(OSError, struct.error):
                self.serve()
            os._exit(0)
        return self.at

    def serve(self):
        line, _ = self.socket.accept()
        line.recv(len(HELLO), socket.MSG_WAITALL)
        line.sendall(HELLO)
        while question := told(line):
            answer = self.answers(question[0], question[1:])
            if answer is None:
                line.close()
                return
            line.sendall(answer)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.socket.close()


def record(path, size, contents_hash=bytes(16), extra=b""):
    return (varint(len(path)) + path + varint(size) + varint(0) + b"\0" +
            contents_hash + extra)


LIES = {
    "garbage": lambda t, q: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "ends": lambda t, q: None,
    "ends after hello": lambda t, q: hello(1) if t == 1 else None,
    "other question": lambda t, q: hello(1) if t == 1 else frame(b"\x07"),
    "empty": lambda t, q: struct.pack("<I", 0),
    "huge": lambda t, q: struct.pack("<I", 0xffffffff),
    "counts": lambda t, q: hello(1, 2**60) if t == 1 else
    frame(bytes([t]), varint(2**50), b"x" * 20),
    "a folder": lambda t, q: hello(2),
    "short list": lambda t, q: hello(1, 5) if t == 1 else
    frame(bytes([t]), varint(3), varint(1) * 3),
    "long list": lambda t, q: hello(1, 2) if t == 1 else
    frame(bytes([t]), varint(5), varint(1) * 5),
    "the same twice": lambda t, q: hello(1, 5) if t == 1 else
    frame(bytes([t]), varint(5), varint(7) + varint(0) * 4),
    "lines of nobody": lambda t, q: hello(1, 1) if t == 1 else
    frame(b"\6", varint(3), varint(77777)) if t == 6 else
    frame(b"\x09") if t == 9 else
    frame(b"\x0a", varint(1), varint(4), b"evil"),
    "no records": lambda t, q: hello(1, 1) if t == 1 else
    frame(b"\6", varint(3), varint(77777)) if t == 6 else
    frame(b"\x09") if t == 9 else frame(b"\x0a", varint(9)),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("verb", ["pull", "both"])
def test_peers_that_lie(bly, lie, verb):
    listed(bly.path / "a", [b"one", b"two"])
    before = (bly.path / "a").read_bytes()
    with Liar(LIES[lie]) as at:
        got = bly("sync", verb, "a", at)
    assert got.status == 2, got.out
    assert len(got.err.splitlines()) == 1
    assert (bly.path / "a").read_bytes() == before


def test_symbols_that_never_come_apart_have_an_end(bly):
    """Symbols of noise: refused, or no more of them than make sense."""
    chance = random.Random(3)
    listed(bly.path / "a", [b"%d" % i for i in range(50)])

    def answers(kind, question):
        if kind == 1:
            return hello(1, 50)
        if kind == 2:  # strata: none that are any
            return frame(b"\2", b"\x0c")
        begin, end = question[0], question[1] if len(question) > 1 else 0
        return frame(b"\3", bytes([begin & 127]), varint(1), varint(50),
                     chance.randbytes(12), b"\0")
    for method in "auto", "rateless":
        with Liar(answers) as at:
            got = bly("sync", "pull", "a", at, "--method", method)
        assert got.status == 2


@pytest.mark.parametrize("path", [
    b"../out", b"/etc/out", b"a/../../out", b"a//b", b".", b"..", b"a/.",
    b"link/out", b"x\0y", b"", b"a/" * 3000 + b"b", b"n" * 256])
def test_paths_cannot_leave_the_folder(bly, path):
    (bly.path / "in").mkdir()
    (bly.path / "in" / "keep").write_bytes(b"kept")
    (bly.path / "outside").mkdir()
    os.symlink("../outside", bly.path / "in" / "link")
    seen = []
    with serving(bly.path, "--write", "in") as at:
        host, port = at.split(":")
        line = speak((host, int(port)))
        line.sendall(hello(2, 1, 2))
        assert told(line)[0] == 1
        line.sendall(frame(b"\x0e", record(path, 4, extra=b"evil")))
        seen.append(told(line))
        line.close()
    assert not list((bly.path / "outside").iterdir())
    assert not (bly.path / "out").exists()
    assert sorted(p.name for p in (bly.path / "in").iterdir()) == [
        "keep", "link"] or path == b"a/.", seen


def test_a_link_in_the_place_of_a_file(bly):
    fill(bly.path, {"x/a": b"new", "y/b": b"b", "out": b"outside"})
    os.symlink("../out", bly.path / "y" / "a")
    got = bly("sync", "push", "x", "y")
    assert got.status == 2 and "not a file" in got.err
    assert (bly.path / "out").read_bytes() == b"outside"
    assert (bly.path / "y" / "a").is_symlink()


def test_a_file_where_a_folder_has_to_be(bly):
    fill(bly.path, {"x/a/b": b"new", "y/a": b"a file", "y/c": b""})
    got = bly("sync", "push", "x", "y")
    assert got.status == 2 and "not a folder" in got.err
    assert (bly.path / "y" / "a").read_bytes() == b"a file"


def test_wrong_contents_are_refused(bly):
    """A record whose hash is not that of the bytes that come."""
    (bly.path / "in").mkdir()
    with serving(bly.path, "--write", "in") as at:
        host, port = at.split(":")
        line = speak((host, int(port)))
        for question in (hello(2, 1, 2),
                         frame(b"\x0e", record(b"f", 4, b"h" * 16, b"evil")),
                         frame(b"\x11")):
            line.sendall(question)
            answer = told(line)
        line.close()
    assert answer[:3] == b"\x11\0\1" and b"f: " in answer
    assert not list((bly.path / "in").iterdir())


def test_a_sync_that_was_cut_off_goes_on(bly):
    """Killed in the middle of a long file: what came is not asked for again."""
    contents = random.Random(5).randbytes(24 << 20)
    fill(bly.path, {"y/long": contents, "x/short": b"1"})
    half = subprocess.Popen(
        [PROGRAM, "sync", "pull", "x", "--pipe",
         f"{PROGRAM} sync serve --stdio y"],
        cwd=bly.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and half.poll() is None:
        parts = list((bly.path / "x").glob(".bloomery-part-*"))
        with contextlib.suppress(FileNotFoundError):  # it has been renamed
            if parts and parts[0].stat().st_size > 1 << 20:
                half.kill()
                break
        time.sleep(0.001)
    half.wait()
    if (bly.path / "x" / "long").exists():
        pytest.skip("it was done before it could be killed")
    part = parts[0].stat().st_size
    report = bly("sync", "pull", "x", "y", "--json").json
    assert (bly.path / "x" / "long").read_bytes() == contents
    assert report["received"] < len(contents) - part + (1 << 20)
    assert not list((bly.path / "x").glob(".bloomery-part-*"))


def test_a_file_that_changes_meanwhile_is_left(bly):
    """The server read the folder; then a file grew: nothing is taken of it."""
    fill(bly.path, {"y/a": b"before", "y/b": b"b", "x/c": b"c"})
    server = subprocess.Popen(
        [PROGRAM, "sync", "serve", "--stdio", "y"], cwd=bly.path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdin.write(HELLO + hello(2, 0))
    server.stdin.flush()
    assert server.stdout.read(len(HELLO))[:8] == HELLO[:8]
    take(server.stdout.read)
    (bly.path / "y" / "a").write_bytes(b"after!")
    server.stdin.write(frame(b"\6", varint(0)))
    server.stdin.flush()
    body = take(server.stdout.read)[1:]
    # Hand the rest to a client that plays the first part of the talk again.
    got = []

    def talk(kind, question):
        if kind == 1:
            return hello(2, 2)
        if kind == 6:
            return frame(b"\6", body)
        server.stdin.write(frame(bytes([kind]), question))
        server.stdin.flush()
        got.append(take(server.stdout.read))
        return frame(got[-1])
    with Liar(talk) as at:
        result = bly("sync", "pull", "x", at)
    server.stdin.close()
    server.wait(PATIENCE)
    server.stdout.close()
    assert result.status == 2 and "a: not taken" in result.err
    assert sorted(p.name for p in (bly.path / "x").iterdir()) == ["b", "c"]


def test_two_at_once(ok):
    """Two pushes into one list: nobody's lines are lost, or one says so."""
    for name in "abc":
        listed(ok.path / name, [b"%s %d" % (name.encode(), i)
                                for i in range(2000)])
    runs = [subprocess.Popen([PROGRAM, "sync", "push", "-q", name, "c"],
                             cwd=ok.path, stderr=subprocess.PIPE)
            for name in "ab"]
    ended = [(p.wait(PATIENCE), p.stderr.read()) for p in runs]
    have = lines_of(ok.path / "c")
    for name, (status, err) in zip("ab", ended):
        assert status == 0 or b"changed" in err
        assert (lines_of(ok.path / name) <= have) is (status == 0)
    assert any(status == 0 for status, _ in ended)


def test_a_full_disk_loses_nothing(bly):
    """Files may have no more than 100,000 bytes here: the long one fails."""
    fill(bly.path, {"x/long": b"old contents",
                    "y/long": random.Random(1).randbytes(300000),
                    "y/short": b"short"})
    code = ("import resource, os, signal, sys\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n")
    done = subprocess.run(
        [sys.executable, "-c", code, PROGRAM, "sync", "pull", "x", "y"],
        cwd=bly.path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "long: not taken" in done.stderr
    assert (bly.path / "x" / "long").read_bytes() == b"old contents"
    assert (bly.path / "x" / "short").read_bytes() == b"short"


def test_a_small_disk_loses_nothing(bly):
    """A disk of 512 KiB that gets full in the middle of a file, and of a list:
    what was there stays, nothing half is seen, and with more room it goes on."""
    disk = bly.path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", disk],
                      capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        chance = random.Random(1)
        fill(bly.path, {"disk/x/long": b"old contents",
                        "y/long": chance.randbytes(800000),
                        "y/short": b"short"})
        old = [b"old %d" % i for i in range(1000)]
        new = [chance.randbytes(40).hex().encode() for _ in range(9000)]
        listed(disk / "list", old)
        listed(bly.path / "more", new)
        before = (disk / "list").read_bytes()

        done = bly("sync", "pull", "disk/list", "more")
        assert done.status == 2 and "disk/list: cannot be written: No space" \
            in done.err
        assert (disk / "list").read_bytes() == before
        assert sorted(os.listdir(disk)) == ["list", "x"]

        done = bly("sync", "pull", "disk/x", "y")
        assert done.status == 2 and "long: not taken" in done.err
        assert "No space" in done.err
        assert (disk / "x" / "long").read_bytes() == b"old contents"
        seen = {name for name in os.listdir(disk / "x")
                if not name.startswith(".bloomery-part-")}
        assert seen <= {"long", "short"}

        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        assert bly("sync", "pull", "disk/list", "more").status == 0
        assert lines_of(disk / "list") == set(old + new)
        assert bly("sync", "pull", "disk/x", "y").status == 0
        assert same(disk / "x", bly.path / "y")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_modes_alone_converge(ok):
    """chmod on either side, with the same times: the later one stays."""
    fill(ok.path, {"x/a": b"program", "x/b": b"p" * 200000, "x/c": b"same"})
    subprocess.run(["cp", "-a", "x", "y"], cwd=ok.path, check=True)
    (ok.path / "x/a").chmod(0o755)
    (ok.path / "y/b").chmod(0o755)
    report = ok("sync", "both", "x", "y", "--json").json
    assert (report["changed"], report["refused"]) == (2, 0)
    # Contents that both have do not come again.
    assert report["received"] < 1000
    assert ok("sync", "x", "y").out == ""
    for name in "ab":
        assert os.access(ok.path / "x" / name, os.X_OK)
        assert os.access(ok.path / "y" / name, os.X_OK)
    # And back again, on the other side.
    (ok.path / "y/a").chmod(0o644)
    ok("sync", "both", "x", "y")
    assert ok("sync", "x", "y").out == ""
    assert not os.access(ok.path / "x/a", os.X_OK)


def test_modes_converge_with_peers_of_before(ok):
    """A peer that does not say when modes changed: a program stays one."""
    fill(ok.path, {"x/a": b"program", "y/a": b"program"})
    for name in "x/a", "y/a":
        os.utime(ok.path / name, (1000, 1000))
    (ok.path / "x/a").chmod(0o755)
    (ok.path / "relay.py").write_text(relay(
        PROGRAM, ["sync", "serve", "--stdio", "--write", "y"], asks="""
    if m[0] == 1:
        m[10] &= ~4  # SYNC_KNOWS_CHANGED"""))
    ok("sync", "both", "x", "--pipe", f"{sys.executable} relay.py")
    assert os.access(ok.path / "y/a", os.X_OK)
    assert ok("sync", "x", "y").out == ""


def test_a_mode_does_not_leak_through_hard_links(ok):
    """The file has another name outside: that one keeps its mode."""
    fill(ok.path, {"x/a": b"program", "y/a": b"program", "out/keep": b""})
    os.link(ok.path / "x/a", ok.path / "out/a")
    (ok.path / "y/a").chmod(0o755)
    ok("sync", "pull", "x", "y")
    assert os.access(ok.path / "x/a", os.X_OK)
    assert not os.access(ok.path / "out/a", os.X_OK)


@pytest.mark.parametrize("verb, way", [("pull", "pipe"), ("push", "local")])
def test_sparse_files_stay_sparse(ok, verb, way):
    """Megabytes of zeros with some islands, one at the end, or none."""
    mine, theirs = ("x", "y") if verb == "pull" else ("y", "x")
    (ok.path / mine).mkdir()
    (ok.path / theirs).mkdir()
    chance = random.Random(2)
    size = 30 << 20
    for name, islands in ("a", [1 << 20, 7777777, size - 5000]), ("b", []):
        with open(ok.path / theirs / name, "wb") as f:
            for at in islands:
                f.seek(at)
                f.write(chance.randbytes(5000))
            f.truncate(size)
    to = ["y"] if way == "local" else [
        "--pipe", f"{PROGRAM} sync serve --stdio --write y"]
    report = ok("sync", verb, "x", *to, "--json").json
    for name in "ab":
        a, b = ok.path / "x" / name, ok.path / "y" / name
        assert filecmp.cmp(a, b, shallow=False)
        blocks = [p.stat().st_blocks for p in (a, b)]
        assert max(blocks) <= 200, blocks
    # Chunks with islands are sent, those of zeros are not; each has a hash.
    assert report["sent"] + report["received"] < 400000


def test_where_names_cannot_be_exchanged(bly):
    """Without renameat2() it works, too."""
    library = BUILD / "tests" / "meanwhile.so"
    if not library.exists():
        pytest.skip("meanwhile.so is not built (make programs)")
    x, y = two_folders(bly.path)
    two_lists(bly.path, 100, 5, 5)
    for argv in (["pull", "--delete", "x", "y"], ["pull", "a", "b"]):
        done = subprocess.run(
            [PROGRAM, "sync", *argv], cwd=bly.path, capture_output=True,
            text=True, timeout=PATIENCE,
            env=os.environ | {"LD_PRELOAD": str(library), "BLY_NOSYS": "1"})
        assert done.returncode == 0, done.stderr
    assert same(x, y)
    assert lines_of(bly.path / "b") <= lines_of(bly.path / "a")


def test_lists_in_utf16_get_advice_that_works(bly):
    text = "one\ntwo\n"
    listed(bly.path / "b", [b"two", b"three"])
    for order in "utf-16", "utf-16-be":
        mark = b"" if order == "utf-16" else b"\xfe\xff"
        (bly.path / "a").write_bytes(mark + text.encode(order))
        for argv in ["a", "b"], ["pull", "b", "a"]:
            got = bly("sync", *argv)
            assert got.status == 2 and "iconv -f UTF-16 -t UTF-8" in got.err
            assert "--binary" not in got.err  # which sync does not have


def test_a_silent_peer_is_given_up(bly):
    listed(bly.path / "a", [b"one"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = "127.0.0.1:%d" % silent.getsockname()[1]
        got = bly("sync", "pull", "a", at, "--timeout", "1")
    assert got.status == 2 and "silent" in got.err
