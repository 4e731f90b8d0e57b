"""info, merge, intersect, compare, shrink; keyed filters; damaged files."""
import itertools
import os
import stat
import subprocess
import sys
import time

import pytest
from conftest import PATIENCE, PROGRAM, keys, kinds_that

MERGEABLE = kinds_that("add", "has", "merge")


def build(ok, name, first, n, *argv):
    ok("build", "-q", "-o", name, "--items", "20000", *argv,
       stdin=keys(first, n))


@pytest.mark.parametrize("kind", kinds_that("add"))
def test_info_fields(ok, kind):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "--items", "20000",
       stdin=keys(0, 10000))
    info = ok("info", "--json", "f.bly").json
    assert {"kind", "items_estimate", "items_added", "capacity", "fpr_now",
            "fpr_at_capacity", "fill", "bytes", "params"} <= set(info)
    assert info["kind"] == kind
    text = ok("info", "f.bly").out
    assert kind in text and "checksum" in text


@pytest.mark.parametrize("kind", ["blocked", "classic"])
def test_info_numbers(ok, kind):
    build(ok, "f.bly", 0, 10000, "--kind", kind)
    info = ok("info", "--json", "f.bly").json
    assert info["capacity"] == 20000
    assert info["items_estimate"] == pytest.approx(10000, rel=0.03)
    assert info["fpr_now"] < info["fpr_at_capacity"]
    assert 0.009 < info["fpr_at_capacity"] < 0.0101
    assert 0.2 < info["fill"] < 0.35


@pytest.mark.parametrize("kind", ["blocked", "classic"])
def test_info_past_capacity_and_saturated(ok, kind):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "--items", "100",
       stdin=keys(0, 1000))
    result = ok("info", "f.bly")
    assert "capacity" in result.out + result.err
    full = ok("info", "--json", "f.bly").json
    assert full["fpr_now"] > 0.1
    ok("add", "-q", "f.bly", stdin=keys(0, 100000))
    text = ok("info", "f.bly")
    assert "saturated" in text.out + text.err or "every" in text.out + text.err
    assert ok("info", "--json", "f.bly").json["items_estimate"] is None
    assert ok("has", "-c", "f.bly", stdin=keys(10**7, 100)).out == "100\n"


@pytest.mark.parametrize("kind", MERGEABLE)
def test_merge_is_the_filter_of_both(ok, kind):
    build(ok, "a.bly", 0, 3000, "--kind", kind)
    build(ok, "b.bly", 2000, 3000, "--kind", kind)
    build(ok, "c.bly", 9000, 1000, "--kind", kind)
    ok("merge", "-q", "-o", "m.bly", "a.bly", "b.bly", "c.bly")
    assert ok("has", "-c", "m.bly", stdin=keys(0, 5000)).out == "5000\n"
    assert ok("has", "-c", "m.bly", stdin=keys(9000, 1000)).out == "1000\n"
    # Into one of the inputs.
    ok("merge", "-q", "-o", "a.bly", "a.bly", "b.bly", "c.bly")
    assert (ok.path / "a.bly").read_bytes() == (ok.path / "m.bly").read_bytes()


@pytest.mark.parametrize("kind", kinds_that("add", "has", "intersect"))
def test_intersect_keeps_what_is_in_both(ok, bly, kind):
    build(ok, "a.bly", 0, 3000, "--kind", kind)
    build(ok, "b.bly", 2000, 3000, "--kind", kind)
    ok("intersect", "-q", "-o", "i.bly", "a.bly", "b.bly")
    assert ok("has", "-c", "i.bly", stdin=keys(2000, 1000)).out == "1000\n"
    rest = bly("has", "-c", "--json", "i.bly", stdin=keys(0, 2000)).json
    assert rest["maybe"] < 400


