"""BF.* in a real server, by the rules of RedisBloom and of valkey-bloom."""
import math
import os
import random
import struct

import pytest
import redis_model as model
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, server)

pytestmark = needs_server

SEED = bytes(range(100, 132))


def bf(r, *words):
    return r.execute_command(*words)


def stream(r, key, command="BF.SCANDUMP"):
    """Header and bits, as SCANDUMP gives them."""
    at, header = bf(r, command, key, 0)
    out = b""
    while True:
        at, data = bf(r, command, key, at)
        if not at:
            return header, out
        out += data


# ---------------------------------------------------------------- RedisBloom

def test_sizes_that_clients_know(r):
    bf(r, "BF.RESERVE", "a", "0.001", 100)
    assert bf(r, "BF.INFO", "a", "SIZE") == [296]
    bf(r, "BF.ADD", "d", "x")
    assert bf(r, "BF.INFO", "d") == [
        b"Capacity", 100, b"Size", 240, b"Number of filters", 1,
        b"Number of items inserted", 1, b"Expansion rate", 2]
    assert r.type("d") == b"MBbloom--"


def test_debug_of_a_grown_filter(r):
    bf(r, "BF.RESERVE", "k", "0.01", 10)
    bf(r, "BF.MADD", "k", *range(1, 101))
    lines = bf(r, "BF.DEBUG", "k")
    assert lines[0] == b"size:99"
    assert [(l.split()[0], l.split()[2], l.split()[4], l.split()[6])
            for l in lines[1:]] == [
        (b"bytes:16", b"hashes:8", b"capacity:10", b"ratio:0.005"),
        (b"bytes:32", b"hashes:9", b"capacity:20", b"ratio:0.0025"),
        (b"bytes:72", b"hashes:10", b"capacity:40", b"ratio:0.00125"),
        (b"bytes:160", b"hashes:11", b"capacity:80", b"ratio:0.000625")]


def test_add_and_ask(r):
    assert bf(r, "BF.ADD", "k", "a") == 1
    assert bf(r, "BF.ADD", "k", "a") == 0
    assert bf(r, "BF.MADD", "k", "a", "", b"\0\xff") == [0, 1, 1]
    assert bf(r, "BF.MEXISTS", "k", "a", "", b"\0\xff", "zz") == [1, 1, 1, 0]
    assert bf(r, "BF.EXISTS", "k", "a") == 1
    assert bf(r, "BF.CARD", "k") == 3
    r.set("text", "t")
    assert bf(r, "BF.EXISTS", "text", "a") == 0
    assert bf(r, "BF.MEXISTS", "none", "a", "b") == [0, 0]
    assert bf(r, "BF.CARD", "none") == 0


def test_a_full_filter_stops_the_array(r):
    bf(r, "BF.RESERVE", "k", "0.01", 2, "NONSCALING")
    reply = bf(r, "BF.MADD", "k", "a", "b", "c", "d")
    assert reply[:2] == [1, 1] and len(reply) == 3
    assert str(reply[2]) == "non scaling filter is full"
    assert error_of(r, "BF.ADD", "k", "c") == "non scaling filter is full"
    assert bf(r, "BF.INFO", "k")[-1] is None


def test_insert_abbreviated(r):
    assert bf(r, "BF.INSERT", "k", "CAP", 300, "ERR", "0.001", "EXP", 4, "I",
              "a", "b") == [1, 1]
    assert bf(r, "BF.INFO", "k")[1] == 300
    assert bf(r, "BF.INFO", "k", "EXPANSION") == [4]


def test_resp3(server, r):
    out = server.cli("-3", "bf.add", "k", "a").stdout
    assert out.strip() == b"true" or b"(true)" in out
    out = server.cli("-3", "bf.info", "k", "capacity").stdout
    assert b"Capacity" in out and b"100" in out


