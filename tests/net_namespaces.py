"""Hosts and routers in network namespaces, joined by veth pairs, for tests of what crosses a network."""
import json
import os
import shutil
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM

IP = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def run(*args, check=True):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, check=check)


class Network:
    """Nodes by name; link(a, b) joins two of them by a /64 of its own."""

    def __init__(self):
        self.mark = f"bly{os.getpid()}"
        self.nodes, self.links, self.started = [], [], []

    def space(self, node):
        return f"{self.mark}{node}"

    def node(self, name):
        run(IP, "netns", "add", self.space(name))
        self.nodes.append(name)
        self.within(name, IP, "link", "set", "dev", "lo", "up")
        for setting in "net.ipv6.conf.all.forwarding=0", "net.ipv6.conf.default.accept_dad=0", \
                "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_ra=0":
            name_, value = setting.split("=")
            self.within(name, "sh", "-c", f"echo {value} > /proc/sys/{name_.replace('.', '/')}")

    def within(self, node, *args, check=True):
        return run(IP, "netns", "exec", self.space(node), *args, check=check)

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
            self.within(node, IP, "-6", "addr", "add", f"fd00:{number:x}::{host}/64", "dev", end, "nodad")
            self.within(node, IP, "link", "set", "dev", end, "address", f"02:00:00:00:{number:02x}:{host:02x}")
            self.within(node, IP, "link", "set", "dev", end, "up")
        for host, (node, end) in enumerate(zip((b, a), reversed(ends)), 1):
            self.within(node, IP, "-6", "neigh", "replace", f"fd00:{number:x}::{host}", "lladdr",
                        f"02:00:00:00:{number:02x}:{host:02x}", "dev", end, "nud", "permanent")
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


class Routers:
    """bloomery net router at each of these nodes, on all of its links."""

    def __init__(self, net, names, *args):
        self.net, self.running = net, {}
        for name in names:
            links = []
            for a, b, _ in net.links:
                if name in (a, b):
                    other = b if name == a else a
                    links += ["--link", f"{name}{other}={other}"]
            process = net.start(name, PROGRAM, "net", "router", "--name", name, *links, "--json", *args,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.running[name] = process
            assert "forwards on" in process.stderr.readline()

    def waiting(self):
        """Bytes that have come and that no router has read: the seventh column."""
        tables = [self.net.within(name, "cat", "/proc/net/packet", "/proc/net/dev").stdout for name in self.running]
        lines = [line.split() for t in tables for line in t.splitlines()]
        return sum(int(words[6]) for words in lines if len(words) == 9 and words[0] != "sk"), tables

    def stop(self):
        # All is quiet: nothing waits, and nothing was sent in between.
        before = None
        while before is None or before[0] or before != self.waiting():
            before = self.waiting()
            time.sleep(0.1)
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
    probe = f"bly{os.getpid()}probe"
    if run(IP, "netns", "add", probe, check=False).returncode != 0:
        pytest.skip("no network namespaces here")
    run(IP, "netns", "del", probe)
    net = Network()
    yield net
    net.close()
