"""LevelDB with filters of ours: a real database, its tables, and damage."""
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT, kinds_that

ARCHIVE = BUILD / "libbloomery_leveldb.a"
NKEYS = 3000
pytestmark = pytest.mark.skipif(not ARCHIVE.exists(),
                                reason="libbloomery_leveldb.a was not built: no headers of LevelDB")


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """tests/leveldb_writer.c, linked as a user would."""
    program = tmp_path_factory.mktemp("leveldb") / "writer"
    built = subprocess.run(
        ["gcc", f"-I{ROOT}/include", f"-I{ROOT}/adapters/leveldb", ROOT / "tests" / "leveldb_writer.c", ARCHIVE,
         BUILD / "libbloomery.a", "-lleveldb", "-lm", "-pthread", "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr

    def call(*words, status=0):
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == status, done.stderr
        return done.stdout.strip() if status == 0 else done.stderr
    return call


@pytest.fixture
def database(writer, tmp_path):
    """Make one and get its tables."""
    def make(kind="ribbon", fpr=0, bits=0, nkeys=NKEYS):
        folder = tmp_path / f"{kind}-{fpr}-{bits}"
        writer("write", folder, kind, fpr, bits, nkeys)
        tables = sorted(folder.glob("*.ldb"))
        assert tables
        return folder, tables
    return make


def facts(ok, table):
    info = ok("info", "--json", table).json
    assert info["format"] == "leveldb"
    return {**info["params"], **{k: v for k, v in info.items() if k != "params"}}


def test_all_keys_are_found_and_info_tells(ok, writer, database):
    folder, tables = database()
    assert writer("ask", folder, "ribbon", 0, 0, NKEYS) == f"{NKEYS} 0"
    info = facts(ok, tables[0])
    assert info["policy"] == "bloomery.Filter1"
    assert info["filters"] > 10 and info["filter_bytes"] * 8 == info["bits"]
    assert NKEYS <= info["items"] <= NKEYS + 2 * info["filters"]
    assert 6.5 < info["bits_per_key"] < 7.2  # 6.72 are needed, and 8 for each header
    assert 0.005 < info["fpr_now"] < 0.02
    text = ok("info", tables[0]).out
    assert "bloomery.Filter1" in text and "bits_per_key" in text


def test_the_command_asks_tables(ok, database):
    _, tables = database(fpr=0.001)
    keys = [f"key{2 * i:010}" for i in range(NKEYS)]
    assert ok("has", tables[0], stdin="\n".join(keys)).lines == keys
    others = "\n".join(f"key{2 * i + 1:010}" for i in range(NKEYS))
    found = ok("has", "--parts", tables[0], stdin=others).lines
    filters = facts(ok, tables[0])["filters"]
    assert len(found) < NKEYS * filters * 0.002


@pytest.mark.parametrize("bits", [1, 2.5, 10, 15])
def test_bits_per_key(ok, writer, database, bits):
    folder, tables = database(bits=bits)
    assert writer("ask", folder, "ribbon", 0, 0, NKEYS) == f"{NKEYS} 0"
    info = facts(ok, tables[0])
    assert info["filter_bytes"] * 8 < NKEYS * bits * 1.15 + 16 * info["filters"]


def test_fewer_bytes_than_its_own(ok, database):
    """At most the rate of the built-in filter, and fewer bytes."""
    own = facts(ok, database("builtin")[1][0])
    ours = facts(ok, database(fpr=0.008)[1][0])
    assert own["policy"] == "leveldb.BuiltinBloomFilter2"
    assert ours["filter_bytes"] < 0.75 * own["filter_bytes"]


def test_any_kind(ok, writer, tmp_path):
    """A kind works in a database, or says why not before there is one."""
    worked = []
    for kind in kinds_that("has"):
        folder = tmp_path / kind
        try:
            writer("policy", kind, 0, 0)
        except AssertionError as refused:
            assert "writer: " in str(refused)
            continue
        writer("write", folder, kind, 0, 0, 300)
        assert writer("ask", folder, kind, 0, 0, 300) == "300 0", kind
        if kind != "ribbon":
            table = sorted(folder.glob("*.ldb"))[0]
            info = facts(ok, table)
            assert info["bly_files"] == info["filters"] > 0
            assert len(ok("has", table, stdin="key0000000000\nother").lines) == 2
        worked.append(kind)
    assert {"ribbon", "blocked", "fuse", "cuckoo"} <= set(worked)


def test_kind_and_size_may_change(writer, database):
    folder, _ = database(bits=12)
    assert writer("ask", folder, "blocked", 0, 0, NKEYS) == f"{NKEYS} 0"
    assert writer("ask", folder, "none", 0, 0, NKEYS) == f"{NKEYS} 0"
    assert writer("ask", folder, "builtin", 0, 0, NKEYS) == f"{NKEYS} 0"
    writer("write", folder, "blocked", 0, 0, NKEYS)
    assert writer("ask", folder, "ribbon", 0, 0, NKEYS) == f"{NKEYS} 0"


@pytest.mark.parametrize("kind,fpr,bits,says", [
    ("nokind", 0, 0, "there is no kind 'nokind'"),
    ("generalized", 0, 0, 'cannot say "no" for certain'),
    ("bloomier", 0, 0, "value"),
    ("ribbon", 0.00001, 0, "3.1e-5 or more"),
    ("ribbon", 2, 0, "between 0 and 1"),
    ("ribbon", 0, 16, "1 to 15"),
    ("ribbon", 0, 0.5, "1 to 15"),
    ("ribbon", 0.1, 5, "one of them"),
    ("blocked", 0, -1, "1 to 1000"),
    ("blocked", "nan", 0, "between 0 and 1"),
])
def test_what_cannot_be_built(writer, kind, fpr, bits, says):
    assert says in writer("policy", kind, fpr, bits, status=2)


def places(data):
    """Where the block of filters is: between the data and the metaindex."""
    def varint(at):
        x = shift = 0
        while True:
            byte = data[at]
            x |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return x, at
    at, nxt = varint(len(data) - 48)
    size, _ = varint(nxt)
    name = data.index(b"filter.bloomery.Filter1", at)
    begin, nxt = varint(name + len(b"filter.bloomery.Filter1"))
    n, _ = varint(nxt)
    assert begin + n + 5 == at and size > 20
    return begin, begin + n


def test_a_damaged_filter_block(writer, database, trouble):
    """LevelDB does not look at the checksum unless it is told to; what the policy then gets may be anything. A
    filter that is none says maybe, so that every key is found; the rest answers, and nothing crashes."""
    folder, tables = database()
    data = tables[0].read_bytes()
    begin, end = places(data)
    tail = end - 5
    offsets = int.from_bytes(data[tail:tail + 4], "little")
    maybe = bytearray(data)
    maybe[begin:begin + offsets] = bytes(offsets)  # no header is one
    tables[0].write_bytes(maybe)
    assert writer("ask", folder, "ribbon", 0, 0, NKEYS) == f"{NKEYS} 0"
    trouble("info", tables[0], says="checksum of its block of filters")
    for seed in range(20):
        junk = bytearray(data)
        for i in range(begin, end if seed % 2 else begin + offsets):
            junk[i] = (i * 2654435761 + seed * 40503 + (i >> 3) * 97) >> 7 & 255
        tables[0].write_bytes(junk)
        found, others = writer("ask", folder, "ribbon", 0, 0, NKEYS).split()
        assert int(found) <= NKEYS and others == "0"
    tables[0].write_bytes(data)
    assert writer("ask", folder, "ribbon", 0, 0, NKEYS) == f"{NKEYS} 0"


def test_without_memory_and_with_any_bytes(tmp_path):
    """tests/leveldb_alone.c calls the policy as LevelDB does, with allocations that fail in turn, and bytes of any
    kind for a filter."""
    program = tmp_path / "alone"
    subprocess.run(["gcc", f"-I{ROOT}/include", f"-I{ROOT}/adapters/leveldb", ROOT / "tests" / "leveldb_alone.c", ARCHIVE,
                    BUILD / "libbloomery.a", "-Wl,--wrap=malloc,--wrap=calloc", "-lm", "-pthread", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stderr
