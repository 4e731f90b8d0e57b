"""Lines as Windows writes them: CR LF at their ends, a byte order mark before
the first. A key with a CR is another key, so whoever reads one is told; lists of
passwords, URLs and words know that a CR is not part of theirs."""
import gzip
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM

MARK = b"\xef\xbb\xbf"
CR = "warning: {}: its lines end in CR LF"
BOM = "warning: {}: begins with a byte order mark"
STDIN = "standard input"


@pytest.fixture
def f(ok):
    ok("build", "-n", "100", "-o", "f.bly", stdin="alice\nbob\n")
    ok("build", "-k", "counting", "-n", "100", "-o", "c.bly", stdin="alice\nbob\n")
    ok("build", "-k", "bloomier", "-o", "v.bly", stdin="alice\t1\nbob\t2\n")
    ok("build", "-k", "classic", "-o", "g.bly", stdin="carol\n")
    return ok


# What reads keys from lines. {} is a file of them, or nothing for standard input.
READERS = ["build -o new.bly", "add f.bly", "has f.bly", "count c.bly",
           "remove c.bly", "get v.bly", "distinct", "top --k 2", "unique",
           "join list.txt other.txt --field 1",
           "sync local list.txt other.txt",
           "table build -o t.sst list.txt"]


@pytest.mark.parametrize("line", READERS)
def test_carriage_returns_are_told(f, bly, line):
    (f.path / "list.txt").write_bytes(b"alice\r\nbob\r\ncarol")
    (f.path / "other.txt").write_bytes(b"alice\nbob\n")
    (f.path / "t").mkdir()
    got = bly(*line.split(), stdin=b"alice\r\nbob\r\ncarol")
    name = "list.txt" if "list.txt" in line else STDIN
    assert got.err.count(CR.format(name)) == 1, got.err
    has_option = "--crlf" in f(line.split()[0], "--help").out
    assert ("use --crlf" in got.err) == has_option, got.err
    if has_option:
        got = bly(*line.split(), "--crlf", stdin=b"alice\r\nbob\r\ncarol")
        assert "warning" not in got.err, got.err


@pytest.mark.parametrize("line", READERS)
def test_a_mark_is_told(f, bly, line):
    (f.path / "list.txt").write_bytes(MARK + b"alice\nbob\n")
    (f.path / "other.txt").write_bytes(b"alice\nbob\n")
    (f.path / "t").mkdir()
    got = bly(*line.split(), stdin=MARK + b"alice\nbob\n")
    name = "list.txt" if "list.txt" in line else STDIN
    assert got.err.count(BOM.format(name)) == 1, got.err
    assert "CR LF" not in got.err
    if "--crlf" in f(line.split()[0], "--help").out:
        got = bly(*line.split(), "--crlf", stdin=MARK + b"alice\nbob\n")
        assert "warning" not in got.err, got.err


def test_values_with_carriage_returns(f, bly):
    got = bly("set", "v.bly", stdin=b"alice\t3\r\nbob\t1\r\n")
    assert got.status == 2 and CR.format(STDIN) in got.err
    assert f("set", "v.bly", "--crlf", stdin=b"alice\t3\r\nbob\t1\r\n").err == ""
    assert f("get", "v.bly", "alice", "bob").lines == ["alice\t3", "bob\t1"]


def test_crlf_takes_both_off(f, ok):
    windows = MARK + b"alice\r\nbob\r\n"
    assert ok("has", "f.bly", "--crlf", stdin=windows).lines == ["alice", "bob"]
    ok("build", "-o", "w.bly", "--crlf", stdin=windows)
    assert ok("has", "w.bly", "alice", "bob").lines == ["alice", "bob"]
    # It is noted in the filter, and whoever asks follows.
    got = ok("has", "w.bly", stdin=windows)
    assert got.err == "" and got.lines == ["alice", "bob"]


