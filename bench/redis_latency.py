#!/usr/bin/env python3
"""How long a command keeps other clients waiting; prints a table in Markdown.

    bench/redis_latency.py [--module build/bloomery.so] [--size 200] [--rounds 5]
                           [--only WORD ...]

A second client sends PING after PING in a process of its own while the command
runs, and notes the longest that it waited. The machine may be busy with other
things: the table has the least of all rounds, and a row for rounds in which nothing
was sent. --size is that of large keys in MB.

Needs redis-server and redis-cli.
"""
import argparse
import multiprocessing
import pathlib
import socket
import time

from redis_speed import Server, command


class Client:
    """Words to the server, and the bytes of one reply back."""

    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.f = self.s.makefile("rb")

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.s.sendall(command(words[0].decode(), words[2:], words[1])
                       if len(words) > 1 else b"*1\r\n$%d\r\n%b\r\n" % (
                           len(words[0]), words[0]))
        return self.reply()

    def reply(self):
        line = self.f.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return self.f.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest


def probe(port, stop, longest, npings):
    client = Client(port)
    while not stop.value:
        begin = time.perf_counter()
        client.send("PING")
        longest.value = max(longest.value, time.perf_counter() - begin)
        npings.value += 1


def some_pings(npings):
    """Whatever was under way has an answer."""
    end = npings.value + 2
    while npings.value < end:
        time.sleep(0.001)


def wait_of(port, work):
    """Milliseconds that others waited while work() ran, and that it took."""
    stop = multiprocessing.Value("b", 0)
    longest = multiprocessing.Value("d", 0.0)
    npings = multiprocessing.Value("l", 0)
    other = multiprocessing.Process(target=probe, args=(port, stop, longest,
                                                        npings))
    other.start()
    some_pings(npings)
    longest.value = 0
    begin = time.perf_counter()
    work()
    took = time.perf_counter() - begin
    some_pings(npings)
    stop.value = 1
    other.join()
    return longest.value * 1e3, took * 1e3


