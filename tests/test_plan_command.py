"""plan, kinds and help."""
import json
import re
import xml.etree.ElementTree as xml

import pytest
from conftest import KINDS, run


def row(result, kind):
    return next(k for k in result.json["kinds"] if k["kind"] == kind)


def test_json_has_the_promised_fields(ok):
    plan = ok("plan", "--items", "50000", "--fpr", "0.01", "--json").json
    assert plan["items"] == 50000 and plan["fpr"] == 0.01
    assert [k["kind"] for k in plan["kinds"]] == KINDS
    for k in plan["kinds"]:
        if "bits_per_key" in k:
            assert {"bits_per_key", "bytes", "fpr", "params"} <= set(k)


def test_rule_a_and_what_rule_b_adds(ok):
    text = ok("plan", "--items", "50000", "--fpr", "0.01", "-v").out
    assert "479253" in text and "k = 7" in text and "479648" in text
    params = row(ok("plan", "--items", "50000", "--fpr", "0.01", "--json"),
                 "classic")["params"]
    assert params["bits"] == 479253 and params["k"] == 7
    assert params["rule_b_bits"] == 479648 and params["rule_b_k"] == 7


def test_people_see_one_table(ok):
    """A line for each kind that there is a plan for, in 80 columns; the rest is
    named; settings and reasons wait for -v, and JSON has all of it."""
    for size in (["-n", "10M"], ["-n", "10M", "-m", "1MiB"],
                 ["-p", "1%", "-m", "1GiB"]):
        told = ok("plan", *size)
        kinds = ok("plan", *size, "--json").json["kinds"]
        head, table, *rest = told.out.split("\n\n")
        assert all(len(line) <= 80 for line in told.lines[1:]), told.out
        rows = [line.split()[0] for line in table.split("\n")]
        assert rows == ["kind"] + [k["kind"] for k in kinds if "error" not in k]
        assert "-v" in rest[-1] and "--kind" in rest[-1]
        failed = [k for k in kinds if "error" in k]
        assert [k["kind"] in rest[0] for k in failed] == [True] * len(failed)
        full = " ".join(ok("plan", *size, "-v").out.split())
        for k in kinds:
            assert " ".join(k.get("error", k["kind"]).split()) in full
        assert "layout = spread" in full and "layout" not in told.out


def test_eight_bits_a_key(ok):
    assert "2.16 %" in ok("plan", "--items", "1000", "--bits", "8000").out
    classic = row(ok("plan", "--items", "1000", "--bits", "8000", "--json"),
                  "classic")
    assert classic["params"]["k"] == 6
    assert classic["params"]["fpr_exact"] == pytest.approx(0.0215944787,
                                                           rel=1e-6)
    assert classic["fpr"] == pytest.approx(0.02161, rel=1e-3)
    one = ok("plan", "--items", "1000", "--bits", "8000", "--kind", "classic")
    for name in ("fpr_approx", "fpr_classic", "fpr_exact"):
        assert name in one.out


def test_rate_and_memory_give_items(ok):
    plan = ok("plan", "--fpr", "1%", "--memory", "1MiB", "--json")
    for k in plan.json["kinds"]:
        if k["bits_per_key"] is None: # one that wants more to be said
            assert k["error"]
            continue
        # One that is sent may take more in memory.
        assert k["params"].get("sent_bits", 8 * k["bytes"]) <= 8 << 20
        assert k["fpr"] <= 0.01
    n = row(plan, "classic")["bits_per_key"]
    assert n == pytest.approx(9.59, rel=0.01)


def test_suffixes(ok):
    a = ok("plan", "--items", "10M", "--fpr", "1%", "--json").json
    b = ok("plan", "--items", "1e7", "--fpr", "0.01", "--json").json
    assert a == b
    assert a["items"] == 10_000_000


def test_options_are_honoured(ok):
    k = ok("plan", "--items", "1000", "--fpr", "0.01", "--kind", "classic",
           "-O", "k=3", "-O", "layout=partitioned", "--json").json["kinds"][0]
    assert k["params"]["k"] == 3 and k["params"]["layout"] == "partitioned"


