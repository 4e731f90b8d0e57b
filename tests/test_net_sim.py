"""net sim: marks in packets and filters of groups, on networks."""
import xml.etree.ElementTree as xml

import pytest


def values(report):
    return {v["name"]: v["value"] for v in report["values"]}


def sim(ok, *args):
    return ok("net", "sim", *args, "--json").json


def test_circles_are_found_at_once(ok):
    report = sim(ok, "loop", "--topology", "grid:8x8", "--tries", 300)
    assert report["nodes"] == 64 and report["links"] == 112
    found = values(report)
    assert found["loops_found"] == 1 and found["late"] == 0 and found["wasted"] == 1
    assert found["wasted_by_limit"] > 50
    assert report["success"] > 0.99


def test_a_second_suspicion_costs_a_hop_and_saves_packets(ok):
    few = "--bits", 64, "--set", 2, "--topology", "geometric:400:8", "--tries", 2000
    once, twice = sim(ok, "loop", *few), sim(ok, "loop", *few, "--strikes", 2)
    assert 1.5 < values(twice)["wasted"] <= 2 and values(twice)["late"] == 0
    assert twice["success"] > once["success"]


def test_who_begins_with_ones_gains_nothing(ok):
    tree = "way", "--topology", "tree:2:10", "--tries", 500, "--set", 2
    zeros, ones = sim(ok, *tree), sim(ok, *tree, "--start", "ones")
    assert abs(values(zeros)["on_way"] - values(ones)["on_way"]) < 0.05
    assert values(ones)["others"] < 20
    plain = sim(ok, *tree, "--start", "ones", "--plain")
    assert values(plain)["others"] == 2047 - 1 - 10


def test_every_member_gets_one_copy(ok):
    report = sim(ok, "multicast", "--tries", 300)
    got = values(report)
    assert report["success"] == 1 and got["missing"] == 0 and got["twice"] == 0
    few = values(sim(ok, "multicast", "--tries", 300, "--cell-bits", 2))
    assert few["superfluous"] > 10 * got["superfluous"] and few["missing"] == 0


def test_equal_seeds_give_equal_runs(ok):
    for name in "loop", "way", "multicast":
        args = "net", "sim", name, "--tries", 50, "--topology", "random:60:4"
        assert ok(*args, "--seed", 3).out == ok(*args, "--seed", 3).out
        assert ok(*args, "--seed", 3).out != ok(*args, "--seed", 4).out


def test_a_network_of_ones_own_and_its_picture(ok):
    (ok.path / "net.txt").write_text(
        "# a way with a fork\nnode start 0 0.5\nedge start left\nedge left end\nedge start right 3\nedge right end\n")
    report = sim(ok, "loop", "--topology", "net.txt", "--tries", 20, "--plot", "net.svg")
    assert report["nodes"] == 4 and report["links"] == 4
    words = [t.text for t in xml.parse(ok.path / "net.svg").getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert {"left", "right"} & set(words)


@pytest.mark.parametrize("args,says", [
    (["sim", "lop"], "loop, way, multicast"),
    (["sim", "loop", "way"], "one experiment"),
    (["sim", "loop", "--bits", "100"], "64, 128"),
    (["sim", "loop", "--strikes", "3"], "at most 2"),
    (["sim", "way", "--start", "twos"], "zeros, ones or random"),
    (["sim", "way", "--plain", "--clear", "2"], "--plain"),
    (["sim", "loop", "--topology", "nowhere.txt"], "grid:WxH"),
    (["sim", "loop", "--topology", "grid:5"], "grid:WxH"),
    (["sim", "loop", "--topology", "ring:2000000"], "a million"),
    (["sim", "loop", "--topology", "random:5:9"], "than there are others"),
    (["sim", "loop", "--topology", "ring:1"], "can reach another"),
    (["sim", "way", "--topology", "ring:1"], "reaches no other"),
    (["sim", "loop", "--topology", "ring:6000", "--tries", "1", "--plot", "x.svg"], "at most 5000"),
])
def test_what_is_wrong_is_said(trouble, args, says):
    trouble("net", *args, says=says)


def test_a_bad_file_is_named_with_its_line(ok, trouble):
    (ok.path / "bad.txt").write_text("edge a b\nedge b\n")
    trouble("net", "sim", "loop", "--topology", "bad.txt", says="bad.txt: line 2")


def test_all_services_are_found(ok, trouble):
    report = sim(ok, "tree", "--topology", "tree:3:3", "--tries", 100)
    assert report["success"] == 1 and values(report)["wasted"] < 0.1 and values(report)["answers"] >= 1
    trouble("net", "sim", "tree", "--topology", "ring:10", says="is a tree")


def test_near_things_are_found_in_few_hops(ok, trouble):
    report = sim(ok, "near", "--topology", "random:200:4", "--tries", 100)
    assert report["success"] > 0.95 and report["stretch"] < 1.1
    # Filters that are too small mislead, the more the farther away.
    small = sim(ok, "near", "--topology", "random:300:4", "--tries", 500, "-p", "40%")
    levels = [values(small)[f"level_{j}"] for j in (1, 2, 3)]
    assert levels == sorted(levels) and small["stretch"] > report["stretch"]
    trouble("net", "sim", "near", "--depth", "6", says="--depth")


def test_names_are_found_in_squares(ok):
    report = sim(ok, "squares", "--topology", "geometric:400:12", "--tries", 200)
    assert report["success"] == 1 and report["stretch"] < 1.6
    assert values(report)["false_maybe"] < 0.03
