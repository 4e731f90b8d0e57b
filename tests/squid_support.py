"""Real Squids on loopback, and an origin that they fetch from.

A Squid lives in a folder of its own, owned by the user that it becomes; it is
ended by its process id. Every port is a free one.
"""
import http.server
import itertools
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from conftest import GRACE, PATIENCE, free_port

SQUID = shutil.which("squid") or shutil.which("squid", path="/usr/sbin")


def shared_memory():
    """Squid keeps some of its state there, as a user of its own."""
    try:
        return os.stat("/dev/shm").st_mode & 0o002
    except OSError:
        return False
number = itertools.count()


def wait_until(true, seconds=PATIENCE, every=0.1):
    """Whatever true() says once it says something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := true():
            return answer
        time.sleep(every)
    raise AssertionError(f"not so after {seconds} s")


class Origin:
    """Answers every GET with a page that may be kept for a day."""

    def __init__(self):
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                origin.asked.append(self.path)
                body = b"page " + self.path.encode()
                self.send_response(200)
                self.send_header("Cache-Control", "public, max-age=86400")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.asked = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Squid:
    """A proxy with a cache on disk and a digest that is new every few
    seconds. peers: lines of configuration; access: those that stand before the
    one that allows everything; size: megabytes of each of `dirs` caches."""

    def __init__(self, peers="", period=5, access="", size=16, dirs=1,
                 port=None):
        self.port = port or free_port()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bly-squid-"))
        self.name = f"bly{os.getpid()}x{next(number)}"
        self.caches = [self.folder / f"cache{i or ''}" for i in range(dirs)]
        for cache in self.caches:
            cache.mkdir()
        # The origin listens on 127.0.0.1; Debian's own file has ::1 as well.
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n")
        config = self.folder / "squid.conf"
        config.write_text(f"""
hosts_file {self.folder}/hosts
http_port 127.0.0.1:{self.port}
visible_hostname {self.name}.test
{access}
http_access allow all
pid_filename {self.folder}/pid
cache_log {self.folder}/cache.log
cache_store_log stdio:{self.folder}/store.log
access_log stdio:{self.folder}/access.log
coredump_dir {self.folder}
{"".join(f"cache_dir ufs {cache} {size} 4 4{chr(10)}" for cache in self.caches)}
cache_mem 8 MB
digest_rebuild_period {period} seconds
digest_rewrite_period {period} seconds
icp_port 0
pinger_enable off
buffered_logs off
strip_query_terms off
shutdown_lifetime 1 seconds
minimum_direct_rtt 0
minimum_direct_hops 0
{peers}
""")
        if os.getuid() == 0:
            user = pwd.getpwnam("proxy")
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, user.pw_uid, user.pw_gid)
        self.argv = [SQUID, "-f", str(config), "-n", self.name, "-N"]
        subprocess.run([*self.argv, "-z"], check=True, capture_output=True,
                       timeout=PATIENCE)
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until(self.answers)

    def tell(self, order):
        """squid -k ORDER"""
        subprocess.run([*self.argv[:-1], "-k", order], check=True,
                       capture_output=True, timeout=PATIENCE)

    def answers(self):
        assert self.process.poll() is None, self.log("cache.log")
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        except OSError:
            return False

    def log(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def get(self, url, **headers):
        """Status and body of a URL, through this proxy."""
        proxy = urllib.request.ProxyHandler(
            {"http": f"http://127.0.0.1:{self.port}"})
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.build_opener(proxy).open(request, timeout=PATIENCE) as r:
            return r.status, r.read()

    def send(self, line):
        """Send a request line as it stands; the answer's first line."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as s:
            s.sendall(line.encode("latin-1") + b" HTTP/1.1\r\n"
                      b"Host: x\r\nConnection: close\r\n\r\n")
            answer = b""
            while data := s.recv(65536):
                answer += data
        return answer.split(b"\r\n")[0].decode()

    def page(self, name):
        """A page of the cache manager."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://127.0.0.1:{self.port}/squid-internal-mgr/{name}",
                timeout=PATIENCE) as r:
            return r.read().decode(errors="replace")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
