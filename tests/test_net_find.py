"""net node, announce, find: services found between processes on loopback, through failures, lies and floods."""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM
from conftest import run as run_command
from rings import Ring, run, until

QUICK = ["--period", "100", "--life", "3", "--patience", "1000"]
ASK = ["--patience", "15000"]  # a busy server is one that answers


class Servers:
    def __init__(self):
        self.running, self.others = {}, []

    def start(self, *args, listen=None):
        argv = [PROGRAM, "net", "node", *QUICK, *args, *(["--listen", listen] if listen else [])]
        process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        address = process.stdout.readline().split()[-1]
        self.running[address] = process
        return address

    def beside(self, *neighbours, parent=None):
        args = [x for n in neighbours for x in ("--neighbour", n)]
        return self.start(*args, *(["--parent", parent] if parent else []))

    def announce(self, at, name, *tags, ttl=600, **kw):
        run("net", "announce", "--once", "--ttl", ttl, "--at", at, "--where", f"{name}.place", *ASK, name, *tags, **kw)

    def keep(self, *argv):
        process = subprocess.Popen([PROGRAM, "net", "announce", *ASK, *map(str, argv)], stderr=subprocess.PIPE, text=True)
        self.others.append(process)
        assert "is announced" in process.stderr.readline()
        return process

    def find(self, at, *tags, **kw):
        args = [x for k, v in kw.items() for x in (f"--{k}", v)]
        done = run_command("net", "find", "--json", "--at", at, *ASK, *args, *tags)
        # While servers come and go, one may have been named that does not answer.
        assert done.status == 0 if done.out else done.status == (2 if "unknown: " in done.err else 1), done.err
        return [json.loads(line) for line in done.out.splitlines()]

    def nobody_has(self, at, *tags):
        """For certain: all who may have it say no."""
        return run_command("net", "find", "--at", at, *ASK, *tags).status == 1

    def status(self, at):
        return run("net", "status", "--json", *ASK, "--at", at).json

    def kill(self, address):
        process = self.running.pop(address)
        process.kill()
        process.communicate()

    def close(self):
        for process in [*self.running.values(), *self.others]:
            process.kill()
            process.communicate()


@pytest.fixture
def servers():
    made = Servers()
    yield made
    made.close()


@pytest.fixture
def line(servers):
    """a - b - c - d"""
    made = []
    for _ in range(4):
        made.append(servers.beside(*made[-1:]))
    return made


def names(found):
    return sorted(f["name"] for f in found)


def test_the_nearest_is_found_and_forgotten(servers, line):
    a, b, c, d = line
    servers.announce(d, "far", "type=printer", "colour=yes", "floor=3")
    far, = until(lambda: servers.find(a, "type=printer", "floor=3"))
    assert far["name"] == "far" and far["by"] == "near" and far["hops"] == 3 and far["at"] == d
    assert far["where"] == "far.place" and far["tags"] == ["colour=yes", "floor=3", "type=printer"]
    until(lambda: servers.nobody_has(a, "type=printer", "floor=4"))
    # One that is nearer is taken instead; when it is forgotten, the other again.
    near = servers.keep("--ttl", 2, "--at", b, "near", "type=printer", "floor=3")
    until(lambda: names(servers.find(a, "type=printer", "floor=3")) == ["near"])
    near.kill()
    until(lambda: names(servers.find(a, "type=printer", "floor=3")) == ["far"])
    until(lambda: servers.status(b)["expired"] == 1)
    # A server in between dies: what lay behind it is out of reach, and forgotten.
    servers.kill(c)
    until(lambda: servers.nobody_has(a, "type=printer") and servers.status(b)["heard"] == 1)


def test_who_announces_and_withdraws(servers):
    a = servers.start()
    offered = servers.keep("--at", a, "--ttl", 600, "web", "type=web")
    assert names(servers.find(a, "type=web")) == ["web"]
    offered.send_signal(signal.SIGTERM)
    assert offered.wait(PATIENCE) == 0
    assert servers.nobody_has(a, "type=web")