@pytest.mark.parametrize("argv, text, told", [
    ("--csv name", b"name,n\r\nalice,1\r\nbob,2\r\n", ""),
    ("--csv name", MARK + b"name,n\r\nalice,1\r\nbob,2\r\n", ""),
    ("--jsonl name", b'{"name":"alice"}\r\n{"name":"bob"}\r\n', ""),
    ("--jsonl name", MARK + b'{"name":"alice"}\r\n{"name":"bob"}\r\n', ""),
    ("-0", b"alice\r\0bob\r\0", ""),
    ("-0", MARK + b"alice\0bob\0", BOM),
    ("--field 1", b"alice\t1\r\nbob\t2\r\n", ""),  # the CR is in another field
    ("--field 2", b"1\talice\r\n2\tbob\r\n", CR),
    ("--field -1 -d blanks", b"1 alice\r\n2 bob\r\n", CR),
    ("--field 2 --crlf", b"1\talice\r\n2\tbob\r\n", ""),
    ("--regex (.*)", b"alice\r\nbob\r\n", CR),
    ("--regex ([a-z]*)", b"alice\r\nbob\r\n", ""),
    ("", gzip.compress(b"alice\r\nbob\r\n"), CR),
    ("", gzip.compress(MARK + b"alice\nbob\n"), BOM),
    ("--crlf", gzip.compress(MARK + b"alice\r\nbob\r\n"), ""),
    ("", b"alice\r\nbob\n", ""),  # not all of them: data of some other kind
    ("", b"alice\r\n\nbob\r\n", ""),
    ("--trim", b"alice\r\nbob\r\n", ""),
    ("", b"alice\r", CR),
    ("", MARK, BOM),
    ("-q", MARK + b"alice\r\n", ""),
])
def test_what_is_told_and_what_not(f, bly, argv, text, told):
    for command in ("has", "f.bly"), ("build", "-n", "10", "-o", "new.bly"):
        if command[0] == "build" and "-0" in argv:
            argv = argv.replace("-0", "--null")
        got = bly(*command, *argv.split(), stdin=text)
        assert got.status <= 1, got.err
        assert got.err.count("warning") == bool(told), got.err
        assert told.format(STDIN) in got.err


def test_integers_have_no_carriage_returns(ok):
    assert ok("build", "--int", "-o", "i.bly", stdin=b"12\r\n13\r\n").err == ""
    assert ok("has", "i.bly", "12", "13").lines == ["12", "13"]


def test_many_files_are_summed_up(f, bly):
    names = []
    for i in range(20):
        names.append(f"list{i}.txt")
        (f.path / names[-1]).write_bytes(b"dave\r\n" if i < 15 else b"dave\n")
    got = bly("has", "f.bly", *(w for n in names for w in ("-f", n)))
    assert got.err.count("its lines end in CR LF") == 1
    assert "14 more files with lines that end in CR LF" in got.err


def test_a_pipe_that_trickles(f):
    """A mark comes byte by byte, and is one all the same."""
    p = subprocess.Popen([PROGRAM, "has", "f.bly", "--crlf"], cwd=f.path,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, bufsize=0)
    for byte in MARK:
        p.stdin.write(bytes([byte]))
    out, err = p.communicate(b"alice\r\n", timeout=PATIENCE)
    assert (out, err, p.returncode) == (b"alice\r\n", b"", 0)


@pytest.mark.parametrize("encoding, name", [("utf-16", "UTF-16"), ("utf-32", "UTF-32")])
def test_other_encodings(trouble, encoding, name):
    trouble("build", "-o", "f.bly", stdin="alice\r\n".encode(encoding),
            says=[name, f"iconv -f {name} -t UTF-8"])


# ------------------------------------------------- lists that take them off

FORMS = [b"password\nletmein\n", b"password\r\nletmein\r\n",
         MARK + b"password\r\nletmein\r\n", b"password\r\nletmein\r",
         gzip.compress(MARK + b"password\r\nletmein\r\n")]


