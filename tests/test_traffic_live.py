"""bloomery traffic flows on an interface, shown on a terminal, and the picture
of flows over time."""

import ipaddress
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM
from test_traffic_command import capture, ether, ip4, udp

pytestmark = pytest.mark.skipif(
    "without libpcap" in subprocess.run(
        [PROGRAM, "traffic", "flows", "x"], capture_output=True,
        text=True, timeout=PATIENCE).stderr, reason="no libpcap")

# Runs the command on a terminal of 12 lines and 80 columns, in a namespace of
# its own, with two senders: many small packets, and few large ones. A step is
# what a picture has to have, and what is typed then.
ON_A_TERMINAL = """
import fcntl, json, os, pty, select, signal, socket, struct, subprocess, sys
import termios, time
program, steps, term = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
patience = float(sys.argv[4])
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 80, 0, 0))
before = termios.tcgetattr(slave)
# Unanswered packets would be answered by ICMP.
sink = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for i, s in enumerate(sink):
    s.bind(("127.0.0.1", 6000 + i))
child = subprocess.Popen(
    [program, "traffic", "flows", "-i", "lo", "--threshold", "1", "--key",
     "5tuple", "--interval", "0.3"], stdin=slave, stdout=slave, stderr=slave,
    env={**os.environ, "TERM": term}, start_new_session=True)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("127.0.0.1", 5555))
out, pictures, end = b"", [], time.monotonic() + patience
while child.poll() is None and time.monotonic() < end:
    sender.sendto(bytes(1000), ("127.0.0.1", 6000))
    for _ in range(3):
        sender.sendto(bytes(10), ("127.0.0.1", 6001))
    while select.select([master], [], [], 0.02)[0]:
        out += os.read(master, 65536)
    last = out.split(b"\\x1b[H")[-1].decode()
    whole = last.endswith("\\x1b[J") or term == "dumb"
    if steps and whole and all(x in last for x in steps[0][0]):
        pictures.append(last)
        if steps[0][1] == "INT":
            child.send_signal(signal.SIGINT)
        else:
            os.write(master, steps[0][1].encode())
        out = b""
        steps.pop(0)
while select.select([master], [], [], 0.1)[0]:
    out += os.read(master, 65536)
same = termios.tcgetattr(slave)[:4] == before[:4]
child.kill()
print(json.dumps({"status": child.wait(), "pictures": pictures, "same": same,
                  "rest": out.decode(), "left": steps}))
"""


def on_a_terminal(steps, term="xterm"):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up || exit 77; exec "$@"',
         "sh", sys.executable, "-c", ON_A_TERMINAL, PROGRAM, json.dumps(steps),
         term, str(PATIENCE / 4)], capture_output=True, text=True,
        timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def table(picture):
    """Rows of numbers, as they stand on the screen."""
    lines = picture.replace("\x1b[K", "").replace("\x1b[J", "").split("\r\n")
    assert len(lines) <= 12 and max(map(len, lines)) < 80
    return [(int(m[1]), int(m[2])) for m in
            (re.match(r" *(\d+) +\d+ +(\d+)  udp ", x) for x in lines) if m]


def test_a_view():
    """Sorted, paused and quit by keys; then the terminal is as it was."""
    both = ["127.0.0.1:6000", "127.0.0.1:6001"]
    told = on_a_terminal([
        (["2 flows, by bytes", *both], "n"),
        (["2 flows, by packets", *both], "r"),
        (["2 flows, by packets", *both], "f"),
        (["2 flows, by flow", *both], "r"),
        (["2 flows, by flow", *both], "p"),
        (["by flow, paused", *both], " b"),
        (["2 flows, by bytes", *both], "q")])
    assert told["status"] == 0 and told["left"] == [], told
    by_bytes, by_packets, least, down, up, paused, last = map(
        table, told["pictures"])
    for rows in by_bytes, by_packets, last:
        assert len(rows) == 2
    assert by_bytes == sorted(by_bytes, reverse=True)
    assert by_packets == sorted(by_packets, key=lambda x: -x[1])
    assert by_packets[0][0] < by_packets[1][0]       # more packets, fewer bytes
    assert least == sorted(least, key=lambda x: x[1])
    assert down[0][1] > down[1][1]                   # reversed: 6001 first
    assert up[0][1] < up[1][1]
    assert paused == up                              # what stood there stays
    assert told["same"]
    assert "\x1b[?1049l" in told["rest"] and " packets, " in told["rest"]
    assert "out of order" not in told["rest"]


