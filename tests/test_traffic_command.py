"""bloomery traffic: captures and interfaces, beside an exact count and the
programs that everybody has for them."""

import collections
import csv
import glob
import gzip
import json
import os
import shutil
import socket
import struct
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM

pytestmark = pytest.mark.skipif(
    "without libpcap" in subprocess.run(
        [PROGRAM, "traffic", "flows", "x"], capture_output=True,
        text=True, timeout=PATIENCE).stderr, reason="no libpcap")

MAC = bytes.fromhex("020000000002" "020000000001")
GOPACKET = "/usr/share/gocode/src/github.com/gopacket/gopacket"


def ip4(payload, proto=6, src="10.0.0.1", dst="10.0.0.2", fragment=0, ihl=5):
    return struct.pack(">BBHHHBBH4s4s", 0x40 | ihl, 0,
                       4 * ihl + len(payload), 1, fragment, 64, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) \
        + bytes(4 * ihl - 20) + payload


def ip6(payload, following=6, src="fe80::1", dst="fe80::2"):
    return struct.pack(">IHBB", 0x60000000, len(payload), following, 64) \
        + socket.inet_pton(socket.AF_INET6, src) \
        + socket.inet_pton(socket.AF_INET6, dst) + payload


def tcp(source=1234, target=80):
    return struct.pack(">HHIIBBHHH", source, target, 1, 1, 0x50, 16, 99, 0, 0)


def udp(payload=b"", source=4000, target=53):
    return struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload


