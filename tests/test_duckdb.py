"""bloomery.duckdb_extension in DuckDB, the build that npm distributes."""
import ctypes.util
import json
import os
import subprocess

import pytest

from conftest import BUILD, run
from duck_support import DuckDB, needs_npm
from sql_support import INTEGERS, TEXTS, compact_twins, damaged_file

MODULE = BUILD / "bloomery.duckdb_extension"
pytestmark = [needs_npm,
              pytest.mark.skipif(not MODULE.exists(), reason="bloomery.duckdb_extension was not built")]


def database(*settings):
    db = DuckDB("allow_unsigned_extensions=true", *settings)
    db(f"LOAD '{MODULE}'")
    return db


@pytest.fixture(scope="module")
def shared():
    db = database("threads=4")
    db("CREATE TABLE a AS SELECT 'key-' || i AS x, i AS n FROM range(20000) r(i)")
    yield db
    db.close()


@pytest.fixture
def db(shared):
    """Nothing of a test before: not even what it set."""
    shared("RESET VARIABLE f")
    return shared


def one(db, sql):
    return db(sql)[0][0]


def number(db, sql):
    return int(one(db, sql))


def fails(db, sql, says=""):
    answer = db.ask(sql)
    assert "error" in answer, (sql, answer)
    assert says in answer["error"], (sql, answer)


# --------------------------------------------------------------- one promise

def test_a_filter_made_here_is_the_commands_own(db, ok):
    """The same keys give the same file, byte for byte, with four threads; text and integers."""
    path = ok.path / "sql.bly"
    for column, keys, flag in (("x", (f"key-{i}" for i in range(20000)), []),
                               ("n", range(20000), ["--int"])):
        (ok.path / "list").write_text("".join(f"{k}\n" for k in keys))
        ok("build", "-q", "-t", 1, *flag, "-p", 0.001, "-o", "cli.bly", "list")
        assert number(db, f"SELECT bly_save(bly_agg({column}, NULL, 'fpr=0.001'), '{path}') FROM a") == path.stat().st_size
        assert path.read_bytes() == (ok.path / "cli.bly").read_bytes()
        same = f"SELECT bly_load('{path}') = (SELECT content FROM read_blob('{path}'))"
        assert one(db, same) is True


@pytest.mark.parametrize("vectors,flag", [(TEXTS, []), (INTEGERS, ["--int"])])
def test_answers_are_those_of_the_command(db, ok, vectors, flag):
    """A file of text or of integers, asked with values of both types."""
    (ok.path / "list").write_text("".join(f"{key}\n" for _, key in vectors))
    ok("build", "-q", *flag, "-p", 1e-9, "-o", "f.bly", "list")
    path = ok.path / "f.bly"
    for sql, key in TEXTS + INTEGERS:
        asked = run("has", "-q", path, "--", key)
        for f in (f"'{path}'", f"bly_load('{path}')"):
            if asked.status == 2:
                fails(db, f"SELECT bly_has({f}, {sql})")
            else:
                assert one(db, f"SELECT bly_has({f}, {sql})") is (asked.status == 0), (sql, key)
    fails(db, f"SELECT bly_has('{path}', 1.5)", says="no hash")
    fails(db, f"SELECT bly_has('{path}', 1.5::FLOAT)", says="no hash")
    fails(db, f"SELECT bly_has('{path}', DATE '2026-01-01')", says="no hash")


@pytest.mark.parametrize("kind", ["blocked", "fuse", "ribbon", "cuckoo"])
def test_every_kind(db, kind):
    db(f"SET VARIABLE f = (SELECT bly_agg(n, '{kind}', 'fpr=0.01') FROM a)")
    assert number(db, "SELECT count(*) FROM a WHERE bly_has(getvariable('f'), n)") == 20000
    assert number(db, "SELECT count(*) FROM a WHERE bly_has(getvariable('f'), n + 1000000)") < 400
    info = json.loads(one(db, "SELECT bly_info(getvariable('f'))"))
    assert info["kind"] == kind and info["keys"] == "int64"


@pytest.mark.parametrize("kind", ["blocked", "cuckoo", "fuse", "scalable"])
def test_threads_do_not_matter(shared, kind):
    """One thread or four, sorted or not: the same bytes."""
    sql = f"SELECT md5(bly_agg(n, '{kind}')), md5(bly_hll_agg(x)), md5(bly_minhash_agg(x)) FROM %s"
    rows = {str(shared(sql % source)) for source in ("a", "(FROM a ORDER BY hash(n))", "(FROM a ORDER BY n DESC)")}
    shared("SET threads = 1")
    rows.add(str(shared(sql % "a")))
    shared("SET threads = 4")
    assert len(rows) == 1


