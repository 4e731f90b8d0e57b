#!/usr/bin/env python3
"""`bloomery parquet add` beside DuckDB reading the same column on one thread;
prints a table in Markdown.

    bench/parquet.py [--build build] [--rows 10000000] [--rounds 5]

CPU times, user and system, of files in the page cache, in turn; medians.
`making` is the command with its output to /dev/null: all is read, hashed and
put into filters. `adding` writes the file too, to the same disk, with fsync;
that copies all of its data. Needs node and tools/npm-packages.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# What makes DuckDB read a column and do little else.
READS = [("id", "sum(id)"), ("id", "bit_xor(id)"), ("url", "max(strlen(url))"),
         ("user", "max(strlen(\"user\"))")]


def cpu_ms(argv):
    """CPU time of a command, all of it."""
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{argv}: {status}")
    return (used.ru_utime + used.ru_stime) * 1000


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=HERE.parent / "build", type=pathlib.Path)
    p.add_argument("--rows", default=10_000_000, type=int)
    p.add_argument("--rounds", default=5, type=int)
    p.add_argument("--folder", default=None)
    args = p.parse_args()
    if subprocess.run([HERE.parent / "tools" / "npm-packages",
                       args.build]).returncode:
        raise SystemExit("DuckDB is needed")
    node = ["node", str(HERE / "parquet.mjs"),
            str(args.build.resolve() / "npm")]
    program = str(args.build / "bloomery")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        subprocess.run([*node, "make", folder, str(args.rows)], check=True)
        print("| column | codec | size | DuckDB | reads, ms | making, ms | "
              "adding, ms | speed, making | adding |")
        print("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
        for column, expression in READS:
            for codec in ("uncompressed", "snappy", "zstd"):
                path = f"{folder}/{column}-{codec}.parquet"
                add = [program, "parquet", "add", path, "-q", "--column", column,
                       "-o"]
                rounds = []
                for _ in range(args.rounds):
                    pathlib.Path(folder, "out.parquet").unlink(missing_ok=True)
                    read = subprocess.run([*node, "read", path, expression],
                                          check=True, capture_output=True)
                    rounds.append((float(read.stdout),
                                   cpu_ms([*add, "/dev/null"]),
                                   cpu_ms([*add, f"{folder}/out.parquet"])))
                reads, making, adding = map(statistics.median, zip(*rounds))
                size = os.path.getsize(path) / 2**20
                print(f"| {column} | {codec} | {size:.0f} MiB | "
                      f"`{expression}` | {reads:.0f} | {making:.0f} | "
                      f"{adding:.0f} | {reads / making:.2f} | "
                      f"{reads / adding:.2f} |", flush=True)


main()
