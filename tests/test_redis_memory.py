"""Memory of the server: limits that commands respect, and who gives it back."""
import pytest
from redis_support import (  # noqa: F401
    error_of, needs_server, r, redis, server, wait_for, Server)

pytestmark = needs_server

MIB = 1 << 20
LARGE = [
    (["BF.RESERVE", "k", "0.01", 100_000_000],
     "Insufficient memory to create filter"),
    (["CF.RESERVE", "k", 100_000_000], "Insufficient memory to create filter"),
    (["CMS.INITBYDIM", "k", 10_000_000, 5],
     "CMS: Insufficient memory to create the key"),
    (["TOPK.RESERVE", "k", 10, 3_000_000, 7, "0.9"],
     "Insufficient memory to create topk data structure"),
]


@pytest.mark.parametrize("words, says", LARGE, ids=[x[0][0] for x in LARGE])
def test_no_command_goes_past_maxmemory(r, words, says):
    used = r.info("memory")["used_memory"]
    r.config_set("maxmemory", used + 64 * MIB)
    try:
        assert error_of(r, *words) == says
        assert not r.exists("k")
        assert error_of(r, "BLY.CREATE", "k", "classic", "CAPACITY",
                        "200M").startswith("out of memory")
        assert r.execute_command("CMS.INITBYDIM", "small", 1_000_000, 5) == b"OK"
        # A server that makes room by itself does so, for what fits.
        r.config_set("maxmemory-policy", "allkeys-lru")
        r.config_set("maxmemory", 100 * MIB)
        assert error_of(r, *words) == says
        assert r.execute_command("CMS.INITBYDIM", "l", 4_000_000, 5) == b"OK"
    finally:
        r.config_set("maxmemory", 0)
        r.config_set("maxmemory-policy", "noeviction")


def test_growing_stops_at_maxmemory_and_a_replica_follows(tmp_path):
    with Server(tmp_path / "a", "--repl-diskless-sync-delay", 0) as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port,
                   "--maxmemory", 20 * MIB) as b:
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        a.r.execute_command("BF.RESERVE", "k", "0.01", 1000, "EXPANSION", 30000)
        a.r.config_set("maxmemory", a.r.info("memory")["used_memory"] + 20 * MIB)
        replies = a.r.execute_command("BF.MADD", "k", *range(1500))
        assert isinstance(replies[-1], redis.exceptions.ResponseError)
        a.r.config_set("maxmemory", 0)
        a.r.execute_command("BF.MADD", "k", *range(1500))
        assert a.r.wait(1, 10000) == 1
        assert a.r.execute_command("DEBUG", "DIGEST-VALUE", "k") == \
            b.r.execute_command("DEBUG", "DIGEST-VALUE", "k")


LAZY = [["BF.RESERVE", "k", "0.01", 8_000_000], ["CF.RESERVE", "k", 8_000_000],
        ["CMS.INITBYDIM", "k", 2_000_000, 2],
        ["TOPK.RESERVE", "k", 500_000],
        ["BLY.CREATE", "k", "blocked", "CAPACITY", "8M"]]


@pytest.mark.parametrize("words", LAZY, ids=[x[0] for x in LAZY])
def test_large_keys_are_given_back_by_another_thread(r, words):
    r.config_resetstat()
    r.execute_command(*words)
    r.unlink("k")
    wait_for(lambda: r.info("memory")["lazyfreed_objects"] == 1)
    r.execute_command(words[0], "k", *(
        ["0.01", 100] if words[0] == "BF.RESERVE" else
        [100] if words[0] == "CF.RESERVE" else
        [5, 5] if words[0] == "CMS.INITBYDIM" else
        [5] if words[0] == "TOPK.RESERVE" else ["blocked"]))
    r.unlink("k")
    assert r.info("memory")["lazyfreed_objects"] == 1, "a small one is at once"


def test_info_of_a_large_filter_reads_it_only_if_asked(r):
    r.execute_command("BLY.CREATE", "k", "classic", "CAPACITY", "8M")
    r.execute_command("BLY.ADD", "k", *range(1000))

    def info(*words):
        flat = r.execute_command("BLY.INFO", "k", *words)
        return dict(zip(flat[::2], flat[1::2]))
    quick, full = info(), info("FULL")
    assert quick.keys() == full.keys()
    for name in (b"fill", b"fpr_now", b"items_estimate"):
        assert quick.pop(name) is None and full.pop(name) is not None
    assert quick == full
    assert "FULL" in error_of(r, "BLY.INFO", "k", "ALL")


def test_the_file_of_a_coded_filter_follows_the_filter(r):
    """It is coded once for all its pieces, and anew when the filter changes."""
    def file(key):
        whole, size = b"", 1
        while len(whole) < size:
            size, part = r.execute_command("BLY.EXPORT", key, len(whole), 100)
            assert part
            whole += part
        return whole

    r.execute_command("BLY.CREATE", "k", "compressed", "CAPACITY", 3000)
    small = r.memory_usage("k")
    r.execute_command("BLY.ADD", "k", *range(500))
    first = file("k")
    assert r.memory_usage("k") == small
    size, part = r.execute_command("BLY.EXPORT", "k", 0, 100)
    assert size == len(first) and r.memory_usage("k") == small + size
    r.execute_command("BLY.ADD", "k", *range(500, 1000))
    assert r.memory_usage("k") == small
    second = file("k")
    assert second != first
    r.execute_command("BLY.EXPORT", "k", 0, 100)
    r.copy("k", "copy")
    r.execute_command("DEBUG", "RELOAD")
    assert file("k") == file("copy") == second
    r.execute_command("BLY.EXPORT", "k", 0, 100)
    r.execute_command("BLY.CREATE", "other", "compressed", "CAPACITY", 3000)
    r.execute_command("BLY.ADD", "other", *range(1000, 1500))
    r.execute_command("BLY.MERGE", "k", "other")
    assert file("k") not in (first, second)
