"""The error paths of every command, verb and option: bad files, bad values,
missing programs, and standard output that is closed, full or read by nobody.

The lines are made from the command's own tables (`help --json`), so that a new
verb or option is among them without a line here, and from the recipes of the
fault tests, in which each file is replaced by a bad one. Whatever is wrong: the
status is 0, 1 or 2, a 2 comes with its reason, no file has changed after it,
and nothing that was to be printed is lost without a word.

The short form takes a part of the lines, as the command was built. `make errors`
takes all of them, with sanitizers, and then this part again under valgrind,
which notices memory that is read before it is written (BLY_UNDER).
"""
import dataclasses
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import pytest

import fault_recipes as recipes
from conftest import BUILD, PATIENCE, PROGRAM, ROOT, keys, run

FULL = bool(os.environ.get("BLY_FULL"))
# With BLY_PROGRAMS empty, none but the command runs: the memory sanitizer does
# not know what their libraries write.
OTHERS = os.environ.get("BLY_PROGRAMS", "yes") != ""
UNDER = shlex.split(os.environ.get("BLY_UNDER", ""))
NO_NETWORK = BUILD / "tests" / "no_network.so"
NOBODY = 65534

COMMANDS = run("help", "--json").json
# Commands and their verbs; "-", with the command's own options, for none.
VERBS = [(c, v["verb"], v["options"]) for c in COMMANDS for v in c["verbs"]] + \
    [(c, "-", c["options"]) for c in COMMANDS if not c["verbs"]]

# What the fault tests know of, and what a stranger may give instead.
BAD_FILES = ["absent", "folder", "empty", "garbage", "half.bly", "secret",
             "dangling", "no/folder/here"]
# Nothing here is a large number: that would be a wish, and take long.
BAD_VALUES = ["", "x", "-1", "0", "nan", "18446744073709551616", "%s%n", "=",
              "127.0.0.1:99999", ",", ":", "-", b"\xff\xfe", "x" * 5000]
# Lines of input that are there are worked on, though others are missing.
GO_ON = {"dedup", "unique"}
FOUND = re.compile(r"\(null\)|Sanitizer|runtime error|^==\d+==", re.M)
FILES = re.compile(r"FILE|FOLDER|DIR|LIST|FILTER|INPUT")


# ---------------------------------------------------------------- the folder

class Place:
    """A folder of a user who may do nothing, with the program in it: lines
    that are made up must not reach anything else."""

    def __init__(self, at, fill):
        self.at, self.folder = at, at / "folder"
        at.chmod(0o755)
        self.program = at / "bloomery"
        for made in [PROGRAM, *pathlib.Path(PROGRAM).parent.glob("bloomery-[a-z]*")]:
            shutil.copy(made, at)
        self.shim = at / "no_network.so"
        shutil.copy(NO_NETWORK, self.shim)
        # Where programs are that cannot be run.
        self.broken = at / "broken"
        self.broken.mkdir()
        (self.broken / "bloomery-net").write_bytes(b"no program")
        fill(self.folder)
        self.as_nobody = {}
        if os.geteuid() == 0:
            self.as_nobody = {"user": NOBODY, "group": NOBODY,
                              "extra_groups": []}
            for path in [self.folder, *self.folder.rglob("*")]:
                os.lchown(path, NOBODY, NOBODY)
        secret = self.folder / "secret"
        secret.touch()
        secret.chmod(0)
        if os.geteuid() == 0:
            os.chown(secret, 0, 0)
        self.kept = at / "kept"
        shutil.copytree(self.folder, self.kept, symlinks=True,
                        ignore=shutil.ignore_patterns("secret"))
        self.state = self.look()

    def look(self):
        """What changes when a file is written, made, replaced or removed."""
        seen = {}
        for path in self.folder.rglob("*"):
            st = path.lstat()
            seen[str(path.relative_to(self.folder))] = \
                (st.st_mode, st.st_ino, st.st_size, st.st_mtime_ns) \
                if not path.is_dir() or path.is_symlink() else st.st_mode
        return seen

    def restore(self):
        for path in self.folder.iterdir():
            if path.name == "secret":
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(self.kept, self.folder, symlinks=True,
                        dirs_exist_ok=True)
        for path in self.folder.rglob("*"):
            if os.geteuid() == 0 and path.name != "secret":
                os.lchown(path, NOBODY, NOBODY)
        self.state = self.look()

    def run(self, argv, stdin=b"", stdout=subprocess.PIPE, others=True):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        env.update(LD_PRELOAD=str(self.shim), TMPDIR=str(self.folder),
                   HOME=str(self.folder), LC_ALL="C.UTF-8",
                   ASAN_OPTIONS="abort_on_error=0:exitcode=99:"
                   "allocator_may_return_null=1:detect_leaks=1",
                   UBSAN_OPTIONS="halt_on_error=1:exitcode=99",
                   MSAN_OPTIONS="exitcode=99")
        if not (others and OTHERS):
            env["BLOOMERY_LIBEXEC"] = str(self.broken)
        done = subprocess.run(
            [*UNDER, self.program, *argv], cwd=self.folder, env=env,
            input=stdin, stdout=stdout, stderr=subprocess.PIPE,
            timeout=PATIENCE, **self.as_nobody)
        return recipes.Done(done.returncode, done.stdout,
                            done.stderr.decode("utf-8", "replace"))


