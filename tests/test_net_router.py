"""net router and net trace, between network namespaces: real pings and packets."""
import json
import math
import shutil
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM
from net_namespaces import IP, MarkedChain, Routers, false_drops, mark_left, network, ones_for_the_way, run, sweep  # noqa: F401

SENDER = """
import socket, sys
to, times, options = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
if options:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, options)
for i in range(times):
    s.sendto(b"%d" % i, (to, 7000))
"""


def send(net, node, to, times=1, options=b""):
    net.within(node, "/usr/bin/python3", "-c", SENDER, to, times, options.hex())


def chain(net):
    """h - a - b - c - g"""
    for name in "habcg":
        net.node(name)
    for a, b in zip("habc", "abcg"):
        net.link(a, b)
    net.route("h", None, "a")
    net.route("g", None, "c")
    for node, to, via in ("a", 3, "b"), ("a", 4, "b"), ("b", 4, "c"), ("b", 1, "a"), ("c", 1, "b"), ("c", 2, "b"):
        net.route(node, f"fd00:{to}::/64", via)
    return "edge h a\nedge a b\nedge b c\nedge c g\nedge a x\nedge b y\nedge c z\n"


def trace(net, path, *args):
    process = net.start("g", PROGRAM, "net", "trace", "gc", "--name", "g", "--topology", path / "net.txt", "--json",
                        "--seconds", PATIENCE, *args, stdout=subprocess.PIPE, text=True)
    return process


def traced(net, process, how):
    """Packets are sent until the tracer, which may not listen yet, has one."""
    while process.poll() is None:
        how()
        time.sleep(0.2)
    return [json.loads(line) for line in process.communicate(timeout=PATIENCE)[0].splitlines()]


def test_pings_arrive_and_their_way_is_found(network, tmp_path):
    if not shutil.which("ping"):
        pytest.skip("no ping here (iputils-ping)")
    (tmp_path / "net.txt").write_text(chain(network))
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    (tmp_path / "key").chmod(0o600)
    routers = Routers(network, "abc", "-K", tmp_path / "key")
    there = network.address("g", "c")
    # One by one: of several, ping does not wait for those that are late.
    ping = ["ping", "-6", "-c", "1", "-W", str(PATIENCE)]
    for _ in range(5):
        assert "1 received" in network.within("h", *ping, there).stdout
    found = traced(network, trace(network, tmp_path, "-K", tmp_path / "key"), lambda: send(network, "h", there))[0]
    assert found["way"] == ["c", "b", "a"] and found["farthest"] == "a" and found["hops"] == 3
    # Who lacks the secret of the marks finds nobody, or the wrong ones.
    other = traced(network, trace(network, tmp_path), lambda: send(network, "h", there))[0]
    assert other["way"] != ["c", "b", "a"]
    # A hop limit is still one, and says where it ended; a packet that does not fit is too big.
    assert "Time exceeded" in network.within("h", *ping, "-t", "2", there, check=False).stdout
    assert "too big" in network.within("h", *ping, "-s", "1440", there, check=False).stdout
    counts = routers.stop()
    assert counts["b"]["expired"] == 1 and counts["a"]["too_big"] == 1
    assert all(c["loop"] == 0 and c["bad"] == 0 for c in counts.values())


