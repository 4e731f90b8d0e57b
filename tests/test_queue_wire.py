"""bloomery traffic queue --tun: a queue between namespaces, with real
senders."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
import queue_wire  # noqa: E402

FULL = os.environ.get("BLY_FULL") == "1"


def possible():
    """Why there can be no such queue here, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    tried = subprocess.run(
        ["unshare", "-n", "sh", "-c", "ip tuntap add t0 mode tun"],
        capture_output=True, timeout=PATIENCE)
    return "no TUN devices in namespaces here" if tried.returncode else None


pytestmark = pytest.mark.skipif(possible() is not None, reason=str(possible()))


@pytest.mark.skipif(not shutil.which("iperf3"), reason="no iperf3")
def test_who_does_not_yield_is_held_back():
    """Eight flows of TCP and one of UDP that sends four fair shares, behind
    both queues at once. How much each gets depends on the time that the
    processes get, so only the long form, alone on a machine, has the claim of
    the page; this one looks at who drops what."""
    seconds = 20 if FULL else 3
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        rows = [both.submit(queue_wire.run, PROGRAM, seconds, *argv) for argv
                in (["--tail"], ["--rehash", seconds, "--warmup", seconds / 2])]
        tail, sfb = (r.result(PATIENCE) for r in rows)
    assert sfb["early"] + sfb["penalty"] > 0 and tail["early"] == 0
    assert sfb["rehashes"] >= 1 and tail["rehashes"] == 0
    assert min(tail["taken"], sfb["taken"], sfb["least"], tail["least"]) > 0
    if FULL:
        assert sfb["times"] < 2 and tail["times"] > 3, (tail, sfb)
        assert min(tail["use"], sfb["use"]) > 0.9, (tail, sfb)


# A namespace with the queue, a way out and a socket that looks at it; ORDERS
# is a script with the device's name in it.
ALONE = """
import json, os, signal, socket, struct, subprocess, sys, time
program, orders, patience = sys.argv[1:]
def ip(*argv):
    subprocess.run(["ip", *argv], check=True)
ip("link", "add", "out0", "type", "veth", "peer", "name", "far0")
for name in "out0", "far0":
    ip("link", "set", name, "up")
ip("addr", "add", "10.8.0.1/24", "dev", "out0")
ip("addr", "add", "fd08::1/64", "dev", "out0", "nodad")
far = "02:00:00:00:00:02"
ip("link", "set", "far0", "address", far)
ip("neigh", "add", "10.8.0.2", "lladdr", far, "dev", "out0")
ip("neigh", "add", "fd08::2", "lladdr", far, "dev", "out0")
seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
seen.bind(("far0", 0))
seen.settimeout(float(patience))
child = None
def queue(*argv):
    global child
    child = subprocess.Popen(
        [program, "traffic", "queue", "--json", "--tun", "fair0", "--out",
         "out0", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    line = child.stderr.readline()
    assert "fair0" in line, line
def ended(how=signal.SIGTERM):
    if how:
        child.send_signal(how)
    out, err = child.communicate(timeout=float(patience))
    links = [name for _, name in socket.if_nameindex()]
    return {"status": child.returncode, "told": json.loads(out), "err": err,
            "left": "fair0" in links}
def arrived(n):
    out = []
    while len(out) < n:
        packet = seen.recv(65536)
        if packet[9:10] == b"\\x11" and packet[0] >> 4 == 4 and \\
                packet[22:24] == b"\\x10\\x10":
            out.append(packet[28:].decode())
        if packet[6:7] == b"\\x11" and packet[0] >> 4 == 6:
            out.append(packet[48:].decode())
    return out
exec(orders)
"""


def alone(orders):
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", ALONE, PROGRAM, orders,
         str(PATIENCE)],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_packets_of_both_versions_come_out_in_order():
    told = alone("""
queue("--seed", "1")
ip("route", "add", "10.8.0.2/32", "dev", "fair0", "src", "10.8.0.1")
ip("route", "add", "fd08::2/128", "dev", "fair0", "src", "fd08::1")
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
out = []
for i in range(50):
    four.sendto(b"%d" % i, ("10.8.0.2", 4112))
out += arrived(50)
for i in range(9):
    six.sendto(b"%d" % i, ("fd08::2", 4112))
print(json.dumps([out, arrived(9), ended()]))
""")
    four, six, end = told
    assert four == [str(i) for i in range(50)]
    assert six == [str(i) for i in range(9)]
    assert end["status"] == 0 and not end["left"]
    assert end["told"]["taken"] >= 59 and end["told"]["early"] == 0


def test_a_rate_that_is_given():
    """100 packets of 1,000 bytes at 80 kb/s take ten seconds, and those that
    find 20 waiting are dropped. None comes earlier than that, however long
    others take."""
    told = alone("""
queue("--rate", "80k", "--tail", "--limit", "20")
ip("route", "add", "10.8.0.2/32", "dev", "fair0", "src", "10.8.0.1")
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start = time.monotonic()
for i in range(100):
    four.sendto(b"%972d" % i, ("10.8.0.2", 4112))
got = arrived(5)
spent = time.monotonic() - start
print(json.dumps([got, spent, ended()]))
""")
    got, spent, end = told
    assert [int(x) for x in got] == [0, 1, 2, 3, 4]
    assert spent > 0.39  # the fifth behind four others
    assert end["told"]["full"] > 0 and end["status"] == 0
    assert end["told"]["taken"] + end["told"]["full"] == end["told"]["packets"]


def test_an_interface_that_vanishes():
    told = alone("""
queue()
ip("route", "add", "10.8.0.2/32", "dev", "fair0", "src", "10.8.0.1")
seen.close()
ip("link", "del", "out0")
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    four.sendto(b"x", ("10.8.0.2", 4112))
except OSError:
    pass
print(json.dumps(ended(None)))
""")
    assert told["status"] == 2 and "out0" in told["err"]
    assert not told["left"]


def test_a_device_that_vanishes():
    told = alone("""
queue()
ip("link", "del", "fair0")
print(json.dumps(ended(None)))
""")
    assert told["status"] == 2 and "fair0" in told["err"] and not told["left"]


def test_loopback_takes_larger_packets_than_a_device():
    child = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
         PROGRAM, "traffic", "queue", "--tun", "fair0", "--out", "lo",
         "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = child.stderr.readline()
    assert "fair0" in line, line
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE)
    assert json.loads(out)["packets"] >= 0, err


def test_wrong_calls(trouble):
    for argv, says in (["--tun", "x"], "--out"), (["--out", "lo"], "--tun"), \
            (["--tail"], "--tun"), (["--rehash", "x"], "--rehash"), \
            (["--tun", "x", "--out", "no-such"], "no-such"), \
            (["--tun", "a/b", "--out", "lo"], "a/b"), \
            (["--tun", "lo", "--out", "lo"], "another name"), \
            (["--tun", "x", "--out", "lo", "--flows", 3], "--flows"), \
            (["--rehash", 10, "--warmup", 11], "--warmup"), \
            (["--tun", "x", "--out", "lo", "c.pcap"], "CAPTURE"):
        trouble("traffic", "queue", *argv, says=says)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.parametrize("lacking", ["net_admin", "net_raw"])
def test_no_permission(lacking):
    done = subprocess.run(
        ["setpriv", f"--bounding-set=-{lacking}", f"--inh-caps=-{lacking}",
         PROGRAM, "traffic", "queue", "--tun", "bly-denied", "--out", "lo"],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert f"CAP_{lacking.upper()}" in done.stderr, done.stderr
