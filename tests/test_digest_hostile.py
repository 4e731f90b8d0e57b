"""bloomery digest serve, relay and get among clients and peers that mean harm:
slow ones, endless ones, liars, and many of them."""
import calendar
import os
import random
import resource
import signal
import socket
import threading
import time

import pytest
from conftest import BUILD, PROGRAM
from digest_support import (  # noqa: F401: digest_file is a fixture
    PATH, Peer, Server, answer, block, digest_file, needs_curl, needs_server,
    pour)
from squid_support import wait_until

SMALL = block() + bytes(10)
PAST = "HTTP/1.1 200 OK\r\nExpires: Thu, 01 Jan 1998 00:00:00 GMT"

pytestmark = needs_server


@pytest.fixture(params=["plain", "asan", "tsan"])
def program(request):
    """The command, and as the sanitizers build it: a finding is an exit status
    that Server.stop() does not take."""
    if request.param == "plain":
        return PROGRAM
    found = BUILD / request.param / "bloomery"
    if not found.exists():
        pytest.skip(f"no {found}")
    return found


# --------------------------------------------------------------------- relay

class Hanging:
    """A peer whose answers after the first stop within the digest."""

    def __init__(self, body):
        self.body, self.ended, self.nasked = body, threading.Event(), 0

    def __enter__(self):
        self.peer = Peer(b"", self.then)
        return self.peer.__enter__()

    def then(self, s):
        self.nasked += 1
        first = self.nasked == 1
        s.sendall(answer(self.body if first else self.body[:200], PAST))
        if not first:
            self.ended.wait()

    def __exit__(self, *args):
        self.ended.set()
        self.peer.__exit__()


@needs_curl
def test_a_slow_peer_delays_nobody(digest_file, program):
    body = digest_file.read_bytes()
    hanging = Hanging(body)
    with hanging as where, Server("relay", where, "--refresh", 1, "--timeout",
                                  86400, program=program) as s:
        assert s.digest() == body
        wait_until(lambda: hanging.nasked == 2)
        for _ in range(5):
            assert s.digest() == body
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(s.digest()))
                   for _ in range(10)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert answers == [body] * 10
        assert hanging.nasked == 2  # one fetch at a time, whoever asks
        # The end comes now, not when the fetch is over.
        s.stop()
        assert s.told["digests"] == 16


@needs_curl
def test_the_first_fetch_may_hang(program):
    """Nobody waits for it without end, and neither does SIGTERM."""
    hanging = Hanging(SMALL)
    hanging.nasked = 1
    with hanging as where, Server("relay", where, "--timeout", 86400,
                                  program=program) as s:
        assert s.digest() is None
        s.stop()


def expires(head):
    line = next(x for x in head.split(b"\r\n") if x.startswith(b"Expires: "))
    return calendar.timegm(time.strptime(
        line[9:].decode(), "%a, %d %b %Y %H:%M:%S GMT"))


@needs_curl
@pytest.mark.parametrize("said,least,most", [
    (b"Thu, 01 Jan 1998 00:00:00 GMT", 3600, 3600),
    (b"0", 3600, 3600), (b"nonsense", 3600, 3600),
    (b"Thu, 01 Jan 1970 00:00:00 GMT", 3600, 3600),
    (b"Fri, 31 Dec 9999 23:59:59 GMT", 86400, 86400)])
def test_expires_is_bounded(said, least, most):
    """In the past it does not mean a fetch for every answer, in the far future
    not never; clients are told when there will be a newer one."""
    peer = Peer(answer(SMALL, "HTTP/1.1 200 OK\r\nExpires: " + said.decode()))
    with peer as where:
        before = int(time.time())
        with Server("relay", where, "--refresh", 3600, "--pause", 1) as s:
            for _ in range(30):
                head, _, body = b"".join(s.ask(f"GET {PATH}")).partition(
                    b"\r\n\r\n")
                assert body == SMALL
                assert before + least <= expires(head) <= time.time() + most
            assert peer.nasked == 1


@needs_curl
def test_a_peer_that_fails_is_told_of_once(program):
    """It is tried again less and less often, and taken when it is there."""
    peer = Peer(answer(b"no\x1b[31m digest"))
    with peer as where, Server("relay", where, program=program) as s:
        wait_until(lambda: peer.nasked >= 3)
        assert s.digest() is None
        peer.answer = answer(SMALL)
        wait_until(lambda: s.digest() == SMALL)
        s.stop()
        first, then = s.err.splitlines()
        assert where in first and "tried again" in first
        assert "there is no digest here" in first
        assert "there again" in then
        assert "\x1b" not in s.err


SMALL_CHUNK = b"%x\r\n" % len(SMALL) + SMALL + b"\r\n"
CHUNKS = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"


def send_for_ever(piece):
    def send(s):
        while True:
            s.sendall(piece)
    return send


