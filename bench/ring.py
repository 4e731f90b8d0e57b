#!/usr/bin/python3
"""Lookups and transfers on a ring of processes, beside Redis Cluster.

    bench/ring.py [NODES] [KEYS] [ROUNDS] [SECONDS]     20 nodes, 2000 keys, 3 rounds of 2 s

Both have NODES processes on loopback and get the same keys. First one client,
in Python on plain sockets, asks for all keys in the same random order, one
after another: what a client waits for. Then 1, 4, 16 and 64 clients at once, in
C (bench/ring_load.c, built by `make bench`), each of which asks for random keys
as fast as it is answered: what the processes can bear. Rounds alternate, and the
best of each side counts; the 99th percentile is that of the same round.

  lookup    who owns this key? The ring is asked (STEP) until the owner has
            answered; a Redis client computes the slot from a table it has.
  get       100 bytes from the owner. With "cached" the ring's client remembers
            ranges, as a Redis client its slots; it asks again when a node says
            that it is not the owner any more.
  block     1 MiB blocks from their owners.

What differs: the ring has no table that all must have, keeps every record on
disk in three copies, and reads it from there, and its client compares it with
its digest; Redis keeps it in memory, here without copies.
"""
import hashlib
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from ring_client import Client, address, number, receive

PROGRAM = os.environ.get("BLOOMERY", "build/bloomery")
LOAD = os.path.join(os.environ.get("BLY_BUILD", "build"), "bench", "ring_load")


