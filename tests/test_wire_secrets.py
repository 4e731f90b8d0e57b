"""-K over a wire: sync, isect and join with a shared secret, and what strangers, eavesdroppers, replays,
cuts and a man in the middle can do: nothing but end it."""
import contextlib
import os
import random
import shlex
import signal
import socket
import struct
import subprocess
import sys

import pytest
from conftest import PATIENCE, PROGRAM
from test_sync_command import Liar, lines_of, listed, serving, two_lists
from wire_support import HELLO, Proxy, frame, greeting, told

SECRET_LINES = [b"a line that nobody may see %d" % i for i in range(200)]


@pytest.fixture
def secrets(bly, ok):
    """Two secrets, each in one of the forms that files may have."""
    (bly.path / "k1").write_bytes(b"0123456789abcdef")
    (bly.path / "k2").write_text("00112233445566778899aabbccddeeff" * 2 + "\n")
    for name in "k1", "k2":
        (bly.path / name).chmod(0o600)
    probe = bly("join", "-K", "k1", "k1", "--remote", "exit 3")
    if "libsodium" in probe.err:
        pytest.skip("this bloomery has no libsodium")
    listed(bly.path / "a", [b"one", b"two"])
    listed(bly.path / "b", [b"two", *SECRET_LINES])


def refused(got, *words):
    assert got.status == 2, (got.status, got.out, got.err)
    assert got.raw == b""
    assert len(got.err.splitlines()) == 1, got.err
    for word in words:
        assert word in got.err, (word, got.err)


def passes(_before, _from_client, piece):
    return piece


@pytest.mark.parametrize("key", ["k1", "k2"])
def test_nothing_is_readable_on_the_way(bly, secrets, key):
    with serving(bly.path, "-K", key, "b") as at, Proxy(at, passes) as proxy:
        got = bly("sync", "pull", "a", proxy.at, "-K", key, "--json")
        assert got.status == 0, got.err
    assert lines_of(bly.path / "a") == {b"one", b"two", *SECRET_LINES}
    said = b"".join(proxy.seen.values())
    assert b"nobody" not in said
    # What is reported is what went over the wire.
    assert got.json["sent"] == len(proxy.seen[True])
    assert got.json["received"] == len(proxy.seen[False])


def test_through_commands(bly, secrets):
    server = f"{PROGRAM} sync serve --stdio --write"
    assert bly("sync", "push", "b", "--pipe", f"{server} -K k2 a", "-K", "k2").status == 0
    assert lines_of(bly.path / "a") == lines_of(bly.path / "b") | {b"one"}
    refused(bly("sync", "push", "b", "--pipe", f"{server} -K k1 a 2>/dev/null", "-K", "k2"), "secret")
    refused(bly("sync", "push", "b", "--pipe", f"{server} a 2>/dev/null", "-K", "k2"), "no secret", "--key-file")


def test_lists_of_several_machines(bly, secrets):
    with serving(bly.path, "-K", "k2", "b") as at:
        got = bly("isect", "-K", "k2", "a", at)
        assert got.raw == b"two\n", got.err
        refused(bly("isect", "a", at), "--key-file")
        refused(bly("isect", "-K", "k1", "a", at), "secret")


def join(*argv):
    return shlex.join([PROGRAM, "join", "--serve", *map(str, argv)]) + " 2>/dev/null"


def test_joins(bly, secrets):
    (bly.path / "l").write_text("1\tleft\n2\tleft\n")
    (bly.path / "r").write_text("2\tright\n3\tright\n")
    argv = "join", "--field", 1, "-q", "l", "--remote"
    assert bly(*argv, join("--field", 1, "-K", "k2", "r") + " | tee said", "-K", "k2").out == "2\tleft\tright\n"
    assert b"right" not in (bly.path / "said").read_bytes()
    assert (bly.path / "said").read_bytes()[:8] == b"blyjoin2"
    refused(bly(*argv, join("--field", 1, "-K", "k1", "r"), "-K", "k2"), "secret")
    refused(bly(*argv, join("--field", 1, "r"), "-K", "k2"), "no secret", "--key-file")
    refused(bly(*argv, join("--field", 1, "-K", "k2", "r")), "--key-file")
    # An answer of before, and one that is what was asked.
    refused(bly(*argv, "cat said; cat >/dev/null 2>&1", "-K", "k2"), "secret")
    refused(bly(*argv, "cat 2>/dev/null", "-K", "k2"), "secret")


