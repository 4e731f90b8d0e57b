"""The module as the server sees it: every command's table, keys, events,
settings, memory; and every command with arguments that nobody would give."""
import random
import subprocess

import pytest
from conftest import PATIENCE
from redis_support import (  # noqa: F401
    error_of, MODULE, needs_server, r, redis, server, Server)

pytestmark = needs_server

FAMILIES = ("bf", "cf", "cms", "topk", "tdigest", "bly")


def raw(r, *words):
    """The reply as it comes: the client reads those of COMMAND its own way."""
    connection = r.connection_pool.get_connection("raw")
    connection.send_command(*words)
    try:
        return connection.read_response()
    finally:
        r.connection_pool.release(connection)


def commands(r):
    return sorted(name.decode() for name in raw(
        r, "COMMAND", "LIST", "FILTERBY", "MODULE", "bf"))


def as_dict(flat):
    return dict(zip(flat[::2], flat[1::2]))


def answer(r, *words):
    try:
        return r.execute_command(*words)
    except redis.exceptions.ResponseError as e:
        return e


def table(r):
    """name: (arity, flags, number of key specifications, tips)"""
    found = {}
    for name in commands(r):
        info = raw(r, "COMMAND", "INFO", name)[0]
        found[name] = (info[1], {f.decode() for f in info[2]}, len(info[8]),
                       [t.decode() for t in info[7]])
    return found


def test_every_command_is_told_of(r):
    rows = table(r)
    assert {n.split(".")[0] for n in rows} == set(FAMILIES) and len(rows) >= 50
    docs = as_dict(raw(r, "COMMAND", "DOCS", *rows))
    for name, (arity, flags, nkeys, tips) in rows.items():
        doc = as_dict(docs[name.encode()])
        assert doc[b"summary"] and doc[b"since"] and doc[b"complexity"]
        first = as_dict(doc[b"arguments"][0])
        assert first[b"type"] == b"key", name
        assert ("write" in flags) != ("readonly" in flags), name
        assert nkeys == (2 if name in ("cms.merge", "tdigest.merge",
                                       "bly.merge", "bly.compare") else 1)
        assert ("dont_cache" in tips) == name.endswith(
            (".info", ".debug", ".scandump", ".export"))
        # Too few words for what it says, and just enough.
        least = abs(arity)
        words = ["1"] * (least - 1)
        says = f"wrong number of arguments for '{name}' command"
        assert says in str(answer(r, name, *words[1:])), name
        if arity > 0:
            assert says in str(answer(r, name, *words, "more")), name
        if name not in ("bf.insert", "cf.reserve"):
            assert says not in str(answer(r, name, *words)), name


def test_nothing_but_its_entry_is_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", MODULE], check=True,
                           capture_output=True).stdout.split()[2::3]
    assert names == [b"RedisModule_OnLoad"]


# As in RedisBloom but for cf.compact, which writes.
FLAGS = {
    "write denyoom": "bf.reserve cf.reserve cms.initbydim cms.initbyprob "
    "topk.reserve bf.add bf.madd bf.insert bf.loadchunk bf.load cf.add "
    "cf.addnx cf.insert cf.insertnx cf.loadchunk cms.incrby topk.add "
    "topk.incrby tdigest.create tdigest.add tdigest.reset bly.create bly.add bly.merge bly.resize bly.import",
    "write denyoom movablekeys": "cms.merge tdigest.merge",
    "write fast": "cf.del",
    "write": "cf.compact bly.remove bly.tick bly.hashed",
    "readonly fast": "bf.exists bf.mexists bf.debug bf.scandump cf.exists "
    "cf.mexists cf.count cf.scandump cf.debug bf.info bf.card cf.info",
    "readonly": "cms.query topk.query topk.count topk.list cms.info topk.info "
    "tdigest.min tdigest.max tdigest.quantile tdigest.cdf tdigest.rank "
    "tdigest.revrank tdigest.byrank tdigest.byrevrank tdigest.trimmed_mean "
    "tdigest.info bly.has bly.hasrange bly.count bly.get bly.compare bly.info bly.export",
}