def ether(packet):
    return MAC + (b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00") + packet


def capture(path, packets, link=1, order="<", times=None, snap=None):
    """A pcap file of these bytes, a millisecond apart."""
    out = bytearray(struct.pack(order + "IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0,
                                65535, link))
    for i, p in enumerate(packets):
        at = times[i] if times else 1000 + i / 1000
        kept = p if snap is None else p[:snap]
        out += struct.pack(order + "IIII", int(at), round(at % 1 * 1e6),
                           len(kept), len(p)) + kept
    path.write_bytes(out)
    return path


def flows(ok, *argv):
    """{key: row}, and the summary."""
    lines = [json.loads(x) for x in
             ok("traffic", "flows", "--json", *argv).out.splitlines()]
    return {x["key"]: x for x in lines[:-1]}, lines[-1]


def keys_of(ok, path, *argv):
    return {k: v["packets"] for k, v in
            flows(ok, "--threshold", "1", path, *argv)[0].items()}


# -------------------------------------------------------------------- packets

LINKS = {0: b"\x02\0\0\0", 12: b"", 101: b"", 108: b"\0\0\0\x02", 228: b"",
         1: MAC + b"\x08\x00", 113: bytes(14) + b"\x08\x00",
         276: b"\x08\x00" + bytes(18)}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("order", "<>")
def test_links(ok, tmp_path, link, order):
    path = capture(tmp_path / "c", [LINKS[link] + ip4(tcp())], link, order)
    assert keys_of(ok, path) == {"tcp 10.0.0.1:1234 > 10.0.0.2:80": 1}


@pytest.mark.parametrize("packet, key", {
    "options": (ip4(tcp(), ihl=8), "tcp 10.0.0.1:1234 > 10.0.0.2:80"),
    "udp": (ip4(udp(), 17), "udp 10.0.0.1:4000 > 10.0.0.2:53"),
    "icmp": (ip4(bytes(8), 1), "icmp 10.0.0.1 > 10.0.0.2"),
    "later fragment": (ip4(udp(), 17, fragment=100),
                       "udp 10.0.0.1 > 10.0.0.2"),
    "six": (ip6(tcp()), "tcp [fe80::1]:1234 > [fe80::2]:80"),
    "extensions": (ip6(b"\x3c\0" + bytes(6) + b"\x06\0" + bytes(6) + tcp(), 0),
                   "tcp [fe80::1]:1234 > [fe80::2]:80"),
    "authenticated": (ip6(b"\x06\x01" + bytes(10) + tcp(), 51),
                      "tcp [fe80::1]:1234 > [fe80::2]:80"),
    "fragment of six": (ip6(b"\x11\0\0\x08" + bytes(4) + udp(), 44),
                        "udp fe80::1 > fe80::2"),
    "other": (ip4(b"", 89), "ip-89 10.0.0.1 > 10.0.0.2"),
}.values(), ids=lambda x: x if isinstance(x, str) else "")
def test_packets(ok, tmp_path, packet, key):
    assert keys_of(ok, capture(tmp_path / "c", [ether(packet)])) == {key: 1}


def test_vlans(ok, tmp_path):
    frame = MAC + b"\x88\xa8\0\x05\x81\0\0\x06\x08\0" + ip4(tcp())
    assert len(keys_of(ok, capture(tmp_path / "c", [frame]))) == 1


INSIDE = ip4(udp(source=7, target=9), 17, "172.16.0.1", "172.16.0.2")
TUNNELS = {
    "gre": ip4(b"\0\0\x08\0" + INSIDE, 47),
    "gre with a key": ip4(b"\x20\0\x08\0\0\0\0\x01" + INSIDE, 47),
    "bridged": ip4(b"\0\0\x65\x58" + ether(INSIDE), 47),
    "ip in ip": ip4(INSIDE, 4),
    "in six": ip6(INSIDE, 4),
    "vxlan": ip4(udp(b"\x08" + bytes(7) + ether(INSIDE), target=4789), 17),
}


@pytest.mark.parametrize("tunnel", TUNNELS)
def test_tunnels(ok, tmp_path, tunnel):
    path = capture(tmp_path / "c", [ether(TUNNELS[tunnel])])
    assert "172.16.0.1" not in str(keys_of(ok, path))
    assert keys_of(ok, path, "--inner") == {
        "udp 172.16.0.1:7 > 172.16.0.2:9": 1}


@pytest.mark.parametrize("key, text", [
    ("src", "10.1.2.3"), ("dst", "10.0.0.2"), ("srcdst", "10.1.2.3 > 10.0.0.2"),
    ("prefix/16", "10.1.0.0/16"), ("prefix/20", "10.1.0.0/20"),
    ("prefix/128", "10.1.2.3/32")])
def test_keys(ok, tmp_path, key, text):
    path = capture(tmp_path / "c", [ether(ip4(tcp(), src="10.1.2.3"))])
    assert keys_of(ok, path, "--key", key) == {text: 1}


def test_what_is_cut_is_counted_and_never_guessed(ok, tmp_path):
    """At every snap length: the right flow, or none."""
    right = "tcp 10.0.0.1:1234 > 10.0.0.2:80"
    for snap in range(60):
        path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 3, snap=snap)
        rows, told = flows(ok, "--threshold", "1", path)
        assert set(rows) <= {right} and told["packets"] == 3
        assert told["bytes"] == 3 * 54
        assert told["cut"] == (0 if rows else 3)
        assert bool(rows) == (snap >= 14 + 20 + 4)
        if snap >= 14 + 20:
            assert list(flows(ok, "--threshold", "1", "--key", "src",
                              path)[0]) == ["10.0.0.1"]


def test_bad_and_other_packets(ok, tmp_path):
    short = bytearray(ip4(tcp()))
    short[2:4] = b"\0\x05"                     # shorter than its header
    frames = [ether(bytes(short)), MAC + b"\x08\x06" + bytes(28),
              ether(b"\x50" + bytes(40)), ether(ip4(tcp()))]
    rows, told = flows(ok, "--threshold", "1", capture(tmp_path / "c", frames))
    assert len(rows) == 1 and told["bad"] == 2 and told["other"] == 1


# ---------------------------------------------------------------- heavy flows

def zipf(ok, tmp_path, nflows=2000, npackets=30000):
    path = tmp_path / "zipf.pcap"
    ok("traffic", "gen", "-o", path, "--flows", nflows, "--count", npackets)
    return path


