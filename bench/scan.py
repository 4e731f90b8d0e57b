#!/usr/bin/python3
"""Strings in a text: bloomery traffic scan beside grep -F and, if it is here,
Vectorscan or Hyperscan (libvectorscan-dev, libhyperscan-dev).

    bench/scan.py --program build/bloomery [--lists all] [FILE...]

Each round runs all of them in turn; the least processor time of the rounds
counts, since a busy machine only adds to it. The time of an empty text is taken
off: it is what building the tables takes, and that is printed too. Without
FILE, the text is what Python's library and the headers of C say, and the
strings are 10,000 names of files.
"""

import argparse
import os
import random
import re
import resource
import struct
import subprocess
import tempfile

MATCHER = r"""
#include <hs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int found(unsigned id, unsigned long long from, unsigned long long to,
                 unsigned flags, void *ctx)
{
    (void)id, (void)from, (void)to, (void)flags;
    ++*(unsigned long long *)ctx;
    return 0;
}
static char *all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *at = malloc(*n + 1);
    if (!at || fread(at, 1, *n, f) != *n)
        exit(2);
    fclose(f);
    return at;
}
int main(int argc, char **argv)
{
    size_t n, m, k = 0;
    char *list = all(argv[1], &n), *text = all(argv[2], &m);
    const char **at = malloc(sizeof *at * (n + 1));
    size_t *len = malloc(sizeof *len * (n + 1));
    unsigned *flags = calloc(n + 1, sizeof *flags);
    unsigned *ids = malloc(sizeof *ids * (n + 1));
    for (char *p = list, *e; p < list + n; p = e + 1) {
        e = memchr(p, '\n', (size_t)(list + n - p));
        if (e > p) {
            at[k] = p;
            len[k] = (size_t)(e - p);
            ids[k] = (unsigned)k;
            k++;
        }
    }
    hs_database_t *db;
    hs_compile_error_t *why;
    hs_scratch_t *scratch = NULL;
    if (hs_compile_lit_multi(at, flags, ids, len, (unsigned)k, HS_MODE_BLOCK,
                             NULL, &db, &why) != HS_SUCCESS ||
        hs_alloc_scratch(db, &scratch) != HS_SUCCESS)
        return 2;
    unsigned long long count = 0;
    hs_scan(db, text, (unsigned)m, 0, scratch, found, &count);
    printf("%llu\n", count);
    (void)argc;
    return 0;
}
"""


def text_of_this_machine(path, nbytes):
    size = 0
    with open(path, "wb") as out:
        for top in "/usr/include", "/usr/lib/python3", "/usr/lib/python3.11":
            for folder, _, names in sorted(os.walk(top)):
                for name in sorted(names):
                    if size >= nbytes or not re.search(r"\.(h|py)$", name):
                        continue
                    try:
                        with open(os.path.join(folder, name), "rb") as f:
                            size += out.write(f.read())
                    except OSError:
                        pass


def names_of_files(_text):
    names = set()
    for folder, _, files in os.walk("/usr/share"):
        names.update(f"{folder}/{x}"[-40:].encode() for x in files
                     if len(x) >= 8 and x.isascii() and "\n" not in x)
    return names


def lines_of(text):
    return {x for x in text.split(b"\n") if 8 <= len(x) <= 60}


def letters(shortest):
    def made(_text):
        chance = random.Random(shortest)
        return {bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz",
                                     k=chance.randint(shortest, 40)))
                for _ in range(20_000)}
    return made


def words(_text):
    with open("/usr/share/dict/words", "rb") as f:
        return {x for x in f.read().split() if len(x) >= 4}


def identifiers(text):
    return set(re.findall(rb"[A-Za-z_][A-Za-z_0-9]{5,}", text))


LISTS = {
    "paths": names_of_files,
    "lines": lines_of,
    "letters4": letters(4),
    "letters8": letters(8),
    "words": words,
    "identifiers": identifiers,
}


def write_list(path, name, text, n):
    strings = sorted(LISTS[name](text))
    random.Random(1).shuffle(strings)
    with open(path, "wb") as out:
        out.write(b"".join(x + b"\n" for x in strings[:n]))


