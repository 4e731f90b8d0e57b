"""attenuated filters on the command line: neighbours, and the way to a key."""
import pytest
from conftest import keys, run

COMMANDS = run("help", "--list").out.split()
SIZE = ["-k", "attenuated", "--items", "1000"]


def nodes(ok, names="abcd"):
    """Nodes in a row, with keys a-0 to a-99 and so on."""
    for name in names:
        ok("build", "-q", *SIZE, "-o", f"{name}.bly",
           stdin=keys(0, 100, prefix=f"{name}-"))


def test_neighbours_are_merged_in_order(ok, trouble):
    nodes(ok)
    ok("merge", "-q", "-o", "c-to-b.bly", "c.bly", "d.bly")
    ok("merge", "-q", "-o", "b-to-a.bly", "b.bly", "c-to-b.bly")
    for name in "bcd":
        assert ok("has", "-c", "b-to-a.bly",
                  stdin=keys(0, 100, prefix=f"{name}-")).out == "100\n"
    if "get" in COMMANDS:
        assert ok("get", "b-to-a.bly", "b-7", "c-7", "d-7").lines == [
            "b-7\t0", "c-7\t1", "d-7\t2"]
    # In place, as long as it is the first.
    ok("merge", "-q", "-o", "b.bly", "b.bly", "c-to-b.bly")
    assert (ok.path / "b.bly").read_bytes() == \
        (ok.path / "b-to-a.bly").read_bytes()
    before = (ok.path / "b.bly").read_bytes()
    trouble("merge", "-o", "b.bly", "a.bly", "b.bly", says=["b.bly", "first"])
    assert (ok.path / "b.bly").read_bytes() == before


def test_only_what_changed_is_sent(ok):
    nodes(ok, "ab")
    ok("merge", "-q", "-o", "told.bly", "a.bly", "b.bly")
    ok("add", "-q", "b.bly", "news")
    ok("merge", "-q", "-o", "new.bly", "a.bly", "b.bly")
    told = ok("delta", "--json", "told.bly", "new.bly", "-o", "d.bld").json
    assert told["form"] == "gaps" and 0 < told["flipped"] <= 9
    ok("apply", "-q", "told.bly", "d.bld")
    assert ok("has", "told.bly", "news").out == "news\n"


def test_levels_are_told(ok):
    nodes(ok, "ab")
    ok("merge", "-q", "-o", "m.bly", "a.bly", "b.bly")
    info = ok("info", "--json", "m.bly").json
    rates = [info["params"][f"fpr_level_{j}"] for j in range(4)]
    assert rates[0] > 0 and rates[1] > 0 and rates[2] == rates[3] == 0
    assert info["items_estimate"] == pytest.approx(200, rel=0.1)
    plan = ok("plan", *SIZE, "-O", "degree=3", "--json").json["kinds"][0]
    facts = plan["params"]
    assert 0.0095 < facts["fpr_bound"] <= 0.01
    assert facts["fpr_level_0"] < facts["fpr_level_3"] < 0.01
    assert "directed" in next(k for k in ok("kinds", "--json").json
                              if k["kind"] == "attenuated")["traits"]


@pytest.mark.parametrize("other", [
    ["-O", "depth=5"], ["-O", "layer=blocked"], ["--seed", "7"],
    ["--items", "1001"], ["--fpr", "2%"],
])
def test_neighbours_must_agree(ok, trouble, other):
    nodes(ok, "a")
    ok("build", "-q", *SIZE, *other, "-o", "b.bly", stdin="x\n")
    trouble("merge", "-o", "m.bly", "a.bly", "b.bly", says="b.bly")
    assert not (ok.path / "m.bly").exists()
