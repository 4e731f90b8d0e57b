"""bloomery redis for those who run servers: filters of other families, replicas,
failovers, servers that evict, clusters with holes."""
import threading

import pytest
from conftest import PATIENCE, run
from redis_support import Cluster, needs_server, Server, wait_for
from test_redis_command import at, has_hiredis, lines, server  # noqa: F401

pytestmark = [needs_server,
              pytest.mark.skipif(not has_hiredis(), reason="no hiredis")]


# ------------------------------------------------------------ BF.* and CF.*

MAKERS = {"bf": ["BF.RESERVE", "k", "1e-6", 5000],
          "valkey": ["BF.INSERT", "k", "TIGHTENING", "0.5", "CAPACITY", 5000,
                     "ERROR", "1e-6"],
          "cf": ["CF.RESERVE", "k", 100000]}


@pytest.mark.parametrize("family", MAKERS)
def test_has_and_add_of_other_families(ok, bly, server, at, family):
    server.r.execute_command(*MAKERS[family])
    done = ok("redis", "add", "k", "--json", *at, stdin=lines(3000)).json
    assert done["keys"] == 3000 and done["new"] == 3000
    assert ok("redis", "has", "-c", "k", *at, stdin=lines(3000)).out == \
        "3000\n"
    assert ok("redis", "has", "k", "7", "no such item", *at).lines[0] == "7"
    assert bly("redis", "has", "-q", "k", "", *at).status == 1
    ask = {"cf": "CF.MEXISTS"}.get(family, "BF.MEXISTS")
    assert all(server.r.execute_command(ask, "k", *range(3000)))
    again = ok("redis", "add", "k", "5", "6", "--json", *at).json
    assert again["new"] == (2 if family == "cf" else 0)


def test_a_full_filter_of_another_family(server, trouble, at):
    server.r.execute_command("BF.RESERVE", "k", "0.01", 10, "NONSCALING")
    trouble("redis", "add", "k", *at, stdin=lines(100), says=["k:", "full"])
    server.r.execute_command("CF.RESERVE", "c", 8, "EXPANSION", 0)
    trouble("redis", "add", "c", *at, stdin=lines(100), says=["c:", "full"])
    server.r.execute_command("CMS.INITBYDIM", "m", 10, 2)
    trouble("redis", "has", "m", "x", *at, says=["m:", "CMSk-TYPE"])


@pytest.mark.parametrize("n", [1, 50, 3000])
def test_a_cuckoo_filter_goes_out_and_in(ok, trouble, server, at, n):
    server.r.execute_command("CF.RESERVE", "k", 64, "EXPANSION", 2)
    server.r.execute_command("CF.INSERT", "k", "ITEMS", *range(n))
    ok("redis", "dump", "k", "f", *at)
    assert ok("has", "-c", "f", stdin=lines(n)).out == f"{n}\n"
    assert ok("info", "--json", "f").json["format"] == "rediscuckoo"
    ok("add", "f", "one more")
    ok("redis", "load", "f", "l", *at)
    server.r.execute_command("CF.ADD", "k", "one more")
    assert server.r.dump("l") == server.r.dump("k")
    ok("redis", "load", "f", "k", "--replace", *at)
    assert sorted(server.r.keys()) == [b"k", b"l"]
    server.r.execute_command("CF.RESERVE", "empty", 64)
    trouble("redis", "dump", "empty", "e", *at, says="without items")


# ------------------------------------------------------- eviction, replicas

@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_what_is_loaded(ok, trouble, tmp_path, policy):
    ok("build", "-o", "f.bly", "--items", "30M", stdin=lines(10))
    ok("build", "-o", "f.dump", "--format", "redisbloom", "--items", "30M",
       stdin=lines(10))
    with Server(tmp_path / "s", "--maxmemory-policy", policy) as s:
        for name in "f.bly", "f.dump":
            # Room for the filter, and not for the pieces on their way to it.
            s.r.config_set("maxmemory", s.r.info("memory")["used_memory"] +
                           (ok.path / name).stat().st_size + (1 << 20))
            trouble("redis", "load", name, "k", "--port", s.port,
                    says=["evicted", policy, "maxmemory", "noeviction"])
            s.r.config_set("maxmemory", 0)
        assert s.r.keys() == []


def test_replicas_have_it(ok, trouble, tmp_path):
    ok("build", "-o", "f.bly", stdin=lines(1000))
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0) as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port) as b:
        at = ["--port", a.port]
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up"
                 and a.r.info("replication")["connected_slaves"] == 1)
        ok("redis", "load", "f.bly", "k", "--replicas", 1, *at)
        assert b.r.exists("k")
        ok("redis", "build", "l", "--replicas", 1, *at, stdin=lines(100))
        assert b.r.exists("l")
        a.r.execute_command("BF.ADD", "bf", "x")
        for key in "k", "bf":
            ok("redis", "add", key, "--replicas", 1, *at,
               stdin=lines(5000, 6000))
            ask = "BLY.HAS" if key == "k" else "BF.MEXISTS"
            assert all(b.r.execute_command(ask, key, *range(5000, 6000)))
        for words in (["load", "f.bly", "m{}"], ["add", "k", "x{}"],
                      ["build", "n{}", "x"]):
            # A second is long enough, but not on every machine.
            for seconds in 1, 10, 100:
                said = trouble("redis", *(w.format(seconds) for w in words), "--replicas", 2, "--timeout", seconds, *at,
                               says="--timeout")
                if "only 1 of 2 replicas" in said.err:
                    break
            assert "only 1 of 2 replicas" in said.err