def test_exact_with_a_threshold_of_one_byte(ok, tmp_path):
    path = zipf(ok, tmp_path)
    rows, told = flows(ok, "--threshold", "1", "--entries", "5000", path)
    assert len(rows) == 2000 and told["packets"] == 30000
    assert sum(r["packets"] for r in rows.values()) == 30000
    assert all(r["bytes"] == r["bytes_max"] == 1000 * r["packets"]
               for r in rows.values())
    sizes = [rows[f"tcp 10.0.{i >> 8}.{i & 255}:1024 > 192.168.0.1:80"]
             ["packets"] for i in range(1, 2001)]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] >= 1


@pytest.mark.parametrize("counters", [1, 30, 3000])
def test_no_heavy_flow_is_missed(ok, tmp_path, counters):
    path = zipf(ok, tmp_path)
    exact, _ = flows(ok, "--threshold", "1", "--entries", "5000", path)
    for how in ((), ("--plain",), ("--no-shield",), ("--plain", "--no-shield"),
                ("--serial",), ("--shared",), ("--shared", "--plain")):
        for threshold in 5000, 50_000, 300_001:
            rows, _ = flows(ok, "--threshold", threshold, "--counters",
                            counters, "--entries", "5000", *how, path)
            heavy = {k for k, r in exact.items() if r["bytes"] >= threshold}
            assert heavy <= set(rows), how
            for k, r in rows.items():
                assert r["bytes"] <= exact[k]["bytes"] <= r["bytes_max"]
                assert r["bytes_max"] >= threshold


def test_each_device_helps(ok, tmp_path):
    """Plain finds more by mistake than conservative, and that without shield
    more than with."""
    path = zipf(ok, tmp_path, 20000, 200000)
    n = [len(flows(ok, "--threshold", "1%", "--counters", "300", "--entries",
                   "20000", *how, path)[0])
         for how in (("--plain", "--no-shield"), ("--no-shield",), ())]
    assert n[0] > n[1] >= n[2]


def test_full_memory_is_said(bly, ok, tmp_path):
    path = zipf(ok, tmp_path)
    said = bly("traffic", "flows", "--threshold", "1", "--entries", "10", path)
    assert said.status == 2 and "--entries 40" in said.err
    assert len(said.out.splitlines()) == 11


def test_intervals(ok, tmp_path):
    """A flow that stays is counted exactly from its second interval on."""
    frames, times = [], []
    for second in range(5):
        for i in range(100):
            frames.append(ether(ip4(tcp() + bytes(946))))
            times.append(1000 + second + i / 200)
    path = capture(tmp_path / "c", frames, times=times)
    out = ok("traffic", "flows", "--json", "--interval", "1", "--threshold",
             "50k", path).out.splitlines()
    rows = [json.loads(x) for x in out[:-1]]
    assert [r["interval"] for r in rows] == [1000, 1001, 1002, 1003, 1004]
    assert [r["packets"] for r in rows[1:]] == [100] * 4
    assert all(r["bytes"] == r["bytes_max"] == 100_000 for r in rows[1:])
    assert rows[0]["bytes"] < 100_000 <= rows[0]["bytes_max"]


def test_clocks_that_run_backwards(ok, tmp_path):
    times = [1000, 1001.5, 999, 500, 1001.6, 2e9, 10]
    path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 7, times=times)
    _, told = flows(ok, "--interval", "1", "--threshold", "1", path)
    assert told["packets"] == 7 and told["backwards"] == 3


def test_forms(ok, tmp_path):
    path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 4)
    rows = list(csv.DictReader(ok(
        "traffic", "flows", "--form", "csv", "-q", path).out.splitlines()))
    assert [(r["key"], r["bytes"], r["packets"]) for r in rows] == [
        ("tcp 10.0.0.1:1234 > 10.0.0.2:80", "216", "4")]
    said = ok("traffic", "flows", path)
    assert said.out.split()[-4:] == ["tcp", "10.0.0.1:1234", ">", "10.0.0.2:80"]
    assert "4 packets" in said.err
    with path.open("rb") as f:
        assert ok("traffic", "flows", "--threshold", "1", "-",
                  stdin=f.read()).out == said.out


