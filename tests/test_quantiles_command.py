"""bloomery quantiles, beside a sort of the same numbers."""
import json
import math
import random

import pytest


def exact(values, percent):
    """The values that may be called that percentile."""
    at = percent / 100 * len(values)
    values = sorted(values)
    low = max(0, math.ceil(at) - 1)
    return values[low], values[min(len(values) - 1, math.floor(at))]


def pairs(done):
    return {float(a): float(b) for a, b in
            (line.split("\t") for line in done.lines)}


def numbers(values):
    return "".join(f"{v}\n" for v in values)


def test_few_numbers_are_exact(ok):
    assert ok("quantiles", "-q", "0,50,100", stdin="3\n1\n2\n").lines == \
        ["0\t1", "50\t2", "100\t3"]
    assert ok("quantiles", "--quiet", "-q", "50", stdin="7\n").out == "50\t7\n"
    assert ok("quantiles", "-q", "50", stdin="").out == "50\tnan\n"
    assert ok("quantiles", "--json", "-q", "50", stdin="").json == {
        "values": 0, "min": None, "max": None,
        "quantiles": [{"percent": 50, "value": None, "deviation": None}]}


def test_every_form_of_a_number(ok, bly):
    text = " 1\n+2\n-3.5\n4e0\n.5\n6.\t\n7E-1\r\n" + "0" * 300 + "8\n"
    told = ok("quantiles", "--json", "-q", "0,100", stdin=text).json
    assert (told["values"], told["min"], told["max"]) == (8, -3.5, 8)
    bad = ["x", "", "nan", "inf", "0x1", "1e999", "1 2", "1,5", "--1", "\u0661"]
    done = bly("quantiles", "-q", "50", stdin="1\n" + numbers(bad))
    assert (done.status, done.out) == (2, "50\t1\n")
    for i, word in enumerate(bad):
        assert f"line {i + 2}: '{word}' is not a number" in done.err
    assert "10 lines" in done.err
    assert ok("quantiles", "-q", "50", "--skip-bad",
              stdin="1\n" + numbers(bad)).out == "50\t1\n"


def test_one_is_not_many_and_lines_of_windows(ok):
    assert "1 value from 5 to 5" in ok("quantiles", stdin="5\n").err
    grouped = ok("quantiles", "--field", 2, "--by", 1, stdin="a\t5\n").err
    assert "1 group of 1 value;" in grouped
    done = ok("quantiles", "-q", "100", stdin="5\r\n6\r\n")
    assert done.out == "100\t6\n" and "CR" not in done.err


@pytest.mark.parametrize("draw", [
    lambda rng: rng.random(), lambda rng: rng.gauss(0, 5),
    lambda rng: rng.lognormvariate(3, 2), lambda rng: rng.randrange(10**9)])
def test_near_a_sort_of_the_same(ok, draw):
    rng = random.Random(3)
    values = [draw(rng) for _ in range(50000)]
    told = ok("quantiles", "--json", "-q", "0,0.1,1,25,50,90,99,99.9,100",
              stdin=numbers(values)).json
    ordered = sorted(values)
    for q in told["quantiles"]:
        below = sum(v < q["value"] for v in ordered) / len(values)
        upto = sum(v <= q["value"] for v in ordered) / len(values)
        share = q["percent"] / 100
        off = max(0, below - share, share - upto)
        assert off <= 5 * q["deviation"] + 1e-12, q
    assert told["min"] == ordered[0] and told["max"] == ordered[-1]


def test_threads_and_packing_change_nothing(ok):
    rng = random.Random(8)
    (ok.path / "n").write_text(numbers(rng.gauss(0, 1) for _ in range(300000)))
    first = ok("quantiles", "-t", 1, "n").out
    assert ok("quantiles", "-t", 4, "n").out == first
    assert ok("quantiles", "-t", 3, stdin=(ok.path / "n").read_text()).out == \
        first


def test_fields(ok):
    csv = "route,ms\n" + "".join(f"/{i % 3},{i}\n" for i in range(999))
    assert pairs(ok("quantiles", "--csv", "ms", "-q", "0,50,100", stdin=csv)) \
        == {0: 0, 50: 499, 100: 998}
    by = ok("quantiles", "--csv", "ms", "--by", "route", "-q", "0,100",
            stdin=csv).lines
    assert by == ["/0\t333\t0\t996", "/1\t333\t1\t997", "/2\t333\t2\t998"]
    jsonl = "".join(json.dumps({"r": i % 2, "t": {"ms": i / 4}}) + "\n"
                    for i in range(100))
    told = ok("quantiles", "--jsonl", "t.ms", "--by", "r", "--json", "-q", "50",
              stdin=jsonl).json
    assert [g["group"] for g in told["groups"]] == ["0", "1"]
    assert told["values"] == 100
    many = "".join(f"g{i % 5000}\t{i}\n" for i in range(20000))
    assert len(ok("quantiles", "--field", 2, "--by", 1, stdin=many).lines) == \
        5000


def test_sketches(ok, trouble):
    rng = random.Random(1)
    values = [rng.expovariate(0.1) for _ in range(30000)]
    for i in range(3):
        (ok.path / f"n{i}").write_text(numbers(values[i::3]))
        ok("quantiles", f"n{i}", "-o", f"n{i}.bly")
    assert ok("quantiles", "n0.bly").out == ok("quantiles", "n0").out
    assert ok("info", "--json", "n0.bly").json["sketch"] == "tdigest"
    assert "tdigest" in ok("info", "n0.bly").out
    ok("merge", "-o", "all.bly", "n0.bly", "n1.bly", "n2.bly")
    told = ok("quantiles", "--json", "-q", "50,99", "all.bly").json
    assert told["values"] == 30000
    assert (told["min"], told["max"]) == (min(values), max(values))
    for q in told["quantiles"]:
        below = sum(v < q["value"] for v in values) / len(values)
        assert abs(below - q["percent"] / 100) < 5 * q["deviation"]
    assert ok("quantiles", "--json", "n0.bly", "n1").json["values"] == 20000
    assert (ok.path / "all.bly").stat().st_size < 8000
    ok("distinct", "n0", "-o", "hll.bly")
    trouble("quantiles", "hll.bly", says=["hyperloglog", "tdigest"])
    trouble("merge", "-o", "x.bly", "hll.bly", "n0.bly", says="do not go together")
    trouble("quantiles", "--by", 1, "--field", 2, "n0.bly", says="--by")


def test_a_picture(ok):
    ok("quantiles", "--plot", "p.svg", stdin=numbers(range(1, 5000)))
    assert "<svg" in (ok.path / "p.svg").read_text()
    ok("quantiles", "--plot", "g.svg", "--field", 2, "--by", 1,
       stdin="".join(f"g{i % 12}\t{i}\n" for i in range(1000)))
    assert "8 largest of 12 groups" in (ok.path / "g.svg").read_text()


@pytest.mark.parametrize("words, says", [
    (["-q", "x"], "numbers from 0 to 100"), (["-q", "101"], "from 0 to 100"),
    (["-q", "50,"], "from 0 to 100"), (["-q", "nan"], "from 0 to 100"),
    (["-q", ",".join(["1"] * 65)], "more than 64"),
    (["--by", "1", "--field", "2", "-o", "x"], "-o or --by"),
])
def test_mistakes(trouble, words, says):
    trouble("quantiles", *words, stdin="1\n", says=says)
