"""bloomery parquet: filters in Parquet files, against files of other systems,
against DuckDB and hyparquet where npm has them, and against an independent
reader (parquet_file.py)."""
import datetime
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import uuid

import pytest

from conftest import BUILD, PATIENCE, PROGRAM, ROOT
from duck_support import DuckDB, needs_npm
from parquet_file import (BINARY, I32, I64, STRUCT, File, Thrift, drop, field,
                          filter_of, put)

VECTORS = pathlib.Path(os.environ.get(
    "BLY_VECTORS", ROOT.parent / "shared" / "vectors")) / "parquet"
TYPES = VECTORS / "duckdb-1.5.6-15-types.parquet"
needs_vectors = pytest.mark.skipif(not VECTORS.is_dir(),
                                   reason=f"no files in {VECTORS}")

N = 300
DAY = datetime.date(2020, 1, 1)
SECOND = datetime.datetime(2020, 1, 1)
# Each column of that file: its values as text, and as bytes.
COLUMNS = {
    "url": lambda i: (f"http://example.test/{i}",
                      b"http://example.test/%d" % i),
    "id": lambda i: (str(i * 1000003), struct.pack("<q", i * 1000003)),
    "i32": lambda i: (str(7 * i - 1000), struct.pack("<i", 7 * i - 1000)),
    "d": lambda i: (str(0.5 * i), struct.pack("<d", 0.5 * i)),
    "f": lambda i: (str(0.25 * i), struct.pack("<f", 0.25 * i)),
    "dt": lambda i: (str(DAY + datetime.timedelta(i)),
                     struct.pack("<i", 18262 + i)),
    "dec9": lambda i: (f"{i}.00", struct.pack("<i", 100 * i)),
    "dec18": lambda i: (str(i), struct.pack("<q", 100 * i)),
    "i16": lambda i: (str(i), struct.pack("<i", i)),
    "u8": lambda i: (str(i % 200), struct.pack("<i", i % 200)),
    "bl": lambda i: (f"x{i}", b"x%d" % i),
    "ts": lambda i: (str(SECOND + datetime.timedelta(seconds=i)),
                     struct.pack("<q", (1577836800 + i) * 1000000)),
    "u64": lambda i: (str(i), struct.pack("<Q", i)),
    "uu": lambda i: (f"00000000-0000-0000-0000-{i:012d}",
                     uuid.UUID(f"00000000-0000-0000-0000-{i:012d}").bytes),
}


def texts(column):
    return "".join(COLUMNS[column](i)[0] + "\n" for i in range(N))


def found(result):
    """{value: [row groups]} of what `has` printed."""
    lines = (line.split("\t") for line in result.lines)
    return {v: [int(g) for g in groups.split(",")] for v, groups in lines}


@pytest.fixture
def plain(tmp_path):
    """The file of 15 types without its filters."""
    path = tmp_path / "plain.parquet"
    File(TYPES).strip().write(path)
    return path


# -------------------------------------------------- files of other systems

@needs_vectors
@pytest.mark.parametrize("column", ["d", "f"])
def test_either_zero_finds_the_other_and_a_nan_may_be_anywhere(ok, column):
    """DuckDB's filters hold values as they came: 0.0 here, and no NaN that
    this program could know the bits of."""
    for value in "0", "-0.0", "nan":
        assert found(ok("parquet", "has", TYPES, "--column", column, "--",
                        value))[value][0] == 0


@needs_vectors
@pytest.mark.parametrize("column", COLUMNS)
def test_every_value_of_every_type_is_found(ok, column):
    got = found(ok("parquet", "has", TYPES, "--column", column, stdin=texts(column)))
    assert set(got) == set(texts(column).splitlines())
    assert all(groups == [0] for groups in got.values())


@needs_vectors
@pytest.mark.parametrize("column", COLUMNS)
def test_duckdbs_filters_are_reproduced(ok, plain, column):
    """Bit for bit, from the column itself and from the values; but where
    there is one zero, ours holds the other too."""
    theirs = File(TYPES).filter(0, column)
    values = [COLUMNS[column](i)[1] for i in range(N)]
    assert theirs == filter_of(values, len(theirs))
    if column in "df":
        values.append(struct.pack("<" + column, -0.0))
    # DuckDB allows 200 values in 256 bytes, which is 1.3 %.
    rate = "2%" if column == "u8" else "1%"
    ok("parquet", "add", plain, "-o", "out.parquet", "--column", column, "-p", rate)
    out = File(ok.path / "out.parquet")
    assert out.filter(0, column) == filter_of(values, len(theirs))
    assert out.data[:len(File(plain).data)] == File(plain).data


