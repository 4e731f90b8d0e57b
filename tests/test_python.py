"""The Python package: what a key is, batches, sets, files, bad input; its wheel;
and random calls with sanitizers.

BLY_PYTHON names the folder with the package (default: build/python).
"""
import array
import ast
import collections
import copy
import csv
import doctest
import gc
import inspect
import itertools
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import zipfile

import pytest
import sql_support
from conftest import BUILD, ROOT, run
from python_support import FOLDER, PRESENT, SANITIZED, Column
from redis_support import sanitizers, sanitizers_library

pytestmark = pytest.mark.skipif(not PRESENT, reason="build/python is not there: no headers of Python (python3-dev)")

if PRESENT:
    import bloomery
    from bloomery import Error, Filter, HyperLogLog, MinHash, TopK, kinds, plan

try:
    import numpy
except ImportError:
    numpy = None
needs_numpy = pytest.mark.skipif(numpy is None, reason="python3-numpy is not there")
FULL = os.environ.get("BLY_FULL")

# As SQL has them, in Python's words.
TEXTS = [key for _, key in sql_support.TEXTS]
INTEGERS = [int(key) for _, key in sql_support.INTEGERS]


# ---------------------------------------------------------------- one file everywhere

@pytest.mark.parametrize("vectors,flag", [(TEXTS, []), (INTEGERS, ["--int"])])
def test_answers_are_those_of_the_command(bly, ok, vectors, flag):
    """The vectors that every adapter is held against: what the command built is asked here."""
    (ok.path / "list").write_text("".join(f"{key}\n" for key in vectors))
    ok("build", "-o", "a.bly", "--fpr", "1e-9", *flag, "list")
    f = Filter.open(ok.path / "a.bly")
    absent = ["mallory", "8"] if not flag else [8, "8"]
    for key in [*vectors, *map(str, vectors), *absent]:
        told = bly("has", "a.bly", "--", str(key)).status
        assert (key in f) == (told == 0), key
    assert f.has_many(vectors).all() and f.has_many([str(v) for v in vectors]).all()
    assert f.has_many(absent).count() == 0


@pytest.mark.parametrize("vectors,flag", [(TEXTS, []), (INTEGERS, ["--int"])])
def test_a_filter_made_here_is_the_commands_own(ok, vectors, flag):
    (ok.path / "list").write_text("".join(f"{key}\n" for key in vectors))
    ok("build", "-o", "a.bly", *flag, "list")
    Filter.build(vectors).save(ok.path / "b.bly")
    assert (ok.path / "a.bly").read_bytes() == (ok.path / "b.bly").read_bytes()
    assert Filter.build(Column("u" if not flag else "l", vectors)).to_bytes() == (ok.path / "a.bly").read_bytes()


def test_the_filters_type_decides():
    f = Filter.build(["7", "x"])
    assert f.keys == "text" and 7 in f and "7" in f and b"7" in f and 8 not in f
    assert 2**200 not in f
    f.add(2**200)
    assert str(2**200) in f and f.has_many([2**200]).all()
    g = Filter.build([7, -1])
    assert g.keys == "int64" and "7" in g and " 007" in g and 7 in g and True not in g
    for wrong, error in ((b"7", ValueError), ("x", ValueError), (2**63, ValueError), (2**200, ValueError)):
        with pytest.raises(error, match="expected"):
            wrong in g
        with pytest.raises(error, match="expected"):
            g.has_many([wrong])
    h = Filter.build([b"\xff"])
    assert h.keys == "bytes" and b"\xff" in h and bytearray(b"\xff") in h and memoryview(b"\xff") in h
    with pytest.raises(ValueError, match="expected"):
        7 in h
    first = Filter(10)
    assert first.keys is None and "x" not in first
    first.add(2**64 - 1)
    assert first.keys == "uint64" and 2**64 - 1 in first
    assert "ABC " in Filter.build(["abc"], folded=True, trimmed=True)


