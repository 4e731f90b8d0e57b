"""BLY.*: every kind of the library, as the command's table has them."""
import time

import pytest
from conftest import KINDS, PATIENCE, kinds_that, run
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, server, Server)

pytestmark = needs_server

ADDED = kinds_that("add")
BUILT = kinds_that("build")
SURE = kinds_that("add", "has", without=["likely-no"])


def facts(r, key):
    flat = r.execute_command("BLY.INFO", key)
    return {k.decode(): v for k, v in zip(flat[::2], flat[1::2])}


def make(r, key, kind, first=0, n=500, options=()):
    assert r.execute_command("BLY.CREATE", key, kind, "CAPACITY", 1000, "FPR",
                             "0.01", "SEED", 5, *options) == b"OK"
    r.execute_command("BLY.ADD", key, *range(first, first + n))


def test_no_kind_is_left_out():
    assert set(ADDED) | set(BUILT) == set(KINDS) and len(SURE) > 10


@pytest.mark.parametrize("kind", ADDED)
def test_add_has_and_info(r, kind):
    make(r, "k", kind)
    info = facts(r, "k")
    assert info["kind"] == kind.encode() and info["bits"] > 0
    assert r.type("k") == b"bloomery-"
    if kind in SURE:
        assert all(r.execute_command("BLY.HAS", "k", *range(500)))
        others = r.execute_command("BLY.HAS", "k", *range(10000, 14000))
        # 4000 at 1 %: 40, six standard deviations are 38.
        assert sum(others) < 80 or "fpr_at_capacity" not in info \
            or float(info["fpr_at_capacity"] or 1) > 0.011
        fresh = r.execute_command("BLY.ADD", "k", 1, 2, 3)
        assert fresh == [0, 0, 0]
    elif kind not in kinds_that("has"):
        assert "cannot say" in error_of(r, "BLY.HAS", "k", "a")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kind_cannot_do_is_said(r, kind):
    if kind in BUILT:
        assert "BLY.IMPORT" in error_of(r, "BLY.CREATE", "k", kind)
        return
    make(r, "k", kind)
    for command, ability in (("REMOVE", "remove"), ("COUNT", "count"),
                             ("GET", "get")):
        if kind not in kinds_that(ability):
            assert kind in error_of(r, "BLY." + command, "k", "a")
    if kind not in kinds_that("resize"):
        assert kind in error_of(r, "BLY.RESIZE", "k", 5000)
    if kind not in kinds_that("tick"):
        assert kind in error_of(r, "BLY.TICK", "k", 5)
    make(r, "l", kind)
    for command, ability in (("MERGE", "merge"), ("COMPARE", "compare")):
        if kind not in kinds_that(ability):
            assert kind in error_of(r, "BLY." + command, "k", "l")


@pytest.mark.parametrize("kind", kinds_that("add", "remove", "has"))
def test_remove(r, kind):
    # One kind counts what it is to remove only if that was asked for.
    make(r, "k", kind, options=["removal", "yes"] if kind == "elastic" else [])
    gone = 0
    for i in range(100):
        reply, = r.execute_command("BLY.REMOVE", "k", i)
        if isinstance(reply, Exception): # a kind that cannot for every key
            assert "cannot be removed" in str(reply), reply
        else:
            gone += reply
    assert gone > 20
    assert all(r.execute_command("BLY.HAS", "k", *range(100, 500)))
    left = sum(r.execute_command("BLY.HAS", "k", *range(100)))
    assert left <= 100 - gone + 15
    assert r.execute_command("BLY.REMOVE", "k", "never") in ([0], [1])


@pytest.mark.parametrize("kind", kinds_that("add", "count"))
def test_count(r, kind):
    make(r, "k", kind, n=50)
    r.execute_command("BLY.ADD", "k", *["often"] * 9)
    (often, once) = r.execute_command("BLY.COUNT", "k", "often", 7)
    if kind == "spacecode":  # estimates
        assert often > once >= 0
    else:
        assert often >= 9 and once >= 1


