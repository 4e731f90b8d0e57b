"""figures and explain."""
import csv
import os
import pathlib
import xml.etree.ElementTree as xml

import pytest
from conftest import PATIENCE, ROOT

VECTORS = pathlib.Path(os.environ.get("BLY_VECTORS",
                                      ROOT.parent / "shared" / "vectors"))


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


# ------------------------------------------------------------------- figures

def test_a_value_outside_its_band_is_status_1(bly):
    """Of a few thousand seeds one is four deviations off. The same numbers
    come out everywhere, so it is off everywhere."""
    result = bly("figures", "rate-against-k", "--seed", "407")
    assert result.status == 1
    assert result.out.count("OUTSIDE") == 1
    assert "15 of 16 values" in result.out


def test_json_holds_every_point(ok):
    figure, = ok("figures", "rate-against-k", "--json").json
    assert figure["name"] == "rate-against-k" and figure["outside"] == 0
    assert figure["judged"] == 16 == len(figure["points"])
    best = min(figure["points"], key=lambda p: p["expected"])
    assert best["x"] == 6 and best["expected"] == pytest.approx(0.0215826,
                                                                rel=1e-5)
    for p in figure["points"]:
        assert p["ok"] is True and p["low"] <= p["measured"] <= p["high"]


def test_a_run_can_be_repeated(ok):
    once = ok("figures", "halves").out
    assert once == ok("figures", "halves").out
    assert once != ok("figures", "halves", "--seed", "5").out


def test_some_figures_leave_the_page_alone(ok):
    ok("figures", "zeros", "--out", "figs")
    assert sorted(p.name for p in (ok.path / "figs").iterdir()) == [
        "zeros.csv", "zeros.svg"]


@pytest.mark.parametrize("argv, says", [
    (["figures", "zeroes"], "did you mean zeros"),
    (["figures", "nothing-like-it-at-all"], "--list"),
    (["figures", "--quick", "--full"], "--quick and --full"),
    (["figures", "zeros", "--out", "a/b/c"], "a/b/c"),
])
def test_trouble(trouble, argv, says):
    trouble(*argv, says=says)


def test_a_folder_that_cannot_be_written(bly):
    (bly.path / "file").write_text("")
    result = bly("figures", "zeros", "--out", "file")
    assert result.status == 2 and "file" in result.err


# --------------------------------------------- the published files of Floom

@pytest.mark.skipif(not (VECTORS / "floom").is_dir(),
                    reason="the published data files are not there")
@pytest.mark.parametrize("percent", [1, 5])
@pytest.mark.parametrize("regions", [8, 12, 16])
def test_published_curves_lie_where_ours_do(ok, percent, regions):
    """graph_P_B.txt: n, then the rates of the three. A band is for one filter
    of n keys, which is what the files hold; of hundreds of rows a few may
    lie outside four deviations by chance, and by interpolation."""
    name = f"floom-{percent}-{regions}"
    ok("figures", name, "--full", "--out", "figs", timeout=PATIENCE)
    rows = table(ok.path / "figs" / f"{name}.csv")
    bands = {}
    for column, series in enumerate(["plain", "Floom", "plain, as large"], 1):
        for row in rows:
            if row["series"] == series:
                bands[float(row["x"]), column] = (float(row["low"]),
                                                  float(row["high"]))
    file = VECTORS / "floom" / f"graph_{percent / 100:.2f}_{regions}.txt"
    compared = 0
    for line in file.read_text().splitlines():
        words = [float(w) for w in line.split()]
        for column in (1, 2, 3):
            if (words[0], column) in bands:
                low, high = bands[words[0], column]
                assert low <= words[column] <= high, (words[0], column)
                compared += 1
    assert compared >= 24


# ------------------------------------------------------------------- explain

SLIDES = ["--m", "10", "--hash", "x+3", "--hash", "3x+1", "--hash", "x^2+2"]


def test_the_example_of_the_slides(ok):
    steps = ok("explain", *SLIDES, "--add", "2,4,9", "--has", "4,7,12",
               "--json").json["steps"]
    assert [s["positions"] for s in steps] == [
        [5, 7, 6], [7, 3, 8], [2, 8, 3], [7, 3, 8], [0, 2, 1], [5, 7, 6]]
    assert [i for i, c in enumerate(steps[-1]["cells"]) if c] == [
        2, 3, 5, 6, 7, 8]
    assert [s["maybe"] for s in steps[3:]] == [True, False, True]
    assert [s["false_positive"] for s in steps[3:]] == [False, False, True]


def test_the_picture_in_the_terminal_and_in_a_file(ok):
    text = ok("explain", *SLIDES, "--add", "2,4,9", "--has", "7,12",
              "--plot", "steps.svg").out
    assert "add 9  . . 1 1 . 1 1 1 1 .   2, 8, 3\n" in text
    assert "0 (empty), 2, 1 (empty): no" in text
    assert "false positive" in text
    svg = (ok.path / "steps.svg").read_text()
    assert "add 2" in svg and "false positive" in svg
    xml.fromstring(svg)


def test_counters(ok):
    steps = ok("explain", "--counting", *SLIDES, "--add", "2,4", "--remove",
               "2,7", "--has", "2,4", "--json").json["steps"]
    assert steps[1]["cells"][7] == 2 and steps[2]["cells"][7] == 1
    assert steps[3]["cells"] == steps[2]["cells"], "7 was never there"
    assert [s["maybe"] for s in steps[4:]] == [False, True]


@pytest.mark.parametrize("text, x, m, value", [
    ("x", 12, 10, 2), ("2x+3", 9, 10, 1), ("2 * x + 3", 9, 10, 1),
    ("-x", 3, 10, 7), ("x-5", 3, 10, 8), ("-x^2", 3, 10, 1),
    ("(x+1)(x-1)", 4, 10, 5), ("2(x+1)^3", 1, 10, 6), ("x^0", 0, 10, 1),
    ("x^10", 2, 1000, 24), ("x^100", 3, 7, pow(3, 100, 7)),
    ("123456789012345678901234567890", 1, 997,
     123456789012345678901234567890 % 997),
    ("((((x))))", 5, 10, 5), ("x", 5, 1, 0), ("3x^2+2x+1", 7, 997, 162),
    ("--x", 3, 10, 3), ("x*-x", 3, 10, 1),
])
def test_expressions(ok, text, x, m, value):
    step, = ok("explain", "--m", m, "--hash", text, "--add", x,
               "--json").json["steps"]
    assert step["positions"] == [value]


@pytest.mark.parametrize("text", ["", "x+", "x++2", "(x", "x)", "y", "x^",
                                  "x^-1", "x/2", "2..3", "x^x", "(" * 60 + "x"])
def test_what_is_no_expression(trouble, text):
    trouble("explain", "--hash", text, "--add", "1", says="--hash")


@pytest.mark.parametrize("argv, says", [
    (["--add", "1,,2"], "whole numbers"), (["--add", "-1"], "whole numbers"),
    (["--add", "99999999999999999999"], "whole numbers"),
    (["--add", "a"], "whole numbers"), (["--m", "0", "--add", "1"], "--m"),
    (["--m", "100000", "--add", "1"], "--m"),
    (["--add", "1", "--remove", "1"], "--counting"),
    (["1"], "--add"), (["--hash", "x"] * 17 + ["--add", "1"], "16"),
    (["--add", ",".join(map(str, range(1200)))], "1000"),
])
def test_explain_trouble(trouble, argv, says):
    trouble("explain", *argv, says=says)
