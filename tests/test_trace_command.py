"""bloomery traffic digest and trace: a packet's way back through routers, also
where these change it."""

import json
import random
import struct

import pytest

from test_traffic_command import capture, ether, ip4, udp

NET = "r1 r2\nr2 r3\nr3 r4\nr2 x1\nr3 x2\n# r4 is the source's\n"


def packet(number, size=200, **kw):
    payload = struct.pack(">I", number) + bytes(size)
    return ip4(udp(payload, source=1000 + number % 50000), 17, **kw)


def digest(ok, name, packets, *argv, **kw):
    capture(ok.path / f"{name}.pcap", [ether(x) for x in packets], **kw)
    return json.loads(ok("traffic", "digest", "--json", "--seed", 3, "-o",
                         f"{name}.dig", f"{name}.pcap", *argv).out)


def traced(bly, *argv, status=0, start="r1"):
    """{router: (answer, change)}, and the summary."""
    got = bly("traffic", "trace", "--json", "--topology", "net", "--packet",
              "p.pcap", "--from", start, *argv,
              *sorted(x.name for x in bly.path.glob("*.dig")))
    assert got.status == status, got.err
    lines = [json.loads(x) for x in got.out.splitlines()]
    return {x["router"]: (x["answer"], x.get("change"))
            for x in lines[:-1]}, lines[-1]


@pytest.fixture
def net(ok):
    (ok.path / "net").write_text(NET)
    return ok


def others(seed, n=300):
    chance = random.Random(seed)
    return [packet(chance.randrange(10**6, 10**9)) for _ in range(n)]


def test_way_is_found(net, bly):
    mine = packet(7)
    for i, name in enumerate(["r1", "r2", "r3", "r4", "x1", "x2"]):
        # Each router takes one from the time to live.
        passed = [mine[:8] + bytes([60 - i]) + mine[9:]] if name[0] == "r" \
            else []
        digest(net, name, others(i) + passed, "--bits", 40)
    capture(net.path / "p.pcap", [ether(mine)], times=[1000.3])
    found, total = traced(bly)
    assert found == {**{f"r{i}": ("maybe", None) for i in range(1, 5)},
                     "x1": ("no", None), "x2": ("no", None)}
    assert total == {"asked": 6, "passed": 4, "last": 1, "silent": 0, "forgotten": 0, "absent": 0}
    got = bly("traffic", "trace", "--topology", "net", "--packet", "p.pcap",
              "--from", "r1", *(f"r{i}.dig" for i in range(1, 5)))
    assert got.out.splitlines() == [
        "   0 r1: maybe", "   1 r2, behind r1: maybe",
        "   2 r3, behind r2: maybe", "   2 x1, behind r2: no table",
        "   3 r4, behind r3: maybe, none behind it",
        "   3 x2, behind r3: no table"]
    assert "2 have no table of that time" in got.err
    # Another packet, and another time.
    capture(net.path / "p.pcap", [ether(packet(8))], times=[1000.3])
    assert traced(bly, status=1)[1]["passed"] == 0
    assert traced(bly, "--time", 5000, status=2)[1]["silent"] == 1


UDP_IN = struct.pack(">HHHH", 1000, 53, 28, 0) + bytes(20)


def test_nat(net, bly):
    inside = ip4(UDP_IN, 17, src="10.0.0.5")
    outside = ip4(UDP_IN, 17, src="192.0.2.77")
    (net.path / "nat").write_text("# home\n10.0.0.5 192.0.2.77\n")
    digest(net, "r1", others(1) + [outside], "--bits", 40)
    assert digest(net, "r2", others(2) + [inside], "--bits", 40, "--nat",
                  "nat")["sides"] == 1
    digest(net, "r3", others(3) + [inside], "--bits", 40)
    capture(net.path / "p.pcap", [ether(outside)], times=[1000.3])
    found, _ = traced(bly)
    assert (found["r1"], found["r2"], found["r3"]) == \
        (("maybe", None), ("changed", "nat"), ("maybe", None))


