#!/usr/bin/env python3
"""Pairs of vectors by bloomery vectors, against comparing all by BLAS.

    bench/vectors.py [--program BLOOMERY] [--threads T] [N [DIMS]]   default: 100000 384

N vectors, nine tenths of them at random and the others planted at a cosine
between 0.8 and 1 to one before them. By force, NumPy multiplies blocks of them
with all (single precision, BLAS) and keeps what reaches the threshold; what
BLAS finds next to the threshold is decided in doubles. Beyond 200,000 vectors,
blocks with some 20,000 vectors, which lie evenly among all, stand for the rest:
their time is scaled, and recall is that of their pairs. Both use the same number of threads (1 if
nothing is said), and times are of the processor.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

T = 0.9
MOST_PRODUCTS = 50_000_000  # at once: 200 MB


def planted(n, dims, np):
    rng = np.random.default_rng(20)
    x = rng.standard_normal((n, dims), dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for i in range(10, n, 10):
        a = x[int(rng.random() * i)]
        c = np.float32(rng.uniform(0.8, 1))
        e = x[i] - (x[i] @ a) * a
        x[i] = c * a + np.sqrt(1 - c * c) * e / np.linalg.norm(e)
    return x


def by_force(x, blocks, size, np):
    """All pairs of which one is in these blocks, and the seconds it took."""
    begin = time.process_time()
    found = []
    for start in blocks:
        part = x[start:start + size]
        a, b = np.nonzero(part @ x[:start + size].T >= T - 1e-5)
        a += start
        found.append(np.stack([b, a], axis=1)[b < a])
    seconds = time.process_time() - begin
    pairs = np.concatenate(found)
    exact = np.einsum("ij,ij->i", x[pairs[:, 0]].astype("f8"), x[pairs[:, 1]].astype("f8"))
    exact /= np.linalg.norm(x[pairs[:, 0]].astype("f8"), axis=1)
    exact /= np.linalg.norm(x[pairs[:, 1]].astype("f8"), axis=1)
    return {tuple(p) for p in pairs[exact >= T].tolist()}, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--threads", default="1")
    parser.add_argument("n", nargs="?", type=int, default=100000)
    parser.add_argument("dims", nargs="?", type=int, default=384)
    args = parser.parse_args()
    os.environ.update(OPENBLAS_NUM_THREADS=args.threads, OMP_NUM_THREADS=args.threads,
                      MKL_NUM_THREADS=args.threads)
    try:
        import numpy as np
    except ImportError:
        sys.exit("bench/vectors.py: python3-numpy is not there")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "x.npy")
        x = planted(args.n, args.dims, np)
        np.save(path, x)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([args.program, "vectors", "pairs", "-t", args.threads, "-T", str(T), path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        got = set()
        for line in done.stdout.splitlines():
            a, b, _ = line.split("\t")
            got.add((int(a), int(b)))
        size = max(1, min(1000, MOST_PRODUCTS // args.n))
        every = range(0, args.n, size)
        blocks = every if args.n <= 200000 else every[::max(1, args.n // 20000)]
        want, force = by_force(x, blocks, size, np)
        # A block at `start` is multiplied with start + size vectors.
        work = sum(b + size for b in every) / sum(b + size for b in blocks)
        inside = {b // size for b in blocks}
        got_here = {p for p in got if p[1] // size in inside}
        print(f"{args.n} vectors of {args.dims} coordinates, cosine {T}, {args.threads} thread(s)")
        print(done.stderr.strip().replace("bloomery: vectors: ", "  "))
        print(f"  pairs by force       {len(want)}" + ("" if work == 1 else f" in {len(blocks)} blocks of {size}"))
        print(f"  recall               {len(got_here & want) / len(want):.5f}")
        print(f"  precision            {len(got_here & want) / len(got_here):.5f}")
        print(f"  bloomery             {seconds:9.2f} s, reading and printing included")
        print(f"  NumPy with BLAS      {force * work:9.2f} s" + ("" if work == 1 else ", scaled"))
        flops = sum(2 * size * (b + size) * args.dims for b in blocks) / force
        print(f"  BLAS does            {flops / 1e9:9.1f} G floating-point operations per second")
        print(f"  times as fast        {force * work / seconds:9.1f}")


if __name__ == "__main__":
    main()
