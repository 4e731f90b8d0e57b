"""bloomery digest: digests that Squids wrote, hostile ones, real Squids."""
import hashlib
import random
import signal
import socket
import struct
import subprocess
import threading

import pytest
from conftest import BUILD, ROOT, run
from digest_support import (  # noqa: F401: digest_file is a fixture
    PATH, Peer, Server, answer, block, digest_file, drip, needs_curl,
    needs_server, pour)
from squid_support import SQUID, Origin, Squid, shared_memory, wait_until

VECTORS = ROOT.parent / "shared" / "vectors" / "squid"
NAMES = ["squid57-bpe5-disk", "squid57-bpe16-disk", "squid57-bpe5-1000"]

needs_vectors = pytest.mark.skipif(not VECTORS.is_dir(), reason="no vectors")
needs_squid = pytest.mark.skipif(
    not SQUID or not shared_memory(), reason="no squid, or no /dev/shm for it")


def rows(name):
    return [line.split("\t") for line in
            (VECTORS / name).read_text("latin-1").splitlines()]


# --------------------------------------------------- what Squid itself wrote

@needs_vectors
@pytest.mark.parametrize("name", NAMES)
def test_answers_as_squid(ok, name):
    digest = VECTORS / f"{name}.bin"
    present = [(f"{r[1]} {r[2]}{r[3] if len(r) > 3 else ''}", r[0])
               for r in rows(f"{name}.keys.tsv")]
    asked = "".join(f"{url}\n" for url, _ in present)
    assert ok("digest", "has", digest, stdin=asked.encode("latin-1")).raw \
        == asked.encode("latin-1")
    for url, md5 in present:
        method, rest = url.split(" ", 1)
        code = {"GET": 1, "HEAD": 4}[method]
        assert hashlib.md5(bytes([code]) + rest.encode("latin-1")) \
            .hexdigest() == md5.lower()
    absent = [(r[0], f"{r[1]} {r[2]}") for r in rows(f"{name}.absent.tsv")]
    assert ok("digest", "has", digest, "-f", "-", stdin="".join(
        f"{url}\n" for _, url in absent)).lines \
        == [url for answer, url in absent if answer == "maybe"]


@needs_vectors
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("column", [0, 2])
def test_builds_what_squid_built(ok, name, column):
    bits = name.split("bpe")[1].split("-")[0]
    digest = (VECTORS / f"{name}.bin").read_bytes()
    capacity = struct.unpack(">I", digest[4:8])[0]
    lines = "".join(
        f"{r[0]}\n" if column == 0 or len(r) > 3 and r[3] else
        f"{r[1]} {r[2]}\n" for r in rows(f"{name}.keys.tsv"))
    ok("digest", "build", "-o", "out", "--items", capacity, "--bits", bits,
       stdin=lines.encode("latin-1"))
    assert (ok.path / "out").read_bytes() == digest
    # A key that comes again is the same key.
    ok("digest", "build", "-o", "out", "--items", capacity, "--bits", bits,
       stdin=(lines + lines).encode("latin-1"))
    assert (ok.path / "out").read_bytes() == digest


# ------------------------------------------------------- building and asking

