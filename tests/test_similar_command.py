"""similar, basket and plan --near: likeness of texts and of items."""
import gzip
import math
import random
import xml.etree.ElementTree as xml
from collections import defaultdict

import pytest

FOX = ("The quick brown fox jumps over the lazy dog near the river bank "
       "today.")
FOX2 = FOX.replace("jumps", "jumped").replace(".", "!")


def put(call, name, text):
    (call.path / name).write_text(text)
    return name


# ---------------------------------------------------------------- similar

@pytest.mark.parametrize("unit, size, both, either", [
    ("word", 3, 9, 15), ("word", 5, 5, 15), ("char", 5, 58, 69),
    ("char", 10, 50, 71)])
def test_exact_likeness(ok, unit, size, both, either):
    put(ok, "a", FOX)
    put(ok, "b", FOX2)
    out = ok("similar", "--unit", unit, "--size", size, "--json", "a",
             "b").json
    assert (out["unit"], out["size"]) == (unit, size)
    pair, = out["pairs"]
    assert (pair["both"], pair["either"]) == (both, either)
    assert pair["jaccard"] == pytest.approx(both / either)
    assert not pair["equal"]


def test_defaults(ok):
    put(ok, "a", FOX)
    out = ok("similar", "--json", "a", "a").json
    assert (out["unit"], out["size"]) == ("word", 5)
    assert (out["family"], out["components"]) == ("fss", 128)
    assert ok("similar", "--unit", "char", "--json", "a", "a").json["size"] == 10
    assert out["texts"][0] == {"file": "a", "words": 14, "shingles": 10}


def words(seed, n):
    r = random.Random(seed)
    return ["w%d" % r.randrange(10**6) for _ in range(n)]


@pytest.mark.parametrize("family", ["fss", "oph", "linear", "linear61"])
def test_estimates_are_near_the_truth(ok, family):
    """Two texts that share a stretch: sketch and filter within five
    deviations of what is exact."""
    a, b = words(1, 3000), words(2, 3000)
    put(ok, "a", " ".join(a))
    put(ok, "b", " ".join(a[:2000] + b[:1000]))
    put(ok, "c", " ".join(b))
    out = ok("similar", "--family", family, "--components", "256", "--json", "a", "b",
             "c").json
    assert out["family"] == family and out["components"] == 256
    assert [(p["file_a"], p["file_b"]) for p in out["pairs"]] == [
        ("a", "b"), ("a", "c"), ("b", "c")]
    exact = [p["jaccard"] for p in out["pairs"]]
    assert exact == pytest.approx([1996 / 3996, 0, 996 / 4996])
    for p in out["pairs"]:
        assert abs(p["sketch"] - p["jaccard"]) < 5 * p["sketch_sd"]
        assert abs(p["filter"] - p["jaccard"]) < 5 * p["filter_sd"] + 0.002
    stranger = out["pairs"][1]
    assert stranger["shared_cells"] == pytest.approx(
        stranger["chance_cells"], abs=0.03)
    assert out["pairs"][0]["shared_cells"] > 0.1 + out["pairs"][0][
        "chance_cells"]
    assert out["pairs"][0]["containment"] == pytest.approx(1996 / 2996)


def test_people_see_the_same(ok):
    put(ok, "a", FOX)
    put(ok, "b", FOX.upper().replace(" ", "\n -- "))
    text = ok("similar", "a", "b").out
    assert "shingles of 5 words" in text and "1.000 +- " in text
    assert "the same words" in text


def test_texts_without_words_and_compressed_ones(ok):
    put(ok, "empty", "")
    put(ok, "blank", " \n--\n")
    put(ok, "a", FOX)
    (ok.path / "a.gz").write_bytes(gzip.compress(FOX.encode()))
    out = ok("similar", "--json", "empty", "blank").json
    assert out["pairs"][0]["jaccard"] == 0 and out["pairs"][0]["sketch"] == 0
    assert not out["pairs"][0]["equal"]
    ok("similar", "empty", "blank")
    out = ok("similar", "--json", "a.gz", "-", stdin=FOX).json
    assert out["pairs"][0]["equal"] and out["pairs"][0]["jaccard"] == 1


@pytest.mark.parametrize("argv, says", [
    (["similar", "a"], "two texts"),
    (["similar"], "two texts"),
    (["similar", "a", "nonesuch"], "nonesuch"),
    (["similar", "--unit", "line", "a", "a"], "line"),
    (["similar", "--size", "0", "a", "a"], "size"),
    (["similar", "--size", "1025", "a", "a"], "1024"),
    (["similar", "--components", "513", "a", "a"], "512"),
    (["similar", "--family", "none", "a", "a"], ["none", "linear61"]),
    (["basket", "--components", "513", "a"], "512"),
    (["basket", "nonesuch"], "nonesuch"),
    (["basket", "-T", "0.01", "--components", "10", "a"], ["10 components", "more"]),
    (["plan", "--near", "--components", "classic"], "classic"),
    (["plan", "--near", "--components", "513"], "512"),
    (["plan", "--near", "--items", "10"], "--near"),
    (["plan", "--threshold", "0.5", "--items", "10"], "--near"),
    (["plan", "--near", "--json", "--plot", "-"], "standard output"),
])
def test_trouble(trouble, argv, says):
    put(trouble, "a", FOX)
    trouble(*argv, says=says)


