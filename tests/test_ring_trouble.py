"""bloomery node in bad company and bad luck: disks that fill, peers that stall,
lie and flood, old state, clocks that jump, and a network that falls apart.

No file may be lost, nobody may crash, and when the trouble is over the ring is
whole again.
"""
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, PATIENCE, PROGRAM, ROOT
from conftest import run as bly
from rings import Ring, compare, filled, until

sys.path.insert(0, str(ROOT / "bench"))
import ring_client as wire  # noqa: E402


@pytest.fixture
def ring(tmp_path):
    made = Ring(tmp_path, patience=750)
    yield made
    for process, _ in made.nodes.values():
        assert process.poll() is None, "a node has died"
    made.close()


def limit(process, what, soft):
    """Set a limit of a process that runs; None: as high as it may be."""
    _, hard = resource.prlimit(process.pid, what)
    resource.prlimit(process.pid, what, (hard if soft is None else soft, hard))


# -------------------------------------------------------------------------- disks

def test_full_disks_lose_nothing(ring, tmp_path):
    for _ in range(4):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 3, 300000)
    records = len(ring.copies())
    ring.kept(records, 3)
    names = sorted(ring.command("ls").lines)

    # No disk takes anything: an error, and all is as before.
    for process, _ in ring.nodes.values():
        limit(process, resource.RLIMIT_FSIZE, 0)
    late = tmp_path / "late"
    late.write_bytes(b"late" * 1000)
    assert "disk" in ring.command("put", late, status=2).err
    assert "disk" in ring.command("rm", "file0", status=2).err
    ring.command("get", "late", status=1)
    compare(ring, files, tmp_path)
    assert sorted(ring.command("ls").lines) == names
    assert len(ring.copies()) == records

    # All but one have room again, and then all: what could not be copied is. Of
    # the names that begin behind that one, the others are all holders; it is
    # chosen so that these are a quarter at least.
    members = sorted((int(m["id"], 16), a) for a in ring.nodes for m in ring.status(a)["members"])
    arcs = [((id - members[i - 1][0]) % 2**64, i) for i, (id, _) in enumerate(members)]
    full = ring.nodes[members[max(arcs)[1] - 1][1]][0]
    for process, _ in ring.nodes.values():
        if process is not full:
            limit(process, resource.RLIMIT_FSIZE, None)
    taken = {}
    for i in range(60):
        if len(taken) == 2:
            break
        path = tmp_path / f"more{i}"
        path.write_bytes(os.urandom(2000))
        # The owner of a block, or a holder of the name, may be the one.
        done = subprocess.run([*a_put(ring), path], capture_output=True, text=True)
        assert done.returncode == 0 or "disk" in done.stderr, done.stderr
        if done.returncode == 0:
            taken[path.name] = path
    assert taken
    compare(ring, taken, tmp_path)
    limit(full, resource.RLIMIT_FSIZE, None)
    ring.kept(records + 2 * len(taken), 3)
    compare(ring, {**files, **taken}, tmp_path)
    ring.command("put", late)


def a_put(ring):
    """A put, whatever its status."""
    at = [word for address in list(ring.nodes)[:4] for word in ("--at", address)]
    return [PROGRAM, "node", "put", "--patience", str(ring.patience), "--wait", str(1000 * PATIENCE), *at]


# ---------------------------------------------------------------- peers that stall

def test_a_node_that_stands_still_and_comes_back(ring, tmp_path):
    for _ in range(5):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 4, 100000)
    records = len(ring.copies())
    ring.kept(records, 3)
    still = ring.order()[2]
    others = [a for a in ring.nodes if a != still]
    ring.nodes[still][0].send_signal(signal.SIGSTOP)
    ring.settle(others)
    compare(ring, files, tmp_path, at=others)
    # A newer version of a file, and one less, while it looks away.
    files["file0"].write_bytes(b"newer")
    ring.command("put", files["file0"], at=others)
    ring.command("rm", "file1", at=others)
    del files["file1"]
    ring.nodes[still][0].send_signal(signal.SIGCONT)
    ring.settle()
    compare(ring, files, tmp_path, at=[still])
    ring.command("get", "file1", at=[still], status=1)