@pytest.mark.parametrize("kind", ADDED)
def test_few_bits_and_many_keys_survive_a_reload(r, kind):
    """A filter far past its capacity is saved like any other: a server that
    cannot read its own file does not start again."""
    try:
        r.execute_command("BLY.CREATE", "k", kind, "CAPACITY", 1500, "BITS",
                          9000)
    except redis.ResponseError:  # too little for its counters: as little as goes
        r.execute_command("BLY.CREATE", "k", kind, "CAPACITY", 1500, "FPR",
                          "0.3")
    for at in range(0, 30000, 1000):
        try:
            r.execute_command("BLY.ADD", "k", *range(at, at + 1000))
        except redis.ResponseError as e:
            assert "full" in str(e)
            break
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "k")
    r.execute_command("DEBUG", "RELOAD")
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "k") == before


@pytest.mark.parametrize("kind", kinds_that("add", "merge"))
def test_merge(r, kind):
    make(r, "a", kind, n=300)
    make(r, "b", kind, first=200, n=300)
    assert r.execute_command("BLY.MERGE", "new", "a", "b") == b"OK"
    assert r.execute_command("BLY.MERGE", "a", "b") == b"OK"
    if kind in SURE:
        for key in ("a", "new"):
            assert all(r.execute_command("BLY.HAS", key, *range(500)))
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "a")
    r.execute_command("BLY.CREATE", "other", kind, "CAPACITY", 9000, "SEED", 6)
    for bad in (("b", "other"), ("b", "none")):
        error_of(r, "BLY.MERGE", "a", *bad)
        assert r.execute_command("DEBUG", "DIGEST-VALUE", "a") == before


@pytest.mark.parametrize("kind", kinds_that("add", "compare"))
def test_compare(r, kind):
    make(r, "a", kind)
    make(r, "b", kind, first=250)
    flat = r.execute_command("BLY.COMPARE", "a", "b")
    like = {k.decode(): v and float(v)
            for k, v in zip(flat[::2], flat[1::2])}
    if like["intersection"] is not None:
        assert 100 < like["intersection"] < 400
    if like["jaccard"] is not None:
        assert 0.1 < like["jaccard"] < 0.6
    assert "not found" in error_of(r, "BLY.COMPARE", "a", "none")


@pytest.mark.parametrize("kind", kinds_that("add", "resize"))
def test_resize(r, kind):
    """A filter that is full gets room for its next keys, and knows its old
    ones: from 100 to 20,000 at a rate that allows for it."""
    r.execute_command("BLY.CREATE", "k", kind, "CAPACITY", 100, "FPR", "5e-5")
    room, resized = 100, 0
    for at in range(0, 20000, 50):
        if at + 50 > room:
            room *= 2
            assert r.execute_command("BLY.RESIZE", "k", room) == b"OK"
            resized += 1
        assert not any(isinstance(x, Exception) for x in r.execute_command(
            "BLY.ADD", "k", *range(at, at + 50)))
    assert resized == 8 and facts(r, "k")["capacity"] == room
    assert all(r.execute_command("BLY.HAS", "k", *range(20000)))
    # 20,000 at 1 % are 200.
    hits = sum(r.execute_command("BLY.HAS", "k", *range(10**6, 10**6 + 20000)))
    assert hits < 200 + 6 * 15
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "k")
    for bad in ("0", "-1", "x", "", 2**60):
        error_of(r, "BLY.RESIZE", "k", bad)
        assert r.execute_command("DEBUG", "DIGEST-VALUE", "k") == before


# ---------------------------------------------------------------------- files

def take(r, key, data, piece=5000):
    for at in range(0, len(data), piece):
        answer = r.execute_command("BLY.IMPORT", key, at, len(data),
                                   data[at:at + piece])
        assert answer == b"OK"


def give(r, key, piece=3000):
    whole, size = b"", 1
    while len(whole) < size:
        size, data = r.execute_command("BLY.EXPORT", key, len(whole), piece)
        assert data
        whole += data
    return whole


