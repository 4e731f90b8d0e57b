"""CF.* in a real server."""
import pytest
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, server)

pytestmark = needs_server


def info(r, key):
    reply = r.execute_command("CF.INFO", key)
    return dict(zip([k.decode() for k in reply[::2]], reply[1::2]))


def test_defaults(r):
    assert r.execute_command("CF.ADD", "k", "a") == 1
    assert r.execute_command("CF.DEBUG", "k") == (
        b"bktsize:2 buckets:512 items:1 deletes:0 filters:1 "
        b"max_iterations:20 expansion:1")
    assert info(r, "k")["Size"] == 40 + 16 + 1024
    assert r.type("k") == b"MBbloomCF"


def test_add_ask_count_delete(r):
    assert [r.execute_command("CF.ADD", "k", "a") for _ in range(2)] == [1, 1]
    assert r.execute_command("CF.ADDNX", "k", "a") == 0
    assert r.execute_command("CF.COUNT", "k", "a") == 2
    assert r.execute_command("CF.MEXISTS", "k", "a", "b") == [1, 0]
    assert r.execute_command("CF.DEL", "k", "a") == 1
    assert r.execute_command("CF.DEL", "k", "a") == 1
    assert r.execute_command("CF.DEL", "k", "a") == 0
    assert r.execute_command("CF.EXISTS", "k", "a") == 0
    assert info(r, "k")["Number of items deleted"] == 2


def test_insert(r):
    assert r.execute_command("CF.INSERT", "k", "CAPACITY", 1000, "ITEMS",
                             "a", "b", "a") == [1, 1, 1]
    assert r.execute_command("CF.INSERTNX", "k", "ITEMS", "a", "c") == [0, 1]
    assert error_of(r, "CF.INSERT", "n", "NOCREATE", "ITEMS", "a") == \
        "not found"


def test_insert_looks_at_the_first_letters(r):
    assert r.execute_command("CF.INSERT", "k", "cap", 4000, "i", "a") == [1]
    assert info(r, "k")["Number of buckets"] == 2048
    assert error_of(r, "CF.INSERTNX", "n", "Noc", "ITEM", "a") == "not found"


def test_the_first_of_equal_options_counts(r):
    r.execute_command("CF.RESERVE", "k", 100, "EXPANSION", 0, "EXPANSION", 4)
    assert info(r, "k")["Expansion rate"] == 0


def test_full(r):
    r.execute_command("CF.RESERVE", "k", 4, "EXPANSION", 0)
    added = r.execute_command("CF.INSERT", "k", "ITEMS", *range(40))
    assert set(added) == {1, -1} and added.count(1) <= 4
    assert error_of(r, "CF.ADD", "k", "x" * 10) == "Filter is full"
    for i, was in enumerate(added):
        if was == 1:
            assert r.execute_command("CF.EXISTS", "k", i) == 1


def test_grows_and_compacts(r):
    r.execute_command("CF.RESERVE", "k", 100, "EXPANSION", 2)
    r.execute_command("CF.INSERT", "k", "ITEMS", *range(3000))
    before = info(r, "k")
    assert before["Number of filters"] > 3
    assert all(r.execute_command("CF.MEXISTS", "k", *range(3000)))
    for i in range(2700):
        assert r.execute_command("CF.DEL", "k", i) == 1
    assert r.execute_command("CF.COMPACT", "k") == b"OK"
    after = info(r, "k")
    assert after["Number of filters"] < before["Number of filters"]
    assert after["Number of items inserted"] == 300
    assert all(r.execute_command("CF.MEXISTS", "k", *range(2700, 3000)))


def test_dump_in_pieces(r):
    r.execute_command("CF.RESERVE", "k", 100, "EXPANSION", 4)
    assert r.execute_command("CF.SCANDUMP", "k", 0) == [0, None]
    r.execute_command("CF.INSERT", "k", "ITEMS", *range(1000))
    at = 0
    while True:
        at, data = r.execute_command("CF.SCANDUMP", "k", at)
        if at == 0:
            break
        assert r.execute_command("CF.LOADCHUNK", "c", at, data) == b"OK"
    assert r.dump("k") == r.dump("c")
    assert error_of(r, "CF.LOADCHUNK", "c", 1, b"x" * 38) == "item exists"


