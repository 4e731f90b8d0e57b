"""bloomery_sqlite.so in Debian's sqlite3, and in Python's sqlite3 module."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading

import pytest

from conftest import BUILD, PATIENCE, ROOT, run
from sql_support import INTEGERS, TEXTS, compact_twins, damaged_file

MODULE = BUILD / "bloomery_sqlite.so"
pytestmark = [
    pytest.mark.skipif(not MODULE.exists(),
                       reason="bloomery_sqlite.so was not built: no headers of SQLite"),
    pytest.mark.skipif(not hasattr(sqlite3.Connection, "enable_load_extension"),
                       reason="this Python's sqlite3 loads no extensions")]


def connect(path=":memory:", **kw):
    db = sqlite3.connect(path, **kw)
    db.enable_load_extension(True)
    db.load_extension(str(MODULE))
    return db


@pytest.fixture
def db():
    with connect() as made:
        yield made
    made.close()


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


def fails(db, sql, *args, says=""):
    with pytest.raises(sqlite3.Error) as wrong:
        db.execute(sql, args).fetchall()
    assert says in str(wrong.value), wrong.value


def numbers(db, n, name="a"):
    db.execute(f"CREATE TABLE {name}(x TEXT, n INTEGER)")
    db.executemany(f"INSERT INTO {name} VALUES (?, ?)",
                   ((f"key-{i}", i) for i in range(n)))


# --------------------------------------------------------------- one promise

@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 shell")
def test_the_shell_loads_it_without_a_name(tmp_path):
    done = subprocess.run(["sqlite3", ":memory:"], capture_output=True, text=True, timeout=PATIENCE,
                          input=f".load {MODULE.with_suffix('')}\nSELECT bly_has(bly_agg('a'), 'a');\n")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_a_kind_that_there_is_not(db):
    fails(db, "SELECT bly_agg('a', 'nosuch')", says="no kind 'nosuch'; there are: blocked, classic, ")
    fails(db, "SELECT bly_agg('a', 'bloom')", says="a plain Bloom filter is 'classic'; there are: blocked, classic, ")


def test_a_filter_made_here_is_the_commands_own(db, ok):
    """The same keys give the same file, byte for byte; text and integers."""
    numbers(db, 3000)
    path = str(ok.path / "sql.bly")
    for column, keys, flag in (("x", (f"key-{i}" for i in range(3000)), []),
                               ("n", range(3000), ["--int"])):
        (ok.path / "list").write_text("".join(f"{k}\n" for k in keys))
        ok("build", "-q", "-t", 1, *flag, "-p", 0.001, "-o", "cli.bly", "list")
        one(db, f"SELECT bly_save(bly_agg({column}, NULL, 'fpr=0.001'), ?) FROM a", path)
        assert (ok.path / "sql.bly").read_bytes() == (ok.path / "cli.bly").read_bytes()


@pytest.mark.parametrize("vectors,flag", [(TEXTS, []), (INTEGERS, ["--int"])])
def test_answers_are_those_of_the_command(db, ok, vectors, flag):
    """A file of text or of integers, asked with values of both types."""
    (ok.path / "list").write_text("".join(f"{key}\n" for _, key in vectors))
    ok("build", "-q", *flag, "-p", 1e-9, "-o", "f.bly", "list")
    path = str(ok.path / "f.bly")
    for sql, key in TEXTS + INTEGERS:
        asked = run("has", "-q", path, "--", key)
        if asked.status == 2:
            fails(db, f"SELECT bly_has(?, {sql})", path)
        else:
            assert one(db, f"SELECT bly_has(?, {sql})", path) == (asked.status == 0), (sql, key)
            assert one(db, f"SELECT bly_has(bly_load(?), {sql})", path) == (asked.status == 0)
    fails(db, "SELECT bly_has(?, 1.5)", path, says="no hash")


@pytest.mark.parametrize("kind", ["blocked", "fuse", "ribbon", "cuckoo"])
def test_every_kind(db, kind):
    numbers(db, 2000)
    assert one(db, "SELECT sum(bly_has((SELECT bly_agg(n, ?, 'fpr=0.01') FROM a), n)) FROM a", kind) == 2000
    wrong = one(db, "SELECT sum(bly_has((SELECT bly_agg(n, ?, 'fpr=0.01') FROM a), n + 100000)) FROM a", kind)
    assert wrong < 60
    info = json.loads(one(db, "SELECT bly_info(bly_agg(n, ?)) FROM a", kind))
    assert info["kind"] == kind and info["keys"] == "int64"


def test_counts_and_values(db, ok):
    (ok.path / "v.tsv").write_text("".join(f"k{i}\t{i * 3}\n" for i in range(100)))
    ok("build", "-q", "-k", "bloomier", "-o", "v.bly", "v.tsv")
    assert one(db, "SELECT bly_get(?, 'k7')", str(ok.path / "v.bly")) == 21
    numbers(db, 10)
    made = "(SELECT bly_agg(n % 2, 'counting', 'items=100') FROM a)"
    assert one(db, f"SELECT bly_count({made}, 1)") >= 5
    assert one(db, f"SELECT bly_count({made}, 9)") == 0
    fails(db, "SELECT bly_count(bly_agg(1), 1)", says="count")


def test_merge_of_parts_is_the_whole(db):
    numbers(db, 3000)
    parts = one(db, "SELECT bly_merge_agg(f) FROM (SELECT bly_agg(n, 'blocked', 'items=3000') AS f "
                    "FROM a GROUP BY n % 7)")
    whole = one(db, "SELECT bly_agg(n, 'blocked', 'items=3000') FROM a")
    assert one(db, "SELECT bly_likeness(?, ?)", parts, whole) == 1
    assert one(db, "SELECT sum(bly_has(?, n)) FROM a", parts) == 3000


def test_sketches(db):
    numbers(db, 5000)
    counted = json.loads(one(db, "SELECT bly_info(bly_hll_agg(n)) FROM a"))
    assert abs(counted["items"] - 5000) < 5 * counted["items_sd"] + 1
    top = json.loads(one(db, "SELECT bly_topk_agg(CASE WHEN n % 3 THEN 'often' ELSE x END, 2) FROM a"))
    assert top[0] == ["often", 3333]
    assert one(db, "SELECT bly_topk_agg(n / 4000, 2) FROM a") == '[["0",4000],["1",1000]]'
    fails(db, "SELECT bly_topk_agg(x'00', 2)", says="blobs")
    fails(db, "SELECT bly_topk_agg(1, 0)", says="fewer than one")
    odd = one(db, "SELECT bly_topk_agg(CAST(x'61ff22c3bc' AS TEXT), 1)")
    assert json.loads(odd) == [["a\ufffd\"\u00fc", 1]]
    like = one(db, "SELECT bly_likeness((SELECT bly_minhash_agg(n) FROM a WHERE n < 4000), "
                   "(SELECT bly_minhash_agg(n) FROM a WHERE n >= 1000))")
    assert abs(like - 0.6) < 0.2


def test_nulls_and_nothing(db):
    numbers(db, 0)
    assert one(db, "SELECT bly_agg(x) FROM a") is None
    assert one(db, "SELECT bly_merge_agg(x) FROM a") is None
    assert one(db, "SELECT bly_hll_agg(x) FROM a") is None
    assert one(db, "SELECT bly_has(NULL, 1)") is None
    assert one(db, "SELECT bly_has(bly_agg(1), NULL)") is None
    db.execute("INSERT INTO a VALUES (NULL, NULL), ('x', NULL)")
    assert json.loads(one(db, "SELECT bly_info(bly_agg(x)) FROM a"))["capacity"] == 1


def test_plans_are_for_numbers(db):
    for args in ("'abc'", "x'00'", "1000, 'x'", "-1", "-0.5", "1000, 0", "1000, 1.5"):
        fails(db, f"SELECT bly_plan({args})", says="bloomery: ")
    assert one(db, "SELECT bly_plan('1000')") == one(db, "SELECT bly_plan(1000)") == one(db, "SELECT bly_plan(1e3, NULL)")


def test_facts_and_plans(db, ok):
    ok("build", "-q", "--note", "of May", "-o", "f.bly", stdin="a\nb\n")
    row = db.execute("SELECT kind, keys, capacity, note FROM bly_file(?)",
                     (str(ok.path / "f.bly"),)).fetchone()
    assert row == ("blocked", "text", 2, "of May")
    plan = json.loads(one(db, "SELECT bly_plan(1000000, 0.01, 'fuse')"))
    assert plan["kind"] == "fuse" and 7 < plan["bits_per_key"] < 10
    fails(db, "SELECT bly_plan(0)")
    fails(db, "SELECT * FROM bly_file('absent')", says="absent")


def found(db, path, term):
    return sorted({r[0] for r in db.execute("SELECT document FROM bly_index_search(?, ?)", (str(path), term))})


def test_which_files_may_have_a_word(db, ok):
    for name, text in (("a.log", "GET /x trace-7f3a91\n"), ("b.log", "ERROR user=4711\nok\n"), ("c.log", "ERROR other\n")):
        (ok.path / "logs").mkdir(exist_ok=True)
        (ok.path / "logs" / name).write_text(text)
    ok("index", "build", "-q", "-o", "logs.blx", "logs")
    ok("index", "build", "-q", "-i", "-o", "small.blx", "logs")
    blx = ok.path / "logs.blx"
    assert [f.rsplit("/", 1)[1] for f in found(db, blx, "ERROR")] == ["b.log", "c.log"]
    assert [f.rsplit("/", 1)[1] for f in found(db, blx, "user=4711")] == ["b.log"]
    assert [f.rsplit("/", 1)[1] for f in found(db, blx, "trace-7f3a91")] == ["a.log"]
    assert found(db, blx, "error") == [] and len(found(db, ok.path / "small.blx", "error")) == 2
    assert db.execute("SELECT count(*) FROM bly_index_search(?, NULL)", (str(blx),)).fetchone()[0] == 0
    assert one(db, "SELECT term FROM bly_index_search(?, ?)", str(blx), "other") == "other"
    fails(db, "SELECT * FROM bly_index_search(?, '--')", str(blx), says="no word")
    fails(db, "SELECT * FROM bly_index_search(?)", str(blx))
    fails(db, "SELECT * FROM bly_index_search('absent.blx', 'x')", says="absent.blx")
    raw = bytearray(blx.read_bytes())
    raw[-1] ^= 1
    (ok.path / "bad.blx").write_bytes(raw)
    fails(db, "SELECT * FROM bly_index_search(?, 'x')", str(ok.path / "bad.blx"), says="damaged")


# ---------------------------------------------------------------- bad input

def test_a_damaged_file_never_says_no(db, ok):
    path = str(damaged_file(ok))
    for sql in ("SELECT bly_has(?, 7)", "SELECT bly_info(?)", "SELECT * FROM bly_file(?)", "SELECT bly_load(?)"):
        fails(db, sql, path, says="damaged.bly: damaged")


def test_what_is_no_filter(db, ok, tmp_path):
    good = one(db, "SELECT bly_agg(1)")
    for bad in (b"", b"\0", b"x" * 5000, good[:100], good[:-1], good + b"x"):
        fails(db, "SELECT bly_has(?, 1)", bad)
        fails(db, "SELECT bly_info(?)", bad)
        fails(db, "SELECT bly_merge_agg(?)", bad)
    for at in range(0, len(good), 97):
        flipped = bytearray(good)
        flipped[at] ^= 1
        try:
            one(db, "SELECT bly_has(?, 1)", bytes(flipped))
        except sqlite3.Error:
            pass
    fails(db, "SELECT bly_has(1, 1)", says="blob")
    fails(db, "SELECT bly_has('absent.bly', 1)", says="absent.bly")
    fails(db, "SELECT bly_agg(1, 'nokind')", says="nokind")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr')", says="NAME=VALUE")
    for what in ("fpr=x", "fpr=-1"):
        fails(db, "SELECT bly_agg(1, 'blocked', ?)", what, says=f"{what} is not a rate; expected a number between")
    fails(db, "SELECT bly_agg(1, 'blocked', 'items=1.5')", says="items=1.5 is not a whole number")
    fails(db, "SELECT bly_agg(1, 'blocked', 'nonsense=3')", says="nonsense")
    for nothing in ("fpr=0", "items=0", "bits=0"):
        fails(db, "SELECT bly_agg(1, 'blocked', ?)", nothing, says="too little")
    fails(db, "SELECT bly_agg(v) FROM (SELECT 1 AS v UNION ALL SELECT 'a')", says="two types")
    fails(db, "SELECT bly_agg(1.5)", says="no hash")
    a, b = one(db, "SELECT bly_agg(1, NULL, 'seed=1')"), one(db, "SELECT bly_agg(1, NULL, 'seed=2')")
    fails(db, "SELECT bly_merge_agg(f) FROM (SELECT ? AS f UNION ALL SELECT ?)", a, b)


def test_a_pipe_is_no_file(db, tmp_path):
    """Whoever opened it would wait."""
    os.mkfifo(tmp_path / "pipe")
    for sql in ("SELECT bly_has(?, 1)", "SELECT bly_load(?)", "SELECT bly_info(?)", "SELECT * FROM bly_file(?)",
                "SELECT * FROM bly_index_search(?, 'x')", "SELECT bly_save(bly_agg(1), ?)"):
        fails(db, sql, str(tmp_path / "pipe"), says="a pipe")


def test_a_keyed_filter_needs_its_key(db, ok):
    (ok.path / "key").write_bytes(bytes(16))
    os.chmod(ok.path / "key", 0o600)
    ok("build", "-q", "-K", "key", "-o", "k.bly", stdin="a\n")
    fails(db, "SELECT bly_has(?, 'a')", str(ok.path / "k.bly"))
    assert json.loads(one(db, "SELECT bly_info(bly_load(?))", str(ok.path / "k.bly")))["keyed"]


def test_files_are_not_for_untrusted_schemas(db, ok):
    ok("build", "-q", "-o", "f.bly", stdin="a\n")
    path = str(ok.path / "f.bly")
    db.execute(f"CREATE VIEW reads AS SELECT bly_load('{path}')")
    db.execute(f"CREATE VIEW asks AS SELECT bly_has('{path}', 'a')")
    fails(db, "SELECT * FROM reads", says="unsafe")
    assert one(db, "SELECT * FROM asks") == 1
    db.execute("PRAGMA trusted_schema = OFF")
    fails(db, "SELECT * FROM asks", says="unsafe")


def test_a_file_that_is_replaced(db, ok):
    """The next statement sees the new one; a running one keeps the old."""
    path = str(ok.path / "f.bly")
    for i in range(5):
        ok("build", "-q", "-p", 1e-9, "-o", "f.bly", stdin=f"key{i}\n")
        assert one(db, "SELECT bly_has(?, ?)", path, f"key{i}") == 1
        assert one(db, "SELECT bly_has(?, ?)", path, f"key{i + 1}") == 0
    (ok.path / "f.bly").write_bytes(b"nonsense")
    fails(db, "SELECT bly_has(?, 'x')", path)


def test_saving(db, ok):
    fails(db, "SELECT bly_save(bly_agg(1), '/nonexistent/f.bly')", says="/nonexistent")
    fails(db, "SELECT bly_save(x'00', ?)", str(ok.path / "x"))
    assert not (ok.path / "x").exists()
    one(db, "SELECT bly_save(bly_hll_agg(1), ?)", str(ok.path / "h.bly"))
    assert "hyperloglog" in ok("info", "h.bly").out.lower()


# ------------------------------------------------------------ virtual table

def test_a_table_takes_keys_and_answers(db):
    numbers(db, 1000)
    db.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=1000, fpr=0.0001)")
    db.execute("INSERT INTO seen SELECT x FROM a WHERE n < 500")
    assert one(db, "SELECT count(*) FROM a JOIN seen ON seen.key = a.x") in range(500, 503)
    assert db.execute("SELECT key FROM seen WHERE key IN ('key-1', 'none')").fetchall() == [("key-1",)]
    fails(db, "SELECT * FROM seen", says="no query solution")
    fails(db, "INSERT INTO seen VALUES (1.5)", says="no hash")
    fails(db, "DELETE FROM seen WHERE key = 'key-1'", says="cannot take a key out")
    for bad in ("items=none", "kind=fuse, items=10", "kind=none", "fpr=2, items=10"):
        fails(db, f"CREATE VIRTUAL TABLE bad USING bloomery({bad})", says="bloomery")
    fails(db, "CREATE VIRTUAL TABLE bad USING bloomery(kind=fuse)", says="use a kind that can add")
    db.execute("ALTER TABLE seen RENAME TO known")
    assert one(db, "SELECT count(*) FROM known WHERE key = 'key-1'") == 1
    db.execute("DROP TABLE known")
    assert one(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%filter'") == 0


def test_a_table_knows_keys_by_their_bytes(db):
    """By other collations ALICE is alice, which the filter cannot know: an error, not a no."""
    db.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=100, fpr=1e-6)")
    db.execute("INSERT INTO seen VALUES ('alice')")
    db.execute("CREATE TABLE people(name TEXT COLLATE NOCASE)")
    db.execute("INSERT INTO people VALUES ('ALICE'), ('alice')")
    for asked in ("SELECT count(*) FROM seen WHERE key = 'ALICE' COLLATE NOCASE",
                  "SELECT count(*) FROM seen WHERE key = 'alice ' COLLATE RTRIM",
                  "SELECT count(*) FROM people JOIN seen ON name = key",
                  "SELECT count(*) FROM people, seen WHERE name = key"):
        fails(db, asked, says="by their bytes")
    assert one(db, "SELECT name FROM people JOIN seen ON name = key COLLATE BINARY") == "alice"
    assert one(db, "SELECT name FROM people JOIN seen ON key = name") == "alice"  # a column without one comes first
    assert one(db, "SELECT count(*) FROM seen WHERE key = 'alice' AND key = 'ALICE' COLLATE NOCASE") == 1


def test_a_table_that_grows_and_one_that_removes(db):
    db.execute("CREATE VIRTUAL TABLE grows USING bloomery")
    db.executemany("INSERT INTO grows VALUES (?)", ((i,) for i in range(5000)))
    assert sum(one(db, "SELECT count(*) FROM grows WHERE key = ?", i) for i in range(5000)) == 5000
    db.execute("CREATE VIRTUAL TABLE less USING bloomery(kind=cuckoo, items=100, fpr=1e-6)")
    db.execute("INSERT INTO less VALUES (1), (2)")
    db.execute("DELETE FROM less WHERE key = 1")
    assert one(db, "SELECT count(*) FROM less WHERE key IN (1, 2)") == 1


def has(db, key):
    return one(db, "SELECT count(*) FROM seen WHERE key = ?", key)


def test_rollback_and_savepoints(tmp_path):
    path = str(tmp_path / "t.db")
    db = connect(path, isolation_level=None)
    db.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=1000, fpr=1e-9)")
    db.execute("BEGIN")
    db.execute("INSERT INTO seen VALUES ('a')")
    assert has(db, "a")
    db.execute("ROLLBACK")
    assert not has(db, "a")
    db.execute("BEGIN")
    db.execute("INSERT INTO seen VALUES ('b')")
    db.execute("SAVEPOINT one")
    db.execute("INSERT INTO seen VALUES ('c')")
    db.execute("SAVEPOINT two")
    db.execute("INSERT INTO seen VALUES ('d')")
    db.execute("ROLLBACK TO two")
    assert (has(db, "b"), has(db, "c"), has(db, "d")) == (1, 1, 0)
    db.execute("ROLLBACK TO one")
    assert (has(db, "b"), has(db, "c")) == (1, 0)
    db.execute("COMMIT")
    db.close()
    db = connect(path)
    assert (has(db, "a"), has(db, "b"), has(db, "c"), has(db, "d")) == (0, 1, 0, 0)
    db.close()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_connection_sees_what_was_committed(tmp_path, mode):
    path = str(tmp_path / "t.db")
    writer, reader = (connect(path, isolation_level=None) for _ in range(2))
    writer.execute(f"PRAGMA journal_mode = {mode}")
    writer.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=1000, fpr=1e-9)")
    for i in range(5):
        writer.execute("BEGIN")
        writer.execute("INSERT INTO seen VALUES (?)", (i,))
        if mode == "wal":
            assert not has(reader, i)
        writer.execute("COMMIT")
        assert has(reader, i)
    reader.execute("INSERT INTO seen VALUES (99)")
    assert has(writer, 99)
    writer.close()
    reader.close()


CRASH = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[2])
for i in range(100000):
    db.execute("BEGIN")
    db.execute("INSERT INTO seen VALUES (?)", (i,))
    db.execute("INSERT INTO log VALUES (?)", (i,))
    db.execute("COMMIT")
    print(i, flush=True)
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_killed_it_has_all_that_was_committed_and_no_more(tmp_path, mode):
    path = str(tmp_path / "t.db")
    db = connect(path)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=10000, fpr=1e-9)")
    db.execute("CREATE TABLE log(i)")
    db.commit()
    db.close()
    child = subprocess.Popen(["/usr/bin/python3", "-c", CRASH, path, MODULE], stdout=subprocess.PIPE, text=True)
    for _ in range(20):
        last = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    child.wait()
    db = connect(path)
    logged = {i for i, in db.execute("SELECT i FROM log")}
    assert last in logged
    assert {i for i in range(10000) if has(db, i)} == logged
    assert one(db, "PRAGMA integrity_check") == "ok"
    db.close()


def test_many_connections_at_once(tmp_path):
    path = str(tmp_path / "t.db")
    first = connect(path)
    first.execute("PRAGMA journal_mode = wal")
    first.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=1000, fpr=1e-9)")
    first.commit()

    def add(number):
        db = connect(path, isolation_level=None, timeout=PATIENCE)
        for i in range(25):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO seen VALUES (?)", (1000 * number + i,))
            db.execute("COMMIT")
        db.close()
    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(has(first, 1000 * n + i) for n in range(4) for i in range(25))
    first.close()


@pytest.mark.parametrize("kind", ["blocked", "scalable", "fuse"])
def test_filters_of_one_size_in_turn(db, kind):
    """A filter that comes again is known again, and another of the same size is not taken for it."""
    db.execute("CREATE TABLE many(id INTEGER, f BLOB)")
    for i in range(7):
        db.execute(f"INSERT INTO many SELECT ?1, bly_agg(?1 || '-' || value, '{kind}', 'fpr=0.000001') "
                   "FROM json_each('[1,2,3,4,5,6,7,8,9]')", (i,))
    assert one(db, "SELECT count(DISTINCT length(f)) FROM many") <= 2
    for order in ("a.id, b.id", "b.id, a.id"):
        rows = db.execute("SELECT a.id = b.id, bly_has(a.f, b.id || '-' || v.value) FROM many a, many b, "
                          f"json_each('[1,5,9]') v ORDER BY {order}").fetchall()
        assert len(rows) == 147 and all(has == same for same, has in rows)
    assert one(db, "SELECT min(bly_has((SELECT f FROM many WHERE id = m.id), m.id || '-3')) FROM many m") == 1


def test_compact_filters_of_one_size_in_turn(db, ok):
    db.execute("CREATE TABLE twins(key TEXT, f BLOB)")
    db.executemany("INSERT INTO twins VALUES (?, ?)", compact_twins(ok))
    rows = db.execute("SELECT a.key = b.key, bly_has(a.f, b.key) FROM twins a, twins b ORDER BY b.key, a.key").fetchall()
    assert len(rows) == 9 and all(has == same for same, has in rows)


def test_a_value_lasts_as_long_as_its_statement(db):
    """A filter that a statement made is not copied for each row; others make theirs while it still asks its own."""
    numbers(db, 3000)
    ask = "SELECT bly_has((SELECT bly_agg(x || ?1) FROM a), x || ?1), n FROM a"
    cursors = [db.execute(ask, (f"-{i}",)) for i in range(6)]
    for _ in range(100):
        for cursor in cursors:
            assert cursor.fetchone()[0] == 1
        db.execute("SELECT length(bly_agg(x)) FROM a").fetchall()
    groups = db.execute("SELECT n % 7, bly_agg(x) AS f FROM a GROUP BY 1 ORDER BY 1").fetchall()
    assert len({f for _, f in groups}) == 7
    assert all(one(db, "SELECT min(bly_has(?, x)) FROM a WHERE n % 7 = ?", f, i) == 1 for i, f in groups)
    assert one(db, "SELECT max(f) FROM (SELECT n % 7, bly_agg(x) AS f FROM a GROUP BY 1)") == max(f for _, f in groups)


def test_values_do_not_pile_up():
    """The one that was kept goes when the next is made, also of a statement that runs again and again."""
    code = (f"import resource, sqlite3; db = sqlite3.connect(':memory:'); db.enable_load_extension(True)\n"
            f"db.load_extension({str(MODULE)!r})\n"
            "for i in range(200): db.execute(\"SELECT length(bly_agg(1, NULL, 'items=1M'))\").fetchall()\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)")
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert int(done.stdout) < 120_000, (done.stdout, done.stderr)  # KiB; all of them would be 250 MB


# ------------------------------------------------------------------- details

def test_a_path_ends_where_it_ends(db, tmp_path):
    """With a NUL in it, it would be the path of another file."""
    path = str(tmp_path / "f.bly")
    db.execute("SELECT bly_save(bly_agg('x'), ?)", (path,)).fetchall()
    cut = path + "\0.txt"
    for sql in ("SELECT bly_has(?, 'x')", "SELECT bly_count(?, 'x')", "SELECT bly_info(?)", "SELECT bly_load(?)",
                "SELECT bly_save(bly_agg('y'), ?)", "SELECT * FROM bly_file(?)",
                "SELECT * FROM bly_index_search(?, 'x')"):
        fails(db, sql, cut, says="NUL")
    assert one(db, "SELECT bly_has(?, 'x')", path) == 1


def test_inserting_skips_null(db):
    db.execute("CREATE VIRTUAL TABLE seen USING bloomery(items=100)")
    db.execute("CREATE TABLE visits AS SELECT 'ann' AS email UNION ALL SELECT NULL UNION ALL SELECT 'bob'")
    db.execute("INSERT INTO seen SELECT email FROM visits")
    assert one(db, "SELECT count(*) FROM visits JOIN seen ON seen.key = visits.email") == 2


# ------------------------------------------------------- linked into a program

def test_linked_in_and_without_memory(tmp_path):
    """tests/sqlite_faults.c has the functions linked in, as docs/sql.md says, and each allocation fails in turn, SQLite's
    and ours: an error or the right answer, and afterwards the right one."""
    program = tmp_path / "faults"
    sources = [ROOT / "tests" / "sqlite_faults.c", *ROOT.glob("adapters/sqlite/*.c"), *ROOT.glob("adapters/sql/*.c"),
               ROOT / "base" / "grow.c"]
    built = subprocess.run(["gcc", "-DSQLITE_CORE", f"-I{ROOT}", f"-I{ROOT}/include", *sources, BUILD / "libbloomery.a",
                            "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc", "-lsqlite3", "-lm", "-pthread", "-o", program],
                           capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "failures" in done.stdout, done.stderr


def test_small_groups_can_be_compact(db):
    """Without a page for the header; the filter is the same, and stays compact where it is merged."""
    db.execute("CREATE TABLE orders(shop, id)")
    db.executemany("INSERT INTO orders VALUES (?, ?)", [(i % 100, i) for i in range(300)])
    sizes = [n for (n,) in db.execute("SELECT length(bly_agg(id, NULL, 'compact=yes, items=3')) FROM orders GROUP BY shop")]
    assert len(sizes) == 100 and max(sizes) < 150
    assert one(db, "SELECT length(bly_agg(id, NULL, 'items=3')) FROM orders WHERE shop = 7") > 4096
    assert one(db, "SELECT count(*) FROM (SELECT bly_agg(id, NULL, 'compact=yes items=3') AS f, shop FROM orders GROUP BY shop) AS g "
                   "JOIN orders ON orders.shop = g.shop WHERE bly_has(f, id)") == 300
    assert one(db, "SELECT length(bly_merge_agg(f)) FROM (SELECT bly_agg(id, NULL, 'compact=yes items=3') AS f FROM orders GROUP BY shop)") < 150
    assert one(db, "SELECT bly_agg(id, NULL, 'compact=no') = bly_agg(id) FROM orders") == 1
    fails(db, "SELECT bly_agg(id, NULL, 'compact=1') FROM orders", says="compact=yes")
