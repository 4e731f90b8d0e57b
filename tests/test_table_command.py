"""table: sorted tables with filters, in folders from old to new; and what
happens when their bytes are not what they were."""
import json
import os
import random
import subprocess
import threading

import pytest
from conftest import PATIENCE, PROGRAM


def lines_of(entries):
    """A value of None says that the key is deleted."""
    return "".join(k + ("\n" if v is None else f"\t{v}\n")
                   for k, v in entries)


def build(ok, entries, to="db/", *more):
    return ok("table", "build", "-o", to, *more, stdin=lines_of(entries))


def answers(result):
    return dict(line.split("\t", 1) for line in result.lines)


def test_the_worked_example(ok):
    """Three tables; the filters of two say no: one is read instead of three.
    All hold the range of the key."""
    for i in range(3):
        build(ok, [(f"{'abc'[k]}{k:03d}-{i}" if k < 3 else f"{k:05d}-{i}",
                    f"value {k}") for k in range(900)])
    got = ok("table", "get", "--json", "db", "00500-0").json
    assert got == {"key": "00500-0", "found": "value", "value": "value 500",
                   "tables": 3, "by_range": 0, "by_filter": 2, "blocks": 1,
                   "falsely": 0}
    told = ok("table", "get", "--stat", "db", "00500-0")
    assert told.out == "00500-0\tvalue 500\n"
    assert "3 tables considered: 0 spared by their range, 2 by their filter; " \
        "1 blocks read" in told.err


@pytest.mark.parametrize("seed", range(6))
def test_like_a_dictionary(ok, bly, seed):
    rng = random.Random(seed)
    model, asked = {}, set()
    for _ in range(rng.randrange(1, 7)):
        entries = []
        for _ in range(rng.choice([1, 30, 3000])):
            key = rng.choice(["k", "key/", "é", "\x01"]) + \
                str(rng.randrange(900)) * rng.choice([1, 1, 9, 300])
            value = None if rng.random() < 0.2 else \
                "v" * rng.choice([0, 1, 9, 9, 6000 if rng.random() < .01 else 2])
            entries.append((key, value))
        build(ok, entries)
        for key, value in entries:
            asked.add(key)
            model[key] = value
    asked |= {f"other{i}" for i in range(500)} | {"", "k", "~"}
    asked = sorted(asked - {""})
    got = bly("table", "get", "db", stdin="".join(k + "\n" for k in asked))
    want = {k: v for k, v in model.items() if v is not None}
    assert answers(got) == want
    assert got.status == (0 if want else 1)
    assert [line.split("\t")[0] for line in got.lines] == \
        [k for k in asked if k in want]
    ok("table", "verify", "db")
    # The newest first, and every key once.
    rows = [json.loads(x) for x in ok("table", "stat", "db", "--json").lines]
    names = [row["table"] for row in rows]
    assert names == sorted(names, reverse=True)
    assert all(row["records"] >= row["deleted"] for row in rows)


def test_main_and_differential_file(ok):
    """A lookup of what was not changed reads the main file alone."""
    build(ok, [(f"r{i:05d}", f"old{i}") for i in range(20000)])
    build(ok, [(f"r{i:05d}", f"new{i}") for i in range(0, 20000, 100)])
    keys = "".join(f"r{i:05d}\n" for i in range(20000))
    got = ok("table", "get", "db", "--stat", stdin=keys)
    assert answers(got) == {
        f"r{i:05d}": f"{'old' if i % 100 else 'new'}{i}" for i in range(20000)}
    read = int(got.err.split("; ")[1].split()[0])
    assert 20000 <= read < 20000 + 19800 * 0.03


def test_values_of_any_bytes(ok, trouble):
    every = bytes(range(256)).hex()
    ok("table", "build", "-o", "t.blt", "--hex", stdin=f"k\t{every}\ne\t\n")
    assert ok("table", "get", "--hex", "t.blt", "k", "e").lines == [
        f"k\t{every}", "e\t"]
    assert ok("table", "get", "t.blt", "k").raw == \
        b"k\t" + bytes(range(256)) + b"\n"
    trouble("table", "build", "-o", "t.blt", "--hex", stdin="k\tabc\n",
            says="line 1: the value is not hexadecimal")
    ok("table", "build", "-0", "-d", "=", "-o", "z.blt",
       stdin=b"a\nb=x\ty\n\0c\0")
    assert ok("table", "get", "-0", "z.blt", stdin=b"a\nb\0c\0").raw == \
        b"a\nb\tx\ty\n\0"


