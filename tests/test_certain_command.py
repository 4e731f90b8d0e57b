"""Where an application relies on "no", it has no filter whose "no" may be wrong:
every kind, with far too small a capacity, either answers for all of its keys or
is refused."""
import hashlib

import pytest

from conftest import KINDS

N = 1000
NAMES = [f"host{i}.example" for i in range(N)]
WORDS = [f"word{'abcdefghij'[i // 1000]}{''.join('abcdefghij'[int(c)] for c in f'{i:04}')}"
         for i in range(N)]
SMALL = ["--items", "100"]


def text(lines):
    return "".join(f"{line}\n" for line in lines)


def refused(got):
    assert got.status == 2 and got.raw == b"", got.err
    assert len(got.err.splitlines()) == 1, got.err
    return True


# What cannot be relied on, by the table of kinds.
FORGETFUL = ["aging", "generalized", "spacecode"]


def made(bly, kind, *argv, **kw):
    got = bly(*argv, "--kind", kind, **kw)
    if kind in FORGETFUL:
        assert refused(got)
    return got.status == 0 or not refused(got)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_domains(bly, ok, kind):
    if made(bly, kind, "urls", "build", "-o", "u.bly", "--domains", *SMALL, stdin=text(NAMES)):
        assert ok("urls", "has", "-c", "u.bly", stdin=text(NAMES)).lines == [str(N)]


@pytest.mark.parametrize("kind", KINDS)
def test_passwords(bly, ok, kind):
    if made(bly, kind, "passwords", "build", "-o", "p.bly", "--words", *SMALL, stdin=text(WORDS)):
        assert ok("passwords", "check", "-c", "p.bly", stdin=text(WORDS)).lines == [str(N)]


@pytest.mark.parametrize("kind", KINDS)
def test_words(bly, kind):
    if made(bly, kind, "spell", "build", "-o", "s.bly", *SMALL, stdin=text(WORDS)):
        got = bly("spell", "check", "-c", "s.bly", stdin=text(WORDS))
        assert (got.status, got.lines) == (1, ["0"]), got.err


@pytest.mark.parametrize("kind", KINDS)
def test_tables(bly, ok, kind):
    (bly.path / "lines").write_text(text(f"{w}\t{i}" for i, w in enumerate(WORDS)))
    if made(bly, kind, "table", "build", "-o", "t.sst", "lines"):
        assert len(ok("table", "get", "t.sst", stdin=text(WORDS)).lines) == N


@pytest.mark.parametrize("kind", KINDS)
def test_joins(bly, ok, kind):
    (bly.path / "a").write_text(text(f"{w}\t1" for w in WORDS[::2]))
    (bly.path / "b").write_text(text(f"{w}\t2" for w in WORDS))
    got = bly("join", "a", "b", "--field", "1", "--kind", kind)
    if kind in FORGETFUL:
        assert refused(got)
    assert got.status == 2 and refused(got) or len(got.lines) == N // 2


def test_asking_a_filter_that_forgets(bly, ok, trouble):
    """Made with bloomery build, and given to an application all the same."""
    hashes = text(hashlib.sha1(w.encode()).hexdigest() for w in WORDS)
    for kind in "aging", "generalized":
        ok("build", "-k", kind, "-n", "100", "-o", "f.bly", "-q",
           "--meta", "passwords=sha1", stdin=hashes)
        trouble("passwords", "check", "f.bly", "--list", "sha1", stdin="x\n", says=kind)
        trouble("spell", "check", "f.bly", stdin="x\n", says=kind)
        trouble("urls", "has", "f.bly", "x.example", says=kind)
