"""sync with peers that are silent, slow, many, or say what is not so: servers
go on serving others, and memory stays in proportion to what a side has."""
import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import threading

import pytest
from conftest import GRACE, PATIENCE, PROGRAM
from test_sync_command import Liar, fill, hello, listed, varint
from wire_support import HELLO, frame, relay as relay_of, speak, told


@contextlib.contextmanager
def serving(folder, *argv, files=None):
    """A server on a free port: its address, and its process."""
    def limit():
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    server = subprocess.Popen(
        [PROGRAM, "sync", "serve", "--listen", "127.0.0.1:0", *argv],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, preexec_fn=limit)
    try:
        at = re.search(r" on (\S+):(\d+)", server.stdout.readline())
        yield (at[1], int(at[2])), server
        assert server.poll() is None, "the server has ended"
    finally:
        server.terminate()
        try:
            server.wait(GRACE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()


def connections(at, n):
    stack = contextlib.ExitStack()
    lines = [stack.enter_context(socket.create_connection(at))
             for _ in range(n)]
    return stack, lines


def pulls(ok, at):
    return ok("sync", "pull", "x", "%s:%d" % at)


def read_bytes(server):
    with open(f"/proc/{server.pid}/io") as f:
        return int(re.search(r"rchar: (\d+)", f.read())[1])


def test_silent_connections_lock_nobody_out(ok):
    fill(ok.path, {"y/a": b"1", "x/b": b"2"})
    with serving(ok.path, "y") as (at, _):
        for n in 20, 100:
            stack, _ = connections(at, n)
            with stack:
                pulls(ok, at)
    assert (ok.path / "x/a").read_bytes() == b"1"


@pytest.mark.parametrize("greets", [False, True])
def test_dripping_connections_lock_nobody_out(ok, greets):
    """A byte now and then: of a greeting, or of the message behind it."""
    fill(ok.path, {"y/a": b"1", "x/b": b"2"})
    bytes_of = HELLO + hello(2) + frame(b"\2" * 9000)
    stop = threading.Event()
    with serving(ok.path, "--timeout", "4", "y") as (at, _):
        stack, lines = connections(at, 16)
        with stack:
            start = len(HELLO + hello(2)) if greets else 1
            for line in lines:
                line.sendall(bytes_of[:start])
            if greets:
                for line in lines:
                    line.recv(len(HELLO), socket.MSG_WAITALL)
                    assert told(line)[0] == 1

            def drip():
                for i in range(start, len(bytes_of)):
                    for line in lines:
                        with contextlib.suppress(OSError):
                            line.sendall(bytes_of[i:i + 1])
                    if stop.wait(0.05):
                        return
            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                pulls(ok, at)
            finally:
                stop.set()
                dripping.join()
    assert (ok.path / "x/a").read_bytes() == b"1"


def test_a_message_has_an_end(bly):
    """A server that answers a byte at a time is given up, though it is never
    silent."""
    listed(bly.path / "a", [b"one"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = server.getsockname()

        def drip():
            line, _ = server.accept()
            with line, contextlib.suppress(OSError):
                for byte in HELLO + frame(b"\1" * 100000):
                    line.sendall(bytes([byte]))
                    if stop.wait(0.05):
                        return
        stop = threading.Event()
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            got = bly("sync", "pull", "a", "%s:%d" % at, "--timeout", "1")
        finally:
            stop.set()
            thread.join()
    assert got.status == 2 and "--timeout" in got.err


def test_nothing_is_read_before_a_greeting(ok):
    size = 3 << 20
    fill(ok.path, {"y/a": b"1" * size, "x/b": b"2"})
    with serving(ok.path, "y") as (at, server):
        stack, lines = connections(at, 5)
        with stack:
            pulls(ok, at)
            once = read_bytes(server)
            assert once < 5 * size
            # A greeting with another key, or of a list, is refused unread.
            for bad in (hello(1), frame(b"\1blysync1\2\0", varint(1),
                                        varint(9), b"otherkey"),
                        frame(b"\1whatever")):
                with speak(at) as line:
                    line.sendall(bad)
                    assert told(line)[0] == 255
            assert read_bytes(server) < once + size


def test_too_few_descriptors_end_no_server(ok):
    fill(ok.path, {"y/a": b"1", "x/b": b"2"})
    with serving(ok.path, "y", files=64) as (at, _):
        stack, _ = connections(at, 120)
        with stack:
            pulls(ok, at)
    assert (ok.path / "x/a").read_bytes() == b"1"


def test_more_clients_than_are_served_wait(ok):
    """Thirty at once, two are served at a time: all come to their end."""
    for i in range(30):
        (ok.path / f"x{i}").mkdir()
    fill(ok.path, {"y/a": b"1"})
    with serving(ok.path, "--connections", "2", "y") as (at, _):
        # Eight of one address are let in here, those included that are about to
        # go.
        for first in range(0, 30, 4):
            runs = [subprocess.Popen(
                [PROGRAM, "sync", "pull", "-q", f"x{i}", "%s:%d" % at],
                cwd=ok.path) for i in range(first, min(first + 4, 30))]
            assert [run.wait(PATIENCE) for run in runs] == [0] * len(runs)


def test_nothing_to_serve_is_refused(trouble):
    trouble("sync", "serve", "--listen", "127.0.0.1:0", "/nonexist",
            says="/nonexist")
    trouble("sync", "serve", "--listen", "127.0.0.1:0", "--write",
            "/nonexist/either", says="/nonexist/either")
    listed(trouble.path / "a", [b"one"])
    trouble("sync", "serve", "--objects", "a", says="not a folder")
    with serving(trouble.path, "--write", "new") as (at, _):
        done = subprocess.run([PROGRAM, "sync", "push", "-q", "a",
                               "%s:%d" % at], cwd=trouble.path)
        assert done.returncode == 0
    assert (trouble.path / "new").read_bytes() == b"one\n"


# -------------------------------------------------------------------- liars

MUCH = 600 << 20


def talks_on(form):
    """Claims to have a great many elements, and sends whatever it is asked for
    by the megabyte, up to 600 of them."""
    part, sent = b"\1" * 1000000, [0]

    def answers(kind, question):
        if kind == 1:
            return frame(b"\1blysync1", bytes([form, 0]), varint(2**40),
                         varint(2**40), bytes(8))
        sent[0] += len(part)
        if sent[0] > MUCH:
            return None
        if kind == 8:  # LACKING
            return frame(bytes([kind]), part)
        return frame(bytes([kind]), varint(2**41), part)
    return answers


@pytest.mark.parametrize("method", ["tree", "bloom", "iblt", "rateless",
                                    "exact", "auto"])
@pytest.mark.parametrize("form", [1, 2])
def test_a_peer_that_claims_much_takes_little(tmp_path, method, form):
    if form == 1:
        listed(tmp_path / "a", [b"one", b"two"])
    else:
        fill(tmp_path, {"a/one": b"1"})
    with Liar(talks_on(form)) as at:
        run = subprocess.Popen(
            [PROGRAM, "sync", "both", "-t", "1", "a", at, "--method", method],
            cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        err = run.stderr.read()
        _, how, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(how)
        run.stderr.close()
    assert run.returncode == 2, err
    assert len(err.splitlines()) == 1
    assert used.ru_maxrss < 200 * 1024, "KiB: " + err


def relay(path, change):
    """A server that says what a real one does, but for what change() makes of
    an answer: Python with `kind` and `answer`."""
    path.write_text(relay_of(PROGRAM, ["sync", "serve", "--stdio", "--write", "y"], change))
    return f"{sys.executable} {path.name}"


def test_records_that_come_again_and_again(bly):
    """There was room for each once, and no look at how many came."""
    fill(bly.path, {"x/b": b"2", "y/a": b"1"})
    command = relay(bly.path / "liar.py", """
    if kind == 10:
        answer = answer[:1] + bytes([144, 3]) + answer[2:] * 400""")
    got = bly("sync", "pull", "x", "--pipe", command, "--json")
    assert got.status == 0, got.err
    assert got.json["taken"] == 1
    command = relay(bly.path / "liar.py", """
    if kind == 10:
        answer = answer[:1] + bytes([128, 128, 1]) + answer[2:] * 400""")
    got = bly("sync", "pull", "z/", "--pipe", command)
    assert got.status == 2 and "asked for" in got.err


def test_ranges_that_are_asked_for_twice(bly):
    fill(bly.path, {"x/a": os.urandom(100000), "y/b": b"2"})
    command = relay(bly.path / "liar.py", """
    if kind == 15:
        answer = answer[:1] + b"\\2" + answer[2:] * 2""")
    got = bly("sync", "push", "x", "--pipe", command)
    assert got.status == 2 and "ranges" in got.err


def test_an_outline_larger_than_two_sets_need(ok):
    listed(ok.path / "b", [b"one"])
    with serving(ok.path, "b") as (at, _), \
            speak(at) as line:
        line.sendall(hello(1, 2**40))
        told(line)
        line.sendall(frame(b"\7", varint(500 << 20), b"\5", varint(0), b"blyo"))
        assert told(line)[0] == 255
