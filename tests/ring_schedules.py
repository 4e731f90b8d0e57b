"""Histories of simulated rings (ring_sim.c), judged as those of processes are.

    /usr/bin/python3 tests/ring_schedules.py [COUNT [FIRST]]

The last line says how many schedules and operations there were, and what was wrong with them.
"""
import subprocess
import sys

from conftest import BUILD
from ring_history import ABSENT, NEVER, OK, UNKNOWN, Operation, faults_of

SIMULATOR = BUILD / "tests" / "ring_sim"


def schedules(first, count, *steps):
    """Of each seed: operations by name, and the words of its last line."""
    argv = [SIMULATOR, str(first), str(count), *map(str, steps)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        names = {}
        for line in run.stdout:
            seed, what, *rest = line.split()
            if what == "end":
                yield int(seed), names, rest
                names = {}
                continue
            name, value, began, ended, outcome, who = rest
            value = ABSENT if value == "-" else value
            ended = NEVER if outcome == UNKNOWN else int(ended)
            names.setdefault(name, []).append(Operation(what, name, value, int(began), ended, outcome, who))
    assert run.returncode == 0, f"the simulator ended with {run.returncode} after seed {first} or a later one"


def wrong_with(names, end):
    """Everything, as text."""
    found = [str(f) for name, operations in sorted(names.items()) for f in faults_of(name, operations)]
    _, _, faults, _, unreadable, _, formed, whole = end
    if unreadable != "0":
        found.append(f"lost: {unreadable} reads without an answer though nothing was wrong any more")
    if formed != "formed" or whole != "whole":
        found.append("apart: not everybody became ready though nothing was wrong")
    return found


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    runs = acknowledged = faults = bad = 0
    for seed, names, end in schedules(first, count):
        found = wrong_with(names, end)
        for line in found[:3]:
            print(f"seed {seed}: {line}")
        runs += 1
        bad += bool(found)
        faults += int(end[2])
        acknowledged += sum(o.outcome in (OK, "nothing") for operations in names.values() for o in operations)
    print(f"{runs} schedules, {acknowledged} operations acknowledged, {faults} faults, {bad} schedules wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
