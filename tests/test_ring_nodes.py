"""bloomery node: processes that join, fail, come back, leave, and keep files.

A short form of the long test (BLY_FULL=1: 20 processes, a gigabyte, two
neighbours killed every 20 seconds for ten minutes). All on loopback, ports
chosen by the kernel.
"""
import hashlib
import json
import os
import random
import shutil
import socket
import struct
import threading
import time

import pytest

from conftest import PATIENCE
from rings import Ring, compare, filled, run, until

FULL = os.environ.get("BLY_FULL")


@pytest.fixture
def ring(tmp_path):
    made = Ring(tmp_path)
    yield made
    made.close()


def test_keeps_files_through_failures_and_leaves(ring, tmp_path):
    """What docs/ring.md begins with, and then some."""
    ring.start()
    for _ in range(4):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 4, 1500000)
    names = [line["file"] for line in [json.loads(l) for l in ring.command("ls", "--json").lines]]
    assert sorted(names) == sorted(files)
    records = len(ring.copies())
    ring.kept(records, 3)

    # Two neighbours die at once; their copies are made again by the others.
    order = ring.order()
    for address in order[1:3]:
        shutil.rmtree(ring.kill(address))
    ring.settle()
    compare(ring, files, tmp_path)
    ring.kept(records, 3)

    # One comes back empty, under its old address.
    ring.start(listen=order[1])
    ring.settle()
    ring.kept(records, 3)
    compare(ring, files, tmp_path)

    # And one leaves: nothing is lost, though nobody waits.
    ring.leave(order[3])
    compare(ring, files, tmp_path)
    ring.settle()
    ring.kept(records, 3)

    ring.command("rm", "file0")
    ring.command("get", "file0", status=1)
    ring.command("rm", "file0", status=1)
    ring.command("put", files["file0"])
    compare(ring, {"file0": files["file0"]}, tmp_path)


def test_restarts_with_its_old_folder(ring, tmp_path):
    first = ring.start()
    files = filled(ring, tmp_path, 2, 100000)
    ring.start()
    ring.start()
    ring.settle()
    folder = ring.kill(first)
    ring.settle()
    ring.start(listen=first, folder=folder)
    ring.settle()
    compare(ring, files, tmp_path)


def test_virtual_nodes_are_members_of_their_own(tmp_path):
    ring = Ring(tmp_path)
    try:
        for _ in range(3):
            ring.start("--vnodes", "4")
        ring.settle()
        assert len(ring.order()) == 12
        files = filled(ring, tmp_path, 3, 200000)
        ring.kept(len(ring.copies()), 3)
        compare(ring, files, tmp_path)
    finally:
        ring.close()


def test_damaged_records_are_never_given_out(ring, tmp_path):
    for _ in range(3):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 2, 400000)
    records = len(ring.copies())
    ring.kept(records, 3)
    at = next(iter(ring.nodes))
    folder = ring.nodes[at][1]
    damaged = [path for path in folder.glob("*/*") if len(path.name) == 64]
    assert len(damaged) == records
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)
    compare(ring, files, tmp_path)
    # Started again, too.
    ring.start(listen=at, folder=ring.kill(at))
    ring.settle()
    compare(ring, files, tmp_path)


def test_blocks_of_removed_files_are_reclaimed(tmp_path):
    ring = Ring(tmp_path, patience=750)
    try:
        for _ in range(4):
            ring.start("--reclaim", "1000")
        ring.settle()
        shared, own = random.Random(1).randbytes(1 << 20), random.Random(2).randbytes(1 << 20)

        def put(name):
            """On a busy machine it may take longer than a second, and then say that a block may be gone."""
            def done():
                tried = ring.command("put", tmp_path / name, status=None)
                assert tried.status == 0 or "took so long" in tried.err, tried.err
                return tried.status == 0
            until(done)
            compare(ring, {name: tmp_path / name}, tmp_path)

        for name, data in ("both", shared + own), ("one", shared):
            (tmp_path / name).write_bytes(data)
            put(name)
        digests = [hashlib.sha256(data).hexdigest() for data in (shared, own)]
        until(lambda: all(ring.copies().get(d) == 3 for d in digests), ring.copies)
        ring.command("rm", "both")
        until(lambda: digests[1] not in ring.copies(), ring.copies)
        until(lambda: ring.copies().get(digests[0]) == 3, ring.copies)
        until(lambda: not [f for _, folder in ring.nodes.values() for f in folder.glob("??") if not any(f.iterdir())])
        compare(ring, {"one": tmp_path / "one"}, tmp_path)
        # And back: of two puts at a time each claims what it shares.
        ring.command("rm", "one")
        put("both")
        rounds = {a: ring.status(a)["exchanges"] for a in ring.nodes}
        until(lambda: all(ring.status(a)["exchanges"] >= n + 6 for a, n in rounds.items()))
        compare(ring, {"both": tmp_path / "both"}, tmp_path)
    finally:
        ring.close()


def test_damage_is_found_and_mended_unasked(ring, tmp_path):
    for _ in range(3):
        ring.start()
    ring.settle()
    files = filled(ring, tmp_path, 2, 400000)
    folder = next(iter(ring.nodes.values()))[1]
    whole = {path: path.read_bytes() for path in folder.glob("??/*") if len(path.name) == 64}
    for path, data in whole.items():
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    until(lambda: all(path.read_bytes() == data for path, data in whole.items()))
    compare(ring, files, tmp_path)


def test_a_put_over_damage_stores(ring, tmp_path):
    for _ in range(3):
        ring.start("--exchange", "600000")
    ring.settle()
    files = filled(ring, tmp_path, 1, 400000)
    for _, folder in ring.nodes.values():
        for path in folder.glob("??/*"):
            path.write_bytes(path.read_bytes()[:-1])
    ring.command("get", "file0", status=2)
    ring.command("put", files["file0"])
    compare(ring, files, tmp_path)


