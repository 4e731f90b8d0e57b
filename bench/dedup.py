#!/usr/bin/env python3
"""How fast dedup is, whether it is linear, and what it finds.

    bench/dedup.py [--program BLOOMERY] [--packages FOLDER] [WHAT]...

WHAT is any of speed, template, recall; all of them if nothing is said.

speed     a corpus of random words, a fifth of it edited copies
template  a million pages that share one template: near-copies, and pages that
          are not alike enough; a quarter of them for the growth
recall    the documentation of Debian packages, which apt-get brings into
          FOLDER (a temporary one if none is given), against all pairs that a
          plain join finds (bench/truth.c)

Times are processor time of the whole command with one thread, the least of
several rounds.
"""
import argparse
import gzip
import html
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

ROUNDS = 3
T = 0.8
# Several versions of the same books, and books made from templates.
PACKAGES = ["libboost1.74-doc", "libboost1.81-doc", "llvm-14-doc", "llvm-15-doc",
            "llvm-16-doc", "clang-14-doc", "clang-15-doc", "clang-16-doc",
            "openjdk-17-doc", "python3.11-doc", "postgresql-doc-15", "linux-doc-6.1"]


def cpu_seconds(*argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            json.loads(out.stdout) if out.stdout.startswith(b"{") else None)


# --------------------------------------------------------------------- speed

def words_of(r, n):
    return ["".join(r.choice("abcdefghijklmnopqrstuvwxyz")
                    for _ in range(r.randint(2, 9))) for _ in range(n)]


def write_corpus(path, n, seed=1):
    r = random.Random(seed)
    vocabulary = words_of(r, 30000)
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


def speed(program, folder):
    times = {}
    for n in 5000, 20000:
        path = folder / f"{n}.jsonl"
        write_corpus(path, n)
        rounds = [cpu_seconds(program, "dedup", path, "-o", folder / "out",
                              "--threads", 1, "--json") for _ in range(ROUNDS)]
        times[n], report = min(rounds, key=lambda x: x[0])
        mb = report["text_bytes"] / 1e6
        print(f"{n:6} documents, {mb:.1f} MB of text: {times[n]:.2f} s, "
              f"{mb / times[n]:.0f} MB/s a core, {report['removed']} removed")
    print(f"four times the corpus takes {times[20000] / times[5000]:.2f} times as long")
    command = [program, "dedup", path, "-o", folder / "out", "--threads", 1, "--json"]
    for what, argv in {"--exact": command + ["--exact"],
                       "--paragraphs": command + ["--paragraphs"],
                       "--index bloom": command + ["--index", "bloom"],
                       "wc -lw (of coreutils)": ["wc", "-lw", path]}.items():
        t = min(cpu_seconds(*argv)[0] for _ in range(ROUNDS))
        print(f"{what:24} {mb / t:.0f} MB/s a core")


# ------------------------------------------------------------------ template

def write_pages(path, n, own, seed=3):
    """n pages of 120 words of a template, and `own` words each for themselves."""
    r = random.Random(seed)
    template = words_of(r, 120)
    half = " ".join(template[:60]), " ".join(template[60:])
    with open(path, "w") as f:
        for i in range(n):
            mine = " ".join("%x" % r.getrandbits(28) for _ in range(own))
            f.write(f'{{"id":{i},"text":"{half[0]} {mine} {half[1]}"}}\n')


def template(program, folder):
    for name, own in [("near-copies", 6), ("alike by a half", 40),
                      ("alike by two thirds", 20)]:
        times = {}
        for n in 250_000, 1_000_000:
            path = folder / "pages.jsonl"
            write_pages(path, n, own)
            times[n], report = cpu_seconds(program, "dedup", path, "-o", folder / "out",
                                           "--threads", 1, "--json")
            print(f"{n} pages of one template, {name}: {times[n]:.1f} s, "
                  f"{report['removed']} removed, {report['candidates']} compared by "
                  f"sketches, {report['checked']} exactly")
        print(f"four times the pages take {times[n] / times[n // 4]:.2f} times as long")


# -------------------------------------------------------------------- recall