@pytest.mark.parametrize("kind", kinds_that("add", "compare"))
def test_compare(ok, kind):
    build(ok, "a.bly", 0, 10000, "--kind", kind)
    build(ok, "b.bly", 5000, 10000, "--kind", kind)
    c = ok("compare", "--json", "a.bly", "b.bly").json
    assert {"a", "b", "union", "intersection", "intersection_sd",
            "jaccard"} <= set(c)
    assert c["a"] == pytest.approx(10000, rel=0.03)
    assert c["union"] == pytest.approx(15000, rel=0.03)
    assert abs(c["intersection"] - 5000) < 5 * c["intersection_sd"]
    assert c["jaccard"] == pytest.approx(1 / 3, abs=0.03)
    assert ok("compare", "a.bly", "b.bly").out


@pytest.mark.parametrize("command", ["merge", "intersect"])
def test_what_does_not_fit_is_refused(ok, trouble, command):
    build(ok, "a.bly", 0, 10)
    build(ok, "other-seed.bly", 0, 10, "--seed", "7")
    build(ok, "other-kind.bly", 0, 10, "--kind", "classic")
    ok("build", "-q", "-o", "other-size.bly", "--items", "999", stdin="x\n")
    (ok.path / "key").write_bytes(b"k" * 16)
    build(ok, "keyed.bly", 0, 10, "-K", "key")
    for other, word in (("other-seed.bly", "seed"), ("other-kind.bly", "kind"),
                        ("other-size.bly", "capacity"),
                        ("keyed.bly", "keyed filter")):
        trouble(command, "-o", "out.bly", "a.bly", other, says=word)
        trouble("compare", "a.bly", other, says=word)
    assert not (ok.path / "out.bly").exists()


def test_many_at_once(ok):
    for i in range(12):
        build(ok, f"{i}.bly", i * 100, 100)
    ok("merge", "-q", "-o", "all.bly", *[f"{i}.bly" for i in range(12)])
    assert ok("has", "-c", "all.bly", stdin=keys(0, 1200)).out == "1200\n"


@pytest.mark.parametrize("kind", MERGEABLE)
def test_merge_from_pipes(ok, kind):
    """Each input is read once, so it may be standard input or a pipe."""
    for i in range(3):
        build(ok, f"{i}.bly", i * 1000, 1500, "--kind", kind)
    ok("merge", "-q", "-o", "all.bly", "0.bly", "1.bly", "2.bly")
    one = (ok.path / "1.bly").read_bytes()
    ok("merge", "-q", "-o", "piped.bly", "0.bly", "-", "2.bly", stdin=one)
    ok("merge", "-q", "-o", "first.bly", "-", "0.bly", "2.bly", stdin=one)
    whole = (ok.path / "all.bly").read_bytes()
    assert (ok.path / "piped.bly").read_bytes() == whole
    assert len((ok.path / "first.bly").read_bytes()) == len(whole)
    os.mkfifo(ok.path / "fifo")
    with subprocess.Popen(["cp", "1.bly", "fifo"], cwd=ok.path):
        ok("merge", "-q", "-o", "fifo.bly", "0.bly", "fifo", "2.bly")
    assert (ok.path / "fifo.bly").read_bytes() == whole


@pytest.mark.parametrize("command", ["merge", "intersect"])
def test_damage_that_is_found_late_changes_nothing(ok, trouble, command):
    for i in range(3):
        build(ok, f"{i}.bly", i * 1000, 1500, "--kind", "classic")
    bad = bytearray((ok.path / "2.bly").read_bytes())
    bad[-1] ^= 1
    (ok.path / "2.bly").write_bytes(bad)
    before = (ok.path / "0.bly").read_bytes()
    files = ["0.bly", "1.bly", "2.bly"]
    trouble(command, "-o", "out.bly", *files, says=["2.bly", "checksum"])
    trouble(command, "-o", "0.bly", *files, says=["2.bly", "checksum"])
    assert not (ok.path / "out.bly").exists()
    assert (ok.path / "0.bly").read_bytes() == before
    trouble(command, "-o", "out.bly", "0.bly", "-", stdin=bytes(bad),
            says=["standard input", "checksum"])


