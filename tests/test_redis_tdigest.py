"""TDIGEST.* in a real server. What is expected here was seen in a RedisBloom
2.8 that runs, but for a digest of one value, where that answers nan."""
import math
import random

import pytest
from redis_support import (  # noqa: F401
    error_of, needs_server, r, server, Server, wait_for)

pytestmark = needs_server

BAD_QUANTILE = "T-Digest: quantile should be in [0,1]"
BAD_CUT = ("T-Digest: low_cut_percentile and high_cut_percentile should be in "
           "[0,1]")
CUTS = ("T-Digest: low_cut_percentile should be lower than "
        "high_cut_percentile")
MISSING = "T-Digest: key does not exist"
POSITIVE = "T-Digest: compression parameter needs to be a positive integer"
PARSING = "T-Digest: error parsing compression parameter"


def td(r, name, *words):
    return r.execute_command("TDIGEST." + name, *words)


def reals(reply):
    return [float(x) for x in reply]


def made(r, key, *values, compression=100):
    td(r, "CREATE", key, "COMPRESSION", compression)
    for i in range(0, len(values), 1000):
        td(r, "ADD", key, *values[i:i + 1000])


def info(r, key):
    told = td(r, "INFO", key)
    return dict(zip((k.decode() for k in told[::2]), told[1::2]))


def test_few_values(r):
    made(r, "t", 5, 5, 7, 9)
    assert td(r, "RANK", "t", *range(4, 11)) == [-1, 1, 2, 2, 3, 3, 4]
    assert td(r, "REVRANK", "t", *range(4, 11)) == [4, 3, 2, 1, 1, 0, -1]
    assert reals(td(r, "BYRANK", "t", 0, 1, 2, 3, 4)) == \
        [5, 5, 7, 9, math.inf]
    assert reals(td(r, "BYREVRANK", "t", 0, 1, 2, 3, 4)) == \
        [9, 7, 5, 5, -math.inf]
    assert float(td(r, "TRIMMED_MEAN", "t", 0, 1)) == 6.5
    assert float(td(r, "TRIMMED_MEAN", "t", 0.25, 0.5)) == 5
    assert float(td(r, "MIN", "t")) == 5 and float(td(r, "MAX", "t")) == 9
    assert reals(td(r, "QUANTILE", "t", 1, 0, 0.5)) == [9, 5, 7]
    assert reals(td(r, "CDF", "t", "-inf", 5, 6, "inf")) == [0, 0.25, 0.5, 1]
    assert r.type("t") == b"TDIS-TYPE"


def test_more_values_become_fewer_means(r):
    for i in range(30):
        td(r, "ADD", "t", i) if i else made(r, "t", 0, compression=1)
    assert reals(td(r, "QUANTILE", "t", 0.1, 0.9)) == \
        [2.1052631578947367, 26.777777777777779]
    assert reals(td(r, "CDF", "t", 4, 5)) == [0.16, 0.19166666666666668]
    assert reals(td(r, "BYREVRANK", "t", 1)) == [27.888888888888889]
    assert float(td(r, "TRIMMED_MEAN", "t", 0, 0.25)) == 8.75
    told = info(r, "t")
    assert told.pop("Memory usage") < 1000
    assert told == {"Compression": 1, "Capacity": 16, "Merged nodes": 4,
                    "Unmerged nodes": 0, "Merged weight": 30,
                    "Unmerged weight": 0, "Observations": 30,
                    "Total compressions": 3}


def test_an_empty_one_and_one_value(r):
    made(r, "t")
    for words in (("MIN",), ("MAX",), ("TRIMMED_MEAN", 0, 1)):
        assert math.isnan(float(td(r, words[0], "t", *words[1:])))
    for name in ("QUANTILE", "CDF", "BYRANK", "BYREVRANK"):
        assert math.isnan(float(td(r, name, "t", 0)[0]))
    assert td(r, "RANK", "t", 1) == td(r, "REVRANK", "t", 1) == [-2]
    td(r, "ADD", "t", 5)
    assert reals(td(r, "QUANTILE", "t", 0, 0.5, 1)) == [5, 5, 5]
    assert reals(td(r, "CDF", "t", 4, 5, 6)) == [0, 0.5, 1]
    td(r, "RESET", "t")
    assert info(r, "t")["Observations"] == 0


