"""build, get, set: kinds that store a value for each key."""
import gzip
import json
import os
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, keys, kinds_that

VALUED = kinds_that("build", "get")
SET = kinds_that("build", "get", "set")
TOP = 2**64 - 1


def pairs(first, n, prefix="key-", times=7):
    return "".join(f"{prefix}{i}\t{i * times}\n"
                   for i in range(first, first + n))


def make(ok, kind, text, *argv, name="f.bly"):
    return ok("build", "-q", "-k", kind, *argv, "-o", name, stdin=text)


def info(ok, name="f.bly"):
    return ok("info", "--json", name).json


# ------------------------------------------------------------------- build

@pytest.mark.parametrize("kind", VALUED)
def test_every_key_has_its_value(ok, kind):
    text = pairs(0, 20000)
    make(ok, kind, text)
    assert ok("get", "f.bly", stdin=keys(0, 20000)).out == text
    assert ok("has", "-c", "f.bly", stdin=keys(0, 20000)).out == "20000\n"
    assert info(ok)["params"]["value_bits"] == (19999 * 7).bit_length()


@pytest.mark.parametrize("kind", VALUED)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_keys_many_threads(ok, kind, threads):
    n = 300000
    (ok.path / "in.gz").write_bytes(gzip.compress(pairs(0, n).encode(), 1))
    subprocess.run(["zstd", "-q", "-o", "in.zst"], cwd=ok.path, check=True,
                   input=pairs(n, 1000).encode())
    (ok.path / "in").write_text(pairs(n + 1000, 10) + "last\t4") # no newline
    ok("build", "-q", "-k", kind, "-t", threads, "-o", "f.bly", "in.gz",
       "in.zst", "in")
    want = pairs(0, n + 1010) + "last\t4\n"
    got = ok("get", "-t", threads, "f.bly", stdin=keys(0, n + 1010) + "last")
    assert got.out == want


@pytest.mark.parametrize("kind", VALUED)
def test_values_of_all_forms(ok, kind):
    make(ok, kind, "a\t0\nb\t18446744073709551615\nc\t0xff\nd\t0XfFfF\n"
         "e\t0xffffffffffffffff\nf\t007\ng\t00000000000000000000000000001\n")
    assert ok("get", "f.bly", *"abcdefg").out == (
        f"a\t0\nb\t{TOP}\nc\t255\nd\t65535\ne\t{TOP}\nf\t7\ng\t1\n")


@pytest.mark.parametrize("kind", VALUED)
def test_the_last_tab_counts(ok, kind):
    """Keys may have tabs, be empty, or look like values."""
    make(ok, kind, "a\tb\t1\n\t2\n\t\t3\n7\t4\n")
    result = ok("get", "f.bly", "a\tb", "", "\t", "7")
    assert result.out == "a\tb\t1\n\t2\n\t\t3\n7\t4\n"


@pytest.mark.parametrize("kind", VALUED)
def test_nul_and_other_delimiters(ok, trouble, kind):
    make(ok, kind, "two\nlines\t5\0b\t6\0", "-0")
    assert ok("get", "-0", "f.bly", stdin="two\nlines\0b").raw == \
        b"two\nlines\t5\0b\t6\0"
    make(ok, kind, "a,b,5\nc\t,6\n", "-d", ",")
    assert ok("get", "f.bly", "a,b", "c\t").out == "a,b\t5\nc\t\t6\n"
    make(ok, kind, "a=5\n", "--delimiter", "=")
    ok("set", "f.bly", "-d", "=", stdin="a=4\n")
    assert ok("get", "f.bly", "a").out == "a\t4\n"
    for wrong in ["", "ab", "x", "7"]:
        trouble("build", "-k", kind, "-o", "g.bly", "-d", wrong,
                says="--delimiter")
    trouble("build", "-k", kind, "-o", "g.bly", "-d", ",", stdin="a\t5\n",
            says=["line 1", "','"])


def test_delimiter_is_for_kinds_with_values(trouble):
    trouble("build", "-o", "f.bly", "-d", ",", stdin="a\n",
            says=["--delimiter", *VALUED])


def test_other_kinds_take_lines_as_they_are(ok):
    ok("build", "-q", "-o", "f.bly", stdin="a\t5\n")
    assert ok("has", "f.bly", "a\t5").out == "a\t5\n"


@pytest.mark.parametrize("value", [
    "", "x", " 1", "1 ", "-1", "+1", "0x", "0xg", "1e3", "10M", "1.0", "1\0",
    "1\r", "18446744073709551616", "0x10000000000000000", "9" * 5000])
def test_what_is_no_value(ok, trouble, value):
    for kind in VALUED:
        make(ok, kind, "k\t1\n")
        before = (ok.path / "f.bly").read_bytes()
        trouble("build", "-k", kind, "-o", "f.bly",
                stdin=f"a\t1\nb\t{value}\nc\t2\n",
                says=["standard input", "line 2", "value"])
        assert (ok.path / "f.bly").read_bytes() == before
        assert os.listdir(ok.path) == ["f.bly"]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kind", VALUED)