@pytest.mark.parametrize("server, client, words", [
    (["-K", "k1"], [], ["it has a secret", "--key-file"]),
    ([], ["-K", "k1"], ["it has no secret", "--key-file"]),
    (["-K", "k1"], ["-K", "k2"], ["another secret", "--key-file"]),
    (["-K", "k2"], ["-K", "k1"], ["another secret", "--key-file"])])
def test_who_has_another_secret_gets_nothing(bly, secrets, server, client, words):
    before = (bly.path / "b").read_bytes()
    with serving(bly.path, "--write", *server, "b") as at:
        for verb in "pull", "push", "both":
            refused(bly("sync", verb, "a", at, *client), *words)
    assert lines_of(bly.path / "a") == {b"one", b"two"}
    assert (bly.path / "b").read_bytes() == before


def test_there_is_no_way_down(bly, secrets):
    """A man in the middle tells each end that the other has no secret, or of other versions."""
    for digit in b"013":
        def lies(before, _from_client, piece, digit=digit):
            return piece[:7] + bytes([digit]) + piece[8:] if not before else piece
        with serving(bly.path, "--write", "-K", "k1", "b") as at, Proxy(at, lies) as proxy:
            refused(bly("sync", "both", "a", proxy.at, "-K", "k1"))
            assert b"nobody" not in proxy.seen[False] and b"one" not in proxy.seen[True]


@pytest.mark.parametrize("from_client", [True, False])
def test_a_man_in_the_middle_can_only_end_it(bly, secrets, from_client):
    """Each part of what is said has a bit turned: nonce, header, lengths, records."""
    chance = random.Random(4)
    with serving(bly.path, "--write", "-K", "k1", "b") as at:
        for place in [0, 8, 39, 40, 63, 64, 66, 68, 70, 90] + [chance.randrange(64, 200) for _ in range(4)]:
            def turns(before, who, piece, place=place):
                if who is from_client and before <= place < before + len(piece):
                    at = place - before
                    return piece[:at] + bytes([piece[at] ^ 1 << chance.randrange(8)]) + piece[at + 1:]
                return piece
            # Where it is the length that is wrong, both wait; on a busy machine it may be over before the place is reached.
            for patience in 2, 20, 200:
                with Proxy(at, turns) as proxy:
                    got = bly("sync", "both", "a", proxy.at, "-K", "k1", "--timeout", patience)
                refused(got)
                assert lines_of(bly.path / "a") == {b"one", b"two"}
                assert lines_of(bly.path / "b") == {b"two", *SECRET_LINES}
                if len(proxy.seen[from_client]) > place:
                    break
            assert len(proxy.seen[from_client]) > place


@pytest.mark.parametrize("from_client", [True, False])
def test_a_session_that_is_cut(bly, secrets, from_client):
    with serving(bly.path, "--write", "-K", "k1", "b") as at:
        for place in 0, 7, 39, 40, 50, 64, 66, 100, 150:
            def cuts(before, who, piece, place=place):
                if who is not from_client or before + len(piece) <= place:
                    return piece
                return None
            with Proxy(at, cuts) as proxy:
                refused(bly("sync", "both", "a", proxy.at, "-K", "k1"))
            assert lines_of(bly.path / "a") == {b"one", b"two"}
            assert lines_of(bly.path / "b") == {b"two", *SECRET_LINES}


