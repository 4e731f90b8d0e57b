"""bloomery urls helper: by hand, with a list that is replaced under load, and in
a real Squid with the real urlhaus list."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.error

import pytest

from conftest import BUILD, PATIENCE, PROGRAM, run
from squid_support import SQUID, Origin, Squid, shared_memory, wait_until
from test_urls_command import real


class Helper:
    """The helper as Squid has it: lines in, lines out."""

    def __init__(self, *argv, cwd, program=PROGRAM):
        self.process = subprocess.Popen(
            [program, "urls", "helper", *map(str, argv)], cwd=cwd,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def ask(self, *lines):
        self.send("".join(f"{l}\n" for l in lines))
        return [self.process.stdout.readline().decode().strip() for _ in lines]

    def end(self):
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out.decode(), err.decode()


def build(path, *entries, domains=False, name="l.bly"):
    (path / "new.txt").write_text("".join(e + "\n" for e in entries))
    done = run("urls", "build", "-q", *["--domains"] * domains, "-o", name,
               "new.txt", cwd=path)
    assert done.status == 0, done.err


def test_the_protocol(tmp_path):
    build(tmp_path, "http://evil.example/", "http://a.example/x%20y")
    h = Helper("l.bly", cwd=tmp_path)
    assert h.ask("0 http://evil.example/any%20thing -",
                 "7 http://good.example/ -",
                 "12 http://a.example/x%2520y",
                 "3 -",
                 "4 http:/// -",
                 "5 www.evil.example:443 -") == \
        ["0 OK", "7 ERR", "12 OK", "3 ERR", '4 BH message="not a URL"', "5 OK"]
    # Without channels; and a line that comes in pieces.
    assert h.ask("http://evil.example/ -", "http://good.example/") == ["OK", "ERR"]
    h.send("9 http://evil.exa")
    h.send("mple/ -\n")
    assert h.process.stdout.readline() == b"9 OK\n"
    # A request of a megabyte is answered, one of nine is none.
    assert h.ask("1 http://evil.example/" + "a" * (1 << 20)) == ["1 OK"]
    assert h.ask("2 http://evil.example/" + "a" * (9 << 20))[0].startswith("2 BH ")
    assert h.ask("3 http://evil.example/") == ["3 OK"]
    # An end without a newline is no request.
    h.send("4 http://evil.example/")
    assert h.end() == (0, "", "")


def test_domains_and_exceptions(tmp_path):
    build(tmp_path, "||evil.example^", "@@||good.evil.example^", domains=True)
    h = Helper("l.bly", cwd=tmp_path)
    assert h.ask("0 a.evil.example", "1 x.good.evil.example", "2 b.org.",
                 "3 a%20b") == \
        ["0 OK", "1 ERR", "2 ERR", '3 BH message="not a name"']
    assert h.end()[0] == 0


def test_many_at_once_in_order(tmp_path):
    build(tmp_path, *(f"http://h{i}.example/" for i in range(0, 20000, 2)))
    h = Helper("l.bly", cwd=tmp_path)
    asked = "".join(f"{i} http://h{i}.example/p -\n" for i in range(20000))
    threading.Thread(target=h.send, args=(asked,)).start()
    for i in range(20000):
        assert h.process.stdout.readline().decode() == \
            f"{i} {'ERR' if i % 2 else 'OK'}\n"
    assert h.end()[0] == 0


@pytest.mark.parametrize("program", [PROGRAM, BUILD / "tsan" / "bloomery"],
                         ids=["plain", "tsan"])
def test_the_list_is_replaced_under_load(tmp_path, program):
    """Versions of a list all have one entry and differ in another. Whatever is
    asked meanwhile is answered, once each and from one of the versions. With
    the thread sanitizer, a race ends the helper with a status of its own."""
    if not pathlib.Path(program).exists():
        pytest.skip(f"no {program}")
    def version(n):
        build(tmp_path, "||always.example^", f"||v{n % 7}.example^",
              f"@@||free{n % 7}.always.example^", domains=True)
    version(0)
    h = Helper("l.bly", cwd=tmp_path, program=program)
    stop = threading.Event()
    wrong = []

    def load():
        n = 0
        while not stop.is_set():
            n += 1
            got = h.ask(f"{n} www.always.example -", f"{n} never.example -",
                        *(f"{n} v{k}.example -" for k in range(7)),
                        *(f"{n} free{k}.always.example -" for k in range(7)))
            listed = [k for k in range(7) if got[2 + k] == f"{n} OK"]
            free = [k for k in range(7) if got[9 + k] == f"{n} ERR"]
            if got[:2] != [f"{n} OK", f"{n} ERR"] or len(listed) != 1 or \
                    listed != free or len(got) != 16:
                wrong.append(got)
                return
    thread = threading.Thread(target=load)
    thread.start()
    for n in range(1, 26):
        version(n)
    # A damaged version changes nothing, and is told once.
    whole = (tmp_path / "l.bly").read_bytes()
    (tmp_path / "tmp").write_bytes(whole[:-9] + b"x" + whole[-8:])
    os.replace(tmp_path / "tmp", tmp_path / "l.bly")
    wait_until(lambda: h.process.poll() is not None or b"stays" in
               os.read(h.process.stderr.fileno(), 65536))
    version(5)
    stop.set()
    thread.join()
    assert not wrong, wrong[:1]
    wait_until(lambda: h.ask("1 v5.example") == ["1 OK"])
    assert h.ask("1 v4.example", "2 free5.always.example") == ["1 ERR", "2 ERR"]
    # A list that is gone is no reason to forget it.
    (tmp_path / "l.bly").unlink()
    assert h.ask("1 www.always.example") == ["1 OK"]
    assert h.end()[0] == 0


def test_what_cannot_be_served(tmp_path):
    for argv, says in ((["none.bly"], "No such file"),
                       (["l.bly", "x"], "one list"),
                       (["l.bly", "--domains"], "list of URLs")):
        build(tmp_path, "http://evil.example/")
        got = run("urls", "helper", *argv, cwd=tmp_path)
        assert got.status == 2 and says in got.err and not got.out
    (tmp_path / "key").write_text("00" * 16)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "list").write_text("evil.example\n")
    run("urls", "build", "-q", "-K", "key", "--domains", "-o", "k.bly", "list",
        cwd=tmp_path)
    assert "--key-file" in run("urls", "helper", "k.bly", cwd=tmp_path).err
    got = run("urls", "helper", "k.bly", "-K", "key", cwd=tmp_path,
              stdin="1 evil.example\n2 good.example\n")
    assert got.lines == ["1 OK", "2 ERR"]


@pytest.fixture
def guarded():
    """A Squid whose helper asks the list that the test makes there."""
    if not SQUID:
        pytest.skip("no squid")
    if not shared_memory():
        pytest.skip("/dev/shm is not for everybody")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bly-list-"))
    folder.chmod(0o755)
    program = folder / "bloomery"
    shutil.copy(PROGRAM, program)
    origin = Origin()
    made = []

    def start(what="%URI"):
        made.append(Squid(access=f"""