# --------------------------------------------------------------------- strangers

def test_who_lacks_the_secret_stays_outside(tmp_path):
    key, other = tmp_path / "key", tmp_path / "other"
    run("node", "key", key)
    if "libsodium" in run("node", "status", "-K", key, "1", status=2).err:
        pytest.skip("no libsodium")
    assert oct(key.stat().st_mode & 0o777) == "0o600"
    run("node", "key", key, status=2)
    run("node", "key", other)
    ring = Ring(tmp_path, "-K", key)
    try:
        at = ring.start()
        ring.start()
        ring.settle()
        files = filled(ring, tmp_path, 1, 1500000)
        compare(ring, files, tmp_path)
        assert "--key-file" in run("node", "status", at, status=2).err
        run("node", "status", at, "-K", other, "--patience", "250", status=2)
        run("node", "get", "file0", "--at", at, "-K", other, "--patience", "100", status=2)
        # Another name is another ring.
        assert "another ring" in run("node", "status", at, "-K", key, "--ring", "x", status=2).err
        assert len(ring.order()) == 2
    finally:
        ring.close()


def test_who_is_led_elsewhere_shares_no_key(tmp_path):
    """Somebody in the middle sends a connection for one address to another node: as many copies would be counted
    as addresses, and all be one."""
    key = tmp_path / "key"
    run("node", "key", key)
    if "libsodium" in run("node", "status", "-K", key, "1", status=2).err:
        pytest.skip("no libsodium")
    ring = Ring(tmp_path, "-K", key)
    listener = socket.create_server(("127.0.0.1", 0))

    def carry(a, b):
        try:
            while data := a.recv(4096):
                b.sendall(data)
        except OSError:
            pass  # the other direction has ended

    def lead(at):
        host, port = at.split(":")
        while True:
            try:
                asker, _ = listener.accept()
            except OSError:
                return
            other = socket.create_connection((host, int(port)))
            for pair in (asker, other), (other, asker):
                threading.Thread(target=carry, args=pair, daemon=True).start()

    try:
        at = ring.start()
        threading.Thread(target=lead, args=(at,), daemon=True).start()
        run("node", "status", at, "-K", key)
        middle = "127.0.0.1:%d" % listener.getsockname()[1]
        run("node", "status", middle, "-K", key, "--patience", "250", status=2)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        ring.close()


def hello():
    return b"blyring0" + bytes(32)


def test_hostile_bytes_do_no_harm(ring, tmp_path):
    at = ring.start()
    files = filled(ring, tmp_path, 1, 1000)
    host, port = at.split(":")
    chance = random.Random(5)
    wrongs = [
        b"GET / HTTP/1.1\r\n\r\n" * 5,
        hello() + b"\xff" * 64,
        hello() + struct.pack("<I", 0x7fffffff) + bytes(100),
        hello() + struct.pack("<I", 20) + bytes(20),
        hello() + struct.pack("<I", 8 << 20) + b"\1" + bytes(1000),
        *[hello() + chance.randbytes(200) for _ in range(20)],
    ]
    stay = []
    for wrong in wrongs:
        s = socket.create_connection((host, int(port)), timeout=PATIENCE)
        s.sendall(wrong)
        stay.append(s)
    # Who says nothing keeps nobody else from being served.
    compare(ring, files, tmp_path)
    for s in stay:
        s.close()
    state = ring.status(at)
    until(lambda: ring.status(at)["bad"] >= 15)
    assert state["members"][0]["phase"] == "in"


def test_many_strangers_are_bounded(ring, tmp_path):
    at = ring.start()
    files = filled(ring, tmp_path, 1, 1000)
    host, port = at.split(":")
    crowd = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(300)]
    compare(ring, files, tmp_path)
    assert ring.status(at)["connections"] <= 512
    for s in crowd:
        s.close()


def test_what_is_wrong_is_said(ring, tmp_path):
    assert "not an address" in run("node", "run", "--listen", "nowhere:x", tmp_path / "s", status=2).err
    assert "--copies" in run("node", "run", "--successors", "2", "--copies", "3", tmp_path / "s", status=2).err
    assert "--vnodes" in run("node", "run", "--vnodes", "65", tmp_path / "s", status=2).err
    assert "--at" in run("node", "get", "x", status=2).err
    assert "connect" in run("node", "status", "127.0.0.1:1", status=2).err
    ring.start()
    ring.command("get", "absent", status=1)
    ring.command("ls", status=1)
    ring.command("put", tmp_path / "absent", status=2)


# ----------------------------------------------------------------- the long form

@pytest.mark.skipif(not FULL, reason="ten minutes: BLY_FULL=1")
@pytest.mark.parametrize("how", ["kill", "leave"])
def test_no_file_is_lost(tmp_path, how):
    seconds = int(os.environ.get("BLY_RING_SECONDS", "600"))
    total = int(os.environ.get("BLY_RING_BYTES", str(10**9)))
    ring = Ring(tmp_path)
    try:
        for _ in range(20):
            ring.start()
        ring.settle()
        files = filled(ring, tmp_path, 100, total // 50)
        until = time.monotonic() + seconds
        chance = random.Random(7)
        while time.monotonic() < until:
            began = time.monotonic()
            order = ring.order()
            i = chance.randrange(len(order))
            for address in (order[i], order[(i + 1) % len(order)]):
                if how == "kill":
                    shutil.rmtree(ring.kill(address))
                else:
                    ring.leave(address)
            ring.start(), ring.start()
            time.sleep(max(0, began + 20 - time.monotonic()))
        ring.settle()
        compare(ring, files, tmp_path)
    finally:
        ring.close()