def test_generated_captures_repeat(ok, tmp_path):
    for name, seed in ("a", 5), ("b", 5), ("c", 6):
        ok("traffic", "gen", "-o", tmp_path / name, "--count", "1000",
           "--flows", "50", "--seed", seed)
    a, b, c = ((tmp_path / n).read_bytes() for n in "abc")
    assert a == b != c and len(a) == len(c)


# ------------------------------------------------------------------ bad input

@pytest.mark.parametrize("argv, says", [
    (("--key", "port"), "prefix/24"), (("--key", "prefix/0"), "prefix/24"),
    (("--threshold", "x"), "0.1%"), (("--threshold", "0"), "0.1%"),
    (("--threshold", "101%"), "0.1%"), (("--interval", "0"), "seconds"),
    (("--stages", "17"), "16"), (("--serial", "--shared"), "--serial"),
    (("--form", "xml"), "csv"), (("--form", "csv", "--json"), "exclude"),
    (("--interface", "lo"), "exclude"),
    (("--entries", "1000000000000"), "268435456")])
def test_wrong_options(trouble, tmp_path, argv, says):
    path = capture(tmp_path / "c", [ether(ip4(tcp()))])
    trouble("traffic", "flows", *argv, path, says=says)


def test_files_that_are_none(trouble, tmp_path):
    for name, content in ("empty", b""), ("text", b"no capture\n" * 9):
        path = tmp_path / name
        path.write_bytes(content)
        trouble("traffic", "flows", path, says=name)
    trouble("traffic", "flows", tmp_path / "missing", says="missing")
    trouble("traffic", "flows", "--threshold", "1%", "-", stdin="",
            says="in bytes")
    trouble("traffic", "flows", "--interface", "no-such", says="no-such")


def test_links_that_are_not_known(bly, tmp_path):
    """Their packets are counted, and that they are there is said once."""
    path = capture(tmp_path / "odd", [b"x", b"yy"], link=147)
    said = bly("traffic", "flows", "--json", path)
    told = json.loads(said.out)
    assert said.status == 0 and told["other"] == 2 and told["bytes"] == 3
    assert said.err.count("link type 147") == 1


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    n = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + n + body + n


def section(order="<"):
    return block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1),
                 order)


def interface(link, order="<", options=b""):
    return block(1, struct.pack(order + "HHI", link, 0, 0) + options, order)


def enhanced(number, packet, units, order="<"):
    return block(6, struct.pack(order + "IIIII", number, units >> 32,
                                units & 0xffffffff, len(packet), len(packet))
                 + packet, order)


@pytest.mark.parametrize("order", "<>")
def test_pcapng_with_interfaces_that_differ(ok, tmp_path, order):
    """Link types, resolutions of time, simple and unknown blocks, and a second
    section: what libpcap does not take."""
    fine = struct.pack(order + "HHB3x", 9, 1, 9) + bytes(4)
    packet = ip4(tcp())
    path = tmp_path / "c"
    path.write_bytes(
        section(order) + interface(1, order) + interface(101, order, fine)
        + block(0x0bad, b"skipped", order)
        + enhanced(0, ether(packet), 5_000_000, order)
        + enhanced(1, packet, 6_000_000_000, order)
        + block(3, struct.pack(order + "I", 54) + ether(packet), order)
        + block(2, struct.pack(order + "HHIIII", 1, 0, 1, 0x65a0bc00, 40, 40)
                + packet, order)
        + section("<") + interface(113) + enhanced(
            0, bytes(14) + b"\x08\x00" + packet, 8_000_000))
    rows, told = flows(ok, "--threshold", "1", path)
    assert list(rows) == ["tcp 10.0.0.1:1234 > 10.0.0.2:80"]
    assert told["packets"] == 5 and told["bytes"] == 54 + 40 + 54 + 40 + 56
    assert told["seconds"] == 3


@pytest.mark.parametrize("bad, says", [
    (block(6, struct.pack("<IIIII", 7, 0, 0, 4, 4) + b"xxxx"), "interface"),
    (block(6, struct.pack("<IIIII", 0, 0, 0, 99, 4) + b"xxxx"), "its block"),
    (block(6, b"xxxx"), "too short"), (struct.pack("<III", 5, 8, 8), "length"),
    (block(1, b"x")[:-4] + b"\0\0\0\0", "differ"),
    (block(5, b"x")[:-1], "truncated"), (struct.pack("<II", 6, 1 << 24) * 4,
                                         "megabyte"),
    (section()[:-8] + b"\xff" * 4, "truncated")])
