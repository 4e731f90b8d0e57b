"""CMS.* in a real server."""
import itertools
import random

import pytest
from redis_support import (  # noqa: F401
    Server, error_of, meanwhile, needs_server, r, redis, server, wait_for)

pytestmark = needs_server


def test_dimensions(r):
    assert r.execute_command("CMS.INITBYPROB", "p", "0.001", "0.01") == b"OK"
    assert r.execute_command("CMS.INFO", "p") == [
        b"width", 2000, b"depth", 7, b"count", 0]
    r.execute_command("CMS.INITBYDIM", "d", "10", "3")
    assert r.execute_command("CMS.INFO", "d")[:4] == [b"width", 10, b"depth", 3]
    assert r.type("d") == b"CMSk-TYPE"


def test_counts(r):
    r.execute_command("CMS.INITBYDIM", "k", "2000", "7")
    assert r.execute_command("CMS.INCRBY", "k", "a", "3", "b", "4",
                             "a", "2") == [3, 4, 5]
    assert r.execute_command("CMS.QUERY", "k", "a", "b", "c") == [5, 4, 0]
    assert r.execute_command("CMS.INFO", "k")[-1] == 9


def test_nothing_is_added_by_a_command_with_a_bad_number(r):
    r.execute_command("CMS.INITBYDIM", "k", "20", "2")
    assert error_of(r, "CMS.INCRBY", "k", "a", 1, "b", "x") == \
        "CMS: Cannot parse number"
    assert error_of(r, "CMS.INCRBY", "k", "a", 1, "b", -1) == \
        "CMS: Number cannot be negative"
    assert r.execute_command("CMS.QUERY", "k", "a") == [0]


def test_counters_stick(r):
    r.execute_command("CMS.INITBYDIM", "k", "20", "2")
    reply = r.execute_command("CMS.INCRBY", "k", "a", 4294967294, "a", 5)
    assert reply[0] == 4294967294
    assert isinstance(reply[1], redis.exceptions.ResponseError)
    assert str(reply[1]) == "CMS: INCRBY overflow"
    assert r.execute_command("CMS.QUERY", "k", "a") == [4294967295]


def test_merge(r):
    for key, n in ("x", 1), ("y", 10), ("to", 100):
        r.execute_command("CMS.INITBYDIM", key, 100, 4)
        r.execute_command("CMS.INCRBY", key, "i", n)
    r.execute_command("CMS.MERGE", "to", 2, "x", "y", "WEIGHTS", 2, 3)
    assert r.execute_command("CMS.QUERY", "to", "i") == [32]
    r.execute_command("CMS.MERGE", "to", 2, "to", "x", "WEIGHTS", 1, -2)
    assert r.execute_command("CMS.QUERY", "to", "i") == [30]
    assert error_of(r, "CMS.MERGE", "to", 1, "x", "WEIGHTS", -1) == \
        "CMS: MERGE overflow"
    assert r.execute_command("CMS.QUERY", "to", "i") == [30]


def test_merge_is_exact_however_large_its_parts_are(r):
    """Sums of products of 63 bits that cancel out, beside those that do not."""
    random.seed(1)
    counts = [0, 1, 5, 2**32 - 2, 2**40 + 7, 2**62]
    cells = [min(count, 2**32 - 1) for count in counts]
    for i, count in enumerate(counts):
        r.execute_command("CMS.INITBYDIM", i, 1, 1)
        r.execute_command("CMS.INCRBY", i, "a", count)
    r.execute_command("CMS.INITBYDIM", "to", 1, 1)
    agreed = [0, 0]
    for _ in range(2000):
        which = [random.randrange(len(counts)) for _ in range(3)]
        far = random.choice((1, 2**31, 2**32 + 5, 2**62)) * \
            random.choice((1, -1))
        near = random.randrange(-3, 9)
        weights = [far, near - far, random.randrange(3)]
        which[1] = which[0]
        cell = sum(cells[i] * w for i, w in zip(which, weights))
        count = sum(counts[i] * w for i, w in zip(which, weights))
        fits = 0 <= cell < 2**32 and 0 <= count < 2**63
        words = ["CMS.MERGE", "to", 3, *which, "WEIGHTS", *weights]
        agreed[fits] += 1
        if fits:
            r.execute_command(*words)
            assert r.execute_command("CMS.QUERY", "to", "a") == [cell]
            assert r.execute_command("CMS.INFO", "to")[5] == count
        else:
            assert error_of(r, *words) == "CMS: MERGE overflow"
    assert min(agreed) > 100