def test_integers_of_all_widths(db):
    """A number is one key, whatever its type is called."""
    for type_ in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"):
        asked = (f"SELECT count(*) FILTER (bly_has(getvariable('f'), x::{type_})), count(x) "
                 "FROM (SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE i % 100 END AS x FROM range(5000) r(i))")
        db("SET VARIABLE f = (SELECT bly_agg(i) FROM range(100) r(i))")
        hits, rows = db(asked)[0]
        assert hits == rows
        db("SET VARIABLE f = (SELECT bly_agg(i::VARCHAR, NULL, 'fpr=0.000001') FROM range(100) r(i))")
        assert db(asked)[0] == [hits, rows]
        made = f"SELECT bly_has(bly_agg(i::{type_}, NULL, 'fpr=1e-9'), 99::{type_}) FROM range(100) r(i)"
        assert one(db, made) is True
    fails(db, "SELECT bly_has(bly_agg(1), 18446744073709551615::UBIGINT)")
    assert one(db, "SELECT bly_has(bly_agg(18446744073709551615::UBIGINT), 18446744073709551615::UBIGINT)") is True


def test_counts_and_values(db, ok):
    (ok.path / "v.tsv").write_text("".join(f"k{i}\t{i * 3}\n" for i in range(100)))
    ok("build", "-q", "-k", "bloomier", "-o", "v.bly", "v.tsv")
    assert number(db, f"SELECT bly_get('{ok.path}/v.bly', 'k7')") == 21
    db("SET VARIABLE f = (SELECT bly_agg(n % 2, 'counting', 'items=100') FROM a WHERE n < 10)")
    assert number(db, "SELECT bly_count(getvariable('f'), 1)") >= 5
    assert number(db, "SELECT bly_count(getvariable('f'), 9)") == 0
    fails(db, "SELECT bly_count(bly_agg(1), 1)", says="count")


def test_merge_of_parts_is_the_whole(db):
    db("CREATE OR REPLACE TABLE parts AS SELECT bly_agg(n, 'blocked', 'items=20000') AS f FROM a GROUP BY n % 70")
    merged = "SELECT bly_merge_agg(f) FROM parts"
    whole = "SELECT bly_agg(n, 'blocked', 'items=20000') FROM a"
    assert one(db, f"SELECT bly_likeness(({merged}), ({whole}))") == 1
    db(f"SET VARIABLE f = ({merged})")
    assert number(db, "SELECT count(*) FROM a WHERE bly_has(getvariable('f'), n)") == 20000
    assert number(db, "SELECT count(*) FROM parts, a WHERE bly_has(f, n)") >= 20000


def test_filters_in_a_window(db):
    """States that are combined more than once."""
    rows = db("SELECT n, bly_has(bly_agg(n, NULL, 'fpr=1e-9') OVER (ORDER BY n ROWS 2 PRECEDING), n - 2), "
              "bly_has(bly_agg(n, NULL, 'fpr=1e-9') OVER (ORDER BY n ROWS 2 PRECEDING), n - 3), "
              "octet_length(bly_hll_agg(n) OVER (ORDER BY n ROWS 2 PRECEDING)) > 0 FROM a WHERE n < 200 ORDER BY n")
    assert all(row[1] is (int(row[0]) >= 2) and row[2] is False and row[3] is True for row in rows)


def test_states_for_all_rows_at_once(db):
    """Rows that are sorted first, windows over all rows and over those so far: DuckDB has one state for many rows."""
    made = "bly_agg(n ORDER BY n DESC), bly_agg(x ORDER BY hash(n)), bly_hll_agg(n ORDER BY hash(n))"
    plain = "bly_agg(n), bly_agg(x), bly_hll_agg(n)"
    for rest in ("FROM a", "FROM a WHERE n < 3", "FROM a GROUP BY n % 3 ORDER BY min(n)"):
        assert db(f"SELECT {made} {rest}") == db(f"SELECT {plain} {rest}")
    for rows in (2, 3, 5, 5000):
        over = "bly_has(bly_agg({}, NULL, 'fpr=1e-9') OVER ({}), n)"
        asked = ", ".join([over.format("n", ""), over.format("n + 10000", ""), over.format("n", "PARTITION BY n % 2"),
                           over.format("n + 1 - n % 2 * 2", "PARTITION BY n % 2"), over.format("n", "ROWS UNBOUNDED PRECEDING")])
        expected = [[True, False, True, False, True]]
        assert db(f"SELECT DISTINCT {asked} FROM a WHERE n < {min(rows, 300)}") == expected
    db("SET VARIABLE f = (SELECT DISTINCT bly_agg(n) OVER () FROM a)")
    assert number(db, "SELECT count(*) FROM a WHERE bly_has(getvariable('f'), n)") == 20000