@pytest.mark.parametrize("words", FORMS)
def test_passwords(ok, bly, trouble, words):
    (ok.path / "words").write_bytes(words)
    ok("passwords", "build", "-o", "p.bly", "--words", "words")
    for asked in FORMS[:-1]:
        got = ok("passwords", "check", "p.bly", stdin=asked)
        assert got.lines == ["line 1: in the list", "line 2: in the list"], asked
        assert "warning: standard" not in got.err
    ok("passwords", "build", "-o", "k.bin", "--words", "--format", "guava", "words")
    assert ok("has", "k.bin", "password", "letmein").lines == ["password", "letmein"]
    # Compressed bytes and UTF-16 would all be "not in the list".
    trouble("passwords", "check", "p.bly", stdin=gzip.compress(b"password\n"),
            says="gzip -dc")
    trouble("passwords", "check", "p.bly", stdin="password\n".encode("utf-16"),
            says="iconv -f UTF-16")
    # Where they end at NUL, they are what they are.
    assert bly("passwords", "check", "-0", "p.bly", stdin=b"password\r\0").status == 1


@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
@pytest.mark.parametrize("mark", [MARK, b""])
def test_hashes_of_passwords(ok, ending, mark):
    sha1 = b"5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8"
    (ok.path / "list").write_bytes(mark + sha1 + b":3" + ending)
    got = ok("passwords", "build", "-o", "p.bly", "list")
    assert got.err == ""
    assert ok("passwords", "check", "p.bly", stdin=b"password\r\n").status == 0
    (ok.path / "dump").write_bytes(mark + sha1 + ending)
    got = ok("passwords", "check", "p.bly", "--hashes", "dump")
    assert got.err == "" and got.lines == [sha1.decode()]
    (ok.path / "mirror").write_bytes(sha1 + b":3" + ending)
    assert ok("passwords", "check", "p.bly", "--mirror", "mirror",
              stdin=b"password\r\n").lines == ["line 1: in the list, seen 3 times"]


@pytest.mark.parametrize("mark", [MARK, b""])
def test_urls(ok, mark):
    (ok.path / "list").write_bytes(mark + b"http://bad.example/a\r\nhttp://worse.example/\r\n")
    (ok.path / "names").write_bytes(mark + b"bad.example\r\nworse.example\r\n")
    assert ok("urls", "build", "-o", "u.bly", "list").err == ""
    assert ok("urls", "build", "-o", "n.bly", "--domains", "names").err == ""
    got = ok("urls", "has", "-c", "u.bly", "-f", "list")
    assert got.err == "" and got.lines == ["2"]
    got = ok("urls", "has", "-c", "n.bly", "-f", "names")
    assert got.err == "" and got.lines == ["2"]
    assert ok("urls", "has", "u.bly", "--full", "list", "http://bad.example/a").raw
    got = ok("urls", "show", "-f", "list")
    assert got.err == "" and got.lines[0] == "http://bad.example/a"
    assert ok("urls", "helper", "n.bly", stdin=b"www.bad.example\r\n").lines == ["OK"]


@pytest.mark.parametrize("mark", [MARK, b""])
def test_spelling(ok, bly, mark):
    (ok.path / "words").write_bytes(mark + b"apple\r\npear\r\n")
    assert ok("spell", "build", "-o", "s.bly", "words").err == ""
    got = bly("spell", "check", "s.bly", stdin=mark + b"apple pear\r\npear\r\n")
    assert (got.status, got.err, got.raw) == (1, "", b"")


def test_lists_of_addresses(ok):
    (ok.path / "list").write_bytes(MARK + b"192.0.2.1\r\n198.51.100.0/24\r\n")
    got = ok("traffic", "block", "-o", "b.bly", "list")
    assert "warning" not in got.err


def test_baskets(ok):
    (ok.path / "list").write_bytes(MARK + b"a b\r\na b\r\na b\r\n")
    assert "\\xef" not in ok("basket", "-T", "0.5", "list").out
    assert ok("basket", "-T", "0.5", "list").err.count("warning") == 0