@needs_vectors
@pytest.mark.parametrize("name, nbytes", [
    ("data_index_bloom_encoding_stats", 1024),
    ("data_index_bloom_encoding_with_length", 2048)])
def test_files_of_parquet_java(ok, bly, name, nbytes):
    path = VECTORS / f"{name}.parquet"
    words = ["Hello", "This is", "a", "test", "How", "are you", "doing ",
             "today", "the quick", "brown fox", "jumps", "over", "the lazy",
             "dog"]
    got = found(ok("parquet", "has", path, "--column", "String", *words))
    assert list(got) == words
    assert bly("parquet", "has", path, "--column", "String", "doing").status == 1
    theirs = File(path).filter(0, "String")
    assert len(theirs) == nbytes
    assert theirs == filter_of([w.encode() for w in words], nbytes)
    # The same as a filter alone; that many keys at 1 % take that many bytes.
    ok("build", "-F", "sbbf", "--items", nbytes * 6 // 10, "-o", "alone",
       stdin="\n".join(words) + "\n")
    assert (ok.path / "alone").read_bytes()[-nbytes:] == theirs
    # And read from the column: snappy, or not, by other writers' pages.
    File(path).strip().write(ok.path / "plain.parquet")
    ok("parquet", "add", "plain.parquet", "-o", "o.parquet", "--column", "String")
    bits = File(ok.path / "o.parquet").filter(0, "String")
    assert bits == filter_of([w.encode() for w in words], len(bits))


@needs_vectors
def test_a_filter_alone(ok, bly, trouble):
    path = VECTORS / "bloom_filter.xxhash.bin"
    words = ["hello", "parquet", "bloom", "filter"]
    assert ok("has", path, *words, "absent").lines == words
    ok("build", "-F", "sbbf", "--items", 600, "-o", "again",
       stdin="\n".join(words) + "\n")
    assert (ok.path / "again").read_bytes() == path.read_bytes()
    for verb in ("info", "has"):
        trouble(verb, VECTORS / "bloom_filter.bin",
                says=["abandoned", "Murmur3"])


@needs_vectors
def test_hyparquet_writers_file(ok):
    path = VECTORS / "hyparquet-writer-strings.parquet"
    values = [f"s{i}" for i in range(200)]
    assert list(found(ok("parquet", "has", path, "--column", "s", *values))) == values
    ok("parquet", "add", path, "-o", "o.parquet", "--column", "s", "--replace")
    assert File(ok.path / "o.parquet").filter(0, "s") == \
        File(path).filter(0, "s")


@needs_vectors
def test_info(ok):
    lines = ok("parquet", "info", TYPES).lines
    assert any(line.split()[:5] == ["url", "BYTE_ARRAY", "string", "1", "512"]
               for line in lines)
    got = ok("parquet", "info", TYPES, "--json").json
    assert got["rows"] == N and got["row_groups"] == 1
    columns = {c["column"]: c for c in got["columns"]}
    assert list(columns) == File(TYPES).columns
    assert columns["bo"] == {"column": "bo", "type": "BOOLEAN", "filters": 0}
    assert columns["ts"]["type"] == "INT64 timestamp in microseconds"
    assert columns["dec9"]["type"] == "INT32 decimal(9, 2)"
    for name, make in COLUMNS.items():
        distinct = len({make(i)[0] for i in range(N)})
        assert abs(columns[name]["values_estimate"] - distinct) < 20
        assert 0 < columns[name]["fpr_now"] < 0.02


# ------------------------------------------------------------------ asking

@needs_vectors
def test_what_has_prints_and_returns(bly):
    def ask(*argv, **kw):
        return bly("parquet", "has", TYPES, *argv, **kw)
    both = ask("--column", "id", "3000009", "5")
    assert (both.status, both.out) == (0, "3000009\t0\n")
    assert ask("--column", "id", "5").status == 1
    assert ask("--column", "id", "-q", stdin="5\n3000009\n").raw == b""
    lines = ask("--column", "id", "--json", "3000009", "5").lines
    assert [json.loads(x) for x in lines] == [
        {"value": "3000009", "row_groups": [0]},
        {"value": "5", "row_groups": []}]
    assert ask("--column", "bl", "-0", stdin=b"x1\0x\n2\0x2\0").raw == \
        b"x1\t0\0x2\t0\0"


