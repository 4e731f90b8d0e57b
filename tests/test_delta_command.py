"""delta and apply: from one version of a filter to the next."""
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, keys, kinds_that

CHANGING = kinds_that("add")


def shell(line, cwd):
    done = subprocess.run(line, shell=True, cwd=cwd, executable="/bin/bash",
                          env={**os.environ, "bly": PROGRAM}, timeout=PATIENCE,
                          capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode()


def versions(ok, *argv, n=1000, more=20):
    """a.bly, b.bly with some more keys, and d.bld between them."""
    for name, count in (("a.bly", n), ("b.bly", n + more)):
        ok("build", "-q", "-o", name, "--items", str(2 * n), *argv,
           stdin=keys(0, count))
    ok("delta", "-q", "a.bly", "b.bly", "-o", "d.bld")


def contents(ok):
    return {p.name: p.read_bytes() for p in ok.path.iterdir()}


@pytest.mark.parametrize("kind", CHANGING)
def test_a_delta_makes_the_new_version(ok, trouble, kind):
    versions(ok, "--kind", kind)
    before = contents(ok)
    result = ok("apply", "a.bly", "d.bld", "-o", "c.bly")
    assert result.out.startswith("c.bly: ") and kind in result.out
    assert contents(ok)["c.bly"] == before["b.bly"]
    assert contents(ok)["a.bly"] == before["a.bly"]
    result = ok("apply", "--json", "a.bly", "d.bld").json
    assert result["file"] == "a.bly" and result["kind"] == kind
    assert contents(ok)["a.bly"] == before["b.bly"]
    # Once, and not for another version.
    trouble("apply", "a.bly", "d.bld", says=["a.bly", "d.bld", "already"])
    ok("build", "-q", "-o", "x.bly", "--kind", kind, "--items", "2000",
       stdin=keys(5000, 10))
    before = contents(ok)
    trouble("apply", "x.bly", "d.bld", says=["x.bly", "d.bld", "version"])
    trouble("apply", "x.bly", "d.bld", "-o", "y.bly", says="version")
    assert contents(ok) == before


def test_what_is_told(ok):
    versions(ok, "--kind", "classic", n=20000, more=200)
    told = ok("delta", "--json", "a.bly", "b.bly", "-o", "d.bld").json
    assert told["file"] == "d.bld" and told["form"] == "gaps"
    assert told["bytes"] == (ok.path / "d.bld").stat().st_size
    assert told["whole_bytes"] == (ok.path / "b.bly").stat().st_size
    assert 0 < told["flipped"] <= 200 * 7 < told["bits"]
    assert told["ratio"] < 0.1
    assert 1 < told["over_entropy"] < 1.1  # the headers are a few percent here
    assert 8 * told["bytes"] / told["entropy_bits"] == pytest.approx(
        told["over_entropy"])
    assert len(told["from"]) == len(told["to"]) == 16
    text = ok("delta", "a.bly", "b.bly", "-o", "d.bld").out
    for word in ("d.bld", "flipped", "gaps", "entropy", "ratio"):
        assert word in text
    # The same bytes every time.
    one = (ok.path / "d.bld").read_bytes()
    ok("delta", "-q", "a.bly", "b.bly", "-o", "e.bld")
    assert (ok.path / "e.bld").read_bytes() == one


def test_a_grown_filter_travels_whole(ok):
    ok("build", "-q", "-k", "scalable", "--items", "100", "-o", "a.bly",
       stdin=keys(0, 100))
    (ok.path / "b.bly").write_bytes((ok.path / "a.bly").read_bytes())
    ok("add", "-q", "b.bly", stdin=keys(100, 900))
    told = ok("delta", "--json", "a.bly", "b.bly", "-o", "d.bld").json
    assert told["form"] == "whole" and told["entropy_bits"] is None
    assert "replaced whole" in ok("apply", "a.bly", "d.bld").out
    assert ok("has", "-c", "a.bly", stdin=keys(0, 1000)).out == "1000\n"


def test_keyed_filters_need_no_key(ok):
    (ok.path / "key").write_bytes(b"k" * 16)
    (ok.path / "key").chmod(0o600)
    versions(ok, "-K", "key")
    ok("apply", "-q", "a.bly", "d.bld")
    assert ok("has", "-c", "-K", "key", "a.bly",
              stdin=keys(0, 1020)).out == "1020\n"


def test_filters_that_have_nothing_in_common(ok, trouble):
    ok("build", "-q", "-o", "a.bly", "--items", "100", stdin="x\n")
    ok("build", "-q", "-o", "b.bly", "--items", "100", "--seed", "7",
       stdin="x\n")
    trouble("delta", "a.bly", "b.bly", "-o", "d.bld",
            says=["a.bly and b.bly", "seed"])
    assert not (ok.path / "d.bld").exists()


# -------------------------------------------------------------------- pipes

def test_pipes(ok):
    versions(ok)
    new = (ok.path / "b.bly").read_bytes()
    for line in ("$bly delta a.bly b.bly -o - | $bly apply a.bly - -o c.bly",
                 "$bly apply -o c.bly <(cat a.bly) <(cat d.bld)",
                 "$bly apply -o c.bly - d.bld < a.bly",
                 "$bly apply -o - a.bly d.bld > c.bly",
                 "$bly delta <(cat a.bly) - -o e.bld < b.bly &&"
                 "$bly apply a.bly e.bld -o c.bly",
                 "cp a.bly c.bly; $bly apply c.bly d.bld -o ./c.bly",
                 "cp a.bly c.bly; cat d.bld | $bly apply c.bly /dev/stdin"):
        status, out, err = shell(line, ok.path)
        assert status == 0, (line, err)
        assert (ok.path / "c.bly").read_bytes() == new, line
        (ok.path / "c.bly").unlink()


@pytest.mark.parametrize("line, says", [
    ("$bly delta a.bly b.bly", "-o"),
    ("$bly delta a.bly -o d.bld", "two filters"),
    ("$bly delta a.bly b.bly -o a.bly", "overwritten"),
    ("$bly delta a.bly b.bly -o ./b.bly", "overwritten"),
    ("$bly delta - - -o d.bld < a.bly", "both"),
    ("$bly delta --json a.bly b.bly -o -", "--json"),
    ("$bly delta a.bly d.bld -o e.bld", "d.bld: not a .bly file but a delta"),
    ("$bly info d.bld", "bloomery apply takes"),
    ("$bly delta a.bly b.bly -o none/d.bld", "none/d.bld"),
    ("$bly apply a.bly", "FILTER DELTA"),
    ("$bly apply a.bly d.bld -o d.bld", "overwritten"),
    ("$bly apply - d.bld < a.bly", "-"),
    ("$bly apply -o c.bly - - < a.bly", "both"),
    ("$bly apply a.bly a.bly", "not a delta"),
    ("$bly apply a.bly none", "none"),
    ("$bly apply a.bly .", "directory"),
    ("$bly apply a.bly /dev/null", "empty"),
    ("$bly apply a.bly /dev/zero", "not a delta"),
    ("$bly apply d.bld d.bld", "not a .bly file"),
    ("$bly apply none d.bld", "none"),
])
def test_mistakes(ok, line, says):
    versions(ok)
    before = contents(ok)
    status, out, err = shell(line, ok.path)
    assert (status, out) == (2, b""), err
    assert len(err.splitlines()) == 1 and says in err
    assert contents(ok) == before


# ------------------------------------------------------------------ hazards

def test_damaged_deltas(ok, trouble):
    versions(ok, n=50, more=2)
    good = (ok.path / "d.bld").read_bytes()
    before = (ok.path / "a.bly").read_bytes()
    rng = random.Random(1)
    for i in range(60):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        (ok.path / "x.bld").write_bytes(bad)
        trouble("apply", "a.bly", "x.bld", says="bld")
    for n in range(0, len(good), 7):
        (ok.path / "x.bld").write_bytes(good[:n])
        trouble("apply", "a.bly", "x.bld", says="x.bld")
    (ok.path / "x.bld").write_bytes(good + b"\0")
    trouble("apply", "a.bly", "x.bld", says="x.bld")
    assert (ok.path / "a.bly").read_bytes() == before


def test_damaged_filters(ok, trouble):
    versions(ok, "--kind", "classic")
    for name in ("a.bly", "b.bly"):
        good = (ok.path / name).read_bytes()
        bad = bytearray(good)
        bad[5000] ^= 1
        (ok.path / name).write_bytes(bad)
        trouble("delta", "a.bly", "b.bly", "-o", "e.bld", says=name)
        if name == "a.bly":
            trouble("apply", name, "d.bld", says=name)
        (ok.path / name).write_bytes(good)
    assert not (ok.path / "e.bld").exists()


def test_kill_at_any_moment(ok):
    """Old version or new version, never a third."""
    versions(ok, "--kind", "classic", n=3000000, more=100)
    old, new = ((ok.path / n).read_bytes() for n in ("a.bly", "b.bly"))
    ok("delta", "-q", "b.bly", "a.bly", "-o", "back.bld")
    rng, killed, now = random.Random(7), 0, old
    for i in range(30):
        delta = "d.bld" if now == old else "back.bld"
        runs = subprocess.Popen([PROGRAM, "apply", "a.bly", delta],
                                cwd=ok.path, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        time.sleep(rng.random() * 0.04)
        runs.send_signal(signal.SIGKILL)
        _, err = runs.communicate()
        found = (ok.path / "a.bly").read_bytes()
        assert found in (old, new)
        if runs.returncode == 0:
            assert found != now
        else:
            assert runs.returncode == -signal.SIGKILL, err
            killed += 1
        now = found
    assert killed > 0


def test_full_disk(ok, trouble):
    """A disk of 256 KiB: what does not fit is refused, what was there stays."""
    versions(ok, "--memory", "150KiB", "--kind", "classic", "--items", "1000")
    disk = ok.path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none",
                       str(disk)], capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        old = (ok.path / "a.bly").read_bytes()
        (disk / "a.bly").write_bytes(old)
        # The new version does not fit beside the old one.
        trouble("apply", "disk/a.bly", "d.bld", says=["disk/a.bly", "pace"])
        assert (disk / "a.bly").read_bytes() == old
        assert os.listdir(disk) == ["a.bly"]
        # Neither does a delta that is a whole filter.
        ok("build", "-q", "-o", "w.bly", "--memory", "150KiB", "--items",
           "120000", stdin=keys(0, 120000))
        trouble("delta", "a.bly", "w.bly", "-o", "disk/d.bld",
                says=["disk/d.bld", "pace"])
        assert os.listdir(disk) == ["a.bly"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_device(ok):
    versions(ok)
    for line in ("$bly delta a.bly b.bly -o - > /dev/full",
                 "$bly apply a.bly d.bld -o - > /dev/full"):
        status, _, err = shell(line, ok.path)
        assert status == 2 and "space" in err


def test_two_at_once_apply_it_once(ok):
    versions(ok, n=100000)
    both = [subprocess.Popen([PROGRAM, "apply", "a.bly", "d.bld"], cwd=ok.path,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE) for _ in range(2)]
    for p in both:
        p.communicate(timeout=PATIENCE)
    assert sorted(p.returncode for p in both) == [0, 2]
    assert (ok.path / "a.bly").read_bytes() == (ok.path / "b.bly").read_bytes()