# DuckDB's memory from malloc(), as in its builds without jemalloc.
PLAIN_MEMORY = """
#include <stdlib.h>
void *duckdb_je_malloc(size_t n) { return malloc(n); }
void *duckdb_je_realloc(void *p, size_t n) { return realloc(p, n); }
void *duckdb_je_mallocx(size_t n, int flags) { return (void)flags, malloc(n); }
void duckdb_je_free(void *p) { free(p); }
void duckdb_je_sdallocx(void *p, size_t n, int flags) { (void)n, (void)flags, free(p); }
"""


@pytest.mark.parametrize("memory", ["of jemalloc, which is silent", "of libc", "of another malloc()"])
def test_builds_without_a_known_allocator(tmp_path, memory):
    """Where states may be those of groups or of windows, a statement fails; none gives a filter that lacks rows."""
    module, env = tmp_path / MODULE.name, dict(os.environ)
    module.write_bytes(MODULE.read_bytes().replace(b"duckdb_je_malloc_usable_size", b"duckdb_je_malloc_usable_none"))
    of_malloc = memory != "of jemalloc, which is silent"
    if of_malloc:
        (tmp_path / "plain.c").write_text(PLAIN_MEMORY)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "plain.so", tmp_path / "plain.c"], check=True)
        env["LD_PRELOAD"] = str(tmp_path / "plain.so")
    if memory == "of another malloc()":
        if not ctypes.util.find_library("jemalloc"):
            pytest.skip("no libjemalloc")
        env["LD_PRELOAD"] += ":" + ctypes.util.find_library("jemalloc")
    db = DuckDB("allow_unsigned_extensions=true", "threads=4", env=env)
    try:
        db(f"LOAD '{module}'")
        db("CREATE TABLE a AS SELECT i AS n FROM range(5000) r(i)")
        failed = 0
        for rows in (2, 5, 40) if memory == "of another malloc()" else (1, 2, 3, 5, 40, 5000):
            for over in ("", "PARTITION BY n % 2", "PARTITION BY n // 2"):
                asked = ", ".join(f"bly_has(bly_agg(n + {i}, NULL, 'fpr=1e-9') OVER ({over}), n + {i})" for i in range(4))
                answer = db.ask(f"SELECT DISTINCT {asked} FROM a WHERE n < {rows}")
                failed += "error" in answer
                assert answer.get("rows") == [[True] * 4] or "groups from windows" in answer.get("error", ""), (rows, over, answer)
        assert one(db, "SELECT bly_agg(n) = bly_agg(n ORDER BY hash(n)) FROM a") is True
        grouped = "SELECT count(*) FROM a JOIN (SELECT n % 3 AS g, bly_agg(n) AS f FROM a GROUP BY 1) ON n % 3 = g WHERE bly_has(f, n)"
        if of_malloc:
            assert failed == 0
            assert number(db, grouped) == 5000
        else:
            fails(db, grouped, says="groups from windows")
    finally:
        db.close()


def test_sketches(db):
    counted = json.loads(one(db, "SELECT bly_info(bly_hll_agg(n)) FROM a"))
    assert abs(counted["items"] - 20000) < 5 * counted["items_sd"] + 1
    top = json.loads(one(db, "SELECT bly_topk_agg(CASE WHEN n % 3 THEN 'often' ELSE x END, 2) FROM a"
                         .replace("n % 3 THEN", "n % 3 > 0 THEN")))
    assert top[0] == ["often", 13333]
    assert json.loads(one(db, "SELECT bly_topk_agg(n % 2, 1) FROM a WHERE n <> 0")) == [["1", 10000]]
    like = one(db, "SELECT bly_likeness((SELECT bly_minhash_agg(n) FROM a WHERE n < 16000), "
                   "(SELECT bly_minhash_agg(n) FROM a WHERE n >= 4000))")
    assert abs(like - 0.6) < 0.2
    fails(db, "SELECT bly_topk_agg(x, 0) FROM a", says="fewer than one")
    fails(db, "SELECT bly_topk_agg('a'::BLOB, 1)", says="CAST them to TEXT")
    fails(db, "SELECT bly_has(bly_hll_agg(1), 1)", says="sketch")


