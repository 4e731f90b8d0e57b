"""unique: each line the first time it comes, and what a filter that is kept
remembers of it, whatever happens to the command."""
import json
import os
import random
import signal
import subprocess

import pytest
from conftest import PATIENCE, PROGRAM, Result, keys, kinds_that, run


def lines_of(seed, n, different):
    """n lines, of which some are equal, empty or long."""
    rng = random.Random(seed)
    lines = [str(rng.randrange(different)) * rng.choice([1, 1, 1, 9])
             for _ in range(n)]
    for i in range(0, n, 97):
        lines[i] = ""
    return lines


def first_times(lines):
    return list(dict.fromkeys(lines))


def text(lines):
    return "".join(line + "\n" for line in lines)


def heed_signals():
    """Whoever runs the tests may ignore some, which is inherited."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


class Running:
    """A command that reads a pipe, with the lines that it has printed."""

    def __init__(self, cwd, *argv):
        self.process = subprocess.Popen(
            [PROGRAM, "unique", *argv], cwd=cwd, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=heed_signals)

    def tell(self, *lines):
        self.process.stdin.write(text(lines).encode())
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().decode().rstrip("\n")

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
        out, err = self.process.communicate(timeout=PATIENCE)
        return Result(self.process.returncode, out, err.decode())


# --------------------------------------------------------------- what it prints

@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_prints_each_line_once(ok, threads):
    lines = lines_of(1, 60000, 9000)
    got = ok("unique", "-t", threads, "-p", "1e-9", stdin=text(lines))
    assert got.lines == first_times(lines)
    assert f"{len(lines)} lines read, {len(got.lines)} printed" in got.err
    assert "swallowed, by estimate: 0\n" in got.err


@pytest.mark.parametrize("kind", kinds_that("add", "has",
                                            without=("likely-no",)))
def test_every_kind_that_adds(ok, kind):
    """None prints a line twice, and first-timers are rarely lost, within one
    batch too."""
    lines = lines_of(2, 30000, 5000)
    # One that forgets gets a window for all of them, known ones too.
    size = "40000" if kind == "aging" else "9000"
    got = ok("unique", "-k", kind, "-n", size, stdin=text(lines)).lines
    wanted = first_times(lines)
    assert len(got) > 0.99 * len(wanted)
    known = iter(wanted)
    assert all(line in known for line in got)  # in their order, none twice


def test_the_same_for_any_number_of_threads(ok):
    lines = text(lines_of(3, 200000, 90000))
    outs = {ok("unique", "-n", "30000", "-p", "5%", "-t", str(t),
               stdin=lines).raw for t in (1, 2, 3)}
    assert len(outs) == 1


def test_inputs_and_separators(ok):
    (ok.path / "a").write_bytes(b"x\ny\nx")
    (ok.path / "b").write_bytes(b"y\nz\n")
    subprocess.run(["gzip", "b"], cwd=ok.path, check=True)
    assert ok("unique", "a", "b.gz", "-", stdin="z\nq").raw == b"x\ny\nz\nq\n"
    assert ok("unique", "-0", stdin=b"a\nb\0a\0a\nb\0").raw == b"a\nb\0a\0"
    assert ok("unique", stdin="").raw == b""
    assert ok("unique", stdin="\n\n\n").raw == b"\n"
    assert ok("unique", "-q", stdin="a\na\n").err == ""


def test_a_million_empty_lines(ok):
    """Blocks of more keys than are hashed ahead."""
    assert ok("unique", stdin=b"\n" * 10**6 + b"x\n").raw == b"\nx\n"


def test_a_part_of_the_line_decides(ok):
    rows = "1,ann\n2,bob\n3,ann\n4,Bob\n"
    assert ok("unique", "--field", "2", "-d", ",",
              stdin=rows).raw == b"1,ann\n2,bob\n4,Bob\n"
    assert ok("unique", "--field", "2", "-d", ",", "-i",
              stdin=rows).raw == b"1,ann\n2,bob\n"
    assert ok("unique", "--jsonl", "u.n", stdin='{"u":{"n":1},"x":1}\n'
              '{"u":{"n":1},"x":2}\n').raw == b'{"u":{"n":1},"x":1}\n'


def test_a_header_stays(ok):
    """That of the first file, once, so that CSV stays CSV."""
    (ok.path / "a.csv").write_text("id,name\n1,ann\n2,bob\n3,ann\n")
    (ok.path / "b.csv").write_text("name,id\nann,4\neve,5\n")
    (ok.path / "none.csv").write_text("id,name\n")
    name = "unique", "--csv", "name"
    assert ok(*name, "a.csv", "b.csv").lines == \
        ["id,name", "1,ann", "2,bob", "eve,5"]
    assert ok(*name, "none.csv").lines == ["id,name"]
    assert ok(*name, "none.csv", "b.csv").lines == ["id,name", "ann,4", "eve,5"]
    assert ok("unique", "--csv", "2", "--no-header", "a.csv").lines == \
        ["id,name", "1,ann", "2,bob"]


def test_bad_lines_are_told_and_the_others_count(bly):
    got = bly("unique", "--filter", "f.bly", "--field", "2", stdin="a\tx\nb\n"
              "c\tx\nd\ty\n")
    assert got.status == 2 and got.lines == ["a\tx", "d\ty"]
    assert "line 2" in got.err
    assert bly("has", "f.bly", "x", "y").lines == ["x", "y"]


def test_what_is_read_is_printed_at_once(tmp_path):
    run_ = Running(tmp_path)
    for line in "one", "two", "three":
        run_.tell(line, "one")
        assert run_.hear() == line
    assert run_.end().out == ""


# ----------------------------------------------------------------- the estimate

@pytest.mark.parametrize("options", [
    ("-n", "4000", "-p", "1%"), ("-n", "20000", "-p", "1%"), ("-p", "5%"),
    ("-k", "scalable", "-n", "500", "-p", "2%"), ("-k", "cuckoo", "-n", "25k"),
    ("-k", "classic", "-n", "10000", "-p", "1%")])
def test_swallowed_lines_are_estimated(ok, options):
    n = 20000
    got = ok("unique", "--json", *options, stdin=keys(0, n))
    report = json.loads(got.err.splitlines()[0])
    assert report["lines"] == n and report["printed"] == len(got.lines)
    missing, guess = n - len(got.lines), report["swallowed"]
    assert abs(guess - missing) < 6 * (missing + 9) ** 0.5 + 0.1 * missing
    assert report["kind"] in (*options, "scalable", "blocked")


def test_a_filter_that_is_too_small_is_told(ok):
    got = ok("unique", "-n", "100", stdin=keys(0, 3000))
    assert "holds more keys than it was made for" in got.err \
        or "saturated" in got.err


def test_a_filter_that_grows_keeps_its_rate(ok):
    n = 2_500_000
    got = ok("unique", "--json", stdin=keys(0, n))
    report = json.loads(got.err)
    assert report["kind"] == "scalable" and report["fpr_now"] < 0.001
    assert n - report["printed"] < 0.0005 * n


# --------------------------------------------------------- from run to run

def test_the_filter_is_kept(ok):
    kept = ("--filter", "seen.bly")
    assert ok("unique", *kept, stdin="a\nb\na\n").lines == ["a", "b"]
    assert ok("unique", *kept, stdin="b\nc\n").lines == ["c"]
    assert ok("unique", *kept, "-n", "10", stdin="c\nd\n").lines == ["d"]
    assert ok("has", "seen.bly", "a", "b", "c", "d", "e").lines == list("abcd")
    assert ok("unique", *kept, "--json", stdin="a\n").raw == b""


def test_filters_of_build_and_keyed_ones(ok):
    (ok.path / "key").write_text("00112233445566778899aabbccddeeff\n")
    os.chmod(ok.path / "key", 0o600)
    ok("build", "-n", "1000", "-K", "key", "-o", "f.bly", stdin="a\n")
    assert ok("unique", "--filter", "f.bly", "-K", "key",
              stdin="a\nb\n").lines == ["b"]
    assert ok("unique", "--filter", "g.bly", "-K", "key", stdin="a\n").lines == \
        ["a"]
    assert run("has", "g.bly", "a", cwd=ok.path).status == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM,
                                    signal.SIGHUP])
def test_an_interrupt_saves_what_was_printed(ok, number):
    run_ = Running(ok.path, "--filter", "f.bly")
    run_.tell("a", "b", "a")
    assert [run_.hear(), run_.hear()] == ["a", "b"]
    got = run_.end(number)
    assert got.status == -number
    assert "2 printed" in got.err
    assert ok("unique", "--filter", "f.bly", stdin="a\nb\nc\n").lines == ["c"]


def test_nohup_is_respected(ok):
    process = subprocess.Popen(
        ["nohup", PROGRAM, "unique", "-q"], cwd=ok.path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"a\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"a\n"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(b"b\n", timeout=PATIENCE)[0] == b"b\n"
    assert process.returncode == 0


def test_killed_at_any_moment_it_loses_nothing(tmp_path):
    """Whatever the filter on disk remembers was printed before."""
    rng = random.Random(7)
    lines = [f"line {i}" for i in range(400000)]
    (tmp_path / "all").write_text(text(lines))
    printed = []
    for _ in range(6):
        process = subprocess.Popen(
            [PROGRAM, "unique", "-q", "--every", "1", "-n", "1M", "-p", "1e-6",
             "--filter", "f.bly", "all"], cwd=tmp_path, stdout=subprocess.PIPE)
        got = process.stdout.read(rng.randrange(4 * 10**6))
        process.kill()
        # What is in the pipe was printed too.
        printed += (got + process.stdout.read()).split(b"\n")[:-1]
        process.wait(PATIENCE)
        process.stdout.close()
        if (tmp_path / "f.bly").exists():
            assert run("info", "f.bly", cwd=tmp_path).status == 0
    last = run("unique", "--filter", "f.bly", "all", cwd=tmp_path)
    assert last.status == 0
    printed += last.raw.split(b"\n")[:-1]
    assert {line.decode() for line in printed} == set(lines)
    assert run("unique", "--filter", "f.bly", "all", cwd=tmp_path).raw == b""


def test_it_is_saved_on_the_way(tmp_path):
    run_ = Running(tmp_path, "--every", "1", "--filter", "f.bly")
    run_.tell("a")
    assert run_.hear() == "a"
    while run("has", "-q", "f.bly", "a", cwd=tmp_path).status:
        pass
    assert run_.end(signal.SIGKILL).status == -signal.SIGKILL
    assert run("unique", "--filter", "f.bly", stdin="a\nb\n",
               cwd=tmp_path).lines == ["b"]


def test_what_could_not_be_printed_is_not_remembered(bly):
    bly("unique", "--filter", "f.bly", stdin="old\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "unique", "--filter", "f.bly"],
                              cwd=bly.path, input=b"new\n", stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 2
    assert b"standard output: No space left" in done.stderr
    assert b"printed" not in done.stderr  # nobody knows how many
    assert bly("has", "f.bly", "old", "new").lines == ["old"]


def test_a_reader_who_goes_away_loses_nothing(bly):
    (bly.path / "all").write_text(keys(0, 300000))
    done = subprocess.run(
        f"{PROGRAM} unique -q -n 1M -p 1e-6 --filter f.bly all | head -n 1",
        shell=True, cwd=bly.path, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"key-0\n"
    assert len(bly("unique", "--filter", "f.bly", "all").lines) == 300000


def test_a_reader_who_does_not_read_does_not_keep_it_alive(bly):
    (bly.path / "all").write_text(keys(0, 300000))
    process = subprocess.Popen(
        [PROGRAM, "unique", "--filter", "f.bly", "all"], cwd=bly.path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == -signal.SIGTERM
    assert b"not saved, since nobody reads" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


def test_an_input_that_breaks_keeps_what_was_printed(bly):
    (bly.path / "good").write_text("a\nb\n")
    (bly.path / "bad.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3garbage")
    got = bly("unique", "--filter", "f.bly", "good", "bad.gz")
    assert got.status == 2 and got.lines == ["a", "b"]
    assert "bad.gz" in got.err
    assert bly("has", "f.bly", "a", "b").lines == ["a", "b"]


def test_a_full_filter_prints_what_it_took(bly):
    got = bly("unique", "-k", "cuckoo", "-n", "100", "--filter", "f.bly",
              stdin=keys(0, 5000))
    assert got.status == 2 and "full" in got.err
    assert 90 < len(got.lines) < 5000
    assert bly("has", "-c", "f.bly", stdin=got.raw).lines == \
        [str(len(got.lines))]


# -------------------------------------------------------------------- two of it

def test_two_at_once(bly):
    run_ = Running(bly.path, "--filter", "f.bly")
    run_.tell("a")
    assert run_.hear() == "a"
    for argv in ("unique", "--filter", "f.bly"), ("add", "f.bly", "x"):
        got = bly(*argv, "--wait", "0", stdin="b\n")
        assert got.status == 2 and got.raw == b""
        assert "another process is changing it" in got.err
    other = Running(bly.path, "--filter", "f.bly")
    other.tell("a", "b")
    run_.tell("c")
    assert run_.hear() == "c"
    assert run_.end().status == 0
    assert other.end().lines == ["b"]
    assert bly("has", "f.bly", "a", "b", "c", "x").lines == ["a", "b", "c"]


# ------------------------------------------------------------------ bad lines

def test_what_cannot_be(trouble, ok):
    ok("build", "-k", "fuse", "-o", "fuse.bly", stdin="a\n")
    ok("build", "--format", "guava", "-o", "g.guava", stdin="a\n")
    (ok.path / "text").write_text("a\n")
    trouble("unique", "--filter", "fuse.bly", says="cannot take keys")
    trouble("unique", "--filter", "text", says="text")
    trouble("unique", "--filter", "g.guava", says="guava")
    trouble("unique", "--filter", "no/such/f.bly", says="no/such")
    trouble("unique", "--filter", "-", says="changed in its file")
    trouble("unique", "--filter", ".", says=".")
    trouble("unique", "-k", "fuse", says=["fuse", "can add"])
    trouble("unique", "-k", "nosuch", says="nosuch")
    trouble("unique", "-n", "5", "-p", "1%", "-b", "100", says="contradict")
    trouble("unique", "--every", "0", says="at least 1")
    trouble("unique", "--filter", "fuse.bly", "--field", "0")
    assert not (ok.path / "no").exists()
