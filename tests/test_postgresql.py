"""bloomery_postgresql.so in a server that the tests start for themselves."""
import re
import io
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

import pg_server
from conftest import KINDS, PATIENCE, ROOT, kinds_that, run
from sql_support import INTEGERS, TEXTS, compact_twins, damaged_file

pytestmark = pytest.mark.skipif(pg_server.missing() is not None, reason=str(pg_server.missing()))


@pytest.fixture(scope="module")
def server():
    made = pg_server.Server()
    db = made.connect()
    db.cursor().execute("CREATE EXTENSION bloomery")
    db.close()
    yield made
    made.stop()


@pytest.fixture
def db(server):
    """A session with the extension, in a schema that goes away."""
    made = server.connect()
    with made.cursor() as c:
        c.execute("DROP SCHEMA IF EXISTS work CASCADE; CREATE SCHEMA work; SET search_path = work, public")
    yield made
    made.close()


@pytest.fixture
def database(server):
    """New databases, with the extension; they go away."""
    made = []

    def call(name, words="", extension="CREATE EXTENSION bloomery"):
        admin = server.connect()
        rows(admin, f"DROP DATABASE IF EXISTS {name}")
        rows(admin, f"CREATE DATABASE {name} {words}")
        admin.close()
        made.append(server.connect(name))
        rows(made[-1], extension)
        return made[-1]
    yield call
    for db in made:
        db.close()


def rows(db, sql, *args):
    with db.cursor() as c:
        c.execute(sql, args or None)
        return c.fetchall() if c.description else None


def one(db, sql, *args):
    return rows(db, sql, *args)[0][0]


def raw(db, sql, *args):
    """A filter as the bytes of its file."""
    return bytes(one(db, sql, *args))


def fails(db, sql, *args, says="", state=None, hint=""):
    import psycopg2
    with pytest.raises(psycopg2.Error) as wrong:
        rows(db, sql, *args)
    assert says in str(wrong.value), wrong.value
    assert state is None or wrong.value.pgcode == state, (wrong.value.pgcode, wrong.value)
    assert hint in (wrong.value.diag.message_hint or ""), wrong.value
    return wrong.value


def numbers(db, n, name="a"):
    rows(db, f"CREATE TABLE {name}(x text, n bigint)")
    rows(db, f"INSERT INTO {name} SELECT 'key-' || i, i FROM generate_series(0, %s) i", n - 1)
    rows(db, f"ANALYZE {name}")


PARALLEL = ("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "
            "SET max_parallel_workers_per_gather = 2; SET enable_partitionwise_aggregate = on")
SERIAL = "SET max_parallel_workers_per_gather = 0"


@pytest.fixture
def shared(server, tmp_path):
    """A folder of this test that the command and the server can read and write."""
    folder = server.files / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)

    def ok(*argv, **kw):
        result = run(*argv, cwd=folder, **kw)
        assert result.status == 0, result.err
        for path in folder.iterdir():
            path.chmod(0o666)
        return result
    ok.path = folder
    return ok


# --------------------------------------------------------------- one promise

def test_a_filter_made_here_is_the_commands_own(db, shared):
    """The same keys give the same file, byte for byte: text, integers, and saved."""
    numbers(db, 3000)
    path = shared.path / "sql.bly"
    for column, keys, flag in (("x", (f"key-{i}" for i in range(3000)), []), ("n", range(3000), ["--int"])):
        (shared.path / "list").write_text("".join(f"{k}\n" for k in keys))
        shared("build", "-q", "-t", 1, *flag, "-p", 0.001, "-o", "cli.bly", "list")
        made = raw(db, f"SELECT bly_agg({column}, NULL, 'fpr=0.001')::bytea FROM a")
        assert made == (shared.path / "cli.bly").read_bytes()
        assert one(db, f"SELECT bly_save(bly_agg({column}, NULL, 'fpr=0.001'), %s) FROM a", str(path)) == len(made)
        assert path.read_bytes() == made
        path.unlink()


