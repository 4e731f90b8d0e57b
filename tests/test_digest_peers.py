"""digest follow --tell and digest peers: what is told, lost, made up for,
sealed, and lied about."""
import os
import random
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import BUILD, PATIENCE, PROGRAM, free_port, run
from digest_support import needs_server
from follow_support import (
    ALIVE, ASK, NEWS, PART, UPDATE, Follow, Peers, Program, index, key, mask,
    record, update, url)
from squid_support import wait_until
from wire_support import crc32c, frame, greeting, take, told

pytestmark = needs_server
URLS = [url(i) for i in range(4000)]
KEYS = [key(u) for u in URLS]


def built(name):
    """The command as a sanitizer builds it: a finding is an exit status that
    stop() does not take."""
    found = BUILD / name / "bloomery"
    if not found.exists():
        pytest.skip(f"no {found}")
    return found


@pytest.fixture(params=["plain", "asan"])
def program(request):
    """For what reads bytes that anybody may have written."""
    return PROGRAM if request.param == "plain" else built(request.param)


@pytest.fixture(params=["plain", "tsan"])
def threads(request):
    """For what several threads do."""
    return PROGRAM if request.param == "plain" else built(request.param)


@pytest.fixture
def state(tmp_path):
    path = tmp_path / "swap.state"
    path.write_bytes(index(KEYS[:2000]))
    return path


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef" * 4)
    return path


def churn(path, start, n):
    """n objects go, and n others come."""
    with open(path, "ab") as f:
        f.write(b"".join(record(False, i, KEYS[i])
                         for i in range(start, start + n)))
        f.write(b"".join(record(True, i, KEYS[2000 + i])
                         for i in range(start, start + n)))


# ------------------------------------------------------------------- deltas

@pytest.mark.parametrize("sealed", [False, True])
def test_peers_are_told(state, secret, threads, sealed):
    more = ["-K", secret] if sealed else []
    with Follow(state, "--tell", "127.0.0.1:0", *more, program=threads) as f, \
            Peers({"west": f.tells}, *more, program=threads) as p:
        p.becomes("west", URLS[:2000], URLS[2000:])
        for i in range(0, 400, 40):  # 2 %
            churn(state, i, 40)
            p.becomes("west", URLS[2000 + i:2040 + i])
        p.becomes("west", URLS[400:2400], [*URLS[:400], *URLS[2400:]])
        heard = p.stop()["west"]
        sent = f.stop()
    assert heard["refused"] == 0 and heard["wholes"] == sent["wholes"] == 1
    assert heard["deltas"] == sent["deltas"] == 10
    # 24 bytes come before the first record that is sealed.
    assert heard["bytes"] - 24 * sealed == \
        sent["whole_bytes"] + sent["delta_bytes"]
    # A tenth of what whole digests would have taken, which is the promise.
    assert 10 * sent["delta_bytes"] < sent["would_be"]


def test_the_threshold_and_the_time(state):
    with Follow(state, "--tell", "127.0.0.1:0", "--threshold", "10%") as f, \
            Follow(state, "--tell", "127.0.0.1:0", "--threshold", "99%",
                   "--every", 1) as g, \
            Peers({"f": f.tells, "g": g.tells}) as p:
        churn(state, 0, 150)
        p.becomes("g", URLS[2000:2150], URLS[:150])
        f.becomes(KEYS[150:2150])  # it knows, but has not told
        assert len(p.has("f", URLS[2000:2150])) < 20
        churn(state, 150, 60)
        p.becomes("f", URLS[2000:2210], URLS[:210])
        p.becomes("g", URLS[2000:2210])
        p.stop()
        assert f.stop()["versions"] == 2 and g.stop()["versions"] >= 3


def test_another_shape_is_told_whole(state):
    with Follow(state, "--tell", "127.0.0.1:0") as f, \
            Peers({"west": f.tells}) as p:
        with open(state, "ab") as out:
            out.write(b"".join(record(True, i, KEYS[i])
                               for i in range(2000, 4000)))
        p.becomes("west", URLS)
        assert p.stop()["west"]["wholes"] == 2


def test_more_flips_than_bits_are_worth(state):
    """A delta that would be longer than the digest is not sent."""
    with Follow(state, "--tell", "127.0.0.1:0") as f, \
            Peers({"west": f.tells}) as p:
        p.becomes("west", URLS[:2000])
        churn(state, 0, 2000)
        p.becomes("west", URLS[2000:], URLS[:2000])
        p.stop()
        sent = f.stop()
    assert sent["wholes"] == 2 and sent["deltas"] == 0
    assert sent["whole_bytes"] <= sent["would_be"] + 200


