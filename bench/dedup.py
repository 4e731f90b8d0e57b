#!/usr/bin/env python3
"""How fast dedup is, whether it is linear, and what it finds.

    bench/dedup.py [BLOOMERY]

Times are processor time of the whole command with one thread, the least of
several rounds. The corpus is made of random words, a fifth of it edited copies;
the recall is that of pairs in Debian's installed documentation, against a plain
join of all shingles (texts of up to 20,000 words).
"""
import collections
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/bloomery")
ROUNDS = 3


def write_corpus(path, n, seed=1):
    r = random.Random(seed)
    vocabulary = ["".join(r.choice("abcdefghijklmnopqrstuvwxyz")
                          for _ in range(r.randint(2, 9))) for _ in range(30000)]
    texts = []
    with open(path, "w") as f:
        for i in range(n):
            if texts and r.random() < 0.2:
                t = list(r.choice(texts))
                for _ in range(max(1, int(len(t) * r.choice([.005, .01, .02, .04, .1])))):
                    t[r.randrange(len(t))] = r.choice(vocabulary)
            else:
                t = r.choices(vocabulary, k=r.randint(200, 800))
            texts.append(t)
            f.write(json.dumps({"id": i, "text": " ".join(t)}) + "\n")


def cpu_seconds(*argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([PROGRAM, *map(str, argv)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            json.loads(out.stdout) if out.stdout.startswith(b"{") else None)


def speed(folder):
    times = {}
    for n in 5000, 20000:
        path = folder / f"{n}.jsonl"
        write_corpus(path, n)
        rounds = [cpu_seconds("dedup", path, "-o", folder / "out", "--threads", 1,
                              "--json") for _ in range(ROUNDS)]
        times[n], report = min(rounds, key=lambda x: x[0])
        mb = report["text_bytes"] / 1e6
        print(f"{n:6} documents, {mb:.1f} MB of text: {times[n]:.2f} s, "
              f"{mb / times[n]:.0f} MB/s a core, {report['removed']} removed")
    print(f"four times the corpus takes {times[20000] / times[5000]:.2f} times as long")
    for what, more in {"--exact": ["--exact"], "--paragraphs": ["--paragraphs"],
                       "--index bloom": ["--index", "bloom"],
                       "wc -lw (of coreutils)": None}.items():
        if more is None:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(["wc", "-lw", folder / "20000.jsonl"], check=True,
                           capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            t = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        else:
            t = min(cpu_seconds("dedup", folder / "20000.jsonl", "-o", folder / "out",
                                "--threads", 1, "--json", *more)[0]
                    for _ in range(ROUNDS))
        print(f"{what:24} {mb / t:.0f} MB/s a core")


def shingles(content):
    w = [x.lower() for x in re.findall(rb"[A-Za-z0-9\x80-\xff]+", content)]
    n = min(5, len(w))
    return {hash(tuple(w[i:i + n])) for i in range(len(w) - n + 1)} if w else set()


def recall(folder):
    """Pairs of J >= 0.8 in /usr/share/doc, all of them and those found."""
    sets = {}
    chosen = folder / "doc"
    chosen.mkdir()
    for path in sorted(pathlib.Path("/usr/share/doc").rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        s = shingles(content)
        if s and len(s) <= 20000:
            name = str(path).replace("/", "+")
            (chosen / name).write_bytes(content)
            sets[f"{chosen}/{name}"] = frozenset(s)
    # Equal texts stand for one another, as the command says of its pairs.
    first = {}
    for name, s in sets.items():
        first.setdefault(s, name)
    distinct = {name: s for s, name in first.items()}
    by_shingle = collections.defaultdict(list)
    for name, s in distinct.items():
        for x in s:
            by_shingle[x].append(name)
    shared = collections.Counter()
    for names in by_shingle.values():
        if len(names) <= 1000:
            shared.update(itertools.combinations(sorted(names), 2))
    # A shingle in more than a thousand texts is in a licence. Pairs that share
    # less than a quarter of the smaller text besides these are not looked at.
    want = set()
    for (a, b), n in shared.items():
        if n * 2 > 0.5 * min(len(distinct[a]), len(distinct[b])):
            both = len(distinct[a] & distinct[b])
            if both / (len(distinct[a]) + len(distinct[b]) - both) >= 0.8:
                want.add((a, b))
    subprocess.run([PROGRAM, "dedup", "-q", "--files", str(chosen), "--pairs",
                    folder / "pairs", "--max-bucket", "100000"], check=True)
    found = {tuple(line.split("\t")[:2]) for line in open(folder / "pairs")}
    near = {p for p in found if sets[p[0]] != sets[p[1]]}
    print(f"/usr/share/doc: {len(sets)} texts, {len(distinct)} different; of "
          f"{len(want)} pairs at 0.8 or above {len(want & near)} found "
          f"({len(want & near) / max(1, len(want)):.4f}), "
          f"{sum(1 for a, b in near if len(sets[a] & sets[b]) < 0.8 * len(sets[a] | sets[b]))}"
          f" below")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        speed(pathlib.Path(name))
        recall(pathlib.Path(name))