external_acl_type listed concurrency=50 ttl=0 negative_ttl=0 cache=0 children-max=1 children-startup=1 {what} {program} urls helper {folder}/l.bly
acl bad external listed
http_access deny bad
"""))
        return made[0]
    start.folder, start.origin = folder, origin
    yield start
    for squid in made:
        squid.close()
    origin.close()
    shutil.rmtree(folder)


def status(squid, url):
    try:
        return squid.get(url)[0]
    except urllib.error.HTTPError as e:
        return e.code


def test_squid_refuses_what_urlhaus_lists(guarded):
    listed = real("urlhaus-filter-online.txt")
    names = [n for n in re.findall(r"^[a-z0-9][a-z0-9.-]*\.[a-z]+$",
                                   listed.read_text(), re.M) if n.count(".") < 5]
    done = run("urls", "build", "-i", "-o", guarded.folder / "l.bly", listed)
    assert done.status == 0, done.err
    squid = guarded()
    mine = guarded.origin.url
    assert status(squid, f"{mine}/fine") == 200
    for name in names[:20]:
        assert status(squid, f"http://{name}/x?y") == 403
        assert status(squid, f"http://www.{name}/") == 403
    pages = re.findall(r"^\|\|(github\.com/[^^$]*)\^\$all$", listed.read_text(), re.M)
    assert status(squid, f"http://{pages[0]}?x=1") == 403

    # Replaced while requests run: all of them are answered, and soon by the
    # new one.
    stop, odd = threading.Event(), []

    def load():
        while not stop.is_set():
            for url, right in ((f"{mine}/a", 200), (f"http://{names[0]}/", 403)):
                if (got := status(squid, url)) != right:
                    odd.append((url, got))
    threads = [threading.Thread(target=load) for _ in range(4)]
    for t in threads:
        t.start()
    for n in range(5):
        build(guarded.folder, f"http://{names[0]}/", f"{mine}/v{n}/")
        wait_until(lambda: status(squid, f"{mine}/v{n}/x") == 403)
        assert status(squid, f"{mine}/v{n - 1}/x") == 200
    stop.set()
    for t in threads:
        t.join()
    assert not odd, odd[:3]
