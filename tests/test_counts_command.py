"""remove, count, convert, top: kinds whose set may change, and streams."""
import json
import os
import random
import subprocess
import time
from collections import Counter

import pytest
from conftest import KINDS, PATIENCE, PROGRAM, keys, kinds_that

REMOVE = kinds_that("add", "remove", "has")
COUNT = kinds_that("add", "count")


# What a kind must be asked for before keys can be taken out again.
ASKED = {"elastic": ["-O", "removal=yes"]}


def make(ok, kind, text, *argv, name="f.bly"):
    ok("build", "-q", "-k", kind, "--items", "20000", *ASKED.get(kind, []),
       *argv, "-o", name, stdin=text)


def info(ok, name="f.bly"):
    return ok("info", "--json", name).json


# ------------------------------------------------------------------ remove

@pytest.mark.parametrize("kind", REMOVE)
def test_removed_keys_are_gone_and_others_are_not(ok, bly, kind):
    make(ok, kind, keys(0, 2000), "--fpr", "1e-4")
    (ok.path / "out").write_text(keys(500, 500))
    result = bly("remove", "--json", "f.bly", "-f", "out")
    told = result.json
    assert told["file"] == "f.bly" and told["keys"] == 500
    assert told["removed"] + told["refused"] == 500
    # Kinds with few counters refuse some keys; most must go.
    assert told["removed"] > 350
    assert result.status == (1 if told["refused"] else 0)
    lines = result.err.splitlines()
    assert len(lines) == told["refused"]
    for line in lines:
        assert line.startswith("bloomery: remove: key-")
        assert "not removable" in line
    refused = {line.split(": ")[2] for line in lines}
    assert len(refused) == told["refused"]
    left = bly("has", "f.bly", "-f", "out").lines
    assert refused <= set(left)
    assert len(left) <= told["refused"] + 3 # false positives, 1 in 10000
    assert ok("has", "-c", "f.bly", stdin=keys(0, 500)).out == "500\n"
    assert ok("has", "-c", "f.bly", stdin=keys(1000, 1000)).out == "1000\n"


@pytest.mark.parametrize("kind", REMOVE)
def test_absent_keys_are_named_and_the_rest_is_removed(ok, bly, kind):
    make(ok, kind, keys(0, 10), "--fpr", "1e-6")
    result = bly("remove", "f.bly", "none\nsuch", "key-3", "nor this")
    assert result.status == 1
    assert result.err.splitlines() == [
        "bloomery: remove: none?such: absent",
        "bloomery: remove: nor this: absent"]
    assert result.out == "f.bly: 1 key removed, 2 not removed\n"
    assert bly("has", "-c", "f.bly", stdin=keys(0, 10)).out == "9\n"
    # Nothing to remove: nothing is written.
    before = os.stat(ok.path / "f.bly")
    result = bly("remove", "-q", "--json", "f.bly", "key-3")
    assert (result.status, result.out, result.err) == (1, "", "")
    after = os.stat(ok.path / "f.bly")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino,
                                                   after.st_mtime_ns)


def test_one_line_is_one_removal(ok, bly):
    """In the order of the lines: the third of three is refused."""
    for kind in kinds_that("remove", "count"):
        make(ok, kind, "a\nb\na\n")
        result = bly("remove", "f.bly", stdin="a\na\nb\na\n")
        assert result.status == 1
        assert result.err == "bloomery: remove: a: absent\n"
        assert result.out.startswith("f.bly: 3 keys removed, 1 not removed")


def test_remove_of_empty_input(ok, bly):
    make(ok, REMOVE[0], keys(0, 10))
    assert ok("remove", "f.bly", stdin="").out.startswith("f.bly: 0 keys")


@pytest.mark.parametrize("kind, option", [("elastic", "removal=no"),
                                          ("spectral", "update=increase")])
def test_what_keeps_all_keys_says_so_once(ok, bly, kind, option):
    ok("build", "-q", "-k", kind, "-O", option, "-o", "f.bly",
       stdin=keys(0, 100))
    before = (ok.path / "f.bly").read_bytes()
    result = bly("remove", "f.bly", stdin=keys(0, 100))
    assert result.status == 2
    assert len(result.err.splitlines()) == 1
    assert "nothing can be removed" in result.err
    assert (ok.path / "f.bly").read_bytes() == before


