"""net trace --ask: a question that goes back the way that a packet came, from router to router, between network namespaces."""
import json
import os
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM
from net_namespaces import MarkedChain, network, ones_for_the_way  # noqa: F401

FULL = os.environ.get("BLY_FULL") == "1"
PORT = 7400
BESIDE = [("x1", "r12"), ("x2", "r8"), ("x3", "r8"), ("x3", "r4"), ("x4", "x3")]


class AskedChain(MarkedChain):
    """h - r1 - ... - r12 - g, with routers beside; who traces has no topology and no secret of marks."""

    def __init__(self, net, path, beside=(), routers=12, key=True):
        self.secret = path / "ask.key"
        subprocess.run([PROGRAM, "node", "key", self.secret], check=True, capture_output=True, timeout=PATIENCE)
        self.sealed = ["--ask-key", str(self.secret)] if key else []
        last = f"r{routers}"
        super().__init__(net, routers, path, beside=beside, own=self.own,
                         trace=["--ask", f"[fd00:{routers + 1:x}::1]:{PORT}", *self.sealed])
        self.last = last

    def rest(self):
        """Nobody's marks change while a question is under way."""
        super().rest()
        while len(self.told.read_bytes().splitlines()) < self.seen():
            assert self.tracer.poll() is None, self.tracer.stderr.read()
            time.sleep(0.005)

    def own(self, name):
        args = ["--listen", f"[::]:{PORT}", *self.sealed]
        for a, b, _ in self.net.links:
            other = b if a == name else a
            if name in (a, b) and other not in "gh":
                args += ["--neighbour", f"{other}=[{self.net.address(other, name)}]:{PORT}"]
        return args

    def ask(self, *args, packet=None, check=False):
        """About a packet in a file, from g."""
        done = self.net.within("g", PROGRAM, "net", "trace", packet, "--name", "g", "--ask",
                               f"[{self.net.address(self.last, 'g')}]:{PORT}", "--json", *self.sealed, *args, check=check)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def ways(told):
    """Every way that was found, the nearest router first: a row stands below the one that asked it."""
    out, way = [], []
    for row in told["way"]:
        way = way[:row["hops"] - 1] + [row["router"]]
        assert row["before"] == (way[-2] if len(way) > 1 else None)
        if row["last"]:
            out.append(way)
    return out


def test_the_whole_way_is_rebuilt(network, tmp_path):
    """Marks of one bit set and one cleared: written over or not, the way is there, with every new secret."""
    tries = 200 if FULL else 16
    chain = AskedChain(network, tmp_path, BESIDE)
    ones = ones_for_the_way(256, 256)
    came, counts = chain.tries(tries, lambda i: ones if i % 2 else b"")
    way = [f"r{i}" for i in range(12, 0, -1)]
    whole = [t for t in came.values() if any(w[:12] == way for w in ways(t))]
    print(len(whole), "of", len(came), "whole;", sum(len(t["way"]) for t in came.values()) / len(came), "routers found;",
          sum(t["certain"] for t in came.values()), "certain")
    assert len(came) >= tries - 3
    assert len(whole) == len(came)
    # Most have no mark of their own left whole, which is where a search that stops at a gap ends.
    assert all(t["silent"] == t["busy"] == t["cut"] == 0 for t in came.values())
    # Those beside match by chance: two bits of two, or what is left of them.
    others = sum(len(t["way"]) - 12 for t in came.values())
    assert others < len(came) * 4
    assert sum(c["questions"] for c in counts.values()) >= len(came) * 12


CATCH = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86dd))
s.bind((sys.argv[1], 0))
print(flush=True)
while True:
    packet = s.recv(2000)
    if packet[6] == 0 and len(packet) > 100:  # options hop by hop
        open(sys.argv[2], "wb").write(packet)
        break
