"""TOPK.* in a real server."""
import random

import pytest
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, server, Server)

pytestmark = needs_server


def test_pushed_out(r):
    r.execute_command("TOPK.RESERVE", "t", 3)
    reply = r.execute_command("TOPK.INCRBY", "t", "a", 1, "b", 5, "c", 2,
                              "d", 3, "e", 4)
    assert reply == [None, None, None, b"a", b"c"]
    assert r.execute_command("TOPK.LIST", "t") == [b"b", b"e", b"d"]
    assert r.execute_command("TOPK.LIST", "t", "WITHCOUNT") == [
        b"b", 5, b"e", 4, b"d", 3]
    assert r.execute_command("TOPK.LIST", "t", "with") == [
        b"b", 5, b"e", 4, b"d", 3]
    assert r.execute_command("TOPK.QUERY", "t", "b", "a") == [1, 0]
    assert r.execute_command("TOPK.COUNT", "t", "b", "zz") == [5, 0]


def test_info(r):
    r.execute_command("TOPK.RESERVE", "t", 3)
    info = r.execute_command("TOPK.INFO", "t")
    assert info[:6] == [b"k", 3, b"width", 8, b"depth", 7]
    assert float(info[7]) == 0.9
    assert r.type("t") == b"TopK-TYPE"


def test_items_may_hold_any_bytes(r):
    items = [b"", b"a\0b", b"a\0c", bytes(range(256))]
    r.execute_command("TOPK.RESERVE", "t", 4, 50, 5, 0.9)
    r.execute_command("TOPK.ADD", "t", *items)
    r.restore("u", 0, r.dump("t"))
    r.execute_command("DEBUG", "RELOAD")
    for key in "tu":
        assert sorted(r.execute_command("TOPK.LIST", key)) == sorted(items)
        assert r.execute_command("TOPK.QUERY", key, *items) == [1] * 4


def test_a_bad_increment_leaves_the_connection_in_step(r):
    r.execute_command("TOPK.RESERVE", "t", 3)
    reply = r.execute_command("TOPK.INCRBY", "t", "a", 1, "b", 100001, "c", 1)
    assert reply[0] is None and len(reply) == 3
    for e in reply[1:]:
        assert str(e) == ("TopK: increment must be an integer greater or "
                          "equal to 0" + " " * 28 +
                          "and smaller or equal to 100,000")
    assert r.ping() is True
    assert r.execute_command("TOPK.LIST", "t") == [b"a"]


def test_finds_the_heavy_ones_of_a_stream(r):
    rng = random.Random(1)
    stream = [f"k{min(int(rng.paretovariate(1.1)), 5000)}"
              for _ in range(40000)]
    truth = sorted(set(stream), key=lambda k: (-stream.count(k)))[:10]
    r.execute_command("TOPK.RESERVE", "t", 10, 2000, 5, 0.9)
    for i in range(0, len(stream), 1000):
        r.execute_command("TOPK.ADD", "t", *stream[i:i + 1000])
    found = {k.decode() for k in r.execute_command("TOPK.LIST", "t")}
    assert len(found & set(truth)) >= 9


def test_chance_belongs_to_the_key(r, tmp_path):
    """A replica, and a server that was restarted, go on alike."""
    r.execute_command("TOPK.RESERVE", "t", 5, 4, 3, 0.99)
    rng = random.Random(2)
    items = [f"i{rng.randrange(60)}" for _ in range(3000)]
    r.execute_command("TOPK.ADD", "t", *items[:1000])
    dump = r.dump("t")
    with Server(tmp_path / "other") as other:
        other.r.restore("t", 0, dump)
        for q in r, other.r:
            q.execute_command("TOPK.ADD", "t", *items[1000:])
        assert r.dump("t") == other.r.dump("t")


