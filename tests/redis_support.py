"""Real servers on loopback, started and stopped by the tests.

A server has a folder, a free port and the module; it is ended by its process
id when the test is over, whatever happened.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BLY_BUILD", ROOT / "build")).resolve()
MODULE = BUILD / "bloomery.so"
SERVER = shutil.which("redis-server") or shutil.which("valkey-server")

try:
    import redis
except ImportError:
    redis = None

needs_server = pytest.mark.skipif(
    not SERVER or redis is None or not MODULE.exists(),
    reason="redis-server, python3-redis or build/bloomery.so is not there")


def free_port():
    """A port that is free now, and whose cluster bus port is too."""
    while True:
        with socket.socket() as s, socket.socket() as bus:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
            if port > 55000:
                continue
            try:
                bus.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port


class Server:
    """One server; `with Server(folder) as s: s.r.execute_command(...)`."""

    def __init__(self, folder, *options, module_args=(), module=MODULE,
                 config=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.options = [str(o) for o in options]
        self.module = [] if module is None else [
            "--loadmodule", str(module), *map(str, module_args)]
        self.config = [] if config is None else [str(config)]
        self.process = None
        self.start()

    def start(self):
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [SERVER, *self.config, "--port", str(self.port), "--bind", "127.0.0.1",
             "--dir", str(self.folder), "--save", "",
             "--enable-debug-command", "yes", *self.options, *self.module],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        self.r = self.connect()
        for _ in range(400):
            try:
                self.r.ping()
                return
            except redis.exceptions.BusyLoadingError:
                pass
            except redis.exceptions.ConnectionError:
                if self.process.poll() is not None:
                    raise RuntimeError(self.log()[-2000:]) from None
            time.sleep(0.05)
        raise RuntimeError("the server does not answer: " + self.log()[-2000:])

    def connect(self, **how):
        return redis.Redis("127.0.0.1", self.port, socket_timeout=60, **how)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def cli(self, *words, stdin=None, **kw):
        """redis-cli, for what a client library hides (RESP3, --pipe)."""
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), *map(str, words)],
            input=stdin, capture_output=True, timeout=60, check=False, **kw)

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def error_of(r, *words):
    """The text of the error that a command gives, as on the wire."""
    with pytest.raises(redis.exceptions.ResponseError) as e:
        r.execute_command(*words)
    return str(e.value)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all tests of a file that imports this."""
    with Server(tmp_path_factory.mktemp("redis")) as s:
        yield s


@pytest.fixture
def r(server):
    """A client of it, with no keys there; it must live through the test."""
    server.r.flushall()
    yield server.r
    assert server.is_alive(), server.log()[-3000:]
