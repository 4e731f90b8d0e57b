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
    assert best["x"] == 6 and best["expected"] == pytest.approx(0.0215945,
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


def explained(ok, *argv):
    return ok("explain", *argv, "--json").json["steps"]


def test_increments(ok):
    """The seminar paper's figure 8: 20 - 14 = 6 is not a sum of 8, 12, 14, 15."""
    cell = ["--m", "10", "--hash", "5", "--as", "increments"]
    one, two, asked = explained(ok, *cell, "--add", "4,5", "--has", "2")
    assert one["cells"][5] == 8 and two["cells"][5] == 8 + 12
    assert not asked["maybe"]
    assert asked["result"] == "no: 20 - 14 = 6 is not a sum of 8, 12, 14 and 15"
    *_, gone, left = explained(ok, *cell, "--add", "4,5", "--remove", "4",
                               "--has", "4,5")
    assert gone["result"] == "no: 12 - 8 = 4 is not a sum of 8, 12, 14 and 15"
    assert left["maybe"] and not left["false_positive"]


@pytest.mark.parametrize("as_what", ["counting", "increments", "deletable",
                                     "bits", "floom", "scalable"])
def test_no_way_forgets(ok, as_what):
    steps = explained(ok, "--as", as_what, "--m", "17", "--add",
                      "2,4,9,31,5,77,1,12", "--has", "2,4,9,31,5,77,1,12")
    assert all(s["maybe"] and not s["false_positive"] for s in steps[8:])


def test_regions(ok):
    """What is removed is cleared where no keys have met, and others stay."""
    steps = explained(ok, *SLIDES, "--as", "deletable", "--add", "2,4",
                      "--remove", "2", "--has", "2,4")
    assert steps[1]["result"] == "keys have met in region 4"
    assert "cleared in region 3" in steps[2]["result"]
    assert not steps[3]["maybe"] and steps[4]["maybe"]
    kept = explained(ok, "--as", "deletable", "--m", "2", "--regions", "1",
                     "--hash", "x", "--add", "1,3", "--remove", "1", "--has",
                     "1")
    assert kept[2]["result"].startswith("kept:") and kept[3]["maybe"]


def test_patterns(ok):
    """Its figure 10: a key in the second and the fifth region is 18."""
    steps = explained(ok, "--as", "floom", "--hash", "x+1", "--hash", "x+7",
                      "--add", "1,3", "--has", "1,7")
    assert steps[0]["result"] == "pattern 18"
    assert steps[2]["maybe"]
    assert steps[3]["result"] == "no: pattern 20 never occurred"
    assert all(steps[3]["cells"][p] for p in steps[3]["positions"])


def test_layers(ok):
    argv = ["--as", "scalable", "--hash", "x+3", "--hash", "3x+1", "--items",
            "2", "--add", "1,2,3,4,5", "--has", "1,5,9"]
    steps = explained(ok, *argv)
    assert [s.get("result") for s in steps[:5]] == [
        None, None, "layer 2 begins", None, "layer 3 begins"]
    assert steps[5]["result"] == "maybe: layer 1"
    assert steps[6]["result"] == "maybe: layer 3"
    assert len(steps[7]["cells"]) == 10 + 20 + 40
    assert "layer 3: m = 40, cells 30 to 69, 1 keys" not in ok(
        "explain", *argv).out
    assert "layer 3: m = 40, cells 30 to 69, 1 key\n" in ok(
        "explain", *argv).out


def test_displacement(ok):
    """13 pushes 7's fingerprint to its other cell; all are still found."""
    keys = "2,4,9,7,13,3"
    steps = explained(ok, "--as", "cuckoo", "--m", "11", "--add", keys, "--has",
                      keys)
    assert [s["moved"] for s in steps if "moved" in s] == [23, 14]
    assert all(s["maybe"] for s in steps if "has" in s)
    *_, gone, refused = explained(ok, "--as", "cuckoo", "--m", "11", "--add",
                                  keys, "--remove", "2,2")
    assert "result" not in gone and "refused" in refused["result"]
    full = explained(ok, "--as", "cuckoo", "--add", "2,4,9,12,14", "--has",
                     "2,4,9,12,14")
    last = next(i for i, s in enumerate(full)
                if "all as before" in s.get("result", ""))
    began = max(i for i in range(last) if "add" in full[i])
    assert full[last]["cells"] == full[began - 1]["cells"]
    denied = [s["has"] for s in full if "has" in s and not s["maybe"]]
    assert full[began]["add"] in denied and 2 not in denied


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
    (["--as", "floom", "--add", "1", "--remove", "1"], "--as"),
    (["--as", "nosuch", "--add", "1"], "cuckoo"),
    (["--as", "cuckoo", "--hash", "x", "--add", "1"], "three"),
    (["--as", "floom", "--regions", "99", "--add", "1"], "--regions"),
    (["--as", "scalable", "--m", "600", "--items", "1", "--add", "1,2"],
     "1000"),
    (["1"], "--add"), (["--hash", "x"] * 17 + ["--add", "1"], "16"),
    (["--add", ",".join(map(str, range(1200)))], "1000"),
])
def test_explain_trouble(trouble, argv, says):
    trouble("explain", *argv, says=says)
