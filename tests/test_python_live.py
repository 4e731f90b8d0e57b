"""Filter.share: a server that forks its workers, and processes that come on
their own."""
import multiprocessing
import os
import signal

import pytest
from conftest import PATIENCE
from python_support import PRESENT

pytestmark = pytest.mark.skipif(not PRESENT, reason="build/python is not there: no headers of Python (python3-dev)")

if PRESENT:
    from bloomery import Error, Filter


def share(path, **more):
    return Filter.share(path, items=100000, fpr=0.001, **more)


def prefork(worker, n):
    """As gunicorn does it: a master opens, forks n workers, and waits."""
    children = []
    for i in range(n):
        pid = os.fork()
        if pid == 0:
            try:
                worker(i)
                os._exit(0)
            except BaseException as wrong:  # pylint: disable=broad-except
                print(wrong)
                os._exit(1)
        children.append(pid)
    for pid in children:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_workers_that_were_forked(tmp_path):
    f = share(tmp_path / "seen.bly", keys="text")

    def worker(i):
        for n in range(500):
            f.add(f"token-{i}-{n}")
        f.update([f"batch-{i}-{n}" for n in range(500)])
        assert f"token-{i}-7" in f
    prefork(worker, 4)
    assert all(f"token-{i}-{n}" in f for i in range(4) for n in range(500))
    assert f.has_many([f"batch-{i}-{n}" for i in range(4)
                       for n in range(500)]).all()
    assert "nobody" not in f
    told = f.live()
    assert 3900 < told["items_added"] <= 4000 and told["users"] == 1
    f.checkpoint()
    assert f.live()["checkpoint"] == told["checkpoint"] + 1


def one_process(path, i, start):
    start.wait(PATIENCE)
    with Filter.share(path) as f:
        f.update(range(i * 1000, i * 1000 + 1000))


def test_processes_of_their_own(tmp_path):
    path = tmp_path / "seen.bly"
    context = multiprocessing.get_context("spawn")
    with share(path, keys="int64") as f:
        start = context.Event()
        workers = [context.Process(target=one_process, args=(path, i, start))
                   for i in range(2)]
        for w in workers:
            w.start()
        start.set()
        for w in workers:
            w.join(PATIENCE)
            assert w.exitcode == 0
        assert f.has_many(range(2000)).all()
        assert f.live()["users"] == 1


def test_generations_are_followed(tmp_path):
    path = tmp_path / "seen.bly"
    f, g = share(path, keys="text"), Filter.share(path)
    g.add("old")
    empty = Filter(items=1000, keys="text")
    empty.add("new")
    f.replace(empty)
    assert "new" in g and "old" not in g  # at its next call
    assert g.add("newer") and "newer" in f
    assert g.live()["generation"] == 2
    bigger = g.copy()
    f.replace(bigger, keep=True)
    g.update(["a", "b"])
    assert all(key in f for key in ("new", "newer", "a", "b"))
    assert g.live()["generation"] == 3 and f.live()["generation"] == 3


def test_a_worker_that_is_killed(tmp_path):
    f = share(tmp_path / "seen.bly", keys="text")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for n in range(10 ** 9):
            f.add(f"key-{n}")
            os.write(write, b".")
    os.close(write)
    seen = 0
    while seen < 50:
        seen += len(os.read(read, 100))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while more := os.read(read, 4096):
        seen += len(more)
    os.close(read)
    assert f.has_many([f"key-{n}" for n in range(seen)]).all()


def test_what_is_refused(tmp_path):
    path = tmp_path / "seen.bly"
    with pytest.raises(OSError):
        Filter.share(path)  # nothing there, and no size
    f = share(path, keys="text")
    with pytest.raises(ValueError, match="asks for"):
        Filter.share(path, items=7)
    with pytest.raises(TypeError, match="cannot be live"):
        Filter.share(tmp_path / "x.bly", items=100, kind="cuckoo")
    with pytest.raises(Error, match="bly_share"):
        Filter.open(path)
    reading = Filter.share(path, reading=True)
    f.add("key")
    assert "key" in reading
    with pytest.raises(Error, match="for reading"):
        reading.add("other")
    with pytest.raises(TypeError, match="cannot"):
        f |= Filter(items=100000, fpr=0.001, keys="text")
    with pytest.raises(ValueError, match="not live"):
        Filter(items=100).checkpoint()
    f.close()
    for call in (f.checkpoint, f.live, f.accept):
        with pytest.raises(ValueError, match="closed"):
            call()
