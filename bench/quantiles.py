#!/usr/bin/env python3
"""bloomery quantiles beside bloomery distinct and beside a sort, on one column.

    bench/quantiles.py [LINES [FILE]]           default: 5,000,000 in a file in /tmp

FILE, made if it is not there, has a name and a log-normal number of milliseconds with five places in each line. `quantiles` and
`distinct` of that column run in turn, with one thread and with all of them: seconds, and seconds of processors, the least of
five rounds. Then the printed percentiles beside those of `sort -g | awk`, and how many values lie between the two.
"""
import bisect
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOOMERY = os.environ.get("BLOOMERY", str(ROOT / "build" / "bloomery"))
ROUNDS = 5
PERCENTS = (50, 90, 99, 99.9, 99.99)


def make(path, n):
    rng = random.Random(47)
    with open(path, "w") as out:
        for i in range(0, n, 10000):
            out.write("".join(f"host{k % 97}\t{math.exp(3 + rng.gauss(0, 1)):.5f}\n" for k in range(i, min(i + 10000, n))))


def run(*words):
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([BLOOMERY, *words], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system, done.stdout


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else folder + "/times.tsv")
        if not path.exists():
            make(path, n)
        n = int(subprocess.run(["wc", "-l", path], capture_output=True, check=True).stdout.split()[0])
        print(f"{n} lines, {path.stat().st_size / 2**20:.0f} MiB\n\n| ns per line | quantiles | distinct | speed of distinct |\n"
              "| --- | --- | --- | --- |")
        for threads in sorted({1, os.cpu_count()}):
            least = {}
            for _ in range(ROUNDS):
                for verb in "quantiles", "distinct":
                    wall, cpu, out = run(verb, "--field", "2", "-t", str(threads), "--json", path)
                    old = least.get(verb, (math.inf, math.inf, out))
                    least[verb] = min(old[0], wall), min(old[1], cpu), out
            for i, what in enumerate(("clock", "processors")):
                q, d = (least[v][i] / n * 1e9 for v in ("quantiles", "distinct"))
                print(f"| {threads} thread{'s' * (threads > 1)}, {what} | {q:.1f} | {d:.1f} | {d / q:.2f} |")
        start = time.perf_counter()
        values = [float(x) for x in subprocess.run(f"cut -f 2 {path} | LC_ALL=C sort -g", shell=True, check=True,
                                                   stdout=subprocess.PIPE).stdout.split()]
        print(f"\ncut and sort -g: {time.perf_counter() - start:.1f} s\n\n| percentile | exact | printed | error, millionths of "
              "all values | stated |\n| --- | --- | --- | --- | --- |")
        told = json.loads(run("quantiles", "--field", "2", "--json", "-q", ",".join(map(str, PERCENTS)), path)[2])
        for row in told["quantiles"]:
            share = row["percent"] / 100
            low, high = (cut(values, row["value"]) / n for cut in (bisect.bisect_left, bisect.bisect_right))
            error = max(low - share, share - high, 0)
            exact = values[max(math.ceil(share * n) - 1, 0)]
            print(f"| {row['percent']} | {exact} | {row['value']:.6g} | {error * 1e6:.2f} | {row['deviation'] * 1e6:.2f} |")


if __name__ == "__main__":
    main()
