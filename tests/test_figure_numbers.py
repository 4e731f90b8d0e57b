"""Numbers that pages quote from figures are those of the CSVs beside the pictures.

NUMBERS has a row for each: the page, a pattern whose groups are numbers, and for each group a CSV, a series, an x and a
column. What is printed with three digits must be the value to half a unit of the last one. The page of figures itself is
compared as a whole: how many values lie in their bands.
"""
import csv
import re

import pytest

from conftest import ROOT

DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"


def points(name):
    with open(FIGURES / f"{name}.csv", newline="") as f:
        return list(csv.DictReader(f))


def value(name, series, x, column="measured"):
    found = [p for p in points(name) if p["series"] == series and (p["x"] == str(x) or (p["x"] and float(p["x"]) == x))]
    assert len(found) == 1, (name, series, x, found)
    return float(found[0][column])


def percent(*where):
    return lambda: 100 * value(*where)


def plain(*where):
    return lambda: value(*where)


def loops(bits, marks, hops):
    row = rf"\| {bits}, {marks}, {hops} \| ([\d.]+) % \| ([\d.]+) % \|\n"
    where = ("net-loop", f"{bits} bits, {marks} per mark", hops)
    return ("net.md", row, percent(*where, "expected"), percent(*where))


RULES = "the rules of 2001"
NUMBERS = [
    ("ring.md", r"without one ordered ring \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|",
     *(percent("chord-schedules", RULES, n) for n in (2, 4, 8))),
    ("ring.md", r"among 16,384 members asks ([\d.]+) of them", plain("chord-hops", "fingers alone", 16384)),
    ("ring.md", r"a lookup asks ([\d.]+) nodes", plain("chord-churn", "nodes asked", 0.4)),
    *(loops(*row) for row in ((64, 2, 8), (64, 4, 8), (128, 4, 16), (256, 4, 16), (256, 8, 16), (256, 8, 30))),
    ("urls.md", r"13.6 bits and ([\d.]+) %, where a Bloom filter of that size has an error of ([\d.]+) %",
     percent("urls-prefixes", "sorted prefixes", 1000000, "expected"),
     percent("urls-prefixes", "Bloom filter of the same bits", 1000000)),
    ("figures/index.md", r"wrong one time in (\d+): for prefixes", lambda: 1 / value(
        "urls-prefixes", "Bloom filter of the same bits", 1000000, "expected")),
    ("figures/index.md", r"the fullest of n has .* the mean, ([\d.]+) times among 1000", plain("placement-points", "1000 members", 1, "expected")),
    ("figures/index.md", r"The least rate is at k = 6, ([\d.]+) %; k = 5 gives ([\d.]+) %",
     *(percent("rate-against-k", "1000 keys in 8000 bits", k, "expected") for k in (6, 5))),
]


@pytest.mark.parametrize("page, pattern, values", [(page, pattern, values) for page, pattern, *values in NUMBERS],
                         ids=[f"{page}-{i}" for i, (page, *_) in enumerate(NUMBERS)])
def test_number(page, pattern, values):
    found = re.findall(pattern, (DOCS / page).read_text())
    assert len(found) == 1, f"{page} has no single {pattern}"
    printed = found[0] if isinstance(found[0], tuple) else (found[0],)
    assert len(printed) == len(values)
    for text, right in zip(printed, values):
        unit = 10.0 ** -len(text.partition(".")[2])
        assert abs(float(text) - right()) <= 0.51 * unit, (text, right())


def test_counts_of_the_page_of_figures():
    told = re.findall(r"\[([\w-]+)\.csv\]\(\1\.csv\), (\d+) of (\d+) in their bands", (FIGURES / "index.md").read_text())
    assert len(told) > 60
    for name, inside, judged in told:
        seen = [p for p in points(name) if p["measured"] and (p["low"] or p["high"])]
        good = [p for p in seen if (not p["low"] or float(p["measured"]) >= float(p["low"])) and
                (not p["high"] or float(p["measured"]) <= float(p["high"]))]
        assert (int(inside), int(judged)) == (len(good), len(seen)), name
