"""Filters of other systems, with the systems themselves: what Guava, DCSO's
bloom, flor, Go's bits-and-blooms and a server with BF.* write from some keys is
what we write, to the byte, and either side answers from the other's file as the
other does. Where a program is not there its tests are skipped."""
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest
import redis_model
from conftest import PATIENCE, ROOT
from redis_support import Server, needs_server

PEERS = ROOT / "tests" / "peers"
VECTORS = ROOT.parent / "shared" / "vectors"

# All lengths that a hash treats differently, and more than one byte a letter.
TEXTS = [f"{'käse-' * (i % 9)}{i}" for i in range(2000)]
# Fewer letters and other numbers, of both signs and up to the ends.
INTS = [7 * i - 5000 for i in range(1998)] + [2**31 - 1, -(2**31)]
LONGS = [(i - 1000) * 9007199254740993 for i in range(1998)] + [2**63 - 1, -(2**63)]


def lines(keys):
    return "".join(f"{k}\n" for k in keys).encode()


def call(*argv, stdin=b"", env=None, cwd=None):
    done = subprocess.run(list(map(str, argv)), input=stdin, env=env, cwd=cwd,
                          capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def answers(bly, path, keys, *options):
    """Those of keys that our command says may be in a file."""
    result = bly("has", *options, path, "-f", "-", stdin=lines(keys))
    assert result.status in (0, 1), result.err
    return result.raw


def assert_plausible(out, keys, inside):
    """All that are inside, and of the others few, though not none at 10 %."""
    said = out.decode().splitlines()
    assert set(map(str, keys[:inside])) <= set(said)
    assert inside < len(said) < inside + 0.25 * (len(keys) - inside)


# ------------------------------------------------------------------- Guava

GUAVA = [pathlib.Path("/usr/share/java") / jar
         for jar in ("guava.jar", "guava-failureaccess.jar", "failureaccess.jar")]

FUNNELS = [("bytes", "bytes", TEXTS), ("string", "bytes", TEXTS),
           ("utf16", "utf16", TEXTS), ("int32", "int32", INTS),
           ("int64", "int64", LONGS)]


@pytest.fixture(scope="module")
def guava(tmp_path_factory):
    """Run any number of the peer's verbs; a list of what each printed."""
    if not shutil.which("javac") or not shutil.which("java") or not GUAVA[0].exists():
        pytest.skip("javac, java or libguava-java is not there")
    folder = tmp_path_factory.mktemp("guava")
    path = ":".join([str(folder), *(str(p) for p in GUAVA if p.exists())])
    call("javac", "-cp", path, "-d", folder, PEERS / "GuavaPeer.java")

    def run(*verbs):
        out = call("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8",
                   "-cp", path, "GuavaPeer", *[word for verb in verbs for word in verb])
        return out.split(b"--\n")[:-1]
    return run


def test_guava(ok, bly, guava):
    at = ok.path
    verbs = []
    for funnel, form, keys in FUNNELS:
        (at / f"{funnel}.in").write_bytes(lines(keys[:1000]))
        (at / f"{funnel}.all").write_bytes(lines(keys))
        ok("build", "-q", "--format", "guava", "-O", f"keys={form}", "--items", 1000, "-p", 0.1,
           "-o", f"{funnel}.ours", f"{funnel}.in")
        ok("build", "-q", "--format", "guava", "-O", f"keys={form}", "-O", "strategy=32",
           "--items", 1000, "-p", 0.1, "-o", f"{funnel}.old", f"{funnel}.in")
        verbs += [["make", funnel, 1000, 0.1, at / f"{funnel}.in", at / f"{funnel}.theirs"],
                  ["ask", funnel, 0, 0, at / f"{funnel}.all", at / f"{funnel}.ours"],
                  ["ask", funnel, 0, 0, at / f"{funnel}.all", at / f"{funnel}.old"]]
    said = guava(*verbs)
    for i, (funnel, form, keys) in enumerate(FUNNELS):
        assert (at / f"{funnel}.ours").read_bytes() == (at / f"{funnel}.theirs").read_bytes()
        for which, theirs in (("theirs", said[3 * i + 1]), ("old", said[3 * i + 2])):
            assert_plausible(theirs, keys, 1000)
            assert answers(bly, f"{funnel}.{which}", keys, "-O", f"keys={form}") == theirs


@pytest.mark.parametrize("n,p", [(1, 0.5), (10, 0.001), (100, 0.03), (12345, 1e-9)])
def test_guava_sizes(ok, guava, n, p):
    """As many bits and probes as Guava takes, with nothing in it."""
    (ok.path / "none").write_bytes(b"")
    guava(["make", "bytes", n, p, ok.path / "none", ok.path / "theirs"])
    ok("build", "-q", "--format", "guava", "--items", n, "-p", p, "-o", "ours", "none")
    assert (ok.path / "ours").read_bytes() == (ok.path / "theirs").read_bytes()


def test_keycloak(ok, guava):
    """Keycloak asks for password.toLowerCase(): the same filter, byte for byte, of all
    letters, and of capital sigmas wherever they may stand."""
    newer = "\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8"  # than Unicode 13, which Java 17 has
    words = [chr(c) + "x" for c in range(0x21, 0xd800) if chr(c).isalpha() and chr(c) not in newer]
    words += [before + "\u03a3" + behind for before in ("", "a", "1", "A'", "\u03b1\u0301")
              for behind in ("", "b", "2", "'", "'b", "\u0301 ", "\u03a3")]
    words += ["Passw0rd", "\u0130stanbul", "STRASSE", "GRO\u1e9e", "\u01c5", "\U00010400"]
    (ok.path / "words").write_text("\n".join(words) + "\n")
    guava(["make", "lower", len(words), 0.001, ok.path / "words", ok.path / "theirs"])
    ok("passwords", "build", "-q", "--words", "--format", "guava", "--items", len(words),
       "-o", "ours", "words")
    assert (ok.path / "ours").read_bytes() == (ok.path / "theirs").read_bytes()


# -------------------------------------------------------------------- DCSO

needs_bloom = pytest.mark.skipif(
    not shutil.which("bloom"), reason="golang-github-dcso-bloom-cli is not there")


@needs_bloom
@pytest.mark.parametrize("gzip", [[], ["--gzip"]])
def test_dcso(ok, bly, gzip):
    at = ok.path
    call("bloom", *gzip, "create", "-n", 1000, "-p", 0.1, at / "theirs")
    call("bloom", *gzip, "insert", at / "theirs", stdin=lines(TEXTS[:1000]))
    ok("build", "-q", "--format", "dcso", "--items", 1000, "-p", 0.1, "-o", "ours",
       stdin=lines(TEXTS[:1000]))
    if not gzip:
        assert (at / "ours").read_bytes() == (at / "theirs").read_bytes()
    theirs = call("bloom", *gzip, "check", at / "theirs", stdin=lines(TEXTS))
    assert_plausible(theirs, TEXTS, 1000)
    assert answers(bly, "theirs", TEXTS) == theirs
    assert call("bloom", "check", at / "ours", stdin=lines(TEXTS)) == theirs
    info = ok("info", "--json", "theirs").json
    shown = call("bloom", *gzip, "show", at / "theirs").decode()
    for word, name in (("Capacity", "capacity"), ("Elements present", "items"),
                       ("Bits", "bits"), ("Hash functions", "k")):
        assert re.search(rf"{word}:\s+(\d+)", shown)[1] == str(info[name])


@needs_bloom
@pytest.mark.parametrize("n,p", [(1, 0.5), (10, 0.001), (100, 0.03), (12345, 1e-9)])
def test_dcso_sizes(ok, n, p):
    call("bloom", "create", "-n", n, "-p", p, ok.path / "theirs")
    ok("build", "-q", "--format", "dcso", "--items", n, "-p", p, "-o", "ours")
    assert (ok.path / "ours").read_bytes() == (ok.path / "theirs").read_bytes()


@needs_bloom
def test_dcso_data(ok):
    """What the owner put behind the bits is theirs and ours."""
    ok("build", "-q", "--format", "dcso", "-O", "data=a note", "-o", "ours", stdin="key\n")
    assert call("bloom", "get-data", ok.path / "ours").strip() == b"a note"
    call("bloom", "set-data", ok.path / "ours", stdin=b"longer than before\n")
    assert ok("info", "--json", "ours").json["params"]["data_bytes"] == 19


def test_flor(ok, bly):
    flor = pytest.importorskip("flor", reason="python3-flor is not there")
    f = flor.BloomFilter(n=1000, p=0.1)
    for k in TEXTS[:1000]:
        f.add(k.encode())
    with open(ok.path / "theirs", "wb") as to:
        f.write(to)
    ok("build", "-q", "--format", "dcso", "--items", 1000, "-p", 0.1, "-o", "ours",
       stdin=lines(TEXTS[:1000]))
    assert (ok.path / "ours").read_bytes() == (ok.path / "theirs").read_bytes()
    g = flor.BloomFilter()
    with open(ok.path / "ours", "rb") as ours:
        g.read(ours)
    theirs = lines([k for k in TEXTS if k.encode() in g])
    assert_plausible(theirs, TEXTS, 1000)
    assert answers(bly, "theirs", TEXTS) == theirs


def test_dcso_upstream(ok, bly):
    """The files of DCSO's own tests."""
    folder = VECTORS / "dcso"
    if not folder.exists():
        pytest.skip("no vectors")
    keys = (folder / "upstream-test-input.txt").read_text().split()
    for name in ("upstream-test.bloom", "upstream-test.bloom.gz"):
        assert answers(bly, folder / name, [*keys, "another"]) == lines(keys)


# --------------------------------------------------------- bits-and-blooms

@pytest.fixture(scope="module")
def go(tmp_path_factory):
    """The peer, compiled."""
    source = pathlib.Path("/usr/share/gocode/src/github.com/bits-and-blooms/bloom")
    if not shutil.which("go") or not source.exists():
        pytest.skip("golang-go or golang-github-willf-bloom-dev is not there")
    folder = tmp_path_factory.mktemp("go")
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
           "GOCACHE": str(folder / "cache"), "GOFLAGS": "", "HOME": str(folder)}
    call("go", "build", "-o", folder / "peer", PEERS / "bits_and_blooms.go", env=env)
    return lambda *words, stdin=b"": call(folder / "peer", *words, stdin=stdin)