@pytest.mark.parametrize("words, says", [
    (["BF.RESERVE", "n", "x", 1], "bad error rate"),
    (["BF.RESERVE", "n", "nan", 1], "bad error rate"),
    (["BF.RESERVE", "n", 0, 1],
     "error rate must be in the range (0.000000, 1.000000)"),
    (["BF.RESERVE", "n", 1, 1],
     "error rate must be in the range (0.000000, 1.000000)"),
    (["BF.RESERVE", "n", 0.1, "x"], "bad capacity"),
    (["BF.RESERVE", "n", 0.1, 0],
     "capacity must be in the range [1, 1073741824]"),
    (["BF.RESERVE", "n", 0.1, 1 << 62],
     "capacity must be in the range [1, 1073741824]"),
    (["BF.RESERVE", "n", 0.1, 1, "EXPANSION"], "no expansion"),
    (["BF.RESERVE", "n", 0.1, 1, "EXPANSION", "x"], "bad expansion"),
    (["BF.RESERVE", "n", 0.1, 1, "NONSCALING", "EXPANSION", 2],
     "Nonscaling filters cannot expand"),
    (["BF.RESERVE", "n", 0.1, 1, "EXPANSION", 32769],
     "expansion must be in the range [0, 32768]"),
    (["BF.RESERVE", "old", 0.1, 1], "item exists"),
    (["BF.RESERVE", "text", 0.1, 1],
     "WRONGTYPE Operation against a key holding the wrong kind of value"),
    (["BF.RESERVE", "n", 0.1],
     "wrong number of arguments for 'bf.reserve' command"),
    (["BF.INSERT", "n", "CAPACITY", "x", "ITEMS", "a"], "Bad capacity"),
    (["BF.INSERT", "n", "ERROR", "2", "ITEMS", "a"], "Bad error rate"),
    (["BF.INSERT", "n", "EXPANSION", "-1", "ITEMS", "a"], "Bad expansion"),
    (["BF.INSERT", "n", "JUNK", "1", "ITEMS", "a"],
     "Unknown argument received"),
    (["BF.INSERT", "n", "CAPACITY", "10", "a"], "Unknown argument received"),
    (["BF.INSERT", "n", "NOCREATE", "ERROR"],
     "wrong number of arguments for 'bf.insert' command"),
    (["BF.INSERT", "n", "NOCREATE", "ITEMS", "a"], "not found"),
    (["BF.INSERT", "n", "CAPACITY", "10", "ITEMS"],
     "wrong number of arguments for 'bf.insert' command"),
    (["BF.INFO", "n"], "not found"),
    (["BF.INFO", "old", "COLOUR"], "Invalid information value"),
    (["BF.SCANDUMP", "old", "x"], "Second argument must be numeric"),
    (["BF.SCANDUMP", "n", 0], "not found"),
    (["BF.SCANDUMP", "n", "x"], "not found"),
    (["BF.LOADCHUNK", "n", "x", "d"], "Second argument must be numeric"),
    (["BF.LOADCHUNK", "n", 1, "d"], "received bad data"),
    (["BF.LOADCHUNK", "n", 1, b"\xff" * 73], "received bad data"),
    (["BF.LOADCHUNK", "n", 7, "d"], "not found"),
    (["BF.LOADCHUNK", "old", 1 << 50, "d"], "invalid offset - no link found"),
    (["BF.LOADCHUNK", "old", 1001, "d" * 1000],
     "invalid chunk - Too big for current filter"),
    (["BF.CARD", "text"],
     "WRONGTYPE Operation against a key holding the wrong kind of value"),
    (["BF.ADD", "old"], "wrong number of arguments for 'bf.add' command"),
])
def test_errors(r, server, words, says):
    r.set("text", "t")
    bf(r, "BF.RESERVE", "old", 0.01, 100)
    assert error_of(r, *words) == says
    assert not r.exists("n") and server.is_alive()


