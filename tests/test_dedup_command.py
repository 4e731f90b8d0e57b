"""bloomery dedup: near-copies go, nothing else does, no line is lost.

The truth is computed here by a plain join from the definitions: words, shingles
of five of them, J = shared / all."""
import collections
import fcntl
import gzip
import itertools
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from conftest import PATIENCE, PROGRAM, kinds_that

T = 0.8


def words(text):
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    return [w.lower() for w in re.findall(rb"[A-Za-z0-9\x80-\xff]+", text)]


def shingles(text, n=5):
    w = words(text)
    if not w:
        return frozenset()
    n = min(n, len(w))
    return frozenset(tuple(w[i:i + n]) for i in range(len(w) - n + 1))


def jaccard(a, b):
    return len(a & b) / len(a | b) if a and b else 0.0


def truth(texts):
    """All pairs with a common shingle: (i, j) -> J."""
    sets = [shingles(t) for t in texts]
    by_shingle = collections.defaultdict(list)
    for i, s in enumerate(sets):
        for x in s:
            by_shingle[x].append(i)
    shared = collections.Counter()
    for docs in by_shingle.values():
        shared.update(itertools.combinations(docs, 2))
    return {(i, j): n / (len(sets[i]) + len(sets[j]) - n)
            for (i, j), n in shared.items()}


def corpus(n, seed=1, length=(60, 300)):
    """Random texts; a third are edited copies, more or less."""
    r = random.Random(seed)
    vocabulary = ["".join(r.choice("abcdefghijklmnop") for _ in range(r.randint(2, 8)))
                  for _ in range(5000)]
    texts = []
    for _ in range(n):
        if texts and r.random() < 0.35:
            t = list(r.choice(texts))
            for _ in range(max(1, int(len(t) * r.choice([.002, .01, .02, .03, .05, .2])))):
                at = r.randrange(len(t))
                what = r.random()
                if what < 0.6:
                    t[at] = r.choice(vocabulary)
                elif what < 0.8:
                    t.insert(at, r.choice(vocabulary))
                elif len(t) > 5:
                    del t[at]
        else:
            t = [r.choice(vocabulary) for _ in range(r.randint(*length))]
        texts.append(t)
    return [" ".join(t) for t in texts]


def jsonl(texts, **more):
    return "".join(json.dumps({"id": f"d{i}", "text": t, **more}) + "\n"
                   for i, t in enumerate(texts))


