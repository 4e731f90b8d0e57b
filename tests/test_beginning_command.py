"""Range filters of text keep eight bytes of a key. Where all keys begin alike,
these are the eight behind the beginning; what falls together all the same is
told."""
import pytest

WWW = "https://www.example.org/"


def lines(numbers, before=WWW):
    return "".join(f"{before}{i:07}/page\n" for i in numbers)


@pytest.fixture
def f(ok):
    """Every seventh page."""
    got = ok("build", "--kind", "range", "-o", "f.bly", stdin=lines(range(0, 70000, 7)))
    assert got.err == "" and "10000 different" in got.out
    return ok


def asked(ok, *ranges):
    got = ok("has", "f.bly", *(w for r in ranges for w in ("--range", r)))
    return [r in got.lines for r in ranges]


def test_keys_are_told_apart(f, bly):
    assert f("has", "-c", "f.bly", stdin=lines(range(0, 70000, 7))).lines == ["10000"]
    # 1 % for ranges of 256 strings, a 256th of that for single keys.
    assert int(bly("has", "-c", "f.bly", stdin=lines(range(3, 70000, 7))).out) < 40
    assert int(bly("has", "-c", "f.bly", stdin=lines(range(10000), "http://other.example/")).out) < 40
    assert int(bly("has", "-c", "f.bly", stdin="\nh\nhttps://www.example.org\n").out) < 3


def test_ranges(f):
    def page(i):
        return f"{WWW}{i:07}"
    assert asked(f, f"{page(8)}/a..{page(8)}/b", f"{page(7)}/p..{page(7)}/q",
                 f"{page(69993)}..x", f"a..{page(0)}", "a..x", "h..h",
                 "https://www.examine.org/0000001..https://www.examine.org/0000009") == \
        [False, True, True, True, True, True, False]


def test_pipes_compressed_and_folded(f, ok):
    (ok.path / "list").write_text(lines(range(0, 70000, 7)))
    ok("build", "--kind", "range", "-o", "g.bly", "list")
    assert (ok.path / "g.bly").read_bytes() == (ok.path / "f.bly").read_bytes()
    ok("build", "--kind", "range", "-i", "-o", "h.bly", "list")
    got = ok("has", "h.bly", "--range", f"{WWW.upper()}0000007/P..{WWW.upper()}0000007/Q")
    assert got.lines


def test_files(f, ok, trouble):
    """Saved compact, coded or by a delta, it answers as before; and it does not
    merge with one that leaves out something else."""
    ok("compress", "-o", "c.bly", "f.bly")
    assert ok("has", "-c", "c.bly", stdin=lines(range(0, 70000, 7))).lines == ["10000"]
    assert "behind a beginning" in ok("info", "f.bly").out
    ok("build", "--kind", "range", "-n", "10000", "-o", "o.bly",
       stdin=lines(range(0, 70000, 7), "ftp://ftp.example.org/"))
    trouble("merge", "-o", "m.bly", "f.bly", "o.bly", says="different orders")
    ok("build", "--kind", "range", "-n", "10000", "-o", "p.bly", stdin=lines(range(1, 70000, 7)))
    ok("merge", "-o", "m.bly", "f.bly", "p.bly")
    assert ok("has", "-c", "m.bly", stdin=lines(range(0, 70000, 7))).lines == ["10000"]
    assert ok("has", "-c", "m.bly", stdin=lines(range(1, 70000, 7))).lines == ["10000"]


def test_what_falls_together_is_told(ok):
    """Two beginnings: nothing can be left out, and two keys are left of 2000."""
    got = ok("build", "--kind", "range", "-o", "f.bly",
             stdin=lines(range(1000)) + lines(range(1000), "ftp://ftp.example.org/"))
    assert "2 different" in got.out
    assert "about 2000 different keys are 2 in their first eight bytes" in got.err
    assert "about 99.9 %" in got.err
    got = ok("build", "--kind", "range", "-o", "f.bly",
             stdin="".join(f"{WWW}{c}/the/same/{i}\n" for i in range(1000) for c in "ab"))
    assert "about 2000 different keys are 2 in their eight bytes behind the 24 that all begin with" in got.err


def test_what_does_not_is_left_alone(ok):
    """Words are told apart by eight bytes: such filters merge as before."""
    words = "".join(f"{c}{d}{i}\n" for i in range(100) for c in "ab" for d in "xyz")
    got = ok("build", "--kind", "range", "-o", "f.bly", stdin=words)
    assert got.err == "" and "order of bytes, seed" in ok("info", "f.bly").out