@needs_curl
@pytest.mark.parametrize("head,body,then,says", [
    # headers and interim answers without end
    (b"HTTP/1.1 200 OK\r\n", b"", send_for_ever(b"X: " + b"y" * 999 + b"\r\n"),
     "headers do not end"),
    (b"HTTP/1.1 200 OK\r\nX: ", b"", send_for_ever(b"y" * 999), ""),
    (b"", b"", send_for_ever(b"HTTP/1.1 100 Continue\r\n\r\n"),
     "headers do not end"),
    # chunks: endless, enormous, negative, with endless extensions or trailers
    (answer(b"", CHUNKS), SMALL_CHUNK,
     send_for_ever(b"1\r\nx\r\n"), "control block"),
    (answer(b"", CHUNKS), b"ffffffffffffffff\r\n", pour, ""),
    (answer(b"", CHUNKS), b"-1\r\n", pour, ""),
    (answer(b"", CHUNKS), SMALL_CHUNK + b"0\r\n",
     send_for_ever(b"X: " + b"y" * 999 + b"\r\n"), ""),
    # Content-Length that says more, less, far too much, and nonsense
    (answer(b"", "HTTP/1.1 200 OK\r\nContent-Length: 200"), SMALL, None, ""),
    (answer(b"", "HTTP/1.1 200 OK\r\nContent-Length: 130"), SMALL, None, ""),
    (answer(b"", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999"), SMALL,
     None, "--max-size"),
    (answer(b"", "HTTP/1.1 200 OK\r\nContent-Length: 9" + 30 * "9"), SMALL,
     None, ""),
    # what would be unpacked
    (answer(b"", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip"), b"\x1f\x8b",
     pour, "compressed"),
    # elsewhere
    (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", b"", None,
     "302"),
    (b"HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\n\r\n", b"", None,
     "301"),
    # other protocols, or none
    (b"", SMALL, pour, ""), (b"\0" * 4096, b"", pour, ""),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b"", None, "204"),
    (b"HTTP/1.1 206 Partial Content\r\n\r\n", SMALL, None, "206"),
    # a control block that promises 256 MiB and comes alone
    (answer(b""), block(capacity=2**28, bits=7, mask=7 * 2**25), None, "follow"),
])
def test_peers_that_lie(trouble, head, body, then, says):
    with Peer(head + body, then) as peer:
        trouble("digest", "get", peer, "-o", "d", "--timeout", 60, "--max-size",
                "1MiB", says=[peer, says])
    assert not (trouble.path / "d").exists()


# --------------------------------------------------------------------- files

def other(n, byte):
    """A digest of n bytes of mask, all alike."""
    return block(capacity=n, bits=8, mask=n) + bytes([byte]) * n


def replace(path, body):
    new = path.with_name("new")
    new.write_bytes(body)
    new.rename(path)


def test_a_failed_read_is_tried_again(digest_file, program):
    """The new file cannot be opened, for want of descriptors; later it can,
    and nothing about the file has changed."""
    with Server("serve", digest_file, "--pause", 1, "--request-time", 600,
                program=program) as s:
        pid, before = s.process.pid, s.descriptors()
        old = s.digest()
        assert old == digest_file.read_bytes()
        # Nobody can come in without a descriptor: these are in already. (That
        # first connection must be gone, or it would count as one of them.)
        wait_until(lambda: s.descriptors() <= before)
        waiting = [s.connect() for _ in range(5)]
        wait_until(lambda: s.descriptors() >= before + 5)
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        replace(digest_file, SMALL)
        for c in waiting:
            with c, c.makefile("rb") as f:
                c.sendall(f"GET {PATH} HTTP/1.0\r\n\r\n".encode())
                assert f.read().endswith(old)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        wait_until(lambda: s.digest() == SMALL)
        s.stop()
        first, then = s.err.splitlines()
        assert "oo many open files" in first and "still handed out" in first
        assert "there again" in then


def test_half_a_file_is_never_served(digest_file, program):
    """Written in place, cut off, grown, replaced: an answer is a digest that
    was once there as a whole."""
    old, new = other(100000, 0x11), other(100000, 0x22)
    digest_file.write_bytes(old)
    with Server("serve", digest_file, "--pause", 1, program=program) as s:
        for _ in range(2):
            with open(digest_file, "r+b", buffering=0) as f:
                begin = time.monotonic()
                f.write(new[:50000])
                for _ in range(5):
                    got = s.digest()
                    if time.monotonic() - begin < 1:  # it may look done then
                        assert got == old
                f.write(new[50000:])
            wait_until(lambda: s.digest() == new)
            old, new = new, old
        # A new file that grows into its place.
        digest_file.unlink()
        assert s.digest() == old
        with open(digest_file, "wb", buffering=0) as f:
            for at in range(0, len(new), 20000):
                assert s.digest() == old
                f.write(new[at:at + 20000])
        wait_until(lambda: s.digest() == new)
        # Renamed into place: at once, though size and time are the same.
        twin = digest_file.with_name("twin")
        twin.write_bytes(old)
        was = digest_file.stat()
        os.utime(twin, ns=(was.st_atime_ns, was.st_mtime_ns))
        twin.rename(digest_file)
        wait_until(lambda: s.digest() == old)


def test_what_is_no_file_does_not_hang(digest_file, program):
    old = digest_file.read_bytes()
    with Server("serve", digest_file, "--pause", 1, program=program) as s:
        digest_file.rename(digest_file.with_name("aside"))
        os.mkfifo(digest_file)
        assert s.digest() == old
        digest_file.unlink()
        digest_file.mkdir()
        assert s.digest() == old
        digest_file.rmdir()
        for _ in range(20):
            assert s.digest() == old
        digest_file.with_name("aside").rename(digest_file)
        assert s.digest() == old
        replace(digest_file, SMALL)
        wait_until(lambda: s.digest() == SMALL)
        s.stop()
        assert 1 < len(s.err.splitlines()) <= 5, s.err


# -------------------------------------------------------------- slow clients

HALF = f"GET {PATH} HTTP/1.1\r\nHost: x\r\n".encode()


class Slow:
    """Connections that never finish a request, and go on writing."""

    def __init__(self, server, n, addresses):
        self.ended = threading.Event()
        self.sockets = []
        for i in range(n):
            c = server.connect(addresses[i % len(addresses)])
            c.sendall(HALF)
            c.setblocking(False)
            self.sockets.append(c)
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def write(self):
        while not self.ended.wait(0.2):
            for c in self.sockets:
                try:
                    c.send(b"X")
                except OSError:
                    pass

    def alive(self):
        n = 0
        for c in self.sockets:
            try:
                n += c.recv(1) != b""
            except BlockingIOError:
                n += 1
            except OSError:
                pass
        return n

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.ended.set()
        self.thread.join()
        for c in self.sockets:
            c.close()


def test_slow_connections_shut_nobody_out(digest_file, program):
    """200 from one address, then 300 from twenty, all of them writing; others
    are served, and so are those who share an address with them."""
    body = digest_file.read_bytes()
    many = [f"127.0.0.{i}" for i in range(2, 22)]
    with Server("serve", digest_file, "--pause", 1, "--request-time", 86400,
                program=program) as s:
        for n, addresses in [(200, ["127.0.0.1"]), (300, many)]:
            with Slow(s, n, addresses) as slow:
                for source in ["127.0.0.1", "127.0.0.9", "127.0.0.99"]:
                    for _ in range(3):
                        assert s.digest(source) == body
                # They have what the limits give them, and no more.
                most = 32 if len(addresses) == 1 else 200
                wait_until(lambda: slow.alive() <= most)
                assert slow.alive() > 0
        s.stop()
        assert "make way" in s.err


def test_a_request_has_its_time(digest_file, program):
    """However many bytes come meanwhile."""
    with Server("serve", digest_file, "--request-time", 1, "--pause", 1,
                program=program) as s:
        with Slow(s, 10, ["127.0.0.1"]) as slow:
            wait_until(lambda: slow.alive() == 0)
        s.stop()
        assert "10 too slow" in s.err
    with Server("serve", digest_file, program=program) as s:
        with s.connect() as c:  # nor is there time for a second request
            c.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
            with c.makefile("rb") as f:
                assert f.read().count(b"HTTP/1.1 404 ") == 1


def test_an_answer_has_its_time(digest_file, program):
    """Clients that ask and do not read: more of them than may be there at
    once, and then all are cut off."""
    body = other(1 << 23, 0)  # more than sockets hold
    digest_file.write_bytes(body)
    with Server("serve", digest_file, "--answer-time", 86400, "--pause", 1,
                "--connections", 20, "--per-address", 10,
                program=program) as s:
        readers = [s.connect(f"127.0.0.{2 + i % 4}") for i in range(40)]
        for c in readers:
            c.sendall(HALF + b"\r\n")
        assert s.digest() == body
        for c in readers:
            c.close()
    with Server("serve", digest_file, "--answer-time", 1, "--pause", 1,
                program=program) as s:
        before = s.descriptors()
        readers = [s.connect() for i in range(10)]
        for c in readers:
            c.sendall(HALF + b"\r\n")
        wait_until(lambda: "too slow" in s.said())
        wait_until(lambda: s.descriptors() <= before)
        for c in readers:
            c.close()
        s.stop()
        assert "10 too slow" in s.err


# ------------------------------------------------------------ wild requests

def wild_requests():
    """Bytes that a client may send; none of them is a request for more than a
    page."""
    get = f"GET {PATH} HTTP/1.1\r\nHost: x\r\n".encode()
    yield b"\r\n" * 5000
    yield bytes(range(256)) * 100
    yield b"GET " + b"/" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"GET " + b"a" * 1000000
    yield get + b"X: " + b"y" * 1000000 + b"\r\n\r\n"
    yield get + b"X: y\r\n" * 200000 + b"\r\n"
    yield get + b"Content-Length: -1\r\n\r\n"
    yield get + b"Content-Length: 99999999999999999999999\r\n\r\n"
    yield get + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" \
        + b"x" * 100000
    yield b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n" \
        + b"x" * 1000000
    yield b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" \
        b"Content-Length: 9999999\r\n\r\n"
    yield b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" \
        + b"1\r\nx\r\n" * 100000
    yield b"CONNECT a.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"GET / HTTP/0.9\r\n\r\n"
    yield b"GET /\r\n"
    yield b"GET ?\x1b[31m%00%zz HTTP/1.1\r\nHost: \x1b]0;x\x07\r\n\r\n"
    yield get + b"Range: bytes=0-1,5-9,-1\r\nIf-None-Match: *\r\n\r\n"
    yield (get + b"\r\n") * 20  # one after the other, unanswered
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 500


def throw(server, data, read=True):
    """Send it, read what comes, or leave at once."""
    try:
        with server.connect(timeout=10) as c:
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
            while read and c.recv(1 << 16):
                pass
    except OSError:  # closed in the middle, as is right
        pass


def test_wild_requests(digest_file, program):
    with Server("serve", digest_file, "--pause", 1, program=program) as s:
        before = s.descriptors()
        for data in wild_requests():
            throw(s, data)
            throw(s, data, read=False)
            throw(s, data[:len(data) // 2], read=False)
            assert s.digest() == digest_file.read_bytes(), data[:80]
        wait_until(lambda: s.descriptors() <= before)
        s.stop()
        assert "\x1b" not in s.err


# ---------------------------------------------------------------------- load

def load(server, n, each, seed):
    """n requests in eight threads, of which each(draw) says what is sent and
    whether a digest must come back."""
    wrong, left = [], iter(range(n))
    lock = threading.Lock()

    def work(k):
        draw = random.Random(seed * 1000 + k)
        source = f"127.0.0.{10 + k}"
        while not wrong:
            with lock:
                if next(left, None) is None:
                    return
            try:
                each(draw, source)
            except Exception as e:  # noqa: BLE001: told below
                wrong.append(repr(e))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]


@needs_curl
@pytest.mark.parametrize("verb", ["serve", "relay"])
def test_load_leaves_nothing_behind(digest_file, verb):
    """Requests of all kinds while the digest changes and slow ones hold on:
    6,000 of them, or with BLY_FULL=1 75,000 for each verb. Neither descriptors
    nor memory grow."""
    total = 75000 if os.environ.get("BLY_FULL") else 6000
    bodies = [other(5000, 0x11), other(7000, 0x22)]
    wild = [d[:3000] for d in wild_requests()]
    replace(digest_file, bodies[0])
    peer = Peer(answer(bodies[0], PAST))
    ended = threading.Event()

    def change():
        for i in range(1, 1 << 30):
            if ended.wait(0.3):
                return
            body = bodies[i % 2] if i % 5 else b"nonsense"
            peer.answer = answer(body, PAST)
            replace(digest_file, body)
    with peer as where, Server(
            verb, digest_file if verb == "serve" else where, "--pause", 1,
            "--request-time", 86400,
            *(["--refresh", 1] if verb == "relay" else [])) as s:
        wait_until(lambda: s.digest() in bodies)

        def each(draw, source):
            kind = draw.random()
            if kind < 0.8:
                assert s.digest(source) in bodies
            elif kind < 0.9:
                throw(s, draw.choice(wild), draw.random() < 0.5)
            else:
                c = s.connect(source)
                c.sendall(HALF[:draw.randrange(len(HALF))])
                c.close()
        changer = threading.Thread(target=change)
        changer.start()
        begin = time.monotonic()
        try:
            with Slow(s, 40, [f"127.0.1.{i}" for i in range(1, 9)]):
                load(s, total // 5, each, 1)
                first = s.resident()
                load(s, total - total // 5, each, 2)
                last = s.resident()
        finally:
            ended.set()
            changer.join()
        seconds = time.monotonic() - begin
        wait_until(lambda: s.descriptors() <= 12)
        print(f"{verb}: {total} requests in {seconds:.0f} s, {first} KiB "
              f"resident after a fifth of them, {last} KiB at the end, "
              f"{s.descriptors()} descriptors")
        assert last < first + 8192
        s.stop(signal.SIGINT)
        assert s.told["digests"] >= total // 2
