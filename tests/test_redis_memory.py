"""Memory of the server: limits that commands respect, and who gives it back."""
import ctypes
import mmap
import time

import pytest
from redis_support import (  # noqa: F401
    SANITIZE, error_of, meanwhile, needs_server, r, redis, server, wait_for,
    Server)

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


def test_refused_items_ask_the_system_once(tmp_path):
    """Not once each: five files are read to learn how much memory there is."""
    def reads(s):
        with open(f"/proc/{s.r.info('server')['process_id']}/io", encoding="ascii") as f:
            return int(dict(line.split(": ") for line in f.read().splitlines())["syscr"])
    with Server(tmp_path / "a") as s:
        s.r.execute_command("BF.RESERVE", "k", "0.01", 1000, "EXPANSION", 30000)
        s.r.config_set("maxmemory", s.r.info("memory")["used_memory"] + 20 * MIB)
        before = reads(s)
        replies = s.r.execute_command("BF.MADD", "k", *range(5000))
        refused = sum(isinstance(x, redis.exceptions.ResponseError) for x in replies)
        assert refused > 3000
        assert reads(s) - before < refused / 2


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


FILE_HEAD = 24  # bytes before those of a file


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
    assert size == len(first) and \
        r.memory_usage("k") == small + size + FILE_HEAD
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


