#!/usr/bin/python3
"""The Python package beside Python's own set and what Debian offers.

    PYTHONPATH=build/python /usr/bin/python3 bench/python.py [KEYS]

Rounds alternate, and the least of each counts; everything comes from one
process on one core. Single questions ask for keys in the order of their list,
half of which are in the set; the time of the empty loop is taken off all. The
floor of any container is `key in ()`. Keys are asked for as the objects that the
set was made of, whose hashes Python has kept, and as new texts, whose hashes it
has yet to compute. The
machine's floor for a batch of integers is bly_has_ints() on a filter of the
same size, which is what `bloomery bench` measures; here it is approximated from
below by NumPy's own sum of the array, one addition per key.
"""
import gc
import itertools
import os
import subprocess
import sys
import time

import bloomery
from bloomery import Filter

ROUNDS = 5


def least(*functions, rounds=ROUNDS):
    """Seconds of each, the least of alternating rounds."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, f in enumerate(functions):
            gc.collect()
            begin = time.perf_counter()
            f()
            best[i] = min(best[i], time.perf_counter() - begin)
    return best


def loop(keys, container):
    for key in keys:
        key in container  # pylint: disable=pointless-statement


def empty(keys):
    for key in keys:
        key  # pylint: disable=pointless-statement


def told(what, n, base, floor, theirs, ours):
    print(f"`in`, {n:>9,} {what}: () {1e9 * (floor - base) / n:4.1f} ns, set {1e9 * (theirs - base) / n:6.1f} ns, "
          f"Filter {1e9 * (ours - base) / n:6.1f} ns: {(ours - base) / (theirs - base):.2f} times "
          f"(with the loop {ours / theirs:.2f})")


def singles(n):
    keys = [f"user:{i:012d}" for i in range(n)]
    own = keys[:n // 2]
    containers = ((), set(own), Filter.build(own))
    times = max(1, 1_000_000 // n)
    told("str", n, *(t / times for t in least(
        lambda: [empty(keys) for _ in range(times)],
        *(lambda c=c: [loop(keys, c) for _ in range(times)] for c in containers), rounds=2 * ROUNDS)))

    def fresh(ask):
        new = [f"user:{i:012d}" for i in range(n)]
        begin = time.perf_counter()
        ask(new)
        return time.perf_counter() - begin
    asks = (empty, *(lambda new, c=c: loop(new, c) for c in containers))
    rounds = [[fresh(ask) for ask in asks] for _ in range(max(2 * ROUNDS, 100_000 // n))]
    told("new", n, *map(min, zip(*rounds)))


def integers(n):
    try:
        import numpy as np
    except ImportError:
        print("NumPy is not here")
        return
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2**62, n)
    f = Filter.build(keys)
    other = rng.integers(0, 2**62, n)
    with_lock = least(lambda: f.has_many(keys), lambda: f.has_many(other), lambda: keys.sum(),
                      lambda: f.update(keys), lambda: np.isin(other[:n // 10], keys[:n // 10]))
    yes, no, floor, add, isin = with_lock
    print(f"NumPy int64, {n:,} keys, a filter of {f.nbytes:,} bytes:")
    for what, t in (("has_many, all in it", yes), ("has_many, none in it", no), ("update", add)):
        print(f"    {what:22s} {n / t / 1e6:7.1f} million keys per second, {t / floor:5.1f} times the sum of the array")
    print(f"    {'numpy.isin, a tenth':22s} {n / 10 / isin / 1e6:7.1f} million keys per second")


def building(n):
    keys = [f"user:{i:012d}" for i in range(n)]
    ours, told, theirs = least(lambda: Filter.build(keys), lambda: Filter.build(keys, items=n), lambda: set(keys), rounds=3)
    held = Filter.build(keys)
    table = sys.getsizeof(set(keys))
    texts = sum(map(sys.getsizeof, itertools.islice(keys, 1000))) / 1000 * n
    print(f"building from {n:,} str: set {theirs:.2f} s; Filter.build(list) {ours:.2f} s: {ours / theirs:.2f} times; "
          f"with items= {told:.2f} s: {told / theirs:.2f} times")
    print(f"    held: set {table / 1e6:.0f} MB and {texts / 1e6:.0f} MB of str that it keeps alive; "
          f"Filter {held.nbytes / 1e6:.1f} MB: 1/{table / held.nbytes:.0f} of the table, "
          f"1/{(table + texts) / held.nbytes:.0f} of both")


PEAK = """
import sys
sys.path[:0] = {path!r}
from bloomery import Filter
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
keys = [f"user:{{i:012d}}" for i in range({n})]
open("/proc/self/clear_refs", "w").write("5")
before = most()
result = {what}
print(most() - before)
"""


def peaks(n):
    def peak(what):
        code = PEAK.format(path=sys.path, n=n, what=what)
        return int(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout) / 1024
    theirs, ours, told = peak("set(keys)"), peak("Filter.build(keys)"), peak(f"Filter.build(keys, items={n})")
    print(f"    peak above the list: set {theirs:.0f} MiB, Filter.build(list) {ours:.0f} MiB, with items= {told:.0f} MiB")


def others(n):
    """Debian's python3-flor, the only filter for Python that it has."""
    try:
        from flor import BloomFilter
    except ImportError:
        print("python3-flor is not here")
        return
    keys = [b"user:%012d" % i for i in range(n)]
    ours, theirs = Filter(n, 0.01), BloomFilter(n=n, p=0.01)

    def add_all(f):
        for key in keys:
            f.add(key)
    a, b = least(lambda: add_all(ours), lambda: add_all(theirs), rounds=2)
    c, d = least(lambda: loop(keys, ours), lambda: loop(keys, theirs), rounds=2)
    print(f"beside python3-flor, {n:,} bytes: add {1e9 * a / n:.0f} ns against {1e9 * b / n:.0f} ns ({b / a:.0f} times), "
          f"in {1e9 * c / n:.0f} ns against {1e9 * d / n:.0f} ns ({d / c:.0f} times)")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"bloomery {bloomery.__version__}, Python {sys.version.split()[0]}")
    for size in (1000, 10_000, 100_000, n // 10):
        singles(size)
    integers(n)
    building(n)
    peaks(n)
    others(min(n, 100_000))


main()