@needs_vectors
@pytest.mark.parametrize("column, wrong, right", [
    ("i32", "2147483648", "32 bits"), ("i32", "1.5", "32 bits"),
    ("i32", "", "32 bits"), ("i16", "32768", "16 bits"),
    ("u8", "256", "8 bits"), ("u8", "-1", "not negative"),
    ("u64", "18446744073709551616", "64 bits"),
    ("id", "9223372036854775808", "64 bits"),
    ("dt", "2020-02-30", "2020-01-31"), ("dt", "18262", "2020-01-31"),
    ("dt", "2021-02-29", "2020-01-31"),
    ("ts", "2020-01-01 00:00:00.0000001", "digits after the second"),
    ("ts", "2020-01-01 24:00:00", "digits after the second"),
    ("dec9", "1.005", "digits after the point"),
    ("dec9", "100000000", "digits after the point"), ("dec9", ".", "digits"),
    ("uu", "00000000-0000-0000-0000-00000000000", "hexadecimal"),
    ("uu", "00000000+0000-0000-0000-000000000001", "hexadecimal"),
    ("d", "one", "a number"), ("f", "", "a number")])
def test_values_that_are_none(trouble, column, wrong, right):
    trouble("parquet", "has", TYPES, "--column", column, "--", wrong,
            says=["not a value of column " + column, right])


@needs_vectors
@pytest.mark.parametrize("column, other", [
    ("dec9", "7"), ("dec9", "7.0"), ("dec9", "+7.000"), ("dec18", "007.00"),
    ("ts", "2020-01-01T00:00:07Z"), ("ts", "2020-01-01 00:00:07.000000000"),
    ("ts", "2020-01-01"), ("ts", "2020-01-01 00:01"), ("d", "7e0"),
    ("i32", "-993"), ("uu", "00000000000000000000000000000007")])
def test_other_forms_of_a_value(ok, column, other):
    assert list(found(ok("parquet", "has", TYPES, "--column", column, "--",
                         other))) == [other]


@needs_vectors
def test_columns_that_cannot_be_asked(trouble, plain):
    trouble("parquet", "has", TYPES, "--column", "nope", "1",
            says=["no column 'nope'", "url, id, i32"])
    trouble("parquet", "has", TYPES, "--column", "bo", "1", says="no filters")
    trouble("parquet", "has", plain, "--column", "url", "1", says="no filters")
    trouble("parquet", "has", TYPES, "1", says="--column")
    trouble("has", TYPES, "1", says=["14 columns", "column="])
    trouble("has", plain, "1", says="no column of this file has a filter")
    trouble("parquet", "has", TYPES, "--column", "url", "--fpr", "0.1", "1",
            says="takes no --fpr")


# ------------------------------------------------------------------ adding

@needs_vectors
def test_only_fields_14_and_15_change(ok, plain):
    """Whatever else a footer holds, known or not, stays as it is."""
    f = File(plain)
    meta = f.meta(0, "id")
    meta.append([16, STRUCT, [[1, I64, 77]]])
    meta.append([300, BINARY, b"of a later version"])
    f.meta(0, "uu").append([99, 1, None])
    f.groups[0].append([90, I64, -5])
    f.footer.append([70, BINARY, b"x" * 300])
    f.write(plain)
    ok("parquet", "add", plain, "-o", "o.parquet", "--column", "id", "--column", "uu",
       "--column", "url")
    out = File(ok.path / "o.parquet")
    end = len(f.data)
    for column in ("url", "id", "uu"):  # in the order of the file
        meta = out.meta(0, column)
        ids = [x[0] for x in meta]
        assert ids == sorted(ids) and {14, 15} <= set(ids)
        assert field(meta, 14) == end
        end += field(meta, 15)
        del meta[ids.index(14):ids.index(15) + 1]
    assert len(out.data) == end
    assert out.footer == f.footer
    assert out.data[:len(f.data)] == f.data


@needs_vectors
def test_filters_of_other_columns_stay(ok):
    f = File(TYPES)
    for number in (14, 15):
        f.meta(0, "url")[:] = [x for x in f.meta(0, "url") if x[0] != number]
    f.write(ok.path / "one-less.parquet")
    ok("parquet", "add", "one-less.parquet", "-o", "o.parquet", "--column", "url")
    out, theirs = File(ok.path / "o.parquet"), File(TYPES)
    for column in COLUMNS:
        assert out.filter(0, column) == theirs.filter(0, column)