def test_a_dump_of_one_that_does_not_grow(r):
    """It has the usual growth, as in RedisBloom, and as BF.SCANDUMP gives it:
    0 items, 1 sub-filter, options 13, growth 2."""
    bf(r, "BF.RESERVE", "k", "0.01", 100, "NONSCALING")
    assert r.dump("k")[10:18] == b"\2\0\2\1\2\x0d\2\2"
    assert bf(r, "BF.SCANDUMP", "k", 0)[1][12:20] == b"\x0d\0\0\0\2\0\0\0"


def test_a_rate_above_a_quarter_is_taken_as_that(r, server):
    bf(r, "BF.RESERVE", "k", 0.9, 100)
    assert b"ratio:0.125" in bf(r, "BF.DEBUG", "k")[1]
    assert "0.9" in server.log()


def test_nobody_can_ask_for_more_than_there_is(r, server):
    """2^30 items at a rate of 1e-300 would be 190 GB."""
    assert error_of(r, "BF.RESERVE", "k", "1e-300", 1 << 30) == \
        "Insufficient memory to create filter"
    assert server.is_alive()


def test_pieces_make_the_same_filter(r):
    bf(r, "BF.RESERVE", "k", "0.01", 50)
    bf(r, "BF.MADD", "k", *range(1000))
    at = 0
    while True:
        at, data = bf(r, "BF.SCANDUMP", "k", at)
        if not at:
            assert data == b""
            break
        assert bf(r, "BF.LOADCHUNK", "c", at, data) == b"OK"
    assert r.dump("k") == r.dump("c")


def test_survives_restarts_and_copies(r):
    bf(r, "BF.RESERVE", "k", "0.01", 50, "EXPANSION", 3)
    bf(r, "BF.MADD", "k", *range(1000))
    info = bf(r, "BF.INFO", "k")
    r.copy("k", "c")
    r.restore("d", 0, r.dump("k"))
    bf(r, "DEBUG", "RELOAD")
    for key in "kcd":
        assert bf(r, "BF.INFO", key) == info
        assert all(bf(r, "BF.MEXISTS", key, *range(1000)))
    digests = bf(r, "DEBUG", "DIGEST-VALUE", "k", "c", "d")
    assert len(set(digests)) == 1
    bf(r, "BF.ADD", "c", "another")
    digests = bf(r, "DEBUG", "DIGEST-VALUE", "k", "c")
    assert len(set(digests)) == 2


def test_commands_of_redis_py(r, server):
    """The client's own commands, unchanged. They change how a client reads
    replies, so it is one of their own."""
    r = server.connect()
    bloom = r.bf()
    assert bloom.create("k", 0.01, 1000)
    assert bloom.add("k", "a") == 1
    assert bloom.madd("k", "a", "b") == [0, 1]
    assert bloom.insert("k", ["c"]) == [1]
    assert bloom.exists("k", "a") == 1
    assert bloom.mexists("k", "a", "zz") == [1, 0]
    info = bloom.info("k")
    assert info.capacity == 1000 and info.insertedNum == 3
    cuckoo = r.cf()
    assert cuckoo.create("cf", 1000)
    assert cuckoo.add("cf", "a") and cuckoo.delete("cf", "a")
    cms = r.cms()
    assert cms.initbydim("cms", 100, 5)
    assert cms.incrby("cms", ["a"], [3]) == [3]
    topk = r.topk()
    assert topk.reserve("tk", 3, 10, 3, 0.9)
    assert topk.add("tk", "a") == [None]
    assert topk.list("tk") == ["a"] or topk.list("tk") == [b"a"]


# -------------------------------------------------------------- valkey-bloom

def test_made_by_the_other_rules(r):
    assert bf(r, "BF.INSERT", "v", "SEED", SEED, "CAPACITY", 100, "ERROR",
              "0.01", "ITEMS", "a", "b") == [1, 1]
    assert r.type("v") == b"bloomfltr"
    info = bf(r, "BF.INFO", "v")
    assert info[::2] == [b"Capacity", b"Size", b"Number of filters",
                         b"Number of items inserted", b"Error rate",
                         b"Expansion rate", b"Tightening ratio",
                         b"Max scaled capacity"]
    assert bf(r, "BF.INFO", "v", "ITEMS") == 2
    assert bf(r, "BF.MEXISTS", "v", "a", "b", "zz") == [1, 1, 0]