def test_a_session_that_is_played_again(bly, secrets):
    """All that a client said when it pushed, once more: to the same server. And what the server said, to a
    client."""
    listed(bly.path / "a", [b"two", b"pushed once"])
    with serving(bly.path, "--write", "-K", "k1", "b") as at:
        with Proxy(at, passes) as proxy:
            assert bly("sync", "push", "a", proxy.at, "-K", "k1").status == 0
        assert b"pushed once" in lines_of(bly.path / "b")
        listed(bly.path / "b", [b"two"])
        host, port = at.split(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(proxy.seen[True])
            said = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := line.recv(65536):
                    said += piece
        assert len(said) <= 40 + 24
        assert lines_of(bly.path / "b") == {b"two"}

    class Recorded(Liar):
        def serve(self):
            line, _ = self.socket.accept()
            line.sendall(proxy.seen[False])
            while line.recv(65536):
                pass
    with Recorded(None) as old:
        refused(bly("sync", "pull", "a", old, "-K", "k1"), "secret")

    class Echo(Liar):
        def serve(self):
            line, _ = self.socket.accept()
            while piece := line.recv(65536):
                line.sendall(piece)
    with Echo(None) as mirror:
        refused(bly("sync", "pull", "a", mirror, "-K", "k1"), "secret")


def test_records_in_another_order(bly, secrets):
    """One record twice, one left out, two exchanged: where the first of them stands it ends."""
    def records(text):
        at, out = 64, [text[:64]]
        while at < len(text):
            n = 4 + struct.unpack_from("<I", text, at)[0]
            out.append(text[at:at + n])
            at += n
        return out

    for change in (lambda r: r[:2] + r[1:], lambda r: r[:1] + r[2:], lambda r: [r[0], r[1], r[1], *r[2:]]):
        held = bytearray()

        def moves(_before, from_client, piece, change=change, held=held):
            if from_client:
                return piece
            held.extend(piece)
            parts = records(bytes(held))
            if len(parts) < 2 or len(parts[-1]) < 5:
                return b"" if len(held) > 64 else piece
            made = b"".join(change(parts))
            held.clear()
            return made[64:]
        with serving(bly.path, "-K", "k1", "b") as at, Proxy(at, moves) as proxy:
            refused(bly("sync", "pull", "a", proxy.at, "-K", "k1", "--timeout", "2"))
        assert lines_of(bly.path / "a") == {b"one", b"two"}


def test_files_that_hold_no_secret(bly, secrets):
    for text in b"", b"short", b"x" * 32, b"0" * 48, b"0" * 65:
        (bly.path / "k").write_bytes(text)
        for argv in (["sync", "pull", "a", "b"], ["isect", "a", "b"], ["join", "a", "b"], ["sync", "serve", "b"]):
            refused(bly(*argv, "-K", "k"), "k: not a key")


# ------------------------------------------------------------------ versions

def test_clients_of_before_are_told(bly, secrets):
    """Their greeting was a message; the answer is one of that time."""
    old = b"\1blysync1\1\4" + b"\5\x63" + bytes(8)
    for key in [], ["-K", "k1"]:
        with serving(bly.path, *key, "b") as at:
            host, port = at.split(":")
            with socket.create_connection((host, int(port))) as line:
                line.sendall(struct.pack("<I", len(old)) + old)
                n, = struct.unpack("<I", line.recv(4, socket.MSG_WAITALL))
                answer = line.recv(n, socket.MSG_WAITALL)
                assert answer[0] == 255 and b"same version" in answer


def test_servers_of_before_are_named(bly, secrets):
    """They close what begins with no message of theirs; a later one says so in its hello."""
    class Old(Liar):
        def serve(self):
            line, _ = self.socket.accept()
            line.recv(4, socket.MSG_WAITALL)
            line.recv(36, socket.MSG_WAITALL)
            line.close()
    with Old(None) as at:
        refused(bly("sync", "pull", "a", at), "earlier version")

    class Later(Liar):
        def serve(self):
            line, _ = self.socket.accept()
            line.recv(40, socket.MSG_WAITALL)
            line.sendall(b"blysync7" + bytes(32))
            line.recv(1)
    with Later(None) as at:
        refused(bly("sync", "pull", "a", at), "later version")
    refused(bly("join", "a", "--remote", "printf 'blyjoin1\\0'; cat >/dev/null 2>&1"), "earlier version")
    # A ring is no sync, though it begins in the same way.

    class Ring(Liar):
        def serve(self):
            line, _ = self.socket.accept()
            line.sendall(greeting(b"blyring"))
            line.recv(41, socket.MSG_WAITALL)
    with Ring(None) as at:
        refused(bly("sync", "pull", "a", at), "protocol")


# ------------------------------------------------------------------- trouble

@pytest.mark.parametrize("key", [[], ["-K", "k1"]])
def test_a_server_that_is_stopped(bly, secrets, key):
    """SIGSTOP: the system still accepts for it; the client gives up in its time, and goes on when it does."""
    server = subprocess.Popen([PROGRAM, "sync", "serve", "--listen", "127.0.0.1:0", *key, "b"], cwd=bly.path,
                              stdout=subprocess.PIPE, text=True)
    try:
        at = server.stdout.readline().split()[-1]
        server.send_signal(signal.SIGSTOP)
        refused(bly("sync", "pull", "a", at, *key, "--timeout", "1"), "--timeout")
        server.send_signal(signal.SIGCONT)
        assert bly("sync", "pull", "a", at, *key).status == 0
    finally:
        server.kill()
        server.wait(PATIENCE)
        server.stdout.close()


def test_lengths_that_lie(bly, secrets):
    """Of a record, and of a frame: nothing is allocated for what does not come."""
    code = ("import resource, os, sys\n"
            "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n")
    for key, said in (("k1", greeting(b"blysync", True) + bytes(24) + struct.pack("<I", 0xfffffff0) + b"x" * 100),
                      ("k1", greeting(b"blysync", True) + bytes(24) + struct.pack("<I", 1 << 20)),
                      (None, HELLO + struct.pack("<I", 1 << 20) + b"\1\1"),
                      (None, HELLO + struct.pack("<I", 0xffffffff) + b"\1\1" * 50),
                      (None, HELLO + struct.pack("<I", 3) + b"\1\1\1"),
                      (None, HELLO + frame(b"\1" * 50)[:-1] + b"!")):
        class Lies(Liar):
            def serve(self, said=said):
                line, _ = self.socket.accept()
                line.sendall(said)
                line.shutdown(socket.SHUT_WR)
                while line.recv(65536):
                    pass
        with Lies(None) as at:
            got = subprocess.run([sys.executable, "-c", code, PROGRAM, "sync", "pull", "-t", "1", "a", at,
                                  *(["-K", key] if key else [])], cwd=bly.path, capture_output=True, text=True,
                                 timeout=PATIENCE, env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        assert got.returncode == 2 and len(got.stderr.splitlines()) == 1, got.stderr


def test_wrong_bytes_end_a_plain_session_too(bly):
    """A bit that turns on the way is noticed without a secret, by the checksum; who means harm can mend it."""
    listed(bly.path / "a", [b"one"])
    listed(bly.path / "b", [b"two"])
    with serving(bly.path, "b") as at:
        for place in 50, 60, 70:
            def turns(before, from_client, piece, place=place):
                i = place - before
                return piece if from_client or not 0 <= i < len(piece) else \
                    piece[:i] + bytes([piece[i] ^ 1]) + piece[i + 1:]
            with Proxy(at, turns) as proxy:
                refused(bly("sync", "pull", "a", proxy.at))
        line = socket.create_connection(at.split(":"))
        with line:
            line.sendall(HELLO + b"\x7f" + frame(b"\1" + b"x" * 40)[1:])
            assert line.recv(40, socket.MSG_WAITALL)[:8] == HELLO[:8]
            line.shutdown(socket.SHUT_WR)
            assert told(line) == b""
