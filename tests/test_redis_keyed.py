"""Keyed filters: a secret that is in the configuration, and nowhere else."""
import pathlib

import pytest
from conftest import kinds_that, PATIENCE
from redis_support import error_of, needs_server, Server, wait_for
from test_redis_command import has_hiredis
from test_redis_life import digests

pytestmark = needs_server

SECRET = bytes.fromhex("7f3a9c51e0b2d4466a8813f5cc09e27d")
OTHER = bytes.fromhex("00112233445566778899aabbccddeeff")
SETTING = "bf.bly-secret-file"


def key_file(path, *secrets):
    path.write_text("".join(s.hex() + "\n" for s in secrets))
    path.chmod(0o600)
    return path


@pytest.fixture
def secret(tmp_path):
    return key_file(tmp_path / "secret", SECRET)


def with_secret(folder, path, *options):
    return Server(folder, *options, module_args=["bly-secret-file", path])


def make(r, key="k", kind="blocked", n=300):
    assert r.execute_command("BLY.CREATE", key, kind, "CAPACITY", 1000,
                             "KEYED") == b"OK"
    r.execute_command("BLY.ADD", key, *range(n))


def info(r, key="k"):
    flat = r.execute_command("BLY.INFO", key)
    return dict(zip(flat[::2], flat[1::2]))


def export(r, key="k"):
    size, data = r.execute_command("BLY.EXPORT", key, 0, 64 << 20)
    assert len(data) == size
    return data


LOCKED = "the secret of this keyed filter is not here"


def assert_locked(r, key="k"):
    for command in "BLY.HAS", "BLY.ADD", "BLY.REMOVE", "BLY.COUNT", "BLY.GET":
        says = error_of(r, command, key, "1")
        assert LOCKED in says or "read only replica" in says
    assert info(r, key)[b"keyed"] == b"locked"


@pytest.mark.parametrize("kind", ["blocked", "scalable", "counting", "cuckoo"])
def test_it_answers_with_the_secret_and_not_without(tmp_path, secret, kind):
    with with_secret(tmp_path / "s", secret) as s, Server(tmp_path / "n") as n:
        make(s.r, kind=kind)
        assert all(s.r.execute_command("BLY.HAS", "k", *range(300)))
        assert info(s.r)[b"keyed"] == b"yes"
        s.r.execute_command("BLY.CREATE", "plain", kind, "CAPACITY", 1000)
        s.r.execute_command("BLY.ADD", "plain", *range(300))
        assert export(s.r) != export(s.r, "plain")
        assert b"keyed" not in info(s.r, "plain")
        # Elsewhere: it is kept, and gives no answer.
        n.r.restore("k", 0, s.r.dump("k"))
        assert_locked(n.r)
        assert export(n.r) == export(s.r)
        n.r.config_set(SETTING, str(secret))
        assert all(n.r.execute_command("BLY.HAS", "k", *range(300)))
        assert digests(n.r, ["k"]) == digests(s.r, ["k"])


def test_errors(tmp_path, secret):
    with Server(tmp_path / "s") as s:
        assert "bly-secret-file" in error_of(
            s.r, "BLY.CREATE", "k", "blocked", "KEYED")
        assert not s.r.exists("k")
        for words in (["CHECK", "12"], ["KEYED", "CHECK", "x"],
                      ["KEYED", "CHECK", "0"], ["KEYED", "CAPACITY"]):
            error_of(s.r, "BLY.CREATE", "k", "blocked", *words)
        assert not s.r.exists("k")
        bad = tmp_path / "bad"
        bad.touch(0o600)
        for text in (b"", b"x", b"0" * 31, b"0" * 33, b"g" * 32,
                     b"0" * 32 + b"\n" + b"0" * 31, (b"0" * 32 + b"\n") * 17,
                     b"x" * 5000):
            bad.write_bytes(text)
            assert "32 hexadecimal digits" in error_of(
                s.r, "CONFIG", "SET", SETTING, str(bad))
        assert "No such file" in error_of(s.r, "CONFIG", "SET", SETTING,
                                          str(tmp_path / "missing"))
        assert s.r.config_get(SETTING) == {SETTING: ""}
        secret.write_bytes(SECRET)  # raw
        for mode in (0o644, 0o604, 0o602, 0o620):
            secret.chmod(mode)
            assert "chmod 600" in error_of(s.r, "CONFIG", "SET", SETTING, str(secret))
        assert s.r.config_get(SETTING) == {SETTING: ""}
        secret.chmod(0o640)  # root:redis, as servers often get their secrets
        s.r.config_set(SETTING, str(secret))
        make(s.r)
        assert "only a primary" in error_of(s.r, "BLY.HASHED", "k", "ADD",
                                            b"12345678")
        assert "seed" in error_of(s.r, "BLY.CREATE", "l", "blocked", "KEYED",
                                  "SEED", 7)
    with pytest.raises(RuntimeError, match="(?s)bly-secret-file"):
        with_secret(tmp_path / "t", tmp_path / "missing")
    secret.chmod(0o644)
    with pytest.raises(RuntimeError, match="(?s)chmod 600"):
        with_secret(tmp_path / "u", secret)


