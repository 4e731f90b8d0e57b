"""build --universe and --negatives: right for all keys that are known."""
import json
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


def test_negatives_that_are_members_are_an_error(trouble, ok, bly):
    """It names the key, and nothing is written."""
    (ok.path / "asked.txt").write_text(lines(NUMBERS[1:50] + MEMBERS[7:8]))
    result = trouble("build", "-o", "f.bly", "--negatives", "asked.txt",
                     "members.txt", says=MEMBERS[7])
    assert "--members-win" in result.err
    assert not (ok.path / "f.bly").exists()
    (ok.path / "bad.txt").write_bytes(b"a\x1b[31mb\n")
    result = trouble("build", "-o", "f.bly", "--negatives", "bad.txt",
                     "bad.txt", says="in the set")
    assert "\x1b" not in result.err


def test_negatives_that_are_members_may_stay(ok, bly):
    made = build(ok, "--negatives", "all.txt", "--members-win", "members.txt")
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
    (["--universe", "all.txt", "--members-win"], "only with --negatives"),
    (["--universe", "pipe"], "others=N"),
    (["--universe", "absent.txt"], "absent.txt"),
    (["--universe", "all.txt", "--format", "dcso"], "--universe"),
])
def test_what_cannot_be_meant(trouble, argv, says):
    os.mkfifo(trouble.path / "pipe")
    trouble("build", "-o", "f.bly", *argv, "members.txt", says=says)
    assert not (trouble.path / "f.bly").exists()


# ------------------------------------------------------------------ --group

SHARES = {"none": 0, "half": 0.5, "few, \"of them\"": 0.01, "all": 1}


@pytest.fixture
def issued(tmp_path):
    """Certificates: a number means something together with its issuer only."""
    rows = [(name, str(i), i < 4000 * share)
            for name, share in SHARES.items() for i in range(4000)]
    for form in "csv", "tsv", "jsonl":
        for file, some in (("all", False), ("in", True)):
            of = [(n, i) for n, i, member in rows if member or not some]
            text = {
                "csv": lambda: "issuer,serial\n" + "".join(
                    '"%s",%s\n' % (n.replace('"', '""'), i) for n, i in of),
                "tsv": lambda: "".join(f"{n}\t{i}\n" for n, i in of),
                "jsonl": lambda: "".join(json.dumps(
                    {"a": {"issuer": n}, "serial": i}) + "\n" for n, i in of),
            }[form]()
            (tmp_path / f"{file}.{form}").write_text(text)
    return [(n, i) for n, i, member in rows if member]


FORMS = {"csv": ("--csv", "serial", "--group", "issuer"),
         "tsv": ("--field", "2", "--group", "1"),
         "jsonl": ("--jsonl", "serial", "--group", "a.issuer")}


@pytest.mark.parametrize("form", FORMS)
def test_groups_are_right_for_all_and_smaller(ok, bly, issued, form):
    """Whatever the form of the lists, it is one filter; it is asked in any
    form, and with a tab between group and key where no field is named."""
    made = build(ok, "--universe", f"all.{form}", *FORMS[form], f"in.{form}")
    assert made.err == ""
    members = sum(1 for _ in issued)
    for other, argv in FORMS.items():
        found = ok("has", "f.bly", "-f", f"all.{other}", *argv)
        want = (ok.path / f"in.{other}").read_text().splitlines()
        assert found.lines == want[other == "csv":]
    assert ok("has", "f.bly", "-f", "all.tsv", "-c").out == f"{members}\n"
    assert ok("has", "f.bly", "half\t7").out == "half\t7\n"
    assert bly("has", "f.bly", "none\t7").status == 1
    assert bly("has", "f.bly", "unheard of\t7").status == 1
    grouped = ok("info", "--json", "f.bly").json
    assert grouped["params"]["groups"] == 4
    ok("build", "-q", "-o", "g.bly", "--universe", "all.tsv", "in.tsv")
    assert grouped["bits"] < 0.7 * ok("info", "--json", "g.bly").json["bits"]