@pytest.mark.parametrize("form", ["binary", "json"])
def test_bits_and_blooms(ok, bly, go, form):
    at = ok.path
    go("make", form, 1000, 0.1, at / "theirs", stdin=lines(TEXTS[:1000]))
    ok("build", "-q", "--format", "bits-and-blooms", "-O", f"form={form}", "--items", 1000,
       "-p", 0.1, "-o", "ours", stdin=lines(TEXTS[:1000]))
    assert (at / "ours").read_bytes() == (at / "theirs").read_bytes()
    theirs = go("ask", form, 0, 0, at / "ours", stdin=lines(TEXTS))
    assert_plausible(theirs, TEXTS, 1000)
    assert answers(bly, "theirs", TEXTS) == theirs
    # What becomes of one form is the other, without the keys.
    other = "json" if form == "binary" else "binary"
    ok("convert", "-q", "--to", "bits-and-blooms", "-O", f"form={other}", "-o", "turned", "theirs")
    assert go("ask", other, 0, 0, at / "turned", stdin=lines(TEXTS)) == theirs


@pytest.mark.parametrize("n,p", [(1, 0.5), (10, 0.001), (100, 0.03), (12345, 1e-9)])
def test_bits_and_blooms_sizes(ok, go, n, p):
    go("make", "binary", n, p, ok.path / "theirs")
    ok("build", "-q", "--format", "bits-and-blooms", "--items", n, "-p", p, "-o", "ours")
    assert (ok.path / "ours").read_bytes() == (ok.path / "theirs").read_bytes()