def test_nothing(ok, bly):
    ok("table", "build", "-o", "e.blt")
    assert bly("table", "get", "e.blt", "x").status == 1
    ok("table", "verify", "e.blt")
    (ok.path / "none").mkdir()
    assert bly("table", "get", "none", "x").status == 1
    ok("table", "stat", "none")


def test_what_does_not_go_together(trouble):
    (trouble.path / "db").mkdir()
    (trouble.path / "x.blt").write_text("no table, but as long as one" * 9)
    (trouble.path / "short.blt").write_text("x")
    trouble("table", "build", says="use -o FILE.blt")
    trouble("table", "get", "nowhere", "k", says="No such file")
    trouble("table", "get", "x.blt", "k", says="not a table")
    trouble("table", "verify", "short.blt", says="not a table")
    trouble("table", "build", "-k", "generalized", "-o", "a.blt", stdin="a\tb\n",
            says="only likely")
    (trouble.path / "db" / "mine.blt").write_text("")
    trouble("table", "build", "-o", "db", stdin="a\tb\n",
            says=["mine.blt", "name the new one yourself"])
    trouble("table", "build", "-o", "/dev/full", stdin="a\tb\n",
            says="No space left")
    trouble("table", "stat", "x.blt", "--hex", says="--hex")


def test_a_damaged_table_is_no_absent_key(ok, bly):
    """Whatever bit flips, wherever the file ends: the old answer or an
    error."""
    entries = [(f"key{i:04d}", f"value{i}") for i in range(600)]
    build(ok, entries, "t.blt")
    data = (ok.path / "t.blt").read_bytes()
    keys = "".join(k + "\n" for k, _ in entries)
    good = ok("table", "get", "t.blt", stdin=keys).out
    rng = random.Random(1)
    for _ in range(60):
        bad = bytearray(data)
        if rng.random() < 0.7:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        else:
            del bad[rng.randrange(len(bad)):]
        (ok.path / "bad.blt").write_bytes(bad)
        got = bly("table", "get", "bad.blt", stdin=keys)
        assert got.status == 2 and got.err.startswith("bloomery: table: bad") \
            or got.out == good
        assert good.startswith(got.out)
        assert bly("table", "verify", "bad.blt").status == 2


def test_two_that_add_at_once(ok):
    running = [subprocess.Popen(
        [PROGRAM, "table", "build", "-q", "-o", "db/"], cwd=ok.path,
        stdin=subprocess.PIPE) for _ in range(6)]
    for i, child in enumerate(running):
        child.stdin.write(f"k{i}\tv{i}\n".encode())
        child.stdin.close()
    assert [child.wait(PATIENCE) for child in running] == [0] * 6
    assert sorted(os.listdir(ok.path / "db")) == [
        f"{i:08d}.blt" for i in range(1, 7)]
    assert len(ok("table", "get", "db", *(f"k{i}" for i in range(6))).lines) == 6


# ------------------------------------------------------------ scan and compact

def put(ok, lines, *more):
    ok("table", "build", "-q", "-o", "db/", *more, stdin="".join(f"{line}\n" for line in lines))


def scan(ok, *more):
    return ok("table", "scan", "db", *more).out


