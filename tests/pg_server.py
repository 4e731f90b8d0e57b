"""A PostgreSQL server of the test's own, with the extension that was built.

PostgreSQL looks for extensions relative to its own program. So a folder gets a
copy of the programs, links to all else, and the extension beside them: nothing
is installed. The server runs without root's rights, which it refuses, and
listens on a socket in its folder alone.
"""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from conftest import BUILD, GRACE, PATIENCE, ROOT

MODULE = BUILD / "bloomery_postgresql.so"


def config(what):
    try:
        return pathlib.Path(subprocess.check_output(["pg_config", f"--{what}"], text=True,
                                                    stderr=subprocess.DEVNULL).strip())
    except (OSError, subprocess.CalledProcessError):
        return None


def missing():
    """Why there can be no server here, or None."""
    if not MODULE.exists():
        return "bloomery_postgresql.so was not built: no headers of PostgreSQL's server"
    if not (config("bindir") / "initdb").exists():
        return "no server of PostgreSQL"
    try:
        import psycopg2  # noqa: F401
    except ImportError:
        return "no python3-psycopg2"
    return None


def unprivileged():
    """Arguments for subprocess to become somebody who is not root."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            who = pwd.getpwnam(name)
            return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        except KeyError:
            pass
    raise RuntimeError("no user but root")


class Server:
    """Started in a new folder; stop() ends it and removes the folder."""

    def __init__(self, **settings):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="bly-pg-"))
        self.who = unprivileged()
        self.data, self.files = self.root / "data", self.root / "files"
        self.log = self.root / "log"
        self.process = None
        self.install()
        for folder in (self.root, self.files):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            if self.who:
                os.chown(folder, self.who["user"], self.who["group"])
        self.run("initdb", "-D", self.data, "--no-sync", "-U", "postgres", "-A", "trust", "-E", "UTF8",
                 "--locale=C.UTF-8")
        lines = {"listen_addresses": "''", "unix_socket_directories": f"'{self.root}'", "fsync": "off",
                 "shared_buffers": "'16MB'", "max_worker_processes": 4, "max_parallel_workers": 4,
                 "autovacuum": "off", "jit": "off", "max_connections": 20, "wal_level": "minimal",
                 "max_wal_senders": 0, **settings}
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = {value}\n" for name, value in lines.items())
        self.start()

    def install(self):
        """The tree of an installation: programs copied, the rest linked."""
        real = {what: config(what) for what in ("bindir", "pkglibdir", "sharedir")}
        common = pathlib.Path(os.path.commonpath(list(map(str, real.values()))))
        here = {what: self.root / "usr" / path.relative_to(common) for what, path in real.items()}
        self.bin = here["bindir"]
        for path in here.values():
            path.mkdir(parents=True, exist_ok=True)
        for program in ("postgres", "initdb"):
            shutil.copy(real["bindir"] / program, self.bin)
        extensions = here["sharedir"] / "extension"
        extensions.mkdir()
        for source, target in ((real["pkglibdir"], here["pkglibdir"]), (real["sharedir"], here["sharedir"]),
                               (real["sharedir"] / "extension", extensions)):
            for path in source.iterdir():
                if path.name != "extension" and not path.name.startswith("bloomery"):
                    (target / path.name).symlink_to(path)
        shutil.copy(MODULE, here["pkglibdir"])
        for path in [*(ROOT / "adapters/postgresql").glob("*.sql"), ROOT / "adapters/postgresql/bloomery.control"]:
            shutil.copy(path, extensions)

    def run(self, program, *args):
        done = subprocess.run([self.bin / program, *map(str, args)], capture_output=True, text=True, cwd="/",
                              timeout=PATIENCE, check=False, **self.who)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, limit=None):
        """limit: bytes of address space that a process may have."""
        import resource
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data], stdout=log, stderr=log, cwd="/", **self.who,
                preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))
        self.wait()

    def wait(self):
        """Until it answers."""
        import psycopg2
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.connect("postgres").close()
                return
            except psycopg2.OperationalError as wrong:
                assert self.process.poll() is None and time.monotonic() < until, \
                    f"{wrong}{self.log.read_text()}"
                time.sleep(0.05)

    READY = "database system is ready to accept connections"

    def kill_backend(self, pid):
        """Without mercy; the server notices, ends all others and starts anew."""
        before = self.log.read_text().count(self.READY)
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + PATIENCE
        while self.log.read_text().count(self.READY) == before:
            assert time.monotonic() < until
            time.sleep(0.05)
        self.wait()

    def connect(self, database="postgres", user="postgres"):
        import psycopg2
        made = psycopg2.connect(host=str(self.root), dbname=database, user=user)
        made.autocommit = True
        return made

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)
