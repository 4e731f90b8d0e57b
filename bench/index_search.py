#!/usr/bin/env python3
"""bloomery index beside what people use: zstdgrep and zgrep, ripgrep -z, codesearch, ugrep's indexer, SQLite's FTS5 with
trigrams. One run, one corpus, every result compared with grep's.

    bench/index_search.py [FOLDER [MB]]

FOLDER keeps the corpus: MB of synthetic access logs with trace ids (a third of them gzip, the others zstd), and the text of
/usr/share/doc, /usr/include and Python's library, compressed with zstd. Programs that are not on the PATH are left out.
"""
import gzip
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOOMERY = os.environ.get("BLOOMERY", str(ROOT / "build" / "bloomery"))
ENV = {**os.environ, "LC_ALL": "C.UTF-8"}
PATHS = ["/", "/login", "/api/v1/orders", "/api/v1/users/%d", "/static/app.js", "/img/logo-%d.png", "/cart", "/checkout",
         "/api/v2/items/%d", "/search?q=%d"]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0",
          "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36",
          "curl/7.88.1", "Googlebot/2.1 (+http://www.google.com/bot.html)"]


def log_file(job):
    """One file of a log: what servers write, with an id of 128 bits in every line."""
    folder, number, size = job
    rng = random.Random(number)
    ips = [".".join(str(rng.randrange(1, 256)) for _ in range(4)) for _ in range(3000)]
    lines, n, at = [], 0, number * 20000
    while n < size:
        path = rng.choice(PATHS)
        path = path % rng.randrange(100000) if "%" in path else path
        at += rng.random() * .2
        t = int(at)
        line = (f'{ips[int(rng.random() ** 3 * 3000)]} - - [{t // 86400 % 30 + 1:02}/Nov/2026:{t // 3600 % 24:02}:'
                f'{t // 60 % 60:02}:{t % 60:02} +0000] "GET {path} HTTP/1.1" {rng.choice([200] * 20 + [304] * 5 + [404, 500])} '
                f'{rng.randrange(200, 60000)} "-" "{rng.choice(AGENTS)}" trace={rng.getrandbits(128):032x}\n')
        lines.append(line)
        n += len(line)
    return pack(folder / f"access-{number:05}.log", "".join(lines).encode(), number % 3 == 0)


def pack(path, text, as_gzip):
    if as_gzip:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(text, 6))
    else:
        subprocess.run(["zstd", "-q", "-f", "-o", f"{path}.zst"], input=text, check=True)
    return len(text)


