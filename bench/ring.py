#!/usr/bin/python3
"""Lookups and transfers on a ring of processes, beside Redis Cluster.

    bench/ring.py [NODES] [KEYS] [ROUNDS]       20 nodes, 2000 keys, 3 rounds

Both have NODES processes on loopback and one client, in Python on plain
sockets, which asks for the same keys in the same random order, one after
another: what is compared is what a client waits for, not what a machine full of
clients could get. Rounds alternate, and the best of each side counts.

  lookup    who owns this key? The ring is asked (STEP) until the owner has
            answered; a Redis client computes the slot from a table it has.
  get       100 bytes from the owner. With "cached" the ring's client remembers
            ranges, as a Redis client its slots; it asks again when a node says
            that it is not the owner any more.
  block     1 MiB blocks from their owners.

What differs: the ring has no table that all must have, keeps every record on
disk in three copies, and reads it from there; Redis keeps it in memory, here
without copies.
"""
import hashlib
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("BLOOMERY", "build/bloomery")
PING, STATE, NOTIFY, STEP, GET, PUT = 1, 2, 3, 4, 5, 6
OWNER, CANDIDATE, NEARER, BACK = 1, 2, 3, 4

TABLE = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


def crc32c(data):
    c = 0xFFFFFFFF
    for x in data:
        c = c >> 8 ^ TABLE[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF


def ring_id(name="ring", r=8, copies=3):
    text = f"{name} bits=64 sha256 r={r} R={copies}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def receive(s, n):
    parts = []
    while n:
        part = s.recv(n)
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


class Ring:
    def __init__(self, entry):
        self.entry, self.lines, self.ranges, self.asked = entry, {}, [], 0
        text = b"%s:%d#0" % (entry[0].encode(), entry[1])
        self.first = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")

    def ask(self, at, kind, body):
        if at not in self.lines:
            s = socket.create_connection(at)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.sendall(b"blyring0" + bytes(32))
            receive(s, 40)
            self.lines[at] = s
        s = self.lines[at]
        frame = struct.pack("<IBBHIQ", len(body) + 20, 1, kind, 0, 1, ring_id()) + body
        s.sendall(frame + struct.pack("<I", crc32c(frame)))
        n, = struct.unpack("<I", receive(s, 4))
        rest = receive(s, n)
        self.asked += 1
        flags, = struct.unpack_from("<H", rest, 2)
        return flags, rest[16:-4]

    def owner(self, key, cached=False):
        if cached:
            for a, b, at, node in self.ranges:
                if (a < key <= b) if a < b else (key > a or key <= b):
                    return at, node
        at, node, named = self.entry, self.first, 0
        for _ in range(200):
            flags, body = self.ask(at, STEP, struct.pack("<QBBQBB", node, 0, named, key, 0, 0))
            assert not flags & 2, body
            peers = []
            for i in range(body[1]):
                one = body[2 + 37 * i:39 + 37 * i]
                id, _, _, host, port, _ = struct.unpack("<QHB16sHQ", one)
                peers.append((id, (socket.inet_ntoa(host[:4]), port)))
            if body[0] == OWNER:
                if cached:
                    self.ranges.append((peers[0][0], node, at, node))
                return at, node
            node, at = peers[0]
            named = 0 if body[0] == NEARER else 2
        raise RuntimeError("no owner")

    def get(self, digest, cached):
        at, node = self.owner(int.from_bytes(digest[:8], "big"), cached)
        flags, body = self.ask(at, GET, struct.pack("<Q", node) + digest + b"\1")
        assert not flags & 2, body
        return body[57:]

    def put(self, digest, data):
        at, node = self.owner(int.from_bytes(digest[:8], "big"))
        flags, body = self.ask(at, PUT, struct.pack("<QB", node, 0) + digest + struct.pack("<QQQB", 1, 0, 0, 0) + data)
        assert not flags & 2, body


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
    processes, first = [], None
    for i in range(n):
        argv = [PROGRAM, "node", "run", "--patience", "2000", f"{folder}/store{i}"]
        p = subprocess.Popen(argv + (["-j", first] if first else []), stdout=subprocess.PIPE, text=True)
        address = p.stdout.readline().split()[-1]
        first = first or address
        processes.append(p)
    host, port = first.split(":")
    ring = Ring((host, int(port)))
    # Settled when a walk round the ring meets all.
    while True:
        seen, at, node = set(), ring.entry, 0
        try:
            while at not in seen:
                seen.add(at)
                flags, body = ring.ask(at, STATE, struct.pack("<QBBQBB", node, 0, 0, 0, 0, 0))
                node, _, _, host, port, _ = struct.unpack("<QHB16sHQ", body[2 + 37:2 + 74])
                at = (socket.inet_ntoa(host[:4]), port)
        except (AssertionError, struct.error, OSError):
            pass
        if len(seen) == n:
            time.sleep(8)  # fingers
            return processes, ring
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
    return processes, cluster


def main():
    n, nkeys, rounds = (int(a) for a in (sys.argv[1:] + ["20", "2000", "3"][len(sys.argv) - 1:]))
    chance = random.Random(1)
    data = [chance.randbytes(100) for _ in range(nkeys)]
    digests = [hashlib.sha256(d).digest() for d in data]
    blocks = [chance.randbytes(1 << 20) for _ in range(20)]
    large = [hashlib.sha256(b).digest() for b in blocks]
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            started, cluster = start_cluster(n, folder)
            processes += started
            started, ring = start_ring(n, folder)
            processes += started
            for d, x in zip(digests + large, data + blocks):
                ring.put(d, x)
                cluster.ask(cluster.line(redis_key(d)), b"SET", redis_key(d), x)
            jobs = {
                "ring, lookup": (lambda d: ring.owner(int.from_bytes(d[:8], "big")), digests),
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
                        best[name] = (rate, statistics.median(times), sorted(times)[len(times) * 99 // 100],
                                      (ring.asked - before) / len(keys))
            print(f"{n} processes each, {nkeys} keys of 100 bytes, 20 blocks of 1 MiB, best of {rounds} rounds")
            print(f"{'':24}{'per second':>12}{'median':>10}{'99 %':>10}{'asked':>8}")
            for name, (rate, median, high, asked) in best.items():
                print(f"{name:24}{rate:12.0f}{median * 1e6:7.0f} us{high * 1e6:7.0f} us{asked:8.2f}")
        finally:
            for p in processes:
                p.kill()
            for p in processes:
                p.wait()


if __name__ == "__main__":
    main()
