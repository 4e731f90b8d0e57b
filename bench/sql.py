#!/usr/bin/python3
"""Filters inside databases, beside what people write without them.

    bench/sql.py [--rows N] [--rounds N] [ENGINE...]

Each figure is a ratio of two statements of one run, in turn, the least of some
rounds each: processor time of the process that runs them, or its memory. The
build is that of BLY_BUILD (build/). ENGINE: duckdb (ten times the rows),
postgresql, sqlite. With BITFILTERS=FILE, DuckDB loads its community extension of
that name too, compiled for it beforehand, and is measured with its filters.
"""
import argparse
import os
import pathlib
import select
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """Seconds of processor time that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_of(pid):
    """The most memory that a process has held so far, in MiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


def figure(what, ours, theirs, unit, bound):
    """bound: ours is to be at most so many times theirs."""
    ratio = ours / theirs
    print(f"{what:58} {ours:12.2f} {theirs:12.2f} {unit:4} {ratio:8.3f}  "
          f"at most {bound:g}{'' if ratio <= bound else ': MISSED'}", flush=True)


# ------------------------------------------------------------------ postgresql

class Counter:
    """Stands between a client and a server's socket and counts the bytes."""

    def __init__(self, to, folder):
        self.to, self.bytes = to, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / ".s.PGSQL.5432"))
        os.chmod(folder / ".s.PGSQL.5432", 0o777)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self.to))
            threading.Thread(target=self.relay, args=(client, server), daemon=True).start()

    def relay(self, client, server):
        other = {client: server, server: client}
        while True:
            for s in select.select(list(other), [], [])[0]:
                try:
                    data = s.recv(1 << 16)
                except ConnectionError:
                    data = b""
                if not data:
                    client.close()
                    server.close()
                    return
                self.bytes += len(data)
                other[s].sendall(data)


class Session:
    """A backend, measured; one statement each where memory counts."""

    def __init__(self, server, settings=""):
        self.db = server.connect()
        self.cursor = self.db.cursor()
        self.cursor.execute("SET max_parallel_workers_per_gather = 0;" + settings)
        self.pid = self.db.get_backend_pid()

    def run(self, sql):
        before = cpu_of(self.pid)
        self.cursor.execute(sql)
        self.last = self.cursor.fetchone()[0] if self.cursor.description else None
        return cpu_of(self.pid) - before


def memory(server, sql, settings=""):
    """Beyond that of reading the table, much of which is the server's cache."""
    peaks = []
    for statement in ("SELECT count(x) FROM a", sql):
        session = Session(server, settings)
        session.run(statement)
        peaks.append(peak_of(session.pid))
        session.db.close()
    return peaks[1] - peaks[0]