# ------------------------------------------------------------------ a cluster

@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster"),
                 "--cluster-node-timeout", "2000") as c:
        yield c


def test_dump_of_all_shards(ok, trouble, cluster):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 5, "words", "--fpr", "1e-9",
       stdin=lines(2000))
    done = ok("redis", "dump", *at, "words", "backup", "--json").json
    files = sorted((ok.path / "backup").iterdir())
    assert [f.name for f in files] == [f"{i}.bly" for i in range(5)]
    assert done["bytes"] == sum(f.stat().st_size for f in files)
    found = set()
    for f in files:
        found |= set(ok("has", f, stdin=lines(2000)).lines)
    assert len(found) == 2000
    trouble("redis", "dump", *at, "nothing", "no", says="nothing:{meta}")
    assert not (ok.path / "no").exists()


def test_build_with_replicas_across_the_cluster(ok, cluster):
    at = ["--cluster", *cluster.at]
    ok("redis", "build", *at, "--shards", 6, "sure", "--replicas", 1,
       stdin=lines(3000))
    ok("redis", "add", *at, "sure", "--replicas", 1, stdin=lines(3000, 4000))
    for n in cluster.nodes:
        n.r.execute_command("READONLY")
    keys = [k for n in cluster.nodes for k in n.r.keys("sure:*")]
    assert len(keys) == 2 * 7


def test_a_slot_that_nobody_has(ok, trouble, cluster):
    """It is named at once; with retries this would take half a minute."""
    key = "lonely"
    owner = cluster.owner(key)
    slot = owner.r.execute_command("CLUSTER", "KEYSLOT", key)
    for n in cluster.nodes:
        n.r.execute_command("CLUSTER", "DELSLOTS", slot) \
            if cluster.names_owner(n, slot) else None
    for words in (["has", key, "x"], ["build", key, "x"], ["add", key, "x"],
                  ["dump", key, "f.bly"]):
        trouble("redis", *words, *cluster.at,
                says=[f"slot {slot}", "--cluster fix"])
    owner.r.execute_command("CLUSTER", "ADDSLOTS", slot)
    wait_for(lambda: all(cluster.names_owner(n, slot) == owner.port
                         for n in cluster.nodes))


def killed_meanwhile(cluster, victim, *words, **kw):
    """Run the command, and kill a primary when it has a part of what is
    sent."""
    done = []
    work = threading.Thread(target=lambda: done.append(
        run("redis", *words, *cluster.at, **kw)))
    work.start()
    wait_for(lambda: any(b":loading:" in k for k in victim.r.keys()))
    victim.kill()
    work.join()
    assert done[0].status == 0, done[0].err


def has_replica(node):
    return node.r.info("replication")["connected_slaves"] > 0


def test_replace_survives_a_failover(ok, cluster):
    """The last test of this cluster: a primary dies while a filter is replaced
    on it, and another one while one is built anew across all of them."""
    ok("redis", "build", "--cluster", *cluster.at, "--shards", 3, "anew",
       stdin=lines(100))
    ok("redis", "build", "plain", *cluster.at, stdin=lines(100))
    ok("build", "-o", "big.bly", "--items", "20M", stdin=lines(5000))
    victim = cluster.owner("plain")
    killed_meanwhile(cluster, victim, "load", "big.bly", "plain", "--replace",
                     cwd=ok.path)
    assert ok("redis", "has", "-c", "plain", *cluster.at,
              stdin=lines(5000)).out == "5000\n"
    wait_for(lambda: cluster.find("plain"))
    keys = [k for n in cluster.primaries() for k in n.r.keys("*plain*")]
    assert keys == [b"plain"]
    wait_for(lambda: all(cluster.find(f"anew:{{{i}}}") for i in range(3)))
    victim = next(n for n in map(cluster.owner, (
        f"anew:{{{i}}}" for i in range(3))) if has_replica(n))
    killed_meanwhile(cluster, victim, "build", "--cluster", "--replace",
                     "--shards", 3, "--items", "60M", "anew",
                     stdin=lines(500, 900))
    assert ok("redis", "has", "-c", "--cluster", "anew", *cluster.at,
              stdin=lines(500, 900)).out == "400\n"
    keys = [k for n in cluster.primaries() for k in n.r.keys("anew:*")]
    assert sorted(keys) == [*(b"anew:{%d}" % i for i in range(3)),
                            b"anew:{meta}"]
