"""Random calls of the Python package, by one thread and by several.

    python_fuzz.py SEED CALLS

Run with the sanitizers' library before all others. Every answer is right or one
of Python's exceptions, a key that was added is always found, and the memory of
the process does not grow: the second half of the calls repeats the first.
"""
import array
import ctypes
import gc
import os
import pickle
import random
import sys
import tempfile
import threading

from python_support import Column
from bloomery import Error, Filter, HyperLogLog, MinHash, TopK, kinds, plan

FAIR = (Error, ValueError, TypeError, MemoryError, OSError, KeyError, OverflowError, BufferError, IndexError)
NAMES = [k["kind"] for k in kinds()]


class Broken:
    def __index__(self):
        raise ValueError("no index")

    def __iter__(self):
        yield "a"
        raise KeyError("broken on the way")


class Liar(list):
    """Changes while it is read."""

    def __iter__(self):
        for i in range(5):
            self.append(i)
            yield str(i)


class Clearing:
    """Empties the list that it is in."""

    def __init__(self, inside):
        self.inside = inside

    def __index__(self):
        self.inside.clear()
        return 7


def keys(rng):
    return rng.choice([
        lambda: "", lambda: "a", lambda: "\u00f6" * rng.randrange(9), lambda: "x" * rng.randrange(3000), lambda: "\udc80",
        lambda: b"", lambda: bytes(rng.randrange(20)), lambda: bytearray(b"z"), lambda: memoryview(b"abcd")[::2],
        lambda: 7, lambda: -1, lambda: 2**63, lambda: 2**64 - 1, lambda: 2**200, lambda: -2**200, lambda: True,
        lambda: None, lambda: 1.5, lambda: "7", Broken, list, object, lambda: array.array("q", [1])])()


def clearing():
    inside = [1, 2]
    inside.insert(1, Clearing(inside))
    return inside