def least(rounds, session, *statements):
    """Of each statement, in turn."""
    times = [[session.run(sql) for sql in statements] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def far_join(server, rows):
    """A join with a table of another server, 1 % of which matches: bytes between the two."""
    admin = Session(server)
    admin.cursor.execute("CREATE DATABASE far")
    far = server.connect("far").cursor()
    far.execute("CREATE EXTENSION bloomery; CREATE TABLE orders AS SELECT "
                f"md5((i % ({rows} / 100 * 100))::text) AS email, i AS id FROM generate_series(1, {rows}) i")
    folder = server.root / "between"
    folder.mkdir(mode=0o755)
    counter = Counter(server.root / ".s.PGSQL.5432", folder)
    here = Session(server)
    here.cursor.execute(
        "CREATE EXTENSION postgres_fdw;"
        f"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{folder}', port '5432', dbname 'far',"
        " extensions 'bloomery', fetch_size '10000');"
        "CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user 'postgres');"
        "CREATE FOREIGN TABLE orders(email text, id bigint) SERVER far;"
        f"CREATE TABLE guests AS SELECT md5(i::text) AS email FROM generate_series(1, {rows} / 100) i;"
        "ANALYZE guests")
    plain = "SELECT count(*), sum(id) FROM guests JOIN orders USING (email)"
    fast = plain + " WHERE bly_has((SELECT bly_agg(email, NULL, 'fpr=0.001') FROM guests), orders.email)"
    sizes, results = [], []
    for sql in (fast, plain):
        counter.bytes = 0
        here.cursor.execute(sql)
        results.append(here.cursor.fetchall())
        sizes.append(counter.bytes / 1e6)
    assert results[0] == results[1], results
    figure(f"join over postgres_fdw, {rows} rows, 1 % matching", *sizes, "MB", 0.1)


def postgresql(rows, rounds):
    import pg_server
    if pg_server.missing():
        print(f"postgresql: {pg_server.missing()}")
        return
    server = pg_server.Server(shared_buffers="'256MB'", max_wal_size="'4GB'")
    try:
        s = Session(server)
        s.run("CREATE EXTENSION bloomery")
        # In no order, each once: what is hardest for both.
        s.run(f"CREATE UNLOGGED TABLE a AS SELECT 'user' || i * 7919 % {rows} || '@example.org' AS x, "
              f"i * 7919 % {rows} AS n FROM generate_series(1, {rows}::bigint) i")
        s.run("ANALYZE a")
        for sql in ("SELECT bly_agg(x) IS NULL FROM a", "SELECT count(DISTINCT x) FROM a"):
            s.run(sql)
        ours, theirs = least(rounds, s, "SELECT bly_agg(x) IS NULL FROM a", "SELECT count(DISTINCT x) FROM a")
        figure(f"postgresql: bly_agg(x), count(DISTINCT x), {rows} rows", ours, theirs, "s", 1.5)
        ours, theirs = least(rounds, s, "SELECT bly_agg(n) IS NULL FROM a", "SELECT count(DISTINCT n) FROM a")
        figure("the same of integers", ours, theirs, "s", 1.5)
        ours = memory(server, "SELECT bly_agg(x) IS NULL FROM a")
        theirs = memory(server, "SELECT count(DISTINCT x) FROM a", "SET work_mem = '8GB'")
        figure("their memory, nothing on disk", ours, theirs, "MiB", 1 / 20)
        s.run("CREATE TABLE f AS SELECT bly_agg(x) AS f FROM a WHERE n % 100 = 0")
        ours, theirs = least(max(rounds, 5), s, "SELECT count(*) FROM a WHERE bly_has((SELECT f FROM f), x)",
                             "SELECT count(*) FROM a WHERE x > ''")
        figure("WHERE bly_has(f, x), x > ''", ours, theirs, "s", 1.3)
        s.run("DROP TABLE a")
        far_join(server, rows)
    finally:
        server.stop()


# ---------------------------------------------------------------------- sqlite

SQLITE_MODULE = pathlib.Path(os.environ.get("BLY_BUILD", pathlib.Path(__file__).resolve().parent.parent / "build")) \
    / "bloomery_sqlite.so"


def sqlite_open(path):
    db = sqlite3.connect(path)
    db.enable_load_extension(True)
    db.load_extension(str(SQLITE_MODULE))
    # Sorters and their like in memory, as far as it goes.
    db.executescript("PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY")
    return db


def sqlite_least(rounds, db, *statements):
    """Seconds of processor time of each statement, in turn."""
    def seconds(sql):
        begin = time.process_time()
        db.execute(sql).fetchall()
        return time.process_time() - begin
    times = [[seconds(sql) for sql in statements] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def sqlite_peak(path, sql):
    """The most memory of a process that runs one statement, in MiB."""
    code = (f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent)!r})\n"
            f"import os, sql; sql.sqlite_open({path!r}).execute({sql!r}).fetchall()\n"
            "print(sql.peak_of(os.getpid()))")
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def sqlite(rows, rounds):
    if not SQLITE_MODULE.exists():
        print("sqlite: bloomery_sqlite.so was not built")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.db")
        db = sqlite_open(path)
        # In no order, each once: what is hardest for both.
        db.execute("CREATE TABLE a(x TEXT, n INTEGER)")
        db.execute(f"""WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < {rows})
                       INSERT INTO a SELECT 'user' || (i * 7919 % {rows}) || '@example.org', i * 7919 % {rows} FROM i""")
        db.commit()
        agg, distinct = "SELECT length(bly_agg(x)) FROM a", "SELECT count(DISTINCT x) FROM a"
        figure(f"sqlite: bly_agg(x), count(DISTINCT x), {rows} rows", *sqlite_least(rounds, db, agg, distinct), "s", 1.5)
        base = sqlite_peak(path, "SELECT count(x) FROM a")
        theirs = sqlite_peak(path, distinct) - base
        figure("their memory, nothing on disk", sqlite_peak(path, "SELECT bly_agg(x) IS NULL FROM a") - base, theirs, "MiB", 1 / 20)
        figure("the same, and the filter is given to a function", sqlite_peak(path, agg) - base, theirs, "MiB", 1 / 20)
        db.execute("CREATE TABLE f AS SELECT bly_agg(x) AS f FROM a WHERE n % 100 = 0")
        saved = os.path.join(folder, "f.bly")
        db.execute("SELECT bly_save(f, ?) FROM f", (saved,)).fetchall()
        figure("WHERE bly_has('f.bly', x), x > ''",
               *sqlite_least(max(rounds, 5), db, f"SELECT count(*) FROM a WHERE bly_has('{saved}', x)",
                             "SELECT count(*) FROM a WHERE x > ''"), "s", 1.3)
        figure("the same beside a function of SQLite, instr(x, 'zz')",
               *sqlite_least(max(rounds, 5), db, f"SELECT count(*) FROM a WHERE bly_has('{saved}', x)",
                             "SELECT count(*) FROM a WHERE instr(x, 'zz')"), "s", 1.3)
        # Each key in ten rows: 1 % of them match.
        db.execute(f"CREATE TABLE guests AS SELECT x FROM a WHERE n < {rows // 1000}")
        db.execute(f"CREATE TABLE orders AS SELECT 'user' || (n % {rows // 10}) || '@example.org' AS x, n FROM a")
        db.commit()
        plain = "SELECT count(*), sum(n) FROM guests JOIN orders USING (x)"
        fast = plain + " WHERE bly_has((SELECT bly_agg(x, NULL, 'fpr=0.001') FROM guests), orders.x)"
        assert db.execute(fast).fetchall() == db.execute(plain).fetchall()
        figure(f"join of {rows // 1000} keys, 1 % of {rows} rows matching, no index", *sqlite_least(rounds, db, fast, plain),
               "s", 1 / 3)
        db.close()