def test_load_takes_what_the_model_writes(r):
    m = model.ValkeyBloom(0.01, 50, 2, 0.5, SEED)
    for i in range(300):
        m.add(b"%d" % i)
    assert bf(r, "BF.LOAD", "v", m.load()) == b"OK"
    assert all(bf(r, "BF.MEXISTS", "v", *range(300)))
    assert error_of(r, "BF.LOAD", "v", m.load()) == \
        "BUSYKEY Target key name already exists."
    assert error_of(r, "BF.LOAD", "w", b"\2" + m.load()[1:]) == \
        "bloom object decoding failed. Unsupported version"
    for cut in range(0, len(m.load()) - 1, 7):
        assert error_of(r, "BF.LOAD", "w", m.load()[:cut]).startswith(
            "bloom object decoding failed")
    r.restore("x", 0, r.dump("v"))
    bf(r, "DEBUG", "RELOAD")
    assert all(bf(r, "BF.MEXISTS", "x", *range(300)))


@pytest.mark.parametrize("words, says", [
    (["SEED", "short"], "invalid seed"),
    (["TIGHTENING", "x"], "bad tightening ratio"),
    (["TIGHTENING", "1"], "(0 < tightening ratio range < 1)"),
    (["TIGHTENING", "0.5", "ERROR", "1"], "(0 < error rate range < 1)"),
    (["TIGHTENING", "0.5", "CAPACITY", "0"],
     "(capacity should be larger than 0)"),
    (["TIGHTENING", "0.5", "JUNK", "0"], "unknown argument received"),
    (["VALIDATESCALETO", "1000", "NONSCALING"],
     "cannot use NONSCALING and VALIDATESCALETO options together"),
    (["VALIDATESCALETO", "10000000000000000"],
     "provided VALIDATESCALETO causes bloom object to exceed memory limit"),
    (["VALIDATESCALETO", "100000", "TIGHTENING", "1e-60"],
     "provided VALIDATESCALETO causes false positive to degrade to 0"),
])
def test_errors_of_valkey_options(r, words, says):
    assert error_of(r, "BF.INSERT", "n", *words, "ITEMS", "a") == says
    assert not r.exists("n")


def test_a_memory_limit_a_key(r):
    r.config_set("bf.bloom-memory-usage-limit", 10000)
    assert error_of(r, "BF.RESERVE", "k", "0.01", 100000) == \
        "operation exceeds bloom object memory limit"
    bf(r, "BF.RESERVE", "k", "0.01", 100)
    replies = bf(r, "BF.MADD", "k", *range(20000))
    assert any(isinstance(x, redis.exceptions.ResponseError) for x in replies)
    r.config_set("bf.bloom-memory-usage-limit", 0)


@pytest.fixture
def valkey(r):
    """A client of a server that makes filters by valkey-bloom's rules."""
    r.config_set("bf.bf-valkey-rules", "yes")
    yield r
    r.config_set("bf.bf-valkey-rules", "no")


def test_valkey_rules_for_all_that_makes_a_filter(valkey):
    r = valkey
    assert bf(r, "BF.ADD", "a", "x") == 1
    assert bf(r, "BF.MADD", "b", "x", "y") == [1, 1]
    assert bf(r, "BF.INSERT", "c", "ITEMS", "x") == [1]
    assert bf(r, "BF.INSERT", "e", "CAPACITY", 50) == []
    assert bf(r, "BF.RESERVE", "f", "0.5", 2000, "NONSCALING") == b"OK"
    assert bf(r, "BF.RESERVE", "g", "0.001", 2000, "EXPANSION", 9) == b"OK"
    for key in "abcefg":
        assert r.type(key) == b"bloomfltr"
    assert bf(r, "BF.INFO", "a", "CAPACITY") == 100
    assert bf(r, "BF.INFO", "a", "SIZE") == 384
    assert bf(r, "BF.INFO", "f", "ERROR") == b"0.5"
    assert bf(r, "BF.INFO", "f", "EXPANSION") is None
    assert bf(r, "BF.INFO", "g", "EXPANSION") == 9
    assert bf(r, "BF.EXISTS", "none", "x") == 0
    r.set("s", "text")
    assert "WRONGTYPE" in error_of(r, "BF.EXISTS", "s", "x")
    # What was made by the other rules keeps to them.
    r.config_set("bf.bf-valkey-rules", "no")
    bf(r, "BF.ADD", "old", "x")
    r.config_set("bf.bf-valkey-rules", "yes")
    bf(r, "BF.MADD", "old", *range(500))
    assert r.type("old") == b"MBbloom--"
    assert bf(r, "BF.INFO", "old", "FILTERS") == [3]


