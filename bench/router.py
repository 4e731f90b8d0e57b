#!/usr/bin/python3
"""bloomery net router on real packets: how fast beside the kernel, and what its marks cost.

    bench/router.py rate  [PROGRAM] [SECONDS]   packets per second through one router process and through the kernel
    bench/router.py drops [PROGRAM] [TRIES]     packets on loop-free ways that are dropped: the table of docs/net.md
    bench/router.py way   [PROGRAM] [TRIES]     senders that are found behind 15 routers, honest ones and attackers

Network namespaces joined by veth pairs. Needs root and iproute2; rate needs build/bench/udp_send.
"""
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = sys.argv[2] if len(sys.argv) > 2 else str(HERE.parent / "build/bloomery")
os.environ["BLOOMERY"] = os.path.abspath(PROGRAM)
os.environ.setdefault("BLY_BUILD", str(HERE.parent / "build"))
sys.path.insert(0, str(HERE.parent / "tests"))
import net_namespaces as nets  # noqa: E402

ROWS = (64, 2, 8), (64, 4, 8), (128, 4, 16), (256, 4, 16), (256, 8, 16), (256, 8, 30)


def network():
    return nets.Network()


def counter(net, node, iface, what="rx_packets"):
    return int(net.within(node, "cat", f"/sys/class/net/{iface}/statistics/{what}").stdout)


def passed(kernel, size, seconds):
    """Packets that the sender's kernel took, that came out behind the router, and the router's own processor time."""
    net = network()
    try:
        for name in "srd":
            net.node(name)
        net.link("s", "r")
        net.link("r", "d")
        net.route("s", None, "r")
        # The receiver has no such address, and drops what comes: nobody reads it.
        net.route("r", "fd99::/64", "d")
        routers, spent = None, 0.0
        if kernel:
            net.within("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
        else:
            routers = nets.Routers(net, "r")
        before = counter(net, "d", "dr")
        sent = int(net.within("s", os.environ["BLY_BUILD"] + "/bench/udp_send", "fd99::1", size, seconds).stdout)
        if routers:
            with open(f"/proc/{routers.running['r'].pid}/stat") as f:
                words = f.read().rpartition(")")[2].split()
            spent = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        came = counter(net, "d", "dr") - before
        if routers:
            for process in routers.running.values():
                process.terminate()
                process.communicate()
        return sent, came, spent
    finally:
        net.close()


def rate(seconds):
    print("bytes of UDP  by        offered/s   through/s   of the kernel's   CPU per packet")
    for size in 64, 1380:
        best = {}
        for _ in range(3):
            for kernel in True, False:
                sent, came, spent = passed(kernel, size, seconds)
                row = came / seconds, sent / seconds, spent / came if came else 0
                best[kernel] = max(best.get(kernel, (0,)), row)
        for kernel in True, False:
            through, offered, spent = best[kernel]
            print(f"{size:12}  {'kernel' if kernel else 'router':8} {offered:10.0f}  {through:10.0f}  "
                  f"{through / best[True][0]:13.3f}     {'' if kernel else f'{spent * 1e6:8.2f} us'}", flush=True)


def chain(routers, tries, header, *args):
    with tempfile.TemporaryDirectory() as folder:
        net = network()
        try:
            return nets.MarkedChain(net, routers, pathlib.Path(folder), *args).tries(tries, header)
        finally:
            net.close()


def drops(tries):
    print("bits, set, interfaces   formula   in namespaces   tries")
    for m, k, d in ROWS:
        came, counts = chain(d, tries, lambda i: b"", "--bits", m, "--set", k)
        lost = sum(c["loop"] for c in counts.values())
        assert lost + len(came) == tries
        print(f"{m:4}, {k:3}, {d:10}   {nets.false_drops(m, k, d):7.4f}   {lost / tries:13.4f}   {tries:5}", flush=True)


def way(tries):
    print("set and cleared   starts with   formula   mark left   whole way rebuilt   tries")
    for k in 1, 2:
        ones = nets.ones_for_the_way(256, 256)
        came, _ = chain(15, tries, lambda i, ones=ones: ones if i % 2 else b"", "--way-set", k)
        for odd in 0, 1:
            mine = [t for i, t in came.items() if i % 2 == odd]
            left = sum("r1" in t["left"] for t in mine) / len(mine)
            whole = sum("r1" in t["way"] for t in mine) / len(mine)
            print(f"{k:15}   {'ones' if odd else 'zeros':11}   {nets.mark_left(256, k, 14):7.3f}   {left:9.3f}   "
                  f"{whole:17.3f}   {len(mine):5}", flush=True)


if __name__ == "__main__":
    number = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "rate":
        rate(number or 3)
    elif what == "drops":
        drops(int(number or 1000))
    elif what == "way":
        way(int(number or 600))
    else:
        sys.exit(__doc__)