def test_remove_keyed(ok, trouble):
    (ok.path / "key").write_bytes(b"k" * 16)
    (ok.path / "key").chmod(0o600)
    make(ok, REMOVE[0], keys(0, 10), "-K", "key")
    trouble("remove", "f.bly", "key-1", says="--key-file")
    ok("remove", "f.bly", "-K", "key", "key-1")


def test_removers_and_adders_lose_nothing(ok):
    make(ok, "counting", keys(0, 200))
    jobs = [subprocess.Popen([PROGRAM, command, "-q", "f.bly", f"key-{i}"],
                             cwd=ok.path)
            for i in range(20)
            for command, i in (("remove", i), ("add", 1000 + i))]
    assert [job.wait(PATIENCE) for job in jobs] == [0] * 40
    assert ok("has", "-c", "f.bly", stdin=keys(20, 180)).out == "180\n"
    assert ok("has", "-c", "f.bly", stdin=keys(1000, 20)).out == "20\n"
    assert float(info(ok)["items_estimate"]) == pytest.approx(200, abs=3)


def test_what_cannot_remove_says_what_can(ok, trouble):
    for kind in kinds_that("add", without=["remove"]):
        make(ok, kind, keys(0, 10))
        trouble("remove", "f.bly", "key-1", says=[kind, *REMOVE])
    for kind in kinds_that("add", without=["count"]):
        make(ok, kind, keys(0, 10))
        trouble("count", "f.bly", "key-1", says=[kind, *COUNT])


@pytest.mark.parametrize("argv, says", [
    (["remove"], "FILTER"),
    (["remove", "-"], "changed in its file"),
    (["remove", "nonesuch.bly", "x"], "nonesuch.bly"),
    (["remove", "text", "x"], "text"),
    (["remove", "f.bly", "-f", "nonesuch"], "nonesuch"),
    (["remove", "f.bly", "x", "-f", "text"], "not both"),
    (["remove", ".", "x"], "directory"),
    (["count"], "FILTER"),
    (["count", "text", "x"], "text"),
    (["count", "f.bly", "-f", "nonesuch"], "nonesuch"),
    (["count", "f.bly", "--min", "-1", "x"], "-1"),
    (["count", "f.bly", "--min", "x"], "--min"),
    (["convert", "f.bly", "-k", "classic"], "-o"),
    (["convert", "-o", "g.bly"], "one filter"),
    (["convert", "-o", "g.bly", "f.bly"], "--kind"),
    (["convert", "-o", "g.bly", "-k", "classic", "f.bly", "f.bly"], "2"),
    (["convert", "-o", "g.bly", "-k", "clasic", "f.bly"], "classic"),
    (["convert", "-o", "f.bly", "-k", "classic", "f.bly"], "overwritten"),
    (["convert", "-o", "text", "-k", "blocked", "-f", "text", "f.bly"],
     "overwritten"),
    (["convert", "-o", ".", "-k", "classic", "f.bly"], "directory"),
    (["convert", "-o", "g.bly", "-k", "classic", "text"], "text"),
    (["convert", "-o", "g.bly", "-k", "classic", "-O", "k=0", "f.bly"], "255"),
    (["convert", "-o", "-", "--json", "-k", "classic", "f.bly"], "mix"),
    (["convert", "-o", "g.bly", "-k", "blocked", "-f", "nonesuch", "f.bly"],
     "nonesuch"),
    (["top", "--k", "0"], "k"),
    (["top", "--k", "9M"], "2^23"),
    (["top", "--k", "ten"], "ten"),
    (["top", "-m", "3", "text"], "64"),
    (["top", "nonesuch"], "nonesuch"),
])
def test_bad_input(ok, trouble, argv, says):
    make(ok, "counting", keys(0, 10))
    (ok.path / "text").write_text("no filter\n" * 500)
    before = {p.name: p.read_bytes() for p in ok.path.iterdir()}
    trouble(*argv, says=says)
    assert {p.name: p.read_bytes() for p in ok.path.iterdir()} == before


# ------------------------------------------------------------------- count