@pytest.mark.parametrize("vectors,flag", [(TEXTS, []), (INTEGERS, ["--int"])])
def test_answers_are_those_of_the_command(db, shared, vectors, flag):
    """A file of text or of integers, asked with values of both types."""
    (shared.path / "list").write_text("".join(f"{key}\n" for _, key in vectors))
    shared("build", "-q", *flag, "-p", 1e-9, "-o", "f.bly", "list")
    path = str(shared.path / "f.bly")
    for sql, key in TEXTS + INTEGERS:
        sql = f"({sql})::bigint" if sql[0] != "'" else sql
        asked = run("has", "-q", path, "--", key)
        for question in (f"bly_has(%s, {sql})", f"bly_has(bly_load(%s), {sql})", f"bly_load(%s) @> {sql}"):
            if asked.status == 2:
                fails(db, f"SELECT {question}", path, state="22023")
            else:
                assert one(db, f"SELECT {question}", path) == (asked.status == 0), (sql, key)
    fails(db, "SELECT bly_has(%s, 1.5)", path, says="bly_has", state="42883")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_text_is_hashed_as_utf8_whatever_the_database_has(database, shared, encoding):
    db = database("other", f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    shared("build", "-q", "-p", 1e-9, "-o", "f.bly", stdin="B\u00f6b\n")
    if encoding == "LATIN1":
        db.set_client_encoding("UTF8")
    else:
        db.set_client_encoding("SQL_ASCII")
    path = str(shared.path / "f.bly")
    word = "E'B\\xc3\\xb6b'" if encoding == "SQL_ASCII" else "'B\u00f6b'"
    assert one(db, f"SELECT bly_has(%s, {word})", path)
    assert one(db, f"SELECT bly_has(bly_agg({word}), {word})")
    assert one(db, f"SELECT length(bly_topk_agg({word}, 1)->0->>0)") in (3, 4)


@pytest.mark.parametrize("kind", ["blocked", "fuse", "ribbon", "cuckoo"])
def test_every_kind(db, kind):
    numbers(db, 2000)
    made = "(SELECT bly_agg(n, %s, 'fpr=0.01') FROM a)"
    assert one(db, f"SELECT count(*) FROM a WHERE bly_has({made}, n)", kind) == 2000
    assert one(db, f"SELECT count(*) FROM a WHERE {made} @> n + 100000", kind) < 60
    info = one(db, f"SELECT bly_info({made})", kind)
    assert info["kind"] == kind and info["keys"] == "int64"


def test_counts_and_values(db, shared):
    (shared.path / "v.tsv").write_text("".join(f"k{i}\t{i * 3}\n" for i in range(100)))
    shared("build", "-q", "-k", "bloomier", "-o", "v.bly", "v.tsv")
    path = str(shared.path / "v.bly")
    assert one(db, "SELECT bly_get(bly_load(%s), 'k7')", path) == 21
    assert one(db, "SELECT bly_get(%s, 'k7')", path) == one(db, "SELECT bly_get(%s, 'k7'::bytea)", path) == 21
    assert one(db, "SELECT bly_info(%s)", path) == one(db, "SELECT bly_info(bly_load(%s))", path)
    fails(db, "SELECT bly_count(%s, 'k7')", path, says="count", state="0A000")
    shared("build", "-q", "-k", "counting", "--int", "-o", "c.bly", stdin="7\n7\n8\n")
    assert rows(db, "SELECT bly_count(%s, 7), bly_count(%s, '8'), bly_count(%s, 9)", *3 * [str(shared.path / "c.bly")]) == \
        [(2, 1, 0)]
    numbers(db, 10)
    made = "(SELECT bly_agg(n %% 2, 'counting', 'items=100') FROM a)"
    assert one(db, f"SELECT bly_count({made}, 1), %s", 0) >= 5
    assert one(db, f"SELECT bly_count({made}, 9), %s", 0) == 0
    fails(db, "SELECT bly_count(bly_agg(1), 1)", says="count", state="0A000")


def test_unions(db):
    numbers(db, 3000)
    whole = raw(db, "SELECT bly_agg(n, 'blocked', 'items=3000')::bytea FROM a")
    parts = "(SELECT bly_agg(n, 'blocked', 'items=3000') AS f FROM a GROUP BY n % 7) p"
    assert raw(db, f"SELECT bly_merge_agg(f)::bytea FROM {parts}") == whole
    assert raw(db, "SELECT (bly_agg(n, 'blocked', 'items=3000') FILTER (WHERE n < 1000) || "
                   "bly_agg(n, 'blocked', 'items=3000') FILTER (WHERE n >= 1000))::bytea FROM a") == whole
    assert one(db, "SELECT bly_likeness(%s::bytea::bloomery, %s::bytea::bloomery)", whole, whole) == 1
    sketches = "(SELECT bly_hll_agg(n) AS f FROM a GROUP BY n % 7) p"
    assert raw(db, f"SELECT bly_merge_agg(f)::bytea FROM {sketches}") == raw(db, "SELECT bly_hll_agg(n)::bytea FROM a")


def test_sketches(db):
    numbers(db, 5000)
    counted = one(db, "SELECT bly_info(bly_hll_agg(n)) FROM a")
    assert abs(counted["items"] - 5000) < 5 * counted["items_sd"] + 1
    top = one(db, "SELECT bly_topk_agg(CASE WHEN n % 3 > 0 THEN 'often' ELSE x END, 2) FROM a")
    assert top[0] == ["often", 3333]
    assert one(db, "SELECT bly_topk_agg(n / 4000, 2) FROM a") == [["0", 4000], ["1", 1000]]
    like = one(db, "SELECT bly_likeness(bly_minhash_agg(n) FILTER (WHERE n < 4000), "
                   "bly_minhash_agg(n) FILTER (WHERE n >= 1000)) FROM a")
    assert abs(like - 0.6) < 0.2
    fails(db, "SELECT bly_has(bly_hll_agg(n), 1) FROM a", says="sketch", state="0A000")


def test_nulls_and_nothing(db):
    numbers(db, 0)
    for made in ("bly_agg(x)", "bly_agg(x, 'blocked', NULL)", "bly_merge_agg(NULL::bloomery)", "bly_hll_agg(x)",
                 "bly_minhash_agg(n)", "bly_topk_agg(x, 3)"):
        assert one(db, f"SELECT {made} FROM a") is None
    for asked in ("bly_has(NULL::bloomery, 1)", "bly_has(bly_agg(1), NULL::bigint)", "bly_info(NULL)",
                  "bly_plan(NULL)", "bly_has(NULL::text, 'x')", "bly_load(NULL)", "bly_save(NULL, '/tmp/x')"):
        assert one(db, f"SELECT {asked}") is None
    rows(db, "INSERT INTO a VALUES (NULL, NULL), ('x', NULL)")
    assert one(db, "SELECT bly_info(bly_agg(x)) FROM a")["capacity"] == 1


# ------------------------------------------------------------------ parallel

AGGREGATES = ["bly_agg(x)", "bly_agg(n)", "bly_agg(x::bytea)", "bly_agg(n, 'blocked', 'items=20000')", "bly_hll_agg(x)",
              "bly_minhash_agg(n)", "bly_agg(n % 1000, 'fuse')", "bly_agg(x, 'blocked', 'fpr=0.5 seed=9')"]


def test_a_parallel_plan_gives_the_same_bytes(db):
    numbers(db, 20000)
    for made in AGGREGATES:
        rows(db, SERIAL)
        serial = raw(db, f"SELECT ({made})::bytea FROM a")
        rows(db, PARALLEL)
        plan = "\n".join(r[0] for r in rows(db, f"EXPLAIN SELECT {made} FROM a"))
        assert "Partial Aggregate" in plan and "Parallel Seq Scan" in plan, plan
        assert raw(db, f"SELECT ({made})::bytea FROM a") == serial, made
    rows(db, "CREATE TABLE f AS SELECT bly_agg(n, 'blocked', 'items=20000') AS f FROM a GROUP BY n % 50")
    rows(db, "ANALYZE f")
    assert "Partial Aggregate" in "\n".join(r[0] for r in rows(db, "EXPLAIN SELECT bly_merge_agg(f) FROM f"))
    assert raw(db, "SELECT bly_merge_agg(f)::bytea FROM f") == \
        raw(db, "SELECT bly_agg(n, 'blocked', 'items=20000')::bytea FROM a")


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind_the_order_of_rows_does_not_matter(db, kind):
    """Sized before or after; kinds that need values, or forget, are not for this."""
    import psycopg2
    numbers(db, 3000)
    for options in (None, "items=3000"):
        made = "SELECT bly_agg(n, %s, %s)::bytea FROM a"
        try:
            rows(db, SERIAL)
            serial = raw(db, made, kind, options)
        except psycopg2.Error as wrong:
            assert wrong.pgcode in ("22023", "0A000"), wrong
            continue
        if kind in kinds_that("tick"):
            continue
        rows(db, PARALLEL)
        assert raw(db, made, kind, options) == serial
        rows(db, SERIAL)
        assert raw(db, "SELECT bly_agg(n, %s, %s)::bytea FROM (SELECT n FROM a ORDER BY n DESC) a", kind,
                   options) == serial


# ------------------------------------------------------------------ in and out

def test_text_and_binary_forms_are_the_file(db, server):
    numbers(db, 100)
    made = raw(db, "SELECT bly_agg(n)::bytea FROM a")
    text = one(db, "SELECT bly_agg(n)::text FROM a")
    assert text == "\\x" + made.hex()
    assert raw(db, "SELECT %s::bloomery::bytea", text) == made
    rows(db, "CREATE TABLE f(f bloomery)")
    rows(db, "INSERT INTO f SELECT bly_agg(n) FROM a")
    out = io.BytesIO()
    with db.cursor() as c:
        c.copy_expert("COPY f TO STDOUT (FORMAT binary)", out)
        assert made in out.getvalue()
        out.seek(0)
        c.copy_expert("COPY f FROM STDIN (FORMAT binary)", out)
    assert {bytes(f) for f, in rows(db, "SELECT f::bytea FROM f")} == {made}
    assert one(db, "SELECT count(*) FROM f") == 2


def golden():
    return [p.read_bytes() for p in sorted((ROOT / "tests/golden").glob("*.bly"))]


def test_no_bytes_crash_it(db, server):
    """Golden files, whole and mutated, cut and random bytes: an error or a filter that can be asked."""
    rng = random.Random(1)
    pid = one(db, "SELECT pg_backend_pid()")
    rows(db, """
        CREATE FUNCTION attempt(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE f bloomery;
        BEGIN
            f := bytes::bloomery;
            BEGIN PERFORM bly_info(f); EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN PERFORM bly_has(f, 'x'); EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN PERFORM bly_has(f, 7); EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN PERFORM f || f; EXCEPTION WHEN OTHERS THEN NULL; END;
            BEGIN PERFORM bly_likeness(f, f); EXCEPTION WHEN OTHERS THEN NULL; END;
            RETURN 'filter';
        EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
        END $$""")
    files = [f for f in golden() if len(f) < 40000]
    assert len(files) > 20
    cases = list(files)
    for _ in range(3000):
        f = bytearray(rng.choice(files))
        choice = rng.randrange(4)
        if choice == 0:
            for _ in range(rng.choice((1, 1, 2, 8))):
                f[rng.randrange(min(len(f), rng.choice((300, 5000, 40000))))] = rng.randrange(256)
        elif choice == 1:
            del f[rng.randrange(len(f)):]
        elif choice == 2:
            at = rng.randrange(min(len(f), 4096) - 8)
            f[at:at + 8] = struct.pack("<Q", rng.choice((0, 1, 2 ** 63, 2 ** 64 - 1, rng.getrandbits(40))))
        else:
            f = bytearray(rng.randbytes(rng.randrange(200)))
        cases.append(bytes(f))
    seen = {}
    for at in range(0, len(cases), 100):
        for state, in rows(db, "SELECT attempt(b) FROM unnest(%s::bytea[]) b", cases[at:at + 100]):
            seen[state] = seen.get(state, 0) + 1
    assert seen.pop("filter") >= 20
    assert set(seen) <= {"22P03", "22023", "54000", "0A000", "55000"}, seen
    for text in ("", "nonsense", "\\x", "\\xzz", "\\x00", "\\x89424c59"):
        fails(db, "SELECT %s::bloomery", text)
    assert one(db, "SELECT pg_backend_pid()") == pid


def test_what_is_wrong_is_said_in_sql(db, shared):
    good = raw(db, "SELECT bly_agg(1)::bytea")
    for bad in (b"", b"\0", b"x" * 5000, good[:100], good[:-1], good + b"x"):
        fails(db, "SELECT %s::bytea::bloomery", bad, state="22P03")
    fails(db, "SELECT bly_agg(1, 'nokind')", says="nokind", state="22023")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr')", state="22023", hint="NAME=VALUE")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr=x')", says="not a rate", hint="between 0 and 1")
    fails(db, "SELECT bly_agg(1, 'blocked', 'nonsense=3')", says="nonsense")
    fails(db, "SELECT bly_agg(1, 'blocked', 'fpr=7')", state="22023")
    fails(db, "SELECT bly_agg(1.5)", says="bly_agg", state="42883")
    fails(db, "SELECT bly_agg(now())", says="bly_agg", state="42883")
    fails(db, "SELECT bly_agg('k', 'bloomier')", says="value")
    fails(db, "SELECT bly_agg(1, NULL, 'seed=1') || bly_agg(1, NULL, 'seed=2')", says="seed", state="22023")
    fails(db, "SELECT bly_agg(1) || bly_agg('a')")
    fails(db, "SELECT bly_agg(1) || bly_hll_agg(1)", says="sketch")
    fails(db, "SELECT bly_plan(0)", hint="how many")
    fails(db, "SELECT bly_plan(-1)")
    fails(db, "SELECT bly_plan(1000, 0)", says="between 0 and 1")
    fails(db, "SELECT bly_agg(n) OVER (ORDER BY n) FROM generate_series(1, 3) n", says="window")
    fails(db, "SELECT bly_topk_agg('x', 0)", says="fewer")
    assert one(db, "SELECT bly_plan(1000000, 0.01, 'fuse')")["bits_per_key"] < 10


