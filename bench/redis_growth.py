#!/usr/bin/env python3
"""Memory and rate of filters that grow, inside a real server; Markdown.

    bench/redis_growth.py [--module build/bloomery.so] [--keys 1000000] [KIND...]

A filter is made as `BLY.CREATE key KIND`, or with the words behind a colon
(`scalable:CAPACITY 100`), and takes keys up to their number. A few percent
apart it is asked for its size: bits per key by BLY.INFO, and by MEMORY USAGE, which
has the server's own share in it. At each tenfold, and in the end, keys that are
not there are asked for.
"""
import argparse
import pathlib
import time

from redis_speed import Server, command


def pipe(server, words):
    return server.cli("--pipe", stdin=b"".join(words))


def ask(server, filled, n=100_000, size=2000):
    """The share of n absent keys that are "there", and microseconds a key."""
    server.cli("CONFIG", "RESETSTAT")
    hits = 0
    for first in range(0, n, size):
        out = server.cli("BLY.HAS", "k", *(f"no:{filled}:{first + i}"
                                           for i in range(size)))
        hits += sum(line.strip() == "1" for line in out.splitlines())
    return hits / n, server.usec("bly.has") / size


def facts(server):
    words = server.cli("BLY.INFO", "k").splitlines()
    return dict(zip(words[::2], words[1::2]))


def grow(server, kind, keys):
    words = kind.split(":", 1)
    server.cli("DEL", "k")
    server.cli("BLY.CREATE", "k", words[0], *" ".join(words[1:]).split())
    filled, decade = 0, 100
    seen, rows = [], []
    spent = time.monotonic()
    while filled < keys:
        n = min(keys, filled + max(100, filled // 40)) - filled
        pipe(server, [command("BLY.ADD", [b"key:%d" % (filled + i + k) for k in
                                          range(min(1000, n - i))], b"k")
                      for i in range(0, n, 1000)])
        filled += n
        bits = int(facts(server)["bits"]) / filled
        whole = 8 * int(server.cli("MEMORY", "USAGE", "k")) / filled
        seen.append((filled, bits, whole))
        if filled >= decade or filled == keys:
            decade *= 10
            rows.append((filled, bits, whole, *ask(server, filled)))
    spent = time.monotonic() - spent
    print(f"\n{kind}, in {spent:.0f} s\n\n| keys | bits per key | with all of the "
          "key | rate | us a question |\n| --- | --- | --- | --- | --- |")
    for filled, bits, whole, rate, us in rows:
        print(f"| {filled:,} | {bits:.2f} | {whole:.2f} | {100 * rate:.3f} % | "
              f"{us:.3f} |")
    for first in (1000, 10_000, 100_000):
        part = [row for row in seen if row[0] >= first]
        if part:
            print(f"\nfrom {first:,} keys on: {min(r[1] for r in part):.2f} to "
                  f"{max(r[1] for r in part):.2f} bits per key, "
                  f"{max(r[2] for r in part):.2f} with all of the key")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default=str(root / "build/bloomery.so"))
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("kinds", nargs="*", metavar="KIND",
                        default=["elastic", "scalable"])
    options = parser.parse_args()
    with Server(str(pathlib.Path(options.module).resolve())) as server:
        for kind in options.kinds:
            grow(server, kind, options.keys)


if __name__ == "__main__":
    main()
