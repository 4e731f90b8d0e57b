"""Older servers and newer ones: what a server lacks is done without.

The module asks for every function by name (adapters/redis/redis_server.h). Here it is
loaded through one that hides some of them (redis_less.c), or that has some which
this server does not.
"""
import re
import shutil
import subprocess

import pytest
import redis_support
from redis_support import MODULE, ROOT, Server, needs_server, redis
from test_redis_life import digests, fill

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [needs_server, pytest.mark.skipif(not CC, reason="no compiler")]

TABLE = re.findall(r"X\((REQUIRED|OPTIONAL), [^,]*, (\w+),",
                   (ROOT / "adapters/redis/redis_server.h").read_text())
REQUIRED = [name for need, name in TABLE if need == "REQUIRED"]
OPTIONAL = [name for need, name in TABLE if need == "OPTIONAL"]


@pytest.fixture(scope="module")
def less(tmp_path_factory):
    path = tmp_path_factory.mktemp("less") / "redis_less.so"
    subprocess.run([CC, "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o",
                    path, ROOT / "tests" / "redis_less.c", "-ldl"], check=True)
    return path


def use_all(s):
    """Every type through commands, a reload, a copy and a log written anew."""
    keys = fill(s.r)
    assert s.r.execute_command("BF.MEXISTS", "bf", 1, 2, 3) == [1, 1, 1]
    assert s.r.execute_command("CF.EXISTS", "cf", 1) == 1
    assert s.r.execute_command("CMS.QUERY", "cms", "a") == [7]
    assert s.r.execute_command("CMS.MERGE", "cms", 1, "cms") == b"OK"
    listed = s.r.execute_command("TOPK.LIST", "topk")
    assert s.r.execute_command("TOPK.QUERY", "topk", *listed) == [1] * 5
    assert s.r.execute_command("BLY.HAS", "bly", 1, 2, 3) == [1, 1, 1]
    assert b"Capacity" in s.cli("-3", "BF.INFO", "bf").stdout
    for key in keys:
        s.r.execute_command("MEMORY", "USAGE", key)
        assert s.r.copy(key, key + "2")
    s.r.info("everything")
    s.cli("COMMAND", "DOCS", "bf.add")
    with pytest.raises(redis.exceptions.ResponseError):
        s.r.execute_command("BF.RESERVE", "k", "0.01", 2**62)
    before = digests(s.r, keys)
    s.r.execute_command("DEBUG", "RELOAD")
    assert digests(s.r, keys) == before
    s.r.bgrewriteaof()
    assert s.is_alive()


def test_the_table_is_read():
    assert len(REQUIRED) > 30 and len(OPTIONAL) > 10
    assert "CreateCommand" in REQUIRED and "ReplyWithBool" in OPTIONAL


@pytest.mark.parametrize("name", [*OPTIONAL, ",-".join(OPTIONAL)],
                         ids=[*OPTIONAL, "all"])
def test_a_server_without(tmp_path, less, name):
    with Server(tmp_path, module=less, module_args=[MODULE, "-" + name]) as s:
        use_all(s)


def test_a_server_that_is_too_old(tmp_path, less):
    """It is told so, and goes on without the module."""
    with Server(tmp_path, "--enable-module-command", "yes", module=None) as s:
        for name in REQUIRED:
            with pytest.raises(redis.exceptions.ResponseError):
                s.r.execute_command("MODULE", "LOAD", str(less), str(MODULE),
                                    "-" + name)
            if name != "Log":
                assert "it has no RedisModule_" + name in s.log()
        assert s.r.module_list() == []
        s.r.execute_command("MODULE", "LOAD", str(less), str(MODULE), "none")
        assert s.r.execute_command("BF.ADD", "k", "x") == 1


def test_a_server_that_has_categories(tmp_path, less):
    """Redis 7.4 and Valkey 8: every family has its own, and every command is in
    it and in those of its kind."""
    with Server(tmp_path, module=less, module_args=[
            MODULE, "+AddACLCategory,+SetCommandACLCategories"]) as s:
        told = re.findall(r"told: (.*)\.$", s.log(), re.MULTILINE)
        for family in ("bloom", "cuckoo", "cms", "topk", "bly"):
            assert family in told
        for categories in ("write fast bloom", "read bloom", "write cuckoo",
                           "write cms", "read topk", "read fast bloom",
                           "write bly"):
            assert categories in told
        use_all(s)


def test_a_port_that_another_test_took(tmp_path, monkeypatch):
    """A test talks to its own server, not to the one that has the port."""
    with Server(tmp_path / "a") as a:
        ports = iter([a.port])
        free_port = redis_support.free_port
        monkeypatch.setattr(redis_support, "free_port",
                            lambda: next(ports, None) or free_port())
        with Server(tmp_path / "b") as b:
            assert a.port != b.port
            assert b.r.info("server")["process_id"] == b.process.pid
