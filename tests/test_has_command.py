"""has as grep: names, numbers, folders, lists of files, colours, and files that
cannot be read. `grep -Fx -f KEYS` with the same options says what is right: the
filter here has no false positives among the few keys that are asked."""
import gzip
import json
import os
import pty
import random
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, keys, run

WORDS = [f"word-{i}" for i in range(50)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Lists in a folder, and a filter of some of what is in them."""
    top = tmp_path_factory.mktemp("has")
    r = random.Random(3)
    (top / "known").write_text("".join(w + "\n" for w in WORDS[:20]))
    assert run("build", "-q", "-n", "1000", "-p", "1e-9", "-o", "f.bly",
               "known", cwd=top).status == 0
    for name in "a.log", "b.log", "lists/c.log", "lists/deep/d.log":
        path = top / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("".join(r.choice(WORDS) + "\n" for _ in range(200)))
    (top / "lists" / "none.log").write_text("nothing\n")
    (top / "lists" / "empty.log").write_text("")
    return top


def grep(folder, *argv, stdin=b""):
    done = subprocess.run(["grep", "-Fx", "-f", "known", *argv], cwd=folder,
                          input=stdin, capture_output=True, timeout=PATIENCE)
    return done.returncode, done.stdout


def files(*names):
    return [word for name in names for word in ("-f", name)]


# ----------------------------------------------------------------- beside grep

@pytest.mark.parametrize("options", [
    [], ["-n"], ["-H"], ["-nH"], ["-v"], ["-vn"], ["-l"], ["-lv"], ["-lc"],
    ["--no-filename"], ["-n", "--no-filename"], ["-q"], ["-qn"], ["-cH"],
    ["-cvH"]])
@pytest.mark.parametrize("names", [["a.log"], ["a.log", "b.log"],
                                   ["lists/none.log"], ["lists/empty.log"],
                                   ["b.log", "lists/none.log", "a.log"]])
def test_as_grep(folder, options, names):
    got = run("has", "f.bly", *options, *files(*names), cwd=folder)
    assert (got.status, got.raw) == grep(folder, *options, *names)
    assert got.err == ""


@pytest.mark.parametrize("options", [[], ["-n"], ["-l"], ["-v"], ["-cH"],
                                     ["--no-filename"]])
def test_folders_as_grep(folder, options):
    """In the order of names, which grep does not keep."""
    got = run("has", "f.bly", "-r", *options, "lists", "a.log", cwd=folder)
    status, out = grep(folder, "-r", *options, "lists", "a.log")
    assert got.status == status
    assert sorted(got.raw.splitlines()) == sorted(out.splitlines())
    named = [line.split(":")[0] for line in got.lines if ".log" in line]
    assert [n for n in named if n != "a.log"] == sorted(
        n for n in named if n != "a.log")


def test_standard_input_as_grep(folder):
    text = (folder / "a.log").read_bytes()
    for options in [], ["-n"], ["-H"], ["-nH"], ["-l"]:
        got = run("has", "f.bly", *options, cwd=folder, stdin=text)
        assert (got.status, got.raw) == grep(folder, *options, stdin=text)
    got = run("has", "f.bly", "-f", "b.log", "-f", "-", cwd=folder, stdin=text)
    assert (got.status, got.raw) == grep(folder, "b.log", "-", stdin=text)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_numbers_of_many_blocks(ok, threads):
    """Lines of many lengths, in several files; the last has no newline."""
    lines = [f"key-{i}" * (i % 5 + 1) for i in range(200000)]
    ok("build", "-n", "1M", "-p", "1e-9", "-o", "f.bly",
       stdin="".join(line + "\n" for line in lines[::7]))
    (ok.path / "x").write_text("\n".join(lines))
    with gzip.open(ok.path / "y.gz", "wt") as f:
        f.write("\n".join(lines) + "\n")
    got = ok("has", "-n", "-t", threads, "f.bly", "-f", "x", "-f", "y.gz").lines
    wanted = [f"{name}:{i + 1}:{lines[i]}" for name in ("x", "y.gz")
              for i in range(0, len(lines), 7)]
    assert got == wanted


def test_numbers_of_arguments_and_nuls(ok):
    ok("build", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\nb\nx\ny\n")
    assert ok("has", "-n", "f.bly", "z", "a", "q", "b").lines == ["2:a", "4:b"]
    assert ok("has", "-n", "-0", "f.bly", stdin=b"q\0a\0b\0").raw == \
        b"2:a\x003:b\0"


def test_numbers_with_fields(ok):
    """They are those of lines in the file: a header is one, and a record of CSV
    may be several."""
    ok("build", "-i", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="ann\nbob\n")
    rows = 'id,name\n1,ann\n2,"x\ny"\n3,bob\n'
    assert ok("has", "-n", "--csv", "name", "f.bly", stdin=rows).lines == \
        ["2:1,ann", "5:3,bob"]
    assert ok("has", "-n", "-i", "f.bly", stdin="x\nANN\n").lines == ["2:ANN"]


# --------------------------------------------------------------------- folders

def test_what_is_in_folders(ok):
    (ok.path / "d" / "e").mkdir(parents=True)
    ok("build", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\nb\n")
    (ok.path / "d" / "plain").write_text("a\n")
    (ok.path / "d" / ".hidden").write_text("a\n")
    with gzip.open(ok.path / "d" / "e" / "packed.gz", "wt") as f:
        f.write("x\nb\n")
    (ok.path / "d" / "nul").write_bytes(b"a\n\0\n")
    (ok.path / "d" / "copy.bly").write_bytes((ok.path / "f.bly").read_bytes())
    subprocess.run(["tar", "cf", "d/t.tar", "d/plain"], cwd=ok.path, check=True)
    os.symlink("plain", ok.path / "d" / "link")
    os.symlink("..", ok.path / "d" / "loop")
    os.mkfifo(ok.path / "d" / "pipe")
    wanted = ["d/.hidden:1:a", "d/e/packed.gz:2:b", "d/plain:1:a"]
    assert ok("has", "-rn", "f.bly", "d").lines == wanted
    assert ok("has", "-rn", "f.bly", "d/").lines == wanted
    assert ok("has", "-rn", "f.bly", "-f", "d").lines == wanted
    # One that is named is read, link or not; one that is not a list is an error
    # only there.
    assert ok("has", "-r", "f.bly", "d/link").lines == ["d/link:a"]
    assert ok("has", "f.bly", "-f", "d/nul").lines == ["a"]


def test_the_folder_here(bly, folder):
    got = run("has", "-rl", "../f.bly", cwd=folder / "lists")
    assert got.lines == ["./c.log", "./deep/d.log"]
    (bly.path / "empty").mkdir()
    assert run("has", "-r", folder / "f.bly", cwd=bly.path).status == 1


# --------------------------------------------------------- what cannot be read

def test_missing_files_do_not_stop_it(folder, bly):
    got = run("has", "f.bly", *files("missing", "a.log", "nor/this", "b.log"),
              cwd=folder)
    assert got.status == 2
    assert got.raw == grep(folder, "a.log", "b.log")[1]
    assert [line.split(": ")[2] for line in got.err.splitlines()] == \
        ["missing", "nor/this"]
    # Found is found, as grep -q has it; not found, and not all was read, is not.
    assert run("has", "-q", "f.bly", *files("missing", "a.log"),
               cwd=folder).status == 0
    assert run("has", "-q", "f.bly", *files("missing", "lists/none.log"),
               cwd=folder).status == 2
    assert run("has", "-cH", "f.bly", *files("missing", "lists/none.log"),
               cwd=folder).raw == b"lists/none.log:0\n"


def test_damaged_files_give_what_is_whole(bly):
    bly("build", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\nb\n")
    packed = gzip.compress(b"a\n" * 3000)
    (bly.path / "cut.gz").write_bytes(packed[:-9])
    (bly.path / "good").write_text("b\n")
    got = bly("has", "--no-filename", "f.bly", *files("cut.gz", "good"))
    assert got.status == 2 and got.lines[-1] == "b"
    assert set(got.lines) <= {"a", "b"}
    assert "cut.gz: the gzip data ends too early" in got.err
    got = bly("has", "f.bly", *files("f.bly", "good"))
    assert got.status == 2 and got.lines == ["good:b"]
    assert "a .bly filter" in got.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folders_that_cannot_be_read(bly):
    bly("build", "-n", "100", "-o", "f.bly", stdin="a\n")
    (bly.path / "d" / "closed").mkdir(parents=True)
    (bly.path / "d" / "open").write_text("a\n")
    os.chmod(bly.path / "d" / "closed", 0)
    got = bly("has", "-r", "f.bly", "d")
    os.chmod(bly.path / "d" / "closed", 0o700)
    assert got.status == 2 and got.lines == ["d/open:a"]
    assert "d/closed: Permission denied" in got.err


def test_options_that_contradict_each_other(trouble, folder):
    says = {("-l", "word-1"): "-f FILE", ("-H", "word-1"): "-f FILE",
            ("-l", "--json"): "exclude", ("-H", "--no-filename"): "exclude",
            ("--color", "blue"): "auto, always or never"}
    for options, words in says.items():
        trouble("has", folder / "f.bly", *options, says=words)
    trouble("has", "-r", says="no filter is given")


def test_a_full_disk(folder):
    for options in ["-n"], ["--json"], ["-l"], ["-cH"]:
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [PROGRAM, "has", "f.bly", *options, "-f", "a.log"], cwd=folder,
                stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        assert done.returncode == 2 and b"No space left" in done.stderr


# ------------------------------------------------------------------------ JSON

def objects(result):
    return [json.loads(line) for line in result.lines]


def test_an_object_for_each_key(ok):
    ok("build", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\nb\n")
    (ok.path / "x").write_text("q\na\n")
    assert objects(ok("has", "--json", "f.bly", "-f", "x", "-f", "-",
                      stdin="b")) == [
        {"key": "q", "maybe": False, "file": "x", "line": 1},
        {"key": "a", "maybe": True, "file": "x", "line": 2},
        {"key": "b", "maybe": True, "file": "-", "line": 1}]
    assert objects(ok("has", "--json", "-v", "f.bly", "-f", "x")) == [
        {"key": "q", "maybe": False, "file": "x", "line": 1}]
    assert objects(ok("has", "--json", "f.bly", "b", "z")) == [
        {"key": "b", "maybe": True, "file": None, "line": None},
        {"key": "z", "maybe": False, "file": None, "line": None}]
    assert objects(ok("has", "--json", "--field", "2", "f.bly",
                      stdin="1\ta\n")) == [
        {"key": "a", "maybe": True, "file": "-", "line": 1, "text": "1\ta"}]
    assert objects(ok("has", "--json", "-c", "f.bly", "-f", "x")) == [
        {"asked": 2, "maybe": 1, "by_mistake": pytest.approx(0, abs=1e-9)}]
    odd = b"a\"\\\xff\x01\n"
    assert objects(ok("has", "--json", "-v", "f.bly", stdin=odd))[0]["key"] == \
        "a\"\\\ufffd\x01"
    none = run("has", "--json", "f.bly", "z", cwd=ok.path)
    assert none.status == 1 and [o["maybe"] for o in objects(none)] == [False]
    assert ok("has", "--json", "-q", "f.bly", "a").raw == b""


def test_objects_of_many_blocks(ok):
    ok("build", "-n", "100k", "-p", "1e-9", "-o", "f.bly", stdin=keys(0, 50000))
    got = objects(ok("has", "--json", "-t", "2", "f.bly", stdin=keys(0, 60000)))
    assert [o["key"] for o in got] == [f"key-{i}" for i in range(60000)]
    assert [o["line"] for o in got] == list(range(1, 60001))
    assert [o["maybe"] for o in got] == [i < 50000 for i in range(60000)]


# ---------------------------------------------------------------------- colour

RED, END = "\033[01;31m", "\033[m"


def on_terminal(folder, *argv, **env):
    """What a terminal is shown."""
    top, under = pty.openpty()
    surroundings = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(
        [PROGRAM, "has", *argv], cwd=folder, stdout=under,
        stdin=subprocess.DEVNULL, env={**surroundings, "TERM": "xterm", **env})
    os.close(under)
    out = b""
    try:
        while piece := os.read(top, 65536):
            out += piece
    except OSError:  # how the end of a terminal reads
        pass
    process.wait(PATIENCE)
    os.close(top)
    return out.decode().replace("\r\n", "\n")


def test_colour_on_a_terminal(folder):
    argv = "f.bly", "word-1", "word-99"
    assert on_terminal(folder, *argv) == f"{RED}word-1{END}\n"
    assert on_terminal(folder, *argv, NO_COLOR="1") == "word-1\n"
    assert on_terminal(folder, *argv, NO_COLOR="") == f"{RED}word-1{END}\n"
    assert on_terminal(folder, *argv, TERM="dumb") == "word-1\n"
    assert on_terminal(folder, "--color", "never", *argv) == "word-1\n"
    assert on_terminal(folder, "-v", *argv) == "word-99\n"
    assert on_terminal(folder, "--json", *argv).startswith('{"key":"word-1"')


def test_colours_are_those_of_grep(folder):
    """But for the codes that clear the rest of a line."""
    got = run("has", "--color", "always", "-nH", "f.bly", "-f", "a.log",
              cwd=folder)
    done = subprocess.run(
        ["grep", "-Fx", "-f", "known", "-nH", "--color=always", "a.log"],
        cwd=folder, capture_output=True, timeout=PATIENCE,
        env={**os.environ, "GREP_COLORS": "ne"})
    assert got.raw == done.stdout
    assert run("has", "--color", "always", "-c", "f.bly", "-f", "a.log",
               cwd=folder).raw == grep(folder, "-c", "a.log")[1]


def test_the_key_in_its_line_is_coloured(ok):
    ok("build", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\n")
    always = "has", "--color", "always", "f.bly"
    assert ok(*always, "--field", "2", stdin="x\ta\ty\n").out == \
        f"x\t{RED}a{END}\ty\n"
    ok("build", "-i", "-n", "100", "-p", "1e-9", "-o", "f.bly", stdin="a\n")
    assert ok(*always, "-i", stdin="A\n").out == f"{RED}A{END}\n"


def test_bytes_do_not_steer_the_terminal(folder, tmp_path):
    """Names and keys are cleaned, the colours between them are not."""
    evil = "\033]0;owned\a"
    (tmp_path / f"x{evil}").write_text(f"{evil}key\n")
    assert run("build", "-q", "-n", "9", "-o", "f.bly", f"x{evil}",
               cwd=tmp_path).status == 0
    shown = on_terminal(tmp_path, "-nH", "f.bly", "-f", f"x{evil}")
    assert evil not in shown and "\a" not in shown
    assert f"{RED}?]0;owned?key{END}" in shown


def test_parts_have_forms_too(ok):
    """A format with several filters: a chain that has grown."""
    ok("build", "--format", "redisbloom", "-n", "10", "-o", "r.dump",
       stdin=keys(0, 50))
    plain = ok("has", "--parts", "r.dump", stdin="nothing\nkey-3\n").lines
    assert len(plain) == 1 and plain[0].startswith("key-3\t")
    assert ok("has", "--parts", "-nH", "r.dump",
              stdin="nothing\nkey-3\n").lines == \
        [f"(standard input):2:{plain[0]}"]
    got = objects(ok("has", "--parts", "--json", "r.dump", "key-3"))
    assert got[0]["part"] == plain[0].split("\t")[1]
