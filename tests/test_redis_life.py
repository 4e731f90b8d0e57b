"""Filters outlive their server: restarts, logs, replicas, a cluster."""
import threading
import time

import pytest
from conftest import kinds_that, PATIENCE
from redis_support import (
    Cluster, Server, error_of, needs_server, redis, wait_for)

pytestmark = needs_server


def fill(r):
    """One key of every type, grown past its first part."""
    r.execute_command("BF.RESERVE", "bf", "0.01", 50)
    r.execute_command("BF.MADD", "bf", *range(500))
    r.execute_command("BF.INSERT", "vk", "TIGHTENING", "0.5", "CAPACITY", 50,
                      "ITEMS", *range(500))
    r.execute_command("CF.RESERVE", "cf", 50, "EXPANSION", 2)
    r.execute_command("CF.INSERT", "cf", "ITEMS", *range(500))
    r.execute_command("CMS.INITBYDIM", "cms", 100, 4)
    r.execute_command("CMS.INCRBY", "cms", "a", 7)
    r.execute_command("TOPK.RESERVE", "topk", 5)
    r.execute_command("TOPK.ADD", "topk", *("abcdefg" * 3))
    r.execute_command("TDIGEST.CREATE", "tdigest")
    r.execute_command("TDIGEST.ADD", "tdigest", *range(900))
    r.execute_command("BLY.CREATE", "bly", "scalable", "CAPACITY", 100)
    r.execute_command("BLY.ADD", "bly", *range(500))
    r.execute_command("BLY.CREATE", "grown", "elastic")
    r.execute_command("BLY.ADD", "grown", *range(9000))
    r.execute_command("BLY.CREATE", "old", "aging", "CAPACITY", 100)
    r.execute_command("BLY.ADD", "old", *range(100))
    return ["bf", "vk", "cf", "cms", "topk", "tdigest", "bly", "grown", "old"]


def digests(r, keys):
    return dict(zip(keys, r.execute_command("DEBUG", "DIGEST-VALUE", *keys)))


def test_rdb(tmp_path):
    with Server(tmp_path / "s") as s:
        keys = fill(s.r)
        before = digests(s.r, keys)
        s.r.save()
        s.kill()
        s.start()
        assert digests(s.r, keys) == before


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof(tmp_path, preamble):
    """The log as it was written, and as it is written anew."""
    with Server(tmp_path / "s", "--appendonly", "yes", "--appendfsync",
                "always", "--aof-use-rdb-preamble", preamble) as s:
        keys = fill(s.r)
        before = digests(s.r, keys)
        s.kill()
        s.start()
        assert digests(s.r, keys) == before
        s.r.bgrewriteaof()
        wait_for(lambda: not s.r.info("persistence")
                 ["aof_rewrite_in_progress"])
        assert s.r.info("persistence")["aof_last_bgrewrite_status"] == "ok", \
            s.log()[-3000:]
        s.r.execute_command("BF.ADD", "bf", "after")
        before = digests(s.r, keys)
        s.kill()
        s.start()
        assert digests(s.r, keys) == before


def test_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path):
    with Server(tmp_path / "s", "--appendonly", "yes", "--appendfsync",
                "always") as s:
        s.r.execute_command("BLY.CREATE", "bly", "blocked", "CAPACITY", 10000)
        acknowledged = []

        def load():
            r = s.connect()
            try:
                for i in range(100000):
                    r.execute_command("BF.ADD", "bf", i)
                    r.execute_command("CF.ADD", "cf", i)
                    r.execute_command("BLY.ADD", "bly", i)
                    acknowledged.append(i)
            except redis.exceptions.RedisError:
                pass

        thread = threading.Thread(target=load)
        thread.start()
        wait_for(lambda: len(acknowledged) > 100)
        s.kill()
        thread.join()
        s.start()
        for command, key in (("BF.MEXISTS", "bf"), ("CF.MEXISTS", "cf"),
                             ("BLY.HAS", "bly")):
            assert all(s.r.execute_command(command, key, *acknowledged))


