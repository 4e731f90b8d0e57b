"""Real servers on loopback, started and stopped by the tests.

A server has a folder, a free port and the module; it is ended by its process
id when the test is over, whatever happened. BLY_REDIS_SERVER names the program
if it is to be another one than redis-server, or valkey-server where that is not
installed. With BLY_REDIS_SANITIZED, all servers run with the module of
build/asan, and what the sanitizers find fails the test.
"""
import os
import pathlib
import platform
import shutil
import subprocess
import time

import pytest
from conftest import GRACE, PATIENCE, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BLY_BUILD", ROOT / "build")).resolve()
MODULE = BUILD / "bloomery.so"
SERVER = os.environ.get("BLY_REDIS_SERVER") or \
    shutil.which("redis-server") or shutil.which("valkey-server")

# The module that is compiled with sanitizers asks for their library, which has
# to come before the allocator of the server; then keys are in its memory, too.
SANITIZE = "BLY_REDIS_SANITIZED" in os.environ
SANITIZED = BUILD / "asan" / "bloomery.so"
FOUND = ("AddressSanitizer", "LeakSanitizer", "runtime error")


def sanitizers_library():
    """Where it is; None where clang has none."""
    if not shutil.which("clang"):
        return None
    path = pathlib.Path(subprocess.run(
        ["clang", "-print-file-name="
         f"libclang_rt.asan-{platform.machine()}.so"],
        stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    return path if path.exists() else None


def sanitizers():
    """What a sanitized server runs with."""
    return {"LD_PRELOAD": str(sanitizers_library()),
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0:"
            "detect_odr_violation=0"}


try:
    import redis
except ImportError:
    redis = None

needs_server = pytest.mark.skipif(
    not SERVER or redis is None or not MODULE.exists(),
    reason="redis-server, python3-redis or build/bloomery.so is not there")


# What Redis does unless it is told otherwise, and Valkey only then: keys are
# freed before the reply.
AT_ONCE = [word for what in ("eviction", "expire", "server-del", "user-del",
                             "user-flush")
           for word in (f"--lazyfree-lazy-{what}", "no")]


class PortTaken(RuntimeError):
    """By another process, since it was found to be free."""


class Server:
    """One server; `with Server(folder) as s: s.r.execute_command(...)`."""

    def __init__(self, folder, *options, module_args=(), module=MODULE,
                 config=None, sanitized=SANITIZE):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.options = [str(o) for o in options]
        self.sanitized = sanitized and module == MODULE
        if self.sanitized:
            module = SANITIZED
        self.module = [] if module is None else [
            "--loadmodule", str(module), *map(str, module_args)]
        self.config = [] if config is None else [str(config)]
        self.process = None
        while self.process is None:
            try:
                self.start()
            except PortTaken:
                self.port, self.process = free_port(), None

    def start(self):
        """The first time and, after its end, again on the same port."""
        log = open(self.folder / "log", "ab")
        before = log.tell()
        env = {**os.environ, **(sanitizers() if self.sanitized else {})}
        self.process = subprocess.Popen(
            [SERVER, *self.config, "--port", str(self.port), "--bind", "127.0.0.1",
             "--dir", str(self.folder), "--save", "",
             "--enable-debug-command", "yes", *AT_ONCE, *self.options,
             *self.module],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        log.close()
        self.r = self.connect()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                self.r.ping()
                if self.r.info("server")["process_id"] == self.process.pid:
                    return
            except redis.exceptions.ConnectionError: # or it is still loading
                pass
            if self.process.poll() is not None:
                said = self.log()[before:][-2000:]
                raise (PortTaken if "Address already in use" in said
                       else RuntimeError)(said)
            time.sleep(0.05)
        raise RuntimeError("the server does not answer: " + self.log()[-2000:])

    def connect(self, **how):
        return redis.Redis("127.0.0.1", self.port, socket_timeout=PATIENCE, **how)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def cli(self, *words, stdin=None, **kw):
        """redis-cli, for what a client library hides (RESP3, --pipe)."""
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), *map(str, words)],
            input=stdin, capture_output=True, timeout=PATIENCE, check=False, **kw)

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
                self.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.sanitized:
            log = self.log()
            for word in FOUND:
                assert word not in log, log[log.index(word) - 300:][:5000]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def wait_for(what, seconds=PATIENCE):
    """Until it is true; errors of a server that is on its way do not count."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return
        except redis.exceptions.RedisError:
            pass
        time.sleep(0.03)
    raise AssertionError("it did not come about in time")


def meanwhile(server, *words, change):
    """Send a command, change something while it is under way, and read the
    reply; whether it was under way when that was done."""
    other = server.connect().connection_pool.get_connection("_")
    other.send_command(*words)
    wait_for(lambda: other.can_read(0) or
             server.r.info("clients")["blocked_clients"])
    under_way = not other.can_read(0)
    change()
    try:
        said = other.read_response()
    except redis.exceptions.ResponseError as wrong:
        said = str(wrong)
    other.disconnect()
    return under_way, said


class Cluster:
    """Three primaries, each with a replica; `with Cluster(folder) as c: ...`."""

    def __init__(self, folder, *options):
        self.nodes = []
        try:
            for i in range(6):
                self.nodes.append(Server(
                    pathlib.Path(folder) / str(i), "--cluster-enabled", "yes",
                    "--cluster-require-full-coverage", "no",
                    "--repl-diskless-sync-delay", "0", *options))
            self.create()
        except BaseException:
            self.stop()
            raise

    def create(self):
        made = subprocess.run(
            ["redis-cli", "--cluster", "create",
             *[f"127.0.0.1:{n.port}" for n in self.nodes],
             "--cluster-replicas", "1", "--cluster-yes"],
            capture_output=True, timeout=PATIENCE, check=False)
        assert b"All 16384 slots covered" in made.stdout, made.stdout
        wait_for(lambda: all(
            n.r.info("replication").get("connected_slaves") == 1 or
            n.r.info("replication").get("master_link_status") == "up"
            for n in self.nodes))
        wait_for(lambda: all(
            b"cluster_state:ok" in n.cli("CLUSTER", "INFO").stdout
            for n in self.nodes))

    @property
    def at(self):
        """The last node that lives: a replica, most likely."""
        return ["--port", [n for n in self.nodes if n.is_alive()][-1].port]

    def primaries(self):
        return [n for n in self.nodes if n.is_alive() and
                n.r.info("replication")["role"] == "master"]

    def find(self, key):
        """The primary that answers for a key; None while nobody does."""
        for n in self.primaries():
            try:
                n.r.execute_command("EXISTS", key)
                return n
            except redis.exceptions.ResponseError:
                pass
        return None

    def owner(self, key):
        node = self.find(key)
        assert node, "nobody has " + key
        return node

    def begin_move(self, key):
        """The slot of a key is on its way, and its keys are there already."""
        source = self.owner(key)
        target = next(n for n in self.primaries() if n is not source)
        slot = source.r.execute_command("CLUSTER", "KEYSLOT", key)
        ids = {n: n.r.execute_command("CLUSTER", "MYID").decode()
               for n in (source, target)}
        target.r.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING",
                                 ids[source])
        source.r.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING",
                                 ids[target])
        keys = source.r.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        source.r.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0,
                                 10000, "KEYS", *keys)
        return source, target, slot, ids[target]

    def end_move(self, move):
        source, target, slot, new = move
        for n in (target, source):
            n.r.execute_command("CLUSTER", "SETSLOT", slot, "NODE", new)
        wait_for(lambda: all(
            self.names_owner(n, slot) == target.port
            for n in self.nodes if n.is_alive()))

    @staticmethod
    def names_owner(node, slot):
        for row in node.r.execute_command("CLUSTER", "SLOTS"):
            if row[0] <= slot <= row[1]:
                return row[2][1]
        return None

    def stop(self):
        for n in self.nodes:
            n.stop()

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