def test_both_sides_may_start_again(state, threads):
    """Whoever was away gets what it missed: by deltas if it was there before,
    and the digest of a new life whole."""
    tell = f"127.0.0.1:{free_port()}"
    f = Follow(state, "--tell", tell, program=threads)
    with Peers({"west": tell}, program=threads) as p:
        p.becomes("west", URLS[:2000])
        for life in range(2):
            f.kill()
            churn(state, 50 * life, 50)
            f = Follow(state, "--tell", tell, program=threads)
            p.becomes("west", URLS[2000:2050 + 50 * life])
        with Peers({"west": tell}, program=threads) as q:
            q.becomes("west", URLS[100:2100])
        heard = p.stop()["west"]
        assert heard["wholes"] == 3 and heard["refused"] == 0
    f.stop()


class Cutter:
    """Passes bytes on to a server, and cuts each connection after some of
    them."""

    def __init__(self, to, after):
        self.to, self.after = to, after
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for after in self.after:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.to)
            threading.Thread(target=self.copy, args=(client, server, 1 << 40),
                             daemon=True).start()
            self.copy(server, client, after)
            self.cuts += 1

    @staticmethod
    def copy(source, to, most):
        try:
            while most and (data := source.recv(min(65536, most))):
                to.sendall(data)
                most -= len(data)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_broken_connections_are_made_up_for(state):
    """Cut within the hello, the whole digest, and a delta: in the end all is
    there, and after the first time by deltas alone."""
    with Follow(state, "--tell", "127.0.0.1:0") as f:
        cutter = Cutter(("127.0.0.1", int(f.tells.rsplit(":", 1)[1])),
                        [20, 500, 3300, 1 << 40])
        with Peers({"west": f"127.0.0.1:{cutter.port}"}) as p:
            p.becomes("west", URLS[:2000])
            assert cutter.cuts == 2
            for i in range(0, 400, 40):
                churn(state, i, 40)
            p.becomes("west", URLS[2000:2400], URLS[:400])
            heard = p.stop()["west"]
        assert heard["wholes"] == 1 and heard["greetings"] == 4
        assert heard["refused"] == 0 and heard["deltas"] >= 1


# ------------------------------------------------------------------- secrets

def test_a_secret_is_needed(state, secret, tmp_path):
    other = tmp_path / "other"
    other.write_text("f" * 64)
    with Follow(state, "--tell", "127.0.0.1:0", "-K", secret) as f:
        for more in [], ["-K", other]:
            r = run("digest", "peers", "--peer", f"west={f.tells}", URLS[0],
                    "--timeout", 1, *more)
            assert r.status == 2 and "has not told" in r.err
        r = run("digest", "peers", "--peer", f"west={f.tells}", URLS[0],
                "-K", secret)
        assert r.status == 0 and r.lines == [f"{URLS[0]}\twest"]
        assert f.stop()["wholes"] == 1
    with Follow(state, "--tell", "127.0.0.1:0") as f:
        r = run("digest", "peers", "--peer", f"west={f.tells}", URLS[0],
                "--timeout", 1, "-K", secret)
        assert r.status == 2 and "has not told" in r.err


# --------------------------------------------------------- peers that mean harm

class Liar:
    """A peer that says hello and then what each connection's script says."""

    def __init__(self, *scripts):
        self.scripts = scripts
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked = []
        self.lines = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for script in self.scripts:
            try:
                line, _ = self.listener.accept()
                self.lines.append(line)
                line.sendall(greeting(NEWS))
                line.recv(40, socket.MSG_WAITALL)
                ask = told(line)
                assert ask[:1] == bytes([ASK])
                self.asked.append(struct.unpack("<QQ", ask[1:]))
                script(line)
            except OSError:
                pass

    def close(self):
        for line in [self.listener, *self.lines]:
            line.close()


def says(*messages):
    def script(line):
        for kind, body in messages:
            line.sendall(frame(bytes([kind]), body))
    return script


