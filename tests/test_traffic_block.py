"""bloomery traffic block: lists of addresses, beside exact ones; in the kernel
on interfaces of network namespaces that are made here."""

import ipaddress
import json
import os
import random
import shutil
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM
from test_traffic_command import capture, ether, ip4, ip6, tcp, udp

pytestmark = pytest.mark.skipif(
    "without libpcap" in subprocess.run(
        [PROGRAM, "traffic", "flows", "x"], capture_output=True,
        text=True, timeout=PATIENCE).stderr, reason="no libpcap")
FULL = os.environ.get("BLY_FULL") == "1"


def packets(sources):
    """A packet from each."""
    return [ether(ip6(tcp(), src=s) if ":" in s else ip4(tcp(), src=s))
            for s in map(str, sources)]


def checked(bly, *argv):
    said = bly("traffic", "block", "--json", *argv)
    return said.status, json.loads(said.out)


def listed(entries, address):
    a = ipaddress.ip_address(address)
    return any(a in n for n in map(ipaddress.ip_network, entries))


# ----------------------------------------------------------------------- lists

FORMS = {
    "plain": "# all\n10.0.0.1\n 10.1.0.0/16 ; SBL1\n\n2001:db8::/32 # x\r\n"
             "10.2.0.7/24\n",
    "range": "10.0.0.1\n10.1.0.0-10.1.255.255\n10.2.0.0-10.2.0.127\n"
             "10.2.0.128-10.2.0.255\n"
             "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff\n",
    "ipset": "create bad hash:net family inet hashsize 1024 maxelem 65536\n"
             "add bad 10.0.0.1\nadd bad 10.1.0.0/16 timeout 300\n"
             "add bad 10.2.0.0/24 comment \"a b\"\n"
             "create six hash:net family inet6\nadd six 2001:db8::/32\n",
    "nftables": "table inet filter {\n\tset bad {\n\t\ttype ipv4_addr\n"
                "\t\tflags interval,timeout\n\t\telements = { 10.0.0.1, "
                "10.1.0.0/16 timeout 1h expires 59m2s,\n\t\t\t     10.2.0.0/24 "
                "comment \"a, } b\" }\n\t}\n\tset six {\n\t\ttype ipv6_addr\n"
                "\t\telements = { 2001:db8::/32 }\n\t}\n\tchain input {\n"
                "\t\ttype filter hook input priority 0; policy accept;\n"
                "\t\tip saddr @bad drop\n\t}\n}\n",
    "nft -f": "add element inet filter bad { 10.0.0.1, 10.1.0.0/16 }\n"
              "add element inet filter bad { 10.2.0.0/24,\n 2001:db8::/32 }\n",
}
ENTRIES = ["10.0.0.1/32", "10.1.0.0/16", "10.2.0.0/24", "2001:db8::/32"]


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_lists(ok, bly, tmp_path, form):
    (tmp_path / "l").write_text(FORMS[form])
    ok("traffic", "block", "-o", "l.bly", "l", "--fpr", "1e-6")
    sources = ["10.0.0.1", "10.0.0.2", "10.1.2.3", "10.2.0.255", "10.2.1.0",
               "10.3.0.0", "2001:db8::5", "2001:db9::5", "::a00:1"]
    path = capture(tmp_path / "c", packets(sources))
    status, told = checked(bly, "l.bly", path, "--exact", "l")
    assert status == 0 and told["missed"] == told["mistaken"] == 0
    assert told["stopped"] == sum(listed(ENTRIES, s) for s in sources) == 4
    assert sum(r["packets"] for r in told["rules"]) == 4


