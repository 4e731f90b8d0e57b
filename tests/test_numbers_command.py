"""Numbers for people: estimates are called estimates, rates have one form, and
what is told of a filter does not contradict itself."""
import re

import pytest
from conftest import kinds_that, keys

N = 1_234_567


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "list"
    path.write_text("".join(f"{i}\n" for i in range(N)))
    return path


def numbers(text):
    return [int(x) for x in re.findall(r"\b\d+\b", text)]


def test_an_estimate_is_called_one(ok, million):
    done = ok("build", "-o", "f.bly", million)
    assert f"{N} keys read; " in done.out  # these were counted
    assert re.search(r"for about 1\.2[0-9]? million different", done.out)
    info = ok("info", "f.bly").out
    row = next(x for x in info.splitlines() if x.startswith("  keys "))
    assert re.search(r"about 1\.2[0-9]? million \+- \d+ by its contents", row)
    assert re.search(r"about 1\.2[0-9]? million counted", row)
    assert re.search(r"capacity +about 1\.2[0-9]? million keys", info)
    # Of keys, nothing has more digits than are known.
    for line in info.splitlines():
        if line.startswith(("  keys", "  capacity")):
            assert all(x < 100_000 for x in numbers(line)), line


def test_json_keeps_numbers_and_says_what_they_are(ok, million):
    made = ok("build", "--json", "-o", "f.bly", million).json
    assert made["keys"] == N and abs(made["items"] - N) < 0.02 * N
    assert made["items_estimated"] is True
    made = ok("build", "--json", "--items", 2_000_000, "-o", "f.bly",
              million).json
    assert made["items"] == 2_000_000 and made["items_estimated"] is False
    few = ok("build", "--json", "-o", "g.bly", stdin=keys(0, 1000)).json
    assert few["items"] == 1000 and few["items_estimated"] is False
    fuse = ok("build", "--json", "--kind", "fuse", "-o", "h.bly", million).json
    assert fuse["items"] == N and fuse["items_estimated"] is False


def test_numbers_that_are_exact_stay_so(ok):
    done = ok("build", "--items", 20_000_000, "-p", "50%", "-o", "f.bly",
              stdin=keys(0, 10))
    assert "for 20 million different" in done.out
    done = ok("build", "-o", "g.bly", stdin=keys(0, 348_454))
    assert "348454 keys read; blocked filter for 348454 different" in done.out
    assert "capacity          348454 keys" in ok("info", "g.bly").out


def test_estimates_of_other_commands(ok, million):
    (ok.path / "few").write_text(keys(0, 10))
    ok("build", "-q", "-o", "a.bly", "--items", "2M", million)
    ok("build", "-q", "-o", "b.bly", "--items", "2M", "few")
    merged = ok("merge", "-o", "c.bly", "a.bly", "b.bly").out
    assert re.search(r"about 1\.23 million keys", merged)
    told = ok("compare", "a.bly", "b.bly").out
    assert re.search(r"in a +about 1\.23 million \+- \d+ keys", told)
    assert re.search(r"in b +about (9|10|11) \+- \d+ keys", told)


@pytest.mark.parametrize("rate,shown", [
    ("0.5", "50 %"), ("1%", "1 %"), ("0.000123", "0.0123 %"),
    ("0.0001", "0.01 %"), ("0.00005", "1 in 20000"), ("8.99e-10",
                                                      "1 in 1.11 billion"),
    ("1e-6", "1 in 1 million"), ("3e-14", "1 in 33.3 trillion")])
def test_one_form_for_rates(ok, rate, shown):
    assert f"{shown} false positives" in ok("plan", "--items", 1000, "--fpr",
                                            rate).lines[0]


TINY = "1e-9"
EXPONENT = re.compile(r"\de[-+]\d")


@pytest.mark.parametrize("nkeys,bits,shown", [
    (1, 512, "rate at capacity  1 in 18.4 quintillion"),
    (1, 512, "rate now          less than 1 in 18.4 quintillion"),
    (10, 1 << 12, "rate now          less than 1 in 18.4 quintillion")])
def test_rates_that_are_hardly_any(ok, nkeys, bits, shown):
    """Two keys have one hash of 64 bits at a rate of 1 in 18.4 quintillion, so
    nothing less is promised."""
    done = ok("build", "-o", "f.bly", "--items", nkeys, "--bits", bits,
              stdin=keys(0, nkeys))
    assert not EXPONENT.search(done.out), done.out
    said = ok("info", "f.bly").out
    assert shown in said
    assert not EXPONENT.search(said.split("  hash ")[0]), said


@pytest.mark.parametrize("kind", kinds_that("has", "add"))
def test_no_command_has_another_form(ok, bly, kind):
    """The law: whatever tells a small rate tells it in the same words."""
    done = bly("build", "--kind", kind, "--items", 1000, "--fpr", TINY, "-o",
               "f.bly", stdin=keys(0, 1000))
    if done.status:
        pytest.skip(f"{kind} is not made for such a rate")
    said = done.out + ok("info", "f.bly").out.split("  hash ")[0]
    said += ok("plan", "--items", 1000, "--fpr", TINY).out
    said += bly("shrink", "-o", "g.bly", "f.bly").out
    said += bly("merge", "-o", "h.bly", "f.bly", "f.bly").out
    said += bly("convert", "--kind", kind, "-o", "i.bly", "f.bly").out
    assert not EXPONENT.search(said), said


@pytest.mark.parametrize("kind", ["blocked", "classic", "counting"])
def test_a_full_filter_is_not_praised(ok, kind):
    done = ok("build", "--kind", kind, "--items", 10, "-o", "f.bly",
              stdin=keys(0, 120_000))
    assert "100 % false positives" in done.out
    assert "saturated" in done.err
    made = ok("build", "--json", "--kind", kind, "--items", 10, "-o", "f.bly",
              stdin=keys(0, 120_000)).json
    assert made["fpr_now"] == 1 and made["fpr"] < 0.02


def test_past_capacity_the_rate_is_that_of_now(ok):
    done = ok("build", "--items", 1000, "-o", "f.bly", stdin=keys(0, 3000))
    rate = float(re.search(r"([\d.]+) % false positives", done.out)[1])
    assert rate > 5
    assert f"false positives now {rate:g} %, planned" in done.err