# -------------------------------------------------------------- RedisBloom

@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server")) as s:
        yield s


def stream(r, key, family="BF"):
    """The file of a key: header and chunks."""
    out, at = b"", 0
    while True:
        at, data = r.execute_command(family + ".SCANDUMP", key, at)
        if at == 0:
            return out
        out += data


def asked(r, key, keys):
    found = r.execute_command("BF.MEXISTS", key, *keys)
    return lines([k for k, yes in zip(keys, found) if yes])


@needs_server
@pytest.mark.parametrize("scaling", ["yes", "no"])
def test_redisbloom(ok, bly, server, scaling):
    r = server.r
    r.delete("theirs", "ours")
    r.execute_command("BF.RESERVE", "theirs", 0.1, 1000, *(["NONSCALING"] if scaling == "no" else []))
    r.execute_command("BF.MADD", "theirs", *TEXTS[:1000])
    ok("build", "-q", "--format", "redisbloom", "-O", f"scaling={scaling}", "--items", 1000,
       "-p", 0.1, "-o", "ours", stdin=lines(TEXTS[:1000]))
    assert (ok.path / "ours").read_bytes() == stream(r, "theirs")
    ok("redis", "load", "ours", "ours", "--port", server.port)
    theirs = asked(r, "ours", TEXTS)
    assert_plausible(theirs, TEXTS, 1000)
    assert answers(bly, "ours", TEXTS) == theirs
    assert r.ttl("ours") == -1