def test_ranges_are_exact(ok, bly, tmp_path):
    """Any range stops what lies in it, and nothing beside it."""
    rng = random.Random(4)
    for _ in range(6):
        base = rng.getrandbits(32) & ~0xffff
        a, b = sorted(base + rng.randrange(600) for _ in range(2))
        text = f"{ipaddress.ip_address(a)}-{ipaddress.ip_address(b)}\n"
        (tmp_path / "l").write_text(text)
        ok("traffic", "block", "-o", "l.bly", "l", "--fpr", "1e-9")
        around = [base + x for x in range(600)]
        path = capture(tmp_path / "c",
                       packets(ipaddress.ip_address(x) for x in around))
        assert checked(bly, "l.bly", path)[1]["stopped"] == b - a + 1
    (tmp_path / "l").write_text("0.0.0.0-255.255.255.255\n::/0\n")
    ok("traffic", "block", "-o", "l.bly", "l")
    assert checked(bly, "l.bly", path)[1]["rules"][0]["bits"] == 0


@pytest.mark.parametrize("line", [
    "example.org", "10.0.0.1/33", "10.0.0.300", "2001:db8::/129", "10.0.0.1/",
    "10.0.0.2-10.0.0.1", "10.0.0.1-2001:db8::1", "add bad 10.0.0.1,tcp:80",
    "add bad 10.0.0.0/24 nomatch", "add bad", "01:02:03:04:05:06",
    "add element inet f bad { 10.0.0.1 . 80 }",
    "add element inet f bad { 10.0.0.1 : drop }"])
def test_bad_lines(trouble, bly, tmp_path, line):
    (tmp_path / "l").write_text(f"10.0.0.9\n{line}\n10.0.0.10\n")
    trouble("traffic", "block", "-o", "l.bly", "l", says=["line 2"])
    said = bly("traffic", "block", "-o", "l.bly", "l", "--skip-bad", "--json")
    assert said.status == 0 and "line 2" in said.err
    told = json.loads(said.out)
    assert told["bad"] == 1 and told["prefixes"] == 2


# -------------------------------------------------------------------- answers

def test_rate_per_packet_and_nobody_missed(ok, bly, tmp_path):
    """Three lengths and both versions, beside an exact list."""
    rng = random.Random(1)
    entries = {f"{ipaddress.ip_address(rng.getrandbits(32))}"
               for _ in range(3000)}
    entries |= {str(ipaddress.ip_network((rng.getrandbits(32), bits), False))
                for bits in (24, 20) for _ in range(200)}
    entries |= {str(ipaddress.ip_network((rng.getrandbits(128), bits), False))
                for bits in (64, 128) for _ in range(300)}
    entries = sorted(entries)
    (tmp_path / "l").write_text("".join(f"{e}\n" for e in entries))
    told = json.loads(ok("traffic", "block", "-o", "l.bly", "l", "--fpr", "1%",
                         "--seed", "7", "--json").out)
    assert told["prefixes"] == len(entries)
    assert (told["lengths4"], told["lengths6"]) == (3, 2)
    inside = [str(ipaddress.ip_network(e)[0]) for e in entries]
    others = [str(ipaddress.ip_address(rng.getrandbits(32)))
              for _ in range(20000)]
    path = capture(tmp_path / "c", packets(inside + others))
    status, told = checked(bly, "l.bly", path, "--exact", "l")
    assert status == 0 and told["missed"] == 0
    assert told["stopped"] >= len(inside)
    # 1 % of 20000 is 200, and six deviations more are 285.
    assert told["mistaken"] < 285
    assert sum(v["packets"] for v in told["victims"]) == told["mistaken"]
    assert not any(listed(entries, v["address"]) for v in told["victims"][:3])

    # Whoever is hit by mistake can be allowed, exactly.
    (tmp_path / "allow").write_text(
        "".join(v["address"] + "\n" for v in told["victims"]))
    status, after = checked(bly, "l.bly", path, "--exact", "l", "--allow",
                            "allow")
    assert after["mistaken"] == 0 and after["allowed"] == told["mistaken"]
    assert after["stopped"] == told["stopped"] - told["mistaken"]


