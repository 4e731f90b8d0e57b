"""Web pages for dedup and similar: what their readers see."""
import gzip
import json
import os
import random

import pytest

from conftest import BUILD

pytestmark = pytest.mark.skipif(not (BUILD / "bloomery-html").exists(),
                                reason="bloomery was built without libgumbo")


def words(seed, n=80):
    r = random.Random(seed)
    return [f"w{r.randrange(99999)}" for _ in range(n)]


def page(story, menu, ad="x"):
    """A page of a site: most of its bytes are not its story."""
    links = "".join(f"<li><a href='/{m}'>{m} {m}s</a></li>" for m in menu)
    return (f"<!DOCTYPE html>\n<html><head><title>t</title>"
            f"<script>var ad = '{ad * 300}';</script><style>p {{ }}</style></head>"
            f"<body><nav><ul>{links}</ul></nav><p>{' '.join(story)}</p>"
            f"<footer>{' '.join(menu)}</footer></body></html>\n")


@pytest.fixture
def site(ok):
    """Three pages, the third with the story of the first in another dress."""
    story, other = words(1), words(2)
    menu, new_menu = words(3, 30), words(4, 30)
    changed = story[:40] + ["changed"] + story[41:]
    (ok.path / "p").mkdir()
    pages = {"a.html": page(story, menu), "b.html": page(other, menu),
             "c.html": page(changed, new_menu, "y")}
    for name, text in pages.items():
        (ok.path / "p" / name).write_text(text)
    return pages


def test_pages_are_compared_by_what_is_seen(ok, site):
    def likeness(*more):
        done = ok("similar", "--json", *more, "p/a.html", "p/b.html", "p/c.html")
        return [pair["jaccard"] for pair in done.json["pairs"]]
    seen, tags = likeness(), likeness("--tags")
    # Of 76 shingles of 5 words the changed word is in 5; the title is a word.
    assert seen == pytest.approx([0, 72 / 82, 0], abs=0.01)
    assert tags[0] > 0.2 and tags[1] < 0.7


def test_pages_are_removed_whole_and_as_they_came(ok, site):
    ok("dedup", "--files", "p", "-o", "out/", "--removed", "gone", "-q")
    left = {p.name: p.read_text() for p in (ok.path / "out" / "p").iterdir()}
    assert left == {n: site[n] for n in ("a.html", "b.html")}
    assert (ok.path / "gone").read_text().split("\t")[:2] == ["p/c.html", "p/a.html"]
    ok("dedup", "--files", "p", "-o", "list", "--tags", "-q")
    assert len((ok.path / "list").read_text().splitlines()) == 3


def test_pages_are_known_by_content(ok, site):
    for name, text in site.items():
        (ok.path / "p" / name).unlink()
        (ok.path / "p" / name[0]).write_bytes(gzip.compress(text.encode()))
    ok("dedup", "--files", "p", "-o", "out", "-q")
    assert (ok.path / "out").read_text() == "p/a\np/b\n"
    pairs = ok("similar", "--json", "p/a", "p/c").json["pairs"]
    assert pairs[0]["jaccard"] > 0.8


@pytest.mark.parametrize("more", [[], ["--index", "bloom"], ["--exact"],
                                  ["-t", "1", "--work", "w"]])
def test_pages_in_json(ok, site, more):
    lines = [json.dumps({"id": n, "text": t}) for n, t in site.items()]
    lines.append(json.dumps({"id": "d", "text": site["a.html"].replace("x", "z")}))
    lines.append(json.dumps({"id": "e", "text": site["a.html"].replace("var", "let")}))
    (ok.path / "c").write_text("\n".join(lines) + "\n")
    ok("dedup", "--html", "c", "-o", "out", "-q", *more)
    left = [json.loads(x)["id"] for x in (ok.path / "out").read_text().splitlines()]
    assert left[:2] == ["a.html", "b.html"] and "e" not in left
    assert ("c.html" in left) == ("--exact" in more)
    if not more:  # without --html they are texts
        ok("dedup", "c", "-o", "out", "-q")
        assert "c.html" in (ok.path / "out").read_text()


