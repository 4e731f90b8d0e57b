#!/usr/bin/python3
"""The command beside Debian's DCSO `bloom`, on the same lines in the same run.

    bench/command.py BLOOMERY [--lines N] [--rounds R]

CPU time (user and system) of one thread, least of R rounds, the contenders
taking turns so that a noisy neighbour hits all alike. Prints nanoseconds a
line, the ratio, and peak memory; the ratios are the figures that count.

    package golang-github-dcso-bloom-cli
"""
import argparse
import os
import subprocess
import sys
import tempfile


def cpu(argv, stdin=None):
    """CPU seconds and peak bytes of one run."""
    with open(stdin or os.devnull, "rb") as lines:
        process = subprocess.Popen(argv, stdin=lines,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{' '.join(argv)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def write_lines(path, prefix, first, n):
    with open(path, "w", buffering=1 << 20) as out:
        for i in range(first, first + n):
            out.write(f"{prefix}{i:012d}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bloomery")
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    n, command = args.lines, os.path.realpath(args.bloomery)
    dcso = "/usr/bin/bloom"

    with tempfile.TemporaryDirectory() as work:
        present, absent = f"{work}/present", f"{work}/absent"
        write_lines(present, "user-id", 0, n)
        write_lines(absent, "user-id", n, n)
        ours, sized, theirs = (f"{work}/{x}" for x in ("ours", "sized", "dcso"))
        one = ["--threads", "1"]
        jobs = {
            "build": ([command, "build", *one, "-q", "-o", ours, present], None),
            "build --items": ([command, "build", *one, "-q", "--items", str(n),
                               "-o", sized, present], None),
            "has, present": ([command, "has", *one, ours], present),
            "has, absent": ([command, "has", *one, ours], absent),
        }
        peers = {}
        if os.path.exists(dcso):
            subprocess.run([dcso, "create", "-n", str(n), "-p", "0.01",
                            theirs], check=True)
            empty = f"{work}/empty"
            os.rename(theirs, empty)
            peers = {
                "build": (["/bin/sh", "-c", f"cp {empty} {theirs} && exec "
                           f"{dcso} insert {theirs}"], present),
                "has, present": ([dcso, "check", theirs], present),
                "has, absent": ([dcso, "check", theirs], absent),
            }
            peers["build --items"] = peers["build"]
        best, memory = {}, {}
        for _ in range(args.rounds):
            for name, (argv, stdin) in jobs.items():
                for who, run in (("ours", (argv, stdin)),
                                 ("dcso", peers.get(name))):
                    if run:
                        seconds, peak = cpu(*run)
                        key = (who, name)
                        best[key] = min(best.get(key, 1e9), seconds)
                        memory[key] = max(memory.get(key, 0), peak)
        size = os.path.getsize(ours)
        print(f"{n} lines of {os.path.getsize(present) // n} bytes; "
              f"filter {size} bytes; CPU of one thread, least of {args.rounds}")
        print(f"{'':16}{'bloomery':>12}{'DCSO bloom':>14}{'ratio':>8}"
              f"{'peak less filter':>20}")
        for name in jobs:
            mine = best["ours", name] / n * 1e9
            extra = (memory["ours", name] - size) / n
            line = f"{name:16}{mine:9.1f} ns"
            if ("dcso", name) in best:
                other = best["dcso", name] / n * 1e9
                line += f"{other:11.1f} ns{other / mine:8.1f}"
            else:
                line += f"{'not there':>14}{'':8}"
            print(f"{line}{extra:12.1f} bytes a key")


if __name__ == "__main__":
    main()