def test_keys_are_those_of_the_page(ok, bly, tmp_path):
    """Whoever has the file can ask it: docs/traffic.md says what keys are."""
    (tmp_path / "l").write_text("192.0.2.0/24\n2001:db8::/32\n")
    ok("traffic", "block", "-o", "l.bly", "l", "--fpr", "1e-9")
    four = (24 << 32 | int(ipaddress.ip_address("192.0.2.0"))).to_bytes(
        8, "little")
    six = ipaddress.ip_address("2001:db8::").packed + b"\x20"
    for key in four, six:
        (tmp_path / "k").write_bytes(key + b"\n" + key[1:] + b"\n")
        assert ok("has", "-c", "--binary", "l.bly", "-f", "k").out == "1\n"
    info = json.loads(ok("info", "--json", "l.bly").out)
    assert {m["name"]: m["value"] for m in info["meta"]} == {
        "list": "prefixes", "lengths4": "24", "lengths6": "32"}


def test_nothing_stopped_is_no(bly, ok, tmp_path):
    (tmp_path / "l").write_text("10.0.0.1\n")
    ok("traffic", "block", "-o", "l.bly", "l")
    path = capture(tmp_path / "c", packets(["10.9.9.9"]))
    assert bly("traffic", "block", "l.bly", path).status == 1


def test_entries_are_added_and_expire(ok, bly, tmp_path):
    (tmp_path / "a").write_text("10.0.0.1\n")
    (tmp_path / "b").write_text("10.0.1.0/24\n")
    path = capture(tmp_path / "c", packets(["10.0.0.1", "10.0.1.1"]))
    made = json.loads(ok("traffic", "block", "-o", "l.bly", "a", "--ttl", "1000",
                         "--items", "100", "--json").out)
    assert made["kind"] == "aging" and made["ttl"] == 1000
    assert checked(bly, "l.bly", path)[1]["stopped"] == 1
    ok("traffic", "block", "--into", "l.bly", "b")
    assert checked(bly, "l.bly", path)[1]["stopped"] == 2
    ok("traffic", "block", "-o", "short.bly", "a", "--ttl", "1", "--items", "9")
    script = f"sleep 3; exec {PROGRAM} traffic block short.bly {path}"
    assert subprocess.run(["sh", "-c", script], cwd=tmp_path, timeout=PATIENCE,
                          capture_output=True).returncode == 1


def test_wrong_uses(trouble, ok, bly, tmp_path):
    (tmp_path / "l").write_text("10.0.0.1\n")
    (tmp_path / "k").write_text("0123456789abcdef" * 2)
    path = capture(tmp_path / "c", packets(["10.0.0.1"]))
    ok("traffic", "block", "-o", "l.bly", "l")
    ok("build", "-o", "other.bly", "l")
    trouble("traffic", "block", "other.bly", path, says="not a list of prefixes")
    trouble("traffic", "block", "--into", "other.bly", "l", says="not a list")
    trouble("traffic", "block", "l.bly", says="CAPTURE")
    trouble("traffic", "block", "-o", "x.bly", says="no lists")
    trouble("traffic", "block", "-o", "x.bly", "--into", "l.bly", "l",
            says="exclude")
    trouble("traffic", "block", "l.bly", path, "--ttl", "5", says="-o")
    trouble("traffic", "block", "-o", "x.bly", "l", "--ttl", "0", says="--ttl")
    trouble("traffic", "block", "-o", "x.bly", "missing", says="missing")
    trouble("traffic", "block", "l.bly", "l", says="l: ")
    ok("traffic", "block", "-o", "keyed.bly", "l", "-K", "k")
    trouble("traffic", "block", "keyed.bly", path, says="--key-file")
    assert bly("traffic", "block", "keyed.bly", path, "-K", "k").status == 0
    (tmp_path / "m").write_text("10.0.0.2\n10.0.0.1\n")
    said = bly("traffic", "block", "l.bly",
               capture(tmp_path / "d", packets(["10.0.0.2"])), "--exact", "m")
    assert said.status == 2 and "another list" in said.err


# --------------------------------------------------------------------- kernel

def compiles(folder):
    """As apps/traffic/rules.mk asks."""
    return shutil.which("objcopy") and shutil.which("clang") and \
        subprocess.run(["clang", "-target", "bpf", "-c", "-x", "c", "/dev/null", "-o", folder / "none.o"], check=False,
                       capture_output=True, timeout=PATIENCE).returncode == 0


