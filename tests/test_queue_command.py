"""bloomery traffic queue: a simulation, and a capture that goes through."""

import json

from test_traffic_command import capture, ether, ip4, udp


def test_simulation(ok):
    tail, sfb = (json.loads(x) for x in
                 ok("traffic", "queue", "--json").out.splitlines())
    assert (tail["queue"], sfb["queue"]) == ("drop-tail", "sfb")
    assert tail["times"] > 3.6 and sfb["times"] < 2
    assert min(tail["use"], sfb["use"]) > 0.95
    again = ok("traffic", "queue", "--json").out.splitlines()
    assert json.loads(again[1]) == sfb
    assert "sfb" in ok("traffic", "queue", "--flows", 5, "--rate", "1M",
                       "--sender", "500k").out


def replayed(ok, *argv):
    return json.loads(ok("traffic", "queue", "--json", "c.pcap", *argv).out)


def test_replay(ok):
    """One flow of 8 Mb/s and ten of 40 kb/s: on a fast link all is sent; on
    one of 2 Mb/s the first is held back, and the others lose little."""
    large = ether(ip4(udp(bytes(1000), source=1), 17))
    packets, times = [], []
    for i in range(4000):
        packets.append(large)
        times.append(1000 + i * 0.001)
        if i % 20 == 0:
            packets.append(ether(ip4(udp(bytes(1000), source=10 + i // 20 % 10),
                                     17)))
            times.append(1000 + i * 0.001 + 0.0001)
    capture(ok.path / "c.pcap", packets, times=times, snap=60)
    fast = replayed(ok, "--rate", "100M")
    assert (fast["packets"], fast["taken"]) == (4200, 4200)
    slow = replayed(ok, "--rate", "2M")
    assert slow["taken"] + slow["early"] + slow["penalty"] + slow["full"] \
        == 4200
    assert 800 < slow["taken"] < 1500
    assert slow["sent"] >= slow["taken"] * 1000


def test_bad_calls(trouble, ok):
    capture(ok.path / "c.pcap", [ether(ip4(udp(), 17))])
    for argv, says in (["--rate", "x"], "--rate"), (["--bins", 1], "--bins"), \
            (["--levels", 17], "--levels"), (["--flows", 100000], "--flows"), \
            (["c.pcap", "--flows", 3], "--flows"), (["a", "b"], "CAPTURE"), \
            (["--sender", "1"], "--sender"), (["none.pcap"], "none.pcap"), \
            (["--rate", "900G"], "--rate"):
        trouble("traffic", "queue", *argv, says=says)