MEASURED = ("import os, resource, subprocess, sys\n"
            "def limit():\n"
            "    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
            "p = subprocess.Popen(sys.argv[1:], preexec_fn=limit)\n"
            "_, status, usage = os.wait4(p.pid, 0)\n"
            "print(status, usage.ru_maxrss)\n")


def measured(path, *argv):
    """Exit status and peak memory in KiB, with few descriptors. A small
    program of its own starts the command, since a child begins with the peak
    memory of its parent."""
    done = subprocess.run([sys.executable, "-c", MEASURED, PROGRAM, *argv],
                          cwd=path, capture_output=True, check=True)
    return tuple(map(int, done.stdout.split()[-2:]))


def test_a_thousand_filters_in_the_memory_of_one(ok):
    """Few at once may be open, and of 16 MiB each none but one in memory."""
    for i in range(4):
        ok("build", "-q", "-o", f"{i}.bly", "--memory", "16MiB", "--kind",
           "classic", "-O", "k=3", "--items", "1M", stdin=keys(i * 100, 100))
    small = []
    for i in range(1000):
        name = f"s{i}.bly"
        os.symlink(f"t{i % 4}.bly", ok.path / name)
        small.append(name)
    for i in range(4):
        build(ok, f"t{i}.bly", i * 100, 100)
    status, _ = measured(ok.path, "merge", "-q", "-o", "all.bly", *small)
    assert status == 0
    assert ok("has", "-c", "all.bly", stdin=keys(0, 400)).out == "400\n"
    for command in "merge", "intersect":
        status, peak = measured(ok.path, command, "-q", "-o", "out.bly",
                                "0.bly", "1.bly", "2.bly", "3.bly")
        assert status == 0
        assert peak < (16 + 10) * 1024, peak
    ok("merge", "-q", "-o", "out.bly", "0.bly", "1.bly", "2.bly", "3.bly")
    assert ok("has", "-c", "out.bly", stdin=keys(0, 400)).out == "400\n"


def test_compare_every_pair(ok):
    for i, first in enumerate((0, 5000, 20000)):
        build(ok, f"{i}.bly", first, 10000)
    names = ["0.bly", "1.bly", "2.bly"]
    pairs = ok("compare", "--json", *names).json
    assert [(p["file_a"], p["file_b"]) for p in pairs] == list(
        itertools.combinations(names, 2))
    assert pairs[0]["intersection"] == pytest.approx(5000, rel=0.05)
    for p in pairs[1:]:
        assert p["intersection"] < 5 * p["intersection_sd"]
    lines = ok("compare", *names).lines
    assert len(lines) == 4 and "0.bly" in lines[1] and "2.bly" in lines[3]
    assert all(len(line) == len(lines[0]) for line in lines)


def test_compare_needs_two(trouble, ok):
    build(ok, "a.bly", 0, 10)
    trouble("compare", "a.bly", says="two")
    trouble("compare", "a.bly", "nonesuch.bly", says="nonesuch.bly")


FOLDING = kinds_that("add", "has", "fold")


@pytest.mark.parametrize("kind", kinds_that("add", "compare", "fold"))
def test_compare_by_folding(ok, trouble, kind):
    ok("build", "-q", "-o", "a.bly", "-k", kind, "-n", "20000", "-O",
       "folds=2", stdin=keys(0, 2000))
    ok("build", "-q", "-o", "b.bly", "-k", kind, "-n", "20000", "-O",
       "folds=2", stdin=keys(1000, 2000))
    ok("shrink", "-q", "--times", "2", "b.bly")
    trouble("compare", "a.bly", "b.bly", says=["--fold", "a.bly", "2 times"])
    trouble("compare", "b.bly", "a.bly", says=["--fold", "a.bly", "2 times"])
    for pair in (["a.bly", "b.bly"], ["b.bly", "a.bly"]):
        c = ok("compare", "--fold", "--json", *pair).json
        assert c["file_a"] == pair[0]
        assert abs(c["intersection"] - 1000) < 5 * c["intersection_sd"]
    build(ok, "c.bly", 0, 10, "--kind", kind, "--seed", "7")
    trouble("compare", "--fold", "a.bly", "c.bly", says="seed")