def coded(r, key, n=400000):
    """A filter that takes long to code; its file, and what its dump holds."""
    r.execute_command("BLY.CREATE", key, "compressed", "CAPACITY", n)
    for at in range(0, n // 20, 5000):
        r.execute_command("BLY.ADD", key, *range(at, at + 5000))


def export(r, key, count=1 << 18):
    whole, size = b"", 1
    while len(whole) < size:
        size, part = r.execute_command("BLY.EXPORT", key, len(whole), count)
        assert part
        whole += part
    return whole


def test_others_are_served_while_a_filter_is_coded(server, r):
    """By a thread, from a copy: what is written, removed or moved meanwhile is
    not in the file, and a client may go away."""
    coded(r, "k")
    # In a transaction all happens at once.
    pipe = r.pipeline()
    pipe.execute_command("BLY.EXPORT", "k", 0, 1 << 26)
    (size, want), = pipe.execute()
    assert size == len(want) and export(r, "k") == want
    said = {}
    for change in (["PING"], ["BLY.ADD", "k", "new"], ["DEL", "k"],
                   ["RENAME", "k", "l"], ["FLUSHALL"], ["REPLICAOF NO ONE"]):
        if not r.exists("k"):
            r.flushall()
            coded(r, "k")
            assert export(r, "k") == want
        client = server.connect()
        client.ping()
        other = client.connection_pool.get_connection("_")
        before = r.info("clients")["blocked_clients"]
        other.send_command("BLY.EXPORT", "k", 0, 1000)
        wait_for(lambda: other.can_read(0) or
                 r.info("clients")["blocked_clients"] > before)
        said[change[0]] = not other.can_read(0)
        r.execute_command(*change[0].split(), *change[1:])
        size, part = other.read_response()
        assert (size, part) == (len(want), want[:1000]), change
        if change[0] == "PING":
            assert export(r, "k") == want
        if change[0] == "BLY.ADD":
            assert export(r, "k") != want
            r.delete("k")
    assert any(said.values()), "nobody was served while it was coded"
    r.flushall()
    coded(r, "k")
    # Many at once wait for one copy.
    others = [server.connect().connection_pool.get_connection("_")
              for _ in range(40)]
    before = r.info("bf")["bf_bly_total_memory_bytes"]
    for i, other in enumerate(others):
        other.send_command("BLY.EXPORT", "k", i, 1000)
    assert r.info("bf")["bf_bly_total_memory_bytes"] < 5 * before
    for i, other in enumerate(others):
        assert other.read_response() == [len(want), want[i:i + 1000]]
    r.execute_command("BLY.ADD", "k", 0)
    for _ in range(3):  # clients that do not wait
        client = server.connect()
        other = client.connection_pool.get_connection("_")
        other.send_command("BLY.EXPORT", "k", 0, 1000)
        other.disconnect()
    assert export(r, "k") == want
    told = r.memory_usage("k")
    wait_for(lambda: r.info("bf")["bf_bly_total_memory_bytes"] < told + 5000)


def test_a_large_copy_is_made_in_turns(server, r):
    """What is coded is the filter as it is when the copy is whole; one that
    changes all the time is copied all the same, and one that goes is missed."""
    def make(*first):
        r.flushall()
        r.execute_command("BLY.CREATE", "k", "compressed", "CAPACITY", 6_000_000)
        assert r.memory_usage("k") > 4 << 20
        r.execute_command("BLY.ADD", "k", *range(5000), *first)

    def file():
        pipe = r.pipeline()
        pipe.execute_command("BLY.EXPORT", "k", 0, 1 << 26)
        return pipe.execute()[0]

    files = []
    for more in (), ("new",):
        make(*more)
        files.append(file())
    make()
    assert r.execute_command("BLY.EXPORT", "k", 0, 1 << 26) == files[0]
    told = []
    for change, may in (
            (r.ping, files[:1]),
            (lambda: r.execute_command("BLY.ADD", "k", "new"), files),
            (lambda: [r.execute_command("BLY.ADD", "k", "new")
                      for _ in range(200)], files),
            (lambda: r.delete("k"), files[:1] + ["not found"]),
            (lambda: r.set("k", 1), files[:1] + [
                "WRONGTYPE Operation against a key holding the wrong kind of "
                "value"])):
        for _ in range(20):  # a machine may be slow, and miss it
            make()
            was, said = meanwhile(server, "BLY.EXPORT", "k", 0, 1 << 26,
                                  change=change)
            assert said in may
            if was:
                break
        told.append(was)
    assert any(told), "nobody was served"


@pytest.mark.parametrize("capacity", [15_000_000, 60_000_000])
def test_others_are_served_while_sums_are_made(server, r, capacity):
    """In turns, of the filter itself; the larger one has sums of blocks. If it
    changes meanwhile, the file is that of the filter when it is answered."""
    def make():
        r.execute_command("BLY.CREATE", "k", "classic", "CAPACITY", capacity)
        r.execute_command("BLY.ADD", "k", *range(5000))

    def at_once(count=1000):
        pipe = r.pipeline()
        pipe.execute_command("BLY.EXPORT", "k", 0, count)
        return pipe.execute()[0]
    make()
    before = r.info("bf")["bf_bly_total_memory_bytes"]
    want = at_once()
    assert r.execute_command("BLY.EXPORT", "k", 0, 1000) == want
    assert r.info("bf")["bf_bly_total_memory_bytes"] > before  # for the next
    size, _ = r.execute_command("BLY.EXPORT", "k", want[0] - 10)
    assert size == want[0]
    assert r.info("bf")["bf_bly_total_memory_bytes"] == before
    said = []
    for change in (["PING"], ["BLY.ADD", "k", "new"], ["DEL", "k"],
                   ["RENAME", "k", "l"], ["UNLINK", "k"], ["FLUSHALL"]):
        if not r.exists("k"):
            r.flushall()
            make()
        was = at_once()
        others = [server.connect().connection_pool.get_connection("_")
                  for _ in range(3)]
        for other in others:
            other.send_command("BLY.EXPORT", "k", 0, 1000)
        wait_for(lambda: others[0].can_read(0) or
                 r.info("clients")["blocked_clients"])
        said.append(not others[0].can_read(0))
        r.execute_command(*change)
        now = at_once() if r.exists("k") else "ERR not found"
        for other in others:
            try:
                found = other.read_response()
            except redis.exceptions.ResponseError as e:
                found = f"ERR {e}"
            assert found in (was, now), change
            other.disconnect()
    # It lasts milliseconds, and may be over before this client looks: more tries, and none for the smaller one.
    for _ in range(0 if any(said) or capacity < 20_000_000 else 100):
        r.flushall()
        make()
        other = server.connect().connection_pool.get_connection("_")
        other.send_command("BLY.EXPORT", "k", 0, 1000)
        r.ping()
        said.append(not other.can_read(0))
        other.read_response()
        other.disconnect()
        if said[-1]:
            break
    assert any(said) or capacity < 20_000_000, "nobody was served meanwhile"
    r.flushall()
    make()
    for _ in range(3):  # clients that do not wait
        other = server.connect().connection_pool.get_connection("_")
        other.send_command("BLY.EXPORT", "k", 0, 1000)
        other.disconnect()
    assert r.execute_command("BLY.EXPORT", "k", 0, 1000) == want
    if capacity < 20_000_000:
        assert export(r, "k", 1 << 23) == at_once(1 << 26)[1]
    r.flushall()


SMALL = {
    "bf": (["BF.RESERVE", "%s", "0.01", 100], 350),
    "vk": (["BF.INSERT", "%s", "CAPACITY", 100, "TIGHTENING", "0.5"], 370),
    "cf": (["CF.RESERVE", "%s", 100], 350),
    "cms": (["CMS.INITBYDIM", "%s", 8, 2], 350),
    "topk": (["TOPK.RESERVE", "%s", 3], 800),
    "tdigest": (["TDIGEST.CREATE", "%s"], 350),
    "bly": (["BLY.CREATE", "%s", "classic", "CAPACITY", 100], 400),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_keys_are_small_and_tell_how_small(r, name):
    """As many keys as fill the server's table of keys, so that each has one
    place of it: then this table, its entry, the name and the two structures
    that the server has for a value are 88 bytes."""
    words, most = SMALL[name]
    n = 8192
    if SANITIZE or \
            not r.info("memory")["mem_allocator"].startswith("jemalloc"):
        pytest.skip("figures are of jemalloc's classes")

    def used():
        return r.info("memory")["used_memory"]

    def fill():
        pipe = r.pipeline(transaction=False)
        for i in range(n):
            pipe.execute_command(*[w % f"key:{i:06}" if w == "%s" else w
                                   for w in words])
        pipe.execute()
    fill() # what the server allocates once
    r.flushall()
    # What tests before this one left to other threads is freed by now.
    seen = [0]
    wait_for(lambda: seen.append(used()) or time.sleep(0.1) or
             seen[-1] == seen[-2] and
             not r.info("memory")["lazyfree_pending_objects"])
    before = used()
    fill()
    wait_for(lambda: "rehash" not in r.execute_command(
        "DEBUG", "HTSTATS", 0).decode().split("[Expires")[0])
    each = (used() - before) / n
    told = r.memory_usage("key:000007") - 40 # its entry, and its name
    r.flushall()
    assert each <= most
    assert told + 80 <= each <= told + 100


def test_files_of_filters_are_counted_and_given_back(r):
    def bytes_of_all():
        return r.info("bf")["bf_bly_total_memory_bytes"]

    before = bytes_of_all()
    r.execute_command("BLY.CREATE", "k", "compressed", "CAPACITY", 3000)
    r.execute_command("BLY.ADD", "k", *range(500))
    alone, told = bytes_of_all(), r.memory_usage("k")
    size, _ = r.execute_command("BLY.EXPORT", "k", 0, 10)
    assert bytes_of_all() == alone + size + FILE_HEAD
    _, file = r.execute_command("BLY.EXPORT", "k", 0, size)
    assert bytes_of_all() == alone and len(file) == size
    r.execute_command("BLY.IMPORT", "l", 0, size, file[:100])
    r.execute_command("BLY.IMPORT", "l", 100, size, file[100:])
    assert r.memory_usage("l") == told
    r.execute_command("BLY.EXPORT", "l", 0, 10)
    r.delete("k", "l")
    assert bytes_of_all() == before


# ----------------------------------------------------------------- huge pages

PLACES = 24 * MIB # bytes of the filter below


def rollup(s, field):
    """KiB of the server's memory that are `field`."""
    with open(f"/proc/{s.process.pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith(field))


def kernel_collapses():
    """Does it put small pages together when it is told to?"""
    size = 4 * MIB
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as m:
        m.write(b"x" * size)
        try:
            m.madvise(25) # MADV_COLLAPSE, from the first page on
            return True
        except OSError:
            pass
        at = ctypes.addressof(ctypes.c_char.from_buffer(m))
        try:
            m.madvise(25, -at % (2 * MIB), 2 * MIB)
            return True
        except OSError:
            return False


@pytest.fixture(name="big")
def big_filter(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_PERTURB_", "0") # libc would fill what is empty
    if SANITIZE or not kernel_collapses():
        pytest.skip("no huge pages here")
    with Server(tmp_path / "s") as s:
        with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
            if "THP_enabled:\t0" in f.read():
                pytest.skip("the server does without huge pages")
        s.r.execute_command("BF.RESERVE", "k", "0.01", PLACES * 8 // 11)
        yield s


def ask(s, n=20_000):
    for first in range(0, n, 1000):
        s.r.execute_command("BF.MEXISTS", "k", *range(first, first + 1000))


def add(s, n=20_000):
    for first in range(0, n, 1000):
        s.r.execute_command("BF.MADD", "k", *range(first, first + 1000))


def wait_for_huge_pages(s):
    """Some of them: how many there are is the kernel's affair."""
    wait_for(lambda: ask(s, 5000) or rollup(s, "AnonHugePages") > 0 or not kernel_collapses())


def test_large_filters_in_use_get_huge_pages(big):
    ask(big)
    assert rollup(big, "AnonHugePages") == 0 # an empty one takes no memory
    assert rollup(big, "Rss") < 20 * 1024
    add(big)
    digest = big.r.execute_command("DEBUG", "DIGEST-VALUE", "k")
    wait_for_huge_pages(big)
    assert big.r.execute_command("DEBUG", "DIGEST-VALUE", "k") == digest
    assert all(big.r.execute_command("BF.MEXISTS", "k", *range(20_000)))


def test_pages_that_were_written_while_saving_are_put_together_again(big):
    add(big)
    wait_for_huge_pages(big)
    big.r.config_set("rdb-key-save-delay", 2_000_000)
    big.r.bgsave()
    add(big, 30_000)
    ask(big)
    huge = rollup(big, "AnonHugePages")

    def is_saving():
        return big.r.info("persistence")["rdb_bgsave_in_progress"]
    if is_saving(): # or the machine is very slow
        assert huge < 4 * 1024 # the child has the rest
    wait_for(lambda: not is_saving())
    wait_for_huge_pages(big)


def test_huge_pages_may_be_refused(big):
    name = "bf-huge-pages" if big.r.config_get("bf-huge-pages") \
        else "bf.bf-huge-pages"
    big.r.config_set(name, "no")
    add(big)
    ask(big)
    time.sleep(0.3)
    assert rollup(big, "AnonHugePages") == 0
