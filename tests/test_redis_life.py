"""Filters outlive their server: restarts, logs, replicas, a cluster."""
import subprocess
import threading
import time

import pytest
from redis_support import Server, error_of, needs_server, redis

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
    r.execute_command("BLY.CREATE", "bly", "scalable", "CAPACITY", 100)
    r.execute_command("BLY.ADD", "bly", *range(500))
    r.execute_command("BLY.CREATE", "old", "aging", "CAPACITY", 100)
    r.execute_command("BLY.ADD", "old", *range(100))
    return ["bf", "vk", "cf", "cms", "topk", "bly", "old"]


def digests(r, keys):
    return dict(zip(keys, r.execute_command("DEBUG", "DIGEST-VALUE", *keys)))


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return
        except redis.exceptions.RedisError:
            pass
        time.sleep(0.03)
    raise AssertionError("it did not come about in time")


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
        assert a.r.wait(1, 10000) == 1
        assert digests(a.r, keys) == digests(b.r, keys)
        # What changes nothing goes nowhere.
        before = a.r.info("replication")["master_repl_offset"]
        a.r.execute_command("BF.ADD", "made", "x")
        a.r.execute_command("BF.MADD", "bf", *range(100))
        a.r.execute_command("CF.ADDNX", "cmade", "x")
        a.r.execute_command("BF.MEXISTS", "bf", *range(100))
        after = a.r.info("replication")["master_repl_offset"]
        assert after - before < 60, "more than pings"


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
    with Server(tmp_path / "a") as a:
        with pytest.raises(redis.exceptions.ResponseError):
            a.r.module_load(a.module[1])
        assert a.r.ping()
    for args in (["nothing", 1], ["bf-initial-size", "x"],
                 ["bf-initial-size"], ["cf-max-iterations", 0]):
        with pytest.raises(RuntimeError):
            Server(tmp_path / "bad", module_args=args)


# ------------------------------------------------------------------ a cluster

@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    nodes = []
    try:
        for i in range(6):
            nodes.append(Server(
                folder / str(i), "--cluster-enabled", "yes",
                "--cluster-node-timeout", "1000", "--appendonly", "yes",
                "--cluster-require-full-coverage", "no",
                "--repl-diskless-sync-delay", "0"))
        made = subprocess.run(
            ["redis-cli", "--cluster", "create",
             *[f"127.0.0.1:{n.port}" for n in nodes],
             "--cluster-replicas", "1", "--cluster-yes"],
            capture_output=True, timeout=120, check=False)
        assert b"All 16384 slots covered" in made.stdout, made.stdout
        wait_for(lambda: all(
            n.r.info("replication").get("connected_slaves") == 1 or
            n.r.info("replication").get("master_link_status") == "up"
            for n in nodes))
        wait_for(lambda: all(
            b"cluster_state:ok" in n.cli("CLUSTER", "INFO").stdout
            for n in nodes))
        yield nodes
    finally:
        for n in nodes:
            n.stop()


def owner(nodes, key):
    """The node that a live node says has the slot of a key."""
    ask = next(n for n in nodes if n.is_alive())
    slot = ask.r.execute_command("CLUSTER", "KEYSLOT", key)
    for first, last, where, *_ in ask.r.execute_command("CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return next(n for n in nodes if n.port == where[1])
    raise AssertionError("no node has that slot")


def test_merge_of_sources_in_another_slot_is_told_so(cluster):
    """By the node that has the destination's slot; others send it there."""
    error = error_of(owner(cluster, "{a}d").r, "CMS.MERGE", "{a}d", 1, "{b}s")
    assert error.startswith("CROSSSLOT"), error


def test_no_waited_key_is_forgotten_when_a_primary_dies(cluster):
    """Writers wait for a replica; one primary is killed in the middle."""
    names = [f"f:{{{i}}}" for i in range(6)]
    victim = owner(cluster, names[0])
    acknowledged = {name: [] for name in names}

    def write(name):
        r = owner(cluster, name).connect()
        try:
            for item in range(100000):
                r.execute_command("BF.ADD", name, item)
                if r.execute_command("WAIT", 1, 500) < 1:
                    return
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
    wait_for(lambda: owner(cluster, names[0]) is not victim)
    for name in names:
        r = owner(cluster, name).r
        assert all(r.execute_command("BF.MEXISTS", name, *acknowledged[name]))
        assert r.execute_command("BF.ADD", name, "and it goes on") in (0, 1)