NATIVE = """\
1794781876.527     98 10.0.0.7 TCP_MISS/200 1234 GET http://a.test/1 - HIER_DIRECT/1.2.3.4 text/html
1794781876.528      0 10.0.0.8 TCP_MEM_HIT/200 1234 GET http://a.test/2 - HIER_NONE/- text/html
1794781876.529      3 10.0.0.8 TCP_REFRESH_UNMODIFIED/304 12 GET http://a.test/3 - HIER_DIRECT/1.2.3.4 -
1794781876.530      3 10.0.0.8 TCP_MISS/404 12 GET http://a.test/gone - HIER_DIRECT/1.2.3.4 -
1794781876.531      3 10.0.0.8 TCP_DENIED/403 12 GET http://a.test/no - HIER_NONE/- -
1794781876.532      3 10.0.0.8 TCP_MISS/200 12 POST http://a.test/form - HIER_DIRECT/1.2.3.4 -
1794781876.533      3 10.0.0.8 TCP_TUNNEL/200 12 CONNECT a.test:443 - HIER_DIRECT/1.2.3.4 -
1794781876.534      3 10.0.0.8 TCP_MISS/200 12 HEAD http://a.test/head - HIER_DIRECT/1.2.3.4 -
"""
COMBINED = """\
10.0.0.7 - - [15/Nov/2026:22:31:16 +0000] "GET http://a.test/1 HTTP/1.1" 200 1234 "-" "curl/7 (x)" TCP_MISS:HIER_DIRECT
10.0.0.7 - joe [15/Nov/2026:22:31:16 +0000] "GET http://a.test/2 HTTP/1.1" 200 1234 "http://b.test/" "x" TCP_MEM_HIT:HIER_NONE
10.0.0.7 - - [15/Nov/2026:22:31:17 +0000] "GET http://a.test/3 HTTP/1.1" 304 1234 TCP_REFRESH_UNMODIFIED:HIER_DIRECT
10.0.0.7 - - [15/Nov/2026:22:31:17 +0000] "GET http://a.test/gone HTTP/1.1" 404 1234 TCP_MISS:HIER_DIRECT
10.0.0.7 - - [15/Nov/2026:22:31:17 +0000] "HEAD http://a.test/head HTTP/1.1" 200 0 TCP_MISS:HIER_DIRECT
"""
LISTED = """\
# what there is
http://A.test:80/1
GET http://a.test./2

http://a.test/3\r
HEAD http://a.test/head
"""


def test_logs_and_lists_name_the_same(ok):
    made = []
    for name, text in [("native", NATIVE), ("combined", COMBINED),
                       ("list", LISTED)]:
        (ok.path / name).write_bytes(text.encode())
        result = ok("digest", "build", "--from", name, "-o", "d", "--json")
        assert result.json["entries"] == 4, name
        assert result.json["unknown"] == 0, result.err
        made.append((ok.path / "d").read_bytes())
    assert made[0] == made[1] == made[2]
    # All at once, packed, as operands.
    subprocess.run(["gzip", "native"], cwd=ok.path, check=True)
    ok("digest", "build", "native.gz", "combined", "list", "-o", "d")
    assert (ok.path / "d").read_bytes() == made[0]
    # What was asked for but not kept is not in it; what cannot be is skipped.
    asked = ok("digest", "has", "d", "-f", "native.gz", "--json").json
    assert asked == {"asked": 6, "maybe": 4, "skipped": 2}
    assert len(ok("digest", "has", "d", "-f", "combined").lines) == 4
    assert ok("digest", "has", "-v", "d", "-f", "combined").lines \
        == [COMBINED.splitlines()[3]]


def swap_state(*records):
    """Records of (operation, key), behind the first one."""
    head = struct.pack("<B3xII", 3, 2, 72).ljust(72, b"\0")
    return head + b"".join(
        bytes([op]).ljust(52, b"\0") + key + bytes(4) for op, key in records)


def md5(url, code=1):
    return hashlib.md5(bytes([code]) + url.encode()).digest()


def test_swap_state(ok, trouble):
    a, b, c = (md5(f"http://a.test/{x}") for x in "abc")
    records = [(1, a), (1, b), (2, b), (1, c), (2, c), (1, c)]
    state = swap_state(*records)
    (ok.path / "swap.state").write_bytes(state)
    made = ok("digest", "build", "--from", "swap.state", "-o", "d", "--json")
    assert made.json["entries"] == 2 and made.json["lines"] == 7
    assert ok("digest", "has", "d", "http://a.test/a", "http://a.test/b",
              "http://a.test/c").lines == ["http://a.test/a", "http://a.test/c"]
    # Cut short while it was copied: the last record does not count.
    (ok.path / "swap.state").write_bytes(state[:-10])
    made = ok("digest", "build", "--from", "swap.state", "-o", "d", "--json")
    assert made.json["entries"] == 1 and "within a record" in made.err
    (ok.path / "swap.state").write_bytes(
        swap_state((1, a), (9, b)))
    trouble("digest", "build", "--from", "swap.state", "-o", "d",
            says=["swap.state", "record 3"])