@needs_server
def test_redisbloom_chain(ok, bly, trouble, server):
    """A chain that grew: dumped, asked, loaded under another name, grown on."""
    r = server.r
    port = ["--port", server.port]
    r.delete("chain", "copy")
    r.execute_command("BF.RESERVE", "chain", 0.1, 100)
    r.execute_command("BF.MADD", "chain", *TEXTS[:1000])
    dumped = ok("redis", "dump", "chain", "f", "--json", *port).json
    assert dumped == {"file": "f", "key": "chain", "format": "redisbloom",
                      "bytes": len(stream(r, "chain"))}
    assert (ok.path / "f").read_bytes() == stream(r, "chain")
    assert ok("redis", "dump", "chain", "-", *port).raw == stream(r, "chain")
    info = ok("info", "--json", "f").json
    assert info["filters"] == 4 and info["items"] == r.execute_command("BF.CARD", "chain")
    theirs = asked(r, "chain", TEXTS)
    assert_plausible(theirs, TEXTS, 1000)
    assert answers(bly, "f", TEXTS) == theirs
    ok("redis", "load", "f", "copy", "-q", *port)
    assert stream(r, "copy") == stream(r, "chain")
    for key in "chain", "copy":
        r.execute_command("BF.MADD", key, *TEXTS)
    assert stream(r, "copy") == stream(r, "chain")
    # What is there stays, unless it is a filter and the word was said.
    trouble("redis", "load", "f", "copy", *port, says=["copy:", "--replace"])
    assert stream(r, "copy") == stream(r, "chain")
    ok("redis", "load", "f", "copy", "--replace", *port)
    assert stream(r, "copy") == (ok.path / "f").read_bytes()
    r.set("text", "x")
    trouble("redis", "load", "f", "text", "--replace", *port, says=["text:", "string"])
    assert not r.keys("*:loading:*")


@needs_server
def test_redisbloom_in_pieces(ok, server):
    """More bytes than one chunk of ours holds, in a chain."""
    r = server.r
    r.delete("large", "copy")
    r.execute_command("BF.RESERVE", "large", 0.001, 5000000)
    r.execute_command("BF.MADD", "large", *TEXTS)
    ok("redis", "dump", "large", "f", "-q", "--port", server.port)
    ok("redis", "load", "f", "copy", "-q", "--port", server.port)
    assert (ok.path / "f").stat().st_size > 8 << 20
    assert stream(r, "copy") == stream(r, "large") == (ok.path / "f").read_bytes()


@needs_server
@pytest.mark.parametrize("reserve", [[0.1, 100], [0.01, 100, "EXPANSION", 4], [0.001, 2000], [0.01, 5000, "NONSCALING"]])
def test_add_to_a_dump_is_what_the_server_does(ok, server, reserve):
    """BF.ADD and then the dump, or the dump and then add: the same bytes."""
    r = server.r
    r.delete("k")
    r.execute_command("BF.RESERVE", "k", *reserve)
    r.execute_command("BF.MADD", "k", *TEXTS[:50])
    (ok.path / "f").write_bytes(stream(r, "k"))
    for part in TEXTS[20:900], TEXTS[500:501], TEXTS[900:]:
        added = sum(r.execute_command("BF.MADD", "k", *part))
        said = ok("add", "--json", "f", stdin=lines(part)).json
        assert said == {"file": "f", "keys": len(part), "new": added}
        assert (ok.path / "f").read_bytes() == stream(r, "k")
    assert ok("has", "-c", "f", stdin=lines(TEXTS)).out == "2000\n"


