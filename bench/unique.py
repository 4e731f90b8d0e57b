#!/usr/bin/env python3
"""unique beside awk '!seen[$0]++': time and memory, in one run.

    bench/unique.py [--program BLOOMERY] [--lines N] [--awk PROGRAM]...

The lines are 20 bytes long, newline included, and all differ, or one in four
does. Every awk that is there is measured (mawk is Debian's, gawk may be
installed). Seconds by the clock and of the processors are those of the fastest
of three rounds, which take turns; awk has one. Memory is the most that was
resident.
"""
import argparse
import os
import random
import shutil
import subprocess
import tempfile
import time

ROUNDS = 3


def write_lines(path, n, different):
    r = random.Random(1)
    with open(path, "w") as f:
        for first in range(0, n, 100000):
            some = range(first, min(n, first + 100000))
            if different < n:
                some = (r.randrange(different) for _ in some)
            # An odd factor makes neighbours differ everywhere, and none equal.
            f.write("".join("%019d\n" % (i * 6364136223846793005 % 2**63)
                            for i in some))


def measure(argv):
    """Lines printed, seconds by the clock, of the processors, and bytes."""
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    n = size = 0
    while piece := process.stdout.read(1 << 20):
        n += piece.count(b"\n")
        # ru_maxrss would count this program too, which forked that one.
        with open(f"/proc/{process.pid}/status") as f:
            size = max([size] + [int(line.split()[1]) * 1024 for line in f
                                 if line.startswith("VmHWM")])
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    assert os.waitstatus_to_exitcode(status) == 0, argv
    return n, seconds, used.ru_utime + used.ru_stime, size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--lines", type=int, default=20_000_000)
    parser.add_argument("--awk", action="append")
    args = parser.parse_args()
    awks = [a for a in args.awk or ["mawk", "gawk"] if shutil.which(a)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines")
        for different in args.lines, args.lines // 4:
            write_lines(path, args.lines, different)
            rows = {a: [a, "!seen[$0]++", path] for a in awks}
            mine = {f"unique{o and ' ' + o}": [args.program, "unique", *o.split(), path]
                    for o in (f"--items {different}", "")}
            best = {name: measure(argv) for name, argv in rows.items()}
            for _ in range(ROUNDS):
                for name, argv in mine.items():
                    got = measure(argv)
                    best[name] = min(best.get(name, got), got, key=lambda m: m[2])
            print(f"{args.lines} lines, {different} different")
            print(f"{'':28}{'printed':>10}{'s':>8}{'CPU s':>8}{'MB':>8}"
                  f"{'times':>8}{'memory':>8}")
            for name, (n, clock, cpu, size) in best.items():
                print(f"{name:28}{n:10}{clock:8.2f}{cpu:8.2f}{size / 1e6:8.0f}",
                      end="")
                base = best[awks[0]] if awks else None
                print(f"{base[2] / cpu:8.1f}  1/{base[3] / size:.0f}" if base
                      else "")


main()