"""


def catch(chain, path):
    """One packet with marks, as g gets it."""
    process = chain.net.start("g", "/usr/bin/python3", "-c", CATCH, f"g{chain.last}", path, stdout=subprocess.PIPE)
    process.stdout.readline()
    print(file=chain.sender.stdin, flush=True)
    chain.sender.stdout.readline()
    process.wait(timeout=PATIENCE)
    chain.rest()


def found(told, state="found"):
    return [row["router"] for row in told["way"] if row["state"] == state]


def test_past_those_who_do_not_answer(network, tmp_path):
    """A router is stopped, then gone: its neighbours are asked in its name. Its marks, which nobody knows then, may have been
    written over those of one behind it, once in some twenty packets; with another secret they are not."""
    chain = AskedChain(network, tmp_path, [("x1", "r4"), ("x1", "r2")], routers=6)
    # Another way to the neighbours of the one that goes.
    network.route("r4", "fd00:3::/64", "x1")
    network.route("x1", "fd00:3::/64", "r2")
    network.route("r2", "fd00:8::/64", "x1")
    all_ = ["r6", "r5", "r4", "r3", "r2", "r1"]
    r3, packet = chain.routers.running["r3"], tmp_path / "packet"
    for _ in range(8):
        catch(chain, packet)
        status, told, said = chain.ask(packet=packet)
        assert status == 0, said
        assert set(found(told)) - {"x1"} == set(all_)
        # Everybody has told who his neighbours are.
        r3.send_signal(19)
        status, told, _ = chain.ask(packet=packet)
        assert status == 0 and found(told, "silent") == ["r3"] and not told["certain"]
        r3.send_signal(18)
        if set(found(told)) - {"x1"} == set(all_) - {"r3"}:
            break
        chain.new_key()
        for process in chain.processes:
            process.send_signal(1)
        for process in chain.processes:
            assert "new marks" in process.stderr.readline()
    assert set(found(told)) - {"x1"} == set(all_) - {"r3"}
    rows = {row["router"]: row for row in told["way"]}
    assert rows["r2"]["before"] == "r3" and rows["r3"]["before"] == "r4"
    r3.kill()
    r3.wait()
    status, told, _ = chain.ask(packet=packet)
    assert found(told, "silent") == ["r3"] and {"r2", "r1"} <= set(found(told))
    # Two in a row: nobody knows on, and that is said.
    chain.routers.running["r2"].kill()
    chain.routers.running["r2"].wait()
    status, told, _ = chain.ask(packet=packet)
    assert status == 0 and set(found(told, "silent")) == {"r2", "r3"} and "r1" not in found(told)
    # The first one is gone: there is nobody to ask.
    chain.routers.running["r6"].kill()
    chain.routers.running["r6"].wait()
    status, told, said = chain.ask("--patience", "2000", packet=packet)
    assert status == 2 and told is None and len(said.splitlines()) == 1


def test_questions_that_are_wrong(network, tmp_path):
    """Without the secret, of another node, about nothing; many at once, and bytes that are no question."""
    chain = AskedChain(network, tmp_path, routers=3)
    packet = tmp_path / "packet"
    catch(chain, packet)
    assert chain.ask(packet=packet)[0] == 0
    sealed, chain.sealed = chain.sealed, []
    status, told, said = chain.ask("--patience", "2000", packet=packet)
    assert status == 2 and told is None and said
    chain.sealed = sealed
    # Who asks must be the neighbour to whom the packet went.
    assert chain.ask("--name", "nobody", packet=packet)[0] == 1
    # Marks of others: nobody knows it.
    forged = bytearray(packet.read_bytes())
    at = forged.index(0x3e, 40) + 4 + 32
    for i in range(at, at + 32):
        forged[i] ^= 0xff
    (tmp_path / "forged").write_bytes(forged)
    status, told, _ = chain.ask(packet=tmp_path / "forged")
    assert status == 1 and told["way"] == [] and told["found"] == 0
    for bad in b"", b"x", packet.read_bytes()[:50], packet.read_bytes()[40:]:
        (tmp_path / "bad").write_bytes(bad)
        status, told, said = chain.ask(packet=tmp_path / "bad")
        assert status == 2 and "not a packet" in said
    assert "neither" in chain.ask(packet=tmp_path / "missing")[2]
    assert "sizes" in chain.ask("--way-bits", "100", packet=packet)[2] or chain.ask("--way-bits", "100", packet=packet)[0] == 2
    assert "--topology" in chain.ask("--topology", "ring:3", packet=packet)[2]
    # More at once than one router takes: each is answered, or says that there is too much to do.
    many = [chain.net.start("g", PROGRAM, "net", "trace", packet, "--name", "g", "--ask",
                            f"[{chain.net.address('r3', 'g')}]:{PORT}", "--json", *sealed, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True) for _ in range(24)]
    for process in many:
        out, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and json.loads(out)["way"] or "too many questions" in said
    # Bytes without end, from who has no secret.
    flood = ("import socket, sys\ns = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
             "try:\n    for i in range(2000): s.sendall(bytes(range(256)) * 64)\nexcept OSError:\n    pass\n")
    chain.net.within("g", "/usr/bin/python3", "-c", flood, chain.net.address("r3", "g"), PORT)
    status, told, _ = chain.ask(packet=packet)
    assert status == 0 and found(told) == ["r3", "r2", "r1"] and told["certain"] in (True, False)
    counts = chain.routers.stop()
    assert counts["r3"]["questions"] >= 20


@pytest.mark.parametrize("args,says", [
    (["router", "--name", "a", "--link", "lo=b", "--neighbour", "b=[::1]:1"], "--listen"),
    (["router", "--name", "a", "--link", "lo=b", "--listen", "0", "--neighbour", "c=[::1]:1"], "NAME of a --link"),
    (["router", "--name", "a", "--link", "lo=b", "--listen", "0", "--ask-key", "missing"], "missing"),
    (["trace", "lo", "--ask", "[::1]:1"], "--name"),
    (["trace", "lo", "--ask", "nowhere", "--name", "g"], "nowhere"),
])
def test_what_is_wrong_is_said(network, args, says):
    network.node("a")
    done = network.within("a", PROGRAM, "net", *args, check=False)
    assert done.returncode == 2 and says in done.stderr
    assert len(done.stderr.splitlines()) == 1
