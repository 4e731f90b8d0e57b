#!/usr/bin/env python3
"""Filters of leaked passwords: size beside the plan, time per check.

    bench/passwords.py [--program BLOOMERY] [--hashes N] [--folder DIR]

The list is random hashes with counts, as the published ones look. For each
kind and rate: the filter's size against what plan said, processor time of the
build per hash, processor time of a check per hash, which is that of a file of
hashes less that of reading it (grep -c for nothing), and a single check from
the start of the command to its end, least of 50.
"""
import argparse
import json
import os
import resource
import subprocess
import tempfile
import time

ROWS = [("fuse", 1 / 128), ("ribbon", 1 / 128), ("blocked", 1 / 128),
        ("fuse", 1e-5), ("ribbon", 1e-5), ("blocked", 1e-5)]
ASKED = 2_000_000


def write_hashes(path, n):
    with open(path, "w") as f:
        while n > 0:
            some = min(n, 100000)
            digits = os.urandom(20 * some).hex().upper()
            count = f":{n % 97 + 1}\n"
            f.write(count.join([digits[i:i + 40] for i in
                                range(0, 40 * some, 40)]) + count)
            n -= some


def cpu(*argv, **kw):
    """Its output, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(a) for a in argv], capture_output=True,
                          text=True, **kw)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode < 2, done.stderr
    return done.stdout, (after.ru_utime + after.ru_stime -
                         before.ru_utime - before.ru_stime)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--hashes", type=int, default=10_000_000)
    parser.add_argument("--folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        hashes, asked, word, out = (os.path.join(folder, name) for name in
                                    ("list", "asked", "word", "p.bly"))
        write_hashes(hashes, args.hashes)
        write_hashes(asked, ASKED)
        with open(word, "w") as f:
            f.write("correct horse battery staple\n")
        print(f"{args.hashes} hashes, {os.path.getsize(hashes) / 1e9:.2f} GB")
        print(f"{'kind':10}{'rate':>10}{'MB':>9}{'of plan':>9}{'found':>10}"
              f"{'build ns':>10}{'check ns':>10}{'one ms':>9}")
        for kind, rate in ROWS:
            made, build = cpu(args.program, "passwords", "build", "--json",
                              "-k", kind, "-p", rate, "-o", out, hashes)
            plan, _ = cpu(args.program, "plan", "--json", "-k", kind, "-n",
                          args.hashes, "-p", rate)
            planned = json.loads(plan)["kinds"][0]["bytes"]
            found, check = min((cpu(args.program, "passwords", "check", "-c",
                                    out, "--hashes", asked)
                                for _ in range(5)), key=lambda r: r[1])
            empty = min(cpu(args.program, "passwords", "check", "-c", out,
                            "--hashes", "/dev/null")[1] for _ in range(3))
            one = []
            for _ in range(50):
                with open(word) as f:
                    start = time.monotonic()
                    cpu(args.program, "passwords", "check", out, stdin=f)
                    one.append(time.monotonic() - start)
            size = json.loads(made)["bytes"]
            print(f"{kind:10}{rate:10.5f}{size / 1e6:9.1f}"
                  f"{size / planned:9.4f}"
                  f"{int(found) / ASKED:10.6f}"
                  f"{build / args.hashes * 1e9:10.0f}"
                  f"{(check - empty) / ASKED * 1e9:10.0f}"
                  f"{min(one) * 1e3:9.2f}", flush=True)


main()
