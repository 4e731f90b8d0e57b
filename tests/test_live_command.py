"""Live filters from the command: many processes, one file."""
import json
import os
import random
import signal
import subprocess

from conftest import PATIENCE, PROGRAM, keys


def make(ok, *more):
    ok("live", "make", "live.bly", "-n", "200k", "-p", "0.1%", *more)


def told(ok, name="live.bly"):
    return json.loads(ok("info", "--json", name).out)


def start(tmp_path, *argv, **kw):
    return subprocess.Popen([PROGRAM, *argv], cwd=tmp_path, **kw)


def test_what_one_adds_all_find(bly, ok, tmp_path):
    make(ok)
    files = []
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text(keys(10000 * i, 10000))
        files.append(f"{i}.txt")
    running = [start(tmp_path, "add", "--live", "-q", "live.bly", "-f", f)
               for f in files]
    assert [p.wait(PATIENCE) for p in running] == [0] * 4
    for way in ((), ("--live",)):
        assert bly("has", *way, "-v", "-c", "live.bly",
                   *(f"-f{f}" for f in files)).out == "0\n"
    info = told(ok)
    assert 39000 < info["items_added"] <= 40000
    assert info["live"]["generation"] == 1 and info["live"]["users"] == 0
    assert info["checksum"] == "none" and info["format_version"] == 4
    assert not info["live"]["unclean"]
    text = ok("info", "live.bly").out
    assert "generation 1, 0 processes adding" in text


def test_users_are_seen_while_they_are_there(ok, tmp_path):
    make(ok)
    adder = start(tmp_path, "add", "--live", "-t1", "live.bly",
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    while told(ok)["live"]["users"] != 1:
        assert adder.poll() is None
    adder.stdin.write(b"swordfish\n")
    adder.stdin.close()
    assert adder.wait(PATIENCE) == 0
    assert ok("has", "live.bly", "swordfish").out == "swordfish\n"
    assert told(ok)["live"]["users"] == 0
    line = json.loads(ok("watch", "--json", "--times", 1, "live.bly").out)
    assert line["items_added"] == 1 and line["per_second"] is None
    two = ok("watch", "--times", 2, "--every", "0.01", "--checkpoint", "0.01",
             "live.bly").out
    assert two.count("\n") == 2 and "0 per second" in two


def test_checkpoint_replace_accept(ok, tmp_path):
    make(ok)
    ok("add", "--live", "live.bly", "old")
    before = told(ok)["live"]["checkpoint"]
    done = json.loads(ok("live", "checkpoint", "--json", "live.bly").out)
    assert done["checkpoint"] == before + 1
    ok("live", "accept", "live.bly")
    ok("build", "-n", "1k", "-o", "next.bly", stdin=b"new\n")
    asker = start(tmp_path, "has", "--live", "-t1", "live.bly",
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ok("live", "replace", "live.bly", "next.bly")
    out, _ = asker.communicate(b"new\nold\n", timeout=PATIENCE)
    assert out == b"new\n"
    assert told(ok)["live"]["generation"] == 2
    ok("build", "-n", "1k", "-o", "third.bly", stdin=b"third\n")
    ok("live", "replace", "--keep", "live.bly", "third.bly")
    assert ok("has", "live.bly", "new", "third").out == "new\nthird\n"


def test_from_an_ordinary_one(ok, tmp_path):
    ok("build", "-n", "1k", "-o", "plain.bly", stdin=b"one\ntwo\n")
    ok("live", "make", "--from", "plain.bly", "live.bly")
    ok("add", "--live", "live.bly", "three")
    assert ok("has", "live.bly", "one", "two", "three").out.split() == \
        ["one", "two", "three"]


def test_refusals(ok, trouble, tmp_path):
    make(ok)
    make(ok)  # it is there, as it should be
    trouble("live", "make", "live.bly", "-n", "300k", says="another size")
    trouble("live", "make", "x.bly", says="--items is missing")
    trouble("live", "make", "x.bly", "-n1k", "-kcuckoo", says="cannot be live")
    trouble("add", "live.bly", "key", says="--live")
    trouble("remove", "live.bly", "key", says="remove")
    trouble("note", "live.bly", "a note", says="--live")
    ok("build", "-o", "plain.bly", stdin=b"one\n")
    trouble("add", "--live", "plain.bly", "two", says="not live")
    trouble("has", "--live", "plain.bly", "two", says="not live")
    trouble("watch", "plain.bly", says="not live")
    trouble("live", "replace", "plain.bly", "live.bly", says="live")
    trouble("add", "--live", "none.bly", "two", says="no live filter")
    trouble("live", "make", "--from", "plain.bly", "live.bly", says="already")
    (tmp_path / "cut.bly").write_bytes((tmp_path / "live.bly").read_bytes()[:9000])
    trouble("info", "cut.bly", says="cut short")
    trouble("live", "checkpoint", "cut.bly", says="cut short")


def test_kills_leave_nothing_behind(ok, tmp_path):
    """An adder that is killed at any moment: it is gone, nobody waits for it,
    and what others added is there. (test_live.c knows which keys.)"""
    make(ok)
    chance = random.Random(46)
    kills = 200 if os.environ.get("BLY_FULL") else 5
    for number in range(kills):
        adder = start(tmp_path, "add", "--live", "-q", "live.bly",
                      stdin=subprocess.PIPE)
        try:
            for i in range(chance.randrange(300)):
                adder.stdin.write(keys(number * 100000 + i * 100, 100).encode())
            adder.send_signal(signal.SIGKILL)
            adder.stdin.close()
        except BrokenPipeError:
            pass
        adder.wait(PATIENCE)
        info = told(ok)
        assert info["live"]["users"] == 0 and not info["live"]["unclean"]
        ok("add", "--live", "-q", "live.bly", f"mark-{number}")
    for number in range(kills):
        ok("has", "-q", "live.bly", f"mark-{number}")


def test_power_cuts_lose_nothing_that_was_checkpointed(bly, ok, tmp_path):
    """mmap writes are no system calls, so the disk is modelled here: of every
    512 bytes it has those of the checkpoint or any later ones."""
    make(ok)
    live = tmp_path / "live.bly"
    (tmp_path / "old.txt").write_text(keys(0, 20000))
    (tmp_path / "new.txt").write_text(keys(20000, 20000))
    ok("add", "--live", "-q", "live.bly", "-f", "old.txt")
    user = start(tmp_path, "add", "--live", "-q", "live.bly",
                 stdin=subprocess.PIPE)
    while told(ok)["live"]["users"] != 1:
        assert user.poll() is None
    ok("live", "checkpoint", "live.bly")
    before = live.read_bytes()
    ok("add", "--live", "-q", "live.bly", "-f", "new.txt")
    after = live.read_bytes()
    user.stdin.close()
    user.wait(PATIENCE)
    chance = random.Random(46)
    sectors = range(0, len(before), 512)
    for _ in range(2000 if os.environ.get("BLY_FULL") else 8):
        share = chance.random()
        disk = bytearray().join(
            (after if chance.random() < share else before)[i:i + 512]
            for i in sectors)
        disk[4096 + 24:4096 + 40] = b"0123456789abcdef"  # another boot
        (tmp_path / "cut.bly").write_bytes(disk)
        assert told(ok, "cut.bly")["live"]["unclean"]
        assert bly("has", "-vc", "cut.bly", "-f", "old.txt").out == "0\n"
        ok("live", "checkpoint", "cut.bly")
        assert told(ok, "cut.bly")["live"]["unclean"]
        ok("live", "accept", "cut.bly")
        assert not told(ok, "cut.bly")["live"]["unclean"]
