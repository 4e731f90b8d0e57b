"""Pictures as a reader sees them, all that the command draws; and docs/figures:
what the program draws today."""
import csv
import itertools
import json
import os
import re

import pytest
from conftest import PATIENCE, ROOT, run
from pictures import Picture, contrast, distance

FIGURES = json.loads(run("figures", "--list", "--json").out)
NAMES = [f["name"] for f in FIGURES]
# A few have a table in the page instead of a picture.
DRAWN = [f["name"] for f in FIGURES if not f["tabled"]]
SAME = [f["name"] for f in FIGURES if not f["machine"]]
DOCS = ROOT / "docs" / "figures"

# Of these the full form takes a second or more; test-full draws them too.
LONG = {"rate-against-k", "halves", "floom-replay", "spectral", "count-min",
        "cuckoo-load", "fuse-overhead", "bits-against-rate", "past-capacity",
        "near", "rate-against-bits", "rate-of-every-kind", "spell",
        "chord-hops", "chord-deaths", "chord-churn", "chord-schedules",
        "chord-loads", "placement-moved", "placement-points",
        "net-loop", "net-gossip", "net-near", "passwords", "urls-prefixes",
        "range", "sealed", "differential-file", "symbols-per-difference",
        "block", "tables-read", "ids", "reconciliation-tree"}