def test_has_answers_as_grep(ok, bly, trouble):
    ok("digest", "build", "-o", "d", stdin="http://a.test/\nHEAD http://a.test/h\n")
    assert ok("digest", "has", "d", "GET", "HTTP://A.TEST").lines \
        == ["GET HTTP://A.TEST"]
    assert ok("digest", "has", "d", "HEAD", "http://a.test/h",
              "http://a.test/").lines == ["HEAD http://a.test/h",
                                          "http://a.test/"]
    assert bly("digest", "has", "d", "HEAD", "http://a.test/").status == 1
    assert bly("digest", "has", "-q", "d", "http://a.test/").raw == b""
    assert ok("digest", "has", "-c", "d", "http://a.test/").out == "1\n"
    assert ok("digest", "has", "d", md5("http://a.test/").hex()).status == 0
    # The same file, by the commands for all formats.
    assert ok("has", "d", "http://a.test/").lines == ["http://a.test/"]
    assert ok("info", "--json", "d").json["format"] == "squid"
    trouble("digest", "has", "d", "PATCH", "http://a.test/", says="PATCH")
    trouble("digest", "has", "d", "GET", says="which URL")
    trouble("digest", "has", "d", stdin="http://a.test/x\n???\n",
            says=["standard input:2", "access.log"])
    trouble("digest", "has", "none", "http://a.test/", says="none")
    trouble("digest", "has", "-", stdin="x", says="cannot be both")
    (ok.path / "list").write_text("http://a.test/\n")
    trouble("digest", "has", "list", "http://a.test/", says="list")


def test_build_refuses(ok, trouble, bly):
    trouble("digest", "build", says="-o")
    trouble("digest", "build", "-o", "d", stdin="", says="nothing")
    trouble("digest", "build", "-o", "d", stdin="what?\n", says="swap.state")
    trouble("digest", "build", "-o", "d", "--bits", "128",
            stdin="http://a.test/\n", says="127")
    trouble("digest", "build", "-o", "d", "--fpr", "1e-9",
            stdin="http://a.test/\n", says="127")
    trouble("digest", "build", "-o", "d", "--bits", "9", "--fpr", "1%",
            says="give one")
    trouble("digest", "build", "-o", "d", "--items", "10", "--bits", "5",
            stdin="".join(f"http://a.test/{i}\n" for i in range(99)),
            says="65 %")
    assert not (ok.path / "d").exists()
    trouble("digest", "simulate", "--count", says="takes no --count")
    trouble("digest", "biuld", says="build")
    trouble("digest", says="which verb")
    # Cut by the log: told, since such URLs are never found.
    made = ok("digest", "build", "-o", "d",
              stdin=NATIVE.replace("a.test/1", "a.test/1?"))
    assert "strip_query_terms" in made.err


# --------------------------------------------------------------- simulating

def near(value, expected):
    return abs(value - expected) <= 0.2 * expected


def test_simulate_summaries_against_icp(ok):
    """16 proxies of 2000 documents, Zipf 0.8: within a fifth of a run of an
    implementation that shares nothing with this one."""
    argv = ["digest", "simulate", "--bits", "8", "--bits", "16", "--json",
            "--seed", "5"]
    s = ok(*argv).json
    assert s["counted"] == 200000
    assert near(s["local_hits"], 0.316)
    assert near(s["icp"]["remote_hits"], 0.372)
    assert near(s["icp"]["queries"], 10.26)
    by = {(r["bits"], r["threshold"]): r for r in s["summaries"]}
    for threshold, remote, false_misses, updates in [
            (0.01, 0.371, 0.0006, 0.51), (0.05, 0.368, 0.0040, 0.10),
            (0.10, 0.364, 0.0082, 0.05)]:
        r = by[8, threshold]
        assert near(r["remote_hits"], remote)
        assert abs(r["false_misses"] - false_misses) \
            <= max(0.2 * false_misses, 0.0003)
        assert near(r["updates"], updates)
        # What neighbours have is found or missed, and nothing else.
        assert r["remote_hits"] + r["false_misses"] \
            == pytest.approx(s["icp"]["remote_hits"])
    assert near(by[8, 0.01]["false_hits"], 0.227)
    assert near(by[16, 0.01]["false_hits"], 0.027)