def batches(rng):
    n = rng.choice([0, 1, 2, 63, 64, 65, 600, 2000])
    return rng.choice([
        lambda: [str(i) for i in range(n)], lambda: list(range(n)), lambda: tuple(b"%d" % i for i in range(n)),
        lambda: [keys(rng) for _ in range(5)], lambda: ["a", 1, b"b", 2**63, "c"] * (n // 9), lambda: iter(range(n)),
        lambda: {str(i): i for i in range(n)}, lambda: {i for i in range(n)}, lambda: (str(i) for i in range(n)),
        lambda: array.array(rng.choice("bBhHiIlLqQ"), [i % 100 for i in range(n)]),
        lambda: array.array("d", [0.5]), lambda: memoryview(array.array("i", range(n)))[::2],
        lambda: memoryview(bytes(range(6))).cast("B", (2, 3)), lambda: b"abc", lambda: "abc", lambda: None, lambda: 5,
        Broken, Liar, clearing,
        lambda: Column(rng.choice("uUzZ"), [str(i) for i in range(n)], offset=rng.randrange(3)),
        lambda: Column(rng.choice("cCsSiIlL"), [i % 100 for i in range(n)]),
        lambda: Column("u", ["a", None, "b"] * (n // 3)), lambda: Column("l", [1, None] * (n // 2), offset=1),
        lambda: Column("u", ["a", "b"], offsets=[0, 9, 1]), lambda: Column("g", []), lambda: Column("u", ["a"], length=-1),
        lambda: Column("u", ["a"], n_buffers=2), lambda: Column("l", [1], release=type(Column("l", [1]).array.release)())])()


def specs(rng):
    spec = {}
    if rng.random() < 0.8:
        spec["items"] = rng.choice([1, 10, 1000, 0, -1, "1k", "x", 1e3, 1.5, 2**70, 10**19])
    if rng.random() < 0.4:
        spec["fpr"] = rng.choice([0.01, 0.5, 0, 1, 2, "1%", float("nan"), None, "x"])
    if rng.random() < 0.6:
        spec["kind"] = rng.choice(NAMES + ["nothing", "", 5])
    if rng.random() < 0.3:
        spec["keys"] = rng.choice(["text", "bytes", "int64", "uint64", "float", 3])
    if rng.random() < 0.1:
        spec[rng.choice(["k", "bits", "seed", "max_bytes", "folded", "options", "secret", "none"])] = rng.choice(
            [1, 1000, True, {"k": 3}, b"0" * 16, b"0", "x"])
    return spec


def make(rng):
    return rng.choice([
        lambda: Filter(**specs(rng)), lambda: Filter.build(batches(rng), **specs(rng)), lambda: Filter(1000),
        lambda: Filter.__new__(Filter), lambda: Filter(100, kind="counting"), lambda: Filter(100, kind="cuckoo"),
        lambda: HyperLogLog(rng.randrange(20)), lambda: TopK(rng.randrange(20)), lambda: MinHash(rng.randrange(600)),
        lambda: HyperLogLog(), lambda: MinHash(), lambda: TopK(3, keys="bytes")])()


def damaged(rng, some):
    data = bytearray(some.to_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return type(some).from_bytes(data[:rng.choice([len(data), rng.randrange(len(data))])])


def files(rng, some, path):
    some.save(path)
    return type(some).open(path)


def call(rng, pool, path):
    some, other = rng.choice(pool), rng.choice(pool)
    return rng.choice([
        lambda: keys(rng) in some, lambda: some.add(keys(rng)), lambda: some.update(batches(rng)),
        lambda: some.remove(keys(rng)), lambda: some.count(keys(rng)), lambda: some.get(keys(rng)),
        lambda: some.set(keys(rng), rng.choice([1, -1, 2**64, None])),
        lambda: list(some.has_many(batches(rng))), lambda: some.has_many(batches(rng)).tolist(),
        lambda: bytes(some.has_many(batches(rng))), lambda: some.has_many([1, 2])[rng.randrange(-3, 4)],
        lambda: some | other, lambda: some & other, lambda: some == other, lambda: some.compare(other),
        lambda: some.__ior__(other), lambda: some.__iand__(other), lambda: some.jaccard(other),
        lambda: len(some), lambda: bool(some), lambda: repr(some), lambda: some.info(), lambda: some.copy(),
        lambda: pickle.loads(pickle.dumps(some)), lambda: damaged(rng, some), lambda: files(rng, some, path),
        lambda: some.verify(), lambda: some.estimate(), lambda: some.most_common(), lambda: some.add_text("a b c d e f"),
        lambda: some.add("x", rng.choice([1, 2**64, -1])), lambda: some.open("/nowhere"), lambda: some.open(path),
        lambda: some.__init__(**specs(rng)), lambda: some.close() if rng.random() < 0.2 else None,
        lambda: Filter.from_bytes(keys(rng)), lambda: plan(**specs(rng)), lambda: some.kind, lambda: some.keys,
        lambda: some.nbytes, lambda: some.closed, lambda: some.has_many(other), lambda: some.__exit__(None, None, None)
        if rng.random() < 0.1 else some.__enter__()])()


def storm(seed, calls, pool=None):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.bly")
        pool = pool or [Filter(1000), HyperLogLog(), TopK(5), MinHash()]
        for _ in range(calls):
            try:
                if rng.random() < 0.15:
                    new = make(rng)
                    pool[rng.randrange(len(pool))] = new
                    if len(pool) < 12:
                        pool.append(new)
                else:
                    call(rng, pool, path)
            except FAIR:
                pass
            except AttributeError as error:  # a call that the other type has
                assert "bloomery." in str(error), error


def never_forgets(seed):
    rng = random.Random(seed)
    f, known = Filter(20000, keys="text"), set()
    for _ in range(200):
        batch = [rng.choice([str, lambda i: str(i).encode(), int])(rng.randrange(10000)) for _ in range(rng.randrange(100))]
        f.update(batch)
        known.update(int(b) for b in batch)
        if known:
            asked = rng.sample(sorted(known), min(9, len(known)))
            assert all(f.has_many([str(a) for a in asked])) and all(a in f for a in asked)


def threads(seed, calls):
    """All of them on the same objects, and on one filter that must not forget."""
    pool = [Filter(1000), Filter(100, kind="counting"), HyperLogLog(), TopK(5), MinHash(), Filter(1000)]
    kept, wrong = Filter(100000, keys="int64"), []

    def work(n):
        try:
            storm(seed + n, calls, list(pool))
            for i in range(20):
                mine = array.array("q", range(n * 10000 + i * 100, n * 10000 + i * 100 + 100))
                kept.update(mine)
                kept.add(n * 10000 + i)
                if not kept.has_many(mine).all():
                    wrong.append((n, i))
        except BaseException as error:
            wrong.append(error)
            raise
    all_of_them = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    assert not wrong, wrong


def main():
    seed, calls = int(sys.argv[1]), int(sys.argv[2])
    sys.setswitchinterval(1e-5)
    held = getattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes", None)
    if held:
        held.restype = ctypes.c_size_t
    storm(seed, calls)
    storm(seed, calls)
    gc.collect()
    most = 20000 + 4 * calls
    for _ in range(3):  # a table of the interpreter's may grow once; what leaks does so each time
        before = held() if held else 0
        storm(seed, calls)
        gc.collect()
        grown = held() - before if held else 0
        if grown < most:
            break
    assert grown < most, f"{grown} bytes more after the same {calls} calls"
    never_forgets(seed)
    threads(seed, calls // 4)
    print("fine", grown)


main()