def test_damaged_pcapng(bly, tmp_path, bad, says):
    path = tmp_path / "c"
    path.write_bytes(section() + interface(1)
                     + enhanced(0, ether(ip4(tcp())), 1) + bad)
    said = bly("traffic", "flows", "--threshold", "1", path)
    assert said.status == 2 and says in said.err and "1 packet, " in said.err


def test_old_forms_of_pcap(ok, tmp_path):
    packet = ether(ip4(tcp()))
    head = struct.pack("<IIII", 9, 0, len(packet), len(packet))
    for magic, minor, extra in ((0xa1b23c4d, 4, b""), (0xa1b2cd34, 4, bytes(8)),
                                (0xa1b2c3d4, 2, b""), (0xa1b2c3d4, 3, b"")):
        path = tmp_path / "c"
        path.write_bytes(struct.pack("<IHHiIII", magic, 2, minor, 0, 0, 65535, 1)
                         + (head + extra + packet) * 2)
        assert keys_of(ok, path) == {"tcp 10.0.0.1:1234 > 10.0.0.2:80": 2}
    packed = tmp_path / "c.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert keys_of(ok, packed) == {"tcp 10.0.0.1:1234 > 10.0.0.2:80": 2}


def test_what_came_before_the_damage_is_told(bly, tmp_path):
    path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 10)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    for how in ("--threshold", "1"), ():
        said = bly("traffic", "flows", *how, path)
        assert said.status == 2 and "9 packets" in said.err
        assert said.err.count("truncated") == 1
        assert said.out.split()[-5] == "9"


# ------------------------------------------------------------- other programs

ODD = os.path.join(os.environ.get("BLY_BUILD", "build"), "captures/tcpdump")
# Wireshark's reader takes a header of the link away before it counts: of
# SunATM's packets the first 4 bytes.
SUNATM = 123


def real_captures():
    """Of Debian's packages: gopacket, dpkt, pathspider, and what tcpdump's own
    tests are made of (tools/captures)."""
    names = sorted(
        glob.glob(f"{GOPACKET}/**/*.pcap*", recursive=True)
        + glob.glob("/usr/share/doc/python3-dpkt/examples/data/*.pcap")
        + glob.glob("/usr/lib/python3/dist-packages/pathspider/tests/data/*")
        + glob.glob(f"{ODD}/*"))
    every = 1 if os.environ.get("BLY_FULL") == "1" else 7
    return names[::every]


def theirs_of(paths):
    """{path: (packets, bytes)} of what Wireshark's reader takes."""
    out = subprocess.run(["capinfos", "-T", "-m", "-r", "-c", "-d", *paths],
                         capture_output=True, text=True, timeout=PATIENCE)
    rows = csv.reader(out.stdout.splitlines())
    return {r[0]: (int(r[1]), int(r[2])) for r in rows if len(r) == 3}


@pytest.mark.skipif(not shutil.which("capinfos"), reason="no tshark")
@pytest.mark.skipif(not real_captures(), reason="no captures (gopacket)")
def test_totals_are_wiresharks(bly):
    paths = real_captures()
    theirs = theirs_of(paths)
    assert len(theirs) > len(paths) * 0.9
    for path in theirs:
        said = bly("traffic", "flows", "--json", "--threshold", "1",
                   "--entries", "100k", path)
        told = json.loads(said.out.splitlines()[-1])
        packets, size = theirs[path]
        if f"link type {SUNATM}" in said.err:
            size += 4 * packets
        assert (told["packets"], told["bytes"]) == (packets, size), path
        assert said.status == 0


