"""build --universe and --negatives: right for all keys that are known."""
import os

import pytest

NUMBERS = [f"serial-{i}" for i in range(20000)]
MEMBERS = NUMBERS[::50]


def lines(words):
    return "".join(f"{word}\n" for word in words)


@pytest.fixture(autouse=True)
def lists(tmp_path):
    """A universe of which every 50th number is a member."""
    (tmp_path / "all.txt").write_text(lines(NUMBERS))
    (tmp_path / "members.txt").write_text(lines(MEMBERS))


def asked(bly, words):
    result = bly("has", "f.bly", stdin=lines(words))
    assert result.status < 2, result.err
    return result.lines


def build(ok, *argv, **kw):
    return ok("build", "-o", "f.bly", *argv, **kw)


def test_every_key_of_the_universe_is_answered_rightly(ok, bly):
    made = build(ok, "--universe", "all.txt", "members.txt")
    assert made.err == ""
    assert asked(bly, NUMBERS) == MEMBERS
    info = ok("info", "--json", "f.bly").json
    assert info["kind"] == "exact"
    # A key from outside has a stated rate, and it is that.
    strangers = [f"stranger-{i}" for i in range(20000)]
    wrong, expected = len(asked(bly, strangers)), 20000 * info["fpr_now"]
    assert abs(wrong - expected) < 5 * expected ** 0.5


def test_it_is_smaller_than_a_filter_that_is_wrong_once(ok):
    build(ok, "--universe", "all.txt", "members.txt")
    bits = ok("info", "--json", "f.bly").json["bits"] / len(MEMBERS)
    plan = ok("plan", "--json", "-n", len(MEMBERS), "-p", 1 / len(NUMBERS),
              "-k", "ribbon").json
    assert bits < plan["kinds"][0]["bits_per_key"]


def test_members_from_a_pipe_and_a_lower_rate(ok, bly):
    build(ok, "--universe", "all.txt", "--fpr", "0.1%", stdin=lines(MEMBERS))
    assert asked(bly, NUMBERS) == MEMBERS
    assert ok("info", "--json", "f.bly").json["fpr_now"] <= 0.001


def test_a_universe_from_a_pipe_whose_size_is_known(ok, bly):
    build(ok, "--universe", "-", "-O", "others=19600", "members.txt",
          stdin=lines(NUMBERS))
    assert asked(bly, NUMBERS) == MEMBERS


def test_negatives_never_come_back(ok, bly):
    others = sorted(set(NUMBERS) - set(MEMBERS))[:3000]
    (ok.path / "asked.txt").write_text(lines(others))
    made = build(ok, "--negatives", "asked.txt", "-p", "5%", "members.txt")
    assert made.err == ""
    assert asked(bly, others) == []
    assert asked(bly, MEMBERS) == MEMBERS


def test_members_that_are_missing_are_told_and_kept(ok, bly):
    with (ok.path / "members.txt").open("a") as more:
        more.write("unheard-of\n")
    made = build(ok, "--universe", "all.txt", "members.txt")
    assert "1 of the 401 keys are not in the universe" in made.err
    assert asked(bly, ["unheard-of"]) == ["unheard-of"]


def test_negatives_that_are_members_are_told_and_stay(ok, bly):
    made = build(ok, "--negatives", "all.txt", "members.txt")
    assert "400 of the negatives are keys of the set too" in made.err
    assert asked(bly, NUMBERS) == MEMBERS


def test_a_universe_with_repeats_and_an_empty_one(ok, bly):
    (ok.path / "twice.txt").write_text(lines(NUMBERS) * 2)
    (ok.path / "none.txt").write_text("")
    build(ok, "--universe", "none.txt", "members.txt")
    assert asked(bly, MEMBERS) == MEMBERS
    build(ok, "--universe", "twice.txt", "members.txt")
    assert asked(bly, NUMBERS) == MEMBERS


@pytest.mark.parametrize("argv, says", [
    (["--universe", "all.txt", "--negatives", "all.txt"], "exclude each other"),
    (["--universe", "all.txt", "--kind", "fuse"], "these can: exact"),
    (["--universe", "pipe"], "others=N"),
    (["--universe", "absent.txt"], "absent.txt"),
    (["--universe", "all.txt", "--format", "dcso"], "--universe"),
])
def test_what_cannot_be_meant(trouble, argv, says):
    os.mkfifo(trouble.path / "pipe")
    trouble("build", "-o", "f.bly", *argv, "members.txt", says=says)
    assert not (trouble.path / "f.bly").exists()