@needs_vectors
def test_the_report(ok, plain):
    line = ok("parquet", "add", plain, "-o", "o.parquet", "--column", "url").out
    assert line.startswith("url: 1 filter, 512 B for about 298 values, rate ")
    got = ok("parquet", "add", plain, "-o", "o.parquet", "--column", "url", "--json",
             "-p", "1e-4").json
    assert got["columns"][0]["bytes"] == 1024
    assert got["columns"][0]["fpr"] < 1e-4
    assert ok("parquet", "add", plain, "-o", "o.parquet", "--column", "url",
              "-q").out == ""
    # To standard output, the report beside it.
    piped = ok("parquet", "add", plain, "-o", "-", "--column", "url")
    ok("parquet", "add", plain, "-o", "o.parquet", "--column", "url", "-q")
    assert piped.raw == (ok.path / "o.parquet").read_bytes()
    assert "298 values" in piped.err


@needs_vectors
def test_a_column_with_filters_is_left_alone(ok, plain):
    """And the others get theirs."""
    ok("parquet", "add", plain, "-o", "one.parquet", "--column", "url")
    out = ok("parquet", "add", "one.parquet", "-o", "two.parquet", "--column", "url", "--column", "id").out
    assert re.search(r"^url: left alone.*--replace", out, re.M) and re.search(r"^id: \d+ filter", out, re.M)
    assert File(ok.path / "two.parquet").filter(0, "url") == File(ok.path / "one.parquet").filter(0, "url")
    told = json.loads(ok("parquet", "add", "one.parquet", "-o", "two.parquet", "--column", "url", "--column", "id", "--json").out)
    assert [c["left_alone"] for c in told["columns"]] == [True, False]
    assert told["columns"][0]["fpr"] is None and told["columns"][0]["bytes"] == 0


@needs_vectors
def test_what_add_refuses(trouble, plain):
    """By name, with nothing written."""
    def refused(path, *argv, says):
        trouble("parquet", "add", path, "-o", "o.parquet", *argv, says=says)
        assert not (trouble.path / "o.parquet").exists()
    refused(TYPES, "--column", "url", says=["has filters", "--replace"])
    refused(plain, "--column", "bo", says=["bo", "BOOLEAN"])
    refused(plain, "--column", "nope", says="no column 'nope'")
    refused(plain, says="no column is given")
    refused(plain, "--column", "url", "--column", "url", says="twice")
    trouble("parquet", "add", plain, "--column", "url", says="-o OUT")
    trouble("parquet", "add", plain, "-o", plain, "--column", "url", says="plain")
    for name, number in {"LZO": 3, "BROTLI": 4, "LZ4": 5, "LZ4_RAW": 7,
                         "unknown": 40}.items():
        f = File(plain)
        put(f.meta(0, "url"), 4, I32, number)
        f.write(trouble.path / "codec.parquet")
        refused("codec.parquet", "--column", "url",
                says=["row group 0, column url", name, "ZSTD"])
    changes = {
        "encrypted": lambda f: put(f.chunk(0, "url"), 8, STRUCT, []),
        "another file": lambda f: put(f.chunk(0, "url"), 1, BINARY, b"x"),
        "signed": lambda f: put(f.footer, 9, BINARY, b"key"),
        "out of order": lambda f: f.meta(0, "url").append([6, I64, 1]),
        "outside": lambda f: put(f.meta(0, "url"), 7, I64, 1 << 40),
        "according to the footer": lambda f: put(f.meta(0, "url"), 5, I64, 301),
    }
    for says, change in changes.items():
        f = File(plain)
        change(f)
        f.write(trouble.path / "other.parquet")
        refused("other.parquet", "--column", "url", says=says)


def page_at(f, group, column):
    """The first data page of a chunk: its header, and where that is."""
    meta = f.meta(group, column)
    at = field(meta, 11) or field(meta, 9)
    while True:
        t = Thrift(f.data, at)
        header = t.struct()
        if field(header, 1) in (0, 3):
            return header, at, t.at
        at = t.at + field(header, 3)


@needs_vectors
def test_encodings_that_cannot_be_read(trouble, plain):
    f = File(plain)
    header, at, end = page_at(f, 0, "d")
    assert field(field(header, 5), 2) == 2  # PLAIN_DICTIONARY, one byte
    where = f.data.index(bytes([0x15, 4]), at, end) + 1
    for number, name in ((1, "GROUP_VAR_INT"), (4, "BIT_PACKED"),
                         (5, "DELTA_BINARY_PACKED"), (33, "unknown")):
        data = bytearray(f.data)
        data[where] = number * 2
        g = File(plain)
        g.data = bytes(data)
        g.write(trouble.path / "e.parquet")
        trouble("parquet", "add", "e.parquet", "-o", "o.parquet", "--column", "d",
                says=["row group 0, column d", name])


