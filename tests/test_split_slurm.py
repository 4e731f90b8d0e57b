"""dedup split --engine slurm with a real Slurm: three nodes of this machine.

The first example of docs/scale.md is run here, with fewer tasks."""
import os
import signal
import subprocess

import pytest
from conftest import run
from slurm_support import Slurm, need
from test_dedup_split import INPUTS, bytes_of, corpus, one_machine, place, results, split  # noqa: F401

FULL = os.environ.get("BLY_FULL")


@pytest.fixture
def slurm(tmp_path_factory):
    need()
    at = tmp_path_factory.mktemp("slurm")
    it = None
    try:
        it = Slurm(at)
        it.begin()
        yield it
    finally:
        if it:
            it.stop()


def submit(place, slurm):
    done = subprocess.run([place / "work/slurm/submit", "--partition=all"], env=slurm.env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_done(place):
    return run("dedup", "status", "work", cwd=place).status == 0


def stuck(slurm):
    """Nothing more will happen by itself."""
    return not slurm.out("squeue", "-h")


def test_a_run_by_slurm(place, slurm):
    """Tasks are killed while they run; Slurm runs them again."""
    _, wanted = one_machine(place)
    tasks = 60 if FULL else 4
    planned = split(place, tasks, engine="slurm")
    assert planned.status == 0
    assert f"work/slurm/submit hands 9 job arrays of up to {tasks} tasks to Slurm" in planned.out
    assert [line.split()[0] for line in submit(place, slurm).splitlines()] == \
        "sketch band link deal pairs sets keep write join".split()
    killed = set()

    def kill_some():
        for pid in slurm.tasks():
            if len(killed) < (60 if FULL else 3) and pid not in killed:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                except ProcessLookupError:
                    pass
        if FULL and len(killed) == 50 and "n2" not in killed:
            killed.add("n2")
            slurm.kill_node(2)
            slurm.node(2)
        if stuck(slurm) and not is_done(place):
            submit(place, slurm)  # a script itself was killed: its stage failed
        return is_done(place)

    slurm.until(kill_some)
    assert bytes_of(place, "many") == wanted
    assert not [p for p in place.rglob(".*") if p.name != "."]
    assert len(killed) >= 1


@pytest.mark.skipif(not FULL, reason="only in the long form: make cluster-test")
def test_a_job_that_is_cancelled(place, slurm):
    """Nothing of a result is there; the same submit goes on."""
    _, wanted = one_machine(place)
    assert split(place, 3, engine="slurm").status == 0
    submit(place, slurm)
    slurm.until(lambda: (place / "work/sketch/0").exists())
    subprocess.run(["scancel", "--user=root"], env=slurm.env, check=True)
    slurm.until(lambda: stuck(slurm))
    if not is_done(place):
        assert not (place / "many.out").exists() or (place / "many.out").read_bytes() == wanted["out"]
        submit(place, slurm)
    slurm.until(lambda: is_done(place))
    assert bytes_of(place, "many") == wanted


def test_without_slurm(place):
    """Job files are written anywhere; what is missing is said by the shell."""
    assert split(place, 2000, engine="slurm").status == 0
    jobs = sorted(p.name for p in (place / "work/slurm").iterdir())
    assert jobs == sorted(["submit"] + [f"{s}.sh" for s in
                          "sketch band link deal pairs sets keep write join".split()])
    (place / "bin").mkdir()
    done = subprocess.run([place / "work/slurm/submit"], capture_output=True, text=True,
                          env={**os.environ, "PATH": str(place / "bin")})
    assert done.returncode != 0 and "sbatch" in done.stderr
    # Arrays of 1000 at most; what follows depends on all of them.
    (place / "bin/sbatch").write_text('#!/bin/sh\necho "$@" >>"$LOG"\necho 7\n')
    (place / "bin/sbatch").chmod(0o755)
    log = place / "log"
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "LOG": str(log)}
    subprocess.run([place / "work/slurm/submit", "-A", "me"], env=env, check=True, capture_output=True)
    lines = log.read_text().splitlines()
    assert len(lines) == 7 * 2 + 2
    assert "BLY_FROM=0 --array=0-999 -A me sketch.sh" in lines[0]
    assert "BLY_FROM=1000 --array=0-999 -A me sketch.sh" in lines[1]
    assert "--dependency=afterok:7:7" in lines[2] and "band.sh" in lines[2]
    assert "--array=0-0" in lines[4] and "link.sh" in lines[4]
