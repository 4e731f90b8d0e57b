"""Lists of domains in dnsdist, asked with dig on loopback; behind it a tiny name
server that knows every name."""
import os
import re
import shutil
import socket
import struct
import subprocess
import threading

import pytest

from conftest import BUILD, GRACE, PATIENCE, ROOT, run
from squid_support import free_port, wait_until
from test_urls_command import real

LUA = ROOT / "adapters" / "dnsdist" / "bloomery.lua"
LIBRARY = BUILD / "libbloomery.so"


class Names:
    """Answers every question for an address with 192.0.2.1."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data, where = self.socket.recvfrom(4096)
            except OSError:
                return
            end = 12
            while data[end]:
                end += data[end] + 1
            question = data[12:end + 5]
            self.socket.sendto(
                data[:2] + struct.pack(">HHHHH", 0x8580, 1, 1, 0, 0) + question
                + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1", where)


class Dnsdist:
    def __init__(self, folder, options=""):
        self.folder, self.port = folder, free_port()
        self.names = Names()
        config = folder / "dnsdist.conf"
        config.write_text(f"""
setLocal("127.0.0.1:{self.port}")
setACL("127.0.0.0/8")
newServer({{address="127.0.0.1:{self.names.port}", healthCheckMode="up"}})
local bloomery = dofile("{LUA}")
local ads = bloomery.open("{folder}/l.bly", {{library="{LIBRARY}"{options}}})
addAction(LuaFFIRule(function(dq) return ads:listed(dq) end),
          RCodeAction(DNSRCode.NXDOMAIN))
""")
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["dnsdist", "-C", config, "--supervised", "--disable-syslog"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until(lambda: self.process.poll() is not None or self.up())
        assert self.process.poll() is None, self.said()

    def said(self):
        return (self.folder / "log").read_text(errors="replace")

    def up(self):
        return self.ask("up.test", tries=1) is not None

    def ask(self, *names, tries=10):
        """The status of each name; of one, as it is."""
        done = subprocess.run(
            ["dig", "+noall", "+comments", f"+tries={tries}", "+time=5",
             "@127.0.0.1", "-p", str(self.port),
             *(w for n in names for w in ("-q", n))],
            capture_output=True, text=True, timeout=PATIENCE)
        found = re.findall(r"status: (\w+)", done.stdout)
        if len(found) != len(names):
            return None
        return found if len(names) > 1 else found[0]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.names.socket.close()


@pytest.fixture
def dnsdist(tmp_path):
    if not shutil.which("dnsdist") or not shutil.which("dig"):
        pytest.skip("no dnsdist, or no dig")
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    made = []

    def start(**options):
        made.append(Dnsdist(tmp_path, **options))
        return made[0]
    yield start
    for d in made:
        d.close()


def build(path, text, *options):
    (path / "list").write_text(text)
    done = run("urls", "build", "-q", "--domains", "-o", "l.bly", *options,
               "list", cwd=path)
    assert done.status == 0, done.err


def test_listed_names_are_refused(dnsdist, tmp_path):
    listed = real("easylist.txt")
    names = [n for n in re.findall(r"^\|\|([a-z0-9.-]+\.[a-z]+)\^$",
                                   listed.read_text(), re.M)][::700]
    done = run("urls", "build", "-q", "--domains", "-o", "l.bly", listed,
               cwd=tmp_path)
    assert done.status == 0, done.err
    d = dnsdist()
    assert set(d.ask(*names)) == {"NXDOMAIN"}
    assert set(d.ask(*(f"A.wWw.{n.upper()}" for n in names))) == {"NXDOMAIN"}
    assert set(d.ask("kernel.org", "www.debian.org", "com", "a" * 63 + ".org",
                     ".".join("abcdefghijklmnopqrstuvwxyz" * 4))) == {"NOERROR"}


def test_the_list_is_replaced_while_it_runs(dnsdist, tmp_path):
    def version(n):
        build(tmp_path, f"||always.example^\n||v{n % 7}.example^\n"
                        f"@@||free{n % 7}.always.example^\n")
    version(0)
    d = dnsdist()
    asked = ["always.example", "x.always.example", "never.example",
             *(f"v{k}.example" for k in range(7)),
             *(f"a.free{k}.always.example" for k in range(7))]
    wrong, stop = [], threading.Event()

    def load():
        # Each name alone: a list may be replaced between two questions.
        while not stop.is_set():
            got = d.ask(*asked[:3])
            if got != ["NXDOMAIN", "NXDOMAIN", "NOERROR"]:
                wrong.append(got)
    thread = threading.Thread(target=load)
    thread.start()
    for n in range(1, 4):
        version(n)
        wait_until(lambda: d.ask(f"v{n}.example") == "NXDOMAIN")
        right = ["NXDOMAIN", "NXDOMAIN", "NOERROR"] + \
            ["NXDOMAIN" if k == n else "NOERROR" for k in range(7)] + \
            ["NOERROR" if k == n else "NXDOMAIN" for k in range(7)]
        assert d.ask(*asked) == right
    # What is damaged, or lacks its exceptions, changes nothing.
    whole = (tmp_path / "l.bly").read_bytes()
    (tmp_path / "tmp").write_bytes(whole[:-9] + b"x" + whole[-8:])
    os.replace(tmp_path / "tmp", tmp_path / "l.bly")
    wait_until(lambda: d.ask("always.example") and
               d.said().count("the previous list stays in use") == 1)
    (tmp_path / "tmp").write_bytes(whole)
    for allow in tmp_path.glob("*.allow"):
        allow.unlink()
    os.replace(tmp_path / "tmp", tmp_path / "l.bly")
    wait_until(lambda: d.ask("always.example") and
               d.said().count("the previous list stays in use") == 2)
    assert d.ask(*asked) == right
    version(4)
    wait_until(lambda: d.ask("v4.example") == "NXDOMAIN")
    stop.set()
    thread.join()
    assert not wrong, wrong[:1]


def test_keyed_lists_and_single_labels(dnsdist, tmp_path):
    (tmp_path / "key").write_text("000102030405060708090a0b0c0d0e0f\n")
    (tmp_path / "key").chmod(0o600)
    build(tmp_path, "zip\nevil.example\n", "-K", "key")
    d = dnsdist(options=f', key_file="{tmp_path}/key"')
    assert d.ask("a.b.zip", "zip", "x.evil.example", "evil.org", "example") == \
        ["NXDOMAIN"] * 3 + ["NOERROR"] * 2


def test_what_cannot_be_opened(dnsdist, tmp_path):
    for text, options, says in (
            ("http://evil.example/x\n", None, "a list of URLs"),
            ("evil.example\n", "key", "a keyed filter")):
        (tmp_path / "list").write_text(text)
        (tmp_path / "key").write_text("00" * 16)
        (tmp_path / "key").chmod(0o600)
        more = ["--domains", "-K", "key"] if options else []
        done = run("urls", "build", "-q", "-o", "l.bly", "list", *more,
                   cwd=tmp_path)
        assert done.status == 0, done.err
        with pytest.raises(AssertionError, match=says):
            dnsdist()
