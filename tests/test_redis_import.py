"""BLY.IMPORT of coded files: within the limit, aside, and the same elsewhere."""
import pytest
from conftest import PATIENCE
from redis_support import Server, meanwhile, needs_server, redis, wait_for

pytestmark = needs_server

LIMIT = 10 * 1000 * 1000
PLAIN = 23 * 1000 * 1000  # what the filter takes, at least


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A file of kilobytes that takes 23 MB; it has the keys 0 to 9."""
    with Server(tmp_path_factory.mktemp("maker")) as s:
        s.r.execute_command("BLY.CREATE", "k", "compressed", "CAPACITY", "10M")
        s.r.execute_command("BLY.ADD", "k", *range(10))
        size, data = s.r.execute_command("BLY.EXPORT", "k", 0)
        assert size == len(data) < 100_000
        assert s.r.memory_usage("k") > PLAIN
    return data


def import_last(data):
    """The command that brings all but the first 100 bytes."""
    return "BLY.IMPORT", "k", 100, len(data), data[100:]


def begin(r, data):
    r.execute_command("BLY.IMPORT", "k", 0, len(data), data[:100])


def error_of(r, *words):
    with pytest.raises(redis.exceptions.ResponseError) as e:
        r.execute_command(*words)
    return str(e.value)


def test_a_coded_file_keeps_to_the_limit(tmp_path, coded):
    """Also in a transaction, where nobody can wait; and replicas, which have
    another limit, do not keep what the primary refuses."""
    with Server(tmp_path / "a") as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port,
                   "--repl-diskless-sync-delay", "0") as b:
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        a.r.config_set("bf.bly-memory-limit", LIMIT)
        a.r.execute_command("BLY.IMPORT", "warm", 0, 9, b"up")
        before = a.r.info("memory")["used_memory_peak"]
        for pieces in (1, 2):
            for transaction in (False, True):
                pipe = a.r.pipeline(transaction=transaction)
                if pieces == 2:
                    begin(pipe, coded)
                    pipe.execute_command(*import_last(coded))
                else:
                    pipe.execute_command("BLY.IMPORT", "k", 0, len(coded),
                                         coded)
                answers = pipe.execute(raise_on_error=False)
                assert f"the limit is {LIMIT}" in str(answers[-1])
                assert not a.r.exists("k")
        assert a.r.info("memory")["used_memory_peak"] - before < LIMIT
        assert a.r.wait(1, PATIENCE * 1000) == 1
        assert not b.r.exists("k")
        # What fits is taken by both.
        a.r.config_set("bf.bly-memory-limit", 2 * PLAIN)
        begin(a.r, coded)
        assert a.r.execute_command(*import_last(coded)) == b"OK"
        assert a.r.wait(1, PATIENCE * 1000) == 1
        for s in (a, b):
            assert s.r.execute_command("BLY.HAS", "k", *range(10)) == [1] * 10
        assert a.r.execute_command("DEBUG", "DIGEST-VALUE", "k") == \
            b.r.execute_command("DEBUG", "DIGEST-VALUE", "k")


def test_others_go_on_while_a_file_is_read(tmp_path, coded):
    with Server(tmp_path) as s:
        # Nobody sees half of it, and nobody else may bring the rest. On a busy machine the file may have been read
        # before anybody looked.
        def look():
            for words in (("BLY.HAS", "k", 1), import_last(coded)):
                try:
                    seen.append(repr(s.r.execute_command(*words)))
                except redis.exceptions.ResponseError as wrong:
                    seen.append(str(wrong))
        for _ in range(100):
            seen = []
            s.r.flushall()
            begin(s.r, coded)
            under_way, said = meanwhile(s, *import_last(coded), change=look)
            if "being read" in seen[1]:
                break
        assert under_way and said == b"OK"
        assert f"100 of {len(coded)}" in seen[0] and "being read" in seen[1]
        assert s.r.execute_command("BLY.HAS", "k", *range(10)) == [1] * 10
        # What takes its place stays.
        for change in (lambda: s.r.set("k", "mine"), lambda: s.r.delete("k"),
                       lambda: s.r.rename("k", "other")):
            for _ in range(100):
                s.r.flushall()
                begin(s.r, coded)
                under_way, said = meanwhile(s, *import_last(coded), change=change)
                if "changed meanwhile" in str(said):
                    break
            assert under_way and "changed meanwhile" in said
        assert not s.r.exists("k")
        s.r.rename("other", "k")
        assert s.r.execute_command(*import_last(coded)) == b"OK"


def test_a_file_arrives_though_who_sent_it_has_gone(tmp_path, coded):
    with Server(tmp_path) as s:
        begin(s.r, coded)
        other = s.connect().connection_pool.get_connection("_")
        other.send_command(*import_last(coded))
        wait_for(lambda: s.r.info("clients")["blocked_clients"] or other.can_read(0))
        other.disconnect()
        wait_for(lambda: s.r.execute_command("BLY.HAS", "k", 1) == [1])


def test_a_damaged_file_leaves_nothing(tmp_path, coded):
    with Server(tmp_path) as s:
        bad = bytearray(coded)
        bad[-9] ^= 1
        begin(s.r, bytes(bad))
        assert "damaged" in error_of(s.r, *import_last(bytes(bad)))
        assert not s.r.exists("k")