def test_large_merges_are_made_in_turns(tmp_path):
    """Others are served and may change all there is: the sum is that of the
    moment at which a replica is told of it, who makes it at once."""
    with Server(tmp_path / "a") as a, Server(tmp_path / "b") as b:
        r, width = a.r, 250_000

        def fresh():
            r.flushall()
            for key, n in ("x", 1), ("y", 10), ("to", 100):
                r.execute_command("CMS.INITBYDIM", key, width, 7)
                r.execute_command("CMS.INCRBY", key, *itertools.chain(
                    *((i, n + i) for i in range(500))))

        def same():
            r.wait(1, 10_000)
            for key in ("x", "y", "to"):
                assert r.execute_command("DEBUG", "DIGEST-VALUE", key) == \
                    b.r.execute_command("DEBUG", "DIGEST-VALUE", key)

        def at_once(*words):
            pipe = r.pipeline()
            pipe.execute_command(*words)
            return pipe.execute()

        def raise_some():
            for i in range(300):
                key = random.choice(("x", "y", "to"))
                r.execute_command("CMS.INCRBY", key, i, 3, f"new{i}", 4)

        fresh()
        b.r.replicaof("127.0.0.1", a.port)
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        sum_of = ("to", 2, "x", "y", "WEIGHTS", 2, 3)
        changes = {
            "raise": (raise_some, "OK"),
            "delete": (lambda: r.delete("x"), "CMS: key does not exist"),
            "another": (lambda: at_once("RESTORE", "x", 0, other, "REPLACE"),
                        "OK"),
            "sum": (lambda: at_once("CMS.MERGE", "x", 1, "y"), "OK"),
            "set": (lambda: r.set("to", 1),
                    "WRONGTYPE Operation against a key holding the wrong kind "
                    "of value"),
            "narrow": (lambda: at_once("RESTORE", "y", 0, narrow, "REPLACE"),
                       "CMS: width/depth is not equal"),
            "overflow": (lambda: r.execute_command("CMS.INCRBY", "x", "o",
                                                   2**32 - 2),
                         "CMS: MERGE overflow"),
            "flush": (r.flushall, "CMS: key does not exist")}
        r.execute_command("CMS.INITBYDIM", "narrow", 5, 7)
        r.execute_command("CMS.INITBYDIM", "other", width, 7)
        r.execute_command("CMS.INCRBY", "other", "i", 77)
        narrow, other = r.dump("narrow"), r.dump("other")
        for name, (change, says) in changes.items():
            for _ in range(20):  # a machine may be slow, and miss it
                fresh()
                was, said = meanwhile(a, "CMS.MERGE", *sum_of,
                                      change=change)
                if name in ("raise", "another", "sum"):
                    same()
                if was and said in (says, says.encode()):
                    break
                assert said == b"OK", name  # it was done before the change
            else:
                pytest.fail(f"nobody was served: {name}")
        # Those that come together stand in line; a client may go away; one in
        # a transaction is answered there.
        fresh()
        others = [a.connect().connection_pool.get_connection("_")
                  for _ in range(5)]
        for one in others:
            one.send_command("CMS.MERGE", "to", 2, "to", "x")
        others[1].disconnect()
        assert at_once("CMS.MERGE", "y", 1, "x") == [b"OK"]
        for one in others[:1] + others[2:]:
            assert one.read_response() == b"OK"
        assert r.execute_command("CMS.QUERY", "to", 1) in ([101 + 10],
                                                          [101 + 8])
        same()
        # What changes nothing is told to nobody.
        r.execute_command("CMS.MERGE", "to", 1, "x")
        before = r.info("replication")["master_repl_offset"]
        assert r.execute_command("CMS.MERGE", "to", 1, "x") == b"OK"
        assert r.info("replication")["master_repl_offset"] < before + 200
        dirty = r.info("persistence")["rdb_changes_since_last_save"]
        assert r.execute_command("CMS.MERGE", "to", 1, "x") == b"OK"
        assert r.info("persistence")["rdb_changes_since_last_save"] == dirty
        # A server that becomes a replica writes nothing any more.
        fresh()
        was, said = meanwhile(
            a, "CMS.MERGE", *sum_of,
            change=lambda: r.replicaof("127.0.0.1", b.port))
        assert not was or "UNBLOCKED" in said


def test_merge_declares_its_sources(r):
    """So that an ACL, a cluster client and the server see them."""
    assert r.execute_command("COMMAND GETKEYS", "CMS.MERGE", "d", 2, "a",
                             "b", "WEIGHTS", 1, 2) == ["d", "a", "b"]
    r.execute_command("CMS.INITBYDIM", "d", 10, 2)
    r.execute_command("CMS.INITBYDIM", "secret", 10, 2)
    r.execute_command("ACL", "SETUSER", "u", "on", ">p", "~d", "+@all")
    with redis.Redis("127.0.0.1", r.connection_pool.connection_kwargs["port"],
                     username="u", password="p") as limited:
        with pytest.raises(redis.exceptions.NoPermissionError):
            limited.execute_command("CMS.MERGE", "d", 1, "secret")
    r.execute_command("ACL", "DELUSER", "u")