def test_a_sender_who_begins_with_ones_is_found_too(network, tmp_path):
    (tmp_path / "net.txt").write_text(chain(network))
    routers = Routers(network, "abc", "--bits", "64", "--set", "2", "--way-set", "2")
    # No loop marks, or the first router would take them for its own; ones for the way.
    option = bytes([0x3e, 2 + 8 + 32, 0, 8]) + bytes(8) + b"\xff" * 32
    header = bytes([0, (2 + len(option) + 2) // 8 - 1]) + option + b"\x01\x00"
    there = network.address("g", "c")
    process = trace(network, tmp_path, "--bits", "64", "--set", "2", "--way-set", "2")
    found = traced(network, process, lambda: send(network, "h", there, 1, header))[0]
    assert {"a", "b", "c"} <= set(found["way"]) and len(found["way"]) < 7
    routers.stop()


def test_a_loop_of_four_is_found_after_one_round(network):
    for name in "habcd":
        network.node(name)
    for a, b in ("h", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"):
        network.link(a, b)
    network.route("h", None, "a")
    for node, via in zip("abcd", "bcda"):
        network.route(node, "fd99::/64", via)
    routers = Routers(network, "abcd")
    # In pieces, so that no queue of a slow machine runs over.
    for _ in range(20):
        send(network, "h", "fd99::1", 50)
        routers.drain()
    counts = routers.stop()
    assert counts["a"]["loop"] == 1000
    assert [counts[r]["sent"] for r in "abcd"] == [1000] * 4


def test_packets_that_are_wrong(network):
    chain(network)
    routers = Routers(network, "abc")
    there = network.address("g", "c")
    short = bytes([0, 0, 0x3e, 2, 0, 0, 1, 0])          # our option, of another length
    other = bytes([0, 0, 0x1e, 2, 9, 9, 1, 0])          # not ours
    send(network, "h", there, 3, short)
    send(network, "h", there, 2, other)
    counts = routers.stop()
    assert counts["a"]["bad"] == 3 and counts["a"]["sent"] >= 2
    assert counts["c"]["bad"] == 0 and counts["c"]["sent"] >= 2


def test_an_interface_that_vanishes(network):
    chain(network)
    routers = Routers(network, "a")
    network.within("a", "ip", "link", "del", "dev", "ab")
    assert "ab is gone" in routers.running["a"].stderr.readline()
    network.within("a", "ip", "link", "del", "dev", "ah")
    assert "ah is gone" in routers.running["a"].stderr.readline()
    # Nothing is left to forward on: it ends by itself, and counts what there was.
    out, _ = routers.running["a"].communicate(timeout=PATIENCE)
    assert json.loads(out)["name"] == "a"


def test_who_would_forward_twice_is_refused(network):
    network.node("a")
    network.node("b")
    network.link("a", "b")
    network.within("a", "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
    done = network.within("a", PROGRAM, "net", "router", "--name", "a", "--link", "ab=b", check=False)
    assert done.returncode == 2 and "forwarding=0" in done.stderr


@pytest.mark.parametrize("args,says", [
    (["router", "--link", "lo=x"], "--name"),
    (["router", "--name", "a"], "--link"),
    (["router", "--name", "a", "--link", "lo"], "IFACE=NEIGHBOUR"),
    (["router", "--name", "a", "--link", "nowhere0=b"], "no such interface"),
    (["router", "--name", "a", "--link", "lo=b", "--bits", "100"], "64, 128"),
    (["trace", "lo", "--name", "x"], "--topology"),
    (["trace", "nowhere0", "--name", "0", "--topology", "ring:3"], "no such interface"),
    (["trace", "lo", "--name", "nobody", "--topology", "ring:3"], "no node nobody"),
])
def test_what_is_wrong_is_said(network, args, says):
    network.node("a")
    done = network.within("a", PROGRAM, "net", *args, check=False)
    assert done.returncode == 2 and says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nobody_came(network):
    network.node("a")
    network.within("a", "ip", "link", "set", "dev", "lo", "up")
    done = network.within("a", PROGRAM, "net", "trace", "lo", "--name", "0", "--topology", "ring:3", "--seconds", "1",
                          check=False)
    assert done.returncode == 1 and done.stdout == ""


def test_drops_without_a_loop_and_the_way_back_are_as_computed(network, tmp_path):
    """16 routers, other marks for every packet: 4.5 and 4.7, half of the packets from a sender who begins with ones."""
    tries, bits = 160, 128
    chain = MarkedChain(network, 16, tmp_path, "--bits", bits, "--set", "4")
    ones = ones_for_the_way(bits, 256)
    came, counts = chain.tries(tries, lambda i: ones if i % 2 else b"")
    dropped = sum(c["loop"] for c in counts.values())
    # Nothing is lost that the marks did not drop, and nothing comes twice.
    assert len(came) + dropped == tries
    p = false_drops(bits, 4, 16)
    assert abs(dropped - p * tries) < 5 * math.sqrt(p * (1 - p) * tries)
    for honest in True, False:
        mine = [t for i, t in came.items() if (i % 2 == 0) == honest]
        left, q = sum("r1" in t["left"] for t in mine), mark_left(256, 1, 15)
        assert abs(left - q * len(mine)) < 5 * math.sqrt(q * (1 - q) * len(mine)), honest
        # The last router's mark is always there; the way back never leaves the chain.
        assert all(t["way"][0] == "r16" for t in mine)


def test_what_a_killed_test_has_left_is_swept(network):
    network.node("a")
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = f"bly{gone.pid}-left"
    run(IP, "netns", "add", left)
    try:
        asleep = subprocess.Popen([IP, "netns", "exec", left, "sleep", "600"])
        while str(asleep.pid) not in run(IP, "netns", "pids", left).stdout.split():
            time.sleep(0.01)
        sweep()
        assert asleep.wait(timeout=PATIENCE) == -9
        names = run(IP, "netns", "list").stdout.split()
        assert left not in names
        assert network.space("a") in names
    finally:
        run(IP, "netns", "del", left, check=False)