def test_a_view_that_is_interrupted():
    told = on_a_terminal([(["2 flows"], "INT")])
    assert told["status"] == 0 and told["same"]
    assert "\x1b[?1049l" in told["rest"]


def test_a_terminal_that_cannot_be_steered():
    """It gets lines."""
    told = on_a_terminal([(["udp 127.0.0.1:5555 > 127.0.0.1:6000"], "INT")],
                         "dumb")
    assert told["status"] == 0 and told["left"] == []
    assert "\x1b" not in told["pictures"][0] + told["rest"]


# ------------------------------------------------------------------- pictures

def test_a_picture(ok, tmp_path):
    """Nine senders for a hundred seconds, the i-th from i * 10 on: the seven
    largest are drawn, and all packets."""
    frames, times = [], []
    for second in range(100):
        for i in range(9):
            if second >= i * 10:
                frames.append(ether(ip4(udp(bytes(900)), 17,
                                        src=f"10.0.0.{i + 1}")))
                times.append(1000 + second + i / 10)
    capture(tmp_path / "c", frames, times=times)
    argv = ("traffic", "flows", "--key", "src", "--threshold", 1, "--interval")
    ok(*argv, 1, "--plot", "p.svg", "c")
    text = (ok.path / "p.svg").read_text()
    assert "all packets" in text and "spans of 1 s" in text
    assert [f"10.0.0.{i}<" in text for i in range(1, 10)] == [True] * 7 \
        + [False] * 2
    # Ten thousand intervals become 157 spans of 64.
    ok(*argv, 0.01, "--plot", "q.svg", "c")
    fine = (ok.path / "q.svg").read_text()
    assert "spans of 0.64 s" in fine and len(fine) < 200_000


def test_pictures_that_cannot_be(trouble, bly, tmp_path):
    capture(tmp_path / "c", [ether(ip4(udp(), 17))])
    trouble("traffic", "flows", "--plot", "p.svg", "c", says="--interval")
    said = bly("traffic", "flows", "--interval", 1, "--plot", "no/p.svg", "c")
    assert said.status == 2 and "no/p.svg" in said.err


# Packets of all sorts on the loopback of a namespace, while the command and
# tcpdump look on. They begin when both have seen a packet to a port that is
# used for nothing else, and end when both have seen one to another such port.
BESIDE_TCPDUMP = """
import os, signal, socket, subprocess, sys, threading, time
program, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
def wait(what):
    while not what():
        if time.monotonic() > end:
            raise SystemExit("waited in vain")
        time.sleep(0.05)
out = open("flows.json", "wb")
flows = subprocess.Popen([program, "traffic", "flows", "-i", "lo", "--json",
                          "--threshold", "1", "--interval", "0.3"], stdout=out)
dump = subprocess.Popen(["tcpdump", "-i", "lo", "-n", "-U", "-B", "16384",
                         "-Z", "root", "-w", "dump.pcap"])
def seen(port, sinks=[], mark=socket.socket(socket.AF_INET,
                                           socket.SOCK_DGRAM)):
    if not sinks or sinks[-1].getsockname()[1] != port:
        sinks.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sinks[-1].bind(("127.0.0.1", port))
    mark.sendto(b"mark %d" % port, ("127.0.0.1", port))
    time.sleep(0.2)
    return (os.path.exists("dump.pcap")
            and b"mark %d" % port in open("dump.pcap", "rb").read()
            and b":%d" % port in open("flows.json", "rb").read())
wait(lambda: seen(7998))
udp = {}
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    sink = socket.socket(family, socket.SOCK_DGRAM)
    sink.bind((host, 7000))
    udp[host] = socket.socket(family, socket.SOCK_DGRAM), sink
    listener = socket.create_server((host, 7001), family=family)
    def serve(listener=listener):
        peer = listener.accept()[0]
        while peer.recv(65536):
            pass
        peer.close()
    server = threading.Thread(target=serve)
    server.start()
    with socket.create_connection((host, 7001)) as c:
        c.sendall(bytes(200_000))
    server.join()
    for i in range(300):                        # the longest are in fragments
        udp[host][0].sendto(bytes(i * i % 5003), (host, 7000))
wait(lambda: seen(7999))
for child in flows, dump:
    child.send_signal(signal.SIGINT)
    child.wait(float(sys.argv[2]))
"""


