#!/usr/bin/env python3
"""Two modules side by side in real servers; prints a table in Markdown.

    bench/redis_against.py OTHER.so [--module build/bloomery.so] [--rounds 15]
                           [--capacity 200000000] [--calls 100] [--cpu]
                           [--only WORD ...]

OTHER.so is another build of this module, or a peer's with the same commands. A
server runs for each, both hold the same keys, and the same commands are sent to
the one and the other in turn: microseconds per item inside of the command (INFO
commandstats), the least of all rounds, since the machine may be busy with other
things. What one of them does not know is left out. --cpu measures the server's
processor time instead, with reading the command and sending the reply, which are
the same for both; it does not go on while others have the processor. A round is
--calls commands of 100 items, 50 times as many of one: of a hundred, some begin
with caches that the other server has filled.

Needs redis-server and redis-cli.
"""
import argparse
import pathlib
import random

from redis_speed import Server, command


def words(first, n):
    return [b"item:%d" % (first + i) for i in range(n)]


def pairs(first, n):
    return [w for item in words(first, n) for w in (item, b"1")]


def numbers(form):
    """Values of a t-digest: gaussian, printed so."""
    def items(first, n):
        rng = random.Random(first)
        return [(form % rng.gauss(500, 100)).encode() for _ in range(n)]
    return items


def skewed(first, n):
    rng = random.Random(first)
    return [b"item:%d" % int(rng.paretovariate(1.0)) for _ in range(n)]


def one_by_one(server):
    server.setting("no")


class Work:
    """What is measured: commands of `size` items on a key."""
    made = 0
    many = 100  # commands of a round

    def __init__(self, name, key, verb, items=words, size=100, there=None,
                 before=None):
        self.name, self.key, self.verb, self.items = name, key, verb, items
        self.size, self.there = size, there
        self.calls = Work.many * (1 if size > 1 else 50)
        self.before = before
        self.middle = [b"ITEMS"] if verb.startswith("CF.INSERT") else []
        Work.made += 1
        self.begin = Work.made * 10**10

    def first(self, turn):
        """Of the items of a turn: those that are there, or new ones, which no
        other work has."""
        n = self.calls * self.size
        return (turn * n) % (self.there - n) if self.there else \
            self.begin + turn * n

    def run(self, server, turn, cpu):
        if self.before:
            self.before(server)
        data = b"".join(
            command(self.verb, self.middle + self.items(
                self.first(turn) + i * self.size, self.size), self.key)
            for i in range(self.calls))
        server.cli("CONFIG", "RESETSTAT")
        begin = server.cpu()
        server.cli("--pipe", stdin=data)
        end = server.cpu()
        spent = (end - begin) * 1e6 / self.calls / self.size if cpu else \
            server.usec(self.verb.lower()) / self.size
        server.setting("yes")
        return spent


def fill(server, key, verb, n, middle=()):
    for first in range(0, n, 1_000_000):
        server.cli("--pipe", stdin=b"".join(
            command(verb, [*middle, *words(first + i, 1000)], key)
            for i in range(0, min(n - first, 1_000_000), 1000)))


def prepare(server, capacity):
    server.cli("BF.RESERVE", "big", "0.01", capacity)
    fill(server, b"big", "BF.MADD", capacity // 20)
    server.cli("BF.RESERVE", "middle", "0.01", 10_000_000)
    fill(server, b"middle", "BF.MADD", 1_000_000)
    server.cli("BF.RESERVE", "grown", "0.01", 100)
    fill(server, b"grown", "BF.MADD", 1_000_000)
    server.cli("CF.RESERVE", "cuckoo", capacity // 2)
    fill(server, b"cuckoo", "CF.INSERT", capacity // 20, [b"ITEMS"])
    server.cli("CMS.INITBYDIM", "cms", 2000, 7)
    server.cli("CMS.INITBYDIM", "wide", 4_000_000, 7)
    server.cli("TOPK.RESERVE", "topk", 50, 2000, 7, "0.925")
    server.cli("TDIGEST.CREATE", "digest")


def works(capacity):
    some = capacity // 20
    return [
        Work("BF.MADD, large, new", b"big", "BF.MADD"),
        Work("BF.MADD, large, new, fetching nothing ahead", b"big", "BF.MADD",
             before=one_by_one),
        Work("BF.MEXISTS, large, absent", b"big", "BF.MEXISTS"),
        Work("BF.MEXISTS, large, present", b"big", "BF.MEXISTS", there=some),
        Work("BF.MEXISTS, grown from 100, absent", b"grown", "BF.MEXISTS"),
        Work("BF.MEXISTS, grown from 100, present", b"grown", "BF.MEXISTS",
             there=1_000_000),
        Work("BF.MADD, grown from 100, present", b"grown", "BF.MADD",
             there=1_000_000),
        Work("BF.ADD, new", b"middle", "BF.ADD", size=1),
        Work("BF.EXISTS, absent", b"middle", "BF.EXISTS", size=1),
        Work("BF.EXISTS, present", b"middle", "BF.EXISTS", size=1,
             there=1_000_000),
        Work("CF.INSERT, large, new", b"cuckoo", "CF.INSERT"),
        Work("CF.INSERTNX, large, new", b"cuckoo", "CF.INSERTNX"),
        Work("CF.MEXISTS, large, absent", b"cuckoo", "CF.MEXISTS"),
        Work("CF.MEXISTS, large, present", b"cuckoo", "CF.MEXISTS", there=some),
        Work("CF.ADD, large, new", b"cuckoo", "CF.ADD", size=1),
        Work("CF.EXISTS, large, absent", b"cuckoo", "CF.EXISTS", size=1),
        Work("CMS.INCRBY, 2000 x 7", b"cms", "CMS.INCRBY", items=pairs),
        Work("CMS.INCRBY, 4,000,000 x 7", b"wide", "CMS.INCRBY", items=pairs),
        Work("CMS.QUERY, 2000 x 7", b"cms", "CMS.QUERY"),
        Work("TOPK.ADD, all different", b"topk", "TOPK.ADD"),
        Work("TOPK.ADD, skewed", b"topk", "TOPK.ADD", items=skewed),
        Work("TOPK.QUERY", b"topk", "TOPK.QUERY"),
        Work("TDIGEST.ADD, 17 digits", b"digest", "TDIGEST.ADD", items=numbers("%.17g")),
        Work("TDIGEST.ADD, 3 places", b"digest", "TDIGEST.ADD", items=numbers("%.3f")),
        Work("TDIGEST.ADD, whole numbers", b"digest", "TDIGEST.ADD", items=numbers("%d")),
    ]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other")
    parser.add_argument("--module", default=str(root / "build/bloomery.so"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--capacity", type=int, default=200_000_000)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", default=[""])
    o = parser.parse_args()
    Work.many = o.calls
    with Server(str(pathlib.Path(o.other).resolve())) as other, \
            Server(str(pathlib.Path(o.module).resolve())) as own:
        for server in (other, own):
            prepare(server, o.capacity)
        print("| us per item | other | this | times |\n| --- | --- | --- | --- |")
        for work in works(o.capacity):
            if not any(word in work.name for word in o.only):
                continue
            least = {}
            try:
                for turn in range(o.rounds):
                    for server in random.sample((other, own), 2):
                        spent = work.run(server, turn, o.cpu)
                        least[server] = min(least.get(server, spent), spent)
            except KeyError: # no such command
                continue
            print(f"| {work.name} | {least[other]:.3f} | {least[own]:.3f} | "
                  f"{least[other] / least[own]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