def test_simulate_is_repeatable(ok):
    argv = ["digest", "simulate", "--requests", "20000", "--documents", "5000",
            "--cache", "200", "--bits", "8", "-T", "5%"]
    assert ok(*argv).raw == ok(*argv).raw
    assert ok(*argv, "--json").json != ok(*argv, "--json", "--seed", 1).json
    assert "ask all (ICP)" in ok(*argv).out


def test_simulate_by_hand(ok, trouble):
    """Two proxies take turns, so each document is asked for at one and then
    at the other. With news at every document it is found there; where a
    summary waits for ten of them, never."""
    (ok.path / "list").write_text(
        "".join(f"http://a.test/{i // 2}\n" for i in range(6)))
    s = ok("digest", "simulate", "list", "--proxies", 2, "--cache", 10,
           "--bits", 32, "-T", "10%", "-T", 1, "--warmup", "1e-9",
           "--json").json
    assert s["counted"] == 6 and s["local_hits"] == 0
    assert s["icp"]["remote_hits"] == 0.5 and s["icp"]["queries"] == 1
    soon, late = s["summaries"]
    assert (soon["remote_hits"], soon["false_misses"]) == (0.5, 0)
    assert (late["remote_hits"], late["false_misses"]) == (0, 0.5)
    assert soon["updates"] == 1 and late["updates"] == 0
    # One client is one proxy, and its second request is a local hit.
    (ok.path / "access.log").write_text("".join(
        f"179478187{i}.5 9 10.0.0.7 TCP_MISS/200 9 GET http://a.test/{i // 2} "
        "- HIER_DIRECT/1.2.3.4 -\n" for i in range(6)))
    s = ok("digest", "simulate", "access.log", "--warmup", "1e-9",
           "--json").json
    assert s["local_hits"] == 0.5 and s["icp"]["remote_hits"] == 0
    trouble("digest", "simulate", "list", "--zipf", "1", says="--zipf")
    trouble("digest", "simulate", "--proxies", "1", says="at least 2")
    trouble("digest", "simulate", "--proxies", "65", says="64")
    trouble("digest", "simulate", "-T", "0", says="--threshold")


def test_simulate_against_plain_caches(ok):
    """The same requests through caches that are lists."""
    draw = random.Random(7)
    asked = [int(300 * draw.random() ** 2) for _ in range(5000)]
    (ok.path / "list").write_text(
        "".join(f"http://a.test/{d}\n" for d in asked))
    caches, local, had = [[], [], []], 0, 0
    for i, document in enumerate(asked):
        mine = caches[i % 3]
        if document in mine:
            local += 1
            mine.remove(document)
        else:
            had += any(document in c for c in caches)
        mine.append(document)
        del mine[:-20]
    s = ok("digest", "simulate", "list", "--proxies", 3, "--cache", 20, "-T",
           "1%", "--bits", 8, "--warmup", "1e-9", "--json").json
    assert s["local_hits"] * 5000 == pytest.approx(local)
    assert s["icp"]["remote_hits"] * 5000 == pytest.approx(had)
    assert s["icp"]["queries"] * 5000 == pytest.approx(2 * (5000 - local))
    # News at every document: nothing is missed.
    assert s["summaries"][0]["false_misses"] == 0
    assert s["summaries"][0]["updates"] == s["icp"]["queries"]


# ------------------------------------------------------- hostile servers

@needs_curl
@pytest.mark.parametrize("body,says", [
    (block() + bytes(9), "9 follow"),
    (block() + bytes(11), "longer than its control block"),
    (block(bits=128, mask=160) + bytes(160), "would crash a Squid"),
    (block(mask=11) + bytes(11), "mask of 11"),
    (block(version=2) + bytes(10), "version 2"),
    (block(required=6) + bytes(10), "version 6"),
    (block(k=5) + bytes(10), "5 hash functions"),
    (block(capacity=0, mask=0), "0 entries"),
    (block(capacity=2**31, mask=2**31) + bytes(10), "2^31"),
    (b"", "header of 128"),
    (b"<html>", "header of 128"),
])
def test_hostile_digests_are_refused(trouble, body, says):
    with Peer(answer(body)) as peer:
        trouble("digest", "get", peer, "-o", "d", says=says)
    assert not (trouble.path / "d").exists()