@pytest.mark.parametrize("name", [p.name for p in sorted((ROOT / "tests" / "golden").glob("*.bly"))])
def test_golden_files(name, ok):
    """Files of every kind, as the command tells of them."""
    path = ROOT / "tests" / "golden" / name
    with Filter.open(path, blind=True) as f:
        told, own = ok("info", "--json", path).json, f.info()
        for field in ("kind", "capacity", "items_added", "key_type", "seed", "keyed", "layers", "params"):
            assert own[field] == told[field], field
        assert own["items_estimate"] == pytest.approx(told["items_estimate"])
        assert Filter.from_bytes(f.to_bytes(), blind=True) == f


@pytest.mark.parametrize("kind", [k["kind"] for k in kinds()] if PRESENT else [])
def test_every_kind(kind, tmp_path):
    can = next(k for k in kinds() if k["kind"] == kind)["can"]
    keys = [f"key{i}" for i in range(300)]
    values = {key: i for i, key in enumerate(keys)}
    given = values if "get" in can and "build" in can else keys
    f = Filter.build(given, kind=kind)
    assert f.kind == kind and bool(f)
    if "has" in can and kind != "generalized":
        assert all(key in f for key in keys) and f.has_many(keys).all()
        assert f.has_many(f"other{i}" for i in range(300)).count() < 60
    if "get" in can and "build" in can:
        assert [f.get(key) for key in keys] == list(range(300)) and f.get("x" * 99, "none") in (*range(512), "none")
        f.set("key5", 77)
        assert f.get("key5") == 77
    if "count" in can:
        assert f.count("key7") >= 1
    if "remove" in can and kind != "elastic":
        g = Filter(1000, kind=kind, keys="text")
        g.update(keys)
        g.remove("key7")
        with pytest.raises(KeyError):
            g.remove("never there")
    for copied in (f.copy(), copy.deepcopy(f), pickle.loads(pickle.dumps(f)), f):
        assert copied == f and copied.to_bytes() == f.to_bytes()
    f.save(tmp_path / "f.bly")
    with Filter.open(tmp_path / "f.bly") as mapped:
        assert mapped == f and mapped.info()["kind"] == kind
    if "merge" in can and "compare" in can:
        assert f.compare(f.copy())["jaccard"] == pytest.approx(1, abs=0.01) and (kind == "cuckoo" or (f | f).kind == kind)
    if "add" not in can:
        with pytest.raises(TypeError, match="these can"):
            f.add("x")


def test_no_union_misses_a_key(tmp_path):
    """Also with a file that does not say what its keys are, of a program in C or of an older version."""
    keys = {"text": ["7", "12"], "int64": [7, 30], "bytes": [b"7", b"40"], "unknown": ["7", "12"]}
    made = {}
    for name, some in keys.items():
        made[name] = Filter(1000, kind="blocked", keys=None if name == "unknown" else name)
        made[name].update(some)
    made["unknown"].save(tmp_path / "f.bly")
    run("note", tmp_path / "f.bly", "--keys", "unknown")
    made["unknown"] = Filter.open(tmp_path / "f.bly")
    for a, b in itertools.product(made, made):
        for how in "__or__", "__and__":
            try:
                both = getattr(made[a], how)(made[b])
            except ValueError as wrong:
                assert a != b and "keys" in str(wrong)
                continue
            due = set(keys[a]) | set(keys[b]) if how == "__or__" else set(keys[a]) & set(keys[b])
            assert all(key in both for key in due), (a, b, how)




# -------------------------------------------------------------------------- batches

def test_lists_of_any_mixture():
    mixed = ["a", b"b", 7, "d", 2**63, bytearray(b"e")] * 3000
    f = Filter(100, keys="text")
    f.update(mixed)
    for batch in (mixed, tuple(mixed), iter(mixed), dict.fromkeys(m for m in mixed if not isinstance(m, bytearray)),
                  collections.deque(mixed)):
        answers = f.has_many(batch)
        assert answers.all() and (not hasattr(batch, "__len__") or len(answers) == len(batch))
    wanted = [i % 3 == 0 for i in range(5000)]
    g = Filter.build([i for i in range(5000) if i % 3 == 0], fpr=1e-12)
    assert g.has_many(range(5000)).tolist() == wanted == list(g.has_many([str(i) for i in range(5000)]))


