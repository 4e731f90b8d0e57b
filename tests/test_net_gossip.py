"""Peers that gossip, as processes on loopback: bloomery net peer, search, peers."""
import gzip
import json
import os
import signal
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, PROGRAM
from rings import run, until

# Who is dead refuses at once; who is busy gets the time that it needs.
QUICK = ["--interval", "100", "--rescan", "200", "--patience", "60000"]
PEERS = 12


class Peers:
    def __init__(self, at):
        self.at, self.peers = at, {}

    def start(self, folder, *options, listen=None, env=None):
        argv = [PROGRAM, "net", "peer", *QUICK, *options]
        for address in list(self.peers)[:2]:
            argv += ["-j", address]
        argv += ["--listen", listen] if listen else []
        with open(self.at / "log", "a") as log:
            process = subprocess.Popen([*argv, folder], stdout=subprocess.PIPE, stderr=log, text=True, env=env)
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        self.peers[line.split()[-1]] = (process, folder)
        return line.split()[-1]

    def kill(self, address, signal_=signal.SIGKILL):
        process, _ = self.peers.pop(address)
        process.send_signal(signal_)
        process.wait()
        process.stdout.close()
        return process.returncode

    def end(self):
        for address in list(self.peers):
            assert self.kill(address, signal.SIGTERM) in (0, -signal.SIGTERM)


@pytest.fixture
def peers(tmp_path):
    all_ = Peers(tmp_path)
    yield all_
    for process, _ in all_.peers.values():
        process.kill()
        process.wait()
        process.stdout.close()


def folder_of(tmp_path, name, **files):
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def listing(address):
    return json.loads(run("net", "peers", "--json", address).out)


def search(address, *words, status=0, options=()):
    done = run("net", "search", "--at", address, "--json", *options, *words, status=status)
    return json.loads(done.out)


def knows(address, n):
    """Does this peer have the filters of n peers?"""
    return sum(p["filter"] > 0 for p in listing(address)["peers"]) == n


def test_twelve_peers_find_change_and_come_back(tmp_path, peers):
    for i in range(PEERS):
        folder = folder_of(tmp_path, f"d{i}", common=f"every peer knows this, number{i} alone that",
                           other=" ".join(f"filler{j}" for j in range(400)))
        with gzip.open(folder / "packed.gz", "wt") as packed:
            packed.write(f"squeezed text of peer{i}\n" * 5)
        peers.start(folder)
    first, *others = list(peers.peers)
    until(lambda: all(knows(a, PEERS) for a in peers.peers))

    # A word that one peer has is asked of few, and found with its context.
    found = search(first, "Number7")
    assert [d["path"] for d in found["documents"]] == ["common"]
    assert "number7 alone" in found["documents"][0]["context"]
    assert found["with_words"] <= 2
    assert len(search(first, "every", "peer")["documents"]) == PEERS
    assert [d["path"] for d in search(others[3], "peer11")["documents"]] == ["packed.gz"]
    assert len(search(first, "every", options=["--best", "3"])["documents"]) == 3
    assert search(first, "nowhereatall", status=1)["documents"] == []

    # A change spreads, as a delta.
    (tmp_path / "d5" / "new").write_text("a zebrafish appears")
    until(lambda: all(search_any(a, "zebrafish") for a in peers.peers))
    assert listing(first)["deltas"] > 0

    # Documents that change or vanish are found no more, also before the filter says so.
    (tmp_path / "d5" / "new").unlink()
    until(lambda: not search_any(first, "zebrafish"))

    # Killed and started again at the same address with other documents.
    victim = others[6]
    (_, folder) = peers.peers[victim]
    peers.kill(victim)
    found = search(first, "every")
    assert len(found["documents"]) == PEERS - 1 and found["silent"] == 1
    (folder / "again").write_text("resurrected")
    peers.start(folder, listen=victim)
    until(lambda: all(search_any(a, "resurrected") for a in peers.peers))
    until(lambda: all(knows(a, PEERS) for a in peers.peers))
    text = run("net", "search", "--at", first, "resurrected").out
    assert victim in text and "again" in text
    assert len(run("net", "peers", first).out.splitlines()) == PEERS
    peers.end()


