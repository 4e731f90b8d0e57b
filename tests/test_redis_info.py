"""INFO's section: every family with its keys and the bytes that they hold.

Figures must be right whatever happened to the keys; in the end nothing may be
left, and nothing may be below zero (which would show as a huge number).
"""
import pytest
from conftest import PATIENCE, ROOT
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, Server, server, wait_for)
from test_redis_hostile import MAKE, sealed
from test_redis_life import fill

pytestmark = needs_server

FAMILIES = ("bloom", "cuckoo", "cms", "topk", "tdigest", "bly")
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.bly"))


def section(r):
    """{family: (keys, bytes)}"""
    info = r.info("bf")
    return {f: (info[f"bf_{f}_num_objects"],
                info[f"bf_{f}_total_memory_bytes"]) for f in FAMILIES}


def numbers(r):
    return {f: keys for f, (keys, _) in section(r).items()}


NOTHING = {f: (0, 0) for f in FAMILIES}
FILLED = {"bloom": 2, "cuckoo": 1, "cms": 1, "topk": 1, "tdigest": 1, "bly": 3}


def test_every_family_comes_and_goes(r):
    assert section(r) == NOTHING
    keys = fill(r)
    filled = section(r)
    assert numbers(r) == FILLED
    for family, (_, nbytes) in filled.items():
        assert 100 < nbytes < 1 << 20, family
    for key in keys:
        assert r.copy(key, key + "2")
    assert numbers(r) == {f: 2 * n for f, n in FILLED.items()}
    r.unlink(*(key + "2" for key in keys))
    wait_for(lambda: numbers(r) == FILLED)
    for key in keys:
        r.rename(key, key + "3")
        r.set(key + "3", "something else")
    assert section(r) == NOTHING
    r.flushall()
    fill(r)
    r.flushall(asynchronous=True)
    wait_for(lambda: section(r) == NOTHING)


def test_bytes_follow_what_grows_and_shrinks(r):
    r.execute_command("CF.RESERVE", "cf", 8, "EXPANSION", 1)
    first = section(r)["cuckoo"][1]
    r.execute_command("CF.INSERT", "cf", "ITEMS", *range(400))
    grown = section(r)["cuckoo"][1]
    assert grown >= first + 400 - 8
    for i in range(400):
        r.execute_command("CF.DEL", "cf", i)
    r.execute_command("CF.COMPACT", "cf")
    assert section(r)["cuckoo"][1] < grown - 300
    r.execute_command("BLY.CREATE", "e", "elastic")
    first = section(r)["bly"][1]
    r.execute_command("BLY.ADD", "e", *range(5000))
    assert section(r)["bly"][1] > first + 5000
    r.execute_command("TOPK.RESERVE", "t", 3)
    r.execute_command("TOPK.ADD", "t", *["x" * 1000, "y" * 1000, "z" * 1000])
    assert section(r)["topk"][1] > 3000
    r.delete("cf", "e", "t")
    assert section(r) == NOTHING


def test_commands_that_fail_leave_nothing(r):
    for words in (["CF.RESERVE", "k", 1 << 60], ["CMS.INITBYDIM", "k", 0, 1],
                  ["CMS.INITBYDIM", "k", 1 << 40, 1 << 20],
                  ["TOPK.RESERVE", "k", 1 << 31, 1 << 31, 1 << 31, "0.9"],
                  ["BF.RESERVE", "k", "0.01", 0], ["BLY.CREATE", "k", "no"],
                  ["BLY.CREATE", "k", "blocked", "CAPACITY", 1 << 47],
                  ["BLY.CREATE", "k", "xor"],
                  ["BLY.IMPORT", "k", 0, 1 << 60, "x"],
                  ["BLY.IMPORT", "k", 0, 5, "bytes"],
                  ["CF.LOADCHUNK", "k", 1, "x" * 38],
                  ["BF.LOADCHUNK", "k", 1, "x" * 73], ["BF.LOAD", "k", "\1x"]):
        error_of(r, *words)
        assert section(r) == NOTHING, words
    r.execute_command("BLY.IMPORT", "k", 0, 10000, "half of it")
    assert numbers(r)["bly"] == 1 and section(r)["bly"][1] >= 10000
    r.delete("k")
    assert section(r) == NOTHING


def test_damaged_dumps_leave_nothing(r):
    for words in MAKE.values():
        for command in words:
            r.execute_command(*command)
        dump = r.dump("k")[:-8]
        r.delete("k")
        taken = 0
        for at in range(0, len(dump) - 2, max(1, len(dump) // 40)):
            bad = bytearray(dump)
            bad[at] ^= 0x15
            try:
                r.restore("k", 0, sealed(bytes(bad)))
                taken += 1
            except redis.exceptions.ResponseError:
                assert section(r) == NOTHING, (words, at)
            r.delete("k")
            assert section(r) == NOTHING, (words, at)
        assert taken or "BLY." in words[0][0]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_files_of_every_kind(r, path):
    data = path.read_bytes()
    try:
        r.execute_command("BLY.IMPORT", "k", 0, len(data), data)
    except redis.exceptions.ResponseError as e:
        assert "key" in str(e), e
        assert section(r) == NOTHING
        return
    r.copy("k", "l")
    r.restore("m", 0, r.dump("k"))
    assert numbers(r)["bly"] == 3
    r.delete("k", "l", "m")
    assert section(r) == NOTHING


def test_reloads_and_replicas(tmp_path):
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0, "--appendonly",
                "yes", "--appendfsync", "always") as a:
        fill(a.r)
        a.r.execute_command("DEBUG", "RELOAD")
        assert numbers(a.r) == FILLED
        a.kill()
        a.start()
        assert numbers(a.r) == FILLED
        with Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port) as b:
            wait_for(lambda:
                     b.r.info("replication")["master_link_status"] == "up")
            assert numbers(b.r) == FILLED
            a.r.execute_command("BF.ADD", "more", "x")
            a.r.execute_command("CF.ADD", "cmore", "x")
            a.r.execute_command("BLY.CREATE", "bmore", "blocked")
            assert a.r.wait(1, PATIENCE * 1000) == 1
            assert numbers(b.r) == numbers(a.r) != FILLED
            a.r.flushall()
            assert a.r.wait(1, PATIENCE * 1000) == 1
            assert section(b.r) == NOTHING
        assert section(a.r) == NOTHING
