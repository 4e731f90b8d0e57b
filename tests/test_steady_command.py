"""Lists that change while they are read: half of the old and half of the new is neither."""
import threading

import pytest

from conftest import run

LISTS = {
    "passwords": (["passwords", "build"], "{:040X}:7\n"),
    "urls": (["urls", "build", "--domains"], "n{:x}.example\n"),
    "spell": (["spell", "build"], "a{:040x}\n"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_grows_while_it_is_read(ok, name):
    argv, line = LISTS[name]
    path = ok.path / "list"
    path.write_text("".join(line.format(i) for i in range(50000)))
    ok(*argv, "-q", "-o", "list.bly", "list")
    before = (ok.path / "list.bly").read_bytes()
    ended = threading.Event()

    def grow():
        with open(path, "a") as f:
            while not ended.is_set():
                f.write(line.format(1))
                f.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        # Of the writer's time nothing is known: it writes while the list is read, sooner or later.
        for _ in range(100):
            got = run(*argv, "-o", "list.bly", "list", cwd=ok.path)
            if got.status == 2:
                break
            before = (ok.path / "list.bly").read_bytes()
    finally:
        ended.set()
        writer.join()
    assert got.status == 2 and "list: changed while it was read" in got.err
    assert len(got.err.splitlines()) == 1
    assert (ok.path / "list.bly").read_bytes() == before
    # Now it is whole. A pipe has no version, and other commands read logs that grow.
    ok(*argv, "-q", "-o", "list.bly", "list")
    ok(*argv, "-q", "-o", "piped.bly", stdin=path.read_bytes())