@pytest.mark.parametrize("words, says", [
    (("CREATE", "t"), "T-Digest: key already exists"),
    (("CREATE", "text"), "WRONGTYPE"),
    (("CREATE", "n", "COMPRESSION", 0), POSITIVE),
    (("CREATE", "n", "COMPRESSION", -1), POSITIVE),
    (("CREATE", "n", "COMPRESSION", "1.5"), PARSING),
    (("CREATE", "n", "WORD", 5), "T-Digest: wrong keyword"),
    (("CREATE", "n", 5), "wrong number of arguments"),
    (("CREATE", "n", "COMPRESSION", 2**62), "T-Digest: allocation failed"),
    (("ADD", "n", 1), MISSING), (("ADD", "text", 1), "WRONGTYPE"),
    (("ADD", "t"), "wrong number of arguments"),
    (("ADD", "t", 1, "x"), "T-Digest: error parsing val parameter"),
    (("ADD", "t", "nan"), "T-Digest: error parsing val parameter"),
    (("ADD", "t", "-inf"), "T-Digest: val parameter needs to be a finite number"),
    (("QUANTILE", "t", 1.1), BAD_QUANTILE), (("QUANTILE", "t", -1), BAD_QUANTILE),
    (("QUANTILE", "t", "x"), "T-Digest: error parsing quantile"),
    (("CDF", "t", "x"), "T-Digest: error parsing cdf"),
    (("RANK", "t", "x"), "T-Digest: error parsing value"),
    (("BYRANK", "t", "1.5"), "T-Digest: error parsing rank"),
    (("BYRANK", "t", 0, -1), "T-Digest: rank needs to be non negative"),
    (("TRIMMED_MEAN", "t", 0.9, 0.1), CUTS), (("TRIMMED_MEAN", "t", 0, 2), BAD_CUT),
    (("TRIMMED_MEAN", "t", "x", 1), "T-Digest: error parsing low_cut_percentile"),
    (("TRIMMED_MEAN", "t", 0, "x"), "T-Digest: error parsing high_cut_percentile"),
    (("MERGE", "t", "x", "t"), "T-Digest: error parsing numkeys"),
    (("MERGE", "t", 0, "t"), "T-Digest: numkeys needs to be a positive integer"),
    (("MERGE", "t", 2, "t"), "wrong number of arguments"),
    (("MERGE", "t", 1, "t", "t"), "T-Digest: wrong keyword"),
    (("MERGE", "t", 1, "t", "COMPRESSION"), "wrong number of arguments"),
    (("MERGE", "t", 1, "t", "COMPRESSION", 0), POSITIVE),
    (("MERGE", "t", 2, "t", "n"), MISSING),
    (("MERGE", "t", 2, "t", "text"), "WRONGTYPE"),
    (("MERGE", "text", 1, "t"), "WRONGTYPE"),
    (("MERGE", "n", 2, "t", "none"), MISSING),
])
def test_errors_change_nothing(r, words, says):
    r.set("text", "x")
    made(r, "t", 1, 2, 3)
    before = r.execute_command("DEBUG", "DIGEST-VALUE", "t")
    assert says in error_of(r, "TDIGEST." + words[0], *words[1:])
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "t") == before
    assert not r.exists("n")


def test_merging(r):
    made(r, "a", *range(100))
    made(r, "b", *range(100, 200), compression=50)
    td(r, "MERGE", "d", 2, "a", "b")
    assert info(r, "d")["Compression"] == 100
    assert info(r, "d")["Observations"] == 200
    assert td(r, "RANK", "d", 0, 199) == [0, 199]
    td(r, "MERGE", "d", 1, "b") # and itself
    assert info(r, "d")["Observations"] == 300
    td(r, "MERGE", "d", 1, "b", "OVERRIDE")
    assert info(r, "d")["Observations"] == 100
    assert info(r, "d")["Compression"] == 50
    td(r, "MERGE", "d", 1, "a", "COMPRESSION", 20, "OVERRIDE")
    assert info(r, "d")["Compression"] == 20
    td(r, "MERGE", "d", 2, "d", "d", "OVERRIDE")
    assert info(r, "d")["Observations"] == 200
    doubled = 0
    while True:
        before = r.execute_command("DEBUG", "DIGEST-VALUE", "d")
        try:
            td(r, "MERGE", "d", 1, "d")
        except Exception as e: # noqa: BLE001 - what it says is looked at
            assert "overflow detected" in str(e)
            break
        doubled += 1
    assert doubled == 55 # 200 * 2^55 is below 2^63
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "d") == before


def test_many_sources(r):
    pipe = r.pipeline()
    n = 10000
    for i in range(n):
        pipe.execute_command("TDIGEST.CREATE", i, "COMPRESSION", 10)
        pipe.execute_command("TDIGEST.ADD", i, i, i + 0.5)
    pipe.execute()
    td(r, "MERGE", "all", n, *range(n))
    assert info(r, "all")["Observations"] == 2 * n
    assert abs(float(td(r, "QUANTILE", "all", 0.5)[0]) - n / 2) < n / 20