def built(folder, kind, *options):
    valued = kind in kinds_that("build", "get")
    text = "".join(f"{i}\t{i * 3}\n" if valued else f"{i}\n"
                   for i in range(700))
    path = folder / "f.bly"
    done = run("build", "-q", "-k", kind, *options, "-o", path, stdin=text)
    assert done.status == 0, done.err
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_goes_in_and_comes_out_the_same(r, tmp_path, kind):
    path = built(tmp_path, kind)
    data = path.read_bytes()
    take(r, "k", data)
    assert give(r, "k") == data
    if kind in kinds_that("has", without=["likely-no"]):
        assert all(r.execute_command("BLY.HAS", "k", *range(700)))
    if kind in kinds_that("build", "get"):
        assert r.execute_command("BLY.GET", "k", 5, 600) == [15, 1800]
    if kind in BUILT:
        assert kind in error_of(r, "BLY.ADD", "k", "x")
    run("compress", "-q", "-o", path, path)
    coded = path.read_bytes()
    if coded != data:
        take(r, "coded", coded)
        assert give(r, "coded", 10**6) == coded
        assert r.execute_command("BLY.INFO", "coded")
    # What the server gives is a file for the command.
    (tmp_path / "out.bly").write_bytes(give(r, "k"))
    assert run("info", tmp_path / "out.bly").status == 0


def test_a_damaged_piece(r, tmp_path):
    data = bytearray(built(tmp_path, "blocked").read_bytes())
    data[-200] ^= 1
    with pytest.raises(redis.exceptions.ResponseError,
                       match="(?i)damage|checksum"):
        take(r, "k", bytes(data))
    assert not r.exists("k")


def test_items_are_what_the_file_says(r, tmp_path):
    """An integer for a file of integers, or an error; never a 0 for a key that
    is there. What the file says is kept in copies and dumps."""
    data = built(tmp_path, "counting", "--int", "--note", "a note").read_bytes()
    take(r, "k", data)
    assert r.execute_command("BLY.HAS", "k", 7, "007", "+7", 7000) == \
        [1, 1, 1, 0]
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "k")
    for command in ("HAS", "ADD", "REMOVE", "COUNT"):
        assert "a whole number" in error_of(r, "BLY." + command, "k", 7, "x")
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "k") == before
    assert r.execute_command("BLY.ADD", "k", "07000") == [1]
    assert r.execute_command("BLY.COUNT", "k", 7000) == [1]
    assert r.execute_command("BLY.REMOVE", "k", "7000") == [1]
    dump = r.dump("k")
    r.delete("k")
    r.restore("k", 0, dump)
    (tmp_path / "out.bly").write_bytes(give(r, "k"))
    told = run("info", "--json", tmp_path / "out.bly").json
    assert told["key_type"] == "int64" and told["note"] == "a note"
    # Folded text is asked as it was added.
    take(r, "t", built(tmp_path, "blocked", "-i").read_bytes())
    r.execute_command("BLY.ADD", "t", "\u00c9tude")
    assert r.execute_command("BLY.HAS", "t", "\u00e9TUDE", 7) == [1, 1]