def search_any(address, *words):
    done = subprocess.run([PROGRAM, "net", "search", "--at", address, "-q", *words], stderr=subprocess.PIPE)
    assert done.returncode in (0, 1) or b"unknown: " in done.stderr, done.stderr
    return done.returncode == 0


def test_a_dead_peer_is_no_no(tmp_path, peers):
    """That nobody has a word is said only if all answered who may have it."""
    first = peers.start(folder_of(tmp_path, "a", one="ordinary"))
    second = peers.start(folder_of(tmp_path, "b", two="remarkable"))
    until(lambda: search_any(first, "remarkable"))
    peers.kill(second)
    found = search(first, "remarkable", status=2)
    assert found["documents"] == [] and found["silent"] == 1
    assert "unknown: 1 of the peers" in run("net", "search", "--at", first, "remarkable", status=2).err
    # Who does not have it need not answer.
    assert search(first, "nowhereatall", status=1)["silent"] == 0


@pytest.mark.skipif(not (BUILD / "bloomery-html").exists(), reason="bloomery was built without libgumbo")
def test_web_pages(tmp_path, peers):
    """Their words are what is seen, and so is what is shown of them; --tags: all of it."""
    page = ("<!doctype html><nav>menuword</nav><script>scriptword</script>"
            "<p>A caf&eacute; of se<b>ve</b>n words that readers see.")
    one = peers.start(folder_of(tmp_path, "seen", page=page, text="plain tagword <p>"))
    other = peers.start(folder_of(tmp_path, "tags", page=page), "--tags")
    until(lambda: all(knows(a, 2) for a in peers.peers))
    for word, where in (("seven", {one}), ("café", {one}), ("menuword", {other}), ("scriptword", {other}),
                        ("readers", {one, other}), ("tagword", {one})):
        found = search(one, word)["documents"]
        assert {d["peer"] for d in found} == where, word
    found, = search(other, "seven")["documents"]
    assert "seven words" in found["context"] and "<" not in found["context"]
    peers.end()


def test_odd_folders(tmp_path, peers):
    """Empty ones, links out of them, names that are not text, binaries, folders that go away."""
    (tmp_path / "secret").write_text("forbidden")
    odd = folder_of(tmp_path, "odd", plain="ordinary")
    (odd / "link").symlink_to(tmp_path / "secret")
    (odd / "up").symlink_to(tmp_path)
    with open(os.path.join(os.fsencode(odd), b"\xff\x1b[31m"), "w") as file:
        file.write("unspeakable")
    (odd / "binary").write_bytes(b"\0\1\2forbidden")
    (odd / "bad.gz").write_bytes(b"\x1f\x8b\x08damaged")
    os.mkfifo(odd / "pipe")
    empty = peers.start(folder_of(tmp_path, "empty"))
    full = peers.start(odd)
    until(lambda: knows(empty, 2) and knows(full, 2) and listing(full)["documents"])
    assert listing(full)["documents"] == 2
    assert not search_any(empty, "forbidden")
    text = run("net", "search", "--at", empty, "unspeakable").out
    assert "\x1b" not in text
    assert len(search(empty, "unspeakable")["documents"]) == 1
    # A link in place of a document leads nowhere either.
    (odd / "plain").unlink()
    (odd / "plain").symlink_to(tmp_path / "secret")
    until(lambda: not search_any(empty, "ordinary"))
    assert not search_any(empty, "forbidden")
    odd.rename(tmp_path / "away")
    until(lambda: not search_any(empty, "unspeakable"))
    (tmp_path / "away").rename(odd)
    until(lambda: search_any(empty, "unspeakable"))
    peers.end()