def test_who_asks_says_the_group(ok, trouble, bly, issued):
    build(ok, "--universe", "all.csv", *FORMS["csv"], "in.csv")
    trouble("has", "f.bly", "-f", "all.csv", "--csv", "serial",
            says="--group issuer")
    result = bly("has", "f.bly", "7")
    assert (result.status, result.out) == (2, "")
    assert "no group" in result.err
    ok("build", "-q", "-o", "g.bly", "--universe", "all.tsv", "in.tsv")
    trouble("has", "g.bly", "-f", "all.csv", *FORMS["csv"], says="no groups")


def test_groups_with_case_and_blanks(ok, bly):
    """Forms of keys are those of the group too, for whoever asks later."""
    (ok.path / "a.tsv").write_text("Ann\tX1\nbob\tx1\nBob\tx2\n")
    (ok.path / "m.tsv").write_text("ANN\tx1\n")
    build(ok, "-i", "--universe", "a.tsv", *FORMS["tsv"], "m.tsv")
    assert ok("has", "f.bly", "-f", "a.tsv", *FORMS["tsv"]).out == "Ann\tX1\n"
    assert bly("has", "f.bly", "aNN\tX1").status == 0


def test_blanks_around_groups_and_keys(ok, bly):
    """--trim cuts them off both, so that the same key is asked."""
    (ok.path / "a.csv").write_text("ann , x1\nann,x2\n bob , x1 \n")
    (ok.path / "m.csv").write_text("ann , x1\nbob,x1\n")
    form = ("--csv", "2", "--group", "1", "--no-header")
    build(ok, "--trim", "--fpr", "1e-9", "--universe", "a.csv", *form, "m.csv")
    (ok.path / "q.csv").write_text("ann,x1\n  ann,x1 \nann,x2\nbob, x1\n")
    r = ok("has", "f.bly", "-f", "q.csv", *form)
    assert r.out == "ann,x1\n  ann,x1 \nbob, x1\n"
    assert bly("has", "f.bly", "ann\tx1").status == 0
    # Nothing before the tab, or behind it, would be cut off with the tab.
    (ok.path / "q.csv").write_text(" ,x\ty\nann, \n")
    r = bly("has", "f.bly", "-f", "q.csv", *form)
    assert r.status == 2
    assert "line 1: a group of nothing but blanks" in r.err
    assert "line 2: a key of nothing but blanks" in r.err


@pytest.mark.parametrize("argv, says", [
    (["--universe", "all.csv", "--group", "issuer"], "needs --field"),
    (["--negatives", "all.csv", *FORMS["csv"]], "only with --universe"),
    (["--universe", "all.csv", "--csv", "serial", "--group", "absent"],
     "no column 'absent'"),
    (["--universe", "all.csv", "--csv", "serial", "--group", "-1"], "from 1"),
    (["--universe", "all.csv", *FORMS["csv"], "--int"], "exclude"),
    (["--universe", "all.csv", *FORMS["csv"], "--bits", "100000"], "rate"),
    (["--universe", "all.csv", *FORMS["csv"], "--kind", "fuse"], "exact"),
    (["--universe", "-", *FORMS["csv"]], "read twice"),
    (["--universe", "few.csv", *FORMS["csv"]], "no column"),
    ([*FORMS["csv"]], "only with --universe"),
])
def test_groups_that_cannot_be_meant(trouble, issued, argv, says):
    (trouble.path / "few.csv").write_text("serial\n1\n")
    trouble("build", "-o", "f.bly", *argv, "in.csv", says=says)
    assert not (trouble.path / "f.bly").exists()


def test_a_group_has_no_tab(ok, bly, issued):
    """Else it would be the group before it, and the key another."""
    (ok.path / "bad.csv").write_text('issuer,serial\n"a\tb",1\nc,1\n')
    made = bly("build", "-o", "f.bly", "--universe", "bad.csv", *FORMS["csv"],
               "in.csv")
    assert made.status == 2 and "line 2: a tab in the name" in made.err
    assert not (ok.path / "f.bly").exists()