# ---------------------------------------------------------------- shrink

def foldable(ok, kind, n=1000):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "-n", "40000", "-O",
       "folds=4", stdin=keys(0, n))


@pytest.mark.parametrize("kind", FOLDING)
def test_shrink(ok, kind):
    foldable(ok, kind)
    whole = (ok.path / "f.bly").read_bytes()
    report = ok("shrink", "--json", "-o", "g.bly", "f.bly").json
    assert (ok.path / "f.bly").read_bytes() == whole
    assert report["folds"] == 1 and report["kind"] == kind
    assert report["bytes"] < 0.56 * report["bytes_before"]
    assert report["fpr_now"] >= report["fpr_now_before"]
    assert ok("has", "-c", "g.bly", stdin=keys(0, 1000)).out == "1000\n"
    info = ok("info", "--json", "g.bly").json
    assert info["fpr_now"] == pytest.approx(report["fpr_now"])
    # In its place, one step or two.
    ok("shrink", "-q", "f.bly")
    assert (ok.path / "f.bly").read_bytes() == (
        ok.path / "g.bly").read_bytes()
    text = ok("shrink", "--times", "2", "f.bly").out
    assert "folded 2 times" in text
    assert ok("has", "-c", "f.bly", stdin=keys(0, 1000)).out == "1000\n"


@pytest.mark.parametrize("kind", ["classic", "blocked"])
def test_shrink_as_far_as_it_may(ok, trouble, kind):
    foldable(ok, kind, 5000)
    report = ok("shrink", "--json", "--fpr", "1%", "-o", "g.bly", "f.bly").json
    assert report["folds"] >= 2 and report["fpr_now"] <= 0.01
    once_more = ok("shrink", "--json", "-o", "h.bly", "g.bly").json
    assert once_more["fpr_now"] > 0.01
    # It is there already: nothing to do is no trouble.
    assert ok("shrink", "--json", "--fpr", "1%", "g.bly").json["folds"] == 0
    size = report["bytes_before"]
    fits = ok("shrink", "--json", "--bytes", str(size // 3), "-o", "g.bly",
              "f.bly").json
    assert fits["folds"] == 2 and fits["bytes"] <= size // 3
    whole = (ok.path / "f.bly").read_bytes()
    trouble("shrink", "--bytes", "2KiB", "--fpr", "1%", "f.bly", says="--fpr")
    trouble("shrink", "--bytes", "100", "f.bly", says=["folded", "odd"])
    trouble("shrink", "--times", "15", "f.bly", says=["folded", "odd"])
    trouble("shrink", "--times", "2", "--fpr", "1%", "f.bly", says="--times")
    assert (ok.path / "f.bly").read_bytes() == whole


def test_shrink_says_who_can(ok, trouble):
    for kind in kinds_that("add", without=["fold"]):
        build(ok, "f.bly", 0, 10, "--kind", kind)
        trouble("shrink", "-o", "g.bly", "f.bly",
                says=[kind, "classic", "blocked"])
    trouble("shrink", "nonesuch.bly", says="nonesuch.bly")
    trouble("shrink", "-", says="file")
    trouble("shrink", "a", "b", says="one filter")


def test_shrink_through_pipes(ok):
    foldable(ok, "classic")
    ok("shrink", "-q", "-o", "g.bly", "f.bly")
    piped = ok("shrink", "-q", "-o", "-", "-",
               stdin=(ok.path / "f.bly").read_bytes())
    assert piped.raw == (ok.path / "g.bly").read_bytes()


# ----------------------------------------------------------------- keyed

def write_key(path, data):
    path.write_bytes(data)
    path.chmod(0o600)


def test_keyed(ok, bly, trouble):
    write_key(ok.path / "raw", bytes(range(16)))
    write_key(ok.path / "hex", b"000102030405060708090a0b0c0d0e0f\n")
    write_key(ok.path / "other", b"x" * 16)
    ok("build", "-q", "-o", "f.bly", "--key-file", "raw", stdin="secret\n")
    ok("build", "-q", "-o", "g.bly", "--key-file", "hex", stdin="secret\n")
    assert (ok.path / "f.bly").read_bytes() == (ok.path / "g.bly").read_bytes()
    assert bytes(range(16)) not in (ok.path / "f.bly").read_bytes()
    assert ok("has", "f.bly", "--key-file", "hex", "secret").out == "secret\n"
    trouble("has", "f.bly", "secret", says="key")
    trouble("has", "f.bly", "--key-file", "other", "secret", says="key")
    trouble("add", "f.bly", "--key-file", "other", "more", says="key")
    ok("add", "-q", "f.bly", "--key-file", "raw", "more")
    info = ok("info", "--json", "f.bly").json
    assert info["keyed"] is True
    # A key for a filter that has none: the user believes it is protected.
    ok("build", "-q", "-o", "open.bly", stdin="x\n")
    trouble("has", "open.bly", "--key-file", "raw", "x", says="key")
    # Merging needs no key, but equal ones.
    ok("merge", "-q", "-o", "m.bly", "g.bly", "g.bly")
    assert ok("has", "m.bly", "--key-file", "raw", "secret").out == "secret\n"


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 15, b"x" * 17,
                                     b"0" * 31, b"g" * 32, b"0" * 33])