@needs_vectors
def test_damaged_files(trouble):
    raw = TYPES.read_bytes()
    n = struct.unpack("<I", raw[-8:-4])[0]
    trouble("parquet", "info", "-", stdin=raw, says="name a file")
    trouble("parquet", "info", ".", says="not a regular file")
    cases = {
        "does not end with PAR1": raw[:-1],
        "does not begin with PAR1": raw[1:],
        "damaged footer": raw[:-8 - n] + bytes([0xff]) * n + raw[-8:],
        "whose footer should have": raw[:-8] + b"\xff\xff\xff\x7fPAR1",
        "encrypted footer": b"PARE" + raw[4:-4] + b"PARE",
        "empty": b"",
    }
    for says, content in cases.items():
        (trouble.path / "bad.parquet").write_bytes(content)
        trouble("parquet", "info", "bad.parquet", says=["bad.parquet", says])
        trouble("parquet", "has", "bad.parquet", "--column", "url", "1", says=says)
        trouble("parquet", "add", "bad.parquet", "-o", "o.parquet", "--column",
                "url", says=says)
    for number, value in ((14, 1 << 40), (14, 2), (15, 7)):
        f = File(TYPES)
        put(f.meta(0, "url"), number, I64 if number == 14 else I32, value)
        f.write(trouble.path / "bad.parquet")
        trouble("parquet", "has", "bad.parquet", "--column", "url", "1",
                says="row group 0, column url")
    f = File(TYPES)
    f.chunk(0, "url").append([3, STRUCT, f.meta(0, "url")])
    f.write(trouble.path / "bad.parquet")
    trouble("parquet", "info", "bad.parquet", says="damaged footer")
    f = File(TYPES)
    drop(f.meta(0, "url"), 5)
    f.write(trouble.path / "bad.parquet")
    trouble("parquet", "info", "bad.parquet", says="damaged footer")
    assert not (trouble.path / "o.parquet").exists()


@needs_vectors
def test_what_is_encrypted_or_elsewhere_says_maybe(ok):
    f = File(TYPES)
    put(f.chunk(0, "url"), 8, STRUCT, [])
    put(f.chunk(0, "id"), 1, BINARY, b"other.parquet")
    f.write(ok.path / "e.parquet")
    for column in ("url", "id"):
        assert ok("parquet", "has", "e.parquet", "--column", column, "5").out == \
            "5\t0\n"


@needs_vectors
def test_a_filter_of_another_make_says_maybe(ok):
    """Algorithms and hashes to come must not be taken for ours."""
    f = File(TYPES)
    at = field(f.meta(0, "url"), 14)
    data = bytearray(f.data)
    assert data[at + 3:at + 7] == bytes([0x1c, 0x1c, 0, 0])
    data[at + 4] = 0x2c
    f.data = bytes(data)
    f.write(ok.path / "other.parquet")
    got = found(ok("parquet", "has", "other.parquet", "--column", "url", "absent"))
    assert got == {"absent": [0]}


@pytest.fixture
def pipe_of(tmp_path):
    """Start `add` with its output into a pipe."""
    def start(path, *argv):
        return subprocess.Popen([PROGRAM, "parquet", "add", path, *argv],
                                stdout=subprocess.PIPE, bufsize=0,
                                stderr=subprocess.PIPE, cwd=tmp_path)
    return start


def large_plain(path):
    """Larger than any pipe holds: the data of a file, and then zeros."""
    f = File(TYPES).strip()
    f.data += bytes(4 << 20)
    f.write(path)


@needs_vectors
def test_changed_while_it_is_read(tmp_path, pipe_of):
    path = tmp_path / "large.parquet"
    large_plain(path)
    before = path.read_bytes()
    for change in ("time", "footer"):
        path.write_bytes(before)
        os.utime(path, ns=(10**18, 10**18))
        p = pipe_of(path, "-o", "-", "--column", "url")
        first = p.stdout.read(1000)  # by now the columns have been read
        if change == "time":
            os.utime(path, ns=(10**18, 10**18 + 1))
        else:
            with open(path, "r+b") as f:
                f.seek(-20, 2)
                f.write(b"\1")
            os.utime(path, ns=(10**18, 10**18))
        rest, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 2, err
        assert b"changed while it was read" in err
        assert len(first + rest) >= len(before)
    # To a file by name: a pipe that has one.
    path.write_bytes(before)
    os.mkfifo(tmp_path / "fifo")
    p = pipe_of(path, "-o", "fifo", "--column", "url")
    with open(tmp_path / "fifo", "rb") as f:
        f.read(100000)
        os.utime(path, ns=(10**18, 10**18))
        f.read()
    assert p.wait(timeout=PATIENCE) == 2
    assert b"changed while it was read" in p.stderr.read()