def test_a_wrong_line_is_named(ok, trouble, kind, threads):
    """The first of several, by its own file's count, whoever meets it."""
    def build(*files, says):
        trouble("build", "-k", kind, "-t", threads, "-o", "f.bly", *files,
                says=says)
        assert not (ok.path / "f.bly").exists()
    (ok.path / "good").write_text(pairs(0, 40000))
    many = pairs(0, 150000).splitlines(keepends=True)
    many[99999] = "no tab here\n"
    many[120000] = "nor here\n"
    many[149999] = "nor there"
    (ok.path / "bad").write_text("".join(many))
    (ok.path / "bad.gz").write_bytes(gzip.compress("".join(many).encode(), 1))
    build("bad", says="bad: line 100000: no tab")
    build("good", "bad", "good", says="bad: line 100000: no tab")
    build("good", "good", "bad.gz", says="bad.gz: line 100000: no tab")
    (ok.path / "nul").write_bytes(b"a\t1\0b\t2\0c\0")
    build("-0", "nul", says="nul: key 3: no tab")
    (ok.path / "empty").write_text("a\t1\n\n")
    build("empty", says="empty: line 2: no tab")


@pytest.mark.parametrize("kind", VALUED)
def test_keys_that_come_twice(ok, trouble, kind):
    make(ok, kind, "a\t5\nb\t6\na\t5\na\t0x5\n")
    assert info(ok)["capacity"] == 2
    assert ok("get", "f.bly", "a", "b").out == "a\t5\nb\t6\n"
    trouble("build", "-k", kind, "-o", "g.bly", stdin="a\t5\nb\t6\na\t7\n",
            says=["twice", "5", "7"])
    assert not (ok.path / "g.bly").exists()


@pytest.mark.parametrize("kind", VALUED)
def test_bits_of_values(ok, trouble, kind):
    make(ok, kind, "a\t1\n", "-O", "value_bits=12")
    assert info(ok)["params"]["value_bits"] == 12
    trouble("build", "-k", kind, "-o", "g.bly", "-O", "value_bits=12",
            stdin="a\t4096\n", says=["4096", "13 bits", "12"])
    plan = ok("plan", "-k", kind, "-n", "1000", "--json").json
    plan = plan[0] if isinstance(plan, list) else plan
    assert "value_bits" in json.dumps(plan)


@pytest.mark.parametrize("kind", VALUED)
def test_no_keys(ok, bly, trouble, kind):
    trouble("build", "-k", kind, "-o", "f.bly", stdin="", says="no keys")
    make(ok, kind, "", "--items", "10")
    result = bly("get", "f.bly", "a")
    assert (result.status, result.out, result.err) == (1, "", "")


# --------------------------------------------------------------------- get

@pytest.mark.parametrize("kind", VALUED)
def test_get_and_its_options(ok, bly, kind):
    make(ok, kind, pairs(0, 100), "--fpr", "1e-9")
    (ok.path / "ask").write_text("key-3\nnone\nkey-5\n")
    assert ok("get", "f.bly", "-f", "ask").out == "key-3\t21\nkey-5\t35\n"
    assert ok("get", "-v", "f.bly", "-f", "ask").out == "none\n"
    assert ok("get", "-c", "f.bly", "-f", "ask").out == "2\n"
    assert ok("get", "-vc", "f.bly", "-f", "ask").out == "1\n"
    assert ok("get", "-q", "f.bly", "-f", "ask").out == ""
    lines = ok("get", "--json", "f.bly", "-f", "ask").lines
    assert [json.loads(line) for line in lines] == [
        {"key": "key-3", "value": 21}, {"key": "key-5", "value": 35}]
    assert ok("get", "--json", "-v", "f.bly", "-f", "ask").json == {
        "key": "none", "value": None}
    for argv in [["none"], ["-q", "none"], ["-v", "key-1"]]:
        result = bly("get", "f.bly", *argv)
        assert (result.status, result.out, result.err) == (1, "", "")
    assert bly("get", "-c", "f.bly", "none").out == "0\n"


@pytest.mark.parametrize("kind", VALUED)
def test_get_of_large_values_as_json(ok, kind):
    make(ok, kind, f"a\t{TOP}\n")
    assert ok("get", "--json", "f.bly", "a").out == \
        f'{{"key":"a","value":{TOP}}}\n'