def test_nulls_and_nothing(db):
    nothing = "(SELECT x FROM a WHERE n < 0)"
    for call in ("bly_agg(x)", "bly_merge_agg(x::BLOB)", "bly_hll_agg(x)", "bly_minhash_agg(x)", "bly_topk_agg(x, 3)"):
        assert one(db, f"SELECT {call} FROM {nothing}") is None
    for asked in ("bly_has(NULL, 1)", "bly_has(bly_agg(1), NULL)", "bly_count(NULL, NULL)", "bly_info(NULL)", "bly_load(NULL)",
                  "bly_agg(NULL)", "bly_plan(NULL)"):
        assert one(db, f"SELECT {asked}") is None
    made = "SELECT bly_info(bly_agg(v)) FROM (VALUES (NULL), ('x'), (NULL)) t(v)"
    assert json.loads(one(db, made))["capacity"] == 1
    rows = db("SELECT n, bly_has(CASE WHEN n % 5 > 0 THEN (SELECT bly_agg(n, NULL, 'fpr=1e-9') FROM a WHERE n < 100) END, "
              "CASE WHEN n % 7 > 0 THEN n END) FROM a WHERE n < 3000 ORDER BY n")
    for n, has in rows:
        n = int(n)
        assert has is (None if n % 5 == 0 or n % 7 == 0 else n < 100), n


def test_plans_and_facts(db, ok):
    ok("build", "-q", "--note", "of May", "-o", "f.bly", stdin="a\nb\n")
    info = json.loads(one(db, f"SELECT bly_info('{ok.path}/f.bly')"))
    assert (info["kind"], info["keys"], info["capacity"], info["note"]) == ("blocked", "text", 2, "of May")
    plan = json.loads(one(db, "SELECT bly_plan(1000000, 0.01, 'fuse')"))
    assert plan["kind"] == "fuse" and 7 < plan["bits_per_key"] < 10
    assert json.loads(one(db, "SELECT bly_plan(1000, NULL, NULL)")) == json.loads(one(db, "SELECT bly_plan(1000)"))
    fails(db, "SELECT bly_plan(0)")
    fails(db, "SELECT bly_plan(-1)", says="fewer")


# ---------------------------------------------------------------- bad input

def test_what_is_no_filter(db):
    for bad in ("''::BLOB", "'\\x00'::BLOB", "repeat('x', 5000)::BLOB", "(SELECT bly_agg(1))[1:100]"):
        for call in ("bly_has({}, 1)", "bly_info({})", "bly_merge_agg({})", "bly_likeness({}, {})"):
            fails(db, f"SELECT {call.format(bad, bad)}", says="bloomery")
    fails(db, "SELECT bly_has(1, 1)", says="BLOB")
    fails(db, "SELECT bly_has('absent.bly', 1)", says="absent.bly")
    fails(db, "SELECT bly_has('a' || chr(0) || 'b', 1)", says="NUL")
    fails(db, "SELECT bly_agg(1, 'nokind')", says="nokind")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr')", says="NAME=VALUE")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr=x')", says="not a rate")
    fails(db, "SELECT bly_plan(1000, 0)", says="between 0 and 1")
    fails(db, "SELECT bly_agg(1, 'blocked', 'nonsense=3')", says="nonsense")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr=0')", says="too little")
    fails(db, "SELECT bly_agg(1, 'bloomier')")
    fails(db, "SELECT bly_agg(1.5)", says="no hash")
    fails(db, "SELECT bly_agg(1, 'blocked', 'items=100000000000')", says="too large")
    fails(db, "SELECT bly_merge_agg(f) FROM (SELECT bly_agg(1, NULL, 'seed=1') AS f UNION ALL "
              "SELECT bly_agg(1, NULL, 'seed=2'))", says="seed")


