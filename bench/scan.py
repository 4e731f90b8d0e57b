#!/usr/bin/python3
"""Strings in a text: bloomery traffic scan beside grep -F and, if it is here,
Vectorscan or Hyperscan (libvectorscan-dev, libhyperscan-dev).

    bench/scan.py --program build/bloomery [--strings LIST] [FILE...]

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


def names_of_files(path, n):
    names = set()
    for folder, _, files in os.walk("/usr/share"):
        names.update(f"{folder}/{x}"[-40:] for x in files
                     if len(x) >= 8 and x.isascii())
    names = sorted(x for x in names if "\n" not in x)
    random.Random(1).shuffle(names)
    with open(path, "w") as out:
        out.write("".join(x + "\n" for x in names[:n]))


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


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--program", default="build/bloomery")
    options.add_argument("--strings")
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--megabytes", type=int, default=100)
    options.add_argument("file", nargs="*")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        strings = given.strings or f"{folder}/strings"
        if not given.strings:
            names_of_files(strings, given.count)
        files = given.file or [f"{folder}/text"]
        if not given.file:
            text_of_this_machine(files[0], given.megabytes * 1_000_000)
        empty = f"{folder}/empty"
        open(empty, "wb").close()
        hs = matcher(folder)
        scan = [given.program, "traffic", "scan", "--raw", "--summary",
                "--json", "--strings", strings]
        programs = {
            "bloomery": scan,
            "bloomery --per-length": [*scan, "--per-length"],
            "grep -F -c": ["env", "LC_ALL=C", "grep", "-a", "-c", "-F", "-f",
                           strings],
        }
        if hs:
            programs["Vectorscan or Hyperscan"] = [hs, strings]
        else:
            print("Vectorscan or Hyperscan: not here (libvectorscan-dev)")
        for path in files:
            size = os.path.getsize(path)
            best = {}
            for _ in range(given.rounds):
                for name, argv in programs.items():
                    build, _done = spent([*argv, empty])
                    whole, done = spent([*argv, path])
                    old = best.get(name, (9e9, 9e9, ""))
                    best[name] = (min(old[0], build), min(old[1], whole),
                                  done.stdout.decode())
            print(f"{path}: {size / 1e6:.0f} MB")
            for name, (build, whole, _out) in best.items():
                rate = size / max(whole - build, 1e-9) / 1e9
                print(f"  {name:26} {rate:8.3f} GB/s, tables in "
                      f"{build:.3f} s")
            print("  " + best["bloomery"][2].strip())


if __name__ == "__main__":
    main()
