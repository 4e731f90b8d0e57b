"""net router --groups: multicast between network namespaces, asked for by hosts of the kernel, seen with tcpdump."""
import json
import math
import shutil
import subprocess
import time

import pytest

from conftest import PATIENCE
from net_namespaces import Routers, network  # noqa: F401

SENDER = """
import socket, sys
word, iface, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 32)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(iface))
for i in list(range(first, last)) * int(sys.argv[5]):
    s.sendto(b"%s %d" % (word.encode(), i), ("ff3e::%x" % (0x1000 + i), 7000))
"""

LAST = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(sys.argv[1]))
s.sendto(b"last", ("ff3e::ffff", 7000))
"""

# A host: joins and leaves groups of a source as it is told, and says what it got.
MEMBER = """
import collections, json, select, socket, struct, sys
iface, source = socket.if_nametoindex(sys.argv[1]), sys.argv[2]
JOIN, LEAVE, ALL = 46, 47, 29
def at(address):
    return struct.pack("HHI16sI100x", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, address), 0)
def request(group):
    return struct.pack("I4x", iface) + at("ff3e::%x" % (0x1000 + group)) + at(source)
sockets, got = {}, collections.Counter()
while True:
    for s in select.select([sys.stdin, *set(sockets.values())], [], [])[0]:
        if s is not sys.stdin:
            got[s.recv(100).decode()] += 1
            continue
        word, *groups = sys.stdin.readline().split() or ["end"]
        for group in map(int, groups):
            if word == "join":
                key = group // 8
                s = next((s for g, s in sockets.items() if g // 8 == key), None)
                if s is None:
                    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.setsockopt(socket.IPPROTO_IPV6, ALL, 0)
                    s.bind(("::", 7000))
                sockets[group] = s
                s.setsockopt(socket.IPPROTO_IPV6, JOIN, request(group))
            else:
                sockets.pop(group).setsockopt(socket.IPPROTO_IPV6, LEAVE, request(group))
        if word == "end":
            sys.exit()
        print(json.dumps(got), flush=True)
"""


class Member:
    def __init__(self, net, node, router, source):
        self.iface = f"{node}{router}"
        self.process = net.start(node, "/usr/bin/python3", "-c", MEMBER, self.iface, source,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, word, groups=()):
        print(word, *groups, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def got(self, word):
        return {int(key.split()[1]): times for key, times in self.tell("got").items() if key.startswith(word + " ")}


def send(net, word, groups, times=1):
    net.within("s", "/usr/bin/python3", "-c", SENDER, word, "sa", groups.start, groups.stop, times)


def until(net, done, groups):
    """Wishes take up to a second on every host: packets are sent until all is as it should be."""
    end, number = time.monotonic() + PATIENCE, 0
    while time.monotonic() < end:
        word = f"try{number}"
        send(net, word, groups)
        time.sleep(0.3)
        if done(word):
            return
        number += 1
    raise AssertionError("the members did not get what they wanted")


def network_of_twelve(net):
    """s - a; a - b, c, d; two members behind each of these, one at a; and a link b - c that is on no way."""
    names = "sabcd" + "1234567"
    links = ["sa", "ab", "ac", "ad", "b1", "b2", "c3", "c4", "d5", "d6", "a7", "bc"]
    for name in names:
        net.node(name)
    for a, b in links:
        net.link(a, b)
    for node in "bcd":
        net.route(node, "fd00:1::/64", "a")
    source = net.address("s", "a")
    return {m: Member(net, m, r, source) for m, r in zip("1234567", "bbccdda")}


class Tcpdump:
    def __init__(self, net, node, iface):
        self.iface = iface
        self.process = net.start(node, shutil.which("tcpdump", path="/usr/sbin:/usr/bin:/sbin:/bin"), "-nn", "-l", "-U",
                                 "-i", iface, "-Q", "in", "dst net ff3e::/16",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "listening" not in self.process.stderr.readline():
            assert self.process.poll() is None

    def count(self, net):
        """What it saw until now: it reads behind, so a last packet is sent that ends it."""
        node, iface = self.iface[1], f"{self.iface[1]}{self.iface[0]}"
        net.within(node, "/usr/bin/python3", "-c", LAST, iface)
        seen = 0
        while "ff3e::ffff" not in (line := self.process.stdout.readline()):
            assert line
            seen += 1
        self.end()
        return seen

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def tcpdump():
    if not shutil.which("tcpdump", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        pytest.skip("no tcpdump here")


def test_copies_are_as_computed(network, tcpdump):
    members = network_of_twelve(network)
    routers = Routers(network, "abcd", "--groups", "64", "--cell-bits", "4")
    groups = range(240)
    wishes = {name: {g for g in groups if g % 12 == i or (name in "12" and g % 12 == 7)}
              for i, (name, _) in enumerate(members.items())}
    for name, member in members.items():
        member.tell("join", wishes[name])
    until(network, lambda word: all(set(m.got(word)) == wishes[n] for n, m in members.items()), groups)
    counts = routers.stop()
    assert sum(c["group_refused"] for c in counts.values()) == 0

    # Once more with fresh counts, and somebody watches the wires.
    routers = Routers(network, "abcd", "--groups", "64", "--cell-bits", "4", "--refresh", "1")
    until(network, lambda word: all(set(m.got(word)) == wishes[n] for n, m in members.items()), groups)
    before = {n: m.tell("got") for n, m in members.items()}
    # A busy machine may lose a packet, or a wish for a moment: then it is another round's turn.
    for number in range(20):
        word = f"now{number}"
        watched = {iface: Tcpdump(network, iface[0], iface) for iface in ("1b", "4c", "7a", "ba", "ca")}
        send(network, word, groups)
        end = time.monotonic() + 20
        while not (arrived := all(set(m.got(word)) == wishes[n] for n, m in members.items())) and time.monotonic() < end:
            time.sleep(0.1)
        if arrived:
            break
        for dump in watched.values():
            dump.end()
    assert arrived
    counts = routers.stop()
    for name, member in members.items():
        # Once each, and of what was not asked for nothing gets through to a program.
        assert member.got(word) == {g: 1 for g in wishes[name]}
        assert len(before[name]) < len(member.tell("got"))
    seen = {iface: dump.count(network) for iface, dump in watched.items()}
    behind = {"1b": "1", "4c": "4", "7a": "7", "ba": "12", "ca": "34"}
    for iface, names in behind.items():
        needed = len(set.union(*(wishes[n] for n in names)))
        assert needed <= seen[iface] <= needed + 60, (iface, seen, needed)
    assert sum(seen.values()) > sum(len(set.union(*(wishes[n] for n in names))) for names in behind.values())
    # Superfluous copies as the filters' sizes say, over all packets of the run; none comes by a wrong way and goes on.
    for c in counts.values():
        assert c["group_joins"] >= 20
        sigma = math.sqrt(c["group_expected"]) + 1
        # One filter answers for all rounds alike: the draws are the groups and interfaces, not the packets.
        rounds = c["group_packets"] / len(groups) + 1
        assert abs(c["group_superfluous"] - c["group_expected"]) < 6 * sigma * rounds
        assert c["loop"] == c["bad"] == c["expired"] == 0


def test_joins_leaves_and_silence(network):
    members = network_of_twelve(network)
    routers = Routers(network, "abcd", "--groups", "100", "--refresh", "1")
    one, two, seven = members["1"], members["2"], members["7"]
    group = range(5, 6)
    one.tell("join", group)
    two.tell("join", group)
    until(network, lambda word: one.got(word) and two.got(word), group)
    assert not seven.got("try0")
    seven.tell("join", group)
    until(network, lambda word: all(m.got(word) for m in (one, two, seven)), group)
    # Who leaves gets no more, and takes nothing away from others behind the same router.
    one.tell("leave", group)
    until(network, lambda word: not one.got(word) and two.got(word) and seven.got(word), group)
    # A host that dies says nothing: its wish is forgotten.
    two.process.kill()
    network.within("2", "ip", "link", "set", "dev", "2b", "down")
    counter = lambda: int(network.within("b", "cat", "/sys/class/net/ba/statistics/rx_packets").stdout)  # noqa: E731
    end, number = time.monotonic() + PATIENCE, 0
    while True:
        assert time.monotonic() < end, "b still gets the group, though nobody behind it is left"
        number += 1
        word, start = f"quiet{number}", counter()
        send(network, word, group, 200)
        # Router a has copied these when they have come to its own member: what b did not get by then, it will not get.
        # A busy machine may lose some, which nobody waits for.
        copied = lambda: seven.got(word).get(5, 0)  # noqa: E731
        while copied() < 150 and (routers.busy() or copied() >= 150):
            time.sleep(0.1)
        if copied() >= 150 and counter() - start < 100:
            break
    # An interface that vanishes takes its members with it, and the rest goes on.
    network.within("a", "ip", "link", "del", "dev", "a7")
    assert "a7 is gone" in routers.running["a"].stderr.readline()
    members["5"].tell("join", group)
    until(network, lambda word: members["5"].got(word), group)
    counts = routers.stop()
    assert counts["b"]["group_leaves"] >= 2 and counts["a"]["group_leaves"] >= 2


def test_more_groups_than_there_is_room_for(network):
    for name in "sar":
        network.node(name)
    network.link("s", "a")
    network.link("a", "r")
    member = Member(network, "r", "a", network.address("s", "a"))
    routers = Routers(network, "a", "--groups", "10", "--refresh", "1")
    member.tell("join", range(30))
    # The filter of the ten may take another one for one of them; how often is looked at above.
    until(network, lambda word: 10 <= len(member.got(word)) < 30, range(30))
    counts = routers.stop()["a"]
    # A wish that a router which did not run has forgotten makes room for another.
    assert counts["group_joins"] - counts["group_leaves"] == 10 and counts["group_refused"] >= 20