def test_a_pipe_is_no_file(db, tmp_path):
    """Whoever opened it would wait."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for call in ("bly_has('{}', 1)", "bly_load('{}')", "bly_info('{}')", "bly_save(bly_agg(1), '{}')"):
        fails(db, f"SELECT {call.format(pipe)}", says="a pipe")


def test_flipped_bytes(db, ok):
    """Whatever a bit of a filter is changed to: an error or an answer."""
    path = ok.path / "f.bly"
    one(db, f"SELECT bly_save(bly_agg(n), '{path}') FROM a WHERE n < 10")
    good = path.read_bytes()
    for at in range(0, len(good), 211):
        flipped = bytearray(good)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        for asked in (f"bly_has((SELECT content FROM read_blob('{path}')), 1)", f"bly_has('{path}', 1)"):
            answer = db.ask(f"SELECT {asked}")
            assert "error" in answer or answer["rows"][0][0] is True, (at, answer)


def test_a_damaged_file_never_says_no(db, ok):
    fails(db, f"SELECT bly_has('{damaged_file(ok)}', 7)", says="damaged.bly: damaged")


def test_a_keyed_filter_needs_its_key(db, ok):
    (ok.path / "key").write_bytes(bytes(16))
    os.chmod(ok.path / "key", 0o600)
    ok("build", "-q", "-K", "key", "-o", "k.bly", stdin="a\n")
    fails(db, f"SELECT bly_has('{ok.path}/k.bly', 'a')", says="without its key")
    fails(db, f"SELECT bly_has(bly_load('{ok.path}/k.bly'), 'a')", says="without its key")
    assert json.loads(one(db, f"SELECT bly_info(bly_load('{ok.path}/k.bly'))"))["keyed"]


@pytest.mark.parametrize("kind", ["blocked", "scalable", "fuse"])
def test_filters_of_one_size_in_turn(db, kind):
    """A filter that comes again is known again, and another of the same size is not taken for it."""
    db(f"CREATE OR REPLACE TABLE many AS SELECT id, bly_agg(id || '-' || v, '{kind}', 'fpr=0.000001') AS f "
       "FROM range(7) a(id), range(9) b(v) GROUP BY id")
    for order in ("a.id, b.id", "b.id, a.id"):
        rows = db("SELECT a.id = b.id, bly_has(a.f, b.id || '-' || v) FROM many a, many b, range(0, 9, 4) r(v) "
                  f"ORDER BY {order}")
        assert len(rows) == 147 and all(has == same for same, has in rows)


def test_compact_filters_of_one_size_in_turn(db, ok):
    db("CREATE OR REPLACE TABLE twins(key VARCHAR, f BLOB)")
    for key, made in compact_twins(ok):
        db(f"INSERT INTO twins VALUES ('{key}', unhex('{made.hex()}'))")
    rows = db("SELECT a.key = b.key, bly_has(a.f, b.key) FROM twins a, twins b ORDER BY b.key, a.key")
    assert len(rows) == 9 and all(has == same for same, has in rows)


def test_a_file_that_is_replaced(db, ok):
    for i in range(5):
        ok("build", "-q", "-p", 1e-9, "-o", "f.bly", stdin=f"key{i}\n")
        assert db(f"SELECT bly_has('{ok.path}/f.bly', 'key{i}'), bly_has('{ok.path}/f.bly', 'key{i + 1}')") == [[True, False]]
    (ok.path / "f.bly").write_bytes(b"nonsense")
    fails(db, f"SELECT bly_has('{ok.path}/f.bly', 'x')")


def test_saving(db, ok):
    fails(db, "SELECT bly_save(bly_agg(1), '/nonexistent/f.bly')", says="/nonexistent")
    fails(db, f"SELECT bly_save('\\x00'::BLOB, '{ok.path}/x')")
    assert not (ok.path / "x").exists()
    one(db, f"SELECT bly_save(bly_hll_agg(1), '{ok.path}/h.bly')")
    assert "hyperloglog" in ok("info", "h.bly").out.lower()
    assert json.loads(one(db, f"SELECT bly_info('{ok.path}/h.bly')"))["sketch"] == "hyperloglog"


def test_files_by_duckdbs_rules(ok):
    """enable_external_access and allowed_directories hold for every function that takes a path."""
    for folder in ("in", "out"):
        (ok.path / folder).mkdir()
        ok("build", "-q", "-o", f"{folder}/f.bly", stdin="a\n")
    db = database()
    try:
        db(f"SET allowed_directories = ['{ok.path}/in']")
        db("SET enable_external_access = false")
        calls = ("bly_has('{}', 'a')", "bly_info('{}')", "bly_load('{}')", "bly_save(bly_agg(1), '{}.new')")
        for call in calls:
            assert one(db, f"SELECT {call.format(ok.path / 'in' / 'f.bly')} IS NOT NULL") is True
            for path in (ok.path / "out" / "f.bly", ok.path / "in" / ".." / "out" / "f.bly", "/etc/passwd"):
                fails(db, f"SELECT {call.format(path)}", says="Cannot access file")
        assert not (ok.path / "out" / "f.bly.new").exists()
        assert one(db, "SELECT bly_has(bly_agg('a'), 'a')") is True
    finally:
        db.close()


def test_unsigned_it_is_loaded_only_where_that_is_allowed():
    db = DuckDB()
    fails(db, f"LOAD '{MODULE}'", says="unsigned")
    db.close()