def udp_sum(body, src, dst, partial):
    """The packet with its checksum, or with what Linux leaves for the network
    card to complete (and for ever, between virtual ones)."""
    pseudo = bytes(map(int, f"{src}.{dst}".split("."))) + struct.pack(
        ">HH", 17, len(body))
    total = sum(struct.unpack(f">{(len(pseudo)) // 2}H", pseudo))
    if not partial:
        total += sum(struct.unpack(f">{len(body) // 2}H", body))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ip4(body[:6] + struct.pack(">H", total if partial else
                                      total ^ 0xffff) + body[8:],
               17, src=src, dst=dst)


def test_nat_and_checksums_of_cards(net, bly):
    """Wherever on the way the checksum is filled in, the way is found."""
    (net.path / "nat").write_text("10.0.0.5:1000 192.0.2.77:4000\n")
    left = struct.pack(">H", 4000) + UDP_IN[2:]
    for filled in range(5):
        for i in 1, 2, 3, 4:
            # r4 saw it first, r2 translates what comes in.
            body, src = (left, "192.0.2.77") if i == 1 else \
                (UDP_IN, "10.0.0.5")
            seen = udp_sum(body, src, "198.51.100.1", partial=i > filled)
            digest(net, f"r{i}", others(i) + [seen], "--bits", 40,
                   *["--nat", "nat"] * (i == 2))
        capture(net.path / "p.pcap", [ether(udp_sum(
            left, "192.0.2.77", "198.51.100.1", partial=filled == 0))],
            times=[1000.3])
        found, _ = traced(bly)
        assert found["r2"] == ("changed", "nat")
        assert [found[x][0] for x in ("r1", "r3", "r4")] == 3 * ["maybe"]


def test_a_translating_router_keeps_its_rate(ok):
    """Entries of the side table come on top of the filters."""
    ok("traffic", "gen", "-o", "c.pcap", "--count", 5000)
    total = json.loads(ok("traffic", "digest", "--json", "-o", "a.dig",
                          "c.pcap").out)
    # All of the generated packets come from 10.0.0.0/8.
    rows = json.loads(ok("traffic", "flows", "--json", "--key", "src",
                         "c.pcap").out.splitlines()[0])
    assert rows["key"].startswith("10.")
    (ok.path / "nat").write_text(f"{rows['key']} 192.0.2.1\n")
    changed = json.loads(ok("traffic", "digest", "--json", "-o", "b.dig",
                            "--nat", "nat", "c.pcap").out)
    assert changed["sides"] > 0 and changed["rate"] == total["rate"]


def test_tables_of_old(net, bly, trouble):
    """They may say no of a packet that has passed."""
    digest(net, "r1", others(1))
    capture(net.path / "p.pcap", [ether(packet(1))])
    (net.path / "r1.dig").write_bytes(
        b"BLYDIG1" + (net.path / "r1.dig").read_bytes()[7:])
    trouble("traffic", "trace", "--topology", "net", "--packet", "p.pcap",
            "--from", "r1", "r1.dig", says="older")


def test_tunnel(net, bly):
    inner = packet(9)
    outer = ip4(inner, 4, src="203.0.113.1", dst="203.0.113.2")
    digest(net, "r1", others(1) + [inner], "--bits", 40)
    digest(net, "r2", others(2) + [outer], "--bits", 40, "--inner")
    digest(net, "r3", others(3) + [outer], "--bits", 40)
    capture(net.path / "p.pcap", [ether(inner)], times=[1000.3])
    found, _ = traced(bly)
    assert (found["r2"], found["r3"]) == (("changed", "tunnel"),
                                          ("maybe", None))


