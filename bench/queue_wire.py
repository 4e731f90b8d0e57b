#!/usr/bin/env python3
"""Who does not yield, on a real wire: bloomery traffic queue beside drop-tail.

    bench/queue_wire.py [PROGRAM] [SECONDS]

Three network namespaces: senders, a router, a receiver. What the senders send
is routed into the TUN device of the queue; the router's interface towards the
receiver is the bottleneck (tbf). Flows are iperf3's: TCP ones that yield, and
one of UDP that sends four times its fair share and does not. Needs root,
iproute2 and iperf3.

    senders --(tun)-- queue --tbf-- receiver
       \\______________ router ________/          the way back
"""

import json
import os
import signal
import subprocess
import sys
import time

RATE = 20e6  # bits per second of the bottleneck, on the wire
FLOWS = 8  # that yield


def sh(*argv, **kw):
    return subprocess.run([str(a) for a in argv], check=True, text=True,
                          capture_output=True, timeout=600, **kw).stdout


class Wire:
    """The namespaces, until the end of a with block."""

    number = 0

    def __init__(self, rate=RATE):
        self.rate = rate
        Wire.number += 1
        self.names = {x: f"bly{os.getpid()}-{Wire.number}{x}" for x in "srd"}
        self.children = []

    def ip(self, where, *argv):
        return sh("ip", "-n", self.names[where], *argv)

    def inside(self, where, *argv):
        return ["ip", "netns", "exec", self.names[where], *map(str, argv)]

    def start(self, where, *argv):
        self.children.append(subprocess.Popen(
            self.inside(where, *argv), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True))
        return self.children[-1]

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        for name in self.names.values():
            sh("ip", "netns", "add", name)
        for where in "srd":
            self.ip(where, "link", "set", "lo", "up")
        self.ip("s", "link", "add", "s0", "type", "veth", "peer", "name", "r0",
                "netns", self.names["r"])
        self.ip("d", "link", "add", "d0", "type", "veth", "peer", "name", "r1",
                "netns", self.names["r"])
        for where, name, address in (("s", "s0", "10.9.1.1"),
                                     ("r", "r0", "10.9.1.254"),
                                     ("r", "r1", "10.9.2.254"),
                                     ("d", "d0", "10.9.2.1")):
            self.ip(where, "addr", "add", address + "/24", "dev", name)
            self.ip(where, "link", "set", name, "up")
        self.ip("d", "route", "add", "default", "via", "10.9.2.254")
        sh(*self.inside("r", "sysctl", "-qw", "net.ipv4.ip_forward=1"))
        sh(*self.inside("r", "tc", "qdisc", "add", "dev", "r1", "root", "tbf",
                        "rate", f"{self.rate:.0f}bit", "burst", "10kb",
                        "limit", "200kb"))

    def queue(self, program, *argv):
        """Start it, and route what goes to the receiver through it."""
        child = self.start("r", program, "traffic", "queue", "--json", "--tun",
                           "fair0", "--out", "r1", *argv)
        line = child.stderr.readline()
        if "fair0" not in line or child.poll() is not None:
            raise RuntimeError(line + child.stderr.read())
        self.ip("r", "link", "set", "fair0", "netns", self.names["s"])
        self.ip("s", "link", "set", "fair0", "up")
        self.ip("s", "route", "add", "10.9.2.0/24", "dev", "fair0", "src",
                "10.9.1.1")
        return child

    def sent(self):
        """Bytes that left by the bottleneck."""
        return json.loads(sh(*self.inside("r", "tc", "-s", "-j", "qdisc",
                                          "show", "dev", "r1")))[0]["bytes"]

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def listening(child, port):
    """Wait until a server does."""
    while True:
        if child.poll() is not None:
            raise RuntimeError(child.communicate()[1])
        for table in "tcp", "tcp6":
            with open(f"/proc/{child.pid}/net/{table}") as f:
                for line in f.readlines()[1:]:
                    words = line.split()
                    if words[1].endswith(f":{port:04X}") and words[3] == "0A":
                        return
        time.sleep(0.02)


def finished(child):
    """The report of a queue that a signal ends."""
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=600)
    if child.returncode != 0:
        raise RuntimeError(err)
    return json.loads(out)


def run(program, seconds, *argv, rate=RATE, flows=FLOWS):
    """A row: what the flows got behind this queue, from the receiver's side,
    without the first quarter of the time."""
    skip = seconds / 4
    fair = rate / (flows + 1)
    with Wire(rate) as wire:
        queue = wire.queue(program, *argv)
        servers = [wire.start("d", "iperf3", "-s", "-p", p, "-1", "--json")
                   for p in (5201, 5202)]
        for server, port in zip(servers, (5201, 5202)):
            listening(server, port)
        total = f"{seconds + skip:g}"
        udp = wire.start("s", "iperf3", "-c", "10.9.2.1", "-p", 5202, "-u",
                         "-b", f"{4 * fair:.0f}", "-l", 1400, "-t", total)
        wire.start("s", "iperf3", "-c", "10.9.2.1", "-p", 5201, "-P", flows,
                   "-t", total)
        time.sleep(skip + 0.5)
        before, start = wire.sent(), time.monotonic()
        time.sleep(seconds - 1)
        after, end = wire.sent(), time.monotonic()
        udp.wait(600)
        tcp, constant = (json.loads(s.communicate(timeout=600)[0])
                         for s in servers)
        told = finished(queue)
    intervals = constant["intervals"]
    kept = [x["sum"] for x in intervals if x["sum"]["start"] >= skip
            and x["sum"]["seconds"] > 0.5]
    # Where processes hardly run, there may be no such interval.
    kept = kept or [x["sum"] for x in intervals]
    got = sum(x["bytes"] for x in kept) * 8 / sum(x["seconds"] for x in kept)
    lost = sum(x["lost_packets"] for x in kept) / max(
        1, sum(x["packets"] for x in kept))
    each = [s["receiver"]["bits_per_second"] for s in tcp["end"]["streams"]]
    return {"queue": "drop-tail" if "--tail" in argv else "sfb",
            "use": (after - before) * 8 / (end - start) / rate,
            "fair": fair, "constant": got, "times": got / fair, "lost": lost,
            "yielding": sum(each) / len(each), "least": min(each),
            **{k: told[k] for k in ("taken", "early", "penalty", "full",
                                    "rehashes", "refused")}}


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1
                              else "build/bloomery")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30
    for argv in ["--tail"], [], ["--rehash", seconds / 3]:
        print(json.dumps(run(program, seconds, *argv)), flush=True)
