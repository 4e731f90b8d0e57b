"""Every call of every command fails in turn.

The system calls that concern files and memory are counted by disk_tracer.c, in
a run without a fault; then the first fails, the second, and so on, with each
error that such a call may have, and reads and writes move less than they were
asked to. Allocations likewise, by failing_malloc.c. Whatever fails: the status
is that of an undisturbed run, and so are files and answers, or it is 2, with
one line that names a file; no file is half new, none is left over, and nothing
was answered that is wrong. BLY_FULL=1 tries every call; otherwise some, drawn
at random, of all.
"""
import errno
import os
import random
import signal

import pytest

import fault_recipes as recipes
from disk_model import O_CREAT, O_TMPFILE, read_log, snapshot
from fault_recipes import place  # noqa: F401, a fixture

FULL = bool(os.environ.get("BLY_FULL"))
# How many faults of a recipe the short form tries.
SYSTEM_CALLS, ALLOCATIONS = 12, 4
# Here looking at a file failed once, and it was taken for none, or for a device.
PINNED = ("build -o a.bly", "dedup -t 1 --paragraphs", "dedup -t 1 --files")

RECIPES = [r for r in recipes.WRITES + recipes.READS if FULL or not r.slow]

EIO, ENOSPC, EINTR = errno.EIO, errno.ENOSPC, errno.EINTR
SHORT = 0
ERRORS = {
    "open": (EIO, errno.EMFILE, EINTR, errno.EACCES),
    "read": (EIO, EINTR, SHORT),
    "write": (EIO, ENOSPC, EINTR, SHORT),
    "fsync": (EIO, ENOSPC, EINTR),
    "close": (EIO, EINTR),
    "rename": (EIO, ENOSPC),
    "link": (EIO, ENOSPC),
    "unlink": (EIO,),
    "mkdir": (EIO, ENOSPC),
    "ftruncate": (EIO, EINTR),
    "fallocate": (EIO, ENOSPC, EINTR),
    "stat": (EIO,),
    "access": (EIO,),
    "readlink": (EIO,),
    "lseek": (EIO,),
    "getdents64": (EIO,),
    "flock": (EIO, EINTR, errno.ENOLCK),
    "fchmod": (EIO, errno.EPERM),
    "fchown": (EIO, errno.EPERM),
    "xattr": (EIO, ENOSPC),
    "mmap": (errno.ENOMEM,),
    "mremap": (errno.ENOMEM,),
    "clone3": (errno.EAGAIN,),
    "pipe2": (errno.EMFILE,),
}
SAME = {"openat": "open", "creat": "open", "pread64": "read",
        "pwrite64": "write", "writev": "write", "readv": "read",
        "fdatasync": "fsync", "renameat": "rename", "renameat2": "rename",
        "linkat": "link", "unlinkat": "unlink", "rmdir": "unlink",
        "mkdirat": "mkdir", "fstat": "stat", "lstat": "stat",
        "newfstatat": "stat", "statx": "stat", "readlinkat": "readlink",
        "faccessat": "access", "faccessat2": "access", "fsetxattr": "xattr",
        "fgetxattr": "xattr", "flistxattr": "xattr", "fremovexattr": "xattr"}


def faults_of(call):
    """The errors that a call may have."""
    name = SAME.get(call["call"], call["call"])
    errors = ERRORS[name]
    if name == "open" and call["flags"] & (O_CREAT | O_TMPFILE):
        errors += (ENOSPC,)
    return errors