@needs_vectors
def test_cut_while_it_is_read(tmp_path, pipe_of):
    path = tmp_path / "large.parquet"
    large_plain(path)
    p = pipe_of(path, "-o", "-", "--column", "url")
    p.stdout.read(1000)
    os.truncate(path, 200000)
    _, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 2 and len(err.splitlines()) == 1, err
    assert b"large.parquet" in err and b"while it was" in err


# ------------------------------------------------------- DuckDB, hyparquet

@pytest.fixture(scope="module")
def duck():
    d = DuckDB()
    yield d
    d.close()


TABLE = """select 'key ' || hash(i * {step} % {distinct}) s,
    (hash(i * {step} % {distinct} + 1) >> 1)::bigint n,
    case when i % 3 = 0 then null else 'opt ' || i % {distinct} end o
    from range({rows}) t(i)"""


@needs_npm
def test_duckdb_skips_row_groups_and_loses_no_row(duck, ok, tmp_path):
    """10,000 queries of a file with our filters, half of them for what is
    there; and once filters are emptied, DuckDB finds nothing: it does ask
    them."""
    duck(f"copy ({TABLE.format(step=7, distinct=20480, rows=20480)}) to "
         f"'{tmp_path}/t.parquet' (write_bloom_filter false, "
         "row_group_size 2048)")
    ok("parquet", "add", "t.parquet", "-o", "f.parquet", "--column", "s")
    f = File(tmp_path / "f.parquet")
    assert len(f.groups) == 10
    duck("set parquet_metadata_cache = true")
    query = f"select count(*) from '{tmp_path}/{{}}' where s = ?::varchar"
    there = [r[0] for r in duck(f"select s from '{tmp_path}/t.parquet' "
                                "using sample reservoir(5000 rows) "
                                "repeatable (1)")]
    absent = [f"key {random.Random(i).getrandbits(64)}" for i in range(5000)]
    got = duck(query.format("f.parquet"), each=there + absent)
    assert got == ["1"] * 5000 + ["0"] * 5000
    data = bytearray(f.data)
    for group in range(10):
        start, end = f.filter_at(group, "s")
        data[start:end] = bytes(end - start)
    f.data = bytes(data)
    f.write(tmp_path / "emptied.parquet")
    assert duck(query.format("emptied.parquet"), each=there[:20]) == ["0"] * 20


@needs_npm
def test_probes_agree_with_duckdb(duck, ok, tmp_path):
    """Its filters asked by us, ours by it: the same answer for every value
    and row group."""
    duck(f"copy ({TABLE.format(step=3, distinct=3000, rows=12288)}) to "
         f"'{tmp_path}/theirs.parquet' (dictionary_size_limit 100000, "
         "row_group_size 4096, bloom_filter_false_positive_ratio 0.1)")
    File(tmp_path / "theirs.parquet").strip().write(tmp_path / "plain.parquet")
    ok("parquet", "add", "plain.parquet", "-o", "ours.parquet", "--column", "s",
       "--column", "o", "-p", "10%")
    values = [r[0] for r in duck(f"select s from '{tmp_path}/theirs.parquet' "
                                 "limit 100")]
    values += [f"key {i}" for i in range(300)]
    for name in ("theirs", "ours"):
        asked = ok("parquet", "has", f"{name}.parquet", "--column", "s", "--json",
                   stdin="\n".join(values)).lines
        ngroups = len(File(tmp_path / f"{name}.parquet").groups)
        for line in map(json.loads, asked):
            rows = duck("select row_group_id, bloom_filter_excludes from "
                        f"parquet_bloom_probe('{tmp_path}/{name}.parquet', "
                        f"'s', '{line['value']}')")
            assert len(rows) == ngroups
            assert [int(r[0]) for r in rows if not r[1]] == line["row_groups"]