@pytest.mark.skipif(not real_captures(), reason="no captures (gopacket)")
def test_other_verbs_take_them_too(bly, ok, tmp_path):
    """Found, not found or damaged, with one line that says why: nothing else
    comes of odd captures."""
    (tmp_path / "strings").write_text("HTTP\nattack\n")
    (tmp_path / "list").write_text("10.0.0.0/8\n2001:db8::/32\n")
    ok("traffic", "block", "-o", "list.bly", "list")
    for path in real_captures()[::4]:
        for argv in (["count"], ["scan", "--strings", "strings"],
                     ["digest", "-o", "d"], ["queue"],
                     ["block", "--inner", "list.bly"]):
            said = bly("traffic", *argv, "-q", path)
            assert said.status in (0, 1, 2), (argv, path, said.err)
            assert (said.status == 2) == any(
                "warning" not in x for x in said.err.splitlines()), said.err


@pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark")
def test_totals_are_tsharks_too(bly):
    """The reader of capinfos and tshark is the same; of a few it is seen."""
    for path in real_captures()[::50]:
        said = bly("traffic", "flows", "--json", "--threshold", "1", path)
        theirs = subprocess.run(
            ["tshark", "-r", path, "-T", "fields", "-e", "frame.len", "-e",
             "frame.protocols", "-e", "frame.interface_id"],
            capture_output=True, text=True, timeout=PATIENCE)
        if theirs.returncode != 0 or said.status != 0:
            continue
        # It also lists blocks that are no packets, and of no interface.
        sizes = [int(x[0]) for x in
                 (line.split("\t") for line in theirs.stdout.splitlines())
                 if not (x[1] == "data" and not x[2])]
        told = json.loads(said.out.splitlines()[-1])
        assert (told["packets"], told["bytes"]) == (len(sizes), sum(sizes)), path


@pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark")
def test_flows_are_tsharks(ok, tmp_path):
    frames = [ether(ip4(tcp(1000 + i % 7), src=f"10.0.0.{i % 3}"))
              for i in range(300)]
    frames += [ether(ip6(udp(b"x", i % 5 + 1), 17)) for i in range(100)]
    path = capture(tmp_path / "c", frames)
    fields = ["ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport",
              "udp.srcport", "tcp.dstport", "udp.dstport"]
    lines = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", *(x for f in fields
                                                 for x in ("-e", f))],
        capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    theirs = collections.Counter()
    for line in lines.splitlines():
        v = line.split("\t")
        a, b, s, t = (v[i] or v[i + 1] for i in (0, 2, 4, 6))
        proto = "tcp" if v[4] else "udp"
        if ":" in a:
            a, b = f"[{a}]", f"[{b}]"
        theirs[f"{proto} {a}:{s} > {b}:{t}"] += 1
    assert keys_of(ok, path) == theirs


# Intervals are printed as they end, and packets come in order: what was sent
# between two marks was counted when the second one is.
ON_LOOPBACK = """
import signal, socket, subprocess, sys, time
watcher = subprocess.Popen(
    [sys.argv[1], "traffic", "flows", "--interface", "lo", "--json",
     "--threshold", "1", "--interval", "0.2"], stdout=open("out", "wb"))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 5555))
def mark(port):
    while b":%d" % port not in open("out", "rb").read():
        assert watcher.poll() is None
        s.sendto(b"mark", ("127.0.0.1", port))
        time.sleep(0.05)
mark(7998)
for i in range(200):
    s.sendto(b"x" * 100, ("127.0.0.1", 6000 + i % 2))
mark(7999)
watcher.send_signal(signal.SIGTERM)
sys.exit(watcher.wait())
"""


def test_an_interface(tmp_path):
    """Packets on the loopback of a namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", 'ip link set lo up || exit 77; exec "$@"',
         "sh", sys.executable, "-c", ON_LOOPBACK, PROGRAM], cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.returncode == 0, done.stderr
    counts = collections.Counter()
    for row in (tmp_path / "out").read_text().splitlines()[:-1]:
        row = json.loads(row)
        counts[row["key"]] += row["packets"]
    # The loopback shows a packet when it is sent and, on some kernels, again.
    sent = [counts[f"udp 127.0.0.1:5555 > 127.0.0.1:{p}"] for p in (6000, 6001)]
    assert sent[0] == sent[1] and sent[0] in (100, 200)