def test_fragment(net, bly):
    whole = packet(11, size=1000)
    body = whole[20:]
    header = bytearray(whole[:20])
    n = (576 - 20) // 8 * 8
    second = bytes(header[:2]) + struct.pack(">H", 20 + len(body) - n) \
        + bytes(header[4:6]) + struct.pack(">H", n // 8) \
        + bytes(header[8:]) + body[n:]
    digest(net, "r1", others(1) + [second], "--bits", 40)
    assert digest(net, "r2", others(2) + [whole], "--bits", 40, "--mtu",
                  576)["sides"] == 2
    digest(net, "r3", others(3) + [whole], "--bits", 40)
    capture(net.path / "p.pcap", [ether(second)], times=[1000.3])
    found, _ = traced(bly)
    assert (found["r2"], found["r3"]) == (("changed", "fragment"),
                                          ("maybe", None))


def small_packets(path, n):
    """A capture of packets of 66 bytes."""
    out = [struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)]
    for i in range(n):
        frame = ether(packet(i, 20))
        out.append(struct.pack("<IIII", 1000 + i // 1000, i % 1000 * 1000,
                               len(frame), len(frame)) + frame)
    path.write_bytes(b"".join(out))


def test_half_a_percent(ok):
    """Whatever the packets are, from 0.8 MB on; slices have seeds of their
    own."""
    ok("traffic", "gen", "-o", "large.pcap", "--count", 10_000)
    small_packets(ok.path / "small.pcap", 20_000)
    for name, tables in ("large", 5), ("small", 1):
        argv = "traffic", "digest", "--json", "--interval", 0.01, "-o", \
            "r.dig", f"{name}.pcap"
        total = json.loads(ok(*argv).out)
        assert 0 < total["share"] <= 0.005
        assert total["tables"] >= tables
        assert (total["rate"] < 0.001) == (name == "large")
        first = (ok.path / "r.dig").read_bytes()
        ok(*argv)
        assert (ok.path / "r.dig").read_bytes() != first
    ok(*argv, "--entries", 1)


def test_bad_files(net, bly, trouble):
    digest(net, "r1", others(1))
    capture(net.path / "p.pcap", [ether(packet(1))])
    good = (net.path / "r1.dig").read_bytes()

    def fails(says, *argv):
        trouble("traffic", "trace", "--topology", "net", "--packet", "p.pcap",
                "--from", "r1", *argv, says=says)
    for bad in good[:-1], good[:50], b"", b"x" * 99, good + b"x", \
            good[:60] + bytes([good[60] ^ 1]) + good[61:]:
        (net.path / "bad.dig").write_bytes(bad)
        fails("bad.dig", "bad.dig")
    fails("second file", "r1.dig", "r1.dig")
    fails("none.dig", "none.dig")
    fails("--within", "r1.dig", "--within", "x")
    fails("packet 3", "r1.dig", "--count", 3)
    (net.path / "net").write_text("r1 r2\nr1\n")
    fails("line 2", "r1.dig")
    (net.path / "net").write_text("r8 r9\n")
    fails("no such router r1", "r1.dig")
    (net.path / "nat").write_text("nonsense\n")
    for argv, says in (["r1.pcap"], "-o"), (["-o", "x.dig"], "CAPTURE"), \
            (["-o", "x.dig", "r1.pcap", "--nat", "nat"], "line 1"), \
            (["-o", "x.dig", "r1.pcap", "--bits", 65], "--bits"), \
            (["-o", "x.dig", "r1.pcap", "--mtu", 5], "--mtu"), \
            (["-o", "x.dig", "r1.pcap", "--interval", "-1"], "--interval"):
        trouble("traffic", "digest", *argv, says=says)
    assert not (net.path / "x.dig").exists()


def test_damaged_capture(bly):
    """What came before is kept."""
    path = capture(bly.path / "c", [ether(packet(i)) for i in range(9)])
    path.write_bytes(path.read_bytes()[:-3])
    got = bly("traffic", "digest", "--json", "-o", "r.dig", path)
    assert got.status == 2 and json.loads(got.out)["packets"] == 8
    assert (bly.path / "r.dig").exists()