def kernel_or_skip(bly, ok, tmp_path):
    """Does this kernel take the program? It is in the command if clang could compile it: nothing is skipped if make has lost it."""
    (tmp_path / "l").write_text("10.0.0.1\n")
    ok("traffic", "block", "-o", "t.bly", "l")
    said = bly("traffic", "block", "t.bly", "--kernel",
               capture(tmp_path / "t", packets(["10.0.0.1"])))
    if "without clang" in said.err:
        assert not compiles(tmp_path), said.err
    if said.status == 2 and ("without clang" in said.err
                             or "kernel" in said.err):
        pytest.skip(said.err.strip().replace("bloomery: traffic: ", ""))
    assert said.status == 0, said.err


def test_the_kernels_program_agrees(ok, bly, tmp_path):
    """The same verdicts, with every form of packet, without an interface."""
    kernel_or_skip(bly, ok, tmp_path)
    rng = random.Random(2)
    four = [str(ipaddress.ip_network((rng.getrandbits(32), b), False))
            for b in (32, 31, 24, 9, 1) for _ in range(3)]
    six = [str(ipaddress.ip_network((rng.getrandbits(128), b), False))
           for b in (128, 127, 65, 64, 63, 33, 8) for _ in range(3)]
    many = [str(ipaddress.ip_address(rng.getrandbits(32)))
            for _ in range(2000)]
    (tmp_path / "l").write_text("\n".join(four + six + many))
    (tmp_path / "allow").write_text(f"{four[0]}\n{six[0]}\n{four[6]}\n")
    ok("traffic", "block", "-o", "l.bly", "l", "--fpr", "20%", "--seed", "99")
    sources = [str(ipaddress.ip_network(e)[0]) for e in four + six]
    sources += [str(ipaddress.ip_address(rng.getrandbits(32)))
                for _ in range(100)]
    sources += [str(ipaddress.ip_address(rng.getrandbits(128)))
                for _ in range(100)]
    frames = packets(sources)
    frames += [f[:12] + b"\x81\0\0\x05" + f[12:] for f in frames[:9]]
    frames += [f[:12] + b"\x88\xa8\0\x05\x81\0\0\x06" + f[12:]
               for f in frames[:9]]
    frames += [f[:n] for f in frames[:1] for n in range(14, 54)]
    frames += [ether(ip4(udp(bytes(3000)), 17, src="10.0.0.1")),
               b"\xff" * 60, bytes(12) + b"\x08\x06" + bytes(46)]
    path = capture(tmp_path / "c", frames)
    status, told = checked(bly, "l.bly", path, "--exact", "l", "--allow",
                           "allow", "--kernel")
    assert status == 0 and told["disagree"] == 0 and told["missed"] == 0
    assert told["allowed"] >= 3 and told["stopped"] >= 30
    assert told["mistaken"] > 0

    # The other way round, and what IPv6 cannot do without: neighbours on the link, but nobody from behind a router.
    (tmp_path / "o").write_text("10.0.0.1\n")
    ok("traffic", "block", "-o", "o.bly", "o", "--fpr", "1e-9")
    frames = packets(["10.0.0.1", "10.0.0.2", four[0].split("/", maxsplit=1)[0], "2001:db8::1"])
    for limit in 255, 64:
        whole = ip6(bytes([135]) + bytes(27), 58, src="fe80::1")
        frames.append(ether(whole[:7] + bytes([limit]) + whole[8:]))
    path = capture(tmp_path / "d", frames)
    status, told = checked(bly, "o.bly", path, "--only", "--allow", "allow", "--kernel")
    assert status == 0 and told["disagree"] == 0
    assert [told["stopped"], told["allowed"], sum(r["packets"] for r in told["rules"])] == [3, 2, 1]


