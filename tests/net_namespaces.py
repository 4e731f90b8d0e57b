"""Hosts and routers in network namespaces, joined by veth pairs, for tests of what crosses a network."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM

IP = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def run(*args, check=True):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, check=check)


def sweep():
    """Take away what tests have left that were killed: namespaces whose names have the number of a process that is gone,
    and whatever still runs in them."""
    for name in run(IP, "netns", "list", check=False).stdout.split():
        owner = re.match(r"bly(\d+)-", name)
        if not owner or os.path.exists(f"/proc/{owner[1]}"):
            continue
        for pid in run(IP, "netns", "pids", name, check=False).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run(IP, "netns", "del", name, check=False)


class Network:
    """Nodes by name; link(a, b) joins two of them by a /64 of its own."""

    def __init__(self):
        self.mark = f"bly{os.getpid()}-"
        self.nodes, self.links, self.started = [], [], []

    def space(self, node):
        return f"{self.mark}{node}"

    def node(self, name):
        run(IP, "netns", "add", self.space(name))
        self.nodes.append(name)
        settings = "all/forwarding=0", "default/accept_dad=0", "all/accept_dad=0", "default/accept_ra=0"
        self.within(name, "sh", "-c", f"set -e; {IP} link set dev lo up; " + "; ".join(
            f"echo {value} > /proc/sys/net/ipv6/conf/{setting}" for setting, value in (s.split("=") for s in settings)))

    def within(self, node, *args, check=True):
        return run(IP, "netns", "exec", self.space(node), *args, check=check)

    def batch(self, node, *lines):
        """Several commands of ip at once: each of its own takes a busy machine a second."""
        subprocess.run([IP, "-n", self.space(node), "-batch", "-"], input="\n".join(lines), capture_output=True, text=True,
                       check=True)

    def start(self, node, *args, **kw):
        self.started.append(subprocess.Popen([IP, "netns", "exec", self.space(node), *map(str, args)], **kw))
        return self.started[-1]

    def link(self, a, b):
        number = len(self.links) + 1
        ends = f"{a}{b}", f"{b}{a}"
        run(IP, "link", "add", "name", ends[0], "netns", self.space(a), "type", "veth", "peer", "name", ends[1], "netns",
            self.space(b))
        # Neighbours know each other from the start: packets that wait for an address on the link may be dropped.
        for host, (node, end) in enumerate(zip((a, b), ends), 1):
            self.batch(node, f"addr add fd00:{number:x}::{host}/64 dev {end} nodad",
                       f"link set dev {end} address 02:00:00:00:{number:02x}:{host:02x}", f"link set dev {end} up",
                       f"neigh replace fd00:{number:x}::{3 - host} lladdr 02:00:00:00:{number:02x}:{3 - host:02x} dev {end} "
                       "nud permanent")
        self.links.append((a, b, number))

    def address(self, node, other):
        """Of a node, on its link with another."""
        for a, b, number in self.links:
            if {a, b} == {node, other}:
                return f"fd00:{number:x}::{1 if node == a else 2}"
        raise KeyError((node, other))

    def route(self, node, to, via):
        """To all addresses of one link, through a neighbour; to None: to all others."""
        self.within(node, IP, "-6", "route", "replace", to or "default", "via", self.address(via, node))

    def close(self):
        for process in self.started:
            process.kill()
            process.wait()
        for name in self.nodes:
            run(IP, "netns", "del", self.space(name), check=False)


def asleep(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def on_the_way():
    """Packets that have been sent and have not come yet: on a busy machine the kernel, too, waits for a processor."""
    with open("/proc/net/softnet_stat") as f:
        return sum(int(words[11], 16) for words in map(str.split, f) if len(words) > 11)


class Routers:
    """bloomery net router at each of these nodes, on all of its links."""

    def __init__(self, net, names, *args, own=lambda name: []):
        self.net, self.running = net, {}
        for name in names:
            links = []
            for a, b, _ in net.links:
                if name in (a, b):
                    other = b if name == a else a
                    links += ["--link", f"{name}{other}={other}"]
            process = net.start(name, PROGRAM, "net", "router", "--name", name, *links, "--json", *args,
                                *own(name), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.running[name] = process
            said = process.stderr.readline()
            if "--listen" in own(name):
                assert "answers questions on" in said, said
                said = process.stderr.readline()
            assert "forwards on" in said, said

    def waiting(self):
        """What is on its way, and bytes that have come and that no router has read: the seventh column."""
        tables, way = [], on_the_way()
        for process in self.running.values():
            for table in "packet", "dev":
                with open(f"/proc/{process.pid}/net/{table}") as f:
                    tables.append(f.read())
        lines = [line.split() for t in tables for line in t.splitlines()]
        return way + sum(int(words[6]) for words in lines if len(words) == 9 and words[0] != "sk"), tables

    def asleep(self):
        """Has each of them nothing to do? One that has been stopped, or waits for a processor, may have a packet in its hands."""
        return all(asleep(process.pid) for process in self.running.values())

    def busy(self):
        """Does something wait, or was something sent since a moment ago?"""
        before = self.waiting()
        time.sleep(0.1)
        return before[0] or not self.asleep() or before != self.waiting()

    def drain(self):
        """Wait until all that was sent is read, so that no queue runs over."""
        while self.waiting()[0]:
            time.sleep(0.005)

    def stop(self):
        while self.busy():
            pass
        counts = {}
        for name, process in self.running.items():
            process.terminate()
            out, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
            counts[name] = json.loads(out)
        return counts


@pytest.fixture
def network():
    if not IP or os.geteuid() != 0:
        pytest.skip("network namespaces need root and iproute2")
    probe = f"bly{os.getpid()}-probe"
    if run(IP, "netns", "add", probe, check=False).returncode != 0:
        pytest.skip("no network namespaces here")
    run(IP, "netns", "del", probe)
    sweep()
    net = Network()
    yield net
    net.close()


CHAIN_SENDER = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for line in sys.stdin:
    options = bytes.fromhex(line)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, options)
    s.sendto(b"x", (sys.argv[1], 7000))
    print(flush=True)
"""