@pytest.mark.parametrize("kind", COUNT)
def test_counts(ok, bly, kind):
    rng = random.Random(3)
    stream = [f"key-{min(int(rng.expovariate(0.1)), 60)}"
              for _ in range(1000)]
    truth = Counter(stream)
    # Counters that hold the largest of them, where that can be asked for.
    wide = ["-O", "width=8"] if kind == "counting" else []
    make(ok, kind, "\n".join(stream), *wide)
    asked = sorted(truth) + ["never"]
    result = ok("count", "f.bly", *asked)
    counts = dict(line.split("\t") for line in result.lines)
    assert list(counts) == asked
    exact = kind not in kinds_that("count", without=["has"])
    for key, n in truth.items():
        if exact: # 61 keys in room for 20000
            assert int(counts[key]) == n, key
        else:
            assert n / 3 - 2 <= int(counts[key]) <= 3 * n + 2, key
    assert counts["never"] == "0"
    # --min, and the same as JSON, from lines.
    wanted = [k for k in asked if int(counts[k]) >= 30]
    assert wanted and len(wanted) < len(asked)
    (ok.path / "asked").write_text("\n".join(asked))
    result = ok("count", "--min", "30", "f.bly", "-f", "asked")
    assert result.lines == [f"{k}\t{counts[k]}" for k in wanted]
    result = ok("count", "--min", "30", "--json", "f.bly", "-f", "asked")
    assert [json.loads(line) for line in result.lines] == [
        {"key": k, "count": int(counts[k])} for k in wanted]
    assert bly("count", "--min", "1M", "f.bly", "-f", "asked").status == 1


def test_past_the_ceiling(ok):
    make(ok, "counting", "a\n" * 40 + "b\n" * 14 + "c\n" * 15)
    assert ok("count", "f.bly", "a", "b", "c").out == (
        "a\t>=15\nb\t14\nc\t>=15\n")
    lines = ok("count", "--json", "f.bly", "a", "b").lines
    assert json.loads(lines[0]) == {"key": "a", "count": None, "at_least": 15}
    assert json.loads(lines[1]) == {"key": "b", "count": 14}
    assert ok("count", "--min", "1000", "f.bly", "a", "b").out == "a\t>=15\n"


def test_counts_of_odd_keys(ok):
    make(ok, "countmin", b"two\nlines\0\0tab\t\0\xff\xfe\0", "-0")
    result = ok("count", "-0", "f.bly",
                stdin=b"two\nlines\0\0tab\t\0\xff\xfe\0no\0")
    assert result.raw == (b"two\nlines\t1\0\t1\0tab\t\t1\0\xff\xfe\t1\0no\t0\0")
    result = ok("count", "--json", "f.bly", "two\nlines", "", stdin=b"")
    assert [json.loads(line) for line in result.lines] == [
        {"key": "two\nlines", "count": 1}, {"key": "", "count": 1}]
    # A NUL within a line, and bytes that are not UTF-8 at the end of a key.
    lines = ok("count", "--json", "f.bly", stdin=b"a\0b\n\xe2\x82\n").lines
    assert json.loads(lines[0])["key"] == "a\0b"
    assert json.loads(lines[1])["key"] == "\ufffd\ufffd"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_counts_come_in_order(ok, options):
    (ok.path / "in").write_text(keys(0, 200000))
    ok("build", "-q", "-k", "countmin", "-o", "f.bly", "in")
    one = ok("count", *options, "-t", "1", "f.bly", "-f", "in")
    many = ok("count", *options, "-t", "7", "f.bly", "-f", "in")
    assert one.raw == many.raw
    assert len(one.lines) == 200000
    assert "key-0" in one.lines[0] and "key-199999" in one.lines[-1]


def test_a_damaged_filter_is_not_counted(ok, trouble):
    make(ok, "countmin", keys(0, 100))
    content = bytearray((ok.path / "f.bly").read_bytes())
    content[-1] ^= 1
    (ok.path / "f.bly").write_bytes(content)
    trouble("count", "f.bly", "key-1", says="f.bly")
    ok("count", "--no-verify", "f.bly", "key-1")


# ------------------------------------------------------------ build and add