def test_a_keyed_filter_needs_its_key(db, shared):
    (shared.path / "key").write_bytes(bytes(16))
    os.chmod(shared.path / "key", 0o600)
    shared("build", "-q", "-K", "key", "-o", "k.bly", stdin="a\n")
    path = str(shared.path / "k.bly")
    fails(db, "SELECT bly_has(%s, 'a')", path, says="key", state="55000")
    fails(db, "SELECT bly_has(bly_load(%s), 'a')", path, says="key", state="55000")
    fails(db, "SELECT bly_count(bly_load(%s), 'a')", path, says="secret", state="55000")
    assert one(db, "SELECT bly_info(bly_load(%s))", path)["keyed"]


def test_out_of_memory_and_too_large(db):
    fails(db, "SELECT bly_agg(1, 'blocked', 'items=1000000000000000')")
    error = fails(db, "SELECT bly_agg(1, 'blocked', 'items=200000000000')")
    assert error.pgcode in ("53200", "54000")
    error = fails(db, "SELECT bly_agg(1, 'blocked', 'items=1000000000')")
    assert error.pgcode in ("53200", "54000")
    assert one(db, "SELECT bly_has(bly_agg(1), 1)")


def test_a_server_without_memory():
    """An aggregate that finds none is an error, and the session goes on."""
    poor = pg_server.Server()
    try:
        poor.process.send_signal(signal.SIGINT)
        poor.process.wait()
        poor.start(limit=400 << 20)
        db = poor.connect()
        rows(db, "CREATE EXTENSION bloomery")
        fails(db, "SELECT bly_agg(1, 'blocked', 'items=400M')", says="out of memory", state="53200")
        fails(db, "SELECT bly_merge_agg(f) FROM (SELECT bly_agg(1, 'blocked', 'items=100M') AS f "
                  "FROM generate_series(1, 4) i GROUP BY i) s", says="out of memory", state="53200")
        assert one(db, "SELECT bly_has(bly_agg(1), 1)")
        db.close()
    finally:
        poor.stop()