def corpus(folder, mb):
    if (folder / "made").exists():
        return int((folder / "made").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "c").mkdir(parents=True)
    size = 400_000
    with multiprocessing.Pool() as pool:
        total = sum(pool.imap(log_file, [(folder / "c", i, size) for i in range((mb << 20) // size)], 8))
    batch, n = [], 0
    for top in ("/usr/share/doc", "/usr/include", "/usr/lib/python3.11", "/usr/share/perl"):
        for path in sorted(pathlib.Path(top).rglob("*")):
            if path.suffix in (".pyc", ".so", ".a", ".o") or path.is_symlink() or not path.is_file():
                continue
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            if b"\0" in data:
                continue
            batch.append(data if data.endswith(b"\n") else data + b"\n")
            if sum(map(len, batch)) > size or len(batch) > 60:
                total += pack(folder / "c" / f"text-{n:05}.txt", b"".join(batch), False)
                batch, n = [], n + 1
    (folder / "made").write_text(str(total))
    return total


def in_vain(folder, files):
    """Files that are opened in vain: for what is random, as few as planned; for prose that is there, whose four bytes in a row
    are everywhere, many."""
    rng = random.Random(3)
    prose = [f for f in files if f.startswith("text")]
    pool = [subprocess.run(["zstd", "-dcq", folder / "c" / rng.choice(prose)], capture_output=True).stdout for _ in range(20)]

    def piece(n):
        while True:
            text = rng.choice(pool)
            at = rng.randrange(len(text) - n)
            found = text[at:at + n]
            if re.fullmatch(rb"[a-z]+( [a-z]+)*", found):
                return found.decode()

    def letters(n):
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(n))

    print(f"\nfiles opened in vain, of {len(files)}, {len(prose)} of which are prose; 20 questions each\n\n"
          "| question | most | median | in all, one of |\n| --- | --- | --- | --- |")
    for what, options, make in (
            ("8 random letters", ["-F"], lambda: letters(8)), ("12 random letters", ["-F"], lambda: letters(12)),
            ("a word of 9 random letters, -w", ["-w"], lambda: letters(9)),
            ("an id of 128 random bits", ["-F"], lambda: f"{rng.getrandbits(128):032x}"),
            ("the same, -w", ["-w"], lambda: f"{rng.getrandbits(128):032x}"),
            ("8 bytes of prose", ["-F"], lambda: piece(8)), ("12 bytes of prose", ["-F"], lambda: piece(12)),
            ("24 bytes of prose", ["-F"], lambda: piece(24))):
        vain, asked = [], 0
        for _ in range(20):
            words = [BLOOMERY, "index", "search", "-q", "x.blx", *options, make()]
            maybe, match = (len(subprocess.run([*words[:3], option, *words[4:]], cwd=folder, env=ENV, stdout=subprocess.PIPE,
                                               stderr=subprocess.DEVNULL).stdout.splitlines()) for option in ("--maybe", "-l"))
            vain.append(maybe - match)
            asked += len(files) - match
        print(f"| {what} | {max(vain)} | {sorted(vain)[10]} | {asked / sum(vain):.0f} |" if sum(vain) else f"| {what} | 0 | 0 | none |",
              flush=True)


def least(argv, times=3, **kw):
    """Least time of a few runs, and what it printed."""
    best, out = 1e9, b""
    for _ in range(times):
        start = time.perf_counter()
        done = subprocess.run(argv, capture_output=True, env=ENV, **kw)
        best, out = min(best, time.perf_counter() - start), done.stdout
    return best, out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/index-bench")
    text = corpus(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 4096)
    files = sorted(p.name for p in (folder / "c").iterdir())
    packed = sum((folder / "c" / f).stat().st_size for f in files)
    print(f"{len(files)} files, {text / 2**20:.0f} MiB of text, {packed / 2**20:.0f} MiB compressed")
    index = folder / "x.blx"
    for threads in (1, os.cpu_count()):
        index.unlink(missing_ok=True)
        start = os.times()
        wall = time.perf_counter()
        subprocess.run([BLOOMERY, "index", "build", "-q", "-t", str(threads), "-o", index, "c"], cwd=folder, check=True)
        wall, end = time.perf_counter() - wall, os.times()
        cpu = end.children_user + end.children_system - start.children_user - start.children_system
        print(f"build, {threads} threads: {wall:.1f} s, {cpu:.1f} s of processors, {text / cpu / 1e6:.0f} MB of text per second "
              f"and core, decompression included; index {index.stat().st_size / text:.2%} of the text")
    start = time.perf_counter()
    for f in files:
        subprocess.run([("gzip" if f.endswith(".gz") else "zstd"), "-dcq", folder / "c" / f], stdout=subprocess.DEVNULL)
    print(f"decompressing alone, one after another: {time.perf_counter() - start:.1f} s")
    some = subprocess.run(["zstd", "-dcq", folder / "c" / [f for f in files if "access" in f and f.endswith("zst")][7]],
                          capture_output=True).stdout.splitlines()[100].decode()
    trace = some.split("trace=")[1]
    questions = [("absent id", ["-w", "0123456789abcdef0123456789abcdef"]), ("id", ["-w", trace]), ("the same without -w", [trace]),
                 ("address", ["-w", some.split()[0].replace(".", r"\.")]), ("prose", ["prototype for"]),
                 ("regular expression", ["-E", "(deprecated|obsolete) since [0-9]"]), ("frequent", ["-F", "Fire"]),
                 ("without the index", ["-F", "Fir"])]
    zst, gz = [f for f in files if f.endswith(".zst")], [f for f in files if f.endswith(".gz")]
    rg = shutil.which("rg")
    for what, options in questions:
        t, out = least([BLOOMERY, "index", "search", "x.blx", *options], cwd=folder)
        maybe = least([BLOOMERY, "index", "search", "--json", "--maybe", "x.blx", *options], 1, cwd=folder)[1]
        start = time.perf_counter()
        ref = {}
        for name, tool in (zst, "zstdgrep"), (gz, "zgrep"):
            done = subprocess.run([tool, "-Hn", *options, *(f"c/{f}" for f in name)], capture_output=True, cwd=folder, env=ENV)
            for line in done.stdout.splitlines(keepends=True):
                ref.setdefault(line.split(b":", 1)[0], []).append(line)
        slow = time.perf_counter() - start
        same = b"".join(b"".join(ref[f]) for f in sorted(ref)) == out
        print(f"{what:22} {t * 1000:9.1f} ms; zstdgrep and zgrep {slow * 1000:9.1f} ms, {slow / t:6.0f} times; {len(ref)} files match, "
              f"{maybe.count(b'{')} may; {'the same lines' if same else 'OTHER LINES'}", end="")
        if rg:
            other, lines = least([rg, "-z", "-n", "--no-heading", "-j2", *[o for o in options if o != "-E"], "c"], 1, cwd=folder)
            print(f"; rg -z {other * 1000:.1f} ms, {other / t:.0f} times", end="")
        print(flush=True)
    in_vain(folder, files)
    if shutil.which("cindex") or shutil.which("ugrep-indexer"):
        plain = folder / "plain"
        if not plain.exists():
            plain.mkdir()
            for f in files:
                with open(plain / f.rsplit(".", 1)[0], "wb") as out:
                    subprocess.run([("gzip" if f.endswith(".gz") else "zstd"), "-dcq", folder / "c" / f], stdout=out)
        if shutil.which("cindex"):
            env = {**ENV, "CSEARCHINDEX": str(folder / "cs.idx")}
            start = time.perf_counter()
            subprocess.run(["cindex", "-reset", str(plain)], env=env, capture_output=True)
            took = time.perf_counter() - start
            print(f"codesearch, on the decompressed files: build {took:.1f} s, index {os.path.getsize(folder / 'cs.idx') / text:.1%} of "
                  "the text;", end=" ")
            for what, pattern in ("id", trace), ("prose", "prototype for"), ("absent", "0123456789abcdef0123456789abcdef"):
                start = time.perf_counter()
                subprocess.run(["csearch", "-n", pattern], env=env, capture_output=True)
                print(f"{what} {(time.perf_counter() - start) * 1000:.1f} ms", end="; ")
            print()
        if shutil.which("ugrep-indexer"):
            start = time.perf_counter()
            subprocess.run(["ugrep-indexer", "-q", "-f", str(plain)], capture_output=True)
            size = sum(p.stat().st_size for p in plain.rglob("._UG#_Store"))
            print(f"ugrep-indexer, on the same: build {time.perf_counter() - start:.1f} s, index {size / text:.1%} of the text")
    db = folder / "fts.db"
    db.unlink(missing_ok=True)
    con = sqlite3.connect(db)
    con.execute("create virtual table t using fts5(line, content='', tokenize='trigram', detail=none)")
    start, n = time.perf_counter(), 0
    for f in files[:len(files) // 16]:
        data = subprocess.run([("gzip" if f.endswith(".gz") else "zstd"), "-dcq", folder / "c" / f], capture_output=True).stdout
        con.execute("insert into t(line) values (?)", (data.decode(errors="replace"),))
        n += len(data)
    con.commit()
    print(f"SQLite FTS5, trigrams of whole files, a sixteenth of them: {n / 1e6 / (time.perf_counter() - start):.0f} MB per second, "
          f"index {db.stat().st_size / n:.1%} of the text")


if __name__ == "__main__":
    main()
