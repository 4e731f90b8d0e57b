"""The power goes at any moment of any command that writes.

disk_tracer.c logs what a command does to its files, disk_model.py tells what a
disk may then hold, and here each of these states is judged: every file is the
old one or the new one, whole, and once the command has ended it is the new
one. BLY_FULL=1 takes more of the mixtures that are drawn at random.
"""
import os
import random

import pytest

import fault_recipes as recipes
from conftest import run as plainly
from fault_recipes import place  # noqa: F401, a fixture
from disk_model import SYNCS, Disk, read_log, snapshot

FULL = bool(os.environ.get("BLY_FULL"))
SAMPLE = 200 if FULL else 10
# Names that a file may have until it is whole. A power cut may leave them.
TEMPORARY = (".tmp", "bloomery-")

WRITES = [r for r in recipes.WRITES if FULL or not r.slow]
READS = [r for r in recipes.READS if FULL or not r.slow]


class Traced:
    """A run of a recipe: what was before and after, and the log."""

    def __init__(self, place, recipe, *options):
        if why := recipes.missing(recipe):
            pytest.skip(why)
        self.recipe = recipe
        self.base = place.base
        self.folder = place.fresh(recipe)
        self.before = snapshot(self.folder)
        self.done = place.run(recipe, "-l", place.log, "-u", self.folder,
                              *options)
        assert self.done.status == recipe.status, self.done
        self.after = snapshot(self.folder)
        self.calls = read_log(place.log)

    def disk(self, calls=None):
        return Disk(self.folder, self.before, calls or self.calls)

    def was(self, path):
        return self.before[path][0] if path in self.before else "absent"

    def became(self, path):
        return self.after[path][0] if path in self.after else "absent"

    def changed(self):
        return {p for p in {*self.before, *self.after}
                if self.was(p) != self.became(p)}


def is_temporary(path):
    return any(part in os.path.basename(path) for part in TEMPORARY)


NEITHER = "is neither old nor new"
OLD = "is old, though the command had said that it is done"


def wrong(run, state, ended):
    """What must not be in a state of the disk: paths and reasons."""
    for path in {*run.before, *run.after, *state}:
        if path in run.recipe.work:
            continue           # judged by going on from there
        now = state.get(path, "absent")
        if path not in run.before and path not in run.after:
            if not is_temporary(path):
                yield path, "is a name that nobody gave"
        elif now not in (run.was(path), run.became(path)):
            yield path, NEITHER
        elif ended and now != run.became(path):
            yield path, OLD


def judge(run, calls=None, until=None):
    """How many states there were, and what is wrong with them. A judge who
    only looks for one reason may stop there."""
    disk = run.disk(calls)
    assert disk.status == run.recipe.status
    count, found = 0, set()
    for step, state in disk.states(seed=1, sample=SAMPLE):
        count += 1
        found.update(wrong(run, state, step >= disk.ended))
        if until in {why for _, why in found}:
            break
    return count, found


def finds(run, reason, calls=None):
    return reason in {why for _, why in judge(run, calls, reason)[1]}


# ------------------------------------------------------------------ the table

def test_every_command_is_listed():
    """Who adds a command says whether it writes."""
    listed = {r.command for r in recipes.WRITES + recipes.READS}
    assert set(plainly("help", "--list").lines) == listed


@pytest.mark.parametrize("recipe", READS, ids=lambda r: r.line)
def test_what_only_reads_writes_nothing(place, recipe):
    run = Traced(place, recipe)
    assert run.changed() == set()
    names = [p for c in run.disk().changes
             for p in (c.names or {"written to a file": 0})
             if c.folder != str(run.folder / "tmp")]
    assert names == [], "changes below the folder"


# ----------------------------------------------------------------- power cuts

@pytest.mark.parametrize("recipe", WRITES, ids=lambda r: r.line)
def test_old_or_new_after_a_power_cut(place, recipe, record_property):
    run = Traced(place, recipe)
    missed = {p for p in run.changed() - set(recipe.work)
              if not p.startswith(recipe.writes or ("-",))}
    assert missed == set() and set(recipe.writes) <= run.changed()
    # The model is right about what the disk holds in the end.
    disk = run.disk()
    end = disk.state(disk.steps, disk.changes, lambda c: [c.data])
    assert end == {p: v[0] for p, v in run.after.items()}
    count, found = judge(run)
    print(f"{recipe.line}: {count} states")
    record_property("states", count)
    assert sorted(found) == []


@pytest.mark.parametrize("recipe", [r for r in WRITES if r.writes],
                         ids=lambda r: r.line)