@pytest.mark.parametrize("kind", VALUED)
def test_get_keyed_and_damaged(ok, trouble, kind):
    (ok.path / "key").write_bytes(b"k" * 16)
    (ok.path / "key").chmod(0o600)
    make(ok, kind, pairs(0, 10), "-K", "key")
    trouble("get", "f.bly", "key-1", says="--key-file")
    assert ok("get", "f.bly", "-K", "key", "key-1").out == "key-1\t7\n"
    ok("set", "-q", "f.bly", "-K", "key", "key-1", "8")
    assert ok("get", "f.bly", "-K", "key", "key-1").out == "key-1\t8\n"
    with open(ok.path / "f.bly", "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"\xff")
    trouble("get", "f.bly", "-K", "key", "key-1", says="f.bly")


def test_what_cannot_get_says_what_can(ok, trouble):
    ok("build", "-q", "-o", "f.bly", stdin="a\n")
    trouble("get", "f.bly", "a", says=VALUED)
    trouble("set", "f.bly", "a", "1", says=SET)


# --------------------------------------------------------------------- set

@pytest.mark.parametrize("kind", SET)
def test_set_changes_these_and_no_others(ok, kind):
    make(ok, kind, pairs(0, 1000))
    result = ok("set", "f.bly", "key-3", "4000", "key-5", "0x1f")
    assert result.out == "f.bly: 2 keys set, 0 refused\n"
    (ok.path / "new").write_text(pairs(100, 500, times=5))
    assert ok("set", "--json", "f.bly", "-f", "new").json == {
        "file": "f.bly", "keys": 500, "set": 500, "refused": 0}
    want = pairs(0, 1000).splitlines()
    want[3], want[5] = "key-3\t4000", "key-5\t31"
    want[100:600] = pairs(100, 500, times=5).splitlines()
    assert ok("get", "f.bly", stdin=keys(0, 1000)).lines == want
    assert info(ok)["checksum"] == "right"


@pytest.mark.parametrize("kind", SET)
def test_the_last_of_two_counts(ok, kind):
    make(ok, kind, "a\t9\nb\t9\n")
    ok("set", "f.bly", stdin="a\t1\nb\t2\na\t3\n")
    assert ok("get", "f.bly", "a", "b").out == "a\t3\nb\t2\n"


@pytest.mark.parametrize("kind", SET)
def test_refused_keys_are_named_and_the_rest_is_set(ok, bly, kind):
    make(ok, kind, pairs(0, 10), "--fpr", "1e-9") # 63 has 6 bits
    result = bly("set", "f.bly", "none\nsuch", "1", "key-1", "64", "key-2",
                 "63")
    assert result.status == 1
    assert result.out == "f.bly: 1 key set, 2 refused\n"
    lines = result.err.splitlines()
    assert lines[0] == "bloomery: set: none?such: absent"
    assert lines[1].startswith("bloomery: set: key-1: ")
    assert "64" in lines[1] and "7 bits" in lines[1] and len(lines) == 2
    assert ok("get", "f.bly", "key-1", "key-2").out == "key-1\t7\nkey-2\t63\n"
    # Nothing to set: nothing is written.
    before = os.stat(ok.path / "f.bly")
    result = bly("set", "-q", "--json", "f.bly", "none", "1")
    assert (result.status, result.out, result.err) == (1, "", "")
    after = os.stat(ok.path / "f.bly")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino,
                                                   after.st_mtime_ns)


@pytest.mark.parametrize("kind", SET)
def test_a_wrong_line_changes_nothing(ok, trouble, kind):
    make(ok, kind, pairs(0, 1000))
    before = (ok.path / "f.bly").read_bytes()
    (ok.path / "new").write_text("key-1\t1\nkey-2\tx\n")
    trouble("set", "f.bly", "-f", "new", says=["new: line 2", "'x'"])
    trouble("set", "f.bly", "key-1", "1", "key-2", says=["key-2", "missing"])
    trouble("set", "f.bly", "key-1", "1", "key-2", "x", says=["key-2", "'x'"])
    trouble("set", "f.bly", "key-1", "1\t2", says=["key-1", "value"])
    trouble("set", "f.bly", "key-1", "1", "-f", "new", says="not both")
    trouble("set", says="FILTER")
    trouble("set", "-", "a", "1", says="changed in its file")
    trouble("set", "nonesuch.bly", "a", "1", says="nonesuch.bly")
    assert (ok.path / "f.bly").read_bytes() == before


def test_immutable_values(ok, trouble):
    make(ok, "bloomier", pairs(0, 1000), "-O", "layout=immutable")
    before = (ok.path / "f.bly").read_bytes()
    trouble("set", "f.bly", "key-1", "1", 
            says=["f.bly: ", "immutable", "layout=mutable"])
    assert (ok.path / "f.bly").read_bytes() == before
    made = info(ok)["params"]
    assert made["layout"] == "immutable" and made["value_bits"] == 13
    smaller = os.path.getsize(ok.path / "f.bly")
    make(ok, "bloomier", pairs(0, 1000))
    assert info(ok)["params"]["layout"] == "mutable"
    assert smaller < os.path.getsize(ok.path / "f.bly")


@pytest.mark.parametrize("kind", SET)
def test_setters_lose_nothing(ok, kind):
    make(ok, kind, pairs(0, 100))
    jobs = [subprocess.Popen([PROGRAM, "set", "-q", "f.bly", f"key-{i}",
                              str(i)], cwd=ok.path) for i in range(20)]
    assert [job.wait(PATIENCE) for job in jobs] == [0] * 20
    assert ok("get", "f.bly", stdin=keys(0, 100)).out == (
        pairs(0, 20, times=1) + pairs(20, 80))