@needs_curl
def test_fetches_are_bounded(trouble, ok):
    whole = answer(block() + bytes(10))
    with Peer(whole) as peer:
        got = ok("digest", "get", f"http://{peer}", "-o", "d", "--json").json
        assert got["capacity"] == 10 and got["url"] == f"http://{peer}{PATH}"
        assert (ok.path / "d").read_bytes() == block() + bytes(10)
        trouble("digest", "get", peer, "--max-size", 100, says="--max-size")
    with Peer(answer(block(capacity=2**26, bits=8, mask=2**26)), pour) as peer:
        trouble("digest", "get", peer, "--max-size", "1MiB", says="--max-size")
    with Peer(answer(block(capacity=2**26, bits=8, mask=2**26)), drip) as peer:
        trouble("digest", "get", peer, "--timeout", 1, says=peer)
    with Peer(answer(b"", "HTTP/1.1 404 Not Found")) as peer:
        trouble("digest", "get", peer, says="404")
    with Peer(answer(b"", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd")
              ) as peer:
        trouble("digest", "get", peer, says="302")
    trouble("digest", "get", f"127.0.0.1:{peer.rsplit(':')[-1]}",
            says="onnect")
    trouble("digest", "get", "file:///etc/passwd", says="rotocol")


# ------------------------------------------------------------------ serving

@needs_server
def test_serves_in_three_parts(ok, digest_file):
    body = digest_file.read_bytes()
    with Server("serve", digest_file, "--pause", 300) as s:
        # Header, control block, mask, each in a read of its own.
        head, control, *mask = s.ask(f"GET {PATH}")
        assert head.startswith(b"HTTP/1.1 200 ") and head.endswith(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"application/cache-digest" in head
        assert b"Expires: " in head and b"Last-Modified: " in head
        assert control == body[:128]
        assert b"".join(mask) == body[128:]
        assert b"".join(s.ask(f"GET {s.url}")).endswith(body)
        assert s.ask(f"HEAD {PATH}")[0].startswith(b"HTTP/1.1 200 ")
        for request, status in [
                ("GET http://a.test/1", 504), ("GET http://a.test", 504),
                ("GET /squid-internal-dynamic/netdb", 404), ("GET /", 404),
                (f"GET {PATH}/more", 404), ("POST /", 405)]:
            assert f" {status} ".encode() in s.ask(
                request, Cache_Control="only-if-cached")[0], request
        # Another file takes its place; a wrong one does not.
        ok("digest", "build", "-o", "d", stdin="http://b.test/\n")
        newer = digest_file.read_bytes()
        assert b"".join(s.ask(f"GET {PATH}")).endswith(newer)
        digest_file.write_bytes(b"nonsense")
        assert b"".join(s.ask(f"GET {PATH}")).endswith(newer)
        digest_file.unlink()
        assert b"".join(s.ask(f"GET {PATH}")).endswith(newer)
        s.stop(signal.SIGINT)
        assert s.told == {"requests": 12, "digests": 6}
        assert "still handed out" in s.err


@needs_server
def test_serves_no_digest_that_harms(trouble):
    for body, says in [(block(bits=128, mask=160) + bytes(160), "crash a Squid"),
                       (block() + bytes(9), "9 follow"),
                       (block() + b"\xff" * 10, "65")]:
        (trouble.path / "d").write_bytes(body)
        trouble("digest", "serve", "d", says=says)
    (trouble.path / "d").write_bytes(block() + bytes(10))
    trouble("digest", "serve", "d", "--listen", "here", says="HOST:PORT")
    trouble("digest", "serve", "d", "--listen", "127.0.0.1:99999",
            says="HOST:PORT")
    with socket.create_server(("127.0.0.1", 0)) as s:
        trouble("digest", "serve", "d", "--listen",
                f"127.0.0.1:{s.getsockname()[1]}", says="in use")


@needs_curl
@needs_server
def test_relay_keeps_what_it_has(ok, digest_file):
    """It is fetched anew once a copy has expired, and a proxy that is gone, or
    sends nonsense, does not take the last copy away."""
    body = digest_file.read_bytes()
    old = "HTTP/1.1 200 OK\r\nExpires: Thu, 01 Jan 1998 00:00:00 GMT"
    peer = Peer(answer(body, old))
    with peer as where, Server("relay", where, "--refresh", 1) as s:
        assert b"".join(s.ask(f"GET {PATH}")).endswith(body)
        peer.answer = answer(block() + bytes(10), old)
        wait_until(lambda: s.ask(f"GET {PATH}")[1:] == [block(), bytes(10)])
        peer.answer = answer(b"nonsense")
        n = peer.nasked
        wait_until(lambda: peer.nasked > n + 1)
        assert b"".join(s.ask(f"GET {PATH}")).endswith(block() + bytes(10))
        peer.close()
        assert b"".join(s.ask(f"GET {PATH}")).endswith(block() + bytes(10))
        s.stop()
        assert "header of 128" in s.err
    with Server("relay", "127.0.0.1:1") as s: # nobody there yet
        assert b" 404 " in s.ask(f"GET {PATH}")[0]


@needs_server
@pytest.mark.parametrize("variant", ["asan", "tsan"])
def test_many_at_once(digest_file, variant):
    """Answers run beside each other, and the end comes in the middle."""
    program = BUILD / variant / "bloomery"
    if not program.exists():
        pytest.skip(f"no {program}")
    body = digest_file.read_bytes()
    with Server("serve", digest_file, "--pause", 20, program=program) as s:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            b"".join(s.ask(f"GET {PATH}")))) for _ in range(20)]
        for t in threads:
            t.start()
        digest_file.touch()
        for t in threads:
            t.join()
        assert all(a.endswith(body) for a in answers) and len(answers) == 20
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            s.stop()


