"""`digest follow` and `digest peers`, and what a Squid writes about its cache."""
import hashlib
import json
import signal
import socket
import struct
import subprocess
import tempfile

from conftest import GRACE, PROGRAM
from digest_support import PATH
from squid_support import wait_until
from wire_support import crc32c


def key(url):
    return hashlib.md5(b"\1" + url.encode("latin-1")).digest()


def url(i):
    return f"http://a.test/{i}"


def index_head():
    return (bytes([3, 0, 0, 0]) + struct.pack("<II", 2, 72)).ljust(72, b"\0")


def record(came, number, k):
    """Of a swap.state."""
    start = bytes([1 if came else 2, 0, 0, 0]) + struct.pack("<I", number)
    return start.ljust(52, b"\0") + k.ljust(20, b"\0")


def line(came, number, k, folder=0, when="1795116114.404"):
    """Of a store.log."""
    return (f"{when} {'SWAPOUT' if came else 'RELEASE'} {folder:02d} "
            f"{number:08X} {k.hex().upper()}  200 1795116114        -1 "
            f"1795202514 text/html 8/8 GET http://a.test/{number}\n").encode()


def index(keys):
    return index_head() + b"".join(
        record(True, i, k) for i, k in enumerate(keys))


def shape(digest):
    """Capacity, entries and bits per entry."""
    return *struct.unpack(">II", digest[4:12]), digest[20]


def mask(keys, n):
    """The bits of a digest of n bytes, a second time."""
    bits = bytearray(n)
    for k in keys:
        for word in struct.unpack(">4I", k):
            bits[word % (8 * n) // 8] |= 1 << word % (8 * n) % 8
    return bytes(bits)


def is_digest_of(digest, keys):
    keys = list(keys)
    return shape(digest)[1] == len(keys) and \
        digest[128:] == mask(keys, len(digest) - 128)


class Program:
    """One that runs until it is ended; its last lines are in .told."""

    def __init__(self, *argv, program=PROGRAM, lines=1):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "digest", *map(str, argv), "--json"],
            stdout=subprocess.PIPE, stderr=self.errors)
        self.first = []
        for _ in range(lines):
            text = self.process.stdout.readline()
            assert text, self.said()
            self.first.append(json.loads(text))

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def resident(self):
        """KiB in memory."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out = self.process.communicate(timeout=GRACE)[0]
        self.err = self.said()
        self.errors.close()
        assert self.process.returncode == 0, self.err
        self.told = [json.loads(x) for x in out.splitlines()]
        return self.told

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.poll() is None:
            self.stop()


class Follow(Program):
    def __init__(self, *argv, pause=0, **kw):
        super().__init__("follow", *argv, "--listen", "127.0.0.1:0",
                         "--pause", pause, lines=2, **kw)
        self.start, self.serving = self.first
        self.tells = self.start["updates"]

    def digest(self):
        with socket.create_connection(("127.0.0.1",
                                       self.serving["port"])) as s:
            s.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = b""
            while data := s.recv(1 << 20):
                answer += data
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return body

    def becomes(self, keys):
        """Wait until its digest is that of these keys."""
        keys = list(keys)
        wait_until(lambda: is_digest_of(self.digest(), keys), every=0.02)

    def stop(self):
        super().stop()
        self.told = self.told[-1]
        return self.told


class Peers(Program):
    """`digest peers --icp` for peers by name: where they tell."""

    def __init__(self, peers, *argv, **kw):
        self.names = list(peers)
        super().__init__(
            "peers", *(x for n, at in peers.items()
                       for x in ("--peer", f"{n}={at}",
                                 "--icp", "127.0.0.1:0")), *argv,
            lines=len(peers), **kw)
        self.ports = {n: int(x["icp"].rsplit(":", 1)[1])
                      for n, x in zip(self.names, self.first)}
        self.line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def ask(self, name, text):
        """May the peer have it? By ICP."""
        body = bytes(4) + text.encode("latin-1") + b"\0"
        self.line.sendto(struct.pack(">BBHIIII", 1, 2, 20 + len(body), 7,
                                     0, 0, 0) + body,
                         ("127.0.0.1", self.ports[name]))
        answer = self.line.recv(65536)
        opcode, version, n, request = struct.unpack(">BBHI", answer[:8])
        assert version == 2 and request == 7 and n == len(answer)
        assert answer[20:] == text.encode("latin-1") + b"\0"
        return {2: True, 3: False}[opcode]

    def has(self, name, texts):
        return [x for x in texts if self.ask(name, x)]

    def becomes(self, name, there, gone=()):
        """Wait until it says so of all of these; of those that are gone, a few
        may look as if they were there."""
        there, gone = list(there), list(gone)
        wait_until(lambda: len(self.has(name, there)) == len(there) and
                   len(self.has(name, gone)) <= len(gone) * 0.05, every=0.02)

    def stop(self):
        super().stop()
        self.line.close()
        self.told = dict(zip(self.names, self.told))
        return self.told


# ------------------------------------------------------- what is told, by hand

NEWS = b"blynews"
ASK, PART, UPDATE, ALIVE = 1, 2, 3, 4


def update(life, version, keys=None, start=0, *, capacity=1000, bits=11,
           kind=None, count=None, total=None, rice=255, flips=0, payload=None):
    """A whole digest, its bits as they are; or whatever else is said."""
    n = (capacity * bits + 7) // 8
    body = mask(keys or [], n) if payload is None else payload
    return struct.pack(
        "<BQQQIIIBBI", kind or (2 if start else 1), life, start, version,
        capacity, len(keys or []) if count is None else count,
        crc32c(body) if total is None else total, bits, rice, flips) + (
            body if payload is None else payload)