class Trial:
    """A recipe, run without a fault once, and then with."""

    def __init__(self, place, recipe):
        if why := recipes.missing(recipe):
            pytest.skip(why)
        self.place, self.recipe = place, recipe
        folder = place.fresh(recipe)
        self.before = self.contents(folder)
        self.done = place.run(recipe, "-l", place.log)
        assert self.done.status == recipe.status, self.done
        self.after = self.contents(folder)
        self.calls = [c for c in read_log(place.log) if c["n"]]
        self.wrong = []

    @staticmethod
    def contents(folder):
        return {path: v[0] for path, v in snapshot(folder).items()}

    def names(self):
        """What a message may name: the files of the line, and streams."""
        words = [part for w in self.recipe.argv[1:] for part in w.split("/")
                 if part]
        return ["standard input", "standard output", "tmp", "127.0.0.1",
                "libcurl", "libsodium", "libpcap",
                "bloomery-",               # a program that cannot be run
                *(w for w in words if w[0] != "-")]

    def judge(self, fault, done, call=""):
        """Append what is wrong after a fault."""
        recipe = self.recipe

        def wrong(what):
            self.wrong.append(f"{fault}: {what}; status {done.status}, "
                              f"{done.err.strip()!r}")

        if done.status not in (recipe.status, 2):
            wrong("another status")
        said = [line for line in done.err.splitlines()
                if line not in self.done.err.splitlines()
                and "warning: " not in line
                # The libraries behind libcurl speak for themselves.
                and (line.startswith("bloomery: ") or not recipe.needs)]
        if done.status == 2 and done.err != self.done.err:
            if len(said) != 1 or not said[0].startswith("bloomery: "):
                wrong("not one line that says why")
            elif "memory" not in said[0] and "thread" not in said[0] and \
                    not any(n in said[0] for n in self.names()):
                wrong("the line names no file")
        elif said:
            wrong("it says something though all is well")
        now = self.contents(self.place.copy)
        for path in {*self.before, *self.after, *now}:
            was, new, is_now = (x.get(path, "absent") for x in
                                (self.before, self.after, now))
            if path in recipe.work or (recipe.volatile and new != was):
                continue
            if path not in self.before and path not in self.after:
                if "unlink" not in call:
                    wrong(f"{path} is left over")
            elif is_now != new and (is_now != was or done.status != 2):
                wrong(f"{path} is {'old' if is_now == was else 'damaged'}")
        self.judge_output(done, wrong)

    def judge_output(self, done, wrong):
        if self.recipe.volatile or b"seconds" in self.done.out or \
                self.recipe.command in ("dedup", "similar"):
            return             # reports with times in them
        if done.status == self.recipe.status:
            if done.out != self.done.out:
                wrong("another answer")
        else:
            # What failed to be written may be missing from the middle.
            all_of, some = self.done.out, done.out
            n = len(os.path.commonprefix([all_of, some]))
            if len(some) > len(all_of) or not all_of.endswith(some[n:]):
                wrong("an answer that is none")

    def report(self, tried):
        print(f"{self.recipe.line}: {tried} faults")
        text = "\n".join(self.wrong[:40])
        assert not self.wrong, f"{len(self.wrong)} of {tried}:\n{text}"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.line)
def test_every_system_call(place, recipe):
    trial = Trial(place, recipe)
    faults = [(c, e) for c in trial.calls for e in faults_of(c)]
    if not FULL:
        rng = random.Random(recipe.line)
        always = [(c, e) for c, e in faults if recipe.line.startswith(PINNED)
                  and SAME.get(c["call"], c["call"]) in ("stat", "access")]
        faults = always + rng.sample(faults, min(len(faults), SYSTEM_CALLS))
    for call, error in faults:
        place.fresh(recipe)
        done = place.run(recipe, "-l", place.log, "-f", f"{call['n']}:{error or 'short'}")
        # Of two processes that talk, or threads, call n may be another one each time.
        call = next((c for c in read_log(place.log) if c["n"] == call["n"]), call)
        name = errno.errorcode.get(error, "short")
        trial.judge(f"call {call['n']}, {call['call']} of "
                    f"{os.path.basename(call['path'])}, {name}", done,
                    call["call"])
    trial.report(len(faults))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.line)
def test_every_allocation(place, recipe):
    trial = Trial(place, recipe)
    mark = place.at / "failed"

    def fails(n):
        """Let the n-th allocation fail; False where there is none."""
        mark.unlink(missing_ok=True)
        place.fresh(recipe)
        done = place.run(recipe, preload={
            "LD_PRELOAD": str(recipes.MALLOC), "BLY_MALLOC_FAILS": str(n),
            "BLY_MALLOC_MARK": str(mark)})
        # hiredis ends the process itself, and writes through NULL, in
        # versions up to 0.14. The files must be as they were all the same.
        if recipe.needs == "redis" and done.status in (-signal.SIGABRT,
                                                       -signal.SIGSEGV):
            done = recipes.Done(2, b"", "bloomery: redis: out of memory")
        if mark.exists():
            trial.judge(f"allocation {n}", done)
        return mark.exists()

    tried = 0
    if FULL:
        # Those of a loop are all alike: further apart after the first.
        n = 1
        while fails(n):
            tried, n = tried + 1, n + 1 + n // 200
    else:
        rng = random.Random(recipe.line)
        for most in (2, 8, 30, 120)[:ALLOCATIONS]:
            tried += fails(rng.randint(1, most))
    trial.report(tried)