def test_the_secret_is_nowhere(tmp_path, secret):
    """Not in files, replies, or what a replica is sent."""
    with with_secret(tmp_path / "s", secret, "--appendonly", "yes",
                     "--appendfsync", "always", "--repl-diskless-sync-delay",
                     0, "--aof-use-rdb-preamble", "no") as s, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", s.port) as b:
        make(s.r)
        make(s.r, "l", "scalable")
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        s.r.execute_command("BLY.ADD", "k", *range(1000, 1100))
        assert s.r.wait(1, PATIENCE * 1000) == 1
        s.r.save()
        b.r.save()
        everything = b"".join(
            p.read_bytes() for folder in (s.folder, b.folder)
            for p in pathlib.Path(folder).rglob("*") if p.is_file())
        everything += s.r.dump("k") + export(s.r) + str(
            [s.r.config_get("*"), s.r.info("everything"), info(s.r),
             s.r.execute_command("BLY.INFO", "k")]).encode()
        assert len(everything) > 10000
        for part in (SECRET, SECRET[:8], SECRET[8:], SECRET[7::-1],
                     SECRET.hex().encode(), SECRET.hex()[:16].encode()):
            assert part not in everything


def test_replicas_and_logs_without_the_secret_keep_up(tmp_path, secret):
    """They take hashes: when the secret comes, no item is missing."""
    with with_secret(tmp_path / "a", secret, "--repl-diskless-sync-delay", 0,
                     "--appendonly", "yes", "--appendfsync", "always") as a, \
            Server(tmp_path / "b", "--replicaof", "127.0.0.1", a.port,
                   "--appendonly", "yes") as b:
        wait_for(lambda: b.r.info("replication")["master_link_status"] == "up")
        kinds = kinds_that("add", "has", without=["tick", "likely-no"])
        for kind in kinds:
            make(a.r, kind, kind, 900)
        for kind in kinds_that("remove"):
            a.r.execute_command("BLY.REMOVE", kind, *range(100))
        a.r.execute_command("BLY.MERGE", "both", "blocked")
        keys = [*kinds, "both"]
        before = digests(a.r, keys)
        assert a.r.wait(1, PATIENCE * 1000) == 1
        assert digests(b.r, keys) == before
        for key in keys:
            assert_locked(b.r, key)
        b.r.config_set("replica-read-only", "no")
        b.r.config_set(SETTING, str(secret))
        for kind in kinds:
            assert all(b.r.execute_command("BLY.HAS", kind, *range(100, 900)))
        assert b.r.execute_command("BLY.COUNT", "counting", 5, 500) == \
            a.r.execute_command("BLY.COUNT", "counting", 5, 500)
        # The log, with the secret and without; and one that is another.
        a.kill()
        a.start()
        assert digests(a.r, keys) == before
        assert all(a.r.execute_command("BLY.HAS", "scalable", *range(900)))
        a.stop()
        a.module = a.module[:2] + [
            "bly-secret-file", str(key_file(tmp_path / "other", OTHER))]
        a.start()
        assert digests(a.r, keys) == before
        assert_locked(a.r, "blocked")
        make(a.r, "new")
        a.r.bgrewriteaof()
        wait_for(lambda: not a.r.info("persistence")
                 ["aof_rewrite_in_progress"])
        a.kill()
        a.start()
        assert all(a.r.execute_command("BLY.HAS", "new", *range(300)))
        assert_locked(a.r, "blocked")


def test_a_secret_is_replaced(tmp_path, secret):
    """The first is for new filters, all are for those that are there."""
    with with_secret(tmp_path / "s", secret) as s:
        make(s.r, "old")
        s.r.config_set(SETTING, str(key_file(tmp_path / "two", OTHER, SECRET)))
        make(s.r, "new")
        s.r.save()
        s.stop()
        s.module = s.module[:2] + ["bly-secret-file", str(tmp_path / "two")]
        s.start()
        for key in "old", "new":
            assert all(s.r.execute_command("BLY.HAS", key, *range(300)))
        assert "differ" in error_of(s.r, "BLY.MERGE", "old", "new")


@pytest.mark.skipif(not has_hiredis(), reason="no hiredis")
def test_files_of_the_command(tmp_path, secret, ok, trouble):
    lines = "".join(f"{i}\n" for i in range(300))
    with with_secret(tmp_path / "s", secret) as s:
        at = ["--port", s.port]
        make(s.r)
        ok("redis", "dump", "k", "f.bly", *at)
        assert ok("has", "-c", "-K", secret, "f.bly", stdin=lines).out == \
            "300\n"
        trouble("has", "-c", "f.bly", stdin=lines, says="--key-file")
        ok("build", "-o", "g.bly", "-K", secret, stdin=lines)
        ok("redis", "load", "g.bly", "g", *at)
        assert ok("redis", "has", "-c", "g", *at, stdin=lines).out == "300\n"
        assert export(s.r, "g") == (ok.path / "g.bly").read_bytes()
        s.r.config_set(SETTING, str(key_file(tmp_path / "other", OTHER)))
        trouble("redis", "load", "g.bly", "h", *at,
                says=["keyed", "secret", "bly-secret-file"])
        assert not [k for k in s.r.keys() if k not in (b"k", b"g")]