# ----------------------------------------------------------------- basket

def brute(lines, threshold, least=2):
    """Every pair of items, by counting."""
    where = defaultdict(set)
    for i, line in enumerate(lines):
        for item in line.split():
            where[item].add(i)
    names = [n for n in where if len(where[n]) >= least]
    out = {}
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            both = len(where[a] & where[b])
            j = both / len(where[a] | where[b])
            if j >= threshold:
                out[frozenset((a, b))] = (j, both, len(where[a]),
                                          len(where[b]))
    return out


def receipts():
    r = random.Random(7)
    lines = []
    for _ in range(3000):
        line = ["c%d" % r.randrange(60) for _ in range(4)]
        if r.random() < 0.01:
            line += ["caviar"] + ["vodka"] * (r.random() < 0.9)
        if r.random() < 0.3:
            line += ["bread", "butter"]
        r.shuffle(line)
        lines.append(" ".join(line))
    lines += ["rare1 rare2", "\trare2   rare1 rare1 ", ""]
    return lines


def test_baskets_are_counted_exactly(ok):
    lines = receipts()
    truth = brute(lines, 0.5)
    assert len(truth) == 3
    out = ok("basket", "-T", "0.5", "--recall", "0.999", stdin="\n".join(lines))
    told = {}
    likeness = []
    for line in out.lines:
        a, b, j, both, na, nb, ab, ba = line.split("\t")
        told[frozenset((a, b))] = (float(j), int(both), int(na), int(nb))
        likeness.append(float(j))
        assert float(ab) == pytest.approx(int(both) / int(na), abs=1e-4)
        assert float(ba) == pytest.approx(int(both) / int(nb), abs=1e-4)
    assert likeness == sorted(likeness, reverse=True)
    assert set(told) == set(truth)
    for pair, (j, both, na, nb) in truth.items():
        assert told[pair][0] == pytest.approx(j, abs=1e-4)
        assert told[pair][1] == both
        assert sorted(told[pair][2:]) == sorted((na, nb))


def test_basket_json_and_rare_items(ok):
    lines = receipts()
    put(ok, "r", "\n".join(lines))
    out = ok("basket", "--json", "r").json
    assert out["baskets"] == len(lines) - 1  # no newline after the last, empty
    assert (out["bands"], out["rows"]) == (33, 3)
    assert {"rare1", "rare2"} in [{p["a"], p["b"]} for p in out["pairs"]]
    assert all(p["jaccard"] >= 0.5 for p in out["pairs"])
    out = ok("basket", "--min-count", "3", "--json", "r").json
    assert {"rare1", "rare2"} not in [{p["a"], p["b"]} for p in out["pairs"]]
    assert out["pairs"]


def test_rows_are_chosen_as_promised(ok):
    for t, rows in (("0.3", 2), ("0.8", 7)):
        assert ok("basket", "-T", t, "--json", stdin="a b\n").json["rows"] == rows


def test_no_baskets(ok):
    assert ok("basket").out == ""
    assert ok("basket", stdin="\n\n").out == ""
    assert ok("basket", "--json").json["pairs"] == []


# ------------------------------------------------------------------- plan

def test_the_curve(ok):
    out = ok("plan", "--near", "-T", "0.8", "--components", "128", "--json").json
    assert (out["recall"]["bands"], out["recall"]["rows"]) == (21, 6)
    assert (out["area"]["bands"], out["area"]["rows"]) == (9, 13)
    curve = dict(map(tuple, out["recall"]["curve"]))
    assert curve[0.5] == pytest.approx(0.281590, abs=1e-6)
    assert curve[0.8] == pytest.approx(0.998312, abs=1e-6)
    assert curve[0] == 0 and curve[1] == 1
    text = ok("plan", "--near", "-T", "0.8", "--components", "128").out
    assert "21 bands of  6" in text and "0.998312" in text
    assert ok("plan", "--near").out == text


def test_the_curve_is_drawn(ok):
    ok("plan", "--near", "--plot", "near.svg")
    root = xml.parse(ok.path / "near.svg").getroot()
    assert root.tag.endswith("svg")
    drawn = ok("plan", "--near", "--plot", "-").out
    assert xml.fromstring(drawn).tag.endswith("svg")


# ------------------------------------------------------------- saved sketches