def test_what_cannot_be_done_is_said(ring, tmp_path):
    """By a node that has long been alone at once, however long a client would try; and by a client that has tried for
    as long as it should, if nodes would try for ever."""
    path = tmp_path / "file"
    path.write_bytes(b"text")
    for evict, wait, why in (("300", "3600000", "too few|fewer copies"), ("3600000", "1500", "")):
        for _ in range(3):
            ring.start("--evict", evict)
        ring.settle()
        ring.command("put", path)
        at, *others = ring.nodes
        for address in others:
            ring.nodes[address][0].send_signal(signal.SIGSTOP)
        for verb, what in (("put", path), ("get", "file"), ("rm", "file")):
            done = bly("node", verb, what, "--at", at, "--wait", wait, "--patience", "250")
            assert done.status == 2, (verb, done.out)
            assert re.search(why, done.err), (verb, done.err)
        for address in others:
            ring.nodes[address][0].send_signal(signal.SIGCONT)
        ring.settle()
        ring.command("put", path)
        while ring.nodes:
            ring.kill(next(iter(ring.nodes)))


def test_old_state_brings_nothing_back(ring, tmp_path):
    first = ring.start()
    for _ in range(3):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 6, 3000)
    ring.kept(len(ring.copies()), 3)
    folder = ring.kill(first)
    ring.settle()
    for i in range(3):
        files[f"file{i}"].write_bytes(b"newer %d" % i)
        ring.command("put", files[f"file{i}"])
    for i in 3, 4:
        ring.command("rm", f"file{i}")
        del files[f"file{i}"]
    # All that it has of them is older than what the others have.
    ring.start(listen=first, folder=folder)
    ring.settle()
    exchanges = ring.status(first)["exchanges"]
    until(lambda: ring.status(first)["exchanges"] >= exchanges + 2)
    compare(ring, files, tmp_path)
    for i in 3, 4:
        ring.command("get", f"file{i}", status=1)
    names = [line.split(":")[0] for line in ring.command("ls").lines]
    assert sorted(names) == sorted(files)
    compare(ring, files, tmp_path, at=[first])


# ---------------------------------------------------------------- peers that flood

def memory(process):
    """Bytes that a process holds."""
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(l.split()[1]) for l in lines if l.startswith("VmRSS")) * 1024


def test_who_asks_and_does_not_read_hurts_nobody(ring, tmp_path):
    at = wire.address(ring.start())
    files = filled(ring, tmp_path, 1, 1000)
    block = random.Random(1).randbytes(1 << 20)
    digest = hashlib.sha256(block).digest()
    wire.Client(at).put(digest, block)
    greedy = wire.connect(at, timeout=PATIENCE)
    asked = 400
    sending = threading.Thread(target=lambda: [
        greedy.sendall(wire.frame(wire.GET, bytes(8) + digest + b"\1", request=i + 1)) for i in range(asked)])
    sending.start()
    process = next(iter(ring.nodes.values()))[0]
    for _ in range(5):
        compare(ring, files, tmp_path)
        assert memory(process) < 200 << 20  # of 400 MiB that were asked for
    # Who reads late gets all of it: blocks, or that too much was asked for.
    served = 0
    for _ in range(asked):
        _, flags, _, body = wire.receive_frame(greedy)
        assert flags & wire.ANSWER
        assert body[0] == wire.BUSY if flags & wire.ERROR else body[57:] == block
        served += not flags & wire.ERROR
    assert served >= 32
    sending.join()
    compare(ring, files, tmp_path)