SWAPS = 1000 if FULL else 20
VETH = f"""
import json, os, select, signal, socket, subprocess, sys, time
program, here = sys.argv[1:]
swaps = {SWAPS}

def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if ok and done.returncode:
        sys.exit("FAILED " + " ".join(words) + ": " + done.stderr)
    return done

def block(*words, ok=True):
    return run(program, "traffic", "block", *words, ok=ok)

def skip(why):
    print(json.dumps(dict(skip=why)))
    sys.exit(0)

if run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf", ok=False).returncode:
    skip("no bpf file system here")
nowhere = block("--xdp", "lo", "a.bly", "--pins", here + "/no/pins", ok=False)
other = subprocess.Popen(["unshare", "-n", "sleep", "600"])
try:
    while os.stat(f"/proc/{{other.pid}}/ns/net").st_ino == os.stat(
            "/proc/self/ns/net").st_ino:
        time.sleep(0.02)
    if run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1",
           ok=False).returncode:
        skip("no veth here")
    run("ip", "link", "set", "v1", "netns", str(other.pid))
    for command in ("ip link set v0 up", "ip addr add 10.9.0.1/24 dev v0",
                    "ip -6 addr add fd00::1/64 dev v0 nodad"):
        run(*command.split())
    for command in ("ip link set v1 up", "ip addr add 10.9.0.2/24 dev v1",
                    "ip addr add 10.9.0.3/24 dev v1",
                    "ip -6 addr add fd00::2/64 dev v1 nodad",
                    "ip -6 addr add fd00::3/64 dev v1 nodad"):
        run("nsenter", "-t", str(other.pid), "-n", *command.split())
    four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    four.bind(("10.9.0.1", 5555))
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    six.bind(("fd00::1", 5555))

    def send(n):
        return subprocess.Popen(
            ["nsenter", "-t", str(other.pid), "-n", sys.executable, "-c", '''
import socket, sys, time
n = int(sys.argv[1])
socks = []
for kind, source, to in ((socket.AF_INET, "10.9.0.2", "10.9.0.1"),
                         (socket.AF_INET, "10.9.0.3", "10.9.0.1"),
                         (socket.AF_INET6, "fd00::2", "fd00::1"),
                         (socket.AF_INET6, "fd00::3", "fd00::1")):
    s = socket.socket(kind, socket.SOCK_DGRAM)
    s.bind((source, 0))
    socks.append((s, source, to))
i = 0
while n < 0 or i < n:
    i += 1
    for s, source, to in socks:
        s.sendto(f"{{source}} {{i}}".encode(), (to, 5555))
    if i % 64 == 0:
        time.sleep(0.001)
''', str(n)])

    everyone = ["10.9.0.2", "10.9.0.3", "fd00::2", "fd00::3"]
    others = ["10.9.0.3", "fd00::3"]

    def heard(sources, last):
        # Who is heard until all of these are, with a packet of this number or
        # a later one. Listed ones send before the others do: what comes of
        # them has come by then.
        got, waits = dict(), set(sources)
        while waits:
            for s in select.select([four, six], [], [])[0]:
                source, i = s.recv(100).decode().split()
                got[source] = got.get(source, 0) + 1
                if int(i) >= last:
                    waits.discard(source)
        return got

    def rest():
        got = dict()
        while ready := select.select([four, six], [], [], 0)[0]:
            for s in ready:
                source = s.recv(100).decode().split()[0]
                got[source] = got.get(source, 0) + 1
        return got

    def tried(sources):
        send(20).wait()
        return heard(sources, 20) | rest()

    told = dict()
    told["before"] = tried(everyone)
    first = block("--xdp", "v0", "a.bly", ok=False)
    if first.returncode:
        skip(first.stderr.strip())
    told["attached"] = tried(others)
    told["status"] = json.loads(block("--status", "v0", "--json").stdout)
    block("--xdp", "v0", "a.bly", "--allow", "allow")
    told["allowed"] = tried(everyone)
    block("--xdp", "v0", "a.bly")
    rest()

    load = send(-1)
    got = heard(others, 1)
    for i in range(swaps):
        block("-q", "--xdp", "v0", "b.bly" if i % 2 == 0 else "a.bly")
        for some in rest(), heard(others, 1):
            for k, v in some.items():
                got[k] = got.get(k, 0) + v
    load.kill()
    load.wait()
    for k, v in rest().items():
        got[k] = got.get(k, 0) + v
    told["swapped"] = got
    told["after"] = json.loads(block("--status", "v0", "--json").stdout)

    # What is wrong leaves what is there, and nothing new.
    told["wrong"] = block("--xdp", "v0", "aging.bly", ok=False).returncode
    told["gone"] = block("--xdp", "v7", "a.bly", ok=False).returncode
    told["still"] = tried(others)
    block("--detach", "v0")
    told["detached"] = tried(everyone)
    told["again"] = block("--detach", "v0", ok=False).returncode
    told["link"] = "xdp" in run("ip", "link", "show", "v0").stdout
    told["pins"] = os.path.exists("/sys/fs/bpf/bloomery")
    # An interface that vanishes takes its program with it.
    block("--xdp", "v0", "a.bly")
    run("ip", "link", "del", "v0")
    told["left"] = [block("--status", "v0", ok=False)]
    run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v2")
    told["left"] += [block("--status", "v0", ok=False)]
    told["left"] = [(one.returncode, one.stderr) for one in told["left"]]
    told["vanished"] = block("--detach", "v0", ok=False).returncode
    # Commands at the same time: whoever says so has attached it.
    told["together"] = []
    for i in range(10):
        both = [subprocess.Popen([program, "traffic", "block", "-q", "--xdp",
                                  "v0", "a.bly"]) for i in range(3)]
        told["together"] += [one.wait() for one in both]
        told["together"].append(block("--status", "v0", ok=False).returncode)
        told["together"].append(block("--detach", "v0", ok=False).returncode)
    told["nowhere"] = nowhere.stderr
    told["pins"] |= os.path.exists("/sys/fs/bpf/bloomery")
    print(json.dumps(told))
finally:
    other.kill()
"""