@pytest.mark.parametrize("seed", range(3))
def test_scan_and_compact_are_a_dictionary(ok, bly, seed):
    """Random tables; after each, ranges of the whole, and now and then a compaction of some of them."""
    draw, truth = random.Random(seed), {}
    keys = [f"{draw.choice('abc')}{draw.randrange(400)}" for _ in range(300)]
    for table in range(12):
        lines = []
        for key in draw.sample(keys, draw.randrange(1, 200)):
            if draw.random() < 0.3:
                lines.append(key)
                truth.pop(key, None)
            else:
                lines.append(f"{key}\t{table}")
                truth[key] = str(table)
        put(ok, lines)
        if draw.random() < 0.4:
            ok("table", "compact", "-q", "db", *draw.choice([(), ("--newest", 2), ("--newest", 3)]))
            ok("table", "verify", "-q", "db")
        low, high = sorted(draw.sample(keys, 2))
        for argv, inside in (((), lambda k: True), (("--from", low), lambda k: k >= low), (("--to", high), lambda k: k < high),
                             (("--from", low, "--to", high), lambda k: low <= k < high), (("--prefix", "b1"), lambda k: k.startswith("b1"))):
            expected = "".join(f"{k}\t{v}\n" for k, v in sorted(truth.items()) if inside(k))
            result = bly("table", "scan", "db", *argv)
            assert (result.out, result.status) == (expected, 0 if expected else 1), argv
    gone = ok("table", "compact", "--json", "db").json if len(list((ok.path / "db").iterdir())) > 1 else None
    assert gone is None or (gone["records"], gone["deleted"]) == (len(truth), 0)
    assert scan(ok, "--limit", "3") == "".join(f"{k}\t{v}\n" for k, v in sorted(truth.items())[:3])


def test_a_tombstone_stays_while_it_hides_something(ok):
    put(ok, ["a\told", "b\told"])
    put(ok, ["a", "nosuch"])
    put(ok, ["c\tnew"])
    told = ok("table", "compact", "--newest", 2, "--json", "db").json
    assert (told["records"], told["deleted"], told["dropped"], told["hidden"]) == (2, 1, 1, 0)
    assert scan(ok) == "b\told\nc\tnew\n"
    told = ok("table", "compact", "--json", "db").json
    assert (told["records"], told["deleted"], told["dropped"], told["hidden"]) == (2, 0, 1, 1)
    assert [p.name for p in (ok.path / "db").iterdir()] == ["00000005.blt"]
    assert "nothing to do" in ok("table", "compact", "db").err


def test_the_filter_of_the_largest(ok):
    put(ok, [f"{i}\tx" for i in range(3000)], "--kind", "fuse", "--fpr", "0.01%")
    put(ok, ["7\ty"])
    before = ok("table", "stat", "--json", "db").lines
    rate = [json.loads(line)["filter_bytes"] for line in before]
    ok("table", "compact", "-q", "db")
    assert abs(ok("table", "stat", "--json", "db").json["filter_bytes"] - max(rate)) < 200


def test_compacting_beside_readers(ok, bly):
    """Readers of a folder that grows and is compacted all the time never miss a key, and never see one that is deleted."""
    put(ok, [f"k{i}\t0" for i in range(500)] + ["gone\tx"])
    put(ok, ["gone"])
    stop, wrong = threading.Event(), []

    def reads():
        while not stop.is_set():
            result = bly("table", "get", "db", "k7", "k499", "gone")
            if result.status or {line.partition("\t")[0] for line in result.lines} != {"k7", "k499"}:
                wrong.append((result.out, result.err))

    readers = [threading.Thread(target=reads) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(25):
        put(ok, [f"k{i}\t{i}", "k7\tx"])
        ok("table", "compact", "-q", "db")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong, wrong[0]


def test_a_damaged_table_is_not_compacted(ok, bly, trouble):
    put(ok, [f"{i}\tx" for i in range(3000)])
    put(ok, ["7"])
    path = ok.path / "db" / "00000001.blt"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    trouble("table", "compact", "db", says="damaged")
    scanned = bly("table", "scan", "db")
    assert scanned.status == 2 and "damaged" in scanned.err
    assert sorted(p.name for p in path.parent.iterdir()) == ["00000001.blt", "00000002.blt"]


def test_compacting_what_is_named_otherwise(ok, trouble):
    put(ok, ["a\tb"])
    (ok.path / "db" / "00000001.blt").rename(ok.path / "db" / "main.blt")
    trouble("table", "compact", "db", says="8 digits")
    trouble("table", "scan", "db", "--prefix", "a", "--from", "b", says="--prefix")