@pytest.mark.parametrize("words, says", [
    (["x", "100"], "bad error rate"), (["nan", "100"], "bad error rate"),
    (["2", "100"], "(0 < error rate range < 1)"),
    (["0.01", "x"], "bad capacity"),
    (["0.01", "0"], "(capacity should be larger than 0)"),
    (["0.01", "5", "EXPANSION", "0"], "bad expansion"),
    (["0.01", "5", "JUNK"], "ERROR"),
    (["0.01", "5", "NONSCALING", "EXPANSION"], "ERROR"),
    (["0.01", "5", "NONSCALING", "EXPANSION", "1"],
     "wrong number of arguments for 'bf.reserve' command")])
def test_errors_of_reserve_by_valkey_rules(valkey, words, says):
    assert error_of(valkey, "BF.RESERVE", "n", *words) == says
    assert not valkey.exists("n")


def largest(r, limit, *words):
    """The largest capacity that a command may make a filter for."""
    r.config_set("bf.bloom-memory-usage-limit", limit)
    low, high = 1, 10 * limit
    while low < high:
        middle = (low + high + 1) // 2
        r.delete("k")
        try:
            bf(r, *[w if w != "N" else middle for w in words])
            low = middle
        except redis.exceptions.ResponseError:
            high = middle - 1
    r.config_set("bf.bloom-memory-usage-limit", 0)
    r.delete("k")
    return low


def redis_size(capacity, rate):
    """Bytes of one sub-filter, as RedisBloom counts them."""
    bits = max(int(capacity * abs(math.log(rate)) / 0.480453013918201), 1)
    return 32 + 64 + (bits + 63) // 64 * 8


def valkey_size(capacity, rate):
    return 48 + 8 + 208 + math.ceil(
        capacity * math.log(rate) / (-8 * math.log(2) ** 2))


@pytest.mark.parametrize("limit", [1000, 10000, 65537])
def test_the_memory_limit_is_exact(r, limit):
    """What counts is Size of BF.INFO: with half of the rate that was asked
    where the filter may grow, and with the peers' structures."""
    for words, size in (
            (["BF.RESERVE", "k", "0.01", "N"],
             lambda c: redis_size(c, 0.005)),
            (["BF.RESERVE", "k", "0.01", "N", "NONSCALING"],
             lambda c: redis_size(c, 0.01)),
            (["BF.INSERT", "k", "TIGHTENING", "0.5", "CAPACITY", "N"],
             lambda c: valkey_size(c, 0.01))):
        most = largest(r, limit, *words)
        assert size(most) <= limit < size(most + 1), words


@pytest.mark.parametrize("capacity, rate, size", [
    (100, "0.01", 384), (1000, "0.001", 2062), (50, "0.05", 303)])
def test_size_as_valkey_bloom_counts_it(r, capacity, rate, size):
    bf(r, "BF.INSERT", "k", "TIGHTENING", "0.5", "CAPACITY", capacity, "ERROR",
       rate)
    assert bf(r, "BF.INFO", "k", "SIZE") == size


