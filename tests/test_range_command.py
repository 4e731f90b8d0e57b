"""has --range and --ranges: is any key from A to B?"""
import bisect
import json
import random

import pytest

NUMBERS = sorted({x * x * 7 for x in range(-3000, 3000)})


def lines(words):
    return "".join(f"{word}\n" for word in words)


@pytest.fixture
def numbers(ok):
    """Squares and their opposites; ranges of up to a thousand."""
    keys = sorted({n * (1 if i % 2 else -1) for i, n in enumerate(NUMBERS)})
    # A block of keys moves as a whole, so that one seed may be unlucky where the mean of many is not.
    ok("build", "--kind", "range", "--int", "--seed", 1, "-O", "longest=1000", "-p", "0.1%", "-o", "f.bly",
       stdin=lines(keys))
    return keys


def holds(keys, a, b):
    at = bisect.bisect_left(keys, a)
    return at < len(keys) and keys[at] <= b


def test_against_a_sorted_list(ok, bly, numbers):
    draw = random.Random(1)
    ranges = []
    for i in range(4000):
        a = draw.choice(numbers) + draw.randrange(-3000, 3000) if i % 2 else draw.randrange(-2 ** 63, 2 ** 62)
        ranges.append((a, a + draw.randrange(1, 1000)))
    said = set(bly("has", "f.bly", "--ranges", stdin=lines(f"{a}..{b}" for a, b in ranges)).lines)
    wrong = 0
    for a, b in ranges:
        maybe = f"{a}..{b}" in said
        assert maybe or not holds(numbers, a, b), "a wrong no is never said"
        wrong += maybe and not holds(numbers, a, b)
    assert wrong <= 4000 * 0.001 + 12  # its blocks move together: some more than by chance
    info = ok("info", "--json", "f.bly").json
    assert info["params"]["point_rate"] * 1000 == pytest.approx(info["fpr_now"])


def test_output_and_status_are_those_of_has(bly, numbers):
    asked = ["--range", "0..3", "--range", "8..20", "--range=-28..-28"]
    found = bly("has", "f.bly", *asked)
    assert found.lines == ["0..3", "-28..-28"] and found.status == 0
    assert bly("has", "f.bly", "-v", *asked).lines == ["8..20"]
    assert bly("has", "f.bly", "-c", *asked).out == "2\n"
    assert bly("has", "f.bly", "-q", *asked).status == 0
    assert bly("has", "f.bly", "--range", "8..20").status == 1
    rows = [json.loads(row) for row in bly("has", "f.bly", "--json", *asked).lines]
    assert [(row["key"], row["maybe"]) for row in rows] == [("0..3", True), ("8..20", False), ("-28..-28", True)]
    assert bly("has", "f.bly", "--ranges", "8..20", "--", "-8..8").lines == ["-8..8"]
    # From one end of the integers to the other, and across zero.
    assert bly("has", "f.bly", "--range", f"{-2**63}..{2**63 - 1}").status == 0
    # Single keys are asked as ever.
    assert bly("has", "f.bly", "7", "8").lines == ["7"]


@pytest.mark.parametrize("text, says", [
    ("9..3", "ends before it begins"), ("9", "is not a range"), ("..9", "only one end"), ("x..9", "'x' is not a key"),
    (f"0..{2**63}", "is not a key"), ("2024-02-30", "is not a range"), ("10.0.0.256/8", "is not a range"),
    ("2024-05-01T25:00..2024-06-01", "is not a key"),
])
def test_what_is_no_range_is_named(trouble, numbers, text, says):
    trouble("has", "f.bly", "--range", text, says=[text, says])
    trouble("has", "f.bly", "--ranges", stdin=f"0..3\n{text}\n", says=[text, says])


def test_only_filters_of_keys_in_order(trouble, bly, ok, numbers):
    ok("build", "-o", "plain.bly", stdin="7\n")
    trouble("has", "plain.bly", "--range", "1..9", says=["blocked", "range"])
    trouble("has", "plain.bly", "--ranges", "1..9", says=["blocked", "range"])
    trouble("has", "f.bly", "--range", "1..9", "7", says=["--ranges"])
    trouble("has", "f.bly", "--range", "1..9", "-f", "f.bly", says=["--ranges"])
    trouble("build", "--kind", "range", "-K", "f.bly", "-o", "g.bly", stdin="7\n")


def test_addresses_and_times_are_integers(ok, bly):
    ok("build", "--kind", "range", "--uint", "-o", "ip.bly",
       stdin=lines(10 * 2 ** 24 + third * 256 + 7 for third in range(0, 100, 2)))
    asked = [f"10.0.{third}.0/24" for third in range(100)]
    said = bly("has", "ip.bly", "--ranges", *asked).lines
    assert set(asked[::2]) <= set(said) and len(said) < 56
    assert bly("has", "ip.bly", "--range", "10.0.4.7..10.0.4.7").status == 0
    assert bly("has", "ip.bly", "--range", "10.0.4.8..10.0.5.255").status == 1
    # 2024-02-29 12:30:05, and the first second of 2025
    ok("build", "--kind", "range", "--int", "-O", "longest=10M", "-p", "1e-6", "-o", "t.bly",
       stdin="1709209805\n1735689600\n")
    for text, status in [("2024-02-29", 0), ("2024-02", 0), ("2024-03..2024-04", 1), ("2024-02-28..2024-02-29T12:29", 1),
                         ("2024-02-29T12:30", 0), ("2024-02-29T12:30:05Z..2024-02-29T12:30:05Z", 0),
                         ("2024-02-29 12:30:06..2024-03-01", 1), ("2024-12", 1), ("2024-12-31T23:59:59..2025-01-01T00:00:00", 0)]:
        assert bly("has", "t.bly", "--range", text).status == status, text


def test_text_goes_by_its_first_bytes(ok, bly):
    words = ["apple", "Banana", "cherry", "internationally"]
    ok("build", "--kind", "range", "-i", "-O", "longest=200T", "-p", "1e-9", "-o", "w.bly", stdin=lines(words))
    for text, status in [("a..b", 0), ("ap..ap", 0), ("b..bz", 0), ("BAN..BAN", 0), ("d..h", 1), ("j..", 1), ("..a", 0),
                         ("aq..az", 1), ("internat..internat", 0), ("internau..internau", 1)]:
        assert bly("has", "w.bly", "--range", text).status == status, text
    assert bly("has", "w.bly", "APPLE", "apples").lines == ["APPLE"]


def test_parts_merge(ok, bly, trouble):
    for name, first in ("a", 0), ("b", 50000):
        ok("build", "--kind", "range", "--uint", "-n", "2000", "-o", f"{name}.bly",
           stdin=lines(range(first, first + 50000, 50)))
    ok("merge", "-o", "both.bly", "a.bly", "b.bly")
    assert ok("info", "--json", "both.bly").json["items_estimate"] == 2000
    asked = [f"{n}..{n + 1}" for n in range(0, 100000, 50)]
    assert bly("has", "both.bly", "--ranges", stdin=lines(asked)).lines == asked
    ok("build", "--kind", "range", "--uint", "-n", "5000", "-o", "c.bly", stdin="1\n")
    trouble("merge", "-o", "no.bly", "a.bly", "c.bly", says=["capacity"])


def test_plan_tells_both_rates(ok):
    asked = ["plan", "-n", "1M", "--kind", "range", "-O", "longest=1k", "-p", "1%"]
    row = ok(*asked, "--json").json["kinds"][0]
    assert row["bits_per_key"] < 1.1 * 18.61
    assert row["params"]["point_rate"] == pytest.approx(1e-5)
    assert "point_rate" in ok(*asked).out