def test_without_its_program_it_says_so(bare, trouble, ok):
    for verb in "get", "serve", "relay":
        trouble("digest", verb, "x:1", program=bare,
                says=["bloomery-web", "libcurl, libmicrohttpd and libsodium"])
    ok("digest", "build", "-o", "d", stdin="http://a.test/\n", program=bare)
    assert "--listen" in ok("digest", "--help", program=bare).out


# ------------------------------------------------------------- real Squids

ODD = ["{origin}/Abc?x=1&y=%7e", "http://LOCALHOST:{port}/Upper",
       "http://127.1:{port}/short", "http://user@127.0.0.1:0{port}/login",
       "http://127.0.0.1:{port}#fragment", "http://127.0.0.1.:{port}/a/../b"]


@pytest.fixture(scope="module")
def origin():
    server = Origin()
    yield server
    server.close()


@pytest.fixture(scope="module")
def squid(origin):
    """A proxy with 600 pages and a few odd ones, and the list of them."""
    proxy = Squid()
    try:
        proxy.urls = [f"{origin.url}/item/{i}" for i in range(600)]
        for url in proxy.urls:
            proxy.get(url)
        proxy.odd = [u.format(origin=origin.url, port=origin.port) for u in ODD]
        for url in proxy.odd:
            assert " 200 " in proxy.send(f"GET {url}"), url
        yield proxy
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def whole_digest(squid, tmp_path_factory):
    """The file of its digest, fetched when all pages are in it."""
    path = tmp_path_factory.mktemp("digest") / "peer"
    lines = "".join(f"{url}\n" for url in squid.urls + squid.odd)

    def whole():
        if run("digest", "get", f"127.0.0.1:{squid.port}", "-o", path).status:
            return False
        return len(run("digest", "has", path, stdin=lines).lines) == 606
    wait_until(whole, every=1)
    return path


def sibling(squid, extra=""):
    return (f"cache_peer 127.0.0.1 sibling {squid.port} 0 no-query "
            f"no-netdb-exchange name=other {extra}\n")


def neighbour(squid, origin, extra=""):
    """A Squid that has the digest of another one."""
    proxy = Squid(sibling(squid, extra))
    try:
        proxy.get(f"{origin.url}/{proxy.name}")  # the first miss asks for it
        wait_until(lambda: "usable: yes" in proxy.page("peer_select"))
    except BaseException:
        proxy.close()
        raise
    return proxy


def answered(proxy, origin, n):
    """Its log, once there are n answers for pages of the origin in it."""
    wait_until(lambda: proxy.log("access.log").count(f" {origin.url}/") >= n)
    return proxy.log("access.log")