def test_an_interface_drops_what_is_listed(ok, bly, tmp_path):
    """On veth: attach, allow, swap under load, detach. No packet of a listed
    address is ever heard while a list is attached."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    kernel_or_skip(bly, ok, tmp_path)
    (tmp_path / "a").write_text("10.9.0.2\nfd00::2\n192.0.2.0/24\n")
    (tmp_path / "b").write_text("10.9.0.2\nfd00::2\n" + "".join(
        f"198.51.{i >> 8}.{i & 255}\n" for i in range(5000)))
    (tmp_path / "allow").write_text("10.9.0.0/25\nfd00::2\n")
    for name in "a", "b":
        ok("traffic", "block", "-o", f"{name}.bly", name, "--fpr", "1e-6")
    ok("traffic", "block", "-o", "aging.bly", "a", "--ttl", "60")
    done = subprocess.run(
        ["unshare", "-n", "-m", sys.executable, "-c", VETH, PROGRAM, tmp_path],
        capture_output=True, text=True, cwd=tmp_path,
        timeout=PATIENCE * (10 if FULL else 1))
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "skip" in told:
        pytest.skip(told["skip"])
    everyone = {"10.9.0.2", "10.9.0.3", "fd00::2", "fd00::3"}
    others = {"10.9.0.3", "fd00::3"}
    assert set(told["before"]) == set(told["allowed"]) == everyone
    assert set(told["attached"]) == others == set(told["still"])
    assert told["status"]["stopped"] == 40
    assert [(r["version"], r["bits"], r["packets"])
            for r in told["status"]["rules"]] == [(4, 32, 20), (6, 128, 20)]
    assert told["status"]["passed"] >= 40
    assert set(told["swapped"]) == others
    assert all(n > SWAPS for n in told["swapped"].values())
    assert told["after"]["stopped"] > 40 + SWAPS
    assert told["after"]["allowed"] == 40
    assert set(told["detached"]) == everyone
    assert told["wrong"] == told["gone"] == told["again"] == 2
    assert not told["link"] and told["vanished"] == 0 and not told["pins"]
    assert all(status == 1 and "any more" in said for status, said in told["left"]), told["left"]
    assert told["together"] == [0] * 50
    assert "mount -t bpf" in told["nowhere"]


NAMESPACES = """
import json, os, subprocess, sys, time
program = sys.argv[1]