def test_a_disk_that_does_not_sync_is_found_out(place, recipe):
    """The test of the test: without syncs, and without either of the two
    sorts, the same judge must object."""
    run = Traced(place, recipe, "-s")
    assert finds(run, OLD)
    if all(run.became(p) is None for p in recipe.writes):
        return                 # folders, and pictures of times
    assert finds(run, NEITHER)
    run = Traced(place, recipe)
    folders = [c for c in run.calls if c["call"] not in SYNCS
               or not os.path.isdir(c["path"])]
    files = [c for c in run.calls if c["call"] not in SYNCS
             or os.path.isdir(c["path"])]
    assert finds(run, OLD, folders), "folders were not synced"
    assert finds(run, NEITHER, files), "files were not synced"


@pytest.mark.parametrize("recipe", [r for r in WRITES if r.work],
                         ids=lambda r: r.line)
def test_going_on_after_a_power_cut(place, recipe):
    """Whatever is left of a journal, --resume ends where an undisturbed run
    does, or says that the journal is none of this run and changes nothing.
    unique goes on by itself."""
    run = Traced(place, recipe)
    asked = recipe.command != "dedup" or "--resume" in recipe.line
    line = recipe.line + ("" if asked else " --resume")
    again = recipes.Recipe(line)
    states = {tuple(state.get(p) for p in recipe.work): state
              for _, state in run.disk().states(seed=2, sample=SAMPLE)}
    last = {p: v[0] for p, v in run.after.items()}
    some = list(states.values())
    some = random.Random(3).sample(some, min(len(some), 400 if FULL else 25))
    refused = 0
    for state in [*some, last]:
        folder = recipes.fresh(run.base, place.at / "cut", recipe)
        for path in recipe.work:
            (folder / path).unlink(missing_ok=True)
            if path in state:
                (folder / path).write_bytes(state[path])
        done = plainly(*again.argv, cwd=folder)
        for path in recipe.writes:
            now = (folder / path).read_bytes() if (folder / path).exists() \
                else "absent"
            assert now == (run.became(path) if done.status == recipe.status
                           else run.was(path)), done.err
        if done.status != recipe.status:
            assert done.status == 2 and "other inputs" in done.err
            refused += 1
    assert done.status == recipe.status
    print(f"{recipe.line}: gone on from {len(some) + 1} of {len(states)} "
          f"states, {refused} times refused")


def test_compacted_tables_answer_as_before(place):
    """Each file may be the old one or the new one; all of them together must
    have every key with its newest value."""
    recipe = next(r for r in WRITES if r.line.startswith("table compact"))
    run = Traced(place, recipe)
    right = plainly("table", "scan", run.base / "two").out
    assert right.count("\n") > 1000
    states = {tuple(sorted((p, v) for p, v in state.items()
                           if p.startswith("two/") and p.endswith(".blt")))
              for _, state in run.disk().states(seed=4, sample=SAMPLE)}
    assert len(states) >= 3
    for state in states:
        folder = recipes.fresh(run.base, place.at / "cut", recipe) / "two"
        for path in folder.iterdir():
            path.unlink()
        for path, data in state:
            (folder.parent / path).write_bytes(data)
        assert plainly("table", "scan", folder).out == right


def test_records_of_another_run_are_cut_off(place):
    """A new head may be on disk before the old records are gone from it."""
    folder = place.fresh(recipes.WRITES[0])
    line = ["dedup", "-t", "1", "docs.jsonl", "--work", "begun"]
    assert plainly(*line, "-o", "right", cwd=folder).status == 0
    head = (folder / "begun" / "journal").read_bytes()[:16]
    for name in "journal", "checked":
        old = (folder / "work" / name).read_bytes()[16:]
        path = folder / "begun" / name
        path.write_bytes(path.read_bytes()[:16] + old)
    done = plainly(*line, "--resume", "-o", "now", cwd=folder)
    assert done.status == 0, done.err
    assert (folder / "now").read_bytes() == (folder / "right").read_bytes()
    assert (folder / "begun" / "journal").read_bytes()[:16] == head


def test_what_was_written_opens(place):
    """Old and new are told apart by their bytes; so they must be sound."""
    for recipe in WRITES:
        if recipes.missing(recipe):
            continue
        run = Traced(place, recipe)
        for path in recipe.writes:
            if path.endswith(".bly"):
                for folder in run.base, run.folder:
                    if (folder / path).exists():
                        assert plainly("info", folder / path).status == 0