KINDS = {
    "i8": "(i % 250 - 125)::tinyint", "i16": "(i - 300)::smallint",
    "i32": "(i * 7 - 1000)::integer", "i64": "i * 1000003 - 5",
    "u8": "(i % 250)::utinyint", "u16": "(i * 20)::usmallint",
    "u32": "(i * 1000000)::uinteger", "u64": "(i * 10000000000)::ubigint",
    "f": "(i * 0.37)::float", "d": "i * 0.1::double",
    "s": "'s' || repeat('x', (i % 50)::int) || i", "b": "('b' || i)::blob",
    "dt": "date '1960-03-01' + (i * 30)::int",
    "ts": "timestamp '1969-12-31 23:59:00.123456' + interval (i) second",
    "ts_ms": "(timestamp '2001-01-01' + interval (i) second)::timestamp_ms",
    "ts_ns": "(timestamp '2001-01-01' + interval (i) second)::timestamp_ns",
    "t": "time '00:00:01.5' + interval (i) second",
    "dec4": "(i * 0.1 - 5)::decimal(4, 1)", "dec9": "(i * 0.01)::decimal(9, 2)",
    "dec18": "(i * 1.001 - 7)::decimal(18, 3)",
    "dec38": "(i * 100000000000 - 12345.678)::decimal(38, 4)",
    "uu": "('00000000-0000-4000-8000-' || lpad(i::varchar, 12, '0'))::uuid",
    "opt": "case when i % 7 < 3 then i::varchar end",
    "none": "case when i < 0 then i::varchar end",
    "many": "'m' || i % 5",
}
WAYS = [("uncompressed", "v1"), ("snappy", "v1"), ("gzip", "v1"),
        ("zstd", "v1"), ("snappy", "v2"), ("zstd", "v2")]


@needs_npm
@pytest.mark.parametrize("codec, version", WAYS)
def test_every_type_that_duckdb_writes(duck, ok, tmp_path, codec, version):
    """Of every codec, and of both versions of pages with their encodings:
    filters that have every value, as DuckDB prints and asks it."""
    rows = 600
    columns = ", ".join(f"{sql} as {name}" for name, sql in KINDS.items())
    duck(f"copy (select {columns}, [i, i + 5000] as l, "
         "{{'a': {{'b': 'x' || i}}}} as st "
         f"from range({rows}) r(i)) to '{tmp_path}/t.parquet' "
         f"(compression {codec}, parquet_version {version}, "
         "write_bloom_filter false, row_group_size 300)"
         .replace("{{", "{").replace("}}", "}"))
    names = list(KINDS) + ["l.list.element", "st.a.b"]
    ok("parquet", "add", "t.parquet", "-o", "f.parquet",
       *(x for name in names for x in ("--column", name)))
    f = File(tmp_path / "f.parquet")
    assert duck(f"select count(*), sum(hash(COLUMNS(*))) from "
                f"'{tmp_path}/t.parquet'") == \
        duck(f"select count(*), sum(hash(COLUMNS(*))) from "
             f"'{tmp_path}/f.parquet'")
    for name in KINDS:
        values = [r[0] for r in duck(
            f"select distinct {name}::varchar from '{tmp_path}/t.parquet' "
            f"where {name} is not null")]
        if name == "none":
            assert set(f.filter(0, name)) == {0}
            continue
        asked = ok("parquet", "has", "f.parquet", "--column", name,
                   stdin="\n".join(values) + "\n")
        assert set(found(asked)) == set(values), name
    for name, values in (("l.list.element",
                          [str(i) for i in range(5000 + rows) if i < rows
                           or i >= 5000]),
                         ("st.a.b", [f"x{i}" for i in range(rows)])):
        got = found(ok("parquet", "has", "f.parquet", "--column", name,
                       stdin="\n".join(values) + "\n"))
        assert set(got) == set(values)
        assert not got[values[0]] == [0, 1] or not got[values[1]] == [0, 1]
    # And DuckDB, which asks them, finds each.
    for name in ("i64", "s", "uu", "ts", "dec18", "opt"):
        assert duck(f"select count(*) from (select distinct {name} v from "
                    f"'{tmp_path}/t.parquet' where {name} is not null limit 20)"
                    f" a where (select count(*) from '{tmp_path}/f.parquet' b "
                    f"where b.{name} = a.v) = 0") == [["0"]]