@pytest.mark.parametrize("kind", kinds_that("add"))
def test_build_and_add_of_every_kind(ok, kind):
    """No nan, whether the kind has capacity and rate or not."""
    result = ok("build", "-k", kind, "-o", "f.bly", stdin=keys(0, 1000))
    make(ok, kind, keys(0, 1000), name="g.bly")
    for text in (result.out, ok("info", "f.bly").out,
                 ok("plan", "-k", kind, "--items", "1000").out,
                 ok("plan", "--items", "1000").out,
                 ok("merge", "-o", "m.bly", "g.bly", "g.bly").out
                 if kind in kinds_that("merge") else ""):
        assert "nan" not in text and "inf " not in text, text
        assert "for 0 " not in text, text
    make(ok, kind, keys(0, 1000))
    told = ok("add", "--json", "f.bly", stdin=keys(1000, 1000)).json
    assert told["keys"] == 1000
    assert told["new"] > 700
    counted = info(ok)
    assert counted["items_estimate"] is None or (
        counted["items_estimate"] == pytest.approx(2000, rel=0.05))


@pytest.mark.parametrize("kind", kinds_that("self-sized"))
def test_kinds_that_size_themselves(ok, kind):
    text = ok("build", "-k", kind, "-o", "f.bly", stdin=keys(0, 100)).out
    assert "for 0" not in text and "nan" not in text
    text = ok("plan", "-k", kind, "--memory", "64k").out
    assert "nan" not in text and "0 keys" not in text
    told = ok("build", "-k", kind, "--memory", "64k", "--json", "-o", "f.bly",
              stdin=keys(0, 100)).json
    assert told["bytes"] <= 64000 and told["bits_per_key"] is None


def test_a_filter_that_grows_is_not_past_its_capacity(ok):
    result = ok("build", "-k", "scalable", "--items", "100", "-o", "f.bly",
                stdin=keys(0, 10000))
    assert result.err == "" and "layers" in result.out
    result = ok("info", "f.bly")
    assert result.err == ""
    assert info(ok)["past_capacity"] is False
    assert info(ok)["layers"] > 3


def test_forgetting_with_time(ok, bly):
    """The only thing here that waits: for a window of one second."""
    short = ["-O", "turn=time", "-O", "generations=1", "-O", "k=4",
             "-O", "seconds=1"]
    if "aging" not in KINDS:
        pytest.skip("no such kind")
    make(ok, "aging", keys(0, 100), *short)
    make(ok, "aging", keys(0, 100), "-O", "turn=time", "-O", "seconds=90000",
         name="day.bly")
    gone = info(ok)["params"]["forgotten_after_seconds"]
    time.sleep(gone + 1)
    assert bly("has", "-c", "f.bly", stdin=keys(0, 100)).out == "0\n"
    assert ok("has", "-c", "day.bly", stdin=keys(0, 100)).out == "100\n"
    ok("add", "-q", "f.bly", "new")
    ok("add", "-q", "day.bly", "new")
    assert bly("has", "-c", "f.bly", "new", "key-1").out in ("1\n", "0\n")
    assert ok("has", "-c", "day.bly", "new", "key-1").out == "2\n"


# ----------------------------------------------------------------- convert

@pytest.mark.parametrize("kind", kinds_that("convert", "add"))
def test_a_kind_that_contains_another(ok, trouble, kind):
    make(ok, kind, keys(0, 1000), "--seed", "5")
    ok("remove", "-q", "f.bly", stdin=keys(0, 10))
    result = ok("convert", "--kind", "classic", "-o", "c.bly", "f.bly")
    assert result.out.startswith(f"c.bly: from {kind}; classic filter for ")
    assert ok("has", "-c", "c.bly", stdin=keys(10, 990)).out == "990\n"
    made = info(ok, "c.bly")
    assert made["seed"] == 5 and made["capacity"] == 20000
    assert made["items_estimate"] == pytest.approx(990, abs=40)
    told = ok("convert", "--json", "-k", "classic", "-o", "d.bly",
              "f.bly").json
    assert told["from"] == kind and told["kind"] == "classic"
    assert (ok.path / "c.bly").read_bytes() == (ok.path / "d.bly").read_bytes()
    trouble("convert", "--kind", "blocked", "-o", "b.bly", "f.bly",
            says=["f.bly", "give the keys again with -f INPUT"])


@pytest.mark.parametrize("kind", kinds_that("resize", "add"))
def test_resize(ok, kind):
    make(ok, kind, keys(0, 20000))
    ok("convert", "--items", "100k", "-o", "large.bly", "f.bly")
    ok("add", "-q", "large.bly", stdin=keys(20000, 80000))
    assert info(ok, "large.bly")["capacity"] == 100000
    assert ok("has", "-c", "large.bly", stdin=keys(0, 100000)).out == (
        "100000\n")