def write_capture(path, text, size=1448):
    """The text as one TCP stream, in packets of a full Ethernet frame."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, at in enumerate(range(0, len(text), size)):
            part = text[at:at + size]
            frame = (bytes(12) + b"\x08\x00" + struct.pack(
                ">BBHHHBBH4s4s", 0x45, 0, 40 + len(part), i & 0xffff, 0, 64, 6,
                0, b"\x0a\0\0\1", b"\x0a\0\0\2") + struct.pack(
                    ">HHIIBBHHH", 1234, 80, at + 1, 1, 0x50, 0x10, 8192, 0, 0)
                + part)
            out.write(struct.pack("<IIII", i // 1000, i % 1000, len(frame),
                                  len(frame)) + frame)


def spent(argv):
    """Seconds of processor time, and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode > 1:
        raise SystemExit(f"{argv[0]}: {done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime
            - before.ru_utime - before.ru_stime), done


def matcher(folder):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libhs"],
                           capture_output=True, text=True)
    if flags.returncode:
        return None
    source, program = f"{folder}/m.c", f"{folder}/m"
    with open(source, "w") as f:
        f.write(MATCHER)
    made = subprocess.run(["cc", "-O2", source, "-o", program,
                           *flags.stdout.split()])
    return program if made.returncode == 0 else None


def compare(programs, path, size, empty, rounds):
    best = {}
    for _ in range(rounds):
        for name, argv in programs.items():
            build, _done = spent([*argv, empty])
            whole, done = spent([*argv, path])
            old = best.get(name, (9e9, 9e9, ""))
            best[name] = (min(old[0], build), min(old[1], whole),
                          done.stdout.decode())
    for name, (build, whole, _out) in best.items():
        print(f"  {name:26} {size / max(whole - build, 1e-9) / 1e9:8.3f} GB/s, "
              f"tables in {build:.3f} s")
    print("  " + best["bloomery"][2].strip())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--program", default="build/bloomery")
    options.add_argument("--rows", metavar="PROGRAM",
                         help="build/bench/scan_rows: each row of the sieve")
    options.add_argument("--strings", help="a list of your own")
    options.add_argument("--lists", default="paths",
                         help=f"of {', '.join(LISTS)}, or all")
    options.add_argument("--random", action="store_true",
                         help="random bytes are the text")
    options.add_argument("--capture", action="store_true",
                         help="the text as a capture, too")
    options.add_argument("--only", action="store_true",
                         help="without the others")
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--megabytes", type=int, default=60)
    options.add_argument("file", nargs="*")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = given.file or [f"{folder}/text"]
        if not given.file:
            text_of_this_machine(files[0], given.megabytes * 1_000_000)
        with open(files[0], "rb") as f:
            text = f.read()
        empty, strings = f"{folder}/empty", f"{folder}/strings"
        open(empty, "wb").close()
        if given.random:
            files = [f"{folder}/random"]
            with open(files[0], "wb") as f:
                f.write(random.Random(7).randbytes(len(text)))
        hs = matcher(folder)
        if not hs:
            print("Vectorscan or Hyperscan: not here (libvectorscan-dev)")
        names = list(LISTS) if given.lists == "all" else given.lists.split(",")
        for name in [given.strings] if given.strings else names:
            if given.strings:
                strings = given.strings
            else:
                write_list(strings, name, text, given.count)
            scan = [given.program, "traffic", "scan", "--summary", "--json",
                    "--strings", strings]
            programs = {"bloomery": [*scan, "--raw"]}
            if not given.only:
                programs["bloomery --per-length"] = [*scan, "--raw",
                                                     "--per-length"]
                programs["grep -F -c"] = ["env", "LC_ALL=C", "grep", "-a", "-c",
                                          "-F", "-f", strings]
                if hs:
                    programs["Vectorscan or Hyperscan"] = [hs, strings]
            for path in files:
                size = os.path.getsize(path)
                print(f"{name} in {path}: {size / 1e6:.0f} MB", flush=True)
                if given.rows:
                    subprocess.run([given.rows, strings, path,
                                    str(given.rounds)], check=True)
                compare(programs, path, size, empty, given.rounds)
                if given.capture:
                    with open(path, "rb") as f:
                        write_capture(f"{folder}/c.pcap", f.read())
                    print("  as a capture:")
                    compare({"bloomery": scan}, f"{folder}/c.pcap", size, empty,
                            given.rounds)


if __name__ == "__main__":
    main()