def test_survives_restarts(r):
    r.execute_command("CF.RESERVE", "k", 100, "BUCKETSIZE", 4,
                      "MAXITERATIONS", 9, "EXPANSION", 3)
    r.execute_command("CF.INSERT", "k", "ITEMS", *range(1000))
    before = r.execute_command("CF.INFO", "k")
    assert info(r, "k")["Expansion rate"] == 4
    r.copy("k", "c")
    r.restore("d", 0, r.dump("k"))
    r.execute_command("DEBUG", "RELOAD")
    for key in "kcd":
        assert r.execute_command("CF.INFO", key) == before
        assert all(r.execute_command("CF.MEXISTS", key, *range(1000)))


@pytest.mark.parametrize("words, says", [
    (["CF.RESERVE", "n", "x"], "Bad capacity"),
    (["CF.RESERVE", "n", 100, "MAXITERATIONS", "x"],
     "Couldn't parse MAXITERATIONS"),
    (["CF.RESERVE", "n", 100, "MAXITERATIONS", 0],
     "MAXITERATIONS: value must be in the range [1, 65535]"),
    (["CF.RESERVE", "n", 100, "BUCKETSIZE", 256],
     "BUCKETSIZE: value must be in the range [1, 255]"),
    (["CF.RESERVE", "n", 100, "EXPANSION", -1],
     "EXPANSION: value must be in the range [0, 32768]"),
    (["CF.RESERVE", "n", 3],
     "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    (["CF.RESERVE", "n", 1 << 62],
     "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    (["CF.RESERVE", "n", 100, "BUCKETSIZE"],
     "wrong number of arguments for 'cf.reserve' command"),
    (["CF.RESERVE", "old", 100], "item exists"),
    (["CF.RESERVE", "text", 100],
     "WRONGTYPE Operation against a key holding the wrong kind of value"),
    (["CF.INSERT", "n", "CAPACITY", "x", "ITEMS", "a"], "Bad capacity"),
    (["CF.INSERT", "n", "CAPACITY", 1, "ITEMS", "a"],
     "Capacity must be in the range [cf-bucket-size * 2, 1073741824]"),
    (["CF.INSERT", "n", "JUNK", "ITEMS", "a"], "Unknown argument received"),
    (["CF.INSERT", "n", "CAPACITY", 100, "ITEMS"],
     "wrong number of arguments for 'cf.insert' command"),
    (["CF.DEL", "n", "a"], "Not found"),
    (["CF.DEL", "text", "a"], "Not found"),
    (["CF.COMPACT", "n"], "Cuckoo filter was not found"),
    (["CF.INFO", "n"], "not found"),
    (["CF.SCANDUMP", "old", "x"], "Invalid position"),
    (["CF.SCANDUMP", "old", -1], "Invalid position"),
    (["CF.LOADCHUNK", "n", 0, "x"], "Invalid position"),
    (["CF.LOADCHUNK", "n", 1, "x"], "Invalid header"),
    (["CF.LOADCHUNK", "n", 1, b"\xff" * 38], "Couldn't create filter!"),
    (["CF.LOADCHUNK", "n", 5, "x"], "not found"),
    (["CF.LOADCHUNK", "old", 1 << 40, "x"], "Couldn't load chunk!"),
])
def test_errors(r, words, says):
    r.set("text", "t")
    r.execute_command("CF.RESERVE", "old", 100)
    assert error_of(r, *words) == says
    assert not r.exists("n")


def test_another_type_answers_no(r):
    r.set("text", "t")
    assert r.execute_command("CF.EXISTS", "text", "a") == 0
    assert r.execute_command("CF.MEXISTS", "none", "a", "b") == [0, 0]
    assert r.execute_command("CF.COUNT", "text", "a") == 0


def test_settings(r):
    assert r.config_get("bf.cf-max-expansions") == {
        "bf.cf-max-expansions": "32"}
    r.config_set("bf.cf-max-expansions", 2)
    r.execute_command("CF.RESERVE", "k", 4)
    with pytest.raises(redis.exceptions.ResponseError,
                       match="Maximum expansions reached"):
        for i in range(100):
            r.execute_command("CF.ADD", "k", i)
    r.config_set("bf.cf-max-expansions", 32)
    assert "must be in the range [1, 65535]" in error_of(
        r, "CONFIG SET", "bf.cf-max-iterations", 70000)