def test_size_of_three_as_valkey_bloom_counts_it(r):
    bf(r, "BF.INSERT", "k", "TIGHTENING", "0.5", "ITEMS", *range(400))
    assert bf(r, "BF.INFO", "k", "FILTERS") == 3
    assert bf(r, "BF.INFO", "k", "SIZE") == 1724


def max_scaled(capacity, rate, tightening, expansion, limit):
    """By valkey-bloom's rules: how far a filter may grow."""
    total = memory = n = 0
    while True:
        error = rate * tightening ** n
        if error <= 2.2250738585072014e-308:
            return total
        room = 1
        if n:
            room = 4
            while room < n + 1:
                room *= 2
        memory += 208 + math.ceil(
            capacity * math.log(error) / (-8 * math.log(2) ** 2))
        if 48 + 8 * room + memory > limit:
            return total
        total += capacity
        capacity *= expansion
        n += 1


@pytest.mark.parametrize("capacity, rate, tightening, expansion, holds", [
    (100, 0.01, 0.5, 2, 26214300), (50, 0.05, 0.5, 2, 26214350),
    (100, 0.00001, 0.5, 1, None), (1000, 0.01, 0.9, 1, None),
    (10000, 0.001, 0.5, 4, None), (7, 0.3, 0.8, 3, None),
    (100000, 1e-9, 0.5, 2, None)])
def test_max_scaled_capacity(r, capacity, rate, tightening, expansion, holds):
    limit = 128 << 20
    r.config_set("bf.bloom-memory-usage-limit", limit)
    bf(r, "BF.INSERT", "k", "TIGHTENING", tightening, "CAPACITY", capacity,
       "ERROR", rate, "EXPANSION", expansion)
    told = bf(r, "BF.INFO", "k", "MAXSCALEDCAPACITY")
    r.config_set("bf.bloom-memory-usage-limit", 0)
    assert told == max_scaled(capacity, rate, tightening, expansion, limit)
    assert holds in (None, told)


def test_info_section(r):
    bf(r, "BF.MADD", "k", *range(50))
    info = r.info("bf")
    assert info["bf_bloom_num_objects"] == 1
    assert info["bf_bloom_num_items_across_objects"] == \
        bf(r, "BF.CARD", "k")
    r.delete("k")
    assert r.info("bf")["bf_bloom_num_objects"] == 0


# ----------------------------------------------------------------- the model

def random_bloom(rng, r, key, n):
    """n random commands on one filter of either scheme and its model."""
    rate = rng.choice([0.2, 0.01, 0.001])
    capacity = rng.randrange(1, 60)
    expansion = rng.choice([0, 1, 2, 3])
    valkey = rng.random() < 0.4
    if valkey:
        m = model.ValkeyBloom(rate, capacity, expansion, 0.5, SEED)
        words = ["EXPANSION", expansion] if expansion else ["NONSCALING"]
        assert bf(r, "BF.INSERT", key, "CAPACITY", capacity, "ERROR",
                  repr(rate), "TIGHTENING", "0.5", "SEED", SEED, *words) == []
    else:
        m = model.Bloom(rate, capacity, expansion)
        words = ["EXPANSION", expansion] if expansion else ["NONSCALING"]
        bf(r, "BF.RESERVE", key, repr(rate), capacity, *words)
    done = 1
    while done < n:
        items = [b"%d" % rng.randrange(250)
                 for _ in range(rng.choice([1, 1, 3, 70]))]
        if rng.random() < 0.5:
            assert bf(r, "BF.MEXISTS", key, *items) == [
                int(m.has(i)) for i in items]
        else:
            expected = []
            for item in items:
                expected.append(m.add(item))
                if expected[-1] is None:
                    break
            replies = bf(r, "BF.MADD", key, *items)
            assert [None if isinstance(x, Exception) else x
                    for x in replies] == expected
        done += 1
    if valkey:
        bf(r, "BF.LOAD", "copy", m.load())
        digests = bf(r, "DEBUG", "DIGEST-VALUE", key, "copy")
        assert digests[0] == digests[1]
        r.delete("copy")
    else:
        header, bits = stream(r, key)
        assert header == m.header() and bits == m.stream()
    r.delete(key)


