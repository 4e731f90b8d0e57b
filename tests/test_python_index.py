"""bloomery.Index: which of many documents may have a term?"""
import os
import threading

import pytest
from python_support import PRESENT

pytestmark = pytest.mark.skipif(not PRESENT, reason="build/python is not there: no headers of Python (python3-dev)")

if PRESENT:
    from bloomery import Error, Index


def documents(n):
    return ((f"doc-{i}", [f"word-{i}", "all", f"mod-{i % 3}"]) for i in range(n))


def test_documents_are_found_by_their_terms(tmp_path):
    path = tmp_path / "a.blx"
    built = Index.build(path, documents(300))
    for index in (built, Index.open(path)):
        assert len(index) == 300 and index[7] == b"doc-7"
        assert all(i in index.ask([f"word-{i}"]) for i in range(300))
        assert index.ask([]) == index.ask(["all"]) == list(range(300))
        assert set(range(1, 300, 3)) <= set(index.ask(["all", "mod-1"])) and len(index.ask(["mod-1"])) < 130
        assert [c for c in index.coverage(["all", "mod-0"])[::3]] == [2] * 100
        index.verify()
        info = index.info()
        assert info["documents"] == 300 and info["classes"]["words"]["terms"] == 900
        assert info["classes"]["words"]["expected"] <= info["classes"]["words"]["fpr"] == 0.001


def test_classes_and_integers(tmp_path):
    classes = {"ints": 0.01, "words": 0.1}
    index = Index.build(tmp_path / "a.blx", ((str(i), {"ints": range(i, i + 5)} if i % 2 else {"words": [b"odd"]}) for i in range(40)),
                        classes=classes, seed=7)
    assert [i for i in (7, 9, 11) if i in index.ask([11])] == [7, 9, 11]
    assert set(index.ask(["odd"], class_name="words")) == set(range(0, 40, 2))
    assert list(index.info()["classes"]) == list(classes) and index.info()["seed"] == 7


def test_what_fails_leaves_the_old_index(tmp_path):
    path = tmp_path / "a.blx"
    Index.build(path, documents(10))
    before = path.read_bytes()

    def broken():
        yield "a", ["b"]
        raise KeyError("gone")

    for wrong, error in ((broken(), KeyError), ([1], TypeError), ([("a", 1)], TypeError), ([("a", {"kmers": [1]})], ValueError),
                         ([("a", ["b", 1.5])], TypeError), (5, TypeError)):
        with pytest.raises(error):
            Index.build(path, wrong)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.blx"]
    for rates in ({"a": 0}, {"a": 2}, {}, {"": 0.1}):
        with pytest.raises(ValueError):
            Index.build(path, [], classes=rates)
    index = Index.open(path)
    with pytest.raises(ValueError):
        index.ask(["a"], class_name="kmers")
    with pytest.raises(IndexError):
        index[10]
    with pytest.raises(TypeError):
        Index()
    with pytest.raises(FileNotFoundError):
        Index.open(tmp_path / "absent")
    path.write_bytes(before[:-1])
    with pytest.raises(Error, match="truncated"):
        Index.open(path)


def test_threads_ask_at_once(tmp_path):
    index = Index.build(tmp_path / "a.blx", documents(500))
    wrong = []

    def ask(first):
        for i in range(first, 500, 4):
            if i not in index.ask([f"word-{i}"]):
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