def test_a_filter_is_loaded_once_per_statement(db):
    """Whether it comes from a constant, a subquery or a table of large values; and not where it changes."""
    numbers(db, 20000)
    rows(db, "CREATE TABLE f(name text, f bloomery)")
    rows(db, "INSERT INTO f SELECT 'low', bly_agg(n, NULL, 'fpr=1e-9') FROM a WHERE n < 10000")
    rows(db, "INSERT INTO f SELECT 'high', bly_agg(n, NULL, 'fpr=1e-9') FROM a WHERE n >= 10000")
    rows(db, "INSERT INTO f SELECT 'grown', bly_agg(n, 'scalable', 'fpr=1e-9') FROM a WHERE n < 300")
    assert rows(db, "SELECT name, count(*) FROM f JOIN a ON bly_has(f, n) GROUP BY 1 ORDER BY 1") == \
        [("grown", 300), ("high", 10000), ("low", 10000)]
    assert rows(db, "SELECT name, count(*) FROM a JOIN f ON bly_has(f || f, n) WHERE name <> 'grown' AND n > 9000 "
                    "AND n < 11000 GROUP BY 1 ORDER BY 1") == [("high", 1000), ("low", 999)]
    assert one(db, "SELECT count(*) FROM a WHERE bly_has((SELECT f FROM f WHERE name = 'low'), n)") == 10000
    assert one(db, "SELECT count(*) FROM a WHERE bly_has((SELECT bly_agg(n, NULL, 'fpr=1e-9') FROM a WHERE n < 77), n)") == 77
    # A correlated one changes with the row.
    assert one(db, "SELECT count(*) FROM a WHERE n < 500 AND bly_has((SELECT bly_agg(m, 'scalable', 'fpr=1e-9') "
                   "FROM generate_series(a.n, a.n + 2) m), a.n)") == 500
    assert one(db, "SELECT count(*) FROM a WHERE n < 500 AND bly_has((SELECT bly_agg(m, NULL, 'fpr=1e-9') "
                   "FROM generate_series(a.n + 1, a.n + 2) m), a.n)") == 0