def rows(c, mb):
    """(name, what comes before, the command)."""
    bits = mb * 8_000_000
    capacity = bits // 11
    send = c.send

    def fresh(key, *words):
        return lambda: (send("DEL", key), send(*words))

    def items(n, first=0):
        return [b"item:%d" % (first + i) for i in range(n)]

    def long_list():
        send("DEL", "list")
        send("TOPK.RESERVE", "list", 1_000_000, 2_000_000, 3, "0.9")
        for first in range(0, 1_000_000, 10_000):
            send("TOPK.ADD", "list", *items(10_000, first))

    def full():
        few = capacity // 20_000
        send("DEL", "new")
        send("BF.RESERVE", "new", "0.01", few, "EXPANSION", 20_000)
        send("BF.MADD", "new", *items(few))
        at = few
        while int(send("BF.CARD", "new")) < few:
            send("BF.ADD", "new", b"item:%d" % at)
            at += 1

    send("BF.RESERVE", "bf", "0.01", capacity)
    send("BF.MADD", "bf", *items(10_000))
    send("CF.RESERVE", "cf", mb * 500_000)
    send("CF.INSERT", "cf", "ITEMS", *items(10_000))
    send("CMS.INITBYDIM", "cms", mb * 250_000 // 5, 5)
    for kind in ("blocked", "scalable", "spectral"):
        send("BLY.CREATE", kind, kind, "CAPACITY", capacity, "BITS", bits) \
            if kind == "spectral" else \
            send("BLY.CREATE", kind, kind, "CAPACITY", capacity)
        send("BLY.ADD", kind, *items(1000))
    long_list()
    yield "nothing", None, lambda: time.sleep(0.1)
    for name in ("bf", "cf", "cms", "blocked", "scalable", "spectral"):
        family = {"bf": "BF", "cf": "CF", "cms": "CMS"}.get(name, "BLY")
        yield f"{family}.INFO {name}", None, \
            lambda name=name, family=family: send(f"{family}.INFO", name)
    yield "TOPK.INFO", None, lambda: send("TOPK.INFO", "list")
    yield "BF.RESERVE", lambda: send("DEL", "new"), \
        lambda: send("BF.RESERVE", "new", "0.01", capacity)
    yield "CF.RESERVE", lambda: send("DEL", "new"), \
        lambda: send("CF.RESERVE", "new", mb * 500_000)
    yield "CMS.INITBYDIM", lambda: send("DEL", "new"), \
        lambda: send("CMS.INITBYDIM", "new", mb * 250_000 // 5, 5)
    yield "BLY.CREATE blocked", lambda: send("DEL", "new"), \
        lambda: send("BLY.CREATE", "new", "blocked", "CAPACITY", capacity)
    yield "BF.ADD that grows", full, \
        lambda: send("BF.MADD", "new", *items(3, 10**9))
    yield "BF.SCANDUMP, a piece", None, lambda: send("BF.SCANDUMP", "bf", 1)
    yield "CF.SCANDUMP, a piece", None, lambda: send("CF.SCANDUMP", "cf", 1)
    yield "BLY.EXPORT blocked, the first piece", \
        lambda: send("BLY.ADD", "blocked", str(time.time())), \
        lambda: send("BLY.EXPORT", "blocked", 0)
    yield "BLY.EXPORT scalable, the first piece", \
        lambda: send("BLY.ADD", "scalable", str(time.time())), \
        lambda: send("BLY.EXPORT", "scalable", 0)
    yield "BLY.EXPORT blocked, another", None, \
        lambda: send("BLY.EXPORT", "blocked", 50_000_000)
    send("BLY.CREATE", "compressed", "compressed", "CAPACITY", capacity // 10)
    yield "BLY.EXPORT compressed, a tenth of the size, the first piece", \
        lambda: send("BLY.ADD", "compressed", str(time.time())), \
        lambda: send("BLY.EXPORT", "compressed", 0)
    send("CMS.INITBYDIM", "sum", mb * 250_000 // 5, 5)
    yield "CMS.MERGE of one into another", None, \
        lambda: send("CMS.MERGE", "sum", 1, "cms")
    yield "TOPK.ADD of 100, k a million", None, \
        lambda: send("TOPK.ADD", "list", *items(100, int(time.time()) % 900_000))
    yield "TOPK.QUERY of 100, k a million", None, \
        lambda: send("TOPK.QUERY", "list", *items(100, 5000))
    yield "CF.COMPACT", None, lambda: send("CF.COMPACT", "cf")
    yield "MEMORY USAGE", None, lambda: send("MEMORY", "USAGE", "blocked")
    full_of = capacity // 200
    for at in range(0, full_of, 1000): # all pages are in use, and put together
        send("BF.MADD", "bf", *items(1000, at))
    yield "BF.MEXISTS of 100, while pages are put together", \
        lambda: (send("DEL", "gone"), send("COPY", "bf", "gone"),
                 [send("BF.MEXISTS", "gone", *items(1000, at))
                  for at in range(0, 5000, 1000)]), \
        lambda: [send("BF.MEXISTS", "gone", *items(100, at))
                 for at in range(0, 200_000, 100)]
    for name, words in (
            ("UNLINK bf", ("BF.RESERVE", "gone", "0.01", capacity)),
            ("UNLINK cf", ("CF.RESERVE", "gone", mb * 500_000)),
            ("UNLINK blocked", ("BLY.CREATE", "gone", "blocked", "CAPACITY",
                                capacity))):
        yield name, fresh("gone", *words), lambda: send("UNLINK", "gone")
    yield "UNLINK topk", lambda: send("COPY", "list", "gone"), \
        lambda: send("UNLINK", "gone")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default=str(root / "build/bloomery.so"))
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[""])
    o = parser.parse_args()
    with Server(str(pathlib.Path(o.module).resolve())) as server:
        client = Client(server.port)
        print("| ms | others waited | it took |\n| --- | --- | --- |")
        for name, before, work in rows(client, o.size):
            if not any(word in name for word in o.only):
                continue
            found = []
            for _ in range(o.rounds):
                if before:
                    before()
                found.append(wait_of(server.port, work))
            waited, took = (min(column) for column in zip(*found))
            print(f"| {name} | {waited:.2f} | {took:.2f} |", flush=True)


if __name__ == "__main__":
    main()