def count_hits(squid, origin, extra=""):
    """How many of the pages a neighbour finds there."""
    proxy = neighbour(squid, origin, extra)
    try:
        for url in squid.urls:
            assert proxy.get(url)[0] == 200
        return answered(proxy, origin, 601).count("CD_SIBLING_HIT/")
    finally:
        proxy.close()


@needs_squid
@needs_curl
def test_digest_of_a_squid(ok, squid, whole_digest):
    """The first example of docs/digest.md: a digest is fetched, a URL is asked for, and then all of a log."""
    assert ok("digest", "has", whole_digest, "GET", squid.urls[0]).lines == [f"GET {squid.urls[0]}"]
    assert int(ok("digest", "has", "-c", whole_digest, "-f", squid.folder / "access.log").out) >= 606
    got = ok("digest", "get", f"http://127.0.0.1:{squid.port}/", "--json").json
    assert got["expires"] > got["modified"] > 0
    assert got["params"]["bits_per_entry"] == 5 and got["entries"] >= 606
    absent = "".join(f"{u}/absent\n" for u in squid.urls)
    wrong = run("digest", "has", "-c", whole_digest, stdin=absent)
    assert int(wrong.out) < 600 * 0.2


@needs_squid
@needs_curl
def test_swap_state_and_log_of_a_squid(ok, squid, whole_digest):
    """A digest made without asking the proxy has all that its own has."""
    lines = "".join(f"{url}\n" for url in squid.urls + squid.odd)
    made = ok("digest", "build", "--from", squid.folder / "access.log", "-o",
              "of-log", "--json")
    assert made.json["unknown"] <= 5, made.err
    assert len(ok("digest", "has", "of-log", stdin=lines).lines) == 606

    def swapped():
        ok("digest", "build", "--from", squid.folder / "cache" / "swap.state",
           "-o", "of-swap")
        return len(run("digest", "has", ok.path / "of-swap",
                       stdin=lines).lines) == 606
    wait_until(swapped)


@needs_squid
@needs_curl
@needs_server
def test_relay_hands_a_digest_on_whole(squid, origin, whole_digest):
    """Two stock Squids: what one has, the other finds."""
    with Server("relay", f"127.0.0.1:{squid.port}", "--pause", 500) as relay:
        assert count_hits(squid, origin, f"digest-url={relay.url}") == 600
        relay.stop()
        assert relay.told["digests"] >= 1
    direct = count_hits(squid, origin)
    print(f"without the relay: {direct} of 600")
    assert direct <= 600


@needs_squid
@needs_curl
@needs_server
def test_squid_follows_a_digest_that_is_served(ok, squid, origin,
                                               whole_digest):
    """A digest that was made here sends a Squid to its sibling for what is in
    it, and to the origin for the rest."""
    ok("digest", "build", "-o", "d", "--fpr", "1e-5", stdin="".join(
        f"{u}\n" for u in squid.urls[:100]))
    with Server("serve", ok.path / "d", "--pause", 500) as server:
        proxy = neighbour(squid, origin, f"digest-url={server.url}")
        try:
            for url in squid.urls[:120]:
                assert proxy.get(url)[0] == 200
            log = answered(proxy, origin, 121)
            assert log.count("CD_SIBLING_HIT/") == 100
            assert log.count("HIER_DIRECT/") == 21
        finally:
            proxy.close()


@needs_squid
@needs_server
def test_served_as_a_sibling_it_has_nothing(ok, origin):
    """Asked for what its digest promises, it says 504, and the client gets the
    page from the origin."""
    urls = [f"{origin.url}/promised/{i}" for i in range(10)]
    ok("digest", "build", "-o", "d", stdin="".join(f"{u}\n" for u in urls))
    with Server("serve", ok.path / "d", "--pause", 500) as server:
        proxy = neighbour(server, origin)
        try:
            for url in urls:
                assert proxy.get(url) == (200, b"page " + url.removeprefix(
                    origin.url).encode())
            assert answered(proxy, origin, 11).count("HIER_DIRECT/") == 11
        finally:
            proxy.close()
        server.stop()
        assert server.told["requests"] >= 11