def test_a_bitmap():
    f = Filter.build([1, 3], fpr=1e-9)
    b = f.has_many([1, 2, 3])
    assert (len(b), b.count(), b.any(), b.all(), b[0], b[1], b[-1]) == (3, 2, True, False, True, False, True)
    assert list(b) == b.tolist() == [True, False, True] and bytes(b) == b"\x05" and b == f.has_many(iter([1, 2, 3]))
    assert list(itertools.compress("abc", b)) == ["a", "c"] and repr(b) == "<bloomery.Bitmap: 2 of 3 set>"
    nothing = f.has_many([])
    assert len(nothing) == 0 and not nothing.any() and nothing.all() and bytes(nothing) == b"" and nothing.tolist() == []
    for i in (3, -4):
        with pytest.raises(IndexError):
            b[i]
    with pytest.raises(TypeError):
        type(b)()


def test_arrays_of_every_width():
    for code in "bBhHiIlLqQ":
        f = Filter(1000)
        f.update(array.array(code, range(100)))
        assert f.keys == ("uint64" if array.array(code).itemsize == 8 and code.isupper() else "int64")
        assert f.has_many(range(100)).all() and f.has_many(array.array(code, range(100))).all()
        assert all(str(i) in f for i in range(100))
    g = Filter.build(array.array("b", [-1, -128]))
    assert -1 in g and -128 in g and 255 not in g
    text = Filter.build([str(i) for i in range(-50, 50)])
    assert text.has_many(array.array("i", range(-50, 50))).all()
    big = array.array("q", range(70_001))
    assert Filter.build(big).has_many(big).all()


@needs_numpy
def test_numpy():
    keys = numpy.arange(-5000, 5000)
    f = Filter.build(keys, fpr=1e-9)
    answers = f.has_many(numpy.arange(0, 10000)).to_numpy()
    assert answers.dtype == bool and answers.sum() == 5000 and answers[:5000].all()
    assert f.has_many(keys[:0]).to_numpy().shape == (0,)
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        assert f.has_many(numpy.arange(100, dtype=dtype)).all()
    assert numpy.int64(7) in f and numpy.uint8(7) in f and f.has_many(keys.astype(object)).all()
    words = Filter.build(numpy.array(["a", "bc"]))
    assert "a" in words and "bc" in words and words.has_many(numpy.array([b"bc", b"a"])).all()
    for wrong, why in ((keys[::2], "contiguous"), (keys.reshape(2, -1), "dimensions"), (keys.astype(">i8"), "byte order")):
        with pytest.raises(ValueError, match=why):
            f.has_many(wrong)
    for wrong in (keys.astype(float), keys > 0, numpy.array([1j])):
        with pytest.raises(TypeError):
            f.update(wrong)
    unaligned = numpy.frombuffer(b"\0" + keys.tobytes(), dtype=numpy.uint8)[1:].view("i8")
    assert f.has_many(unaligned).all()


def test_columns_of_arrow():
    words = [f"word{i}" for i in range(300)]
    for form in "uUzZ":
        f = Filter.build(Column(form, words, offset=3))
        assert f.keys == ("text" if form in "uU" else "bytes") and f.has_many(words).all()
    for form in "cCsSiIlL":
        f = Filter.build(Column(form, range(100), offset=1))
        assert f.has_many(range(100)).all() and f.keys == ("uint64" if form == "L" else "int64")
    holes = [w if i % 3 else None for i, w in enumerate(words)]
    f = Filter.build(Column("u", holes), fpr=1e-9)
    assert len(f) == pytest.approx(200, abs=20)
    assert f.has_many(Column("u", holes)).tolist() == [w is not None for w in holes]
    assert len(f.has_many(Column("u", []))) == 0
    bad = [(Column("g", []), TypeError, "format 'g'"), (Column("u", ["a"], n_buffers=2), ValueError, "damaged"),
           (Column("u", ["ab", "c"], offsets=[0, 2, 1]), ValueError, "order"), (Column("u", ["a"], length=-1), ValueError, "damaged"),
           (Column("u", ["ab", "c"], offsets=[-1, 2, 3]), ValueError, "order"),
           (Column("i", [1], dictionary=1), TypeError, "dictionary")]
    for column, error, why in bad:
        with pytest.raises(error, match=why):
            f.has_many(column)

    class Stream:
        def __arrow_c_stream__(self):
            raise AssertionError

    with pytest.raises(TypeError, match="one column"):
        f.update(Stream())


