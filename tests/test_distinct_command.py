"""bloomery distinct and top, with sketches that are saved, merged and compared.

On the other side are sort -u, comm, uniq -c and wc, or Python's sets and counters.
"""
import collections
import random
import subprocess
import threading

import pytest

from conftest import PROGRAM, keys


def counted(path, *names, how="sort -u {} | wc -l"):
    """What the shell says."""
    line = how.format(*names) if how.count("{}") == len(names) else how.format(" ".join(names))
    done = subprocess.run(["sh", "-c", f"LC_ALL=C; export LC_ALL; {line}"], cwd=path, check=True, stdout=subprocess.PIPE)
    return int(done.stdout)


@pytest.fixture(name="logs")
def _logs(ok):
    """Two lists with repeats, of which 20,000 of 40,000 keys are the same; and two short ones."""
    draw = random.Random(5)
    for name, first, n in (("mon", 0, 40000), ("tue", 20000, 40000), ("few", 100, 700), ("less", 500, 700)):
        lines = [f"10.0.{i // 256}.{i % 256}" for i in range(first, first + n)]
        lines += draw.choices(lines, k=n // 4)
        draw.shuffle(lines)
        (ok.path / name).write_text("".join(line + "\n" for line in lines))
    return ok


# ------------------------------------------------------------------ distinct

@pytest.mark.parametrize("names", [("mon",), ("few",), ("mon", "tue"), ("few", "less"), ("few", "mon")])
def test_saved_is_what_was_read(logs, names):
    ok = logs
    truth = counted(ok.path, *names)
    read = ok("distinct", "--json", *names).json
    assert abs(read["distinct"] - truth) <= 5 * read["deviation"] * truth + 1
    for name in names:
        assert ok("distinct", "-q", name, "-o", name + ".bly").out == ok("distinct", "-q", name).out
    saved = [name + ".bly" for name in names]
    assert ok("distinct", "--json", *saved).json == read
    assert ok("distinct", "--json", saved[0], *names[1:]).json == read
    assert ok("distinct", "--json", *reversed(saved)).json == read
    each = ok("distinct", "--each", *saved).lines
    assert [line.split("\t")[1] for line in each] == [*saved, "all"]


def test_few_keys_are_counted_exactly(ok):
    for n in (0, 1, 2, 17, 100, 1000, 1500):
        assert ok("distinct", "-q", stdin=keys(0, n) * 2).out == f"{n}\n"


def test_parts_merged_are_the_whole_file(logs):
    """In any order and by any command: byte for byte."""
    ok = logs
    for name in ("mon", "tue", "few"):
        ok("distinct", name, "-o", name + ".bly")
    ok("distinct", "mon", "tue", "few", "-o", "whole.bly")
    ok("merge", "-o", "merged.bly", "few.bly", "tue.bly", "mon.bly")
    ok("distinct", "tue.bly", "mon.bly", "few.bly", "-o", "named.bly")
    for name in ("few", "mon", "tue"):
        ok("distinct", "--into", "into.bly", name)
    whole = (ok.path / "whole.bly").read_bytes()
    for name in ("merged", "named", "into"):
        assert (ok.path / f"{name}.bly").read_bytes() == whole, name
    ok("merge", "-o", "few.bly", "few.bly", "mon.bly", "tue.bly")
    assert (ok.path / "few.bly").read_bytes() == whole


def test_and_and_minus(logs):
    ok = logs
    truth = {"and": counted(ok.path, "mon", "tue", how="sort -u {} > x; sort -u {} > y; comm -12 x y | wc -l"),
             "minus": counted(ok.path, "mon", "tue", how="sort -u {} > x; sort -u {} > y; comm -23 x y | wc -l")}
    for name in ("mon", "tue", "few", "less"):
        ok("distinct", name, "-o", name + ".bly")
    for how, want in truth.items():
        told = ok("distinct", "--json", f"--{how}", "mon.bly", "tue").json
        assert told["operation"] == how and told["clear"]
        assert abs(told["result"] - want) < 5 * told["result_sd"] and told["result_sd"] < 0.05 * want
        assert ok("distinct", f"--{how}", "mon", "tue.bly").out == f"{told['result']}\n"
    # Short lists are compared key by key, nearly.
    common = counted(ok.path, "few", "less", how="sort -u {} > x; sort -u {} > y; comm -12 x y | wc -l")
    result = ok("distinct", "--and", "few.bly", "less.bly")
    assert result.out == f"{common}\n" and "nearly certainly" in result.err
    assert ok("distinct", "-q", "--minus", "few.bly", "mon").out.strip() == "0"


def test_too_few_in_common_is_said(ok):
    """Ten keys in common of 200,000 cannot be seen, and nobody says they can."""
    (ok.path / "a").write_text(keys(0, 100000))
    (ok.path / "b").write_text(keys(99990, 100000))
    told = ok("distinct", "--json", "--and", "a", "b").json
    assert not told["clear"] and told["at_most"] >= 10
    result = ok("distinct", "--and", "a", "b")
    assert "too few to be told from none" in result.err and "higher --precision" in result.err
    assert "higher --precision" not in ok("distinct", "--precision", "18", "--and", "a", "b").err
    (ok.path / "none").write_text("")
    told = ok("distinct", "--json", "--and", "none", "a").json
    assert told["clear"] and told["result"] == told["at_most"] == 0


def test_several_sets(logs, trouble):
    ok = logs
    (ok.path / "wed").write_text("".join(f"10.0.{i // 256}.{i % 256}\n" for i in range(30000, 60000)))
    told = ok("distinct", "--json", "--and", "mon", "tue", "wed").json
    assert abs(told["result"] - 10000) < 5 * told["result_sd"]
    trouble("distinct", "--and", *["mon"] * 9, says=["--and", "8"])
    trouble("distinct", "--and", "mon", says="two at least")
    trouble("distinct", "--and", "--minus", "mon", "tue", says="exclude")
    trouble("distinct", "--and", "mon", "tue", "-o", "x.bly", says="--and")
    assert not (ok.path / "x.bly").exists()


def test_seeds_and_keys_do_not_mix(logs, trouble):
    ok = logs
    (ok.path / "key").write_bytes(b"0123456789abcdef")
    (ok.path / "other").write_bytes(b"fedcba9876543210")
    for name in ("key", "other"):
        (ok.path / name).chmod(0o600)
    ok("distinct", "few", "-o", "plain.bly")
    ok("distinct", "--seed", "7", "few", "-o", "seven.bly")
    ok("distinct", "-K", "key", "few", "-o", "keyed.bly")
    ok("distinct", "-K", "other", "few", "-o", "others.bly")
    ok("distinct", "--precision", "12", "few", "-o", "twelve.bly")
    ok("distinct", "-i", "few", "-o", "folded.bly")
    for name, says in (("seven", "seeds 0 and 7"), ("keyed", "keyed"), ("twelve", "precision 14 and 12"), ("folded", "folded")):
        for argv in (("merge", "-o", "x.bly"), ("distinct",), ("distinct", "--and")):
            trouble(*argv, "plain.bly", name + ".bly", says=["plain.bly", name + ".bly", says])
    trouble("merge", "-o", "x.bly", "keyed.bly", "others.bly", says="different keys")
    assert not (ok.path / "x.bly").exists()
    # A saved one says how keys are to be read beside it.
    assert ok("distinct", "-q", "seven.bly", "few").out == "700\n"
    assert ok("distinct", "-q", "twelve.bly", "few").out == ok("distinct", "-q", "twelve.bly").out
    assert ok("distinct", "-q", "folded.bly", stdin="x").out == "700\n"
    trouble("distinct", "-i", "plain.bly", "few", says=["plain.bly", "-i"])
    trouble("distinct", "--seed", "8", "seven.bly", "few", says="seeds 7 and 8")
    # A keyed one can be asked and merged without its key, and is added to only with it.
    assert ok("distinct", "-q", "keyed.bly").out == "700\n"
    assert ok("info", "--json", "keyed.bly").json["keyed"]
    ok("merge", "-o", "twice.bly", "keyed.bly", "keyed.bly")
    trouble("distinct", "keyed.bly", "few", says=["keyed.bly", "--key-file"])
    trouble("distinct", "-K", "other", "keyed.bly", "few", says=["keyed.bly", "another key"])
    assert ok("distinct", "-q", "-K", "key", "keyed.bly", "few").out == "700\n"
    trouble("distinct", "-K", "key", "--seed", "1", "few", says="--seed")


def test_saving_that_cannot_be(logs, trouble, bly):
    ok = logs
    ok("distinct", "few", "-o", "few.bly")
    before = (ok.path / "few.bly").read_bytes()
    trouble("distinct", "few", "-o", "few", says="overwritten")
    trouble("distinct", "few", "-o", "/dev/full", says="No space")
    trouble("distinct", "few", "-o", "no/such/folder.bly", says="no/such")
    trouble("distinct", "few", "-o", "x.bly", "--into", "few.bly", says="--into")
    trouble("distinct", "few", "--into", "less", says=["less", "not a .bly"])
    trouble("distinct", "few", "--into", "-", says="--into")
    trouble("distinct", "few.bly", "--into", "few.bly", says="count twice")
    trouble("top", "few.bly", "--into", "few.bly", says="count twice")
    trouble("distinct", "nowhere", "--into", "few.bly", says="nowhere")
    # Keys that could not be read are not forgotten in a file.
    result = bly("distinct", "--field", "2", "--into", "few.bly", stdin="a\tb\nc\n")
    assert result.status == 2 and "not saved" in result.err
    ok("build", "-o", "filter.bly", "few")
    trouble("distinct", "few", "--into", "filter.bly", says=["filter.bly", "a filter, not a sketch"])
    trouble("merge", "-o", "x.bly", "few.bly", "filter.bly", says="filter")
    trouble("intersect", "-o", "x.bly", "few.bly", "few.bly", says="distinct --and")
    trouble("has", "few.bly", "x", says="a sketch, not a filter")
    trouble("add", "few.bly", "x", says="a sketch, not a filter")
    assert (ok.path / "few.bly").read_bytes() == before and not (ok.path / "x.bly").exists()


def test_to_standard_output(logs):
    """The sketch goes there, and the number elsewhere."""
    ok = logs
    ok("distinct", "few", "-o", "few.bly")
    done = subprocess.run([PROGRAM, "distinct", "few", "-o", "-"], cwd=ok.path, check=True, capture_output=True)
    assert done.stdout == (ok.path / "few.bly").read_bytes() and b"700" in done.stderr


def test_damaged_files_are_refused(logs, trouble):
    ok = logs
    for command, name in (("distinct", "d.bly"), ("top", "t.bly")):
        ok(command, "few", "-o", name)
        whole = (ok.path / name).read_bytes()
        for n in (0, 1, 71, 72, 200, 296, 310, len(whole) - 1):
            (ok.path / "cut").write_bytes(whole[:n])
            for ask in ("info", command):
                if n >= 72 or ask == "info":
                    trouble(ask, "cut", says="cut")
        for at in (9, 13, 30, 90, 100, 285, 300, 330, len(whole) - 1):
            bad = bytearray(whole)
            bad[at] ^= 4
            (ok.path / "bad").write_bytes(bad)
            trouble("info", "bad", says="bad")
            trouble("merge", "-o", "x.bly", name, "bad", says="bad")
        (ok.path / "long").write_bytes(whole + b"x")
        trouble(command, "long", says=["long", "follow the end"])
    trouble("top", "d.bly", says=["d.bly", "hyperloglog", "topk"])
    trouble("distinct", "t.bly", says=["t.bly", "topk"])
    trouble("merge", "-o", "x.bly", "t.bly", "d.bly", says=["topk", "hyperloglog"])
    assert not (ok.path / "x.bly").exists()


@pytest.mark.parametrize("command", ["distinct", "top"])
def test_many_at_once_lose_nothing(ok, command):
    def one(i):
        ok(command, "--into", "all.bly", stdin=keys(100 * i, 100))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = ok("info", "--json", "all.bly").json
    assert told["keys"] == 800
    if command == "distinct":
        assert ok("distinct", "-q", "all.bly").out == "800\n"


# ----------------------------------------------------------------------- top

def frequent(n, seed):
    draw = random.Random(seed)
    return [f"w{int(draw.paretovariate(0.9))}" for _ in range(n)]


def test_a_list_goes_on_where_it_ended(ok):
    """Saved in between or not: the same list, and the same file."""
    lines = frequent(20000, 1)
    for name, part in (("one", lines[:7000]), ("two", lines[7000:]), ("all", lines)):
        (ok.path / name).write_text("".join(line + "\n" for line in part))
    want = ok("top", "--k", "20", "all", "-o", "all.bly").out
    ok("top", "--k", "20", "one", "-o", "one.bly")
    assert ok("top", "--k", "20", "one.bly", "two", "-o", "both.bly").out == want
    ok("top", "--k", "20", "--into", "into.bly", "one")
    assert ok("top", "--into", "into.bly", "two").out == want
    assert ok("top", "into.bly").out == want
    assert (ok.path / "into.bly").read_bytes() == (ok.path / "all.bly").read_bytes() == (ok.path / "both.bly").read_bytes()
    counts = collections.Counter(lines)
    for line in want.splitlines():
        key, n = line.split("\t")
        assert int(n) <= counts[key]
    heavy = [key for key, n in counts.most_common(8)]
    assert {line.split("\t")[0] for line in want.splitlines()} >= set(heavy)
    assert int(subprocess.run(["sh", "-c", "sort all | uniq -c | sort -rn | head -1"], cwd=ok.path, check=True,
                              stdout=subprocess.PIPE).stdout.split()[0]) == int(want.split("\t")[1].split("\n")[0])


def test_lists_are_merged(ok, trouble):
    lines = frequent(30000, 2)
    for i in range(3):
        (ok.path / f"p{i}").write_text("".join(line + "\n" for line in lines[i::3]))
        ok("top", "--k", "30", f"p{i}", "-o", f"p{i}.bly")
    ok("merge", "-o", "m.bly", "p0.bly", "p1.bly", "p2.bly")
    merged = ok("top", "p0.bly", "p1.bly", "p2.bly", "--json").json
    assert merged == ok("top", "m.bly", "--json").json and merged["keys"] == 30000
    counts = collections.Counter(lines)
    for item in merged["top"][:5]:
        assert 0.98 * counts[item["key"]] <= item["count"] <= counts[item["key"]]
    assert [i["key"] for i in merged["top"][:3]] == [k for k, _ in counts.most_common(3)]
    assert len(ok("top", "--k", "2", "m.bly").lines) == 2
    ok("top", "--k", "31", "p0", "-o", "q.bly")
    ok("top", "--k", "30", "--seed", "3", "p0", "-o", "s.bly")
    trouble("top", "p0.bly", "q.bly", says=["p0.bly", "q.bly"])
    trouble("top", "p0.bly", "s.bly", says="seeds 0 and 3")
    trouble("top", "-m", "1M", "p0.bly", "p1", says="--memory")
    info = ok("info", "--json", "m.bly").json
    assert info["sketch"] == "topk" and info["k"] == 60 and 0 < info["listed"] <= 60
    assert "topk" in ok("info", "m.bly").out


def test_any_bytes_are_keys_of_a_list(ok):
    text = b"a\nb\0\xff\nb\0\xff\n\n\n\n"
    want = ok("top", "--json", "-o", "t.bly", stdin=text).json
    assert ok("top", "--json", "t.bly").json == want
    assert {item["count"] for item in want["top"]} == {1, 2, 3}


def test_help_names_what_is_saved(ok):
    for command in ("distinct", "top"):
        text = ok("help", command).out
        assert "--into FILE" in text and "-o, --output FILE" in text