@pytest.mark.parametrize("argv, says", [
    (["--items", "100", "--fpr", "0"], "0"),
    (["--items", "100", "--fpr", "1"], "1"),
    (["--items", "100", "--fpr", "1.5"], "1.5"),
    (["--items", "100", "--fpr", "-0.1"], "-0.1"),
    (["--items", "100", "--fpr", "nan"], "nan"),
    (["--items", "100", "--fpr", "100%"], "100%"),
    (["--items", "100", "--fpr", "abc"], "abc"),
    (["--items", "0"], "items"),
    (["--items", "-5"], "-5"),
    (["--items", "1.5"], "1.5"),
    (["--items", "99999999999999999999999"], "items"),
    (["--items", "100", "--bits", "0"], "bits"),
    (["--items", "100", "--bits", "1000", "--fpr", "1%"], "two"),
    (["--items", "100", "--bits", "1000", "--memory", "1k"], "memory"),
    (["--fpr", "1%"], "items"),
    ([], "items"),
    (["--items", "100", "--kind", "nonesuch"], "nonesuch"),
    (["--items", "100", "--kind", "classic", "-O", "k=0"], "k"),
    (["--items", "100", "--kind", "classic", "-O", "k=256"], "255"),
    (["--items", "100", "--kind", "classic", "-O", "k=two"], "two"),
    (["--items", "100", "--kind", "classic", "-O", "nonesuch=1"], "nonesuch"),
    (["--items", "100", "--kind", "classic", "-O", "layout=round"],
     "partitioned"),
    (["--items", "100", "--kind", "classic", "-O", "k"], "k"),
    (["--items", "1", "--bits", "4", "--kind", "classic", "-O", "k=5"], "k"),
    (["--items", "9e18", "--kind", "classic"], "2^48"),
    (["--items", "2e14", "--fpr", "1e-4", "--kind", "classic"], "2^48"),
    (["--items", "2e14", "--fpr", "1e-9", "--kind", "classic"], "64-bit"),
    (["--items", "100", "--nonesuch"], "nonesuch"),
    (["--items"], "items"),
    (["--items", "100", "extra"], "extra"),
])
def test_bad_input(trouble, argv, says):
    trouble("plan", *argv, says=says)


def test_plot_draws_every_kind(ok):
    ok("plan", "--items", "1M", "--plot", "out.svg")
    text = (ok.path / "out.svg").read_text()
    xml.fromstring(text)
    drawn = ok("plan", "--items", "1M", "--json").json["kinds"]
    for k in drawn:
        if "bits_per_key" in k:
            assert k["kind"] in text


def test_plot_into_nowhere(trouble):
    trouble("plan", "--items", "1M", "--plot", "no/such/folder/out.svg",
            says="no/such/folder/out.svg")


def test_kinds_json(ok):
    table = ok("kinds", "--json").json
    assert len(table) >= 2
    for kind in table:
        assert set(kind) >= {"kind", "summary", "can", "options"}
        assert kind["can"]
        for o in kind["options"]:
            assert set(o) >= {"name", "type", "default", "min", "max", "help"}
    assert table[0]["kind"] == "blocked"
    assert {"add", "has", "merge"} <= set(table[0]["can"])


def test_kinds_of_one(ok, trouble):
    assert "partitioned" in ok("kinds", "classic").out
    trouble("kinds", "nonesuch", says="nonesuch")


def commands():
    return run("help", "--list").out.split()


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_and_a_man_page(ok, command):
    for argv in ([command, "--help"], [command, "-h"], ["help", command]):
        text = ok(*argv).out
        assert text.startswith(f"Usage: bloomery {command}")
        assert "Examples:" in text or command == "help"
        assert max(map(len, text.splitlines())) <= 100
    assert ok("help", "--man", command).out.startswith((".TH", '.\\"', "'\\\""))


def test_help_and_version(ok, trouble):
    assert ok("--help").out == ok("help").out
    assert re.fullmatch(r"bloomery \d+\.\d+\.\d+\n", ok("--version").out)
    trouble("nonesuch", says="nonesuch")
    trouble("bild", says="build")
    trouble("has", "--invrt", "x", says="--invert")


def test_no_command_is_trouble(trouble):
    trouble(says=["which command", "--help"])


def test_json_is_one_line_of_valid_json(ok):
    text = ok("plan", "--items", "10", "--json").out
    assert text.endswith("\n")
    json.loads(text)


def test_an_index_is_planned_by_what_mistakes_cost(ok, bly):
    def rows(*args):
        return ok("plan", "--index", *args, "--json").json["rows"]

    table = rows("-n", "4000", "--asked", "5")
    best, = [r for r in table if r["best"]]
    assert best["cost"] == min(r["cost"] for r in table)
    assert 0.2 < best["fpr"] < 0.4  # grams of a pattern
    assert [r["fpr"] for r in table] == sorted((r["fpr"] for r in table), reverse=True)
    single, = [r for r in rows("-n", "4000") if r["best"]]
    often, = [r for r in rows("-n", "4000", "--questions", "1M") if r["best"]]
    assert often["fpr"] < single["fpr"] < best["fpr"] and often["bytes"] > single["bytes"]
    word, = rows("-n", "10000", "--terms", "20000", "-p", "0.001")
    assert word["opened"] == pytest.approx(10) and word["rows"] == 8 and 14 < word["bits_per_term"] < 15
    assert "<- least" in ok("plan", "--index").out
    for args, says in ((("--terms", "5"), "--index"), (("--index", "--kind", "cuckoo"), "--index goes with"),
                       (("--index", "--opening", "-1"), "--opening")):
        done = bly("plan", *args)
        assert done.status == 2 and says in done.err
