"""bly_add() in SQLite: a function with an effect, on a file that others change too."""
import sqlite3

import pytest

from conftest import BUILD

MODULE = BUILD / "bloomery_sqlite.so"
pytestmark = [
    pytest.mark.skipif(not MODULE.exists(),
                       reason="bloomery_sqlite.so was not built: no headers of SQLite"),
    pytest.mark.skipif(not hasattr(sqlite3.Connection, "enable_load_extension"),
                       reason="this Python's sqlite3 loads no extensions")]


def connect():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(MODULE))
    return db


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


def test_rows_go_into_a_live_filter(ok, tmp_path):
    path = str(tmp_path / "live.bly")
    ok("live", "make", "live.bly", "-n", "10k", "-p", "0.1%")
    a, b = connect(), connect()
    assert one(a, "SELECT bly_add(?, 'swordfish')", path) == 1
    assert one(a, "SELECT bly_add(?, 'swordfish')", path) == 0
    assert one(b, "SELECT bly_has(?, 'swordfish')", path) == 1
    a.execute("CREATE TABLE t(x TEXT)")
    a.executemany("INSERT INTO t VALUES (?)", ((f"key-{i}",) for i in range(500)))
    assert one(a, "SELECT sum(bly_add(?, x)) FROM t", path) >= 498
    assert one(b, "SELECT bly_add(?, 42)", path) == 1  # becomes text
    assert ok("has", "live.bly", "key-7", "42", "nobody").out == "key-7\n42\n"
    assert one(b, "SELECT bly_checkpoint(?)", path) >= 498
    assert one(a, "SELECT bly_add(?, NULL)", path) is None
    ok("build", "-n", "1k", "-o", "next.bly", stdin="other\n")
    ok("live", "replace", "live.bly", "next.bly")
    assert one(a, "SELECT bly_add(?, 'later')", path) == 1
    assert one(b, "SELECT bly_has(?, 'other')", path) == 1
    assert one(b, "SELECT bly_has(?, 'swordfish')", path) == 0
    assert ok("has", "live.bly", "later", "other").out == "later\nother\n"
    a.close()
    b.close()


def test_what_is_refused(ok, tmp_path):
    db = connect()
    ok("build", "-o", "plain.bly", stdin="one\n")
    for sql, says in (("bly_add('plain.bly', 'x')", "not live"),
                      ("bly_add('none.bly', 'x')", "no live filter"),
                      ("bly_add(x'00', 'x')", "path"),
                      ("bly_add('plain.bly', 1.5)", "real"),
                      ("bly_checkpoint('plain.bly')", "not live")):
        sql = sql.replace("'plain", f"'{tmp_path}/plain").replace("'none", f"'{tmp_path}/none")
        with pytest.raises(sqlite3.Error, match=says):
            db.execute(f"SELECT {sql}").fetchall()
    db.close()