class Cluster:
    def __init__(self, ports):
        self.lines = []
        for port in ports:
            s = socket.create_connection(("127.0.0.1", port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.lines.append(s)

    def slot(self, key):
        c = 0
        for x in key:
            c ^= x << 8
            for _ in range(8):
                c = (c << 1 ^ (0x1021 if c & 0x8000 else 0)) & 0xFFFF
        return c % 16384

    def ask(self, line, *words):
        text = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        line.sendall(text)
        head = b""
        while not head.endswith(b"\r\n"):
            head += line.recv(1 if len(head) < 3 else 1)
        assert head[:1] != b"-", head
        return receive(line, int(head[1:]) + 2)[:-2] if head[:1] == b"$" else head

    def get(self, key):
        return self.ask(self.line(key), b"GET", key)

    def line(self, key):
        return self.lines[self.slot(key) * len(self.lines) // 16384]


def redis_key(digest):
    """A key for Redis, to which braces mean something."""
    return digest.hex().encode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def timed(what, keys):
    times = []
    for key in keys:
        start = time.perf_counter()
        what(key)
        times.append(time.perf_counter() - start)
    return times


def start_ring(n, folder):
    """Processes, their addresses, and a client of the first one."""
    processes, addresses = [], []
    for i in range(n):
        argv = [PROGRAM, "node", "run", "--patience", "2000", f"{folder}/store{i}"]
        p = subprocess.Popen(argv + (["-j", addresses[0]] if addresses else []), stdout=subprocess.PIPE, text=True)
        addresses.append(p.stdout.readline().split()[-1])
        processes.append(p)
    ring = Client(address(addresses[0]))
    # Settled when a walk round the ring meets all.
    while True:
        seen, at, node = set(), ring.entry, 0
        try:
            while at not in seen:
                seen.add(at)
                node, at = ring.state(at, node)[1]
        except Exception:  # whatever a ring that is not one yet answers
            ring.lines.clear()
        if len(seen) == n:
            time.sleep(8)  # fingers
            return processes, addresses, ring
        time.sleep(0.5)


def start_cluster(n, folder):
    processes, ports = [], []
    for i in range(n):
        port = free_port()
        while port > 55000:
            port = free_port()
        os.mkdir(f"{folder}/redis{i}")
        processes.append(subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--save", "",
             "--dir", f"{folder}/redis{i}"], stdout=subprocess.DEVNULL))
        ports.append(port)
    time.sleep(2)
    cluster = Cluster(ports)
    for i, line in enumerate(cluster.lines):
        low = -(-16384 * i // n)
        high = -(-16384 * (i + 1) // n) - 1
        cluster.ask(line, b"CLUSTER", b"ADDSLOTSRANGE", b"%d" % low, b"%d" % high)
        cluster.ask(line, b"CLUSTER", b"SET-CONFIG-EPOCH", b"%d" % (i + 1))
        if i:
            cluster.ask(cluster.lines[0], b"CLUSTER", b"MEET", b"127.0.0.1", b"%d" % ports[i])
    for line in cluster.lines:
        while b"cluster_state:ok" not in cluster.ask(line, b"CLUSTER", b"INFO"):
            time.sleep(0.2)
    return processes, [f"127.0.0.1:{port}" for port in ports], cluster


def one_client(ring, cluster, digests, large, rounds):
    jobs = {
        "ring, lookup": (lambda d: ring.owner(number(d)), digests),
        "ring, lookup and get": (lambda d: ring.get(d, False), digests),
        "ring, get, cached": (lambda d: ring.get(d, True), digests),
        "Redis Cluster, get": (lambda d: cluster.get(redis_key(d)), digests),
        "ring, block, cached": (lambda d: ring.get(d, True), large),
        "Redis Cluster, block": (lambda d: cluster.get(redis_key(d)), large),
    }
    best = {}
    for _ in range(rounds):
        for name, (what, keys) in jobs.items():
            keys = random.Random(2).sample(keys, len(keys))
            before = ring.asked
            times = timed(what, keys)
            rate = len(keys) / sum(times)
            if name not in best or rate > best[name][0]:
                best[name] = (rate, statistics.median(times) * 1e6, sorted(times)[len(times) * 99 // 100] * 1e6,
                              (ring.asked - before) / len(keys))
    return best


def many_clients(folder, nodes, servers, digests, large, rounds, seconds):
    files = {}
    for name, keys in ("small", digests), ("large", large):
        files[name] = f"{folder}/{name}"
        with open(files[name], "wb") as out:
            out.write(b"".join(keys))
    best = {}
    for _ in range(rounds):
        for clients in 1, 4, 16, 64:
            for name, what, size in (("ring, lookup", "lookup", "small"), ("ring, lookup and get", "get", "small"),
                                     ("ring, get, cached", "cached", "small"), ("Redis Cluster, get", "redis", "small"),
                                     ("ring, block, cached", "cached", "large"),
                                     ("Redis Cluster, block", "redis", "large")):
                argv = [LOAD, what, str(clients), str(seconds), files[size], *(servers if what == "redis" else nodes)]
                done = subprocess.run(argv, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{argv}: {done.stderr}")
                found = tuple(float(word) for word in done.stdout.split())
                best[clients, name] = max(best.get((clients, name), (0,)), found)
    return best


def table(best):
    print(f"{'':24}{'per second':>12}{'median':>12}{'99 %':>12}{'asked':>8}")
    for name, (rate, median, high, asked) in best.items():
        print(f"{name:24}{rate:12.0f}{median:9.0f} us{high:9.0f} us{asked:8.2f}")


def main():
    n, nkeys, rounds, seconds = (int(a) for a in (sys.argv[1:] + ["20", "2000", "3", "2"][len(sys.argv) - 1:]))
    chance = random.Random(1)
    data = [chance.randbytes(100) for _ in range(nkeys)]
    digests = [hashlib.sha256(d).digest() for d in data]
    blocks = [chance.randbytes(1 << 20) for _ in range(20)]
    large = [hashlib.sha256(b).digest() for b in blocks]
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            started, servers, cluster = start_cluster(n, folder)
            processes += started
            started, nodes, ring = start_ring(n, folder)
            processes += started
            for d, x in zip(digests + large, data + blocks):
                ring.put(d, x)
                cluster.ask(cluster.line(redis_key(d)), b"SET", redis_key(d), x)
            print(f"{n} processes each, {nkeys} keys of 100 bytes, 20 blocks of 1 MiB, best of {rounds} rounds")
            print("\none client, in Python")
            table(one_client(ring, cluster, digests, large, rounds))
            if not os.path.exists(LOAD):
                sys.exit(f"{LOAD} is not built: make bench builds it")
            found = many_clients(folder, nodes, servers, digests, large, rounds, seconds)
            for clients in sorted({c for c, _ in found}):
                print(f"\n{clients} clients, in C")
                table({name: row for (c, name), row in found.items() if c == clients})
        finally:
            for p in processes:
                p.kill()
            for p in processes:
                p.wait()


if __name__ == "__main__":
    main()
