"""What stands where a key may stand: - is standard input, and the name of a file
is probably meant for its lines."""
import pytest


@pytest.fixture
def f(ok):
    ok("build", "-n", "100", "-o", "f.bly", stdin="alice\nbob\n")
    ok("build", "-k", "counting", "-n", "100", "-o", "c.bly", stdin="alice\nbob\nbob\n")
    ok("build", "-k", "bloomier", "-o", "v.bly", stdin="alice\t1\nbob\t2\n")
    (ok.path / "list.txt").write_text("alice\ncarol\n")
    return ok


def test_a_dash_is_standard_input(f):
    assert f("has", "f.bly", "-", stdin="alice\ndave\n").lines == ["alice"]
    assert f("count", "c.bly", "-", stdin="bob\n").lines == ["bob\t2"]
    assert f("get", "v.bly", "-", stdin="bob\n").lines == ["bob\t2"]
    assert "1 key added" in f("add", "f.bly", "-", stdin="erin\n").out
    assert f("has", "f.bly", "erin").lines == ["erin"]
    assert "1 key removed" in f("remove", "c.bly", "-", stdin="bob\n").out
    assert f("count", "c.bly", "bob").lines == ["bob\t1"]
    assert "1 key set" in f("set", "v.bly", "-", stdin="bob\t3\n").out
    assert f("get", "v.bly", "bob").lines == ["bob\t3"]
    f("urls", "build", "-o", "u.bly", stdin="http://bad.example/\n")
    assert f("urls", "has", "u.bly", "-", stdin="http://bad.example/\n").raw
    assert f("urls", "show", "-", stdin="http://bad.example/\n").lines[0] == "http://bad.example/"


def test_behind_dashes_it_is_a_key(f, bly):
    assert bly("has", "f.bly", "--", "-", stdin="alice\n").status == 1
    f("add", "f.bly", "--", "-", stdin="zoe\n")
    assert f("has", "f.bly", "--", "-").lines == ["-"]
    assert bly("has", "f.bly", "zoe").status == 1
    f("add", "f.bly", "--", "-")


def test_a_dash_beside_keys(f, trouble):
    before = (f.path / "f.bly").read_bytes()
    for words in (["has", "f.bly", "alice", "-"], ["add", "f.bly", "-", "alice"],
                  ["count", "c.bly", "-", "-"], ["remove", "c.bly", "bob", "-"]):
        trouble(*words, stdin="erin\n", says=["standard input", "--"])
    trouble("has", "f.bly", "-", "-f", "list.txt", says="--file")
    trouble("has", "-", "-", stdin="x\n", says="both the filter and the keys")
    assert (f.path / "f.bly").read_bytes() == before


def test_a_file_is_no_key_of_a_change(f, trouble, bly):
    before = {n: (f.path / n).read_bytes() for n in ("f.bly", "c.bly", "v.bly")}
    for words in (["add", "f.bly", "list.txt"], ["add", "f.bly", "dave", "list.txt"],
                  ["remove", "c.bly", "list.txt"], ["set", "v.bly", "list.txt"],
                  ["set", "v.bly", "list.txt", "3"],
                  ["set", "v.bly", "alice", "1", "list.txt", "3"]):
        trouble(*words, says=["-f list.txt", "--"])
    for name, bytes_ in before.items():
        assert (f.path / name).read_bytes() == bytes_, name
    assert f("add", "f.bly", "--", "list.txt").err == ""
    assert f("has", "f.bly", "--", "list.txt").lines == ["list.txt"]
    f("add", "f.bly", "-f", "list.txt")
    assert f("has", "f.bly", "carol").lines == ["carol"]
    # A folder is not a list, and what is not there is a key.
    (f.path / "folder").mkdir()
    f("add", "f.bly", "folder")
    # Questions go through, with a warning if all of them are files.
    got = bly("has", "f.bly", "list.txt", "f.bly")
    assert got.status == 0 and "-f list.txt" in got.err
    assert f("has", "f.bly", "list.txt", "alice").err == ""


def test_in_the_shell(bly, f):
    got = bly("shell", "f.bly", stdin="has -\nadd list.txt\nadd -- list.txt\nhas -- list.txt\n")
    assert got.status == 2
    assert "no keys are given" in got.err and "-f list.txt" in got.err
    assert got.lines[-1] == "list.txt"