def test_parts_of_pages_stay(ok, trouble, site):
    trouble("dedup", "--paragraphs", "--html", "--files", "p", "-o", "out", says="whole documents")
    trouble("dedup", "--tags", "--html", "p/a.html", "-o", "out", says="exclude")


def test_pages_from_a_pipe(ok, trouble, site):
    a = site["a.html"].encode()
    done = ok("similar", "--html", "--json", "-", "p/a.html", stdin=a)
    assert done.json["pairs"][0]["equal"]


def test_without_the_program(bly, site):
    (bly.path / "empty").mkdir()
    env = {**os.environ, "BLOOMERY_LIBEXEC": str(bly.path / "empty")}
    done = bly("similar", "p/a.html", "p/b.html", env=env)
    assert done.status == 2 and "bloomery-html" in done.err
    done = bly("dedup", "--files", "p", "-o", "out", "--json", env=env)
    assert done.status == 2 and "bloomery-html" in done.err and "--tags" in done.err
    (bly.path / "t").mkdir()
    (bly.path / "t" / "a.txt").write_text("one two three\n")
    assert bly("dedup", "--files", "t", "-o", "out", env=env).status == 0
    assert bly("similar", "--tags", "p/a.html", "p/b.html", env=env).status == 0


def test_pages_of_hostile_kinds(ok):
    r = random.Random(5)
    (ok.path / "h").mkdir()
    pages = {"deep": b"<div>" * 100_000 + b"one two", "open": b"<p " * 100_000,
             "bold": b"<p><b><i><u>" * 30_000, "ref": b"&#x100000;" * 50_000,
             "noise": r.randbytes(100_000), "wide": b"\xff\xfe" + b"<\0p\0>\0" * 9999}
    for name, text in pages.items():
        (ok.path / "h" / f"{name}.html").write_bytes(text)
        (ok.path / "h" / f"{name}2.html").write_bytes(text + b" ")
    done = ok("dedup", "--binary", "--files", "h", "-o", "out", "--json")
    assert done.json["documents"] == 12 and done.json["malformed"] == 0


@pytest.mark.skipif(not (BUILD / "bloomery-net").exists(), reason="bloomery was built without libsodium")
def test_sealed_pages_have_the_words_that_are_seen(bly, ok):
    (ok.path / "d").mkdir()
    (ok.path / "d" / "a.html").write_text("<nav>menuword</nav><p class=classword>A caf&eacute; of se<b>ve</b>n words "
                                          + "that readers see " * 20)
    (ok.path / "d" / "b").write_text("<!DOCTYPE html><title>Letter</title><p>seven " + "other words " * 4000)
    (ok.path / "d" / "c.txt").write_text("a classword in a text with <p> seven")
    ok("seal", "init", "-o", "key")
    ok("seal", "add", "-K", "key", "x", "d", "-p", "1e-6")
    ok("seal", "add", "-K", "key", "y", "d", "-p", "1e-6", "--tags")

    def found(archive, word, *more):
        door = ok("seal", "trapdoor", "-K", "key", word).out.strip()
        ids = bly("seal", "search", archive, door).out
        names = bly("seal", "open", "-K", "key", archive, "-w", word, "--names", "--json", *more, stdin=ids)
        return ids.count("\n"), sorted(json.loads(x)["name"][2:] for x in names.lines)
    assert found("x", "seven") == (3, ["a.html", "b", "c.txt"])
    assert found("x", "café") == (1, ["a.html"])
    assert found("x", "classword") == (1, ["c.txt"])
    assert found("x", "menuword") == found("x", "DOCTYPE") == (0, [])
    assert found("y", "seven", "--tags") == (2, ["b", "c.txt"])
    assert found("y", "menuword", "--tags") == (1, ["a.html"])
    assert found("y", "doctype") == (1, [])  # of a page, none of what is seen
    # What is opened is the page itself.
    door = ok("seal", "trapdoor", "-K", "key", "café").out.strip()
    id_ = ok("seal", "search", "x", door).out.strip()
    assert ok("seal", "open", "-K", "key", "x", id_).raw == (ok.path / "d" / "a.html").read_bytes()
