#!/usr/bin/env python3
"""join beside join of coreutils and sqlite3, in one run.

    bench/join.py [--program BLOOMERY] [--rows N]

Ten thousand rows with N rows of 98 bytes, a million unless given, of which 1 %
match. Every program reads both files as CSV and prints the result; coreutils
needs two sorts, sqlite3 an import into memory. Seconds by the clock and of the
processors are each the least of three rounds, which take turns.
"""
import argparse
import os
import random
import subprocess
import tempfile
import time

ROUNDS = 3


def write_rows(folder, n):
    r = random.Random(1)
    with open(f"{folder}/people.csv", "w") as f:
        f.write("id,name,city\n")
        f.writelines(f"{i * 100 + 7},name{i},city{i % 37}\n"
                     for i in range(10000))
    with open(f"{folder}/orders.csv", "w") as f:
        f.write("order,person,text\n")
        for i in range(n):
            person = r.randrange(10000) * 100 + 7 if i % 100 == 0 else \
                r.randrange(10**7) * 100 + r.randrange(8, 99)
            f.write(f"{i},{person},{'x' * 80}\n")


def measure(line, folder):
    """Lines printed, seconds by the clock and of the processors."""
    start, before = time.monotonic(), os.times()
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"],
                          cwd=folder, capture_output=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    seconds, after = time.monotonic() - start, os.times()
    used = after.children_user + after.children_system - \
        before.children_user - before.children_system
    return done.stdout.count(b"\n"), seconds, used


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--rows", type=int, default=1_000_000)
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    lines = {
        "bloomery join":
            f"{program} join -q --csv id --right person people.csv orders.csv",
        "bloomery join --remote":
            f"{program} join -q --csv id people.csv --remote "
            f"'{program} join --serve --csv person orders.csv'",
        "sort, sort, join":
            "tail -n+2 people.csv | sort -t, -k1,1 > l; "
            "tail -n+2 orders.csv | sort -t, -k2,2 > r; "
            "join -t, -1 1 -2 2 l r",
        "sqlite3":
            "printf '.mode csv\\n.import people.csv p\\n.import orders.csv o\\n"
            "select * from p join o on p.id = o.person;\\n' | "
            "sqlite3 :memory:",
    }
    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, args.rows)
        best = {}
        for _ in range(ROUNDS):
            for name, line in lines.items():
                rows, seconds, used = measure(line, folder)
                old = best.get(name, (rows, seconds, used))
                best[name] = rows, min(old[1], seconds), min(old[2], used)
        _, clock, used = best["bloomery join"]
        for name, (rows, seconds, cpu) in best.items():
            print(f"{name:24} {rows:8} lines  {seconds:7.3f} s by the clock, "
                  f"{seconds / clock:5.1f} times; {cpu:7.3f} s of the "
                  f"processors, {cpu / used:5.1f} times")


if __name__ == "__main__":
    main()