def tsv(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def planted():
    texts = corpus(2500)
    return texts, truth(texts)


def number(id):
    return int(id[1:])


# ------------------------------------------------------------------ likeness

def test_pairs_are_found_and_only_pairs(ok, planted):
    texts, known = planted
    (ok.path / "c.jsonl").write_text(jsonl(texts))
    report = ok("dedup", "c.jsonl", "--id", "id", "--pairs", "p.tsv", "--json").json
    found = {tuple(sorted((number(a), number(b)))): float(j)
             for a, b, j in tsv(ok.path / "p.tsv")}
    want = {p for p, j in known.items() if j >= T}
    assert len(want) > 300
    assert len(want & set(found)) >= 0.995 * len(want)
    assert len(want & set(found)) >= 0.999 * len(found)
    for pair, j in found.items():
        assert abs(known[pair] - j) < 5.1e-5, pair
    lines = (ok.path / "p.tsv").read_text().splitlines()
    assert lines == sorted(lines)
    assert all(a <= b for a, b, _ in tsv(ok.path / "p.tsv"))
    assert report["pairs"] == len(found)
    assert report["params"]["bands"] == 21 and report["params"]["rows"] == 6
    assert report["expected_recall"] == pytest.approx(0.998312, abs=1e-6)


def test_all_pairs_among_equal_texts(ok, trouble):
    """--all: each with each, and with what is like them; without it, only the first of equal texts speaks for them."""
    words = [f"w{i}" for i in range(100)]
    like = " ".join(["other", *words[1:]])
    texts = [" ".join(words)] * 4 + [like] * 3 + ["something else that has nothing to do with it"]
    (ok.path / "c.jsonl").write_text(jsonl(texts))
    ok("dedup", "c.jsonl", "--id", "id", "--pairs", "p.tsv")
    assert len(tsv(ok.path / "p.tsv")) == 3 + 2 + 1
    for more in ([], ["--memory", "1M"], ["--policy", "component"]):
        ok("dedup", "c.jsonl", "--id", "id", "--pairs", "p.tsv", "--all", *more)
        found = {tuple(sorted((number(a), number(b)))): float(j) for a, b, j in tsv(ok.path / "p.tsv")}
        assert set(found) == {(a, b) for a in range(7) for b in range(a + 1, 7)}
        assert len(tsv(ok.path / "p.tsv")) == len(found)
        assert all((j == 1) == ((a < 4) == (b < 4)) for (a, b), j in found.items())
    trouble("dedup", "c.jsonl", "--all", "-o", "x", says="--pairs")


@pytest.mark.parametrize("priority", ["first", "longest", "field:score",
                                      "field:score:asc"])
def test_what_goes_has_a_witness_that_stays(ok, planted, priority):
    texts, known = planted
    lines = [json.dumps({"id": f"d{i}", "text": t, "score": i * 7919 % 1000})
             for i, t in enumerate(texts)]
    (ok.path / "c.jsonl").write_text("\n".join(lines) + "\n")
    ok("dedup", "c.jsonl", "--id", "id", "-o", "out.jsonl", "--removed", "r.tsv",
       "--priority", priority)
    out = (ok.path / "out.jsonl").read_text().splitlines()
    kept = {number(json.loads(x)["id"]) for x in out}
    assert out == [x for i, x in enumerate(lines) if i in kept]
    rank = {"first": lambda i: i, "longest": lambda i: (-len(texts[i]), i),
            "field:score": lambda i: (-(i * 7919 % 1000), i),
            "field:score:asc": lambda i: (i * 7919 % 1000, i)}[priority]
    gone = tsv(ok.path / "r.tsv")
    assert len(gone) + len(kept) == len(texts) and len(gone) > 200
    for a, w, j in gone:
        a, w = number(a), number(w)
        assert w in kept and a not in kept
        assert rank(w) < rank(a)
        assert known[min(a, w), max(a, w)] >= T
        assert abs(known[min(a, w), max(a, w)] - float(j)) < 5.1e-5
    # And what stays is not like anything that stays, but for what bands miss.
    both = [p for p, j in known.items() if j >= T and set(p) <= kept]
    assert len(both) <= 0.005 * len(gone)


def test_components_link_what_greedy_leaves(ok):
    """A like B like C, A not like C: greedy keeps C, component does not."""
    base = [f"w{i}" for i in range(200)]
    b = base[:9] + ["x"] * 0 + base[9:]
    b = base[15:] + [f"y{i}" for i in range(15)]
    c = b[15:] + [f"z{i}" for i in range(15)]
    texts = [" ".join(x) for x in (base, b, c)] + corpus(50, seed=9)
    known = truth(texts)
    assert known[0, 1] >= T and known[1, 2] >= T > known[0, 2]
    (ok.path / "c.jsonl").write_text(jsonl(texts))
    runs = {}
    for name, more in {"greedy": [], "component": ["--policy", "component"],
                       "split": ["--policy", "component", "--max-cluster", "2"]}.items():
        ok("dedup", "c.jsonl", "--id", "id", "-o", name, "--clusters", "c.tsv", *more)
        runs[name] = {json.loads(x)["id"] for x in
                      (ok.path / name).read_text().splitlines()}
        if name == "component":
            numbers = {a: n for a, n in tsv(ok.path / "c.tsv")}
            assert numbers["d0"] == numbers["d1"] == numbers["d2"]
    assert {"d0", "d2"} <= runs["greedy"] and "d1" not in runs["greedy"]
    assert {"d1", "d2"}.isdisjoint(runs["component"]) and "d0" in runs["component"]
    assert runs["split"] == runs["greedy"]


@pytest.mark.parametrize("options, score", [
    (["--verify", "estimate"], 0.85), (["--bands", "area"], 0.3),
    (["--family", "oph"], 0.99), (["--family", "linear"], 0.99)])
def test_other_ways_to_look(ok, planted, options, score):
    texts, known = planted
    (ok.path / "c.jsonl").write_text(jsonl(texts))
    ok("dedup", "c.jsonl", "--id", "id", "--pairs", "p.tsv", *options)
    found = {tuple(sorted((number(a), number(b)))) for a, b, _ in tsv(ok.path / "p.tsv")}
    want = {p for p, j in known.items() if j >= T}
    assert len(want & found) >= score * len(want)


def test_threads_change_nothing(ok, planted):
    texts, _ = planted
    (ok.path / "c.jsonl").write_text(jsonl(texts) * 3)
    outs = []
    for threads in 1, 2, 7:
        ok("dedup", "c.jsonl", "--id", "id", "-o", "o", "--pairs", "p", "--clusters",
           "c", "--removed", "r", "--save-index", "i", "--threads", threads)
        outs.append([(ok.path / f).read_bytes() for f in "opcri"])
    assert outs[0] == outs[1] == outs[2]
    # Nor does memory, nor compression.
    subprocess.run(["zstd", "-q", "c.jsonl"], cwd=ok.path, check=True)
    (ok.path / "c.jsonl.gz").write_bytes(gzip.compress(
        (ok.path / "c.jsonl").read_bytes()))
    for source, more in [("c.jsonl", ["--memory", "1"]), ("c.jsonl.zst", []),
                         ("c.jsonl.gz", [])]:
        ok("dedup", source, "--id", "id", "-o", "o", "--removed", "r", *more)
        assert (ok.path / "o").read_bytes() == outs[0][0], (source, more)
        if source == "c.jsonl":
            assert (ok.path / "r").read_bytes() == outs[0][3]


# ----------------------------------------------------------------- bad input

GOOD = '{"id":"a","text":"one two three four five six seven"}'
BAD = [b"", b"{", b'{"text":', b"[1,2", b'{"text":"x" "y":1}', b'{"text":1}',
       b'{"txt":"x"}', b'{"text":null}', b'{"text":"a\\q"}', b'{"text":"a\\u12"}',
       b'{"text":"unended}', b'{"text":"a"} x', b"nonsense", b"{" * 1000,
       b'{"text":01}', b'"text"', b"\xff\xfe", b"\0"]


def test_bad_lines_stay_and_are_told(bly):
    lines = []
    for i, bad in enumerate(BAD):
        lines += [f"{GOOD[:-2]} {i * 97} b{i} c{i} d{i} e{i}\"}}".encode(), bad]
    content = b"\n".join(lines) + b"\n"
    (bly.path / "c.jsonl").write_bytes(content)
    done = bly("dedup", "c.jsonl", "-o", "out", "--json")
    assert done.status == 2
    assert (bly.path / "out").read_bytes() == content
    assert done.json["malformed"] == len(BAD)
    told = done.err.splitlines()
    assert len(told) == 11
    for i in range(10):
        assert f"c.jsonl:{2 * i + 2}: " in told[i]
    assert str(len(BAD)) in told[10]
    (bly.path / "out").unlink()
    strict = bly("dedup", "c.jsonl", "-o", "out", "--strict")
    assert strict.status == 2 and "c.jsonl:2: " in strict.err
    assert len(strict.err.splitlines()) == 1
    assert not (bly.path / "out").exists()
    assert os.listdir(bly.path) == ["c.jsonl"]


@pytest.mark.parametrize("line", ["plain words, and no JSON", '{"body":"x y"}'])
def test_what_was_no_corpus_is_told_what_would_be_right(bly, line):
    (bly.path / "c").write_text(f"{line}\n" * 20)
    done = bly("dedup", "c", "-o", "o")
    assert done.status == 2 and done.err.count("\n") == 12
    assert "--lines" in done.err and "--text-field" in done.err
    assert "--lines" not in bly("dedup", "c", "-o", "o", "--lines").err
    (bly.path / "c").write_text(f"{line}\n{GOOD}\n")
    assert "--lines" not in bly("dedup", "c", "-o", "o").err


def test_texts_without_words_are_like_nothing(ok):
    content = "".join(json.dumps({"text": t}) + "\n" for t in
                      ["", "", " ", "!?", "!?", "...", "a", "a", "A"])
    (ok.path / "c").write_text(content)
    report = ok("dedup", "c", "-o", "out", "--json").json
    assert report["without_text"] == 6 and report["removed"] == 2
    assert len((ok.path / "out").read_text().splitlines()) == 7
    report = ok("dedup", "c", "-o", "out", "--drop-empty", "--json").json
    assert report["dropped_empty"] == 6
    assert (ok.path / "out").read_text() == '{"text": "a"}\n'


def test_escapes_and_encodings_are_the_same_text(ok):
    lines = ['{"text":"gr\\u00fc\\u00dfe an \\ud83d\\ude00 alle leute hier und dort"}',
             '{"text":"grüße an 😀 alle leute hier und dort"}',
             '{ "x" : [ {"text":"no"} ] , "text" : "gr\\u00FC\\u00dfe\\nan \\ud83d\\ude00\\talle\\/leute hier und dort" }',
             '{"text":"half \\ud83d of a pair is one word in this line here"}',
             '{"text":"other words that have nothing to do with the rest"}']
    (ok.path / "c").write_text("\n".join(lines))
    ok("dedup", "c", "-o", "out")
    assert (ok.path / "out").read_text() == "\n".join([lines[0]] + lines[3:])


def test_bytes_that_are_no_utf8(ok):
    lines = [b'{"text":"a \xff\xfe b c d e f g"}', b'{"text":"A, \xff\xfe B c d e f g"}',
             b'{"text":"\xc3\x28 z y x w v u t s"}', b'{"text":"q\x00r s t u v w x"}']
    (ok.path / "c").write_bytes(b"\r\n".join(lines) + b"\r\n")
    done = ok("dedup", "c", "-o", "out")
    assert "3 texts are not UTF-8" in done.err
    assert (ok.path / "out").read_bytes() == b"\r\n".join(
        [lines[0]] + lines[2:]) + b"\r\n"
    (ok.path / "w").mkdir()
    for _ in range(2):  # read, and from the journal
        again = ok("dedup", "c", "-o", "out", "--json", "--work", "w")
        assert again.json["not_utf8"] == 3 and "3 texts are not UTF-8" in again.err
    assert "3 texts are not UTF-8" in ok("dedup", "c", "-o", "out", "--exact").err
    (ok.path / "c").write_bytes(lines[2] + b"\n")
    assert "1 text is not UTF-8" in ok("dedup", "c", "-o", "out").err
    (ok.path / "c").write_bytes(lines[3] + b"\n")
    assert ok("dedup", "c", "-o", "out").err == ""


def test_pointers(ok):
    lines = [json.dumps({"a": {"b": [{"t~/x": "no"}, {"t~/x": t}]}, "text": str(i)})
             for i, t in enumerate(["one two three four five six"] * 2 +
                                   ["seven eight nine ten eleven twelve"])]
    (ok.path / "c").write_text("\n".join(lines) + "\n")
    ok("dedup", "c", "-o", "out", "--text-field", "/a/b/1/t~0~1x", "--id-field",
       "/text", "--removed", "r")
    assert (ok.path / "out").read_text().splitlines() == [lines[0], lines[2]]
    assert tsv(ok.path / "r") == [["1", "0", "1.0000"]]


def test_a_line_of_100_megabytes(ok):
    long = b"x" * 50 + b" word another" * 8_000_000
    with open(ok.path / "c", "wb") as f:
        for tail in b"", b", !", b"":
            f.write(b'{"text":"' + long + tail + b'"}\n')
        f.write(GOOD.encode())
    ok("dedup", "c", "-o", "out", timeout=PATIENCE)
    assert os.path.getsize(ok.path / "out") == len(long) + 12 + len(GOOD)


@pytest.mark.parametrize("options", [[], ["--index", "bloom"], ["--paragraphs"],
                                     ["--exact"], ["--lines"], ["--files"]])
def test_a_line_without_an_end(ok, trouble, options):
    """A few kilobytes, compressed, and a gigabyte of one line: the run ends, says
    which line it was, and never held all of it."""
    path = ok.path / "bomb.gz"
    with gzip.open(path, "wb", 9) as f:
        f.write(GOOD.encode() + b"\n")
        for _ in range(300):
            f.write(b"a " * 500_000)
    assert path.stat().st_size < 1_000_000
    says = ["bomb.gz" if "--files" in options else "bomb.gz:2", "--max-line"]
    run = ["dedup", path, "-o", "out", *options]
    trouble(*run, "--max-line", "4MiB", says=says)
    trouble(*run, says=says)
    assert not (ok.path / "out").exists()
    assert peak_of(ok.path, *run, "--max-line", "1MiB", "--threads", "8",
                   status=2) < 64 << 20


def test_long_lines_are_worked_on_one_at_a_time(ok):
    """Twelve of 12 MB each, whose shingles take 8 times that: eight threads
    need the memory of one."""
    with open(ok.path / "c", "wb") as f:
        for i in range(12):
            f.write(b"x%d " % i + b"a " * 6_000_000 + b"\n" + b"few words here\n")
    alone, together = (peak_of(ok.path, "dedup", "c", "--lines", "-o", f"out{n}",
                               "--threads", n) for n in "18")
    assert (ok.path / "out1").read_bytes() == (ok.path / "out8").read_bytes()
    assert together < alone + (96 << 20)


def test_a_damaged_file_is_used_up_to_its_last_good_line(bly, planted):
    texts, _ = planted
    content = jsonl(texts).encode()
    packed = gzip.compress(content)
    (bly.path / "c.gz").write_bytes(packed[:len(packed) // 2])
    (bly.path / "d").write_text('{"text":"the next file is read all the same"}\n')
    done = bly("dedup", "c.gz", "d", "--exact", "-o", "out")
    assert done.status == 2 and "c.gz: the gzip data" in done.err
    out = (bly.path / "out").read_bytes()
    used = int(re.search(r"the (\d+) lines", done.err)[1])
    seen, expected = set(), []
    for line, text in zip(content.splitlines()[:used], texts):
        if text not in seen:
            expected.append(line)
        seen.add(text)
    assert used > 500
    assert out.splitlines() == expected + [b'{"text":"the next file is read all the same"}']


def test_missing_files_and_full_disks(bly, trouble):
    (bly.path / "c").write_text(GOOD + "\n")
    trouble("dedup", "absent", "-o", "out", says="absent")
    assert not (bly.path / "out").exists()
    for option in "-o", "--pairs", "--removed", "--save-index":
        (bly.path / "c").write_text((GOOD + "\n") * 3)
        trouble("dedup", "c", option, "/dev/full", says=["/dev/full", "space"])
    trouble("dedup", "c", "-o", "no/such/folder", says="no/such/folder")
    trouble("dedup", "c", "-o", "c", says="overwritten")
    trouble("dedup", "c", "-o", "x", "--pairs", "x", says="x")


@pytest.mark.parametrize("options", [
    ["--threshold", "1.5"], ["--bands", "3,50"], ["--priority", "last"],
    ["--verify", "maybe"], ["--family", "md5"], ["--index", "b-tree"],
    ["--text-field", "/a~2"], ["--lines", "--files"], ["--k", "1000"],
    ["--exact", "--against", "x"], ["--max-line", "1000"],
    ["--bands", "9,13,10", "--index", "bloom"], ["--bands", "9,0", "--index", "bloom"],
    ["--level", "words", "--paragraphs"]])
def test_options_that_cannot_be_meant(trouble, options):
    trouble("dedup", "-o", "out", *options, says=options[0] if
            options[0] not in ("--lines", "--k") else "")


# ------------------------------------------------------------- large buckets

def test_ten_thousand_equal_lines(ok):
    (ok.path / "c").write_text((GOOD + "\n") * 10000)
    report = ok("dedup", "c", "-o", "out", "--json").json
    assert report["equal"] == 9999 and report["candidates"] == 0
    assert (ok.path / "out").read_text() == GOOD + "\n"


def test_a_template_costs_a_comparison_a_page(ok):
    """A thousand pages alike: pairs are half a million, comparisons are not."""
    r = random.Random(5)
    template = [f"t{i}" for i in range(300)]
    for n in 500, 2000:
        texts = [" ".join(template[:150] + [f"v{r.random()}"] + template[150:])
                 for _ in range(n)]
        (ok.path / "c").write_text(jsonl(texts))
        report = ok("dedup", "c", "-o", "out", "--json").json
        assert report["largest_bucket"] > n * 0.5
        assert report["removed"] == n - 1
        assert report["candidates"] < 2 * n and report["checked"] < 2 * n
        report = ok("dedup", "c", "--policy", "component", "--max-bucket", "100",
                    "-o", "out", "--json").json
        assert report["removed"] == n - 1
        assert report["candidates"] < 2 * 21 * n


def pages(n, own, seed=6):
    """Pages of one template, with so many words of their own."""
    r = random.Random(seed)
    template = [f"t{i}" for i in range(120)]
    return [" ".join(template[:60] + [f"v{r.getrandbits(40)}" for _ in range(own)] +
                     template[60:]) for _ in range(n)]


def test_a_template_of_pages_that_stay_costs_a_budget(ok):
    """All are 0.7 alike and stay; copies among them are found all the same."""
    n = 12000
    texts = pages(n, 20)
    copies = random.Random(7).sample(range(n), 100)
    for i in copies:
        texts.append(texts[i] + " one more word")
    (ok.path / "c").write_text(jsonl(texts))
    report = ok("dedup", "c", "-o", "out", "--json", "--threads", 2, timeout=PATIENCE).json
    assert report["largest_bucket"] > n // 5  # where all pairs were ten million
    assert report["candidates"] < 1_000_000 + 200 * n
    assert report["checked"] < 1_000_000 + 100 * n
    assert 98 <= report["removed"] <= 100


# ------------------------------------------------------------------ memory

# A process begins with the memory of the one that it is forked from, so that
# should be a small one.
MEASURE = """import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(2, b"%d" % usage.ru_maxrss)
os._exit(os.waitstatus_to_exitcode(status))"""


def peak_of(path, *argv, status=0):
    """The most memory that the command had, in bytes."""
    run = subprocess.run([sys.executable, "-S", "-c", MEASURE, PROGRAM, *argv], cwd=path,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert run.returncode == status
    return int(run.stderr.split(b"\n")[-1]) * 1024


def test_work_keeps_to_the_memory(ok):
    r = random.Random(8)
    vocabulary = ["%x" % r.getrandbits(24) for _ in range(5000)]
    with open(ok.path / "c", "w") as f:
        for i in range(40000):
            t = t[1:] if i % 10 == 9 else r.choices(vocabulary, k=30)
            f.write('{"text":"%s"}\n' % " ".join(t))
    (ok.path / "w").mkdir()
    (ok.path / "small").write_text(GOOD + "\n")
    run = ["dedup", "c", "-o", "out", "--removed", "r", "--pairs", "p", "--threads", "1"]
    base = peak_of(ok.path, "dedup", "small", "-o", "out")
    free = peak_of(ok.path, *run)
    expected = [(ok.path / f).read_bytes() for f in ("out", "r", "p")]
    bound = peak_of(ok.path, *run, "--work", "w", "--memory", "16M")
    assert [(ok.path / f).read_bytes() for f in ("out", "r", "p")] == expected
    assert free > base + 2 * (16 << 20)
    assert bound < base + (16 << 20)


# ------------------------------------------------------------- across corpora

@pytest.mark.parametrize("shingles", [False, True])
def test_an_index_takes_the_place_of_its_corpus(ok, planted, shingles):
    texts, known = planted
    half = len(texts) // 2
    (ok.path / "a").write_text(jsonl(texts[:half]))
    (ok.path / "b").write_text("".join(
        json.dumps({"id": f"d{i}", "text": texts[i]}) + "\n"
        for i in range(half, len(texts))))
    ok("dedup", "a", "--id", "id", "-o", "a.out", "--save-index", "a.idx",
       *["--with-shingles"] * shingles)
    report = ok("dedup", "b", "--id", "id", "--against", "a.idx", "-o", "b.out",
                "--removed", "r", "--save-index", "b.idx", "--json").json
    first = (ok.path / "a.out").read_text().splitlines()
    second = (ok.path / "b.out").read_text().splitlines()
    assert report["indexed"] == len(first)
    kept = {json.loads(x)["id"] for x in first + second}
    for a, w, j in tsv(ok.path / "r"):
        assert w in kept and a not in kept
        pair = tuple(sorted((number(a), number(w))))
        # Where an index has sketches alone the likeness is an estimate.
        exact = shingles or number(w) >= half
        assert known.get(pair, 0) >= (T if exact else T - 0.15)
        assert abs(known.get(pair, 0) - float(j)) < (5.1e-5 if exact else 0.2)
    assert report["index_exact"] == shingles
    # What went in once is not new again.
    again = ok("dedup", "a", "b", "--id", "id", "--against", "b.idx", "-o", "c",
               "--json").json
    assert again["indexed"] == len(kept)
    assert again["kept"] < 0.02 * len(texts)
    assert again["index_exact"] == shingles
    if shingles:
        assert again["kept"] == 0


@pytest.mark.parametrize("shingles", [False, True])
def test_an_index_is_refused_when_it_does_not_fit(ok, trouble, shingles):
    (ok.path / "c").write_text((GOOD + "\n"))
    ok("dedup", "c", "--save-index", "i", "-q", *["--with-shingles"] * shingles)
    trouble("dedup", "c", "--against", "i", "--k", "64", "-o", "o", says="i: ")
    content = (ok.path / "i").read_bytes()
    for i in range(len(content)):
        (ok.path / "i").write_bytes(content[:i])
        if i % 97 == 0:
            trouble("dedup", "c", "--against", "i", "-o", "o", says="i: ")
    for i in range(0, len(content), 41):
        damaged = bytearray(content)
        damaged[i] ^= 4
        (ok.path / "i").write_bytes(damaged)
        trouble("dedup", "c", "--against", "i", "-o", "o", says="i: ")


@pytest.mark.parametrize("how", [[], ["--index", "bloom"], ["--paragraphs"],
                                 ["--exact"]])
def test_of_no_document_at_all_nothing_is_written(bly, trouble, how):
    """An archive, or gzip that is damaged from its first block on: the output
    of an earlier run stays."""
    (bly.path / "o").write_text("of yesterday")
    (bly.path / "zip").write_bytes(b"PK\x03\x04" + bytes(100))
    (bly.path / "gz").write_bytes(gzip.compress(GOOD.encode() * 9)[:30])
    for name in "zip", "gz":
        trouble("dedup", name, "-o", "o", *how, says=f"{name}: ")
        trouble("dedup", "-o", "o", *how, says=" -: ",
                stdin=(bly.path / name).read_bytes())
        assert (bly.path / "o").read_text() == "of yesterday"


def test_a_pipe_needs_a_folder_for_its_copy(bly, ok, trouble):
    trouble("dedup", "-o", "o", stdin=GOOD, says=["none: ", "pipe", "TMPDIR"],
            env=dict(os.environ, TMPDIR="none"))
    ok("dedup", "-o", "o", stdin=GOOD, env=dict(os.environ, TMPDIR=""))


# ------------------------------------------------------------ work and resume

def test_a_run_that_ended_goes_on(bly, trouble, planted):
    texts, _ = planted

    def ok(*argv):
        done = bly(*argv)
        assert done.status == 2 and "c:10001: not JSON" in done.err
        return done
    ok.path = bly.path
    (ok.path / "c").write_text(jsonl(texts) * 4 + "bad\n")
    (ok.path / "w").mkdir()
    whole = ok("dedup", "c", "--id", "id", "-o", "o", "--removed", "r", "--json").json
    expected = [(ok.path / f).read_bytes() for f in "or"]
    run = ["dedup", "c", "--id", "id", "-o", "o2", "--removed", "r2", "--json",
           "--work", "w"]
    ok(*run)
    journal = (ok.path / "w" / "journal").read_bytes()
    assert sorted(os.listdir(ok.path / "w")) == ["checked", "journal"]
    checked = (ok.path / "w" / "checked").read_bytes()
    cuts = [0, 5, 16, 1000, len(journal) // 3, len(journal) // 2, len(journal) - 1,
            len(journal)]
    resumed = []
    for cut in cuts:
        (ok.path / "w" / "journal").write_bytes(journal[:cut])
        if cut == 5:
            trouble(*run, "--resume", says="journal")
            continue
        report = ok(*run, "--resume").json
        resumed.append(report["resumed"])
        assert [(ok.path / f).read_bytes() for f in ("o2", "r2")] == expected
        assert report["malformed"] == 1
        for name in "removed", "equal", "documents", "without_text", "text_bytes":
            assert report[name] == whole[name]
    assert resumed == sorted(resumed)
    assert resumed[0] == 0 and 0 < resumed[-3] < resumed[-1] == whole["documents"]
    # What was compared is not compared again.
    for cut, some in (16, 0), (len(checked) - 1, 0), (len(checked), 1):
        (ok.path / "w" / "checked").write_bytes(checked[:cut])
        report = ok(*run, "--resume").json
        assert report["checked"] + report["resumed_pairs"] >= whole["checked"]
        assert (report["checked"] == 0) == bool(some)
        assert [(ok.path / f).read_bytes() for f in ("o2", "r2")] == expected
    damaged = bytearray(journal)
    damaged[len(journal) // 2] ^= 1
    (ok.path / "w" / "journal").write_bytes(damaged)
    assert 0 < ok(*run, "--resume").json["resumed"] < whole["documents"]
    assert (ok.path / "o2").read_bytes() == expected[0]
    trouble(*run, "--resume", "--k", "64", says="other inputs or options")
    trouble("dedup", "c", "-o", "x", "--resume", says="--work")


def test_a_run_that_is_killed_leaves_nothing_half(ok, planted):
    texts, _ = planted
    (ok.path / "c").write_text(jsonl(texts) * 8)
    (ok.path / "w").mkdir()
    ok("dedup", "c", "-o", "o")
    command = [PROGRAM, "dedup", "c", "-o", "o2", "--work", "w"]
    victim = subprocess.Popen(command, cwd=ok.path, stdout=subprocess.DEVNULL)
    journal = ok.path / "w" / "journal"
    while victim.poll() is None and (
            not journal.exists() or journal.stat().st_size < 2_000_000):
        pass
    victim.kill()
    victim.wait()
    # Either it was killed and there is no output, or it was faster.
    assert (ok.path / "o2").exists() == (victim.returncode == 0)
    ok("dedup", "c", "-o", "o2", "--work", "w", "--resume")
    assert (ok.path / "o2").read_bytes() == (ok.path / "o").read_bytes()


def test_a_kill_at_any_time_and_resume(ok, planted):
    """Killed again and again, a little later each time: the result is the same."""
    texts, _ = planted
    (ok.path / "c").write_text(jsonl(texts + pages(3000, 20)))
    (ok.path / "w").mkdir()
    outputs = ["-o", "o", "--pairs", "p", "--removed", "r", "--threads", "2"]
    ok("dedup", "c", *outputs)
    expected = [(ok.path / f).read_bytes() for f in "opr"]
    for f in "opr":
        (ok.path / f).unlink()
    patience, kills = 0.02, 0
    while True:
        run = subprocess.Popen([PROGRAM, "dedup", "c", *outputs, "--work", "w", "--resume"],
                               cwd=ok.path, stdout=subprocess.DEVNULL)
        try:
            assert run.wait(patience) == 0
            break
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            kills += 1
            patience *= 1.5
    assert kills > 3
    assert [(ok.path / f).read_bytes() for f in "opr"] == expected
    left = [f for f in os.listdir(ok.path) if ".tmp-" not in f]
    assert sorted(left) == ["c", "o", "p", "r", "w"]


@pytest.mark.parametrize("name", ["journal", "checked"])
@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_users_file_in_the_folder_of_work_is_left_alone(ok, trouble, name, resume):
    """It has one of our names and is not ours: refused before anything is
    changed. So are links, which would lead elsewhere, and pipes."""
    (ok.path / "c").write_text(jsonl(["a b c d e f", "g h i j k l"] * 2))
    folder = ok.path / "w"
    folder.mkdir()
    run = ["dedup", "c", "-o", "out", "--work", "w", *resume]
    for content in b"dear diary, a long day it was\n", b"x":
        (folder / name).write_bytes(content)
        trouble(*run, says=[f"w/{name}", "not written by dedup", "an empty folder"])
        assert (folder / name).read_bytes() == content
        assert os.listdir(folder) == [name]
    (folder / name).unlink()
    (ok.path / "other").write_text("")
    (folder / name).symlink_to(ok.path / "other")
    trouble(*run, says=[f"w/{name}", "not a regular file"])
    assert (ok.path / "other").read_text() == ""
    (folder / name).unlink()
    os.mkfifo(folder / name)
    trouble(*run, says=[f"w/{name}", "not a regular file"])
    (folder / name).unlink()
    (folder / name).mkdir()
    trouble(*run, says=[f"w/{name}", "not a regular file"])
    (folder / name).rmdir()
    ok(*run)
    ok(*run)
    assert not (ok.path / "other").read_text()
    assert sorted(os.listdir(folder)) == ["checked", "journal"]


def test_the_folder_of_work_is_made(ok, trouble):
    (ok.path / "c").write_text(jsonl(["a b c d e f", "g h i j k l"] * 2))
    ok("dedup", "c", "-o", "out", "--work", "new")
    assert sorted(os.listdir(ok.path / "new")) == ["checked", "journal"]
    trouble("dedup", "c", "-o", "out", "--work", "no/where", says=["--work no/where", "made"])
    trouble("dedup", "c", "-o", "out", "--work", "c", says=["--work c", "a folder"])


def test_one_run_at_a_time_in_the_folder_of_work(ok, trouble):
    (ok.path / "c").write_text(jsonl(["a b c d e f"] * 2))
    (ok.path / "w").mkdir()
    fd = os.open(ok.path / "w", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    trouble("dedup", "c", "-o", "out", "--work", "w", says=["--work w", "another run"])
    os.close(fd)
    ok("dedup", "c", "-o", "out", "--work", "w")


def test_what_a_killed_run_left_is_swept(ok):
    """Files that were about to lose their names; nobody else's."""
    (ok.path / "c").write_text(jsonl(["a b c d e f"] * 2))
    (ok.path / "w").mkdir()
    for name, mode in [("bloomery-aB3xYz", 0o600), ("bloomery-PUBLIC", 0o644),
                       ("bloomery-aB3xYzz", 0o600), ("mine", 0o600)]:
        (ok.path / "w" / name).write_text("x")
        (ok.path / "w" / name).chmod(mode)
    ok("dedup", "c", "-o", "out", "--work", "w")
    assert sorted(os.listdir(ok.path / "w")) == [
        "bloomery-PUBLIC", "bloomery-aB3xYzz", "checked", "journal", "mine"]


def test_a_full_disk_is_told(bly, planted):
    """In each stage: as the folder of --work and of the output fills."""
    texts, _ = planted
    (bly.path / "c").write_text(jsonl(texts))
    small = bly.path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small],
                             capture_output=True)
    if mounted.returncode:
        pytest.skip("no tmpfs to be had")
    try:
        sizes = ["64k", "256k", "1m", "2m", "3m", "64m"]
        seen = []
        for size in sizes:
            subprocess.run(["mount", "-o", f"remount,size={size}", small], check=True)
            for f in small.iterdir():
                shutil.rmtree(f) if f.is_dir() else f.unlink()
            done = bly("dedup", "c", "--work", "small", "-o", "small/out", "--memory", "1M")
            seen.append(done.status)
            if done.status:
                assert done.status == 2 and "space" in done.err
                assert not (small / "out").exists()
        assert seen[0] == 2 and seen[-1] == 0 and seen == sorted(seen, reverse=True)
    finally:
        subprocess.run(["umount", small], check=True)


# -------------------------------------------------------------------- outputs

def test_folders_and_standard_streams(ok, bly):
    for folder, text in ("x", "alpha beta gamma delta epsilon"), ("y", "a b c d e f g"):
        (ok.path / folder).mkdir()
        (ok.path / folder / "same.jsonl").write_text(
            jsonl([text, "a b c d e f g", "more " + text]))
    ok("dedup", "x/same.jsonl", "y/same.jsonl", "-o", "out/")
    ids = [[json.loads(x)["text"] for x in
            (ok.path / "out" / f / "same.jsonl").read_text().splitlines()] for f in "xy"]
    assert ids[0][:2] == ["alpha beta gamma delta epsilon", "a b c d e f g"]
    assert "a b c d e f g" not in ids[1]
    through = bly("dedup", "-o", "-", stdin=(ok.path / "x" / "same.jsonl").read_bytes())
    assert through.raw == (ok.path / "x" / "same.jsonl").read_bytes()
    assert "3 documents" in through.err


def test_inputs_that_would_meet_in_a_folder(ok, trouble):
    """One would replace the other, and its documents be lost; or an input be
    replaced by what is left of it. Nothing is begun."""
    (ok.path / "d" / "e").mkdir(parents=True)
    for i, name in enumerate(["a", "d/a", "d/e/a", "b"]):
        (ok.path / name).write_text(jsonl([f"some words of their own {i}"]))
    (ok.path / "a.gz").write_bytes(gzip.compress(b'{"text":"x y z"}\n'))
    for inputs in ["a", "a.gz"], ["a", "./a"], ["b", "../b"]:
        if inputs == ["b", "../b"]:
            (ok.path.parent / "b").write_text(jsonl(["yet other words"]))
        trouble("dedup", *inputs, "-o", "out/", says="would be written there")
    for inputs, out in (["d/a"], "."), (["a"], "d/.."), ([ok.path / "d" / "a"], "/"):
        trouble("dedup", *inputs, "-o", out, says="over the input")
    assert not (ok.path / "out").exists()
    # Up and down again: it stays in the folder.
    (ok.path / "out").mkdir()
    ok("dedup", "d/e/../../b", "-o", "out/")
    assert (ok.path / "out" / "d" / "e" / "b").read_bytes() == (ok.path / "b").read_bytes()
    ok("dedup", "a", "d/a", "d/e/a", "-o", "out/")
    ok("dedup", "a", "d/a", "d/e/a", "-o", "out/")  # what is there is replaced


def test_ids_and_names_cannot_forge_lines(ok):
    """Lists have a line per document, whatever its id or its file is called."""
    (ok.path / "c").write_bytes(b'{"id":"a\tb\x1b[2J","text":"a b c d e f"}\n'
                                b'{"id":"c","text":"a b c d e f"}\n')
    ok("dedup", "c", "--id", "id", "--removed", "r", "--pairs", "p", "-o", "out")
    assert (ok.path / "r").read_text() == "c\ta?b?[2J\t1.0000\n"
    assert len((ok.path / "p").read_text().split("\t")) == 3
    (ok.path / "d").mkdir()
    (ok.path / "d" / "x\n..").write_text("some words")
    (ok.path / "d" / "y").write_text("some words")
    ok("dedup", "--files", "d", "-o", "list", "--removed", "r")
    assert (ok.path / "list").read_text() == "d/x?..\n"
    assert (ok.path / "r").read_text() == "d/y\td/x?..\t1.0000\n"


@pytest.mark.parametrize("options", [[], ["--index", "bloom"]])
def test_a_last_line_without_a_newline(ok, options):
    """It stays as it is, unless another line follows."""
    a, b, c = (" ".join(f"{x}{i}" for i in range(9)) for x in "abc")
    (ok.path / "x").write_text(f"{a}\n{b}")
    (ok.path / "y").write_text(f"{a}\n{c}\n{b}")
    ok("dedup", "--lines", "x", "-o", "out", *options)
    assert (ok.path / "out").read_text() == f"{a}\n{b}"
    ok("dedup", "--lines", "x", "y", "-o", "out", *options)
    assert (ok.path / "out").read_text() == f"{a}\n{b}\n{c}\n"


def test_lines_and_files(ok):
    (ok.path / "l").write_text("the same line of text\nThe same, line of text!\nother words\n")
    ok("dedup", "--lines", "l", "-o", "out")
    assert (ok.path / "out").read_text() == "the same line of text\nother words\n"
    ok("dedup", "--lines", "--exact", "l", "-o", "out")
    assert (ok.path / "out").read_bytes() == (ok.path / "l").read_bytes()
    (ok.path / "d" / "e").mkdir(parents=True)
    text = " ".join(f"w{i}" for i in range(100))
    (ok.path / "d" / "a").write_text(text)
    (ok.path / "d" / "e" / "b.gz").write_bytes(gzip.compress(text.upper().encode()))
    (ok.path / "d" / "e" / "c").write_text("something else\n")
    (ok.path / "d" / "f").write_text("")
    ok("dedup", "--files", "d", "-o", "out", "--clusters", "c")
    assert (ok.path / "out").read_text() == "d/a\nd/e/c\nd/f\n"
    assert tsv(ok.path / "c") == [["d/a", "1"], ["d/e/b.gz", "1"]]


def test_drop_all(ok):
    (ok.path / "l").write_text("one two three\nfour five six\nOne two three\n")
    ok("dedup", "--lines", "--drop-all", "l", "-o", "out")
    assert (ok.path / "out").read_text() == "four five six\n"


# ------------------------------------------------------------ with a filter

@pytest.mark.parametrize("kind", [None] + kinds_that("add", "has", without=["likely-no"]))
def test_one_pass_with_any_filter(ok, bly, planted, kind):
    texts, known = planted
    texts = texts[:600]
    (ok.path / "c").write_text(jsonl(texts))
    options = ["--kind", kind, "--items", "600", "--fpr", "1%"] if kind else []
    done = bly("dedup", "c", "--index", "bloom", "-o", "out", *options)
    if done.status:
        pytest.skip(done.err)
    kept = [number(json.loads(x)["id"]) for x in
            (ok.path / "out").read_text().splitlines()]
    both = [p for p, j in known.items() if j >= 0.9 and set(p) <= set(kept)]
    assert not both
    assert len(kept) > 300


def chance(report, likeness):
    """That an earlier document of some likeness removes a later one."""
    n, p = report["bands"], likeness ** report["rows"]
    return sum(math.comb(n, i) * p ** i * (1 - p) ** (n - i)
               for i in range(report["known_bands"], n + 1))


def middling(n, seed=11):
    """Texts of 300 words, and for each one a later one that shares a part of
    them in one piece; texts, and the likeness of each to its forerunner."""
    r = random.Random(seed)
    fresh = lambda k: [f"w{r.getrandbits(40):x}" for _ in range(k)]
    texts, alike = [], []
    for share in [0.6, 0.68, 0.75, 0.8, 0.96, 0.99]:
        for _ in range(n):
            old = fresh(300)
            new = old[:int(300 * share)] + fresh(300 - int(300 * share))
            texts += [" ".join(old), " ".join(new)]
            alike += [0, jaccard(shingles(texts[-2]), shingles(texts[-1]))]
    return texts, alike


def test_a_filter_spares_what_is_below_the_threshold(ok):
    """Texts of middling likeness stay: one common band does not make a copy.
    The report says what an earlier document of some likeness costs, and that
    is what happens."""
    texts, alike = middling(150)
    (ok.path / "c").write_text(jsonl(texts))
    report = json.loads(ok("dedup", "c", "--index", "bloom", "-o", "out",
                           "--json").out)
    kept = {number(json.loads(x)["id"]) for x in
            (ok.path / "out").read_text().splitlines()}
    below = [i for i, j in enumerate(alike) if j < 0.7]
    above = [i for i, j in enumerate(alike) if j > 0.9]
    assert len(below) >= 1350 and len(above) >= 290
    # One common band of 6 would remove more than half of those with forerunners.
    assert len(set(below) - kept) <= 3
    assert not set(above) & kept
    for j, p in report["chance_by_likeness"]:
        assert math.isclose(p, chance(report, j), rel_tol=1e-6)
    assert [j for j, _ in report["chance_by_likeness"]] == [0.9, 0.8, 0.7, 0.6, 0.5]
    assert report["expected_recall"] == dict(report["chance_by_likeness"])[0.8] > 0.25
    text = ok("dedup", "c", "--index", "bloom", "-o", "out").out
    assert "nothing was compared" in text and "at 0.5 with" in text


def test_pages_of_one_template_stay_with_a_filter(ok):
    """Many pages that are 0.56 alike: every one knows the template."""
    r = random.Random(5)
    template = [f"t{i}" for i in range(120)]
    texts = [" ".join(template[:60] + [f"{r.getrandbits(28):x}" for _ in range(40)]
                      + template[60:]) for _ in range(2000)]
    (ok.path / "c").write_text(jsonl(texts))
    ok("dedup", "c", "--index", "bloom", "-o", "out")
    assert len((ok.path / "out").read_text().splitlines()) > 1980


def test_a_filter_of_other_bands_is_refused(ok, trouble):
    """It would know none of the keys, and all would stay without a word."""
    (ok.path / "c").write_text(jsonl(["a b c d e f g"] * 2))
    ok("dedup", "c", "--index", "bloom", "-o", "out", "--filter", "f.bly")
    ok("dedup", "c", "--index", "bloom", "-o", "out", "--filter", "f.bly")
    assert (ok.path / "out").read_text() == ""
    # How many must be known is asked of the same keys.
    ok("dedup", "c", "--index", "bloom", "-o", "out", "--filter", "f.bly",
       "--bands", "51,10,2")
    for options in ["--k", "128"], ["--bands", "9,13"], ["--size", "4"]:
        trouble("dedup", "c", "--index", "bloom", "-o", "out", "--filter", "f.bly",
                *options, says="f.bly: not made for")


def test_paragraphs_are_cut_out_where_they_stand(ok, bly):
    p = ["a b c d e f", "g h i j k l", "short", "m n \\u00f6 \\\"p\\\" q r"]
    lines = ['{"text":"%s", "n": 1}' % "\\n".join(p),
             '{"text":"short\\nnew words here and there and so on\\n%s\\nshort"}' % p[1],
             "bad", '{"x":"%s","text":"%s"}' % (p[0], p[3])]
    (ok.path / "c").write_text("\n".join(lines) + "\n")
    for threads in 1, 3:
        assert bly("dedup", "--paragraphs", "c", "-o", "out", "--threads",
                   threads).status == 2
        assert (ok.path / "out").read_text().splitlines() == [
            lines[0],
            '{"text":"short\\nnew words here and there and so on\\nshort"}',
            "bad", '{"x":"%s","text":""}' % p[0]]
    # The filter goes on where it was.
    (ok.path / "c").write_text("\n".join(lines[:2] + lines[3:]) + "\n")
    ok("dedup", "--paragraphs", "c", "-o", "out", "--filter", "f.bly")
    ok("dedup", "--paragraphs", "c", "-o", "out", "--filter", "f.bly", "--read-only")
    assert (ok.path / "out").read_text().splitlines()[0] == '{"text":"short\\n", "n": 1}'


def test_paragraphs_are_compared_by_words_and_that_is_said(ok):
    (ok.path / "l").write_text("Yes, we can do that!\nyes we can  do that\n")
    said = ok("dedup", "--paragraphs", "--lines", "l", "-o", "out").out
    assert (ok.path / "out").read_text() == "Yes, we can do that!\n"
    assert "by their words" in said
    assert json.loads(ok("dedup", "--paragraphs", "--lines", "l", "-o", "out",
                         "--json").out)["compared_by"] == "words"
    assert "by their words" in " ".join(ok("help", "dedup").out.split())


def test_ngrams(ok):
    r = random.Random(3)
    para = [" ".join(f"w{r.randrange(9999)}" for _ in range(60)) for _ in range(3)]
    near = para[0].split()
    near[2] = "other"
    lines = [para[0], para[1], " ".join(near), para[2], "few words here", "few words here"]
    (ok.path / "l").write_text("\n".join(lines) + "\n")
    ok("dedup", "ngrams", "--lines", "l", "-o", "out")
    assert (ok.path / "out").read_text().splitlines() == lines[:2] + lines[3:]


def test_ngrams_above_the_share(ok):
    """Of the 8 of 10 n-grams that are known 0.8 is not exceeded, 0.79 is."""
    a = [f"a{i}" for i in range(22)]
    b = a[:20] + ["x", "y"]  # 8 of its 10 n-grams of 13 words are those of a
    (ok.path / "l").write_text(" ".join(a) + "\n" + " ".join(b) + "\n")
    for share, lines in ("0.8", 2), ("0.79", 1):
        ok("dedup", "ngrams", "--lines", "l", "-o", "out", "--share", share)
        assert len((ok.path / "out").read_text().splitlines()) == lines


def test_ngrams_are_counted_first(ok):
    r = random.Random(2)
    lines = [" ".join(f"{r.getrandbits(30)}" for _ in range(33)) for _ in range(3000)]
    (ok.path / "l").write_text("\n".join(lines) + "\n")
    ok("dedup", "ngrams", "--lines", "l", "-o", "out", "--filter", "f.bly", "--rate", "0.1%")
    info = ok("info", "f.bly", "--json").json
    assert 21 * 3000 < info["capacity"] < 1.1 * 21 * 3000
    through = ok("dedup", "ngrams", "--lines", "-o", "-", "-q",
                 stdin=(ok.path / "l").read_bytes())
    assert through.raw == (ok.path / "l").read_bytes()
    ok("dedup", "ngrams", "--lines", "l", "-o", "out", "--filter", "g.bly", "--ngrams", "1M")
    assert ok("info", "g.bly", "--json").json["capacity"] == 1000000


def test_ngrams_of_documents_and_paragraphs(ok):
    r = random.Random(4)
    p = [" ".join(f"w{r.randrange(99999)}" for _ in range(40)) for _ in range(6)]
    lines = [json.dumps({"text": "\n".join(x)}) for x in
             (p[:3], p[:3], [p[0], p[3], p[4], p[5]], [p[3], p[3]])]
    (ok.path / "c").write_text("\n".join(lines) + "\n")

    def left(level):
        ok("dedup", "ngrams", "c", "-o", "out", "--level", level)
        return [json.loads(x)["text"].splitlines()
                for x in (ok.path / "out").read_text().splitlines()]
    assert left("documents") == [p[:3], [p[0], p[3], p[4], p[5]], [p[3], p[3]]]
    assert left("paragraphs") == [p[:3], [], [p[3], p[4], p[5]], []]
    assert left("both") == [p[:3], [p[3], p[4], p[5]], []]


# ------------------------------------------------------------------ reasons

def test_malformed_lines_are_a_reason_even_quietly(bly):
    (bly.path / "a").write_text("no JSON\n" * 20)
    done = bly("dedup", "-q", "a", "-o", "out")
    assert done.status == 2 and (bly.path / "out").exists()
    assert done.err.splitlines() == \
        ["bloomery: dedup: 20 malformed lines were kept; --strict stops at "
         "the first"]


@pytest.mark.parametrize("option", ["--pairs", "--clusters", "--removed",
                                    "--save-index"])
def test_an_output_that_cannot_be_written_stops_the_others(ok, trouble, option):
    (ok.path / "folder").mkdir()
    (ok.path / "a").write_text('{"text": "some words"}\n')
    others = [o for o in ("--pairs", "--clusters", "--removed", "--save-index")
              if o != option]
    trouble("dedup", "-q", "a", "-o", "out", option, "folder",
            *(word for o in others for word in (o, o[2:])), says="folder")
    assert sorted(p.name for p in ok.path.iterdir()) == ["a", "folder"]
