"""Commands that are killed at any moment: the file is the old one or the new
one, whole, and the next run leaves nothing beside it.

A few dozen kills by default; BLY_FULL=1: hundreds. BLY_KILLS=N sets the number
for each command. The seed is printed where one fails.
"""
import os
import random
import shutil
import subprocess
import time

import pytest
from conftest import PATIENCE, PROGRAM, keys, run
from test_replace_command import parquet

KILLS = int(os.environ.get("BLY_KILLS",
                           100 if os.environ.get("BLY_FULL") else 8))

COMMANDS = {
    "add": "add -q -t 1 out -f more.txt",
    "build": "build -q -t 1 -o out list.txt",
    "build, spilled": "build -q -t 1 --max-memory 2MiB "
                      "--spill . -o out list.txt",
    "merge": "merge -q -o out out b.bly",
    "dedup": "dedup -q -t 1 -o out docs.jsonl",
    "dedup --work": "dedup -q -t 1 --work work -o out docs.jsonl",
    "parquet add": "parquet add -q t.parquet --column x -o out",
    "plan --plot": "plan -n 1000 -p 1% --plot out",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "list.txt").write_text(keys(0, 300000))
    (folder / "more.txt").write_text(keys(10 ** 6, 200000))
    (folder / "docs.jsonl").write_text("".join(
        f'{{"text": "{i} and {i * 7} with {i * 11} or {i * 13}"}}\n'
        for i in range(3000)))
    (folder / "t.parquet").write_bytes(parquet())
    for name in ("out", "b.bly"):
        assert run("build", "-q", "-o", name, "--items", "600000",
                   cwd=folder, stdin=keys(0, 1000)).status == 0
    return folder


def names(folder):
    """What is there, beside inputs and the folder that a run keeps."""
    return {p.name for p in folder.iterdir() if p.name != "work"}


@pytest.mark.parametrize("name", COMMANDS)
def test_kills(inputs, tmp_path, name):
    argv = [PROGRAM, *COMMANDS[name].split()]
    folder = tmp_path / "here"

    def fresh():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(inputs, folder)
    fresh()
    old = (folder / "out").read_bytes()
    before = names(folder)
    start = time.monotonic()
    done = subprocess.run(argv, cwd=folder, capture_output=True,
                          timeout=PATIENCE)
    if done.returncode and b"unknown option" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert done.returncode == 0, done.stderr
    takes = time.monotonic() - start
    new = (folder / "out").read_bytes()
    assert names(folder) == before
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    killed = replaced = left = 0
    for i in range(KILLS):
        fresh()
        child = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(takes * 1.1 * chance.random())
        child.kill()
        killed += child.wait() != 0
        got = (folder / "out").read_bytes()
        assert got in (old, new), f"seed {seed}, kill {i}"
        replaced += got == new
        left += names(folder) != before
        assert names(folder) - before <= {
            f".{x}.00000{n}.tmp" for n in range(8) for x in ("out", "bloomery")}
        if got == old:
            assert subprocess.run(argv, cwd=folder, timeout=PATIENCE,
                                  stderr=subprocess.DEVNULL).returncode == 0
            assert (folder / "out").read_bytes() == new
            assert names(folder) == before
    print(f"{name}: {killed} of {KILLS} killed, {replaced} had replaced the "
          f"file, {left} left something")


def test_two_writers_of_which_one_is_killed(inputs, tmp_path):
    """The other one is not held up, and its keys are there."""
    folder = tmp_path / "here"
    shutil.copytree(inputs, folder)
    for i in range(KILLS):
        victim = subprocess.Popen([PROGRAM, "add", "-q", "out", "-f",
                                   "more.txt"], cwd=folder)
        time.sleep(0.05 * random.random())
        other = subprocess.Popen([PROGRAM, "add", "-q", "out", f"mine-{i}"],
                                 cwd=folder)
        time.sleep(0.05 * random.random())
        victim.kill()
        victim.wait()
        assert other.wait(PATIENCE) == 0
    mine = "".join(f"mine-{i}\n" for i in range(KILLS))
    assert run("has", "-c", "out", cwd=folder, stdin=mine).out == f"{KILLS}\n"
    assert not [n for n in names(folder) if n.endswith(".tmp")]