@pytest.mark.parametrize("words, says", [
    (["TOPK.RESERVE", "old", 3], "TopK: key already exists"),
    (["TOPK.RESERVE", "n", 0], "TopK: invalid k"),
    (["TOPK.RESERVE", "n", 3, 0, 1, 0.9], "TopK: invalid width"),
    (["TOPK.RESERVE", "n", 3, 1, "x", 0.9], "TopK: invalid depth"),
    (["TOPK.RESERVE", "n", 3, 1, 1, 1.1],
     "TopK: invalid decay value. must be '<= 1' & '> 0'"),
    (["TOPK.RESERVE", "n", 3, 4294967295, 4294967295, 0.9],
     "Insufficient memory to create topk data structure"),
    (["TOPK.RESERVE", "n", 3, 1],
     "wrong number of arguments for 'topk.reserve' command"),
    (["TOPK.ADD", "none", "a"], "TopK: key does not exist"),
    (["TOPK.LIST", "old", "COUNTS"], "WITHCOUNT keyword expected"),
    (["TOPK.LIST", "old", "WITHCOUNTS"], "WITHCOUNT keyword expected"),
    (["TOPK.LIST", "none", "COUNTS"], "WITHCOUNT keyword expected"),
    (["TOPK.QUERY", "text", "a"],
     "WRONGTYPE Operation against a key holding the wrong kind of value"),
])
def test_errors(r, words, says):
    r.set("text", "t")
    r.execute_command("TOPK.RESERVE", "old", 3)
    assert error_of(r, *words) == says
    assert not r.exists("n")


def test_copy_and_digest(r):
    r.execute_command("TOPK.RESERVE", "t", 3)
    r.execute_command("TOPK.ADD", "t", "a", "b", "a")
    r.copy("t", "c")
    digests = r.execute_command("DEBUG", "DIGEST-VALUE", "t", "c")
    assert digests[0] == digests[1]
    r.execute_command("TOPK.ADD", "c", "z")
    digests = r.execute_command("DEBUG", "DIGEST-VALUE", "t", "c")
    assert digests[0] != digests[1]


def test_hostile_dumps(r, server):
    r.execute_command("TOPK.RESERVE", "t", 2, 3, 2, 0.5)
    r.execute_command("TOPK.ADD", "t", "a", "b")
    dump = r.dump("t")
    for i in range(len(dump) - 10):
        bad = bytearray(dump)
        bad[i] ^= 1 << (i % 8)
        with pytest.raises(redis.exceptions.ResponseError):
            r.restore("bad", 0, bytes(bad))
    assert server.is_alive()


class EqualCounts:
    """A list whose buckets never collide: the heap alone decides."""

    def __init__(self, k):
        self.heap = [[0, None] for _ in range(k)]
        self.counts = {}

    def down(self, i):
        """The lesser child comes up, the left of equals; the first one even
        past an equal, as a RedisBloom that runs can be seen to do."""
        first = True
        while 2 * i + 1 < len(self.heap):
            least = 2 * i + 1
            if least + 1 < len(self.heap) and \
                    self.heap[least + 1][0] < self.heap[least][0]:
                least += 1
            if self.heap[least][0] >= self.heap[i][0] + first:
                return
            self.heap[i], self.heap[least] = self.heap[least], self.heap[i]
            i, first = least, False

    def add(self, item):
        count = self.counts[item] = self.counts.get(item, 0) + 1
        if count < self.heap[0][0]:
            return None
        for i, entry in enumerate(self.heap):
            if entry[1] == item:
                entry[0] = count
                self.down(i)
                return None
        left, self.heap[0] = self.heap[0], [count, item]
        self.down(0)
        return left[1]

    def listed(self):
        return [item for count, item in
                sorted(self.heap, key=lambda e: -e[0]) if item]