# ------------------------------------------------------------------------- bad input

def test_what_is_no_key():
    f = Filter(100)
    for wrong in (None, 1.5, [], object(), {}, f):
        with pytest.raises(TypeError, match="cannot be a key; expected"):
            wrong in f
        with pytest.raises(TypeError):
            f.add(wrong)
        with pytest.raises(TypeError):
            f.update(["a", wrong])
    for wrong in ("abc", b"abc", bytearray(b"abc")):
        with pytest.raises(TypeError, match="one key"):
            f.has_many(wrong)
    for wrong in (None, 5, f):
        with pytest.raises(TypeError):
            f.update(wrong)
    with pytest.raises(UnicodeEncodeError):
        "\udc80" in f
    with pytest.raises(TypeError):
        iter(f)
    with pytest.raises(TypeError):
        hash(f)


def test_exceptions_on_the_way():
    f = Filter(10000)

    def some():
        yield from map(str, range(1000))
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        f.update(some())
    assert f.has_many(map(str, range(1000))).all()  # those before it are in it, as with a set
    with pytest.raises(KeyError):
        Filter.build(some())
    with pytest.raises(KeyError):
        f.has_many(some())
    f, h = Filter(100), HyperLogLog()
    for wrong in (["a", "b", 1.5], ["c", "\udc80"], [b"d", None]):
        with pytest.raises((TypeError, UnicodeEncodeError)):
            f.update(wrong)
        with pytest.raises((TypeError, UnicodeEncodeError)):
            h.update(wrong)
    assert f.has_many(list("abcd")).all() and len(h) == 4

    class Emptying:
        def __index__(self):
            keys.clear()
            return 5

    keys = [1, Emptying(), 3]
    Filter(10).update(keys)
    assert keys == []

    class Closing:
        def __index__(self):
            g.close()
            return 5

    g = Filter(10)
    with pytest.raises(ValueError, match="closed"):
        g.update([1, Closing(), 3])
    g = Filter(10)
    with pytest.raises(ValueError, match="closed"):
        g.add(Closing())


def test_a_closed_filter(tmp_path):
    f = Filter(100)
    with f:
        f.add("a")
    assert f.closed and repr(f) == "<bloomery.Filter: closed>"
    other = Filter(100)
    for use in (lambda: "a" in f, lambda: f.add("a"), lambda: f.update(["a"]), lambda: f.has_many([]), lambda: len(f),
                lambda: bool(f), f.info, f.copy, f.to_bytes, f.verify, lambda: f.save(tmp_path / "x"), lambda: f | other,
                lambda: other & f, lambda: f == other, lambda: pickle.dumps(f), lambda: f.kind, lambda: f.keys,
                lambda: other.compare(f), lambda: f.count("a"), lambda: f.get("a"), f.__enter__,
                lambda: Filter.__new__(Filter).add("a")):
        with pytest.raises(ValueError, match="closed"):
            use()
    f.close()
    f.__init__(100)
    assert not f.closed and f.add("a")
    with pytest.raises(ValueError):
        len(HyperLogLog.__new__(HyperLogLog))


