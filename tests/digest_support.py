"""Digests on loopback: `digest serve` and `relay`, and peers that lie."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import pytest
from conftest import PATIENCE, PROGRAM, run

PATH = "/squid-internal-periodic/store_digest"


def built_without(verb):
    return "built without" in run("digest", verb, "127.0.0.1:1").err


needs_curl = pytest.mark.skipif(built_without("get"), reason="no libcurl")
needs_server = pytest.mark.skipif(built_without("serve"),
                                  reason="no libmicrohttpd")


class Peer:
    """Answers every request with these bytes, then closes. One at a time."""

    def __init__(self, answer, then=None):
        self.answer, self.then, self.nasked = answer, then, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            with s:
                try:
                    s.recv(65536)
                    self.nasked += 1
                    s.sendall(self.answer)
                    if self.then:
                        self.then(s)
                except OSError:
                    pass

    def __enter__(self):
        return f"127.0.0.1:{self.port}"

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept() too
        self.listener.close()

    def __exit__(self, *args):
        if self.listener.fileno() >= 0:
            self.close()


def block(capacity=10, bits=8, mask=10, version=5, required=3, k=4):
    return struct.pack(">HHIIIIBB", version, required, capacity, 1, 0, mask,
                       bits, k).ljust(128, b"\0")


def answer(body, head="HTTP/1.1 200 OK"):
    return f"{head}\r\nConnection: close\r\n\r\n".encode() + body


def drip(s):
    while True:
        s.sendall(b"\0")
        time.sleep(0.1)


def pour(s):
    while True:
        s.sendall(bytes(65536))


class Server:
    """`digest serve` or `relay`; what it said in the end is in .told."""

    def __init__(self, *argv, program=PROGRAM):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "digest", *map(str, argv), "--json", "--listen",
             "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=self.errors)
        line = self.process.stdout.readline()
        assert line, self.said()
        self.url, self.port = map(json.loads(line).get, ["url", "port"])

    def __enter__(self):
        return self

    def said(self):
        """Standard error so far."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def connect(self, source="127.0.0.1", timeout=PATIENCE):
        return socket.create_connection(("127.0.0.1", self.port), timeout,
                                        (source, 0))

    def ask(self, request, source="127.0.0.1", **headers):
        """What arrives, read by read."""
        pieces = []
        with self.connect(source) as s:
            s.sendall(f"{request} HTTP/1.1\r\nHost: x\r\n".encode() + b"".join(
                f"{k.replace('_', '-')}: {v}\r\n".encode()
                for k, v in headers.items()) + b"Connection: close\r\n\r\n")
            while data := s.recv(1 << 20):
                pieces.append(data)
        return pieces

    def digest(self, source="127.0.0.1"):
        """The digest that is handed out; None where there is none."""
        head, _, body = b"".join(self.ask(f"GET {PATH}", source)).partition(
            b"\r\n\r\n")
        return body if head.startswith(b"HTTP/1.1 200 ") else None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident(self):
        """KiB in memory."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out = self.process.communicate(timeout=PATIENCE)[0]
        self.err = self.said()
        self.errors.close()
        assert self.process.returncode == 0, self.err
        self.told = json.loads(out)

    def __exit__(self, *args):
        if self.process.poll() is None:
            self.stop()


@pytest.fixture
def digest_file(ok):
    ok("digest", "build", "-o", "d", stdin="".join(
        f"http://a.test/{i}\n" for i in range(600)))
    return ok.path / "d"