def test_of_equal_counts_the_new_one_stays(r):
    rng = random.Random(3)
    for k in (1, 2, 3, 5, 8, 13, 300):  # long ones have an index
        for few in (k + 1, 3 * k):
            r.delete("t")
            r.execute_command("TOPK.RESERVE", "t", k, 100003, 3, 0.9)
            model = EqualCounts(k)
            items = [b"i%d" % rng.randrange(few) for _ in range(6 * k)]
            assert r.execute_command("TOPK.ADD", "t", *items) == [
                model.add(x) for x in items]
            assert r.execute_command("TOPK.LIST", "t") == model.listed()
            before = r.dump("t")
            r.execute_command("DEBUG", "RELOAD")
            assert r.dump("t") == before
            items = [b"i%d" % rng.randrange(2 * few) for _ in range(k)]
            assert r.execute_command("TOPK.QUERY", "t", *items) == [
                any(item == x for _, item in model.heap) for x in items]
            assert r.execute_command("TOPK.ADD", "t", *items) == [
                model.add(x) for x in items]


def test_what_counts_nothing_is_on_the_list_and_not_shown(r):
    """One bucket for all: replies that a RedisBloom gives."""
    r.execute_command("TOPK.RESERVE", "t", 2, 1, 1, 1)

    def after(item, n):
        left, = r.execute_command("TOPK.INCRBY", "t", item, n)
        return (left, r.execute_command("TOPK.LIST", "t", "WITHCOUNT"),
                r.execute_command("TOPK.QUERY", "t", *"abcd"),
                r.execute_command("TOPK.COUNT", "t", *"abcd"))

    assert after("a", 5) == (None, [b"a", 5], [1, 0, 0, 0], [5, 0, 0, 0])
    assert after("b", 3) == (None, [b"a", 5], [1, 1, 0, 0], [2, 0, 0, 0])
    assert after("c", 1) == (b"b", [b"a", 5], [1, 0, 1, 0], [1, 0, 0, 0])
    assert after("d", 1) == (b"c", [b"a", 5, b"d", 1], [1, 0, 0, 1],
                             [0, 0, 0, 1])
    before = r.dump("t")
    r.execute_command("DEBUG", "RELOAD")
    assert r.dump("t") == before


def test_a_count_below_the_list_is_none_of_what_is_on_it(r):
    r.execute_command("TOPK.RESERVE", "t", 1, 1, 1, 1)
    r.execute_command("TOPK.INCRBY", "t", "a", 5)
    r.execute_command("TOPK.INCRBY", "t", "b", 2)
    assert r.execute_command("TOPK.LIST", "t", "WITHCOUNT") == [b"a", 5]
    assert r.execute_command("TOPK.COUNT", "t", "a") == [0]


@pytest.mark.parametrize("seed", range(6))
def test_a_dump_gives_the_same_list_in_the_same_order(r, seed):
    """Counts may fall, as in the peer, where the list is then out of order: so
    it is saved, and so it must come back, or a replica that was loaded and one
    that was not would choose another item to push out."""
    rng = random.Random(seed)
    r.execute_command("TOPK.RESERVE", "k", 8, 6, 3, "0.9")
    for _ in range(60):
        items = [f"i{int(rng.paretovariate(0.7)) % 60}" for _ in range(25)]
        r.execute_command("TOPK.ADD", "k", *items, "")
        dump = r.dump("k")
        r.restore("l", 0, dump, replace=True)
        assert r.dump("l") == dump
        assert r.execute_command("TOPK.LIST", "l", "WITHCOUNT") == \
            r.execute_command("TOPK.LIST", "k", "WITHCOUNT")


def test_an_empty_item_that_counts_nothing_comes_back(r):
    """Another item took its only bucket; there is still room on the list."""
    r.execute_command("TOPK.RESERVE", "k", 3, 1, 1, 1)
    r.execute_command("TOPK.ADD", "k", "", "b", "b", "b", "")
    r.restore("l", 0, r.dump("k"))
    for key in "k", "l":
        assert r.execute_command("TOPK.QUERY", key, "", "b") == [1, 1]
        assert r.execute_command("TOPK.LIST", key, "WITHCOUNT") == [b"b", 3]
    assert r.dump("l") == r.dump("k")
