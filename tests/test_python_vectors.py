"""Arrays of vectors in Python: the answers of the command, without copies."""
import array
import math
import threading

import pytest
from python_support import PRESENT

try:
    import numpy as np
except ImportError:
    np = None
pytestmark = [
    pytest.mark.skipif(not PRESENT, reason="build/python is not there: no headers of Python (python3-dev)"),
    pytest.mark.skipif(np is None, reason="python3-numpy is not there")]

if PRESENT:
    from bloomery import vector_angle, vector_dedup, vector_near, vector_pairs, vector_sketch


def planted(n=3000, dims=24):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, dims), dtype=np.float32)
    for i in range(4, n, 4):
        x[i] = x[int(rng.random() * i)] + np.float32(rng.uniform(0, 0.5)) * x[i]
    return x


def test_the_commands_pairs(ok, tmp_path):
    x = planted()
    np.save(tmp_path / "x.npy", x)
    want = [line.split("\t") for line in ok("vectors", "pairs", "-T", 0.95, "x.npy").lines]
    for form in (x, x.astype("f8"), np.repeat(x, 2, axis=0)[::2], np.pad(x, ((0, 0), (3, 5)))[:, 3:-5]):
        a, b, c = map(np.asarray, vector_pairs(form, 0.95, threads=2))
        assert [(str(i), str(j)) for i, j in zip(a.tolist(), b.tolist())] == [(i, j) for i, j, _ in want]
        assert abs(c - np.array([float(w[2]) for w in want])).max() < 1e-6
    assert len(want) > 100 and (a < b).all()


def test_dedup_and_neighbours(ok, tmp_path):
    x = planted()
    np.save(tmp_path / "x.npy", x)
    told = ok("vectors", "dedup", "-T", 0.95, "x.npy", "--json").json
    witness = np.asarray(vector_dedup(x, 0.95))
    stays = witness == np.arange(len(x))
    assert stays.sum() == told["kept"] and stays[witness].all()
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert ((u * u[witness]).sum(1) > 0.95 - 1e-5).all()
    q, r, c = map(np.asarray, vector_near(x, x[1000:1100], 0.95, top=1))
    assert (q == np.arange(100)).all() and (abs(c - 1) < 1e-6).all() and (x[r] == x[1000:1100]).all()
    assert len(vector_pairs(x[:0])[0]) == 0 and len(vector_dedup(x[:0])) == 0
    assert len(vector_near(x, x[:0])[0]) == len(vector_near(x[:0], x)[0]) == 0


def test_sketches_have_the_angle():
    a = np.array([[1, 0], [math.cos(math.pi / 6), 0.5], [-3, 0]])
    s = vector_sketch(a, 4096)
    assert s.shape == (3, 64) and (np.asarray(s[:]) == np.asarray(vector_sketch(a.astype("f4"), bits=4096))).all()
    rows = np.asarray(s)
    angle, sd = vector_angle(rows[0], rows[1])
    assert abs(angle - math.pi / 6) < 5 * sd and sd < 0.02
    assert vector_angle(rows[0], rows[2])[0] == math.pi and vector_angle(rows[0], rows[0])[0] == 0
    assert (np.asarray(vector_sketch(a, 64, seed=1)) != rows[:, :1]).any()
    assert len(vector_sketch(a[:0])) == 0


def test_what_is_refused():
    x = planted(50)
    bad = x.copy()
    bad[7, 3] = np.nan
    for wrong, error, says in (
            (x[0], ValueError, "1 dimensions"), (x.astype("f2"), TypeError, "float32"), (x.astype("i4"), TypeError, "float32"),
            (x.astype(">f4"), TypeError, "this machine"), (np.asfortranarray(x), ValueError, "ascontiguousarray"),
            (x[:, ::2], ValueError, "side by side"), (x[::-1], ValueError, "side by side"), (bad, ValueError, "vector 7: coordinate 3"),
            (x * 0, ValueError, "vector 0 is zero"), (np.zeros((3, 0), "f4"), ValueError, "coordinates"), ([[1.0, 2.0]], TypeError, "array"),
            (array.array("f", [1, 2]), ValueError, "1 dimensions")):
        for call in (vector_pairs, vector_dedup, lambda v: vector_near(v, v), vector_sketch):
            with pytest.raises(error, match=says):
                call(wrong)
    for kw in ({"threshold": 0}, {"threshold": 1.1}, {"threshold": float("nan")}, {"recall": 0}, {"recall": 1}):
        with pytest.raises(ValueError):
            vector_pairs(x, **kw)
    for kw in ({"threshold": "x"}, {"seed": 1.5}, {"nonesuch": 1}):
        with pytest.raises(TypeError):
            vector_pairs(x, **kw)
    with pytest.raises(TypeError):
        vector_pairs()
    for bits in (0, 63, 4160, 2**40):
        with pytest.raises(ValueError):
            vector_sketch(x, bits)
    with pytest.raises(ValueError):
        vector_near(x, x[:, :5].copy())
    with pytest.raises(ValueError):
        vector_near(x, x.astype("f8"))
    with pytest.raises(ValueError):
        vector_angle(b"12345678", b"1234567812345678")
    assert (np.asarray(vector_dedup(bad, skip_bad=True))[7]) == 7


def test_the_lock_is_free():
    x = planted(2000)
    want = [bytes(v) for v in vector_pairs(x)]
    got = []
    threads = [threading.Thread(target=lambda: got.append([bytes(v) for v in vector_pairs(x)])) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == [want] * 4