@pytest.mark.parametrize("kind", kinds_that("range"))
def test_ranges(r, tmp_path, kind):
    """As the library says: never a 0 where there is a key, and a 1 is rare
    where there is none."""
    keys = [-5, 0, 7, *range(1000, 10**6, 997)]
    (tmp_path / "in").write_text("".join(f"{k}\n" for k in keys))
    run("build", "--kind", kind, "--int", "--fpr", "0.001", "-o",
        tmp_path / "f.bly", tmp_path / "in")
    take(r, "k", (tmp_path / "f.bly").read_bytes())
    assert all(r.execute_command("BLY.HAS", "k", *keys))
    ask = ["BLY.HASRANGE", "k"]
    for k in keys:
        ask += [k - 3, k, k, k + 9, k, k]
    assert r.execute_command(*ask) == [1] * (3 * len(keys))
    gaps = sum(([k + 1, k + 200] for k in keys[3:]), [])
    assert sum(r.execute_command("BLY.HASRANGE", "k", *gaps)) < 30
    assert r.execute_command("BLY.HASRANGE", "k", "-005", -5) == [1]
    assert "before it begins" in error_of(r, "BLY.HASRANGE", "k", 1, 2, 9, 8)
    assert "whole number" in error_of(r, "BLY.HASRANGE", "k", 1, "x")
    assert "wrong number" in error_of(r, "BLY.HASRANGE", "k", 1, 2, 3)
    assert "not found" in error_of(r, "BLY.HASRANGE", "none", 1, 2)
    r.execute_command("BLY.CREATE", "c", "classic")
    assert "classic" in error_of(r, "BLY.HASRANGE", "c", 1, 2)
    # Text in the order of its bytes; an end stands for what begins with it.
    (tmp_path / "in").write_text("cabbage\ncarrot\n")
    run("build", "--kind", kind, "-o", tmp_path / "t.bly", tmp_path / "in")
    take(r, "t", (tmp_path / "t.bly").read_bytes())
    assert r.execute_command("BLY.HASRANGE", "t", "ca", "ca", "carrot", "d",
                             "potatoes", "potatoes") == [1, 1, 0]


def test_pieces_out_of_order_and_unfinished(server, r, tmp_path):
    data = built(tmp_path, "blocked").read_bytes()
    r.execute_command("BLY.IMPORT", "k", 0, len(data), data[:100])
    assert "in order" in error_of(r, "BLY.IMPORT", "k", 50, len(data), b"x")
    assert f"100 of {len(data)} bytes" in error_of(r, "BLY.HAS", "k", "a")
    dump = r.dump("k")
    r.delete("k")
    r.restore("k", 0, dump)
    take_rest = r.execute_command("BLY.IMPORT", "k", 100, len(data),
                                  data[100:])
    assert take_rest == b"OK" and give(r, "k") == data
    assert "item exists" in error_of(r, "BLY.IMPORT", "k", 0, 5, b"x")


# ----------------------------------------------------------- time and copies

def test_aging_forgets_with_time(r):
    r.execute_command("BLY.CREATE", "k", "aging", "CAPACITY", 100,
                      "turn", "time", "seconds", 3600)
    r.execute_command("BLY.ADD", "k", "old")
    assert r.execute_command("BLY.HAS", "k", "old") == [1]
    now = int(time.time())
    r.execute_command("BLY.TICK", "k", now + 4000)
    r.execute_command("BLY.ADD", "k", "new")
    assert r.execute_command("BLY.HAS", "k", "new") == [1]
    r.execute_command("BLY.TICK", "k", now + 100000)
    assert r.execute_command("BLY.HAS", "k", "old") == [0]
    assert "seconds" in error_of(r, "BLY.TICK", "k", "soon")


