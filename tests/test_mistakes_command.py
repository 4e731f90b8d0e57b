"""has says at its end how many of the keys that it printed are probably not in
the filter, where these are many."""
import re

import pytest

from conftest import keys

TOLD = re.compile(r"bloomery: has: (\d+) of (\d+) keys may be in it; about (\d+) of them by "
                  r"mistake \((\S+) %\)\. Build it with -p (\S+)% to make that rare\n")


@pytest.fixture
def f(ok):
    ok("build", "-o", "f.bly", "-p", "1%", stdin=keys(0, 10000))
    return ok


def test_rare_hits(f):
    """100 keys of 100,000 are in it, and about 1 % of the others look so."""
    got = f("has", "f.bly", stdin=keys(9900, 100000))
    told = TOLD.fullmatch(got.err)
    assert told, got.err
    hits, asked, wrong = (int(told[i]) for i in (1, 2, 3))
    assert (hits, asked) == (len(got.lines), 100000)
    # 99,900 at 1 %: six deviations are 190, of hits and of the estimate.
    assert abs(hits - 100 - 999) < 190 and abs(wrong - (hits - 100)) < 190
    assert 0.9 < float(told[4]) < 1.2 and told[5] == "0.001"
    got = f("has", "-c", "f.bly", stdin=keys(9900, 100000))
    assert TOLD.fullmatch(got.err) and got.lines == [str(hits)]


def test_in_json(f):
    got = f("has", "-c", "--json", "f.bly", stdin=keys(9900, 100000))
    assert got.err == ""
    assert got.json["asked"] == 100000
    assert abs(got.json["by_mistake"] - (got.json["maybe"] - 100)) < 190


def test_what_is_not_told(f, bly):
    """Hits that are mostly right; few questions; no question of files; -q."""
    assert f("has", "f.bly", stdin=keys(0, 20000)).err == ""
    assert f("has", "f.bly", stdin=keys(0, 100)).err == ""
    assert bly("has", "f.bly", stdin=keys(20000, 50)).err == ""
    assert f("has", "f.bly", *keys(9990, 1000).split()).err == ""
    assert f("has", "-q", "f.bly", stdin=keys(10000, 10000)).err == ""
    assert f("has", "-v", "f.bly", stdin=keys(9900, 100000)).err == ""
    f("build", "-o", "g.bly", "-p", "0.001%", stdin=keys(0, 10000))
    assert f("has", "g.bly", stdin=keys(9900, 100000)).err == ""


def test_the_example_of_the_help(ok):
    """Addresses are a field of a log's lines; no line is one."""
    seen = "".join(f"192.0.2.{i}\n" for i in range(100))
    ok("build", "-o", "seen.bly", stdin=seen)
    (ok.path / "logs").mkdir()
    (ok.path / "logs" / "day").write_text(
        "".join(f"192.0.2.{i} - - [x] \"GET /{i}\"\n" for i in range(95, 105)))
    line = next(x for x in ok("has", "--help").lines if "has -rn" in x)
    words = line.split("bloomery ")[1].split("  ")[0].replace("' '", "blanks").split()
    got = ok(*words)
    assert [x.split(":")[1] for x in got.lines] == ["1", "2", "3", "4", "5"]