def test_who_may_only_write_reads_no_counts(r):
    """As with INCR, whose reply tells what the key held."""
    r.execute_command("CMS.INITBYDIM", "s", 10, 2)
    r.execute_command("TOPK.RESERVE", "t", 2)
    r.execute_command("ACL", "SETUSER", "w", "on", ">p", "%W~*", "+@all")
    with redis.Redis("127.0.0.1", r.connection_pool.connection_kwargs["port"],
                     username="w", password="p") as writer:
        for words in (["CMS.INCRBY", "s", "a", 1], ["TOPK.ADD", "t", "a"], ["TOPK.INCRBY", "t", "a", 1],
                      ["CMS.QUERY", "s", "a"], ["CMS.INFO", "s"], ["TOPK.LIST", "t"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                writer.execute_command(*words)
        # Whether an item was new is told, as by SADD.
        assert writer.execute_command("BF.ADD", "f", "a") == 1
        assert writer.execute_command("CMS.INITBYDIM", "own", 10, 2) == b"OK"
    r.execute_command("ACL", "DELUSER", "w")


@pytest.mark.parametrize("words, says", [
    (["CMS.INITBYDIM", "old", 1, 1], "CMS: key already exists"),
    (["CMS.INITBYDIM", "text", 1, 1], "CMS: key already exists"),
    (["CMS.INITBYDIM", "n", 0, 1], "CMS: invalid width"),
    (["CMS.INITBYDIM", "n", 1, "x"], "CMS: invalid depth"),
    (["CMS.INITBYDIM", "n", 1 << 40, 1 << 40], "CMS: invalid init arguments"),
    (["CMS.INITBYDIM", "n", 1 << 45, 1],
     "CMS: Insufficient memory to create the key"),
    (["CMS.INITBYPROB", "n", 1, 0.1], "CMS: invalid overestimation value"),
    (["CMS.INITBYPROB", "n", 0.1, 0], "CMS: invalid prob value"),
    (["CMS.INITBYPROB", "n", "0.9", "0.9999999999999999"],
     "CMS: invalid init arguments"),
    (["CMS.QUERY", "none", "a"], "CMS: key does not exist"),
    (["CMS.INFO", "none"], "CMS: key does not exist"),
    (["CMS.MERGE", "old", "x", "old"], "CMS: invalid numkeys"),
    (["CMS.MERGE", "old", 0, "old"], "CMS: Number of keys must be positive"),
    (["CMS.MERGE", "old", 2, "old"], "CMS: wrong number of keys"),
    (["CMS.MERGE", "old", 1, "old", "WEIGHTS", 1, 2],
     "CMS: wrong number of keys/weights"),
    (["CMS.MERGE", "old", 2, "old", "WEIGHTS", 1, 2],
     "CMS: wrong number of keys/weights"),
    (["CMS.MERGE", "old", 2, "old", "WEIGHTS", 1],
     "CMS: wrong number of keys/weights"),
    (["CMS.MERGE", "old", 2, "none", "old", "WEIGHTS", 1, "x"],
     "CMS: key does not exist"),
    (["CMS.MERGE", "old", 2, "old", "none", "WEIGHTS", 1, "x"],
     "CMS: invalid weight value"),
    (["CMS.MERGE", "old", 1, "old", "WEIGHTS", "x"],
     "CMS: invalid weight value"),
    (["CMS.MERGE", "old", 1, "other"], "CMS: width/depth is not equal"),
    (["CMS.MERGE", "old", 1, "none"], "CMS: key does not exist"),
    (["CMS.QUERY", "text", "a"],
     "WRONGTYPE Operation against a key holding the wrong kind of value"),
    (["CMS.QUERY", "old"],
     "wrong number of arguments for 'cms.query' command"),
])
def test_errors(r, words, says):
    r.set("text", "t")
    r.execute_command("CMS.INITBYDIM", "old", 10, 2)
    r.execute_command("CMS.INITBYDIM", "other", 11, 2)
    assert error_of(r, *words) == says
    assert not r.exists("n")


def test_survives_save_restore_copy(r, server):
    r.execute_command("CMS.INITBYDIM", "k", 50, 3)
    r.execute_command("CMS.INCRBY", "k", "a", 7)
    r.copy("k", "c")
    r.restore("d", 0, r.dump("k"))
    r.execute_command("DEBUG", "RELOAD")
    for key in "kcd":
        assert r.execute_command("CMS.QUERY", key, "a") == [7]
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "k", "c", "d")[0] == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "d")[0]


def test_hostile_dumps_change_nothing(r, server):
    r.execute_command("CMS.INITBYDIM", "k", 5, 2)
    dump = bytearray(r.dump("k"))
    for i in range(len(dump) - 10):
        bad = bytearray(dump)
        bad[i] ^= 1 << (i % 8)
        with pytest.raises(redis.exceptions.ResponseError):
            r.restore("bad", 0, bytes(bad))
    assert server.is_alive() and not r.exists("bad")