def test_cancelled(db, server):
    """A statement ends soon after it is told to, wherever it is; the session goes on."""
    import psycopg2
    for sql in ("SELECT length(bly_agg(n)::bytea) FROM (SELECT generate_series(1, 2000000000) AS n) s",
                "SELECT length(bly_agg(n, 'ribbon')::bytea) FROM (SELECT generate_series(1, 2000000000) AS n) s"):
        other = server.connect()
        pid = one(db, "SELECT pg_backend_pid()")
        ended = threading.Event()

        def cancel():
            # Again, in case that the statement had not begun.
            while not ended.wait(0.3):
                rows(other, "SELECT pg_cancel_backend(%s)", pid)
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(psycopg2.errors.QueryCanceled):
            rows(db, sql)
        ended.set()
        thread.join()
        other.close()
    assert one(db, "SELECT bly_has(bly_agg(1), 1)")


# --------------------------------------------------------------------- files

def test_a_file_that_is_replaced(db, shared):
    """The next statement sees the new one."""
    path = str(shared.path / "f.bly")
    for i in range(5):
        shared("build", "-q", "-p", 1e-9, "-o", "f.bly", stdin=f"key{i}\n")
        assert one(db, "SELECT bly_has(%s, %s)", path, f"key{i}") is True
        assert one(db, "SELECT bly_has(%s, %s)", path, f"key{i + 1}") is False
    (shared.path / "f.bly").write_bytes(b"nonsense")
    fails(db, "SELECT bly_has(%s, 'x')", path)
    fails(db, "SELECT bly_load(%s)", path)
    (shared.path / "f.bly").unlink()
    fails(db, "SELECT bly_has(%s, 'x')", path, says="No such file", state="58P01")