# ---------------------------------------------------------------------- duckdb

def duckdb(rows, rounds):
    import duck_support
    if duck_support.NO_NPM:
        print(f"duckdb: {duck_support.NO_NPM}")
        return
    rows *= 10
    db = duck_support.DuckDB("allow_unsigned_extensions=true", "threads=1")
    clock = (~db.node.pid << 3) | 2  # of the processor time of another process

    def best(*statements):
        def seconds(sql):
            begin = time.clock_gettime(clock)
            db(sql)
            return time.clock_gettime(clock) - begin
        times = [[seconds(sql) for sql in statements] for _ in range(max(rounds, 5))]
        return [min(column) for column in zip(*times)]

    peer = os.environ.get("BITFILTERS")
    with tempfile.TemporaryDirectory() as folder:
        db(f"LOAD '{duck_support.BUILD / 'bloomery.duckdb_extension'}'")
        # The rate of the peer's filters of 8 bits.
        db(f"SELECT bly_save(bly_agg(i * 100, NULL, 'fpr=0.0039'), '{folder}/f.bly') FROM range(100000) r(i)")
        ours = f"bly_has('{folder}/f.bly', x)"
        theirs = []
        if peer:
            db(f"LOAD '{peer}'")
            for kind in ("binary_fuse8_filter", "xor8_filter"):
                db(f"SET VARIABLE {kind} = (SELECT {kind}(hash(i * 100)) FROM range(100000) r(i))")
                theirs.append(f"{kind}_contains(getvariable('{kind}'), hash(x))")
        for where, name in ((f"ATTACH '{folder}/bench.db' AS d", "in a file"), ("ATTACH ':memory:' AS d", "in memory")):
            db(where)
            db(f"CREATE TABLE d.t AS SELECT i * 7919 % {rows} AS x FROM range({rows}) r(i)")
            asked, total, hashed, where, rest, *peers = best(
                f"SELECT count({ours}) FROM d.t", "SELECT sum(x) FROM d.t", "SELECT count(hash(x)) FROM d.t",
                f"SELECT count(*) FROM d.t WHERE {ours}", "SELECT count(*) FROM d.t WHERE x % 100 = 7",
                *(f"SELECT count({other}) FROM d.t" for other in theirs))
            for other, took in zip(theirs, peers):
                figure(f"duckdb: bly_has(f, x), {other.partition('(')[0]} {name}", asked, took, "s", 1 / 2)
            figure(f"duckdb: bly_has(f, x), sum(x), {rows} rows {name}", asked, total, "s", 2)
            figure("the same beside a function of DuckDB, hash(x)", asked, hashed, "s", 2)
            figure("WHERE bly_has(f, x), sum(x)", where, total, "s", 2)
            figure("WHERE bly_has(f, x), x % 100 = 7", where, rest, "s", 2)
            db("DETACH d")
    db.close()


ENGINES = {"duckdb": duckdb, "postgresql": postgresql, "sqlite": sqlite}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("engine", nargs="*", choices=[[], *ENGINES])
    args = parser.parse_args()
    print(f"{'':58} {'ours':>12} {'theirs':>12} {'':4} {'ratio':>8}")
    for name in args.engine or ENGINES:
        ENGINES[name](args.rows, args.rounds)


if __name__ == "__main__":
    main()