def test_flags(r):
    want = {name: set(flags.split()) for flags, names in FLAGS.items()
            for name in names.split()}
    got = {name: row[1] - {"module"} for name, row in table(r).items()}
    assert got == want


def test_acl_sees_what_a_merge_reads(r):
    """Where the server has categories for modules, they are there too."""
    assert raw(r, "COMMAND", "GETKEYS", "CMS.MERGE", "d", 2, "a", "b",
               "WEIGHTS", 1, 2) == [b"d", b"a", b"b"]
    assert raw(r, "COMMAND", "GETKEYS", "BLY.MERGE", "d", "a",
               "b") == [b"d", b"a", b"b"]
    r.execute_command("CMS.INITBYDIM", "d", 5, 2)
    r.execute_command("CMS.INITBYDIM", "secret", 5, 2)
    r.execute_command("ACL", "SETUSER", "small", "on", ">p", "~d", "+@all")
    other = redis.Redis("127.0.0.1", r.connection_pool.connection_kwargs[
        "port"], username="small", password="p")
    for words in (("CMS.MERGE", "d", 1, "secret"),
                  ("TDIGEST.MERGE", "d", 1, "secret"),
                  ("BLY.MERGE", "d", "secret"), ("BLY.COMPARE", "d", "secret")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            other.execute_command(*words)
    other.close()
    r.execute_command("ACL", "DELUSER", "small")
    categories = r.execute_command("ACL", "CAT")
    if b"bloom" in categories:
        # ACL CAT of Valkey 8.0 leaves the commands of modules out
        assert b"bf.add" in raw(r, "COMMAND", "LIST", "FILTERBY", "ACLCAT",
                                "bloom")


NUMBERS = ("0", "1", "-1", str(2**40), str(2**62), str(2**63 - 1),
           str(-2**63), str(2**64), "1e300", "nan", "inf", "-inf", "0x10", "",
           " 1", "1 ", "\0", "0.5", "1e-310", "\xff" * 3)
WORDS = ("ITEMS", "CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "NOCREATE",
         "TIGHTENING", "SEED", "VALIDATESCALETO", "BUCKETSIZE",
         "MAXITERATIONS", "WEIGHTS", "WITHCOUNT", "FPR", "BITS", "classic",
         "scalable", "aging", "k" * 400)


def test_absurd_arguments(server, r):
    """Thousands of commands of words that should not be there: an answer to
    each, and the server lives."""
    rng = random.Random(20)
    rows = table(r)
    keys = ["bf", "vk", "cf", "cms", "topk", "td", "bly", "text", "none"]
    for _ in range(6):
        r.flushall()
        r.set("text", "x")
        r.execute_command("BF.MADD", "bf", *range(300))
        r.execute_command("BF.INSERT", "vk", "TIGHTENING", 0.5, "ITEMS", "a")
        r.execute_command("CF.ADD", "cf", "a")
        r.execute_command("CMS.INITBYDIM", "cms", 10, 2)
        r.execute_command("TOPK.RESERVE", "topk", 3)
        r.execute_command("TDIGEST.CREATE", "td")
        r.execute_command("BLY.CREATE", "bly", "scalable")
        for name in rows:
            pipe = r.pipeline(transaction=False)
            for _ in range(12):
                pipe.execute_command(
                    name, rng.choice(keys),
                    *rng.choices(NUMBERS + WORDS + tuple(keys),
                                 k=rng.randrange(0, 9)))
            answers = pipe.execute(raise_on_error=False)
            assert len(answers) == 12
            assert not any(isinstance(a, redis.exceptions.ConnectionError)
                           for a in answers), name
        assert r.ping()


HUGE = (2**30, 2**31, 2**40, 2**53, 2**62, 2**63 - 1)


@pytest.mark.parametrize("words", [
    ("BF.RESERVE", "k", "1e-300"), ("BF.INSERT", "k", "TIGHTENING", "0.5",
                                    "ERROR", "1e-9", "CAPACITY"),
    ("CF.RESERVE", "k"), ("CMS.INITBYDIM", "k", 2**20),
    ("TOPK.RESERVE", "k"), ("BLY.CREATE", "k", "blocked", "CAPACITY"),
    ("BLY.CREATE", "k", "classic", "BITS"),
    ("BLY.CREATE", "k", "scalable", "CAPACITY"),
    ("BLY.CREATE", "k", "quotient", "CAPACITY"),
    ("BLY.CREATE", "k", "cuckoo", "CAPACITY"),
    ("BLY.CREATE", "k", "counting", "CAPACITY"),
    ("BLY.CREATE", "k", "aging", "CAPACITY")])
def test_capacities_past_all_memory(r, words):
    """An error, at once, and nothing is made. (What the machine may have is
    not asked for.)"""
    for capacity in HUGE:
        if capacity < 2**40 and words[0] != "CMS.INITBYDIM":
            continue
        result = answer(r, *words, capacity)
        assert isinstance(result, redis.exceptions.ResponseError), result
        assert not r.exists("k")


def test_memory_at_its_limit_refuses_what_grows(r):
    r.execute_command("BF.ADD", "k", "a")
    r.execute_command("CF.ADD", "c", "a")
    try:
        r.config_set("maxmemory", 100000)
        for words in (("BF.ADD", "k", "b"), ("CF.ADD", "c", "b"),
                      ("CMS.INITBYDIM", "s", 5, 5), ("TOPK.RESERVE", "t", 5),
                      ("BLY.CREATE", "b", "blocked")):
            assert "maxmemory" in error_of(r, *words)
        assert r.execute_command("BF.EXISTS", "k", "a") == 1
        assert r.execute_command("CF.DEL", "c", "a") == 1
    finally:
        r.config_set("maxmemory", 0)


EVENTS = [
    (("BF.RESERVE", "k", 0.1, 100), ["bloom.reserve"]),
    (("BF.ADD", "k", "a"), ["bloom.add"]),
    (("BF.ADD", "k", "a"), []),
    (("BF.EXISTS", "k", "a"), []),
    (("BF.MADD", "k2", "a", "b"), ["bloom.reserve", "bloom.add"]),
    (("CF.ADD", "c", "a"), ["cuckoo.reserve", "cuckoo.add"]),
    (("CF.ADDNX", "c", "a"), []),
    (("CF.DEL", "c", "a"), ["cuckoo.del"]),
    (("CF.DEL", "c", "a"), []),
    (("CF.COMPACT", "c"), ["cuckoo.compact"]),
    (("CF.COMPACT", "c"), []),
    (("CMS.INITBYDIM", "s", 5, 5), ["cms.create"]),
    (("CMS.INCRBY", "s", "a", 1), ["cms.incrby"]),
    (("CMS.MERGE", "s", 1, "s"), []),
    (("CMS.MERGE", "s", 1, "s", "WEIGHTS", 2), ["cms.merge"]),
    (("CMS.INCRBY", "s", "a", 0), []),
    (("TOPK.RESERVE", "t", 3), ["topk.reserve"]),
    (("TOPK.ADD", "t", "a"), ["topk.add"]),
    (("TOPK.INCRBY", "t", "a", 2), ["topk.incrby"]),
    (("TOPK.INCRBY", "t", "a", 0), []),
    (("TDIGEST.CREATE", "d"), ["tdigest.create"]),
    (("TDIGEST.ADD", "d", 1), ["tdigest.add"]),
    (("TDIGEST.ADD", "d", "x"), []),
    (("TDIGEST.MERGE", "d", 1, "d"), ["tdigest.merge"]),
    (("TDIGEST.MERGE", "d", 1, "none"), []),
    (("TDIGEST.QUANTILE", "d", 0.5), []),
    (("TDIGEST.RESET", "d"), ["tdigest.reset"]),
    (("BLY.CREATE", "b", "counting"), ["bly.create"]),
    (("BLY.ADD", "b", "a"), ["bly.add"]),
    (("BLY.MERGE", "b", "b"), ["bly.merge"]),  # it counts twice as much
    (("BLY.REMOVE", "b", "a", "a"), ["bly.remove"]),
    (("BLY.MERGE", "b", "b"), []),
    (("BLY.HAS", "b", "a"), []),
]


def test_events(server, r):
    r.config_set("notify-keyspace-events", "EA")
    listener = server.connect().pubsub()
    listener.psubscribe("__keyevent@0__:*")
    listener.get_message(timeout=PATIENCE)
    for words, want in EVENTS:
        answer(r, *words)  # two of them are errors
        r.set("mark", "x")  # its event comes after those of the command
        got = []
        while True:
            message = listener.get_message(timeout=PATIENCE)
            name = message["channel"].decode().split(":", 1)[1]
            if name == "set":
                break
            if name != "new":
                got.append(name)
                assert message["data"] == words[1].encode()
        assert got == want, words
    listener.close()
    r.config_set("notify-keyspace-events", "")


def test_memory_usage_is_what_the_geometry_takes(r):
    """Two per cent for structures, from a hundred thousand items on."""
    r.execute_command("BF.RESERVE", "bf", 0.01, 100000)
    r.execute_command("BF.INSERT", "vk", "TIGHTENING", 0.5, "CAPACITY", 100000,
                      "ITEMS", "a")
    r.execute_command("CF.RESERVE", "cf", 100000)
    r.execute_command("CMS.INITBYDIM", "cms", 10000, 7)
    r.execute_command("TOPK.RESERVE", "topk", 10, 20000, 7, 0.9)
    r.execute_command("BLY.CREATE", "bly", "classic", "CAPACITY", 100000)
    bits = as_dict(r.execute_command("BLY.INFO", "bly"))[b"bits"]
    bloom = as_dict(r.execute_command("BF.DEBUG", "bf")[1].replace(
        b":", b" ").split())
    for key, nbytes in (("bf", int(bloom[b"bytes"])), ("vk", 119814),
                        ("cf", 65536 * 2), ("cms", 280000),
                        ("topk", 1120000), ("bly", bits / 8)):
        assert nbytes <= r.memory_usage(key) <= 1.02 * nbytes + 300, key


def test_section_of_info(r):
    for i in range(3):
        r.execute_command("BF.RESERVE", f"k{i}", 0.01, 1000)
    r.execute_command("BF.MADD", "k0", *range(50))
    r.execute_command("BF.INSERT", "v", "TIGHTENING", 0.5, "ITEMS", "a")
    info = r.info("bf")
    n = r.execute_command("BF.CARD", "k0") + 1
    assert info["bf_bloom_num_objects"] == 4
    assert info["bf_bloom_num_filters_across_objects"] == 4
    assert info["bf_bloom_num_items_across_objects"] == n
    assert info["bf_bloom_capacity_across_objects"] == 3100
    assert info["bf_bloom_total_memory_bytes"] == sum(
        r.execute_command("BF.INFO", k, "SIZE")[0] for k in
        ("k0", "k1", "k2")) + r.execute_command("BF.INFO", "v", "SIZE")
    r.execute_command("BF.MADD", "k0", *range(5000))  # they grow
    r.execute_command("BF.MADD", "v", *range(5000))
    assert r.info("bf")["bf_bloom_total_memory_bytes"] == sum(
        r.execute_command("BF.INFO", k, "SIZE")[0] for k in
        ("k0", "k1", "k2")) + r.execute_command("BF.INFO", "v", "SIZE")
    r.delete("k0", "v")
    r.execute_command("COPY", "k1", "k4")
    assert r.info("bf")["bf_bloom_num_objects"] == 3
    r.flushall()
    info = r.info("bf")
    assert not any(v for k, v in info.items() if "defrag" not in k)


# ------------------------------------------------------------------- settings

SETTINGS = {"bf-error-rate": ("0.01", "0.05"), "bf-initial-size": ("100", "50"),
            "bf-expansion-factor": ("2", "4"), "cf-bucket-size": ("2", "4"),
            "cf-initial-size": ("1024", "2048"),
            "cf-max-iterations": ("20", "30"),
            "cf-expansion-factor": ("1", "2"),
            "cf-max-expansions": ("32", "16"), "bloom-capacity": ("100", "77"),
            "bloom-fp-rate": ("0.01", "0.02"), "bloom-expansion": ("2", "3"),
            "bloom-tightening-ratio": ("0.5", "0.8"),
            "bloom-use-random-seed": ("yes", "no"),
            "bloom-memory-usage-limit": ("0", "1000000"),
            "bloom-defrag-enabled": ("yes", "no"),
            "bf-valkey-rules": ("no", "yes"),
            "bf-huge-pages": ("yes", "no"),
            "bf-fetch-ahead": ("yes", "no"), "bly-memory-limit": ("0", "5000")}


def full_name(r, name):
    """Older servers put the module's name in front."""
    return name if r.config_get(name) else "bf." + name


def test_settings_are_set_told_and_written(tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("")
    with Server(tmp_path / "s", config=conf) as s:
        for name, (default, other) in SETTINGS.items():
            full = full_name(s.r, name)
            assert s.r.config_get(full) == {full: default}
            s.r.config_set(full, other)
            assert s.r.config_get(full) == {full: other}
            assert "Invalid value" in error_of(s.r, "CONFIG", "SET", full, "x")
            assert s.r.config_get(full) == {full: other}
        for name, bad in (("bf-initial-size", 0), ("bf-error-rate", 1),
                          ("cf-max-iterations", 65536),
                          ("bf-expansion-factor", -1)):
            text = error_of(s.r, "CONFIG", "SET", full_name(s.r, name), bad)
            assert f"Value for `{name}` must be in the range" in text
        s.r.execute_command("BF.ADD", "v", "a")  # by valkey-bloom's rules
        assert s.r.execute_command("BF.INFO", "v", "CAPACITY") == 77
        s.r.config_set(full_name(s.r, "bf-valkey-rules"), "no")
        s.r.execute_command("BF.ADD", "k", "a")
        assert s.r.execute_command("BF.INFO", "k", "CAPACITY") == [50]
        s.r.config_set(full_name(s.r, "bf-valkey-rules"), "yes")
        s.r.config_rewrite()
        text = conf.read_text()
        for name, (_, other) in SETTINGS.items():
            assert f"{full_name(s.r, name)} {other}" in text.replace('"', "")


@pytest.mark.parametrize("text", ["1e-7", "0.0000001", "0.1234567890123",
                                  "2.5e-300"])
def test_a_small_rate_is_told_as_it_was_given(r, text):
    for name in "bf-error-rate", "bloom-fp-rate", "bloom-tightening-ratio":
        full = full_name(r, name)
        before = r.config_get(full)[full]
        r.config_set(full, text)
        assert r.config_get(full) == {full: text}
        r.config_set(full, before)


def test_a_configuration_file_of_valkey_bloom(tmp_path):
    """All that it has, as its documentation lists them."""
    conf = tmp_path / "conf"
    with Server(tmp_path / "probe") as s:
        prefix = full_name(s.r, "bloom-capacity")[:-len("bloom-capacity")]
    conf.write_text(f"loadmodule {MODULE}\n" + "".join(
        f"{prefix}{line}\n" for line in (
            "bloom-capacity 100", "bloom-expansion 2", "bloom-fp-rate 0.01",
            "bloom-tightening-ratio 0.5", "bloom-use-random-seed yes",
            "bloom-memory-usage-limit 134217728", "bloom-defrag-enabled yes")))
    with Server(tmp_path / "s", config=conf, module=None) as s:
        assert s.r.execute_command("BF.ADD", "k", "x") == 1
        assert s.r.config_get(prefix + "bloom-defrag-enabled") == {
            prefix + "bloom-defrag-enabled": "yes"}