@needs_server
def test_add_to_a_cuckoo_dump_is_what_the_server_does(ok, server):
    r = server.r
    r.delete("k")
    r.execute_command("CF.RESERVE", "k", 200, "EXPANSION", 2)
    r.execute_command("CF.INSERT", "k", "ITEMS", *TEXTS[:50])
    (ok.path / "f").write_bytes(stream(r, "k", "CF"))
    r.execute_command("CF.INSERT", "k", "ITEMS", *TEXTS[20:900])
    ok("add", "f", stdin=lines(TEXTS[20:900]))
    assert (ok.path / "f").read_bytes() == stream(r, "k", "CF")
    info = ok("info", "--json", "f").json
    assert info["format"] == "rediscuckoo" and info["items"] == 930


@needs_server
def test_what_no_key_can_hold(ok, trouble, server):
    ok("build", "-q", "--format", "guava", "-o", "g", stdin="a\nb\n")
    trouble("redis", "load", "g", "key", "--port", server.port, says=["guava", "redisbloom"])
    ok("build", "-q", "--format", "redisbloom", "-o", "f", stdin="a\nb\n")
    damaged = bytearray((ok.path / "f").read_bytes())
    damaged[20] ^= 1
    (ok.path / "f").write_bytes(damaged)
    trouble("redis", "load", "f", "key", "--port", server.port, says="f:")
    assert not server.r.exists("key")


@needs_server
@pytest.mark.parametrize("name", ["nonscaling-1000-0.01", "scaling-100-0.01-with-1000-items"])
def test_redisbloom_files(ok, server, name):
    """What RedisBloom gave goes into a server here, and comes back."""
    files = sorted((VECTORS / "redisbloom").glob(name + ".*.bin"))
    if not files:
        pytest.skip("no vectors")
    whole = b"".join(f.read_bytes() for f in files)
    (ok.path / "f").write_bytes(whole)
    server.r.delete("k")
    ok("redis", "load", "f", "k", "-q", "--port", server.port)
    assert stream(server.r, "k") == whole
    assert all(server.r.execute_command("BF.MEXISTS", "k", *[f"item-{i}" for i in range(1000)]))


@needs_server
@pytest.mark.parametrize("options,n2", [(0, 12), (1, 0), (4, 12), (5, 0)])
def test_redisbloom_of_old_versions(ok, bly, server, options, n2):
    """Hashes of 32 bits and powers of two: places are computed by the model."""
    nbytes, k, rate = 512, 4, 0.1
    bits = bytearray(nbytes)
    for key in TEXTS[:800]:
        if options & 4:
            a = redis_model.murmur64a(key.encode(), 0xc6a4a7935bd1e995)
            b = redis_model.murmur64a(key.encode(), a)
        else:
            a = redis_model.murmur2(key.encode(), 0x9747b28c)
            b = redis_model.murmur2(key.encode(), a)
        for i in range(k):
            at = (a + i * b) % 2**64 % (2**n2 if n2 else 8 * nbytes)
            bits[at // 8] |= 1 << at % 8
    header = struct.pack("<QIII", 800, 1, options, 2) + struct.pack(
        "<QQQddIQB", nbytes, 8 * nbytes, 800, rate, 4.8, k, 800, n2)
    (ok.path / "f").write_bytes(header + bits)
    server.r.delete("old")
    ok("redis", "load", "f", "old", "-q", "--port", server.port)
    theirs = asked(server.r, "old", TEXTS)
    said = theirs.decode().splitlines()
    assert set(TEXTS[:800]) <= set(said) and len(said) < 1400
    assert answers(bly, "f", TEXTS) == theirs