OTHERS = {
    "plan": ["plan", "-n", "1M", "--plot"],
    "plan-one": ["plan", "-n", "1M", "-k", "cuckoo", "--plot"],
    "plan-near": ["plan", "--near", "--plot"],
    "explain": ["explain", "--counting", "--m", "64", "--add",
                "18446744073709551615,1,2", "--remove",
                "18446744073709551614,1", "--has", "1,3,5", "--plot"],
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder with every picture, figures in their quick form."""
    folder = tmp_path_factory.mktemp("drawn")
    done = run("figures", "--quick", "--out", folder, timeout=PATIENCE)
    assert done.status in (0, 1), done.err
    for name, argv in OTHERS.items():
        assert run(*argv, folder / f"{name}.svg").status == 0
    return folder


def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


every_picture = pytest.mark.parametrize("name", DRAWN + list(OTHERS))
every_figure = pytest.mark.parametrize("name", DRAWN)


# -------------------------------------------------------------------- figures

def test_every_figure_lies_in_its_bands(drawn):
    """All of them, quick: this is what --quick promises. Of those that measure
    the machine nothing is asked, since it may be busy with other things."""
    assert len(NAMES) > 25 and len(set(NAMES)) == len(NAMES)
    page = (drawn / "index.md").read_text()
    for name in NAMES:
        rows = table(drawn / f"{name}.csv")
        assert rows and set(rows[0]) == {"series", "x", "expected",
                                         "measured", "low", "high"}
        judged = [row for row in rows if row["measured"] and
                  (row["low"] or row["high"])]
        assert judged, name
        for row in judged if name in SAME else ():
            assert float(row["low"] or "-inf") <= float(row["measured"]) <= \
                float(row["high"] or "inf"), (name, row)
        assert (f"({name}.svg)" in page) == (name in DRAWN)
        assert f"({name}.csv)" in page


def test_a_figure_without_a_curve_is_a_table_of_the_page(drawn):
    """With every value of its CSV."""
    tabled = set(NAMES) - set(DRAWN)
    assert tabled == {"net-near", "net-finding"}
    page = (drawn / "index.md").read_text()
    for name in tabled:
        assert not (drawn / f"{name}.svg").exists()
        section = page.split(f"({name}.csv)")[0].split("\n## ")[-1]
        lines = [line.strip("| ").split(" | ")
                 for line in section.splitlines() if line.startswith("| ")]
        rows = table(drawn / f"{name}.csv")
        assert len(lines) == len(rows) + 2  # the head, and a rule below it
        for cells, row in zip(lines[2:], rows):
            assert cells[0] == row["series"]
            for cell, column in zip(cells[1:], ("x", "expected", "measured")):
                assert float(cell if cell != "-" else "nan") == pytest.approx(
                    float(row[column] or "nan"), rel=1e-4, nan_ok=True)


# --------------------------------------------------------------------- labels

@every_picture
def test_no_label_is_cut_or_covered(drawn, name):
    picture = Picture(drawn / f"{name}.svg")
    assert picture.texts
    for text in picture.texts:
        assert "\N{HORIZONTAL ELLIPSIS}" not in text.text, text
        assert 0 <= text.left and text.right <= picture.width, text
        assert 0 <= text.top and text.bottom <= picture.height, text
        for panel in picture.panels:
            assert not (panel.frame and text.meets(*panel.frame)), text
    for a, b in itertools.combinations(picture.texts, 2):
        assert not a.meets(b.left, b.top, b.right, b.bottom), (a, b)


@every_picture
def test_no_panel_has_more_than_eight_series(drawn, name):
    for panel in Picture(drawn / f"{name}.svg").panels:
        assert len(panel.series) <= 8
        assert set(panel.series) <= panel.legend()


@every_figure
def test_dashed_is_expected_and_the_picture_says_so(drawn, name):
    picture = Picture(drawn / f"{name}.svg")
    expected, measured = set(), set()
    for row in table(drawn / f"{name}.csv"):
        expected |= {row["series"]} if row["expected"] else set()
        measured |= {row["series"]} if row["measured"] else set()
    for panel in picture.panels:
        if not panel.frame:
            continue
        assert panel.series
        for series, g in panel.series.items():
            dashed = any("d2" in e.get("class", "").split() for e in g.iter())
            bars = any(e.get("class") == "bar" for e in g.iter())
            assert dashed == (series in expected) or bars, series
        words = {t.text for t in panel.texts if t.kind == "key"}
        want = {"expected"} if expected & set(panel.series) else set()
        want |= {"measured"} if want and measured & set(panel.series) else set()
        assert words == want


@every_picture
def test_an_axis_has_one_unit(drawn, name):
    for panel in Picture(drawn / f"{name}.svg").panels:
        if not panel.frame:
            continue
        for ticks in panel.ticks():
            assert len(ticks) > 1
            units = {re.sub(r"^\N{MINUS SIGN}?[\d.,]+(\N{MULTIPLICATION SIGN}"
                            r"10)?(\N{MINUS SIGN}\d+)?", "", t.text)
                     for t in ticks if t.text != "0"}
            assert len(units) == 1, units
            assert units <= {"", "%"} or units.pop()[0] == " "
        titles = [t.text for t in panel.texts
                  if t.text.endswith(")") and "(" in t.text]
        assert all(t.count("(") == 1 for t in titles)


@every_figure
@pytest.mark.parametrize("folder", ["quick", "docs"])
def test_every_series_lies_inside_the_frame(drawn, folder, name):
    """Nothing is cut off, and every value that was measured has its marker:
    an axis from 0 to 1 once left a figure of values from 1.1 to 8 blank."""
    folder = drawn if folder == "quick" else DOCS
    picture = Picture(folder / f"{name}.svg")
    # A log axis has no place for zero, and the picture then says so.
    unplaced = "Where there is no marker" in picture.source
    values = {}
    for row in table(folder / f"{name}.csv"):
        if row["measured"] and (float(row["measured"]) > 0 or not unplaced):
            values[row["series"]] = values.get(row["series"], 0) + 1
    for panel in picture.panels:
        if not panel.frame:
            continue
        left, top, right, bottom = panel.frame
        for series in panel.series:
            for x, y, slack in panel.places(series):
                assert left - slack <= x <= right + slack, (series, x)
                assert top - slack <= y <= bottom + slack, (series, y)
            assert panel.markers(series) == values.get(series, 0), series


def test_colours_are_told_apart(drawn):
    """By every eye, better than those of Okabe and Ito (7.6), and seen on
    their paper."""
    for paper, *colours in Picture(drawn / "near.svg").colours():
        assert len(set(colours)) == 8
        for a, b in itertools.combinations(colours, 2):
            assert distance(a, b) > 14, (a, b)
        assert all(contrast(paper, c) > 2.6 for c in colours)
    okabe_ito = ["#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442",
                 "#0072b2", "#d55e00", "#cc79a7"]
    assert min(distance(a, b) for a, b in
               itertools.combinations(okabe_ito, 2)) == pytest.approx(7.6,
                                                                      abs=0.1)


# --------------------------------------------------------------- docs/figures

def test_docs_have_every_figure_and_no_other():
    files = {f"{n}.csv" for n in NAMES} | {f"{n}.svg" for n in DRAWN}
    assert {p.name for p in DOCS.iterdir()} == files | {"index.md"}


@pytest.mark.parametrize("name", NAMES)
def test_docs_have_its_series_and_labels(drawn, name):
    """Also where values differ: --quick is another run, and so is the clock."""
    ours, theirs = drawn / f"{name}.csv", DOCS / f"{name}.csv"
    assert {r["series"] for r in table(ours)} == \
        {r["series"] for r in table(theirs)}, "make figures"
    if name not in DRAWN:
        return
    ours, theirs = (Picture(d / f"{name}.svg") for d in (drawn, DOCS))
    assert ours.title == theirs.title
    assert ours.colours() == theirs.colours()
    assert len(ours.panels) == len(theirs.panels)
    for a, b in zip(ours.panels, theirs.panels):
        assert list(a.series) == list(b.series)
        assert a.legend() == b.legend(), "make figures"
        assert {t.text for t in a.texts if "t" in t.kind or "u" in t.kind} == \
            {t.text for t in b.texts if "t" in t.kind or "u" in t.kind}


def test_the_page_says_what_the_program_says(drawn):
    def words(folder):
        text = (folder / "index.md").read_text()
        text = re.sub(r"\d+ of \d+ in their bands", "", text)
        text = re.sub(r" --full --out", " --out", text)
        text = re.sub(r"Run with .*", "", text)
        text = re.sub(r"(?m)^(\| [^|]+ \|).*\d.*", r"\1", text)
        return [line for line in text.splitlines() if line[:2] != "* "]
    assert words(drawn) == words(DOCS), "make figures"


def test_docs_are_what_the_program_draws(tmp_path):
    """To the byte, where neither time nor malloc is measured."""
    names = [n for n in SAME if n not in LONG or "BLY_FULL" in os.environ]
    done = run("figures", *names, "--full", "--out", tmp_path,
               timeout=PATIENCE)
    assert done.status == 0
    for name, end in itertools.product(names, ("csv", "svg")):
        if end == "svg" and name not in DRAWN:
            continue
        file = f"{name}.{end}"
        assert (tmp_path / file).read_bytes() == (DOCS / file).read_bytes(), \
            f"{file} is not what make figures draws"


# ------------------------------------------------------------------- terminal

def test_tables_fit_sixty_columns(drawn):
    for name in ("near", "halves", "memory", "spectral"):
        for line in run("figures", name).lines:
            assert len(line) <= 60 or line.startswith((name, "  ")), line
            if re.match(r" +-?[\d.]", line):
                assert len(line) <= 60, line


@pytest.mark.parametrize("m", [10, 40, 100, 1000])
def test_arrays_are_broken_into_lines(ok, m):
    """At 79 columns; nothing is lost."""
    result = ok("explain", "--m", m, "--add", "2,4", "--has", "7")
    picture = result.out.split("\n\n", 1)[1]
    assert all(len(line) <= 79 for line in picture.splitlines())
    head = [line for line in picture.splitlines() if line.startswith("     ")]
    assert " ".join(head).split() == [str(i) for i in range(m)]
    cells = [line.split()[2:] for line in picture.splitlines()
             if re.match(r"add 4 .*[.1]( |$)", line)]
    assert sum(c in (".", "1") for line in cells for c in line) >= m