def test_replicas_and_logs_hold_the_same(tmp_path):
    """Every kind, written to in every way it can be."""
    with Server(tmp_path / "a", "--appendonly", "yes", "--appendfsync",
                "always", "--aof-use-rdb-preamble", "no",
                "--repl-diskless-sync-delay", 0) as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port,
                   module_args=["bly-memory-limit", 1]) as b:
        while b.r.info("replication")["master_link_status"] != "up":
            time.sleep(0.05)
        for kind in KINDS:
            if kind in BUILT:
                take(a.r, kind, built(tmp_path, kind).read_bytes())
                continue
            make(a.r, kind, kind)
            if kind in kinds_that("remove"):
                for i in range(5):
                    try:
                        a.r.execute_command("BLY.REMOVE", kind, i)
                    except redis.exceptions.ResponseError:
                        pass
            if kind in kinds_that("merge"):
                make(a.r, "other", kind, first=400)
                a.r.execute_command("BLY.MERGE", kind, "other")
                a.r.delete("other")
            if kind in kinds_that("resize"):
                a.r.execute_command("BLY.RESIZE", kind, 4000)
            if kind in kinds_that("tick"):
                a.r.execute_command("BLY.TICK", kind, int(time.time()) + 50)
        a.r.execute_command("BLY.IMPORT", "half", 0, 100, b"x" * 60)
        keys = [*KINDS, "half"]

        def digests(r):
            return dict(zip(keys, r.execute_command(
                "DEBUG", "DIGEST-VALUE", *keys)))

        before = digests(a.r)
        assert len(set(before.values())) == len(keys)
        assert a.r.wait(1, PATIENCE * 1000) == 1
        assert digests(b.r) == before
        a.kill()
        a.start()
        assert digests(a.r) == before, "the log as it was written"
        a.r.bgrewriteaof()
        while a.r.info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.05)
        assert a.r.info("persistence")["aof_last_bgrewrite_status"] == "ok"
        a.kill()
        a.start()
        assert digests(a.r) == before, "the log written anew"
        for key in KINDS:
            a.r.execute_command("COPY", key, "copy", "REPLACE")
            assert a.r.execute_command("DEBUG", "DIGEST-VALUE", "copy") == \
                [before[key]]


def test_an_add_that_stops_in_the_middle(tmp_path):
    """The limit lets a filter grow so far; what was added is on the replica,
    and no more."""
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0,
                module_args=["bly-memory-limit", 2000]) as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port) as b:
        while b.r.info("replication")["master_link_status"] != "up":
            time.sleep(0.05)
        a.r.execute_command("BLY.CREATE", "k", "scalable", "CAPACITY", 100)
        answers = a.r.execute_command("BLY.ADD", "k", *range(5000))
        errors = [x for x in answers if isinstance(x, Exception)]
        assert 4000 < len(errors) < 5000 and "limit" in str(errors[0])
        assert a.r.wait(1, PATIENCE * 1000) == 1
        assert a.r.execute_command("DEBUG", "DIGEST-VALUE", "k") == \
            b.r.execute_command("DEBUG", "DIGEST-VALUE", "k")


def test_a_filter_of_unknown_size_grows_within_its_rate(r):
    """From 100 to 200,000 keys: never more than 27 bits per key on the way from
    10,000 on, and the rate of 1 % is kept. (docs/redis.md says why it cannot
    be 16 at every moment.)"""
    r.execute_command("BLY.CREATE", "k", "scalable")
    most = 0
    for at in range(0, 200000, 2000):
        r.execute_command("BLY.ADD", "k", *range(at, at + 2000))
        if at >= 10000:
            most = max(most, facts(r, "k")["bits"] / (at + 2000))
    assert 15 < most < 27
    hits = sum(sum(r.execute_command("BLY.HAS", "k", *range(at, at + 2000)))
               for at in range(10**6, 10**6 + 40000, 2000))
    assert hits < 400 + 6 * 20
    for at in range(0, 200000, 20000):
        assert all(r.execute_command("BLY.HAS", "k", *range(at, at + 20000)))


def test_counters_that_grow(r):
    """Spectral counters become wider, in the server and in what it writes."""
    make(r, "k", "spectral")
    before = facts(r, "k")["bits"]
    for i in range(200):
        r.execute_command("BLY.ADD", "k", *range(i, 200))
    assert facts(r, "k")["bits"] > before
    counts = r.execute_command("BLY.COUNT", "k", *range(200))
    assert all(count >= i + 2 for i, count in enumerate(counts))
    dump = r.dump("k")
    r.restore("l", 0, dump)
    assert r.execute_command("BLY.COUNT", "l", *range(200)) == counts
    make(r, "m", "spectral")
    r.execute_command("BLY.MERGE", "m", "k")
    both = r.execute_command("BLY.COUNT", "m", *range(200))
    assert all(b >= c for b, c in zip(both, counts))


