"""sync while others write: an edit, a swapped link, a changed mode between any
two steps of a run. Nothing that somebody writes meanwhile is lost, and nothing
outside of the folder is touched. meanwhile.c makes the moments."""
import os
import shutil
import subprocess

import pytest
from conftest import BUILD, PATIENCE, PROGRAM

MEANWHILE = BUILD / "tests" / "meanwhile.so"
NET = f"{PROGRAM}-net"  # which does the work of sync: what is preloaded ends with the program that it began in
# Every moment takes half a minute; every third one, ten seconds (make faults).
STEP = 1 if os.environ.get("BLY_FULL") else 3


def put(path, contents, when=1000, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    os.utime(path, (when, when))
    path.chmod(mode)


def moments(folder, make, argv, action, start=1, step=STEP):
    """Run argv once for each moment: the folder it ran in, and its result. The
    first piece that is sent is a greeting, after which the folder is read; the
    second begins to compare."""
    if not MEANWHILE.exists():
        pytest.skip("meanwhile.so is not built (make programs)")
    n = start
    while True:
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        make(work)
        done = subprocess.run(
            [NET, *argv], cwd=work, capture_output=True, text=True,
            timeout=PATIENCE, env=os.environ | {
                "LD_PRELOAD": str(MEANWHILE), "BLY_AT": str(n),
                "BLY_FROM": "2", "BLY_DO": action, "BLY_MARK": "mark"})
        if not (work / "mark").exists():
            assert n > 20, "the command makes more calls than that"
            return
        yield work, done, f"moment {n}, before {(work / 'mark').read_text()}"
        n += step


# Files that a pull replaces, removes, makes, or changes the mode of.
FATES = ["edited", "renamed", "removed", "made", "mode", "long"]
LONG = bytes(range(256)) * 400


def two_sides(work):
    for name in "edited", "renamed", "mode":
        put(work / "x" / name, b"old")
        put(work / "y" / name, b"from the other side", 2000)
    put(work / "y" / "mode", b"old", 2000, 0o755)
    put(work / "x" / "removed", b"old")
    put(work / "y" / "made", b"from the other side")
    put(work / "x" / "long", LONG)
    put(work / "y" / "long", LONG[:50000] + b"more" + LONG[50000:], 2000)


EDITS = """
cd x
for f in edited renamed removed made mode long; do
    [ -e $f ] && { read -r l < $f; echo "$l" > ../saw-$f; }
done
printf mine > edited; printf mine > made; printf mine > removed
printf mine > mode; printf mine >> long
printf mine > t; mv t renamed
"""


def test_no_edit_is_lost(tmp_path):
    argv = ["sync", "pull", "--delete", "-t", "1", "x", "--pipe",
            f"{PROGRAM} sync serve --stdio -t 1 y"]
    kept = set()
    for work, done, when in moments(tmp_path, two_sides, argv, EDITS):
        assert done.returncode in (0, 2), (when, done.stderr)
        for name in FATES:
            path = work / "x" / name
            assert path.exists(), (when, name, done.stderr)
            assert path.read_bytes().endswith(b"mine"), (when, name,
                                                         done.stderr)
            # One that was written to before it was replaced is named.
            saw = work / f"saw-{name}"
            was_old = saw.exists() and saw.read_bytes() == b"old\n"
            if name in ("edited", "renamed", "removed") and was_old:
                assert f"x/{name}: not taken" in done.stderr, when
                assert done.returncode == 2, when
                kept.add(name)
        # Nothing is left over but what people wrote.
        assert {p.name for p in (work / "x").iterdir()} <= {
            *FATES, "t"}, when
    assert kept == {"edited", "renamed", "removed"}


SWAPS = """
mv x/d gone && ln -s ../outside/d x/d
for f in a b c; do rm -f x/$f; ln -s ../outside/$f x/$f; done
"""


def test_nothing_outside_is_touched(tmp_path):
    """Files and folders become links to others outside, at any moment."""
    def make(work):
        for name in "a", "b", "c", "d/a", "d/b":
            put(work / "outside" / name, b"outside", 500, 0o600)
        for name in "a", "d/a":
            put(work / "x" / name, b"old")
            put(work / "y" / name, b"from the other side", 2000, 0o755)
        put(work / "x" / "b", b"old")
        put(work / "y" / "b", b"old", 1000, 0o755)
        put(work / "y" / "c", b"new", 2000, 0o755)
        put(work / "y" / "d" / "new", b"new", 2000)
        put(work / "x" / "d" / "b", b"only here")

    argv = ["sync", "pull", "--delete", "-t", "1", "x", "--pipe",
            f"{PROGRAM} sync serve --stdio -t 1 y"]
    for work, done, when in moments(tmp_path, make, argv, SWAPS):
        assert done.returncode in (0, 2), (when, done.stderr)
        found = sorted(str(p.relative_to(work / "outside"))
                       for p in (work / "outside").rglob("*") if p.is_file())
        assert found == ["a", "b", "c", "d/a", "d/b"], when
        for name in found:
            path = work / "outside" / name
            st = path.stat()
            assert path.read_bytes() == b"outside", (when, name)
            assert (st.st_mode & 0o777, st.st_mtime) == (0o600, 500), (when,
                                                                      name)


def test_no_line_is_lost(tmp_path):
    """A list to which somebody appends, at any moment."""
    def make(work):
        put(work / "a", b"one\ntwo\n")
        put(work / "b", b"two\nthree\n")

    argv = ["sync", "pull", "-t", "1", "a", "--pipe",
            f"{PROGRAM} sync serve --stdio -t 1 b"]
    for work, done, when in moments(tmp_path, make, argv,
                                    "cp a saw; echo mine >> a", step=1):
        lines = (work / "a").read_bytes().split(b"\n")
        assert {b"one", b"two", b"mine"} <= set(lines), (when, done.stderr)
        assert (b"three" in lines) == (done.returncode == 0), when
        if done.returncode:
            assert done.returncode == 2 and "changed" in done.stderr, when
        assert {p.name for p in work.iterdir()} <= {"a", "b", "saw",
                                                    "mark"}, when
