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


@pytest.mark.parametrize("command", ["has", "redis", "info"])
def test_no_is_called_certain_only_where_it_is(ok, command):
    text = " ".join(ok("help", command).out.split())
    assert "certainly" not in text
    assert "only likely" in text


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