@pytest.mark.parametrize("kind", kinds_that("add", without=["build"]))
def test_without_the_keys_it_says_so(ok, bly, kind):
    make(ok, kind, keys(0, 1000))
    other = "classic" if kind == "blocked" else "blocked"
    result = bly("convert", "-k", other, "-o", "g.bly", "f.bly")
    assert result.status == 2
    assert "; or give the keys again with -f INPUT" in result.err
    assert len(result.err.splitlines()) == 1
    if kind not in kinds_that("resize"):
        result = bly("convert", "--items", "30000", "-o", "g.bly", "f.bly")
        assert result.status == 2 and "-f INPUT" in result.err
    assert not (ok.path / "g.bly").exists()


@pytest.mark.parametrize("kind", kinds_that("add", without=["likely-no"]))
@pytest.mark.parametrize("to", ["blocked", "cuckoo", "countmin"])
def test_with_the_keys_any_kind_becomes_any_other(ok, kind, to):
    (ok.path / "in").write_text(keys(0, 1000))
    make(ok, kind, keys(0, 1000), "--seed", "9")
    told = ok("convert", "--json", "-k", to, "-o", "g.bly", "-f", "in",
              "f.bly").json
    assert told["kind"] == to and told["from"] == kind
    assert told["keys"] == 1000 and told["left_out"] == 0
    assert ok("has", "-c", "g.bly", "-f", "in").out == "1000\n"
    made = info(ok, "g.bly")
    old = info(ok)
    assert made["seed"] == 9
    assert made["capacity"] == old["capacity"]
    if to == "blocked" and old["fpr_at_capacity"]:
        asked = old["params"].get("fpr_bound", old["fpr_at_capacity"])
        if asked < 1:
            assert made["fpr_at_capacity"] == pytest.approx(asked, rel=0.02)


def test_what_was_removed_does_not_come_back(ok, bly):
    (ok.path / "in").write_text(keys(0, 1000))
    make(ok, "quotient", keys(0, 1000), "--fpr", "1e-5")
    ok("remove", "-q", "f.bly", stdin=keys(0, 300))
    result = ok("convert", "-k", "classic", "-o", "g.bly", "-f", "in", "f.bly")
    assert "1000 keys read, 300 left out" in result.out
    assert ok("has", "-c", "g.bly", "-f", "in").out == "700\n"
    assert bly("has", "-c", "g.bly", stdin=keys(0, 300)).out == "0\n"


def test_a_grown_filter_becomes_one(ok):
    """Sized by the keys, at the rate that was asked for once."""
    (ok.path / "in").write_text(keys(0, 20000))
    ok("build", "-q", "-k", "scalable", "--items", "100", "--fpr", "2%", "-o",
       "f.bly", "in")
    ok("convert", "-q", "-k", "classic", "-o", "g.bly", "-f", "in", "f.bly")
    made = info(ok, "g.bly")
    assert made["capacity"] == 20000 and made["layers"] == 0
    assert made["fpr_at_capacity"] == pytest.approx(0.02, rel=0.02)
    assert ok("has", "-c", "g.bly", "-f", "in").out == "20000\n"
    # Options come first.
    ok("convert", "-q", "-k", "classic", "--items", "50k", "--fpr", "0.1%",
       "-O", "k=5", "-o", "g.bly", "-f", "in", "f.bly")
    made = info(ok, "g.bly")
    assert made["capacity"] == 50000 and made["params"]["k"] == 5
    assert made["fpr_at_capacity"] == pytest.approx(0.001, rel=0.1)
    # The same kind, once more.
    ok("convert", "-q", "-o", "g.bly", "-f", "in", "f.bly")
    assert info(ok, "g.bly")["layers"] == 1
    ok("convert", "-q", "-k", "classic", "--memory", "8k", "-o", "g.bly",
       "-f", "in", "f.bly")
    made = info(ok, "g.bly")
    assert made["capacity"] == 20000 and made["bits"] <= 64000


