#!/usr/bin/env python3
"""What dedup in tasks costs, compared with one process that has all in memory.

    bench/split.py [--program BLOOMERY] [--tasks N] [DOCUMENTS]...

Short documents, a third of them copies of an earlier one, wherever that is.
For each number of documents (100000 and 1000000 if none is given): processor
time per document, the largest process, and which share of the tasks' time
`link` and `join` take, which are one task each. The results must be equal.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile


def write_corpus(path, n):
    r = random.Random(1)
    vocabulary = ["%x" % r.getrandbits(24) for _ in range(20000)]
    with open(path, "w") as f:
        for i in range(n):
            x = r.random()
            j = r.randrange(i) if i and x < 0.35 else i
            words = random.Random(j).choices(vocabulary, k=20)
            if 0.1 < x < 0.35:
                words[r.randrange(20) if r.random() < 0.5 else 19] = r.choice(vocabulary)
            f.write(json.dumps({"id": i, "text": " ".join(words)}) + "\n")


# A process of its own: the system counts the largest of all children so far.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)
"""


def measured(*argv):
    out = subprocess.run([sys.executable, "-c", MEASURE, *map(str, argv)], check=True,
                         capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("documents", type=int, nargs="*", default=[100_000, 1_000_000])
    args = parser.parse_args()
    program = str(pathlib.Path(args.program).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for n in args.documents:
            corpus, work = folder / "corpus.jsonl", folder / f"work{n}"
            write_corpus(corpus, n)

            def run(out, *options):
                return measured(program, "dedup", *options[:1], "-q", "-t", 1, corpus, "-o", folder / out,
                                "--removed", folder / f"{out}.removed", *options[1:])
            one = measured(program, "dedup", "-q", "-t", 1, corpus, "-o", folder / "one",
                           "--removed", folder / "one.removed")
            many = run("many", "split", "--engine", "local", "--tasks", args.tasks, "--work", work,
                       "--memory", "256M")
            same = all((folder / f"one{end}").read_bytes() == (folder / f"many{end}").read_bytes()
                       for end in ("", ".removed"))
            status = json.loads(subprocess.run([program, "dedup", "status", work, "--json"],
                                               check=True, capture_output=True).stdout)
            alone = 0
            for stage in "link", "join":
                (work / stage / "0").unlink()
                alone += measured(program, "dedup", "task", work, stage, 0, "-q")[0]
            print(f"{n:9} documents: in memory {one[0] / n * 1e6:.1f} us each, {one[1]:.0f} MB; "
                  f"{args.tasks} tasks {many[0] / n * 1e6:.1f} us, {many[1]:.0f} MB, "
                  f"{many[0] / one[0]:.2f} times the time; link and join {alone / many[0]:.1%}; "
                  f"{status['bytes'] / n:.0f} bytes per document in the folder; "
                  f"results {'equal' if same else 'DIFFER'}")


if __name__ == "__main__":
    main()