def flows_of_tcpdump(path):
    """Packets and bytes by addresses, protocol and ports. Of a fragment behind
    the first one there are no ports."""
    data, at, flows = path.read_bytes(), 24, {}
    while at < len(data):
        _, _, n, wire = struct.unpack_from("<IIII", data, at)
        ip = data[at + 30:at + 16 + n]
        at += 16 + n
        if ip[0] >> 4 == 4:
            proto, up, addresses = ip[9], (ip[0] & 15) * 4, (ip[12:16], ip[16:20])
            behind = int.from_bytes(ip[6:8], "big") & 0x1fff
        else:
            proto, up, addresses = ip[6], 40, (ip[8:24], ip[24:40])
            behind = 0
            if proto == 44:
                proto, up = ip[40], 48
                behind = int.from_bytes(ip[42:44], "big") >> 3
        a, b = map(str, map(ipaddress.ip_address, addresses))
        name = {6: "tcp", 17: "udp"}[proto]
        if behind:
            name += f" {a} > {b}"
        else:
            form = "{}:{}" if len(addresses[0]) == 4 else "[{}]:{}"
            ports = struct.unpack_from(">HH", ip, up)
            name += f" {form.format(a, ports[0])} > {form.format(b, ports[1])}"
        packets, nbytes = flows.get(name, (0, 0))
        flows[name] = packets + 1, nbytes + wire
    return flows


def test_as_tcpdump(tmp_path):
    """What is seen on an interface is what tcpdump sees there at the same
    time: flow by flow, packet by packet, byte by byte."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not shutil.which("tcpdump"):
        pytest.skip("no tcpdump")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c",
         'ip link set lo mtu 1500 up || exit 77; exec "$@"', "sh",
         sys.executable, "-c", BESIDE_TCPDUMP, PROGRAM, str(PATIENCE / 4)],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    assert "\n0 packets dropped by kernel" in done.stderr
    *rows, summary = map(json.loads,
                         (tmp_path / "flows.json").read_text().splitlines())
    ours = {}
    for row in rows:
        packets, nbytes = ours.get(row["key"], (0, 0))
        ours[row["key"]] = packets + row["packets"], nbytes + row["bytes"]
    theirs = flows_of_tcpdump(tmp_path / "dump.pcap")
    # Of the marks, one may have seen more than the other.
    for flows in ours, theirs:
        marks = [x for x in flows if x.endswith((":7998", ":7999"))]
        assert len(marks) == 2 and [flows.pop(x) for x in marks]
    assert summary["lost"] == 0
    assert ours == theirs
    assert len(ours) == 8 and sum(x[0] for x in ours.values()) > 1000
    assert summary["other"] == summary["cut"] == summary["bad"] == 0


# More comes than the kernel keeps for a program that is held up.
HELD_UP = """
import signal, socket, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:])
def state():
    with open(f"/proc/{child.pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]
def looks_on():
    # Its socket has an interface, and it waits for packets.
    sockets = [x.split() for x in open("/proc/net/packet").readlines()[1:]]
    return any(x[4] != "0" for x in sockets) and state() == "S"
def wait(what):
    while not what():
        assert child.poll() is None
        time.sleep(0.02)
wait(looks_on)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"first", ("127.0.0.1", 9))
child.send_signal(signal.SIGSTOP)
wait(lambda: state() == "T")
for i in range(1500):
    s.sendto(bytes(30000), ("127.0.0.1", 9))
child.send_signal(signal.SIGCONT)
child.send_signal(signal.SIGINT)
sys.exit(child.wait())
"""


@pytest.mark.parametrize("verb", [
    ["flows", "--threshold", "1"], ["count", "--keys", "keys"],
    ["digest", "--router", "r", "-o", "r.dig"],
    ["scan", "--strings", "keys", "--summary"]], ids=lambda verb: verb[0])
def test_lost_packets_are_counted(tmp_path, verb):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "keys").write_text("udp 127.0.0.1:1 > 127.0.0.1:2\n")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c",
         'ip link set lo up || exit 77; exec "$@"', "sh", sys.executable, "-c",
         HELD_UP, PROGRAM, "traffic", *verb, "-i", "lo",
         "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 2, done.stderr
    assert "faster than they could be looked at" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["lost"] > 0