def test_bad_key_files(trouble, content):
    write_key(trouble.path / "key", content)
    trouble("build", "-o", "f.bly", "--key-file", "key", stdin="x\n",
            says=["key", "16"])


def test_key_file_others_can_read(ok):
    write_key(ok.path / "key", b"x" * 16)
    (ok.path / "key").chmod(0o644)
    result = ok("build", "-o", "f.bly", "--key-file", "key", stdin="x\n")
    assert "key" in result.err


def test_missing_key_file(trouble):
    trouble("build", "-o", "f.bly", "--key-file", "nonesuch", stdin="x\n",
            says="nonesuch")


# ---------------------------------------------------------------- damage

@pytest.mark.parametrize("kind", kinds_that("add"))
def test_truncated_files(ok, trouble, kind):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "--items", "3000",
       stdin=keys(0, 1000))
    whole = (ok.path / "f.bly").read_bytes()
    for n in (0, 1, 7, 8, 100, 4095, 4096, 4097, len(whole) - 1):
        if n >= len(whole):
            continue
        (ok.path / "cut.bly").write_bytes(whole[:n])
        for argv in (["info", "cut.bly"], ["has", "cut.bly", "x"],
                     ["add", "cut.bly", "x"],
                     ["merge", "-o", "out.bly", "cut.bly", "f.bly"]):
            trouble(*argv, says="cut.bly")
        assert (ok.path / "cut.bly").read_bytes() == whole[:n]
    (ok.path / "long.bly").write_bytes(whole + b"\0")
    trouble("info", "long.bly", says="long.bly")


@pytest.mark.parametrize("kind", kinds_that("add"))
def test_flipped_bits(ok, bly, trouble, kind):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "--items", "3000",
       stdin=keys(0, 1000))
    whole = bytearray((ok.path / "f.bly").read_bytes())
    for at in (0, 9, 13, 30, 60, 100, 300, 4000, 4090, 4096, len(whole) - 1):
        if at >= len(whole):
            continue
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        (ok.path / "bad.bly").write_bytes(damaged)
        # info describes what it can, and says that the contents are wrong.
        described = bly("info", "bad.bly")
        assert described.status == 2 and "bad.bly" in described.err
        assert not described.out or "checksum wrong" in described.out
        trouble("add", "bad.bly", "x", says="bad.bly")
        assert (ok.path / "bad.bly").read_bytes() == damaged
        trouble("has", "bad.bly", "x", says="bad.bly")
        # Unchecked, a damaged payload answers wrongly at worst.
        assert bly("has", "--no-verify", "bad.bly", "x").status in (0, 1, 2)