def test_sketches_are_saved_and_compared(ok, trouble):
    words = [f"w{i * 7919 % 1000}" for i in range(900)]
    for name, part in (("a", words[:600]), ("b", words[100:700]), ("c", words[300:])):
        (ok.path / name).write_text(" ".join(part))
        ok("similar", "-o", name + ".bly", name)
    want = {(p["file_a"], p["file_b"]): p for p in ok("similar", "--json", "a", "b", "c").json["pairs"]}
    for names in (["a.bly", "b.bly", "c.bly"], ["a.bly", "b", "c.bly"]):
        for pair in ok("similar", "--json", *names).json["pairs"]:
            truth = want[pair["file_a"][0], pair["file_b"][0]]
            assert (pair["sketch"], pair["sketch_sd"]) == (truth["sketch"], truth["sketch_sd"])
            assert pair["jaccard"] is None and pair["both"] is None and pair["filter"] is None
    assert "a saved sketch" in ok("similar", "a.bly", "b").out
    # Merged, they are the sketch of all shingles.
    ok("similar", "-o", "all.bly", "a", "b", "c")
    ok("merge", "-o", "merged.bly", "c.bly", "a.bly", "b.bly")
    ok("similar", "-o", "mixed.bly", "c.bly", "b", "a.bly")
    assert (ok.path / "all.bly").read_bytes() == (ok.path / "merged.bly").read_bytes() == (ok.path / "mixed.bly").read_bytes()
    told = ok("info", "--json", "all.bly").json
    assert (told["sketch"], told["components"], told["shingle"], told["unit"]) == ("minhash", 128, 5, "words")
    # Texts are sketched like the saved one, unless somebody says how.
    ok("similar", "--size", "3", "--components", "64", "-o", "three.bly", "a")
    assert ok("similar", "--json", "three.bly", "b").json["size"] == 3
    trouble("similar", "three.bly", "b.bly", says=["three.bly", "b.bly", "differ"])
    trouble("similar", "--size", "4", "three.bly", "b", says="size of shingles")
    trouble("similar", "-o", "x.bly", "three.bly", "b.bly", says="differ")
    trouble("similar", "-o", "a", "a", says="overwritten")
    trouble("similar", "-o", "/dev/full", "a", says="No space")
    trouble("similar", "a.bly", says="two texts")
    trouble("similar", "-o", "x.bly", says="one text")
    ok("distinct", "a", "-o", "d.bly")
    trouble("similar", "a", "d.bly", says=["d.bly", "hyperloglog", "minhash"])
    trouble("merge", "-o", "x.bly", "a.bly", "d.bly", says=["minhash", "hyperloglog"])
    whole = (ok.path / "a.bly").read_bytes()
    for at in (20, 300, 400, len(whole) - 1):
        (ok.path / "bad.bly").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        trouble("similar", "bad.bly", "a", says="bad.bly")
    assert not (ok.path / "x.bly").exists()


def test_texts_without_end(ok, trouble):
    """A device, or a few bytes of gzip, would be read until the memory is full."""
    trouble("similar", "/dev/zero", "/dev/zero", says=["/dev/zero: more than 128.0 MiB", "--max-text"])
    (ok.path / "bomb.gz").write_bytes(gzip.compress(b"word " * 1000000))
    trouble("similar", "--max-text", "1MiB", "bomb.gz", "bomb.gz", says=["more than 1.0 MiB", "--max-text"])
    ok("similar", "--max-text", "5000000", "bomb.gz", "bomb.gz")
    trouble("similar", "--max-text", "4999999", "bomb.gz", "bomb.gz", says="--max-text")


def test_measures_side_by_side(ok, trouble, tmp_path):
    """As vectors of zeros and ones: exactly, and by the hashing that keeps each."""
    rng = random.Random(7)
    words = {name: sorted({f"{rng.choice('abcdefgh')}{rng.randrange(300)}" for _ in range(n)})
             for name, n in (("a", 900), ("b", 1500))}
    for name, some in words.items():
        (tmp_path / name).write_text(" ".join(some))
    a, b = (set(w) for w in words.values())
    every = [x for m in ("hamming", "angle", "jaccard", "cosine") for x in ("--measure", m)]
    told = ok("similar", "--size", 1, "--json", *every, "a", "b").json["pairs"][0]
    cosine = len(a & b) / math.sqrt(len(a) * len(b))
    assert told["hamming"] == len(a ^ b) and abs(told["cosine"] - cosine) < 1e-12
    assert abs(told["angle"] - math.degrees(math.acos(cosine))) < 1e-9
    for exact, estimate in (("cosine", "cosine_sides"), ("angle", "angle_sides"), ("hamming", "hamming_filter")):
        assert abs(told[exact] - told[estimate]) < 4 * told[estimate + "_sd"], exact
    text = ok("similar", "--size", 1, *every, "a", "b").lines
    assert text[0].split()[2::3] == ["hamming", "angle", "jaccard", "cosine"]
    assert len(text) == 2 and f" {len(a ^ b)} " in text[1]
    assert "hamming" not in ok("similar", "--size", 1, "--json", "a", "b").json["pairs"][0]
    same = ok("similar", "--json", "--measure", "angle", "a", "a").json["pairs"][0]
    assert same["angle"] == same["angle_sides"] == 0
    ok("similar", "-o", "b.bly", "b")
    saved = ok("similar", "--measure", "jaccard", "--measure", "cosine", "a", "b.bly").lines[1]
    assert saved.count("?") >= 3
    (tmp_path / "none").write_text("--")
    assert "?" in ok("similar", "--measure", "angle", "a", "none").out
    trouble("similar", "--measure", "euclid", "a", "b", says=["euclid", "jaccard"])