def unpack(folder):
    """The packages, brought and unpacked once."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not (folder / package).exists():
            subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
            [deb] = folder.glob(package + "_*.deb")
            subprocess.run(["dpkg-deb", "-x", deb, folder / (package + ".part")], check=True)
            deb.unlink()
            (folder / (package + ".part")).rename(folder / package)


def text_of(path):
    """What a file says: a page without its tags, a text as it is; or nothing."""
    content = path.read_bytes()
    name = path.name
    if content[:2] == b"\x1f\x8b":
        content, name = gzip.decompress(content), name[:-3]
    if b"\0" in content[:8000]:
        return None
    content = content.decode("utf-8", "replace")
    if re.search(r"\.x?html?$", name):
        content = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", content)
        return html.unescape(re.sub(r"(?s)<[^>]*>", " ", content))
    return content if re.search(r"\.(txt|rst|[1-9])$|(^|/)[A-Z]+$", name) else None


def texts_of(folder):
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*")):
            if path.is_file() and not path.is_symlink():
                text = text_of(path)
                if text:
                    yield text


def truth_of(folder, corpus):
    """Documents of equal words by the first of them, and J of all other pairs."""
    equal, pairs = {}, {}
    join = pathlib.Path(folder / "truth")
    here = pathlib.Path(__file__).resolve().parent
    subprocess.run(["cc", "-O2", "-o", join, here / "truth.c", "-lm"], check=True)
    with subprocess.Popen([join, corpus, str(T)], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if line[0] == "=":
                a, b = map(int, line[1:].split())
                equal[b] = a
            else:
                a, b, shared, either = map(int, line.split())
                pairs[a, b] = shared / either
    if run.returncode:
        sys.exit("the join failed")
    return equal, pairs


def share(found, of):
    return f"{len(found)} of {len(of)} ({len(found) / max(1, len(of)):.4f})"


def recall(program, folder, packages):
    unpack(packages)
    corpus, plain = folder / "docs.jsonl", folder / "docs.plain"
    n = nbytes = 0
    with open(corpus, "w") as lines, open(plain, "wb") as f:
        for text in texts_of(packages):
            content = text.encode()
            f.write(b"%d\n%s" % (len(content), content))
            lines.write(json.dumps({"id": n, "text": text}, ensure_ascii=False) + "\n")
            n += 1
            nbytes += len(content)
    equal, want = truth_of(folder, plain)
    print(f"{len(PACKAGES)} packages: {n} texts, {nbytes / 1e6:.0f} MB, {len(equal)} equal to "
          f"others; {len(want)} pairs of the rest at {T} or above")
    subprocess.run([program, "dedup", corpus, "--id", "id", "--pairs", folder / "pairs",
                    "--removed", folder / "removed", "-o", folder / "out"], check=True)
    found = {}
    for line in open(folder / "pairs"):
        a, b, j = line.split()
        a, b = sorted((int(a), int(b)))
        if a not in equal and b not in equal:
            found[a, b] = float(j)
    near = {p for p, j in want.items() if j <= 0.85}
    print("pairs found:", share(want.keys() & found, want))
    print("pairs from 0.80 to 0.85 found:", share(near & found.keys(), near))
    print("of those found at the threshold:", share(want.keys() & found, found))
    kept = {json.loads(line)["id"] for line in open(folder / "out")}
    witnessed, removed = [], [list(map(float, x.split())) for x in open(folder / "removed")]
    for a, w, _ in removed:
        pair = tuple(sorted((equal.get(a, int(a)), equal.get(w, int(w)))))
        if w in kept and a not in kept and (pair[0] == pair[1] or pair in want):
            witnessed.append(a)
    print("removed documents with a kept witness at the threshold:",
          share(witnessed, removed))
    both = [p for p in want if kept.issuperset(p)]
    print(f"pairs at the threshold that both stay: {len(both)}")
    subprocess.run([program, "dedup", corpus, "--index", "bloom", "-o", folder / "out"],
                   check=True)
    kept = {json.loads(line)["id"] for line in open(folder / "out")}
    copies = {b for _, b in want} | equal.keys()
    new = set(range(n)) - copies
    print("--index bloom: removed without an earlier one at the threshold:",
          share(new - kept, new))
    print("--index bloom: pairs at the threshold that both stay:",
          sum(kept.issuperset(p) for p in want))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--program", default="build/bloomery")
    options.add_argument("--packages", type=pathlib.Path)
    options.add_argument("what", nargs="*", default=["speed", "template", "recall"])
    o = options.parse_args()
    program = os.path.abspath(o.program)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what in o.what:
            if what == "recall":
                recall(program, folder, o.packages or folder / "packages")
            else:
                {"speed": speed, "template": template}[what](program, folder)


if __name__ == "__main__":
    main()