def test_a_replica_with_other_defaults_becomes_the_same(tmp_path):
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0) as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port,
                   module_args=["bf-initial-size", 7777, "cf-bucket-size", 4,
                                "bf-expansion-factor", 0]) as b:
        wait_for(lambda: a.r.info("replication")["connected_slaves"] == 1 and
                 b.r.info("replication")["master_link_status"] == "up")
        a.r.execute_command("BF.ADD", "made", "x")
        a.r.execute_command("CF.ADD", "cmade", "x")
        keys = fill(a.r) + ["made", "cmade"]
        assert a.r.wait(1, PATIENCE * 1000) == 1
        assert digests(a.r, keys) == digests(b.r, keys)
        # What changes nothing goes nowhere.
        before = a.r.info("replication")["master_repl_offset"]
        a.r.execute_command("BF.ADD", "made", "x")
        a.r.execute_command("BF.MADD", "bf", *range(100))
        a.r.execute_command("CF.ADDNX", "cmade", "x")
        a.r.execute_command("BF.MEXISTS", "bf", *range(100))
        after = a.r.info("replication")["master_repl_offset"]
        assert after - before < 60, "more than pings"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A primary and its replica."""
    folder = tmp_path_factory.mktemp("pair")
    with Server(folder / "a", "--repl-diskless-sync-delay", 0) as a, \
            Server(folder / "b", "--replicaof", "127.0.0.1", a.port) as b:
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        yield a, b


@pytest.mark.parametrize("kind", kinds_that("add"))
def test_what_looks_as_if_it_changed_nothing_may_have(pair, kind):
    """Items that were there already, from here or from another filter, in
    commands whose replies are all 0."""
    a, b = pair
    a.r.flushall()
    for key in "kl":
        a.r.execute_command("BLY.CREATE", key, kind, "CAPACITY", 500)
    a.r.execute_command("BLY.ADD", "l", *range(100))
    if kind in kinds_that("merge"):
        a.r.execute_command("BLY.MERGE", "k", "l")
    for _ in range(2):
        for item in range(100):
            a.r.execute_command("BLY.ADD", "k", item)
    a.r.execute_command("BLY.ADD", "k", *range(100))
    assert a.r.wait(1, PATIENCE * 1000) == 1
    assert digests(a.r, ["k", "l"]) == digests(b.r, ["k", "l"])


def forgetful(r, kind_of_change):
    """A filter with a window of four seconds that has forgotten something, and
    was then changed this way. What is asked for tells it the time as well."""
    r.execute_command("BLY.CREATE", "k", "aging", "CAPACITY", 100, "turn",
                      "time", "seconds", 4, "generations", 4)
    r.execute_command("BLY.ADD", "k", "early")
    wait_for(lambda: r.execute_command("BLY.HAS", "k", "early") == [0])
    if kind_of_change == "add":
        r.execute_command("BLY.ADD", "k", "late")
    elif kind_of_change == "tick":
        r.execute_command("BLY.TICK", "k", int(time.time()) + 1)
    else:
        r.execute_command("BLY.CREATE", "other", "aging", "CAPACITY", 100,
                          "turn", "time", "seconds", 4, "generations", 4)


@pytest.mark.parametrize("change", ["add", "tick", "create"])
def test_the_time_goes_to_replicas_and_to_the_log(tmp_path, change):
    """They have no clock of their own: one that is not told would find keys
    that the primary has forgotten."""
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0, "--appendonly",
                "yes", "--appendfsync", "always") as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port) as b:
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        forgetful(a.r, change)
        keys = ["k"] if change != "create" else ["other"]
        assert a.r.wait(1, PATIENCE * 1000) == 1
        before = digests(a.r, keys)
        assert digests(b.r, keys) == before
        a.kill()
        a.start()
        assert digests(a.r, keys) == before


def test_migrate(tmp_path):
    with Server(tmp_path / "a") as a, Server(tmp_path / "b") as b:
        keys = fill(a.r)
        before = digests(a.r, keys)
        a.r.migrate("127.0.0.1", b.port, keys, 0, 10000)
        assert digests(b.r, keys) == before and not a.r.exists(*keys)


def test_bulk_load_by_pipe(tmp_path):
    with Server(tmp_path / "a") as a:
        commands = b"".join(
            b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$%d\r\n%d\r\n" %
            (len(str(i)), i) for i in range(20000))
        out = a.cli("--pipe", stdin=commands).stdout
        assert b"errors: 0, replies: 20000" in out
        assert all(a.r.execute_command("BF.MEXISTS", "k", *range(20000)))


def test_two_modules_of_one_name_and_a_bad_argument(tmp_path):
    with Server(tmp_path / "a", "--enable-module-command", "yes") as a:
        with pytest.raises(redis.exceptions.ResponseError):
            a.r.module_load(a.module[1])
        assert "named bf is loaded already" in a.log()
        assert a.r.execute_command("BF.ADD", "k", "x") == 1
    for args in (["nothing", 1], ["bf-initial-size", "x"],
                 ["bf-initial-size"], ["cf-max-iterations", 0]):
        with pytest.raises(RuntimeError):
            Server(tmp_path / "bad", module_args=args)


# ------------------------------------------------------------------ a cluster

@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster"), "--appendonly", "yes",
                 "--cluster-node-timeout", "1000") as c:
        yield c


def test_merge_of_sources_in_another_slot_is_told_so(cluster):
    """By the node that has the destination's slot; others send it there."""
    error = error_of(cluster.owner("{a}d").r, "CMS.MERGE", "{a}d", 1, "{b}s")
    assert error.startswith("CROSSSLOT"), error


def test_no_waited_key_is_forgotten_when_a_primary_dies(cluster):
    """Writers wait for a replica; one primary is killed in the middle."""
    names = [f"f:{{{i}}}" for i in range(6)]
    victim = cluster.owner(names[0])
    acknowledged = {name: [] for name in names}

    def write(name):
        r = cluster.owner(name).connect()
        try:
            for item in range(100000):
                r.execute_command("BF.ADD", name, item)
                # A replica of a busy machine may be late; what it did not
                # confirm was not promised.
                if r.execute_command("WAIT", 1, 500) >= 1:
                    acknowledged[name].append(item)
                if not victim.is_alive() and item > 60:
                    return
        except (redis.exceptions.RedisError, OSError):
            pass

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for t in threads:
        t.start()
    wait_for(lambda: min(map(len, acknowledged.values())) > 30)
    victim.kill()
    for t in threads:
        t.join()
    wait_for(lambda: cluster.find(names[0]))
    for name in names:
        r = cluster.owner(name).r
        assert all(r.execute_command("BF.MEXISTS", name, *acknowledged[name]))
        assert r.execute_command("BF.ADD", name, "and it goes on") in (0, 1)
