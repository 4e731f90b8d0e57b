"""What the command says of a filter is true of it, whatever its kind."""
import pytest
from conftest import keys, kinds_that

HAS = [kind for kind in kinds_that("has") if kind != "bloomier"]


def rate(text):
    """The number in "1.23 %" or "1 in 4567"."""
    words = text.split()
    return float(words[0]) / 100 if "%" in words else 1 / float(words[-1])


# -------------------------------------------------------------- wrong noes

@pytest.mark.parametrize("kind", HAS)
def test_a_filter_says_how_many_of_its_keys_it_misses(ok, bly, kind):
    (ok.path / "keys").write_text(keys(0, 3000))
    made = ok("build", "--json", "-k", kind, "-o", "f.bly", "keys").json
    text = ok("build", "-k", kind, "-o", "f.bly", "keys").out
    plan = ok("plan", "--json", "-k", kind, "-n", 3000).json["kinds"][0]
    page = ok("plan", "-k", kind, "-n", 3000).out
    table = next(line for line in ok("plan", "-n", 3000).lines
                 if line.startswith(kind + " "))
    told = ok("info", "--json", "f.bly").json
    asked = bly("has", "-vc", "f.bly", "-f", "keys")
    missed = int(asked.out) / 3000
    if not missed:
        assert not any("miss" in said for said in (made, plan, told))
        assert "miss" not in text + page + table
        assert asked.err == "" and asked.status == 1
        return
    for said in made, plan, told:
        assert said["miss"] == pytest.approx(missed, rel=0.1)
    assert "own keys missed" in text and "misses" in table
    line = next(line for line in page.splitlines() if line.startswith("misses"))
    assert rate(line.split(maxsplit=1)[1].split(" of")[0]) == \
        pytest.approx(missed, rel=0.1)
    assert "only likely" in asked.err
    assert bly("has", "-q", "f.bly", "nobody").err == ""


@pytest.mark.parametrize("command", ["has", "redis has", "info"])
def test_no_is_called_certain_only_where_it_is(ok, command):
    text = " ".join(ok("help", *command.split()).out.split())
    assert "certainly" not in text
    assert "only likely" in text


def test_miss_is_an_option_of_build_and_plan(ok, trouble):
    """--miss is -O miss for kinds that miss keys, and says nothing to others."""
    (ok.path / "keys").write_text(keys(0, 1000))
    by_name = ok("plan", "--json", "-k", "generalized", "-n", 1000, "-p", "1%", "--miss", "5%").json
    by_option = ok("plan", "--json", "-k", "generalized", "-n", 1000, "-p", "1%", "-O", "miss=5%").json
    assert by_name == by_option
    assert by_name["kinds"][0]["miss"] <= 0.0501
    every = {k["kind"]: k for k in ok("plan", "--json", "-n", 1000, "-p", "1%", "--miss", "5%").json["kinds"]}
    plain = {k["kind"]: k for k in ok("plan", "--json", "-n", 1000, "-p", "1%").json["kinds"]}
    assert [k for k in every if every[k] != plain[k]] == ["generalized"]
    made = ok("build", "--json", "-k", "generalized", "-p", "1%", "--miss", "5%", "-o", "f.bly", "keys").json
    assert made["miss"] <= 0.0501
    ok("build", "--miss", "5%", "-o", "f.bly", "keys")  # a blocked filter misses none
    for wrong in "0", "1", "-1%", "many":
        trouble("plan", "-n", 1000, "--miss", wrong, says=("rate",))
    trouble("plan", "-k", "generalized", "-n", 1000, "--miss", "5%", "-O", "miss=5%", says=("same thing",))
    trouble("build", "--format", "dcso", "--miss", "5%", "-o", "f", "keys", says=("--miss",))
    trouble("plan", "--near", "--miss", "5%", says=("--near",))



@pytest.mark.parametrize("sizes", [["-p", "1%"], ["-p", "0.1%"],
                                   ["--bits", "120000"]])
def test_both_errors_are_planned_for(ok, bly, sizes):
    (ok.path / "keys").write_text(keys(0, 1000))
    made = ok("build", "--json", "-k", "generalized", *sizes, "-n", 1000, "-O",
              "miss=5%", "-o", "f.bly", "keys").json
    assert made["miss"] <= 0.05
    assert int(bly("has", "-vc", "f.bly", "-f", "keys").out) < 80
    (ok.path / "others").write_text(keys(10 ** 6, 50000))
    hits = int(bly("has", "-c", "f.bly", "-f", "others").out)
    assert hits / 50000 == pytest.approx(made["fpr"], rel=0.5)


def test_errors_that_cannot_be_kept_are_refused(bly):
    result = bly("plan", "-k", "generalized", "-n", 1000, "--bits", 3000,
                 "-O", "miss=1%")
    assert "misses at least" in result.out + result.err
    for wrong in "0", "1", "-1", "much":
        result = bly("plan", "-k", "generalized", "-n", 1000, "-O",
                     f"miss={wrong}")
        assert result.status == 2 and "miss" in result.err