@needs_npm
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("type", ["float", "double"])
def test_zeros_and_nans_of_either_sign(duck, ok, bly, tmp_path, type, version):
    """0.0 = -0.0, and NaN = NaN whatever its sign: DuckDB finds as many rows
    with filters as without, and so does `has`. A group with neither is still
    ruled out for zeros."""
    special = ["0.0", "-0.0", "'nan'", "-('nan'::double)"]
    cases = " ".join(f"when {g} then ({x})::{type}"
                     for g, x in enumerate(special))
    duck(f"copy (select case when i % 50 = 7 then case i // 2048 {cases} end "
         f"else (i + 0.5)::{type} end as y from range(10240) r(i)) to "
         f"'{tmp_path}/t.parquet' (write_bloom_filter false, "
         f"row_group_size 2048, parquet_version {version})")
    ok("parquet", "add", "t.parquet", "-o", "f.parquet", "--column", "y")
    assert len(File(tmp_path / "f.parquet").groups) == 5
    query = (f"select count(*) from '{tmp_path}/{{}}.parquet' "
             f"where y = ({{}})::{type}")
    for x in special:
        before, after = (duck(query.format(name, x)) for name in ("t", "f"))
        assert before == after != [["0"]], x
    for x in "0", "0.0", "-0.0", "-0e5":
        [groups] = found(ok("parquet", "has", "f.parquet", "--column", "y", "--",
                            x)).values()
        assert groups == [0, 1], x
    for x in "nan", "-nan":
        [groups] = found(ok("parquet", "has", "f.parquet", "--column", "y", "--",
                            x)).values()
        assert {2, 3} <= set(groups), x


@needs_npm
def test_encodings_of_version_2_are_met(duck, tmp_path):
    """The test above reads what it should: not only PLAIN."""
    columns = ", ".join(f"{sql} as {name}" for name, sql in KINDS.items())
    duck(f"copy (select {columns} from range(600) r(i)) to "
         f"'{tmp_path}/t.parquet' (parquet_version v2)")
    seen = {r[0] for r in duck("select distinct encodings from "
                               f"parquet_metadata('{tmp_path}/t.parquet')")}
    for encoding in ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY",
                     "BYTE_STREAM_SPLIT", "RLE_DICTIONARY"):
        assert any(encoding in s for s in seen), (encoding, seen)


def hyparquet(*argv):
    done = subprocess.run(
        ["node", ROOT / "tests" / "hyparquet.mjs", BUILD / "npm", *argv],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return [json.loads(x) for x in done.stdout.splitlines()]


@needs_npm
@pytest.mark.parametrize("column, encoding, value", [
    ("prefixed", 7, lambda i: f"pre/{i >> 4}/{i}"),
    ("after", 6, lambda i: "x" * (i % 9) + str(i)),
    ("steps", 5, lambda i: str(i * i - 500)),
    ("small", 5, lambda i: str(-7 * i)),
    ("split", 9, lambda i: str(i / 4))])
def test_encodings_of_hyparquet_writer(ok, tmp_path, column, encoding, value):
    hyparquet("write", tmp_path / "t.parquet")
    f = File(tmp_path / "t.parquet")
    header, _, _ = page_at(f, 0, column)
    page = field(header, 5) or field(header, 8)
    assert field(page, 2 if field(header, 5) else 4) == encoding
    ok("parquet", "add", "t.parquet", "-o", "f.parquet", "--column", column, "-p",
       "1e-5")
    values = [value(i) for i in range(3000)]
    got = found(ok("parquet", "has", "f.parquet", "--column", column,
                   stdin="\n".join(values)))
    for i, v in enumerate(values):
        assert i // 1000 in got[v]
    assert sum(len(groups) for groups in got.values()) < 3010 + 20


@needs_npm
def test_hyparquet_reads_ours(ok, tmp_path):
    hyparquet("write", tmp_path / "t.parquet")
    ok("parquet", "add", "t.parquet", "-o", "f.parquet", "--column", "name", "--column",
       "id")
    names = [f"name {i}" for i in range(1, 1200, 37) if i % 5]
    there = hyparquet("ask", tmp_path / "f.parquet", "name", *names)
    assert all(rows >= 2 for rows, _ in there)
    absent = hyparquet("ask", tmp_path / "f.parquet", "name",
                       *(f"name {i}" for i in range(5000, 5030)))
    assert all(rows == 0 for rows, _ in absent)
    # What is ruled out is not read.
    assert sorted(n for _, n in absent)[15] < sorted(n for _, n in there)[15]
    got = found(ok("parquet", "has", "f.parquet", "--column", "id",
                   *(str(7919 * i) for i in (0, 1500, 2999))))
    assert [got[str(7919 * i)] for i in (0, 1500, 2999)] == [[0], [1], [2]]