def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if ok and done.returncode:
        sys.exit("FAILED " + " ".join(words) + ": " + done.stderr)
    return done

def skip(why):
    print(json.dumps(dict(skip=why)))
    sys.exit(0)

if run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf", ok=False).returncode:
    skip("no bpf file system here")
other = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 3600"],
                         stdout=subprocess.PIPE)
there = ["nsenter", "-t", str(other.pid), "-n"]

def block(*words, inside=()):
    done = run(*inside, program, "traffic", "block", *words, ok=False)
    return [done.returncode, done.stdout, done.stderr]

try:
    other.stdout.readline()
    # The same name, and most likely the same number, in both.
    for inside in [], there:
        if run(*inside, "ip", "link", "add", "v0", "type", "veth", "peer",
               "name", "v1", ok=False).returncode:
            skip("no veth here")
    told = dict()
    told["first"] = block("--xdp", "v0", "a.bly")
    if told["first"][0]:
        skip(told["first"][2])
    told["other_before"] = block("--status", "v0", inside=there)
    told["other"] = block("--xdp", "v0", "a.bly", inside=there)
    told["both"] = [block("--status", "v0", "--json", inside=x)
                    for x in ([], there)]
    told["detached"] = block("--detach", "v0", inside=there)
    told["left"] = [block("--status", "v0", "--json", inside=x)
                    for x in ([], there)]
    # A list that stops nobody.
    told["empty"] = block("--xdp", "v0", "empty.bly")
    told["kept"] = block("--status", "v0")
    told["meant"] = block("--xdp", "v0", "empty.bly", "--empty")
    # Another name.
    run("ip", "link", "set", "v0", "name", "w0")
    told["renamed"] = block("--status", "w0", "--json")
    told["old"] = block("--status", "v0")
    told["swapped"] = block("--xdp", "w0", "a.bly")
    told["off"] = block("--detach", "w0")
    told["links"] = run("ip", "link").stdout.count("xdp")
    # A name with a dot, which the file system has not.
    run("ip", "link", "add", "link", "w0", "name", "w0.5", "type", "vlan",
        "id", "5", ok=False)
    if os.path.exists("/sys/class/net/w0.5"):
        told["dot"] = [block("--xdp", "w0.5", "a.bly"),
                       block("--detach", "w0.5")]
    told["pins"] = os.path.exists("/sys/fs/bpf/bloomery")
    print(json.dumps(told))
finally:
    other.kill()
"""


def test_names_and_namespaces(ok, bly, tmp_path):
    """Interfaces of the same name in two namespaces have nothing to do with
    each other, one that is renamed keeps its list, and no list is replaced by
    an empty one by mistake."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    kernel_or_skip(bly, ok, tmp_path)
    (tmp_path / "a").write_text("10.9.0.2\n")
    (tmp_path / "none").write_text("# nobody\n")
    ok("traffic", "block", "-o", "a.bly", "a")
    ok("traffic", "block", "-o", "empty.bly", "none")
    done = subprocess.run(
        ["unshare", "-n", "-m", sys.executable, "-c", NAMESPACES, PROGRAM],
        capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if "skip" in told:
        pytest.skip(told["skip"])
    # The mounts of the test are gone with it: that is said.
    assert "nsenter" in told["first"][2]
    assert told["other_before"][0] == 1 and told["other"][0] == 0
    for status, out, _ in told["both"] + [told["renamed"]]:
        assert status == 0
        assert json.loads(out)["mode"] in ("native", "generic")
    assert told["detached"][0] == 0
    assert [x[0] for x in told["left"]] == [0, 1]
    assert told["empty"][0] == 2 and "--empty" in told["empty"][2]
    assert told["kept"][0] == told["meant"][0] == 0
    assert told["old"][0] == 1 and "no such interface" in told["old"][2]
    assert told["swapped"][0] == told["off"][0] == 0 and told["links"] == 0
    assert all(x[0] == 0 for x in told.get("dot", [])), told["dot"]
    assert not told["pins"]
