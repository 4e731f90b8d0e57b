"""bloomery traffic count: sketches of all flows, beside exact counts."""

import collections
import csv
import json

import pytest

from test_traffic_block import pytestmark  # noqa: F401
from test_traffic_command import capture, ether, ip4, ip6, tcp, udp

SKETCHES = "countmin", "spectral", "spacecode"


def counted(ok, *argv):
    """{key: row}, and the summary."""
    lines = [json.loads(x) for x in
             ok("traffic", "count", "--json", *argv).out.splitlines()]
    assert len({x["key"] for x in lines[:-1]}) == len(lines) - 1
    return {x["key"]: x for x in lines[:-1]}, lines[-1]


def mixed(path, nflows=300):
    """Flow i has i packets, of 54 to 853 bytes; and the exact counts."""
    frames, packets, sizes = [], collections.Counter(), collections.Counter()
    for i in range(1, nflows + 1):
        source = f"10.0.{i >> 8}.{i & 255}"
        for k in range(i):
            frames.append(ether(ip4(tcp(1000 + i) + bytes((i + k) % 800),
                                    src=source)))
            packets[source] += 1
            sizes[source] += len(frames[-1])
    return capture(path, frames), packets, sizes


@pytest.mark.parametrize("sketch", SKETCHES)
def test_errors_are_as_stated(ok, tmp_path, sketch):
    path, packets, sizes = mixed(tmp_path / "c")
    rows, told = counted(ok, "--sketch", sketch, "--key", "src", path,
                         *(("--error", "0.5%") if sketch == "countmin" else ()))
    assert set(rows) == set(packets) and told["sketch"] == sketch
    assert told["packets"] == sum(packets.values())
    assert told["bytes"] == sum(sizes.values()) and told["flows"] == 300
    if sketch == "countmin":
        over = [k for k in rows if rows[k]["bytes"] - sizes[k]
                > told["bytes_over"]]
        assert all(rows[k]["packets"] >= packets[k] for k in rows)
        assert all(rows[k]["bytes"] >= sizes[k] for k in rows)
        assert len(over) <= 300 * 0.05 and told["delta"] < 0.01
        assert told["bytes_over"] <= 0.005 * told["bytes"]
    elif sketch == "spectral":
        wrong = [k for k in rows if rows[k]["packets"] != packets[k]]
        assert all(rows[k]["packets"] >= packets[k] for k in rows)
        # 1 % of 300, and six deviations more.
        assert len(wrong) <= 14 and told["wrong"] < 0.011
    else:
        big = [k for k in rows if packets[k] >= 10]
        for what, exact in ("packets", packets), ("bytes", sizes):
            off = [abs(rows[k][what] - exact[k]) / exact[k] for k in big]
            assert sum(off) / len(off) < 0.3, what


def test_keys_from_a_file(ok, bly, tmp_path):
    """What is printed can be asked for, whatever the key."""
    frames = [ether(ip4(tcp(), src="10.0.0.7"))] * 5 + [
        ether(ip6(udp(b"x"), 17))] * 3 + [ether(ip4(bytes(8), 1))]
    path = capture(tmp_path / "c", frames)
    for key in "5tuple", "src", "dst", "srcdst", "prefix/20":
        every, _ = counted(ok, "--key", key, path)
        text = "".join(f"{k}\n" for k in every)
        (tmp_path / "k").write_text(text)
        some, told = counted(ok, "--key", key, "--keys", "k", path)
        assert some == every and told["flows"] == len(every)
        (tmp_path / "k").write_text(text + "no flow\n")
        said = bly("traffic", "count", "--key", key, "--keys", "k", path)
        assert said.status == 2 and f"line {len(every) + 1} " in said.err
        assert not said.out  # before anything is counted
    (tmp_path / "k").write_text("10.0.0.7\n10.9.9.9\n")
    lines = ok("traffic", "count", "--key", "src", "--keys", "k", "--form",
               "csv", "-", stdin=path.read_bytes()).out.splitlines()
    assert lines[1:] == ["10.0.0.7,5,270", "10.9.9.9,0,0"]


@pytest.mark.parametrize("argv, says", [
    (("--sketch", "bloom", "c"), "spectral"), (("-",), "--keys"),
    (("--key", "port", "c"), "prefix/24"), ((), "CAPTURE"),
    (("--sketch", "spacecode", "--error", "1%", "c"), "--error"),
    (("--sketch", "spectral", "--keys", "k", "-"), "once"),
    (("--keys", "missing", "--form", "csv", "--json", "c"), "exclude"),
    (("--keys", "missing", "c"), "missing"), (("none",), "none")])
def test_wrong_options(trouble, tmp_path, argv, says):
    capture(tmp_path / "c", [ether(ip4(tcp()))])
    trouble("traffic", "count", *argv, says=says)


def test_damaged_captures_are_told_once(bly, tmp_path):
    path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 10)
    path.write_bytes(path.read_bytes()[:-20])
    said = bly("traffic", "count", path)
    assert said.status == 2 and "9 packets" in said.err
    assert said.err.count("truncated") == 1


def test_forms(ok, tmp_path):
    path = capture(tmp_path / "c", [ether(ip4(tcp()))] * 4)
    rows = list(csv.DictReader(ok("traffic", "count", "--form", "csv", "-q",
                                  path).out.splitlines()))
    assert rows == [{"key": "tcp 10.0.0.1:1234 > 10.0.0.2:80",
                     "packets": "4", "bytes": "216"}]
    assert ok("traffic", "count", path).out.split()[-6:-4] == ["4", "216"]