# ------------------------------------------------------------------ repeats

def repeated(n, times):
    return keys(0, n) * times


@pytest.mark.parametrize("times", [3, 10])
@pytest.mark.parametrize("kind", kinds_that("add", "count",
                                            without=["self-sized"]))
def test_lines_that_repeat_are_planned_for(ok, kind, times):
    """What build says is what info finds, and counts are what they were."""
    made = ok("build", "--json", "-k", kind, "-o", "f.bly",
              stdin=repeated(1000, times)).json
    told = ok("info", "--json", "f.bly").json
    assert made["items"] == told["capacity"] == 1000
    assert made["bits_per_key"] == pytest.approx(told["bits"] / 1000)
    assert told["fpr_now"] <= 2 * made["fpr"] + 0.005
    assert not told["past_capacity"]
    if kind == "vicounting":  # counts copies in one of its own ways
        return
    # ">=15": a counter at its top.
    found = [int(line.split("\t")[1].lstrip(">=")) for line in
             ok("count", "f.bly", stdin=keys(0, 1000)).lines]
    assert 0 not in found
    assert times * 0.7 < sum(found) / 1000 < times * 1.3


def test_room_for_repeats_is_planned_or_made(ok, bly):
    """Each key three times: with the capacity and without, with `mean`."""
    text = repeated(10000, 3)
    for sizes in [], ["-n", 10000], ["-n", 10000, "-O", "mean=3"]:
        made = ok("build", "--json", "-k", "quotient", *sizes, "-o", "f.bly",
                  stdin=text).json
        assert made["items"] == 10000 and made["fpr"] <= 0.01
        assert 20 < made["bits_per_key"] < 60
        found = ok("count", "f.bly", stdin=keys(0, 10000)).lines
        assert sum(line.endswith("\t3") for line in found) > 9800
    # More different keys than there is room for are still too many.
    result = bly("build", "-k", "quotient", "-n", 1000, "-o", "g.bly",
                 stdin=keys(0, 3000))
    assert result.status == 2 and "full" in result.err
    assert not (ok.path / "g.bly").exists()


@pytest.mark.parametrize("mean", ["0.5", "0", "none", "1e10"])
@pytest.mark.parametrize("kind", ["quotient", "spacecode"])
def test_a_mean_that_is_none(trouble, kind, mean):
    trouble("plan", "-k", kind, "-n", 1000, "-O", f"mean={mean}", says="mean")


def test_more_additions_than_planned_are_told(ok):
    result = ok("build", "-k", "spacecode", "-n", 1000, "-o", "f.bly",
                stdin=repeated(1000, 10))
    assert "additions" in result.err and "mean" in result.err
    assert ok("info", "f.bly").err
    result = ok("build", "-k", "spacecode", "-n", 1000, "-O", "mean=10", "-o",
                "f.bly", stdin=repeated(1000, 10))
    assert result.err == "" and ok("info", "f.bly").err == ""
    plan = ok("plan", "-k", "spacecode", "-n", 1000, "-O", "mean=10").out
    assert "additions" in plan and "ceiling" in plan


# -------------------------------------------------------------------- sets

def test_a_union_gets_the_room_it_needs(ok):
    for name, first in ("a", 0), ("b", 1000), ("c", 9000):
        ok("build", "-q", "-k", "quotient", "-n", 10000, "-o", f"{name}.bly",
           stdin=keys(first, 10000))
    for order in "abc", "cba", "bca":
        ok("merge", "-o", "u.bly", *(f"{name}.bly" for name in order))
        assert ok("has", "-c", "u.bly", stdin=keys(0, 19000)).out == "19000\n"
    found = ok("count", "u.bly", stdin=keys(9000, 1000)).lines
    assert sum(line.endswith("\t3") for line in found) > 950
    ok("intersect", "-o", "i.bly", "u.bly", "b.bly")
    assert ok("has", "-c", "i.bly", stdin=keys(1000, 10000)).out == "10000\n"
    like = ok("compare", "--json", "u.bly", "a.bly").json
    assert like["intersection"] == pytest.approx(10000, rel=0.03)


@pytest.mark.parametrize("kind", kinds_that("add", "remove", "has"))
def test_what_was_removed_is_not_counted(ok, bly, kind):
    removable = ["-O", "removal=yes"] if kind == "elastic" else []
    ok("build", "-q", "-k", kind, "-p", "0.01%", *removable, "-o", "f.bly",
       stdin=keys(0, 5000))
    gone = bly("remove", "--json", "f.bly", stdin=keys(0, 4500)).json["removed"]
    assert ok("info", "--json", "f.bly").json["items_added"] == \
        pytest.approx(5000 - gone, abs=20)
