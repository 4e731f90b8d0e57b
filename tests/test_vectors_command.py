"""bloomery vectors: pairs, copies and neighbours, beside NumPy's products."""
import gzip
import json
import random
import struct

import pytest

try:
    import numpy
except ImportError:
    numpy = None
needs_numpy = pytest.mark.skipif(numpy is None, reason="python3-numpy is not there")

DIMS = 32


def npy(rows, descr="<f4", shape=None, fortran=False, version=1):
    """An .npy file without NumPy."""
    code = {"2": "e", "4": "f", "8": "d"}[descr[2]] if descr[1] == "f" else "i"
    shape = shape or (len(rows), len(rows[0]) if rows else DIMS)
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    width = 2 if version == 1 else 4
    head = head.ljust((-(8 + width + len(head) + 1)) % 64 + len(head)) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(head).to_bytes(width, "little") + \
        head.encode() + b"".join(struct.pack(f"{descr[0]}{len(r)}{code}", *r) for r in rows)


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / \
        (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


def floats(rows):
    return [struct.unpack(f"{len(r)}f", struct.pack(f"{len(r)}f", *r)) for r in rows]


def some(n, seed=1):
    """Vectors of which every fourth is close to an earlier one; small multiples
    of 1/64, so that halves have them too."""
    rng = random.Random(seed)
    rows = [[round(rng.gauss(0, 64)) / 64 for _ in range(DIMS)] for _ in range(n)]
    for i in range(4, n, 4):
        by = rng.choice([2, 8, 20])
        rows[i] = [x + round(rng.gauss(0, by)) / 64 for x in rows[rng.randrange(i)]]
    return rows


def pairs_of(rows, threshold):
    return {(str(i), str(j)): cosine(rows[i], rows[j]) for j in range(len(rows)) for i in range(j)
            if cosine(rows[i], rows[j]) >= threshold}


def read(done):
    return {(a, b): float(c) for a, b, c in (line.split("\t") for line in done.lines)}


def write_forms(folder, rows):
    """The same vectors in every form: name, options, what a row is."""
    text = [json.dumps(r) for r in rows]
    files = {
        "v.npy": (npy(rows), []),
        "v8.npy": (npy(rows, "<f8"), []),
        "v2.npy": (npy(rows, "<f2", version=2), []),
        "v.npy.gz": (gzip.compress(npy(rows, version=3)), []),
        "v.raw": (b"".join(struct.pack(f"<{DIMS}f", *r) for r in rows), ["--dims", DIMS]),
        "v8.raw": (b"".join(struct.pack(f"<{DIMS}d", *r) for r in rows), ["--dims", DIMS, "--double"]),
        "v.csv": ("".join(t[1:-1] + "\n" for t in text).encode(), []),
        "v8.csv": ("\r\n".join(t[1:-1] for t in text).encode(), ["--double"]),
        "tab.csv": (("\t".join(f"c{i}" for i in range(DIMS)) + "\n\n" + "".join(
            t[1:-1].replace(", ", "\t") + "\n" for t in text)).encode(), ["-d", "\t"]),
        "v.jsonl": ("".join(t + "\n" for t in text).encode(), []),
        "o.jsonl": ("\n\n".join(f'{{"x":[[1]],"embedding":{t},"y":"]"}}' for t in text).encode(), []),
        "p.jsonl": ("".join(f'{{"a":{{"v": {t}}}}}\n' for t in text).encode(), ["--field", "/a/v"]),
    }
    for name, (data, _) in files.items():
        (folder / name).write_bytes(data)
    return {name: options for name, (_, options) in files.items()}


def test_every_form_gives_the_same_pairs(ok, tmp_path):
    rows = some(150)
    want = pairs_of(rows, 0.9)
    assert len(want) > 20
    for name, options in write_forms(tmp_path, rows).items():
        got = read(ok("vectors", "pairs", name, *options))
        assert got.keys() == want.keys(), name
        assert all(abs(got[p] - want[p]) < 2e-6 for p in want), name
    done = ok("vectors", "pairs", "-", stdin=(tmp_path / "v.npy").read_bytes())
    assert read(done).keys() == want.keys()
    told = [json.loads(line) for line in ok("vectors", "pairs", "--json", "v.csv").lines]
    assert {(str(t["a"]), str(t["b"])) for t in told} == want.keys()


def test_dedup_keeps_the_format(ok, tmp_path):
    rows = some(150)
    want = None
    for name, options in write_forms(tmp_path, rows).items():
        told = ok("vectors", "dedup", name, *options, "-o", "out", "--removed", "gone", "--json").json
        gone = [line.split("\t") for line in (tmp_path / "gone").read_text().splitlines()]
        assert told["removed"] == len(gone) and told["kept"] == 150 - len(gone)
        stay = set(map(str, range(150))) - {g for g, _, _ in gone}
        for a, witness, c in gone:
            assert witness in stay and int(witness) < int(a)
            assert abs(cosine(rows[int(a)], rows[int(witness)]) - float(c)) < 2e-6 and float(c) >= 0.9
        want = want or stay
        assert stay == want, name
        # Nothing goes twice, and rows are those of the input.
        again = ok("vectors", "dedup", "out", *options, "-o", "-")
        kept = (tmp_path / "out").read_bytes()
        assert again.raw == kept
        data = (tmp_path / name).read_bytes()
        if name in ("v.csv", "v.jsonl", "p.jsonl", "o.jsonl"):
            lines = [line for line in data.decode().splitlines(True) if line.strip()]
            assert kept.decode() == "".join(lines[int(i)] for i in sorted(want, key=int))
        if name == "v.raw":
            assert kept == b"".join(data[4 * DIMS * i:4 * DIMS * (i + 1)] for i in sorted(map(int, want)))
        if name == "tab.csv":
            assert kept.startswith(b"c0\tc1")
    if numpy is not None:
        ok("vectors", "dedup", "v2.npy", "-o", "out.npy")
        x = numpy.load(tmp_path / "out.npy")
        assert x.dtype == numpy.float16 and x.shape == (len(want), DIMS)
        assert (x == numpy.load(tmp_path / "v2.npy")[sorted(map(int, want))]).all()


def test_ids(ok, tmp_path):
    (tmp_path / "v.csv").write_text('x,name,y\n1,"a ""b""",0\n0.9,c,0.1\n0,d,1\n')
    assert ok("vectors", "pairs", "--id", "name", "v.csv").out == 'a "b"\tc\t0.993884\n'
    assert ok("vectors", "pairs", "--id", 2, "v.csv").out == 'a "b"\tc\t0.993884\n'
    ok("vectors", "dedup", "--id", "name", "v.csv", "--removed", "gone", "-q")
    assert (tmp_path / "gone").read_text() == 'c\ta "b"\t0.993884\n'
    (tmp_path / "v.jsonl").write_text('{"id":"\\u00e9\\n","v":[1,0]}\n{"v":[2,0],"id":7}\n')
    told = ok("vectors", "pairs", "--field", "v", "--id", "id", "v.jsonl", "--json").json
    assert told == {"a": 0, "b": 1, "id_a": "é\n", "id_b": "7", "cosine": 1}
    assert ok("vectors", "near", "--id", "id", "--field", "v", "v.jsonl", "v.jsonl", "--top", 1).lines == \
        ["é", "\té", "\t1.000000", "7\té", "\t1.000000"]


def test_neighbours_of_queries(ok, bly, tmp_path):
    rows = some(200)
    (tmp_path / "v.npy").write_bytes(npy(rows[:150]))
    (tmp_path / "q.npy").write_bytes(npy(rows[150:]))
    want = {(str(q - 150), str(i)) for q in range(150, 200) for i in range(150)
            if cosine(rows[q], rows[i]) >= 0.8}
    assert len(want) > 5
    done = ok("vectors", "near", "-T", 0.8, "v.npy", "q.npy")
    assert read(done).keys() == want
    order = [(int(a), -float(c)) for a, _, c in (line.split("\t") for line in done.lines)]
    assert order == sorted(order)
    one = ok("vectors", "near", "-T", 0.8, "--top", 1, "v.npy", "q.npy")
    assert [line.split("\t")[0] for line in one.lines] == sorted({a for a, _ in want}, key=int)
    (tmp_path / "far.csv").write_text(",".join(["1"] + ["0"] * (DIMS - 1)) + "\n")
    assert bly("vectors", "near", "-T", 0.99, "v.npy", "far.csv").status == 1


@needs_numpy
def test_many_against_brute_force(ok, tmp_path):
    rng = numpy.random.default_rng(5)
    x = rng.standard_normal((12000, 48), dtype=numpy.float32) + 0.3
    for i in range(3, 12000, 3):
        x[i] = x[int(rng.random() * i)] + rng.uniform(0, 0.6) * x[i]
    numpy.save(tmp_path / "x.npy", x)
    u = x.astype("f8") / numpy.linalg.norm(x.astype("f8"), axis=1, keepdims=True)
    want = set()
    for start in range(0, 12000, 2000):
        a, b = numpy.nonzero(u[start:start + 2000] @ u.T >= 0.95)
        want |= {(str(i), str(j + start)) for j, i in zip(a.tolist(), b.tolist()) if i < j + start}
    done = ok("vectors", "pairs", "-T", 0.95, "x.npy")
    assert "bands of" in done.err
    got = read(done).keys()
    assert got <= want
    assert len(got) >= 0.99 * len(want)
    assert read(ok("vectors", "pairs", "-T", 0.95, "-t", 1, "--seed", 9, "x.npy")).keys() <= want


BAD = [
    (npy([[1.0] * 4], ">f4"), [], ["type '>f4'", "astype('<f4')"]),
    (npy([[1] * 4], "<i4"), [], ["type '<i4'", "expected '<f4'"]),
    (npy([[1.0] * 4] * 2, fortran=True), [], ["Fortran", "ascontiguousarray"]),
    (npy([[1.0] * 4], shape=(4,)), [], ["1 dimension;", "reshape"]),
    (npy([[1.0] * 4] * 2, shape=(2, 2, 2)), [], "3 dimensions"),
    (npy([[1.0] * 4], shape=(4, 0)), [], "without coordinates"),
    (npy([[1.0] * 4] * 3)[:-1], [], "truncated: 2 of 3 vectors"),
    (npy([[1.0] * 4])[:50], [], "truncated in its header"),
    (npy([[1.0] * 4], shape=(2**62, 2**62)), [], "truncated"),
    (npy([[1.0] * 4]) + b"x", [], "1 bytes too many"),
    (npy([[1.0] * 4], version=4), [], "version 4.0"),
    (npy([[1.0] * 4]).replace(b"'descr'", b"'other'"), [], "header that NumPy does not write"),
    (npy([[1.0] * 4]), ["--dims", 4], "--dims is for raw"),
    (npy([[1.0] * 4, [0.0] * 4]), [], ["vector 1 is zero", "--skip-bad"]),
    (npy([[1.0] * 4, [float("nan")] * 4]), [], "vector 1: coordinate 0 is not a number"),
    (npy([[1.0] * 4, [1, 2, float("inf"), 0]]), [], "vector 1: coordinate 2 is infinite"),
    (npy([[1e200, 0]], "<f8"), [], "too long"),
    (b"\0\0\x80\x3f" * 7, ["--dims", 2], "not a whole number of vectors of 2 floats"),
    (b"\0\0\x80\x3f" * 7, [], "neither .npy nor text"),
    (b"1,2\n3\n", [], ["line 2", "1 coordinate", "have 2"]),
    (b"1,2\n\n3,x\n", [], ["line 3", "'x' is not a number"]),
    (b"1,2\n3,0x1\n", [], "'0x1' is not a number"),
    (b"1,2\n3,\n", [], "'' is not a number"),
    (b'1,2\n3,"4\n', [], "line 2"),
    (b"a,b\n1,2\n", ["--id", "c"], "no column is called 'c'"),
    (b"1,b\n1,2\n", [], ["line 1", "'b' is not a number"]),
    (b"1,2\n", ["--field", "v"], "--field is for JSON"),
    (b"[1,2]\n[1]\n", [], ["line 2", "have 2"]),
    (b"[1,2]\n[1,]\n", [], "line 2"),
    (b"[1,2]\n[1,2]]\n", [], "not valid JSON"),
    (b"[1,2]\n[1,2\n", [], "not an array of numbers"),
    (b"[]\n", [], "without coordinates"),
    (b'{"embedding":[1,"2"]}\n', [], "is not a number"),
    (b'{"embedding":[[1]]}\n', [], "is not a number"),
    (b'{"embedding":null}\n', [], "not an array"),
    (b'{"vec":[1]}\n', [], ["no array called 'embedding'", "--field"]),
    (b'{"embedding":[1]}\n', ["--id", "id"], "no id called 'id'"),
    (b'{"embedding":[1]\n', [], "not valid JSON"),
    (b"1e39,0\n0,1\n", [], "vector 0: coordinate 0 is infinite"),
]


@pytest.mark.parametrize("data, options, says", BAD)
def test_bad_input(trouble, tmp_path, data, options, says):
    (tmp_path / "v").write_bytes(data)
    trouble("vectors", "pairs", "v", *options, says=says)
    trouble("vectors", "dedup", "v", *options, "-o", "out", says=says)
    assert not (tmp_path / "out").exists()


def test_bad_vectors_are_skipped(ok, bly, trouble, tmp_path):
    (tmp_path / "v.csv").write_text("0,0\n1,2\nnan,1\n2,4\n")
    done = ok("vectors", "pairs", "--skip-bad", "v.csv")
    assert done.out == "1\t3\t1.000000\n"
    assert "2 vectors without a direction left out" in done.err
    told = ok("vectors", "dedup", "--skip-bad", "v.csv", "-o", "out", "--json").json
    assert (told["kept"], told["removed"], told["bad"]) == (3, 1, 2)
    assert (tmp_path / "out").read_text() == "0,0\n1,2\nnan,1\n"
    (tmp_path / "one.csv").write_text("1,2\n")
    (tmp_path / "three.csv").write_text("1,2,3\n")
    (tmp_path / "empty").write_text("")
    trouble("vectors", "near", "one.csv", "three.csv", says=["three.csv", "3 coordinates", "one.csv", "2"])
    trouble("vectors", "near", "one.csv", "v.csv", says=["v.csv", "vector 0 is zero"])
    trouble("vectors", "pairs", "-T", 0, "one.csv", says="above 0")
    trouble("vectors", "pairs", "-T", 1.5, "one.csv", says="1.5")
    trouble("vectors", "pairs", "nonesuch", says="nonesuch")
    trouble("vectors", "dedup", "one.csv", "-o", "one.csv", says="one.csv")
    trouble("vectors", "dedup", "one.csv", "-o", "x", "--removed", "x", says="same file")
    assert bly("vectors", "pairs", "one.csv").status == 1
    assert bly("vectors", "pairs", "empty").status == 1
    assert ok("vectors", "dedup", "empty", "--json").json["vectors"] == 0


def test_headers_and_delimiters(ok, trouble, tmp_path):
    pair = "1,2,3\n1,2,3.1\n"
    for text, options in ((pair, []), ("\ufeff" + pair, []), ("\ufeffx,y,z\n" + pair, []), ("0,1,2\n" + pair, []),
                          (pair.replace(",", "\t"), ["-d", "\\t"]), (pair.replace(",", " "), ["-d", " "])):
        (tmp_path / "v.csv").write_text(text)
        assert ok("vectors", "pairs", "v.csv", *options).out == "0\t1\t0.999878\n", text
    for text in "\ufeff" + pair, "\ufeffx,y,z\n" + pair:
        (tmp_path / "v.csv").write_text(text)
        assert ok("vectors", "dedup", "-o", "-", "v.csv").raw == text.encode()[:-8]
    (tmp_path / "v.csv").write_text("1,2x,3\n" + pair)
    trouble("vectors", "pairs", "v.csv", says=["line 1", "'2x'"])
    for wrong in ("", "ab", '"', "\n"):
        trouble("vectors", "pairs", "-d", wrong, "v.csv", says="one character")
    trouble("vectors", "near", "-", "-", stdin=pair, says="not both")


def test_equal_vectors(ok, tmp_path):
    (tmp_path / "v.csv").write_text("1,2\n3,4\n1,2\n1,2\n")
    assert read(ok("vectors", "pairs", "-T", 1, "v.csv")).keys() == {("0", "2"), ("0", "3")}
    assert read(ok("vectors", "pairs", "-T", 1, "--all", "v.csv")).keys() == \
        {("0", "2"), ("0", "3"), ("2", "3")}
    assert ok("vectors", "dedup", "-T", 1, "v.csv", "--json").json["equal"] == 2