# ------------------------------------------------------------------ files

def test_permissions_and_links_are_kept(ok):
    build(ok, "f.bly", 0, 10)
    (ok.path / "f.bly").chmod(0o640)
    os.symlink("f.bly", ok.path / "link.bly")
    ok("add", "-q", "link.bly", "through the link")
    assert (ok.path / "link.bly").is_symlink()
    assert ok("has", "f.bly", "through the link").status == 0
    assert stat.S_IMODE((ok.path / "f.bly").stat().st_mode) == 0o640
    assert sorted(os.listdir(ok.path)) == ["f.bly", "link.bly"]


def test_a_mapped_filter_larger_than_what_is_touched(ok):
    """Asking a filter of 256 MiB must not read it: the answer takes far less
    memory than the filter."""
    ok("build", "-q", "-o", "big.bly", "--memory", "256MiB", "--fpr", "1%",
       stdin="needle\n")
    # A small program of its own asks, since a child begins with the peak
    # memory of its parent.
    asker = ("import os, subprocess, sys\n"
             "p = subprocess.Popen(sys.argv[1:])\n"
             "_, status, usage = os.wait4(p.pid, 0)\n"
             "print(status, usage.ru_maxrss)\n")
    done = subprocess.run([sys.executable, "-c", asker, PROGRAM, "has",
                           "--threads", "1", "big.bly", "needle"],
                          cwd=ok.path, capture_output=True, check=True)
    needle, numbers = done.stdout.decode().splitlines()
    status, peak_kib = map(int, numbers.split())
    assert status == 0 and needle == "needle"
    assert peak_kib < 64 * 1024


@pytest.fixture
def group():
    """A control group with 32 MiB of memory, below our own."""
    places = [("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes"),
              ("/sys/fs/cgroup", "", "memory.max")]
    ours = dict(line.rstrip().split(":", 2)[1:]
                for line in open("/proc/self/cgroup", encoding="utf-8"))
    for root, names, limit in places:
        made = f"{root}{ours.get(names, '/').rstrip('/')}/bloomery-{os.getpid()}"
        try:
            os.mkdir(made)
            try:
                with open(f"{made}/{limit}", "w", encoding="ascii") as out:
                    out.write(str(32 << 20))
                yield made
                return
            finally:
                os.rmdir(made)
        except OSError:
            continue
    pytest.skip("control groups cannot be made here")


def map_flags(pid, name):
    """What the system knows of a mapped file; nothing if it is not yet one."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as maps:
        found = maps.read().partition(name)[2].partition("VmFlags:")[2]
    return found.partition("\n")[0].split()


@pytest.mark.parametrize("which", [["--memory", "64MiB"],
                                   ["--format", "dcso", "--items", "60M"]])
def test_a_filter_larger_than_its_container(ok, group, which):
    """Of a filter that does not fit in what the process may use, a question
    must read a page, not what the disk likes to read ahead."""
    ok("build", "-q", "-o", "big.bly", *which, "--fpr", "1%", stdin="needle\n")
    enter = f"echo $$ > {group}/cgroup.procs && exec \"$@\""
    for inside, told in (True, True), (False, False):
        with subprocess.Popen(
                ["sh", "-c", enter if inside else 'exec "$@"', "sh", PROGRAM,
                 "has", "big.bly", "-f", "-"], cwd=ok.path,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asker:
            until = time.monotonic() + (PATIENCE if told else 1)
            while "rr" not in map_flags(asker.pid, "big.bly"):
                assert asker.poll() is None
                if time.monotonic() > until:
                    break
                time.sleep(0.01)
            assert ("rr" in map_flags(asker.pid, "big.bly")) == told
            assert asker.communicate(b"needle\n")[0] == b"needle\n"
            assert asker.returncode == 0
