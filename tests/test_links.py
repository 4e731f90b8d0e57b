"""Pages of documentation: links lead somewhere, to files that are there and to headings that exist.

Headings become anchors as on GitHub. Pages elsewhere on the web are not asked.
"""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import PATIENCE, ROOT

PAGES = sorted(p for p in subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                                         check=False).stdout.split() if (ROOT / p).exists()) or \
    sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINED = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.M)


def prose(text):
    """The page without code, in which brackets mean something else."""
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "", text, flags=re.M | re.S)
    lines, before, code = [], "", False
    for line in text.split("\n"):
        # Four blanks begin code after an empty line, but not inside of a list.
        code = line.startswith("    ") and (code or (not before.strip() and not listed(lines)))
        if not code:
            lines.append(line)
        before = line
    return re.sub(r"(`+)(?:(?!\1).)+?\1(?!`)", "`code`", "\n".join(lines), flags=re.S)


def listed(lines):
    for line in reversed(lines):
        if line.strip():
            return bool(re.match(r"\s*(?:[-*+]|\d+\.)\s|\s+\S", line))
    return False


def anchors(text):
    """Of headings, as GitHub makes them: lower case, punctuation left out, blanks become hyphens, later ones get a number."""
    found, times = set(), {}
    text = re.sub(r"^(```|~~~).*?^\1\s*$", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, re.M):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        n = times.get(name, 0)
        times[name] = n + 1
        found.add(f"{name}-{n}" if n else name)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def wrong_links(page, root):
    """Links of a page that lead nowhere."""
    text, wrong = (root / page).read_text(), []
    for link in LINK.findall(prose(text)) + DEFINED.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((root / page).parent / path).resolve() if path else root / page
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            wrong.append(f"{link}: no such heading")
    return wrong


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    assert wrong_links(page, ROOT) == []


def test_every_page_can_be_reached():
    """From the README on, by links."""
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in LINK.findall(prose(page.read_text())):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists():
                todo.append(target)
    assert [p for p in PAGES if p.startswith("docs/") and ROOT / p not in reached] == []


@pytest.mark.skipif(shutil.which("mkdocs", path="/usr/bin") is None, reason="no mkdocs: make site installs it")
def test_the_handbook_is_whole(tmp_path):
    """make site looks every link up in what was built; search and kinds are there."""
    (tmp_path / "web").mkdir()
    for name in "play.wasm", "index.html":
        (tmp_path / "web" / name).write_text("")
    done = subprocess.run([ROOT / "tools" / "site", tmp_path], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert (site / "kinds" / "fuse.html").exists() and (site / "play" / "index.html").exists() and (site / "figures" / "sync.svg").exists()
    found = [entry["location"] for entry in json.loads((site / "search" / "search_index.json").read_text())["docs"]]
    assert any(where.startswith("kinds/spectral.html") for where in found)
    text = (site / "index.html").read_text()
    assert "All pages" in text and "Lists that guard" in text and not re.search(r"(?:src|href)=\"https?://(?!squidfunk)", text)


def test_this_finds_what_is_wrong(tmp_path):
    (tmp_path / "b.md").write_text("# One `two`, three!\n## Same\n## Same\n")
    (tmp_path / "a.md").write_text("[ok](b.md#one-two-three) [ok](b.md#same-1) `[no link](x)`\n\n    [code](y.md)\n\n```\n[code](z.md)\n```\n"
                                   "- item\n\n    [lost](c.md)\n\n[lost](b.md#same-2) ![lost](d.svg) [ok](https://example.org/x) [lost](#here)\n")
    assert [link.split(":")[0] for link in wrong_links("a.md", tmp_path)] == ["c.md", "b.md#same-2", "d.svg", "#here"]