def frame(kind, body, request=1, ring=None, flags=0):
    head = struct.pack("<BBHIQ", 1, kind, flags, request, RING if ring is None else ring)
    data = struct.pack("<I", len(head) + len(body) + 4) + head + body
    return data + struct.pack("<I", crc32c(data))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


RING = 0  # learned from a peer's own question
HELLO = b"blyring0" + bytes(32)


def connect(address):
    host, port = address.rsplit(":", 1)
    s = socket.create_connection((host, int(port)))
    s.sendall(HELLO)
    return s


def address_of(port):
    return struct.pack("<B16sH", 4, bytes([127, 0, 0, 1]), port)


def read_frame(s):
    def exactly(n):
        data = b""
        while len(data) < n:
            piece = s.recv(n - len(data))
            if not piece:
                return None
            data += piece
        return data
    head = exactly(4)
    return head and exactly(struct.unpack("<I", head)[0])


def learn_ring(peers, tmp_path):
    """A listener that is given as --join sees the name of the network in the first question."""
    global RING
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        a = peers.start(folder_of(tmp_path, "a", doc="alpha"), "-j", f"127.0.0.1:{port}")
        s, _ = listener.accept()
        with s:
            s.sendall(HELLO)
            assert len(s.recv(40, socket.MSG_WAITALL)) == 40
            RING = struct.unpack("<Q", read_frame(s)[8:16])[0]
    return a


def test_hostile_peers(tmp_path, peers):
    a = learn_ring(peers, tmp_path)
    b = peers.start(folder_of(tmp_path, "b", doc="beta"))
    until(lambda: knows(a, 2) and knows(b, 2))
    me = address_of(9)
    bodies = [
        (32, b""), (32, me + struct.pack("<H", 65535)), (33, me), (33, me + bytes(256)), (34, me + b"\xff\xff"),
        (34, me + struct.pack("<HQQ", 1, 5, 2**64 - 1)), (40, b"\x14\x00\x01" + b"\xff" * 8 + b"\x01x"),
        (40, struct.pack("<HBdB", 20, 1, 1e300, 1) + b"x"), (41, struct.pack("<HB", 65535, 1) + b"\1x"),
        (41, struct.pack("<HB", 20, 255)), (99, b"what"), (42, b""),
    ]
    for kind, body in bodies:
        with connect(a) as s:
            s.recv(40, socket.MSG_WAITALL)
            s.sendall(frame(kind, body))
            assert read_frame(s) is not None
    for junk in (b"\xff" * 400, frame(33, me + bytes(256), ring=5), frame(33, me + bytes(256))[:-1] + b"x",
                 frame(32, me + b"\0\0", flags=1)):
        with connect(a) as s:
            s.sendall(junk)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
    # One that stalls in the middle of a frame, and one that asks without reading, hold up nobody.
    with connect(a) as stalls, connect(a) as floods:
        stalls.sendall(frame(33, me + bytes(256))[:30])
        floods.setblocking(False)
        flood = frame(33, me + struct.pack("<64I", *range(64))) * 200
        try:
            for _ in range(200):
                floods.send(flood)
        except BlockingIOError:
            pass
        assert search_any(b, "alpha") and search_any(a, "beta")
    # A liar that tells of 64 peers that are nowhere, and of newer versions of others.
    host, port = b.rsplit(":", 1)
    with connect(a) as s:
        s.recv(40, socket.MSG_WAITALL)
        pairs = b"".join(struct.pack("<QQ", i + 1, 7) for i in range(64))
        s.sendall(frame(32, address_of(int(port)) + struct.pack("<H", 64) + pairs))
        assert read_frame(s) is not None
    until(lambda: search_any(a, "beta") and search_any(b, "alpha"))
    assert len([p for p in listing(a)["peers"] if p["version"]]) == 2
    peers.end()