def test_crowds_keep_nobody_out(ring, tmp_path):
    at = ring.start()
    files = filled(ring, tmp_path, 1, 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    crowd = []
    try:
        # More than there are places, some with a hello.
        for i in range(700):
            crowd.append(socket.create_connection(wire.address(at), timeout=PATIENCE))
            if i % 2:
                crowd[-1].sendall(wire.HELLO)
        compare(ring, files, tmp_path)
        assert ring.status(at)["connections"] <= 512
        # More than the process may have files.
        limit(ring.nodes[at][0], resource.RLIMIT_NOFILE, 100)
        for s in crowd[:300]:
            s.close()
        for _ in range(200):
            crowd.append(socket.create_connection(wire.address(at), timeout=PATIENCE))
        compare(ring, files, tmp_path)
    finally:
        for s in crowd:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ------------------------------------------------------------------ peers that lie

class Liar(threading.Thread):
    """A node that answers every question with something else."""

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.answers, self.lines = answers, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = self.listener.getsockname()
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.lines.append(s)
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            s.sendall(wire.HELLO)
            wire.receive(s, 40)
            while True:
                kind, _, request, _ = wire.receive_frame(s)
                s.sendall(self.answers(kind, request))
        except (OSError, EOFError):
            s.close()

    def end(self):
        for s in [self.listener, *self.lines]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed by the other side
            s.close()

    def speak(self, at, kind, id=None, v=0):
        """Tell a node that this one is there, or something else."""
        me = wire.descriptor(self.at, v, id)
        s = wire.connect(at, timeout=PATIENCE)
        s.sendall(wire.frame(kind, wire.question(0, me, peers=[me])))
        _, flags, _, body = wire.receive_frame(s)
        s.close()
        return body[0] if flags & wire.ERROR else 0


def lies(chance, ring_peers, told):
    """Answers that are wrong in one way or another, in turn."""
    def answer(kind, request):
        told[0] += 1
        peers = [chance.choice(ring_peers) for _ in range(9)]
        lie = wire.frame(kind, bytes([chance.randrange(6), len(peers)]) + b"".join(peers), request, wire.ANSWER)
        return [
            lie,                                                               # any state, any step
            lie + lie,                                                         # an answer repeated
            wire.frame(kind, b"\1\xff" + peers[0], request, wire.ANSWER),      # more peers than there are bytes
            wire.frame(kind, chance.randbytes(60), request, wire.ANSWER),      # nothing at all
            wire.frame(kind, lie[20:-4], request + 7, wire.ANSWER),            # to another question
            wire.frame(kind, lie[20:-4], request, wire.ANSWER, ring=5),        # of another ring
            lie[:-1] + bytes([lie[-1] ^ 1]),                                   # a sum that is wrong
            struct.pack("<I", 0x7fffffff) + bytes(20),                         # 2 GB
        ][told[0] % 8]
    return answer


def test_liars_lose_no_file(ring, tmp_path):
    nodes = [ring.start() for _ in range(4)]
    ring.settle()
    files = filled(ring, tmp_path, 4, 20000)
    ring.kept(len(ring.copies()), 3)
    chance = random.Random(3)
    # True descriptors, of nodes that are there, that are not, and none.
    peers = [wire.descriptor(wire.address(a)) for a in nodes] + [wire.descriptor(("127.0.0.1", 1))] + [bytes(37)]
    told = [0]
    liars = [Liar(lies(chance, peers, told)) for _ in range(3)]
    for liar in liars:
        for node in nodes:
            assert liar.speak(wire.address(node), wire.NOTIFY, id=chance.getrandbits(64)) == wire.WRONG
            assert liar.speak(wire.address(node), wire.NOTIFY, v=64) == wire.WRONG

    # It is believed that they are there, since they say so; what they say then
    # is not.
    def have_lied():
        for liar in liars:
            for node in nodes:
                assert liar.speak(wire.address(node), wire.NOTIFY) == 0
        return told[0] >= 10
    until(have_lied, lambda: told)
    # Somebody is said to leave who does not.
    line = wire.connect(wire.address(nodes[0]), timeout=PATIENCE)
    for node in nodes[1:]:
        me = wire.descriptor(wire.address(node))
        line.sendall(wire.frame(wire.LEAVING, wire.question(0, me, peers=[me])))
        assert not wire.receive_frame(line)[1] & wire.ERROR
    line.close()
    for liar in liars:
        liar.end()
    ring.settle()
    compare(ring, files, tmp_path)


def test_no_record_stands_under_a_name_that_is_not_its_own(ring, tmp_path):
    at = wire.address(ring.start())
    files = filled(ring, tmp_path, 1, 3000)
    block = hashlib.sha256(files["file0"].read_bytes()).digest()
    name = hashlib.sha256(b"file:file0").digest()
    client = wire.Client(at)

    def refused(digest, data, **how):
        with pytest.raises(wire.Refused) as why:
            client.put_at(at, 0, digest, data, counter=9, replica=0x80, **how)
        return why.value.args[0] == wire.WRONG

    manifest = struct.pack("<H", 4) + b"mine" + struct.pack("<QI", 0, 0)
    for kind, data in (0, b"other bytes"), (1, manifest), (2, b""), (2, manifest[:6]), (3, b""), (255, b""):
        assert refused(block, data, kind=kind)
        assert refused(name, data, kind=kind)
    assert refused(name, struct.pack("<H", 5) + b"file0" + b"more", kind=2)
    compare(ring, files, tmp_path)


def test_names_of_nobody_leave_room_for_others(ring, tmp_path):
    first = ring.start()
    files = filled(ring, tmp_path, 1, 1000)
    s = wire.connect(wire.address(first), timeout=PATIENCE)
    names = [(port, v) for port in range(1, 1100) for v in range(64)]
    for i in range(0, len(names), 90):
        peers = [wire.descriptor(("127.0.0.9", port), v) for port, v in names[i:i + 90]]
        s.sendall(wire.frame(wire.PING, wire.question(peers=peers)))
        assert not wire.receive_frame(s)[1] & wire.ERROR
    s.close()
    ring.start()
    ring.start()
    ring.settle()
    compare(ring, files, tmp_path)


# --------------------------------------------------------------------------- clocks

def test_clocks_that_jump(ring, tmp_path):
    library = BUILD / "tests" / "jumping_clock.so"
    if not library.exists():
        pytest.skip("make programs builds what this needs")
    clocks = []
    for i in range(4):
        clocks.append(tmp_path / f"clock{i}")
        clocks[i].write_bytes(bytes(8))
        ring.start(env={**os.environ, "LD_PRELOAD": str(library), "BLY_CLOCK": str(clocks[i])})
    nodes = list(ring.nodes)
    ring.settle()
    files = filled(ring, tmp_path, 4, 5000)
    ring.command("rm", "file0")
    del files["file0"]
    # Two days to both sides.
    before = {a: ring.status(a)["exchanges"] for a in nodes}
    for clock, days in zip(clocks, (2, -2, 0, 20000)):
        with clock.open("r+b", buffering=0) as f:  # in place: a node that reads an empty one is killed
            f.write(struct.pack("<q", days * 86400))
    until(lambda: all(ring.status(a)["exchanges"] >= before[a] + 3 for a in nodes))
    ring.settle()
    compare(ring, files, tmp_path)
    ring.command("get", "file0", status=1)
    shutil.rmtree(ring.kill(nodes[2]))
    ring.settle()
    compare(ring, files, tmp_path)
    ring.command("put", files["file1"])


# -------------------------------------------------------------------- a network split

SIDES = "10.77.0.1", "10.77.0.2"


class Split:
    """Two network namespaces with a cable between them."""

    def __init__(self):
        self.holders = [subprocess.Popen(["unshare", "-n", "sleep", "3600"]) for _ in SIDES]
        self.inside = [["nsenter", "-t", str(h.pid), "-n"] for h in self.holders]

    def ip(self, side, *words):
        return subprocess.run([*self.inside[side], "ip", *words], capture_output=True, text=True)

    def plug(self):
        """None, or why not."""
        mine = os.stat("/proc/self/ns/net").st_ino
        for h in self.holders:
            until(lambda: h.poll() is not None or os.stat(f"/proc/{h.pid}/ns/net").st_ino != mine)
            if h.poll() is not None:
                return "no network namespaces here"
        done = self.ip(0, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", str(self.holders[1].pid))
        if done.returncode:
            return "no veth here"
        for side, own in enumerate(SIDES):
            for words in (["link", "set", "lo", "up"], ["addr", "add", f"{own}/32", "dev", "lo"],
                          ["addr", "add", f"10.78.0.{side + 1}/24", "dev", f"v{side}"],
                          ["link", "set", f"v{side}", "up"]):
                assert self.ip(side, *words).returncode == 0
        return self.join()

    def join(self):
        for side, own in enumerate(SIDES):
            done = self.ip(side, "route", "replace", SIDES[1 - side], "via", f"10.78.0.{2 - side}", "src", own)
            assert done.returncode == 0, done.stderr
            self.ip(side, "neigh", "del", f"10.78.0.{2 - side}", "dev", f"v{side}")

    def cut(self):
        """Packets go to a card that nobody has: silence, not an error."""
        for side in 0, 1:
            done = self.ip(side, "neigh", "replace", f"10.78.0.{2 - side}", "lladdr", "02:00:00:00:00:99",
                           "dev", f"v{side}", "nud", "permanent")
            assert done.returncode == 0, done.stderr

    def close(self):
        for h in self.holders:
            h.kill()
            h.wait()


def test_a_ring_that_falls_apart_and_heals(tmp_path):
    if os.geteuid() or not all(shutil.which(p) for p in ("unshare", "nsenter", "ip")):
        pytest.skip("network namespaces need root, util-linux and iproute2")
    net = Split()
    # Three copies, and two nodes on the smaller side: the larger one has at least one.
    ring = Ring(tmp_path, patience=750)
    try:
        why = net.plug()
        if why:
            pytest.skip(why)
        sides = [[], []]
        for i in range(6):
            side = int(i % 3 == 2)
            sides[side].append(ring.start(listen=f"{SIDES[side]}:{7001 + i}", inside=net.inside[side]))
        ring.settle(inside=net.inside[0])
        files = filled(ring, tmp_path, 4, 20000, inside=net.inside[0])
        ring.kept(len(ring.copies()), 3)

        net.cut()
        # Fewer than half can neither take a file nor say what is there.
        path = tmp_path / "refused"
        path.write_bytes(b"never")
        refused = [subprocess.Popen([*net.inside[1], PROGRAM, "node", verb, what, "--patience", "100",
                                     "--at", sides[1][0], "--at", sides[1][1]],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                   for verb, what in (("put", path), ("get", "file0"), ("rm", "file1"))]
        # The others go on.
        large = {"at": sides[0], "inside": net.inside[0]}
        ring.settle(sides[0], inside=net.inside[0])
        compare(ring, files, tmp_path, **large)
        files["file0"].write_bytes(b"newer")
        ring.command("put", files["file0"], **large)
        ring.command("rm", "file1", **large)
        del files["file1"]
        for process in refused:
            said = process.communicate(timeout=PATIENCE)[1]
            assert process.returncode == 2, said

        net.join()
        ring.settle(inside=net.inside[0])
        for side in 0, 1:
            here = {"at": sides[side], "inside": net.inside[side]}
            names = ring.command("ls", **here).lines
            assert sorted(n.split(":")[0] for n in names) == sorted(files)
            compare(ring, files, tmp_path, **here)
            ring.command("get", "file1", status=1, **here)
    finally:
        ring.close()
        net.close()