GOOD = update(7, 1, KEYS[:500])
DELTA = dict(start=1, rice=0, capacity=1000)
LIES = {
    "no update": b"hello",
    "cut": GOOD[:-1],
    "longer": GOOD + b"\0",
    "empty": b"",
    "another sum": update(7, 2, KEYS[:500], total=1),
    "everything is there": update(7, 2, payload=b"\xff" * 1375,
                                  total=crc32c(b"\xff" * 1375)),
    "no life": update(0, 2, KEYS[:9]),
    "no version": update(7, 0, KEYS[:9]),
    "128 bits": update(7, 2, KEYS[:9], bits=128),
    "no bits": update(7, 2, bits=0),
    "no capacity": update(7, 2, capacity=0),
    "larger than --max-size": update(7, 2, capacity=(1 << 32) - 1, bits=127,
                                     payload=b"", rice=3),
    "a delta from elsewhere": update(7, 9, start=8, rice=3, flips=0,
                                     payload=b""),
    "a delta that resizes": update(7, 2, start=1, rice=3, flips=0,
                                   capacity=1001, payload=b""),
    "flips past the end": update(7, 2, **DELTA, flips=2,
                                 payload=b"\0" * 5000 + b"\1"),
    "more flips than bits": update(7, 2, **DELTA, flips=(1 << 32) - 1,
                                   payload=b"\xff" * 2000),
    "flips that are not there": update(7, 2, **DELTA, flips=900,
                                       payload=b"\xff" * 100),
    "bytes behind the flips": update(7, 2, **DELTA, flips=3,
                                     payload=b"\xff" * 100),
    "a parameter of 40": update(7, 2, start=1, rice=40, flips=1,
                                payload=b"\xff" * 100),
    "bits in a delta": update(7, 2, start=1, payload=mask([], 1375)),
    "a third kind": update(7, 2, KEYS[:9], kind=3),
}


def test_lies_are_refused(program):
    """The last good digest stays, and the next greeting asks for all of it."""
    def good_then(lie):
        liar = Liar(says((UPDATE, GOOD), (UPDATE, lie)),
                    says((UPDATE, update(7, 3, KEYS[:600]))))
        return liar
    liars = {f"p{i}": good_then(lie) for i, lie in enumerate(LIES.values())}
    with Peers({n: x.at for n, x in liars.items()}, program=program) as p:
        for name, liar in liars.items():
            p.becomes(name, URLS[:600], URLS[2000:])
            assert liar.asked == [(0, 0), (0, 0)], name
        for name, heard in p.stop().items():
            assert heard["refused"] == 1 and heard["wholes"] == 2, name
    for liar in liars.values():
        liar.close()


def test_frames_that_are_none(program):
    """Bytes that are no frames, frames of other types, parts without an end."""
    scripts = [lambda line: line.sendall(os.urandom(5000)),
               says((77, b"x")), says((PART, b"x" * 5), (ALIVE, b"")),
               lambda line: line.close(),
               says((ALIVE, b""), (PART, GOOD[:700]), (UPDATE, GOOD[700:]))]
    liars = {f"p{i}": Liar(s, says((UPDATE, GOOD)))
             for i, s in enumerate(scripts)}
    with Peers({n: x.at for n, x in liars.items()}, program=program) as p:
        for name in liars:
            p.becomes(name, URLS[:500])
    for liar in liars.values():
        liar.close()


def test_a_flood_is_held_back():
    """Neither endless parts nor endless updates cost more than --max-size and
    the time that is given to a peer; the other peer is heard meanwhile."""
    counts = {"parts": 0, "updates": 0}

    def pour(name, *messages):
        frames = [frame(bytes([kind]), body) for kind, body in messages]

        def script(line):
            while True:
                for data in frames:
                    line.sendall(data)
                    counts[name] += 1
        return script
    big = bytes(1 << 20)
    liars = {"parts": Liar(*[pour("parts", (PART, big))] * 50),
             "updates": Liar(*[pour("updates", (UPDATE, GOOD))] * 50),
             "good": Liar(says((UPDATE, GOOD)))}
    with Peers({n: x.at for n, x in liars.items()}, "--max-size",
               "4MiB") as p:
        p.becomes("good", URLS[:500])
        p.becomes("updates", URLS[:500])
        wait_until(lambda: len(liars["parts"].asked) > 1)
        assert p.resident() < 60 << 10
        assert counts["parts"] < 200
        heard = p.stop()
    assert heard["parts"]["heard"] is False
    for liar in liars.values():
        liar.close()


def test_listeners_that_mean_harm(state, threads):
    """Strangers, those that say nothing, and those that do not read cost
    nobody else anything."""
    with Follow(state, "--tell", "127.0.0.1:0", "--connections", 8,
                "--request-time", 1, program=threads) as f:
        at = ("127.0.0.1", int(f.tells.rsplit(":", 1)[1]))
        lines = [socket.create_connection(at) for _ in range(30)]
        for i, line in enumerate(lines):
            try:
                line.sendall([b"GET / HTTP/1.1\r\n\r\n" * 3, b"",
                              greeting(NEWS), greeting(b"blysync"),
                              greeting(NEWS) + frame(bytes([ASK]), bytes(15)),
                              greeting(NEWS) + frame(bytes([9]), bytes(16)),
                              greeting(NEWS) + os.urandom(100)][i % 7])
            except OSError:
                pass
        with Peers({"west": f.tells}, program=threads) as p:
            p.becomes("west", URLS[:2000])
            churn(state, 0, 100)
            p.becomes("west", URLS[2000:2100])
        for line in lines:
            line.close()


