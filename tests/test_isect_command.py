"""isect: what all of several lists have, on one machine or on several; the
result is that of sets, the bytes are those of the formula."""
import math
import random

import pytest
from test_sync_command import Liar, hello, listed, serving, varint
from wire_support import frame


def lists(folder, sizes, common, seed=1):
    chance = random.Random(seed)
    shared = [b"all %d" % i for i in range(common)]
    made = []
    for k, n in enumerate(sizes):
        own = [b"%d %d %x" % (k, i, chance.getrandbits(40))
               for i in range(n - common)]
        lines = shared + own
        chance.shuffle(lines)
        listed(folder / f"l{k}", lines)
        made.append(set(lines))
    return made


@pytest.mark.parametrize("sizes, common", [
    ((10, 10), 0), ((10, 10), 10), ((1000, 10000), 100), ((50, 400, 9000), 20),
    ((0, 500), 0), ((3000, 20, 700, 5000), 5), ((1, 1), 1)])
def test_the_result_is_that_of_sets(bly, sizes, common):
    made = lists(bly.path, sizes, common)
    names = [f"l{k}" for k in range(len(sizes))]
    got = bly("isect", *names)
    exact = set.intersection(*made)
    assert got.status == (0 if exact else 1), got.err
    assert set(got.raw.split(b"\n")) - {b""} == exact
    assert bly("isect", "-c", *names).out == f"{len(exact)}\n"


def test_bytes_are_those_of_the_formula(ok):
    lists(ok.path, (1000, 10000), 100)
    report = ok("isect", "l1", "l0", "--json").json
    a, b, j = 1000, 10000, 64
    m = a * math.log(2.081 * a / (b * j)) / math.log(0.6185)
    expected = m + (100 + 0.6185 ** (m / a) * (b - 100)) * j
    assert abs(8 * report["bytes"] / expected - 1) < 0.06
    assert [x["name"] for x in report["lists"]] == ["l0", "l1"]
    assert report["common"] == 100 and report["plain"] == 8000
    assert report["lists"][1]["passed"] == 100 + report["falsely"]


def test_lists_on_other_machines(ok):
    made = lists(ok.path, (300, 4000, 2000), 30)
    with serving(ok.path, "l1") as one, serving(ok.path, "l2") as two:
        here = ok("isect", "l0", one, two)
        there = ok("isect", one, two)
        report = ok("isect", "l0", one, two, "--json").json
    assert set(here.raw.split()) == set(
        b" ".join(made[0] & made[1] & made[2]).split())
    assert set(there.raw.split(b"\n")) - {b""} == made[1] & made[2]
    assert report["moved"] > report["bytes"]


def test_wrong_words(trouble):
    lists(trouble.path, (10, 10), 5)
    trouble("isect", "l0", says="2 to 64")
    trouble("isect", "l0", "nothing", says="nothing")
    trouble("isect", "l0", "127.0.0.1:1", says="127.0.0.1:1")


@pytest.mark.parametrize("lie", [
    lambda t, q: None,
    lambda t, q: b"HTTP/1.1 400 Bad\r\n",
    lambda t, q: hello(1, 500) if t == 1 else frame(bytes([t])),
    lambda t, q: hello(1, 500) if t == 1 else frame(bytes([t]), varint(2**60)),
    lambda t, q: hello(1, 2**62) if t == 1 else None,
])
def test_peers_that_lie(bly, lie):
    lists(bly.path, (100,), 5)
    with Liar(lie) as at:
        got = bly("isect", "l0", at)
    assert got.status == 2 and got.raw == b""
    assert len(got.err.splitlines()) == 1