def fill(folder):
    """Files of all sorts, good and bad."""
    folder.mkdir()
    (folder / "words.txt").write_text(keys(0, 300))
    (folder / "empty").touch()
    (folder / "garbage").write_bytes(random.Random(1).randbytes(5000))
    (folder / "folder").mkdir()
    os.symlink("nowhere", folder / "dangling")
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    (folder / "key").chmod(0o600)
    done = subprocess.run([PROGRAM, "build", "-q", "-o", "good.bly", "words.txt"],
                          cwd=folder, timeout=PATIENCE)
    assert done.returncode == 0
    whole = (folder / "good.bly").read_bytes()
    (folder / "half.bly").write_bytes(whole[:len(whole) // 2])


def made_place(filled):
    if not NO_NETWORK.exists():
        pytest.skip(f"{NO_NETWORK} is not built")
    # Not pytest's own folder, which others may not look into.
    return Place(pathlib.Path(tempfile.mkdtemp(prefix="bloomery-errors-")),
                 filled)


@pytest.fixture(scope="module")
def place():
    made = made_place(fill)
    yield made
    shutil.rmtree(made.at)


@pytest.fixture(scope="module")
def cooked():
    """The same with the folder of the recipes."""
    def with_bad_ones(folder):
        recipes.make_folder(folder)
        (folder / "many.txt").unlink()
        (folder / "empty").touch()
        (folder / "garbage").write_bytes(random.Random(1).randbytes(5000))
        (folder / "folder").mkdir()
        whole = (folder / "a.bly").read_bytes()
        (folder / "half.bly").write_bytes(whole[:len(whole) // 2])
    made = made_place(with_bad_ones)
    yield made
    shutil.rmtree(made.at)


# ------------------------------------------------------------------- judging

@dataclasses.dataclass
class Trial:
    """Lines that are run, and what was wrong with them."""
    place: Place
    wrong: list = dataclasses.field(default_factory=list)
    tried: int = 0

    def run(self, argv, work=(), **kw):
        done = self.place.run(argv, **kw)
        self.tried += 1

        def wrong(what):
            line = " ".join(shlex.quote(os.fsdecode(a))[:60] for a in argv)
            self.wrong.append(f"{line}: {what}; status {done.status}, "
                              f"{done.err[-1500:]!r}")
            print(self.wrong[-1], flush=True)   # the long form is long
        said = [line for line in done.err.splitlines()
                if line.startswith("bloomery: ") and "warning: " not in line]
        if done.status not in (0, 1, 2, -signal.SIGPIPE):
            wrong("it crashed, or something was found in memory")
        elif done.status == 2 and not said:
            wrong("no reason")
        elif FOUND.search(done.err):
            wrong("that is not a message for people")
        if (now := self.place.look()) != self.place.state:
            changed = {p for p in {*now, *self.place.state}
                       if now.get(p) != self.place.state.get(p)} - {*work}
            # What was written is there, though the report is lost; and some
            # go on after a file that cannot be read, and say so at the end.
            if done.status == 2 and changed and "standard output" not in \
                    done.err and "signal 13" not in done.err and \
                    argv[0] not in GO_ON:
                wrong(f"changed: {sorted(changed)}")
            self.place.restore()
        return done

    def end(self):
        print(f"{self.tried} lines")
        text = "\n".join(self.wrong[:30])
        assert not self.wrong, \
            f"{len(self.wrong)} of {self.tried} lines:\n{text}"


@pytest.fixture
def trial(place):
    made = Trial(place)
    yield made
    made.end()


def some(things, n, seed):
    """All in the long form, otherwise n of them, always the same."""
    things = list(things)
    return things if FULL or len(things) <= n else \
        random.Random(seed).sample(things, n)


def begin(c, verb):
    return [c["command"]] + ([] if verb == "-" else verb.split())


# --------------------------------------------------------------------- tests

def test_bad_files(trial):
    """Every verb with one to three of each kind of bad file."""
    for c, verb, _ in VERBS:
        lines = [[bad] * n for n in (1, 2, 3) for bad in BAD_FILES] + \
            [["good.bly", bad] for bad in BAD_FILES]
        if verb != "-":        # without one, bench and figures would begin
            lines += [[]]
        for operands in some(lines, 2, c["command"] + verb):
            trial.run(begin(c, verb) + operands)


def test_bad_values(trial):
    """Every option of every verb, with values that cannot be meant."""
    for c, verb, options in VERBS:
        for o in some(options, 6 if verb == "-" else 2, c["command"] + verb):
            values(trial, c, verb, o)


def values(trial, c, verb, o):
    line, option = begin(c, verb), f"--{o['name']}"
    good = ["good.bly", "words.txt"]
    if not o["arg"]:
        for operands in some([["absent"], ["garbage", "empty"]], 1, o["name"]):
            trial.run([*line, option, *operands])
        return
    pool = BAD_FILES + ["/dev/full"] if FILES.search(o["arg"]) else BAD_VALUES
    for n, value in enumerate(some(pool, 1, c["command"] + o["name"])):
        trial.run([*line, option, value, *good])
        if FULL:
            trial.run([*line, option, value, *good[:1]])
            trial.run([*line, option, value, "absent"])


def test_missing_programs(trial):
    """The program that a verb needs is not there, or is something else."""
    for c, verb, _ in VERBS:
        for operands in some([["good.bly"], ["good.bly", "words.txt"],
                              ["-K", "key", "good.bly", "words.txt"],
                              ["-o", "new", "good.bly"]], 1, verb):
            trial.run(begin(c, verb) + operands, others=False)


def test_help_that_cannot_be_written(trial):
    for c in some(COMMANDS, 12, "help"):
        check_streams(trial, [c["command"], "--help"])
    for argv in (["help", "--json"], ["help", "--schema"], ["--version"],
                 ["--help"], ["kinds"], ["formats", "--json"]):
        check_streams(trial, argv)


def check_streams(trial, argv, **kw):
    """A line that prints something, onto a full disk, and to nobody."""
    done = trial.run(argv, **kw)
    with open("/dev/full", "wb") as full:
        lost = trial.run(argv, stdout=full, **kw)
        if done.out and (lost.status != 2 or "standard output" not in lost.err):
            trial.wrong.append(f"{argv}: onto a full disk, status "
                               f"{lost.status}, {lost.err!r}")
    with open("/dev/null", "rb") as closed:
        lost = trial.run(argv, stdout=closed, **kw)
        if done.out and (lost.status != 2 or "standard output" not in lost.err):
            trial.wrong.append(f"{argv}: output closed, status "
                               f"{lost.status}, {lost.err!r}")
    nobody, end = os.pipe()
    os.close(nobody)
    with open(end, "wb") as pipe:
        lost = trial.run(argv, stdout=pipe, **kw)
        # Those that speak to others, too, live on and say so.
        if done.out and lost.status != -signal.SIGPIPE and \
                not (lost.status == 2 and "Broken pipe" in lost.err):
            trial.wrong.append(f"{argv}: nobody reads, status {lost.status}, "
                               f"{lost.err!r}")


RECIPES = [r for r in recipes.WRITES + recipes.READS
           if not r.needs and not r.slow and "many.txt" not in r.line]


def test_recipes_with_one_bad_file(cooked):
    """Lines that work, but for one file."""
    trial = Trial(cooked)
    for recipe in RECIPES:
        stdin = recipe.stdin(cooked.folder)
        places = [i for i, word in enumerate(recipe.argv)
                  if i and (cooked.folder / word).is_file()]
        for i, bad in some([(i, bad) for i in places for bad in BAD_FILES
                            if bad != "dangling"], 1, recipe.line):
            argv = list(recipe.argv)
            argv[i] = bad
            trial.run(argv, stdin=stdin, work=recipe.work)
    trial.end()


def test_recipes_that_cannot_print(cooked):
    trial = Trial(cooked)
    for recipe in some(RECIPES, 12, "streams"):
        check_streams(trial, recipe.argv, stdin=recipe.stdin(cooked.folder),
                      work=recipe.work)
    trial.end()