# ------------------------------------------------------------------ questions

def test_questions_of_people(state, tmp_path, ok):
    other = tmp_path / "other"
    other.write_bytes(index(KEYS[1000:3000]))
    with Follow(state, "--tell", "127.0.0.1:0") as f, \
            Follow(other, "--tell", "127.0.0.1:0") as g:
        peers = ["--peer", f"west={f.tells}", "--peer", f"east={g.tells}"]
        r = ok("digest", "peers", *peers, URLS[0], URLS[1500], URLS[2500])
        assert r.lines == [f"{URLS[0]}\twest", f"{URLS[1500]}\twest east",
                           f"{URLS[2500]}\teast"]
        r = ok("digest", "peers", *peers, "HTTP://A.test:80/1500", "--json")
        assert r.json == {"key": "HTTP://A.test:80/1500",
                          "peers": "west east"}
        assert run("digest", "peers", *peers, url(-1), url(-2)).status == 1


def test_answers_a_helper(state, program):
    with Follow(state, "--tell", "127.0.0.1:0", program=program) as f:
        helper = subprocess.Popen(
            [program, "digest", "peers", "--peer", f"west={f.tells}",
             "--helper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, encoding="latin-1")

        def ask(text):
            helper.stdin.write(text + "\n")
            helper.stdin.flush()
            return helper.stdout.readline().rstrip("\n")
        wait_until(lambda: ask(URLS[0]) == "OK peer_=west")
        assert ask(f"17 {URLS[1]} more words") == "17 OK peer_=west"
        for text in ["", " ", "17 ", "http://", "%", "%zz", "a b c", "\x80",
                     "BREW http://a.test/0", "x" * 100000]:
            assert ask(text) in ("ERR", "17 ERR")
        assert ask(URLS[2]) == "OK peer_=west"
        helper.stdin.close()
        assert helper.wait(PATIENCE) == 0


def test_packets_that_ask_for_nothing(state, program):
    rng = random.Random(1)
    with Follow(state, "--tell", "127.0.0.1:0", program=program) as f, \
            Peers({"west": f.tells}, program=program) as p:
        p.becomes("west", URLS[:2000])
        at = ("127.0.0.1", p.ports["west"])
        body = bytes(4) + URLS[0].encode() + b"\0"
        good = struct.pack(">BBHIIII", 1, 2, 20 + len(body), 7, 0, 0, 0) + body
        wrong = [good[:n] for n in range(len(good))]
        wrong += [good + b"x", good[:-1] + b"x", b"\2" + good[1:],
                  good[:1] + b"\3" + good[2:],
                  struct.pack(">BBHIIIIIB", 1, 2, 25, 7, 0, 0, 0, 0, 0)]
        wrong += [rng.randbytes(rng.randrange(200)) for _ in range(200)]
        for i in range(0, len(wrong), 20):
            for packet in wrong[i:i + 20]:
                p.line.sendto(packet, at)
            assert p.ask("west", URLS[0])
        assert p.stop()["west"]["wrong"] == len(wrong)


@pytest.mark.parametrize("argv, why", [
    ([], "one of these"),
    (["--helper", "http://a.test/"], "one of these"),
    (["--helper"], "says whom to listen to"),
    (["--helper", "--peer", "127.0.0.1:1"], "NAME=HOST:PORT"),
    (["--helper", "--peer", "=127.0.0.1:1"], "NAME=HOST:PORT"),
    (["--helper", "--peer", "a b=127.0.0.1:1"], "NAME=HOST:PORT"),
    (["--helper", "--peer", "a=127.0.0.1:x"], "not an address"),
    (["--helper", "--peer", "a=1", "--peer", "a=2"], "two of that name"),
    (["--icp", "0", "--peer", "a=1", "--peer", "b=2"], "an --icp of its own"),
    (["--icp", "x", "--peer", "a=1"], "not an address"),
    (["--helper", "--peer", "a=1", "-K", "nowhere"], "nowhere"),
    (["http://a.test/", "--timeout", "1", "--peer", "a=127.0.0.1:1"],
     "has not told"),
])
def test_what_is_refused(argv, why):
    r = run("digest", "peers", *argv, stdin="")
    assert r.status == 2 and why in r.err, r.err