class MarkedChain:
    """h - r1 - r2 - ... - g: every try has another secret, and so other marks, and one packet."""

    def __init__(self, net, routers, path, *args, program=PROGRAM, beside=(), own=lambda name: [], trace=None):
        """beside: routers that are on no way, with those whom they are linked to."""
        names = ["h", *(f"r{i + 1}" for i in range(routers)), "g"]
        self.net, self.key, self.args = net, path / "chain.key", args
        for name in names:
            net.node(name)
        for a, b in zip(names, names[1:]):
            net.link(a, b)
        last = f"fd00:{routers + 1:x}::/64"
        for a, b in zip(names[:-2], names[1:]):
            net.route(a, last, b)
        for a, b in beside:
            if a not in net.nodes:
                net.node(a)
            net.link(a, b)
        (path / "chain.txt").write_text("".join(f"edge {a} {b}\n" for a, b in zip(names, names[1:])))
        self.there = net.address("g", names[-2])
        self.new_key()
        all_ = [*names[1:-1], *dict.fromkeys(a for a, _ in beside)]
        self.routers = Routers(net, all_, "-K", self.key, *args, own=own)
        self.told = path / "told.json"  # a pipe would run full
        how = trace or ["--topology", path / "chain.txt", "-K", self.key]
        self.tracer = net.start("g", program, "net", "trace", f"g{names[-2]}", "--name", "g", *how, "--json", "--packets",
                                "1000000", *args, stdout=self.told.open("w"), stderr=subprocess.PIPE, text=True)
        assert "listens" in self.tracer.stderr.readline()
        self.sender = net.start("h", "/usr/bin/python3", "-c", CHAIN_SENDER, self.there, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        self.processes = [*self.routers.running.values(), *([] if trace else [self.tracer])]

    def new_key(self):
        self.key.write_bytes(os.urandom(16))
        self.key.chmod(0o600)

    def idle(self):
        """All sleep, and nothing waits to be read or is on its way."""
        if on_the_way():
            return False
        for process in self.processes:
            if not asleep(process.pid):
                return False
            with open(f"/proc/{process.pid}/net/packet") as f:
                if any(int(line.split()[6]) for line in f.readlines()[1:]):
                    return False
        return not on_the_way()

    def rest(self):
        quiet = 0
        while quiet < 3:
            time.sleep(0.001)
            quiet = quiet + 1 if self.idle() else 0

    def tries(self, n, header=lambda i: b""):
        """What the tracer said of each packet that arrived, by the number of its try."""
        numbers = []
        for i in range(n):
            self.new_key()
            for process in self.processes:
                process.send_signal(1)
            for process in self.processes:
                assert "new marks" in process.stderr.readline()
            print(header(i).hex(), file=self.sender.stdin, flush=True)
            self.sender.stdout.readline()
            self.rest()
            numbers.append(self.seen())
        counts = self.routers.stop()
        self.tracer.terminate()
        self.tracer.communicate(timeout=PATIENCE)
        lines = [json.loads(line) for line in self.told.read_text().splitlines()]
        came = [i for i in range(n) if numbers[i] > (numbers[i - 1] if i else 0)]
        assert len(came) == len(lines), (len(came), len(lines))
        return dict(zip(came, lines)), counts

    def seen(self):
        """Packets to the tracer's host: the counter of its interface would have those of the kernel, too."""
        with open(f"/proc/{self.tracer.pid}/net/snmp6") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Udp6NoPorts"))


def ones_for_the_way(bits, way_bits):
    """Options of a sender who has no marks against loops, and all bits of the way."""
    option = bytes([0x3e, 2 + bits // 8 + way_bits // 8, 0, bits // 8]) + bytes(bits // 8) + b"\xff" * (way_bits // 8)
    whole = -(2 + len(option)) % 8
    pad = b"" if not whole else b"\0" if whole == 1 else bytes([1, whole - 2]) + bytes(whole - 2)
    return bytes([0, (2 + len(option) + whole) // 8 - 1]) + option + pad


def false_drops(m, k, d):
    """The formula of docs/net.md."""
    left = 1.0
    for i in range(d):
        left *= 1 - (1 - (1 - 1 / m) ** (k * i)) ** k
    return 1 - left


def mark_left(m, k, later):
    """The chance that a mark of k bits set and k cleared is left behind so many later ones."""
    return (0.5 + 0.5 * (1 - 2 * k / m) ** later) ** (2 * k)
