"""What may go wrong around a filter: damage, pipes, files that are one and the
same, names with odd characters, keys that are not keys."""
import json
import os
import re
import subprocess

import pytest
from conftest import KINDS, PATIENCE, PROGRAM, keys, kinds_that

BUILT = [k for k in kinds_that("has") if k not in kinds_that("build", "get")]


def shell(line, cwd, **kw):
    """A line of bash with $bly for the program: status, output, error."""
    done = subprocess.run(line, shell=True, cwd=cwd, executable="/bin/bash",
                          env={**os.environ, "bly": PROGRAM}, timeout=PATIENCE,
                          capture_output=True, text=True, **kw)
    return done.returncode, done.stdout, done.stderr


def damage(path, at=-1):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


# ----------------------------------------------------------------- damage

@pytest.mark.parametrize("kind", BUILT)
def test_a_damaged_filter_is_not_asked(ok, bly, trouble, kind):
    ok("build", "-q", "-o", "f.bly", "--kind", kind, "--items", "3000",
       stdin=keys(0, 1000))
    # In the middle of the last payload: the last bytes of some kinds are
    # padding.
    content = (ok.path / "f.bly").read_bytes()
    header = content.rfind(b"\x89BLY\r\n\x1a\n")
    nheader = 296 if kind in kinds_that("coded") else 4096
    # A small filter may be compact, which has no page for its header.
    compact = len(content) < 4096
    damage(ok.path / "f.bly", len(content) * 3 // 4 if compact else (header + nheader + len(content)) // 2)
    for options in ([], ["-v"], ["-c"], ["-q"], ["--json"], ["--verify"]):
        trouble("has", *options, "f.bly", "key-1", says="f.bly")
    # Those are read in any case.
    if kind not in kinds_that("tick") + kinds_that("coded") and not compact:
        assert bly("has", "--no-verify", "f.bly", "key-1").status in (0, 1)
    trouble("has", "--no-verify", "--verify", "f.bly", "key-1",
            says="--no-verify")


def test_a_large_filter_is_checked_where_asked_for(ok, trouble):
    ok("build", "-q", "-o", "big.bly", "--memory", "80MiB", "--fpr", "1%",
       stdin="needle\n")
    damage(ok.path / "big.bly")
    assert ok("has", "big.bly", "needle").out == "needle\n"
    trouble("has", "--verify", "big.bly", "needle", says="big.bly")


def test_a_large_filter_is_checked_where_it_is_asked(ok, bly, trouble):
    ok("build", "-q", "-o", "big.bly", "--memory", "80MiB", "--fpr", "1%",
       stdin=keys(0, 20000))
    whole = ok.path / "big.bly"
    info = ok("info", "--json", "big.bly").json
    assert info["format_version"] == 2 and info["block_checksums"] is True
    assert info["file_bytes"] == whole.stat().st_size
    # Clear some pages: the keys that lie there would be forgotten.
    with open(whole, "r+b") as file:
        file.seek(40 << 20)
        file.write(bytes(49152))
    forgotten = ok("has", "--no-verify", "-v", "big.bly",
                   stdin=keys(0, 20000)).out.split()
    assert forgotten
    for options in ([], ["-v"], ["-c"], ["--json"], ["-t1"], ["-t3", "-v"]):
        said = bly("has", *options, "big.bly", stdin=keys(0, 20000))
        assert said.status == 2
        assert "big.bly: damaged: bytes 41" in said.err
        # What was printed before is true.
        if "-v" in options:
            assert said.out == ""
    trouble("has", "-v", "big.bly", forgotten[0], says="damaged: bytes")
    # Keys elsewhere are answered, one by one as in a batch.
    others = [k for k in keys(0, 60).split() if k not in forgotten]
    answered = [k for k in others if bly("has", "big.bly", k).status == 0]
    assert len(answered) > 50
    assert ok("has", "big.bly", *answered).out.split() == answered
    assert bly("info", "big.bly").status == 2


def test_a_file_that_is_cut_meanwhile(ok):
    ok("build", "-q", "-o", "f.bly", "--items", "100000", stdin=keys(0, 10))
    asker = subprocess.Popen([PROGRAM, "has", "f.bly"], cwd=ok.path,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    asker.stdin.write(b"key-1\n")
    asker.stdin.flush()
    assert asker.stdout.readline() == b"key-1\n"
    os.truncate(ok.path / "f.bly", 4096)
    out, err = asker.communicate(keys(0, 10).encode(), timeout=PATIENCE)
    assert asker.returncode == 2, (asker.returncode, err)
    assert out == b""
    lines = err.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith("bloomery: has: f.bly")
    assert "was cut" in lines[0]


# ------------------------------------------------------- one and the same

@pytest.mark.parametrize("line, lost", [
    ("$bly build -o in in", "in"),
    ("$bly build -o ./in other in", "in"),
    ("$bly build -o link in", "in"),
    ("$bly build -o hard in", "in"),
    ("$bly build -o in < in", "in"),
    ("$bly build -o in - other < in", "in"),
    ("$bly build -o key -K key in", "key"),
    ("$bly build -o - -q in 1<> in", "in"),
])
def test_an_input_is_not_overwritten(ok, line, lost):
    for name in ("in", "other"):
        (ok.path / name).write_text(keys(0, 100))
    (ok.path / "key").write_bytes(b"k" * 16)
    (ok.path / "key").chmod(0o600)
    os.symlink("in", ok.path / "link")
    os.link(ok.path / "in", ok.path / "hard")
    before = {p.name: p.read_bytes() for p in ok.path.iterdir()}
    status, out, err = shell(line, ok.path)
    assert status == 2 and out == ""
    assert len(err.splitlines()) == 1
    assert "would be overwritten" in err and lost in err
    assert {p.name: p.read_bytes() for p in ok.path.iterdir()} == before


def test_outputs_that_are_no_inputs(ok):
    """A device is not overwritten by being written to."""
    (ok.path / "in").write_text(keys(0, 100))
    assert shell("$bly build -q -o /dev/null in < /dev/null",
                 ok.path)[0] == 0
    assert shell("$bly build -q -o /dev/null --items 9 /dev/null",
                 ok.path)[0] == 0


# ------------------------------------------------------------------- pipes

def test_filters_from_pipes(ok):
    (ok.path / "in").write_text(keys(0, 100))
    ok("build", "-q", "-o", "f.bly", "--items", "1000", "in")
    ok("build", "-q", "-o", "g.bly", "--items", "1000", stdin=keys(50, 100))
    for line, first in [
            ("$bly info <(cat f.bly) | sed -n 2p", "  kind"),
            ("$bly has <(cat f.bly) key-7", "key-7"),
            ("cat f.bly | $bly has /dev/stdin key-7", "key-7"),
            ("cat f.bly | $bly has - key-7", "key-7"),
            ("$bly has /dev/stdin key-7 < f.bly", "key-7"),
            ("$bly has -c <(cat f.bly) < in", "100"),
            ("$bly compare --json <(cat f.bly) <(cat g.bly)", '{"a":'),
            ("$bly merge -o m.bly <(cat f.bly) <(cat g.bly)", "m.bly")]:
        status, out, err = shell(line, ok.path)
        assert (status, err) == (0, ""), line
        assert out.startswith(first), (line, out)
    assert ok("has", "-c", "m.bly", stdin=keys(0, 150)).out == "150\n"


def test_a_damaged_filter_from_a_pipe(ok):
    ok("build", "-q", "-o", "f.bly", stdin=keys(0, 100))
    damage(ok.path / "f.bly")
    for line in ("$bly has <(cat f.bly) key-7", "$bly info <(cat f.bly)"):
        status, out, err = shell(line, ok.path)
        assert status == 2 and out == "" and len(err.splitlines()) == 1


@pytest.mark.parametrize("line", [
    "$bly has - < f.bly", "$bly has /dev/stdin < f.bly",
    "cat f.bly | $bly has /dev/stdin", "$bly has f.bly -f - < f.bly",
    "cat f.bly | $bly has /dev/stdin -f /dev/stdin",
])
def test_standard_input_twice(ok, line):
    ok("build", "-q", "-o", "f.bly", stdin=keys(0, 100))
    status, out, err = shell(line, ok.path)
    assert status == 2 and out == ""
    assert "both" in err and len(err.splitlines()) == 1


def test_a_pipe_cannot_be_changed(ok):
    ok("build", "-q", "-o", "f.bly", stdin=keys(0, 100))
    status, out, err = shell("$bly add <(cat f.bly) more", ok.path)
    assert status == 2 and "regular file" in err


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1", "f.bly"])
@pytest.mark.parametrize("to", ["| cat >", ">"])
def test_reports_do_not_mix_with_the_filter(ok, output, to):
    if output == "f.bly" and to != ">":
        pytest.skip("another file")
    for line in ("$bly build -o OUT in", "$bly merge -o OUT a.bly a.bly"):
        (ok.path / "in").write_text(keys(0, 100))
        ok("build", "-q", "-o", "a.bly", "in")
        made = line.replace("OUT", output)
        status, out, err = shell(f"{made} {to} f.bly", ok.path)
        assert (status, out) == (0, ""), err
        assert "blocked" in err
        assert ok("has", "-c", "f.bly", "-f", "in").out == "100\n"
        status, out, err = shell(
            f"set -o pipefail; {made} --json {to} f.bly", ok.path)
        assert status == 2 and "--json" in err
        assert (ok.path / "f.bly").read_bytes() == b""


# ------------------------------------------------------------ empty input

@pytest.mark.parametrize("options", [
    ["--kind", "classic", "-O", "k=4"], ["-O", "k=4"], ["--fpr", "1%"],
    ["--kind", "scalable", "-O", "growth=4"],
])
def test_options_are_no_capacity(ok, trouble, options):
    if options[1] not in KINDS and options[0] == "--kind":
        pytest.skip("no such kind")
    trouble("build", *options, "-o", "d.bly", "/dev/null", says="--items")
    assert not (ok.path / "d.bly").exists()


def test_kinds_that_options_size(ok):
    if "countmin" not in KINDS:
        pytest.skip("no such kind")
    ok("build", "-q", "-k", "countmin", "-O", "width=100", "-o", "d.bly",
       "/dev/null")
    ok("build", "-q", "-k", "countmin", "--memory", "4k", "-o", "d.bly",
       "/dev/null")


# ------------------------------------------------------------------- names

ODD = "a\nb\x1b[31m\x7f\u009bc.bly"


def test_names_are_cleaned_for_people(ok, bly):
    build = ok("build", "-o", ODD, "--items", "100", stdin=keys(0, 50))
    for result in (build, ok("info", ODD), ok("add", ODD, "more"),
                   ok("merge", "-o", ODD, ODD, ODD), ok("compare", ODD, ODD),
                   bly("info", "x" + ODD)):
        text = result.out + result.err
        assert "\x1b" not in text and "\u009b" not in text, text
        assert "a?b?[31m??" in text, text
    assert len(build.lines) == 1
    # Programs get the name as it is.
    assert ok("info", "--json", ODD).json["file"] == ODD


def test_long_names(ok):
    name = "./" * 1500 + "f.bly"
    assert ok("build", "-o", name, stdin="x\n").out.startswith("././")


# ----------------------------------------------------------------- numbers

@pytest.mark.parametrize("kind", BUILT)
@pytest.mark.parametrize("items", ["20", "3000", "70000"])
def test_plan_and_build_agree(ok, kind, items):
    plan = ok("plan", "--kind", kind, "--items", items)
    memory = re.search(r"memory\s+(\S+ \S+) \(", plan.out).group(1)
    result = ok("build", "--kind", kind, "--items", items, "-o", "f.bly",
                stdin=keys(0, 20))
    assert f", {memory}" in result.out, (memory, result.out)
    planned = ok("plan", "--kind", kind, "--items", items, "--json").json
    made = ok("build", "--kind", kind, "--items", items, "-o", "f.bly",
              "--json", stdin=keys(0, 20)).json
    assert made["bytes"] == planned["kinds"][0]["bytes"]


def test_compare_of_saturated_filters(ok):
    ok("build", "-q", "-o", "a.bly", "--items", "10", stdin=keys(0, 9999))
    ok("build", "-q", "-o", "b.bly", "--items", "10", stdin=keys(0, 5))
    for other in ("a.bly", "b.bly"):
        text = ok("compare", "a.bly", other).out
        assert "nan" not in text and "inf " not in text, text
        assert "unknown" in text


@pytest.mark.parametrize("kind", BUILT)
def test_info_says_what_was_counted(ok, kind):
    ok("build", "-q", "-o", "a.bly", "--kind", kind, "--items", "1000",
       stdin=keys(0, 100))
    text = ok("info", "a.bly").out
    assert "additions changed it" not in text
    assert re.search(r"\d+ counted", text)


# --------------------------------------------------------------- key files

@pytest.mark.parametrize("content, good", [
    (b"00112233445566778899aabbccddeeff", True),
    (b"00112233445566778899aabbccddeeff\n", True),
    (b"00112233445566778899AABBCCDDEEFF\r\n", True),
    (b"00112233445566778899aabbccddeeff\r", False),
    (b"00112233445566778899aabbccddeeff\r\n\n", False),
    (b"00112233445566778899aabbccddeeff0\n", False),
    (b"not a key", False),
    (b"", False),
])
def test_key_files(ok, trouble, content, good):
    (ok.path / "key").write_bytes(content)
    (ok.path / "key").chmod(0o644)
    argv = ["build", "-o", "f.bly", "-K", "key"]
    if not good: # one line, though others can read it, too
        trouble(*argv, stdin="x\n", says="key: not a key")
        return
    assert "warning" in ok(*argv, stdin="x\n").err
    (ok.path / "raw").write_bytes(bytes(range(0, 0x100, 0x11)))
    (ok.path / "raw").chmod(0o600)
    assert ok("has", "f.bly", "-K", "raw", "x").out == "x\n"


# ------------------------------------------------------------------- quiet

@pytest.mark.parametrize("argv", [
    ["build", "-o", "new.bly", "--items", "1", "-K", "key", "in"],
    ["add", "f.bly", "-f", "in"],
    ["merge", "-o", "m.bly", "f.bly", "f.bly"],
    ["intersect", "-o", "i.bly", "f.bly", "f.bly"],
    ["has", "f.bly", "-f", "in"],
])
def test_quiet_wins(ok, argv):
    (ok.path / "in").write_text(keys(0, 1000))
    (ok.path / "key").write_bytes(b"k" * 16)
    ok("build", "-q", "-o", "f.bly", "--items", "10", "in")
    loud = ok(*argv, "--json")
    assert all(json.loads(line) for line in loud.lines)
    quiet = ok(*argv, "--json", "-q")
    assert (quiet.out, quiet.err) == ("", "")
    assert ok(*argv, "-q").out == ""