def test_what_the_library_refuses(tmp_path):
    for bad, error, why in (({"kind": "nothing", "items": 1}, ValueError, "nothing"), ({}, ValueError, "items"),
                            ({"items": -1}, ValueError, "items=-1"), ({"items": "x"}, ValueError, "items='x'"),
                            ({"items": 1.5}, ValueError, "1.5"), ({"items": []}, TypeError, "items"),
                            ({"items": 10, "fpr": 2}, ValueError, "rate|fpr"), ({"items": 10, "k": 99}, ValueError, "k"),
                            ({"items": 10, "none": 1}, ValueError, "none"), ({"items": 10, "keys": "x"}, ValueError, "keys='x'"),
                            ({"items": 10, "secret": b"x"}, ValueError, "16"), ({"items": 10, "options": 3}, TypeError, "dict"),
                            ({"items": 10**18}, (MemoryError, ValueError), "")):
        with pytest.raises(error, match=why):
            Filter(**bad)
    for name in ("items", "fpr", "bits"):  # zero is nobody's wish
        with pytest.raises(ValueError, match=f"{name}=0; expected"):
            Filter(**{"items": 10, name: 0})
    with pytest.raises(TypeError, match="use Filter.build"):
        Filter(10, kind="fuse")
    with pytest.raises(TypeError, match="position"):
        Filter(1, 2, 3)
    with pytest.raises(TypeError, match="repeated"):
        Filter(1, items=2)
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        Filter.open(tmp_path / "nowhere")
    assert caught.value.filename == str(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        Filter(10).save(tmp_path / "no" / "folder")
    for use in (Filter.open, TopK.open, Filter(10).save, TopK(3).save):
        with pytest.raises(IsADirectoryError):
            use(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        Filter(10).save(tmp_path / "file" / "f.bly")
    os.mkfifo(tmp_path / "pipe")  # whoever opened it would wait, and no signal would end that
    for use in (Filter.open, lambda path: Filter.open(path, mapped=False), HyperLogLog.open, Filter(10).save, TopK(3).save):
        with pytest.raises(OSError, match="a pipe; use"):
            use(tmp_path / "pipe")
    f = Filter.build(range(1000))
    data = bytearray(f.to_bytes())
    with pytest.raises(Error):
        Filter.from_bytes(data[:-1])
    data[len(data) // 2] ^= 1
    with pytest.raises(Error, match="damaged"):
        Filter.from_bytes(data)
    (tmp_path / "bad.bly").write_bytes(data)
    with pytest.raises(Error, match="damaged"):
        Filter.open(tmp_path / "bad.bly", check="nothing").verify()
    for how in ({}, {"check": "blocks"}, {"check": "all"}, {"mapped": False}):  # it might say no to a key that it was given
        with pytest.raises(Error, match="bad.bly: damaged"):
            Filter.open(tmp_path / "bad.bly", **how)
    f.save(tmp_path / "f.bly")
    with Filter.open(tmp_path / "f.bly") as mapped:
        for use in (lambda: mapped.add(1), lambda: mapped.update([1]), lambda: mapped.__ior__(f)):
            with pytest.raises(Error, match="read-only|mapped"):
                use()
        assert mapped.copy().add("-5")
    with pytest.raises(ValueError):
        f | Filter.build(range(1000), seed=3)
    with pytest.raises(TypeError):
        f | {1}
    with pytest.raises(TypeError, match="these can"):
        f.remove(1)
    small = Filter(64, kind="cuckoo")
    with pytest.raises(Error, match="full"):
        small.update(range(100000))


def test_a_secret():
    secret = bytes(range(16))
    f = Filter.build(["a"], secret=secret)
    data = f.to_bytes()
    assert "a" in f and "a" in Filter.from_bytes(data, secret=secret)
    blind = Filter.from_bytes(data, blind=True)
    assert blind.info()["keyed"]
    for use in (lambda: "a" in blind, lambda: blind.add("a"), lambda: blind.has_many(["a"]), lambda: blind.has_many([1]),
                lambda: blind.count("a"), lambda: Filter.from_bytes(data), lambda: Filter.from_bytes(data, secret=bytes(16))):
        with pytest.raises(Error):
            use()
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(f)


# ------------------------------------------------------------------ sets and knowing

def test_sets():
    a, b = Filter(10000, fpr=1e-6), Filter(10000, fpr=1e-6)
    a.update(range(1000))
    b.update(range(500, 1500))
    both, either = a & b, a | b
    assert either.has_many(range(1500)).all() and both.has_many(range(500, 1000)).all()
    assert len(a) == pytest.approx(1000, rel=0.1) and len(either) == pytest.approx(1500, rel=0.1)
    assert a != b and a == a.copy() and a != 5 and not a == "x"
    c = a.copy()
    c |= b
    assert c == either
    c &= b
    c |= c
    assert c.has_many(range(500, 1500)).all()
    assert a.compare(b)["jaccard"] == pytest.approx(1 / 3, abs=0.1)
    assert not Filter(10) and len(Filter(10)) == 0


def test_a_subclass():
    class Named(Filter):
        def __init__(self, *args, **how):
            super().__init__(*args, **how)
            self.name = "n"

    f = Named(100)
    f.add("a")
    assert "a" in f and f.name == "n" and type(Named.build(["a"])) is Named and type(f.copy()) is Named
    assert type(f | Filter(100)) is Filter

    class Likeness(MinHash):
        pass

    a, b = Likeness(), MinHash()
    a.update([1, 2])
    b.update([1, 2])
    assert a.jaccard(b) == b.jaccard(a) == 1 and type(a | b) is Likeness and (b | a).jaccard(a) == 1
    with pytest.raises(TypeError):
        a | HyperLogLog()
    del f
    gc.collect()


def test_plans_and_kinds(ok):
    told = {k["kind"]: k for k in ok("kinds", "--json").json}
    assert {k["kind"]: {n: k[n] for n in ("summary", "can")} for k in kinds()} == \
        {name: {n: k[n] for n in ("summary", "can")} for name, k in told.items()}
    assert [o["name"] for o in kinds()[0]["options"]] == [o["name"] for o in told[kinds()[0]["kind"]]["options"]]
    p = plan("1M", "1%")
    assert p["items"] == 10**6 and p["kind"] == kinds()[0]["kind"] and p["fpr"] <= 0.0101 and p["bits_per_key"] < 12
    assert plan(1000, kind="fuse", options={"bits": 16})["params"]["bits"] == 16
    with pytest.raises(ValueError):
        plan(items=10, fpr=0.1, bits=5)


def test_sketches(tmp_path, ok):
    h = HyperLogLog()
    h.update(range(100_000))
    n, sd = h.estimate()
    assert n == pytest.approx(100_000, abs=6 * sd) and len(h) == round(n)
    other = HyperLogLog()
    other.update(map(str, range(50_000, 150_000)))
    assert len(other) == pytest.approx(100_000, rel=0.06)
    with pytest.raises(ValueError):
        h | other
    other = HyperLogLog()
    other.update(array.array("q", range(50_000, 150_000)))
    assert len(h | other) == pytest.approx(150_000, rel=0.06)
    t = TopK(3)
    t.update(["a"] * 50 + ["b"] * 30 + ["c"] * 20 + [7] * 10)
    t.add("b", 100)
    assert t.most_common() == [("b", 130), ("a", 50), ("c", 20)] and t.total == 210 and len(t) == 3 and t.count("a") == 50
    raw = TopK(2, keys="bytes")
    raw.add(b"\xff")
    assert raw.most_common() == [(b"\xff", 1)]
    a, b = MinHash(256), MinHash(256)
    a.update(range(1000))
    b.update(range(500, 1500))
    assert a.jaccard(b) == pytest.approx(1 / 3, abs=0.15) and a.jaccard(a.copy()) == 1
    text = MinHash()
    text.add_text("the quick brown fox jumps over the lazy dog")
    assert text.jaccard(text) == 1
    for s in (h, t, a):
        s.save(tmp_path / "s.bly")
        again = type(s).open(tmp_path / "s.bly")
        assert again.to_bytes() == s.to_bytes() == pickle.loads(pickle.dumps(s)).to_bytes() == copy.copy(s).to_bytes()
        with pytest.raises(ValueError, match="of type"):
            (TopK if s is h else HyperLogLog).open(tmp_path / "s.bly")
        with pytest.raises(Error):
            Filter.open(tmp_path / "s.bly")
        with pytest.raises(Error):
            type(s).from_bytes(s.to_bytes()[:-1])
    (ok.path / "list").write_text("".join(f"{i}\n" for i in range(1000)))
    ok("distinct", "-o", "d.bly", "list")
    there = HyperLogLog()
    there.update(str(i) for i in range(1000))
    assert there.to_bytes() == (ok.path / "d.bly").read_bytes()


def test_threads():
    """Readers, writers and closers of the same objects; what was added is found."""
    f, wrong = Filter(100_000), []

    def work(n):
        for i in range(10):
            mine = array.array("q", range(n * 5000 + i * 500, n * 5000 + i * 500 + 500))
            f.update(mine)
            if not f.has_many(mine).all() or not all(k in f for k in mine[:50]):
                wrong.append(n)
            f.info()
            f.copy()
            f.__ior__(f.copy())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


# -------------------------------------------------------------------- package

def test_docstrings_and_types():
    """Everything public has a docstring and a line in the stubs."""
    stubs = (FOLDER / "bloomery" / "__init__.pyi").read_text()
    compile(stubs, "__init__.pyi", "exec")
    for name in bloomery.__all__:
        thing = getattr(bloomery, name)
        assert thing.__doc__ and thing.__module__ == "bloomery" and (f"class {name}" in stubs or f"def {name}" in stubs), name
        for member in [m for m in vars(thing) if not m.startswith("_")] if isinstance(thing, type) else []:
            assert getattr(thing, member).__doc__ and f"def {member}(" in stubs, f"{name}.{member}"


@pytest.mark.skipif(FOLDER != BUILD / "python", reason="sanitizers need more room than that")
def test_no_memory(tmp_path):
    Filter(20_000_000).save(tmp_path / "f.bly")
    code = """if True:
        import resource
        from bloomery import Filter
        f, data = Filter(20_000_000), open("f.bly", "rb").read()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 8_000_000, -1))
        for use in (f.copy, f.to_bytes, lambda: f | f, lambda: Filter.from_bytes(data), lambda: Filter.open("f.bly"),
                    lambda: Filter.build(range(10**7)), lambda: Filter(20_000_000)):
            try:
                use()
            except MemoryError:
                print("no memory")
        f.add("a")
        assert "a" in f"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path,
                         env={"PYTHONPATH": str(FOLDER)}).stdout
    assert out == "no memory\n" * 7


@pytest.mark.skipif(FOLDER != BUILD / "python", reason="another build than the wheel's")
def test_only_the_stable_abi():
    """Nothing of the interpreter but what its stable ABI has."""
    symbols = subprocess.run(["nm", "-D", FOLDER / "bloomery" / "_bloomery.abi3.so"], check=True, capture_output=True,
                             text=True).stdout
    assert " T PyInit__bloomery" in symbols and " T bly_" not in symbols
    own = {line.split()[-1] for line in symbols.splitlines() if line.split()[-1].startswith("_Py")}
    assert own <= {"_PyArg_ParseTuple_SizeT", "_PyObject_CallMethod_SizeT", "_Py_BuildValue_SizeT", "_Py_Dealloc",
                   "_Py_NoneStruct", "_Py_NotImplementedStruct", "_Py_TrueStruct", "_Py_FalseStruct"}


@pytest.mark.skipif(FOLDER != BUILD / "python", reason="another build than the wheel's")
def test_the_wheel(tmp_path):
    made = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        subprocess.run([ROOT / "tools" / "wheel", BUILD / "python", bloomery.__version__, tmp_path / folder], check=True,
                       stdout=subprocess.DEVNULL)
        made += (tmp_path / folder).glob("*.whl")
    assert made[0].name == made[1].name and made[0].read_bytes() == made[1].read_bytes()
    assert f"-{bloomery.__version__}-cp311-abi3-" in made[0].name and "linux" in made[0].name
    target = tmp_path / "target"
    pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if pip.returncode == 0:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-cache-dir", "--target", target,
                        made[0]], check=True, stderr=subprocess.DEVNULL)
    else:
        zipfile.ZipFile(made[0]).extractall(target)
    record = next(target.glob("*.dist-info/RECORD"))
    named = {row[0] for row in csv.reader(record.read_text().splitlines())}
    with zipfile.ZipFile(made[0]) as z:
        assert set(z.namelist()) <= named
    code = "import bloomery; assert 'a' in bloomery.Filter.build(['a']); print(bloomery.__file__)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/",
                         env={"PYTHONPATH": str(target)}).stdout
    assert pathlib.Path(out.strip()).parent == target / "bloomery"


def test_the_page(tmp_path, monkeypatch):
    """What docs/python.md shows is what comes out."""
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False,
                                     optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tried > 10 and not failed


# ----------------------------------------------------------------- sanitizers

needs_sanitizers = pytest.mark.skipif(
    "BLY_PYTHON" in os.environ or not (SANITIZED / ".done").exists() or not sanitizers_library(),
    reason="build/asan/python or the sanitizers' library is not there, or it runs already")


def sanitized(*argv):
    done = subprocess.run([sys.executable, *map(str, argv)], check=False, capture_output=True, text=True, cwd=ROOT / "tests",
                          env={**os.environ, **sanitizers(), "PYTHONMALLOC": "malloc", "BLY_PYTHON": str(SANITIZED)})
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


@needs_sanitizers
def test_random_calls():
    for seed in range(20 if FULL else 1):
        assert "fine" in sanitized("python_fuzz.py", seed, 20000 if FULL else 1000)


@needs_sanitizers
def test_these_tests_with_sanitizers():
    """All of this file again, with every lock taken."""
    assert " passed" in sanitized("-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", "test_python.py",
                                  *([] if FULL else ["-k", "not golden and not every_kind and not command and not numpy"]))


def declared():
    """(class or None, function, names of its parameters) of the type hints."""
    for node in ast.parse((ROOT / "bindings" / "python" / "bloomery" / "__init__.pyi").read_text()).body:
        for f in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(f, ast.FunctionDef) and not any(getattr(d, "id", "") in ("overload", "property") for d in f.decorator_list):
                a = f.args
                names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs if x.arg not in ("self", "cls")]
                yield node.name if isinstance(node, ast.ClassDef) else None, f.name, names, bool(a.kwarg)


def test_signatures():
    """What help() and editors show is what the type hints declare."""
    seen = 0
    for owner, name, names, more in declared():
        if owner in ("_ArrowColumn", "_Sketch", "Bitmap") or name.startswith("__") and name != "__init__":
            continue
        what = getattr(bloomery, owner) if owner else bloomery
        signature = inspect.signature(what if name == "__init__" else getattr(what, name))
        kinds = [p.kind for p in signature.parameters.values()]
        has = [p.name for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD and p.name != "self"]
        assert sorted(has) == sorted(names), (owner, name)
        assert (inspect.Parameter.VAR_KEYWORD in kinds) == more, (owner, name)
        seen += 1
    assert seen > 25


def test_a_filter_is_shown_in_few_digits():
    assert repr(Filter(1000, 0.01)) == "<bloomery.Filter: blocked, capacity 1000, fpr 0.00927>"
    assert "0.009269931" in str(Filter(1000, 0.01).info()["fpr_at_capacity"])


def test_sketches_are_shown_by_what_they_hold():
    h, t, m = HyperLogLog(), TopK(2), MinHash(unit="chars", size=9)
    h.update(range(1000))
    t.update("a rose is a rose is a rose".split())
    assert repr(h) == "<bloomery.HyperLogLog: about 1000 keys, precision 14>"
    assert repr(t) == "<bloomery.TopK: 2 of at most 2 keys, total 8>"
    assert repr(m) == "<bloomery.MinHash: 128 components, shingles of 9 chars>"
    assert repr(MinHash()) == "<bloomery.MinHash: 128 components, shingles of 5 words>"
    for kind in HyperLogLog, TopK, MinHash:
        with pytest.raises(ValueError):
            repr(kind.__new__(kind))


def test_a_plain_bloom_filter_has_another_name():
    for name in "bloom", "standard":
        with pytest.raises(ValueError, match=f"no kind '{name}', a plain Bloom filter is 'classic'; there are: blocked, classic"):
            Filter(10, kind=name)
    with pytest.raises(ValueError, match="no kind 'nosuch'; there are: blocked"):
        Filter(10, kind="nosuch")