def random_cuckoo(rng, r, key, n):
    size, iterations = rng.choice([1, 2, 4]), rng.choice([1, 5, 20])
    expansion = rng.choice([0, 1, 2, 3])
    capacity = rng.randrange(2 * size, 80)
    m = model.Cuckoo(capacity, size, iterations, expansion)
    bf(r, "CF.RESERVE", key, capacity, "BUCKETSIZE", size, "MAXITERATIONS",
       iterations, "EXPANSION", expansion)
    for _ in range(n):
        item = b"%d" % rng.randrange(120)
        what = rng.random()
        if what < 0.3 and len(m.tables) < 30:
            expected = m.add(item)
            got = bf(r, "CF.INSERT", key, "ITEMS", item)
            assert got == [expected]
        elif what < 0.4 and len(m.tables) < 30:
            assert bf(r, "CF.INSERTNX", key, "ITEMS", item) == [
                m.add(item, True)]
        elif what < 0.7:
            assert bf(r, "CF.DEL", key, item) == m.remove(item)
        elif what < 0.72:
            m.compact(True)
            bf(r, "CF.COMPACT", key)
        elif what < 0.85:
            assert bf(r, "CF.COUNT", key, item) == m.count(item)
        else:
            assert bf(r, "CF.EXISTS", key, item) == int(m.has(item))
    if m.items:
        header, slots = stream(r, key, "CF.SCANDUMP")
        assert header == m.header() and slots == m.stream()
    r.delete(key)


def random_sketch(rng, r, key, n):
    width, depth = rng.randrange(1, 40), rng.randrange(1, 6)
    m = model.CountMin(width, depth)
    bf(r, "CMS.INITBYDIM", key, width, depth)
    for _ in range(n):
        item = b"%d" % rng.randrange(60)
        if rng.random() < 0.5:
            by = rng.randrange(100)
            assert bf(r, "CMS.INCRBY", key, item, by) == [m.add(item, by)]
        else:
            assert bf(r, "CMS.QUERY", key, item) == [m.query(item)]
    assert bf(r, "CMS.INFO", key)[-1] == m.total
    r.delete(key)


def test_random_commands_against_the_model(r):
    """A few thousand here; BLY_FULL=1 makes it a hundred thousand."""
    rng = random.Random(7)
    total = 100000 if os.environ.get("BLY_FULL") else 6000
    done = 0
    while done < total:
        n = rng.randrange(20, 120)
        rng.choice([random_bloom, random_cuckoo, random_sketch])(
            rng, r, "model", n)
        done += n


def test_bits_per_entry_that_do_not_follow_from_the_rate_are_kept(r):
    """As an old dump has them, or one of a machine with another logarithm."""
    bf(r, "BF.RESERVE", "made", 0.01, 100)
    head, bits = stream(r, "made")
    per_entry, = struct.unpack_from("<d", head, 20 + 32)
    odd = bytearray(head)
    struct.pack_into("<d", odd, 20 + 32, math.nextafter(per_entry, 0))
    bf(r, "BF.LOADCHUNK", "odd", 1, bytes(odd))
    bf(r, "BF.LOADCHUNK", "odd", 1 + len(bits), bits)
    items = [b"item%d" % i for i in range(250)] # it grows, by the rules
    assert bf(r, "BF.MADD", "made", *items) == bf(r, "BF.MADD", "odd", *items)
    got, want = bytearray(stream(r, "odd")[0]), stream(r, "made")[0]
    assert struct.unpack_from("<d", got, 20 + 32)[0] == \
        math.nextafter(per_entry, 0)
    struct.pack_into("<d", got, 20 + 32, per_entry)
    assert got == want and stream(r, "odd")[1] == stream(r, "made")[1]
    r.restore("again", 0, r.dump("odd"))
    assert stream(r, "again") == stream(r, "odd")
    assert bf(r, "BF.EXISTS", "again", "item7") == 1
