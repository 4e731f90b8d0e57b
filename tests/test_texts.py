"""docs/texts.md and texts.de.md: every command runs, every figure is one, every erratum is there, and both say the same.

Commands that draw figures are long; each figure is drawn by test_figures_command.py, so that its name is enough here.
"""
import re
import shlex

import pytest

from conftest import ROOT

PAGES = {name: (ROOT / "docs" / name).read_text() for name in ("texts.md", "texts.de.md")}
ERRATA = (ROOT / "docs" / "errata.md").read_text()


def rows(text):
    """Cells of all tables but their heads."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("| ")]
    return [row for row in found if len(row) == 6 and row[0] not in ("section", "Abschnitt", "---")]


def commands(text):
    return re.findall(r"`bloomery ([^`]*)`", text)


WHOLE = sorted({c for page in PAGES.values() for c in commands(page) if not c.startswith("figures ")})


@pytest.mark.parametrize("command", WHOLE)
def test_command(bly, command):
    result = bly(*shlex.split(command))
    assert result.status == 0 and result.out, (result.status, result.err)


def test_figures_exist(ok):
    listed = set(re.findall(r"^[a-z0-9-]+", ok("figures", "--list").out, re.M))
    named = {name for page in PAGES.values() for c in commands(page) if c.startswith("figures ") for name in c.split()[1:]} - {"NAME"}
    assert named and named <= listed, named - listed


@pytest.mark.parametrize("page", PAGES)
def test_errata_are_there(page):
    """Those of a row belong to the text under whose heading it stands."""
    texts = re.split(r"^## ", ERRATA, flags=re.M)[1:6]
    numbers = [{int(n) for n in re.findall(r"^\| (\d+) \|", text, re.M)} for text in texts]
    sections = re.split(r"^## ", PAGES[page], flags=re.M)[1:6]
    seen = set()
    for section, its in zip(sections, numbers):
        for row in rows(section):
            for first, last in re.findall(r"(\d+)(?: (?:to|bis) (\d+))?", row[4].split("]")[0]):
                range_of = set(range(int(first), int(last or first) + 1))
                assert range_of <= its, (row[0], range_of - its)
                seen |= range_of
    assert len(seen) > 35


def test_errata_are_numbered():
    numbers = [int(n) for n in re.findall(r"^\| (\d+) \|", ERRATA, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_both_languages_say_the_same():
    english, german = (rows(page) for page in PAGES.values())
    assert len(english) == len(german) >= 60
    for one, other in zip(english, german):
        assert one[2:4] == other[2:4]
        assert re.findall(r"\d+", one[4]) == re.findall(r"\d+", other[4])