def test_busy_peers_say_so(tmp_path, peers):
    """More searches at once than a peer takes: each ends in documents or in BUSY, and the peer goes on."""
    a = learn_ring(peers, tmp_path)
    lines = [connect(a) for _ in range(60)]
    ask = frame(41, struct.pack("<HB", 20, 1) + b"\5alpha")
    for s in lines:
        s.recv(40, socket.MSG_WAITALL)
    until(lambda: search_any(a, "alpha"))
    for s in lines:
        s.sendall(ask * 4)
    errors = 0
    for s in lines:
        for _ in range(4):
            answer = read_frame(s)
            errors += struct.unpack("<H", answer[2:4])[0] & 2 == 2
        s.close()
    assert errors < 240
    assert search_any(a, "alpha")
    peers.end()


def test_clocks_jump(tmp_path, peers):
    """A peer that starts again with a clock that has gone back a year is heard all the same."""
    library = BUILD / "tests" / "jumping_clock.so"
    if not library.exists():
        pytest.skip("make programs builds what this needs")
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("<q", -365 * 86400))
    a = peers.start(folder_of(tmp_path, "a", doc="alpha"))
    b = peers.start(folder_of(tmp_path, "b", doc="beta"))
    until(lambda: knows(a, 2) and knows(b, 2))
    peers.kill(b)
    folder_of(tmp_path, "b", doc="gamma")
    peers.start(tmp_path / "b", listen=b, env={**os.environ, "LD_PRELOAD": str(library), "BLY_CLOCK": str(clock)})
    until(lambda: search_any(a, "gamma") and not search_any(a, "beta"))
    peers.end()


def test_secrets_keep_strangers_out(tmp_path, peers):
    key = tmp_path / "key"
    if "libsodium" in run("node", "run", "-K", tmp_path / "none", tmp_path, status=2).err:
        pytest.skip("built without libsodium")
    run("node", "key", key)
    a = peers.start(folder_of(tmp_path, "a", doc="alpha"), "-K", key)
    run("net", "search", "--at", a, "alpha", status=2)
    until(lambda: subprocess.run([PROGRAM, "net", "search", "--at", a, "-K", key, "-q", "alpha"]).returncode == 0)


@pytest.mark.parametrize("argv", [
    ["net", "peer", "nowhere"], ["net", "peer", "--join", "nonsense", "."], ["net", "search", "word"],
    ["net", "search", "--at", "127.0.0.1:1", "word"], ["net", "search", "--at", "127.0.0.1:1", "..."],
    ["net", "search", "--at", "127.0.0.1:1", "--best", "1000", "word"], ["net", "peers", "127.0.0.1:1"],
    ["net", "sim", "gossip", "--peers", "1"], ["net", "sim", "gossip", "--topology", "ring:5"],
    ["net", "sim", "gossip", "--docs", "nowhere"], ["net", "peer", "/dev/null"],
])
def test_errors_say_what_is_right(argv, tmp_path):
    done = run(*argv, status=2, cwd=tmp_path)
    assert done.err.count("\n") == 1 and not done.out


def test_sim(tmp_path):
    (tmp_path / "docs").mkdir()
    for i in range(40):
        (tmp_path / "docs" / f"{i}").write_text(" ".join(f"word{j % (i + 3)} w{j % 7}" for j in range(60)))
    argv = ["net", "sim", "gossip", "--peers", "20", "--docs", tmp_path / "docs", "--tries", "10", "--loss", "2%"]
    first = json.loads(run(*argv, "--json", "--plot", tmp_path / "p.svg").out)
    assert first == json.loads(run(*argv, "--json").out)
    values = {v["name"]: v["value"] for v in first["values"]}
    assert values["documents"] == 40 and values["missed"] == 0 and values["spread_most"] < 25
    assert b"<svg" in (tmp_path / "p.svg").read_bytes()
    run(*argv[:-4], "--peers", "41", status=2)