def test_a_file_that_is_cut_off(server, db, shared):
    """While it is mapped and asked: an error, and neither a crash nor a no."""
    (shared.path / "list").write_text("".join(f"{i}\n" for i in range(100000)))
    shared("build", "-q", "--int", "-o", "f.bly", "list")
    path = shared.path / "f.bly"
    pid = one(db, "SELECT pg_backend_pid()")
    other = server.connect()
    rows(other, "SELECT pg_advisory_lock(2)")
    wrong = []

    def ask():
        # Row 2 waits for the lock.
        wrong.append(fails(db, "SELECT bly_has(%s, n) FROM (SELECT n, pg_advisory_xact_lock_shared(n) "
                               "FROM generate_series(1, 900) n OFFSET 0) s", str(path), state="58030", says="cut off"))
    thread = threading.Thread(target=ask)
    thread.start()
    while not one(other, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
        time.sleep(0.02)
    os.truncate(path, 4096)
    rows(other, "SELECT pg_advisory_unlock(2)")
    thread.join()
    other.close()
    assert wrong
    fails(db, "SELECT bly_has(%s, 1)", str(path))
    shared("build", "-q", "--int", "-o", "f.bly", "list")
    assert one(db, "SELECT bly_has(%s, 1)", str(path))
    assert one(db, "SELECT pg_backend_pid()") == pid


def test_a_pipe_is_no_file(db, shared):
    """Whoever opened it would wait, and could not be cancelled."""
    pipe = shared.path / "pipe"
    os.mkfifo(pipe, 0o666)
    pipe.chmod(0o666)
    for sql in ("SELECT bly_has(%s, 'a')", "SELECT bly_load(%s)", "SELECT bly_info(%s)", "SELECT bly_count(%s, 1)",
                "SELECT bly_get(%s, 'a')", "SELECT bly_save(bly_agg('a'), %s)"):
        fails(db, sql, str(pipe), says="pipe", state="22023")


def test_a_damaged_file_never_says_no(db, shared):
    path = str(damaged_file(shared))
    for sql in ("SELECT bly_has(%s, 7)", "SELECT bly_info(%s)", "SELECT bly_load(%s)"):
        fails(db, sql, path, says="damaged.bly: damaged")


def test_many_files(db, shared):
    for i in range(40):
        shared("build", "-q", "-p", 1e-9, "-o", f"{i}.bly", stdin=f"{i}\n")
    assert one(db, "SELECT count(*) FROM generate_series(0, 39) i, generate_series(0, 39) j "
                   "WHERE bly_has(%s || i || '.bly', j::text)", f"{shared.path}/") == 40


def test_files_are_for_those_whom_the_server_lets(server, db, shared):
    shared("build", "-q", "-o", "f.bly", stdin="a\n")
    path = str(shared.path / "f.bly")
    shutil.copy(path, server.data / "f.bly")
    (server.data / "f.bly").chmod(0o644)
    rows(db, "DROP ROLE IF EXISTS plain; DROP ROLE IF EXISTS reader; DROP ROLE IF EXISTS writer; DROP ROLE IF EXISTS granted;"
             "CREATE ROLE plain LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN; CREATE ROLE granted LOGIN;"
             "GRANT pg_read_server_files TO reader; GRANT pg_write_server_files TO writer")
    rows(db, "GRANT EXECUTE ON FUNCTION public.bly_has(text, text), public.bly_load(text), "
             "public.bly_save(public.bloomery, text) TO granted")
    who = {name: server.connect(user=name) for name in ("plain", "reader", "writer", "granted")}
    has, save = "SELECT bly_has(%s, 'a')", "SELECT bly_save(bly_agg(1), %s)"
    for name in ("plain", "writer"):
        fails(who[name], has, path, says="permission denied", state="42501")
        for sql in ("SELECT bly_load(%s)", "SELECT bly_info(%s)", "SELECT bly_count(%s, 'a')", "SELECT bly_get(%s, 1)"):
            fails(who[name], sql, path, says="permission denied", state="42501")
    assert one(who["reader"], has, path) and one(who["reader"], "SELECT bly_load(%s) @> 'a'", path)
    assert one(who["reader"], has, "f.bly")
    assert one(who["granted"], has, "f.bly") and one(who["granted"], has, str(server.data / "f.bly"))
    for outside in (path, "../f.bly", "x/../../f.bly", f"{server.data}/../files/{shared.path.name}/f.bly"):
        fails(who["granted"], has, outside, says="permission denied", state="42501", hint="pg_read_server_files")
    made = str(shared.path / "made.bly")
    for name in ("plain", "reader", "granted"):
        fails(who[name], save, made, says="permission denied", state="42501")
    assert one(who["writer"], save, made) > 0
    fails(who["writer"], save, "made.bly", says="relative", state="42602")
    assert run("has", "-q", made, "1").status == 0
    # Whose rights a function runs with decides.
    rows(db, "CREATE FUNCTION public.asks(p text) RETURNS boolean SECURITY DEFINER LANGUAGE sql AS "
             "$$ SELECT bly_has(p, 'a') $$")
    assert one(who["plain"], "SELECT asks(%s)", path)
    rows(db, "DROP FUNCTION public.asks")
    for made in who.values():
        made.close()


def test_saving_is_whole_or_nothing(server, db, shared):
    fails(db, "SELECT bly_save(bly_agg(1), '/nonexistent/f.bly')", says="/nonexistent")
    fails(db, "SELECT bly_save('\\x00'::bytea::bloomery, %s)", str(shared.path / "x"))
    assert not (shared.path / "x").exists()
    one(db, "SELECT bly_save(bly_hll_agg(1), %s)", str(shared.path / "h.bly"))
    assert "hyperloglog" in shared("info", "h.bly").out.lower()
    assert one(db, "SELECT bly_info(bly_load(%s))", str(shared.path / "h.bly"))["sketch"] == "hyperloglog"


def test_a_server_that_is_killed_while_it_saves(database, server, shared):
    """SIGKILL at any moment: the old file or the new one, whole, and after a restart all works."""
    import psycopg2
    db = database("doomed")
    path = shared.path / "f.bly"
    rows(db, "CREATE TABLE f AS SELECT g AS g, bly_agg(i + g, 'blocked', 'items=400000') AS f "
             "FROM generate_series(1, 1000) i, (VALUES (0), (500)) v(g) GROUP BY g")
    whole = {raw(db, "SELECT f::bytea FROM f WHERE g = %s", g) for g in (0, 500)}
    pid = one(db, "SELECT pg_backend_pid()")
    one(db, "SELECT bly_save(f, %s) FROM f WHERE g = 0", str(path))
    ended = []

    def save():
        try:
            for _ in range(100000):
                rows(db, "SELECT bly_save(f, %s) FROM f", str(path))
        except psycopg2.Error as wrong:
            ended.append(wrong)
    thread = threading.Thread(target=save)
    thread.start()
    time.sleep(0.2)
    server.kill_backend(pid)
    thread.join()
    assert ended
    assert path.read_bytes() in whole
    db = server.connect("doomed")
    assert one(db, "SELECT bly_save(f, %s) FROM f WHERE g = 0", str(path)) == len(path.read_bytes())
    assert one(db, "SELECT bly_has(%s, 77)", str(path))
    assert sorted(p.name for p in shared.path.iterdir()) == ["f.bly"]
    db.close()


def test_more_keys_than_work_mem(db, server):
    """The filter is the same, and nothing is left open."""
    rows(db, "SET work_mem = '64kB'")
    for kind in ("blocked", "fuse", "cuckoo"):
        made = f"SELECT bly_agg(i, '{kind}')::bytea FROM generate_series(1, 300000) i"
        small = raw(db, made)
        rows(db, "RESET work_mem")
        assert raw(db, made) == small
        rows(db, "SET work_mem = '64kB'")
    # A statement that fails in the middle closes its file.
    fails(db, "SELECT bly_agg(100 / (i - 290000)) FROM generate_series(1, 300000) i", says="zero")
    pid = one(db, "SELECT pg_backend_pid()")
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert not [at for at in links if "deleted" in at and "tmp" in at], links


def test_compact_filters_of_one_size_in_turn(db, ok):
    """From memory, and from a table of large values."""
    twins = compact_twins(ok)
    values = "(VALUES " + ", ".join(["(%s, %s::bytea::bloomery)"] * 3) + ") %s(key, f)"
    given = [part for twin in twins for part in twin]
    got = rows(db, f"SELECT a.key = b.key, bly_has(a.f, b.key) FROM {values.replace(') %s', ') a')}, "
                   f"{values.replace(') %s', ') b')} ORDER BY b.key, a.key", *given, *given)
    assert len(got) == 9 and all(has == same for same, has in got)
    rows(db, "CREATE TABLE twins(key text, f bloomery)")
    for twin in twins:
        rows(db, "INSERT INTO twins VALUES (%s, %s::bytea::bloomery)", *twin)
    got = rows(db, "SELECT a.key = b.key, bly_has(a.f, b.key) FROM twins a, twins b ORDER BY b.key, a.key")
    assert len(got) == 9 and all(has == same for same, has in got)


# ------------------------------------------------------- many tables, servers

def test_partitions(db):
    """Each partition makes its part, and the filter is that of all rows."""
    rows(db, "CREATE TABLE days(day date, x text) PARTITION BY RANGE (day)")
    for month in (1, 2, 3):
        rows(db, f"CREATE TABLE days{month} PARTITION OF days FOR VALUES FROM ('2024-0{month}-01') "
                 f"TO ('2024-0{month + 1}-01')")
    rows(db, "INSERT INTO days SELECT date '2024-01-01' + i % 90, 'key-' || i FROM generate_series(0, 8999) i")
    rows(db, "ANALYZE days")
    rows(db, SERIAL)
    whole = raw(db, "SELECT bly_agg(x)::bytea FROM (SELECT x FROM days ORDER BY x) a")
    rows(db, PARALLEL)
    assert raw(db, "SELECT bly_agg(x)::bytea FROM days") == whole
    plan = "\n".join(r[0] for r in rows(db, "EXPLAIN SELECT bly_agg(x) FROM days"))
    assert "Partial" in plan and "Append" in plan, plan
    rows(db, SERIAL)
    # Kept per partition, and united when they are asked.
    rows(db, "CREATE TABLE filters AS SELECT tableoid::regclass::text AS part, bly_agg(x, 'blocked', 'items=9000') AS f "
             "FROM days GROUP BY 1")
    assert one(db, "SELECT count(*) FROM filters") == 3
    assert one(db, "SELECT count(*) FROM days WHERE bly_has((SELECT bly_merge_agg(f) FROM filters), x)") == 9000
    found = one(db, "SELECT array_agg(part) FROM filters WHERE f @> 'key-31'")
    assert "days2" in found


class Between:
    """Counts what goes between a client and a server's socket."""

    def __init__(self, server):
        sys.path.insert(0, str(ROOT / "bench"))
        import sql
        folder = server.root / "between"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        self.folder = folder
        self.counter = sql.Counter(server.root / ".s.PGSQL.5432", folder)

    def bytes_of(self, db, sql):
        self.counter.bytes = 0
        result = rows(db, sql)
        return self.counter.bytes, result


def test_a_join_with_a_foreign_server(database, server):
    """The recipe of docs/sql.md: the filter goes there, and few rows come back."""
    far, here = database("far"), database("near")
    rows(far, "CREATE TABLE orders AS SELECT 'user' || i AS email, i AS id FROM generate_series(1, 50000) i")
    between = Between(server)
    rows(here, "CREATE EXTENSION postgres_fdw;"
               f"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{between.folder}', dbname 'far', "
               "extensions 'bloomery', fetch_size '1000');"
               "CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user 'postgres');"
               "CREATE FOREIGN TABLE orders(email text, id bigint) SERVER far;"
               "CREATE TABLE guests AS SELECT 'user' || i AS email FROM generate_series(1, 500) i; ANALYZE guests")
    plain = "SELECT count(*), sum(id) FROM guests JOIN orders USING (email)"
    fast = plain + " WHERE bly_has((SELECT bly_agg(email, NULL, 'fpr=0.001') FROM guests), orders.email)"
    assert "bly_has" in "\n".join(r[0] for r in rows(here, f"EXPLAIN (VERBOSE) {fast}") if "Remote SQL" in r[0])
    much, want = between.bytes_of(here, plain)
    little, got = between.bytes_of(here, fast)
    assert got == want == [(500, 500 * 501 // 2)]
    assert little * 10 < much, (little, much)
    # A part of the filter from each server: 12 KB come, whatever the table is.
    rows(far, "CREATE VIEW known AS SELECT bly_agg(email, 'blocked', 'items=60000') AS f FROM orders")
    rows(here, "CREATE FOREIGN TABLE known(f bloomery) SERVER far")
    assert one(here, "SELECT bly_merge_agg(f) @> 'user77' FROM (SELECT f FROM known UNION ALL "
                     "SELECT bly_agg(email, 'blocked', 'items=60000') FROM guests) parts")


def test_shards(database, server):
    """The recipe for shards: each makes its filter, the coordinator unites them and asks only those that may know."""
    here = database("coordinator")
    rows(here, "CREATE EXTENSION postgres_fdw; CREATE TABLE filters(shard text, f bloomery);"
               "CREATE TABLE events(tenant bigint, what text) PARTITION BY HASH (tenant)")
    for i in range(3):
        shard = database(f"shard{i}")
        rows(shard, "CREATE TABLE events(tenant bigint, what text);"
                    "CREATE VIEW filter AS SELECT bly_agg(what, 'blocked', 'items=10000') AS f FROM events")
        rows(here, f"CREATE SERVER shard{i} FOREIGN DATA WRAPPER postgres_fdw "
                   f"OPTIONS (host '{server.root}', dbname 'shard{i}', extensions 'bloomery');"
                   f"CREATE USER MAPPING FOR CURRENT_USER SERVER shard{i} OPTIONS (user 'postgres');"
                   f"CREATE FOREIGN TABLE events{i} PARTITION OF events FOR VALUES WITH (MODULUS 3, REMAINDER {i}) "
                   f"SERVER shard{i} OPTIONS (table_name 'events');"
                   f"CREATE FOREIGN TABLE filter{i}(f bloomery) SERVER shard{i} OPTIONS (table_name 'filter')")
    rows(here, "INSERT INTO events SELECT i % 100, 'event' || i FROM generate_series(0, 999) i")
    for i in range(3):
        rows(here, f"INSERT INTO filters SELECT 'shard{i}', f FROM filter{i}")
    assert one(here, "SELECT count(*) FROM events WHERE bly_has((SELECT bly_merge_agg(f) FROM filters), what)") == 1000
    asked = rows(here, "SELECT shard FROM filters WHERE f @> 'event7'")
    assert 1 <= len(asked) < 3
    home = one(here, "SELECT tableoid::regclass::text FROM events WHERE what = 'event7'")
    assert home.replace("events", "shard") in [s for s, in asked]


# ------------------------------------------------------------- the extension

def test_versions(database):
    """The first version, and what the second adds to it."""
    db = database("old", extension="CREATE EXTENSION bloomery VERSION '0.1'")
    assert one(db, "SELECT bly_has(bly_agg('a'), 'a')")
    rows(db, "CREATE TABLE f AS SELECT bly_agg('a') AS f")
    fails(db, "SELECT bly_info(f) FROM f", state="42883")
    rows(db, "ALTER EXTENSION bloomery UPDATE")
    assert one(db, "SELECT extversion FROM pg_extension WHERE extname = 'bloomery'") == "0.2"
    assert one(db, "SELECT bly_info(f) FROM f")["capacity"] == 1
    assert one(db, "SELECT (f || f) @> 'a' FROM f")
    rows(db, "DROP EXTENSION bloomery CASCADE")
    assert one(db, "SELECT count(*) FROM pg_proc WHERE proname LIKE 'bly%'") == 0


def test_regression_scripts(server):
    """As PostgreSQL tests its own extensions."""
    regress = pg_server.config("pgxs").parent.parent / "test/regress/pg_regress"
    if not regress.exists():
        pytest.skip("no pg_regress")
    done = subprocess.run(
        [regress, f"--inputdir={ROOT / 'adapters/postgresql'}", f"--outputdir={server.files}",
         f"--bindir={pg_server.config('bindir')}", f"--host={server.root}", "--user=postgres",
         "--dbname=regression", "bloomery"],
        capture_output=True, text=True, cwd=server.files, timeout=PATIENCE, check=False)
    diffs = server.files / "regression.diffs"
    assert done.returncode == 0, done.stdout + done.stderr + (diffs.read_text() if diffs.exists() else "")


# ---------------------------------------------------------------- equality

ASKED = "SELECT count(*) FROM b WHERE bly_has((SELECT bly_agg({0}) FROM a), {0})"


def people(db, type_):
    rows(db, f"CREATE TABLE a(email {type_}); CREATE TABLE b(email {type_})")
    rows(db, "INSERT INTO a VALUES ('Ann'), ('bob'), ('CARL')")
    rows(db, "INSERT INTO b VALUES ('ann'), ('bob'), ('carl')")


def test_text_that_is_equal_has_equal_bytes_or_is_refused(db, tmp_path):
    """A plain join finds three rows; with a filter it must not be fewer."""
    rows(db, "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    people(db, "text COLLATE nocase")
    assert one(db, "SELECT count(*) FROM a JOIN b USING (email)") == 3
    path = str(tmp_path / "f.bly")
    for sql in (ASKED.format("email"), "SELECT bly_agg(email, 'blocked') FROM a", "SELECT bly_hll_agg(email) FROM a",
                "SELECT bly_minhash_agg(email) FROM a", "SELECT bly_topk_agg(email, 3) FROM a",
                "SELECT bly_agg('x') @> email FROM a GROUP BY email", "SELECT bly_count(bly_agg('x'), email) FROM a GROUP BY email",
                "SELECT bly_get(bly_agg('x'), email) FROM a GROUP BY email"):
        fails(db, sql, says='"nocase"', hint='lower(x) COLLATE "C"')
    assert one(db, ASKED.format('lower(email) COLLATE "C"')) == 3
    assert one(db, ASKED.format('(email COLLATE "C")')) == 1, "who says so means the bytes"
    fails(db, f"SELECT bly_has('{path}', email) FROM a", says='"nocase"')


def test_citext(database):
    db = database("folded", extension="CREATE EXTENSION bloomery; CREATE EXTENSION citext")
    people(db, "citext")
    assert one(db, "SELECT count(*) FROM a JOIN b USING (email)") == 3
    for sql in (ASKED.format("email"), "SELECT bly_hll_agg(email) FROM a", "SELECT bly_agg('x') @> email FROM a GROUP BY email"):
        fails(db, sql, says="citext", hint="lower(x::text)")
    assert one(db, ASKED.format("lower(email::text)")) == 3
    assert one(db, ASKED.format("email::text")) == 1
    rows(db, "DROP TABLE a, b; CREATE DOMAIN mail AS varchar(50)")
    for plain in ("varchar(20)", "mail", "char(9)", "name"):
        people(db, plain)
        assert one(db, ASKED.format("email")) == 1
        rows(db, "DROP TABLE a, b")


def test_values_are_equal_if_their_bytes_are(db):
    rows(db, "CREATE TABLE f AS SELECT bly_agg(x::bigint) AS f FROM generate_series(1, 9) AS x, generate_series(1, 3) AS y GROUP BY y")
    assert one(db, "SELECT count(DISTINCT f::bytea) FROM f") == 1
    assert one(db, "SELECT count(*) FROM (SELECT f FROM f GROUP BY f) AS x") == 1
    assert one(db, "SELECT count(*) FROM f JOIN f AS g USING (f)") == 9
    assert rows(db, "SELECT f = bly_agg(1), f <> bly_agg(1), f = f FROM f GROUP BY f") == [(False, True, True)]


def test_the_planner_is_told_how_many_rows_pass(db):
    """Not a third of them, whatever the filter: the keys that it has among those of the column."""
    numbers(db, 20000)

    def expected(where):
        return int(re.search(r"rows=(\d+)", one(db, "EXPLAIN SELECT * FROM a WHERE " + where)).group(1))
    for keys in (20, 2000, 20000):
        f = one(db, f"SELECT bly_agg(i::bigint)::text FROM generate_series(1, {keys}) AS g(i)")
        for where in (f"bly_has('{f}'::bloomery, n)", f"'{f}'::bloomery @> n"):
            assert keys * 0.7 <= expected(where) <= keys * 1.5 + 300, (keys, where[:20], expected(where))
    assert 1500 <= expected("bly_has((SELECT bly_agg(n) FROM a), n)") <= 2500, "not known yet"
    assert 1500 <= expected("bly_has('no.bly', n)") <= 2500
    assert expected("bly_has(NULL::bloomery, n)") <= 1