def test_convert_keyed(ok, trouble):
    for name, byte in (("key", b"k"), ("other", b"o")):
        (ok.path / name).write_bytes(byte * 16)
        (ok.path / name).chmod(0o600)
    (ok.path / "in").write_text(keys(0, 100))
    make(ok, "counting", keys(0, 100), "-K", "key")
    # Without keys nothing is hashed, and the secret is not needed.
    ok("convert", "-q", "-k", "classic", "-o", "c.bly", "f.bly")
    assert ok("has", "-c", "-K", "key", "c.bly", "-f", "in").out == "100\n"
    again = ["convert", "-q", "-k", "blocked", "-o", "b.bly", "-f", "in",
             "f.bly"]
    trouble(*again, says="--key-file")
    trouble(*again, "-K", "other", says="f.bly")
    ok(*again, "-K", "key")
    assert ok("has", "-c", "-K", "key", "b.bly", "-f", "in").out == "100\n"


def test_convert_in_a_pipe(ok):
    make(ok, "counting", keys(0, 100))
    done = subprocess.run(
        f"cat f.bly | {PROGRAM} convert -k classic -o - - > c.bly",
        shell=True, cwd=ok.path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "from counting" in done.stderr
    assert ok("has", "-c", "c.bly", stdin=keys(0, 100)).out == "100\n"


def test_convert_of_a_damaged_filter(ok, trouble):
    make(ok, "counting", keys(0, 100))
    content = bytearray((ok.path / "f.bly").read_bytes())
    content[-9] ^= 1
    (ok.path / "f.bly").write_bytes(content)
    trouble("convert", "-k", "classic", "-o", "c.bly", "f.bly", says="f.bly")


# --------------------------------------------------------------------- top

def stream(seed=1, n=200000):
    """Lines whose frequencies fall off as in texts, in a mixed order."""
    rng = random.Random(seed)
    return [f"w{int(rng.paretovariate(0.9))}" for _ in range(n)]


def test_top_is_what_sorting_gives(ok):
    lines = stream()
    truth = Counter(lines)
    result = ok("top", "--k", "20", stdin="\n".join(lines))
    told = [line.split("\t") for line in result.lines]
    assert [k for k, _ in told] == [k for k, _ in truth.most_common(20)]
    for key, n in told:
        assert 0.99 * truth[key] <= int(n) <= truth[key]
    as_json = ok("top", "--k", "20", "--json", stdin="\n".join(lines)).json
    assert as_json["keys"] == len(lines)
    assert as_json["top"] == [{"key": k, "count": int(n)} for k, n in told]


def test_top_of_few_keys(ok):
    assert ok("top", stdin="").out == ""
    assert ok("top", "--json", stdin="").json == {"keys": 0, "top": []}
    assert ok("top", stdin="b\na\nb\n").out == "b\t2\na\t1\n"
    assert ok("top", "--k", "1", stdin="b\na\nb\n").out == "b\t2\n"
    assert ok("top", "--k", "8M", stdin="b\na\nb\n").out == "b\t2\na\t1\n"
    assert len(ok("top", stdin=keys(0, 30)).lines) == 10


def test_top_of_odd_keys(ok):
    made = ok("top", "-0", stdin=b"x\ny\0\0x\ny\0\xff\0")
    assert made.raw.split(b"\0")[0] == b"x\ny\t2"
    assert set(made.raw.split(b"\0")[1:]) == {b"\t1", b"\xff\t1", b""}
    told = ok("top", "--json", stdin=b"a\0b\na\0b\n\xf0\x9f\n").json
    assert told["top"] == [{"key": "a\0b", "count": 2},
                           {"key": "\ufffd\ufffd", "count": 1}]


def test_top_of_several_files(ok):
    lines = stream(2, 50000)
    half = len(lines) // 2
    (ok.path / "a").write_text("\n".join(lines[:half]))
    (ok.path / "b").write_text("\n".join(lines[half:]))
    subprocess.run(["gzip", "b"], cwd=ok.path, check=True)
    assert ok("top", "a", "b.gz").out == ok(
        "top", stdin="\n".join(lines)).out
    assert ok("top", "-m", "1MiB", "a", "b.gz").lines[0].startswith("w1\t")


def test_a_filter_that_is_full_is_named(ok, trouble):
    ok("build", "-q", "-k", "cuckoo", "-o", "f.bly", stdin=keys(0, 100))
    before = (ok.path / "f.bly").read_bytes()
    trouble("add", "f.bly", stdin=keys(0, 1000), says=["f.bly: ", "full"])
    assert (ok.path / "f.bly").read_bytes() == before