def test_a_dump_of_the_peer(r):
    """Made by RedisBloom 2.8.20: values 1, 2, 3 at compression 10000."""
    dump = bytes.fromhex(
        "07814c3212f9360f100004000000000088c34004000000000000f03f040000000000"
        "00084002800000ea6a020302000201040000000000000840040000000000000000"
        "04000000000000f03f04000000000000004004000000000000084004000000000000"
        "f03f04000000000000f03f04000000000000f03f000a0089d49d5f54f99b7b")
    r.restore("t", 0, dump)
    assert reals(td(r, "QUANTILE", "t", 0, 0.5, 1)) == [1, 2, 3]
    if r.dump("t")[-10:-8] == dump[-10:-8]: # the same version of dumps
        assert r.dump("t") == dump
    made(r, "same", 1, 2, 3, compression=10000)
    assert r.dump("same") == r.dump("t")


def test_a_full_dump_of_the_peer(r):
    """As above: compression 1, all 16 places taken by means of 44 * 10^12
    values, after which every TDIGEST.ADD fails there."""
    dump = bytes.fromhex(
        "07814c3212f9360f100004000000000000f03f0400000000000014c00400000000008051"
        "40021002100200021104000100000000c4420400000000000000000400000000000014c0"
        "04cd68f7b0f56d104004e4ae9ce2a5f21f400432a99fed94872240043b0738688cf12240"
        "0492d655e6fcfe22400422c865baf6ff224004940bcdeafcff224004d9eeb24902002340"
        "04eca962d85803234004e1689813564d2340045923faf5ccbe254004fd8084ee17d52c40"
        "04000000000000334004000000000000334004000000000080514004000000000000f03f"
        "040000000000a062400400000000402bd64004000000004534494104000000404513b741"
        "04000044738d6325420400ec122c172a9442040040ab991be0b34204008ef8046beaad42"
        "040000b0edf83135420400000070dacec641040000000090105d41040000000000c3f240"
        "04000000000080704004000000000080704004000000000000f03f000a009781704672eb"
        "6e17")
    r.restore("t", 0, dump)
    assert info(r, "t")["Observations"] == 43980465111042
    td(r, "ADD", "t", *range(100, 140))
    assert info(r, "t")["Observations"] == 43980465111082
    assert reals(td(r, "QUANTILE", "t", 0, 1)) == [-5, 139]


def test_values_far_apart_are_saved(r):
    """Their means are numbers, where those of the peer are not; a dump with
    others could not be read."""
    td(r, "CREATE", "t", "COMPRESSION", 1)
    for _ in range(10):
        td(r, "ADD", "t", "-1.7e308", "1.7e308", "1.6e308", "-1.6e308", "5e-324")
    r.execute_command("DEBUG", "RELOAD")
    assert info(r, "t")["Observations"] == 50
    assert all(math.isfinite(x) for x in
               reals(td(r, "QUANTILE", "t", 0, 0.3, 0.5, 0.7, 1)))


def test_answers_are_near_the_truth(r):
    rng = random.Random(4)
    values = [rng.gauss(0, 1) for _ in range(20000)]
    made(r, "t", *values)
    values.sort()
    for q in (0.001, 0.01, 0.5, 0.99, 0.999):
        got = float(td(r, "QUANTILE", "t", q)[0])
        below = sum(v < got for v in values) / len(values)
        assert abs(below - q) < 0.03 * min(q, 1 - q) ** 0.5
    assert r.memory_usage("t") <= 9800


def test_resp3(r, server):
    made(r, "t", 1, 2)
    said = server.cli("-3", "TDIGEST.INFO", "t").stdout.decode()
    assert "Compression" in said and "100" in said
    assert server.cli("-3", "TDIGEST.BYRANK", "t", "9").stdout.strip() == b"inf"


def test_a_replica_and_a_log(tmp_path):
    with Server(tmp_path / "a", "--appendonly", "yes") as a, \
            Server(tmp_path / "b", "--replicaof", f"127.0.0.1 {a.port}") as b:
        made(a.r, "t", *range(3000), compression=30)
        made(a.r, "u", *range(100))
        td(a.r, "MERGE", "v", 2, "t", "u")
        a.r.execute_command("WAIT", 1, 60000)
        digests = a.r.execute_command("DEBUG", "DIGEST-VALUE", *"tuv")
        assert b.r.execute_command("DEBUG", "DIGEST-VALUE", *"tuv") == digests
        a.r.bgrewriteaof()
        wait_for(lambda: not a.r.info("persistence")["aof_rewrite_in_progress"]
                 and not a.r.info("persistence")["aof_rewrite_scheduled"])
        a.r.execute_command("DEBUG", "LOADAOF")
        assert a.r.execute_command("DEBUG", "DIGEST-VALUE", *"tuv") == digests
        a.r.execute_command("DEBUG", "RELOAD")
        assert a.r.execute_command("DEBUG", "DIGEST-VALUE", *"tuv") == digests
        assert a.r.copy("t", "w")
        assert td(a.r, "QUANTILE", "w", 0.5) == td(a.r, "QUANTILE", "t", 0.5)