def test_type_of_keys(r):
    """BLY.CREATE says it, and it goes where the filter goes."""
    def bly(*words):
        return r.execute_command("BLY." + words[0], *words[1:])
    bly("CREATE", "ids", "blocked", "KEYS", "int64")
    assert bly("ADD", "ids", "7", "-1") == [1, 1]
    assert bly("HAS", "ids", "007", "+7", "-1", "8") == [1, 1, 1, 0]
    assert "whole number" in error_of(r, "BLY.ADD", "ids", "seven")
    assert "whole number" in error_of(r, "BLY.HAS", "ids", "9223372036854775808")
    r.restore("copy", 0, r.dump("ids"))
    for key in ("ids", "copy"):
        info = bly("INFO", key)
        assert dict(zip(info[::2], info[1::2]))[b"keys"] == b"int64"
        assert bly("HAS", key, "0007") == [1]
    bly("CREATE", "names", "blocked", "KEYS", "TEXT")
    bly("CREATE", "more", "blocked")
    bly("ADD", "names", "007")
    assert bly("HAS", "names", "007", "7") == [1, 0]
    assert "int64" in error_of(r, "BLY.MERGE", "names", "ids")
    assert "bad value for KEYS" in error_of(r, "BLY.CREATE", "x", "blocked",
                                            "KEYS", "float")
    assert "bad value for KEYS" in error_of(r, "BLY.CREATE", "x", "blocked",
                                            "KEYS", "")


def test_no_merge_misses_an_item(r):
    """Filters of every type, and of none: what a merge takes, it finds."""
    types = (None, "text", "bytes", "int64", "uint64")
    merged = set()
    for a in types:
        for b in types:
            r.flushall()
            for key, type_, items in (("a", a, ("7", "12")),
                                      ("b", b, ("7", "30"))):
                words = ("KEYS", type_) if type_ else ()
                r.execute_command("BLY.CREATE", key, "blocked", *words)
                r.execute_command("BLY.ADD", key, *items)
            try:
                r.execute_command("BLY.MERGE", "a", "b")
                merged.add((a, b))
                r.execute_command("BLY.COMPARE", "a", "b")
            except redis.exceptions.ResponseError as e:
                assert (a, b) not in merged and "keys" in str(e)
                assert "keys" in error_of(r, "BLY.COMPARE", "a", "b")
                assert r.execute_command("BLY.HAS", "a", "7", "12") == [1, 1]
                continue
            assert r.execute_command("BLY.HAS", "a", "7", "12", "30") == \
                [1, 1, 1]
    assert merged >= {(t, t) for t in types}
    assert not r.exists("x")


@pytest.mark.parametrize("change", [
    ["BLY.ADD", "k", "another"], ["BLY.MERGE", "k", "other"], ["BLY.RESIZE", "k", 5000], ["DEL", "k"]], ids=lambda c: c[0])
def test_pieces_of_two_filters_are_not_given_as_one_file(r, change):
    kind = "quotient"
    for key in ("k", "other"):
        r.execute_command("BLY.CREATE", key, kind, "CAPACITY", 1000)
    r.execute_command("BLY.ADD", "other", "x")
    r.execute_command("BLY.ADD", "k", "y")
    assert "offset 0" in error_of(r, "BLY.EXPORT", "k", 100), "nobody asked for the first piece"
    size, first = r.execute_command("BLY.EXPORT", "k", 0, 100)
    r.execute_command("BLY.HAS", "k", "y")
    same, _ = r.execute_command("BLY.EXPORT", "k", 100, 100)
    assert same == size
    r.execute_command(*change)
    if change[0] == "DEL":
        r.execute_command("BLY.CREATE", "k", kind, "CAPACITY", 1000)
    assert "has changed" in error_of(r, "BLY.EXPORT", "k", 200)
    size, whole = r.execute_command("BLY.EXPORT", "k", 0)
    assert len(whole) == size and whole[:100] != first
    r.execute_command("BLY.EXPORT", "k", 100)