def test_a_hierarchy_finds_all(servers):
    root = servers.start()
    children = [servers.beside(parent=root) for _ in range(2)]
    leaves = [servers.beside(parent=children[i // 2]) for i in range(4)]
    for i, leaf in enumerate(leaves):
        servers.announce(leaf, f"db{i}", "type=db", f"number={i}", "site=x")
    want = [f"db{i}" for i in range(4)]
    until(lambda: names(servers.find(leaves[0], "type=db", how="tree")) == want)
    # Whoever gets no processor for three periods is forgotten until it is heard of again.
    one, = until(lambda: servers.find(leaves[0], "number=3", "type=db", "site=x", how="tree"))
    assert one["by"] == "tree" and one["at"] == leaves[3] and one["asked"] <= 5
    # A leaf dies: its services are forgotten on the way up, all others are still found.
    servers.kill(leaves[1])
    until(lambda: servers.status(children[0])["children"] == 1)
    until(lambda: names(servers.find(leaves[2], "type=db", how="tree")) == ["db0", "db2", "db3"])
    # It comes back under its old address, with something else.
    back = servers.start("--parent", children[0], listen=leaves[1])
    servers.announce(back, "new", "type=db")
    until(lambda: names(servers.find(leaves[3], "type=db", how="tree")) == ["db0", "db2", "db3", "new"])


def test_what_is_far_is_found_on_the_ring(servers, tmp_path):
    ring = Ring(tmp_path)
    try:
        members = [ring.start() for _ in range(4)]
        ring.settle()
        a, b = servers.start(), servers.start()  # not joined to each other
        tags = "type=archive", "site=y", "size=big"
        options = ["--ring", members[0], "--ring", members[1]]
        servers.keep("--at", b, *options, "--ttl", 2, "store", *tags)
        assert servers.find(a, *tags) == []
        found, = until(lambda: servers.find(a, *tags, ring=members[2]))
        assert found["by"] == "ring" and found["name"] == "store"
        assert servers.find(a, "type=archive", "size=small", ring=members[2]) == []
        # The member that had it dies: those behind it have it too, and it is announced again.
        ring.kill(found["at"])
        rest = [m for m in members if m != found["at"]]
        until(lambda: names(servers.find(a, *tags, ring=rest[0])) == ["store"])
        ring.settle()
        # Who announced is killed: forgotten everywhere.
        servers.others[-1].kill()
        until(lambda: servers.find(a, *tags, ring=rest[0]) == [])
    finally:
        ring.close()


def test_only_with_the_secret_and_in_its_network(servers, tmp_path):
    if run("node", "key", tmp_path / "key").status:
        pytest.skip("no libsodium here")
    a = servers.start("--key-file", tmp_path / "key")
    run("net", "announce", "--once", "--at", a, "-K", tmp_path / "key", "web", "type=web")
    assert run("net", "find", "--at", a, "-K", tmp_path / "key", "type=web").out
    assert "no server answers" in run("net", "find", "--at", a, "type=web", status=2).err
    b = servers.start("--network", "other")
    run("net", "find", "--at", b, "type=web", status=2)
    run("net", "find", "--at", b, "--network", "other", "type=web", status=1)


# ----------------------------------------------------------------- bad company

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def frame(kind, body, network, flags=0, request=1):
    head = struct.pack("<BBHIQ", 1, kind, flags, request, network)
    rest = head + body
    length = struct.pack("<I", len(rest) + 4)
    return length + rest + struct.pack("<I", crc32c(length + rest))


def meet(at):
    host, _, port = at.rpartition(":")
    s = socket.create_connection((host, int(port)), timeout=PATIENCE)
    s.sendall(b"blyring0" + os.urandom(32))
    return s


def listen_once():
    s = socket.create_server(("127.0.0.1", 0))
    return s, "127.0.0.1:%d" % s.getsockname()[1]


def network_number():
    """What the frames of a network without options carry, as one who announces says it."""
    listener, address = listen_once()
    probe = subprocess.Popen([PROGRAM, "net", "announce", "--once", "--at", address, "n", "k=v"], stderr=subprocess.PIPE)
    peer, _ = listener.accept()
    peer.sendall(b"blyring0" + os.urandom(32))
    said = b""
    while len(said) < 40 + 20:
        said += peer.recv(100)
    peer.close()
    listener.close()
    probe.communicate()
    return struct.unpack("<Q", said[52:60])[0]


def test_neighbours_that_stall_and_a_find_that_ends(servers, line):
    a, b, c, d = line
    stalled, address = listen_once()
    # It accepts, and says nothing: tried less and less often, and the others are told as before.
    e = servers.start("--neighbour", address, "--neighbour", a)
    servers.announce(d, "x", "type=x")
    until(lambda: names(servers.find(b, "type=x")) == ["x"])
    servers.announce(e, "y", "type=y")
    until(lambda: names(servers.find(b, "type=y")) == ["y"])
    status = run("net", "find", "--at", address, "--patience", "50", "type=x", status=2)
    assert "no server answers" in status.err
    os.kill(servers.running[c].pid, signal.SIGSTOP)
    # Nobody that answers has it, which is not an answer, until all have forgotten who is silent.
    def answer():
        done = run_command("net", "find", "--at", a, "--patience", "100", "type=x")
        return None if "no server answers" in done.err else done
    done = until(answer)
    assert done.status == (2 if "no answer from" in done.err else 1) and not done.out
    os.kill(servers.running[c].pid, signal.SIGCONT)
    until(lambda: names(servers.find(a, "type=x")) == ["x"])
    stalled.close()


def test_a_dead_server_on_the_way_is_no_no(servers):
    """Whoever may have it must have answered before it is said that nobody has it."""
    # Long soft state: who has died is still named.
    root = servers.start("--life", 600)
    child = servers.start("--life", 600, "--parent", root)
    leaf = servers.start("--life", 600, "--parent", child)
    other = servers.start("--life", 600, "--parent", root)
    beside = servers.start("--life", 600, "--neighbour", other)
    servers.announce(leaf, "x", "type=x")
    servers.announce(beside, "y", "type=y")
    until(lambda: names(servers.find(other, "type=x", how="tree")) == ["x"])
    until(lambda: names(servers.find(other, "type=y", how="near")) == ["y"])
    servers.kill(leaf)
    servers.kill(beside)
    for dead, tag, how in (leaf, "type=x", "tree"), (beside, "type=y", "near"):
        for options in ["--how", how], []:
            err = run("net", "find", "--at", other, *ASK, *options, tag, status=2).err
            assert f"unknown: no answer from {dead}" in err
    # What neither of them may have is certain.
    until(lambda: servers.nobody_has(other, "type=z"))
    # The parent is dead, and one of two servers that were given.
    servers.kill(root)
    err = run("net", "find", "--at", child, *ASK, "type=z", status=2).err
    assert f"no answer from {root}" in err
    err = run("net", "find", "--at", leaf, "--at", other, *ASK, "--how", "near", "type=z", status=2).err
    assert f"no answer from {leaf}" in err
    # The ring cannot be asked, and all others say no.
    alone = servers.start()
    err = run("net", "find", "--at", alone, "--ring", leaf, *ASK, "type=z", status=2).err
    assert "the ring cannot be asked" in err


def test_frames_that_are_wrong_are_refused(servers):
    a = servers.start()
    servers.announce(a, "good", "type=good")
    random.seed(5)
    network = network_number()
    s = meet(a)
    bodies = [b"", b"\0", b"\xff" * 300, struct.pack("<H", 60) + b"\4name", b"\0\0" + b"\1a\1b\1\3x=y",
              struct.pack("<H", 60) + b"\1a\1\x1b\1\3x=y", b"\4" + bytes(18) + bytes(100),
              b"\4\x7f\0\0\1" + bytes(12) + b"\1\1" + bytes(8) + b"not a filter at all"]
    for kind in [48, 49, 50, 64, 65, 66, 1, 99]:
        for body in bodies + [random.randbytes(random.randrange(200)) for _ in range(20)]:
            try:
                s.sendall(frame(kind, body, random.choice([network, network, 12345])))
            except OSError:
                s = meet(a)
    s.close()
    assert names(servers.find(a, "type=good")) == ["good"]
    status = servers.status(a)
    assert status["services"] == 1 and status["links"] == 0 and status["children"] == 0


def test_as_many_services_as_there_is_room_for(servers):
    a = servers.start()
    done = servers.keep("--at", a, "kept", "type=kept")
    network = network_number()
    line = meet(a)
    refused = answers = 0
    buffer = b""
    line.recv(40)
    for i in range(1200):
        name = b"flood%d" % i
        body = struct.pack("<H", 60) + bytes([len(name)]) + name + b"\1w\1\x05k=" + b"%03d" % (i % 1000)
        line.sendall(frame(48, body, network, request=i + 1))
    while answers < 1200:
        while len(buffer) < 4 or len(buffer) < 4 + struct.unpack("<I", buffer[:4])[0]:
            got = line.recv(65536)
            assert got
            buffer += got
        n = 4 + struct.unpack("<I", buffer[:4])[0]
        flags, = struct.unpack("<H", buffer[6:8])
        refused += bool(flags & 2)
        answers += 1
        buffer = buffer[n:]
    assert refused == 201
    status = servers.status(a)
    assert status["services"] == 1000 and status["full"] >= 201
    # What was there stays, and is announced on.
    assert names(servers.find(a, "type=kept")) == ["kept"]
    assert done.poll() is None


@pytest.mark.parametrize("args,says", [
    (["find", "type=x"], "whom to ask"),
    (["find", "--at", "127.0.0.1:9", "x"], "KEY=VALUE"),
    (["find", "--at", "127.0.0.1:9", "--how", "fast", "a=b"], "near, tree or ring"),
    (["find", "--at", "127.0.0.1:9", "--how", "ring", "a=b"], "which ring"),
    (["find", "--at", "127.0.0.1:9", *(f"k{i}=v" for i in range(9))], "up to 8 tags"),
    (["announce", "x", "a=b"], "where?"),
    (["announce", "--at", "127.0.0.1:9", "--ttl", "9999", "x", "a=b"], "--ttl"),
    (["announce", "--at", "127.0.0.1:9", "a\tb", "a=b"], "printable"),
    (["announce", "--once", "--at", "127.0.0.1:9", "x", "a=b"], "could not be announced"),
    (["node", "--depth", "6"], "--depth"),
    (["node", "--parent", "nowhere"], "nowhere"),
    (["status", "127.0.0.1:9"], "no server answers"),
    (["status", "--at", "127.0.0.1:9"], "no server answers"),
    (["status"], "--at"),
    (["status", "127.0.0.1:9", "--at", "127.0.0.1:9"], "--at"),
    (["peers"], "--at"),
])
def test_what_is_wrong_is_said(args, says):
    err = run("net", *args, status=2).err
    assert says in err and len(err.splitlines()) == 1
